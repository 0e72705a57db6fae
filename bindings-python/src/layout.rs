use std::fmt::Display;

use pyo3::{
    Borrowed, IntoPyObjectExt,
    exceptions::PyOverflowError,
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{IntoPyDict, PyDateTime, PyDict, PyString, PyTuple, PyType, PyTzInfo},
};
use randflake::{Error, ErrorKind, Field, Sequence, bindings};

use crate::{
    arguments::{Raw, integer, items, type_of},
    errors::{raise, wrong_type},
    parts::part,
};

/// How time, node id and sequence share the bits of a sortable id, and how time is counted.
///
/// name: a preset: randflake, twitter, discord, leaf, baidu, sonyflake, sonyflake2, instagram or
/// simpleflake. Or describe a layout of your own:
/// fields: pairs of "time", "node" or "sequence" and a width in bits, from high to low; the node
/// and the sequence have at most 32 bits each and may be missing.
/// tick_ms: the length of a tick, 1 to 86400000 milliseconds; 1 unless given.
/// epoch_ms: the unix millisecond, in UTC, at which tick 0 begins; 0 unless given.
/// unsigned: whether the fields may take all 64 bits. Otherwise the top bit stays zero.
/// node_split: widths of the datacenter and of the worker, which fill the node.
/// sequence: with which sequence a tick begins, of a preset, too: "zero"; "continuing", with the
/// one after the last; or ("random", n), with one drawn from 0 to n-1. The last two spread the ids
/// of a quiet node over the shards of whoever cuts them by their low bits.
///
/// Ids are unsigned: one that a signed column shows as negative is id % 2**64 here. Layouts
/// compare equal, hash and pickle.
///
/// Raises InvalidArgumentError with the code INVALID_ARGUMENT if there is no such preset, or the
/// description does not hold together.
///
/// >>> from randflake import Layout
/// >>> Layout("discord").inspect(175928847299117063)
/// RawParts(unix_ms=1462015105796, node_id=32, sequence=7)
/// >>> fields = [("time", 29), ("node", 21), ("sequence", 13)]
/// >>> layout = Layout(fields=fields, tick_ms=1000, epoch_ms=1474300800000)
/// >>> layout.inspect(180363646902239241)
/// RawParts(unix_ms=1484799346000, node_id=4, sequence=9)
#[pyclass(frozen, eq, hash, module = "randflake")]
#[derive(Eq, Hash, PartialEq)]
pub(crate) struct Layout {
    pub(crate) layout: randflake::Layout,
}

