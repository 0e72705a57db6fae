//! The rule of one call, and the calls. Generic over what ids look like, so that Randflake pays
//! nothing for what others need.

mod builder;

use std::{fmt, ops::Range, time::Duration};

#[cfg(all(test, loom))]
mod loom_tests;

use crate::{
    Clock, Error, ErrorKind, Format, Layout, Lease, NodeIds, Result, SystemClock,
    buffer::{Buffer, GROUP, Taken},
    clock, fork, layout,
    registry::Held,
    term::{Term, Terms},
    word::{Position, Reading},
};

pub use self::builder::{Builder, check_max_wait};

/// Longest time that a batch may need for its size: an hour. Memory for more is better not asked for.
const LONGEST_BATCH: Duration = Duration::from_secs(3600);

/// How far a batch may reach.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// To the end of the lease, if there is one, as it is when the batch begins.
    Lease,
    /// As far as another thread extends the lease meanwhile: only what is claimed at once must lie
    /// in it. A batch that meets the end fails with
    /// [`LeaseExpired`](crate::ErrorKind::LeaseExpired), and what it has claimed is never issued.
    Renewals,
}

/// A generator of unique 64-bit ids of a [`Format`]: [`Randflake`](crate::Randflake) or
/// [`Snowflake`](crate::Snowflake), whose pages say what their ids are, how a generator is made and
/// how an id is read. Here is what both do in the same way. A tick is a second for `Randflake`, and
/// what the [`Layout`] says for `Snowflake`.
///
/// ```
/// use randflake::{Format, Generator, Layout, Randflake, Result, Secret, Snowflake};
///
/// fn three<F: Format>(flake: &Generator<F>) -> Result<Vec<F::Id>> {
///     (0..3).map(|_| flake.generate()).collect()
/// }
///
/// let ids = three(&Randflake::new(1, &Secret::random())?)?;
/// assert_ne!(ids[0], ids[1]);
/// let ids = three(&Snowflake::new(1, Layout::twitter())?)?;
/// assert!(ids.is_sorted());
/// # Ok::<(), randflake::Error>(())
/// ```
pub struct Generator<F: Format, C = SystemClock> {
    format: F,
    terms: Terms,
    ownership: Ownership,
    /// On the machine's clock: where it is noted which node ids this process has.
    registered: Option<NodeIds>,
    /// Without a lease, on the machine's clock.
    held: Option<Held>,
    max_wait: Duration,
    /// In ticks.
    max_drift: u64,
    clock: C,
}

/// Who keeps others from the node ids.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Ownership {
    /// The user, for ever.
    ByHand,
    /// The user, for the seconds of a lease.
    OwnLease,
    /// A coordinator, who granted the lease to this generator alone.
    Granted,
}

