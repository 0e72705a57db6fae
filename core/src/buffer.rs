//! Ids that were claimed and encrypted ahead, a group at a time, for single calls.
//!
//! A generator has a few magazines, which its threads share out among themselves. Whoever finds
//! one taken does without: nobody waits. An id in a magazine was claimed for good, so it is handed
//! out once or never; whether it may be handed out *now* is for the caller to say.

use std::sync::atomic;

use crate::{
    sync::{AtomicBool, AtomicUsize, Ordering, renumber_thread, thread_number},
    term::Term,
};

/// Ids of one group: what one round of the widest vector unit encrypts.
pub(crate) const GROUP: usize = if cfg!(loom) { 2 } else { 32 };

/// Magazines of a generator: so many threads at once have one each.
const MAGAZINES: usize = if cfg!(loom) { 2 } else { 8 };

/// The magazines of one generator.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    magazines: [Magazine; MAGAZINES],
}

/// A group of ids of one Term and one stamp.
// On cache lines of its own; two of them, since CPUs fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Magazine {
    taken: AtomicBool,
    // From here on: read and written only by whoever has taken the magazine, so `taken` orders
    // all of it. Atomics, since that takes no unsafe code and costs nothing; loom sees one.
    left: AtomicUsize,
    /// The number of the thread that filled it.
    filled_by: atomic::AtomicU64,
    term: atomic::AtomicPtr<Term>,
    stamp: atomic::AtomicU64,
    /// How many the group was claimed with.
    size: atomic::AtomicU32,
    /// The next one is the last of those that are left.
    ids: [atomic::AtomicI64; GROUP],
}

/// A magazine while it is taken.
#[derive(Debug)]
pub(crate) struct Taken<'a>(&'a Magazine);

impl Buffer {
    /// Takes the magazine of this thread, unless another thread has it; then this thread goes to
    /// another one with its next call.
    #[inline]
    pub(crate) fn take(&self) -> Option<Taken<'_>> {
        #[allow(clippy::cast_possible_truncation, reason = "only spreads threads")]
        let taken = self.magazines[thread_number() as usize % MAGAZINES].take();
        if taken.is_none() {
            renumber_thread();
        }
        taken
    }

    /// Takes the magazines one after the other, but for those that other threads have.
    pub(crate) fn each(&self) -> impl Iterator<Item = Taken<'_>> {
        self.magazines.iter().filter_map(Magazine::take)
    }
}

impl Magazine {
    #[inline]
    fn take(&self) -> Option<Taken<'_>> {
        // Acquire: pairs with the release in `drop`, so what the last owner wrote is seen.
        (!self.taken.swap(true, Ordering::Acquire)).then(|| Taken(self))
    }
}

impl Taken<'_> {
    /// Tells whether this thread filled it and has not been to another magazine since: then no id
    /// in it is older than one that this thread was given.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        self.0.filled_by.load(Ordering::Relaxed) == thread_number()
    }

    /// Returns how many ids of this Term are left, and their stamp.
    #[inline]
    pub(crate) fn left_of(&self, term: &Term) -> Option<(usize, u64)> {
        let left = self.0.left.load(Ordering::Relaxed);
        let same_term = std::ptr::eq(self.0.term.load(Ordering::Relaxed), term);
        (left > 0 && same_term).then(|| (left, self.0.stamp.load(Ordering::Relaxed)))
    }

    /// Hands out the next of the ids that are left.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<i64> {
        let next = self.0.left.load(Ordering::Relaxed).checked_sub(1)?;
        // Taken out before it is handed out.
        self.0.left.store(next, Ordering::Relaxed);
        Some(self.0.ids[next].load(Ordering::Relaxed))
    }

    /// Returns how many ids to claim at most for the next group: one for the first call of a
    /// second, then ever more. So a thread that needs few ids claims few, and leaves few behind.
    pub(crate) fn next_size(&self, term: &Term, stamp: u64) -> usize {
        let same_term = std::ptr::eq(self.0.term.load(Ordering::Relaxed), term);
        if same_term && self.0.stamp.load(Ordering::Relaxed) == stamp {
            GROUP.min(2 * self.0.size.load(Ordering::Relaxed) as usize)
        } else {
            1
        }
    }

    /// Puts in what is left of a group of at most [`GROUP`] ids, in the order of their hand-out,
    /// after the first was handed out. What was left of the last group is forgotten.
    pub(crate) fn put(&mut self, term: &Term, stamp: u64, ids: &[i64]) {
        let count = ids.len();
        let size = u32::try_from(count + 1).expect("at most GROUP");
        self.0.size.store(size, Ordering::Relaxed);
        self.0.filled_by.store(thread_number(), Ordering::Relaxed);
        self.0.term.store(std::ptr::from_ref(term).cast_mut(), Ordering::Relaxed);
        self.0.stamp.store(stamp, Ordering::Relaxed);
        for (place, id) in self.0.ids[..count].iter().rev().zip(ids) {
            place.store(*id, Ordering::Relaxed);
        }
        self.0.left.store(count, Ordering::Relaxed);
    }

    /// Forgets what is left of another stamp: after an id of a later second, none of an earlier
    /// one is handed out here.
    pub(crate) fn keep_only(&mut self, stamp: u64) {
        if self.0.stamp.load(Ordering::Relaxed) != stamp {
            self.0.left.store(0, Ordering::Relaxed);
        }
    }
}

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: see `Magazine::take`.
        self.0.taken.store(false, Ordering::Release);
    }
}
