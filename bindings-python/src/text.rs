#![allow(unsafe_code, reason = "the quickest way to make a str of ASCII")]

use std::ptr;

use pyo3::{ffi, prelude::*, types::PyString};
use randflake::{Id, Secret};
use zeroize::Zeroizing;

use crate::{
    arguments::{IdNumber, IdText},
    errors::call,
};

#[doc = doc!(encode_string)]
#[pyfunction]
pub(crate) fn encode_string(py: Python<'_>, id: IdNumber) -> PyResult<Bound<'_, PyString>> {
    text_of(py, id.0.into())
}

#[doc = doc!(decode_string)]
#[pyfunction]
pub(crate) fn decode_string(text: IdText) -> i64 {
    text.0.into()
}

#[doc = doc!(generate_secret)]
#[pyfunction]
pub(crate) fn generate_secret(py: Python<'_>) -> PyResult<Bound<'_, PyString>> {
    let hex = call(|| Ok(Zeroizing::new(Secret::random().to_hex())))?;
    Ok(PyString::new(py, &hex))
}

/// Makes the text of an id. It is decoded as Latin-1, which is quickest, since all bytes are valid.
#[inline]
pub(crate) fn text_of(py: Python<'_>, id: Id) -> PyResult<Bound<'_, PyString>> {
    let mut room = [0; Id::MAX_TEXT_LENGTH];
    let text = id.encode(&mut room);
    debug_assert!(text.is_ascii());
    let length = text.len().cast_signed();
    // SAFETY: it reads so many bytes, and no name of an error handler, since decoding cannot fail.
    let text = unsafe { ffi::PyUnicode_DecodeLatin1(text.as_ptr().cast(), length, ptr::null()) };
    // SAFETY: it is a new reference, or null if there is an exception.
    let text = unsafe { Bound::from_owned_ptr_or_err(py, text) }?;
    // SAFETY: that function makes a str.
    Ok(unsafe { text.cast_into_unchecked() })
}
