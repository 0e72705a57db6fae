//! PostgreSQL and Redis: each operation is one statement or script that decides on the server, by
//! the server's clock, and answers in rows of text that begin with operation and token.

use randflake::layout;

use super::{
    BLOCK, Engine, Known, Line, Protocol, Response, Statement, TRIES, Wait, blocks, candidates,
    hex, unhex,
};
use crate::{
    Acquire, Acquired, Error, ErrorKind, Fenced, InitMode, Limits, NamespaceMetadata, NodeLease,
    Note, Release, Released, Renew, Renewed, Result, Token,
    operator::{List, Listed, Node, Shortened},
    rules::{self, Quarantine},
};

/// SQLSTATE: no such table.
const UNDEFINED_TABLE: &str = "42P01";
/// SQLSTATE: serialization failure, deadlock. Nothing was done; once more is allowed.
const AGAIN: [&str; 2] = ["40001", "40P01"];
/// Before that: who comes back at once meets the same others again. From 20 milliseconds to a
/// second, mostly short, so that a few get through however many and however slow they are.
const PAUSE: Statement = Statement {
    text: "select pg_sleep(0.02 * exp(4 * random()))::text",
    parameters: Vec::new(),
    wait: None,
};
/// SQLSTATE: an earlier statement of this transaction has failed.
const FAILED_TRANSACTION: &str = "25P02";

/// Settings of Redis that decide whether it keeps what it has acknowledged.
const SETTINGS: [&str; 5] =
    ["maxmemory-policy", "appendonly", "save", "min-replicas-to-write", "min-replicas-max-lag"];
/// Largest lag, in seconds, after which a master without replicas must stop.
const MAX_LAG: u32 = 10;
/// So many seconds after another server was promoted a master may still grant: the lag, a second in
/// which it has not looked at its replicas yet, and one for what readings of clocks cut off. A
/// constant: what the master of before was set to, nobody can ask it any more. `session.lua` has it.
pub(super) const LAST_GRANT: u32 = MAX_LAG + 2;
/// How long replicas have to confirm a grant, in milliseconds. They take as long as a round trip.
const CONFIRM: u32 = 1000;

#[derive(Clone, Copy)]
enum Kind {
    Check,
    CreateTables,
    Create,
    Acquire,
    Renew,
    Release,
    Fence,
    List,
    Cut,
    CutFloor,
}

macro_rules! sql {
    ($($file:literal),*) => { concat!($(include_str!(concat!("postgres/", $file, ".sql"))),*) };
}

macro_rules! lua {
    ($($file:literal),*) => { concat!($(include_str!(concat!("redis/", $file, ".lua"))),*) };
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::CreateTables | Self::Create => "create",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Fence => "fence",
            Self::List => "list",
            Self::Cut => "cut",
            Self::CutFloor => "cut_floor",
        }
    }

    const fn sql(self) -> &'static str {
        match self {
            Self::Check => sql!("session", "check"),
            Self::CreateTables => sql!("create_tables"),
            Self::Create => sql!("session", "create_namespace"),
            Self::Acquire => sql!("session", "request", "acquire"),
            Self::Renew => sql!("session", "request", "renew"),
            Self::Release => sql!("session", "request", "release"),
            Self::Fence => sql!("session", "fence"),
            Self::List => sql!("session", "list"),
            Self::Cut => sql!("session", "cut"),
            Self::CutFloor => sql!("session", "cut_floor"),
        }
    }

    const fn lua(self) -> &'static str {
        match self {
            Self::Check => lua!("session", "notice", "check"),
            Self::CreateTables | Self::Create => lua!("session", "notice", "create"),
            Self::Acquire => lua!("session", "notice", "request", "acquire"),
            Self::Renew => lua!("session", "notice", "request", "renew"),
            Self::Release => lua!("session", "notice", "request", "release"),
            Self::Fence => lua!("session", "notice", "fence"),
            Self::List => lua!("session", "list"),
            Self::Cut => lua!("session", "cut"),
            Self::CutFloor => lua!("session", "notice", "cut_floor"),
        }
    }
}

fn statement(of: &Protocol, kind: Kind, token: Token, rest: Vec<String>) -> Statement {
    let name = of.namespace.name();
    let token = hex(token.as_bytes());
    let (text, mut parameters) = match of.engine {
        Engine::Redis => {
            let key = format!("randflake:{{{name}}}");
            let script = vec![kind.lua().into(), "1".into(), key, kind.name().into(), token];
            ("EVAL", script)
        }
        _ if matches!(kind, Kind::CreateTables) => (kind.sql(), vec![]),
        _ => (kind.sql(), vec![name.into(), token]),
    };
    parameters.extend(rest);
    Statement { text, parameters, wait: None }
}

