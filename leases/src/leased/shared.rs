//! What the thread that keeps a lease shares with the callers.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use randflake::{Clock, Error, Format, Generator, bindings::ForkId};

use super::status::{PATIENCE, obstacle};
use crate::{
    keeper::{Answer, Keeper, Reading, Step},
    metrics::Requests,
};

/// A generator's lease in one process.
pub(super) struct ProcessLease {
    pub(super) process: ForkId,
    pub(super) shared: Arc<Shared>,
}

/// What the thread shares with the callers.
#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<SharedState>,
    pub(super) changed: Condvar,
}

/// The state that the thread and the callers change under one lock.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct SharedState {
    /// `None` in a process that has no lease yet.
    pub(crate) keeper: Option<Keeper>,
    /// A thread acquires the first lease.
    pub(super) acquiring: bool,
    /// Why the last attempt at it failed, for the threads that waited for it.
    pub(super) no_first_lease: Option<Error>,
    pub(super) closed: bool,
    /// How many calls have waited for a lease.
    pub(super) waits: u64,
    /// Those of keepers that got no first lease.
    pub(super) earlier_requests: Requests,
    /// What closing the generator returned.
    pub(super) used_until: Option<i64>,
    /// Wakes the thread from its sleep.
    wake: bool,
    /// There is no thread, or no longer one.
    pub(super) ended: bool,
}

/// What the thread does next.
pub(crate) enum Next {
    /// Something was done on the generator: go on at once.
    Continue,
    /// Send a request to the store.
    Ask(Step),
    /// Sleep, unless woken earlier.
    Sleep(Duration),
    /// Nothing is left to do.
    End,
}

impl SharedState {
    /// Does on the generator what the keeper wants next, or returns what else it wants. A thread of before
    /// a restore does nothing to a lease of after it: `process` is the one that the lease is of.
    pub(crate) fn advance<F: Format, C: Clock>(
        &mut self,
        generator: &Generator<F, C>,
        process: ForkId,
        now: Reading,
    ) -> Next {
        let Some(keeper) = &mut self.keeper else { return Next::End };
        let answer = match keeper.step(now) {
            Step::Stopped => return Next::End,
            Step::Sleep(pause) => {
                // The end of the lease is reported when it comes.
                let left = keeper.time_left(now);
                let pause = if left.is_zero() { pause } else { pause.min(left) };
                // So is the time from which there are ids again, which a step of the clock may bring.
                let waits = obstacle(generator, PATIENCE).is_some();
                return Next::Sleep(if waits { pause.min(PATIENCE) } else { pause });
            }
            Step::Close => {
                Answer::Closed(self.used_until.take().or_else(|| generator.close_of(process)))
            }
            Step::Extend { end_exclusive } => {
                Answer::Extended(generator.extend_lease_of(process, end_exclusive))
            }
            Step::Replace { node_ids, lease } => {
                let drift = keeper.most_drift(lease);
                Answer::Replaced(generator.replace_lease_of(process, &node_ids, lease, drift))
            }
            step => return Next::Ask(step),
        };
        keeper.answer(answer, now).expect("the answer to this step");
        Next::Continue
    }

    /// Returns how many calls have waited for a lease, and what was asked of the store.
    pub(super) fn counts(&self) -> (u64, Requests) {
        let mut requests = self.earlier_requests.clone();
        if let Some(keeper) = &self.keeper {
            requests.add(keeper.requests());
        }
        (self.waits, requests)
    }

    /// Returns for how long no request to the store is planned.
    pub(super) fn rests_for(&self, now: Reading) -> Duration {
        self.keeper.as_ref().map(|keeper| keeper.rests_for(now)).unwrap_or_default()
    }

    /// Closes the generator, and has the keeper stop.
    pub(crate) fn stop<F: Format, C: Clock>(
        &mut self,
        generator: &Generator<F, C>,
        process: ForkId,
    ) {
        self.closed = true;
        self.used_until = generator.close_of(process);
        if let Some(keeper) = &mut self.keeper {
            keeper.stop();
        } else {
            self.ended = true;
        }
    }
}

impl Shared {
    /// The state is consistent after a panic, since the keeper repeats what was not answered.
    pub(super) fn lock(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread sleep, unless something wakes it earlier.
    pub(super) fn sleep(&self, state: MutexGuard<'_, SharedState>, pause: Duration) {
        let waited = self.changed.wait_timeout_while(state, pause, |state| !state.wake);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.wake = false;
    }

    /// Wakes the thread, and everything that waits for it.
    pub(super) fn wake(&self, mut state: MutexGuard<'_, SharedState>) {
        state.wake = true;
        drop(state);
        self.changed.notify_all();
    }
}

impl ProcessLease {
    pub(super) fn new(process: ForkId) -> Self {
        Self { process, shared: Arc::default() }
    }

    pub(super) fn is_of_this_process(&self) -> bool {
        self.process == ForkId::current()
    }
}
