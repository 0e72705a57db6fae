use pyo3::{
    prelude::*,
    types::{PyByteArray, PyBytes, PyString, PyType},
};
use randflake::bindings;

use crate::{
    convert::type_of,
    errors::{raise, wrong_type},
    parts::datetime_of,
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
    fn new(flake: &Bound<'_, PyAny>) -> PyResult<Self> {
        let parsed = if let Ok(text) = flake.cast::<PyString>() {
            // A lone surrogate becomes a replacement character, which no id's text has either.
            text.to_string_lossy().parse()
        } else if let Ok(bytes) = flake.cast::<PyBytes>() {
            bytes.as_bytes().try_into()
        } else if let Ok(bytes) = flake.cast::<PyByteArray>() {
            bytes.to_vec().as_slice().try_into()
        } else {
            return Err(wrong_type(&bindings::invalid_boundary_flake(type_of(flake))));
        };
        Ok(Self { flake: parsed.map_err(raise)? })
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
