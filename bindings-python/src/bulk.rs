//! Many ids at once: from lists and arrays, into lists and arrays.

use pyo3::{
    IntoPyObjectExt,
    exceptions::PyImportError,
    prelude::*,
    types::{PyList, PyTuple},
};
use randflake::ErrorKind;

use crate::{
    arguments::{AnyId, IdNumber, Raw},
    buffer::{Batch, Int64Buffer, LARGE_BATCH, array_of},
    convert::{at_index, each, must},
    errors::InvalidArgumentError,
};

/// What many calls take or return.
pub(crate) trait Number: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr> {
    /// Whether it is signed in Python.
    const SIGNED: bool;

    fn bits(self) -> i64;
}

impl Number for AnyId {
    const SIGNED: bool = true;

    fn bits(self) -> i64 {
        self.0.into()
    }
}

impl Number for IdNumber {
    const SIGNED: bool = true;

    fn bits(self) -> i64 {
        self.0
    }
}

impl Number for Raw {
    const SIGNED: bool = false;

    fn bits(self) -> i64 {
        self.0.cast_signed()
    }
}

/// Converts the elements of a list or the like, or of an array, and returns a list.
pub(crate) fn many<'py, From: Number, To: Number>(
    numbers: &Bound<'py, PyAny>,
    change: impl FnOnce(&mut [i64]) + Send,
) -> PyResult<Bound<'py, PyList>> {
    let py = numbers.py();
    let mut numbers = read_many::<From>(numbers)?;
    detached(py, &mut numbers, change);
    list_of::<To>(py, &numbers)
}

/// Converts the elements of an array, and returns a numpy array.
pub(crate) fn array<'py, From: Number, To: Number>(
    numbers: &Bound<'py, PyAny>,
    change: impl FnOnce(&mut [i64]) + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let py = numbers.py();
    let mut numbers = read_array::<From>(numbers)?;
    detached(py, &mut numbers, change);
    let array = array_of(py, &numbers)?;
    if To::SIGNED { Ok(array) } else { array.call_method1("view", ("uint64",)) }
}

/// Converts the elements of a buffer.
pub(crate) fn in_place(
    buffer: &Bound<'_, PyAny>,
    change: impl FnOnce(&mut [i64]) + Send,
) -> PyResult<()> {
    let py = buffer.py();
    let buffer = Int64Buffer::writable(buffer)?;
    let mut numbers = buffer.read(py)?;
    detached(py, &mut numbers, change);
    buffer.write(py, &numbers)
}

/// Reads an array.
pub(crate) fn read_array<T: Number>(array: &Bound<'_, PyAny>) -> PyResult<Batch<i64>> {
    read::<T>(array.py(), &Int64Buffer::readable(array)?)
}

/// Reads numbers, each of which is also accepted by itself.
fn read<T: Number>(py: Python<'_>, array: &Int64Buffer) -> PyResult<Batch<i64>> {
    let numbers = array.read(py)?;
    // Half of the numbers are the same for both.
    if array.is_signed() != T::SIGNED
        && let Some(index) = numbers.iter().position(|&number| number < 0)
    {
        let wrong = numbers[index];
        let wrong = if array.is_signed() {
            wrong.into_bound_py_any(py)
        } else {
            wrong.cast_unsigned().into_bound_py_any(py)
        };
        wrong?.extract::<T>().map_err(|raised| at_index(py, index, raised))?; // raises
    }
    Ok(numbers)
}

/// Reads an array, or anything else one by one.
pub(crate) fn read_many<T: Number>(numbers: &Bound<'_, PyAny>) -> PyResult<Batch<i64>> {
    let py = numbers.py();
    if !numbers.is_instance_of::<PyList>() && !numbers.is_instance_of::<PyTuple>() {
        match Int64Buffer::readable(numbers) {
            Ok(array) => return read::<T>(py, &array),
            // Other arrays, and columns where numpy is missing, are read one by one.
            Err(raised)
                if raised.is_instance_of::<InvalidArgumentError>(py)
                    || raised.is_instance_of::<PyImportError>(py) => {}
            Err(raised) => return Err(raised),
        }
    }
    let error =
        must(ErrorKind::InvalidArgument, "many ids must be in a list or a similar collection");
    let numbers = each(numbers, error, |number| Ok(number.extract::<T>()?.bits()))?;
    let mut batch = Batch::of(numbers.len())?;
    batch.copy_from_slice(&numbers);
    Ok(batch)
}

/// Makes a list of ints.
pub(crate) fn list_of<'py, T: Number>(
    py: Python<'py>,
    numbers: &[i64],
) -> PyResult<Bound<'py, PyList>> {
    if T::SIGNED {
        PyList::new(py, numbers)
    } else {
        PyList::new(py, numbers.iter().map(|number| number.cast_unsigned()))
    }
}

/// Changes a copy, which no other thread sees, so the GIL can be released.
fn detached(py: Python<'_>, numbers: &mut [i64], change: impl FnOnce(&mut [i64]) + Send) {
    if numbers.len() < LARGE_BATCH {
        change(numbers);
    } else {
        py.detach(|| change(numbers));
    }
}
