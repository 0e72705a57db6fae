//! The calls that make ids: what they claim, and from where.

use std::time::Duration;

use super::{
    Generator,
    plan::{Plan, Reach, goes_on, plan, usual_plan},
    wait::{Pace, Patience, refused},
};
use crate::{
    Clock, Error, ErrorKind, Format, Result,
    buffer::{Buffer, GROUP, Taken},
    term::Term,
    word::{Position, Reading},
};

/// Longest time that a batch may need for its size: an hour. Memory for more is better not asked for.
const LONGEST_BATCH: Duration = Duration::from_secs(3600);

impl<F: Format, C: Clock> Generator<F, C> {
    /// Generates an id.
    ///
    /// # Errors
    ///
    /// [`SequenceExhausted`](crate::ErrorKind::SequenceExhausted),
    /// [`ClockMovedBack`](crate::ErrorKind::ClockMovedBack) or
    /// [`LeaseNotStarted`](crate::ErrorKind::LeaseNotStarted): not to be had within `max_wait`;
    /// [`Error::retry_after`](crate::Error::retry_after) says when.
    /// [`LeaseExpired`](crate::ErrorKind::LeaseExpired),
    /// [`LifetimeOver`](crate::ErrorKind::LifetimeOver),
    /// [`ClockBeforeEpoch`](crate::ErrorKind::ClockBeforeEpoch),
    /// [`Forked`](crate::ErrorKind::Forked), [`Closed`](crate::ErrorKind::Closed): not by waiting.
    #[inline]
    pub fn generate(&self) -> Result<F::Id> {
        self.generate_i64().map(F::id)
    }

    /// Does as [`generate`](Self::generate) where that neither waits nor fails, and returns `None`
    /// elsewhere, and on every clock but the machine's. For bindings that hold what must not be
    /// held during a wait.
    #[doc(hidden)]
    #[inline]
    pub fn generate_at_once(&self) -> Option<F::Id> {
        if !self.clock.is_system() {
            return None;
        }
        self.usual().or_else(|| self.generate_otherwise(Duration::ZERO).ok()).map(F::id)
    }

    /// Fills a slice with ids, in the order in which they are claimed.
    ///
    /// After an error the slice is zeroed; ids that were claimed before it are never issued.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate); before any id is claimed where the batch would need longer
    /// than the ticks for its size and `max_wait`, or reaches past the end. With a `max_wait` of
    /// zero [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a batch that no tick can
    /// hold; whatever that is, for one that takes more than an hour.
    ///
    /// ```
    /// # use randflake::{Id, Layout, Randflake, Secret, Snowflake};
    /// # let flake = Randflake::new(2, &Secret::random())?;
    /// let mut ids = [Id::default(); 1000];
    /// flake.fill(&mut ids)?;
    ///
    /// # let snowflake = Snowflake::new(2, Layout::twitter())?;
    /// let mut ids = [0_u64; 1000];
    /// snowflake.fill(&mut ids)?;
    /// assert!(ids.is_sorted());
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn fill(&self, ids: &mut [F::Id]) -> Result<()> {
        self.fill_to(ids, Reach::Lease)
    }

