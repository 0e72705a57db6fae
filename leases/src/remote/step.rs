//! What every server does with texts, each in its own language: a step, a page of a list, a search
//! for what is free. Each is one statement, and answers with the server's clock, which server it
//! is, and meta.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    context::Context,
    exchange::{Response, WaitForReplicas},
    text::Key,
};
use crate::token::Token;
use randflake::{Error, Result};

/// A text to write if its key still has the text before; `None` if the key is missing.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) key: Key,
    pub(crate) before: Option<String>,
    pub(crate) after: String,
}

/// Reads texts, and writes others. Each key is written independently, and all of them on these
/// conditions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    pub(crate) reads: Vec<Key>,
    /// In the order of their keys.
    pub(crate) writes: Vec<Write>,
    /// What meta must be.
    pub(crate) meta: Option<String>,
    /// Which server it must be, as it says itself.
    pub(crate) server: Option<String>,
    /// The first and last second on the server's clock in which it may be written.
    pub(crate) at: Option<(i64, i64)>,
    /// Redis: what replicas must confirm.
    pub(crate) wait: Option<WaitForReplicas>,
}

impl Step {
    /// Returns the keys that are read or written.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.reads.iter().chain(self.writes.iter().map(|write| &write.key))
    }
}

/// What an answer says about the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Whether the table exists.
    pub(crate) has_table: bool,
    /// The server's clock, if it has one.
    pub(crate) clock: Option<i64>,
    /// Which server in which line of its history, and in another word what it reports about its
    /// durability.
    pub(crate) server: String,
    /// etcd: the revision.
    pub(crate) revision: i64,
    pub(crate) meta: Option<String>,
    /// All keys that were read or written, with their texts afterwards.
    pub(crate) found: BTreeMap<Key, Option<String>>,
    /// The keys that this very step has written.
    pub(crate) written: BTreeSet<Key>,
    /// Redis: how many replicas have confirmed it, if they were asked.
    pub(crate) replicas: Option<u32>,
}

impl Seen {
    pub(crate) fn incarnation(&self) -> &str {
        self.server.split(' ').next().unwrap_or_default()
    }

    pub(crate) fn durability(&self) -> &str {
        self.server.split_once(' ').map_or("", |(_, durability)| durability)
    }
}

/// A page of a list.
pub(crate) struct Page {
    pub(crate) seen: Seen,
    /// Name and text.
    pub(crate) entries: Vec<(String, String)>,
    /// Where the next one begins, unless this is the last one.
    pub(crate) next: Option<String>,
}

/// Which of some node ids are free.
pub(crate) struct FreeRange {
    pub(crate) seen: Seen,
    /// Those that are missing, or whose text is less than the requested bound.
    pub(crate) free: Vec<(u32, Option<String>)>,
    /// The least text of the others.
    pub(crate) next: Option<String>,
}

/// Binds an answer to its statement.
pub(crate) struct Nonce(pub(crate) String);

impl Nonce {
    pub(crate) fn new() -> Self {
        Self(super::hex::hex(&Token::random().as_bytes()[..8]))
    }

    /// Returns the cells of an answer's only row, after the nonce.
    pub(crate) fn cells(&self, context: &Context, response: Response) -> Result<Vec<String>> {
        let rows = match response {
            Response::Rows(rows) | Response::Confirmed { rows, .. } => rows,
            Response::Refused { code, message } => return Err(refused(context, &code, &message)),
        };
        if rows.is_empty() {
            return Err(context.malformed("no rows"));
        }
        let [row] =
            <[_; 1]>::try_from(rows).map_err(|_| context.malformed("the number of rows"))?;
        let cells: Option<Vec<String>> = row.into_iter().collect();
        let mut cells = cells.ok_or_else(|| context.malformed("an empty cell"))?;
        if cells.first().is_none_or(|echo| *echo != self.0) {
            return Err(context.foreign());
        }
        cells.remove(0);
        Ok(cells)
    }
}

/// Reads a text as PostgreSQL and Redis encode it: after `=`, or nothing if it is missing.
pub(crate) fn said(context: &Context, cell: &str) -> Result<Option<String>> {
    match cell.strip_prefix('=') {
        Some(text) => Ok(Some(text.to_owned())),
        None if cell.is_empty() => Ok(None),
        None => Err(context.malformed("a text")),
    }
}

/// Encodes a text as PostgreSQL and Redis expect it.
pub(crate) fn say(text: Option<&String>) -> String {
    text.map(|text| format!("={text}")).unwrap_or_default()
}

pub(crate) fn number<N: std::str::FromStr>(context: &Context, cell: &str, what: &str) -> Result<N> {
    cell.parse().map_err(|_| context.malformed(what))
}

/// Makes the error for a refusal.
pub(crate) fn refused(context: &Context, code: &str, message: &str) -> Error {
    // Codes of Redis; the second is a class of the Python client.
    if matches!(code, "MOVED" | "MovedError") {
        return context.unavailable(
            "it is one node of a Redis Cluster, and another node has the key of this namespace; \
             pass a client of the cluster, as the documentation of servers says",
        );
    }
    context.unavailable(&format!("it says {code}: {message}"))
}
