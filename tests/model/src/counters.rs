//! A counter of [`Tickets`](randflake_tickets::Tickets), as a function from a state to every state
//! that can come next. The product itself draws, gives back and fences, on a store that loses
//! requests and answers, delivers a request late and any number of times, and forgets what it
//! wrote. A process may be copied with everything it knows. A unit of time is the minute for which
//! numbers are valid after the request that brought or confirmed them; both copies may hand out
//! what is handed out in the minute of the copy.
//!
//! A call is one step. It ends with its last request, or with any earlier request whose answer is
//! lost. What others did between two requests of a call is a change that the second one finds: so
//! the order of requests is free, too. A late request stays late until another one is.
//!
//! Three promises hold in every state, and break where one rule is broken: no number twice, those
//! of a process rise, and where nothing is killed or lost, everything that was drawn is handed out
//! or given back.

use std::{collections::HashMap, ops::Range, rc::Rc};

use randflake_leases::{
    Acquire, Acquired, Change, Error, ErrorKind, Fence, Fenced, LeaseStore, Limits, NodeRanges,
    Release, Released, Renew, Renewed, Reply, Request, Result, Swap, Swapped, Token,
    operator::{List, Listed, ReleaseDead, Repair, Shortened},
};
use randflake_tickets::{
    counter::{CounterSettings, Draw, KnownCounter},
    operator,
};

use crate::explore::{Found, explore};

const COUNTER: &str = "invoices";

/// What a process knows of the counter between two calls: the floor of the namespace, and the value.
type Known = Option<(i64, Option<String>)>;

const PROCESSES: usize = 3;
/// How many positions a process draws at once.
const WANT: u8 = 2;
/// How many blocks a process draws ahead.
const AHEAD: usize = 2;
/// How long an old master may continue if another replica confirms what it writes.
const LAST_GRANT: u8 = 1;
/// The longest lease of a namespace of tickets, which has no leases.
const TTL: u8 = 1;

/// The world to search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    pub(crate) processes: u8,
    /// How many blocks are drawn in all.
    pub(crate) draws: u8,
    /// How often a process gets what it holds confirmed.
    pub(crate) confirms: u8,
    /// How often a process is copied. Without copies, numbers are valid forever: clocks may stand
    /// still.
    pub(crate) copies: u8,
    /// How many answers are lost or requests are late.
    pub(crate) faults: u8,
    pub(crate) loss: Forgets,
    /// How often the store forgets.
    pub(crate) losses: u8,
    /// How often an operator fences the counter.
    pub(crate) fences: u8,
    /// Time ends here; the clock of a store is read only by a fence.
    pub(crate) until: u8,
    pub(crate) broken: Option<Broken>,
}

/// How a store forgets blocks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Forgets {
    Never,
    /// It comes back in the state of any earlier moment: a backup, or a promoted replica. It
    /// notices this, or is told, before it serves a request.
    Some,
    /// The same, and the previous master continues. A write counts if the promoted replica has it.
    Split,
    /// The same, and another replica confirms for a while what the previous master writes.
    SplitForAWhile,
}

/// One rule broken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Broken {
    StoreIgnoresTheValue,
    StoreIgnoresTheFloor,
    LostSwapCounts,
    AnswersBeforeTheWrite,
    IgnoresThatItIsAnother,
    CounterIgnoresTheFloor,
    MissingCounterIsNew,
    FencesOneLower,
    FencesBesideProcesses,
    FencesBesideTheOldMaster,
    FenceKeepsWhatIsFree,
    GivesBackWhatWasUsed,
    GivesBackBeforeTheSeal,
    GivesBackForAnother,
    SharesATokenWithAnother,
    KeepsItsToken,
    ForgetsWhereItsBlocksEnd,
    RepeatsUnderANewToken,
    ConfirmsUnderTheSameToken,
    FinishesWhatIsUnused,
    CountsForEver,
    RepeatedDrawCountsFromNow,
    GoesOnWithWhatIsLost,
    LosesWhereItsBlocksEnd,
    ChildUsesBlocks,
    ChildGivesBack,
    CountsUnconfirmed,
    RepeatsUnconfirmed,
}

/// What must hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Promise {
    /// No number is handed out twice.
    Unique,
    /// The numbers of one process rise.
    Rises,
    /// Everything drawn is handed out or given back, if every process ends cleanly, no request is
    /// late, and the store forgets nothing.
    Kept,
}

