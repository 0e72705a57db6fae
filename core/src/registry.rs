//! Which node ids this process, and the ones it was forked from, have had: by hand, or granted by
//! a store.
//!
//! A list that only grows: entries are set once, never changed but for the atomics of a record, and
//! never dropped, without a lock. So a child of a process with many threads can read it whatever
//! those were doing. Who comes first in the list has the node ids. An index finds an entry by one
//! of its node ids; it grows in the same way, behind the list, and whoever wants to add to the list
//! first brings it up to date.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use once_cell::race::OnceBox;

use crate::{Error, ErrorKind, Layout, Result, Secret, fork, word::Word};

/// The node ids of Randflake under one secret, or those of one layout's unencrypted ids, as this
/// process has them. For coordinators: a node id is either given by hand in a process or granted
/// to it.
///
/// ```
/// use randflake::{ErrorKind, NodeIds, Randflake, Secret};
///
/// let secret = Secret::random();
/// let by_hand = Randflake::new(7, &secret)?;
/// // A coordinator granted these; one of them has to be given back to it.
/// assert_eq!(NodeIds::of_secret(&secret).grant(&[6, 7]), [7]);
/// let error = Randflake::new(6, &secret).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NodeInUse);
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone)]
pub struct NodeIds(Scope);

/// Whose node ids they are: the same number is another node elsewhere.
#[derive(Clone)]
enum Scope {
    /// The salted hash of a secret, from which nobody learns the secret.
    Secret([u8; 32]),
    Layout(Layout),
}

impl NodeIds {
    /// Returns those of Randflake under a secret, of which a salted hash is kept.
    ///
    /// # Panics
    ///
    /// If the operating system has no random numbers to give.
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

    /// Returns those of a layout, whose ids nothing else tells apart.
    #[must_use]
    pub fn of_layout(layout: &Layout) -> Self {
        Self(Scope::Layout(*layout))
    }

    /// Notes that a coordinator granted these node ids to this process, so that nobody gets them
    /// by hand here. Returns those that somebody has by hand, here or in a process that this one
    /// was forked from: they must be given back unused.
    #[must_use = "what is returned must not be used"]
    pub fn grant(&self, node_ids: &[u32]) -> Vec<u32> {
        REGISTRY.grant(&self.0, node_ids, fork::life().epoch())
    }

    /// Returns the record that all generators by hand with these node ids share, whose word has so
    /// many slots. `epoch` is that of the life in which the generator is made.
    ///
    /// # Errors
    ///
    /// `NODE_IN_USE` if a generator of this process has some of these nodes with some others,
    /// begins its ticks otherwise, or was granted them; `FORKED` if an ancestor of this process had
    /// some of them.
    pub(crate) fn by_hand(&self, nodes: &[u32], slots: u64, epoch: u64) -> Result<&'static Record> {
        REGISTRY.by_hand(&self.0, nodes, slots, epoch)
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

    /// Returns a hash of a node id that is the same for all that share it.
    fn hash(&self, node: u32) -> u64 {
        let mut hasher = DefaultHasher::new();
        match self {
            Self::Secret(hash) => hash.hash(&mut hasher),
            Self::Layout(layout) => layout.packing().hash(&mut hasher),
        }
        node.hash(&mut hasher);
        hasher.finish()
    }

    /// Tells whether the slots of a tick stand for the same ids; asked of two that share ids.
    fn counts_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Layout(one), Self::Layout(other)) => one.sequence() == other.sequence(),
            _ => true,
        }
    }
}

/// What generators by hand with the same node ids share.
pub(crate) struct Record {
    pub(crate) word: Arc<Word>,
    /// How many generators without a lease are open, in the low bits; above them the tick after
    /// the one in which the first of them was made.
    held: AtomicU64,
}

/// No clock of 64-bit nanoseconds shows a millisecond of more bits than are left.
const OPEN_BITS: u32 = 20;
const MOST_OPEN: u64 = (1 << OPEN_BITS) - 1;

impl Record {
    /// Counts a generator without a lease as open until it is [released](Held::release).
    ///
    /// Whoever had the node ids before this process, in an earlier life of it or in another
    /// process that handed them over, ended before the first of the open generators was made; so
    /// what is free is the tick after that. `tick_after_now` reads the clock, of which the last
    /// reading counts: one generator may close while another is being made, and the node ids may
    /// have been elsewhere between the two.
    pub(crate) fn hold(&'static self, tick_after_now: impl Fn() -> Result<u64>) -> Result<Held> {
        loop {
            // Relaxed: exchanges of one word see the newest value, which publishes nothing else.
            let seen = self.held.load(Ordering::Relaxed);
            let (open, from) = match seen & MOST_OPEN {
                0 => (0, tick_after_now()?),
                open => (open, seen >> OPEN_BITS),
            };
            if open == MOST_OPEN {
                // Not counted, it only ends a tenure too early.
                return Ok(Held { record: self, from, open: AtomicBool::new(false) });
            }
            let held = from << OPEN_BITS | (open + 1);
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            if self.held.compare_exchange(seen, held, success, failure).is_ok() {
                return Ok(Held { record: self, from, open: AtomicBool::new(true) });
            }
        }
    }
}

