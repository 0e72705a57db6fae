use pyo3::{prelude::*, sync::PyOnceLock, types::PyTuple};
use randflake::{Error, Result};
use randflake_leases::{
    LeaseStore, Namespace,
    operator::{self, Listed, Node, Target},
};

use crate::{
    arguments::{
        AllowWeakStore, AnySecret, MaxSkew, Mode, NamespaceName, Store, StoredLease, StoredNode,
        Ttl, UnixSecond,
    },
    client::Terms,
    errors::{call, made},
    layout::AnyLayout,
};

/// Makes a namespace in a store, once, before its first lease.
///
/// Checks it if it is there, and changes nothing then. In PostgreSQL this makes the tables, too. A
/// SQLite file is made if it is missing; its first lease does that as well, as "new".
///
/// Not to be called with each start or deploy: after a loss of the store "new" repeats ids.
///
/// store: the path of a SQLite file, or the URL or the client of a server, as in Randflake.leased.
/// secret: 16 bytes, or a str of 32 hex digits: of all Randflake generators of this namespace.
/// mode: "new" if this store has never had the namespace; "quarantine" if it may have had it and
/// lost it, as after a restart without its data, where the file was removed, or if you cannot tell:
/// it grants nothing then for ttl and max_skew, until every earlier lease is over. There is no
/// default.
/// layout: instead of a secret, for Snowflake: a Layout with node ids, or the name of a preset.
/// namespace: 1 to 200 bytes; one for each secret or layout.
/// ttl: how many whole seconds the longest lease has, 1 to 86400 and at least six times max_skew.
/// max_skew: by how many whole seconds clocks may differ.
/// allow_weak_store: whether a Redis or PostgreSQL may be one that may lose what it has acknowledged.
///
/// Raises InvalidArgumentError with the code INVALID_SECRET or INVALID_ARGUMENT; StoreError with
/// STORE_UNAVAILABLE, SECRET_MISMATCH, WEAK_STORE or DRIVER_MISSING.
///
/// >>> import tempfile
/// >>> from randflake import StoreError, generate_secret, init_store, list_leases
/// >>> with tempfile.TemporaryDirectory() as folder:
/// ...     init_store(folder + "/ids.db", generate_secret(), "quarantine", ttl=60)
/// ...     status = list_leases(folder + "/ids.db")
/// >>> status.held, status.floor > status.now  # nothing is granted before the floor
/// (0, True)
/// >>> try:
/// ...     init_store("etcd://localhost:1", generate_secret(), mode="new")
/// ... except StoreError as error:
/// ...     print(error.code)  # nobody listens at that port
/// STORE_UNAVAILABLE
#[pyfunction]
#[pyo3(
    signature = (
        store,
        secret = None,
        mode = None,
        *,
        layout = None,
        namespace = NamespaceName("default".to_owned()),
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
    let mode = mode.ok_or_else(Mode::missing)?.0;
    let named = match (secret, layout) {
        (Some(secret), None) => Namespace::new(namespace.0, &secret.0),
        (None, Some(layout)) => Namespace::for_layout(namespace.0, layout.0),
        _ => Err(Error::invalid_argument(
            "a namespace has either a secret, for Randflake, or a layout, for Snowflake; give one \
             of them",
        )),
    };
    let terms = Terms { create: None, allow_weak_store: allow_weak_store.0 };
    let init = || {
        let namespace = named?.max_ttl_and_skew(ttl.0, max_skew.0)?;
        match store {
            Store::Here(location) => location.init(&namespace, mode),
            Store::Server(source) => source.connect(namespace, terms)?.init(mode),
        }
    };
    py.detach(|| call(init)).map_err(|raised| made(py, raised))
}

/// Tells what a store knows of the node ids of a namespace. Nobody's secret is needed.
///
/// store: the path of a SQLite file, or the URL or the client of a server, as in Randflake.leased.
/// namespace: its name.
///
/// Raises StoreError with the code STORE_NOT_INITIALIZED if there is no such namespace, with
/// STORE_UNAVAILABLE or DRIVER_MISSING; InvalidArgumentError.
///
/// >>> import tempfile
/// >>> from randflake import Randflake, generate_secret, list_leases
/// >>> with tempfile.TemporaryDirectory() as folder:
/// ...     with Randflake.leased(folder + "/ids.db", generate_secret(), node_count=2):
/// ...         status = list_leases(folder + "/ids.db")
/// >>> status.held, status.free, status.leases[0].state
/// (2, 131070, 'held')
#[pyfunction]
#[pyo3(
    signature = (store, *, namespace = NamespaceName("default".to_owned())),
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
        counts.far,
        listed.floor,
        listed.is_floor_far(),
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

/// Tells what a store knows of one node id; None if it was never leased.
///
/// store, namespace: as in list_leases, and with its errors.
/// node_id: 0 to the largest node id of the namespace.
///
/// >>> import tempfile
/// >>> from randflake import Randflake, generate_secret, inspect_lease
/// >>> with tempfile.TemporaryDirectory() as folder:
/// ...     with Randflake.leased(folder + "/ids.db", generate_secret()) as flake:
/// ...         inspect_lease(folder + "/ids.db", flake.node_ids[0]).state
/// 'held'
#[pyfunction]
#[pyo3(
    signature = (store, node_id, *, namespace = NamespaceName("default".to_owned())),
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

