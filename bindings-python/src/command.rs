//! The command `randflake`, on the clients of Python.

use std::ffi::OsString;

use pyo3::{prelude::*, types::PyString};
use randflake::{Error, ErrorKind, Result};
use randflake_leases::{
    Namespace,
    remote::{Client, RemoteStore},
};

use crate::{client::Store, errors::call};

/// Runs the command with these arguments, and returns its exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<i32> {
    py.detach(|| call(|| Ok(randflake_cli::run(arguments, open_server))))
}

fn open_server(url: &str, namespace: Namespace) -> Result<RemoteStore<Box<dyn Client>>> {
    let store = Python::attach(|py| {
        PyString::new(py, url).extract::<Store>().map_err(|raised| error_of(py, &raised))
    })?;
    match store {
        Store::Server(source) => source.connect(namespace),
        Store::Local(_) => RemoteStore::open(url, namespace), // says what a URL is
    }
}

/// Returns the error of an exception of `randflake.stores`.
fn error_of(py: Python<'_>, raised: &PyErr) -> Error {
    let raised = raised.value(py);
    let code: Option<String> = raised.getattr("code").and_then(|code| code.extract()).ok();
    let kind = ErrorKind::ALL.iter().find(|kind| Some(kind.code()) == code.as_deref());
    Error::new(kind.copied().unwrap_or(ErrorKind::Internal), raised.to_string())
}
