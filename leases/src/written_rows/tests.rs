//! Copies of one process, as on a machine that was cloned while running, on every kind of store.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
};

use randflake::{Result, Secret};

use super::WrittenRows;
#[cfg(feature = "sqlite")]
use crate::stores::sqlite::SqliteStore;
use crate::{
    local::LocalStore,
    namespace::{Namespace, NamespaceMetadata},
    node_ranges::NodeRanges,
    note::Note,
    protocol::{Acquire, Acquired, LeaseStore, NodeLease, Release, Renew, Renewed, outcome_of},
    remote::{Client as ServerClient, Protocol, RemoteStore, Response, Statement, table::Table},
    stores::memory::MemoryStore,
    token::Token,
};

const START: i64 = 1_763_640_000;
const TTL: u32 = 12;
const SKEW: u32 = 2;

/// The unix second that all clients see.
#[derive(Clone)]
struct Dial(Arc<AtomicI64>);

impl Dial {
    fn now(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }

    fn clock(&self) -> impl Fn() -> i64 + Send + Sync + 'static {
        let dial = self.clone();
        move || dial.now() * 1_000_000_000
    }
}

/// A client of a store. It makes others: the client of a copy of its process, or of another
/// process.
struct Client {
    store: Box<dyn LeaseStore>,
    make: Box<dyn Fn(Process) -> Client>,
}

#[derive(Clone, Copy)]
enum Process {
    Copy,
    Another,
}

impl Process {
    fn own(self, own: &WrittenRows) -> WrittenRows {
        match self {
            Self::Copy => own.copy(),
            Self::Another => WrittenRows::default(),
        }
    }
}

fn namespace(node_ids: u32) -> Namespace {
    Namespace::new("orders", &Secret::from_bytes(&[7; 16]).expect("16 bytes"))
        .and_then(|it| it.max_skew(SKEW)?.max_ttl(TTL)?.node_ids(NodeRanges::up_to(node_ids - 1)))
        .expect("within the limits")
}

fn in_memory(store: MemoryStore) -> Client {
    let shared = store.clone();
    let make = move |process: Process| {
        in_memory(shared.remembering(process.own(LocalStore::own(&shared))))
    };
    Client { store: Box::new(store), make: Box::new(make) }
}

#[cfg(feature = "sqlite")]
fn in_file(path: &std::path::Path, namespace: &Namespace, dial: &Dial, own: WrittenRows) -> Client {
    let store = SqliteStore::new(path, namespace.clone()).expect("a path");
    let store = store.clock(dial.clock()).remembering(own.clone());
    let (path, namespace, dial) = (path.to_owned(), namespace.clone(), dial.clone());
    let make = move |process: Process| in_file(&path, &namespace, &dial, process.own(&own));
    Client { store: Box::new(store), make: Box::new(make) }
}

struct OfTable(Arc<Mutex<Table>>, Dial);

impl ServerClient for OfTable {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        let mut table = self.0.lock().expect("no panic");
        table.clock = self.1.now();
        Ok(table.answer(statement))
    }

    fn discard(&mut self) {}
}

fn on_server(table: Arc<Mutex<Table>>, protocol: Protocol, dial: &Dial) -> Client {
    let client = OfTable(Arc::clone(&table), dial.clone());
    let store = RemoteStore::new(client, protocol.clone()).clock(dial.clock());
    let dial = dial.clone();
    let make = move |process| {
        let protocol = match process {
            Process::Copy => protocol.copied(),
            Process::Another => Protocol::new(protocol.namespace().clone(), protocol.engine())
                .allow_weak_store(true),
        };
        on_server(Arc::clone(&table), protocol, &dial)
    };
    Client { store: Box::new(store), make: Box::new(make) }
}

/// Runs a test with an empty store of each kind.
fn on_each(node_ids: u32, test: impl Fn(&str, Client, &Dial)) {
    let dial = || Dial(Arc::new(AtomicI64::new(START)));
    let namespace = namespace(node_ids);
    let at = dial();
    test("memory", in_memory(MemoryStore::with_clock(namespace.clone(), at.clock())), &at);
    #[cfg(feature = "sqlite")]
    {
        let directory = std::env::temp_dir().join(format!("randflake-own-{:?}", Token::random()));
        std::fs::create_dir(&directory).expect("a new one");
        let at = dial();
        let client = in_file(&directory.join("ids.db"), &namespace, &at, WrittenRows::default());
        test("SQLite", client, &at);
        std::fs::remove_dir_all(&directory).expect("it is there");
    }
    for protocol in [Protocol::postgres, Protocol::redis] {
        let at = dial();
        let table = Table::new(START, &NamespaceMetadata::new(&namespace));
        let protocol = protocol(namespace.clone()).allow_weak_store(true);
        let name = protocol.engine().name();
        test(name, on_server(Arc::new(Mutex::new(table)), protocol, &at), &at);
    }
}

