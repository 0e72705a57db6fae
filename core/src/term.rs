//! A Term: the nodes, the window, the fork id and the packed state that belong together; and the
//! atomic pointer to the current Term.
//!
//! **Replacement**, by other nodes or another window:
//!
//! 1. Publish a new Term whose state is *pending*.
//! 2. Seal the old state with `fetch_or`: no claim on it can succeed any more. What that returns
//!    holds the last stamp, so the first tick with nothing issued is exactly known.
//! 3. Open the new state at that tick, or at its own start if that is later.
//!
//! A call that meets the pending state does 2 and 3 itself. A call that meets the seal loads the
//! pointer again, and finds the new Term, which was published before the seal. So a new Term may
//! keep nodes of the old one: their stamps cannot meet.
//!
//! Step 3 has an exception for ids that promise no order: a new Term without a node of the old one
//! opens at its own start where the other tick is later than anybody could wait for. Then a clock
//! was ahead, or was set back. Even then it opens after the last stamp of every earlier Term of
//! this process that shares a node with it, so that a store which forgets cannot make them meet.
//!
//! To close is to publish null and to seal. Generators with manually assigned node ids share one
//! state and therefore never seal it: closing one publishes null, and the others go on.
#![allow(unsafe_code, reason = "the atomic pointer to the current Term")]

use std::{ops::Range, ptr, sync::Arc};

use crate::{
    Error, ErrorKind, Result,
    fork::{self, ForkId, ForkPage},
    metrics::{Metrics, Waits},
    packed_state::PackedState,
    sync::{AtomicPtr, AtomicU64, Ordering, next_number},
};

/// Everything a claim needs. Immutable except the state and the end, which only rises.
#[derive(Debug)]
pub(crate) struct Term {
    /// No other Term of this process, or of a process it was forked from, has this number.
    pub(crate) number: u64,
    /// Sorted and distinct. Shared with the previous Term, if that had the same nodes.
    pub(crate) nodes: Arc<[u32]>,
    /// First stamp, in ticks since the epoch.
    pub(crate) start: u64,
    end_exclusive: AtomicU64,
    /// How far its stamps may be ahead of the clock, in ticks.
    pub(crate) max_drift: u64,
    pub(crate) state: Arc<PackedState>,
    /// The state of the Term that this one replaces; sealed before this one issues anything.
    predecessor: Option<Arc<PackedState>>,
    /// The first tick at which its state may open: its start, or later.
    opens_at: u64,
    /// The last tick at which it continues where its predecessor ended, rather than at its own
    /// start.
    goes_on_to: u64,
    pub(crate) waits: Waits,
    /// The Term that was current before this one, or null.
    before: *mut Self,
    fork_page: &'static ForkPage,
    fork_id: ForkId,
}

impl Term {
    /// Makes a Term of the process in which its nodes were found to be free, which had this fork id.
    /// After a fork since then it belongs to the parent.
    pub(crate) fn new(
        fork_id: ForkId,
        nodes: Arc<[u32]>,
        window: Range<u64>,
        max_drift: u64,
        state: Arc<PackedState>,
    ) -> Self {
        Self {
            number: next_number(),
            fork_id,
            nodes,
            start: window.start,
            end_exclusive: AtomicU64::new(window.end),
            max_drift,
            state,
            predecessor: None,
            opens_at: window.start,
            goes_on_to: u64::MAX,
            waits: Waits::default(),
            before: ptr::null_mut(),
            fork_page: fork::page(),
        }
    }

    /// Makes the Term of a generator that has no lease yet. It belongs to no process and is sealed,
    /// so nothing is ever claimed in it.
    pub(crate) fn vacant(slots: u64) -> Self {
        let state = PackedState::new(slots, 0);
        state.seal();
        Self::new(ForkId::NONE, Arc::new([]), 0..0, 0, Arc::new(state))
    }

    fn is_vacant(&self) -> bool {
        self.fork_id == ForkId::NONE
    }

    /// Returns the first tick after the window, in ticks since the epoch.
    pub(crate) fn end_exclusive(&self) -> u64 {
        // Relaxed: a thread that sees a raised end late refuses an id that its next call will make.
        self.end_exclusive.load(Ordering::Relaxed)
    }

    /// Raises the end; a lower one changes nothing.
    pub(crate) fn extend(&self, end_exclusive: u64) {
        self.end_exclusive.fetch_max(end_exclusive, Ordering::Relaxed);
    }

