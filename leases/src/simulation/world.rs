//! The world of one seed: machines, processes, a network, a store on one or two servers, operators,
//! and what befalls them. Events in virtual time, one after the other.

use std::{
    cell::RefCell, collections::BTreeMap, io::Write, mem, rc::Rc, sync::Arc, time::Duration,
};

use randflake::{
    Encrypted, ErrorKind, Field, Format, Generator, Id, Layout, Plain, Randflake, Reach, Result,
    Secret, Snowflake,
};

use super::{
    hand::Hand,
    machine::{Dial, MS, Machine, Random, SECOND, START, meanwhile, never_mind},
    oracle::{Mix, Oracle, Seen},
};
use crate::{
    Acquired, Error, Fence, LeaseStore, LeasedFormat, MemoryStore, Namespace, NodeLease, Renewed,
    Reply, Token,
    keeper::{Answer, Keeper, Options, Step},
    leased::{Next, SharedState, generator_over, most_drift},
    operator::{List, ReleaseDead, Repair, Target},
};

/// For how long a master grants that has not heard from its replica, at the longest: as
/// `min-replicas-max-lag` bounds it.
const MAX_LAG: i64 = 11;

/// How long a client waits for an answer, at the least.
const PATIENCE: i64 = 3 * SECOND;

/// What befalls the world.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    Kill,
    End,
    Pause,
    Sleep,
    Reboot,
    ClockSteps,
    ClockDrifts,
    StoreClockSteps,
    Partition,
    BadNetwork,
    Outage,
    StorePauses,
    StoreRestarts,
    Restore,
    Empty,
    LinkFreezes,
    Failover,
    MasterPauses,
    Fence,
    ReleaseDead,
    Repair,
    // Of single messages and calls.
    Lost,
    Doubled,
    Late,
    Swapped,
    StepInCall,
    TurnInCall,
    Burst,
}

/// All of them, and those before `Lost` are events of their own.
pub(super) const FAULTS: [Fault; 28] = [
    Fault::Kill,
    Fault::End,
    Fault::Pause,
    Fault::Sleep,
    Fault::Reboot,
    Fault::ClockSteps,
    Fault::ClockDrifts,
    Fault::StoreClockSteps,
    Fault::Partition,
    Fault::BadNetwork,
    Fault::Outage,
    Fault::StorePauses,
    Fault::StoreRestarts,
    Fault::Restore,
    Fault::Empty,
    Fault::LinkFreezes,
    Fault::Failover,
    Fault::MasterPauses,
    Fault::Fence,
    Fault::ReleaseDead,
    Fault::Repair,
    Fault::Lost,
    Fault::Doubled,
    Fault::Late,
    Fault::Swapped,
    Fault::StepInCall,
    Fault::TurnInCall,
    Fault::Burst,
];

/// What a seed came to.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Outcome {
    /// Of everything that happened.
    pub(super) trace: u64,
    pub(super) ids: u64,
    pub(super) events: u64,
    pub(super) grants: u64,
    pub(super) by_hand: u64,
    pub(super) faults: [u64; FAULTS.len()],
}

/// The generators, each with its ids as raw numbers.
pub(super) trait Ids: LeasedFormat + Sized {
    fn one(generator: &Generator<Self, Dial>) -> Result<u64>;
    fn raw(generator: &Generator<Self, Dial>, id: i64) -> u64;
}

impl Ids for Encrypted {
    fn one(generator: &Randflake<Dial>) -> Result<u64> {
        generator.generate().map(|id| generator.decrypt(id))
    }

    fn raw(generator: &Randflake<Dial>, id: i64) -> u64 {
        generator.decrypt(Id::from(id))
    }
}

impl Ids for Plain {
    fn one(generator: &Snowflake<Dial>) -> Result<u64> {
        generator.generate()
    }

    fn raw(_: &Snowflake<Dial>, id: i64) -> u64 {
        id.cast_unsigned()
    }
}

/// Runs a seed.
///
/// # Panics
///
/// If anything is as it must not be.
pub(super) fn run(seed: u64, tracing: bool) -> Outcome {
    never_mind();
    let mut random = Random::new(seed);
    if random.happens(250) {
        let secret = Secret::from_bytes(&0x5eed_5eed_5eed_5eed_u128.to_be_bytes());
        return World::<Encrypted>::new(secret.expect("16 bytes"), random, tracing).run();
    }
    let (node_bits, sequence_bits) = (random.number(1, 3), random.number(1, 5));
    let tick_ms = random.pick(&[1000, 1000, 1000, 500, 300, 100]);
    let layout = Layout::custom([
        (Field::Time, 40),
        (Field::Node, node_bits),
        (Field::Sequence, sequence_bits),
    ]);
    let layout = layout.tick_ms(tick_ms).epoch_ms(random.pick(&[0, 1_288_834_974_657]));
    let layout = layout.build().expect("a layout");
    World::<Plain>::new(layout, random, tracing).run()
}

/// What a seed is like: which faults there are, and how often.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
struct Weather {
    options: Options,
    max_drift: u32,
    nodes: u32,
    /// Clients' clocks may show anything; else they keep within the largest skew.
    wild_clients: bool,
    /// So may the store's. Then nothing may be lost, and operators state nothing.
    wild_store: bool,
    replicated: bool,
    /// Whether a grant counts only once the replica has it.
    waits: bool,
    faults: Vec<Fault>,
    /// Mean time between two of them.
    every: i64,
    /// Of a thousand messages.
    lost: i64,
    doubled: i64,
    late: i64,
    swapped: i64,
    /// Of a thousand calls.
    step_in_call: i64,
    turn_in_call: i64,
    burst: i64,
    /// Connections deliver what is late to whoever asks next.
    dirty: bool,
    /// Every process has node id 0 by hand.
    by_hand: bool,
    /// The store may lose what it has granted.
    loses: bool,
    /// When it ends.
    until: i64,
}

struct Process<F: Format> {
    /// Different for each process that ever was.
    life: u32,
    machine: usize,
    alive: bool,
    dial: Dial,
    state: Rc<RefCell<SharedState>>,
    flake: Option<Arc<Generator<F, Dial>>>,
    max_drift: u32,
    paused_until: i64,
    /// Which server it takes for the master.
    server: usize,
    /// The request that it waits for, and the answers it would take for it.
    call: Option<(u64, Step)>,
    connection: u64,
    /// The event that it waits for, if it is none of the network.
    wake: u64,
    /// The connection to the store is cut until then.
    cut_until: i64,
    /// When it last made an id.
    made: i64,
    last: Option<ErrorKind>,
}

