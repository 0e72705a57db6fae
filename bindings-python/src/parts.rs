//! The parts of an id.

use pyo3::{prelude::*, types::PyType};

use crate::arguments::{Part, TimePart};

/// Defines the class of the parts of an id; the first part is its time.
macro_rules! parts {
    ($class:ident, $time:ident in $milliseconds:literal) => {
        #[doc = doc!($class)]
        #[pyclass(frozen, eq, hash, get_all, module = "randflake")]
        #[derive(Eq, Hash, PartialEq)]
        pub(crate) struct $class {
            #[doc = doc!($class.$time)]
            $time: i64,
            #[doc = doc!($class.node_id)]
            node_id: u32,
            #[doc = doc!($class.sequence)]
            sequence: u32,
        }

        #[pymethods]
        impl $class {
            #[new]
            fn new($time: TimePart, node_id: Part, sequence: Part) -> Self {
                Self { $time: $time.0, node_id: node_id.0, sequence: sequence.0 }
            }

            #[doc = doc!($class.datetime)]
            #[getter]
            fn datetime<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                datetime_of(py, i128::from(self.$time) * $milliseconds)
            }

            fn __repr__(&self) -> String {
                let Self { $time: time, node_id, sequence } = self;
                let (class, name) = (stringify!($class), stringify!($time));
                format!("{class}({name}={time}, node_id={node_id}, sequence={sequence})")
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (i64, u32, u32)) {
                (py.get_type::<Self>(), (self.$time, self.node_id, self.sequence))
            }
        }

        impl From<randflake::$class> for $class {
            fn from(parts: randflake::$class) -> Self {
                Self { $time: parts.$time, node_id: parts.node_id, sequence: parts.sequence }
            }
        }
    };
}

/// Returns an aware datetime in UTC.
pub(crate) fn datetime_of<'py>(
    py: Python<'py>,
    unix_ms: impl IntoPyObject<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    once!().import(py, "randflake._times", "datetime_of")?.call1((unix_ms,))
}

parts!(Parts, timestamp in 1000);
parts!(RawParts, unix_ms in 1);