#[pymethods]
impl Layout {
    #[new]
    #[pyo3(
        signature = (
            name = None,
            *,
            fields = None,
            tick_ms = None,
            epoch_ms = None,
            sequence = None,
            unsigned = Unsigned(false),
            node_split = None,
        ),
        text_signature = "(name=None, *, fields=None, tick_ms=None, epoch_ms=None, sequence=None, \
                          unsigned=False, node_split=None)"
    )]
    fn new(
        name: Option<Name>,
        fields: Option<Fields>,
        tick_ms: Option<TickMs>,
        epoch_ms: Option<EpochMs>,
        sequence: Option<Starts>,
        unsigned: Unsigned,
        node_split: Option<NodeSplit>,
    ) -> PyResult<Self> {
        let layout = match (name, fields) {
            (Some(Name(preset)), None)
                if tick_ms.is_none()
                    && epoch_ms.is_none()
                    && !unsigned.0
                    && node_split.is_none() =>
            {
                match sequence {
                    Some(Starts(sequence)) => preset.with_sequence(sequence),
                    None => Ok(preset),
                }
            }
            (None, Some(Fields(fields))) => {
                let mut custom = randflake::Layout::custom(fields).unsigned(unsigned.0);
                if let Some(TickMs(tick_ms)) = tick_ms {
                    custom = custom.tick_ms(tick_ms);
                }
                if let Some(EpochMs(epoch_ms)) = epoch_ms {
                    custom = custom.epoch_ms(epoch_ms);
                }
                if let Some(Starts(sequence)) = sequence {
                    custom = custom.sequence(sequence);
                }
                if let Some(NodeSplit([datacenter_bits, worker_bits])) = node_split {
                    custom = custom.node_split(datacenter_bits, worker_bits);
                }
                custom.build()
            }
            _ => Err(Error::invalid_argument(
                "a layout is the name of a preset, for which only the sequence can be chosen, or \
                 is described by its fields",
            )),
        };
        Ok(Self { layout: layout.map_err(raise)? })
    }

    /// Reads an id: when, where and as which one it was made.
    ///
    /// raw: an unsigned 64-bit integer.
    ///
    /// Whatever has no bits outside the fields has parts; whether it is an id, they do not say.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ID.
    fn inspect(&self, raw: Raw) -> PyResult<RawParts> {
        self.layout.inspect(raw.0).map(RawParts::from).map_err(raise)
    }

    /// Packs an id, for tests and conversions: nobody knows whether it is unique.
    ///
    /// unix_ms: unix milliseconds or an aware datetime, rounded down to the tick.
    /// node_id: 0 to max_node_id.
    /// sequence: 0 to max_sequence.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ARGUMENT or INVALID_NODE.
    ///
    /// >>> from randflake import Layout
    /// >>> Layout("discord").pack(1462015105796, 32, 7)
    /// 175928847299117063
    fn pack(
        &self,
        unix_ms: UnixMs,
        node_id: &Bound<'_, PyAny>,
        sequence: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let node_id = integer(node_id, |got| bindings::invalid_node(&self.layout, got))?;
        let sequence = integer(sequence, |got| {
            let max = self.layout.max_sequence();
            Error::invalid_argument(format!(
                "a sequence must be an integer between 0 and {max}, got {got}"
            ))
        })?;
        self.layout.pack(unix_ms.0, node_id, sequence).map_err(raise)
    }

    /// Returns the smallest id of the tick at a time, to find rows by their time of making.
    ///
    /// unix_ms: unix milliseconds or an aware datetime.
    ///
    /// Ids compare as unsigned numbers. In a signed column those of the time from negative_from on
    /// come before all others.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ARGUMENT if the time is not the top
    /// field, so that ids are not in its order, or if it is outside the lifetime.
    ///
    /// >>> from datetime import UTC, datetime
    /// >>> from randflake import Layout
    /// >>> twitter = Layout("twitter")
    /// >>> first = twitter.first_id_at(datetime(2025, 11, 20, tzinfo=UTC))
    /// >>> before = twitter.first_id_at(datetime(2025, 11, 21, tzinfo=UTC))
    /// >>> first <= twitter.pack(1763640000000, 5, 0) < before  # the rows of that day
    /// True
    fn first_id_at(&self, unix_ms: UnixMs) -> PyResult<u64> {
        self.layout.first_id_at(unix_ms.0).map_err(raise)
    }

    /// Returns the largest id of the tick at a time; see first_id_at.
    ///
    /// unix_ms: unix milliseconds or an aware datetime.
    ///
    /// Raises what first_id_at raises.
    fn last_id_at(&self, unix_ms: UnixMs) -> PyResult<u64> {
        self.layout.last_id_at(unix_ms.0).map_err(raise)
    }

    /// Returns the node id of a datacenter and a worker (a worker and a process, for Discord).
    ///
    /// Raises InvalidArgumentError with the code INVALID_NODE if node ids have no such parts, or
    /// one is too large.
    ///
    /// >>> from randflake import Layout
    /// >>> Layout("twitter").join_node(11, 26)
    /// 378
    fn join_node(&self, datacenter: &Bound<'_, PyAny>, worker: &Bound<'_, PyAny>) -> PyResult<u32> {
        let error = |got: &dyn Display| {
            Error::new(
                ErrorKind::InvalidNode,
                format!("the parts of a node id are integers within their widths, got {got}"),
            )
        };
        let (datacenter, worker) = (integer(datacenter, error)?, integer(worker, error)?);
        self.layout.join_node(datacenter, worker).map_err(raise)
    }

    /// Returns the datacenter and the worker of a node id; None where it has no such parts.
    ///
    /// Raises InvalidArgumentError with the code INVALID_NODE.
    ///
    /// >>> from randflake import Layout
    /// >>> Layout("twitter").split_node(378)
    /// (11, 26)
    fn split_node(&self, node_id: &Bound<'_, PyAny>) -> PyResult<Option<(u32, u32)>> {
        let node_id = integer(node_id, |got| bindings::invalid_node(&self.layout, got))?;
        if node_id > self.layout.max_node_id() {
            return Err(raise(bindings::invalid_node(&self.layout, node_id)));
        }
        Ok(self.layout.split_node(node_id))
    }

    /// Returns how many seconds the layout has left on the machine's clock; 0 once it is over.
    ///
    /// >>> from randflake import Layout
    /// >>> Layout("baidu").remaining()
    /// 0.0
    fn remaining(&self) -> f64 {
        self.layout.remaining().as_secs_f64()
    }

    /// The name of the preset, or "custom".
    #[getter]
    fn name(&self) -> &'static str {
        self.layout.name()
    }

    /// The fields, from high to low, with their widths in bits.
    ///
    /// >>> from randflake import Layout
    /// >>> Layout("sonyflake").fields
    /// (('time', 39), ('sequence', 8), ('node', 16))
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layout.fields().iter().map(|&(field, bits)| (name_of(field), bits)))
    }

    /// The length of a tick, in milliseconds.
    #[getter]
    fn tick_ms(&self) -> u32 {
        self.layout.tick_ms()
    }

    /// The unix millisecond at which tick 0 begins.
    #[getter]
    fn epoch_ms(&self) -> i64 {
        self.layout.epoch_ms()
    }

    /// With which sequence ticks begin: "zero", "continuing" or ("random", n).
    ///
    /// >>> from randflake import Layout
    /// >>> Layout("leaf").sequence
    /// ('random', 100)
    #[getter]
    fn sequence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.layout.sequence() {
            Sequence::Zero => ZERO.into_bound_py_any(py),
            Sequence::Continuing => CONTINUING.into_bound_py_any(py),
            Sequence::Random(starts) => (RANDOM, starts).into_bound_py_any(py),
        }
    }

    /// Whether ids use all 64 bits. Otherwise they are positive in every 64-bit column.
    #[getter]
    fn unsigned(&self) -> bool {
        self.layout.is_unsigned()
    }

    /// The widths of the datacenter and of the worker, in bits; None where there are none.
    #[getter]
    fn node_split(&self) -> Option<(u32, u32)> {
        let (datacenter, worker) = self.layout.split_node(self.layout.max_node_id())?;
        Some((u32::BITS - datacenter.leading_zeros(), u32::BITS - worker.leading_zeros()))
    }

    /// The largest node id; 0 where there are none.
    #[getter]
    fn max_node_id(&self) -> u32 {
        self.layout.max_node_id()
    }

    /// The largest sequence.
    #[getter]
    fn max_sequence(&self) -> u32 {
        self.layout.max_sequence()
    }

    /// How many ids a node has in a tick.
    #[getter]
    fn ids_per_node(&self) -> u64 {
        self.layout.ids_per_node()
    }

    /// How many node ids one generator may have.
    #[getter]
    fn max_nodes(&self) -> usize {
        self.layout.max_nodes()
    }

    /// The first unix millisecond that no id can carry. There a generator raises LIFETIME_OVER.
    ///
    /// >>> from randflake import Layout
    /// >>> Layout("baidu").ends_at  # 2024-11-20T13:24:16Z
    /// 1732109056000
    #[getter]
    fn ends_at(&self) -> i64 {
        self.layout.ends_at()
    }

    /// The unix millisecond from which on ids are negative in a signed column.
    ///
    /// None if they never are, or if another field than the time decides it.
    #[getter]
    fn negative_from(&self) -> Option<i64> {
        self.layout.negative_from()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (arguments, options) = self.__getnewargs_ex__(py)?;
        let mut all = Vec::new();
        for argument in arguments {
            all.push(argument.repr()?.to_string());
        }
        for (option, value) in options {
            all.push(format!("{option}={}", value.repr()?));
        }
        Ok(format!("Layout({})", all.join(", ")))
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        if let Ok(preset) = self.name().parse::<randflake::Layout>() {
            if self.layout != preset {
                options.set_item("sequence", self.sequence(py)?)?;
            }
            return Ok((PyTuple::new(py, [self.name()])?, options));
        }
        options.set_item("fields", self.fields(py)?)?;
        options.set_item("tick_ms", self.tick_ms())?;
        options.set_item("epoch_ms", self.epoch_ms())?;
        options.set_item("sequence", self.sequence(py)?)?;
        options.set_item("unsigned", self.unsigned())?;
        options.set_item("node_split", self.node_split())?;
        Ok((PyTuple::empty(py), options))
    }
}

