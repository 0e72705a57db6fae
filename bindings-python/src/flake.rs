//! What generators of both classes have in common: node ids given by hand, or leased ones.

use std::sync::Arc;

use pyo3::{prelude::*, types::PyTuple};
use randflake::{Error, ErrorKind, Format, Generator, Reach, Result};
use randflake_leases::{Leased, LeasedBuilder, LeasedFormat, Location};

use crate::{
    arguments::{
        AcquireTimeout, AllowWeakStore, Create, MaxDrift, MaxSkew, MaxWait, NamespaceName,
        NodeCount, Store, Ttl, UnixSecond,
    },
    buffer::Batch,
    client::Terms,
    clock::{self, Clock},
    errors::{call, caught, made, made_of, raise, wrong_type},
    exit,
    lease::{self, Lease},
};

/// Batches from this size on release the GIL. Making fewer takes less time than getting the GIL
/// back from a busy thread.
pub(crate) const LARGE_BATCH: usize = 16_384;

pub(crate) enum AnyFlake<F: Format> {
    /// Boxed, since Python's memory is not aligned for it.
    ByHand(Box<Generator<F, Clock>>),
    Leased(Arc<Leased<F, Clock>>),
}

/// What a leased generator can be told, besides where its leases and ids come from.
pub(crate) struct LeaseOptions {
    pub(crate) node_count: NodeCount,
    pub(crate) ttl: Option<Ttl>,
    pub(crate) namespace: NamespaceName,
    pub(crate) acquire_timeout: AcquireTimeout,
    pub(crate) max_wait: MaxWait,
    pub(crate) max_drift: Option<MaxDrift>,
    pub(crate) max_skew: MaxSkew,
    pub(crate) create: Option<Create>,
    pub(crate) allow_weak_store: AllowWeakStore,
}

impl<F: LeasedFormat> AnyFlake<F> {
    /// Leases from a store, without the GIL.
    pub(crate) fn lease_from(
        py: Python<'_>,
        store: Store,
        builder: impl FnOnce(Location) -> LeasedBuilder<F, Clock>,
        options: LeaseOptions,
    ) -> PyResult<Self> {
        let create = options.create.map(|create| create.0);
        let terms = Terms { create, allow_weak_store: options.allow_weak_store.0 };
        let (location, needs_python) = match store {
            Store::Here(location) => (location, false),
            Store::Server(source) => (source.location(terms), true),
        };
        let mut builder = builder(location)
            .node_count(options.node_count.0)
            .namespace(options.namespace.0)
            .acquire_timeout(options.acquire_timeout.0)
            .max_wait(options.max_wait.0)
            .max_skew(options.max_skew.0);
        if let (Some(create), false) = (create, needs_python) {
            builder = builder.create(create);
        }
        if let Some(ttl) = options.ttl {
            builder = builder.ttl(ttl.0);
        }
        if let Some(max_drift) = options.max_drift {
            builder = builder.max_drift(max_drift.0);
        }
        exit::register_in_child(py)?;
        let opened = py.detach(|| call(|| builder.open()));
        let leased = Arc::new(opened.map_err(|raised| made(py, raised))?);
        exit::keep(Arc::clone(&leased) as _, needs_python);
        Ok(Self::Leased(leased))
    }
}

impl<F: Format> AnyFlake<F> {
    pub(crate) fn generate(&self, py: Python<'_>) -> PyResult<F::Id> {
        self.ask(py, |flake| flake.try_generate(false))
    }

    /// Generates an id, if that neither takes waiting nor anything of Python.
    #[inline]
    pub(crate) fn generate_at_once(&self) -> Option<F::Id> {
        self.try_generate(true).ok()
    }

    // For both ways, so that the compiler asks the thread for what is its own only once.
    #[inline]
    fn try_generate(&self, at_once: bool) -> Result<F::Id> {
        let generate = || match self {
            Self::ByHand(flake) => flake.generate(),
            Self::Leased(leased) => leased.try_generate(),
        };
        clock::bounded(at_once, || caught(generate))
    }

