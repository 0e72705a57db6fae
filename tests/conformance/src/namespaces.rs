//! Namespaces, their limits, and invalid requests.
#![allow(clippy::wildcard_imports, reason = "the helpers of all conformance tests")]

use super::*;

/// A namespace keeps its first secret and layout, and says so without showing either secret.
pub fn a_second_secret_is_refused(subject: &dyn Subject) {
    let ours = namespace(9);
    let (token, leases) = Holder::of(subject, &ours).granted(1);
    let secret = Secret::random();
    let theirs = Namespace::new(ours.name(), &secret)
        .and_then(|namespace| namespace.max_skew(SKEW)?.node_ids(NodeRanges::up_to(9)))
        .expect("within the limits");
    let mut client = Holder::of(subject, &theirs);
    let refusals = [
        client.store.acquire(&client.request(1)).map(drop),
        client.store.renew(&client.renewal(token, &leases)).map(drop),
        client
            .store
            .release(&Release { token, node_ids: node_ids(&leases), used_until: 0 })
            .map(drop),
    ];
    for refusal in refusals {
        let error = refusal.expect_err("another secret");
        assert_eq!(error.kind(), ErrorKind::SecretMismatch, "{error}");
        assert!(error.to_string().contains("another namespace"), "names the way out: {error}");
        assert!(!error.to_string().contains(&secret.to_hex()), "shows a secret");
    }

    let theirs = Namespace::for_layout(ours.name(), Layout::twitter())
        .and_then(|namespace| namespace.max_skew(SKEW)?.node_ids(NodeRanges::up_to(9)))
        .expect("within the limits");
    let client = &mut Holder::of(subject, &theirs);
    let request = client.request(1);
    let error = client.store.acquire(&request).expect_err("another layout");
    assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
    assert!(error.to_string().contains("the layout randflake, not twitter"), "{error}");
    Holder::of(subject, &ours).extended(token, &leases);
}

/// The node ids of two namespaces are independent.
pub fn namespaces_are_independent(subject: &dyn Subject) {
    let mut one = Holder::new(subject, 0);
    let mut other = Holder::new(subject, 0);
    let (token, leases) = one.granted(1);
    other.granted(1);
    let renewal = other.renewal(token, &leases);
    assert!(matches!(other.renew(&renewal), Renewed::Lost { .. }));
    assert_eq!(other.give_back(token, &leases, 0), 0);
    other.fence();
    one.extended(token, &leases);
    assert_eq!(one.give_back(token, &leases, 0), 1);
    one.granted(1);

    // All that exist, so that every row is looked at.
    for mut client in [Holder::new(subject, 99), Holder::new(subject, 99)] {
        assert_eq!(client.granted(100).1.len(), 100);
    }
}

/// No lease is longer than the namespace has allowed since it was created, whatever a later client
/// asks for.
pub fn the_saved_limits_apply(subject: &dyn Subject) {
    let short = namespace(9).max_ttl(TTL).expect("six times the skew");
    Holder::of(subject, &short).granted(1);
    let long = short.max_ttl(600).expect("in range");
    let mut client = Holder::of(subject, &long);
    let mut request = client.request(1);
    request.ttl = 600;
    let Acquired::Granted { leases, .. } = client.acquire(&request) else {
        panic!("node ids are free");
    };
    assert!(leases[0].end_exclusive <= subject.now() + i64::from(TTL), "{leases:?}");
    let mut renewal = client.renewal(request.token, &leases);
    renewal.ttl = 600;
    let Renewed::Extended { leases, .. } = client.renew(&renewal) else {
        panic!("the lease is the token's");
    };
    assert!(leases[0].end_exclusive <= subject.now() + i64::from(TTL), "{leases:?}");
}

/// Requests that no store can grant are errors that name the bound.
pub fn invalid_requests_are_refused(subject: &dyn Subject) {
    let mut client = Holder::new(subject, layout::MAX_NODE_ID);
    let good = client.request(1);
    for (want, ttl, bound) in [
        (0, TTL, "16384"),
        (16_385, TTL, "16384"),
        (u32::MAX, TTL, "16384"),
        (1, 0, "6"),
        (1, TTL - 1, "6"),
    ] {
        let request = Acquire { want, ttl, ..good };
        let error = client.store.acquire(&request).expect_err("nonsense");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{want} for {ttl} s: {error}");
        assert!(error.to_string().contains(bound), "{error}");
    }
    let (token, leases) = client.granted(1);
    let mut renewal = client.renewal(token, &leases);
    renewal.ttl = TTL - 1;
    let error = client.store.renew(&renewal).expect_err("too short");
    assert_eq!(error.code(), "INVALID_ARGUMENT");
    renewal.ttl = u32::MAX;
    assert!(matches!(client.renew(&renewal), Renewed::Extended { .. }));
}
