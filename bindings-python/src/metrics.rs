//! What a generator has done, as a `randflake.Metrics`.

use pyo3::{
    prelude::*,
    types::{IntoPyDict, PyDict},
};
use randflake::{ErrorKind, Metrics};
use randflake_leases::LeasedMetrics;
use randflake_tickets::TicketsMetrics;

use crate::errors::raise;

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

pub(crate) fn of_tickets(py: Python<'_>, metrics: TicketsMetrics) -> PyResult<Bound<'_, PyAny>> {
    let last_error = metrics.last_error.map(|error| raise(error).into_value(py));
    once!().import(py, "randflake.tickets", "TicketsMetrics")?.call1((
        metrics.numbers_generated,
        metrics.reserve,
        metrics.blocks_drawn,
        metrics.waits,
        metrics.store_requests,
        metrics.store_request_seconds,
        by_code(py, &metrics.store_errors)?,
        last_error,
    ))
}

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    once!().import(py, "randflake.leases", "Metrics")
}

fn by_code<'py>(py: Python<'py>, counts: &[(ErrorKind, u64)]) -> PyResult<Bound<'py, PyDict>> {
    counts.iter().map(|(kind, count)| (kind.code(), count)).into_py_dict(py)
}
