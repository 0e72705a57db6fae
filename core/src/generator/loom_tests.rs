//! The generator itself under loom: every interleaving, up to a bound on preemptions, of claims
//! with claims, a stepping clock, extension, replacement and close.
//!
//! `tests/mutants/run.py loom` shows that these tests catch a store in place of the
//! compare-exchange, a missing seal, and a node read after the swap.

use std::ops::Range;

use loom::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    thread,
};

use crate::{
    Clock, ErrorKind, Field, Layout, Lease, Parts, Randflake, Result, Secret, Sequence, Snowflake,
    packed_state::Snapshot,
};

/// Second 0 of every model.
const T: i64 = 1_763_640_000;

/// A clock whose second another thread sets.
struct StepClock(Arc<AtomicI64>);

impl Clock for StepClock {
    fn now(&self) -> Result<i64> {
        Ok(self.0.load(Ordering::Relaxed) * 1_000_000_000)
    }

    fn coarse_time(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed))
    }
}

type Flake = Arc<Randflake<StepClock>>;

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // Every known bug of this kind shows with two; three takes minutes.
    builder.preemption_bound = Some(2);
    builder.check(body);
}

fn flake(node_ids: &[u32], window: Range<i64>) -> (Flake, Arc<AtomicI64>) {
    let second = Arc::new(AtomicI64::new(T));
    let secret = Secret::from_bytes(&[7; 16]).expect("16 bytes");
    let flake = Randflake::builder(&secret)
        .node_ids(node_ids.iter().copied())
        .granted_lease(Lease::new(window.start, window.end).expect("a lease"))
        .clock(StepClock(Arc::clone(&second)))
        .build()
        .expect("a generator");
    (Arc::new(flake), second)
}

/// Claims all but `left` slots of the current second.
fn use_up_all_but(left: u64, flake: &Flake) {
    let state = &flake.current_term.get().expect("open").state;
    let Snapshot::Open(seen) = state.load() else { panic!("an open state") };
    assert!(state.claim(seen, seen, state.slots() - left));
}

/// Generates up to so many ids; errors end it, since the models' clocks cannot wait.
fn generate(flake: &Flake, times: usize) -> Vec<Parts> {
    let parts: Vec<_> =
        (0..times).map_while(|_| flake.generate().ok()).map(|id| flake.inspect(id)).collect();
    assert!(parts.is_sorted_by_key(|parts| parts.timestamp), "I1: one thread sees time rise");
    parts
}

fn assert_distinct(parts: &[Parts]) {
    for (index, one) in parts.iter().enumerate() {
        assert!(!parts[..index].contains(one), "I1: {one:?} was handed out twice");
    }
}

#[test]
fn claims_and_a_clock_that_steps() {
    model(|| {
        let (flake, second) = flake(&[1], T..T + 10);
        use_up_all_but(1, &flake);
        let other = thread::spawn({
            let flake = Arc::clone(&flake);
            move || generate(&flake, 2)
        });
        let clock = thread::spawn(move || {
            second.store(T + 1, Ordering::Relaxed);
            second.store(T - 1, Ordering::Relaxed);
        });
        let mut parts = generate(&flake, 2);
        parts.extend(other.join().expect("no panic"));
        clock.join().expect("no panic");
        assert_distinct(&parts);
    });
}

#[test]
fn three_threads_claim() {
    model(|| {
        let (flake, _) = flake(&[1, 2], T..T + 10);
        use_up_all_but(131_073, &flake); // from the last slot of node 1 to the first of node 2
        let others = [0; 2].map(|_| {
            let flake = Arc::clone(&flake);
            thread::spawn(move || generate(&flake, 1))
        });
        let mut parts = generate(&flake, 1);
        for other in others {
            parts.extend(other.join().expect("no panic"));
        }
        assert_eq!(parts.len(), 3);
        assert_distinct(&parts);
    });
}

/// Each thread claims one id, then a group, and hands out the rest of that from its own buffer.
#[test]
fn threads_with_buffers_of_their_own() {
    model(|| {
        let (flake, _) = flake(&[1], T..T + 10);
        let other = thread::spawn({
            let flake = Arc::clone(&flake);
            move || generate(&flake, 3)
        });
        let mut parts = generate(&flake, 3);
        parts.extend(other.join().expect("no panic"));
        assert_eq!(parts.len(), 6);
        assert_distinct(&parts);
    });
}

