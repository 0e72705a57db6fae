//! Generators with leased node ids, in one process.
#![cfg(feature = "sqlite")]
#![allow(clippy::disallowed_methods, reason = "how long to wait for a thread")]

mod common;

use std::{
    collections::HashSet,
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use randflake::{
    Call, Clock, Error, ErrorKind, Field, Id, Layout, Plain, Randflake, Result, Secret, SystemClock,
};
use randflake_leases::{
    Acquire, Acquired, Fence, Fenced, InitMode, LeaseStatus, LeaseStore, Leased, LeasedBuilder,
    LeasedCell, Location, MemoryStore, Namespace, NodeRanges, Release, Released, Renew, Renewed,
    Reply,
    keeper::State,
    leased, leased_snowflake,
    operator::{List, Listed, ReleaseDead, Repair, Shortened},
};

use crate::common::Scratch;

const PATIENCE: Duration = Duration::from_secs(60);

/// A store that all generators of a test share, and that can be disconnected.
#[derive(Clone, Default)]
struct Shared {
    store: Arc<Mutex<Option<MemoryStore>>>,
    down: Arc<AtomicBool>,
    releases: Arc<AtomicU32>,
    refusals: Arc<AtomicU32>,
    nodes: u32,
}

impl Shared {
    fn of(nodes: u32) -> Self {
        Self { nodes, ..Self::default() }
    }

    fn location(&self) -> Location {
        let shared = self.clone();
        Location::new(move |namespace| {
            let mut store = shared.store.lock().expect("no panic");
            if store.is_none() {
                *store = Some(MemoryStore::new(
                    namespace.node_ids(NodeRanges::up_to(shared.nodes - 1))?,
                ));
            }
            drop(store);
            Ok(Box::new(shared.clone()))
        })
    }

    fn ask<T>(&self, ask: impl FnOnce(&mut MemoryStore) -> Result<T>) -> Result<T> {
        if self.down.load(Ordering::Relaxed) {
            self.refusals.fetch_add(1, Ordering::Relaxed);
            return Err(Error::new(ErrorKind::StoreUnavailable, "disconnected"));
        }
        ask(self.store.lock().expect("no panic").as_mut().expect("opened"))
    }
}

impl LeaseStore for Shared {
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
        self.ask(|store| store.acquire(request))
    }
    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
        self.ask(|store| store.renew(request))
    }
    fn release(&mut self, request: &Release) -> Result<Reply<Released>> {
        self.releases.fetch_add(1, Ordering::Relaxed);
        self.ask(|store| store.release(request))
    }
    fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>> {
        self.ask(|store| store.fence(request))
    }
    fn list(&mut self, request: &List) -> Result<Reply<Listed>> {
        self.ask(|store| store.list(request))
    }
    fn repair(&mut self, request: &Repair) -> Result<Reply<Shortened>> {
        self.ask(|store| store.repair(request))
    }
    fn release_dead(&mut self, request: &ReleaseDead) -> Result<Reply<Shortened>> {
        self.ask(|store| store.release_dead(request))
    }
}

/// A lease of two seconds, which is renewed after less than one.
fn short(location: Location, secret: &Secret) -> LeasedBuilder {
    Leased::builder(location, secret).ttl(2).max_skew(0).max_drift(0)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn kind<T>(result: Result<T>) -> Result<(), ErrorKind> {
    result.map(drop).map_err(|error| error.kind())
}

#[test]
fn a_file_is_all_it_takes() {
    let scratch = Scratch::new();
    let secret = Secret::random();
    let path = scratch.path("ids.db");
    let second = || SystemClock.now().expect("a time") / 1_000_000_000;
    let before = second();
    let flake = leased(path.as_path(), &secret).expect("a lease");
    let other = leased(path.to_str().expect("text"), &secret).expect("another one");
    assert_ne!(flake.node_ids(), other.node_ids(), "a lease each");
    let mut ids = vec![Id::default(); 1000];
    flake.fill(&mut ids[..500]).expect("ids");
    other.fill(&mut ids[500..]).expect("ids");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    assert!(ids[..500].iter().all(|id| flake.inspect(*id).node_id == flake.node_ids()[0]));

    let status = flake.lease().expect("open");
    let after = second();
    assert_eq!((status.state, status.renewals, status.losses), (State::Holding, 0, 0));
    assert!(status.last_error.is_none(), "{status:?}");
    let end = status.end_exclusive;
    assert!((before + 300..=after + 300).contains(&end), "{before} to {after}: {status:?}");
    let left = i64::try_from(status.time_left.as_secs()).expect("minutes");
    assert!((end - after - 1..=end - before).contains(&left), "{before} to {after}: {status:?}");
    assert_eq!((&*status.store, &*status.namespace), (path.to_str().expect("text"), "default"));
    let now = flake.inspect(flake.generate().expect("an id")).timestamp;
    assert!(status.start <= now && now < status.end_exclusive, "{status:?}");
}

#[test]
fn closing_gives_the_node_id_back() {
    let shared = Shared::of(1);
    let secret = Secret::random();
    let builder = || short(shared.location(), &secret).ttl(60);
    for _ in 0..3 {
        // The one node id is free again from the second after its last one.
        let flake = builder().open().expect("free");
        flake.generate().expect("an id");
        let refused = builder().acquire_timeout(Duration::ZERO).open();
        assert_eq!(kind(refused), Err(ErrorKind::NodesExhausted));
        assert!(!flake.is_ended());
        flake.close();
        assert!(flake.is_ended());
        assert_eq!(kind(flake.generate()), Err(ErrorKind::Closed));
        assert_eq!(kind(flake.fill(&mut [Id::default()])), Err(ErrorKind::Closed));
        assert_eq!(kind(flake.ready_in()), Err(ErrorKind::Closed));
        assert!(flake.lease().is_none() && flake.node_ids().is_empty());
        flake.close();
    }
    drop(builder().open().expect("free"));
    let stopped = builder().open().expect("free");
    stopped.stop();
    assert_eq!(kind(stopped.generate()), Err(ErrorKind::Closed));
    drop(stopped);
    until("all are given back, once each", || shared.releases.load(Ordering::Relaxed) == 5);
}

#[test]
fn it_goes_on_for_many_terms_of_its_lease() {
    let flake = short(Shared::of(1).location(), &Secret::random()).ttl(4).open().expect("free");
    let first = flake.lease().expect("open");
    let mut ids = HashSet::new();
    until("renewals", || {
        assert!(ids.insert(flake.generate().expect("never a gap")));
        flake.lease().expect("open").renewals >= 5
    });
    let last = flake.lease().expect("open");
    assert_eq!(last.node_ids, first.node_ids);
    assert!(last.end_exclusive > first.end_exclusive + 1, "{first:?} {last:?}");
}

#[test]
fn a_silent_store_is_given_up_in_time_and_what_it_grants_then_goes_back() {
    let shared = Shared::of(1);
    let secret = Secret::random();
    shared.down.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        let builder = short(shared.location(), &secret)
            .acquire_timeout(Duration::from_secs(3))
            .ttl(300)
            .max_skew(50);
        let opening = scope.spawn(|| builder.open());
        // The first try has no limit.
        until("it is refused once", || shared.refusals.load(Ordering::Relaxed) > 0);
        // From here on a request takes as long as this lock is held.
        let silence = shared.store.lock().expect("no panic");
        shared.down.store(false, Ordering::Relaxed);
        until("it is given up", || opening.is_finished());
        assert_eq!(kind(opening.join().expect("no panic")), Err(ErrorKind::StoreUnavailable));
        drop(silence);
    });
    until("it is given back", || shared.releases.load(Ordering::Relaxed) > 0);
    let flake = short(shared.location(), &secret).ttl(300).max_skew(50).open().expect("free");
    assert_eq!(flake.node_ids(), [0]);
}

