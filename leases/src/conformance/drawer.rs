//! What draws from a counter, without a thread, for the model in `tests/model`.

use std::ops::Range;

use crate::{
    LeaseStore, Result, Token,
    tickets::counter::{CounterSettings, Draw, KnownCounter},
};

/// The floor of the namespace, and the value of the counter.
pub type Known = Option<(i64, Option<String>)>;

/// A process that draws from a counter by the rules of the product. No part of the interface: for the
/// model in `tests/model`, which keeps between two calls what the process knows.
#[derive(Debug)]
pub struct Drawer {
    counter: KnownCounter,
}

impl Drawer {
    /// Makes one that knows what it knew before.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: not the name of a counter.
    pub fn new(counter: &str, known: Known) -> Result<Self> {
        let settings = CounterSettings::new(counter, None, None)?;
        Ok(Self { counter: KnownCounter::with_known(settings, known) })
    }

    /// Returns what it knows now.
    #[must_use]
    pub fn into_known(self) -> Known {
        self.counter.into_known()
    }

    /// Draws the positions of a block; none where none is wanted. `None`: what is held is not this
    /// holder's any more.
    ///
    /// # Errors
    ///
    /// Those of the counter, and of [`LeaseStore::swap`].
    pub fn draw(
        &mut self,
        store: &mut dyn LeaseStore,
        tokens: (Option<Token>, Token),
        unused_from: u64,
        want: u64,
        after: u64,
    ) -> Result<Option<Range<u64>>> {
        let (before, token) = tokens;
        let draw = Draw { before, token, unused_from, want, after };
        Ok(self.counter.draw(store, &draw)?.map(|block| block.positions))
    }

    /// Gives back the blocks under these tokens from a position on. Returns whether anything was held.
    ///
    /// # Errors
    ///
    /// As [`Drawer::draw`].
    pub fn give_back(
        &mut self,
        store: &mut dyn LeaseStore,
        tokens: &[Token],
        unused_from: u64,
    ) -> Result<bool> {
        self.counter.give_back(store, tokens, unused_from)
    }
}
