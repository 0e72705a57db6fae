//! The constants of Randflake's own layout.

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

/// Most node ids of one generator: the stamp, one more than all slots of a second, and the seal
/// share 64 bits. Some layouts have room for fewer: [`Layout::max_nodes`](crate::Layout::max_nodes).
pub const MAX_NODES: usize = 16_384;
