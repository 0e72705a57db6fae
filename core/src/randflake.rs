//! The format of encrypted ids, and the functions that only `Randflake` has.

use std::fmt;

use crate::{
    Builder, Clock, Format, Generator, Id, Layout, NodeIds, Parts, Result, Secret, SystemClock,
    format::Codec, layout, sparx::Sparx,
};

/// A generator of unique 64-bit ids that outsiders cannot predict, order or count.
///
/// Threads share it by reference, and generating an id takes no lock. [`Generator`] has the functions
/// that are not on this page. A tick is a second.
///
/// **A manual node id is safe for one live process at a time, on a machine whose clock has not
/// stepped back over the last id.** Two live processes with one node id and one secret repeat each
/// other's ids. A [lease](Builder::lease) bounds the seconds a generator may use.
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

/// The format of [`Randflake`]'s ids: a fixed layout, encrypted, and buffered for single calls.
pub struct Encrypted {
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
        Self { cipher: Sparx::new(secret) }
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
    const BUFFERED: bool = true;
    const ORDERED: bool = false;

    #[inline]
    fn layout(&self) -> &Layout {
        &layout::RANDFLAKE
    }

    /// A generator can be made after the end of the lifetime; it then generates nothing.
    fn check(&self, _clock: &impl Clock) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn coarse_tick(&self, clock: &impl Clock) -> Option<u64> {
        // A tick is a second. Before the epoch this wraps to a tick that no id has.
        clock.coarse_time().map(|second| second.wrapping_sub(layout::EPOCH).cast_unsigned())
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
    /// Makes a generator with a manually assigned node id, 0 to 131 071.
    ///
    /// Its first id is stamped with the second after the one in which the generator was made,
    /// because the process that had this node id before may have ended in that second; see
    /// [`Builder::restart_safe`].
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

    /// Starts a generator with options.
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
    /// Returns the time, node id and sequence of an id. Every 64-bit number has these parts: they
    /// mean something only for ids made with this secret.
    ///
    /// Works in a forked child and after [`close`](Generator::close), too.
    #[must_use]
    pub fn inspect(&self, id: Id) -> Parts {
        Parts::of(self.decrypt(id))
    }

    /// Returns the sortable form of an id of this secret: time, node id and sequence, unencrypted.
    /// Never give it to anyone who must not know them.
    #[must_use]
    pub fn decrypt(&self, id: Id) -> u64 {
        self.format().cipher.decrypt_id(id.into())
    }

    /// Returns the id of a sortable form; undoes [`decrypt`](Randflake::decrypt). Use it only for raw
    /// values that `decrypt` returned: others may not be unique.
    #[must_use]
    pub fn encrypt(&self, raw: u64) -> Id {
        self.format().cipher.encrypt_raw(raw).into()
    }

    /// Turns many ids into their sortable forms, in place, as signed numbers;
    /// see [`Inspector::decrypt_in_place`](crate::Inspector::decrypt_in_place).
    pub fn decrypt_in_place(&self, ids: &mut [i64]) {
        self.format().cipher.decrypt_many(ids);
    }

    /// Turns many sortable forms, as signed numbers, into their ids, in place;
    /// see [`Inspector::encrypt_in_place`](crate::Inspector::encrypt_in_place).
    pub fn encrypt_in_place(&self, raws: &mut [i64]) {
        self.format().cipher.encrypt_many(raws);
    }
}
