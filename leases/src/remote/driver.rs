//! Runs the rules over what was read from a server, and writes what they put if nothing that was
//! read has changed. This module has no rules, and nothing specific to a server.
//!
//! A rule runs over what is known. If it needs more, that is read; what it has put is written in
//! one step; if something has changed meanwhile, it runs again over what was answered. What was
//! written counts only if the answer says that this very step wrote it. Of what was written without
//! an answer the end does not count, since a fence may have come in between. A repeated acquire
//! takes only what was written under the meta of now. The client remembers the texts that it was
//! granted by, so a renewal is one round trip where the server compares its clock before it writes.

use std::collections::BTreeMap;

use super::{
    candidates::ranges,
    check::check,
    context::Context,
    protocol::Known,
    step::{Seen, Step, Write},
    text::{
        Key, after, counter_text, end_of, is_written_under, node_text, parse_counter, parse_node,
    },
};
use crate::{
    namespace::NamespaceMetadata,
    node_ranges::NodeRanges,
    row::Row,
    rules::{Free, Quarantine, Transaction},
    stores::redis,
    token::{Token, version},
    written_rows::WrittenRows,
};
use randflake::{Error, Result};

/// Node ids per statement when all are looked at.
const RANGE: u32 = 4096;
/// How many consecutive times others may be faster before an operation gives up. Processes that
/// compete for the last few node ids of a pool lose every other time.
const REFUSALS: usize = 30;
/// The maximum number of steps of one operation, however much it writes.
const STEPS: usize = 1000;

/// How an operation is done.
#[derive(Clone, Debug, Default)]
pub(super) struct How {
    /// What it reads first.
    pub(super) keys: Vec<Key>,
    /// What it reads, all at once, when it needs more.
    pub(super) more: Vec<Key>,
    /// It grants something: it writes only while the server's clock roughly agrees with the clock
    /// of the decision, and replicas must confirm it.
    pub(super) grants: Option<&'static str>,
    /// Writes only while the server's clock roughly agrees with the clock of the decision.
    pub(super) is_timed: bool,
    pub(super) begins: Begins,
    /// Its decision affects the uniqueness of ids, so it uses two clocks.
    pub(super) is_confirmed: bool,
}

/// What an operation bases its decision on before it has read anything.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Begins {
    /// What an earlier operation read.
    #[default]
    Remembers,
    /// The same, assuming that unknown keys are missing: if they are, one round trip is enough.
    Hopes,
    /// Nothing.
    Reads,
}

/// Why a rule has stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// It needs more data.
    Needs(Need),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

#[derive(Debug)]
pub(super) enum Need {
    Text(Key),
    Free { first: u32, most: usize },
}

/// What is known about the server while an operation runs.
#[derive(Default)]
struct View {
    texts: BTreeMap<Key, Option<String>>,
    free: Option<Free>,
    /// What this operation was granted.
    granted: BTreeMap<u32, Row>,
    /// Whether all of it was read for this operation.
    is_fresh: bool,
    /// The server's clock in the last answer, if it had one.
    clock: Option<i64>,
}

