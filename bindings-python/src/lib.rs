//! The Python package: arguments in, a call into the core, a value out.
#![allow(clippy::doc_markdown, reason = "what is documented to Python speaks no Markdown")]
#![allow(clippy::needless_pass_by_value, reason = "pyo3 hands converted arguments over by value")]

/// An object of Python that is made once: a static for each place that says so.
macro_rules! once {
    () => {{
        static OBJECT: pyo3::sync::PyOnceLock<pyo3::Py<pyo3::PyAny>> =
            pyo3::sync::PyOnceLock::new();
        &OBJECT
    }};
}

mod arguments;
mod boundary;
mod buffer;
mod client;
mod cloak;
mod clock;
mod command;
mod errors;
mod exit;
mod flake;
mod generator;
mod inspector;
mod layout;
mod lease;
mod numpy;
mod parts;
mod raw;
mod snowflake;
mod store;
mod text;

#[pyo3::pymodule(gil_used = false)]
mod _randflake {
    use pyo3::{prelude::*, types::PyModule};

    #[pymodule_export]
    use crate::{
        boundary::BoundaryFlake,
        cloak::Cloak,
        command::main,
        generator::Randflake,
        inspector::Inspector,
        layout::{Layout, RawParts},
        lease::Lease,
        parts::Parts,
        snowflake::Snowflake,
        store::{
            fence_store, init_store, inspect_lease, list_leases, release_lease, repair_lease,
            repair_store,
        },
        text::{decode_string, encode_string, generate_secret},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::raw::check_interpreter(module.py())?;
        // Where forks are told by handlers alone, its own comes before those of later libraries.
        let _ = randflake::bindings::ForkId::current();
        crate::errors::register(module.py())?;
        crate::exit::register(module.py())?;
        crate::raw::register(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
