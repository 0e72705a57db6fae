//! Counters, from which tickets are drawn.
#![allow(clippy::wildcard_imports, reason = "the helpers of all conformance tests")]

use super::*;
use randflake_leases::{Change, ListCounters, ListedCounters, Swap, Swapped};
use randflake_tickets::counter::{Block, CounterSettings, Draw, KnownCounter};

const COUNTER: &str = "invoices";

fn tickets() -> Namespace {
    Namespace::for_tickets(format!("conformance {:?}", Token::random())).expect("a name")
}

fn swap(
    store: &mut dyn LeaseStore,
    counter: &str,
    change: impl Into<Option<Change>>,
) -> Result<Swapped> {
    let request =
        Swap { token: Token::random(), counter: counter.to_owned(), change: change.into() };
    outcome_of(&request, store.swap(&request))
}

fn change(floor: i64, before: Option<&str>, after: &str) -> Change {
    Change { floor, before: before.map(str::to_owned), after: after.to_owned() }
}

/// Swaps, and insists on an answer: whether it was done, and the value afterwards.
fn swapped(
    client: &mut Holder<'_>,
    counter: &str,
    change: impl Into<Option<Change>>,
) -> (bool, Option<String>) {
    let before = client.subject.now();
    let swapped = swap(&mut *client.store, counter, change).expect("the store keeps counters");
    assert!((before - 1..=client.subject.now() + 1).contains(&swapped.now), "{swapped:?}");
    (swapped.done, swapped.value)
}

fn list(store: &mut dyn LeaseStore) -> Result<ListedCounters> {
    let request = ListCounters { token: Token::random() };
    outcome_of(&request, store.list_counters(&request))
}

/// A holder of blocks.
struct Drawer<'a> {
    holder: Holder<'a>,
    counter: KnownCounter,
}

impl<'a> Drawer<'a> {
    fn of(subject: &'a dyn Subject, namespace: &Namespace) -> Self {
        let settings = CounterSettings::new(COUNTER, None, None).expect("a name");
        Self { holder: Holder::of(subject, namespace), counter: KnownCounter::new(settings) }
    }

    fn draw(&mut self, draw: &Draw) -> Result<Block> {
        let drawn = until_available(|| self.counter.draw(&mut *self.holder.store, draw))?;
        Ok(drawn.expect("nobody else has the token"))
    }

    /// Draws this many positions under its own token, and insists.
    fn drawn(&mut self, want: u64, after: u64) -> (Token, Block) {
        let draw = asked(want, after);
        (draw.token, self.draw(&draw).expect("the store can draw"))
    }

    fn give_back(&mut self, token: Token, unused_from: u64) -> Result<bool> {
        until_available(|| self.counter.give_back(&mut *self.holder.store, &[token], unused_from))
    }
}

fn asked(want: u64, after: u64) -> Draw {
    Draw { before: None, token: Token::random(), unused_from: 0, want, after }
}

