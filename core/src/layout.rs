//! The wire format: the only home of the epoch, the bit widths and the bounds.
//!
//! ```text
//! raw = (unix_seconds - 1730000000) << 34 | node_id << 17 | sequence      30, 17, 17 bits
//! ```

use crate::{Error, ErrorKind, Parts};

/// Unix second of timestamp 0: 2024-10-27T03:33:20Z.
pub const EPOCH: i64 = 1_730_000_000;

/// Bits of the timestamp, of the node id and of the sequence; together 64.
pub const TIMESTAMP_BITS: u32 = 30;
/// Bits of the node id.
pub const NODE_BITS: u32 = 17;
/// Bits of the sequence.
pub const SEQUENCE_BITS: u32 = 17;

/// Largest node id: 131 071.
pub const MAX_NODE_ID: u32 = (1 << NODE_BITS) - 1;
/// Largest sequence: 131 071. A node issues at most `MAX_SEQUENCE + 1` ids a second.
pub const MAX_SEQUENCE: u32 = (1 << SEQUENCE_BITS) - 1;
/// First unix second that no id can carry: 2058-11-05T17:10:24Z.
pub const LIFETIME_END: i64 = EPOCH + (1 << TIMESTAMP_BITS);

/// Seconds of the lifetime, the bound of every stamp.
pub(crate) const LIFETIME: u64 = 1 << TIMESTAMP_BITS;
/// Ids that one node has in a second.
pub(crate) const IDS_PER_NODE: u64 = 1 << SEQUENCE_BITS;

/// Most node ids of one generator: the stamp, one more than all slots of a second, and the seal
/// share a 64-bit word.
pub const MAX_NODES: usize = 16_384;

const _: () = {
    assert!(TIMESTAMP_BITS + NODE_BITS + SEQUENCE_BITS == 64);
    let slots = MAX_NODES as u64 * IDS_PER_NODE;
    let slot_bits = u64::BITS - slots.leading_zeros();
    assert!(TIMESTAMP_BITS + slot_bits < 64, "stamp, slots and seal fit in the state word");
};

/// Packs seconds since the epoch, a node id and a sequence, all within their widths.
pub(crate) const fn pack(stamp: u64, node_id: u32, sequence: u32) -> u64 {
    stamp << (NODE_BITS + SEQUENCE_BITS) | (node_id as u64) << SEQUENCE_BITS | sequence as u64
}

/// Returns the index of a slot's node in the list of nodes, and its sequence.
#[allow(clippy::cast_possible_truncation, reason = "masked, and far below the size of memory")]
pub(crate) const fn node_and_sequence(slot: u64) -> (usize, u32) {
    ((slot >> SEQUENCE_BITS) as usize, slot as u32 & MAX_SEQUENCE)
}

/// Takes a raw value apart. Every 64-bit value has parts.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "masked fields")]
pub(crate) const fn unpack(raw: u64) -> Parts {
    Parts {
        timestamp: EPOCH + (raw >> (NODE_BITS + SEQUENCE_BITS)) as i64,
        node_id: (raw >> SEQUENCE_BITS) as u32 & MAX_NODE_ID,
        sequence: raw as u32 & MAX_SEQUENCE,
    }
}

/// Turns a unix second into seconds since the epoch.
pub(crate) fn stamp_of(unix_second: i64) -> Option<u64> {
    unix_second.checked_sub(EPOCH).and_then(|seconds| u64::try_from(seconds).ok())
}

/// Turns seconds since the epoch, at most a little over the lifetime, into a unix second.
#[allow(clippy::cast_possible_wrap, reason = "callers pass seconds of about the lifetime")]
pub(crate) const fn unix_second_of(stamp: u64) -> i64 {
    EPOCH + stamp as i64
}

/// Checks a list of node ids and sorts it.
pub(crate) fn checked_nodes(node_ids: &[u32]) -> Result<Box<[u32]>, Error> {
    if node_ids.is_empty() {
        return Err(Error::new(
            ErrorKind::InvalidNode,
            format!("a generator needs at least one node id between 0 and {MAX_NODE_ID}"),
        ));
    }
    if node_ids.len() > MAX_NODES {
        return Err(Error::too_many_nodes(node_ids.len()));
    }
    let mut nodes: Box<[u32]> = node_ids.into();
    nodes.sort_unstable();
    if let Some(&largest) = nodes.last().filter(|&&node| node > MAX_NODE_ID) {
        return Err(Error::invalid_node(largest));
    }
    if let Some([twice, _]) = nodes.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::new(
            ErrorKind::InvalidNode,
            format!("node id {twice} is listed twice; list each node id once"),
        ));
    }
    Ok(nodes)
}
