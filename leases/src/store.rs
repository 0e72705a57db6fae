//! What is said between a holder of leases and a store. All times are whole unix seconds, all
//! intervals half-open.

use std::fmt;

use randflake::{Layout, Lease, Secret};
use sha2::{Digest, Sha256};

use crate::{
    Error, ErrorKind, Note, Result,
    operator::{Cut, List, Listed, ReleaseDead, Repair},
};

/// Version of what a store keeps of a namespace.
pub(crate) const FORMAT: u32 = 1;

/// A store of leases. Blocking; each call is one atomic operation of the store, and what a call
/// has granted is still there after a crash of this process, of the store and of the machine.
///
/// A call may be repeated after an error: nobody knows whether it was done, and doing it twice is
/// as doing it once. Implementations answer with the rules of [`MemoryStore`](crate::MemoryStore)
/// and show it with [`laws`](crate::laws).
pub trait LeaseStore: Send {
    /// Leases node ids that nobody holds, under a token that was never used before; repeated with
    /// the same token, returns what that token holds.
    ///
    /// # Errors
    ///
    /// [`SecretMismatch`](ErrorKind::SecretMismatch),
    /// [`StoreReplaced`](ErrorKind::StoreReplaced),
    /// [`StoreNotInitialized`](ErrorKind::StoreNotInitialized),
    /// [`StoreUnavailable`](ErrorKind::StoreUnavailable);
    /// [`INVALID_ARGUMENT`](randflake::ErrorKind::InvalidArgument): a `want` or `ttl` that this
    /// namespace cannot grant.
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>>;

    /// Raises the end of what a token holds; also after that end, as long as nobody else has it.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`].
    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>>;

    /// Gives back what a token holds. The holder must have sealed its generator first: it never
    /// stamps again.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`].
    fn release(&mut self, request: &Release) -> Result<Reply<Released>>;

    /// Notes that the store may have forgotten leases (a backup was restored): for the longest
    /// lease and the largest skew (in Redis 12 seconds more) nothing is granted, and only leases that
    /// were clearly running are renewed.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`].
    fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>>;

    /// Lists what is known of node ids, and changes nothing. With
    /// [`Namespace::for_operator`], whose namespace is never made, the secret is not needed.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`].
    fn list(&mut self, request: &List) -> Result<Reply<Listed>>;

    /// Sets an end back that only a wrong clock can have set; see [`Repair`].
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`], and [`ClockSkew`](ErrorKind::ClockSkew): one of the clocks is
    /// wrong now. [`INVALID_ARGUMENT`](randflake::ErrorKind::InvalidArgument): no such end, or no
    /// such bound.
    fn repair(&mut self, request: &Repair) -> Result<Reply<Cut>>;

    /// Releases a node id for its holder, who is dead for sure; see [`ReleaseDead`].
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::repair`]; `INVALID_ARGUMENT`: nobody holds it, or its end comes from a
    /// wrong clock.
    fn release_dead(&mut self, request: &ReleaseDead) -> Result<Reply<Cut>>;

    /// Nothing is to be asked for a minute or longer: a store gives up what it holds open, such as a
    /// connection of its own, and takes it again with the next operation. Does nothing unless
    /// implemented.
    fn rest(&mut self) {}

    /// Forgets which store this was: the next operation takes whatever is at its place. Called after
    /// [`StoreReplaced`](ErrorKind::StoreReplaced), once all seconds that it granted are over.
    ///
    /// Others may still hold leases of the old store. So what is missing at its place is made, if at
    /// all, with a quarantine that is at least as long as the longest lease of the old store. Does
    /// nothing unless implemented: right for a store that never says that it was replaced.
    fn accept_another(&mut self) {}
}

/// What the rows of a lease belong to: 128 random bits, made in memory for one lease of one
/// process life and never saved.
///
/// ```
/// use randflake_leases::Token;
/// let token = Token::random();
/// assert_ne!(token, Token::random());
/// assert_eq!(Token::from_bytes(*token.as_bytes()), token);
/// assert!(format!("{token:?}").len() < 20, "shortened");
/// ```
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Token([u8; 16]);

