//! The node id rows that a client of a store has written, or may have written. A row counts as the
//! client's own only if it has one of these versions, not by its token alone: two copies of a
//! process, as on a cloned machine, have the same token. The copy that writes first has the row;
//! the other one finds a version that it does not know.
//!
//! What `randflake serve` asks for is forgotten, since the next request of its client may come to
//! another instance; its clients name the next token with each renewal instead (`Renew::next`).

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{row::Row, token::Token};

/// Versions remembered per node id: the last one granted, and the newest of those written since
/// without an answer. Beyond this number, the row is lost, and another one is leased.
const MOST: usize = 256;
/// At least this many are remembered, even if their end is long past.
const FEW: usize = 1024;
/// How long after its end a lease may still be renewed, in seconds.
const LONG: i64 = 86_400;

/// Clones share what they remember.
#[derive(Clone, Debug, Default)]
pub(crate) struct WrittenRows(Arc<Mutex<Rows>>);

#[derive(Clone, Debug, Default)]
struct Rows {
    /// By node id and token.
    by_key: BTreeMap<(u32, [u8; 16]), Written>,
    /// At this number, those that ended long ago are forgotten.
    crowded: usize,
}

#[derive(Clone, Debug, Default)]
struct Written {
    /// The latest end that was granted; 0 if none was, and `None` if it was granted to another
    /// client.
    end_exclusive: Option<i64>,
    versions: Vec<u64>,
}

/// Returns all keys of a node id.
fn of(node_id: u32) -> RangeInclusive<(u32, [u8; 16])> {
    (node_id, [0; 16])..=(node_id, [0xff; 16])
}

fn key(node_id: u32, token: Token) -> (u32, [u8; 16]) {
    (node_id, *token.as_bytes())
}

impl WrittenRows {
    /// Remembers, before the row is written, that its version will replace the version of `row`,
    /// which is 0 if the row is being granted.
    pub(crate) fn attempt(&self, node_id: u32, row: &Row, version: u64) {
        let Some(token) = row.token else { return };
        let mut rows = self.lock();
        let written = rows.by_key.entry(key(node_id, token)).or_insert_with(|| match row.version {
            0 => Written { end_exclusive: Some(0), versions: vec![] },
            before => Written { end_exclusive: None, versions: vec![before] },
        });
        if written.versions.len() == MOST {
            written.versions.remove(1);
        }
        written.versions.push(version);
    }

    /// Remembers a row that this client is known to have written.
    pub(crate) fn written(&self, node_id: u32, row: &Row) {
        let mut rows = self.lock();
        let Rows { by_key, crowded } = &mut *rows;
        let known: Vec<_> = by_key.range(of(node_id)).map(|(key, _)| *key).collect();
        for key in known {
            by_key.remove(&key);
        }
        if by_key.len() > FEW.max(*crowded) {
            by_key.retain(|_, it| {
                it.end_exclusive.is_none_or(|end| end == 0 || end + LONG > row.end_exclusive)
            });
            *crowded = 2 * by_key.len();
        }
        if let Some(token) = row.token {
            let end_exclusive = Some(row.end_exclusive);
            by_key.insert(
                key(node_id, token),
                Written { end_exclusive, versions: vec![row.version] },
            );
        }
    }

    /// Returns whether this client may have written a row. If nothing is remembered about its
    /// token, the row may be from a client that the holder had before.
    pub(crate) fn may_have_written(&self, node_id: u32, row: &Row) -> bool {
        let Some(token) = row.token else { return false };
        let rows = self.lock();
        rows.by_key.get(&key(node_id, token)).is_none_or(|written| {
            written.end_exclusive.is_none() || written.versions.contains(&row.version)
        })
    }

    /// Returns whether this client is known to have asked for a row: a repeated acquire takes no
    /// other, even if nothing is remembered about its token. A copy may have been granted it
    /// meanwhile.
    pub(crate) fn has_asked_for(&self, node_id: u32, row: &Row) -> bool {
        let Some(token) = row.token else { return false };
        let rows = self.lock();
        rows.by_key.get(&key(node_id, token)).is_some_and(|it| it.versions.contains(&row.version))
    }

    /// Returns the latest end of a row that is known to have been granted.
    pub(crate) fn end_of(&self, node_id: u32, row: &Row) -> Option<i64> {
        self.lock().by_key.get(&key(node_id, row.token?))?.end_exclusive
    }

    /// Returns the latest end of a node id that is known to have been granted under a token.
    pub(crate) fn granted_end(&self, node_id: u32, token: Token) -> Option<i64> {
        let end = self.lock().by_key.get(&key(node_id, token))?.end_exclusive;
        end.filter(|end| *end > 0)
    }

    /// Returns whether a node id was requested before.
    pub(crate) fn has(&self, node_id: u32) -> bool {
        self.lock().by_key.range(of(node_id)).next().is_some()
    }

    /// Returns the node ids that were requested with a token.
    pub(crate) fn asked_for(&self, token: Token) -> BTreeSet<u32> {
        let rows = self.lock();
        let ours = rows.by_key.keys().filter(|(_, other)| other == token.as_bytes());
        ours.map(|(node_id, _)| *node_id).collect()
    }

    /// Forgets what was requested with a token and not granted.
    pub(crate) fn settle(&self, token: Token) {
        let is_asked_for = |it: &Written| it.end_exclusive == Some(0);
        self.lock().by_key.retain(|(_, other), it| other != token.as_bytes() || !is_asked_for(it));
    }

    /// Forgets a token.
    pub(crate) fn forget(&self, token: Token) {
        self.lock().by_key.retain(|(_, other), _| other != token.as_bytes());
    }

    /// Returns what a copy of this process remembers.
    #[cfg(test)]
    pub(crate) fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
