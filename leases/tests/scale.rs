//! The throughput of each store. `make bench-stores` runs this and writes `docs/stores.md`; with
//! `QUICK=1` it takes a few seconds and only prints.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a stopwatch")]
#![allow(clippy::cast_precision_loss, reason = "what is measured is not that precise")]

mod common;
mod servers;

use std::{
    collections::BTreeSet,
    env, fs,
    path::Path,
    process::Command,
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use randflake::{Clock, SystemClock, layout};
use randflake_leases::{
    Acquire, Acquired, EtcdClient, InitMode, LeaseStore, MysqlClient, Namespace, NodeLease,
    NodeRanges, Note, Operation, PostgresClient, RedisClient, Release, Renew, Renewed, Result,
    SqliteStore, Token,
    remote::{Client, Protocol, RemoteStore, Response, Statement},
};

use crate::{
    common::{Dated, Dial, SECOND, Scratch, granted, secret},
    servers::{Server, run},
};

/// The numbers of concurrent clients.
const CLIENTS: [usize; 3] = [1, 16, 64];
/// How many leases each client renews in turn.
const EACH: usize = 4;
/// Seconds of a lease, longer than a measurement.
const TTL: u32 = 3600;
/// The default lease, and how often it is renewed: the load is computed from these.
const USUAL_TTL: u32 = 300;

/// How long to measure, and how much.
struct Extent {
    time: Duration,
    acquires: usize,
    restarts: usize,
    /// Node ids that are held while others are acquired.
    held: u32,
    /// Node ids when everything is held.
    all: u32,
    days: u32,
}

const FULL: Extent = Extent {
    time: Duration::from_secs(2),
    acquires: 10_000,
    restarts: 10_000,
    held: 10_082, // as when prototypes were measured
    all: layout::MAX_NODE_ID + 1,
    days: 30,
};
const QUICK: Extent = Extent {
    time: Duration::from_millis(200),
    acquires: 500,
    restarts: 200,
    held: 1_000,
    all: 2_000,
    days: 1,
};

/// Starts a store if what it needs is installed.
type Start = fn() -> Option<Place>;

/// A kind of store, which waits for its disk.
struct Kind {
    name: &'static str,
    start: Start,
    /// Figures of a prototype: acquires and renewals per second with 1, 16 and 64 clients, and the
    /// restarts.
    prototype: [&'static str; 3],
}

const KINDS: [Kind; 7] = [
    Kind {
        name: "SQLite",
        start: || Some(Place::File(Scratch::new())),
        prototype: ["", "13 800, 6 820, 5 836 (both, at 1, 8, 32 processes)", ""],
    },
    Kind {
        name: "PostgreSQL",
        start: || Server::postgres(&["-c", "fsync=on"]).map(Place::Server),
        prototype: ["1 429, 3 159, 3 104", "2 100, 7 628, 7 021", "10 000: 3.2 s; 38 s"],
    },
    Kind {
        name: "MariaDB",
        start: || Server::mariadb(&[]).map(Place::Server),
        prototype: ["", "2 656 at 8", ""],
    },
    Kind {
        name: "MySQL",
        start: || Server::mysql(&["--sync-binlog=1"]).map(Place::Server),
        prototype: ["", "", ""],
    },
    Kind {
        name: "Redis, fsync each second",
        start: || redis("everysec"),
        prototype: ["12 945 at 1, 46 296 at 50", "57 803 at 50", "10 000: 0.2 s"],
    },
    Kind {
        name: "Redis, fsync always",
        start: || redis("always"),
        prototype: ["5 163 at 1, 26 385 at 50", "36 563 at 50", "10 000: 0.4 s"],
    },
    Kind {
        name: "etcd, one member",
        start: || etcd(&[]),
        prototype: ["1 610, 4 686, 7 478", "8 286 at 64", "10 000: 1.3 to 2.1 s"],
    },
];

/// The same stores without waiting for the disk: how much they write does not depend on that.
const WITHOUT_SYNC: [(&str, Start); 6] = [
    ("SQLite", || Some(Place::File(Scratch::in_memory()))),
    ("PostgreSQL", || Server::postgres(&[]).map(Place::Server)),
    ("MariaDB", || Server::mariadb(&["--innodb-flush-log-at-trx-commit=0"]).map(Place::Server)),
    ("MySQL", || {
        let sync = ["--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0"];
        Server::mysql(&sync).map(Place::Server)
    }),
    ("Redis", || redis("no")),
    ("etcd, one member", || etcd(&["--unsafe-no-fsync"])),
];

fn redis(appendfsync: &str) -> Option<Place> {
    Server::redis(&["--appendonly", "yes", "--save", "", "--appendfsync", appendfsync])
        .map(Place::Server)
}

fn etcd(more: &[&str]) -> Option<Place> {
    let compacting = ["--auto-compaction-mode=periodic", "--auto-compaction-retention=5s"];
    Server::etcd_with(&[&compacting, more].concat()).map(Place::Server)
}

/// The store to measure.
enum Place {
    File(Scratch),
    Server(Server),
}

/// Returns a client of a server, and its protocol.
fn connection(url: &str, namespace: Namespace, dial: Option<&Dial>) -> (Box<dyn Client>, Protocol) {
    let patience = Duration::from_secs(60);
    match url.split(':').next() {
        Some("postgresql") => {
            let client = PostgresClient::new(url).expect("a URL").timeout(patience);
            (Box::new(client), Protocol::postgres(namespace))
        }
        Some("mysql") => {
            let client = MysqlClient::new(url).expect("a URL").timeout(patience);
            // One variant of MySQL here does not wait for its disk.
            (Box::new(client), Protocol::mysql(namespace).allow_weak_store(true))
        }
        Some("redis") => {
            let client = RedisClient::new(url).expect("a URL").timeout(patience);
            (Box::new(client), Protocol::redis(namespace))
        }
        _ => {
            let client = EtcdClient::new(url).expect("a URL").timeout(patience);
            let client: Box<dyn Client> = match dial {
                Some(dial) => Box::new(Dated(client, dial.clone())),
                None => Box::new(client),
            };
            (client, Protocol::etcd(namespace))
        }
    }
}

impl Place {
    /// Returns a client that is already connected.
    fn client(&self, namespace: &Namespace, dial: Option<&Dial>) -> Box<dyn LeaseStore> {
        let clock = dial.cloned();
        let clock = move || {
            clock
                .as_ref()
                .map_or_else(|| SystemClock.now().expect("a clock"), |it| it.now() * SECOND)
        };
        let (namespace, patience) = (namespace.clone(), Duration::from_secs(60));
        let url = match self {
            Self::File(scratch) => {
                let store = SqliteStore::new(scratch.path("ids.db"), namespace).expect("a path");
                return Box::new(store.clock(clock).patience(patience));
            }
            Self::Server(server) => server.url(),
        };
        let (client, protocol) = connection(&url, namespace, dial);
        let mut store = RemoteStore::new(client, protocol).clock(clock);
        store.init(InitMode::New).expect("it is there, or may be made");
        Box::new(store)
    }

    /// Returns a client that counts its statements from when it is connected.
    fn counting(&self, namespace: &Namespace, count: &Arc<AtomicUsize>) -> Box<dyn LeaseStore> {
        let Self::Server(server) = self else { unreachable!("a file has none") };
        let (client, protocol) = connection(&server.url(), namespace.clone(), None);
        let mut store = RemoteStore::new(Counting(client, Arc::clone(count)), protocol);
        store.init(InitMode::New).expect("it is there");
        Box::new(store)
    }

    /// Returns its size as text.
    fn size(&self) -> String {
        let server = match self {
            Self::File(scratch) => {
                return format!("file {}", bytes(length(&scratch.path("ids.db"))));
            }
            Self::Server(server) => server,
        };
        match server.url().split(':').next() {
            Some("postgresql") => {
                thread::sleep(Duration::from_secs(2)); // until sessions have reported their numbers
                let sizes = "select pg_relation_size('randflake_leases.entry'), \
                             pg_indexes_size('randflake_leases.entry')";
                let updates = "select n_dead_tup, n_tup_upd - n_tup_hot_upd \
                               from pg_stat_user_tables where relid = 'randflake_leases.entry'::regclass";
                let numbers = [sizes, updates].map(|sql| server.psql(sql)).join("|");
                let numbers: Vec<u64> =
                    numbers.split('|').map(|it| it.trim().parse().expect("a number")).collect();
                let [table, index, dead, cold] = numbers[..] else { panic!("{numbers:?}") };
                format!(
                    "table {}, index {}, {dead} dead rows, {cold} updates wrote the index",
                    bytes(table),
                    bytes(index)
                )
            }
            Some("mysql") => {
                let table = length(&server.path("data/ids/randflake_entry.ibd"));
                format!("table {}", bytes(table))
            }
            Some("redis") => {
                let info = server.redis_cli(&["info", "memory"]);
                let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
                let used = used.and_then(|it| it.trim().parse().ok()).expect("Redis says so");
                let log = length(&server.path("appendonlydir"));
                format!("memory {}, append-only file {}", bytes(used), bytes(log))
            }
            _ => format!("database {}", bytes(length(&server.path("data/member/snap/db")))),
        }
    }
}

/// Returns the bytes of a file, or of all files of a directory.
fn length(path: &Path) -> u64 {
    let metadata = fs::metadata(path).expect("it is there");
    if metadata.is_file() {
        return metadata.len();
    }
    let entries = fs::read_dir(path).expect("a directory");
    entries.map(|entry| length(&entry.expect("an entry").path())).sum()
}

fn bytes(bytes: u64) -> String {
    if bytes < 1 << 20 {
        format!("{} KiB", bytes.div_ceil(1 << 10))
    } else {
        format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
    }
}

/// Writes a number with spaces between thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1000.0)
}

fn now(dial: Option<&Dial>) -> i64 {
    dial.map_or_else(|| SystemClock.now().expect("a clock") / SECOND, Dial::now)
}

fn namespace(name: &str) -> Namespace {
    Namespace::new(name, &secret())
        .and_then(|namespace| namespace.max_ttl(TTL)?.max_skew(TTL / 6))
        .expect("within the limits")
}

fn acquired(
    store: &mut dyn LeaseStore,
    token: Token,
    want: u32,
    dial: Option<&Dial>,
) -> Vec<NodeLease> {
    let note = Note::of_process();
    let request = Acquire { token, want, ttl: TTL, client_now: now(dial), note };
    let reply = store.acquire(&request).expect("the store answers");
    match reply.answer_to(token, Operation::Acquire) {
        Ok(Acquired::Granted { leases, .. }) => leases,
        other => panic!("node ids are free, yet: {other:?}"),
    }
}

fn node_ids(leases: &[NodeLease]) -> Vec<u32> {
    leases.iter().map(|lease| lease.node_id).collect()
}

fn renew(store: &mut dyn LeaseStore, token: Token, node_ids: &[u32], dial: Option<&Dial>) {
    let node_ids = node_ids.to_vec();
    let request = Renew { token, node_ids, ttl: TTL, client_now: now(dial), next: None };
    let outcome = store.renew(&request).expect("the store answers").outcome;
    assert!(matches!(outcome, Renewed::Extended { .. }), "{outcome:?}");
}

/// What concurrent clients did.
struct Measured {
    took: Duration,
    /// Sorted.
    latencies: Vec<Duration>,
}

impl Measured {
    fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.took.as_secs_f64()
    }

    fn percentile(&self, percent: usize) -> Duration {
        self.latencies[(self.latencies.len() - 1) * percent / 100]
    }
}

