//! The protocol in ARCHITECTURE.md for one node id (node ids never interact), as a function from a
//! state to every state that can come next.
//!
//! It is coarser than [`crate::table`]: any process with the token may renew and release, whatever
//! text is in the row. A table does only some of these steps, so what holds here holds there. This
//! model has forks, emptied stores, two clocks, repairs of a floor, and replies mistaken for
//! others; that one has copies of processes and several node ids.
//!
//! A second is a number up to [`World::seconds`]. What a clock reads, how long a request or a reply
//! takes, and whether it arrives once, again or never, are all free. A request may arrive at any
//! moment after it could first have been sent, so requests need no place in the state; a reply once
//! sent can be read forever, so it may come late, twice, after a later one or not at all.

/// More seconds, or more holders, do not fit into the key of a state.
pub(crate) const MAX_SECONDS: u8 = 7;
pub(crate) const MAX_HOLDERS: usize = 3;
/// The index of the child among the processes.
pub(crate) const CHILD: usize = MAX_HOLDERS;

/// The world to search: how many holders and seconds, and what may go wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) holders: usize,
    pub(crate) seconds: u8,
    pub(crate) clock: Clock,
    pub(crate) loss: Loss,
    /// A holder's process may fork, once.
    pub(crate) fork: bool,
    pub(crate) operator: Operator,
    pub(crate) decides: Decides,
    /// For larger worlds, leaves out what changes nothing while no rule is broken: see
    /// [`State::forget_stale_replies`] and [`World::live`].
    pub(crate) reduced: bool,
    /// The rule that is broken.
    pub(crate) mutant: Option<Mutant>,
}

/// How far the store's clock is trusted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// Not at all: a reading is any second, and a lease lasts any time.
    Any,
    /// At the time `t` every master's clock reads some second of `t..=t + skew`, so that two of
    /// them are at most the skew apart. No lease is longer than `duration`. Time ends at `until`.
    Skewed { skew: u8, duration: u8, until: u8 },
}

/// How the store loses what it has acknowledged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Loss {
    Never,
    /// A backup of any earlier moment is restored, and fenced above every end that was granted
    /// before.
    Restore,
    /// A replica in the state of any earlier moment becomes the master, and fences by its own
    /// clock.
    Failover,
    /// The same, once, and the previous master continues beside it.
    Split(Confirmed),
    /// Everything is gone, including the namespace, and an operator creates it again.
    Emptied,
}

/// What limits a master that was left behind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Confirmed {
    /// A grant counts if the replica that may be promoted has it. The master may continue forever.
    ByThePromoted,
    /// Another replica confirms what it grants for this long after the promotion, and later only
    /// requests that were sent to it before: it was stopped, then continued.
    ByAnother { lag: u8 },
}

/// The clock that fences and operators use for decisions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Decides {
    /// The store's, which is correct.
    Store,
    /// Two clocks, one of which may show any second. A store without a clock, such as etcd, has the
    /// clock of the member that answers, and an operator has their machine's. If they agree, the
    /// later one counts.
    Two,
}

/// What an operator does, under [`Clock::Skewed`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operator {
    Absent,
    /// Releases what a dead holder has. Stamps are at most `drift` ahead of the holder's clock.
    Releases {
        drift: u8,
    },
    /// Lowers ends. The store's and a holder's clock may be wrong together, at any time.
    RepairsEnds,
    /// Lowers a floor. The clock of a fence may be wrong.
    RepairsFloor,
    /// Lowers every end of any holder that looks too far ahead. No lease's clock is wrong.
    TrustsTheList,
}

