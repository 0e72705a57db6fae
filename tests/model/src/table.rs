//! The protocol of leases over a table of texts with a compare-and-set, as a function from a state to
//! every state that can come next.
//!
//! A *text* is what a write puts into a row. It is made once, with its own version, and names the
//! text that it may replace. Whatever was sent may arrive at any later moment, again, or never, and
//! so may its answer: a text is in flight for as long as a row could still hold what it replaces.
//!
//! Process 0 leases all node ids, and may be copied into process 1 with all its memory. Process 2 is a
//! third party: it leases the last node id.

use std::{
    hash::{Hash, Hasher},
    ops::RangeInclusive,
};

use crate::explore::{Found, Next, explore};

mod tests;

const PROCESSES: usize = 3;
const SLOTS: usize = 7;
/// Names no text: a text with this as `before` can no longer replace anything.
const NOTHING: u8 = 15;
/// The process that is copied, its first copy, and the third party.
const ORIGINAL: usize = 0;
const THIRD: usize = 2;

/// The world to search: who leases, and what may go wrong.
#[allow(clippy::struct_excessive_bools, reason = "what may go wrong")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    /// How many others there are: the third party, and one more in place of a copy.
    pub(crate) others: u8,
    pub(crate) copies: u8,
    /// The number of values that ends and starts may have.
    pub(crate) seconds: u8,
    pub(crate) clock: Clock,
    pub(crate) loss: Loss,
    /// The line of history shows only in the answer to a write, as in etcd.
    pub(crate) late: bool,
    /// Renewals may name an attempt that nobody has seen written.
    pub(crate) blind: bool,
    pub(crate) operator: Operator,
    /// How many texts of a node id may be in rows and in flight at once.
    pub(crate) slots: usize,
    /// A lease starts as early as it may.
    pub(crate) early: bool,
    pub(crate) broken: Option<Broken>,
}

/// How far clocks are trusted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Clock {
    /// Not at all: a reading is any second, and a lease lasts any time.
    Any,
    /// Readings are at most the skew ahead. No lease is longer than `duration`. Time ends at `until`.
    Skewed { skew: u8, duration: u8, until: u8 },
}

/// How the store loses what it has acknowledged, once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Loss {
    Never,
    /// A backup of any earlier moment is restored, and fenced above every end that was granted
    /// before.
    Restore,
    /// A replica in the state of any earlier moment becomes the master, and fences by its own
    /// clock.
    Failover,
    /// The same, but a grant counts if the replica that may be promoted has it, and the previous
    /// master continues beside it.
    Confirmed,
    /// The same, but the previous master is believed for this long.
    Split {
        lag: u8,
    },
}

/// What an operator does, using a correct clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operator {
    Absent,
    /// Releases what a dead holder has. Stamps are at most `drift` ahead of the holder's clock.
    Releases {
        drift: u8,
    },
    /// Lowers ends that were granted while the store's and a holder's clocks were wrong together.
    Repairs,
}

/// One rule of the protocol that is broken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Broken {
    StartsBeforeTheEnd,
    IgnoresTheRow,
    IgnoresMeta,
    IgnoresTheLine,
    IgnoresTheAge,
    RenewsByToken,
    AcquiresByToken,
    ReleasesByToken,
    SharesRandomness,
    KnowsWhatCountedAlone,
    ForgetsEarlierTexts,
    CountsWhatItFinds,
    IgnoresTheFloor,
    FloorOneLower,
    FloorIgnoresLag,
    FencesWithoutAbove,
    AboveOneLower,
    AboveIgnoresLag,
    /// The client's clock decides, not the store's clock in the last answer.
    DecidesByItsClock,
    /// The same, with the floor, or the bound for renewals, wider by the skew.
    DecidesByItsClockWithFloor,
    DecidesByItsClockWithAbove,
    ReleaseGoesBelowTheStart,
    ReleaseGoesAboveTheEnd,
    ReleasesBeforeTheSeal,
    RenewSets,
    /// An end raised by an attempt without an answer counts as certain.
    RowIsCertain,
    AcquiresOverAFence,
    ExtendsByAnotherGrant,
    /// After a loss, copies are exempt only until the copy's lease ends, not until the quarantine
    /// ends.
    CopiesIgnoreTheQuarantine,
    /// An answer about one node id counts for all.
    CountsTogether,
    ReleasesTheLiving,
    CutOneLower,
    CutIgnoresSkew,
    CutIgnoresDrift,
    /// An operator's write replaces whatever is there.
    OperatorIgnoresTheRow,
    RepairsToNow,
    RepairsTheLiving,
    RepairIgnoresIds,
}

