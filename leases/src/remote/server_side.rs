//! PostgreSQL and Redis: each operation is one statement or script that decides on the server, by
//! the server's clock, and answers in rows of text that begin with operation and token.

mod check;
mod examine;
mod responses;
mod settings;
mod statements;

use std::{collections::BTreeMap, future::Future};

use randflake::layout;

#[cfg(test)]
pub(super) use self::check::is_before;
pub(super) use self::{check::check, examine::examine, settings::LAST_GRANT};
use self::{
    check::metadata_of,
    responses::{Decision, cells, decision, node, node_in_field, number, status_is_ok, unexpected},
    settings::check_confirmed,
    statements::{StatementKind, statement},
};
use super::{
    Engine, Response, Statement, TRIES,
    candidates::{candidates, ranges},
    context::{Context, KnownNamespace},
    hex::hex,
};
use crate::{
    Acquire, Acquired, Change, Fence, Fenced, ListCounters, ListedCounters, Release, Released,
    Renew, Renewed, Request, Result, Swap, Swapped, Token,
    operator::{List, Listed, Node, Shortened, Target},
    rules::{self, Lowering, Quarantine, TargetState},
};

/// SQLSTATE: no such table.
const UNDEFINED_TABLE: &str = "42P01";
/// SQLSTATE: serialization failure, deadlock. Nothing was done, and the statement may be repeated.
const RETRY: [&str; 2] = ["40001", "40P01"];
/// Runs before such a repetition: clients that repeat at once meet each other again. From 20
/// milliseconds to a second, mostly short, so that some succeed however many clients there are.
const PAUSE: Statement = Statement {
    text: "select pg_sleep(0.02 * exp(4 * random()))::text",
    parameters: Vec::new(),
    wait: None,
};
/// Node ids of one statement when all are asked for.
const RANGE: u32 = 4096;

/// How PostgreSQL and Redis do a request.
pub trait ServerSideRequest: Request {
    fn run(&self, context: &Context) -> impl Future<Output = Result<Self::Outcome>> + Send;
}

impl ServerSideRequest for Acquire {
    async fn run(&self, context: &Context) -> Result<Acquired> {
        context.namespace().may_lease()?;
        let limits = context.known_or(check(context, None)).await?.metadata.limits;
        rules::check_ttl(limits, self.ttl)?;
        rules::check_want(self.want)?;
        let want = self.want as usize;
        // A later statement is sent later, and says so.
        let ask = async |node_ids: &[u32], want: usize, since: i64| {
            let context = context.later(since);
            let parameters = Parameters {
                client_now: self.client_now.saturating_add(since),
                ttl: self.ttl,
                node_ids,
                rest: vec![want.to_string(), self.note.to_string()],
            };
            perform(&context, StatementKind::Acquire, self.token, |known| parameters.list(known))
                .await
        };

        let (node_ids, complete) = candidates(self.token, limits, rules::CANDIDATES + 2 * want);
        let mut decision = ask(&node_ids, want, 0).await?;
        let first_now = decision.now;
        let mut leases = decision.leases;
        let mut free_at = complete.then(|| decision.detail.parse().ok()).flatten();
        let is_open = |status: &str| matches!(status, "OK" | "BUSY");
        if !complete && is_open(&decision.status) && leases.len() < want {
            for (first, last) in ranges(self.token, limits, RANGE) {
                leases.sort_unstable();
                let is_new =
                    |id: &u32| leases.binary_search_by_key(id, |lease| lease.node_id).is_err();
                let node_ids: Vec<u32> = (first..=last).filter(is_new).collect();
                let since = decision.now.saturating_sub(first_now);
                decision = ask(&node_ids, want - leases.len(), since).await?;
                leases.extend(decision.leases);
                free_at = free_at.into_iter().chain(decision.detail.parse().ok()).min();
                if !is_open(&decision.status) || leases.len() >= want {
                    break;
                }
            }
        }
        let now = decision.now;
        if !leases.is_empty() {
            leases.sort_unstable();
            return Ok(Acquired::Granted { now, leases });
        }
        match decision.status.as_str() {
            "BUSY" => Ok(Acquired::Busy { now, free_at }),
            "CLOCK_SKEW" => Ok(Acquired::ClockSkew { store_now: now, max_skew: limits.max_skew }),
            "QUARANTINE" => Ok(Acquired::Quarantined {
                now,
                until: number(context, &decision.detail, "floor")?,
            }),
            status => Err(unexpected(context, status)),
        }
    }
}