#[test]
fn an_outage_of_the_store_ends_in_an_error_and_passes() {
    let shared = Shared::of(1);
    let flake = short(shared.location(), &Secret::random()).ttl(6).max_wait(Duration::ZERO).open();
    let flake = flake.expect("free");
    shared.down.store(true, Ordering::Relaxed);
    let mut last = flake.generate().expect("an id");
    until("the lease is over", || match flake.generate() {
        Ok(id) => {
            last = id;
            false
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::LeaseUnavailable);
            let retry_after = error.retry_after().expect("the keeper tries again");
            assert!(!retry_after.is_zero() && retry_after <= Duration::from_secs(5), "{error}");
            let cause = error.cause().expect("the store's");
            assert_eq!(
                (cause.kind(), &*cause.to_string()),
                (ErrorKind::StoreUnavailable, "disconnected")
            );
            assert!(error.to_string().contains("disconnected"), "{error}");
            assert_eq!(kind(flake.fill(&mut [Id::default()])), Err(ErrorKind::LeaseUnavailable));
            true
        }
    });
    let again = flake.ready_in().expect("the keeper tries");
    assert!(!again.is_zero() && again < PATIENCE, "{again:?}");
    let status = flake.lease().expect("open");
    assert!(flake.inspect(last).timestamp < status.end_exclusive, "{status:?}");
    assert_eq!((status.state, status.time_left), (State::Expired, Duration::ZERO));
    assert_eq!(status.last_error.expect("one").to_string(), "disconnected");
    assert!(status.last_error_at.is_some_and(|at| at > status.start), "{:?}", status.last_error_at);
    shared.down.store(false, Ordering::Relaxed);
    until("it recovers", || flake.ready_in().is_ok_and(|wait| wait.is_zero()));
    flake.generate().expect("an id");
    until("all is well", || {
        let status = flake.lease().expect("open");
        (status.state, status.last_error, status.last_error_at) == (State::Holding, None, None)
    });
}

/// A store that panics once its flag is set.
struct Brittle(Shared, Arc<AtomicBool>);

impl LeaseStore for Brittle {
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
        self.0.acquire(request)
    }
    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
        assert!(!self.1.load(Ordering::Relaxed), "as asked");
        self.0.renew(request)
    }
    fn release(&mut self, request: &Release) -> Result<Reply<Released>> {
        self.0.release(request)
    }
    fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>> {
        self.0.fence(request)
    }
    fn list(&mut self, request: &List) -> Result<Reply<Listed>> {
        self.0.list(request)
    }
    fn repair(&mut self, request: &Repair) -> Result<Reply<Shortened>> {
        self.0.repair(request)
    }
    fn release_dead(&mut self, request: &ReleaseDead) -> Result<Reply<Shortened>> {
        self.0.release_dead(request)
    }
}

/// The machine's clock, with waits forbidden.
struct NoWaits;

impl Clock for NoWaits {
    fn now(&self) -> Result<i64> {
        SystemClock.now()
    }

    fn sleep(&self, _: Duration) -> Result<Option<Duration>> {
        panic!("it waits")
    }

    fn coarse_time(&self) -> Option<i64> {
        SystemClock.coarse_time()
    }

    fn is_system(&self) -> bool {
        true
    }
}

#[test]
fn a_call_without_waits_returns_or_fails_at_once() {
    let shared = Shared::of(1);
    let builder = LeasedBuilder::<Plain>::new(shared.location(), Layout::sonyflake2());
    let flake = builder.clock(NoWaits).ttl(2).max_skew(0).open().expect("a lease");
    // A burst: 256 ids are available every 10 ms.
    let mut ids: Vec<i64> = Vec::new();
    let busy = loop {
        match flake.try_generate(Call::AT_ONCE) {
            Ok(id) => ids.push(id.cast_signed()),
            Err(error) => break error,
        }
    };
    assert_eq!(busy.kind(), ErrorKind::SequenceExhausted);
    let in_a_tick = busy.retry_after().expect("it passes");
    assert!(in_a_tick <= Duration::from_millis(10), "{in_a_tick:?}");
    assert_eq!(kind(flake.try_fill(&mut [0; 257], Call::AT_ONCE)), Err(ErrorKind::InvalidArgument));
    assert_eq!(kind(flake.try_check_fill(257, Call::AT_ONCE)), Err(ErrorKind::InvalidArgument));
    for _ in 0..1000 {
        let mut batch = [0; 256];
        match flake.try_fill(&mut batch, Call::AT_ONCE) {
            Ok(()) => ids.extend(batch),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::SequenceExhausted);
                assert_eq!(batch, [0; 256]);
            }
        }
    }
    assert!(ids.is_sorted_by(|one, other| one < other), "no id twice");
    // An outage.
    shared.down.store(true, Ordering::Relaxed);
    until("the lease is over", || {
        while flake.try_generate(Call::AT_ONCE).is_ok() {}
        // Even in the last tick, which has no successor yet.
        flake.try_ready_in().expect("the keeper tries");
        kind(flake.try_generate(Call::AT_ONCE)) == Err(ErrorKind::LeaseExpired)
    });
    let expired = flake.try_generate(Call::AT_ONCE).expect_err("as before");
    assert_eq!(flake.explain(expired).kind(), ErrorKind::LeaseUnavailable);
    assert_eq!(kind(flake.try_check_fill(1, Call::AT_ONCE)), Err(ErrorKind::LeaseExpired));
    assert!(flake.try_ready_in().expect("the keeper tries") > Duration::ZERO);
    shared.down.store(false, Ordering::Relaxed);
    until("it is back", || flake.try_generate(Call::AT_ONCE).is_ok());
    flake.stop();
    assert_eq!(kind(flake.try_generate(Call::AT_ONCE)), Err(ErrorKind::Closed));
    assert_eq!(kind(flake.try_fill(&mut [0], Call::AT_ONCE)), Err(ErrorKind::Closed));
}

