use pyo3::{
    prelude::*,
    types::{PyByteArray, PyBytes, PyString, PyType},
};
use randflake::bindings;

use crate::{
    convert::{argument, type_of},
    datetime::datetime_of,
    errors::{raise, wrong_type},
};

#[doc = doc!(BoundaryFlake)]
#[pyclass(frozen, eq, ord, hash, module = "randflake")]
#[derive(Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct BoundaryFlake {
    flake: randflake::BoundaryFlake,
}

#[pymethods]
impl BoundaryFlake {
    #[new]
    fn new(flake: TextOrBytes) -> Self {
        Self { flake: flake.0 }
    }

    #[doc = doc!(BoundaryFlake.unix_ms)]
    #[getter]
    fn unix_ms(&self) -> u64 {
        self.flake.unix_ms()
    }

    #[doc = doc!(BoundaryFlake.worker)]
    #[getter]
    fn worker<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.flake.worker())
    }

    #[doc = doc!(BoundaryFlake.sequence)]
    #[getter]
    fn sequence(&self) -> u16 {
        self.flake.sequence()
    }

    #[doc = doc!(BoundaryFlake.datetime)]
    #[getter]
    fn datetime<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        datetime_of(py, self.flake.unix_ms())
    }

    fn __str__(&self) -> String {
        self.flake.to_string()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.flake.to_bytes())
    }

    fn __repr__(&self) -> String {
        format!("BoundaryFlake('{}')", self.flake)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String,)) {
        (py.get_type::<Self>(), (self.flake.to_string(),))
    }
}

argument!(
    /// An id in one of its forms.
    TextOrBytes(randflake::BoundaryFlake),
    |object| {
        let parsed = if let Ok(text) = object.cast::<PyString>() {
            // A lone surrogate becomes a replacement character, which no id's text has either.
            text.to_string_lossy().parse()
        } else if let Ok(bytes) = object.cast::<PyBytes>() {
            bytes.as_bytes().try_into()
        } else if let Ok(bytes) = object.cast::<PyByteArray>() {
            bytes.to_vec().as_slice().try_into()
        } else {
            return Err(wrong_type(&bindings::invalid_boundary_flake(type_of(object))));
        };
        parsed.map_err(raise)
    }
);
