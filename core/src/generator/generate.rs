//! The calls that make ids: which slots they claim, and when they use an id buffer.
//!
//! **One call.**
//!
//! 1. Load the pointer to the current Term; null means closed. Compare its fork id with the fork
//!    page. Everything below is taken from this one Term. A single call first looks into its
//!    thread's buffer, and is done if there is an id that is still in time.
//! 2. Read its packed state: the last stamp and the next slot.
//! 3. Read the clock. `plan` decides which slots to claim, or how long to wait, or which error to
//!    return.
//! 4. Claim with one compare-and-swap of the packed state. If it fails, go to 1.
//! 5. Pack, encrypt, return.
//!
//! A call waits between 3 and 4, and holds nothing meanwhile. A cheap clock is asked first whether
//! the tick of the last claim is still current. It may be late, never early, so the precise clock
//! has reached the tick that it shows (I4), and the value compared is the value packed (I3).
//! Everything else is decided on the precise clock.

use std::time::Duration;

use super::{
    Generator,
    call::{Call, Order, Reach, Wait},
    plan::{Plan, goes_on, plan, usual_plan},
    wait::{Rate, WaitBudget, refused},
};
use crate::{
    Clock, Error, ErrorKind, Format, Result, ahead,
    buffer::{self, GROUP, PlaceGuard},
    fork::ForkId,
    packed_state::{Position, Snapshot},
    term::Term,
};

/// Longest time that a batch may need for its size: an hour.
const LONGEST_BATCH: Duration = Duration::from_secs(3600);

impl<F: Format, C: Clock> Generator<F, C> {
    /// Generates an id.
    ///
    /// # Errors
    ///
    /// [`SequenceExhausted`](crate::ErrorKind::SequenceExhausted),
    /// [`ClockMovedBack`](crate::ErrorKind::ClockMovedBack) or
    /// [`LeaseNotStarted`](crate::ErrorKind::LeaseNotStarted): no id is available within `max_wait`;
    /// [`Error::retry_after`](crate::Error::retry_after) says when one is.
    /// [`LeaseExpired`](crate::ErrorKind::LeaseExpired),
    /// [`LifetimeOver`](crate::ErrorKind::LifetimeOver),
    /// [`ClockBeforeEpoch`](crate::ErrorKind::ClockBeforeEpoch),
    /// [`Forked`](crate::ErrorKind::Forked), [`Closed`](crate::ErrorKind::Closed): waiting does not
    /// help.
    #[inline]
    pub fn generate(&self) -> Result<F::Id> {
        self.generate_i64().map(F::id)
    }

    /// Generates an id as [`generate`](Self::generate) does, as far as `call` allows.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate), with a `max_wait` of zero if it must not wait.
    ///
    /// ```
    /// # use randflake::{Call, Randflake, Secret};
    /// # let flake = Randflake::new(4, &Secret::random())?;
    /// match flake.generate_with(Call::AT_ONCE) {
    ///     Ok(id) => println!("{id}"),
    ///     Err(error) => println!("try again in {:?}", error.retry_after()),
    /// }
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[inline]
    pub fn generate_with(&self, call: Call) -> Result<F::Id> {
        let id = match call.order {
            Order::Any => self.fast_path(),
            Order::Next => self.claim_next_and(|term, next| {
                let left = term.state.slots() - next.slot;
                ahead::id_of(term.number, next, left, |ids| self.pack_claimed(term, next, ids))
            }),
        };
        match id {
            Some(id) => Ok(F::id(id)),
            None => self.slow_path(call).map(F::id),
        }
    }