/// What must hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Promise {
    /// No second of a node id is stamped by two processes, except where copies are exempt.
    Unique,
    /// A holder that nobody copied knows the text of its own row.
    Kept,
    /// No row ends later than the longest lease and the skew from now.
    Bounded,
}

#[allow(clippy::struct_excessive_bools, reason = "what is known of a text")]
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
struct Text {
    made: bool,
    start: u8,
    end: u8,
    /// 0: nobody's.
    token: u8,
    /// It was written by a release.
    free: bool,
    /// The answer "written" may be read.
    counts: bool,
    /// The text that it replaces.
    before: u8,
    /// The meta under which it was decided, the line of history, and the second on the store's
    /// clock.
    meta: u8,
    line: u8,
    at: u8,
    by_operator: bool,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Store<const N: usize> {
    rows: [u8; N],
    meta: u8,
    line: u8,
    floor: u8,
    above: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
enum Phase {
    #[default]
    Absent,
    Asks,
    Open,
    Sealed,
    Dead,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Process<const N: usize> {
    phase: Phase,
    token: u8,
    /// Per node id: the texts that it may replace, a bit each, and the lease that counts.
    known: [u8; N],
    start: [u8; N],
    end: [u8; N],
    /// One past the last stamp.
    until: u8,
    used: u8,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct State<const N: usize> {
    texts: [[Text; SLOTS]; N],
    processes: [Process<N>; PROCESSES],
    store: Store<N>,
    /// A replica or a backup; after a split, the previous master.
    copy: Store<N>,
    time: u8,
    /// The time of the loss, plus one.
    lost_at: u8,
    /// It came back and is not fenced yet.
    unfenced: bool,
    fenced: bool,
    highest: u8,
    /// Where the exemption of copies ends: the end of what was granted or requested when a copy was
    /// made.
    exempt: u8,
    copied: u8,
}

/// What happens between two states.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(dead_code, reason = "they are printed")]
pub(crate) enum Act {
    Send { what: What, process: usize, node: usize, start: u8, end: u8, over: u8, at: u8 },
    Arrive { node: usize, start: u8, end: u8, token: u8, at_old: bool, counts: bool },
    Read { process: usize, node: usize, start: u8, end: u8 },
    Adopt { process: usize, node: usize, end: u8 },
    Stamp { process: usize, second: u8 },
    Seal { process: usize },
    Die { process: usize },
    Copy { from: usize, to: usize },
    Follow,
    Lose,
    Fence { floor: u8, above: u8 },
    Tick,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum What {
    Acquire,
    Repeat,
    Renew,
    Release,
    ReleaseDead,
    Repair,
}

/// Hashing a few words is faster than hashing many bytes.
impl Hash for Text {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { made, start, end, token, free, counts, before, meta, line, at, by_operator } =
            *self;
        let flags = [made, free, counts, by_operator].map(u8::from);
        let numbers = [start, end, token, before, meta, line, at];
        let fields = flags.into_iter().chain(numbers);
        hasher.write_u64(fields.fold(0, |all, field| all << 5 | u64::from(field)));
    }
}

impl<const N: usize> Hash for Process<N> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { phase, token, known, start, end, until, used } = *self;
        let numbers = [phase as u8, token, until, used].into_iter();
        hasher.write_u32(numbers.fold(0, |all, field| all << 8 | u32::from(field)));
        for node in 0..N {
            let numbers = [known[node], start[node], end[node]].into_iter();
            hasher.write_u32(numbers.fold(0, |all, field| all << 8 | u32::from(field)));
        }
    }
}

/// Receives a possible step, and the state after it.
type To<'a, const N: usize> = &'a mut dyn FnMut(Act, State<N>);

/// Searches all states of a world with `N` node ids, or stops when a promise is broken.
pub(crate) fn search<const N: usize>(world: World, stop_at: Promise) -> Found<Act, 3> {
    let mut first = World::first::<N>(world.others);
    world.normalize(&mut first);
    explore(first, stop_at as usize, |at, next: Next<'_, State<N>, Act>| {
        world.steps(&at, &mut |act, mut to| {
            let promise = world.breaks_promise(&to);
            world.normalize(&mut to);
            next(act, promise.map(|promise| promise as usize), to);
        });
    })
}

impl World {
    fn first<const N: usize>(others: u8) -> State<N> {
        let mut texts = [[Text::default(); SLOTS]; N];
        for of_node in &mut texts {
            of_node[0] = Text { made: true, before: NOTHING, ..Text::default() };
        }
        let absent = Process {
            phase: Phase::Absent,
            token: 0,
            known: [0; N],
            start: [0; N],
            end: [0; N],
            until: 0,
            used: 0,
        };
        let mut processes = [absent; PROCESSES];
        processes[ORIGINAL] = Process { phase: Phase::Asks, token: 1, ..absent };
        for (index, token) in [THIRD, 1].into_iter().zip(2..).take(others.into()) {
            processes[index] = Process { phase: Phase::Asks, token, ..absent };
        }
        let store = Store { rows: [0; N], meta: 0, line: 0, floor: 0, above: 0 };
        State {
            texts,
            processes,
            store,
            copy: store,
            time: 0,
            lost_at: 0,
            unfenced: false,
            fenced: false,
            highest: 0,
            exempt: 0,
            copied: 0,
        }
    }

