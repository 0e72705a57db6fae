//! etcd, by its JSON gateway. Each operation is a transaction that compares the revisions of
//! everything that it was decided on. etcd keeps no time: its clock is the `Date` header of the
//! gateway's answers, which comes with the JSON. What ids depend on (a fence, a repair, the release of
//! a dead holder) is decided only where that clock and this machine's agree. Without the header there
//! is only one clock, and those operations are refused. Leases then go by this machine's clock, which
//! affects only when they can be used.
//!
//! A restored etcd reveals that only in the header of its answer, after the write. So what was
//! written before the last fence counts for less: an acquire not at all, a renewal only as far as the
//! end before it. Otherwise a write whose answer is lost could hide that the lease was over, and had
//! gone to another holder in the time that etcd has lost.

mod acquire;
mod counters;
mod encoding;
mod examine;
mod namespace;
mod nodes;
pub(super) mod row;
mod transaction;

use std::future::Future;

#[cfg(test)]
pub(super) use self::transaction::unix_second_of;
use self::{
    encoding::{directory, meta_key, node_key, parse_meta},
    namespace::{confirmed, put_fence, put_quarantine},
    nodes::{NodeSelection, read, rewrite, write},
    row::{EtcdRow, lease},
    transaction::{get, get_page, transact},
};
pub(super) use self::{examine::examine, namespace::check};
use super::{
    TRIES,
    context::{Context, KnownNamespace},
};
use crate::{
    Acquire, Acquired, Fence, Fenced, ListCounters, ListedCounters, NodeLease, Release, Released,
    Renew, Renewed, Request, Result, Swap, Swapped,
    operator::{List, Listed, Node, Shortened, Target},
    rules::{self, Lowering, TargetState},
};

/// Node ids in one answer to a list: with the longest names and notes less than a megabyte.
const PAGE: usize = 500;

/// How etcd does a request.
pub trait EtcdRequest: Request {
    fn run(&self, context: &Context) -> impl Future<Output = Result<Self::Outcome>> + Send;
}

impl EtcdRequest for Acquire {
    async fn run(&self, context: &Context) -> Result<Acquired> {
        context.namespace().may_lease()?;
        acquire::acquire(context, self).await
    }
}

impl EtcdRequest for Renew {
    async fn run(&self, context: &Context) -> Result<Renewed> {
        let skew = |known: &KnownNamespace| {
            let store_now = known.store_now(context.now);
            let max_skew = known.metadata.limits.max_skew;
            let skewed = store_now.abs_diff(self.client_now) > max_skew.into();
            skewed.then_some(Renewed::ClockSkew { store_now, max_skew })
        };
        let before = context.known_or(check(context, None)).await?;
        let store_now = before.store_now(context.now);
        let end_exclusive = rules::end_of(before.metadata.limits, store_now, self.ttl)?;
        if let Some(skewed) = skew(&before) {
            return Ok(skewed);
        }
        let change = |known: &KnownNamespace, row: EtcdRow| {
            let written_before_the_fence = row.revision < known.meta_revision;
            let certain = if written_before_the_fence { row.before } else { row.end_exclusive };
            (certain > known.quarantine.renew_above).then(|| EtcdRow {
                before: row.end_exclusive,
                end_exclusive: row.end_exclusive.max(end_exclusive),
                ..row
            })
        };
        let rows = rewrite(context, self.token, &self.node_ids, change).await?;
        // One round trip has to be enough: the first comparison used the clock of the last answer.
        let after = context.known_or(check(context, None)).await?;
        if let Some(skewed) = skew(&after) {
            return Ok(skewed);
        }
        let now = after.store_now(context.now);
        let mut leases: Vec<NodeLease> = rows.into_iter().map(lease).collect();
        leases.sort_unstable();
        Ok(if leases.is_empty() {
            Renewed::Lost { now }
        } else {
            Renewed::Extended { now, leases }
        })
    }
}

impl EtcdRequest for Release {
    async fn run(&self, context: &Context) -> Result<Released> {
        context.known_or(check(context, None)).await?;
        // Keys are never deleted: an end must not be lost.
        let change = |_: &KnownNamespace, row: EtcdRow| {
            let end_exclusive = self.used_until.clamp(row.start, row.end_exclusive);
            Some(EtcdRow { end_exclusive, token: None, before: end_exclusive, ..row })
        };
        let rows = rewrite(context, self.token, &self.node_ids, change).await?;
        let mut state = context.state();
        for (node_id, _) in &rows {
            state.etcd_rows.remove(node_id);
        }
        Ok(Released { count: u32::try_from(rows.len()).unwrap_or(u32::MAX) })
    }
}

impl EtcdRequest for Fence {
    async fn run(&self, context: &Context) -> Result<Fenced> {
        for _ in 0..TRIES {
            let known = check(context, None).await?;
            if let Some(fenced) = put_fence(context, &known, &known.incarnation).await? {
                check(context, None).await?;
                return Ok(fenced);
            }
        }
        Err(context.contended())
    }
}

