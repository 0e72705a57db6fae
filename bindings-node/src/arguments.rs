//! What callers pass, checked: numbers are whole and in range, ids are bigints or text.

use std::{ffi::CStr, time::Duration};

use randflake::{Error, ErrorKind, Id, Lease, Result, Secret, layout::MAX_NODES};

use crate::{clock::InjectedClock, raw::Value};

/// Largest number up to which numbers hold every integer.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// What a generator is made from, besides its node ids and secret.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) lease: Option<Lease>,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) max_drift: Option<u32>,
    pub(crate) restart_safe: Option<bool>,
    pub(crate) clock: Option<InjectedClock>,
}

/// What a generator is leased with, besides its store and secret.
#[derive(Default)]
pub(crate) struct LeaseOptions {
    pub(crate) node_count: Option<u32>,
    pub(crate) ttl: Option<u32>,
    pub(crate) max_skew: Option<u32>,
    pub(crate) namespace: Option<String>,
    pub(crate) acquire_timeout: Option<Duration>,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) max_drift: Option<u32>,
}

const OPTIONS: &[&str] = &["lease", "maxWaitMs", "maxDriftSeconds", "restartSafe", "clock"];
const LEASE_OPTIONS: &[&str] = &[
    "nodeCount",
    "ttlSeconds",
    "maxSkewSeconds",
    "namespace",
    "acquireTimeoutMs",
    "maxWaitMs",
    "maxDriftSeconds",
];

pub(crate) fn node_ids(value: Value<'_>) -> Result<Vec<u32>> {
    let node_id = |value: Value<'_>| {
        let whole = integer(value).and_then(|number| u32::try_from(number).ok());
        whole.ok_or_else(|| Error::invalid_node(value.description()))
    };
    match value.elements(MAX_NODES, Error::too_many_nodes)? {
        Some(listed) => listed.into_iter().map(node_id).collect(),
        None => node_id(value).map(|only| vec![only]),
    }
}

pub(crate) fn secret(value: Value<'_>) -> Result<Secret> {
    let bytes = || value.copied::<u8>().map(|bytes| Secret::from_bytes(&bytes));
    let parsed = value.read_text(str::parse).or_else(bytes);
    parsed.unwrap_or_else(|| Err(Error::invalid_secret(value.description())))
}

pub(crate) fn options(value: Value<'_>) -> Result<Options> {
    let mut options = Options::default();
    if value.is_undefined() {
        return Ok(options);
    }
    check_names(value, "the options", OPTIONS, ErrorKind::InvalidArgument)?;
    options.lease = value.get(c"lease")?.map(lease).transpose()?;
    options.max_wait = milliseconds(value, c"maxWaitMs")?;
    options.max_drift = whole(value, c"maxDriftSeconds", "seconds")?;
    if let Some(safe) = value.get(c"restartSafe")? {
        let safe = safe.as_boolean().ok_or_else(|| invalid("restartSafe", "a boolean", safe))?;
        options.restart_safe = Some(safe);
    }
    options.clock = value.get(c"clock")?.map(InjectedClock::new).transpose()?;
    Ok(options)
}

pub(crate) fn lease_options(value: Value<'_>) -> Result<LeaseOptions> {
    let mut options = LeaseOptions::default();
    if value.is_undefined() {
        return Ok(options);
    }
    check_names(value, "the options", LEASE_OPTIONS, ErrorKind::InvalidArgument)?;
    options.node_count = whole(value, c"nodeCount", "node ids")?;
    options.ttl = whole(value, c"ttlSeconds", "seconds")?;
    options.max_skew = whole(value, c"maxSkewSeconds", "seconds")?;
    if let Some(name) = value.get(c"namespace")? {
        let text = name.read_text(str::to_owned);
        options.namespace = Some(text.ok_or_else(|| invalid("namespace", "a string", name))?);
    }
    options.acquire_timeout = milliseconds(value, c"acquireTimeoutMs")?;
    options.max_wait = milliseconds(value, c"maxWaitMs")?;
    options.max_drift = whole(value, c"maxDriftSeconds", "seconds")?;
    Ok(options)
}

/// Takes where a store is.
pub(crate) fn store(value: Value<'_>) -> Result<String> {
    value
        .read_text(str::to_owned)
        .ok_or_else(|| invalid("the store", "the path of a file: a string or a file: URL", value))
}

