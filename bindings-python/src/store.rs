//! The functions of operators: they make, list and repair what a store holds.

use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyString, PyTuple},
};
use randflake::{Error, Result};
use randflake_leases::{
    InitMode, LeaseStore, Namespace, NodeLease,
    operator::{self, Listed, Node, Target},
};

use crate::{
    arguments::{AllowWeakStore, AnySecret, MaxSkew, NamespaceName, Store, Ttl},
    client::StoreOptions,
    convert::{argument, type_of, whole_number},
    errors::{call, raise, wrong_type},
    exit::raise_unless_finalizing,
    layout::AnyLayout,
    lease::UnixSecond,
};

#[doc = doc!("init_store")]
#[pyfunction]
#[pyo3(
    signature = (
        store,
        secret = None,
        mode = None,
        *,
        layout = None,
        namespace = NamespaceName::default(),
        ttl = Ttl(Namespace::MAX_TTL),
        max_skew = MaxSkew(5),
        allow_weak_store = AllowWeakStore(false),
    ),
    text_signature = "(store, secret=None, mode=None, *, layout=None, namespace='default', \
                      ttl=300, max_skew=5, allow_weak_store=False)"
)]
#[allow(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn init_store(
    py: Python<'_>,
    store: Store,
    secret: Option<AnySecret>,
    mode: Option<Mode>,
    layout: Option<AnyLayout>,
    namespace: NamespaceName,
    ttl: Ttl,
    max_skew: MaxSkew,
    allow_weak_store: AllowWeakStore,
) -> PyResult<()> {
    let mode = mode.ok_or_else(missing_mode)?.0;
    let named = match (secret, layout) {
        (Some(secret), None) => Namespace::new(namespace.0, &secret.0),
        (None, Some(layout)) => Namespace::for_layout(namespace.0, layout.0),
        _ => Err(Error::invalid_argument(
            "a namespace has either a secret, for Randflake, or a layout, for Snowflake; give one \
             of them",
        )),
    };
    let options = StoreOptions { create: None, allow_weak_store: allow_weak_store.0 };
    let init = || {
        let namespace = named?.max_ttl_and_skew(ttl.0, max_skew.0)?;
        match store {
            Store::Local(location) => location.init(&namespace, mode),
            Store::Server(source) => source.connect(namespace, options)?.init(mode),
        }
    };
    py.detach(|| call(init)).map_err(|raised| raise_unless_finalizing(py, raised))
}

#[doc = doc!("list_leases")]
#[pyfunction]
#[pyo3(
    signature = (store, *, namespace = NamespaceName::default()),
    text_signature = "(store, *, namespace='default')"
)]
pub(crate) fn list_leases(
    py: Python<'_>,
    store: Store,
    namespace: NamespaceName,
) -> PyResult<Bound<'_, PyAny>> {
    static STORE_STATUS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static STORE_LIMITS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

    let listed = operate(py, store, namespace, |store| operator::list(store))?;
    let counts = listed.counts();
    let leases: Vec<_> =
        listed.nodes.iter().map(|node| node_status(py, &listed, node)).collect::<PyResult<_>>()?;
    STORE_STATUS.import(py, "randflake.leases", "StoreStatus")?.call1((
        listed.now,
        PyTuple::new(py, leases)?,
        counts.held,
        counts.waiting,
        counts.free,
        counts.implausible,
        listed.floor,
        listed.is_floor_implausible(),
        listed.incarnation_changed,
        STORE_LIMITS.import(py, "randflake.leases", "StoreLimits")?.call1((
            listed.limits.max_ttl,
            listed.limits.max_skew,
            listed.limits.max_node_id,
            listed.layout.as_str(),
            listed.format,
        ))?,
    ))
}

#[doc = doc!("inspect_lease")]
#[pyfunction]
#[pyo3(
    signature = (store, node_id, *, namespace = NamespaceName::default()),
    text_signature = "(store, node_id, *, namespace='default')"
)]
pub(crate) fn inspect_lease(
    py: Python<'_>,
    store: Store,
    node_id: StoredNode,
    namespace: NamespaceName,
) -> PyResult<Option<Bound<'_, PyAny>>> {
    let listed = operate(py, store, namespace, |store| operator::inspect(store, node_id.0))?;
    listed.nodes.first().map(|node| node_status(py, &listed, node)).transpose()
}

