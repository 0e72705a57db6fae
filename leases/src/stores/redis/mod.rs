//! Redis and Valkey: one hash of texts, and a script for each kind of step.
//!
//! **Two masters.** Its incarnation is `run_id` and `master_replid`: a master that followed another
//! one and is promoted again is the same process in another line of history. Three rules, each of
//! which the model breaks in turn, protect against a master that is left behind:
//!
//! - **Confirmed.** A grant counts if `WAIT`, right behind the script on the same connection, says
//!   that as many replicas as `min-replicas-to-write` have it. A repeated acquire writes its rows
//!   again, since `WAIT` is about what its connection has written; one that was not confirmed is
//!   repeated under its token. Before anything is granted, the check of the server finds out
//!   whether the client can do it.
//! - **Lag.** Where another replica goes on confirming, a master stops after
//!   `min-replicas-max-lag`, at most 10 s, and 2 s for its timer and for the fractions that
//!   readings of clocks lose. Floor and `renew_above` of a fence are later by that much. It is a
//!   constant, because the setting that counts is that of the earlier server.
//! - **Age.** A script grants nothing to a request whose time is not within the skew of the
//!   server's, so nothing that waited for longer in the socket of a stopped master.

#[cfg(feature = "redis")]
mod client;
mod examine;
mod settings;

#[cfg(feature = "redis")]
pub use self::client::RedisClient;
pub(crate) use self::{
    examine::examine,
    settings::{LAST_GRANT, check_confirmed, check_settings, wait_for},
};
use crate::remote::{
    context::Context,
    exchange::{Response, Statement, WaitForReplicas},
    step::{FreeRange, Nonce, Page, Seen, Step, Write, number, said, say},
    text::Key,
};
use randflake::Result;

macro_rules! lua {
    ($($file:literal),*) => { concat!($(include_str!(concat!($file, ".lua"))),*) };
}

pub(crate) const STEP: &str = lua!("session", "step");
pub(crate) const PAGE: &str = lua!("session", "page");
pub(crate) const FREE: &str = lua!("session", "free");

/// Runs a script, and returns the cells of its answer and how many replicas have confirmed it.
async fn run(
    context: &Context,
    script: &str,
    rest: Vec<String>,
    wait: Option<WaitForReplicas>,
) -> Result<(Vec<String>, Option<u32>)> {
    let nonce = Nonce::new();
    let key = format!("randflake:{{{}}}", context.namespace().name());
    let mut parameters = vec![script.to_owned(), "1".to_owned(), key, nonce.0.clone()];
    parameters.extend(rest);
    let response = context.run(Statement { text: "EVAL", parameters, wait }).await;
    let replicas = match response {
        Response::Confirmed { replicas, .. } => Some(replicas),
        _ => None,
    };
    Ok((nonce.cells(context, response)?, replicas))
}

/// Runs a script, and returns what the server says about itself and the other cells of its answer.
async fn ask(
    context: &Context,
    script: &str,
    rest: Vec<String>,
    wait: Option<WaitForReplicas>,
) -> Result<(Seen, Vec<String>)> {
    let (mut cells, replicas) = run(context, script, rest, wait).await?;
    if cells.len() < 3 {
        return Err(context.malformed("the number of cells"));
    }
    let rest = cells.split_off(3);
    let seen = Seen {
        has_table: true,
        clock: Some(number(context, &cells[0], "now")?),
        server: cells[1].clone(),
        meta: said(context, &cells[2])?,
        replicas,
        ..Seen::default()
    };
    Ok((seen, rest))
}

pub(crate) async fn step(context: &Context, step: &Step) -> Result<Seen> {
    let (from, until) = step.at.unzip();
    let cell = |second: Option<i64>| second.map(|second| second.to_string()).unwrap_or_default();
    let mut rest = vec![
        step.meta.clone().unwrap_or_default(),
        step.server.clone().unwrap_or_default(),
        cell(from),
        cell(until),
        step.writes.len().to_string(),
    ];
    for Write { key, before, after } in &step.writes {
        rest.extend([key.to_string(), say(before.as_ref()), say(Some(after))]);
    }
    rest.extend(step.reads.iter().map(Key::to_string));
    let (mut seen, cells) = ask(context, STEP, rest, step.wait).await?;
    let (written, read) = cells
        .split_at_checked(2 * step.writes.len())
        .filter(|(_, read)| read.len() == step.reads.len())
        .ok_or_else(|| context.malformed("the number of cells"))?;
    for (Write { key, .. }, [is_written, text]) in step.writes.iter().zip(written.as_chunks().0) {
        seen.found.insert(key.clone(), said(context, text)?);
        if is_written == "written" {
            seen.written.insert(key.clone());
        }
    }
    for (key, text) in step.reads.iter().zip(read) {
        seen.found.insert(key.clone(), said(context, text)?);
    }
    Ok(seen)
}

/// Reads a page. Fields that exist the whole time are on at least one page.
pub(crate) async fn page(context: &Context, prefix: &str, from: &str) -> Result<Page> {
    let cursor = if from.is_empty() { "0" } else { from };
    let rest = vec![prefix.to_owned(), cursor.to_owned()];
    let (seen, cells) = ask(context, PAGE, rest, None).await?;
    let (cursor, fields) = cells.split_first().ok_or_else(|| context.malformed("a cursor"))?;
    let mut entries = Vec::new();
    for [name, text] in fields.as_chunks().0 {
        if !name.starts_with(prefix) {
            return Err(context.malformed("an entry"));
        }
        entries.push((name.clone(), text.clone()));
    }
    let next = (cursor != "0").then(|| cursor.clone());
    Ok(Page { seen, entries, next })
}

pub(crate) async fn free(
    context: &Context,
    (first, last): (u32, u32),
    below: &str,
    most: usize,
) -> Result<FreeRange> {
    let rest = vec![first.to_string(), last.to_string(), below.to_owned(), most.to_string()];
    let (seen, cells) = ask(context, FREE, rest, None).await?;
    let (next, cells) = cells.split_first().ok_or_else(|| context.malformed("a text"))?;
    let mut free = Vec::new();
    for [node_id, text] in cells.as_chunks().0 {
        let node_id = Some(number(context, node_id, "node_id")?);
        let node_id = node_id.filter(|node_id| (first..=last).contains(node_id));
        let node_id = node_id.ok_or_else(|| context.malformed("node_id"))?;
        free.push((node_id, said(context, text)?));
    }
    Ok(FreeRange { next: said(context, next)?, seen, free })
}
