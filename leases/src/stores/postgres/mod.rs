//! PostgreSQL: one table of texts, and a statement for each kind of step.

#[cfg(feature = "postgres")]
mod client;
mod examine;

use serde_json::{Value, json};

#[cfg(feature = "postgres")]
pub use self::client::PostgresClient;
pub(crate) use self::examine::examine;
use crate::remote::{
    context::Context,
    exchange::{Response, Statement, TRIES},
    step::{FreeRange, Nonce, Page, Seen, Step, Write, number, refused, said},
    text::Key,
};
use randflake::{Error, Result};

/// The statements that let a role lease, and do nothing else.
pub(crate) const GRANTS: [&str; 2] = [
    "grant usage on schema randflake_leases to app;",
    "grant select, insert, update on randflake_leases.entry to app;",
];
/// SQLSTATE: no such table.
const UNDEFINED_TABLE: &str = "42P01";
/// SQLSTATE: an earlier statement of this transaction has failed.
const FAILED_TRANSACTION: &str = "25P02";
/// SQLSTATE: serialization failure, deadlock. Nothing was done, and the statement may be repeated.
const RETRY: [&str; 2] = ["40001", "40P01"];
/// Runs before such a repetition: clients that repeat at once collide again. Lasts 20 milliseconds
/// to a second, mostly short, so that some succeed however many clients there are.
const PAUSE: Statement = Statement {
    text: "select pg_sleep(0.02 * exp(4 * random()))::text",
    parameters: Vec::new(),
    wait: None,
};
/// Keys per page of a list.
const PAGE: usize = 10_000;

macro_rules! sql {
    ($($file:literal),*) => { concat!($(include_str!(concat!($file, ".sql"))),*) };
}

pub(crate) const STEP: &str = sql!("session", "guard", "step");
pub(crate) const READ: &str = sql!("session", "read");
pub(crate) const CHANGE: &str = sql!("session", "guard", "change");
pub(crate) const PAGE_OF_LIST: &str = sql!("session", "page");
pub(crate) const FREE: &str = sql!("session", "free");

/// Runs a statement, and repeats it while the server asks for that.
async fn run(context: &Context, text: &'static str, parameters: Vec<String>) -> Result<Response> {
    let statement = Statement { text, parameters, wait: None };
    for _ in 0..TRIES {
        match context.run(statement.clone()).await {
            Response::Refused { code, .. } if RETRY.contains(&code.as_str()) => {
                context.run(PAUSE).await;
            }
            Response::Refused { code, .. } if code == FAILED_TRANSACTION => {
                return Err(in_transaction());
            }
            response => return Ok(response),
        }
    }
    Err(context.unavailable("it asked to repeat the statement every time; try again"))
}

/// Asks, and returns what the server says about itself and the other cells of its answer; no cells
/// if there is no table.
async fn ask(
    context: &Context,
    text: &'static str,
    rest: Vec<String>,
) -> Result<(Seen, Vec<String>)> {
    let nonce = Nonce::new();
    let mut parameters = vec![context.namespace().name().to_owned(), nonce.0.clone()];
    parameters.extend(rest);
    let response = run(context, text, parameters).await?;
    if matches!(&response, Response::Refused { code, .. } if code == UNDEFINED_TABLE) {
        return Ok((Seen::default(), vec![]));
    }
    let mut cells = nonce.cells(context, response)?;
    if cells.len() < 5 {
        return Err(context.malformed("the number of columns"));
    }
    let rest = cells.split_off(4);
    if cells[2] == "true" {
        return Err(in_transaction());
    }
    let seen = Seen {
        has_table: true,
        clock: Some(number(context, &cells[0], "now")?),
        server: cells[1].clone(),
        meta: said(context, &cells[3])?,
        ..Seen::default()
    };
    Ok((seen, rest))
}

