//! The stores with a server pass the conformance tests, against real servers.

#![cfg(target_os = "linux")]

mod common;
mod languages;
mod servers;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use common::{
    Dated, Dial, SECOND, START, acquire, assert_disjoint, granted, namespace, release, renew,
    secret,
};
use randflake::{Clock, ErrorKind, Layout, SystemClock, layout};
use randflake_leases::{
    Acquire, Acquired, EtcdClient, Fence, InitMode, LeaseStore, Leased, Location, MysqlClient,
    Namespace, NodeLease, NodeRanges, Note, Operation, PostgresClient, RedisClient, Renew, Renewed,
    Result, Token,
    operator::{self, Target},
    remote::{Client, Protocol, RemoteStore, Response, Statement},
};
use servers::Server;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn now() -> i64 {
    SystemClock.now().expect("a clock") / SECOND
}

/// A client of each kind, and the source of its time.
enum Subject<'a> {
    Postgres(&'a Server),
    Mysql(&'a Server),
    Redis(&'a Server),
    Etcd(&'a Server, Dial),
}

/// Makes the namespace and the connection before the time of the first request is read.
fn made<C: Client + 'static>(mut store: RemoteStore<C>) -> Box<dyn LeaseStore> {
    // The first operation finds out whose namespace it is.
    let _theirs = store.init(InitMode::New);
    Box::new(store)
}

/// A store under test, whose server and clients take their time from a dial.
struct Conforming<'a, C> {
    client: &'a (dyn Fn() -> C + Sync),
    protocol: fn(Namespace) -> Protocol,
    dial: Dial,
}

impl<C: Client + 'static> randflake_conformance::Subject for Conforming<'_, C> {
    fn client(&self, namespace: &Namespace) -> Box<dyn LeaseStore> {
        let client = Dated((self.client)(), self.dial.clone());
        let protocol = (self.protocol)(namespace.clone());
        made(RemoteStore::new(client, protocol).clock(self.dial.clock()))
    }

    fn now(&self) -> i64 {
        self.dial.now()
    }

    fn pass(&self, seconds: u32) {
        self.dial.pass(seconds);
    }
}

/// All tests at once, each with its own time.
fn check_all<C: Client + 'static>(
    client: &(dyn Fn() -> C + Sync),
    protocol: fn(Namespace) -> Protocol,
) {
    thread::scope(|scope| {
        let tests = randflake_conformance::ALL.iter().chain(randflake_conformance::COUNTERS);
        let started = tests.enumerate().map(|(number, test)| {
            let run = move || test(&Conforming { client, protocol, dial: Dial::new(START) });
            (format!("conformance test {number}"), scope.spawn(run))
        });
        join(started.collect());
    });
}

