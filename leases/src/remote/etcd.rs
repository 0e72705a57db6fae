//! etcd, by its JSON gateway. Each operation is a transaction that compares the versions of all
//! that it was decided on. etcd keeps no time: its clock is the `Date` of its gateway's answers, which
//! comes with the JSON. Whatever ids depend on (a fence, a repair, a release for the dead) is
//! decided only where that clock and this machine's agree. Without the header there is only one
//! clock, and that is refused; leases then go by this machine's, which decides no more than when
//! they are of use.
//!
//! Keys: `randflake/<namespace>/meta`, and `randflake/<namespace>/node/<node id>` for each node id
//! that was ever leased, with the text `start end_exclusive token before note`. `before` is the end
//! before the last renewal, or the end if there was none; `-` is a token that was given back.
//!
//! A restored etcd tells so only in the header of its answer, which comes after the write. So what
//! was written before the last fence counts for less: an acquire not at all, a renewal only as far
//! as the end before it. Without that, a write whose answer is lost could hide that the lease was
//! over, and had gone to somebody else in the time that was forgotten.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use randflake::layout;
use serde_json::{Value, json};

use super::{Known, Line, Protocol, Response, Statement, TRIES, blocks, candidates, hex, unhex};
use crate::{
    Acquire, Acquired, Fenced, InitMode, Limits, NamespaceMetadata, NodeLease, Note, Release,
    Released, Renew, Renewed, Result, Token,
    operator::{Listed, Node, Shortened},
    rules::{self, Quarantine},
};

/// Node ids written by one transaction; etcd allows 128 operations unless told otherwise.
const WRITES: usize = 40;
/// Node ids looked at one by one, at first and then: each is one of those operations.
const LOOKS: [usize; 2] = [8, 100];
/// Node ids looked at as a range.
const BLOCK: u32 = 1000;
/// Node ids of one answer of a list: with the longest names and notes less than a megabyte.
const PAGE: usize = 500;

/// What etcd knows of one node id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Row {
    start: i64,
    end_exclusive: i64,
    token: Option<Token>,
    before: i64,
    note: Note,
    /// Version of the key; 0: there is none.
    revision: i64,
}

/// A node id that was never leased.
const NEVER: Row =
    Row { start: 0, end_exclusive: 0, token: None, before: 0, note: Note::NONE, revision: 0 };

impl Row {
    fn text(&self) -> String {
        let token = self.token.map_or("-".into(), |token| hex(token.as_bytes()));
        format!("{} {} {token} {} {}", self.start, self.end_exclusive, self.before, self.note)
    }

    fn parse(text: &str, revision: i64) -> Option<Self> {
        let mut words = text.splitn(5, ' ');
        let (start, end_exclusive) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let token = match words.next()? {
            "-" => None,
            digits => Some(Token::from_bytes(unhex(digits)?)),
        };
        let before = words.next()?.parse().ok()?;
        let note = Note::new(words.next().unwrap_or_default());
        Some(Self { start, end_exclusive, token, before, note, revision })
    }

    fn node(&self, node_id: u32) -> Node {
        Node { lease: lease((node_id, *self)), held: self.token.is_some(), note: self.note }
    }
}

/// Which node ids a transaction looks at if it cannot write.
#[derive(Clone)]
enum Look {
    Each(Vec<u32>),
    Block(u32, u32),
}

/// What a transaction showed.
struct Seen {
    /// What was to be written is written.
    written: bool,
    rows: BTreeMap<u32, Row>,
}

fn meta_key(of: &Protocol) -> String {
    format!("{}meta", directory(of))
}

fn directory(of: &Protocol) -> String {
    // A name may hold a slash; no two names may share a key.
    let name = of.namespace.name().replace('%', "%25").replace('/', "%2f");
    format!("randflake/{name}/")
}

fn node_key(of: &Protocol, node_id: u32) -> String {
    format!("{}node/{node_id:06}", directory(of))
}

fn get(key: &str) -> Value {
    json!({"request_range": {"key": BASE64.encode(key)}})
}

fn put(key: &str, value: &str) -> Value {
    json!({"request_put": {"key": BASE64.encode(key), "value": BASE64.encode(value)}})
}

