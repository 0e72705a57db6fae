//! Operations on a store for operators, for `randflake/operators.py`.

use pyo3::{
    prelude::*,
    types::{PyString, PyTuple},
};
use randflake::{Error, Result};
use randflake_leases::{
    InitMode, LeaseStore, Namespace, NodeLease,
    operator::{self, Listed, Node, Target},
};
use randflake_tickets::operator::CounterStatus;

use crate::{
    arguments::{
        Above, AllowWeakStore, CounterName, LeasedNodes, MaxSkew, MaxTtl, NamespaceName, Step,
        StoredNode, UnixSecond, secret_of,
    },
    client::Store,
    convert::argument,
    errors::{raise, wrong_type},
    layout::AnyLayout,
    operate::operate,
};

#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "as many as in Python")]
pub(crate) fn init_store(
    py: Python<'_>,
    store: Store,
    secret: Option<Bound<'_, PyAny>>,
    mode: Mode,
    layout: Option<AnyLayout>,
    namespace: NamespaceName,
    max_ttl: MaxTtl,
    max_skew: MaxSkew,
    node_ids: Option<LeasedNodes>,
    allow_weak_store: AllowWeakStore,
) -> PyResult<()> {
    // A warning points at the caller of the function in Python.
    let secret = secret.map(|secret| secret_of(&secret, 2)).transpose()?;
    let named = match (secret, layout) {
        (Some(secret), None) => Namespace::new(namespace.0, &secret),
        (None, Some(layout)) => Namespace::for_layout(namespace.0, layout.0),
        _ => Err(Error::invalid_argument(
            "a namespace has either a secret, for Randflake, or a layout, for Snowflake; give one \
             of them",
        )),
    };
    let location = store.location(allow_weak_store.0)?;
    operate(py, move || {
        let mut namespace = named?.max_ttl_and_skew(max_ttl.0, max_skew.0)?;
        if let Some(LeasedNodes(node_ids)) = node_ids {
            namespace = namespace.node_ids(node_ids)?;
        }
        location.init(&namespace, mode.0)
    })
}

#[pyfunction]
pub(crate) fn list_leases(
    py: Python<'_>,
    store: Store,
    namespace: NamespaceName,
) -> PyResult<Bound<'_, PyAny>> {
    let listed = operate_on(py, store, namespace, |store| operator::list(store))?;
    let counts = listed.counts();
    let leases: Vec<_> =
        listed.nodes.iter().map(|node| node_status(py, &listed, node)).collect::<PyResult<_>>()?;
    once!().import(py, "randflake.leases", "StoreStatus")?.call1((
        listed.now,
        PyTuple::new(py, leases)?,
        counts.held,
        counts.waiting,
        counts.free,
        counts.implausible,
        listed.floor,
        listed.is_floor_implausible(),
        listed.incarnation_changed,
        once!().import(py, "randflake.leases", "StoreLimits")?.call1((
            listed.limits.max_ttl,
            listed.limits.max_skew,
            listed.limits.node_ids.to_string(),
            listed.layout.as_str(),
            listed.format,
        ))?,
    ))
}

/// Returns what a store knows of one node id; `None` if it was never leased.
#[pyfunction]
pub(crate) fn inspect_lease(
    py: Python<'_>,
    store: Store,
    node_id: StoredNode,
    namespace: NamespaceName,
) -> PyResult<Option<Bound<'_, PyAny>>> {
    let listed =
        operate_on(py, store, namespace, move |store| operator::inspect(store, node_id.0))?;
    listed.nodes.first().map(|node| node_status(py, &listed, node)).transpose()
}

#[pyfunction]
pub(crate) fn fence_store(py: Python<'_>, store: Store, namespace: NamespaceName) -> PyResult<i64> {
    Ok(operate_on(py, store, namespace, |store| operator::fence(store))?.floor)
}

/// Returns the second from which the node ids that are left out have no lease.
#[pyfunction]
pub(crate) fn set_node_ids(
    py: Python<'_>,
    store: Store,
    node_ids: LeasedNodes,
    namespace: NamespaceName,
) -> PyResult<i64> {
    let set = move |store: &mut dyn LeaseStore| operator::set_node_ids(store, node_ids.0);
    Ok(operate_on(py, store, namespace, set)?.unleased_from())
}

#[pyfunction]
pub(crate) fn repair_lease(
    py: Python<'_>,
    store: Store,
    node_id: StoredNode,
    end_exclusive: Option<UnixSecond>,
    namespace: NamespaceName,
) -> PyResult<i64> {
    repair(py, store, Target::Node(node_id.0), end_exclusive, namespace)
}