    /// Seals the predecessor and opens this Term's state, if it is not open yet. Returns the first tick
    /// in which the predecessor issued nothing.
    ///
    /// It opens at that tick, so that time continues. If that tick is too late to wait for, because
    /// a clock was wrong, it opens where its lease starts, which is safe without common node ids.
    ///
    /// The replacing thread calls this, and so does every caller that finds the state pending: each
    /// step can be repeated, so no thread waits for another. Does nothing to a Term without a
    /// predecessor, which is open from the start.
    #[cold]
    pub(crate) fn open(&self) -> Option<u64> {
        let unused_from = self.predecessor.as_ref()?.seal();
        let goes_on = unused_from <= self.goes_on_to;
        self.state.open(if goes_on { unused_from.max(self.opens_at) } else { self.opens_at });
        Some(unused_from)
    }

    /// Returns this Term and the ones before it, of this process.
    fn and_before(&self) -> impl Iterator<Item = &Self> {
        let mut next = ptr::from_ref(self);
        std::iter::from_fn(move || {
            // SAFETY: null, or a box that is freed with its generator, whose Term `self` is.
            let term = unsafe { next.as_ref() }?;
            next = term.before;
            // In a child, its parent's Terms come last.
            term.is_of_this_process().then_some(term)
        })
    }

    #[inline]
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.is_of_this_process() { Ok(()) } else { Err(self.of_another_process()) }
    }

    #[inline]
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.fork_page.is_current(self.fork_id)
    }

    pub(crate) fn is_of(&self, process: ForkId) -> bool {
        self.fork_id == process
    }

    #[cold]
    fn of_another_process(&self) -> Error {
        if self.is_vacant() {
            return Error::new(ErrorKind::LeaseUnavailable, "this generator has no lease yet");
        }
        Error::new(
            ErrorKind::Forked,
            "this generator was made before this process was forked or restored, and another \
             process may use its node ids; make a generator with other node ids",
        )
    }
}

#[cold]
fn closed() -> Error {
    Error::new(ErrorKind::Closed, "this generator was closed; make a new one")
}

#[cold]
fn has_begun() -> Error {
    Error::new(
        ErrorKind::InvalidLease,
        "this generator already has a lease of this process, which can be replaced",
    )
}

/// The pointer to the current Term of a generator, which also owns the ones before it.
///
/// Old Terms live as long as the generator, so a call in flight can keep a reference without a
/// count. There is no lock: a forked child can publish a Term no matter what its parent's threads
/// were doing.
#[derive(Debug)]
pub(crate) struct CurrentTerm {
    /// Null: closed. A Term is published once, so a pointer that is still the current one has
    /// been the current one all the time.
    pointer: AtomicPtr<Term>,
    /// The Term that was current when the generator was closed.
    closed: AtomicPtr<Term>,
    /// The threads of the process that made it.
    threads: ForkId,
}

// SAFETY: the pointers are to boxes that this value owns; a Term itself is Send and Sync except for
// the pointer to the previous one, which is set before the Term is published. Until `drop`, only
// shared references are handed out.
unsafe impl Send for CurrentTerm {}
// SAFETY: as above.
unsafe impl Sync for CurrentTerm {}

impl CurrentTerm {
    /// Begins with this Term, in the process that has these threads.
    pub(crate) fn new(threads: ForkId, first: Term) -> Self {
        let first = Box::into_raw(Box::new(first));
        Self { pointer: AtomicPtr::new(first), closed: AtomicPtr::new(ptr::null_mut()), threads }
    }

    /// Returns the current Term of an open generator in the process that made it.
    #[inline]
    pub(crate) fn get(&self) -> Result<&Term> {
        let term = self.peek().ok_or_else(closed)?;
        term.check_process()?;
        Ok(term)
    }

    /// As [`get`](Self::get), for a thread of this process; the Term may be from before a restore.
    pub(crate) fn get_of(&self, process: ForkId) -> Result<&Term> {
        let term = self.get()?;
        if term.is_of(process) { Ok(term) } else { Err(term.of_another_process()) }
    }

    /// Returns the current Term, also in a forked child; `None` once closed.
    #[inline]
    pub(crate) fn peek(&self) -> Option<&Term> {
        // Acquire: pairs with the release of the exchange, so that the Term is seen as it was made.
        let current = self.pointer.load(Ordering::Acquire);
        // SAFETY: null, or a box that is freed only when `self` is dropped.
        unsafe { current.as_ref() }
    }

    /// Returns the current node ids; none when closed.
    pub(crate) fn node_ids(&self) -> &[u32] {
        self.peek().map_or(&[], |term| &term.nodes)
    }

    /// Returns what was done under all Terms of this process, also for a closed generator.
    pub(crate) fn metrics(&self) -> Metrics {
        let mut last = self.pointer.load(Ordering::Acquire);
        if last.is_null() {
            // Acquire: pairs with the release in `close`.
            last = self.closed.load(Ordering::Acquire);
        }
        // SAFETY: null, or a box that is freed only when `self` is dropped.
        let terms = unsafe { last.as_ref() }.into_iter().flat_map(Term::and_before);
        Metrics::sum(terms.map(|term| (term.state.claimed(), &term.waits)))
    }