fn is_at(key: &str, revision: i64) -> Value {
    json!({
        "key": BASE64.encode(key),
        "target": "MOD",
        "result": "EQUAL",
        "mod_revision": revision.to_string(),
    })
}

impl Look {
    fn has(&self, node_id: u32) -> bool {
        match self {
            Self::Each(node_ids) => node_ids.contains(&node_id),
            Self::Block(first, last) => (*first..=*last).contains(&node_id),
        }
    }

    fn requests(&self, of: &Protocol) -> Vec<Value> {
        match self {
            Self::Each(node_ids) => {
                node_ids.iter().map(|node_id| get(&node_key(of, *node_id))).collect()
            }
            Self::Block(first, last) => vec![json!({"request_range": {
                "key": BASE64.encode(node_key(of, *first)),
                "range_end": BASE64.encode(node_key(of, last + 1)),
            }})],
        }
    }
}

/// An answer to a transaction.
struct Body {
    /// The server's clock, if it came with the answer.
    date: Option<i64>,
    cluster_id: String,
    revision: i64,
    succeeded: bool,
    /// Key, value and version of everything that was looked at.
    found: Vec<(String, String, i64)>,
}

impl Body {
    /// Returns by how many seconds etcd's clock is ahead of this machine's.
    fn ahead_of(&self, now: i64) -> Option<i64> {
        self.date.map(|date| date - now)
    }
}

impl Known {
    /// Returns etcd's clock, as far as its last answer showed it.
    fn date(&self, now: i64) -> Option<i64> {
        self.ahead.map(|ahead| now.saturating_add(ahead))
    }

    /// Returns the time by which leases are granted: this machine's where etcd shows none.
    fn store_now(&self, now: i64) -> i64 {
        self.date(now).unwrap_or(now)
    }
}

/// Runs a transaction: writes all of `puts` if `compares` hold, else does `otherwise`.
///
/// A success reads back what it wrote last, by which the answer is known to be one to this very
/// request. Any other answer is a hint what to compare next: a wrong one harms nobody.
async fn transact(
    of: &Protocol,
    line: &Line,
    compares: Vec<Value>,
    puts: &[(String, String)],
    otherwise: Vec<Value>,
) -> Result<Body> {
    let mut success: Vec<Value> = puts.iter().map(|(key, value)| put(key, value)).collect();
    success.extend(puts.last().map(|(key, _)| get(key)));
    let (success, failure) =
        if puts.is_empty() { (otherwise, vec![]) } else { (success, otherwise) };
    let body = json!({"compare": compares, "success": success, "failure": failure});
    let parameters = vec![body.to_string()];
    let response = line.run(Statement { text: "/v3/kv/txn", parameters, wait: None }).await;
    let body = read(of, response)?;
    if let (true, Some((key, value))) = (body.succeeded, puts.last()) {
        let echo = (key.clone(), value.clone(), body.revision);
        if body.found != [echo] {
            return Err(of.foreign());
        }
    }
    Ok(body)
}

fn read(of: &Protocol, response: Response) -> Result<Body> {
    let mut cells = match response {
        Response::Rows(rows) | Response::Confirmed { rows, .. } => rows.into_iter().flatten(),
        Response::Refused { code, message } => {
            return Err(of.unavailable(&format!("it says {code}: {message}")));
        }
    };
    let body: Value = cells
        .next()
        .flatten()
        .and_then(|text| serde_json::from_str(&text).ok())
        .ok_or_else(|| of.malformed("no JSON"))?;
    if let Some(error) = body.get("error").or_else(|| body.get("message")) {
        let error: String = error.to_string().chars().take(200).collect();
        return Err(of.unavailable(&format!("it says {error}")));
    }
    let header = &body["header"];
    let cluster_id = header["cluster_id"].as_str().ok_or_else(|| of.malformed("header"))?;
    let mut found = Vec::new();
    let no_responses = Vec::new();
    for response in body["responses"].as_array().unwrap_or(&no_responses) {
        for pair in response["response_range"]["kvs"].as_array().unwrap_or(&no_responses) {
            let text = |name: &str| {
                let bytes = BASE64.decode(pair[name].as_str().unwrap_or_default()).ok()?;
                String::from_utf8(bytes).ok()
            };
            let pair = text("key").zip(text("value")).zip(integer(&pair["mod_revision"]));
            let ((key, value), revision) = pair.ok_or_else(|| of.malformed("a key"))?;
            found.push((key, value, revision));
        }
    }
    Ok(Body {
        date: cells.next().flatten().and_then(|date| unix_second_of(&date)),
        cluster_id: cluster_id.into(),
        revision: integer(&header["revision"]).ok_or_else(|| of.malformed("revision"))?,
        // The gateway leaves out what is false.
        succeeded: body["succeeded"].as_bool().unwrap_or(false),
        found,
    })
}

