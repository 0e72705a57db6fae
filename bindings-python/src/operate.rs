//! Operations of an operator, whose waits Python's signals interrupt.

use std::{sync::mpsc, thread};

use pyo3::prelude::*;
use randflake::{Error, ErrorKind, Result};
use randflake_leases::bindings::ForkSafeReceiver;

use crate::{
    errors::{caught, raise},
    interpreter::raise_unless_finalizing,
};

/// Runs an operation on its own thread, without the GIL, and returns its result. An exception of a
/// signal handler ends the wait; the operation then continues by itself.
///
/// A handler may fork: the child does not have this thread, and touches nothing that is shared with
/// it.
pub(crate) fn operate<T: Send + 'static>(
    py: Python<'_>,
    operation: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        let _gone = sender.send(caught(operation));
    };
    let thread = thread::Builder::new().name("randflake-operator".to_owned());
    thread.spawn(work).map_err(|error| {
        let why = format!("cannot start a thread for an operation on the store: {error}");
        raise_unless_finalizing(py, raise(Error::new(ErrorKind::StoreUnavailable, why)))
    })?;
    let mut waiting = ForkSafeReceiver::new(receiver, ());
    loop {
        if let Some(done) = py.detach(|| waiting.receive()) {
            let done = done.expect("panics are caught, and sent");
            return done.map_err(|error| raise_unless_finalizing(py, raise(error)));
        }
        py.check_signals()?;
        if waiting.is_inherited() {
            return Err(raise(Error::new(
                ErrorKind::Forked,
                "this process was forked while its parent waited for a store, which answers the \
                 parent",
            )));
        }
    }
}
