//! For how long the numbers of a process count before the counter is asked whether they are its own
//! still.
//!
//! **Copies.** A process that is copied while it runs, with its memory, has the same blocks as its
//! original. Both know the token under which the counter has them, and the one that replaces it first
//! goes on with them. The other one must not go on for long: so numbers count for less than a minute
//! after the request with which the process named that token was first sent, which was before it was
//! copied. Either clock suffices to see that the minute is over.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use randflake::{Clock as _, SystemClock};

/// Whole seconds, of clocks that are a few milliseconds late: less than a minute in all.
const COUNTS: i64 = 58;

/// When the counter is asked again, at the earliest and the latest.
pub(super) const CONFIRM_AFTER: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(30)];

/// The whole seconds of two clocks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Moment {
    wall: i64,
    /// Since any origin; never steps.
    steady: i64,
}

/// Until when numbers count. Before the first block they do not.
#[derive(Debug)]
pub(super) struct Confirmed {
    wall: AtomicI64,
    steady: AtomicI64,
}

impl Moment {
    #[inline]
    pub(super) fn now() -> Self {
        Self { wall: wall(), steady: steady() }
    }
}

impl Confirmed {
    pub(super) fn new() -> Self {
        Self { wall: AtomicI64::new(i64::MIN), steady: AtomicI64::new(i64::MIN) }
    }

    /// Has numbers count for a minute from when the request was first sent.
    pub(super) fn by(&self, sent: Moment) {
        // Relaxed: a call that sees one of two minutes alone is at most as late as it may be.
        self.wall.store(sent.wall.saturating_add(COUNTS), Ordering::Relaxed);
        self.steady.store(sent.steady.saturating_add(COUNTS), Ordering::Relaxed);
    }

    /// Returns whether they count now.
    #[inline]
    pub(super) fn counts(&self) -> bool {
        self.counts_at(Moment::now())
    }

    #[inline]
    fn counts_at(&self, now: Moment) -> bool {
        now.wall <= self.wall.load(Ordering::Relaxed)
            && now.steady <= self.steady.load(Ordering::Relaxed)
    }

    /// As if the minute were over.
    #[cfg(test)]
    pub(super) fn lapse(&self) {
        self.steady.store(i64::MIN, Ordering::Relaxed);
    }
}

#[inline]
fn wall() -> i64 {
    // A clock that fails shows a time at which nothing counts.
    let precise = || SystemClock.now().map_or(i64::MAX, |now| now.div_euclid(1_000_000_000));
    SystemClock.coarse_time().unwrap_or_else(precise)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn steady() -> i64 {
    rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse).tv_sec
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
fn steady() -> i64 {
    randflake_leases::bindings::boot().as_secs().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_for_less_than_a_minute_by_either_clock() {
        let confirmed = Confirmed::new();
        let at = |wall, steady| Moment { wall, steady };
        assert!(!confirmed.counts_at(at(0, 0)), "there is no block yet");
        confirmed.by(at(1_763_640_000, 10));
        for (wall, steady, counts) in [
            (0, 0, true),
            // The second may have been over nearly a second ago, when it was read.
            (58, 58, true),
            (59, 0, false),
            (0, 59, false),
            // One clock was set back, or stood still.
            (-3600, 58, true),
            (-3600, 59, false),
            (3600, 0, false),
        ] {
            let now = at(1_763_640_000 + wall, 10 + steady);
            assert_eq!(confirmed.counts_at(now), counts, "{wall} s and {steady} s later");
        }
        confirmed.lapse();
        assert!(!confirmed.counts_at(at(0, 0)));
    }

    #[test]
    fn both_clocks_go_on() {
        let (first, second) = (Moment::now(), Moment::now());
        assert!(second.steady >= first.steady && second.steady - first.steady < 3600);
        assert!((1_700_000_000..1 << 40).contains(&first.wall), "unix seconds");
    }
}