impl Known {
    /// What a grant needs besides: a replica that is promoted must have had it, and whoever is left
    /// of a master after that must not be believed.
    fn wait(&self, kind: Kind) -> Option<Wait> {
        let grants = matches!(kind, Kind::Acquire | Kind::Renew) && self.replicas > 0;
        grants.then_some(Wait { replicas: self.replicas, milliseconds: CONFIRM })
    }
}

/// Takes a grant for one only if as many replicas have it as were waited for.
fn check_confirmed(
    of: &Protocol,
    wait: Option<Wait>,
    confirmed: Option<u32>,
    answer: &Answer,
) -> Result<()> {
    let Some(Wait { replicas, .. }) = wait else { return Ok(()) };
    let confirmed = confirmed.ok_or_else(unable_to_confirm)?;
    if answer.leases.is_empty() || confirmed >= replicas {
        return Ok(());
    }
    Err(of.unavailable(&format!(
        "of its replicas {confirmed} have confirmed the lease, and {replicas} must \
         (min-replicas-to-write); until then it does not count"
    )))
}

fn unable_to_confirm() -> Error {
    Error::new(
        ErrorKind::WeakStore,
        "this Redis has replicas that must confirm a lease (min-replicas-to-write), and its client \
         cannot ask them: have it run WAIT behind a statement, as is documented for clients of \
         one's own, or allow a weak store",
    )
}

/// What the server answered to an operation.
struct Answer {
    status: String,
    now: i64,
    detail: String,
    /// Sorted by node id.
    leases: Vec<NodeLease>,
    /// Of the first row, for a fence.
    numbers: [String; 2],
}

/// Reads the rows of an operation.
fn answer(of: &Protocol, response: Response, kind: Kind, token: Token) -> Result<Answer> {
    let rows: Vec<[String; 8]> = cells(of, response, kind, token)?;
    let number = |cell: &str, name| number(of, cell, name);
    let [_, _, status, now, detail, _, start, end] = rows[0].clone();
    let mut leases = Vec::new();
    for row in &rows {
        if row[2] != status {
            return Err(of.malformed("rows that contradict each other"));
        }
        let [_, _, _, _, _, node_id, start, end_exclusive] = row;
        if !node_id.is_empty() {
            leases.push(NodeLease {
                node_id: u32::try_from(number(node_id, "node_id")?)
                    .ok()
                    .filter(|node_id| *node_id <= layout::MAX_NODE_ID)
                    .ok_or_else(|| of.malformed("node_id"))?,
                start: number(start, "start")?,
                end_exclusive: number(end_exclusive, "end_exclusive")?,
            });
        }
    }
    if !leases.is_empty() && !matches!(status.as_str(), "OK" | "HELD") {
        return Err(of.malformed("a status with leases"));
    }
    leases.sort_unstable();
    let now = number(&now, "now")?;
    Ok(Answer { status, now, detail, leases, numbers: [start, end] })
}

/// Takes the rows of a response apart, and checks that it answers this very request.
fn cells<const N: usize>(
    of: &Protocol,
    response: Response,
    kind: Kind,
    token: Token,
) -> Result<Vec<[String; N]>> {
    let rows = match response {
        Response::Rows(rows) | Response::Confirmed { rows, .. } => rows,
        Response::Refused { code, message } => return Err(refused(of, &code, &message)),
    };
    if rows.is_empty() {
        return Err(of.malformed("no rows"));
    }
    let echo = [kind.name().to_owned(), hex(token.as_bytes())];
    let bound = rows.into_iter().map(|row| {
        let cells: Option<Vec<String>> = row.into_iter().collect();
        let cells = cells.ok_or_else(|| of.malformed("an empty cell"))?;
        if cells.get(..2).is_some_and(|head| head != echo) {
            return Err(of.foreign());
        }
        <[String; N]>::try_from(cells).map_err(|_| of.malformed("the number of columns"))
    });
    bound.collect()
}

fn number(of: &Protocol, cell: &str, name: &str) -> Result<i64> {
    cell.parse().map_err(|_| of.malformed(name))
}

