//! A generator with leased node ids, and the thread that keeps them.
#![allow(clippy::doc_markdown, reason = "SQLite is a name")]

use std::{
    fmt, mem,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{self, SendError},
    },
    thread,
    time::Duration,
};

use once_cell::race::OnceBox;
use randflake::{
    Clock, Error, ErrorKind, Id, Layout, Lease, NodeIds, Parts, ProcessLife, Randflake, RawParts,
    Reach, Result, Secret, Snowflake, SystemClock, check_max_wait,
};

use crate::{
    Acquire, Acquired, Flake, LeaseStore, Location, Namespace, NodeLease, Note, Release, Reply,
    keeper::{Answer, Keeper, Options, Reading, State, Step},
};

/// How long [`Leased::close`] waits for the store.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// How often a call looks for what another thread does for it.
const GLANCE: Duration = Duration::from_millis(1);

/// How long the last try of a first lease may take.
const LAST_TRY: Duration = Duration::from_millis(250);

/// A connection that nobody needs for so long is closed meanwhile.
const LONG_REST: Duration = Duration::from_secs(60);

/// After what time it is worth asking again for a lease that others try to get.
const MOMENT: Duration = Duration::from_millis(50);

/// After what time it is worth asking again in any case: another call may have hurried.
const LONGEST_RETRY: Duration = Duration::from_secs(5);

/// Leases node ids from a store and returns the generator over them.
///
/// `store` is the path of a SQLite file, which is made if it is missing, or another [`Location`].
/// Each call takes a lease of its own. For more options see [`Leased::builder`].
///
/// # Errors
///
/// `NODES_EXHAUSTED`, `STORE_UNAVAILABLE`, `CLOCK_SKEW`, `STORE_QUARANTINED`: not to be had within
/// 10 seconds. `SECRET_MISMATCH`, `STORE_REPLACED`, `STORE_NOT_INITIALIZED`, `WEAK_STORE`,
/// `INVALID_ARGUMENT`: not by waiting.
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

/// Leases node ids from a store and returns the generator of a layout's ids over them: sortable,
/// not encrypted.
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
pub fn leased_snowflake(store: impl Into<Location>, layout: Layout) -> Result<Leased<Snowflake>> {
    Leased::for_layout(store, layout).open()
}

/// A generator whose node ids are leased from a store: nobody else has them meanwhile. It is a
/// [`Randflake`], or a [`Snowflake`] of any layout with node ids.
///
/// A thread renews the lease at a third of its length. A lease that is lost is replaced by
/// another one, with other node ids, and the generator goes on. When the store is out of reach,
/// the generator goes on to the end of the lease, fails with `LEASE_UNAVAILABLE`, and recovers by
/// itself once the store is back. A forked child leases anew with its first call.
///
/// Ids may be stamped up to `max_drift` seconds ahead of the clock; see
/// [`LeasedBuilder::max_drift`].
pub struct Leased<F: Flake = Randflake> {
    flake: Arc<F>,
    source: Arc<Source>,
    max_wait: Duration,
    /// That of the life in which it was made; then those of children.
    watch: Watch,
}

/// What a [`Leased`] is made from; see [`Leased::builder`] and [`Leased::for_layout`].
pub struct LeasedBuilder<F: Flake = Randflake> {
    location: Location,
    format: F::Format,
    namespace: String,
    options: Options,
    max_wait: Duration,
    max_drift: Option<u32>,
    clock: F::Clock,
}

/// How the lease of a generator is doing.
#[derive(Debug)]
pub struct LeaseStatus {
    /// Whether all is well; see [`State`].
    pub state: State,
    /// The node ids, sorted.
    pub node_ids: Vec<u32>,
    /// First unix second of the lease.
    pub start: i64,
    /// First unix second after the lease.
    pub end_exclusive: i64,
    /// The time to that end by the machine's clock; zero if it is over.
    pub time_left: Duration,
    /// How many renewals the store has granted.
    pub renewals: u64,
    /// How many node ids went to somebody else before they were given back.
    pub losses: u64,
    /// Why the store did not grant what it was last asked; none while all is well.
    pub last_error: Option<Error>,
    /// The unix second of that, on the machine's clock.
    pub last_error_at: Option<i64>,
}

/// Where leases come from, in this process and in its children.
struct Source {
    location: Location,
    namespace: Namespace,
    options: Options,
    /// What this process has of them by hand is given back.
    node_ids: NodeIds,
}

/// What was leased for a generator that is to be opened over it.
struct Granted {
    keeper: Keeper,
    store: Connection,
    node_ids: Vec<u32>,
    lease: Lease,
}

/// A store; none where it has to be opened anew.
type Connection = Option<Box<dyn LeaseStore>>;

/// The lease of one life of the process.
struct Watch {
    life: ProcessLife,
    post: Arc<Post>,
    /// That of a child.
    next: OnceBox<Self>,
}

