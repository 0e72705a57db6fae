//! The options of a generator with leased node ids.

use std::{fmt, sync::Arc, time::Duration};

use randflake::{
    Builder, Clock, Encrypted, Error, Format, Generator, Layout, Lease, Result, SystemClock,
    bindings::{self, ForkId, check_max_wait},
};

use super::{
    Leased,
    source::{FirstLease, LeaseSource},
    thread::ProcessLease,
};
use crate::{LeasedFormat, Location, Namespace, keeper::Options};

/// The options of a [`Leased`] generator; see [`Leased::builder`] and [`Leased::for_layout`].
pub struct LeasedBuilder<F: Format = Encrypted, C = SystemClock> {
    location: Location,
    config: F::Config,
    namespace: String,
    options: Options,
    max_wait: Duration,
    max_drift: Option<u32>,
    clock: C,
}

impl<F: LeasedFormat> LeasedBuilder<F> {
    /// Starts to describe a leased generator of any format.
    #[must_use]
    pub fn new(location: Location, config: F::Config) -> Self {
        Self {
            location,
            config,
            namespace: "default".to_owned(),
            options: Options::default(),
            max_wait: Duration::from_secs(1),
            max_drift: None,
            clock: SystemClock,
        }
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
    /// 86 400; 300 by default. The generator survives a store outage of up to two thirds of it. When
    /// a process is killed, its node id stays reserved for up to that long.
    #[must_use]
    pub fn ttl(mut self, seconds: u32) -> Self {
        self.options.ttl = seconds;
        self
    }

    /// Sets the largest difference between two clocks in seconds, 0 to a sixth of the ttl; 5 by
    /// default. An existing namespace keeps the value that it was created with.
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
        self.location = self.location.create(create);
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

    /// Sets how many whole seconds ahead of the clock ids may be stamped, 0 to a third of the ttl.
    /// The generator then tolerates a clock that steps back, and a burst may use coming seconds,
    /// which the lease covers. The default is 10 or that third for Randflake, and 0 for a
    /// [`Snowflake`](randflake::Snowflake), whose ids would be out of order with those of other
    /// nodes.
    #[must_use]
    pub fn max_drift(mut self, seconds: u32) -> Self {
        self.max_drift = Some(seconds);
        self
    }

    /// Sets the clock whose [`sleep`](Clock::sleep) waits. It must read the machine's time. For the
    /// bindings to other languages.
    #[must_use]
    pub fn clock<D: Clock + Send + Sync + 'static>(self, clock: D) -> LeasedBuilder<F, D> {
        LeasedBuilder {
            clock,
            location: self.location,
            config: self.config,
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
    /// As [`leased`](crate::leased) or [`leased_snowflake`](crate::leased_snowflake), and
    /// `INVALID_ARGUMENT` for options out of range.
    pub fn open(self) -> Result<Leased<F, C>> {
        let Options { node_count, ttl, .. } = self.options;
        let namespace = F::namespace(&self.config, self.namespace)?
            .max_ttl_and_skew(ttl.max(Namespace::MAX_TTL), self.options.max_skew)?;
        check_layout(&F::layout_of(&self.config), node_count, ttl)?;
        check_max_wait(self.max_wait)?;
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
        let (location, options) = (self.location, self.options);
        let source = LeaseSource { location, namespace, options, node_ids };
        let process_lease = ProcessLease::new(ForkId::current());
        let granted = source.acquire(&self.clock)?;
        let FirstLease { node_ids, lease, .. } = &granted;
        let max_drift = max_drift.min(most_drift(*lease));
        let generator =
            generator_over(self.config, node_ids, *lease, self.max_wait, max_drift, self.clock);
        match generator {
            Err(error) => Err(source.give_back(granted, error)),
            Ok(generator) => {
                let (generator, source) = (Arc::new(generator), Arc::new(source));
                let leased = Leased { generator, source, max_wait: self.max_wait, process_lease };
                leased.keep(&leased.process_lease, granted)?;
                Ok(leased)
            }
        }
    }
}

/// Makes the generator over a granted lease.
pub(crate) fn generator_over<F: Format, C: Clock>(
    config: F::Config,
    node_ids: &[u32],
    lease: Lease,
    max_wait: Duration,
    max_drift: u32,
    clock: C,
) -> Result<Generator<F, C>> {
    Builder::new(config)
        .node_ids(node_ids.iter().copied())
        .granted_lease(lease)
        .max_wait(max_wait)
        .max_drift(max_drift)
        .clock(clock)
        .build()
}

/// Returns the largest `max_drift` over a lease, in seconds: the store may grant a shorter lease than
/// requested. [`ReleaseDead`](crate::operator::ReleaseDead) relies on it.
pub(crate) fn most_drift(lease: Lease) -> u32 {
    u32::try_from((lease.end_exclusive() - lease.start()) / 3).unwrap_or(0)
}

/// Refuses a layout that no store can lease node ids for as requested.
fn check_layout(layout: &Layout, node_count: u32, ttl: u32) -> Result<()> {
    if layout.remaining().is_zero() {
        return Err(bindings::lifetime_over(layout));
    }
    if node_count as usize > layout.max_nodes() {
        return Err(Error::invalid_argument(format!(
            "a generator of the layout {} has 1 to {} node ids, got {node_count}",
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

impl<F: Format, C> fmt::Debug for LeasedBuilder<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedBuilder")
            .field("namespace", &self.namespace)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
