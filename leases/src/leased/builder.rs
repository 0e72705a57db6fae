//! The options of a generator with leased node ids.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use once_cell::race::OnceBox;
use randflake::{
    Builder, Clock, Encrypted, Error, Format, Generator, Layout, Result, SystemClock,
    bindings::{self, ForkId},
};

use super::{
    Leased,
    shared::ProcessLease,
    source::{LeaseSource, OnLeaseChange},
};
use crate::{
    environment::Environment,
    format::LeasedFormat,
    keeper::{Keeper, Options},
    leased::LeaseStatus,
    location::Location,
    namespace::Namespace,
    per_process::PerProcess,
};

/// The options of a [`Leased`] generator; see [`Leased::builder`] and [`Leased::for_layout`].
pub struct LeasedBuilder<F: Format = Encrypted, C = SystemClock> {
    location: Location,
    create: Option<bool>,
    config: F::Config,
    namespace: String,
    options: Options,
    max_wait: Duration,
    max_drift: Option<u32>,
    on_lease_change: Option<Arc<OnLeaseChange>>,
    is_interruptible: bool,
    clock: C,
}

impl<F: LeasedFormat> LeasedBuilder<F> {
    /// Starts to describe a leased generator of any format.
    #[must_use]
    pub fn new(location: Location, config: F::Config) -> Self {
        Self {
            location,
            create: None,
            config,
            namespace: "default".to_owned(),
            options: Options::default(),
            max_wait: Duration::from_secs(1),
            max_drift: None,
            on_lease_change: None,
            is_interruptible: false,
            clock: SystemClock,
        }
    }

    /// Starts to describe a generator with the store and the namespace of an environment.
    pub(super) fn in_environment(environment: Environment<'_>, config: F::Config) -> Result<Self> {
        let builder = Self::new(environment.store()?.into(), config);
        Ok(match environment.namespace()? {
            Some(name) => builder.namespace(name),
            None => builder,
        })
    }
}

