//! What a holder of leases asks of a store, and what the store answers. All times are whole unix
//! seconds, all intervals half-open.

mod operator_requests;

use randflake::{Error, ErrorKind, Lease, Result, bindings::quoted};

use crate::{findings::Finding, note::Note, token::Token};

pub use self::operator_requests::{
    Counts, List, Listed, Node, NodeIdsSet, NodeState, ReleaseDead, Repair, SetNodeIds, Shortened,
    Target,
};

/// A store of leases. Each call blocks and is one atomic operation of the store. What a call has
/// granted survives a crash of this process, of the store and of the machine.
///
/// Each call is idempotent: an error leaves open whether the operation was done, and the same
/// request may be sent again. An implementation follows the rules of
/// [`MemoryStore`](crate::MemoryStore), and its tests run `randflake-conformance` against it.
pub trait LeaseStore: Send {
    /// Leases free node ids under a token that was never used before. If repeated with the same
    /// token, it returns what that token holds.
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

    /// Raises the end of what a token holds, even after that end, unless another token holds it by
    /// then.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`].
    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>>;

    /// Releases what a token holds. The holder must have sealed its generator first, so that it
    /// never stamps again.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`].
    fn release(&mut self, request: &Release) -> Result<Reply<Released>>;

    /// Records that the store may have lost leases, as after restoring a backup. Until the longest
    /// lease plus the largest skew (in Redis 12 seconds more) has passed, the store grants nothing,
    /// and renews only leases that were clearly running.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`].
    fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>>;

    /// Lists what the store knows about node ids, and changes nothing. It needs no secret: open the
    /// store with [`Namespace::for_operator`](crate::Namespace::for_operator).
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`].
    fn list(&mut self, request: &List) -> Result<Reply<Listed>>;

    /// Sets which node ids are leased; see [`SetNodeIds`]. The default refuses: the store's node
    /// ids are fixed.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`]; `INVALID_ARGUMENT`: the layout has fewer node ids, or it is a
    /// namespace of tickets.
    fn set_node_ids(&mut self, request: &SetNodeIds) -> Result<Reply<NodeIdsSet>> {
        let _ = request;
        Err(Error::invalid_argument("the node ids of this store cannot be changed"))
    }

    /// Looks at the store itself, for an operator: which server or file it is, whether it keeps what
    /// it acknowledges, and whether this user may read and write. Changes nothing. The default finds
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`StoreUnavailable`](ErrorKind::StoreUnavailable). Any other problem is a [`Finding`].
    fn examine(&mut self) -> Result<Vec<Finding>> {
        Ok(vec![])
    }

    /// Lowers an implausible end, which only a wrong clock can have set; see [`Repair`].
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`], and [`ClockSkew`](ErrorKind::ClockSkew): one of the clocks is
    /// wrong now. [`INVALID_ARGUMENT`](randflake::ErrorKind::InvalidArgument): the end is plausible,
    /// or the requested one is out of bounds.
    fn repair(&mut self, request: &Repair) -> Result<Reply<Shortened>>;

    /// Releases a node id whose holder is dead; see [`ReleaseDead`].
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::repair`]; `INVALID_ARGUMENT`: it has no holder, or an implausible end.
    fn release_dead(&mut self, request: &ReleaseDead) -> Result<Reply<Shortened>>;

    /// Reads a counter of a namespace of [tickets](crate::Namespace::for_tickets), or replaces its
    /// value if nothing has changed meanwhile; see [`Swap`]. Stores do not interpret the value. The
    /// default refuses: this store keeps no counters.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`]; also `INVALID_ARGUMENT`: not a namespace of tickets, or not a
    /// valid counter name.
    fn swap(&mut self, request: &Swap) -> Result<Reply<Swapped>> {
        let _ = request;
        Err(no_counters())
    }

    /// Lists the counters of a namespace of [tickets](crate::Namespace::for_tickets), page by page
    /// if a list of all would block the server. The default refuses: this store keeps no counters.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::swap`].
    fn list_counters(&mut self, request: &ListCounters) -> Result<Reply<ListedCounters>> {
        let _ = request;
        Err(no_counters())
    }

    /// Returns the name of this store for people, as in
    /// [`LeaseStatus::store`](crate::LeaseStatus::store): the absolute path of a file, the URL of a
    /// server without its password, such as `postgresql://app@db.example.com:5432/app`, or the kind
    /// of server if the program connects to it itself. The default is `custom`.
    fn name(&self) -> String {
        "custom".to_owned()
    }

    /// Tells the store that no request follows for a minute or longer. It then closes what it holds
    /// open, such as its own connection, and opens it again for the next operation. The default
    /// does nothing.
    fn rest(&mut self) {}

    /// Closes a connection that may deliver the answers to other requests. The next operation opens
    /// another one. The default does what [`rest`](LeaseStore::rest) does.
    fn discard(&mut self) {
        self.rest();
    }

    /// Forgets what this store remembers about a token: the request was made for a holder
    /// elsewhere, which may continue with another store. A store remembers what it has written for
    /// a token and accepts only that as the token's, so that only one of two copies of a process
    /// continues with a lease. For a forgotten token, only the token itself is compared. The
    /// default does nothing.
    fn forget(&mut self, token: Token) {
        let _ = token;
    }

    /// Forgets which store this was, so that the next operation accepts any store at its location.
    /// Called after [`StoreReplaced`](ErrorKind::StoreReplaced), once every second that the old
    /// store granted has passed.
    ///
    /// Other processes may still hold leases of the old store. If this creates a missing store or
    /// namespace, it therefore starts it in a quarantine at least as long as the longest lease of the
    /// old store. The default does nothing, which suits a store that never reports a replacement.
    fn accept_another(&mut self) {}
}

