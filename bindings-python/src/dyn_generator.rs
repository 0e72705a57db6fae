//! A generator of the core, of any format, as Python calls it.

use std::{sync::Arc, time::Duration};

use pyo3::prelude::*;
use randflake::{
    Call, Clock as _, Error, ErrorKind, Format, Generator, Order, Result, Wait, bindings,
};
use randflake_leases::{Leased, LeasedMetrics, bindings::repeat};

use crate::{
    buffer::{Batch, LARGE_BATCH},
    clock::Clock,
    errors::{call, caught, raise},
    interpreter,
    lazy::Lazy,
    lease::{self, Lease},
    metrics,
    options::{self, Options},
    settings::{ConfigSource, Settings},
};

/// A generator, shared by its Python class and the base of that class.
pub(crate) enum AnyGenerator<F: ConfigSource> {
    /// With manually assigned node ids.
    Manual(Arc<Generator<F, Clock>>),
    /// With leased ones. On the thread of an event loop its calls never wait.
    Leased(Arc<Leased<F, Clock>>, Wait),
    /// Leased, with settings that are looked up on first use.
    Lazy(Arc<Lazy<F>>),
}

/// A generator that can be called.
enum Opened<'a, F: Format> {
    Manual(&'a Generator<F, Clock>),
    Leased(&'a Leased<F, Clock>, Wait),
}

impl<F: ConfigSource> AnyGenerator<F> {
    pub(crate) fn manual(
        py: Python<'_>,
        config: F::Config,
        node_ids: Vec<u32>,
        options: Option<Options<'_>>,
    ) -> PyResult<Self> {
        let builder = options::manual(py, config, node_ids, options)?;
        Ok(Self::Manual(Arc::new(call(|| builder.build())?)))
    }

    /// Leases from a store, without the GIL.
    pub(crate) fn leased(
        py: Python<'_>,
        settings: &Settings<F>,
        config: F::Config,
    ) -> PyResult<Self> {
        let (builder, needs_python) = settings.builder(py, config)?;
        interpreter::register_in_child(py)?;
        let opened = py.detach(|| call(|| builder.open()));
        let leased = opened.map_err(|raised| interpreter::raise_unless_finalizing(py, raised))?;
        let leased = Arc::new(leased);
        interpreter::close_at_exit(Arc::clone(&leased) as _, needs_python);
        Ok(Self::Leased(leased, Wait::MaxWait))
    }

    /// Returns the same generator, with calls that never wait if it is leased.
    pub(crate) fn without_waits(&self) -> Self {
        match self {
            Self::Leased(leased, _) => Self::Leased(Arc::clone(leased), Wait::Never),
            other => other.clone(),
        }
    }

    /// Leases from a store with its first id.
    pub(crate) fn lazy(settings: Settings<F>) -> PyResult<Self> {
        Ok(Self::Lazy(Arc::new(Lazy::new(settings)?)))
    }

    /// Returns whether this runs on the machine's clock.
    pub(crate) fn is_on_system_clock(&self) -> bool {
        match self {
            Self::Manual(flake) => flake.clock().is_system(),
            Self::Leased(..) | Self::Lazy(_) => true,
        }
    }

    /// Returns the generator, and makes it if it is lazy.
    fn made(&self, py: Python<'_>) -> PyResult<Opened<'_, F>> {
        if let Some(made) = self.made_already() {
            return Ok(made);
        }
        let Self::Lazy(lazy) = self else { unreachable!("the others are made already") };
        Ok(Opened::Leased(lazy.leased(py)?, Wait::MaxWait))
    }

    /// Returns the generator, unless it is a lazy one that has not been used yet.
    fn made_already(&self) -> Option<Opened<'_, F>> {
        Some(match self {
            Self::Manual(flake) => Opened::Manual(flake),
            Self::Leased(leased, wait) => Opened::Leased(leased, *wait),
            Self::Lazy(lazy) => Opened::Leased(lazy.made()?, Wait::MaxWait),
        })
    }

    pub(crate) fn generate(&self, py: Python<'_>) -> PyResult<F::Id> {
        self.retry(py, |flake| {
            caught(|| match flake {
                Opened::Manual(flake) => flake.generate(),
                Opened::Leased(leased, wait) => {
                    leased.try_generate(Call { wait: *wait, ..Call::default() })
                }
            })
        })
    }

    /// Generates an id of the slot after the last one, for the names of 2.1.
    pub(crate) fn generate_in_order(&self, py: Python<'_>) -> PyResult<F::Id> {
        self.retry(py, |flake| {
            caught(|| match flake {
                Opened::Manual(flake) => {
                    flake.generate_with(Call { order: Order::Next, ..Call::default() })
                }
                Opened::Leased(leased, wait) => {
                    leased.try_generate(Call { wait: *wait, ..Call::default() })
                }
            })
        })
    }

    /// Generates an id of the slot after the last one, unless that fails, waits or calls Python.
    #[inline]
    pub(crate) fn generate_in_order_at_once(&self) -> Option<F::Id> {
        let Self::Manual(flake) = self else { return None };
        if !flake.clock().is_system() {
            return None;
        }
        caught(|| flake.generate_with(Call { order: Order::Next, ..Call::AT_ONCE })).ok()
    }

    /// Generates an id, unless that fails, waits or calls Python.
    #[inline]
    pub(crate) fn generate_at_once(&self) -> Option<F::Id> {
        let generate = || match self {
            Self::Manual(flake) if flake.clock().is_system() => {
                flake.generate_with(Call::AT_ONCE).map(Some)
            }
            Self::Manual(_) => Ok(None),
            Self::Leased(leased, _) => leased.try_generate(Call::AT_ONCE).map(Some),
            Self::Lazy(lazy) => {
                lazy.made().map(|leased| leased.try_generate(Call::AT_ONCE)).transpose()
            }
        };
        caught(generate).ok().flatten()
    }

    pub(crate) fn generate_many(&self, py: Python<'_>, count: usize) -> PyResult<Batch<i64>> {
        let mut ids = self.batch(py, count)?;
        self.fill(py, &mut ids)?;
        Ok(ids)
    }

    /// Calls the generator; calls it again once its error has been dealt with.
    #[inline]
    fn retry<T>(
        &self,
        py: Python<'_>,
        mut call: impl FnMut(&Opened<'_, F>) -> Result<T>,
    ) -> PyResult<T> {
        let made = self.made(py)?;
        call(&made).or_else(|error| {
            let recover = |error| made.recover(py, error);
            repeat(error, || call(&made), recover, |error| made.raise(py, error))
        })
    }
}

impl<F: Format> Opened<'_, F> {
    /// Returns what its batches may do. That of a leased one may take longer than its lease.
    fn batch_call(&self) -> Call {
        match self {
            Self::Manual(_) => Call::default(),
            Self::Leased(_, Wait::MaxWait) => Call::OVER_RENEWALS,
            Self::Leased(_, Wait::Never) => Call::AT_ONCE,
        }
    }

    /// Waits, without the GIL, for the lease that a call needs.
    #[cold]
    fn recover(&self, py: Python<'_>, error: Error) -> PyResult<()> {
        let Self::Leased(leased, Wait::MaxWait) = self else { return Err(self.raise(py, error)) };
        if has_no_lease_yet(&error) {
            interpreter::register_in_child(py)?;
        }
        py.detach(|| caught(|| leased.recover(error)))
            .map_err(|error| interpreter::raise_with_cause(py, error))
    }

    #[cold]
    fn raise(&self, py: Python<'_>, error: Error) -> PyErr {
        match self {
            Self::Manual(_) => interpreter::raise_unless_finalizing(py, raise(error)),
            Self::Leased(_, Wait::Never) if error.kind() == ErrorKind::Forked => {
                let why = "this process was forked or restored and has no lease of its own yet; await \
                           ready(), which takes one";
                interpreter::raise_unless_finalizing(py, raise(Error::new(ErrorKind::Forked, why)))
            }
            Self::Leased(leased, _) => interpreter::raise_with_cause(py, leased.explain(error)),
        }
    }
}

/// Returns whether a leased generator has failed because this process has not taken a lease yet.
fn has_no_lease_yet(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Forked | ErrorKind::LeaseUnavailable)
}

