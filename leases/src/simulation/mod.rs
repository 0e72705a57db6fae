//! A whole system in one process, in virtual time: the product's own generators, keepers and rules,
//! under every fault that its documentation allows, all of it decided by one number, the seed. See
//! "The simulation" in ARCHITECTURE.md; `make simulate` runs many seeds, `make simulate SEED=n` one
//! of them with a trace.
//!
//! Inside a seed there is no real time, no thread and no order that differs from run to run.

mod counters;
mod machine;
mod manual;
mod oracle;
mod world;

use std::{
    env,
    io::Write,
    panic,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use randflake::{Clock, SystemClock};

use world::{FAULTS, Summary, run};

#[test]
fn the_same_seed_takes_the_same_way() {
    for seed in 0..20 {
        assert_eq!(run(seed, false), run(seed, false), "seed {seed}");
    }
    assert_ne!(run(1, false).trace, run(2, false).trace);
}

#[test]
fn no_id_is_repeated_under_any_fault() {
    let total = simulate(0, 1000, 2);
    for &fault in FAULTS {
        assert!(total.faults[fault as usize] > 0, "there was no {fault:?}");
    }
    assert!(total.ids > 100_000 && total.grants > 10_000, "{total:?}");
}

#[test]
fn no_number_is_repeated_under_any_fault() {
    let mut total = counters::Outcome::default();
    for seed in 0..500 {
        let outcome = counters::run(seed);
        if seed < 20 {
            assert_eq!(outcome, counters::run(seed), "seed {seed} takes another way");
        }
        total.numbers += outcome.numbers;
        total.failovers += outcome.failovers;
        total.restored += outcome.restored;
        total.fenced += outcome.fenced;
        total.refused += outcome.refused;
        total.late += outcome.late;
    }
    let counters::Outcome { numbers, failovers, restored, fenced, refused, late } = total;
    assert!(numbers > 10_000, "{total:?}");
    assert!(failovers.min(restored).min(fenced).min(refused).min(late) > 100, "{total:?}");
}

/// Runs what `make simulate` asks for.
#[test]
#[ignore = "takes as long as requested"]
fn many_seeds() {
    let number = |name| env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    if let Some(seed) = number("SEED") {
        counters::run(seed);
        run(seed, true);
        return;
    }
    let (first, seeds) = (number("FIRST").unwrap_or(0), number("SEEDS").unwrap_or(100_000));
    let cores = thread::available_parallelism().map_or(2, |cores| cores.get() as u64);
    let now = || SystemClock.now().expect("a time");
    let began = now();
    let total = simulate(first, seeds, cores);
    #[allow(clippy::cast_precision_loss, reason = "for a message")]
    let (seconds, many) = ((now() - began) as f64 / 1e9, seeds as f64);
    say(&format!(
        "{seeds} seeds in {seconds:.0} s, {:.0} a second: {} ids under leases from {} grants, \
         {} of manually assigned node ids, {} events",
        many / seconds,
        total.ids,
        total.grants,
        total.manual,
        total.events
    ));
    let faults = FAULTS.iter().map(|&it| format!("{it:?} {}", total.faults[it as usize]));
    say(&faults.collect::<Vec<_>>().join(", "));
}

/// Runs seeds on so many threads, each seed on one of them, until one fails.
fn simulate(first: u64, seeds: u64, threads: u64) -> Summary {
    let (next, total) = (AtomicU64::new(first), Mutex::new(Summary::default()));
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        return;
                    }
                    let both = || {
                        counters::run(seed);
                        run(seed, false)
                    };
                    if let Ok(outcome) = panic::catch_unwind(both) {
                        total.lock().expect("no panic").add(&outcome);
                    } else {
                        failed.lock().expect("no panic").push(seed);
                        next.fetch_max(first + seeds, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    assert!(
        failed.is_empty(),
        "seeds {failed:?} failed; to see how: make simulate SEED={}",
        failed[0]
    );
    total.into_inner().expect("no panic")
}

impl Summary {
    fn add(&mut self, other: &Self) {
        self.ids += other.ids;
        self.events += other.events;
        self.grants += other.grants;
        self.manual += other.manual;
        for (sum, count) in self.faults.iter_mut().zip(other.faults) {
            *sum += count;
        }
    }
}

/// Prints past the capture of the test harness.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
