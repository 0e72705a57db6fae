//! What is reported about a lease in an outage, after a loss and at the end, in injected time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use once_cell::race::OnceBox;
use randflake::{
    Encrypted, Error, ErrorKind, Generator, Id, Layout, Lease, NodeIds, Plain, Secret,
};

use super::{
    reported::LastReported,
    shared::{Next, SharedState},
    source::{LeaseSource, OpenStore},
    status::{LeaseStatus, Level},
    *,
};
use crate::{
    keeper::{Keeper, Options, Reading, State, Step},
    namespace::Namespace,
    node_ranges::NodeRanges,
    protocol::{
        Acquire, Acquired, Fence, Fenced, LeaseStore, List, Listed, Release, ReleaseDead, Released,
        Renew, Renewed, Repair, Reply, Shortened,
    },
    stores::memory::MemoryStore,
};

const NOON: i64 = 1_763_640_000;

/// A store in memory that can be disconnected, and that can lose a lease.
struct Flaky {
    store: MemoryStore,
    down: Arc<AtomicBool>,
    loses: Arc<AtomicBool>,
}

impl Flaky {
    fn ask<T>(&mut self, ask: impl FnOnce(&mut MemoryStore) -> Result<T>) -> Result<T> {
        if self.down.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::StoreUnavailable, "disconnected"));
        }
        ask(&mut self.store)
    }
}

