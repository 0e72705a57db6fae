//! What a generator has done, as a `randflake.Metrics`.

use pyo3::{
    prelude::*,
    types::{IntoPyDict, PyDict},
};
use randflake::{ErrorKind, Metrics};
use randflake_leases::LeasedMetrics;

pub(crate) fn of_generator<'py>(py: Python<'py>, metrics: &Metrics) -> PyResult<Bound<'py, PyAny>> {
    let waits = by_code(py, &metrics.waits)?;
    class(py)?.call1((metrics.ids_generated, waits, py.None(), py.None(), py.None(), py.None()))
}

pub(crate) fn of_leased<'py>(
    py: Python<'py>,
    metrics: &LeasedMetrics,
) -> PyResult<Bound<'py, PyAny>> {
    class(py)?.call1((
        metrics.ids_generated,
        by_code(py, &metrics.waits)?,
        metrics.store_requests,
        metrics.store_request_seconds,
        by_code(py, &metrics.store_errors)?,
        metrics.clock_skew_seconds,
    ))
}

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    once!().import(py, "randflake.leases", "Metrics")
}

fn by_code<'py>(py: Python<'py>, counts: &[(ErrorKind, u64)]) -> PyResult<Bound<'py, PyDict>> {
    counts.iter().map(|(kind, count)| (kind.code(), count)).into_py_dict(py)
}
