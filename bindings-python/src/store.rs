use pyo3::prelude::*;
use randflake::Error;
use randflake_leases::Namespace;

use crate::{
    arguments::{AllowWeakStore, AnySecret, MaxSkew, NamespaceName, Quarantine, Store, Ttl},
    client::Terms,
    errors::{call, made, raise},
    layout::AnyLayout,
};

/// Makes a namespace in a store with a server, once, before its first lease.
///
/// Checks it if it is there. In PostgreSQL this makes the tables, too.
///
/// store: the URL or the client of a server, as in Randflake.leased.
/// secret: 16 bytes, or a str of 32 hex digits: of all Randflake generators of this namespace.
/// layout: instead of a secret, for Snowflake: a Layout with node ids, or the name of a preset.
/// namespace: 1 to 200 bytes; one for each id column and its one secret or layout.
/// ttl: how many whole seconds the longest lease has, 1 to 86400 and at least six times max_skew.
/// max_skew: by how many whole seconds clocks may differ.
/// quarantine: whether the store may have held this namespace before and lost it, as after a
/// restart without its data. A new one grants nothing then for ttl and max_skew.
/// allow_weak_store: whether a Redis may be one that may lose what it has acknowledged.
///
/// Raises InvalidArgumentError with the code INVALID_SECRET or INVALID_ARGUMENT; StoreError with
/// STORE_UNAVAILABLE, SECRET_MISMATCH, WEAK_STORE or DRIVER_MISSING.
///
/// >>> from randflake import StoreError, generate_secret, init_store
/// >>> try:
/// ...     init_store("etcd://localhost:1", generate_secret())
/// ... except StoreError as error:
/// ...     print(error.code)  # nobody listens at that port
/// STORE_UNAVAILABLE
#[pyfunction]
#[pyo3(
    signature = (
        store,
        secret = None,
        *,
        layout = None,
        namespace = NamespaceName("default".to_owned()),
        ttl = Ttl(Namespace::MAX_TTL),
        max_skew = MaxSkew(5),
        quarantine = Quarantine(false),
        allow_weak_store = AllowWeakStore(false),
    ),
    text_signature = "(store, secret=None, *, layout=None, namespace='default', ttl=300, \
                      max_skew=5, quarantine=False, allow_weak_store=False)"
)]
#[allow(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn init_store(
    py: Python<'_>,
    store: Store,
    secret: Option<AnySecret>,
    layout: Option<AnyLayout>,
    namespace: NamespaceName,
    ttl: Ttl,
    max_skew: MaxSkew,
    quarantine: Quarantine,
    allow_weak_store: AllowWeakStore,
) -> PyResult<()> {
    let Store::Server(source) = store else {
        return Err(raise(Error::invalid_argument(
            "store must be the URL or the client of a server; a file is made by its first lease",
        )));
    };
    let named = match (secret, layout) {
        (Some(secret), None) => Namespace::new(namespace.0, &secret.0),
        (None, Some(layout)) => Namespace::for_layout(namespace.0, layout.0),
        _ => Err(Error::invalid_argument(
            "a namespace has either a secret, for Randflake, or a layout, for Snowflake; give one \
             of them",
        )),
    };
    let terms = Terms { create: false, allow_weak_store: allow_weak_store.0 };
    let init = || {
        // The skew last, since it may be anything up to a sixth of the ttl.
        let namespace = named?.max_skew(0)?.max_ttl(ttl.0)?.max_skew(max_skew.0)?;
        source.connect(namespace, terms)?.init(quarantine.0)
    };
    py.detach(|| call(init)).map_err(|raised| made(py, raised))
}
