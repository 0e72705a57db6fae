//! Forked children: they may read ids and make new generators, but never use the parent's. This
//! process has a single thread until the last check.

#![allow(clippy::print_stdout, reason = "what is skipped")]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[path = "common/child.rs"]
mod child;

#[cfg(target_os = "linux")]
fn main() {
    if linux::earlier_handler() {
        return;
    }
    // An emulator does not wipe pages, so only handlers show a fork, one after another.
    let is_emulated = std::env::var_os("RANDFLAKE_TEST_EMULATED").is_some();
    let forks: &[child::Fork] =
        if is_emulated { &[child::libc_fork] } else { &[child::libc_fork, child::raw_clone] };
    for &fork in forks {
        linux::children_have_nothing_of_their_parent(fork);
        linux::children_have_no_snowflakes_of_their_parent(fork);
        linux::grandchildren_have_nothing_of_either(fork);
        linux::children_begin_after_the_second_of_the_fork(fork);
        linux::siblings_have_other_initial_sequences(fork);
        linux::children_lease_no_node_of_their_parent(fork);
        linux::children_continue_with_their_own_leases(fork);
        linux::each_process_begins_with_a_lease_of_its_own(fork);
        linux::a_fork_inside_a_call_hands_its_ids_to_one_process(fork);
    }
    if is_emulated {
        println!("SKIPPED under an emulator: raw clones, and forks that earlier handlers know of");
    } else {
        linux::a_generator_of_an_earlier_fork_handler_works();
    }
    linux::a_fork_among_threads_leaves_no_lock_behind();
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "fork")]
mod linux {
    use std::{
        io::{Read, Write},
        panic::{AssertUnwindSafe, catch_unwind},
        process::Command,
        sync::{
            OnceLock,
            atomic::{AtomicBool, AtomicI32, Ordering},
        },
        thread,
        time::Duration,
    };

    use randflake::{
        Builder, Call, Clock, Encrypted, ErrorKind, Id, Layout, Lease, NodeIds, Randflake, Result,
        Secret, Snowflake, SystemClock,
    };

    use crate::child::{Fork, in_child, libc_fork};

    const NANOS: i64 = 1_000_000_000;

    fn kind<T>(result: Result<T>) -> Result<(), ErrorKind> {
        result.map(drop).map_err(|error| error.kind())
    }

    fn builder(secret: &Secret) -> Builder<Encrypted> {
        Randflake::builder(secret).restart_safe(false)
    }

    fn assert_forked<C: Clock>(flake: &Randflake<C>, known: Id) {
        let parts = flake.inspect(known);
        for _ in 0..3 {
            assert_eq!(kind(flake.generate()), Err(ErrorKind::Forked));
            let mut ids = [-1; 10];
            assert_eq!(kind(flake.fill_i64(&mut ids)), Err(ErrorKind::Forked));
            assert_eq!(ids, [0; 10]);
            assert_eq!(kind(flake.ready_in()), Err(ErrorKind::Forked));
        }
        let end = flake.lease().map_or(2_000_000_000, |lease| lease.end_exclusive() + 1);
        assert_eq!(kind(flake.extend_lease(end)), Err(ErrorKind::Forked));
        if let Some(lease) = flake.lease() {
            let replaced = kind(flake.replace_lease(&[9], lease, u32::MAX));
            assert!(matches!(replaced, Err(ErrorKind::Forked | ErrorKind::InvalidLease)));
        }
        assert_eq!(flake.close(), None);
        // Reading ids still works.
        assert_eq!(flake.inspect(known), parts);
        assert_eq!(flake.encrypt(flake.decrypt(known)), known);
    }