impl LeaseStore for Flaky {
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
        self.ask(|store| store.acquire(request))
    }
    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
        if self.loses.swap(false, Ordering::Relaxed) {
            return Ok(request.reply(Renewed::Lost { now: request.client_now }));
        }
        self.ask(|store| store.renew(request))
    }
    fn release(&mut self, request: &Release) -> Result<Reply<Released>> {
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

type InjectedClock = Box<dyn Fn() -> i64 + Send + Sync>;

/// What the thread of a leased generator has, without a thread.
struct Driven {
    nanos: Arc<AtomicI64>,
    down: Arc<AtomicBool>,
    loses: Arc<AtomicBool>,
    store: OpenStore,
    source: LeaseSource,
    state: SharedState,
    generator: Generator<Encrypted, InjectedClock>,
    last_reported: LastReported,
    reported: Vec<LeaseStatus>,
}

impl Driven {
    /// With a lease of a minute, and so many node ids of the store's.
    fn new(node_count: u32, max_node_id: u32) -> Self {
        let nanos = Arc::new(AtomicI64::new(NOON * 1_000_000_000));
        let [down, loses] = [false; 2].map(|flag| Arc::new(AtomicBool::new(flag)));
        let secret = Secret::random();
        let namespace = Namespace::new("orders", &secret)
            .and_then(|namespace| namespace.node_ids(NodeRanges::up_to(max_node_id)))
            .expect("a namespace");
        let clock = |nanos: &Arc<AtomicI64>| -> InjectedClock {
            let nanos = Arc::clone(nanos);
            Box::new(move || nanos.load(Ordering::Relaxed))
        };
        let store = MemoryStore::with_clock(namespace.clone(), clock(&nanos));
        let flaky = Flaky { store, down: Arc::clone(&down), loses: Arc::clone(&loses) };
        let options = Options { node_count, ttl: 60, ..Options::default() };
        let mut random = 0;
        let keeper = Keeper::with_random(options, move || {
            random += 1;
            random << 32
        });
        let source = LeaseSource {
            location: Location::new(|_| unreachable!("the store is open")),
            namespace,
            options,
            node_ids: NodeIds::of_secret(&secret),
            on_lease_change: None,
            is_interruptible: false,
            store_name: OnceBox::with_value(Box::new("flaky".to_owned())),
        };
        let mut keeper = keeper.expect("within the limits");
        let mut store: OpenStore = Some(Box::new(flaky));
        let now = reading_of(&nanos);
        let (node_ids, lease) = loop {
            match keeper.step(now) {
                Step::Open { node_ids, lease } => break (node_ids, lease),
                step => keeper.answer(source.ask(step, &mut store), now).expect("its answer"),
            }
        };
        keeper.answer(Answer::Opened(Ok(())), now).expect("its answer");
        let generator = without_lease(secret, node_count, Duration::ZERO, 10, clock(&nanos));
        let generator = generator.expect("a generator");
        generator.begin(&node_ids, lease, keeper.most_drift(lease)).expect("a lease");
        let first = source.status(&keeper, &generator, now).expect("a lease");
        let mut state = SharedState::default();
        state.keeper = Some(keeper);
        let (last_reported, reported) = (LastReported(Some(first.clone())), vec![first]);
        Self { nanos, down, loses, store, source, state, generator, last_reported, reported }
    }

    /// Does what the thread does for so many seconds.
    fn pass(&mut self, seconds: i64) {
        let end = self.nanos.load(Ordering::Relaxed) + seconds * 1_000_000_000;
        loop {
            let now = reading_of(&self.nanos);
            let (state, generator) = (&self.state, &self.generator);
            if let Some(changed) = self.last_reported.changed(state, generator, &self.source, now) {
                self.reported.push(changed.clone());
            }
            match self.state.advance(&self.generator, ForkId::current(), now) {
                Next::End => break,
                Next::Continue => {}
                Next::Ask(step) => {
                    let answer = self.source.ask(step, &mut self.store);
                    let keeper = self.state.keeper.as_mut().expect("a keeper");
                    keeper.answer(answer, now).expect("its answer");
                }
                Next::Sleep(pause) => {
                    let wake = now.wall + i64::try_from(pause.as_nanos()).expect("short").max(1);
                    if wake > end {
                        self.nanos.store(end, Ordering::Relaxed);
                        return;
                    }
                    self.nanos.store(wake, Ordering::Relaxed);
                }
            }
        }
    }

    fn states(&self) -> Vec<State> {
        self.reported.iter().map(|status| status.state).collect()
    }

    fn last(&self) -> &LeaseStatus {
        self.reported.last().expect("the first one")
    }

    fn metrics(&self) -> LeasedMetrics {
        let (waits, requests) = self.state.counts();
        LeasedMetrics::new(self.generator.metrics(), waits, requests)
    }
}

fn reading_of(nanos: &AtomicI64) -> Reading {
    let wall = nanos.load(Ordering::Relaxed);
    let boot = Duration::from_nanos((wall - NOON * 1_000_000_000).unsigned_abs());
    Reading { wall, boot }
}

#[test]
fn an_outage_is_told_once_in_each_of_its_states() {
    use State::{Expired, Holding, Retrying};

    let mut driven = Driven::new(1, 7);
    driven.pass(300);
    assert_eq!(driven.states(), [Holding], "renewals change nothing");

    driven.down.store(true, Ordering::Relaxed);
    let end = driven.generator.lease().expect("open").end_exclusive();
    driven.pass(40);
    assert_eq!(driven.states(), [Holding, Retrying]);
    driven.pass(600);
    assert_eq!(driven.states(), [Holding, Retrying, Expired], "each of them once");
    assert_eq!((driven.last().end_exclusive, driven.last().time_left), (end, Duration::ZERO));
    let error = driven.last().last_error.as_ref().map(Error::code);
    assert_eq!(error, Some("STORE_UNAVAILABLE"));
    let failed = driven.metrics().store_errors;
    assert!(matches!(failed[..], [(ErrorKind::StoreUnavailable, 10..)]), "{failed:?}");

    driven.down.store(false, Ordering::Relaxed);
    driven.pass(30);
    assert_eq!(driven.states(), [Holding, Retrying, Expired, Holding]);
    assert_eq!(driven.last().last_error, None);
    assert_eq!(driven.metrics().store_errors, failed);
    driven.generator.fill(&mut [Id::default(); 100]).expect("ids again");
    assert_eq!(driven.metrics().ids_generated, 100);
}

/// Not when the keeper next looks.
#[test]
fn the_end_is_told_in_the_second_of_the_end() {
    let mut driven = Driven::new(1, 7);
    driven.down.store(true, Ordering::Relaxed);
    driven.pass(59);
    assert_eq!(driven.last().state, State::Retrying);
    driven.pass(1);
    assert_eq!(driven.last().state, State::Expired);
}

/// `ReleaseDead` relies on it.
#[test]
fn stamps_are_ahead_by_a_third_of_a_shorter_lease_at_most() {
    let mut driven = Driven::new(1, 7);
    let six_seconds = 6 * 131_072;
    driven.generator.check_fill(six_seconds, Call::default()).expect("within 10 seconds of drift");

    let shorter = Namespace::new("orders", &Secret::random())
        .and_then(|namespace| namespace.max_ttl_and_skew(12, 2))
        .expect("a namespace");
    let nanos = Arc::clone(&driven.nanos);
    let store = MemoryStore::with_clock(shorter, move || nanos.load(Ordering::Relaxed));
    let (down, loses) = (Arc::clone(&driven.down), Arc::clone(&driven.loses));
    driven.store = Some(Box::new(Flaky { store, down, loses }));
    driven.loses.store(true, Ordering::Relaxed);
    driven.pass(60);

    assert!(driven.generator.check_fill(six_seconds, Call::default()).is_err());
    driven.generator.check_fill(5 * 131_072, Call::default()).expect("within 4 seconds of drift");
}

#[test]
fn other_node_ids_are_told_as_one_change() {
    let mut driven = Driven::new(1, 7);
    let before = driven.generator.node_ids().to_vec();
    driven.loses.store(true, Ordering::Relaxed);
    driven.pass(60);
    let [first, lost, replaced] = &driven.reported[..] else { panic!("{:?}", driven.reported) };
    assert_eq!((first.level(), lost.level()), (Level::Info, Level::Warning));
    assert_eq!(lost.last_error.as_ref().map(Error::code), Some("LEASE_LOST"));
    assert_eq!((lost.state, replaced.state), (State::Retrying, State::Holding));
    assert_ne!(replaced.node_ids, before);
    assert_eq!((replaced.losses, replaced.replacements), (1, 1));
    let message = replaced.message();
    let (new, old) = (&replaced.node_ids, &before);
    let expected = format!("node ids {new:?} replaced node ids {old:?}; ids continue until 2025-");
    assert!(message.starts_with(&expected) && message.contains("LEASE_LOST: "), "{message}");
    assert_eq!(driven.metrics().store_errors, [(ErrorKind::LeaseLost, 1)]);
}

#[test]
fn more_node_ids_replace_none() {
    let mut driven = Driven::new(3, 1);
    assert_eq!(driven.generator.node_ids(), [0, 1], "the store has two");
    driven.pass(120);
    assert_eq!((driven.states(), driven.last().replacements), (vec![State::Holding], 0));
}

#[test]
fn each_sentence_has_node_ids_and_an_end_and_the_error() {
    let mut driven = Driven::new(1, 0);
    driven.down.store(true, Ordering::Relaxed);
    driven.pass(120);
    driven.down.store(false, Ordering::Relaxed);
    driven.pass(30);
    driven.state.stop(&driven.generator, ForkId::current());
    driven.pass(1);
    let now = reading_of(&driven.nanos);
    let last_reported = LastReported(Some(driven.last().clone()));
    let ended = last_reported.ended(&driven.state, &driven.generator, &driven.source, now);
    driven.reported.push(ended.expect("an end"));
    let reported: Vec<_> =
        driven.reported.iter().map(|status| (status.level().name(), status.message())).collect();
    let expected = [
        (
            "info",
            "leased node ids [0] of the namespace \"orders\" from flaky; ids until \
             2025-11-20T12:01:00Z, unless it is renewed",
        ),
        (
            "warning",
            "the lease of node ids [0] could not be renewed, trying again; ids continue until \
             2025-11-20T12:01:00Z: STORE_UNAVAILABLE: disconnected",
        ),
        (
            "error",
            "the lease of node ids [0] ended at 2025-11-20T12:01:00Z; no ids until the store \
             grants one, trying again: STORE_UNAVAILABLE: disconnected",
        ),
        ("info", "holding the lease of node ids [0] again; ids until "),
        ("info", "stopped; no more ids of node ids [0]"),
    ];
    assert_eq!(reported.len(), expected.len(), "{reported:#?}");
    for ((level, message), (expected_level, expected)) in reported.iter().zip(expected) {
        assert_eq!(*level, expected_level, "{message}");
        assert!(message.starts_with(expected), "{message}\n{expected}");
    }
    assert_eq!(driven.last().state, State::Stopped);
}

#[test]
fn requests_and_the_difference_of_the_clocks_are_counted() {
    let mut driven = Driven::new(1, 7);
    driven.pass(120);
    let metrics = driven.metrics();
    let renewals = driven.state.keeper.as_ref().expect("a keeper").renewals();
    assert_eq!(metrics.store_requests, 1 + renewals);
    assert_eq!((metrics.clock_skew_seconds, metrics.store_errors.len()), (Some(0), 0));
}

#[test]
fn a_sleep_that_outlasts_the_lease_is_told_as_its_end() {
    let mut driven = Driven::new(1, 7);
    driven.nanos.fetch_add(3600 * 1_000_000_000, Ordering::Relaxed);
    driven.pass(30);
    assert_eq!(driven.states(), [State::Holding, State::Expired, State::Holding]);
}

/// A generator of sortable ids keeps their order, whatever the clock does: then it says what it waits for.
#[test]
fn a_held_lease_without_ids_is_no_held_one() {
    let nanos = Arc::new(AtomicI64::new(NOON * 1_000_000_000));
    let clock: InjectedClock = {
        let nanos = Arc::clone(&nanos);
        Box::new(move || nanos.load(Ordering::Relaxed))
    };
    let flake: Generator<Plain, _> =
        without_lease(Layout::twitter(), 1, Duration::ZERO, 0, clock).expect("a generator");
    let lease = Lease::new(NOON - 7200, NOON + 7200).expect("a lease");
    flake.begin(&[3], lease, 0).expect("a lease");
    let obstacle = || status::obstacle(&flake, PATIENCE);
    let kind = || obstacle().map(|error| error.kind());
    flake.generate().expect("an id");
    assert_eq!(kind(), None);

    let set = |second: i64| nanos.store(second * 1_000_000_000, Ordering::Relaxed);
    set(NOON - 3600);
    let why = obstacle().expect("no ids for an hour");
    assert_eq!(why.kind(), ErrorKind::ClockMovedBack, "{why}");
    let wait = why.retry_after().expect("there will be ids").as_secs();
    assert!((3598..=3600).contains(&wait), "{wait}");
    for (second, expected) in [
        (NOON - 2, Some(ErrorKind::ClockMovedBack)),
        (NOON - 1, None),
        (NOON, None),
        (NOON + 7199, None),
        (NOON + 7200, None), // the keeper says so
        (0, Some(ErrorKind::ClockBeforeEpoch)),
        (NOON, None),
    ] {
        set(second);
        assert_eq!(kind(), expected, "at {}", second - NOON);
    }
}
