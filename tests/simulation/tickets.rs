//! Counters under faults: answers that are lost, late, repeated or meant for somebody else, kills,
//! failovers with an old master that continues for a while, and restored backups. An operator stops
//! everything that draws, fences the counter above what was handed out, and restarts everything.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
};

use randflake_leases::{
    Acquire, Acquired, Error, ErrorKind, Fence, Fenced, LeaseStore, MemoryStore, Namespace,
    Release, Released, Renew, Renewed, Reply, Result, Swap, Swapped, Token,
    operator::{List, Listed, ReleaseDead, Repair, Shortened},
};

use self::seeds::{Random, SECOND, START};
use crate::{
    counter::{Block, CounterSettings, Draw, KnownCounter},
    operator,
};

#[path = "seeds.rs"]
mod seeds;

const COUNTER: &str = "invoices";
/// For this many seconds after a promotion, the old master may continue, as in Redis.
const LAST_GRANT: u32 = 12;
/// The number of actions in a seed.
const ACTIONS: usize = 250;
const PROCESSES: usize = 3;

/// What happened in a seed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Outcome {
    numbers: u64,
    failovers: u64,
    restored: u64,
    fenced: u64,
    refused: u64,
    late: u64,
}

/// A server and, if it has one, its replica.
struct Server {
    store: MemoryStore,
    replica: Option<MemoryStore>,
    /// Another replica confirms, too; it is never promoted.
    has_another: bool,
    is_linked: bool,
    /// Whether the namespace was fenced since the server became another one.
    is_fenced: bool,
    /// From this second on, an old master writes nothing.
    until: i64,
}

struct Network {
    random: Random,
    now: Arc<AtomicI64>,
    servers: Vec<Server>,
    /// Requests that will arrive again, or late.
    late: Vec<(usize, Swap)>,
    last: Option<Reply<Swapped>>,
    outcome: Outcome,
}

/// A connection to one of the servers.
struct Connection {
    network: Arc<Mutex<Network>>,
    server: usize,
}

struct Process {
    server: usize,
    counter: KnownCounter,
    after: u64,
    /// The token under which the counter holds its blocks.
    token: Option<Token>,
    /// A draw without an answer, which is repeated.
    pending: Option<Draw>,
    blocks: Vec<Block>,
    last: u64,
}

struct World {
    random: Random,
    now: Arc<AtomicI64>,
    network: Arc<Mutex<Network>>,
    processes: Vec<Process>,
    backups: Vec<MemoryStore>,
    must_fence: bool,
    /// The tables of the users.
    handed_out: BTreeSet<u64>,
}

#[test]
fn no_number_is_repeated_under_any_fault() {
    let total = seeds::run_some(0..500, 2, run, Outcome::add);
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed), "seed {seed} takes another way");
    }
    let Outcome { numbers, failovers, restored, fenced, refused, late } = total;
    assert!(numbers > 10_000, "{total:?}");
    assert!(failovers.min(restored).min(fenced).min(refused).min(late) > 100, "{total:?}");
}

/// Runs what `make simulate` asks for.
#[test]
#[ignore = "takes as long as requested"]
fn many_seeds() {
    if let Some(seed) = seeds::wanted("SEED") {
        run(seed);
        return;
    }
    let (total, ran) = seeds::run_many(run, Outcome::add);
    seeds::say(&format!("{ran}: {} sequential numbers", total.numbers));
}

impl Outcome {
    fn add(&mut self, other: &Self) {
        self.numbers += other.numbers;
        self.failovers += other.failovers;
        self.restored += other.restored;
        self.fenced += other.fenced;
        self.refused += other.refused;
        self.late += other.late;
    }
}

/// Runs a seed, and panics if a number was handed out twice.
fn run(seed: u64) -> Outcome {
    let mut world = World::new(seed);
    for _ in 0..ACTIONS {
        world.act();
    }
    let mut outcome = world.network().outcome;
    outcome.numbers = world.handed_out.len() as u64;
    outcome
}

