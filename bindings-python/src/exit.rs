//! The end of the process: it gives back what is leased, and ends no thread inside this library.
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
    ffi, intern,
    prelude::*,
    types::{IntoPyDict, PyDict},
};
use randflake::{Clock as _, Format, SystemClock, bindings::ForkId};
use randflake_leases::Leased;

/// How long the end of a process waits for the stores, in all.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it looks.
const GLANCE: Duration = Duration::from_millis(1);

/// What may still have to be given back, of generators that were collected, too.
///
/// Locked for moments, in which nothing of Python is called: so no thread that is about to fork
/// ever finds it taken, since it has the GIL.
static LEASED: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

#[derive(Clone)]
struct Kept {
    leased: Arc<dyn Ending>,
    /// Its store is asked by a client in Python.
    needs_python: bool,
}

/// A leased generator, whatever it generates.
pub(crate) trait Ending: Send + Sync {
    fn stop(&self);
    fn is_over(&self) -> bool;
}

impl<F: Format> Ending for Leased<F, crate::clock::Clock> {
    fn stop(&self) {
        self.stop();
    }

    fn is_over(&self) -> bool {
        self.is_over()
    }
}

/// Has everything given back once Python has ended.
///
/// Python's own atexit is too early: threads of daemons still run then, and after them functions
/// that other modules have registered. They would find their generator closed. Only where a client
/// in Python has to be called it is the last moment: the last of `atexit`, since it is the first.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    extern "C" fn at_exit() {
        close_all(|_| true);
    }

    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(at_last, py)?,))?;

    // SAFETY: `at_exit` calls nothing of Python, and this library is never unloaded.
    unsafe { ffi::Py_AtExit(Some(at_exit)) };
    // It fails if 32 others were faster. Then the node ids are idle to the end of their leases.
    Ok(())
}

/// Has a generator end with the process.
pub(crate) fn keep(leased: Arc<dyn Ending>, needs_python: bool) {
    let mut all = lock();
    let over: Vec<Kept> = all.extract_if(.., |other| other.leased.is_over()).collect();
    all.push(Kept { leased, needs_python });
    drop(all);
    drop(over); // not before: with it may go a client in Python, and with that anything
}

/// Has everything given back at the end of a child of multiprocessing, which ends without ending
/// its interpreter. Has no effect elsewhere.
pub(crate) fn register_in_child(py: Python<'_>) -> PyResult<()> {
    static REGISTERED: AtomicU64 = AtomicU64::new(0);

    let register = || {
        let modules = py.import("sys")?.getattr(intern!(py, "modules"))?.cast_into::<PyDict>()?;
        let Some(util) = modules.get_item("multiprocessing.util")? else { return Ok(()) };
        let parent = py.import("multiprocessing.process")?.call_method0("parent_process")?;
        let life = ForkId::current().number();
        if parent.is_none() || REGISTERED.swap(life, Ordering::Relaxed) == life {
            return Ok(());
        }
        // After all others: they may still need ids.
        let last = [("exitpriority", i32::MIN)].into_py_dict(py)?;
        let close = wrap_pyfunction!(close_leased, py)?;
        util.call_method("Finalize", (py.None(), close), Some(&last))?;
        Ok(())
    };
    unless_ending(py, register).unwrap_or(Ok(()))
}

#[pyfunction]
fn close_leased(py: Python<'_>) {
    py.detach(|| close_all(|_| true));
}

#[pyfunction]
fn at_last(py: Python<'_>) {
    py.detach(|| close_all(|kept| kept.needs_python));
    gate().ended_by = Some(thread::current().id());
    let mut waited = Duration::ZERO;
    while waited < PATIENCE && gate().inside > 0 {
        waited += py.detach(|| SystemClock.sleep(GLANCE)).ok().flatten().unwrap_or(PATIENCE);
    }
}

/// Who runs Python for this library.
///
/// Python ends other threads where they stand when it ends: up to 3.13 by unwinding them, which the
/// code of Rust under them does not survive. So nobody begins any more before that, and the last
/// function of `atexit` waits for who has begun.
///
/// Locked for moments, and only by who has the GIL, so that no fork finds it taken.
static GATE: Mutex<Gate> = Mutex::new(Gate { ended_by: None, inside: 0, life: 0 });

struct Gate {
    /// The thread that ends Python, once it is about to.
    ended_by: Option<ThreadId>,
    inside: usize,
    /// Of which all this is: a child has neither the threads of its parent nor its end.
    life: u64,
}

/// Has Python run something that does not take long, unless it is about to end.
pub(crate) fn unless_ending<T>(_: Python<'_>, work: impl FnOnce() -> T) -> Option<T> {
    struct Inside(u64);

    impl Drop for Inside {
        fn drop(&mut self) {
            let mut gate = gate();
            if gate.life == self.0 {
                gate.inside -= 1;
            }
        }
    }

    let mut gate = gate();
    if gate.ended_by.is_some() {
        return None;
    }
    gate.inside += 1;
    let _inside = Inside(gate.life);
    drop(gate);
    Some(work())
}

/// Tells whether this thread is ending Python. It may run what others may not any more, such as
/// what is done when the last objects are collected.
pub(crate) fn is_ended_here(_: Python<'_>) -> bool {
    gate().ended_by == Some(thread::current().id())
}

/// A count is good whatever has panicked.
fn gate() -> MutexGuard<'static, Gate> {
    let mut gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    let life = ForkId::current().number();
    if gate.life != life {
        *gate = Gate { ended_by: None, inside: 0, life };
    }
    gate
}

fn close_all(which: impl Fn(&Kept) -> bool) {
    let mut all = lock().clone();
    all.retain(which);
    for kept in &all {
        kept.leased.stop(); // all at once
    }
    let mut waited = Duration::ZERO;
    while waited < PATIENCE && !all.iter().all(|kept| kept.leased.is_over()) {
        waited += SystemClock.sleep(GLANCE).ok().flatten().unwrap_or(PATIENCE);
    }
}

/// A list of generators is good whatever has panicked.
fn lock() -> MutexGuard<'static, Vec<Kept>> {
    LEASED.lock().unwrap_or_else(PoisonError::into_inner)
}
