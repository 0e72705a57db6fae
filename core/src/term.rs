//! What belongs together: nodes, window, process life and state word; and the pointer to the
//! current one.
#![allow(unsafe_code, reason = "the atomic pointer to the current Term")]

use std::{ptr, sync::Arc};

use crate::{
    Error, ErrorKind, Result,
    fork::{self, Life},
    sync::{AtomicPtr, AtomicU64, Mutex, Ordering},
    word::Word,
};

/// Everything a claim needs. Immutable, but for the word and the end, which only rises.
#[derive(Debug)]
pub(crate) struct Term {
    /// Sorted and distinct.
    pub(crate) nodes: Box<[u32]>,
    /// First stamp, in ticks since the epoch.
    pub(crate) start: u64,
    end_exclusive: AtomicU64,
    pub(crate) word: Arc<Word>,
    /// The word of the Term this one replaces; sealed before this one issues anything.
    predecessor: Option<Arc<Word>>,
    life: &'static Life,
    epoch: u64,
}

impl Term {
    pub(crate) fn new(nodes: Box<[u32]>, window: std::ops::Range<u64>, word: Arc<Word>) -> Self {
        let life = fork::life();
        Self {
            nodes,
            start: window.start,
            end_exclusive: AtomicU64::new(window.end),
            word,
            predecessor: None,
            life,
            epoch: life.epoch(),
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
    /// each step can be repeated, so nobody waits for anybody.
    #[cold]
    pub(crate) fn open(&self) -> u64 {
        let predecessor = self.predecessor.as_ref().expect("only replacements are unopened");
        let unused_from = predecessor.seal();
        self.word.open(unused_from.max(self.start));
        unused_from
    }

    #[inline]
    pub(crate) fn check_life(&self) -> Result<()> {
        if self.life.is_current(self.epoch) { Ok(()) } else { Err(forked()) }
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

/// The current Term of a generator, and the ones it had before.
///
/// Old Terms live as long as the generator, so that a reference that a call in flight holds stays
/// good without a count.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Null: closed.
    current: AtomicPtr<Term>,
    /// Every Term ever published. Locked by whoever publishes, never on the way of an id.
    all: Mutex<Vec<*mut Term>>,
    epoch: u64,
}

// SAFETY: the pointers stand for boxes that this value owns; a Term itself is Send and Sync, and
// only shared references to it are handed out before Terms is dropped.
unsafe impl Send for Terms {}
// SAFETY: as above.
unsafe impl Sync for Terms {}

impl Terms {
    pub(crate) fn new(first: Term) -> Self {
        let epoch = first.epoch;
        let first = Box::into_raw(Box::new(first));
        Self { current: AtomicPtr::new(first), all: Mutex::new(vec![first]), epoch }
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
        // Acquire: pairs with the release of the swap, so that the Term is seen as it was made.
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: null, or a box that is freed only when `self` is dropped.
        unsafe { current.as_ref() }
    }

    /// Returns the current node ids; none when closed.
    pub(crate) fn node_ids(&self) -> &[u32] {
        self.peek().map_or(&[], |term| &term.nodes)
    }

    /// Publishes a Term over other nodes or another window, which begins after the last stamp of
    /// the current one, and have so many slots in a tick. Returns the first tick in which the
    /// replaced Term issued nothing.
    pub(crate) fn replace(
        &self,
        nodes: Box<[u32]>,
        window: std::ops::Range<u64>,
        slots: u64,
    ) -> Result<u64> {
        self.current()?; // in a child, the lock may be held for ever
        let mut all = self.all.lock().expect("no code panics while it holds the lock");
        let old = self.current()?;
        let word = Arc::new(Word::unopened(slots));
        let mut term = Term::new(nodes, window, word);
        term.predecessor = Some(Arc::clone(&old.word));
        let new = Box::into_raw(Box::new(term));
        all.push(new);
        // Release: whoever loads the pointer sees the Term as it was made. Published before the
        // old word is sealed, so that a caller who meets the seal finds the new Term.
        self.current.store(new, Ordering::Release);
        // SAFETY: just made, freed only when `self` is dropped.
        Ok(unsafe { &*new }.open())
    }

    /// Publishes that there is no Term any more, and returns the one there was.
    ///
    /// In a forked child there is nothing to close: the Term is the parent's.
    pub(crate) fn close(&self) -> Option<&Term> {
        self.current().ok()?;
        let _publishing = self.all.lock().expect("no code panics while it holds the lock");
        // AcqRel: the Term that comes back is read.
        let old = self.current.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: null, or a box that is freed only when `self` is dropped.
        unsafe { old.as_ref() }
    }
}

impl Drop for Terms {
    fn drop(&mut self) {
        if !fork::life().is_current(self.epoch) {
            return; // the fork may have caught another thread in the middle of publishing
        }
        let Ok(all) = self.all.get_mut() else { return };
        for term in all.drain(..) {
            // SAFETY: made by Box::into_raw, listed once, and nobody holds a reference any more.
            drop(unsafe { Box::from_raw(term) });
        }
    }
}