/// What a sortable id says: when, where and as which one it was made.
///
/// RawParts compare equal, hash and pickle.
///
/// >>> from randflake import Layout
/// >>> Layout("twitter").inspect(1541815603606036480)
/// RawParts(unix_ms=1656432460105, node_id=378, sequence=0)
#[pyclass(frozen, eq, hash, module = "randflake")]
#[derive(Eq, Hash, PartialEq)]
pub(crate) struct RawParts {
    parts: randflake::RawParts,
}

#[pymethods]
impl RawParts {
    #[new]
    fn new(
        unix_ms: &Bound<'_, PyAny>,
        node_id: &Bound<'_, PyAny>,
        sequence: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        Ok(Self {
            parts: randflake::RawParts {
                unix_ms: part(unix_ms)?,
                node_id: part(node_id)?,
                sequence: part(sequence)?,
            },
        })
    }

    /// The unix millisecond at which the id's tick begins.
    #[getter]
    fn unix_ms(&self) -> i64 {
        self.parts.unix_ms
    }

    /// 0 to max_node_id of the layout; 0 where it has no node ids.
    #[getter]
    fn node_id(&self) -> u32 {
        self.parts.node_id
    }

    /// 0 to max_sequence of the layout.
    #[getter]
    fn sequence(&self) -> u32 {
        self.parts.sequence
    }

