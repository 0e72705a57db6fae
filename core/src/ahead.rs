//! A thread's own ids for the slots that come next, for generators whose ids are claimed one by
//! one: a vector unit encrypts many in little more time than one.
//!
//! Nothing here is claimed. An id is its slot, packed and encrypted, no matter who claims the slot;
//! the caller has claimed it before it asks.
//!
//! A signal handler can call while a call of the same thread is running: then the ids are *busy*,
//! and the nested call encrypts its one id by itself.

use std::{
    cell::Cell,
    sync::atomic::{Ordering, compiler_fence},
};

use crate::{buffer::GROUP, packed_state::Position};

// All zero, so a thread that does not use it does not touch it. Nothing is dropped, so it can be
// used until the thread has ended.
#[cfg(not(loom))]
thread_local! { static AHEAD: Ahead = const { Ahead::new() }; }
#[cfg(loom)]
loom::thread_local! { static AHEAD: Ahead = Ahead::new(); }

struct Ahead {
    busy: Cell<bool>,
    /// The number of the Term; 0 if there is none.
    term: Cell<u64>,
    first: Cell<Position>,
    /// How many ids there are, from `first` on.
    size: Cell<usize>,
    ids: [Cell<i64>; GROUP],
}

impl Ahead {
    const fn new() -> Self {
        Self {
            busy: Cell::new(false),
            term: Cell::new(0),
            first: Cell::new(Position { stamp: 0, slot: 0 }),
            size: Cell::new(0),
            ids: [const { Cell::new(0) }; GROUP],
        }
    }

    #[inline]
    fn find(&self, term: u64, at: Position) -> Option<i64> {
        let first = self.first.get();
        if self.term.get() != term || first.stamp != at.stamp {
            return None;
        }
        let offset = usize::try_from(at.slot.checked_sub(first.slot)?).ok()?;
        (offset < self.size.get()).then(|| self.ids[offset].get())
    }

    /// Encrypts one id for the first slot of a stamp, then twice as many each time.
    #[cold]
    #[inline(never)]
    fn fill(&self, term: u64, at: Position, left: u64, encrypt: impl FnOnce(&mut [i64])) -> i64 {
        let goes_on = self.term.get() == term && self.first.get().stamp == at.stamp;
        let size = if goes_on { GROUP.min(2 * self.size.get()) } else { 1 };
        let size = usize::try_from(left).map_or(size, |left| size.min(left));
        let mut group = [0; GROUP];
        let group = &mut group[..size];
        encrypt(group);
        for (stored, id) in self.ids.iter().zip(&*group) {
            stored.set(*id);
        }
        self.term.set(term);
        self.first.set(at);
        self.size.set(size);
        group[0]
    }
}

/// Returns the id of a slot of a Term. The tick has `left` slots from there on; `encrypt` makes the
/// ids of as many of them as requested.
#[inline]
pub(crate) fn id_of(term: u64, at: Position, left: u64, encrypt: impl FnOnce(&mut [i64])) -> i64 {
    AHEAD.with(|ahead| {
        if ahead.busy.replace(true) {
            let mut id = [0];
            encrypt(&mut id);
            return id[0];
        }
        // The rest is touched only while it is busy.
        compiler_fence(Ordering::SeqCst);
        let id = ahead.find(term, at).unwrap_or_else(|| ahead.fill(term, at, left, encrypt));
        compiler_fence(Ordering::SeqCst);
        ahead.busy.set(false);
        id
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Asks for an id that reveals its slot, and returns how many were encrypted for it.
    fn asked(term: u64, stamp: u64, slot: u64, slots: u64) -> usize {
        let of = |slot: u64| (term * 1_000_000 + stamp * 1_000 + slot).cast_signed();
        let at = Position { stamp, slot };
        let mut encrypted = 0;
        let id = id_of(term, at, slots - slot, |ids| {
            assert!(!ids.is_empty() && slot + ids.len() as u64 <= slots, "beyond the tick");
            encrypted = ids.len();
            for (id, slot) in ids.iter_mut().zip(slot..) {
                *id = of(slot);
            }
        });
        assert_eq!(id, of(slot));
        encrypted
    }

    #[test]
    fn each_slot_has_its_own_id() {
        for (term, stamp) in [(1, 1), (2, 1), (1, 1), (1, 2), (1, 1)] {
            // From the second on, the ids that were made ahead are of the previous one.
            for slot in [1, 2, 3, 0, 7, 4, 900, 6, 5, 300, 299, 301, 999, 0, 1] {
                asked(term, stamp, slot, 1000);
            }
        }
    }

    #[test]
    fn twice_as_many_are_encrypted_each_time() {
        // No other test has these: a thread may run several.
        for (term, stamp) in [(11, 1), (12, 1), (12, 2)] {
            let encrypted: Vec<_> = (0..500).map(|slot| asked(term, stamp, slot, 500)).collect();
            let some: Vec<_> = encrypted.into_iter().filter(|&count| count > 0).collect();
            assert_eq!(some, [1, 2, 4, 8, 16, 32, 64, GROUP, GROUP, 117]);
        }
    }

    #[test]
    fn a_call_in_the_middle_of_another_has_its_own_id() {
        asked(1, 1, 0, 1000);
        let at = Position { stamp: 1, slot: 1 };
        let id = id_of(1, at, 999, |ids| {
            asked(1, 1, 500, 1000);
            asked(2, 7, 1, 1000);
            for (id, slot) in ids.iter_mut().zip(1..) {
                *id = slot;
            }
        });
        assert_eq!(id, 1);
        assert!(!AHEAD.with(|ahead| ahead.busy.get()));
    }
}