fn milliseconds(options: Value<'_>, name: &CStr) -> Result<Option<Duration>> {
    let duration = |value: Value<'_>| {
        let seconds = value.as_number().map(|ms| ms / 1000.0);
        let exact = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        exact.ok_or_else(|| invalid(&name.to_string_lossy(), "milliseconds, at least 0", value))
    };
    options.get(name)?.map(duration).transpose()
}

fn whole(options: Value<'_>, name: &CStr, unit: &str) -> Result<Option<u32>> {
    let number = |value: Value<'_>| {
        let whole = integer(value).and_then(|number| u32::try_from(number).ok());
        let form = || format!("a whole number of {unit}, at least 0");
        whole.ok_or_else(|| invalid(&name.to_string_lossy(), &form(), value))
    };
    options.get(name)?.map(number).transpose()
}

fn lease(value: Value<'_>) -> Result<Lease> {
    check_names(value, "a lease", &["start", "endExclusive"], ErrorKind::InvalidLease)?;
    let second = |name: &CStr| match value.get(name)? {
        Some(second) => lease_second(second),
        None => Err(not_a_lease_second("undefined")),
    };
    Lease::new(second(c"start")?, second(c"endExclusive")?)
}

pub(crate) fn lease_second(value: Value<'_>) -> Result<i64> {
    integer(value).ok_or_else(|| not_a_lease_second(&value.description()))
}

fn not_a_lease_second(got: &str) -> Error {
    Error::new(
        ErrorKind::InvalidLease,
        format!("start and endExclusive of a lease must be whole unix seconds, got {got}"),
    )
}

/// Takes an id as a bigint or as text.
pub(crate) fn id(value: Value<'_>) -> Result<Id> {
    value.read_text(str::parse).unwrap_or_else(|| numeric_id(value))
}

pub(crate) fn numeric_id(value: Value<'_>) -> Result<Id> {
    value.as_i64().map(Id::from).ok_or_else(|| {
        if value.is_bigint() {
            Error::invalid_id(
                "a bigint out of that range; BigInt.asIntN(64, id) makes an unsigned one signed",
            )
        } else if value.as_number().is_some() {
            Error::invalid_id("a number, which does not hold 64 bits; pass a bigint")
        } else {
            Error::invalid_id(value.description())
        }
    })
}

pub(crate) fn id_text(value: Value<'_>) -> Result<Id> {
    value.read_text(str::parse).unwrap_or_else(|| {
        Err(Error::new(
            ErrorKind::InvalidId,
            format!("the text of an id must be a string, got {}", value.description()),
        ))
    })
}

pub(crate) fn raw(value: Value<'_>) -> Result<u64> {
    value.as_u64().ok_or_else(|| {
        Error::invalid_raw(if value.is_bigint() {
            "a bigint out of that range".into()
        } else if value.as_number().is_some() {
            "a number, which does not hold 64 bits; pass a bigint".into()
        } else {
            value.description()
        })
    })
}

/// The error of a value that should be a `BigInt64Array`.
pub(crate) fn not_ids(got: Value<'_>) -> Error {
    invalid(
        "ids",
        "a BigInt64Array whose memory is not shared between threads and was not transferred",
        got,
    )
}

fn integer(value: Value<'_>) -> Option<i64> {
    let whole = |number: &f64| number.fract() == 0.0 && number.abs() <= MAX_SAFE_INTEGER;
    #[allow(clippy::cast_possible_truncation, reason = "whole and far below 2^63")]
    value.as_number().filter(whole).map(|number| number as i64)
}

fn check_names(value: Value<'_>, what: &str, known: &[&str], kind: ErrorKind) -> Result<()> {
    let names = known.join(", ");
    if !value.is_object() {
        let got = value.description();
        return Err(Error::new(kind, format!("{what} must be an object with {names}, got {got}")));
    }
    match value.names()?.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(_) => Err(Error::new(kind, format!("{what} can only have the names {names}"))),
    }
}

fn invalid(name: &str, form: &str, got: Value<'_>) -> Error {
    let got = got.description();
    Error::new(ErrorKind::InvalidArgument, format!("{name} must be {form}, got {got}"))
}
