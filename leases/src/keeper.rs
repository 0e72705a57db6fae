//! The keeper of a generator's lease: a state machine without I/O, clocks or threads.
//!
//! The caller asks for a [`Step`], does it, and passes the outcome to [`Keeper::answer`]; both with a
//! [`Reading`] of the clocks.
//!
//! A *Term* is what a generator makes ids with: its node ids, and the seconds that all their leases
//! cover. The keeper renews the leases after a third of the ttl, and replaces a lost one. If neither
//! works, the generator stops by itself at the end of its Term, and the keeper keeps trying. Clocks
//! affect only when it asks the store, never whether an id is unique.
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

mod answers;
mod errors;
mod steps;

use std::{collections::VecDeque, fmt, mem, time::Duration};

use randflake::{Error, Lease, Result, layout};

use crate::{
    metrics::Requests,
    note::Note,
    protocol::{Acquire, Acquired, NodeLease, Release, Released, Renew, Renewed, Reply, window},
    token::{Token, random_bytes},
};

pub use self::errors::passes;
pub use crate::clocks::Reading;

/// Shortest pause after a failure.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
/// Longest pause after a failure while there is no lease: the generator recovers at most this long
/// after its store. Pauses are random, so that the processes of a fleet do not return all at once.
const LONGEST_OUTAGE_PAUSE: Duration = Duration::from_secs(3);
/// Longest sleep: a step of the clock is detected within this time.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

/// The longest time that the first lease may take.
const LONGEST_ACQUIRE: Duration = Duration::from_secs(86_400);

/// The options of a keeper.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// The number of node ids, 1 to 16 384. While the store has fewer, the generator works with fewer.
    pub node_count: u32,
    /// The length of a lease in seconds, 1 to 86 400 and at least six times `max_skew`.
    pub ttl: u32,
    /// The largest difference between two clocks in seconds; that of the namespace if it is smaller.
    /// After a larger step of the clock, the keeper takes a new lease.
    pub max_skew: u32,
    /// How long the first lease may take, at most a day.
    pub acquire_timeout: Duration,
}

/// One node id, for 300 seconds, acquired within 10 seconds; clocks may differ by 5.
impl Default for Options {
    fn default() -> Self {
        Self { node_count: 1, ttl: 300, max_skew: 5, acquire_timeout: Duration::from_secs(10) }
    }
}

/// What to do next. The same step is returned until it is answered, and may be done again.
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use = "the keeper waits for its answer"]
pub enum Step {
    /// Call [`LeaseStore::acquire`](crate::LeaseStore::acquire).
    Acquire(Acquire),
    /// Call [`LeaseStore::renew`](crate::LeaseStore::renew).
    Renew(Renew),
    /// Call [`LeaseStore::release`](crate::LeaseStore::release).
    Release(Release),
    /// Make the generator, with a granted lease. This comes once, before the other steps on the
    /// generator.
    Open {
        /// Its node ids, sorted.
        node_ids: Vec<u32>,
        /// Its window.
        lease: Lease,
    },
    /// Call [`Randflake::replace_lease`](randflake::Randflake::replace_lease), with
    /// [`Keeper::most_drift`].
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
    /// Wait this long, at most 5 seconds, or until [`Keeper::stop`]; no answer is expected.
    Sleep(Duration),
    /// The keeper has ended. Unless it was asked to, [`Keeper::last_error`] says why.
    Stopped,
}

/// The outcome of a [`Step`].
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
    /// Of [`Step::Close`]: the first second in which nothing was issued, if known.
    Closed(Option<i64>),
}

/// The state of a keeper.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// There is no generator yet.
    Acquiring,
    /// The lease is held and renewed in time.
    Holding,
    /// The lease is held, but no id comes within a second: the clock is behind the last id because
    /// it was set back, or before the epoch, or after the lifetime. The keeper makes no ids and
    /// never reports this itself.
    Waiting,
    /// The store did not grant the last request, or a lease was lost. The generator works until its
    /// lease ends, and the keeper tries again.
    Retrying,
    /// The lease has ended: there are no ids, and the keeper tries again. [`Keeper::state`] does
    /// not know the time, and calls this holding or retrying.
    Expired,
    /// It was asked to stop, failed to start, or [forgot](Keeper::forget) its lease in a forked
    /// child.
    Stopped,
}

impl State {
    /// Returns the name that all languages use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acquiring => "acquiring",
            Self::Holding => "holding",
            Self::Waiting => "waiting",
            Self::Retrying => "retrying",
            Self::Expired => "expired",
            Self::Stopped => "stopped",
        }
    }
}

/// A node id of the Term, and the lease that it was granted with.
#[derive(Clone, Copy, Debug)]
struct HeldNode {
    token: Token,
    lease: NodeLease,
}

/// Returns which of some node ids are manually assigned.
type FindManual = dyn FnMut(&[u32]) -> Vec<u32> + Send;