    /// Fills a slice with ids, in the order in which they are claimed.
    ///
    /// After an error the slice is zeroed, and ids that were already claimed are never issued.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate). The call fails before it claims any id if the batch needs
    /// longer than the ticks for its size and `max_wait`, or reaches past the end.
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): the batch takes more than an hour, or
    /// `max_wait` is zero and no tick can hold the batch.
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
        self.fill_with(F::as_numbers(ids), Call::default())
    }

    /// Fills a slice of signed numbers with ids; see [`fill`](Self::fill).
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill).
    pub fn fill_i64(&self, ids: &mut [i64]) -> Result<()> {
        self.fill_with(ids, Call::default())
    }

    /// Fills a slice of signed numbers with ids as [`fill`](Self::fill) does, as far as `call` allows.
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill), with a `max_wait` of zero if it must not wait, and
    /// [`Reach::Renewals`].
    pub fn fill_with(&self, ids: &mut [i64], call: Call) -> Result<()> {
        self.try_fill(ids, call).inspect_err(|_| ids.fill(0))
    }

    /// Checks whether a batch of `count` ids would be refused before any id is claimed. Call it
    /// before allocating memory for a large batch. Claims nothing. With an injected clock it checks
    /// only the size.
    ///
    /// # Errors
    ///
    /// As [`fill_with`](Self::fill_with).
    ///
    /// ```
    /// # use randflake::{Call, Randflake, Secret};
    /// # let flake = Randflake::new(3, &Secret::random())?;
    /// flake.check_fill(1000, Call::default())?;
    /// let refused = flake.check_fill(1_000_000_000, Call::default());
    /// assert!(refused.is_err(), "it would take more than an hour");
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn check_fill(&self, count: usize, call: Call) -> Result<()> {
        let want = count as u64;
        let budget = self.wait_budget_for(want, call)?;
        if want == 0 || !self.clock.is_system() {
            return Ok(());
        }
        self.check_plan(want, &budget)
    }

    /// Checks whether a call would get an id now, or within `patience` or one tick, whatever is longer,
    /// if the lease is renewed meanwhile. Claims nothing.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate). `LEASE_EXPIRED` where all of the lease is used or over.
    #[doc(hidden)]
    pub fn check_soon(&self, patience: Duration) -> Result<()> {
        let patience = patience.max(self.format.layout().ticks(1));
        self.check_plan(1, &WaitBudget::new(patience, 1, None, Reach::Renewals))
    }

    fn check_plan(&self, want: u64, budget: &WaitBudget) -> Result<()> {
        let (kind, all_in, helps) = match self.look(want, budget.reach, &mut false)?.plan {
            Plan::Claim { rest_in, .. } => (ErrorKind::SequenceExhausted, rest_in, true),
            Plan::Wait { kind, all_in, helps, .. } => (kind, all_in, helps),
        };
        if !helps || all_in > budget.left {
            return Err(refused(kind, budget.retry_after(all_in, want)));
        }
        Ok(())
    }

    /// Returns how many whole ticks so many ids take, as a duration. The rest of the current tick does
    /// not count.
    #[must_use]
    pub fn time_for(&self, count: usize) -> Duration {
        let slots = self.current_term.peek().map_or(u64::MAX, |term| term.state.slots());
        Rate { layout: self.format.layout(), slots }.time_for(count as u64)
    }

    /// Returns how long to wait until an id is available: zero if one is available now. Claims
    /// nothing.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate), where waiting does not help.
    pub fn ready_in(&self) -> Result<Duration> {
        match self.look(1, Reach::Lease, &mut false)?.plan {
            Plan::Claim { .. } => Ok(Duration::ZERO),
            Plan::Wait { first_in, helps: true, .. } => Ok(first_in),
            Plan::Wait { kind, first_in, .. } => Err(refused(kind, first_in)),
        }
    }

    #[allow(clippy::inline_always, reason = "left to the compiler, an id takes a fifth longer")]
    #[inline(always)]
    fn generate_i64(&self) -> Result<i64> {
        if let Some(id) = self.fast_path() { Ok(id) } else { self.slow_path(Call::default()) }
    }

    #[allow(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn fast_path(&self) -> Option<i64> {
        if F::BUFFERED { self.pop_buffered() } else { self.claim_next() }
    }

    /// Hands out an id that this thread has claimed ahead, if there is one for now.
    #[inline]
    fn pop_buffered(&self) -> Option<i64> {
        // First, since it is a call: no other value has to survive it.
        let tick = self.format.coarse_tick(&self.clock)?;
        let term = self.current_term.peek()?;
        let id = buffer::pop(term.number, tick, term.max_drift)?;
        term.is_of_this_process().then_some(id)
    }

    /// Makes this thread's buffer of a Term busy, if it has one.
    fn buffer_of(term: &Term) -> Option<PlaceGuard> {
        if F::BUFFERED { buffer::take(term.number) } else { None }
    }

    /// Claims the slot after the last one, if its tick is still current and no other thread is faster.
    #[inline]
    fn claim_next(&self) -> Option<i64> {
        self.claim_next_and(|term, next| {
            let mut id = [self.pack(term, next).0.cast_signed()];
            self.format.finish(&mut id);
            id[0]
        })
    }

    /// Does so, and makes the id with `pack`.
    #[allow(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn claim_next_and(&self, pack: impl FnOnce(&Term, Position) -> i64) -> Option<i64> {
        let term = self.current_term.peek()?;
        // Before the clock, as in `look`.
        let Snapshot::Open(next) = term.state.load() else { return None };
        let tick = self.format.coarse_tick(&self.clock)?;
        if !goes_on(term, next, tick, 1) || !term.state.claim_one(next) {
            return None;
        }
        let id = pack(term, next);
        self.current_term.peek()?; // as in `fill_some`
        term.is_of_this_process().then_some(id)
    }

    #[cold]
    #[inline(never)]
    fn slow_path(&self, call: Call) -> Result<i64> {
        let mut id = [0];
        let mut budget = WaitBudget::new(self.max_wait_of(call), 1, None, call.reach);
        self.fill_some(&mut id, call.order == Order::Any, &mut budget)?;
        Ok(id[0])
    }

    fn max_wait_of(&self, call: Call) -> Duration {
        match call.wait {
            Wait::MaxWait => self.max_wait,
            Wait::Never => Duration::ZERO,
        }
    }

    fn try_fill(&self, ids: &mut [i64], call: Call) -> Result<()> {
        let process = ForkId::current();
        let mut budget = self.wait_budget_for(ids.len() as u64, call)?;
        let mut filled = 0;
        while filled < ids.len() {
            filled += self.fill_some(&mut ids[filled..], false, &mut budget)?;
            // The first of them may be another process's, while this one has begun anew.
            if process != ForkId::current() {
                return Err(Error::new(
                    ErrorKind::Forked,
                    "this process was forked or restored in the middle of a batch; ask for it again",
                ));
            }
        }
        Ok(())
    }

    /// Returns how long a batch may wait, unless it is too large for that.
    fn wait_budget_for(&self, want: u64, call: Call) -> Result<WaitBudget<'_>> {
        let max_wait = self.max_wait_of(call);
        let term = self.current_term.get()?;
        let slots = term.state.slots();
        let within_drift = slots.saturating_mul(term.max_drift + 1);
        if max_wait.is_zero() && want > within_drift {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "a batch that may not wait has at most {within_drift} ids, got {want}; allow \
                     a wait or ask for fewer"
                ),
            ));
        }
        let rate = Rate { layout: self.format.layout(), slots };
        let takes = rate.time_for(want);
        if takes > LONGEST_BATCH {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "a batch of {want} ids takes {} seconds, but may take at most {}; ask for \
                     fewer at a time, or use more node ids",
                    takes.as_secs(),
                    LONGEST_BATCH.as_secs()
                ),
            ));
        }
        Ok(WaitBudget::new(max_wait, want, Some(rate), call.reach))
    }

    /// Looks at the generator, and decides what comes next: the only place that does. Looks once more
    /// where the clock seems to have moved back, unless this was `read_again`.
    #[inline]
    fn look(&self, want: u64, reach: Reach, read_again: &mut bool) -> Result<Look<'_>> {
        loop {
            // Everything is taken from this one Term. The state is loaded before the clock is read:
            // otherwise a stamp that another thread took from a later reading than ours would look
            // like a clock that moved back. And before the buffer is taken: if a call in the middle of
            // this one claims ids, and leaves some ahead in a place that this call does not know, the
            // claim fails.
            let term = self.current_term.get()?;
            let Some(claimed) = claimed_of(term) else { continue };
            let buffer = Self::buffer_of(term);
            let view = View::new(claimed, buffer.as_ref());
            let tick = self.format.coarse_tick(&self.clock);
            let usual = tick.and_then(|tick| usual_plan(term, view.seen, tick, want));
            let plan = if let Some(plan) = usual {
                plan
            } else {
                let now = self.format.read_clock(&self.clock)?;
                plan(self.format.layout(), term, view.seen, now, want, reach)?
            };
            if matches!(plan, Plan::Wait { kind: ErrorKind::ClockMovedBack, .. }) && !*read_again {
                *read_again = true;
                continue;
            }
            return Ok(Look { term, buffer, view, plan });
        }
    }

    /// Fills the front of `ids` with at least one id: with as many as the ticks up to
    /// `now + max_drift` have. Waits first, within `budget`, if there are none. A `single` id may be
    /// one of a group, whose others go into the buffer.
    fn fill_some(&self, ids: &mut [i64], single: bool, budget: &mut WaitBudget) -> Result<usize> {
        let want = ids.len() as u64;
        let mut read_again = false;
        loop {
            let Look { term, mut buffer, view, plan } =
                self.look(want, budget.reach, &mut read_again)?;
            // This call may return an id of the state's stamp or later: none older comes after it.
            if let Some(buffer) = &mut buffer {
                buffer.keep_only(view.claimed.stamp);
            }
            match plan {
                Plan::Claim { rest_in, .. } if rest_in > budget.left => {
                    let retry_after = budget.retry_after(rest_in, want);
                    return Err(refused(ErrorKind::SequenceExhausted, retry_after));
                }
                Plan::Claim { first, count, .. } => {
                    let ids = &mut ids[..to_usize(count)];
                    let claimed = self.claim_into(ids, term, buffer.as_mut(), view, first, single);
                    let Some(filled) = claimed else { continue };
                    // Again, after the clock was read: that call or a signal may have forked. And a
                    // state that generators with manual node ids share stays open after a close. Once
                    // the close has returned, another process may use the node ids from the next tick
                    // on.
                    self.current_term.get()?;
                    term.check_process()?;
                    return Ok(filled);
                }
                Plan::Wait { kind, first_in, all_in, helps } => {
                    drop(buffer); // a wait keeps no buffer busy
                    let refused = || refused(kind, budget.retry_after(all_in, want));
                    if !helps || all_in > budget.left {
                        return Err(refused());
                    }
                    let is_counted = term.waits.begin(kind, &budget.waited);
                    let slept = self.clock.sleep(first_in)?;
                    if slept.is_none() && is_counted {
                        term.waits.take_back(kind);
                    }
                    match slept {
                        Some(took) => budget.spend(took.max(first_in)),
                        None if read_again => return Err(refused()),
                        None => read_again = true,
                    }
                }
            }
        }
    }

    /// Fills `ids` from the position `first` on: with the ids left in this thread's buffer, then
    /// with newly claimed ones. Does nothing if another thread was faster.
    fn claim_into(
        &self,
        ids: &mut [i64],
        term: &Term,
        mut buffer: Option<&mut PlaceGuard>,
        view: View,
        first: Position,
        single: bool,
    ) -> Option<usize> {
        let (left, claimed_from) = if first == view.seen && view.left > 0 {
            // The ids left in the buffer lie just before the claimed position.
            (view.left.min(ids.len()), term.state.at(view.claimed, 0))
        } else {
            (0, first)
        };
        let (from_buffer, newly_claimed) = ids.split_at_mut(left);
        if !newly_claimed.is_empty() {
            let claimed = match &buffer {
                Some(buffer) if single => {
                    // Smaller groups towards the end of a tick, so that few ids are left unused.
                    let share = (term.state.slots() - claimed_from.slot) / SHARERS;
                    share.clamp(1, buffer.next_size(claimed_from.stamp) as u64)
                }
                _ => newly_claimed.len() as u64,
            };
            if !term.state.claim(view.claimed, claimed_from, claimed) {
                return None;
            }
            match &mut buffer {
                Some(buffer) if single => {
                    let mut group = [0; GROUP];
                    let group = &mut group[..to_usize(claimed)];
                    self.pack_claimed(term, claimed_from, group);
                    newly_claimed[0] = group[0];
                    buffer.put(claimed_from.stamp, &group[1..]);
                    return Some(1);
                }
                _ => self.pack_claimed(term, claimed_from, newly_claimed),
            }
            if F::BUFFERED && single {
                let now = first.stamp.saturating_sub(term.max_drift);
                buffer::assign(term.number, first.stamp, now);
            }
        }
        if let Some(buffer) = buffer {
            buffer.pop_into(from_buffer);
            buffer.keep_only(first.stamp);
        }
        Some(ids.len())
    }

    /// Fills `ids` with the ids of claimed slots.
    fn pack_claimed(&self, term: &Term, first: Position, ids: &mut [i64]) {
        let layout = self.format.layout();
        let mut position = first;
        let mut rest = &mut *ids;
        while !rest.is_empty() {
            let (raw, in_node) = self.pack(term, position);
            let (run, after) = rest.split_at_mut(rest.len().min(to_usize(in_node)));
            for (place, offset) in run.iter_mut().zip(0..) {
                *place = (raw + offset * layout.sequence_step()).cast_signed();
            }
            position = term.state.at(position, run.len() as u64);
            rest = after;
        }
        self.format.finish(ids);
    }

    /// Packs a slot. Also returns how many slots its node has from there on; each raises the sequence
    /// by one.
    #[inline]
    fn pack(&self, term: &Term, slot: Position) -> (u64, u64) {
        let layout = self.format.layout();
        let (node, count) = layout.node_and_count(slot.slot);
        let sequence = self.format.first_sequence(slot.stamp) + count;
        let raw = layout.pack_fields(slot.stamp, term.nodes[node], sequence);
        (raw, layout.ids_per_node() - count)
    }
}

