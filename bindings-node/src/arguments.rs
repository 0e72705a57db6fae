//! What callers pass, checked: numbers are whole and in range, ids are bigints or text.

use std::{ffi::CStr, sync::Arc, time::Duration};

use randflake::{Error, ErrorKind, Id, Layout, Lease, Result, Secret, bindings};
use randflake_leases::{InitMode, Namespace, NodeLease};
use zeroize::Zeroizing;

use crate::{
    clock::InjectedClock,
    raw::{Callback, Value},
};

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
    pub(crate) create: Option<bool>,
    pub(crate) allow_weak: Option<bool>,
}

/// Where leases come from.
pub(crate) enum Store {
    /// Of a file.
    Path(String),
    Server(Server),
}

/// A server, and what runs statements on it.
pub(crate) struct Server {
    pub(crate) engine: Engine,
    pub(crate) run: Arc<Callback>,
    pub(crate) create: bool,
    pub(crate) allow_weak: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Engine {
    Postgresql,
    Redis,
    Etcd,
}

pub(crate) const OPTIONS: &[&str] =
    &["lease", "maxWaitMs", "maxDriftSeconds", "restartSafe", "clock"];
pub(crate) const SNOWFLAKE_OPTIONS: &[&str] =
    &["layout", "lease", "maxWaitMs", "maxDriftSeconds", "restartSafe", "clock"];
pub(crate) const LEASE_OPTIONS: &[&str] = SNOWFLAKE_LEASE_OPTIONS.split_at(1).1;
pub(crate) const SNOWFLAKE_LEASE_OPTIONS: &[&str] = &[
    "layout",
    "nodeCount",
    "ttlSeconds",
    "maxSkewSeconds",
    "namespace",
    "acquireTimeoutMs",
    "maxWaitMs",
    "maxDriftSeconds",
    "create",
    "allowWeakStore",
];
const INIT_OPTIONS: &[&str] =
    &["layout", "namespace", "maxTtlSeconds", "maxSkewSeconds", "allowWeakStore"];
const NODE_STATUS: &[&str] =
    &["nodeId", "state", "start", "endExclusive", "secondsLeft", "isFar", "note"];
const OPERATOR_OPTIONS: &[&str] = &["namespace"];
const REPAIR_OPTIONS: &[&str] = &["namespace", "endExclusive"];
const REPAIR_STORE_OPTIONS: &[&str] = &["namespace", "floor"];
const DEFAULT_NAMESPACE: &str = "default";
/// Most rows, and most cells of one, that a store answers with; no statement asks for as many.
const MOST_ROWS: usize = 1 << 20;

pub(crate) fn node_ids(value: Value<'_>, layout: &Layout) -> Result<Vec<u32>> {
    match value.elements(layout.max_nodes(), |got| bindings::too_many_nodes(&layout, got))? {
        Some(listed) => listed.into_iter().map(|listed| node_id(listed, layout)).collect(),
        None => node_id(value, layout).map(|only| vec![only]),
    }
}

pub(crate) fn node_id(value: Value<'_>, layout: &Layout) -> Result<u32> {
    as_u32(value).ok_or_else(|| bindings::invalid_node(&layout, value.description()))
}

pub(crate) fn secret(value: Value<'_>) -> Result<Secret> {
    let bytes = || value.copied::<u8>().map(|bytes| Secret::from_bytes(&Zeroizing::new(bytes)));
    let parsed = value.read_text(str::parse).or_else(bytes);
    parsed.unwrap_or_else(|| Err(bindings::invalid_secret(value.description())))
}

/// Takes options of the names in `known`.
pub(crate) fn options(value: Value<'_>, known: &[&str]) -> Result<Options> {
    let mut options = Options::default();
    if value.is_undefined() {
        return Ok(options);
    }
    check_names(value, "the options", known, ErrorKind::InvalidArgument)?;
    options.lease = value.get(c"lease")?.map(lease).transpose()?;
    options.max_wait = milliseconds(value, c"maxWaitMs")?;
    options.max_drift = whole(value, c"maxDriftSeconds", "seconds")?;
    options.restart_safe = boolean(value, c"restartSafe")?;
    options.clock = value.get(c"clock")?.map(InjectedClock::new).transpose()?;
    Ok(options)
}

/// Takes options of a lease of the names in `known`.
pub(crate) fn lease_options(value: Value<'_>, known: &[&str]) -> Result<LeaseOptions> {
    let mut options = LeaseOptions::default();
    if value.is_undefined() {
        return Ok(options);
    }
    check_names(value, "the options", known, ErrorKind::InvalidArgument)?;
    options.node_count = whole(value, c"nodeCount", "node ids")?;
    options.ttl = whole(value, c"ttlSeconds", "seconds")?;
    options.max_skew = whole(value, c"maxSkewSeconds", "seconds")?;
    options.namespace = namespace(value)?;
    options.acquire_timeout = milliseconds(value, c"acquireTimeoutMs")?;
    options.max_wait = milliseconds(value, c"maxWaitMs")?;
    options.max_drift = whole(value, c"maxDriftSeconds", "seconds")?;
    options.create = boolean(value, c"create")?;
    options.allow_weak = boolean(value, c"allowWeakStore")?;
    Ok(options)
}

/// Takes how to make a namespace.
pub(crate) fn init_mode(value: Value<'_>) -> Result<InitMode> {
    value.read_text(str::parse).unwrap_or_else(|| "".parse())
}

/// Takes the namespace to make, and whether it was said that a weak store is allowed.
pub(crate) fn init_options(
    value: Value<'_>,
    named: impl FnOnce(String) -> Result<Namespace>,
) -> Result<(Namespace, Option<bool>)> {
    if value.is_undefined() {
        return Ok((named(DEFAULT_NAMESPACE.into())?, None));
    }
    check_names(value, "the options", INIT_OPTIONS, ErrorKind::InvalidArgument)?;
    let name = namespace(value)?;
    let named = named(name.unwrap_or_else(|| DEFAULT_NAMESPACE.into()))?;
    let max_ttl = whole(value, c"maxTtlSeconds", "seconds")?;
    let max_skew = whole(value, c"maxSkewSeconds", "seconds")?;
    let limits = named.limits();
    let made = named
        .max_ttl_and_skew(max_ttl.unwrap_or(limits.max_ttl), max_skew.unwrap_or(limits.max_skew))?;
    Ok((made, boolean(value, c"allowWeakStore")?))
}

/// Takes a namespace by its name.
pub(crate) fn operator_options(value: Value<'_>) -> Result<Namespace> {
    Ok(any_operator_options(value, OPERATOR_OPTIONS, None)?.0)
}

/// Takes a namespace by its name, and the new end of a node id.
pub(crate) fn repair_options(value: Value<'_>) -> Result<(Namespace, Option<i64>)> {
    any_operator_options(value, REPAIR_OPTIONS, Some(c"endExclusive"))
}

/// Takes a namespace by its name, and its new floor.
pub(crate) fn repair_store_options(value: Value<'_>) -> Result<(Namespace, Option<i64>)> {
    any_operator_options(value, REPAIR_STORE_OPTIONS, Some(c"floor"))
}

fn any_operator_options(
    value: Value<'_>,
    known: &[&str],
    second: Option<&CStr>,
) -> Result<(Namespace, Option<i64>)> {
    if value.is_undefined() {
        return Ok((Namespace::for_operator(DEFAULT_NAMESPACE)?, None));
    }
    check_names(value, "the options", known, ErrorKind::InvalidArgument)?;
    let name = namespace(value)?.unwrap_or_else(|| DEFAULT_NAMESPACE.into());
    let bound = match second {
        Some(second) => unix_second(value, second)?,
        None => None,
    };
    Ok((Namespace::for_operator(name)?, bound))
}

fn unix_second(options: Value<'_>, name: &CStr) -> Result<Option<i64>> {
    let second = |value: Value<'_>| {
        let form = "a whole unix second";
        integer(value).ok_or_else(|| invalid(&name.to_string_lossy(), form, value))
    };
    options.get(name)?.map(second).transpose()
}

