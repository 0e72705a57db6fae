//! What a store knows about one node id.

use crate::{
    note::Note,
    protocol::{Node, NodeLease},
    token::Token,
};

/// What a store knows about one node id. A node id without a row was never leased.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Row {
    pub(crate) start: i64,
    /// No earlier or current holder ever stamps this second or a later one.
    pub(crate) end_exclusive: i64,
    pub(crate) token: Option<Token>,
    /// The note of the last holder.
    pub(crate) note: Note,
    /// Changes with each write; 0 before the first.
    pub(crate) version: u64,
}

impl Row {
    /// Returns the row as an operator sees it.
    pub(crate) fn node(self, node_id: u32) -> Node {
        Node { lease: self.lease(node_id), held: self.token.is_some(), note: self.note }
    }

    /// Returns its lease, under whichever token.
    pub(crate) fn lease(self, node_id: u32) -> NodeLease {
        NodeLease { node_id, start: self.start, end_exclusive: self.end_exclusive }
    }
}
