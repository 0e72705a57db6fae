//! The only file that reads the time.
#![allow(unsafe_code, reason = "time() is 2 ns, the safe clock 25 ns")]
#![allow(clippy::disallowed_methods, reason = "this is the home of the clock")]

use std::time::{Duration, Instant, SystemTime};

use crate::{Error, ErrorKind, Result};

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Unix seconds from here on (the year 5138) are milliseconds taken for seconds.
const FIRST_IMPLAUSIBLE_SECOND: f64 = 1e11;

/// Where a generator gets its time from.
///
/// Any closure that returns unix nanoseconds is a clock for tests; it cannot sleep.
///
/// ```
/// use randflake::{Lease, Randflake, Secret};
///
/// let flake = Randflake::builder(&Secret::random())
///     .node_id(1)
///     .clock(|| 1_763_640_000_000_000_000)
///     .build()?;
/// assert_eq!(flake.inspect(flake.generate()?).timestamp, 1_763_640_000);
/// # Ok::<(), randflake::Error>(())
/// ```
pub trait Clock {
    /// Returns the current time in nanoseconds since 1970-01-01T00:00:00Z. It may repeat and go
    /// backwards.
    ///
    /// # Errors
    ///
    /// [`Error::from_clock`] if there is no time to be had; the call that asked for it fails.
    fn now(&self) -> Result<i64>;

    /// Waits for about this long and returns how long it took, or returns `None` if this clock
    /// cannot wait.
    ///
    /// # Errors
    ///
    /// [`Error::from_clock`] if the wait was interrupted; the call that waits fails.
    fn sleep(&self, _duration: Duration) -> Result<Option<Duration>> {
        Ok(None)
    }

    /// Returns the current second at a glance: one that the clock has reached, and at most a few
    /// milliseconds after it has passed. `None` where a glance is no cheaper than a look.
    fn glance(&self) -> Option<i64> {
        None
    }

    /// Returns true if this is the machine's clock. Generators on any other clock keep a record
    /// of their own of the ids they issued.
    fn is_system(&self) -> bool {
        false
    }
}

impl<F: Fn() -> i64> Clock for F {
    fn now(&self) -> Result<i64> {
        Ok(self())
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Result<i64> {
        let nanos = match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            Err(error) => i64::try_from(error.duration().as_nanos()).map_or(i64::MIN, |ago| -ago),
        };
        Ok(nanos)
    }

    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        let before = Instant::now();
        std::thread::sleep(duration);
        Ok(Some(before.elapsed()))
    }

    // Elsewhere time() is no cheaper, or ends in 2038.
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    #[inline]
    fn glance(&self) -> Option<i64> {
        // SAFETY: time() accepts a null pointer and then only returns the time.
        Some(unsafe { libc::time(std::ptr::null_mut()) })
    }

    fn is_system(&self) -> bool {
        true
    }
}

/// Turns unix seconds, as an injected clock gives them, into the nanoseconds of [`Clock::now`].
///
/// # Errors
///
/// [`InvalidArgument`](ErrorKind::InvalidArgument): not a finite number, or so large that it must
/// be milliseconds.
///
/// ```
/// # use randflake::unix_nanos;
/// assert_eq!(unix_nanos(1763640000.25)?, 1_763_640_000_250_000_000);
/// assert!(unix_nanos(1763640000250.0).unwrap_err().to_string().contains("milliseconds"));
/// # Ok::<(), randflake::Error>(())
/// ```
#[allow(clippy::cast_possible_truncation, reason = "in range by the checks above it")]
pub fn unix_nanos(unix_seconds: f64) -> Result<i64> {
    if !unix_seconds.is_finite() {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("the clock must return unix seconds as a finite number, got {unix_seconds}"),
        ));
    }
    if unix_seconds.abs() >= FIRST_IMPLAUSIBLE_SECOND {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "the clock must return unix seconds, got {unix_seconds}: milliseconds? \
                 divide by 1000"
            ),
        ));
    }
    let second = unix_seconds.floor();
    let nanos = ((unix_seconds - second) * 1e9) as i64;
    // A year far beyond every lifetime need not be exact.
    Ok((second as i64).saturating_mul(NANOS_PER_SECOND).saturating_add(nanos))
}

/// Splits a reading into its unix second and the nanoseconds past it.
pub(crate) fn split(unix_nanos: i64) -> (i64, i64) {
    (unix_nanos.div_euclid(NANOS_PER_SECOND), unix_nanos.rem_euclid(NANOS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_never_reach_the_next_second() {
        for (next, second) in [(1.0_f64, 0), (1_730_000_001.0, 1_730_000_000)] {
            let last = f64::from_bits(next.to_bits() - 1);
            assert_eq!(split(unix_nanos(last).expect("finite")).0, second, "{last}");
        }
    }

    #[test]
    fn times_before_1970_are_negative() {
        assert_eq!(unix_nanos(-0.25), Ok(-250_000_000));
        assert_eq!(split(-250_000_000), (-1, 750_000_000));
    }

    #[test]
    fn nonsense_is_refused() {
        for nonsense in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e11, -1e300] {
            assert!(unix_nanos(nonsense).is_err(), "{nonsense}");
        }
    }
}
