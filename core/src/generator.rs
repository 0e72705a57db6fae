use std::{fmt, sync::Arc, time::Duration};

#[cfg(all(test, loom))]
mod loom_tests;

use crate::{
    Clock, Error, ErrorKind, Id, Lease, Parts, Result, Secret, SystemClock,
    buffer::{Buffer, GROUP, Taken},
    clock, fork,
    layout::{self, LIFETIME},
    registry,
    sparx::Sparx,
    term::{Term, Terms},
    word::{Position, Reading, Word},
};

/// Longest `max_wait`: a day.
const MAX_WAIT: Duration = Duration::from_secs(86_400);

/// Largest `max_drift`: an hour, in seconds.
const MAX_DRIFT: u32 = 3_600;

/// A generator of unique 64-bit ids that outsiders cannot predict, order or count.
///
/// Shared by reference between threads; no lock is held on the way of an id.
///
/// **A node id given by hand is safe for one live process at a time, on a machine whose clock has
/// not stepped back over the last id.** Two live processes with one node id and one secret repeat
/// each other's ids. A [lease](Builder::lease) bounds the seconds a generator may use.
///
/// ```
/// use randflake::{Randflake, Secret};
///
/// let secret: Secret = "dffd6021bb2bd5b0af676290809ec3a5".parse()?;
/// let flake = Randflake::new(1, &secret)?;
/// let id = flake.generate()?;
/// assert_eq!(flake.inspect(id).node_id, 1);
/// # Ok::<(), randflake::Error>(())
/// ```
pub struct Randflake<C = SystemClock> {
    terms: Terms,
    buffer: Buffer,
    cipher: Sparx,
    ownership: Ownership,
    max_wait: Duration,
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

/// What a generator is made from; see [`Randflake::builder`].
pub struct Builder<C = SystemClock> {
    secret: Secret,
    node_ids: Vec<u32>,
    lease: Option<(Lease, Ownership)>,
    max_wait: Duration,
    max_drift: u32,
    restart_safe: bool,
    clock: C,
}

impl Randflake {
    /// Makes a generator for a node id given by hand, 0 to 131 071.
    ///
    /// Its first id comes from the full second after the one in which the library was first used,
    /// since an earlier life of this node id may have ended in that one; see
    /// [`Builder::restart_safe`].
    ///
    /// # Errors
    ///
    /// [`InvalidNode`](ErrorKind::InvalidNode): out of range.
    /// [`NodeInUse`](ErrorKind::NodeInUse): this process holds the node id in a list with others.
    /// [`Forked`](ErrorKind::Forked): a process this one was forked from holds it.
    pub fn new(node_id: u32, secret: &Secret) -> Result<Self> {
        Self::builder(secret).node_id(node_id).build()
    }

    /// Starts to describe a generator.
    ///
    /// ```
    /// use std::time::Duration;
    /// use randflake::{Randflake, Secret};
    ///
    /// let flake = Randflake::builder(&Secret::random())
    ///     .node_ids([7, 8]) // 262 144 ids a second
    ///     .max_wait(Duration::from_millis(50))
    ///     .build()?;
    /// assert_eq!(flake.node_ids(), [7, 8]);
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn builder(secret: &Secret) -> Builder {
        Builder {
            secret: secret.clone(),
            node_ids: Vec::new(),
            lease: None,
            max_wait: Duration::from_secs(1),
            max_drift: 0,
            restart_safe: true,
            clock: SystemClock,
        }
    }
}

impl<C: Clock> Builder<C> {
    /// Adds a node id, 0 to 131 071.
    #[must_use]
    pub fn node_id(self, node_id: u32) -> Self {
        self.node_ids([node_id])
    }

    /// Adds node ids, each 0 to 131 071: k of them give k times 131 072 ids a second. At most
    /// 16 384, each once.
    #[must_use]
    pub fn node_ids(mut self, node_ids: impl IntoIterator<Item = u32>) -> Self {
        self.node_ids.extend(node_ids);
        self
    }

    /// Lets the generator stamp only the seconds of this lease, and lets
    /// [`Randflake::extend_lease`] raise its end. One lease serves one process life.
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> Self {
        self.lease = Some((lease, Ownership::OwnLease));
        self
    }