pub(crate) const PROMISES: [Promise; 3] = [Promise::Unique, Promise::Rises, Promise::Kept];

/// A server. Values are given by their numbers in [`Values`].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct Server {
    floor: u8,
    value: u16,
    /// It has become another one, and nobody has asked it yet.
    is_another: bool,
}

/// A request that may still arrive.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Late {
    to_old: bool,
    floor: u8,
    before: u16,
    after: u16,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Phase {
    #[default]
    Gone,
    Runs,
    /// Has sealed its blocks, and is giving them back.
    Ends,
}

/// What is left of a block that a process has; empty if it has none.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct Held {
    next: u8,
    end: u8,
}

/// A draw without an answer, which is repeated unchanged; token 0 means none.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct Pending {
    token: u8,
    unused_from: u8,
    want: u8,
    /// As in [`Process`].
    sent: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct Process {
    phase: Phase,
    /// It is connected to the previous master.
    at_old: bool,
    knows: u16,
    after: u8,
    /// The token under which the counter holds its blocks; 0 if it has none.
    token: u8,
    /// When the request of that token was first sent, plus one; 0 if that was in another minute.
    sent: u8,
    pending: Pending,
    held: [Held; AHEAD],
    /// The last number plus one.
    last: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
struct State {
    master: Server,
    old: Option<Server>,
    /// What the store comes back with.
    copy: Server,
    time: u8,
    /// When a replica was promoted.
    promoted: u8,
    late: Option<Late>,
    processes: [Process; PROCESSES],
    draws: u8,
    faults: u8,
    confirms: u8,
    copies: u8,
    losses: u8,
    fences: u8,
    handed_out: u32,
    /// When a process was last copied, plus one.
    copied: u8,
    /// What it held then or was about to draw.
    shared: u32,
    /// The part of `shared` that was handed out in the minute of the copy.
    exposed: u32,
    /// A process was killed, a request was late, or the store forgot.
    is_lossy: bool,
}

/// What happens between two states.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "they are printed")]
pub(crate) enum Act {
    Start { at_old: bool },
    Reconnect,
    Draw { token: u8, want: u8, fate: Fate },
    HandOut { number: u8 },
    End,
    GiveBack { tokens: [u8; 2], from: u8, fate: Fate },
    Kill,
    Fork,
    CopyOfAProcess,
    Arrive,
    Copy,
    Lose,
    Promote,
    Tick,
    Fence { above: u8, fate: Fate },
}

/// What happens to the last request of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fate {
    Answered,
    /// Answered, and it arrives again later.
    AnsweredAndRepeated,
    /// It is not done; a write may arrive later.
    Lost {
        request: u8,
    },
    Unheard {
        request: u8,
    },
    UnheardAndRepeated {
        request: u8,
    },
    /// Written, but no replica that counts has it.
    Unconfirmed,
}

/// Values that a store had, and what processes know, each with a number.
#[derive(Debug, Default)]
struct Values {
    texts: Vec<Option<String>>,
    number_of: HashMap<Option<String>, u16>,
    known: Vec<Known>,
    number_of_known: HashMap<Known, u16>,
    /// The results of each call so far.
    called: HashMap<Call, Rc<[Called]>>,
}

/// What a process or an operator asks of the product.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Ask {
    Draw { before: u8, token: u8, unused_from: u8, want: u8, after: u8 },
    GiveBack { tokens: [u8; 2], from: u8 },
    Fence { above: u8 },
}

/// A call, and everything that decides its results.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Call {
    ask: Ask,
    knows: u16,
    server: Server,
    time: u8,
    may_fail: bool,
    may_be_unconfirmed: bool,
}

/// The path from a process to a server, for one call.
struct Wire {
    world: Counters,
    time: u8,
    floor: i64,
    value: Option<String>,
    is_another: bool,
    fate: Fate,
    is_fence: bool,
    /// What was sent so far: a write, or a request that only reads.
    sent: Vec<Option<Change>>,
    wrote: bool,
}

/// What the product returns at the end of a call.
#[derive(Clone, Debug)]
enum Outcome {
    /// The block that was drawn, which is empty for other calls.
    Done(Range<u8>),
    /// What the process holds is no longer its own.
    Lost,
    Failed,
}

