//! The keeper of a generator's lease: a state machine without I/O, clocks or threads.
//!
//! Whoever drives it asks for a [`Step`], does it, and [answers](Keeper::answer) what came of it;
//! both with a [`Reading`] of the clocks. A thread in Rust, one in Python and a timer in Node all
//! drive the same logic.
//!
//! It renews at a third of the ttl and replaces what is lost by a fresh lease, and the generator
//! goes on. Where neither works, the generator stops by itself at the end of its lease, and the
//! keeper goes on trying. It never trusts a clock for safety: readings only decide when to ask.
//!
//! ```
//! use std::time::Duration;
//! use randflake::{Clock, Randflake, Secret, SystemClock};
//! use randflake_leases::{LeaseStore, MemoryStore, Namespace};
//! use randflake_leases::keeper::{Answer, Keeper, Options, Reading, Step};
//!
//! let secret = Secret::random();
//! let mut store = MemoryStore::new(Namespace::new("orders", &secret)?);
//! let reading = || Ok::<_, randflake::Error>(Reading { wall: SystemClock.now()?, boot: Duration::ZERO });
//! let mut keeper = Keeper::new(Options { ttl: 60, ..Options::default() })?;
//! let mut flake = None;
//! loop {
//!     let answer = match keeper.step(reading()?) {
//!         Step::Acquire(request) => Answer::Acquired(store.acquire(&request)),
//!         Step::Renew(request) => Answer::Renewed(store.renew(&request)),
//!         Step::Release(request) => Answer::Released(store.release(&request)),
//!         Step::Open { node_ids, lease } => {
//!             let builder = Randflake::builder(&secret).node_ids(node_ids);
//!             Answer::Opened(builder.granted_lease(lease).build().map(|made| flake = Some(made)))
//!         }
//!         Step::Close => Answer::Closed(flake.as_ref().and_then(Randflake::close)),
//!         Step::Sleep(_) => {
//!             flake.as_ref().expect("open").generate()?;
//!             keeper.stop(); // nothing left to do here
//!             continue;
//!         }
//!         Step::Stopped => break,
//!         other => unreachable!("needs time to pass: {other:?}"),
//!     };
//!     keeper.answer(answer, reading()?)?;
//! }
//! assert!(keeper.last_error().is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{collections::VecDeque, fmt, mem, time::Duration};

use randflake::{ErrorKind, Lease, layout};

use crate::{
    Acquire, Acquired, Error, NodeLease, Note, Operation, Release, Released, Renew, Renewed, Reply,
    Result, Token, rules::skewed, token::random_bytes, window,
};

/// Shortest pause after a failure.
const LEAST_PAUSE: Duration = Duration::from_millis(250);
/// Longest pause after a failure while there is no lease: the generator is back that soon after its
/// store. Random from the shortest pause on, so that a fleet does not come back all at once.
const LONGEST_OUTAGE_PAUSE: Duration = Duration::from_secs(3);
/// Longest sleep: a step of the clock is noticed that soon.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

/// Longest that the first lease may take.
const LONGEST_ACQUIRE: Duration = Duration::from_secs(86_400);

/// What a keeper is to keep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// How many node ids, 1 to 16 384. While the store has fewer, the generator does with fewer.
    pub node_count: u32,
    /// For how many seconds a lease is asked; 1 to 86 400, at least six times `max_skew`.
    pub ttl: u32,
    /// By how many seconds clocks may differ, as in the store's limits; a larger step of the
    /// clock makes the keeper lease anew.
    pub max_skew: u32,
    /// How long the first lease may take, at most a day.
    pub acquire_timeout: Duration,
}

/// One node id, for 300 seconds, within 10 seconds; clocks may differ by 5.
impl Default for Options {
    fn default() -> Self {
        Self { node_count: 1, ttl: 300, max_skew: 5, acquire_timeout: Duration::from_secs(10) }
    }
}

/// Both clocks, read one after the other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reading {
    /// The clock that ids are stamped with: unix nanoseconds.
    pub wall: i64,
    /// A clock that never steps and goes on while the machine sleeps, from any beginning.
    pub boot: Duration,
}

impl Reading {
    /// Returns the unix second.
    #[must_use]
    pub fn second(self) -> i64 {
        self.wall.div_euclid(1_000_000_000)
    }
}

