use pyo3::{
    Borrowed,
    prelude::*,
    types::{PyDateTime, PyType, PyTzInfo},
};
use randflake::ErrorKind;

use crate::{
    convert::{integer, must},
    datetime::datetime_of,
};

#[doc = doc!("Parts")]
#[pyclass(frozen, eq, hash, module = "randflake")]
#[derive(Eq, Hash, PartialEq)]
pub(crate) struct Parts {
    #[doc = doc!("Parts.timestamp")]
    #[pyo3(get)]
    timestamp: i64,
    #[doc = doc!("Parts.node_id")]
    #[pyo3(get)]
    node_id: u32,
    #[doc = doc!("Parts.sequence")]
    #[pyo3(get)]
    sequence: u32,
}

#[pymethods]
impl Parts {
    #[new]
    fn new(timestamp: Part<i64>, node_id: Part<u32>, sequence: Part<u32>) -> Self {
        Self { timestamp: timestamp.0, node_id: node_id.0, sequence: sequence.0 }
    }

    #[doc = doc!("Parts.datetime")]
    #[getter]
    fn datetime<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDateTime>> {
        let utc = PyTzInfo::utc(py)?;
        #[allow(clippy::cast_precision_loss, reason = "unix seconds are far below 2^53")]
        PyDateTime::from_timestamp(py, self.timestamp as f64, Some(&utc))
    }

    fn __repr__(&self) -> String {
        let Self { timestamp, node_id, sequence } = self;
        format!("Parts(timestamp={timestamp}, node_id={node_id}, sequence={sequence})")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (i64, u32, u32)) {
        (py.get_type::<Self>(), (self.timestamp, self.node_id, self.sequence))
    }
}

impl From<randflake::Parts> for Parts {
    fn from(parts: randflake::Parts) -> Self {
        Self { timestamp: parts.timestamp, node_id: parts.node_id, sequence: parts.sequence }
    }
}

#[doc = doc!("RawParts")]
#[pyclass(frozen, eq, hash, module = "randflake")]
#[derive(Eq, Hash, PartialEq)]
pub(crate) struct RawParts {
    #[doc = doc!("RawParts.unix_ms")]
    #[pyo3(get)]
    unix_ms: i64,
    #[doc = doc!("RawParts.node_id")]
    #[pyo3(get)]
    node_id: u32,
    #[doc = doc!("RawParts.sequence")]
    #[pyo3(get)]
    sequence: u32,
}

#[pymethods]
impl RawParts {
    #[new]
    fn new(unix_ms: Part<i64>, node_id: Part<u32>, sequence: Part<u32>) -> Self {
        Self { unix_ms: unix_ms.0, node_id: node_id.0, sequence: sequence.0 }
    }

    #[doc = doc!("RawParts.datetime")]
    #[getter]
    fn datetime<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        datetime_of(py, self.unix_ms)
    }

    fn __repr__(&self) -> String {
        let Self { unix_ms, node_id, sequence } = self;
        format!("RawParts(unix_ms={unix_ms}, node_id={node_id}, sequence={sequence})")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (i64, u32, u32)) {
        (py.get_type::<Self>(), (self.unix_ms, self.node_id, self.sequence))
    }
}

impl From<randflake::RawParts> for RawParts {
    fn from(parts: randflake::RawParts) -> Self {
        Self { unix_ms: parts.unix_ms, node_id: parts.node_id, sequence: parts.sequence }
    }
}

/// One part of an id.
struct Part<T>(T);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Part<T>
where
    T: for<'b> FromPyObject<'b, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let rule = "the parts of an id are integers within their widths";
        integer(&object, must(ErrorKind::InvalidArgument, rule)).map(Self)
    }
}
