//! What every operation on a server works with.

use std::{
    sync::{Arc, MutexGuard, OnceLock},
    time::Duration,
};

use super::{
    engine::Engine,
    exchange::{Channel, Response, Statement},
    protocol::{Known, Protocol, ProtocolState},
};
use crate::{
    clocks::boot,
    findings::{Finding, Verdict},
    namespace::{InitMode, Namespace, NamespaceMetadata},
};
use randflake::{Error, ErrorKind, Result};

/// One operation's view of the server.
#[derive(Clone, Debug)]
pub struct Context {
    protocol: Protocol,
    channel: Channel,
    /// The unix second on the machine's clock.
    pub(crate) now: i64,
    /// When `now` was read, on the clock that never steps.
    since: Duration,
    /// What the server's clock showed in the first answer.
    begun: Arc<OnceLock<i64>>,
}

/// The other way to deal with a weak store.
pub(crate) const ALLOW: &str = "allow a weak store: allow_weak_store in Python and Rust, \
                                allowWeakStore in Node.js, --allow-weak-store on the command line";

impl Context {
    pub(crate) fn new(protocol: Protocol, channel: Channel, now: i64) -> Self {
        Self { protocol, channel, now, since: boot(), begun: Arc::default() }
    }

    pub(crate) async fn run(&self, statement: Statement) -> Response {
        self.channel.run(statement).await
    }

    /// Returns how many whole seconds this operation has taken so far.
    fn passed(&self) -> i64 {
        i64::try_from(boot().saturating_sub(self.since).as_secs()).unwrap_or(0)
    }

    /// Returns roughly what the machine's clock shows by now.
    pub(crate) fn later(&self) -> i64 {
        self.now.saturating_add(self.passed())
    }

    /// Takes the server's clock in an answer, and returns how many seconds it has gone on since this
    /// operation's first answer. No more than have passed: it may have been set, or be the clock of
    /// another server.
    pub(crate) fn waited(&self, clock: Option<i64>) -> i64 {
        let Some(clock) = clock else { return 0 };
        let gone_on = clock.saturating_sub(*self.begun.get_or_init(|| clock));
        gone_on.clamp(0, self.passed().saturating_add(1))
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.protocol.namespace
    }

    pub(crate) fn engine(&self) -> Engine {
        self.protocol.engine
    }

    pub(crate) fn allows_weak_store(&self) -> bool {
        self.protocol.allow_weak
    }

    /// Returns the metadata of the namespace, to create it now.
    pub(crate) fn new_metadata(&self) -> NamespaceMetadata {
        let mut namespace = self.namespace().clone();
        if let Some(limits) = self.state().replaced {
            namespace.replace(limits);
        }
        NamespaceMetadata::new(&namespace)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ProtocolState> {
        self.protocol.state()
    }

    pub(crate) fn known(&self) -> Option<Known> {
        self.state().known.clone()
    }

    /// Returns what is known of the namespace, after a first check.
    pub(crate) async fn known_or(
        &self,
        check: impl Future<Output = Result<Known>>,
    ) -> Result<Known> {
        match self.known() {
            Some(known) => Ok(known),
            None => check.await,
        }
    }

    /// Changes what is remembered of the namespace, if anything is.
    pub(crate) fn update_known(&self, change: impl FnOnce(&mut Known)) {
        if let Some(known) = &mut self.state().known {
            change(known);
        }
    }

    /// Remembers the namespace if it is ours and still the one that was remembered.
    pub(crate) fn remember(&self, known: &Known) -> Result<()> {
        self.namespace().check(&known.meta.metadata)?;
        let mut state = self.state();
        let before = state.known.as_ref();
        if before.is_some_and(|before| before.meta.metadata.salt != known.meta.metadata.salt) {
            drop(state);
            return Err(self.replaced());
        }
        let revision = before.filter(|before| before.server == known.server).map(|it| it.revision);
        let revision = known.revision.max(revision.unwrap_or(0));
        state.known = Some(Known { revision, ..known.clone() });
        Ok(())
    }

    /// Returns how to create the missing namespace, if that is allowed.
    pub(crate) fn may_create(&self, init: Option<InitMode>) -> Result<InitMode> {
        let state = self.state();
        if state.known.is_some() {
            drop(state);
            return Err(self.replaced());
        }
        // Others may hold leases from the namespace that it replaces.
        let mode = if state.replaced.is_some() { InitMode::Quarantine } else { InitMode::New };
        let requested = init.or(self.protocol.create.then_some(mode));
        requested
            .filter(|_| !self.namespace().is_for_operator())
            .ok_or_else(|| self.not_initialized())
    }

    pub(crate) fn not_initialized(&self) -> Error {
        self.namespace().not_initialized(self.engine().name())
    }

    fn replaced(&self) -> Error {
        let (name, engine) = (self.namespace().name(), self.engine().name());
        self.namespace().replaced(format_args!("namespace {name:?} of {engine}"), "namespace")
    }

    pub(crate) fn unavailable(&self, why: &str) -> Error {
        let name = self.engine().name();
        Error::new(ErrorKind::StoreUnavailable, format!("cannot use {name}: {why}"))
    }

    /// Makes the error for a server that may lose what it has acknowledged.
    pub(crate) fn weak(&self, why: &str) -> Error {
        Error::new(
            ErrorKind::WeakStore,
            format!(
                "this {} may lose leases that it has acknowledged; it {why}. Change its settings, or \
                 {ALLOW}",
                self.engine().name()
            ),
        )
    }

    /// Tells an operator that it may: that is fine if it is allowed.
    pub(crate) fn weakness(&self, why: &str) -> Finding {
        let is_allowed = self.allows_weak_store();
        let verdict = if is_allowed { Verdict::Note } else { Verdict::Wrong };
        let advice = if is_allowed {
            "leases may be lost, which was allowed".to_owned()
        } else {
            format!("change that setting, or {ALLOW}")
        };
        let text = format!("this {} {why}; {advice}", self.engine().name());
        Finding { subject: "persistence", verdict, text }
    }

    /// Makes the error for an answer that no working server gives.
    pub(crate) fn malformed(&self, what: &str) -> Error {
        self.unavailable(&format!("its answer is malformed ({what})"))
    }

    /// Makes the error for an answer to another request.
    pub(crate) fn foreign(&self) -> Error {
        self.unavailable(
            "it answered another request; the connection is shared and must be discarded",
        )
    }

    /// Makes the error for an operation that concurrent changes prevented every time.
    pub(crate) fn contended(&self) -> Error {
        self.unavailable("it changed during each attempt; try again")
    }
}