/// What to do next. Until it is answered the same step comes again, and may be done again.
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use = "the keeper waits for the answer"]
pub enum Step {
    /// Call [`LeaseStore::acquire`](crate::LeaseStore::acquire).
    Acquire(Acquire),
    /// Call [`LeaseStore::renew`](crate::LeaseStore::renew).
    Renew(Renew),
    /// Call [`LeaseStore::release`](crate::LeaseStore::release).
    Release(Release),
    /// Make the generator, with a granted lease: once, before the other steps on it.
    Open {
        /// Its node ids, sorted.
        node_ids: Vec<u32>,
        /// Its window.
        lease: Lease,
    },
    /// Call [`Randflake::replace_lease`](randflake::Randflake::replace_lease).
    Replace {
        /// The new node ids, sorted.
        node_ids: Vec<u32>,
        /// The new window.
        lease: Lease,
    },
    /// Call [`Randflake::extend_lease`](randflake::Randflake::extend_lease).
    Extend {
        /// The new end, a unix second.
        end_exclusive: i64,
    },
    /// Call [`Randflake::close`](randflake::Randflake::close).
    Close,
    /// Wait that long, at most 5 seconds, or until [`Keeper::stop`]; no answer is due.
    Sleep(Duration),
    /// The keeper has ended; [`Keeper::last_error`] tells why if it was not asked to.
    Stopped,
}

/// What came of a [`Step`].
#[derive(Debug)]
pub enum Answer {
    /// Of [`Step::Acquire`].
    Acquired(Result<Reply<Acquired>>),
    /// Of [`Step::Renew`].
    Renewed(Result<Reply<Renewed>>),
    /// Of [`Step::Release`].
    Released(Result<Reply<Released>>),
    /// Of [`Step::Open`].
    Opened(Result<()>),
    /// Of [`Step::Replace`]: the first second in which nothing was issued before.
    Replaced(Result<i64>),
    /// Of [`Step::Extend`].
    Extended(Result<()>),
    /// Of [`Step::Close`]: the first second in which nothing was issued, if that is known.
    Closed(Option<i64>),
}

/// How a keeper is doing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// There is no generator yet.
    Acquiring,
    /// All is well.
    Holding,
    /// The store did not grant what it was last asked, or a lease was lost; the generator goes on
    /// to the end of what it has, and the keeper tries again.
    Retrying,
    /// Asked to stop, failed to begin, or forgotten.
    Stopped,
}

impl State {
    /// Returns the name that all languages use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acquiring => "acquiring",
            Self::Holding => "holding",
            Self::Retrying => "retrying",
            Self::Stopped => "stopped",
        }
    }
}

/// A node id of the Term.
#[derive(Clone, Copy, Debug)]
struct Row {
    token: Token,
    lease: NodeLease,
}

/// Returns which of some node ids somebody has by hand.
type ByHand = dyn FnMut(&[u32]) -> Vec<u32> + Send;

/// What is asked of the store until it answers: a repeat finds what the first request was granted.
#[derive(Clone, Copy, Debug)]
struct Ask {
    token: Token,
    want: u32,
    /// For a Term of its own; else for more nodes of the present one.
    fresh: bool,
}

/// See the [module](self).
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct Keeper {
    options: Options,
    note: Note,
    by_hand: Box<ByHand>,
    /// Node ids that were refused for that, since the last ones that were not.
    refused: Vec<u32>,
    random: Box<dyn FnMut() -> u64 + Send>,
    /// The step that has no answer yet, and when it was first given.
    pending: Option<(Step, Reading)>,
    /// Steps on the generator that come before all others.
    actions: VecDeque<Step>,
    /// The Term, and what the next `Replace` makes of it.
    rows: Vec<Row>,
    /// Rows that the next `Replace` or `Close` sets free.
    leaving: Vec<Row>,
    releases: VecDeque<(Release, i64)>,
    ask: Option<Ask>,
    /// The tokens that are still to be renewed in this round.
    round: Vec<Token>,
    /// Seconds that the store really grants.
    ttl: u32,
    opened: bool,
    /// The Term must not be renewed, only replaced: it is lost, or the clock has stepped.
    anew: bool,
    /// The store has no more nodes until the next round.
    few: bool,
    /// When the request was made that had the last good reply.
    good: Option<Reading>,
    began: Option<Duration>,
    /// Nothing before this, after a failure.
    pause_until: Duration,
    renew_at: Duration,
    failures: u32,
    stopping: bool,
    stopped: bool,
    /// See [`Keeper::accepts_another_store`].
    replaced: bool,
    renewals: u64,
    losses: u64,
    /// With the unix second in which it was noticed.
    last_error: Option<(Error, i64)>,
}

