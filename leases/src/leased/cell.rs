//! A leased generator that is made when it is first used.

use std::{fmt, sync::Arc};

use once_cell::race::OnceBox;
use randflake::{Clock, Format, Result};

use super::{Leased, recovery::closed};

/// The place of a leased generator whose settings are read when it is first used. For the bindings to
/// other languages: Rust has [`LazyLock`](std::sync::LazyLock).
///
/// It is set once, without a lock that a fork could leave locked. Of threads that make the generator
/// at the same time, one wins; the others drop theirs, which has leased nothing: make it with
/// [`LeasedBuilder::open_lazily`](crate::LeasedBuilder::open_lazily).
pub struct LeasedCell<F: Format, C: Clock + Send + Sync + 'static>(
    /// `None` if it was closed before it was made.
    OnceBox<Option<Arc<Leased<F, C>>>>,
);

impl<F: Format, C: Clock + Send + Sync + 'static> LeasedCell<F, C> {
    /// Makes a place that has no generator yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceBox::new())
    }

    /// Returns the generator, if it was made.
    #[inline]
    #[must_use]
    pub fn made(&self) -> Option<&Arc<Leased<F, C>>> {
        self.0.get()?.as_ref()
    }

    /// As [`LeasedCell::made`].
    ///
    /// # Errors
    ///
    /// `CLOSED`: it was closed before it was made.
    pub fn get(&self) -> Result<Option<&Arc<Leased<F, C>>>> {
        match self.0.get() {
            None => Ok(None),
            Some(Some(leased)) => Ok(Some(leased)),
            Some(None) => Err(closed()),
        }
    }

    /// Puts a generator here, unless another thread was first. Returns that which is here, and whether
    /// it is the new one.
    ///
    /// # Errors
    ///
    /// As [`LeasedCell::get`].
    pub fn set(&self, leased: Leased<F, C>) -> Result<(&Arc<Leased<F, C>>, bool)> {
        let is_new = self.0.set(Box::new(Some(Arc::new(leased)))).is_ok();
        // It is set, here or by another thread.
        self.made().map(|made| (made, is_new)).ok_or_else(closed)
    }

    /// Closes the generator, as [`Leased::stop`], or has none be made any more.
    pub fn stop(&self) {
        if let Some(leased) = self.0.get_or_init(|| Box::new(None)) {
            leased.stop();
        }
    }

    /// Returns whether it was closed, and no node id has to be given back.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.get().is_some_and(|made| made.as_ref().is_none_or(|leased| leased.is_over()))
    }
}

impl<F: Format, C: Clock + Send + Sync + 'static> Default for LeasedCell<F, C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: Format, C: Clock + Send + Sync + 'static> fmt::Debug for LeasedCell<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeasedCell").field(&self.made()).finish()
    }
}