impl<F: ConfigSource> Clone for AnyGenerator<F> {
    fn clone(&self) -> Self {
        match self {
            Self::Manual(flake) => Self::Manual(Arc::clone(flake)),
            Self::Leased(leased, wait) => Self::Leased(Arc::clone(leased), *wait),
            Self::Lazy(lazy) => Self::Lazy(Arc::clone(lazy)),
        }
    }
}

/// What a [`Generator`](crate::generator::Generator) needs, whatever the type of an id.
pub(crate) trait DynGenerator: Send + Sync {
    /// Takes memory for a batch, unless it would be refused.
    fn batch(&self, py: Python<'_>, count: usize) -> PyResult<Batch<i64>>;

    /// Fills memory that no other thread sees, so the GIL can be released. After an error it is
    /// zeroed.
    fn fill(&self, py: Python<'_>, ids: &mut [i64]) -> PyResult<()>;

    fn extend_lease(&self, end_exclusive: i64) -> PyResult<()>;

    /// Returns a `Lease` or a `LeaseStatus`, or `None`.
    fn lease<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>>;

    /// Returns a `Metrics`.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;

    fn node_ids(&self) -> Vec<u32>;

    /// Returns how long to wait until an id is available, if that is known without a lease.
    fn ready_in(&self, py: Python<'_>) -> PyResult<Option<Duration>>;

    /// Closes it without waiting: the thread that collects it holds the GIL.
    fn stop(&self);

    fn close(&self, py: Python<'_>) -> PyResult<()>;
}

impl<F: ConfigSource> DynGenerator for AnyGenerator<F> {
    fn batch(&self, py: Python<'_>, count: usize) -> PyResult<Batch<i64>> {
        // Checking that takes longer than making a small one.
        if count >= LARGE_BATCH {
            self.retry(py, |flake| {
                caught(|| match flake {
                    Opened::Manual(manual) => manual.check_fill(count, flake.batch_call()),
                    Opened::Leased(leased, _) => leased.try_check_fill(count, flake.batch_call()),
                })
            })?;
        }
        Batch::of(count)
    }

    fn fill(&self, py: Python<'_>, ids: &mut [i64]) -> PyResult<()> {
        let fill = |flake: &Opened<'_, F>, ids: &mut [i64]| {
            caught(|| match flake {
                Opened::Manual(manual) => manual.fill_with(ids, flake.batch_call()),
                Opened::Leased(leased, _) => leased.try_fill(ids, flake.batch_call()),
            })
        };
        let filled = if ids.len() < LARGE_BATCH {
            self.retry(py, |flake| fill(flake, ids))
        } else {
            self.retry(py, |flake| py.detach(|| fill(flake, ids)))
        };
        // A panic may have left ids there, or what was there before.
        filled.inspect_err(|_| ids.fill(0))
    }

    fn extend_lease(&self, end_exclusive: i64) -> PyResult<()> {
        match self {
            Self::Manual(flake) => call(|| flake.extend_lease(end_exclusive)),
            Self::Leased(..) | Self::Lazy(_) => Err(raise(bindings::lease_of_store())),
        }
    }

    fn lease<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.made_already() {
            None => Ok(None),
            Some(Opened::Manual(flake)) => {
                let lease = flake.lease().map(|lease| Bound::new(py, Lease { lease }));
                Ok(lease.transpose()?.map(Bound::into_any))
            }
            Some(Opened::Leased(leased, _)) => {
                leased.lease().map(|status| lease::status(py, status)).transpose()
            }
        }
    }

    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.made_already() {
            None => metrics::of_leased(py, &LeasedMetrics::default()),
            Some(Opened::Manual(flake)) => metrics::of_generator(py, &flake.metrics()),
            Some(Opened::Leased(leased, _)) => metrics::of_leased(py, &leased.metrics()),
        }
    }

    fn node_ids(&self) -> Vec<u32> {
        match self.made_already() {
            None => Vec::new(),
            Some(Opened::Manual(flake)) => flake.node_ids().to_vec(),
            Some(Opened::Leased(leased, _)) => leased.node_ids(),
        }
    }

    fn ready_in(&self, py: Python<'_>) -> PyResult<Option<Duration>> {
        let made = self.made(py)?;
        let ready_in = caught(|| match made {
            Opened::Manual(flake) => flake.ready_in(),
            Opened::Leased(leased, _) => leased.try_ready_in(),
        });
        let is_leased = !matches!(made, Opened::Manual(_));
        match ready_in {
            Err(error) if is_leased && has_no_lease_yet(&error) => Ok(None),
            other => other.map(Some).map_err(|error| made.raise(py, error)),
        }
    }

    fn stop(&self) {
        match self {
            Self::Manual(_) => {}
            Self::Leased(leased, _) => leased.stop(),
            Self::Lazy(lazy) => lazy.stop(),
        }
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        call(|| {
            self.stop(); // also one that has not been used yet
            match self.made_already() {
                None | Some(Opened::Leased(_, Wait::Never)) => {}
                Some(Opened::Manual(flake)) => drop(flake.close()),
                Some(Opened::Leased(leased, Wait::MaxWait)) => py.detach(|| leased.close()),
            }
            Ok(())
        })
    }
}