/// The gateway writes numbers of 64 bits as text.
fn integer(value: &Value) -> Option<i64> {
    value.as_str()?.parse().ok()
}

/// Reads a `Date` header, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(super) fn unix_second_of(date: &str) -> Option<i64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let words: Vec<&str> = date.trim().split([' ', ':']).collect();
    let [_, day, month, year, hour, minute, second, "GMT"] = words[..] else { return None };
    let within = |text: &str, range: std::ops::RangeInclusive<i64>| {
        text.parse().ok().filter(|number| range.contains(number))
    };
    let month = MONTHS.find(month).filter(|at| month.len() == 3 && at % 3 == 0)? / 3;
    // Counted from March, so that the day of a leap year is the last one.
    let (month, year) = (i64::try_from(month).ok()?, within(year, 1970..=9999)?);
    let (month, year) = if month < 2 { (month + 10, year - 1) } else { (month - 2, year) };
    let days = year * 365 + year / 4 - year / 100
        + year / 400
        + (month * 153 + 2) / 5
        + within(day, 1..=31)?
        - 719_469;
    let [hour, minute] = [within(hour, 0..=23)?, within(minute, 0..=59)?];
    Some(((days * 24 + hour) * 60 + minute) * 60 + within(second, 0..=60)?)
}

/// Returns the time for a decision that ids depend on: the later one of etcd's clock and this
/// machine's, where they agree. It is late enough if either of them is right.
fn confirmed(of: &Protocol, limits: Limits, date: Option<i64>, now: i64) -> Result<i64> {
    let Some(date) = date else {
        return Err(of.unavailable(
            "its answer came without the Date header, so that there is only one clock: that may \
             be wrong, and a fence, a quarantine, a repair and a release for the dead need two \
             that agree; use a client that passes the header on, as those for URLs do",
        ));
    };
    rules::check_clocks(limits, date, now)?;
    Ok(date.max(now))
}

/// Looks at the namespace, makes it if asked to, and fences it if the server turns out to be
/// another one, or to have gone back in its history.
pub(super) async fn check(
    of: &Protocol,
    line: &Line,
    init: Option<InitMode>,
    now: i64,
) -> Result<Known> {
    let key = meta_key(of);
    for _ in 0..TRIES {
        let body = transact(of, line, vec![], &[], vec![get(&key)]).await?;
        let Some((_, value, meta_revision)) = body.found.iter().find(|(found, ..)| *found == key)
        else {
            let quarantine = match of.missing(init)? {
                InitMode::New => Quarantine::default(),
                InitMode::Quarantine => {
                    let limits = of.namespace.limits();
                    let now = confirmed(of, limits, body.date, now)?;
                    rules::fence(limits, Quarantine::default(), now)?.0
                }
            };
            let value = meta(&of.to_make(), &body.cluster_id, quarantine);
            let puts = [(key.clone(), value)];
            transact(of, line, vec![is_at(&key, 0)], &puts, vec![]).await?;
            continue;
        };
        let known = parse_meta(value)
            .map(|(made, incarnation, quarantine)| Known {
                replicas: 0,
                made,
                incarnation,
                meta_revision: *meta_revision,
                quarantine,
                revision: body.revision,
                ahead: body.ahead_of(now),
            })
            .ok_or_else(|| of.malformed("meta"))?;
        let went_back = of.known().is_some_and(|before| before.revision > body.revision);
        if known.incarnation == body.cluster_id && !went_back {
            of.learn(&known)?;
            return Ok(known);
        }
        of.namespace.check(&known.made)?;
        if put_fence(of, line, &known, &body.cluster_id, now).await?.is_some() {
            // From here on the history is the one of this server.
            if let Some(before) = &mut of.state().known {
                before.revision = 0;
            }
        }
    }
    Err(of.unavailable("its namespace changes again and again"))
}

