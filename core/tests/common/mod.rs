//! A generator on a scripted clock: calls go in, and results come out that can be compared with the
//! model. Also used by the fuzz target `operations`.
#![allow(dead_code, reason = "no test needs all of it")]

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    mem,
    rc::Rc,
    time::Duration,
};

use randflake::{
    Clock, Error, Layout, Lease, Metrics, Randflake, Result, Secret, Sequence, Snowflake,
};
use randflake_vectors::model::{self, Failure, Model, Options, RANDFLAKE, Run, SECOND, Scale};

/// A clock that returns the readings of a script, and records the sleeps that are requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script(Rc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    readings: RefCell<VecDeque<i64>>,
    sleeps: RefCell<Vec<i64>>,
    can_sleep: Cell<bool>,
}

impl Script {
    fn of(can_sleep: bool) -> Self {
        let script = Self::default();
        script.0.can_sleep.set(can_sleep);
        script
    }
}

impl Clock for Script {
    fn now(&self) -> Result<i64> {
        let reading = self.0.readings.borrow_mut().pop_front();
        Ok(reading.expect("the call reads the clock no more often than the script says"))
    }

    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        if !self.0.can_sleep.get() {
            return Ok(None);
        }
        self.0.sleeps.borrow_mut().push(nanos(duration));
        Ok(Some(duration))
    }
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Generate,
    Fill(usize),
    Extend(i64),
    Close,
}

/// What a call did with its clock, and its result.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) unread: Vec<i64>,
    /// In nanoseconds.
    pub(crate) sleeps: Vec<i64>,
    pub(crate) result: Result<Vec<Run>, Failure>,
}

/// A generator of the core on a scripted clock.
#[derive(Debug)]
pub(crate) struct Scripted {
    flake: Flake,
    script: Script,
}

#[derive(Debug)]
enum Flake {
    Randflake(Box<Randflake<Script>>),
    Snowflake(Box<Snowflake<Script>>),
}

/// Does the same with both kinds.
macro_rules! with {
    ($scripted:expr, $flake:ident => $body:expr) => {
        match &$scripted.flake {
            Flake::Randflake($flake) => $body,
            Flake::Snowflake($flake) => $body,
        }
    };
}

/// Returns how the model must count for this layout.
pub(crate) fn scale_of(layout: Layout) -> Scale {
    Scale {
        epoch: layout.epoch_ms() * 1_000_000,
        tick: i64::from(layout.tick_ms()) * 1_000_000,
        lifetime: 1 << layout.time_bits(),
        ids_per_node: 1 << layout.sequence_bits(),
        continuing: layout.sequence() == Sequence::Continuing,
        unit: 1_000_000,
    }
}

impl Scripted {
    /// Makes a generator of Randflake.
    pub(crate) fn new(secret: &Secret, options: &Options, can_sleep: bool) -> Result<Self> {
        let script = Script::of(can_sleep);
        let mut builder = Randflake::builder(secret)
            .node_ids(options.node_ids.iter().copied())
            .max_wait(Duration::from_nanos(options.max_wait.cast_unsigned()))
            .max_drift(options.max_drift.try_into().expect("a small drift"));
        if let Some((start, end_exclusive)) = options.lease {
            builder = builder.lease(Lease::new(start, end_exclusive)?);
        }
        let flake = Flake::Randflake(Box::new(builder.clock(script.clone()).build()?));
        Ok(Self { flake, script })
    }

    /// Makes a generator of another layout.
    pub(crate) fn of(layout: Layout, options: &Options, can_sleep: bool) -> Result<Self> {
        let script = Script::of(can_sleep);
        let mut builder = Snowflake::builder(layout)
            .node_ids(options.node_ids.iter().copied())
            .max_wait(Duration::from_nanos(options.max_wait.cast_unsigned()))
            .max_drift(options.max_drift.try_into().expect("a small drift"));
        if let Some((start, end_exclusive)) = options.lease {
            builder = builder.lease(Lease::new(start, end_exclusive)?);
        }
        // What the constructor reads, to check whether the layout has ended.
        script.0.readings.borrow_mut().push_back(0);
        let flake = Flake::Snowflake(Box::new(builder.clock(script.clone()).build()?));
        Ok(Self { flake, script })
    }