/// A server, and the store as it has it.
struct Server {
    store: MemoryStore,
    /// Which server the store believes to be on.
    known: u32,
    incarnation: u32,
    dial: Dial,
    clock: Machine,
    up: bool,
    paused: (i64, i64),
}

#[derive(Clone, Debug)]
struct Packet {
    process: usize,
    life: u32,
    connection: u64,
    server: usize,
    step: Step,
}

enum Event {
    Keeper { process: usize, wake: u64 },
    Use { process: usize, life: u32 },
    Arrive(Packet),
    Answer(Packet, Answer),
    TimeOut { process: usize, life: u32, call: u64 },
    Born { process: usize },
    Strike,
    Up { server: usize, fenced: bool },
    Replicate { line: u32, index: u64, state: Box<(MemoryStore, u32)> },
    Demote { line: u32 },
    Mends,
    Loses,
    HandOver,
}

struct World<F: Ids> {
    random: Random,
    weather: Weather,
    calm: bool,
    format: F::Config,
    layout: Layout,
    namespace: Namespace,
    now: i64,
    events: BTreeMap<(i64, u64), Event>,
    sequence: u64,
    machines: Vec<Machine>,
    processes: Vec<Process<F>>,
    servers: Vec<Server>,
    /// The server that is the master, and how often that has changed.
    master: usize,
    line: u32,
    /// Since when the replica has heard nothing; the writes of the master; what the replica has.
    frozen_since: Option<i64>,
    written: u64,
    replicated: u64,
    replicate_at: i64,
    backups: Vec<MemoryStore>,
    /// What an operator has looked at: leases, and who holds them.
    listed: Vec<(NodeLease, u32)>,
    hand: Hand,
    oracle: Oracle,
    lives: u32,
    /// On which machine, and when, each life began.
    born_on: Vec<(usize, i64)>,
    /// So many processes are to work in the end.
    kept: usize,
    numbers: u64,
    tracing: bool,
    outcome: Outcome,
}

impl<F: Ids> World<F> {
    fn new(format: F::Config, mut random: Random, tracing: bool) -> Self {
        let layout = F::layout_of(&format);
        let weather = Weather::new(&mut random, &layout);
        let Options { ttl, max_skew, .. } = weather.options;
        // The namespace may grant less than is asked for.
        let max_ttl = random.pick(&[ttl, ttl, 2 * ttl, ttl / 2]);
        let limits = (max_ttl.max(6 * max_skew).max(1), max_skew);
        let namespace = F::namespace(&format, "simulated".into())
            .and_then(|namespace| namespace.max_ttl_and_skew(limits.0, limits.1))
            .and_then(|namespace| namespace.max_node_id(weather.nodes - 1))
            .expect("within the limits");
        let mut world = Self {
            format,
            layout,
            now: 0,
            events: BTreeMap::new(),
            sequence: 0,
            machines: Vec::new(),
            processes: Vec::new(),
            servers: Vec::new(),
            master: 0,
            line: 1,
            frozen_since: None,
            written: 0,
            replicated: 0,
            replicate_at: 0,
            backups: Vec::new(),
            listed: Vec::new(),
            hand: Hand::new(&mut random),
            oracle: Oracle::default(),
            lives: 0,
            born_on: vec![(0, 0)], // of nobody: lives count from 1
            kept: usize::MAX,
            numbers: 0,
            tracing,
            outcome: Outcome::default(),
            calm: false,
            namespace,
            weather,
            random,
        };
        world.people();
        world
    }

    fn people(&mut self) {
        for _ in 0..self.random.between(1, 3) {
            let offset = self.tame_offset();
            let booted = -self.random.below(1_000_000) * MS;
            self.machines.push(Machine::new(offset, booted));
        }
        for _ in 0..=usize::from(self.weather.replicated) {
            let offset = self.tame_offset();
            let dial = Dial::default();
            let store = MemoryStore::with_clock(self.namespace.clone(), dial.clone());
            let clock = Machine::new(offset, 0);
            self.servers.push(Server {
                store,
                known: 1,
                incarnation: 1,
                dial,
                clock,
                up: true,
                paused: (0, 0),
            });
        }
        let slots = self.random.index(5) + 1;
        for process in 0..slots {
            let born = self.born();
            self.processes.push(born);
            let at = self.random.below(3 * SECOND);
            self.at(at, Event::Born { process });
        }
        let strike = self.random.below(self.weather.every);
        self.at(strike, Event::Strike);
        self.at(0, Event::HandOver);
        let weather = self.weather.clone();
        self.say(|| format!("{slots} processes, {weather:?}"));
    }