    pub(crate) fn children_have_nothing_of_their_parent(fork: Fork) {
        let secret = Secret::random();
        let now = SystemClock.now().expect("a time");
        let lease = Lease::new(now / 1_000_000_000, now / 1_000_000_000 + 100).expect("a lease");
        let manual = builder(&secret).node_ids([1, 2]).build().expect("free nodes");
        let leased = builder(&secret).node_id(3).lease(lease).build().expect("a free node");
        let granted = builder(&secret).node_id(4).granted_lease(lease).build().expect("valid");
        let injected = builder(&secret).node_id(5).clock(move || now).build().expect("valid");
        // Some ids, so that a child could continue with what is buffered.
        let known = [
            manual.generate().expect("an id"),
            leased.generate().expect("an id"),
            granted.generate().expect("an id"),
            injected.generate().expect("an id"),
        ];

        in_child(fork, || {
            // Before anything else is called.
            assert_forked(&manual, known[0]);
            assert_forked(&leased, known[1]);
            assert_forked(&granted, known[2]);
            assert_forked(&injected, known[3]);
            for node_ids in [&[1, 2][..], &[2, 1], &[1], &[2, 7]] {
                let again = builder(&secret).node_ids(node_ids.iter().copied()).build();
                assert_eq!(kind(again), Err(ErrorKind::Forked), "{node_ids:?}");
            }
            let other = builder(&secret).node_id(8).build().expect("a free node");
            let id = other.generate().expect("an id");
            assert_eq!(other.inspect(id).node_id, 8);
            assert_forked(&manual, known[0]);
        });
        in_child(fork, || {
            // Making the same one is the first thing this child does.
            let again = builder(&secret).node_ids([1, 2]).build();
            assert_eq!(kind(again), Err(ErrorKind::Forked));
            assert_forked(&manual, known[0]);
        });

        // The parent continues, in the same second and the same Term.
        for (flake, known) in [(&manual, known[0]), (&leased, known[1]), (&granted, known[2])] {
            let next = flake.generate().expect("the parent has lost nothing");
            assert!(flake.decrypt(next) > flake.decrypt(known));
        }
        injected.generate().expect("the parent has lost nothing");
        leased.extend_lease(lease.end_exclusive() + 100).expect("the parent's lease");
        builder(&secret).node_ids([2, 1]).build().expect("the parent's nodes");
        builder(&secret).node_id(8).build().expect("the child's nodes are not the parent's");
    }

    pub(crate) fn children_have_no_snowflakes_of_their_parent(fork: Fork) {
        let now = SystemClock.now().expect("a time") / 1_000_000_000;
        let lease = Lease::new(now, now + 100).expect("a lease");
        let flake = Snowflake::new(5, Layout::sonyflake()).expect("a free node, or this one");
        let granted = Snowflake::builder(Layout::sonyflake()).node_id(6).granted_lease(lease);
        let granted = granted.build().expect("valid");
        Snowflake::builder(Layout::simpleflake()).build().expect("no node id needed");
        let known = [&flake, &granted].map(|flake| flake.generate().expect("an id"));
        let before = SystemClock.now().expect("a time") / 1_000_000;
        in_child(fork, || {
            for (flake, known) in [&flake, &granted].into_iter().zip(known) {
                assert_eq!(kind(flake.generate()), Err(ErrorKind::Forked));
                let mut ids = [1; 10];
                assert_eq!(kind(flake.fill(&mut ids)), Err(ErrorKind::Forked));
                assert_eq!(ids, [0; 10]);
                assert_eq!(flake.close(), None);
                flake.inspect(known).expect("reading goes on");
            }
            let again = Snowflake::new(5, Layout::sonyflake());
            assert_eq!(kind(again), Err(ErrorKind::Forked));
            // Without node ids a child cannot choose another one.
            let again = Snowflake::builder(Layout::simpleflake()).build().expect_err("refused");
            assert_eq!(again.kind(), ErrorKind::Forked);
            assert!(again.to_string().contains("no node ids"), "{again}");
            let own = Snowflake::new(7, Layout::sonyflake()).expect("a free node");
            let id = own.generate().expect("an id");
            assert!(own.inspect(id).expect("an id").unix_ms > before / 10 * 10, "a later tick");
            granted.begin(&[8], lease, 0).expect("a child");
            let id = granted.generate().expect("an id");
            assert_eq!(granted.inspect(id).expect("an id").node_id, 8);
        });
        for (flake, known) in [&flake, &granted].into_iter().zip(known) {
            assert!(flake.generate().expect("the parent has lost nothing") > known);
        }
    }

