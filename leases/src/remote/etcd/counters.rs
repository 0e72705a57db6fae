//! Counters in etcd.

use super::{
    super::{
        TRIES,
        context::{Context, KnownNamespace},
    },
    encoding::{counter_key, directory, meta_key},
    namespace::check,
    transaction::{TxnResponse, get, get_page, has_value, is_at, transact},
};
use crate::{ListedCounters, Result, Swap, Swapped};

/// Counters in one answer to a list: the longest values are 25 KB, and JSON makes them a third longer.
const PAGE: usize = 100;

/// Reads a counter, or replaces its value if neither that nor the namespace has changed. A write to a
/// server that turns out to be another one does not count: that server is fenced, and the floor that
/// the fence sets is not that of the counter there.
pub(super) async fn swap(context: &Context, request: &Swap) -> Result<Swapped> {
    let (meta, key) = (meta_key(context), counter_key(context, &request.counter));
    for _ in 0..TRIES {
        let known = context.known_or(check(context, None)).await?;
        let floor = known.quarantine.floor;
        let change = request.change.as_ref().filter(|change| change.floor == floor);
        let mut compares = vec![];
        let mut puts = vec![];
        if let Some(change) = change {
            let before = change.before.as_ref();
            let is_unchanged = before.map_or(is_at(&key, 0), |before| has_value(&key, before));
            compares = vec![is_at(&meta, known.meta_revision), is_unchanged];
            puts = vec![(key.clone(), change.after.clone())];
        }
        let body = transact(context, compares, &puts, vec![get(&key), get(&meta)]).await?;
        if is_of_known_server(context, &known, &body) {
            let now = known.store_now(context.now);
            if let Some(change) = change.filter(|_| body.succeeded) {
                return Ok(Swapped { now, done: true, floor, value: Some(change.after.clone()) });
            }
            if body.found.iter().any(|(found, ..)| *found != key && *found != meta) {
                return Err(context.foreign());
            }
            let find = |key: &str| body.found.iter().find(|(found, ..)| found == key);
            if find(&meta).is_some_and(|(_, _, at)| *at == known.meta_revision) {
                let value = find(&key).map(|(_, value, _)| value.clone());
                return Ok(Swapped { now, done: false, floor, value });
            }
        }
        check(context, None).await?;
    }
    Err(context.contended())
}

/// Lists all counters, page by page at the revision of the first page.
pub(super) async fn list(context: &Context) -> Result<ListedCounters> {
    let (meta, first) = (meta_key(context), counter_key(context, ""));
    let end = format!("{}counter0", directory(context)); // 0 follows the slash
    'tries: for _ in 0..TRIES {
        let known = context.known_or(check(context, None)).await?;
        let (mut from, mut revision, mut counters) = (first.clone(), 0, Vec::new());
        loop {
            let reads = vec![get(&meta), get_page(&from, &end, PAGE, revision)];
            let body = transact(context, vec![], &[], reads).await?;
            let is_unchanged = |(found, _, at): &(String, String, i64)| {
                *found == meta && *at == known.meta_revision
            };
            if !is_of_known_server(context, &known, &body) || !body.found.iter().any(is_unchanged) {
                check(context, None).await?;
                continue 'tries;
            }
            if revision == 0 {
                revision = body.revision;
            }
            let before = counters.len();
            for (found, value, _) in body.found.into_iter().filter(|(found, ..)| *found != meta) {
                let name = found.strip_prefix(&first).ok_or_else(|| context.foreign())?;
                from = format!("{found}\0");
                counters.push((name.to_owned(), value));
            }
            if counters.len() - before < PAGE {
                let (now, floor) = (known.store_now(context.now), known.quarantine.floor);
                return Ok(ListedCounters { now, floor, counters });
            }
        }
    }
    Err(context.contended())
}

/// Returns whether an answer is of the server that is known, and remembers what it says of it.
fn is_of_known_server(context: &Context, known: &KnownNamespace, body: &TxnResponse) -> bool {
    let is_known = body.cluster_id == known.incarnation && body.revision >= known.revision;
    if is_known {
        context.update_known(|known| {
            known.revision = known.revision.max(body.revision);
            known.ahead = body.ahead_of(context.now);
        });
    }
    is_known
}
