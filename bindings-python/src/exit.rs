//! The end of the process gives back what is leased.
#![allow(unsafe_code, reason = "Py_AtExit")]

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pyo3::{
    ffi, intern,
    prelude::*,
    types::{IntoPyDict, PyDict},
};
use randflake::{Clock as _, ProcessLife, SystemClock};
use randflake_leases::Leased;

use crate::clock::Clock;

/// How long the end of a process waits for the stores, in all.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it looks.
const GLANCE: Duration = Duration::from_millis(1);

/// What may still have to be given back, of generators that were collected, too.
///
/// Locked for moments, in which nothing of Python is called: so no thread that is about to fork
/// ever finds it taken, since it has the GIL.
static LEASED: Mutex<Vec<Arc<Leased<Clock>>>> = Mutex::new(Vec::new());

/// Has everything given back once Python has ended.
///
/// Python's own atexit is too early: threads of daemons still run then, and after them functions
/// that other modules have registered. They would find their generator closed.
pub(crate) fn register() {
    extern "C" fn at_exit() {
        close_all();
    }

    // SAFETY: `at_exit` calls nothing of Python, and this library is never unloaded.
    unsafe { ffi::Py_AtExit(Some(at_exit)) };
    // It fails if 32 others were faster. Then the node ids are idle to the end of their leases.
}

/// Has a generator end with the process.
pub(crate) fn keep(leased: &Arc<Leased<Clock>>) {
    let mut all = lock();
    all.retain(|other| !other.is_over());
    all.push(Arc::clone(leased));
}

/// Has everything given back at the end of a child of multiprocessing, which ends without ending
/// its interpreter. Has no effect elsewhere.
pub(crate) fn register_in_child(py: Python<'_>) -> PyResult<()> {
    static REGISTERED: AtomicU64 = AtomicU64::new(0);

    let modules = py.import("sys")?.getattr(intern!(py, "modules"))?.cast_into::<PyDict>()?;
    let Some(util) = modules.get_item("multiprocessing.util")? else { return Ok(()) };
    let parent = py.import("multiprocessing.process")?.call_method0("parent_process")?;
    let life = ProcessLife::current().number();
    if parent.is_none() || REGISTERED.swap(life, Ordering::Relaxed) == life {
        return Ok(());
    }
    // After all others: they may still need ids.
    let last = [("exitpriority", i32::MIN)].into_py_dict(py)?;
    let close = wrap_pyfunction!(close_leased, py)?;
    util.call_method("Finalize", (py.None(), close), Some(&last))?;
    Ok(())
}

#[pyfunction]
fn close_leased(py: Python<'_>) {
    py.detach(close_all);
}

fn close_all() {
    let all = lock().clone();
    for leased in &all {
        leased.stop(); // all at once
    }
    let mut waited = Duration::ZERO;
    while waited < PATIENCE && !all.iter().all(|leased| leased.is_over()) {
        waited += SystemClock.sleep(GLANCE).ok().flatten().unwrap_or(PATIENCE);
    }
}

/// A list of generators is good whatever has panicked.
fn lock() -> MutexGuard<'static, Vec<Arc<Leased<Clock>>>> {
    LEASED.lock().unwrap_or_else(PoisonError::into_inner)
}
