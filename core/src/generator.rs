//! The generator: one for all formats of ids. The compiler removes what a format does not need.

mod builder;
mod call;
mod generate;
#[cfg(all(test, loom))]
mod loom_tests;
mod ownership;
mod plan;
mod wait;

use std::{fmt, ops::Range, sync::Arc, time::Duration};

use self::ownership::{Ownership, grant};
use crate::{
    Clock, Error, ErrorKind, Format, Layout, Lease, NodeIds, Result, SystemClock,
    fork::ForkId,
    layout,
    metrics::Metrics,
    packed_state::PackedState,
    registry::OpenGuard,
    term::{CurrentTerm, Term},
};

pub use self::{
    builder::{Builder, check_max_wait, invalid_max_drift, invalid_max_wait},
    call::{Call, Order, Reach, Wait},
};

/// A generator of unique 64-bit ids of a [`Format`]: [`Randflake`](crate::Randflake) or
/// [`Snowflake`](crate::Snowflake). Their pages show how to make a generator and how to read an id;
/// this one has the functions that both share. A tick of `Randflake` is a second; the [`Layout`]
/// sets that of `Snowflake`.
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
    current_term: CurrentTerm,
    ownership: Ownership,
    /// The register of this process's node ids. `None` with an injected clock.
    registered: Option<NodeIds>,
    /// `None` with a lease or with an injected clock.
    open_guard: Option<OpenGuard>,
    max_wait: Duration,
    /// In seconds.
    max_drift: u32,
    clock: C,
}

