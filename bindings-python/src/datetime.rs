//! Times as datetimes of Python, which end with the year 9999.

use std::fmt::Display;

use pyo3::{
    exceptions::PyOverflowError,
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{IntoPyDict, PyDateTime, PyType, PyTzInfo},
};
use randflake::{Error, ErrorKind};

use crate::{
    convert::{argument, integer, must},
    errors::raise,
};

argument!(
    /// A time, in unix milliseconds.
    UnixMs(i64),
    |object| {
        let rule = "a time is unix milliseconds, an integer, or an aware datetime";
        let error = must(ErrorKind::InvalidArgument, rule);
        let Ok(datetime) = object.cast::<PyDateTime>() else {
            return integer(object, error);
        };
        let py = object.py();
        if datetime.call_method0(intern!(py, "utcoffset"))?.is_none() {
            return Err(raise(error(&"a datetime without a time zone")));
        }
        let since = datetime.sub(epoch(py)?)?;
        let part = |name: &str| since.getattr(name)?.extract::<i64>();
        // Only the days are ever negative, so this rounds down.
        let seconds = part("days")? * 86_400 + part("seconds")?;
        Ok(seconds * 1000 + part("microseconds")? / 1000)
    }
);

/// Returns an aware datetime in UTC.
pub(crate) fn datetime_of<'py>(
    py: Python<'py>,
    unix_ms: impl IntoPyObject<'py> + Display + Copy,
) -> PyResult<Bound<'py, PyAny>> {
    static TIMEDELTA: PyOnceLock<Py<PyType>> = PyOnceLock::new();

    let milliseconds = [("milliseconds", unix_ms)].into_py_dict(py)?;
    TIMEDELTA
        .import(py, "datetime", "timedelta")?
        .call((), Some(&milliseconds))
        .and_then(|since| epoch(py)?.add(since))
        .map_err(|failure| {
            if !failure.is_instance_of::<PyOverflowError>(py) {
                return failure;
            }
            raise(Error::invalid_argument(format!(
                "datetimes end with the year 9999, got {unix_ms} unix milliseconds"
            )))
        })
}

fn epoch(py: Python<'_>) -> PyResult<Bound<'_, PyDateTime>> {
    let utc = PyTzInfo::utc(py)?;
    PyDateTime::from_timestamp(py, 0.0, Some(&utc))
}
