use pyo3::{
    prelude::*,
    types::{PyList, PyString},
};
use randflake::ErrorKind;

use crate::{
    arguments::{AnyId, AnySecret, Raw},
    buffer::{Int64Buffer, LARGE_BATCH},
    convert::{argument, items, must, text},
    errors::not_to_be_copied,
    text::text_of,
};

#[doc = doc!(Cloak)]
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

    #[doc = doc!(Cloak.hide)]
    fn hide(&self, number: Raw) -> i64 {
        self.cloak.hide(number.0).into()
    }

    #[doc = doc!(Cloak.hide_string)]
    fn hide_string<'py>(&self, py: Python<'py>, number: Raw) -> PyResult<Bound<'py, PyString>> {
        text_of(py, self.cloak.hide(number.0))
    }

    #[doc = doc!(Cloak.hide_many)]
    fn hide_many<'py>(&self, numbers: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = numbers.py();
        let mut numbers = many(numbers, |number| Ok(number.extract::<Raw>()?.0.cast_signed()))?;
        self.cloak.hide_in_place(&mut numbers);
        PyList::new(py, numbers)
    }

    #[doc = doc!(Cloak.hide_in_place)]
    fn hide_in_place(&self, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(buffer, |numbers| self.cloak.hide_in_place(numbers))
    }

    #[doc = doc!(Cloak.reveal)]
    fn reveal(&self, id: AnyId) -> u64 {
        self.cloak.reveal(id.0)
    }

    #[doc = doc!(Cloak.reveal_many)]
    fn reveal_many<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = ids.py();
        let mut numbers = many(ids, |id| Ok(id.extract::<AnyId>()?.0.into()))?;
        self.cloak.reveal_in_place(&mut numbers);
        PyList::new(py, numbers.into_iter().map(i64::cast_unsigned))
    }

    #[doc = doc!(Cloak.reveal_in_place)]
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
        Err(not_to_be_copied(
            "a cloak cannot be pickled or copied, since its secret would go with it; make one \
             where it is needed",
        ))
    }
}

argument!(
    /// What a cloak is for.
    Label(String),
    |object| text(object, "label")
);

/// Reads many ids, each as a number of 64 bits.
fn many(
    ids: &Bound<'_, PyAny>,
    read: impl Fn(&Bound<'_, PyAny>) -> PyResult<i64>,
) -> PyResult<Vec<i64>> {
    let error = must(ErrorKind::InvalidArgument, "many ids must come as a list or the like");
    items(ids, error)?.map(|id| read(&id?)).collect()
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
