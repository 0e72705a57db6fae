//! Tests that every [store](LeaseStore) of leases must pass, for authors of stores.
//!
//! ```
//! use std::sync::{Arc, atomic::{AtomicI64, Ordering}};
//! use randflake_conformance::{Subject, check_all, check_counters};
//! use randflake_leases::{LeaseStore, MemoryStore, Namespace};
//!
//! struct Memory {
//!     store: MemoryStore,
//!     second: Arc<AtomicI64>,
//! }
//!
//! impl Subject for Memory {
//!     fn client(&self, namespace: &Namespace) -> Box<dyn LeaseStore> {
//!         Box::new(self.store.namespace(namespace.clone()))
//!     }
//!     fn now(&self) -> i64 {
//!         self.second.load(Ordering::Relaxed)
//!     }
//!     fn pass(&self, seconds: u32) {
//!         self.second.fetch_add(seconds.into(), Ordering::Relaxed);
//!     }
//! }
//!
//! # let namespace = Namespace::new("any", &randflake::Secret::random())?;
//! let second = Arc::new(AtomicI64::new(1_763_640_000));
//! let clock = Arc::clone(&second);
//! let store = MemoryStore::with_clock(namespace, move || clock.load(Ordering::Relaxed) * 1_000_000_000);
//! let memory = Memory { store, second };
//! check_all(&memory);
//! check_counters(&memory);
//! # Ok::<(), randflake_leases::Error>(())
//! ```
//!
//! A test panics if the store does not conform. The tests create their own namespaces, with random
//! names, and do not remove them.
#![allow(clippy::missing_panics_doc, reason = "the page says it for all of them")]

mod counters;
mod namespaces;
mod operators;

use std::{collections::BTreeSet, thread};

use randflake::{ErrorKind, Layout, Secret, layout};

use randflake_leases::{
    Acquire, Acquired, Fence, Fenced, LeaseStore, Namespace, NodeLease, NodeRanges, Note,
    Operation, Release, Released, Renew, Renewed, Result, Token,
    bindings::outcome_of,
    operator::{
        Counts, List, Listed, NodeState, ReleaseDead, Repair, SetNodeIds, Shortened, Target,
    },
    window,
};

pub use self::{
    counters::{
        a_copy_of_a_holder_of_blocks_has_none, a_counter_is_replaced_only_if_nothing_has_changed,
        a_fence_refuses_counters_until_each_is_fenced, a_repeated_draw_has_the_same_block,
        blocks_are_disjoint_under_contention, every_counter_is_listed,
        leases_and_counters_do_not_mix,
    },
    namespaces::{
        a_second_secret_is_refused, invalid_requests_are_refused, namespaces_are_independent,
        the_saved_limits_apply,
    },
    operators::{
        a_dead_holder_has_stamped_nothing_after_its_shortened_lease,
        an_operator_sees_every_node_id, an_operator_sets_which_node_ids_are_leased,
        only_an_implausible_end_is_repaired,
    },
};

/// A store under test.
pub trait Subject: Sync {
    /// Returns a new client of the store, whose namespace does not exist yet.
    fn client(&self, namespace: &Namespace) -> Box<dyn LeaseStore>;

    /// Returns the unix second on the store's clock.
    fn now(&self) -> i64;

    /// Lets this many seconds pass on the store's clock, by setting it or by sleeping.
    fn pass(&self, seconds: u32);
}

/// Runs every test of leases.
pub fn check_all(subject: &dyn Subject) {
    for test in ALL {
        test(subject);
    }
}

/// Runs every test of counters, for a store that has [`LeaseStore::swap`].
pub fn check_counters(subject: &dyn Subject) {
    for test in COUNTERS {
        test(subject);
    }
}

/// Every test of counters.
pub const COUNTERS: &[fn(&dyn Subject)] = &[
    a_counter_is_replaced_only_if_nothing_has_changed,
    blocks_are_disjoint_under_contention,
    a_repeated_draw_has_the_same_block,
    a_copy_of_a_holder_of_blocks_has_none,
    a_fence_refuses_counters_until_each_is_fenced,
    every_counter_is_listed,
    leases_and_counters_do_not_mix,
];