    /// Like [`Builder::lease`], for a lease that a coordinator has granted to this one generator:
    /// nobody else, in this process either, has a lease of these node ids over these seconds.
    /// [`Randflake::replace_lease`] can then change nodes and window.
    #[must_use]
    pub fn granted_lease(mut self, lease: Lease) -> Self {
        self.lease = Some((lease, Ownership::Granted));
        self
    }

    /// Sets how long a call may wait in all, 0 to 86 400 seconds; 1 second unless set. Zero never
    /// waits. The seconds that a batch needs for its size are granted besides, unless it is zero.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// Sets how many whole seconds ahead of the clock ids may be stamped, 0 to 3 600; 0 unless
    /// set. It absorbs clocks that step back and lets a burst borrow coming seconds. Needs a
    /// lease: without one a restart would repeat the borrowed seconds.
    #[must_use]
    pub fn max_drift(mut self, seconds: u32) -> Self {
        self.max_drift = seconds;
        self
    }

    /// Sets whether a generator without a lease skips the rest of the second in which the library
    /// was first used ([`loaded`](crate::loaded)), in which an earlier life of its node id may
    /// have ended; true unless set. Has no effect with a lease, which starts where it says, or
    /// with an injected clock.
    #[must_use]
    pub fn restart_safe(mut self, restart_safe: bool) -> Self {
        self.restart_safe = restart_safe;
        self
    }

    /// Injects a clock, for tests. The generator then shares no record of issued ids with others.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> Builder<D> {
        Builder {
            clock,
            secret: self.secret,
            node_ids: self.node_ids,
            lease: self.lease,
            max_wait: self.max_wait,
            max_drift: self.max_drift,
            restart_safe: self.restart_safe,
        }
    }

    /// Makes the generator.
    ///
    /// # Errors
    ///
    /// [`InvalidNode`](ErrorKind::InvalidNode): no node id, one out of range, one listed twice, or
    /// more than 16 384.
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): `max_wait` or `max_drift` out of range, or
    /// `max_drift` without a lease.
    /// [`NodeInUse`](ErrorKind::NodeInUse), [`Forked`](ErrorKind::Forked): see [`Randflake::new`].
    pub fn build(self) -> Result<Randflake<C>> {
        let nodes = layout::checked_nodes(&self.node_ids)?;
        let ownership = self.lease.map_or(Ownership::ByHand, |(_, ownership)| ownership);
        if self.max_wait > MAX_WAIT {
            return Err(Error::invalid_max_wait(self.max_wait.as_secs_f64()));
        }
        if self.max_drift > MAX_DRIFT {
            return Err(Error::invalid_max_drift(self.max_drift));
        }
        if ownership == Ownership::ByHand && self.max_drift > 0 {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "the largest drift must be 0 without a lease, got {}: a restart would repeat \
                     the seconds it ran ahead",
                    self.max_drift
                ),
            ));
        }
        let window = match self.lease {
            Some((lease, _)) => window_of(lease),
            None if self.restart_safe && self.clock.is_system() => {
                let next_second = fork::life().loaded().saturating_add(1);
                layout::stamp_of(next_second).unwrap_or(0).min(LIFETIME - 1)..LIFETIME
            }
            None => 0..LIFETIME,
        };
        let word = if ownership == Ownership::Granted || !self.clock.is_system() {
            Arc::new(Word::new(nodes.len(), window.start))
        } else {
            registry::word_of(&self.secret, &nodes)?
        };
        Ok(Randflake {
            terms: Terms::new(Term::new(nodes, window, word)),
            buffer: Buffer::default(),
            cipher: Sparx::new(&self.secret),
            ownership,
            max_wait: self.max_wait,
            max_drift: self.max_drift.into(),
            clock: self.clock,
        })
    }
}