    fn breaks(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }

    /// The skew, if clocks are trusted to that degree.
    fn skew(&self) -> u8 {
        if let Clock::Skewed { skew, .. } = self.clock { skew } else { 0 }
    }

    fn is_skewed(&self) -> bool {
        self.clock != Clock::Any
    }

    /// Whether the previous master continues.
    fn has_two(&self) -> bool {
        matches!(self.loss, Loss::Split { .. } | Loss::Confirmed)
    }

    fn decides_by_its_clock(&self) -> bool {
        self.breaks(Broken::DecidesByItsClock)
            || self.breaks(Broken::DecidesByItsClockWithFloor)
            || self.breaks(Broken::DecidesByItsClockWithAbove)
    }

    /// The seconds that a decision made now may use.
    fn decisions(&self, time: u8) -> RangeInclusive<u8> {
        if self.decides_by_its_clock() {
            time.saturating_sub(self.skew())..=time + 2 * self.skew()
        } else {
            time..=time + self.skew()
        }
    }

    /// The node ids that a process leases.
    fn wants<const N: usize>(process: usize) -> std::ops::Range<usize> {
        if process == THIRD { N - 1..N } else { 0..N }
    }

    fn steps<const N: usize>(&self, at: &State<N>, to: To<'_, N>) {
        for index in 0..PROCESSES {
            for node in Self::wants::<N>(index) {
                match at.processes[index].phase {
                    Phase::Asks => self.acquire(at, index, node, to),
                    Phase::Open => {
                        self.renew(at, index, node, to);
                        if self.breaks(Broken::ReleasesBeforeTheSeal) {
                            self.release(at, index, node, to);
                        }
                    }
                    Phase::Sealed => self.release(at, index, node, to),
                    Phase::Absent | Phase::Dead => {}
                }
                self.read(at, index, node, to);
            }
            self.live(at, index, to);
        }
        for node in 0..N {
            self.arrive(at, node, to);
            self.operate(at, node, to);
        }
        self.copy(at, to);
        self.lose(at, to);
        if let Clock::Skewed { until, .. } = self.clock
            && at.time < until
        {
            to(Act::Tick, State { time: at.time + 1, ..*at });
        }
    }

    /// The stores that can be asked: the current one and the previous master.
    fn asked<const N: usize>(&self, at: &State<N>) -> impl Iterator<Item = Store<N>> + use<N> {
        let current = !at.unfenced || self.late || self.breaks(Broken::IgnoresTheLine);
        let old = self.has_two() && at.lost_at > 0;
        [current.then_some(at.store), old.then_some(at.copy)].into_iter().flatten()
    }

    fn send<const N: usize>(
        &self,
        at: &State<N>,
        (what, process, node): (What, usize, usize),
        store: &Store<N>,
        text: Text,
        to: To<'_, N>,
    ) {
        let Some(slot) = at.texts[node][..self.slots].iter().position(|text| !text.made) else {
            return;
        };
        let mut after = *at;
        let text = Text { made: true, meta: store.meta, line: store.line, ..text };
        after.texts[node][slot] = text;
        if !text.by_operator {
            after.processes[process].known[node] |= 1 << slot;
            if self.breaks(Broken::SharesRandomness) && at.copied > 0 && process != THIRD {
                after.processes[1 - process].known[node] |= 1 << slot;
            }
        }
        let Text { start, end, at, .. } = text;
        let over = after.texts[node][usize::from(text.before)].end;
        to(Act::Send { what, process, node, start, end, over, at }, after);
    }