/// Collects each notification, then panics.
fn noted() -> (Arc<Mutex<Vec<LeaseStatus>>>, impl Fn(&LeaseStatus) + Send + Sync + 'static) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&told);
    let tell = move |status: &LeaseStatus| {
        note.lock().expect("no panic while it is locked").push(status.clone());
        panic!("a panic of the program that is told");
    };
    (told, tell)
}

#[test]
fn each_change_is_told_once_and_in_order_and_a_panic_touches_nothing() {
    let (shared, (told, tell)) = (Shared::of(1), noted());
    let flake = short(shared.location(), &Secret::random()).ttl(6).on_lease_change(tell).open();
    let flake = flake.expect("free");
    let states = |count: usize| {
        until("it is told", || told.lock().expect("no panic").len() >= count);
        told.lock().expect("no panic").iter().map(|status| status.state).collect::<Vec<_>>()
    };
    let mut expected = vec![State::Holding];
    assert_eq!(states(1), expected);
    shared.down.store(true, Ordering::Relaxed);
    expected.extend([State::Retrying, State::Expired]);
    assert_eq!(states(3), expected);
    assert_eq!(kind(flake.generate()), Err(ErrorKind::LeaseUnavailable));
    shared.down.store(false, Ordering::Relaxed);
    expected.push(State::Holding);
    assert_eq!(states(4), expected);
    flake.generate().expect("an id");
    flake.close();
    expected.push(State::Stopped);
    assert_eq!(states(5), expected);
    let errors =
        told.lock().expect("no panic").iter().map(|s| s.last_error.is_some()).collect::<Vec<_>>();
    assert_eq!(errors, [false, true, true, false, false]);

    let metrics = flake.metrics();
    let refused = u64::from(shared.refusals.load(Ordering::Relaxed));
    assert_eq!(metrics.store_errors, [(ErrorKind::StoreUnavailable, refused)]);
    assert!(metrics.store_requests >= refused + 3, "a lease, one after the outage, a release");
    let waits = metrics.waits.last().expect("the kind that leases add");
    assert_eq!(*waits, (ErrorKind::LeaseUnavailable, 1), "{metrics:?}");
}

#[test]
fn attempts_at_a_first_lease_are_counted() {
    let shared = Shared::of(1);
    shared.down.store(true, Ordering::Relaxed);
    let (told, tell) = noted();
    let lazy = short(shared.location(), &Secret::random()).acquire_timeout(Duration::ZERO);
    let flake = lazy.on_lease_change(tell).open_lazily().expect("asks for nothing yet");
    assert_eq!(flake.metrics().store_requests, 0);
    assert_eq!(kind(flake.generate()), Err(ErrorKind::LeaseUnavailable));
    let (metrics, refused) = (flake.metrics(), u64::from(shared.refusals.load(Ordering::Relaxed)));
    assert!(refused > 0 && metrics.store_requests >= refused, "{metrics:?}");
    assert_eq!(metrics.store_errors, [(ErrorKind::StoreUnavailable, refused)]);
    assert_eq!((metrics.ids_generated, metrics.clock_skew_seconds), (0, None));
    assert!(told.lock().expect("no panic").is_empty(), "there was no lease yet");
    shared.down.store(false, Ordering::Relaxed);
    flake.generate().expect("a lease");
    assert_eq!(flake.metrics().store_errors, metrics.store_errors);
    assert!(flake.metrics().store_requests > metrics.store_requests);
    until("it is told", || told.lock().expect("no panic").len() == 1);
}

#[test]
fn what_is_told_may_ask_and_stop() {
    let shared = Shared::of(1);
    let late: Arc<Mutex<Option<Leased>>> = Arc::default();
    let (flake, seen) = (Arc::clone(&late), Arc::new(AtomicU32::new(0)));
    let count = Arc::clone(&seen);
    let made = short(shared.location(), &Secret::random()).ttl(60);
    let made = made.on_lease_change(move |status| {
        // Set only once it is made.
        until("it is there", || flake.lock().expect("no panic").is_some());
        let flake = flake.lock().expect("no panic");
        let flake = flake.as_ref().expect("waited for");
        assert_eq!(flake.lease().is_some(), status.state == State::Holding);
        flake.stop();
        count.fetch_add(1, Ordering::Relaxed);
    });
    *late.lock().expect("no panic") = Some(made.open().expect("free"));
    until("both are told", || seen.load(Ordering::Relaxed) == 2);
    until("it is given back", || shared.releases.load(Ordering::Relaxed) == 1);
    drop(late.lock().expect("no panic").take());
}

#[test]
fn a_thread_that_panics_is_reported() {
    let (shared, breaks) = (Shared::of(1), Arc::new(AtomicBool::new(false)));
    let (location, flag) = (shared.location(), Arc::clone(&breaks));
    let brittle = Location::new(move |namespace| {
        location.open(&namespace)?;
        Ok(Box::new(Brittle(shared.clone(), Arc::clone(&flag))))
    });
    let (told, tell) = noted();
    let flake = short(brittle, &Secret::random()).ttl(6).max_wait(Duration::ZERO);
    let flake = flake.on_lease_change(tell);
    let flake = flake.open().expect("free");
    breaks.store(true, Ordering::Relaxed);
    until("it notices", || flake.lease().expect("open").state == State::Stopped);
    let status = flake.lease().expect("open");
    assert_eq!(status.last_error.expect("one").kind(), ErrorKind::Internal);
    until("it is told", || told.lock().expect("no panic").len() == 2);
    let message = told.lock().expect("no panic")[1].message();
    let expected = "the lease of node ids [0] is no longer renewed; ids continue until ";
    assert!(message.starts_with(expected) && message.contains(": INTERNAL: "), "{message}");
    until("the lease is over", || match flake.generate() {
        Ok(_) => false,
        Err(error) => {
            assert_eq!((error.kind(), error.retry_after()), (ErrorKind::Internal, None));
            assert!(error.to_string().contains("make a new generator"), "{error}");
            true
        }
    });
    assert_eq!(kind(flake.ready_in()), Err(ErrorKind::Internal));
    flake.close();
    assert_eq!(kind(flake.generate()), Err(ErrorKind::Closed));
}

#[test]
fn a_call_outlasts_a_lease_that_is_renewed_in_time() {
    let shared = Shared::of(1);
    let flake = short(shared.location(), &Secret::random()).max_wait(PATIENCE).open();
    let flake = flake.expect("free");
    shared.down.store(true, Ordering::Relaxed);
    until("the lease is over", || flake.lease().expect("open").time_left.is_zero());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| flake.generate());
        thread::sleep(Duration::from_millis(50));
        shared.down.store(false, Ordering::Relaxed);
        waiting.join().expect("no panic").expect("an id, after a wait");
    });
}

