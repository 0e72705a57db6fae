use std::fmt::Display;

use pyo3::{
    prelude::*,
    types::{PyList, PyString},
};
use randflake::{Error, ErrorKind, Id};

use crate::{
    arguments::{AnyId, AnySecret, Label, Raw, items},
    buffer::Int64Buffer,
    errors::wrong_type,
    flake::LARGE_BATCH,
    text::text_of,
};

/// Hides any 64-bit ids: sortable ones and auto-increment keys inside, opaque ids outside.
///
/// Each number has one hidden form and each hidden form one number, so nothing collides, and the
/// database keeps the number and its index. Hiding does not authenticate: every 64-bit number
/// reveals to something. Look up what comes back, and check who may see it.
///
/// Numbers are unsigned: one that a signed column shows as negative is number % 2**64 here. Hidden
/// forms are signed, as ids of Randflake are, and half of them are negative.
///
/// secret: 16 bytes, or a str of 32 hex digits; see generate_secret. It may serve a Randflake, too.
/// label: the purpose, such as "orders.id". Another label is another key, so that hidden forms of
/// two kinds tell nothing about each other.
///
/// Raises InvalidArgumentError with the code INVALID_SECRET or INVALID_ARGUMENT.
///
/// >>> from randflake import Cloak
/// >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
/// >>> cloak.hide(1)
/// 4987143739177344976
/// >>> cloak.reveal(4987143739177344976)
/// 1
#[pyclass(frozen, module = "randflake")]
pub(crate) struct Cloak {
    cloak: randflake::Cloak,
}

#[pymethods]
impl Cloak {
    #[new]
    fn new(secret: AnySecret, label: Label) -> Self {
        Self { cloak: randflake::Cloak::new(&secret.0, &label.0) }
    }

    /// Hides a number.
    ///
    /// number: an unsigned 64-bit integer.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ID.
    fn hide(&self, number: Raw) -> i64 {
        self.cloak.hide(number.0).into()
    }

    /// Hides a number as text: 1 to 13 of the characters 0-9 and a-v, for URLs and JSON.
    ///
    /// Raises what hide raises.
    ///
    /// >>> from randflake import Cloak
    /// >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
    /// >>> cloak.hide_string(1)
    /// '4adf4pr4nl7ug'
    /// >>> cloak.reveal("4adf4pr4nl7ug")
    /// 1
    fn hide_string<'py>(&self, py: Python<'py>, number: Raw) -> PyResult<Bound<'py, PyString>> {
        text_of(py, self.cloak.hide(number.0))
    }

    /// Hides many numbers.
    ///
    /// numbers: a list of unsigned 64-bit integers, or anything else that holds them.
    ///
    /// Raises what hide raises, and INVALID_ARGUMENT for what holds nothing.
    ///
    /// >>> from randflake import Cloak
    /// >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
    /// >>> cloak.reveal_many(cloak.hide_many([1, 2, 3]))
    /// [1, 2, 3]
    fn hide_many<'py>(&self, numbers: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = numbers.py();
        let mut numbers = items(numbers, several)?
            .map(|number| Ok(number?.extract::<Raw>()?.0.cast_signed()))
            .collect::<PyResult<Vec<_>>>()?;
        self.cloak.hide_in_place(&mut numbers);
        PyList::new(py, numbers)
    }

    /// Hides the numbers of a writable buffer in place, as fast as the machine allows.
    ///
    /// buffer: native signed 64-bit integers without gaps, such as array.array("q") or a numpy
    /// array of int64.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ARGUMENT for another kind of buffer.
    ///
    /// >>> from array import array
    /// >>> from randflake import Cloak
    /// >>> cloak = Cloak("dffd6021bb2bd5b0af676290809ec3a5", "orders.id")
    /// >>> column = array("q", [1, 2, 3])
    /// >>> cloak.hide_in_place(column)
    /// >>> column[0] == cloak.hide(1)
    /// True
    /// >>> cloak.reveal_in_place(column)
    /// >>> column
    /// array('q', [1, 2, 3])
    fn hide_in_place(&self, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(buffer, |numbers| self.cloak.hide_in_place(numbers))
    }

    /// Returns the number that was hidden.
    ///
    /// id: what hide returned, or its text.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ID.
    fn reveal(&self, id: AnyId) -> u64 {
        self.cloak.reveal(id.0)
    }

    /// Returns the numbers that were hidden.
    ///
    /// ids: a list of what hide returned or its text, or anything else that holds them.
    ///
    /// Raises what reveal raises, and INVALID_ARGUMENT for what holds nothing.
    fn reveal_many<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let mut ids_of = items(ids, several)?
            .map(|id| Ok(Id::into(id?.extract::<AnyId>()?.0)))
            .collect::<PyResult<Vec<i64>>>()?;
        self.cloak.reveal_in_place(&mut ids_of);
        PyList::new(ids.py(), ids_of.into_iter().map(i64::cast_unsigned))
    }

    /// Reveals the ids of a writable buffer in place; undoes hide_in_place.
    ///
    /// buffer: as hide_in_place takes it.
    ///
    /// Raises what hide_in_place raises.
    fn reveal_in_place(&self, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(buffer, |ids| self.cloak.reveal_in_place(ids))
    }

    fn __repr__(&self) -> &'static str {
        let _ = self;
        "<randflake.Cloak>"
    }

    /// Refuses pickle and copy.
    fn __reduce_ex__(&self, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = (self, protocol);
        Err(wrong_type(&Error::new(
            ErrorKind::InvalidArgument,
            "a cloak cannot be pickled or copied, since its secret would go with it; make one \
             where it is needed",
        )))
    }
}

fn several(got: &dyn Display) -> Error {
    Error::invalid_argument(format!("many ids must come as a list or the like, got {got}"))
}

/// Changes a copy, which no other thread sees, so the GIL can be released.
fn in_place(buffer: &Bound<'_, PyAny>, change: impl FnOnce(&mut [i64]) + Send) -> PyResult<()> {
    let py = buffer.py();
    let buffer = Int64Buffer::writable(buffer)?;
    let mut numbers = buffer.read(py)?;
    if numbers.len() < LARGE_BATCH {
        change(&mut numbers);
    } else {
        py.detach(|| change(&mut numbers));
    }
    buffer.write(py, &numbers)
}
