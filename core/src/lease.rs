//! A lease as the generator sees it: the seconds, without the store that granted them.

use crate::{Error, ErrorKind, clock::utc_second, layout};

/// The seconds that a generator may stamp: `start` up to, but not including, `end_exclusive`.
///
/// Use a lease in one process only, and not again after a restart or a fork. A coordinator must
/// never grant the same second of a node id twice.
///
/// ```
/// use randflake::Lease;
///
/// let lease = Lease::new(1763640000, 1763640300)?;
/// assert!(Lease::new(1763640300, 1763640000).is_err());
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Lease {
    start: i64,
    end_exclusive: i64,
}

impl Lease {
    /// Largest number of seconds that a generator with a lease may stamp ahead of its clock: an hour.
    /// An id further ahead of a correct clock was made with another secret, or with a wrong clock.
    pub const MAX_DRIFT: u32 = 3_600;

    /// Makes a lease over the unix seconds `start..end_exclusive`.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](ErrorKind::InvalidLease): `start` not before `end_exclusive`, `start`
    /// before [`EPOCH`](layout::EPOCH), or `end_exclusive` after
    /// [`LIFETIME_END`](layout::LIFETIME_END).
    pub fn new(start: i64, end_exclusive: i64) -> Result<Self, Error> {
        let (first, last) = (layout::EPOCH, layout::LIFETIME_END);
        if start < first || end_exclusive > last {
            return Err(Error::new(
                ErrorKind::InvalidLease,
                format!(
                    "a lease lies between {} and {}, got {start}..{end_exclusive}",
                    utc_second(first),
                    utc_second(last)
                ),
            ));
        }
        if start >= end_exclusive {
            return Err(Error::new(
                ErrorKind::InvalidLease,
                format!("a lease must start before it ends, got {start}..{end_exclusive}"),
            ));
        }
        Ok(Self { start, end_exclusive })
    }

    /// Returns the first unix second of the lease.
    #[must_use]
    pub fn start(&self) -> i64 {
        self.start
    }

    /// Returns the first unix second after the lease.
    #[must_use]
    pub fn end_exclusive(&self) -> i64 {
        self.end_exclusive
    }
}
