//! What operators see and do.
#![allow(clippy::wildcard_imports, reason = "the helpers of all conformance tests")]

use super::*;
use randflake_leases::bindings::STORED_FORMAT;

/// An operator needs no secret to see each node id that was ever leased, its last holder and its
/// state; creates and leases nothing; and takes nothing from a holder by looking.
pub fn an_operator_sees_every_node_id(subject: &dyn Subject) {
    let namespace = namespace(9);
    let name = Namespace::for_operator(namespace.name()).expect("a name");
    let mut operator = Holder::of(subject, &name);
    let token = Token::random();
    let error = operator.store.list(&List { token, node_id: None }).expect_err("not there");
    assert_eq!(error.kind(), ErrorKind::StoreNotInitialized, "{error}");

    let mut client = Holder::of(subject, &namespace);
    let (token, leases) = client.granted(3);
    assert_eq!(client.give_back(token, &leases[..1], leases[0].start + 1), 1);
    let before = subject.now();
    let listed = operator.list(None);
    assert_eq!(client.list(None).nodes, listed.nodes, "a holder sees the same");
    let known: Vec<_> = listed.nodes.iter().map(|node| (node.lease, node.held)).collect();
    let released = NodeLease { end_exclusive: leases[0].start + 1, ..leases[0] };
    assert_eq!(known, [(released, false), (leases[1], true), (leases[2], true)]);
    assert!(listed.nodes.iter().all(|node| node.note.as_str() == NOTE), "{listed:?}");
    assert_eq!((listed.limits, listed.layout.as_str()), (namespace.limits(), &*namespace.layout()));
    assert_eq!(
        (listed.format, listed.floor, listed.incarnation_changed),
        (STORED_FORMAT, 0, false)
    );
    assert!((before - 1..=subject.now() + 1).contains(&listed.now), "{listed:?}");
    // As of this moment: on a busy machine the others may have ended by now.
    let listed = Listed { now: leases[1].start + i64::from(SKEW), ..listed };
    assert_eq!(listed.state(&listed.nodes[0]), NodeState::Free);
    assert_eq!(listed.state(&listed.nodes[1]), NodeState::Held);
    assert!((1..=i64::from(TTL)).contains(&listed.seconds_left(&listed.nodes[1])), "{listed:?}");
    let counts = Counts { all: 10, held: 2, waiting: 0, free: 8, implausible: 0 };
    assert_eq!(listed.counts(), counts, "{listed:?}");
    client.extended(token, &leases[1..]);

    let one = operator.list(Some(leases[1].node_id));
    assert_eq!(one.nodes.len(), 1, "{one:?}");
    assert_eq!(one.nodes[0].lease.node_id, leases[1].node_id);
    let never = (0..10).find(|node_id| !node_ids(&leases).contains(node_id)).expect("seven");
    assert_eq!(operator.list(Some(never)).nodes, []);

    let request = operator.request(1);
    let refused = operator.store.acquire(&request).expect_err("has no secret");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    let floor = operator.fence().floor;
    assert_eq!(operator.list(None).floor, floor);

    subject.pass(TTL + 1);
    let listed = operator.list(None);
    assert_eq!(listed.state(&listed.nodes[1]), NodeState::Expired);
    assert_eq!(listed.seconds_left(&listed.nodes[1]), 0);
    assert_eq!(listed.counts(), Counts { all: 10, held: 0, waiting: 0, free: 10, implausible: 0 });
}

/// A node id that an operator removes is no longer granted or renewed, no matter who asks, and has
/// no holder once the leases granted before have ended. A node id that is added is granted.
pub fn an_operator_sets_which_node_ids_are_leased(subject: &dyn Subject) {
    let set = |text: &str| text.parse::<NodeRanges>().expect("ranges");
    let namespace = namespace(0).node_ids(set("1-2,5,7")).expect("in range");
    let mut client = Holder::of(subject, &namespace);
    let mut other = Holder::of(subject, &namespace.clone().node_ids(set("0-3")).expect("in range"));
    let (token, leases) = client.granted(3);
    // From the node ids that the namespace has, not those that this client was opened with.
    let (others, fourth) = other.granted(1);
    let mut all = [node_ids(&leases), node_ids(&fourth)].concat();
    all.sort_unstable();
    assert_eq!(all, [1, 2, 5, 7]);
    let request = client.request(1);
    assert!(matches!(client.acquire(&request), Acquired::Busy { free_at: Some(_), .. }));

    let name = Namespace::for_operator(namespace.name()).expect("a name");
    let mut operator = Holder::of(subject, &name);
    let put = |operator: &mut Holder<'_>, text: &str| {
        let request = SetNodeIds { token: Token::random(), node_ids: set(text) };
        let reply = operator.store.set_node_ids(&request).expect("in range");
        reply.answer_to(request.token, Operation::SetNodeIds).expect("to this request").before
    };
    let kept = leases[0].node_id;
    let twice = [set("1-2,5,7"), format!("{kept}").parse().expect("a node id")];
    for before in twice {
        // Even if nothing changes.
        assert_eq!(put(&mut operator, &format!("{kept}")), before);
    }
    let listed = operator.list(None);
    assert_eq!(listed.limits.node_ids, twice[1]);
    let mut out = leases[1..].iter().chain(&fourth);
    assert!(out.all(|lease| lease.end_exclusive <= listed.unleased_from()), "{listed:?}");
    assert_eq!(listed.unleased_from(), listed.furthest(), "what was under way may be granted");
    assert_eq!(listed.counts().all, 1, "{listed:?}");
    assert_eq!((listed.counts().held, listed.counts().free), (1, 0), "{listed:?}");
    // One client that knows of the change, and one that does not.
    let renewal = client.renewal(token, &leases);
    let Renewed::Extended { leases: renewed, .. } = client.renew(&renewal) else {
        panic!("one of them is still leased");
    };
    assert_eq!(node_ids(&renewed), [kept]);
    let renewal = other.renewal(others, &fourth);
    assert!(matches!(other.renew(&renewal), Renewed::Lost { .. }));
    assert_eq!(other.give_back(others, &fourth, fourth[0].start + 1), 1, "but given back");
    assert_eq!(operator.list(None).nodes.len(), 4, "what is known of them stays");

    subject.pass(2 * TTL);
    assert_eq!(node_ids(&other.granted(1).1), [kept]);
    for client in [&mut client, &mut other] {
        let request = client.request(1);
        assert!(matches!(client.acquire(&request), Acquired::Busy { .. }));
    }
    assert_eq!(put(&mut operator, &format!("{kept},8-9")), twice[1]);
    assert_eq!(node_ids(&other.granted(1).1).len(), 1);
    let more = node_ids(&client.granted(1).1);
    assert!((8..=9).contains(&more[0]), "{more:?}");

    let request = SetNodeIds { token: Token::random(), node_ids: NodeRanges::up_to(1024) };
    let posts = Namespace::for_layout(format!("{} posts", namespace.name()), Layout::twitter())
        .and_then(|posts| posts.max_skew(SKEW))
        .expect("a name");
    Holder::of(subject, &posts).granted(1);
    let name = Namespace::for_operator(posts.name()).expect("a name");
    let error = Holder::of(subject, &name).store.set_node_ids(&request).expect_err("too many");
    assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
    assert!(error.to_string().contains("0 to 1023, got 0-1024"), "{error}");
}