#[test]
fn a_burst_borrows_no_more_than_there_will_be() {
    let flake = short(Shared::of(1).location(), &Secret::random()).ttl(6).max_drift(2).open();
    let flake = flake.expect("free");
    let mut ids = vec![Id::default(); 131_072];
    let mut seen = HashSet::new();
    for _ in 0..4 {
        flake.fill(&mut ids).expect("the keeper has a longer lease in time");
        assert!(ids.iter().all(|id| seen.insert(*id)));
    }
}

#[test]
fn a_batch_goes_on_over_renewals() {
    let flake = short(Shared::of(1).location(), &Secret::random()).max_wait(PATIENCE).open();
    let flake = flake.expect("free");
    let first = flake.lease().expect("open");
    let mut ids = vec![Id::default(); 4 * 131_072];
    flake.check_fill(ids.len()).expect("it may take its time");
    flake.fill(&mut ids).expect("longer than the lease, which is renewed");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    let last = flake.inspect(ids[ids.len() - 1]).timestamp;
    assert!(first.end_exclusive <= last, "{first:?} {last}");
    assert!(last < flake.lease().expect("open").end_exclusive);

    // The call is made on a thread that the keeper needs.
    for ids in [2 * 131_072, 4 * 131_072] {
        let refused = flake.try_check_fill(ids, Call::default());
        assert_eq!(kind(refused), Err(ErrorKind::InvalidArgument));
        let refused = flake.try_fill(&mut vec![7; ids], Call::default());
        assert_eq!(kind(refused), Err(ErrorKind::InvalidArgument));
    }
    for refused in
        [flake.check_fill(1_000_000_000), flake.try_check_fill(1_000_000_000, Call::default())]
    {
        let error = refused.expect_err("two hours");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("may take at most 3600; ask for fewer"), "{error}");
    }
}

#[test]
fn a_lost_lease_is_replaced() {
    let shared = Shared::of(8);
    let secret = Secret::random();
    let flake = short(shared.location(), &secret).ttl(6).open().expect("free");
    let lost = flake.lease().expect("open");
    // The store has forgotten everything; the lease is lost, but not its seconds.
    let namespace = Namespace::new("default", &secret).and_then(|n| n.max_skew(0)).expect("valid");
    let namespace = namespace.node_ids(NodeRanges::up_to(7)).expect("valid");
    *shared.store.lock().expect("no panic") = Some(MemoryStore::new(namespace));
    let mut ids = HashSet::new();
    until("a replacement", || {
        assert!(ids.insert(flake.generate().expect("never a gap")));
        let status = flake.lease().expect("open");
        // Its node ids are random: sometimes they are those of the lost lease.
        status.losses == 1 && status.end_exclusive > lost.end_exclusive
    });
}

#[test]
fn manually_assigned_node_ids_of_this_process_are_not_leased() {
    let (shared, secret) = (Shared::of(4), Secret::random());
    let manual = |node_id| Randflake::builder(&secret).node_id(node_id).restart_safe(false).build();
    // Closed or not, this process may have stamped its seconds.
    let open = manual(0).expect("free");
    manual(2).expect("free");
    let flakes = [0; 2].map(|_| short(shared.location(), &secret).open().expect("two are free"));
    let mut node_ids = flakes.each_ref().map(|flake| flake.node_ids()[0]);
    node_ids.sort_unstable();
    assert_eq!(node_ids, [1, 3]);
    for node_id in node_ids {
        assert_eq!(kind(manual(node_id)), Err(ErrorKind::NodeInUse));
    }
    open.generate().expect("goes on");
    for flake in &flakes {
        flake.generate().expect("goes on");
    }

    // This process has assigned all of them manually: the store has one, but not for this process.
    let (shared, secret) = (Shared::of(1), Secret::random());
    Randflake::builder(&secret).node_id(0).build().expect("free");
    let flake = short(shared.location(), &secret).acquire_timeout(Duration::from_millis(300));
    let error = flake.open().expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::NodesExhausted);
    assert!(error.to_string().contains("manually assigned"), "{error}");
    assert!(shared.releases.load(Ordering::Relaxed) > 0, "it was given back");
}

#[test]
fn invalid_options_are_refused_at_once() {
    let scratch = Scratch::new();
    let secret = Secret::random();
    let began = Instant::now();
    let path = scratch.path("ids.db");
    // Retries would last longer than is asserted below.
    let at = |location: Location| Leased::builder(location, &secret).acquire_timeout(2 * PATIENCE);
    let build = || at(path.as_path().into());
    let invalid = Err(ErrorKind::InvalidArgument);
    assert_eq!(kind(build().node_count(0).open()), invalid);
    assert_eq!(kind(build().node_count(16_385).open()), invalid);
    assert_eq!(kind(build().ttl(29).open()), invalid, "six times the skew");
    assert_eq!(kind(build().ttl(86_401).open()), invalid);
    assert_eq!(kind(build().max_skew(51).open()), invalid);
    assert_eq!(kind(build().namespace("").open()), invalid);
    assert_eq!(kind(build().acquire_timeout(Duration::from_millis(86_400_001)).open()), invalid);
    assert_eq!(kind(build().max_drift(101).open()), invalid, "a third of the ttl");
    assert_eq!(kind(build().max_wait(Duration::from_secs(86_401)).open()), invalid);
    assert!(!path.exists(), "nothing was leased for it");
    assert_eq!(kind(at("".into()).open()), invalid);
    assert_eq!(kind(at(":memory:".into()).open()), invalid);
    assert_eq!(kind(at("ids\0.db".into()).open()), invalid);
    let url = at("mongodb://me:hush@host/db".into()).open().expect_err("no such store");
    assert!(url.to_string().contains("mongodb://") && !url.to_string().contains("hush"), "{url}");

    build().open().expect("a lease");
    let other = Leased::builder(path.as_path(), &Secret::random()).acquire_timeout(2 * PATIENCE);
    assert_eq!(kind(other.open()), Err(ErrorKind::SecretMismatch));
    let garbage = scratch.path("garbage");
    fs::write(&garbage, [7; 4096]).expect("a file");
    assert_eq!(kind(at(garbage.into()).open()), invalid);
    assert!(began.elapsed() < PATIENCE, "none of these is worth another try");
}