impl Client {
    fn acquire(&mut self, token: Token, now: i64) -> Option<NodeLease> {
        let note = Note::default();
        let request = Acquire { token, want: 1, ttl: TTL, client_now: now, note };
        match outcome_of(&request, self.store.acquire(&request)).expect("the store answers") {
            Acquired::Granted { leases, .. } => Some(leases[0]),
            _ => None,
        }
    }

    /// Renews, and returns the lease as it is now; `None` if it is lost.
    fn renew(&mut self, token: Token, lease: NodeLease, now: i64) -> Option<NodeLease> {
        let node_ids = vec![lease.node_id];
        let request = Renew { token, node_ids, ttl: TTL, client_now: now, next: None };
        match outcome_of(&request, self.store.renew(&request)).expect("the store answers") {
            Renewed::Extended { leases, .. } => Some(leases[0]),
            _ => None,
        }
    }

    fn release(&mut self, token: Token, lease: NodeLease, used_until: i64) -> u32 {
        let request = Release { token, node_ids: vec![lease.node_id], used_until };
        outcome_of(&request, self.store.release(&request)).expect("the store answers").count
    }
}

#[test]
fn of_two_copies_one_goes_on() {
    on_each(1, |store, mut original, dial| {
        let token = Token::random();
        let lease = original.acquire(token, dial.now()).expect("it is free");
        let mut copy = (original.make)(Process::Copy);
        dial.pass(4);
        let renewed = copy.renew(token, lease, dial.now()).expect("the first one");
        assert_eq!(original.renew(token, lease, dial.now()), None, "{store}");
        assert_eq!(original.acquire(token, dial.now()), None, "{store}: by its token");
        assert_eq!(original.release(token, lease, dial.now()), 0, "{store}");
        assert!(copy.renew(token, renewed, dial.now()).is_some(), "{store}: unharmed");
    });
}

/// The answer to an acquire or a renewal may be lost when the copy is made.
#[test]
fn of_two_copies_that_wait_for_an_answer_one_gets_it() {
    on_each(1, |store, mut original, dial| {
        let token = Token::random();
        let unheard = original.acquire(token, dial.now()).expect("it is free");
        let mut copy = (original.make)(Process::Copy);
        let lease = original.acquire(token, dial.now()).expect("the same request");
        assert_eq!((lease.node_id, lease.start), (unheard.node_id, unheard.start), "{store}");
        assert_eq!(copy.acquire(token, dial.now()), None, "{store}: it is the other's");
        assert_eq!(copy.renew(token, unheard, dial.now()), None, "{store}");
        dial.pass(3);
        let unheard = original.renew(token, lease, dial.now()).expect("its own");
        let mut copy = (original.make)(Process::Copy);
        assert!(copy.renew(token, unheard, dial.now()).is_some(), "{store}");
        assert_eq!(original.renew(token, unheard, dial.now()), None, "{store}");
    });
}

/// A copy whose request was refused does not take what the same request has since granted the
/// original.
#[test]
fn a_request_that_was_refused_before_the_copy_is_granted_once() {
    on_each(1, |store, mut original, dial| {
        let (token, mut another) = (Token::random(), (original.make)(Process::Another));
        let first = Token::random();
        let lease = another.acquire(first, dial.now()).expect("it is free");
        assert_eq!(original.acquire(token, dial.now()), None, "{store}: taken");
        let mut copy = (original.make)(Process::Copy);
        another.release(first, lease, dial.now());
        let lease = original.acquire(token, dial.now()).expect("it is free by now");
        dial.pass(5);
        original.renew(token, lease, dial.now()).expect("its own");
        assert_eq!(copy.acquire(token, dial.now()), None, "{store}: it is the other's");
    });
}

/// A client that came later, and a holder whose requests go through several stores, go only by the
/// token.
#[test]
fn a_token_that_was_forgotten_says_whose_row_it_is() {
    on_each(1, |store, mut one, dial| {
        let mut other = (one.make)(Process::Another);
        let token = Token::random();
        let mut lease = one.acquire(token, dial.now()).expect("it is free");
        for turn in 0..4 {
            dial.pass(3);
            let client = if turn % 2 == 0 { &mut other } else { &mut one };
            client.store.forget(token);
            lease = client.renew(token, lease, dial.now()).expect("its own");
            client.store.forget(token);
        }
        assert_eq!(other.release(token, lease, dial.now()), 1, "{store}");
    });
}

