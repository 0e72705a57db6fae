use std::fmt;

use crate::{
    Builder, Clock, Format, Generator, Id, Layout, NodeIds, Parts, Result, Secret, SystemClock,
    buffer::Buffer, format::Codec, layout, sparx::Sparx,
};

/// A generator of unique 64-bit ids that outsiders cannot predict, order or count.
///
/// Shared by reference between threads; no lock is held on the way of an id. [`Generator`] has all
/// its functions but those that make one and those that read ids. A tick is a second.
///
/// **A node id given by hand is safe for one live process at a time, on a machine whose clock has
/// not stepped back over the last id.** Two live processes with one node id and one secret repeat
/// each other's ids. A [lease](Builder::lease) bounds the seconds a generator may use.
///
/// ```
/// use randflake::{Randflake, Secret};
///
/// let secret: Secret = "dffd6021bb2bd5b0af676290809ec3a5".parse()?;
/// let flake = Randflake::new(1, &secret)?;
/// let id = flake.generate()?;
/// assert_eq!(flake.inspect(id).node_id, 1);
/// # Ok::<(), randflake::Error>(())
/// ```
pub type Randflake<C = SystemClock> = Generator<Encrypted, C>;

/// The ids of [`Randflake`]: of its own layout, encrypted, and claimed ahead for single calls.
pub struct Encrypted {
    buffer: Buffer,
    cipher: Sparx,
}

impl Format for Encrypted {
    type Config = Secret;
    type Id = Id;

    fn layout_of(_secret: &Secret) -> Layout {
        layout::RANDFLAKE
    }

    fn node_ids_of(secret: &Secret) -> NodeIds {
        NodeIds::of_secret(secret)
    }

    fn new(secret: &Secret) -> Self {
        Self { buffer: Buffer::default(), cipher: Sparx::new(secret) }
    }

    #[inline]
    fn as_numbers(ids: &mut [Id]) -> &mut [i64] {
        Id::as_numbers(ids)
    }

    #[inline]
    fn id(number: i64) -> Id {
        number.into()
    }
}

impl Codec for Encrypted {
    const GENERATOR: &'static str = "Randflake";

    #[inline]
    fn layout(&self) -> &Layout {
        &layout::RANDFLAKE
    }

    /// What is past its lifetime can be made, and generates nothing.
    fn check(&self, _clock: &impl Clock) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn glance(&self, clock: &impl Clock) -> Option<u64> {
        // Ticks are seconds. Before the epoch it wraps to one that no id has.
        clock.glance().map(|second| second.wrapping_sub(layout::EPOCH).cast_unsigned())
    }

    #[inline]
    fn buffer(&self) -> Option<&Buffer> {
        Some(&self.buffer)
    }

    #[inline]
    fn first_sequence(&self, _stamp: u64) -> u64 {
        0
    }

    #[inline]
    fn finish(&self, ids: &mut [i64]) {
        self.cipher.encrypt_many(ids);
    }
}

impl fmt::Debug for Encrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encrypted(..)")
    }
}

impl Randflake {
    /// Makes a generator for a node id given by hand, 0 to 131 071.
    ///
    /// Its first id comes from the second after the one in which it was made, since whoever had
    /// this node id before may have ended in that one; see [`Builder::restart_safe`].
    ///
    /// # Errors
    ///
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): out of range.
    /// [`NodeInUse`](crate::ErrorKind::NodeInUse): this process holds the node id in a list with
    /// others, or leases it.
    /// [`Forked`](crate::ErrorKind::Forked): a process this one was forked from holds it.
    /// [`LifetimeOver`](crate::ErrorKind::LifetimeOver): no second is left.
    /// [`ClockBeforeEpoch`](crate::ErrorKind::ClockBeforeEpoch): the clock is not set yet.
    pub fn new(node_id: u32, secret: &Secret) -> Result<Self> {
        Self::builder(secret).node_id(node_id).build()
    }

    /// Starts to describe a generator.
    ///
    /// ```
    /// use std::time::Duration;
    /// use randflake::{Randflake, Secret};
    ///
    /// let flake = Randflake::builder(&Secret::random())
    ///     .node_ids([7, 8]) // 262 144 ids a second
    ///     .max_wait(Duration::from_millis(50))
    ///     .build()?;
    /// assert_eq!(flake.node_ids(), [7, 8]);
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn builder(secret: &Secret) -> Builder<Encrypted> {
        Builder::new(secret.clone())
    }
}

impl<C: Clock> Randflake<C> {
    /// Reads an id back: when, where and as which one it was made. Every 64-bit number has such
    /// parts: they mean something only for ids made with this secret.
    ///
    /// Works in a forked child and after [`close`](Generator::close), too.
    #[must_use]
    pub fn inspect(&self, id: Id) -> Parts {
        Parts::of(self.decrypt(id))
    }

    /// Returns the sortable form of an id of this secret: time, node id and sequence, unencrypted.
    /// Never hand it to anyone who must not know them.
    #[must_use]
    pub fn decrypt(&self, id: Id) -> u64 {
        self.format().cipher.decrypt_id(id.into())
    }

    /// Returns the id of a sortable form; undoes [`decrypt`](Randflake::decrypt). Only for raw
    /// values that came from there: of others nobody knows that they are unique.
    #[must_use]
    pub fn encrypt(&self, raw: u64) -> Id {
        self.format().cipher.encrypt_raw(raw).into()
    }
}