    /// Publishes a Term with other nodes or another window, which begins after the last stamp of
    /// the current one. Returns the first tick in which the replaced Term issued nothing.
    ///
    /// A Term that shares no node with the current one begins at its own start if the other tick is
    /// after `goes_on_to`; in any case it begins after the last stamps of all Terms of this process
    /// that share a node with it.
    pub(crate) fn replace(
        &self,
        process: ForkId,
        nodes: &[u32],
        slots: u64,
        window: &Range<u64>,
        max_drift: u64,
        goes_on_to: u64,
    ) -> Result<u64> {
        loop {
            let old = self.get_of(process)?;
            // Only an opened state can be sealed.
            old.open();
            let state = Arc::new(PackedState::pending(slots));
            let nodes = if *old.nodes == *nodes { Arc::clone(&old.nodes) } else { nodes.into() };
            let mut new = Term::new(old.fork_id, nodes, window.clone(), max_drift, state);
            new.predecessor = Some(Arc::clone(&old.state));
            let shares =
                |term: &&Term| term.nodes.iter().any(|node| new.nodes.binary_search(node).is_ok());
            if !shares(&old) {
                new.goes_on_to = goes_on_to;
            }
            // All but the current one are sealed.
            let earlier = old.and_before().skip(1).filter(shares);
            let unused_from = earlier.map(|term| term.state.seal()).max();
            new.opens_at = new.opens_at.max(unused_from.unwrap_or_default());
            // Published before the old state is sealed, so that a caller that meets the seal finds
            // the new Term.
            if let Some(new) = self.publish(old, new) {
                return Ok(new.open().expect("it has a predecessor"));
            }
        }
    }

    /// Publishes the first Term of this process.
    pub(crate) fn begin(&self, make_first: impl Fn() -> Term) -> Result<()> {
        loop {
            let before = self.peek().ok_or_else(closed)?;
            if before.is_of_this_process() {
                return Err(has_begun());
            }
            let first = make_first();
            first.check_process()?;
            // If another thread was faster, its Term may be from before a restore.
            if self.publish(before, first).is_some() {
                return Ok(());
            }
        }
    }

    /// Makes `new` the current Term, unless `seen` no longer is.
    fn publish(&self, seen: &Term, mut new: Term) -> Option<&Term> {
        // The pointer that its box became, which frees it later: a pointer from a reference may
        // only read.
        let old = self.pointer.load(Ordering::Relaxed);
        if !ptr::eq(old, seen) {
            return None;
        }
        new.before = old;
        let new = Box::into_raw(Box::new(new));
        // Release: a thread that loads the pointer sees the Term as it was made.
        let published =
            self.pointer.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed).is_ok();
        if published {
            // SAFETY: just made, freed only when `self` is dropped.
            Some(unsafe { &*new })
        } else {
            // SAFETY: just made, and no other thread has seen it.
            drop(unsafe { Box::from_raw(new) });
            None
        }
    }

    /// Publishes that there is no longer a Term, and returns the last one, unless it was vacant.
    /// Does nothing if the Term belongs to another process.
    pub(crate) fn close(&self, process: ForkId) -> Option<&Term> {
        loop {
            let term = self.peek()?;
            let is_own = term.is_of(process) && term.is_of_this_process();
            if !is_own && !term.is_vacant() {
                return None;
            }
            // Before the exchange, so that `metrics` always finds a Term. The final one is stored
            // after it.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            let current = self.pointer.load(Ordering::Relaxed);
            if !ptr::eq(current, term) {
                continue;
            }
            let _ = self.closed.compare_exchange(ptr::null_mut(), current, success, failure);
            // Release, as when a Term is published. A thread from before a restore does not end a
            // later Term.
            let null = ptr::null_mut();
            if self.pointer.compare_exchange(current, null, success, failure).is_err() {
                continue;
            }
            self.closed.store(current, Ordering::Release);
            if term.is_vacant() {
                return None;
            }
            // Only an opened state can be sealed.
            term.open();
            return Some(term);
        }
    }
}

impl Drop for CurrentTerm {
    fn drop(&mut self) {
        if self.threads != ForkId::of_threads() {
            return; // the fork may have caught another thread in the middle of publishing
        }
        let current = self.pointer.load(Ordering::Relaxed);
        let mut next =
            if current.is_null() { self.closed.load(Ordering::Relaxed) } else { current };
        while !next.is_null() {
            // SAFETY: made by Box::into_raw, in the list once, and no reference to it is left.
            let term = unsafe { Box::from_raw(next) };
            next = term.before;
        }
    }
}
