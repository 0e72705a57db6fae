//! What a call does when its lease is over, or in a process that has none yet: at the first id, in a
//! forked child, or after a restore.
//!
//! One thread at a time asks the store for the first lease of a process; those that wait for it
//! share its outcome. A handler of a signal that forks in such a wait leaves two processes in it:
//! the child drops its parent's request and begins with one of its own. A child never looks at the
//! parent's entry, whose lock may be held for ever, and never renews or releases what is the
//! parent's, whatever is closed, dropped or unwound there.
//!
//! A lease that is over may come back within `max_wait`, as after the machine has slept. A thread
//! that runs the store's client itself (JavaScript's) must not wait here: the lease could not come
//! meanwhile.

use std::{error::Error as _, time::Duration};

use randflake::{
    Clock, Error, ErrorKind, Format, Result, SystemClock,
    bindings::{ForkId, utc_second},
};

use super::{LONGEST_RETRY, Leased, SHORTEST_RETRY, shared::ProcessLease, source::FirstLease};
use crate::{
    clocks::reading,
    keeper::{Keeper, passes},
    polling::Polling,
};

const NO_LEASE: &str = "this process has no lease of node ids yet";

impl<F: Format, C: Clock + Send + Sync + 'static> Leased<F, C> {
    /// Recovers from the error of a call: takes a lease in a process that has none yet, and waits up to
    /// `max_wait` for the keeper where the lease is over. Then repeat the call.
    ///
    /// # Errors
    ///
    /// The error itself if it cannot be recovered from; `LEASE_UNAVAILABLE`.
    #[cold]
    pub fn recover(&self, error: Error) -> Result<()> {
        match error.kind() {
            ErrorKind::LeaseUnavailable | ErrorKind::Forked => self.begin(),
            ErrorKind::LeaseExpired => self.outlast(error),
            _ => Err(self.explain(error)),
        }
    }

    /// Recovers from the error of a call, and repeats it.
    pub(super) fn again<T>(&self, error: Error, call: impl FnMut() -> Result<T>) -> Result<T> {
        repeat(error, call, |error| self.recover(error), |error| self.explain(error))
    }

    /// Returns the error of a call after [`recover`](Leased::recover), or without it: the error itself, or
    /// `LEASE_UNAVAILABLE` if the lease is over. Wakes the keeper, or the thread that reports the state.
    #[cold]
    #[must_use]
    pub fn explain(&self, error: Error) -> Error {
        if matches!(
            error.kind(),
            ErrorKind::ClockMovedBack
                | ErrorKind::LeaseNotStarted
                | ErrorKind::ClockBeforeEpoch
                | ErrorKind::LifetimeOver
        ) && let Some(process_lease) = self.process_lease.of(ForkId::current())
        {
            process_lease.shared.wake(process_lease.shared.lock());
        }
        if error.kind() != ErrorKind::LeaseExpired {
            return error;
        }
        let (Some(process_lease), Ok(now)) = (self.process_lease.of(ForkId::current()), reading())
        else {
            return error;
        };
        let end = self.generator.lease().map_or(0, |lease| lease.end_exclusive());
        let why = if end > now.second() {
            format!("this needs seconds beyond the end of the lease at {}", utc_second(end))
        } else {
            format!("the lease of this generator ended at {}", utc_second(end))
        };
        let state = process_lease.shared.lock();
        let cause = state.keeper.as_ref().and_then(Keeper::last_error).cloned();
        if state.ended {
            let why = format!("{why}, and its renewal has stopped; make a new generator");
            let ended = Error::new(ErrorKind::Internal, why);
            return if let Some(cause) = cause { ended.caused_by(cause) } else { ended };
        }
        let next = state.keeper.as_ref().map(|keeper| keeper.next_attempt_in(now));
        process_lease.shared.wake(state);
        unavailable(&why, next.unwrap_or_default(), cause)
    }

    /// Returns what this process has, which each call finds without touching a lock of another process.
    pub(super) fn own_process_lease(&self) -> &ProcessLease {
        let process = ForkId::current();
        self.process_lease.of_or(process, |_, process| ProcessLease::new(process))
    }

    /// Takes the first lease of this process, or waits for the thread that does. A thread that has
    /// waited for another one's attempt does not make one of its own.
    fn begin(&self) -> Result<()> {
        let mut polling = Polling::new();
        loop {
            // Again after each wait: a handler of a signal may have forked in it.
            let process_lease = self.own_process_lease();
            let mut state = process_lease.shared.lock();
            if state.closed || self.is_closed() {
                return Err(closed());
            }
            if state.keeper.is_some() {
                return Ok(());
            }
            state.waits += u64::from(polling.is_first());
            if !state.acquiring {
                if let Some(failure) = state.no_first_lease.clone().filter(|_| !polling.is_first())
                {
                    return Err(failure);
                }
                (state.acquiring, state.no_first_lease) = (true, None);
                drop(state);
                let acquiring = AcquiringGuard(process_lease);
                let Err(error) = self.take_first_lease(process_lease) else { return Ok(()) };
                if !process_lease.is_of_this_process() {
                    if is_of_a_handler(&error) {
                        return Err(error);
                    }
                    polling = Polling::new();
                    continue; // the child, or what was restored, takes a lease of its own
                }
                let error = no_first_lease(error);
                // It is for this thread alone, and no clone of it can be raised.
                if !is_of_a_handler(&error) {
                    process_lease.shared.lock().no_first_lease = Some(error.clone());
                }
                drop(acquiring);
                return Err(error);
            }
            drop(state);
            let Some(left) = polling.left_of(self.source.options.acquire_timeout) else {
                return Err(unavailable(NO_LEASE, Duration::ZERO, None));
            };
            // On a clock that cannot sleep, too: the other thread waits for the store.
            polling.pause(left, |pause| match self.generator.clock().sleep(pause)? {
                None => SystemClock.sleep(pause),
                slept => Ok(slept),
            })?;
        }
    }

    /// Takes the first lease of this process. One thread of it calls this at a time.
    pub(super) fn take_first_lease(&self, process_lease: &ProcessLease) -> Result<()> {
        let (source, clock) = (&self.source, self.generator.clock());
        let granted = if source.is_interruptible {
            source.acquire_on_thread(clock, process_lease)?
        } else {
            source.acquire(clock, process_lease.process, &process_lease.shared)?
        };
        let FirstLease { keeper, node_ids, lease, .. } = &granted;
        let most_drift = keeper.most_drift(*lease);
        match self.generator.begin_of(process_lease.process, node_ids, *lease, most_drift) {
            Err(error) if source.is_interruptible => {
                Err(source.give_back_on_thread(granted, error))
            }
            Err(error) => Err(source.give_back(granted, error)),
            Ok(()) => self.keep(process_lease, granted),
        }
    }

    /// Waits until the keeper has another lease, as after a long sleep of the machine, or a later end of
    /// this one, after a burst has used all its seconds.
    fn outlast(&self, expired: Error) -> Result<()> {
        let Some(process_lease) = self.process_lease.of(ForkId::current()) else {
            return Err(expired);
        };
        process_lease.shared.wake(process_lease.shared.lock());
        let end = || self.generator.lease().map_or(i64::MIN, |lease| lease.end_exclusive());
        let first_end = end();
        let mut polling = Polling::new();
        while end() == first_end {
            let has_ended = process_lease.shared.lock().ended;
            let Some(left) = polling.left_of(self.max_wait).filter(|_| !has_ended) else {
                // If it is not over, its end may have risen before it was read.
                let is_over = first_end <= reading()?.second();
                return if is_over { Err(self.explain(expired)) } else { Ok(()) };
            };
            process_lease.shared.lock().waits += u64::from(polling.is_first());
            polling.pause(left, |pause| self.generator.clock().sleep(pause))?;
            // By a handler of a signal. The lock may be held by a thread that the child does not have.
            if !process_lease.is_of_this_process() {
                return self.begin();
            }
        }
        Ok(())
    }
}