impl ServerSideRequest for Renew {
    async fn run(&self, context: &Context) -> Result<Renewed> {
        let limits = context.known_or(check(context, None)).await?.metadata.limits;
        rules::check_ttl(limits, self.ttl)?;
        let Self { token, ref node_ids, ttl, client_now } = *self;
        let parameters = Parameters { client_now, ttl, node_ids, rest: vec![] };
        let Decision { status, now, leases, .. } =
            perform(context, StatementKind::Renew, token, |known| parameters.list(known)).await?;
        match status.as_str() {
            "OK" if !leases.is_empty() => Ok(Renewed::Extended { now, leases }),
            "LOST" => Ok(Renewed::Lost { now }),
            "CLOCK_SKEW" => Ok(Renewed::ClockSkew { store_now: now, max_skew: limits.max_skew }),
            status => Err(unexpected(context, status)),
        }
    }
}

impl ServerSideRequest for Release {
    async fn run(&self, context: &Context) -> Result<Released> {
        let Self { token, ref node_ids, used_until } = *self;
        let rest = vec![used_until.to_string()];
        let parameters = Parameters { client_now: 0, ttl: 0, node_ids, rest };
        let decision =
            perform(context, StatementKind::Release, token, |known| parameters.list(known)).await?;
        status_is_ok(context, &decision)?;
        let count = decision.detail.parse().map_err(|_| context.malformed("a count"))?;
        Ok(Released { count })
    }
}

impl ServerSideRequest for Fence {
    async fn run(&self, context: &Context) -> Result<Fenced> {
        let parameters = |known: &KnownNamespace| vec![hex(&known.metadata.salt)];
        let decision = perform(context, StatementKind::Fence, self.token, parameters).await?;
        status_is_ok(context, &decision)?;
        let [renew_above, floor] = &decision.numbers;
        Ok(Fenced {
            now: decision.now,
            floor: number(context, floor, "floor")?,
            renew_above: number(context, renew_above, "renew_above")?,
        })
    }
}

impl ServerSideRequest for List {
    /// Writes nothing, not even that the server is another one.
    async fn run(&self, context: &Context) -> Result<Listed> {
        let node_id = self.node_id.map(|node_id| node_id.to_string()).unwrap_or_default();
        let mut response =
            run_unchecked(context, StatementKind::List, self.token, vec![node_id]).await?;
        // Redis returns the node ids in a second row, field by field.
        let fields = match &mut response {
            Response::Rows(rows) if rows.len() == 2 => rows.pop().unwrap_or_default(),
            _ => vec![],
        };
        let rows: Vec<[String; 15]> = cells(context, response, StatementKind::List, self.token)?;
        let [_, _, status, now, changed, metadata_cells @ .., floor, renew_above, nodes] = &rows[0];
        match status.as_str() {
            "OK" => {}
            "NOT_INITIALIZED" => return Err(context.not_initialized()),
            status => return Err(unexpected(context, status)),
        }
        let metadata = metadata_of(context, metadata_cells)?;
        context.namespace().check(&metadata)?;
        let in_fields = fields.as_chunks::<2>().0.iter().filter_map(|[field, value]| {
            let is_node = |field: &&str| field.bytes().all(|byte| byte.is_ascii_digit());
            let node_id = field.as_deref().filter(is_node)?;
            Some(node_in_field(node_id, value.as_deref()))
        });
        let nodes: Option<Vec<Node>> = nodes.lines().map(node).chain(in_fields).collect();
        let mut nodes = nodes.ok_or_else(|| context.malformed("a node id"))?;
        nodes.sort_unstable_by_key(|node| node.lease.node_id);
        let quarantine = Quarantine {
            floor: number(context, floor, "floor")?,
            renew_above: number(context, renew_above, "renew_above")?,
        };
        Ok(Listed {
            incarnation_changed: changed == "true",
            last_grant: if context.engine() == Engine::Redis { LAST_GRANT } else { 0 },
            ..rules::listed(&metadata, quarantine, number(context, now, "now")?, nodes)
        })
    }
}

