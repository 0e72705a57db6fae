//! What node ids are leased for: the generators of the core.

use std::time::Duration;

use randflake::{Clock, Id, Layout, Lease, NodeIds, Randflake, Reach, Result, Secret, Snowflake};

use crate::Namespace;

/// A generator that node ids are leased for: [`Randflake`] or [`Snowflake`], and no other. All of
/// it is for [`Leased`](crate::Leased), which has the same functions with a lease behind them.
pub trait Flake: Sealed + Sized + Send + Sync + 'static {
    /// What it generates.
    type Id: Copy + Default;
    /// Where its time comes from.
    type Clock: Clock + Send + Sync + 'static;
    /// What decides on its ids besides the node: a [`Secret`] or a [`Layout`].
    type Format: Send;
    /// The same kind of generator on another clock.
    type WithClock<D: Clock + Send + Sync + 'static>: Flake<Clock = D, Format = Self::Format>;

    /// Largest `max_drift` unless another is set, in seconds.
    const MAX_DRIFT: u32;

    /// Returns how ids are packed.
    fn layout(format: &Self::Format) -> Layout;

    /// Names the namespace its node ids are leased from.
    ///
    /// # Errors
    ///
    /// As [`Namespace::new`] and [`Namespace::for_layout`].
    fn namespace(format: &Self::Format, name: String) -> Result<Namespace>;

    /// Returns its node ids as this process has them.
    fn node_ids_of(format: &Self::Format) -> NodeIds;

    /// Makes the generator over a granted lease; times as in its own builder.
    ///
    /// # Errors
    ///
    /// As its own builder.
    fn over(
        format: &Self::Format,
        node_ids: &[u32],
        lease: Lease,
        max_wait: Duration,
        max_drift: u32,
        clock: Self::Clock,
    ) -> Result<Self>;

    /// As its own `generate`.
    ///
    /// # Errors
    ///
    /// As its own `generate`.
    fn generate(&self) -> Result<Self::Id>;

    /// As its own `generate_at_once`.
    fn generate_at_once(&self) -> Option<Self::Id>;

    /// As its own `fill_to`.
    ///
    /// # Errors
    ///
    /// As its own `fill_to`.
    fn fill_to(&self, ids: &mut [Self::Id], reach: Reach) -> Result<()>;

    /// As its own `fill_i64_to`.
    ///
    /// # Errors
    ///
    /// As its own `fill_i64_to`.
    fn fill_i64_to(&self, ids: &mut [i64], reach: Reach) -> Result<()>;

    /// As its own `check_fill`.
    ///
    /// # Errors
    ///
    /// As its own `check_fill`.
    fn check_fill(&self, count: usize, reach: Reach) -> Result<()>;

    /// As its own `time_for`.
    fn time_for(&self, count: usize) -> Duration;

    /// As its own `ready_in`.
    ///
    /// # Errors
    ///
    /// As its own `ready_in`.
    fn ready_in(&self) -> Result<Duration>;

    /// As its own `clock`.
    fn clock(&self) -> &Self::Clock;

    /// As its own `node_ids`.
    fn node_ids(&self) -> &[u32];

    /// As its own `lease`.
    fn lease(&self) -> Option<Lease>;

    /// As its own `extend_lease`.
    ///
    /// # Errors
    ///
    /// As its own `extend_lease`.
    fn extend_lease(&self, end_exclusive: i64) -> Result<()>;

    /// As its own `replace_lease`.
    ///
    /// # Errors
    ///
    /// As its own `replace_lease`.
    fn replace_lease(&self, node_ids: &[u32], lease: Lease) -> Result<i64>;

    /// As its own `begin_in_child`.
    ///
    /// # Errors
    ///
    /// As its own `begin_in_child`.
    fn begin_in_child(&self, node_ids: &[u32], lease: Lease) -> Result<()>;

    /// As its own `close`.
    fn close(&self) -> Option<i64>;
}

/// Keeps others from implementing [`Flake`].
pub trait Sealed {}

macro_rules! flake {
    (
        $flake:ident of $id:ty, $format:ty, $layout:expr, $node_ids:expr, $namespace:expr,
        $builder:expr,
        max_drift: $max_drift:literal
    ) => {
        impl<C: Clock> Sealed for $flake<C> {}

        impl<C: Clock + Send + Sync + 'static> Flake for $flake<C> {
            type Id = $id;
            type Clock = C;
            type Format = $format;
            type WithClock<D: Clock + Send + Sync + 'static> = $flake<D>;

            const MAX_DRIFT: u32 = $max_drift;

            fn layout(format: &$format) -> Layout {
                $layout(format)
            }

            fn namespace(format: &$format, name: String) -> Result<Namespace> {
                $namespace(name, format)
            }

            fn node_ids_of(format: &$format) -> NodeIds {
                $node_ids(format)
            }

            fn over(
                format: &$format,
                node_ids: &[u32],
                lease: Lease,
                max_wait: Duration,
                max_drift: u32,
                clock: C,
            ) -> Result<Self> {
                $builder(format)
                    .node_ids(node_ids.iter().copied())
                    .granted_lease(lease)
                    .max_wait(max_wait)
                    .max_drift(max_drift)
                    .clock(clock)
                    .build()
            }

            #[inline]
            fn generate(&self) -> Result<$id> {
                self.generate()
            }

            #[inline]
            fn generate_at_once(&self) -> Option<$id> {
                self.generate_at_once()
            }

            fn fill_to(&self, ids: &mut [$id], reach: Reach) -> Result<()> {
                self.fill_to(ids, reach)
            }

            #[inline]
            fn fill_i64_to(&self, ids: &mut [i64], reach: Reach) -> Result<()> {
                self.fill_i64_to(ids, reach)
            }

            fn check_fill(&self, count: usize, reach: Reach) -> Result<()> {
                self.check_fill(count, reach)
            }

            fn time_for(&self, count: usize) -> Duration {
                self.time_for(count)
            }

            fn ready_in(&self) -> Result<Duration> {
                self.ready_in()
            }

            fn clock(&self) -> &C {
                self.clock()
            }

            fn node_ids(&self) -> &[u32] {
                self.node_ids()
            }

            fn lease(&self) -> Option<Lease> {
                self.lease()
            }

            fn extend_lease(&self, end_exclusive: i64) -> Result<()> {
                self.extend_lease(end_exclusive)
            }

            fn replace_lease(&self, node_ids: &[u32], lease: Lease) -> Result<i64> {
                self.replace_lease(node_ids, lease)
            }

            fn begin_in_child(&self, node_ids: &[u32], lease: Lease) -> Result<()> {
                self.begin_in_child(node_ids, lease)
            }

            fn close(&self) -> Option<i64> {
                self.close()
            }
        }
    };
}

flake!(
    Randflake of Id, Secret, |_| Layout::randflake(), NodeIds::of_secret, Namespace::new,
    Randflake::builder,
    max_drift: 10
);
// Its ids are in the order of time, which those that run ahead are not.
flake!(
    Snowflake of u64, Layout, Layout::clone, NodeIds::of_layout,
    |name, layout: &Layout| Namespace::for_layout(name, *layout),
    |layout: &Layout| Snowflake::builder(*layout),
    max_drift: 0
);
