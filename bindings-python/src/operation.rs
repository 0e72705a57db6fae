//! Operations of an operator, whose waits Python's signals interrupt.

use std::{
    mem,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
};

use pyo3::prelude::*;
use randflake::{Error, ErrorKind, Result, bindings::ForkId};

use crate::{
    clock::LONGEST_SLICE,
    errors::{caught, raise},
    exit::raise_unless_finalizing,
};

/// Does an operation on a thread of its own, without the GIL, and returns what it returns. An exception
/// of a signal's handler ends the wait; then the operation goes on alone.
///
/// A handler may fork: a child has no such thread, and touches nothing that it shares with it.
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
    let mut waiting = Waiting { process: ForkId::of_threads(), receiver: Some(receiver) };
    loop {
        if let Some(done) = py.detach(|| waiting.receive()) {
            return done.map_err(|error| raise_unless_finalizing(py, raise(error)));
        }
        py.check_signals()?;
        if waiting.process != ForkId::of_threads() {
            return Err(raise(Error::new(
                ErrorKind::Forked,
                "this process was forked while its parent waited for a store, which answers the \
                 parent",
            )));
        }
    }
}

/// The end of the channel at which the caller waits.
struct Waiting<T> {
    process: ForkId,
    /// `None` only while it is dropped.
    receiver: Option<Receiver<Result<T>>>,
}

impl<T> Waiting<T> {
    /// Returns what has come, if that is soon.
    fn receive(&mut self) -> Option<Result<T>> {
        let receiver = self.receiver.as_ref().expect("until it is dropped");
        match receiver.recv_timeout(LONGEST_SLICE) {
            Ok(done) => Some(done),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("panics are caught, and sent"),
        }
    }
}

/// In a child, its lock may be held by a thread of the parent.
impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        let receiver = self.receiver.take();
        if self.process != ForkId::of_threads() {
            mem::forget(receiver);
        }
    }
}