/// Waits for threads. If some panic, so does this one: with what all of them said, so that it is the
/// last that is printed.
fn join(threads: Vec<(String, ScopedJoinHandle<'_, ()>)>) {
    let failed = threads.into_iter().filter_map(|(name, thread)| {
        let panicked = thread.join().err()?;
        let said = panicked.downcast::<String>().map_or_else(|_| "see above".to_owned(), |it| *it);
        Some(format!("{name}: {said}"))
    });
    let failed: Vec<_> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

impl Subject<'_> {
    fn server(&self) -> &Server {
        let (Self::Postgres(server)
        | Self::Mysql(server)
        | Self::Redis(server)
        | Self::Etcd(server, _)) = self;
        server
    }

    fn connect(&self) -> Box<dyn Client> {
        let url = &self.server().url();
        match self {
            Self::Postgres(_) => {
                Box::new(PostgresClient::new(url).expect("a URL").timeout(PATIENCE))
            }
            Self::Mysql(_) => Box::new(MysqlClient::new(url).expect("a URL").timeout(PATIENCE)),
            Self::Redis(_) => Box::new(RedisClient::new(url).expect("a URL").timeout(PATIENCE)),
            Self::Etcd(..) => Box::new(EtcdClient::new(url).expect("a URL").timeout(PATIENCE)),
        }
    }

    fn protocol(&self) -> fn(Namespace) -> Protocol {
        match self {
            Self::Postgres(_) => Protocol::postgres,
            Self::Mysql(_) => Protocol::mysql,
            Self::Redis(_) => Protocol::redis,
            Self::Etcd(..) => Protocol::etcd,
        }
    }

    fn client(&self, namespace: &Namespace) -> Box<dyn LeaseStore> {
        let protocol = self.protocol()(namespace.clone());
        match self {
            Self::Etcd(_, dial) => {
                let client = Dated(self.connect(), dial.clone());
                let protocol = protocol.create(true).expect("may be made");
                Box::new(RemoteStore::new(client, protocol).clock(dial.clock()))
            }
            _ => made(RemoteStore::new(self.connect(), protocol)),
        }
    }

    fn now(&self) -> i64 {
        match self {
            Self::Etcd(_, dial) => dial.now(),
            _ => now(),
        }
    }
}

#[test]
fn every_store_passes_the_conformance_tests() {
    on_each(|subject| {
        check_all(&|| subject.connect(), subject.protocol());
    });
}

/// Runs a test on each kind of server that is installed, on the clock of the world or near it.
fn on_each(test: impl Fn(&Subject<'_>) + Sync) {
    thread::scope(|scope| {
        let postgres = scope.spawn(|| {
            if let Some(server) = Server::postgres(&[]) {
                test(&Subject::Postgres(&server));
            }
        });
        let mariadb = scope.spawn(|| {
            if let Some(server) = Server::mariadb(&[]) {
                test(&Subject::Mysql(&server));
            }
        });
        let redis = scope.spawn(|| {
            if let Some(server) = Server::redis(&["--appendonly", "yes"]) {
                test(&Subject::Redis(&server));
            }
        });
        let etcd = scope.spawn(|| {
            if let Some(server) = Server::etcd() {
                test(&Subject::Etcd(&server, Dial::new(now())));
            }
        });
        let all = [("postgres", postgres), ("mariadb", mariadb), ("redis", redis), ("etcd", etcd)];
        join(all.map(|(name, thread)| (name.to_owned(), thread)).into());
    });
}

/// Sixteen clients and twenty node ids, with leases so short that some end before they are
/// released.
#[test]
fn no_two_clients_share_a_node_id_under_contention() {
    on_each(|subject| {
        let namespace = Namespace::new("crowd", &secret())
            .and_then(|namespace| {
                namespace.max_skew(0)?.max_ttl(1)?.node_ids(NodeRanges::up_to(19))
            })
            .expect("within the limits");
        // Three seconds, or longer on a busy machine, until enough has happened.
        let (began, until) = (now(), now() + 60);
        let stamped = Mutex::new(Vec::<NodeLease>::new());
        let seen_enough = || {
            let stamped = stamped.lock().expect("no panic");
            let distinct: BTreeSet<u32> = stamped.iter().map(|lease| lease.node_id).collect();
            now() > began + 2 && distinct.len() == 20 && stamped.len() > 40
        };
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let mut store = subject.client(&namespace);
                    while !seen_enough() && now() < until {
                        if let Subject::Etcd(_, dial) = subject {
                            dial.set(now());
                        }
                        let lived = a_life(&mut *store);
                        stamped.lock().expect("no panic").extend(lived);
                    }
                });
            }
        });
        assert!(seen_enough(), "all of them were wanted");
        let stamped = stamped.into_inner().expect("no panic");
        assert_disjoint(stamped);
    });
}