/// Writes a fence unless the namespace has changed meanwhile.
async fn put_fence(
    of: &Protocol,
    line: &Line,
    known: &Known,
    cluster_id: &str,
    now: i64,
) -> Result<Option<Fenced>> {
    let limits = known.made.limits;
    let now = confirmed(of, limits, known.date(now), now)?;
    let (quarantine, fenced) = rules::fence(limits, known.quarantine, now)?;
    let written = put_quarantine(of, line, known, cluster_id, quarantine).await?;
    Ok(written.then_some(fenced))
}

/// Writes a quarantine unless the namespace has changed meanwhile.
async fn put_quarantine(
    of: &Protocol,
    line: &Line,
    known: &Known,
    cluster_id: &str,
    quarantine: Quarantine,
) -> Result<bool> {
    let key = meta_key(of);
    let puts = [(key.clone(), meta(&known.made, cluster_id, quarantine))];
    let body = transact(of, line, vec![is_at(&key, known.meta_revision)], &puts, vec![]).await?;
    Ok(body.succeeded)
}

fn meta(made: &NamespaceMetadata, incarnation: &str, quarantine: Quarantine) -> String {
    json!({
        "format": made.format,
        "incarnation": incarnation,
        "floor": quarantine.floor,
        "renew_above": quarantine.renew_above,
        "max_ttl": made.limits.max_ttl,
        "max_skew": made.limits.max_skew,
        "max_node_id": made.limits.max_node_id,
        "layout": made.layout,
        "salt": hex(&made.salt),
        "key_check": hex(&made.key_check),
    })
    .to_string()
}

fn parse_meta(text: &str) -> Option<(NamespaceMetadata, String, Quarantine)> {
    let meta: Value = serde_json::from_str(text).ok()?;
    let limit = |name: &str| u32::try_from(meta[name].as_u64()?).ok();
    let made = NamespaceMetadata {
        format: limit("format")?,
        limits: Limits {
            max_ttl: limit("max_ttl")?,
            max_skew: limit("max_skew")?,
            max_node_id: limit("max_node_id")?,
        },
        layout: meta["layout"].as_str()?.into(),
        salt: unhex(meta["salt"].as_str()?)?,
        key_check: unhex(meta["key_check"].as_str()?)?,
    };
    let quarantine =
        Quarantine { floor: meta["floor"].as_i64()?, renew_above: meta["renew_above"].as_i64()? };
    Some((made, meta["incarnation"].as_str()?.into(), quarantine))
}

async fn session(of: &Protocol, line: &Line, now: i64) -> Result<Known> {
    match of.known() {
        Some(known) => Ok(known),
        None => check(of, line, None, now).await,
    }
}

