use std::{fmt, time::Duration};

use crate::{
    Clock, Id, Layout, Lease, NodeIds, Parts, Result, Secret, SystemClock,
    buffer::Buffer,
    fork,
    generator::{Format, Generator, Options, Reach},
    layout,
    sparx::Sparx,
};

/// A generator of unique 64-bit ids that outsiders cannot predict, order or count.
///
/// Shared by reference between threads; no lock is held on the way of an id.
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
pub struct Randflake<C = SystemClock> {
    pub(crate) generator: Generator<Encrypted, C>,
}

/// What a generator is made from; see [`Randflake::builder`].
pub struct Builder<C = SystemClock> {
    secret: Secret,
    options: Options<C>,
}

/// The ids of Randflake: of its own layout, encrypted, and claimed ahead for single calls.
pub(crate) struct Encrypted {
    buffer: Buffer,
    cipher: Sparx,
}

impl Format for Encrypted {
    #[inline]
    fn layout(&self) -> &Layout {
        &layout::RANDFLAKE
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
    pub fn builder(secret: &Secret) -> Builder {
        Builder { secret: secret.clone(), options: Options::default() }
    }
}

impl<C: Clock> Builder<C> {
    /// Adds a node id, 0 to 131 071.
    #[must_use]
    pub fn node_id(self, node_id: u32) -> Self {
        self.node_ids([node_id])
    }

    /// Adds node ids, each 0 to 131 071: k of them give k times 131 072 ids a second. At most
    /// 16 384, each once.
    #[must_use]
    pub fn node_ids(mut self, node_ids: impl IntoIterator<Item = u32>) -> Self {
        self.options.node_ids.extend(node_ids);
        self
    }

    /// Lets the generator stamp only the seconds of this lease, and lets
    /// [`Randflake::extend_lease`] raise its end. One lease serves one process life.
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> Self {
        self.options.lease(lease);
        self
    }

    /// Like [`Builder::lease`], for a lease that a coordinator has granted to this one generator:
    /// nobody else, in this process either, has a lease of these node ids over these seconds.
    /// [`Randflake::replace_lease`] can then change nodes and window.
    #[must_use]
    pub fn granted_lease(mut self, lease: Lease) -> Self {
        self.options.granted_lease(lease);
        self
    }

    /// Sets how long a call may wait in all, 0 to 86 400 seconds; 1 second unless set. Zero never
    /// waits. The seconds that a batch needs for its size are granted besides, unless it is zero.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.options.max_wait = max_wait;
        self
    }

    /// Sets how many whole seconds ahead of the clock ids may be stamped, 0 to 3 600; 0 unless
    /// set. It absorbs clocks that step back and lets a burst borrow coming seconds. Needs a
    /// lease: without one a restart would repeat the borrowed seconds.
    #[must_use]
    pub fn max_drift(mut self, seconds: u32) -> Self {
        self.options.max_drift = seconds;
        self
    }

    /// Sets whether a generator without a lease skips the rest of the second in which it is made;
    /// true unless set. Whoever had its node id before, an earlier process or another one that
    /// handed it over, may have ended in that second. It is not skipped where a generator of this
    /// process without a lease has the same node ids, was made in an earlier second and is open.
    /// Has no effect with a lease, which starts where it says, or with an injected clock.
    #[must_use]
    pub fn restart_safe(mut self, restart_safe: bool) -> Self {
        self.options.restart_safe = restart_safe;
        self
    }

    /// Injects a clock, for tests. The generator then shares no record of issued ids with others.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> Builder<D> {
        Builder { secret: self.secret, options: self.options.clock(clock) }
    }

    /// Makes the generator.
    ///
    /// # Errors
    ///
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): no node id, one out of range, one listed twice, or
    /// more than 16 384.
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): `max_wait` or `max_drift` out of range, or
    /// `max_drift` without a lease.
    /// [`NodeInUse`](crate::ErrorKind::NodeInUse), [`Forked`](crate::ErrorKind::Forked),
    /// [`LifetimeOver`](crate::ErrorKind::LifetimeOver): see [`Randflake::new`].
    pub fn build(self) -> Result<Randflake<C>> {
        let epoch = fork::life().epoch();
        let format = Encrypted { buffer: Buffer::default(), cipher: Sparx::new(&self.secret) };
        let generator = self.options.build(epoch, format, NodeIds::of_secret(&self.secret))?;
        Ok(Randflake { generator })
    }
}

