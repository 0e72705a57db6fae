//! The machine's clock with waits that Python's signals interrupt, and clocks written in Python.

use std::{cell::Cell, fmt::Display, thread, time::Duration};

use pyo3::{intern, prelude::*};
use randflake::{Error, ErrorKind, Result, SystemClock, bindings::unix_nanos};

use crate::{
    arguments::{number, type_of},
    errors::{raise, wrong_type},
};

/// How long Python's handlers of signals may have to wait.
const LONGEST_SLICE: Duration = Duration::from_millis(50);

pub(crate) enum Clock {
    System,
    Injected {
        /// Returns unix seconds.
        now: Py<PyAny>,
        /// Takes seconds.
        sleep: Option<Py<PyAny>>,
    },
}

impl<'a, 'py> FromPyObject<'a, 'py> for Clock {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        if object.is_none() {
            return Ok(Self::System);
        }
        let (now, sleep) = match object.getattr_opt(intern!(py, "now"))? {
            Some(now) => {
                let sleep = object.getattr_opt(intern!(py, "sleep"))?;
                (now, sleep.filter(|sleep| !sleep.is_none()))
            }
            None => (object.to_owned(), None),
        };
        if !now.is_callable() || sleep.as_ref().is_some_and(|sleep| !sleep.is_callable()) {
            return Err(wrong_type(&Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "clock must have a method now(), and may have sleep(seconds), or be a \
                     callable that returns unix seconds, got {}",
                    type_of(&object)
                ),
            )));
        }
        Ok(Self::Injected { now: now.unbind(), sleep: sleep.map(Bound::unbind) })
    }
}

thread_local! {
    static AT_ONCE: Cell<bool> = const { Cell::new(false) };
}

/// Calls the core. If that is to be done at once, no clock on this thread waits or calls Python
/// meanwhile: it fails, and nothing has happened.
///
/// A panic of the core must be caught in there: nothing here would take the flag back.
#[inline]
pub(crate) fn bounded<T>(at_once: bool, core: impl FnOnce() -> T) -> T {
    AT_ONCE.set(at_once);
    let done = core();
    // As it was: what is done at once calls nothing that could come here.
    AT_ONCE.set(false);
    done
}

#[cold]
fn not_at_once() -> Error {
    Error::new(ErrorKind::Internal, "a clock was to be waited for or to be asked in Python")
}

impl randflake::Clock for Clock {
    fn now(&self) -> Result<i64> {
        match self {
            Self::System => SystemClock.now(),
            Self::Injected { .. } if AT_ONCE.get() => Err(not_at_once()),
            Self::Injected { now, .. } => {
                Python::attach(|py| reading(now.bind(py))).map_err(Error::from_clock)
            }
        }
    }

    /// Releases the GIL while it waits. What a signal's handler raises ends the wait.
    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        if AT_ONCE.get() {
            return Err(not_at_once());
        }
        match self {
            Self::System => Python::try_attach(|py| sleep_in_slices(py, duration))
                .unwrap_or_else(|| never_again())
                .map(Some),
            Self::Injected { sleep: None, .. } => Ok(None),
            Self::Injected { sleep: Some(sleep), .. } => {
                Python::attach(|py| sleep.call1(py, (duration.as_secs_f64(),)))
                    .map_err(Error::from_clock)?;
                Ok(Some(duration))
            }
        }
    }

    #[inline]
    fn glance(&self) -> Option<i64> {
        matches!(self, Self::System).then(|| SystemClock.glance()).flatten()
    }

    #[inline]
    fn counter(&self) -> Option<u64> {
        matches!(self, Self::System).then(|| SystemClock.counter()).flatten()
    }

    #[inline]
    fn is_system(&self) -> bool {
        matches!(self, Self::System)
    }
}

/// Stays, as Python does with every thread that comes back when the interpreter has ended.
#[cold]
pub(crate) fn never_again() -> ! {
    loop {
        thread::park();
    }
}

fn reading(now: &Bound<'_, PyAny>) -> PyResult<i64> {
    let error = |got: &dyn Display| {
        Error::new(
            ErrorKind::InvalidArgument,
            format!("the clock must return unix seconds as an int or a float, got {got}"),
        )
    };
    unix_nanos(number(&now.call0()?, error)?).map_err(raise)
}

fn sleep_in_slices(py: Python<'_>, duration: Duration) -> Result<Duration> {
    let mut slept = Duration::ZERO;
    while slept < duration {
        let slice = duration.saturating_sub(slept).min(LONGEST_SLICE);
        let took = py.detach(|| randflake::Clock::sleep(&SystemClock, slice))?;
        slept += took.unwrap_or(slice);
        py.check_signals().map_err(Error::from_clock)?;
    }
    Ok(slept)
}
