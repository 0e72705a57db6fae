//! The world of one seed: machines, processes, a network, a store on one or two servers, operators,
//! and their faults. Events in virtual time, one after the other.

mod clocks;
mod ending;
mod faults;
mod ids;
mod kept;
mod network;
mod operators;
mod processes;
mod scenario;
mod servers;

use std::{
    cell::RefCell, collections::BTreeMap, io::Write, mem, rc::Rc, sync::Arc, time::Duration,
};

use randflake::{
    Call, Encrypted, ErrorKind, Field, Format, Generator, Id, Layout, Plain, Randflake, Result,
    Secret, Snowflake, bindings::ForkId,
};

pub(super) use self::scenario::{FAULTS, Fault};
use self::{
    kept::{Kept, Said, Sent, Talk},
    scenario::Scenario,
};
use super::{
    machine::{MS, Machine, Random, SECOND, START, SimulatedClock, meanwhile, never_mind},
    manual::ManualNode,
    oracle::{IssuedId, NumberHasher, Oracle},
};
use crate::{
    Acquired, Error, Fence, LeaseStore, LeasedFormat, MemoryStore, Namespace, NamespaceMetadata,
    NodeLease, NodeRanges, Renewed, Reply, Token,
    keeper::{Answer, Keeper, Options, Reading, Step},
    leased::{Next, SharedState, without_lease},
    operator::{List, ReleaseDead, Repair, SetNodeIds, Target},
    remote::{Engine, Protocol},
};

/// How long a master grants at most without hearing from its replica: `min-replicas-max-lag` bounds
/// it.
const MAX_LAG: i64 = 11;

/// The shortest time that a client waits for an answer.
const PATIENCE: i64 = 3 * SECOND;

/// The outcome of a seed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Summary {
    /// A hash of everything that happened.
    pub(super) trace: u64,
    pub(super) ids: u64,
    pub(super) events: u64,
    pub(super) grants: u64,
    pub(super) manual: u64,
    pub(super) faults: [u64; FAULTS.len()],
}

/// The generators, each with its ids as raw numbers.
pub(super) trait Ids: LeasedFormat + Sized {
    fn one(generator: &Generator<Self, SimulatedClock>) -> Result<u64>;
    fn raw(generator: &Generator<Self, SimulatedClock>, id: i64) -> u64;
}

impl Ids for Encrypted {
    fn one(generator: &Randflake<SimulatedClock>) -> Result<u64> {
        generator.generate().map(|id| generator.decrypt(id))
    }

    fn raw(generator: &Randflake<SimulatedClock>, id: i64) -> u64 {
        generator.decrypt(Id::from(id))
    }
}

impl Ids for Plain {
    fn one(generator: &Snowflake<SimulatedClock>) -> Result<u64> {
        generator.generate()
    }

    fn raw(_: &Snowflake<SimulatedClock>, id: i64) -> u64 {
        id.cast_unsigned()
    }
}

