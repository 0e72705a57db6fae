use std::{fmt, time::Duration};

use crate::{
    Clock, Id, Layout, Lease, NodeIds, RawParts, Result, SystemClock,
    buffer::Buffer,
    clock, fork,
    generator::{Format, Generator, Options, Reach},
    lap::Lap,
};

/// A generator of unique 64-bit ids that sort by time, of any [`Layout`] of the Snowflake family.
///
/// What holds for [`Randflake`](crate::Randflake) holds here, under the same names: no id twice,
/// none before its time, an error rather than a guess. But the ids are not encrypted: whoever sees
/// one can read and predict others. [`Cloak`](crate::Cloak) hides them.
///
/// **A node id given by hand is safe for one live process at a time, on a machine whose clock has
/// not stepped back over the last id.** A [lease](SnowflakeBuilder::lease) bounds the seconds a
/// generator may use.
///
/// ```
/// use randflake::{Layout, Snowflake};
///
/// let flake = Snowflake::new(378, Layout::twitter())?;
/// let (one, other) = (flake.generate()?, flake.generate()?);
/// assert!(one < other);
/// assert_eq!(flake.inspect(one)?.node_id, 378);
/// # Ok::<(), randflake::Error>(())
/// ```
pub struct Snowflake<C = SystemClock> {
    generator: Generator<Plain, C>,
}

/// What a [`Snowflake`] is made from; see [`Snowflake::builder`].
pub struct SnowflakeBuilder<C = SystemClock> {
    layout: Layout,
    options: Options<C>,
}

/// The ids of a layout, unencrypted, claimed when they are asked for: so they are in order.
struct Plain {
    layout: Layout,
    /// Where ticks begin at random: one for all, since generators that share a word must agree.
    seed: u64,
    /// For ticks that do not begin and end with seconds.
    lap: Option<Lap>,
}

impl Format for Plain {
    #[inline]
    fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    fn glance(&self, clock: &impl Clock) -> Option<u64> {
        if let Some(lap) = &self.lap {
            return lap.tick(clock);
        }
        let nanos = clock.glance()?.checked_mul(1_000_000_000)?;
        self.layout.tick_at(nanos, 0).map(|(tick, _)| tick)
    }

    fn look(&self, clock: &impl Clock) -> Result<i64> {
        self.lap.as_ref().map_or_else(|| clock.now(), |lap| lap.look(clock, &self.layout))
    }

    #[inline]
    fn buffer(&self) -> Option<&Buffer> {
        None
    }

    #[inline]
    fn first_sequence(&self, stamp: u64) -> u64 {
        self.layout.first_sequence(stamp, self.seed)
    }

    #[inline]
    fn finish(&self, _ids: &mut [i64]) {}
}

impl Plain {
    fn new(layout: Layout) -> Self {
        let of_seconds = layout.tick_ms().is_multiple_of(1000) && layout.epoch_ms() % 1000 == 0;
        let lap = (!of_seconds).then(Lap::new);
        Self { layout, seed: fork::life().seed(), lap }
    }
}

impl Snowflake {
    /// Makes a generator for a node id given by hand, 0 to [`Layout::max_node_id`].
    ///
    /// Its first id comes from the tick after the one in which it was made, since whoever had this
    /// node id before may have ended in that one; see [`SnowflakeBuilder::restart_safe`].
    ///
    /// # Errors
    ///
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): out of range.
    /// [`LifetimeOver`](crate::ErrorKind::LifetimeOver): the layout has ended, or is in its last
    /// tick.
    /// [`ClockBeforeEpoch`](crate::ErrorKind::ClockBeforeEpoch): the clock is not set yet, or the
    /// layout has not begun.
    /// [`NodeInUse`](crate::ErrorKind::NodeInUse): this process holds the node id in a list with
    /// others, or with ticks that begin with another [`Sequence`](crate::Sequence), or leases it.
    /// [`Forked`](crate::ErrorKind::Forked): a process this one was forked from holds it.
    pub fn new(node_id: u32, layout: Layout) -> Result<Self> {
        Self::builder(layout).node_id(node_id).build()
    }

    /// Starts to describe a generator.
    ///
    /// ```
    /// use std::time::Duration;
    /// use randflake::{Layout, Sequence, Snowflake};
    ///
    /// let flake = Snowflake::builder(Layout::twitter().with_sequence(Sequence::Continuing)?)
    ///     .node_ids([7, 8]) // 8192 ids a millisecond
    ///     .max_wait(Duration::from_millis(50))
    ///     .build()?;
    /// assert_eq!(flake.node_ids(), [7, 8]);
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn builder(layout: Layout) -> SnowflakeBuilder {
        SnowflakeBuilder { layout, options: Options::default() }
    }
}

impl<C: Clock> SnowflakeBuilder<C> {
    /// Adds a node id, 0 to [`Layout::max_node_id`]. A layout without node ids needs none.
    #[must_use]
    pub fn node_id(self, node_id: u32) -> Self {
        self.node_ids([node_id])
    }

