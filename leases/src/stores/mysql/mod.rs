//! MySQL and MariaDB: one table of texts, and a statement for each kind of step.
//!
//! MySQL returns no rows of an update: what it answers is in the insert id, its clock and 20 random
//! bits that bind the answer to the statement. So a statement writes one key, and reads what is
//! there if nothing was written. `/*! */` and `/*M! */` in statements are for MySQL and for MariaDB
//! alone.

#[cfg(feature = "mysql")]
mod client;
mod examine;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde_json::json;

#[cfg(feature = "mysql")]
pub use self::client::MysqlClient;
pub(crate) use self::examine::{check_settings, examine};
use crate::{
    remote::{
        address::decoded,
        context::Context,
        exchange::{Response, Statement, TRIES},
        step::{FreeRange, Page, Seen, Step, Write, number, refused},
        text::Key,
    },
    token::random_bytes,
};
use randflake::{Error, Result};

/// Error: no such table.
const NO_SUCH_TABLE: &str = "1146";
/// Errors: waited too long for a lock, a deadlock, a row that has changed. Nothing was done, and the
/// statement may be repeated.
const RETRY: [&str; 3] = ["1205", "1213", "1020"];
/// Runs before such a repetition, as in PostgreSQL.
const PAUSE: Statement =
    Statement { text: "select sleep(0.02 * exp(4 * rand()))", parameters: Vec::new(), wait: None };
/// The code with which a client refuses a connection that is not in autocommit mode.
const IN_TRANSACTION: &str = "25000";
/// Keys that one step writes: the answer has room for only one.
pub(crate) const WRITES: usize = 1;
/// Keys per page of a list, as in page.sql.
const PAGE: usize = 10_000;
/// Bits of an insert id that bind it to its statement; the clock is in the bits above. For another
/// 200 years it stays below 2^53, which is the largest number for some clients.
const NONCE_BITS: u32 = 20;

macro_rules! sql {
    ($($file:literal),*) => { concat!($(include_str!(concat!($file, ".sql"))),*) };
}

const CHANGE: &str = sql!("change", "guard", "server", "guard_end");
const ADD: &str = sql!("add", "guard", "server", "guard_end", "add_end");
const CHANGE_META: &str = sql!("change_meta", "guard", "server", "guard_end");
const ADD_META: &str = sql!("add_meta", "guard", "server", "guard_end", "add_meta_end");
const READ: &str = sql!("head", "server", "read");
const PAGE_OF_LIST: &str = sql!("head", "server", "page");
const FREE: &str = sql!("head", "server", "free");

/// Runs a statement, and repeats it while the server asks for that; `None` if there is no table.
async fn run(
    context: &Context,
    text: &'static str,
    parameters: Vec<String>,
) -> Result<Option<Vec<Vec<Option<String>>>>> {
    let statement = Statement { text, parameters, wait: None };
    for _ in 0..TRIES {
        match context.run(statement.clone()).await {
            Response::Rows(rows) | Response::Confirmed { rows, .. } => return Ok(Some(rows)),
            Response::Refused { code, .. } if code == NO_SUCH_TABLE => return Ok(None),
            Response::Refused { code, .. } if code == IN_TRANSACTION => {
                return Err(in_transaction());
            }
            Response::Refused { code, .. } if RETRY.contains(&code.as_str()) => {
                context.run(PAUSE).await;
            }
            Response::Refused { code, message } => return Err(refused(context, &code, &message)),
        }
    }
    Err(context.unavailable("it asked to repeat the statement every time; try again"))
}

/// Reads keys, and meta, which is not among the entries.
async fn read(
    context: &Context,
    keys: impl Iterator<Item = &Key>,
) -> Result<(Seen, Vec<(String, Option<String>)>)> {
    let names: BTreeSet<_> = keys.chain([&Key::Meta]).map(name).collect();
    // A client may escape quotes in a way that another `sql_mode` reads differently.
    let names = json!(names).to_string().replace('"', "|");
    ask(context, READ, vec![names, namespace(context)]).await
}

