//! What the statements for one namespace on one server depend on, and what is remembered of it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    engine::Engine,
    text::{Key, Meta},
};
use crate::{
    namespace::{Limits, Namespace},
    token::Token,
    written_rows::WrittenRows,
};
use randflake::{Error, Result};

/// The statements for one namespace on one server, and the meaning of the responses. It remembers
/// which server it was; clones share what they remember.
///
/// `now` is always the unix second on the machine's clock. Operations that rely on the server's
/// clock compare the two. With etcd, leases use the machine's clock if an answer has no `Date`.
#[derive(Clone)]
pub struct Protocol {
    pub(super) namespace: Namespace,
    pub(super) engine: Engine,
    pub(super) create: bool,
    pub(super) allow_weak: bool,
    pub(super) state: Arc<Mutex<ProtocolState>>,
}

/// What the clones of a protocol remember of the server.
#[derive(Default)]
pub(crate) struct ProtocolState {
    pub(super) known: Option<Known>,
    /// The limits of a replaced namespace, whose leases may still be running.
    pub(super) replaced: Option<Limits>,
    pub(crate) own: WrittenRows,
    /// The texts of the namespace and of counters, as last seen.
    pub(crate) texts: BTreeMap<Key, String>,
}

/// The namespace, as of the last check.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) meta: Meta,
    /// Its text.
    pub(crate) text: String,
    /// Which server, as it says itself.
    pub(crate) server: String,
    /// Redis: how many replicas must confirm a grant.
    pub(crate) replicas: u32,
    /// etcd: the newest revision of any answer.
    pub(crate) revision: i64,
    /// The clocks of the server and of this machine at the last answer, if the server has one.
    pub(crate) clocks: Option<(i64, i64)>,
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

    /// See [`LeaseStore::forget`](crate::LeaseStore::forget).
    pub(super) fn forget(&self, token: Token) {
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

    /// Returns what is remembered of the server.
    pub(super) fn state(&self) -> MutexGuard<'_, ProtocolState> {
        lock(&self.state)
    }
}

impl ProtocolState {
    pub(crate) fn forget(state: &Mutex<Self>, token: Token) {
        let Self { own, texts, .. } = &mut *lock(state);
        for node_id in own.asked_for(token) {
            texts.remove(&Key::Node(node_id));
        }
        own.forget(token);
    }

    #[cfg(test)]
    pub(crate) fn copy(state: &Mutex<Self>) -> Self {
        let Self { known, replaced, own, texts } = &*lock(state);
        Self { known: known.clone(), replaced: *replaced, own: own.copy(), texts: texts.clone() }
    }

    /// Forgets the namespace; see [`LeaseStore::accept_another`](crate::LeaseStore::accept_another).
    pub(crate) fn accept_another(state: &Mutex<Self>) {
        let mut state = lock(state);
        if let Some(Known { meta, .. }) = state.known.take() {
            *state = Self { replaced: Some(meta.metadata.limits), ..Self::default() };
        }
    }
}

fn lock(state: &Mutex<ProtocolState>) -> MutexGuard<'_, ProtocolState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protocol")
            .field("engine", &self.engine)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
