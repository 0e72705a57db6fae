//! What every operation on a server works with.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{Engine, Protocol, Response, Statement, etcd::row::EtcdRow, exchange::Channel};
use crate::{
    Error, ErrorKind, InitMode, Limits, Namespace, NamespaceMetadata, Result, rules::Quarantine,
};

/// One operation's view of the server.
#[derive(Clone, Debug)]
pub struct Context {
    protocol: Protocol,
    channel: Channel,
    /// The unix second on the machine's clock.
    pub(super) now: i64,
}

/// What the clones of a protocol remember of the server.
#[derive(Default)]
pub(super) struct ProtocolState {
    known: Option<KnownNamespace>,
    /// The limits of a replaced namespace, whose leases may still run.
    replaced: Option<Limits>,
    /// etcd: the rows that this client has written.
    pub(super) etcd_rows: BTreeMap<u32, EtcdRow>,
}

/// The namespace, as of the last check.
#[derive(Clone, Debug)]
pub(super) struct KnownNamespace {
    pub(super) metadata: NamespaceMetadata,
    /// Which server, in which line of its history.
    pub(super) incarnation: String,
    /// Redis: how many replicas must confirm a grant.
    pub(super) replicas: u32,
    /// etcd: the revision of the namespace's key, and its quarantine.
    pub(super) meta_revision: i64,
    pub(super) quarantine: Quarantine,
    /// etcd: the newest revision of any answer.
    pub(super) revision: i64,
    /// etcd: by how many seconds its clock was ahead of this machine's in its last answer, if that
    /// had a date.
    pub(super) ahead: Option<i64>,
}

impl Context {
    pub(super) fn new(protocol: Protocol, channel: Channel, now: i64) -> Self {
        Self { protocol, channel, now }
    }

    /// Returns the same context, some seconds later.
    pub(super) fn later(&self, seconds: i64) -> Self {
        Self { now: self.now.saturating_add(seconds), ..self.clone() }
    }

    pub(super) async fn run(&self, statement: Statement) -> Response {
        self.channel.run(statement).await
    }

    pub(super) fn namespace(&self) -> &Namespace {
        &self.protocol.namespace
    }

    pub(super) fn engine(&self) -> Engine {
        self.protocol.engine
    }

    pub(super) fn allows_weak_store(&self) -> bool {
        self.protocol.allow_weak
    }

    /// Returns the metadata of the namespace, to create it now.
    pub(super) fn new_metadata(&self) -> NamespaceMetadata {
        let mut namespace = self.namespace().clone();
        if let Some(limits) = self.state().replaced {
            namespace.replace(limits);
        }
        NamespaceMetadata::new(&namespace)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ProtocolState> {
        lock(&self.protocol.state)
    }

    pub(super) fn known(&self) -> Option<KnownNamespace> {
        self.state().known.clone()
    }

    /// Returns what is known of the namespace, after a first check.
    pub(super) async fn known_or(
        &self,
        check: impl Future<Output = Result<KnownNamespace>>,
    ) -> Result<KnownNamespace> {
        match self.known() {
            Some(known) => Ok(known),
            None => check.await,
        }
    }

    /// Changes what is remembered of the namespace, if anything is.
    pub(super) fn update_known(&self, change: impl FnOnce(&mut KnownNamespace)) {
        if let Some(known) = &mut self.state().known {
            change(known);
        }
    }

    /// Remembers the namespace if it is ours, and still the one that was remembered.
    pub(super) fn remember(&self, known: &KnownNamespace) -> Result<()> {
        self.namespace().check(&known.metadata)?;
        let mut state = self.state();
        let before = state.known.as_ref();
        if before.is_some_and(|before| before.metadata.salt != known.metadata.salt) {
            drop(state);
            return Err(self.replaced());
        }
        state.known = Some(known.clone());
        Ok(())
    }

    /// Returns how to create the missing namespace, if that is allowed.
    pub(super) fn may_create(&self, init: Option<InitMode>) -> Result<InitMode> {
        let state = self.state();
        if state.known.is_some() {
            drop(state);
            return Err(self.replaced());
        }
        // Others may hold leases of the namespace that it replaces.
        let mode = if state.replaced.is_some() { InitMode::Quarantine } else { InitMode::New };
        let requested = init.or(self.protocol.create.then_some(mode));
        requested
            .filter(|_| !self.namespace().is_for_operator())
            .ok_or_else(|| self.not_initialized())
    }

    pub(super) fn not_initialized(&self) -> Error {
        self.namespace().not_initialized(self.engine().name())
    }

    fn replaced(&self) -> Error {
        let (name, engine) = (self.namespace().name(), self.engine().name());
        self.namespace().replaced(format_args!("namespace {name:?} of {engine}"), "namespace")
    }

    pub(super) fn unavailable(&self, why: &str) -> Error {
        let name = self.engine().name();
        Error::new(ErrorKind::StoreUnavailable, format!("cannot use {name}: {why}"))
    }

    /// Makes the error of an answer that no working server gives.
    pub(super) fn malformed(&self, what: &str) -> Error {
        self.unavailable(&format!("its answer is malformed ({what})"))
    }

    /// Makes the error of an answer to another request.
    pub(super) fn foreign(&self) -> Error {
        self.unavailable(
            "it answered another request; the connection is shared and must be discarded",
        )
    }

    /// Makes the error of an operation that concurrent changes prevented every time.
    pub(super) fn contended(&self) -> Error {
        self.unavailable("it changed during each attempt; try again")
    }
}

impl ProtocolState {
    /// Forgets the namespace; see [`LeaseStore::accept_another`](crate::LeaseStore::accept_another).
    pub(super) fn accept_another(state: &Mutex<Self>) {
        let mut state = lock(state);
        if let Some(KnownNamespace { metadata, .. }) = state.known.take() {
            *state = Self { replaced: Some(metadata.limits), ..Self::default() };
        }
    }
}

fn lock(state: &Mutex<ProtocolState>) -> MutexGuard<'_, ProtocolState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