/// A result of a call.
#[derive(Clone, Debug)]
struct Called {
    fate: Fate,
    outcome: Outcome,
    knows: u16,
    server: Server,
    wrote: bool,
    /// The last write, if it arrives later: the floor and the values before and after.
    late: Option<(u8, u16, u16)>,
}

/// Searches all states, or stops when a number is handed out twice.
pub(crate) fn search(world: Counters) -> Found<Act, 3> {
    let mut values = Values::default();
    assert_eq!((values.number(None), values.number_of_known(None)), (0, 0));
    let first = State {
        draws: world.draws,
        confirms: world.confirms,
        copies: world.copies,
        faults: world.faults,
        losses: world.losses,
        fences: world.fences,
        ..State::default()
    };
    explore(first, Promise::Unique as usize, |at, next| {
        let mut next = |act, promise: Option<Promise>, mut to: State| {
            to.forget(world);
            next(act, promise.map(|promise| promise as usize), to);
        };
        Step { world, values: &mut values, at, next: &mut next }.all();
    })
}

type Next<'a> = &'a mut dyn FnMut(Act, Option<Promise>, State);

/// All that can happen in a state.
struct Step<'a> {
    world: Counters,
    values: &'a mut Values,
    at: State,
    next: Next<'a>,
}

impl Step<'_> {
    fn breaks(&self, rule: Broken) -> bool {
        self.world.broken == Some(rule)
    }

    fn to(&mut self, act: Act, to: State) {
        let all_gone = to.processes.iter().all(|process| process.phase == Phase::Gone);
        let kept = to.is_lossy || !all_gone || self.values.keeps(to.master.value, to.handed_out);
        (self.next)(act, (!kept).then_some(Promise::Kept), to);
    }

    fn all(&mut self) {
        let at = self.at;
        for index in 0..PROCESSES {
            let process = at.processes[index];
            match process.phase {
                Phase::Gone => self.start(index),
                Phase::Runs => {
                    self.draw(index);
                    self.hand_out(index);
                    self.fork(index);
                    self.copy(index);
                    if process.at_old {
                        self.with(Act::Reconnect, index, Process { at_old: false, ..process });
                    }
                    self.with(Act::End, index, Process { phase: Phase::Ends, ..process });
                    if self.breaks(Broken::GivesBackBeforeTheSeal) {
                        self.give_back(index);
                    }
                }
                Phase::Ends => {
                    self.give_back(index);
                    self.copy(index);
                }
            }
            if process.phase != Phase::Gone {
                let mut to = at;
                (to.processes[index], to.is_lossy) = (Process::default(), true);
                self.to(Act::Kill, to);
            }
        }
        self.arrive();
        self.lose();
        self.fence();
        if at.time < self.world.until {
            self.to(Act::Tick, State { time: at.time + 1, ..at });
        }
    }

    fn with(&mut self, act: Act, index: usize, process: Process) {
        let mut to = self.at;
        to.processes[index] = process;
        self.to(act, to);
    }

    /// A process that already existed, holding nothing; or the child of another one.
    fn start(&mut self, index: usize) {
        let at = self.at;
        let is_first = at.processes[..index].iter().all(|process| process.phase != Phase::Gone);
        if !is_first || index >= self.world.processes.into() || at.draws == 0 {
            return;
        }
        for at_old in [false, true] {
            if !at_old || at.old.is_some() {
                let process = Process { phase: Phase::Runs, at_old, ..Process::default() };
                self.with(Act::Start { at_old }, index, process);
            }
        }
    }

    fn fork(&mut self, index: usize) {
        let child = match self.world.broken {
            Some(Broken::ChildUsesBlocks) => Phase::Runs,
            Some(Broken::ChildGivesBack) => Phase::Ends,
            _ => return, // the child has nothing: it is as any other that starts
        };
        let mut to = self.at;
        if let Some(free) = to.processes.iter_mut().find(|it| it.phase == Phase::Gone) {
            *free = Process { phase: child, ..self.at.processes[index] };
            self.to(Act::Fork, to);
        }
    }

    /// Duplicates all memory of a process, including requests in progress.
    fn copy(&mut self, index: usize) {
        let (at, process) = (self.at, self.at.processes[index]);
        let mut to = State { copied: at.time + 1, is_lossy: true, ..at };
        let free = to.processes.iter_mut().find(|it| it.phase == Phase::Gone);
        let (Some(free), Some(copies)) = (free, at.copies.checked_sub(1)) else { return };
        *free = process;
        to.copies = copies;
        to.shared |= process.held.iter().fold(0, |all, held| all | bits(held.next..held.end));
        if process.pending.token > 0 {
            to.shared |= bits(process.after..32);
        }
        self.to(Act::CopyOfAProcess, to);
    }

    fn draw(&mut self, index: usize) {
        let process = self.at.processes[index];
        let is_new = process.pending.token == 0 || self.breaks(Broken::RepeatsUnderANewToken);
        if !is_new {
            self.ask(index, process.pending);
            return;
        }
        let (at, unused_from) = (self.at, process.unused_from());
        let is_full = process.held.iter().all(|held| held.end > 0);
        for (want, left) in [(WANT, at.draws), (0, at.confirms)] {
            if left == 0 || (want > 0 && is_full) || (want == 0 && process.held[0].end == 0) {
                continue;
            }
            let token = self.new_token(&process, want);
            let unused_from =
                if self.breaks(Broken::FinishesWhatIsUnused) { process.after } else { unused_from };
            let sent = at.time + 1;
            self.ask(index, Pending { token, unused_from, want, sent });
        }
    }

    /// Sends a draw, for the first time or again.
    fn ask(&mut self, index: usize, pending: Pending) {
        let process = self.at.processes[index];
        let Pending { token, unused_from, want, .. } = pending;
        let is_new = process.pending.token != token;
        let after = if self.breaks(Broken::ForgetsWhereItsBlocksEnd) { 0 } else { process.after };
        let ask = Ask::Draw { before: process.token, token, unused_from, want, after };
        for (called, mut to) in self.call(process.at_old, process.knows, ask) {
            let Called { fate, knows, .. } = called;
            let mut process = Process { knows, pending, ..process };
            let is_ignored = self.breaks(Broken::GoesOnWithWhatIsLost);
            match called.outcome {
                Outcome::Lost if !is_ignored => {
                    process.after = process.unused_from();
                    if self.breaks(Broken::LosesWhereItsBlocksEnd) {
                        process.after = 0;
                    }
                    (process.token, process.sent) = (0, 0);
                    (process.pending, process.held) = Default::default();
                }
                Outcome::Failed => {}
                drawn => {
                    process.token = token;
                    process.sent = if self.breaks(Broken::RepeatedDrawCountsFromNow) {
                        self.at.time + 1
                    } else {
                        pending.sent
                    };
                    process.pending = Pending::default();
                    if let Outcome::Done(Range { start: next, end }) = drawn
                        && next < end
                    {
                        let place = process.held.iter().position(|held| held.end == 0);
                        process.held[place.expect("there is room")] = Held { next, end };
                        process.after = end;
                    }
                }
            }
            to.processes[index] = process;
            if is_new {
                *(if want > 0 { &mut to.draws } else { &mut to.confirms }) -= 1;
            }
            self.to(Act::Draw { token, want, fate }, to);
        }
    }

    fn new_token(&self, process: &Process, want: u8) -> u8 {
        let (at, world) = (self.at, self.world);
        let others = at.processes.iter().filter(|other| *other != process);
        let taken = match world.broken {
            Some(Broken::SharesATokenWithAnother) => others.map(|other| other.token).max(),
            Some(Broken::KeepsItsToken) => Some(process.token),
            Some(Broken::ConfirmsUnderTheSameToken) if want == 0 => Some(process.token),
            _ => None,
        };
        let next = world.draws - at.draws + world.confirms - at.confirms + 1;
        taken.filter(|token| *token > 0).unwrap_or(next)
    }

    fn hand_out(&mut self, index: usize) {
        let (at, mut to) = (self.at, self.at);
        let process = &mut to.processes[index];
        let counts = self.world.copies == 0 || self.world.broken == Some(Broken::CountsForEver);
        let held = &mut process.held[0];
        if held.end == 0 || !(counts || process.sent == at.time + 1) {
            return;
        }
        let position = held.next;
        held.next += 1;
        if held.next == held.end {
            process.held.copy_within(1.., 0);
            process.held[AHEAD - 1] = Held::default();
        }
        let (number, bit) = (position + 1, 1 << position);
        let is_shared = at.copied == at.time + 1 && at.shared & bit != 0;
        to.exposed |= if is_shared { bit } else { 0 };
        let promise = if to.handed_out & bit & !to.exposed != 0 {
            Some(Promise::Unique)
        } else {
            (number <= process.last).then_some(Promise::Rises)
        };
        process.last = number;
        to.handed_out |= bit;
        (self.next)(Act::HandOut { number }, promise, to);
    }

    /// Gives back what is left, and ends.
    fn give_back(&mut self, index: usize) {
        let process = self.at.processes[index];
        let mut tokens = [process.token, process.pending.token];
        let mut from = process.unused_from();
        if self.breaks(Broken::GivesBackForAnother) {
            let others = self.at.processes.iter().filter(|other| **other != process);
            (tokens[1], from) = (others.map(|other| other.token).max().unwrap_or(0), 0);
        }
        if self.breaks(Broken::GivesBackWhatWasUsed) {
            from = 0;
        }
        if tokens == [0; 2] {
            if process.phase == Phase::Ends {
                self.with(Act::End, index, Process::default());
            }
            return;
        }
        for (called, mut to) in
            self.call(process.at_old, process.knows, Ask::GiveBack { tokens, from })
        {
            let Called { fate, knows, .. } = called;
            let is_over =
                !matches!(called.outcome, Outcome::Failed) && process.phase == Phase::Ends;
            to.processes[index] =
                if is_over { Process::default() } else { Process { knows, ..process } };
            self.to(Act::GiveBack { tokens, from, fate }, to);
        }
    }

    /// An operator stops everything that draws, and fences the counter above all that was handed out.
    fn fence(&mut self) {
        let at = self.at;
        let is_over = at.processes.iter().all(|process| process.phase == Phase::Gone);
        if at.fences == 0 || !(is_over || self.breaks(Broken::FencesBesideProcesses)) {
            return;
        }
        let highest = u8::try_from(u32::BITS - at.handed_out.leading_zeros()).expect("small");
        let lower = u8::from(self.breaks(Broken::FencesOneLower));
        let above = highest.saturating_sub(lower);
        for (Called { fate, .. }, mut to) in self.call(false, 0, Ask::Fence { above }) {
            (to.fences, to.is_lossy) = (to.fences - 1, true);
            self.to(Act::Fence { above, fate }, to);
        }
    }

    /// Calls the product: returns the possible results, and the state after each, except for the
    /// process.
    fn call(&mut self, at_old: bool, knows: u16, ask: Ask) -> Vec<(Called, State)> {
        let (at, world) = (self.at, self.world);
        let Some(server) = (if at_old { at.old } else { Some(at.master) }) else { return vec![] };
        let splits = world.loss == Forgets::Split;
        let call = Call {
            ask,
            knows,
            server,
            time: at.time,
            may_fail: at.faults > 0,
            may_be_unconfirmed: splits && (at_old || at.losses > 0),
        };
        let answers = if let Some(known) = self.values.called.get(&call) {
            Rc::clone(known)
        } else {
            let answers = self.values.calls(world, call);
            Rc::clone(self.values.called.entry(call).or_insert(answers.into()))
        };
        let counts = |called: &&Called| {
            // An unconfirmed write does not count, and there is no other way to write it.
            !(splits && at_old && called.fate != Fate::Unconfirmed && called.wrote)
        };
        let outcomes = answers.iter().filter(counts).map(|called| {
            let Called { fate, server, .. } = *called;
            let mut to = at;
            *(if at_old { to.old.as_mut().expect("asked") } else { &mut to.master }) = server;
            if splits && fate != Fate::Unconfirmed && called.wrote && !at_old {
                to.copy = server;
            }
            to.faults -= u8::from(!matches!(fate, Fate::Answered | Fate::Unconfirmed));
            if let Some((floor, before, after)) = called.late {
                to.late = Some(Late { to_old: at_old, floor, before, after });
                to.is_lossy = true;
            }
            (called.clone(), to)
        });
        outcomes.collect()
    }

    /// The late request arrives. Nobody gets its answer.
    fn arrive(&mut self) {
        let at = self.at;
        let Some(Late { to_old, floor, before, after }) = at.late else { return };
        let mut to = at;
        let Some(server) = (if to_old { to.old.as_mut() } else { Some(&mut to.master) }) else {
            return;
        };
        let same_floor = server.floor == floor || self.breaks(Broken::StoreIgnoresTheFloor);
        let same_value = server.value == before || self.breaks(Broken::StoreIgnoresTheValue);
        if !server.is_another && same_floor && same_value {
            server.value = after;
            self.to(Act::Arrive, to);
        }
    }

    fn lose(&mut self) {
        let at = self.at;
        if self.world.loss == Forgets::Never || at.losses == 0 {
            return;
        }
        if self.world.loss != Forgets::Split && at.copy != at.master {
            self.to(Act::Copy, State { copy: at.master, ..at });
        }
        let is_another = !self.breaks(Broken::IgnoresThatItIsAnother);
        let mut to = State { losses: at.losses - 1, is_lossy: true, ..at };
        to.master = Server { is_another, ..at.copy };
        if self.world.loss == Forgets::Some {
            self.to(Act::Lose, to);
        } else if at.old.is_none() {
            (to.old, to.promoted) = (Some(at.master), at.time);
            to.processes.iter_mut().for_each(|it| it.at_old = it.phase != Phase::Gone);
            to.late = at.late.map(|late| Late { to_old: true, ..late });
            self.to(Act::Promote, to);
        }
    }
}

