//! The clocks of this machine.

use std::time::Duration;

use randflake::{Clock as _, Result, SystemClock};

/// A reading of both clocks, one after the other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reading {
    /// The clock that ids are stamped with: unix nanoseconds.
    pub wall: i64,
    /// A clock that never steps and includes the time that the machine was asleep; its origin is
    /// arbitrary.
    pub boot: Duration,
}

impl Reading {
    /// Returns the unix second.
    #[must_use]
    pub fn second(self) -> i64 {
        self.wall.div_euclid(1_000_000_000)
    }
}

/// Reads both clocks of a keeper.
pub(crate) fn reading() -> Result<Reading> {
    Ok(Reading { wall: SystemClock.now()?, boot: boot() })
}

/// Runs something on a machine with this uptime.
#[cfg(test)]
pub(crate) fn at_boot<T>(time: Duration, run: impl FnOnce() -> T) -> T {
    SIMULATED.set(Some(time));
    let outcome = run();
    SIMULATED.set(None);
    outcome
}

#[cfg(test)]
thread_local! {
    static SIMULATED: std::cell::Cell<Option<Duration>> = const { std::cell::Cell::new(None) };
}

/// Returns the time since boot, which includes the time that the machine was asleep.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[must_use]
pub fn boot() -> Duration {
    #[cfg(test)]
    if let Some(time) = SIMULATED.get() {
        return time;
    }
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Elsewhere this is the standard library's clock. On some systems it stops while the machine
/// sleeps; the keeper then sees the wall clock step.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[must_use]
pub fn boot() -> Duration {
    // No lock here: a fork could leave it taken.
    static FIRST: once_cell::race::OnceBox<std::time::Instant> = once_cell::race::OnceBox::new();
    FIRST.get_or_init(|| Box::new(std::time::Instant::now())).elapsed()
}