#[test]
fn a_place_makes_its_namespaces_itself() {
    let scratch = Scratch::new();
    let secret = Secret::random();
    let path = scratch.path("ids.db");
    let init = |location: Location, name, mode| {
        let namespace = Namespace::new(name, &secret).expect("a name");
        location.init(&namespace, mode)
    };
    let init_file = |name, mode| init(path.as_path().into(), name, mode);
    assert_eq!(init_file("orders", InitMode::New), Ok(()));
    assert_eq!(init_file("users", InitMode::Quarantine), Ok(()));
    for (name, other) in [("orders", InitMode::Quarantine), ("users", InitMode::New)] {
        assert_eq!(init_file(name, other), Ok(()), "it is there, and stays as it is");
        let builder = Leased::builder(path.as_path(), &secret).namespace(name);
        let leased = kind(builder.acquire_timeout(Duration::ZERO).open());
        let quarantined = Err(ErrorKind::StoreQuarantined);
        assert_eq!(leased, if name == "users" { quarantined } else { Ok(()) }, "{name}");
    }
    let theirs = Namespace::new("orders", &Secret::random()).expect("a name");
    let refused = Location::from(path.as_path()).init(&theirs, InitMode::New);
    assert_eq!(kind(refused), Err(ErrorKind::SecretMismatch));

    let invalid = Err(ErrorKind::InvalidArgument);
    let not_stores = ["", ":memory:", "ids\0.db", "mongodb://me:hush@host/db"];
    let not_urls =
        ["postgres:5432", "redis:/host:6379", "localhost:6379", "sqlite:ids.db", "me:hush@host"];
    for location in not_stores.into_iter().chain(not_urls) {
        let refused = init(location.into(), "orders", InitMode::New);
        assert!(!format!("{refused:?}").contains("hush"), "{refused:?}");
        assert_eq!(kind(refused), invalid, "{location}");
    }
    let with_a_colon = scratch.path("ids:1.db").display().to_string();
    assert_eq!(init(with_a_colon.into(), "orders", InitMode::New), Ok(()));
    assert_eq!(
        kind(init(Shared::of(1).location(), "orders", InitMode::New)),
        invalid,
        "a function"
    );
}

/// A lost file is an error, not an empty store that grants again what others hold.
#[test]
fn what_must_not_make_a_file_says_that_it_is_missing() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let secret = Secret::random();
    let leased = |create| {
        let builder = Leased::builder(path.as_path(), &secret).create(create);
        builder.acquire_timeout(Duration::ZERO).open()
    };
    let error = leased(false).map(drop).expect_err("there is no file");
    assert_eq!(error.kind(), ErrorKind::StoreNotInitialized);
    for says in [
        "init_store",
        "initStore",
        "`randflake lease init --namespace default --new`",
        "quarantine",
    ] {
        assert!(error.to_string().contains(says), "{error}");
    }
    assert!(!path.exists());

    let namespace = |name| Namespace::new(name, &secret).expect("a name");
    let init = |name| Location::from(path.as_path()).init(&namespace(name), InitMode::New);
    assert_eq!(init("another"), Ok(()));
    assert_eq!(kind(leased(false)), Err(ErrorKind::StoreNotInitialized), "no such namespace");
    assert_eq!(init("default"), Ok(()));
    assert_eq!(kind(leased(false)), Ok(()));
    fs::remove_file(&path).expect("it is there");
    assert_eq!(kind(leased(true)), Ok(()), "makes another one");

    let function = Leased::builder(Shared::of(1).location(), &secret).create(true).open();
    assert_eq!(kind(function), Err(ErrorKind::InvalidArgument));
}

#[test]
fn two_namespaces_of_a_file_have_nothing_to_do_with_each_other() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let orders = Leased::builder(path.as_path(), &Secret::random()).namespace("orders").open();
    let users = Leased::builder(path.as_path(), &Secret::random()).namespace("users").open();
    orders.expect("a lease").generate().expect("an id");
    users.expect("a lease").generate().expect("an id");
}

#[test]
fn nothing_shows_the_secret() {
    let scratch = Scratch::new();
    let secret = Secret::random();
    let builder = Leased::builder(scratch.path("ids.db").as_path(), &secret);
    let shown = format!("{builder:?}");
    let flake = builder.open().expect("a lease");
    let shown = shown + &format!("{flake:?} {:?}", flake.lease());
    let hex = secret.to_hex();
    assert!(!shown.contains(hex.as_str()), "{shown}");
    drop(flake);
    let file = fs::read(scratch.path("ids.db")).expect("a file");
    let of_secret = |bytes: &[u8]| Secret::from_bytes(bytes).is_ok_and(|s| *s.to_hex() == *hex);
    assert!(!file.windows(16).any(of_secret));
}

/// Sonyflake with ticks that cross second boundaries.
fn divided_ticks() -> Layout {
    Layout::custom([(Field::Time, 39), (Field::Sequence, 8), (Field::Node, 16)])
        .tick_ms(7)
        .epoch_ms(1_735_689_600_003)
        .build()
        .expect("valid")
}

fn short_snowflake(location: Location, layout: Layout) -> LeasedBuilder<Plain> {
    Leased::for_layout(location, layout).ttl(2).max_skew(0)
}

#[test]
fn every_layout_with_node_ids_can_be_leased_for() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    for layout in Layout::PRESETS.iter().copied().chain([divided_ticks()]) {
        let builder = Leased::for_layout(path.as_path(), layout).namespace(layout.fingerprint());
        let flake = match builder.open() {
            Ok(flake) => flake,
            Err(error) => {
                let kind = match layout.name() {
                    "baidu" => ErrorKind::LifetimeOver,
                    "simpleflake" => ErrorKind::InvalidArgument, // no node ids
                    _ => panic!("{layout:?}: {error}"),
                };
                assert_eq!(error.kind(), kind, "{error}");
                continue;
            }
        };
        let mut ids = vec![0; 2000];
        flake.fill(&mut ids[..1000]).expect("ids");
        ids[1000..].fill_with(|| flake.generate().expect("an id"));
        assert!(ids.is_sorted_by(|one, next| one < next), "{layout:?}");
        let (status, tick_ms) = (flake.lease().expect("open"), i64::from(layout.tick_ms()));
        assert_eq!((flake.layout(), status.state), (&layout, State::Holding));
        for id in ids {
            let parts = flake.inspect(id).expect("an id");
            assert_eq!(status.node_ids, [parts.node_id]);
            assert!(status.start * 1000 <= parts.unix_ms, "{status:?}");
            assert!(parts.unix_ms + tick_ms <= status.end_exclusive * 1000, "{status:?}");
        }
        assert!(format!("{flake:?}").contains("node_ids"));
    }
}