/// Whatever an original, its copy and a third party do after the copy was made, and after the lease
/// of that time has ended, no two of them stamp the same second of a node id.
#[test]
fn no_second_of_a_node_id_is_that_of_two_copies() {
    const ROUNDS: u64 = 15;
    const STEPS: usize = 60;

    struct Holder {
        client: Client,
        lease: Option<(Token, NodeLease)>,
    }

    for round in 0..ROUNDS {
        on_each(2, |store, mut original, dial| {
            let mut random = round + 1;
            let mut below = |bound: u64| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round | 1);
                (random >> 33) % bound
            };
            let token = Token::random();
            let lease = original.acquire(token, dial.now()).expect("both are free");
            let copy = (original.make)(Process::Copy);
            let third = (original.make)(Process::Another);
            let copied_until = lease.end_exclusive;
            let lease = Some((token, lease));
            let mut holders = [
                Holder { client: original, lease },
                Holder { client: copy, lease },
                Holder { client: third, lease: None },
            ];
            let mut stamped: BTreeMap<(u32, i64), usize> = BTreeMap::new();
            for step in 0..STEPS {
                let index = usize::try_from(below(3)).expect("small");
                let Holder { client, lease } = &mut holders[index];
                let now = dial.now();
                match (*lease, below(5)) {
                    (None, _) => {
                        let token = Token::random();
                        *lease = client.acquire(token, now).map(|lease| (token, lease));
                    }
                    (Some((token, held)), 0) => {
                        // Everything that it has stamped is in the past.
                        client.release(token, held, now + 1);
                        *lease = None;
                    }
                    (Some((token, held)), 1..4) => {
                        let renewed = client.renew(token, held, now);
                        // Until it has another one, it continues to the end that it knows.
                        *lease = renewed
                            .or(Some(held).filter(|held| held.end_exclusive > now))
                            .map(|held| (token, held));
                    }
                    _ => {}
                }
                for (index, Holder { lease, .. }) in holders.iter().enumerate() {
                    let Some((_, held)) = lease else { continue };
                    if now >= copied_until && (held.start..held.end_exclusive).contains(&now) {
                        let by = *stamped.entry((held.node_id, now)).or_insert(index);
                        assert_eq!(by, index, "{store}, round {round}, step {step}: {held:?}");
                    }
                }
                dial.pass(i64::try_from(below(4)).expect("small"));
            }
            assert!(stamped.len() > 3, "{store}, round {round}: {stamped:?}");
        });
    }
}

/// A store that was set back lacks a renewal that was granted. It is then fenced, once: others may
/// have lost their leases, too.
#[test]
fn a_store_that_was_set_back_is_fenced() {
    for (before_the_lease, name) in [(false, "to an earlier end"), (true, "to before the lease")] {
        for protocol in [None, Some(Protocol::postgres as fn(_) -> _), Some(Protocol::redis)] {
            let dial = Dial(Arc::new(AtomicI64::new(START)));
            let namespace = namespace(8);
            let memory = MemoryStore::with_clock(namespace.clone(), dial.clock());
            let table =
                Arc::new(Mutex::new(Table::new(START, &NamespaceMetadata::new(&namespace))));
            let mut client = match protocol {
                None => in_memory(memory.clone()),
                Some(protocol) => {
                    let protocol: Protocol = protocol(namespace.clone());
                    on_server(Arc::clone(&table), protocol.allow_weak_store(true), &dial)
                }
            };
            let mut other = (client.make)(Process::Another);
            // This creates the namespace.
            let made = other.acquire(Token::random(), dial.now()).expect("they are free");
            let backup = || (memory.backup(), table.lock().expect("no panic").clone());
            let first = backup();
            let token = Token::random();
            let lease = client.acquire(token, dial.now()).expect("they are free");
            let second = backup();
            dial.pass(4);
            let lease = client.renew(token, lease, dial.now()).expect("its own");
            dial.pass(1);
            let (rules, texts) = if before_the_lease { first } else { second };
            memory.restore(rules);
            *table.lock().expect("no panic") = texts;
            // It would otherwise be granted the other's node id, too.
            let in_use = [made.node_id, lease.node_id];
            let node_ids = namespace.limits().node_ids;
            let asks_first = |token: &Token| token.candidates(&node_ids).next().expect("endless");
            let mut tokens = std::iter::repeat_with(Token::random);
            let apart = tokens.find(|token| !in_use.contains(&asks_first(token))).expect("some");
            assert!(other.acquire(apart, dial.now()).is_some(), "not noticed yet");
            let mut floors = Vec::new();
            for _ in 0..2 {
                assert_eq!(client.renew(token, lease, dial.now()), None, "{name}");
                let list = crate::operator::list(&mut *client.store).expect("the store answers");
                floors.push(list.floor);
                assert_eq!(client.acquire(Token::random(), dial.now()), None, "{name}");
            }
            let last_grant = if floors[0] > dial.now() + i64::from(TTL + SKEW) { 12 } else { 0 };
            assert_eq!(floors, [dial.now() + i64::from(TTL + SKEW) + last_grant; 2], "{name}");
            dial.pass(i64::from(TTL + SKEW + 12));
            assert!(client.acquire(Token::random(), dial.now()).is_some(), "{name}: it is over");
        }
    }
}