/// Every test of leases, in the order of this page.
pub const ALL: &[fn(&dyn Subject)] = &[
    grants_what_was_asked_for,
    intervals_are_disjoint_under_contention,
    a_repeated_request_has_the_same_answer,
    renewal_raises_the_end_for_the_token_alone,
    a_late_renewal_counts_until_another_took_the_node,
    a_renewal_reports_lost_nodes,
    of_two_copies_that_name_the_next_token_one_goes_on,
    a_release_keeps_every_stamped_second,
    a_fence_refuses_new_leases,
    exhaustion_reports_the_next_free_time,
    grants_what_is_left,
    a_client_with_a_wrong_clock_is_refused,
    a_second_secret_is_refused,
    namespaces_are_independent,
    the_saved_limits_apply,
    invalid_requests_are_refused,
    replies_are_bound_to_their_requests,
    an_operator_sees_every_node_id,
    an_operator_sets_which_node_ids_are_leased,
    a_dead_holder_has_stamped_nothing_after_its_shortened_lease,
    only_an_implausible_end_is_repaired,
];

/// Largest skew, in seconds, of the namespaces here.
const SKEW: u32 = 1;
/// Lease, in seconds: as short as the skew allows, for stores whose time cannot be set.
const TTL: u32 = 6;
/// How often a client asks a store that is unavailable.
const TRIES: usize = 30;
/// The note of the holders here.
const NOTE: &str = "conformance:1";

/// A holder of leases, which checks every reply it gets.
struct Holder<'a> {
    store: Box<dyn LeaseStore>,
    subject: &'a dyn Subject,
}

/// Repeats a request while the store is unavailable, which it may be to any of many clients: "it
/// changed during each attempt; try again". A repeated request is answered as if it had come once.
fn until_available<T>(mut ask: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..TRIES {
        match ask() {
            Err(error) if error.kind() == ErrorKind::StoreUnavailable => {}
            answer => return answer,
        }
    }
    ask()
}

fn namespace(max_node_id: u32) -> Namespace {
    let name = format!("conformance {:?}", Token::random());
    Namespace::new(name, &Secret::random())
        .and_then(|namespace| namespace.max_skew(SKEW))
        .and_then(|namespace| namespace.node_ids(NodeRanges::up_to(max_node_id)))
        .expect("within the limits")
}

impl<'a> Holder<'a> {
    fn of(subject: &'a dyn Subject, namespace: &Namespace) -> Self {
        let store = subject.client(namespace);
        Self { store, subject }
    }

    /// Makes its own namespace.
    fn new(subject: &'a dyn Subject, max_node_id: u32) -> Self {
        Self::of(subject, &namespace(max_node_id))
    }

    fn request(&self, want: u32) -> Acquire {
        Acquire {
            token: Token::random(),
            want,
            ttl: TTL,
            client_now: self.subject.now(),
            note: Note::new(NOTE),
        }
    }

    fn acquire(&mut self, request: &Acquire) -> Acquired {
        until_available(|| outcome_of(request, self.store.acquire(request)))
            .expect("the store can acquire")
    }

    fn renew(&mut self, request: &Renew) -> Renewed {
        until_available(|| outcome_of(request, self.store.renew(request)))
            .expect("the store can renew")
    }

    fn release(&mut self, request: &Release) -> Released {
        outcome_of(request, self.store.release(request)).expect("the store can release")
    }

    fn fence(&mut self) -> Fenced {
        let request = Fence { token: Token::random() };
        outcome_of(&request, self.store.fence(&request)).expect("the store can fence")
    }

    fn list(&mut self, node_id: Option<u32>) -> Listed {
        let request = List { token: Token::random(), node_id };
        outcome_of(&request, self.store.list(&request)).expect("the store can list")
    }

