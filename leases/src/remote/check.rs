//! The check of a namespace before the first operation, and after the server has changed.
//!
//! **Another server.** Meta records which server it is on, its incarnation. After a failover or a
//! restored backup nothing is granted for the longest lease and the largest skew, and only leases
//! that clearly run are renewed. Only a clock that agrees with the client's sets this fence: one
//! that is behind would set it into the past.
//!
//! **Back in history.** The version of meta begins with how often it was written. A client that
//! sees another meta with the same number as the one it knows, or a lower one, is at an earlier
//! point of the history or in another branch of it: a master that is back in the place of its
//! successor, or a second successor. It fences, unless a fence there is later than the last answer
//! that it had elsewhere: otherwise each process that slept through a failover would fence a
//! healthy store again.

use super::{
    context::Context,
    engine::Engine,
    exchange::TRIES,
    protocol::Known,
    step::{Seen, Step, Write},
    text::{Key, Meta},
};
use crate::{
    namespace::InitMode,
    rules::{self, Quarantine},
    stores::{mysql, postgres, redis},
};
use randflake::{ErrorKind, Result};

/// Checks that the namespace is ours and that the server keeps what it acknowledges. Creates a missing
/// namespace as `init` says, or if the protocol may; fences one on another server, or on one that has gone
/// back in its history.
pub(super) async fn check(context: &Context, init: Option<InitMode>) -> Result<Known> {
    let mut weak_as = None;
    for _ in 0..TRIES {
        // Read this before asking: another operation may learn of a later revision meanwhile.
        let known = context.known();
        let seen = context.step(&Step::default()).await?;
        if !seen.has_table {
            context.may_create(init)?;
            context.create_table().await?;
            continue;
        }
        let settings = check_settings(context, seen.durability()).await;
        if settings.as_ref().is_err_and(|error| error.kind() == ErrorKind::WeakStore) {
            // In a failover, one server may have said what it is, and another its settings. Only a
            // server that says the same again is weak.
            if weak_as.as_ref() != Some(&seen.server) {
                weak_as = Some(seen.server);
                continue;
            }
        }
        let Some(text) = seen.meta.clone() else {
            let mode = context.may_create(init)?;
            settings?;
            create(context, mode, &seen).await?;
            continue;
        };
        let meta = Meta::parse(&text).ok_or_else(|| context.malformed("meta"))?;
        let replicas = settings?;
        context.namespace().check(&meta.metadata)?;
        let went_back = went_back(context, known.as_ref(), &seen, &meta);
        if meta.incarnation != seen.incarnation() || went_back == WentBack::Unfenced {
            let limits = meta.metadata.limits;
            let clock = context.confirmed(limits, seen.clock)?;
            rules::check_clocks(limits, clock, context.now)?;
            let (quarantine, _) =
                rules::fence(limits, context.last_grant(), meta.quarantine, clock)?;
            let fenced = meta.fenced(seen.incarnation(), quarantine);
            if write(context, &seen, Some(text), &fenced).await? {
                context.go_on_from(&seen);
            }
            continue;
        }
        if went_back == WentBack::Fenced {
            context.go_on_from(&seen);
        }
        let clocks = seen.clock.map(|clock| (clock, context.later()));
        let Seen { server, revision, .. } = seen;
        let known = Known { meta, text, server, replicas, revision, clocks };
        context.remember(&known)?;
        return Ok(known);
    }
    Err(context.contended())
}

/// Creates the namespace, unless it exists by now.
async fn create(context: &Context, mode: InitMode, seen: &Seen) -> Result<()> {
    let metadata = context.new_metadata();
    let quarantine = match mode {
        InitMode::New => Quarantine::default(),
        InitMode::Quarantine => {
            let clock = context.confirmed(metadata.limits, seen.clock)?;
            rules::check_clocks(metadata.limits, clock, context.now)?;
            let last_grant = context.last_grant();
            rules::fence(metadata.limits, last_grant, Quarantine::default(), clock)?.0
        }
    };
    let meta = Meta::new(seen.incarnation(), quarantine, metadata);
    write(context, seen, None, &meta).await.map(drop)
}

/// Writes meta on a server, and returns whether it was written.
async fn write(
    context: &Context,
    seen: &Seen,
    before: Option<String>,
    meta: &Meta,
) -> Result<bool> {
    let write = Write { key: Key::Meta, before, after: meta.text() };
    let server = Some(seen.server.clone());
    let step = Step { writes: vec![write], server, ..Step::default() };
    Ok(context.step(&step).await?.written.contains(&Key::Meta))
}

/// Whether a server may lack something that was seen of the namespace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WentBack {
    No,
    /// It does, but was fenced after that was seen.
    Fenced,
    Unfenced,
}

/// Returns whether a server is at an earlier point of the history that is known, or in another branch of it.
pub(super) fn went_back(
    context: &Context,
    known: Option<&Known>,
    seen: &Seen,
    meta: &Meta,
) -> WentBack {
    let is_same = |known: &&Known| known.meta.metadata.salt == meta.metadata.salt;
    let Some(known) = known.filter(is_same) else { return WentBack::No };
    let is_behind = match context.engine() {
        Engine::Postgres => {
            let incarnation = known.server.split(' ').next().unwrap_or_default();
            if postgres::is_before(seen.incarnation(), incarnation) {
                return WentBack::Unfenced;
            }
            false
        }
        Engine::Mysql | Engine::Redis => false,
        Engine::Etcd => seen.server == known.server && seen.revision < known.revision,
    };
    if !is_behind && !meta.is_before(&known.meta) {
        return WentBack::No;
    }
    let is_fenced = known.clocks.is_some_and(|(last, _)| {
        let limits = meta.metadata.limits;
        rules::is_fenced_since(limits, context.last_grant(), meta.quarantine, last)
    });
    if is_fenced { WentBack::Fenced } else { WentBack::Unfenced }
}

impl Context {
    /// From now on this server's history counts.
    fn go_on_from(&self, seen: &Seen) {
        self.update_known(|known| {
            known.revision = 0;
            known.server.clone_from(&seen.server);
        });
    }
}

/// Refuses a server that may lose acknowledged writes, unless that is allowed, and returns how many replicas
/// must confirm a grant.
async fn check_settings(context: &Context, durability: &str) -> Result<u32> {
    if context.allows_weak_store() || context.namespace().is_for_operator() {
        return Ok(0);
    }
    match context.engine() {
        Engine::Postgres => {
            postgres::weakness(durability).map_or(Ok(0), |why| Err(context.weak(&why)))
        }
        Engine::Mysql => mysql::check_settings(context, durability).await.map(|()| 0),
        Engine::Redis => redis::check_settings(context, durability).await,
        Engine::Etcd => Ok(0),
    }
}
