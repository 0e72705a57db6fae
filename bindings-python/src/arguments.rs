//! Arguments of more than one class or function.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::{
    prelude::*,
    types::{PyByteArray, PyBytes, PyMemoryView, PyString},
};
use randflake::{ErrorKind, Id, Layout, Secret, bindings};
use randflake_leases::NodeRanges;

use crate::{
    convert::{argument, boolean, instance, integer, integers, is_bytes, must, text, type_of},
    errors::{WeakSecretWarning, raise, warn, wrong_type},
};

// A rule names the bounds, also the ones that core checks.
integers! {
    /// An id as a number.
    IdNumber(i64): InvalidId, "an id must be a signed 64-bit integer here";
    /// How many ids.
    Count(usize): InvalidArgument, "the number of ids must be an integer, 0 or more";
    /// A bound of a lease.
    UnixSecond(i64): InvalidLease, "a lease starts and ends at unix seconds, which are integers";
    /// A node id of a store.
    StoredNode(u32): InvalidArgument, "node_id must be a whole number, 0 to 131071";
    /// How many node ids to lease.
    NodeCount(u32): InvalidArgument,
        "node_count must be a whole number, 1 to 16384 for Randflake";
    /// For how many seconds to lease.
    Ttl(u32): InvalidArgument,
        "ttl must be a whole number, 1 to 86400 and at least six times max_skew";
    /// The longest lease of a namespace, in seconds.
    MaxTtl(u32): InvalidArgument,
        "max_ttl must be a whole number, 1 to 86400 and at least six times max_skew";
    /// By how many seconds clocks may differ.
    MaxSkew(u32): InvalidArgument, "max_skew must be a whole number, 0 to a sixth of the ttl";
    /// To how many digits a number is padded.
    Digits(u32): InvalidArgument, "digits must be a whole number, 1 to 16";
    /// A datacenter or a worker.
    NodePart(u32): InvalidNode, "the parts of a node id are integers within their widths";
    /// The time of an id, in seconds or milliseconds.
    TimePart(i64): InvalidArgument, PARTS;
    /// Another part of an id.
    Part(u32): InvalidArgument, PARTS;
    /// The first number of a counter, or the difference between two.
    Step(u64): InvalidArgument, "start and step must be whole numbers, 1 to 9007199254740991";
    /// How many numbers to draw.
    BlockSize(u64): InvalidArgument,
        "min_block and max_block must be whole numbers, 1 to 9007199254740991";
    /// What a counter is fenced above.
    Above(u64): InvalidArgument, "above must be a whole number, 0 to 9007199254740991";
    /// The length of a tick.
    TickMs(u32): InvalidArgument, "tick_ms must be an integer between 1 and 86400000";
    /// When tick 0 begins.
    EpochMs(i64): InvalidArgument, "epoch_ms must be unix milliseconds, an integer, 0 or more";
}

const PARTS: &str = "the parts of an id are integers within their widths";

argument!(
    /// An id, as a number or as text.
    AnyId(Id),
    |object| match object.cast::<PyString>() {
        Ok(text) => id_of_text(text),
        Err(_) => integer::<i64>(object, |got| bindings::invalid_id(got)).map(Id::from),
    }
);

argument!(
    /// An id as text.
    IdText(Id),
    |object| {
        let error = must(ErrorKind::InvalidId, "an id's text must be a str");
        id_of_text(instance(object, error)?)
    }
);

fn id_of_text(text: &Bound<'_, PyString>) -> PyResult<Id> {
    // A lone surrogate becomes a replacement character, which no id's text has either.
    text.to_string_lossy().parse().map_err(raise)
}

argument!(
    /// The sortable form of an id.
    Raw(u64),
    |object| integer(object, |got| bindings::invalid_raw(got))
);