/// A thread that ended leaves what it had ahead unused: at most the rest of one group.
#[test]
fn a_second_that_is_used_up_by_two_threads() {
    model(|| {
        let (flake, _) = flake(&[1], T..T + 10);
        use_up_all_but(5, &flake);
        let other = thread::spawn({
            let flake = Arc::clone(&flake);
            move || generate(&flake, 2)
        });
        let mut parts = generate(&flake, 5);
        parts.extend(other.join().expect("no panic"));
        parts.extend(generate(&flake, 5));
        assert_distinct(&parts);
        assert!((4..=5).contains(&parts.len()), "all but one at most: {parts:?}");
    });
}

/// What is left of the group of a replaced or closed Term is not handed out.
#[test]
fn buffered_ids_and_a_replacement() {
    model(|| {
        let (flake, second) = flake(&[1], T..T + 10);
        let mut parts = generate(&flake, 2); // the second call has one more ahead, the fourth too
        let replacer = thread::spawn({
            let flake = Arc::clone(&flake);
            move || flake.replace_lease(&[1], Lease::new(T, T + 10).expect("a lease"), u32::MAX)
        });
        parts.extend(generate(&flake, 2));
        let unused_from = replacer.join().expect("no panic").expect("open");
        assert_eq!(unused_from, T + 1);
        let early = generate(&flake, 1);
        assert_eq!(early, [], "an id of the replaced Term");
        second.store(T + 1, Ordering::Relaxed);
        let after = generate(&flake, 2);
        assert!(after.iter().all(|parts| parts.timestamp >= unused_from), "I5: {after:?}");
        assert_eq!(after.len(), 2);
        parts.extend(after);
        assert_distinct(&parts);
        flake.close();
        assert_eq!(flake.generate().map_err(|error| error.kind()), Err(ErrorKind::Closed));
    });
}

#[test]
fn claims_and_an_extension() {
    model(|| {
        let (flake, second) = flake(&[1], T..T + 1);
        let extender = thread::spawn({
            let flake = Arc::clone(&flake);
            move || {
                second.store(T + 1, Ordering::Relaxed);
                flake.extend_lease(T + 2).expect("open");
                flake.extend_lease(T + 1).expect("open"); // never shortens
                assert_eq!(flake.lease().expect("leased").end_exclusive(), T + 2);
                let parts = generate(&flake, 1);
                second.store(T + 2, Ordering::Relaxed);
                parts
            }
        });
        let mut parts = generate(&flake, 2);
        parts.extend(extender.join().expect("no panic"));
        assert_distinct(&parts);
        assert!(parts.iter().all(|parts| (T..T + 2).contains(&parts.timestamp)), "I2: {parts:?}");
    });
}

#[test]
fn extensions_that_meet() {
    model(|| {
        let (flake, _) = flake(&[1], T..T + 1);
        let other = thread::spawn({
            let flake = Arc::clone(&flake);
            move || flake.extend_lease(T + 3).expect("open")
        });
        flake.extend_lease(T + 2).expect("open");
        other.join().expect("no panic");
        assert_eq!(flake.lease().expect("leased").end_exclusive(), T + 3, "the later end");
    });
}

#[test]
fn claims_and_a_replacement_that_keeps_a_node() {
    model(|| {
        let (flake, _) = flake(&[1, 2], T..T + 10);
        let other = thread::spawn({
            let flake = Arc::clone(&flake);
            move || generate(&flake, 2)
        });
        // It starts long before the last stamp of the node, which counts all the same.
        let lease = Lease::new(T - 5, T + 10).expect("a lease");
        let used_until = flake.replace_lease(&[1], lease, u32::MAX).expect("open");
        let parts = other.join().expect("no panic");
        assert_distinct(&parts);
        // The clock stands still, so what came from the new Term has no second to be in.
        assert!(parts.iter().all(|parts| parts.timestamp < used_until.max(T + 1)), "{parts:?}");
        if used_until == T {
            assert_distinct(&[parts, generate(&flake, 2)].concat());
        }
    });
}

#[test]
fn claims_and_a_replacement_by_another_node() {
    model(|| {
        let (flake, second) = flake(&[1], T..T + 10);
        let other = thread::spawn({
            let flake = Arc::clone(&flake);
            move || generate(&flake, 2)
        });
        let clock = thread::spawn(move || second.store(T + 1, Ordering::Relaxed));
        let lease = Lease::new(T + 1, T + 10).expect("a lease");
        let used_until = flake.replace_lease(&[2], lease, u32::MAX).expect("open");
        let mut parts = generate(&flake, 1);
        parts.extend(other.join().expect("no panic"));
        clock.join().expect("no panic");
        assert_distinct(&parts);
        for parts in parts {
            let allowed = if parts.node_id == 1 { T..used_until } else { T + 1..T + 10 };
            assert!(allowed.contains(&parts.timestamp), "{parts:?} outside {allowed:?}");
        }
    });
}

