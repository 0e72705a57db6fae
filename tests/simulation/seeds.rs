//! The seeds of a simulation: how many are run, on how many threads, and their random numbers.

use std::{
    env,
    io::Write as _,
    ops::Range,
    panic,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use randflake::{Clock as _, SystemClock};

/// Returns the number in a variable of the environment.
pub(super) fn wanted(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

/// Runs the seeds that `make simulate` asks for; see [`run_some`]. Also returns how fast.
pub(super) fn run_many<T: Default + Send>(
    run: impl Fn(u64) -> T + Sync,
    add: impl Fn(&mut T, &T) + Sync,
) -> (T, String) {
    let (first, seeds) = (wanted("FIRST").unwrap_or(0), wanted("SEEDS").unwrap_or(100_000));
    let cores = thread::available_parallelism().map_or(2, |cores| cores.get() as u64);
    let now = || SystemClock.now().expect("a time");
    let began = now();
    let total = run_some(first..first + seeds, cores, run, add);
    #[allow(clippy::cast_precision_loss, reason = "for a message")]
    let (seconds, many) = ((now() - began) as f64 / 1e9, seeds as f64);
    (total, format!("{seeds} seeds in {seconds:.0} s, {:.0} a second", many / seconds))
}

/// Runs seeds on this many threads, each seed on one of them, until one fails, and adds up what they
/// return.
pub(super) fn run_some<T: Default + Send>(
    seeds: Range<u64>,
    threads: u64,
    run: impl Fn(u64) -> T + Sync,
    add: impl Fn(&mut T, &T) + Sync,
) -> T {
    let (next, total) = (AtomicU64::new(seeds.start), Mutex::new(T::default()));
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    if let Ok(outcome) = panic::catch_unwind(panic::AssertUnwindSafe(|| run(seed)))
                    {
                        add(&mut total.lock().expect("no panic"), &outcome);
                    } else {
                        failed.lock().expect("no panic").push(seed);
                        next.fetch_max(seeds.end, Ordering::Relaxed);
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

/// Prints past the capture of the test harness.
pub(super) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Nanoseconds in a second.
pub(super) const SECOND: i64 = 1_000_000_000;

/// The true unix second at which every seed begins.
pub(super) const START: i64 = 1_763_640_000;

/// The random numbers of a seed: `SplitMix64`.
#[derive(Clone)]
pub(super) struct Random(u64);

#[allow(dead_code, reason = "each simulation needs some of it")]
impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd129_0d3c_a1f5_b4e7) ^ 0x5bf0_3635)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `end - 1`.
    pub(super) fn below(&mut self, end: i64) -> i64 {
        (self.next() % end.unsigned_abs()).cast_signed()
    }

    /// Returns a number from `first` to `last`.
    pub(super) fn between(&mut self, first: i64, last: i64) -> i64 {
        first + self.below(last - first + 1)
    }

    pub(super) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(i64::try_from(length).expect("short"))).expect("not negative")
    }

    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// Returns true in so many of a thousand cases.
    pub(super) fn happens(&mut self, per_mille: i64) -> bool {
        self.below(1000) < per_mille
    }

    pub(super) fn number(&mut self, first: u32, last: u32) -> u32 {
        u32::try_from(self.between(first.into(), last.into())).expect("between them")
    }
}
