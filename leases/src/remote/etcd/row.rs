//! What etcd keeps of a node id.

use super::super::hex::{hex, unhex};
use crate::{NodeLease, Note, Token, operator::Node};

/// What etcd knows of one node id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) struct EtcdRow {
    pub(super) start: i64,
    pub(super) end_exclusive: i64,
    pub(super) token: Option<Token>,
    /// The end before the last renewal, or the end if there was none.
    pub(super) before: i64,
    pub(super) note: Note,
    /// Revision of the key; 0 if there is none.
    pub(super) revision: i64,
}

/// A node id that was never leased.
pub(super) const NEVER: EtcdRow =
    EtcdRow { start: 0, end_exclusive: 0, token: None, before: 0, note: Note::NONE, revision: 0 };

impl EtcdRow {
    pub(super) fn text(&self) -> String {
        let token = self.token.map_or("-".into(), |token| hex(token.as_bytes()));
        format!("{} {} {token} {} {}", self.start, self.end_exclusive, self.before, self.note)
    }

    pub(super) fn parse(text: &str, revision: i64) -> Option<Self> {
        let mut words = text.splitn(5, ' ');
        let (start, end_exclusive) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let token = match words.next()? {
            "-" => None,
            digits => Some(Token::from_bytes(unhex(digits)?)),
        };
        let before = words.next()?.parse().ok()?;
        let note = Note::new(words.next().unwrap_or_default());
        Some(Self { start, end_exclusive, token, before, note, revision })
    }

    pub(super) fn node(&self, node_id: u32) -> Node {
        Node { lease: lease((node_id, *self)), held: self.token.is_some(), note: self.note }
    }
}

pub(super) fn lease((node_id, row): (u32, EtcdRow)) -> NodeLease {
    NodeLease { node_id, start: row.start, end_exclusive: row.end_exclusive }
}