impl Keeper {
    /// Makes a keeper that holds nothing yet.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: options out of range.
    pub fn new(options: Options) -> Result<Self> {
        Self::with_random(options, || u64::from_ne_bytes(random_bytes()))
    }

    /// Makes a keeper with a random source for its tokens and pauses, for tests. Of two keepers
    /// with the same tokens each would take the other's lease for its own.
    ///
    /// # Errors
    ///
    /// As [`Keeper::new`].
    pub fn with_random(
        options: Options,
        random: impl FnMut() -> u64 + Send + 'static,
    ) -> Result<Self> {
        let Options { node_count, ttl, max_skew, acquire_timeout } = options;
        if node_count == 0 || node_count as usize > layout::MAX_NODES {
            return Err(Error::invalid_argument(format!(
                "a generator has 1 to {} node ids, got {node_count}",
                layout::MAX_NODES
            )));
        }
        if !(1..=86_400).contains(&ttl) || max_skew > ttl / 6 {
            return Err(Error::invalid_argument(format!(
                "a lease must have 1 to 86400 seconds and at least six times the largest skew, \
                 got {ttl} with a skew of {max_skew}"
            )));
        }
        if acquire_timeout > LONGEST_ACQUIRE {
            return Err(Error::invalid_argument(format!(
                "the first lease may take 0 to {} seconds, got {}",
                LONGEST_ACQUIRE.as_secs(),
                acquire_timeout.as_secs_f64()
            )));
        }
        Ok(Self {
            options,
            note: Note::default(),
            by_hand: Box::new(|_| Vec::new()),
            refused: Vec::new(),
            random: Box::new(random),
            pending: None,
            actions: VecDeque::new(),
            rows: Vec::new(),
            leaving: Vec::new(),
            releases: VecDeque::new(),
            ask: None,
            round: Vec::new(),
            ttl,
            opened: false,
            anew: true,
            few: false,
            good: None,
            began: None,
            pause_until: Duration::ZERO,
            renew_at: Duration::ZERO,
            failures: 0,
            stopping: false,
            stopped: false,
            replaced: false,
            renewals: 0,
            losses: 0,
            last_error: None,
        })
    }

    /// Sets by what an operator may know the holder; nothing unless set.
    #[must_use]
    pub fn note(mut self, note: Note) -> Self {
        self.note = note;
        self
    }

    /// Sets what tells which of the node ids that the store has granted somebody has by hand, in
    /// this process or one it was forked from; see [`NodeIds::grant`](randflake::NodeIds::grant).
    /// They are given back for others. None unless set.
    #[must_use]
    pub fn by_hand(mut self, by_hand: impl FnMut(&[u32]) -> Vec<u32> + Send + 'static) -> Self {
        self.by_hand = Box::new(by_hand);
        self
    }

    /// Returns what to do now.
    pub fn step(&mut self, now: Reading) -> Step {
        if self.stopped {
            return Step::Stopped;
        }
        self.began.get_or_insert(now.boot);
        if let Some((step, _)) = &self.pending {
            return step.clone();
        }
        self.notice_step_of_clock(now);
        let step = self.next(now);
        match &step {
            Step::Sleep(pause) => return Step::Sleep(LONGEST_SLEEP.min(*pause)),
            Step::Stopped => self.stopped = true,
            _ => self.pending = Some((step.clone(), now)),
        }
        step
    }

