use std::sync::Arc;

use randflake::{Error, ErrorKind, Field, Layout, RawParts, Result, Sequence, bindings};

use crate::{
    arguments, client, generator,
    leased::{self, Leases},
    raw::{Js, Value},
    snowflake,
};

/// The last unix millisecond that JavaScript has a date for.
const LAST_DATE_MS: i64 = 8_640_000_000_000_000;

const NAMES: &[&str] = &["fields", "tickMs", "epochMs", "sequence", "unsigned", "nodeSplit"];

/// Makes a layout: an object with its functions and, by themselves, its properties.
pub(crate) fn create<'call>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    [described]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    object(js, layout(described)?, leases)
}

fn object<'call>(js: Js<'call>, layout: Layout, leases: &Arc<Leases>) -> Result<Value<'call>> {
    let properties = properties(js, &layout)?;
    let with_leases = Arc::new((layout, Arc::clone(leases)));
    let layout = Arc::new(layout);
    macro_rules! function_with_leases {
        ($name:literal, $call:expr) => {
            ($name, js.function($name, Arc::clone(&with_leases), $call)?)
        };
    }
    macro_rules! function {
        ($name:literal, $call:expr) => {
            ($name, js.function($name, Arc::clone(&layout), $call)?)
        };
    }
    js.object(&[
        (c"properties", properties),
        function_with_leases!(c"createSnowflake", snowflake::create),
        function!(c"inspect", inspect),
        function!(c"pack", pack),
        function!(c"firstIdAt", first_id_at),
        function!(c"lastIdAt", last_id_at),
        function!(c"joinNode", join_node),
        function!(c"splitNode", split_node),
        function_with_leases!(c"withSequence", with_sequence),
        function_with_leases!(c"leaseSnowflake", leased::create_snowflake),
        function_with_leases!(c"initStore", client::init_layout),
        function!(c"warning", warning),
    ])
}

#[allow(clippy::cast_precision_loss, reason = "checked to be times of dates, or small")]
fn properties<'call>(js: Js<'call>, layout: &Layout) -> Result<Value<'call>> {
    if layout.ends_at() > LAST_DATE_MS {
        return Err(Error::invalid_argument(format!(
            "a layout must end before the last date of JavaScript, {LAST_DATE_MS} unix \
             milliseconds, got {}; use fewer bits for the time, or shorter ticks",
            layout.ends_at()
        )));
    }
    let sequence = match layout.sequence() {
        Sequence::Zero => js.text("zero")?,
        Sequence::Continuing => js.text("continuing")?,
        Sequence::Random(starts) => {
            js.array(&[js.text("random")?, js.number(starts.into())?])?.freeze()?
        }
    };
    js.object(&[
        (c"name", js.text(layout.name())?),
        (c"timeBits", js.number(layout.time_bits().into())?),
        (c"nodeBits", js.number(layout.node_bits().into())?),
        (c"sequenceBits", js.number(layout.sequence_bits().into())?),
        (c"tickMs", js.number(layout.tick_ms().into())?),
        (c"epochMs", js.number(layout.epoch_ms() as f64)?),
        (c"sequence", sequence),
        (c"unsigned", js.boolean(layout.is_unsigned())?),
        (c"maxNodeId", js.number(layout.max_node_id().into())?),
        (c"maxSequence", js.number(layout.max_sequence().into())?),
        (c"endsAt", js.number(layout.ends_at() as f64)?),
        (
            c"negativeFrom",
            layout.negative_from().map_or_else(|| js.null(), |ms| js.number(ms as f64))?,
        ),
    ])
}

/// Takes the name of a preset, or what describes another layout.
fn layout(value: Value<'_>) -> Result<Layout> {
    if let Some(preset) = value.read_text(str::parse) {
        return preset;
    }
    if !value.is_object() {
        let form = format!("the name of a preset or an object with {}", NAMES.join(", "));
        return Err(arguments::invalid("a layout", &form, value));
    }
    arguments::check_names(value, "a layout", NAMES, ErrorKind::InvalidArgument)?;
    let mut custom =
        Layout::custom(value.get(c"fields")?.map(fields).transpose()?.unwrap_or_default());
    if let Some(tick_ms) = arguments::whole(value, c"tickMs", "milliseconds")? {
        custom = custom.tick_ms(tick_ms);
    }
    if let Some(epoch_ms) = value.get(c"epochMs")? {
        let form = "whole unix milliseconds";
        let whole = arguments::integer(epoch_ms);
        custom =
            custom.epoch_ms(whole.ok_or_else(|| arguments::invalid("epochMs", form, epoch_ms))?);
    }
    if let Some(starts) = value.get(c"sequence")? {
        custom = custom.sequence(sequence(starts)?);
    }
    if let Some(unsigned) = arguments::boolean(value, c"unsigned")? {
        custom = custom.unsigned(unsigned);
    }
    if let Some(split) = value.get(c"nodeSplit")? {
        let form = "a pair of widths in bits: [datacenter, worker]";
        let parts = pair(split, "nodeSplit", form)?;
        let bits = parts.map(arguments::as_u32);
        let [Some(datacenter_bits), Some(worker_bits)] = bits else {
            return Err(arguments::invalid("nodeSplit", form, split));
        };
        custom = custom.node_split(datacenter_bits, worker_bits);
    }
    custom.build()
}

