//! The stores with a server when something breaks: servers are stopped, killed, emptied, restored
//! and promoted, connections are closed and shared.

#![cfg(target_os = "linux")]

mod common;
mod servers;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashSet},
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use common::{
    Dated, Dial, SECOND, START, acquire, assert_disjoint, granted, release, renew, secret,
};
use randflake::{Clock, SystemClock, layout};
use randflake_leases::{
    Acquired, Change, Error, ErrorKind, EtcdClient, Fence, InitMode, LeaseStore, Leased, Location,
    MysqlClient, Namespace, NodeLease, NodeRanges, Operation, PostgresClient, RedisClient, Renewed,
    Result, Swap, Swapped, Token,
    operator::{self, ReleaseDead, Repair, Target},
    remote::{Address, Client, Protocol, RemoteStore, Response, Statement},
};
use randflake_tickets::Tickets;
use servers::{
    PASSWORD, Server,
    proxy::{DROP, HOLD, PASS, Proxy, REPEAT, SILENCE, SOON, SWAP},
};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--save", ""];

fn now() -> i64 {
    SystemClock.now().expect("a clock") / SECOND
}

fn namespace(max_node_id: u32) -> Namespace {
    Namespace::new("orders", &secret())
        .and_then(|namespace| {
            namespace.max_skew(10)?.max_ttl(60)?.node_ids(NodeRanges::up_to(max_node_id))
        })
        .expect("within the limits")
}

/// Creates another namespace.
fn made(server: &Server, name: &str, max_skew: u32, ttl: u32, max_node_id: u32) -> Namespace {
    let namespace = Namespace::new(name, &secret())
        .and_then(|namespace| {
            namespace.max_skew(max_skew)?.max_ttl(ttl)?.node_ids(NodeRanges::up_to(max_node_id))
        })
        .expect("within the limits");
    let mut store = remote(&server.url(), namespace.clone(), PATIENCE);
    store.init(InitMode::New).expect("it is empty");
    namespace
}

/// Returns a store of any kind, with this limit for each answer.
fn remote(url: &str, namespace: Namespace, timeout: Duration) -> RemoteStore<Box<dyn Client>> {
    let (client, protocol): (Box<dyn Client>, _) = match url.split_once(':').expect("a scheme").0 {
        "postgresql" => {
            let client = PostgresClient::new(url).expect("a URL").timeout(timeout);
            let protocol = Protocol::postgres(namespace).create(true).expect("may be made");
            (Box::new(client), protocol)
        }
        "redis" => {
            let client = RedisClient::new(url).expect("a URL").timeout(timeout);
            (Box::new(client), Protocol::redis(namespace))
        }
        _ => {
            let client = EtcdClient::new(url).expect("a URL").timeout(timeout);
            let protocol = Protocol::etcd(namespace).create(true).expect("may be made");
            (Box::new(client), protocol)
        }
    };
    RemoteStore::new(client, protocol)
}

fn postgres(url: &str) -> RemoteStore<PostgresClient> {
    let client = PostgresClient::new(url).expect("a URL").timeout(PATIENCE);
    let protocol = Protocol::postgres(namespace(9)).create(true).expect("may be made");
    RemoteStore::new(client, protocol)
}

/// Returns a store on a namespace that exists.
fn redis(url: &str) -> RemoteStore<RedisClient> {
    let client = RedisClient::new(url).expect("a URL").timeout(PATIENCE);
    RemoteStore::new(client, Protocol::redis(namespace(9)))
}

fn new_redis(url: &str) -> RemoteStore<RedisClient> {
    let mut store = redis(url);
    store.init(InitMode::New).expect("it is empty");
    store
}

fn etcd(url: &str) -> RemoteStore<EtcdClient> {
    let client = EtcdClient::new(url).expect("a URL").timeout(PATIENCE);
    let protocol = Protocol::etcd(namespace(9)).create(true).expect("may be made");
    RemoteStore::new(client, protocol)
}

#[track_caller]
fn fails<T: std::fmt::Debug>(outcome: Result<T>, kind: ErrorKind) -> Error {
    let error = outcome.expect_err("this cannot go well");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(!error.to_string().contains(PASSWORD), "{error}");
    error
}

#[track_caller]
fn extended(outcome: Result<Renewed>, lease: NodeLease) -> NodeLease {
    match outcome {
        Ok(Renewed::Extended { leases, .. }) => {
            assert_eq!((leases[0].node_id, leases[0].start), (lease.node_id, lease.start));
            leases[0]
        }
        other => panic!("the lease is the token's, yet: {other:?}"),
    }
}