    fn next(&mut self, now: Reading) -> Step {
        if self.stopping && self.opened {
            return Step::Close;
        }
        if self.stopping {
            // Rows that no generator was made for have never been stamped.
            self.leaving.append(&mut self.rows);
            self.release_leaving(layout::EPOCH);
            let release = self.releases.front().map(|(release, _)| release.clone());
            return release.map_or(Step::Stopped, Step::Release);
        }
        if let Some(action) = self.actions.pop_front() {
            return action;
        }
        if now.boot < self.pause_until {
            return Step::Sleep(self.pause_until.saturating_sub(now.boot));
        }
        // An end that is near is a reason to take another lease, but the store may have no other:
        // in turns with trying to keep this one.
        let short = self.left(now) < Duration::from_secs(self.ttl.into()) / 6;
        if self.anew || (short && self.failures % 2 == 1) {
            return self.acquire(true, self.options.node_count, now);
        }
        if self.opened && self.round.is_empty() && now.boot >= self.renew_at {
            self.few = false;
            self.round = self.rows.iter().map(|row| row.token).collect();
            self.round.dedup();
        }
        if let Some(&token) = self.round.last() {
            return Step::Renew(Renew {
                token,
                node_ids: self
                    .rows
                    .iter()
                    .filter(|row| row.token == token)
                    .map(|row| row.lease.node_id)
                    .collect(),
                ttl: self.options.ttl,
                client_now: now.second(),
            });
        }
        let missing = (self.options.node_count as usize).saturating_sub(self.rows.len());
        if missing > 0 && !self.few {
            return self.acquire(false, u32::try_from(missing).expect("a count"), now);
        }
        // Before the generator is made all nodes are asked for, as far as there are any.
        if !self.opened {
            let (node_ids, lease) = self.term().expect("granted leases share their seconds");
            return Step::Open { node_ids, lease };
        }
        // What is over by itself needs no release.
        self.releases.retain(|(_, end)| *end > now.second());
        if let Some((release, _)) = self.releases.front() {
            return Step::Release(release.clone());
        }
        Step::Sleep(self.renew_at.saturating_sub(now.boot))
    }

    /// Returns for how long the store is not to be asked, unless something happens meanwhile: a
    /// [`Step::Sleep`] may be shorter.
    #[must_use]
    pub fn rests_for(&self, now: Reading) -> Duration {
        let pauses = now.boot < self.pause_until;
        let until = if pauses { self.pause_until } else { self.renew_at };
        until.saturating_sub(now.boot)
    }

    /// Tells what came of the last step.
    ///
    /// # Errors
    ///
    /// [`StoreUnavailable`](ErrorKind::StoreUnavailable): this is not the answer to that
    /// step, and the connection that it came from must not be used again. A reply to another
    /// request counts as a failure of this one; an answer of another kind changes nothing.
    pub fn answer(&mut self, answer: Answer, now: Reading) -> Result<()> {
        if self.stopped {
            return Ok(());
        }
        let Some((step, asked)) = self.pending.take() else {
            return Err(unasked());
        };
        match (&step, answer) {
            (Step::Acquire(Acquire { token, .. }), Answer::Acquired(reply)) => {
                return self.bound(reply, *token, Operation::Acquire, now, |keeper, outcome| {
                    keeper.acquired(outcome, asked)
                });
            }
            (Step::Renew(Renew { token, node_ids, .. }), Answer::Renewed(reply)) => {
                return self.bound(reply, *token, Operation::Renew, now, |keeper, outcome| {
                    keeper.renewed(*token, node_ids, outcome, asked)
                });
            }
            (Step::Release(Release { token, .. }), Answer::Released(reply)) => {
                // At the end there is one try: what it does not free is free at its end.
                let release = self.releases.pop_front();
                if reply.is_err() && !self.stopping {
                    self.releases.extend(release);
                }
                return self.bound(reply, *token, Operation::Release, now, |_, _| Ok(()));
            }
            (Step::Open { .. }, Answer::Opened(done)) => match done {
                Ok(()) => self.opened = true,
                Err(error) => self.refused(error, now),
            },
            (Step::Extend { .. }, Answer::Extended(done)) => {
                if let Err(error) = done {
                    self.refused(error, now);
                }
            }
            (Step::Replace { .. }, Answer::Replaced(done)) => match done {
                Ok(used_until) => self.release_leaving(used_until),
                Err(error) => self.refused(error, now),
            },
            (Step::Close, Answer::Closed(used_until)) => {
                self.opened = false;
                self.leaving.append(&mut self.rows);
                match used_until {
                    Some(used_until) => self.release_leaving(used_until),
                    None => self.leaving.clear(), // nobody knows what was stamped
                }
            }
            _ => {
                self.pending = Some((step, asked));
                return Err(unasked());
            }
        }
        Ok(())
    }