impl Network {
    fn clock(&self) -> impl Fn() -> i64 + Send + Sync + 'static {
        let now = Arc::clone(&self.now);
        move || now.load(Relaxed) * SECOND
    }

    fn swap(&mut self, server: usize, request: &Swap) -> Result<Reply<Swapped>> {
        while !self.late.is_empty() && self.random.happens(200) {
            let index = self.random.index(self.late.len());
            let (server, request) = self.late.swap_remove(index);
            self.outcome.late += 1;
            let _unheard = self.execute(server, &request);
        }
        match self.random.below(20) {
            0 => Err(unavailable("the request was lost")),
            1 => {
                self.late.push((server, request.clone()));
                Err(unavailable("the request is late"))
            }
            2 => {
                let _unheard = self.execute(server, request);
                Err(unavailable("the answer was lost"))
            }
            3 => {
                self.late.push((server, request.clone()));
                self.execute(server, request)
            }
            4 if self.last.is_some() => {
                let _unheard = self.execute(server, request);
                Ok(self.last.clone().expect("there was one"))
            }
            _ => {
                let reply = self.execute(server, request);
                self.last = reply.clone().ok().or(self.last.take());
                reply
            }
        }
    }

    fn execute(&mut self, server: usize, request: &Swap) -> Result<Reply<Swapped>> {
        let clock = self.clock();
        let server = self.used(server)?;
        let reply = server.store.swap(request)?;
        if reply.outcome.done {
            if server.is_linked && server.replica.is_some() {
                server.replica = Some(server.store.copy(clock));
            } else if server.replica.is_some() && !server.has_another {
                return Err(unavailable("no replica has confirmed it"));
            }
        }
        Ok(reply)
    }

    /// Returns a server, which first notices whether it has become another one.
    fn used(&mut self, server: usize) -> Result<&mut Server> {
        let now = self.now.load(Relaxed);
        let server = &mut self.servers[server];
        if now >= server.until {
            return Err(unavailable("it has no replica that is near enough"));
        }
        if !server.is_fenced {
            let _fenced = server.store.fence(&Fence { token: Token::from_bytes([0xff; 16]) })?;
            server.store.fence_further(LAST_GRANT.into());
            server.is_fenced = true;
        }
        Ok(server)
    }
}

fn unavailable(why: &'static str) -> Error {
    Error::new(ErrorKind::StoreUnavailable, why)
}

impl LeaseStore for Connection {
    fn acquire(&mut self, _: &Acquire) -> Result<Reply<Acquired>> {
        Err(unavailable("nothing is leased here"))
    }

    fn renew(&mut self, _: &Renew) -> Result<Reply<Renewed>> {
        Err(unavailable("nothing is leased here"))
    }

    fn release(&mut self, _: &Release) -> Result<Reply<Released>> {
        Err(unavailable("nothing is leased here"))
    }

    fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>> {
        self.network.lock().expect("no panic").used(self.server)?.store.fence(request)
    }

    fn list(&mut self, request: &List) -> Result<Reply<Listed>> {
        let mut reply =
            self.network.lock().expect("no panic").used(self.server)?.store.list(request)?;
        reply.outcome.last_grant = LAST_GRANT;
        Ok(reply)
    }

    fn repair(&mut self, _: &Repair) -> Result<Reply<Shortened>> {
        Err(unavailable("nothing is leased here"))
    }

    fn release_dead(&mut self, _: &ReleaseDead) -> Result<Reply<Shortened>> {
        Err(unavailable("nothing is leased here"))
    }

