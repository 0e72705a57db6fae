//! The namespace in etcd, and its clock.

use super::{
    super::{
        TRIES,
        context::{Context, KnownNamespace},
    },
    encoding::{meta, meta_key, parse_meta},
    transaction::{get, is_at, transact},
};
use crate::{
    Fenced, InitMode, Limits, Result,
    rules::{self, Quarantine},
};

impl KnownNamespace {
    /// Returns etcd's clock, if its last answer had a date.
    pub(super) fn date(&self, now: i64) -> Option<i64> {
        self.ahead.map(|ahead| now.saturating_add(ahead))
    }

    /// Returns the time by which leases are granted: this machine's if etcd reports none.
    pub(super) fn store_now(&self, now: i64) -> i64 {
        self.date(now).unwrap_or(now)
    }
}

/// Returns the time for a decision that ids depend on: the later one of etcd's clock and this
/// machine's, if they agree. It is late enough if either of them is right.
pub(super) fn confirmed(context: &Context, limits: Limits, date: Option<i64>) -> Result<i64> {
    let Some(date) = date else {
        return Err(context.unavailable(
            "its answer has no Date header, so that there is only one clock, which may be wrong; a \
             fence, a quarantine, a repair and the release of a dead holder need two clocks that \
             agree: use a client that passes the header on, as those for URLs do",
        ));
    };
    rules::check_clocks(limits, date, context.now)?;
    Ok(date.max(context.now))
}

/// Checks that the namespace is ours. Creates a missing one as `init` says, or if the protocol may,
/// and fences one on another server, or on one that has gone back in its history.
pub(in super::super) async fn check(
    context: &Context,
    init: Option<InitMode>,
) -> Result<KnownNamespace> {
    let key = meta_key(context);
    for _ in 0..TRIES {
        let body = transact(context, vec![], &[], vec![get(&key)]).await?;
        let Some((_, value, meta_revision)) = body.found.iter().find(|(found, ..)| *found == key)
        else {
            let quarantine = match context.may_create(init)? {
                InitMode::New => Quarantine::default(),
                InitMode::Quarantine => {
                    let limits = context.namespace().limits();
                    let now = confirmed(context, limits, body.date)?;
                    rules::fence(limits, Quarantine::default(), now)?.0
                }
            };
            let value = meta(&context.new_metadata(), &body.cluster_id, quarantine);
            let puts = [(key.clone(), value)];
            transact(context, vec![is_at(&key, 0)], &puts, vec![]).await?;
            continue;
        };
        let known = parse_meta(value)
            .map(|(metadata, incarnation, quarantine)| KnownNamespace {
                replicas: 0,
                metadata,
                incarnation,
                meta_revision: *meta_revision,
                quarantine,
                revision: body.revision,
                ahead: body.ahead_of(context.now),
            })
            .ok_or_else(|| context.malformed("meta"))?;
        let went_back = context.known().is_some_and(|before| before.revision > body.revision);
        if known.incarnation == body.cluster_id && !went_back {
            context.remember(&known)?;
            return Ok(known);
        }
        context.namespace().check(&known.metadata)?;
        if put_fence(context, &known, &body.cluster_id).await?.is_some() {
            // From now on this server's history counts.
            context.update_known(|before| before.revision = 0);
        }
    }
    Err(context.contended())
}

/// Writes a fence unless the namespace has changed meanwhile.
pub(super) async fn put_fence(
    context: &Context,
    known: &KnownNamespace,
    cluster_id: &str,
) -> Result<Option<Fenced>> {
    let limits = known.metadata.limits;
    let now = confirmed(context, limits, known.date(context.now))?;
    let (quarantine, fenced) = rules::fence(limits, known.quarantine, now)?;
    let written = put_quarantine(context, known, cluster_id, quarantine).await?;
    Ok(written.then_some(fenced))
}

/// Writes a quarantine unless the namespace has changed meanwhile.
pub(super) async fn put_quarantine(
    context: &Context,
    known: &KnownNamespace,
    cluster_id: &str,
    quarantine: Quarantine,
) -> Result<bool> {
    let key = meta_key(context);
    let puts = [(key.clone(), meta(&known.metadata, cluster_id, quarantine))];
    let body = transact(context, vec![is_at(&key, known.meta_revision)], &puts, vec![]).await?;
    Ok(body.succeeded)
}
