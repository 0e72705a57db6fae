use std::fmt::Display;

use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    types::{PyString, PyTuple},
};
use randflake::{CustomLayout, Error, ErrorKind, Field, Sequence, bindings};

use crate::{
    arguments::{EpochMs, NodePart, Raw, TickMs, UnixMs},
    convert::{argument, boolean, instance, integer, items, must, pair},
    errors::raise,
    parts::RawParts,
};

#[doc = doc!(Layout)]
#[pyclass(frozen, eq, hash, module = "randflake")]
#[derive(Eq, Hash, PartialEq)]
pub(crate) struct Layout {
    layout: randflake::Layout,
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
        name: Option<LayoutText>,
        fields: Option<Fields>,
        tick_ms: Option<TickMs>,
        epoch_ms: Option<EpochMs>,
        sequence: Option<InitialSequence>,
        unsigned: Unsigned,
        node_split: Option<NodeSplit>,
    ) -> PyResult<Self> {
        let described = tick_ms.is_some() || unsigned.0 || node_split.is_some();
        let layout = match (name, fields) {
            (Some(text), None) if !described => {
                let from_epoch = match epoch_ms {
                    Some(epoch_ms) => text.0.with_epoch_ms(epoch_ms.0),
                    None => Ok(text.0),
                };
                match sequence {
                    Some(sequence) => {
                        from_epoch.and_then(|layout| layout.with_sequence(sequence.0))
                    }
                    None => from_epoch,
                }
            }
            (None, Some(fields)) => {
                let mut custom = randflake::Layout::custom(fields.0).unsigned(unsigned.0);
                custom = set(custom, tick_ms.map(|it| it.0), CustomLayout::tick_ms);
                custom = set(custom, epoch_ms.map(|it| it.0), CustomLayout::epoch_ms);
                custom = set(custom, sequence.map(|it| it.0), CustomLayout::sequence);
                custom = set(custom, node_split.map(|it| it.0), |custom, bits| {
                    custom.node_split(bits[0], bits[1])
                });
                custom.build()
            }
            _ => Err(Error::invalid_argument(
                "a layout is the name of a preset or another text, beside which only the epoch and the \
                 sequence can be chosen, or is described by its fields",
            )),
        };
        layout.map(Self::from).map_err(raise)
    }

    #[doc = doc!(Layout.inspect)]
    fn inspect(&self, raw: Raw) -> PyResult<RawParts> {
        self.layout.inspect(raw.0).map(RawParts::from).map_err(raise)
    }

    #[doc = doc!(Layout.pack)]
    fn pack(
        &self,
        unix_ms: UnixMs,
        node_id: &Bound<'_, PyAny>,
        sequence: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let node_id = integer(node_id, |got| bindings::invalid_node(&self.layout, got))?;
        let sequence = integer(sequence, |got| bindings::invalid_sequence(&self.layout, got))?;
        self.layout.pack(unix_ms.0, node_id, sequence).map_err(raise)
    }

    #[doc = doc!(Layout.first_id_at)]
    fn first_id_at(&self, unix_ms: UnixMs) -> PyResult<u64> {
        self.layout.first_id_at(unix_ms.0).map_err(raise)
    }

    #[doc = doc!(Layout.last_id_at)]
    fn last_id_at(&self, unix_ms: UnixMs) -> PyResult<u64> {
        self.layout.last_id_at(unix_ms.0).map_err(raise)
    }

    #[doc = doc!(Layout.join_node)]
    fn join_node(&self, datacenter: NodePart, worker: NodePart) -> PyResult<u32> {
        self.layout.join_node(datacenter.0, worker.0).map_err(raise)
    }

    #[doc = doc!(Layout.split_node)]
    fn split_node(&self, node_id: &Bound<'_, PyAny>) -> PyResult<Option<(u32, u32)>> {
        let node_id = integer(node_id, |got| bindings::invalid_node(&self.layout, got))?;
        self.layout.check_node_id(node_id).map_err(raise)?;
        Ok(self.layout.split_node(node_id))
    }

    #[doc = doc!(Layout.remaining)]
    fn remaining(&self) -> f64 {
        self.layout.remaining().as_secs_f64()
    }

    #[doc = doc!(Layout.name)]
    #[getter]
    fn name(&self) -> &'static str {
        self.layout.name()
    }

    #[doc = doc!(Layout.fields)]
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let fields = self.layout.fields();
        PyTuple::new(py, fields.into_iter().map(|(field, bits)| (field.name(), bits)))
    }

    #[doc = doc!(Layout.tick_ms)]
    #[getter]
    fn tick_ms(&self) -> u32 {
        self.layout.tick_ms()
    }

    #[doc = doc!(Layout.epoch_ms)]
    #[getter]
    fn epoch_ms(&self) -> i64 {
        self.layout.epoch_ms()
    }

    #[doc = doc!(Layout.sequence)]
    #[getter]
    fn sequence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let sequence = self.layout.sequence();
        let name = bindings::sequence_name(sequence);
        match sequence {
            Sequence::Random(starts) => (name, starts).into_bound_py_any(py),
            _ => name.into_bound_py_any(py),
        }
    }

    #[doc = doc!(Layout.unsigned)]
    #[getter]
    fn unsigned(&self) -> bool {
        self.layout.is_unsigned()
    }

    #[doc = doc!(Layout.node_split)]
    #[getter]
    fn node_split(&self) -> Option<(u32, u32)> {
        self.layout.node_split()
    }

    #[doc = doc!(Layout.max_node_id)]
    #[getter]
    fn max_node_id(&self) -> u32 {
        self.layout.max_node_id()
    }

    #[doc = doc!(Layout.max_sequence)]
    #[getter]
    fn max_sequence(&self) -> u32 {
        self.layout.max_sequence()
    }

    #[doc = doc!(Layout.ids_per_node)]
    #[getter]
    fn ids_per_node(&self) -> u64 {
        self.layout.ids_per_node()
    }

    #[doc = doc!(Layout.max_nodes)]
    #[getter]
    fn max_nodes(&self) -> usize {
        self.layout.max_nodes()
    }

    #[doc = doc!(Layout.ends_at)]
    #[getter]
    fn ends_at(&self) -> i64 {
        self.layout.ends_at()
    }

    #[doc = doc!(Layout.negative_from)]
    #[getter]
    fn negative_from(&self) -> Option<i64> {
        self.layout.negative_from()
    }

    fn __str__(&self) -> String {
        self.layout.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Layout('{}')", self.layout)
    }

    fn __getnewargs__(&self) -> (String,) {
        (self.layout.to_string(),)
    }
}

