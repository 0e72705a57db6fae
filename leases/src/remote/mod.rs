//! Stores with a server: PostgreSQL, MySQL or MariaDB, Redis or Valkey, and etcd.
//!
//! A [`Protocol`] knows the statements for such a server and the meaning of its responses, and does
//! no I/O: each operation is an [`Exchange`] that hands out one [`Statement`] after another and
//! takes each [`Response`]. The caller has a connection and runs them. With a blocking connection,
//! implement [`Client`] and use [`RemoteStore`]; the features `postgres`, `mysql`, `redis` and
//! `etcd` provide one for each server.
//!
//! The servers save the leases and make them durable; nothing here replicates anything. Each
//! operation is one atomic statement, script or transaction, and usually one round trip.
#![allow(clippy::doc_markdown, reason = "PostgreSQL is a name")]

pub(crate) mod address;
mod candidates;
mod check;
pub(crate) mod context;
mod driver;
mod exchange;
mod hex;
mod requests;
mod shared;
pub(crate) mod step;
mod store;
#[cfg(test)]
pub(crate) mod table;
pub(crate) mod text;

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex},
};

use randflake::bindings::quoted;

#[doc(hidden)]
pub use self::address::Address;
use self::context::{Context, ProtocolState};
pub use self::{
    exchange::{Exchange, Progress, Response, Statement, Wait},
    requests::RemoteRequest,
    shared::SharedClient,
    store::RemoteStore,
};
#[cfg(doc)]
use crate::ErrorKind;
#[cfg(feature = "etcd")]
pub use crate::stores::etcd::EtcdClient;
#[cfg(feature = "mysql")]
pub use crate::stores::mysql::MysqlClient;
#[cfg(feature = "postgres")]
pub use crate::stores::postgres::PostgresClient;
#[cfg(feature = "redis")]
pub use crate::stores::redis::RedisClient;
use crate::{
    Error, Finding, InitMode, Namespace, Reply, Result, Token,
    stores::{etcd, mysql, postgres, redis},
};

/// How often a statement is tried if the server asks to repeat it.
pub(crate) const TRIES: usize = 10;

/// A blocking connection to a server, which it may open when needed.
///
/// ```
/// use randflake_leases::{Error, remote::{Client, Response, Statement}};
///
/// struct Mine { /* a connection */ }
///
/// impl Client for Mine {
///     fn run(&mut self, statement: &Statement) -> Result<Response, Error> {
///         let Statement { text, parameters, wait } = statement;
///         // Connect if necessary. Run text with parameters, each of type text, outside of any
///         // transaction. For Redis, see `Wait`.
///         # let _ = (text, parameters, wait);
///         Ok(Response::Rows(vec![vec![Some("cell".into())]]))
///     }
///     fn discard(&mut self) { /* close the connection; the next statement opens another */ }
/// }
/// ```
pub trait Client: Send {
    /// Runs a statement, which is committed when this returns, and returns the response. Waits a few
    /// seconds at most.
    ///
    /// # Errors
    ///
    /// [`StoreUnavailable`](ErrorKind::StoreUnavailable): the server cannot be reached, or
    /// did not answer. The message must not contain a password. An error that the server reports is
    /// [`Response::Refused`].
    fn run(&mut self, statement: &Statement) -> Result<Response>;

    /// Discards the connection, which may deliver the answer to another request.
    fn discard(&mut self);

    /// Says that no statement follows for a minute or longer. A client then closes its own
    /// connection, but not a borrowed one. The default does nothing.
    fn rest(&mut self) {}
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

/// The statements for one namespace on one server, and the meaning of the responses. It remembers
/// which server it was; clones share what they remember.
///
/// `now` is always the unix second on the machine's clock. Operations that rely on the server's
/// clock compare the two. With etcd, leases use the machine's clock if an answer has no `Date`.
#[derive(Clone)]
pub struct Protocol {
    namespace: Namespace,
    engine: Engine,
    create: bool,
    allow_weak: bool,
    state: Arc<Mutex<ProtocolState>>,
}

/// Which kind of server it is. Not public: for the bindings, whose clients give its name.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Engine {
    Postgres,
    Mysql,
    Redis,
    Etcd,
}

impl Protocol {
    /// For PostgreSQL 12 or newer.
    #[must_use]
    pub fn postgres(namespace: Namespace) -> Self {
        Self::new(namespace, Engine::Postgres)
    }

    /// For MySQL 8, MariaDB 10.6 or newer.
    #[must_use]
    pub fn mysql(namespace: Namespace) -> Self {
        Self::new(namespace, Engine::Mysql)
    }

