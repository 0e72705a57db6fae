use std::time::Duration;

use pyo3::{
    prelude::*,
    types::{PyList, PyString, PyTuple},
};
use randflake_leases::Leased;

use crate::{
    arguments::{
        AcquireTimeout, AllowWeakStore, AnyId, AnySecret, Count, Create, MaxDrift, MaxSkew,
        MaxWait, NamespaceName, NodeCount, NodeIds, OptionalLease, Raw, RestartSafe, Store, Ttl,
        UnixSecond,
    },
    buffer::{Batch, Int64Buffer},
    clock::Clock,
    errors::call,
    flake::{AnyFlake, LeaseOptions, not_to_be_copied},
    numpy,
    parts::Parts,
    text::text_of,
};

/// A generator of unique 64-bit ids that outsiders cannot predict, order or count.
///
/// Randflake.leased(store, secret) makes one whose node id nobody else has meanwhile. This
/// constructor is for node ids given by hand.
///
/// A node id given by hand is safe for one live process at a time, on a machine whose clock has
/// not stepped back over the last id: two live processes with one node id and one secret repeat
/// each other's ids. In a forked child an inherited generator raises FORKED.
///
/// node_id: 0 to 131071, or a sequence of up to 16384 of them, each worth 131072 ids a second.
/// secret: 16 bytes, or a str of 32 hex digits; see generate_secret.
/// lease: the seconds that may be stamped; without one, all of them.
/// max_wait: how long a call may wait in all, 0 to 86400 seconds; 0 never waits. A batch gets the
/// seconds it needs for its size besides, unless it is 0.
/// max_drift: how many whole seconds ahead of the clock ids may be stamped, 0 to 3600; needs a
/// lease.
/// restart_safe: whether to skip the rest of the second in which the generator is made, in which
/// whoever had the node id before may have ended. Nothing is skipped while another generator of
/// this process with the same node ids, made earlier, is open. Has no effect with a lease.
/// clock: for tests. An object with now(), unix seconds as int or float, and optionally
/// sleep(seconds), or a callable that is now. What it raises goes on as it is.
///
/// Raises InvalidArgumentError with the code INVALID_NODE, INVALID_SECRET, INVALID_LEASE or
/// INVALID_ARGUMENT; RandflakeError with NODE_IN_USE if this process has the node id in a list
/// with others or leases it, FORKED if a process this one was forked from has it, or LIFETIME_OVER
/// in the last second.
///
/// >>> from randflake import Randflake, generate_secret
/// >>> with Randflake(7, generate_secret()) as flake:
/// ...     id = flake.generate()
/// >>> flake.inspect(id).node_id
/// 7
#[pyclass(frozen, module = "randflake")]
pub(crate) struct Randflake {
    pub(crate) flake: AnyFlake<randflake::Encrypted>,
}

