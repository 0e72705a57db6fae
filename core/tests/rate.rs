//! How many ids a second has: exactly 131 072 for each node on one thread, in any mixture of single
//! calls and batches; with several threads never more, never one twice, and almost all.

use std::{
    cell::Cell,
    collections::HashSet,
    sync::{
        Barrier, OnceLock,
        atomic::{AtomicI64, Ordering},
    },
    thread,
    time::Duration,
};

use proptest::prelude::*;
use randflake::{
    Call, Clock, Error, ErrorKind, Field, Id, Layout, Lease, Order, Randflake, Result, Secret,
    Snowflake, SystemClock,
};

const SECOND: i64 = 1_763_640_000;
const IDS: usize = 131_072;

/// A buffered group: what one buffer may leave unused.
const GROUP: usize = 32;

/// A clock that stands still until it is moved, with or without a coarse clock.
struct Still {
    second: AtomicI64,
    has_coarse_clock: bool,
}

impl Clock for &Still {
    fn now(&self) -> Result<i64> {
        Ok(self.second.load(Ordering::Relaxed) * 1_000_000_000)
    }

    fn coarse_time(&self) -> Option<i64> {
        self.has_coarse_clock.then(|| self.second.load(Ordering::Relaxed))
    }
}

fn flake(nodes: u32, clock: &Still) -> Randflake<&Still> {
    Randflake::builder(&Secret::from_bytes(&[1; 16]).expect("16 bytes"))
        .node_ids(0..nodes)
        .max_wait(Duration::ZERO)
        .clock(clock)
        .build()
        .expect("a generator")
}

/// Takes ids one by one, or in batches of the given sizes, until the second is used up.
fn drain(flake: &Randflake<&Still>, sizes: impl Iterator<Item = usize>) -> Vec<Id> {
    let mut ids = Vec::new();
    for size in sizes {
        let taken = if size == 1 {
            flake.generate().map(|id| ids.push(id))
        } else {
            let mut batch = vec![Id::default(); size];
            flake.fill(&mut batch).map(|()| ids.append(&mut batch))
        };
        match taken {
            Ok(()) => {}
            // The batch no longer fitted; single calls take the rest.
            Err(error) if size > 1 => assert_exhausted(&error),
            Err(error) => {
                assert_exhausted(&error);
                return ids;
            }
        }
    }
    unreachable!("the sizes go on for ever")
}

fn assert_exhausted(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::SequenceExhausted, "{error}");
}

