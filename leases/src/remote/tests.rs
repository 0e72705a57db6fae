//! What a server might answer, and none should.

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use randflake::{Secret, layout};
use serde_json::json;

use super::{candidates::ranges, hex::hex, *};
use crate::{
    Acquire, Acquired, ErrorKind, Fence, Limits, NamespaceMetadata, Note, Release, Renew, Token,
    operator::ReleaseDead, token::random_bytes,
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

fn rows<const N: usize>(row: [&str; N]) -> Response {
    Response::Rows(vec![row.iter().map(|cell| Some((*cell).into())).collect()])
}

/// Answers a check with what a namespace of ours looks like.
fn checked(metadata: &NamespaceMetadata, token: &str) -> Response {
    let (salt, key_check) = (hex(&metadata.salt), hex(&metadata.key_check));
    let now = NOW.to_string();
    let max_node_id = layout::MAX_NODE_ID.to_string();
    rows([
        "check",
        token,
        "OK",
        &now,
        "server/1",
        "1",
        "300",
        "5",
        &max_node_id,
        &metadata.layout,
        &salt,
        &key_check,
        "0",
    ])
}

/// Returns operation and token of a statement.
fn echo(statement: &Statement) -> (String, String) {
    let Statement { text, parameters, .. } = statement;
    match *text {
        "EVAL" => (parameters[3].clone(), parameters[4].clone()),
        _ if text.contains("'acquire' as operation") => ("acquire".into(), parameters[1].clone()),
        _ => ("check".into(), parameters[1].clone()),
    }
}

fn protocols() -> [Protocol; 2] {
    [Protocol::postgres(namespace()), Protocol::redis(namespace()).allow_weak_store(true)]
}

/// Lets a store acquire whose server answers well but for the acquire.
fn acquire(protocol: &Protocol, answer: impl Fn(&str) -> Response) -> Result<Acquired> {
    let metadata = NamespaceMetadata::new(&namespace());
    let request = request();
    let reply = converse(protocol.begin(&request, NOW), |_, statement| {
        let (operation, token) = echo(statement);
        if operation == "check" { checked(&metadata, &token) } else { answer(&token) }
    });
    reply?.answer_to(request.token, crate::Operation::Acquire)
}

#[test]
fn an_answer_is_read() {
    for protocol in protocols() {
        let outcome = acquire(&protocol, |token| {
            rows(["acquire", token, "OK", "1763640000", "", "77", "1763639995", "1763640300"])
        });
        let lease =
            crate::NodeLease { node_id: 77, start: 1_763_639_995, end_exclusive: 1_763_640_300 };
        assert_eq!(outcome, Ok(Acquired::Granted { now: NOW, leases: vec![lease] }));
    }
}

#[test]
fn a_primary_from_before_a_promotion_is_fenced_when_it_is_back() {
    let protocol = Protocol::postgres(namespace());
    let metadata = NamespaceMetadata::new(&namespace());
    // The timeline of the server, and how often it was fenced.
    let ask = |timeline: &str| {
        let mut fences = 0;
        let renew = Renew { token: Token::random(), node_ids: vec![77], ttl: 300, client_now: NOW };
        let reply = converse(protocol.begin(&renew, NOW), |turn, statement| {
            let token = &statement.parameters[1];
            if statement.text.contains("'fence' as operation") {
                fences += 1;
                return rows([
                    "fence",
                    token,
                    "OK",
                    "1763640000",
                    "",
                    "",
                    "1763640005",
                    "1763640305",
                ]);
            }
            if !statement.text.contains("'renew' as operation") {
                let Response::Rows(mut rows) = checked(&metadata, token) else { unreachable!() };
                rows[0][4] = Some(format!("7301/{timeline}"));
                return Response::Rows(rows);
            }
            // What is known of the server is not what it is, once.
            let status = if turn == 0 { "INCARNATION" } else { "LOST" };
            rows(["renew", token, status, "1763640000", "", "", "", ""])
        });
        assert!(reply.is_ok(), "{timeline}: {reply:?}");
        fences
    };
    let seen = ["00000002", "00000003", "00000003", "00000001", "00000003", "0000000A", "00000009"];
    assert_eq!(seen.map(ask), [0, 0, 0, 1, 0, 0, 1]);
    // Redis has no order of its lines.
    let known = |incarnation: &str| context::KnownNamespace {
        metadata: metadata.clone(),
        incarnation: incarnation.into(),
        replicas: 0,
        meta_revision: 0,
        quarantine: crate::rules::Quarantine::default(),
        revision: 0,
        ahead: None,
    };
    let is_before = server_side::is_before;
    assert!(!is_before(&known("a1/b1 master"), &known("a1/b2 master")));
    assert!(!is_before(&known("7302/00000001"), &known("7301/00000002")), "another server");
}

#[test]
fn answers_that_make_no_sense_are_failures() {
    let good = ["OK", "1763640000", "", "77", "1763639995", "1763640300"];
    let changed = |place: usize, cell: &'static str| {
        let mut row = good;
        row[place] = cell;
        row
    };
    let mut cases: Vec<(String, Vec<Vec<Option<String>>>)> = vec![
        ("no rows".into(), vec![]),
        ("no cells".into(), vec![vec![]]),
        ("one cell".into(), vec![vec![Some("acquire".into())]]),
        ("null".into(), vec![vec![None; 8]]),
    ];
    for (place, cell) in [
        (0, "WHAT"),
        (0, "LIFETIME"), // at a time that is within
        (0, "LOST"),
        (1, ""),
        (1, "soon"),
        (3, "131072"),
        (3, "-1"),
        (3, "4294967373"),
        (4, ""),
        (5, "9223372036854775808"),
    ] {
        cases.push((format!("{cell:?} at {place}"), vec![text(&changed(place, cell), None)]));
    }
    cases.push(("two minds".into(), vec![text(&good, None), text(&changed(0, "BUSY"), None)]));
    cases.push(("another operation".into(), vec![text(&good, Some("renew"))]));
    cases.push(("too long".into(), vec![[text(&good, None), vec![Some("1".into())]].concat()]));
    for protocol in protocols() {
        for (case, rows) in &cases {
            let outcome = acquire(&protocol, |token| Response::Rows(with_token(rows, token)));
            let kind = outcome.map_err(|error| error.kind());
            assert_eq!(kind, Err(ErrorKind::StoreUnavailable), "{case}");
        }
        let theirs = acquire(&protocol, |_| Response::Rows(with_token(&cases[0].1, "00")));
        assert!(theirs.is_err());
        let other = hex(Token::random().as_bytes());
        let outcome = acquire(&protocol, |_| {
            rows(["acquire", &other, "OK", "1763640000", "", "77", "1763639995", "1763640300"])
        });
        let error = outcome.expect_err("another request's");
        assert!(error.to_string().contains("another request"), "{error}");
        let refused = acquire(&protocol, |_| Response::Refused {
            code: "42501".into(),
            message: "permission denied".into(),
        });
        let error = refused.expect_err("the server says so");
        assert!(error.to_string().ends_with("42501: permission denied"), "{error}");
    }
}