impl Process {
    /// The first position of its blocks that it has not handed out.
    fn unused_from(&self) -> u8 {
        if self.held[0].end > 0 { self.held[0].next } else { self.after }
    }
}

fn bits(positions: Range<u8>) -> u32 {
    positions.fold(0, |bits, position| bits | 1 << position)
}

impl State {
    /// Forgets what no longer makes a difference, and which process is which.
    fn forget(&mut self, world: Counters) {
        if world.loss == Forgets::SplitForAWhile && self.time >= self.promoted + LAST_GRANT {
            self.old = None;
        }
        if self.old.is_none() {
            self.promoted = 0;
            self.late = self.late.filter(|late| !late.to_old);
        }
        if self.losses == 0 {
            self.copy = Server::default();
            // From now on floors only rise.
            if world.broken.is_none() {
                self.late = self.late.filter(|late| late.to_old || late.floor >= self.master.floor);
            }
        }
        for process in &mut self.processes {
            for sent in [&mut process.sent, &mut process.pending.sent] {
                if world.copies == 0 || *sent != self.time + 1 {
                    *sent = 0;
                }
            }
            if process.phase == Phase::Ends {
                let token = process.pending.token;
                (process.last, process.after, process.sent) = (0, process.unused_from(), 0);
                process.pending = Pending { token, ..Pending::default() };
            }
        }
        self.processes.sort_unstable_by(|one, other| other.cmp(one));
    }
}