    fn repair(&mut self, target: Target, bound: Option<i64>) -> Result<Shortened> {
        let (token, client_now) = (Token::random(), self.subject.now());
        let request = Repair { token, target, bound, client_now };
        outcome_of(&request, self.store.repair(&request))
    }

    fn release_dead(&mut self, lease: NodeLease, off: i64) -> Result<Shortened> {
        let (token, client_now) = (Token::random(), self.subject.now() + off);
        let request = ReleaseDead { token, lease, client_now };
        outcome_of(&request, self.store.release_dead(&request))
    }

    /// Acquires this many under its own token, and insists.
    fn granted(&mut self, want: u32) -> (Token, Vec<NodeLease>) {
        let request = self.request(want);
        match self.acquire(&request) {
            Acquired::Granted { leases, .. } => (request.token, leases),
            other => panic!("node ids are free, yet: {other:?}"),
        }
    }

    fn renewal(&self, token: Token, leases: &[NodeLease]) -> Renew {
        Renew {
            token,
            node_ids: node_ids(leases),
            ttl: TTL,
            client_now: self.subject.now(),
            next: None,
        }
    }

    /// Renews, and insists.
    fn extended(&mut self, token: Token, leases: &[NodeLease]) -> Vec<NodeLease> {
        let request = self.renewal(token, leases);
        match self.renew(&request) {
            Renewed::Extended { leases, .. } => leases,
            other => panic!("the lease is the token's, yet: {other:?}"),
        }
    }

    fn give_back(&mut self, token: Token, leases: &[NodeLease], used_until: i64) -> u32 {
        let node_ids = node_ids(leases);
        let request = Release { token, node_ids, used_until };
        self.release(&request).count
    }
}

fn node_ids(leases: &[NodeLease]) -> Vec<u32> {
    leases.iter().map(|lease| lease.node_id).collect()
}

/// A grant has the requested number of node ids, each once, in range and sorted. A client whose
/// clock is behind by the whole skew can use it at once, and it lasts as long as requested.
pub fn grants_what_was_asked_for(subject: &dyn Subject) {
    for (want, max_node_id) in [(1, 0), (1, layout::MAX_NODE_ID), (5, 4), (100, 1000)] {
        let mut client = Holder::new(subject, max_node_id);
        let before = subject.now();
        let (_, leases) = client.granted(want);
        let after = subject.now();
        let case = format!("{want} of 0..={max_node_id}: {leases:?}");
        assert_eq!(leases.len(), want as usize, "{case}");
        assert!(leases.is_sorted_by(|a, b| a.node_id < b.node_id), "{case}");
        assert!(leases.iter().all(|lease| lease.node_id <= max_node_id), "{case}");
        let window = window(&leases).expect("a second that all of them cover");
        assert!(window.start() <= after - i64::from(SKEW), "{case}");
        let ends = before + i64::from(TTL)..=after + i64::from(TTL);
        assert!(ends.contains(&window.end_exclusive()), "{case}");
    }
}

/// Whatever clients do at the same time, the seconds they may stamp with a node id are disjoint.
pub fn intervals_are_disjoint_under_contention(subject: &dyn Subject) {
    const CLIENTS: usize = 8;
    const LIVES: usize = 8;
    let namespace = namespace(11);
    let client = || {
        let mut client = Holder::of(subject, &namespace);
        let mut stamped = Vec::new();
        let mut lives = 0;
        while lives < LIVES {
            let leases = a_life(&mut client);
            if leases.is_empty() {
                subject.pass(1);
            } else {
                lives += 1;
                stamped.extend(leases);
            }
        }
        stamped
    };
    // What the clients may have stamped, node id by node id.
    let mut stamped: Vec<NodeLease> = thread::scope(|scope| {
        let clients = [(); CLIENTS].map(|()| scope.spawn(client));
        let stamped = clients.map(|client| client.join().expect("the client conforms"));
        stamped.into_iter().flatten().collect()
    });
    stamped.retain(|lease| lease.start < lease.end_exclusive);
    stamped.sort_unstable();
    for pair in stamped.windows(2) {
        let disjoint = pair[0].node_id != pair[1].node_id || pair[0].end_exclusive <= pair[1].start;
        assert!(disjoint, "two may stamp the same seconds: {pair:?}");
    }
}

