//! What belongs together: nodes, window, process life and state word; and the pointer to the
//! current one.
#![allow(unsafe_code, reason = "the atomic pointer to the current Term")]

use std::{ops::Range, ptr, sync::Arc};

use crate::{
    Error, ErrorKind, Result,
    fork::{self, Life},
    sync::{AtomicPtr, AtomicU64, Ordering},
    word::Word,
};

/// Everything a claim needs. Immutable, but for the word and the end, which only rises.
#[derive(Debug)]
pub(crate) struct Term {
    /// Sorted and distinct. Shared with the Term before, if that had the same.
    pub(crate) nodes: Arc<[u32]>,
    /// First stamp, in ticks since the epoch.
    pub(crate) start: u64,
    end_exclusive: AtomicU64,
    pub(crate) word: Arc<Word>,
    /// The word of the Term this one replaces; sealed before this one issues anything.
    predecessor: Option<Arc<Word>>,
    /// The Term that was current before this one, or null.
    before: *mut Self,
    life: &'static Life,
    pub(crate) epoch: u64,
}

impl Term {
    /// Makes a Term of the life with this epoch: the one in which its nodes were found to be free
    /// to use. A fork since then makes it the parent's.
    pub(crate) fn new(epoch: u64, nodes: Arc<[u32]>, window: Range<u64>, word: Arc<Word>) -> Self {
        Self {
            epoch,
            nodes,
            start: window.start,
            end_exclusive: AtomicU64::new(window.end),
            word,
            predecessor: None,
            before: ptr::null_mut(),
            life: fork::life(),
        }
    }

    /// Returns the first tick after the window, in ticks since the epoch.
    pub(crate) fn end_exclusive(&self) -> u64 {
        // Relaxed: a late sight of a raised end only refuses what the next call grants.
        self.end_exclusive.load(Ordering::Relaxed)
    }

    /// Raises the end; a lower one changes nothing.
    pub(crate) fn extend(&self, end_exclusive: u64) {
        self.end_exclusive.fetch_max(end_exclusive, Ordering::Relaxed);
    }

    /// Seals the predecessor and opens this Term's word at the tick after its last stamp, if it is
    /// not open yet. Returns the first tick in which the predecessor issued nothing.
    ///
    /// The replacing thread does this, and so does every caller that comes before it is done:
    /// each step can be repeated, so nobody waits for anybody. Does nothing to a Term without a
    /// predecessor, which is born open.
    #[cold]
    pub(crate) fn open(&self) -> Option<u64> {
        let unused_from = self.predecessor.as_ref()?.seal();
        self.word.open(unused_from.max(self.start));
        Some(unused_from)
    }

    #[inline]
    pub(crate) fn check_life(&self) -> Result<()> {
        if self.is_of_this_life() { Ok(()) } else { Err(forked()) }
    }

    #[inline]
    pub(crate) fn is_of_this_life(&self) -> bool {
        self.life.is_current(self.epoch)
    }
}

#[cold]
fn forked() -> Error {
    Error::new(
        ErrorKind::Forked,
        "this generator was made before this process was forked, and its parent goes on with it; \
         make a generator with node ids of its own in the child",
    )
}

#[cold]
fn closed() -> Error {
    Error::new(ErrorKind::Closed, "this generator was closed; make a new one")
}

#[cold]
fn not_forked() -> Error {
    Error::new(
        ErrorKind::InvalidLease,
        "this generator is of this process already; its lease can be replaced",
    )
}

/// The current Term of a generator, and the ones it had before.
///
/// Old Terms live as long as the generator, so that a reference that a call in flight holds stays
/// good without a count. There is no lock: a child can publish whatever its parent's threads were
/// doing at the fork.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Null: closed. A Term is published once, so a pointer that is still the current one has
    /// been so all the time.
    current: AtomicPtr<Term>,
    /// The Term that was current when the generator was closed.
    closed: AtomicPtr<Term>,
    epoch: u64,
}

// SAFETY: the pointers stand for boxes that this value owns; a Term itself is Send and Sync but
// for the pointer to the one before, and only shared references are handed out before Terms is
// dropped, which alone follows that pointer.
unsafe impl Send for Terms {}
// SAFETY: as above.
unsafe impl Sync for Terms {}

