//! Operations on a store for operators. Each function returns a promise, and needs no secret.

use std::ffi::CStr;

use napi::bindgen_prelude::Null;
use napi_derive::napi;
use randflake::Result;
use randflake_leases::{
    LeaseStore, Namespace, NodeLease,
    operator::{self, Listed, Node, Target},
};

use crate::{
    arguments::{self, default_namespace, invalid},
    ffi::{Js, Outcome, Value, outcome},
    stores::Store,
    threads,
};

/// Promises the status of every node id that was ever leased.
#[napi]
pub fn list_leases<'call>(store: Value<'call>, options: Value<'call>) -> Outcome<Value<'call>> {
    outcome(|| ask(store, namespace(options)?, operator::list, store_status))
}

/// Promises the status of one node id; null if it was never leased.
#[napi]
pub fn inspect_lease<'call>(
    store: Value<'call>,
    node_id: Value<'call>,
    options: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        let node_id = stored_node(node_id)?;
        let inspect = move |store: &mut dyn LeaseStore| operator::inspect(store, node_id);
        ask(store, namespace(options)?, inspect, |js, listed| match listed.nodes.first() {
            Some(node) => node_status(js, &listed, node),
            None => js.convert(Null),
        })
    })
}

/// Promises the floor of a fence.
#[napi]
pub fn fence_store<'call>(store: Value<'call>, options: Value<'call>) -> Outcome<Value<'call>> {
    outcome(|| {
        let fence = |store: &mut dyn LeaseStore| Ok(operator::fence(store)?.floor);
        ask(store, namespace(options)?, fence, |js, done| js.convert(done))
    })
}

/// Promises the second from which the node ids that are left out have no lease.
#[napi]
pub fn set_node_ids<'call>(
    store: Value<'call>,
    node_ids: Value<'call>,
    options: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        let node_ids = arguments::leased_nodes(node_ids)?;
        let set = move |store: &mut dyn LeaseStore| {
            Ok(operator::set_node_ids(store, node_ids)?.unleased_from())
        };
        ask(store, namespace(options)?, set, |js, done| js.convert(done))
    })
}

/// Promises the end that a node id has after a repair.
#[napi]
pub fn repair_lease<'call>(
    store: Value<'call>,
    node_id: Value<'call>,
    options: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| repair(store, Target::Node(stored_node(node_id)?), options, c"endExclusive"))
}

/// Promises the floor that a namespace has after a repair.
#[napi]
pub fn repair_store<'call>(store: Value<'call>, options: Value<'call>) -> Outcome<Value<'call>> {
    outcome(|| repair(store, Target::Floor, options, c"floor"))
}

fn repair<'call>(
    store: Value<'call>,
    target: Target,
    options: Value<'call>,
    bound: &CStr,
) -> Result<Value<'call>> {
    let namespace = namespace(options)?;
    let bound = options.option(bound, "a whole unix second", arguments::integer)?;
    let repair = move |store: &mut dyn LeaseStore| Ok(operator::repair(store, target, bound)?.to);
    ask(store, namespace, repair, |js, done| js.convert(done))
}

/// Promises the end that the node id of a dead holder has after its release.
#[napi]
pub fn release_lease<'call>(
    store: Value<'call>,
    lease: Value<'call>,
    options: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        let lease = stored_lease(lease)?;
        let release =
            move |store: &mut dyn LeaseStore| Ok(operator::release_dead(store, lease)?.to);
        ask(store, namespace(options)?, release, |js, done| js.convert(done))
    })
}

fn ask<'call, T: Send + 'static>(
    store: Value<'call>,
    namespace: Namespace,
    ask: impl FnOnce(&mut dyn LeaseStore) -> Result<T> + Send + 'static,
    show: impl for<'a> FnOnce(Js<'a>, T) -> Result<Value<'a>> + Send + 'static,
) -> Result<Value<'call>> {
    let location = Store::new(store, None)?.location();
    store.js().promise(threads::start, move || ask(&mut *location.open(&namespace)?), show)
}

fn namespace(options: Value<'_>) -> Result<Namespace> {
    Namespace::for_operator(options.namespace()?.unwrap_or_else(default_namespace))
}

fn stored_node(value: Value<'_>) -> Result<u32> {
    let form = "a whole number, at least 0";
    arguments::as_u32(value).ok_or_else(|| invalid("the node id", form, value))
}

/// Takes the status of a node id.
fn stored_lease(value: Value<'_>) -> Result<NodeLease> {
    let field = |name| {
        let missing = || invalid("the lease", "what listLeases or inspectLease returned", value);
        value.get(name)?.ok_or_else(missing)
    };
    Ok(NodeLease {
        node_id: stored_node(field(c"nodeId")?)?,
        start: arguments::lease_second(field(c"start")?)?,
        end_exclusive: arguments::lease_second(field(c"endExclusive")?)?,
    })
}

#[allow(clippy::needless_pass_by_value, reason = "for a promise")]
fn store_status(js: Js<'_>, listed: Listed) -> Result<Value<'_>> {
    let counts = listed.counts();
    let leases: Vec<_> =
        listed.nodes.iter().map(|node| node_status(js, &listed, node)).collect::<Result<_>>()?;
    let limits = js.object(&[
        (c"maxTtlSeconds", js.convert(listed.limits.max_ttl)?),
        (c"maxSkewSeconds", js.convert(listed.limits.max_skew)?),
        (c"nodeIds", js.convert(listed.limits.node_ids.to_string())?),
        (c"layout", js.convert(listed.layout.as_str())?),
        (c"format", js.convert(listed.format)?),
    ])?;
    js.object(&[
        (c"now", js.convert(listed.now)?),
        (c"leases", js.convert(leases)?.freeze()?),
        (c"held", js.convert(counts.held)?),
        (c"waiting", js.convert(counts.waiting)?),
        (c"free", js.convert(counts.free)?),
        (c"implausible", js.convert(counts.implausible)?),
        (c"floor", js.convert(listed.floor)?),
        (c"floorIsImplausible", js.convert(listed.is_floor_implausible())?),
        (c"incarnationChanged", js.convert(listed.incarnation_changed)?),
        (c"limits", limits.freeze()?),
    ])?
    .freeze()
}

fn node_status<'call>(js: Js<'call>, listed: &Listed, node: &Node) -> Result<Value<'call>> {
    js.object(&[
        (c"nodeId", js.convert(node.lease.node_id)?),
        (c"state", js.convert(listed.state(node).name())?),
        (c"start", js.convert(node.lease.start)?),
        (c"endExclusive", js.convert(node.lease.end_exclusive)?),
        (c"secondsLeft", js.convert(listed.seconds_left(node))?),
        (c"isImplausible", js.convert(listed.is_implausible(node.lease.end_exclusive))?),
        (c"note", js.convert(node.note.as_str())?),
    ])?
    .freeze()
}