    /// For Redis 6, Valkey 7 or newer.
    #[must_use]
    pub fn redis(namespace: Namespace) -> Self {
        Self::new(namespace, Engine::Redis)
    }

    /// For etcd 3.4 or newer, through its JSON gateway.
    #[must_use]
    pub fn etcd(namespace: Namespace) -> Self {
        Self::new(namespace, Engine::Etcd)
    }

    #[doc(hidden)]
    #[must_use]
    pub fn new(namespace: Namespace, engine: Engine) -> Self {
        Self { namespace, engine, create: false, allow_weak: false, state: Arc::default() }
    }

    /// Sets whether the first lease creates a missing namespace, and in PostgreSQL and MySQL its table. By
    /// default only [`Protocol::init`] does, because an empty store may be new or may have lost
    /// everything.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: for Redis, which may restart without its data.
    pub fn create(mut self, create: bool) -> Result<Self> {
        if create && self.engine == Engine::Redis {
            return Err(Error::invalid_argument(
                "only init creates a namespace in Redis: after a restart without its data, a first \
                 lease would create it again while other processes still hold leases",
            ));
        }
        self.create = create;
        Ok(self)
    }

    /// Allows a server that may lose acknowledged writes, and skips the checks for it: a Redis that
    /// evicts keys, does not persist to disk, or has replicas and waits for none, a PostgreSQL with
    /// `fsync` off, and a MySQL that does not wait for its disk.
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

    /// Creates the namespace if it is missing, as [`InitMode`] says, and checks it if it exists.
    /// Run it once, not at each start, because an empty store may be new or may have lost
    /// everything.
    ///
    /// The exchange ends with the errors of [`LeaseStore::acquire`](crate::LeaseStore::acquire).
    #[must_use]
    pub fn init(&self, mode: InitMode, now: i64) -> Exchange<()> {
        self.exchange(now, async move |context| {
            let known = check::check(&context, Some(mode)).await;
            known.map(drop)
        })
    }

    /// Begins an operation of [`LeaseStore`](crate::LeaseStore).
    #[must_use]
    pub fn begin<R: RemoteRequest>(&self, request: &R, now: i64) -> Exchange<Reply<R::Outcome>> {
        let request = request.clone();
        self.exchange(now, async move |context| {
            let outcome = request.run(&context).await;
            outcome.map(|outcome| Reply::new(request.token(), R::OPERATION, outcome))
        })
    }

    /// Begins to look at the server; see [`LeaseStore::examine`](crate::LeaseStore::examine).
    #[must_use]
    pub fn examine(&self, now: i64) -> Exchange<Vec<Finding>> {
        self.exchange(now, async move |context| match context.engine() {
            Engine::Postgres => postgres::examine(&context).await,
            Engine::Mysql => mysql::examine(&context).await,
            Engine::Redis => redis::examine(&context).await,
            Engine::Etcd => etcd::examine(&context).await,
        })
    }

    /// See [`LeaseStore::forget`](crate::LeaseStore::forget).
    fn forget(&self, token: Token) {
        ProtocolState::forget(&self.state, token);
    }

    #[cfg(test)]
    pub(crate) fn engine(&self) -> Engine {
        self.engine
    }

    /// Returns what a copy of this process has.
    #[cfg(test)]
    pub(crate) fn copied(&self) -> Self {
        let state = Arc::new(Mutex::new(ProtocolState::copy(&self.state)));
        Self { state, ..self.clone() }
    }

    /// Forgets the namespace; see [`LeaseStore::accept_another`](crate::LeaseStore::accept_another).
    pub(crate) fn accept_another(&self) {
        ProtocolState::accept_another(&self.state);
    }

    fn exchange<T, F>(&self, now: i64, operation: impl FnOnce(Context) -> F) -> Exchange<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let protocol = self.clone();
        Exchange::new(|channel| operation(Context::new(protocol, channel, now)))
    }
}

impl Engine {
    /// Takes the name of the server in the bindings.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: no such server.
    pub fn named(name: &str) -> Result<Self> {
        let mut all = [Self::Postgres, Self::Mysql, Self::Redis, Self::Etcd].into_iter();
        all.find(|engine| engine.scheme() == name).ok_or_else(|| {
            Error::invalid_argument(format!("there is no store for the server {}", quoted(name)))
        })
    }

    /// Returns the name that URLs and the bindings use.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Postgres => "postgresql",
            Self::Mysql => "mysql",
            Self::Redis => "redis",
            Self::Etcd => "etcd",
        }
    }

    /// Returns the name that messages use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
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

#[cfg(test)]
mod tests;
