//! The machine's clock with waits that Python's signals interrupt, and clocks written in Python.

use std::{
    mem,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pyo3::prelude::*;
use randflake::{Error, ErrorKind, Result, SystemClock, bindings::unix_nanos};

use crate::{
    convert::{must, number},
    errors::raise,
    interpreter::never_return,
};

/// The longest time that a signal waits for its Python handler.
pub(crate) const LONGEST_SLICE: Duration = Duration::from_millis(50);

pub(crate) enum Clock {
    System,
    Injected {
        /// Returns unix seconds.
        now: Py<PyAny>,
        /// Takes seconds.
        sleep: Option<Py<PyAny>>,
    },
    Changeable(Py<ChangeableClock>),
}

/// The machine's clock until another one is set, for the names of 2.1. A generator on it remembers
/// what it has issued. It never sleeps.
#[pyclass(frozen, name = "_ChangeableClock", module = "randflake._randflake")]
pub(crate) struct ChangeableClock {
    is_system: AtomicBool,
    /// Returns unix seconds.
    now: Mutex<Option<Py<PyAny>>>,
}

#[pymethods]
impl ChangeableClock {
    #[new]
    fn new(now: Option<Py<PyAny>>) -> Self {
        Self { is_system: AtomicBool::new(now.is_none()), now: Mutex::new(now) }
    }

    fn set(&self, now: Option<Py<PyAny>>) {
        // Dropped after the lock: a finalizer may call this.
        let _before = {
            let mut current = self.now.lock().unwrap_or_else(PoisonError::into_inner);
            self.is_system.store(now.is_none(), Ordering::Relaxed);
            mem::replace(&mut *current, now)
        };
    }
}

impl ChangeableClock {
    fn injected(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().map(|now| now.clone_ref(py))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Clock {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        if object.is_none() {
            return Ok(Self::System);
        }
        if let Ok(clock) = object.cast::<ChangeableClock>() {
            return Ok(Self::Changeable(clock.to_owned().unbind()));
        }
        let clock_of = once!().import(py, "randflake._times", "clock_of")?;
        let (now, sleep) = clock_of.call1((object,))?.extract()?;
        Ok(Self::Injected { now, sleep })
    }
}

impl randflake::Clock for Clock {
    fn now(&self) -> Result<i64> {
        match self {
            Self::System => SystemClock.now(),
            Self::Injected { now, .. } => {
                Python::attach(|py| reading(now.bind(py))).map_err(Error::from_clock)
            }
            Self::Changeable(_) if self.is_system() => SystemClock.now(),
            Self::Changeable(clock) => Python::attach(|py| match clock.get().injected(py) {
                Some(now) => reading(now.bind(py)).map_err(Error::from_clock),
                None => SystemClock.now(),
            }),
        }
    }

    /// Releases the GIL while it waits. An exception of a signal handler ends the wait.
    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        match self {
            Self::System => Python::try_attach(|py| sleep_in_slices(py, duration))
                .unwrap_or_else(|| never_return())
                .map(Some),
            Self::Injected { sleep: None, .. } | Self::Changeable(_) => Ok(None),
            Self::Injected { sleep: Some(sleep), .. } => {
                Python::attach(|py| sleep.call1(py, (duration.as_secs_f64(),)))
                    .map_err(Error::from_clock)?;
                Ok(Some(duration))
            }
        }
    }

    #[inline]
    fn coarse_time(&self) -> Option<i64> {
        self.is_system().then(|| SystemClock.coarse_time()).flatten()
    }

    #[inline]
    fn counter(&self) -> Option<u64> {
        self.is_system().then(|| SystemClock.counter()).flatten()
    }

    #[inline]
    fn is_system(&self) -> bool {
        match self {
            Self::System => true,
            Self::Injected { .. } => false,
            Self::Changeable(clock) => clock.get().is_system.load(Ordering::Relaxed),
        }
    }
}

fn reading(now: &Bound<'_, PyAny>) -> PyResult<i64> {
    let rule = "the clock must return unix seconds as an int or a float";
    let seconds = number(&now.call0()?, must(ErrorKind::InvalidArgument, rule))?;
    unix_nanos(seconds).map_err(raise)
}

/// Runs signal handlers at least once, even if there is no time to sleep.
fn sleep_in_slices(py: Python<'_>, duration: Duration) -> Result<Duration> {
    let mut slept = Duration::ZERO;
    loop {
        let slice = duration.saturating_sub(slept).min(LONGEST_SLICE);
        if !slice.is_zero() {
            let took = py.detach(|| randflake::Clock::sleep(&SystemClock, slice))?;
            slept += took.unwrap_or(slice);
        }
        py.check_signals().map_err(Error::from_clock)?;
        if slept >= duration {
            return Ok(slept);
        }
    }
}