fn refused(of: &Protocol, code: &str, message: &str) -> Error {
    if code == FAILED_TRANSACTION {
        return in_transaction();
    }
    of.unavailable(&format!("it says {code}: {message}"))
}

fn in_transaction() -> Error {
    Error::invalid_argument(
        "the connection is inside a transaction, where a grant could be rolled back after it was \
         told; give the store a connection of its own, with autocommit",
    )
}

/// Looks at the namespace: whose it is, and whether the server keeps what it acknowledges. Makes
/// it if asked to.
pub(super) async fn check(
    of: &Protocol,
    line: &Line,
    init: Option<InitMode>,
    client_now: i64,
) -> Result<Known> {
    for _ in 0..TRIES {
        let token = Token::random();
        let response =
            line.run(statement(of, Kind::Check, token, vec![client_now.to_string()])).await;
        if let Response::Refused { code, .. } = &response {
            if AGAIN.contains(&code.as_str()) {
                line.run(PAUSE).await;
                continue;
            }
            if code == UNDEFINED_TABLE {
                of.missing(init)?;
                let response = line.run(statement(of, Kind::CreateTables, token, vec![])).await;
                if let Response::Refused { code, message } = response {
                    return Err(refused(of, &code, &message));
                }
                continue;
            }
        }
        let rows: Vec<[String; 13]> = cells(of, response, Kind::Check, token)?;
        let [_, _, status, now, incarnation, made_cells @ .., keeps] = &rows[0];
        let now = number(of, now, "now")?;
        match status.as_str() {
            "OK" => {
                let known = Known {
                    made: made(of, made_cells)?,
                    incarnation: incarnation.clone(),
                    replicas: check_settings(of, line, keeps).await?,
                    meta_revision: 0,
                    quarantine: Quarantine::default(),
                    revision: 0,
                    ahead: None,
                };
                of.learn(&known)?;
                return Ok(known);
            }
            "NOT_INITIALIZED" => {
                let init_mode = of.missing(init)?;
                check_settings(of, line, keeps).await?;
                let made = of.to_make();
                if init_mode == InitMode::Quarantine {
                    rules::check_clocks(made.limits, now, client_now)?;
                }
                let response = line.run(create(of, token, &made, init_mode)).await;
                let retry = matches!(&response, Response::Refused { code, .. } if AGAIN.contains(&code.as_str()));
                if !retry {
                    status_is_ok(of, &answer(of, response, Kind::Create, token)?)?;
                }
            }
            // The server is another one: a fence by a clock that is wrong may be over at once.
            "CLOCK_SKEW" => {
                let made = made(of, made_cells)?;
                of.namespace.check(&made)?;
                return Err(rules::skewed(client_now, now, made.limits.max_skew));
            }
            _ => return Err(unexpected(of, status)),
        }
    }
    Err(of.unavailable("it asks to repeat the same statement again and again"))
}

fn create(of: &Protocol, token: Token, made: &NamespaceMetadata, init_mode: InitMode) -> Statement {
    let Limits { max_ttl, max_skew, max_node_id } = made.limits;
    let mut rest: Vec<String> =
        [max_ttl, max_skew, max_node_id].iter().map(ToString::to_string).collect();
    rest.extend([made.layout.clone(), hex(&made.salt), hex(&made.key_check)]);
    let quarantine = init_mode == InitMode::Quarantine;
    rest.extend([quarantine.to_string(), made.format.to_string()]);
    statement(of, Kind::Create, token, rest)
}

fn made(of: &Protocol, cells: &[String; 7]) -> Result<NamespaceMetadata> {
    let [format, max_ttl, max_skew, max_node_id, layout, salt, key_check] = cells;
    let limit = |cell: &String| cell.parse().map_err(|_| of.malformed("a limit"));
    Ok(NamespaceMetadata {
        format: limit(format)?,
        limits: Limits {
            max_ttl: limit(max_ttl)?,
            max_skew: limit(max_skew)?,
            max_node_id: limit(max_node_id)?,
        },
        layout: layout.clone(),
        salt: unhex(salt).ok_or_else(|| of.malformed("salt"))?,
        key_check: unhex(key_check).ok_or_else(|| of.malformed("key_check"))?,
    })
}