    /// Takes the outcome of a reply that answers this very request, and a failure for a failure.
    fn bound<T>(
        &mut self,
        reply: Result<Reply<T>>,
        token: Token,
        operation: Operation,
        now: Reading,
        take: impl FnOnce(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        let mut bound = Ok(());
        let done = reply.and_then(|reply| {
            let outcome = reply.answer_to(token, operation).inspect_err(|foreign| {
                bound = Err(foreign.clone());
            })?;
            // But why it ends stays told while it gives back what it has.
            if !self.stopping {
                self.last_error = None;
            }
            take(self, outcome)
        });
        match done {
            Ok(()) => self.failures = 0,
            Err(error) => self.failed(error, now),
        }
        bound
    }

    fn acquire(&mut self, fresh: bool, want: u32, now: Reading) -> Step {
        let ask = self.ask.filter(|ask| ask.fresh == fresh);
        let Ask { token, want, .. } =
            ask.unwrap_or_else(|| Ask { token: self.token(), want, fresh });
        self.ask = Some(Ask { token, want, fresh });
        let (ttl, note) = (self.options.ttl, self.note);
        Step::Acquire(Acquire { token, want, ttl, client_now: now.second(), note })
    }

    fn acquired(&mut self, outcome: Acquired, asked: Reading) -> Result<()> {
        let (store_now, leases) = match outcome {
            Acquired::Granted { now, leases } => (now, leases),
            Acquired::Busy { now, free_at } => {
                // Under the next token other node ids are looked at.
                return match self.ask.take() {
                    Some(Ask { fresh: false, .. }) => {
                        self.few = true;
                        Ok(())
                    }
                    _ if !self.refused.is_empty() => Err(all_by_hand(&self.refused)),
                    _ => Err(exhausted(now, free_at)),
                };
            }
            Acquired::Quarantined { now, until } => return Err(quarantined(now, until)),
            Acquired::ClockSkew { store_now, max_skew } => {
                return Err(skewed(asked.second(), store_now, max_skew));
            }
        };
        let Some(Ask { token, fresh, .. }) = self.ask.take() else { return Ok(()) };
        let granted: Vec<Row> = leases.iter().map(|&lease| Row { token, lease }).collect();
        // A request that was repeated for long can be answered with a lease that is over.
        let usable = window(&leases).is_some_and(|window| window.end_exclusive() > store_now);
        if self.stopping || !usable {
            self.give_back(&granted);
            return if usable { Ok(()) } else { Err(unusable()) };
        }
        let node_ids: Vec<u32> = leases.iter().map(|lease| lease.node_id).collect();
        let by_hand = (self.by_hand)(&node_ids);
        let (by_hand, granted): (Vec<Row>, Vec<Row>) =
            granted.into_iter().partition(|row| by_hand.contains(&row.lease.node_id));
        self.give_back(&by_hand);
        if granted.is_empty() {
            self.few |= !fresh;
            // Given back only after another try, which cannot bring the same ones.
            self.refused.extend(node_ids);
            return if fresh { Err(all_by_hand(&self.refused)) } else { Ok(()) };
        }
        self.refused.clear();
        let leases: Vec<NodeLease> = granted.iter().map(|row| row.lease).collect();
        // A node id that comes again under another token was lost under the first. Rows without a
        // second in common cannot be one Term: the new ones go on.
        let mut rows = if fresh { Vec::new() } else { self.rows.clone() };
        rows.retain(|row| leases.iter().all(|lease| lease.node_id != row.lease.node_id));
        rows.extend(&granted);
        if window_of(&rows).is_none() {
            rows = granted;
        }
        let is_kept = |row: &Row| {
            rows.iter()
                .any(|kept| kept.token == row.token && kept.lease.node_id == row.lease.node_id)
        };
        self.leaving.extend(self.rows.iter().filter(|row| !is_kept(row)));
        self.rows = rows;
        self.round.clear();
        (self.anew, self.few) = (false, self.few && !fresh);
        self.is_good(store_now, asked);
        self.replace();
        Ok(())
    }

    fn renewed(
        &mut self,
        token: Token,
        node_ids: &[u32],
        outcome: Renewed,
        asked: Reading,
    ) -> Result<()> {
        let (store_now, leases) = match outcome {
            Renewed::Extended { now, leases } => (now, leases),
            Renewed::Lost { now } => (now, Vec::new()),
            Renewed::ClockSkew { store_now, max_skew } => {
                return Err(skewed(asked.second(), store_now, max_skew));
            }
        };
        let before = self.window_end();
        let mut gone = Vec::new();
        self.rows.retain_mut(|row| {
            if row.token != token || !node_ids.contains(&row.lease.node_id) {
                return true;
            }
            // A token can be granted again after its release, by a request that was late. Only the
            // lease that this Term was made for can be extended.
            let NodeLease { node_id, start, .. } = row.lease;
            let same = leases.iter().find(|new| (new.node_id, new.start) == (node_id, start));
            match same {
                Some(new) => {
                    let end = &mut row.lease.end_exclusive;
                    *end = new.end_exclusive.min(layout::LIFETIME_END).max(*end);
                }
                None => gone.push(*row),
            }
            same.is_some()
        });
        self.round.retain(|other| *other != token);
        if gone.is_empty() {
            self.renewals += 1;
            if self.round.is_empty() {
                // An unanswered request for another Term is moot.
                self.ask = self.ask.filter(|ask| !ask.fresh);
                self.is_good(store_now, asked);
            }
            if self.window_end() > before {
                let end_exclusive = self.window_end().unwrap_or_default();
                self.actions.push_back(Step::Extend { end_exclusive });
            }
            return Ok(());
        }
        self.losses += gone.len() as u64;
        self.last_error = Some((lost(&gone), asked.second()));
        if self.rows.is_empty() {
            // Until there are others the Term goes on to the end it was granted.
            self.rows = gone;
            self.anew = true;
        } else {
            self.leaving.extend(gone);
            self.few = false;
            self.replace();
        }
        Ok(())
    }

    /// Sets the timers after a reply that leaves all rows as they are wanted.
    fn is_good(&mut self, store_now: i64, asked: Reading) {
        let granted = self.window_end().map_or(0, |end| end.saturating_sub(store_now));
        let granted = u32::try_from(granted.max(1)).unwrap_or(u32::MAX);
        self.ttl = self.options.ttl.min(granted);
        self.good = Some(asked);
        let third = Duration::from_secs(self.ttl.into()) / 3;
        self.renew_at = asked.boot + third.mul_f64(1.0 - 0.2 * self.fraction());
    }

    fn failed(&mut self, error: Error, now: Reading) {
        if error.kind() == ErrorKind::Forked {
            self.forget();
            return;
        }
        let passes = matches!(
            error.kind(),
            ErrorKind::StoreUnavailable
                | ErrorKind::NodesExhausted
                | ErrorKind::ClockSkew
                | ErrorKind::StoreQuarantined
        );
        let is_replaced = error.kind() == ErrorKind::StoreReplaced;
        self.last_error = Some((error, now.second()));
        if !self.opened && !self.anew {
            self.few = true; // begins with what it has
            return;
        }
        self.failures += 1;
        let ttl = Duration::from_secs(self.ttl.into());
        let left = self.left(now);
        if is_replaced && self.opened && left.is_zero() {
            // Nothing of the old store is of use any more.
            (self.replaced, self.anew) = (true, true);
            self.round.clear();
        }
        // In time for another try before the end; after it, calls fail until the store is back.
        let cap = if left.is_zero() { LONGEST_OUTAGE_PAUSE } else { left / 4 };
        let cap = cap.min(ttl / 10);
        let ceiling = (LEAST_PAUSE * (1 << self.failures.min(16))).min(cap).max(LEAST_PAUSE);
        let pause = LEAST_PAUSE + ceiling.saturating_sub(LEAST_PAUSE).mul_f64(self.fraction());
        self.pause_until = now.boot + pause;
        if !self.opened {
            let deadline = self.began.unwrap_or(now.boot) + self.options.acquire_timeout;
            self.pause_until = self.pause_until.min(deadline);
            self.stopping |= !passes || now.boot >= deadline;
        }
    }

    /// Takes a refusal of the generator: it was closed or forked by somebody else.
    fn refused(&mut self, error: Error, now: Reading) {
        if error.kind() == ErrorKind::Forked {
            self.forget();
            return;
        }
        self.last_error = Some((error, now.second()));
        self.stopping = true;
    }

    fn notice_step_of_clock(&mut self, now: Reading) {
        let Some(good) = self.good else { return };
        let wall = i128::from(now.wall) - i128::from(good.wall);
        let boot = now.boot.as_nanos().cast_signed() - good.boot.as_nanos().cast_signed();
        let step = wall - boot;
        // The clocks are never read at the very same time.
        let allowed = Duration::from_secs(self.options.max_skew.max(1).into());
        if step.unsigned_abs() <= allowed.as_nanos() {
            return;
        }
        let error = Error::new(
            ErrorKind::ClockSkew,
            format!(
                "the machine's clock has stepped by {} seconds, and {} are allowed; a new lease \
                 is needed",
                step / 1_000_000_000,
                self.options.max_skew
            ),
        );
        self.last_error = Some((error, now.second()));
        self.good = None;
        self.anew = true;
        self.round.clear();
        self.pause_until = Duration::ZERO;
    }

    /// Lets the generator go over to the rows, whatever was planned for it before.
    fn replace(&mut self) {
        if !self.opened {
            self.release_leaving(layout::EPOCH); // never stamped
            return;
        }
        self.actions.clear();
        if let Some((node_ids, lease)) = self.term() {
            self.actions.push_back(Step::Replace { node_ids, lease });
        }
    }

    /// Gives back what no id was made with.
    fn give_back(&mut self, rows: &[Row]) {
        for &Row { token, lease } in rows {
            let NodeLease { node_id, start, end_exclusive } = lease;
            let release = Release { token, node_ids: vec![node_id], used_until: start };
            self.releases.push_back((release, end_exclusive));
        }
    }

    /// Gives back the rows that the generator is sealed for.
    fn release_leaving(&mut self, used_until: i64) {
        for row in mem::take(&mut self.leaving) {
            let NodeLease { node_id, end_exclusive, .. } = row.lease;
            let same = |release: &&mut (Release, i64)| {
                release.0.token == row.token && release.0.used_until == used_until
            };
            if let Some((release, end)) = self.releases.iter_mut().find(same) {
                release.node_ids.push(node_id);
                *end = end_exclusive.max(*end);
            } else {
                let release = Release { token: row.token, node_ids: vec![node_id], used_until };
                self.releases.push_back((release, end_exclusive));
            }
        }
    }

    fn term(&self) -> Option<(Vec<u32>, Lease)> {
        Some((self.node_ids(), window_of(&self.rows)?))
    }

    fn window_end(&self) -> Option<i64> {
        self.rows.iter().map(|row| row.lease.end_exclusive).min()
    }

    fn left(&self, now: Reading) -> Duration {
        let left = self
            .window_end()
            .map_or(0, |end| end.saturating_mul(1_000_000_000).saturating_sub(now.wall).max(0));
        Duration::from_nanos(left.unsigned_abs())
    }

    fn token(&mut self) -> Token {
        let mut bytes = [0; 16];
        for half in bytes.as_chunks_mut::<8>().0 {
            *half = (self.random)().to_ne_bytes();
        }
        Token::from_bytes(bytes)
    }

    /// Returns a random number from 0 to 1.
    fn fraction(&mut self) -> f64 {
        f64::from(u32::try_from((self.random)() >> 32).expect("32 bits")) / f64::from(u32::MAX)
    }

    /// Asks the keeper to end: the next steps close the generator and give its node ids back. A
    /// step that is under way is to be answered first; with an error if it was given up.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Ends the keeper at once, because whoever drives it has failed: the generator goes on to the
    /// end of its lease, and nothing is given back.
    pub fn give_up(&mut self, error: Error, unix_second: i64) {
        self.last_error = Some((error, unix_second));
        self.stopped = true;
        self.pending = None;
    }

    /// Returns, once, whether to call
    /// [`LeaseStore::accept_another`](crate::LeaseStore::accept_another): the store was replaced, and
    /// all that it granted is over. Ask after each [answer](Keeper::answer).
    pub fn accepts_another_store(&mut self) -> bool {
        mem::take(&mut self.replaced)
    }

    /// Forgets everything, in a forked child: the lease is the parent's. No step but
    /// [`Step::Stopped`] comes from here on.
    pub fn forget(&mut self) {
        self.stopped = true;
        self.pending = None;
        self.rows.clear();
        self.leaving.clear();
        self.releases.clear();
    }

    /// Returns how the keeper is doing.
    #[must_use]
    pub fn state(&self) -> State {
        if self.stopped || self.stopping {
            State::Stopped
        } else if !self.opened {
            State::Acquiring
        } else if self.anew || self.failures > 0 {
            State::Retrying
        } else {
            State::Holding
        }
    }

    /// Returns the node ids that are held, sorted.
    #[must_use]
    pub fn node_ids(&self) -> Vec<u32> {
        let mut node_ids: Vec<u32> = self.rows.iter().map(|row| row.lease.node_id).collect();
        node_ids.sort_unstable();
        node_ids
    }

    /// Returns the time to the end of what is held; zero if it is over.
    #[must_use]
    pub fn time_left(&self, now: Reading) -> Duration {
        self.left(now)
    }

    /// Returns how many renewals were granted.
    #[must_use]
    pub fn renewals(&self) -> u64 {
        self.renewals
    }

    /// Returns how many node ids were lost before they were given back.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Returns the time to the next request of the store; zero if it is due or under way.
    #[must_use]
    pub fn next_attempt_in(&self, now: Reading) -> Duration {
        let pause = self.pause_until.saturating_sub(now.boot);
        if self.pending.is_some() {
            Duration::ZERO
        } else if self.anew || !self.round.is_empty() {
            pause
        } else {
            pause.max(self.renew_at.saturating_sub(now.boot))
        }
    }

    /// Returns why the store did not grant what it was last asked, or why the keeper has ended;
    /// nothing once the store has granted it.
    #[must_use]
    pub fn last_error(&self) -> Option<&Error> {
        self.last_error.as_ref().map(|(error, _)| error)
    }

    /// Returns the unix second, on the machine's clock, of [`last_error`](Keeper::last_error).
    #[must_use]
    pub fn last_error_at(&self) -> Option<i64> {
        self.last_error.as_ref().map(|(_, second)| *second)
    }
}

/// Shows no token: whoever has one could release the lease.
impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("state", &self.state())
            .field("node_ids", &self.node_ids())
            .field("last_error", &self.last_error())
            .finish_non_exhaustive()
    }
}