    fn acquire<const N: usize>(&self, at: &State<N>, index: usize, node: usize, to: To<'_, N>) {
        let me = at.processes[index];
        if me.end[node] > 0 {
            return;
        }
        for store in self.asked(at) {
            let slot = store.rows[node];
            let row = at.texts[node][usize::from(slot)];
            let is_mine = row.token == me.token && !row.free;
            let is_known = me.known[node] & 1 << slot != 0;
            if is_mine && self.breaks(Broken::AcquiresByToken)
                || is_mine && is_known && self.breaks(Broken::CountsWhatItFinds)
            {
                let mut after = *at;
                after.processes[index].known[node] |= 1 << slot;
                after.processes[index].grant::<N>(index, node, row);
                to(Act::Adopt { process: index, node, end: row.end }, after);
            }
            let is_before_fence =
                self.late && row.meta != store.meta && !self.breaks(Broken::AcquiresOverAFence);
            if is_mine && is_known && !is_before_fence {
                // Its own attempt: written again, with a fresh version.
                for second in if self.is_skewed() { self.decisions(at.time) } else { 0..=0 } {
                    let again = Text { before: slot, counts: false, at: second, ..row };
                    self.send(at, (What::Repeat, index, node), &store, again, to);
                }
                continue;
            }
            let early = u8::from(self.breaks(Broken::StartsBeforeTheEnd));
            let floor = if self.breaks(Broken::IgnoresTheFloor) { 0 } else { store.floor };
            let first = row.end.saturating_sub(early).max(floor);
            let text = Text { token: me.token, before: slot, ..Text::default() };
            let mut send = |text| self.send(at, (What::Acquire, index, node), &store, text, to);
            match self.clock {
                Clock::Any => {
                    let last = if self.early { first + 1 } else { self.seconds };
                    for start in first..last.min(self.seconds) {
                        for end in start + 1..=self.seconds {
                            send(Text { start, end, ..text });
                        }
                    }
                }
                Clock::Skewed { skew, duration, .. } => {
                    let right = self.decisions(at.time);
                    // Both clocks are wrong.
                    let wrong = if self.operator == Operator::Repairs {
                        right.end() + 1..self.seconds
                    } else {
                        0..0
                    };
                    for at in right.chain(wrong).filter(|at| row.end <= *at && floor <= *at) {
                        let start = first.max(at.saturating_sub(skew));
                        for end in at + 1..=(at + duration).min(self.seconds) {
                            send(Text { start, end, at, ..text });
                        }
                    }
                }
            }
        }
    }

    /// The texts that a process may replace, and the store that has them.
    fn replaceable<const N: usize>(
        &self,
        at: &State<N>,
        (index, node): (usize, usize),
        by_token: bool,
    ) -> Vec<(Store<N>, u8)> {
        let me = at.processes[index];
        let mut found = vec![];
        for store in self.asked(at) {
            let row = store.rows[node];
            let text = at.texts[node][usize::from(row)];
            let is_known = me.known[node] & 1 << row != 0;
            if (is_known || by_token) && text.token == me.token && !text.free {
                found.push((store, row));
            }
            if self.blind {
                for (slot, text) in (0..).zip(at.texts[node]) {
                    let is_attempt = me.known[node] & 1 << slot != 0 && !text.counts && !text.free;
                    if slot != row && is_attempt && text.before == row {
                        found.push((store, slot));
                    }
                }
            }
        }
        found
    }

    fn renew<const N: usize>(&self, at: &State<N>, index: usize, node: usize, to: To<'_, N>) {
        let me = at.processes[index];
        let by_token = self.breaks(Broken::RenewsByToken);
        for (store, slot) in self.replaceable(at, (index, node), by_token) {
            let row = at.texts[node][usize::from(slot)];
            let raises = row.start == me.start[node] && row.end > me.end[node];
            if self.breaks(Broken::CountsWhatItFinds) && raises {
                let mut after = *at;
                after.processes[index].end[node] = row.end;
                to(Act::Adopt { process: index, node, end: row.end }, after);
            }
            // An end raised by an attempt without an answer says nothing about another line.
            let is_certain = self.breaks(Broken::RowIsCertain);
            let certain = if is_certain { row.end } else { row.end.min(me.end[node]) };
            if certain <= store.above && store.above > 0 {
                continue;
            }
            let text = Text { token: me.token, before: slot, start: row.start, ..Text::default() };
            let mut send = |text| self.send(at, (What::Renew, index, node), &store, text, to);
            let sets = self.breaks(Broken::RenewSets);
            match self.clock {
                Clock::Any => {
                    let least = if sets { row.start + 1 } else { row.end };
                    for end in least..=self.seconds {
                        if end > me.end[node] || end != row.end {
                            send(Text { end, ..text });
                        }
                    }
                }
                Clock::Skewed { duration, .. } => {
                    for at in self.decisions(at.time) {
                        for end in at + 1..=(at + duration).min(self.seconds) {
                            let end = if sets { end } else { end.max(row.end) };
                            if end > me.end[node] || end > row.end {
                                send(Text { end, at, ..text });
                            }
                        }
                    }
                }
            }
        }
    }

