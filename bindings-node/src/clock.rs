//! The machine's clock, as long as an environment lasts, and clocks written in JavaScript.

use std::{sync::Arc, time::Duration};

use randflake::{Clock, Error, Result, SystemClock, bindings::unix_nanos};

use crate::{
    closing::{Closing, LONGEST_SLICE, ended},
    ffi::Reference,
};

/// A clock written in JavaScript, as the function that `arguments.js` makes of it. Stays on the thread
/// that made it.
pub(crate) struct InjectedClock(pub(crate) Reference);

impl Clock for InjectedClock {
    fn now(&self) -> Result<i64> {
        self.0.call(None, |reading| match reading.to() {
            Some(unix_seconds) => unix_nanos(unix_seconds),
            None => Err(Error::invalid_argument(format!(
                "the clock must return unix seconds as a number, got {}",
                reading.description()
            ))),
        })
    }

    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        self.0.call(Some(duration.as_secs_f64()), |slept| {
            Ok(slept.to().filter(|&slept| slept).map(|_: bool| duration))
        })
    }
}

/// The machine's clock; its waits end with an environment.
pub(crate) struct EnvironmentClock(Arc<Closing>);

impl EnvironmentClock {
    pub(crate) fn new(closing: &Arc<Closing>) -> Self {
        Self(Arc::clone(closing))
    }
}

impl Clock for EnvironmentClock {
    #[inline]
    fn now(&self) -> Result<i64> {
        SystemClock.now()
    }

    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        let mut slept = Duration::ZERO;
        while slept < duration {
            if self.0.is_over() {
                return Err(ended());
            }
            let slice = LONGEST_SLICE.min(duration.saturating_sub(slept));
            slept += SystemClock.sleep(slice)?.unwrap_or(slice);
        }
        Ok(Some(slept))
    }

    #[inline]
    fn coarse_time(&self) -> Option<i64> {
        SystemClock.coarse_time()
    }

    #[inline]
    fn counter(&self) -> Option<u64> {
        SystemClock.counter()
    }

    fn is_system(&self) -> bool {
        true
    }
}
