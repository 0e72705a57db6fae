//! The parts of the world that a simulated process sees: randomness, clocks and a machine.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use randflake::{Clock, Result};

use crate::keeper::Reading;

pub(super) use super::seeds::{Random, SECOND, START};

/// Nanoseconds in a millisecond.
pub(super) const MS: i64 = 1_000_000;

/// How far the coarse clock is behind, in nanoseconds.
const COARSE_LATE: i64 = 4 * MS;

thread_local! {
    /// What another thread of the process does while a call reads the clock.
    static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Makes something happen during a call, when it next reads the clock.
pub(super) fn meanwhile(happens: impl FnOnce() + 'static) {
    MEANWHILE.with_borrow_mut(|meanwhile| *meanwhile = Some(Box::new(happens)));
}

/// Cancels what has not happened yet, and returns whether there was anything.
pub(super) fn never_mind() -> bool {
    MEANWHILE.take().is_some()
}

/// What a clock shows, until the world sets it again.
#[derive(Clone, Debug, Default)]
pub(super) struct SimulatedClock(Arc<ClockState>);

#[derive(Debug, Default)]
struct ClockState {
    wall: AtomicI64,
    /// How far the clock advances, or steps back, after the next reading.
    step: AtomicI64,
    /// The earliest and the latest reading of a call.
    low: AtomicI64,
    high: AtomicI64,
}

impl SimulatedClock {
    pub(super) fn set(&self, wall: i64) {
        self.0.wall.store(wall, Relaxed);
    }

    /// Begins a call, during which the clock advances or steps back.
    pub(super) fn begin(&self, wall: i64, step: i64) {
        self.set(wall);
        self.0.step.store(step, Relaxed);
        self.0.low.store(i64::MAX, Relaxed);
        self.0.high.store(i64::MIN, Relaxed);
    }

    /// Returns the earliest and the latest reading of the call.
    pub(super) fn readings(&self) -> (i64, i64) {
        (self.0.low.load(Relaxed), self.0.high.load(Relaxed))
    }

    fn read(&self) -> i64 {
        let wall = self.0.wall.load(Relaxed);
        self.0.low.fetch_min(wall, Relaxed);
        self.0.high.fetch_max(wall, Relaxed);
        wall
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Result<i64> {
        let wall = self.read();
        self.set(wall + self.0.step.swap(0, Relaxed));
        if let Some(happens) = MEANWHILE.take() {
            happens();
        }
        Ok(wall)
    }

    fn coarse_time(&self) -> Option<i64> {
        let wall = self.0.wall.load(Relaxed) - COARSE_LATE;
        self.0.low.fetch_min(wall, Relaxed);
        self.0.high.fetch_max(wall, Relaxed);
        Some(wall.div_euclid(SECOND))
    }
}

/// The clocks of a machine. All times are nanoseconds since the beginning of the seed, true ones
/// unless said otherwise.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// What the wall clock showed at `since`.
    shown: i64,
    since: i64,
    /// How many millionths too fast the wall clock runs.
    ppm: i64,
    /// When the boot clock showed zero.
    booted: i64,
    /// When its clock was last wrong in a way that is not allowed where clocks matter.
    pub(super) wrong_until: i64,
    pub(super) asleep_until: i64,
    stands_still: bool,
}

impl Machine {
    pub(super) fn new(offset: i64, booted: i64) -> Self {
        Self {
            shown: offset,
            since: 0,
            ppm: 0,
            booted,
            wrong_until: i64::MIN,
            asleep_until: 0,
            stands_still: false,
        }
    }

    /// Returns how much the wall clock differs from the true time.
    pub(super) fn offset(&self, now: i64) -> i64 {
        self.shown + (now - self.since) / 1_000_000 * self.ppm - self.since
    }

    /// Returns unix nanoseconds.
    pub(super) fn wall(&self, now: i64) -> i64 {
        START * SECOND + now + self.offset(now)
    }

    pub(super) fn second(&self, now: i64) -> i64 {
        self.wall(now).div_euclid(SECOND)
    }

    pub(super) fn reading(&self, now: i64) -> Reading {
        let boot = Duration::from_nanos((now - self.booted).unsigned_abs());
        Reading { wall: self.wall(now), boot }
    }

    /// Sets the wall clock off by this much.
    pub(super) fn step_to(&mut self, now: i64, offset: i64, ppm: i64) {
        (self.shown, self.since, self.ppm) = (now + offset, now, ppm);
    }

    pub(super) fn boot(&mut self, now: i64) {
        (self.booted, self.asleep_until) = (now, now);
    }

    /// Sleeps for this long; on some machines the boot clock stops meanwhile.
    pub(super) fn sleep(&mut self, now: i64, long: i64, stands_still: bool) {
        self.wake(now);
        self.asleep_until = now + long;
        self.stands_still = stands_still;
        if stands_still {
            self.booted += long;
        }
    }

    /// Wakes up early, if it is asleep.
    pub(super) fn wake(&mut self, now: i64) {
        if self.asleep_until > now && self.stands_still {
            self.booted -= self.asleep_until - now;
        }
        self.asleep_until = now;
    }
}
