//! After a restore, what was made before belongs to another process. A single test, since it
//! changes the process.

use std::thread;

use randflake::{
    Clock, ErrorKind, Lease, Randflake, Secret, SystemClock, after_restore,
    bindings::{ForkId, Positions},
};

fn soon() -> Lease {
    let now = SystemClock.unix_seconds().expect("after 1970");
    Lease::new(now, now + 3000).expect("a lease")
}

fn kind<T>(result: randflake::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

#[test]
fn nothing_of_before_a_restore_is_used_after_it() {
    let secret = Secret::random();
    let (before, threads) = (ForkId::current(), ForkId::of_threads());
    let manual = Randflake::new(1, &secret).expect("a free node id");
    let own = Randflake::builder(&secret).node_id(2).lease(soon()).build().expect("a free node id");
    let granted = Randflake::builder(&secret).granted_later(1).build().expect("a generator");
    granted.begin(&[3], soon(), 0).expect("the first lease");
    let closed = Randflake::builder(&secret).granted_later(1).build().expect("a generator");
    closed.begin(&[4], soon(), 0).expect("the first lease");
    closed.close();
    let positions = Positions::of(ForkId::current());
    let id = granted.generate().expect("an id"); // others are ahead of it now, in this thread
    manual.generate().expect("an id");

    after_restore();
    assert_ne!(ForkId::current(), before);
    assert_eq!(ForkId::of_threads(), threads, "they go on");
    assert!(!positions.is_of_this_process());
    for flake in [&manual, &own, &granted] {
        assert_eq!(kind(flake.generate()), Some(ErrorKind::Forked));
        assert_eq!(kind(flake.fill_i64(&mut [0; 300])), Some(ErrorKind::Forked));
        assert_eq!(kind(flake.extend_lease(soon().end_exclusive() + 9)), Some(ErrorKind::Forked));
        assert_eq!(flake.close(), None, "nothing is known of what another copy has used");
    }
    assert_eq!(granted.inspect(id).node_id, 3, "it still reads");
    assert_eq!(kind(Randflake::new(1, &secret)), Some(ErrorKind::Forked));
    Randflake::new(5, &secret).expect("another node id").generate().expect("an id");

    // A thread that keeps the earlier lease does not affect the later one.
    assert_eq!(kind(granted.begin_of(before, &[6], soon(), 0)), Some(ErrorKind::Forked));
    granted.begin(&[7], soon(), 0).expect("the first lease after it");
    let lease = granted.lease();
    assert_eq!(kind(granted.begin_of(before, &[6], soon(), 0)), Some(ErrorKind::InvalidLease));
    let late = soon().end_exclusive() + 1000;
    assert_eq!(kind(granted.extend_lease_of(before, late)), Some(ErrorKind::Forked));
    assert_eq!(kind(granted.replace_lease_of(before, &[6], soon(), 0)), Some(ErrorKind::Forked));
    assert_eq!(granted.close_of(before), None);
    assert_eq!(granted.lease(), lease);
    assert_eq!(granted.inspect(granted.generate().expect("an id")).node_id, 7);
    assert_eq!(granted.metrics().ids_generated, 1, "those of before are another process's");
    assert_eq!(kind(closed.begin(&[8], soon(), 0)), Some(ErrorKind::Closed));

    // From several threads at once, each time another process.
    let restored: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(|| {
                let before = ForkId::current();
                after_restore();
                assert_ne!(ForkId::current(), before);
            })
        })
        .collect();
    for thread in restored {
        thread.join().expect("no panic");
    }
    assert_eq!(kind(granted.generate()), Some(ErrorKind::Forked));
    granted.begin(&[9], soon(), 0).expect("once more");
    assert!(granted.close().is_some());
}
