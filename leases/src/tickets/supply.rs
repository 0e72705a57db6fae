//! What the calls of a process and its drawing thread share.

use std::{
    mem,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use once_cell::race::OnceBox;
use randflake::{
    Error, ErrorKind,
    bindings::{Blocks, ForkId, Positions},
};

use super::{
    counter::{Block, Draw, LARGEST},
    size::{History, Need, Sizes},
};
use crate::{Token, metrics::Requests};

/// The numbers of one process. Each forked child appends one of its own, and so does a process that was
/// restored.
#[derive(Debug)]
pub(super) struct Supply {
    pub(super) shared: Arc<Shared>,
    /// Those of its process.
    threads: ForkId,
    child: OnceBox<Self>,
    sizes: Sizes,
}

/// What the drawing thread shares with the callers.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) positions: Positions,
    /// The number at position 0, and from a number to the next. Set with the first block.
    start: AtomicU64,
    step: AtomicU64,
    state: Mutex<State>,
    /// Wakes the drawing thread. Callers wait without the lock: they are in `waiting`.
    pub(super) work: Condvar,
}

/// What changes under the lock.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(super) struct State {
    pub(super) blocks: Blocks,
    /// The blocks that the counter still knows as held: token, start (after the close, what is unused
    /// from there on) and end.
    held: Vec<(Token, u64, u64)>,
    history: History,
    /// How many numbers a call needs.
    pub(super) demand: u64,
    starved: bool,
    /// There is, or was, a thread.
    pub(super) started: bool,
    pub(super) closed: bool,
    /// There is no thread, or no longer one.
    pub(super) ended: bool,
    /// Wakes the thread from its sleep.
    pub(super) wake: bool,
    /// The last draw failed.
    pub(super) failure: Option<Failure>,
    pub(super) last_error: Option<Error>,
    waiting: Vec<Thread>,
    pub(super) blocks_drawn: u64,
    positions_drawn: u64,
    positions_given_back: u64,
    pub(super) waits: u64,
    pub(super) requests: Requests,
}

/// Why there is no block, and when the store is asked again.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) error: Error,
    /// How many failures in a row there were.
    pub(super) count: u32,
    /// When the first of them was asked for, on the clock of the source, as is the next field.
    pub(super) since: Duration,
    pub(super) next_attempt: Duration,
}

impl Supply {
    pub(super) fn new(sizes: Sizes) -> Self {
        let shared = Shared {
            positions: Positions::new(),
            start: AtomicU64::new(0),
            step: AtomicU64::new(0),
            state: Mutex::new(State::new(sizes)),
            work: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
            threads: ForkId::of_threads(),
            child: OnceBox::new(),
            sizes,
        }
    }

    /// Returns that of this process, if it has one. Touches no lock: a thread that does not exist in a
    /// child may hold that of the parent for ever.
    pub(super) fn of_this_process(&self) -> Option<&Self> {
        let mut supply = self;
        while !supply.shared.positions.is_of_this_process() {
            supply = supply.child.get()?;
        }
        Some(supply)
    }

    pub(super) fn of_this_process_or_new(&self) -> &Self {
        let mut supply = self;
        while !supply.shared.positions.is_of_this_process() {
            // What was inherited is the parent's, and is neither handed out nor given back here.
            supply.shared.positions.forget();
            if supply.child.get().is_none() {
                supply.end_thread();
            }
            supply = supply.child.get_or_init(|| Box::new(Self::new(self.sizes)));
        }
        supply
    }

    /// After a restore, ends the thread of before, which has nothing to do any more.
    fn end_thread(&self) {
        // The lock may be held by a thread that a forked child does not have.
        if self.threads == ForkId::of_threads() {
            self.shared.lock().wake(&self.shared);
        }
    }
}

impl Shared {
    /// Returns the number at a position that was claimed.
    #[inline]
    pub(super) fn number(&self, position: u64) -> u64 {
        // Relaxed: set before the block that the position is in was published.
        let (start, step) = (&self.start, &self.step);
        start.load(Ordering::Relaxed) + position * step.load(Ordering::Relaxed)
    }

