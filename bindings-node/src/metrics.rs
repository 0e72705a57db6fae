//! What a generator has done, as JavaScript sees it.

use std::collections::BTreeMap;

use randflake::{ErrorKind, Metrics, Result};
use randflake_leases::LeasedMetrics;
use randflake_tickets::TicketsMetrics;

use crate::ffi::{Js, Value};

/// Makes the metrics of a generator with node ids of its own, which asks no store.
pub(crate) fn of_generator<'call>(js: Js<'call>, metrics: &Metrics) -> Result<Value<'call>> {
    object(js, metrics.ids_generated, &metrics.waits, 0, 0.0, &[], None)
}

pub(crate) fn of_leased<'call>(js: Js<'call>, metrics: &LeasedMetrics) -> Result<Value<'call>> {
    object(
        js,
        metrics.ids_generated,
        &metrics.waits,
        metrics.store_requests,
        metrics.store_request_seconds,
        &metrics.store_errors,
        metrics.clock_skew_seconds,
    )
}

/// Makes the metrics of tickets.
#[allow(clippy::cast_precision_loss, reason = "counts far below 2^53")]
pub(crate) fn of_tickets(js: Js<'_>, metrics: TicketsMetrics) -> Result<Value<'_>> {
    let last_error = metrics.last_error.map(|error| js.error(&error)).transpose()?;
    js.object(&[
        (c"numbersGenerated", js.convert(metrics.numbers_generated as f64)?),
        (c"reserve", js.convert(metrics.reserve as f64)?),
        (c"blocksDrawn", js.convert(metrics.blocks_drawn as f64)?),
        (c"waits", js.convert(metrics.waits as f64)?),
        (c"storeRequests", js.convert(metrics.store_requests as f64)?),
        (c"storeRequestSeconds", js.convert(metrics.store_request_seconds)?),
        (c"storeErrors", js.convert(by_code(&metrics.store_errors))?),
        (c"lastError", js.convert(last_error)?),
    ])
}

#[allow(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn object<'call>(
    js: Js<'call>,
    ids_generated: u64,
    waits: &[(ErrorKind, u64)],
    store_requests: u64,
    store_request_seconds: f64,
    store_errors: &[(ErrorKind, u64)],
    clock_skew_seconds: Option<i64>,
) -> Result<Value<'call>> {
    js.object(&[
        (c"idsGenerated", js.convert(ids_generated as f64)?),
        (c"waits", js.convert(by_code(waits))?),
        (c"storeRequests", js.convert(store_requests as f64)?),
        (c"storeRequestSeconds", js.convert(store_request_seconds)?),
        (c"storeErrors", js.convert(by_code(store_errors))?),
        (c"clockSkewSeconds", js.convert(clock_skew_seconds)?),
    ])
}

#[allow(clippy::cast_precision_loss, reason = "as above")]
fn by_code(counts: &[(ErrorKind, u64)]) -> BTreeMap<&'static str, f64> {
    counts.iter().map(|(kind, count)| (kind.code(), *count as f64)).collect()
}