/// What the thread shares with the callers.
#[derive(Default)]
struct Post {
    desk: Mutex<Desk>,
    changed: Condvar,
}

/// What the thread and the callers decide on, one at a time.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct Desk {
    /// None in a child that has no lease yet.
    pub(crate) keeper: Option<Keeper>,
    /// A thread of a child is at it.
    acquiring: bool,
    closed: bool,
    /// What closing the generator told.
    used_until: Option<i64>,
    /// The thread is to look again at once.
    hurry: bool,
    /// There is no thread, or none any more.
    ended: bool,
}

/// What is to be done once the generator has what the keeper wants of it.
pub(crate) enum Turn {
    /// The next turn; something was done.
    Done,
    /// An operation of the store.
    Ask(Step),
    /// Wait, or be hurried.
    Sleep(Duration),
    /// Nothing any more.
    Over,
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
}

impl Leased<Snowflake> {
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
    pub fn for_layout(store: impl Into<Location>, layout: Layout) -> LeasedBuilder<Snowflake> {
        LeasedBuilder::new(store.into(), layout)
    }
}

impl<F: Flake<Clock = SystemClock>> LeasedBuilder<F> {
    fn new(location: Location, format: F::Format) -> Self {
        Self {
            location,
            format,
            namespace: "default".to_owned(),
            options: Options::default(),
            max_wait: Duration::from_secs(1),
            max_drift: None,
            clock: SystemClock,
        }
    }
}

impl<F: Flake> LeasedBuilder<F> {
    /// Sets how many node ids, 1 to [`Layout::max_nodes`], 16 384 for Randflake; 1 unless set. Each
    /// is worth 131 072 ids a second, or [`Layout::ids_per_node`] a tick. While the store has
    /// fewer, the generator does with fewer.
    #[must_use]
    pub fn node_count(mut self, node_count: u32) -> Self {
        self.options.node_count = node_count;
        self
    }

    /// Sets for how many seconds a lease is asked, at least six times the largest skew and at most
    /// 86 400; 300 unless set. The generator rides out an outage of the store of two thirds of
    /// it, and a node id whose holder was killed is idle for up to that long.
    #[must_use]
    pub fn ttl(mut self, seconds: u32) -> Self {
        self.options.ttl = seconds;
        self
    }

    /// Sets by how many seconds clocks may differ, 0 to a sixth of the ttl; 5 unless set. The
    /// namespace keeps what it was made with.
    #[must_use]
    pub fn max_skew(mut self, seconds: u32) -> Self {
        self.options.max_skew = seconds;
        self
    }

    /// Names the namespace, 1 to 200 bytes; `default` unless set. One for each secret or layout:
    /// one generator serves all tables of a secret.
    #[must_use]
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.namespace = name.into();
        self
    }

    /// Sets whether the first lease makes the namespace, as [`InitMode::New`](crate::InitMode::New),
    /// if it is not there. Unless set, it does in a SQLite file, which it makes, too, and not in a
    /// store with a server. Without it a lost file is `STORE_NOT_INITIALIZED`, and not an empty
    /// store that grants again what others still hold.
    ///
    /// [`open`](Self::open) refuses it for a [`Location`] with a function of its own.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.location = self.location.create(create);
        self
    }

    /// Sets how long the first lease may take, up to a day; 10 seconds unless set. The first try
    /// takes as long as the store's client waits, 3 seconds for an answer, even if that is longer.
    #[must_use]
    pub fn acquire_timeout(mut self, acquire_timeout: Duration) -> Self {
        self.options.acquire_timeout = acquire_timeout;
        self
    }

    /// Sets how long a call may wait in all, as
    /// [`Builder::max_wait`](randflake::Builder::max_wait).
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// Sets how many whole seconds ahead of the clock ids may be stamped, 0 to a third of the ttl.
    /// It absorbs clocks that step back and lets a burst borrow coming seconds, which the lease
    /// covers. Unless set, 10 or that third for Randflake; 0 for a [`Snowflake`], whose ids are out
    /// of order with those of other nodes where they run ahead.
    #[must_use]
    pub fn max_drift(mut self, seconds: u32) -> Self {
        self.max_drift = Some(seconds);
        self
    }

    /// Sets whose [`sleep`](Clock::sleep) waits; it must read the machine's time. For adapters of
    /// this crate to other languages.
    #[must_use]
    pub fn clock<D: Clock + Send + Sync + 'static>(
        self,
        clock: D,
    ) -> LeasedBuilder<F::WithClock<D>> {
        LeasedBuilder {
            clock,
            location: self.location,
            format: self.format,
            namespace: self.namespace,
            options: self.options,
            max_wait: self.max_wait,
            max_drift: self.max_drift,
        }
    }

    /// Takes the first lease and makes the generator.
    ///
    /// # Errors
    ///
    /// As [`leased`] or [`leased_snowflake`], and `INVALID_ARGUMENT` for options out of range.
    pub fn open(self) -> Result<Leased<F>> {
        let Options { node_count, ttl, .. } = self.options;
        let namespace = F::namespace(&self.format, self.namespace)?
            .max_ttl_and_skew(ttl.max(Namespace::MAX_TTL), self.options.max_skew)?;
        check_layout(&F::layout(&self.format), node_count, ttl)?;
        check_max_wait(self.max_wait)?;
        // A third of the ttl is used up when it is renewed; a burst must not borrow all the rest.
        let most = ttl / 3;
        let max_drift = self.max_drift.unwrap_or(F::MAX_DRIFT.min(most));
        if max_drift > most {
            return Err(Error::invalid_argument(format!(
                "the largest drift (max_drift) must be at most a third of the ttl, which is {most} \
                 seconds, got {max_drift}"
            )));
        }
        let node_ids = F::node_ids_of(&self.format);
        let (location, options) = (self.location, self.options);
        let source = Source { location, namespace, options, node_ids };
        let watch = Watch::new(ProcessLife::current());
        let granted = source.acquire(&self.clock)?;
        let Granted { node_ids, lease, .. } = &granted;
        let max_drift = max_drift.min(most_drift(*lease));
        match F::over(&self.format, node_ids, *lease, self.max_wait, max_drift, self.clock) {
            Err(error) => Err(source.give_back(granted, error)),
            Ok(flake) => {
                let (flake, source) = (Arc::new(flake), Arc::new(source));
                let leased = Leased { flake, source, max_wait: self.max_wait, watch };
                leased.keep(&leased.watch, granted)?;
                Ok(leased)
            }
        }
    }
}