#[cold]
fn no_counters() -> Error {
    Error::invalid_argument(
        "this store keeps no counters; take tickets from a store in memory, in a SQLite file, or \
         with PostgreSQL, MySQL, Redis or etcd",
    )
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
    /// Identifies the lease; new for each request, the same when a request is repeated.
    pub token: Token,
    /// How many node ids, 1 to 16 384. Fewer may be granted.
    pub want: u32,
    /// For how many seconds, at least six times the largest skew. The store grants at most the
    /// namespace's longest lease.
    pub ttl: u32,
    /// The unix second on the clock that ids are stamped with.
    pub client_now: i64,
    /// What an operator sees of the holder.
    pub note: Note,
}

/// Asks for more time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Renew {
    /// What the lease is known by.
    pub token: Token,
    /// Which of the token's node ids to renew; others are left as they are.
    pub node_ids: Vec<u32>,
    /// For how many seconds from now, as in [`Acquire`].
    pub ttl: u32,
    /// The unix second on the clock that ids are stamped with.
    pub client_now: i64,
    /// What the lease is known by from now on, if that changes: for a holder whose store does not
    /// remember what it wrote, such as a client of `randflake serve`. It is random for each
    /// renewal, and the same when a renewal is repeated. If such a holder is copied, only one copy
    /// continues.
    pub next: Option<Token>,
}

/// Gives node ids back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Release {
    /// What the lease is known by.
    pub token: Token,
    /// Which of the token's node ids to release.
    pub node_ids: Vec<u32>,
    /// The first second in which nothing was stamped, as the sealed generator reports it; never a
    /// clock reading.
    pub used_until: i64,
}

/// Says that the store may have lost leases.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fence {
    /// A new token, which binds the reply to this request.
    pub token: Token,
}

