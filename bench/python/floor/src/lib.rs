//! What calling costs: methods that do nothing but return what `generate` and `generate_string`
//! return.

use std::hint::black_box;

use pyo3::prelude::*;

/// An object with methods to call.
#[pyclass(frozen)]
struct Floor;

#[pymethods]
impl Floor {
    #[new]
    fn new() -> Self {
        Self
    }

    fn integer(&self) -> i64 {
        black_box(4_594_531_474_933_654_033)
    }

    fn text(&self) -> &'static str {
        black_box("3vgoe12ccb8gh")
    }
}

#[pymodule]
fn floor(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Floor>()
}