/// Acquires, repeats the request, may renew, and then releases or disappears.
fn a_life(store: &mut dyn LeaseStore) -> Option<NodeLease> {
    let token = Token::random();
    let [renews, gives_back, used, ..] = *token.as_bytes();
    let note = Note::default();
    let ask = Acquire { token, want: 1, ttl: 1, client_now: now(), note };
    let reply = store.acquire(&ask).expect("the server answers");
    let outcome = reply.answer_to(token, Operation::Acquire).expect("bound");
    let Acquired::Granted { leases, .. } = outcome else {
        // Around a second boundary the clocks may differ by one, and here no skew is allowed.
        thread::sleep(Duration::from_millis(10));
        return None;
    };
    let mut lease = leases[0];
    if renews < 128 {
        let ask =
            Renew { token, node_ids: vec![lease.node_id], ttl: 1, client_now: now(), next: None };
        let reply = store.renew(&ask).expect("the server answers");
        if let Renewed::Extended { leases, .. } =
            reply.answer_to(token, Operation::Renew).expect("bound")
        {
            assert_eq!(leases[0].start, lease.start);
            lease = leases[0];
        }
    }
    if gives_back < 192 {
        let used_until = lease.start + i64::from(used % 2);
        release(store, token, lease.node_id, used_until).expect("the server answers");
        lease.end_exclusive = used_until.clamp(lease.start, lease.end_exclusive);
    }
    Some(lease)
}

#[test]
fn thousands_at_once_get_a_node_id_each() {
    const CLIENTS: usize = 16;
    on_each(|subject| {
        // The other clients, not optimised, take longer than their servers: `make bench-stores`
        // asks each for ten thousand.
        let each = if matches!(subject, Subject::Redis(_)) { 10_000 } else { 2_000 } / CLIENTS;
        let client = || {
            let mut store = subject.client(&namespace(layout::MAX_NODE_ID));
            let grant = |_| granted(&mut *store, Token::random(), subject.now());
            (0..each).map(grant).collect::<Vec<_>>()
        };
        let leases: Vec<NodeLease> = thread::scope(|scope| {
            let clients = [(); CLIENTS].map(|()| scope.spawn(client));
            clients.into_iter().flat_map(|client| client.join().expect("it goes well")).collect()
        });
        let distinct: BTreeSet<u32> = leases.iter().map(|lease| lease.node_id).collect();
        assert_eq!(distinct.len(), CLIENTS * each);
    });
}

/// The last few of thousands of node ids are free: an acquire finds them, and then reports when the
/// next one will be free. One request renews the thousands.
#[test]
fn the_last_node_ids_are_found() {
    on_each(|subject| {
        // More node ids than one statement tries.
        let count: u32 = match subject {
            Subject::Mysql(_) => 200, // each written separately
            Subject::Etcd(..) => 1500,
            Subject::Postgres(_) | Subject::Redis(_) => 5000,
        };
        let namespace = Namespace::new("full", &secret())
            .and_then(|namespace| namespace.max_ttl(600)?.node_ids(NodeRanges::up_to(count - 1)))
            .expect("within the limits");
        let mut store = subject.client(&namespace);
        let token = Token::random();
        let many = granted_many(&mut *store, token, count - 10, subject.now());
        assert_eq!(many.len(), count as usize - 10);
        let mut distinct: BTreeSet<u32> = many.iter().map(|lease| lease.node_id).collect();
        for _ in 0..3 {
            let last = granted_many(&mut *store, Token::random(), 3, subject.now());
            assert_eq!(last.len(), 3);
            distinct.extend(last.iter().map(|lease| lease.node_id));
        }
        let last = granted_many(&mut *store, Token::random(), 3, subject.now());
        assert_eq!(last.len(), 1, "what is left");
        distinct.extend(last.iter().map(|lease| lease.node_id));
        assert_eq!(distinct.len(), count as usize);
        let outcome = acquire(&mut *store, Token::random(), 3, subject.now());
        let Ok(Acquired::Busy { free_at, .. }) = outcome else { panic!("{outcome:?}") };
        let first_end = many.iter().map(|lease| lease.end_exclusive).min();
        assert_eq!(free_at, first_end);
        let node_ids: Vec<u32> = many.iter().map(|lease| lease.node_id).collect();
        let renewal = Renew { token, node_ids, ttl: 600, client_now: subject.now(), next: None };
        let renewed = store.renew(&renewal).expect("the server answers").outcome;
        let Renewed::Extended { leases, .. } = renewed else { panic!("{renewed:?}") };
        assert_eq!(leases.len(), many.len());
    });
}

