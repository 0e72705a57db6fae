//! The format of sortable ids, and the functions that only `Snowflake` has.

use crate::{
    Builder, Clock, Format, Generator, Id, Layout, NodeIds, RawParts, Result, Sequence,
    SystemClock, clock, fork, format::Codec, layout::lifetime::lifetime_over,
    tick_cache::TickCache,
};

/// A generator of unique 64-bit ids that sort by time, of any [`Layout`] of the Snowflake family.
///
/// It gives the same guarantees as [`Randflake`](crate::Randflake), under the same names: no id
/// twice, none before its time, an error rather than a guess. But the ids are not encrypted: anyone
/// who sees one can read it and predict others. [`Cloak`](crate::Cloak) hides them. [`Generator`] has
/// the functions that are not on this page.
///
/// If the time is the top field of the layout, an id is larger, as an unsigned number, than all
/// earlier ones of its thread. With several node ids, the node id must also be above the sequence.
///
/// **A manual node id is safe for one live process at a time, on a machine whose clock has not
/// stepped back over the last id.** A [lease](Builder::lease) bounds the seconds a generator may
/// use.
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
pub type Snowflake<C = SystemClock> = Generator<Plain, C>;

/// The format of [`Snowflake`]'s ids: any layout, not encrypted. Each id is claimed when it is asked
/// for, so ids are in order.
#[derive(Debug)]
pub struct Plain {
    layout: Layout,
    /// For random initial sequences; otherwise 0. Generators that share a packed state must have
    /// the same value.
    seed: u64,
    /// `None` if every tick begins and ends with a second, where the coarse clock suffices.
    tick_cache: Option<TickCache>,
}

impl Format for Plain {
    type Config = Layout;
    type Id = u64;

    fn layout_of(layout: &Layout) -> Layout {
        *layout
    }

    fn node_ids_of(layout: &Layout) -> NodeIds {
        NodeIds::of_layout(layout)
    }

    fn new(layout: &Layout) -> Self {
        let of_seconds = layout.tick_ms().is_multiple_of(1000) && layout.epoch_ms() % 1000 == 0;
        let tick_cache = (!of_seconds).then(TickCache::new);
        // So a platform without random numbers can use all other layouts.
        let is_random = matches!(layout.sequence(), Sequence::Random(_));
        let seed = if is_random { fork::page().seed() } else { 0 };
        Self { layout: *layout, seed, tick_cache }
    }

    #[inline]
    fn as_numbers(ids: &mut [u64]) -> &mut [i64] {
        Id::raws_as_numbers(ids)
    }

    #[inline]
    fn id(number: i64) -> u64 {
        number.cast_unsigned()
    }
}

impl Codec for Plain {
    const GENERATOR: &'static str = "Snowflake";
    // Its ids are in the order of the calls.
    const BUFFERED: bool = false;
    const ORDERED: bool = true;

    #[inline]
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn check(&self, clock: &impl Clock) -> Result<()> {
        if clock::to_ms(clock.now()?) >= self.layout.ends_at() {
            return Err(lifetime_over(&self.layout));
        }
        Ok(())
    }

    #[inline]
    fn coarse_tick(&self, clock: &impl Clock) -> Option<u64> {
        if let Some(tick_cache) = &self.tick_cache {
            return tick_cache.tick(clock);
        }
        let nanos = clock.coarse_time()?.checked_mul(1_000_000_000)?;
        self.layout.tick_at(nanos, 0).map(|(tick, _)| tick)
    }

    fn read_clock(&self, clock: &impl Clock) -> Result<i64> {
        self.tick_cache
            .as_ref()
            .map_or_else(|| clock.now(), |tick_cache| tick_cache.read_clock(clock, &self.layout))
    }

    #[inline]
    fn first_sequence(&self, stamp: u64) -> u64 {
        self.layout.first_sequence(stamp, self.seed)
    }

    #[inline]
    fn finish(&self, _ids: &mut [i64]) {}
}

impl Snowflake {
    /// Makes a generator with a manually assigned node id, 0 to [`Layout::max_node_id`].
    ///
    /// Its first id is stamped with the tick after the one in which the generator was made, because
    /// the process that had this node id before may have ended in that tick; see
    /// [`Builder::restart_safe`].
    ///
    /// # Errors
    ///
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): out of range.
    /// [`LifetimeOver`](crate::ErrorKind::LifetimeOver): the layout has ended, or is in its last
    /// tick.
    /// [`ClockBeforeEpoch`](crate::ErrorKind::ClockBeforeEpoch): the clock is not set yet, or the
    /// layout has not begun.
    /// [`NodeInUse`](crate::ErrorKind::NodeInUse): this process holds the node id in a list with
    /// others, or with another initial [`Sequence`](crate::Sequence), or leases it.
    /// [`Forked`](crate::ErrorKind::Forked): a process this one was forked from holds it.
    pub fn new(node_id: u32, layout: Layout) -> Result<Self> {
        Self::builder(layout).node_id(node_id).build()
    }

    /// Starts a generator with options.
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
    pub fn builder(layout: Layout) -> Builder<Plain> {
        Builder::new(layout)
    }
}

impl<C: Clock> Snowflake<C> {
    /// Returns the time, node id and sequence of an id. Works in a forked child and after
    /// [`close`](Generator::close), too.
    ///
    /// # Errors
    ///
    /// [`InvalidId`](crate::ErrorKind::InvalidId): not an id of this layout; see
    /// [`Layout::inspect`].
    pub fn inspect(&self, raw: u64) -> Result<RawParts> {
        self.layout().inspect(raw)
    }
}