    pub(crate) fn grandchildren_have_nothing_of_either(fork: Fork) {
        let secret = Secret::random();
        let grandparents = builder(&secret).node_id(1).build().expect("a free node");
        let known = grandparents.generate().expect("an id");
        in_child(fork, || {
            let parents = builder(&secret).node_id(2).build().expect("a free node");
            let parents_known = parents.generate().expect("an id");
            in_child(fork, || {
                assert_forked(&grandparents, known);
                assert_forked(&parents, parents_known);
                for node_id in [1, 2] {
                    let again = builder(&secret).node_id(node_id).build();
                    assert_eq!(kind(again), Err(ErrorKind::Forked), "{node_id}");
                }
                let own = builder(&secret).node_id(3).build().expect("a free node");
                own.generate().expect("an id");
            });
            assert_forked(&grandparents, known);
            parents.generate().expect("the child has lost nothing to its own child");
        });
        // It works across a child that makes no generator.
        in_child(fork, || {
            in_child(fork, || {
                let again = builder(&secret).node_id(1).build();
                assert_eq!(kind(again), Err(ErrorKind::Forked));
                assert_forked(&grandparents, known);
            });
        });
        grandparents.generate().expect("the grandparent has lost nothing");
    }

    pub(crate) fn children_begin_after_the_second_of_the_fork(fork: Fork) {
        let secret = Secret::random();
        let forked_in = SystemClock.now().expect("a time") / 1_000_000_000;
        in_child(fork, || {
            let flake = Randflake::new(1, &secret).expect("a free node");
            let id = flake.generate().expect("an id within a second");
            assert!(flake.inspect(id).timestamp > forked_in);
        });
    }

    /// Without node ids, only random starts distinguish two processes.
    pub(crate) fn siblings_have_other_initial_sequences(fork: Fork) {
        Snowflake::new(9, Layout::twitter()).expect("a free node, or this one");
        let first_id = || {
            let flake = Snowflake::builder(Layout::simpleflake()).clock(|| 1_763_640_000 * NANOS);
            flake.build().expect("valid").generate().expect("an id")
        };
        let parents = first_id();
        let siblings = [0; 2].map(|_| {
            let (mut from_child, mut to_parent) = std::io::pipe().expect("a pipe");
            in_child(fork, || {
                to_parent.write_all(&first_id().to_ne_bytes()).expect("a reader");
            });
            let mut id = [0; 8];
            from_child.read_exact(&mut id).expect("an id");
            u64::from_ne_bytes(id)
        });
        assert_eq!(first_id(), parents, "generators that share a state agree");
        assert!(!siblings.contains(&parents) && siblings[0] != siblings[1], "{siblings:?}");
    }

    /// The parent keeps its manual node ids.
    pub(crate) fn children_lease_no_node_of_their_parent(fork: Fork) {
        let secret = Secret::random();
        let now = SystemClock.now().expect("a time") / NANOS;
        let lease = Lease::new(now, now + 100).expect("a lease");
        let granted = builder(&secret).node_id(1).granted_lease(lease).build().expect("valid");
        builder(&secret).node_id(2).build().expect("a free node");
        in_child(fork, || {
            let node_ids = NodeIds::of_secret(&secret);
            assert_eq!(node_ids.grant(&[1, 2, 3]), [2]);
            assert_eq!(kind(granted.begin(&[2], lease, 0)), Err(ErrorKind::NodeInUse));
            let new = builder(&secret).node_ids([2, 3]).granted_lease(lease).build();
            assert_eq!(kind(new), Err(ErrorKind::NodeInUse));
            // The parent leases it, so it cannot be assigned manually here.
            assert_eq!(kind(builder(&secret).node_id(1).build()), Err(ErrorKind::Forked));
            assert_eq!(kind(builder(&secret).node_id(3).build()), Err(ErrorKind::NodeInUse));
            granted.begin(&[3], lease, 0).expect("a child");
            granted.generate().expect("an id");
        });
        builder(&secret).node_id(3).build().expect("the child's lease is not the parent's");
    }

