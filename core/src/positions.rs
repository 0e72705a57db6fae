//! Which positions of a counter this process hands out: those of the blocks that it has drawn.
//!
//! **The invariant.** `next` only rises. A position is handed out only by the call that raised `next`
//! past it, and only if it lies in a block of this process; the blocks of all owners are disjoint. So
//! no position is handed out twice. Once `next` is sealed, no call raises it past a position of a
//! block any more: what the seal found unused may be given back. Nor does any once the blocks are
//! given up: `next` is beyond all of them then, and what comes later may lie before their end.
//!
//! A single call raises `next` by one, without looking whether another one was faster, so next to the
//! end of a block it may come out with a position beyond it. It keeps that *in hand*: it is its own as
//! soon as it lies in a block, and of no use if it lies in a gap between two. Only a call that fails
//! with a position in hand loses it.
//!
//! No clock is read here, and nothing waits.

use std::{collections::VecDeque, ops::Range};

use crate::{
    fork::{self, ForkId, ForkPage},
    sync::{AtomicU64, Ordering},
};

/// The first position that no block has. All that are handed out are below 2^53.
const SEALED: u64 = 1 << 63;

/// How many blocks that are used up are remembered, for calls that have a position of them in hand.
const USED: usize = 64;

/// What all threads of a process share without a lock.
// On a line of its own: what else is written beside it would slow each call down.
#[derive(Debug)]
#[repr(align(64))]
pub struct Positions {
    /// The first position that no call has claimed.
    next: AtomicU64,
    /// Below it, and from the start of the block on, positions are of this process. Never beyond the
    /// end of the current block, and before that where the block ahead has to be drawn; zero while
    /// there is nothing to hand out. Changed only under the lock of the [`Blocks`].
    bound: AtomicU64,
    fork_page: &'static ForkPage,
    fork_id: ForkId,
}

/// The blocks of a process: the one whose positions are handed out, and those after it. Under a lock
/// of the caller's, always the same for the same [`Positions`].
#[derive(Debug)]
pub struct Blocks {
    current: Range<u64>,
    /// Those after it, in the order of their positions.
    ahead: VecDeque<Range<u64>>,
    /// Those before the current one, the newest first; adjacent ones are one.
    used: VecDeque<Range<u64>>,
    /// After so many positions of a block, at most half of them, the one ahead has to be drawn.
    lead: u64,
    is_sealed: bool,
}

/// What is left of the blocks of a process at their end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unused {
    /// The first position that no call has claimed.
    pub from: u64,
    /// How many there are: from there to the end of the current block, and the blocks after it.
    pub count: u64,
}

impl Positions {
    /// Makes those of a process that has no block yet.
    #[must_use]
    pub fn of(process: ForkId) -> Self {
        Self {
            next: AtomicU64::new(0),
            bound: AtomicU64::new(0),
            fork_page: fork::page(),
            fork_id: process,
        }
    }

    /// Returns whether they are those of this process, and not of one it was forked from.
    #[inline]
    #[must_use]
    pub fn is_of_this_process(&self) -> bool {
        self.fork_page.is_current(self.fork_id)
    }

    /// Claims the next position.
    ///
    /// # Errors
    ///
    /// The position that the call has in hand, if any: ask [`Blocks::claim`].
    #[inline]
    pub fn claim_one(&self) -> Result<u64, Option<u64>> {
        // Acquire: pairs with the release of `publish`. Who sees a bound sees `next` at or beyond the
        // start of its block, so what lies below that bound lies in that block. A bound that was
        // replaced since is still right: no block is replaced before `next` has reached its end.
        let bound = self.bound.load(Ordering::Acquire);
        // Relaxed, here and below: positions publish no other memory. A call that fails leaves the
        // coming block as it is.
        if self.next.load(Ordering::Relaxed) >= bound {
            return Err(None);
        }
        let position = self.next.fetch_add(1, Ordering::Relaxed);
        // After the claim: a handler of a signal may have forked before it, and then parent and child
        // have claimed the same one.
        if position < bound && self.is_of_this_process() {
            Ok(position)
        } else {
            Err(Some(position))
        }
    }

    /// Claims up to `want` positions in a row; none where [`Blocks::claim`] has to be asked.
    #[inline]
    #[must_use]
    pub fn claim_many(&self, want: u64) -> Range<u64> {
        let claimed = self.claim_below(self.bound.load(Ordering::Acquire), want); // as in `claim_one`
        if self.is_of_this_process() { claimed } else { 0..0 }
    }