#[doc = doc!("fence_store")]
#[pyfunction]
#[pyo3(
    signature = (store, *, namespace = NamespaceName::default()),
    text_signature = "(store, *, namespace='default')"
)]
pub(crate) fn fence_store(py: Python<'_>, store: Store, namespace: NamespaceName) -> PyResult<i64> {
    Ok(operate(py, store, namespace, |store| operator::fence(store))?.floor)
}

#[doc = doc!("repair_lease")]
#[pyfunction]
#[pyo3(
    signature = (
        store,
        node_id,
        *,
        end_exclusive = None,
        namespace = NamespaceName::default(),
    ),
    text_signature = "(store, node_id, *, end_exclusive=None, namespace='default')"
)]
pub(crate) fn repair_lease(
    py: Python<'_>,
    store: Store,
    node_id: StoredNode,
    end_exclusive: Option<UnixSecond>,
    namespace: NamespaceName,
) -> PyResult<i64> {
    repair(py, store, Target::Node(node_id.0), end_exclusive, namespace)
}

#[doc = doc!("repair_store")]
#[pyfunction]
#[pyo3(
    signature = (store, *, floor = None, namespace = NamespaceName::default()),
    text_signature = "(store, *, floor=None, namespace='default')"
)]
pub(crate) fn repair_store(
    py: Python<'_>,
    store: Store,
    floor: Option<UnixSecond>,
    namespace: NamespaceName,
) -> PyResult<i64> {
    repair(py, store, Target::Floor, floor, namespace)
}

fn repair(
    py: Python<'_>,
    store: Store,
    target: Target,
    bound: Option<UnixSecond>,
    namespace: NamespaceName,
) -> PyResult<i64> {
    let bound = bound.map(|second| second.0);
    Ok(operate(py, store, namespace, |store| operator::repair(store, target, bound))?.to)
}

#[doc = doc!("release_lease")]
#[pyfunction]
#[pyo3(
    signature = (store, lease, *, namespace = NamespaceName::default()),
    text_signature = "(store, lease, *, namespace='default')"
)]
pub(crate) fn release_lease(
    py: Python<'_>,
    store: Store,
    lease: StoredLease,
    namespace: NamespaceName,
) -> PyResult<i64> {
    Ok(operate(py, store, namespace, |store| operator::release_dead(store, lease.0))?.to)
}

/// Performs an operation that needs no secret.
fn operate<T: Send>(
    py: Python<'_>,
    store: Store,
    namespace: NamespaceName,
    operation: impl FnOnce(&mut dyn LeaseStore) -> Result<T> + Send,
) -> PyResult<T> {
    let location = match store {
        Store::Local(location) => location,
        Store::Server(source) => source.location(StoreOptions::default()),
    };
    py.detach(|| call(|| operation(&mut *location.open(&Namespace::for_operator(namespace.0)?)?)))
}

fn node_status<'py>(py: Python<'py>, listed: &Listed, node: &Node) -> PyResult<Bound<'py, PyAny>> {
    static NODE_STATUS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

    NODE_STATUS.import(py, "randflake.leases", "NodeStatus")?.call1((
        node.lease.node_id,
        listed.state(node).name(),
        node.lease.start,
        node.lease.end_exclusive,
        listed.seconds_left(node),
        listed.is_implausible(node.lease.end_exclusive),
        node.note.as_str(),
    ))
}

argument!(
    /// How to make a namespace.
    Mode(InitMode),
    |object| {
        let name = object.cast::<PyString>().map_err(|_| missing_mode())?;
        name.to_string_lossy().parse().map_err(raise)
    }
);

/// Makes the exception of a mode that is missing or no text.
fn missing_mode() -> PyErr {
    match "".parse::<InitMode>() {
        Ok(_) => unreachable!("no mode has an empty name"),
        Err(error) => wrong_type(&error),
    }
}

argument!(
    /// A node id of a store.
    StoredNode(u32),
    |object| whole_number(object, "node_id", "0 to 131071")
);

argument!(
    /// A lease as a store reported it.
    StoredLease(NodeLease),
    |object| {
        let reported = |name| {
            object.getattr_opt(name)?.ok_or_else(|| {
                wrong_type(&Error::invalid_argument(format!(
                    "the lease must be what list_leases or inspect_lease returned, got {}",
                    type_of(object)
                )))
            })
        };
        let node_id = reported("node_id")?.extract::<StoredNode>()?.0;
        let second = |name| reported(name)?.extract::<UnixSecond>().map(|second| second.0);
        let (start, end_exclusive) = (second("start")?, second("end_exclusive")?);
        Ok(NodeLease { node_id, start, end_exclusive })
    }
);
