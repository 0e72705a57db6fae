//! What is specific to MySQL and MariaDB: promoted replicas, settings, locks, and how a session
//! reads texts. Against real servers.

#![cfg(target_os = "linux")]
#![allow(clippy::doc_markdown, reason = "MySQL is a name")]

mod common;
mod servers;

use std::{collections::BTreeSet, thread, time::Duration};

use common::{SECOND, acquire, granted, namespace, release, renew, secret};
use randflake::{Clock, ErrorKind, SystemClock};
use randflake_leases::{
    Acquired, InitMode, LeaseStore, MysqlClient, Namespace, NodeRanges, Renewed, Token,
    remote::{Protocol, RemoteStore},
};
use servers::Server;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn now() -> i64 {
    SystemClock.now().expect("a clock") / SECOND
}

fn store_of(server: &Server, namespace: Namespace) -> RemoteStore<MysqlClient> {
    let client = MysqlClient::new(&server.url()).expect("a URL").timeout(PATIENCE);
    RemoteStore::new(client, Protocol::mysql(namespace))
}

fn new_store(server: &Server) -> RemoteStore<MysqlClient> {
    let mut store = store_of(server, namespace(0));
    store.init(InitMode::New).expect("it is empty");
    store
}

fn eventually(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("not within a minute: {what}");
}

/// A server that waits for its binary log.
fn primary(id: &str) -> Option<Server> {
    Server::mariadb(&["--log-bin=log", &format!("--server-id={id}"), "--sync-binlog=1"])
}

fn follow(replica: &Server, primary: &Server) {
    replica.mysql_cli(&format!(
        "change master to master_host = '127.0.0.1', master_port = {}, master_user = 'randflake', \
         master_password = '{}', master_use_gtid = slave_pos; start slave",
        primary.port,
        servers::PASSWORD
    ));
    caught_up(replica, primary);
}

fn caught_up(replica: &Server, primary: &Server) {
    let position = "select concat(@@gtid_current_pos, '')";
    eventually("the replica has all", || {
        replica.mysql_cli(position) == primary.mysql_cli(position)
    });
}

/// A replica that lacks the last grants is promoted: it grants nothing until they have ended,
/// renews only what was clearly running, and can tell its successor from its predecessor.
#[test]
fn a_promoted_replica_begins_with_a_quarantine() {
    let Some(old) = primary("1") else { return };
    let new = primary("2").expect("as the other");
    let mut before = new_store(&old);
    follow(&new, &old);
    eventually("the replica has it", || {
        new.mysql_cli("show tables like 'randflake_entry'") == "randflake_entry"
    });
    new.mysql_cli("set global read_only = 1; stop slave sql_thread");
    let (token, lost) = (Token::random(), granted(&mut before, Token::random(), now()));

    // As a replica it grants nothing; read_only does not stop `randflake`, who has all rights.
    new.mysql_cli("stop slave; reset slave all; set global read_only = 0");
    old.mysql_cli("set global read_only = 1");
    let mut after = store_of(&new, namespace(0));
    let outcome = acquire(&mut after, token, 1, now());
    let Ok(Acquired::Quarantined { until, .. }) = outcome else { panic!("{outcome:?}") };
    assert!(until >= lost.end_exclusive, "{until} {lost:?}");
    // A client that comes from the old server sees the same.
    let outcome = renew(&mut after, token, 0, now());
    assert!(matches!(outcome, Ok(Renewed::Lost { .. })), "{outcome:?}");
}

/// A primary whose successor granted nothing, and which comes back after replicating from it, finds
/// its own name in the table. What shows the change is that it has since followed another server.
#[test]
fn a_primary_that_was_a_replica_meanwhile_begins_with_a_quarantine() {
    let Some(first) = primary("1") else { return };
    let second = primary("2").expect("as the other");
    let mut store = new_store(&first);
    follow(&second, &first);
    let token = Token::random();
    let lease = granted(&mut store, token, now());
    caught_up(&second, &first);
    // Nobody asks the second server while it is the primary. The first follows it, then comes back.
    second.mysql_cli("stop slave; reset slave all");
    first.mysql_cli("set global gtid_slave_pos = @@gtid_binlog_pos");
    follow(&first, &second);
    second.mysql_cli("create table another (it int)");
    caught_up(&first, &second);
    first.mysql_cli("stop slave; reset slave all");
    let outcome = acquire(&mut store_of(&first, namespace(0)), Token::random(), 1, now());
    let Ok(Acquired::Quarantined { until, .. }) = outcome else { panic!("{outcome:?}") };
    assert!(until >= lease.end_exclusive, "{until} {lease:?}");
}