fn granted_many(store: &mut dyn LeaseStore, token: Token, want: u32, now: i64) -> Vec<NodeLease> {
    match acquire(store, token, want, now) {
        Ok(Acquired::Granted { leases, .. }) => leases,
        other => panic!("node ids are free, yet: {other:?}"),
    }
}

/// Counts the statements that it runs.
struct Counting<C>(C, Arc<AtomicUsize>);

impl<C: Client> Client for Counting<C> {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.run(statement)
    }

    fn discard(&mut self) {
        self.0.discard();
    }
}

#[test]
fn an_operation_is_one_round_trip() {
    on_each(|subject| {
        let count = Arc::new(AtomicUsize::new(0));
        let namespace = namespace(layout::MAX_NODE_ID);
        drop(subject.client(&namespace)); // made, in Redis
        let client = Counting(subject.connect(), Arc::clone(&count));
        let mut store = RemoteStore::new(client, subject.protocol()(namespace));
        if !matches!(subject, Subject::Redis(_)) {
            store = store.create(true).expect("may be made");
        }
        let store: &mut dyn LeaseStore = &mut store;
        granted(store, Token::random(), now());
        count.store(0, Ordering::Relaxed);
        let token = Token::random();
        let Ok(Acquired::Granted { leases, .. }) = acquire(store, token, 3, now()) else {
            panic!("everything is free");
        };
        // etcd shows its clock in an answer, which is compared before anything is written. MySQL
        // writes each node id separately.
        let (three, one) = match subject {
            Subject::Postgres(_) | Subject::Redis(_) => (1, 1),
            Subject::Etcd(..) => (2, 2),
            Subject::Mysql(_) => (3, 1),
        };
        assert_eq!(count.swap(0, Ordering::Relaxed), three, "acquire");
        renew(store, token, leases[0].node_id, now()).expect("the server answers");
        assert_eq!(count.swap(0, Ordering::Relaxed), one, "renew");
        release(store, token, leases[0].node_id, 0).expect("the server answers");
        assert_eq!(count.swap(0, Ordering::Relaxed), 1, "release");
    });
}

