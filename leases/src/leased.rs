//! A generator with leased node ids.
//!
//! A generator, a keeper, and a thread that does the keeper's steps. Generating an id is what it is
//! for every generator: only a call that fails does more (`recovery.rs`). One code serves
//! `Randflake` and every `Snowflake`; only their namespaces differ, which store the fingerprint of
//! a secret or that of a layout.
//!
//! The first lease is taken on the calling thread, or for it by a thread (`interruptible.rs`). From
//! then on a background thread keeps it (`thread.rs`), which knows nothing of the caller's language
//! and never calls it.
//!
//! Closing seals the generator first, and reports the first second with nothing issued to the
//! keeper. Then the thread gives the node ids back with that number, so a successor may begin in
//! the very next second.
#![allow(clippy::doc_markdown, reason = "SQLite is a name")]

mod builder;
mod cell;
mod interruptible;
mod recovery;
mod reported;
mod shared;
mod source;
mod status;
#[cfg(test)]
mod tests;
mod thread;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use randflake::{
    Call, Clock, Encrypted, Error, ErrorKind, Format, Generator, Id, Layout, Parts, Plain,
    RawParts, Reach, Result, Secret, SystemClock, Wait, bindings::ForkId,
};
#[cfg(doc)]
use randflake::{Randflake, Snowflake};

pub use self::{
    builder::LeasedBuilder,
    cell::LeasedCell,
    status::{LeaseStatus, Level},
};
pub use self::{
    builder::check_layout,
    recovery::{repeat, unavailable},
};
#[cfg(test)]
pub(crate) use self::{
    builder::without_lease,
    shared::{Next, SharedState},
};
use self::{
    shared::ProcessLease,
    source::{FirstLease, LeaseSource, no_thread},
    status::PATIENCE,
    thread::run,
};
use crate::{
    clocks::reading,
    environment::Environment,
    keeper::{Answer, State},
    location::Location,
    metrics::LeasedMetrics,
    per_process::PerProcess,
};

/// How long [`Leased::close`] waits for the store.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Shortest `retry_after` while there is no lease.
const SHORTEST_RETRY: Duration = Duration::from_millis(50);

/// Longest `retry_after` while there is no lease: another call may have woken the keeper earlier.
const LONGEST_RETRY: Duration = Duration::from_secs(5);

/// Leases node ids from a store and returns the generator over them.
///
/// `store` is the path of a SQLite file, which is created if it is missing, or another [`Location`].
/// Each call takes a lease of its own. For more options see [`Leased::builder`].
///
/// # Errors
///
/// `NODES_EXHAUSTED`, `STORE_UNAVAILABLE`, `CLOCK_SKEW`, `STORE_QUARANTINED`: no lease within 10
/// seconds. `SECRET_MISMATCH`, `STORE_REPLACED`, `STORE_NOT_INITIALIZED`, `WEAK_STORE`,
/// `INVALID_ARGUMENT`: waiting does not help.
///
/// ```
/// use randflake::Secret;
/// # let directory = std::env::temp_dir().join(format!("randflake-leased-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory).unwrap();
/// # let path = directory.join("ids.db");
///
/// let flake = randflake_leases::leased(path, &Secret::random())?;
/// let id = flake.generate()?;
/// assert_eq!(flake.inspect(id).node_id, flake.node_ids()[0]);
/// flake.close(); // gives the node id back; so does dropping it
/// # std::fs::remove_dir_all(&directory).unwrap();
/// # Ok::<(), randflake::Error>(())
/// ```
pub fn leased(store: impl Into<Location>, secret: &Secret) -> Result<Leased> {
    Leased::builder(store, secret).open()
}

