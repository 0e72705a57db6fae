use std::sync::Arc;

use napi::bindgen_prelude::{BigInt64Array, Uint32Array};
use randflake::{Inspector, Result};

use crate::{
    Module, arguments, generator,
    raw::{Js, Value},
};

/// Makes an inspector: an object with its functions.
pub(crate) fn create<'call>(
    _: &Module,
    js: Js<'call>,
    [secret]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    let inspector = Arc::new(Inspector::new(&arguments::secret(secret)?));
    js.object(&[
        (c"inspect", js.function(c"inspect", Arc::clone(&inspector), inspect)?),
        (c"inspectMany", js.function(c"inspectMany", Arc::clone(&inspector), inspect_many)?),
        (c"encrypt", js.function(c"encrypt", Arc::clone(&inspector), encrypt)?),
        (c"decrypt", js.function(c"decrypt", inspector, decrypt)?),
    ])
}

fn inspect<'call>(
    inspector: &Inspector,
    js: Js<'call>,
    [id, parts]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    generator::write_parts(inspector.inspect(arguments::id(id)?), parts)?;
    js.undefined()
}

fn inspect_many<'call>(
    inspector: &Inspector,
    js: Js<'call>,
    [ids]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    let ids = ids.copied::<i64>().ok_or_else(|| arguments::not_ids(ids))?;
    let mut timestamps = vec![0; ids.len()];
    let (mut node_ids, mut sequences) = (vec![0; ids.len()], vec![0; ids.len()]);
    inspector.inspect_many(&ids, &mut timestamps, &mut node_ids, &mut sequences);
    js.object(&[
        (c"timestamp", js.convert(BigInt64Array::new(timestamps))?),
        (c"nodeId", js.convert(Uint32Array::new(node_ids))?),
        (c"sequence", js.convert(Uint32Array::new(sequences))?),
    ])
}

fn encrypt<'call>(
    inspector: &Inspector,
    js: Js<'call>,
    [raw]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    js.bigint(inspector.encrypt(arguments::raw(raw)?).into())
}

fn decrypt<'call>(
    inspector: &Inspector,
    js: Js<'call>,
    [id]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    js.unsigned_bigint(inspector.decrypt(arguments::id(id)?))
}
