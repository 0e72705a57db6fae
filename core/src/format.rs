//! What the ids of a generator look like: all in which `Randflake` and `Snowflake` differ.

use crate::{Clock, Layout, NodeIds, Result, buffer::Buffer};

/// What the ids of a [`Generator`](crate::Generator) look like: [`Encrypted`](crate::Encrypted) or
/// [`Plain`](crate::Plain). No other crate can implement it.
pub trait Format: Codec + Send + Sync + 'static {
    /// The type of an id.
    type Id: Copy + Default + Send + 'static;
    /// What decides on the ids besides the node id: a [`Secret`](crate::Secret) or a [`Layout`].
    type Config: Clone + Send + Sync + 'static;

    /// Returns the layout that this configuration uses.
    fn layout_of(config: &Self::Config) -> Layout;

    /// Returns the node ids that this process has under this configuration.
    fn node_ids_of(config: &Self::Config) -> NodeIds;

    /// Makes the format of this configuration.
    #[doc(hidden)]
    fn new(config: &Self::Config) -> Self;

    /// Views ids as the numbers they are, so that they can be made in place.
    #[doc(hidden)]
    fn as_numbers(ids: &mut [Self::Id]) -> &mut [i64];

    /// Returns a number as the id that it is.
    #[doc(hidden)]
    fn id(number: i64) -> Self::Id;
}

/// What the generator needs of a format. It has a module of its own, which nobody else can name.
pub trait Codec {
    /// The name under which users know a generator of this format.
    const GENERATOR: &'static str;

    /// Returns how ids are packed.
    fn layout(&self) -> &Layout;

    /// Checks whether a generator with this clock can be made.
    fn check(&self, clock: &impl Clock) -> Result<()>;

    /// Returns a tick that the clock has reached, and that goes on or ended a few milliseconds
    /// ago. `None` where a glance does not tell.
    fn glance(&self, clock: &impl Clock) -> Option<u64>;

    /// Reads the clock, in unix nanoseconds.
    #[inline]
    fn look(&self, clock: &impl Clock) -> Result<i64> {
        clock.now()
    }

    /// Returns where ids are kept that were claimed ahead for single calls, if they are.
    fn buffer(&self) -> Option<&Buffer>;

    /// Returns the sequence with which each node begins a tick; the same for all generators that
    /// share a word.
    fn first_sequence(&self, stamp: u64) -> u64;

    /// Makes packed ids what they are handed out as.
    fn finish(&self, ids: &mut [i64]);
}
