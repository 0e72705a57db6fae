//! The rules of the protocol: what a store answers, and what it writes. They depend on no store. A
//! store in memory or in a file provides rows, a clock and a transaction; [`remote`](crate::remote)
//! provides what it has read from a table on a server, and writes only if none of that has changed.
//!
//! The conformance tests, `tests/conformance`, run on every store.
//!
//! **Replies.** A reply counts for a Term only if it echoes the token and the operation of the
//! request, *and* its row has the start that the Term was granted for that node id. Without the
//! second half, a late, repeated acquire grants the same token a second lease, whose end the first
//! Term would take for its own.
//!
//! **Operators** need no secret: their namespace takes whatever has its name. A list shows no
//! token, so no reader of it can renew or release. Where an operator lowers an end, uniqueness
//! rests on what the operator states and on clocks, as it does for a fence, and nowhere else. So a
//! decision that uses a clock compares two, the store's and that of the machine that asks, which
//! may differ by the skew at most. A file has the clock of its one machine.
//!
//! - The end of a dead holder falls to `now + skew + drift + 1` at the lowest. It is never raised,
//!   and its token is cleared, so a late message of the dead holder does nothing. The request names
//!   the lease that was looked at: a holder that was granted the node id since keeps it.
//! - A repair touches only an end beyond `now + longest lease + skew`, and sets none below that: it
//!   shortens no lease of a right clock. The operator states that the holder is dead, and that no
//!   id carries the new end or a later second. Where most held ends are implausible, a repair does
//!   not trust the clock, because live leases look the same to one that is behind: the operator
//!   names the end.
//! - Which node ids are leased is in what every grant and renewal is decided by. A statement that
//!   was begun before a change may still write after it, but no more than `longest lease + skew`
//!   from the change on; that, or the end of a quarantine, is what the operator is told. A node id
//!   that is put in begins at `now - skew`, as every first lease: nobody may have stamped a second
//!   from there on, which holds once its former holder has been still for twice the skew and a
//!   second.
//! - The decision is written only if the row, or the floor, is still what it was. If a repeated
//!   write is refused, but the text of this very write is there, the change was made.

use std::collections::BTreeSet;

use randflake::{Error, ErrorKind, Result, bindings::utc_second, layout};

use crate::{
    namespace::{Limits, NamespaceMetadata, TICKETS},
    node_ranges::NodeRanges,
    protocol::{
        Acquire, Acquired, Fenced, List, Listed, ListedCounters, Node, NodeIdsSet, NodeLease,
        Release, ReleaseDead, Released, Renew, Renewed, Repair, Request, SetNodeIds, Shortened,
        Swap, Swapped, Target,
    },
    row::Row,
    token::Token,
    written_rows::WrittenRows,
};

/// How many candidates are tried one by one before all rows are read. If nine in ten of 131 072
/// node ids are taken, one request in thirty gets that far.
pub(crate) const CANDIDATES: usize = 32;

/// The bounds that a fence sets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Quarantine {
    /// No lease starts before this second.
    pub(crate) floor: i64,
    /// Leases that end at this second or before are not renewed.
    pub(crate) renew_above: i64,
}

/// Node ids that are free.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Free {
    /// The requested number, or all if there are fewer.
    pub(crate) node_ids: Vec<u32>,
    /// When the next one becomes free, if all node ids were looked at.
    pub(crate) next: Option<i64>,
}

/// What an operation reads and writes in a namespace, atomically.
pub(crate) trait Transaction {
    type Error: From<Error>;