/// Checks that the store grants nothing before a forgotten lease has ended.
#[track_caller]
fn is_quarantined(store: &mut dyn LeaseStore, forgotten: NodeLease) {
    let outcome = acquire(store, Token::random(), 1, now());
    let Ok(Acquired::Quarantined { until, .. }) = outcome else {
        panic!("it may have forgotten leases, yet: {outcome:?}");
    };
    assert!(until >= forgotten.end_exclusive, "{until}: {forgotten:?}");
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..6000 {
        if condition() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("never: {what}");
}

/// Calls the test for each store, with its server, a function that makes a client, and whether a
/// restart of the server puts it into quarantine.
fn on_each(test: impl Fn(&mut Server, &dyn Fn(&str) -> Box<dyn LeaseStore>, bool) + Sync) {
    thread::scope(|scope| {
        scope.spawn(|| {
            if let Some(mut server) = Server::postgres(&[]) {
                test(&mut server, &|url| Box::new(postgres(url)), false);
            }
        });
        scope.spawn(|| {
            if let Some(mut server) = Server::redis(&DURABLE) {
                new_redis(&server.url());
                test(&mut server, &|url| Box::new(redis(url)), true);
            }
        });
        scope.spawn(|| {
            if let Some(mut server) = Server::etcd() {
                test(&mut server, &|url| Box::new(etcd(url)), false);
            }
        });
    });
}

#[test]
fn a_server_that_stops_or_dies_has_forgotten_nothing() {
    on_each(|server, _, fences| {
        let mut store = remote(&server.url(), namespace(9), PATIENCE);
        let token = Token::random();
        let lease = granted(&mut store, token, now());
        for end in [Server::stop, Server::kill] {
            end(server);
            let error = renew(&mut store, token, lease.node_id, now());
            fails(error, ErrorKind::StoreUnavailable);
            server.start();
            extended(renew(&mut store, token, lease.node_id, now()), lease);
            // Redis may have lost any of its latest writes.
            if fences {
                is_quarantined(&mut store, lease);
            } else {
                let other = granted(&mut store, Token::random(), now());
                assert_ne!(other.node_id, lease.node_id);
            }
        }
    });
}

/// A renewal that waits for its row is written after a change that it does not know about.
#[test]
fn what_was_under_way_ends_before_a_node_id_is_nobodys() {
    let Some(server) = Server::postgres(&[]) else { return };
    let (mut store, token) = (postgres(&server.url()), Token::random());
    let lease = granted(&mut store, token, now());
    let before = now();
    eventually("the end of another renewal is another one", || now() > before + 1);
    let is_waiting = |event: &str| {
        let sql =
            format!("select count(*) from pg_stat_activity where wait_event_type = '{event}'");
        server.psql(&sql).trim() != "0"
    };
    let (renewed, listed) = thread::scope(|scope| {
        scope.spawn(|| {
            server.psql(
                "begin; select 1 from randflake_leases.entry where key like 'node/%' for update; \
                 select pg_sleep(5); rollback",
            )
        });
        eventually("the row is locked", || is_waiting("Timeout"));
        let renewal = scope.spawn(|| renew(&mut store, token, lease.node_id, now()));
        eventually("the renewal waits or is done", || is_waiting("Lock") || renewal.is_finished());
        let mut operator = postgres(&server.url());
        let kept = (lease.node_id + 1) % 10;
        let listed = operator::set_node_ids(&mut operator, kept.to_string().parse().expect("one"));
        (renewal.join().expect("no panic"), listed.expect("the server answers"))
    });
    if let Ok(Renewed::Extended { leases, .. }) = renewed {
        let end = leases[0].end_exclusive;
        assert!(end <= listed.unleased_from(), "{leases:?}, {listed:?}");
    }
    let renewed = renew(&mut store, token, lease.node_id, now());
    assert!(matches!(renewed, Ok(Renewed::Lost { .. })), "{renewed:?}");
}

#[test]
fn what_postgres_grants_is_on_the_disk_whatever_the_session_wants() {
    let lazy = ["-c", "synchronous_commit=off", "-c", "wal_writer_delay=10s"];
    let Some(mut server) = Server::postgres(&lazy) else { return };
    assert_eq!(server.psql("show synchronous_commit").trim(), "off");
    let mut store = postgres(&server.url());
    for _ in 0..2 {
        let token = Token::random();
        let lease = granted(&mut store, token, now());
        server.kill();
        server.start();
        extended(renew(&mut store, token, lease.node_id, now()), lease);
    }
}

#[test]
fn postgres_is_asked_again_where_it_wants_to_be() {
    let strict = ["-c", "default_transaction_isolation=serializable"];
    let Some(server) = Server::postgres(&strict) else { return };
    granted(&mut postgres(&server.url()), Token::random(), now());
    let client = || {
        let mut store = postgres(&server.url());
        let mut stamped = Vec::new();
        for _ in 0..20 {
            let token = Token::random();
            // An acquire first reads eight of the ten node ids, of which at most six are taken.
            match acquire(&mut store, token, 1, now()).expect("no failure reaches the caller") {
                Acquired::Granted { leases, .. } => {
                    let lease = leases[0];
                    release(&mut store, token, lease.node_id, lease.start + 1).expect("as above");
                    stamped.push(NodeLease { end_exclusive: lease.start + 1, ..lease });
                }
                other => assert!(matches!(other, Acquired::Busy { .. }), "{other:?}"),
            }
        }
        stamped
    };
    let stamped: Vec<NodeLease> = thread::scope(|scope| {
        let clients = [(); 6].map(|()| scope.spawn(client));
        clients.into_iter().flat_map(|client| client.join().expect("it goes well")).collect()
    });
    assert!(stamped.len() > 20, "{}", stamped.len());
    assert_disjoint(stamped);
}

#[test]
fn an_emptied_redis_grants_nothing() {
    type Empty = fn(&mut Server);
    let ways: [(&str, Empty); 2] = [
        ("FLUSHALL", |server| assert_eq!(server.redis_cli(&["flushall"]), "OK")),
        ("started without its data", |server| {
            server.kill();
            fs::remove_dir_all(server.path("appendonlydir")).expect("it is there");
            server.start();
        }),
    ];
    for (way, empty) in ways {
        let Some(mut server) = Server::redis(&DURABLE) else { return };
        let mut holder = new_redis(&server.url());
        let token = Token::random();
        let lease = granted(&mut holder, token, now());
        empty(&mut server);
        let error = fails(
            acquire(&mut redis(&server.url()), Token::random(), 1, now()),
            ErrorKind::StoreNotInitialized,
        );
        assert!(error.to_string().contains("quarantine"), "{way}: {error}");
        let gone = renew(&mut holder, token, lease.node_id, now());
        fails(gone, ErrorKind::StoreReplaced);

        let mut fresh = redis(&server.url());
        fresh.init(InitMode::Quarantine).expect("it is empty");
        is_quarantined(&mut fresh, lease);
        let gone = acquire(&mut holder, Token::random(), 1, now());
        fails(gone, ErrorKind::StoreReplaced);
    }
}

#[test]
fn tables_that_are_dropped_are_missed() {
    let Some(server) = Server::postgres(&[]) else { return };
    let mut holder = postgres(&server.url());
    let token = Token::random();
    let lease = granted(&mut holder, token, now());
    server.psql("drop table randflake_leases.entry");
    for _ in 0..2 {
        let gone = renew(&mut holder, token, lease.node_id, now());
        fails(gone, ErrorKind::StoreReplaced);
    }
    let client = PostgresClient::new(&server.url()).expect("a URL").timeout(PATIENCE);
    let mut careful = RemoteStore::new(client, Protocol::postgres(namespace(9)));
    let missing = acquire(&mut careful, Token::random(), 1, now());
    fails(missing, ErrorKind::StoreNotInitialized);
    careful.init(InitMode::Quarantine).expect("may be made");
    is_quarantined(&mut careful, lease);
    fails(renew(&mut holder, token, lease.node_id, now()), ErrorKind::StoreReplaced);
    holder.accept_another();
    is_quarantined(&mut holder, lease);
    // A namespace that it creates itself is in quarantine, too.
    server.psql("drop table randflake_leases.entry");
    fails(renew(&mut holder, token, lease.node_id, now()), ErrorKind::StoreReplaced);
    holder.accept_another();
    is_quarantined(&mut holder, lease);
}

#[test]
fn a_generator_survives_that_its_redis_is_emptied() {
    let Some(server) = Server::redis(&DURABLE) else { return };
    let make = || {
        let namespace = Namespace::new("emptied", &secret())
            .and_then(|namespace| namespace.max_skew(0))
            .expect("within the limits");
        let client = RedisClient::new(&server.url()).expect("a URL").timeout(PATIENCE);
        RemoteStore::new(client, Protocol::redis(namespace)).init(InitMode::New)
    };
    make().expect("it is empty");
    let flake = Leased::builder(server.url(), &secret()).namespace("emptied").ttl(6).max_skew(0);
    let flake = flake.acquire_timeout(PATIENCE).open().expect("a lease");
    server.redis_cli(&["flushall"]);
    eventually("it is noticed", || {
        let last_error = flake.lease().and_then(|lease| lease.last_error);
        last_error.is_some_and(|error| error.kind() == ErrorKind::StoreReplaced)
    });
    // It may have been renewed before, but can no longer be.
    let first = flake.lease().expect("open");
    make().expect("no other lease is running");
    eventually("it leases again", || {
        let lease = flake.lease().expect("open");
        let is_another = lease.end_exclusive > first.end_exclusive;
        assert!(!is_another || lease.start >= first.end_exclusive, "{lease:?} after {first:?}");
        is_another && flake.generate().is_ok()
    });
}

#[test]
fn a_redis_replica_that_missed_a_grant_keeps_everybody_out() {
    let Some(mut master) = Server::redis_with_replicas() else { return };
    let replica = master.replica(master.port);
    let mut store = new_redis(&master.url());
    let (survives, forgotten) = (Token::random(), Token::random());
    let survivor = granted(&mut store, survives, now());

    replica.signal("STOP");
    master.redis_cli(&["client", "kill", "type", "replica"]);
    master.redis_cli(&["config", "set", "min-replicas-to-write", "0"]);
    let lost = granted(&mut store, forgotten, now());
    master.kill();
    replica.signal("CONT");
    replica.redis_cli(&["replicaof", "no", "one"]);

    let mut store = redis(&replica.url());
    is_quarantined(&mut store, lost);
    let renewed = renew(&mut store, forgotten, lost.node_id, now());
    assert!(matches!(renewed, Ok(Renewed::Lost { .. })), "it was to be lost: {renewed:?}");
    extended(renew(&mut store, survives, survivor.node_id, now()), survivor);
}

/// A namespace with one node id and leases of 12 seconds, on a Redis and its replica.
fn one_node_id(
    server: &Server,
    replica: &Server,
) -> impl Fn(u16) -> RemoteStore<Box<dyn Client>> + use<> {
    let namespace = made(server, "one", 1, 12, 0);
    eventually("the replica has it", || replica.redis_cli(&["exists", "randflake:{one}"]) == "1");
    let url = server.url();
    let authority = format!(":{}", server.port);
    move |port| {
        let url = url.replace(&authority, &format!(":{port}"));
        remote(&url, namespace.clone(), PATIENCE)
    }
}

/// Asks a master and a replica that was promoted beside it, and checks that whatever the master has
/// granted ends before the other grants.
#[track_caller]
fn is_outlived(old: &mut dyn LeaseStore, promoted: &mut dyn LeaseStore) -> Result<NodeLease> {
    let outcome = acquire(old, Token::random(), 1, now());
    let Ok(Acquired::Quarantined { until, .. }) = acquire(promoted, Token::random(), 1, now())
    else {
        panic!("it was promoted a moment ago");
    };
    match outcome? {
        Acquired::Granted { leases, .. } => {
            assert!(leases[0].end_exclusive <= until, "{leases:?}, and others from {until} on");
            Ok(leases[0])
        }
        other => panic!("the node id is free: {other:?}"),
    }
}

#[test]
fn an_old_redis_master_grants_nothing_without_its_replica() {
    let Some(master) = Server::redis_with_replicas() else { return };
    let link = Proxy::before(master.port);
    let replica = master.replica(link.port);
    let store = one_node_id(&master, &replica);
    let (mut old, mut promoted) = (store(master.port), store(replica.port));
    let token = Token::random();
    let lease = granted(&mut old, token, now());
    assert_eq!(release(&mut old, token, lease.node_id, lease.start), Ok(1));

    link.set(SILENCE);
    replica.redis_cli(&["replicaof", "no", "one"]);
    let is_quarantined = acquire(&mut promoted, Token::random(), 1, now());
    assert!(matches!(is_quarantined, Ok(Acquired::Quarantined { .. })), "{is_quarantined:?}");
    // The master continues to write for as long as its replica may lag: longer than clocks may
    // differ.
    thread::sleep(Duration::from_secs(2));
    let error = fails(is_outlived(&mut old, &mut promoted), ErrorKind::StoreUnavailable);
    assert!(error.to_string().contains("0 of its replicas have confirmed"), "{error}");
    // A repeated request is answered from what was written, which is not confirmed either.
    for _ in 0..2 {
        let again = acquire(&mut old, token, 1, now());
        assert!(!matches!(again, Ok(Acquired::Granted { .. })), "{again:?}");
    }
    assert_eq!(master.redis_cli(&["set", "it", "writes"]), "OK");
}

/// The same for a lease that was granted before and is repeated over another connection.
#[test]
fn a_repeated_grant_of_redis_is_confirmed_again() {
    let Some(master) = Server::redis_with_replicas() else { return };
    let replica = master.replica(master.port);
    let store = one_node_id(&master, &replica);
    // The check of the server must come first.
    let mut store = store(master.port);
    let lost = renew(&mut store, Token::random(), 0, now());
    assert!(matches!(lost, Ok(Renewed::Lost { .. })), "{lost:?}");
    replica.signal("STOP");
    let token = Token::random();
    for _ in 0..2 {
        let error = fails(acquire(&mut store, token, 1, now()), ErrorKind::StoreUnavailable);
        assert!(error.to_string().contains("0 of its replicas have confirmed"), "{error}");
        store.discard();
        let lost = renew(&mut store, token, 0, now());
        assert!(matches!(lost, Ok(Renewed::Lost { .. })), "it was never granted: {lost:?}");
    }
    replica.signal("CONT");
    let lease = granted(&mut store, token, now());
    assert_eq!(granted(&mut store, token, now()), lease, "the same for the same token");
    extended(renew(&mut store, token, lease.node_id, now()), lease);
}

/// With more replicas than must confirm, another one continues to confirm what the master grants.
#[test]
fn an_old_redis_master_with_another_replica_is_outlived() {
    let Some(master) = Server::redis_with_replicas() else { return };
    let [replica, _other] = [(); 2].map(|()| master.replica(master.port));
    let store = one_node_id(&master, &replica);
    let (mut old, mut promoted) = (store(master.port), store(replica.port));
    replica.redis_cli(&["replicaof", "no", "one"]);
    let is_quarantined = acquire(&mut promoted, Token::random(), 1, now());
    assert!(matches!(is_quarantined, Ok(Acquired::Quarantined { .. })), "{is_quarantined:?}");
    thread::sleep(Duration::from_secs(3));
    is_outlived(&mut old, &mut promoted).expect("the other replica has it");
}

/// When a stopped master continues, it does the requests waiting in its socket before it checks its
/// replicas.
#[test]
fn a_redis_master_that_was_stopped_grants_nothing_that_waited() {
    let Some(master) = Server::redis_with_replicas() else { return };
    let link = Proxy::before(master.port);
    let replica = master.replica(link.port);
    let store = one_node_id(&master, &replica);
    let (mut early, mut late, mut promoted) =
        (store(master.port), store(master.port), store(replica.port));
    for store in [&mut early, &mut late] {
        let lost = renew(store, Token::random(), 0, now());
        assert!(matches!(lost, Ok(Renewed::Lost { .. })), "{lost:?}");
    }
    link.set(SILENCE);
    master.signal("STOP");
    replica.redis_cli(&["replicaof", "no", "one"]);
    thread::scope(|scope| {
        let early = scope.spawn(|| acquire(&mut early, Token::random(), 1, now()));
        let outcome = acquire(&mut promoted, Token::random(), 1, now());
        let Ok(Acquired::Quarantined { until, .. }) = outcome else { panic!("{outcome:?}") };
        thread::sleep(Duration::from_secs(4));
        let late = scope.spawn(|| acquire(&mut late, Token::random(), 1, now()));
        thread::sleep(Duration::from_millis(500));
        master.signal("CONT");
        let early = early.join().expect("no panic");
        assert!(matches!(early, Ok(Acquired::ClockSkew { .. })), "too old: {early:?}");
        match late.join().expect("no panic") {
            Ok(Acquired::Granted { leases, .. }) => {
                assert!(leases[0].end_exclusive <= until, "{leases:?}, and others from {until} on");
                panic!("its replica no longer follows it, so none has confirmed {leases:?}");
            }
            // On a busy machine this one, too, has waited for too long.
            Ok(Acquired::ClockSkew { .. }) => {}
            outcome => {
                fails(outcome, ErrorKind::StoreUnavailable);
            }
        }
    });
}

/// A master that has followed another one and is promoted again is the same process, but has
/// forgotten what the other never had.
#[test]
fn a_redis_master_there_and_back_keeps_everybody_out() {
    let Some(master) = Server::redis_with_replicas() else { return };
    let link = Proxy::before(master.port);
    let replica = master.replica(link.port);
    let mut store = new_redis(&master.url());
    let (survives, forgotten) = (Token::random(), Token::random());
    let survivor = granted(&mut store, survives, now());

    link.set(SILENCE);
    master.redis_cli(&["client", "kill", "type", "replica"]);
    master.redis_cli(&["config", "set", "min-replicas-to-write", "0"]);
    let lost = granted(&mut store, forgotten, now());
    replica.redis_cli(&["replicaof", "no", "one"]);
    master.redis_cli(&["replicaof", "127.0.0.1", &replica.port.to_string()]);
    eventually("the master follows", || {
        master.redis_cli(&["info", "replication"]).contains("master_link_status:up")
    });
    let refused = acquire(&mut store, Token::random(), 1, now());
    fails(refused, ErrorKind::StoreUnavailable);
    master.redis_cli(&["replicaof", "no", "one"]);

    for mut store in [store, redis(&master.url())] {
        is_quarantined(&mut store, lost);
        let renewed = renew(&mut store, forgotten, lost.node_id, now());
        assert!(matches!(renewed, Ok(Renewed::Lost { .. })), "it was to be lost: {renewed:?}");
        extended(renew(&mut store, survives, survivor.node_id, now()), survivor);
    }
}

#[test]
fn a_redis_replica_that_can_be_written_to_is_refused() {
    let Some(master) = Server::redis_with_replicas() else { return };
    let replica = master.replica(master.port);
    granted(&mut new_redis(&master.url()), Token::random(), now());
    let mut store = redis(&replica.url());
    let read_only = acquire(&mut store, Token::random(), 1, now());
    fails(read_only, ErrorKind::StoreUnavailable);
    replica.redis_cli(&["config", "set", "replica-read-only", "no"]);
    let error = fails(acquire(&mut store, Token::random(), 1, now()), ErrorKind::WeakStore);
    assert!(error.to_string().contains("replica"), "{error}");
    fails(redis(&replica.url()).init(InitMode::New), ErrorKind::WeakStore);

    // A replica that was a master a moment ago and does not follow a server yet: this is temporary.
    master.redis_cli(&["replicaof", "127.0.0.1", "1"]);
    let mut store = redis(&master.url());
    fails(acquire(&mut store, Token::random(), 1, now()), ErrorKind::StoreUnavailable);
}

/// Runs statements, but leaves out the `WAIT` after them.
struct Hasty(RedisClient);

impl Client for Hasty {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        self.0.run(&Statement { wait: None, ..statement.clone() })
    }

    fn discard(&mut self) {
        self.0.discard();
    }
}

