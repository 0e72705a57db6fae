use pyo3::{prelude::*, types::PyString};
use randflake::{Id, Secret};
use zeroize::Zeroizing;

use crate::{
    arguments::{IdNumber, IdText},
    errors::call,
    raw,
};

/// Returns the text of an id: 1 to 13 of the characters 0-9 and a-v.
///
/// Raises InvalidArgumentError with the code INVALID_ID if id is not a signed 64-bit integer.
///
/// >>> from randflake import encode_string
/// >>> encode_string(4594531474933654033)
/// '3vgoe12ccb8gh'
#[pyfunction]
pub(crate) fn encode_string(py: Python<'_>, id: IdNumber) -> PyResult<Bound<'_, PyString>> {
    text_of(py, id.0)
}

/// Returns the id of a text, which must be exactly as encode_string writes it.
///
/// Raises InvalidArgumentError with the code INVALID_ID for any other text.
///
/// >>> from randflake import decode_string
/// >>> decode_string("3vgoe12ccb8gh")
/// 4594531474933654033
#[pyfunction]
pub(crate) fn decode_string(text: IdText) -> i64 {
    text.0.into()
}

/// Returns a fresh secret, 32 hex digits, from the operating system's random source.
///
/// It is for the life of an id column: keep it where secrets are kept.
///
/// >>> from randflake import generate_secret
/// >>> len(bytes.fromhex(generate_secret()))
/// 16
#[pyfunction]
pub(crate) fn generate_secret(py: Python<'_>) -> PyResult<Bound<'_, PyString>> {
    let hex = call(|| Ok(Zeroizing::new(Secret::random().to_hex())))?;
    Ok(PyString::new(py, &hex))
}

#[inline]
pub(crate) fn text_of(py: Python<'_>, id: Id) -> PyResult<Bound<'_, PyString>> {
    raw::ascii(py, id.encode(&mut [0; Id::MAX_TEXT_LENGTH]))
}