/// Refuses a server that may forget, unless that is allowed, and returns how many replicas must
/// confirm a grant. `keeps` is, of PostgreSQL, whether it waits for its disk, and of Redis how many
/// replicas it has, or its role if it is one.
async fn check_settings(of: &Protocol, line: &Line, keeps: &str) -> Result<u32> {
    if of.allow_weak || of.namespace.is_for_operator() {
        return Ok(0);
    }
    if of.engine == Engine::Postgres {
        return if keeps == "off" {
            Err(weak(of, "does not wait for its disk: fsync is off"))
        } else {
            Ok(0)
        };
    }
    let Ok(connected) = keeps.parse::<u32>() else {
        return Err(no_master(of, line).await);
    };
    let mut values: [String; SETTINGS.len()] = Default::default();
    for (setting, value) in SETTINGS.iter().zip(&mut values) {
        let parameters = vec!["GET".into(), (*setting).into()];
        let response = line.run(Statement { text: "CONFIG", parameters, wait: None }).await;
        let row = match response {
            Response::Rows(rows) | Response::Confirmed { rows, .. } => {
                rows.into_iter().next().unwrap_or_default()
            }
            Response::Refused { code, message } => {
                return Err(weak(
                    of,
                    &format!(
                        "may do so for all that can be told: CONFIG GET {setting} is refused \
                     ({code}: {message})"
                    ),
                ));
            }
        };
        let [Some(name), Some(found)] = &row[..] else {
            return Err(of.malformed("CONFIG GET"));
        };
        if name != setting {
            return Err(of.foreign());
        }
        value.clone_from(found);
    }
    let [policy, appendonly, save, min_replicas, max_lag] = &values;
    if policy != "noeviction" {
        return Err(weak(
            of,
            &format!("evicts keys: maxmemory-policy is {policy}, not noeviction"),
        ));
    }
    if appendonly != "yes" && save.is_empty() {
        return Err(weak(of, "keeps nothing on a disk: appendonly is no, and save is empty"));
    }
    let (min_replicas, max_lag): (u32, u32) =
        (min_replicas.parse().unwrap_or(0), max_lag.parse().unwrap_or(0));
    if connected > 0 && (min_replicas == 0 || !(1..=MAX_LAG).contains(&max_lag)) {
        return Err(weak(
            of,
            &format!(
                "has replicas and does not wait for any: min-replicas-to-write is {min_replicas} and \
             must be 1 at least, min-replicas-max-lag is {max_lag} and must be 1 to {MAX_LAG}"
            ),
        ));
    }
    if min_replicas > 0 {
        // Before anything is granted: can this client, and may it?
        let wait = Some(Wait { replicas: min_replicas, milliseconds: CONFIRM });
        match line.run(Statement { text: "TIME", parameters: vec![], wait }).await {
            Response::Confirmed { .. } => {}
            Response::Rows(_) => return Err(unable_to_confirm()),
            Response::Refused { code, message } => return Err(refused(of, &code, &message)),
        }
    }
    Ok(min_replicas)
}

/// A replica becomes a master, and a master a replica: that passes. To write to one never is right.
async fn no_master(of: &Protocol, line: &Line) -> Error {
    let parameters = vec!["GET".into(), "replica-read-only".into()];
    let response = line.run(Statement { text: "CONFIG", parameters, wait: None }).await;
    let value = match response {
        Response::Rows(rows) | Response::Confirmed { rows, .. } => {
            rows.into_iter().flatten().nth(1)
        }
        Response::Refused { .. } => None,
    };
    if value.flatten().as_deref() == Some("no") {
        return weak(of, "is a replica that can be written to, and what is written there is lost");
    }
    of.unavailable(
        "it is a replica, which grants nothing; name its master, if none is promoted now",
    )
}

fn weak(of: &Protocol, why: &str) -> Error {
    Error::new(
        ErrorKind::WeakStore,
        format!(
            "this {} may lose leases that it has acknowledged; it {why}. Set it right, or allow a \
             weak store",
            of.engine.name()
        ),
    )
}

