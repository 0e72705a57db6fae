//! The keys and values in etcd.
//!
//! Keys: `randflake/<namespace>/meta`, and `randflake/<namespace>/node/<node id>` for each node id
//! that was ever leased, with the text `start end_exclusive token before note`. `before` is the end
//! before the last renewal, or the end if there was none; `-` is a released token.

use serde_json::{Value, json};

use super::super::{
    context::Context,
    hex::{hex, unhex},
};
use crate::{Limits, NamespaceMetadata, NodeLease, Note, Token, operator::Node, rules::Quarantine};

/// What etcd knows of one node id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) struct Row {
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
pub(super) const NEVER: Row =
    Row { start: 0, end_exclusive: 0, token: None, before: 0, note: Note::NONE, revision: 0 };

impl Row {
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

pub(super) fn meta_key(context: &Context) -> String {
    format!("{}meta", directory(context))
}

pub(super) fn directory(context: &Context) -> String {
    // A name may hold a slash; no two names may share a key.
    let name = context.namespace().name().replace('%', "%25").replace('/', "%2f");
    format!("randflake/{name}/")
}

pub(super) fn node_key(context: &Context, node_id: u32) -> String {
    format!("{}node/{node_id:06}", directory(context))
}

pub(super) fn meta(
    metadata: &NamespaceMetadata,
    incarnation: &str,
    quarantine: Quarantine,
) -> String {
    json!({
        "format": metadata.format,
        "incarnation": incarnation,
        "floor": quarantine.floor,
        "renew_above": quarantine.renew_above,
        "max_ttl": metadata.limits.max_ttl,
        "max_skew": metadata.limits.max_skew,
        "max_node_id": metadata.limits.max_node_id,
        "layout": metadata.layout,
        "salt": hex(&metadata.salt),
        "key_check": hex(&metadata.key_check),
    })
    .to_string()
}

pub(super) fn parse_meta(text: &str) -> Option<(NamespaceMetadata, String, Quarantine)> {
    let meta: Value = serde_json::from_str(text).ok()?;
    let limit = |name: &str| u32::try_from(meta[name].as_u64()?).ok();
    let metadata = NamespaceMetadata {
        format: limit("format")?,
        limits: Limits {
            max_ttl: limit("max_ttl")?,
            max_skew: limit("max_skew")?,
            max_node_id: limit("max_node_id")?,
        },
        layout: meta["layout"].as_str()?.into(),
        salt: unhex(meta["salt"].as_str()?)?,
        key_check: unhex(meta["key_check"].as_str()?)?,
    };
    let quarantine =
        Quarantine { floor: meta["floor"].as_i64()?, renew_above: meta["renew_above"].as_i64()? };
    Some((metadata, meta["incarnation"].as_str()?.into(), quarantine))
}

pub(super) fn lease((node_id, row): (u32, Row)) -> NodeLease {
    NodeLease { node_id, start: row.start, end_exclusive: row.end_exclusive }
}