impl Terms {
    pub(crate) fn new(first: Term) -> Self {
        let epoch = first.epoch;
        let first = Box::into_raw(Box::new(first));
        Self { current: AtomicPtr::new(first), closed: AtomicPtr::new(ptr::null_mut()), epoch }
    }

    /// Returns the current Term of an open generator in the process that made it.
    #[inline]
    pub(crate) fn current(&self) -> Result<&Term> {
        let term = self.peek().ok_or_else(closed)?;
        term.check_life()?;
        Ok(term)
    }

    /// Returns the current Term, whatever the process.
    #[inline]
    pub(crate) fn peek(&self) -> Option<&Term> {
        // Acquire: pairs with the release of the exchange, so that the Term is seen as it was made.
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: null, or a box that is freed only when `self` is dropped.
        unsafe { current.as_ref() }
    }

    /// Returns the current node ids; none when closed.
    pub(crate) fn node_ids(&self) -> &[u32] {
        self.peek().map_or(&[], |term| &term.nodes)
    }

    /// Publishes a Term over other nodes or another window, which begins after the last stamp of
    /// the current one. Returns the first tick in which the replaced Term issued nothing.
    pub(crate) fn replace(&self, nodes: &[u32], slots: u64, window: &Range<u64>) -> Result<u64> {
        loop {
            let old = self.current()?;
            // Only an opened word can be sealed.
            old.open();
            let word = Arc::new(Word::unopened(slots));
            let nodes = if *old.nodes == *nodes { Arc::clone(&old.nodes) } else { nodes.into() };
            let mut new = Term::new(old.epoch, nodes, window.clone(), word);
            new.predecessor = Some(Arc::clone(&old.word));
            // Published before the old word is sealed, so that a caller who meets the seal finds
            // the new Term.
            if let Some(new) = self.publish(old, new) {
                return Ok(new.open().expect("it has a predecessor"));
            }
        }
    }

    /// Publishes the first Term of a forked child, whose life has this epoch.
    pub(crate) fn begin_in_child(
        &self,
        epoch: u64,
        nodes: &[u32],
        slots: u64,
        window: Range<u64>,
    ) -> Result<()> {
        let parents = self.peek().ok_or_else(closed)?;
        if parents.check_life().is_ok() {
            return Err(not_forked());
        }
        let word = Arc::new(Word::new(slots, window.start));
        let new = Term::new(epoch, nodes.into(), window, word);
        self.publish(parents, new).map(drop).ok_or_else(not_forked)
    }

    /// Makes `new` the current Term, unless `old` has ceased to be it.
    fn publish(&self, old: &Term, mut new: Term) -> Option<&Term> {
        let old = ptr::from_ref(old).cast_mut();
        new.before = old;
        let new = Box::into_raw(Box::new(new));
        // Release: whoever loads the pointer sees the Term as it was made.
        let published =
            self.current.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed).is_ok();
        if published {
            // SAFETY: just made, freed only when `self` is dropped.
            Some(unsafe { &*new })
        } else {
            // SAFETY: just made, and nobody else has seen it.
            drop(unsafe { Box::from_raw(new) });
            None
        }
    }

    /// Publishes that there is no Term any more, and returns the one there was.
    ///
    /// In a forked child there is nothing to close: the Term is the parent's.
    pub(crate) fn close(&self) -> Option<&Term> {
        self.current().ok()?;
        // AcqRel: the Term that comes back is read.
        let old = self.current.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: null, or a box that is freed only when `self` is dropped.
        let term = unsafe { old.as_ref() }?;
        self.closed.store(old, Ordering::Relaxed);
        // Only an opened word can be sealed.
        term.open();
        Some(term)
    }
}

impl Drop for Terms {
    fn drop(&mut self) {
        if !fork::life().is_current(self.epoch) {
            return; // the fork may have caught another thread in the middle of publishing
        }
        let current = self.current.load(Ordering::Relaxed);
        let mut next =
            if current.is_null() { self.closed.load(Ordering::Relaxed) } else { current };
        while !next.is_null() {
            // SAFETY: made by Box::into_raw, named once, and nobody holds a reference any more.
            let term = unsafe { Box::from_raw(next) };
            next = term.before;
        }
    }
}
