//! Answers that a server might give but none should.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use randflake::{ErrorKind, Result, Secret, layout};
use serde_json::json;

use super::{
    candidates::ranges,
    table::Table,
    text::{Key, Meta, node_text},
    *,
};
use crate::{
    namespace::{InitMode, Namespace, NamespaceMetadata},
    node_ranges::NodeRanges,
    note::Note,
    protocol::{
        Acquire, Acquired, Fence, List, NodeLease, Release, ReleaseDead, Released, Renew, Renewed,
        outcome_of,
    },
    row::Row,
    rules::Quarantine,
    stores::{etcd, postgres},
    token::{Token, random_bytes},
};

const NOW: i64 = 1_763_640_000;
const SECRET: &str = "dffd6021bb2bd5b0af676290809ec3a5";

fn namespace() -> Namespace {
    let secret: Secret = SECRET.parse().expect("a secret");
    Namespace::new("orders", &secret).expect("a name")
}

fn request() -> Acquire {
    let note = Note::default();
    Acquire { token: Token::random(), want: 1, ttl: 300, client_now: NOW, note }
}

/// Answers each statement until the exchange ends.
fn converse<T>(
    mut exchange: Exchange<T>,
    mut server: impl FnMut(usize, &Statement) -> Response,
) -> Result<T> {
    let mut progress = exchange.start()?;
    for turn in 0..1000 {
        match progress {
            Progress::Run(statement) => progress = exchange.resume(server(turn, &statement))?,
            Progress::Done(outcome) => return Ok(outcome),
        }
    }
    panic!("an exchange without end");
}

fn protocols() -> [Protocol; 2] {
    [Protocol::postgres(namespace()), Protocol::redis(namespace()).allow_weak_store(true)]
}

/// A table with our namespace.
fn table() -> Table {
    Table::new(NOW, &NamespaceMetadata::new(&namespace()))
}

/// Runs a request to its end, with a table.
fn ask<R: RemoteRequest>(
    protocol: &Protocol,
    request: &R,
    table: &mut Table,
) -> Result<R::Outcome> {
    let reply = converse(protocol.begin(request, NOW), |_, statement| table.answer(statement));
    outcome_of(request, reply)
}

#[test]
fn a_lease_is_granted_renewed_and_given_back() {
    for protocol in protocols() {
        let (mut table, request) = (table(), request());
        let Ok(Acquired::Granted { now, max_ttl, max_skew, leases }) =
            ask(&protocol, &request, &mut table)
        else {
            panic!("everything is free")
        };
        let node_id = leases[0].node_id;
        assert_eq!(
            request.token.candidates(&NodeRanges::up_to(layout::MAX_NODE_ID)).next(),
            Some(node_id)
        );
        let lease = NodeLease { node_id, start: NOW - 5, end_exclusive: NOW + 300 };
        assert_eq!((now, &leases[..]), (NOW, &[lease][..]));
        let token = request.token;
        let renew = Renew { token, node_ids: vec![node_id], ttl: 300, client_now: NOW, next: None };
        table.clock += 1;
        let before = table.statements;
        let renewed = ask(&protocol, &renew, &mut table);
        let extended = Renewed::Extended { now: NOW + 1, max_ttl, max_skew, leases };
        assert_eq!(renewed, Ok(extended), "by the clock as it was");
        assert_eq!(table.statements, before + 1);
        let release = Release { token, node_ids: vec![node_id], used_until: NOW };
        assert_eq!(ask(&protocol, &release, &mut table), Ok(Released { count: 1 }));
        assert_eq!(ask(&protocol, &release, &mut table), Ok(Released { count: 0 }));
        let lost = ask(&protocol, &renew, &mut table);
        assert_eq!(lost, Ok(Renewed::Lost { now: NOW + 1 }));
    }
}

