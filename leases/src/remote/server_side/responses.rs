//! What the rows of text in a response mean.

use randflake::layout;

use super::{
    super::{Response, context::Context, hex::hex},
    statements::StatementKind,
};
use crate::{Error, NodeLease, Note, Result, Token, operator::Node};

/// SQLSTATE: an earlier statement of this transaction has failed.
const FAILED_TRANSACTION: &str = "25P02";

/// What the server has decided about an operation.
pub(super) struct Decision {
    pub(super) status: String,
    pub(super) now: i64,
    pub(super) detail: String,
    /// Sorted by node id.
    pub(super) leases: Vec<NodeLease>,
    /// The last two cells of the first row: for a fence `renew_above` and `floor`.
    pub(super) numbers: [String; 2],
}

/// Reads the rows of an operation.
pub(super) fn decision(
    context: &Context,
    response: Response,
    kind: StatementKind,
    token: Token,
) -> Result<Decision> {
    let rows: Vec<[String; 8]> = cells(context, response, kind, token)?;
    let number = |cell: &str, name| number(context, cell, name);
    let [_, _, status, now, detail, _, start, end] = rows[0].clone();
    let mut leases = Vec::new();
    for row in &rows {
        if row[2] != status {
            return Err(context.malformed("rows with different statuses"));
        }
        let [_, _, _, _, _, node_id, start, end_exclusive] = row;
        if !node_id.is_empty() {
            leases.push(NodeLease {
                node_id: u32::try_from(number(node_id, "node_id")?)
                    .ok()
                    .filter(|node_id| *node_id <= layout::MAX_NODE_ID)
                    .ok_or_else(|| context.malformed("node_id"))?,
                start: number(start, "start")?,
                end_exclusive: number(end_exclusive, "end_exclusive")?,
            });
        }
    }
    if !leases.is_empty() && !matches!(status.as_str(), "OK" | "HELD") {
        return Err(context.malformed("a status with leases"));
    }
    leases.sort_unstable();
    let now = number(&now, "now")?;
    Ok(Decision { status, now, detail, leases, numbers: [start, end] })
}

/// Reads the cells of a response, and checks that it answers this request.
pub(super) fn cells<const N: usize>(
    context: &Context,
    response: Response,
    kind: StatementKind,
    token: Token,
) -> Result<Vec<[String; N]>> {
    let rows = match response {
        Response::Rows(rows) | Response::Confirmed { rows, .. } => rows,
        Response::Refused { code, message } => return Err(refused(context, &code, &message)),
    };
    if rows.is_empty() {
        return Err(context.malformed("no rows"));
    }
    let echo = [kind.name().to_owned(), hex(token.as_bytes())];
    let bound = rows.into_iter().map(|row| {
        let cells: Option<Vec<String>> = row.into_iter().collect();
        let cells = cells.ok_or_else(|| context.malformed("an empty cell"))?;
        if cells.get(..2).is_some_and(|head| head != echo) {
            return Err(context.foreign());
        }
        <[String; N]>::try_from(cells).map_err(|_| context.malformed("the number of columns"))
    });
    bound.collect()
}

pub(super) fn number(context: &Context, cell: &str, name: &str) -> Result<i64> {
    cell.parse().map_err(|_| context.malformed(name))
}

pub(super) fn refused(context: &Context, code: &str, message: &str) -> Error {
    if code == FAILED_TRANSACTION {
        return in_transaction();
    }
    // Of a client of Python, its class.
    if matches!(code, "MOVED" | "MovedError") {
        return context.unavailable(
            "it is one node of a Redis Cluster, and another node has the key of this namespace; \
             pass a client of the cluster, as the documentation of servers says",
        );
    }
    context.unavailable(&format!("it says {code}: {message}"))
}

fn in_transaction() -> Error {
    Error::invalid_argument(
        "the connection is inside a transaction, which could roll a lease back after it was \
         granted; give the store a connection of its own, with autocommit",
    )
}

pub(super) fn status_is_ok(context: &Context, decision: &Decision) -> Result<()> {
    if decision.status == "OK" { Ok(()) } else { Err(unexpected(context, &decision.status)) }
}

pub(super) fn unexpected(context: &Context, status: &str) -> Error {
    if status == "TRANSACTION" { in_transaction() } else { context.malformed("a status") }
}

/// Reads a node id from a field of the hash in Redis.
pub(super) fn node_in_field(node_id: &str, value: Option<&str>) -> Option<Node> {
    let mut words = value?.splitn(4, ' ');
    let (start, end, token) = (words.next()?, words.next()?, words.next()?);
    let (held, note) = (token != "-", words.next().unwrap_or_default());
    node(&format!("{node_id} {start} {end} {held} {note}"))
}

/// Reads a node id from a line of a list: node id, start, end, whether it is held, and the note.
pub(super) fn node(line: &str) -> Option<Node> {
    let mut words = line.splitn(5, ' ');
    let node_id = words.next()?.parse().ok().filter(|node_id| *node_id <= layout::MAX_NODE_ID)?;
    let (start, end_exclusive) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let held = words.next()? == "true";
    let note = Note::new(words.next()?);
    Some(Node { lease: NodeLease { node_id, start, end_exclusive }, held, note })
}
