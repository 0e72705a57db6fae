//! What the calls of a process and its drawing thread share.

use std::{
    ops::Range,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use randflake::{
    Error, ErrorKind,
    bindings::{Blocks, ForkId, Positions},
};

use super::{
    confirmed::{Confirmed, Moment},
    counter::{Block, Draw, LARGEST},
    size::{History, Need, Sizes},
};
use randflake_leases::{Token, bindings::Requests};

/// The numbers of one process.
#[derive(Debug)]
pub(super) struct Supply {
    pub(super) shared: Arc<Shared>,
    /// Those of its process.
    threads: ForkId,
    sizes: Sizes,
}

/// What the drawing thread shares with the callers.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) positions: Positions,
    /// The number at position 0, and from a number to the next. Set with the first block.
    start: AtomicU64,
    step: AtomicU64,
    pub(super) confirmed: Confirmed,
    /// How often the blocks were given up.
    losses: AtomicU64,
    state: Mutex<State>,
    /// Wakes the drawing thread. Callers wait without the lock: they are in `waiting`.
    pub(super) work: Condvar,
}

/// What changes under the lock.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(super) struct State {
    pub(super) blocks: Blocks,
    /// Under which token the counter has the blocks; `None` if it has none.
    token: Option<Token>,
    /// At the end: the first position that no call has claimed.
    unused_from: u64,
    /// Where the blocks ended that were given up: no position before it is handed out any more.
    given_up: u64,
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
    /// How many numbers were handed out when the counter was last asked.
    asked_at: u64,
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
    pub(super) fn new(process: ForkId, sizes: Sizes) -> Self {
        let shared = Shared {
            positions: Positions::of(process),
            start: AtomicU64::new(0),
            step: AtomicU64::new(0),
            confirmed: Confirmed::new(),
            losses: AtomicU64::new(0),
            state: Mutex::new(State::new(sizes)),
            work: Condvar::new(),
        };
        Self { shared: Arc::new(shared), threads: ForkId::of_threads(), sizes }
    }

    /// Makes those of a forked child, or of a process that was restored: what was inherited is handed
    /// out and given back by the parent alone.
    pub(super) fn of_child(&self, child: ForkId) -> Self {
        self.shared.positions.forget();
        self.end_thread();
        Self::new(child, self.sizes)
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
    /// Claims the next position, if what is held counts.
    ///
    /// # Errors
    ///
    /// The position that the call has in hand, if any: ask [`State::claim`].
    #[inline]
    pub(super) fn claim_one(&self) -> Result<u64, Option<u64>> {
        // Before the claim: once the blocks are given up, a claim finds nothing, whatever it saw here.
        if self.confirmed.counts() { self.positions.claim_one() } else { Err(None) }
    }

    /// Claims up to `want` positions in a row; none where [`State::claim`] has to be asked.
    pub(super) fn claim_many(&self, want: u64) -> Range<u64> {
        if self.confirmed.counts() { self.positions.claim_many(want) } else { 0..0 }
    }

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

    /// Takes what was drawn, and has all blocks count from when that was first asked. Whatever does not
    /// lie after all that was drawn before would repeat numbers: the counter was lost, and an older one
    /// is in its place.
    pub(super) fn add(
        &self,
        state: &mut State,
        request: &Draw,
        sent: Moment,
        drawn: &Block,
    ) -> Result<(), Error> {
        let Block { positions: block, start, step } = drawn;
        let known = (self.start.load(Ordering::Relaxed), self.step.load(Ordering::Relaxed));
        let is_another = state.blocks_drawn > 0 && known != (*start, *step);
        if is_another || (request.want > 0 && !state.blocks.accepts(block)) {
            return Err(went_back());
        }
        if request.want > 0 {
            let last = (block.end - 1).checked_mul(*step).and_then(|last| last.checked_add(*start));
            if last.is_none_or(|last| last > LARGEST) {
                return Err(Error::new(
                    ErrorKind::Internal,
                    "a defect: a block beyond the last number",
                ));
            }
            self.start.store(*start, Ordering::Relaxed);
            self.step.store(*step, Ordering::Relaxed);
            state.blocks_drawn += 1;
            let usable = block.end.saturating_sub(block.start.max(state.given_up));
            state.positions_drawn += usable;
            if state.closed {
                state.positions_given_back += usable;
            } else {
                state.blocks.add(block.clone());
            }
        }
        state.token = Some(request.token);
        self.confirmed.by(sent);
        (state.starved, state.failure) = (false, None);
        if state.blocks.reserve(&self.positions) >= state.demand {
            state.demand = 0;
        }
        Ok(())
    }

    /// Forgets the blocks, which are another's by now, or nobody's.
    pub(super) fn give_up(&self, state: &mut State) {
        state.token = None;
        if !state.closed {
            state.given_up = state.blocks.end();
            state.positions_given_back += state.blocks.give_up(&self.positions).count;
        }
        self.losses.fetch_add(1, Ordering::Release);
        state.failure = None;
    }

    /// Returns how often the blocks were given up: what was claimed before the last time may be another's.
    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// Closes for good. Nothing is handed out any more.
    pub(super) fn close(&self, state: &mut State) {
        if state.closed {
            return;
        }
        state.closed = true;
        state.ended |= !state.started;
        let unused = state.blocks.seal(&self.positions);
        state.unused_from = unused.from;
        state.positions_given_back += unused.count;
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
            token: None,
            unused_from: 0,
            given_up: 0,
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
            asked_at: 0,
            waits: 0,
            requests: Requests::default(),
        }
    }

    /// As [`Blocks::claim`], if what is held counts.
    pub(super) fn claim(
        &mut self,
        shared: &Shared,
        hand: &mut Option<u64>,
        want: u64,
    ) -> Range<u64> {
        if shared.confirmed.counts() {
            self.blocks.claim(&shared.positions, hand, want)
        } else {
            0..0
        }
    }

    /// Returns how many numbers can be handed out now.
    pub(super) fn reserve(&self, shared: &Shared) -> u64 {
        if shared.confirmed.counts() { self.blocks.reserve(&shared.positions) } else { 0 }
    }

    /// Returns the next request: for a block, if it is time and there is room, or for a confirmation, if
    /// a call waits for it, or if it is due and numbers were handed out since the last request.
    pub(super) fn next_draw(
        &mut self,
        shared: &Shared,
        sizes: &Sizes,
        now: Duration,
        is_due: bool,
    ) -> Option<Draw> {
        let (handed_out, left) = shared.counts(self);
        let is_used_up = left > 0 && left >= self.demand && self.is_used_up();
        let needs_block = self.blocks.needs_block(&shared.positions) || left < self.demand;
        let needs_block = needs_block && !is_used_up;
        let want = if needs_block {
            let need = Need { now, handed_out, left, demand: self.demand, starved: self.starved };
            sizes.want(need, &mut self.history)
        } else {
            None
        };
        let is_waited_for = self.demand > 0 && !shared.confirmed.counts();
        let is_due = is_due && handed_out > self.asked_at;
        if want.is_none() && (left == 0 || !(is_waited_for || is_due)) {
            return None;
        }
        self.asked_at = handed_out;
        Some(Draw {
            before: self.token,
            token: Token::random(),
            unused_from: shared.positions.next(),
            want: want.unwrap_or(0),
            after: self.blocks.end(),
        })
    }

    /// Returns whether the counter has no number left to draw.
    pub(super) fn is_used_up(&self) -> bool {
        let failure = self.failure.as_ref();
        failure.is_some_and(|failure| failure.error.kind() == ErrorKind::LifetimeOver)
    }

    /// Takes the token under which the counter has the blocks, and the first position that is unused.
    pub(super) fn take_unused(&mut self) -> (Option<Token>, u64) {
        (self.token.take(), self.unused_from)
    }

    /// Notes that the calling thread waits.
    pub(super) fn wait(&mut self) {
        let this = thread::current();
        if self.waiting.iter().all(|waiting| waiting.id() != this.id()) {
            self.waiting.push(this);
        }
    }

    /// Has the thread draw for a call that needs more numbers than there are, as far as it may.
    pub(super) fn starve(&mut self, want: u64, shared: &Shared, sizes: &Sizes) {
        self.demand = self.demand.max(want.min(sizes.max_block));
        // Where they only have to be confirmed, more of them would not help.
        self.starved |= self.blocks.reserve(&shared.positions) < self.demand;
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
