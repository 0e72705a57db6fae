use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use randflake::{Clock, SystemClock};

use crate::{
    Error, Namespace, NamespaceMetadata, Result, Token,
    fork::Process,
    local::LocalStore,
    rules::{Quarantine, Row, Transaction},
};

/// A store in memory, for tests, and for the generators of one process that need leases without a
/// file. They all must lease from clones of one store, or from its other
/// [namespaces](MemoryStore::namespace).
///
/// ```
/// use randflake::{Clock, Secret, SystemClock};
/// use randflake_leases::{
///     Acquire, Acquired, LeaseStore, MemoryStore, Namespace, Note, Operation, Token,
/// };
///
/// let mut store = MemoryStore::new(Namespace::new("orders", &Secret::random())?);
/// let token = Token::random();
/// let client_now = SystemClock.now()? / 1_000_000_000;
/// let reply = store.acquire(&Acquire { token, want: 2, ttl: 60, client_now, note: Note::of_process() })?;
/// let Acquired::Granted { leases, .. } = reply.answer_to(token, Operation::Acquire)? else {
///     panic!("everything is free");
/// };
/// assert_eq!(leases.len(), 2);
/// # Ok::<(), randflake_leases::Error>(())
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    spaces: Arc<Mutex<HashMap<String, Space>>>,
    namespace: Namespace,
    clock: Arc<dyn Clock + Send + Sync>,
    opened_in: Process,
}

#[derive(Clone)]
struct Space {
    metadata: NamespaceMetadata,
    quarantine: Quarantine,
    rows: BTreeMap<u32, Row>,
}

impl MemoryStore {
    /// Makes an empty store on the machine's clock.
    #[must_use]
    pub fn new(namespace: Namespace) -> Self {
        Self::with_clock(namespace, SystemClock)
    }

    /// Makes an empty store on another clock, for tests.
    #[must_use]
    pub fn with_clock(namespace: Namespace, clock: impl Clock + Send + Sync + 'static) -> Self {
        Self {
            spaces: Arc::default(),
            namespace,
            clock: Arc::new(clock),
            opened_in: Process::current(),
        }
    }

    /// Returns the same store, for another namespace or with another secret.
    #[must_use]
    pub fn namespace(&self, namespace: Namespace) -> Self {
        Self { namespace, ..self.clone() }
    }

    fn spaces(&self) -> MutexGuard<'_, HashMap<String, Space>> {
        // A clock that panics does so before anything is written.
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Faults of the simulation.
#[cfg(test)]
impl MemoryStore {
    /// Returns another store that has what this one has now: a backup, or a replica.
    pub(crate) fn copy(&self, clock: impl Clock + Send + Sync + 'static) -> Self {
        let spaces = Arc::new(Mutex::new(self.spaces().clone()));
        Self { spaces, clock: Arc::new(clock), ..self.clone() }
    }

    /// Returns who holds a node id.
    pub(crate) fn holder(&self, node_id: u32) -> Option<Token> {
        self.spaces().get(self.namespace.name())?.rows.get(&node_id)?.token
    }

    /// Raises both bounds of a quarantine, for a store whose old master goes on for so long.
    pub(crate) fn fence_further(&self, seconds: i64) {
        for space in self.spaces().values_mut() {
            space.quarantine.floor += seconds;
            space.quarantine.renew_above += seconds;
        }
    }
}

impl LocalStore for MemoryStore {
    type Failure = Error;

    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn transact<T>(
        &mut self,
        operation: impl Fn(&mut dyn Transaction<Error = Error>) -> Result<T>,
    ) -> Result<T> {
        // First: in a child the lock may be held by a thread that does not exist there.
        self.opened_in.check()?;
        let mut spaces = self.spaces();
        let now = self.clock.unix_seconds()?;
        if let Some(space) = spaces.get_mut(self.namespace.name()) {
            self.namespace.check(&space.metadata)?;
            return operation(&mut Access { space, now });
        }
        self.namespace.may_create()?;
        let mut space = Space {
            metadata: NamespaceMetadata::new(&self.namespace),
            quarantine: Quarantine::default(),
            rows: BTreeMap::new(),
        };
        let outcome = operation(&mut Access { space: &mut space, now })?;
        spaces.insert(self.namespace.name().into(), space);
        Ok(outcome)
    }
}

/// Access to a namespace while the store is locked.
struct Access<'a> {
    space: &'a mut Space,
    now: i64,
}

impl Transaction for Access<'_> {
    type Error = Error;

    fn now(&self) -> i64 {
        self.now
    }

    fn waited(&self) -> i64 {
        0
    }

    fn metadata(&self) -> &NamespaceMetadata {
        &self.space.metadata
    }

    fn quarantine(&self) -> Quarantine {
        self.space.quarantine
    }

    fn put_quarantine(&mut self, quarantine: Quarantine) -> Result<()> {
        self.space.quarantine = quarantine;
        Ok(())
    }

    fn row(&mut self, node_id: u32) -> Result<Option<Row>> {
        Ok(self.space.rows.get(&node_id).copied())
    }

    fn rows(&mut self) -> Result<Vec<(u32, Row)>> {
        Ok(self.space.rows.iter().map(|(node_id, row)| (*node_id, *row)).collect())
    }

    fn put(&mut self, node_id: u32, row: Row) -> Result<()> {
        self.space.rows.insert(node_id, row);
        Ok(())
    }

    fn held_by(&mut self, token: Token) -> Result<Vec<(u32, Row)>> {
        let mut rows = self.rows()?;
        rows.retain(|(_, row)| row.token == Some(token));
        Ok(rows)
    }

    fn taken(&mut self, now: i64) -> Result<Vec<(u32, i64)>> {
        let ends = self.space.rows.iter().map(|(node_id, row)| (*node_id, row.end_exclusive));
        Ok(ends.filter(|(_, end)| *end > now).collect())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
