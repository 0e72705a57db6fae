//! A store with a server, over a blocking client.

use std::mem;

use randflake::{Clock, Result, SystemClock, bindings::ForkId};

use super::{Client, Exchange, Progress, Protocol, RemoteRequest};
use crate::{
    findings::Finding,
    fork::check_opened_in,
    namespace::InitMode,
    protocol::{
        Acquire, Acquired, Fence, Fenced, LeaseStore, List, ListCounters, Listed, ListedCounters,
        NodeIdsSet, Release, ReleaseDead, Released, Renew, Renewed, Repair, Reply, SetNodeIds,
        Shortened, Swap, Swapped,
    },
    token::Token,
};

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
    /// `None` only while it is dropped.
    client: Option<C>,
    protocol: Protocol,
    clock: Box<dyn Clock + Send>,
    /// Where the server is, if known.
    place: Option<String>,
    opened_in: ForkId,
}

impl<C: Client> RemoteStore<C> {
    /// Makes a store from a client and a protocol. Does not connect yet.
    #[must_use]
    pub fn new(client: C, protocol: Protocol) -> Self {
        let clock = Box::new(SystemClock);
        Self { client: Some(client), protocol, clock, place: None, opened_in: ForkId::current() }
    }

    /// Sets where the server is, for people to read, without a password. Unless this is set,
    /// [`LeaseStore::name`] is the kind of server.
    #[must_use]
    pub fn place(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Injects the machine's clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + Send + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Sets whether the first lease creates the namespace; see [`Protocol::create`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn create(mut self, create: bool) -> Result<Self> {
        self.protocol = self.protocol.clone().create(create)?;
        Ok(self)
    }

    /// Allows a server that may lose acknowledged writes; see [`Protocol::allow_weak_store`].
    #[must_use]
    pub fn allow_weak_store(mut self, allow: bool) -> Self {
        self.protocol = self.protocol.clone().allow_weak_store(allow);
        self
    }

    /// Creates the namespace if it is missing; see [`Protocol::init`].
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`].
    pub fn init(&mut self, mode: InitMode) -> Result<()> {
        self.drive(|protocol, now| protocol.init(mode, now))
    }

    /// Returns the client. In a child it belongs to the parent.
    fn client(&mut self) -> Option<&mut C> {
        self.client.as_mut().filter(|_| check_opened_in(self.opened_in).is_ok())
    }

    fn run<R: RemoteRequest>(&mut self, request: &R) -> Result<Reply<R::Outcome>> {
        self.drive(|protocol, now| protocol.begin(request, now))
    }

    fn drive<T>(&mut self, begin: impl FnOnce(&Protocol, i64) -> Exchange<T>) -> Result<T> {
        check_opened_in(self.opened_in)?;
        let mut exchange = begin(&self.protocol, self.clock.unix_seconds()?);
        let client = self.client.as_mut().expect("until it is dropped");
        let outcome = finish(client, &mut exchange);
        if outcome.is_err() {
            client.discard();
        }
        outcome
    }
}

/// Runs an exchange to its end.
fn finish<T>(client: &mut impl Client, exchange: &mut Exchange<T>) -> Result<T> {
    let mut progress = exchange.start()?;
    loop {
        match progress {
            Progress::Run(statement) => progress = exchange.resume(client.run(&statement)?)?,
            Progress::Done(outcome) => return Ok(outcome),
        }
    }
}

impl<C: Client> LeaseStore for RemoteStore<C> {
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
        self.run(request)
    }

    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
        self.run(request)
    }

    fn release(&mut self, request: &Release) -> Result<Reply<Released>> {
        self.run(request)
    }

    fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>> {
        self.run(request)
    }

    fn list(&mut self, request: &List) -> Result<Reply<Listed>> {
        self.run(request)
    }

    fn examine(&mut self) -> Result<Vec<Finding>> {
        self.drive(Protocol::examine)
    }

    fn repair(&mut self, request: &Repair) -> Result<Reply<Shortened>> {
        self.run(request)
    }

    fn release_dead(&mut self, request: &ReleaseDead) -> Result<Reply<Shortened>> {
        self.run(request)
    }

    fn set_node_ids(&mut self, request: &SetNodeIds) -> Result<Reply<NodeIdsSet>> {
        self.run(request)
    }

    fn swap(&mut self, request: &Swap) -> Result<Reply<Swapped>> {
        self.run(request)
    }

    fn list_counters(&mut self, request: &ListCounters) -> Result<Reply<ListedCounters>> {
        self.run(request)
    }

    fn name(&self) -> String {
        self.place.clone().unwrap_or_else(|| self.protocol.engine.scheme().to_owned())
    }

    fn rest(&mut self) {
        self.client().map(Client::rest);
    }

    fn discard(&mut self) {
        self.client().map(Client::discard);
    }

    fn forget(&mut self, token: Token) {
        self.protocol.forget(token);
    }

    fn accept_another(&mut self) {
        self.protocol.accept_another();
    }
}

impl<C: Client> Drop for RemoteStore<C> {
    fn drop(&mut self) {
        // In a child the connection belongs to the parent: closing it would end the parent's session.
        if check_opened_in(self.opened_in).is_err() {
            mem::forget(self.client.take());
        }
    }
}

impl<C: Client> std::fmt::Debug for RemoteStore<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteStore").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}