    pub(crate) fn metrics(&self) -> Metrics {
        with!(self, flake => flake.metrics())
    }

    /// Returns the window of the lease in the unit of runs.
    fn window(&self, unit: i64) -> Option<std::ops::Range<i64>> {
        let lease = with!(self, flake => flake.lease())?;
        Some(lease.start() * (SECOND / unit)..lease.end_exclusive() * (SECOND / unit))
    }

    /// Makes a call with these readings, in unix nanoseconds.
    pub(crate) fn call(&self, call: Call, readings: &[i64]) -> Outcome {
        *self.script.0.readings.borrow_mut() = readings.iter().copied().collect();
        let result = match call {
            Call::Generate => match &self.flake {
                Flake::Randflake(flake) => flake.generate().map(|id| vec![id.into()]),
                Flake::Snowflake(flake) => flake.generate().map(|raw| vec![raw.cast_signed()]),
            },
            Call::Fill(count) => {
                let mut ids = vec![-1; count];
                let result = with!(self, flake => flake.fill_i64(&mut ids));
                if let Err(error) = &result {
                    assert!(ids.iter().all(|&id| id == 0), "{error:?} leaves zeros");
                }
                result.map(|()| ids)
            }
            Call::Extend(end_exclusive) => {
                with!(self, flake => flake.extend_lease(end_exclusive)).map(|()| Vec::new())
            }
            Call::Close => {
                with!(self, flake => flake.close());
                Ok(Vec::new())
            }
        };
        Outcome {
            unread: self.script.0.readings.take().into(),
            sleeps: self.script.0.sleeps.take(),
            result: result.map(|ids| self.runs(&ids)).map_err(|error| failure(&error)),
        }
    }

    fn runs(&self, ids: &[i64]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for &id in ids {
            let next = match &self.flake {
                Flake::Randflake(flake) => {
                    let parts = flake.inspect(id.into());
                    (parts.timestamp, parts.node_id, parts.sequence)
                }
                Flake::Snowflake(flake) => {
                    let parts = flake.inspect(id.cast_unsigned()).expect("an id of its own");
                    (parts.unix_ms, parts.node_id, parts.sequence)
                }
            };
            match runs.last_mut() {
                Some((timestamp, node_id, first, count))
                    if (*timestamp, *node_id, *first + *count) == next =>
                {
                    *count += 1;
                }
                _ => runs.push((next.0, next.1, next.2, 1)),
            }
        }
        runs
    }
}

/// A clock that moves on its own between readings, and advances by each requested sleep. It records
/// both, as a script for the core.
pub(crate) struct World {
    now: i64,
    steps: Box<dyn Iterator<Item = i64>>,
    can_sleep: bool,
    readings: Vec<i64>,
    sleeps: Vec<i64>,
}

impl World {
    /// A clock from `start` on, in unix nanoseconds, with an endless list of steps.
    pub(crate) fn new(
        start: i64,
        steps: impl Iterator<Item = i64> + 'static,
        can_sleep: bool,
    ) -> Self {
        let steps = Box::new(steps);
        Self { now: start, steps, can_sleep, readings: Vec::new(), sleeps: Vec::new() }
    }
}

impl model::Clock for World {
    fn now(&mut self) -> i64 {
        self.now += self.steps.next().expect("an endless list");
        self.readings.push(self.now);
        self.now
    }

    fn sleep(&mut self, nanos: i64) -> bool {
        if self.can_sleep {
            self.now += nanos;
            self.sleeps.push(nanos);
        }
        self.can_sleep
    }
}

/// The model and the core, side by side in one world.
pub(crate) struct Pair {
    model: Model,
    core: Scripted,
    world: World,
    scale: Scale,
    max_drift: i64,
    issued: Vec<Run>,
}

impl Pair {
    /// Makes a Randflake generator in each.
    pub(crate) fn new(secret: &Secret, options: &Options, world: World) -> Self {
        let core = Scripted::new(secret, options, world.can_sleep).expect("valid options");
        Self::side_by_side(core, RANDFLAKE, options, world)
    }