impl From<randflake::Layout> for Layout {
    fn from(layout: randflake::Layout) -> Self {
        Self { layout }
    }
}

/// Sets an option of a layout, if it is given.
fn set<T>(
    custom: CustomLayout,
    value: Option<T>,
    set: impl FnOnce(CustomLayout, T) -> CustomLayout,
) -> CustomLayout {
    match value {
        Some(value) => set(custom, value),
        None => custom,
    }
}

argument!(
    /// A layout, or its text.
    AnyLayout(randflake::Layout),
    |object| match object.cast::<Layout>() {
        Ok(layout) => Ok(layout.get().layout),
        Err(_) => of_text(object, "layout must be a randflake.Layout, or the text of one"),
    }
);

argument!(
    /// The name of a preset, or the text of another layout.
    LayoutText(randflake::Layout),
    |object| of_text(object, "the text of a layout must be a str")
);

fn of_text(object: &Bound<'_, PyAny>, rule: &str) -> PyResult<randflake::Layout> {
    word(object, must(ErrorKind::InvalidArgument, rule))?.parse().map_err(raise)
}

argument!(
    /// The fields of a layout with their widths.
    Fields(Vec<(Field, u32)>),
    |object| {
        let rule = "fields must be pairs of \"time\", \"node\" or \"sequence\", each once, and a \
                    width in bits, such as [(\"time\", 41), (\"node\", 10), (\"sequence\", 12)]";
        let error = must(ErrorKind::InvalidArgument, rule);
        let mut fields = Vec::new();
        for item in items(object, error)? {
            let [name, bits] = pair(&item?, error)?;
            let name = word(&name, error)?;
            let field = bindings::field_of(&name).ok_or_else(|| raise(error(&bindings::quoted(&name))))?;
            fields.push((field, integer(&bits, error)?));
            if fields.len() > 3 {
                return Err(raise(error(&"more than three")));
            }
        }
        Ok(fields)
    }
);

argument!(
    /// The initial sequence of each tick.
    InitialSequence(Sequence),
    |object| {
        let rule = "sequence must be \"zero\", \"continuing\" or (\"random\", n)";
        let error = must(ErrorKind::InvalidArgument, rule);
        let (name, starts) = if object.is_instance_of::<PyString>() {
            (word(object, error)?, None)
        } else {
            let [name, starts] = pair(object, error)?;
            (word(&name, error)?, Some(integer(&starts, error)?))
        };
        bindings::sequence_of(&name, starts).ok_or_else(|| raise(error(&bindings::quoted(&name))))
    }
);

fn word(object: &Bound<'_, PyAny>, error: impl Fn(&dyn Display) -> Error) -> PyResult<String> {
    Ok(instance::<PyString>(object, error)?.to_string_lossy().into_owned())
}

argument!(
    /// The widths of a datacenter and a worker.
    NodeSplit([u32; 2]),
    |object| {
        let rule = "node_split must be two widths in bits, such as (5, 5)";
        let error = must(ErrorKind::InvalidArgument, rule);
        let [datacenter, worker] = pair(object, error)?;
        Ok([integer(&datacenter, error)?, integer(&worker, error)?])
    }
);

argument!(
    /// Whether ids may have all 64 bits.
    Unsigned(bool),
    |object| boolean(object, "unsigned")
);