/// A step that waits in a server for longer than clocks may differ writes nothing. The same goes
/// for a step in a server whose clock went back.
#[test]
fn what_comes_too_late_is_not_written() {
    for protocol in protocols() {
        for (late, is_granted) in [(0, true), (7, true), (8, false), (-1, false)] {
            let (mut table, request) = (table(), request());
            let protocol = Protocol { state: Arc::default(), ..protocol.clone() };
            let outcome = converse(protocol.begin(&request, NOW), |_, statement| {
                if Table::writes(statement) {
                    table.clock += late;
                }
                table.answer(statement)
            });
            let outcome = outcome_of(&request, outcome);
            assert_eq!(table.texts.len(), if is_granted { 2 } else { 1 }, "{late}");
            match outcome {
                Ok(Acquired::Granted { .. }) => assert!(is_granted, "{late}"),
                Err(error) => {
                    assert!(!is_granted, "{late}");
                    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
                }
                Ok(other) => assert!(!is_granted, "{late}: {other:?}"),
            }
        }
    }
}

/// A server whose clock is set in the middle of an operation, or that another one replaces, has not
/// kept the client waiting.
#[test]
fn a_clock_that_is_set_meanwhile_is_no_wait() {
    for protocol in protocols() {
        let (mut table, request) = (table(), request());
        let outcome = converse(protocol.begin(&request, NOW), |_, statement| {
            if Table::writes(statement) {
                table.clock = NOW + 400;
            }
            table.answer(statement)
        });
        let skewed = Acquired::ClockSkew { store_now: NOW + 400, max_skew: 5 };
        assert_eq!(outcome_of(&request, outcome), Ok(skewed));
    }
}

/// The estimate of a server's clock is never earlier than the clock was, whatever this machine's
/// clock shows.
#[test]
fn a_clock_that_goes_back_takes_no_other_with_it() {
    for protocol in protocols() {
        for (passed, shown) in [(-3, NOW), (0, NOW), (1, NOW), (4, NOW + 3)] {
            let mut table = table();
            let protocol = Protocol { state: Arc::default(), ..protocol.clone() };
            ask(&protocol, &request(), &mut table).expect("everything is free");
            let acquire = Acquire { client_now: NOW + passed, ..request() };
            let statement = protocol.begin(&acquire, NOW + passed).start();
            let Ok(Progress::Run(statement)) = statement else { panic!("{statement:?}") };
            assert!(Table::writes(&statement));
            let from = if statement.text == "EVAL" { 6 } else { 4 };
            assert_eq!(statement.parameters[from], shown.to_string(), "{passed}");
        }
    }
}

#[test]
fn a_primary_from_before_a_promotion_is_fenced_when_it_is_back() {
    let protocol = Protocol::postgres(namespace());
    let mut table = table();
    // Says whether a server of another timeline is fenced, if its namespace knows that timeline.
    let mut is_fenced_on = |timeline: &str| {
        let incarnation = format!("7301/{timeline}/5");
        table.becomes(&format!("{incarnation} on"), &incarnation);
        let before = table.meta().quarantine.floor;
        let renew = Renew {
            token: Token::random(),
            node_ids: vec![77],
            ttl: 300,
            client_now: NOW,
            next: None,
        };
        table.clock += i64::from(table.clock < NOW + 5);
        let reply = ask(&protocol, &renew, &mut table);
        assert_eq!(reply, Ok(Renewed::Lost { now: table.clock }), "{timeline}");
        table.meta().quarantine.floor > before
    };
    let seen = ["00000002", "00000003", "00000003", "00000001", "00000003", "0000000A", "00000009"];
    let fenced = seen.map(&mut is_fenced_on);
    assert_eq!(fenced, [false, false, false, true, false, false, true]);
    let is_before = postgres::is_before;
    assert!(!is_before("a1/b1", "a1/b2"), "Redis has no order of its lines");
    assert!(!is_before("7302/00000001/5", "7301/00000002/5"), "another server");
    assert!(!is_before("7301/00000001/6", "7301/00000002/5"), "another database");
}