impl Token {
    /// Makes a fresh token from the operating system's random source.
    ///
    /// # Panics
    ///
    /// If the operating system has no random numbers to give.
    #[must_use]
    pub fn random() -> Self {
        Self(random_bytes())
    }

    /// Takes a token as a store has kept it.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes for a store to keep.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns node ids from 0 to `max_node_id` in an order of this token's own, without end; one
    /// may come twice. Random, so that requests seldom meet, and so that after a store has lost
    /// writes they seldom hit a node id whose lease was forgotten; from the token, so that a
    /// repeated request asks for the same ones.
    ///
    /// ```
    /// use randflake_leases::Token;
    /// let token = Token::random();
    /// let candidates: Vec<u32> = token.candidates(9).take(8).collect();
    /// assert!(candidates.iter().all(|node_id| *node_id <= 9));
    /// assert!(token.candidates(9).take(8).eq(candidates));
    /// ```
    #[allow(clippy::cast_possible_truncation, reason = "at most max_node_id")]
    pub fn candidates(self, max_node_id: u32) -> impl Iterator<Item = u32> {
        (0_u32..).flat_map(move |block| {
            let digest: [u8; 32] = Sha256::new()
                .chain_update(b"randflake candidates v1")
                .chain_update(self.0)
                .chain_update(block.to_le_bytes())
                .finalize()
                .into();
            let words = digest.as_chunks::<4>().0.to_vec();
            words.into_iter().map(move |word| {
                let scaled = u64::from(u32::from_le_bytes(word)) * (u64::from(max_node_id) + 1);
                (scaled >> 32) as u32
            })
        })
    }
}

/// Shows the first four bytes: whoever has a whole token could renew or release its lease.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = *self.0.first_chunk().expect("16 bytes");
        write!(f, "Token({:08x}..)", u32::from_be_bytes(first))
    }
}

/// One node id and the unix seconds its holder may stamp: `start` up to, but not including,
/// `end_exclusive`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeLease {
    /// 0 to 131 071.
    pub node_id: u32,
    /// First second.
    pub start: i64,
    /// First second after the lease.
    pub end_exclusive: i64,
}

/// Returns the seconds that all of `leases` cover: the only ones a generator over all these nodes
/// may stamp. `None` if there is no such second, or no lease.
///
/// ```
/// use randflake_leases::{NodeLease, window};
///
/// let leases = [
///     NodeLease { node_id: 7, start: 1763640000, end_exclusive: 1763640300 },
///     NodeLease { node_id: 9, start: 1763640010, end_exclusive: 1763640290 },
/// ];
/// let lease = window(&leases).unwrap();
/// assert_eq!((lease.start(), lease.end_exclusive()), (1763640010, 1763640290));
/// ```
#[must_use]
pub fn window(leases: &[NodeLease]) -> Option<Lease> {
    let start = leases.iter().map(|lease| lease.start).max()?;
    let end_exclusive = leases.iter().map(|lease| lease.end_exclusive).min()?;
    Lease::new(start, end_exclusive).ok()
}

/// Asks for node ids.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Acquire {
    /// What the lease is known by; fresh, but for repeats of the same request.
    pub token: Token,
    /// How many node ids, 1 to 16 384. Fewer may be granted.
    pub want: u32,
    /// For how many seconds, at least six times the largest skew; the namespace's longest lease
    /// at most is granted.
    pub ttl: u32,
    /// The unix second on the clock that ids are stamped with.
    pub client_now: i64,
    /// By what an operator may know the holder.
    pub note: Note,
}

/// Asks for more time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Renew {
    /// What the lease is known by.
    pub token: Token,
    /// Which of the token's node ids; others are left as they are.
    pub node_ids: Vec<u32>,
    /// For how many seconds from now, as in [`Acquire`].
    pub ttl: u32,
    /// The unix second on the clock that ids are stamped with.
    pub client_now: i64,
}

