//! The Python package: arguments in, a call into the core, a value out.
#![allow(clippy::doc_markdown, reason = "what is documented to Python speaks no Markdown")]
#![allow(clippy::needless_pass_by_value, reason = "pyo3 hands converted arguments over by value")]

mod arguments;
mod buffer;
mod clock;
mod errors;
mod exit;
mod generator;
mod inspector;
mod lease;
mod numpy;
mod parts;
mod text;

#[pyo3::pymodule(gil_used = false)]
mod _randflake {
    use pyo3::{prelude::*, types::PyModule};

    #[pymodule_export]
    use crate::{
        generator::Randflake,
        inspector::Inspector,
        lease::Lease,
        parts::Parts,
        text::{decode_string, encode_string, generate_secret},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        randflake::loaded();
        crate::exit::register();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