/// With only a URL: two generators and a plain holder share all node ids of the layout, each one
/// once, and a holder with a secret or another layout gets none.
#[test]
fn a_layout_is_leased_for_in_every_store() {
    on_each(|subject| {
        let layout = Layout::twitter();
        let namespace = Namespace::for_layout("posts", layout).expect("a name");
        // Repeatedly, on a busy machine.
        let init = |_| Location::from(subject.server().url()).init(&namespace, InitMode::New);
        let made: Vec<_> = (0..20).map(init).skip_while(Result::is_err).take(1).collect();
        assert_eq!(made, [Ok(())]);
        let mut store = subject.client(&namespace);
        let held = granted(&mut *store, Token::random(), subject.now()).node_id;
        let patient = |layout| {
            let builder = Leased::for_layout(subject.server().url(), layout).namespace("posts");
            builder.acquire_timeout(PATIENCE)
        };
        let flakes = [(); 2].map(|()| patient(layout).open().expect("node ids are free"));
        let mut node_ids = vec![held];
        for flake in &flakes {
            let lease = flake.lease().expect("open");
            let mut ids = [0; 1000];
            flake.fill(&mut ids).expect("the lease has just begun");
            assert!(ids.is_sorted_by(|a, b| a < b));
            let seconds = lease.start..lease.end_exclusive;
            for parts in ids.map(|id| flake.inspect(id).expect("its own")) {
                assert_eq!([parts.node_id][..], lease.node_ids);
                assert!(seconds.contains(&parts.unix_ms.div_euclid(1000)), "{parts:?}");
            }
            node_ids.extend(lease.node_ids);
        }

        let others = granted_many(&mut *store, Token::random(), 2000, subject.now());
        node_ids.extend(others.iter().map(|lease| lease.node_id));
        node_ids.sort_unstable();
        assert!(node_ids.into_iter().eq(0..1024), "those of the layout, each one once");
        let outcome = acquire(&mut *store, Token::random(), 1, subject.now());
        assert!(matches!(outcome, Ok(Acquired::Busy { .. })), "{outcome:?}");

        let url = subject.server().url();
        let encrypted = Leased::builder(url, &secret()).namespace("posts");
        let encrypted = encrypted.acquire_timeout(PATIENCE).open().map(drop);
        for refused in [encrypted, patient(Layout::discord()).open().map(drop)] {
            let error = refused.expect_err("has another layout");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.to_string().contains(&format!("the layout {layout}, not")), "{error}");
        }

        // A successor may begin in the second after the last id's.
        let [flake, _] = flakes;
        let (node_id, last) = (flake.node_ids()[0], flake.generate().expect("an id"));
        let last = flake.inspect(last).expect("its own").unix_ms.div_euclid(1000);
        flake.close();
        let given_back = || {
            let listed = operator::inspect(&mut *subject.client(&namespace), node_id);
            listed.expect("the server answers").nodes[0]
        };
        for _ in 0..6000 {
            if !given_back().held {
                break;
            }
            thread::sleep(Duration::from_millis(10)); // the machine is busy
        }
        let node = given_back();
        assert_eq!((node.held, node.lease.end_exclusive), (false, last + 1));
    });
}

/// Runs a statement bypassing the store, as an operator with a shell could.
fn run_directly(subject: &Subject<'_>, text: &'static str, parameters: &[&str]) {
    let statement = Statement {
        text,
        parameters: parameters.iter().map(ToString::to_string).collect(),
        wait: None,
    };
    let response = subject.connect().run(&statement);
    assert!(matches!(response, Ok(Response::Rows(_))), "{response:?}");
}

/// Makes a lease and a fence with a clock that is ten years ahead.
fn poison(subject: &Subject<'_>, store: &mut dyn LeaseStore) -> u32 {
    const YEARS: i64 = 315_360_000;
    if let Subject::Etcd(_, dial) = subject {
        dial.set(now() + YEARS);
        let lease = granted(store, Token::random(), dial.now());
        let _bound = store.fence(&Fence { token: Token::random() }).expect("the server answers");
        dial.set(now());
        return lease.node_id;
    }
    let node_id = granted(store, Token::random(), now()).node_id;
    let [floor, renew_above] = [YEARS, YEARS - 300].map(|ahead| (now() + ahead).to_string());
    match subject {
        Subject::Postgres(_) => {
            let shift = r"update randflake_leases.entry set value = case
                when key = 'meta' then regexp_replace(
                    value, '^(\S+ \S+ \S+) \S+ \S+', '\1 ' || $2::text || ' ' || $3::text
                ) else concat(
                    split_part(value, ' ', 1)::bigint + 315360000, ' ',
                    split_part(value, ' ', 2)::bigint + 315360000, ' ',
                    regexp_replace(value, '^\S+ \S+ ', '')
                ) end
            where namespace = $1::text";
            run_directly(subject, shift, &["orders", &floor, &renew_above]);
        }
        Subject::Mysql(_) => {
            let shift = "update randflake_entry set writes = writes + 1, value = if(
                    name = 'meta',
                    concat_ws(
                        ' ', substring_index(value, ' ', 3), ?, ?,
                        substring(value, length(substring_index(value, ' ', 5)) + 2)
                    ),
                    concat_ws(
                        ' ', cast(substring_index(value, ' ', 1) as unsigned) + 315360000,
                        cast(substring_index(substring_index(value, ' ', 2), ' ', -1) as unsigned)
                            + 315360000,
                        substring(value, length(substring_index(value, ' ', 2)) + 2)
                    )
                )
                where namespace = ?";
            run_directly(subject, shift, &[&floor, &renew_above, "orders"]);
        }
        Subject::Redis(_) => {
            let shift = "for _, key in ipairs(redis.call('HKEYS', KEYS[1])) do
              local text = redis.call('HGET', KEYS[1], key)
              if key == 'meta' then
                text = string.gsub(text, '^(%S+ %S+ %S+) %S+ %S+', '%1 ' .. ARGV[1] .. ' ' .. ARGV[2])
              else
                text = string.gsub(text, '^(%d+) (%d+)', function(stop, start)
                  return string.format('%d %d', stop + 315360000, start + 315360000)
                end)
              end
              redis.call('HSET', KEYS[1], key, text)
            end
            return 'OK'";
            run_directly(
                subject,
                "EVAL",
                &[shift, "1", "randflake:{orders}", &floor, &renew_above],
            );
        }
        Subject::Etcd(..) => unreachable!("its clock is a dial"),
    }
    node_id
}