    /// Returns the unix second on the store's clock.
    fn now(&self) -> i64;
    /// Returns the same for a fence, which a wrong clock could end too soon.
    fn confirmed_now(&self) -> Result<i64, Self::Error> {
        Ok(self.now())
    }
    /// Returns how many seconds the operation has waited since it began.
    fn waited(&self) -> i64;
    fn metadata(&self) -> &NamespaceMetadata;
    fn quarantine(&self) -> Quarantine;
    fn put_quarantine(&mut self, quarantine: Quarantine) -> Result<(), Self::Error>;
    /// Sets which node ids are leased.
    fn put_node_ids(&mut self, node_ids: NodeRanges) -> Result<(), Self::Error>;
    fn row(&mut self, node_id: u32) -> Result<Option<Row>, Self::Error>;
    /// Puts a row, with a new version in place of its current one.
    fn put(&mut self, node_id: u32, row: Row) -> Result<(), Self::Error>;
    /// Returns what earlier requests of a token may have got, sorted by node id.
    fn held_by(&mut self, token: Token) -> Result<Vec<(u32, Row)>, Self::Error>;
    /// Returns up to `most` node ids whose end has passed, in order, starting at `first`.
    fn free(&mut self, first: u32, most: usize) -> Result<Free, Self::Error>;
    /// Returns the value of a counter.
    fn counter(&mut self, name: &str) -> Result<Option<String>, Self::Error>;
    fn put_counter(&mut self, name: &str, value: &str) -> Result<(), Self::Error>;

    /// Returns what this operation has been granted so far, if it has several steps.
    fn granted(&self) -> Vec<(u32, Row)> {
        vec![]
    }

    /// Returns what this client has written.
    fn own(&self) -> &WrittenRows;

    /// Returns the end of a row as far as it is known to be valid: a write without an answer may
    /// have overwritten a fence.
    fn known_end(&self, node_id: u32, row: &Row) -> i64 {
        self.own().end_of(node_id, row).map_or(row.end_exclusive, |end| end.min(row.end_exclusive))
    }

    /// Returns for how many seconds after a failover the previous server may still grant.
    fn last_grant(&self) -> u32 {
        0
    }
}

/// A transaction that has the whole namespace available.
pub(crate) trait LocalTransaction: Transaction {
    /// Returns all rows, sorted by node id.
    fn rows(&mut self) -> Result<Vec<(u32, Row)>, Self::Error>;
    /// Returns the names and values of all counters, sorted by the bytes of the name.
    fn counters(&mut self) -> Result<Vec<(String, String)>, Self::Error>;
}

/// Finds the free node ids, given the taken ones with their ends.
pub(crate) fn free_beside(
    taken: &[(u32, i64)],
    node_ids: NodeRanges,
    first: u32,
    most: usize,
) -> Free {
    let leased = taken.iter().filter(|(node_id, _)| node_ids.contains(*node_id));
    let next = leased.map(|(_, end)| *end).min();
    let taken: BTreeSet<u32> = taken.iter().map(|(node_id, _)| *node_id).collect();
    Free {
        node_ids: node_ids
            .from(first)
            .filter(|node_id| !taken.contains(node_id))
            .take(most)
            .collect(),
        next,
    }
}