/// Makes prepared clients repeat something, for some time or for a number of repetitions.
fn measure<T>(
    clients: usize,
    time: Duration,
    times: usize,
    prepare: impl Fn() -> T + Sync,
    operation: impl Fn(&mut T) + Sync,
) -> Measured {
    let (ready, left) = (Barrier::new(clients), AtomicUsize::new(times));
    let client = || {
        let mut state = prepare();
        ready.wait();
        let (began, mut latencies) = (Instant::now(), Vec::new());
        while began.elapsed() < time
            && left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |it| it.checked_sub(1))
                .is_ok()
        {
            let before = Instant::now();
            operation(&mut state);
            latencies.push(before.elapsed());
        }
        (began.elapsed(), latencies)
    };
    let done: Vec<(Duration, Vec<Duration>)> = thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        clients.into_iter().map(|client| client.join().expect("it goes well")).collect()
    });
    let took = done.iter().map(|(took, _)| *took).max().expect("at least one");
    let mut latencies: Vec<Duration> = done.into_iter().flat_map(|(_, it)| it).collect();
    latencies.sort_unstable();
    Measured { took, latencies }
}

fn measure_acquires(place: &Place, clients: usize, extent: &Extent) -> Measured {
    let namespace = namespace(&format!("acquires of {clients}"));
    acquired(&mut *place.client(&namespace, None), Token::random(), extent.held, None);
    measure(
        clients,
        extent.time,
        extent.acquires,
        || place.client(&namespace, None),
        |store| drop(acquired(&mut **store, Token::random(), 1, None)),
    )
}