impl Ownership {
    /// Returns the ticks of a lease. Who grants leases does not know when a layout ends; who writes
    /// one down by hand has made a mistake.
    fn window_of(self, layout: &Layout, lease: Lease) -> Result<Range<u64>> {
        match self {
            Self::Granted => layout.window_within_lifetime(lease),
            Self::ByHand | Self::OwnLease => layout.window_of(lease),
        }
    }
}

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

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        self.format.layout()
    }

    /// Returns the format.
    pub(crate) fn format(&self) -> &F {
        &self.format
    }

    /// Returns the node ids, sorted; none after [`close`](Self::close).
    #[must_use]
    pub fn node_ids(&self) -> &[u32] {
        self.terms.node_ids()
    }

    /// Returns the lease, in whole seconds; `None` without one and after [`close`](Self::close).
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        let term = self.terms.peek().filter(|_| self.ownership != Ownership::ByHand)?;
        let layout = self.format.layout();
        Lease::new(layout.second_of(term.start), layout.second_from(term.end_exclusive())).ok()
    }

    /// Raises the end of the lease to the unix second `end_exclusive`; an earlier one than the
    /// present end changes nothing. It is the lease of the moment that is extended: who also calls
    /// [`replace_lease`](Self::replace_lease) must not do so at the same time.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): there is no lease, or the end lies outside
    /// the lifetime. [`Forked`](crate::ErrorKind::Forked), [`Closed`](crate::ErrorKind::Closed).
    pub fn extend_lease(&self, end_exclusive: i64) -> Result<()> {
        let term = self.terms.current()?;
        if self.ownership == Ownership::ByHand {
            return Err(Error::new(
                ErrorKind::InvalidLease,
                "this generator was made without a lease, so there is none to extend",
            ));
        }
        let layout = self.format.layout();
        Lease::new(layout.second_of(0).max(layout::EPOCH), end_exclusive)?;
        // An earlier one changes nothing, whatever ticks it cuts in two.
        if end_exclusive > layout.second_from(term.end_exclusive()) {
            let longer = Lease::new(layout.second_of(term.start), end_exclusive)?;
            term.extend(self.window_of(longer)?.end);
        }
        Ok(())
    }

    /// Goes over to other node ids or another window, both granted to this generator alone. The
    /// first id from there comes from a later tick than the last id from before, so time does not
    /// run backwards. Returns the first unix second in which nothing was issued under the old
    /// lease: from there on it may be given back.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): the generator was not made with
    /// [`Builder::granted_lease`], or the lease holds no whole tick of the lifetime.
    /// [`LifetimeOver`](crate::ErrorKind::LifetimeOver): it begins after it.
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): as for [`Builder::build`].
    /// [`Forked`](crate::ErrorKind::Forked), [`Closed`](crate::ErrorKind::Closed).
    pub fn replace_lease(&self, node_ids: &[u32], lease: Lease) -> Result<i64> {
        self.terms.current()?;
        let (nodes, slots) = self.granted(node_ids)?;
        let unused_from = self.terms.replace(&nodes, slots, &self.window_of(lease)?)?;
        Ok(self.format.layout().second_from(unused_from))
    }

    /// Goes on in a forked child, with node ids and a window that were granted to it alone: none
    /// of what its parent has or ever had. Call it once in each child, from one thread.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): the generator was not made with
    /// [`Builder::granted_lease`], or is of this process already, or the lease holds no whole tick
    /// of the lifetime. [`LifetimeOver`](crate::ErrorKind::LifetimeOver): it begins after it.
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): as for [`Builder::build`].
    /// [`Closed`](crate::ErrorKind::Closed): before the fork.
    pub fn begin_in_child(&self, node_ids: &[u32], lease: Lease) -> Result<()> {
        let epoch = fork::life().epoch();
        let (nodes, slots) = self.granted(node_ids)?;
        self.terms.begin_in_child(epoch, &nodes, slots, self.window_of(lease)?)
    }

    /// Ends the generator for good: every later call that needs it open is
    /// [`Closed`](crate::ErrorKind::Closed). For a granted lease, returns the first unix second in
    /// which nothing was issued: from there on the lease may be given back. Does nothing, and
    /// returns `None`, in a forked child and the second time.
    ///
    /// ```
    /// use randflake::{ErrorKind, Layout, Snowflake};
    ///
    /// let flake = Snowflake::new(3, Layout::sonyflake2())?;
    /// let id = flake.generate()?;
    /// flake.close();
    /// assert_eq!(flake.generate().unwrap_err().kind(), ErrorKind::Closed);
    /// assert_eq!(flake.inspect(id)?.node_id, 3); // still reads
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn close(&self) -> Option<i64> {
        // First, so that whoever finds it closed may hand the node ids over, whichever thread closed it.
        if let Some(held) = &self.held {
            held.release();
        }
        let term = self.terms.close()?;
        // A word shared with other generators goes on.
        (self.ownership == Ownership::Granted)
            .then(|| self.format.layout().second_from(term.word.seal()))
    }
}

impl<F: Format, C: Clock> Generator<F, C> {
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

    fn window_of(&self, lease: Lease) -> Result<Range<u64>> {
        self.ownership.window_of(self.format.layout(), lease)
    }