/// How a session reads texts, and what it calls its server, does not make it another server.
#[test]
fn a_server_is_the_same_whatever_a_session_says() {
    let Some(server) = primary("1") else { return };
    let mut store = new_store(&server);
    let token = Token::random();
    let lease = granted(&mut store, token, now());
    let of_server = include_str!("../src/stores/mysql/server.sql");
    let of_session =
        |setting: &str| server.mysql_cli(&format!("set {setting}; select {of_server}"));
    let usual = of_session("names utf8mb4");
    for setting in [
        "names binary",
        "session server_id = 7",
        "names latin1",
        "character_set_connection = utf16",
    ] {
        assert_eq!(of_session(setting), usual, "{setting}");
    }
    let renewed = renew(&mut store, token, lease.node_id, now());
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
}

#[test]
fn a_table_of_another_engine_is_refused() {
    let Some(server) = Server::mariadb(&[]) else { return };
    new_store(&server);
    server.mysql_cli("alter table randflake_entry engine = Aria");
    let outcome = acquire(&mut store_of(&server, namespace(0)), Token::random(), 1, now());
    let error = outcome.expect_err("not tested");
    assert_eq!(error.kind(), ErrorKind::WeakStore, "{error}");
    assert!(error.to_string().contains("engine = InnoDB"), "{error}");
}

#[test]
fn a_server_that_may_lose_what_it_has_granted_is_refused() {
    for (arguments, what) in [
        (&["--innodb-flush-log-at-trx-commit=2"][..], "innodb_flush_log_at_trx_commit is 2"),
        (&["--skip-innodb-doublewrite"], "innodb_doublewrite is off"),
        (&["--log-bin=log"], "sync_binlog is 0"),
        (
            &["--log-bin=log", "--sync-binlog=1", "--binlog-format=STATEMENT"],
            "binlog_format is STATEMENT",
        ),
    ] {
        let Some(server) = Server::mariadb(arguments) else { return };
        let error = store_of(&server, namespace(0)).init(InitMode::New).expect_err(what);
        assert_eq!(error.kind(), ErrorKind::WeakStore, "{error}");
        assert!(error.to_string().contains(what), "{error}");
        let mut allowed = store_of(&server, namespace(0)).allow_weak_store(true);
        allowed.init(InitMode::New).expect("it is allowed");
        granted(&mut allowed, Token::random(), now());
    }
}

/// A write that waits for a lock for longer than clocks may differ is not done when the lock is
/// free again.
#[test]
fn what_waits_for_too_long_is_not_written() {
    let Some(server) = Server::mariadb(&[]) else { return };
    let (mut store, token) = (new_store(&server), Token::random());
    let lease = granted(&mut store, token, now());
    let text = || server.mysql_cli("select value from randflake_entry where name like 'node/%'");
    let before = text();
    thread::scope(|scope| {
        // Holds the row for longer than the skew of 5 seconds plus rounding.
        scope.spawn(|| {
            server.mysql_cli(
                "begin; select 1 from randflake_entry where name like 'node/%' for update; \
                 select sleep(10); rollback",
            )
        });
        // Not with `innodb_trx`: asked more often than every 100 ms, it repeats its last answer.
        eventually("the row is locked", || {
            let asleep =
                "select count(*) from information_schema.processlist where state = 'User sleep'";
            server.mysql_cli(asleep) != "0"
        });
        let outcome = renew(&mut store, token, lease.node_id, now());
        // By then it is decided anew, with a new reading of the clock.
        let renewed = outcome.is_ok_and(|outcome| matches!(outcome, Renewed::Extended { .. }));
        assert_eq!(text() != before, renewed);
    });
    let after = renew(&mut store, token, lease.node_id, now()).expect("the server answers");
    assert!(matches!(after, Renewed::Extended { .. }), "{after:?}");
    assert_eq!(release(&mut store, token, lease.node_id, lease.start), Ok(1));
}

/// Names stay distinct that another collation considers equal, and names that another character set
/// or mode reads differently stay what they are.
#[test]
fn a_name_is_what_it_is_whatever_the_server_makes_of_texts() {
    for arguments in [
        &["--character-set-server=latin1", "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES"][..],
        &["--character-set-server=utf8mb4", "--sql-mode=", "--transaction-isolation=SERIALIZABLE"],
        &["--lower-case-table-names=1", "--transaction-isolation=READ-UNCOMMITTED"],
    ] {
        let Some(server) = Server::mariadb(arguments) else { return };
        let secret = secret();
        let names = ["orders", "Orders", "größe", "grösse", "o'clock", "a\\b", "100 %", "what?"];
        let mut held = BTreeSet::new();
        for _ in 0..2 {
            for name in names {
                let namespace = Namespace::new(name, &secret)
                    .and_then(|namespace| namespace.node_ids(NodeRanges::up_to(1)))
                    .expect("a name");
                let mut store = store_of(&server, namespace);
                store.init(InitMode::New).expect("it can be made");
                let lease = granted(&mut store, Token::random(), now());
                assert!(held.insert((name, lease.node_id)), "{name}: {lease:?}");
                let listed = store.list(&randflake_leases::operator::List {
                    token: Token::random(),
                    node_id: None,
                });
                assert!(listed.is_ok(), "{name}: {listed:?}");
            }
        }
        assert_eq!(held.len(), 2 * names.len());
    }
}
