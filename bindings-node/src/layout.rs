//! Layouts of the Snowflake family.

use napi_derive::napi;
use randflake::{Error, Field, Layout, Result, Sequence, bindings};

use crate::{
    arguments::{self, set},
    environment::Environment,
    ffi::{Js, Outcome, Value, outcome},
};

/// The last unix millisecond for which JavaScript has a date.
const LAST_DATE_MS: i64 = 8_640_000_000_000_000;

/// Makes a layout.
#[napi]
pub fn create_layout(described: Value<'_>) -> Outcome<Value<'_>> {
    outcome(|| checked(described.js(), layout(described)?))
}

fn checked(js: Js<'_>, layout: Layout) -> Result<Value<'_>> {
    if layout.ends_at() > LAST_DATE_MS {
        return Err(Error::invalid_argument(format!(
            "a layout must end before the last date of JavaScript, {LAST_DATE_MS} unix \
             milliseconds, got {}; use fewer bits for the time, or shorter ticks",
            layout.ends_at()
        )));
    }
    js.own(layout)
}

/// Returns the properties that users see.
#[napi]
pub fn layout_properties(layout: Value<'_>) -> Outcome<Value<'_>> {
    outcome(|| {
        let (js, layout) = (layout.js(), layout.owned::<Layout>()?);
        let name = js.convert(bindings::sequence_name(layout.sequence()))?;
        let sequence = match layout.sequence() {
            Sequence::Random(starts) => js.convert(vec![name, js.convert(starts)?])?.freeze()?,
            _ => name,
        };
        js.object(&[
            (c"name", js.convert(layout.name())?),
            (c"timeBits", js.convert(layout.time_bits())?),
            (c"nodeBits", js.convert(layout.node_bits())?),
            (c"sequenceBits", js.convert(layout.sequence_bits())?),
            (c"tickMs", js.convert(layout.tick_ms())?),
            (c"epochMs", js.convert(layout.epoch_ms())?),
            (c"sequence", sequence),
            (c"unsigned", js.convert(layout.is_unsigned())?),
            (c"maxNodeId", js.convert(layout.max_node_id())?),
            (c"maxSequence", js.convert(layout.max_sequence())?),
            (c"endsAt", js.convert(layout.ends_at())?),
            (c"negativeFrom", js.convert(layout.negative_from())?),
        ])
    })
}

/// Returns the text that describes a layout.
#[napi]
pub fn layout_text(layout: Value<'_>) -> Outcome<String> {
    outcome(|| Ok(layout.owned::<Layout>()?.to_string()))
}

/// Takes the text of a layout, or its description.
fn layout(value: Value<'_>) -> Result<Layout> {
    if let Some(read) = value.read_text(str::parse) {
        return read;
    }
    let mut custom = set!(
        Layout::custom(value.get(c"fields")?.map(fields).transpose()?.unwrap_or_default()),
        tick_ms: value.whole(c"tickMs", "milliseconds", 1)?,
        epoch_ms: value.option(c"epochMs", "whole unix milliseconds", arguments::integer)?,
        sequence: value.get(c"sequence")?.map(sequence).transpose()?,
        unsigned: value.boolean(c"unsigned")?,
    );
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
        let field = name.read_text(bindings::field_of);
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
    if let Some(named) = value.read_text(|name| bindings::sequence_of(name, None)) {
        return named.ok_or_else(invalid);
    }
    let [name, starts] = pair(value, "sequence", FORM)?;
    let starts = arguments::as_u32(starts).ok_or_else(invalid)?;
    let named = name.read_text(|name| bindings::sequence_of(name, Some(starts)));
    named.flatten().ok_or_else(invalid)
}

fn pair<'call>(value: Value<'call>, name: &str, form: &str) -> Result<[Value<'call>; 2]> {
    let invalid = || arguments::invalid(name, form, value);
    let both = value.elements(2, |_| invalid())?.ok_or_else(invalid)?;
    both.try_into().map_err(|_| invalid())
}

/// The same as `inspector::inspect`, for the ids of a layout.
#[allow(clippy::cast_precision_loss, reason = "`create_layout` checked that dates can hold it")]
pub(crate) fn inspect_raw<'call>(
    environment: &Environment,
    js: Js<'call>,
    [layout, id]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    let read = layout.owned::<Layout>()?.inspect(arguments::raw_or_signed(id)?)?;
    let parts = [read.unix_ms as f64, read.node_id.into(), read.sequence.into()];
    environment.buffer.put_parts(parts);
    Ok(js.undefined())
}

#[napi]
pub fn pack<'call>(
    layout: Value<'call>,
    time: Value<'call>,
    node_id: Value<'call>,
    sequence: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        let (js, layout) = (layout.js(), layout.owned::<Layout>()?);
        let whole = arguments::as_u32(sequence)
            .ok_or_else(|| bindings::invalid_sequence(layout, sequence.description()))?;
        js.convert(layout.pack(unix_ms(time)?, arguments::node_id(node_id, layout)?, whole)?)
    })
}

#[napi]
pub fn first_id_at<'call>(layout: Value<'call>, time: Value<'call>) -> Outcome<Value<'call>> {
    outcome(|| layout.js().convert(layout.owned::<Layout>()?.first_id_at(unix_ms(time)?)?))
}

#[napi]
pub fn last_id_at<'call>(layout: Value<'call>, time: Value<'call>) -> Outcome<Value<'call>> {
    outcome(|| layout.js().convert(layout.owned::<Layout>()?.last_id_at(unix_ms(time)?)?))
}

fn unix_ms(value: Value<'_>) -> Result<i64> {
    let form = "a valid Date or whole unix milliseconds";
    arguments::integer(value).ok_or_else(|| arguments::invalid("a time", form, value))
}

#[napi]
pub fn join_node(layout: Value<'_>, datacenter: Value<'_>, worker: Value<'_>) -> Outcome<u32> {
    outcome(|| {
        let layout = layout.owned::<Layout>()?;
        let datacenter = arguments::node_id(datacenter, layout)?;
        layout.join_node(datacenter, arguments::node_id(worker, layout)?)
    })
}

/// Returns the datacenter and the worker of a node id; null where node ids do not have these parts.
#[napi]
pub fn split_node(layout: Value<'_>, node_id: Value<'_>) -> Outcome<Option<Vec<u32>>> {
    outcome(|| {
        let layout = layout.owned::<Layout>()?;
        let whole = arguments::node_id(node_id, layout)?;
        if whole > layout.max_node_id() {
            return Err(bindings::invalid_node(layout, whole));
        }
        Ok(layout.split_node(whole).map(|(datacenter, worker)| vec![datacenter, worker]))
    })
}

#[napi]
pub fn with_sequence<'call>(layout: Value<'call>, starts: Value<'call>) -> Outcome<Value<'call>> {
    outcome(|| {
        let changed = layout.owned::<Layout>()?.with_sequence(sequence(starts)?)?;
        layout.js().own(changed)
    })
}

#[napi]
pub fn with_epoch_ms<'call>(layout: Value<'call>, epoch_ms: Value<'call>) -> Outcome<Value<'call>> {
    outcome(|| {
        let form = "whole unix milliseconds";
        let whole = arguments::integer(epoch_ms)
            .ok_or_else(|| arguments::invalid("epochMs", form, epoch_ms))?;
        let changed = layout.owned::<Layout>()?.with_epoch_ms(whole)?;
        checked(layout.js(), changed)
    })
}

/// Returns the warning to give, or null.
#[napi]
pub fn layout_warning(layout: Value<'_>) -> Outcome<Option<String>> {
    outcome(|| Ok(layout.owned::<Layout>()?.warning()))
}
