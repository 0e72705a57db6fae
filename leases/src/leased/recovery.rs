//! What a call does when its lease is over, or in a forked child.

use std::{mem, time::Duration};

use randflake::{Clock, Error, ErrorKind, Format, Result, bindings::ForkId};

use super::{LONGEST_RETRY, Leased, POLL_INTERVAL, SHORTEST_RETRY, thread::Shared};
use crate::{clocks::reading, keeper::Keeper};

impl<F: Format, C: Clock + Send + Sync + 'static> Leased<F, C> {
    /// Recovers from the error of a call: takes a lease in a forked child, and waits up to `max_wait`
    /// for the keeper where the lease is over. Then repeat the call.
    ///
    /// # Errors
    ///
    /// The error itself if it cannot be recovered from; `LEASE_UNAVAILABLE`.
    #[cold]
    pub fn recover(&self, error: Error) -> Result<()> {
        match error.kind() {
            ErrorKind::Forked => self.begin_in_child(),
            ErrorKind::LeaseExpired => self.outlast(error),
            _ => Err(error),
        }
    }

    /// Returns the error of a call after [`recover`](Leased::recover), or without it: the error itself, or
    /// `LEASE_UNAVAILABLE` if the lease is over. Wakes the keeper.
    #[cold]
    #[must_use]
    pub fn explain(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::LeaseExpired {
            return error;
        }
        let (Some(process_lease), Ok(now)) = (self.process_lease.of(ForkId::current()), reading())
        else {
            return error;
        };
        let end = self.generator.lease().map_or(0, |lease| lease.end_exclusive());
        let why = if end > now.second() {
            format!("this needs seconds after the lease, which ends at the unix second {end}")
        } else {
            format!("the lease of this generator ended at the unix second {end}")
        };
        let state = process_lease.shared.lock();
        let cause = state.keeper.as_ref().and_then(Keeper::last_error).cloned();
        if state.ended {
            let why = format!("{why}, and what renews it has stopped; make a new generator");
            let ended = Error::new(ErrorKind::Internal, why);
            return if let Some(cause) = cause { ended.caused_by(cause) } else { ended };
        }
        let next = state.keeper.as_ref().map(|keeper| keeper.next_attempt_in(now));
        process_lease.shared.wake(state);
        unavailable(&why, next.unwrap_or_default(), cause)
    }

    /// Takes a lease in a forked child, or waits for the thread that does.
    fn begin_in_child(&self) -> Result<()> {
        let no_lease = "this process was forked and has no lease of its own yet";
        let process_lease = self.process_lease.of_or_new(ForkId::current());
        let mut waited = Duration::ZERO;
        loop {
            let mut state = process_lease.shared.lock();
            if state.closed {
                return Err(closed());
            }
            if state.keeper.is_some() {
                return Ok(());
            }
            if !mem::replace(&mut state.acquiring, true) {
                drop(state);
                let _acquiring = AcquiringGuard(&process_lease.shared);
                let begun = self.source.acquire(self.generator.clock()).and_then(|granted| {
                    match self.generator.begin_in_child(&granted.node_ids, granted.lease) {
                        Err(error) => Err(self.source.give_back(granted, error)),
                        Ok(()) => self.keep(process_lease, granted),
                    }
                });
                return begun.map_err(|error| {
                    if !error.kind().is_of_store() {
                        return error; // waiting does not help
                    }
                    let next = error.retry_after().unwrap_or(Duration::from_secs(1));
                    unavailable(no_lease, next, Some(error))
                });
            }
            drop(state);
            if waited >= self.source.options.acquire_timeout {
                return Err(unavailable(no_lease, Duration::ZERO, None));
            }
            waited += self
                .generator
                .clock()
                .sleep(POLL_INTERVAL)?
                .unwrap_or(POLL_INTERVAL)
                .max(POLL_INTERVAL);
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
        let mut waited = Duration::ZERO;
        while end() == first_end {
            if process_lease.shared.lock().ended || waited >= self.max_wait {
                // If it is not over, its end may have risen before it was read.
                let is_over = first_end <= reading()?.second();
                return if is_over { Err(self.explain(expired)) } else { Ok(()) };
            }
            waited += self
                .generator
                .clock()
                .sleep(POLL_INTERVAL)?
                .unwrap_or(self.max_wait)
                .max(POLL_INTERVAL);
        }
        Ok(())
    }
}

/// The first lease of a child is being acquired; ends even if that panics.
struct AcquiringGuard<'a>(&'a Shared);

impl Drop for AcquiringGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().acquiring = false;
    }
}

/// Makes the error of a generator without a lease; `next` is the time to the next attempt.
#[cold]
fn unavailable(why: &str, next: Duration, cause: Option<Error>) -> Error {
    let again = if next.is_zero() {
        "just now".to_owned()
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
fn closed() -> Error {
    Error::new(ErrorKind::Closed, "this generator was closed; make a new one")
}
