//! Reading and writing node ids in etcd.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use randflake::layout;
use serde_json::{Value, json};

use super::{
    super::{
        TRIES,
        context::{Context, KnownNamespace},
    },
    encoding::{directory, meta_key, node_key},
    namespace::check,
    row::{EtcdRow, NEVER},
    transaction::{TxnResponse, get, is_at, transact},
};
use crate::{Result, Token};

/// Node ids written by one transaction; etcd allows 128 operations by default.
pub(super) const WRITES: usize = 40;

/// Which node ids a transaction reads if it cannot write.
#[derive(Clone)]
pub(super) enum NodeSelection {
    Each(Vec<u32>),
    /// From the first to the last, inclusive.
    Block(u32, u32),
}

/// The outcome of a [`write`].
pub(super) struct WriteResult {
    /// Whether all of it was written.
    pub(super) done: bool,
    /// What was written; otherwise what was read instead.
    pub(super) rows: BTreeMap<u32, EtcdRow>,
}

impl NodeSelection {
    fn has(&self, node_id: u32) -> bool {
        match self {
            Self::Each(node_ids) => node_ids.contains(&node_id),
            Self::Block(first, last) => (*first..=*last).contains(&node_id),
        }
    }

    fn requests(&self, context: &Context) -> Vec<Value> {
        match self {
            Self::Each(node_ids) => {
                node_ids.iter().map(|node_id| get(&node_key(context, *node_id))).collect()
            }
            Self::Block(first, last) => vec![json!({"request_range": {
                "key": BASE64.encode(node_key(context, *first)),
                "range_end": BASE64.encode(node_key(context, last + 1)),
            }})],
        }
    }
}

/// Writes `rows` if neither the node ids nor the namespace have changed, and reads the selection
/// otherwise. A write to a server that turns out to be another one does not count.
pub(super) async fn write(
    context: &Context,
    rows: &[(u32, EtcdRow)],
    selection: &NodeSelection,
) -> Result<WriteResult> {
    let known = context.known_or(check(context, None)).await?;
    let mut compares = vec![];
    if !rows.is_empty() {
        compares.push(is_at(&meta_key(context), known.meta_revision));
        compares.extend(
            rows.iter().map(|(node_id, row)| is_at(&node_key(context, *node_id), row.revision)),
        );
    }
    let puts: Vec<(String, String)> =
        rows.iter().map(|(node_id, row)| (node_key(context, *node_id), row.text())).collect();
    let mut otherwise = selection.requests(context);
    otherwise.push(get(&meta_key(context)));
    let mut body = transact(context, compares, &puts, otherwise.clone()).await?;
    let same = |body: &TxnResponse, known: &KnownNamespace| {
        body.cluster_id == known.incarnation && body.revision >= known.revision
    };
    if same(&body, &known) {
        context.update_known(|known| {
            known.revision = known.revision.max(body.revision);
            known.ahead = body.ahead_of(context.now);
        });
        if !rows.is_empty() && body.succeeded {
            let revision = body.revision;
            let written =
                rows.iter().map(|(node_id, row)| (*node_id, EtcdRow { revision, ..*row }));
            let rows: BTreeMap<u32, EtcdRow> = written.collect();
            context.state().etcd_rows.extend(&rows);
            return Ok(WriteResult { done: true, rows });
        }
    }
    let key = meta_key(context);
    let moved = body.found.iter().all(|(found, _, at)| *found != key || *at != known.meta_revision);
    if !same(&body, &known) || moved {
        check(context, None).await?;
        body = transact(context, vec![], &[], otherwise).await?;
    }
    let nodes = format!("{}node/", directory(context));
    let mut rows = BTreeMap::new();
    for (found, value, revision) in &body.found {
        if *found == key {
            continue;
        }
        // A node id that was not asked for is the answer to another request.
        let node_id = found.strip_prefix(&nodes).and_then(|id| id.parse().ok());
        let node_id = node_id.filter(|id| selection.has(*id)).ok_or_else(|| context.foreign())?;
        let row = EtcdRow::parse(value, *revision).ok_or_else(|| context.malformed("a node id"))?;
        rows.insert(node_id, row);
    }
    if let NodeSelection::Each(node_ids) = selection {
        for node_id in node_ids {
            rows.entry(*node_id).or_insert(NEVER);
        }
    }
    Ok(WriteResult { done: false, rows })
}

/// Reads the selected node ids.
pub(super) async fn read(
    context: &Context,
    selection: &NodeSelection,
) -> Result<BTreeMap<u32, EtcdRow>> {
    Ok(write(context, &[], selection).await?.rows)
}

/// Changes those of the node ids that the token holds.
pub(super) async fn rewrite(
    context: &Context,
    token: Token,
    node_ids: &[u32],
    change: impl Fn(&KnownNamespace, EtcdRow) -> Option<EtcdRow>,
) -> Result<Vec<(u32, EtcdRow)>> {
    let mut written = Vec::new();
    let mut node_ids: Vec<u32> =
        node_ids.iter().copied().filter(|node_id| *node_id <= layout::MAX_NODE_ID).collect();
    node_ids.sort_unstable();
    node_ids.dedup();
    for node_ids in node_ids.chunks(WRITES) {
        let selection = NodeSelection::Each(node_ids.to_vec());
        let ours = node_ids.iter().map_while(|node_id| {
            let row = context.state().etcd_rows.get(node_id).copied()?;
            (row.token == Some(token)).then_some((*node_id, row))
        });
        let ours: BTreeMap<u32, EtcdRow> = ours.collect();
        let mut seen =
            if ours.len() == node_ids.len() { ours } else { read(context, &selection).await? };
        let mut tries = 0;
        loop {
            let known = context.known_or(check(context, None)).await?;
            let rows: Vec<(u32, EtcdRow)> = seen
                .iter()
                .filter(|(_, row)| row.token == Some(token))
                .filter_map(|(node_id, row)| Some((*node_id, change(&known, *row)?)))
                .collect();
            if rows.is_empty() {
                break;
            }
            let after = write(context, &rows, &selection).await?;
            if after.done {
                written.extend(after.rows);
                break;
            }
            seen = after.rows;
            tries += 1;
            if tries == TRIES {
                return Err(context.contended());
            }
        }
    }
    Ok(written)
}
