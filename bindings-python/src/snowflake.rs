use std::{ffi::CString, time::Duration};

use pyo3::{
    prelude::*,
    types::{PyList, PyTuple},
};
use randflake::Clock as _;
use randflake_leases::Leased;

use crate::{
    arguments::{
        AcquireTimeout, AllowWeakStore, Count, Create, MaxDrift, MaxSkew, MaxWait, NamespaceName,
        NodeCount, NodeIds, OptionalLease, Raw, RestartSafe, Store, Ttl, UnixSecond,
    },
    buffer::{Batch, Int64Buffer},
    clock::Clock,
    errors::{LifetimeWarning, call, raise},
    flake::{AnyFlake, LeaseOptions, not_to_be_copied},
    layout::{AnyLayout, Layout, RawParts},
    numpy,
};

/// A generator of unique 64-bit ids that sort by time, of any layout of the Snowflake family.
///
/// Whoever sees an id can read it and predict others; Cloak hides them.
///
/// Snowflake.leased(store, layout) makes one whose node id nobody else has meanwhile. This
/// constructor is for node ids given by hand.
///
/// A node id given by hand is safe for one live process at a time, on a machine whose clock has
/// not stepped back over the last id: two live processes with one node id and one layout repeat
/// each other's ids. In a forked child an inherited generator raises FORKED.
///
/// node_id: 0 to max_node_id of the layout, or a sequence of up to max_nodes of them, each worth
/// ids_per_node ids a tick; 0 where the layout has no node ids.
/// layout: a Layout, or the name of a preset.
/// lease: the seconds that may be stamped; without one, all of them.
/// max_wait: how long a call may wait in all, 0 to 86400 seconds; 0 never waits. A batch gets the
/// ticks it needs for its size besides, unless it is 0.
/// max_drift: how many whole seconds ahead of the clock ids may be stamped, 0 to 3600; needs a
/// lease. Ids that run ahead are out of order with those of other nodes.
/// restart_safe: whether to skip the rest of the tick in which the generator is made, in which
/// whoever had the node id before may have ended. Nothing is skipped while another generator of
/// this process with the same node ids, made earlier, is open. Has no effect with a lease.
/// clock: for tests. An object with now(), unix seconds as int or float, and optionally
/// sleep(seconds), or a callable that is now. What it raises goes on as it is. A float is rounded
/// down: for the tick of a millisecond return (unix_ms + 0.5) / 1000, since unix_ms / 1000 may be a
/// bit before it.
///
/// Raises InvalidArgumentError with the code INVALID_NODE, INVALID_LEASE or INVALID_ARGUMENT;
/// RandflakeError with LIFETIME_OVER if the layout has ended or is in its last tick, NODE_IN_USE if
/// this process has the node id in a list with others or with ticks that begin otherwise or leases
/// it, or FORKED if a process this one was forked from has it. Warns with LifetimeWarning if the layout ends within two years.
///
/// >>> from randflake import Snowflake
/// >>> with Snowflake(378, "twitter") as flake:
/// ...     one, other = flake.generate(), flake.generate()
/// >>> one < other
/// True
/// >>> flake.inspect(one).node_id
/// 378
#[pyclass(frozen, module = "randflake")]
pub(crate) struct Snowflake {
    layout: randflake::Layout,
    pub(crate) flake: AnyFlake<randflake::Plain>,
}

