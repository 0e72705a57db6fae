//! The register of node ids that this process, and the ones it was forked from, have used: manually
//! assigned ones and ones granted by a store.
//!
//! It is a list that only grows, without a lock: entries are set once, never dropped, and only the
//! atomics of a record change. So a forked child can read it no matter what its parent's threads
//! were doing. The first entry with a node id owns it. An index finds an entry by a node id; it
//! grows in the same way, after the list. A thread brings the index up to date before it adds to
//! the list.
//!
//! An entry of another fork id, with the same scope and one of the node ids, means `FORKED`. A
//! generator carries the fork id that was read before the register was asked: a fork in between
//! makes it the parent's. Layouts that pack alike are one scope, whatever their names: Twitter's
//! and Leaf's. Generators that begin their ticks differently do not share a state, but are
//! `NODE_IN_USE`.
//!
//! Granted node ids stay here for ever, since another process may have them next: a generator with
//! one of them assigned manually is `NODE_IN_USE`. If a lease brings a node id that this process,
//! or one it was forked from, has assigned manually, it is given back and another one taken.
//!
//! **Made, closed, made again.** Whichever process had a manually assigned node id before ended
//! before this one made a generator for it. So the first stamp is the tick after the one in which
//! the generator was made, by the precise clock. While it is open, others with the same node ids
//! share its record and its beginning. Once all are closed, another process may have had the node
//! id, and the next generator begins again in the tick after its own. One compare-and-swap, over
//! the number of open generators and their beginning together, decides which of the two holds;
//! `core/tests/handovers.rs` searches every interleaving of that. A lease states where it begins,
//! which is no sign that no other process had the node id.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use once_cell::race::OnceBox;

use crate::{Error, ErrorKind, Layout, Result, Secret, fork::ForkId, packed_state::PackedState};

/// The node ids that this process uses with one secret, or with one layout of unencrypted ids. For
/// coordinators: in one process a node id is either manually assigned or granted, never both.
///
/// ```
/// use randflake::{ErrorKind, NodeIds, Randflake, Secret};
///
/// let secret = Secret::random();
/// let manual = Randflake::new(7, &secret)?;
/// // A coordinator granted these; node id 7 must be released.
/// assert_eq!(NodeIds::of_secret(&secret).grant(&[6, 7]), [7]);
/// let error = Randflake::new(6, &secret).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NodeInUse);
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone)]
pub struct NodeIds(Scope);

/// What the node ids belong to: the same number is a different node in another scope.
#[derive(Clone)]
enum Scope {
    /// The salted hash of a secret, which does not reveal the secret.
    Secret([u8; 32]),
    Layout(Layout),
}

impl NodeIds {
    /// Returns the node ids of a secret. Keeps only a salted hash of the secret.
    ///
    /// # Panics
    ///
    /// If the operating system cannot provide random numbers.
    #[must_use]
    pub fn of_secret(secret: &Secret) -> Self {
        static SALT: OnceBox<[u8; 16]> = OnceBox::new();
        let salt = SALT.get_or_init(|| {
            let mut salt = Box::new([0; 16]);
            getrandom::fill(&mut *salt).expect("the operating system has a random source");
            salt
        });
        Self(Scope::Secret(secret.hash(salt)))
    }

    /// Returns the node ids of a layout's unencrypted ids.
    #[must_use]
    pub fn of_layout(layout: &Layout) -> Self {
        Self(Scope::Layout(*layout))
    }

    /// Registers node ids that a coordinator granted to this process, so that they can no longer be
    /// assigned manually. Returns the ones that are already manually assigned, in this process or
    /// in one that it was forked from: release them without using them.
    #[must_use = "the node ids that are returned must not be used"]
    pub fn grant(&self, node_ids: &[u32]) -> Vec<u32> {
        REGISTRY.grant(&self.0, node_ids, ForkId::current())
    }

    /// Returns the record that all generators with exactly these manual node ids share; its state
    /// has this many slots. `fork_id` belongs to the process in which the generator is made.
    ///
    /// # Errors
    ///
    /// `NODE_IN_USE` if a generator of this process has some of these nodes in another list, uses
    /// another initial sequence, or was granted them; `FORKED` if an ancestor of this process had
    /// some of them.
    pub(crate) fn manual(
        &self,
        nodes: &[u32],
        slots: u64,
        fork_id: ForkId,
    ) -> Result<&'static Record> {
        REGISTRY.manual(&self.0, nodes, slots, fork_id)
    }
}