#[test]
fn a_client_that_cannot_confirm_is_refused_before_anything_is_granted() {
    let Some(master) = Server::redis_with_replicas() else { return };
    let _replica = master.replica(master.port);
    new_redis(&master.url());
    let client = Hasty(RedisClient::new(&master.url()).expect("a URL").timeout(PATIENCE));
    let mut store = RemoteStore::new(client, Protocol::redis(namespace(9)));
    let error = fails(acquire(&mut store, Token::random(), 1, now()), ErrorKind::WeakStore);
    assert!(error.to_string().contains("WAIT"), "{error}");
    let fields = master.redis_cli(&["hkeys", "randflake:{orders}"]);
    let leased = fields.lines().filter(|it| it.starts_with("node/"));
    assert_eq!(leased.count(), 0, "{fields}");
}

/// On another connection `WAIT` may be about an earlier write.
#[test]
fn the_replicas_of_a_redis_are_asked_on_the_connection_that_has_written() {
    let Some(master) = Server::redis_with_replicas() else { return };
    let _replica = master.replica(master.port);
    new_redis(&master.url());
    let mut store = redis(&master.url());
    let mut monitor = TcpStream::connect(("127.0.0.1", master.port)).expect("it listens");
    monitor.set_read_timeout(Some(PATIENCE)).expect("not zero");
    write!(monitor, "AUTH {PASSWORD}\r\nMONITOR\r\n").expect("it listens");
    let mut seen = BufReader::new(monitor).lines().map(|line| line.expect("it goes on"));
    assert!((0..2).all(|_| seen.next().as_deref() == Some("+OK")));
    granted(&mut store, Token::random(), now());
    master.redis_cli(&["echo", "end"]);
    // As in: +1763640000.123456 [0 127.0.0.1:50000] "WAIT" "1" "1000"
    let said: Vec<_> = seen
        .map(|line| {
            let mut words = line.split(' ').skip(2).map(ToOwned::to_owned);
            let mut word = || words.next().expect("a command of some client");
            (word(), word())
        })
        .take_while(|(_, command)| command != "\"echo\"")
        .filter(|(from, _)| from != "lua]")
        .collect();
    let mut asked = HashSet::new();
    for ((written_by, what), (asked_by, command)) in said.iter().zip(&said[1..]) {
        if command == "\"WAIT\"" {
            asked.insert(what.as_str());
            assert_eq!(written_by, asked_by, "{said:?}");
        }
    }
    assert_eq!(asked, HashSet::from(["\"TIME\"", "\"EVAL\""]), "{said:?}");
}

/// Each byte arrives in time, but the answer never ends.
#[test]
fn a_redis_that_answers_without_end_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut sent = client.write_all(b"$1000000\r\n");
                while sent.is_ok() {
                    thread::sleep(SOON / 10);
                    sent = client.write_all(b"x");
                }
            });
        }
    });
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let client = RedisClient::new(&format!("redis://127.0.0.1:{port}")).expect("a URL");
        let mut store = RemoteStore::new(client.timeout(SOON), Protocol::redis(namespace(9)));
        sender.send(acquire(&mut store, Token::random(), 1, now())).expect("it waits");
    });
    let outcome = receiver.recv_timeout(3 * PATIENCE).expect("it gives up");
    fails(outcome, ErrorKind::StoreUnavailable);
}

#[test]
fn a_postgres_standby_that_missed_a_grant_keeps_everybody_out() {
    let Some(mut primary) = Server::postgres(&[]) else { return };
    let mut store = postgres(&primary.url());
    let (survives, forgotten) = (Token::random(), Token::random());
    let survivor = granted(&mut store, survives, now());
    let standby = primary.standby();
    eventually("the standby follows", || {
        standby.psql("select count(*) from pg_stat_wal_receiver").trim() == "1"
    });
    let refused = acquire(&mut postgres(&standby.url()), Token::random(), 1, now());
    fails(refused, ErrorKind::StoreUnavailable);

    standby.psql("alter system set primary_conninfo = ''");
    standby.psql("select pg_reload_conf()");
    eventually("the standby is alone", || {
        standby.psql("select count(*) from pg_stat_wal_receiver").trim() == "0"
    });
    let lost = granted(&mut store, forgotten, now());
    primary.kill();
    standby.psql("select pg_promote()");

    let mut store = postgres(&standby.url());
    is_quarantined(&mut store, lost);
    let renewed = renew(&mut store, forgotten, lost.node_id, now());
    assert!(matches!(renewed, Ok(Renewed::Lost { .. })), "it was to be lost: {renewed:?}");
    extended(renew(&mut store, survives, survivor.node_id, now()), survivor);
}

/// A grant that is cancelled while it waits for a standby is committed only on the primary: it does
/// not count, not even when the same request is repeated.
#[test]
fn what_no_synchronous_standby_has_is_not_granted() {
    let Some(primary) = Server::postgres(&[]) else { return };
    let store = |timeout| remote(&primary.url(), namespace(9), timeout);
    store(PATIENCE).init(InitMode::New).expect("it is empty");
    primary.psql("alter system set synchronous_standby_names = 'cut_off'");
    primary.psql("select pg_reload_conf()");
    eventually("it waits", || primary.psql("show synchronous_standby_names").trim() == "cut_off");
    let (token, mut store) = (Token::random(), store(SOON));
    for _ in 0..2 {
        fails(acquire(&mut store, token, 1, now()), ErrorKind::StoreUnavailable);
    }
    primary.psql("alter system reset synchronous_standby_names");
    primary.psql("select pg_reload_conf()");
    eventually("it no longer waits", || {
        primary.psql("show synchronous_standby_names").trim().is_empty()
    });
    let lease = granted(&mut store, token, now());
    let again = granted(&mut store, token, now());
    assert_eq!(lease, again, "the same lease for the same request");
}

#[test]
fn an_etcd_restored_from_a_snapshot_keeps_everybody_out() {
    for same_cluster in [false, true] {
        let Some(mut server) = Server::etcd() else { return };
        let (mut one, mut other) = (etcd(&server.url()), etcd(&server.url()));
        let (survives, forgotten) = (Token::random(), Token::random());
        let survivor = granted(&mut one, survives, now());
        let Some(snapshot) = server.snapshot() else { return };
        let lost = granted(&mut other, forgotten, now());
        let Some(restored) = server.restored(&snapshot, same_cluster) else { return };

        // Under the same name, only a client that has seen newer versions notices.
        let renewed = renew(&mut other, forgotten, lost.node_id, now());
        assert!(matches!(renewed, Ok(Renewed::Lost { .. })), "it was to be lost: {renewed:?}");
        is_quarantined(&mut etcd(&restored.url()), lost);
        is_quarantined(&mut one, lost);
        extended(renew(&mut one, survives, survivor.node_id, now()), survivor);
    }
}

/// How wrong a clock is here: more than any lease, and ten times the skew.
const FAR_OFF: i64 = 600;

/// An etcd as seen by a machine whose clock is off by this many seconds.
fn etcd_seen_from(off: i64, namespace: Namespace, url: &str) -> RemoteStore<EtcdClient> {
    let client = EtcdClient::new(url).expect("a URL").timeout(PATIENCE);
    RemoteStore::new(client, Protocol::etcd(namespace)).clock(move || (now() + off) * SECOND)
}

/// Tries every operator request that depends on a clock; all must be refused.
fn operates_in_vain(store: &mut dyn LeaseStore, lease: NodeLease, off: i64) -> Vec<Error> {
    let token = Token::random();
    let client_now = now() + off;
    let repair = |target| Repair { token, target, bound: None, client_now };
    let outcomes = [
        store.fence(&Fence { token }).map(drop),
        store.repair(&repair(Target::Node(lease.node_id))).map(drop),
        store.repair(&repair(Target::Floor)).map(drop),
        store.release_dead(&ReleaseDead { token, lease, client_now }).map(drop),
    ];
    outcomes.map(|outcome| outcome.expect_err("it hangs on a clock")).into()
}

/// An operator whose clock is wrong cannot end live leases.
#[test]
fn an_operator_of_etcd_with_a_wrong_clock_changes_nothing() {
    let Some(server) = Server::etcd() else { return };
    let (token, mut holder) = (Token::random(), etcd(&server.url()));
    let lease = granted(&mut holder, token, now());
    let name = || Namespace::for_operator("orders").expect("a name");
    for off in [-FAR_OFF, FAR_OFF] {
        let mut store = etcd_seen_from(off, name(), &server.url());
        let listed = operator::list(&mut store).expect("the server answers");
        assert!(listed.now.abs_diff(now()) < 60, "{listed:?}");
        assert!(listed.has_clock && !listed.is_implausible(lease.end_exclusive), "{listed:?}");
        assert_eq!((listed.counts().held, listed.counts().implausible), (1, 0), "{listed:?}");
        for error in operates_in_vain(&mut store, lease, off) {
            assert_eq!(error.kind(), ErrorKind::ClockSkew, "{off}: {error}");
        }
        // An operator whose own clock is correct, with a store client whose clock is wrong.
        for error in operates_in_vain(&mut store, lease, 0) {
            assert_eq!(error.kind(), ErrorKind::ClockSkew, "{off}: {error}");
        }
        let mut client = etcd_seen_from(off, namespace(9), &server.url());
        let outcome = acquire(&mut client, Token::random(), 1, now() + off);
        assert!(matches!(outcome, Ok(Acquired::ClockSkew { .. })), "{outcome:?}");
        let error = fails(
            etcd_seen_from(off, made_up("new"), &server.url()).init(InitMode::Quarantine),
            ErrorKind::ClockSkew,
        );
        assert!(error.to_string().contains("correct the wrong one"), "{error}");
    }
    let listed = operator::list(&mut etcd_seen_from(0, name(), &server.url())).expect("answers");
    assert_eq!((listed.floor, listed.nodes[0].lease, listed.nodes[0].held), (0, lease, true));
    extended(renew(&mut holder, token, lease.node_id, now()), lease);
}

fn made_up(name: &str) -> Namespace {
    Namespace::new(name, &secret()).expect("a name")
}

/// A client with a slow clock must not fence into the past: a client with a correct clock would
/// then lease at once.
#[test]
fn a_first_client_of_a_restored_etcd_with_a_slow_clock_fences_nothing() {
    let Some(mut server) = Server::etcd() else { return };
    let (mut one, forgotten) = (etcd(&server.url()), Token::random());
    granted(&mut one, Token::random(), now());
    let Some(snapshot) = server.snapshot() else { return };
    let lost = granted(&mut one, forgotten, now());
    let Some(restored) = server.restored(&snapshot, false) else { return };

    let mut slow = etcd_seen_from(-FAR_OFF, namespace(9), &restored.url());
    fails(acquire(&mut slow, Token::random(), 1, now() - FAR_OFF), ErrorKind::ClockSkew);
    is_quarantined(&mut etcd(&restored.url()), lost);
}