/// A generator without a lease that is open.
pub(crate) struct Held {
    record: &'static Record,
    /// The first tick that is this process's own.
    pub(crate) from: u64,
    open: AtomicBool,
}

impl Held {
    /// Counts it as closed: from now on another process may have the node ids.
    pub(crate) fn release(&self) {
        if self.open.swap(false, Ordering::Relaxed) {
            self.record.held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

/// Node ids that have an owner. No two entries have one in common.
struct Entry {
    epoch: u64,
    scope: Scope,
    nodes: Box<[u32]>,
    /// None where they were granted.
    record: Option<Record>,
}

/// Where the entry of a node id is found; also the root of all whose hashes go on in the same way.
struct Leaf {
    entry: u32,
    node: u32,
    children: [OnceBox<Self>; 1 << CHILD_BITS],
}

const CHILD_BITS: u32 = 2;

struct Registry {
    /// The list: a block of one entry, one of two, one of four and so on.
    blocks: [OnceBox<Box<[OnceBox<Entry>]>>; u32::BITS as usize],
    /// So many entries at least are in the index.
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

    fn by_hand(&self, scope: &Scope, nodes: &[u32], slots: u64, epoch: u64) -> Result<&Record> {
        let mut new = None;
        loop {
            let end = self.bring_index_up_to_date();
            let found = nodes.iter().find_map(|&node| Some((self.find(scope, node)?, node)));
            if let Some((entry, node)) = found {
                return entry.shared_with(epoch, scope, nodes, node);
            }
            let record = || Record { word: Arc::new(Word::new(slots, 0)), held: AtomicU64::new(0) };
            let entry = new
                .take()
                .unwrap_or_else(|| Box::new(Entry::new(epoch, scope, nodes, Some(record()))));
            match self.append(end, entry) {
                Ok(entry) => return Ok(entry.record.as_ref().expect("made with one")),
                // Another thread was first with an entry of its own, which has to be looked at.
                Err(back) => new = Some(back),
            }
        }
    }

    fn grant(&self, scope: &Scope, nodes: &[u32], epoch: u64) -> Vec<u32> {
        loop {
            let end = self.bring_index_up_to_date();
            let (mut free, mut by_hand) = (Vec::new(), Vec::new());
            for &node in nodes {
                match self.find(scope, node) {
                    None => free.push(node),
                    Some(entry) if entry.record.is_some() => by_hand.push(node),
                    Some(_) => {} // granted before
                }
            }
            let entry = || Box::new(Entry::new(epoch, scope, &free, None));
            if free.is_empty() || self.append(end, entry()).is_ok() {
                return by_hand;
            }
        }
    }

    /// Makes an entry the one of this number, unless there is one.
    fn append(&self, number: usize, entry: Box<Entry>) -> Result<&Entry, Box<Entry>> {
        let place = self.place(number);
        place.set(entry)?;
        self.bring_index_up_to_date();
        Ok(place.get().expect("just set"))
    }

    fn place(&self, number: usize) -> &OnceBox<Entry> {
        let block = (number + 1).ilog2();
        let entries = self.blocks[block as usize]
            .get_or_init(|| Box::new((0..1_usize << block).map(|_| OnceBox::new()).collect()));
        &entries[number + 1 - (1 << block)]
    }

    /// Adds to the index what is not in it yet. Returns the number of the next entry: nobody has a
    /// node id that the index does not find, until there is an entry of that number.
    fn bring_index_up_to_date(&self) -> usize {
        // Acquire and release: whoever sees the number finds the entries up to it.
        let mut number = self.indexed.load(Ordering::Acquire);
        while let Some(entry) = self.place(number).get() {
            for &node in &entry.nodes {
                self.add_to_index(&entry.scope, node, number);
            }
            number += 1;
            self.indexed.fetch_max(number, Ordering::Release);
        }
        number
    }

    /// Two threads may do so at the same time.
    fn add_to_index(&self, scope: &Scope, node: u32, entry: usize) {
        let entry = u32::try_from(entry).expect("memory ends before");
        let mut leaf = Some(Box::new(Leaf { entry, node, children: Default::default() }));
        while let Some(new) = leaf {
            match self.find_place(scope, node) {
                Ok(_) => return,
                Err(place) => leaf = place.set(new).err(),
            }
        }
    }

    fn find(&self, scope: &Scope, node: u32) -> Option<&Entry> {
        self.find_place(scope, node).ok()
    }

    /// Returns the entry of a node id, or where a leaf for it would be.
    fn find_place(&self, scope: &Scope, node: u32) -> Result<&Entry, &OnceBox<Leaf>> {
        let mut hash = scope.hash(node);
        let mut place = &self.index;
        while let Some(leaf) = place.get() {
            let entry = self.place(leaf.entry as usize).get().expect("in the index after the list");
            if leaf.node == node && entry.scope.shares_ids_with(scope) {
                return Ok(entry);
            }
            place = &leaf.children[(hash % (1 << CHILD_BITS)) as usize];
            hash >>= CHILD_BITS;
        }
        Err(place)
    }
}

impl Entry {
    fn new(epoch: u64, scope: &Scope, nodes: &[u32], record: Option<Record>) -> Self {
        Self { epoch, scope: scope.clone(), nodes: nodes.into(), record }
    }

    /// Returns the record for generators with these nodes, of which this entry has one.
    fn shared_with(&self, epoch: u64, scope: &Scope, nodes: &[u32], node: u32) -> Result<&Record> {
        if self.epoch != epoch {
            let message = match scope {
                Scope::Layout(layout) if layout.node_bits() == 0 => format!(
                    "the process this one was forked from makes ids of the layout {}, which has \
                     no node ids to tell two processes apart; use one that has",
                    layout.name()
                ),
                _ => format!(
                    "node id {node} belongs to the process this one was forked from; \
                     give the child a node id of its own"
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
                "by a generator that leases it; give node ids by hand only for ids that no leased \
                 generator makes",
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
                "by a generator whose ticks begin with another sequence; use the same layout and \
                 Sequence again, or another node id",
            );
        }
        Ok(record)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn depth(place: &OnceBox<Leaf>) -> usize {
        place.get().map_or(0, |leaf| 1 + leaf.children.iter().map(depth).max().unwrap_or(0))
    }

    /// The way to a node id, and to the end of the list, is as short as after few others.
    #[test]
    fn many_others_make_no_build_slow() {
        const MANY: u32 = 20_000;
        let registry = Registry::new();
        let secrets = |number: u32| {
            let mut hash = [0; 32];
            hash[..4].copy_from_slice(&number.to_le_bytes());
            Scope::Secret(hash)
        };
        for number in 0..MANY {
            registry.by_hand(&secrets(number), &[1], 4, 1).expect("a secret of its own");
            registry.by_hand(&secrets(MANY), &[number], 4, 1).expect("a node of its own");
        }
        let entries = 2 * MANY as usize;
        assert_eq!(registry.indexed.load(Ordering::Relaxed), entries);
        let depth = depth(&registry.index);
        assert!(depth < 25, "{depth} steps to one of {entries}");

        // All of them are found.
        for number in 0..MANY {
            let twice = [0; 2].map(|_| {
                registry.by_hand(&secrets(number), &[1], 4, 1).expect("shared with itself")
            });
            assert!(std::ptr::eq(twice[0], twice[1]));
            assert!(registry.by_hand(&secrets(MANY), &[number, MANY], 4, 1).is_err());
        }
        assert_eq!(registry.bring_index_up_to_date(), entries);
        assert_eq!(registry.grant(&secrets(MANY), &[3, MANY, 4], 1), [3, 4]);
    }

    #[test]
    fn the_list_has_a_place_for_every_number() {
        let registry = Registry::new();
        let mut places: Vec<_> =
            (0..1000).map(|number| std::ptr::from_ref(registry.place(number)).addr()).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 1000);
    }

    #[test]
    fn more_open_generators_than_can_be_counted_end_nothing_that_is_counted() {
        static RECORD: OnceBox<Record> = OnceBox::new();
        let record = RECORD.get_or_init(|| {
            let held = AtomicU64::new(7 << OPEN_BITS | (MOST_OPEN - 1));
            Box::new(Record { word: Arc::new(Word::new(4, 0)), held })
        });
        let (counted, not) =
            (record.hold(|| Ok(9)).expect("held"), record.hold(|| Ok(9)).expect("held"));
        assert_eq!((counted.from, not.from), (7, 7));
        drop(not);
        assert_eq!(record.held.load(Ordering::Relaxed), 7 << OPEN_BITS | MOST_OPEN);
        counted.release();
        drop(counted);
        assert_eq!(record.held.load(Ordering::Relaxed), 7 << OPEN_BITS | (MOST_OPEN - 1));
    }
}