    /// The time as an aware datetime in UTC.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ARGUMENT beyond the year 9999, where
    /// datetimes end.
    ///
    /// >>> from randflake import Layout
    /// >>> Layout("twitter").inspect(1541815603606036480).datetime.isoformat()
    /// '2022-06-28T16:07:40.105000+00:00'
    #[getter]
    fn datetime<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        datetime_of(py, self.parts.unix_ms)
    }

    fn __repr__(&self) -> String {
        let randflake::RawParts { unix_ms, node_id, sequence } = self.parts;
        format!("RawParts(unix_ms={unix_ms}, node_id={node_id}, sequence={sequence})")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (i64, u32, u32)) {
        let randflake::RawParts { unix_ms, node_id, sequence } = self.parts;
        (py.get_type::<Self>(), (unix_ms, node_id, sequence))
    }
}

impl From<randflake::RawParts> for RawParts {
    fn from(parts: randflake::RawParts) -> Self {
        Self { parts }
    }
}

const ZERO: &str = "zero";
const CONTINUING: &str = "continuing";
const RANDOM: &str = "random";

fn name_of(field: Field) -> &'static str {
    match field {
        Field::Time => "time",
        Field::Node => "node",
        Field::Sequence => "sequence",
    }
}

/// A layout, or the name of one.
pub(crate) struct AnyLayout(pub(crate) randflake::Layout);

impl<'a, 'py> FromPyObject<'a, 'py> for AnyLayout {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(layout) = object.cast::<Layout>() {
            return Ok(Self(layout.get().layout));
        }
        let must = "layout must be a randflake.Layout or the name of one";
        preset(&object, must).map(Self)
    }
}

/// The name of a preset.
struct Name(randflake::Layout);

impl<'a, 'py> FromPyObject<'a, 'py> for Name {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        preset(&object, "the name of a layout must be a str").map(Self)
    }
}

fn preset(object: &Bound<'_, PyAny>, must: &str) -> PyResult<randflake::Layout> {
    match object.cast::<PyString>() {
        Ok(name) => name.to_string_lossy().parse().map_err(raise),
        Err(_) => {
            Err(wrong_type(&Error::invalid_argument(format!("{must}, got {}", type_of(object)))))
        }
    }
}

/// The fields of a layout with their widths.
struct Fields(Vec<(Field, u32)>);

impl<'a, 'py> FromPyObject<'a, 'py> for Fields {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let error = |got: &dyn Display| {
            Error::invalid_argument(format!(
                "fields must be pairs of \"time\", \"node\" or \"sequence\", each once, and a \
                 width in bits, such as [(\"time\", 41), (\"node\", 10), (\"sequence\", 12)], got \
                 {got}"
            ))
        };
        let all = [Field::Time, Field::Node, Field::Sequence];
        let mut fields = Vec::new();
        for item in items(&object, error)? {
            let [name, bits] = pair(&item?, error)?;
            let text = name.cast::<PyString>().map_err(|_| wrong_type(&error(&type_of(&name))))?;
            let text = text.to_string_lossy();
            let field = all.into_iter().find(|&field| name_of(field) == text);
            let field = field.ok_or_else(|| raise(error(&format!("{text:?}"))))?;
            fields.push((field, integer(&bits, error)?));
            if fields.len() > all.len() {
                return Err(raise(error(&"more than three")));
            }
        }
        Ok(Self(fields))
    }
}

/// With which sequence a tick begins.
struct Starts(Sequence);

impl<'a, 'py> FromPyObject<'a, 'py> for Starts {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let error = |got: &dyn Display| {
            Error::invalid_argument(format!(
                "sequence must be \"zero\", \"continuing\" or (\"random\", n), got {got}"
            ))
        };
        if let Ok(text) = object.cast::<PyString>() {
            return match &*text.to_string_lossy() {
                ZERO => Ok(Self(Sequence::Zero)),
                CONTINUING => Ok(Self(Sequence::Continuing)),
                other => Err(raise(error(&format!("{other:?}")))),
            };
        }
        let [name, starts] = pair(&object, error)?;
        match name.cast::<PyString>() {
            Ok(text) if text.to_string_lossy() == RANDOM => {
                integer(&starts, error).map(Sequence::Random).map(Self)
            }
            Ok(text) => Err(raise(error(&format!("{:?}", text.to_string_lossy())))),
            Err(_) => Err(wrong_type(&error(&type_of(&name)))),
        }
    }
}