/// Gives node ids back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Release {
    /// What the lease is known by.
    pub token: Token,
    /// Which of the token's node ids.
    pub node_ids: Vec<u32>,
    /// The first second in which nothing was stamped, as the sealed generator tells it; never a
    /// reading of a clock.
    pub used_until: i64,
}

/// Tells that the store may have forgotten leases.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fence {
    /// A fresh token, by which the reply is known.
    pub token: Token,
}

impl Acquire {
    /// Binds an outcome to this request. For stores.
    pub fn reply(&self, outcome: Acquired) -> Reply<Acquired> {
        Reply::new(self.token, Operation::Acquire, outcome)
    }
}

impl Renew {
    /// Binds an outcome to this request. For stores.
    pub fn reply(&self, outcome: Renewed) -> Reply<Renewed> {
        Reply::new(self.token, Operation::Renew, outcome)
    }
}

impl Release {
    /// Binds an outcome to this request. For stores.
    pub fn reply(&self, outcome: Released) -> Reply<Released> {
        Reply::new(self.token, Operation::Release, outcome)
    }
}

impl Fence {
    /// Binds an outcome to this request. For stores.
    pub fn reply(&self, outcome: Fenced) -> Reply<Fenced> {
        Reply::new(self.token, Operation::Fence, outcome)
    }
}

/// The operations.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Operation {
    /// [`LeaseStore::acquire`].
    Acquire,
    /// [`LeaseStore::renew`].
    Renew,
    /// [`LeaseStore::release`].
    Release,
    /// [`LeaseStore::fence`].
    Fence,
    /// [`LeaseStore::list`].
    List,
    /// [`LeaseStore::repair`].
    Repair,
    /// [`LeaseStore::release_dead`].
    ReleaseDead,
}

/// An answer, bound to its request: it echoes the token and the operation. A connection that was
/// shared over a fork, or whose call was cancelled, can deliver the answer to somebody else's.
///
/// ```
/// use randflake_leases::{Operation, Released, Reply, Token};
///
/// let (token, other) = (Token::random(), Token::random());
/// let reply = Reply::new(token, Operation::Release, Released { count: 1 });
/// assert!(reply.clone().answer_to(other, Operation::Release).is_err());
/// assert!(reply.clone().answer_to(token, Operation::Renew).is_err());
/// assert_eq!(reply.answer_to(token, Operation::Release)?.count, 1);
/// # Ok::<(), randflake_leases::Error>(())
/// ```
#[must_use = "an answer counts only once it is known to be one to this request"]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reply<T> {
    /// The token of the request.
    pub token: Token,
    /// The operation of the request.
    pub operation: Operation,
    /// What came of it.
    pub outcome: T,
}

impl<T> Reply<T> {
    /// Binds an outcome to the token and the operation of a request.
    pub const fn new(token: Token, operation: Operation, outcome: T) -> Self {
        Self { token, operation, outcome }
    }

    /// Returns the outcome if this is the answer to that request.
    ///
    /// # Errors
    ///
    /// [`StoreUnavailable`](ErrorKind::StoreUnavailable): it answers another one. The
    /// connection that it came from must not be used again.
    pub fn answer_to(self, token: Token, operation: Operation) -> Result<T> {
        if (self.token, self.operation) == (token, operation) {
            return Ok(self.outcome);
        }
        Err(Error::new(
            ErrorKind::StoreUnavailable,
            format!(
                "the store answered another request ({:?} of {:?} instead of {operation:?} of \
                 {token:?}); its connection is shared with somebody and must be discarded",
                self.operation, self.token
            ),
        ))
    }
}