impl<C: Clock> Randflake<C> {
    /// Generates an id.
    ///
    /// # Errors
    ///
    /// [`SequenceExhausted`](crate::ErrorKind::SequenceExhausted),
    /// [`ClockMovedBack`](crate::ErrorKind::ClockMovedBack) or
    /// [`LeaseNotStarted`](crate::ErrorKind::LeaseNotStarted): not to be had within `max_wait`;
    /// [`Error::retry_after`](crate::Error::retry_after) says when.
    /// [`LeaseExpired`](crate::ErrorKind::LeaseExpired), [`LifetimeOver`](crate::ErrorKind::LifetimeOver),
    /// [`ClockBeforeEpoch`](crate::ErrorKind::ClockBeforeEpoch), [`Forked`](crate::ErrorKind::Forked),
    /// [`Closed`](crate::ErrorKind::Closed): not by waiting.
    #[inline]
    pub fn generate(&self) -> Result<Id> {
        self.generator.generate().map(Id::from)
    }

    /// Fills a slice with ids, in the order in which they are claimed.
    ///
    /// After an error the slice is zeroed; ids that were claimed before it are never issued.
    ///
    /// # Errors
    ///
    /// As [`Randflake::generate`]; before any id is claimed where the batch would need longer than
    /// the seconds for its size and `max_wait`, or reaches past the end. With a `max_wait` of zero
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a batch that no second can hold;
    /// whatever that is, for one that takes more than an hour.
    ///
    /// ```
    /// # use randflake::{Id, Randflake, Secret};
    /// # let flake = Randflake::new(2, &Secret::random())?;
    /// let mut ids = [Id::default(); 1000];
    /// flake.fill(&mut ids)?;
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn fill(&self, ids: &mut [Id]) -> Result<()> {
        self.generator.fill(Id::as_numbers(ids), Reach::Lease)
    }

    /// Does as [`Randflake::fill`], up to `reach`.
    ///
    /// # Errors
    ///
    /// As [`Randflake::fill`], and as [`Reach::Renewals`] says.
    pub fn fill_to(&self, ids: &mut [Id], reach: Reach) -> Result<()> {
        self.generator.fill(Id::as_numbers(ids), reach)
    }

    /// Fills a slice of plain numbers with ids; see [`Randflake::fill`].
    ///
    /// # Errors
    ///
    /// As [`Randflake::fill`].
    pub fn fill_i64(&self, ids: &mut [i64]) -> Result<()> {
        self.generator.fill(ids, Reach::Lease)
    }

    /// Does as [`Randflake::fill_i64`], up to `reach`.
    ///
    /// # Errors
    ///
    /// As [`Randflake::fill_to`].
    pub fn fill_i64_to(&self, ids: &mut [i64], reach: Reach) -> Result<()> {
        self.generator.fill(ids, reach)
    }

    /// Checks whether a batch of `count` ids would be refused before anything is claimed, for who
    /// wants to know that before there is memory for it. Claims nothing. With an injected clock
    /// only its size counts.
    ///
    /// # Errors
    ///
    /// As [`Randflake::fill_to`].
    ///
    /// ```
    /// # use randflake::{Randflake, Reach, Secret};
    /// # let flake = Randflake::new(3, &Secret::random())?;
    /// flake.check_fill(1000, Reach::Lease)?;
    /// let refused = flake.check_fill(1_000_000_000, Reach::Lease);
    /// assert!(refused.is_err(), "it would take more than an hour");
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn check_fill(&self, count: usize, reach: Reach) -> Result<()> {
        self.generator.check_fill(count, reach)
    }

    /// Returns the whole seconds that so many ids take for themselves, whatever is left of this one.
    #[must_use]
    pub fn time_for(&self, count: usize) -> Duration {
        self.generator.time_for(count)
    }