/// Acquires, may renew, repeats requests, and then releases or disappears. Returns the seconds it
/// may have stamped, as known at its end.
fn a_life(client: &mut Holder<'_>) -> Vec<NodeLease> {
    let [chance, renews, gives_back, ..] = *Token::random().as_bytes();
    // Each one that does not release blocks its node id for a whole lease.
    let (renews, gives_back) = (renews < 128, gives_back < 224);
    let request = client.request(1 + u32::from(chance % 3));
    let Acquired::Granted { mut leases, .. } = client.acquire(&request) else {
        return Vec::new();
    };
    let token = request.token;
    if renews {
        let renewal = client.renewal(token, &leases);
        let _unheard = client.renew(&renewal);
        if let Renewed::Extended { leases: longer, .. } = client.renew(&renewal) {
            for lease in &mut leases {
                if let Some(renewed) = longer.iter().find(|it| it.node_id == lease.node_id) {
                    assert!(renewed.end_exclusive >= lease.end_exclusive, "an end fell");
                    lease.end_exclusive = renewed.end_exclusive;
                }
            }
        }
    }
    if gives_back {
        let used_until = leases[0].start + i64::from(chance / 4 % 3);
        client.give_back(token, &leases, used_until);
        client.give_back(token, &leases, 0); // late and twice: must change nothing
        for lease in &mut leases {
            lease.end_exclusive = used_until.clamp(lease.start, lease.end_exclusive);
        }
    }
    leases
}

/// A request that arrives twice is answered as if it had arrived once; one that arrives after the
/// lease was released takes nothing from another holder.
pub fn a_repeated_request_has_the_same_answer(subject: &dyn Subject) {
    let mut client = Holder::new(subject, layout::MAX_NODE_ID);
    for want in [1, 3] {
        let request = client.request(want);
        let Acquired::Granted { leases, .. } = client.acquire(&request) else {
            panic!("node ids are free");
        };
        let again = client.acquire(&request);
        assert!(
            matches!(&again, Acquired::Granted { leases: again, .. } if *again == leases),
            "{leases:?}, and then {again:?}"
        );
        subject.pass(1);
        let longer = client.extended(request.token, &leases);
        assert_eq!(client.extended(request.token, &leases)[0].start, longer[0].start);
        let again = client.acquire(&request);
        assert!(
            matches!(&again, Acquired::Granted { leases: again, .. } if node_ids(again) == node_ids(&leases)),
            "a late repeat: {leases:?}, and then {again:?}"
        );
    }

    // There is only one node id: the second client must not get the first one's.
    let mut client = Holder::new(subject, 0);
    let first = client.request(1);
    assert!(matches!(client.acquire(&first), Acquired::Granted { .. }));
    let (second, repeat) = (client.request(1), client.acquire(&first));
    assert!(matches!(repeat, Acquired::Granted { .. }), "{repeat:?}");
    assert!(matches!(client.acquire(&second), Acquired::Busy { .. }));
}

/// Only the token that holds a node id renews it; an end never falls.
pub fn renewal_raises_the_end_for_the_token_alone(subject: &dyn Subject) {
    let mut client = Holder::new(subject, 0);
    let (token, leases) = client.granted(1);
    subject.pass(2);
    let longer = client.extended(token, &leases);
    assert_eq!(longer[0].start, leases[0].start);
    // The server's clock may be known only from the last answer, and the time since then only to
    // within a second.
    assert!(longer[0].end_exclusive > leases[0].end_exclusive, "{leases:?} to {longer:?}");

    let mut long = client.renewal(token, &leases);
    long.ttl = 3 * TTL;
    let Renewed::Extended { leases: longest, .. } = client.renew(&long) else {
        panic!("the lease is the token's");
    };
    assert_eq!(client.extended(token, &leases), longest, "a shorter renewal changes nothing");

    let stranger = client.renewal(Token::random(), &leases);
    assert!(matches!(client.renew(&stranger), Renewed::Lost { .. }));
}

