//! A namespace in the file, inside one transaction.

use std::collections::BTreeMap;

use rusqlite::{
    Connection, Error::FromSqlConversionFailure, OptionalExtension, Row as SqlRow, params,
    types::Type,
};

use super::{Failure, SqliteStore};
use crate::{
    namespace::{Limits, NamespaceMetadata, STORED_FORMAT},
    node_ranges::NodeRanges,
    note::Note,
    row::Row,
    rules::{Free, LocalTransaction, Quarantine, Transaction, free_beside},
    token::{Token, version},
    written_rows::WrittenRows,
};

/// A namespace inside a transaction.
pub(super) struct SqliteTransaction<'a> {
    connection: &'a Connection,
    id: i64,
    now: i64,
    waited: i64,
    pub(super) metadata: NamespaceMetadata,
    quarantine: Quarantine,
    /// Whether this transaction has created it.
    pub(super) is_new: bool,
    /// Whether it has written anything.
    has_written: bool,
    nodes_written: BTreeMap<u32, Row>,
    counters_written: BTreeMap<String, String>,
    own: WrittenRows,
}

/// What the file must contain after a commit.
#[derive(Eq, PartialEq)]
pub(super) struct Committed {
    bounds: Option<(Quarantine, NodeRanges)>,
    pub(super) nodes: BTreeMap<u32, Row>,
    pub(super) counters: BTreeMap<String, String>,
}

impl Committed {
    /// Reads back from the file what was written.
    pub(super) fn find(
        connection: &Connection,
        namespace: &str,
        written: &Self,
    ) -> rusqlite::Result<Self> {
        let found = connection
            .query_row(
                "select id, floor, renew_above, node_ids from namespace where name = ?1",
                [namespace],
                |row| Ok((row.get::<_, i64>(0)?, (quarantine(row)?, node_ids(row)?))),
            )
            .optional()?;
        let Some((namespace, bounds)) = found else {
            return Ok(Self { bounds: None, nodes: BTreeMap::new(), counters: BTreeMap::new() });
        };
        // A row with a token is read through the index, whose pages are separate.
        let mut by_token = connection.prepare(
            "select node_id, start, end_exclusive, token, note, version from node indexed by node_token \
             where namespace = ?1 and node_id = ?2 and token = ?3",
        )?;
        let mut found = BTreeMap::new();
        for (&node_id, row) in &written.nodes {
            found.extend(match row.token {
                Some(token) => by_token
                    .query_row(params![namespace, node_id, token.as_bytes()], node)
                    .optional()?,
                None => find_node(connection, namespace, node_id)?.map(|row| (node_id, row)),
            });
        }
        let mut counters = BTreeMap::new();
        for name in written.counters.keys() {
            let value = find_counter(connection, namespace, name)?;
            counters.extend(value.map(|value| (name.clone(), value)));
        }
        Ok(Self { bounds: Some(bounds), nodes: found, counters })
    }
}

/// Returns what is known about a node id.
fn find_node(
    connection: &Connection,
    namespace: i64,
    node_id: u32,
) -> rusqlite::Result<Option<Row>> {
    let find = "select node_id, start, end_exclusive, token, note, version from node \
                where namespace = ?1 and node_id = ?2";
    let found = connection.query_row(find, params![namespace, node_id], node).optional()?;
    Ok(found.map(|(_, row)| row))
}

/// Returns whether the table of counters exists, which is created with the first counter.
fn has_counters(connection: &Connection) -> rusqlite::Result<bool> {
    let find = "select 1 from sqlite_schema where type = 'table' and name = 'counter'";
    Ok(connection.query_row(find, [], |_| Ok(())).optional()?.is_some())
}

/// Returns the value of a counter.
fn find_counter(
    connection: &Connection,
    namespace: i64,
    name: &str,
) -> rusqlite::Result<Option<String>> {
    if !has_counters(connection)? {
        return Ok(None);
    }
    let find = "select value from counter where namespace = ?1 and name = ?2";
    connection.query_row(find, params![namespace, name], |row| row.get(0)).optional()
}