impl EtcdRequest for List {
    /// Reads page by page at the revision of the first page, and writes nothing.
    async fn run(&self, context: &Context) -> Result<Listed> {
        let key = meta_key(context);
        let mut from = node_key(context, self.node_id.unwrap_or(0));
        let end = match self.node_id {
            None => format!("{}node0", directory(context)),
            Some(_) => format!("{from}\0"),
        };
        let (mut first_page, mut revision, mut nodes) = (None, 0, Vec::new());
        loop {
            let range = get_page(&from, &end, PAGE, revision);
            let meta_range = if first_page.is_none() { vec![get(&key)] } else { vec![] };
            let reads = [meta_range, vec![range]].concat();
            let body = transact(context, vec![], &[], reads).await?;
            if first_page.is_none() {
                let (_, value, _) = body
                    .found
                    .iter()
                    .find(|(found, ..)| *found == key)
                    .ok_or_else(|| context.not_initialized())?;
                let meta = parse_meta(value).ok_or_else(|| context.malformed("meta"))?;
                let went_back = context.known().is_some_and(|known| known.revision > body.revision);
                revision = body.revision;
                first_page = Some((meta, body.cluster_id, went_back, body.date));
            }
            let before = nodes.len();
            for (found, value, at) in body.found.iter().filter(|(found, ..)| *found != key) {
                let node_id = found.rsplit_once("/node/").and_then(|(_, id)| id.parse().ok());
                let row = EtcdRow::parse(value, *at).zip(node_id);
                let (row, node_id) = row.ok_or_else(|| context.malformed("a node id"))?;
                nodes.push(row.node(node_id));
                from = format!("{found}\0");
            }
            if nodes.len() - before < PAGE {
                break;
            }
        }
        let ((metadata, incarnation, quarantine), cluster_id, went_back, date) =
            first_page.ok_or_else(|| context.malformed("meta"))?;
        context.namespace().check(&metadata)?;
        Ok(Listed {
            has_clock: date.is_some(),
            incarnation_changed: went_back || incarnation != cluster_id,
            ..rules::listed(&metadata, quarantine, date.unwrap_or(context.now), nodes)
        })
    }
}

impl EtcdRequest for Swap {
    async fn run(&self, context: &Context) -> Result<Swapped> {
        context.namespace().may_count()?;
        self.check()?;
        counters::swap(context, self).await
    }
}

impl EtcdRequest for ListCounters {
    async fn run(&self, context: &Context) -> Result<ListedCounters> {
        context.namespace().may_count()?;
        counters::list(context).await
    }
}

impl<R: Lowering> EtcdRequest for R {
    /// Decides here, and writes only if nothing has changed since. If a client sent the write twice,
    /// the second one is refused, and the target already is as it should be.
    async fn run(&self, context: &Context) -> Result<Shortened> {
        let mut wanted = None;
        for _ in 0..TRIES {
            let row = match self.target() {
                Target::Node(node_id) => Some((node_id, leased_row(context, node_id).await?)),
                Target::Floor => None,
            };
            let known = check(context, None).await?;
            let limits = known.metadata.limits;
            rules::check_target(&known.metadata.layout, self.target())?;
            let now = confirmed(context, limits, known.date(context.now))?;
            let before = row.map_or(TargetState::Floor(known.quarantine), |(node_id, row)| {
                TargetState::Node(row.node(node_id))
            });
            if let Some((done, shortened)) = wanted
                && done == before
            {
                return Ok(shortened);
            }
            let (after, shortened) = self.decide(limits, now, 0, before)?;
            let written = match (after, row) {
                (TargetState::Node(Node { lease, .. }), Some((node_id, row))) => {
                    let NodeLease { start, end_exclusive, .. } = lease;
                    let before = end_exclusive;
                    let free = EtcdRow { start, end_exclusive, token: None, before, ..row };
                    let selection = NodeSelection::Each(vec![node_id]);
                    let written = write(context, &[(node_id, free)], &selection).await?.done;
                    context.state().etcd_rows.remove(&node_id);
                    written
                }
                (TargetState::Floor(quarantine), None) => {
                    let cluster_id = &known.incarnation;
                    let written = put_quarantine(context, &known, cluster_id, quarantine).await?;
                    check(context, None).await?; // what is known has changed
                    written
                }
                _ => unreachable!("a state of the same target"),
            };
            if written {
                return Ok(shortened);
            }
            wanted = Some((after, shortened));
        }
        Err(context.contended())
    }
}

/// Reads a node id that was leased before.
async fn leased_row(context: &Context, node_id: u32) -> Result<EtcdRow> {
    let rows = read(context, &NodeSelection::Each(vec![node_id])).await?;
    let row = rows.get(&node_id).copied().filter(|row| row.revision > 0);
    row.ok_or_else(|| rules::never_leased(node_id))
}