/// A counter is replaced only if its value and the floor of the namespace are still those on which
/// the change was decided. Anything printable comes back as it was written.
pub fn a_counter_is_replaced_only_if_nothing_has_changed(subject: &dyn Subject) {
    let namespace = tickets();
    let mut client = Holder::of(subject, &namespace);
    let mut other = Holder::of(subject, &namespace);
    assert_eq!(swapped(&mut client, COUNTER, None), (false, None));
    assert_eq!(swapped(&mut client, COUNTER, change(0, Some(""), "a")), (false, None));
    assert_eq!(swapped(&mut client, COUNTER, change(1, None, "a")), (false, None));
    let a = Some("a".to_owned());
    assert_eq!(swapped(&mut client, COUNTER, change(0, None, "a")), (true, a.clone()));
    assert_eq!(swapped(&mut other, COUNTER, None), (false, a.clone()));
    // Simulates a lost first answer.
    assert_eq!(swapped(&mut client, COUNTER, change(0, None, "a")), (false, a.clone()));
    for (floor, before) in
        [(0, Some("A")), (0, Some("")), (0, Some("a ")), (1, Some("a")), (-1, None)]
    {
        let asked = change(floor, before, "b");
        assert_eq!(swapped(&mut other, COUNTER, asked), (false, a.clone()), "{floor} {before:?}");
    }
    assert_eq!(swapped(&mut other, COUNTER, change(0, Some("a"), "a")), (true, a.clone()));
    let printable: String = (b' '..=b'~').map(char::from).collect();
    let long = printable.repeat(Swap::MAX_VALUE / printable.len());
    for (before, after) in [("a", &*printable), (&*printable, ""), ("", &*long)] {
        let asked = change(0, Some(before), after);
        assert_eq!(swapped(&mut client, COUNTER, asked), (true, Some(after.to_owned())));
        assert_eq!(swapped(&mut other, COUNTER, None), (false, Some(after.to_owned())));
    }

    let names = ["Invoices", "invoices/2", "a:b%c", "%25", "é", "'", &"n".repeat(200)];
    for name in names {
        let value = name.get(..1).unwrap_or("x");
        assert!(swapped(&mut client, name, change(0, None, value)).0, "{name}");
    }
    for name in names {
        let value = name.get(..1).unwrap_or("x").to_owned();
        assert_eq!(swapped(&mut other, name, None), (false, Some(value)), "{name}");
    }
    let mut elsewhere = Holder::of(subject, &tickets());
    assert_eq!(swapped(&mut elsewhere, COUNTER, None), (false, None));
    assert_eq!(swapped(&mut client, COUNTER, None), (false, Some(long)));

    let request = Swap { token: Token::random(), counter: COUNTER.to_owned(), change: None };
    let reply = client.store.swap(&request).expect("the store can swap");
    assert_eq!((reply.token, reply.operation), (request.token, Operation::Swap));
}

/// An operator sees each counter once, with its value, even if a list has several pages.
pub fn every_counter_is_listed(subject: &dyn Subject) {
    let namespace = tickets();
    let mut client = Holder::of(subject, &namespace);
    let listed = list(&mut *client.store).expect("the store keeps counters");
    assert_eq!((listed.floor, listed.counters), (0, vec![]));

    // Long enough that Redis keeps them in a hash table and scans only part of it.
    let value = |number: usize| format!("{number} {}", "v".repeat(80));
    let numbered = (0..230).map(|number| (format!("orders-{number:03}"), value(number)));
    let named = ["Invoices", "a:b%c", "meta", "é", "node/1", &"n".repeat(200)].map(str::to_owned);
    let mut all: Vec<_> = numbered.chain(named.map(|name| (name, String::new()))).collect();
    for (name, value) in &all {
        assert!(swapped(&mut client, name, change(0, None, value)).0, "{name}");
    }
    let mut elsewhere = Holder::of(subject, &tickets());
    assert!(swapped(&mut elsewhere, COUNTER, change(0, None, "of another namespace")).0);

    all.sort_unstable();
    let before = client.subject.now();
    let request = ListCounters { token: Token::random() };
    let reply = client.store.list_counters(&request).expect("the store keeps counters");
    assert_eq!((reply.token, reply.operation), (request.token, Operation::ListCounters));
    assert_eq!((reply.outcome.floor, reply.outcome.counters), (0, all));
    assert!((before - 1..=client.subject.now() + 1).contains(&reply.outcome.now));

    let fenced = Holder::of(subject, &namespace).fence();
    assert_eq!(list(&mut *client.store).expect("it is there").floor, fenced.floor);
    let mut holder = Holder::of(subject, &self::namespace(9));
    holder.granted(1);
    let error = list(&mut *holder.store).expect_err("of leases");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

/// No two clients draw the same number, whatever they do at the same time; and what they report as
/// unused is drawn again.
pub fn blocks_are_disjoint_under_contention(subject: &dyn Subject) {
    const CLIENTS: u64 = 6;
    const DRAWS: usize = 12;
    let namespace = tickets();
    let _first = Drawer::of(subject, &namespace).drawn(1, 0);
    let client = |number: u64| {
        let mut client = Drawer::of(subject, &namespace);
        let (mut used, mut after) = (Vec::new(), 0);
        for turn in 0..DRAWS {
            let draw = asked(1 + number, after);
            let block = client.draw(&draw).expect("the store can draw");
            assert_eq!(client.draw(&draw).expect("again"), block, "a repeated draw");
            assert!(block.positions.start >= after, "blocks of one client rise");
            after = block.positions.end;
            let unused_from = if turn % 3 == 0 { block.positions.start + 1 } else { after };
            if turn % 3 == 0 {
                assert!(client.give_back(draw.token, unused_from).expect("given back"));
                assert!(!client.give_back(draw.token, 0).expect("repeated"));
                after = 0;
            }
            used.extend((block.positions.start..unused_from).map(|it| block.number(it)));
        }
        used
    };
    let mut used: Vec<u64> = thread::scope(|scope| {
        let client = &client;
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| scope.spawn(move || client(number))).collect();
        clients.into_iter().flat_map(|client| client.join().expect("the client conforms")).collect()
    });
    let all = used.len();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used.len(), all, "a number was drawn twice");
    assert!(!used.contains(&1), "the first one was drawn before");
}