/// The widths of a datacenter and a worker.
struct NodeSplit([u32; 2]);

impl<'a, 'py> FromPyObject<'a, 'py> for NodeSplit {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let error = |got: &dyn Display| {
            Error::invalid_argument(format!(
                "node_split must be two widths in bits, such as (5, 5), got {got}"
            ))
        };
        let [datacenter_bits, worker_bits] = pair(&object, error)?;
        Ok(Self([integer(&datacenter_bits, error)?, integer(&worker_bits, error)?]))
    }
}

/// The length of a tick.
struct TickMs(u32);

impl<'a, 'py> FromPyObject<'a, 'py> for TickMs {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let error = |got: &dyn Display| {
            Error::invalid_argument(format!(
                "tick_ms must be an integer between 1 and 86400000, got {got}"
            ))
        };
        integer(&object, error).map(Self)
    }
}

/// When tick 0 begins.
struct EpochMs(i64);

impl<'a, 'py> FromPyObject<'a, 'py> for EpochMs {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let error = |got: &dyn Display| {
            Error::invalid_argument(format!(
                "epoch_ms must be unix milliseconds, an integer from 0 on, got {got}"
            ))
        };
        integer(&object, error).map(Self)
    }
}

/// Whether ids may have all 64 bits.
struct Unsigned(bool);

impl<'a, 'py> FromPyObject<'a, 'py> for Unsigned {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Self).map_err(|_| {
            let got = type_of(&object);
            wrong_type(&Error::invalid_argument(format!("unsigned must be a bool, got {got}")))
        })
    }
}

/// A time, in unix milliseconds.
struct UnixMs(i64);

impl<'a, 'py> FromPyObject<'a, 'py> for UnixMs {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let error = |got: &dyn Display| {
            Error::invalid_argument(format!(
                "a time is unix milliseconds, an integer, or an aware datetime, got {got}"
            ))
        };
        let py = object.py();
        let Ok(datetime) = object.cast::<PyDateTime>() else {
            return integer(&object, error).map(Self);
        };
        if datetime.call_method0(intern!(py, "utcoffset"))?.is_none() {
            return Err(raise(error(&"a datetime without a time zone")));
        }
        let since = datetime.sub(epoch(py)?)?;
        let part = |name: &str| since.getattr(name)?.extract::<i64>();
        // Only the days are ever negative, so this rounds down.
        let seconds = part("days")? * 86_400 + part("seconds")?;
        Ok(Self(seconds * 1000 + part("microseconds")? / 1000))
    }
}

/// Returns an aware datetime in UTC.
pub(crate) fn datetime_of<'py>(
    py: Python<'py>,
    unix_ms: impl IntoPyObject<'py> + Display + Copy,
) -> PyResult<Bound<'py, PyAny>> {
    static TIMEDELTA: PyOnceLock<Py<PyType>> = PyOnceLock::new();

    let milliseconds = [("milliseconds", unix_ms)].into_py_dict(py)?;
    TIMEDELTA
        .import(py, "datetime", "timedelta")?
        .call((), Some(&milliseconds))
        .and_then(|since| epoch(py)?.add(since))
        .map_err(|failure| {
            if !failure.is_instance_of::<PyOverflowError>(py) {
                return failure;
            }
            raise(Error::invalid_argument(format!(
                "datetimes end with the year 9999, got {unix_ms} unix milliseconds"
            )))
        })
}

fn epoch(py: Python<'_>) -> PyResult<Bound<'_, PyDateTime>> {
    let utc = PyTzInfo::utc(py)?;
    PyDateTime::from_timestamp(py, 0.0, Some(&utc))
}

fn pair<'py>(
    object: &Bound<'py, PyAny>,
    error: impl Fn(&dyn Display) -> Error,
) -> PyResult<[Bound<'py, PyAny>; 2]> {
    // One more than a pair has, since there may be no end of them.
    let items: Vec<_> = items(object, &error)?.take(3).collect::<PyResult<_>>()?;
    items.try_into().map_err(|items: Vec<_>| {
        raise(error(&if items.len() < 2 { "too few in one" } else { "too many in one" }))
    })
}