/// What came of an [`Acquire`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Acquired {
    /// These node ids belong to the token: at least one, at most as many as wanted.
    Granted {
        /// The store's clock.
        now: i64,
        /// Sorted by node id.
        leases: Vec<NodeLease>,
    },
    /// No node id that was looked at is free.
    Busy {
        /// The store's clock.
        now: i64,
        /// When the next one becomes free, if every node id was looked at.
        free_at: Option<i64>,
    },
    /// The store may have forgotten leases.
    Quarantined {
        /// The store's clock.
        now: i64,
        /// From this second on it grants again.
        until: i64,
    },
    /// The client's clock differs by more than the largest skew.
    ClockSkew {
        /// The store's clock.
        store_now: i64,
        /// The largest skew, in seconds.
        max_skew: u32,
    },
}

/// What came of a [`Renew`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Renewed {
    /// These of the node ids still belong to the token, with the end that is now good: at least
    /// one. The others are lost.
    Extended {
        /// The store's clock.
        now: i64,
        /// Sorted by node id.
        leases: Vec<NodeLease>,
    },
    /// None of them does. What was granted before may be used up to its end.
    Lost {
        /// The store's clock.
        now: i64,
    },
    /// The client's clock differs by more than the largest skew.
    ClockSkew {
        /// The store's clock.
        store_now: i64,
        /// The largest skew, in seconds.
        max_skew: u32,
    },
}

/// What came of a [`Release`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Released {
    /// How many node ids still belonged to the token.
    pub count: u32,
}

/// What came of a [`Fence`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fenced {
    /// The store's clock.
    pub now: i64,
    /// From this second on the store grants again, and no new lease starts before it.
    pub floor: i64,
    /// Leases that end at this second or before are not renewed.
    pub renew_above: i64,
}

/// Which leases of a store: those of one secret or layout. A store can hold several
/// namespaces; their node ids have nothing to do with each other.
///
/// The limits are those of the namespace when it is made; afterwards the store's own count.
///
/// ```
/// use randflake::Secret;
/// use randflake_leases::Namespace;
///
/// let orders = Namespace::new("orders", &Secret::random())?.max_ttl(600)?;
/// assert_eq!((orders.name(), orders.limits().max_ttl), ("orders", 600));
/// # Ok::<(), randflake_leases::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Namespace {
    name: String,
    secret: Secret,
    layout: Layout,
    limits: Limits,
    /// Takes whatever has that name, and makes nothing.
    operator: bool,
}

/// The bounds of a namespace, kept in the store.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Limits {
    /// Longest lease, in seconds.
    pub max_ttl: u32,
    /// Largest difference between two clocks, in seconds; a lease is at least six times as long.
    pub max_skew: u32,
    /// Largest node id.
    pub max_node_id: u32,
}

impl Namespace {
    /// Longest name, in bytes.
    pub const MAX_NAME: usize = 200;

    /// Longest lease, in seconds, unless [`Namespace::max_ttl`] sets another.
    pub const MAX_TTL: u32 = 300;

    /// Names a namespace: 1 to 200 bytes, no control characters. Leases last 300 seconds at most,
    /// clocks may differ by 5, and all 131 072 node ids are there to be leased.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: another name.
    pub fn new(name: impl Into<String>, secret: &Secret) -> Result<Self> {
        Self::named(name.into(), secret.clone(), Layout::randflake())
    }

    /// Names a namespace of unencrypted ids of a layout, whose node ids are there to be leased as
    /// by [`Namespace::new`]: all of them, or the lowest 131 072. There is no secret to be compared.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: another name, or a layout without node ids.
    ///
    /// ```
    /// use randflake::Layout;
    /// use randflake_leases::Namespace;
    ///
    /// let posts = Namespace::for_layout("posts", Layout::twitter())?;
    /// assert_eq!(posts.limits().max_node_id, 1023);
    /// assert!(posts.max_node_id(1024).is_err());
    /// assert!(Namespace::for_layout("posts", Layout::simpleflake()).is_err());
    /// # Ok::<(), randflake_leases::Error>(())
    /// ```
    pub fn for_layout(name: impl Into<String>, layout: Layout) -> Result<Self> {
        if layout.node_bits() == 0 {
            return Err(Error::invalid_argument(format!(
                "the layout {} has no node ids, so there is nothing to lease: its ids are unique \
                 within one process only; use a layout with node ids",
                layout.name()
            )));
        }
        let none = Secret::from_bytes(&[0; Secret::BYTES])?;
        Self::named(name.into(), none, layout)
    }

