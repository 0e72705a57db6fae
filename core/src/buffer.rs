//! A thread's own buffer: ids that were claimed and encrypted ahead, a group at a time, for single
//! calls.
//!
//! It has a few places in thread-local memory, each for one Term; no other thread can reach them.
//! An id in a place is claimed for good, so it is handed out at most once. The caller decides
//! whether it may be handed out *now*. A thread that ends leaves the rest of its groups unused.
//!
//! A signal handler, or a clock that calls the generator, can call while a call of the same thread
//! is running. A place that a call uses is *busy*: the nested call claims a single id.
//!
//! A buffered id is returned only if all of this holds; `generate.rs` checks it:
//!
//! - **In time.** Its Term is the current one, and `clock <= stamp <= clock + max_drift`. The cheap
//!   clock may be some milliseconds late, by which an id may be older than the second it is
//!   returned in, never younger. Where that clock says no, the precise one decides.
//! - **Close, replacement.** The pointer is compared first. A call that loaded it before the change
//!   returns an id that was claimed before the seal, and the second that the seal returned covers
//!   that claim. The end of a lease only rises, so a stamp that was inside the window stays inside.
//! - **Order.** A call that reads the packed state then drops what its place has of an older stamp.
//!   It looks for its place only after that: what a nested call leaves in a place that it does not
//!   know was claimed later, and its own claim fails.
//! - **Nested calls.** A call that finds its place busy claims one id alone, and takes the place
//!   away from its Term, since its own id may have a later stamp. While a call uses a place, a
//!   nested one assigns none. A nested call that *fails* allocates memory for its error: in a
//!   handler that has interrupted an allocation, it may wait for ever.
//! - **Fork.** The fork id is compared after an id has left its buffer, so nothing of a child's
//!   copy is returned. A call that claims compares it before and after.
//! - **Rate.** The rule sees the position with the ids that are left taken back. So one thread gets
//!   every id of a second in order, batches among single calls, as if there were no buffer. With
//!   several threads, each that stops leaves at most the rest of its last group of a second unused.

use std::{
    cell::Cell,
    marker::PhantomData,
    sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence},
};

use crate::Lease;

/// Ids of one group: enough to fill a vector unit, and for two threads that claim groups of one
/// generator to seldom collide; few enough that little is left unused.
pub(crate) const GROUP: usize = if cfg!(loom) { 2 } else { 128 };

/// How many generators of a thread can hold a group each.
const PLACES: usize = if cfg!(loom) { 2 } else { 4 };

type Buffer = [Place; PLACES];

// Every thread that makes ids pays for this memory.
const _: () = assert!(size_of::<Buffer>() <= 6 * 1024);

// All zero, so a thread that makes no ids does not touch it. Nothing is dropped, so it can be used
// until the thread has ended.
#[cfg(not(loom))]
thread_local! { static BUFFER: Buffer = const { empty() }; }
#[cfg(loom)]
loom::thread_local! { static BUFFER: Buffer = empty(); }

const fn empty() -> Buffer {
    [const { Place::new() }; PLACES]
}

/// A group of ids of one Term and one stamp.
// Atomics where a nested call reads or writes: it is on the same thread, so relaxed atomics with
// compiler fences are enough, and cost nothing.
#[repr(align(64))]
struct Place {
    busy: AtomicBool,
    /// The number of the Term; 0 if there is none.
    term: AtomicU64,
    // From here on: read and written only while `busy`.
    stamp: Cell<u64>,
    /// How many ids were claimed for the group.
    size: Cell<usize>,
    /// The ids from here to the end of `ids` are left.
    next: Cell<usize>,
    ids: [Cell<i64>; GROUP],
}

impl Place {
    const fn new() -> Self {
        Self {
            busy: AtomicBool::new(false),
            term: AtomicU64::new(0),
            stamp: Cell::new(0),
            size: Cell::new(0),
            next: Cell::new(0),
            ids: [const { Cell::new(0) }; GROUP],
        }
    }

    #[inline]
    fn is_of(&self, term: u64) -> bool {
        self.term.load(Ordering::Relaxed) == term
    }

    /// Makes the place busy. If it already is, this call is nested in another one.
    #[inline]
    fn enter(&self) -> bool {
        if self.busy.load(Ordering::Relaxed) {
            return false;
        }
        self.busy.store(true, Ordering::Relaxed);
        // The rest of the place is touched after this and before `leave`.
        compiler_fence(Ordering::SeqCst);
        true
    }

    #[inline]
    fn leave(&self) {
        compiler_fence(Ordering::SeqCst);
        self.busy.store(false, Ordering::Relaxed);
    }

    /// Removes and returns the next id.
    #[inline]
    fn pop(&self) -> Option<i64> {
        let next = self.next.get();
        let id = self.ids.get(next)?.get();
        self.next.set(next + 1);
        Some(id)
    }
}