    /// Adds node ids: k of them give k times [`Layout::ids_per_node`] ids a tick. At most
    /// [`Layout::max_nodes`], each once.
    #[must_use]
    pub fn node_ids(mut self, node_ids: impl IntoIterator<Item = u32>) -> Self {
        self.options.node_ids.extend(node_ids);
        self
    }

    /// Lets the generator stamp only ticks that lie in the seconds of this lease, and lets
    /// [`Snowflake::extend_lease`] raise its end. One lease serves one process life.
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
        self.options.lease(lease);
        self
    }

    /// Like [`SnowflakeBuilder::lease`], for a lease that a coordinator has granted to this one
    /// generator: nobody else, in this process either, has a lease of these node ids over these
    /// seconds. What of them lies outside the lifetime of the layout is left out.
    /// [`Snowflake::replace_lease`] can then change nodes and window.
    #[must_use]
    pub fn granted_lease(mut self, lease: Lease) -> Self {
        self.options.granted_lease(lease);
        self
    }

    /// Sets how long a call may wait in all, 0 to 86 400 seconds; 1 second unless set. Zero never
    /// waits. The ticks that a batch needs for its size are granted besides, unless it is zero.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.options.max_wait = max_wait;
        self
    }

    /// Sets how many whole seconds ahead of the clock ids may be stamped, 0 to 3 600; 0 unless
    /// set, since ids that run ahead are out of order with those of other nodes. It absorbs clocks
    /// that step back and lets a burst borrow coming ticks. Needs a lease: without one a restart
    /// would repeat the borrowed ticks.
    #[must_use]
    pub fn max_drift(mut self, seconds: u32) -> Self {
        self.options.max_drift = seconds;
        self
    }

    /// Sets whether a generator without a lease skips the rest of the tick in which it is made;
    /// true unless set. Whoever had its node id before, an earlier process or another one that
    /// handed it over, may have ended in that tick. It is not skipped where a generator of this
    /// process without a lease has the same node ids, was made in an earlier tick and is open.
    /// Has no effect with a lease, which starts where it says, or with an injected clock.
    #[must_use]
    pub fn restart_safe(mut self, restart_safe: bool) -> Self {
        self.options.restart_safe = restart_safe;
        self
    }

    /// Injects a clock, for tests. The generator then shares no record of issued ids with others.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> SnowflakeBuilder<D> {
        SnowflakeBuilder { layout: self.layout, options: self.options.clock(clock) }
    }

    /// Makes the generator.
    ///
    /// # Errors
    ///
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): no node id, one out of range, one listed
    /// twice, or too many.
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): `max_wait` or `max_drift` out of
    /// range, or `max_drift` without a lease.
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): the lease lies outside the lifetime of
    /// the layout, or holds no whole tick.
    /// [`LifetimeOver`](crate::ErrorKind::LifetimeOver), [`NodeInUse`](crate::ErrorKind::NodeInUse),
    /// [`Forked`](crate::ErrorKind::Forked): see [`Snowflake::new`].
    pub fn build(mut self) -> Result<Snowflake<C>> {
        let epoch = fork::life().epoch();
        let now = self.options.clock.now()?;
        if clock::to_ms(now) >= self.layout.ends_at() {
            return Err(self.layout.lifetime_over());
        }
        if self.layout.node_bits() == 0 && self.options.node_ids.is_empty() {
            self.options.node_ids.push(0);
        }
        let format = Plain::new(self.layout);
        let generator = self.options.build(epoch, format, NodeIds::of_layout(&self.layout))?;
        Ok(Snowflake { generator })
    }
}

impl<C: Clock> Snowflake<C> {
    /// Generates an id. As an unsigned number it is larger than every one that this thread was
    /// given before, where the layout has its time on top; with several node ids, where those lie
    /// above the sequence.
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
    pub fn generate(&self) -> Result<u64> {
        self.generator.generate().map(i64::cast_unsigned)
    }

    /// Fills a slice with ids, in the order in which they are claimed.
    ///
    /// After an error the slice is zeroed; ids that were claimed before it are never issued.
    ///
    /// # Errors
    ///
    /// As [`Snowflake::generate`]; before any id is claimed where the batch would need longer than
    /// the ticks for its size and `max_wait`, or reaches past the end. With a `max_wait` of zero
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a batch that no tick can hold;
    /// whatever that is, for one that takes more than an hour.
    ///
    /// ```
    /// # use randflake::{Layout, Snowflake};
    /// # let flake = Snowflake::new(2, Layout::twitter())?;
    /// let mut ids = [0; 1000];
    /// flake.fill(&mut ids)?;
    /// assert!(ids.is_sorted());
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn fill(&self, ids: &mut [u64]) -> Result<()> {
        self.generator.fill(Id::raws_as_numbers(ids), Reach::Lease)
    }

    /// Does as [`Snowflake::fill`], up to `reach`.
    ///
    /// # Errors
    ///
    /// As [`Snowflake::fill`], and as [`Reach::Renewals`] says.
    pub fn fill_to(&self, ids: &mut [u64], reach: Reach) -> Result<()> {
        self.generator.fill(Id::raws_as_numbers(ids), reach)
    }