/// Each client renews its own leases, in turn.
fn measure_renewals(
    place: &Place,
    namespace: &Namespace,
    clients: usize,
    extent: &Extent,
    fill: impl Fn() + Sync,
) -> Measured {
    let all = Barrier::new(clients);
    // A renewal within the same second has nothing to write, and SQLite then writes nothing.
    let dial = matches!(place, Place::File(_)).then(|| Dial::new(now(None)));
    let dial = dial.as_ref();
    let prepare = || {
        let mut store = place.client(namespace, dial);
        let mut lease = || {
            let token = Token::random();
            (token, node_ids(&acquired(&mut *store, token, 1, dial)))
        };
        let leases: Vec<(Token, Vec<u32>)> = (0..EACH).map(|_| lease()).collect();
        if all.wait().is_leader() {
            fill();
        }
        (store, leases.into_iter().cycle())
    };
    measure(clients, extent.time, usize::MAX, prepare, |(store, leases)| {
        let (token, node_ids) = leases.next().expect("without end");
        dial.inspect(|dial| dial.pass(1));
        renew(&mut **store, token, &node_ids, dial);
    })
}

/// Leases the rest of this many node ids.
fn fill(place: &Place, namespace: &Namespace, all: u32) {
    let mut store = place.client(namespace, None);
    let mut left = all - u32::try_from(CLIENTS[2] * EACH).expect("a few");
    while left > 0 {
        let want = left.min(16_384);
        let leases = acquired(&mut *store, Token::random(), want, None);
        left -= u32::try_from(leases.len()).expect("no more than wanted");
    }
}