    fn release<const N: usize>(&self, at: &State<N>, index: usize, node: usize, to: To<'_, N>) {
        let me = at.processes[index];
        let by_token = self.breaks(Broken::ReleasesByToken);
        for (store, slot) in self.replaceable(at, (index, node), by_token) {
            let row = at.texts[node][usize::from(slot)];
            let ends = if self.breaks(Broken::ReleaseGoesBelowTheStart) {
                [me.until, 0]
            } else {
                [me.until.max(row.start); 2]
            };
            for mut end in ends {
                if !self.breaks(Broken::ReleaseGoesAboveTheEnd) {
                    end = end.min(row.end);
                }
                let text = Text {
                    start: row.start.min(end),
                    end,
                    free: true,
                    before: slot,
                    at: at.time,
                    ..Text::default()
                };
                self.send(at, (What::Release, index, node), &store, text, to);
            }
        }
    }

    /// A process stamps a second, seals its Term for good, or dies.
    fn live<const N: usize>(&self, at: &State<N>, index: usize, to: To<'_, N>) {
        let me = at.processes[index];
        let with = |process| {
            let mut after = *at;
            after.processes[index] = process;
            after
        };
        if self.operator != Operator::Absent && matches!(me.phase, Phase::Asks | Phase::Open) {
            // Its requests may be in flight.
            to(Act::Die { process: index }, with(Process { phase: Phase::Dead, ..me }));
        }
        if me.phase != Phase::Open {
            return;
        }
        let latest = match self.operator {
            Operator::Releases { drift } => at.time + self.skew() + drift,
            _ => self.seconds,
        };
        let covered = Self::wants::<N>(index).map(|node| me.end[node]).min().unwrap_or(0);
        // Whatever follows stamps that skip a second also follows stamps of each.
        let second = me.until;
        if second < covered && second <= latest {
            let used = me.used | 1 << second;
            let after = with(Process { used, until: second + 1, ..me });
            to(Act::Stamp { process: index, second }, after);
        }
        to(Act::Seal { process: index }, with(Process { phase: Phase::Sealed, ..me }));
    }

    /// A process reads that its own text was written.
    fn read<const N: usize>(&self, at: &State<N>, index: usize, node: usize, to: To<'_, N>) {
        let me = at.processes[index];
        for (slot, text) in at.texts[node].iter().enumerate() {
            let is_own = me.known[node] & 1 << slot != 0 && text.token == me.token;
            if !(text.counts && is_own && !text.free) {
                continue;
            }
            let same = text.start == me.start[node] || self.breaks(Broken::ExtendsByAnotherGrant);
            let mut after = *at;
            let process = &mut after.processes[index];
            match me.phase {
                Phase::Asks if me.end[node] == 0 => process.grant::<N>(index, node, *text),
                Phase::Open if same && text.end > me.end[node] => process.end[node] = text.end,
                _ => continue,
            }
            if self.breaks(Broken::CountsTogether) && N > 1 {
                for other in Self::wants::<N>(index) {
                    let process = &mut after.processes[index];
                    if process.end[other] == 0 {
                        process.grant::<N>(index, other, *text);
                    }
                }
            }
            if self.breaks(Broken::KnowsWhatCountedAlone)
                || self.breaks(Broken::ForgetsEarlierTexts)
            {
                after.processes[index].known[node] = 1 << slot;
            }
            let Text { start, end, .. } = *text;
            to(Act::Read { process: index, node, start, end }, after);
        }
    }

    /// Whether the server accepts a text, which it refuses if it is too old.
    fn is_young(&self, text: &Text, time: u8) -> bool {
        let skew = self.skew();
        let ahead = if self.decides_by_its_clock() { 2 * skew } else { skew };
        let is_wrong_with_it = self.operator == Operator::Repairs && text.at > time + ahead;
        !self.is_skewed()
            || text.free
            || self.late
            || self.breaks(Broken::IgnoresTheAge)
            || is_wrong_with_it
            || text.at <= time + ahead && time <= text.at + skew
    }