/// A draw whose answer was lost gets the same block when it is repeated, on any connection, and a
/// block that was given back can be drawn again once.
pub fn a_repeated_draw_has_the_same_block(subject: &dyn Subject) {
    let namespace = tickets();
    let (mut client, mut other) =
        (Drawer::of(subject, &namespace), Drawer::of(subject, &namespace));
    let first = asked(10, 0);
    let block = client.draw(&first).expect("the store can draw");
    assert_eq!((block.positions.clone(), block.number(0)), (0..10, 1));
    let (token, between) = other.drawn(5, 0);
    assert_eq!(between.positions, 10..15);
    for client in [&mut client, &mut other] {
        assert_eq!(client.draw(&first).expect("again"), block);
    }
    assert!(client.give_back(first.token, 4).expect("given back"));
    assert!(!other.give_back(first.token, 0).expect("repeated"));
    assert_eq!(other.drawn(99, 0).1.positions, 4..10);
    assert!(client.give_back(token, 10).expect("given back"));
    assert_eq!(client.drawn(2, 10).1.positions, 10..12, "what ends at the next one lowers it");
}

/// If a process is copied, the copy that asks first continues with the blocks that both know. The
/// other one has none of them, and cannot give any back either.
pub fn a_copy_of_a_holder_of_blocks_has_none(subject: &dyn Subject) {
    let namespace = tickets();
    let (mut original, mut copy) =
        (Drawer::of(subject, &namespace), Drawer::of(subject, &namespace));
    let first = asked(10, 0);
    assert_eq!(original.draw(&first).expect("the store can draw").positions, 0..10);
    assert_eq!(copy.draw(&first).expect("it was copied").positions, 0..10);
    let again = |want| Draw { before: Some(first.token), ..asked(want, 10) };
    let (confirms, asks) = (again(0), again(5));
    for _ in 0..2 {
        assert!(original.draw(&confirms).expect("confirmed").positions.is_empty());
        let drawn = copy.counter.draw(&mut *copy.holder.store, &asks);
        assert_eq!(drawn.expect("the store answers"), None);
    }
    assert!(!copy.give_back(first.token, 0).expect("nothing is held"));
    let next = Draw { before: Some(confirms.token), unused_from: 4, ..asked(5, 10) };
    assert_eq!(original.draw(&next).expect("the store can draw").positions, 10..15);
    assert!(original.give_back(next.token, 4).expect("given back"));
    assert_eq!(copy.drawn(9, 0).1.positions, 4..13);
}

