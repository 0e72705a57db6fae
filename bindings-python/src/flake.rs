//! A generator of the core, of any format, as Python calls it.

use std::{sync::Arc, time::Duration};

use pyo3::prelude::*;
use randflake::{Clock as _, Error, ErrorKind, Format, Generator, Reach, Result, bindings};
use randflake_leases::{Leased, LeasedFormat};

use crate::{
    buffer::{Batch, LARGE_BATCH},
    client::Store,
    clock::Clock,
    errors::{call, caught, raise},
    exit,
    lease::{self, Lease},
    options::{self, Options},
};

/// A generator, which both its Python class and the base of that class have.
pub(crate) enum AnyFlake<F: Format> {
    /// With manually assigned node ids.
    Manual(Arc<Generator<F, Clock>>),
    Leased(Arc<Leased<F, Clock>>),
    /// A leased one whose calls never wait, as the thread of an event loop needs it.
    NeverWaiting(Arc<Leased<F, Clock>>),
}

impl<F: LeasedFormat> AnyFlake<F> {
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
        store: Store,
        config: F::Config,
        options: Option<Options<'_>>,
    ) -> PyResult<Self> {
        let (builder, needs_python) = options::leased(py, store, config, options)?;
        exit::register_in_child(py)?;
        let opened = py.detach(|| call(|| builder.open()));
        let leased = opened.map_err(|raised| exit::raise_unless_finalizing(py, raised))?;
        let flake = Self::Leased(Arc::new(leased));
        exit::close_at_exit(Arc::new(flake.clone()), needs_python);
        Ok(flake)
    }

    /// Returns the same generator, with calls that never wait if it is leased.
    pub(crate) fn without_waits(&self) -> Self {
        match self {
            Self::Leased(leased) => Self::NeverWaiting(Arc::clone(leased)),
            other => other.clone(),
        }
    }

    /// Returns whether this runs on the machine's clock.
    pub(crate) fn is_on_system_clock(&self) -> bool {
        match self {
            Self::Manual(flake) => flake.clock().is_system(),
            Self::Leased(_) | Self::NeverWaiting(_) => true,
        }
    }

    pub(crate) fn generate(&self, py: Python<'_>) -> PyResult<F::Id> {
        self.retry(py, |flake| {
            caught(|| match flake {
                Self::Manual(flake) => flake.generate(),
                Self::Leased(leased) => leased.try_generate(),
                Self::NeverWaiting(leased) => leased.generate_without_wait(),
            })
        })
    }

    /// Generates an id, unless that fails, waits or calls Python.
    #[inline]
    pub(crate) fn generate_at_once(&self) -> Option<F::Id> {
        let generate = || {
            Ok(match self {
                Self::Manual(flake) => flake.generate_at_once(),
                Self::Leased(leased) | Self::NeverWaiting(leased) => leased.generate_at_once(),
            })
        };
        caught(generate).ok().flatten()
    }

    pub(crate) fn generate_many(&self, py: Python<'_>, count: usize) -> PyResult<Batch<i64>> {
        let mut ids = self.batch(py, count)?;
        self.fill(py, &mut ids)?;
        Ok(ids)
    }

    /// Calls the generator; again, once what its error says has been done about.
    #[inline]
    fn retry<T>(&self, py: Python<'_>, mut call: impl FnMut(&Self) -> Result<T>) -> PyResult<T> {
        let mut recovered = false;
        // A loop, because the compiler inlines a call only where it is written once.
        loop {
            match call(self) {
                Ok(answer) => return Ok(answer),
                Err(error) if recovered => return Err(self.raise(py, error)),
                Err(error) => self.recover(py, error)?,
            }
            recovered = true;
        }
    }

    /// Waits, without the GIL, for the lease that a call needs.
    #[cold]
    fn recover(&self, py: Python<'_>, error: Error) -> PyResult<()> {
        let Self::Leased(leased) = self else { return Err(self.raise(py, error)) };
        if error.kind() == ErrorKind::Forked {
            exit::register_in_child(py)?;
        }
        py.detach(|| caught(|| leased.recover(error)))
            .map_err(|error| exit::raise_with_cause(py, error))
    }

    #[cold]
    fn raise(&self, py: Python<'_>, error: Error) -> PyErr {
        match self {
            Self::Manual(_) => exit::raise_unless_finalizing(py, raise(error)),
            Self::NeverWaiting(_) if error.kind() == ErrorKind::Forked => {
                let why = "this process was forked and has no lease of its own yet; await ready(), \
                           which takes one";
                exit::raise_unless_finalizing(py, raise(Error::new(ErrorKind::Forked, why)))
            }
            Self::Leased(leased) | Self::NeverWaiting(leased) => {
                exit::raise_with_cause(py, leased.explain(error))
            }
        }
    }
}