/// A store that lacks a write of meta is fenced by any process that knows of that write: an old
/// server that has returned in place of its successor, and one that has diverged since. It is not
/// fenced again after that, for example by a process that slept meanwhile; but each process that
/// has seen a later timeline of PostgreSQL fences it, once.
#[test]
fn a_store_that_lacks_what_was_seen_is_fenced_once() {
    for (protocol, lines) in protocols()
        .into_iter()
        .zip([["7301/00000001/5 on", "7301/00000002/5 on"], ["a1/b1 master", "a1/b2 master"]])
    {
        let fork = |protocol: &Protocol| protocol.copied();
        let incarnation = |line: &str| line.split(' ').next().expect("one word").to_owned();
        let mut before = table();
        before.becomes(lines[0], &incarnation(lines[0]));
        let see = |protocol: &Protocol, table: &mut Table| {
            let floor = table.meta().quarantine.floor;
            let outcome = ask(protocol, &request(), table);
            (table.meta().quarantine.floor > floor, outcome.is_ok())
        };
        assert_eq!(see(&protocol, &mut before), (false, true));
        let [asleep, early] = [fork(&protocol), fork(&protocol)];

        // A successor is fenced because its line differs.
        let mut after = before.clone();
        after.server = lines[1].to_owned();
        after.clock += 1;
        let mut branch = after.clone();
        assert!(see(&protocol, &mut after).0);
        let also = fork(&protocol);

        // Back on the previous server.
        before.clock += 2;
        assert!(see(&protocol, &mut before).0, "it lacks the fence");
        let fenced = before.meta();
        for other in [&asleep, &protocol] {
            assert!(!see(other, &mut before).0, "it was fenced since");
        }
        assert_eq!(before.meta().version, fenced.version);
        let has_order = protocol.engine == Engine::Postgres;
        assert_eq!(see(&also, &mut before).0, has_order);
        assert!(!see(&also, &mut before).0);

        // Or on another successor, of the same line, which somebody else has already fenced.
        let protocol = fork(&early);
        assert!(see(&early, &mut branch).0);
        assert!(!see(&protocol, &mut after).0, "it was fenced");
        after.clock += 2;
        see(&protocol, &mut after);
        branch.clock += 4;
        assert!(see(&protocol, &mut branch).0, "another branch");
        assert!(!see(&protocol, &mut branch).0);
    }
}

/// Changes the cells of every answer, starting with number `from`.
fn acquire_with(
    protocol: &Protocol,
    from: usize,
    change: impl Fn(&mut Vec<Option<String>>),
) -> Result<Acquired> {
    let (mut table, request) = (table(), request());
    let protocol = Protocol { state: Arc::default(), ..protocol.clone() };
    let outcome = converse(protocol.begin(&request, NOW), |turn, statement| {
        let mut response = table.answer(statement);
        if let (true, Response::Rows(rows)) = (turn >= from, &mut response) {
            change(&mut rows[0]);
        }
        response
    });
    outcome_of(&request, outcome)
}

#[test]
fn answers_that_make_no_sense_are_failures() {
    type Change = Box<dyn Fn(&mut Vec<Option<String>>)>;
    let set = |at: usize, cell: &'static str| -> Change {
        Box::new(move |row| {
            if let Some(place) = row.get_mut(at) {
                *place = Some(cell.to_owned());
            }
        })
    };
    let mut changes: Vec<Change> = vec![
        Box::new(Vec::clear),
        Box::new(|row| row.truncate(1)),
        Box::new(|row| row.truncate(3)),
        Box::new(|row| row.insert(4, Some("more".to_owned()))),
        Box::new(|row| row.fill(None)),
    ];
    changes.extend([(0, "other"), (1, ""), (1, "soon")].map(|(at, to)| set(at, to)));
    for protocol in protocols() {
        for from in 0..2 {
            for (number, change) in changes.iter().enumerate() {
                let kind = acquire_with(&protocol, from, change).map_err(|error| error.kind());
                assert_eq!(kind, Err(ErrorKind::StoreUnavailable), "{number} from {from}");
            }
        }
        let other = acquire_with(&protocol, 1, set(0, "another's"));
        let error = other.expect_err("another request's");
        assert!(error.to_string().contains("another request"), "{error}");
        let (mut broken, request) = (table(), request());
        for node_id in request.token.candidates(&NodeRanges::up_to(layout::MAX_NODE_ID)).take(32) {
            broken.texts.insert(Key::Node(node_id).to_string(), "soon".to_owned());
        }
        let kind = ask(&protocol, &request, &mut broken).map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::StoreUnavailable), "a text that is none");
        broken.texts.insert("meta".to_owned(), "2 soon".to_owned());
        let kind = ask(&protocol, &request, &mut broken).map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::StoreUnavailable), "meta that is none");

        let refused = converse(protocol.begin(&request, NOW), |_, _| Response::Refused {
            code: "42501".into(),
            message: "permission denied".into(),
        });
        let error = refused.expect_err("the server says so");
        assert!(error.to_string().ends_with("42501: permission denied"), "{error}");
    }
}