/// Returns the largest `max_drift` over a lease, in seconds: the store may grant less than was asked
/// for. Operators count on it: see `ReleaseDead`.
pub(crate) fn most_drift(lease: Lease) -> u32 {
    u32::try_from((lease.end_exclusive() - lease.start()) / 3).unwrap_or(0)
}

/// Checks what no store can make up for.
fn check_layout(layout: &Layout, node_count: u32, ttl: u32) -> Result<()> {
    if layout.remaining().is_zero() {
        return Err(layout.lifetime_over());
    }
    if node_count as usize > layout.max_nodes() {
        return Err(Error::invalid_argument(format!(
            "a generator of the layout {} has 1 to {} node ids, got {node_count}",
            layout.name(),
            layout.max_nodes()
        )));
    }
    // What is renewed at a third of the ttl then always holds the tick of the moment as a whole.
    let six_ticks = (u64::from(layout.tick_ms()) * 6).div_ceil(1000);
    if layout.tick_ms() > 1000 && u64::from(ttl) < six_ticks {
        return Err(Error::invalid_argument(format!(
            "a lease of node ids of the layout {} must last at least {six_ticks} seconds, six of \
             its ticks, got {ttl}",
            layout.name()
        )));
    }
    Ok(())
}

impl<F: Flake> Leased<F> {
    /// Ends the generator for good and gives its node ids back, which takes one operation of the
    /// store; waits up to 5 seconds for it. What the store does not learn in time is free at the
    /// end of the lease. In a forked child it leaves alone what is its parent's.
    pub fn close(&self) {
        self.stop();
        let post = &self.watch.of_or_new(ProcessLife::current()).post;
        let ending = post.lock();
        drop(post.changed.wait_timeout_while(ending, CLOSE_PATIENCE, |desk| !desk.ended));
    }

    /// Does as [`close`](Leased::close), but leaves it to the thread to give the node ids back.
    pub fn stop(&self) {
        let post = &self.watch.of_or_new(ProcessLife::current()).post;
        let mut desk = post.lock();
        if desk.closed {
            return;
        }
        desk.stop(&*self.flake);
        post.hurry(desk);
    }

