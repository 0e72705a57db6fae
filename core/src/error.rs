//! The one error type of all crates and packages, and the table of its codes.

use std::{borrow::Cow, error, fmt, sync::Arc, time::Duration};

/// Makes [`ErrorKind`] from one table: the meaning, the name in Rust and the code of each kind.
macro_rules! error_kinds {
    (
        generator: { $($(#[$meaning:meta])* $kind:ident = $code:literal,)* }
        store: { $($(#[$store_meaning:meta])* $store_kind:ident = $store_code:literal,)* }
    ) => {
        /// The kind of an [`Error`]; the codes are the same in every language.
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
            /// Every kind, in the order of declaration.
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
        /// A lease is backwards or outside the layout's lifetime, or there is none to extend.
        InvalidLease = "INVALID_LEASE",
        /// Text is not that of an id or a code, or a number is out of range.
        InvalidId = "INVALID_ID",
        /// Another argument is out of its range.
        InvalidArgument = "INVALID_ARGUMENT",
        /// Another generator of this process uses some of these node ids in another way.
        NodeInUse = "NODE_IN_USE",
        /// The first tick of the generator is in the future.
        LeaseNotStarted = "LEASE_NOT_STARTED",
        /// The last tick of a lease that the user set has passed.
        LeaseExpired = "LEASE_EXPIRED",
        /// All ids of the ticks that may be used now are issued.
        SequenceExhausted = "SEQUENCE_EXHAUSTED",
        /// The clock is behind the last id.
        ClockMovedBack = "CLOCK_MOVED_BACK",
        /// The clock shows a time before the layout's epoch; Randflake's is 2024-10-27T03:33:20Z.
        ClockBeforeEpoch = "CLOCK_BEFORE_EPOCH",
        /// The layout's last tick has passed; Randflake's is 2058-11-05T17:10:23Z.
        LifetimeOver = "LIFETIME_OVER",
        /// The generator, or its node id, belongs to a process this one was forked or restored from.
        Forked = "FORKED",
        /// The generator was closed.
        Closed = "CLOSED",
        /// A defect of this library.
        Internal = "INTERNAL",
        /// A leased generator has no lease now; its keeper, or the next call, asks the store again.
        LeaseUnavailable = "LEASE_UNAVAILABLE",
    }
    store: {
        /// The store did not answer, could not write, or gave an unexpected answer.
        StoreUnavailable = "STORE_UNAVAILABLE",
        /// Every node id is leased.
        NodesExhausted = "NODES_EXHAUSTED",
        /// This machine's clock and the store's differ by more than the store allows.
        ClockSkew = "CLOCK_SKEW",
        /// Another holder has the lease, or it was released.
        LeaseLost = "LEASE_LOST",
        /// The store may have lost acknowledged data and grants no leases for a while.
        StoreQuarantined = "STORE_QUARANTINED",
        /// The lease came from another store.
        StoreReplaced = "STORE_REPLACED",
        /// The store has no such namespace and does not create it.
        StoreNotInitialized = "STORE_NOT_INITIALIZED",
        /// The namespace belongs to another secret.
        SecretMismatch = "SECRET_MISMATCH",
        /// The store may lose or duplicate acknowledged data.
        WeakStore = "WEAK_STORE",
        /// The client library of the store is not installed.
        DriverMissing = "DRIVER_MISSING",
    }
}

/// Why a call failed: a [kind](ErrorKind), a message, and how long to wait if waiting helps.
///
/// ```
/// # use randflake::{ErrorKind, Id};
/// let error = "not an id".parse::<Id>().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidId);
/// assert!(error.to_string().contains("0-9 and a-v"));
/// ```
// Boxed, so that a `Result<Id, Error>` fits into registers.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    retry_after: Option<Duration>,
    /// Shared, since few sources can be cloned; boxed, so that the last owner can take the source
    /// out.
    source: Option<Arc<Source>>,
}

type Source = Box<dyn error::Error + Send + Sync>;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error. For stores, clocks and other languages.
    #[cold]
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), retry_after: None, source: None }))
    }

    /// Makes the error of an argument outside its range. The message names the argument, the range
    /// and the value.
    #[cold]
    #[must_use]
    pub fn invalid_argument(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// Makes the error of a [clock](crate::Clock) that failed with `source`, which
    /// [`Error::into_source`] returns.
    #[cold]
    #[must_use]
    pub fn from_clock(source: impl Into<Source>) -> Self {
        let mut error = Self::new(ErrorKind::InvalidArgument, "the injected clock failed");
        error.0.source = Some(Arc::new(source.into()));
        error
    }

    /// Sets how long after the failing call the same call can succeed. For stores.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Duration) -> Self {
        self.0.retry_after = Some(retry_after);
        self
    }

    /// Sets the error that caused this one, its [`source`](error::Error::source). For stores.
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

    /// Returns the error that caused this one, if it is of this type.
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

    /// Returns how long after the failing call the same call can succeed, by the clock that the call
    /// read. `None` if waiting by itself does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns the source of this error, such as the failure of an injected clock, if it is a `T` and
    /// no clone of the error is left.
    ///
    /// # Errors
    ///
    /// Returns the error itself if there is no such source.
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

/// Two errors are equal if their kind, message and `retry_after` are.
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
