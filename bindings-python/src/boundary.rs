use pyo3::{
    Borrowed,
    prelude::*,
    types::{PyByteArray, PyBytes, PyString, PyType},
};
use randflake::bindings;

use crate::{
    arguments::type_of,
    errors::{raise, wrong_type},
    layout::datetime_of,
};

/// An id of Boundary's flake, of 128 bits: time, network address of the worker, sequence.
///
/// To read such ids and to convert them; they are not made here.
///
/// flake: its text in base 62, or its 16 bytes.
///
/// str() and bytes() give the two forms. Ids compare equal and by time, hash and pickle.
///
/// Raises InvalidArgumentError with the code INVALID_ID for any other text and other lengths.
///
/// >>> from randflake import BoundaryFlake
/// >>> flake = BoundaryFlake("8HFaR8qWtRlGDHnO57")
/// >>> flake.unix_ms, flake.worker.hex(":"), flake.sequence
/// (1326409013776, '10:9a:dd:5e:0e:8f', 5)
/// >>> BoundaryFlake(bytes(flake)) == flake
/// True
/// >>> str(flake)
/// '8HFaR8qWtRlGDHnO57'
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

    /// When it was made, in unix milliseconds: 64 bits.
    #[getter]
    fn unix_ms(&self) -> u64 {
        self.flake.unix_ms()
    }

    /// The network address (MAC) of the worker that made it: 6 bytes.
    #[getter]
    fn worker<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.flake.worker())
    }

    /// As which one of its worker and millisecond it was made, 0 to 65535.
    #[getter]
    fn sequence(&self) -> u16 {
        self.flake.sequence()
    }

    /// When it was made, as an aware datetime in UTC.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ARGUMENT beyond the year 9999, where
    /// datetimes end.
    ///
    /// >>> from randflake import BoundaryFlake
    /// >>> BoundaryFlake("8HFaR8qWtRlGDHnO57").datetime.isoformat()
    /// '2012-01-12T22:56:53.776000+00:00'
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

/// An id in one of its forms.
struct TextOrBytes(randflake::BoundaryFlake);

impl<'a, 'py> FromPyObject<'a, 'py> for TextOrBytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let parsed = if let Ok(text) = object.cast::<PyString>() {
            // A lone surrogate becomes a replacement character, which no id's text has either.
            text.to_string_lossy().parse()
        } else if let Ok(bytes) = object.cast::<PyBytes>() {
            bytes.as_bytes().try_into()
        } else if let Ok(bytes) = object.cast::<PyByteArray>() {
            bytes.to_vec().as_slice().try_into()
        } else {
            return Err(wrong_type(&bindings::invalid_boundary_flake(type_of(&object))));
        };
        parsed.map(Self).map_err(raise)
    }
}