    /// Checks and notes node ids that a coordinator granted, and counts the slots they have in a
    /// tick.
    fn granted(&self, node_ids: &[u32]) -> Result<(Box<[u32]>, u64)> {
        let nodes = self.format.layout().checked_nodes(node_ids)?;
        if self.ownership == Ownership::Granted {
            if let Some(registered) = &self.registered {
                grant(registered, &nodes)?;
            }
            let slots = self.format.layout().slots_of(&nodes);
            return Ok((nodes, slots));
        }
        Err(Error::new(
            ErrorKind::InvalidLease,
            "only a lease that a coordinator granted to this generator can be replaced",
        ))
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

/// How fast ids can be had.
#[derive(Clone, Copy)]
struct Pace<'a> {
    layout: &'a Layout,
    /// Slots of a tick.
    slots: u64,
}

impl Pace<'_> {
    /// Returns the whole ticks that so many ids take for themselves.
    fn time_for(&self, want: u64) -> Duration {
        self.layout.ticks(want / self.slots)
    }
}

/// How much longer a call may wait.
struct Patience<'a> {
    left: Duration,
    /// If the ticks that a batch needs for its size are granted.
    granted_at: Option<Pace<'a>>,
    reach: Reach,
}

impl<'a> Patience<'a> {
    /// The patience of a call for so many ids; for a single one without a pace.
    fn new(max_wait: Duration, want: u64, pace: Option<Pace<'a>>, reach: Reach) -> Self {
        let granted_at = pace.filter(|_| !max_wait.is_zero());
        let mut patience = Self { left: max_wait, granted_at, reach };
        patience.left += patience.granted(want);
        patience
    }

    /// Returns the whole ticks that so many ids take for themselves.
    fn granted(&self, want: u64) -> Duration {
        self.granted_at.map_or(Duration::ZERO, |pace| pace.time_for(want))
    }

    fn spend(&mut self, took: Duration) {
        self.left = self.left.saturating_sub(took);
    }

    /// Returns after which time a call whose last id can be had in `all_in` would not be refused.
    fn retry_after(&self, all_in: Duration, want: u64) -> Duration {
        all_in.saturating_sub(self.granted(want))
    }
}

/// What the rule of one call says to one reading of the word and of the clock.
#[derive(Debug)]
enum Plan {
    /// These slots can be claimed; the others of a batch can be had in `rest_in`. It `borrows` if
    /// the tick of the last claim is full but not over.
    Claim { first: Position, count: u64, rest_in: Duration, borrows: bool },
    /// The first slot can be had in `first_in` and the last one in `all_in`, if waiting `helps`.
    Wait { kind: ErrorKind, first_in: Duration, all_in: Duration, helps: bool },
}

/// Returns where the next claim begins if the clock shows the tick `now`, and whether that is
/// because the tick before is full: never before `now`, the last claim or the window.
#[inline]
fn next(layout: &Layout, term: &Term, seen: Position, now: u64) -> (Position, bool) {
    let slots = term.word.slots();
    let stamp = now.max(seen.stamp).max(term.start);
    let slot = if stamp == seen.stamp { seen.slot } else { layout.first_slot(seen.slot, slots) };
    if slot == slots {
        (Position { stamp: stamp + 1, slot: 0 }, true)
    } else {
        (Position { stamp, slot }, false)
    }
}

/// Tells what is mostly so: the tick of the last claim goes on, and has all that is wanted.
#[inline]
fn goes_on(term: &Term, seen: Position, tick: u64, want: u64) -> bool {
    seen.stamp == tick
        && want <= term.word.slots() - seen.slot
        && (term.start..term.end_exclusive()).contains(&tick)
}

/// What the rule says then.
#[inline]
fn usual_plan(term: &Term, seen: Position, tick: u64, want: u64) -> Option<Plan> {
    let claim = Plan::Claim { first: seen, count: want, rest_in: Duration::ZERO, borrows: false };
    goes_on(term, seen, tick, want).then_some(claim)
}