/// Asks, and returns what the server says about itself, and the entries.
async fn ask(
    context: &Context,
    text: &'static str,
    rest: Vec<String>,
) -> Result<(Seen, Vec<(String, Option<String>)>)> {
    let nonce = nonce().to_string();
    let parameters = [vec![nonce.clone()], rest].concat();
    let Some(rows) = run(context, text, parameters).await? else {
        return Ok((Seen::default(), vec![]));
    };
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        let [name, text] =
            <[_; 2]>::try_from(row).map_err(|_| context.malformed("the number of columns"))?;
        let text = text.map(|text| decoded(&text)).transpose();
        let text = text.map_err(|_| context.malformed("a text"))?;
        entries.push((name.ok_or_else(|| context.malformed("an empty cell"))?, text));
    }
    let mut take = |wanted: &str| {
        let at = entries.iter().position(|(name, _)| name == wanted)?;
        entries.swap_remove(at).1
    };
    let said = take(&nonce).ok_or_else(|| context.foreign())?;
    let meta = take("meta");
    let [now, in_transaction, server] = <[_; 3]>::try_from(said.splitn(3, ' ').collect::<Vec<_>>())
        .map_err(|_| context.malformed("its own description"))?;
    if in_transaction != "0" {
        return Err(self::in_transaction());
    }
    let seen = Seen {
        has_table: true,
        clock: Some(number(context, now, "now")?),
        server: server.to_owned(),
        meta,
        ..Seen::default()
    };
    entries.sort_unstable();
    Ok((seen, entries))
}

pub(crate) async fn step(context: &Context, step: &Step) -> Result<Seen> {
    if let [write] = &step.writes[..]
        && let Some(seen) = write_one(context, step, write).await?
    {
        return Ok(seen);
    }
    let (mut seen, entries) = read(context, step.keys()).await?;
    let mut found: BTreeMap<_, _> = entries.into_iter().collect();
    for key in step.keys() {
        let text = match key {
            Key::Meta => seen.meta.clone(),
            _ => found.remove(&name(key)).flatten(),
        };
        seen.found.insert(key.clone(), text);
    }
    if found.is_empty() { Ok(seen) } else { Err(context.foreign()) }
}

/// Writes a text; `None` if nothing was written.
async fn write_one(context: &Context, step: &Step, write: &Write) -> Result<Option<Seen>> {
    let Write { key, before, after } = write;
    let (from, until) = step.at.unwrap_or((0, i64::from(u32::MAX) * 2));
    let server = step.server.clone().unwrap_or_default();
    let nonce = nonce();
    let [namespace, name, number] = [namespace(context), name(key), nonce.to_string()];
    let [from, until] = [from, until].map(|second| second.to_string());
    let meta = encoded(step.meta.as_deref().unwrap_or_default());
    let after = encoded(after);
    let (text, mut parameters) = match (key, before.as_deref().map(encoded)) {
        (Key::Meta, Some(before)) => (CHANGE_META, vec![after, number, namespace, before]),
        (Key::Meta, None) => (ADD_META, vec![namespace, after, number]),
        (_, Some(before)) => {
            (CHANGE, vec![after, number, namespace, name, before, meta, until.clone()])
        }
        (_, None) => (ADD, vec![name, after, number, namespace, meta]),
    };
    parameters.extend([from, until, server.clone()]);
    let Some(rows) = run(context, text, parameters).await? else { return Ok(None) };
    let [insert_id] =
        <[_; 1]>::try_from(rows.concat()).map_err(|_| context.malformed("the number of cells"))?;
    let insert_id = insert_id.ok_or_else(|| context.malformed("an empty cell"))?;
    let insert_id: u64 = self::number(context, &insert_id, "the insert id")?;
    if insert_id == 0 {
        return Ok(None);
    }
    let clock = i64::try_from(insert_id >> NONCE_BITS).unwrap_or(i64::MAX);
    let is_of_now = step.at.is_none_or(|(from, until)| (from..=until).contains(&clock));
    if insert_id & ((1 << NONCE_BITS) - 1) != u64::from(nonce) || !is_of_now {
        return Err(context.foreign());
    }
    let after = Some(write.after.clone());
    Ok(Some(Seen {
        has_table: true,
        clock: Some(clock),
        server,
        meta: if *key == Key::Meta { after.clone() } else { step.meta.clone() },
        found: [(key.clone(), after)].into(),
        written: [key.clone()].into(),
        ..Seen::default()
    }))
}