pub(crate) fn acquire<R: Transaction + ?Sized>(
    rows: &mut R,
    request: &Acquire,
) -> Result<Acquired, R::Error> {
    let (limits, quarantine, now) = (rows.metadata().limits, rows.quarantine(), rows.now());
    let end_exclusive = end_of(limits, now, request.ttl)?;
    check_want(request.want)?;
    let Limits { max_ttl, max_skew, node_ids } = limits;
    let granted = |mut leases: Vec<NodeLease>| {
        leases.sort_unstable();
        Ok(Acquired::Granted { now, max_ttl, max_skew, leases })
    };
    let mut leases: Vec<NodeLease> = rows.granted().into_iter().map(lease).collect();
    if leases.is_empty() {
        let mut mine = rows.held_by(request.token)?;
        mine.retain(|(node_id, row)| rows.own().has_asked_for(*node_id, row));
        if !mine.is_empty() {
            // Written again: only what this very request has written counts.
            for &(node_id, row) in &mine {
                rows.put(node_id, row)?;
            }
            return granted(mine.into_iter().map(lease).collect());
        }
    }
    let refusal = if now.abs_diff(client_clock(rows, request.client_now)) > max_skew.into() {
        Some(Acquired::ClockSkew { store_now: now, max_skew })
    } else if quarantine.floor > now {
        Some(Acquired::Quarantined { now, until: quarantine.floor })
    } else {
        None
    };
    if let Some(refusal) = refusal {
        return if leases.is_empty() { Ok(refusal) } else { granted(leases) };
    }

    let want = request.want as usize;
    let earliest = quarantine.floor.max(earliest(limits, now));
    let grant = |rows: &mut R, leases: &mut Vec<NodeLease>, node_id, last_end: i64| {
        let start = last_end.max(earliest);
        let token = Some(request.token);
        let row = Row { start, end_exclusive, token, note: request.note, version: 0 };
        leases.push(lease((node_id, row)));
        rows.put(node_id, row)
    };
    let mut tried: BTreeSet<u32> = leases.iter().map(|lease| lease.node_id).collect();
    for node_id in request.token.candidates(&node_ids).take(CANDIDATES) {
        if leases.len() < want && tried.insert(node_id) {
            let last_end = rows.row(node_id)?.map_or(0, |row| row.end_exclusive);
            if last_end <= now {
                grant(rows, &mut leases, node_id, last_end)?;
            }
        }
    }
    let mut free_at = None;
    if leases.len() < want {
        // All others, starting at a random one, so that concurrent requests rarely collide.
        let first = request.token.candidates(&node_ids).next().unwrap_or(0);
        let free = rows.free(first, want + tried.len())?;
        free_at = free.next;
        for node_id in free.node_ids {
            if leases.len() < want && tried.insert(node_id) {
                let last_end = rows.row(node_id)?.map_or(0, |row| row.end_exclusive);
                // It was free by the clock of that moment, which may have gone back since.
                if last_end <= now {
                    grant(rows, &mut leases, node_id, last_end)?;
                }
            }
        }
    }
    if leases.is_empty() {
        return Ok(Acquired::Busy { now, free_at });
    }
    granted(leases)
}

pub(crate) fn renew<R: Transaction + ?Sized>(
    rows: &mut R,
    request: &Renew,
) -> Result<Renewed, R::Error> {
    let (limits, quarantine, now) = (rows.metadata().limits, rows.quarantine(), rows.now());
    let end_exclusive = end_of(limits, now, request.ttl)?;
    let Limits { max_ttl, max_skew, .. } = limits;
    if now.abs_diff(client_clock(rows, request.client_now)) > max_skew.into() {
        return Ok(Renewed::ClockSkew { store_now: now, max_skew });
    }
    if was_set_back(rows, request)? {
        fence_namespace(rows)?;
        return Ok(Renewed::Lost { now });
    }
    let mut leases = Vec::new();
    // A renewal that is repeated finds the next token.
    let tokens = [request.token, request.next.unwrap_or(request.token)];
    for (node_id, row) in rows_of(rows, &tokens, &request.node_ids)? {
        let is_leased = limits.node_ids.contains(node_id);
        if is_leased && rows.known_end(node_id, &row) > quarantine.renew_above {
            // What was already done under the next token is written again unchanged: a copy of the
            // client that learns of it later may not continue for longer than was requested before.
            let is_repeated = request.next.is_some() && row.token != Some(request.token);
            let new_end = if is_repeated { row.end_exclusive } else { end_exclusive };
            let end_exclusive = row.end_exclusive.max(new_end);
            let renewed = Row { end_exclusive, token: Some(tokens[1]), ..row };
            rows.put(node_id, renewed)?;
            leases.push(lease((node_id, renewed)));
        }
    }
    Ok(if leases.is_empty() {
        Renewed::Lost { now }
    } else {
        Renewed::Extended { now, max_ttl, max_skew, leases }
    })
}

