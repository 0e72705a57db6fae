//! The only file of the core that reads the time.
#![allow(
    unsafe_code,
    reason = "time() is 2 ns, the counter 12, clock_gettime() 29, the safe clock 31"
)]
#![allow(clippy::disallowed_methods, reason = "this is the home of the clock")]

use std::time::Duration;

use crate::{Error, ErrorKind, Result};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
pub(crate) const NANOS_PER_MS: u64 = 1_000_000;

/// Unix seconds from here on (the year 5138) are taken for milliseconds.
const FIRST_IMPLAUSIBLE_SECOND: f64 = 1e11;

/// The source of a generator's time.
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
    /// backwards. It must return on the thread that called it; it may itself make ids.
    ///
    /// # Errors
    ///
    /// [`Error::from_clock`] if no time is available; the call that reads the clock then fails.
    fn now(&self) -> Result<i64>;

    /// Returns the current time in whole unix seconds, rounded down.
    ///
    /// # Errors
    ///
    /// As [`now`](Self::now).
    fn unix_seconds(&self) -> Result<i64> {
        Ok(self.now()?.div_euclid(NANOS_PER_SECOND))
    }

    /// Waits for about this long and returns how long that took, or returns `None` if this clock
    /// cannot wait.
    ///
    /// # Errors
    ///
    /// [`Error::from_clock`] if the wait was interrupted; the call that waits fails.
    fn sleep(&self, _duration: Duration) -> Result<Option<Duration>> {
        Ok(None)
    }

    /// Returns the current unix second by a cheaper, coarser clock. It may be a few milliseconds late,
    /// never early. `None` if there is no cheaper clock.
    fn coarse_time(&self) -> Option<i64> {
        None
    }

    /// Returns a counter that rises at a constant but unknown speed. The generator uses it to find the
    /// end of ticks shorter than a second without reading the clock. `None` if no counter is cheaper
    /// than the clock.
    fn counter(&self) -> Option<u64> {
        None
    }

    /// Returns whether this is the machine's clock. A generator on any other clock shares no record of
    /// issued ids with other generators.
    fn is_system(&self) -> bool {
        false
    }
}

impl<F: Fn() -> i64> Clock for F {
    fn now(&self) -> Result<i64> {
        Ok(self())
    }
}

/// The machine's clock. On `wasm32-unknown-unknown` there is none that Rust can read: a generator
/// without a clock of its own is refused with [`InvalidArgument`](ErrorKind::InvalidArgument).
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

// There the standard library's clock panics, and so does its sleep.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
impl Clock for SystemClock {
    fn now(&self) -> Result<i64> {
        Err(Error::invalid_argument(
            "this platform has no clock: give the generator one, with Builder::clock",
        ))
    }

    fn is_system(&self) -> bool {
        true
    }
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
impl Clock for SystemClock {
    // Reads what the safe clock reads, without the two checks and the division that its types cost.
    #[cfg(all(unix, target_pointer_width = "64"))]
    #[inline]
    fn now(&self) -> Result<i64> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to our own timespec, which outlives the call. With a clock that
        // every system has and a valid pointer, it cannot fail.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
        Ok(time.tv_sec.saturating_mul(NANOS_PER_SECOND).saturating_add(time.tv_nsec))
    }

    #[cfg(not(all(unix, target_pointer_width = "64")))]
    fn now(&self) -> Result<i64> {
        use std::time::SystemTime;

        let nanos = match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            Err(error) => i64::try_from(error.duration().as_nanos()).map_or(i64::MIN, |ago| -ago),
        };
        Ok(nanos)
    }

    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        let before = std::time::Instant::now();
        std::thread::sleep(duration);
        Ok(Some(before.elapsed()))
    }

    // Elsewhere time() is no cheaper, or ends in 2038. Miri has none.
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64", not(miri)))]
    #[inline]
    fn coarse_time(&self) -> Option<i64> {
        // SAFETY: time() accepts a null pointer and then only returns the time.
        Some(unsafe { libc::time(std::ptr::null_mut()) })
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline]
    fn counter(&self) -> Option<u64> {
        // SAFETY: every x86-64 processor has the instruction. A process for which it is forbidden
        // (`PR_SET_TSC`) is ended by a signal, as with every other reading of the counter.
        is_steady().then(|| unsafe { std::arch::x86_64::_rdtsc() })
    }

    fn is_system(&self) -> bool {
        true
    }
}

/// Returns whether the processor declares its time-stamp counter invariant: bit 8 of EDX in leaf
/// `8000_0007h` of CPUID, "Invariant TSC" in Intel's manual.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn is_steady() -> bool {
    use std::{
        arch::x86_64::__cpuid,
        sync::atomic::{AtomicU8, Ordering},
    };

    /// 0: not known yet. CPUID takes a microsecond, or twenty in a virtual machine.
    static STEADY: AtomicU8 = AtomicU8::new(0);
    const LEAF: u32 = 0x8000_0007;

    match STEADY.load(Ordering::Relaxed) {
        0 => {
            #[allow(unused_unsafe, reason = "safe since Rust 1.94")]
            // SAFETY: every x86-64 processor has the instruction.
            let cpuid = |leaf| unsafe { __cpuid(leaf) };
            let steady = cpuid(0x8000_0000).eax >= LEAF && cpuid(LEAF).edx >> 8 & 1 == 1;
            STEADY.store(1 + u8::from(steady), Ordering::Relaxed);
            steady
        }
        known => known == 2,
    }
}

