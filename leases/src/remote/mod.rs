//! Stores with a server: PostgreSQL, Redis or Valkey, and etcd.
//!
//! A [`Protocol`] knows what to say to such a server and what its answers mean, and does no I/O:
//! each operation is a [`Call`] that hands out one [`Statement`] after the other and takes the
//! [`Response`]. Whoever has a connection runs them. With a blocking one, implement [`Client`] and
//! use [`RemoteStore`]; the features `postgres`, `redis` and `etcd` bring one for each.
//!
//! The servers keep the leases and make them durable; nothing here replicates anything. Each
//! operation is one atomic statement, script or transaction, and usually one round trip.
#![allow(clippy::doc_markdown, reason = "PostgreSQL is a name")]

mod call;
#[cfg(any(feature = "postgres", feature = "redis", feature = "etcd"))]
mod client;
mod etcd;
mod rows;

use std::{
    collections::BTreeMap,
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use randflake::{Clock, SystemClock};

use self::call::Line;
pub use self::call::{Call, Progress, Response, Statement, Wait};
#[cfg(feature = "etcd")]
pub use self::client::EtcdClient;
#[cfg(feature = "postgres")]
pub use self::client::PostgresClient;
#[cfg(feature = "redis")]
pub use self::client::RedisClient;
use crate::{
    Acquire, Acquired, Error, ErrorKind, Fence, Fenced, InitMode, LeaseStore, Limits, Namespace,
    NamespaceMetadata, Release, Released, Renew, Renewed, Reply, Result, Token,
    fork::Life,
    operator::{List, Listed, Node, ReleaseDead, Repair, Shortened, Target},
    rules::{self, Quarantine},
};

/// How often a statement is tried that the server asks to repeat.
const TRIES: usize = 10;
/// Node ids of one statement when all are looked at.
const BLOCK: u32 = 4096;

/// A blocking connection to a server, or what opens one.
///
/// ```
/// use randflake_leases::{Error, remote::{Client, Response, Statement}};
///
/// struct Mine { /* a connection */ }
///
/// impl Client for Mine {
///     fn run(&mut self, statement: &Statement) -> Result<Response, Error> {
///         let Statement { text, parameters, wait } = statement;
///         // Run text with parameters, each of type text, outside of any transaction; connect
///         // first if need be. In Redis, mind wait.
///         # let _ = (text, parameters, wait);
///         Ok(Response::Rows(vec![vec![Some("cell".into())]]))
///     }
///     fn discard(&mut self) { /* close the connection; the next statement opens another */ }
/// }
/// ```
pub trait Client: Send {
    /// Runs a statement, committed when this returns, and returns what the server said. Waits no
    /// longer than a few seconds.
    ///
    /// # Errors
    ///
    /// [`StoreUnavailable`](ErrorKind::StoreUnavailable): the server cannot be reached, or
    /// did not answer; without a password in the message. What the server itself reports is
    /// [`Response::Refused`].
    fn run(&mut self, statement: &Statement) -> Result<Response>;

    /// Gives the connection up: it may deliver the answer to another request.
    fn discard(&mut self);

    /// Nothing is to be run for a minute or longer: closes a connection of its own meanwhile. Does
    /// nothing unless implemented; one that is borrowed stays as it is.
    fn rest(&mut self) {}
}

/// What to say to a server, and what its answers mean, for one namespace. Remembers which server
/// it was; clones share that.
///
/// `now` is everywhere the unix second on the machine's clock. It is compared with that of the
/// server, before what hangs on that; and etcd goes by it where an answer does not show another.
#[derive(Clone)]
pub struct Protocol {
    namespace: Namespace,
    engine: Engine,
    create: bool,
    allow_weak: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Engine {
    Postgres,
    Redis,
    Etcd,
}

#[derive(Default)]
struct State {
    known: Option<Known>,
    /// The limits of another namespace that was here, whose leases may still run.
    followed: Option<Limits>,
    /// etcd: the rows that this client has written.
    rows: BTreeMap<u32, etcd::Row>,
}

/// The namespace, as the server had it when it was last looked at.
#[derive(Clone, Debug)]
struct Known {
    made: NamespaceMetadata,
    /// Which server, in which line of its history.
    incarnation: String,
    /// Redis: how many replicas must confirm a grant.
    replicas: u32,
    /// etcd: the version of the namespace's key, and its numbers.
    meta_revision: i64,
    quarantine: Quarantine,
    /// etcd: the newest version of anything that was seen.
    revision: i64,
    /// etcd: by how many seconds its clock is ahead of this machine's, by its last answer; none if
    /// that did not show it.
    ahead: Option<i64>,
}

impl Protocol {
    /// For PostgreSQL 12 or newer.
    #[must_use]
    pub fn postgres(namespace: Namespace) -> Self {
        Self::new(namespace, Engine::Postgres)
    }

    /// For Redis 6, Valkey 7 or newer.
    #[must_use]
    pub fn redis(namespace: Namespace) -> Self {
        Self::new(namespace, Engine::Redis)
    }

    /// For etcd 3.4 or newer, by its JSON gateway.
    #[must_use]
    pub fn etcd(namespace: Namespace) -> Self {
        Self::new(namespace, Engine::Etcd)
    }

    fn new(namespace: Namespace, engine: Engine) -> Self {
        Self { namespace, engine, create: false, allow_weak: false, state: Arc::default() }
    }

    /// Makes the namespace, and for PostgreSQL its tables, with the first lease if it is not
    /// there. Unless set, [`Protocol::init`] must have made it: who finds an empty store cannot
    /// tell a new one from one that lost everything.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: for Redis, which loses everything too easily.
    pub fn create(mut self, create: bool) -> Result<Self> {
        if create && self.engine == Engine::Redis {
            return Err(Error::invalid_argument(
                "a namespace in Redis is made by init alone: after a restart without its data a \
                 first lease would make it anew, while others still hold leases",
            ));
        }
        self.create = create;
        Ok(self)
    }

    /// Allows a server that may lose what it has acknowledged: a Redis that evicts keys, keeps
    /// nothing on a disk, or has replicas and does not wait for any, and a PostgreSQL whose `fsync`
    /// is off. Nothing is checked then.
    #[must_use]
    pub fn allow_weak_store(mut self, allow: bool) -> Self {
        self.allow_weak = allow;
        self
    }

    /// Returns the namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Makes the namespace if it is not there, as [`InitMode`] says, and checks it if it is. Once,
    /// and not with each start: who finds an empty store cannot tell a new one from one that lost
    /// everything.
    ///
    /// The call ends with the errors of [`LeaseStore::acquire`].
    #[must_use]
    pub fn init(&self, mode: InitMode, now: i64) -> Call<()> {
        let this = self.clone();
        Call::new(async move |line| match this.engine {
            Engine::Etcd => etcd::check(&this, &line, Some(mode), now).await.map(drop),
            _ => rows::check(&this, &line, Some(mode), now).await.map(drop),
        })
    }

    /// See [`LeaseStore::acquire`].
    #[must_use]
    pub fn acquire(&self, request: &Acquire, now: i64) -> Call<Reply<Acquired>> {
        let (this, request) = (self.clone(), request.clone());
        Call::new(async move |line| {
            this.namespace.may_lease()?;
            let outcome = match this.engine {
                Engine::Etcd => etcd::acquire(&this, &line, &request, now).await,
                _ => rows::acquire(&this, &line, &request, now).await,
            };
            outcome.map(|outcome| request.reply(outcome))
        })
    }

    /// See [`LeaseStore::renew`].
    #[must_use]
    pub fn renew(&self, request: &Renew, now: i64) -> Call<Reply<Renewed>> {
        let (this, request) = (self.clone(), request.clone());
        Call::new(async move |line| {
            let outcome = match this.engine {
                Engine::Etcd => etcd::renew(&this, &line, &request, now).await,
                _ => rows::renew(&this, &line, &request, now).await,
            };
            outcome.map(|outcome| request.reply(outcome))
        })
    }

    /// See [`LeaseStore::release`].
    #[must_use]
    pub fn release(&self, request: &Release, now: i64) -> Call<Reply<Released>> {
        let (this, request) = (self.clone(), request.clone());
        Call::new(async move |line| {
            let outcome = match this.engine {
                Engine::Etcd => etcd::release(&this, &line, &request, now).await,
                _ => rows::release(&this, &line, &request, now).await,
            };
            outcome.map(|outcome| request.reply(outcome))
        })
    }

    /// See [`LeaseStore::fence`].
    #[must_use]
    pub fn fence(&self, request: &Fence, now: i64) -> Call<Reply<Fenced>> {
        let (this, request) = (self.clone(), request.clone());
        Call::new(async move |line| {
            let outcome = match this.engine {
                Engine::Etcd => etcd::fence(&this, &line, now).await,
                _ => rows::fence(&this, &line, request.token, now).await,
            };
            outcome.map(|outcome| request.reply(outcome))
        })
    }

    /// See [`LeaseStore::list`].
    #[must_use]
    pub fn list(&self, request: &List, now: i64) -> Call<Reply<Listed>> {
        let (this, request) = (self.clone(), request.clone());
        Call::new(async move |line| {
            let outcome = match this.engine {
                Engine::Etcd => etcd::list(&this, &line, request.node_id, now).await,
                _ => rows::list(&this, &line, &request).await,
            };
            outcome.map(|outcome| request.reply(outcome))
        })
    }

    /// See [`LeaseStore::repair`].
    #[must_use]
    pub fn repair(&self, request: &Repair, now: i64) -> Call<Reply<Shortened>> {
        let (this, request) = (self.clone(), request.clone());
        Call::new(async move |line| {
            let of_node =
                |limits: Limits, now: i64, node: &Node| rules::repair(limits, now, &request, node);
            let of_floor = |limits: Limits, now: i64, quarantine: Quarantine| {
                let last_grant = if this.engine == Engine::Redis { rows::LAST_GRANT } else { 0 };
                rules::repair_floor(limits, now, last_grant, &request, quarantine)
            };
            let outcome = match (request.target, this.engine) {
                (Target::Node(node_id), Engine::Etcd) => {
                    etcd::cut(&this, &line, node_id, now, of_node).await
                }
                (Target::Node(node_id), _) => {
                    rows::cut(&this, &line, request.token, node_id, of_node).await
                }
                (Target::Floor, Engine::Etcd) => etcd::cut_floor(&this, &line, now, of_floor).await,
                (Target::Floor, _) => rows::cut_floor(&this, &line, request.token, of_floor).await,
            };
            outcome.map(|outcome| request.reply(outcome))
        })
    }

    /// See [`LeaseStore::release_dead`].
    #[must_use]
    pub fn release_dead(&self, request: &ReleaseDead, now: i64) -> Call<Reply<Shortened>> {
        let (this, request) = (self.clone(), request.clone());
        Call::new(async move |line| {
            let change = |limits: Limits, now: i64, node: &Node| {
                rules::release_dead(limits, now, &request, node)
            };
            let node_id = request.lease.node_id;
            let outcome = match this.engine {
                Engine::Etcd => etcd::cut(&this, &line, node_id, now, change).await,
                _ => rows::cut(&this, &line, request.token, node_id, change).await,
            };
            outcome.map(|outcome| request.reply(outcome))
        })
    }

    /// Forgets the namespace that is known; see [`LeaseStore::accept_another`].
    pub(crate) fn accept_another(&self) {
        let mut state = self.state();
        if let Some(Known { made, .. }) = state.known.take() {
            *state = State { followed: Some(made.limits), ..State::default() };
        }
    }

    /// Returns the namespace as it is made now.
    fn to_make(&self) -> NamespaceMetadata {
        let mut namespace = self.namespace.clone();
        if let Some(limits) = self.state().followed {
            namespace.succeed(limits);
        }
        NamespaceMetadata::new(&namespace)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> Option<Known> {
        self.state().known.clone()
    }

    /// Remembers the namespace if it is ours, and the one that is known.
    fn learn(&self, known: &Known) -> Result<()> {
        self.namespace.check(&known.made)?;
        let mut state = self.state();
        if state.known.as_ref().is_some_and(|before| before.made.salt != known.made.salt) {
            drop(state);
            return Err(self.replaced());
        }
        state.known = Some(known.clone());
        Ok(())
    }

    /// Returns how to make the namespace, which is not there, if it may be made.
    fn missing(&self, init: Option<InitMode>) -> Result<InitMode> {
        if self.known().is_some() {
            return Err(self.replaced());
        }
        // Others may hold leases of the namespace that was here before.
        let follows = self.state().followed.is_some();
        let mode = if follows { InitMode::Quarantine } else { InitMode::New };
        let asked = init.or(self.create.then_some(mode));
        asked.filter(|_| !self.namespace.is_for_operator()).ok_or_else(|| self.not_initialized())
    }

    fn not_initialized(&self) -> Error {
        self.namespace.not_initialized(self.engine.name())
    }

    fn replaced(&self) -> Error {
        Error::new(
            ErrorKind::StoreReplaced,
            format!(
                "namespace {:?} of {} is no longer the one that leases were granted from: it was \
                 removed or made anew while in use; once those leases are over, what is there is \
                 leased from",
                self.namespace.name(),
                self.engine.name()
            ),
        )
    }

    fn unavailable(&self, why: &str) -> Error {
        let name = self.engine.name();
        Error::new(ErrorKind::StoreUnavailable, format!("cannot use {name}: {why}"))
    }

    fn malformed(&self, what: &str) -> Error {
        self.unavailable(&format!("it answered what no such server answers ({what})"))
    }

    fn foreign(&self) -> Error {
        self.unavailable(
            "it answered another request; the connection is shared with somebody and must be \
             discarded",
        )
    }
}

impl Engine {
    const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Redis => "Redis",
            Self::Etcd => "etcd",
        }
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protocol")
            .field("engine", &self.engine)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Client for Box<dyn Client> {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        (**self).run(statement)
    }

    fn discard(&mut self) {
        (**self).discard();
    }

    fn rest(&mut self) {
        (**self).rest();
    }
}

/// A store with a server, over a blocking [`Client`].
///
/// ```no_run
/// use randflake::{Clock, Secret, SystemClock};
/// use randflake_leases::{Acquire, Acquired, InitMode, LeaseStore, Namespace, Note, Operation, Token};
/// use randflake_leases::remote::RemoteStore;
///
/// let namespace = Namespace::new("orders", &Secret::random())?;
/// let mut store = RemoteStore::open("postgresql://app:password@localhost/app", namespace)?;
/// store.init(InitMode::New)?; // once, before the first lease
/// let token = Token::random();
/// let client_now = SystemClock.now()? / 1_000_000_000;
/// let reply = store.acquire(&Acquire { token, want: 1, ttl: 300, client_now, note: Note::of_process() })?;
/// if let Acquired::Granted { leases, .. } = reply.answer_to(token, Operation::Acquire)? {
///     println!("node id {}", leases[0].node_id);
/// }
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub struct RemoteStore<C: Client> {
    /// There until it is dropped.
    client: Option<C>,
    protocol: Protocol,
    clock: Box<dyn Clock + Send>,
    life: Life,
}

impl RemoteStore<Box<dyn Client>> {
    /// Makes a store of a URL: `postgresql://`, `redis://` or `rediss://`, `etcd://` or
    /// `etcds://`, with the client of the cargo feature of that name. Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// [`DriverMissing`](ErrorKind::DriverMissing): the feature is off. `INVALID_ARGUMENT`: no
    /// such URL. The message does not repeat it.
    pub fn open(url: &str, namespace: Namespace) -> Result<Self> {
        let (client, protocol): (Result<Box<dyn Client>>, _) = match url.split_once("://") {
            Some(("postgresql" | "postgres", _)) => {
                #[cfg(feature = "postgres")]
                let client = PostgresClient::new(url).map(|client| Box::new(client) as _);
                #[cfg(not(feature = "postgres"))]
                let client = Err(driver_missing("postgres"));
                (client, Protocol::postgres(namespace))
            }
            Some(("redis" | "rediss", _)) => {
                #[cfg(feature = "redis")]
                let client = RedisClient::new(url).map(|client| Box::new(client) as _);
                #[cfg(not(feature = "redis"))]
                let client = Err(driver_missing("redis"));
                (client, Protocol::redis(namespace))
            }
            Some(("etcd" | "etcds", _)) => {
                #[cfg(feature = "etcd")]
                let client = EtcdClient::new(url).map(|client| Box::new(client) as _);
                #[cfg(not(feature = "etcd"))]
                let client = Err(driver_missing("etcd"));
                (client, Protocol::etcd(namespace))
            }
            _ => {
                return Err(Error::invalid_argument(
                    "the URL of a store begins with postgresql://, redis://, rediss://, etcd:// \
                     or etcds://",
                ));
            }
        };
        Ok(Self::new(client?, protocol))
    }
}

#[allow(dead_code, reason = "one for each feature that is off")]
fn driver_missing(feature: &str) -> Error {
    Error::new(
        ErrorKind::DriverMissing,
        format!(
            "this program has no client for that server; cargo add randflake-leases --features \
             {feature}"
        ),
    )
}

impl<C: Client> RemoteStore<C> {
    /// Makes a store of what runs statements and what says them. Connects to nothing yet.
    #[must_use]
    pub fn new(client: C, protocol: Protocol) -> Self {
        let clock = Box::new(SystemClock);
        Self { client: Some(client), protocol, clock, life: Life::current() }
    }

    /// Injects the machine's clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + Send + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Makes the namespace with the first lease, as [`Protocol::create`] says.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn create(mut self, create: bool) -> Result<Self> {
        self.protocol = self.protocol.clone().create(create)?;
        Ok(self)
    }

    /// Allows a server that may lose what it has acknowledged, as [`Protocol::allow_weak_store`]
    /// says.
    #[must_use]
    pub fn allow_weak_store(mut self, allow: bool) -> Self {
        self.protocol = self.protocol.clone().allow_weak_store(allow);
        self
    }

    /// Makes the namespace, as [`Protocol::init`] says.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`].
    pub fn init(&mut self, mode: InitMode) -> Result<()> {
        self.drive(|protocol, now| protocol.init(mode, now))
    }

    fn drive<T>(&mut self, begin: impl FnOnce(&Protocol, i64) -> Call<T>) -> Result<T> {
        self.life.check()?;
        let mut call = begin(&self.protocol, self.clock.unix_seconds()?);
        let client = self.client.as_mut().expect("until it is dropped");
        let outcome = converse(client, &mut call);
        if outcome.is_err() {
            client.discard();
        }
        outcome
    }
}

fn converse<T>(client: &mut impl Client, call: &mut Call<T>) -> Result<T> {
    let mut progress = call.start()?;
    loop {
        match progress {
            Progress::Run(statement) => progress = call.resume(client.run(&statement)?)?,
            Progress::Done(outcome) => return Ok(outcome),
        }
    }
}

impl<C: Client> LeaseStore for RemoteStore<C> {
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
        self.drive(|protocol, now| protocol.acquire(request, now))
    }

    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
        self.drive(|protocol, now| protocol.renew(request, now))
    }

    fn release(&mut self, request: &Release) -> Result<Reply<Released>> {
        self.drive(|protocol, now| protocol.release(request, now))
    }

    fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>> {
        self.drive(|protocol, now| protocol.fence(request, now))
    }

    fn list(&mut self, request: &List) -> Result<Reply<Listed>> {
        self.drive(|protocol, now| protocol.list(request, now))
    }

    fn repair(&mut self, request: &Repair) -> Result<Reply<Shortened>> {
        self.drive(|protocol, now| protocol.repair(request, now))
    }

    fn release_dead(&mut self, request: &ReleaseDead) -> Result<Reply<Shortened>> {
        self.drive(|protocol, now| protocol.release_dead(request, now))
    }

    fn rest(&mut self) {
        // In a child the connection is the parent's.
        if let Some(client) = self.client.as_mut().filter(|_| self.life.check().is_ok()) {
            client.rest();
        }
    }

    fn accept_another(&mut self) {
        self.protocol.accept_another();
    }
}