/// Returns whether the store lacks what it is known to have granted to this client, and has not
/// been fenced since: it was set back, for example to a backup, and others may have lost their
/// leases, too. Rows are never removed, and a row's end never falls while the same token holds it.
fn was_set_back<R: Transaction + ?Sized>(rows: &mut R, request: &Renew) -> Result<bool, R::Error> {
    let limits = rows.metadata().limits;
    for &node_id in &request.node_ids {
        let Some(end) = rows.own().granted_end(node_id, request.token) else { continue };
        let is_behind = rows
            .row(node_id)?
            .is_none_or(|row| row.token == Some(request.token) && row.end_exclusive < end);
        // A fence after that grant came after the loss: what was lost with the grant is later than
        // the backup.
        let granted_at = end - i64::from(request.ttl.min(limits.max_ttl));
        if is_behind && !is_fenced_since(limits, rows.last_grant(), rows.quarantine(), granted_at) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the given node ids that one of these tokens holds and that this client may have written,
/// sorted, each once.
fn rows_of<R: Transaction + ?Sized>(
    rows: &mut R,
    tokens: &[Token],
    node_ids: &[u32],
) -> Result<Vec<(u32, Row)>, R::Error> {
    let mut held = Vec::new();
    for node_id in node_ids.iter().copied().collect::<BTreeSet<u32>>() {
        let row = if node_id <= layout::MAX_NODE_ID { rows.row(node_id)? } else { None };
        let is_own = |row: &Row| {
            row.token.is_some_and(|token| tokens.contains(&token))
                && rows.own().may_have_written(node_id, row)
        };
        held.extend(row.filter(is_own).map(|row| (node_id, row)));
    }
    Ok(held)
}

/// Returns what the client's clock shows by now, after the wait for the transaction.
fn client_clock<R: Transaction + ?Sized>(rows: &R, client_now: i64) -> i64 {
    client_now.saturating_add(rows.waited())
}

pub(crate) fn release<R: Transaction + ?Sized>(
    rows: &mut R,
    request: &Release,
) -> Result<Released, R::Error> {
    let held = rows_of(rows, &[request.token], &request.node_ids)?;
    for &(node_id, row) in &held {
        let end_exclusive = end_within(row.lease(node_id), request.used_until);
        rows.put(node_id, Row { end_exclusive, token: None, ..row })?;
    }
    Ok(Released { count: u32::try_from(held.len()).unwrap_or(u32::MAX) })
}

/// Fences the namespace of a transaction.
pub(crate) fn fence_namespace<R: Transaction + ?Sized>(rows: &mut R) -> Result<Fenced, R::Error> {
    let (limits, last_grant) = (rows.metadata().limits, rows.last_grant());
    let (quarantine, fenced) = fence(limits, last_grant, rows.quarantine(), rows.confirmed_now()?)?;
    rows.put_quarantine(quarantine)?;
    Ok(fenced)
}

/// Sets which node ids are leased. Written again even if they are already set: the first write may
/// not have been confirmed.
pub(crate) fn set_node_ids<R: Transaction + ?Sized>(
    rows: &mut R,
    request: &SetNodeIds,
) -> Result<NodeIdsSet, R::Error> {
    rows.metadata().check_node_ids(request.node_ids)?;
    let (now, before) = (rows.now(), rows.metadata().limits.node_ids);
    rows.put_node_ids(request.node_ids)?;
    Ok(NodeIdsSet { now, before })
}

/// Returns the quarantine from now on, for a store where a replaced server may still grant for
/// `last_grant` seconds.
pub(crate) fn fence(
    limits: Limits,
    last_grant: u32,
    quarantine: Quarantine,
    now: i64,
) -> Result<(Quarantine, Fenced)> {
    check_lifetime(now)?;
    let last = now + i64::from(limits.max_skew) + i64::from(last_grant);
    // Neither bound ever falls: the clock may have been set back since the last fence. And no two
    // fences leave the same floor, because counters recognise a fence by the floor.
    let floor = quarantine.floor.saturating_add(1).max(last + i64::from(limits.max_ttl));
    let renew_above = quarantine.renew_above.max(last);
    let fenced = Fenced { now, floor, renew_above };
    Ok((Quarantine { floor, renew_above }, fenced))
}

/// Returns whether a fence at an earlier `last` would change nothing: everything that any server
/// granted until then ends before anything else is granted.
pub(crate) fn is_fenced_since(
    limits: Limits,
    last_grant: u32,
    quarantine: Quarantine,
    last: i64,
) -> bool {
    let last = last.saturating_add(i64::from(limits.max_skew) + i64::from(last_grant));
    let floor = last.saturating_add(i64::from(limits.max_ttl));
    quarantine.floor >= floor && quarantine.renew_above >= last
}

/// Reads a counter, or replaces its value if neither that nor the floor has changed.
pub(crate) fn swap<R: Transaction + ?Sized>(
    rows: &mut R,
    request: &Swap,
) -> Result<Swapped, R::Error> {
    let (now, floor) = (rows.now(), rows.quarantine().floor);
    let value = rows.counter(&request.counter)?;
    match &request.change {
        Some(change) if (change.floor, &change.before) == (floor, &value) => {
            rows.put_counter(&request.counter, &change.after)?;
            Ok(Swapped { now, done: true, floor, value: Some(change.after.clone()) })
        }
        _ => Ok(Swapped { now, done: false, floor, value }),
    }
}

/// Lists the counters.
pub(crate) fn list_counters<R: LocalTransaction + ?Sized>(
    rows: &mut R,
) -> Result<ListedCounters, R::Error> {
    let counters = rows.counters()?;
    Ok(ListedCounters { now: rows.now(), floor: rows.quarantine().floor, counters })
}

/// Lists the namespace of a transaction.
pub(crate) fn list<R: LocalTransaction + ?Sized>(
    rows: &mut R,
    request: &List,
) -> Result<Listed, R::Error> {
    let found = match request.node_id {
        Some(node_id) => rows.row(node_id)?.map(|row| (node_id, row)).into_iter().collect(),
        None => rows.rows()?,
    };
    let nodes = found.into_iter().map(|(node_id, row)| row.node(node_id)).collect();
    Ok(listed(rows.metadata(), rows.quarantine(), rows.now(), nodes))
}

/// What an operator sees of a store that has a clock and is never replaced by another server.
pub(crate) fn listed(
    made: &NamespaceMetadata,
    quarantine: Quarantine,
    now: i64,
    nodes: Vec<Node>,
) -> Listed {
    Listed {
        now,
        has_clock: true,
        limits: made.limits,
        layout: made.layout.clone(),
        format: made.format,
        floor: quarantine.floor,
        renew_above: quarantine.renew_above,
        last_grant: 0,
        incarnation_changed: false,
        nodes,
    }
}

/// Refuses to lower the floor of a namespace of tickets: nothing waits for it, and a counter must
/// not see its own floor again.
pub(crate) fn check_target(layout: &str, target: Target) -> Result<()> {
    if layout == TICKETS && target == Target::Floor {
        return Err(Error::invalid_argument(
            "the floor of a namespace of tickets is never lowered: fence its counters; then \
             numbers can be drawn again",
        ));
    }
    Ok(())
}

/// An operator's request that lowers an end.
pub(crate) trait Lowering: Request<Outcome = Shortened> + Sync {
    fn target(&self) -> Target;

    /// Decides what to write in place of `before`, in a store where a replaced server may still
    /// grant for `last_grant` seconds.
    fn decide(
        &self,
        limits: Limits,
        now: i64,
        last_grant: u32,
        before: TargetState,
    ) -> Result<(TargetState, Shortened)>;
}

/// The state of a [`Target`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TargetState {
    Node(Node),
    Floor(Quarantine),
}

impl Lowering for Repair {
    fn target(&self) -> Target {
        self.target
    }

    /// Gives the node id a plausible end, or the quarantine an end as if the namespace were fenced
    /// now.
    fn decide(
        &self,
        limits: Limits,
        now: i64,
        last_grant: u32,
        before: TargetState,
    ) -> Result<(TargetState, Shortened)> {
        let furthest = limits.furthest(now);
        match before {
            TargetState::Node(node) => {
                let what = format!("the end of node id {}", node.lease.node_id);
                let end = lowered(limits, now, furthest, self, &what, node.lease.end_exclusive)?;
                Ok(shortened(now, node, end))
            }
            TargetState::Floor(Quarantine { floor: from, renew_above }) => {
                let furthest = furthest.saturating_add(last_grant.into());
                let floor = lowered(limits, now, furthest, self, "the floor", from)?;
                let renew_above = renew_above.min(floor - i64::from(limits.max_ttl));
                let after = TargetState::Floor(Quarantine { floor, renew_above });
                Ok((after, Shortened { now, from, to: floor }))
            }
        }
    }
}

/// Releases a node id, with an earlier end.
fn shortened(now: i64, node: Node, to: i64) -> (TargetState, Shortened) {
    let NodeLease { node_id, start, end_exclusive: from } = node.lease;
    let lease = NodeLease { node_id, start: start.min(to), end_exclusive: to };
    (TargetState::Node(Node { lease, held: false, ..node }), Shortened { now, from, to })
}

/// Lowers an end in a transaction.
pub(crate) fn lower<R: Transaction + ?Sized>(
    rows: &mut R,
    request: &impl Lowering,
) -> Result<Shortened, R::Error> {
    let (limits, now) = (rows.metadata().limits, rows.now());
    check_target(&rows.metadata().layout, request.target())?;
    let before = match request.target() {
        Target::Node(node_id) => {
            let row = rows.row(node_id)?.ok_or_else(|| never_leased(node_id))?;
            TargetState::Node(row.node(node_id))
        }
        Target::Floor => TargetState::Floor(rows.quarantine()),
    };
    let (after, shortened) = request.decide(limits, now, rows.last_grant(), before)?;
    match after {
        TargetState::Node(Node { lease, note, .. }) => {
            let NodeLease { node_id, start, end_exclusive } = lease;
            rows.put(node_id, Row { start, end_exclusive, token: None, note, version: 0 })?;
        }
        TargetState::Floor(quarantine) => rows.put_quarantine(quarantine)?,
    }
    Ok(shortened)
}

/// Returns the end that a repair sets, if it is within its bounds.
fn lowered(
    limits: Limits,
    now: i64,
    furthest: i64,
    request: &Repair,
    what: &str,
    from: i64,
) -> Result<i64> {
    check_clocks(limits, now, request.client_now)?;
    if from <= furthest {
        return Err(Error::invalid_argument(format!(
            "{what} is {from}, which is plausible: a correct clock sets it to at most {furthest}, \
             the store's clock plus the longest lease and the largest skew; it will pass, and \
             needs no repair"
        )));
    }
    let to = request.bound.unwrap_or(furthest);
    if !(furthest..from).contains(&to) {
        return Err(Error::invalid_argument(format!(
            "{what} can be lowered from {from} to no less than {furthest}, got {to}: below that, \
             leases granted by a correct clock may still be running"
        )));
    }
    Ok(to)
}

impl Lowering for ReleaseDead {
    fn target(&self) -> Target {
        Target::Node(self.lease.node_id)
    }

    /// Shortens the lease to the last second that its dead holder can have stamped.
    fn decide(
        &self,
        limits: Limits,
        now: i64,
        _last_grant: u32,
        before: TargetState,
    ) -> Result<(TargetState, Shortened)> {
        let TargetState::Node(node) = before else { unreachable!("its target is a node id") };
        check_clocks(limits, now, self.client_now)?;
        let NodeLease { node_id, start, end_exclusive } = node.lease;
        if !node.held {
            return Err(Error::invalid_argument(format!(
                "node id {node_id} has no holder: it was released"
            )));
        }
        if node.lease != self.lease {
            return Err(Error::invalid_argument(format!(
                "node id {node_id} now has another lease, from {start} to {end_exclusive}, and \
                 that holder may be alive; list it again"
            )));
        }
        if end_exclusive > limits.furthest(now) {
            return Err(Error::invalid_argument(format!(
                "the end of node id {node_id}, {end_exclusive}, is implausible: only a wrong clock \
                 can have set it, and its holder's stamps are unknown: repair it"
            )));
        }
        // The holder's clock may have been ahead by the skew, and its stamps ahead of its clock by
        // the drift.
        let unused = now + i64::from(limits.max_skew) + i64::from(max_drift(limits)) + 1;
        Ok(shortened(now, node, end_within(node.lease, unused)))
    }
}

/// Returns a new end of a lease: never raised, and never below the end of an earlier holder. The row
/// may be damaged and end before it starts, so this is no `clamp`, which would panic.
fn end_within(lease: NodeLease, end: i64) -> i64 {
    end.max(lease.start).min(lease.end_exclusive)
}

/// Largest `max_drift` of a holder, in seconds: a third of its window, which is as long as the
/// lease, and may begin earlier by the skew.
pub(crate) fn max_drift(limits: Limits) -> u32 {
    (limits.max_ttl + limits.max_skew) / 3
}

pub(crate) fn never_leased(node_id: u32) -> Error {
    Error::invalid_argument(format!("node id {node_id} of this namespace was never leased"))
}

/// Refuses an operation that relies on the store's clock if the two clocks disagree.
pub(crate) fn check_clocks(limits: Limits, now: i64, client_now: i64) -> Result<()> {
    check_lifetime(now)?;
    if now.abs_diff(client_now) > limits.max_skew.into() {
        return Err(skewed(client_now, now, limits.max_skew));
    }
    Ok(())
}

#[cold]
pub(crate) fn skewed(client_now: i64, store_now: i64, max_skew: u32) -> Error {
    Error::new(
        ErrorKind::ClockSkew,
        format!(
            "this machine's clock shows {} and the store's {}; they may differ by at most \
             {max_skew} seconds: correct the wrong one; if both are correct, the store answered \
             too late",
            utc_second(client_now),
            utc_second(store_now)
        ),
    )
}

/// Returns the earliest start of a lease: a client whose clock is behind can use it at once.
pub(crate) fn earliest(limits: Limits, now: i64) -> i64 {
    (now - i64::from(limits.max_skew)).max(layout::EPOCH)
}

pub(crate) fn end_of(limits: Limits, now: i64, ttl: u32) -> Result<i64> {
    check_lifetime(now)?;
    check_ttl(limits, ttl)?;
    Ok((now + i64::from(ttl.min(limits.max_ttl))).min(layout::LIFETIME_END))
}

pub(crate) fn check_want(want: u32) -> Result<()> {
    let most = u32::try_from(layout::MAX_NODES).expect("fits");
    if (1..=most).contains(&want) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("a lease must have 1 to {most} node ids, got {want}")))
}

pub(crate) fn check_ttl(limits: Limits, ttl: u32) -> Result<()> {
    let least = (6 * limits.max_skew).max(1);
    if ttl < least {
        return Err(Error::invalid_argument(format!(
            "a lease must last at least {least} seconds, six times the largest skew of this \
             namespace, {}, got {ttl}",
            limits.max_skew
        )));
    }
    Ok(())
}

pub(crate) fn check_lifetime(now: i64) -> Result<()> {
    let (kind, why) = if now < layout::EPOCH {
        (ErrorKind::ClockBeforeEpoch, "before the first id")
    } else if now >= layout::LIFETIME_END {
        (ErrorKind::LifetimeOver, "after the last id")
    } else {
        return Ok(());
    };
    Err(Error::new(
        kind,
        format!(
            "the store's clock shows {}, {why}: ids have times from {} to {}; correct that clock",
            utc_second(now),
            utc_second(layout::EPOCH),
            utc_second(layout::LIFETIME_END - 1)
        ),
    ))
}

fn lease((node_id, row): (u32, Row)) -> NodeLease {
    NodeLease { node_id, start: row.start, end_exclusive: row.end_exclusive }
}