    /// A request arrives at a server.
    fn arrive<const N: usize>(&self, at: &State<N>, node: usize, to: To<'_, N>) {
        for (slot, text) in (0_u8..).zip(at.texts[node]) {
            if !text.made || text.before == NOTHING {
                continue;
            }
            for at_old in [false, true] {
                if at_old && !(self.has_two() && at.lost_at > 0) {
                    continue;
                }
                let store = if at_old { at.copy } else { at.store };
                let is_unfenced = !at_old && at.unfenced;
                let ignores_line = self.breaks(Broken::IgnoresTheLine);
                let ignores_row = self.breaks(Broken::IgnoresTheRow)
                    || text.by_operator && self.breaks(Broken::OperatorIgnoresTheRow);
                let same_row = store.rows[node] == text.before || ignores_row;
                let same_meta = store.meta == text.meta || self.breaks(Broken::IgnoresMeta);
                let same_line =
                    store.line == text.line && !is_unfenced || ignores_line || self.late;
                if !(same_row && same_meta && same_line && self.is_young(&text, at.time))
                    || store.rows[node] == slot
                {
                    continue;
                }
                let mut counts = !is_unfenced || ignores_line && !self.late;
                counts &= !(at_old && self.loss == Loss::Confirmed);
                if let (true, Loss::Split { lag }) = (at_old, self.loss) {
                    let lost_at = at.lost_at - 1;
                    counts = at.time <= lost_at + lag || text.at <= lost_at + self.skew();
                }
                counts &= !self.late || text.line == store.line;
                counts &= !text.by_operator;
                let mut after = *at;
                let written = if at_old { &mut after.copy } else { &mut after.store };
                written.rows[node] = slot;
                after.highest = after.highest.max(text.end);
                let Text { start, end, token, .. } = text;
                let act = |counts| Act::Arrive { node, start, end, token, at_old, counts };
                if self.loss == Loss::Confirmed && at.lost_at == 0 {
                    // The replica does not have it yet.
                    to(act(false), after);
                    after.copy.rows[node] = slot;
                }
                after.texts[node][usize::from(slot)].counts |= counts;
                to(act(counts), after);
            }
        }
    }

    /// A process is copied with all its memory.
    fn copy<const N: usize>(&self, at: &State<N>, to: To<'_, N>) {
        let copy = usize::from(at.copied) + 1;
        for from in 0..copy.min(2) {
            let me = at.processes[from];
            if at.copied >= self.copies || !matches!(me.phase, Phase::Asks | Phase::Open) {
                continue;
            }
            let mut after = *at;
            after.processes[copy] = Process { used: 0, ..me };
            after.copied += 1;
            // Any two processes: one of them may lease what a third, a copy of the other, has
            // released.
            for node in 0..N {
                let own = (0..SLOTS).filter(|slot| me.known[node] & 1 << slot != 0);
                let asked = own.map(|slot| at.texts[node][slot]).filter(|text| !text.free);
                let asked = asked.map(|text| text.end).max().unwrap_or(0);
                after.exempt = after.exempt.max(asked).max(me.end[node]);
            }
            to(Act::Copy { from, to: copy }, after);
        }
    }

    /// The store loses acknowledged writes, including its meta data. It is fenced before it serves.
    fn lose<const N: usize>(&self, at: &State<N>, to: To<'_, N>) {
        if self.loss == Loss::Never {
            return;
        }
        if at.lost_at == 0 {
            if self.loss != Loss::Confirmed && at.copy != at.store {
                to(Act::Follow, State { copy: at.store, ..*at });
            }
            let mut after = State { unfenced: true, lost_at: at.time + 1, store: at.copy, ..*at };
            after.store.line += u8::from(self.loss != Loss::Restore);
            let nothing = Store { rows: after.store.rows, meta: 0, line: 0, floor: 0, above: 0 };
            after.copy = if self.has_two() { at.store } else { nothing };
            to(Act::Lose, after);
        }
        if at.fenced || !at.unfenced {
            return;
        }
        let mut fence = |floor: u8, above: u8, lag: u8| {
            let lag_of = |ignores| if self.breaks(ignores) { 0 } else { lag };
            let floor = floor + lag_of(Broken::FloorIgnoresLag);
            let floor = floor - u8::from(self.breaks(Broken::FloorOneLower));
            let above = above + lag_of(Broken::AboveIgnoresLag);
            let above = match self.broken {
                Some(Broken::AboveOneLower) => above.saturating_sub(1),
                Some(Broken::FencesWithoutAbove) => 0,
                _ => above.max(at.store.above),
            };
            let mut after = State { unfenced: false, fenced: true, ..*at };
            after.store.floor = floor.max(at.store.floor).min(self.seconds);
            after.store.above = above.min(self.seconds);
            after.store.meta += 1;
            to(Act::Fence { floor: after.store.floor, above: after.store.above }, after);
        };
        match self.clock {
            Clock::Any => fence(at.highest, at.highest, 0),
            Clock::Skewed { skew, duration, .. } => {
                let lag = if let Loss::Split { lag } = self.loss { lag } else { 0 };
                let wider = |rule| if self.breaks(rule) { skew } else { 0 };
                let floor = duration + skew + wider(Broken::DecidesByItsClockWithFloor);
                let above = skew + wider(Broken::DecidesByItsClockWithAbove);
                // Decided at any moment since, and written now.
                for now in at.lost_at - 1..=at.time + skew {
                    fence(now + floor, now + above, lag);
                }
            }
        }
    }

