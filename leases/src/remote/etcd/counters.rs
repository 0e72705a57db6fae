//! Counters in etcd.

use super::{
    super::{TRIES, context::Context},
    encoding::{counter_key, meta_key},
    namespace::check,
    transaction::{get, has_value, is_at, transact},
};
use crate::{Result, Swap, Swapped};

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
        if body.cluster_id == known.incarnation && body.revision >= known.revision {
            context.update_known(|known| {
                known.revision = known.revision.max(body.revision);
                known.ahead = body.ahead_of(context.now);
            });
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