fn assert_distinct(ids: &[Id]) {
    let distinct: HashSet<_> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), ids.len(), "I1");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn one_thread_gets_exactly_all(
        nodes in 1_u32..=3,
        has_coarse_clock: bool,
        sizes in prop::collection::vec(prop_oneof![Just(1_usize), 2_usize..40, 1000_usize..5000], 1..50),
    ) {
        let clock = Still { second: AtomicI64::new(SECOND), has_coarse_clock };
        let flake = flake(nodes, &clock);
        for _ in 0..2 {
            let sizes = sizes.iter().copied().chain([1; 3]).cycle();
            let ids = drain(&flake, sizes);
            prop_assert_eq!(ids.len(), nodes as usize * IDS);
            assert_distinct(&ids);
            clock.second.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn several_threads_get_almost_all_and_never_more() {
    for (threads, has_coarse_clock) in [(2_usize, true), (3, false), (8, true), (20, true)] {
        let clock = Still { second: AtomicI64::new(SECOND), has_coarse_clock };
        let flake = flake(1, &clock);
        for _ in 0..3 {
            let ids: Vec<Id> = thread::scope(|scope| {
                let start = |thread| {
                    let flake = &flake;
                    scope.spawn(move || {
                        // Each thread has its own mixture; the first makes only single calls.
                        drain(flake, [1, 1 + thread, 1].into_iter().cycle())
                    })
                };
                let running: Vec<_> = (0..threads).map(start).collect();
                running.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
            });
            assert_distinct(&ids);
            let unused = IDS.checked_sub(ids.len()).expect("never more than there are");
            assert!(unused < GROUP, "{unused} of {IDS} unused with {threads} threads");
            clock.second.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn leased<C: Clock>(max_drift: u32, clock: C) -> Randflake<C> {
    Randflake::builder(&Secret::from_bytes(&[1; 16]).expect("16 bytes"))
        .node_id(1)
        .lease(Lease::new(SECOND, SECOND + 100).expect("a lease"))
        .max_drift(max_drift)
        .max_wait(Duration::ZERO)
        .clock(clock)
        .build()
        .expect("a generator")
}

/// A thread that has ended leaves at most the rest of its last group unused, in each second.
#[test]
fn threads_that_end_leave_at_most_a_group_unused() {
    const LARGEST_GROUP: usize = 128;
    for max_drift in [0, 2] {
        let clock = Still { second: AtomicI64::new(SECOND), has_coarse_clock: true };
        let flake = leased(max_drift, &clock);
        let mut ids = Vec::new();
        for _ in 0..8 {
            let thread = || (0..40).map(|_| flake.generate().expect("an id")).collect::<Vec<_>>();
            ids.extend(thread::scope(|scope| scope.spawn(thread).join().expect("no panic")));
        }
        ids.extend(drain(&flake, std::iter::repeat(1)));
        let all = (max_drift as usize + 1) * IDS;
        assert!(ids.len() <= all && ids.len() + 8 * LARGEST_GROUP > all, "{} of {all}", ids.len());
        assert_distinct(&ids);
    }
}

#[test]
fn generators_that_alternate_on_one_thread_get_exactly_all() {
    for count in [1, 2, 4, 5, 9] {
        let clock = Still { second: AtomicI64::new(SECOND), has_coarse_clock: true };
        let builder = |node_id| {
            Randflake::builder(&Secret::from_bytes(&[1; 16]).expect("16 bytes"))
                .node_id(node_id)
                .max_wait(Duration::ZERO)
                .clock(&clock)
        };
        let flakes: Vec<_> =
            (0..count).map(|node_id| builder(node_id).build().expect("a generator")).collect();
        // The first seconds are left with ids in all places of the buffer.
        for calls in [1, 5, 40, IDS + 1] {
            let mut ids = vec![HashSet::new(); flakes.len()];
            let mut made = 0;
            // One after another: after four calls, three ids of a group are left.
            for in_a_row in [1, 4, 1, 2].into_iter().cycle() {
                let in_a_row = in_a_row.min(calls - made);
                for (flake, ids) in flakes.iter().zip(&mut ids) {
                    for call in made..made + in_a_row {
                        match flake.generate() {
                            Ok(id) => assert!(ids.insert(id), "I1"),
                            Err(error) => {
                                assert_exhausted(&error);
                                assert_eq!(call, IDS, "all of them");
                            }
                        }
                    }
                }
                made += in_a_row;
                if made == calls {
                    break;
                }
            }
            let second = clock.second.fetch_add(1, Ordering::Relaxed);
            for (flake, ids) in flakes.iter().zip(&ids) {
                assert_eq!(ids.len(), calls.min(IDS));
                for id in ids.iter().take(100) {
                    let parts = flake.inspect(*id);
                    let own = (second, flake.node_ids()[0]);
                    assert_eq!((parts.timestamp, parts.node_id), own, "{count} generators");
                }
            }
        }
    }
}

/// More generators than a thread has places for: each place is free again in the next second.
#[test]
fn a_new_generator_finds_a_place_in_the_next_second() {
    let clock = Still { second: AtomicI64::new(SECOND), has_coarse_clock: true };
    let claimed_by_four_calls = || {
        let flake = leased(0, &clock);
        for _ in 0..4 {
            flake.generate().expect("an id");
        }
        let next = || flake.inspect(flake.generate().expect("an id")).sequence;
        thread::scope(|scope| scope.spawn(next).join().expect("no panic"))
    };
    let mut claimed = Vec::new();
    for _ in 0..6 {
        claimed.push(claimed_by_four_calls());
    }
    assert_eq!(claimed, [7, 7, 7, 7, 4, 4], "groups of 1, 2 and 4, or one at a time");
    clock.second.fetch_add(1, Ordering::Relaxed);
    assert_eq!(claimed_by_four_calls(), 7);
}

#[test]
fn threads_come_and_go_by_the_thousand() {
    let clock = Still { second: AtomicI64::new(SECOND), has_coarse_clock: true };
    let flakes = [flake(1, &clock), leased(1, &clock)];
    let some = |flake: &Randflake<&Still>| [0; 3].map(|_| flake.generate().expect("an id"));
    let mut ids = [Vec::new(), Vec::new()];
    for _ in 0..400 {
        thread::scope(|scope| {
            let threads = [0; 8].map(|_| scope.spawn(|| flakes.each_ref().map(some)));
            for thread in threads {
                for (all, ids) in ids.iter_mut().zip(thread.join().expect("no panic")) {
                    all.extend(ids);
                }
            }
        });
    }
    for ids in &ids {
        assert_eq!(ids.len(), 400 * 8 * 3);
        assert_distinct(ids);
    }
}

/// A clock that stops one thread during a call.
struct Stopping<'a>(&'a Barrier);

thread_local! { static STOPS: Cell<bool> = const { Cell::new(false) }; }

impl Clock for Stopping<'_> {
    fn now(&self) -> Result<i64> {
        if STOPS.take() {
            self.0.wait(); // the thread is here
            self.0.wait(); // it may continue
        }
        Ok(SECOND * 1_000_000_000)
    }

    fn coarse_time(&self) -> Option<i64> {
        Some(SECOND)
    }
}

/// A clock whose coarse time is a second late, as `time()` is for some milliseconds.
struct Late<'a>(&'a AtomicI64);

impl Clock for Late<'_> {
    fn now(&self) -> Result<i64> {
        Ok(self.0.load(Ordering::Relaxed) * 1_000_000_000)
    }

    fn coarse_time(&self) -> Option<i64> {
        Some(SECOND)
    }
}

/// A thread that got an id of a borrowed second, or waited for one, does not get ids that its
/// buffer still has of an earlier second.
#[test]
fn a_borrowed_second_is_never_followed_by_an_older_one() {
    for max_drift in [0, 1] {
        let now = AtomicI64::new(SECOND);
        let flake = leased(max_drift, Late(&now));
        let timestamp = |id| flake.inspect(id).timestamp;
        for _ in 0..5 {
            flake.generate().expect("an id, and some more ahead");
        }
        now.store(SECOND + 1, Ordering::Relaxed);
        // The rest of this second, and all of the next one.
        let others = || {
            for count in [IDS - 7, IDS] {
                flake.fill(&mut vec![Id::default(); count]).expect("ids");
            }
        };
        thread::scope(|scope| scope.spawn(others).join().expect("no panic"));
        let mut id = [Id::default()];
        let borrowed = flake.fill(&mut id).map(|()| timestamp(id[0]));
        let expected =
            if max_drift == 0 { Err(ErrorKind::SequenceExhausted) } else { Ok(SECOND + 2) };
        assert_eq!(borrowed.map_err(|error| error.kind()), expected);
        assert_eq!(flake.generate().map(timestamp).map_err(|error| error.kind()), expected);
    }
}

/// No matter what other threads have claimed ahead, also one that is stopped during a call.
#[test]
fn time_never_runs_backwards_on_one_thread() {
    let barrier = Barrier::new(2);
    let flake = leased(1, Stopping(&barrier));
    let second_of = |id| flake.inspect(id).timestamp;
    flake.generate().expect("an id");
    thread::scope(|scope| {
        for _ in 0..7 {
            let fills_a_buffer = || [0; 2].map(|_| flake.generate().expect("an id"));
            scope.spawn(fills_a_buffer).join().expect("no panic");
        }
        flake.fill(&mut vec![Id::default(); IDS]).expect("ids, the last ones borrowed");
        let stopped = scope.spawn(|| {
            STOPS.set(true);
            flake.generate().expect("an id")
        });
        barrier.wait();
        let ids: Vec<_> = (0..40)
            .flat_map(|_| {
                let mut id = [Id::default()];
                flake.fill(&mut id).expect("an id");
                [id[0], flake.generate().expect("an id")]
            })
            .collect();
        barrier.wait();
        stopped.join().expect("no panic");
        assert!(ids.is_sorted_by_key(|&id| second_of(id)), "older stamps after newer ones");
    });
}

/// A clock whose every wait extends the lease of [`RENEWED`] up to a second, as another thread
/// would do meanwhile.
struct Renewing;

static RENEWED: OnceLock<Randflake<Renewing>> = OnceLock::new();
static RENEWING_NOW: AtomicI64 = AtomicI64::new(SECOND);
static RENEWED_UP_TO: AtomicI64 = AtomicI64::new(SECOND + 4);

impl Clock for Renewing {
    fn now(&self) -> Result<i64> {
        Ok(RENEWING_NOW.load(Ordering::Relaxed) * 1_000_000_000)
    }

    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        let seconds = duration.as_nanos().div_ceil(1_000_000_000);
        let now = RENEWING_NOW.load(Ordering::Relaxed) + i64::try_from(seconds).expect("few");
        RENEWING_NOW.store(now, Ordering::Relaxed);
        let end_exclusive = (now + 2).min(RENEWED_UP_TO.load(Ordering::Relaxed));
        RENEWED.get().expect("made").extend_lease(end_exclusive)?;
        Ok(Some(duration))
    }
}

