use pyo3::{
    prelude::*,
    types::{PyDateTime, PyType, PyTzInfo},
};
use randflake::Error;

use crate::arguments::integer;

/// What an id says to a holder of the secret: when, where and as which one it was made.
///
/// The timestamp may lie up to the generator's max_drift ahead of the clock that made it. Parts
/// compare equal, hash and pickle.
///
/// >>> from randflake import Inspector
/// >>> parts = Inspector("dffd6021bb2bd5b0af676290809ec3a5").inspect(4594531474933654033)
/// >>> parts
/// Parts(timestamp=1733706297, node_id=42, sequence=1)
#[pyclass(frozen, eq, hash, module = "randflake")]
#[derive(Eq, Hash, PartialEq)]
pub(crate) struct Parts {
    parts: randflake::Parts,
}

#[pymethods]
impl Parts {
    #[new]
    fn new(
        timestamp: &Bound<'_, PyAny>,
        node_id: &Bound<'_, PyAny>,
        sequence: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        Ok(Self {
            parts: randflake::Parts {
                timestamp: part(timestamp)?,
                node_id: part(node_id)?,
                sequence: part(sequence)?,
            },
        })
    }

    /// Unix seconds, 1730000000 to 2803741823.
    #[getter]
    fn timestamp(&self) -> i64 {
        self.parts.timestamp
    }

    /// 0 to 131071.
    #[getter]
    fn node_id(&self) -> u32 {
        self.parts.node_id
    }

    /// 0 to 131071: the how manieth id of this node in this second, counted from 0.
    #[getter]
    fn sequence(&self) -> u32 {
        self.parts.sequence
    }

    /// The timestamp as an aware datetime in UTC.
    ///
    /// >>> from randflake import Inspector
    /// >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
    /// >>> inspector.inspect(4594531474933654033).datetime.isoformat()
    /// '2024-12-09T01:04:57+00:00'
    #[getter]
    fn datetime<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDateTime>> {
        let utc = PyTzInfo::utc(py)?;
        #[allow(clippy::cast_precision_loss, reason = "unix seconds are far below 2^53")]
        PyDateTime::from_timestamp(py, self.parts.timestamp as f64, Some(&utc))
    }

    fn __repr__(&self) -> String {
        let randflake::Parts { timestamp, node_id, sequence } = self.parts;
        format!("Parts(timestamp={timestamp}, node_id={node_id}, sequence={sequence})")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (i64, u32, u32)) {
        let randflake::Parts { timestamp, node_id, sequence } = self.parts;
        (py.get_type::<Self>(), (timestamp, node_id, sequence))
    }
}

/// Takes one part of an id.
pub(crate) fn part<'py, T>(object: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    integer(object, |got| {
        Error::invalid_argument(format!(
            "the parts of an id are integers within their widths, got {got}"
        ))
    })
}

impl From<randflake::Parts> for Parts {
    fn from(parts: randflake::Parts) -> Self {
        Self { parts }
    }
}