#[pymethods]
impl Snowflake {
    #[new]
    #[pyo3(
        signature = (
            node_id,
            layout = AnyLayout(randflake::Layout::twitter()),
            *,
            lease = OptionalLease(None),
            max_wait = MaxWait(Duration::from_secs(1)),
            max_drift = MaxDrift(0),
            restart_safe = RestartSafe(true),
            clock = Clock::System,
        ),
        text_signature = "(node_id, layout='twitter', *, lease=None, max_wait=1.0, max_drift=0, \
                          restart_safe=True, clock=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        py: Python<'_>,
        node_id: &Bound<'_, PyAny>,
        layout: AnyLayout,
        lease: OptionalLease,
        max_wait: MaxWait,
        max_drift: MaxDrift,
        restart_safe: RestartSafe,
        clock: Clock,
    ) -> PyResult<Self> {
        let warning = layout.0.warning().filter(|_| clock.is_system());
        let mut builder = randflake::Snowflake::builder(layout.0)
            .node_ids(NodeIds::of(&layout.0, node_id)?.0)
            .max_wait(max_wait.0)
            .max_drift(max_drift.0)
            .restart_safe(restart_safe.0)
            .clock(clock);
        if let Some(lease) = lease.0 {
            builder = builder.lease(lease);
        }
        let flake = Box::new(call(|| builder.build())?);
        if let Some(warning) = warning {
            warn(py, warning)?;
        }
        Ok(Self { layout: layout.0, flake: AnyFlake::ByHand(flake) })
    }

    /// Makes a generator whose node ids are leased: nobody else has them meanwhile.
    ///
    /// Renewals, losses, outages, forks and ends are as with Randflake.leased.
    ///
    /// store: as in Randflake.leased.
    /// layout: a Layout with node ids, or the name of a preset. A namespace has one; its node ids
    /// are leased, or the lowest 131072 of them.
    /// node_count: how many node ids, 1 to max_nodes of the layout, each worth ids_per_node ids a
    /// tick. While the store has fewer, the generator does with fewer.
    /// ttl: for how many whole seconds a lease is asked, 1 to 86400, at least six times max_skew
    /// and, where ticks are longer than a second, at least six of them; None for 300.
    /// namespace: 1 to 200 bytes; one for each layout.
    /// max_drift: how many whole seconds ahead of the clock ids may be stamped, 0 to a third of
    /// the ttl. It absorbs clocks that step back, and lets a burst borrow coming ticks; ids that
    /// run ahead are out of order with those of other nodes.
    /// acquire_timeout, max_wait, max_skew, create, allow_weak_store: as in Randflake.leased.
    ///
    /// Raises what Randflake.leased raises; INVALID_ARGUMENT also if the namespace has another
    /// layout or the layout has no node ids; RandflakeError with LIFETIME_OVER if the layout has
    /// ended. Warns with LifetimeWarning if it ends within two years.
    ///
    /// >>> import tempfile
    /// >>> from randflake import Snowflake
    /// >>> with tempfile.TemporaryDirectory() as folder:
    /// ...     with Snowflake.leased(folder + "/ids.db", "sonyflake2") as flake:
    /// ...         one, other = flake.generate(), flake.generate()
    /// ...         flake.node_ids == (flake.inspect(one).node_id,)
    /// True
    /// >>> one < other
    /// True
    #[staticmethod]
    #[pyo3(
        signature = (
            store,
            layout = AnyLayout(randflake::Layout::twitter()),
            *,
            node_count = NodeCount(1),
            ttl = None,
            namespace = NamespaceName("default".to_owned()),
            acquire_timeout = AcquireTimeout(Duration::from_secs(10)),
            max_wait = MaxWait(Duration::from_secs(1)),
            max_drift = MaxDrift(0),
            max_skew = MaxSkew(5),
            create = None,
            allow_weak_store = AllowWeakStore(false),
        ),
        text_signature = "(store, layout='twitter', *, node_count=1, ttl=None, \
                          namespace='default', acquire_timeout=10, max_wait=1.0, max_drift=0, \
                          max_skew=5, create=None, allow_weak_store=False)"
    )]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn leased(
        py: Python<'_>,
        store: Store,
        layout: AnyLayout,
        node_count: NodeCount,
        ttl: Option<Ttl>,
        namespace: NamespaceName,
        acquire_timeout: AcquireTimeout,
        max_wait: MaxWait,
        max_drift: MaxDrift,
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
            max_drift: Some(max_drift),
            max_skew,
            create,
            allow_weak_store,
        };
        let layout = layout.0;
        let builder = |location| Leased::for_layout(location, layout).clock(Clock::System);
        let flake = AnyFlake::lease_from(py, store, builder, options)?;
        if let Some(warning) = layout.warning() {
            warn(py, warning)?;
        }
        Ok(Self { layout, flake })
    }

    /// Generates an id: an unsigned 64-bit integer.
    ///
    /// It is larger than every one that this thread was given before, where the layout has its
    /// time on top; with several node ids, where those lie above the sequence.
    ///
    /// Raises RetryLaterError if none can be had within max_wait (SEQUENCE_EXHAUSTED,
    /// CLOCK_MOVED_BACK, LEASE_NOT_STARTED; of a leased generator LEASE_UNAVAILABLE, with the
    /// error of the store as its cause); RandflakeError for what waiting does not help
    /// (LEASE_EXPIRED, LIFETIME_OVER, CLOCK_BEFORE_EPOCH, FORKED, CLOSED). In a forked child the
    /// first call of a leased generator waits up to acquire_timeout.
    fn generate(&self, py: Python<'_>) -> PyResult<u64> {
        self.flake.generate(py)
    }

    /// Generates n ids, in the order in which they are claimed.
    ///
    /// Raises what generate raises, before any id is claimed where the batch would need longer
    /// than the ticks for its size and max_wait, and INVALID_ARGUMENT for an n that is negative,
    /// that takes more than an hour, that does not fit in memory, or that no tick can hold if
    /// max_wait is 0. A batch may take longer than a lease from a store: that is renewed meanwhile.
    ///
    /// >>> from randflake import Snowflake
    /// >>> ids = Snowflake(8).generate_many(1000)
    /// >>> ids == sorted(set(ids))
    /// True
    fn generate_many<'py>(&self, py: Python<'py>, n: Count) -> PyResult<Bound<'py, PyList>> {
        let mut ids = self.flake.batch(py, n.0)?;
        self.flake.fill_private(py, &mut ids)?;
        PyList::new(py, ids.iter().map(|id| id.cast_unsigned()))
    }

    /// Generates n ids as a numpy array of int64, as a signed column holds them.
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
    /// >>> from randflake import Snowflake
    /// >>> ids = array("q", bytes(8 * 1000))
    /// >>> Snowflake(9).fill(ids)
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
    /// raw: an unsigned 64-bit integer.
    ///
    /// Works in a forked child and after close, too.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ID.
    fn inspect(&self, raw: Raw) -> PyResult<RawParts> {
        self.layout.inspect(raw.0).map(RawParts::from).map_err(raise)
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

    /// The layout.
    #[getter]
    fn layout(&self) -> Layout {
        Layout { layout: self.layout }
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
        let layout = self.layout.name();
        format!("<randflake.Snowflake layout={layout} node_ids={:?}>", self.flake.node_ids())
    }

    /// Refuses pickle and copy.
    fn __reduce_ex__(&self, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = (self, protocol);
        Err(not_to_be_copied())
    }
}

fn warn(py: Python<'_>, warning: String) -> PyResult<()> {
    let message = CString::new(warning).expect("the message has no zero byte");
    PyErr::warn(py, &py.get_type::<LifetimeWarning>(), &message, 1)
}