/// Leases node ids from a store and returns a generator of a layout's ids, which are sortable and not
/// encrypted.
///
/// `store` is as in [`leased`]. The namespace belongs to the layout, whose node ids it leases (the
/// lowest 131 072, where it has more). For more options see [`Leased::for_layout`].
///
/// # Errors
///
/// As [`leased`], but `SECRET_MISMATCH` only where the namespace is one of a secret.
/// `INVALID_ARGUMENT` also where the namespace has another layout, where the layout has no node
/// ids, and where six of its ticks, if longer than a second, outlast the ttl; `LIFETIME_OVER` if
/// it has ended.
///
/// ```
/// use randflake::Layout;
/// # let directory = std::env::temp_dir().join(format!("randflake-snow-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory).unwrap();
/// # let path = directory.join("ids.db");
///
/// let flake = randflake_leases::leased_snowflake(path, Layout::twitter())?;
/// let (one, other) = (flake.generate()?, flake.generate()?);
/// assert!(one < other);
/// assert_eq!(flake.inspect(one)?.node_id, flake.node_ids()[0]);
/// flake.close(); // gives the node id back; so does dropping it
/// # std::fs::remove_dir_all(&directory).unwrap();
/// # Ok::<(), randflake::Error>(())
/// ```
pub fn leased_snowflake(store: impl Into<Location>, layout: Layout) -> Result<Leased<Plain>> {
    Leased::for_layout(store, layout).open()
}

/// A generator whose node ids are leased from a store, so that no other process has them meanwhile:
/// a [`Randflake`], or a [`Snowflake`] of any layout with node ids.
///
/// Generating an id never contacts the store. A thread renews the lease after a third of its length.
/// A lost lease is replaced by another one, with other node ids. When the store cannot be reached,
/// the generator works until the lease ends, then fails with `LEASE_UNAVAILABLE`, and recovers by
/// itself once the store is back. A forked child takes a lease of its own with its first call, and so
/// does a process after [`after_restore`](randflake::after_restore).
///
/// Ids may be stamped up to `max_drift` seconds ahead of the clock; see
/// [`LeasedBuilder::max_drift`].
pub struct Leased<F: Format = Encrypted, C: Clock + Send + Sync + 'static = SystemClock> {
    generator: Arc<Generator<F, C>>,
    source: Arc<LeaseSource>,
    max_wait: Duration,
    process_lease: PerProcess<ProcessLease>,
    /// For this process, its children, and what is restored from it.
    closed: AtomicBool,
}

impl Leased {
    /// Starts to describe a generator with leased node ids. `store` is as in [`leased`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use randflake::Secret;
    /// use randflake_leases::Leased;
    /// # let directory = std::env::temp_dir().join(format!("randflake-build-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let path = directory.join("ids.db");
    ///
    /// let flake = Leased::builder(path, &Secret::random())
    ///     .node_count(2) // 262 144 ids a second
    ///     .namespace("orders")
    ///     .ttl(60)
    ///     .acquire_timeout(Duration::from_secs(3))
    ///     .open()?;
    /// assert_eq!(flake.node_ids().len(), 2);
    /// # drop(flake);
    /// # std::fs::remove_dir_all(&directory).unwrap();
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn builder(store: impl Into<Location>, secret: &Secret) -> LeasedBuilder {
        LeasedBuilder::new(store.into(), secret.clone())
    }

    /// As [`Leased::builder`], with the settings of this process's environment: the store in
    /// `RANDFLAKE_STORE`, the secret in `RANDFLAKE_SECRET` or in the file that `RANDFLAKE_SECRET_FILE`
    /// names, the namespace in `RANDFLAKE_NAMESPACE`. They are read now; an example is at
    /// [`LeasedBuilder::open_lazily`].
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: no store. `INVALID_SECRET`: no secret, both variables of one, or what is
    /// none.
    pub fn from_env() -> Result<LeasedBuilder> {
        let environment = Environment::default();
        LeasedBuilder::in_environment(environment, environment.secret()?)
    }
}