impl fmt::Debug for NodeIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeIds(..)")
    }
}

impl Scope {
    fn shares_ids_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Secret(one), Self::Secret(other)) => one == other,
            (Self::Layout(one), Self::Layout(other)) => one.packs_like(other),
            _ => false,
        }
    }

    /// Returns a hash of a node id that is equal for all scopes that share it.
    fn hash(&self, node: u32) -> u64 {
        let mut hasher = DefaultHasher::new();
        match self {
            Self::Secret(hash) => hash.hash(&mut hasher),
            Self::Layout(layout) => layout.packing().hash(&mut hasher),
        }
        node.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns whether the slots of a tick mean the same ids, for two scopes that share ids.
    fn counts_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Layout(one), Self::Layout(other)) => one.sequence() == other.sequence(),
            _ => true,
        }
    }
}

/// What generators with the same manual node ids share.
pub(crate) struct Record {
    pub(crate) state: Arc<PackedState>,
    /// In the low bits, how many generators without a lease are open; above them, the tick after the
    /// one in which the first of them was made.
    open: AtomicU64,
}

/// Leaves enough bits for every millisecond that a clock of 64-bit nanoseconds can show.
const OPEN_BITS: u32 = 20;
const MOST_OPEN: u64 = (1 << OPEN_BITS) - 1;

impl Record {
    /// Counts a generator without a lease as open until it is [closed](OpenGuard::close).
    ///
    /// A process that had the node ids earlier ended before the first of the open generators was
    /// made, so the first free tick is the one after that. `tick_after_now` reads the clock, and
    /// its last reading counts: while a generator is being made, another may close, and another
    /// process may have had the node ids in between.
    pub(crate) fn open(
        &'static self,
        tick_after_now: impl Fn() -> Result<u64>,
    ) -> Result<OpenGuard> {
        loop {
            // Relaxed: an exchange sees the newest value, and that value publishes nothing else.
            let seen = self.open.load(Ordering::Relaxed);
            let (count, from) = match seen & MOST_OPEN {
                0 => (0, tick_after_now()?),
                count => (count, seen >> OPEN_BITS),
            };
            if count == MOST_OPEN {
                // Not counted: at worst, the next generator skips a tick that it could have used.
                return Ok(OpenGuard { record: self, from, is_counted: AtomicBool::new(false) });
            }
            let new = from << OPEN_BITS | (count + 1);
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            if self.open.compare_exchange(seen, new, success, failure).is_ok() {
                return Ok(OpenGuard { record: self, from, is_counted: AtomicBool::new(true) });
            }
        }
    }
}

/// Counts a generator without a lease as open while it exists.
pub(crate) struct OpenGuard {
    record: &'static Record,
    /// The first tick that belongs to this process.
    pub(crate) from: u64,
    is_counted: AtomicBool,
}

impl OpenGuard {
    /// Counts the generator as closed: from now on another process may have the node ids.
    pub(crate) fn close(&self) {
        if self.is_counted.swap(false, Ordering::Relaxed) {
            self.record.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.close();
    }
}

/// Node ids with an owner. No two entries have a node id in common.
struct Entry {
    fork_id: ForkId,
    scope: Scope,
    nodes: Box<[u32]>,
    /// `None` if they were granted.
    record: Option<Record>,
}

/// A node of the index, which is a trie over hashes: it refers to the entry of one node id.
struct Leaf {
    entry: u32,
    node: u32,
    children: [OnceBox<Self>; 1 << CHILD_BITS],
}

const CHILD_BITS: u32 = 2;

struct Registry {
    /// The list, in blocks of one entry, two entries, four entries and so on.
    blocks: [OnceBox<Box<[OnceBox<Entry>]>>; u32::BITS as usize],
    /// At least this many entries are in the index.
    indexed: AtomicUsize,
    index: OnceBox<Leaf>,
}

static REGISTRY: Registry = Registry::new();

impl Registry {
    const fn new() -> Self {
        Self {
            blocks: [const { OnceBox::new() }; u32::BITS as usize],
            indexed: AtomicUsize::new(0),
            index: OnceBox::new(),
        }
    }