    /// Returns whether it was closed or stopped and the node ids are given back, as far as that
    /// was possible.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.watch.of(ProcessLife::current()).is_some_and(|watch| {
            let desk = watch.post.lock();
            desk.closed && desk.ended
        })
    }

    /// Returns whether it was closed, or [stopped](Leased::stop), and the store knows or will not
    /// be told any more.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        let watch = self.watch.of(ProcessLife::current());
        watch.is_none_or(|watch| watch.post.lock().ended)
    }

    /// Generates an id; see [`Randflake::generate`].
    ///
    /// # Errors
    ///
    /// As [`Randflake::generate`], but for `LEASE_EXPIRED`. `LEASE_UNAVAILABLE` if the lease is over
    /// and the keeper does not get another one within `max_wait`, or a forked child no first one
    /// within `acquire_timeout`: with the store's error as its [cause](Error::cause), and the time
    /// to the next attempt, at most 5 seconds, as [`Error::retry_after`].
    #[inline]
    pub fn generate(&self) -> Result<F::Id> {
        self.try_generate().or_else(|error| self.generate_again(error))
    }

    /// As a batch of one, because the compiler merges the quick way of a single id into its caller
    /// only where it is written once.
    #[cold]
    fn generate_again(&self, error: Error) -> Result<F::Id> {
        self.recover(error)?;
        let mut id = [F::Id::default()];
        self.flake.fill_to(&mut id, Reach::Lease).map_err(|error| self.explain(error))?;
        Ok(id[0])
    }

    /// Fills a slice with ids; see [`Randflake::fill`]. A batch may take longer than the lease, which
    /// is renewed meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Leased::generate`] and [`Randflake::fill`].
    pub fn fill(&self, ids: &mut [F::Id]) -> Result<()> {
        self.flake.fill_to(ids, Reach::Renewals).or_else(|error| {
            self.recover(error)?;
            self.flake.fill_to(ids, Reach::Renewals).map_err(|error| self.explain(error))
        })
    }

    /// Fills a slice of plain numbers with ids; see [`Leased::fill`].
    ///
    /// # Errors
    ///
    /// As [`Leased::fill`].
    pub fn fill_i64(&self, ids: &mut [i64]) -> Result<()> {
        self.flake.fill_i64_to(ids, Reach::Renewals).or_else(|error| {
            self.recover(error)?;
            self.flake.fill_i64_to(ids, Reach::Renewals).map_err(|error| self.explain(error))
        })
    }

    /// Checks whether a batch of `count` ids would be refused before anything is claimed, for who
    /// wants to know that before there is memory for it; see [`Randflake::check_fill`].
    ///
    /// # Errors
    ///
    /// As [`Leased::fill`].
    pub fn check_fill(&self, count: usize) -> Result<()> {
        self.try_check_fill(count, Reach::Renewals).or_else(|error| {
            self.recover(error)?;
            let checked = self.try_check_fill(count, Reach::Renewals);
            checked.map_err(|error| self.explain(error))
        })
    }

    /// Does as [`Leased::generate`], but leaves [`Leased::recover`] to the caller, who may hold
    /// something that must not be held while a store is asked. For adapters of this crate to other
    /// languages.
    ///
    /// # Errors
    ///
    /// As [`Leased::generate`]; `LEASE_EXPIRED` and, in a child that has no lease yet, `FORKED`
    /// without having tried anything.
    #[inline]
    pub fn try_generate(&self) -> Result<F::Id> {
        self.flake.generate()
    }

    /// Generates an id where that neither waits nor fails, and returns `None` elsewhere. For
    /// adapters of this crate to other languages.
    #[inline]
    pub fn generate_at_once(&self) -> Option<F::Id> {
        self.flake.generate_at_once()
    }

    /// Does as [`Leased::fill_i64`], but leaves [`Leased::recover`] to the caller, as
    /// [`Leased::try_generate`] does. On a thread that the keeper needs, nothing is renewed
    /// meanwhile: there `reach` must be [`Reach::Lease`].
    ///
    /// # Errors
    ///
    /// As [`Leased::try_generate`] and [`Randflake::fill`]; `INVALID_ARGUMENT` for a batch that takes
    /// longer than any lease, where `reach` is that of one.
    #[inline]
    pub fn try_fill_i64(&self, ids: &mut [i64], reach: Reach) -> Result<()> {
        self.check_size(ids.len(), reach)?;
        self.flake.fill_i64_to(ids, reach)
    }

    /// Does as [`Leased::check_fill`], for [`Leased::try_fill_i64`].
    ///
    /// # Errors
    ///
    /// As [`Leased::try_fill_i64`].
    pub fn try_check_fill(&self, count: usize, reach: Reach) -> Result<()> {
        self.check_size(count, reach)?;
        self.flake.check_fill(count, reach)
    }

    fn check_size(&self, count: usize, reach: Reach) -> Result<()> {
        let ttl = self.source.options.ttl;
        if reach == Reach::Renewals {
            return Ok(());
        }
        let takes = self.flake.time_for(count).as_secs();
        if takes < u64::from(ttl) {
            return Ok(());
        }
        Err(Error::invalid_argument(format!(
            "a batch of {count} ids takes {takes} seconds, and meanwhile this thread cannot renew \
             the lease, of {ttl} seconds; have another thread make it (generateManyAsync), or ask \
             for fewer at a time"
        )))
    }

    /// Does what can be done about a call that failed: leases anew in a forked child, and waits up
    /// to `max_wait` for the keeper where a lease is over. After that the call is worth another
    /// try.
    ///
    /// # Errors
    ///
    /// The error itself where nothing can be done about it; `LEASE_UNAVAILABLE`.
    #[cold]
    pub fn recover(&self, error: Error) -> Result<()> {
        match error.kind() {
            ErrorKind::Forked => self.begin_in_child(),
            ErrorKind::LeaseExpired => self.outlast(error),
            _ => Err(error),
        }
    }

    /// Returns what a call is to fail with that does not [recover](Leased::recover), or has: the
    /// error itself, but `LEASE_UNAVAILABLE` where the lease is over. Has the keeper look after it.
    #[cold]
    #[must_use]
    pub fn explain(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::LeaseExpired {
            return error;
        }
        let (Some(watch), Ok(now)) = (self.watch.of(ProcessLife::current()), reading()) else {
            return error;
        };
        let end = self.flake.lease().map_or(0, |lease| lease.end_exclusive());
        let why = if end > now.second() {
            format!("this needs seconds after the lease, which ends at the unix second {end}")
        } else {
            format!("the lease of this generator ended at the unix second {end}")
        };
        let desk = watch.post.lock();
        let cause = desk.keeper.as_ref().and_then(Keeper::last_error).map(Error::without_cause);
        if desk.ended {
            let why = format!("{why}, and what renews it has stopped; make a new generator");
            let ended = Error::new(ErrorKind::Internal, why);
            return if let Some(cause) = cause { ended.caused_by(cause) } else { ended };
        }
        let next = desk.keeper.as_ref().map(|keeper| keeper.next_attempt_in(now));
        watch.post.hurry(desk);
        unavailable(&why, next.unwrap_or_default(), cause)
    }

    /// Returns how long to wait until an id can be had; see [`Randflake::ready_in`]. While the
    /// lease is over and the keeper tries to get another one, a moment after which to ask again.
    ///
    /// # Errors
    ///
    /// As [`Leased::generate`], but not `LEASE_EXPIRED` while the keeper tries.
    pub fn ready_in(&self) -> Result<Duration> {
        self.flake.ready_in().or_else(|error| {
            if error.kind() == ErrorKind::LeaseExpired
                && let Some(watch) = self.watch.of(ProcessLife::current())
                && let desk = watch.post.lock()
                && !desk.ended
            {
                watch.post.hurry(desk);
                return Ok(MOMENT);
            }
            self.recover(error)?;
            self.flake.ready_in()
        })
    }

    /// Returns the node ids of the moment, sorted; none after [`close`](Leased::close) and in a
    /// child that has no lease yet.
    #[must_use]
    pub fn node_ids(&self) -> Vec<u32> {
        self.lease().map(|lease| lease.node_ids).unwrap_or_default()
    }

    /// Returns how the lease is doing; `None` after [`close`](Leased::close) and in a child that
    /// has no lease yet.
    #[must_use]
    pub fn lease(&self) -> Option<LeaseStatus> {
        let desk = self.watch.of(ProcessLife::current())?.post.lock();
        let keeper = desk.keeper.as_ref().filter(|_| !desk.closed)?;
        let lease = self.flake.lease()?;
        Some(LeaseStatus {
            state: keeper.state(),
            node_ids: self.flake.node_ids().to_vec(),
            start: lease.start(),
            end_exclusive: lease.end_exclusive(),
            time_left: reading().map(|now| keeper.time_left(now)).unwrap_or_default(),
            renewals: keeper.renewals(),
            losses: keeper.losses(),
            last_error: keeper.last_error().map(Error::without_cause),
            last_error_at: keeper.last_error_at(),
        })
    }

    /// Leases anew in a forked child, or waits for the thread that does.
    fn begin_in_child(&self) -> Result<()> {
        let no_lease = "this process was forked and has no lease of its own yet";
        let watch = self.watch.of_or_new(ProcessLife::current());
        let mut waited = Duration::ZERO;
        loop {
            let mut desk = watch.post.lock();
            if desk.closed {
                return Err(closed());
            }
            if desk.keeper.is_some() {
                return Ok(());
            }
            if !mem::replace(&mut desk.acquiring, true) {
                drop(desk);
                let _acquiring = Acquiring(&watch.post);
                let begun = self.source.acquire(self.flake.clock()).and_then(|granted| match self
                    .flake
                    .begin_in_child(&granted.node_ids, granted.lease)
                {
                    Err(error) => Err(self.source.give_back(granted, error)),
                    Ok(()) => self.keep(watch, granted),
                });
                return begun.map_err(|error| {
                    if !error.kind().is_of_store() {
                        return error; // waiting does not help
                    }
                    let next = error.retry_after().unwrap_or(Duration::from_secs(1));
                    unavailable(no_lease, next, Some(error))
                });
            }
            drop(desk);
            if waited >= self.source.options.acquire_timeout {
                return Err(unavailable(no_lease, Duration::ZERO, None));
            }
            waited += self.flake.clock().sleep(GLANCE)?.unwrap_or(GLANCE).max(GLANCE);
        }
    }

    /// Waits until the keeper has got more time: another lease, as after a long sleep of the
    /// machine, or, where a burst has borrowed all seconds of this one, a later end.
    fn outlast(&self, expired: Error) -> Result<()> {
        let Some(watch) = self.watch.of(ProcessLife::current()) else { return Err(expired) };
        watch.post.hurry(watch.post.lock());
        let end = || self.flake.lease().map_or(i64::MIN, |lease| lease.end_exclusive());
        let first_end = end();
        let mut waited = Duration::ZERO;
        while end() == first_end {
            if watch.post.lock().ended || waited >= self.max_wait {
                // Unless it is not over: then the end may have risen before it was looked at.
                let is_over = first_end <= reading()?.second();
                return if is_over { Err(self.explain(expired)) } else { Ok(()) };
            }
            waited += self.flake.clock().sleep(GLANCE)?.unwrap_or(self.max_wait).max(GLANCE);
        }
        Ok(())
    }

    /// Starts the thread that keeps what was granted to the generator.
    fn keep(&self, watch: &Watch, granted: Granted) -> Result<()> {
        let Granted { mut keeper, store, .. } = granted;
        keeper.answer(Answer::Opened(Ok(())), reading()?)?;
        let mut desk = watch.post.lock();
        if desk.closed {
            // While this was acquired.
            keeper.stop();
            (desk.used_until, desk.ended) = (self.flake.close(), false);
        }
        desk.keeper = Some(keeper);
        drop(desk);
        let work = |store| {
            let (flake, source) = (Arc::clone(&self.flake), Arc::clone(&self.source));
            let post = Arc::clone(&watch.post);
            move || work(&post, &*flake, &source, store)
        };
        let thread = thread::Builder::new().name("randflake-lease".to_owned());
        thread.spawn(work(store)).map(drop).map_err(|error| {
            self.stop();
            work(None)();
            no_thread(&error)
        })
    }
}