/// A group takes at most this fraction of what is left of a tick.
const SHARERS: u64 = 64;

/// What a call has seen of a generator, and what it does next.
struct Look<'a> {
    term: &'a Term,
    /// Of this thread, which makes it busy.
    buffer: Option<PlaceGuard>,
    view: View,
    plan: Plan,
}

/// Where the next claim begins, as one thread sees it.
#[derive(Clone, Copy, Debug)]
struct View {
    /// Everything before this position is claimed.
    claimed: Position,
    /// The same, before the ids that are left in this thread's buffer were claimed.
    seen: Position,
    /// How many ids those are.
    left: usize,
}

impl View {
    fn new(claimed: Position, buffer: Option<&PlaceGuard>) -> Self {
        let left = buffer.map_or(0, |buffer| buffer.left_of(claimed.stamp));
        // More are left than were claimed if a call in between claimed them. No claim from `claimed`
        // on succeeds after that.
        let slot = claimed.slot.saturating_sub(left as u64);
        Self { claimed, seen: Position { slot, ..claimed }, left }
    }
}

/// Loads the state of a Term. If it is pending, opens it and returns `None`: load again.
fn claimed_of(term: &Term) -> Option<Position> {
    match term.state.load() {
        Snapshot::Open(position) => Some(position),
        Snapshot::Pending => {
            term.open();
            None
        }
        // The Term that replaces this one was published before the seal: load it.
        Snapshot::Sealed => None,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "never more than the length of a slice")]
fn to_usize(count: u64) -> usize {
    count as usize
}
