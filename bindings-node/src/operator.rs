//! What an operator asks of a store. Each function promises its outcome, and needs no secret.

use std::sync::Arc;

use randflake::Result;
use randflake_leases::{
    LeaseStore, Namespace,
    operator::{self, Listed, Node, Shortened, Target},
};

use crate::{
    arguments,
    leased::{Leases, location_of},
    raw::{Js, Value},
};

/// Promises what a store knows of every node id.
pub(crate) fn list<'call>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    [store, options]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    let namespace = arguments::operator_options(options)?;
    ask(leases, js, store, namespace, operator::list, |js, listed| store_status(js, &listed))
}

/// Promises what a store knows of one node id; null if it was never leased.
pub(crate) fn inspect<'call>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    [store, node_id, options]: [Value<'call>; 3],
) -> Result<Value<'call>> {
    let node_id = arguments::stored_node(node_id)?;
    let namespace = arguments::operator_options(options)?;
    let inspect = move |store: &mut dyn LeaseStore| operator::inspect(store, node_id);
    ask(leases, js, store, namespace, inspect, |js, listed| match listed.nodes.first() {
        Some(node) => node_status(js, &listed, node),
        None => js.null(),
    })
}

/// Promises the floor of a fence.
pub(crate) fn fence<'call>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    [store, options]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    let namespace = arguments::operator_options(options)?;
    let fence = |store: &mut dyn LeaseStore| operator::fence(store);
    ask(leases, js, store, namespace, fence, |js, fenced| js.unix_second(fenced.floor))
}

/// Promises the end that a node id has after a repair.
pub(crate) fn repair_lease<'call>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    [store, node_id, options]: [Value<'call>; 3],
) -> Result<Value<'call>> {
    let target = Target::Node(arguments::stored_node(node_id)?);
    let (namespace, bound) = arguments::repair_options(options)?;
    let repair = move |store: &mut dyn LeaseStore| operator::repair(store, target, bound);
    ask(leases, js, store, namespace, repair, end_of)
}

/// Promises the floor that a namespace has after a repair.
pub(crate) fn repair_store<'call>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    [store, options]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    let (namespace, bound) = arguments::repair_store_options(options)?;
    let repair = move |store: &mut dyn LeaseStore| operator::repair(store, Target::Floor, bound);
    ask(leases, js, store, namespace, repair, end_of)
}

/// Promises the end that the node id of a dead holder has after its release.
pub(crate) fn release<'call>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    [store, lease, options]: [Value<'call>; 3],
) -> Result<Value<'call>> {
    let lease = arguments::stored_lease(lease)?;
    let namespace = arguments::operator_options(options)?;
    let release = move |store: &mut dyn LeaseStore| operator::release_dead(store, lease);
    ask(leases, js, store, namespace, release, end_of)
}

fn ask<'call, T: Send + 'static>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    store: Value<'call>,
    namespace: Namespace,
    ask: impl FnOnce(&mut dyn LeaseStore) -> Result<T> + Send + 'static,
    show: fn(Js<'_>, T) -> Result<Value<'_>>,
) -> Result<Value<'call>> {
    let store = arguments::store(store, None, None)?;
    let location = location_of(store, leases);
    js.promise(move || ask(&mut *location.open(&namespace)?), show)
}

fn end_of(js: Js<'_>, cut: Shortened) -> Result<Value<'_>> {
    js.unix_second(cut.to)
}

fn store_status<'call>(js: Js<'call>, listed: &Listed) -> Result<Value<'call>> {
    let counts = listed.counts();
    let leases: Vec<_> =
        listed.nodes.iter().map(|node| node_status(js, listed, node)).collect::<Result<_>>()?;
    let limits = js.object(&[
        (c"maxTtlSeconds", js.number(listed.limits.max_ttl.into())?),
        (c"maxSkewSeconds", js.number(listed.limits.max_skew.into())?),
        (c"maxNodeId", js.number(listed.limits.max_node_id.into())?),
        (c"layout", js.text(&listed.layout)?),
        (c"format", js.number(listed.format.into())?),
    ])?;
    js.object(&[
        (c"now", js.unix_second(listed.now)?),
        (c"leases", js.array(&leases)?.freeze()?),
        (c"held", js.number(counts.held.into())?),
        (c"waiting", js.number(counts.waiting.into())?),
        (c"free", js.number(counts.free.into())?),
        (c"far", js.number(counts.far.into())?),
        (c"floor", js.unix_second(listed.floor)?),
        (c"floorIsFar", js.convert(listed.is_floor_far())?),
        (c"incarnationChanged", js.convert(listed.incarnation_changed)?),
        (c"limits", limits.freeze()?),
    ])?
    .freeze()
}

fn node_status<'call>(js: Js<'call>, listed: &Listed, node: &Node) -> Result<Value<'call>> {
    js.object(&[
        (c"nodeId", js.number(node.lease.node_id.into())?),
        (c"state", js.text(listed.state(node).name())?),
        (c"start", js.unix_second(node.lease.start)?),
        (c"endExclusive", js.unix_second(node.lease.end_exclusive)?),
        (c"secondsLeft", js.unix_second(listed.seconds_left(node))?),
        (c"isFar", js.convert(listed.is_far(node.lease.end_exclusive))?),
        (c"note", js.text(node.note.as_str())?),
    ])?
    .freeze()
}