#[pymethods]
impl Randflake {
    #[new]
    #[pyo3(
        signature = (
            node_id,
            secret,
            *,
            lease = OptionalLease(None),
            max_wait = MaxWait(Duration::from_secs(1)),
            max_drift = MaxDrift(0),
            restart_safe = RestartSafe(true),
            clock = Clock::System,
        ),
        text_signature = "(node_id, secret, *, lease=None, max_wait=1.0, max_drift=0, \
                          restart_safe=True, clock=None)"
    )]
    fn new(
        node_id: NodeIds,
        secret: AnySecret,
        lease: OptionalLease,
        max_wait: MaxWait,
        max_drift: MaxDrift,
        restart_safe: RestartSafe,
        clock: Clock,
    ) -> PyResult<Self> {
        let mut builder = randflake::Randflake::builder(&secret.0)
            .node_ids(node_id.0)
            .max_wait(max_wait.0)
            .max_drift(max_drift.0)
            .restart_safe(restart_safe.0)
            .clock(clock);
        if let Some(lease) = lease.0 {
            builder = builder.lease(lease);
        }
        let flake = Box::new(call(|| builder.build())?);
        Ok(Self { flake: AnyFlake::ByHand(flake) })
    }

    /// Makes a generator whose node ids are leased: nobody else has them meanwhile.
    ///
    /// A thread of its own renews the lease at a third of its length. A lease that is lost is
    /// replaced by another one, with other node ids. When the store is out of reach, the generator
    /// goes on to the end of its lease, raises LEASE_UNAVAILABLE, and recovers by itself. A forked
    /// child leases anew with its first call. close, the end of a with block and the end of the
    /// process give the node ids back.
    ///
    /// Take one for each process, for as long as it lives: each call takes a lease of its own.
    ///
    /// store: the path of a SQLite file on a local disk, which is made if it is missing. Or a
    /// server: a URL, which is postgresql://, redis://, rediss://, etcd://host:port,host:port or
    /// etcds://; a psycopg connection, or a pool of them; a redis.Redis; or an Adapter of
    /// randflake.stores. A forked child connects anew with a URL, and raises FORKED with others.
    /// secret: 16 bytes, or a str of 32 hex digits; see generate_secret.
    /// node_count: how many node ids, 1 to 16384, each worth 131072 ids a second. While the store
    /// has fewer, the generator does with fewer.
    /// ttl: for how many whole seconds a lease is asked, 1 to 86400 and at least six times
    /// max_skew; None for 300. An outage of the store is ridden out for two thirds of it, and the
    /// node id of a process that was killed is idle for up to that long.
    /// namespace: 1 to 200 bytes; one for each secret. One generator serves all tables of a secret.
    /// acquire_timeout: how many seconds the first lease may take, 0 to 86400.
    /// max_wait: how long a call may wait in all, 0 to 86400 seconds, as for a generator by hand.
    /// max_drift: how many whole seconds ahead of the clock ids may be stamped, 0 to a third of
    /// the ttl; None for 10, or that third. It absorbs clocks that step back, and lets a burst
    /// borrow coming seconds.
    /// max_skew: by how many whole seconds clocks may differ; a namespace keeps what it was made
    /// with.
    /// create: whether to make the namespace if it is not there, as "new", instead of init_store;
    /// None does so in a file, which is made, too, and not in PostgreSQL or etcd. With False a file
    /// that was lost is STORE_NOT_INITIALIZED, and not an empty store.
    /// allow_weak_store: whether to lease from a Redis or PostgreSQL that may lose what it has
    /// acknowledged.
    ///
    /// Raises InvalidArgumentError with the code INVALID_SECRET or INVALID_ARGUMENT; StoreError
    /// with NODES_EXHAUSTED, STORE_UNAVAILABLE, CLOCK_SKEW or STORE_QUARANTINED if there is no
    /// lease within acquire_timeout, with SECRET_MISMATCH, STORE_REPLACED, STORE_NOT_INITIALIZED,
    /// WEAK_STORE or DRIVER_MISSING at once. Ctrl-C ends the wait.
    ///
    /// >>> import tempfile
    /// >>> from randflake import Randflake, generate_secret
    /// >>> with tempfile.TemporaryDirectory() as folder:
    /// ...     with Randflake.leased(folder + "/ids.db", generate_secret()) as flake:
    /// ...         id = flake.generate()
    /// ...         flake.node_ids == (flake.inspect(id).node_id,)
    /// True
    #[staticmethod]
    #[pyo3(
        signature = (
            store,
            secret,
            *,
            node_count = NodeCount(1),
            ttl = None,
            namespace = NamespaceName("default".to_owned()),
            acquire_timeout = AcquireTimeout(Duration::from_secs(10)),
            max_wait = MaxWait(Duration::from_secs(1)),
            max_drift = None,
            max_skew = MaxSkew(5),
            create = None,
            allow_weak_store = AllowWeakStore(false),
        ),
        text_signature = "(store, secret, *, node_count=1, ttl=None, namespace='default', \
                          acquire_timeout=10, max_wait=1.0, max_drift=None, max_skew=5, \
                          create=None, allow_weak_store=False)"
    )]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn leased(
        py: Python<'_>,
        store: Store,
        secret: AnySecret,
        node_count: NodeCount,
        ttl: Option<Ttl>,
        namespace: NamespaceName,
        acquire_timeout: AcquireTimeout,
        max_wait: MaxWait,
        max_drift: Option<MaxDrift>,
        max_skew: MaxSkew,
        create: Option<Create>,
        allow_weak_store: AllowWeakStore,
    ) -> PyResult<Self> {
        let options = LeaseOptions {
            node_count,
            ttl,
            namespace,
            acquire_timeout,
            max_wait,
            max_drift,
            max_skew,
            create,
            allow_weak_store,
        };
        let builder = |location| Leased::builder(location, &secret.0).clock(Clock::System);
        let flake = AnyFlake::lease_from(py, store, builder, options)?;
        Ok(Self { flake })
    }

    /// Generates an id: a signed 64-bit integer. Half of all ids are negative.
    ///
    /// Raises RetryLaterError if none can be had within max_wait (SEQUENCE_EXHAUSTED,
    /// CLOCK_MOVED_BACK, LEASE_NOT_STARTED; of a leased generator LEASE_UNAVAILABLE, with the
    /// error of the store as its cause); RandflakeError for what waiting does not help
    /// (LEASE_EXPIRED, LIFETIME_OVER, CLOCK_BEFORE_EPOCH, FORKED, CLOSED). In a forked child the
    /// first call of a leased generator waits up to acquire_timeout.
    fn generate(&self, py: Python<'_>) -> PyResult<i64> {
        self.flake.generate(py).map(i64::from)
    }

    /// Generates an id as text: 1 to 13 of the characters 0-9 and a-v, for URLs and JSON.
    ///
    /// Raises what generate raises.
    fn generate_string<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.flake.generate(py).and_then(|id| text_of(py, id))
    }

    /// Generates n ids, in the order in which they are claimed.
    ///
    /// Raises what generate raises, before any id is claimed where the batch would need longer
    /// than the seconds for its size and max_wait, and INVALID_ARGUMENT for an n that is
    /// negative, that takes more than an hour, that does not fit in memory, or that no second can
    /// hold if max_wait is 0. A batch may take longer than a lease from a store: that is renewed
    /// meanwhile.
    ///
    /// >>> from randflake import Randflake, generate_secret
    /// >>> len(set(Randflake(8, generate_secret()).generate_many(1000)))
    /// 1000
    fn generate_many<'py>(&self, py: Python<'py>, n: Count) -> PyResult<Bound<'py, PyList>> {
        let mut ids = self.flake.batch(py, n.0)?;
        self.flake.fill_private(py, &mut ids)?;
        PyList::new(py, ids.iter())
    }

    /// Generates n ids as a numpy array of int64.
    ///
    /// Raises what generate_many raises, and ImportError where numpy is not installed.
    fn generate_array<'py>(&self, py: Python<'py>, n: Count) -> PyResult<Bound<'py, PyAny>> {
        let mut ids = self.flake.batch(py, n.0)?;
        // Made first: what it raises comes before any id is claimed.
        let array = numpy::empty::<i64>(py, n.0)?;
        self.flake.fill_private(py, &mut ids)?;
        Int64Buffer::writable(&array)?.write(py, &ids)?;
        Ok(array)
    }

    /// Fills a writable buffer with ids, in the order in which they are claimed.
    ///
    /// buffer: native signed 64-bit integers without gaps, such as array.array("q") or a numpy
    /// array of int64. If the call fails, it is zeroed.
    ///
    /// Raises what generate_many raises, and INVALID_ARGUMENT for another kind of buffer.
    ///
    /// >>> from array import array
    /// >>> from randflake import Randflake, generate_secret
    /// >>> ids = array("q", bytes(8 * 1000))
    /// >>> Randflake(9, generate_secret()).fill(ids)
    /// >>> len(set(ids))
    /// 1000
    fn fill(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = Int64Buffer::writable(buffer)?;
        let mut ids = Batch::of(buffer.len())?;
        let filled = self.flake.fill_private(py, &mut ids);
        // After a failure these are zeros.
        buffer.write(py, &ids)?;
        filled
    }

    /// Reads an id back: when, where and as which one it was made.
    ///
    /// id: an int, or its text.
    ///
    /// Every 64-bit number has such parts: they mean something only for ids made with this
    /// secret. Works in a forked child and after close, too.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ID.
    fn inspect(&self, id: AnyId) -> Parts {
        match &self.flake {
            AnyFlake::ByHand(flake) => flake.inspect(id.0),
            AnyFlake::Leased(leased) => leased.inspect(id.0),
        }
        .into()
    }

    /// Returns the sortable form of an id: time, node id and sequence, unencrypted.
    ///
    /// It is an unsigned 64-bit integer. Never hand it to anyone who must not know what is in it.
    ///
    /// id: an int, or its text.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ID.
    fn decrypt(&self, id: AnyId) -> u64 {
        match &self.flake {
            AnyFlake::ByHand(flake) => flake.decrypt(id.0),
            AnyFlake::Leased(leased) => leased.decrypt(id.0),
        }
    }

    /// Returns the id of a sortable form; undoes decrypt.
    ///
    /// raw: an unsigned 64-bit integer that came from decrypt. Of others nobody knows that they
    /// are unique.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ID.
    fn encrypt(&self, raw: Raw) -> i64 {
        match &self.flake {
            AnyFlake::ByHand(flake) => flake.encrypt(raw.0),
            AnyFlake::Leased(leased) => leased.encrypt(raw.0),
        }
        .into()
    }

    /// Raises the end of the lease.
    ///
    /// end_exclusive: an absolute unix second. One before the present end changes nothing.
    ///
    /// Raises InvalidArgumentError with the code INVALID_LEASE if there is no lease, if it comes
    /// from a store, or if the end is out of range; RandflakeError with FORKED or CLOSED.
    fn extend_lease(&self, end_exclusive: UnixSecond) -> PyResult<()> {
        self.flake.extend_lease(&end_exclusive)
    }

    /// The lease: a LeaseStatus of a leased generator, else the Lease that was given.
    ///
    /// None without one and after close, and in a forked child that has not leased yet.
    #[getter]
    fn lease<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.flake.lease(py)
    }

    /// The node ids, sorted; none after close, and in a forked child that has not leased yet.
    #[getter]
    fn node_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.flake.node_ids_tuple(py)
    }

    /// Ends the generator for good.
    ///
    /// Every later call that needs it open raises CLOSED; reading ids goes on. Does nothing the
    /// second time, and leaves alone what belongs to the parent of a forked child.
    ///
    /// Leased node ids are given back. This waits up to 5 seconds for the store; what it does not
    /// learn in time is free at the end of the lease.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.flake.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (exc_type, exc_value, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        exc_value: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (exc_type, exc_value, traceback);
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<randflake.Randflake node_ids={:?}>", self.flake.node_ids())
    }

    /// Refuses pickle and copy.
    fn __reduce_ex__(&self, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = (self, protocol);
        Err(not_to_be_copied())
    }
}
