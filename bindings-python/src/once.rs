//! Objects of Python that are made once, without a lock.
//!
//! pyo3's `PyOnceLock`, and with it `intern!` and the type of a `PyDateTime`, makes other threads
//! wait for the one that makes the object, which releases the GIL meanwhile. A child that is forked
//! then would wait forever. So clippy refuses them.

use once_cell::race::OnceBox;
use pyo3::prelude::*;

pub(crate) struct Once(OnceBox<Py<PyAny>>);

impl Once {
    pub(crate) const fn new() -> Self {
        Self(OnceBox::new())
    }

    pub(crate) fn get(&self) -> Option<&Py<PyAny>> {
        self.0.get()
    }

    /// Returns the object, making it if there is none. If several threads make it at the same time,
    /// one wins.
    pub(crate) fn get_or_try_init<'py>(
        &self,
        py: Python<'py>,
        make: impl FnOnce() -> PyResult<Py<PyAny>>,
    ) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.0.get_or_try_init(|| make().map(Box::new))?.bind(py))
    }

    pub(crate) fn import<'py>(
        &self,
        py: Python<'py>,
        module: &str,
        name: &str,
    ) -> PyResult<&Bound<'py, PyAny>> {
        self.get_or_try_init(py, || Ok(py.import(module)?.getattr(name)?.unbind()))
    }
}