impl SqliteStore {
    /// Finds the namespace and checks that it is ours; creates it if it is missing.
    pub(super) fn namespace_in<'a>(
        &self,
        connection: &'a Connection,
        now: i64,
        waited: i64,
    ) -> Result<SqliteTransaction<'a>, Failure> {
        let namespace = &self.namespace;
        let found = connection
            .query_row(
                "select id, max_ttl, max_skew, node_ids, layout, salt, key_check, floor, \
                 renew_above from namespace where name = ?1",
                [namespace.name()],
                |row| Ok((row.get(0)?, metadata(row)?, quarantine(row)?)),
            )
            .optional()?;
        let namespace_of = |id, metadata, quarantine, is_new| SqliteTransaction {
            connection,
            id,
            now,
            waited,
            metadata,
            quarantine,
            is_new,
            has_written: is_new,
            nodes_written: BTreeMap::new(),
            counters_written: BTreeMap::new(),
            own: self.own.clone(),
        };
        if let Some((id, metadata, quarantine)) = found {
            namespace.check(&metadata)?;
            return Ok(namespace_of(id, metadata, quarantine, false));
        }
        self.may_create()?;
        let metadata = NamespaceMetadata::new(namespace);
        let Limits { max_ttl, max_skew, node_ids } = metadata.limits;
        connection.execute(
            "insert into namespace (name, max_ttl, max_skew, node_ids, layout, salt, key_check, \
             floor, renew_above) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0)",
            params![
                namespace.name(),
                max_ttl,
                max_skew,
                node_ids.to_string(),
                metadata.layout,
                metadata.salt,
                metadata.key_check
            ],
        )?;
        let id = connection.last_insert_rowid();
        Ok(namespace_of(id, metadata, Quarantine::default(), true))
    }
}

impl SqliteTransaction<'_> {
    /// Returns what a commit must make permanent, if anything.
    pub(super) fn written(self) -> Option<Committed> {
        let bounds = Some((self.quarantine, self.metadata.limits.node_ids));
        let Self { nodes_written: nodes, counters_written: counters, .. } = self;
        self.has_written.then_some(Committed { bounds, nodes, counters })
    }
}

fn metadata(row: &SqlRow<'_>) -> rusqlite::Result<NamespaceMetadata> {
    Ok(NamespaceMetadata {
        format: STORED_FORMAT, // that of the file
        limits: Limits {
            max_ttl: row.get("max_ttl")?,
            max_skew: row.get("max_skew")?,
            node_ids: node_ids(row)?,
        },
        layout: row.get("layout")?,
        salt: row.get("salt")?,
        key_check: row.get("key_check")?,
    })
}