/// Each begins after all ids of the previous one, whatever part of a second those were from.
#[test]
fn the_successor_of_a_snowflake_begins_after_it() {
    let succeed = |layout: Layout, max_drift| {
        let shared = Shared::of(1);
        let open = |acquire_timeout| {
            let builder = short_snowflake(shared.location(), layout).ttl(6).max_drift(max_drift);
            builder.acquire_timeout(acquire_timeout).open()
        };
        let mut last = 0;
        for _ in 0..2 {
            let flake = open(PATIENCE).expect("free by then");
            let mut ids = [0; 300];
            flake.fill(&mut ids).expect("ids");
            assert!(last < ids[0], "{layout:?}");
            last = ids[299];
            flake.close();
            // Refused, unless it was closed in the last moment of its second.
            if let Ok(next) = open(Duration::ZERO) {
                let start = next.lease().expect("open").start;
                assert!(layout.inspect(last).expect("an id").unix_ms < start * 1000, "{layout:?}");
            }
        }
    };
    thread::scope(|scope| {
        for (layout, max_drift) in
            [(Layout::twitter(), 0), (divided_ticks(), 0), (Layout::sonyflake(), 1)]
        {
            scope.spawn(move || succeed(layout, max_drift));
        }
    });
}

#[test]
fn a_snowflake_borrows_only_with_max_drift() {
    let twitter = |max_drift: Option<u32>| {
        let builder = short_snowflake(Shared::of(1).location(), Layout::twitter()).ttl(60);
        let builder = builder.max_wait(Duration::ZERO);
        match max_drift {
            Some(max_drift) => builder.max_drift(max_drift).open(),
            None => builder.open(),
        }
    };
    let mut ids = vec![0; 4097];
    let never = twitter(None).expect("free");
    assert_eq!(kind(never.fill(&mut ids)), Err(ErrorKind::InvalidArgument), "a millisecond's");
    twitter(Some(1)).expect("free").fill(&mut ids).expect("of this millisecond and the next one");
    assert!(ids.is_sorted_by(|one, next| one < next));
    assert_eq!(kind(twitter(Some(21))), Err(ErrorKind::InvalidArgument), "a third of the ttl");
}

#[test]
fn a_snowflake_goes_on_when_its_lease_is_renewed_or_lost() {
    let shared = Shared::of(8);
    let flake = short_snowflake(shared.location(), Layout::twitter()).ttl(4).open().expect("free");
    let first = flake.lease().expect("open");
    let mut last = 0;
    let mut rises = || {
        let id = flake.generate().expect("never a gap");
        assert!(last < id);
        last = id;
        flake.lease().expect("open")
    };
    until("renewals", || rises().renewals >= 2);
    let namespace = Namespace::for_layout("default", Layout::twitter());
    let namespace = namespace
        .and_then(|made| made.max_skew(0))
        .and_then(|made| made.node_ids(NodeRanges::up_to(7)));
    *shared.store.lock().expect("no panic") = Some(MemoryStore::new(namespace.expect("valid")));
    until("a replacement", || {
        let status = rises();
        status.losses == 1 && status.end_exclusive > first.end_exclusive
    });
}

#[test]
fn a_layout_that_ends_takes_its_lease_along() {
    let now = SystemClock.now().expect("a time") / 1_000_000;
    // Within twelve seconds, some of which opening may take on a busy machine.
    let layout = Layout::custom([(Field::Time, 31), (Field::Node, 10), (Field::Sequence, 12)])
        .epoch_ms(now + 12_000 - (1 << 31))
        .build()
        .expect("valid");
    let flake = short_snowflake(Shared::of(1).location(), layout).ttl(12).open().expect("in time");
    let mut last = 0;
    until("its end", || match flake.generate() {
        Ok(id) => {
            assert!(last < id && layout.inspect(id).expect("an id").unix_ms < layout.ends_at());
            last = id;
            thread::sleep(Duration::from_millis(5));
            false
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::LifetimeOver, "{error}");
            true
        }
    });
    // Renewals continue, and the state says why no id comes.
    until("a renewal", || flake.lease().expect("open").renewals > 0);
    let status = flake.lease().expect("open");
    assert_eq!(status.state, State::Waiting, "{status:?}");
    let why = status.last_error.as_ref().map(Error::kind);
    assert_eq!(why, Some(ErrorKind::LifetimeOver), "{status:?}");
    assert_eq!(status.end_exclusive, -(-layout.ends_at()).div_euclid(1000), "not after its end");
    assert_eq!(kind(flake.generate()), Err(ErrorKind::LifetimeOver));
    let refused = short_snowflake(Shared::of(1).location(), layout).open();
    assert_eq!(kind(refused), Err(ErrorKind::LifetimeOver), "without asking the store");
}

#[test]
fn what_a_layout_has_no_room_for_is_refused_at_once() {
    let nowhere = || Location::new(|_| panic!("the store is not asked"));
    let refused = |builder: LeasedBuilder<Plain>| {
        let error = builder.open().expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        error.to_string()
    };
    let of = |layout| Leased::for_layout(nowhere(), layout);
    assert!(refused(of(Layout::simpleflake())).contains("has no node ids"));
    let many = refused(of(Layout::twitter()).node_count(1024));
    assert!(many.contains("twitter must have 1 to 1023 node ids, got 1024"), "{many}");
    let minutes = Layout::custom([(Field::Time, 31), (Field::Node, 10)]).tick_ms(60_000);
    let long = refused(of(minutes.build().expect("valid")));
    assert!(long.contains("at least 360 seconds, six of its ticks, got 300"), "{long}");
}

#[test]
fn a_namespace_has_one_layout() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let first = leased_snowflake(path.as_path(), Layout::twitter()).expect("a lease");
    // The same ids by another name.
    let same = leased_snowflake(path.as_path(), Layout::leaf()).expect("another node id");
    assert_ne!(first.node_ids(), same.node_ids());
    let [time40, time41] = [40, 41].map(|time| {
        Layout::custom([(Field::Time, time), (Field::Node, 10), (Field::Sequence, 12)])
            .epoch_ms(1_288_834_974_657)
            .build()
            .expect("valid")
    });
    leased_snowflake(path.as_path(), time41).expect("the same again");
    for other in [Layout::discord(), Layout::instagram(), time40] {
        let refused = leased_snowflake(path.as_path(), other).expect_err("another layout");
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        for layout in [other, Layout::twitter()] {
            assert!(refused.to_string().contains(&layout.to_string()), "{refused}");
        }
    }
    let of_a_secret = leased(path.as_path(), &Secret::random());
    assert_eq!(kind(of_a_secret), Err(ErrorKind::InvalidArgument));
    // With Randflake's layout, the secret still tells them apart.
    Leased::builder(path.as_path(), &Secret::random()).namespace("orders").open().expect("made");
    let plain = Leased::for_layout(path.as_path(), Layout::randflake()).namespace("orders").open();
    assert_eq!(kind(plain), Err(ErrorKind::SecretMismatch));
}

