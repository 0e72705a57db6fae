//! Ids of Boundary's flake.

use napi_derive::napi;
use randflake::{BoundaryFlake, bindings};

use crate::ffi::{Outcome, Value, copied, outcome};

/// Reads an id of Boundary's flake, from its text or its bytes. `layouts.js` makes an object of it.
#[napi]
pub fn read_boundary_flake(flake: Value<'_>) -> Outcome<Value<'_>> {
    outcome(|| {
        let of_bytes =
            || copied::<u8>(flake).map(|bytes| BoundaryFlake::try_from(bytes.as_slice()));
        let parsed = flake.read_text(str::parse).or_else(of_bytes);
        let parsed: BoundaryFlake =
            parsed.unwrap_or_else(|| Err(bindings::invalid_boundary_flake(flake.description())))?;
        let js = flake.js();
        js.object(&[
            (c"text", js.convert(parsed.to_string())?),
            (c"bytes", js.convert(parsed.to_bytes().map(u32::from).to_vec())?),
            (c"unixMs", js.convert(parsed.unix_ms())?),
            (c"worker", js.convert(parsed.worker().map(u32::from).to_vec())?),
            (c"sequence", js.convert(u32::from(parsed.sequence()))?),
        ])
    })
}