    /// Claims positions below a bound, never one beyond it.
    fn claim_below(&self, bound: u64, want: u64) -> Range<u64> {
        let mut next = self.next.load(Ordering::Relaxed);
        while next < bound {
            let end = next.saturating_add(want).min(bound);
            let (claimed, order) = (next..end, Ordering::Relaxed);
            match self.next.compare_exchange_weak(next, end, order, order) {
                Ok(_) => return claimed,
                Err(now) => next = now,
            }
        }
        0..0
    }

    /// Forbids what was inherited: in a child, so that each call looks for the child's own at once.
    pub fn forget(&self) {
        self.bound.store(0, Ordering::Relaxed);
    }

    /// Returns the first position that no call has claimed.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}

impl Blocks {
    /// Makes those of a process that has none yet. `lead` is after how many positions of a block,
    /// at most half of them, the one ahead has to be drawn.
    #[must_use]
    pub fn new(lead: u64) -> Self {
        Self {
            current: 0..0,
            ahead: VecDeque::new(),
            used: VecDeque::new(),
            lead,
            is_sealed: false,
        }
    }

    /// Takes a block that was drawn.
    ///
    /// # Panics
    ///
    /// If it is empty, or begins before the end of the last one: ask [`Blocks::accepts`] first.
    pub fn add(&mut self, block: Range<u64>) {
        assert!(self.accepts(&block), "blocks rise");
        self.ahead.push_back(block);
    }

    /// Returns whether a block lies after the last one, as it must.
    #[must_use]
    pub fn accepts(&self, block: &Range<u64>) -> bool {
        block.start < block.end && block.start >= self.end() && block.end < SEALED
    }

    /// Returns the end of the last block.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.ahead.back().unwrap_or(&self.current).end
    }

    /// Returns whether it is time to draw a block.
    #[must_use]
    pub fn needs_block(&self, positions: &Positions) -> bool {
        self.ahead.is_empty() && !self.is_sealed && positions.next() >= self.draw_from()
    }

    /// Returns how many positions are left.
    #[must_use]
    pub fn reserve(&self, positions: &Positions) -> u64 {
        let left = |block: &Range<u64>| block.end.saturating_sub(positions.next().max(block.start));
        left(&self.current) + self.ahead.iter().map(left).sum::<u64>()
    }

    /// Hands out the position that a call has in hand, if it lies in a block, or up to `want` positions
    /// in a row. Returns none if there is no block left; what is in hand may then lie in the next one.
    pub fn claim(
        &mut self,
        positions: &Positions,
        hand: &mut Option<u64>,
        want: u64,
    ) -> Range<u64> {
        loop {
            match *hand {
                // What is in hand was claimed before the seal, and was not given back.
                Some(position) if self.have(position) => {
                    *hand = None;
                    self.publish(positions);
                    return position..position + 1;
                }
                // In a gap between two blocks.
                Some(position) if position < self.current.start => {
                    *hand = None;
                    continue;
                }
                Some(_) => {}
                None => {
                    let claimed = positions.claim_below(self.current.end, want);
                    if !claimed.is_empty() {
                        self.publish(positions);
                        return claimed;
                    }
                }
            }
            // `next` has reached the end of the current block: all of it is claimed.
            debug_assert!(positions.next() >= self.current.end, "nothing is skipped");
            let Some(block) = self.ahead.pop_front() else {
                self.publish(positions);
                return 0..0;
            };
            positions.next.fetch_max(block.start, Ordering::Relaxed);
            self.replace(block);
        }
    }

    /// Ends it for good, and returns what no call has claimed.
    pub fn seal(&mut self, positions: &Positions) -> Unused {
        self.is_sealed = true;
        self.take(positions, SEALED)
    }

    /// Forgets all blocks, which are another's now, and returns what no call has claimed of them. What
    /// a call has in hand of them is lost. The next block may begin where the unused part did.
    pub fn give_up(&mut self, positions: &Positions) -> Unused {
        // A call may have seen a bound, and come after this: then it finds `next` beyond it.
        let unused = self.take(positions, self.end());
        self.used.clear();
        self.current = unused.from..unused.from;
        unused
    }