    fn manual(&self, scope: &Scope, nodes: &[u32], slots: u64, fork_id: ForkId) -> Result<&Record> {
        let mut new = None;
        loop {
            let end = self.bring_index_up_to_date();
            let found = nodes.iter().find_map(|&node| Some((self.find(scope, node)?, node)));
            if let Some((entry, node)) = found {
                return entry.shared_with(fork_id, scope, nodes, node);
            }
            let record =
                || Record { state: Arc::new(PackedState::new(slots, 0)), open: AtomicU64::new(0) };
            let entry = new
                .take()
                .unwrap_or_else(|| Box::new(Entry::new(fork_id, scope, nodes, Some(record()))));
            match self.append(end, entry) {
                Ok(entry) => return Ok(entry.record.as_ref().expect("made with one")),
                // Another thread added an entry first, which must be checked.
                Err(back) => new = Some(back),
            }
        }
    }

    fn grant(&self, scope: &Scope, nodes: &[u32], fork_id: ForkId) -> Vec<u32> {
        loop {
            let end = self.bring_index_up_to_date();
            let (mut free, mut manual) = (Vec::new(), Vec::new());
            for &node in nodes {
                match self.find(scope, node) {
                    None => free.push(node),
                    Some(entry) if entry.record.is_some() => manual.push(node),
                    Some(_) => {} // granted before
                }
            }
            let entry = || Box::new(Entry::new(fork_id, scope, &free, None));
            if free.is_empty() || self.append(end, entry()).is_ok() {
                return manual;
            }
        }
    }

    /// Stores an entry under this number, unless there is one; in that case returns the existing
    /// entry.
    fn append(&self, number: usize, entry: Box<Entry>) -> Result<&Entry, Box<Entry>> {
        let cell = self.cell(number);
        cell.set(entry)?;
        self.bring_index_up_to_date();
        Ok(cell.get().expect("just set"))
    }

    fn cell(&self, number: usize) -> &OnceBox<Entry> {
        let block = (number + 1).ilog2();
        let entries = self.blocks[block as usize]
            .get_or_init(|| Box::new((0..1_usize << block).map(|_| OnceBox::new()).collect()));
        &entries[number + 1 - (1 << block)]
    }

    /// Adds missing entries to the index. Returns the number of the next entry: a node id that the
    /// index does not find has no owner until an entry of that number exists.
    fn bring_index_up_to_date(&self) -> usize {
        // Acquire and release: a thread that sees the number finds the entries up to it.
        let mut number = self.indexed.load(Ordering::Acquire);
        while let Some(entry) = self.cell(number).get() {
            for &node in &entry.nodes {
                self.add_to_index(&entry.scope, node, number);
            }
            number += 1;
            self.indexed.fetch_max(number, Ordering::Release);
        }
        number
    }

    /// Two threads may call this at the same time.
    fn add_to_index(&self, scope: &Scope, node: u32, entry: usize) {
        let entry = u32::try_from(entry).expect("memory ends before");
        let mut leaf = Some(Box::new(Leaf { entry, node, children: Default::default() }));
        while let Some(new) = leaf {
            match self.find_cell(scope, node) {
                Ok(_) => return,
                Err(cell) => leaf = cell.set(new).err(),
            }
        }
    }

    fn find(&self, scope: &Scope, node: u32) -> Option<&Entry> {
        self.find_cell(scope, node).ok()
    }

    /// Returns the entry of a node id, or the cell where its leaf belongs.
    fn find_cell(&self, scope: &Scope, node: u32) -> Result<&Entry, &OnceBox<Leaf>> {
        let mut hash = scope.hash(node);
        let mut cell = &self.index;
        while let Some(leaf) = cell.get() {
            let entry = self.cell(leaf.entry as usize).get().expect("in the index after the list");
            if leaf.node == node && entry.scope.shares_ids_with(scope) {
                return Ok(entry);
            }
            cell = &leaf.children[(hash % (1 << CHILD_BITS)) as usize];
            hash >>= CHILD_BITS;
        }
        Err(cell)
    }
}

impl Entry {
    fn new(fork_id: ForkId, scope: &Scope, nodes: &[u32], record: Option<Record>) -> Self {
        Self { fork_id, scope: scope.clone(), nodes: nodes.into(), record }
    }

