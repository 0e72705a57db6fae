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

/// The end of the channel where the caller waits.
struct Waiting<T> {
    process: ForkId,
    /// `None` only while it is dropped.
    receiver: Option<Receiver<Result<T>>>,
}

impl<T> Waiting<T> {
    /// Returns what has arrived, if it arrives soon.
    fn receive(&mut self) -> Option<Result<T>> {
        let receiver = self.receiver.as_ref().expect("until it is dropped");
        match receiver.recv_timeout(LONGEST_SLICE) {
            Ok(done) => Some(done),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("panics are caught, and sent"),
        }
    }
}

/// In a child, a thread of the parent may hold its lock.
impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        let receiver = self.receiver.take();
        if self.process != ForkId::of_threads() {
            mem::forget(receiver);
        }
    }
}