argument!(
    /// A time, in unix milliseconds.
    UnixMs(i64),
    |object| {
        let rule = "a time is unix milliseconds, an integer, or an aware datetime";
        let error = must(ErrorKind::InvalidArgument, rule);
        if !object.is_instance(once!().import(object.py(), "datetime", "datetime")?)? {
            return integer(object, error);
        }
        let unix_ms_of = once!().import(object.py(), "randflake._times", "unix_ms_of")?;
        let unix_ms = unix_ms_of.call1((object,))?.extract::<Option<_>>()?;
        unix_ms.ok_or_else(|| raise(error(&"a datetime without a time zone")))
    }
);

argument!(
    /// One node id of `Randflake`, or several.
    NodeIds(Vec<u32>),
    |object| node_ids(&Layout::randflake(), object)
);

/// Takes one node id of a layout, or several.
pub(crate) fn node_ids(layout: &Layout, object: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let node_id =
        |object: &Bound<'_, PyAny>| integer(object, |got| bindings::invalid_node(layout, got));
    if let Ok(text) = object.cast::<PyString>() {
        return node_id_of_text(layout, text).map(|node_id| vec![node_id]);
    }
    let (Ok(length), Ok(items), false) = (object.len(), object.try_iter(), is_bytes(object)) else {
        return node_id(object).map(|node_id| vec![node_id]);
    };
    // A range can be longer than memory.
    if length > layout.max_nodes() {
        return Err(raise(bindings::too_many_nodes(layout, length)));
    }
    items.map(|item| node_id(&item?)).collect()
}

/// Takes a node id in decimal digits, as the environment has it.
fn node_id_of_text(layout: &Layout, object: &Bound<'_, PyString>) -> PyResult<u32> {
    let text = object.to_string_lossy();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let got = "text that is not a number";
        return Err(wrong_type(&bindings::invalid_node(layout, got)));
    }
    text.parse().map_err(|_| raise(bindings::invalid_node(layout, text)))
}

argument!(
    /// A secret.
    AnySecret(Secret),
    |object| secret_of(object, 1)
);

/// Takes a secret. A weak one raises a warning, once per process, at this level of Python's stack.
pub(crate) fn secret_of(object: &Bound<'_, PyAny>, stack_level: i32) -> PyResult<Secret> {
    let secret = if let Ok(bytes) = object.cast::<PyBytes>() {
        Secret::from_bytes(bytes.as_bytes()).map_err(raise)?
    } else if let Ok(text) = object.cast::<PyString>() {
        text.to_string_lossy().parse::<Secret>().map_err(raise)?
    } else if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        let copy = object.py().get_type::<PyBytes>().call1((object,))?;
        Secret::from_bytes(copy.cast::<PyBytes>()?.as_bytes()).map_err(raise)?
    } else {
        return Err(wrong_type(&bindings::invalid_secret(type_of(object))));
    };
    warn_if_weak(object.py(), &secret, stack_level)?;
    Ok(secret)
}

/// Raises a warning about a weak secret, once per process.
pub(crate) fn warn_if_weak(py: Python<'_>, secret: &Secret, stack_level: i32) -> PyResult<()> {
    static WARNED: AtomicBool = AtomicBool::new(false);

    // Relaxed: a second warning in a race does no harm.
    if let Some(weakness) = secret.weakness().filter(|_| !WARNED.load(Ordering::Relaxed)) {
        warn::<WeakSecretWarning>(py, weakness, stack_level)?;
        WARNED.store(true, Ordering::Relaxed);
    }
    Ok(())
}

argument!(
    /// The purpose of a key.
    Label(String),
    |object| text(object, "label")
);

argument!(
    /// The name of a namespace.
    NamespaceName(String),
    |object| text(object, "namespace")
);

argument!(
    /// The name of a counter.
    CounterName(String),
    |object| text(object, "name")
);

argument!(
    /// Which node ids a namespace leases.
    LeasedNodes(NodeRanges),
    |object| text(object, "node_ids")?.parse().map_err(raise)
);

argument!(
    /// Whether the store may lose what it has acknowledged.
    AllowWeakStore(bool),
    |object| boolean(object, "allow_weak_store")
);