/// Makes a namespace say that it was last seen on another server.
fn becomes_another(server: &Server, namespace: &str) {
    if server.url().starts_with("redis") {
        let script = "local meta = redis.call('HGET', KEYS[1], 'meta') \
                      meta = string.gsub(meta, '^(%S+ %S+) %S+', '%1 before') \
                      redis.call('HSET', KEYS[1], 'meta', meta)";
        let key = format!("randflake:{{{namespace}}}");
        server.redis_cli(&["eval", script, "1", &key]);
    } else {
        server.psql(&format!(
            "update randflake_leases.entry set value = regexp_replace(value, '^(\\S+ \\S+) \\S+', '\\1 before') \
             where namespace = '{namespace}' and key = 'meta'"
        ));
    }
}

/// The same for servers that have a clock: a fence with a wrong clock could end at once.
#[test]
fn a_server_with_a_wrong_clock_is_not_fenced_by_it() {
    for server in [Server::postgres(&[]), Server::redis(&DURABLE)].into_iter().flatten() {
        let url = server.url();
        let mut store = remote(&url, namespace(9), PATIENCE);
        store.init(InitMode::New).expect("it is empty");
        let lease = granted(&mut store, Token::random(), now());
        becomes_another(&server, "orders");
        for off in [-FAR_OFF, FAR_OFF] {
            let seen_from_there =
                |namespace| remote(&url, namespace, PATIENCE).clock(move || (now() + off) * SECOND);
            let mut client = seen_from_there(namespace(9));
            fails(acquire(&mut client, Token::random(), 1, now() + off), ErrorKind::ClockSkew);
            let made = seen_from_there(made_up("new")).init(InitMode::Quarantine);
            fails(made, ErrorKind::ClockSkew);
            let operator = Namespace::for_operator("orders").expect("a name");
            let listed = operator::list(&mut remote(&url, operator, PATIENCE)).expect("answers");
            assert_eq!((listed.incarnation_changed, listed.floor), (true, 0), "{off}");
        }
        is_quarantined(&mut remote(&url, namespace(9), PATIENCE), lease);
    }
}

/// If a clock steps while a generator runs, the next request notices before it writes anything.
#[test]
fn a_clock_that_steps_beside_etcd_is_noticed() {
    let Some(server) = Server::etcd() else { return };
    let off = Arc::new(AtomicI64::new(0));
    // With one node id, so that the second acquire looks at the node id of the first.
    let client = EtcdClient::new(&server.url()).expect("a URL").timeout(PATIENCE);
    let protocol = Protocol::etcd(namespace(0)).create(true).expect("may be made");
    let mut store = RemoteStore::new(client, protocol).clock({
        let off = Arc::clone(&off);
        move || (now() + off.load(Ordering::Relaxed)) * SECOND
    });
    let token = Token::random();
    let lease = granted(&mut store, token, now());
    off.store(FAR_OFF, Ordering::Relaxed);
    let outcome = acquire(&mut store, Token::random(), 1, now() + FAR_OFF);
    assert!(matches!(outcome, Ok(Acquired::ClockSkew { .. })), "{outcome:?}");
    off.store(2 * FAR_OFF, Ordering::Relaxed);
    let outcome = renew(&mut store, token, lease.node_id, now() + 2 * FAR_OFF);
    assert!(matches!(outcome, Ok(Renewed::ClockSkew { .. })), "{outcome:?}");
}

/// Each time the clock is right enough, and in between it is set by twice the largest skew.
#[test]
fn a_renewal_in_etcd_goes_by_the_clock_of_etcd() {
    let Some(server) = Server::etcd() else { return };
    let (dial, off) = (Dial::new(START), Arc::new(AtomicI64::new(-10)));
    let client = EtcdClient::new(&server.url()).expect("a URL").timeout(PATIENCE);
    let protocol = Protocol::etcd(namespace(0)).create(true).expect("may be made");
    let mut store = RemoteStore::new(Dated(client, dial.clone()), protocol).clock({
        let (clock, off) = (dial.clock(), Arc::clone(&off));
        move || clock() + off.load(Ordering::Relaxed) * SECOND
    });
    let token = Token::random();
    let lease = granted(&mut store, token, START - 10);
    off.store(10, Ordering::Relaxed);
    dial.pass(20);
    let lease = extended(renew(&mut store, token, 0, START + 30), lease);
    assert_eq!(lease.end_exclusive, START + 20 + 60, "not by a clock that was set");
}

/// A client that does not pass on headers, as adapters once did.
struct Dateless<C>(C);

impl<C: Client> Client for Dateless<C> {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        let mut response = self.0.run(statement)?;
        if let Response::Rows(rows) = &mut response {
            rows[0].truncate(1);
        }
        Ok(response)
    }

    fn discard(&mut self) {
        self.0.discard();
    }
}

/// With only one clock, leases work, and every decision that ids depend on is refused.
#[test]
fn an_etcd_that_shows_no_clock_is_leased_from_and_not_operated() {
    let Some(mut server) = Server::etcd() else { return };
    let dateless = |namespace, url: &str| {
        let client = Dateless(EtcdClient::new(url).expect("a URL").timeout(PATIENCE));
        RemoteStore::new(client, Protocol::etcd(namespace))
    };
    let no_date = |outcome: Result<()>| {
        let error = fails(outcome, ErrorKind::StoreUnavailable);
        assert!(error.to_string().contains("no Date header"), "{error}");
    };
    let mut store = dateless(namespace(9), &server.url());
    no_date(store.init(InitMode::Quarantine));
    store.init(InitMode::New).expect("needs no clock");
    let token = Token::random();
    let lease = granted(&mut store, token, now());
    let lease = extended(renew(&mut store, token, lease.node_id, now()), lease);
    for error in operates_in_vain(&mut store, lease, 0) {
        no_date(Err(error));
    }
    let slow = dateless(Namespace::for_operator("orders").expect("a name"), &server.url());
    let listed = operator::list(&mut slow.clock(|| (now() - FAR_OFF) * SECOND)).expect("answers");
    assert!(!listed.has_clock && !listed.is_implausible(lease.end_exclusive), "{listed:?}");
    assert_eq!((listed.counts().implausible, listed.nodes[0].lease), (0, lease), "{listed:?}");
    assert_eq!(release(&mut store, token, lease.node_id, lease.start), Ok(1));

    let Some(snapshot) = server.snapshot() else { return };
    let Some(restored) = server.restored(&snapshot, false) else { return };
    let outcome = acquire(&mut dateless(namespace(9), &restored.url()), Token::random(), 1, now());
    no_date(outcome.map(drop));
    is_quarantined(&mut etcd(&restored.url()), lease);
}

/// A client that loses the next answers.
struct Deaf<C>(C, Arc<AtomicBool>);

impl<C: Client> Client for Deaf<C> {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        let response = self.0.run(statement);
        if self.1.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::StoreUnavailable, "the answer was lost"));
        }
        response
    }

    fn discard(&mut self) {
        self.0.discard();
    }
}

/// Does something between two statements.
struct Meanwhile<C>(C, Plan);

type Plan = Arc<Mutex<Vec<Then>>>;

/// What to do before a statement is run; the last one is next.
type Then = Box<dyn FnOnce() + Send>;

impl<C: Client> Client for Meanwhile<C> {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        let then = self.1.lock().expect("no panic").pop();
        then.unwrap_or_else(|| Box::new(|| ()))();
        self.0.run(statement)
    }

    fn discard(&mut self) {
        self.0.discard();
    }
}

/// A write into a restored etcd whose answer is lost must not make up for what was forgotten.
#[test]
fn a_late_renewal_of_a_restored_etcd_does_not_revive_a_lease() {
    for renewals in [0, 1] {
        let Some(mut server) = Server::etcd() else { return };
        let (dial, url) = (Dial::new(START), server.url());
        let (deaf, plan) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let client = |namespace: Namespace, deaf: &Arc<AtomicBool>, plan: &Plan| {
            let client = EtcdClient::new(&url).expect("a URL").timeout(PATIENCE);
            let client = Dated(Meanwhile(client, Arc::clone(plan)), dial.clone());
            let protocol = Protocol::etcd(namespace).create(true).expect("may be made");
            RemoteStore::new(Deaf(client, Arc::clone(deaf)), protocol).clock(dial.clock())
        };
        let mut early = client(namespace(0), &deaf, &plan);
        let mut next = client(namespace(0), &Arc::default(), &Arc::default());
        let token = Token::random();
        let mut lease = granted(&mut early, token, START);
        for _ in 0..renewals {
            lease = extended(renew(&mut early, token, 0, START), lease);
        }
        let Some(snapshot) = server.snapshot() else { return };

        // It reads its lease. Before it writes, the lease ends, another one gets it, and the backup
        // is restored; then the answer is lost.
        dial.pass(55);
        let restored = Arc::new(Mutex::new(None));
        let restore = {
            let (dial, restored, deaf) = (dial.clone(), Arc::clone(&restored), Arc::clone(&deaf));
            move || {
                dial.pass(6);
                let forgotten = granted(&mut next, Token::random(), dial.now());
                assert!(forgotten.start >= lease.end_exclusive);
                *restored.lock().expect("no panic") = server.restored(&snapshot, false);
                deaf.store(true, Ordering::Relaxed);
            }
        };
        plan.lock().expect("no panic").extend([Box::new(restore) as Then, Box::new(|| ())]);
        renew(&mut early, token, 0, dial.now()).expect_err("deaf");
        assert!(restored.lock().expect("no panic").is_some(), "as before");
        deaf.store(false, Ordering::Relaxed);
        let renewed = renew(&mut early, token, 0, dial.now());
        assert!(matches!(renewed, Ok(Renewed::Lost { .. })), "{renewals}: {renewed:?}");
    }
}

/// The same for an acquire.
#[test]
fn an_unheard_grant_of_a_restored_etcd_does_not_count() {
    let Some(mut server) = Server::etcd() else { return };
    let url = server.url();
    let (deaf, plan) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let client = EtcdClient::new(&url).expect("a URL").timeout(PATIENCE);
    let client = Meanwhile(client, Arc::clone(&plan));
    let protocol = Protocol::etcd(namespace(9)).create(true).expect("may be made");
    let mut early = RemoteStore::new(Deaf(client, Arc::clone(&deaf)), protocol);
    granted(&mut early, Token::random(), now());
    let Some(snapshot) = server.snapshot() else { return };
    let lost = granted(&mut etcd(&url), Token::random(), now());

    // It looks at the clock first; then the backup is restored, and the answer is lost.
    let restored = Arc::new(Mutex::new(None));
    let restore = {
        let (restored, deaf) = (Arc::clone(&restored), Arc::clone(&deaf));
        move || {
            *restored.lock().expect("no panic") = server.restored(&snapshot, false);
            deaf.store(true, Ordering::Relaxed);
        }
    };
    plan.lock().expect("no panic").extend([Box::new(restore) as Then, Box::new(|| ())]);
    let token = Token::random();
    acquire(&mut early, token, 1, now()).expect_err("deaf");
    assert!(restored.lock().expect("no panic").is_some(), "as before");
    deaf.store(false, Ordering::Relaxed);
    let outcome = acquire(&mut early, token, 1, now());
    let Ok(Acquired::Quarantined { until, .. }) = outcome else { panic!("{outcome:?}") };
    assert!(until >= lost.end_exclusive, "{until}: {lost:?}");
}