/// Runs an operation on a namespace that is known, and looks at it anew when it has changed.
async fn perform(
    of: &Protocol,
    line: &Line,
    kind: Kind,
    token: Token,
    client_now: i64,
    rest: impl Fn(&Known) -> Vec<String>,
) -> Result<Answer> {
    for _ in 0..TRIES {
        let known = session(of, line, client_now).await?;
        let wait = known.wait(kind);
        let statement = Statement { wait, ..statement(of, kind, token, rest(&known)) };
        let response = line.run(statement).await;
        let confirmed = match response {
            Response::Confirmed { replicas, .. } => Some(replicas),
            _ => None,
        };
        if let Response::Refused { code, .. } = &response {
            if AGAIN.contains(&code.as_str()) {
                line.run(PAUSE).await;
                continue;
            }
            if code == UNDEFINED_TABLE {
                check(of, line, None, client_now).await?;
                continue;
            }
        }
        let answer = answer(of, response, kind, token)?;
        check_confirmed(of, wait, confirmed, &answer)?;
        match answer.status.as_str() {
            "REPLACED" | "INCARNATION" => drop(check(of, line, None, client_now).await?),
            "LIFETIME" => {
                rules::check_lifetime(answer.now)?;
                return Err(of.malformed("a status"));
            }
            _ => return Ok(answer),
        }
    }
    Err(of.unavailable("it changes while it is asked, again and again"))
}

async fn session(of: &Protocol, line: &Line, client_now: i64) -> Result<Known> {
    match of.known() {
        Some(known) => Ok(known),
        None => check(of, line, None, client_now).await,
    }
}

fn status_is_ok(of: &Protocol, answer: &Answer) -> Result<()> {
    if answer.status == "OK" { Ok(()) } else { Err(unexpected(of, &answer.status)) }
}

fn unexpected(of: &Protocol, status: &str) -> Error {
    if status == "TRANSACTION" { in_transaction() } else { of.malformed("a status") }
}

/// The parameters of a request, in the order of `request.sql` and `request.lua`.
struct Request<'a> {
    client_now: i64,
    ttl: u32,
    node_ids: &'a [u32],
    /// How many are wanted, and the note; or the first second that was not used.
    rest: Vec<String>,
}

impl Request<'_> {
    fn parameters(&self, known: &Known) -> Vec<String> {
        let node_ids: Vec<String> = self.node_ids.iter().map(ToString::to_string).collect();
        let mut parameters = vec![
            hex(&known.made.salt),
            known.incarnation.clone(),
            self.client_now.to_string(),
            self.ttl.to_string(),
            layout::EPOCH.to_string(),
            layout::LIFETIME_END.to_string(),
            format!("{{{}}}", node_ids.join(",")),
        ];
        parameters.extend(self.rest.iter().cloned());
        parameters
    }
}

pub(super) async fn acquire(
    of: &Protocol,
    line: &Line,
    request: &Acquire,
    machine_now: i64,
) -> Result<Acquired> {
    let limits = session(of, line, machine_now).await?.made.limits;
    rules::check_ttl(limits, request.ttl)?;
    rules::check_want(request.want)?;
    let want = request.want as usize;
    // What comes later is asked by a clock that has gone on.
    let ask = async |node_ids: &[u32], want: usize, since: i64| {
        let Acquire { client_now, ttl, token, .. } = *request;
        let client_now = client_now.saturating_add(since);
        let rest = vec![want.to_string(), request.note.to_string()];
        let ask = Request { client_now, ttl, node_ids, rest };
        perform(of, line, Kind::Acquire, token, machine_now.saturating_add(since), |known| {
            ask.parameters(known)
        })
        .await
    };

    let (node_ids, complete) = candidates(request.token, limits, rules::CANDIDATES + 2 * want);
    let mut answer = ask(&node_ids, want, 0).await?;
    let first_now = answer.now;
    let mut leases = answer.leases;
    let mut free_at = complete.then(|| answer.detail.parse().ok()).flatten();
    let is_open = |status: &str| matches!(status, "OK" | "BUSY");
    if !complete && is_open(&answer.status) && leases.len() < want {
        for (first, last) in blocks(request.token, limits, BLOCK) {
            leases.sort_unstable();
            let is_new = |id: &u32| leases.binary_search_by_key(id, |lease| lease.node_id).is_err();
            let node_ids: Vec<u32> = (first..=last).filter(is_new).collect();
            let since = answer.now.saturating_sub(first_now);
            answer = ask(&node_ids, want - leases.len(), since).await?;
            leases.extend(answer.leases);
            free_at = free_at.into_iter().chain(answer.detail.parse().ok()).min();
            if !is_open(&answer.status) || leases.len() >= want {
                break;
            }
        }
    }
    let now = answer.now;
    if !leases.is_empty() {
        leases.sort_unstable();
        return Ok(Acquired::Granted { now, leases });
    }
    match answer.status.as_str() {
        "BUSY" => Ok(Acquired::Busy { now, free_at }),
        "CLOCK_SKEW" => Ok(Acquired::ClockSkew { store_now: now, max_skew: limits.max_skew }),
        "QUARANTINE" => {
            Ok(Acquired::Quarantined { now, until: number(of, &answer.detail, "floor")? })
        }
        status => Err(unexpected(of, status)),
    }
}