/// A lease can be renewed after its end until another holder takes the node id, and never after
/// that.
pub fn a_late_renewal_counts_until_another_took_the_node(subject: &dyn Subject) {
    let mut client = Holder::new(subject, 0);
    let (token, leases) = client.granted(1);
    subject.pass(TTL + 1);
    let late = client.extended(token, &leases);
    assert!(late[0].end_exclusive > subject.now(), "after the end, but no holder took it");

    subject.pass(TTL + 1);
    let (next, next_leases) = client.granted(1);
    assert!(next_leases[0].start >= late[0].end_exclusive, "{late:?} then {next_leases:?}");
    let too_late = client.renewal(token, &leases);
    assert!(matches!(client.renew(&too_late), Renewed::Lost { .. }));
    let unharmed = client.extended(next, &next_leases);
    assert_eq!(unharmed[0].start, next_leases[0].start);
}

/// A renewal extends only the node ids that still belong to the token and that the request names.
pub fn a_renewal_reports_lost_nodes(subject: &dyn Subject) {
    let mut client = Holder::new(subject, layout::MAX_NODE_ID);
    let (token, leases) = client.granted(3);
    assert_eq!(client.give_back(token, &leases[1..2], leases[1].start), 1);
    let left = client.extended(token, &leases);
    assert_eq!(node_ids(&left), [leases[0].node_id, leases[2].node_id]);

    subject.pass(2);
    let one = client.extended(token, &leases[..1]);
    assert_eq!(node_ids(&one), [leases[0].node_id]);
    let lost = client.renewal(token, &leases[1..2]);
    assert!(matches!(client.renew(&lost), Renewed::Lost { .. }));
}

/// Each renewal may give the holder another token. A repeated renewal finds it, and a copy of the
/// holder that knows only the old token has lost the lease.
pub fn of_two_copies_that_name_the_next_token_one_goes_on(subject: &dyn Subject) {
    let mut client = Holder::new(subject, 2);
    let (first, leases) = client.granted(2);
    let [second, third, other] = [(); 3].map(|()| Token::random());
    let renewal = |client: &mut Holder<'_>, token, next| {
        let request = Renew { next: Some(next), ..client.renewal(token, &leases) };
        let renewed = client.renew(&request);
        // The next request may come through another client, which does not remember what this one
        // wrote.
        for token in [token, next] {
            client.store.forget(token);
        }
        match renewed {
            Renewed::Extended { leases, .. } => leases,
            Renewed::Lost { .. } => vec![],
            Renewed::ClockSkew { .. } => panic!("the clock is right"),
        }
    };
    let done = renewal(&mut client, first, second);
    assert_eq!(node_ids(&done), node_ids(&leases));
    // Repeated by a copy, it moves no end: only one of them renews with the next token.
    subject.pass(1);
    for _ in 0..2 {
        assert_eq!(renewal(&mut client, first, second), done);
        assert_eq!(renewal(&mut client, first, other), [], "a copy");
    }
    let next = renewal(&mut client, second, third);
    assert_eq!(node_ids(&next), node_ids(&leases));
    assert!(next[0].end_exclusive > done[0].end_exclusive);
    assert_eq!(renewal(&mut client, first, second), [], "late");
    let used_until = leases[0].start;
    for (token, count) in [(first, 0), (second, 0), (other, 0), (third, 2), (third, 0)] {
        assert_eq!(client.give_back(token, &leases, used_until), count);
    }
}