#[test]
fn a_batch_may_reach_beyond_a_lease_that_is_renewed() {
    let lease = Lease::new(SECOND, SECOND + 2).expect("two seconds");
    let flake = RENEWED.get_or_init(|| {
        let builder = Randflake::builder(&Secret::random()).node_ids([1]).granted_lease(lease);
        builder.clock(Renewing).build().expect("a generator")
    });
    let mut ids = vec![Id::default(); 4 * IDS];
    let refused = flake.fill(&mut ids).expect_err("past the end");
    assert_eq!(refused.kind(), ErrorKind::LeaseExpired);
    let mut numbers = vec![0; 4 * IDS];
    flake.fill_with(&mut numbers, Call::OVER_RENEWALS).expect("renewed in time");
    let ids: Vec<_> = numbers.iter().map(|&number| Id::from(number)).collect();
    assert_distinct(&ids);
    let parts: Vec<_> = ids.iter().map(|id| flake.inspect(*id)).collect();
    assert_eq!((parts[0].timestamp, parts[0].sequence), (SECOND, 0), "a refusal claims nothing");
    assert_eq!(parts[4 * IDS - 1].timestamp, SECOND + 3, "I2");

    // A batch that reaches the end is lost.
    RENEWED_UP_TO.store(SECOND + 6, Ordering::Relaxed);
    flake.extend_lease(SECOND + 5).expect("longer");
    let failed =
        flake.fill_with(&mut numbers, Call::OVER_RENEWALS).expect_err("renewed for two more only");
    assert_eq!(failed.kind(), ErrorKind::LeaseExpired);
    assert!(numbers.iter().all(|number| *number == 0));
    // But nothing is claimed if the end is already too near.
    flake.extend_lease(SECOND + 7).expect("longer");
    RENEWING_NOW.store(SECOND + 7, Ordering::Relaxed);
    let refused = flake.fill_with(&mut numbers, Call::OVER_RENEWALS).expect_err("over");
    assert_eq!(refused.kind(), ErrorKind::LeaseExpired);
}

