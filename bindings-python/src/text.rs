#![allow(unsafe_code, reason = "the quickest way to make a str of ASCII")]

use std::ptr;

use pyo3::{
    ffi,
    prelude::*,
    types::{PyList, PyString},
};
use randflake::{ErrorKind, Id, Secret};
use zeroize::Zeroizing;

use crate::{
    arguments::{IdNumber, IdText},
    bulk,
    convert::{each, must},
    errors::call,
};

#[doc = doc!(encode_string)]
#[pyfunction]
pub(crate) fn encode_string(id: IdNumber) -> Text {
    Text(id.0.into())
}

#[doc = doc!(encode_strings)]
#[pyfunction]
pub(crate) fn encode_strings<'py>(ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    list_of_texts(ids.py(), &bulk::read_many::<IdNumber>(ids)?)
}

#[doc = doc!(decode_string)]
#[pyfunction]
pub(crate) fn decode_string(text: IdText) -> i64 {
    text.0.into()
}

#[doc = doc!(decode_strings)]
#[pyfunction]
pub(crate) fn decode_strings<'py>(texts: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let error =
        must(ErrorKind::InvalidArgument, "many texts must be in a list or a similar collection");
    let ids = each(texts, error, |text| Ok(i64::from(text.extract::<IdText>()?.0)))?;
    PyList::new(texts.py(), ids)
}

#[doc = doc!(generate_secret)]
#[pyfunction]
pub(crate) fn generate_secret(py: Python<'_>) -> PyResult<Bound<'_, PyString>> {
    let hex = call(|| Ok(Zeroizing::new(Secret::random().to_hex())))?;
    Ok(PyString::new(py, &hex))
}

/// The text of an id, in Python a str.
pub(crate) struct Text(pub(crate) Id);

impl<'py> IntoPyObject<'py> for Text {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = PyErr;

    /// It is decoded as Latin-1, which is fastest, since all bytes are valid.
    #[inline]
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let mut room = [0; Id::MAX_TEXT_LENGTH];
        let text = self.0.encode(&mut room);
        debug_assert!(text.is_ascii());
        let (start, length) = (text.as_ptr().cast(), text.len().cast_signed());
        // SAFETY: it reads this many bytes, and no name of an error handler, since decoding cannot
        // fail.
        let text = unsafe { ffi::PyUnicode_DecodeLatin1(start, length, ptr::null()) };
        // SAFETY: it is a new reference, or null if there is an exception.
        let text = unsafe { Bound::from_owned_ptr_or_err(py, text) }?;
        // SAFETY: that function makes a str.
        Ok(unsafe { text.cast_into_unchecked() })
    }
}

/// Makes a list of the texts of ids.
pub(crate) fn list_of_texts<'py>(py: Python<'py>, ids: &[i64]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, ids.iter().map(|&id| Text(id.into())))
}