impl Values {
    /// Calls the product, with everything that may happen to its requests.
    fn calls(&mut self, world: Counters, call: Call) -> Vec<Called> {
        let mut called = vec![];
        let mut fates = vec![Fate::Answered];
        if call.may_be_unconfirmed {
            fates.push(Fate::Unconfirmed);
        }
        while let Some(fate) = fates.pop() {
            let mut wire = Wire {
                world,
                time: call.time,
                floor: call.server.floor.into(),
                value: self.texts[usize::from(call.server.value)].clone(),
                is_another: call.server.is_another,
                fate,
                is_fence: matches!(call.ask, Ask::Fence { .. }),
                sent: vec![],
                wrote: false,
            };
            let remembered = self.known[usize::from(call.knows)].clone();
            let settings = CounterSettings::new(COUNTER, None, None).expect("a name");
            let mut drawer = KnownCounter::with_known(settings, remembered);
            let outcome = call.ask.of(&mut drawer, &mut wire);
            if let Err(error) = &outcome {
                let kinds = [ErrorKind::StoreUnavailable, ErrorKind::StoreQuarantined];
                assert!(kinds.contains(&error.kind()), "{error}");
            }
            if fate == Fate::Answered && call.may_fail {
                for (request, sent) in (0..).zip(&wire.sent) {
                    fates.push(Fate::Lost { request });
                    if sent.is_some() {
                        fates.push(Fate::Unheard { request });
                        fates.push(Fate::UnheardAndRepeated { request });
                    }
                }
                if wire.wrote {
                    fates.push(Fate::AnsweredAndRepeated);
                }
            }
            if fate == Fate::Unconfirmed && !wire.wrote {
                continue;
            }
            let is_late = match fate {
                Fate::AnsweredAndRepeated | Fate::UnheardAndRepeated { .. } => true,
                Fate::Lost { .. } => wire.sent.last().is_some_and(Option::is_some),
                _ => false,
            };
            let server = Server {
                floor: u8::try_from(wire.floor).expect("few fences"),
                value: self.number(wire.value),
                is_another: wire.is_another,
            };
            let late = is_late.then(|| {
                let change = wire.sent.pop().flatten().expect("a write");
                let floor = u8::try_from(change.floor).expect("few fences");
                (floor, self.number(change.before), self.number(Some(change.after)))
            });
            let knows = self.number_of_known(drawer.into_known());
            let outcome = outcome.unwrap_or(Outcome::Failed);
            called.push(Called { fate, outcome, knows, server, wrote: wire.wrote, late });
        }
        called
    }

