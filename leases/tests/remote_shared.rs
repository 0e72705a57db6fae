//! One client for all stores of a URL in a process: how many connections there are, that answers are
//! not mixed up, and that a child has its own.

#![cfg(target_os = "linux")]

mod common;
mod servers;

use std::{
    collections::BTreeSet,
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::Duration,
};

use common::{SECOND, acquire, granted, release, renew, secret};
use randflake::{Clock, SystemClock};
use randflake_leases::{
    Acquired, Error, ErrorKind, EtcdClient, InitMode, Leased, Location, Namespace, NodeLease,
    PostgresClient, RedisClient, Renewed, Result, Token,
    remote::{Client, Protocol, RemoteStore, Response, SharedClient, Statement},
};
use servers::{
    PASSWORD, Server,
    proxy::{DROP, HOLD, PASS, Proxy, REPEAT, SOON},
};

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--save", ""];

fn now() -> i64 {
    SystemClock.now().expect("a clock") / SECOND
}

/// A namespace for a busy machine, or one whose leases are renewed after 6 seconds.
fn namespace(max_skew: u32) -> Namespace {
    Namespace::new("orders", &secret())
        .and_then(|namespace| namespace.max_skew(max_skew)?.max_ttl(60))
        .expect("within the limits")
}

/// Returns a store that shares the client of a URL, with a short wait for answers.
fn shared(url: &str) -> RemoteStore<SharedClient> {
    shared_with(url, 10)
}

fn shared_with(url: &str, max_skew: u32) -> RemoteStore<SharedClient> {
    let connect = || -> Result<Box<dyn Client>> {
        Ok(match url.split_once(':').expect("a scheme").0 {
            "postgresql" => Box::new(PostgresClient::new(url)?.timeout(SOON)),
            "redis" => Box::new(RedisClient::new(url)?.timeout(SOON)),
            _ => Box::new(EtcdClient::new(url)?.timeout(SOON)),
        })
    };
    let protocol = match url.split_once(':').expect("a scheme").0 {
        "postgresql" => Protocol::postgres(namespace(max_skew)),
        "redis" => Protocol::redis(namespace(max_skew)),
        _ => Protocol::etcd(namespace(max_skew)),
    };
    RemoteStore::new(SharedClient::open(url, connect).expect("a URL"), protocol)
}

fn on_each(test: impl Fn(&Server) + Sync) {
    let servers = [Server::postgres(&[]), Server::redis(&DURABLE), Server::etcd()];
    thread::scope(|scope| {
        for server in servers.iter().flatten() {
            scope.spawn(|| test(server));
        }
    });
}