#[test]
fn a_server_that_asks_again_and_again_is_left() {
    for code in ["40001", "42P01"] {
        let protocol = Protocol::postgres(namespace()).create(true).expect("may be metadata");
        let again =
            |_, _: &Statement| Response::Refused { code: code.into(), message: code.into() };
        let outcome = converse(protocol.begin(&request(), NOW), again);
        assert_eq!(outcome.expect_err("no end").kind(), ErrorKind::StoreUnavailable, "{code}");
    }
}

#[test]
fn answers_of_etcd_that_make_no_sense_are_failures() {
    let key = |name: &str| BASE64.encode(format!("randflake/orders/{name}"));
    let pair = |name: &str, value: &str| json!({"key": key(name), "value": BASE64.encode(value), "mod_revision": "3"});
    let answer = |pairs: serde_json::Value| {
        let header = json!({"cluster_id": "1", "revision": "7"});
        json!({"header": header, "responses": [{"response_range": {"kvs": pairs}}]}).to_string()
    };
    let metadata = NamespaceMetadata::new(&namespace());
    let meta = Meta::new("1", Quarantine::default(), metadata).text();
    let good = answer(json!([pair("meta", &meta)]));
    let token = Token::from_bytes([7; 16]);
    let first = token.candidates(&NodeRanges::up_to(layout::MAX_NODE_ID)).next().expect("endless");
    let node = &Key::Node(first).to_string();
    let first_cases = [
        String::new(),
        "no JSON".into(),
        "[]".into(),
        "{}".into(),
        json!({"header": {"cluster_id": 1, "revision": "7"}}).to_string(),
        json!({"header": {"cluster_id": "1"}}).to_string(),
        json!({"error": "etcdserver: mvcc: database space exceeded", "code": 8}).to_string(),
        answer(json!([{"key": "?", "value": "", "mod_revision": "3"}])),
        answer(json!([{"key": key("meta"), "value": BASE64.encode([255, 254])}])),
        answer(json!([pair("meta", "no JSON")])),
        answer(json!([pair("meta", "2 soon")])),
    ];
    let later_cases = [
        String::new(),
        answer(json!([pair("meta", &meta), pair(node, "")])),
        answer(json!([pair("meta", &meta), pair(node, "1 2")])),
        answer(json!([
            pair("meta", &meta),
            pair(node, &format!("1763640300 2 {} abc", "0".repeat(32)))
        ])),
        answer(json!([pair("meta", &meta), pair("node/999999", "")])),
    ];
    let ask = |first: &str, later: &str| {
        let protocol = Protocol::etcd(namespace());
        let request = Acquire { token, ..request() };
        converse(protocol.begin(&request, NOW), |turn, _| {
            let body = if turn == 0 { first } else { later };
            Response::Rows(vec![vec![Some(body.into())]])
        })
    };
    let cases = first_cases.iter().map(|first| (first.as_str(), ""));
    for (first, later) in cases.chain(later_cases.iter().map(|later| (good.as_str(), &later[..]))) {
        let kind = ask(first, later).map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::StoreUnavailable), "{first}, then {later}");
    }
    for rows in [vec![], vec![vec![]], vec![vec![None]]] {
        let call = Protocol::etcd(namespace()).begin(&request(), NOW);
        let outcome = converse(call, |_, _| Response::Rows(rows.clone()));
        assert_eq!(outcome.expect_err("nothing").kind(), ErrorKind::StoreUnavailable);
    }
}