    /// Does as [`fill`](Self::fill), up to `reach`.
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill), and as [`Reach::Renewals`] says.
    pub fn fill_to(&self, ids: &mut [F::Id], reach: Reach) -> Result<()> {
        self.fill_i64_to(F::as_numbers(ids), reach)
    }

    /// Fills a slice of signed numbers with ids; see [`fill`](Self::fill).
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill).
    pub fn fill_i64(&self, ids: &mut [i64]) -> Result<()> {
        self.fill_i64_to(ids, Reach::Lease)
    }

    /// Does as [`fill_i64`](Self::fill_i64), up to `reach`.
    ///
    /// # Errors
    ///
    /// As [`fill_to`](Self::fill_to).
    pub fn fill_i64_to(&self, ids: &mut [i64], reach: Reach) -> Result<()> {
        self.fill_or_burn(ids, reach).inspect_err(|_| ids.fill(0))
    }

    /// Checks whether a batch of `count` ids would be refused before anything is claimed, for who
    /// wants to know that before there is memory for it. Claims nothing. With an injected clock
    /// only its size counts.
    ///
    /// # Errors
    ///
    /// As [`fill_to`](Self::fill_to).
    ///
    /// ```
    /// # use randflake::{Randflake, Reach, Secret};
    /// # let flake = Randflake::new(3, &Secret::random())?;
    /// flake.check_fill(1000, Reach::Lease)?;
    /// let refused = flake.check_fill(1_000_000_000, Reach::Lease);
    /// assert!(refused.is_err(), "it would take more than an hour");
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn check_fill(&self, count: usize, reach: Reach) -> Result<()> {
        let want = count as u64;
        let patience = self.patience_for(want, reach)?;
        let mut read_again = false;
        while want > 0 && self.clock.is_system() {
            let term = self.terms.current()?;
            let Some(State { seen, .. }) = State::read(term, None) else { continue };
            let now = self.format.look(&self.clock)?;
            let (kind, all_in, helps) =
                match plan(self.format.layout(), term, seen, now, self.max_drift, want, reach)? {
                    Plan::Claim { rest_in, .. } => (ErrorKind::SequenceExhausted, rest_in, true),
                    Plan::Wait { kind: ErrorKind::ClockMovedBack, .. } if !read_again => {
                        read_again = true;
                        continue;
                    }
                    Plan::Wait { kind, all_in, helps, .. } => (kind, all_in, helps),
                };
            if !helps || all_in > patience.left {
                return Err(refused(kind, patience.retry_after(all_in, want)));
            }
            break;
        }
        Ok(())
    }

    /// Returns the whole ticks that so many ids take for themselves, whatever is left of this one.
    #[must_use]
    pub fn time_for(&self, count: usize) -> Duration {
        let slots = self.terms.peek().map_or(u64::MAX, |term| term.word.slots());
        Pace { layout: self.format.layout(), slots }.time_for(count as u64)
    }

    /// Returns how long to wait until an id can be had: zero if now. Claims nothing.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate), for what waiting does not help.
    pub fn ready_in(&self) -> Result<Duration> {
        let mut read_again = false;
        loop {
            let term = self.terms.current()?;
            let magazine = self.format.buffer().and_then(Buffer::take);
            let Some(State { seen, .. }) = State::read(term, magazine.as_ref()) else {
                continue;
            };
            let (layout, now) = (self.format.layout(), self.clock.now()?);
            match plan(layout, term, seen, now, self.max_drift, 1, Reach::Lease)? {
                Plan::Claim { .. } => return Ok(Duration::ZERO),
                Plan::Wait { kind: ErrorKind::ClockMovedBack, .. } if !read_again => {
                    read_again = true;
                }
                Plan::Wait { first_in, helps: true, .. } => return Ok(first_in),
                Plan::Wait { kind, first_in, .. } => return Err(refused(kind, first_in)),
            }
        }
    }

    #[allow(clippy::inline_always, reason = "left to the compiler, an id takes a fifth longer")]
    #[inline(always)]
    fn generate_i64(&self) -> Result<i64> {
        let usual = self.usual();
        if let Some(id) = usual { Ok(id) } else { self.generate_otherwise(self.max_wait) }
    }

    #[allow(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn usual(&self) -> Option<i64> {
        match self.format.buffer() {
            Some(buffer) => self.pop_from(buffer),
            None => self.claim_next(),
        }
    }

    /// Hands out an id that this thread has claimed ahead, if there is one for now.
    #[inline]
    fn pop_from(&self, buffer: &Buffer) -> Option<i64> {
        // First, since it is a call, during which nothing else has to be kept.
        let tick = self.format.glance(&self.clock)?;
        let term = self.terms.peek()?;
        let mut magazine = buffer.take_own()?;
        let (_, stamp) = magazine.left_of(term)?;
        // Wraps, and is too much, where the stamp is over.
        let is_in_time = stamp.wrapping_sub(tick) <= self.max_drift;
        let id = is_in_time.then(|| magazine.pop())??;
        term.is_of_this_life().then_some(id)
    }

    /// Claims the slot after the last one, if its tick goes on and no other thread is faster.
    #[inline]
    fn claim_next(&self) -> Option<i64> {
        let term = self.terms.peek()?;
        // Before the clock, as in `fill_some`.
        let Reading::Open(next) = term.word.read() else { return None };
        let tick = self.format.glance(&self.clock)?;
        if !goes_on(term, next, tick, 1) || !term.word.claim(next, next, 1) {
            return None;
        }
        let mut id = [self.pack(term, next).0.cast_signed()];
        self.format.finish(&mut id);
        self.terms.peek()?; // as in `fill_some`
        term.is_of_this_life().then_some(id[0])
    }

    #[cold]
    #[inline(never)]
    fn generate_otherwise(&self, max_wait: Duration) -> Result<i64> {
        let mut id = [0];
        self.fill_some(&mut id, true, &mut Patience::new(max_wait, 1, None, Reach::Lease))?;
        Ok(id[0])
    }

    fn fill_or_burn(&self, ids: &mut [i64], reach: Reach) -> Result<()> {
        let mut patience = self.patience_for(ids.len() as u64, reach)?;
        let mut filled = 0;
        while filled < ids.len() {
            filled += self.fill_some(&mut ids[filled..], false, &mut patience)?;
        }
        Ok(())
    }

    /// Returns how long a batch may wait, unless it is too large for that.
    fn patience_for(&self, want: u64, reach: Reach) -> Result<Patience<'_>> {
        let slots = self.terms.current()?.word.slots();
        let within_drift = slots.saturating_mul(self.max_drift + 1);
        if self.max_wait.is_zero() && want > within_drift {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "a batch that may not wait has at most {within_drift} ids, got {want}; allow \
                     a wait or ask for fewer"
                ),
            ));
        }
        let pace = Pace { layout: self.format.layout(), slots };
        let takes = pace.time_for(want);
        if takes > LONGEST_BATCH {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "a batch of {want} ids takes {} seconds, and may take {}; ask for fewer at a \
                     time, or use more node ids",
                    takes.as_secs(),
                    LONGEST_BATCH.as_secs()
                ),
            ));
        }
        Ok(Patience::new(self.max_wait, want, Some(pace), reach))
    }

    /// Fills the front of `ids` with at least one id: with all that the ticks up to
    /// `now + max_drift` have, at most as many as there is room for. Waits first, within
    /// `patience`, if there are none. A `single` id may be one of a group, whose others go into
    /// the buffer.
    fn fill_some(&self, ids: &mut [i64], single: bool, patience: &mut Patience) -> Result<usize> {
        let want = ids.len() as u64;
        let mut read_again = false;
        loop {
            // Everything below is taken from this one Term. The word is read before the clock: a
            // stamp that another thread took from a later reading than ours would look like a
            // clock that moved back.
            let term = self.terms.current()?;
            let mut magazine = self.format.buffer().and_then(Buffer::take);
            let Some(state) = State::read(term, magazine.as_ref()) else { continue };
            // What follows may be of the word's stamp or later: nothing older comes after it.
            if let Some(magazine) = &mut magazine {
                magazine.keep_only(state.word.stamp);
            }
            let glance = self.format.glance(&self.clock);
            let usual = glance.and_then(|tick| usual_plan(term, state.seen, tick, want));
            let plan = if let Some(plan) = usual {
                plan
            } else {
                let now = self.format.look(&self.clock)?;
                let (layout, reach) = (self.format.layout(), patience.reach);
                plan(layout, term, state.seen, now, self.max_drift, want, reach)?
            };
            let filled = match plan {
                Plan::Claim { rest_in, .. } if rest_in > patience.left => {
                    let retry_after = patience.retry_after(rest_in, want);
                    return Err(refused(ErrorKind::SequenceExhausted, retry_after));
                }
                Plan::Claim { first, count, borrows, .. } => {
                    // A full tick is left for a borrowed one when nobody has any of it left.
                    let left = if borrows {
                        magazine = None;
                        self.left_by_others(ids, term, state.seen.stamp)
                    } else {
                        None
                    };
                    left.or_else(|| {
                        let ids = &mut ids[..to_usize(count)];
                        self.claim_into(ids, term, magazine.as_mut(), state, first, single)
                    })
                }
                Plan::Wait { kind: ErrorKind::ClockMovedBack, .. } if !read_again => {
                    read_again = true;
                    None
                }
                Plan::Wait { kind, first_in, all_in, helps } => {
                    drop(magazine); // a wait holds nothing
                    let refused = || refused(kind, patience.retry_after(all_in, want));
                    let gives_up = !helps || all_in > patience.left;
                    // A batch that gives up takes nothing, since it would be burnt.
                    let looks = kind == ErrorKind::SequenceExhausted && (single || !gives_up);
                    let left =
                        looks.then(|| self.left_by_others(ids, term, state.seen.stamp)).flatten();
                    if left.is_none() {
                        if gives_up {
                            return Err(refused());
                        }
                        match self.clock.sleep(first_in)? {
                            Some(took) => patience.spend(took.max(first_in)),
                            None if read_again => return Err(refused()),
                            None => read_again = true,
                        }
                    }
                    left
                }
            };
            if let Some(filled) = filled {
                // Again, after the clock was read. It, or a signal, may have forked. And a word
                // that generators by hand share goes on after a close: once that has returned,
                // another process may have the node ids, from the tick after that on.
                self.terms.current()?;
                term.check_life()?;
                return Ok(filled);
            }
        }
    }

    /// Fills `ids` from the position `first` on: with what the magazine of this thread has left
    /// of it, then with newly claimed ids. Does nothing if another thread was faster.
    fn claim_into(
        &self,
        ids: &mut [i64],
        term: &Term,
        mut magazine: Option<&mut Taken>,
        state: State,
        first: Position,
        single: bool,
    ) -> Option<usize> {
        let (left, claimed_from) = if first == state.seen && state.left > 0 {
            // What is left in the magazine lies just before the word.
            (state.left.min(ids.len()), term.word.at(state.word, 0))
        } else {
            (0, first)
        };
        let missing = (ids.len() - left) as u64;
        if missing > 0 {
            let claimed = match &magazine {
                Some(magazine) if single => {
                    // Less and less towards the end of a tick, so that little stays behind.
                    let share = (term.word.slots() - claimed_from.slot) / SHARERS;
                    share.clamp(1, magazine.next_size(term, claimed_from.stamp) as u64)
                }
                _ => missing,
            };
            if !term.word.claim(state.word, claimed_from, claimed) {
                return None;
            }
            if let Some(magazine) = magazine.as_mut().filter(|_| single) {
                let mut group = [0; GROUP];
                let group = &mut group[..to_usize(claimed)];
                self.make(term, claimed_from, group);
                magazine.put(term, claimed_from.stamp, group);
                ids[0] = magazine.pop()?;
                return Some(1);
            }
            self.make(term, claimed_from, &mut ids[left..]);
        }
        if let Some(magazine) = magazine {
            for (id, popped) in ids[..left].iter_mut().zip(std::iter::from_fn(|| magazine.pop())) {
                *id = popped;
            }
            magazine.keep_only(first.stamp);
        }
        Some(ids.len())
    }

    /// Fills the front of `ids` from what all magazines have left of a full tick.
    #[cold]
    fn left_by_others(&self, ids: &mut [i64], term: &Term, stamp: u64) -> Option<usize> {
        let mut filled = 0;
        for mut magazine in self.format.buffer()?.each() {
            if magazine.left_of(term).is_some_and(|(_, left)| left == stamp) {
                let popped = std::iter::from_fn(|| magazine.pop());
                for (id, popped) in ids[filled..].iter_mut().zip(popped) {
                    *id = popped;
                    filled += 1;
                }
            }
        }
        (filled > 0).then_some(filled)
    }

    /// Fills `ids` with the ids of claimed slots.
    fn make(&self, term: &Term, first: Position, ids: &mut [i64]) {
        let layout = self.format.layout();
        let mut position = first;
        let mut rest = &mut *ids;
        while !rest.is_empty() {
            let (raw, in_node) = self.pack(term, position);
            let (run, after) = rest.split_at_mut(rest.len().min(to_usize(in_node)));
            for (place, offset) in run.iter_mut().zip(0..) {
                *place = (raw + offset * layout.sequence_step()).cast_signed();
            }
            position = term.word.at(position, run.len() as u64);
            rest = after;
        }
        self.format.finish(ids);
    }

    /// Packs a slot. Returns how many slots its node has from there on, too: with each of them the
    /// sequence is one more.
    #[inline]
    fn pack(&self, term: &Term, slot: Position) -> (u64, u64) {
        let layout = self.format.layout();
        let (node, count) = layout.node_and_count(slot.slot);
        let sequence = self.format.first_sequence(slot.stamp) + count;
        let raw = layout.put_together(slot.stamp, term.nodes[node], sequence);
        (raw, layout.ids_per_node() - count)
    }
}

/// A group takes at most this part of what is left of a tick.
const SHARERS: u64 = 64;

/// Where the next claim begins, as one thread sees it.
#[derive(Clone, Copy, Debug)]
struct State {
    /// What the word holds.
    word: Position,
    /// The same before the ids that are left in this thread's magazine were claimed.
    seen: Position,
    /// How many those are.
    left: usize,
}

impl State {
    /// Reads the word of a Term, and opens it if it waits for that.
    fn read(term: &Term, magazine: Option<&Taken>) -> Option<Self> {
        let word = match term.word.read() {
            Reading::Open(position) => position,
            Reading::Unopened => {
                term.open();
                return None;
            }
            // The Term that replaces this one was published before the seal: load it.
            Reading::Sealed => return None,
        };
        let left = magazine
            .and_then(|magazine| magazine.left_of(term))
            .filter(|&(_, stamp)| stamp == word.stamp)
            .map_or(0, |(left, _)| left);
        let seen = Position { slot: word.slot - left as u64, ..word };
        Some(Self { word, seen, left })
    }
}

#[allow(clippy::cast_possible_truncation, reason = "never more than the length of a slice")]
fn to_usize(count: u64) -> usize {
    count as usize
}
