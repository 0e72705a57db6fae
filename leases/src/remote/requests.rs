//! The ten operations, on a server.

use std::{collections::BTreeMap, future::Future};

use super::{
    check::{WentBack, check, went_back},
    context::Context,
    driver::{Begins, How, candidates, perform},
    exchange::TRIES,
    protocol::Known,
    step::{Seen, Step},
    text::{COUNTERS, Key, Meta, NODES, parse_counter, parse_node},
};
use crate::{
    protocol::{
        Acquire, Acquired, Fence, Fenced, List, ListCounters, Listed, ListedCounters, NodeIdsSet,
        Release, Released, Renew, Renewed, Request, SetNodeIds, Shortened, Swap, Swapped,
    },
    rules::{self, Lowering},
};
use randflake::Result;

/// A request that this module can send to every kind of server: any of the ten.
pub trait RemoteRequest: Request {
    #[doc(hidden)]
    fn run(&self, context: &Context) -> impl Future<Output = Result<Self::Outcome>> + Send;
}

/// How many node ids an acquire reads first for each one that it wants.
const FIRST_READS: usize = 8;

fn nodes(node_ids: &[u32]) -> Vec<Key> {
    node_ids.iter().copied().map(Key::Node).collect()
}

impl RemoteRequest for Acquire {
    async fn run(&self, context: &Context) -> Result<Acquired> {
        context.namespace().may_lease()?;
        let how = |known: &Known| {
            let node_ids = known.meta.metadata.limits.node_ids;
            // The known time of the server may be two seconds late: too much for a short lease.
            let is_hopeful = self.ttl >= 10;
            let first = FIRST_READS.max(2 * self.want as usize).min(rules::CANDIDATES);
            How {
                keys: candidates(self.token, &node_ids, first),
                more: [
                    candidates(self.token, &node_ids, rules::CANDIDATES),
                    context.own().asked_for(self.token).into_iter().map(Key::Node).collect(),
                ]
                .concat(),
                grants: Some("the lease"),
                is_timed: true,
                begins: if is_hopeful { Begins::Hopes } else { Begins::Reads },
                ..How::default()
            }
        };
        let mut outcome = perform(context, how, |rows| rules::acquire(rows, self)).await?;
        context.own().settle(self.token);
        if let (Acquired::Granted { now, .. }, Some(clock)) = (&mut outcome, context.clock()) {
            *now = clock;
        }
        Ok(outcome)
    }
}

impl RemoteRequest for Renew {
    async fn run(&self, context: &Context) -> Result<Renewed> {
        let how = || How {
            keys: nodes(&self.node_ids),
            grants: Some("the lease"),
            is_timed: true,
            ..How::default()
        };
        let mut outcome = perform(context, |_| how(), |rows| rules::renew(rows, self)).await?;
        if let (Renewed::Extended { now, .. }, Some(clock)) = (&mut outcome, context.clock()) {
            *now = clock; // the decision used an earlier one
        }
        Ok(outcome)
    }
}

impl RemoteRequest for Release {
    async fn run(&self, context: &Context) -> Result<Released> {
        let how = || How { keys: nodes(&self.node_ids), ..How::default() };
        perform(context, |_| how(), |rows| rules::release(rows, self)).await
    }
}

impl RemoteRequest for Fence {
    async fn run(&self, context: &Context) -> Result<Fenced> {
        let how = || How { is_confirmed: true, ..How::default() };
        perform(context, |_| how(), |rows| rules::fence_namespace(rows)).await
    }
}

impl RemoteRequest for SetNodeIds {
    async fn run(&self, context: &Context) -> Result<NodeIdsSet> {
        let how = || How { grants: Some("the node ids"), ..How::default() };
        perform(context, |_| how(), |rows| rules::set_node_ids(rows, self)).await
    }
}