    /// The state is consistent after a panic: nothing in it is changed half.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what was drawn. Whatever does not lie after all that was drawn before would repeat numbers:
    /// the counter was lost, and an older one is in its place.
    pub(super) fn add(
        &self,
        state: &mut State,
        request: &Draw,
        drawn: &Block,
    ) -> Result<(), Error> {
        let Block { positions: block, start, step } = drawn;
        let known = (self.start.load(Ordering::Relaxed), self.step.load(Ordering::Relaxed));
        if !state.blocks.accepts(block) || (state.blocks_drawn > 0 && known != (*start, *step)) {
            return Err(went_back());
        }
        let last = (block.end - 1).checked_mul(*step).and_then(|last| last.checked_add(*start));
        if last.is_none_or(|last| last > LARGEST) {
            return Err(Error::new(
                ErrorKind::Internal,
                "a defect: a block beyond the last number",
            ));
        }
        self.start.store(*start, Ordering::Relaxed);
        self.step.store(*step, Ordering::Relaxed);
        state.held.retain(|(token, ..)| !request.finished.contains(token));
        state.held.push((request.token, block.start, block.end));
        state.blocks_drawn += 1;
        state.positions_drawn += block.end - block.start;
        (state.starved, state.failure) = (false, None);
        if state.closed {
            state.positions_given_back += block.end - block.start;
        } else {
            state.blocks.add(block.clone());
        }
        if state.blocks.reserve(&self.positions) >= state.demand {
            state.demand = 0;
        }
        Ok(())
    }

    /// Closes for good. Nothing is handed out any more.
    pub(super) fn close(&self, state: &mut State) {
        if state.closed {
            return;
        }
        state.closed = true;
        state.ended |= !state.started;
        let unused_from = state.blocks.seal(&self.positions);
        for (_, start, end) in &mut state.held {
            *start = unused_from.clamp(*start, *end);
            state.positions_given_back += *end - *start;
        }
        state.wake(self);
        state.wake_waiting();
    }

    /// Returns how many numbers were handed out, and how many are left.
    pub(super) fn counts(&self, state: &State) -> (u64, u64) {
        let left = state.blocks.reserve(&self.positions);
        (state.positions_drawn - state.positions_given_back - left, left)
    }
}

impl State {
    fn new(sizes: Sizes) -> Self {
        Self {
            blocks: Blocks::new(sizes.lead()),
            held: vec![],
            history: History::default(),
            demand: 0,
            starved: false,
            started: false,
            closed: false,
            ended: false,
            wake: false,
            failure: None,
            last_error: None,
            waiting: vec![],
            blocks_drawn: 0,
            positions_drawn: 0,
            positions_given_back: 0,
            waits: 0,
            requests: Requests::default(),
        }
    }

    /// Returns the request for the next block, if it is time and there is room.
    pub(super) fn next_draw(
        &mut self,
        shared: &Shared,
        sizes: &Sizes,
        now: Duration,
    ) -> Option<Draw> {
        let (handed_out, left) = shared.counts(self);
        if !self.blocks.needs_block(&shared.positions) && left >= self.demand {
            return None;
        }
        let need = Need { now, handed_out, left, demand: self.demand, starved: self.starved };
        let want = sizes.want(need, &mut self.history)?;
        let next = shared.positions.next();
        let used_up = self.held.iter().filter(|(.., end)| *end <= next);
        let finished = used_up.map(|(token, ..)| *token).collect();
        Some(Draw { token: Token::random(), want, after: self.blocks.end(), finished })
    }

    /// Takes what is unused of each block that is held: its token, and the first unused position.
    pub(super) fn take_unused(&mut self) -> Vec<(Token, u64)> {
        // The last one first: then all of it may lie at the end of the counter.
        let held = mem::take(&mut self.held);
        held.into_iter().rev().map(|(token, unused_from, _)| (token, unused_from)).collect()
    }

    /// Notes that the calling thread waits.
    pub(super) fn wait(&mut self) {
        let this = thread::current();
        if self.waiting.iter().all(|waiting| waiting.id() != this.id()) {
            self.waiting.push(this);
        }
    }

    /// Has the thread draw for a call that needs more numbers than there are, as far as it may.
    pub(super) fn starve(&mut self, want: u64, sizes: &Sizes) {
        self.demand = self.demand.max(want.min(sizes.max_block));
        self.starved = true;
    }

    /// Wakes the thread from its sleep.
    pub(super) fn wake(&mut self, shared: &Shared) {
        self.wake = true;
        shared.work.notify_one();
    }

    pub(super) fn wake_waiting(&mut self) {
        for waiting in self.waiting.drain(..) {
            waiting.unpark();
        }
    }
}

#[cold]
fn went_back() -> Error {
    Error::new(
        ErrorKind::StoreReplaced,
        "the counter is behind the numbers that this process has drawn from it, or is another one: \
         the store has lost data; fence the counter above every number that was handed out",
    )
}
