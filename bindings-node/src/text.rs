//! The text of ids, one and many.
//!
//! To make a string takes Node-API longer than V8 takes for a slice of one, or for one of many
//! joined ones. So many texts come in one string, and go in one.

use napi::bindgen_prelude::i64n;
use randflake::{Error, ErrorKind, Id, Result};

use crate::{
    arguments,
    ffi::{Value, in_place},
};

/// How many texts are in one string: each slice keeps the whole string in memory.
const TEXTS_AT_ONCE: usize = 64;

pub(crate) fn encode_string([id]: [Value<'_>; 1]) -> Result<Value<'_>> {
    id.js().latin1(arguments::numeric_id(id)?.encode(&mut [0; Id::MAX_TEXT_LENGTH]))
}

pub(crate) fn decode_string([text]: [Value<'_>; 1]) -> Result<Value<'_>> {
    text.js().convert(i64n(arguments::id_text(text)?.into()))
}

/// Returns the texts of some ids from `start` on as one string, each with spaces in front up to the
/// longest length; an empty one at the end. `bulk.js` slices it: making each text here takes three
/// times as long.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they saturate")]
pub(crate) fn encode_strings([ids, start]: [Value<'_>; 2]) -> Result<Value<'_>> {
    let start = start.to::<f64>().unwrap_or_default() as usize;
    let mut texts = [b' '; TEXTS_AT_ONCE * Id::MAX_TEXT_LENGTH];
    let mut count = 0;
    let encoded = in_place(ids, |ids| {
        let rooms = texts.as_chunks_mut::<{ Id::MAX_TEXT_LENGTH }>().0;
        for (&id, room) in ids.iter().skip(start).zip(rooms) {
            let mut buffer = [0; Id::MAX_TEXT_LENGTH];
            let text = Id::from(id).encode(&mut buffer);
            room[Id::MAX_TEXT_LENGTH - text.len()..].copy_from_slice(text);
            count += 1;
        }
    });
    encoded.ok_or_else(|| arguments::not_many("ids", ids))?;
    ids.js().latin1(&texts[..Id::MAX_TEXT_LENGTH * count])
}

/// Reads texts that `bulk.js` has joined with commas, and returns whether each was an id: finding
/// out which one is not does not have to be fast.
pub(crate) fn decode_strings([texts, ids]: [Value<'_>; 2]) -> Result<Value<'_>> {
    let internal = || Error::new(ErrorKind::Internal, "joined texts go into a BigInt64Array");
    let texts = texts.to::<String>().ok_or_else(internal)?;
    let decoded = in_place(ids, |ids| {
        let mut texts = texts.split(',');
        let mut next = || texts.next()?.parse::<Id>().ok();
        ids.iter_mut().all(|id| next().map(|read| *id = read.into()).is_some())
            && texts.next().is_none()
    });
    ids.js().convert(decoded.ok_or_else(internal)?)
}