    /// Takes memory for a batch, unless it would be refused.
    pub(crate) fn batch(&self, py: Python<'_>, count: usize) -> PyResult<Batch<i64>> {
        // Smaller ones cost less than knowing that.
        if count >= LARGE_BATCH {
            self.ask(py, |flake| {
                caught(|| match flake {
                    Self::ByHand(flake) => flake.check_fill(count, Reach::Lease),
                    Self::Leased(leased) => leased.try_check_fill(count, Reach::Renewals),
                })
            })?;
        }
        Batch::of(count)
    }

    /// Fills memory that no other thread sees, so the GIL can be released. After an error it is
    /// zeroed.
    pub(crate) fn fill_private(&self, py: Python<'_>, ids: &mut [i64]) -> PyResult<()> {
        let fill = |flake: &Self, ids: &mut [i64]| {
            caught(|| match flake {
                Self::ByHand(flake) => flake.fill_i64_to(ids, Reach::Lease),
                Self::Leased(leased) => leased.try_fill_i64(ids, Reach::Renewals),
            })
        };
        let filled = if ids.len() < LARGE_BATCH {
            self.ask(py, |flake| fill(flake, ids))
        } else {
            self.ask(py, |flake| py.detach(|| fill(flake, ids)))
        };
        // A panic may have left ids there, or what was there before.
        filled.inspect_err(|_| ids.fill(0))
    }

    /// Asks the generator; asks again where something can be done about its error.
    #[inline]
    fn ask<T>(&self, py: Python<'_>, mut ask: impl FnMut(&Self) -> Result<T>) -> PyResult<T> {
        let mut recovered = false;
        // A loop, because the compiler merges a call into its caller only where it is written once.
        loop {
            match ask(self) {
                Ok(answer) => return Ok(answer),
                Err(error) if recovered => return Err(self.explained(py, error)),
                Err(error) => self.recover(py, error)?,
            }
            recovered = true;
        }
    }

    /// Gets the lease that a call has missed, without the GIL.
    #[cold]
    fn recover(&self, py: Python<'_>, error: Error) -> PyResult<()> {
        let Self::Leased(leased) = self else { return Err(made(py, raise(error))) };
        if error.kind() == ErrorKind::Forked {
            exit::register_in_child(py)?;
        }
        py.detach(|| caught(|| leased.recover(error))).map_err(|error| made_of(py, error))
    }

    /// Makes the exception of an error that came back after all that could be done about it.
    #[cold]
    fn explained(&self, py: Python<'_>, error: Error) -> PyErr {
        match self {
            Self::ByHand(_) => raise(error),
            Self::Leased(leased) => made_of(py, leased.explain(error)),
        }
    }

    pub(crate) fn extend_lease(&self, end_exclusive: &UnixSecond) -> PyResult<()> {
        match self {
            Self::ByHand(flake) => call(|| flake.extend_lease(end_exclusive.0)),
            Self::Leased(_) => Err(raise(Error::new(
                ErrorKind::InvalidLease,
                "the lease of this generator comes from a store, and is extended by itself",
            ))),
        }
    }

    pub(crate) fn lease<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Self::ByHand(flake) => {
                let lease = flake.lease().map(|lease| Bound::new(py, Lease { lease }));
                Ok(lease.transpose()?.map(Bound::into_any))
            }
            Self::Leased(leased) => {
                leased.lease().map(|status| lease::status(py, status)).transpose()
            }
        }
    }

    pub(crate) fn node_ids(&self) -> Vec<u32> {
        match self {
            Self::ByHand(flake) => flake.node_ids().to_vec(),
            Self::Leased(leased) => leased.node_ids(),
        }
    }

    pub(crate) fn node_ids_tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.node_ids())
    }

    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let close = || {
            match self {
                Self::ByHand(flake) => drop(flake.close()),
                Self::Leased(leased) => py.detach(|| leased.close()),
            }
            Ok(())
        };
        call(close)
    }
}

/// Collecting a generator waits for nobody: whoever collects has the GIL.
impl<F: Format> Drop for AnyFlake<F> {
    fn drop(&mut self) {
        if let Self::Leased(leased) = self {
            leased.stop();
        }
    }
}

/// The error of pickle and copy.
#[cold]
pub(crate) fn not_to_be_copied() -> PyErr {
    wrong_type(&Error::new(
        ErrorKind::InvalidArgument,
        "a generator cannot be pickled or copied, since the copy would repeat its ids; make one in \
         each process, with node ids of its own",
    ))
}
