use std::time::Duration;

use randflake::{Clock, Error, Result, bindings::unix_nanos};

use crate::ffi::Reference;

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