/// One rule of the protocol broken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mutant {
    StartsBeforeOldEnd,
    StartsAfterLastStart,
    ExpiresByStoreTtl,
    StampsItsEnd,
    ReadsClockTwice,
    AnswersBeforeCommit,
    RenewsWithoutToken,
    RenewSets,
    ReleasesByClock,
    ReleasesBeforeClose,
    ReleasesWithoutToken,
    RestoresWithoutFence,
    IgnoresIncarnation,
    FloorOneLower,
    AcquireIgnoresFloor,
    RenewAboveOneLower,
    FloorWithoutRenewAbove,
    ChildStamps,
    ChildRenews,
    ChildReleases,
    ReplyOpensSecondTerm,
    ReplyLowersEnd,
    ReplyForAnotherGrant,
    ReplyForAnotherToken,
    ReplyForAnotherOperation,
    ReleasesTheLiving,
    CutOneLower,
    CutIgnoresSkew,
    CutIgnoresDrift,
    RepairsToNow,
    RepairsTheLiving,
    RepairIgnoresIds,
    RepairedFloorOneLower,
    CountsUnconfirmed,
    RepeatsUnconfirmed,
    FloorIgnoresLag,
    RenewAboveIgnoresLag,
    GrantsOldRequests,
    IncarnationIsTheProcess,
    DecidesByOneClock,
    DecidesByTheEarlierClock,
    InitsAsNewAfterLoss,
}

/// The node's row and the store's meta data. Tokens are counted from 1; 0 is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Store {
    pub(crate) start: u8,
    pub(crate) end: u8,
    pub(crate) token: u8,
    pub(crate) floor: u8,
    pub(crate) renew_above: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Phase {
    /// A holder: may have sent an acquire, has read no reply. The child: does not exist yet.
    #[default]
    Waiting,
    /// Has a Term.
    Open,
    /// Has sealed its Term for good; the release may be in progress.
    Closed,
    /// A child that has forgotten the lease it inherited.
    Forgotten,
}

/// One process, with its token and its Term.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process {
    pub(crate) token: u8,
    pub(crate) phase: Phase,
    pub(crate) start: u8,
    pub(crate) end: u8,
    /// One past the last stamp of the Term; its start if there is none.
    pub(crate) used_until: u8,
    /// The seconds this process has stamped, a bit for each.
    pub(crate) used: u8,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    pub(crate) store: Store,
    /// What the store comes back with when it loses its data. After another server was promoted
    /// under [`Loss::Split`]: what the previous master has.
    pub(crate) copy: Store,
    /// When that was, plus one; 0 before.
    pub(crate) promoted: u8,
    /// The previous master is being asked: it and the store swap places for one step.
    pub(crate) beside: bool,
    /// The store came back and is not fenced yet: it serves no request.
    pub(crate) lost: bool,
    /// The time, under [`Clock::Skewed`].
    pub(crate) time: u8,
    /// The largest end granted so far, under [`Loss::Restore`].
    pub(crate) highest: u8,
    /// The holders, then the child.
    pub(crate) processes: [Process; MAX_HOLDERS + 1],
    /// Per token, the replies "the node is yours from start to end", a bit for each start and end:
    /// to an acquire, to its repetition, to a renewal.
    pub(crate) grants: [u32; MAX_HOLDERS],
    /// Per token, the replies "the node is taken until end" to an acquire, a bit for each end. They
    /// are kept for the mutant that mistakes them for replies to another operation.
    pub(crate) refusals: [u8; MAX_HOLDERS],
}

/// What happens between two states.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    Acquire { token: u8, start: u8, end: u8 },
    Refuse { token: u8, end: u8 },
    Renew { token: u8, end: u8 },
    Release { token: u8, used_until: u8 },
    Copy,
    Lose,
    Return,
    Promote,
    Init,
    Fence { floor: u8, renew_above: u8 },
    Tick,
    ReadGrant { process: usize, token: u8, start: u8, end: u8 },
    ReadRefusal { process: usize, token: u8, end: u8 },
    Stamp { process: usize, second: u8 },
    Close { process: usize },
    Die { process: usize },
    ReleaseDead { end: u8 },
    Repair { end: u8 },
    RepairFloor { floor: u8 },
    Fork { process: usize },
}

/// Receives a possible step, and the state after it.
type Next<'a> = &'a mut dyn FnMut(Step, State);

impl World {
    pub(crate) fn first(&self) -> State {
        let mut first = State::default();
        for (process, token) in first.processes[..self.holders].iter_mut().zip(1..) {
            process.token = token;
        }
        first
    }