    /// An operator changes a row, based on the text that was read, and states what must be true.
    fn operate<const N: usize>(&self, at: &State<N>, node: usize, to: To<'_, N>) {
        let Clock::Skewed { skew, duration, .. } = self.clock else { return };
        let slot = at.store.rows[node];
        let row = at.texts[node][usize::from(slot)];
        let is_dead = |process: &Process<N>| {
            matches!(process.phase, Phase::Absent | Phase::Sealed | Phase::Dead)
        };
        let mut send = |what, end: u8| {
            let (start, before, at_second) = (row.start.min(end), slot, at.time);
            let text = Text { start, end, before, at: at_second, free: true, ..Text::default() };
            let text = Text { by_operator: true, ..text };
            self.send(at, (what, ORIGINAL, node), &at.store, text, to);
        };
        for now in at.time..=at.time + skew {
            match self.operator {
                Operator::Absent => {}
                Operator::Releases { drift } => {
                    let unused = match self.broken {
                        Some(Broken::CutOneLower) => now + skew + drift,
                        Some(Broken::CutIgnoresSkew) => now + drift + 1,
                        Some(Broken::CutIgnoresDrift) => now + skew + 1,
                        _ => now + skew + drift + 1,
                    };
                    let mut holders =
                        at.processes.iter().filter(|process| process.token == row.token);
                    let end = unused.clamp(row.start, row.end);
                    if row.token > 0
                        && end < row.end
                        && (holders.all(is_dead) || self.breaks(Broken::ReleasesTheLiving))
                    {
                        send(What::ReleaseDead, end);
                    }
                }
                Operator::Repairs => {
                    let furthest = now + duration + skew;
                    let bound = if self.breaks(Broken::RepairsToNow) { now } else { furthest };
                    let no_ids = at.processes.iter().all(|it| u32::from(it.used) >> bound == 0);
                    // Every process that was granted an implausible end is dead.
                    let is_harmless = at.processes.iter().all(|process| {
                        let known = (0..SLOTS).filter(|slot| process.known[node] & 1 << slot != 0);
                        let mut granted = known.map(|slot| at.texts[node][slot]);
                        is_dead(process)
                            || process.end[node] <= furthest
                                && !granted.any(|text| text.counts && text.end > furthest)
                    });
                    if row.end > furthest
                        && (no_ids || self.breaks(Broken::RepairIgnoresIds))
                        && (is_harmless || self.breaks(Broken::RepairsTheLiving))
                    {
                        send(What::Repair, bound);
                    }
                }
            }
        }
    }

    fn breaks_promise<const N: usize>(&self, at: &State<N>) -> Option<Promise> {
        let quarantine = if at.copied > 0 && self.loss != Loss::Never {
            !self.breaks(Broken::CopiesIgnoreTheQuarantine)
        } else {
            false
        };
        let exempt = at.exempt.max(if quarantine { at.store.floor } else { 0 });
        for (index, one) in at.processes.iter().enumerate() {
            for another in &at.processes[index + 1..] {
                // All of them lease the last node id.
                if u32::from(one.used & another.used) >> exempt != 0 {
                    return Some(Promise::Unique);
                }
            }
        }
        for node in 0..N {
            let slot = at.store.rows[node];
            let row = at.texts[node][usize::from(slot)];
            // After a fence, this applies only to what can still be renewed.
            if at.copied == 0 && !at.unfenced && row.end > at.store.above && !row.free {
                let forgets = at.processes.iter().any(|process| {
                    process.token == row.token
                        && matches!(process.phase, Phase::Asks | Phase::Open)
                        && process.known[node] & 1 << slot == 0
                });
                if forgets {
                    return Some(Promise::Kept);
                }
            }
            if let Clock::Skewed { skew, duration, .. } = self.clock
                && self.operator != Operator::Repairs
                && row.end > at.time + skew + duration
            {
                return Some(Promise::Bounded);
            }
        }
        None
    }