/// Repeats until the server answers again.
fn insist<T>(mut ask: impl FnMut() -> Result<T>) -> T {
    for _ in 0..3000 {
        match ask() {
            Ok(answer) => return answer,
            Err(error) => assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("the server is not heard of again");
}

/// Several stores on one connection, whose answers are lost, late or repeated: each gets the answer
/// about its own lease, or none.
#[test]
fn stores_with_one_connection_take_no_answer_to_another() {
    on_each(|server| {
        shared(&server.url()).init(InitMode::New).expect("it is empty");
        let proxy = Proxy::before(server.port);
        let url = server.url_of(proxy.port, PASSWORD);
        let mut holders: Vec<_> = (0..4)
            .map(|_| {
                let (mut store, token) = (shared(&url), Token::random());
                let lease = granted(&mut store, token, now());
                (store, token, lease)
            })
            .collect();
        for mode in [DROP, HOLD, REPEAT] {
            proxy.set(mode);
            thread::scope(|scope| {
                for (store, token, lease) in &mut holders {
                    scope.spawn(|| {
                        for _ in 0..3 {
                            is_own(renew(store, *token, lease.node_id, now()), *lease);
                            let other = Token::random();
                            if let Ok(Acquired::Granted { leases, .. }) =
                                acquire(store, other, 1, now())
                            {
                                // Nobody else has this node id.
                                let id = leases[0].node_id;
                                let given = insist(|| release(store, other, id, leases[0].start));
                                assert!(given <= 1);
                            }
                        }
                    });
                }
            });
            proxy.set(PASS);
            for (store, token, lease) in &mut holders {
                let renewed = insist(|| renew(store, *token, lease.node_id, now()));
                assert!(is_own(Ok(renewed), *lease), "the lease is still its own");
            }
        }
        let held: BTreeSet<u32> = holders.iter().map(|(.., lease)| lease.node_id).collect();
        assert_eq!(held.len(), holders.len());
    });
}

/// Checks that an answer, if there is one, is about this lease.
#[track_caller]
fn is_own(outcome: Result<Renewed>, lease: NodeLease) -> bool {
    match outcome {
        Ok(Renewed::Extended { leases, .. }) => {
            assert_eq!((leases[0].node_id, leases[0].start), (lease.node_id, lease.start));
            true
        }
        Ok(other) => panic!("the answer to another request: {other:?}"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
            false
        }
    }
}

fn leased(url: &str, ttl: u32, max_skew: u32) -> Leased {
    let location = Location::from(url);
    Leased::builder(location, &secret())
        .namespace("orders")
        .ttl(ttl)
        .max_skew(max_skew)
        .acquire_timeout(Duration::from_secs(60))
        .open()
        .expect("a lease")
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

#[test]
fn all_generators_of_a_url_have_one_connection() {
    let count_of = |server: &Server, is_postgres| -> usize {
        if is_postgres {
            let count = "select count(*) from pg_stat_activity where pid <> pg_backend_pid() \
                         and backend_type = 'client backend'";
            return server.psql(count).trim().parse().expect("a number");
        }
        server.redis_cli(&["client", "list"]).lines().count() - 1 // without that of the question
    };
    let servers = [(Server::postgres(&[]), true), (Server::redis(&DURABLE), false)];
    for (server, is_postgres) in servers {
        let Some(server) = server else { continue };
        shared(&server.url()).init(InitMode::New).expect("it is empty");
        eventually("it is closed", || count_of(&server, is_postgres) == 0);
        let url = server.url();
        let flakes: Vec<Leased> = thread::scope(|scope| {
            let leasing: Vec<_> = (0..20).map(|_| scope.spawn(|| leased(&url, 60, 10))).collect();
            leasing.into_iter().map(|it| it.join().expect("a lease")).collect()
        });
        assert_eq!(count_of(&server, is_postgres), 1);
        let held: BTreeSet<u32> = flakes.iter().flat_map(Leased::node_ids).collect();
        assert_eq!(held.len(), flakes.len());
        drop(flakes);
        eventually("it is closed", || count_of(&server, is_postgres) == 0);
    }
}

#[test]
fn generators_behind_pgbouncer() {
    let Some(server) = Server::postgres(&[]) else { return };
    shared_with(&server.url(), 3).init(InitMode::New).expect("it is empty");
    let test = |settings: &[&str]| {
        let Some((port, _pooler)) = server.pgbouncer(settings) else { return };
        let url = server.url_of(port, PASSWORD);
        let flakes = [(); 3].map(|()| leased(&url, 18, 3));
        let held: BTreeSet<u32> = flakes.iter().flat_map(Leased::node_ids).collect();
        assert_eq!(held.len(), flakes.len());
        eventually("all are renewed", || {
            let renewed = |flake: &Leased| flake.lease().is_some_and(|lease| lease.renewals > 0);
            flakes.iter().all(renewed)
        });
        for flake in &flakes {
            let error = flake.lease().and_then(|lease| lease.last_error);
            assert!(error.is_none(), "{settings:?}: {error:?}");
        }
    };
    // All at once: each waits for its renewals.
    thread::scope(|scope| {
        for settings in [
            &["pool_mode = transaction", "default_pool_size = 2"][..],
            &["pool_mode = session"],
            &["pool_mode = transaction", "ignore_startup_parameters = options"],
        ] {
            let test = &test;
            scope.spawn(move || test(settings));
        }
    });
}

/// Returns when told to, or fails at once.
struct Waits(Sender<()>, Receiver<()>);

impl Client for Waits {
    fn run(&mut self, _: &Statement) -> Result<Response> {
        self.0.send(()).expect("the test goes on");
        self.1.recv().expect("the test goes on");
        Ok(Response::Rows(vec![]))
    }

    fn discard(&mut self) {}
}

struct Answers;

impl Client for Answers {
    fn run(&mut self, _: &Statement) -> Result<Response> {
        Ok(Response::Rows(vec![]))
    }

    fn discard(&mut self) {}
}

/// A thread of the parent is running a statement.
#[test]
#[allow(unsafe_code, reason = "fork")]
fn a_child_makes_its_own_and_waits_for_nobody() {
    let statement = Statement { text: "", parameters: vec![], wait: None };
    let open = |client: Box<dyn Client>| SharedClient::open("test://forks", || Ok(client));
    let ((runs, running), (go, go_on)) = (mpsc::channel(), mpsc::channel());
    let mut one = open(Box::new(Waits(runs, go_on))).expect("made");
    let mut inherited = open(Box::new(Answers)).expect("the same one");
    thread::scope(|scope| {
        let asked = scope.spawn(|| one.run(&statement));
        running.recv().expect("it runs");
        // SAFETY: the child calls the code under test, and exits without unwinding.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // The parent's client would wait forever.
            let refused = inherited.run(&statement).map_err(|error| error.kind());
            drop(inherited);
            let is_refused = refused == Err(ErrorKind::Forked);
            let answered = open(Box::new(Answers)).and_then(|mut own| own.run(&statement));
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(answered.is_err() || !is_refused)) };
        }
        let mut status = 0;
        // SAFETY: the child from above, and a place for its status.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0), "the child got no answer");
        go.send(()).expect("it waits");
        let response: Result<Response, Error> = asked.join().expect("no panic");
        assert_eq!(response.expect("answered"), Response::Rows(vec![]));
    });
}
