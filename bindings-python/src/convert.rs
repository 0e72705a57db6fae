//! Python objects as plain values. A wrong object raises the error of its domain, where pyo3 would
//! truncate it or raise `OverflowError`.

use std::fmt::Display;

use pyo3::{
    PyTypeCheck,
    exceptions::{PyOverflowError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyByteArray, PyBytes, PyString},
};
use randflake::{Error, ErrorKind, bindings};

use crate::errors::{InvalidArgumentError, raise, wrong_type};

/// Defines the type of an argument: what it holds, and the function that reads it.
macro_rules! argument {
    ($(#[$doc:meta])* $name:ident($value:ty), $read:expr) => {
        $(#[$doc])*
        pub(crate) struct $name(pub(crate) $value);

        impl<'a, 'py> pyo3::FromPyObject<'a, 'py> for $name {
            type Error = pyo3::PyErr;

            #[inline]
            fn extract(
                object: pyo3::Borrowed<'a, 'py, pyo3::PyAny>,
            ) -> pyo3::PyResult<Self> {
                let read: fn(&pyo3::Bound<'_, pyo3::PyAny>) -> pyo3::PyResult<$value> = $read;
                read(&object).map(Self)
            }
        }
    };
}

pub(crate) use argument;

/// Defines the types of arguments that are integers, each with the kind of its error and its rule.
macro_rules! integers {
    ($($(#[$doc:meta])* $name:ident($value:ty): $kind:ident, $rule:expr;)+) => {
        $(crate::convert::argument!(
            $(#[$doc])*
            $name($value),
            |object| {
                crate::convert::integer(object, crate::convert::must(ErrorKind::$kind, $rule))
            }
        );)+
    };
}

pub(crate) use integers;

/// Returns what makes the error of an argument: what it must be, and what it is instead.
pub(crate) fn must(kind: ErrorKind, rule: &str) -> impl Fn(&dyn Display) -> Error + Copy {
    move |got| Error::new(kind, format!("{rule}, got {got}"))
}

/// Takes an object of a class.
pub(crate) fn instance<'a, 'py, T: PyTypeCheck>(
    object: &'a Bound<'py, PyAny>,
    error: impl FnOnce(&dyn Display) -> Error,
) -> PyResult<&'a Bound<'py, T>> {
    object.cast().map_err(|_| wrong_type(&error(&type_of(object))))
}

/// Takes anything with `__index__` that fits, except bool.
pub(crate) fn integer<'py, T>(
    object: &Bound<'py, PyAny>,
    error: impl FnOnce(&dyn Display) -> Error,
) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    if object.is_instance_of::<PyBool>() {
        return Err(wrong_type(&error(&type_of(object))));
    }
    object.extract::<T>().map_err(|failure| {
        let py = object.py();
        if failure.is_instance_of::<PyOverflowError>(py) {
            raise(match object.extract::<i64>() {
                Ok(number) => error(&number),
                Err(_) => error(&"an integer of more than 64 bits"),
            })
        } else if failure.is_instance_of::<PyTypeError>(py) {
            wrong_type(&error(&type_of(object)))
        } else {
            failure // of a foreign `__index__`
        }
    })
}

/// Takes anything with `__float__` or `__index__`, except bool; an integer too large is infinite.
pub(crate) fn number(
    object: &Bound<'_, PyAny>,
    error: impl FnOnce(&dyn Display) -> Error,
) -> PyResult<f64> {
    if object.is_instance_of::<PyBool>() {
        return Err(wrong_type(&error(&type_of(object))));
    }
    object.extract::<f64>().or_else(|failure| {
        let py = object.py();
        if failure.is_instance_of::<PyOverflowError>(py) {
            Ok(f64::INFINITY)
        } else if failure.is_instance_of::<PyTypeError>(py)
            || failure.is_instance_of::<PyValueError>(py)
        {
            Err(wrong_type(&error(&type_of(object))))
        } else {
            Err(failure) // of a foreign `__float__`
        }
    })
}

/// Takes an option that is true or false.
pub(crate) fn boolean(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    object.extract().map_err(|_| {
        let got = type_of(object);
        wrong_type(&Error::invalid_argument(format!("{name} must be a bool, got {got}")))
    })
}

/// Takes an option that is text.
pub(crate) fn text(object: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    let error = |got: &dyn Display| {
        Error::invalid_argument(format!("{name} must be a str of Unicode text, got {got}"))
    };
    match instance::<PyString>(object, error)?.to_cow() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(raise(error(&"lone surrogates"))),
    }
}

/// Takes an iterable, except text and bytes.
pub(crate) fn items<'py>(
    object: &Bound<'py, PyAny>,
    error: impl Fn(&dyn Display) -> Error,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyAny>>>> {
    if object.is_instance_of::<PyString>() || is_bytes(object) {
        return Err(wrong_type(&error(&type_of(object))));
    }
    object.try_iter().map_err(|failure| {
        if failure.is_instance_of::<PyTypeError>(object.py()) {
            wrong_type(&error(&type_of(object)))
        } else {
            failure // of a foreign `__iter__`
        }
    })
}

/// Converts each of many. One that is refused is named by its index.
pub(crate) fn each<'py, T>(
    many: &Bound<'py, PyAny>,
    error: impl Fn(&dyn Display) -> Error,
    convert: impl Fn(Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let py = many.py();
    let converted = items(many, error)?
        .enumerate()
        .map(|(index, item)| convert(item?).map_err(|raised| at_index(py, index, raised)));
    converted.collect()
}

/// Puts an index before the message of an argument that this package refuses.
#[cold]
pub(crate) fn at_index(py: Python<'_>, index: usize, raised: PyErr) -> PyErr {
    if !raised.is_instance_of::<InvalidArgumentError>(py) {
        return raised;
    }
    let message = bindings::at_index(index, raised.value(py));
    match raised.value(py).setattr("args", (message,)) {
        Ok(()) => raised,
        Err(failure) => failure,
    }
}

/// Returns whether it is a sequence of integers that are never meant as ids.
pub(crate) fn is_bytes(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>()
}

/// Takes an iterable of two.
pub(crate) fn pair<'py>(
    object: &Bound<'py, PyAny>,
    error: impl Fn(&dyn Display) -> Error,
) -> PyResult<[Bound<'py, PyAny>; 2]> {
    // Reads one more than a pair has, since the iterable may be infinite.
    let items: Vec<_> = items(object, &error)?.take(3).collect::<PyResult<_>>()?;
    items.try_into().map_err(|items: Vec<_>| {
        raise(error(&if items.len() < 2 { "too few in one" } else { "too many in one" }))
    })
}

/// Names the type of an object but not its value, which may be a secret.
pub(crate) fn type_of(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().name();
    let name = name.as_ref().map_or("unknown".into(), |name| name.to_string_lossy());
    format!("an object of type {name}")
}