impl<F: Format, C: Clock> Generator<F, C> {
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
        self.current_term.node_ids()
    }

    /// Returns the lease, in whole seconds; `None` without one and after [`close`](Self::close).
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        let term = self.current_term.peek().filter(|_| self.ownership != Ownership::Manual)?;
        let layout = self.format.layout();
        Lease::new(layout.second_of(term.start), layout.second_from(term.end_exclusive())).ok()
    }

    /// Returns what this generator has done in this process. A forked child begins at zero.
    ///
    /// Nothing is counted on the way of an id: the number of ids follows from the last one, and is
    /// added up where a tick changes. Generators of a process with the same manually assigned node
    /// ids make one sequence of ids, and each returns the number of all of them, also of those that
    /// were closed.
    ///
    /// ```
    /// use randflake::{Randflake, Secret};
    ///
    /// let flake = Randflake::new(9, &Secret::random())?;
    /// flake.fill_i64(&mut [0; 1000])?;
    /// let metrics = flake.metrics();
    /// assert_eq!(metrics.ids_generated, 1000);
    /// assert!(metrics.waits.iter().any(|(kind, _)| kind.code() == "SEQUENCE_EXHAUSTED"));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.current_term.metrics()
    }

    /// Raises the end of the lease to the unix second `end_exclusive`. A second before the present
    /// end changes nothing. Do not call it and [`replace_lease`](Self::replace_lease) at the same
    /// time: it extends the lease that is current when it runs.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): there is no lease, or the end lies outside
    /// the lifetime. [`Forked`](crate::ErrorKind::Forked), [`Closed`](crate::ErrorKind::Closed).
    pub fn extend_lease(&self, end_exclusive: i64) -> Result<()> {
        self.extend_lease_of(ForkId::current(), end_exclusive)
    }

    /// As [`extend_lease`](Self::extend_lease), for a thread that keeps the lease of this process, and
    /// may come here after a restore: then it is another process's.
    ///
    /// # Errors
    ///
    /// As [`extend_lease`](Self::extend_lease); [`Forked`](crate::ErrorKind::Forked) after a restore.
    pub fn extend_lease_of(&self, process: ForkId, end_exclusive: i64) -> Result<()> {
        let term = self.current_term.get_of(process)?;
        if self.ownership == Ownership::Manual {
            return Err(Error::new(
                ErrorKind::InvalidLease,
                "this generator was made without a lease, so there is none to extend",
            ));
        }
        let layout = self.format.layout();
        Lease::new(layout.second_of(0).max(layout::EPOCH), end_exclusive)?;
        // An earlier end changes nothing, even if it divides a tick.
        if end_exclusive > layout.second_from(term.end_exclusive()) {
            let longer = Lease::new(layout.second_of(term.start), end_exclusive)?;
            term.extend(self.window_of(longer)?.end);
        }
        Ok(())
    }

    /// Switches to other node ids or another window, both granted to this generator alone. The first
    /// id of the new lease has a later tick than the last id of the old one, so time does not run
    /// backwards. Ids that promise no order, those of [`Randflake`](crate::Randflake), go back where the
    /// clock that stamped the old ones was ahead, or was set back since: a lease of other node ids then
    /// begins at its own start, and nothing waits. Returns the first unix second in which nothing was issued under the old lease:
    /// release the old lease from that second on. Ids are stamped up to `most_drift` seconds ahead of
    /// the clock, as for [`begin`](Self::begin).
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): the generator was not made with
    /// [`Builder::granted_lease`], or the lease holds no whole tick of the lifetime.
    /// [`LifetimeOver`](crate::ErrorKind::LifetimeOver): the lease begins after the lifetime.
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): as for [`Builder::build`].
    /// [`Forked`](crate::ErrorKind::Forked), [`Closed`](crate::ErrorKind::Closed).
    pub fn replace_lease(&self, node_ids: &[u32], lease: Lease, most_drift: u32) -> Result<i64> {
        self.replace_lease_of(ForkId::current(), node_ids, lease, most_drift)
    }

    /// As [`replace_lease`](Self::replace_lease), for a thread, as
    /// [`extend_lease_of`](Self::extend_lease_of).
    ///
    /// # Errors
    ///
    /// As [`replace_lease`](Self::replace_lease); [`Forked`](crate::ErrorKind::Forked) after a restore.
    pub fn replace_lease_of(
        &self,
        process: ForkId,
        node_ids: &[u32],
        lease: Lease,
        most_drift: u32,
    ) -> Result<i64> {
        self.current_term.get_of(process)?;
        let (nodes, slots) = self.granted(node_ids)?;
        let (window, max_drift) = (self.window_of(lease)?, self.drift_within(most_drift));
        // About what could be stamped when the lease was granted. Later stamps nobody could wait for.
        let soon = max_drift.saturating_add(self.format.layout().ticks_in(1));
        let goes_on_to = if F::ORDERED { u64::MAX } else { window.start.saturating_add(soon) };
        let unused_from =
            self.current_term.replace(process, &nodes, slots, &window, max_drift, goes_on_to)?;
        Ok(self.format.layout().second_from(unused_from))
    }

    /// Returns how far stamps may be ahead of the clock, in ticks.
    fn drift_within(&self, most_drift: u32) -> u64 {
        self.format.layout().ticks_in(self.max_drift.min(most_drift))
    }

    /// Begins in a process that has no lease of its own yet, with node ids and a window that were
    /// granted to this process alone: in a forked child none that its parent has or ever had, and
    /// after [`Builder::granted_later`] the first of all. Ids are stamped up to `most_drift` seconds
    /// ahead of the clock, and no more than [`Builder::max_drift`]. Call it once in each process, from
    /// one thread.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): the generator was not made for granted
    /// leases, or has begun in this process already, or the lease holds no whole tick of the
    /// lifetime. [`LifetimeOver`](crate::ErrorKind::LifetimeOver): the lease begins after the
    /// lifetime.
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): as for [`Builder::build`].
    /// [`Closed`](crate::ErrorKind::Closed): the generator was closed, perhaps before the fork.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use randflake::{ErrorKind, Lease, Randflake, Secret};
    ///
    /// let flake = Randflake::builder(&Secret::random()).granted_later(1).build()?;
    /// assert_eq!(flake.generate().unwrap_err().kind(), ErrorKind::LeaseUnavailable);
    ///
    /// let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs().cast_signed();
    /// flake.begin(&[7], Lease::new(now, now + 300)?, 0)?;
    /// assert_eq!(flake.inspect(flake.generate()?).node_id, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin(&self, node_ids: &[u32], lease: Lease, most_drift: u32) -> Result<()> {
        self.begin_of(ForkId::current(), node_ids, lease, most_drift)
    }

    /// As [`begin`](Self::begin), with a lease that the process with this fork id has asked for.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin); [`Forked`](crate::ErrorKind::Forked) after a fork or a restore.
    pub fn begin_of(
        &self,
        process: ForkId,
        node_ids: &[u32],
        lease: Lease,
        most_drift: u32,
    ) -> Result<()> {
        let (nodes, slots) = self.granted(node_ids)?;
        let nodes: Arc<[u32]> = nodes.into();
        let window = self.window_of(lease)?;
        let max_drift = self.drift_within(most_drift);
        self.current_term.begin(|| {
            let state = Arc::new(PackedState::new(slots, window.start));
            Term::new(process, Arc::clone(&nodes), window.clone(), max_drift, state)
        })
    }

    /// Ends the generator for good: every later call that needs it open fails with
    /// [`Closed`](crate::ErrorKind::Closed). For a granted lease, returns the first unix second in
    /// which nothing was issued: release the lease from that second on. Does nothing, and returns
    /// `None`, in a forked child, after a restore, and the second time.
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
        // First: as soon as another thread finds the generator closed, it may hand the node ids over.
        if let Some(open) = &self.open_guard {
            open.close();
        }
        self.close_of(ForkId::current())
    }

    /// As [`close`](Self::close), for a thread, as [`extend_lease_of`](Self::extend_lease_of): after a
    /// restore it closes nothing.
    pub fn close_of(&self, process: ForkId) -> Option<i64> {
        let term = self.current_term.close(process)?;
        // A state shared with other generators stays open.
        (self.ownership == Ownership::Granted)
            .then(|| self.format.layout().second_from(term.state.seal()))
    }
}

impl<F: Format, C: Clock> Generator<F, C> {
    fn window_of(&self, lease: Lease) -> Result<Range<u64>> {
        self.ownership.window_of(self.format.layout(), lease)
    }

    /// Checks and registers node ids that a coordinator granted. Returns them, and how many slots
    /// they have in a tick.
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
}

impl<F: Format, C> fmt::Debug for Generator<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(F::GENERATOR)
            .field("layout", &self.format.layout().name())
            .field("node_ids", &self.current_term.node_ids())
            .finish_non_exhaustive()
    }
}