/// Twenty holders that are replaced ten times a day and renew every hundred seconds meanwhile. The
/// twenty holders of a deployment are one lease of twenty node ids: the same rows are written, but
/// faster.
fn live(place: &Place, days: u32) {
    let dial = Dial::new(now(None));
    // The other stores have their own clock, which cannot be sped up.
    let own_clock = matches!(place, Place::Server(server) if !server.url().starts_with("etcd"));
    let dial = (!own_clock).then_some(&dial);
    let mut store = place.client(&namespace("month"), dial);
    for _ in 0..days * 10 {
        let token = Token::random();
        let node_ids = node_ids(&acquired(&mut *store, token, 20, dial));
        for _ in 0..86_400 / 10 / (USUAL_TTL / 3) {
            if let Some(dial) = dial {
                dial.pass(USUAL_TTL / 3);
            }
            renew(&mut *store, token, &node_ids, dial);
        }
        let release = Release { token, node_ids, used_until: now(dial) };
        drop(store.release(&release).expect("the store answers"));
    }
}

/// Runs one part, and reports how long it took.
#[allow(clippy::print_stdout, reason = "what was measured")]
fn timed<T>(store: &str, part: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let outcome = work();
    println!("{store}: {part} took {:.1} s", began.elapsed().as_secs_f64());
    outcome
}