/// Writes `rows` if none of the node ids and nothing of the namespace has changed, and else looks.
/// What a server wrote that turns out to be another one does not count.
async fn write(
    of: &Protocol,
    line: &Line,
    rows: &[(u32, Row)],
    look: &Look,
    now: i64,
) -> Result<Seen> {
    let known = session(of, line, now).await?;
    let mut compares = vec![];
    if !rows.is_empty() {
        compares.push(is_at(&meta_key(of), known.meta_revision));
        compares
            .extend(rows.iter().map(|(node_id, row)| is_at(&node_key(of, *node_id), row.revision)));
    }
    let puts: Vec<(String, String)> =
        rows.iter().map(|(node_id, row)| (node_key(of, *node_id), row.text())).collect();
    let mut otherwise = look.requests(of);
    otherwise.push(get(&meta_key(of)));
    let mut body = transact(of, line, compares, &puts, otherwise.clone()).await?;
    let same = |body: &Body, known: &Known| {
        body.cluster_id == known.incarnation && body.revision >= known.revision
    };
    if same(&body, &known) {
        if let Some(known) = &mut of.state().known {
            known.revision = known.revision.max(body.revision);
            known.ahead = body.ahead_of(now);
        }
        if !rows.is_empty() && body.succeeded {
            let revision = body.revision;
            let written = rows.iter().map(|(node_id, row)| (*node_id, Row { revision, ..*row }));
            let rows: BTreeMap<u32, Row> = written.collect();
            of.state().rows.extend(&rows);
            return Ok(Seen { written: true, rows });
        }
    }
    let key = meta_key(of);
    let moved = body.found.iter().all(|(found, _, at)| *found != key || *at != known.meta_revision);
    if !same(&body, &known) || moved {
        check(of, line, None, now).await?;
        body = transact(of, line, vec![], &[], otherwise).await?;
    }
    let nodes = format!("{}node/", directory(of));
    let mut rows = BTreeMap::new();
    for (found, value, revision) in &body.found {
        if *found == key {
            continue;
        }
        // Who is shown what was not asked for is told what somebody else has asked.
        let node_id = found.strip_prefix(&nodes).and_then(|id| id.parse().ok());
        let node_id = node_id.filter(|id| look.has(*id)).ok_or_else(|| of.foreign())?;
        let row = Row::parse(value, *revision).ok_or_else(|| of.malformed("a node id"))?;
        rows.insert(node_id, row);
    }
    if let Look::Each(node_ids) = look {
        for node_id in node_ids {
            rows.entry(*node_id).or_insert(NEVER);
        }
    }
    Ok(Seen { written: false, rows })
}

async fn glance(of: &Protocol, line: &Line, look: &Look, now: i64) -> Result<BTreeMap<u32, Row>> {
    Ok(write(of, line, &[], look, now).await?.rows)
}

pub(super) async fn acquire(
    of: &Protocol,
    line: &Line,
    request: &Acquire,
    now: i64,
) -> Result<Acquired> {
    // What was seen of the clocks before may no longer be so: this machine's may have stepped.
    let known = check(of, line, None, now).await?;
    let limits = known.made.limits;
    let time = Time { machine: now, store: known.store_now(now) };
    rules::check_want(request.want)?;
    rules::end_of(limits, time.store, request.ttl)?;
    let want = request.want as usize;
    // At first as if none of them had ever been leased: then one round trip does it.
    let mut fresh = Some(BTreeMap::new());
    let (mut taken, mut complete) = (Taken::default(), false);
    for count in LOOKS {
        let node_ids;
        let count = count.max((2 * want).min(LOOKS[1]));
        (node_ids, complete) = candidates(request.token, limits, count);
        let look = Look::Each(node_ids.clone());
        taken = take(of, line, request, &node_ids, &look, fresh.take(), want, time).await?;
        if complete || !taken.leases.is_empty() || taken.refusal.is_some() {
            break;
        }
    }
    if let Some(refusal) = taken.refusal.take() {
        return Ok(refusal);
    }
    let mut leases = taken.leases;
    let mut free_at = taken.free_at;
    if !complete && !taken.held && leases.len() < want {
        free_at = None;
        for (first, last) in blocks(request.token, limits, BLOCK) {
            leases.sort_unstable();
            let is_new = |id: &u32| leases.binary_search_by_key(id, |lease| lease.node_id).is_err();
            let node_ids: Vec<u32> = (first..=last).filter(is_new).collect();
            let look = Look::Block(first, last);
            let left = want - leases.len();
            let taken = take(of, line, request, &node_ids, &look, None, left, time).await?;
            leases.extend(taken.leases);
            free_at = free_at.into_iter().chain(taken.free_at).min();
            if taken.held || taken.refusal.is_some() || leases.len() >= want {
                break;
            }
        }
    }
    if leases.is_empty() {
        return Ok(Acquired::Busy { now: time.store, free_at });
    }
    leases.sort_unstable();
    Ok(Acquired::Granted { now: time.store, leases })
}

/// When an acquire began, by two clocks.
#[derive(Clone, Copy)]
struct Time {
    machine: i64,
    store: i64,
}

/// What came of some node ids.
#[derive(Default)]
struct Taken {
    leases: Vec<NodeLease>,
    /// They were the token's before.
    held: bool,
    refusal: Option<Acquired>,
    free_at: Option<i64>,
}

