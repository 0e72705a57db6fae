//! The options of a generator, and how one is made.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    Generator,
    ownership::{Ownership, grant},
    plan::before_epoch,
};
use crate::{
    Clock, Error, ErrorKind, Format, Lease, Result, SystemClock,
    fork::ForkId,
    layout::lifetime::lifetime_over,
    packed_state::PackedState,
    term::{CurrentTerm, Term},
};

/// Longest `max_wait`: a day.
const MAX_WAIT: Duration = Duration::from_secs(86_400);

/// The options of a [`Generator`]; see [`Randflake::builder`](crate::Randflake::builder) and
/// [`Snowflake::builder`](crate::Snowflake::builder).
pub struct Builder<F: Format, C = SystemClock> {
    config: F::Config,
    node_ids: Vec<u32>,
    lease: Option<(Lease, Ownership)>,
    /// How many node ids a first lease will have, where there is none yet.
    granted_later: Option<u32>,
    max_wait: Duration,
    max_drift: u32,
    restart_safe: bool,
    clock: C,
}

impl<F: Format> Builder<F> {
    /// Starts a generator of any format.
    #[must_use]
    pub fn new(config: F::Config) -> Self {
        Self {
            config,
            node_ids: Vec::new(),
            lease: None,
            granted_later: None,
            max_wait: Duration::from_secs(1),
            max_drift: 0,
            restart_safe: true,
            clock: SystemClock,
        }
    }
}

impl<F: Format, C: Clock> Builder<F, C> {
    /// Adds a node id, 0 to [`Layout::max_node_id`](crate::Layout::max_node_id), which is 131 071 for
    /// `Randflake`. A layout without node ids needs none.
    #[must_use]
    pub fn node_id(self, node_id: u32) -> Self {
        self.node_ids([node_id])
    }

    /// Adds node ids: k of them give k times
    /// [`Layout::ids_per_node`](crate::Layout::ids_per_node) ids a tick, for `Randflake` k times
    /// 131 072 a second. At most [`Layout::max_nodes`](crate::Layout::max_nodes), for `Randflake`
    /// 16 384; each once.
    #[must_use]
    pub fn node_ids(mut self, node_ids: impl IntoIterator<Item = u32>) -> Self {
        self.node_ids.extend(node_ids);
        self
    }