impl<C: Client> Drop for RemoteStore<C> {
    fn drop(&mut self) {
        // In a child the connection is the parent's: not even to be closed.
        if self.life.check().is_err() {
            mem::forget(self.client.take());
        }
    }
}

impl<C: Client> fmt::Debug for RemoteStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteStore").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

/// Returns the node ids to ask for first, each once, and whether these are all.
fn candidates(token: Token, limits: Limits, count: usize) -> (Vec<u32>, bool) {
    let max = limits.max_node_id;
    let first = first_candidate(token, max);
    if (max as usize) < count {
        return ((first..=max).chain(0..first).collect(), true);
    }
    let mut candidates = Vec::new();
    let mut seen = std::collections::HashSet::new();
    candidates.extend(token.candidates(max).take(count).filter(|node_id| seen.insert(*node_id)));
    (candidates, false)
}

/// Returns all node ids in blocks, beginning somewhere in the middle: first requests should not
/// meet.
fn blocks(token: Token, limits: Limits, size: u32) -> impl Iterator<Item = (u32, u32)> {
    let max = limits.max_node_id;
    let first = first_candidate(token, max) / size;
    let count = max / size + 1;
    (0..count).map(move |number| {
        let start = (first + number) % count * size;
        (start, (start + size - 1).min(max))
    })
}

fn first_candidate(token: Token, max_node_id: u32) -> u32 {
    token.candidates(max_node_id).next().unwrap_or(0)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().as_chunks::<2>().0) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
