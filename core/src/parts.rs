//! The parts of an encrypted id, which a holder of the secret can read.

use std::time::{Duration, SystemTime};

use crate::layout::{EPOCH, RANDFLAKE};

/// The parts of an id, which a holder of the secret can read: time, node id and sequence.
///
/// The timestamp may be up to the generator's `max_drift` ahead of the clock that made it.
///
/// ```
/// let inspector = randflake::Inspector::new(&"00000000000000000000000000000000".parse()?);
/// let parts = inspector.inspect(2111581968557607991.into());
/// assert_eq!((parts.timestamp, parts.node_id, parts.sequence), (1730000001, 0, 0));
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Parts {
    /// Unix seconds, 1 730 000 000 to 2 803 741 823.
    pub timestamp: i64,
    /// 0 to 131 071.
    pub node_id: u32,
    /// 0 to 131 071: the zero-based index of the id within its node and second.
    pub sequence: u32,
}

impl Parts {
    /// Unpacks a raw value of Randflake. Every 64-bit value has parts.
    #[allow(clippy::cast_possible_wrap, reason = "30 bits")]
    pub(crate) const fn of(raw: u64) -> Self {
        let (stamp, node_id, sequence) = RANDFLAKE.unpack_fields(raw);
        Self { timestamp: EPOCH + stamp as i64, node_id, sequence }
    }

    /// Returns the timestamp as the standard library's time.
    ///
    /// ```
    /// # use std::time::{Duration, UNIX_EPOCH};
    /// let parts = randflake::Parts { timestamp: 1730000001, node_id: 0, sequence: 0 };
    /// assert_eq!(parts.time(), UNIX_EPOCH + Duration::from_secs(1730000001));
    /// ```
    #[must_use]
    pub fn time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.timestamp.max(0).unsigned_abs())
    }
}