fn node_ids(row: &SqlRow<'_>) -> rusqlite::Result<NodeRanges> {
    let text: String = row.get("node_ids")?;
    text.parse().map_err(|error| FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}

fn quarantine(row: &SqlRow<'_>) -> rusqlite::Result<Quarantine> {
    Ok(Quarantine { floor: row.get("floor")?, renew_above: row.get("renew_above")? })
}

impl Transaction for SqliteTransaction<'_> {
    type Error = Failure;

    fn now(&self) -> i64 {
        self.now
    }

    fn waited(&self) -> i64 {
        self.waited
    }

    fn metadata(&self) -> &NamespaceMetadata {
        &self.metadata
    }

    fn quarantine(&self) -> Quarantine {
        self.quarantine
    }

    fn put_quarantine(&mut self, quarantine: Quarantine) -> Result<(), Failure> {
        self.connection.execute(
            "update namespace set floor = ?2, renew_above = ?3 where id = ?1",
            params![self.id, quarantine.floor, quarantine.renew_above],
        )?;
        self.quarantine = quarantine;
        self.has_written = true;
        Ok(())
    }

    fn put_node_ids(&mut self, node_ids: NodeRanges) -> Result<(), Failure> {
        self.connection.execute(
            "update namespace set node_ids = ?2 where id = ?1",
            params![self.id, node_ids.to_string()],
        )?;
        self.metadata.limits.node_ids = node_ids;
        self.has_written = true;
        Ok(())
    }

    fn row(&mut self, node_id: u32) -> Result<Option<Row>, Failure> {
        Ok(find_node(self.connection, self.id, node_id)?)
    }

    fn put(&mut self, node_id: u32, row: Row) -> Result<(), Failure> {
        let version = version();
        self.own.attempt(node_id, &row, version);
        let row = Row { version, ..row };
        self.connection.execute(
            "insert into node (namespace, node_id, start, end_exclusive, token, note, version) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7) on conflict do update set start = excluded.start, \
             end_exclusive = excluded.end_exclusive, token = excluded.token, note = excluded.note, \
             version = excluded.version",
            params![
                self.id,
                node_id,
                row.start,
                row.end_exclusive,
                row.token.as_ref().map(Token::as_bytes),
                row.note.as_str(),
                row.version.cast_signed()
            ],
        )?;
        self.nodes_written.insert(node_id, row);
        self.has_written = true;
        Ok(())
    }

    fn held_by(&mut self, token: Token) -> Result<Vec<(u32, Row)>, Failure> {
        let mut find = self.connection.prepare(
            "select node_id, start, end_exclusive, token, note, version from node indexed by node_token \
             where namespace = ?1 and token = ?2 order by node_id",
        )?;
        let rows = find.query_map(params![self.id, token.as_bytes()], node)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn free(&mut self, first: u32, most: usize) -> Result<Free, Failure> {
        let mut find = self.connection.prepare(
            "select node_id, end_exclusive from node where namespace = ?1 and end_exclusive > ?2",
        )?;
        let ends =
            find.query_map(params![self.id, self.now], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let taken = ends.collect::<rusqlite::Result<Vec<(u32, i64)>>>()?;
        Ok(free_beside(&taken, self.metadata.limits.node_ids, first, most))
    }

    fn own(&self) -> &WrittenRows {
        &self.own
    }

    fn counter(&mut self, name: &str) -> Result<Option<String>, Failure> {
        Ok(find_counter(self.connection, self.id, name)?)
    }

    fn put_counter(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        self.connection.execute_batch(include_str!("counter.sql"))?;
        self.connection.execute(
            "insert into counter (namespace, name, value) values (?1, ?2, ?3) \
             on conflict do update set value = excluded.value",
            params![self.id, name, value],
        )?;
        self.counters_written.insert(name.to_owned(), value.to_owned());
        self.has_written = true;
        Ok(())
    }
}

impl LocalTransaction for SqliteTransaction<'_> {
    fn rows(&mut self) -> Result<Vec<(u32, Row)>, Failure> {
        let mut find = self.connection.prepare(
            "select node_id, start, end_exclusive, token, note, version from node \
             where namespace = ?1 order by node_id",
        )?;
        let rows = find.query_map([self.id], node)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn counters(&mut self) -> Result<Vec<(String, String)>, Failure> {
        if !has_counters(self.connection)? {
            return Ok(vec![]);
        }
        let find = "select name, value from counter where namespace = ?1 order by name";
        let mut find = self.connection.prepare(find)?;
        let counters = find.query_map([self.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(counters.collect::<rusqlite::Result<_>>()?)
    }
}

fn node(row: &SqlRow<'_>) -> rusqlite::Result<(u32, Row)> {
    let token: Option<[u8; 16]> = row.get("token")?;
    let node = Row {
        start: row.get("start")?,
        end_exclusive: row.get("end_exclusive")?,
        token: token.map(Token::from_bytes),
        note: Note::new(&row.get::<_, String>("note")?),
        version: row.get::<_, i64>("version")?.cast_unsigned(),
    };
    Ok((row.get("node_id")?, node))
}