/// Recovers from the error of a call, and repeats the call: once, and once more where the process was
/// forked or restored in between.
///
/// # Errors
///
/// Those of `recover`, and what `explain` makes of that of the last call.
#[cold]
pub fn repeat<T, E>(
    mut error: Error,
    mut call: impl FnMut() -> Result<T>,
    mut recover: impl FnMut(Error) -> std::result::Result<(), E>,
    explain: impl FnOnce(Error) -> E,
) -> std::result::Result<T, E> {
    loop {
        recover(error)?;
        match call() {
            Err(forked) if forked.kind() == ErrorKind::Forked => error = forked,
            called => return called.map_err(explain),
        }
    }
}

/// The first lease of a process is being acquired; ends even if that panics.
struct AcquiringGuard<'a>(&'a ProcessLease);

impl Drop for AcquiringGuard<'_> {
    fn drop(&mut self) {
        if self.0.is_of_this_process() {
            self.0.shared.lock().acquiring = false;
        }
    }
}

/// Returns whether a handler of a signal has raised it.
fn is_of_a_handler(error: &Error) -> bool {
    error.cause().is_none() && error.source().is_some()
}

/// Makes the error of a call that got no first lease, unless waiting does not help.
#[cold]
fn no_first_lease(error: Error) -> Error {
    if !passes(error.kind()) {
        return error;
    }
    let next = error.retry_after().unwrap_or(Duration::from_secs(1));
    unavailable(NO_LEASE, next, Some(error))
}

/// Makes the error of a generator without a lease, or of a process without numbers; `next` is the
/// time to the next attempt.
#[cold]
#[must_use]
pub fn unavailable(why: &str, next: Duration, cause: Option<Error>) -> Error {
    let again = if next.is_zero() {
        "at once".to_owned()
    } else {
        format!("in {:.3} s", next.as_secs_f64())
    };
    let failure = cause.as_ref().map(|cause| format!(", after this failure: {cause}"));
    let failure = failure.unwrap_or_default();
    let message = format!("{why}; the store is asked again {again}{failure}");
    let error = Error::new(ErrorKind::LeaseUnavailable, message)
        .with_retry_after(next.clamp(SHORTEST_RETRY, LONGEST_RETRY));
    if let Some(cause) = cause { error.caused_by(cause) } else { error }
}

#[cold]
pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "this generator was closed; make a new one")
}
