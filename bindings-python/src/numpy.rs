//! Arrays of numpy, which need not be installed.

use pyo3::{
    buffer::{Element, PyBuffer},
    exceptions::PyImportError,
    intern,
    prelude::*,
    sync::PyOnceLock,
};

/// An element type of numpy.
pub(crate) trait Dtype: Element {
    const NAME: &str;
    /// The object that stands for it, which takes numpy longer to find than to use.
    const DTYPE: &PyOnceLock<Py<PyAny>>;
}

impl Dtype for i64 {
    const NAME: &str = "int64";
    const DTYPE: &PyOnceLock<Py<PyAny>> = once!();
}

impl Dtype for u32 {
    const NAME: &str = "uint32";
    const DTYPE: &PyOnceLock<Py<PyAny>> = once!();
}

/// Makes an array whose elements are not set.
pub(crate) fn empty<T: Dtype>(py: Python<'_>, length: usize) -> PyResult<Bound<'_, PyAny>> {
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let empty = EMPTY.import(py, "numpy", "empty").map_err(|cause| missing(py, cause))?;
    let dtype = || PyResult::Ok(py.import("numpy")?.call_method1("dtype", (T::NAME,))?.unbind());
    empty.call1((length, T::DTYPE.get_or_try_init(py, dtype)?))
}

/// Makes an array of these elements.
pub(crate) fn array<'py, T: Dtype>(py: Python<'py>, elements: &[T]) -> PyResult<Bound<'py, PyAny>> {
    let array = empty::<T>(py, elements.len())?;
    if !elements.is_empty() {
        PyBuffer::<T>::get(&array)?.copy_from_slice(py, elements)?;
    }
    Ok(array)
}

#[cold]
fn missing(py: Python<'_>, cause: PyErr) -> PyErr {
    if !cause.is_instance_of::<PyImportError>(py) {
        return cause;
    }
    let error = PyImportError::new_err(
        "arrays need numpy, which could not be imported; install it with: pip install numpy",
    );
    // As the import statement does, so that callers can tell which module is missing.
    let named = error.value(py).setattr(intern!(py, "name"), "numpy");
    error.set_cause(py, Some(cause));
    named.map_or_else(|failure| failure, |()| error)
}