    fn swap(&mut self, request: &Swap) -> Result<Reply<Swapped>> {
        self.network.lock().expect("no panic").swap(self.server, request)
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let now = Arc::new(AtomicI64::new(START));
        let mut random = Random::new(seed);
        let clock = Arc::clone(&now);
        let namespace = Namespace::for_tickets("tickets").expect("a name");
        let store = MemoryStore::with_clock(namespace, move || clock.load(Relaxed) * SECOND);
        let mut network = Network {
            random: Random::new(seed ^ 0x5eed),
            now: Arc::clone(&now),
            servers: Vec::new(),
            late: Vec::new(),
            last: None,
            outcome: Outcome::default(),
        };
        let replica = random.happens(500).then(|| store.copy(network.clock()));
        network.servers.push(Server {
            store,
            replica,
            has_another: random.happens(500),
            is_linked: true,
            is_fenced: true,
            until: i64::MAX,
        });
        let network = Arc::new(Mutex::new(network));
        let processes = (0..PROCESSES).map(|_| Process::new(0)).collect();
        let (backups, handed_out) = (Vec::new(), BTreeSet::new());
        Self { random, now, network, processes, backups, must_fence: false, handed_out }
    }

    fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().expect("no panic")
    }

    fn connection(&self, server: usize) -> Connection {
        Connection { network: Arc::clone(&self.network), server }
    }

    /// Returns a server to connect to: the master, or one that was the master before.
    fn any_server(&mut self) -> usize {
        let servers = self.network().servers.len();
        if self.random.happens(700) { servers - 1 } else { self.random.index(servers) }
    }

    fn act(&mut self) {
        let process = self.random.index(PROCESSES);
        match self.random.below(100) {
            0..35 => self.draw(process),
            35..75 => self.hand_out(process),
            75..81 => self.end(process),
            81..86 => drop(self.now.fetch_add(self.random.below(4), Relaxed)),
            86..89 => {
                let mut network = self.network.lock().expect("no panic");
                let master = network.servers.last_mut().expect("there is one");
                master.is_linked = !master.is_linked;
            }
            89..91 => {
                let network = self.network();
                let copy = network.servers.last().expect("one").store.copy(network.clock());
                drop(network);
                self.backups.push(copy);
            }
            91..93 => self.fail_over(),
            93 => self.restore(),
            94 => {
                let master = self.network().servers.len() - 1;
                let fence = Fence { token: Token::from_bytes([0xfe; 16]) };
                let _unheard = self.connection(master).fence(&fence);
                self.must_fence = true;
            }
            _ if self.must_fence => self.operate(),
            _ => {}
        }
    }

    fn draw(&mut self, index: usize) {
        let want = self.random.below(7).unsigned_abs();
        let token = self.random_token();
        let mut connection = self.connection(self.processes[index].server);
        let process = &mut self.processes[index];
        if process.blocks.len() > 2 || (want == 0 && process.blocks.is_empty()) {
            return;
        }
        let (before, unused_from, after) = (process.token, process.unused_from(), process.after);
        let asked = Draw { before, token, unused_from, want, after };
        let draw = process.pending.get_or_insert(asked).clone();
        match process.counter.draw(&mut connection, &draw) {
            Ok(Some(block)) => {
                (process.token, process.pending) = (Some(draw.token), None);
                if draw.want > 0 {
                    assert!(block.positions.start >= process.after, "blocks of one process rise");
                    process.after = block.positions.end;
                    process.blocks.push(block);
                }
            }
            // The store has forgotten the process, and somebody has fenced the counter.
            Ok(None) => process.give_up(),
            Err(error) => self.is_refused(&error),
        }
    }

    fn is_refused(&self, error: &Error) {
        let kinds = [ErrorKind::StoreUnavailable, ErrorKind::StoreQuarantined];
        assert!(kinds.contains(&error.kind()), "{error}");
        if error.kind() == ErrorKind::StoreQuarantined {
            self.network().outcome.refused += 1;
        }
    }

    fn hand_out(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let Some(block) = process.blocks.first_mut() else { return };
        let number = block.number(block.positions.start);
        block.positions.start += 1;
        if block.positions.is_empty() {
            process.blocks.remove(0);
        }
        assert!(self.handed_out.insert(number), "{number} was handed out twice");
        assert!(number > process.last, "{number} after {} in one process", process.last);
        process.last = number;
    }

    /// Ends a process, cleanly or not, and starts another one.
    fn end(&mut self, index: usize) {
        self.stop(index);
        let server = self.any_server();
        self.processes[index] = Process::new(server);
    }

    fn stop(&mut self, index: usize) {
        let mut connection = self.connection(self.processes[index].server);
        if self.random.happens(300) {
            return; // killed
        }
        for _ in 0..=self.random.below(2) {
            let process = &mut self.processes[index];
            let pending = process.pending.as_ref().map(|draw| draw.token);
            let tokens: Vec<Token> = process.token.into_iter().chain(pending).collect();
            let unused_from = process.unused_from();
            if let Err(error) = process.counter.give_back(&mut connection, &tokens, unused_from) {
                self.is_refused(&error);
            }
        }
    }

    fn fail_over(&mut self) {
        let lasts = self.random.below(i64::from(LAST_GRANT) + 1);
        let (has_another, has_replica) = (self.random.happens(500), self.random.happens(700));
        let mut network = self.network();
        let (now, clock) = (network.now.load(Relaxed), network.clock());
        let old = network.servers.last_mut().expect("there is one");
        let Some(replica) = old.replica.take() else { return };
        // It continues only with another replica.
        old.until = if old.has_another { now + lasts } else { now };
        let replica_of_it = has_replica.then(|| replica.copy(clock));
        network.servers.push(Server {
            store: replica,
            replica: replica_of_it,
            has_another,
            is_linked: true,
            is_fenced: false,
            until: i64::MAX,
        });
        network.outcome.failovers += 1;
        drop(network);
        self.must_fence = true;
    }

    fn restore(&mut self) {
        if self.backups.is_empty() {
            return;
        }
        let backup = self.random.index(self.backups.len());
        let mut network = self.network.lock().expect("no panic");
        let clock = network.clock();
        network.outcome.restored += 1;
        let master = network.servers.last_mut().expect("there is one");
        master.store = self.backups[backup].copy(clock);
        master.is_fenced = false;
        master.replica = None;
        drop(network);
        self.must_fence = true;
    }

    /// Stops everything that draws, fences, and starts everything.
    fn operate(&mut self) {
        for index in 0..PROCESSES {
            self.stop(index);
        }
        let above = self.handed_out.last().copied().unwrap_or(0);
        let master = self.network().servers.len() - 1;
        self.network().servers[master].is_linked = true;
        let mut connection = self.connection(master);
        let fenced = loop {
            match operator::fence_tickets(&mut connection, COUNTER, above) {
                Ok(fenced) => break fenced,
                Err(error) => {
                    self.is_refused(&error);
                    let wait = error.retry_after().unwrap_or_default();
                    self.now.fetch_add(wait.as_secs().cast_signed(), Relaxed);
                }
            }
        };
        assert!(!fenced.must_be_fenced && fenced.next > Some(above), "{fenced:?} above {above}");
        self.must_fence = false;
        self.network().outcome.fenced += 1;
        for index in 0..PROCESSES {
            let server = self.any_server();
            self.processes[index] = Process::new(server);
        }
    }

    fn random_token(&mut self) -> Token {
        let (one, other) = (self.random.next(), self.random.next());
        let bytes = (u128::from(one) << 64 | u128::from(other)).to_le_bytes();
        Token::from_bytes(bytes)
    }
}

impl Process {
    fn new(server: usize) -> Self {
        let settings = CounterSettings::new(COUNTER, None, None).expect("a name");
        let counter = KnownCounter::new(settings);
        Self { server, counter, after: 0, token: None, pending: None, blocks: Vec::new(), last: 0 }
    }

    /// The first position of its blocks that it has not handed out.
    fn unused_from(&self) -> u64 {
        self.blocks.first().map_or(self.after, |block| block.positions.start)
    }

    fn give_up(&mut self) {
        self.after = self.unused_from();
        (self.token, self.pending) = (None, None);
        self.blocks.clear();
    }
}