    fn number(&mut self, value: Option<String>) -> u16 {
        let next = u16::try_from(self.texts.len()).expect("few values");
        let number = *self.number_of.entry(value.clone()).or_insert(next);
        if number == next {
            self.texts.push(value);
        }
        number
    }

    fn number_of_known(&mut self, known: Known) -> u16 {
        let next = u16::try_from(self.known.len()).expect("few values");
        let number = *self.number_of_known.entry(known.clone()).or_insert(next);
        if number == next {
            self.known.push(known);
        }
        number
    }

    /// Whether each position that was drawn is handed out or free.
    fn keeps(&self, value: u16, handed_out: u32) -> bool {
        let Some(value) = &self.texts[usize::from(value)] else { return handed_out == 0 };
        let field = |name: &str| {
            let fields = value.split(' ').find_map(|field| field.strip_prefix(name));
            fields.expect("each value has it")
        };
        let mut there = handed_out;
        for range in field("free=").split(',').filter(|range| !range.is_empty()) {
            let (start, end) = range.split_once('-').expect("a range");
            for position in start.parse::<u32>().expect("small")..end.parse().expect("small") {
                there |= 1 << position;
            }
        }
        let next: u32 = field("next=").parse().expect("small");
        there == (1 << next) - 1
    }
}

impl Ask {
    fn of(self, drawer: &mut KnownCounter, wire: &mut Wire) -> Result<Outcome> {
        let tokens = |all: [u8; 2]| all.into_iter().filter(|token| *token > 0).map(token_of);
        match self {
            Self::Draw { before, token, unused_from, want, after } => {
                let draw = Draw {
                    before: tokens([before, 0]).next(),
                    token: token_of(token),
                    unused_from: unused_from.into(),
                    want: want.into(),
                    after: after.into(),
                };
                Ok(drawer.draw(wire, &draw)?.map_or(Outcome::Lost, |block| {
                    Outcome::Done(small(block.positions.start)..small(block.positions.end))
                }))
            }
            Self::GiveBack { tokens: all, from } => {
                let all: Vec<Token> = tokens(all).collect();
                drawer.give_back(wire, &all, from.into()).map(|_| Outcome::Done(0..0))
            }
            Self::Fence { above } => {
                operator::fence_tickets(wire, COUNTER, above.into()).map(|_| Outcome::Done(0..0))
            }
        }
    }
}

