//! A breadth-first search through all states, for the shortest way to break each invariant.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::BuildHasherDefault,
    iter,
};

use crate::{
    keys::KeyHasher,
    protocol::{CHILD, Loss, MAX_HOLDERS, Mutant, Phase, Process, State, Step, World},
};

/// The invariants of ARCHITECTURE.md.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Invariant {
    /// No second of the node is stamped by two Terms: no id is repeated.
    Unique,
    /// An open Term's end is at most the row's end or the floor: the next lease starts after it.
    /// (This holds for a row of any token, which is more than the protocol promises.)
    Covered,
    /// The row's end falls only by a release of its own token, by a loss, or by an operator; a Term's
    /// never does.
    Monotone,
    /// A token has at most one Term, and stamps in a Term only rise.
    Single,
}

pub(crate) const INVARIANTS: [Invariant; 4] =
    [Invariant::Unique, Invariant::Covered, Invariant::Monotone, Invariant::Single];

/// The result of a search.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) states: usize,
    /// The number of steps in the longest of the shortest paths.
    pub(crate) depth: usize,
    /// For each invariant, the shortest path that breaks it.
    pub(crate) broken: [Option<Vec<Step>>; 4],
}

/// Searches all states, or stops when an id is repeated.
pub(crate) fn search(world: &World) -> Search {
    let first = world.first();
    let mut came_from = Seen::default();
    came_from.insert(first.key(world), first.key(world));
    let mut frontier = vec![first];
    let (mut depth, mut broken) = (0, [const { None }; 4]);
    while !frontier.is_empty() && broken[Invariant::Unique as usize].is_none() {
        let mut next = Vec::new();
        for at in &frontier {
            let at_key = at.key(world);
            world.steps(at, &mut |step, to| {
                let to_key = to.key(world);
                for invariant in INVARIANTS {
                    let shortest = &mut broken[invariant as usize];
                    if shortest.is_none() && !invariant.holds(at, step, &to) {
                        let mut way = way_to(at_key, world, &came_from);
                        way.push(step);
                        *shortest = Some(way);
                    }
                }
                if let Entry::Vacant(unseen) = came_from.entry(to_key) {
                    unseen.insert(at_key);
                    next.push(to);
                }
            });
        }
        depth += usize::from(!next.is_empty());
        frontier = next;
    }
    Search { states: came_from.len(), depth, broken }
}

/// The steps from the first state to a seen state.
fn way_to(key: u128, world: &World, came_from: &Seen) -> Vec<Step> {
    let mut keys = vec![key];
    let mut at = world.first();
    while keys[keys.len() - 1] != at.key(world) {
        keys.push(came_from[&keys[keys.len() - 1]]);
    }
    let mut way = Vec::new();
    for key in keys.into_iter().rev().skip(1) {
        let mut found = None;
        world.steps(&at, &mut |step, to| {
            // The first one, as in the search: of two states that differ only in which holder is
            // which, the search continued from the first.
            if found.is_none() && to.key(world) == key {
                found = Some((step, to));
            }
        });
        let (step, to) = found.expect("a state comes from the one it was seen after");
        way.push(step);
        at = to;
    }
    way
}

impl Invariant {
    /// Whether it holds over a step from `at`, and in the state `to` after it.
    fn holds(self, at: &State, step: Step, to: &State) -> bool {
        let open = |process: &&Process| process.phase == Phase::Open;
        let mut terms = at.processes.iter().zip(&to.processes).filter(|(at, _)| open(at));
        match self {
            Self::Unique => {
                let mut seen = 0;
                let disjoint = to.processes.iter().all(|process| {
                    let new = seen & process.used == 0;
                    seen |= process.used;
                    new
                });
                let again = matches!(step, Step::Stamp { process, second }
                    if at.processes[process].used & 1 << second != 0);
                disjoint && !again
            }
            Self::Covered => {
                let covered = to.store.end.max(to.store.floor);
                to.lost || to.processes.iter().filter(open).all(|process| process.end <= covered)
            }
            Self::Monotone => {
                let row = to.store.end >= at.store.end
                    || matches!(step, Step::Lose | Step::Promote)
                    || matches!(step, Step::Release { token, .. } if token == at.store.token)
                    || matches!(step, Step::ReleaseDead { .. } | Step::Repair { .. });
                row && terms.all(|(at, to)| at.end <= to.end || to.phase == Phase::Closed)
            }
            Self::Single => {
                let mut seen = 0;
                let one = to.processes.iter().filter(open).all(|process| {
                    let new = seen & 1 << process.token == 0;
                    seen |= 1 << process.token;
                    new
                });
                one && terms.all(|(at, to)| at.used_until <= to.used_until)
            }
        }
    }
}

impl State {
    /// Everything in which two states of a world can differ, except which holder is which.
    fn key(&self, world: &World) -> u128 {
        let seconds = u32::from(world.seconds);
        let (loses, child) = (world.loss != Loss::Never, &self.processes[CHILD]);
        let mut key = Key::default();
        for store in iter::once(&self.store).chain(loses.then_some(&self.copy)) {
            key.push(store.start, 3);
            key.push(store.end, 3);
            if loses {
                key.push(store.floor, 3);
                key.push(store.renew_above, 3);
            }
        }
        key.push(self.lost, 1);
        // One of them is always 0.
        key.push(self.time + self.highest, 3);
        if matches!(world.loss, Loss::Split(_)) {
            key.push(self.promoted, 3);
        }
        if world.fork {
            key.push_process(*child, seconds);
        }

        let mut holders = [const { Key { value: 0, bits: 0 } }; MAX_HOLDERS];
        for (index, key) in holders[..world.holders].iter_mut().enumerate() {
            let process = self.processes[index];
            key.push_process(process, seconds);
            key.push(self.grants[index], seconds * (seconds + 1) / 2);
            if world.mutant == Some(Mutant::ReplyForAnotherOperation) {
                key.push(self.refusals[index], seconds + 1);
            }
            key.push(self.store.token == process.token, 1);
            if loses {
                key.push(self.copy.token == process.token, 1);
            }
            if world.fork {
                key.push(child.token == process.token, 1);
            }
        }
        holders.sort_unstable_by_key(|key| key.value);
        for holder in holders {
            key.push(holder.value, holder.bits);
        }
        key.value
    }
}

/// Several numbers packed into one.
#[derive(Default)]
struct Key {
    value: u128,
    bits: u32,
}

impl Key {
    fn push(&mut self, value: impl Into<u128>, bits: u32) {
        let value = value.into();
        self.bits += bits;
        assert!(value >> bits == 0, "{value} needs more than {bits} bits");
        assert!(self.bits <= u128::BITS, "a state needs more than {} bits", u128::BITS);
        self.value = self.value << bits | value;
    }

    fn push_process(&mut self, process: Process, seconds: u32) {
        self.push(process.phase as u8, 2);
        self.push(process.start, 3);
        self.push(process.end, 3);
        self.push(process.used_until, 3);
        self.push(process.used, seconds);
    }
}

/// The states seen, each with the state from which it was first reached.
type Seen = HashMap<u128, u128, BuildHasherDefault<KeyHasher>>;