impl Leased<Plain> {
    /// Starts to describe a generator of a layout's ids, as [`Leased::builder`] does one of
    /// Randflake's. `store` and `layout` are as in [`leased_snowflake`].
    ///
    /// ```
    /// use randflake::Layout;
    /// use randflake_leases::Leased;
    /// # let directory = std::env::temp_dir().join(format!("randflake-lay-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let path = directory.join("ids.db");
    ///
    /// let flake = Leased::for_layout(path, Layout::sonyflake2())
    ///     .namespace("posts")
    ///     .max_drift(2) // a burst may borrow two seconds' worth of coming ticks
    ///     .open()?;
    /// let mut ids = [0; 1000];
    /// flake.fill(&mut ids)?; // four ticks of 256 ids
    /// assert!(ids.is_sorted());
    /// # drop(flake);
    /// # std::fs::remove_dir_all(&directory).unwrap();
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn for_layout(store: impl Into<Location>, layout: Layout) -> LeasedBuilder<Plain> {
        LeasedBuilder::new(store.into(), layout)
    }

    /// As [`Leased::for_layout`], with the settings of the environment, as [`Leased::from_env`] reads
    /// them. It reads no secret.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: no store.
    ///
    /// ```
    /// use std::sync::LazyLock;
    /// use randflake::{Layout, Plain};
    /// use randflake_leases::Leased;
    ///
    /// static POSTS: LazyLock<Leased<Plain>> = LazyLock::new(|| {
    ///     let posts = Leased::for_layout_from_env(Layout::twitter());
    ///     posts.and_then(|builder| builder.open_lazily()).expect("the settings of ids")
    /// });
    /// # let path = std::env::temp_dir().join(format!("randflake-env-{}.db", std::process::id()));
    /// # // SAFETY: this program has no other thread yet.
    /// # unsafe { std::env::set_var("RANDFLAKE_STORE", &path) };
    ///
    /// assert_eq!(POSTS.lease().map(|lease| lease.node_ids), None); // nothing is leased yet
    /// POSTS.generate()?;
    /// assert_eq!(POSTS.node_ids().len(), 1);
    /// # POSTS.close(); // a static is never dropped
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn for_layout_from_env(layout: Layout) -> Result<LeasedBuilder<Plain>> {
        LeasedBuilder::in_environment(Environment::default(), layout)
    }
}

