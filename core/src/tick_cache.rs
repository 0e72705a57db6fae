//! Caches the current tick, for ticks shorter than a second. Reading the processor's counter costs
//! less than half of what reading the clock does.
//!
//! A reading of the clock gives the tick and how long it lasts; the counter shows when that time
//! has passed. The speed of the counter is measured with the clock, and the slower of two
//! measurements counts. So on a clock that runs evenly, the cached tick ends slightly too soon, and
//! then the clock is read.
//!
//! A tick that is used was shown by the clock (I4), and the counter only ever keeps a claim in the
//! tick of the last one: whatever it does, no id repeats. If the counter is wrong, the time in an
//! id is wrong, and so its order among those of other processes: for 10 ms at most after the clock
//! was set, by microseconds while its speed is being corrected, by as much as the counters of two
//! processors differ.
//!
//! A coarse clock of the system takes no longer, 7 to 10 ns, but stands still for 1 to 10 ms: of
//! two ids that two processes made one after the other, the second could sort before the first. The
//! precise clock takes 29 of the 37 ns of an id. The counter is used only where its speed never
//! changes: on x86-64 with an invariant counter.

use crate::{
    Clock, Layout, Result,
    clock::NANOS_PER_MS,
    sync::{AtomicBool, AtomicU64, Ordering},
};

/// How long a tick is cached at most, in nanoseconds. Then the clock is read again: nothing else would
/// notice that the clock was set.
const LONGEST: u64 = 10 * NANOS_PER_MS;

/// Two readings measure the speed of the counter if they are at least this far apart.
const SHORTEST_BASE: u64 = 10 * NANOS_PER_MS;

/// Speeds are in counts per 2^20 ns, about a millisecond.
const SPEED_SHIFT: u32 = 20;

/// Fastest and slowest plausible counter: 8 GHz, 16 MHz.
const FASTEST: u64 = 8 << SPEED_SHIFT;
const SLOWEST: u64 = (1 << SPEED_SHIFT) / 64;

/// No tick is cached for more counts than this. A counter that was set back by more exceeds it.
const MOST_COUNTS: u64 = (LONGEST * FASTEST) >> SPEED_SHIFT;

/// Means no tick: no claim has this tick.
const NONE: u64 = u64::MAX;

/// The tick that the clock showed last, and the count at which it ends.
#[derive(Debug)]
pub(crate) struct TickCache {
    /// `NONE` while the speed is not known.
    tick: AtomicU64,
    /// Not later than the end of `tick`, on a clock that runs evenly.
    until: AtomicU64,
    /// A thread that finds it set does not wait, and changes nothing. In a child that was forked
    /// while another thread had set it, every call reads the clock.
    taken: AtomicBool,
    // From here on: read and written only by the thread that has set `taken`, which orders it.
    /// The count before the last reading that was cached.
    cached: AtomicU64,
    base_count: AtomicU64,
    base_nanos: AtomicU64,
    /// Counts per 2^20 ns between the last two bases; 0: not known yet.
    speed: AtomicU64,
    /// The same between the two bases before. Only the slower one is used, so one wrong measurement,
    /// as when the clock was set, has no effect.
    speed_before: AtomicU64,
}

impl TickCache {
    pub(crate) fn new() -> Self {
        Self {
            tick: AtomicU64::new(NONE),
            until: AtomicU64::new(0),
            taken: AtomicBool::new(false),
            cached: AtomicU64::new(0),
            base_count: AtomicU64::new(0),
            base_nanos: AtomicU64::new(0),
            speed: AtomicU64::new(0),
            speed_before: AtomicU64::new(0),
        }
    }

    /// Returns the cached tick, if the counter shows that it is still current.
    #[inline]
    pub(crate) fn tick(&self, clock: &impl Clock) -> Option<u64> {
        let count = clock.counter()?;
        // Acquire: pairs with the release in `read_clock`, so that the tick is not an older one.
        let until = self.until.load(Ordering::Acquire);
        let tick = self.tick.load(Ordering::Relaxed);
        // If the tick has passed, this wraps and is too large.
        let goes_on = until.wrapping_sub(count).wrapping_sub(1) < MOST_COUNTS;
        (goes_on && tick != NONE).then_some(tick)
    }