impl<C: Clock> Randflake<C> {
    /// Generates an id.
    ///
    /// # Errors
    ///
    /// [`SequenceExhausted`](ErrorKind::SequenceExhausted),
    /// [`ClockMovedBack`](ErrorKind::ClockMovedBack) or
    /// [`LeaseNotStarted`](ErrorKind::LeaseNotStarted): not to be had within `max_wait`;
    /// [`Error::retry_after`] says when.
    /// [`LeaseExpired`](ErrorKind::LeaseExpired), [`LifetimeOver`](ErrorKind::LifetimeOver),
    /// [`ClockBeforeEpoch`](ErrorKind::ClockBeforeEpoch), [`Forked`](ErrorKind::Forked),
    /// [`Closed`](ErrorKind::Closed): not by waiting.
    pub fn generate(&self) -> Result<Id> {
        if let Some(term) = self.terms.peek()
            && let Some(mut magazine) = self.buffer.take()
            && magazine.is_own()
            && magazine.left_of(term).is_some_and(|(_, stamp)| self.is_in_time(stamp))
            && let Some(id) = magazine.pop()
        {
            term.check_life()?;
            return Ok(id.into());
        }
        let mut id = [0];
        self.fill_some(&mut id, true, &mut Patience::new(self.max_wait, 1, u64::MAX))?;
        Ok(id[0].into())
    }

    /// Fills a slice with ids, in the order in which they are claimed.
    ///
    /// After an error the slice is zeroed; ids that were claimed before it are never issued.
    ///
    /// # Errors
    ///
    /// As [`Randflake::generate`]; before any id is claimed where the batch would need longer than
    /// the seconds for its size and `max_wait`, or reaches past the end. With a `max_wait` of zero
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for a batch that no second can hold.
    ///
    /// ```
    /// # use randflake::{Id, Randflake, Secret};
    /// # let flake = Randflake::new(2, &Secret::random())?;
    /// let mut ids = [Id::default(); 1000];
    /// flake.fill(&mut ids)?;
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn fill(&self, ids: &mut [Id]) -> Result<()> {
        self.fill_i64(Id::as_numbers(ids))
    }

    /// Fills a slice of plain numbers with ids; see [`Randflake::fill`].
    ///
    /// # Errors
    ///
    /// As [`Randflake::fill`].
    pub fn fill_i64(&self, ids: &mut [i64]) -> Result<()> {
        self.fill_or_burn(ids).inspect_err(|_| ids.fill(0))
    }