/// Tells a store that it may have forgotten leases, and returns from which second on it grants again.
///
/// To be called after a backup was restored, before anything starts. Leases that clearly run are
/// renewed meanwhile. store, namespace: as in list_leases, and with its
/// errors.
///
/// >>> import tempfile, time
/// >>> from randflake import Randflake, fence_store, generate_secret
/// >>> with tempfile.TemporaryDirectory() as folder:
/// ...     with Randflake.leased(folder + "/ids.db", generate_secret()):
/// ...         floor = fence_store(folder + "/ids.db")
/// >>> 300 <= floor - time.time() <= 305  # the longest lease and the largest skew
/// True
#[pyfunction]
#[pyo3(
    signature = (store, *, namespace = NamespaceName("default".to_owned())),
    text_signature = "(store, *, namespace='default')"
)]
pub(crate) fn fence_store(py: Python<'_>, store: Store, namespace: NamespaceName) -> PyResult<i64> {
    Ok(operate(py, store, namespace, |store| operator::fence(store))?.floor)
}

/// Sets the end of a node id back that only a wrong clock can have set, and returns it.
///
/// No right clock sets an end beyond the store's clock, the longest lease and the largest skew. One
/// that is keeps the node id idle until then. Whoever calls this states that no id with that node
/// id carries a second at or after the new end, and that no process that was given the far end
/// still runs.
///
/// store, namespace: as in list_leases, and with its errors.
/// node_id: one whose lease has is_far.
/// end_exclusive: the new end, a unix second; None for the lowest, which is that bound.
///
/// Raises InvalidArgumentError with the code INVALID_ARGUMENT if there is nothing to repair, or if
/// the new end is too low; StoreError with CLOCK_SKEW if one of the clocks is wrong now.
#[pyfunction]
#[pyo3(
    signature = (
        store,
        node_id,
        *,
        end_exclusive = None,
        namespace = NamespaceName("default".to_owned()),
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
    let (target, bound) = (Target::Node(node_id.0), end_exclusive.map(|second| second.0));
    let cut = operate(py, store, namespace, |store| operator::repair(store, target, bound))?;
    Ok(cut.to)
}

/// Sets the end of a quarantine back that only a wrong clock can have set, and returns it.
///
/// As repair_lease, for the floor of a whole namespace, as if it had been fenced now: whoever calls
/// this states that no id at all carries a second at or after the new floor.
///
/// store, namespace: as in list_leases, and with the errors of repair_lease.
/// floor: the new one, a unix second; None for the lowest.
#[pyfunction]
#[pyo3(
    signature = (store, *, floor = None, namespace = NamespaceName("default".to_owned())),
    text_signature = "(store, *, floor=None, namespace='default')"
)]
pub(crate) fn repair_store(
    py: Python<'_>,
    store: Store,
    floor: Option<UnixSecond>,
    namespace: NamespaceName,
) -> PyResult<i64> {
    let bound = floor.map(|second| second.0);
    let ask = |store: &mut dyn LeaseStore| operator::repair(store, Target::Floor, bound);
    Ok(operate(py, store, namespace, ask)?.to)
}

/// Gives a node id back for a process that has ended for sure, and returns its end.
///
/// Whoever calls this states that the holder, and every copy of its memory, has ended. Which second
/// it stamped last is not known: the end is cut to the first one it cannot have stamped, which of
/// the usual 300 seconds leaves 107, and never raised. For one that still runs, ids may repeat.
///
/// store, namespace: as in list_leases, and with its errors.
/// lease: what list_leases or inspect_lease told of the node id. Who has leased it since keeps it.
///
/// Raises InvalidArgumentError with the code INVALID_ARGUMENT if nobody holds it, if it has another
/// lease by now, or if its end comes from a wrong clock; StoreError with CLOCK_SKEW if one of the clocks is wrong now.
///
/// >>> import tempfile
/// >>> from randflake import Randflake, generate_secret, list_leases, release_lease
/// >>> with tempfile.TemporaryDirectory() as folder:
/// ...     with Randflake.leased(folder + "/ids.db", generate_secret()):
/// ...         (lease,) = list_leases(folder + "/ids.db").leases
/// ...     try:
/// ...         release_lease(folder + "/ids.db", lease)  # it was given back
/// ...     except ValueError as error:
/// ...         print(error.code)
/// INVALID_ARGUMENT
#[pyfunction]
#[pyo3(
    signature = (store, lease, *, namespace = NamespaceName("default".to_owned())),
    text_signature = "(store, lease, *, namespace='default')"
)]
pub(crate) fn release_lease(
    py: Python<'_>,
    store: Store,
    lease: StoredLease,
    namespace: NamespaceName,
) -> PyResult<i64> {
    let ask = |store: &mut dyn LeaseStore| operator::release_dead(store, lease.0);
    Ok(operate(py, store, namespace, ask)?.to)
}

/// Asks a store for something that needs no secret.
fn operate<T: Send>(
    py: Python<'_>,
    store: Store,
    namespace: NamespaceName,
    ask: impl FnOnce(&mut dyn LeaseStore) -> Result<T> + Send,
) -> PyResult<T> {
    let location = match store {
        Store::Here(location) => location,
        Store::Server(source) => source.location(Terms::default()),
    };
    py.detach(|| call(|| ask(&mut *location.open(&Namespace::for_operator(namespace.0)?)?)))
}

fn node_status<'py>(py: Python<'py>, listed: &Listed, node: &Node) -> PyResult<Bound<'py, PyAny>> {
    static NODE_STATUS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

    NODE_STATUS.import(py, "randflake.leases", "NodeStatus")?.call1((
        node.lease.node_id,
        listed.state(node).name(),
        node.lease.start,
        node.lease.end_exclusive,
        listed.seconds_left(node),
        listed.is_far(node.lease.end_exclusive),
        node.note.as_str(),
    ))
}
