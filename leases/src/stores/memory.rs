//! A store in the memory of one process, which also serves as the reference of the rules.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use randflake::{Clock, Error, Result, SystemClock, bindings::ForkId};

use crate::{
    fork::check_threads,
    local::LocalStore,
    namespace::{Namespace, NamespaceMetadata},
    node_ranges::NodeRanges,
    row::Row,
    rules::{Free, LocalTransaction, Quarantine, Transaction, free_beside},
    token::{Token, version},
    written_rows::WrittenRows,
};

/// A store in memory, for tests, and for the generators of one process that need leases without a
/// file. All of them must lease from clones of one store, or from its other
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
    namespaces: Arc<Mutex<HashMap<String, StoredNamespace>>>,
    namespace: Namespace,
    clock: Arc<dyn Clock + Send + Sync>,
    threads: ForkId,
    own: WrittenRows,
}

#[derive(Clone)]
struct StoredNamespace {
    metadata: NamespaceMetadata,
    quarantine: Quarantine,
    rows: BTreeMap<u32, Row>,
    counters: BTreeMap<String, String>,
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
            namespaces: Arc::default(),
            namespace,
            clock: Arc::new(clock),
            threads: ForkId::of_threads(),
            own: WrittenRows::default(),
        }
    }

    /// Returns the same store, for another namespace or with another secret.
    #[must_use]
    pub fn namespace(&self, namespace: Namespace) -> Self {
        Self { namespace, ..self.clone() }
    }

    fn namespaces(&self) -> MutexGuard<'_, HashMap<String, StoredNamespace>> {
        // A clock that panics does so before anything is written.
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a store has had.
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
#[allow(missing_debug_implementations, reason = "no part of the interface")]
pub struct Backup(HashMap<String, StoredNamespace>);

/// Faults of the simulation.
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
#[allow(missing_docs, reason = "no part of the interface")]
impl MemoryStore {
    /// Returns what it has now.
    #[must_use]
    pub fn backup(&self) -> Backup {
        Backup(self.namespaces().clone())
    }

    /// Replaces its contents with a backup.
    pub fn restore(&self, backup: Backup) {
        *self.namespaces() = backup.0;
    }

    /// Returns another store that has what this one has now: a backup, or a replica.
    #[must_use]
    pub fn copy(&self, clock: impl Clock + Send + Sync + 'static) -> Self {
        let namespaces = Arc::new(Mutex::new(self.namespaces().clone()));
        Self { namespaces, clock: Arc::new(clock), ..self.clone() }
    }

    /// Raises both bounds of a quarantine, for a store whose old master goes on for so long.
    pub fn fence_further(&self, seconds: i64) {
        for stored in self.namespaces().values_mut() {
            stored.quarantine.floor += seconds;
            stored.quarantine.renew_above += seconds;
        }
    }
}

#[cfg(test)]
impl MemoryStore {
    /// Returns a client that remembers these writes, like the client of a copy of its process.
    pub(crate) fn remembering(&self, own: WrittenRows) -> Self {
        Self { own, ..self.clone() }
    }

    /// Returns who holds a node id.
    pub(crate) fn holder(&self, node_id: u32) -> Option<Token> {
        self.namespaces().get(self.namespace.name())?.rows.get(&node_id)?.token
    }
}

impl LocalStore for MemoryStore {
    type Failure = Error;

    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn own(&self) -> &WrittenRows {
        &self.own
    }

    fn transact<T>(
        &mut self,
        operation: impl Fn(&mut dyn LocalTransaction<Error = Error>) -> Result<T>,
    ) -> Result<T> {
        check_threads(self.threads)?; // before touching the lock
        let mut namespaces = self.namespaces();
        let now = self.clock.unix_seconds()?;
        if let Some(stored) = namespaces.get_mut(self.namespace.name()) {
            self.namespace.check(&stored.metadata)?;
            return operation(&mut MemoryTransaction { stored, now, own: &self.own });
        }
        self.namespace.may_create()?;
        let mut stored = StoredNamespace {
            metadata: NamespaceMetadata::new(&self.namespace),
            quarantine: Quarantine::default(),
            rows: BTreeMap::new(),
            counters: BTreeMap::new(),
        };
        let outcome =
            operation(&mut MemoryTransaction { stored: &mut stored, now, own: &self.own })?;
        namespaces.insert(self.namespace.name().into(), stored);
        Ok(outcome)
    }
}

/// A namespace, with the store locked.
struct MemoryTransaction<'a> {
    stored: &'a mut StoredNamespace,
    now: i64,
    own: &'a WrittenRows,
}

impl Transaction for MemoryTransaction<'_> {
    type Error = Error;

    fn now(&self) -> i64 {
        self.now
    }

    fn waited(&self) -> i64 {
        0
    }

    fn metadata(&self) -> &NamespaceMetadata {
        &self.stored.metadata
    }

    fn quarantine(&self) -> Quarantine {
        self.stored.quarantine
    }

    fn put_quarantine(&mut self, quarantine: Quarantine) -> Result<()> {
        self.stored.quarantine = quarantine;
        Ok(())
    }

    fn put_node_ids(&mut self, node_ids: NodeRanges) -> Result<()> {
        self.stored.metadata.limits.node_ids = node_ids;
        Ok(())
    }

    fn row(&mut self, node_id: u32) -> Result<Option<Row>> {
        Ok(self.stored.rows.get(&node_id).copied())
    }

    fn put(&mut self, node_id: u32, row: Row) -> Result<()> {
        let version = version();
        self.own.attempt(node_id, &row, version);
        let row = Row { version, ..row };
        self.stored.rows.insert(node_id, row);
        self.own.written(node_id, &row);
        Ok(())
    }

    fn held_by(&mut self, token: Token) -> Result<Vec<(u32, Row)>> {
        let mut rows = self.rows()?;
        rows.retain(|(_, row)| row.token == Some(token));
        Ok(rows)
    }

    fn free(&mut self, first: u32, most: usize) -> Result<Free> {
        let ends = self.stored.rows.iter().map(|(node_id, row)| (*node_id, row.end_exclusive));
        let taken: Vec<(u32, i64)> = ends.filter(|(_, end)| *end > self.now).collect();
        Ok(free_beside(&taken, self.stored.metadata.limits.node_ids, first, most))
    }

    fn own(&self) -> &WrittenRows {
        self.own
    }

    fn counter(&mut self, name: &str) -> Result<Option<String>> {
        Ok(self.stored.counters.get(name).cloned())
    }

    fn put_counter(&mut self, name: &str, value: &str) -> Result<()> {
        self.stored.counters.insert(name.into(), value.into());
        Ok(())
    }
}

impl LocalTransaction for MemoryTransaction<'_> {
    fn rows(&mut self) -> Result<Vec<(u32, Row)>> {
        Ok(self.stored.rows.iter().map(|(node_id, row)| (*node_id, *row)).collect())
    }

    fn counters(&mut self) -> Result<Vec<(String, String)>> {
        Ok(self.stored.counters.clone().into_iter().collect())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
