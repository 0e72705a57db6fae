//! The first lease of a generator that was made without one.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use randflake::{Clock, Error, ErrorKind, Format, Result};
use randflake_leases::{Leased, bindings::Polling};

use crate::{
    clock::EnvironmentClock,
    closing::{Closing, Pending},
    threads,
};

/// When to ask again while a thread takes the lease.
const SHORT: Duration = Duration::from_millis(50);

pub(crate) struct LazyLease<F: Format> {
    leased: Arc<Leased<F, EnvironmentClock>>,
    closing: Arc<Closing>,
    attempt: Mutex<Attempt>,
    /// Shared by all threads that take the lease or wait for the one that does.
    pending: Pending,
}

/// What the last thread that was started to take the lease does, or has done.
#[derive(Default)]
struct Attempt {
    is_running: bool,
    failure: Option<Error>,
}

impl<F: Format> LazyLease<F> {
    pub(crate) fn new(leased: Arc<Leased<F, EnvironmentClock>>, closing: Arc<Closing>) -> Self {
        let (attempt, pending) = Default::default();
        Self { leased, closing, attempt, pending }
    }

    /// Takes the lease, or waits for the thread that does: not on the JavaScript thread, which may run
    /// the client of the store.
    pub(crate) fn take(&self) -> Result<()> {
        let pending = (self.closing.begin()?, Arc::clone(&self.pending));
        let taken = self
            .leased
            .recover(on_its_way())
            .and_then(|()| self.closing.keep(Arc::clone(&self.leased) as _));
        drop(pending); // not before the environment knows of it
        taken
    }

    /// Makes a thread take the lease, unless one already does, and waits for it at most this long.
    pub(crate) fn take_elsewhere(self: &Arc<Self>, max_wait: Duration) -> Result<()> {
        self.start()?;
        let (clock, mut polling) = (EnvironmentClock::new(&self.closing), Polling::new());
        loop {
            let attempt = self.lock();
            let failure = attempt.failure.clone();
            if !attempt.is_running {
                return failure.map_or(Ok(()), Err);
            }
            drop(attempt);
            let Some(left) = polling.left_of(max_wait) else {
                return Err(failure.unwrap_or_else(on_its_way));
            };
            polling.pause(left, |pause| clock.sleep(pause))?;
        }
    }

    fn start(self: &Arc<Self>) -> Result<()> {
        let mut attempt = self.lock();
        if attempt.is_running {
            return Ok(());
        }
        attempt.is_running = true;
        drop(attempt); // a thread that cannot be started ends here
        let ending = AttemptGuard(Arc::clone(self));
        let started = threads::start(Box::new(move || {
            let failure = ending.0.take().err();
            ending.0.lock().failure = failure;
        }));
        started.map_err(|error| {
            let why = format!("cannot start a thread: {error}");
            Error::new(ErrorKind::StoreUnavailable, why)
        })
    }

    /// Returns whether a thread is taking the lease, or giving back a lease that came after the
    /// end.
    pub(crate) fn is_pending(&self) -> bool {
        Arc::strong_count(&self.pending) > 1
    }

    /// A panic leaves an attempt valid.
    fn lock(&self) -> MutexGuard<'_, Attempt> {
        self.attempt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The attempt of a thread; ends even if the thread panics.
struct AttemptGuard<F: Format>(Arc<LazyLease<F>>);

impl<F: Format> Drop for AttemptGuard<F> {
    fn drop(&mut self) {
        self.0.lock().is_running = false;
    }
}

#[cold]
fn on_its_way() -> Error {
    let why = "the first lease of node ids is on its way; call again, or await ready()";
    Error::new(ErrorKind::LeaseUnavailable, why).with_retry_after(SHORT)
}