impl<C: Clock + Send + Sync + 'static> Leased<Randflake<C>> {
    /// Reads an id back; see [`Randflake::inspect`]. Timestamps may lie up to `max_drift` seconds
    /// ahead of when an id was made.
    #[must_use]
    pub fn inspect(&self, id: Id) -> Parts {
        self.flake.inspect(id)
    }

    /// Returns the sortable form of an id; see [`Randflake::decrypt`].
    #[must_use]
    pub fn decrypt(&self, id: Id) -> u64 {
        self.flake.decrypt(id)
    }

    /// Returns the id of a sortable form; see [`Randflake::encrypt`].
    #[must_use]
    pub fn encrypt(&self, raw: u64) -> Id {
        self.flake.encrypt(raw)
    }
}

impl<C: Clock + Send + Sync + 'static> Leased<Snowflake<C>> {
    /// Reads an id back; see [`Snowflake::inspect`].
    ///
    /// # Errors
    ///
    /// As [`Snowflake::inspect`].
    pub fn inspect(&self, raw: u64) -> Result<RawParts> {
        self.flake.inspect(raw)
    }

    /// Returns the layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        self.flake.layout()
    }
}

impl Source {
    /// Does what the keeper wants until a generator is to be opened.
    fn acquire(&self, clock: &impl Clock) -> Result<Granted> {
        let node_ids = self.node_ids.clone();
        let mut keeper = Keeper::new(self.options)?
            .note(Note::of_process())
            .by_hand(move |granted| node_ids.grant(granted));
        let mut store = Some(self.location.open(&self.namespace)?);
        let mut interrupted = None;
        let deadline = reading()?.boot + self.options.acquire_timeout;
        loop {
            let now = reading()?;
            match keeper.step(now) {
                Step::Open { node_ids, lease } => {
                    return Ok(Granted { keeper, store, node_ids, lease });
                }
                Step::Stopped => {
                    let failure =
                        interrupted.or_else(|| keeper.last_error().map(Error::without_cause));
                    return Err(failure.expect("it ends early for a reason"));
                }
                Step::Sleep(pause) => {
                    if let Err(error) = clock.sleep(pause) {
                        interrupted = Some(error);
                        keeper.stop();
                    }
                }
                // The first try takes its time: what is in the way then is the better error.
                Step::Acquire(request) if keeper.last_error().is_some() => {
                    let left = deadline.saturating_sub(now.boot).max(LAST_TRY);
                    let answer = self.acquire_within(left, &request, &mut store);
                    let answer = answer.unwrap_or_else(|| {
                        Err(keeper.last_error().expect("just looked").without_cause())
                    });
                    if keeper.answer(Answer::Acquired(answer), reading()?).is_err() {
                        store = None; // it delivers the answers to others
                    }
                }
                step => self.ask(step, &mut keeper, &mut store)?,
            }
        }
    }

