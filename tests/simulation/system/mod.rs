//! A whole system in one process, in virtual time: the product's own generators, keepers and rules,
//! under every fault that its documentation allows, all of it decided by one number, the seed. See
//! "The simulation" in ARCHITECTURE.md; `make simulate` runs many seeds, `make simulate SEED=n` one
//! of them with a trace.
//!
//! Inside a seed there is no real time, no thread and no order that differs from run to run.

mod machine;
mod manual;
mod oracle;
#[path = "../seeds.rs"]
mod seeds;
mod world;

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
    let total = seeds::run_some(0..1000, 2, |seed| run(seed, false), Summary::add);
    for &fault in FAULTS {
        assert!(total.faults[fault as usize] > 0, "there was no {fault:?}");
    }
    assert!(total.ids > 100_000 && total.grants > 10_000, "{total:?}");
}

/// Runs what `make simulate` asks for.
#[test]
#[ignore = "takes as long as requested"]
fn many_seeds() {
    if let Some(seed) = seeds::wanted("SEED") {
        run(seed, true);
        return;
    }
    let (total, ran) = seeds::run_many(|seed| run(seed, false), Summary::add);
    seeds::say(&format!(
        "{ran}: {} ids under leases from {} grants, {} of manually assigned node ids, {} events",
        total.ids, total.grants, total.manual, total.events
    ));
    let faults = FAULTS.iter().map(|&it| format!("{it:?} {}", total.faults[it as usize]));
    seeds::say(&faults.collect::<Vec<_>>().join(", "));
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