/// Turns unix seconds, as an injected clock gives them, into the nanoseconds of [`Clock::now`].
///
/// An `f64` has 53 bits: enough for unix seconds of this century to half a microsecond. The result is
/// rounded down. Ticks of a millisecond stay distinct, but `unix_ms / 1000` may come out slightly
/// smaller and fall into the tick before; `(unix_ms + 0.5) / 1000` always stays in its tick.
///
/// # Errors
///
/// [`InvalidArgument`](ErrorKind::InvalidArgument): not a finite number, or so large that it must
/// be milliseconds.
///
/// ```
/// # use randflake::bindings::unix_nanos;
/// assert_eq!(unix_nanos(1763640000.25)?, 1_763_640_000_250_000_000);
/// assert!(unix_nanos(1763640000.123)? < 1_763_640_000_123_000_000);
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
    // A year long after every lifetime need not be exact.
    Ok((second as i64).saturating_mul(NANOS_PER_SECOND).saturating_add(nanos))
}

/// Turns unix nanoseconds into unix milliseconds.
pub(crate) fn to_ms(unix_nanos: i64) -> i64 {
    unix_nanos.div_euclid(NANOS_PER_MS.cast_signed())
}

/// Turns unix milliseconds into seconds, with a fraction if they have one. For messages.
#[allow(clippy::cast_precision_loss, reason = "for a message")]
pub(crate) fn seconds(unix_ms: i64) -> f64 {
    unix_ms as f64 / 1000.0
}

/// Writes a time as `2026-11-21T13:44:50Z`, with milliseconds if there are any. For messages.
#[must_use]
pub fn utc(unix_ms: i64) -> String {
    let (days, ms) = (unix_ms.div_euclid(86_400_000), unix_ms.rem_euclid(86_400_000));
    // Years begin in March here, so that the leap day is the last day of a year.
    let days = days + 719_468; // from 0000-03-01 to 1970-01-01
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = 400 * era + year + next_year;
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    let fraction = match ms % 1000 {
        0 => String::new(),
        ms => format!(".{ms:03}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Writes a unix second as `2026-11-21T13:44:50Z (unix second 1795614887)`. For messages.
#[must_use]
pub fn utc_second(unix_second: i64) -> String {
    format!("{} (unix second {unix_second})", utc(unix_second.saturating_mul(1000)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        #[allow(clippy::cast_precision_loss, reason = "that is the question")]
        fn the_middle_of_a_millisecond_stays_in_that_millisecond(ms in 0..i64::MAX / 1_000_000) {
            let nanos = |ms: f64| unix_nanos(ms / 1000.0).expect("plausible");
            prop_assert_eq!(to_ms(nanos(ms as f64 + 0.5)), ms);
            // Its start may fall into the tick before, but never into a later one (I4).
            prop_assert!([ms - 1, ms].contains(&to_ms(nanos(ms as f64))));
        }
    }

    #[test]
    fn the_start_of_a_millisecond_may_fall_into_the_one_before() {
        assert_eq!(to_ms(unix_nanos(1_763_640_000.123).expect("finite")), 1_763_640_000_122);
        assert_eq!(to_ms(unix_nanos(1_763_640_000.125).expect("finite")), 1_763_640_000_125);
    }

    #[test]
    fn fractions_never_reach_the_next_second() {
        for (next, second) in [(1.0_f64, 0), (1_730_000_001.0, 1_730_000_000)] {
            let last = f64::from_bits(next.to_bits() - 1);
            let nanos = unix_nanos(last).expect("finite");
            assert_eq!(nanos.div_euclid(NANOS_PER_SECOND), second, "{last}");
        }
    }

    #[test]
    fn times_before_1970_are_negative() {
        assert_eq!(unix_nanos(-0.25), Ok(-250_000_000));
        assert_eq!(to_ms(-250_000_001), -251);
    }

    #[test]
    fn times_are_written_as_calendar_dates() {
        for (unix_ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (951_868_800_000, "2000-03-01T00:00:00Z"),
            (1_288_834_974_657, "2010-11-04T01:42:54.657Z"),
            (1_732_109_056_000, "2024-11-20T13:24:16Z"),
            (2_803_741_824_000, "2058-11-05T17:10:24Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
            (13_574_563_200_000, "2400-02-29T00:00:00Z"),
        ] {
            assert_eq!(utc(unix_ms), text);
        }
    }

    #[cfg(not(miri))]
    #[test]
    fn the_machine_s_clock_is_the_safe_clock() {
        use std::time::SystemTime;

        let safe = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        let (before, now, after) = (safe(), SystemClock.now().expect("a time"), safe());
        let now = Duration::from_nanos(now.unsigned_abs());
        assert!(before <= now && now <= after, "{before:?} {now:?} {after:?}");
    }

    #[test]
    fn implausible_times_are_refused() {
        for nonsense in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e11, -1e300] {
            assert!(unix_nanos(nonsense).is_err(), "{nonsense}");
        }
    }
}
