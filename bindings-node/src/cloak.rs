//! Hides and reveals numbers.

use napi::bindgen_prelude::i64n;
use napi_derive::napi;
use randflake::{Cloak, Id, Result};

use crate::{
    arguments,
    ffi::{Outcome, Value, outcome},
};

#[napi]
pub fn create_cloak<'call>(secret: Value<'call>, label: Value<'call>) -> Outcome<Value<'call>> {
    outcome(|| {
        let secret = arguments::secret(secret)?;
        label.js().own(Cloak::new(&secret, &arguments::label(label)?))
    })
}

pub(crate) fn hide([cloak, number]: [Value<'_>; 2]) -> Result<Value<'_>> {
    let hidden = cloak.owned::<Cloak>()?.hide(arguments::raw_or_signed(number)?);
    cloak.js().convert(i64n(hidden.into()))
}

pub(crate) fn hide_string([cloak, number]: [Value<'_>; 2]) -> Result<Value<'_>> {
    let hidden = cloak.owned::<Cloak>()?.hide(arguments::raw_or_signed(number)?);
    cloak.js().latin1(hidden.encode(&mut [0; Id::MAX_TEXT_LENGTH]))
}

pub(crate) fn reveal([cloak, hidden]: [Value<'_>; 2]) -> Result<Value<'_>> {
    cloak.js().convert(cloak.owned::<Cloak>()?.reveal(arguments::id(hidden)?))
}

#[napi]
pub fn hide_in_place(cloak: Value<'_>, numbers: Value<'_>) -> Outcome<bool> {
    outcome(|| {
        let cloak = cloak.owned::<Cloak>()?;
        arguments::change_in_place(numbers, |numbers| cloak.hide_in_place(numbers))
    })
}

#[napi]
pub fn reveal_in_place(cloak: Value<'_>, hidden: Value<'_>) -> Outcome<bool> {
    outcome(|| {
        let cloak = cloak.owned::<Cloak>()?;
        arguments::change_in_place(hidden, |hidden| cloak.reveal_in_place(hidden))
    })
}