/// A holder with a shorter lease than requested must not stamp further ahead than a third of that
/// lease: releasing a dead holder's lease relies on this.
#[test]
fn the_drift_is_a_third_of_what_is_granted() {
    let store = MemoryStore::new(Namespace::new("any", &Secret::random()).expect("a name"));
    let location = Location::new(move |namespace| {
        Ok(Box::new(store.namespace(namespace.max_skew(1)?.max_ttl(60)?)))
    });
    let flake = Leased::builder(location, &Secret::random())
        .max_skew(1)
        .max_drift(100)
        .max_wait(Duration::ZERO)
        .open()
        .expect("a lease");
    // A third of 61 seconds: the current second and 20 more.
    let refused = flake.fill(&mut vec![Id::default(); 22 * 131_072]);
    assert_eq!(kind(refused), Err(ErrorKind::InvalidArgument), "needs longer");
    flake.fill(&mut vec![Id::default(); 131_072]).expect("a second of ids");
}

/// A store whose acquire waits until the test lets it continue.
#[derive(Clone, Default)]
struct Gate {
    shared: Shared,
    inside: Arc<AtomicU32>,
    most_inside: Arc<AtomicU32>,
    is_open: Arc<AtomicBool>,
}

impl Gate {
    fn location(&self) -> Location {
        let (gate, location) = (self.clone(), self.shared.location());
        Location::new(move |namespace| {
            location.open(&namespace)?;
            Ok(Box::new(gate.clone()))
        })
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }
}

impl LeaseStore for Gate {
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
        let inside = self.inside.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_inside.fetch_max(inside, Ordering::Relaxed);
        until("the gate opens", || self.is_open.load(Ordering::Relaxed));
        self.inside.fetch_sub(1, Ordering::Relaxed);
        self.shared.acquire(request)
    }
    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
        self.shared.renew(request)
    }
    fn release(&mut self, request: &Release) -> Result<Reply<Released>> {
        self.shared.release(request)
    }
    fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>> {
        self.shared.fence(request)
    }
    fn list(&mut self, request: &List) -> Result<Reply<Listed>> {
        self.shared.list(request)
    }
    fn repair(&mut self, request: &Repair) -> Result<Reply<Shortened>> {
        self.shared.repair(request)
    }
    fn release_dead(&mut self, request: &ReleaseDead) -> Result<Reply<Shortened>> {
        self.shared.release_dead(request)
    }
}

#[test]
fn a_lazy_generator_leases_with_its_first_id() {
    let scratch = Scratch::new();
    let (path, secret) = (scratch.path("ids.db"), Secret::random());
    let lazily = || Leased::builder(path.as_path(), &secret).open_lazily().expect("valid");
    let flake = lazily();
    assert_eq!((flake.node_ids(), flake.is_over()), (vec![], false));
    assert!(flake.lease().is_none());
    let known = flake.encrypt(1);
    assert_eq!(flake.decrypt(known), 1, "reading needs no lease");
    drop(lazily());
    assert!(!path.exists(), "nothing was asked");

    let id = flake.generate().expect("an id");
    assert_eq!(flake.node_ids(), [flake.inspect(id).node_id]);
    assert_eq!(flake.lease().expect("a lease").state, State::Holding);
    lazily().fill(&mut [Id::default(); 1000]).expect("ids");
    lazily().check_fill(1000).expect("there will be ids");
    assert_eq!(lazily().ready_in().expect("a lease"), Duration::ZERO);

    let closed = lazily();
    closed.close();
    assert!(closed.is_over() && closed.is_ended());
    assert_eq!(kind(closed.generate()), Err(ErrorKind::Closed));
    assert_eq!(kind(closed.ready_in()), Err(ErrorKind::Closed));

    let invalid = Leased::builder(path.as_path(), &secret).ttl(29).open_lazily();
    assert_eq!(kind(invalid), Err(ErrorKind::InvalidArgument), "six times the skew");
}

#[test]
fn what_interrupts_a_first_lease_is_returned() {
    struct Interrupted;

    impl Clock for Interrupted {
        fn now(&self) -> Result<i64> {
            SystemClock.now()
        }
        fn sleep(&self, _: Duration) -> Result<Option<Duration>> {
            Err(Error::from_clock(std::fmt::Error))
        }
    }

    let shared = Shared::of(1);
    shared.down.store(true, Ordering::Relaxed);
    let flake = short(shared.location(), &Secret::random()).clock(Interrupted);
    let flake = flake.open_lazily().expect("valid");
    let error = flake.generate().expect_err("interrupted");
    error.into_source::<std::fmt::Error>().expect("itself, which no clone of the error keeps");
    shared.down.store(false, Ordering::Relaxed);
    flake.generate().expect("a lease");
}

/// A clock whose sleeps end with an error from some moment on.
struct EndsAt(Arc<AtomicBool>);

impl Clock for EndsAt {
    fn now(&self) -> Result<i64> {
        SystemClock.now()
    }

    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Error::from_clock(std::fmt::Error));
        }
        SystemClock.sleep(duration)
    }
}

#[test]
fn a_silent_store_is_interrupted_and_what_it_grants_then_goes_back() {
    let gate = Gate { shared: Shared::of(1), ..Gate::default() };
    let interrupted = Arc::new(AtomicBool::new(false));
    let flake = short(gate.location(), &Secret::random())
        .clock(EndsAt(Arc::clone(&interrupted)))
        .ttl(60)
        .interruptible()
        .open_lazily()
        .expect("valid");
    thread::scope(|scope| {
        let generating = scope.spawn(|| flake.generate());
        until("the store is asked", || gate.inside.load(Ordering::Relaxed) == 1);
        interrupted.store(true, Ordering::Relaxed);
        let error = generating.join().expect("no panic").expect_err("interrupted");
        error.into_source::<std::fmt::Error>().expect("what the clock has raised");
    });
    interrupted.store(false, Ordering::Relaxed);
    assert_eq!(gate.inside.load(Ordering::Relaxed), 1, "its answer is still to come");
    gate.open();
    until("it is given back", || gate.shared.releases.load(Ordering::Relaxed) == 1);
    flake.generate().expect("an id of the only node id");
    flake.close();
    assert_eq!(gate.shared.releases.load(Ordering::Relaxed), 2);
}

#[test]
fn nothing_is_asked_for_after_an_interruption() {
    let shared = Shared::of(1);
    shared.down.store(true, Ordering::Relaxed);
    let interrupted = Arc::new(AtomicBool::new(false));
    let builder = short(shared.location(), &Secret::random())
        .clock(EndsAt(Arc::clone(&interrupted)))
        .acquire_timeout(Duration::from_secs(86_400))
        .interruptible();
    thread::scope(|scope| {
        let opening = scope.spawn(|| builder.open());
        until("it is refused once", || shared.refusals.load(Ordering::Relaxed) > 0);
        interrupted.store(true, Ordering::Relaxed);
        assert!(opening.join().expect("no panic").is_err());
    });
    // The thread shares the store, and drops it when it ends.
    until("the thread ends", || Arc::strong_count(&shared.store) == 1);
    assert_eq!(shared.releases.load(Ordering::Relaxed), 0);
}