#[test]
fn a_weak_redis_is_refused_unless_allowed() {
    let Some(server) = Server::redis(&DURABLE) else { return };
    let ask = || acquire(&mut redis(&server.url()), Token::random(), 1, now());
    server.redis_cli(&["config", "set", "maxmemory-policy", "allkeys-lru"]);
    fails(redis(&server.url()).init(InitMode::New), ErrorKind::WeakStore);
    server.redis_cli(&["config", "set", "maxmemory-policy", "noeviction"]);
    fails(ask(), ErrorKind::StoreNotInitialized); // a refused request creates nothing
    new_redis(&server.url());
    for (setting, bad, good, says) in [
        ("maxmemory-policy", "allkeys-lru", "noeviction", "allkeys-lru"),
        ("maxmemory-policy", "volatile-ttl", "noeviction", "noeviction"),
        ("appendonly", "no", "yes", "appendonly is no"),
    ] {
        assert_eq!(server.redis_cli(&["config", "set", setting, bad]), "OK");
        let error = fails(ask(), ErrorKind::WeakStore);
        assert!(error.to_string().contains(says), "{error}");
        let client = RedisClient::new(&server.url()).expect("a URL").timeout(PATIENCE);
        let protocol = Protocol::redis(namespace(9)).allow_weak_store(true);
        granted(&mut RemoteStore::new(client, protocol), Token::random(), now());
        assert_eq!(server.redis_cli(&["config", "set", setting, good]), "OK");
    }
    assert!(matches!(ask(), Ok(Acquired::Granted { .. })));

    let of = ["--replicaof", "127.0.0.1", &server.port.to_string()];
    let _replica = Server::redis(&of).expect("as the master");
    eventually("the master sees its replica", || {
        server.redis_cli(&["info", "replication"]).contains("connected_slaves:1")
    });
    let error = fails(ask(), ErrorKind::WeakStore);
    assert!(error.to_string().contains("min-replicas-to-write"), "{error}");
    server.redis_cli(&["config", "set", "min-replicas-to-write", "1"]);
    server.redis_cli(&["config", "set", "min-replicas-max-lag", "60"]);
    fails(ask(), ErrorKind::WeakStore);
    server.redis_cli(&["config", "set", "min-replicas-max-lag", "10"]);
    // Its first replica started a new line of its history.
    eventually("the replica is heard of", || matches!(ask(), Ok(Acquired::Quarantined { .. })));
}

#[test]
fn a_password_is_never_shown() {
    let wrong = "wr0ng-and-secret";
    let check = |store: &mut dyn LeaseStore, shown: String| {
        let error = acquire(store, Token::random(), 1, now());
        let error = fails(error, ErrorKind::StoreUnavailable);
        for text in [error.to_string(), format!("{error:?}"), shown] {
            assert!(!text.contains(wrong), "{text}");
        }
    };
    if let Some(server) = Server::postgres(&[]) {
        let url = server.url_of(server.port, wrong);
        let shown = format!("{:?} {:?}", postgres(&url), PostgresClient::new(&url));
        check(&mut postgres(&url), shown);
    }
    if let Some(server) = Server::redis(&DURABLE) {
        let url = server.url_of(server.port, wrong);
        check(&mut redis(&url), format!("{:?} {:?}", redis(&url), RedisClient::new(&url)));
    }
    if let Some(server) = Server::etcd() {
        let Some(_) = server.etcdctl(&["user", "add", &format!("root:{PASSWORD}")]) else { return };
        server.etcdctl(&["user", "grant-role", "root", "root"]);
        server.etcdctl(&["auth", "enable"]);
        let url = |password| format!("etcd://root:{password}@127.0.0.1:{}", server.port);
        check(&mut etcd(&url(wrong)), format!("{:?}", EtcdClient::new(&url(wrong))));
        granted(&mut etcd(&url(PASSWORD)), Token::random(), now());
    }
    for url in [
        format!("mongodb://me:{wrong}@host"),
        format!("postgresql://me:{wrong}@host:port/?sslmode=maybe"),
        format!("redis://me:{wrong}@:not a port"),
        format!("etcd://me:{wrong}@host"),
        format!("https://me:{wrong}@host"),
    ] {
        let errors = [
            RemoteStore::open(&url, namespace(9)).err(),
            PostgresClient::new(&url).err(),
            RedisClient::new(&url).err(),
            EtcdClient::new(&url).err(),
        ];
        for error in errors.into_iter().flatten() {
            assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
            assert!(!error.to_string().contains(wrong), "{error}");
        }
    }
}

/// A generator is renewed while 0.6 of its ttl is left, continues to the end of its lease while the
/// server is unreachable, and recovers by itself. In one case the server is stopped; in the other
/// nothing comes through, either way, on connections that stay open.
#[test]
fn generators_ride_out_an_outage() {
    const TTL: u32 = 8;
    on_each(|server, _, fences| {
        made(server, "outage", 1, TTL, layout::MAX_NODE_ID);
        let proxy = Proxy::before(server.port);
        let url = server.url_of(proxy.port, PASSWORD);
        let behind = Location::new(move |namespace| Ok(Box::new(remote(&url, namespace, SOON))));
        let flakes = [Location::from(server.url()), behind].map(|store| {
            let flake = Leased::builder(store, &secret()).namespace("outage").max_skew(1).ttl(TTL);
            let flake = flake.max_wait(Duration::ZERO).acquire_timeout(PATIENCE);
            flake.open().expect("it is there")
        });
        let ids = RefCell::new(BTreeSet::new());
        let make = |flake: &Leased| match flake.generate() {
            Ok(id) => {
                assert!(ids.borrow_mut().insert(i64::from(id)), "twice: {id:?}");
                None
            }
            Err(error) => Some(error.kind()),
        };
        let end_of = |flake: &Leased| flake.lease().expect("open").end_exclusive;
        for flake in &flakes {
            // The end moves by the time between two renewals, at most 0.4 of the ttl. On a busy
            // machine some renewals may be late, but not all of them.
            let last = Cell::new(end_of(flake));
            eventually("it is renewed early", || {
                let end = end_of(flake);
                (1..=i64::from(TTL) * 4 / 10).contains(&(end - last.replace(end)))
            });
        }
        let ends = flakes.each_ref().map(end_of);
        proxy.set(SILENCE);
        // A restarted Redis would be in quarantine: this one just does not answer.
        if fences {
            server.signal("STOP");
        } else {
            server.stop();
        }
        let gone = now();
        while ends.iter().any(|end| now() < *end) {
            for (flake, end) in flakes.iter().zip(ends) {
                let outcome = make(flake);
                assert!(outcome.is_none() || now() >= end, "the lease goes on: {outcome:?}");
            }
            thread::sleep(Duration::from_millis(50));
        }
        for flake in &flakes {
            eventually("the lease is over", || make(flake) == Some(ErrorKind::LeaseUnavailable));
            let end = end_of(flake);
            // One more second: etcd's clock has whole seconds, and so has this one.
            assert!(end <= gone + i64::from(TTL) + 1, "{end}: longer than the server knows");
        }
        if fences {
            server.signal("CONT");
        } else {
            server.start();
        }
        proxy.set(PASS);
        for flake in &flakes {
            eventually("it begins again", || make(flake).is_none());
        }
    });
}

