use pyo3::{
    prelude::*,
    types::{PyList, PyString, PyTuple},
};
use randflake::{Error, ErrorKind};

use crate::{
    arguments::{
        AnyId, AnySecret, Count, MaxDrift, MaxWait, NodeIds, OptionalLease, Raw, RestartSafe,
        UnixSecond,
    },
    buffer::{Int64Buffer, zeros},
    clock::Clock,
    errors::{call, wrong_type},
    lease::Lease,
    numpy,
    parts::Parts,
    text::text_of,
};

/// Batches from this size on release the GIL. Encrypting fewer takes less time than getting the
/// GIL back from a busy thread.
const LARGE_BATCH: usize = 16_384;

/// A generator of unique 64-bit ids that outsiders cannot predict, order or count.
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
/// restart_safe: whether to skip the rest of the second in which the package was loaded, in which
/// an earlier life of the node id may have ended. Has no effect with a lease.
/// clock: for tests. An object with now(), unix seconds as int or float, and optionally
/// sleep(seconds), or a callable that is now. What it raises goes on as it is.
///
/// Raises InvalidArgumentError with the code INVALID_NODE, INVALID_SECRET, INVALID_LEASE or
/// INVALID_ARGUMENT; RandflakeError with NODE_IN_USE if this process has the node id in a list
/// with others, or FORKED if a process this one was forked from has it.
///
/// >>> from randflake import Randflake, generate_secret
/// >>> with Randflake(7, generate_secret()) as flake:
/// ...     id = flake.generate()
/// >>> flake.inspect(id).node_id
/// 7
#[pyclass(frozen, module = "randflake")]
pub(crate) struct Randflake {
    flake: randflake::Randflake<Clock>,
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
            max_wait = MaxWait(std::time::Duration::from_secs(1)),
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
        call(|| builder.build()).map(|flake| Self { flake })
    }

    /// Generates an id: a signed 64-bit integer. Half of all ids are negative.
    ///
    /// Raises RetryLaterError if none can be had within max_wait (SEQUENCE_EXHAUSTED,
    /// CLOCK_MOVED_BACK, LEASE_NOT_STARTED); RandflakeError for what waiting does not help
    /// (LEASE_EXPIRED, LIFETIME_OVER, CLOCK_BEFORE_EPOCH, FORKED, CLOSED).
    fn generate(&self) -> PyResult<i64> {
        call(|| self.flake.generate()).map(i64::from)
    }

    /// Generates an id as text: 1 to 13 of the characters 0-9 and a-v, for URLs and JSON.
    ///
    /// Raises what generate raises.
    fn generate_string<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        call(|| self.flake.generate()).and_then(|id| text_of(py, id))
    }

    /// Generates n ids, in the order in which they are claimed.
    ///
    /// Raises what generate raises, before any id is claimed where the batch would need longer
    /// than the seconds for its size and max_wait, and INVALID_ARGUMENT for an n that is
    /// negative, that does not fit in memory, or that no second can hold if max_wait is 0.
    ///
    /// >>> from randflake import Randflake, generate_secret
    /// >>> len(set(Randflake(8, generate_secret()).generate_many(1000)))
    /// 1000
    fn generate_many<'py>(&self, py: Python<'py>, n: Count) -> PyResult<Bound<'py, PyList>> {
        let mut ids = zeros(n.0)?;
        self.fill_private(py, &mut ids)?;
        PyList::new(py, ids)
    }

    /// Generates n ids as a numpy array of int64.
    ///
    /// Raises what generate_many raises, and ImportError where numpy is not installed.
    fn generate_array<'py>(&self, py: Python<'py>, n: Count) -> PyResult<Bound<'py, PyAny>> {
        let mut ids = zeros(n.0)?;
        // Made first: what it raises comes before any id is claimed.
        let array = numpy::empty::<i64>(py, n.0)?;
        self.fill_private(py, &mut ids)?;
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
        let mut ids = zeros(buffer.len())?;
        let filled = self.fill_private(py, &mut ids);
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
        self.flake.inspect(id.0).into()
    }

    /// Returns the sortable form of an id: time, node id and sequence, unencrypted.
    ///
    /// It is an unsigned 64-bit integer. Never hand it to anyone who must not know what is in it.
    ///
    /// id: an int, or its text.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ID.
    fn decrypt(&self, id: AnyId) -> u64 {
        self.flake.decrypt(id.0)
    }

    /// Returns the id of a sortable form; undoes decrypt.
    ///
    /// raw: an unsigned 64-bit integer that came from decrypt. Of others nobody knows that they
    /// are unique.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ID.
    fn encrypt(&self, raw: Raw) -> i64 {
        self.flake.encrypt(raw.0).into()
    }

    /// Raises the end of the lease.
    ///
    /// end_exclusive: an absolute unix second. One before the present end changes nothing.
    ///
    /// Raises InvalidArgumentError with the code INVALID_LEASE if there is no lease or the end is
    /// out of range; RandflakeError with FORKED or CLOSED.
    fn extend_lease(&self, end_exclusive: UnixSecond) -> PyResult<()> {
        call(|| self.flake.extend_lease(end_exclusive.0))
    }

    /// The lease; None without one and after close.
    #[getter]
    fn lease(&self) -> Option<Lease> {
        self.flake.lease().map(|lease| Lease { lease })
    }

    /// The node ids, sorted; none after close.
    #[getter]
    fn node_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.flake.node_ids())
    }

    /// Ends the generator for good.
    ///
    /// Every later call that needs it open raises CLOSED; reading ids goes on. Does nothing the
    /// second time, and nothing in a forked child.
    fn close(&self) -> PyResult<()> {
        call(|| {
            self.flake.close();
            Ok(())
        })
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (exc_type, exc_value, traceback, /))]
    fn __exit__(
        &self,
        exc_type: &Bound<'_, PyAny>,
        exc_value: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (exc_type, exc_value, traceback);
        self.close()
    }

    fn __repr__(&self) -> String {
        format!("<randflake.Randflake node_ids={:?}>", self.flake.node_ids())
    }

    /// Refuses pickle and copy.
    fn __reduce_ex__(&self, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = (self, protocol);
        Err(wrong_type(&Error::new(
            ErrorKind::InvalidArgument,
            "a generator cannot be pickled or copied, since the copy would repeat its ids; make \
             one in each process, with node ids of its own",
        )))
    }
}

impl Randflake {
    /// Fills memory that no other thread sees, so the GIL can be released.
    fn fill_private(&self, py: Python<'_>, ids: &mut [i64]) -> PyResult<()> {
        if ids.len() < LARGE_BATCH {
            call(|| self.flake.fill_i64(ids))
        } else {
            py.detach(|| call(|| self.flake.fill_i64(ids)))
        }
    }
}