/// A release frees the node id at once, from the first second that was not stamped. That second
/// lies within the lease, whatever the request says. A release does nothing to a lease that another
/// holder has by now.
pub fn a_release_keeps_every_stamped_second(subject: &dyn Subject) {
    let mut client = Holder::new(subject, 0);
    let (mut token, mut leases) = client.granted(1);
    for (used_until, what) in [(1, "inside"), (-1000, "before"), (1000, "after")] {
        let lease = leases[0];
        let used_until = lease.start + used_until;
        assert_eq!(client.give_back(Token::random(), &leases, used_until), 0, "{what}: a stranger");
        assert_eq!(client.give_back(token, &leases, used_until), 1, "{what}");
        assert_eq!(client.give_back(token, &leases, used_until), 0, "{what}: twice");
        let renewal = client.renewal(token, &leases);
        assert!(matches!(client.renew(&renewal), Renewed::Lost { .. }), "{what}");

        let unused_from = used_until.clamp(lease.start, lease.end_exclusive);
        if unused_from > subject.now() {
            let request = client.request(1);
            let busy = client.acquire(&request);
            assert!(matches!(busy, Acquired::Busy { .. }), "{what}: {busy:?}");
            subject.pass(TTL + 1);
        }
        let released = token;
        (token, leases) = client.granted(1);
        assert!(leases[0].start >= unused_from, "{what}: {lease:?}, then {leases:?}");
        assert!(leases[0].start <= subject.now(), "{what}: usable at once");
        assert_eq!(client.give_back(released, &leases, 0), 0, "{what}: too late");
        assert_eq!(client.extended(token, &leases)[0].node_id, leases[0].node_id, "{what}");
    }
}

/// After a fence nothing is granted until every lease that may have been forgotten has ended;
/// leases that are clearly running are renewed, others are not.
pub fn a_fence_refuses_new_leases(subject: &dyn Subject) {
    let namespace = namespace(9).max_ttl(TTL).expect("six times the skew");
    let mut client = Holder::of(subject, &namespace);
    let (over, over_leases) = client.granted(1);
    subject.pass(TTL - SKEW); // what ends within the skew has clearly ended
    let (running, running_leases) = client.granted(1);
    let before = subject.now();
    let fenced = client.fence();
    // For stores where another server may continue to grant for a while.
    let last_grant = client.list(None).last_grant;
    let span = i64::from(TTL + SKEW + last_grant);
    assert!((before + span..=subject.now() + span).contains(&fenced.floor), "{fenced:?}");
    assert!(fenced.renew_above >= before + i64::from(SKEW + last_grant), "{fenced:?}");
    let again = client.fence();
    assert!(again.floor > fenced.floor, "{again:?}: two fences leave the same floor");
    assert!(again.floor <= (fenced.floor + 1).max(subject.now() + span), "{again:?}");

    let request = client.request(1);
    let refused = client.acquire(&request);
    assert!(
        matches!(refused, Acquired::Quarantined { until, .. } if until == again.floor),
        "{refused:?}"
    );
    let renewal = client.renewal(over, &over_leases);
    assert!(matches!(client.renew(&renewal), Renewed::Lost { .. }), "it may have been taken");
    if last_grant == 0 {
        client.extended(running, &running_leases);
    }

    let left = u32::try_from(again.floor - subject.now()).unwrap_or(0);
    subject.pass(left); // and not a second more, if time is set
    let (_, leases) = client.granted(9);
    assert!(leases.iter().all(|lease| lease.start >= again.floor), "{leases:?}");
}