    /// Names a namespace that is there, whatever its secret and layout: enough to
    /// [list](LeaseStore::list), [fence](LeaseStore::fence), [repair](LeaseStore::repair) and
    /// [release](LeaseStore::release_dead), and not to lease or to make it.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: another name.
    ///
    /// ```
    /// use randflake::Secret;
    /// use randflake_leases::{Fence, LeaseStore, MemoryStore, Namespace, Token};
    ///
    /// let mut store = MemoryStore::new(Namespace::new("orders", &Secret::random())?);
    /// let mut operator = store.namespace(Namespace::for_operator("orders")?);
    /// let fence = Fence { token: Token::random() };
    /// assert_eq!(operator.fence(&fence).unwrap_err().code(), "STORE_NOT_INITIALIZED");
    /// assert!(store.fence(&fence).is_ok(), "makes it");
    /// assert!(operator.fence(&fence).is_ok());
    /// # Ok::<(), randflake_leases::Error>(())
    /// ```
    pub fn for_operator(name: impl Into<String>) -> Result<Self> {
        let namespace = Self::for_layout(name, Layout::randflake())?;
        Ok(Self { operator: true, ..namespace })
    }

    fn named(name: String, secret: Secret, layout: Layout) -> Result<Self> {
        let fits = (1..=Self::MAX_NAME).contains(&name.len());
        if !fits || name.chars().any(char::is_control) {
            return Err(Error::invalid_argument(format!(
                "a namespace's name must have 1 to {} bytes and no control characters, got {:?}",
                Self::MAX_NAME,
                name.chars().take(20).collect::<String>()
            )));
        }
        Ok(Self {
            name,
            secret,
            layout,
            limits: Limits {
                max_ttl: Self::MAX_TTL,
                max_skew: 5,
                max_node_id: largest_node_id(&layout),
            },
            operator: false,
        })
    }

    /// Sets the longest lease, 1 to 86 400 seconds and at least six times the largest skew. After
    /// a [fence](LeaseStore::fence) nothing is granted for that long.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: out of range.
    pub fn max_ttl(self, seconds: u32) -> Result<Self> {
        self.limited(|limits| limits.max_ttl = seconds)
    }

    /// Sets how many seconds clocks may differ, 0 to a sixth of the longest lease.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: out of range.
    pub fn max_skew(self, seconds: u32) -> Result<Self> {
        self.limited(|limits| limits.max_skew = seconds)
    }

    /// Sets both at once, whatever they were: see [`max_ttl`](Self::max_ttl) and
    /// [`max_skew`](Self::max_skew). One after the other, the first would have to suit the second as
    /// it is.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: out of range.
    ///
    /// ```
    /// # use randflake::Secret;
    /// # use randflake_leases::Namespace;
    /// let namespace = Namespace::new("orders", &Secret::random())?;
    /// let patient = namespace.max_ttl_and_skew(3600, 600)?;
    /// assert_eq!((patient.limits().max_ttl, patient.limits().max_skew), (3600, 600));
    /// assert!(patient.max_ttl_and_skew(6, 2).is_err());
    /// # Ok::<(), randflake_leases::Error>(())
    /// ```
    pub fn max_ttl_and_skew(self, max_ttl: u32, max_skew: u32) -> Result<Self> {
        self.limited(|limits| (limits.max_ttl, limits.max_skew) = (max_ttl, max_skew))
    }

    /// Sets the largest node id to lease, 0 to 131 071 (or what the layout has), to leave the others
    /// to node ids by hand.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: out of range.
    pub fn max_node_id(self, max_node_id: u32) -> Result<Self> {
        self.limited(|limits| limits.max_node_id = max_node_id)
    }