#[test]
fn what_a_wrong_clock_has_set_is_seen_and_repaired() {
    on_each(|subject| {
        let mut holder = subject.client(&namespace(0));
        let node_id = poison(subject, &mut *holder);
        let name = Namespace::for_operator("orders").expect("a name");
        let store = &mut *subject.client(&name);

        let listed = operator::list(store).expect("the server answers");
        let end = listed.nodes[0].lease.end_exclusive;
        assert!(listed.is_implausible(end) && listed.is_floor_implausible(), "{listed:?}");
        assert_eq!(listed.counts().implausible, 1);
        assert_eq!(listed.nodes[0].note.as_str(), "a test");
        let error = operator::release_dead(store, listed.nodes[0].lease)
            .expect_err("may have stamped more");
        assert!(error.to_string().ends_with("repair it"), "{error}");
        let low = Some(listed.now);
        for target in [Target::Node(node_id), Target::Floor] {
            let error = operator::repair(store, target, low).expect_err("too low");
            assert!(error.to_string().contains("no less than"), "{error}");
        }

        // A bound that the operator chose, and then the lowest one.
        let high = end - 1000;
        let shortened =
            operator::repair(store, Target::Node(node_id), Some(high)).expect("it is implausible");
        assert_eq!((shortened.from, shortened.to), (end, high));
        let floor = operator::repair(store, Target::Floor, None).expect("it is implausible");
        let shortened =
            operator::repair(store, Target::Node(node_id), None).expect("it is implausible");
        let listed = operator::list(store).expect("the server answers");
        let last_grant = i64::from(listed.last_grant);
        assert_eq!((shortened.to, floor.to), (shortened.now + 305, floor.now + 305 + last_grant));
        assert!(!listed.nodes[0].held, "{listed:?}");
        assert_eq!(listed.nodes[0].lease.end_exclusive, shortened.to);
        assert!(listed.nodes[0].lease.start <= shortened.to, "{listed:?}");
        assert_eq!((listed.floor, listed.renew_above), (floor.to, floor.now + 5 + last_grant));
        assert_eq!(listed.counts().implausible, 0);
    });
}

/// Runs each statement twice, like a client that has lost an answer and tries again.
struct Twice<C>(C);

impl<C: Client> Client for Twice<C> {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        let _lost = self.0.run(statement);
        self.0.run(statement)
    }

    fn discard(&mut self) {
        self.0.discard();
    }
}

