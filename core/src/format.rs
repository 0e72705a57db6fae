//! The formats of ids: everything that differs between `Randflake` and `Snowflake`.

use crate::{Clock, Layout, NodeIds, Result};

/// The format of the ids of a [`Generator`](crate::Generator): [`Encrypted`](crate::Encrypted) or
/// [`Plain`](crate::Plain). Other crates cannot implement it.
pub trait Format: Codec + Send + Sync + 'static {
    /// The type of an id.
    type Id: Copy + Default + Send + 'static;
    /// What determines the ids, apart from the node ids: a [`Secret`](crate::Secret) or a
    /// [`Layout`].
    type Config: Clone + Send + Sync + 'static;

    /// Returns the layout that this configuration uses.
    fn layout_of(config: &Self::Config) -> Layout;

    /// Returns the node ids that this process has under this configuration.
    fn node_ids_of(config: &Self::Config) -> NodeIds;

    /// Makes the format of this configuration.
    #[doc(hidden)]
    fn new(config: &Self::Config) -> Self;

    /// Views ids as their numbers, so that they can be made in place.
    #[doc(hidden)]
    fn as_numbers(ids: &mut [Self::Id]) -> &mut [i64];

    /// Returns the id with this number.
    #[doc(hidden)]
    fn id(number: i64) -> Self::Id;
}

/// What the generator needs from a format. Its module is private, so other crates cannot name it.
pub trait Codec {
    /// The name of a generator of this format.
    const GENERATOR: &'static str;

    /// Whether ids are claimed ahead for single calls.
    const BUFFERED: bool;

    /// Whether ids have a guaranteed order, so that no stamp may be earlier than one before it.
    const ORDERED: bool;

    /// Returns how ids are packed.
    fn layout(&self) -> &Layout;

    /// Checks whether a generator with this clock can be made.
    fn check(&self, clock: &impl Clock) -> Result<()>;

    /// Returns the current tick by a cheap clock, or one that ended a few milliseconds ago; never
    /// one that the precise clock has not reached. `None` if there is no cheap clock.
    fn coarse_tick(&self, clock: &impl Clock) -> Option<u64>;

    /// Reads the clock, in unix nanoseconds.
    #[inline]
    fn read_clock(&self, clock: &impl Clock) -> Result<i64> {
        clock.now()
    }

    /// Returns the initial sequence of each node in a tick; the same for all generators that share a
    /// packed state.
    fn first_sequence(&self, stamp: u64) -> u64;

    /// Turns packed ids into the ids that are handed out.
    fn finish(&self, ids: &mut [i64]);
}