    /// Makes a generator of another layout in each.
    pub(crate) fn of(layout: Layout, options: &Options, world: World) -> Self {
        let core = Scripted::of(layout, options, world.can_sleep).expect("valid options");
        Self::side_by_side(core, scale_of(layout), options, world)
    }

    fn side_by_side(core: Scripted, scale: Scale, options: &Options, world: World) -> Self {
        let model = Model::of(scale, options);
        Self { model, core, world, scale, max_drift: options.max_drift, issued: Vec::new() }
    }

    /// Makes a call to both. Panics unless they do the same and keep the invariants. Returns how
    /// many ids were issued.
    pub(crate) fn call(&mut self, call: Call) -> u32 {
        let result = match call {
            Call::Generate => self.model.fill(1, &mut self.world),
            Call::Fill(count) => self.model.fill(count as u64, &mut self.world),
            Call::Extend(end_exclusive) => {
                self.model.extend_lease(end_exclusive).map(|()| Vec::new())
            }
            Call::Close => {
                self.model.close();
                Ok(Vec::new())
            }
        };
        let readings = mem::take(&mut self.world.readings);
        let sleeps = mem::take(&mut self.world.sleeps);
        let expected = Outcome { unread: Vec::new(), sleeps, result };
        let unit = self.scale.unit;
        let window = self.core.window(unit);
        let before = self.core.metrics();
        let outcome = self.core.call(call, &readings);
        assert_eq!(outcome, expected, "{call:?} with the readings {readings:?}");
        self.assert_counted(call, &outcome, &before, &self.core.metrics());

        let mut count = 0;
        for run in outcome.result.unwrap_or_default() {
            let latest = readings.iter().max().expect("a call that claims reads the clock") / unit;
            let drift = self.max_drift * (SECOND / unit);
            assert!(run.0 <= latest + drift, "{run:?} is early: {readings:?}");
            if let Some(window) = &window {
                assert!(window.contains(&run.0), "{run:?}");
            }
            for issued in &self.issued {
                assert!(!overlap(*issued, run), "{run:?} repeats {issued:?}");
            }
            self.issued.push(run);
            count += run.3;
        }
        count
    }

    /// Panics unless the metrics have grown by what the call has done.
    fn assert_counted(&self, call: Call, outcome: &Outcome, before: &Metrics, after: &Metrics) {
        let claimed = after.ids_generated.checked_sub(before.ids_generated).expect("never fewer");
        let returned = outcome.result.iter().flatten().map(|run| u64::from(run.3)).sum();
        match (&self.core.flake, call) {
            // A failed batch has claimed some of its ids, or none.
            (_, Call::Fill(count)) if outcome.result.is_err() => assert!(claimed <= count as u64),
            (Flake::Snowflake(_), _) => assert_eq!(claimed, returned, "{call:?}"),
            // A single call claims a few ahead, from which later calls take theirs.
            (Flake::Randflake(_), Call::Generate) => assert!(claimed <= 128, "{call:?}"),
            (Flake::Randflake(_), _) => {
                assert!(claimed <= returned && returned <= claimed + 127, "{call:?}");
            }
        }
        let waits = |metrics: &Metrics| metrics.waits.iter().map(|(_, count)| count).sum::<u64>();
        let waited = waits(after) - waits(before);
        assert!(waited <= outcome.sleeps.len() as u64, "{call:?}");
        assert_eq!(waited > 0, !outcome.sleeps.is_empty(), "{call:?}");
    }
}

fn overlap(one: Run, other: Run) -> bool {
    (one.0, one.1) == (other.0, other.1) && one.2 < other.2 + other.3 && other.2 < one.2 + one.3
}

/// Returns what the model says about an error.
fn failure(error: &Error) -> Failure {
    Failure { code: error.code(), retry_after: error.retry_after().map(nanos) }
}

fn nanos(duration: Duration) -> i64 {
    duration.as_nanos().try_into().expect("a wait of less than 292 years")
}
