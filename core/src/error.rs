use std::{borrow::Cow, error, fmt, sync::Arc, time::Duration};

/// Makes [`ErrorKind`] of one table: what a kind means, its name in Rust, and its code.
macro_rules! error_kinds {
    (
        generator: { $($(#[$meaning:meta])* $kind:ident = $code:literal,)* }
        store: { $($(#[$store_meaning:meta])* $store_kind:ident = $store_code:literal,)* }
    ) => {
        /// What kind of failure an [`Error`] is; the same names in every language.
        ///
        /// ```
        /// use randflake::{ErrorKind, Randflake, Secret};
        /// let error = Randflake::new(131_072, &Secret::random()).unwrap_err();
        /// assert_eq!(error.kind(), ErrorKind::InvalidNode);
        /// assert_eq!(error.kind().code(), "INVALID_NODE");
        /// ```
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum ErrorKind {
            $($(#[$meaning])* $kind,)*
            $($(#[$store_meaning])* $store_kind,)*
        }

        impl ErrorKind {
            /// Every kind, in the order of the declaration.
            pub const ALL: &[Self] = &[$(Self::$kind,)* $(Self::$store_kind,)*];

            /// Returns the stable code of this kind.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$kind => $code,)*
                    $(Self::$store_kind => $store_code,)*
                }
            }

            /// Returns whether a store of leases failed or refused.
            #[must_use]
            pub const fn is_of_store(self) -> bool {
                matches!(self, $(Self::$store_kind)|*)
            }
        }
    };
}

error_kinds! {
    generator: {
        /// The secret is not 16 bytes or 32 hex digits.
        InvalidSecret = "INVALID_SECRET",
        /// A node id is outside its range, listed twice, or missing.
        InvalidNode = "INVALID_NODE",
        /// A lease is backwards or lies outside the layout's lifetime, or there is none to extend.
        InvalidLease = "INVALID_LEASE",
        /// Text is not the text of an id, or a number does not fit in 64 bits.
        InvalidId = "INVALID_ID",
        /// Another argument is out of its range.
        InvalidArgument = "INVALID_ARGUMENT",
        /// Another generator of this process holds some of these node ids with some others.
        NodeInUse = "NODE_IN_USE",
        /// The first tick of the generator is still to come.
        LeaseNotStarted = "LEASE_NOT_STARTED",
        /// The last tick of a lease of one's own is over.
        LeaseExpired = "LEASE_EXPIRED",
        /// All ids of the ticks that may be used now are taken.
        SequenceExhausted = "SEQUENCE_EXHAUSTED",
        /// The clock is behind the last id.
        ClockMovedBack = "CLOCK_MOVED_BACK",
        /// The clock shows a time before the layout's epoch; Randflake's is 2024-10-27T03:33:20Z.
        ClockBeforeEpoch = "CLOCK_BEFORE_EPOCH",
        /// The layout's last tick is over; Randflake's is 2058-11-05T17:10:23Z.
        LifetimeOver = "LIFETIME_OVER",
        /// The generator, or its node id, belongs to a process this one was forked from.
        Forked = "FORKED",
        /// The generator was closed.
        Closed = "CLOSED",
        /// A defect of this library.
        Internal = "INTERNAL",
        /// A leased generator has no lease now; its keeper, or the next call, asks the store again.
        LeaseUnavailable = "LEASE_UNAVAILABLE",
    }
    store: {
        /// The store did not answer, could not write, or answered something else.
        StoreUnavailable = "STORE_UNAVAILABLE",
        /// Every node id is leased.
        NodesExhausted = "NODES_EXHAUSTED",
        /// This machine's clock and the store's differ by more than the store allows.
        ClockSkew = "CLOCK_SKEW",
        /// The lease has gone to somebody else, or was given back.
        LeaseLost = "LEASE_LOST",
        /// The store may have lost what it had acknowledged and grants nothing for a while.
        StoreQuarantined = "STORE_QUARANTINED",
        /// Another store is where the lease came from.
        StoreReplaced = "STORE_REPLACED",
        /// The store has no such namespace and does not make one by itself.
        StoreNotInitialized = "STORE_NOT_INITIALIZED",
        /// The namespace belongs to another secret.
        SecretMismatch = "SECRET_MISMATCH",
        /// The store may lose or double what it has acknowledged.
        WeakStore = "WEAK_STORE",
        /// What talks to the store is not installed.
        DriverMissing = "DRIVER_MISSING",
    }
}

/// Why something could not be done: a [kind](ErrorKind), a message, and how long to wait if
/// waiting helps.
///
/// ```
/// # use randflake::{ErrorKind, Id};
/// let error = "not an id".parse::<Id>().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidId);
/// assert!(error.to_string().contains("0-9 and a-v"));
/// ```
// Boxed, so that a `Result<Id, Error>` travels in registers.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    retry_after: Option<Duration>,
    /// Shared, since few of them can be cloned; boxed, so that its one owner can take it out.
    source: Option<Arc<Source>>,
}

type Source = Box<dyn error::Error + Send + Sync>;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error. For adapters of this crate to other languages and for stores.
    #[cold]
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), retry_after: None, source: None }))
    }

    /// Makes the error of an argument outside its range; the message says which one, the range
    /// and what was got.
    #[cold]
    #[must_use]
    pub fn invalid_argument(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// Makes the error of a [clock](crate::Clock) that failed, which [`Error::into_source`]
    /// hands back.
    #[cold]
    #[must_use]
    pub fn from_clock(source: impl Into<Source>) -> Self {
        let mut error = Self::new(ErrorKind::InvalidArgument, "the injected clock failed");
        error.0.source = Some(Arc::new(source.into()));
        error
    }

    /// Adds how long after the failing call the same call can succeed. For stores.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Duration) -> Self {
        self.0.retry_after = Some(retry_after);
        self
    }

    /// Adds what led to this error: its [`source`](error::Error::source). For stores.
    ///
    /// ```
    /// # use randflake::{Error, ErrorKind};
    /// let silent = Error::new(ErrorKind::StoreUnavailable, "the store does not answer");
    /// let error = Error::new(ErrorKind::LeaseUnavailable, "no lease now").caused_by(silent);
    /// assert_eq!(error.cause().map(Error::code), Some("STORE_UNAVAILABLE"));
    /// ```
    #[must_use]
    pub fn caused_by(mut self, cause: Self) -> Self {
        self.0.source = Some(Arc::new(cause.into()));
        self
    }

    /// Returns the error that led to this one, if there is one of this type.
    #[must_use]
    pub fn cause(&self) -> Option<&Self> {
        self.0.source.as_ref()?.downcast_ref()
    }

    /// Returns what kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the stable code of the kind.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// Returns how long after the failing call the same call can succeed, by the clock as the
    /// call read it; `None` where waiting does not help by itself.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns what is behind this error, such as the failure of an injected clock, if it is a `T`
    /// and no clone of the error is left.
    ///
    /// # Errors
    ///
    /// Gives the error itself back when there is no such failure.
    pub fn into_source<T: error::Error + 'static>(mut self) -> Result<T> {
        let Some(source) = self.0.source.take() else { return Err(self) };
        let kept = match Arc::try_unwrap(source) {
            Ok(source) => match source.downcast() {
                Ok(source) => return Ok(*source),
                Err(other) => Arc::new(other),
            },
            Err(shared) => shared,
        };
        self.0.source = Some(kept);
        Err(self)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("code", &self.code())
            .field("message", &self.0.message)
            .field("retry_after", &self.0.retry_after)
            .finish()
    }
}

/// Two errors are equal when kind, message and `retry_after` are.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        (self.0.kind, &self.0.message, self.0.retry_after)
            == (other.0.kind, &other.0.message, other.0.retry_after)
    }
}

impl Eq for Error {}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &***source as _)
    }
}
