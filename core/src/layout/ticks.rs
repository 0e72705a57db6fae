//! Converts ticks, unix times and leases into each other.
//!
//! Leases are in whole unix seconds. No generator uses a tick that the border of a lease divides.

use std::{ops::Range, time::Duration};

use super::{Layout, lifetime::lifetime_over};
use crate::{
    Error, ErrorKind, Lease, Result,
    clock::{self, NANOS_PER_MS},
};

impl Layout {
    /// The number of ticks in the lifetime, the bound of every stamp.
    #[inline]
    pub(crate) const fn lifetime(&self) -> u64 {
        1 << self.time.bits
    }

    /// Returns the tick of a clock reading and the nanoseconds since its beginning; `None` before
    /// the epoch.
    #[inline]
    pub(crate) fn tick_at(&self, unix_nanos: i64, guess: u64) -> Option<(u64, u64)> {
        let epoch_nanos = self.epoch_ms * NANOS_PER_MS.cast_signed();
        let tick_nanos = self.tick_nanos();
        let since = u64::try_from(unix_nanos.checked_sub(epoch_nanos)?).ok()?;
        // Usually the guess is right, and the division is slow.
        if let Some(begin) = guess.checked_mul(tick_nanos)
            && since.wrapping_sub(begin) < tick_nanos
        {
            return Some((guess, since - begin));
        }
        Some((since / tick_nanos, since % tick_nanos))
    }

    /// Returns the length of a tick, in nanoseconds.
    pub(crate) fn tick_nanos(&self) -> u64 {
        u64::from(self.tick_ms) * NANOS_PER_MS
    }

    /// Returns how long this many ticks last.
    pub(crate) fn ticks(&self, count: u64) -> Duration {
        Duration::from_millis(count.saturating_mul(self.tick_ms.into()))
    }

    /// Returns the whole ticks in this many seconds.
    pub(crate) fn ticks_in(&self, seconds: u32) -> u64 {
        u64::from(seconds) * 1000 / u64::from(self.tick_ms)
    }

    /// Returns the unix millisecond at which a tick of the lifetime begins.
    #[allow(clippy::cast_possible_wrap, reason = "`checked` keeps the lifetime below 2^63")]
    pub(crate) const fn unix_ms_of(&self, stamp: u64) -> i64 {
        self.epoch_ms + (stamp * self.tick_ms as u64) as i64
    }

    /// Returns the first unix second that does not begin before a tick.
    pub(crate) const fn second_from(&self, stamp: u64) -> i64 {
        -(-self.unix_ms_of(stamp)).div_euclid(1000)
    }

    /// Returns the unix second in which a tick begins.
    pub(crate) const fn second_of(&self, stamp: u64) -> i64 {
        self.unix_ms_of(stamp).div_euclid(1000)
    }

    /// Returns the ticks that are entirely within the seconds of a lease. A tick that its start or
    /// end divides is never used.
    pub(crate) fn window_of(&self, lease: Lease) -> Result<Range<u64>> {
        let whole = self.whole_ticks_of(lease);
        match (u64::try_from(whole.start), u64::try_from(whole.end)) {
            (Ok(start), Ok(end)) if start < end && end <= self.lifetime() => Ok(start..end),
            _ => Err(self.no_window(lease)),
        }
    }

    /// Returns the same, without what is outside the lifetime: a store that grants a lease does not
    /// know the lifetime.
    pub(crate) fn window_within_lifetime(&self, lease: Lease) -> Result<Range<u64>> {
        let whole = self.whole_ticks_of(lease);
        let [start, end] = [whole.start, whole.end].map(|tick| tick.max(0).unsigned_abs());
        if start >= self.lifetime() {
            return Err(lifetime_over(self));
        }
        let window = start..end.min(self.lifetime());
        if window.is_empty() { Err(self.no_window(lease)) } else { Ok(window) }
    }

    /// Returns the first tick that does not begin before a lease and the first one that ends after
    /// it, whether or not they are in the lifetime.
    fn whole_ticks_of(&self, lease: Lease) -> Range<i64> {
        let since_epoch = |second: i64| second * 1000 - self.epoch_ms;
        let tick_ms = i64::from(self.tick_ms);
        let start = -(-since_epoch(lease.start())).div_euclid(tick_ms);
        start..since_epoch(lease.end_exclusive()).div_euclid(tick_ms)
    }

    #[cold]
    fn no_window(&self, lease: Lease) -> Error {
        Error::new(
            ErrorKind::InvalidLease,
            format!(
                "a lease of node ids of the layout {} must hold a whole tick and lie between \
                 {} and {}, got {}..{}",
                self.name,
                clock::utc_second(self.second_from(0)),
                clock::utc_second(self.second_of(self.lifetime())),
                lease.start(),
                lease.end_exclusive()
            ),
        )
    }

    /// Returns the tick at a unix millisecond.
    pub(super) fn stamp_of(&self, unix_ms: i64) -> Result<u64> {
        let since = unix_ms.checked_sub(self.epoch_ms).and_then(|since| u64::try_from(since).ok());
        let stamp = since.map(|since| since / u64::from(self.tick_ms));
        stamp.filter(|&stamp| stamp < self.lifetime()).ok_or_else(|| {
            Error::invalid_argument(format!(
                "times of the layout {} are between {} ({}) and {} ({}) unix milliseconds, \
                     got {unix_ms}",
                self.name,
                self.epoch_ms,
                clock::utc(self.epoch_ms),
                self.ends_at() - 1,
                clock::utc(self.ends_at() - 1)
            ))
        })
    }
}