impl<R: Lowering> RemoteRequest for R {
    async fn run(&self, context: &Context) -> Result<Shortened> {
        let how = || How { is_confirmed: true, ..How::default() };
        perform(context, |_| how(), |rows| rules::lower(rows, self)).await
    }
}

impl RemoteRequest for Swap {
    async fn run(&self, context: &Context) -> Result<Swapped> {
        context.namespace().may_count()?;
        self.check()?;
        let keys = || vec![Key::Counter(self.counter.clone())];
        let how = || How { keys: keys(), grants: Some("the counter"), ..How::default() };
        perform(context, |_| how(), |rows| rules::swap(rows, self)).await
    }
}

impl RemoteRequest for List {
    /// Writes nothing, not even that the server has changed.
    async fn run(&self, context: &Context) -> Result<Listed> {
        let known = context.known();
        let (seen, texts) = match self.node_id {
            Some(node_id) => {
                let key = Key::Node(node_id);
                let step = Step { reads: vec![key.clone()], ..Step::default() };
                let seen = context.step(&step).await?;
                let text = seen.found.get(&key).cloned().flatten();
                let texts = text.map(|text| (key.to_string(), text)).into_iter().collect();
                (seen, texts)
            }
            None => all(context, NODES).await?,
        };
        let text = seen.meta.as_ref().ok_or_else(|| context.not_initialized())?;
        let meta = Meta::parse(text).ok_or_else(|| context.malformed("meta"))?;
        context.namespace().check(&meta.metadata)?;
        let node =
            |(name, text): (&String, &String)| Some(parse_node(text)?.node(Key::node(name)?));
        let nodes: Option<_> = texts.iter().map(node).collect();
        let nodes = nodes.ok_or_else(|| context.malformed("a node id"))?;
        let now = seen.clock.unwrap_or(context.now);
        Ok(Listed {
            has_clock: seen.clock.is_some(),
            incarnation_changed: meta.incarnation != seen.incarnation()
                || went_back(context, known.as_ref(), &seen, &meta) == WentBack::Unfenced,
            last_grant: context.last_grant(),
            ..rules::listed(&meta.metadata, meta.quarantine, now, nodes)
        })
    }
}

impl RemoteRequest for ListCounters {
    async fn run(&self, context: &Context) -> Result<ListedCounters> {
        context.namespace().may_count()?;
        for _ in 0..TRIES {
            let known = context.known_or(check(context, None)).await?;
            let (seen, texts) = all(context, COUNTERS).await?;
            let is_known = seen.server == known.server
                && seen.meta.as_ref() == Some(&known.text)
                && seen.revision >= known.revision;
            if !is_known {
                check(context, None).await?;
                continue;
            }
            let counter = |(name, text): (&String, &String)| {
                let name = name.strip_prefix(COUNTERS)?.to_owned();
                Some((name, parse_counter(text)?.to_owned()))
            };
            let counters: Option<_> = texts.iter().map(counter).collect();
            return Ok(ListedCounters {
                now: seen.clock.unwrap_or(context.now),
                floor: known.meta.quarantine.floor,
                counters: counters.ok_or_else(|| context.malformed("a counter"))?,
            });
        }
        Err(context.contended())
    }
}

/// Reads all texts whose names begin with `prefix`, page by page, all from one server and under one
/// meta.
async fn all(context: &Context, prefix: &str) -> Result<(Seen, BTreeMap<String, String>)> {
    for _ in 0..TRIES {
        let first = context.page(prefix, "").await?;
        let (seen, mut next) = (first.seen, first.next);
        let mut texts: BTreeMap<String, String> = first.entries.into_iter().collect();
        loop {
            let Some(from) = next else { return Ok((seen, texts)) };
            let page = context.page(prefix, &from).await?;
            if (&page.seen.server, &page.seen.meta) != (&seen.server, &seen.meta) {
                break; // pages of two servers do not continue each other
            }
            texts.extend(page.entries);
            next = page.next;
        }
    }
    Err(context.contended())
}
