//! What every server does with texts, each in its own language: a step, a page of a list, a search
//! for what is free. Each is one statement, and answers with the server's clock, which server it
//! is, and meta.

use std::collections::{BTreeMap, BTreeSet};

use super::{Engine, Response, Wait, context::Context, etcd, mysql, postgres, redis, text::Key};
use crate::{Error, Limits, Result, Token, rules};

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
    pub(crate) wait: Option<Wait>,
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

impl Context {
    pub(crate) async fn step(&self, step: &Step) -> Result<Seen> {
        let seen = match self.engine() {
            Engine::Postgres => postgres::step(self, step).await,
            Engine::Mysql => mysql::step(self, step).await,
            Engine::Redis => redis::step(self, step).await,
            Engine::Etcd => etcd::step(self, step).await,
        }?;
        self.waited(seen.clock);
        Ok(seen)
    }

    /// Creates the table if the store uses one and it is missing.
    pub(crate) async fn create_table(&self) -> Result<()> {
        match self.engine() {
            Engine::Postgres => postgres::create(self).await,
            Engine::Mysql => mysql::create(self).await,
            Engine::Redis | Engine::Etcd => Ok(()),
        }
    }

    /// Reads the texts whose names begin with `prefix`, from the place that an earlier page gave.
    pub(crate) async fn page(&self, prefix: &str, from: &str) -> Result<Page> {
        match self.engine() {
            Engine::Postgres => postgres::page(self, prefix, from).await,
            Engine::Mysql => mysql::page(self, prefix, from).await,
            Engine::Redis => redis::page(self, prefix, from).await,
            Engine::Etcd => etcd::page(self, prefix, from).await,
        }
    }

    /// Finds up to `most` free node ids from `first` to `last`.
    pub(crate) async fn free(
        &self,
        (first, last): (u32, u32),
        below: &str,
        most: usize,
    ) -> Result<FreeRange> {
        match self.engine() {
            Engine::Postgres => postgres::free(self, (first, last), below, most).await,
            Engine::Mysql => mysql::free(self, (first, last), below).await,
            Engine::Redis => redis::free(self, (first, last), below, most).await,
            Engine::Etcd => etcd::free(self, (first, last), below).await,
        }
    }

    /// Returns how many keys one step may write.
    pub(crate) fn most_writes(&self) -> usize {
        match self.engine() {
            Engine::Postgres | Engine::Redis => usize::MAX,
            Engine::Mysql => mysql::WRITES,
            Engine::Etcd => etcd::WRITES,
        }
    }

    /// Returns how many keys one step may read.
    pub(crate) fn most_reads(&self) -> usize {
        match self.engine() {
            Engine::Postgres | Engine::Mysql | Engine::Redis => usize::MAX,
            Engine::Etcd => etcd::READS,
        }
    }

    /// Returns whether the server compares its line and its clock before it writes. Otherwise what
    /// was written on another server does not count.
    pub(crate) fn is_guarded(&self) -> bool {
        match self.engine() {
            Engine::Postgres | Engine::Mysql | Engine::Redis => true,
            Engine::Etcd => false,
        }
    }

    /// Returns for how many seconds after a failover the previous server may still grant.
    pub(crate) fn last_grant(&self) -> u32 {
        match self.engine() {
            Engine::Redis => redis::LAST_GRANT,
            Engine::Postgres | Engine::Mysql | Engine::Etcd => 0,
        }
    }

    /// Returns the time for a decision that affects the uniqueness of ids. If the server's clock
    /// was rounded on its way here, this is the later of the two clocks, if they agree: late enough
    /// if either of them is correct.
    pub(crate) fn confirmed(&self, limits: Limits, clock: Option<i64>) -> Result<i64> {
        let Some(clock) = clock else {
            return Err(self.unavailable(
                "its answer has no Date header, so there is only one clock, which may be wrong; a \
                 fence, a quarantine, a repair and the release of a dead holder need two clocks \
                 that agree: use a client that passes on the header, like the clients for URLs",
            ));
        };
        if self.is_guarded() {
            return Ok(clock);
        }
        rules::check_clocks(limits, clock, self.now)?;
        Ok(clock.max(self.now))
    }
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