#[test]
fn a_batch_is_checked_before_memory_is_allocated() {
    let now = SystemClock.now().expect("a time").div_euclid(1_000_000_000);
    let made = |lease: Option<Lease>, max_wait| {
        let builder = Randflake::builder(&Secret::random()).node_ids([1]).max_wait(max_wait);
        let builder = if let Some(lease) = lease { builder.lease(lease) } else { builder };
        builder.build().expect("valid")
    };
    let kind = |checked: Result<()>| checked.map_err(|error| error.kind());
    let manual = made(None, Duration::from_secs(1));
    // At most an hour, counted in whole seconds.
    assert_eq!(kind(manual.check_fill(3600 * IDS, Call::default())), Ok(()));
    let longer = manual.check_fill(3601 * IDS, Call::default()).expect_err("too long");
    assert_eq!(longer.kind(), ErrorKind::InvalidArgument);
    assert!(longer.to_string().contains("3601 seconds, but may take at most 3600"), "{longer}");
    assert_eq!(manual.time_for(3601 * IDS - 1), Duration::from_secs(3600));
    assert_eq!(
        kind(made(None, Duration::ZERO).check_fill(IDS + 1, Call::default())),
        Err(ErrorKind::InvalidArgument)
    );

    let minute = made(Some(Lease::new(now, now + 60).expect("valid")), Duration::from_secs(1));
    assert_eq!(kind(minute.check_fill(3 * IDS, Call::default())), Ok(()));
    assert_eq!(kind(minute.check_fill(61 * IDS, Call::default())), Err(ErrorKind::LeaseExpired));
    assert_eq!(kind(minute.check_fill(61 * IDS, Call::OVER_RENEWALS)), Ok(()));
    let soon = made(Some(Lease::new(now + 600, now + 660).expect("valid")), Duration::ZERO);
    assert_eq!(kind(soon.check_fill(1, Call::default())), Err(ErrorKind::LeaseNotStarted));
    assert_eq!(kind(soon.check_fill(0, Call::default())), Ok(()));
    let parts = minute.inspect(minute.generate().expect("an id"));
    assert_eq!(parts.sequence, 0, "it claims nothing");
    minute.close();
    assert_eq!(kind(minute.check_fill(1, Call::default())), Err(ErrorKind::Closed));
}