impl<F: Format, C: Clock + Send + Sync + 'static> Leased<F, C> {
    /// Closes the generator for good and releases its node ids, which takes one operation of the store;
    /// waits up to 5 seconds for it. If the store cannot be reached in time, the lease expires. In a
    /// forked child this does not affect the parent's lease.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let process_lease = self.own_process_lease();
        self.stop_in(process_lease);
        let shared = &process_lease.shared;
        let state = shared.lock();
        drop(shared.changed.wait_timeout_while(state, CLOSE_TIMEOUT, |state| !state.ended));
    }

    /// As [`close`](Leased::close), but does not wait: the thread releases the node ids.
    pub fn stop(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.stop_in(self.own_process_lease());
    }

    /// Stops it in one process.
    fn stop_in(&self, process_lease: &ProcessLease) {
        let ProcessLease { process, shared, .. } = process_lease;
        let mut state = shared.lock();
        if state.closed {
            return;
        }
        state.stop(&*self.generator, *process);
        shared.wake(state);
    }

    /// Returns whether it was closed or stopped, and the node ids are released as far as possible.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_closed() && self.is_ended()
    }

    /// Returns whether it was closed or stopped, here or before a fork or a restore.
    fn is_closed(&self) -> bool {
        // Relaxed: what follows is under the lock.
        self.closed.load(Ordering::Relaxed)
    }

    /// Returns whether no thread keeps the lease any more: it was closed or [stopped](Leased::stop), and
    /// no further request to the store follows.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.process_lease.of(ForkId::current()).is_none_or(|process_lease| {
            let state = process_lease.shared.lock();
            // It was closed before a fork or a restore, and never had one here.
            let has_none = self.is_closed() && state.keeper.is_none() && !state.acquiring;
            state.ended || has_none
        })
    }

    /// Generates an id; see [`Randflake::generate`].
    ///
    /// # Errors
    ///
    /// As [`Randflake::generate`], but for `LEASE_EXPIRED`. `LEASE_UNAVAILABLE` if the lease is over
    /// and the keeper does not get another one within `max_wait`, or if there is no first one within
    /// `acquire_timeout`, after [`LeasedBuilder::open_lazily`] and in a forked child: with the store's
    /// error as its [cause](Error::cause), and the time
    /// to the next attempt, at most 5 seconds, as [`Error::retry_after`].
    #[inline]
    pub fn generate(&self) -> Result<F::Id> {
        self.generator.generate().or_else(|error| self.generate_again(error))
    }

    /// Makes a batch of one: the compiler inlines the fast path of a single id only if it is called in
    /// one place.
    #[cold]
    fn generate_again(&self, error: Error) -> Result<F::Id> {
        self.again(error, || {
            let mut id = [F::Id::default()];
            self.generator.fill(&mut id).map(|()| id[0])
        })
    }

    /// Fills a slice with ids; see [`Randflake::fill`]. A batch may take longer than the lease, because
    /// the thread renews it.
    ///
    /// # Errors
    ///
    /// As [`Leased::generate`] and [`Randflake::fill`].
    pub fn fill(&self, ids: &mut [F::Id]) -> Result<()> {
        self.fill_i64(F::as_numbers(ids))
    }

    /// Fills a slice of plain numbers with ids; see [`Leased::fill`].
    ///
    /// # Errors
    ///
    /// As [`Leased::fill`].
    pub fn fill_i64(&self, ids: &mut [i64]) -> Result<()> {
        let mut fill = || self.generator.fill_with(ids, Call::OVER_RENEWALS);
        fill().or_else(|error| self.again(error, fill))
    }

    /// Checks whether a batch of `count` ids would be refused, before memory is allocated for it; see
    /// [`Randflake::check_fill`].
    ///
    /// # Errors
    ///
    /// As [`Leased::fill`].
    pub fn check_fill(&self, count: usize) -> Result<()> {
        let check = || self.generator.check_fill(count, Call::OVER_RENEWALS);
        check().or_else(|error| self.again(error, check))
    }

    /// As [`Leased::generate`], as far as `call` allows, but leaves [`Leased::recover`] to the caller,
    /// which may hold something that it must release before a request to the store. For the bindings to
    /// other languages. Where the call must not wait, [`Leased::explain`] says what the caller waits
    /// for.
    ///
    /// # Errors
    ///
    /// As [`Leased::generate`]; without any attempt `LEASE_EXPIRED`, and in a process that has no
    /// lease yet `LEASE_UNAVAILABLE` or, in a child, `FORKED`.
    #[inline]
    pub fn try_generate(&self, call: Call) -> Result<F::Id> {
        self.generator.generate_with(call)
    }

    /// As [`Leased::fill_i64`], as [`Leased::try_generate`] does for an id. A call on a thread that the
    /// keeper needs blocks the renewal: there it must not reach further than [`Reach::Lease`].
    ///
    /// # Errors
    ///
    /// As [`Leased::try_generate`] and [`Randflake::fill`]; `INVALID_ARGUMENT` for a batch that takes
    /// longer than any lease, where it may not reach further.
    #[inline]
    pub fn try_fill(&self, ids: &mut [i64], call: Call) -> Result<()> {
        self.check_size(ids.len(), call)?;
        self.generator.fill_with(ids, call)
    }

    /// As [`Leased::check_fill`], for [`Leased::try_fill`].
    ///
    /// # Errors
    ///
    /// As [`Leased::try_fill`].
    pub fn try_check_fill(&self, count: usize, call: Call) -> Result<()> {
        self.check_size(count, call)?;
        self.generator.check_fill(count, call)
    }

    fn check_size(&self, count: usize, call: Call) -> Result<()> {
        let ttl = self.source.options.ttl;
        // Others fail before they wait, or leave the thread of the keeper alone.
        if call.wait == Wait::Never || call.reach == Reach::Renewals {
            return Ok(());
        }
        let takes = self.generator.time_for(count).as_secs();
        if takes < u64::from(ttl) {
            return Ok(());
        }
        self.generator.check_fill(count, Call::OVER_RENEWALS)?; // no thread may make more
        Err(Error::invalid_argument(format!(
            "a batch of {count} ids takes {takes} seconds, and blocks this thread, which has to \
             renew the lease of {ttl} seconds; ask for fewer ids at a time, or in the background"
        )))
    }

    /// Returns how long to wait until an id is available; see [`Randflake::ready_in`]. While the keeper
    /// tries to replace a lease that is over, returns a short time after which to ask again.
    ///
    /// # Errors
    ///
    /// As [`Leased::generate`], but not `LEASE_EXPIRED` while the keeper tries.
    pub fn ready_in(&self) -> Result<Duration> {
        self.try_ready_in().or_else(|error| {
            self.recover(error)?;
            self.generator.ready_in()
        })
    }

    /// As [`Leased::ready_in`], but leaves [`Leased::recover`] to the caller, as
    /// [`Leased::try_generate`] does.
    ///
    /// # Errors
    ///
    /// As [`Leased::ready_in`]; in a child that has no lease yet, `FORKED` without any attempt.
    pub fn try_ready_in(&self) -> Result<Duration> {
        self.generator.ready_in().or_else(|error| {
            // The next tick may lie beyond the lease: by then it may be renewed.
            let may_pass = matches!(
                error.kind(),
                ErrorKind::LeaseExpired | ErrorKind::SequenceExhausted | ErrorKind::ClockMovedBack
            );
            if may_pass
                && let Some(process_lease) = self.process_lease.of(ForkId::current())
                && let state = process_lease.shared.lock()
                && !state.ended
            {
                process_lease.shared.wake(state);
                return Ok(SHORTEST_RETRY);
            }
            Err(error)
        })
    }

    /// Checks whether a call would get an id now, or within `patience`: a second at least, and a tick.
    /// The [state](LeaseStatus::state) of the lease follows from the same. Takes no first lease.
    ///
    /// # Errors
    ///
    /// What the call would fail with.
    pub fn check_ready(&self, patience: Duration) -> Result<()> {
        let Err(error) = self.generator.check_soon(patience.max(PATIENCE)) else { return Ok(()) };
        // A burst has used all its seconds, and it is about to be renewed.
        let is_held = |lease: LeaseStatus| matches!(lease.state, State::Holding | State::Retrying);
        if error.kind() == ErrorKind::LeaseExpired && self.lease().is_some_and(is_held) {
            return Ok(());
        }
        Err(self.explain(error))
    }

    /// Returns how long a call waits at most; see [`LeasedBuilder::max_wait`]. For the bindings to other
    /// languages.
    #[must_use]
    pub fn max_wait(&self) -> Duration {
        self.max_wait
    }

    /// Returns the current node ids, sorted; none after [`close`](Leased::close) and in a
    /// process that has no lease yet.
    #[must_use]
    pub fn node_ids(&self) -> Vec<u32> {
        self.lease().map(|lease| lease.node_ids).unwrap_or_default()
    }

    /// Returns the state of the lease; `None` after [`close`](Leased::close) and in a process
    /// that has no lease yet.
    #[must_use]
    pub fn lease(&self) -> Option<LeaseStatus> {
        let state = self.process_lease.of(ForkId::current())?.shared.lock();
        let keeper = state.keeper.as_ref().filter(|_| !state.closed)?;
        self.source.status(keeper, &self.generator, reading().ok()?)
    }

    /// Returns what this generator and the keeper of its lease have done in this process; a forked child
    /// begins at zero. Counts nothing on the way of an id; see [`Generator::metrics`].
    ///
    /// ```
    /// use randflake::Secret;
    /// use randflake_leases::{Leased, Location, MemoryStore};
    ///
    /// let store = Location::new(|namespace| Ok(Box::new(MemoryStore::new(namespace))));
    /// let flake = Leased::builder(store, &Secret::random()).open()?;
    /// flake.fill_i64(&mut [0; 1000])?;
    /// let metrics = flake.metrics();
    /// assert_eq!((metrics.ids_generated, metrics.store_requests), (1000, 1));
    /// assert_eq!((metrics.clock_skew_seconds, metrics.store_errors.len()), (Some(0), 0));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn metrics(&self) -> LeasedMetrics {
        let process_lease = self.process_lease.of(ForkId::current());
        let (waits, requests) = process_lease
            .map(|process_lease| process_lease.shared.lock().counts())
            .unwrap_or_default();
        LeasedMetrics::new(self.generator.metrics(), waits, requests)
    }

    /// Starts the thread that keeps the granted lease.
    fn keep(&self, process_lease: &ProcessLease, granted: FirstLease) -> Result<()> {
        let FirstLease { mut keeper, store, .. } = granted;
        let now = reading()?;
        keeper.answer(Answer::Opened(Ok(())), now)?;
        let mut state = process_lease.shared.lock();
        if state.closed {
            // While this was acquired.
            keeper.stop();
            let close = || self.generator.close_of(process_lease.process);
            state.used_until = state.used_until.or_else(close);
            state.ended = false;
        }
        let first = self.source.status(&keeper, &self.generator, now);
        state.keeper = Some(keeper);
        drop(state);
        let body = |store| {
            let (generator, source) = (Arc::clone(&self.generator), Arc::clone(&self.source));
            let (shared, first) = (Arc::clone(&process_lease.shared), first.clone());
            let process = process_lease.process;
            move || run(&shared, &generator, &source, process, store, first)
        };
        let thread = std::thread::Builder::new().name("randflake-lease".to_owned());
        thread.spawn(body(store)).map(drop).map_err(|error| {
            self.stop_in(process_lease);
            body(None)();
            no_thread(&error)
        })
    }
}

