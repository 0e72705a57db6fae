//! How Rust meets the interpreter: it calls Python and raises, unless the interpreter is ending. At the
//! end of the process, leased node ids are given back, and no thread is ended inside this library.
//!
//! A C function at exit does that, after Python's own threads and `atexit` functions, so that no
//! caller finds a generator closed before the end. A thread that wants the interpreter after that
//! parks. Where the store's client is in Python, the last `atexit` function does it, while there is
//! an interpreter to run the client, and waits for threads that are inside. After it nothing here
//! begins to run Python any more.
#![allow(unsafe_code, reason = "Py_AtExit")]

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use pyo3::{
    call::PyCallArgs,
    ffi,
    prelude::*,
    types::{IntoPyDict, PyDict},
};
use randflake::{Clock, Error, ErrorKind, SystemClock, bindings::ForkId};
use randflake_leases::{Leased, LeasedFormat, bindings::Polling};

use crate::errors::raise;

/// How long the end of a process waits for all stores together.
const EXIT_BUDGET: Duration = Duration::from_secs(5);

/// An object that holds something of a store, and gives it back at its end.
pub(crate) trait Closeable: Send + Sync {
    /// Closes it without waiting: the thread that collects it holds the GIL.
    fn stop(&self);

    /// Returns whether there is nothing that it must give back.
    fn is_over(&self) -> bool;
}

impl<F: LeasedFormat, C: Clock + Send + Sync + 'static> Closeable for Leased<F, C> {
    fn stop(&self) {
        Leased::stop(self);
    }

    fn is_over(&self) -> bool {
        Leased::is_over(self)
    }
}

/// The leased generators whose node ids, and the objects whose sequential numbers, may still have
/// to be given back, including ones that Python has collected.
///
/// It is locked briefly, by threads that are attached to the interpreter and call no Python
/// meanwhile: so it is never locked during a fork, which holds the GIL, or has stopped all attached
/// threads.
static LEASED: Mutex<Vec<Registered>> = Mutex::new(Vec::new());

#[derive(Clone)]
struct Registered {
    leased: Arc<dyn Closeable>,
    /// Its store is accessed by a client in Python.
    needs_python: bool,
}

/// Makes sure all node ids are given back once the interpreter is finalized.
///
/// Python's `atexit` is too early: daemon threads still run then, and functions that other modules
/// have registered run later. They would find their generator closed. Only a store whose client is
/// written in Python is accessed there, since that is the last moment for it: the function
/// registered first runs last.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    extern "C" fn after_finalizing() {
        close(&registered());
    }

    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(before_finalizing, py)?,))?;

    // SAFETY: the function calls nothing of Python, and this library is never unloaded.
    unsafe { ffi::Py_AtExit(Some(after_finalizing)) };
    // It fails if 32 other libraries were first. Then the node ids stay reserved until their leases
    // expire.
    Ok(())
}

/// Makes sure node ids, or numbers, are given back at the end of the process.
pub(crate) fn close_at_exit(leased: Arc<dyn Closeable>, needs_python: bool) {
    let mut all = lock(&LEASED);
    let over: Vec<_> = all.extract_if(.., |other| other.leased.is_over()).collect();
    all.push(Registered { leased, needs_python });
    drop(all);
    drop(over); // after the lock, since it may collect a client in Python, which may do anything
}

/// Makes sure all node ids are given back at the end of a multiprocessing child, which exits
/// without finalizing its interpreter. Has no effect elsewhere.
pub(crate) fn register_in_child(py: Python<'_>) -> PyResult<()> {
    static REGISTERED: AtomicU64 = AtomicU64::new(0);

    let register = || {
        let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
        let Some(util) = modules.get_item("multiprocessing.util")? else { return Ok(()) };
        let parent = py.import("multiprocessing.process")?.call_method0("parent_process")?;
        let process = ForkId::of_threads().number();
        if parent.is_none() || REGISTERED.swap(process, Ordering::Relaxed) == process {
            return Ok(());
        }
        // After all other finalizers: they may still need ids.
        let last = [("exitpriority", i32::MIN)].into_py_dict(py)?;
        let close = wrap_pyfunction!(close_leased, py)?;
        util.call_method("Finalize", (py.None(), close), Some(&last))?;
        Ok(())
    };
    unless_finalizing(py, register).unwrap_or(Ok(()))
}

#[pyfunction]
fn close_leased(py: Python<'_>) {
    let all = registered();
    py.detach(|| close(&all));
}

#[pyfunction]
fn before_finalizing(py: Python<'_>) {
    let mut all = registered();
    all.retain(|registered| registered.needs_python);
    py.detach(|| close(&all));
    let mut polling = Polling::new();
    while DELIVERIES.any() && py.detach(|| pause_at_exit(&mut polling)) {}
    interpreter().finalized_by = Some(thread::current().id());
    while interpreter().calls > 0 && py.detach(|| pause_at_exit(&mut polling)) {}
}

/// Which threads run Python for this library.
///
/// A finalizing interpreter ends every other thread that returns to it: up to 3.13 by unwinding its
/// stack, which Rust code on that stack does not survive. So no call begins after the last function
/// of `atexit`, which waits for calls that have begun.
///
/// It is locked briefly, as [`LEASED`] is: so it is never locked during a fork.
static INTERPRETER: Mutex<Interpreter> =
    Mutex::new(Interpreter { finalized_by: None, calls: 0, process: 0 });

