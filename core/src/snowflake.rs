use crate::{
    Builder, Clock, Format, Generator, Id, Layout, NodeIds, RawParts, Result, SystemClock,
    buffer::Buffer, clock, fork, format::Codec, lap::Lap, layout::lifetime::lifetime_over,
};

/// A generator of unique 64-bit ids that sort by time, of any [`Layout`] of the Snowflake family.
///
/// What holds for [`Randflake`](crate::Randflake) holds here, under the same names: no id twice,
/// none before its time, an error rather than a guess. But the ids are not encrypted: whoever sees
/// one can read and predict others. [`Cloak`](crate::Cloak) hides them. [`Generator`] has all its
/// functions but those that make one and those that read ids.
///
/// As an unsigned number an id is larger than every one that its thread was given before, where
/// the layout has its time on top; with several node ids, where those lie above the sequence.
///
/// **A node id given by hand is safe for one live process at a time, on a machine whose clock has
/// not stepped back over the last id.** A [lease](Builder::lease) bounds the seconds a generator
/// may use.
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

/// The ids of [`Snowflake`]: of any layout, unencrypted, claimed when they are asked for, and so in
/// order.
#[derive(Debug)]
pub struct Plain {
    layout: Layout,
    /// Where ticks begin at random: one for all, since generators that share a word must agree.
    seed: u64,
    /// For ticks that do not begin and end with seconds.
    lap: Option<Lap>,
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
        let lap = (!of_seconds).then(Lap::new);
        Self { layout: *layout, seed: fork::life().seed(), lap }
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

impl Snowflake {
    /// Makes a generator for a node id given by hand, 0 to [`Layout::max_node_id`].
    ///
    /// Its first id comes from the tick after the one in which it was made, since whoever had this
    /// node id before may have ended in that one; see [`Builder::restart_safe`].
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
    pub fn builder(layout: Layout) -> Builder<Plain> {
        Builder::new(layout)
    }
}

impl<C: Clock> Snowflake<C> {
    /// Reads an id back: when, where and as which one it was made. Works in a forked child and
    /// after [`close`](Generator::close), too.
    ///
    /// # Errors
    ///
    /// [`InvalidId`](crate::ErrorKind::InvalidId): not of this layout; see [`Layout::inspect`].
    pub fn inspect(&self, raw: u64) -> Result<RawParts> {
        self.layout().inspect(raw)
    }
}