    /// Returns the record for generators with these nodes, of which this entry has one.
    fn shared_with(
        &self,
        fork_id: ForkId,
        scope: &Scope,
        nodes: &[u32],
        node: u32,
    ) -> Result<&Record> {
        if self.fork_id != fork_id {
            let message = match scope {
                Scope::Layout(layout) if layout.node_bits() == 0 => format!(
                    "the layout {} has no node ids to distinguish this process from the one that it \
                     was forked or restored from; use a layout that has them",
                    layout.name()
                ),
                _ => format!(
                    "node id {node} belongs to the process that this one was forked or restored from; \
                     use a node id that no other process has"
                ),
            };
            return Err(Error::new(ErrorKind::Forked, message));
        }
        let in_use = |how| {
            Err(Error::new(
                ErrorKind::NodeInUse,
                format!("node id {node} is in use in this process {how}"),
            ))
        };
        let Some(record) = &self.record else {
            return in_use(
                "by a generator that leases it; lease all node ids of an id column, or assign all of \
                 them manually",
            );
        };
        if *self.nodes != *nodes {
            return in_use(
                "together with other node ids; use the same list of node ids again, or node ids \
                 that are in no other list",
            );
        }
        if !self.scope.counts_like(scope) {
            return in_use(
                "by a generator with another initial sequence; use the same layout and Sequence \
                 again, or another node id",
            );
        }
        Ok(record)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn depth(cell: &OnceBox<Leaf>) -> usize {
        cell.get().map_or(0, |leaf| 1 + leaf.children.iter().map(depth).max().unwrap_or(0))
    }

    /// Finding a node id, or the end of the list, takes few steps even with many entries.
    #[test]
    fn many_entries_make_no_build_slow() {
        const MANY: u32 = 20_000;
        let (registry, fork_id) = (Registry::new(), ForkId::current());
        let secrets = |number: u32| {
            let mut hash = [0; 32];
            hash[..4].copy_from_slice(&number.to_le_bytes());
            Scope::Secret(hash)
        };
        for number in 0..MANY {
            registry.manual(&secrets(number), &[1], 4, fork_id).expect("a secret of its own");
            registry.manual(&secrets(MANY), &[number], 4, fork_id).expect("a node of its own");
        }
        let entries = 2 * MANY as usize;
        assert_eq!(registry.indexed.load(Ordering::Relaxed), entries);
        let depth = depth(&registry.index);
        assert!(depth < 25, "{depth} steps to one of {entries}");

        // Every one of them is found.
        for number in 0..MANY {
            let twice = [0; 2].map(|_| {
                registry.manual(&secrets(number), &[1], 4, fork_id).expect("shared with itself")
            });
            assert!(std::ptr::eq(twice[0], twice[1]));
            assert!(registry.manual(&secrets(MANY), &[number, MANY], 4, fork_id).is_err());
        }
        assert_eq!(registry.bring_index_up_to_date(), entries);
        assert_eq!(registry.grant(&secrets(MANY), &[3, MANY, 4], fork_id), [3, 4]);
    }

    #[test]
    fn the_list_has_a_cell_for_every_number() {
        let registry = Registry::new();
        let mut cells: Vec<_> =
            (0..1000).map(|number| std::ptr::from_ref(registry.cell(number)).addr()).collect();
        cells.sort_unstable();
        cells.dedup();
        assert_eq!(cells.len(), 1000);
    }

    #[test]
    fn a_generator_beyond_the_largest_count_changes_no_count() {
        static RECORD: OnceBox<Record> = OnceBox::new();
        let record = RECORD.get_or_init(|| {
            let open = AtomicU64::new(7 << OPEN_BITS | (MOST_OPEN - 1));
            Box::new(Record { state: Arc::new(PackedState::new(4, 0)), open })
        });
        let (counted, not) =
            (record.open(|| Ok(9)).expect("a tick"), record.open(|| Ok(9)).expect("a tick"));
        assert_eq!((counted.from, not.from), (7, 7));
        drop(not);
        assert_eq!(record.open.load(Ordering::Relaxed), 7 << OPEN_BITS | MOST_OPEN);
        counted.close();
        drop(counted);
        assert_eq!(record.open.load(Ordering::Relaxed), 7 << OPEN_BITS | (MOST_OPEN - 1));
    }
}