/// Leases a node id for each of many clients, all at once: over existing connections, and each over
/// a new one.
fn restarts(name: &str, place: &Place, extent: &Extent) -> String {
    let forever = Duration::MAX;
    let (open, own) = (namespace("open"), namespace("own"));
    // All are on one machine, and each operation opens the file.
    let is_file = matches!(place, Place::File(_));
    let times = if is_file { extent.restarts / 10 } else { extent.restarts };
    let start = |store: &mut dyn LeaseStore, started: &Mutex<BTreeSet<u32>>| {
        let node_ids = node_ids(&acquired(store, Token::random(), 1, None));
        started.lock().expect("no thread panicked").extend(node_ids);
    };
    let count = |started: Mutex<BTreeSet<u32>>| started.into_inner().expect("as above").len();
    let started = Mutex::default();
    let by_open = timed(name, "restarting, connections open", || {
        let client = || place.client(&open, None);
        measure(CLIENTS[2], forever, times, client, |store| start(&mut **store, &started))
    });
    assert_eq!(count(started), times, "each has a node id of its own");
    let by_open = format!("{}: {:.1} s", grouped(times as f64), by_open.took.as_secs_f64());
    if is_file {
        return by_open;
    }
    let started = Mutex::default();
    let by_own = timed(name, "restarting, each with a connection of its own", || {
        let client = || start(&mut *place.client(&own, None), &started);
        measure(CLIENTS[2], forever, times, || (), |()| client())
    });
    assert_eq!(count(started), times, "each has a node id of its own");
    format!("{by_open}; {:.1} s", by_own.took.as_secs_f64())
}

/// The table rows for one kind of store: operations, and all node ids at once.
fn lines(kind: &Kind, extent: &Extent) -> Option<[String; 2]> {
    let place = (kind.start)()?;
    let Kind { name, prototype, .. } = kind;
    let rates = |measured: &[Measured; 3]| {
        measured.each_ref().map(|it| grouped(it.per_second())).join(", ")
    };
    let acquires = timed(name, "acquiring", || {
        CLIENTS.map(|clients| measure_acquires(&place, clients, extent))
    });
    let renewals = timed(name, "renewing", || {
        let namespace = namespace("renewals");
        CLIENTS.map(|clients| measure_renewals(&place, &namespace, clients, extent, || ()))
    });
    let latencies = [&renewals[0], &renewals[2]].map(|it| {
        format!("{} / {}", milliseconds(it.percentile(50)), milliseconds(it.percentile(99)))
    });

    let restarts = restarts(name, &place, extent);
    let [acquires, renewals] = [rates(&acquires), rates(&renewals)];
    let operations = format!(
        "| {name} | {acquires} | {renewals} | {} | {} | {restarts} |\n\
         | *its prototype* | {} | {} | | | {} |\n",
        latencies[0], latencies[1], prototype[0], prototype[1], prototype[2]
    );

    let full = namespace("full");
    let all = timed(name, "leasing and renewing all node ids", || {
        measure_renewals(&place, &full, CLIENTS[2], extent, || fill(&place, &full, extent.all))
    });
    let seconds = f64::from(layout::MAX_NODE_ID + 1) / all.per_second();
    let share = seconds / f64::from(USUAL_TTL / 3) * 100.0;
    let all = format!(
        "| {name} | {} | {seconds:.1} s | {share:.0} % | {} |\n",
        grouped(all.per_second()),
        place.size()
    );
    Some([operations, all])
}