pub(crate) async fn step(context: &Context, step: &Step) -> Result<Seen> {
    let (from, until) = step.at.unzip();
    let cell = |second: Option<i64>| second.map(|second| second.to_string()).unwrap_or_default();
    let names = || json!(step.keys().map(Key::to_string).collect::<Vec<_>>()).to_string();
    let mut parameters = vec![
        step.meta.clone().unwrap_or_default(),
        step.server.clone().unwrap_or_default(),
        cell(from),
        cell(until),
    ];
    let text = match &step.writes[..] {
        [] => {
            parameters = vec![names()];
            READ
        }
        [Write { key, before: Some(before), after }] if step.reads.is_empty() => {
            parameters.extend([key.to_string(), before.clone(), after.clone()]);
            CHANGE
        }
        writes => {
            let write = |Write { key, before, after }: &Write| json!({"key": key.to_string(), "before": before, "after": after});
            let writes: Vec<Value> = writes.iter().map(write).collect();
            parameters.extend([json!(writes).to_string(), names()]);
            STEP
        }
    };
    let (mut seen, cells) = ask(context, text, parameters).await?;
    if !seen.has_table {
        return Ok(seen);
    }
    let mut found = read_json(context, &cells[0])?;
    for key in step.keys() {
        let name = key.to_string();
        let at = found.iter().position(|entry| entry[0] == *name);
        let entry = at.map(|at| found.swap_remove(at)).unwrap_or_default();
        seen.found.insert(key.clone(), entry[1].as_str().map(ToOwned::to_owned));
        if entry[2] == true {
            seen.written.insert(key.clone());
        }
    }
    if found.is_empty() { Ok(seen) } else { Err(context.foreign()) }
}

pub(crate) async fn page(context: &Context, prefix: &str, from: &str) -> Result<Page> {
    let parameters = vec![prefix.to_owned(), from.to_owned(), PAGE.to_string()];
    let (seen, cells) = ask(context, PAGE_OF_LIST, parameters).await?;
    let mut entries = Vec::new();
    if seen.has_table {
        for entry in read_json(context, &cells[0])? {
            let [name, text] = [0, 1].map(|at| entry[at].as_str().map(ToOwned::to_owned));
            let name = name.filter(|name| name.starts_with(prefix));
            entries.push(name.zip(text).ok_or_else(|| context.malformed("an entry"))?);
        }
    }
    let last = entries.last().filter(|_| entries.len() == PAGE);
    let next = last.map(|(name, _)| name.clone());
    Ok(Page { seen, entries, next })
}

pub(crate) async fn free(
    context: &Context,
    (first, last): (u32, u32),
    below: &str,
    most: usize,
) -> Result<FreeRange> {
    let parameters = vec![first.to_string(), last.to_string(), below.to_owned(), most.to_string()];
    let (seen, cells) = ask(context, FREE, parameters).await?;
    if !seen.has_table {
        return Ok(FreeRange { seen, free: vec![], next: None });
    }
    let mut free = Vec::new();
    for entry in read_json(context, &cells[0])? {
        let node_id = entry[0].as_u64().and_then(|node_id| u32::try_from(node_id).ok());
        let node_id = node_id.filter(|node_id| (first..=last).contains(node_id));
        let text = entry[1].as_str().map(ToOwned::to_owned);
        free.push((node_id.ok_or_else(|| context.malformed("node_id"))?, text));
    }
    let next = cells.get(1).ok_or_else(|| context.malformed("the number of columns"))?;
    Ok(FreeRange { free, next: said(context, next)?, seen })
}

/// Creates the table, unless it exists.
pub(crate) async fn create(context: &Context) -> Result<()> {
    match run(context, include_str!("create.sql"), vec![]).await? {
        Response::Refused { code, message } => Err(refused(context, &code, &message)),
        _ => Ok(()),
    }
}

fn read_json(context: &Context, cell: &str) -> Result<Vec<Value>> {
    serde_json::from_str(cell).map_err(|_| context.malformed("not JSON"))
}

/// Returns why this server may lose what it has acknowledged, if it may.
pub(crate) fn weakness(fsync: &str) -> Option<String> {
    (fsync == "off").then(|| "does not wait for its disk: fsync is off".into())
}

/// Returns whether a server is in an earlier line of the known history: a primary from before a
/// promotion is back in place of its successor. It lacks what the successor granted, and nothing on
/// it shows this: its own line is the one that its namespace knows.
pub(crate) fn is_before(incarnation: &str, known: &str) -> bool {
    let line = |incarnation: &str| {
        let [system, timeline, database] =
            <[&str; 3]>::try_from(incarnation.split('/').collect::<Vec<_>>()).ok()?;
        let timeline = u32::from_str_radix(timeline, 16).ok()?;
        Some((system.to_owned(), database.to_owned(), timeline))
    };
    line(incarnation).zip(line(known)).is_some_and(|(server, known)| {
        (&server.0, &server.1) == (&known.0, &known.1) && server.2 < known.2
    })
}

fn in_transaction() -> Error {
    Error::invalid_argument(
        "the connection is inside a transaction, which could roll a lease back after it was \
         granted; give the store its own connection, with autocommit",
    )
}
