//! Changes of a lease, which `randflake/_changes.py` logs and passes to the function of the
//! program.
//!
//! They are queued in memory of the thread that keeps the lease, so a forked child meets no lock of
//! its parent. The end of the process waits for the thread that takes them, up to 5 seconds, before
//! the last `atexit` function ends; after that nothing is reported.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use pyo3::{
    prelude::*,
    types::{PyCFunction, PyDict, PyTuple},
};
use randflake_leases::{LeaseStatus, Level};

use crate::{interpreter, lease};

thread_local! {
    /// The changes of the lease that this thread keeps. So a forked child, which has a thread of
    /// its own, never encounters a lock of its parent.
    static CHANGES: Arc<Mutex<Changes>> = Arc::default();
}

/// What Python has not taken yet.
#[derive(Default)]
struct Changes {
    waiting: VecDeque<LeaseStatus>,
    /// A thread takes them, or is about to.
    taken: bool,
}

/// The level of Python's logging, the message, and the status.
type Change = (u8, String, Py<PyAny>);

/// Returns what to call with each change of a lease, on the thread that keeps it. That thread must
/// not wait for Python: a Python thread, started by another one, takes the changes in order.
pub(crate) fn sender(
    py: Python<'_>,
    on_lease_change: Option<Py<PyAny>>,
) -> PyResult<impl Fn(&LeaseStatus) + Send + Sync + use<>> {
    // Imported now: a finalizing interpreter cannot import anything.
    let import =
        || PyResult::Ok(once!().import(py, "randflake._changes", "begin")?.clone().unbind());
    let begin = interpreter::call_python(py, import)?;
    let functions = Arc::new((begin, on_lease_change));
    Ok(move |status: &LeaseStatus| {
        let changes = CHANGES.with(Arc::clone);
        let mut unsent = lock(&changes);
        unsent.waiting.push_back(status.clone());
        if mem::replace(&mut unsent.taken, true) {
            return;
        }
        drop(unsent);
        interpreter::DELIVERIES.begin();
        let starter = thread::Builder::new().name("randflake-change".to_owned());
        let (functions, of_thread) = (Arc::clone(&functions), Arc::clone(&changes));
        if starter.spawn(move || start(&functions, of_thread)).is_err() {
            give_up(&changes); // what is left is taken with the next change
        }
    })
}

/// Makes Python start a thread that takes the changes.
fn start(functions: &(Py<PyAny>, Option<Py<PyAny>>), changes: Arc<Mutex<Changes>>) {
    let of_python = Arc::clone(&changes);
    let take = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        PyResult::Ok(take(arguments.py(), &of_python))
    };
    let started = Python::try_attach(|py| {
        interpreter::unless_finalizing(py, || {
            let take = PyCFunction::new_closure(py, None, None, take)?;
            functions.0.call1(py, (take, &functions.1))
        })
    });
    if !matches!(started, Some(Some(Ok(_)))) {
        give_up(&changes);
    }
}

/// Returns the next change; `None` if there is none, after which the caller stops asking.
fn take(py: Python<'_>, changes: &Mutex<Changes>) -> Option<Change> {
    loop {
        let mut unsent = lock(changes);
        let Some(status) = unsent.waiting.pop_front() else {
            unsent.taken = false;
            interpreter::DELIVERIES.end();
            return None;
        };
        drop(unsent);
        // A change that cannot be made for lack of memory is left out.
        if let Ok(change) = interpreter::unless_finalizing(py, || change_of(py, status))? {
            return Some(change);
        }
    }
}

fn change_of(py: Python<'_>, status: LeaseStatus) -> PyResult<Change> {
    let level = match status.level() {
        Level::Info => 20,
        Level::Warning => 30,
        Level::Error => 40,
    };
    Ok((level, status.message(), lease::status(py, status)?.unbind()))
}

/// Makes the next change try again: no thread could be started.
fn give_up(changes: &Mutex<Changes>) {
    lock(changes).taken = false;
    interpreter::DELIVERIES.end();
}

/// Its contents are valid no matter what has panicked.
fn lock(changes: &Mutex<Changes>) -> MutexGuard<'_, Changes> {
    changes.lock().unwrap_or_else(PoisonError::into_inner)
}