/// Each fence leaves a different floor, however soon it follows the last, and each counter is
/// refused until it has been fenced, too.
pub fn a_fence_refuses_counters_until_each_is_fenced(subject: &dyn Subject) {
    let namespace = tickets();
    let mut client = Drawer::of(subject, &namespace);
    let (token, _) = client.drawn(10, 0);
    let name = Namespace::for_operator(namespace.name()).expect("a name");
    let mut operator = Holder::of(subject, &name);
    let mut floor = 0;
    for round in 1..=3 {
        let fenced = operator.fence();
        assert!(fenced.floor > floor, "{fenced:?} after {floor}");
        floor = fenced.floor;
        assert_eq!(operator.list(None).floor, floor);
        let swapped = swap(&mut *client.holder.store, COUNTER, change(0, None, "a"));
        assert_eq!(swapped.expect("the store keeps counters").floor, floor);
        for _ in 0..2 {
            let error = client.draw(&asked(1, 0)).expect_err("blocks may be lost");
            assert_eq!(error.kind(), ErrorKind::StoreQuarantined, "{error}");
            let error = client.give_back(token, 0).expect_err("blocks may be lost");
            assert_eq!(error.kind(), ErrorKind::StoreQuarantined, "{error}");
        }
        let above = 1000 * round;
        client.counter.fence_at(&mut *client.holder.store, above, floor).expect("fenced");
        assert!(!client.give_back(token, 0).expect("nothing is held"));
        assert_eq!(client.drawn(3, 0).1.positions, above..above + 3);
    }
    // A missing counter may have existed.
    let settings = CounterSettings::new("other", None, None).expect("a name");
    let mut other = KnownCounter::new(settings);
    let error = other.draw(&mut *client.holder.store, &asked(1, 0)).expect_err("may be lost");
    assert_eq!(error.kind(), ErrorKind::StoreQuarantined, "{error}");
    other.fence_at(&mut *client.holder.store, 0, floor).expect("fenced");
    let block = other.draw(&mut *client.holder.store, &asked(1, 0)).expect("the store can draw");
    let block = block.expect("a new holder");
    assert_eq!(block.number(block.positions.start), 1);
    let error = client.holder.repair(Target::Floor, Some(floor - 1)).expect_err("never falls");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

/// A namespace has leases or counters, never both.
pub fn leases_and_counters_do_not_mix(subject: &dyn Subject) {
    let namespace = tickets();
    let operator = Namespace::for_operator(namespace.name()).expect("a name");
    let mut operator = Holder::of(subject, &operator);
    let token = Token::random();
    let error = operator.store.list(&List { token, node_id: None }).expect_err("not there");
    assert_eq!(error.kind(), ErrorKind::StoreNotInitialized, "{error}");

    let mut client = Drawer::of(subject, &namespace);
    client.drawn(1, 0);
    let error = client.holder.store.acquire(&client.holder.request(1)).expect_err("no node ids");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("no node ids"), "{error}");
    let listed = operator.list(None);
    assert_eq!((listed.layout.as_str(), listed.nodes.len(), listed.floor), ("tickets", 0, 0));
    let error = swap(&mut *operator.store, COUNTER, None).expect_err("an operator's");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");

    let leases = self::namespace(9);
    let mut holder = Holder::of(subject, &leases);
    holder.granted(1);
    let error = swap(&mut *holder.store, COUNTER, None).expect_err("of leases");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let same_name = Namespace::for_tickets(leases.name()).expect("a name");
    let error = swap(&mut *Holder::of(subject, &same_name).store, COUNTER, None);
    let error = error.expect_err("it has leases");
    assert!(error.to_string().contains("has leases, but tickets were requested"), "{error}");
    let same_name = Namespace::new(namespace.name(), &Secret::random()).expect("a name");
    let mut holder = Holder::of(subject, &same_name);
    let error = holder.store.acquire(&holder.request(1)).expect_err("it has tickets");
    assert!(error.to_string().contains("has tickets, but leases were requested"), "{error}");

    for name in ["", "two words", "line\nbreak", &"n".repeat(201)] {
        let error = swap(&mut *client.holder.store, name, None).expect_err("no name");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    for value in ["line\nbreak", "\0", "é", &"v".repeat(Swap::MAX_VALUE + 1)] {
        let error = swap(&mut *client.holder.store, "more", change(0, None, value));
        assert_eq!(error.expect_err("no value").kind(), ErrorKind::InvalidArgument);
    }
}