    /// Acquires, or gives up after that long, whatever the store's client does meanwhile.
    fn acquire_within(
        &self,
        limit: Duration,
        request: &Acquire,
        store: &mut Connection,
    ) -> Option<Result<Reply<Acquired>>> {
        let opened = store.take().map_or_else(|| self.location.open(&self.namespace), Ok);
        let mut store_of_thread = match opened {
            Ok(opened) => opened,
            Err(error) => return Some(Err(error)),
        };
        // Without room: what nobody takes any more is given back by the thread.
        let (sender, receiver) = mpsc::sync_channel(0);
        let request = request.clone();
        let work = move || {
            let reply = store_of_thread.acquire(&request);
            let unwanted = sender.send((store_of_thread, reply)).err();
            if let Some(SendError((mut store, Ok(reply)))) = unwanted
                && let Acquired::Granted { leases, .. } = reply.outcome
            {
                for NodeLease { node_id, start, .. } in leases {
                    let (token, node_ids) = (request.token, vec![node_id]);
                    // It was never stamped. What cannot be given back is over by itself.
                    let _ = store.release(&Release { token, node_ids, used_until: start });
                }
            }
        };
        let thread = thread::Builder::new().name("randflake-acquire".to_owned());
        if let Err(error) = thread.spawn(work) {
            return Some(Err(no_thread(&error)));
        }
        let (opened, reply) = receiver.recv_timeout(limit).ok()?;
        *store = Some(opened);
        Some(reply)
    }

