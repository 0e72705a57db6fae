//! Any answers of a server: an operation ends, never in a panic, and grants no more node ids than were
//! asked for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use randflake_leases::{
    Acquire, Acquired, Change, Fence, InitMode, ListCounters, Namespace, NodeLease, Note, Release,
    Renew, Renewed, Reply, Result, Swap, Token,
    operator::{List, ReleaseDead, Repair, SetNodeIds, Target},
    remote::{Exchange, Progress, Protocol, RemoteRequest, Response, Statement},
};
use randflake_vectors::cases::SECRET;

const NOW: i64 = 1_763_640_000;
const TTL: u32 = 300;
/// Most answers of an input.
const MOST: usize = 1000;

// The first two characters are the server and the operation; `!` after them refuses weak stores. Each
// line after that is an answer, with a tab between cells: a line that begins with `!` is an error, and
// `;` begins another row. `$1` is the second parameter of the statement, and `$a` the text that it
// writes. That is enough for a lease of PostgreSQL and of Redis; MySQL and etcd write other texts.
fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // A server may say anything, and errors say what it said.
    if text.contains(SECRET) {
        return;
    }
    let mut lines = text.split('\n').take(MOST);
    let mut head = lines.next().unwrap_or_default().chars();
    let (server, operation) = (head.next(), head.next());
    let namespace = match operation {
        Some('c' | 't') => Namespace::for_tickets("orders"),
        _ => Namespace::new("orders", &SECRET.parse().expect("hex")),
    };
    let namespace = namespace.expect("a name");
    let protocol = match server {
        Some('p') => Protocol::postgres(namespace),
        Some('m') => Protocol::mysql(namespace),
        Some('r') => Protocol::redis(namespace),
        Some('e') => Protocol::etcd(namespace),
        _ => return,
    };
    let protocol = protocol.allow_weak_store(head.next() != Some('!'));
    let mut server = Server { protocol, lines };
    let token = Token::from_bytes([7; 16]);
    let lease = NodeLease { node_id: 77, start: NOW - 5, end_exclusive: NOW + 300 };
    match operation {
        Some('a') => server.lease(token, 1),
        Some('b') => server.lease(token, 2),
        Some('i' | 't') => {
            _ = converse(server.protocol.init(InitMode::Quarantine, NOW), &mut server.lines)
        }
        Some('c') => {
            let change = Change { floor: 0, before: Some("7".into()), after: "8".into() };
            server.asks(&Swap { token, counter: "invoices".into(), change: Some(change) });
            server.asks(&ListCounters { token });
        }
        Some('l') => {
            server.asks(&List { token, node_id: None });
            server.asks(&List { token, node_id: Some(77) });
        }
        Some('o') => {
            server.asks(&Fence { token });
            server.asks(&SetNodeIds { token, node_ids: "0-99".parse().expect("a range") });
            server.asks(&ReleaseDead { token, lease, client_now: NOW });
            for target in [Target::Floor, Target::Node(77)] {
                server.asks(&Repair { token, target, bound: None, client_now: NOW });
            }
        }
        _ => {}
    }
});

struct Server<'a, I: Iterator<Item = &'a str>> {
    protocol: Protocol,
    lines: I,
}

impl<'a, I: Iterator<Item = &'a str>> Server<'a, I> {
    /// Leases, renews and releases.
    fn lease(&mut self, token: Token, want: u32) {
        let note = Note::new("web-3");
        let acquire = Acquire { token, want, ttl: TTL, client_now: NOW, note };
        let Some(Acquired::Granted { leases, .. }) = self.asks(&acquire) else { return };
        assert!((1..=want as usize).contains(&leases.len()), "{leases:?}");
        check(&leases);
        let node_ids: Vec<u32> = leases.iter().map(|lease| lease.node_id).collect();
        let next = Some(Token::from_bytes([8; 16]));
        let renew = Renew { token, node_ids: node_ids.clone(), ttl: TTL, client_now: NOW, next };
        if let Some(Renewed::Extended { leases, .. }) = self.asks(&renew) {
            assert!(leases.iter().map(|lease| lease.node_id).eq(node_ids.iter().copied()));
            check(&leases);
        }
        let count = node_ids.len();
        if let Some(released) = self.asks(&Release { token, node_ids, used_until: NOW }) {
            assert!(released.count as usize <= count);
        }
    }

    fn asks<R: RemoteRequest>(&mut self, request: &R) -> Option<R::Outcome> {
        let reply: Reply<R::Outcome> =
            converse(self.protocol.begin(request, NOW), &mut self.lines)?.ok()?;
        Some(reply.answer_to(request.token(), R::OPERATION).expect("its own answer"))
    }
}

/// Checks what no answer may grant: a node id twice or out of range, or no second at all.
fn check(leases: &[NodeLease]) {
    for (index, lease) in leases.iter().enumerate() {
        assert!(lease.node_id <= randflake::layout::MAX_NODE_ID, "{lease:?}");
        assert!(lease.start < lease.end_exclusive, "{lease:?}");
        assert!(leases[..index].iter().all(|other| other.node_id != lease.node_id), "{leases:?}");
    }
}

/// Runs an exchange; `None` if the server says no more.
fn converse<'a, T>(
    mut exchange: Exchange<T>,
    lines: &mut impl Iterator<Item = &'a str>,
) -> Option<Result<T>> {
    let mut progress = exchange.start();
    loop {
        match progress {
            Ok(Progress::Run(statement)) => {
                progress = exchange.resume(answer(lines.next()?, &statement));
            }
            Ok(Progress::Done(outcome)) => return Some(Ok(outcome)),
            Err(error) => {
                assert!(!error.to_string().contains(SECRET));
                return Some(Err(error));
            }
        }
    }
}

fn answer(line: &str, statement: &Statement) -> Response {
    if let Some(error) = line.strip_prefix('!') {
        let (code, message) = error.split_once(' ').unwrap_or((error, ""));
        return Response::Refused { code: code.to_owned(), message: message.to_owned() };
    }
    let cell = |cell: &str| (cell != "-").then(|| filled(cell, statement));
    let rows = line.split(';').map(|row| row.split('\t').map(cell).collect()).collect();
    match &statement.wait {
        Some(wait) => Response::Confirmed { rows, replicas: wait.replicas },
        None => Response::Rows(rows),
    }
}

/// Puts parts of the statement into a cell.
fn filled(cell: &str, statement: &Statement) -> String {
    let mut parts = cell.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut rest = part.chars();
        match rest.next() {
            Some('a') => text += written(statement).unwrap_or_default(),
            Some(digit) => {
                let place = digit.to_digit(10).and_then(|place| usize::try_from(place).ok());
                let parameter = place.and_then(|place| statement.parameters.get(place));
                text += parameter.map_or("", String::as_str);
            }
            None => {}
        }
        text += rest.as_str();
    }
    text
}

/// Returns the text that a statement writes, as JSON has it or as a parameter.
fn written(statement: &Statement) -> Option<&str> {
    let mut parameters = statement.parameters.iter().rev();
    let in_json = parameters.clone().find_map(|it| it.split_once("\"after\":\""));
    if let Some((_, text)) = in_json {
        return text.split('"').next();
    }
    parameters.find(|it| it.len() > 60).map(|it| it.strip_prefix('=').unwrap_or(it))
}
