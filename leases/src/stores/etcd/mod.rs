//! etcd, through its JSON gateway: a key for each text, and a transaction for each kind of step.
//!
//! etcd reports no time: the `Date` header of the gateway's answers serves as its clock. Operations
//! that ids depend on (a fence, a repair, the release of a dead holder) are done only if that clock
//! and this machine's agree. Without the header there is only one clock, and those operations are
//! refused. Leases then use this machine's clock, which affects only when they can be used.
//!
//! A restored etcd reveals this only in the header of its answer, after the write. So what was
//! written on it does not count.
//!
//! Leases are granted and renewed by what was read just before. etcd cannot compare its clock and
//! its line before it writes, so both are compared in the answer, and what fails there does not
//! count. But it is there: by a clock of this machine that was set in between, a renewal would raise
//! an end beyond what a fence assumes.

#[cfg(feature = "etcd")]
mod client;
mod examine;
mod transaction;

use serde_json::{Value, json};

#[cfg(feature = "etcd")]
pub use self::client::EtcdClient;
pub(crate) use self::examine::examine;
#[cfg(test)]
pub(crate) use self::transaction::unix_second_of;
use self::transaction::{TxnResponse, get, get_range, is, put, transact};
use crate::remote::{
    context::Context,
    step::{FreeRange, Page, Seen, Step, Write},
    text::{Key, NODES},
};
use randflake::Result;

/// Keys that one transaction writes or reads: etcd allows 128 operations by default, including
/// nested ones.
pub(crate) const WRITES: usize = 40;
pub(crate) const READS: usize = 100;
/// Keys per page of a list: less than a megabyte with the longest names and notes, and also with
/// counters, whose longest values are 25 KB.
const PAGE_OF_NODES: usize = 500;
const PAGE_OF_COUNTERS: usize = 100;

/// What all keys of the namespace begin with.
fn directory(context: &Context) -> String {
    // A name may contain a slash, but no two names may share a key.
    let name = context.namespace().name().replace('%', "%25").replace('/', "%2f");
    format!("randflake/{name}/")
}

/// Returns what an answer says of the server.
fn seen(answer: &TxnResponse, directory: &str) -> Seen {
    Seen {
        has_table: true,
        clock: answer.date,
        server: answer.cluster_id.clone(),
        revision: answer.revision,
        meta: answer.found.get(&format!("{directory}meta")).cloned(),
        ..Seen::default()
    }
}

pub(crate) async fn step(context: &Context, step: &Step) -> Result<Seen> {
    let directory = directory(context);
    let name = |key: &Key| format!("{directory}{key}");
    let meta = get(&name(&Key::Meta));
    let reads: Vec<Value> = step.reads.iter().map(|key| get(&name(key))).collect();
    let write = |Write { key, before, after }: &Write| {
        let key = name(key);
        (is(&key, before.as_deref()), vec![put(&key, after), get(&key)], get(&key))
    };
    let mut compares: Vec<Value> =
        step.meta.iter().map(|meta| is(&name(&Key::Meta), Some(meta))).collect();
    // A write of meta compares it anyway. If it succeeds, it reads meta back.
    let (success, failure) = match &step.writes[..] {
        [] => ([reads, vec![meta]].concat(), vec![]),
        [one] => {
            let (compare, puts, get) = write(one);
            compares.push(compare);
            ([puts, reads.clone()].concat(), [vec![get, meta], reads].concat())
        }
        all => {
            let inner = |one: &Write| {
                let (compare, puts, get) = write(one);
                json!({"request_txn": {"compare": [compare], "success": puts, "failure": [get]}})
            };
            let gets = all.iter().map(|one| get(&name(&one.key)));
            let success = [all.iter().map(inner).collect(), reads.clone()].concat();
            (success, [gets.collect(), vec![meta], reads].concat())
        }
    };
    let answer = transact(context, compares, success, failure).await?;
    let mut seen = seen(&answer, &directory);
    if seen.meta.is_none() && answer.succeeded && !step.writes.is_empty() {
        seen.meta.clone_from(&step.meta); // it was compared
    }
    let is_one = step.writes.len() == 1;
    for (index, Write { key, after, .. }) in step.writes.iter().enumerate() {
        let inner = is_one || answer.inner.get(index).is_some_and(|succeeded| *succeeded);
        if answer.succeeded && inner {
            // Only the answer to this transaction has what only this transaction has written.
            if answer.found.get(&name(key)) != Some(after) {
                return Err(context.foreign());
            }
            seen.written.insert(key.clone());
        }
    }
    for key in step.keys() {
        seen.found.insert(key.clone(), answer.found.get(&name(key)).cloned());
    }
    let is_asked = |found: &String| {
        found
            .strip_prefix(&directory)
            .is_some_and(|found| found == "meta" || step.keys().any(|key| key.to_string() == found))
    };
    if answer.found.keys().all(is_asked) { Ok(seen) } else { Err(context.foreign()) }
}

/// Reads meta, and the keys in a range, at most `limit` of them.
async fn range(
    context: &Context,
    from: &str,
    end: &str,
    limit: usize,
) -> Result<(Seen, Vec<(String, String)>)> {
    let directory = directory(context);
    let meta = format!("{directory}meta");
    let (from, end) = (format!("{directory}{from}"), format!("{directory}{end}"));
    let reads = vec![get(&meta), get_range(&from, &end, limit)];
    let answer = transact(context, vec![], reads, vec![]).await?;
    let seen = seen(&answer, &directory);
    let mut entries = Vec::new();
    for (found, text) in answer.found {
        if found != meta {
            let name = found.strip_prefix(&directory).filter(|_| found >= from && found < end);
            entries.push((name.ok_or_else(|| context.foreign())?.to_owned(), text));
        }
    }
    Ok((seen, entries))
}

pub(crate) async fn page(context: &Context, prefix: &str, from: &str) -> Result<Page> {
    let limit = if prefix == NODES { PAGE_OF_NODES } else { PAGE_OF_COUNTERS };
    let end = format!("{}0", prefix.trim_end_matches('/')); // 0 follows the slash
    let from = if from.is_empty() { prefix } else { from };
    let (seen, entries) = range(context, from, &end, limit).await?;
    let last = entries.last().filter(|_| entries.len() == limit);
    let next = last.map(|(name, _)| format!("{name}\0"));
    Ok(Page { seen, entries, next })
}

/// Reads all of them: etcd cannot filter by value.
pub(crate) async fn free(
    context: &Context,
    (first, last): (u32, u32),
    below: &str,
) -> Result<FreeRange> {
    let [from, end] = [first, last + 1].map(|node_id| Key::Node(node_id).to_string());
    let (seen, entries) = range(context, &from, &end, 0).await?;
    let (mut free, mut next) = (Vec::new(), None::<String>);
    let mut entries = entries.into_iter().peekable();
    for node_id in first..=last {
        let name = Key::Node(node_id).to_string();
        let text = entries.next_if(|(found, _)| *found == name).map(|(_, text)| text);
        match text {
            Some(text) if text.as_str() >= below => {
                next = Some(next.map_or_else(|| text.clone(), |least| least.min(text.clone())));
            }
            text => free.push((node_id, text)),
        }
    }
    Ok(FreeRange { seen, free, next })
}
