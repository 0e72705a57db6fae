//! How many ids a generator reports, and how many calls waited.
#![allow(clippy::disallowed_methods, reason = "the time that the machine's clock shows")]

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    thread,
    time::Duration,
};

use randflake::{
    Clock, ErrorKind, Field, Layout, Lease, Metrics, Randflake, Result, Secret, Sequence, Snowflake,
};

const NOON: i64 = 1_763_640_000;
const MS: i64 = 1_000_000;

/// A clock that advances by each requested sleep.
#[derive(Clone)]
struct Patient(Arc<AtomicI64>);

impl Patient {
    fn new() -> Self {
        Self(Arc::new(AtomicI64::new(NOON * 1000 * MS)))
    }

    fn pass(&self, nanos: i64) {
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Clock for Patient {
    fn now(&self) -> Result<i64> {
        Ok(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        self.pass(i64::try_from(duration.as_nanos()).expect("a short wait"));
        Ok(Some(duration))
    }
}

fn waits(metrics: &Metrics, kind: ErrorKind) -> u64 {
    metrics.waits.iter().find(|(waited, _)| *waited == kind).expect("counted").1
}

/// 16 ids a tick and node, beginning as `sequence` says.
fn small(sequence: Sequence) -> Layout {
    let fields = [(Field::Time, 43), (Field::Node, 16), (Field::Sequence, 4)];
    Layout::custom(fields).epoch_ms(1_730_000_000_000).sequence(sequence).build().expect("a layout")
}

/// No matter at which slot ticks begin, and how many ticks a batch takes.
#[test]
fn every_claimed_id_is_counted_once() {
    for sequence in [Sequence::Zero, Sequence::Continuing, Sequence::Random(5)] {
        for nodes in [1, 3] {
            let clock = Patient::new();
            let flake = Snowflake::builder(small(sequence))
                .node_ids(0..nodes)
                .max_wait(Duration::from_secs(60))
                .clock(clock.clone())
                .build()
                .expect("a generator");
            let mut made = 0;
            for (step, size) in (0..200).zip([1, 3, 16, 1, 40, 2, 0, 100, 7].into_iter().cycle()) {
                if step % 3 == 0 {
                    clock.pass(step % 5 * MS); // into the same tick, the next one or a later one
                }
                if size == 1 {
                    flake.generate().expect("an id");
                } else {
                    flake.fill_i64(&mut vec![0; size]).expect("a batch");
                }
                made += size as u64;
                let counted = flake.metrics().ids_generated;
                assert_eq!(counted, made, "{sequence:?}, {nodes} nodes, step {step}");
            }
            flake.close();
            assert_eq!(flake.metrics().ids_generated, made, "after the close as well");
        }
    }
}

/// What a thread claims ahead for its next calls counts when it is claimed.
#[test]
fn batches_are_exact_and_single_ids_are_counted_when_claimed() {
    let clock = Patient::new();
    let flake = Randflake::builder(&Secret::random())
        .node_id(1)
        .clock(clock.clone())
        .build()
        .expect("a generator");
    flake.fill_i64(&mut vec![0; 300_000]).expect("a batch over three seconds");
    assert_eq!(flake.metrics().ids_generated, 300_000);
    for made in 1..1000 {
        flake.generate().expect("an id");
        let counted = flake.metrics().ids_generated - 300_000;
        assert!((made..made + 128).contains(&counted), "{counted} counted of {made}");
    }
}

#[test]
fn other_terms_of_a_lease_add_up() {
    let clock = Patient::new();
    let flake = Snowflake::builder(small(Sequence::Continuing))
        .node_id(1)
        .granted_lease(Lease::new(NOON, NOON + 60).expect("a lease"))
        .clock(clock)
        .build()
        .expect("a generator");
    for (made, node) in (1..).zip([2, 2, 3]) {
        flake.fill_i64(&mut [0; 21]).expect("a batch");
        let lease = Lease::new(NOON, NOON + 60).expect("a lease");
        flake.replace_lease(&[node], lease, u32::MAX).expect("another lease");
        assert_eq!(flake.metrics().ids_generated, made * 21);
    }
    flake.close();
    assert_eq!(flake.metrics().ids_generated, 63);
}

/// In the last tick of a layout a replaced Term has nothing left. With this many nodes its state is
/// full at once, since the tick after the last one would not fit.
#[test]
fn a_term_without_a_tick_left_has_made_nothing() {
    let fields = [(Field::Time, 41), (Field::Node, 15), (Field::Sequence, 7)];
    let layout = Layout::custom(fields).epoch_ms(0).build().expect("a layout");
    let nodes: Vec<u32> = (0..16_384).collect();
    assert_eq!(layout.max_nodes(), nodes.len());
    let last = (1_i64 << 41) - 1;
    let lease = Lease::new(last / 1000 - 5, last / 1000 + 5).expect("a lease");
    let flake = Snowflake::builder(layout)
        .node_ids(nodes.iter().copied())
        .granted_lease(lease)
        .clock(move || last * MS)
        .build()
        .expect("a generator");
    flake.generate().expect("an id");
    flake.replace_lease(&nodes, lease, u32::MAX).expect("a lease with nothing left");
    assert!(flake.generate().is_err());
    assert_eq!(flake.metrics().ids_generated, 1);
}

/// They make one sequence of ids. A closed one knows just as much.
#[test]
fn generators_with_the_same_node_ids_share_their_count() {
    let layout = Layout::custom([(Field::Time, 43), (Field::Node, 14), (Field::Sequence, 6)])
        .build()
        .expect("a layout");
    let made = [0; 2].map(|_| Snowflake::new(5, layout).expect("a generator"));
    made[0].fill_i64(&mut [0; 1000]).expect("a batch");
    made[1].fill_i64(&mut [0; 234]).expect("a batch");
    made[0].close();
    for flake in made {
        assert_eq!(flake.metrics().ids_generated, 1234);
    }
}

/// Never more than were made, never less than before; exact in the end.
#[test]
fn the_count_never_falls_while_threads_make_ids() {
    const THREADS: usize = 3;
    const CALLS: usize = 20_000;
    let clock = Patient::new();
    let flake = Snowflake::builder(small(Sequence::Zero))
        .node_ids(0..4)
        .max_wait(Duration::from_secs(3600))
        .clock(clock.clone())
        .build()
        .expect("a generator");
    let (flake, done) = (Arc::new(flake), Arc::new(AtomicBool::new(false)));
    let begin = Arc::new(Barrier::new(THREADS + 1));
    let makers: Vec<_> = (0..THREADS)
        .map(|maker| {
            let (flake, begin) = (Arc::clone(&flake), Arc::clone(&begin));
            thread::spawn(move || {
                begin.wait();
                for call in 0..CALLS {
                    flake.fill_i64(&mut vec![0; 1 + (call + maker) % 3]).expect("a batch");
                }
            })
        })
        .collect();
    let watcher = thread::spawn({
        let (flake, done) = (Arc::clone(&flake), Arc::clone(&done));
        move || {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                let now = flake.metrics().ids_generated;
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
            last
        }
    });
    begin.wait();
    for maker in makers {
        maker.join().expect("no panic");
    }
    done.store(true, Ordering::Relaxed);
    let seen = watcher.join().expect("no panic");
    let made = (0..THREADS)
        .flat_map(|maker| (0..CALLS).map(move |call| 1 + (call + maker) as u64 % 3))
        .sum::<u64>();
    assert_eq!(flake.metrics().ids_generated, made);
    assert!(seen <= made, "{seen} of {made}");
}

#[test]
fn a_call_that_waits_counts_once_for_what_it_waits_for() {
    let clock = Patient::new();
    let flake = Snowflake::builder(small(Sequence::Zero))
        .node_id(1)
        .max_wait(Duration::from_secs(60))
        .lease(Lease::new(NOON + 1, NOON + 3600).expect("a lease"))
        .clock(clock.clone())
        .build()
        .expect("a generator");
    flake.generate().expect("an id, in a second");
    assert_eq!(waits(&flake.metrics(), ErrorKind::LeaseNotStarted), 1);
    flake.fill_i64(&mut [0; 100]).expect("a batch over seven ticks");
    assert_eq!(waits(&flake.metrics(), ErrorKind::SequenceExhausted), 1);
    clock.pass(-500 * MS);
    flake.generate().expect("an id, in half a second");
    flake.generate().expect("an id at once");
    let expected = [
        (ErrorKind::LeaseNotStarted, 1),
        (ErrorKind::SequenceExhausted, 1),
        (ErrorKind::ClockMovedBack, 1),
    ];
    assert_eq!(flake.metrics().waits, expected);
}

#[test]
fn a_call_that_is_refused_has_not_waited() {
    let fixed = || NOON * 1000 * MS;
    let layout = small(Sequence::Zero);
    let flake = Snowflake::builder(layout).node_id(1).clock(fixed).build().expect("a generator");
    flake.fill_i64(&mut [0; 16]).expect("a tick");
    assert_eq!(
        flake.generate().expect_err("the tick is full").kind(),
        ErrorKind::SequenceExhausted
    );
    assert!(flake.metrics().waits.iter().all(|(_, count)| *count == 0));
}