    fn run(mut self) -> Outcome {
        while let Some(((at, _), event)) = self.events.pop_first() {
            if !self.calm && at >= self.weather.until {
                self.now = self.weather.until;
                self.all_is_well();
            }
            // What is left of the bad times does not count for the end of the good ones.
            if self.calm && at >= self.end() {
                break;
            }
            self.now = at;
            self.outcome.events += 1;
            self.happens(event);
        }
        self.check_liveness();
        self.outcome.ids = self.oracle.ids;
        self.outcome.by_hand = self.hand.ids();
        self.outcome
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Keeper { process, wake } => {
                if self.processes[process].wake == wake {
                    self.drive(process);
                }
            }
            Event::Use { process, life } => self.use_ids(process, life),
            Event::Arrive(packet) => self.arrives(packet),
            Event::Answer(packet, answer) => self.answers(packet, answer),
            Event::TimeOut { process, life, call } => self.times_out(process, life, call),
            Event::Born { process } => self.begin(process),
            Event::Strike => self.strike(),
            Event::Up { server, fenced } => self.is_up(server, fenced),
            Event::Replicate { line, index, state } => self.replicates(line, index, &state),
            Event::Demote { line } => self.demote(line),
            Event::Mends => self.mends(),
            Event::Loses => {
                let everything = self.random.happens(500);
                if !self.calm && self.lose(self.master, everything) {
                    self.count(if everything { Fault::Empty } else { Fault::Restore });
                    self.say(|| "--- Loses what it has just granted".into());
                }
            }
            Event::HandOver => {
                let mut log = Vec::new();
                let next = self.hand.goes_on(&mut self.random, self.now, &mut log);
                for line in log {
                    self.say(|| line);
                }
                self.trace(8, self.hand.ids());
                if let Some(next) = next {
                    self.after(next, Event::HandOver);
                }
            }
        }
    }

    // --- events and their trace ---

    fn at(&mut self, at: i64, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    fn after(&mut self, time: i64, event: Event) {
        self.at(self.now + time, event);
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn say(&self, what: impl FnOnce() -> String) {
        if self.tracing {
            let seconds = self.now / SECOND;
            let millis = self.now % SECOND / MS;
            let line = format!("{seconds:>4}.{millis:03}  {}\n", what());
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }

    /// Notes what happened, so that two runs can be compared.
    fn trace(&mut self, what: u64, more: u64) {
        use std::hash::Hasher;
        let mut mix = Mix::default();
        for part in [self.outcome.trace, self.now.cast_unsigned(), what, more] {
            mix.write_u64(part);
        }
        self.outcome.trace = mix.finish();
    }

    fn count(&mut self, fault: Fault) {
        self.outcome.faults[fault as usize] += 1;
    }

    // --- clocks ---

    fn skew(&self) -> i64 {
        i64::from(self.namespace.limits().max_skew) * SECOND
    }

    /// Returns by how much a clock is wrong that no other is too far from.
    fn tame_offset(&mut self) -> i64 {
        let most = self.skew() / 2;
        match self.random.below(4) {
            0 => most,
            1 => -most,
            2 => 0,
            _ => self.random.between(-most, most),
        }
    }

    fn wild_offset(&mut self) -> i64 {
        let ttl = i64::from(self.weather.options.ttl) * SECOND;
        match self.random.below(5) {
            0 => self.random.between(-3 * SECOND, 3 * SECOND),
            1 => self.random.pick(&[-3600, 3600, -86_400, 86_400]) * SECOND,
            _ => self.random.between(-2 * ttl, 2 * ttl),
        }
    }

    fn note_wrong_clocks(&mut self) {
        let (now, most) = (self.now, self.skew() / 2);
        for machine in &mut self.machines {
            if machine.offset(now).abs() > most {
                machine.wrong_until = now;
            }
        }
    }

    // --- processes ---

    fn born(&mut self) -> Process<F> {
        self.lives += 1;
        let mut random = Random::new(self.random.next());
        let machine = self.random.index(self.machines.len());
        self.born_on.push((machine, self.now));
        let keeper = Keeper::with_random(self.weather.options, move || random.next());
        let by_hand = self.weather.by_hand;
        let is_by_hand = move |node: &u32| by_hand && *node == 0;
        let keeper = keeper
            .expect("within the limits")
            .manual(move |granted| granted.iter().copied().filter(is_by_hand).collect());
        let mut state = SharedState::default();
        state.keeper = Some(keeper);
        let wake = self.number();
        let connection = self.number();
        Process {
            life: self.lives,
            machine,
            alive: false,
            dial: Dial::default(),
            state: Rc::new(RefCell::new(state)),
            flake: None,
            max_drift: 0,
            paused_until: self.machines[machine].asleep_until,
            server: self.master,
            call: None,
            connection,
            wake,
            cut_until: 0,
            made: i64::MIN,
            last: None,
        }
    }

    fn begin(&mut self, process: usize) {
        if self.processes[process].alive || process >= self.kept {
            return;
        }
        self.processes[process] = self.born();
        self.processes[process].alive = true;
        let life = self.processes[process].life;
        self.trace(1, life.into());
        self.say(|| format!("process {process} begins as life {life}"));
        self.wake(process, 0);
        self.after(0, Event::Use { process, life });
    }

    fn ends(&mut self, process: usize) {
        self.processes[process].alive = false;
        self.processes[process].wake = 0;
        let soon = if self.random.happens(500) { 0 } else { self.random.below(3 * SECOND) };
        self.after(soon, Event::Born { process });
    }

    fn wake(&mut self, process: usize, after: i64) {
        let wake = self.number();
        self.processes[process].wake = wake;
        self.after(after, Event::Keeper { process, wake });
    }

    /// Does what the thread of a leased generator does, until it waits.
    fn drive(&mut self, index: usize) {
        for _ in 0..100 {
            let process = &mut self.processes[index];
            if !process.alive || process.call.is_some() {
                return;
            }
            if process.paused_until > self.now {
                let after = process.paused_until - self.now;
                return self.wake(index, after);
            }
            let reading = self.machines[process.machine].reading(self.now);
            process.dial.begin(reading.wall, 0);
            let mut state = process.state.borrow_mut();
            let turn = match &process.flake {
                Some(flake) => state.advance(flake, reading),
                None => match state.keeper.as_mut().expect("made with it").step(reading) {
                    Step::Stopped => Next::End,
                    Step::Sleep(pause) => Next::Sleep(pause),
                    step => Next::Ask(step),
                },
            };
            drop(state);
            match turn {
                Next::Continue => {}
                Next::End => {
                    let error = self.error_of(index);
                    self.say(|| format!("process {index} ends: {error}"));
                    return self.ends(index);
                }
                Next::Sleep(pause) => {
                    let pause = i64::try_from(pause.as_nanos()).expect("short");
                    // A timer is late, never early.
                    let late = self.random.below(2 * MS);
                    return self.wake(index, pause + late);
                }
                Next::Ask(Step::Open { node_ids, lease }) => self.open(index, &node_ids, lease),
                Next::Ask(step) => return self.send(index, step),
            }
        }
        panic!("the keeper of process {index} does not come to rest");
    }

    fn open(&mut self, index: usize, node_ids: &[u32], lease: randflake::Lease) {
        let process = &mut self.processes[index];
        process.max_drift = self.weather.max_drift.min(most_drift(lease));
        let (wait, dial) = (Duration::ZERO, process.dial.clone());
        let made =
            generator_over(self.format.clone(), node_ids, lease, wait, process.max_drift, dial);
        let made = made.map(|made| process.flake = Some(Arc::new(made)));
        let reading = self.machines[process.machine].reading(self.now);
        let mut state = process.state.borrow_mut();
        let keeper = state.keeper.as_mut().expect("made with it");
        keeper.answer(Answer::Opened(made), reading).expect("the answer to this step");
        drop(state);
        let life = self.processes[index].life;
        self.trace(2, lease.start().cast_unsigned() ^ u64::from(life));
        self.say(|| format!("process {index} opens {node_ids:?} {}", shown(lease)));
    }

    fn error_of(&self, index: usize) -> String {
        let state = self.processes[index].state.borrow();
        let keeper = state.keeper.as_ref().expect("made with it");
        keeper.last_error().map_or_else(String::new, |error| format!("{error} ({})", error.code()))
    }

    // --- ids ---

    fn use_ids(&mut self, index: usize, life: u32) {
        let process = &self.processes[index];
        if !process.alive || process.life != life {
            return;
        }
        if process.paused_until > self.now {
            let after = process.paused_until - self.now + self.random.below(MS);
            return self.after(after, Event::Use { process: index, life });
        }
        if let Some(flake) = process.flake.clone() {
            self.call(index, &*flake);
        }
        // Mostly idle, now and then busy.
        let after = match self.random.below(10) {
            0..4 => self.random.below(30 * MS),
            4..8 => self.random.below(SECOND),
            _ => self.random.below(4 * SECOND),
        };
        self.after(after, Event::Use { process: index, life });
    }

    fn call(&mut self, index: usize, flake: &Generator<F, Dial>) {
        let step = if !self.calm && self.random.happens(self.weather.step_in_call) {
            self.count(Fault::StepInCall);
            // The thread is stopped in the middle of the call; or the clock steps, if it may.
            let long = self.random.below(40) * SECOND / 10;
            if self.weather.wild_clients && long % 3 == 0 { -long } else { long }
        } else {
            0
        };
        let size = if self.random.happens(self.weather.burst) {
            self.count(Fault::Burst);
            let tick = self.layout.ids_per_node() * flake.node_ids().len() as u64;
            let most = i64::try_from(3 * tick.min(100)).expect("small");
            usize::try_from(self.random.between(2, most)).expect("positive")
        } else {
            1
        };
        let process = &self.processes[index];
        let reading = self.machines[process.machine].reading(self.now);
        let process = &self.processes[index];
        process.dial.begin(reading.wall, step);
        if self.random.happens(self.weather.turn_in_call)
            && process.call.is_none()
            && let Some(shared) = process.flake.clone()
        {
            let state = Rc::clone(&process.state);
            meanwhile(move || drop(state.borrow_mut().advance(&shared, reading)));
            self.outcome.faults[Fault::TurnInCall as usize] += 1;
        }
        let process = &self.processes[index];
        let mut ids = vec![0; size];
        let outcome = if size == 1 {
            F::one(flake).map(|raw| ids[0] = raw.cast_signed())
        } else {
            flake.fill_i64_to(&mut ids, Reach::Renewals).map(|()| {
                for id in &mut ids {
                    *id = F::raw(flake, *id).cast_signed();
                }
            })
        };
        never_mind();
        let (life, max_drift, readings) =
            (process.life, process.max_drift, process.dial.readings());
        // The world's clock is where it was: only the call took long, or saw another time.
        let failure = match &outcome {
            Ok(()) => {
                self.processes[index].made = self.now;
                self.processes[index].last = None;
                for raw in &ids {
                    let seen = Seen { raw: raw.cast_unsigned(), life, readings, max_drift };
                    if let Err(wrong) = self.oracle.sees(&self.layout, seen) {
                        panic!("{wrong}");
                    }
                    assert!(!self.weather.by_hand || !flake.node_ids().contains(&0), "by hand");
                }
                self.trace(3, ids[size - 1].cast_unsigned());
                None
            }
            Err(error) => {
                self.trace(4, error.code().len() as u64);
                self.processes[index].last = Some(error.kind());
                Some(error.kind())
            }
        };
        if let Some(kind) = failure {
            self.say(|| format!("process {index}: no id, {kind:?}"));
            // The keeper is hurried, as by a caller that waits for it.
            if recovers(kind) && self.processes[index].call.is_none() {
                self.wake(index, 0);
            }
        } else {
            self.say(|| format!("process {index}: {size} ids, last {:?}", ids[size - 1]));
        }
    }

    // --- the network ---

    fn send(&mut self, index: usize, step: Step) {
        let call = self.number();
        if let Step::Acquire(request) = &step {
            self.oracle.asks(request.token, self.processes[index].life);
        }
        let process = &mut self.processes[index];
        process.call = Some((call, step.clone()));
        let packet = Packet {
            process: index,
            life: process.life,
            connection: process.connection,
            server: process.server,
            step,
        };
        self.trace(5, call);
        let patience =
            PATIENCE + self.random.below(if self.weather.dirty { 1 } else { 7 }) * SECOND;
        let life = packet.life;
        self.after(patience, Event::TimeOut { process: index, life, call });
        self.carry(packet.process, |after, world| {
            let packet = packet.clone();
            world.after(after, Event::Arrive(packet));
        });
    }

    /// Carries a message, or not, or twice.
    fn carry(&mut self, process: usize, deliver: impl Fn(i64, &mut Self)) {
        let Weather { lost, doubled, late, .. } = self.weather;
        if !self.calm {
            if self.processes[process].cut_until > self.now || self.random.happens(lost) {
                self.count(Fault::Lost);
                return;
            }
            if self.random.happens(doubled) {
                self.count(Fault::Doubled);
                let after = self.random.below(20 * SECOND);
                deliver(after, self);
            }
            if self.random.happens(late) {
                self.count(Fault::Late);
                let longest = i64::from(3 * self.weather.options.ttl) * SECOND;
                let after = self.random.below(longest);
                return deliver(after, self);
            }
        }
        let after = self.random.between(MS / 10, 20 * MS);
        deliver(after, self);
    }

    fn arrives(&mut self, packet: Packet) {
        let server = &self.servers[packet.server];
        if server.paused.1 > self.now {
            // Waits in the server's socket.
            let after = server.paused.1 - self.now + self.random.below(MS);
            return self.after(after, Event::Arrive(packet));
        }
        if !server.up {
            if self.random.happens(500) {
                let answer = failure(&packet.step, unavailable("the server is down"));
                self.after(MS, Event::Answer(packet, answer));
            }
            return;
        }
        let answer = self.execute(packet.server, &packet.step);
        let (step, answer) = (packet.step.clone(), answer);
        self.say(|| format!("server {}: {step:?} -> {answer:?}", packet.server));
        if self.random.happens(self.weather.swapped) && !self.calm {
            // Somebody else's connection.
            let other = self.random.index(self.processes.len());
            let to = &self.processes[other];
            if to.call.is_some() {
                let (life, connection) = (to.life, to.connection);
                let packet = Packet { process: other, life, connection, ..packet };
                self.count(Fault::Swapped);
                return self.after(MS, Event::Answer(packet, answer));
            }
        }
        self.carry(packet.process, |after, world| {
            let copy = copy(&answer);
            world.after(after, Event::Answer(packet.clone(), copy));
        });
    }

    fn answers(&mut self, packet: Packet, answer: Answer) {
        let process = &self.processes[packet.process];
        if !process.alive || process.life != packet.life || process.connection != packet.connection
        {
            return;
        }
        if process.paused_until > self.now {
            let after = process.paused_until - self.now + self.random.below(MS);
            return self.after(after, Event::Answer(packet, answer));
        }
        if process.call.is_some() {
            // Even if it is the answer to an earlier call: of those the keeper must take care.
            self.give(packet.process, answer);
        }
    }

    fn times_out(&mut self, index: usize, life: u32, call: u64) {
        let process = &self.processes[index];
        if !process.alive || process.life != life {
            return;
        }
        if process.paused_until > self.now {
            let after = process.paused_until - self.now + self.random.below(MS);
            return self.after(after, Event::TimeOut { process: index, life, call });
        }
        let Some((waits_for, step)) = &process.call else { return };
        if *waits_for != call {
            return;
        }
        let answer = failure(step, unavailable("no answer in time"));
        let (connection, master) = (self.number(), self.master);
        if !self.weather.dirty {
            self.processes[index].connection = connection;
        }
        if self.random.happens(700) {
            self.processes[index].server = master;
        }
        self.give(index, answer);
    }

    /// Gives an answer to the keeper.
    fn give(&mut self, index: usize, answer: Answer) {
        if matches!(answer, Answer::Acquired(Ok(_))) && !self.calm && self.random.happens(200) {
            self.exhaust(index); // before it goes over to another lease
        }
        let (connection, master) = (self.number(), self.master);
        let process = &mut self.processes[index];
        process.call = None;
        let failed = matches!(
            &answer,
            Answer::Acquired(Err(_)) | Answer::Renewed(Err(_)) | Answer::Released(Err(_))
        );
        let reading = self.machines[process.machine].reading(self.now);
        let mut state = process.state.borrow_mut();
        let keeper = state.keeper.as_mut().expect("made with it");
        let foreign = keeper.answer(answer, reading).is_err();
        drop(state);
        if foreign {
            process.connection = connection;
        }
        if failed && self.random.happens(700) {
            self.processes[index].server = master;
        }
        self.trace(6, u64::from(foreign));
        self.drive(index);
    }

    // --- the store ---

    fn set_clock_of(&self, server: usize) {
        let Server { dial, clock, .. } = &self.servers[server];
        dial.begin(clock.wall(self.now), 0);
    }

    fn execute(&mut self, server: usize, step: &Step) -> Answer {
        self.set_clock_of(server);
        if let Err(error) = self.is_ready(server) {
            return failure(step, error);
        }
        let store = &mut self.servers[server].store;
        let answer = match step {
            Step::Acquire(request) => {
                let reply = store.acquire(request);
                if let Ok(Reply { outcome: Acquired::Granted { leases, .. }, .. }) = &reply {
                    self.oracle.is_granted(request.token, leases);
                    self.outcome.grants += 1;
                }
                Answer::Acquired(reply)
            }
            Step::Renew(request) => {
                let reply = store.renew(request);
                if let Ok(Reply { outcome: Renewed::Extended { leases, .. }, .. }) = &reply {
                    self.oracle.is_granted(request.token, leases);
                }
                Answer::Renewed(reply)
            }
            Step::Release(request) => Answer::Released(store.release(request)),
            other => unreachable!("{other:?} is for the generator"),
        };
        if self.weather.replicated {
            if !self.write(server) && self.weather.waits {
                return failure(step, unavailable("no replica has confirmed it"));
            }
        } else if self.weather.loses {
            if self.backups.is_empty() || self.random.happens(300) {
                let copy = self.servers[server].store.copy(self.servers[server].dial.clone());
                self.backups.push(copy);
            }
            // What is lost hurts most when it is new.
            if self.random.happens(10) && !self.calm {
                let soon = self.random.below(30 * MS);
                self.after(soon, Event::Loses);
            }
        }
        answer
    }

    /// What a server with a replica looks at before anything else.
    fn is_ready(&mut self, server: usize) -> Result<()> {
        if !self.weather.replicated {
            return Ok(());
        }
        let is_master = server == self.master;
        let is_old_master = self.servers[server].incarnation + 1 == self.line && !is_master;
        if !is_master && !is_old_master {
            return Err(unavailable("a replica writes nothing"));
        }
        // Who comes out of a pause counts its replicas as before it, for a second.
        let (paused_at, resumed_at) = self.servers[server].paused;
        let counted_at = if self.now - resumed_at < SECOND { paused_at } else { self.now };
        if let Some(frozen_since) = self.frozen_since
            && counted_at - frozen_since > MAX_LAG * SECOND
        {
            return Err(unavailable("no replica is near enough"));
        }
        let Server { store, known, incarnation, .. } = &mut self.servers[server];
        if known != incarnation {
            *known = *incarnation;
            let token = Token::from_bytes([0xff; 16]);
            drop(store.fence(&Fence { token })?);
            store.fence_further(MAX_LAG);
        }
        Ok(())
    }

    /// Sends what the master has written to the replica. Returns whether that will have it soon.
    fn write(&mut self, server: usize) -> bool {
        if server != self.master || self.frozen_since.is_some() {
            return false;
        }
        self.written += 1;
        let lag =
            if self.calm || self.random.happens(800) { 0 } else { self.random.below(2 * SECOND) };
        self.replicate_at = self.replicate_at.max(self.now + lag);
        let Server { store, known, .. } = &self.servers[server];
        let state = Box::new((store.copy(Dial::default()), *known));
        let (line, index, at) = (self.line, self.written, self.replicate_at);
        if at == self.now {
            self.replicates(line, index, &state);
            return true;
        }
        self.at(at, Event::Replicate { line, index, state });
        false
    }

    fn replicates(&mut self, line: u32, index: u64, state: &(MemoryStore, u32)) {
        if line != self.line || self.frozen_since.is_some() || index <= self.replicated {
            return;
        }
        self.replicated = index;
        let replica = &mut self.servers[1 - self.master];
        replica.store = state.0.copy(replica.dial.clone());
        replica.known = state.1;
    }

    /// The other server becomes the master; the old one goes on until it learns of it.
    fn fail_over(&mut self) {
        self.frozen_since.get_or_insert(self.now);
        self.line += 1;
        self.master = 1 - self.master;
        self.servers[self.master].incarnation = self.line;
        self.servers[self.master].up = true;
        self.servers[self.master].paused = (0, 0);
        let (line, later) = (self.line, self.random.below(40 * SECOND));
        self.after(later, Event::Demote { line });
    }

    /// The old master follows the new one, and has what that has.
    fn demote(&mut self, line: u32) {
        if line != self.line {
            return;
        }
        let Server { store, known, incarnation, .. } = &self.servers[self.master];
        let (store, known, incarnation) = (store.clone(), *known, *incarnation);
        let replica = &mut self.servers[1 - self.master];
        replica.store = store.copy(replica.dial.clone());
        (replica.known, replica.up, replica.paused) = (known, true, (0, 0));
        replica.incarnation = incarnation; // no master's any more
        self.frozen_since = None;
        (self.written, self.replicated, self.replicate_at) = (0, 0, self.now);
        self.say(|| "the old master follows the new one".into());
    }

    fn is_up(&mut self, server: usize, fenced: bool) {
        self.servers[server].up = true;
        if fenced {
            self.fence(server);
        }
        self.say(|| format!("server {server} is up, fenced: {fenced}"));
    }

    fn fence(&mut self, server: usize) {
        self.set_clock_of(server);
        if self.is_ready(server).is_ok() {
            let token = self.token();
            let fenced = self.servers[server].store.fence(&Fence { token });
            assert!(fenced.is_ok(), "{fenced:?}");
            if self.weather.replicated {
                self.write(server);
            }
        }
    }

    fn token(&mut self) -> Token {
        let bytes = [self.random.next(), self.random.next()].map(u64::to_le_bytes);
        Token::from_bytes(bytes.concat().try_into().expect("16 bytes"))
    }

    // --- what befalls it ---

    fn strike(&mut self) {
        if self.calm {
            return;
        }
        let next = self.random.below(2 * self.weather.every) + MS;
        self.after(next, Event::Strike);
        if self.weather.faults.is_empty() {
            return;
        }
        let fault = self.random.index(self.weather.faults.len());
        let fault = self.weather.faults[fault];
        if self.befalls(fault) {
            self.trace(7, fault as u64);
            self.count(fault);
            self.say(|| format!("--- {fault:?}"));
        }
    }

    /// Returns whether it was possible.
    #[allow(clippy::too_many_lines, reason = "a list")]
    fn befalls(&mut self, fault: Fault) -> bool {
        let ttl = i64::from(self.weather.options.ttl) * SECOND;
        let process = self.random.index(self.processes.len());
        let machine = self.random.index(self.machines.len());
        let server = self.random.index(self.servers.len());
        let (now, long, short) = (self.now, self.random.below(3 * ttl), self.random.below(SECOND));
        match fault {
            Fault::Kill => {
                let alive = self.processes[process].alive;
                if alive {
                    self.ends(process);
                }
                return alive;
            }
            Fault::End => {
                if self.random.happens(300) {
                    self.exhaust(process);
                }
                return self.end_properly(process);
            }
            Fault::Pause => self.processes[process].paused_until = now + long,
            Fault::Sleep => {
                for process in self.processes.iter_mut().filter(|it| it.machine == machine) {
                    process.paused_until = process.paused_until.max(now + long);
                }
                let stands_still = self.random.happens(500);
                self.machines[machine].sleep(now, long, stands_still);
            }
            Fault::Reboot => {
                for process in 0..self.processes.len() {
                    if self.processes[process].machine == machine && self.processes[process].alive {
                        self.ends(process);
                    }
                }
                self.machines[machine].boot(now);
            }
            Fault::ClockSteps => {
                self.note_wrong_clocks();
                if self.random.happens(300) {
                    self.exhaust(process); // before it takes another lease
                }
                let machine = if self.random.happens(500) {
                    self.processes[process].machine
                } else {
                    machine
                };
                let wild = self.weather.wild_clients && self.random.happens(700);
                let offset = if wild { self.wild_offset() } else { self.tame_offset() };
                self.machines[machine].step_to(now, offset, 0);
                self.note_wrong_clocks();
            }
            Fault::ClockDrifts => {
                self.note_wrong_clocks();
                let offset = self.machines[machine].offset(now);
                let ppm = self.random.pick(&[-500_000, -50_000, -200, 200, 50_000, 900_000]);
                self.machines[machine].step_to(now, offset, ppm);
            }
            Fault::StoreClockSteps => {
                let wild = self.weather.wild_store && self.random.happens(700);
                let offset = if wild { self.wild_offset() } else { self.tame_offset() };
                self.servers[server].clock.step_to(now, offset, 0);
            }
            Fault::Partition => {
                for process in self.processes.iter_mut().filter(|it| it.machine == machine) {
                    process.cut_until = now + long;
                }
            }
            Fault::BadNetwork => {
                (self.weather.lost, self.weather.doubled, self.weather.late) = (300, 300, 200);
                self.after(long, Event::Mends);
            }
            Fault::Outage | Fault::StoreRestarts => {
                if !self.servers[server].up {
                    return false;
                }
                let after = if fault == Fault::Outage { long } else { short };
                self.servers[server].up = false;
                self.after(after, Event::Up { server, fenced: false });
            }
            Fault::StorePauses => self.servers[server].paused = (now, now + long),
            Fault::Restore | Fault::Empty => {
                return self.lose(server, fault == Fault::Empty);
            }
            Fault::LinkFreezes => {
                if self.frozen_since.is_some() {
                    return false;
                }
                self.frozen_since = Some(now);
                self.after(long, Event::Demote { line: self.line });
            }
            Fault::Failover => self.fail_over(),
            Fault::MasterPauses => {
                self.servers[self.master].paused = (now, now + long);
                if self.random.happens(700) {
                    self.fail_over();
                    // That one has not noticed.
                    self.servers[1 - self.master].paused = (now, now + long);
                }
            }
            Fault::Fence => {
                let up = self.servers[self.master].up;
                if up {
                    self.fence(self.master);
                }
                return up;
            }
            Fault::ReleaseDead => return self.release_dead(),
            Fault::Repair => {
                let offset = self.tame_offset();
                self.servers[self.master].clock.step_to(now, offset, 0);
                return self.repair_far() > 0;
            }
            _ => unreachable!("{fault:?} befalls single messages"),
        }
        true
    }

    /// A backup is restored, or there is none; on a machine whose clock differs, as far as it may.
    fn lose(&mut self, server: usize, everything: bool) -> bool {
        if !self.servers[server].up || self.backups.is_empty() {
            return false;
        }
        let dial = self.servers[server].dial.clone();
        let latest = self.backups.len() - 1;
        let backup =
            if self.random.happens(500) { latest } else { self.random.index(self.backups.len()) };
        self.servers[server].store = if everything {
            MemoryStore::with_clock(self.namespace.clone(), dial)
        } else {
            self.backups[backup].copy(dial)
        };
        if self.random.happens(500) {
            let offset = self.tame_offset();
            self.servers[server].clock.step_to(self.now, offset, 0);
        }
        self.servers[server].up = false;
        let longest = self.random.pick(&[MS, 100 * MS, 5 * SECOND]);
        let after = self.random.below(longest);
        self.after(after, Event::Up { server, fenced: true });
        true
    }

    fn end_properly(&mut self, index: usize) -> bool {
        let process = &self.processes[index];
        if !process.alive || process.paused_until > self.now {
            return false;
        }
        let reading = self.machines[process.machine].reading(self.now);
        process.dial.begin(reading.wall, 0);
        let mut state = process.state.borrow_mut();
        match &process.flake {
            Some(flake) => state.stop(&**flake),
            None => state.keeper.as_mut().expect("made with it").stop(),
        }
        drop(state);
        if self.processes[index].call.is_none() {
            self.wake(index, 0);
        }
        true
    }

    fn mends(&mut self) {
        (self.weather.lost, self.weather.doubled, self.weather.late) = (20, 10, 10);
    }

    // --- operators, who state the truth ---

    fn operator_second(&mut self) -> i64 {
        let offset = self.tame_offset();
        Machine::new(offset, 0).second(self.now)
    }

    fn is_alive(&self, life: u32) -> bool {
        self.processes.iter().any(|process| process.alive && process.life == life)
    }

    fn look(&mut self) {
        self.set_clock_of(self.master);
        let token = self.token();
        let store = &mut self.servers[self.master].store;
        let Ok(reply) = store.list(&List { token, node_id: None }) else { return };
        let held = reply.outcome.nodes.iter().filter(|node| node.held);
        let leases: Vec<NodeLease> = held.map(|node| node.lease).collect();
        self.listed = leases
            .into_iter()
            .filter_map(|lease| {
                let token = self.servers[self.master].store.holder(lease.node_id)?;
                Some((lease, self.oracle.holder(token)?))
            })
            .collect();
    }

    /// Releases a node id for a holder that is dead, and had a clock that was right.
    fn release_dead(&mut self) -> bool {
        if !self.servers[self.master].up {
            return false;
        }
        self.note_wrong_clocks();
        let killed = self.random.happens(600).then(|| self.kill_at_its_limit()).flatten();
        if killed.is_some() || self.random.happens(700) {
            self.look();
        }
        let dead = self.listed.iter().copied().filter(|(_, life)| {
            let (machine, born) = self.born_on[*life as usize];
            !self.is_alive(*life)
                && self.machines[machine].wrong_until < born
                && killed.is_none_or(|killed| killed == *life)
        });
        let dead: Vec<_> = dead.collect();
        if dead.is_empty() {
            return false;
        }
        let (lease, life) = dead[self.random.index(dead.len())];
        self.set_clock_of(self.master);
        if self.is_ready(self.master).is_err() {
            return false;
        }
        let (token, mut client_now) = (self.token(), self.operator_second());
        let wrong = self.random.happens(200);
        if wrong {
            client_now += self.random.pick(&[-600, 600]);
        }
        let store = &mut self.servers[self.master].store;
        let done = store.release_dead(&ReleaseDead { token, lease, client_now });
        assert!(!wrong || done.is_err(), "by a clock that is wrong: {done:?}");
        self.say(|| format!("releases {lease:?} of life {life}: {done:?}"));
        if self.weather.replicated {
            self.write(self.master);
        }
        done.is_ok()
    }

    /// Kills a process when it has stamped all seconds that it may. Returns its life.
    fn kill_at_its_limit(&mut self) -> Option<u32> {
        let index = self.random.index(self.processes.len());
        let process = &self.processes[index];
        if !process.alive || process.paused_until > self.now {
            return None;
        }
        let life = process.life;
        let is_open = self.exhaust(index);
        self.ends(index);
        is_open.then_some(life)
    }

    /// Has a process stamp all seconds that it may, as far ahead as it may.
    fn exhaust(&mut self, index: usize) -> bool {
        let process = &self.processes[index];
        let Some(flake) = process.flake.clone() else { return false };
        if !process.alive || process.paused_until > self.now {
            return false;
        }
        for _ in 0..700 {
            self.call(index, &*flake);
            if self.processes[index].last.is_some() {
                break;
            }
        }
        true
    }

    /// Sets far ends back, once nobody lives who was given one. Returns how many.
    fn repair_far(&mut self) -> u64 {
        let server = self.master;
        self.set_clock_of(server);
        let token = self.token();
        let Ok(reply) = self.servers[server].store.list(&List { token, node_id: None }) else {
            return 0; // nothing was ever asked for
        };
        let listed = reply.outcome;
        let furthest = listed.furthest();
        for index in 0..self.processes.len() {
            let Process { life, alive, .. } = self.processes[index];
            if alive && self.oracle.furthest_of(life, self.weather.nodes) > furthest {
                self.ends(index);
            }
        }
        let latest = |node_id| self.oracle.latest(node_id) + 1;
        let nodes = listed.nodes.iter().map(|node| {
            (Target::Node(node.lease.node_id), node.lease.end_exclusive, latest(node.lease.node_id))
        });
        let floor = (Target::Floor, listed.floor, (0..self.weather.nodes).map(latest).max());
        let floor = (floor.0, floor.1, floor.2.unwrap_or(0));
        let far: Vec<_> =
            nodes.chain([floor]).filter(|(_, end, _)| listed.is_implausible(*end)).collect();
        let mut repaired = 0;
        for (target, end, unused) in far {
            let bound = (unused > furthest).then_some(unused);
            if unused >= end {
                continue; // those seconds are used
            }
            let (token, client_now) = (self.token(), self.operator_second());
            let request = Repair { token, target, bound, client_now };
            let cut = self.servers[server].store.repair(&request);
            self.say(|| format!("repairs {target:?}: {cut:?}"));
            assert!(cut.is_ok(), "{request:?}: {cut:?}");
            repaired += 1;
        }
        repaired
    }

    // --- the end ---

    /// Returns how long it may take until everybody has ids again: until all that was granted and
    /// every quarantine is over, and somebody has looked.
    fn end(&self) -> i64 {
        let limits = self.namespace.limits();
        let over = i64::from(limits.max_ttl + limits.max_skew) + MAX_LAG;
        self.weather.until + (over + i64::from(self.weather.options.ttl) / 10 + 40) * SECOND
    }

    /// All faults end.
    fn all_is_well(&mut self) {
        self.calm = true;
        (self.weather.step_in_call, self.weather.burst, self.weather.swapped) = (0, 0, 0);
        let now = self.now;
        for machine in 0..self.machines.len() {
            let offset = self.tame_offset();
            self.machines[machine].step_to(now, offset, 0);
            self.machines[machine].wake(now);
        }
        for server in 0..self.servers.len() {
            let offset = self.tame_offset();
            self.servers[server].clock.step_to(now, offset, 0);
            self.servers[server].paused = (0, 0);
        }
        // What was on its way is lost; what comes back, comes back now.
        let under_way = mem::take(&mut self.events);
        for (at, event) in under_way {
            match event {
                Event::Arrive(_) | Event::Answer(..) | Event::Use { .. } => {}
                Event::TimeOut { .. } => self.at(at.0.min(now + 10 * SECOND), event),
                Event::Up { .. } | Event::Demote { .. } => self.happens(event),
                event => drop(self.events.insert(at, event)),
            }
        }
        if self.weather.replicated {
            self.demote(self.line);
        }
        self.outcome.faults[Fault::Repair as usize] += self.repair_far();
        self.set_clock_of(self.master);
        let token = self.token();
        let listed = self.servers[self.master].store.list(&List { token, node_id: None });
        let (far, blocked) = listed.map_or((0, false), |reply| {
            let listed = reply.outcome;
            (listed.counts().implausible, listed.is_implausible(listed.floor))
        });
        let none = far + u32::from(self.weather.by_hand);
        let free = if blocked { 0 } else { self.weather.nodes.saturating_sub(none) };
        self.kept = (free / self.weather.options.node_count.min(free.max(1))) as usize;
        for index in 0..self.processes.len() {
            let process = &mut self.processes[index];
            (process.paused_until, process.cut_until) = (now, 0);
            let Process { alive, life, .. } = *process;
            self.after(0, Event::Use { process: index, life });
            if index >= self.kept && alive {
                self.ends(index);
            } else if alive && self.processes[index].call.is_none() {
                self.wake(index, 0);
            }
        }
        self.say(|| format!("--- all is well; {} processes are to work", self.kept));
    }

    fn check_liveness(&self) {
        for (index, process) in self.processes.iter().enumerate().take(self.kept) {
            let idle = self.end() - process.made.max(0);
            assert!(
                process.made > 0 && idle < 15 * SECOND,
                "process {index} (life {}) has made no id for {} s: {:?}; {}",
                process.life,
                idle / SECOND,
                process.last,
                self.error_of(index)
            );
        }
    }
}

impl Weather {
    fn new(random: &mut Random, layout: &Layout) -> Self {
        let ttl = random.pick(&[6, 12, 12, 18, 30, 60]);
        let skews: Vec<u32> = [0, 1, 2, 5].into_iter().filter(|skew| 6 * skew <= ttl).collect();
        let nodes = random.number(1, 8.min(layout.max_node_id() + 1));
        let node_count = random.pick(&[1, 1, 1, 2, 3]).min(nodes);
        let options = Options {
            node_count,
            ttl,
            max_skew: random.pick(&skews),
            acquire_timeout: Duration::from_secs(random.pick(&[1, 5, 10, 60])),
        };
        let wild_clients = random.happens(500);
        let wild_store = wild_clients && random.happens(400);
        let replicated = !wild_store && random.happens(400);
        let waits = random.happens(600);
        let weather = Self {
            max_drift: random.pick(&[0, 1, 10, ttl / 3, ttl / 3]).min(ttl / 3),
            nodes,
            wild_clients,
            wild_store,
            replicated,
            waits,
            faults: Vec::new(),
            every: random.pick(&[1, 3, 10]) * SECOND,
            lost: random.pick(&[0, 20, 100]),
            doubled: random.pick(&[0, 20, 100]),
            late: random.pick(&[0, 10, 100]),
            swapped: random.pick(&[0, 0, 20]),
            step_in_call: if wild_clients { random.pick(&[0, 20]) } else { 0 },
            turn_in_call: random.pick(&[0, 100]),
            burst: random.pick(&[0, 50, 300]),
            dirty: random.happens(300),
            by_hand: nodes > 1 && random.happens(100),
            loses: !wild_store && !replicated && random.happens(600),
            until: (i64::from(ttl) * random.between(8, 40)).clamp(60, 600) * SECOND,
            options,
        };
        let mut faults = FAULTS.to_vec();
        faults.retain(|fault| weather.allows(*fault) && random.happens(450));
        Self { faults, ..weather }
    }

    /// Whether the documentation of the store, and of operators, allows it besides the others.
    fn allows(&self, fault: Fault) -> bool {
        match fault {
            Fault::ClockDrifts => self.wild_clients,
            Fault::Restore | Fault::Empty => self.loses,
            Fault::LinkFreezes | Fault::Failover => self.replicated,
            // A master that was paused grants before it counts its replicas.
            Fault::MasterPauses => self.replicated && self.waits,
            Fault::StorePauses => !self.replicated || self.waits,
            Fault::Outage | Fault::StoreRestarts => true,
            Fault::ReleaseDead => !self.wild_store,
            Fault::Repair => self.wild_store,
            fault => (fault as usize) < Fault::Lost as usize,
        }
    }
}

/// Whether the caller waits for the keeper.
fn recovers(kind: ErrorKind) -> bool {
    kind == ErrorKind::LeaseExpired
}

fn shown(lease: randflake::Lease) -> String {
    format!("{}..{}", lease.start() - START, lease.end_exclusive() - START)
}

fn unavailable(why: &str) -> Error {
    Error::new(ErrorKind::StoreUnavailable, why.to_owned())
}

/// The failure of this step.
fn failure(step: &Step, error: Error) -> Answer {
    match step {
        Step::Acquire(_) => Answer::Acquired(Err(error)),
        Step::Renew(_) => Answer::Renewed(Err(error)),
        _ => Answer::Released(Err(error)),
    }
}

fn copy(answer: &Answer) -> Answer {
    fn of<T: Clone>(reply: &Result<Reply<T>>) -> Result<Reply<T>> {
        match reply {
            Ok(reply) => Ok(reply.clone()),
            Err(error) => Err(error.clone()),
        }
    }
    match answer {
        Answer::Acquired(reply) => Answer::Acquired(of(reply)),
        Answer::Renewed(reply) => Answer::Renewed(of(reply)),
        Answer::Released(reply) => Answer::Released(of(reply)),
        other => unreachable!("{other:?} is no answer of a store"),
    }
}