/// Runs a rule until everything that it puts is written.
pub(super) async fn perform<T>(
    context: &Context,
    how: impl Fn(&Known) -> How,
    rule: impl Fn(&mut Snapshot<'_>) -> Result<T, Stop>,
) -> Result<T> {
    let mut view = View::default();
    let mut refusals = 0;
    for _ in 0..STEPS {
        let known = match context.known() {
            Some(known) => known,
            None => check(context, None).await?,
        };
        let how = how(&known);
        // Without a guard, what is decided by the clock of before is compared with the server's only
        // once it is written: too late, if this machine's clock has been set in between.
        let reads = how.begins == Begins::Reads || (how.is_timed && !context.is_guarded());
        if !view.is_fresh && !how.is_confirmed && !reads {
            view.texts = context.remembered(&how.keys);
            if how.begins == Begins::Hopes && known.clocks.is_some() {
                let unknown = how.keys.iter().map(|key| (key.clone(), None));
                let known = std::mem::take(&mut view.texts);
                view.texts = unknown.chain(known).collect();
            }
        }
        let mut snapshot = match Snapshot::new(context, &known, &view, &how) {
            Ok(snapshot) => snapshot,
            Err(error) if view.is_fresh => return Err(error),
            Err(_) => {
                read(context, &known, &mut view, how.keys).await?;
                continue;
            }
        };
        let outcome = rule(&mut snapshot);
        let writes = snapshot.into_writes();
        match outcome {
            Err(Stop::Needs(Need::Text(key))) => {
                let mut keys = if how.keys.contains(&key) { how.keys } else { how.more };
                keys.retain(|key| !view.is_fresh || !view.texts.contains_key(key));
                keys.push(key);
                read(context, &known, &mut view, keys).await?;
            }
            Err(Stop::Needs(Need::Free { first, most })) => {
                find_free(context, &known, &mut view, first, most).await?;
            }
            // What was remembered may be wrong by now.
            _ if writes.is_empty() && !view.is_fresh => {
                read(context, &known, &mut view, how.keys).await?;
            }
            Err(Stop::Failed(error)) => return Err(error),
            Ok(outcome) if writes.is_empty() => return Ok(outcome),
            Ok(outcome) => {
                let granted = view.granted.len();
                if write(context, &known, &mut view, &how, writes).await? {
                    return Ok(outcome);
                }
                refusals = if view.granted.len() > granted { 0 } else { refusals + 1 };
                if refusals == REFUSALS {
                    break;
                }
                // Others have changed something: what else is known may be wrong, too.
                let keys = [how.keys, how.more].concat();
                read(context, &known, &mut view, keys).await?;
            }
        }
    }
    Err(context.contended())
}

/// Reads keys.
async fn read(context: &Context, known: &Known, view: &mut View, mut keys: Vec<Key>) -> Result<()> {
    keys.sort_unstable();
    keys.dedup();
    let most = context.most_reads();
    let chunks =
        if keys.is_empty() { vec![&[][..]] } else { keys.chunks(most.min(keys.len())).collect() };
    for chunk in chunks {
        let step = Step { reads: chunk.to_vec(), ..Step::default() };
        let seen = context.step(&step).await?;
        if !absorb(context, known, view, &seen).await? {
            break;
        }
    }
    Ok(())
}

/// Looks for free node ids, range by range, starting with the range of `first`.
async fn find_free(
    context: &Context,
    known: &Known,
    view: &mut View,
    first: u32,
    most: usize,
) -> Result<()> {
    let (mut node_ids, mut next) = (Vec::new(), None::<i64>);
    let mut complete = true;
    for range in ranges(first, known.meta.metadata.limits.node_ids, RANGE) {
        let clock = view.clock.unwrap_or(context.now);
        let wanted = most - node_ids.len();
        let found = context.free(range, &after(clock), wanted).await?;
        if !absorb(context, known, view, &found.seen).await? {
            return Ok(());
        }
        for (node_id, text) in found.free.into_iter().take(wanted) {
            node_ids.push(node_id);
            view.texts.insert(Key::Node(node_id), text);
        }
        let end = match found.next {
            Some(text) => Some(end_of(&text).ok_or_else(|| context.malformed("a node id"))?),
            None => None,
        };
        next = next.into_iter().chain(end).min();
        if node_ids.len() >= most {
            complete = false;
            break;
        }
    }
    view.free = Some(Free { node_ids, next: next.filter(|_| complete) });
    Ok(())
}

/// Writes what a rule has put, and returns whether all of it is valid.
async fn write(
    context: &Context,
    known: &Known,
    view: &mut View,
    how: &How,
    writes: Vec<(Write, Option<Row>)>,
) -> Result<bool> {
    let limits = known.meta.metadata.limits;
    let decided_at = Snapshot::clock(context, known, view);
    // An early end is safe, and so is a late write. It may be a second late because clocks are
    // rounded, and another second because `decided_at` is.
    let late = i64::from(limits.max_skew) + 2;
    let wait = how.grants.and_then(|_| redis::wait_for(known.replicas));
    let mut all = true;
    for chunk in writes.chunks(context.most_writes().min(writes.len())) {
        // Each of many steps may be this late.
        let latest = view.clock.max(decided_at);
        let at = decided_at.zip(latest).filter(|_| how.is_timed);
        let at = at.map(|(decided_at, latest)| (decided_at, latest.saturating_add(late)));
        let step = Step {
            reads: vec![],
            writes: chunk.iter().map(|(write, _)| write.clone()).collect(),
            meta: Some(known.text.clone()),
            server: Some(known.server.clone()),
            at,
            wait,
        };
        let mut seen = context.step(&step).await?;
        let is_late = |clock: i64| at.is_some_and(|(from, until)| clock < from || clock > until);
        if !context.is_guarded() && seen.clock.is_some_and(is_late) {
            seen.written.clear();
        }
        if how.grants.is_none() {
            // If a client has run the statement twice, the answer shows what is already there.
            let own = chunk.iter().filter(|(write, _)| {
                seen.found.get(&write.key).is_some_and(|text| text.as_ref() == Some(&write.after))
            });
            seen.written.extend(own.map(|(write, _)| write.key.clone()));
        }
        let of_meta = chunk.iter().find(|(write, _)| write.key == Key::Meta);
        if let Some((write, _)) = of_meta {
            let is_done = seen.written.contains(&write.key);
            if let Some(what) = how.grants.filter(|_| is_done) {
                redis::check_confirmed(context, wait, &seen, what)?;
            }
            // What is known has changed.
            check(context, None).await?;
            return Ok(is_done);
        }
        let written = seen.written.clone();
        if !absorb(context, known, view, &seen).await? {
            return Ok(false);
        }
        if let Some(what) = how.grants {
            redis::check_confirmed(context, wait, &seen, what)?;
        }
        for (write, row) in chunk {
            if !written.contains(&write.key) {
                all = false;
                continue;
            }
            if let (Key::Node(node_id), Some(row)) = (&write.key, row) {
                context.own().written(*node_id, row);
                view.granted.insert(*node_id, *row);
            }
        }
    }
    if !all {
        view.free = None;
    }
    Ok(all)
}

/// Takes what an answer says. Returns whether it is from the known server and namespace; if not,
/// everything must be read again.
async fn absorb(context: &Context, known: &Known, view: &mut View, seen: &Seen) -> Result<bool> {
    let is_known = seen.server == known.server
        && seen.meta.as_ref() == Some(&known.text)
        && seen.revision >= known.revision;
    if !is_known {
        let granted = std::mem::take(&mut view.granted);
        *view = View { granted, ..View::default() };
        context.forget_texts();
        check(context, None).await?;
        return Ok(false);
    }
    (view.is_fresh, view.clock) = (true, seen.clock);
    context.saw(seen);
    view.texts.extend(seen.found.clone());
    Ok(true)
}

/// The namespace as a rule sees it.
pub(super) struct Snapshot<'a> {
    context: &'a Context,
    known: &'a Known,
    view: &'a View,
    now: i64,
    waited: i64,
    nodes: BTreeMap<u32, Row>,
    counters: BTreeMap<String, String>,
    /// What is to replace the contents of meta.
    meta: Option<(Quarantine, NodeRanges)>,
    own: WrittenRows,
}