/// A row of an acquire; its token comes later.
fn text(cells: &[&str; 6], operation: Option<&str>) -> Vec<Option<String>> {
    let head = [operation.unwrap_or("acquire"), "?"];
    head.iter().chain(cells).map(|cell| Some((*cell).into())).collect()
}

fn with_token(rows: &[Vec<Option<String>>], token: &str) -> Vec<Vec<Option<String>>> {
    let cell = |cell: &Option<String>| {
        cell.as_ref().map(|cell| if cell == "?" { token.into() } else { cell.clone() })
    };
    rows.iter().map(|row| row.iter().map(cell).collect()).collect()
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
    let meta = json!({
        "format": 1, "incarnation": "1", "floor": 0, "renew_above": 0, "max_ttl": 300, "max_skew": 5,
        "max_node_id": layout::MAX_NODE_ID, "layout": metadata.layout, "salt": hex(&metadata.salt),
        "key_check": hex(&metadata.key_check),
    })
    .to_string();
    let good = answer(json!([pair("meta", &meta)]));
    let node = "node/000077";
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
        answer(json!([pair("meta", "{}")])),
    ];
    let later_cases = [
        String::new(),
        answer(json!([pair("meta", &meta), pair(node, "")])),
        answer(json!([pair("meta", &meta), pair(node, "1 2")])),
        answer(json!([pair("meta", &meta), pair(node, "1 2 - x note")])),
        answer(json!([pair("meta", &meta), pair(node, "1 2 abc 3")])),
        // A success that reads back what another client wrote.
        json!({
            "header": {"cluster_id": "1", "revision": "7"}, "succeeded": true,
            "responses": [{"response_put": {}}, {"response_range": {"kvs": [pair(node, "1 2 - 3")]}}],
        })
        .to_string(),
        json!({"header": {"cluster_id": "1", "revision": "7"}, "succeeded": true}).to_string(),
    ];
    let ask = |first: &str, later: &str| {
        let protocol = Protocol::etcd(namespace());
        converse(protocol.begin(&request(), NOW), |turn, _| {
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
        ("Thursday, 20-Nov-25 12:00:00 GMT", None),
        ("Thu Nov 20 12:00:00 2025", None),
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

/// What is renewed while an operator decides is not what was looked at: nothing is written.
#[test]
fn an_operator_changes_only_what_was_looked_at() {
    let metadata = NamespaceMetadata::new(&namespace());
    let lease = crate::NodeLease { node_id: 77, start: NOW - 5, end_exclusive: NOW + 298 };
    let request = ReleaseDead { token: Token::random(), lease, client_now: NOW };
    for protocol in protocols() {
        let mut written = Vec::new();
        let outcome = converse(protocol.begin(&request, NOW), |turn, statement| {
            let token = hex(request.token.as_bytes());
            let parameters = match statement.text {
                "EVAL" => &statement.parameters[3..],
                _ => &[&[String::new()], &statement.parameters[1..]].concat(),
            };
            let turn_now = NOW + i64::try_from(turn).expect("a few");
            let (now, end) = (turn_now.to_string(), (turn_now + 298).to_string());
            if parameters.len() > 3 {
                written.push(parameters[2..].join(" "));
                let status = if turn == 1 { "CHANGED" } else { "OK" };
                return rows(["shorten", &token, status, &now, "", "", "", ""]);
            }
            let (salt, key_check) = (hex(&metadata.salt), hex(&metadata.key_check));
            let nodes = format!("77 {} {end} true web-3:4711", NOW - 5);
            rows([
                "list",
                &token,
                "OK",
                &now,
                "false",
                "1",
                "300",
                "5",
                "131071",
                &metadata.layout,
                &salt,
                &key_check,
                "0",
                "0",
                &nodes,
            ])
        });
        let shortened =
            outcome.and_then(|reply| reply.answer_to(request.token, crate::Operation::ReleaseDead));
        let error = shortened.expect_err("the holder lives");
        assert!(error.to_string().contains("another lease by now"), "{error}");
        let (start, end) = (NOW - 5, NOW + 298);
        assert_eq!(written, [format!("77 {start} {end} {start} {}", NOW + 107)], "and refused");
    }
}

/// Whatever comes: an outcome or an error, and an end.
#[test]
fn no_answer_is_a_panic() {
    let words = [
        "",
        "0",
        "-1",
        "131071",
        "1763640000",
        "9223372036854775807",
        "acquire",
        "check",
        "OK",
        "HELD",
        "BUSY",
        "QUARANTINE",
        "INCARNATION",
        "REPLACED",
        "TRANSACTION",
        "LIFETIME",
        "CLOCK_SKEW",
        "NOT_INITIALIZED",
        "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        "noeviction",
        "{}",
    ];
    let metadata = NamespaceMetadata::new(&namespace());
    let protocols = || {
        let create = |protocol: Protocol| protocol.create(true).expect("may be metadata");
        [
            create(Protocol::postgres(namespace())),
            Protocol::redis(namespace()),
            create(Protocol::etcd(namespace())),
        ]
    };
    for protocol in (0..300).flat_map(|_| protocols()) {
        let mut server = |_, statement: &Statement| {
            let [well, count, columns, ref cells @ ..] = random_bytes::<256>();
            if well < 96 && !statement.text.starts_with('/') && statement.text != "CONFIG" {
                let (operation, token) = echo(statement);
                if operation == "check" {
                    return checked(&metadata, &token);
                }
                let words: Vec<&str> =
                    cells.iter().map(|cell| words[usize::from(*cell) % words.len()]).collect();
                let tail = &words[..6];
                return rows([
                    &operation, &token, tail[0], tail[1], tail[2], tail[3], tail[4], tail[5],
                ]);
            }
            let columns = usize::from(columns % 13);
            let mut cells = cells.iter().map(|cell| words.get(usize::from(*cell) % 23));
            let mut row =
                || (0..columns).map(|_| cells.next().flatten().map(ToString::to_string)).collect();
            Response::Rows((0..count % 4).map(|_| row()).collect())
        };
        let _any = converse(protocol.begin(&request(), NOW), &mut server);
        let token = Token::random();
        let renewal = Renew { token, node_ids: vec![77], ttl: 300, client_now: NOW };
        let _any = converse(protocol.begin(&renewal, NOW), &mut server);
        let release = Release { token, node_ids: vec![77], used_until: NOW };
        let _any = converse(protocol.begin(&release, NOW), &mut server);
        let _any = converse(protocol.begin(&Fence { token }, NOW), &mut server);
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
    for (max_node_id, size) in [(0, 10), (9, 10), (10, 10), (131_071, 4096), (131_071, 1000)] {
        let limits = Limits { max_ttl: 300, max_skew: 5, max_node_id };
        let mut all: Vec<u32> =
            ranges(Token::random(), limits, size).flat_map(|(first, last)| first..=last).collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..=max_node_id), "{max_node_id} in ranges of {size}");
    }
}

#[test]
fn a_url_of_no_store_is_refused() {
    for url in ["", "postgresql", "mysql://host/", "sqlite:///ids.db", "://"] {
        let error = RemoteStore::open(url, namespace()).expect_err(url);
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{url}: {error}");
        assert!(error.to_string().contains("postgresql://"), "{url}: {error}");
    }
    for (url, is_there) in [
        ("postgresql://me@host/base", cfg!(feature = "postgres")),
        ("redis://host", cfg!(feature = "redis")),
        ("etcd://host:2379", cfg!(feature = "etcd")),
    ] {
        let metadata = RemoteStore::open(url, namespace()).map(drop);
        let kind = metadata.map_err(|error| error.kind());
        let missing = Err(ErrorKind::DriverMissing);
        assert_eq!(kind, if is_there { Ok(()) } else { missing }, "{url}");
    }
}

#[test]
fn the_script_knows_how_long_another_master_may_grant() {
    let session = include_str!("redis/session.lua");
    assert!(
        session.contains(&format!("local last_grant = {}\n", server_side::LAST_GRANT)),
        "{session}"
    );
}

/// Of an answer that was not confirmed, only a grant is lost.
#[test]
fn a_grant_counts_when_it_is_confirmed() {
    let metadata = NamespaceMetadata::new(&namespace());
    let granted = ["OK", "1763640000", "", "77", "1763639995", "1763640300"];
    let busy = ["BUSY", "1763640000", "", "", "", ""];
    for (confirmed, row, counts) in [
        (Some(2), granted, Ok(())),
        (Some(3), granted, Ok(())),
        (Some(1), granted, Err(ErrorKind::StoreUnavailable)),
        (Some(0), granted, Err(ErrorKind::StoreUnavailable)),
        (None, granted, Err(ErrorKind::WeakStore)),
        (Some(0), busy, Ok(())),
    ] {
        let protocol = Protocol::redis(namespace());
        let request = request();
        let outcome = converse(protocol.begin(&request, NOW), |_, statement| {
            let rows = match statement.text {
                "CONFIG" => {
                    let value = match statement.parameters[1].as_str() {
                        "maxmemory-policy" => "noeviction",
                        "appendonly" => "yes",
                        "min-replicas-to-write" => "2",
                        _ => "10",
                    };
                    rows([&statement.parameters[1], value])
                }
                "TIME" => rows(["1763640000", "0"]),
                _ if echo(statement).0 == "check" => checked(&metadata, &echo(statement).1),
                _ => Response::Rows(with_token(&[text(&row, None)], &echo(statement).1)),
            };
            match (statement.wait, rows, confirmed) {
                (Some(wait), Response::Rows(rows), Some(mut replicas)) => {
                    assert_eq!(wait.replicas, 2);
                    if statement.text == "TIME" {
                        replicas = 0; // that they are there is not asked
                    }
                    Response::Confirmed { rows, replicas }
                }
                (_, rows, _) => rows,
            }
        });
        let kind = outcome.map(drop).map_err(|error| error.kind());
        assert_eq!(kind, counts, "{confirmed:?} of {row:?}");
    }
}

/// In a failover one server says that it has replicas, and the next one that it waits for none.
#[test]
fn settings_of_another_server_make_none_weak() {
    let metadata = NamespaceMetadata::new(&namespace());
    for (changes, expected) in [(true, Ok(())), (false, Err(ErrorKind::WeakStore))] {
        let mut checks = 0;
        let request = request();
        let outcome =
            converse(Protocol::redis(namespace()).begin(&request, NOW), |_, statement| {
                let settings = [("maxmemory-policy", "noeviction"), ("appendonly", "yes")];
                match statement.text {
                    "CONFIG" => {
                        let name = statement.parameters[1].as_str();
                        let known = settings.iter().find(|(known, _)| *known == name);
                        rows([name, known.map_or("0", |(_, value)| value)])
                    }
                    _ if echo(statement).0 == "check" => {
                        checks += 1;
                        let Response::Rows(mut row) = checked(&metadata, &echo(statement).1) else {
                            unreachable!("it has rows")
                        };
                        if checks == 1 || !changes {
                            row[0][4] = Some("server/0".into());
                            row[0][12] = Some("1".into());
                        }
                        Response::Rows(row)
                    }
                    _ => Response::Rows(with_token(
                        &[text(&["OK", "1763640000", "", "77", "1763639995", "1763640300"], None)],
                        &echo(statement).1,
                    )),
                }
            });
        assert_eq!(outcome.map(drop).map_err(|error| error.kind()), expected);
        assert_eq!(checks, 2, "it is asked once more");
    }
}
