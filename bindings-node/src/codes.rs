//! Codes of numbers, and back.

use napi_derive::napi;
use randflake::{Codes, Error, ErrorKind, Result};

use crate::{
    arguments::{self, set},
    ffi::{Outcome, Value, outcome},
};

#[napi]
pub fn create_codes<'call>(
    secret: Value<'call>,
    label: Value<'call>,
    options: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        let secret = arguments::secret(secret)?;
        let label = arguments::label(label)?;
        let size = |name, rule| {
            options.option(name, rule, |value| arguments::as_u32(value)?.try_into().ok())
        };
        let alphabet =
            options.option(c"alphabet", "a string of Unicode text", Value::as_unicode)?;
        let builder = set!(
            Codes::builder(&secret, &label),
            length: size(c"length", "a whole number, 4 to 24")?,
            check: size(c"check", "a whole number, 0 or more, below the length")?,
            alphabet: alphabet.as_deref(),
        );
        options.js().own(builder.build()?)
    })
}

/// What does not change.
#[napi(object)]
pub struct CodesProperties {
    pub length: u32,
    pub alphabet: String,
    pub check: u32,
    pub pattern: String,
}

#[napi]
pub fn codes_properties(codes: Value<'_>) -> Outcome<CodesProperties> {
    outcome(|| {
        let codes = codes.owned::<Codes>()?;
        let small = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        Ok(CodesProperties {
            length: small(codes.length()),
            alphabet: codes.alphabet().into(),
            check: small(codes.check()),
            pattern: codes.pattern(),
        })
    })
}

/// Returns the last number that has a code.
pub(crate) fn last_coded([codes]: [Value<'_>; 1]) -> Result<Value<'_>> {
    let last = codes.owned::<Codes>()?.capacity() - 1;
    codes.js().convert(u64::try_from(last).unwrap_or(u64::MAX))
}

pub(crate) fn encode_code([codes, number]: [Value<'_>; 2]) -> Result<Value<'_>> {
    let number = number.as_u64().ok_or_else(|| {
        let got = number.description();
        invalid(&format!("the number of a code must be a bigint, 0n to capacity - 1n, got {got}"))
    })?;
    codes.js().latin1(codes.owned::<Codes>()?.encode(number)?.as_bytes())
}

pub(crate) fn decode_code([codes, code]: [Value<'_>; 2]) -> Result<Value<'_>> {
    let decode = |text: &str| codes.owned::<Codes>()?.decode(text);
    let number = code.read_text(decode).unwrap_or_else(|| {
        Err(invalid(&format!("a code must be a string, got {}", code.description())))
    })?;
    codes.js().convert(number)
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidId, message.to_owned())
}