impl Wire {
    fn breaks(&self, rule: Broken) -> bool {
        self.world.broken == Some(rule)
    }

    fn splits(&self) -> bool {
        matches!(self.world.loss, Forgets::Split | Forgets::SplitForAWhile)
    }

    /// A server that has become another one fences the namespace first.
    fn notice(&mut self) {
        if self.is_another {
            let goes_on = if self.splits() { LAST_GRANT } else { 0 };
            self.floor = (self.floor + 1).max((self.time + TTL + goes_on).into());
            self.is_another = false;
        }
    }

    /// Whether this request is lost, and whether its answer is.
    fn fails(&self) -> (bool, bool) {
        let this = self.sent.len() - 1;
        match self.fate {
            Fate::Lost { request } => (usize::from(request) == this, false),
            Fate::Unheard { request } | Fate::UnheardAndRepeated { request } => {
                (false, usize::from(request) == this)
            }
            _ => (false, false),
        }
    }

    fn execute(&mut self, change: Option<Change>) -> Swapped {
        self.notice();
        let (now, mut floor) = (self.time.into(), self.floor);
        let hides_floor = self.breaks(Broken::CounterIgnoresTheFloor)
            || self.breaks(Broken::MissingCounterIsNew) && self.value.is_none();
        if hides_floor && !self.is_fence {
            floor = floor_of(self.value.as_deref());
        }
        let Some(Change { floor: expected, before, after }) = change else {
            return Swapped { now, done: false, floor, value: self.value.clone() };
        };
        let same_floor = expected == floor || self.breaks(Broken::StoreIgnoresTheFloor);
        let same_value = before == self.value || self.breaks(Broken::StoreIgnoresTheValue);
        let done = same_floor && same_value;
        if done && !self.breaks(Broken::AnswersBeforeTheWrite) {
            // This mutant thinks that unchanged values need not be confirmed again.
            let repeats = self.breaks(Broken::RepeatsUnconfirmed)
                && self.value.as_deref() == Some(after.as_str());
            self.wrote |= !repeats;
            self.value = Some(if self.is_fence { self.fenced(&after) } else { after.clone() });
        }
        let counts = done || self.breaks(Broken::LostSwapCounts);
        let value = if counts { Some(after) } else { self.value.clone() };
        let floor = if counts { expected } else { floor };
        Swapped { now, done: counts, floor, value }
    }