#[test]
fn the_date_of_an_answer_is_read() {
    for (date, second) in [
        ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
        ("Tue, 29 Feb 2000 23:59:59 GMT", Some(951_868_799)),
        ("Wed, 01 Mar 2000 00:00:00 GMT", Some(951_868_800)),
        ("Thu, 20 Nov 2025 12:00:00 GMT", Some(NOW)),
        (" Thu, 20 Nov 2025 12:00:00 GMT ", Some(NOW)),
        ("Tue, 05 Nov 2058 17:10:23 GMT", Some(layout::LIFETIME_END - 1)),
        ("", None),
        ("Thu, 20 Nov 2025 12:00:00", None),
        ("Thu, 20 Nov 2025 12:00:00 CET", None),
        // Older forms that HTTP still allows.
        ("Thursday, 20-Nov-25 12:00:00 GMT", Some(NOW)),
        ("Thu Nov 20 12:00:00 2025", Some(NOW)),
        ("Thu, 20 nov 2025 12:00:00 GMT", None),
        ("Thu, 20 ovD 2025 12:00:00 GMT", None),
        ("Thu, 32 Nov 2025 12:00:00 GMT", None),
        ("Thu, 20 Nov 2025 24:00:00 GMT", None),
        ("Thu, 20 Nov 99999999999999 12:00:00 GMT", None),
        ("Thu, 20 Nov -2025 12:00:00 GMT", None),
    ] {
        assert_eq!(etcd::unix_second_of(date), second, "{date:?}");
    }
}

/// A lease that is renewed while an operator decides is no longer what the operator looked at:
/// nothing is written.
#[test]
fn an_operator_changes_only_what_was_looked_at() {
    for protocol in protocols() {
        let mut table = table();
        let lease = NodeLease { node_id: 77, start: NOW - 5, end_exclusive: NOW + 298 };
        let renewed_until = |table: &mut Table, end_exclusive| {
            let token = Some(Token::from_bytes([7; 16]));
            let (start, note) = (NOW - 5, Note::new("web-3:4711"));
            let row = Row { start, end_exclusive, token, note, version: 77 };
            let text = node_text(&row, &table.meta());
            table.texts.insert("node/000077".to_owned(), text);
        };
        renewed_until(&mut table, NOW + 298);
        let request = ReleaseDead { token: Token::random(), lease, client_now: NOW };
        let mut writes = 0;
        let outcome = converse(protocol.begin(&request, NOW), |_, statement| {
            if Table::writes(statement) {
                writes += 1;
                renewed_until(&mut table, NOW + 299);
            }
            table.answer(statement)
        });
        let error = outcome_of(&request, outcome).expect_err("the holder lives");
        assert!(error.to_string().contains("now has another lease"), "{error}");
        assert_eq!(writes, 1, "and refused");
        assert!(table.texts["node/000077"].contains(&hex::hex(&[7; 16])));
    }
}