/// When every node id is taken, nothing is granted, and the answer says until when.
pub fn exhaustion_reports_the_next_free_time(subject: &dyn Subject) {
    let namespace = namespace(3);
    let mut clients = [(); 4].map(|()| Holder::of(subject, &namespace));
    let mut leases = Vec::new();
    for (number, client) in clients.iter_mut().enumerate() {
        subject.pass(u32::from(number == 3));
        leases.extend(client.granted(1).1);
    }
    let distinct: BTreeSet<_> = node_ids(&leases).into_iter().collect();
    assert_eq!(distinct.len(), 4, "{leases:?}");

    let client = &mut clients[0];
    let first_end = leases.iter().map(|lease| lease.end_exclusive).min().expect("four");
    let mut request = client.request(1);
    match client.acquire(&request) {
        Acquired::Busy { free_at, .. } => {
            assert!(free_at.is_none_or(|second| second == first_end), "{free_at:?}: {leases:?}");
        }
        other => panic!("everything is taken, yet: {other:?}"),
    }
    // Repeats the same request until it is granted: not before the first end, and soon after it.
    for _ in 0..=TTL {
        request.client_now = subject.now();
        if let Acquired::Granted { leases, .. } = client.acquire(&request) {
            assert!(leases[0].start <= subject.now(), "usable at once: {leases:?}");
            assert!(subject.now() >= first_end, "{leases:?}");
            return;
        }
        subject.pass(1);
    }
    panic!("still nothing at {}, with {leases:?}", subject.now());
}

/// If fewer node ids are free than wanted, those are granted; a repeat gets no more.
pub fn grants_what_is_left(subject: &dyn Subject) {
    let mut client = Holder::new(subject, 3);
    let (_, three) = client.granted(3);
    let request = client.request(3);
    let Acquired::Granted { leases: rest, .. } = client.acquire(&request) else {
        panic!("one is free");
    };
    assert_eq!(rest.len(), 1, "{three:?} and {rest:?}");
    assert!(!node_ids(&three).contains(&rest[0].node_id));
    subject.pass(TTL);
    let Acquired::Granted { leases: again, .. } = client.acquire(&request) else {
        panic!("the token holds one");
    };
    assert_eq!(node_ids(&again), node_ids(&rest), "a repeat is no further request");
}

/// A client whose clock differs by more than the largest skew gets nothing and is told the time; a
/// client within the skew is granted a lease.
pub fn a_client_with_a_wrong_clock_is_refused(subject: &dyn Subject) {
    let mut client = Holder::new(subject, layout::MAX_NODE_ID);
    let (token, leases) = client.granted(1);
    for off in [i64::from(SKEW) + 2, 3600, -i64::from(SKEW) - 2, -3600, i64::MIN / 2, i64::MAX / 2]
    {
        let mut request = client.request(1);
        request.client_now += off;
        let refused = client.acquire(&request);
        assert!(
            matches!(refused, Acquired::ClockSkew { store_now, max_skew: SKEW } if store_now.abs_diff(subject.now()) <= 1),
            "{off}: {refused:?}"
        );
        let mut renewal = client.renewal(token, &leases);
        renewal.client_now += off;
        let refused = client.renew(&renewal);
        assert!(matches!(refused, Renewed::ClockSkew { .. }), "{off}: {refused:?}");
    }
    let mut request = client.request(1);
    request.client_now -= i64::from(SKEW) - 1;
    assert!(matches!(client.acquire(&request), Acquired::Granted { .. }));
    client.extended(token, &leases);
}

/// Every reply carries the token and the operation of its request.
pub fn replies_are_bound_to_their_requests(subject: &dyn Subject) {
    let mut client = Holder::new(subject, layout::MAX_NODE_ID);
    let request = client.request(1);
    let reply = client.store.acquire(&request).expect("the store can acquire");
    assert_eq!((reply.token, reply.operation), (request.token, Operation::Acquire));
    let error = reply.answer_to(Token::random(), Operation::Acquire);
    assert_eq!(error.map_err(|error| error.kind()), Err(ErrorKind::StoreUnavailable));

    let renewal = client.renewal(request.token, &[]);
    let reply = client.store.renew(&renewal).expect("the store can renew");
    assert_eq!((reply.token, reply.operation), (request.token, Operation::Renew));
    let release = Release { token: request.token, node_ids: Vec::new(), used_until: 0 };
    let reply = client.store.release(&release).expect("the store can release");
    assert_eq!((reply.token, reply.operation), (request.token, Operation::Release));
    let fence = Fence { token: Token::random() };
    let reply = client.store.fence(&fence).expect("the store can fence");
    assert_eq!((reply.token, reply.operation), (fence.token, Operation::Fence));
}