/// Removes and returns the next id of a Term, if its stamp is `tick` or up to `max_drift` later.
#[inline]
pub(crate) fn pop(term: u64, tick: u64, max_drift: u64) -> Option<i64> {
    BUFFER.with(|buffer| {
        let mut place = &buffer[home_of(term)];
        loop {
            if !place.enter() {
                return None;
            }
            // Compared while it is busy: no call can give it away now. If the stamp has passed, the
            // difference wraps and is too large.
            let is_own = place.is_of(term);
            let is_in_time = is_own && place.stamp.get().wrapping_sub(tick) <= max_drift;
            let id = if is_in_time { place.pop() } else { None };
            place.leave();
            if is_own {
                return id;
            }
            place = &buffer[find(buffer, term)?];
        }
    })
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the remainder is small")]
fn home_of(term: u64) -> usize {
    (term % PLACES as u64) as usize
}

/// Returns the places in the order in which a Term looks for one.
fn places_for(term: u64) -> impl Iterator<Item = usize> {
    (0..PLACES).map(move |offset| (home_of(term) + offset) % PLACES)
}

/// Returns the place of a Term, which has at most one.
#[cold]
#[inline(never)]
fn find(buffer: &Buffer, term: u64) -> Option<usize> {
    places_for(term).find(|index| buffer[*index].is_of(term))
}

/// Makes the place of a Term busy until the returned value is dropped. Returns `None` if the Term
/// has no place, or if this call is nested in another one.
pub(crate) fn take(term: u64) -> Option<PlaceGuard> {
    BUFFER.with(|buffer| {
        let index = find(buffer, term)?;
        let place = &buffer[index];
        if !place.enter() {
            // This call may return an id with a later stamp than the ids in the place, and none of
            // those may follow it. The call that uses the place can finish, since it began earlier.
            place.term.store(0, Ordering::Relaxed);
            return None;
        }
        let taken = PlaceGuard { index, not_send: PhantomData };
        // Otherwise an intervening call has given the place away.
        place.is_of(term).then_some(taken)
    })
}

/// Gives a Term a place for its next groups, if it has none and one is free: a place whose ids are
/// of a tick before `now`. `stamp` is the stamp of the single id that was just claimed.
pub(crate) fn assign(term: u64, stamp: u64, now: u64) {
    BUFFER.with(|buffer| {
        // A call that this one interrupts may be assigning that place to the same Term.
        if buffer.iter().any(|place| place.busy.load(Ordering::Relaxed)) {
            return;
        }
        for index in places_for(term) {
            let place = &buffer[index];
            if !place.enter() {
                return;
            }
            // Only checked now: a call before `enter` may have assigned a place to this Term. A
            // call after it assigns none.
            if find(buffer, term).is_some() {
                return place.leave();
            }
            // A group of an injected clock that is far ahead does not stay in use forever.
            if place.is_of(0) || place.stamp.get().wrapping_sub(now) > u64::from(Lease::MAX_DRIFT) {
                place.next.set(GROUP);
                place.stamp.set(stamp);
                place.size.set(1);
                place.term.store(term, Ordering::Relaxed);
                return place.leave();
            }
            place.leave();
        }
    });
}

/// A place that a call uses.
pub(crate) struct PlaceGuard {
    index: usize,
    /// Another thread has another buffer.
    not_send: PhantomData<*const ()>,
}

impl PlaceGuard {
    #[inline]
    fn with<R>(&self, use_place: impl FnOnce(&Place) -> R) -> R {
        BUFFER.with(|buffer| use_place(&buffer[self.index]))
    }

    /// Returns how many ids of this stamp are left.
    pub(crate) fn left_of(&self, stamp: u64) -> usize {
        self.with(|place| if place.stamp.get() == stamp { GROUP - place.next.get() } else { 0 })
    }

    /// Fills `ids` with the ids that are left, which must be as many.
    pub(crate) fn pop_into(&mut self, ids: &mut [i64]) {
        self.with(|place| ids.fill_with(|| place.pop().expect("so many are left")));
    }

    /// Returns the size of the next group: one id for the first call of a tick, then twice as many
    /// each time. So a thread that needs few ids leaves few unused.
    pub(crate) fn next_size(&self, stamp: u64) -> usize {
        self.with(
            |place| {
                if place.stamp.get() == stamp { GROUP.min(2 * place.size.get()) } else { 1 }
            },
        )
    }

    /// Stores the rest of a group, in the order in which it is handed out; the caller hands out the
    /// first id. Drops what was left of the last group.
    pub(crate) fn put(&mut self, stamp: u64, rest: &[i64]) {
        self.with(|place| {
            let next = GROUP - rest.len();
            for (stored, id) in place.ids[next..].iter().zip(rest) {
                stored.set(*id);
            }
            place.stamp.set(stamp);
            place.size.set(rest.len() + 1);
            place.next.set(next);
        });
    }

    /// Drops what is left of another stamp: after an id of a later tick, this thread hands out none
    /// of an earlier one.
    pub(crate) fn keep_only(&mut self, stamp: u64) {
        self.with(|place| {
            if place.stamp.get() != stamp {
                place.next.set(GROUP);
            }
        });
    }
}

impl Drop for PlaceGuard {
    fn drop(&mut self) {
        self.with(Place::leave);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The worst that a nested call can do: both calls assign.
    #[test]
    fn a_term_has_at_most_one_place() {
        let (term, now) = (u64::MAX, 1_000);
        for _ in 0..2 {
            assign(term, now, now);
        }
        let places = BUFFER.with(|buffer| buffer.iter().filter(|place| place.is_of(term)).count());
        assert_eq!(places, 1);
    }

    /// The interrupted call may be assigning the busy place to the same Term, since the places
    /// before it were in use; by now they may be free.
    #[test]
    fn no_place_is_assigned_while_one_is_busy() {
        let (term, now) = (u64::MAX, 1_000);
        BUFFER.with(|buffer| {
            for busy in buffer {
                assert!(busy.enter());
                assign(term, now, now);
                assert!(find(buffer, term).is_none());
                busy.leave();
            }
        });
    }
}