/// Takes a node id that a store is asked about.
pub(crate) fn stored_node(value: Value<'_>) -> Result<u32> {
    as_u32(value).ok_or_else(|| invalid("the node id", "a whole number, at least 0", value))
}

/// Takes what a store has told of a node id.
pub(crate) fn stored_lease(value: Value<'_>) -> Result<NodeLease> {
    check_names(value, "the lease", NODE_STATUS, ErrorKind::InvalidArgument)?;
    let told = |name: &CStr| {
        let missing = || invalid("the lease", "what listLeases or inspectLease told", value);
        value.get(name)?.ok_or_else(missing)
    };
    let second = |name| told(name).and_then(lease_second);
    Ok(NodeLease {
        node_id: stored_node(told(c"nodeId")?)?,
        start: second(c"start")?,
        end_exclusive: second(c"endExclusive")?,
    })
}

fn namespace(options: Value<'_>) -> Result<Option<String>> {
    let text = |name: Value<'_>| {
        name.read_text(str::to_owned).ok_or_else(|| invalid("namespace", "a string", name))
    };
    options.get(c"namespace")?.map(text).transpose()
}

/// Takes where a store is: the path of a file, or what `stores.js` made of anything else; and what
/// was said that is for servers alone.
pub(crate) fn store(
    value: Value<'_>,
    create: Option<bool>,
    allow_weak: Option<bool>,
) -> Result<Store> {
    if value.is_object() {
        return Ok(Store::Server(Server {
            create: create.unwrap_or_default(),
            allow_weak: allow_weak.unwrap_or_default(),
            ..server(value)?
        }));
    }
    if allow_weak.is_some() {
        return Err(Error::invalid_argument(
            "allowWeakStore is for servers; a SQLite file keeps what it has granted",
        ));
    }
    let path = value.read_text(str::to_owned).map(Store::Path);
    path.ok_or_else(|| not_a_store(value))
}

