use pyo3::{prelude::*, types::PyList};

use crate::{
    arguments::{AnyId, AnySecret, Label, Raw},
    bulk,
    errors::not_to_be_copied,
    text::Text,
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
    fn hide_string(&self, number: Raw) -> Text {
        Text(self.cloak.hide(number.0))
    }

    #[doc = doc!(Cloak.hide_many)]
    fn hide_many<'py>(&self, numbers: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        bulk::many::<Raw, AnyId>(numbers, |numbers| self.cloak.hide_in_place(numbers))
    }

    #[doc = doc!(Cloak.hide_array)]
    fn hide_array<'py>(&self, numbers: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        bulk::array::<Raw, AnyId>(numbers, |numbers| self.cloak.hide_in_place(numbers))
    }

    #[doc = doc!(Cloak.hide_in_place)]
    fn hide_in_place(&self, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        bulk::in_place(buffer, |numbers| self.cloak.hide_in_place(numbers))
    }

    #[doc = doc!(Cloak.reveal)]
    fn reveal(&self, id: AnyId) -> u64 {
        self.cloak.reveal(id.0)
    }

    #[doc = doc!(Cloak.reveal_many)]
    fn reveal_many<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        bulk::many::<AnyId, Raw>(ids, |ids| self.cloak.reveal_in_place(ids))
    }

    #[doc = doc!(Cloak.reveal_array)]
    fn reveal_array<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        bulk::array::<AnyId, Raw>(ids, |ids| self.cloak.reveal_in_place(ids))
    }

    #[doc = doc!(Cloak.reveal_in_place)]
    fn reveal_in_place(&self, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        bulk::in_place(buffer, |ids| self.cloak.reveal_in_place(ids))
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