impl<F: Format> Clone for AnyFlake<F> {
    fn clone(&self) -> Self {
        match self {
            Self::Manual(flake) => Self::Manual(Arc::clone(flake)),
            Self::Leased(leased) => Self::Leased(Arc::clone(leased)),
            Self::NeverWaiting(leased) => Self::NeverWaiting(Arc::clone(leased)),
        }
    }
}

/// What a [`Generator`](crate::generator::Generator) needs, whatever the type of an id.
pub(crate) trait Shared: Send + Sync {
    /// Takes memory for a batch, unless it would be refused.
    fn batch(&self, py: Python<'_>, count: usize) -> PyResult<Batch<i64>>;

    /// Fills memory that no other thread sees, so the GIL can be released. After an error it is
    /// zeroed.
    fn fill(&self, py: Python<'_>, ids: &mut [i64]) -> PyResult<()>;

    fn extend_lease(&self, end_exclusive: i64) -> PyResult<()>;

    /// Returns a `Lease` or a `LeaseStatus`, or `None`.
    fn lease<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>>;

    fn node_ids(&self) -> Vec<u32>;

    /// Returns how long to wait until an id is available, if that is known without a lease.
    fn ready_in(&self, py: Python<'_>) -> PyResult<Option<Duration>>;

    fn close(&self, py: Python<'_>) -> PyResult<()>;

    /// Closes the generator without waiting: a thread that collects it has the GIL.
    fn stop(&self);

    /// Returns whether it has no node id that must be given back.
    fn is_over(&self) -> bool;
}

impl<F: LeasedFormat> Shared for AnyFlake<F> {
    fn batch(&self, py: Python<'_>, count: usize) -> PyResult<Batch<i64>> {
        // Knowing that takes longer than making a small one.
        if count >= LARGE_BATCH {
            self.retry(py, |flake| {
                caught(|| match flake {
                    Self::Manual(flake) => flake.check_fill(count, Reach::Lease),
                    Self::Leased(leased) => leased.try_check_fill(count, Reach::Renewals),
                    Self::NeverWaiting(leased) => leased.check_fill_without_wait(count),
                })
            })?;
        }
        Batch::of(count)
    }

    fn fill(&self, py: Python<'_>, ids: &mut [i64]) -> PyResult<()> {
        let fill = |flake: &Self, ids: &mut [i64]| {
            caught(|| match flake {
                Self::Manual(flake) => flake.fill_i64_to(ids, Reach::Lease),
                Self::Leased(leased) => leased.try_fill_i64(ids, Reach::Renewals),
                Self::NeverWaiting(leased) => leased.fill_i64_without_wait(ids),
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
            Self::Leased(_) | Self::NeverWaiting(_) => Err(raise(bindings::lease_of_store())),
        }
    }

    fn lease<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Self::Manual(flake) => {
                let lease = flake.lease().map(|lease| Bound::new(py, Lease { lease }));
                Ok(lease.transpose()?.map(Bound::into_any))
            }
            Self::Leased(leased) | Self::NeverWaiting(leased) => {
                leased.lease().map(|status| lease::status(py, status)).transpose()
            }
        }
    }

    fn node_ids(&self) -> Vec<u32> {
        match self {
            Self::Manual(flake) => flake.node_ids().to_vec(),
            Self::Leased(leased) | Self::NeverWaiting(leased) => leased.node_ids(),
        }
    }

    fn ready_in(&self, py: Python<'_>) -> PyResult<Option<Duration>> {
        let ready_in = caught(|| match self {
            Self::Manual(flake) => flake.ready_in(),
            Self::Leased(leased) | Self::NeverWaiting(leased) => leased.try_ready_in(),
        });
        match ready_in {
            Err(error) if error.kind() == ErrorKind::Forked && !matches!(self, Self::Manual(_)) => {
                Ok(None)
            }
            other => other.map(Some).map_err(|error| self.raise(py, error)),
        }
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        call(|| {
            match self {
                Self::Manual(flake) => drop(flake.close()),
                Self::Leased(leased) => py.detach(|| leased.close()),
                Self::NeverWaiting(leased) => leased.stop(),
            }
            Ok(())
        })
    }

    fn stop(&self) {
        if let Self::Leased(leased) | Self::NeverWaiting(leased) = self {
            leased.stop();
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Manual(_) => true,
            Self::Leased(leased) | Self::NeverWaiting(leased) => leased.is_over(),
        }
    }
}