#[test]
fn an_interruptible_first_lease_is_one() {
    let shared = Shared::of(2);
    let secret = Secret::random();
    let builder = || short(shared.location(), &secret).ttl(60).interruptible();
    let (one, other) = (builder().open().expect("free"), builder().open().expect("free"));
    assert_ne!(one.node_ids(), other.node_ids());
    let refused = builder().acquire_timeout(Duration::ZERO).open();
    assert_eq!(kind(refused), Err(ErrorKind::NodesExhausted));
    assert_eq!(one.metrics().store_requests, 1);
    shared.down.store(true, Ordering::Relaxed);
    let lazy = builder().acquire_timeout(Duration::ZERO).open_lazily().expect("valid");
    let refused = lazy.generate().expect_err("it is down");
    assert_eq!(refused.kind(), ErrorKind::LeaseUnavailable);
    assert_eq!(refused.cause().map(Error::kind), Some(ErrorKind::StoreUnavailable));
    assert_eq!(lazy.metrics().store_errors, [(ErrorKind::StoreUnavailable, 1)]);
}

/// The generator is closed while its lease is on the way.
#[test]
fn an_interruptible_lease_that_nobody_wants_goes_back() {
    let gate = Gate { shared: Shared::of(1), ..Gate::default() };
    let flake = short(gate.location(), &Secret::random()).ttl(60).interruptible();
    let flake = flake.open_lazily().expect("valid");
    thread::scope(|scope| {
        let generating = scope.spawn(|| flake.generate());
        until("the store is asked", || gate.inside.load(Ordering::Relaxed) == 1);
        flake.stop();
        gate.open();
        assert_eq!(kind(generating.join().expect("no panic")), Err(ErrorKind::Closed));
    });
    until("it is given back", || gate.shared.releases.load(Ordering::Relaxed) == 1);
}

#[test]
fn threads_take_one_first_lease() {
    let gate = Gate { shared: Shared::of(1), ..Gate::default() };
    let flake = short(gate.location(), &Secret::random()).ttl(60).open_lazily().expect("valid");
    let ids: Vec<Id> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| flake.generate())).collect();
        let waiting = || flake.metrics().waits.last().map_or(0, |(_, count)| *count);
        until("all of them wait", || waiting() == 8);
        gate.open();
        // There is no node id for another lease.
        threads.into_iter().map(|thread| thread.join().expect("ends").expect("an id")).collect()
    });
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 8);
    assert_eq!(gate.most_inside.load(Ordering::Relaxed), 1);
    assert_eq!(gate.shared.releases.load(Ordering::Relaxed), 0);
}

#[test]
fn a_first_lease_is_tried_again_with_the_next_call() {
    let gate = Gate { shared: Shared::of(1), ..Gate::default() };
    gate.shared.down.store(true, Ordering::Relaxed);
    let secret = Secret::random();
    let builder = || short(gate.location(), &secret).acquire_timeout(Duration::ZERO);
    let flake = builder().open_lazily().expect("valid");
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| flake.generate())).collect();
        until("a thread asks", || gate.inside.load(Ordering::Relaxed) == 1);
        gate.open();
        for thread in threads {
            let refused = thread.join().expect("ends").expect_err("it is down");
            assert_eq!(refused.kind(), ErrorKind::LeaseUnavailable);
            assert!(refused.retry_after().is_some_and(|after| !after.is_zero()), "{refused}");
        }
    });
    assert_eq!(gate.most_inside.load(Ordering::Relaxed), 1, "one request at a time");
    for _ in 0..2 {
        let asked = gate.shared.refusals.load(Ordering::Relaxed);
        let refused = flake.generate().expect_err("it is down");
        assert_eq!(refused.cause().map(Error::kind), Some(ErrorKind::StoreUnavailable));
        assert_eq!(gate.shared.refusals.load(Ordering::Relaxed), asked + 1);
        assert_eq!(kind(flake.ready_in()), Err(ErrorKind::LeaseUnavailable));
        assert!(flake.lease().is_none());
    }
    assert_eq!(kind(builder().open()), Err(ErrorKind::StoreUnavailable), "as it is");
    gate.shared.down.store(false, Ordering::Relaxed);
    flake.generate().expect("an id");
}

#[test]
fn waiting_for_a_first_lease_helps_or_the_error_says_why_not() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    leased(path.as_path(), &Secret::random()).expect("a lease");
    let flake = Leased::builder(path.as_path(), &Secret::random()).open_lazily().expect("valid");
    for _ in 0..2 {
        assert_eq!(kind(flake.generate()), Err(ErrorKind::SecretMismatch));
    }
    let missing = Leased::builder(scratch.path("missing.db"), &Secret::random()).create(false);
    let missing = missing.open_lazily().expect("valid");
    assert_eq!(kind(missing.generate()), Err(ErrorKind::StoreNotInitialized));
}

#[test]
fn a_generator_closed_while_it_leases_gives_the_lease_back() {
    let gate = Gate { shared: Shared::of(1), ..Gate::default() };
    let secret = Secret::random();
    let flake = short(gate.location(), &secret).ttl(60).open_lazily().expect("valid");
    thread::scope(|scope| {
        let first = scope.spawn(|| flake.generate());
        until("a thread asks", || gate.inside.load(Ordering::Relaxed) == 1);
        flake.close();
        gate.open();
        assert_eq!(kind(first.join().expect("ends")), Err(ErrorKind::Closed));
    });
    assert_eq!(gate.shared.releases.load(Ordering::Relaxed), 1);
    short(gate.location(), &secret).open().expect("the only node id is free");
}

#[test]
fn a_place_holds_the_generator_that_was_there_first() {
    let shared = Shared::of(1);
    let secret = Secret::random();
    let lazily = || short(shared.location(), &secret).open_lazily().expect("valid");
    let cell = LeasedCell::new();
    assert!(cell.get().expect("open").is_none() && cell.made().is_none() && !cell.is_over());
    let (first, is_new) = cell.set(lazily()).expect("open");
    assert!(is_new);
    first.generate().expect("an id");
    let (still_first, is_new) = cell.set(lazily()).expect("open");
    assert!(!is_new && Arc::ptr_eq(first, still_first));
    cell.stop();
    assert_eq!(kind(first.generate()), Err(ErrorKind::Closed));
    until("it is given back", || cell.is_over());

    let closed = LeasedCell::new();
    closed.stop();
    assert!(closed.is_over() && closed.made().is_none());
    assert_eq!(closed.get().map(drop).map_err(|error| error.kind()), Err(ErrorKind::Closed));
    assert_eq!(kind(closed.set(lazily()).map(drop)), Err(ErrorKind::Closed));
}