#[test]
fn claims_and_close() {
    model(|| {
        let (flake, second) = flake(&[1], T..T + 10);
        let other = thread::spawn({
            let flake = Arc::clone(&flake);
            move || generate(&flake, 2)
        });
        let clock = thread::spawn(move || second.store(T + 1, Ordering::Relaxed));
        let used_until = flake.close().expect("the first close");
        assert_eq!(flake.close(), None);
        assert_eq!(flake.generate().expect_err("closed").kind(), ErrorKind::Closed);
        let parts = other.join().expect("no panic");
        clock.join().expect("no panic");
        assert_distinct(&parts);
        assert!(parts.iter().all(|parts| parts.timestamp < used_until), "{parts:?}");
    });
}

#[test]
fn claims_and_a_replacement_and_close() {
    model(|| {
        let (flake, _) = flake(&[1], T..T + 10);
        let replacer = thread::spawn({
            let flake = Arc::clone(&flake);
            move || {
                flake.replace_lease(&[1], Lease::new(T, T + 10).expect("a lease"), u32::MAX).ok()
            }
        });
        let other = thread::spawn({
            let flake = Arc::clone(&flake);
            move || generate(&flake, 1)
        });
        let used_until = flake.close().expect("the first close");
        let parts = other.join().expect("no panic");
        let replaced_until = replacer.join().expect("no panic");
        assert!(parts.iter().all(|parts| parts.timestamp < used_until), "{parts:?}");
        assert!(replaced_until.is_none_or(|replaced| replaced <= used_until));
        assert!(used_until <= T + 2, "{used_until}");
    });
}

#[test]
fn claims_and_two_replacements() {
    model(|| {
        let (flake, second) = flake(&[1], T..T + 10);
        let replace = |flake: Flake| {
            let lease = Lease::new(T, T + 10).expect("a lease");
            thread::spawn(move || flake.replace_lease(&[1], lease, u32::MAX).expect("open"))
        };
        let replacers = [replace(flake.clone()), replace(flake.clone())];
        let mut parts = generate(&flake, 1);
        let [one, other] = replacers.map(|replacer| replacer.join().expect("no panic"));
        parts.extend(generate(&flake, 1));
        second.store(T + 5, Ordering::Relaxed);
        parts.extend(generate(&flake, 1));
        assert_distinct(&parts);
        let last = parts.last().expect("the clock has gone on");
        assert!(last.timestamp >= one.max(other), "{parts:?} {one} {other}");
    });
}

/// Ids that are not buffered, two in a tick. The coarse clock shows ticks of a second, not shorter ones.
#[test]
fn snowflakes_and_a_clock_that_steps() {
    let cases = [(500, Sequence::Zero), (500, Sequence::Continuing), (1000, Sequence::Continuing)];
    for (tick_ms, starts) in cases {
        model(move || {
            let second = Arc::new(AtomicI64::new(T));
            let layout = Layout::custom([(Field::Time, 41), (Field::Sequence, 1)])
                .tick_ms(tick_ms)
                .sequence(starts)
                .build()
                .expect("a layout");
            let flake = Snowflake::builder(layout).clock(StepClock(Arc::clone(&second)));
            let flake = Arc::new(flake.build().expect("a generator"));
            let ids_of = |flake: &Snowflake<StepClock>| {
                let ids: Vec<_> = (0..2).map_while(|_| flake.generate().ok()).collect();
                assert!(ids.is_sorted_by(|one, other| one < other), "I1: {ids:?}");
                ids
            };
            let other = thread::spawn({
                let flake = Arc::clone(&flake);
                move || ids_of(&flake)
            });
            let clock = thread::spawn(move || {
                second.store(T + 1, Ordering::Relaxed);
                second.store(T - 1, Ordering::Relaxed);
            });
            let ids = ids_of(&flake);
            let others = other.join().expect("no panic");
            clock.join().expect("no panic");
            assert!(!ids.iter().any(|id| others.contains(id)), "I1: {ids:?} {others:?}");
        });
    }
}