    /// Raises the limits to those of a namespace that this one follows, whose leases may still run.
    pub(crate) fn succeed(&mut self, Limits { max_ttl, max_skew, .. }: Limits) {
        self.limits.max_ttl = self.limits.max_ttl.max(max_ttl);
        self.limits.max_skew = self.limits.max_skew.max(max_skew);
    }

    fn limited(mut self, change: impl FnOnce(&mut Limits)) -> Result<Self> {
        change(&mut self.limits);
        self.limits.check(&self.layout)?;
        Ok(self)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the limits that this namespace gets if it is made now.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the text by which a store tells layouts apart: others have other node widths.
    ///
    /// ```
    /// # use randflake::Secret;
    /// # use randflake_leases::Namespace;
    /// let orders = Namespace::new("orders", &Secret::random())?;
    /// assert_eq!(orders.layout(), "1730000000:30:17:17");
    /// # Ok::<(), randflake_leases::Error>(())
    /// ```
    #[must_use]
    pub fn layout(&self) -> String {
        self.layout.fingerprint()
    }

    /// Returns the fingerprint that a store keeps to tell this secret from another: the first
    /// eight bytes of HMAC-SHA256 under the secret over `randflake key_check v1` and the salt.
    ///
    /// # Panics
    ///
    /// Never: every secret is a key.
    #[must_use]
    pub fn key_check(&self, salt: &[u8; 16]) -> [u8; 8] {
        let check = self.secret.hmac(&[b"randflake key_check v1", salt]);
        *check.first_chunk().expect("32 bytes")
    }

    /// Checks that a namespace as a store has it is this one.
    ///
    /// # Errors
    ///
    /// [`SecretMismatch`](ErrorKind::SecretMismatch): it belongs to another secret.
    /// `INVALID_ARGUMENT`: it was made for another layout, with another largest node id, or by
    /// another version.
    pub fn check(&self, made: &Made) -> Result<()> {
        let name = &self.name;
        if made.format != FORMAT {
            return Err(Error::invalid_argument(format!(
                "namespace {name:?} of this store has the format {}, and this version knows \
                 {FORMAT}; use the version that made it",
                made.format
            )));
        }
        if self.operator {
            return Ok(());
        }
        // First: whoever has another layout has no secret, or another one.
        let layout = self.layout();
        if made.layout != layout {
            return Err(Error::invalid_argument(format!(
                "namespace {name:?} of this store has the layout {}, and this is {layout}; use \
                 another namespace= for another layout",
                made.layout
            )));
        }
        if made.key_check != self.key_check(&made.salt) {
            return Err(Error::new(
                ErrorKind::SecretMismatch,
                format!(
                    "namespace {name:?} of this store belongs to another secret; ids of two \
                     secrets do not belong into one column: use the secret of this namespace, or \
                     another namespace= for the other column"
                ),
            ));
        }
        let (theirs, ours) = (made.limits.max_node_id, self.limits.max_node_id);
        if theirs != ours {
            return Err(Error::invalid_argument(format!(
                "namespace {name:?} of this store leases node ids up to {theirs}, and {ours} was \
                 asked for; use the same largest node id everywhere"
            )));
        }
        Ok(())
    }
}

/// How to make a namespace that is not there. One that is stays as it is, whichever is said.
///
/// There is no default: who finds an empty store cannot tell a new one from one that lost
/// everything, and after a loss `New` lets two holders have the same node ids. So init is one step
/// when a store is set up, and not a part of each start or deploy.
///
/// ```
/// use randflake_leases::InitMode;
///
/// assert_eq!("quarantine".parse(), Ok(InitMode::Quarantine));
/// let error = "".parse::<InitMode>().unwrap_err();
/// assert!(error.to_string().starts_with("say how to make the namespace: `new` if"));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum InitMode {
    /// This store has never had the namespace: it grants at once.
    New,
    /// It may have had it and lost it, as after a restart without its data, or nobody knows: it
    /// grants nothing for the longest lease and the largest skew, until every lease that may be
    /// running is over.
    Quarantine,
}