struct Interpreter {
    /// The thread that finalizes it, from `atexit` on.
    finalized_by: Option<ThreadId>,
    /// Calls of this library into Python that have not returned.
    calls: usize,
    /// The process that all this concerns: a forked child has no thread of its parent.
    process: u64,
}

/// How many leases have changes that are being reported to Python: the end of the process waits for
/// that.
pub(crate) static DELIVERIES: Deliveries = Deliveries(AtomicU64::new(0));

/// A count in the bits below the number of its process: a forked child has no thread of its parent.
/// A single number, since it is changed by threads without the GIL, for which a fork does not wait.
pub(crate) struct Deliveries(AtomicU64);

impl Deliveries {
    const COUNT: u64 = 0xffff;

    pub(crate) fn begin(&self) {
        self.change(|count| count + 1);
    }

    pub(crate) fn end(&self) {
        self.change(|count| count.saturating_sub(1));
    }

    fn any(&self) -> bool {
        self.change(|count| count) != 0
    }

    /// Changes the count and returns it.
    fn change(&self, change: impl Fn(u64) -> u64) -> u64 {
        let process = ForkId::of_threads().number() << Self::COUNT.count_ones();
        let next = |packed: u64| {
            let count = packed & Self::COUNT;
            change(if packed & !Self::COUNT == process { count } else { 0 })
        };
        let set = |packed| Some(process | next(packed));
        next(self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, set).unwrap_or_default())
    }
}

/// Runs something short in Python, unless the interpreter is about to finalize.
pub(crate) fn unless_finalizing<T>(_: Python<'_>, work: impl FnOnce() -> T) -> Option<T> {
    struct Call {
        process: u64,
    }

    impl Drop for Call {
        fn drop(&mut self) {
            let mut interpreter = interpreter();
            if interpreter.process == self.process {
                interpreter.calls -= 1;
            }
        }
    }

    let mut interpreter = interpreter();
    if interpreter.finalized_by.is_some() {
        return None;
    }
    interpreter.calls += 1;
    let _call = Call { process: interpreter.process };
    drop(interpreter);
    Some(work())
}

/// Calls something short in Python, or raises that the interpreter is about to finalize.
pub(crate) fn call_python<T>(py: Python<'_>, call: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    unless_finalizing(py, call)
        .unwrap_or_else(|| Err(raise_unless_finalizing(py, raise(finalizing()))))
}

/// Makes the error of what a finalizing interpreter can no longer do.
#[cold]
pub(crate) fn finalizing() -> Error {
    Error::new(
        ErrorKind::StoreUnavailable,
        "Python is shutting down, and with it the client of the store",
    )
}

/// Calls a function of `randflake/_async.py`, which it may have to import first.
pub(crate) fn call_async<'py>(
    py: Python<'py>,
    name: &str,
    arguments: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    call_python(py, || py.import("randflake._async")?.getattr(name)?.call1(arguments))
}

/// Raises an error, whose class is written in Python. If another thread is finalizing the
/// interpreter, this thread stays here instead, as Python does then with every other thread.
#[cold]
pub(crate) fn raise_unless_finalizing(py: Python<'_>, raised: PyErr) -> PyErr {
    match unless_finalizing(py, || raised.value(py)) {
        Some(_made) => raised,
        None if is_finalized_here(py) => raised,
        None => py.detach(|| never_return()),
    }
}

/// Raises an error of a leased generator, with the error of the store as its cause.
#[cold]
pub(crate) fn raise_with_cause(py: Python<'_>, error: Error) -> PyErr {
    let cause = error.cause().cloned();
    let raised = raise_unless_finalizing(py, raise(error));
    if let Some(cause) = cause {
        unless_finalizing(py, || raised.set_cause(py, Some(raise(cause))));
    }
    raised
}

/// Blocks forever, as Python does with every thread that returns to a finalized interpreter.
#[cold]
pub(crate) fn never_return() -> ! {
    loop {
        thread::park();
    }
}

/// Returns whether this thread is finalizing the interpreter. If so, it may still run Python, as
/// when the last objects are collected.
fn is_finalized_here(_: Python<'_>) -> bool {
    interpreter().finalized_by == Some(thread::current().id())
}

fn interpreter() -> MutexGuard<'static, Interpreter> {
    let mut interpreter = lock(&INTERPRETER);
    let process = ForkId::of_threads().number();
    if interpreter.process != process {
        *interpreter = Interpreter { finalized_by: None, calls: 0, process };
    }
    interpreter
}

fn registered() -> Vec<Registered> {
    lock(&LEASED).clone()
}

fn close(all: &[Registered]) {
    for registered in all {
        registered.leased.stop(); // all of them, before waiting for the first
    }
    let mut polling = Polling::new();
    let are_over = || all.iter().all(|registered| registered.leased.is_over());
    while !are_over() && pause_at_exit(&mut polling) {}
}

/// Pauses before the next look, and returns false once the budget is used up.
fn pause_at_exit(polling: &mut Polling) -> bool {
    let left = polling.left_of(EXIT_BUDGET);
    left.is_some_and(|left| polling.pause(left, |pause| SystemClock.sleep(pause)).is_ok())
}

/// The contents of these are valid no matter what has panicked.
fn lock<T>(shared: &'static Mutex<T>) -> MutexGuard<'static, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