    /// Returns how long to wait until an id can be had: zero if now. Claims nothing.
    ///
    /// # Errors
    ///
    /// As [`Randflake::generate`], for what waiting does not help.
    pub fn ready_in(&self) -> Result<Duration> {
        self.generator.ready_in()
    }

    /// Reads an id back: when, where and as which one it was made. Every 64-bit number has such
    /// parts: they mean something only for ids made with this secret.
    ///
    /// Works in a forked child and after [`close`](Randflake::close), too.
    #[must_use]
    pub fn inspect(&self, id: Id) -> Parts {
        layout::unpack(self.decrypt(id))
    }

    /// Returns the sortable form of an id of this secret: time, node id and sequence, unencrypted.
    /// Never hand it to anyone who must not know them.
    #[must_use]
    pub fn decrypt(&self, id: Id) -> u64 {
        self.generator.format.cipher.decrypt_id(id.into())
    }

    /// Returns the id of a sortable form; undoes [`decrypt`](Randflake::decrypt). Only for raw
    /// values that came from there: of others nobody knows that they are unique.
    #[must_use]
    pub fn encrypt(&self, raw: u64) -> Id {
        self.generator.format.cipher.encrypt_raw(raw).into()
    }

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> &C {
        self.generator.clock()
    }

    /// Returns the node ids, sorted; none after [`close`](Randflake::close).
    #[must_use]
    pub fn node_ids(&self) -> &[u32] {
        self.generator.node_ids()
    }

    /// Returns the lease; `None` without one and after [`close`](Randflake::close).
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        self.generator.lease()
    }

    /// Raises the end of the lease to the unix second `end_exclusive`; an earlier one than the
    /// present end changes nothing. It is the lease of the moment that is extended: who also calls
    /// [`replace_lease`](Randflake::replace_lease) must not do so at the same time.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): there is no lease, or the end lies outside the
    /// format's lifetime. [`Forked`](crate::ErrorKind::Forked), [`Closed`](crate::ErrorKind::Closed).
    pub fn extend_lease(&self, end_exclusive: i64) -> Result<()> {
        self.generator.extend_lease(end_exclusive)
    }

    /// Goes over to other node ids or another window, both granted to this generator alone. The
    /// first id from there comes from a later second than the last id from before, so time does
    /// not run backwards. Returns the first unix second in which nothing was issued under the old
    /// lease: from there on it may be given back.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): the generator was not made with
    /// [`Builder::granted_lease`]. [`InvalidNode`](crate::ErrorKind::InvalidNode): as for
    /// [`Builder::build`]. [`Forked`](crate::ErrorKind::Forked), [`Closed`](crate::ErrorKind::Closed).
    pub fn replace_lease(&self, node_ids: &[u32], lease: Lease) -> Result<i64> {
        self.generator.replace_lease(node_ids, lease)
    }

    /// Goes on in a forked child, with node ids and a window that were granted to it alone: none
    /// of what its parent has or ever had. Call it once in each child, from one thread.
    ///
    /// # Errors
    ///
    /// [`InvalidLease`](crate::ErrorKind::InvalidLease): the generator was not made with
    /// [`Builder::granted_lease`], or is of this process already.
    /// [`InvalidNode`](crate::ErrorKind::InvalidNode): as for [`Builder::build`].
    /// [`Closed`](crate::ErrorKind::Closed): before the fork.
    pub fn begin_in_child(&self, node_ids: &[u32], lease: Lease) -> Result<()> {
        self.generator.begin_in_child(node_ids, lease)
    }

    /// Ends the generator for good: every later call that needs it open is
    /// [`Closed`](crate::ErrorKind::Closed). For a granted lease, returns the first unix second in which
    /// nothing was issued: from there on the lease may be given back. Does nothing, and returns
    /// `None`, in a forked child and the second time.
    pub fn close(&self) -> Option<i64> {
        self.generator.close()
    }
}

impl<C> fmt::Debug for Randflake<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Randflake").field("node_ids", &self.generator).finish_non_exhaustive()
    }
}

impl<C> fmt::Debug for Builder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("node_ids", &self.options.node_ids).finish_non_exhaustive()
    }
}
