use randflake::{BoundaryFlake, Result, bindings};

use crate::{
    Module, generator,
    raw::{Js, Value},
};

/// Reads an id of Boundary's flake, from its text or its bytes. `index.js` makes an object of it.
pub(crate) fn create<'call>(
    _: &Module,
    js: Js<'call>,
    [flake]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    let of_bytes = || flake.copied::<u8>().map(|bytes| BoundaryFlake::try_from(bytes.as_slice()));
    let parsed = flake.read_text(str::parse).or_else(of_bytes);
    let parsed =
        parsed.unwrap_or_else(|| Err(bindings::invalid_boundary_flake(flake.description())))?;
    js.object(&[
        (c"text", js.text(&parsed.to_string())?),
        (c"bytes", generator::numbers(js, &parsed.to_bytes().map(u32::from))?),
        (c"unixMs", js.unsigned_bigint(parsed.unix_ms())?),
        (c"worker", generator::numbers(js, &parsed.worker().map(u32::from))?),
        (c"sequence", js.number(parsed.sequence().into())?),
    ])
}
