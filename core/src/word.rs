//! The atomic state word: which slots of which tick were claimed.
//!
//! `[SEALED: 1 bit | stamp | next slot]`, where the stamp is ticks since the epoch (for Randflake
//! they are seconds) and slots are numbered node by node: for Randflake slot `i` is node
//! `nodes[i >> 17]`, sequence `i & 131071`. The next slot is 0 only while nothing was issued, and
//! equals the number of slots when the tick is full.

use crate::sync::{AtomicU64, Ordering};

const SEALED: u64 = 1 << 63;

/// A word that waits for its predecessor to be sealed. No stamp and slot have all bits set:
/// `Layout::max_nodes` sees to it.
const UNOPENED: u64 = u64::MAX;

/// A point in the stream of slots: everything before it has been claimed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Position {
    /// Ticks since the epoch.
    pub(crate) stamp: u64,
    /// The next slot of that tick.
    pub(crate) slot: u64,
}

/// What a word held when it was read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reading {
    /// Claims are possible from here on.
    Open(Position),
    /// The predecessor has to be sealed first: see [`Word::open`].
    Unopened,
    /// No claim will ever succeed again.
    Sealed,
}

#[derive(Debug)]
pub(crate) struct Word {
    bits: AtomicU64,
    slots: u64,
    /// Width of the next slot, which takes the values 0 to `slots`.
    slot_bits: u32,
}

// Relaxed where nothing else is said: every claim is a read-modify-write of this one word, and
// those see the newest value whatever their ordering. What a claim means (nodes, window, key) is
// immutable and was published with the pointer to the Term. Only the seal says something about
// other memory: that the pointer to the next Term, or to none, is there to be loaded.
impl Word {
    /// Makes a word for so many slots in a tick, with nothing issued before `start`.
    pub(crate) fn new(slots: u64, start: u64) -> Self {
        Self { bits: AtomicU64::new(start << slot_bits(slots)), ..Self::unopened(slots) }
    }

    /// Makes a word that claims nothing until [`Word::open`].
    pub(crate) fn unopened(slots: u64) -> Self {
        Self { bits: AtomicU64::new(UNOPENED), slots, slot_bits: slot_bits(slots) }
    }

    /// Slots of one tick.
    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    fn pack(&self, position: Position) -> u64 {
        position.stamp << self.slot_bits | position.slot
    }

    fn unpack(&self, bits: u64) -> Reading {
        match bits {
            UNOPENED => Reading::Unopened,
            sealed if sealed & SEALED != 0 => Reading::Sealed,
            open => Reading::Open(self.position(open)),
        }
    }

    fn position(&self, bits: u64) -> Position {
        let slot_mask = (1 << self.slot_bits) - 1;
        Position { stamp: (bits & !SEALED) >> self.slot_bits, slot: bits & slot_mask }
    }

    pub(crate) fn read(&self) -> Reading {
        // Acquire: pairs with the release in `seal`; whoever sees it sees the pointer stored before.
        self.unpack(self.bits.load(Ordering::Acquire))
    }

    /// Claims `count` slots from `first` on, over as many ticks as they fill, unless the word
    /// has changed since `seen` was read. `first` must not lie before `seen`.
    #[inline]
    pub(crate) fn claim(&self, seen: Position, first: Position, count: u64) -> bool {
        debug_assert!(count > 0 && first.slot < self.slots, "{first:?} + {count}");
        debug_assert!((first.stamp, first.slot) >= (seen.stamp, seen.slot), "I1: never back");
        let last = self.at(first, count - 1);
        let next = Position { slot: last.slot + 1, ..last };
        self.bits
            .compare_exchange(
                self.pack(seen),
                self.pack(next),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Returns the position `offset` slots after `first`.
    pub(crate) fn at(&self, first: Position, offset: u64) -> Position {
        let slot = first.slot + offset;
        if slot < self.slots {
            return Position { slot, ..first }; // mostly, and a division takes its time
        }
        Position { stamp: first.stamp + slot / self.slots, slot: slot % self.slots }
    }

    /// Ends all claims for good and returns the first tick in which nothing was and nothing
    /// will be issued.
    pub(crate) fn seal(&self) -> u64 {
        // Release: see `read`.
        let last = self.position(self.bits.fetch_or(SEALED, Ordering::Release));
        if last.slot == 0 { last.stamp } else { last.stamp + 1 }
    }

    /// Lets an unopened word claim from `first` on. Of several callers the first one counts.
    pub(crate) fn open(&self, first: u64) {
        // After the last tick of a lifetime the stamp may have no room: it would be the seal. Then
        // that tick is used up.
        let has_room = first >> (63 - self.slot_bits) == 0;
        let first = if has_room {
            Position { stamp: first, slot: 0 }
        } else {
            Position { stamp: first - 1, slot: self.slots }
        };
        let bits = self.pack(first);
        // A failure means that another caller opened it, with the same value.
        let _ = self.bits.compare_exchange(UNOPENED, bits, Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn slot_bits(slots: u64) -> u32 {
    u64::BITS - slots.leading_zeros()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_word_is_never_claimed_again() {
        let word = Word::new(4, 7);
        let first = Position { stamp: 7, slot: 0 };
        assert!(word.claim(first, first, 3));
        assert_eq!(word.read(), Reading::Open(Position { stamp: 7, slot: 3 }));
        assert_eq!(word.seal(), 8);
        assert_eq!(word.read(), Reading::Sealed);
        let seen = Position { stamp: 7, slot: 3 };
        assert!(!word.claim(seen, seen, 1));
        assert!(!word.claim(seen, Position { stamp: 8, slot: 0 }, 1));
        word.open(9);
        assert_eq!((word.read(), word.seal()), (Reading::Sealed, 8));
    }

    #[test]
    fn a_word_of_which_nothing_was_claimed_is_sealed_from_its_beginning() {
        assert_eq!(Word::new(4, 7).seal(), 7);
    }

    #[test]
    fn what_follows_the_last_stamp_that_a_word_has_room_for_is_used_up() {
        for slots in [1, 2, 3, 4, 131_072, 3 << 40] {
            let end = 1 << (63 - slot_bits(slots));
            for (first, stamp, slot) in
                [(end - 2, end - 2, 0), (end - 1, end - 1, 0), (end, end - 1, slots)]
            {
                let word = Word::unopened(slots);
                assert_eq!(word.read(), Reading::Unopened);
                word.open(first);
                assert_eq!(word.read(), Reading::Open(Position { stamp, slot }), "{slots}");
                assert_eq!(word.seal(), first, "nothing was issued from there on");
            }
        }
    }
}