/// Whatever answers come, the exchange ends, with an outcome or an error.
#[test]
fn no_answer_is_a_panic() {
    let words = [
        "",
        "0",
        "-1",
        "131071",
        "1763640000",
        "9223372036854775807",
        "=",
        "=1",
        "=2 soon",
        "written",
        "true",
        "node/000077",
        "[]",
        "[[]]",
        "[[77]]",
        r#"[["node/000077","",true]]"#,
        r#"[["meta","2",true]]"#,
        "7301/00000002/5 on",
        "a1/b2 master",
        "noeviction",
        "{}",
    ];
    let create = |protocol: Protocol| protocol.create(true).expect("may be made");
    let protocols = || {
        [
            create(Protocol::postgres(namespace())),
            Protocol::redis(namespace()),
            create(Protocol::etcd(namespace())),
        ]
    };
    for protocol in (0..300).flat_map(|_| protocols()) {
        let mut table = table();
        let mut server = |_, statement: &Statement| {
            let [well, count, columns, ref cells @ ..] = random_bytes::<256>();
            let is_step = Table::knows(statement);
            if well < 192 && is_step {
                let mut response = table.answer(statement);
                if let (true, Response::Rows(rows)) = (well < 64, &mut response) {
                    let at = 1 + usize::from(columns) % 11;
                    if let Some(cell) = rows[0].get_mut(at) {
                        *cell = Some(words[usize::from(cells[0]) % words.len()].to_owned());
                    }
                }
                return response;
            }
            let columns = usize::from(columns % 13);
            let mut cells = cells.iter().map(|cell| words.get(usize::from(*cell) % 23));
            let mut row =
                || (0..columns).map(|_| cells.next().flatten().map(ToString::to_string)).collect();
            Response::Rows((0..count % 4).map(|_| row()).collect())
        };
        let _any = converse(protocol.begin(&request(), NOW), &mut server);
        let token = Token::random();
        let renewal = Renew { token, node_ids: vec![77], ttl: 300, client_now: NOW, next: None };
        let _any = converse(protocol.begin(&renewal, NOW), &mut server);
        let release = Release { token, node_ids: vec![77], used_until: NOW };
        let _any = converse(protocol.begin(&release, NOW), &mut server);
        let _any = converse(protocol.begin(&Fence { token }, NOW), &mut server);
        let list = List { token, node_id: None };
        let _any = converse(protocol.begin(&list, NOW), &mut server);
        let _any = converse(protocol.init(InitMode::Quarantine, NOW), &mut server);
    }
}

#[test]
fn a_call_that_is_driven_wrongly_says_so() {
    let mut exchange = Protocol::postgres(namespace()).begin(&request(), NOW);
    assert!(matches!(exchange.start(), Ok(Progress::Run(_))));
    let error = exchange.start().expect_err("it waits");
    assert!(error.to_string().contains("waits"), "{error}");
    let error = exchange.resume(Response::Rows(vec![])).expect_err("no rows");
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
    let error = exchange.start().expect_err("over");
    assert!(error.to_string().contains("ended"), "{error}");
}

#[test]
fn nothing_that_is_sent_or_shown_holds_the_secret() {
    for protocol in [
        Protocol::postgres(namespace()).create(true).expect("may be metadata"),
        Protocol::redis(namespace()),
        Protocol::etcd(namespace()).create(true).expect("may be metadata"),
    ] {
        let mut sent = format!("{protocol:?}");
        let _any = converse(protocol.init(InitMode::New, NOW), |_, statement| {
            sent += &statement.parameters.concat();
            let shown = format!("{statement:?}");
            assert!(statement.parameters.iter().all(|it| it.len() < 9 || !shown.contains(it)));
            let (code, message) = ("42P01".into(), String::new());
            Response::Refused { code, message }
        });
        assert!(!sent.contains(SECRET) && !sent.contains(&SECRET[..16]), "{sent}");
    }
}

#[test]
fn redis_makes_nothing_by_itself() {
    let error = Protocol::redis(namespace()).create(true).expect_err("never");
    assert_eq!(error.code(), "INVALID_ARGUMENT");
}

#[test]
fn every_node_id_is_in_one_range() {
    let cases = [("0", 10), ("0-9", 10), ("0-10", 10), ("3,7-9,12-40", 10), ("5-131071", 4096)];
    for (text, size) in cases {
        let node_ids: NodeRanges = text.parse().expect("ranges");
        let first = Token::random().candidates(&node_ids).next().expect("endless");
        let ranges: Vec<_> = ranges(first, node_ids, size).collect();
        assert!((ranges[0].0..=ranges[0].1).contains(&first), "{first} of {text}: {ranges:?}");
        assert!(ranges.iter().all(|(first, last)| last - first < size), "{text}: {ranges:?}");
        let mut all: Vec<u32> = ranges.iter().flat_map(|(first, last)| *first..=*last).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(node_ids.from(0)), "{text} in ranges of {size}: {ranges:?}");
    }
}

