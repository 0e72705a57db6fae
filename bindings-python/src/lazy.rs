//! Generators that are made before there is a store or a secret: both are looked up on first use,
//! and the first id takes the lease.
//!
//! On first use a cell, set once and without a lock, gets the generator, which still has no lease:
//! from there on it is the one of `open_lazily`. Threads that race for it drop theirs, which leased
//! nothing. The secret is read once, for ids and for reading them. A store that is an object of the
//! parent's stays refused in a child, since it was taken in when it was given.

use std::sync::Arc;

use once_cell::race::OnceBox;
use pyo3::prelude::*;
use randflake_leases::{Leased, LeasedCell};

use crate::{
    clock::Clock,
    errors::{call, raise},
    interpreter,
    settings::{ConfigSource, Settings},
};

/// A leased generator whose settings are looked up on first use, and then stay.
pub(crate) struct Lazy<F: ConfigSource> {
    settings: Settings<F>,
    config: OnceBox<F::Config>,
    leased: LeasedCell<F, Clock>,
}

impl<F: ConfigSource> Lazy<F> {
    /// Checks the options, and nothing else.
    pub(crate) fn new(settings: Settings<F>) -> PyResult<Self> {
        settings.check()?;
        Ok(Self { settings, config: OnceBox::new(), leased: LeasedCell::new() })
    }

    /// Returns the generator, if it has been used.
    #[inline]
    pub(crate) fn made(&self) -> Option<&Arc<Leased<F, Clock>>> {
        self.leased.made()
    }

    /// Returns the generator, which leases nothing before its first id.
    #[cold]
    pub(crate) fn leased(&self, py: Python<'_>) -> PyResult<&Arc<Leased<F, Clock>>> {
        let leased = || {
            if let Some(leased) = self.leased.get().map_err(raise)? {
                return Ok(leased);
            }
            let config = self.config(py)?.clone();
            let (builder, needs_python) = self.settings.builder(py, config)?;
            interpreter::register_in_child(py)?;
            let leased = call(|| builder.open_lazily())?;
            let (leased, is_new) = self.leased.set(leased).map_err(raise)?;
            if is_new {
                interpreter::close_at_exit(Arc::clone(leased) as _, needs_python);
            }
            Ok(leased)
        };
        interpreter::call_python(py, leased)
            .map_err(|raised| interpreter::raise_unless_finalizing(py, raised))
    }

    /// Returns the secret or the layout, without a store.
    pub(crate) fn config(&self, py: Python<'_>) -> PyResult<&F::Config> {
        if let Some(config) = self.config.get() {
            return Ok(config);
        }
        let config = self.settings.config(py)?;
        // Another thread may have been first.
        Ok(self.config.get_or_init(|| Box::new(config)))
    }

    pub(crate) fn stop(&self) {
        self.leased.stop();
    }
}
