//! Where blocks come from: a counter of a store.

use std::time::Duration;

use randflake::Result;
use randflake_leases::{
    LeaseStore, Location, Namespace, Token,
    bindings::{boot, random_bytes},
};

use super::{
    confirmed::CONFIRM_AFTER,
    counter::{Block, CounterSettings, Draw, KnownCounter},
};

/// The first pause after a failure; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What the thread draws from. Times are in it too, so that tests inject them.
pub(super) trait Source: Send {
    /// Draws a block, or only confirms what is held; `None` if that is not this holder's any more.
    fn draw(&mut self, request: &Draw) -> Result<Option<Block>>;

    /// Gives back what is unused of the blocks under these tokens: everything from a position on.
    fn give_back(&mut self, tokens: &[Token], unused_from: u64) -> Result<()>;

    /// Says that nothing is asked for a while.
    fn rest(&mut self);

    /// Returns the time on a clock that only rises: for the sizes of blocks, and for when to ask again.
    fn now(&self) -> Duration {
        boot()
    }

    /// Returns how long after a request the numbers that are used have to be confirmed: at random, so
    /// that copies and processes that started together do not ask at once.
    fn confirm_after(&self) -> Duration {
        let [earliest, latest] = CONFIRM_AFTER;
        earliest + latest.saturating_sub(earliest).mul_f64(share())
    }

    /// Returns how long to wait after so many failures in a row, at least 1: with jitter, so that
    /// processes that lost a store do not come back to it all at once.
    fn pause(&self, failures: u32) -> Duration {
        let pause = FIRST_PAUSE.saturating_mul(1 << failures.clamp(1, 16).saturating_sub(1));
        pause.min(LONGEST_PAUSE).mul_f64(0.5 + share() / 2.0)
    }
}

/// Returns a random number from 0 to 1.
fn share() -> f64 {
    f64::from(u16::from_le_bytes(random_bytes())) / f64::from(u16::MAX)
}

/// A counter, in a store that is opened when it is first used. It is never opened again in the same
/// process: only a store that stays open notices that another one is in its place.
pub(super) struct CounterSource {
    location: Location,
    namespace: Namespace,
    counter: KnownCounter,
    store: Option<Box<dyn LeaseStore>>,
}

impl CounterSource {
    pub(super) fn new(location: Location, namespace: Namespace, settings: CounterSettings) -> Self {
        Self { location, namespace, counter: KnownCounter::new(settings), store: None }
    }

    fn ask<T>(
        &mut self,
        ask: impl FnOnce(&mut KnownCounter, &mut dyn LeaseStore) -> Result<T>,
    ) -> Result<T> {
        let store = match &mut self.store {
            Some(store) => store,
            none => none.insert(self.location.open(&self.namespace)?),
        };
        // A connection that has failed may deliver the answer to an earlier request.
        ask(&mut self.counter, &mut **store).inspect_err(|_| store.discard())
    }
}

impl Source for CounterSource {
    fn draw(&mut self, request: &Draw) -> Result<Option<Block>> {
        self.ask(|counter, store| counter.draw(store, request))
    }

    fn give_back(&mut self, tokens: &[Token], unused_from: u64) -> Result<()> {
        self.ask(|counter, store| counter.give_back(store, tokens, unused_from)).map(drop)
    }

    fn rest(&mut self) {
        if let Some(store) = &mut self.store {
            store.rest();
        }
    }
}
