//! What a number of `Tickets` costs, beside an atomic addition and an id of `Snowflake`: with a store
//! that takes a millisecond to answer, and a reserve of two seconds.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml -p bench-rust --bin tickets`

#![allow(clippy::disallowed_methods, reason = "the clock of the library is not the stopwatch")]

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use randflake::{Layout, Result, Snowflake};
use randflake_leases::{
    Acquire, Acquired, Fence, Fenced, LeaseStore, Location, MemoryStore, Namespace, Release,
    Released, Renew, Renewed, Reply, Swap, Swapped,
    operator::{List, Listed, ReleaseDead, Repair, Shortened},
};
use randflake_tickets::Tickets;

const ROUND_TRIP: Duration = Duration::from_millis(1);
const ROUNDS: usize = 101;
const RUN: u32 = 200_000;
const TIMED: usize = 5_000_000;

/// A store that is a millisecond away.
struct Away(MemoryStore);

impl LeaseStore for Away {
    fn swap(&mut self, request: &Swap) -> Result<Reply<Swapped>> {
        thread::sleep(ROUND_TRIP);
        self.0.swap(request)
    }
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
        self.0.acquire(request)
    }
    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
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

fn main() {
    let namespace = Namespace::for_tickets("tickets").expect("a name");
    let store = MemoryStore::new(namespace);
    let away = move |namespace| -> Result<Box<dyn LeaseStore>> {
        Ok(Box::new(Away(store.namespace(namespace))))
    };
    let tickets = Tickets::builder(Location::new(away), "orders");
    let tickets = tickets.reserve(Duration::from_secs(2)).open().expect("a block");
    let layout = Layout::twitter();
    let nodes = u32::try_from(layout.max_nodes()).expect("at most 16 384");
    let snowflake = Snowflake::builder(layout).node_ids(0..nodes).restart_safe(false);
    let snowflake = snowflake.build().expect("a generator");
    let next = AtomicU64::new(0);

    // Not behind a pointer: a call would cost as much as what is measured.
    let mut add = || next.fetch_add(1, Ordering::Relaxed);
    let mut ticket = || tickets.generate().expect("a number");
    let mut id = || snowflake.generate().expect("an id");
    let mut nanos = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        let [adds, numbers, ids] = &mut nanos;
        adds.push(run(&mut add));
        numbers.push(run(&mut ticket));
        ids.push(run(&mut id));
    }
    let medians = nanos.map(|mut nanos| {
        nanos.sort_unstable_by(f64::total_cmp);
        nanos[nanos.len() / 2]
    });
    println!("{:20} {:>7} {:>6} {:>8} {:>9}", "ns", "median", "times", "p99.99", "maximum");
    let names = ["AtomicU64::fetch_add", "Tickets::generate", "Snowflake::generate"];
    let single = [one_by_one(&mut add), one_by_one(&mut ticket), one_by_one(&mut id)];
    for ((name, median), (rare, worst)) in names.into_iter().zip(medians).zip(single) {
        let times = median / medians[0];
        println!("{name:20} {median:7.2} {times:6.2} {rare:8} {worst:9}");
    }
    let metrics = tickets.metrics();
    println!("{} blocks, {} calls waited", metrics.blocks_drawn, metrics.waits);
}

/// Returns the nanoseconds per call of a run.
fn run<T>(call: &mut impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    for _ in 0..RUN {
        black_box(call());
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(RUN)
}

/// Returns the 9 999th of 10 000 calls and the longest one, in nanoseconds. The stopwatch is a part of
/// each.
fn one_by_one<T>(call: &mut impl FnMut() -> T) -> (u64, u64) {
    let mut single: Vec<u64> = Vec::with_capacity(TIMED);
    for _ in 0..TIMED {
        let start = Instant::now();
        black_box(call());
        single.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    single.sort_unstable();
    (single[TIMED / 10_000 * 9_999], single[TIMED - 1])
}
