//! A whole system in one process, in virtual time: the product's own generators, keepers and rules,
//! under every fault that its documentation allows, all of it decided by one number, the seed. A
//! seed that fails fails again: `make simulate` runs many, `make simulate SEED=n` one of them with a
//! trace. What the simulation cannot show is under "Tests" in ARCHITECTURE.md.
//!
//! Inside a seed there is no real time, no thread and no order that differs from run to run.
//!
//! What runs is the product: generators of both kinds with an injected clock, the keeper, what its
//! thread does with a generator (`SharedState::advance`), and either the rules with the store in
//! memory or, in two of three seeds, the driver with the statements for two kinds of server, on
//! a table in memory that does what these do (`world/kept.rs`). What is simulated:
//!
//! - machines, each with a wall clock that is off, drifts and steps, and a boot clock that may
//!   stand still in sleep; processes that begin, end, are killed, and are stopped past the end of
//!   their lease, also in the middle of a call; two threads of one process in one call; processes
//!   that are copied with all that they know;
//! - a network that delays, loses, doubles and swaps messages, between any two statements of an
//!   operation, connections that deliver late answers to others, partitions;
//! - a store that is down, restarts, pauses with requests in its socket, steps its clock, loses
//!   what it has granted and is fenced; or two servers with asynchronous replication, where the old
//!   master goes on beside the new one, comes out of a pause, and becomes the master again;
//! - operators who list, fence, release for the dead and repair, under what the documentation
//!   demands of them, and with wrong clocks, which must be refused; and who take a node id out of
//!   the leases for a generator of others, and back;
//! - a manually assigned node id that goes from process to process within a second, and back.
//!
//! Which faults there are, and how often, differs from seed to seed: clocks that count keep within
//! the largest skew only where something is lost or an operator states something. The oracle knows
//! every id and every grant: no id twice, no tick of a node id stamped by two processes, every
//! stamp inside what the store has granted to that process, none outside its lease. In the end all
//! faults stop, and every process that has a node id left must make ids again within the longest
//! lease, the largest skew and the largest lag. Namespaces have one to eight node ids, so that
//! everything meets everything.

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