    /// Reads the clock, and caches its tick with the count at which it ends.
    pub(crate) fn read_clock(&self, clock: &impl Clock, layout: &Layout) -> Result<i64> {
        // Before and after the reading, so that the time between two readings is never counted too
        // long.
        let before = clock.counter();
        let now = clock.now()?;
        if let Some(before) = before
            && let Some((tick, nanos)) = layout.tick_at(now, self.tick.load(Ordering::Relaxed))
            && !self.taken.swap(true, Ordering::Acquire)
        {
            let cached = self.cached.load(Ordering::Relaxed);
            self.cached.store(before, Ordering::Relaxed);
            // Otherwise a later reading was cached first, and this tick would be older; or the
            // counter was set back, and the next reading is cached.
            if before.wrapping_sub(cached).cast_signed() > 0 {
                let speed = self.speed_at(before, now.cast_unsigned(), || clock.counter());
                let left = (layout.tick_nanos() - nanos).min(LONGEST);
                let until = before.wrapping_add((left * speed) >> SPEED_SHIFT);
                self.tick.store(if speed == 0 { NONE } else { tick }, Ordering::Relaxed);
                // Release: see `tick`.
                self.until.store(until, Ordering::Release);
            }
            self.taken.store(false, Ordering::Release);
        }
        Ok(now)
    }

