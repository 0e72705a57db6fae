use std::{borrow::Cow, error, fmt, time::Duration};

use randflake::ErrorKind;

/// What kind of failure an [`Error`] is; the same names in every language.
///
/// ```
/// use randflake_leases::StoreErrorKind;
/// assert_eq!(StoreErrorKind::NodesExhausted.code(), "NODES_EXHAUSTED");
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum StoreErrorKind {
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
    /// A failure that generators have, too.
    Core(ErrorKind),
}

impl StoreErrorKind {
    /// Returns the stable code of this kind.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
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
            Self::Core(kind) => kind.code(),
        }
    }
}

/// Why a store could not do something: a [kind](StoreErrorKind), a message, and how long to wait
/// if waiting helps. No message holds a secret or a password.
///
/// ```
/// use randflake_leases::{Error, StoreErrorKind};
/// let error = Error::new(StoreErrorKind::StoreUnavailable, "the disk is full");
/// assert_eq!((error.code(), error.to_string().as_str()), ("STORE_UNAVAILABLE", "the disk is full"));
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: StoreErrorKind,
    message: Cow<'static, str>,
    retry_after: Option<Duration>,
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error. For stores.
    #[cold]
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), retry_after: None }))
    }

    /// Adds how long after the failing call the same call can succeed.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Duration) -> Self {
        self.0.retry_after = Some(retry_after);
        self
    }

    pub(crate) fn invalid_argument(message: String) -> Self {
        Self::new(StoreErrorKind::Core(ErrorKind::InvalidArgument), message)
    }

    /// Returns what kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.0.kind
    }

    /// Returns the stable code of the kind.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// Returns how long after the failing call the same call can succeed; `None` where waiting
    /// does not help by itself.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }
}

impl From<randflake::Error> for Error {
    fn from(error: randflake::Error) -> Self {
        let made = Self::new(StoreErrorKind::Core(error.kind()), error.to_string());
        match error.retry_after() {
            Some(retry_after) => made.with_retry_after(retry_after),
            None => made,
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

impl error::Error for Error {}