pub(super) async fn renew(
    of: &Protocol,
    line: &Line,
    request: &Renew,
    machine_now: i64,
) -> Result<Renewed> {
    let limits = session(of, line, machine_now).await?.made.limits;
    rules::check_ttl(limits, request.ttl)?;
    let Renew { token, ref node_ids, ttl, client_now } = *request;
    let ask = Request { client_now, ttl, node_ids, rest: vec![] };
    let rest = |known: &Known| ask.parameters(known);
    let Answer { status, now, leases, .. } =
        perform(of, line, Kind::Renew, token, machine_now, rest).await?;
    match status.as_str() {
        "OK" if !leases.is_empty() => Ok(Renewed::Extended { now, leases }),
        "LOST" => Ok(Renewed::Lost { now }),
        "CLOCK_SKEW" => Ok(Renewed::ClockSkew { store_now: now, max_skew: limits.max_skew }),
        status => Err(unexpected(of, status)),
    }
}

pub(super) async fn release(
    of: &Protocol,
    line: &Line,
    request: &Release,
    now: i64,
) -> Result<Released> {
    let Release { token, ref node_ids, used_until } = *request;
    let ask = Request { client_now: 0, ttl: 0, node_ids, rest: vec![used_until.to_string()] };
    let rest = |known: &Known| ask.parameters(known);
    let answer = perform(of, line, Kind::Release, token, now, rest).await?;
    status_is_ok(of, &answer)?;
    Ok(Released { count: answer.detail.parse().map_err(|_| of.malformed("a count"))? })
}

pub(super) async fn fence(of: &Protocol, line: &Line, token: Token, now: i64) -> Result<Fenced> {
    let rest = |known: &Known| vec![hex(&known.made.salt)];
    let answer = perform(of, line, Kind::Fence, token, now, rest).await?;
    status_is_ok(of, &answer)?;
    let [renew_above, floor] = &answer.numbers;
    Ok(Fenced {
        now: answer.now,
        floor: number(of, floor, "floor")?,
        renew_above: number(of, renew_above, "renew_above")?,
    })
}

/// Looks, and writes nothing: not even that the server is another one.
pub(super) async fn list(of: &Protocol, line: &Line, request: &List) -> Result<Listed> {
    let node_id = request.node_id.map(|node_id| node_id.to_string()).unwrap_or_default();
    let mut response = insist(of, line, Kind::List, request.token, vec![node_id]).await?;
    // Redis has them in a second row, field by field.
    let fields = match &mut response {
        Response::Rows(rows) if rows.len() == 2 => rows.pop().unwrap_or_default(),
        _ => vec![],
    };
    let rows: Vec<[String; 15]> = cells(of, response, Kind::List, request.token)?;
    let [_, _, status, now, changed, made_cells @ .., floor, renew_above, nodes] = &rows[0];
    match status.as_str() {
        "OK" => {}
        "NOT_INITIALIZED" => return Err(of.not_initialized()),
        status => return Err(unexpected(of, status)),
    }
    let made = made(of, made_cells)?;
    of.namespace.check(&made)?;
    let quarantine = Quarantine {
        floor: number(of, floor, "floor")?,
        renew_above: number(of, renew_above, "renew_above")?,
    };
    let in_fields = fields.as_chunks::<2>().0.iter().filter_map(|[field, value]| {
        let is_node = |field: &&str| field.bytes().all(|byte| byte.is_ascii_digit());
        let node_id = field.as_deref().filter(is_node)?;
        Some(node_in_field(node_id, value.as_deref()))
    });
    let nodes: Option<Vec<Node>> = nodes.lines().map(node).chain(in_fields).collect();
    let mut nodes = nodes.ok_or_else(|| of.malformed("a node id"))?;
    nodes.sort_unstable_by_key(|node| node.lease.node_id);
    let listed = rules::listed(&made, quarantine, number(of, now, "now")?, nodes);
    let last_grant = if of.engine == Engine::Redis { LAST_GRANT } else { 0 };
    Ok(Listed { incarnation_changed: changed == "true", last_grant, ..listed })
}

