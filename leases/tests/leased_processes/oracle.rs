//! The oracle: what must hold between a file of leases and the logs of their holders.

use std::{
    collections::{HashMap, HashSet},
    fmt, fs,
    path::Path,
};

use randflake::{Clock, Inspector, Layout, RawParts, SystemClock};
use randflake_leases::{Namespace, NodeLease, SqliteStore, Token};
use rusqlite::Connection;

use crate::common::{SECOND, granted, release, secret};

/// Every change of a lease becomes a row of the history, in the same transaction.
const HISTORY: &str = "
    create table history (
        change integer primary key, node_id integer, start integer, end_exclusive integer, token
    );
    create trigger first_lease after insert on node begin
        insert into history (node_id, start, end_exclusive, token)
        values (new.node_id, new.start, new.end_exclusive, new.token);
    end;
    create trigger next_lease after update on node begin
        insert into history (node_id, start, end_exclusive, token)
        values (new.node_id, new.start, new.end_exclusive, new.token);
    end;";

/// The leases of a file, by node id, each with its final end.
pub(crate) struct Oracle {
    leases: HashMap<u32, Vec<NodeLease>>,
    renewals: usize,
}

/// How much has been checked and found correct.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Generators that made ids.
    pub(crate) lives: usize,
    /// Leases that were granted; some may have made no id.
    pub(crate) leases: usize,
    /// How many renewals there were.
    pub(crate) renewals: usize,
    /// Distinct ids.
    pub(crate) ids: usize,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lives, leases, renewals, ids } = self;
        write!(f, "{ids} ids of {lives} lives, {leases} leases, {renewals} renewals: no repeat")
    }
}

impl Oracle {
    /// Makes a file and its namespace, and makes it record its history from then on.
    pub(crate) fn prepare(path: &Path, namespace: Namespace) {
        let mut store = SqliteStore::new(path, namespace).expect("a path");
        let (token, now) = (Token::random(), SystemClock.now().expect("a clock") / SECOND);
        let NodeLease { node_id, start, .. } = granted(&mut store, token, now);
        assert_eq!(release(&mut store, token, node_id, start), Ok(1));
        Connection::open(path).and_then(|file| file.execute_batch(HISTORY)).expect("a SQLite file");
    }

    /// Reads the history of a file; an error if two leases of a node id have a second in common.
    pub(crate) fn of(path: &Path) -> Result<Self, String> {
        let file = Connection::open(path).expect("a SQLite file");
        let mut find = file
            .prepare("select node_id, start, end_exclusive, token from history order by change")
            .expect("a history");
        let changes = find
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
            .expect("a history");
        let mut oracle = Self { leases: HashMap::new(), renewals: 0 };
        let mut holders: HashMap<u32, Option<[u8; 16]>> = HashMap::new();
        for (node_id, start, end_exclusive, token) in changes {
            let lease = NodeLease { node_id, start, end_exclusive };
            let leases = oracle.leases.entry(node_id).or_default();
            let before = holders.insert(node_id, token).flatten();
            match (before, token, leases.last_mut()) {
                (before, Some(token), last) if before != Some(token) => {
                    if last.is_some_and(|last| last.end_exclusive > start) {
                        return Err(format!("they have seconds in common: {leases:?}, {lease:?}"));
                    }
                    leases.push(lease);
                }
                (Some(_), Some(_), Some(last))
                    if last.start == start && last.end_exclusive <= end_exclusive =>
                {
                    oracle.renewals += 1;
                    *last = lease;
                }
                (Some(_), None, Some(last))
                    if last.start == start
                        && (start..=last.end_exclusive).contains(&end_exclusive) =>
                {
                    *last = lease;
                }
                (_, _, last) => return Err(format!("no change of a lease: {last:?}, {lease:?}")),
            }
        }
        Ok(oracle)
    }

    /// How many leases were granted.
    pub(crate) fn leases(&self) -> usize {
        self.leases.values().map(Vec::len).sum()
    }

    /// Adds the leases of another file; an error if two of a node id have a second in common.
    pub(crate) fn with(mut self, other: Self) -> Result<Self, String> {
        for (node_id, leases) in other.leases {
            let known = self.leases.entry(node_id).or_default();
            for lease in leases {
                if known
                    .iter()
                    .any(|one| one.start < lease.end_exclusive && lease.start < one.end_exclusive)
                {
                    return Err(format!("{lease:?} has seconds in common with another"));
                }
                known.push(lease);
            }
        }
        self.renewals += other.renewals;
        Ok(self)
    }

    /// Reads the logs in a directory, one per generator, of Randflake or of `snowflake`; an error
    /// if an id occurs twice, outside of all leases, or in a lease that another generator has used.
    pub(crate) fn judge(&self, logs: &Path, snowflake: Option<Layout>) -> Result<Verdict, String> {
        let inspector = Inspector::new(&secret());
        let layout = snowflake.unwrap_or(Layout::randflake());
        let raw_of = |id: [u8; 8]| match snowflake {
            None => inspector.decrypt(i64::from_le_bytes(id).into()),
            Some(_) => u64::from_le_bytes(id),
        };
        let (mut ids, mut users, mut lives) = (HashSet::new(), HashMap::new(), 0);
        for log in fs::read_dir(logs).expect("logs") {
            let log = log.expect("a log").path();
            let name = log.display().to_string();
            let bytes = fs::read(&log).expect("a log");
            lives += usize::from(bytes.len() >= 8);
            // A killed process may have written half an id.
            for id in bytes.as_chunks::<8>().0 {
                let parts = layout.inspect(raw_of(*id)).map_err(|error| error.to_string())?;
                if !ids.insert(*id) {
                    return Err(format!("{parts:?} was made twice, the second time in {name}"));
                }
                let Some(lease) = self.lease_of(&layout, &parts) else {
                    return Err(format!("{parts:?} of {name} has no lease"));
                };
                let user = users.entry(lease).or_insert_with(|| name.clone());
                if *user != name {
                    return Err(format!("{name} and {user} have both used {lease:?}"));
                }
            }
        }
        Ok(Verdict { lives, leases: self.leases(), renewals: self.renewals, ids: ids.len() })
    }

    /// Finds the lease that covers the whole tick of an id.
    fn lease_of(&self, layout: &Layout, parts: &RawParts) -> Option<NodeLease> {
        let end_ms = parts.unix_ms + i64::from(layout.tick_ms());
        let covers = |lease: &&NodeLease| {
            lease.start * 1000 <= parts.unix_ms && end_ms <= lease.end_exclusive * 1000
        };
        self.leases.get(&parts.node_id)?.iter().find(covers).copied()
    }
}