    /// Returns a lower bound of the counter's speed, in counts per 2^20 ns; 0 while it is not known.
    fn speed_at(&self, before: u64, now: u64, after: impl FnOnce() -> Option<u64>) -> u64 {
        // If the clock was set back, this wraps: no counter is that slow, for the counts do not wrap.
        let nanos = now.wrapping_sub(self.base_nanos.load(Ordering::Relaxed));
        if nanos >= SHORTEST_BASE {
            let counts = before.wrapping_sub(self.base_count.load(Ordering::Relaxed));
            let speed = (u128::from(counts) << SPEED_SHIFT) / u128::from(nanos);
            let speed = u64::try_from(speed).ok().filter(|it| (SLOWEST..=FASTEST).contains(it));
            self.speed_before.store(self.speed.load(Ordering::Relaxed), Ordering::Relaxed);
            self.speed.store(speed.unwrap_or(0), Ordering::Relaxed);
            self.base_count.store(after().unwrap_or(before), Ordering::Relaxed);
            self.base_nanos.store(now, Ordering::Relaxed);
        }
        self.speed.load(Ordering::Relaxed).min(self.speed_before.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    const NOON: i64 = 1_763_640_000_000_000_000;

    /// A machine whose counter makes this many counts in 1000 ns.
    struct Machine {
        /// The time that has passed, in nanoseconds.
        passed: Cell<i64>,
        /// What the clock shows on top of that.
        set_to: Cell<i64>,
        /// How long reading the clock takes, before and after its value is taken.
        reading: Cell<(i64, i64)>,
        counts: u64,
        set_back: Cell<u64>,
        readings: Cell<u32>,
    }

    impl Machine {
        fn new(counts: u64) -> Self {
            Self {
                passed: Cell::new(0),
                set_to: Cell::new(NOON),
                reading: Cell::new((0, 0)),
                counts,
                set_back: Cell::new(0),
                readings: Cell::new(0),
            }
        }

        fn pass(&self, nanos: i64) {
            self.passed.set(self.passed.get() + nanos);
        }

        fn tick_and_left(&self, layout: &Layout) -> (u64, i64) {
            let now = self.set_to.get() + self.passed.get();
            let (tick, nanos) = layout.tick_at(now, 0).expect("after the epoch");
            (tick, (layout.tick_nanos() - nanos).cast_signed())
        }

        fn tick(&self, layout: &Layout) -> u64 {
            self.tick_and_left(layout).0
        }
    }

    impl Clock for &Machine {
        fn now(&self) -> Result<i64> {
            self.readings.set(self.readings.get() + 1);
            let (before, after) = self.reading.get();
            self.pass(before);
            let now = self.set_to.get() + self.passed.get();
            self.pass(after);
            Ok(now)
        }

        fn counter(&self) -> Option<u64> {
            let counts = u128::from(self.passed.get().cast_unsigned()) * u128::from(self.counts);
            let counts = u64::try_from(counts / 1000).expect("some years");
            Some(counts.wrapping_sub(self.set_back.get()))
        }
    }

    /// Reads the clock often enough to determine the speed.
    fn known(machine: &Machine, layout: &Layout) -> TickCache {
        let tick_cache = TickCache::new();
        for _ in 0..3 {
            tick_cache.read_clock(&machine, layout).expect("a time");
            machine.pass(12_000_000);
        }
        assert!(tick_cache.tick(&machine).is_none(), "no reading in this tick");
        tick_cache.read_clock(&machine, layout).expect("a time");
        assert_eq!(tick_cache.tick(&machine), Some(machine.tick(layout)));
        tick_cache
    }

    proptest! {
        /// On a clock that is never set, the cached tick is the tick that a reading would give.
        #[test]
        fn a_cached_tick_is_the_current_one(
            counts in 16_u64..8000,
            script in prop::collection::vec((0_i64..30_000_000, 0_i64..20_000, 0_i64..20_000), 1..60),
            tick_ms in prop::sample::select(vec![1, 10]),
        ) {
            let layout = if tick_ms == 1 { Layout::twitter() } else { Layout::sonyflake() };
            let (machine, tick_cache) = (Machine::new(counts), TickCache::new());
            for (pass, before, after) in script {
                machine.reading.set((before, after));
                tick_cache.read_clock(&&machine, &layout).expect("a time");
                let cached = tick_cache.tick(&&machine);
                let (tick, left) = machine.tick_and_left(&layout);
                prop_assert!(cached.is_none_or(|cached| cached == tick));
                machine.pass(left);
                prop_assert_eq!(tick_cache.tick(&&machine), None, "it is over");
                machine.pass(pass);
            }
        }

        /// Even if clock and counter are set, a cached tick is one that the clock has shown.
        #[test]
        fn a_cached_tick_is_never_early(
            script in prop::collection::vec(
                (0_i64..30_000_000, -50_000_000_i64..50_000_000, any::<u64>(), any::<bool>()),
                1..60,
            ),
        ) {
            let layout = Layout::twitter();
            let (machine, tick_cache) = (Machine::new(2450), TickCache::new());
            let mut last = None;
            for (pass, set, set_back, quiet) in script {
                machine.pass(pass);
                if !quiet {
                    machine.set_to.set(machine.set_to.get() + set);
                    machine.set_back.set(set_back);
                }
                let cached = tick_cache.tick(&&machine);
                prop_assert!(cached.is_none() || cached == last, "{cached:?} of {last:?}");
                tick_cache.read_clock(&&machine, &layout).expect("a time");
                last = Some(machine.tick(&layout));
            }
        }
    }

    #[test]
    fn a_tick_of_a_millisecond_takes_few_readings() {
        let (machine, layout) = (Machine::new(2450), Layout::twitter());
        let tick_cache = known(&machine, &layout);
        machine.readings.set(0);
        for _ in 0..100_000 {
            machine.pass(100);
            if tick_cache.tick(&&machine).is_none() {
                tick_cache.read_clock(&&machine, &layout).expect("a time");
            }
        }
        // One for each of ten milliseconds, and a few because a cached tick ends slightly too soon.
        assert!((10..=30).contains(&machine.readings.get()), "{}", machine.readings.get());
    }

    #[test]
    fn a_clock_that_was_set_is_noticed_within_ten_milliseconds() {
        let layout = Layout::custom([
            (crate::Field::Time, 30),
            (crate::Field::Node, 10),
            (crate::Field::Sequence, 10),
        ]);
        let layout = layout.tick_ms(1500).build().expect("valid");
        let machine = Machine::new(2450);
        let tick_cache = known(&machine, &layout);
        machine.set_to.set(machine.set_to.get() - 5_000_000_000);
        assert!(tick_cache.tick(&&machine).is_some(), "not noticed yet");
        machine.pass(10_000_000);
        assert_eq!(tick_cache.tick(&&machine), None);
    }

    /// A clock that is set causes one, or a thread that sleeps between two instructions.
    #[test]
    fn one_wrong_measurement_of_the_speed_is_not_used() {
        let (machine, layout) = (Machine::new(2450), Layout::twitter());
        let tick_cache = known(&machine, &layout);
        // In the next base of 20 ms the counter seems to be three times as fast.
        machine.pass(60_000_000);
        machine.set_to.set(machine.set_to.get() - 40_000_000);
        tick_cache.read_clock(&&machine, &layout).expect("a time");
        machine.pass(machine.tick_and_left(&layout).1);
        assert_eq!(tick_cache.tick(&&machine), None);
    }

    #[test]
    fn an_implausible_counter_is_not_used() {
        for counts in [0, 1, 9000, 1_000_000] {
            let (machine, layout) = (Machine::new(counts), Layout::twitter());
            let tick_cache = TickCache::new();
            for _ in 0..10 {
                tick_cache.read_clock(&&machine, &layout).expect("a time");
                assert_eq!(tick_cache.tick(&&machine), None, "{counts} counts in a microsecond");
                machine.pass(15_000_000);
            }
        }
    }

    /// Four threads on this machine's processors, whose counters must agree.
    #[cfg(not(miri))]
    #[test]
    fn the_machine_s_counter_finds_ticks() {
        let (layout, tick_cache) = (Layout::twitter(), TickCache::new());
        let clock = crate::SystemClock;
        let now = || clock.now().expect("a time");
        let last = now() + 100_000_000;
        let is_counted = clock.counter().is_some();
        let count_cached = || {
            let mut cached = 0;
            // A thread on a busy machine may not have a processor for long.
            while now() < last || (is_counted && cached == 0 && now() < last + 60_000_000_000) {
                for _ in 0..100 {
                    let before = now();
                    let Some(tick) = tick_cache.tick(&clock) else { break };
                    let begin = layout.unix_ms_of(tick) * 1_000_000;
                    assert!(begin <= now(), "a future tick");
                    // Clocks are sped up or slowed down by less than a tenth of a millisecond.
                    assert!(before < begin + 1_100_000, "a tick that is over");
                    cached += 1;
                }
                tick_cache.read_clock(&clock, &layout).expect("a time");
            }
            cached
        };
        let cached: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count_cached)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!(is_counted, cached > 0);
    }

    #[test]
    fn no_tick_is_cached_before_the_speed_is_known() {
        let (machine, layout) = (Machine::new(2450), Layout::twitter());
        let tick_cache = TickCache::new();
        machine.set_back.set(6); // so that it shows the largest counts
        assert_eq!(tick_cache.tick(&&machine), None, "not before the first reading");
        machine.set_back.set(0);
        machine.pass(1_000_000_000);
        tick_cache.read_clock(&&machine, &layout).expect("a time");
        machine.set_back.set(1); // as on a processor that is behind
        assert_eq!(tick_cache.tick(&&machine), None);
    }

    /// A thread sleeps between reading the clock and caching, while another thread does both.
    #[test]
    fn a_reading_that_was_overtaken_is_not_cached() {
        struct Overtaken<'a>(&'a Machine, &'a TickCache, &'a Layout);
        impl Clock for Overtaken<'_> {
            fn now(&self) -> Result<i64> {
                let now = self.0.now();
                self.0.pass(1_000_000);
                self.1.read_clock(&self.0, self.2).expect("a time");
                now
            }

            fn counter(&self) -> Option<u64> {
                self.0.counter()
            }
        }
        let (machine, layout) = (Machine::new(2450), Layout::twitter());
        let tick_cache = known(&machine, &layout);
        machine.pass(5_000_000);
        tick_cache.read_clock(&Overtaken(&machine, &tick_cache, &layout), &layout).expect("a time");
        assert_eq!(tick_cache.tick(&&machine), Some(machine.tick(&layout)));
    }

    #[test]
    fn a_counter_that_is_set_back_is_not_used() {
        let (machine, layout) = (Machine::new(2450), Layout::twitter());
        let tick_cache = known(&machine, &layout);
        machine.set_back.set((&machine).counter().expect("a count"));
        assert_eq!(tick_cache.tick(&&machine), None, "until the old count: hours");
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::{sync::Arc, thread};

    use super::*;

    const NOON: i64 = 1_763_640_000_000_000_000;

    /// A machine whose counter counts nanoseconds.
    struct Machine(AtomicU64);

    impl Clock for &Machine {
        fn now(&self) -> Result<i64> {
            Ok(NOON + self.0.load(Ordering::SeqCst).cast_signed())
        }

        fn counter(&self) -> Option<u64> {
            Some(self.0.load(Ordering::SeqCst))
        }
    }

    #[test]
    fn a_cached_tick_and_two_readings() {
        loom::model(|| {
            let layout = Layout::twitter();
            let machine = Arc::new(Machine(AtomicU64::new(0)));
            let tick_cache = Arc::new(TickCache::new());
            let read = move |tick_cache: &TickCache, machine: &Machine| {
                tick_cache.read_clock(&machine, &layout).expect("a time")
            };
            for ms in [1, 13, 25] {
                machine.0.store(ms * NANOS_PER_MS, Ordering::SeqCst);
                read(&tick_cache, &machine);
            }
            let old = tick_cache.tick(&&*machine).expect("the speed is known");
            let reader = thread::spawn({
                let (tick_cache, machine) = (Arc::clone(&tick_cache), Arc::clone(&machine));
                move || {
                    machine.0.store(26 * NANOS_PER_MS, Ordering::SeqCst);
                    read(&tick_cache, &machine);
                }
            });
            let began = machine.0.load(Ordering::SeqCst);
            let cached = tick_cache.tick(&&*machine);
            if began == 26 * NANOS_PER_MS {
                assert_ne!(cached, Some(old), "it is over");
            }
            reader.join().expect("no panic");
            assert_eq!(tick_cache.tick(&&*machine), Some(old + 1));
        });
    }
}