    /// Raises `next`, so that nothing of these blocks is claimed any more.
    fn take(&mut self, positions: &Positions, next: u64) -> Unused {
        let next = positions.next.fetch_max(next, Ordering::Relaxed);
        positions.bound.store(0, Ordering::Relaxed);
        let Range { start, end } = self.current;
        let from = next.clamp(start, end);
        // Nothing of the blocks ahead was handed out: a call with one of them in hand asks `claim`.
        let ahead = self.ahead.drain(..).map(|block| block.end - block.start);
        Unused { from, count: end - from + ahead.sum::<u64>() }
    }

    /// Returns whether a position lies in a block whose positions are, or were, handed out.
    fn have(&self, position: u64) -> bool {
        self.current.contains(&position) || self.used.iter().any(|used| used.contains(&position))
    }

    fn replace(&mut self, block: Range<u64>) {
        let used = std::mem::replace(&mut self.current, block);
        match self.used.front_mut() {
            Some(newest) if newest.end == used.start => newest.end = used.end,
            _ => self.used.push_front(used),
        }
        self.used.truncate(USED);
    }

    /// From which position on the block ahead has to be drawn.
    fn draw_from(&self) -> u64 {
        let Range { start, end } = self.current;
        start + ((end - start) / 2).min(self.lead)
    }