#[test]
fn a_url_of_no_store_is_refused() {
    for url in ["", "postgresql", "mongodb://host/", "sqlite:///ids.db", "://"] {
        let error = RemoteStore::open(url, namespace()).expect_err(url);
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{url}: {error}");
        assert!(error.to_string().contains("postgresql://"), "{url}: {error}");
    }
    for (url, is_there) in [
        ("postgresql://me@host/base", cfg!(feature = "postgres")),
        ("mysql://me@host/base", cfg!(feature = "mysql")),
        ("redis://host", cfg!(feature = "redis")),
        ("etcd://host:2379", cfg!(feature = "etcd")),
    ] {
        let metadata = RemoteStore::open(url, namespace()).map(drop);
        let kind = metadata.map_err(|error| error.kind());
        let missing = Err(ErrorKind::DriverMissing);
        assert_eq!(kind, if is_there { Ok(()) } else { missing }, "{url}");
    }
}

/// The settings of a Redis in these tests.
fn setting(name: &str, min_replicas: &str) -> Response {
    let value = match name {
        "maxmemory-policy" => "noeviction",
        "appendonly" => "yes",
        "min-replicas-to-write" => min_replicas,
        _ => "10",
    };
    Response::Rows(vec![vec![Some(name.to_owned()), Some(value.to_owned())]])
}

/// Of unconfirmed answers, only grants are lost.
#[test]
fn a_grant_counts_when_it_is_confirmed() {
    for (confirmed, is_busy, counts) in [
        (Some(2), false, Ok(())),
        (Some(3), false, Ok(())),
        (Some(1), false, Err(ErrorKind::StoreUnavailable)),
        (Some(0), false, Err(ErrorKind::StoreUnavailable)),
        (None, false, Err(ErrorKind::WeakStore)),
        (Some(0), true, Ok(())),
    ] {
        let namespace = namespace().node_ids(NodeRanges::up_to(0)).expect("a layout of more");
        let mut table = Table::new(NOW, &NamespaceMetadata::new(&namespace));
        if is_busy {
            let weak = Protocol::redis(namespace.clone()).allow_weak_store(true);
            assert!(ask(&weak, &request(), &mut table).is_ok());
        }
        let protocol = Protocol::redis(namespace);
        let outcome = converse(protocol.begin(&request(), NOW), |_, statement| {
            let rows = match statement.text {
                "CONFIG" => setting(&statement.parameters[1], "2"),
                "TIME" => Response::Rows(vec![vec![Some(NOW.to_string()), Some("0".to_owned())]]),
                _ => table.answer(statement),
            };
            match (statement.wait, rows, confirmed) {
                (Some(wait), Response::Rows(rows), Some(mut replicas)) => {
                    assert_eq!(wait.replicas, 2);
                    if statement.text == "TIME" {
                        replicas = 0; // whether they are there is not checked
                    }
                    Response::Confirmed { rows, replicas }
                }
                (_, rows, _) => rows,
            }
        });
        let kind = outcome.map(drop).map_err(|error| error.kind());
        assert_eq!(kind, counts, "{confirmed:?}, busy: {is_busy}");
    }
}

/// In a failover one server says that it has replicas, and the next one that it waits for none.
#[test]
fn settings_of_another_server_make_none_weak() {
    for (changes, expected) in [(true, Ok(())), (false, Err(ErrorKind::WeakStore))] {
        let (mut table, mut checks) = (table(), 0);
        let protocol = Protocol::redis(namespace());
        let outcome = converse(protocol.begin(&request(), NOW), |_, statement| {
            if statement.text == "CONFIG" {
                return setting(&statement.parameters[1], "0");
            }
            checks += 1;
            let has_replicas = checks == 1 || !changes;
            let server = if has_replicas { "a1/b1 master with replicas" } else { "a1/b2 master" };
            table.becomes(server, "a1/b2");
            table.answer(statement)
        });
        assert_eq!(outcome.map(drop).map_err(|error| error.kind()), expected);
        assert!(checks >= 2, "it is asked once more");
    }
}