    /// The value that a fence writes.
    fn fenced(&self, after: &str) -> String {
        let kept = |name: &str| {
            let before = self.value.as_deref().unwrap_or_default();
            let field = before.split(' ').find(|field| field.starts_with(name));
            after.replace(name, field.unwrap_or(name))
        };
        if self.breaks(Broken::FenceKeepsWhatIsFree) { kept("free=") } else { after.to_owned() }
    }
}

/// The floor in a value, as the product writes it.
fn floor_of(value: Option<&str>) -> i64 {
    let field = value.and_then(|it| it.split(' ').find_map(|it| it.strip_prefix("floor=")));
    field.map_or(0, |floor| floor.parse().expect("a number"))
}

fn token_of(token: u8) -> Token {
    Token::from_bytes([token; 16])
}

fn small(position: u64) -> u8 {
    u8::try_from(position).expect("few positions")
}

fn reply<R: Request>(request: &R, outcome: R::Outcome) -> Reply<R::Outcome> {
    Reply::new(request.token(), R::OPERATION, outcome)
}

fn unavailable() -> Error {
    Error::new(ErrorKind::StoreUnavailable, "no answer")
}

impl LeaseStore for Wire {
    fn acquire(&mut self, _: &Acquire) -> Result<Reply<Acquired>> {
        unreachable!("nothing is leased")
    }

    fn renew(&mut self, _: &Renew) -> Result<Reply<Renewed>> {
        unreachable!("nothing is leased")
    }

    fn release(&mut self, _: &Release) -> Result<Reply<Released>> {
        unreachable!("nothing is leased")
    }

    /// A server that has become another one fences by itself. If a holder finds a counter behind
    /// and asks for a fence, the request never arrives, the worst case.
    fn fence(&mut self, _: &Fence) -> Result<Reply<Fenced>> {
        Err(unavailable())
    }

    fn repair(&mut self, _: &Repair) -> Result<Reply<Shortened>> {
        unreachable!("nothing is leased")
    }

    fn release_dead(&mut self, _: &ReleaseDead) -> Result<Reply<Shortened>> {
        unreachable!("nothing is leased")
    }

    fn list(&mut self, request: &List) -> Result<Reply<Listed>> {
        self.sent.push(None);
        if self.fails() != (false, false) {
            return Err(unavailable());
        }
        self.notice();
        let waits = self.splits() && !self.breaks(Broken::FencesBesideTheOldMaster);
        let listed = Listed {
            now: self.time.into(),
            has_clock: true,
            limits: Limits { max_ttl: TTL.into(), max_skew: 0, node_ids: NodeRanges::up_to(0) },
            layout: String::new(),
            format: 0,
            floor: self.floor,
            renew_above: 0,
            last_grant: if waits { LAST_GRANT.into() } else { 0 },
            incarnation_changed: false,
            nodes: vec![],
        };
        Ok(reply(request, listed))
    }

    fn swap(&mut self, request: &Swap) -> Result<Reply<Swapped>> {
        self.sent.push(request.change.clone());
        let (is_lost, is_unheard) = self.fails();
        if is_lost {
            return Err(unavailable());
        }
        let swapped = self.execute(request.change.clone());
        let is_unconfirmed =
            self.wrote && self.fate == Fate::Unconfirmed && !self.breaks(Broken::CountsUnconfirmed);
        if is_unheard || is_unconfirmed {
            return Err(unavailable());
        }
        Ok(reply(request, swapped))
    }
}
