//! The store in memory passes the conformance tests.

mod common;

use common::Dial;
use randflake::{ErrorKind, Secret, layout};
use randflake_leases::{
    Acquire, Acquired, Fence, LeaseStore, MemoryStore, Namespace, NodeRanges, Note, Operation,
    Token,
};

struct Memory {
    store: MemoryStore,
    dial: Dial,
}

impl randflake_conformance::Subject for Memory {
    fn client(&self, namespace: &Namespace) -> Box<dyn LeaseStore> {
        Box::new(self.store.namespace(namespace.clone()))
    }

    fn now(&self) -> i64 {
        self.dial.now()
    }

    fn pass(&self, seconds: u32) {
        self.dial.pass(seconds);
    }
}

fn memory(second: i64) -> Memory {
    let namespace = Namespace::new("orders", &Secret::random()).expect("a name");
    let dial = Dial::new(second);
    let store = MemoryStore::with_clock(namespace, dial.clock());
    Memory { store, dial }
}

#[test]
fn passes_the_conformance_tests() {
    randflake_conformance::check_all(&memory(common::START));
    randflake_conformance::check_counters(&memory(common::START));
}

fn ask(memory: &mut Memory, client_now: i64) -> randflake_leases::Result<Acquired> {
    let token = Token::random();
    let request = Acquire { token, want: 1, ttl: 300, client_now, note: Note::default() };
    memory.store.acquire(&request)?.answer_to(token, Operation::Acquire)
}

#[test]
fn leases_end_with_the_lifetime_of_the_format() {
    let mut memory = memory(layout::LIFETIME_END - 10);
    let client_now = memory.dial.now();
    let Ok(Acquired::Granted { leases, .. }) = ask(&mut memory, client_now) else {
        panic!("ten seconds are left");
    };
    assert_eq!(leases[0].end_exclusive, layout::LIFETIME_END);
    assert!(randflake_leases::window(&leases).is_some());

    memory.dial.pass(10);
    for (second, kind) in [
        (layout::LIFETIME_END, ErrorKind::LifetimeOver),
        (9_000_000_000, ErrorKind::LifetimeOver),
        (layout::EPOCH - 1, ErrorKind::ClockBeforeEpoch),
        (-9_000_000_000, ErrorKind::ClockBeforeEpoch),
    ] {
        memory.dial.set(second);
        let error = ask(&mut memory, second).expect_err("no id carries this second");
        assert_eq!(error.kind(), kind, "{second}");
    }
}

#[test]
fn no_lease_begins_before_the_first_second_of_the_format() {
    let mut memory = memory(layout::EPOCH);
    let client_now = memory.dial.now();
    let Ok(Acquired::Granted { leases, .. }) = ask(&mut memory, client_now) else {
        panic!("everything is free");
    };
    assert_eq!(leases[0].start, layout::EPOCH);
}

#[test]
fn a_store_whose_clock_steps_back_grants_no_second_twice() {
    let mut memory = memory(common::START);
    memory.store = memory.store.namespace(
        Namespace::new("one node", &Secret::random())
            .and_then(|namespace| namespace.node_ids(NodeRanges::up_to(0)))
            .expect("in range"),
    );
    let now = memory.dial.now();
    let Ok(Acquired::Granted { leases, .. }) = ask(&mut memory, now) else {
        panic!("everything is free");
    };
    memory.dial.set(now - 10_000);
    let busy = ask(&mut memory, now - 10_000);
    assert!(
        matches!(busy, Ok(Acquired::Busy { free_at, .. }) if free_at == Some(leases[0].end_exclusive)),
        "{busy:?}"
    );
}

#[test]
fn a_fence_on_a_clock_that_steps_back_ends_no_earlier() {
    let mut memory = memory(common::START);
    let mut fence = || {
        let token = Token::random();
        let reply = memory.store.fence(&Fence { token })?;
        memory.dial.set(common::START - 100);
        reply.answer_to(token, Operation::Fence)
    };
    let first = fence().expect("a fence");
    let second = fence().expect("a fence");
    assert_eq!((first.now, second.now), (common::START, common::START - 100));
    assert_eq!((first.floor, first.renew_above), (common::START + 305, common::START + 5));
    // No two fences leave the same floor, because counters recognise fences by it.
    assert_eq!((second.floor, second.renew_above), (first.floor + 1, first.renew_above));
}