fn fields(value: Value<'_>) -> Result<Vec<(Field, u32)>> {
    const FORM: &str = "an array of up to three pairs such as ['time', 41], from high to low, of \
                        'time', 'node' and 'sequence' and their widths in bits";
    let invalid = |got| arguments::invalid("fields", FORM, got);
    let listed = value.elements(3, |_| invalid(value))?.ok_or_else(|| invalid(value))?;
    let field = |listed| {
        let [name, bits] = pair(listed, "fields", FORM)?;
        let field = name.read_text(|name| match name {
            "time" => Some(Field::Time),
            "node" => Some(Field::Node),
            "sequence" => Some(Field::Sequence),
            _ => None,
        });
        match (field.flatten(), arguments::as_u32(bits)) {
            (Some(field), Some(bits)) => Ok((field, bits)),
            (None, _) => Err(invalid(name)),
            (_, None) => Err(invalid(bits)),
        }
    };
    listed.into_iter().map(field).collect()
}

fn sequence(value: Value<'_>) -> Result<Sequence> {
    const FORM: &str = "'zero', 'continuing' or ['random', how many starts]";
    let invalid = || arguments::invalid("sequence", FORM, value);
    let named = value.read_text(|name| match name {
        "zero" => Some(Sequence::Zero),
        "continuing" => Some(Sequence::Continuing),
        _ => None,
    });
    if let Some(named) = named {
        return named.ok_or_else(invalid);
    }
    let [name, starts] = pair(value, "sequence", FORM)?;
    match (name.read_text(|name| name == "random"), arguments::as_u32(starts)) {
        (Some(true), Some(starts)) => Ok(Sequence::Random(starts)),
        _ => Err(invalid()),
    }
}

fn pair<'call>(value: Value<'call>, name: &str, form: &str) -> Result<[Value<'call>; 2]> {
    let invalid = || arguments::invalid(name, form, value);
    let both = value.elements(2, |_| invalid())?.ok_or_else(invalid)?;
    both.try_into().map_err(|_| invalid())
}

fn unix_ms(value: Value<'_>) -> Result<i64> {
    let form = "a valid Date or whole unix milliseconds";
    arguments::integer(value).ok_or_else(|| arguments::invalid("a time", form, value))
}

fn inspect<'call>(
    layout: &Layout,
    js: Js<'call>,
    [id, parts]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    write_parts(layout.inspect(arguments::raw_or_signed(id)?)?, parts)?;
    js.undefined()
}

#[allow(clippy::cast_precision_loss, reason = "`properties` checked that dates can tell it")]
pub(crate) fn write_parts(parts: RawParts, room: Value<'_>) -> Result<()> {
    generator::write_numbers(
        [parts.unix_ms as f64, parts.node_id.into(), parts.sequence.into()],
        room,
    )
}

fn pack<'call>(
    layout: &Layout,
    js: Js<'call>,
    [time, node_id, sequence]: [Value<'call>; 3],
) -> Result<Value<'call>> {
    let whole = arguments::as_u32(sequence).ok_or_else(|| {
        let form = format!("a whole number, 0 to {}", layout.max_sequence());
        arguments::invalid("the sequence", &form, sequence)
    })?;
    js.unsigned_bigint(layout.pack(unix_ms(time)?, arguments::node_id(node_id, layout)?, whole)?)
}

fn first_id_at<'call>(
    layout: &Layout,
    js: Js<'call>,
    [time]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    js.unsigned_bigint(layout.first_id_at(unix_ms(time)?)?)
}

fn last_id_at<'call>(
    layout: &Layout,
    js: Js<'call>,
    [time]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    js.unsigned_bigint(layout.last_id_at(unix_ms(time)?)?)
}

fn join_node<'call>(
    layout: &Layout,
    js: Js<'call>,
    parts: [Value<'call>; 2],
) -> Result<Value<'call>> {
    let part = |value: Value<'_>| {
        arguments::as_u32(value).ok_or_else(|| bindings::invalid_node(&layout, value.description()))
    };
    let [datacenter, worker] = parts;
    js.number(layout.join_node(part(datacenter)?, part(worker)?)?.into())
}

fn split_node<'call>(
    layout: &Layout,
    js: Js<'call>,
    [node_id]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    let whole = arguments::node_id(node_id, layout)?;
    if whole > layout.max_node_id() {
        return Err(bindings::invalid_node(&layout, whole));
    }
    match layout.split_node(whole) {
        None => js.null(),
        Some((datacenter, worker)) => generator::numbers(js, &[datacenter, worker]),
    }
}

fn with_sequence<'call>(
    (layout, leases): &(Layout, Arc<Leases>),
    js: Js<'call>,
    [starts]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    object(js, layout.with_sequence(sequence(starts)?)?, leases)
}

/// Returns what to warn of, or undefined.
fn warning<'call>(layout: &Layout, js: Js<'call>, []: [Value<'call>; 0]) -> Result<Value<'call>> {
    layout.warning().map_or_else(|| js.undefined(), |warning| js.text(&warning))
}