/// The row of the table for a month.
fn month(name: &str, place: &Place, days: u32) -> String {
    let first = days.min(1);
    live(place, first);
    let day = place.size();
    live(place, days - first);
    format!("| {name} | {day} | {} |\n", place.size())
}

/// Names the machine and the servers.
fn machine(load: &str) -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpu.lines().find(|line| line.split('\t').next() == Some(name));
        line.and_then(|line| line.split(": ").nth(1)).unwrap_or("?").to_owned()
    };
    let word = |program: &str, arguments: &[&str]| {
        run(Command::new(program).args(arguments)).lines().next().unwrap_or("?").to_owned()
    };
    format!(
        "Processor: {}, family {} model {}, {} processors; system: Linux {}; {}; {}; {}; {}; {}; SQLite {}; \
         {}; load average at the start: {load}. Clients and servers share the processors; the \
         files are in the system's temporary directory.",
        field("model name"),
        field("cpu family"),
        field("model"),
        thread::available_parallelism().map_or(0, usize::from),
        word("uname", &["-r"]),
        servers::version_of_postgres(),
        word("mariadbd", &["--version"]),
        Server::mysql(&[]).map_or("no MySQL".to_owned(), |server| {
            format!("MySQL {}", server.mysql_cli("select version()"))
        }),
        word("redis-server", &["--version"]).split(" sha").next().unwrap_or("?"),
        word("etcd", &["--version"]),
        rusqlite::version(),
        word("date", &["+%F"]),
    )
}

fn report(operations: &str, all: &str, months: &str, load: &str) -> String {
    format!(
        "# Stores\n\n\
         <!-- Written by `make bench-stores`; do not edit. -->\n\n\
         {}\n\n\
         ## Operations\n\n\
         With {} node ids held. Each client is a thread with a connection of its own; for SQLite the \
         clients are threads of one process, which take turns, and restarts are fewer: they are \
         those of one machine. An operation is one round trip, two for a lease or a renewal in etcd, \
         as a test asserts (`leases/tests/remote.rs`).\n\n\
         The figures of each *prototype* are of 2026-11-20, from a machine with 2 processors, which \
         clients and servers shared, and a disk that took about 0.8 ms to sync, with PostgreSQL \
         15.18, Redis 7.0.15 and etcd 3.4.23. It ran earlier forms of the statements; that of SQLite \
         kept a write-ahead log.\n\n\
         | store | acquires a second at 1, 16, 64 clients | renewals a second at 1, 16, 64 clients \
         | renewal at 1 client, ms: median / p99 | at 64 clients | restarts at once: connections \
         open; each opens one |\n\
         | --- | --- | --- | --- | --- | --- |\n{operations}\n\
         ## All node ids at once\n\n\
         All 131 072 node ids are leased and renewed every 100 s, a third of a ttl of 300 s: 1 311 \
         renewals a second. The share is what of those 100 s the store is busy, with 64 clients.\n\n\
         | store | renewals a second it can do | time for all of them | share | size then |\n\
         | --- | ---: | ---: | ---: | --- |\n{all}\n\
         ## A month\n\n\
         Twenty node ids whose holders are replaced ten times a day and renew every 100 s: in 30 \
         days 516 000 renewals, 6 000 leases and as many releases, here twenty with a request. This \
         is about growth, not speed, so nothing waits for a disk: SQLite's file is in memory, and \
         the servers do not sync. The requests follow each other without a pause, which \
         is the worst case: PostgreSQL has little time for autovacuum, and etcd, which keeps 5 s \
         of history (`--auto-compaction-retention`), keeps days of it.\n\n\
         | store | after a day | after a month |\n\
         | --- | --- | --- |\n{months}",
        machine(load),
        grouped(FULL.held.into()),
    )
}