/// Takes up to `want` of the node ids, of which `seen` is known.
#[allow(clippy::too_many_arguments, reason = "one step of one operation")]
async fn take(
    of: &Protocol,
    line: &Line,
    request: &Acquire,
    node_ids: &[u32],
    look: &Look,
    mut seen: Option<BTreeMap<u32, Row>>,
    want: usize,
    time: Time,
) -> Result<Taken> {
    let now = time.store;
    let mut outcome = Taken::default();
    let mut looked = false;
    for _ in 0..TRIES + want / WRITES {
        let known = session(of, line, time.machine).await?;
        let refusal = refusal(&known, request, now);
        let rows = match &mut seen {
            Some(rows) if looked || refusal.is_none() => rows,
            _ => {
                looked = true;
                seen.insert(glance(of, line, look, time.machine).await?)
            }
        };
        let row = |node_id: &u32| rows.get(node_id).copied().unwrap_or(NEVER);
        if outcome.leases.is_empty() {
            let held =
                node_ids.iter().map(|node_id| (*node_id, row(node_id))).filter(|(_, row)| {
                    row.token == Some(request.token) && row.revision > known.meta_revision
                });
            outcome.leases = held.map(lease).collect();
            outcome.held = !outcome.leases.is_empty();
        }
        let left = want.saturating_sub(outcome.leases.len());
        if outcome.held || left == 0 {
            return Ok(outcome);
        }
        if refusal.is_some() {
            outcome.refusal = refusal;
            return Ok(outcome);
        }
        let limits = known.made.limits;
        let end_exclusive = rules::end_of(limits, now, request.ttl)?;
        let earliest = known.quarantine.floor.max(rules::earliest(limits, now));
        let picked: Vec<(u32, Row)> = node_ids
            .iter()
            .map(|node_id| (*node_id, row(node_id)))
            .filter(|(_, row)| row.end_exclusive <= now)
            .take(left.min(WRITES))
            .map(|(node_id, row)| {
                let start = row.end_exclusive.max(earliest);
                let before = end_exclusive;
                let revision = row.revision;
                let (token, note) = (Some(request.token), request.note);
                (node_id, Row { start, end_exclusive, token, before, note, revision })
            })
            .collect();
        if picked.is_empty() {
            outcome.free_at = node_ids.iter().map(|node_id| row(node_id).end_exclusive).min();
            return Ok(outcome);
        }
        let after = write(of, line, &picked, look, time.machine).await?;
        if after.written {
            rows.extend(&after.rows);
            outcome.leases.extend(after.rows.into_iter().map(lease));
        } else {
            looked = true;
            seen = Some(after.rows);
        }
    }
    Ok(outcome) // others were always faster
}

fn refusal(known: &Known, request: &Acquire, now: i64) -> Option<Acquired> {
    let max_skew = known.made.limits.max_skew;
    if now.abs_diff(request.client_now) > max_skew.into() {
        return Some(Acquired::ClockSkew { store_now: now, max_skew });
    }
    let until = known.quarantine.floor;
    (until > now).then_some(Acquired::Quarantined { now, until })
}

fn lease((node_id, row): (u32, Row)) -> NodeLease {
    NodeLease { node_id, start: row.start, end_exclusive: row.end_exclusive }
}

pub(super) async fn renew(
    of: &Protocol,
    line: &Line,
    request: &Renew,
    now: i64,
) -> Result<Renewed> {
    let skew = |known: &Known| {
        let (store_now, max_skew) = (known.store_now(now), known.made.limits.max_skew);
        let skewed = store_now.abs_diff(request.client_now) > max_skew.into();
        skewed.then_some(Renewed::ClockSkew { store_now, max_skew })
    };
    let known = session(of, line, now).await?;
    let end_exclusive = rules::end_of(known.made.limits, known.store_now(now), request.ttl)?;
    if let Some(skewed) = skew(&known) {
        return Ok(skewed);
    }
    let change = |known: &Known, row: Row| {
        let written_before_the_fence = row.revision < known.meta_revision;
        let sure = if written_before_the_fence { row.before } else { row.end_exclusive };
        (sure > known.quarantine.renew_above).then(|| Row {
            before: row.end_exclusive,
            end_exclusive: row.end_exclusive.max(end_exclusive),
            ..row
        })
    };
    let rows = rewrite(of, line, request.token, &request.node_ids, now, change).await?;
    // One round trip has to do: the first look was at clocks of the last answer.
    let known = session(of, line, now).await?;
    if let Some(skewed) = skew(&known) {
        return Ok(skewed);
    }
    let now = known.store_now(now);
    let mut leases: Vec<NodeLease> = rows.into_iter().map(lease).collect();
    leases.sort_unstable();
    Ok(if leases.is_empty() { Renewed::Lost { now } } else { Renewed::Extended { now, leases } })
}