/// An acquire without an answer. It is repeated with the same token, to find what the first request
/// was granted.
#[derive(Clone, Copy, Debug)]
struct PendingAcquire {
    token: Token,
    want: u32,
    /// For a new Term; otherwise for more node ids of the current one.
    fresh: bool,
}

/// Keeps the lease of one generator; see the [module](self).
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct Keeper {
    options: Options,
    note: Note,
    find_manual: Box<FindManual>,
    /// Manually assigned node ids that the store has granted since it last granted others.
    refused_manual: Vec<u32>,
    random: Box<dyn FnMut() -> u64 + Send>,
    /// The step that has no answer yet, and when it was first given.
    pending: Option<(Step, Reading)>,
    /// Steps on the generator that come before all others.
    actions: VecDeque<Step>,
    /// The node ids of the Term, or of the next one if a `Replace` is queued.
    held: Vec<HeldNode>,
    /// Node ids to release after the next `Replace` or `Close`.
    pending_release: Vec<HeldNode>,
    /// With the end of each lease.
    releases: VecDeque<(Release, i64)>,
    pending_acquire: Option<PendingAcquire>,
    /// The tokens that are still to be renewed in this round.
    to_renew: Vec<Token>,
    /// How many seconds the store grants per lease.
    ttl: u32,
    /// The ttl of the options, or the longest lease of the namespace if that is shorter.
    longest: u32,
    /// The largest skew of the options, or that of the namespace if it is smaller.
    max_skew: u32,
    /// There is a generator.
    opened: bool,
    /// The Term must be replaced, not renewed: it is lost, or the clock has stepped.
    needs_new_lease: bool,
    /// The store has no more free node ids until the next round.
    pool_exhausted: bool,
    /// When the last successful request was made.
    last_success: Option<Reading>,
    /// When the first step was requested.
    started: Option<Duration>,
    /// After a failure: no request before this time.
    pause_until: Duration,
    renew_at: Duration,
    failures: u32,
    stopping: bool,
    stopped: bool,
    /// See [`Keeper::accepts_another_store`].
    store_replaced: bool,
    renewals: u64,
    losses: u64,
    replacements: u64,
    /// How many node ids of the Term were lost and have not been replaced so far.
    vacant: usize,
    requests: Requests,
    /// With the unix second in which it occurred.
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

    /// Makes a keeper with a random source for its tokens and pauses, for tests. If two keepers had
    /// the same tokens, each would take the other's lease for its own.
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
                "a generator must have 1 to {} node ids, got {node_count}",
                layout::MAX_NODES
            )));
        }
        if !(1..=86_400).contains(&ttl) || max_skew > ttl / 6 {
            return Err(Error::invalid_argument(format!(
                "a lease must last 1 to 86400 seconds and at least six times the largest skew, got \
                 {ttl} with a skew of {max_skew}"
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
            find_manual: Box::new(|_| Vec::new()),
            refused_manual: Vec::new(),
            random: Box::new(random),
            pending: None,
            actions: VecDeque::new(),
            held: Vec::new(),
            pending_release: Vec::new(),
            releases: VecDeque::new(),
            pending_acquire: None,
            to_renew: Vec::new(),
            ttl,
            longest: ttl,
            max_skew,
            opened: false,
            needs_new_lease: true,
            pool_exhausted: false,
            last_success: None,
            started: None,
            pause_until: Duration::ZERO,
            renew_at: Duration::ZERO,
            failures: 0,
            stopping: false,
            stopped: false,
            store_replaced: false,
            renewals: 0,
            losses: 0,
            replacements: 0,
            vacant: 0,
            requests: Requests::default(),
            last_error: None,
        })
    }

    /// Sets the note by which an operator recognises the holder; empty by default.
    #[must_use]
    pub fn note(mut self, note: Note) -> Self {
        self.note = note;
        self
    }

    /// Sets a function that returns which granted node ids are manually assigned, in this process or
    /// one it was forked from; see [`NodeIds::grant`](randflake::NodeIds::grant). The keeper releases
    /// them and takes others. By default none are.
    #[must_use]
    pub fn manual(mut self, find_manual: impl FnMut(&[u32]) -> Vec<u32> + Send + 'static) -> Self {
        self.find_manual = Box::new(find_manual);
        self
    }

    /// Returns the keeper of a copy of this process, which wakes up with fresh randomness.
    #[cfg(test)]
    pub(crate) fn copied(
        &self,
        random: impl FnMut() -> u64 + Send + 'static,
        find_manual: impl FnMut(&[u32]) -> Vec<u32> + Send + 'static,
    ) -> Self {
        Self {
            options: self.options,
            find_manual: Box::new(find_manual),
            refused_manual: self.refused_manual.clone(),
            random: Box::new(random),
            pending: self.pending.clone(),
            actions: self.actions.clone(),
            held: self.held.clone(),
            pending_release: self.pending_release.clone(),
            releases: self.releases.clone(),
            to_renew: self.to_renew.clone(),
            requests: self.requests.clone(),
            last_error: self.last_error.clone(),
            ..*self
        }
    }

    /// Asks the keeper to end: the next steps close the generator and release its node ids. Answer a
    /// step in progress first, with an error if it was abandoned.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Ends the keeper at once, because its caller has failed. The generator works until its lease
    /// ends, and nothing is released.
    pub fn give_up(&mut self, error: Error, unix_second: i64) {
        self.last_error = Some((error, unix_second));
        self.stopped = true;
        self.pending = None;
    }

    /// Returns, once, whether to call
    /// [`LeaseStore::accept_another`](crate::LeaseStore::accept_another): the store was replaced,
    /// and every lease of the old one has ended. Call it after each [answer](Keeper::answer).
    pub fn accepts_another_store(&mut self) -> bool {
        mem::take(&mut self.store_replaced)
    }

    /// Forgets everything, in a forked child, because the lease belongs to the parent. Every later
    /// step is [`Step::Stopped`].
    pub fn forget(&mut self) {
        self.stopped = true;
        self.pending = None;
        self.held.clear();
        self.pending_release.clear();
        self.releases.clear();
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> State {
        if self.stopped || self.stopping {
            State::Stopped
        } else if !self.opened {
            State::Acquiring
        } else if self.needs_new_lease || self.failures > 0 {
            State::Retrying
        } else {
            State::Holding
        }
    }

    /// Returns the state at this time, when the lease may have ended.
    #[must_use]
    pub fn state_at(&self, now: Reading) -> State {
        match self.state() {
            State::Holding | State::Retrying if self.left(now).is_zero() => State::Expired,
            state => state,
        }
    }

    /// Returns whether the generator has everything that the keeper knows of, and the keeper is to
    /// continue.
    pub(crate) fn is_settled(&self) -> bool {
        self.actions.is_empty() && self.opened && !self.stopping && !self.stopped
    }

    /// Returns the node ids that are held, sorted.
    #[must_use]
    pub fn node_ids(&self) -> Vec<u32> {
        let mut node_ids: Vec<u32> = self.held.iter().map(|row| row.lease.node_id).collect();
        node_ids.sort_unstable();
        node_ids
    }

    /// Returns the time to the end of what is held; zero if it has ended.
    #[must_use]
    pub fn time_left(&self, now: Reading) -> Duration {
        self.left(now)
    }

    /// Returns how many seconds stamps may be ahead of the clock over `lease`, the window of
    /// [`Step::Open`] or [`Step::Replace`]: at most a third of it, and of what the store grants at a
    /// time. That may be less than was asked for, and a window that was renewed is longer.
    /// [`ReleaseDead`](crate::operator::ReleaseDead) relies on it.
    #[must_use]
    pub fn most_drift(&self, lease: Lease) -> u32 {
        let granted = (lease.end_exclusive() - lease.start()).min(self.ttl.into());
        u32::try_from(granted / 3).unwrap_or(0)
    }

    /// Returns how many renewals were granted.
    #[must_use]
    pub fn renewals(&self) -> u64 {
        self.renewals
    }

    /// Returns how many node ids went to another holder before they were released.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Returns how often other node ids replaced lost ones, or ones that could no longer be used
    /// because a clock had stepped.
    #[must_use]
    pub fn replacements(&self) -> u64 {
        self.replacements
    }

    /// Returns the counts of requests to the store.
    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Returns the time to the next request to the store; zero if it is due or in progress.
    #[must_use]
    pub fn next_attempt_in(&self, now: Reading) -> Duration {
        let pause = self.pause_until.saturating_sub(now.boot);
        if self.pending.is_some() {
            Duration::ZERO
        } else if self.needs_new_lease || !self.to_renew.is_empty() {
            pause
        } else {
            pause.max(self.renew_at.saturating_sub(now.boot))
        }
    }

    /// Returns why the store did not grant the last request, or why the keeper has ended; `None` once
    /// the store grants again.
    #[must_use]
    pub fn last_error(&self) -> Option<&Error> {
        self.last_error.as_ref().map(|(error, _)| error)
    }

    /// Returns the unix second, on the machine's clock, of [`last_error`](Keeper::last_error).
    #[must_use]
    pub fn last_error_at(&self) -> Option<i64> {
        self.last_error.as_ref().map(|(_, second)| *second)
    }

    fn term(&self) -> Option<(Vec<u32>, Lease)> {
        Some((self.node_ids(), window_of(&self.held)?))
    }

    fn window_end(&self) -> Option<i64> {
        self.held.iter().map(|row| row.lease.end_exclusive).min()
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
}

/// Shows no token: anyone who reads it could release the lease.
impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("state", &self.state())
            .field("node_ids", &self.node_ids())
            .field("last_error", &self.last_error())
            .finish_non_exhaustive()
    }
}

fn window_of(rows: &[HeldNode]) -> Option<Lease> {
    window(&rows.iter().map(|row| row.lease).collect::<Vec<_>>())
}