/// An operation that was done is not reported as refused just because it was requested twice.
#[test]
fn an_operator_whose_client_repeats_itself_hears_what_was_done() {
    on_each(|subject| {
        let mut holder = subject.client(&namespace(9));
        let lease = granted(&mut *holder, Token::random(), subject.now());
        let name = Namespace::for_operator("orders").expect("a name");
        let client = Twice(subject.connect());
        let mut store: Box<dyn LeaseStore> = match subject {
            Subject::Etcd(_, dial) => {
                let client = Dated(client, dial.clone());
                Box::new(RemoteStore::new(client, Protocol::etcd(name)).clock(dial.clock()))
            }
            _ => Box::new(RemoteStore::new(client, subject.protocol()(name))),
        };
        let shortened = operator::release_dead(&mut *store, lease).expect("it is held");
        assert_eq!((shortened.from, shortened.to), (lease.end_exclusive, shortened.now + 107));
        let error = operator::release_dead(&mut *store, lease).expect_err("asked again");
        assert!(error.to_string().contains("no holder"), "{error}");

        let node_id = poison(subject, &mut *holder);
        let bound = now() + 1000;
        for target in [Target::Node(node_id), Target::Floor] {
            let shortened =
                operator::repair(&mut *store, target, Some(bound)).expect("it is implausible");
            assert_eq!(shortened.to, bound, "{target:?}");
        }
        let listed = operator::list(&mut *store).expect("the server answers");
        let node = listed.nodes.iter().find(|node| node.lease.node_id == node_id);
        let node = node.expect("it was leased");
        assert_eq!((node.held, node.lease.end_exclusive), (false, bound), "{listed:?}");
    });
}

#[test]
fn all_node_ids_are_listed() {
    on_each(|subject| {
        let namespace = namespace(layout::MAX_NODE_ID);
        let mut holder = subject.client(&namespace);
        let mut count = 131_072;
        match subject {
            Subject::Postgres(_) => run_directly(
                subject,
                "insert into randflake_leases.entry (namespace, key, value)
                select $1::text, 'node/' || lpad(node_id::text, 6, '0'),
                    '1763640300 1763640000 ' || repeat('0', 32) || ' - host-' || node_id || ':4711'
                from generate_series(0, 131071) as node_id",
                &["orders"],
            ),
            Subject::Mysql(_) => run_directly(
                subject,
                "insert into randflake_entry (namespace, name, value, writes)
                with recursive number as (
                    select 0 as n union all select n + 1 from number where n < 511
                )
                select ?, concat('node/', lpad(256 * high.n + low.n, 6, '0')), concat(
                    '1763640300 1763640000 ', repeat('0', 32), ' - host-', 256 * high.n + low.n,
                    ':4711'
                ), 0
                from number as high inner join number as low on low.n < 256",
                &["orders"],
            ),
            Subject::Redis(_) => {
                let fill = "for id = 0, 131071 do redis.call('HSET', KEYS[1], \
                            string.format('node/%06d', id), '1763640300 1763640000 ' .. \
                            string.rep('0', 32) .. ' - host-' .. id .. ':4711') end return 'OK'";
                run_directly(subject, "EVAL", &[fill, "1", "randflake:{orders}"]);
            }
            Subject::Etcd(..) => {
                count = 1100; // on three pages
                let many = granted_many(&mut *holder, Token::random(), count, subject.now());
                assert_eq!(many.len(), 1100);
            }
        }
        let listed = operator::list(&mut *holder).expect("the server answers");
        assert_eq!(listed.nodes.len(), count as usize);
        assert!(listed.nodes.is_sorted_by(|a, b| a.lease.node_id < b.lease.node_id));
        if count == 131_072 {
            let last = &listed.nodes[131_071];
            assert_eq!((last.note.as_str(), last.held), ("host-131071:4711", false));
            assert_eq!(
                last.lease,
                NodeLease { node_id: 131_071, start: START, end_exclusive: START + 300 }
            );
            assert_eq!(listed.counts().free, count);
        } else {
            assert_eq!(listed.counts().held, count);
        }
    });
}