    /// Forgets what can no longer have an effect, and sorts the texts.
    fn normalize<const N: usize>(&self, state: &mut State<N>) {
        for node in 0..N {
            self.normalize_node(state, node);
        }
        for process in &mut state.processes {
            if matches!(process.phase, Phase::Sealed | Phase::Dead) {
                (process.start, process.end) = ([0; N], [0; N]);
            }
        }
    }

    fn normalize_node<const N: usize>(&self, state: &mut State<N>, node: usize) {
        let is_row = |state: &State<N>, slot: usize| {
            let of_copy = self.loss != Loss::Never && usize::from(state.copy.rows[node]) == slot;
            u8::from(usize::from(state.store.rows[node]) == slot) | u8::from(of_copy) << 1
        };
        let mut may_be_row: [bool; SLOTS] = std::array::from_fn(|slot| is_row(state, slot) > 0);
        let mut is_under_way = [false; SLOTS];
        for _ in 0..SLOTS {
            for (slot, text) in state.texts[node].iter().enumerate() {
                let arrives = text.made
                    && text.before != NOTHING
                    && (may_be_row[usize::from(text.before)]
                        || self.breaks(Broken::IgnoresTheRow)
                        || text.by_operator && self.breaks(Broken::OperatorIgnoresTheRow));
                if arrives
                    && (self.is_young(text, state.time) || text.at > state.time)
                    && usize::from(text.before) != slot
                {
                    is_under_way[slot] = true;
                    may_be_row[slot] = true;
                }
            }
        }
        for slot in 0..SLOTS {
            let text = state.texts[node][slot];
            if !text.made {
                continue;
            }
            let is_told = text.counts
                && !text.free
                && state.processes.iter().any(|process| {
                    let same = process.start[node] == text.start
                        || self.breaks(Broken::ExtendsByAnotherGrant);
                    process.known[node] & 1 << slot != 0
                        && process.token == text.token
                        && match process.phase {
                            Phase::Asks => process.end[node] == 0,
                            Phase::Open => text.end > process.end[node] && same,
                            _ => false,
                        }
                });
            if !is_told && !may_be_row[slot] {
                state.texts[node][slot] = Text::default();
                for process in &mut state.processes {
                    process.known[node] &= !(1 << slot);
                }
                continue;
            }
            let text = &mut state.texts[node][slot];
            text.counts = is_told;
            if !is_under_way[slot] {
                (text.before, text.at, text.line) = (NOTHING, 0, 0);
                if !self.late {
                    text.meta = 0;
                }
            }
        }
        let before = *state;
        let mut order: [usize; SLOTS] = std::array::from_fn(|slot| slot);
        order.sort_by_key(|&slot| {
            let text = before.texts[node][slot];
            let known = before.processes.map(|it| it.known[node] >> slot & 1);
            (!text.made, is_row(&before, slot), Text { before: 0, ..text }, known)
        });
        let mut place = [NOTHING; 16];
        for (new, &old) in (0_u8..).zip(&order) {
            place[old] = new;
        }
        for (new, &old) in order.iter().enumerate() {
            let text = before.texts[node][old];
            let over = if text.made { place[usize::from(text.before)] } else { 0 };
            state.texts[node][new] = Text { before: over, ..text };
        }
        for (process, was) in state.processes.iter_mut().zip(before.processes) {
            let known = (0..SLOTS).filter(|slot| was.known[node] & 1 << slot != 0);
            process.known[node] = known.map(|slot| 1 << place[slot]).sum();
        }
        state.store.rows[node] = place[usize::from(before.store.rows[node])];
        state.copy.rows[node] =
            if self.loss == Loss::Never { 0 } else { place[usize::from(before.copy.rows[node])] };
    }
}

impl<const N: usize> Process<N> {
    /// A node id is granted; with the last one the Term begins, which all of them cover.
    fn grant<const M: usize>(&mut self, index: usize, node: usize, text: Text) {
        (self.start[node], self.end[node]) = (text.start, text.end);
        let mut wanted = World::wants::<M>(index);
        if wanted.clone().all(|node| self.end[node] > 0) {
            self.phase = Phase::Open;
            self.until = wanted.by_ref().map(|node| self.start[node]).max().unwrap_or(0);
        }
    }
}
