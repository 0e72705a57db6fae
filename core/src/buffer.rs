//! Id buffers: ids that were claimed and encrypted ahead, a group at a time, for single calls.
//!
//! A generator has a few buffers, which its threads share. If a thread's buffer is busy, that call
//! bypasses it: no thread waits. An id in a buffer is claimed for good, so it is handed out once or
//! never; the caller decides whether it may be handed out *now*.

use std::sync::atomic;

use crate::{
    sync::{AtomicBool, AtomicUsize, Ordering, renumber_thread, thread_number},
    term::Term,
};

/// Ids of one group: enough to fill a vector unit, and few enough that little is left unused.
pub(crate) const GROUP: usize = if cfg!(loom) { 2 } else { 64 };

/// Buffers of a generator: so many threads at once have one each.
const BUFFERS: usize = if cfg!(loom) { 2 } else { 8 };

/// The id buffers of one generator.
#[derive(Debug, Default)]
pub struct Buffers([Buffer; BUFFERS]);

/// A group of ids of one Term and one stamp.
// On cache lines of its own; two of them, since CPUs fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Buffer {
    taken: AtomicBool,
    // From here on: read and written only by the thread that has set `taken`, which orders all of
    // it. Atomics need no unsafe code and cost nothing; loom checks one of them.
    next: AtomicUsize,
    /// The number of the thread that filled it.
    filled_by: atomic::AtomicU64,
    term: atomic::AtomicPtr<Term>,
    stamp: atomic::AtomicU64,
    /// How many ids the group was claimed with.
    size: atomic::AtomicU32,
    /// Those from `next` on are left.
    ids: [atomic::AtomicI64; GROUP],
}

/// A buffer that one thread has taken, until this is dropped.
#[derive(Debug)]
pub(crate) struct BufferGuard<'a>(&'a Buffer);

impl Buffers {
    /// Takes the buffer of this thread. If another thread has it, returns `None`, and this thread
    /// uses another buffer from its next call on.
    #[inline]
    pub(crate) fn take(&self) -> Option<BufferGuard<'_>> {
        self.take_as(thread_number())
    }

    /// Does the same, but only if this thread filled the buffer and has not used another one since:
    /// then no id in it is older than one that this thread already got.
    #[inline]
    pub(crate) fn take_own(&self) -> Option<BufferGuard<'_>> {
        let thread = thread_number();
        let filled_by = |buffer: &BufferGuard<'_>| buffer.0.filled_by.load(Ordering::Relaxed);
        self.take_as(thread).filter(|buffer| filled_by(buffer) == thread)
    }

    #[inline]
    fn take_as(&self, thread: u64) -> Option<BufferGuard<'_>> {
        #[allow(clippy::cast_possible_truncation, reason = "only spreads threads")]
        let buffer = self.0[thread as usize % BUFFERS].take();
        if buffer.is_none() {
            renumber_thread();
        }
        buffer
    }

    /// Takes the buffers one after the other, except those that other threads have.
    pub(crate) fn each(&self) -> impl Iterator<Item = BufferGuard<'_>> {
        self.0.iter().filter_map(Buffer::take)
    }
}

impl Default for Buffer {
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

impl Buffer {
    #[inline]
    fn take(&self) -> Option<BufferGuard<'_>> {
        // Acquire: pairs with the release in `drop`, so this thread sees what the last one wrote.
        (!self.taken.swap(true, Ordering::Acquire)).then(|| BufferGuard(self))
    }
}

impl BufferGuard<'_> {
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
        // Removed before it is handed out.
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

    /// Returns the size of the next group: one id for the first call of a tick, then twice as many
    /// each time. So a thread that needs few ids leaves few unused.
    pub(crate) fn next_size(&self, term: &Term, stamp: u64) -> usize {
        if self.is_of(term) && self.stamp() == stamp {
            GROUP.min(2 * self.0.size.load(Ordering::Relaxed) as usize)
        } else {
            1
        }
    }

    /// Stores a group, in the order in which it is handed out. Drops what was left of the last one.
    pub(crate) fn put(&mut self, term: &Term, stamp: u64, group: &[i64]) {
        let buffer = self.0;
        let next = GROUP - group.len();
        for (stored, id) in buffer.ids[next..].iter().zip(group) {
            stored.store(*id, Ordering::Relaxed);
        }
        let size = u32::try_from(group.len()).expect("at most GROUP");
        buffer.size.store(size, Ordering::Relaxed);
        buffer.filled_by.store(thread_number(), Ordering::Relaxed);
        buffer.term.store(std::ptr::from_ref(term).cast_mut(), Ordering::Relaxed);
        buffer.stamp.store(stamp, Ordering::Relaxed);
        self.go_to(next);
    }

    /// Drops what is left of another stamp: after an id of a later tick, this buffer hands out none
    /// of an earlier one.
    pub(crate) fn keep_only(&mut self, stamp: u64) {
        if self.stamp() != stamp {
            self.go_to(GROUP);
        }
    }
}

impl Drop for BufferGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: see `Buffer::take`.
        self.0.taken.store(false, Ordering::Release);
    }
}