impl<'a> Snapshot<'a> {
    fn new(context: &'a Context, known: &'a Known, view: &'a View, how: &How) -> Result<Self> {
        let clock = Self::clock(context, known, view);
        let limits = known.meta.metadata.limits;
        let now = if how.is_confirmed {
            context.confirmed(limits, clock.filter(|_| view.is_fresh))?
        } else {
            clock.unwrap_or(context.now)
        };
        let waited = if view.is_fresh { context.waited(clock) } else { 0 };
        let (nodes, counters, meta) = Default::default();
        let own = context.own();
        Ok(Self { context, known, view, now, waited, nodes, counters, meta, own })
    }

    /// Returns what the server's clock shows, or a little less: its value in the last answer, plus
    /// the time since.
    fn clock(context: &Context, known: &Known, view: &View) -> Option<i64> {
        if view.is_fresh {
            return view.clock;
        }
        let (server, client) = known.clocks?;
        // In whole seconds, a second less may have passed than it seems.
        let passed = context.now.saturating_sub(client).saturating_sub(1);
        Some(server.saturating_add(passed.max(0)))
    }

    fn text(&self, key: Key) -> Result<Option<&'a str>, Stop> {
        match self.view.texts.get(&key) {
            Some(text) => Ok(text.as_deref()),
            None => Err(Stop::Needs(Need::Text(key))),
        }
    }

    /// Returns what was put, in the order of the keys.
    fn into_writes(self) -> Vec<(Write, Option<Row>)> {
        let Self { known, view, nodes, counters, meta, .. } = self;
        let before = |key: &Key| view.texts.get(key).cloned().flatten();
        let mut writes = Vec::new();
        for (name, value) in counters {
            let key = Key::Counter(name);
            let before = before(&key);
            writes.push((Write { key, before, after: counter_text(&value) }, None));
        }
        if let Some((quarantine, node_ids)) = meta {
            let mut after = known.meta.fenced(&known.meta.incarnation, quarantine);
            after.metadata.limits.node_ids = node_ids;
            let after = after.text();
            let before = Some(known.text.clone());
            writes.push((Write { key: Key::Meta, before, after }, None));
        }
        for (node_id, row) in nodes {
            let key = Key::Node(node_id);
            let before = before(&key);
            let after = node_text(&row, &known.meta);
            writes.push((Write { key, before, after }, Some(row)));
        }
        writes
    }
}

