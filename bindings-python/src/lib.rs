//! The Python package: arguments in, a call into the core, a value out. There is no rule about ids or
//! leases here.
//!
//! The docstrings are in the stubs, `_randflake.pyi` and the ones that it imports; the build takes
//! them from there.
#![allow(
    clippy::doc_lazy_continuation,
    clippy::doc_link_with_quotes,
    clippy::doc_markdown,
    reason = "docstrings are no Markdown"
)]
#![allow(clippy::needless_pass_by_value, reason = "pyo3 hands converted arguments over by value")]

/// The docstring of a class, a method or a function in a stub.
macro_rules! doc {
    ($of:ident $(.$member:ident)?) => {
        include_str!(concat!(env!("OUT_DIR"), "/", stringify!($of) $(, ".", stringify!($member))?))
    };
}

/// A Python object that is made once: a static for each place that uses this.
macro_rules! once {
    () => {{
        static OBJECT: crate::once::Once = crate::once::Once::new();
        &OBJECT
    }};
}

mod arguments;
mod boundary_flake;
mod buffer;
mod bulk;
mod changes;
mod client;
mod cloak;
mod clock;
mod codes;
mod command;
mod convert;
mod dated_tickets;
mod dyn_generator;
mod errors;
mod fast_calls;
mod generator;
mod inspector;
mod interpreter;
mod layout;
mod lazy;
mod lease;
mod metrics;
mod once;
mod operate;
mod operator;
mod options;
mod parts;
mod randflake;
mod settings;
mod snowflake;
mod text;
mod tickets;

#[pyo3::pymodule(gil_used = false)]
mod _randflake {
    use std::sync::atomic::{AtomicBool, Ordering};

    use pyo3::{prelude::*, types::PyModule};

    /// Returns the package that this library was first imported for, which is this one the first time.
    #[pyfunction]
    fn first_package(package: Bound<'_, PyModule>) -> PyResult<Bound<'_, PyAny>> {
        let py = package.py();
        Ok(once!().get_or_try_init(py, || Ok(package.into_any().unbind()))?.clone())
    }

    /// Returns a number that changes in a forked child, and after a restore.
    #[pyfunction]
    fn fork_id() -> u64 {
        ::randflake::bindings::ForkId::current().number()
    }

    #[doc = doc!(after_restore)]
    #[pyfunction]
    fn after_restore() {
        ::randflake::after_restore();
    }

    #[pymodule_export]
    use crate::{
        boundary_flake::BoundaryFlake,
        client::address_of,
        cloak::Cloak,
        clock::ChangeableClock,
        codes::Codes,
        command::main,
        dated_tickets::DatedTickets,
        generator::Generator,
        inspector::Inspector,
        layout::Layout,
        lease::Lease,
        operator::{
            fence_store, fence_tickets, init_store, init_tickets, inspect_lease, list_leases,
            list_tickets, release_lease, repair_lease, repair_store, set_node_ids, show_tickets,
        },
        parts::{Parts, RawParts},
        randflake::Randflake,
        snowflake::Snowflake,
        text::{decode_string, decode_strings, encode_string, encode_strings, generate_secret},
        tickets::Tickets,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        static REGISTERED: AtomicBool = AtomicBool::new(false);

        crate::fast_calls::check_interpreter(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        // A package that is imported again, as by a reloader, is another module of the same
        // library. Relaxed: imports of one module happen one at a time.
        if REGISTERED.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Where only handlers see a fork, its own comes before the handlers of libraries loaded
        // later.
        let _ = ::randflake::bindings::ForkId::current();
        crate::errors::register(module.py())?;
        crate::interpreter::register(module.py())?;
        crate::fast_calls::register(module.py())?;
        REGISTERED.store(true, Ordering::Relaxed);
        Ok(())
    }
}