    /// Sets how far calls may go without a lock.
    fn publish(&self, positions: &Positions) {
        let next = positions.next();
        let bound = if self.is_sealed || next >= self.current.end {
            0
        } else if next >= self.draw_from() {
            self.current.end
        } else {
            self.draw_from()
        };
        // Release: publishes that `next` was raised to the start of this block.
        positions.bound.store(bound, Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::{
        sync::{Arc, Mutex},
        thread,
    };

    use super::*;

    /// What the threads of a model share.
    struct Model {
        positions: Positions,
        blocks: Mutex<Blocks>,
    }

    impl Model {
        /// With a block of which `next` is the first position that is left, and those after it.
        fn new(next: u64, blocks: impl IntoIterator<Item = Range<u64>>) -> Arc<Self> {
            let mut held = Blocks::new(1);
            for block in blocks {
                held.add(block);
            }
            let model =
                Self { positions: Positions::of(ForkId::current()), blocks: Mutex::new(held) };
            while model.positions.next() < next {
                model.claim().expect("a block");
            }
            Arc::new(model)
        }

        /// As a call for one number does.
        fn claim(&self) -> Option<u64> {
            let mut hand = match self.positions.claim_one() {
                Ok(position) => return Some(position),
                Err(hand) => hand,
            };
            let mut blocks = self.blocks.lock().expect("no panic");
            blocks.claim(&self.positions, &mut hand, 1).next()
        }

        /// As a call for many does, which takes what it gets first.
        fn claim_many(&self, want: u64) -> Vec<u64> {
            let claimed = self.positions.claim_many(want);
            if !claimed.is_empty() {
                return claimed.collect();
            }
            let mut blocks = self.blocks.lock().expect("no panic");
            blocks.claim(&self.positions, &mut None, want).collect()
        }

        fn close(&self) -> u64 {
            self.blocks.lock().expect("no panic").seal(&self.positions).from
        }
    }

    fn model(body: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        // Every known bug of this kind shows with two.
        builder.preemption_bound = Some(2);
        builder.check(body);
    }

    fn spawn<T: 'static>(
        model: &Arc<Model>,
        call: impl FnOnce(&Model) -> T + 'static,
    ) -> thread::JoinHandle<T> {
        let model = Arc::clone(model);
        thread::spawn(move || call(&model))
    }

    /// Asserts that these are the positions, each once.
    fn assert_once(mut claimed: Vec<u64>, expected: impl IntoIterator<Item = u64>) {
        claimed.sort_unstable();
        assert_eq!(claimed, expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn positions_of_two_blocks_and_none_of_the_gap() {
        model(|| {
            let model = Model::new(1, [0..2, 5..8]);
            let others = [(); 2].map(|()| {
                spawn(&model, |model| {
                    [model.claim(), model.claim()].map(|it| it.expect("four are left"))
                })
            });
            let mut claimed = vec![];
            for other in others {
                let positions = other.join().expect("no panic");
                assert!(positions.is_sorted(), "they rise");
                claimed.extend(positions);
            }
            assert_once(claimed, [1, 5, 6, 7]);
        });
    }

    #[test]
    fn a_block_that_comes_while_calls_look_for_one() {
        model(|| {
            let first = 0..2;
            let model = Model::new(1, [first]);
            let others = [(); 2].map(|()| spawn(&model, |model| [model.claim(), model.claim()]));
            model.blocks.lock().expect("no panic").add(2..5);
            let mut claimed: Vec<u64> = others
                .into_iter()
                .flat_map(|other| other.join().expect("no panic"))
                .flatten()
                .collect();
            claimed.extend(std::iter::from_fn(|| model.claim()));
            let lost: Vec<u64> = (1..5).filter(|position| !claimed.contains(position)).collect();
            assert!(lost.len() <= 2, "one for each call that failed: {lost:?}");
            assert_once(claimed, (1..5).filter(|position| !lost.contains(position)));
        });
    }

    #[test]
    fn a_position_in_hand_lies_in_a_block_that_is_used_up_by_now() {
        model(|| {
            let model = Model::new(1, [0..2, 2..3, 3..4, 6..7]);
            let others = [(); 3].map(|()| spawn(&model, Model::claim));
            let mut claimed: Vec<u64> =
                others.into_iter().filter_map(|other| other.join().expect("no panic")).collect();
            claimed.extend(model.claim());
            assert_once(claimed, [1, 2, 3, 6]);
        });
    }

    #[test]
    fn batches_and_single_calls() {
        model(|| {
            let model = Model::new(1, [0..4, 6..8]);
            let batch = spawn(&model, |model| model.claim_many(2));
            let single = spawn(&model, |model| [model.claim(), model.claim()]);
            let mut claimed: Vec<u64> = batch.join().expect("no panic");
            claimed.extend(single.join().expect("no panic").into_iter().flatten());
            claimed.extend(std::iter::from_fn(|| model.claim()));
            assert_once(claimed, [1, 2, 3, 6, 7]);
        });
    }

    #[test]
    fn what_a_close_gives_back_is_claimed_by_nobody() {
        model(|| {
            let model = Model::new(1, [0..4, 6..8]);
            let others = [(); 2].map(|()| spawn(&model, |model| [model.claim(), model.claim()]));
            let unused_from = model.close();
            let claimed: Vec<u64> = others
                .into_iter()
                .flat_map(|other| other.join().expect("no panic"))
                .flatten()
                .collect();
            assert_once(claimed, (1..unused_from).filter(|position| !(4..6).contains(position)));
            assert_eq!(model.claim(), None);
            assert!(model.claim_many(9).is_empty());
        });
    }

    #[test]
    fn the_block_ahead_a_batch_and_a_close() {
        model(|| {
            let model = Model::new(2, [0..3, 6..9]);
            let single = spawn(&model, |model| [model.claim(), model.claim()]);
            let batch = spawn(&model, |model| model.claim_many(2));
            let unused_from = model.close();
            let mut claimed: Vec<u64> = batch.join().expect("no panic");
            claimed.extend(single.join().expect("no panic").into_iter().flatten());
            assert_once(claimed, (2..unused_from).filter(|position| !(3..6).contains(position)));
        });
    }

    #[test]
    fn of_blocks_that_are_given_up_nothing_is_claimed() {
        model(|| {
            let model = Model::new(1, [0..4, 6..8]);
            let others = [(); 2].map(|()| spawn(&model, |model| [model.claim(), model.claim()]));
            let mut blocks = model.blocks.lock().expect("no panic");
            let Unused { from, count } = blocks.give_up(&model.positions);
            blocks.add(8..10);
            // Nor by a call that has one of them in hand.
            let slow = blocks.claim(&model.positions, &mut Some(1), 1);
            drop(blocks);
            assert_eq!(count, if from < 4 { 4 - from + 2 } else { 8 - from.max(6) });
            let claimed: Vec<u64> = others
                .into_iter()
                .flat_map(|other| other.join().expect("no panic"))
                .flatten()
                .collect();
            let claimed: Vec<u64> = claimed.into_iter().chain(slow).collect();
            let mut once = claimed.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), claimed.len(), "{claimed:?} after {from}");
            for position in claimed {
                let before = (1..from).contains(&position) && !(4..6).contains(&position);
                assert!(before || (8..10).contains(&position), "{position} after {from}");
            }
        });
    }
}
