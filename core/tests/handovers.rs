//! An exhaustive search over hand-overs of a manual node id between two processes: every state that
//! they can reach within a few seconds by making generators, also two at a time, closing them and
//! making new ones, and dying and starting again. No state repeats an id, and for every broken rule
//! the search finds a state that does.
//!
//! The users' duty: a process makes a generator only while no other process has one, made or being
//! made. The search covers the first tick of a generator (`registry.rs`, `Record`). A claim is one
//! step here; loom and `fork.rs` test its parts.

use std::collections::{HashMap, VecDeque};

const SECONDS: u8 = 3;
/// Ids of a second.
const SLOTS: u8 = 2;
/// Threads of a process, each of which has at most one generator.
const THREADS: usize = 2;

/// A rule that is broken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mutant {
    /// A generator begins after the second in which the library was loaded.
    AfterLoading,
    /// A generator begins in the second in which it was made.
    InTheSecond,
    /// A generator that shares a record begins at once.
    SharesWithoutBeginning,
    /// A record is shared although all its generators are closed.
    SharesWhatIsClosed,
    /// A generator that is closed still counts as open.
    CountsForEver,
    /// The number of open generators is stored, even if it has changed since.
    StoresTheCount,
}

const MUTANTS: [Mutant; 6] = [
    Mutant::AfterLoading,
    Mutant::InTheSecond,
    Mutant::SharesWithoutBeginning,
    Mutant::SharesWhatIsClosed,
    Mutant::CountsForEver,
    Mutant::StoresTheCount,
];

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
enum Thread {
    #[default]
    Idle,
    /// Is making a generator: has read the record.
    Read(Record),
    /// Has read the clock, too.
    HasTime(Record, u8),
    /// Has a generator that begins with this second.
    Open(u8),
    /// Has closed its generator, but not released the record yet.
    Closed,
}

/// How many generators are open, and where the first of them begins.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
struct Record {
    open: u8,
    from: u8,
}

/// The memory of a process between two restarts.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
struct Process {
    loaded: u8,
    record: Record,
    /// The packed state: last stamp and next slot.
    stamp: u8,
    slot: u8,
    threads: [Thread; THREADS],
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
struct State {
    now: u8,
    processes: [Process; 2],
    /// The slots of each second that were issued.
    issued: [[bool; SLOTS as usize]; SECONDS as usize],
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Tick,
    Restart(usize),
    Make(usize, usize),
    ReadClock(usize, usize),
    Exchange(usize, usize),
    Generate(usize, usize),
    Close(usize, usize),
    Release(usize, usize),
}

impl State {
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.now + 1 < SECONDS {
            steps.push(Step::Tick);
        }
        for (p, process) in self.processes.iter().enumerate() {
            steps.push(Step::Restart(p));
            let others = self.processes[1 - p].threads;
            for (t, thread) in process.threads.iter().enumerate() {
                match thread {
                    Thread::Idle if others == [Thread::Idle; THREADS] => {
                        steps.push(Step::Make(p, t));
                    }
                    Thread::Idle => {}
                    Thread::Read(_) => steps.push(Step::ReadClock(p, t)),
                    Thread::HasTime(..) => steps.push(Step::Exchange(p, t)),
                    Thread::Open(_) => {
                        steps.extend([Step::Generate(p, t), Step::Close(p, t)]);
                    }
                    Thread::Closed => steps.push(Step::Release(p, t)),
                }
            }
        }
        steps
    }

    /// Returns the state after a step, or none if an id was repeated.
    fn after(&self, step: Step, mutant: Option<Mutant>) -> Option<Self> {
        let mut next = *self;
        let breaks = |rule| mutant == Some(rule);
        match step {
            Step::Tick => next.now += 1,
            Step::Restart(p) => {
                next.processes[p] = Process { loaded: self.now, ..Process::default() };
            }
            Step::Make(p, t) => {
                let process = &mut next.processes[p];
                process.threads[t] = Thread::Read(process.record);
            }
            Step::ReadClock(p, t) => {
                let process = &mut next.processes[p];
                if let Thread::Read(seen) = process.threads[t] {
                    process.threads[t] = Thread::HasTime(seen, self.now);
                }
            }
            Step::Exchange(p, t) => {
                let process = &mut next.processes[p];
                let Thread::HasTime(seen, now) = process.threads[t] else { return Some(next) };
                if seen != process.record && !breaks(Mutant::StoresTheCount) {
                    process.threads[t] = Thread::Read(process.record); // once more
                    return Some(next);
                }
                let was_shared = seen.from > 0 && breaks(Mutant::SharesWhatIsClosed);
                let shares = seen.open > 0 || was_shared;
                let from = match (shares, mutant) {
                    (true, _) => seen.from,
                    (false, Some(Mutant::AfterLoading)) => process.loaded + 1,
                    (false, Some(Mutant::InTheSecond)) => now,
                    (false, _) => now + 1,
                };
                process.record = Record { open: seen.open + 1, from };
                let at_once = shares && breaks(Mutant::SharesWithoutBeginning);
                process.threads[t] = Thread::Open(if at_once { 0 } else { from });
            }
            Step::Generate(p, t) => {
                let process = &mut next.processes[p];
                let Thread::Open(from) = process.threads[t] else { return Some(next) };
                let stamp = self.now.max(process.stamp).max(from);
                let slot = if stamp == process.stamp { process.slot } else { 0 };
                if stamp > self.now || slot == SLOTS {
                    return Some(next); // waits
                }
                (process.stamp, process.slot) = (stamp, slot + 1);
                let issued = &mut next.issued[usize::from(stamp)][usize::from(slot)];
                if std::mem::replace(issued, true) {
                    return None;
                }
            }
            Step::Close(p, t) => next.processes[p].threads[t] = Thread::Closed,
            Step::Release(p, t) => {
                let process = &mut next.processes[p];
                process.threads[t] = Thread::Idle;
                if !breaks(Mutant::CountsForEver) {
                    process.record.open = process.record.open.saturating_sub(1);
                }
            }
        }
        Some(next)
    }
}

/// Returns how many states can be reached, or the shortest path to a repeated id.
fn search(mutant: Option<Mutant>) -> Result<usize, Vec<Step>> {
    let first = State::default();
    let mut came_from = HashMap::from([(first, None)]);
    let mut queue = VecDeque::from([first]);
    while let Some(state) = queue.pop_front() {
        for step in state.steps() {
            let Some(next) = state.after(step, mutant) else {
                let mut way = vec![step];
                let mut at = state;
                while let Some((before, step)) = came_from[&at] {
                    way.push(step);
                    at = before;
                }
                way.reverse();
                return Err(way);
            };
            came_from.entry(next).or_insert_with(|| {
                queue.push_back(next);
                Some((state, step))
            });
        }
    }
    Ok(came_from.len())
}

#[test]
fn no_id_is_repeated_wherever_a_node_id_goes() {
    let states = search(None).expect("no id is repeated");
    // Fewer states would mean that the search covers less.
    assert_eq!(states, 158_384);
}

#[test]
fn for_every_broken_rule_an_id_is_repeated() {
    for mutant in MUTANTS {
        let way = search(Some(mutant)).expect_err("an id is repeated");
        assert!(matches!(way.last(), Some(Step::Generate(..))), "{mutant:?}: {way:?}");
    }
}