    fn fill_or_burn(&self, ids: &mut [i64]) -> Result<()> {
        let slots = self.terms.current()?.word.slots();
        let want = ids.len() as u64;
        let within_drift = slots * (self.max_drift + 1);
        if self.max_wait.is_zero() && want > within_drift {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "a batch that may not wait has at most {within_drift} ids, got {want}; allow \
                     a wait or ask for fewer"
                ),
            ));
        }
        let mut patience = Patience::new(self.max_wait, want, slots);
        let mut filled = 0;
        while filled < ids.len() {
            filled += self.fill_some(&mut ids[filled..], false, &mut patience)?;
        }
        Ok(())
    }

    /// Returns how long to wait until an id can be had: zero if now. Claims nothing.
    ///
    /// # Errors
    ///
    /// As [`Randflake::generate`], for what waiting does not help.
    pub fn ready_in(&self) -> Result<Duration> {
        let mut read_again = false;
        loop {
            let term = self.terms.current()?;
            let magazine = self.buffer.take();
            let Some(State { seen, .. }) = State::read(term, magazine.as_ref()) else {
                continue;
            };
            match plan(term, seen, self.clock.now()?, self.max_drift, 1)? {
                Plan::Claim { .. } => return Ok(Duration::ZERO),
                Plan::Wait { kind: ErrorKind::ClockMovedBack, .. } if !read_again => {
                    read_again = true;
                }
                Plan::Wait { first_in, helps: true, .. } => return Ok(first_in),
                Plan::Wait { kind, first_in, .. } => return Err(refused(kind, first_in)),
            }
        }
    }

    /// Reads an id back: when, where and as which one it was made. Every 64-bit number has such
    /// parts: they mean something only for ids made with this secret.
    ///
    /// Works in a forked child and after [`close`](Randflake::close), too.
    #[must_use]
    pub fn inspect(&self, id: Id) -> Parts {
        layout::unpack(self.decrypt(id))
    }

    /// Returns the sortable form of an id of this secret: time, node id and sequence, unencrypted.
    /// Never hand it to anyone who must not know them.
    #[must_use]
    pub fn decrypt(&self, id: Id) -> u64 {
        self.cipher.decrypt_id(id.into())
    }

    /// Returns the id of a sortable form; undoes [`decrypt`](Randflake::decrypt). Only for raw
    /// values that came from there: of others nobody knows that they are unique.
    #[must_use]
    pub fn encrypt(&self, raw: u64) -> Id {
        self.cipher.encrypt_raw(raw).into()
    }

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the node ids, sorted; none after [`close`](Randflake::close).
    #[must_use]
    pub fn node_ids(&self) -> &[u32] {
        self.terms.node_ids()
    }

    /// Returns the lease; `None` without one and after [`close`](Randflake::close).
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        let term = self.terms.peek().filter(|_| self.ownership != Ownership::ByHand)?;
        let (start, end) = (term.start, term.end_exclusive());
        Lease::new(layout::unix_second_of(start), layout::unix_second_of(end)).ok()
    }

    /// Raises the end of the lease to the unix second `end_exclusive`; an earlier one than the
    /// present end changes nothing. It is the lease of the moment that is extended: who also calls
    /// [`replace_lease`](Randflake::replace_lease) must not do so at the same time.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](ErrorKind::InvalidLease): there is no lease, or the end lies outside the
    /// format's lifetime. [`Forked`](ErrorKind::Forked), [`Closed`](ErrorKind::Closed).
    pub fn extend_lease(&self, end_exclusive: i64) -> Result<()> {
        let term = self.terms.current()?;
        if self.ownership == Ownership::ByHand {
            return Err(Error::new(
                ErrorKind::InvalidLease,
                "this generator was made without a lease, so there is none to extend",
            ));
        }
        let lease = Lease::new(layout::EPOCH, end_exclusive)?;
        term.extend(window_of(lease).end);
        Ok(())
    }

    /// Goes over to other node ids or another window, both granted to this generator alone. The
    /// first id from there comes from a later second than the last id from before, so time does
    /// not run backwards. Returns the first unix second in which nothing was issued under the old
    /// lease: from there on it may be given back.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](ErrorKind::InvalidLease): the generator was not made with
    /// [`Builder::granted_lease`]. [`InvalidNode`](ErrorKind::InvalidNode): as for
    /// [`Builder::build`]. [`Forked`](ErrorKind::Forked), [`Closed`](ErrorKind::Closed).
    pub fn replace_lease(&self, node_ids: &[u32], lease: Lease) -> Result<i64> {
        let nodes = self.granted(node_ids)?;
        self.terms.replace(&nodes, &window_of(lease)).map(layout::unix_second_of)
    }

    /// Goes on in a forked child, with node ids and a window that were granted to it alone: none
    /// of what its parent has or ever had. Call it once in each child, from one thread.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](ErrorKind::InvalidLease): the generator was not made with
    /// [`Builder::granted_lease`], or is of this process already.
    /// [`InvalidNode`](ErrorKind::InvalidNode): as for [`Builder::build`].
    /// [`Closed`](ErrorKind::Closed): before the fork.
    pub fn begin_in_child(&self, node_ids: &[u32], lease: Lease) -> Result<()> {
        let nodes = self.granted(node_ids)?;
        self.terms.begin_in_child(&nodes, window_of(lease))
    }

    /// Checks node ids that a coordinator granted.
    fn granted(&self, node_ids: &[u32]) -> Result<Box<[u32]>> {
        let nodes = layout::checked_nodes(node_ids)?;
        if self.ownership == Ownership::Granted {
            return Ok(nodes);
        }
        Err(Error::new(
            ErrorKind::InvalidLease,
            "only a lease that a coordinator granted to this generator can be replaced",
        ))
    }

    /// Ends the generator for good: every later call that needs it open is
    /// [`Closed`](ErrorKind::Closed). For a granted lease, returns the first unix second in which
    /// nothing was issued: from there on the lease may be given back. Does nothing, and returns
    /// `None`, in a forked child and the second time.
    pub fn close(&self) -> Option<i64> {
        let term = self.terms.close()?;
        // A word shared with other generators goes on.
        (self.ownership == Ownership::Granted).then(|| layout::unix_second_of(term.word.seal()))
    }

    /// Tells, at a glance at the clock, whether an id of this stamp may be handed out now.
    #[inline]
    fn is_in_time(&self, stamp: u64) -> bool {
        self.clock.glance().is_some_and(|second| {
            // Wraps, and is too much, where the stamp is over.
            let ahead = layout::unix_second_of(stamp).wrapping_sub(second).cast_unsigned();
            ahead <= self.max_drift
        })
    }

    /// Fills the front of `ids` with at least one id: with all that the seconds up to
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
            let mut magazine = self.buffer.take();
            let Some(state) = State::read(term, magazine.as_ref()) else { continue };
            let plan = match self.plan_at_a_glance(term, state, want) {
                Some(plan) => plan,
                None => plan(term, state.seen, self.clock.now()?, self.max_drift, want)?,
            };
            let filled = match plan {
                Plan::Claim { rest_in, .. } if rest_in > patience.left => {
                    let retry_after = patience.retry_after(rest_in, want);
                    return Err(refused(ErrorKind::SequenceExhausted, retry_after));
                }
                Plan::Claim { first, count, borrows, .. } => {
                    // A full second is left for a borrowed one when nobody has any of it left.
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
                // Again: the clock, or a signal, may have forked.
                term.check_life()?;
                return Ok(filled);
            }
        }
    }

    /// The usual case, for the price of a glance: the second of the last claim goes on.
    #[inline]
    fn plan_at_a_glance(&self, term: &Term, state: State, want: u64) -> Option<Plan> {
        let first = state.seen;
        let fits = want <= term.word.slots() - first.slot
            && (term.start..term.end_exclusive()).contains(&first.stamp);
        (fits && self.clock.glance() == Some(layout::unix_second_of(first.stamp)))
            .then_some(Plan::Claim { first, count: want, rest_in: Duration::ZERO, borrows: false })
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
                    // Less and less towards the end of a second, so that little stays behind.
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
                self.encrypt_from(term, claimed_from, group);
                ids[0] = group[0];
                magazine.put(term, claimed_from.stamp, &group[1..]);
                return Some(1);
            }
            self.encrypt_from(term, claimed_from, &mut ids[left..]);
        }
        if let Some(magazine) = magazine {
            for (id, popped) in ids[..left].iter_mut().zip(std::iter::from_fn(|| magazine.pop())) {
                *id = popped;
            }
            magazine.keep_only(first.stamp);
        }
        Some(ids.len())
    }

    /// Fills the front of `ids` from what all magazines have left of a full second.
    #[cold]
    fn left_by_others(&self, ids: &mut [i64], term: &Term, stamp: u64) -> Option<usize> {
        let mut filled = 0;
        for mut magazine in self.buffer.each() {
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
    fn encrypt_from(&self, term: &Term, first: Position, ids: &mut [i64]) {
        let mut position = first;
        let mut rest = &mut *ids;
        while !rest.is_empty() {
            let (node, sequence) = layout::node_and_sequence(position.slot);
            let in_node = layout::IDS_PER_NODE - u64::from(sequence);
            let (run, after) = rest.split_at_mut(rest.len().min(to_usize(in_node)));
            // Within a node, the next sequence is the next raw value.
            let raw = layout::pack(position.stamp, term.nodes[node], sequence);
            for (place, offset) in run.iter_mut().zip(0..) {
                *place = (raw + offset).cast_signed();
            }
            position = term.word.at(position, run.len() as u64);
            rest = after;
        }
        self.cipher.encrypt_many(ids);
    }
}

/// A group takes at most this part of what is left of a second.
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

/// How much longer a call may wait.
struct Patience {
    left: Duration,
    /// Slots of a second, if the seconds that a batch needs for its size are granted.
    granted_per: Option<u64>,
}

impl Patience {
    fn new(max_wait: Duration, want: u64, slots: u64) -> Self {
        let granted_per = (!max_wait.is_zero()).then_some(slots);
        let mut patience = Self { left: max_wait, granted_per };
        patience.left += patience.granted(want);
        patience
    }

    /// Returns the whole seconds that so many ids take for themselves.
    fn granted(&self, want: u64) -> Duration {
        Duration::from_secs(self.granted_per.map_or(0, |slots| want / slots))
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
    /// the second of the last claim is full but not over.
    Claim { first: Position, count: u64, rest_in: Duration, borrows: bool },
    /// The first slot can be had in `first_in` and the last one in `all_in`, if waiting `helps`.
    Wait { kind: ErrorKind, first_in: Duration, all_in: Duration, helps: bool },
}

/// The rule of one call, the only place that compares times. Keeps I1 (with the claim), I2, I3,
/// I4 and I5 of ARCHITECTURE.md.
fn plan(term: &Term, seen: Position, now: i64, max_drift: u64, want: u64) -> Result<Plan> {
    let (second, nanos) = clock::split(now);
    let now = layout::stamp_of(second).ok_or_else(|| before_epoch(second))?;
    let horizon = now.saturating_add(max_drift);
    let slots = term.word.slots();
    let end = term.end_exclusive();

    let candidate = now.max(seen.stamp).max(term.start);
    let slot = if candidate == seen.stamp { seen.slot } else { 0 };
    let full = slot == slots;
    let first = if full {
        Position { stamp: candidate + 1, slot: 0 }
    } else {
        Position { stamp: candidate, slot }
    };
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

    let reaches_past_the_end = last.stamp >= end;
    // A refusal of the first id comes before the end of the lease, that of a batch after it.
    if reaches_past_the_end && (refusal.is_none() || first.stamp < end) {
        return Err(past_the_end(end, last.stamp));
    }
    let time_until = |stamp: u64| {
        let nanos = Duration::from_nanos(nanos.unsigned_abs());
        Duration::from_secs(stamp.saturating_sub(horizon)).saturating_sub(nanos)
    };
    let all_in = time_until(last.stamp);
    Ok(match refusal {
        Some(kind) => {
            Plan::Wait { kind, first_in: time_until(first.stamp), all_in, helps: first.stamp < end }
        }
        None if last.stamp <= horizon => {
            Plan::Claim { first, count: want, rest_in: Duration::ZERO, borrows: full }
        }
        None => {
            let count = (horizon - first.stamp + 1) * slots - first.slot;
            Plan::Claim { first, count, rest_in: all_in, borrows: full }
        }
    })
}

impl Error {
    /// Makes the error of a `max_wait` outside its range; `got` in seconds.
    #[cold]
    #[must_use]
    pub fn invalid_max_wait(got: impl fmt::Display) -> Self {
        let max = MAX_WAIT.as_secs();
        Self::new(
            ErrorKind::InvalidArgument,
            format!("the longest wait (max_wait) must be between 0 and {max} seconds, got {got}"),
        )
    }

    /// Makes the error of a `max_drift` outside its range.
    #[cold]
    #[must_use]
    pub fn invalid_max_drift(got: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::InvalidArgument,
            format!(
                "the largest drift (max_drift) must be between 0 and {MAX_DRIFT} whole seconds, got {got}"
            ),
        )
    }
}

fn window_of(lease: Lease) -> std::ops::Range<u64> {
    let stamp = |second| layout::stamp_of(second).expect("a lease lies within the lifetime");
    stamp(lease.start())..stamp(lease.end_exclusive())
}

#[cold]
fn before_epoch(second: i64) -> Error {
    Error::new(
        ErrorKind::ClockBeforeEpoch,
        format!(
            "the clock shows the unix second {second}, and ids begin at {} \
             (2024-10-27T03:33:20Z); set the clock right",
            layout::EPOCH
        ),
    )
}

#[cold]
fn past_the_end(end: u64, stamp: u64) -> Error {
    if stamp >= LIFETIME {
        let end = layout::LIFETIME_END;
        return Error::new(
            ErrorKind::LifetimeOver,
            format!(
                "the unix second {end} (2058-11-05T17:10:24Z) is the first that ids cannot carry"
            ),
        );
    }
    let (end, stamp) = (layout::unix_second_of(end), layout::unix_second_of(stamp));
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
        ErrorKind::LeaseNotStarted => "the first second of this generator is still to come",
        ErrorKind::ClockMovedBack => "the clock is behind the last id",
        _ => "the ids of the seconds that may be used now do not suffice",
    };
    let seconds = retry_after.as_secs_f64();
    let message = format!("{why}; try again in {seconds:.3} s, or allow a longer wait");
    Error::new(kind, message).with_retry_after(retry_after)
}

impl<C> fmt::Debug for Randflake<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Randflake")
            .field("node_ids", &self.terms.node_ids())
            .finish_non_exhaustive()
    }
}

impl<C> fmt::Debug for Builder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("node_ids", &self.node_ids).finish_non_exhaustive()
    }
}
