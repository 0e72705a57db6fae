//! Single calls without the work that pyo3 does around a method, which takes as long as an id.
//!
//! A call that cannot succeed at once and without Python is repeated by the ordinary method, which
//! pyo3 makes: that one waits, calls clocks written in Python, recovers leases, and raises.
//!
//! So pyo3 knows that a thread has the GIL when it waits, calls Python, recovers a lease or raises;
//! to ask for it would block while Python ends.
#![allow(unsafe_code, reason = "methods that Python calls without pyo3")]

use std::{ffi::CString, ptr};

use pyo3::{PyClass, ffi, prelude::*, pyclass::boolean_struct::True};

use crate::{once::Once, randflake::Randflake, snowflake::Snowflake, text::Text, tickets::Tickets};

/// A method without arguments.
trait Method {
    /// Frozen: no code can borrow it mutably.
    type Class: PyClass<Frozen = True> + Sync;

    const NAME: &str;

    /// The method that pyo3 makes.
    const ORDINARY: &Once;

    /// Makes the answer, unless that fails, waits or calls Python: a new reference, or null with an
    /// exception. Must not panic.
    fn at_once(py: Python<'_>, of: &Self::Class) -> Option<*mut ffi::PyObject>;
}

struct Generate;
struct GenerateInOrder;
struct GenerateString;
struct GenerateSnowflake;
struct GenerateTicket;

impl Method for Generate {
    type Class = Randflake;

    const NAME: &str = "generate";
    const ORDINARY: &Once = once!();

    #[inline]
    fn at_once(_: Python<'_>, of: &Randflake) -> Option<*mut ffi::PyObject> {
        let id = of.flake.generate_at_once()?;
        // SAFETY: this thread is attached to the interpreter.
        Some(unsafe { ffi::PyLong_FromLongLong(id.into()) })
    }
}

impl Method for GenerateInOrder {
    type Class = Randflake;

    const NAME: &str = "_generate_in_order";
    const ORDINARY: &Once = once!();

    #[inline]
    fn at_once(_: Python<'_>, of: &Randflake) -> Option<*mut ffi::PyObject> {
        let id = of.flake.generate_in_order_at_once()?;
        // SAFETY: this thread is attached to the interpreter.
        Some(unsafe { ffi::PyLong_FromLongLong(id.into()) })
    }
}

impl Method for GenerateString {
    type Class = Randflake;

    const NAME: &str = "generate_string";
    const ORDINARY: &Once = once!();

    #[inline]
    fn at_once(py: Python<'_>, of: &Randflake) -> Option<*mut ffi::PyObject> {
        let text = Text(of.flake.generate_at_once()?).into_pyobject(py);
        Some(text.map_or_else(|raised| null_with(py, raised), Bound::into_ptr))
    }
}

impl Method for GenerateSnowflake {
    type Class = Snowflake;

    const NAME: &str = "generate";
    const ORDINARY: &Once = once!();

    #[inline]
    fn at_once(_: Python<'_>, of: &Snowflake) -> Option<*mut ffi::PyObject> {
        let id = of.flake.generate_at_once()?;
        // SAFETY: this thread is attached to the interpreter.
        Some(unsafe { ffi::PyLong_FromUnsignedLongLong(id) })
    }
}

impl Method for GenerateTicket {
    type Class = Tickets;

    const NAME: &str = "generate";
    const ORDINARY: &Once = once!();

    #[inline]
    fn at_once(_: Python<'_>, of: &Tickets) -> Option<*mut ffi::PyObject> {
        let number = of.generate_at_once()?;
        // SAFETY: this thread is attached to the interpreter.
        Some(unsafe { ffi::PyLong_FromUnsignedLongLong(number) })
    }
}

/// Refuses every interpreter of the process but the first: classes and the work at the end exist
/// only once.
#[cfg(not(PyPy))]
pub(crate) fn check_interpreter(_: Python<'_>) -> PyResult<()> {
    use std::sync::atomic::{AtomicI64, Ordering};

    static FIRST: AtomicI64 = AtomicI64::new(NONE);
    const NONE: i64 = -1;

    // SAFETY: this thread is attached to an interpreter.
    let this = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: it is an interpreter, which lives at least as long as this call.
    let this = unsafe { ffi::PyInterpreterState_GetID(this) };
    match FIRST.compare_exchange(NONE, this, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if first != this => Err(pyo3::exceptions::PyImportError::new_err(
            "another interpreter of this process has imported randflake, which works in only one; \
             use another process",
        )),
        _ => Ok(()),
    }
}

/// A process of PyPy has one interpreter.
#[cfg(PyPy)]
#[expect(clippy::unnecessary_wraps, reason = "as with CPython")]
pub(crate) fn check_interpreter(_: Python<'_>) -> PyResult<()> {
    Ok(())
}

/// Replaces the methods that pyo3 has made with the ones in this file.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    replace::<Generate>(py)?;
    replace::<GenerateInOrder>(py)?;
    replace::<GenerateString>(py)?;
    replace::<GenerateSnowflake>(py)?;
    replace::<GenerateTicket>(py)
}

fn replace<M: Method>(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<M::Class>();
    let ordinary = class.getattr(M::NAME)?;
    // In the form for functions in C, so that help() and inspect.signature() show the same.
    let signature = ordinary.getattr("__text_signature__")?;
    let documentation = ordinary.getattr("__doc__")?;
    let documentation = CString::new(format!("{}{signature}\n--\n\n{documentation}", M::NAME))?;
    // Types live as long as the process.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: CString::new(M::NAME)?.into_raw(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: called::<M> },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: documentation.into_raw(),
    }));
    // SAFETY: the class is a type, the definition is complete and is never freed.
    let method = unsafe { ffi::PyDescr_NewMethod(class.as_type_ptr(), definition) };
    // SAFETY: it is a new reference, or null if there is an exception.
    let method = unsafe { Bound::from_owned_ptr_or_err(py, method) }?;
    M::ORDINARY.get_or_try_init(py, || Ok(ordinary.unbind()))?;
    class.setattr(M::NAME, method)
}

/// What Python calls for the method.
///
/// # Safety
///
/// The thread is attached to the interpreter, and `this` is an object of `M::Class`. Python ensures
/// both: the descriptor of a method raises `TypeError` for objects of other classes.
unsafe extern "C" fn called<M: Method>(
    this: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: this thread is attached to the interpreter.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: it is an object, which the caller keeps alive during the call.
    let this = unsafe { Borrowed::from_ptr(py, this) };
    // SAFETY: it is of that class.
    let this = unsafe { this.cast_unchecked::<M::Class>() };
    M::at_once(py, this.get()).unwrap_or_else(|| called_ordinarily::<M>(py, this.as_any()))
}

#[cold]
fn null_with(py: Python<'_>, raised: PyErr) -> *mut ffi::PyObject {
    raised.restore(py);
    ptr::null_mut()
}

/// Returns a new reference, or null with an exception.
#[cold]
fn called_ordinarily<M: Method>(_: Python<'_>, this: &Bound<'_, PyAny>) -> *mut ffi::PyObject {
    let ordinary = M::ORDINARY.get().map_or(ptr::null_mut(), Py::as_ptr);
    // SAFETY: both are objects, and null ends the arguments. For a null method it raises.
    unsafe { ffi::PyObject_CallFunctionObjArgs(ordinary, this.as_ptr(), ptr::null_mut::<PyAny>()) }
}