impl<C: Clock + Send + Sync + 'static> Leased<Encrypted, C> {
    /// Reads an id back; see [`Randflake::inspect`]. Timestamps may lie up to `max_drift` seconds
    /// ahead of when an id was made.
    #[must_use]
    pub fn inspect(&self, id: Id) -> Parts {
        self.generator.inspect(id)
    }

    /// Returns the sortable form of an id; see [`Randflake::decrypt`].
    #[must_use]
    pub fn decrypt(&self, id: Id) -> u64 {
        self.generator.decrypt(id)
    }

    /// Returns the id of a sortable form; see [`Randflake::encrypt`].
    #[must_use]
    pub fn encrypt(&self, raw: u64) -> Id {
        self.generator.encrypt(raw)
    }
}

impl<C: Clock + Send + Sync + 'static> Leased<Plain, C> {
    /// Reads an id back; see [`Snowflake::inspect`].
    ///
    /// # Errors
    ///
    /// As [`Snowflake::inspect`].
    pub fn inspect(&self, raw: u64) -> Result<RawParts> {
        self.generator.inspect(raw)
    }

    /// Returns the layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        self.generator.layout()
    }
}

/// As [`Leased::close`]; does not wait again after [`Leased::stop`].
impl<F: Format, C: Clock + Send + Sync + 'static> Drop for Leased<F, C> {
    fn drop(&mut self) {
        if !self.is_closed() && self.process_lease.of(ForkId::current()).is_some() {
            self.close();
        }
    }
}

impl<F: Format, C: Clock + Send + Sync + 'static> fmt::Debug for Leased<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased")
            .field("node_ids", &self.generator.node_ids())
            .finish_non_exhaustive()
    }
}
