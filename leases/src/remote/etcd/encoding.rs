//! The keys and values in etcd.
//!
//! Keys: `randflake/<namespace>/meta`, and `randflake/<namespace>/node/<node id>` for each node id
//! that was ever leased, with the text `start end_exclusive token before note`. `before` is the end
//! before the last renewal, or the end if there was none; `-` is a released token. In a namespace of
//! tickets: `randflake/<namespace>/counter/<name>` for each counter.

use serde_json::{Value, json};

use super::super::{
    context::Context,
    hex::{hex, unhex},
};
use crate::{Limits, NamespaceMetadata, rules::Quarantine};

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

pub(super) fn counter_key(context: &Context, name: &str) -> String {
    format!("{}counter/{name}", directory(context))
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
