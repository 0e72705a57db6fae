use std::time::Duration;

use randflake::{Clock, Error, ErrorKind, Result, bindings::unix_nanos};

use crate::ffi::{Reference, Value};

/// A clock written in JavaScript. Stays on the thread that made it.
pub(crate) struct InjectedClock {
    /// The object, if it is not the function itself.
    object: Option<Reference>,
    now: Reference,
    sleep: Option<Reference>,
}

impl InjectedClock {
    /// Takes a function, or an object with a method `now` and perhaps a method `sleep`.
    pub(crate) fn new(clock: Value<'_>) -> Result<Self> {
        if clock.is_function() {
            return Ok(Self { object: None, now: Reference::new(clock)?, sleep: None });
        }
        if !clock.is_object() {
            return Err(invalid("the clock", clock));
        }
        let function = |name, value: Value<'_>| {
            if value.is_function() { Reference::new(value) } else { Err(invalid(name, value)) }
        };
        let Some(now) = clock.get(c"now")? else {
            return Err(invalid("the clock", clock));
        };
        Ok(Self {
            object: Some(Reference::new(clock)?),
            now: function("now of the clock", now)?,
            sleep: clock.get(c"sleep")?.map(|f| function("sleep of the clock", f)).transpose()?,
        })
    }
}

fn invalid(what: &str, got: Value<'_>) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "{what} must be a function; a clock is a function that returns unix seconds, or an \
             object with such a function now() and perhaps sleep(seconds), got {}",
            got.description()
        ),
    )
}

impl Clock for InjectedClock {
    fn now(&self) -> Result<i64> {
        self.now.call(self.object.as_ref(), None, |reading| match reading.as_number() {
            Some(unix_seconds) => unix_nanos(unix_seconds),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "the clock must return unix seconds as a number, got {}",
                    reading.description()
                ),
            )),
        })
    }

    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        let Some(sleep) = &self.sleep else {
            return Ok(None);
        };
        let seconds = duration.as_secs_f64();
        sleep.call(self.object.as_ref(), Some(seconds), |_| Ok(Some(duration)))
    }
}