    /// Gives back what no generator could be opened over, and returns why.
    fn give_back(&self, granted: Granted, why: Error) -> Error {
        let Granted { mut keeper, mut store, .. } = granted;
        let Ok(now) = reading() else { return why };
        let _ = keeper.answer(Answer::Opened(Err(why.without_cause())), now);
        while let step @ Step::Release(_) = keeper.step(now) {
            if self.ask(step, &mut keeper, &mut store).is_err() {
                break;
            }
        }
        why
    }

    fn ask(&self, step: Step, keeper: &mut Keeper, store: &mut Connection) -> Result<()> {
        let answer = self.answer_of(step, store);
        if keeper.answer(answer, reading()?).is_err() {
            *store = None; // it delivers the answers to others
        }
        Ok(())
    }

    /// Does an operation of the store.
    fn answer_of(&self, step: Step, store: &mut Connection) -> Answer {
        let open = || match store {
            Some(store) => Ok(store),
            none => Ok(none.insert(self.location.open(&self.namespace)?)),
        };
        match step {
            Step::Acquire(request) => Answer::Acquired(open().and_then(|s| s.acquire(&request))),
            Step::Renew(request) => Answer::Renewed(open().and_then(|s| s.renew(&request))),
            Step::Release(request) => Answer::Released(open().and_then(|s| s.release(&request))),
            other => unreachable!("{other:?} is for the generator"),
        }
    }
}

/// What the thread does; tells everybody when it ends, however it does.
fn work(post: &Post, flake: &impl Flake, source: &Source, store: Connection) {
    // What a panic leaves is still good: the keeper repeats what was not answered. But it would
    // panic again.
    let kept = panic::catch_unwind(AssertUnwindSafe(|| keep_up(post, flake, source, store)));
    let kept = kept.unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::Internal,
            "a defect: the thread that renews the lease has panicked; its message is on the \
             standard error output",
        ))
    });
    let mut desk = post.lock();
    if let (Err(error), Some(keeper)) = (kept, &mut desk.keeper) {
        keeper.give_up(error, reading().map_or(0, Reading::second));
    }
    desk.ended = true;
    post.hurry(desk);
}

/// Does all that the keeper wants, to its end.
fn keep_up(post: &Post, flake: &impl Flake, source: &Source, mut store: Connection) -> Result<()> {
    let mut rests = false;
    loop {
        let now = reading()?;
        let mut desk = post.lock();
        match desk.turn(flake, now) {
            Turn::Over => return Ok(()),
            Turn::Done => {}
            Turn::Sleep(_) if !rests && desk.rests_for(now) > LONG_REST => {
                drop(desk); // the store may take its time
                if let Some(store) = &mut store {
                    store.rest();
                }
                rests = true;
            }
            Turn::Sleep(pause) => {
                let waited = post.changed.wait_timeout_while(desk, pause, |desk| !desk.hurry);
                let (mut desk, _) = waited.unwrap_or_else(PoisonError::into_inner);
                desk.hurry = false;
            }
            Turn::Ask(step) => {
                drop(desk); // the store may take its time
                let answer = source.answer_of(step, &mut store);
                rests = false;
                let mut desk = post.lock();
                let Some(keeper) = &mut desk.keeper else { return Ok(()) };
                let now = reading()?;
                let is_foreign = keeper.answer(answer, now).is_err();
                let accepts_another = keeper.accepts_another_store();
                let has_time = !keeper.time_left(now).is_zero();
                drop(desk); // the store may take its time
                match &mut store {
                    Some(store) if accepts_another => store.accept_another(),
                    // It delivers the answers to others. Opened anew it would no longer know which
                    // store the lease is from.
                    Some(store) if is_foreign && has_time => store.rest(),
                    _ if is_foreign => store = None,
                    _ => {}
                }
            }
        }
    }
}

