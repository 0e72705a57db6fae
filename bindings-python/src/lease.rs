use pyo3::{
    prelude::*,
    types::{PyTuple, PyType},
};
use randflake::ErrorKind;
use randflake_leases::LeaseStatus;

use crate::{
    arguments::UnixSecond,
    convert::{argument, instance, must},
    errors::raise,
};

#[doc = doc!(Lease)]
#[pyclass(frozen, eq, hash, module = "randflake")]
#[derive(Eq, Hash, PartialEq)]
pub(crate) struct Lease {
    pub(crate) lease: randflake::Lease,
}

#[pymethods]
impl Lease {
    #[new]
    fn new(start: UnixSecond, end_exclusive: UnixSecond) -> PyResult<Self> {
        let lease = randflake::Lease::new(start.0, end_exclusive.0).map_err(raise)?;
        Ok(Self { lease })
    }

    #[doc = doc!(Lease.start)]
    #[getter]
    fn start(&self) -> i64 {
        self.lease.start()
    }

    #[doc = doc!(Lease.end_exclusive)]
    #[getter]
    fn end_exclusive(&self) -> i64 {
        self.lease.end_exclusive()
    }

    fn __repr__(&self) -> String {
        format!("Lease(start={}, end_exclusive={})", self.start(), self.end_exclusive())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (i64, i64)) {
        (py.get_type::<Self>(), (self.start(), self.end_exclusive()))
    }
}

argument!(
    /// A lease that the caller gives.
    GivenLease(randflake::Lease),
    |object| {
        let error = must(ErrorKind::InvalidLease, "lease must be a randflake.Lease or None");
        Ok(instance::<Lease>(object, error)?.get().lease)
    }
);

/// Makes a `randflake.LeaseStatus`.
pub(crate) fn status(py: Python<'_>, status: LeaseStatus) -> PyResult<Bound<'_, PyAny>> {
    once!().import(py, "randflake.leases", "LeaseStatus")?.call1((
        status.state.name(),
        PyTuple::new(py, status.node_ids)?,
        status.start,
        status.end_exclusive,
        status.time_left.as_secs_f64(),
        status.renewals,
        status.losses,
        status.last_error.map(|error| raise(error).into_value(py)),
        status.last_error_at,
        status.store,
        status.namespace,
        status.replacements,
    ))
}