    /// Calls `next` with every step that is possible in `at`.
    pub(crate) fn steps(&self, at: &State, next: Next<'_>) {
        let next: Next<'_> = &mut |step, mut to| {
            to.forget_stale_replies(self);
            next(step, to);
        };
        for (index, process) in at.processes.iter().enumerate() {
            if process.token > 0 {
                if !at.lost {
                    self.acquire(at, process.token, next);
                    self.renew(at, *process, next);
                    self.release(at, *process, next);
                }
                self.read(at, index, next);
                self.live(at, index, next);
            }
        }
        if at.promoted > 0 && self.believes_another() {
            let swapped = |at: &State| State { store: at.copy, copy: at.store, ..*at };
            let beside = State { beside: true, ..swapped(at) };
            let next: Next<'_> =
                &mut |step, to| next(step, State { beside: false, ..swapped(&to) });
            for process in at.processes.iter().filter(|process| process.token > 0) {
                self.acquire(&beside, process.token, next);
                self.renew(&beside, *process, next);
                self.release(&beside, *process, next);
            }
        }
        if let Clock::Skewed { until, .. } = self.clock
            && at.time < until
        {
            next(Step::Tick, State { time: at.time + 1, ..*at });
        }
        self.lose(at, next);
        self.operate(at, next);
    }

    fn breaks(&self, rule: Mutant) -> bool {
        self.mutant == Some(rule)
    }

    /// The store answers an acquire, which may arrive at any time: before the Term, again during
    /// it, or even after the release.
    fn acquire(&self, at: &State, token: u8, next: Next<'_>) {
        let store = at.store;
        if store.token == token {
            let Store { start, end, .. } = store;
            let step = Step::Acquire { token, start, end };
            if self.breaks(Mutant::RepeatsUnconfirmed) {
                next(step, with_grant(*at, token, start, end));
            }
            return self.reply(at, step, token, store, start, next);
        }
        let last_end = match self.mutant {
            Some(Mutant::StartsBeforeOldEnd) => store.end.saturating_sub(1),
            Some(Mutant::StartsAfterLastStart) => store.start,
            Some(Mutant::ExpiresByStoreTtl) => 0,
            _ => store.end,
        };
        let floor = if self.breaks(Mutant::AcquireIgnoresFloor) { 0 } else { store.floor };
        let mut grant = |start, end| {
            let step = Step::Acquire { token, start, end };
            self.reply(at, step, token, Store { start, end, token, ..store }, start, next);
            if self.breaks(Mutant::AnswersBeforeCommit) {
                next(step, with_grant(*at, token, start, end));
            }
        };
        match self.clock {
            // If such a clock shows the end and the floor as passed, that means nothing. What
            // remains of the rule is that a lease starts after both.
            Clock::Any => {
                for start in last_end.max(floor)..self.seconds {
                    (start + 1..=self.seconds).for_each(|end| grant(start, end));
                }
            }
            Clock::Skewed { skew, duration, .. } => {
                let last = self.last_reading(at, skew);
                for now in (at.time..=last).filter(|now| *now >= store.end.max(floor)) {
                    let start = last_end.max(floor).max(now.saturating_sub(skew));
                    (now + 1..=now + duration).for_each(|end| grant(start, end));
                }
                if self.operator == Operator::RepairsEnds {
                    let wrong = store.end.max(floor).max(at.time + skew + 1)..self.seconds;
                    for now in wrong {
                        let start = last_end.max(floor).max(now - skew);
                        grant(start, (now + duration).min(self.seconds));
                    }
                }
            }
        }
        if self.breaks(Mutant::ReplyForAnotherOperation) {
            let mut to = *at;
            to.refusals[usize::from(token) - 1] |= 1 << store.end;
            next(Step::Refuse { token, end: store.end }, to);
        }
    }

    /// The store answers a renewal, which may arrive at any time after the Term began, even when it
    /// has ended or is closed.
    fn renew(&self, at: &State, process: Process, next: Next<'_>) {
        let Store { start, end, token, renew_above, .. } = at.store;
        let any_row = self.breaks(Mutant::RenewsWithoutToken);
        let owned = token == process.token || any_row;
        if process.phase == Phase::Waiting || !owned || end <= renew_above {
            return;
        }
        let ends = match self.clock {
            Clock::Any => 0..=self.seconds,
            Clock::Skewed { .. } if self.operator == Operator::RepairsEnds => {
                at.time + 1..=self.seconds
            }
            Clock::Skewed { skew, .. } if self.last_reading(at, skew) < at.time => return,
            Clock::Skewed { skew, duration, .. } => {
                at.time + 1..=self.last_reading(at, skew) + duration
            }
        };
        for new_end in ends {
            let end = if self.breaks(Mutant::RenewSets) { new_end } else { new_end.max(end) };
            let start = if any_row { process.start } else { start };
            if start < end {
                let step = Step::Renew { token: process.token, end };
                self.reply(at, step, process.token, Store { end, ..at.store }, start, next);
            }
        }
    }

    /// The last second that the clock of the asked master may read. (A request sent before the
    /// promotion is from a clock that is ahead by at most the skew, and is granted until a clock is
    /// ahead of that by the skew.)
    fn last_reading(&self, at: &State, skew: u8) -> u8 {
        let now = at.time + skew;
        match self.loss {
            Loss::Split(Confirmed::ByAnother { lag }) if at.beside => {
                let promoted = at.promoted - 1;
                let stopped = at.time > promoted + lag && !self.breaks(Mutant::GrantsOldRequests);
                if stopped { now.min(promoted + 2 * skew) } else { now }
            }
            _ => now,
        }
    }

    /// Whether something that the previous master grants can count.
    fn believes_another(&self) -> bool {
        match self.loss {
            Loss::Split(Confirmed::ByThePromoted) => {
                self.breaks(Mutant::CountsUnconfirmed) || self.breaks(Mutant::RepeatsUnconfirmed)
            }
            Loss::Split(Confirmed::ByAnother { .. }) => true,
            _ => false,
        }
    }

    /// The store writes `store` and sends the reply "yours from start to its end". If a replica
    /// must confirm it, then either the replica has it, too, or the reply does not count.
    fn reply(&self, at: &State, step: Step, token: u8, store: Store, start: u8, next: Next<'_>) {
        let mut written = State { store, ..*at };
        if self.loss == Loss::Restore {
            written.highest = at.highest.max(store.end);
        }
        let counts = with_grant(written, token, start, store.end);
        let must_be_confirmed = self.loss == Loss::Split(Confirmed::ByThePromoted);
        if !must_be_confirmed || at.promoted > 0 && !at.beside {
            return next(step, counts);
        }
        if at.promoted == 0 {
            next(step, State { copy: store, ..counts });
        }
        next(step, if self.breaks(Mutant::CountsUnconfirmed) { counts } else { written });
    }

    /// The store answers a release, which may arrive at any time after the Term was sealed.
    fn release(&self, at: &State, process: Process, next: Next<'_>) {
        let Store { start, end, token, .. } = at.store;
        let sent = process.phase == Phase::Closed
            || process.phase == Phase::Open && self.breaks(Mutant::ReleasesBeforeClose);
        let owned = token == process.token || self.breaks(Mutant::ReleasesWithoutToken);
        if !sent || !owned {
            return;
        }
        let used_until = match self.mutant {
            Some(Mutant::ReleasesByClock) => 0..=self.seconds,
            _ => process.used_until..=process.used_until,
        };
        for used_until in used_until {
            let store = Store { end: used_until.clamp(start, end), token: 0, ..at.store };
            next(Step::Release { token: process.token, used_until }, State { store, ..*at });
        }
    }

    /// The clock readings on which a fence or an operator may decide.
    fn decision_times(&self, at: &State, skew: u8) -> Vec<u8> {
        let right = at.time..=at.time + skew;
        if self.decides == Decides::Store {
            return right.collect();
        }
        let mut times = Vec::new();
        for one in 0..=MAX_SECONDS {
            for other in 0..=MAX_SECONDS {
                let agree = one.abs_diff(other) <= skew || self.breaks(Mutant::DecidesByOneClock);
                if agree && (right.contains(&one) || right.contains(&other)) {
                    times.push(match self.mutant {
                        Some(Mutant::DecidesByOneClock) => one,
                        Some(Mutant::DecidesByTheEarlierClock) => one.min(other),
                        _ => one.max(other),
                    });
                }
            }
        }
        times.sort_unstable();
        times.dedup();
        times
    }

    /// The store loses acknowledged writes, including its meta data: it comes back as it was at any
    /// earlier moment, is fenced, and only then serves again. A fence may also come unprompted. (A
    /// store whose `renew_above` never falls refuses more than this one.)
    fn lose(&self, at: &State, next: Next<'_>) {
        if self.loss == Loss::Never {
            return;
        }
        if let Loss::Split(_) = self.loss {
            return self.split(at, next);
        }
        if at.lost && self.breaks(Mutant::IncarnationIsTheProcess) {
            // Another server took over, no process asked it, and this server is promoted again.
            next(Step::Return, State { lost: false, ..*at });
        }
        if self.loss == Loss::Emptied {
            // An operator who creates it as `new` states that it never existed, and so granted
            // nothing.
            let was_never_there = at.grants.iter().all(|grants| *grants == 0)
                && at.processes.iter().all(|process| process.phase == Phase::Waiting);
            if !at.lost {
                next(Step::Lose, State { store: Store::default(), lost: true, ..*at });
            } else if was_never_there || self.breaks(Mutant::InitsAsNewAfterLoss) {
                next(Step::Init, State { lost: false, ..*at });
            }
        } else if !at.lost {
            let lost = !self.breaks(Mutant::RestoresWithoutFence)
                && !self.breaks(Mutant::IgnoresIncarnation);
            next(Step::Copy, State { copy: at.store, ..*at });
            next(Step::Lose, State { store: at.copy, lost, ..*at });
        }
        let mut fence = |floor: u8, renew_above: u8| {
            let floor = floor.saturating_sub(self.breaks(Mutant::FloorOneLower).into());
            let renew_above = match self.mutant {
                Some(Mutant::RenewAboveOneLower) => renew_above.saturating_sub(1),
                Some(Mutant::FloorWithoutRenewAbove) => at.store.renew_above,
                _ => renew_above,
            };
            // Beyond the last second there is nothing left to refuse.
            let floor = floor.max(at.store.floor).min(MAX_SECONDS);
            let renew_above = renew_above.min(MAX_SECONDS);
            let store = Store { floor, renew_above, ..at.store };
            next(Step::Fence { floor, renew_above }, State { store, lost: false, ..*at });
        };
        match self.clock {
            Clock::Any => fence(at.highest, at.highest),
            Clock::Skewed { skew, duration, .. } => {
                for now in self.decision_times(at, skew) {
                    fence(now + duration + skew, now + skew);
                }
                if self.operator == Operator::RepairsFloor {
                    fence(MAX_SECONDS, MAX_SECONDS - duration); // by a clock that is ahead
                }
            }
        }
    }

    /// A replica, however far behind, is promoted without the master knowing. It grants nothing
    /// before it is fenced.
    fn split(&self, at: &State, next: Next<'_>) {
        let (Loss::Split(confirmed), Clock::Skewed { skew, duration, .. }) =
            (self.loss, self.clock)
        else {
            return;
        };
        if at.promoted == 0 {
            next(Step::Copy, State { copy: at.store, ..*at });
            let before = if self.believes_another() { at.store } else { Store::default() };
            let (store, promoted) = (at.copy, at.time + 1);
            next(Step::Promote, State { store, copy: before, promoted, lost: true, ..*at });
        }
        if at.lost {
            let lag = match confirmed {
                Confirmed::ByThePromoted => 0,
                Confirmed::ByAnother { lag } => lag,
            };
            for now in at.time..=at.time + skew {
                let lag = |ignores| if self.breaks(ignores) { 0 } else { lag };
                let floor = now + duration + skew + lag(Mutant::FloorIgnoresLag);
                let floor = floor - u8::from(self.breaks(Mutant::FloorOneLower));
                let renew_above = now + skew + lag(Mutant::RenewAboveIgnoresLag);
                let (floor, renew_above) = (floor.min(MAX_SECONDS), renew_above.min(MAX_SECONDS));
                let store = Store { floor, renew_above, ..at.store };
                next(Step::Fence { floor, renew_above }, State { store, lost: false, ..*at });
            }
        }
    }

    /// An operator changes the row or the floor, using a correct clock, and states what must be
    /// true: that the holder is dead, or that every process that was granted an implausible end is
    /// dead and no id has a second beyond the new end.
    fn operate(&self, at: &State, next: Next<'_>) {
        let Clock::Skewed { skew, duration, .. } = self.clock else { return };
        let Store { start, end, token, floor, renew_above } = at.store;
        let is_dead = |process: &Process| matches!(process.phase, Phase::Closed | Phase::Forgotten);
        if self.operator == Operator::Absent {
            return;
        }
        for now in self.decision_times(at, skew) {
            let furthest = now + duration + skew;
            match self.operator {
                Operator::Absent => {}
                Operator::Releases { drift } => {
                    let unused = match self.mutant {
                        Some(Mutant::CutOneLower) => now + skew + drift,
                        Some(Mutant::CutIgnoresSkew) => now + drift + 1,
                        Some(Mutant::CutIgnoresDrift) => now + skew + 1,
                        _ => now + skew + drift + 1,
                    };
                    let holder = at.processes.iter().find(|process| process.token == token);
                    if token > 0
                        && (holder.is_some_and(is_dead) || self.breaks(Mutant::ReleasesTheLiving))
                    {
                        let end = unused.clamp(start, end);
                        let store = Store { end, token: 0, ..at.store };
                        next(Step::ReleaseDead { end }, State { store, ..*at });
                    }
                }
                Operator::RepairsEnds => {
                    let bound = if self.breaks(Mutant::RepairsToNow) { now } else { furthest };
                    let no_ids =
                        at.processes.iter().all(|process| u32::from(process.used) >> bound == 0);
                    let harmless = at.processes.iter().zip(at.grants).all(|(process, grants)| {
                        let was_granted = (furthest + 1..=self.seconds)
                            .any(|end| (0..end).any(|start| grants & grant_bit(start, end) != 0));
                        is_dead(process) || process.end <= furthest && !was_granted
                    });
                    if end > furthest
                        && (no_ids || self.breaks(Mutant::RepairIgnoresIds))
                        && (harmless || self.breaks(Mutant::RepairsTheLiving))
                    {
                        let store =
                            Store { start: start.min(bound), end: bound, token: 0, ..at.store };
                        next(Step::Repair { end: bound }, State { store, ..*at });
                    }
                }
                Operator::TrustsTheList => {
                    if end > furthest {
                        let store = Store {
                            start: start.min(furthest),
                            end: furthest,
                            token: 0,
                            ..at.store
                        };
                        next(Step::Repair { end: furthest }, State { store, ..*at });
                    }
                }
                Operator::RepairsFloor => {
                    let lower = furthest - u8::from(self.breaks(Mutant::RepairedFloorOneLower));
                    if floor > furthest && !at.lost {
                        let renew_above = renew_above.min(lower.saturating_sub(duration));
                        let store = Store { floor: lower, renew_above, ..at.store };
                        next(Step::RepairFloor { floor: lower }, State { store, ..*at });
                    }
                }
            }
        }
    }

    /// A process reads a reply. Replies are bound to their token and operation. One Term per token:
    /// the first grant opens it, later replies can only raise its end, and only those with
    /// the same start. (An acquire that arrives late is granted a second lease; if it starts later,
    /// another holder may have had one between the two.)
    fn read(&self, at: &State, index: usize, next: Next<'_>) {
        let process = at.processes[index];
        if !matches!(process.phase, Phase::Waiting | Phase::Open) {
            return;
        }
        let opens = process.phase == Phase::Waiting || self.breaks(Mutant::ReplyOpensSecondTerm);
        for (token, (grants, refusals)) in (1..).zip(at.grants.into_iter().zip(at.refusals)) {
            if token != process.token && !self.breaks(Mutant::ReplyForAnotherToken) {
                continue;
            }
            for end in 1..=self.seconds {
                for start in (0..end).filter(|start| grants & grant_bit(*start, end) != 0) {
                    let same = start == process.start || self.breaks(Mutant::ReplyForAnotherGrant);
                    let after = if opens {
                        Process { phase: Phase::Open, start, end, used_until: start, ..process }
                    } else if same && self.breaks(Mutant::ReplyLowersEnd) {
                        Process { end, ..process }
                    } else if same {
                        Process { end: end.max(process.end), ..process }
                    } else {
                        continue;
                    };
                    let step = Step::ReadGrant { process: index, token, start, end };
                    next(step, at.with(index, after));
                }
                // The mutant's Term mistakes it for the reply to a renewal.
                if process.phase == Phase::Open && refusals & 1 << end != 0 {
                    let after = Process { end: end.max(process.end), ..process };
                    let step = Step::ReadRefusal { process: index, token, end };
                    next(step, at.with(index, after));
                }
            }
        }
    }

    /// A process with a Term stamps a second, seals the Term for good, or forks.
    fn live(&self, at: &State, index: usize, next: Next<'_>) {
        let process = at.processes[index];
        if process.phase == Phase::Waiting && self.operator != Operator::Absent {
            // Its request may be in progress, or granted.
            let dead = Process { phase: Phase::Closed, ..process };
            next(Step::Die { process: index }, at.with(index, dead));
        }
        if process.phase != Phase::Open {
            return;
        }
        let seconds = match self.mutant {
            Some(Mutant::StampsItsEnd) => process.used_until..(process.end + 1).min(self.seconds),
            Some(Mutant::ReadsClockTwice) => process.used_until..self.seconds,
            // Whatever follows a stamp that skips seconds also follows stamps of each of them.
            _ if self.reduced => process.used_until..process.end.min(process.used_until + 1),
            _ => process.used_until..process.end,
        };
        let latest = match (self.clock, self.operator) {
            (Clock::Skewed { skew, .. }, Operator::Releases { drift }) => at.time + skew + drift,
            _ => self.seconds,
        };
        // Another id in the last second takes the next sequence number, and is not a new state.
        for second in seconds.filter(|second| *second <= latest) {
            let used = process.used | 1 << second;
            let after = Process { used, used_until: second + 1, ..process };
            next(Step::Stamp { process: index, second }, at.with(index, after));
        }

        // The end of a sealed Term no longer matters.
        let sealed = Process { phase: Phase::Closed, end: process.used_until, ..process };
        next(Step::Close { process: index }, at.with(index, sealed));

        if self.fork && at.processes[CHILD].phase == Phase::Waiting {
            let inherited = Process { used: 0, ..process };
            let child = match self.mutant {
                Some(Mutant::ChildStamps) => inherited,
                // It continues with the seconds that renewals grant from now on.
                Some(Mutant::ChildRenews) => Process { used_until: process.end, ..inherited },
                Some(Mutant::ChildReleases) => Process { phase: Phase::Closed, ..inherited },
                // If it leases again, it does so under its own token, like any other holder.
                _ => Process { phase: Phase::Forgotten, ..Process::default() },
            };
            next(Step::Fork { process: index }, at.with(CHILD, child));
        }
    }
}

impl State {
    fn with(&self, index: usize, process: Process) -> Self {
        let mut to = *self;
        to.processes[index] = process;
        to
    }

    /// Forgets the replies that no process reads any more: those to a sealed Term. A reduced world
    /// also forgets those that an open Term rejects or cannot use: replies about another grant, and
    /// replies that do not raise its end.
    fn forget_stale_replies(&mut self, world: &World) {
        let [holders @ .., child] = &self.processes;
        for (grants, process) in self.grants.iter_mut().zip(holders) {
            let raise = |end| grant_bit(process.start, end);
            *grants &= match process.phase {
                Phase::Open if world.reduced => (process.end + 1..=world.seconds).map(raise).sum(),
                Phase::Closed if child.token != process.token => 0,
                _ => u32::MAX,
            };
        }
    }
}

/// The state after the reply "yours from start to end" was also sent.
fn with_grant(mut to: State, token: u8, start: u8, end: u8) -> State {
    to.grants[usize::from(token) - 1] |= grant_bit(start, end);
    to
}

/// The bit of the reply "from start to end".
fn grant_bit(start: u8, end: u8) -> u32 {
    1 << (u32::from(end) * u32::from(end - 1) / 2 + u32::from(start))
}