/// Reads a counter, or replaces its value. A repeated request replaces nothing a second time,
/// because the value has changed by then.
///
/// ```
/// use randflake_leases::{Change, LeaseStore, MemoryStore, Namespace, Operation, Swap, Token};
///
/// let mut store = MemoryStore::new(Namespace::for_tickets("tickets")?);
/// let change = Change { floor: 0, before: None, after: "first".to_owned() };
/// let swap = Swap { token: Token::random(), counter: "invoices".to_owned(), change: Some(change) };
/// let swapped = store.swap(&swap)?.answer_to(swap.token, Operation::Swap)?;
/// assert!(swapped.done);
/// let again = store.swap(&swap)?.answer_to(swap.token, Operation::Swap)?;
/// assert!(!again.done, "it is no longer missing");
/// assert_eq!(again.value.as_deref(), Some("first"));
/// # Ok::<(), randflake_leases::Error>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Swap {
    /// A new token, which binds the reply to this request.
    pub token: Token,
    /// The counter's name: 1 to 200 bytes, no spaces, no control characters.
    pub counter: String,
    /// What to write; `None` only reads.
    pub change: Option<Change>,
}

/// A new value of a counter, and what must still hold when it is written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// The floor of the namespace.
    pub floor: i64,
    /// The value before; `None` if the counter must be missing.
    pub before: Option<String>,
    /// The value to be written: printable ASCII, at most [`Swap::MAX_VALUE`] bytes.
    pub after: String,
}

impl Swap {
    /// Longest name of a counter, in bytes.
    pub const MAX_NAME: usize = 200;

    /// Longest value of a counter, in bytes.
    pub const MAX_VALUE: usize = 65_536;

    /// Refuses an invalid counter name, and a value that no store keeps. For stores.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`.
    pub fn check(&self) -> Result<()> {
        check_counter(&self.counter)?;
        let Some(Change { after, .. }) = &self.change else { return Ok(()) };
        if after.len() > Self::MAX_VALUE || !after.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(Error::invalid_argument(format!(
                "the value of a counter must have at most {} bytes of printable ASCII, got {}",
                Self::MAX_VALUE,
                after.len()
            )));
        }
        Ok(())
    }
}

/// Asks for all counters of a namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListCounters {
    /// A new token, which binds the reply to this request.
    pub token: Token,
}

/// Refuses what is not the name of a counter.
///
/// # Errors
///
/// `INVALID_ARGUMENT`.
pub fn check_counter(name: &str) -> Result<()> {
    let fits = (1..=Swap::MAX_NAME).contains(&name.len());
    if fits && !name.chars().any(|it| it.is_control() || it.is_whitespace()) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "a counter's name must have 1 to {} bytes, no spaces and no control characters, got {}",
        Swap::MAX_NAME,
        quoted(name)
    )))
}

/// A request of one of the ten operations of a [`LeaseStore`].
pub trait Request: Clone + Send + 'static {
    /// What the store answers.
    type Outcome;

    /// The operation of this request.
    const OPERATION: Operation;

    /// Returns the token that binds the reply to this request.
    fn token(&self) -> Token;
}

macro_rules! requests {
    ($($request:ident: $outcome:ty),*) => {
        $(
            impl $request {
                /// Binds an outcome to this request. For stores.
                pub fn reply(&self, outcome: $outcome) -> Reply<$outcome> {
                    Reply::new(self.token, Operation::$request, outcome)
                }
            }

            impl Request for $request {
                type Outcome = $outcome;
                const OPERATION: Operation = Operation::$request;

                fn token(&self) -> Token {
                    self.token
                }
            }
        )*
    };
}

requests!(
    Acquire: Acquired,
    Renew: Renewed,
    Release: Released,
    Fence: Fenced,
    List: Listed,
    SetNodeIds: NodeIdsSet,
    Repair: Shortened,
    ReleaseDead: Shortened,
    Swap: Swapped,
    ListCounters: ListedCounters
);

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
    /// [`LeaseStore::set_node_ids`].
    SetNodeIds,
    /// [`LeaseStore::repair`].
    Repair,
    /// [`LeaseStore::release_dead`].
    ReleaseDead,
    /// [`LeaseStore::swap`].
    Swap,
    /// [`LeaseStore::list_counters`].
    ListCounters,
}