    pub(crate) fn children_continue_with_their_own_leases(fork: Fork) {
        let secret = Secret::random();
        let now = SystemClock.now().expect("a time") / 1_000_000_000;
        let lease = Lease::new(now, now + 100).expect("a lease");
        let flake = builder(&secret).node_id(1).granted_lease(lease).build().expect("valid");
        let manual = builder(&secret).node_id(2).build().expect("a free node");
        let known = flake.generate().expect("an id");
        let not_forked = flake.begin(&[3], lease, 0);
        assert_eq!(kind(not_forked), Err(ErrorKind::InvalidLease));
        in_child(fork, || {
            assert_forked(&flake, known);
            assert_eq!(flake.metrics().ids_generated, 0);
            assert_eq!(kind(flake.begin(&[], lease, 0)), Err(ErrorKind::InvalidNode));
            assert_eq!(kind(manual.begin(&[3], lease, 0)), Err(ErrorKind::InvalidLease));
            flake.begin(&[3, 4], lease, 0).expect("a child");
            assert_eq!(kind(flake.begin(&[5], lease, 0)), Err(ErrorKind::InvalidLease));
            assert_eq!(flake.metrics().ids_generated, 0, "those before were the parent's");
            let mut ids = [Id::default(); 1000];
            flake.fill(&mut ids).expect("ids");
            assert_eq!(flake.metrics().ids_generated, 1000);
            ids[0] = flake.generate().expect("an id");
            assert!(ids.iter().all(|&id| flake.inspect(id).node_id == 3));
            in_child(fork, || {
                assert_forked(&flake, known);
                assert_eq!(flake.metrics().ids_generated, 0);
                flake.begin(&[6], lease, 0).expect("a grandchild");
                assert_eq!(flake.inspect(flake.generate().expect("an id")).node_id, 6);
            });
            let used_until = flake.replace_lease(&[4], lease, u32::MAX).expect("the child's own");
            assert_eq!(flake.inspect(flake.generate().expect("an id")).node_id, 4);
            assert!(flake.close().is_some_and(|end| end >= used_until), "the child's own");
            assert_eq!(kind(flake.generate()), Err(ErrorKind::Closed));
        });
        let next = flake.generate().expect("the parent has lost nothing");
        assert_eq!(flake.inspect(next).node_id, 1);
        assert!((2..10).contains(&flake.metrics().ids_generated));
        flake.close();
        in_child(fork, || {
            assert_eq!(kind(flake.begin(&[3], lease, 0)), Err(ErrorKind::Closed));
        });
    }

    pub(crate) fn each_process_begins_with_a_lease_of_its_own(fork: Fork) {
        let secret = Secret::random();
        let now = SystemClock.now().expect("a time") / NANOS;
        let lease = Lease::new(now, now + 100).expect("a lease");
        let later = || {
            let builder = builder(&secret).granted_later(1).max_drift(3).max_wait(Duration::ZERO);
            builder.build().expect("valid")
        };
        let assert_without_lease = |flake: &Randflake| {
            assert_eq!(kind(flake.generate()), Err(ErrorKind::LeaseUnavailable));
            assert_eq!(kind(flake.fill(&mut [Id::default(); 9])), Err(ErrorKind::LeaseUnavailable));
            assert_eq!(kind(flake.ready_in()), Err(ErrorKind::LeaseUnavailable));
            let replaced = flake.replace_lease(&[9], lease, u32::MAX);
            assert_eq!(kind(replaced), Err(ErrorKind::LeaseUnavailable));
            assert_eq!((flake.lease(), flake.node_ids()), (None, &[][..]));
        };
        let (flake, snowflake) = (later(), Snowflake::builder(Layout::twitter()));
        let snowflake = snowflake.granted_later(1).build().expect("valid");
        in_child(fork, || {
            // Before anything else has read the fork id of the child.
            assert_eq!(kind(snowflake.generate()), Err(ErrorKind::LeaseUnavailable));
            assert_without_lease(&flake);
            flake.begin(&[5], lease, 0).expect("the first of the child");
            assert_eq!(flake.inspect(flake.generate().expect("an id")).node_id, 5);
        });
        assert_without_lease(&flake);
        flake.begin(&[6], lease, 0).expect("the first one");
        assert_eq!(kind(flake.begin(&[7], lease, 0)), Err(ErrorKind::InvalidLease));
        assert_eq!(flake.inspect(flake.generate().expect("an id")).node_id, 6);
        in_child(fork, || {
            assert_eq!(kind(flake.generate()), Err(ErrorKind::Forked));
            flake.begin(&[8], lease, 0).expect("a child");
            assert_eq!(flake.inspect(flake.generate().expect("an id")).node_id, 8);
        });

        let (closed, of_child) = (later(), later());
        assert_eq!(closed.close(), None, "nothing was issued, nothing is given back");
        for _ in 0..2 {
            assert_eq!(kind(closed.begin(&[7], lease, 0)), Err(ErrorKind::Closed));
            assert_eq!(kind(closed.generate()), Err(ErrorKind::Closed));
            in_child(fork, || {
                assert_eq!(kind(closed.begin(&[7], lease, 0)), Err(ErrorKind::Closed));
                assert_eq!(of_child.close(), None);
                assert_eq!(kind(of_child.generate()), Err(ErrorKind::Closed));
            });
        }
        of_child.begin(&[9], lease, 1).expect("closed in the children alone");
        let too_many = of_child.check_fill(2 * 131_072 + 1, Call::default());
        assert_eq!(kind(too_many), Err(ErrorKind::InvalidArgument), "a drift of 1, not of 3");
        of_child.check_fill(2 * 131_072, Call::default()).expect("two seconds of ids");
    }