#[pyfunction]
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
    Ok(operate_on(py, store, namespace, move |store| operator::repair(store, target, bound))?.to)
}

/// Releases a node id with the bounds of its lease.
#[pyfunction]
pub(crate) fn release_lease(
    py: Python<'_>,
    store: Store,
    node_id: StoredNode,
    start: UnixSecond,
    end_exclusive: UnixSecond,
    namespace: NamespaceName,
) -> PyResult<i64> {
    let lease = NodeLease { node_id: node_id.0, start: start.0, end_exclusive: end_exclusive.0 };
    Ok(operate_on(py, store, namespace, move |store| operator::release_dead(store, lease))?.to)
}

#[pyfunction]
pub(crate) fn init_tickets(
    py: Python<'_>,
    store: Store,
    mode: Mode,
    namespace: NamespaceName,
    allow_weak_store: AllowWeakStore,
) -> PyResult<()> {
    let location = store.location(allow_weak_store.0)?;
    operate(py, move || randflake_tickets::operator::init_tickets(&location, &namespace.0, mode.0))
}

#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "as many as in Python")]
pub(crate) fn fence_tickets(
    py: Python<'_>,
    store: Store,
    name: CounterName,
    above: Above,
    start: Option<Step>,
    step: Option<Step>,
    namespace: NamespaceName,
    allow_weak_store: AllowWeakStore,
) -> PyResult<Bound<'_, PyAny>> {
    let (start, step) = (start.map(|start| start.0), step.map(|step| step.0));
    let fenced = operate_on_counters(py, store, namespace, allow_weak_store, move |store| {
        randflake_tickets::operator::fence_tickets_in_steps(store, &name.0, above.0, start, step)
    })?;
    counter_status(py, fenced)
}

/// Returns what a store knows of a counter; `None` if it is missing.
#[pyfunction]
pub(crate) fn show_tickets(
    py: Python<'_>,
    store: Store,
    name: CounterName,
    namespace: NamespaceName,
    allow_weak_store: AllowWeakStore,
) -> PyResult<Option<Bound<'_, PyAny>>> {
    let shown = operate_on_counters(py, store, namespace, allow_weak_store, move |store| {
        randflake_tickets::operator::show_tickets(store, &name.0)
    })?;
    shown.map(|shown| counter_status(py, shown)).transpose()
}

/// Returns what a store knows of each counter, sorted by name.
#[pyfunction]
pub(crate) fn list_tickets(
    py: Python<'_>,
    store: Store,
    namespace: NamespaceName,
    allow_weak_store: AllowWeakStore,
) -> PyResult<Vec<Bound<'_, PyAny>>> {
    let listed = operate_on_counters(py, store, namespace, allow_weak_store, |store| {
        randflake_tickets::operator::list_tickets(store)
    })?;
    listed.into_iter().map(|status| counter_status(py, status)).collect()
}

/// Performs an operation that needs no secret.
fn operate_on<T: Send + 'static>(
    py: Python<'_>,
    store: Store,
    namespace: NamespaceName,
    operation: impl FnOnce(&mut dyn LeaseStore) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let location = store.location(false)?;
    operate(py, move || operation(&mut *location.open(&Namespace::for_operator(namespace.0)?)?))
}

/// As [`operate_on`], in a namespace of tickets.
fn operate_on_counters<T: Send + 'static>(
    py: Python<'_>,
    store: Store,
    namespace: NamespaceName,
    allow_weak_store: AllowWeakStore,
    operation: impl FnOnce(&mut dyn LeaseStore) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let location = store.location(allow_weak_store.0)?.create(false);
    operate(py, move || operation(&mut *location.open(&Namespace::for_tickets(namespace.0)?)?))
}

fn counter_status(py: Python<'_>, status: CounterStatus) -> PyResult<Bound<'_, PyAny>> {
    once!().import(py, "randflake.tickets", "CounterStatus")?.call1((
        status.name,
        status.start,
        status.step,
        status.next,
        status.given_back,
        status.blocks,
        status.must_be_fenced,
    ))
}

fn node_status<'py>(py: Python<'py>, listed: &Listed, node: &Node) -> PyResult<Bound<'py, PyAny>> {
    once!().import(py, "randflake.leases", "NodeStatus")?.call1((
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
    |object| match object.cast::<PyString>() {
        Ok(name) => name.to_string_lossy().parse().map_err(raise),
        // Without a name there is no mode, and the error names all modes.
        Err(_) => "".parse::<InitMode>().map_err(|error| wrong_type(&error)),
    }
);