/// More clients than node ids, all at once: a client that finds none learns when one will be free,
/// and then gets it without another call.
#[test]
fn a_storm_on_few_node_ids_passes() {
    const NODE_IDS: u32 = 64;
    const CLIENTS: usize = 96;
    const TTL: u32 = 30;
    on_each(|server, _, _| {
        made(server, "storm", 5, TTL, NODE_IDS - 1);
        let url = server.url();
        let open = |patience| {
            let url = url.clone();
            let store = Location::new(move |namespace| {
                Ok(Box::new(RemoteStore::open(
                    &url,
                    namespace.node_ids(NodeRanges::up_to(NODE_IDS - 1))?,
                )?))
            });
            let flake = Leased::builder(store, &secret()).namespace("storm").ttl(TTL).max_drift(0);
            flake.max_wait(Duration::from_secs(10)).acquire_timeout(patience).open()
        };
        let (holding, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
        let client = || {
            let flake = open(Duration::from_secs(120)).expect("one comes free");
            holding.fetch_add(1, Ordering::Relaxed);
            let mut stamped = BTreeSet::new();
            loop {
                let id = flake.inspect(flake.generate().expect("the lease runs"));
                stamped.insert((id.node_id, id.timestamp));
                if enough.load(Ordering::Relaxed) {
                    return stamped;
                }
                thread::sleep(Duration::from_millis(50));
            }
        };
        thread::scope(|scope| {
            let clients = [(); CLIENTS].map(|()| scope.spawn(client));
            let all = usize::try_from(NODE_IDS).expect("a few");
            eventually("all are held", || holding.load(Ordering::Relaxed) == all);
            let before = now();
            // A busy server may not answer in time, and is asked again.
            let refused = || open(Duration::ZERO).expect_err("none is free");
            let is_answer = |error: &Error| {
                !matches!(error.kind(), ErrorKind::StoreUnavailable | ErrorKind::ClockSkew)
            };
            let error = std::iter::repeat_with(refused).take(100).find(is_answer);
            let error = error.expect("an answer");
            enough.store(true, Ordering::Relaxed);
            assert_eq!(error.kind(), ErrorKind::NodesExhausted, "{error}");
            let from = error.to_string();
            let from = from
                .split_once("(unix second ")
                .and_then(|(_, rest)| rest.split(')').next()?.parse::<i64>().ok());
            let from = from.unwrap_or_else(|| panic!("no second: {error}"));
            assert!((before..=now() + i64::from(TTL)).contains(&from), "{error}");
            assert!(error.retry_after().is_some(), "{error}");

            let mut stamped = BTreeSet::new();
            for client in clients {
                for pair in client.join().expect("it goes well") {
                    assert!(stamped.insert(pair), "two have made ids of {pair:?}");
                }
            }
        });
    });
}

/// What a majority of the members has granted survives a change of leader.
#[test]
fn an_etcd_that_loses_its_leader_has_forgotten_nothing() {
    let Some(mut members) = Server::etcd_of_three() else { return };
    let hosts: Vec<String> = members.iter().map(|it| format!("127.0.0.1:{}", it.port)).collect();
    let url = format!("etcd://{}", hosts.join(","));
    let store = || remote(&url, namespace(63), SOON);
    let mut leader = None;
    // There is no leader during an election.
    for number in (0..members.len()).cycle().take(3000) {
        let Some(leads) = members[number].leads() else { return };
        leader = leads.then_some(number);
        if leader.is_some() {
            break;
        }
    }
    let leader = leader.expect("one of them leads");

    made(&members[0], "other", 5, 60, layout::MAX_NODE_ID);
    let flake = Leased::builder(url.clone(), &secret()).namespace("other").ttl(60);
    let flake = flake.max_wait(Duration::ZERO).acquire_timeout(PATIENCE);
    let flake = flake.open().expect("it is there");
    let (token, mut holder) = (Token::random(), remote(&url, namespace(63), PATIENCE));
    let lease = granted(&mut holder, token, now());
    let at_work = AtomicBool::new(true);
    let client = || {
        let (mut store, mut stamped) = (store(), Vec::new());
        while at_work.load(Ordering::Relaxed) || stamped.len() < 3 {
            let token = Token::random();
            // A process without an answer stamps nothing.
            let Ok(Acquired::Granted { leases, .. }) = acquire(&mut store, token, 1, now()) else {
                continue;
            };
            let NodeLease { node_id, start, .. } = leases[0];
            let end_exclusive = start + 1;
            stamped.push(NodeLease { node_id, start, end_exclusive });
            // This fails while there is no leader.
            let _unheard = release(&mut store, token, node_id, end_exclusive);
        }
        stamped
    };
    let stamped = thread::scope(|scope| {
        let clients = [(); 4].map(|()| scope.spawn(client));
        thread::sleep(Duration::from_millis(300));
        members[leader].kill();
        let renewed = || renew(&mut store(), token, lease.node_id, now());
        eventually("another one leads", || matches!(renewed(), Ok(Renewed::Extended { .. })));
        flake.generate().expect("it has noticed nothing");
        at_work.store(false, Ordering::Relaxed);
        let stamped = clients.map(|client| client.join().expect("it goes well"));
        stamped.into_iter().flatten().collect::<Vec<_>>()
    });
    assert_disjoint(stamped);
    extended(renew(&mut store(), token, lease.node_id, now()), lease);
    let lost = renew(&mut holder, token, lease.node_id, now());
    assert!(matches!(lost, Ok(Renewed::Lost { .. })), "others have renewed it: {lost:?}");
    // No quarantine: it is the same etcd.
    let other = Leased::builder(url, &secret()).namespace("other").ttl(60);
    let other = other.acquire_timeout(PATIENCE).open();
    other.expect("there are others").generate().expect("a new lease");
    members[leader].start();
}

/// The privileges that the README names are enough.
#[test]
fn a_plain_role_suffices() {
    if let Some(server) = Server::postgres(&[]) {
        postgres(&server.url()).init(InitMode::New).expect("may be made");
        server.psql(&format!("create role app login password '{PASSWORD}'"));
        for grant in Address::read(&server.url()).expect("a URL").expect("one").grants() {
            server.psql(&grant);
        }
        let url = server.url().replace("//randflake:", "//app:");
        granted(&mut postgres(&url), Token::random(), now());
        tickets(&server);
        let mut store = remote(&url, of_tickets(), PATIENCE);
        assert!(swap(&mut store, None, NEW).expect("it has the privileges").done);
        assert_eq!(
            randflake_tickets::operator::list_tickets(&mut store)
                .expect("it has the privileges")
                .len(),
            1
        );
    }
    if let Some(server) = Server::redis(&DURABLE) {
        let commands = "+eval +hget +hmget +hset +hscan +time +info +config|get +wait";
        let password = format!(">{PASSWORD}");
        let mut acl = vec!["acl", "setuser", "app", "on", &password, "~randflake:*"];
        acl.extend(commands.split(' '));
        assert_eq!(server.redis_cli(&acl), "OK");
        let url = server.url().replace("//:", "//app:");
        granted(&mut new_redis(&url), Token::random(), now());
        let mut store = remote(&url, of_tickets(), PATIENCE);
        store.init(InitMode::New).expect("it is empty");
        assert!(swap(&mut store, None, NEW).expect("it has the privileges").done);
        assert_eq!(
            randflake_tickets::operator::list_tickets(&mut store)
                .expect("it has the privileges")
                .len(),
            1
        );
    }
}

/// The values of a counter from which nothing was drawn, and from which ten numbers were drawn.
const NEW: &str = "1 start=1 step=1 next=0 floor=0 free= held=";
const USED: &str = "1 start=1 step=1 next=10 floor=0 free= held=";

fn of_tickets() -> Namespace {
    Namespace::for_tickets("tickets").expect("a name")
}

/// Makes a namespace of tickets.
fn tickets(server: &Server) -> RemoteStore<Box<dyn Client>> {
    let mut store = remote(&server.url(), of_tickets(), PATIENCE);
    store.init(InitMode::New).expect("it is empty");
    store
}

/// Replaces the value of a counter, which has the floor of a namespace that was never fenced.
fn swap(store: &mut dyn LeaseStore, before: Option<&str>, after: &str) -> Result<Swapped> {
    let change = Change { floor: 0, before: before.map(str::to_owned), after: after.to_owned() };
    let counter = "invoices".to_owned();
    let request = Swap { token: Token::random(), counter, change: Some(change) };
    store.swap(&request)?.answer_to(request.token, Operation::Swap)
}

/// Checks that nothing is drawn from a counter on a server that may have lost data.
#[track_caller]
fn must_be_fenced(store: &mut dyn LeaseStore, value: &str) {
    for _ in 0..2 {
        let swapped = swap(store, Some(value), USED).expect("the server answers");
        assert!(!swapped.done && swapped.floor > 0, "{swapped:?}");
        assert_eq!(swapped.value.as_deref(), Some(value));
    }
    let shown =
        randflake_tickets::operator::show_tickets(store, "invoices").expect("the server answers");
    let shown = shown.expect("it is there");
    assert!(shown.must_be_fenced);
    assert_eq!(
        randflake_tickets::operator::list_tickets(store).expect("the server answers"),
        [shown]
    );
}

#[test]
fn counters_of_a_server_that_has_become_another_one_must_be_fenced() {
    for server in [Server::postgres(&[]), Server::redis(&DURABLE)].into_iter().flatten() {
        let is_redis = server.url().starts_with("redis");
        let mut holder = tickets(&server);
        assert!(swap(&mut holder, None, USED).expect("the server answers").done);
        becomes_another(&server, "tickets");
        must_be_fenced(&mut holder, USED);
        must_be_fenced(&mut remote(&server.url(), of_tickets(), PATIENCE), USED);
        let fenced = randflake_tickets::operator::fence_tickets(&mut holder, "invoices", 100);
        if is_redis {
            // The previous master can still be drawn from.
            let error = fails(fenced, ErrorKind::StoreQuarantined);
            let left = error.retry_after().expect("it passes");
            assert!(left <= Duration::from_secs(12), "{left:?}");
        } else {
            let fenced = fenced.expect("the server answers");
            assert_eq!((fenced.next, fenced.must_be_fenced), (Some(101), false));
        }
    }
}

#[test]
fn counters_of_a_restored_etcd_must_be_fenced() {
    for same_cluster in [false, true] {
        let Some(mut server) = Server::etcd() else { return };
        let (mut holder, mut other) = (tickets(&server), tickets(&server));
        assert!(swap(&mut holder, None, NEW).expect("the server answers").done);
        let Some(snapshot) = server.snapshot() else { return };
        for _ in 0..3 {
            assert!(swap(&mut holder, Some(NEW), NEW).expect("the server answers").done);
        }
        assert!(swap(&mut holder, Some(NEW), USED).expect("the server answers").done);
        let Some(restored) = server.restored(&snapshot, same_cluster) else { return };
        // It has seen the value, but not the text.
        let swapped = swap(&mut holder, Some(NEW), USED).expect("the server answers");
        assert!(!swapped.done && swapped.floor > 0, "{swapped:?}");
        must_be_fenced(&mut holder, NEW);
        must_be_fenced(&mut other, NEW);
        let mut fresh = remote(&restored.url(), of_tickets(), PATIENCE);
        let fenced = randflake_tickets::operator::fence_tickets(&mut fresh, "invoices", 10)
            .expect("it answers");
        assert_eq!(fenced.next, Some(11));
    }
}

/// What processes draw from the counter "invoices" until they are told to end.
#[derive(Default)]
struct Drawn {
    numbers: Mutex<BTreeSet<u64>>,
    /// How many processes were told that the counter must be fenced.
    refused: AtomicUsize,
    ends: AtomicBool,
}

impl Drawn {
    /// Draws like a separate process, and gives the rest back at the end.
    fn draw(&self, url: &str) {
        let tickets = Tickets::builder(url, "invoices").max_block(20).max_wait(SOON);
        let tickets = tickets.acquire_timeout(SOON).open_lazily().expect("options");
        let (mut last, mut is_refused) = (0, false);
        while !self.ends.load(Ordering::Relaxed) {
            match tickets.generate() {
                Ok(number) => {
                    assert!(!is_refused, "{number} of a counter that must be fenced");
                    let mut numbers = self.numbers.lock().expect("no panic");
                    assert!(numbers.insert(number), "{number} was handed out twice");
                    drop(numbers);
                    assert!(last < number, "{number} after {last} in one process");
                    last = number;
                }
                Err(error) if error.kind() == ErrorKind::StoreQuarantined => {
                    self.refused.fetch_add(usize::from(!is_refused), Ordering::Relaxed);
                    is_refused = true;
                }
                Err(error) => assert!(
                    matches!(
                        error.kind(),
                        ErrorKind::LeaseUnavailable
                            | ErrorKind::StoreUnavailable
                            | ErrorKind::StoreReplaced
                            | ErrorKind::StoreNotInitialized
                    ),
                    "{error}"
                ),
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Makes processes draw while `during` runs.
    fn while_drawing<T>(&self, urls: &[&str], during: impl FnOnce() -> T) -> T {
        struct Ends<'a>(&'a AtomicBool);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        self.ends.store(false, Ordering::Relaxed);
        self.refused.store(0, Ordering::Relaxed);
        thread::scope(|scope| {
            let _ends = Ends(&self.ends);
            for url in urls {
                scope.spawn(move || self.draw(url));
            }
            during()
        })
    }

    fn count(&self) -> usize {
        self.numbers.lock().expect("no panic").len()
    }

    fn grow(&self) {
        let count = self.count();
        eventually("numbers are handed out", || self.count() > count + 60);
    }

    /// Waits until this many processes are refused. They get no more numbers.
    fn are_refused(&self, processes: usize) {
        let all = || self.refused.load(Ordering::Relaxed) == processes;
        eventually("they are refused", all);
    }

    /// Does what an operator does once everything is stopped: nothing can be drawn before, and
    /// afterwards nothing that was handed out.
    fn fence(&self, url: &str) {
        let refused = Tickets::builder(url, "invoices").acquire_timeout(PATIENCE).open();
        fails(refused, ErrorKind::StoreQuarantined);
        let above = self.numbers.lock().expect("no panic").last().copied().expect("many");
        let mut store = remote(url, of_tickets(), PATIENCE);
        let fenced = loop {
            match randflake_tickets::operator::fence_tickets(&mut store, "invoices", above) {
                Ok(fenced) => break fenced,
                Err(error) => {
                    let error = fails(Err::<(), _>(error), ErrorKind::StoreQuarantined);
                    let wait = error.retry_after().expect("an old master stops");
                    assert!(wait <= Duration::from_secs(12), "{wait:?}");
                    thread::sleep(wait);
                }
            }
        };
        assert!(!fenced.must_be_fenced && fenced.next > Some(above), "{fenced:?} above {above}");
    }
}

#[test]
fn no_number_comes_twice_when_a_postgres_standby_that_missed_blocks_is_promoted() {
    let Some(mut primary) = Server::postgres(&[]) else { return };
    tickets(&primary);
    let address = Proxy::before(primary.port);
    let url = primary.url_of(address.port, PASSWORD);
    let (url, drawn) = (url.as_str(), Drawn::default());
    let standby = primary.standby();
    let streams = || standby.psql("select count(*) from pg_stat_wal_receiver").trim() == "1";
    eventually("the standby follows", streams);
    drawn.while_drawing(&[url; 3], || {
        drawn.grow();
        standby.psql("alter system set primary_conninfo = ''");
        standby.psql("select pg_reload_conf()");
        eventually("the standby is alone", || !streams());
        drawn.grow(); // and none of this is on the standby
        primary.kill();
        standby.psql("select pg_promote()");
        address.turn(standby.port);
        drawn.are_refused(3);
    });
    drawn.fence(url);
    drawn.while_drawing(&[url; 3], || drawn.grow());
}

#[test]
fn no_number_comes_twice_when_a_redis_replica_is_promoted_beside_its_master() {
    for has_another in [false, true] {
        let Some(master) = Server::redis_with_replicas() else { return };
        let link = Proxy::before(master.port);
        let replica = master.replica(link.port);
        let another = has_another.then(|| master.replica(master.port));
        tickets(&master);
        eventually("the replica has it", || {
            replica.redis_cli(&["exists", "randflake:{tickets}"]) == "1"
        });
        let address = Proxy::before(master.port);
        let (url, old) = (master.url_of(address.port, PASSWORD), master.url());
        let drawn = Drawn::default();
        drawn.while_drawing(&[&url, &url, &old, &old], || {
            drawn.grow();
            link.set(SILENCE);
            replica.redis_cli(&["replicaof", "no", "one"]);
            // Some see it, and others do not.
            address.turn(replica.port);
            drawn.are_refused(2);
            if has_another {
                drawn.grow(); // the other replica confirms what the old master writes
            }
        });
        // As the guide says: the other replica does not continue with the old master.
        if let Some(another) = &another {
            replica.redis_cli(&["config", "set", "min-replicas-to-write", "1"]);
            another.redis_cli(&["replicaof", "127.0.0.1", &replica.port.to_string()]);
            eventually("it follows", || {
                replica.redis_cli(&["info", "replication"]).contains("min_slaves_good_slaves:1")
            });
        }
        drawn.fence(&url);
        // The old master answers, but hands out no numbers.
        drawn.while_drawing(&[&url, &old], || {
            drawn.grow();
            drawn.grow();
        });
        assert_eq!(master.redis_cli(&["ping"]), "PONG");
    }
}

#[test]
fn no_number_comes_twice_when_a_redis_is_restarted_with_and_without_its_data() {
    for keeps in [true, false] {
        let Some(mut server) = Server::redis(&DURABLE) else { return };
        tickets(&server);
        let (url, drawn) = (server.url(), Drawn::default());
        drawn.while_drawing(&[url.as_str(); 3], || {
            drawn.grow();
            server.kill();
            if !keeps {
                fs::remove_dir_all(server.path("appendonlydir")).expect("it is there");
            }
            server.start();
            if keeps {
                drawn.are_refused(3);
            } else {
                let builder = Tickets::builder(url.as_str(), "invoices").acquire_timeout(PATIENCE);
                let missing = || builder.clone().open();
                fails(missing(), ErrorKind::StoreNotInitialized);
                let mut store = remote(&url, of_tickets(), PATIENCE);
                store.init(InitMode::Quarantine).expect("it is empty");
                fails(missing(), ErrorKind::StoreQuarantined);
            }
        });
        drawn.fence(&url);
        drawn.while_drawing(&[url.as_str(); 3], || drawn.grow());
    }
}

#[test]
fn no_number_comes_twice_when_an_etcd_is_restored_from_a_snapshot() {
    for same_cluster in [false, true] {
        let Some(mut server) = Server::etcd() else { return };
        tickets(&server);
        let (url, drawn) = (server.url(), Drawn::default());
        let restored = drawn.while_drawing(&[url.as_str(); 3], || {
            drawn.grow();
            let snapshot = server.snapshot()?;
            drawn.grow();
            // Under the same name, only clients that have seen newer versions notice: these do.
            let restored = server.restored(&snapshot, same_cluster)?;
            drawn.are_refused(3);
            Some(restored)
        });
        let Some(_restored) = restored else { return };
        drawn.fence(&url);
        drawn.while_drawing(&[url.as_str(); 3], || drawn.grow());
    }
}

/// A write that no replica has confirmed does not count; it counts once it is confirmed.
#[test]
fn a_counter_of_redis_is_confirmed_by_its_replica() {
    let Some(master) = Server::redis_with_replicas() else { return };
    let replica = master.replica(master.port);
    let [mut one, mut other] = [tickets(&master), tickets(&master)];
    eventually("the replica has it", || {
        replica.redis_cli(&["exists", "randflake:{tickets}"]) == "1"
    });
    for store in [&mut one, &mut other] {
        assert!(!swap(store, Some(USED), USED).expect("the server answers").done);
    }
    replica.signal("STOP");
    for (store, before) in [(&mut one, None), (&mut other, Some(NEW))] {
        let error = fails(swap(store, before, NEW), ErrorKind::StoreUnavailable);
        assert!(
            error.to_string().contains("0 of its replicas have confirmed the counter"),
            "{error}"
        );
    }
    replica.signal("CONT");
    assert!(swap(&mut other, Some(NEW), NEW).expect("confirmed").done);
    assert!(swap(&mut one, Some(NEW), USED).expect("confirmed").done);
}

#[test]
fn counters_whose_table_is_dropped_are_missed() {
    let Some(server) = Server::postgres(&[]) else { return };
    let mut store = tickets(&server);
    assert!(swap(&mut store, None, NEW).expect("the server answers").done);
    server.psql("drop table randflake_leases.entry");
    fails(swap(&mut store, Some(NEW), USED), ErrorKind::StoreReplaced);
    let client = PostgresClient::new(&server.url()).expect("a URL").timeout(PATIENCE);
    let mut missing = RemoteStore::new(client, Protocol::postgres(of_tickets()));
    fails(swap(&mut missing, None, NEW), ErrorKind::StoreNotInitialized);
    missing.init(InitMode::Quarantine).expect("may be made");
    let fenced = Tickets::builder(server.url(), "invoices").acquire_timeout(PATIENCE).open();
    fails(fenced, ErrorKind::StoreQuarantined);
}

/// A database that is copied on the same server has all leases of the original, and is a different
/// store.
#[test]
fn a_copied_database_keeps_everybody_out() {
    let Some(server) = Server::postgres(&[]) else { return };
    let lease = granted(&mut postgres(&server.url()), Token::random(), now());
    let url = server.url();
    let (address, name) = url.rsplit_once('/').expect("a URL");
    server.psql(&format!("create database copied template {name}"));
    let mut copied = postgres(&format!("{address}/copied"));
    is_quarantined(&mut copied, lease);
    granted(&mut postgres(&server.url()), Token::random(), now());
}

/// Tables of an earlier version are left alone, and no new store is created beside them.
#[test]
fn an_earlier_format_is_refused() {
    if let Some(server) = Server::postgres(&[]) {
        server.psql("create table randflake_namespace (id int)");
        let error = acquire(&mut postgres(&server.url()), Token::random(), 1, now());
        let error = fails(error, ErrorKind::StoreUnavailable);
        assert!(error.to_string().contains("make a new store"), "{error}");
    }
    if let Some(server) = Server::redis(&DURABLE) {
        let salt = "00".repeat(16);
        server.redis_cli(&["hset", "randflake:{orders}", "salt", &salt, "format", "1"]);
        let error = redis(&server.url()).init(InitMode::New).expect_err("of another format");
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
        assert!(error.to_string().contains("has the format 1"), "{error}");
    }
    if let Some(server) = Server::etcd() {
        server.etcdctl(&["put", "randflake/orders/meta", r#"{"format":1,"floor":0}"#]);
        let error = etcd(&server.url()).init(InitMode::New).expect_err("of another format");
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
        assert!(error.to_string().contains("has the format 1"), "{error}");
    }
}

#[test]
fn a_counter_is_not_written_inside_a_transaction() {
    let Some(server) = Server::postgres(&[]) else { return };
    tickets(&server);
    let busy = Arc::new(AtomicBool::new(false));
    let client = PostgresClient::new(&server.url()).expect("a URL").timeout(PATIENCE);
    let client = Busy(client, Arc::clone(&busy), &["begin", "create temporary table mine ()"]);
    let mut store = RemoteStore::new(client, Protocol::postgres(of_tickets()));
    assert!(swap(&mut store, None, NEW).expect("the server answers").done);
    busy.store(true, Ordering::Relaxed);
    let error = fails(swap(&mut store, Some(NEW), USED), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("transaction"), "{error}");
    assert!(swap(&mut tickets(&server), Some(NEW), USED).expect("unchanged").done);
}

#[test]
fn lost_late_repeated_and_swapped_answers_do_counters_no_harm() {
    on_each(|server, _, _| {
        let mut direct = tickets(server);
        let proxy = Proxy::before(server.port);
        let url = server.url_of(proxy.port, PASSWORD);
        let mut store = remote(&url, of_tickets(), SOON);
        assert!(swap(&mut store, None, "0").expect("the server answers").done);
        for (mode, before, after) in [(DROP, "0", "1"), (HOLD, "1", "2")] {
            proxy.set(mode);
            fails(swap(&mut store, Some(before), after), ErrorKind::StoreUnavailable);
            proxy.set(PASS);
            // Written once, whether the first time or now.
            let swapped = swap(&mut store, Some(before), after).expect("the server answers");
            assert_eq!(swapped.value.as_deref(), Some(after));
            assert!(swap(&mut direct, Some(after), after).expect("the server answers").done);
        }
        proxy.set(REPEAT);
        let mut value = 2;
        for _ in 0..12 {
            let (before, after) = (value.to_string(), (value + 1).to_string());
            let swapped = swap(&mut store, Some(&before), &after);
            let written = swap(&mut direct, Some(&after), &after).expect("the server answers").done;
            match swapped {
                Ok(swapped) if swapped.done => assert!(written, "{swapped:?}"),
                Ok(_) => {}
                Err(error) => drop(fails(Err::<(), _>(error), ErrorKind::StoreUnavailable)),
            }
            value += i32::from(written);
        }
        drop(store);

        // Their own proxy: it swaps the answers of two connections.
        let proxy = Proxy::before(server.port);
        let url = server.url_of(proxy.port, PASSWORD);
        let mut stores = [(); 2].map(|()| remote(&url, of_tickets(), PATIENCE));
        let named = |number: usize, before: Option<&str>, after: &str| {
            let before = before.map(str::to_owned);
            let change = Some(Change { floor: 0, before, after: after.to_owned() });
            Swap { token: Token::random(), counter: format!("counter-{number}"), change }
        };
        for (number, store) in stores.iter_mut().enumerate() {
            assert!(
                store.swap(&named(number, None, "0")).expect("the server answers").outcome.done
            );
        }
        proxy.set(SWAP);
        thread::scope(|scope| {
            for (number, store) in stores.iter_mut().enumerate() {
                scope.spawn(move || {
                    let swapped = store.swap(&named(number, Some("0"), "1"));
                    let error = fails(swapped, ErrorKind::StoreUnavailable);
                    assert!(error.to_string().contains("another request"), "{error}");
                });
            }
        });
        proxy.set(PASS);
    });
}

/// Runs its own statements before the next statement.
struct Busy(PostgresClient, Arc<AtomicBool>, &'static [&'static str]);

impl Client for Busy {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        if self.1.swap(false, Ordering::Relaxed) {
            for text in self.2 {
                self.0.run(&Statement { text, parameters: vec![], wait: None })?;
            }
        }
        self.0.run(statement)
    }

    fn discard(&mut self) {
        self.0.discard();
    }
}

#[test]
fn a_connection_inside_a_transaction_is_refused() {
    let Some(server) = Server::postgres(&[]) else { return };
    granted(&mut postgres(&server.url()), Token::random(), now());
    let count = || server.psql("select count(*) from randflake_leases.entry");
    for own in [&["begin"][..], &["begin", "create temporary table mine ()"]] {
        for known in [false, true] {
            if known && own.len() == 1 {
                continue; // only the driver can tell: a transaction in which nothing was done
            }
            let busy = Arc::new(AtomicBool::new(!known));
            let client = PostgresClient::new(&server.url()).expect("a URL").timeout(PATIENCE);
            let client = Busy(client, Arc::clone(&busy), own);
            let mut store = RemoteStore::new(client, Protocol::postgres(namespace(9)));
            if known {
                granted(&mut store, Token::random(), now());
            }
            busy.store(true, Ordering::Relaxed);
            let before = count();
            let error = acquire(&mut store, Token::random(), 1, now()).expect_err("in the middle");
            assert_eq!(error.code(), "INVALID_ARGUMENT", "{own:?}: {error}");
            assert!(error.to_string().contains("transaction"), "{own:?}: {error}");
            assert_eq!(count(), before, "{own:?}");
        }
    }
}

#[test]
fn a_postgres_that_does_not_wait_for_its_disk_is_refused() {
    let Some(server) = Server::postgres(&["-c", "fsync=off"]) else { return };
    let client = || PostgresClient::new(&server.url()).expect("a URL").timeout(PATIENCE);
    let protocol = || Protocol::postgres(namespace(9)).create(true).expect("may be made");
    for _ in 0..2 {
        let mut store = RemoteStore::new(client(), protocol());
        let error = fails(acquire(&mut store, Token::random(), 1, now()), ErrorKind::WeakStore);
        assert!(error.to_string().contains("fsync"), "{error}");
        // Granted, then refused as before.
        granted(&mut store.allow_weak_store(true), Token::random(), now());
    }
}

/// A client that waits for a lock also waits on the server, and uses up one of its connections.
#[test]
fn a_locked_table_takes_one_connection_of_each_holder() {
    const HOLDERS: usize = 20;

    let Some(server) = Server::postgres(&[]) else { return };
    let namespace = made(&server, "locked", 5, 60, layout::MAX_NODE_ID);
    let timeout = Duration::from_secs(5);
    let waits = || {
        let condition = "wait_event_type = 'Lock' and usename = 'randflake'";
        let counted =
            server.psql(&format!("select count(*) from pg_stat_activity where {condition}"));
        counted.trim().parse::<usize>().expect("a number")
    };
    let ready = Barrier::new(HOLDERS + 1);
    let at_work = AtomicUsize::new(HOLDERS);
    let holder = || {
        let mut store = remote(&server.url(), namespace.clone(), timeout);
        let token = Token::random();
        let node_id = granted(&mut store, token, now()).node_id;
        ready.wait();
        ready.wait();
        for _ in 0..3 {
            let error = renew(&mut store, token, node_id, now());
            fails(error, ErrorKind::StoreUnavailable);
        }
        at_work.fetch_sub(1, Ordering::Relaxed);
        ready.wait();
        let renewed = renew(&mut store, token, node_id, now()).expect("it is free");
        assert!(matches!(renewed, Renewed::Extended { .. }));
    };
    let most = thread::scope(|scope| {
        let holders = [(); HOLDERS].map(|()| scope.spawn(holder));
        ready.wait();
        let mut owner = PostgresClient::new(&server.url()).expect("a URL").timeout(PATIENCE);
        for text in ["begin", "lock table randflake_leases.entry in access exclusive mode"] {
            owner
                .run(&Statement { text, parameters: vec![], wait: None })
                .expect("the tables are its own");
        }
        ready.wait();
        let mut most = 0;
        while at_work.load(Ordering::Relaxed) > 0
            && !holders.iter().any(thread::ScopedJoinHandle::is_finished)
        {
            most = most.max(waits());
        }
        owner.discard();
        ready.wait();
        most
    });
    // Each may also have one that is about to end.
    assert!((1..=2 * HOLDERS).contains(&most), "{most} waited at once");
}

/// Returns how many connections to a port this process has open.
fn connections(port: u16) -> usize {
    let own = fs::read_dir("/proc/self/fd").expect("Linux").flatten();
    let own: BTreeSet<PathBuf> = own.flat_map(|it| fs::read_link(it.path())).collect();
    let is_open = |line: &&str| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let socket = PathBuf::from(format!("socket:[{}]", cells[9]));
        cells[2].ends_with(&format!(":{port:04X}")) && own.contains(&socket)
    };
    fs::read_to_string("/proc/net/tcp").expect("Linux").lines().skip(1).filter(is_open).count()
}

#[test]
fn no_connection_stays_open_that_is_not_needed_for_a_minute() {
    on_each(|server, client, _| {
        drop(client(&server.url()));
        let _made = made(server, "rests", 5, 300, layout::MAX_NODE_ID);
        assert_eq!(connections(server.port), 0, "no client is there");
        let leased = |ttl| {
            let builder = Leased::builder(server.url(), &secret()).namespace("rests").ttl(ttl);
            builder.acquire_timeout(PATIENCE).open().expect("there is one")
        };
        // This one is renewed every 20 seconds.
        let often = leased(60);
        let needed = connections(server.port);
        assert!(needed > 0);
        let seldom = leased(300);
        eventually("it has closed its own", || connections(server.port) == needed);
        for flake in [often, seldom] {
            flake.generate().expect("a lease");
            let node_id = flake.node_ids()[0];
            flake.close();
            let namespace = Namespace::for_operator("rests").expect("a name");
            let mut store = remote(&server.url(), namespace, PATIENCE);
            let listed = operator::inspect(&mut store, node_id).expect("it was leased");
            assert!(!listed.nodes[0].held, "it has connected again, and given back");
        }
    });
}

#[test]
fn lost_late_and_repeated_answers_do_no_harm() {
    on_each(|server, client, _| {
        drop(client(&server.url()));
        let proxy = Proxy::before(server.port);
        let mut store = remote(&server.url_of(proxy.port, PASSWORD), namespace(9), SOON);
        let tokens = [(); 5].map(|()| Token::random());
        let mut leases = vec![granted(&mut store, tokens[0], now())];
        for (mode, token) in [(DROP, tokens[1]), (HOLD, tokens[2])] {
            proxy.set(mode);
            let unheard = acquire(&mut store, token, 1, now());
            fails(unheard, ErrorKind::StoreUnavailable);
            let unheard = renew(&mut store, tokens[0], leases[0].node_id, now());
            fails(unheard, ErrorKind::StoreUnavailable);
            proxy.set(PASS);
            let lease = granted(&mut store, token, now());
            assert_eq!(granted(&mut store, token, now()), lease, "the same for the same token");
            leases.push(lease);
            extended(renew(&mut store, tokens[0], leases[0].node_id, now()), leases[0]);
        }
        proxy.set(REPEAT);
        let mut heard = 0;
        for turn in 0..12 {
            let (token, lease) = (tokens[turn % 3], leases[turn % 3]);
            match renew(&mut store, token, lease.node_id, now()) {
                Ok(Renewed::Extended { leases, .. }) => {
                    assert_eq!((leases[0].node_id, leases[0].start), (lease.node_id, lease.start));
                    heard += 1;
                }
                Ok(other) => panic!("the answer to another request: {other:?}"),
                Err(error) => {
                    fails(Err::<(), _>(error), ErrorKind::StoreUnavailable);
                }
            }
        }
        proxy.set(PASS);
        // The second answer to the last request may still be on the connection, which is then
        // discarded.
        let _ = renew(&mut store, tokens[0], leases[0].node_id, now());
        for (token, lease) in tokens.iter().zip(&leases) {
            extended(renew(&mut store, *token, lease.node_id, now()), *lease);
        }
        // Exactly three of the ten node ids are taken.
        let mut direct = client(&server.url());
        let outcome = acquire(&mut *direct, Token::random(), 10, now());
        let Ok(Acquired::Granted { leases, .. }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(leases.len(), 7, "{heard} answers were heard");
    });
}

/// A pool that mixes up its connections delivers an answer to another client.
#[test]
fn swapped_answers_are_rejected() {
    on_each(|server, _, _| {
        let namespace = made(server, "swapped", 5, 60, layout::MAX_NODE_ID);
        let proxy = Proxy::before(server.port);
        let url = server.url_of(proxy.port, PASSWORD);
        let mut stores = [(); 2].map(|()| remote(&url, namespace.clone(), PATIENCE));
        // With these tokens the first candidates differ.
        let [one, other, third, fourth] = [1, 2, 3, 4].map(|byte| Token::from_bytes([byte; 16]));
        let (tokens, next) = ([one, other], [third, fourth]);
        // This also opens the connections.
        let granted_both = |stores: &mut [RemoteStore<Box<dyn Client>>; 2], tokens: [Token; 2]| {
            let [one, other] = stores;
            [granted(one, tokens[0], now()), granted(other, tokens[1], now())]
        };
        let swapped = |stores: &mut [RemoteStore<Box<dyn Client>>; 2], ask: Ask<'_>| {
            proxy.set(SWAP);
            thread::scope(|scope| {
                for (number, store) in stores.iter_mut().enumerate() {
                    scope.spawn(move || {
                        let error = fails(ask(number, store), ErrorKind::StoreUnavailable);
                        assert!(error.to_string().contains("another request"), "{error}");
                    });
                }
            });
            proxy.set(PASS);
        };
        let leases = granted_both(&mut stores, tokens);
        swapped(&mut stores, &|number, store| {
            renew(store, tokens[number], leases[number].node_id, now()).map(drop)
        });
        assert_eq!(granted_both(&mut stores, tokens).map(|it| it.start), leases.map(|it| it.start));
        swapped(&mut stores, &|number, store| acquire(store, next[number], 1, now()).map(drop));
        // Leases that were granted, but whose answer was lost.
        let unheard = granted_both(&mut stores, next);
        swapped(&mut stores, &|number, store| {
            release(store, next[number], unheard[number].node_id, 0).map(drop)
        });
        for (number, store) in stores.iter_mut().enumerate() {
            // It may have been done before, except in etcd, which was not asked.
            let mut again = || release(store, next[number], unheard[number].node_id, 0);
            again().expect("the answer is its own");
            assert_eq!(again(), Ok(0), "it is done");
            let lease = leases[number];
            extended(renew(store, tokens[number], lease.node_id, now()), lease);
        }
        let node_ids: BTreeSet<u32> =
            [leases, unheard].concat().iter().map(|it| it.node_id).collect();
        assert_eq!(node_ids.len(), 4);
    });
}

/// Makes a request, as one of two clients.
type Ask<'a> = &'a (dyn Fn(usize, &mut dyn LeaseStore) -> Result<()> + Sync);

#[test]
fn tls_is_spoken_and_checked() {
    for server in Server::all_with_tls() {
        let (url, roots) = (server.url(), server.certificate());
        let stores: [Box<dyn LeaseStore>; 2] = match url.split_once(':').expect("a scheme").0 {
            "postgresql" => {
                let client = PostgresClient::new(&url).expect("a URL").timeout(PATIENCE);
                let client = client.root_certificates(roots);
                let protocol = Protocol::postgres(namespace(9)).create(true).expect("may be made");
                [Box::new(RemoteStore::new(client, protocol)), Box::new(postgres(&url))]
            }
            "mysql" => {
                let authority = server.path("ca.pem").display().to_string();
                let mysql = |more: &str| {
                    let client = MysqlClient::new(&format!("{url}?ssl-mode=VERIFY_CA{more}"));
                    let client = client.expect("a URL").timeout(PATIENCE);
                    let protocol = Protocol::mysql(namespace(9)).create(true);
                    RemoteStore::new(client, protocol.expect("may be made"))
                };
                let trusting = mysql(&format!("&sslrootcert={authority}"));
                [Box::new(trusting), Box::new(mysql(""))]
            }
            "rediss" => {
                let client = RedisClient::new(&url).expect("a URL").timeout(PATIENCE);
                let client = client.root_certificates(roots).expect("a certificate");
                let mut store = RemoteStore::new(client, Protocol::redis(namespace(9)));
                store.init(InitMode::New).expect("it is empty");
                [Box::new(store), Box::new(redis(&url))]
            }
            _ => {
                let [authority, certificate, key] = ["ca.pem", "cert.pem", "key.pem"]
                    .map(|name| server.path(name).display().to_string());
                let shown = format!("{url}?sslcert={certificate}&sslkey={key}");
                // One client does not trust the server, and the server does not trust the other
                // client.
                let trusting = format!("{url}?sslrootcert={authority}");
                fails(
                    acquire(&mut etcd(&trusting), Token::random(), 1, now()),
                    ErrorKind::StoreUnavailable,
                );
                let client = EtcdClient::new(&format!("{shown}&sslrootcert={authority}"));
                let client = client.expect("a URL").timeout(PATIENCE);
                let protocol = Protocol::etcd(namespace(9)).create(true).expect("may be made");
                [Box::new(RemoteStore::new(client, protocol)), Box::new(etcd(&shown))]
            }
        };
        let [mut trusting, mut wary] = stores;
        granted(&mut *trusting, Token::random(), now());
        let refused = acquire(&mut *wary, Token::random(), 1, now());
        fails(refused, ErrorKind::StoreUnavailable);
    }
}

#[test]
#[allow(unsafe_code, reason = "fork")]
fn a_child_uses_nothing_that_it_inherited() {
    on_each(|server, client, _| {
        let mut store = client(&server.url());
        let token = Token::random();
        let lease = granted(&mut *store, token, now());
        // SAFETY: the child calls the code under test, and exits without unwinding.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let outcome = renew(&mut *store, token, lease.node_id, lease.start);
            let refused = outcome.is_err_and(|error| error.code() == "FORKED");
            drop(store);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!refused)) };
        }
        let mut status = 0;
        // SAFETY: the child from above, and a place for its status.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0), "the child was not refused");
        extended(renew(&mut *store, token, lease.node_id, now()), lease);
    });
}