/// The machine's clock, whose waits would never end.
struct Sleepless;

impl Clock for Sleepless {
    fn now(&self) -> Result<i64> {
        SystemClock.now()
    }

    fn sleep(&self, _: Duration) -> Result<Option<Duration>> {
        panic!("no call may wait here");
    }

    fn is_system(&self) -> bool {
        true
    }
}

#[test]
fn at_once_means_without_a_wait() {
    let fields = [(Field::Time, 41), (Field::Node, 1), (Field::Sequence, 1)];
    let layout = Layout::custom(fields).tick_ms(60_000).build().expect("a layout");
    let flake = Snowflake::builder(layout).restart_safe(false).clock(Sleepless);
    let flake = flake.node_id(1).max_wait(Duration::from_secs(86_400)).build().expect("a node id");
    // A tick of a minute has two, and the minute may end meanwhile.
    let ids: Vec<u64> = (0..10).map_while(|_| flake.generate_with(Call::AT_ONCE).ok()).collect();
    assert!((2..=4).contains(&ids.len()) && ids.is_sorted(), "{ids:?}");
    flake.close();
    assert!(flake.generate_with(Call::AT_ONCE).is_err());
}

#[test]
fn ids_in_order_take_one_slot_after_the_other() {
    let flake = Randflake::new(41, &Secret::random()).expect("a node id");
    let in_order = Call { order: Order::Next, ..Call::default() };
    let mut ids = vec![];
    for _ in 0..1000 {
        ids.push(flake.generate_with(in_order).expect("an id"));
        let mut batch = [Id::default(); 2];
        flake.fill(&mut batch).expect("ids");
        ids.extend(batch);
    }
    let slots = ids.iter().map(|id| flake.inspect(*id)).map(|it| (it.timestamp, it.sequence));
    let slots: Vec<_> = slots.collect();
    for pair in slots.windows(2) {
        let ((second, sequence), (next_second, next_sequence)) = (pair[0], pair[1]);
        let follows = (next_second, next_sequence) == (second, sequence + 1);
        assert!(follows || next_second > second && next_sequence == 0, "{pair:?}");
    }
}