fn window_of(rows: &[Row]) -> Option<Lease> {
    window(&rows.iter().map(|row| row.lease).collect::<Vec<_>>())
}

#[cold]
fn unasked() -> Error {
    Error::new(
        ErrorKind::StoreUnavailable,
        "this answers nothing that was asked; the connection that it came from must be discarded",
    )
}

#[cold]
fn unusable() -> Error {
    Error::new(
        ErrorKind::StoreUnavailable,
        "the store granted seconds that are over or that its node ids do not share; they are \
         given back",
    )
}

#[cold]
fn all_by_hand(node_ids: &[u32]) -> Error {
    Error::new(
        ErrorKind::NodesExhausted,
        format!(
            "the store has no node ids but {node_ids:?}, which this process has by hand; lease all \
             node ids of an id column, or give all of them by hand"
        ),
    )
}

#[cold]
fn exhausted(now: i64, free_at: Option<i64>) -> Error {
    let Some(free_at) = free_at else {
        return Error::new(
            ErrorKind::NodesExhausted,
            "every node id that was looked at is leased; try again, or let fewer holders run",
        );
    };
    let error = Error::new(
        ErrorKind::NodesExhausted,
        format!(
            "every node id is leased; the next one is free from the unix second {free_at} on, \
             unless its holder renews it: try again then, or let fewer holders run"
        ),
    );
    error.with_retry_after(seconds(free_at.saturating_sub(now)))
}

#[cold]
fn quarantined(now: i64, until: i64) -> Error {
    let error = Error::new(
        ErrorKind::StoreQuarantined,
        format!(
            "the store may have forgotten leases, and grants new ones from the unix second \
             {until} on; what is held can go on"
        ),
    );
    error.with_retry_after(seconds(until.saturating_sub(now)))
}

#[cold]
fn lost(rows: &[Row]) -> Error {
    let node_ids: Vec<u32> = rows.iter().map(|row| row.lease.node_id).collect();
    Error::new(
        ErrorKind::LeaseLost,
        format!("the lease of node ids {node_ids:?} has gone to somebody else; a new one is taken"),
    )
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.max(0).unsigned_abs())
}