impl<F: LeasedFormat, C: Clock + Send + Sync + 'static> LeasedBuilder<F, C> {
    /// Sets the number of node ids, 1 to [`Layout::max_nodes`], 16 384 for Randflake; 1 by default.
    /// Each adds 131 072 ids a second, or [`Layout::ids_per_node`] a tick. While the store has
    /// fewer free node ids, the generator works with fewer.
    #[must_use]
    pub fn node_count(mut self, node_count: u32) -> Self {
        self.options.node_count = node_count;
        self
    }

    /// Sets the length of a lease in seconds, at least six times the largest skew and at most
    /// 86 400; 300 by default. An existing namespace grants no more than its longest. The generator
    /// survives a store outage of up to two thirds of the lease. When a process is killed, its node
    /// id stays reserved for up to that long.
    #[must_use]
    pub fn ttl(mut self, seconds: u32) -> Self {
        self.options.ttl = seconds;
        self
    }

    /// Sets the largest difference between two clocks in seconds, 0 to a sixth of the ttl; 5 by
    /// default. An existing namespace keeps the value that it was created with, and that counts if it
    /// is smaller.
    #[must_use]
    pub fn max_skew(mut self, seconds: u32) -> Self {
        self.options.max_skew = seconds;
        self
    }

    /// Names the namespace, 1 to 200 bytes; `default` by default. Use one for each secret or layout:
    /// one generator serves all tables of a secret.
    #[must_use]
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.namespace = name.into();
        self
    }

    /// Sets whether the first lease creates a missing namespace, as
    /// [`InitMode::New`](crate::InitMode::New). By default it does in a SQLite file, which it also
    /// creates, and does not in a store with a server. With `false`, a lost file is
    /// `STORE_NOT_INITIALIZED` instead of an empty store that grants what others still hold.
    ///
    /// [`open`](Self::open) refuses it for a [`Location`] with a function of its own.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = Some(create);
        self
    }

    /// Sets how long the first lease may take, up to a day; 10 seconds by default. The first attempt
    /// may take as long as the store's client waits for an answer, 3 seconds, even if that is longer.
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

    /// Sets how many whole seconds ahead of the clock ids may be stamped, 0 to a third of the ttl, and
    /// at most 3600.
    /// The generator then tolerates a clock that steps back, and a burst may use coming seconds,
    /// which the lease covers. The default is 10 or that third for Randflake, and 0 for a
    /// [`Snowflake`](randflake::Snowflake), whose ids would be out of order with those of other
    /// nodes.
    #[must_use]
    pub fn max_drift(mut self, seconds: u32) -> Self {
        self.max_drift = Some(seconds);
        self
    }

    /// Sets a function that is called with the first lease, and then with each change of its state or of
    /// its node ids; see [`LeaseStatus::message`] for a log. At the end, when the generator was closed,
    /// it is called with the state `Stopped`. In a forked child it is called once that has a lease.
    ///
    /// It runs on the thread that keeps the lease, which asks the store for nothing in the meantime: do
    /// no more in it than to log, to count or to send a message. It may ask the generator for its
    /// [status](Leased::lease), and [stop](Leased::stop) it, but must not [close](Leased::close) it,
    /// which waits for that thread. A panic in it does not touch the lease.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use randflake::Secret;
    /// use randflake_leases::{Leased, Level, Location, MemoryStore, keeper::State};
    ///
    /// let (sender, changes) = mpsc::channel();
    /// let store = Location::new(|namespace| Ok(Box::new(MemoryStore::new(namespace))));
    /// let flake = Leased::builder(store, &Secret::random())
    ///     .on_lease_change(move |status| {
    ///         if status.level() >= Level::Warning {
    ///             eprintln!("{}", status.message());
    ///         }
    ///         let _ = sender.send(status.state);
    ///     })
    ///     .open()?;
    /// flake.close();
    /// assert!(changes.iter().take(2).eq([State::Holding, State::Stopped]));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn on_lease_change(
        mut self,
        on_lease_change: impl Fn(&LeaseStatus) + Send + Sync + 'static,
    ) -> Self {
        self.on_lease_change = Some(Arc::new(on_lease_change));
        self
    }

    /// Replaces where the leases come from. For the bindings to other languages.
    #[must_use]
    pub fn location(mut self, location: Location) -> Self {
        self.location = location;
        self
    }

    /// Replaces the secret or the layout. For the bindings to other languages.
    #[must_use]
    pub fn config(mut self, config: F::Config) -> Self {
        self.config = config;
        self
    }

    /// Sets the clock whose [`sleep`](Clock::sleep) waits. It must read the machine's time. For the
    /// bindings to other languages.
    #[must_use]
    pub fn clock<D: Clock + Send + Sync + 'static>(self, clock: D) -> LeasedBuilder<F, D> {
        LeasedBuilder {
            clock,
            location: self.location,
            create: self.create,
            config: self.config,
            namespace: self.namespace,
            options: self.options,
            max_wait: self.max_wait,
            max_drift: self.max_drift,
            on_lease_change: self.on_lease_change,
            is_interruptible: self.is_interruptible,
        }
    }

    /// Has an error of the clock's [`sleep`](Clock::sleep) end the wait for a first lease at any time,
    /// also while the store is asked: a thread asks it, and the caller has the clock sleep, for no
    /// time, every 50 ms. That may fork the process. For the bindings to other languages, whose
    /// signals have handlers.
    #[must_use]
    pub fn interruptible(mut self) -> Self {
        self.is_interruptible = true;
        self
    }

    /// Takes the first lease and makes the generator.
    ///
    /// # Errors
    ///
    /// As [`leased`](crate::leased) or [`leased_snowflake`](crate::leased_snowflake), and
    /// `INVALID_ARGUMENT` for options out of range.
    pub fn open(self) -> Result<Leased<F, C>> {
        let leased = self.open_lazily()?;
        leased.take_first_lease(leased.own_process_lease())?;
        Ok(leased)
    }

    /// Makes the generator, which takes its first lease with its first id: the store is not contacted
    /// before that. Where that fails, the call does, with `LEASE_UNAVAILABLE` or, if waiting does not
    /// help, the store's own error; the next call tries again.
    ///
    /// A server that forks its workers makes the generator in its master. Each worker that asks for
    /// an id takes a lease of its own, and the master none, unless it asks for one as well.
    ///
    /// ```
    /// use std::sync::LazyLock;
    /// use randflake::Result;
    /// use randflake_leases::Leased;
    ///
    /// // Settings from the environment: RANDFLAKE_STORE, RANDFLAKE_SECRET
    /// static FLAKE: LazyLock<Leased> = LazyLock::new(|| {
    ///     let flake = Leased::from_env().and_then(|builder| builder.ttl(60).open_lazily());
    ///     flake.expect("the settings of ids")
    /// });
    ///
    /// fn new_order() -> Result<i64> {
    ///     Ok(FLAKE.generate()?.into())
    /// }
    /// # let directory = std::env::temp_dir().join(format!("randflake-lazy-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # // SAFETY: this program has no other thread yet.
    /// # unsafe {
    /// #     std::env::set_var("RANDFLAKE_STORE", directory.join("ids.db"));
    /// #     std::env::set_var("RANDFLAKE_SECRET", randflake::Secret::random().to_hex());
    /// # }
    ///
    /// assert!(FLAKE.node_ids().is_empty()); // nothing is leased yet
    /// let id = new_order()?;
    /// assert_eq!(FLAKE.node_ids(), [FLAKE.inspect(id.into()).node_id]);
    /// # FLAKE.close(); // a static is never dropped
    /// # std::fs::remove_dir_all(&directory).unwrap();
    /// # Ok::<(), randflake::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` for options out of range, `LIFETIME_OVER` for a layout that has ended.
    pub fn open_lazily(self) -> Result<Leased<F, C>> {
        let Options { node_count, ttl, .. } = self.options;
        let namespace = F::namespace(&self.config, self.namespace)?
            .max_ttl_and_skew(ttl.max(Namespace::MAX_TTL), self.options.max_skew)?;
        check_layout(&F::layout_of(&self.config), node_count, ttl)?;
        Keeper::new(self.options)?; // checks them
        // A lease is renewed after a third of the ttl, and a burst must not use up all the rest.
        let most = ttl / 3;
        let max_drift = self.max_drift.unwrap_or(F::MAX_DRIFT.min(most));
        if max_drift > most {
            return Err(Error::invalid_argument(format!(
                "the largest drift (max_drift) must be at most a third of the ttl, which is {most} \
                 seconds, got {max_drift}"
            )));
        }
        let node_ids = F::node_ids_of(&self.config);
        let location = match self.create {
            Some(create) => self.location.create(create),
            None => self.location,
        };
        let options = self.options;
        let source = Arc::new(LeaseSource {
            location,
            namespace,
            options,
            node_ids,
            on_lease_change: self.on_lease_change,
            is_interruptible: self.is_interruptible,
            store_name: OnceBox::new(),
        });
        let process = ForkId::current();
        let process_lease = PerProcess::new(process, ProcessLease::new(process));
        let generator =
            without_lease(self.config, options.node_count, self.max_wait, max_drift, self.clock)?;
        let generator = Arc::new(generator);
        let closed = AtomicBool::new(false);
        Ok(Leased { generator, source, max_wait: self.max_wait, process_lease, closed })
    }
}

