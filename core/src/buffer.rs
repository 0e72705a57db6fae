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

/// Ids of one group: enough to fill vector units, and that few stay behind.
pub(crate) const GROUP: usize = if cfg!(loom) { 2 } else { 64 };

/// Magazines of a generator: so many threads at once have one each.
const MAGAZINES: usize = if cfg!(loom) { 2 } else { 8 };

/// The magazines of one generator.
#[derive(Debug, Default)]
pub struct Buffer {
    magazines: [Magazine; MAGAZINES],
}

/// A group of ids of one Term and one stamp.
// On cache lines of its own; two of them, since CPUs fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Magazine {
    taken: AtomicBool,
    // From here on: read and written only by whoever has taken the magazine, so `taken` orders
    // all of it. Atomics, since that takes no unsafe code and costs nothing; loom sees one.
    next: AtomicUsize,
    /// The number of the thread that filled it.
    filled_by: atomic::AtomicU64,
    term: atomic::AtomicPtr<Term>,
    stamp: atomic::AtomicU64,
    /// How many the group was claimed with.
    size: atomic::AtomicU32,
    /// The `next` one and those behind it are left.
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
        self.take_as(thread_number())
    }

    /// Does the same if this thread filled it and has not been to another magazine since: then no
    /// id in it is older than one that this thread was given.
    #[inline]
    pub(crate) fn take_own(&self) -> Option<Taken<'_>> {
        let thread = thread_number();
        let filled_by = |taken: &Taken<'_>| taken.0.filled_by.load(Ordering::Relaxed);
        self.take_as(thread).filter(|taken| filled_by(taken) == thread)
    }

    #[inline]
    fn take_as(&self, thread: u64) -> Option<Taken<'_>> {
        #[allow(clippy::cast_possible_truncation, reason = "only spreads threads")]
        let taken = self.magazines[thread as usize % MAGAZINES].take();
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

impl Default for Magazine {
    fn default() -> Self {
        Self {
            taken: AtomicBool::default(),
            next: AtomicUsize::new(GROUP),
            filled_by: atomic::AtomicU64::default(),
            term: atomic::AtomicPtr::default(),
            stamp: atomic::AtomicU64::default(),
            size: atomic::AtomicU32::default(),
            ids: [const { atomic::AtomicI64::new(0) }; GROUP],
        }
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
    /// Returns how many ids of this Term are left, and their stamp.
    #[inline]
    pub(crate) fn left_of(&self, term: &Term) -> Option<(usize, u64)> {
        let left = GROUP.saturating_sub(self.next());
        (left > 0 && self.is_of(term)).then(|| (left, self.stamp()))
    }

    #[inline]
    fn is_of(&self, term: &Term) -> bool {
        std::ptr::eq(self.0.term.load(Ordering::Relaxed), term)
    }

    #[inline]
    fn stamp(&self) -> u64 {
        self.0.stamp.load(Ordering::Relaxed)
    }

    /// Hands out the next of the ids that are left.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<i64> {
        let next = self.next();
        let id = self.0.ids.get(next)?.load(Ordering::Relaxed);
        // Taken out before it is handed out.
        self.go_to(next + 1);
        Some(id)
    }

    #[inline]
    fn next(&self) -> usize {
        self.0.next.load(Ordering::Relaxed)
    }

    #[inline]
    fn go_to(&mut self, next: usize) {
        self.0.next.store(next, Ordering::Relaxed);
    }

    /// Returns how many ids to claim at most for the next group: one for the first call of a
    /// second, then ever more. So a thread that needs few ids claims few, and leaves few behind.
    pub(crate) fn next_size(&self, term: &Term, stamp: u64) -> usize {
        if self.is_of(term) && self.stamp() == stamp {
            GROUP.min(2 * self.0.size.load(Ordering::Relaxed) as usize)
        } else {
            1
        }
    }

    /// Puts in a group, in the order of its hand-out. What was left of the last one is forgotten.
    pub(crate) fn put(&mut self, term: &Term, stamp: u64, group: &[i64]) {
        let magazine = self.0;
        let next = GROUP - group.len();
        for (place, id) in magazine.ids[next..].iter().zip(group) {
            place.store(*id, Ordering::Relaxed);
        }
        let size = u32::try_from(group.len()).expect("at most GROUP");
        magazine.size.store(size, Ordering::Relaxed);
        magazine.filled_by.store(thread_number(), Ordering::Relaxed);
        magazine.term.store(std::ptr::from_ref(term).cast_mut(), Ordering::Relaxed);
        magazine.stamp.store(stamp, Ordering::Relaxed);
        self.go_to(next);
    }

    /// Forgets what is left of another stamp: after an id of a later second, none of an earlier
    /// one is handed out here.
    pub(crate) fn keep_only(&mut self, stamp: u64) {
        if self.stamp() != stamp {
            self.go_to(GROUP);
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