/// Counts the statements that it runs.
struct Counting(Box<dyn Client>, Arc<AtomicUsize>);

impl Client for Counting {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.run(statement)
    }

    fn discard(&mut self) {
        self.0.discard();
    }
}

/// A thousand processes start at once, for 1 024 node ids.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout, reason = "what was measured")]
fn a_thousand_at_once_for_the_last_node_ids() {
    const PROCESSES: usize = 1000;
    let starts: [(&str, Start); 4] = [
        ("PostgreSQL", || Server::postgres(&["-c", "max_connections=1100"]).map(Place::Server)),
        ("MariaDB", || Server::mariadb(&["--max-connections=1100"]).map(Place::Server)),
        ("Redis", || redis("everysec")),
        ("etcd", || etcd(&[])),
    ];
    for (name, start) in starts {
        let Some(place) = start() else { continue };
        let namespace = Namespace::new("rush", &secret())
            .and_then(|namespace| namespace.node_ids(NodeRanges::up_to(1023)))
            .expect("within the limits");
        drop(place.client(&namespace, None));
        let together = Barrier::new(PROCESSES);
        let outcomes: Vec<(u32, usize, Duration)> = thread::scope(|scope| {
            let process = || {
                let statements = Arc::new(AtomicUsize::new(0));
                let mut store = place.counting(&namespace, &statements);
                together.wait();
                statements.store(0, Ordering::Relaxed);
                let began = Instant::now();
                let now = SystemClock.now().expect("a clock") / SECOND;
                let lease = granted(&mut *store, Token::random(), now);
                (lease.node_id, statements.load(Ordering::Relaxed), began.elapsed())
            };
            let processes: Vec<_> = (0..PROCESSES).map(|_| scope.spawn(process)).collect();
            processes.into_iter().map(|it| it.join().expect("it goes well")).collect()
        });
        let distinct: BTreeSet<u32> = outcomes.iter().map(|(node_id, ..)| *node_id).collect();
        assert_eq!(distinct.len(), PROCESSES);
        let statements: Vec<usize> =
            outcomes.iter().map(|(_, statements, _)| *statements).collect();
        let longest = outcomes.iter().map(|(.., took)| *took).max().expect("a thousand");
        println!(
            "{name}: {PROCESSES} processes have a node id of 1024 each in {:.2} s, with {} statements \
             at most and {:.2} on average",
            longest.as_secs_f64(),
            statements.iter().max().expect("a thousand"),
            statements.iter().sum::<usize>() as f64 / PROCESSES as f64,
        );
    }
}

#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout, reason = "what was measured")]
fn throughput_of_stores() {
    let quick = env::var_os("QUICK").is_some_and(|it| !it.is_empty());
    let extent = if quick { QUICK } else { FULL };
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    let began = Instant::now();
    let [mut operations, mut all] = [const { String::new() }; 2];
    for kind in &KINDS {
        if let Some([of_operations, of_all]) = lines(kind, &extent) {
            operations += &of_operations;
            all += &of_all;
        }
    }
    // All at once: speed is not measured here.
    let part = format!("{} days", extent.days);
    let months: String = thread::scope(|scope| {
        let a_month = |(name, start): (_, Start)| {
            let place = start()?;
            Some(timed(name, &part, || month(name, &place, extent.days)))
        };
        let months = WITHOUT_SYNC.map(|kind| scope.spawn(move || a_month(kind)));
        months.into_iter().filter_map(|month| month.join().expect("it goes well")).collect()
    });
    println!("all of it took {:.0} s", began.elapsed().as_secs_f64());
    let report = report(&operations, &all, &months, &load);
    println!("{report}");
    if quick {
        println!("A first look: it was less of everything than this says.");
    } else {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/stores.md");
        fs::write(path, report).expect("the report can be written");
    }
}