/// Runs a seed.
///
/// # Panics
///
/// If anything is wrong.
pub(super) fn run(seed: u64, tracing: bool) -> Summary {
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

struct Process<F: Format> {
    /// A number that is unique in the whole seed.
    pid: u32,
    machine: usize,
    alive: bool,
    clock: SimulatedClock,
    state: Rc<RefCell<SharedState>>,
    flake: Option<Arc<Generator<F, SimulatedClock>>>,
    /// The largest drift of its Term.
    max_drift: u32,
    paused_until: i64,
    /// The server that it believes to be the master.
    server: usize,
    /// The request that it is waiting for, and the answers that it would accept for it.
    call: Option<(u64, Step)>,
    /// How it asks a server that has a table, and the operation in progress.
    protocol: Option<Protocol>,
    talk: Option<Talk>,
    connection: u64,
    /// The event that it is waiting for, unless that comes from the network.
    wake: u64,
    /// The connection to the store is down until this time.
    cut_until: i64,
    /// When it last made an id.
    made: i64,
    last: Option<ErrorKind>,
}

/// A server, and its copy of the store.
struct Server {
    store: Kept,
    /// The incarnation that the store believes it is on.
    known: u32,
    incarnation: u32,
    /// How often it was started.
    runs: u32,
    clock: SimulatedClock,
    machine: Machine,
    up: bool,
    paused: (i64, i64),
}

#[derive(Clone, Debug)]
struct Message {
    process: usize,
    pid: u32,
    connection: u64,
    server: usize,
    sent: Sent,
}

enum Event {
    Keeper {
        process: usize,
        wake: u64,
    },
    Use {
        process: usize,
        pid: u32,
    },
    Arrive(Message),
    Answer(Message, Said),
    TimeOut {
        process: usize,
        pid: u32,
        call: u64,
    },
    Born {
        process: usize,
    },
    Strike,
    Up {
        server: usize,
        fenced: bool,
    },
    Replicate {
        line: u32,
        index: u64,
        state: Box<(Kept, u32)>,
    },
    Demote {
        line: u32,
    },
    Mends,
    Loses,
    HandOver,
    /// The node id of an outsider is leased again.
    Back,
}

struct World<F: Ids> {
    random: Random,
    scenario: Scenario,
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
    /// The master, and how often it has changed.
    master: usize,
    line: u32,
    /// Since when the replica has heard nothing; the writes of the master; what the replica has.
    frozen_since: Option<i64>,
    written: u64,
    replicated: u64,
    replicate_at: i64,
    backups: Vec<Kept>,
    /// What an operator has looked at: leases and their holders.
    listed: Vec<(NodeLease, u32)>,
    manual_node: ManualNode,
    /// The node id that is no longer leased, and whether a generator of others still has it.
    outside: Option<(u32, bool)>,
    oracle: Oracle,
    pids: u32,
    /// On which machine, and when, each process began.
    born_on: Vec<(usize, i64)>,
    /// The number of processes that must work in the end.
    kept: usize,
    numbers: u64,
    tracing: bool,
    summary: Summary,
}

impl<F: Ids> World<F> {
    fn new(format: F::Config, mut random: Random, tracing: bool) -> Self {
        let layout = F::layout_of(&format);
        let scenario = Scenario::new(&mut random, &layout);
        let Options { ttl, max_skew, .. } = scenario.options;
        // The namespace may grant less than is asked for.
        let max_ttl = random.pick(&[ttl, ttl, 2 * ttl, ttl / 2]);
        let limits = (max_ttl.max(6 * max_skew).max(1), max_skew);
        let namespace = F::namespace(&format, "simulated".into())
            .and_then(|namespace| namespace.max_ttl_and_skew(limits.0, limits.1))
            .and_then(|namespace| namespace.node_ids(NodeRanges::up_to(scenario.nodes - 1)))
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
            manual_node: ManualNode::new(&mut random),
            outside: None,
            oracle: Oracle::default(),
            pids: 0,
            born_on: vec![(0, 0)], // of no process: pids count from 1
            kept: usize::MAX,
            numbers: 0,
            tracing,
            summary: Summary::default(),
            calm: false,
            namespace,
            scenario,
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
        let clock = SimulatedClock::default();
        let mut store = Kept::new(&self.namespace, self.scenario.engine, clock.clone());
        store.begins_on(&self.name_of(0, 1, 1));
        for server in 0..=usize::from(self.scenario.replicated) {
            let offset = self.tame_offset();
            let clock = if server == 0 { clock.clone() } else { SimulatedClock::default() };
            let store = store.copy(clock.clone());
            let machine = Machine::new(offset, 0);
            let (known, incarnation, runs, up, paused) = (1, 1, 1, true, (0, 0));
            self.servers.push(Server {
                store,
                known,
                incarnation,
                runs,
                clock,
                machine,
                up,
                paused,
            });
        }
        let slots = self.random.index(5) + 1;
        for process in 0..slots {
            let born = self.born();
            self.processes.push(born);
            let at = self.random.below(3 * SECOND);
            self.at(at, Event::Born { process });
        }
        let strike = self.random.below(self.scenario.every);
        self.at(strike, Event::Strike);
        self.at(0, Event::HandOver);
        let scenario = self.scenario.clone();
        self.say(|| format!("{slots} processes, {scenario:?}"));
    }

    fn run(mut self) -> Summary {
        while let Some(((at, _), event)) = self.events.pop_first() {
            if !self.calm && at >= self.scenario.until {
                self.now = self.scenario.until;
                self.all_is_well();
            }
            // Events left over from the faults do not prolong the calm end.
            if self.calm && at >= self.end() {
                break;
            }
            self.now = at;
            self.summary.events += 1;
            self.happens(event);
        }
        self.check_liveness();
        self.summary.ids = self.oracle.ids;
        self.summary.manual = self.manual_node.ids();
        self.summary
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Keeper { process, wake } => {
                if self.processes[process].wake == wake {
                    self.drive(process);
                }
            }
            Event::Use { process, pid } => self.use_ids(process, pid),
            Event::Arrive(message) => self.arrives(message),
            Event::Answer(message, said) => self.answers(message, said),
            Event::TimeOut { process, pid, call } => {
                self.times_out(process, pid, call);
            }
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
            Event::Back => self.is_back(),
            Event::HandOver => {
                let mut log = Vec::new();
                let next = self.manual_node.goes_on(&mut self.random, self.now, &mut log);
                for line in log {
                    self.say(|| line);
                }
                self.trace(8, self.manual_node.ids());
                if let Some(next) = next {
                    self.after(next, Event::HandOver);
                }
            }
        }
    }

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
        let mut hasher = NumberHasher::default();
        for part in [self.summary.trace, self.now.cast_unsigned(), what, more] {
            hasher.write_u64(part);
        }
        self.summary.trace = hasher.finish();
    }

    fn count(&mut self, fault: Fault) {
        self.summary.faults[fault as usize] += 1;
    }
}

/// Whether the caller should wait for the keeper.
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
