//! Errors of the core as Python exceptions. The classes are written in Python:
//! `randflake/errors.py`.

use std::{
    ffi::CString,
    panic::{self, AssertUnwindSafe},
};

use pyo3::{PyTypeInfo, prelude::*};
use randflake::{Error, ErrorKind, Result};

macro_rules! classes {
    ($($class:ident)+) => {
        $(pyo3::import_exception!(randflake.errors, $class);)+

        /// Imports the classes now: a finalizing interpreter can no longer import anything.
        pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
            py.import("randflake.errors")?;
            $(py.get_type::<$class>();)+
            Ok(())
        }
    };
}

classes! {
    RandflakeError InvalidArgumentError InvalidTypeError RetryLaterError StoreError
    LifetimeWarning WeakSecretWarning
}

/// Calls the core. Its error, or its panic, which is a defect, becomes a Python exception.
#[inline]
pub(crate) fn call<T>(core: impl FnOnce() -> Result<T>) -> PyResult<T> {
    caught(core).map_err(raise)
}

/// Calls the core. Its panic, which is a defect, becomes an error.
#[inline]
pub(crate) fn caught<T>(core: impl FnOnce() -> Result<T>) -> Result<T> {
    // A panic leaves no shared state half changed: a generator's is one atomic word, and a lease
    // request without an answer is repeated.
    panic::catch_unwind(AssertUnwindSafe(core)).unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::Internal,
            "a defect of randflake; its message is on standard error; please report it",
        ))
    })
}

/// Makes the exception of an error of the core.
#[cold]
pub(crate) fn raise(error: Error) -> PyErr {
    // An exception of an injected clock, or of a signal handler, is raised as it is.
    let error = match error.into_source::<PyErr>() {
        Ok(raised) => return raised,
        Err(error) => error,
    };
    let (message, code) = (error.to_string(), error.code());
    let retry_after = error.retry_after().map(|wait| wait.as_secs_f64());
    match error.kind() {
        kind if kind.is_of_store() => StoreError::new_err((message, code, retry_after)),
        _ if retry_after.is_some() => RetryLaterError::new_err((message, code, retry_after)),
        ErrorKind::InvalidSecret
        | ErrorKind::InvalidNode
        | ErrorKind::InvalidLease
        | ErrorKind::InvalidId
        | ErrorKind::InvalidArgument => InvalidArgumentError::new_err((message, code)),
        _ => RandflakeError::new_err((message, code)),
    }
}

/// Makes the exception of an argument of the wrong type.
#[cold]
pub(crate) fn wrong_type(error: &Error) -> PyErr {
    InvalidTypeError::new_err((error.to_string(), error.code()))
}

/// Warns at this level of Python's stack.
pub(crate) fn warn<W: PyTypeInfo>(
    py: Python<'_>,
    message: impl Into<Vec<u8>>,
    level: i32,
) -> PyResult<()> {
    let message = CString::new(message).expect("the message has no zero byte");
    PyErr::warn(py, &py.get_type::<W>(), &message, level)
}

/// Makes the exception of pickle and copy.
#[cold]
pub(crate) fn not_to_be_copied(why: &'static str) -> PyErr {
    wrong_type(&Error::invalid_argument(why))
}
