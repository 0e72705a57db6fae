//! The clocks of this machine.

use std::time::Duration;

use randflake::{Clock as _, Result, SystemClock};

use crate::keeper::Reading;

/// Reads both clocks of a keeper.
pub(crate) fn reading() -> Result<Reading> {
    Ok(Reading { wall: SystemClock.now()?, boot: boot() })
}

/// Returns the time since boot, which includes the time that the machine was asleep.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Elsewhere this is the standard library's clock. On some systems it stops while the machine
/// sleeps; the keeper then sees the wall clock step.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn boot() -> Duration {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed()
}