pub(super) async fn release(
    of: &Protocol,
    line: &Line,
    request: &Release,
    now: i64,
) -> Result<Released> {
    session(of, line, now).await?;
    // Keys are never deleted: an end must not be forgotten.
    let change = |_: &Known, row: Row| {
        let end_exclusive = request.used_until.clamp(row.start, row.end_exclusive);
        Some(Row { end_exclusive, token: None, before: end_exclusive, ..row })
    };
    let rows = rewrite(of, line, request.token, &request.node_ids, now, change).await?;
    let mut state = of.state();
    for (node_id, _) in &rows {
        state.rows.remove(node_id);
    }
    Ok(Released { count: u32::try_from(rows.len()).unwrap_or(u32::MAX) })
}

/// Changes those of the node ids that the token holds.
async fn rewrite(
    of: &Protocol,
    line: &Line,
    token: Token,
    node_ids: &[u32],
    now: i64,
    change: impl Fn(&Known, Row) -> Option<Row>,
) -> Result<Vec<(u32, Row)>> {
    let mut written = Vec::new();
    let mut node_ids: Vec<u32> =
        node_ids.iter().copied().filter(|node_id| *node_id <= layout::MAX_NODE_ID).collect();
    node_ids.sort_unstable();
    node_ids.dedup();
    for node_ids in node_ids.chunks(WRITES) {
        let look = Look::Each(node_ids.to_vec());
        let ours = node_ids.iter().map_while(|node_id| {
            let row = of.state().rows.get(node_id).copied()?;
            (row.token == Some(token)).then_some((*node_id, row))
        });
        let ours: BTreeMap<u32, Row> = ours.collect();
        let mut seen =
            if ours.len() == node_ids.len() { ours } else { glance(of, line, &look, now).await? };
        let mut tries = 0;
        loop {
            let known = session(of, line, now).await?;
            let rows: Vec<(u32, Row)> = seen
                .iter()
                .filter(|(_, row)| row.token == Some(token))
                .filter_map(|(node_id, row)| Some((*node_id, change(&known, *row)?)))
                .collect();
            if rows.is_empty() {
                break;
            }
            let after = write(of, line, &rows, &look, now).await?;
            if after.written {
                written.extend(after.rows);
                break;
            }
            seen = after.rows;
            tries += 1;
            if tries == TRIES {
                return Err(of.unavailable("its node ids change again and again"));
            }
        }
    }
    Ok(written)
}

pub(super) async fn fence(of: &Protocol, line: &Line, now: i64) -> Result<Fenced> {
    for _ in 0..TRIES {
        let known = check(of, line, None, now).await?;
        if let Some(fenced) = put_fence(of, line, &known, &known.incarnation, now).await? {
            check(of, line, None, now).await?;
            return Ok(fenced);
        }
    }
    Err(of.unavailable("its namespace changes again and again"))
}