impl ServerSideRequest for Swap {
    async fn run(&self, context: &Context) -> Result<Swapped> {
        context.namespace().may_count()?;
        self.check()?;
        let parameters = |known: &KnownNamespace| {
            let [floor, before, after] =
                self.change.as_ref().map_or_else(Default::default, cells_of);
            let (salt, incarnation) = (hex(&known.metadata.salt), known.incarnation.clone());
            vec![salt, incarnation, self.counter.clone(), floor, before, after]
        };
        let decision = perform(context, StatementKind::Swap, self.token, parameters).await?;
        let done = match decision.status.as_str() {
            "OK" => true,
            "CHANGED" => false,
            status => return Err(unexpected(context, status)),
        };
        let floor = number(context, &decision.numbers[1], "floor")?;
        let value = match decision.detail.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None if decision.detail.is_empty() => None,
            None => return Err(context.malformed("a counter")),
        };
        let swapped = Swapped { now: decision.now, done, floor, value };
        let is_what_was_asked = |change: &Change| {
            (change.floor, Some(&change.after)) == (swapped.floor, swapped.value.as_ref())
        };
        if done && !self.change.as_ref().is_some_and(is_what_was_asked) {
            return Err(context.malformed("another value of the counter"));
        }
        Ok(swapped)
    }
}

impl ServerSideRequest for ListCounters {
    /// Reads page by page.
    async fn run(&self, context: &Context) -> Result<ListedCounters> {
        context.namespace().may_count()?;
        for _ in 0..TRIES {
            // A scan of Redis may return a counter twice.
            let mut counters = BTreeMap::new();
            let (mut page, mut server) = (String::new(), None);
            loop {
                let parameters = |known: &KnownNamespace| {
                    vec![hex(&known.metadata.salt), known.incarnation.clone(), page.clone()]
                };
                let decision =
                    perform(context, StatementKind::ListCounters, self.token, parameters).await?;
                status_is_ok(context, &decision)?;
                let answered = context.known().map(|known| known.incarnation);
                if *server.get_or_insert_with(|| answered.clone()) != answered {
                    break; // one server's page does not go on where that of another ended
                }
                let Decision { now, detail, numbers: [next, floor], .. } = decision;
                for line in detail.split('\n').filter(|line| !line.is_empty()) {
                    let counter = line.split_once(' ');
                    let (name, value) = counter.ok_or_else(|| context.malformed("a counter"))?;
                    counters.insert(name.to_owned(), value.to_owned());
                }
                if next.is_empty() {
                    let floor = number(context, &floor, "floor")?;
                    let counters = counters.into_iter().collect();
                    return Ok(ListedCounters { now, floor, counters });
                }
                page = next;
            }
        }
        Err(context.contended())
    }
}

/// Returns the last three parameters of `swap.sql` and `swap.lua`.
fn cells_of(change: &Change) -> [String; 3] {
    let before = change.before.as_ref().map(|before| format!("={before}")).unwrap_or_default();
    [change.floor.to_string(), before, change.after.clone()]
}

impl<R: Lowering> ServerSideRequest for R {
    /// Decides here, and writes only if nothing has changed since. If a client sent the write twice,
    /// the second one is refused, and the target already is as it should be.
    async fn run(&self, context: &Context) -> Result<Shortened> {
        let (token, target) = (self.token(), self.target());
        let node_id = if let Target::Node(node_id) = target { node_id } else { 0 };
        let mut wanted = None;
        for _ in 0..TRIES {
            let listed =
                ServerSideRequest::run(&List { token, node_id: Some(node_id) }, context).await?;
            let Listed { now, limits, floor, renew_above, last_grant, .. } = listed;
            rules::check_target(&listed.layout, target)?;
            let before = match target {
                Target::Node(_) => {
                    let node = listed.nodes.first().ok_or_else(|| rules::never_leased(node_id))?;
                    TargetState::Node(*node)
                }
                Target::Floor => TargetState::Floor(Quarantine { floor, renew_above }),
            };
            if let Some((done, shortened)) = wanted
                && done == before
            {
                return Ok(shortened);
            }
            let (after, shortened) = self.decide(limits, now, last_grant, before)?;
            if write_unless_changed(context, token, before, after).await? {
                return Ok(shortened);
            }
            wanted = Some((after, shortened));
        }
        Err(context.contended())
    }
}

