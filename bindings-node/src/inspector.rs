//! Reads the ids of a secret.

use napi::bindgen_prelude::{BigInt64Array, BigUint64Array, Uint32Array, i64n};
use napi_derive::napi;
use randflake::{Inspector, Result};

use crate::{
    arguments,
    environment::Environment,
    ffi::{Js, Outcome, Value, copied, outcome},
};

#[napi]
pub fn create_inspector(secret: Value<'_>) -> Outcome<Value<'_>> {
    outcome(|| secret.js().own(Inspector::new(&arguments::secret(secret)?)))
}

/// Leaves the parts of an id in the call buffer. `generators.js` makes an object of them: that
/// takes a fifth of the time of making one here.
#[allow(clippy::cast_precision_loss, reason = "unix seconds are far below 2^53")]
pub(crate) fn inspect<'call>(
    environment: &Environment,
    js: Js<'call>,
    [inspector, id]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    let read = inspector.owned::<Inspector>()?.inspect(arguments::id(id)?);
    let parts = [read.timestamp as f64, read.node_id.into(), read.sequence.into()];
    environment.buffer.put_parts(parts);
    Ok(js.undefined())
}

pub(crate) fn encrypt([inspector, raw]: [Value<'_>; 2]) -> Result<Value<'_>> {
    raw.js().convert(i64n(inspector.owned::<Inspector>()?.encrypt(arguments::raw(raw)?).into()))
}

pub(crate) fn decrypt([inspector, id]: [Value<'_>; 2]) -> Result<Value<'_>> {
    id.js().convert(inspector.owned::<Inspector>()?.decrypt(arguments::id(id)?))
}

/// Copies the ids of a `BigUint64Array`, if they are also signed numbers.
#[napi]
pub fn signed_ids(ids: Value<'_>) -> Outcome<BigInt64Array> {
    outcome(|| arguments::unsigned_ids(ids).map(BigInt64Array::new))
}

/// Encrypts a copy.
#[napi]
pub fn encrypt_many(inspector: Value<'_>, raws: Value<'_>) -> Outcome<BigInt64Array> {
    outcome(|| {
        let mut ids = arguments::raws(raws)?;
        inspector.owned::<Inspector>()?.encrypt_in_place(&mut ids);
        Ok(BigInt64Array::new(ids))
    })
}

/// Decrypts a copy.
#[napi]
pub fn decrypt_many(inspector: Value<'_>, ids: Value<'_>) -> Outcome<BigUint64Array> {
    outcome(|| {
        let mut raws = copied::<i64>(ids).ok_or_else(|| arguments::not_many("ids", ids))?;
        inspector.owned::<Inspector>()?.decrypt_in_place(&mut raws);
        Ok(BigUint64Array::new(raws.into_iter().map(i64::cast_unsigned).collect::<Vec<_>>()))
    })
}

#[napi]
pub fn encrypt_in_place(inspector: Value<'_>, raws: Value<'_>) -> Outcome<bool> {
    outcome(|| {
        let inspector = inspector.owned::<Inspector>()?;
        arguments::change_in_place(raws, |raws| inspector.encrypt_in_place(raws))
    })
}

#[napi]
pub fn decrypt_in_place(inspector: Value<'_>, ids: Value<'_>) -> Outcome<bool> {
    outcome(|| {
        let inspector = inspector.owned::<Inspector>()?;
        arguments::change_in_place(ids, |ids| inspector.decrypt_in_place(ids))
    })
}

#[napi]
pub fn inspect_many<'call>(inspector: Value<'call>, ids: Value<'call>) -> Outcome<Value<'call>> {
    outcome(|| {
        let (js, inspector) = (ids.js(), inspector.owned::<Inspector>()?);
        let ids = copied::<i64>(ids).ok_or_else(|| arguments::not_ids(ids))?;
        let mut timestamps = vec![0; ids.len()];
        let (mut node_ids, mut sequences) = (vec![0; ids.len()], vec![0; ids.len()]);
        inspector.inspect_many(&ids, &mut timestamps, &mut node_ids, &mut sequences);
        js.object(&[
            (c"timestamp", js.convert(BigInt64Array::new(timestamps))?),
            (c"nodeId", js.convert(Uint32Array::new(node_ids))?),
            (c"sequence", js.convert(Uint32Array::new(sequences))?),
        ])
    })
}
