//! The packed state: one atomic number that says which slots of which tick were claimed.
//!
//! `[SEALED: 1 bit | stamp | next slot]`. The stamp counts ticks since the epoch; a tick of
//! Randflake is a second. Slots are numbered node by node: for Randflake slot `i` is node
//! `nodes[i >> 17]`, sequence `i & 131071`. The next slot is 0 only while nothing has been issued,
//! and equals the number of slots when the tick is full.
//!
//! Claims are compare-and-swap, never fetch-and-add, which would carry into the stamp and run past
//! the seal. A claim writes a later position than the one it read, and succeeds only if the state
//! still holds what was read. So all claims of a state are in one order, each beginning where an
//! earlier one ended or later: I1 of ARCHITECTURE.md.

use crate::sync::{AtomicU64, Ordering};

const SEALED: u64 = 1 << 63;

/// A state that waits until its predecessor is sealed. No stamp and slot have all bits set:
/// `Layout::max_nodes` ensures that.
const PENDING: u64 = u64::MAX;

/// A point in the stream of slots: everything before it has been claimed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Position {
    /// Ticks since the epoch.
    pub(crate) stamp: u64,
    /// The next slot of that tick.
    pub(crate) slot: u64,
}

/// What a packed state held when it was loaded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Snapshot {
    /// Claims are possible from here on.
    Open(Position),
    /// The predecessor must be sealed first: see [`PackedState::open`].
    Pending,
    /// No claim will ever succeed again.
    Sealed,
}

#[derive(Debug)]
pub(crate) struct PackedState {
    bits: AtomicU64,
    slots: u64,
    /// Width of the next slot, which takes the values 0 to `slots`.
    slot_bits: u32,
    /// How many slots were claimed, less the next slot of the current tick; wraps. So a claim
    /// changes this only if it changes the tick.
    claimed_before: AtomicU64,
    /// The most that [`PackedState::claimed`] has returned.
    reported: AtomicU64,
}

// Relaxed unless a comment says otherwise: every claim is a read-modify-write of this one number,
// which sees the newest value whatever its ordering. What a claim means (nodes, window, key) is
// immutable and was published with the pointer to the Term. Only the seal says something about
// other memory: that the pointer to the next Term, or to none, can be loaded.
impl PackedState {
    /// Makes a state for this many slots in a tick, with nothing issued before `start`.
    pub(crate) fn new(slots: u64, start: u64) -> Self {
        Self { bits: AtomicU64::new(start << slot_bits(slots)), ..Self::pending(slots) }
    }

    /// Makes a state that claims nothing until [`PackedState::open`].
    pub(crate) fn pending(slots: u64) -> Self {
        Self {
            bits: AtomicU64::new(PENDING),
            slots,
            slot_bits: slot_bits(slots),
            claimed_before: AtomicU64::new(0),
            reported: AtomicU64::new(0),
        }
    }

    /// Slots of one tick.
    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    fn pack(&self, position: Position) -> u64 {
        position.stamp << self.slot_bits | position.slot
    }

    fn unpack(&self, bits: u64) -> Snapshot {
        match bits {
            PENDING => Snapshot::Pending,
            sealed if sealed & SEALED != 0 => Snapshot::Sealed,
            open => Snapshot::Open(self.position(open)),
        }
    }

    fn position(&self, bits: u64) -> Position {
        let slot_mask = (1 << self.slot_bits) - 1;
        Position { stamp: (bits & !SEALED) >> self.slot_bits, slot: bits & slot_mask }
    }

    pub(crate) fn load(&self) -> Snapshot {
        // Acquire: pairs with the release in `seal`. A thread that sees the seal sees the pointer
        // that was stored before it.
        self.unpack(self.bits.load(Ordering::Acquire))
    }

    /// Claims `count` slots from `first` on, over as many ticks as they fill. Fails if the state
    /// has changed since `seen` was loaded. `first` must not lie before `seen`.
    #[inline]
    pub(crate) fn claim(&self, seen: Position, first: Position, count: u64) -> bool {
        debug_assert!(count > 0 && first.slot < self.slots, "{first:?} + {count}");
        debug_assert!((first.stamp, first.slot) >= (seen.stamp, seen.slot), "I1: never back");
        let last = self.at(first, count - 1);
        let next = Position { slot: last.slot + 1, ..last };
        if !self.exchange(seen, next) {
            return false;
        }
        if next.stamp == seen.stamp {
            debug_assert_eq!(next.slot, seen.slot + count, "a claim in one tick leaves no gap");
        } else {
            // Ticks may begin at a slot other than 0, and a claim may fill several.
            let change = (count + seen.slot).wrapping_sub(next.slot);
            // Release: see `claimed`.
            self.claimed_before.fetch_add(change, Ordering::Release);
        }
        true
    }