    /// A clock that forks simulates a signal handler that forks between two instructions.
    pub(crate) fn a_fork_inside_a_call_hands_its_ids_to_one_process(fork: Fork) {
        let now = SystemClock.now().expect("a time");
        let child = AtomicI32::new(-1);
        let clock = || {
            if child.load(Ordering::Relaxed) < 0 {
                child.store(fork(), Ordering::Relaxed);
            }
            now
        };
        let flake = builder(&Secret::random()).node_id(1).clock(clock).build().expect("valid");
        let outcome = kind(flake.generate());
        if child.load(Ordering::Relaxed) == 0 {
            // SAFETY: has no precondition. The rest of the process belongs to the parent.
            unsafe { libc::_exit((outcome != Err(ErrorKind::Forked)).into()) }
        }
        assert_eq!(outcome, Ok(()), "the parent has the id");
        let mut status = 0;
        // SAFETY: the status is writable.
        unsafe { libc::waitpid(child.load(Ordering::Relaxed), &raw mut status, 0) };
        assert_eq!(status, 0, "the child has none");
    }

    /// Handlers that other libraries registered before this one run before its own.
    pub(crate) fn a_generator_of_an_earlier_fork_handler_works() {
        // A new process image, in which nothing of this library has been used yet.
        let this = std::env::current_exe().expect("a path");
        let status = Command::new(this).env(EARLIER_HANDLER, "1").status().expect("a process");
        assert!(status.success());
    }

    const EARLIER_HANDLER: &str = "RANDFLAKE_TEST_EARLIER_HANDLER";
    const SECRET: &str = "dffd6021bb2bd5b0af676290809ec3a5";
    static MADE: OnceLock<Randflake> = OnceLock::new();

    /// Runs the above if this process was started for it.
    pub(crate) fn earlier_handler() -> bool {
        extern "C" fn handler() {
            let flake = builder(&SECRET.parse().expect("hex")).node_id(2).build();
            MADE.set(flake.expect("a free node")).expect("the first");
        }
        if std::env::var_os(EARLIER_HANDLER).is_none() {
            return false;
        }
        // SAFETY: the handler is a plain function of a process with one thread.
        unsafe { libc::pthread_atfork(None, None, Some(handler)) };
        let _parents = Randflake::new(1, &SECRET.parse().expect("hex")).expect("a free node");
        in_child(libc_fork, || {
            MADE.get().expect("made").generate().expect("an id");
            builder(&SECRET.parse().expect("hex")).node_id(2).build().expect("the child's node");
        });
        true
    }

    pub(crate) fn a_fork_among_threads_leaves_no_lock_behind() {
        let secret = Secret::random();
        let flake = builder(&secret).node_ids(2..64).build().expect("free nodes");
        let now = SystemClock.now().expect("a time") / 1_000_000_000;
        let lease = Lease::new(now, now + 100).expect("a lease");
        let granted = builder(&secret).node_id(1).granted_lease(lease).build().expect("valid");
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    granted.replace_lease(&[1], lease, u32::MAX).expect("the parent's lease");
                }
            });
            for thread in 0..3 {
                let (flake, done, secret) = (&flake, &done, &secret);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        if thread == 0 {
                            builder(secret).node_ids(2..64).build().expect("the same nodes");
                        }
                        flake.generate().expect("an id");
                    }
                });
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                for _ in 0..50 {
                    in_child(libc_fork, || {
                        assert_eq!(kind(flake.generate()), Err(ErrorKind::Forked));
                        let replaced = kind(granted.replace_lease(&[1], lease, u32::MAX));
                        assert_eq!(replaced, Err(ErrorKind::Forked));
                        let other = builder(&secret).node_id(100).build().expect("a free node");
                        other.generate().expect("an id");
                    });
                }
            }));
            done.store(true, Ordering::Relaxed);
            outcome.expect("every child ends well");
        });
    }
}