/// Looks, page by page at the version of the first one, and writes nothing.
pub(super) async fn list(
    of: &Protocol,
    line: &Line,
    node_id: Option<u32>,
    now: i64,
) -> Result<Listed> {
    let key = meta_key(of);
    let mut from = node_id.map_or_else(|| node_key(of, 0), |node_id| node_key(of, node_id));
    let end = node_id.map_or_else(|| format!("{}node0", directory(of)), |_| format!("{from}\0"));
    let (mut found_meta, mut revision, mut nodes) = (None, 0, Vec::new());
    loop {
        let range = json!({"request_range": {
            "key": BASE64.encode(&from),
            "range_end": BASE64.encode(&end),
            "limit": PAGE.to_string(),
            "revision": revision.to_string(), // 0: the newest
        }});
        let meta_range = if found_meta.is_none() { vec![get(&key)] } else { vec![] };
        let body = transact(of, line, vec![], &[], [meta_range, vec![range]].concat()).await?;
        if found_meta.is_none() {
            let (_, value, _) = body
                .found
                .iter()
                .find(|(found, ..)| *found == key)
                .ok_or_else(|| of.not_initialized())?;
            let meta = parse_meta(value).ok_or_else(|| of.malformed("meta"))?;
            let went_back = of.known().is_some_and(|known| known.revision > body.revision);
            revision = body.revision;
            found_meta = Some((meta, body.cluster_id, went_back, body.date));
        }
        let before = nodes.len();
        for (found, value, at) in body.found.iter().filter(|(found, ..)| *found != key) {
            let node_id = found.rsplit_once("/node/").and_then(|(_, id)| id.parse().ok());
            let row = Row::parse(value, *at).zip(node_id);
            let (row, node_id) = row.ok_or_else(|| of.malformed("a node id"))?;
            nodes.push(row.node(node_id));
            from = format!("{found}\0");
        }
        if nodes.len() - before < PAGE {
            break;
        }
    }
    let ((made, incarnation, quarantine), cluster_id, went_back, date) =
        found_meta.ok_or_else(|| of.malformed("meta"))?;
    of.namespace.check(&made)?;
    let incarnation_changed = went_back || incarnation != cluster_id;
    let listed = rules::listed(&made, quarantine, date.unwrap_or(now), nodes);
    Ok(Listed { incarnation_changed, has_clock: date.is_some(), ..listed })
}

/// Changes one node id for an operator: it belongs to nobody then. A client may have repeated what
/// was done, and been refused: then it is as it was to be.
pub(super) async fn cut(
    of: &Protocol,
    line: &Line,
    node_id: u32,
    now: i64,
    change: impl Fn(Limits, i64, &Node) -> Result<NodeLease>,
) -> Result<Shortened> {
    let look = Look::Each(vec![node_id]);
    let mut rows = glance(of, line, &look, now).await?;
    let mut wanted = None;
    for _ in 0..TRIES {
        let known = check(of, line, None, now).await?;
        let limits = known.made.limits;
        let store_now = confirmed(of, limits, known.date(now), now)?;
        let row = rows.get(&node_id).copied().filter(|row| row.revision > 0);
        let row = row.ok_or_else(|| rules::never_leased(node_id))?;
        if let Some((done, cut)) = wanted
            && done == (Row { revision: 0, ..row })
        {
            return Ok(cut);
        }
        let NodeLease { start, end_exclusive, .. } = change(limits, store_now, &row.node(node_id))?;
        let free = Row { start, end_exclusive, token: None, before: end_exclusive, ..row };
        let after = write(of, line, &[(node_id, free)], &look, now).await?;
        let cut = Shortened { now: store_now, from: row.end_exclusive, to: end_exclusive };
        if after.written {
            of.state().rows.remove(&node_id);
            return Ok(cut);
        }
        wanted = Some((Row { revision: 0, ..free }, cut));
        rows = after.rows;
    }
    Err(of.unavailable("its node ids change again and again"))
}

/// Changes the quarantine for an operator.
pub(super) async fn cut_floor(
    of: &Protocol,
    line: &Line,
    now: i64,
    change: impl Fn(Limits, i64, Quarantine) -> Result<(Quarantine, Shortened)>,
) -> Result<Shortened> {
    let mut wanted = None;
    for _ in 0..TRIES {
        let known = check(of, line, None, now).await?;
        if let Some((done, cut)) = wanted
            && done == known.quarantine
        {
            return Ok(cut);
        }
        let limits = known.made.limits;
        let store_now = confirmed(of, limits, known.date(now), now)?;
        let (quarantine, cut) = change(limits, store_now, known.quarantine)?;
        if put_quarantine(of, line, &known, &known.incarnation, quarantine).await? {
            check(of, line, None, now).await?;
            return Ok(cut);
        }
        wanted = Some((quarantine, cut));
    }
    Err(of.unavailable("its namespace changes again and again"))
}
