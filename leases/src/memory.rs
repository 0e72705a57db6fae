use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use randflake::{Clock, SystemClock};

use crate::{
    Acquire, Acquired, Error, Fence, Fenced, LeaseStore, Namespace, NamespaceMetadata, Release,
    Released, Renew, Renewed, Reply, Result, Token,
    fork::Life,
    operator::{List, Listed, ReleaseDead, Repair, Shortened, Target},
    rules::{self, Quarantine, Row, Rows},
};

/// A store in memory: what a store is, with nothing else in the way. For tests, and for the
/// generators of one process that want leases without a file; they all must lease from clones or
/// [others](MemoryStore::namespace) of one store.
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
    life: Life,
}

#[derive(Clone)]
struct Space {
    made: NamespaceMetadata,
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
        Self { spaces: Arc::default(), namespace, clock: Arc::new(clock), life: Life::current() }
    }

    /// Returns the same store, for another namespace or with another secret.
    #[must_use]
    pub fn namespace(&self, namespace: Namespace) -> Self {
        Self { namespace, ..self.clone() }
    }

    /// Does one operation on the namespace, made if need be. Nothing is written if it fails.
    fn atomically<T>(&self, operation: impl FnOnce(&mut Space, i64) -> Result<T>) -> Result<T> {
        // First: in a child the lock may be held by a thread that is not there.
        self.life.check()?;
        let mut spaces = self.spaces();
        let now = self.clock.unix_seconds()?;
        if let Some(space) = spaces.get_mut(self.namespace.name()) {
            self.namespace.check(&space.made)?;
            return operation(space, now);
        }
        self.namespace.may_make()?;
        let mut space = Space {
            made: NamespaceMetadata::new(&self.namespace),
            quarantine: Quarantine::default(),
            rows: BTreeMap::new(),
        };
        let outcome = operation(&mut space, now)?;
        spaces.insert(self.namespace.name().into(), space);
        Ok(outcome)
    }

    fn spaces(&self) -> MutexGuard<'_, HashMap<String, Space>> {
        // A clock that panicked did so before anything was written.
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the simulation does to a store.
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

impl LeaseStore for MemoryStore {
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
        self.namespace.may_lease()?;
        self.atomically(|space, now| {
            let (limits, quarantine) = (space.made.limits, space.quarantine);
            rules::acquire(&mut space.rows, limits, quarantine, now, request)
        })
        .map(|outcome| request.reply(outcome))
    }

    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
        self.atomically(|space, now| {
            let (limits, quarantine) = (space.made.limits, space.quarantine);
            rules::renew(&mut space.rows, limits, quarantine, now, request)
        })
        .map(|outcome| request.reply(outcome))
    }

    fn release(&mut self, request: &Release) -> Result<Reply<Released>> {
        self.atomically(|space, _| rules::release(&mut space.rows, request))
            .map(|outcome| request.reply(outcome))
    }

    fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>> {
        self.atomically(|space, now| {
            let (quarantine, fenced) = rules::fence(space.made.limits, space.quarantine, now)?;
            space.quarantine = quarantine;
            Ok(fenced)
        })
        .map(|outcome| request.reply(outcome))
    }

    fn list(&mut self, request: &List) -> Result<Reply<Listed>> {
        self.atomically(|space, now| {
            let rows = space.rows.iter().map(|(node_id, row)| row.node(*node_id));
            let asked =
                rows.filter(|node| request.node_id.is_none_or(|it| it == node.lease.node_id));
            Ok(rules::listed(&space.made, space.quarantine, now, asked.collect()))
        })
        .map(|outcome| request.reply(outcome))
    }

    fn repair(&mut self, request: &Repair) -> Result<Reply<Shortened>> {
        self.atomically(|space, now| {
            let limits = space.made.limits;
            match request.target {
                Target::Node(node_id) => rules::cut(&mut space.rows, now, node_id, |node| {
                    rules::repair(limits, now, request, node)
                }),
                Target::Floor => {
                    let (quarantine, cut) =
                        rules::repair_floor(limits, now, 0, request, space.quarantine)?;
                    space.quarantine = quarantine;
                    Ok(cut)
                }
            }
        })
        .map(|outcome| request.reply(outcome))
    }

    fn release_dead(&mut self, request: &ReleaseDead) -> Result<Reply<Shortened>> {
        self.atomically(|space, now| {
            let limits = space.made.limits;
            rules::cut(&mut space.rows, now, request.lease.node_id, |node| {
                rules::release_dead(limits, now, request, node)
            })
        })
        .map(|outcome| request.reply(outcome))
    }
}

impl Rows for BTreeMap<u32, Row> {
    type Error = Error;

    fn row(&mut self, node_id: u32) -> Result<Option<Row>> {
        Ok(self.get(&node_id).copied())
    }

    fn put(&mut self, node_id: u32, row: Row) -> Result<()> {
        self.insert(node_id, row);
        Ok(())
    }

    fn held_by(&mut self, token: Token) -> Result<Vec<(u32, Row)>> {
        let rows = self.iter().map(|(node_id, row)| (*node_id, *row));
        Ok(rows.filter(|(_, row)| row.token == Some(token)).collect())
    }

    fn taken(&mut self, now: i64) -> Result<Vec<(u32, i64)>> {
        let ends = self.iter().map(|(node_id, row)| (*node_id, row.end_exclusive));
        Ok(ends.filter(|(_, end)| *end > now).collect())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