/// Makes the generator, which has no lease yet.
pub(crate) fn without_lease<F: Format, C: Clock>(
    config: F::Config,
    node_count: u32,
    max_wait: Duration,
    max_drift: u32,
    clock: C,
) -> Result<Generator<F, C>> {
    Builder::new(config)
        .granted_later(node_count)
        .max_wait(max_wait)
        .max_drift(max_drift)
        .clock(clock)
        .build()
}

/// Refuses a layout that no store can lease node ids for as requested.
///
/// # Errors
///
/// `LIFETIME_OVER`; `INVALID_ARGUMENT`: too many node ids, a lease that is too short for its ticks, or a
/// layout for reading.
pub fn check_layout(layout: &Layout, node_count: u32, ttl: u32) -> Result<()> {
    if layout.remaining().is_zero() {
        return Err(bindings::lifetime_over(layout));
    }
    layout.check_generates()?;
    if node_count as usize > layout.max_nodes() {
        return Err(Error::invalid_argument(format!(
            "a generator of the layout {} must have 1 to {} node ids, got {node_count}",
            layout.name(),
            layout.max_nodes()
        )));
    }
    // A lease that is renewed after a third of the ttl then always covers the whole current tick.
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

/// A derived one would require that of the format as well.
impl<F: Format, C: Clone> Clone for LeasedBuilder<F, C> {
    fn clone(&self) -> Self {
        Self {
            location: self.location.clone(),
            create: self.create,
            config: self.config.clone(),
            namespace: self.namespace.clone(),
            options: self.options,
            max_wait: self.max_wait,
            max_drift: self.max_drift,
            on_lease_change: self.on_lease_change.clone(),
            is_interruptible: self.is_interruptible,
            clock: self.clock.clone(),
        }
    }
}

impl<F: Format, C> fmt::Debug for LeasedBuilder<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedBuilder")
            .field("namespace", &self.namespace)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