/// An answer, bound to its request: it echoes the token and the operation. A connection that is
/// shared after a fork, or whose last call was cancelled, may deliver the answer to a different
/// request.
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
#[must_use = "check that it answers the request, with `answer_to`"]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reply<T> {
    /// The token of the request.
    pub token: Token,
    /// The operation of the request.
    pub operation: Operation,
    /// The outcome.
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
    /// [`StoreUnavailable`](ErrorKind::StoreUnavailable): it answers another request. The
    /// connection that it came from must not be used again.
    pub fn answer_to(self, token: Token, operation: Operation) -> Result<T> {
        if (self.token, self.operation) == (token, operation) {
            return Ok(self.outcome);
        }
        Err(Error::new(
            ErrorKind::StoreUnavailable,
            format!(
                "the store answered another request ({:?} of {:?} instead of {operation:?} of \
                 {token:?}); its connection is shared and must be discarded",
                self.operation, self.token
            ),
        ))
    }
}

/// Returns the outcome of a request if the reply is the answer to it.
///
/// # Errors
///
/// That of the reply; `STORE_UNAVAILABLE`: it is the answer to another request.
pub fn outcome_of<R: Request>(request: &R, reply: Result<Reply<R::Outcome>>) -> Result<R::Outcome> {
    reply?.answer_to(request.token(), R::OPERATION)
}

/// The outcome of an [`Acquire`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Acquired {
    /// These node ids belong to the token: at least one, at most as many as wanted.
    Granted {
        /// The store's clock.
        now: i64,
        /// Longest lease of the namespace, in seconds.
        max_ttl: u32,
        /// Largest skew of the namespace, in seconds.
        max_skew: u32,
        /// Sorted by node id.
        leases: Vec<NodeLease>,
    },
    /// No free node id was found.
    Busy {
        /// The store's clock.
        now: i64,
        /// When the next one becomes free, if every node id was looked at.
        free_at: Option<i64>,
    },
    /// The store may have lost leases and grants none for a while.
    Quarantined {
        /// The store's clock.
        now: i64,
        /// The second from which it grants again.
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

/// The outcome of a [`Renew`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Renewed {
    /// These node ids, at least one, still belong to the token, with the end that now applies. The
    /// others are lost.
    Extended {
        /// The store's clock.
        now: i64,
        /// Longest lease of the namespace, in seconds.
        max_ttl: u32,
        /// Largest skew of the namespace, in seconds.
        max_skew: u32,
        /// Sorted by node id.
        leases: Vec<NodeLease>,
    },
    /// None of the node ids still belongs to the token. What was granted before may be used up to
    /// its end.
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

impl Acquired {
    /// Returns the store's clock.
    pub(crate) fn store_now(&self) -> i64 {
        match *self {
            Self::Granted { now, .. } | Self::Busy { now, .. } | Self::Quarantined { now, .. } => {
                now
            }
            Self::ClockSkew { store_now, .. } => store_now,
        }
    }
}

impl Renewed {
    /// Returns the store's clock.
    pub(crate) fn store_now(&self) -> i64 {
        match *self {
            Self::Extended { now, .. } | Self::Lost { now } => now,
            Self::ClockSkew { store_now, .. } => store_now,
        }
    }
}

/// The outcome of a [`Release`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Released {
    /// How many node ids still belonged to the token.
    pub count: u32,
}

/// The outcome of a [`Fence`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fenced {
    /// The store's clock.
    pub now: i64,
    /// The second from which the store grants again; no new lease starts before it.
    pub floor: i64,
    /// Leases that end at this second or before are not renewed.
    pub renew_above: i64,
}

/// The outcome of a [`Swap`]: what the store has now.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Swapped {
    /// The store's clock.
    pub now: i64,
    /// Whether the change was written, permanently. False if the request only read.
    pub done: bool,
    /// The floor of the namespace, which each [fence](LeaseStore::fence) raises.
    pub floor: i64,
    /// The value of the counter; `None` if it is missing.
    pub value: Option<String>,
}

/// The outcome of a [`ListCounters`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListedCounters {
    /// The store's clock.
    pub now: i64,
    /// The floor of the namespace, as in [`Swapped`].
    pub floor: i64,
    /// The name and the value of each counter, sorted by the bytes of the name. A counter that is made
    /// or changed meanwhile may be listed as it was before.
    pub counters: Vec<(String, String)>,
}