/// Writes the state of a target if it still is what it was before. Returns whether it has written.
async fn write_unless_changed(
    context: &Context,
    token: Token,
    before: TargetState,
    after: TargetState,
) -> Result<bool> {
    let (kind, parameters) = match (before, after) {
        (TargetState::Node(before), TargetState::Node(after)) => {
            let (from, to) = (before.lease, after.lease);
            let seconds = [from.start, from.end_exclusive, to.start, to.end_exclusive];
            (StatementKind::Shorten, [&[from.node_id.into()][..], &seconds].concat())
        }
        (TargetState::Floor(before), TargetState::Floor(after)) => {
            (StatementKind::LowerFloor, vec![before.floor, after.floor, after.renew_above])
        }
        _ => unreachable!("a state of the same target"),
    };
    let parameters = parameters.iter().map(ToString::to_string).collect();
    let response = run_unchecked(context, kind, token, parameters).await?;
    let decision = decision(context, response, kind, token)?;
    match decision.status.as_str() {
        "OK" => Ok(true),
        "CHANGED" => Ok(false),
        status => Err(unexpected(context, status)),
    }
}

/// Runs a statement that does not depend on what is known of the namespace.
async fn run_unchecked(
    context: &Context,
    kind: StatementKind,
    token: Token,
    parameters: Vec<String>,
) -> Result<Response> {
    match run(context, statement(context, kind, token, parameters)).await? {
        Response::Refused { code, .. } if code == UNDEFINED_TABLE => Err(context.not_initialized()),
        response => Ok(response),
    }
}

/// Runs a statement, and again while the server asks to repeat it.
async fn run(context: &Context, statement: Statement) -> Result<Response> {
    for _ in 0..TRIES {
        match context.run(statement.clone()).await {
            Response::Refused { code, .. } if RETRY.contains(&code.as_str()) => {
                context.run(PAUSE).await;
            }
            response => return Ok(response),
        }
    }
    Err(context.unavailable("it asks to repeat the same statement each time; try again"))
}

/// Runs an operation on a known namespace, and checks the namespace again when it has changed.
async fn perform(
    context: &Context,
    kind: StatementKind,
    token: Token,
    parameters: impl Fn(&KnownNamespace) -> Vec<String>,
) -> Result<Decision> {
    for _ in 0..TRIES {
        let known = context.known_or(check(context, None)).await?;
        let wait = known.wait(kind);
        let statement = Statement { wait, ..statement(context, kind, token, parameters(&known)) };
        let response = run(context, statement).await?;
        let confirmed = match &response {
            Response::Confirmed { replicas, .. } => Some(*replicas),
            Response::Refused { code, .. } if code == UNDEFINED_TABLE => {
                check(context, None).await?;
                if matches!(kind, StatementKind::Swap | StatementKind::ListCounters) {
                    // It is made before the first namespace of tickets.
                    return Err(context.unavailable(
                        "its table randflake_counter is missing, and with it what tickets were drawn: \
                         restore it, then fence the counters above every number that was handed out",
                    ));
                }
                continue;
            }
            _ => None,
        };
        let decision = decision(context, response, kind, token)?;
        check_confirmed(context, kind, wait, confirmed, &decision)?;
        match decision.status.as_str() {
            "REPLACED" | "INCARNATION" => drop(check(context, None).await?),
            "LIFETIME" => {
                rules::check_lifetime(decision.now)?;
                return Err(context.malformed("a status"));
            }
            _ => return Ok(decision),
        }
    }
    Err(context.contended())
}

/// The parameters of a request, in the order of `request.sql` and `request.lua`.
struct Parameters<'a> {
    client_now: i64,
    ttl: u32,
    node_ids: &'a [u32],
    /// How many are wanted, and the note; or the first unused second.
    rest: Vec<String>,
}

impl Parameters<'_> {
    fn list(&self, known: &KnownNamespace) -> Vec<String> {
        let node_ids: Vec<String> = self.node_ids.iter().map(ToString::to_string).collect();
        let mut parameters = vec![
            hex(&known.metadata.salt),
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
