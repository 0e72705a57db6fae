use std::{borrow::Cow, error, fmt, time::Duration};

use crate::layout;

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
    /// The secret is not 16 bytes or 32 hex digits.
    InvalidSecret,
    /// A node id is outside its range, listed twice, or missing.
    InvalidNode,
    /// A lease is backwards or lies outside the layout's lifetime, or there is none to extend.
    InvalidLease,
    /// Text is not the text of an id, or a number does not fit in 64 bits.
    InvalidId,
    /// Another argument is out of its range.
    InvalidArgument,
    /// Another generator of this process holds some of these node ids with some others.
    NodeInUse,
    /// The first tick of the generator is still to come.
    LeaseNotStarted,
    /// The last tick of a lease of one's own is over.
    LeaseExpired,
    /// All ids of the ticks that may be used now are taken.
    SequenceExhausted,
    /// The clock is behind the last id.
    ClockMovedBack,
    /// The clock shows a time before the layout's epoch; Randflake's is 2024-10-27T03:33:20Z.
    ClockBeforeEpoch,
    /// The layout's last tick is over; Randflake's is 2058-11-05T17:10:23Z.
    LifetimeOver,
    /// The generator, or its node id, belongs to a process this one was forked from.
    Forked,
    /// The generator was closed.
    Closed,
    /// A defect of this library.
    Internal,
    /// A leased generator has no lease now; its keeper, or the next call, asks the store again.
    LeaseUnavailable,
    /// The store did not answer, could not write, or answered something else.
    StoreUnavailable,
    /// Every node id is leased.
    NodesExhausted,
    /// This machine's clock and the store's differ by more than the store allows.
    ClockSkew,
    /// The lease has gone to somebody else, or was given back.
    LeaseLost,
    /// The store may have lost what it had acknowledged and grants nothing for a while.
    StoreQuarantined,
    /// Another store is where the lease came from.
    StoreReplaced,
    /// The store has no such namespace and does not make one by itself.
    StoreNotInitialized,
    /// The namespace belongs to another secret.
    SecretMismatch,
    /// The store may lose or double what it has acknowledged.
    WeakStore,
    /// What talks to the store is not installed.
    DriverMissing,
}

impl ErrorKind {
    /// Every kind, in the order of the declaration.
    pub const ALL: &[Self] = &[
        Self::InvalidSecret,
        Self::InvalidNode,
        Self::InvalidLease,
        Self::InvalidId,
        Self::InvalidArgument,
        Self::NodeInUse,
        Self::LeaseNotStarted,
        Self::LeaseExpired,
        Self::SequenceExhausted,
        Self::ClockMovedBack,
        Self::ClockBeforeEpoch,
        Self::LifetimeOver,
        Self::Forked,
        Self::Closed,
        Self::Internal,
        Self::LeaseUnavailable,
        Self::StoreUnavailable,
        Self::NodesExhausted,
        Self::ClockSkew,
        Self::LeaseLost,
        Self::StoreQuarantined,
        Self::StoreReplaced,
        Self::StoreNotInitialized,
        Self::SecretMismatch,
        Self::WeakStore,
        Self::DriverMissing,
    ];

    /// Returns the stable code of this kind.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::InvalidSecret => "INVALID_SECRET",
            Self::InvalidNode => "INVALID_NODE",
            Self::InvalidLease => "INVALID_LEASE",
            Self::InvalidId => "INVALID_ID",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::NodeInUse => "NODE_IN_USE",
            Self::LeaseNotStarted => "LEASE_NOT_STARTED",
            Self::LeaseExpired => "LEASE_EXPIRED",
            Self::SequenceExhausted => "SEQUENCE_EXHAUSTED",
            Self::ClockMovedBack => "CLOCK_MOVED_BACK",
            Self::ClockBeforeEpoch => "CLOCK_BEFORE_EPOCH",
            Self::LifetimeOver => "LIFETIME_OVER",
            Self::Forked => "FORKED",
            Self::Closed => "CLOSED",
            Self::Internal => "INTERNAL",
            Self::LeaseUnavailable => "LEASE_UNAVAILABLE",
            Self::StoreUnavailable => "STORE_UNAVAILABLE",
            Self::NodesExhausted => "NODES_EXHAUSTED",
            Self::ClockSkew => "CLOCK_SKEW",
            Self::LeaseLost => "LEASE_LOST",
            Self::StoreQuarantined => "STORE_QUARANTINED",
            Self::StoreReplaced => "STORE_REPLACED",
            Self::StoreNotInitialized => "STORE_NOT_INITIALIZED",
            Self::SecretMismatch => "SECRET_MISMATCH",
            Self::WeakStore => "WEAK_STORE",
            Self::DriverMissing => "DRIVER_MISSING",
        }
    }

    /// Returns whether this is a failure of a store of leases, or what it answered.
    #[must_use]
    pub const fn is_of_store(self) -> bool {
        matches!(
            self,
            Self::StoreUnavailable
                | Self::NodesExhausted
                | Self::ClockSkew
                | Self::LeaseLost
                | Self::StoreQuarantined
                | Self::StoreReplaced
                | Self::StoreNotInitialized
                | Self::SecretMismatch
                | Self::WeakStore
                | Self::DriverMissing
        )
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
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    retry_after: Option<Duration>,
    source: Option<Box<dyn error::Error + Send + Sync>>,
}

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
    pub fn from_clock(source: impl Into<Box<dyn error::Error + Send + Sync>>) -> Self {
        let mut error = Self::new(ErrorKind::InvalidArgument, "the injected clock failed");
        error.0.source = Some(source.into());
        error
    }

    /// Makes the error of a node id outside its range.
    #[cold]
    #[must_use]
    pub fn invalid_node(got: impl fmt::Display) -> Self {
        layout::RANDFLAKE.invalid_node(got)
    }

    /// Makes the error of a list of more than [`MAX_NODES`](layout::MAX_NODES) node ids.
    #[cold]
    #[must_use]
    pub fn too_many_nodes(got: usize) -> Self {
        layout::RANDFLAKE.too_many_nodes(got)
    }

    /// Makes the error of a number that is no signed 64-bit id.
    #[cold]
    #[must_use]
    pub fn invalid_id(got: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::InvalidId,
            format!("an id must be a signed 64-bit integer or its text, got {got}"),
        )
    }

    /// Makes the error of a number that is no unsigned 64-bit raw value.
    #[cold]
    #[must_use]
    pub fn invalid_raw(got: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::InvalidId,
            format!("a raw value must be an unsigned 64-bit integer, got {got}"),
        )
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
        self.0.source = Some(Box::new(cause));
        self
    }

    /// Returns the error that led to this one, if there is one of this type.
    #[must_use]
    pub fn cause(&self) -> Option<&Self> {
        self.0.source.as_ref()?.downcast_ref()
    }

    /// Returns the same error without what is behind it.
    #[must_use]
    pub fn without_cause(&self) -> Self {
        Self(Box::new(Inner {
            kind: self.0.kind,
            message: self.0.message.clone(),
            retry_after: self.0.retry_after,
            source: None,
        }))
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

    /// Returns what is behind this error, such as the failure of an injected clock, if it is a `T`.
    ///
    /// # Errors
    ///
    /// Gives the error itself back when there is no such failure.
    pub fn into_source<T: error::Error + 'static>(mut self) -> Result<T> {
        match self.0.source.take() {
            None => Err(self),
            Some(source) => source.downcast().map(|source| *source).map_err(|source| {
                self.0.source = Some(source);
                self
            }),
        }
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
        self.0.source.as_deref().map(|source| source as _)
    }
}