    /// Limits the generator to ticks that lie in the seconds of this lease.
    /// [`Generator::extend_lease`] can raise the end. Use a lease in one process only, and not again
    /// after a restart or a fork.
    ///
    /// ```
    /// use randflake::{Layout, Lease, Snowflake};
    ///
    /// let noon = 1_763_640_000;
    /// let flake = Snowflake::builder(Layout::twitter())
    ///     .node_id(1)
    ///     .lease(Lease::new(noon, noon + 300)?)
    ///     .max_drift(2) // a burst may borrow two seconds' worth of milliseconds
    ///     .clock(move || noon * 1_000_000_000)
    ///     .build()?;
    /// flake.extend_lease(noon + 600)?;
    /// assert_eq!(flake.lease(), Some(Lease::new(noon, noon + 600)?));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> Self {
        self.lease = Some((lease, Ownership::OwnLease));
        self
    }

    /// Like [`lease`](Self::lease), for a lease that a coordinator granted to this generator alone:
    /// no other generator, in this process or elsewhere, has a lease of these node ids over these
    /// seconds. A part outside the lifetime of the layout is ignored.
    /// [`Generator::replace_lease`] can then change nodes and window.
    #[must_use]
    pub fn granted_lease(mut self, lease: Lease) -> Self {
        self.lease = Some((lease, Ownership::Granted));
        self
    }

    /// Like [`granted_lease`](Self::granted_lease), for a lease with so many node ids that is yet to
    /// be granted. Until [`Generator::begin`] every call fails with
    /// [`LeaseUnavailable`](crate::ErrorKind::LeaseUnavailable).
    #[must_use]
    pub fn granted_later(mut self, node_count: u32) -> Self {
        self.granted_later = Some(node_count);
        self
    }

    /// Sets how long a call may wait in total, 0 to 86 400 seconds. The default is 1 second. A batch
    /// may also take the ticks that it needs for its size. With zero no call ever waits.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// Sets how many whole seconds ahead of the clock ids may be stamped, 0 to 3 600. The default is
    /// 0, because ids that run ahead are out of order with those of other nodes. Drift absorbs a
    /// clock that steps back, and lets a burst borrow coming ticks. It needs a lease: without one a
    /// restart would repeat the borrowed ticks.
    #[must_use]
    pub fn max_drift(mut self, seconds: u32) -> Self {
        self.max_drift = seconds;
        self
    }

    /// Sets whether a generator without a lease skips the rest of the tick in which it is made. The
    /// default is true, because the process that had its node ids before may have ended in that
    /// tick. Nothing is skipped if another generator of this process has the same node ids, was made
    /// in an earlier tick and is still open. Has no effect with a lease, which starts where it says,
    /// or with an injected clock.
    #[must_use]
    pub fn restart_safe(mut self, restart_safe: bool) -> Self {
        self.restart_safe = restart_safe;
        self
    }

    /// Injects a clock, for tests. The generator then shares no record of issued ids with other
    /// generators.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> Builder<F, D> {
        Builder {
            clock,
            config: self.config,
            node_ids: self.node_ids,
            lease: self.lease,
            granted_later: self.granted_later,
            max_wait: self.max_wait,
            max_drift: self.max_drift,
            restart_safe: self.restart_safe,
        }
    }

    /// Makes the generator.
    ///
    /// # Errors
    ///
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): no node id, one out of range, one listed
    /// twice, or too many.
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): `max_wait` or `max_drift` out of
    /// range, or `max_drift` without a lease; or the platform has no [clock](SystemClock).
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): the lease lies outside the lifetime of
    /// the layout, or holds no whole tick.
    /// [`LifetimeOver`](crate::ErrorKind::LifetimeOver), [`NodeInUse`](crate::ErrorKind::NodeInUse),
    /// [`Forked`](crate::ErrorKind::Forked): see [`Snowflake::new`](crate::Snowflake::new).
    pub fn build(mut self) -> Result<Generator<F, C>> {
        // After a fork from here on, by a signal handler, the generator belongs to the parent.
        let (fork_id, threads) = (ForkId::current(), ForkId::of_threads());
        // First: where there is no clock, there may be no random numbers either.
        if cfg!(all(target_family = "wasm", target_os = "unknown")) && self.clock.is_system() {
            self.clock.now()?;
        }
        let format = F::new(&self.config);
        format.check(&self.clock)?;
        let layout = *format.layout();
        check_max_wait(self.max_wait)?;
        if self.max_drift > Lease::MAX_DRIFT {
            return Err(invalid_max_drift(self.max_drift));
        }
        let registered = self.clock.is_system().then(|| F::node_ids_of(&self.config));
        if let Some(node_count) = self.granted_later {
            let slots = u64::from(node_count.max(1)) * layout.ids_per_node();
            return Ok(Generator {
                format,
                current_term: CurrentTerm::new(threads, Term::vacant(slots)),
                ownership: Ownership::Granted,
                registered,
                open_guard: None,
                max_wait: self.max_wait,
                max_drift: self.max_drift,
                clock: self.clock,
            });
        }
        if layout.node_bits() == 0 && self.node_ids.is_empty() {
            self.node_ids.push(0);
        }
        let nodes = layout.checked_nodes(&self.node_ids)?;
        let slots = layout.slots_of(&nodes);
        let ownership = self.lease.map_or(Ownership::Manual, |(_, ownership)| ownership);
        if ownership == Ownership::Manual && self.max_drift > 0 {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "the largest drift must be 0 without a lease, got {}: a restart would repeat \
                     the seconds it ran ahead",
                    self.max_drift
                ),
            ));
        }
        let window =
            self.lease.map(|(lease, _)| ownership.window_of(&layout, lease)).transpose()?;
        let record = match &registered {
            Some(node_ids) if ownership == Ownership::Granted => {
                grant(node_ids, &nodes)?;
                None
            }
            Some(node_ids) => Some(node_ids.manual(&nodes, slots, fork_id)?),
            None => None,
        };
        let tick_after_now = || {
            let now = self.clock.now()?;
            match layout.tick_at(now, 0) {
                Some((tick, _)) => Ok(tick + 1),
                // A machine without a clock of its own starts in 1970. Once the clock has been set, it
                // shows which tick it is and whether an earlier process could have used it.
                None if self.restart_safe => Err(before_epoch(&layout, now)),
                None => Ok(0),
            }
        };
        let open_guard = record
            .filter(|_| ownership == Ownership::Manual)
            .map(|record| record.open(tick_after_now))
            .transpose()?;
        let window = window.unwrap_or_else(|| {
            let start =
                open_guard.as_ref().filter(|_| self.restart_safe).map_or(0, |open| open.from);
            start..layout.lifetime()
        });
        if window.is_empty() {
            return Err(lifetime_over(&layout));
        }
        let state = record.map_or_else(
            || Arc::new(PackedState::new(slots, window.start)),
            |record| Arc::clone(&record.state),
        );
        let max_drift = layout.ticks_in(self.max_drift);
        let first = Term::new(fork_id, nodes.into(), window, max_drift, state);
        first.check_process()?;
        Ok(Generator {
            format,
            current_term: CurrentTerm::new(threads, first),
            ownership,
            registered,
            open_guard,
            max_wait: self.max_wait,
            max_drift: self.max_drift,
            clock: self.clock,
        })
    }
}

impl<F: Format, C> fmt::Debug for Builder<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("layout", &F::layout_of(&self.config).name())
            .field("node_ids", &self.node_ids)
            .finish_non_exhaustive()
    }
}

/// Checks the longest wait of a generator that is yet to be made.
///
/// # Errors
///
/// [`InvalidArgument`](ErrorKind::InvalidArgument): it is longer than a day.
///
/// ```
/// use std::time::Duration;
///
/// assert!(randflake::bindings::check_max_wait(Duration::from_secs(86_401)).is_err());
/// # randflake::bindings::check_max_wait(Duration::from_secs(86_400))?;
/// # Ok::<(), randflake::Error>(())
/// ```
pub fn check_max_wait(max_wait: Duration) -> Result<()> {
    if max_wait > MAX_WAIT {
        return Err(invalid_max_wait(max_wait.as_secs_f64()));
    }
    Ok(())
}

/// Makes the error of a `max_wait` outside its range; `got` in seconds.
#[cold]
#[must_use]
pub fn invalid_max_wait(got: impl fmt::Display) -> Error {
    let max = MAX_WAIT.as_secs();
    Error::new(
        ErrorKind::InvalidArgument,
        format!("the longest wait (max_wait) must be between 0 and {max} seconds, got {got}"),
    )
}

/// Makes the error of a `max_drift` outside its range.
#[cold]
#[must_use]
pub fn invalid_max_drift(got: impl fmt::Display) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "the largest drift (max_drift) must be between 0 and {} whole seconds, got {got}",
            Lease::MAX_DRIFT
        ),
    )
}