impl std::str::FromStr for InitMode {
    type Err = Error;

    /// Takes `new` and `quarantine`. Another text is an `INVALID_ARGUMENT` that says when which is
    /// right.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "new" => Ok(Self::New),
            "quarantine" => Ok(Self::Quarantine),
            _ => Err(Error::invalid_argument(
                "say how to make the namespace: `new` if this store has never had it, or \
                 `quarantine` if it may have lost it, or if you cannot tell: then it grants \
                 nothing until every earlier lease is over; never say `new` on each start or \
                 deploy, since after a loss that repeats ids",
            )),
        }
    }
}

impl Namespace {
    /// Says that a store does not have it, and what to call.
    pub(crate) fn not_initialized(&self, store: impl fmt::Display) -> Error {
        Error::new(
            ErrorKind::StoreNotInitialized,
            format!(
                "{store} has no namespace {:?}; make it once, by init_store in Python, initStore in \
                 Node.js, init in Rust or `randflake lease init`: as `new` if it has never been \
                 there, and as `quarantine` if leases of it may be running, as after a restart \
                 without its data, or if you cannot tell",
                self.name
            ),
        )
    }

    /// Whether nothing but the name is known.
    pub(crate) fn is_for_operator(&self) -> bool {
        self.operator
    }

    /// Refuses to lease without a secret.
    pub(crate) fn may_lease(&self) -> Result<()> {
        if self.operator {
            return Err(Error::invalid_argument(
                "an operator's namespace has no secret, and leases nothing; name it with its \
                 secret or its layout",
            ));
        }
        Ok(())
    }

    /// Refuses to make what is not there, without a secret.
    pub(crate) fn may_make(&self) -> Result<()> {
        if self.operator {
            return Err(Error::new(
                ErrorKind::StoreNotInitialized,
                format!(
                    "there is no namespace {:?} in this store; look for the right name, or at the \
                     right store",
                    self.name
                ),
            ));
        }
        Ok(())
    }
}

impl Limits {
    fn check(self, layout: &Layout) -> Result<()> {
        let Self { max_ttl, max_skew, max_node_id } = self;
        if !(1..=86_400).contains(&max_ttl) || max_skew > max_ttl / 6 {
            return Err(Error::invalid_argument(format!(
                "the longest lease must have 1 to 86400 seconds and at least six times the \
                 largest skew, got {max_ttl} with a skew of {max_skew}"
            )));
        }
        if max_node_id > largest_node_id(layout) {
            return Err(Error::invalid_argument(format!(
                "the largest node id to lease must be between 0 and {}, got {max_node_id}",
                largest_node_id(layout)
            )));
        }
        Ok(())
    }
}

/// Returns the largest node id that a store leases: of wider layouts not all, since stores keep
/// node ids as those of Randflake.
fn largest_node_id(layout: &Layout) -> u32 {
    layout.max_node_id().min(randflake::layout::MAX_NODE_ID)
}

/// What a store keeps of a namespace from the day it is made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Made {
    /// Version of what the store keeps; 1 so far.
    pub format: u32,
    /// The bounds.
    pub limits: Limits,
    /// See [`Namespace::layout`].
    pub layout: String,
    /// Random; part of what [`Namespace::key_check`] is made of.
    pub salt: [u8; 16],
    /// See [`Namespace::key_check`].
    pub key_check: [u8; 8],
}

impl Made {
    /// Returns what a store keeps if the namespace is made now.
    #[must_use]
    pub fn new(namespace: &Namespace) -> Self {
        let salt = random_bytes();
        Self {
            format: FORMAT,
            limits: namespace.limits,
            layout: namespace.layout(),
            salt,
            key_check: namespace.key_check(&salt),
        }
    }
}

pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has a random source");
    bytes
}