pub(crate) async fn page(context: &Context, prefix: &str, from: &str) -> Result<Page> {
    let from = if from.is_empty() { prefix } else { from };
    let end = format!("{}0", prefix.trim_end_matches('/')); // 0 follows the slash
    let [first, second] = [namespace(context), namespace(context)];
    let parameters = vec![first, second, from.to_owned(), end];
    let (seen, found) = ask(context, PAGE_OF_LIST, parameters).await?;
    let next = found.last().filter(|_| found.len() == PAGE).map(|(name, _)| name.clone());
    let mut entries = Vec::with_capacity(found.len());
    for (name, text) in found {
        let text = text.filter(|_| name.starts_with(prefix));
        let name = decoded(&name).ok().zip(text);
        entries.push(name.ok_or_else(|| context.malformed("an entry"))?);
    }
    Ok(Page { seen, entries, next })
}

pub(crate) async fn free(
    context: &Context,
    (first, last): (u32, u32),
    below: &str,
) -> Result<FreeRange> {
    let [from, end] = [first, last].map(|node_id| Key::Node(node_id).to_string());
    let range = vec![encoded(below), namespace(context), from, end];
    let parameters = [vec![namespace(context)], range.clone(), range].concat();
    let (seen, entries) = ask(context, FREE, parameters).await?;
    let mut next = None;
    let mut held = BTreeMap::new();
    for (name, text) in entries {
        if name.is_empty() {
            next = text;
        } else {
            held.insert(name, text.ok_or_else(|| context.malformed("an entry"))?);
        }
    }
    let mut free = Vec::new();
    for node_id in first..=last {
        match held.remove(&name(&Key::Node(node_id))) {
            Some(text) if text.is_empty() => {} // it is not free
            text => free.push((node_id, text)),
        }
    }
    if held.is_empty() { Ok(FreeRange { seen, free, next }) } else { Err(context.foreign()) }
}

/// Returns the statements that let a user lease, and do nothing else.
pub(crate) fn grant(database: &str) -> String {
    let database = database.replace('`', "``");
    format!("grant select, insert, update on `{database}`.randflake_entry to app;")
}

/// Creates the table, unless it exists.
pub(crate) async fn create(context: &Context) -> Result<()> {
    run(context, include_str!("create.sql"), vec![]).await.map(drop)
}

fn namespace(context: &Context) -> String {
    encoded(context.namespace().name())
}

fn name(key: &Key) -> String {
    encoded(&key.to_string())
}

/// Percent-encodes whatever would be read differently with another character set or `sql_mode`, or
/// in a JSON list.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && !b"%'\"\\?|".contains(&byte);
    let mut all = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            all.push(byte.into());
        } else {
            let _infallible = write!(all, "%{byte:02X}");
        }
    }
    all
}

/// Returns a number that binds an answer to its statement; never 0.
fn nonce() -> u32 {
    let [a, b, c, ..] = random_bytes::<16>();
    u32::from_le_bytes([a, b, c, 0]) & ((1 << NONCE_BITS) - 1) | 1
}

fn in_transaction() -> Error {
    Error::invalid_argument(
        "the connection is inside a transaction, or has no autocommit: a lease could be rolled \
         back after it was granted; give the store its own connection, with autocommit",
    )
}