    /// Fills a slice of signed numbers with ids; see [`Snowflake::fill`].
    ///
    /// # Errors
    ///
    /// As [`Snowflake::fill`].
    pub fn fill_i64(&self, ids: &mut [i64]) -> Result<()> {
        self.generator.fill(ids, Reach::Lease)
    }

    /// Does as [`Snowflake::fill_i64`], up to `reach`.
    ///
    /// # Errors
    ///
    /// As [`Snowflake::fill_to`].
    pub fn fill_i64_to(&self, ids: &mut [i64], reach: Reach) -> Result<()> {
        self.generator.fill(ids, reach)
    }

    /// Checks whether a batch of `count` ids would be refused before anything is claimed, for who
    /// wants to know that before there is memory for it. Claims nothing. With an injected clock
    /// only its size counts.
    ///
    /// # Errors
    ///
    /// As [`Snowflake::fill_to`].
    ///
    /// ```
    /// # use randflake::{Layout, Reach, Snowflake};
    /// # let flake = Snowflake::new(3, Layout::sonyflake2())?;
    /// flake.check_fill(1000, Reach::Lease)?;
    /// let refused = flake.check_fill(1_000_000_000, Reach::Lease);
    /// assert!(refused.is_err(), "it would take more than an hour");
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn check_fill(&self, count: usize, reach: Reach) -> Result<()> {
        self.generator.check_fill(count, reach)
    }

    /// Returns the whole ticks that so many ids take for themselves, whatever is left of this one.
    #[must_use]
    pub fn time_for(&self, count: usize) -> Duration {
        self.generator.time_for(count)
    }

    /// Returns how long to wait until an id can be had: zero if now. Claims nothing.
    ///
    /// # Errors
    ///
    /// As [`Snowflake::generate`], for what waiting does not help.
    pub fn ready_in(&self) -> Result<Duration> {
        self.generator.ready_in()
    }

    /// Reads an id back: when, where and as which one it was made. Works in a forked child and
    /// after [`close`](Snowflake::close), too.
    ///
    /// # Errors
    ///
    /// [`InvalidId`](crate::ErrorKind::InvalidId): not of this layout; see [`Layout::inspect`].
    pub fn inspect(&self, raw: u64) -> Result<RawParts> {
        self.layout().inspect(raw)
    }

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> &C {
        self.generator.clock()
    }

    /// Returns the layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        self.generator.format.layout()
    }

    /// Returns the node ids, sorted; none after [`close`](Snowflake::close).
    #[must_use]
    pub fn node_ids(&self) -> &[u32] {
        self.generator.node_ids()
    }

    /// Returns the lease, in whole seconds; `None` without one and after
    /// [`close`](Snowflake::close).
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        self.generator.lease()
    }

    /// Raises the end of the lease to the unix second `end_exclusive`; an earlier one than the
    /// present end changes nothing. It is the lease of the moment that is extended: who also calls
    /// [`replace_lease`](Snowflake::replace_lease) must not do so at the same time.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): there is no lease, or the end lies outside
    /// the lifetime. [`Forked`](crate::ErrorKind::Forked), [`Closed`](crate::ErrorKind::Closed).
    pub fn extend_lease(&self, end_exclusive: i64) -> Result<()> {
        self.generator.extend_lease(end_exclusive)
    }

    /// Goes over to other node ids or another window, both granted to this generator alone. The
    /// first id from there comes from a later tick than the last id from before, so time does not
    /// run backwards. Returns the first unix second in which nothing was issued under the old
    /// lease: from there on it may be given back.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): the generator was not made with
    /// [`SnowflakeBuilder::granted_lease`], or the lease holds no whole tick of the lifetime.
    /// [`LifetimeOver`](crate::ErrorKind::LifetimeOver): it begins after it.
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): as for [`SnowflakeBuilder::build`].
    /// [`Forked`](crate::ErrorKind::Forked), [`Closed`](crate::ErrorKind::Closed).
    pub fn replace_lease(&self, node_ids: &[u32], lease: Lease) -> Result<i64> {
        self.generator.replace_lease(node_ids, lease)
    }

    /// Goes on in a forked child, with node ids and a window that were granted to it alone: none
    /// of what its parent has or ever had. Call it once in each child, from one thread.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): the generator was not made with
    /// [`SnowflakeBuilder::granted_lease`], or is of this process already, or the lease holds no
    /// whole tick of the lifetime. [`LifetimeOver`](crate::ErrorKind::LifetimeOver): it begins after
    /// it.
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): as for [`SnowflakeBuilder::build`].
    /// [`Closed`](crate::ErrorKind::Closed): before the fork.
    pub fn begin_in_child(&self, node_ids: &[u32], lease: Lease) -> Result<()> {
        self.generator.begin_in_child(node_ids, lease)
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
        self.generator.close()
    }
}

impl<C> fmt::Debug for Snowflake<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snowflake")
            .field("layout", &self.generator.format.layout.name())
            .field("node_ids", &self.generator)
            .finish_non_exhaustive()
    }
}

impl<C> fmt::Debug for SnowflakeBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnowflakeBuilder")
            .field("layout", &self.layout.name())
            .field("node_ids", &self.options.node_ids)
            .finish_non_exhaustive()
    }
}
