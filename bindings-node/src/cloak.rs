use std::sync::Arc;

use randflake::{Cloak, Id, Result};

use crate::{
    Module, arguments, generator,
    raw::{Js, Value},
};

/// Hides the numbers of an array.
pub(crate) struct Hider(pub(crate) Cloak);

/// Reveals the numbers of an array.
pub(crate) struct Revealer(pub(crate) Cloak);

/// Makes a cloak: an object with its functions.
pub(crate) fn create<'call>(
    _: &Module,
    js: Js<'call>,
    [secret, label]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    let secret = arguments::secret(secret)?;
    let cloak = label
        .read_text(|label| Cloak::new(&secret, label))
        .ok_or_else(|| arguments::invalid("the label", "a string", label))?;
    let (hider, revealer) = (Arc::new(Hider(cloak.clone())), Arc::new(Revealer(cloak.clone())));
    let cloak = Arc::new(cloak);
    js.object(&[
        (c"hide", js.function(c"hide", Arc::clone(&cloak), hide)?),
        (c"hideString", js.function(c"hideString", Arc::clone(&cloak), hide_string)?),
        (c"hideInPlace", js.function(c"hideInPlace", hider, hide_in_place)?),
        (c"reveal", js.function(c"reveal", cloak, reveal)?),
        (c"revealInPlace", js.function(c"revealInPlace", revealer, reveal_in_place)?),
    ])
}

fn hide<'call>(cloak: &Cloak, js: Js<'call>, [number]: [Value<'call>; 1]) -> Result<Value<'call>> {
    js.bigint(cloak.hide(arguments::raw_or_signed(number)?).into())
}

fn hide_string<'call>(
    cloak: &Cloak,
    js: Js<'call>,
    [number]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    let hidden = cloak.hide(arguments::raw_or_signed(number)?);
    js.latin1(hidden.encode(&mut [0; Id::MAX_TEXT_LENGTH]))
}

/// Returns true, as `places::generate` does.
fn hide_in_place<'call>(
    hider: &Hider,
    js: Js<'call>,
    [numbers]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    generator::fill_in_place(hider, numbers)?;
    js.boolean(true)
}

fn reveal<'call>(
    cloak: &Cloak,
    js: Js<'call>,
    [hidden]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    js.unsigned_bigint(cloak.reveal(arguments::id(hidden)?))
}

/// Returns true, as `places::generate` does.
fn reveal_in_place<'call>(
    revealer: &Revealer,
    js: Js<'call>,
    [hidden]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    generator::fill_in_place(revealer, hidden)?;
    js.boolean(true)
}