/// The end of a dead holder's lease is lowered to the first second that it cannot have stamped, and
/// never raised; from then on others may have the node id. Late requests from the dead holder do
/// nothing.
pub fn a_dead_holder_has_stamped_nothing_after_its_shortened_lease(subject: &dyn Subject) {
    const LONG: u32 = 2 * TTL;
    // The clock of the holder was ahead by the skew, and its stamps by a third of its window.
    const LATEST: u32 = SKEW + (LONG + SKEW) / 3;
    let namespace = namespace(0).max_ttl(LONG).expect("six times the skew");
    let mut client = Holder::of(subject, &namespace);
    let never = NodeLease { node_id: 0, start: 0, end_exclusive: 0 };
    let error = client.release_dead(never, 0).expect_err("nothing is known of it");
    assert!(error.to_string().contains("never leased"), "{error}");

    let mut request = client.request(1);
    request.ttl = LONG;
    let Acquired::Granted { leases, .. } = client.acquire(&request) else {
        panic!("everything is free");
    };
    let name = Namespace::for_operator(namespace.name()).expect("a name");
    let mut operator = Holder::of(subject, &name);
    for off in [3600, -3600] {
        let error = operator.release_dead(leases[0], off).expect_err("one of the clocks is wrong");
        assert_eq!(error.kind(), ErrorKind::ClockSkew, "{error}");
    }
    let shortened = operator.release_dead(leases[0], 0).expect("it is held");
    assert_eq!(shortened.from, leases[0].end_exclusive);
    assert_eq!(
        shortened.to,
        shortened.from.min(shortened.now + i64::from(LATEST) + 1),
        "{shortened:?}"
    );
    let listed = operator.list(Some(0));
    let lease = NodeLease { end_exclusive: shortened.to, ..leases[0] };
    assert_eq!((listed.nodes[0].lease, listed.nodes[0].held), (lease, false));
    let late = client.renewal(request.token, &leases);
    assert!(matches!(client.renew(&late), Renewed::Lost { .. }), "its token is gone");
    assert_eq!(client.give_back(request.token, &leases, 0), 0, "its token is gone");
    let error = operator.release_dead(leases[0], 0).expect_err("twice");
    assert!(error.to_string().contains("no holder"), "{error}");

    let next = loop {
        let request = client.request(1);
        match client.acquire(&request) {
            Acquired::Busy { now, .. } => {
                assert!(now < shortened.to, "{shortened:?}, and busy at {now}");
            }
            Acquired::Granted { leases, .. } => break leases,
            other => panic!("there is no reason for {other:?}"),
        }
        subject.pass(1);
    };
    assert!(next[0].start >= shortened.to, "{shortened:?}, then {next:?}");
    let error = operator.release_dead(leases[0], 0).expect_err("that one lives");
    assert!(error.to_string().contains("another lease"), "{error}");
    // A lease that ends sooner is only released.
    let short = operator.release_dead(next[0], 0).expect("it is held");
    assert_eq!((short.from, short.to), (next[0].end_exclusive, next[0].end_exclusive));
}

/// An end or a floor that a correct clock can have set is left as it is.
pub fn only_an_implausible_end_is_repaired(subject: &dyn Subject) {
    let mut client = Holder::new(subject, 9);
    let (token, leases) = client.granted(1);
    let node_id = leases[0].node_id;
    let fenced = client.fence();
    for bound in [None, Some(0), Some(fenced.now), Some(fenced.floor), Some(i64::MAX)] {
        for target in [Target::Node(node_id), Target::Floor] {
            let error = client.repair(target, bound).expect_err("nothing is wrong");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.to_string().contains("needs no repair"), "{error}");
        }
    }
    let never = Target::Node((node_id + 1) % 10);
    let error = client.repair(never, None).expect_err("nothing is known of it");
    assert!(error.to_string().contains("never leased"), "{error}");
    let listed = client.list(None);
    assert_eq!(
        (listed.floor, listed.nodes[0].lease, listed.nodes[0].held),
        (fenced.floor, leases[0], true)
    );
    assert_eq!(client.give_back(token, &leases, 0), 1, "it is still the token's");
}