    /// Claims the slot at `seen`, which must be within its tick, as [`PackedState::claim`] does.
    #[inline]
    pub(crate) fn claim_one(&self, seen: Position) -> bool {
        debug_assert!(seen.slot < self.slots, "{seen:?}");
        self.exchange(seen, Position { slot: seen.slot + 1, ..seen })
    }

    #[inline]
    fn exchange(&self, seen: Position, next: Position) -> bool {
        self.bits
            .compare_exchange(
                self.pack(seen),
                self.pack(next),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Returns how many slots were claimed, never less than it returned before. Slots of claims in
    /// progress may be missing. Where ticks begin at random slots, a claim in progress may make the
    /// count wrong by up to a tick, either way.
    pub(crate) fn claimed(&self) -> u64 {
        // Acquire: the state is loaded later, so it is at least as new as this count. When the
        // state leaves a tick, that tick's slots are added to the count after the state has
        // changed.
        let before = self.claimed_before.load(Ordering::Acquire);
        let claimed = match self.bits.load(Ordering::Relaxed) {
            PENDING => 0,
            // Below zero while the first change of a tick with a random start is in progress.
            bits => {
                before.wrapping_add(self.position(bits).slot).cast_signed().max(0).cast_unsigned()
            }
        };
        self.reported.fetch_max(claimed, Ordering::Relaxed).max(claimed)
    }

    /// Returns the position `offset` slots after `first`.
    pub(crate) fn at(&self, first: Position, offset: u64) -> Position {
        let slot = first.slot + offset;
        if slot < self.slots {
            return Position { slot, ..first }; // the usual case, without a slow division
        }
        Position { stamp: first.stamp + slot / self.slots, slot: slot % self.slots }
    }

    /// Ends all claims for good. Returns the first tick in which nothing was or will be issued.
    pub(crate) fn seal(&self) -> u64 {
        // Release: see `load`.
        let last = self.position(self.bits.fetch_or(SEALED, Ordering::Release));
        if last.slot == 0 { last.stamp } else { last.stamp + 1 }
    }

    /// Lets a pending state claim from `first` on. Among several callers, the first one counts.
    pub(crate) fn open(&self, first: u64) {
        // After the last tick of a lifetime the stamp may not fit: it would set the seal. In that
        // case, that tick is used up.
        let fits = first >> (63 - self.slot_bits) == 0;
        let first = if fits {
            Position { stamp: first, slot: 0 }
        } else {
            // Nothing is ever claimed here, so every caller may write this at any time.
            self.claimed_before.store(self.slots.wrapping_neg(), Ordering::Relaxed);
            Position { stamp: first - 1, slot: self.slots }
        };
        let bits = self.pack(first);
        // A failure means that another caller opened it, with the same value.
        let _ = self.bits.compare_exchange(PENDING, bits, Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn slot_bits(slots: u64) -> u32 {
    u64::BITS - slots.leading_zeros()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_state_is_never_claimed_again() {
        let state = PackedState::new(4, 7);
        let first = Position { stamp: 7, slot: 0 };
        assert!(state.claim(first, first, 3));
        assert_eq!(state.load(), Snapshot::Open(Position { stamp: 7, slot: 3 }));
        assert_eq!(state.seal(), 8);
        assert_eq!(state.load(), Snapshot::Sealed);
        let seen = Position { stamp: 7, slot: 3 };
        assert!(!state.claim(seen, seen, 1));
        assert!(!state.claim(seen, Position { stamp: 8, slot: 0 }, 1));
        state.open(9);
        assert_eq!((state.load(), state.seal()), (Snapshot::Sealed, 8));
    }

    #[test]
    fn an_unused_state_is_sealed_from_its_start() {
        assert_eq!(PackedState::new(4, 7).seal(), 7);
    }

    #[test]
    fn a_stamp_that_does_not_fit_leaves_the_last_tick_used_up() {
        for slots in [1, 2, 3, 4, 131_072, 3 << 40] {
            let end = 1 << (63 - slot_bits(slots));
            for (first, stamp, slot) in
                [(end - 2, end - 2, 0), (end - 1, end - 1, 0), (end, end - 1, slots)]
            {
                let state = PackedState::pending(slots);
                assert_eq!(state.load(), Snapshot::Pending);
                state.open(first);
                assert_eq!(state.load(), Snapshot::Open(Position { stamp, slot }), "{slots}");
                assert_eq!(state.seal(), first, "nothing was issued from there on");
            }
        }
    }
}