/// Reads a field of the hash in Redis.
fn node_in_field(node_id: &str, value: Option<&str>) -> Option<Node> {
    let mut words = value?.splitn(4, ' ');
    let (start, end, token) = (words.next()?, words.next()?, words.next()?);
    let (held, note) = (token != "-", words.next().unwrap_or_default());
    node(&format!("{node_id} {start} {end} {held} {note}"))
}

/// Reads a line of a list: node id, start, end, whether it is held, and the note.
fn node(line: &str) -> Option<Node> {
    let mut words = line.splitn(5, ' ');
    let node_id = words.next()?.parse().ok().filter(|node_id| *node_id <= layout::MAX_NODE_ID)?;
    let (start, end_exclusive) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let held = words.next()? == "true";
    let note = Note::new(words.next()?);
    Some(Node { lease: NodeLease { node_id, start, end_exclusive }, held, note })
}

/// Changes one node id, if it is still what it was when that was decided: the decision is Rust's. A
/// client may have repeated what was done, and been refused: then it is as it was to be.
pub(super) async fn cut(
    of: &Protocol,
    line: &Line,
    token: Token,
    node_id: u32,
    change: impl Fn(Limits, i64, &Node) -> Result<NodeLease>,
) -> Result<Shortened> {
    let mut wanted = None;
    for _ in 0..TRIES {
        let listed = list(of, line, &List { token, node_id: Some(node_id) }).await?;
        let node = listed.nodes.first().ok_or_else(|| rules::never_leased(node_id))?;
        if let Some((done, cut)) = wanted
            && done == *node
        {
            return Ok(cut);
        }
        let lease = change(listed.limits, listed.now, node)?;
        let (from, to) = (node.lease.end_exclusive, lease.end_exclusive);
        let rest = [node.lease.start, from, lease.start, to].map(|second| second.to_string());
        let rest = [vec![node_id.to_string()], rest.to_vec()].concat();
        let cut = Shortened { now: listed.now, from, to };
        if compared(of, line, Kind::Cut, token, rest).await? {
            return Ok(cut);
        }
        wanted = Some((Node { lease, held: false, ..*node }, cut));
    }
    Err(of.unavailable("it changes while it is asked, again and again"))
}

/// Changes the quarantine, if it is still what it was when that was decided.
pub(super) async fn cut_floor(
    of: &Protocol,
    line: &Line,
    token: Token,
    change: impl Fn(Limits, i64, Quarantine) -> Result<(Quarantine, Shortened)>,
) -> Result<Shortened> {
    let mut wanted = None;
    for _ in 0..TRIES {
        let listed = list(of, line, &List { token, node_id: Some(0) }).await?;
        let Listed { floor, renew_above, .. } = listed;
        let before = Quarantine { floor, renew_above };
        if let Some((done, cut)) = wanted
            && done == before
        {
            return Ok(cut);
        }
        let (quarantine, cut) = change(listed.limits, listed.now, before)?;
        let rest = [floor, quarantine.floor, quarantine.renew_above];
        let rest = rest.iter().map(ToString::to_string).collect();
        if compared(of, line, Kind::CutFloor, token, rest).await? {
            return Ok(cut);
        }
        wanted = Some((quarantine, cut));
    }
    Err(of.unavailable("it changes while it is asked, again and again"))
}

/// Runs what writes only where nothing has changed, and returns whether it has written.
async fn compared(
    of: &Protocol,
    line: &Line,
    kind: Kind,
    token: Token,
    rest: Vec<String>,
) -> Result<bool> {
    let response = insist(of, line, kind, token, rest).await?;
    let answer = answer(of, response, kind, token)?;
    match answer.status.as_str() {
        "OK" => Ok(true),
        "CHANGED" => Ok(false),
        status => Err(unexpected(of, status)),
    }
}

/// Runs what needs nothing to be known of the namespace.
async fn insist(
    of: &Protocol,
    line: &Line,
    kind: Kind,
    token: Token,
    rest: Vec<String>,
) -> Result<Response> {
    for _ in 0..TRIES {
        match line.run(statement(of, kind, token, rest.clone())).await {
            Response::Refused { code, .. } if AGAIN.contains(&code.as_str()) => {
                line.run(PAUSE).await;
            }
            Response::Refused { code, .. } if code == UNDEFINED_TABLE => {
                return Err(of.not_initialized());
            }
            response => return Ok(response),
        }
    }
    Err(of.unavailable("it asks to repeat the same statement again and again"))
}
