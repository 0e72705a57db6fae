//! Packs a tick, a node id and a sequence into a raw id, and numbers the slots of a tick.
//!
//! A tick begins at slot 0; or, if the sequence continues, where the last tick ended, and at 0 once
//! it has wrapped: so a tick ends where it wraps, and ids rise. A random start adds the same number
//! to all sequences of a tick, drawn from the stamp and the seed of the process, so that generators
//! that share a state agree. A fork wipes the seed, so two children of one parent have two.

use std::fmt;

use super::{Layout, Sequence};
use crate::Error;

impl Layout {
    /// Packs a tick, a node id and a sequence, all within their widths.
    #[inline]
    pub(crate) const fn pack_fields(&self, stamp: u64, node_id: u32, sequence: u64) -> u64 {
        self.time.put(stamp) | self.node.put(node_id as u64) | self.sequence.put(sequence)
    }

    /// Returns what the next sequence adds to a raw id.
    #[inline]
    pub(crate) const fn sequence_step(&self) -> u64 {
        self.sequence.put(1)
    }

    /// Unpacks a raw id into tick, node id and sequence.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "at most 32 bits each")]
    pub(crate) const fn unpack_fields(&self, raw: u64) -> (u64, u32, u32) {
        (self.time.get(raw), self.node.get(raw) as u32, self.sequence.get(raw) as u32)
    }

    /// Returns how many slots these nodes have in a tick.
    pub(crate) fn slots_of(&self, nodes: &[u32]) -> u64 {
        nodes.len() as u64 * self.ids_per_node()
    }

    /// Returns the index of a slot's node in the list of nodes, and the zero-based index of the slot
    /// within that node and tick.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "far below the size of memory")]
    pub(crate) const fn node_and_count(&self, slot: u64) -> (usize, u64) {
        match self.starts {
            Sequence::Random(_) => {
                let per_node = self.ids_per_node();
                ((slot / per_node) as usize, slot % per_node)
            }
            // A power of two: a shift is faster than a division.
            Sequence::Zero | Sequence::Continuing => {
                ((slot >> self.sequence.bits) as usize, slot & self.sequence.max())
            }
        }
    }

    /// Returns the first slot of a tick, if the tick before had `slots` slots and used those before
    /// `next`.
    #[inline]
    pub(crate) const fn first_slot(&self, next: u64, slots: u64) -> u64 {
        match self.starts {
            Sequence::Continuing if next < slots => next,
            _ => 0,
        }
    }

    /// Returns the initial sequence of each node in a tick.
    #[inline]
    pub(crate) const fn first_sequence(&self, stamp: u64, seed: u64) -> u64 {
        match self.starts {
            Sequence::Random(starts) => ((mix(seed ^ stamp) >> 32) * starts as u64) >> 32,
            Sequence::Zero | Sequence::Continuing => 0,
        }
    }
}

/// Makes the error for an invalid sequence of a layout.
#[cold]
#[must_use]
pub fn invalid_sequence(layout: &Layout, got: impl fmt::Display) -> Error {
    Error::invalid_argument(format!(
        "a sequence of the layout {} must be an integer between 0 and {}, got {got}",
        layout.name(),
        layout.max_sequence()
    ))
}

/// Spreads a number over 64 bits: the finalizer of `SplitMix64` (Steele, Lea and Flood, 2014).
const fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}