/// Takes a server as `stores.js` describes it.
pub(crate) fn server(value: Value<'_>) -> Result<Server> {
    if !value.is_object() {
        return Err(not_a_store(value));
    }
    let (engine, run) = (value.get(c"engine")?, value.get(c"run")?);
    let engine = engine.and_then(|engine| {
        engine.read_text(|name| match name {
            "postgresql" => Some(Engine::Postgresql),
            "redis" => Some(Engine::Redis),
            "etcd" => Some(Engine::Etcd),
            _ => None,
        })?
    });
    let (Some(engine), Some(run)) = (engine, run.filter(|run| run.is_function())) else {
        return Err(not_a_store(value));
    };
    Ok(Server { engine, run: Arc::new(run.callback()?), create: false, allow_weak: false })
}

fn not_a_store(got: Value<'_>) -> Error {
    invalid(
        "the store",
        "the path of a SQLite file, the URL or a client of PostgreSQL, Redis or etcd, or an adapter \
         with run(text, parameters)",
        got,
    )
}

/// Takes the rows that a server answered with, all of text or null.
pub(crate) fn rows(value: Value<'_>) -> Result<Vec<Vec<Option<String>>>> {
    let cell = |value: Value<'_>| match value.read_text(str::to_owned) {
        None if !value.is_null() => Err(not_rows()),
        text => Ok(text),
    };
    let rows = list(value)?;
    let row = |row| list(row)?.into_iter().map(cell).collect();
    rows.into_iter().map(row).collect()
}

fn list(value: Value<'_>) -> Result<Vec<Value<'_>>> {
    value.elements(MOST_ROWS, |_| not_rows())?.ok_or_else(not_rows)
}

fn not_rows() -> Error {
    Error::invalid_argument(
        "the client must answer with an array of rows, each an array of strings or null",
    )
}

pub(crate) fn boolean(options: Value<'_>, name: &CStr) -> Result<Option<bool>> {
    let boolean = |value: Value<'_>| {
        let boolean = value.as_boolean();
        boolean.ok_or_else(|| invalid(&name.to_string_lossy(), "a boolean", value))
    };
    options.get(name)?.map(boolean).transpose()
}

fn milliseconds(options: Value<'_>, name: &CStr) -> Result<Option<Duration>> {
    let duration = |value: Value<'_>| {
        let seconds = value.as_number().map(|ms| ms / 1000.0);
        let exact = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        exact.ok_or_else(|| invalid(&name.to_string_lossy(), "milliseconds, at least 0", value))
    };
    options.get(name)?.map(duration).transpose()
}

pub(crate) fn whole(options: Value<'_>, name: &CStr, unit: &str) -> Result<Option<u32>> {
    let number = |value: Value<'_>| {
        let form = || format!("a whole number of {unit}, at least 0");
        as_u32(value).ok_or_else(|| invalid(&name.to_string_lossy(), &form(), value))
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
            bindings::invalid_id(
                "a bigint out of that range; BigInt.asIntN(64, id) makes an unsigned one signed",
            )
        } else if value.as_number().is_some() {
            bindings::invalid_id("a number, which does not hold 64 bits; pass a bigint")
        } else {
            bindings::invalid_id(value.description())
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
        bindings::invalid_raw(if value.is_bigint() {
            "a bigint out of that range".into()
        } else if value.as_number().is_some() {
            "a number, which does not hold 64 bits; pass a bigint".into()
        } else {
            value.description()
        })
    })
}

/// Takes the 64 bits of a raw id as an unsigned bigint, or as the signed one of a BIGINT column.
pub(crate) fn raw_or_signed(value: Value<'_>) -> Result<u64> {
    value.as_i64().map_or_else(|| raw(value), |signed| Ok(signed.cast_unsigned()))
}

/// The error of a value that should be a `BigInt64Array`.
pub(crate) fn not_ids(got: Value<'_>) -> Error {
    invalid(
        "ids",
        "a BigInt64Array whose memory is not shared between threads and was not transferred",
        got,
    )
}

pub(crate) fn as_u32(value: Value<'_>) -> Option<u32> {
    integer(value).and_then(|number| u32::try_from(number).ok())
}

pub(crate) fn integer(value: Value<'_>) -> Option<i64> {
    let whole = |number: &f64| number.fract() == 0.0 && number.abs() <= MAX_SAFE_INTEGER;
    #[allow(clippy::cast_possible_truncation, reason = "whole and far below 2^63")]
    value.as_number().filter(whole).map(|number| number as i64)
}

pub(crate) fn check_names(
    value: Value<'_>,
    what: &str,
    known: &[&str],
    kind: ErrorKind,
) -> Result<()> {
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

pub(crate) fn invalid(name: &str, form: &str, got: Value<'_>) -> Error {
    let got = got.description();
    Error::new(ErrorKind::InvalidArgument, format!("{name} must be {form}, got {got}"))
}