impl Transaction for Snapshot<'_> {
    type Error = Stop;

    fn now(&self) -> i64 {
        self.now
    }

    fn confirmed_now(&self) -> Result<i64, Stop> {
        let clock = self.view.clock.filter(|_| self.view.is_fresh);
        Ok(self.context.confirmed(self.metadata().limits, clock)?)
    }

    fn waited(&self) -> i64 {
        self.waited
    }

    fn metadata(&self) -> &NamespaceMetadata {
        &self.known.meta.metadata
    }

    fn quarantine(&self) -> Quarantine {
        self.known.meta.quarantine
    }

    fn put_quarantine(&mut self, quarantine: Quarantine) -> Result<(), Stop> {
        self.meta = Some((quarantine, self.metadata().limits.node_ids));
        Ok(())
    }

    fn put_node_ids(&mut self, node_ids: NodeRanges) -> Result<(), Stop> {
        self.meta = Some((self.quarantine(), node_ids));
        Ok(())
    }

    fn row(&mut self, node_id: u32) -> Result<Option<Row>, Stop> {
        let Some(text) = self.text(Key::Node(node_id))? else { return Ok(None) };
        let row = parse_node(text).ok_or_else(|| self.context.malformed("a node id"))?;
        Ok(Some(row))
    }

    fn put(&mut self, node_id: u32, row: Row) -> Result<(), Stop> {
        let version = version();
        self.own.attempt(node_id, &row, version);
        self.nodes.insert(node_id, Row { version, ..row });
        Ok(())
    }

    /// The node ids that this client has requested, or that were read, and whose text is of this
    /// token and was written under the known meta: after a fence, others may belong to somebody
    /// else.
    fn held_by(&mut self, token: Token) -> Result<Vec<(u32, Row)>, Stop> {
        let read = self.view.texts.keys().filter_map(|key| match key {
            Key::Node(node_id) => Some(*node_id),
            _ => None,
        });
        let mut node_ids = self.own.asked_for(token);
        node_ids.extend(read);
        let mut held = Vec::new();
        for node_id in node_ids {
            let is_of_now = |text: &str| is_written_under(text, &self.known.meta);
            let is_of_now = self.text(Key::Node(node_id))?.is_some_and(is_of_now);
            let row = self.row(node_id)?.filter(|row| is_of_now && row.token == Some(token));
            held.extend(row.map(|row| (node_id, row)));
        }
        Ok(held)
    }

    fn free(&mut self, first: u32, most: usize) -> Result<Free, Stop> {
        self.view.free.clone().ok_or(Stop::Needs(Need::Free { first, most }))
    }

    fn counter(&mut self, name: &str) -> Result<Option<String>, Stop> {
        let Some(text) = self.text(Key::Counter(name.to_owned()))? else { return Ok(None) };
        let value = parse_counter(text).ok_or_else(|| self.context.malformed("a counter"))?;
        Ok(Some(value.to_owned()))
    }

    fn put_counter(&mut self, name: &str, value: &str) -> Result<(), Stop> {
        self.counters.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    fn granted(&self) -> Vec<(u32, Row)> {
        self.view.granted.iter().map(|(node_id, row)| (*node_id, *row)).collect()
    }

    fn own(&self) -> &WrittenRows {
        &self.own
    }

    /// If the server's line is compared only in the answer, what another client has written may be
    /// from another line, unless it was written under the known meta.
    fn known_end(&self, node_id: u32, row: &Row) -> i64 {
        if let Some(end) = self.own.end_of(node_id, row) {
            return end.min(row.end_exclusive);
        }
        let text = self.text(Key::Node(node_id)).ok().flatten();
        let is_of_now = text.is_some_and(|text| is_written_under(text, &self.known.meta));
        if self.context.is_guarded() || is_of_now { row.end_exclusive } else { row.start }
    }

    fn last_grant(&self) -> u32 {
        self.context.last_grant()
    }
}

impl Context {
    /// Returns the remembered texts of some keys.
    fn remembered(&self, keys: &[Key]) -> BTreeMap<Key, Option<String>> {
        let state = self.state();
        let text = |key: &Key| Some((key.clone(), Some(state.texts.get(key)?.clone())));
        keys.iter().filter_map(text).collect()
    }

    fn forget_texts(&self) {
        self.state().texts.clear();
    }

    /// Takes what an answer of the known server says.
    fn saw(&self, seen: &Seen) {
        self.update_known(|known| {
            known.revision = known.revision.max(seen.revision);
            known.clocks = seen.clock.map(|clock| (clock, self.later()));
        });
        let mut state = self.state();
        for (key, text) in &seen.found {
            let is_ours = match key {
                Key::Node(node_id) => state.own.has(*node_id),
                Key::Counter(_) => true,
                Key::Meta => false,
            };
            match text {
                Some(text) if is_ours => drop(state.texts.insert(key.clone(), text.clone())),
                _ => drop(state.texts.remove(key)),
            }
        }
    }

    /// Returns what the server's clock showed in its last answer.
    pub(super) fn clock(&self) -> Option<i64> {
        self.known()?.clocks.map(|(server, _)| server)
    }

    /// Returns what this client has written.
    pub(super) fn own(&self) -> WrittenRows {
        self.state().own.clone()
    }
}

/// The first node ids that an acquire looks at.
pub(super) fn candidates(token: Token, node_ids: &NodeRanges, count: usize) -> Vec<Key> {
    token.candidates(node_ids).take(count).map(Key::Node).collect()
}