impl Desk {
    /// Does what the keeper wants of the generator, and says what it wants of others.
    pub(crate) fn turn(&mut self, flake: &impl Flake, now: Reading) -> Turn {
        let Some(keeper) = &mut self.keeper else { return Turn::Over };
        let answer = match keeper.step(now) {
            Step::Stopped => return Turn::Over,
            Step::Sleep(pause) => return Turn::Sleep(pause),
            Step::Close => Answer::Closed(self.used_until.take().or_else(|| flake.close())),
            Step::Extend { end_exclusive } => Answer::Extended(flake.extend_lease(end_exclusive)),
            Step::Replace { node_ids, lease } => {
                Answer::Replaced(flake.replace_lease(&node_ids, lease))
            }
            step => return Turn::Ask(step),
        };
        keeper.answer(answer, now).expect("the answer to this step");
        Turn::Done
    }

    /// Returns for how long the store is not to be asked.
    fn rests_for(&self, now: Reading) -> Duration {
        self.keeper.as_ref().map(|keeper| keeper.rests_for(now)).unwrap_or_default()
    }

    /// Ends the generator, before the keeper hears of it.
    pub(crate) fn stop(&mut self, flake: &impl Flake) {
        self.closed = true;
        if let Some(keeper) = &mut self.keeper {
            keeper.stop();
            self.used_until = flake.close();
        } else {
            self.ended = true;
        }
    }
}

/// The turn of a thread of a child to get its first lease: over also when that panics.
struct Acquiring<'a>(&'a Post);

impl Drop for Acquiring<'_> {
    fn drop(&mut self) {
        self.0.lock().acquiring = false;
    }
}

impl Post {
    /// What a panic has left here is still good: the keeper repeats what was not answered.
    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hurry(&self, mut desk: MutexGuard<'_, Desk>) {
        desk.hurry = true;
        drop(desk);
        self.changed.notify_all();
    }
}

impl Watch {
    fn new(life: ProcessLife) -> Self {
        Self { life, post: Arc::default(), next: OnceBox::new() }
    }

    /// Returns that of a life, if it has one. Touches no lock: that of another life may be held
    /// for ever.
    fn of(&self, life: ProcessLife) -> Option<&Self> {
        let mut watch = Some(self);
        while let Some(other) = watch.filter(|watch| watch.life != life) {
            watch = other.next.get();
        }
        watch
    }

    fn of_or_new(&self, life: ProcessLife) -> &Self {
        let mut watch = self;
        while watch.life != life {
            watch = watch.next.get_or_init(|| Box::new(Self::new(life)));
        }
        watch
    }
}

/// As [`Leased::close`]; does not wait again after [`Leased::stop`].
impl<F: Flake> Drop for Leased<F> {
    fn drop(&mut self) {
        let watch = self.watch.of(ProcessLife::current());
        if watch.is_some_and(|watch| !watch.post.lock().closed) {
            self.close();
        }
    }
}

/// Reads both clocks.
fn reading() -> Result<Reading> {
    Ok(Reading { wall: SystemClock.now()?, boot: boot() })
}

/// A clock that goes on while the machine sleeps.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Elsewhere the standard library's clock; some of those stand still while the machine sleeps,
/// and a step of the wall clock is noticed then.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn boot() -> Duration {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed()
}

/// Makes the error of a generator without a lease; `next` is the time to the next attempt.
#[cold]
fn unavailable(why: &str, next: Duration, cause: Option<Error>) -> Error {
    let again = if next.is_zero() {
        "just now".to_owned()
    } else {
        format!("in {:.3} s", next.as_secs_f64())
    };
    let failure = cause.as_ref().map(|cause| format!(", after this failure: {cause}"));
    let failure = failure.unwrap_or_default();
    let message = format!("{why}; the store is asked again {again}{failure}");
    let error = Error::new(ErrorKind::LeaseUnavailable, message)
        .with_retry_after(next.clamp(MOMENT, LONGEST_RETRY));
    if let Some(cause) = cause { error.caused_by(cause) } else { error }
}

#[cold]
fn no_thread(error: &std::io::Error) -> Error {
    Error::new(
        ErrorKind::StoreUnavailable,
        format!("there is no thread to be had that keeps the lease: {error}"),
    )
}

#[cold]
fn closed() -> Error {
    Error::new(ErrorKind::Closed, "this generator was closed; make a new one")
}

impl<F: Flake> fmt::Debug for Leased<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased").field("node_ids", &self.flake.node_ids()).finish_non_exhaustive()
    }
}

impl<F: Flake> fmt::Debug for LeasedBuilder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedBuilder")
            .field("namespace", &self.namespace)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
