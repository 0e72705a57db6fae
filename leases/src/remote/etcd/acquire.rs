//! How an acquire finds and takes free node ids in etcd.

use std::collections::BTreeMap;

use super::{
    super::{
        TRIES,
        candidates::{candidates, ranges},
        context::{Context, KnownNamespace},
    },
    namespace::check,
    nodes::{NodeSelection, WRITES, read, write},
    row::{EtcdRow, NEVER, lease},
};
use crate::{Acquire, Acquired, NodeLease, Result, rules};

/// How many node ids are read one by one, first and then; each is an operation of a transaction.
const FIRST_READS: [usize; 2] = [8, 100];
/// How many node ids are read as a range after that.
const RANGE: u32 = 1000;

pub(super) async fn acquire(context: &Context, request: &Acquire) -> Result<Acquired> {
    // The clocks are compared again: this machine's may have stepped since the last answer.
    let known = check(context, None).await?;
    let limits = known.metadata.limits;
    let now = known.store_now(context.now);
    rules::check_want(request.want)?;
    rules::end_of(limits, now, request.ttl)?;
    let want = request.want as usize;
    // First assume that none of them was ever leased: if so, one round trip is enough.
    let mut fresh = Some(BTreeMap::new());
    let (mut taken, mut complete) = (AcquireAttempt::default(), false);
    for count in FIRST_READS {
        let node_ids;
        let count = count.max((2 * want).min(FIRST_READS[1]));
        (node_ids, complete) = candidates(request.token, limits, count);
        let selection = NodeSelection::Each(node_ids.clone());
        taken = take(context, request, &node_ids, &selection, fresh.take(), want, now).await?;
        if complete || !taken.leases.is_empty() || taken.refusal.is_some() {
            break;
        }
    }
    if let Some(refusal) = taken.refusal.take() {
        return Ok(refusal);
    }
    let mut leases = taken.leases;
    let mut free_at = taken.free_at;
    if !complete && !taken.held && leases.len() < want {
        free_at = None;
        for (first, last) in ranges(request.token, limits, RANGE) {
            leases.sort_unstable();
            let is_new = |id: &u32| leases.binary_search_by_key(id, |lease| lease.node_id).is_err();
            let node_ids: Vec<u32> = (first..=last).filter(is_new).collect();
            let selection = NodeSelection::Block(first, last);
            let left = want - leases.len();
            let taken = take(context, request, &node_ids, &selection, None, left, now).await?;
            leases.extend(taken.leases);
            free_at = free_at.into_iter().chain(taken.free_at).min();
            if taken.held || taken.refusal.is_some() || leases.len() >= want {
                break;
            }
        }
    }
    if leases.is_empty() {
        return Ok(Acquired::Busy { now, free_at });
    }
    leases.sort_unstable();
    Ok(Acquired::Granted { now, leases })
}

/// What an attempt to take some node ids has found.
#[derive(Default)]
struct AcquireAttempt {
    leases: Vec<NodeLease>,
    /// The token held them before.
    held: bool,
    refusal: Option<Acquired>,
    free_at: Option<i64>,
}

/// Takes up to `want` of the node ids, of which `seen` is known, at the store's time `now`.
#[allow(clippy::too_many_arguments, reason = "one step of one operation")]
async fn take(
    context: &Context,
    request: &Acquire,
    node_ids: &[u32],
    selection: &NodeSelection,
    mut seen: Option<BTreeMap<u32, EtcdRow>>,
    want: usize,
    now: i64,
) -> Result<AcquireAttempt> {
    let mut outcome = AcquireAttempt::default();
    let mut has_read = false;
    for _ in 0..TRIES + want / WRITES {
        let known = context.known_or(check(context, None)).await?;
        let refusal = refusal(&known, request, now);
        let rows = match &mut seen {
            Some(rows) if has_read || refusal.is_none() => rows,
            _ => {
                has_read = true;
                seen.insert(read(context, selection).await?)
            }
        };
        let row = |node_id: &u32| rows.get(node_id).copied().unwrap_or(NEVER);
        if outcome.leases.is_empty() {
            let held =
                node_ids.iter().map(|node_id| (*node_id, row(node_id))).filter(|(_, row)| {
                    row.token == Some(request.token) && row.revision > known.meta_revision
                });
            outcome.leases = held.map(lease).collect();
            outcome.held = !outcome.leases.is_empty();
        }
        let left = want.saturating_sub(outcome.leases.len());
        if outcome.held || left == 0 {
            return Ok(outcome);
        }
        if refusal.is_some() {
            outcome.refusal = refusal;
            return Ok(outcome);
        }
        let limits = known.metadata.limits;
        let end_exclusive = rules::end_of(limits, now, request.ttl)?;
        let earliest = known.quarantine.floor.max(rules::earliest(limits, now));
        let picked: Vec<(u32, EtcdRow)> = node_ids
            .iter()
            .map(|node_id| (*node_id, row(node_id)))
            .filter(|(_, row)| row.end_exclusive <= now)
            .take(left.min(WRITES))
            .map(|(node_id, row)| {
                let start = row.end_exclusive.max(earliest);
                let before = end_exclusive;
                let revision = row.revision;
                let (token, note) = (Some(request.token), request.note);
                (node_id, EtcdRow { start, end_exclusive, token, before, note, revision })
            })
            .collect();
        if picked.is_empty() {
            outcome.free_at = node_ids.iter().map(|node_id| row(node_id).end_exclusive).min();
            return Ok(outcome);
        }
        let after = write(context, &picked, selection).await?;
        if after.done {
            rows.extend(&after.rows);
            outcome.leases.extend(after.rows.into_iter().map(lease));
        } else {
            has_read = true;
            seen = Some(after.rows);
        }
    }
    Ok(outcome) // other requests were faster each time
}

fn refusal(known: &KnownNamespace, request: &Acquire, now: i64) -> Option<Acquired> {
    let max_skew = known.metadata.limits.max_skew;
    if now.abs_diff(request.client_now) > max_skew.into() {
        return Some(Acquired::ClockSkew { store_now: now, max_skew });
    }
    let until = known.quarantine.floor;
    (until > now).then_some(Acquired::Quarantined { now, until })
}