/// The rule of one call: here and in [`goes_on`], its usual case, are times compared. Keeps I1 (with
/// the claim), I2, I3, I4 and I5 of ARCHITECTURE.md.
#[inline]
fn plan(
    layout: &Layout,
    term: &Term,
    seen: Position,
    now: i64,
    max_drift: u64,
    want: u64,
    reach: Reach,
) -> Result<Plan> {
    let (now, nanos) = layout.tick_at(now, seen.stamp).ok_or_else(|| before_epoch(layout, now))?;
    if let Some(usual) = usual_plan(term, seen, now, want) {
        return Ok(usual);
    }
    let horizon = now.saturating_add(max_drift);
    let slots = term.word.slots();
    let end = term.end_exclusive();

    let (first, full) = next(layout, term, seen, now);
    let candidate = first.stamp - u64::from(full);
    let last = term.word.at(first, want - 1);
    let refusal = if candidate > horizon {
        Some(if candidate == term.start {
            ErrorKind::LeaseNotStarted
        } else {
            ErrorKind::ClockMovedBack
        })
    } else {
        (first.stamp > horizon).then_some(ErrorKind::SequenceExhausted)
    };

    // What comes after the horizon is claimed later, by when the lease may be longer.
    let reached = match reach {
        Reach::Lease => last.stamp,
        Reach::Renewals => last.stamp.min(horizon.max(first.stamp)),
    };
    let reaches_past_the_end = reached >= end;
    // A refusal of the first id comes before the end of the lease, that of a batch after it.
    if reaches_past_the_end && (refusal.is_none() || first.stamp < end) {
        return Err(past_the_end(layout, end, reached));
    }
    if refusal.is_none() && last.stamp <= horizon {
        return Ok(Plan::Claim { first, count: want, rest_in: Duration::ZERO, borrows: full });
    }
    let time_until = |stamp: u64| {
        layout.ticks(stamp.saturating_sub(horizon)).saturating_sub(Duration::from_nanos(nanos))
    };
    let all_in = time_until(last.stamp);
    Ok(if let Some(kind) = refusal {
        let helps = first.stamp < end || reach == Reach::Renewals;
        Plan::Wait { kind, first_in: time_until(first.stamp), all_in, helps }
    } else {
        let count = (horizon - first.stamp + 1) * slots - first.slot;
        Plan::Claim { first, count, rest_in: all_in, borrows: full }
    })
}

/// Notes node ids that a coordinator granted.
fn grant(registered: &NodeIds, nodes: &[u32]) -> Result<()> {
    match *registered.grant(nodes) {
        [] => Ok(()),
        [node, ..] => Err(Error::new(
            ErrorKind::NodeInUse,
            format!(
                "node id {node} was granted, and is in use by hand in this process, or in one it \
                 was forked from; give it back and ask for another one"
            ),
        )),
    }
}

#[cold]
fn before_epoch(layout: &Layout, now: i64) -> Error {
    let (now, epoch) = (clock::to_ms(now), layout.epoch_ms());
    Error::new(
        ErrorKind::ClockBeforeEpoch,
        format!(
            "the clock shows {} (unix second {}), and ids begin at {} (unix second {}); set the \
             clock right",
            clock::utc(now),
            clock::seconds(now),
            clock::utc(epoch),
            clock::seconds(epoch)
        ),
    )
}

#[cold]
fn past_the_end(layout: &Layout, end: u64, stamp: u64) -> Error {
    if stamp >= layout.lifetime() {
        return layout.lifetime_over();
    }
    let (end, stamp) =
        (clock::seconds(layout.unix_ms_of(end)), clock::seconds(layout.unix_ms_of(stamp)));
    Error::new(
        ErrorKind::LeaseExpired,
        format!(
            "the lease ends at the unix second {end} and this needs second {stamp}; \
             extend the lease or take a new one"
        ),
    )
}

#[cold]
fn refused(kind: ErrorKind, retry_after: Duration) -> Error {
    let why = match kind {
        ErrorKind::LeaseNotStarted => "the first tick of this generator is still to come",
        ErrorKind::ClockMovedBack => "the clock is behind the last id",
        _ => "the ids of the ticks that may be used now do not suffice",
    };
    let seconds = retry_after.as_secs_f64();
    let message = format!("{why}; try again in {seconds:.3} s, or allow a longer wait");
    Error::new(kind, message).with_retry_after(retry_after)
}

impl<F: Format, C> fmt::Debug for Generator<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(F::GENERATOR)
            .field("layout", &self.format.layout().name())
            .field("node_ids", &self.terms.node_ids())
            .finish_non_exhaustive()
    }
}
