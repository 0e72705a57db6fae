//! Places for connections: which connection has one, and which gives it up for a new one if all are
//! taken.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// How long a new connection waits before it looks again for one that can give up its place.
const RETRY: Duration = Duration::from_millis(50);

pub(super) struct Places {
    most: u32,
    free: Arc<Semaphore>,
    taken: Mutex<Vec<Arc<Place>>>,
    /// Counts the waits for clients, to order them in time.
    turns: AtomicU64,
}

/// The place of a connection, for as long as this lives.
pub(super) struct Taken {
    pub(super) place: Arc<Place>,
    places: Arc<Places>,
    _permit: OwnedSemaphorePermit,
}

pub(super) struct Place {
    state: Mutex<State>,
    pub(super) is_given_up: Notify,
}

struct State {
    awaited: Awaited,
    /// The turn in which this wait began.
    since: u64,
    /// Whether it has sent a request that it is allowed to send.
    is_known: bool,
}

/// What the connection is waiting for.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Awaited {
    /// The client, for the head of a request.
    Head,
    /// This server, for an answer, or the client, for the body that the answer needs.
    Answer,
    /// The client, to take the answer.
    Flush,
}

impl Places {
    pub(super) fn new(most: u32) -> Arc<Self> {
        Arc::new(Self {
            most,
            free: Arc::new(Semaphore::new(most as usize)),
            taken: Mutex::default(),
            turns: AtomicU64::default(),
        })
    }

    /// Waits for a place, and takes one from another connection if it can.
    pub(super) async fn take(self: &Arc<Self>) -> Taken {
        let mut permit = Arc::clone(&self.free).try_acquire_owned().ok();
        let permit = loop {
            if let Some(permit) = permit {
                break permit;
            }
            self.give_up_one();
            let free = Arc::clone(&self.free).acquire_owned();
            permit = timeout(RETRY, free).await.ok().and_then(Result::ok);
        };
        let state = State { awaited: Awaited::Head, since: self.turn(), is_known: false };
        let place = Arc::new(Place { state: Mutex::new(state), is_given_up: Notify::new() });
        self.taken().push(Arc::clone(&place));
        Taken { place, places: Arc::clone(self), _permit: permit }
    }

    /// Ends the connection that has kept this server waiting longest, preferring those that never
    /// sent an allowed request. An answer to any other connection is not cut off.
    pub(super) fn give_up_one(&self) {
        let mut taken = self.taken();
        let longest = taken
            .iter()
            .enumerate()
            .filter_map(|(index, place)| {
                let State { awaited, since, is_known } = *place.state();
                let may_go = awaited == Awaited::Head || awaited == Awaited::Flush && !is_known;
                may_go.then_some(((is_known, since), index))
            })
            .min();
        if let Some((_, index)) = longest {
            taken.swap_remove(index).is_given_up.notify_one();
        }
    }

    /// Waits until no connection is left.
    pub(super) async fn all_free(&self) {
        let _ = self.free.acquire_many(self.most).await;
    }

    /// Returns how many connections there are.
    pub(super) fn count(&self) -> usize {
        self.taken().len()
    }

    fn taken(&self) -> MutexGuard<'_, Vec<Arc<Place>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }
}

impl Taken {
    /// There is a request. hyper reads it only after it has written the previous answer.
    pub(super) fn asked(&self) {
        self.is_awaited(Awaited::Head, Awaited::Answer);
    }

    pub(super) fn is_known(&self) {
        self.place.state().is_known = true;
    }

    /// There is an answer, which the client must take.
    pub(super) fn answered(&self) {
        self.is_awaited(Awaited::Answer, Awaited::Flush);
    }

    /// Everything that was written has been sent.
    pub(super) fn flushed(&self) {
        self.is_awaited(Awaited::Flush, Awaited::Head);
    }

    fn is_awaited(&self, before: Awaited, after: Awaited) {
        let mut state = self.place.state();
        if state.awaited == before {
            (state.awaited, state.since) = (after, self.places.turn());
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.places.taken().retain(|place| !Arc::ptr_eq(place, &self.place));
    }
}

impl Place {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime;

    use super::*;

    #[test]
    fn who_keeps_the_server_waiting_gives_up_a_place() {
        let runtime = runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let places = Places::new(5);
            let mut all = Vec::new();
            for _ in 0..5 {
                all.push(places.take().await);
            }
            let [known, slow, asks, reads, new] = &all[..] else { panic!("five") };
            for may in [known, reads] {
                may.asked();
                may.is_known();
                may.answered();
            }
            known.flushed(); // and waits for its next head
            slow.asked();
            slow.answered(); // and is not read
            asks.asked();
            // First one that never sent an allowed request, last one that did, and none that is
            // waiting for an answer.
            for next in [new, slow, known] {
                places.give_up_one();
                next.place.is_given_up.notified().await;
            }
            places.give_up_one();
            assert_eq!(places.count(), 2);
            asks.answered();
            places.give_up_one();
            asks.place.is_given_up.notified().await;
            reads.flushed();
            places.give_up_one();
            reads.place.is_given_up.notified().await;
            assert_eq!(places.count(), 0);
            drop(all);
            places.all_free().await;
        });
    }
}
