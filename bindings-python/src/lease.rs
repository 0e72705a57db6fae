use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyTuple, PyType},
};
use randflake_leases::LeaseStatus;

use crate::{arguments::UnixSecond, errors::raise};

/// The seconds a generator may stamp: start up to, but not including, end_exclusive.
///
/// Both are absolute unix seconds from 1730000000 to 2803741824. One lease serves one process
/// life: never grant a node id a second that an earlier lease of it covered.
///
/// Raises InvalidArgumentError with the code INVALID_LEASE if start is not before end_exclusive
/// or either is out of range.
///
/// >>> from randflake import Lease
/// >>> lease = Lease(1763640000, 1763640300)
/// >>> lease.end_exclusive - lease.start
/// 300
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

    /// The first unix second of the lease.
    #[getter]
    fn start(&self) -> i64 {
        self.lease.start()
    }

    /// The first unix second after the lease.
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

/// Makes a `randflake.LeaseStatus`.
pub(crate) fn status(py: Python<'_>, status: LeaseStatus) -> PyResult<Bound<'_, PyAny>> {
    static LEASE_STATUS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

    LEASE_STATUS.import(py, "randflake.leases", "LeaseStatus")?.call1((
        status.state.name(),
        PyTuple::new(py, status.node_ids)?,
        status.start,
        status.end_exclusive,
        status.time_left.as_secs_f64(),
        status.renewals,
        status.losses,
        status.last_error.map(|error| raise(error).into_value(py)),
        status.last_error_at,
    ))
}
