//! Layouts.

use randflake::{Error, Layout, Result, bindings};

use crate::{
    ids::leave_parts,
    objects::{Object, keep, with_layout},
    shared::{answer, finish, read_text},
};

/// The last unix millisecond for which JavaScript has a date.
const LAST_DATE_MS: i64 = 8_640_000_000_000_000;

/// Stands for no datacenter and worker.
const NO_PARTS: i64 = -1;

fn keep_layout(layout: Layout) -> Result<usize> {
    if layout.ends_at() > LAST_DATE_MS {
        return Err(Error::invalid_argument(format!(
            "a layout must end before the last date of JavaScript, {LAST_DATE_MS} unix \
             milliseconds, got {}; use fewer bits for the time, or shorter ticks",
            layout.ends_at()
        )));
    }
    Ok(keep(Object::Layout(layout)))
}

/// Makes the layout that a text describes.
#[unsafe(no_mangle)]
pub extern "C" fn make_layout(length: usize) -> usize {
    finish(read_text(length, str::parse).and_then(keep_layout))
}

#[unsafe(no_mangle)]
pub extern "C" fn with_epoch_ms(layout: usize, epoch_ms: i64) -> usize {
    finish(with_layout(layout, |layout| layout.with_epoch_ms(epoch_ms)).and_then(keep_layout))
}

/// Changes the initial sequence to the one with the name in the text; `random` has a number of
/// starts, others have -1.
#[unsafe(no_mangle)]
pub extern "C" fn with_sequence(layout: usize, length: usize, starts: i64) -> usize {
    let changed = read_text(length, |name| {
        let sequence = bindings::sequence_of(name, u32::try_from(starts).ok());
        let sequence = sequence.ok_or_else(|| {
            Error::invalid_argument(
                "sequence must be 'zero', 'continuing' or ['random', how many starts]",
            )
        })?;
        with_layout(layout, |layout| layout.with_sequence(sequence))
    });
    finish(changed.map(|layout| keep(Object::Layout(layout))))
}

/// Describes a layout in JSON.
#[unsafe(no_mangle)]
pub extern "C" fn describe_layout(layout: usize) {
    finish(with_layout(layout, |layout| {
        answer(bindings::layout_json(layout));
        Ok(())
    }));
}

#[unsafe(no_mangle)]
pub extern "C" fn inspect_raw(layout: usize, raw: u64) {
    finish(with_layout(layout, |layout| {
        let read = layout.inspect(raw)?;
        leave_parts(read.unix_ms, read.node_id, read.sequence);
        Ok(())
    }));
}

#[unsafe(no_mangle)]
pub extern "C" fn pack(layout: usize, unix_ms: i64, node_id: u32, sequence: u32) -> u64 {
    finish(with_layout(layout, |layout| layout.pack(unix_ms, node_id, sequence)))
}

#[unsafe(no_mangle)]
pub extern "C" fn first_id_at(layout: usize, unix_ms: i64) -> u64 {
    finish(with_layout(layout, |layout| layout.first_id_at(unix_ms)))
}

#[unsafe(no_mangle)]
pub extern "C" fn last_id_at(layout: usize, unix_ms: i64) -> u64 {
    finish(with_layout(layout, |layout| layout.last_id_at(unix_ms)))
}

#[unsafe(no_mangle)]
pub extern "C" fn join_node(layout: usize, datacenter: u32, worker: u32) -> u32 {
    finish(with_layout(layout, |layout| layout.join_node(datacenter, worker)))
}

/// Returns the datacenter and the worker of a node id, in 32 bits each, or [`NO_PARTS`].
#[unsafe(no_mangle)]
pub extern "C" fn split_node(layout: usize, node_id: u32) -> i64 {
    finish(with_layout(layout, |layout| {
        if node_id > layout.max_node_id() {
            return Err(bindings::invalid_node(layout, node_id));
        }
        let parts = layout.split_node(node_id);
        Ok(parts.map_or(NO_PARTS, |(upper, lower)| i64::from(upper) << 32 | i64::from(lower)))
    }))
}
