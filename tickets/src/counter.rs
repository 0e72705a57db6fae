//! The rules of a counter: which numbers a draw gets, what is given back, when a counter is refused.
//! Pure functions over the value that a store keeps; [`KnownCounter`] applies them to a store.
//!
//! A *position* counts from 0, and stands for the number `start + position * step`. A *block* is a range
//! of positions that one holder drew. Invariant: below `next`, each position is free, or was drawn
//! once, and no position is both. At `next` and above, none was ever drawn and kept. So blocks of
//! different holders are disjoint, whatever clocks show: no rule here reads one.
//!
//! A store only reads this text, or replaces it if neither the text nor the floor of the namespace
//! has changed (`LeaseStore::swap`), or lists all of them. So the rules are written once, and not
//! in SQL and Lua as well. All blocks of a holder are under one token. Each request names the token
//! that the holder knows and replaces it: a draw that is repeated under its token gets the same
//! block, and only who knows the token of a block can give some of it back, once.
//!
//! **A store that may have forgotten blocks is not drawn from.** A counter knows the floor that its
//! namespace had when it was made or last fenced. Each fence raises the floor, and so does a server
//! that is another one or lost its data: then the counter is refused, until an operator has it go
//! on above a number. No time makes a counter usable again, as blocks have no end.
//!
//! Of many processes that change one counter at once, one wins. The others try at once with the
//! value that has won, then after a random pause whose bound doubles up to 2 seconds. What was
//! known before a pause is read again: the pause must not lie between a read and the write that
//! rests on it, or nearly every write comes too late.

#[cfg(test)]
mod tests;

use std::{cell::Cell, fmt::Write as _, ops::Range, thread, time::Duration};

use randflake_leases::{
    Change, Error, ErrorKind, Fence, LeaseStore, Result, Swap, Swapped, Token,
    bindings::{check_counter, outcome_of, random_bytes},
};

/// The largest number: numbers up to here are exact in JavaScript and in the Lua of Redis.
pub const LARGEST: u64 = (1 << 53) - 1;

/// How many ranges that were given back a counter keeps. Of more, the shortest is lost.
const MOST_FREE: usize = 256;

/// How many blocks a counter knows the holder of. Of more, that of the holder that was heard of longest
/// ago is forgotten: with its next request it gives up what it holds.
const MOST_HELD: usize = 512;

/// How many blocks of one holder a counter knows. Of more, the first cannot be given back.
const MOST_OF_ONE: usize = 32;

/// How often a change is tried while others change the counter.
const TRIES: u32 = 40;

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What a store keeps of a counter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Counter {
    /// The first number, and how much each is more than the one before.
    pub start: u64,
    pub step: u64,
    /// The first position that was never drawn. It never falls: a counter that is behind what a holder has
    /// drawn has lost blocks.
    pub next: u64,
    /// The floor of the namespace when the counter was made or fenced. With another floor, blocks may
    /// have been lost since.
    pub floor: i64,
    /// Positions that were given back: sorted, disjoint, not adjacent to each other, all before `next`.
    pub free: Vec<Range<u64>>,
    /// Who holds which block: the holder that was heard of longest ago first, and its blocks as they
    /// rise. All of one holder have the same token.
    pub held: Vec<(Token, Range<u64>)>,
}

/// Which counter a caller means.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CounterSettings {
    pub name: String,
    /// What a caller insists on; `None` takes that of the counter, and 1 for a new one.
    pub start: Option<u64>,
    pub step: Option<u64>,
}

/// Asks for a block, or only whether the blocks that a holder has are still its own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Draw {
    /// The token under which the counter has the blocks of this holder; `None` if it has none.
    pub before: Option<Token>,
    /// The one from now on: new for each draw, the same when a draw is repeated.
    pub token: Token,
    /// No position before this one will be given back.
    pub unused_from: u64,
    /// How many positions. Fewer may be drawn. Zero draws none, and confirms what is held.
    pub want: u64,
    /// The end of this holder's last block, so that its blocks rise; 0 if it had none. No position
    /// before it is drawn. A counter whose `next` is less has lost blocks, and is refused. After a
    /// fork, the parent may have given back what the child did not see used: a child says 0, or where
    /// the parent's numbers ended at the fork.
    pub after: u64,
}

/// A block that was drawn; empty where none was wanted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Block {
    pub positions: Range<u64>,
    pub start: u64,
    pub step: u64,
}

impl Block {
    /// Returns the number of a position of this block.
    #[must_use]
    pub fn number(&self, position: u64) -> u64 {
        self.start + position * self.step
    }
}

impl CounterSettings {
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: not the name of a counter, or a start or step that is not in
    /// 1..=[`LARGEST`].
    pub fn new(name: &str, start: Option<u64>, step: Option<u64>) -> Result<Self> {
        check_counter(name)?;
        for (what, given) in [("start", start), ("step", step)] {
            if given.is_some_and(|given| !(1..=LARGEST).contains(&given)) {
                return Err(Error::invalid_argument(format!(
                    "the {what} of a counter must be between 1 and 2^53 - 1, got {}",
                    given.unwrap_or_default()
                )));
            }
        }
        Ok(Self { name: name.to_owned(), start, step })
    }

    fn make(&self, floor: i64) -> Counter {
        let (start, step) = (self.start.unwrap_or(1), self.step.unwrap_or(1));
        Counter { start, step, next: 0, floor, free: Vec::new(), held: Vec::new() }
    }

    /// Refuses a counter with another start or step.
    fn check(&self, counter: &Counter) -> Result<()> {
        for (what, asked, has) in
            [("start", self.start, counter.start), ("step", self.step, counter.step)]
        {
            if asked.is_some_and(|asked| asked != has) {
                return Err(Error::invalid_argument(format!(
                    "counter {:?} has the {what} {has}, got {what}={}; leave it out, or use another \
                     counter",
                    self.name,
                    asked.unwrap_or_default()
                )));
            }
        }
        Ok(())
    }

    /// Returns the counter that a store has, or a new one, unless blocks may have been lost.
    fn usable(&self, found: Option<Counter>, floor: i64) -> Result<Counter> {
        // Where a namespace was never fenced, nothing can be missing.
        let counter = found.unwrap_or_else(|| self.make(0));
        self.check(&counter)?;
        if counter.floor == floor { Ok(counter) } else { Err(self.may_have_lost()) }
    }

    #[cold]
    fn may_have_lost(&self) -> Error {
        Error::new(
            ErrorKind::StoreQuarantined,
            format!(
                "the store may have lost blocks of counter {:?}, as by a restart without its data, a \
                 failover or a restored backup: stop what draws from it, then fence it above every \
                 number that was handed out, by fence_tickets in Python, fenceTickets in Node.js or \
                 `randflake tickets fence`",
                self.name
            ),
        )
    }

    #[cold]
    fn used_up(&self) -> Error {
        Error::new(
            ErrorKind::LifetimeOver,
            format!("counter {:?} has handed out all numbers up to 2^53 - 1", self.name),
        )
    }
}

#[cold]
pub(super) fn unreadable(name: &str) -> Error {
    Error::invalid_argument(format!(
        "the store has a value of counter {name:?} that this version cannot read; use the version that \
         wrote it"
    ))
}

/// Draws a block, and confirms those that the holder has. Repeated with the same token, it returns the
/// same block. `None`: they are not under the token of before. The process was copied, and a copy was
/// faster; or the counter has forgotten them. What the holder has is not its own any more.
///
/// # Errors
///
/// [`StoreQuarantined`](ErrorKind::StoreQuarantined): the store may have lost blocks.
/// [`LifetimeOver`](ErrorKind::LifetimeOver): no number is left.
/// `INVALID_ARGUMENT`: the counter has another start or step.
pub fn draw(
    settings: &CounterSettings,
    found: Option<Counter>,
    floor: i64,
    draw: &Draw,
) -> Result<Option<(Counter, Block)>> {
    let mut counter = settings.usable(found, floor)?;
    let Draw { before, token, unused_from, want, after } = *draw;
    let Counter { start, step, .. } = counter;
    // As this very draw has left it: the block that it drew comes last.
    if let Some((_, last)) = counter.held.iter().rfind(|(holder, _)| *holder == token) {
        let positions = if want == 0 { 0..0 } else { last.clone() };
        return Ok(Some((counter, Block { positions, start, step })));
    }
    let mut held = before.map(|before| counter.take(&[before]));
    if held.as_ref().is_some_and(Vec::is_empty) {
        return Ok(None);
    }
    if want > 0
        && let Some(held) = &mut held
    {
        held.retain(|block| block.end > unused_from);
        held.drain(..(held.len() + 1).saturating_sub(MOST_OF_ONE));
    }
    if after > counter.next {
        return Err(settings.may_have_lost());
    }
    let positions = if want == 0 { 0..0 } else { counter.draw(want, after) };
    if positions.is_empty() && want > 0 {
        return Err(settings.used_up());
    }
    let drawn = Some(positions.clone()).filter(|positions| !positions.is_empty());
    counter.held.extend(held.into_iter().flatten().chain(drawn).map(|block| (token, block)));
    let forgotten = counter.held.len().saturating_sub(MOST_HELD);
    counter.held.drain(..forgotten);
    Ok(Some((counter, Block { positions, start, step })))
}

/// Gives back the positions of a holder's blocks from `unused_from` on, and forgets the holder. `tokens`
/// are the one that it knows, and that of a request without an answer. `None`: there is nothing to give
/// back, since nothing is held under them, as when this is repeated.
///
/// # Errors
///
/// [`StoreQuarantined`](ErrorKind::StoreQuarantined): the store may have lost blocks.
pub fn give_back(
    settings: &CounterSettings,
    found: Option<Counter>,
    floor: i64,
    tokens: &[Token],
    unused_from: u64,
) -> Result<Option<Counter>> {
    let mut counter = settings.usable(found, floor)?;
    let held = counter.take(tokens);
    if held.is_empty() {
        return Ok(None);
    }
    for block in held {
        let unused = block.start.max(unused_from)..block.end;
        if !unused.is_empty() {
            counter.free(unused);
        }
    }
    Ok(Some(counter))
}

/// Makes a counter, or raises it, so that every number from now on is greater than `above`. Nobody can
/// give anything back that was drawn before.
///
/// # Errors
///
/// `INVALID_ARGUMENT`: an `above` that is greater than every number, or the counter has another start
/// or step.
pub fn fence(
    settings: &CounterSettings,
    found: Option<Counter>,
    floor: i64,
    above: u64,
) -> Result<Counter> {
    if above > LARGEST {
        return Err(Error::invalid_argument(format!(
            "a counter is fenced above a number between 0 and 2^53 - 1, got {above}"
        )));
    }
    let counter = found.unwrap_or_else(|| settings.make(floor));
    settings.check(&counter)?;
    let Counter { start, step, .. } = counter;
    let first = above.checked_sub(start).map_or(0, |beyond| beyond / step + 1);
    let next = counter.next.max(first);
    Ok(Counter { start, step, next, floor, free: Vec::new(), held: Vec::new() })
}

impl Counter {
    /// Returns the first position whose number would be too large.
    pub(super) fn end(&self) -> u64 {
        LARGEST.checked_sub(self.start).map_or(0, |most| most / self.step + 1)
    }

    /// Returns the first position from which on nothing is in use: those before `next` were given back.
    pub(super) fn first_unused(&self) -> u64 {
        self.free.last().filter(|last| last.end == self.next).map_or(self.next, |last| last.start)
    }

    /// Draws positions that are not before `after`; none if no number is left.
    fn draw(&mut self, want: u64, after: u64) -> Range<u64> {
        let index = self.free.iter().position(|free| free.start >= after);
        let free = index.map_or(self.next..self.next, |index| self.free.remove(index));
        let most = free.start.saturating_add(want).min(self.end());
        // What is given back up to `next` goes on there.
        let end = if free.end == self.next { most } else { most.min(free.end) };
        self.next = self.next.max(end);
        if let Some(index) = index
            && end < free.end
        {
            self.free.insert(index, end..free.end);
        }
        free.start..end
    }

    /// Removes what is held under these tokens, and returns it.
    fn take(&mut self, tokens: &[Token]) -> Vec<Range<u64>> {
        let taken = self.held.extract_if(.., |(holder, _)| tokens.contains(holder));
        taken.map(|(_, block)| block).collect()
    }

    /// Adds a range that was drawn to those that are free.
    fn free(&mut self, range: Range<u64>) {
        let index = self.free.partition_point(|free| free.start < range.start);
        self.free.insert(index, range);
        self.free.dedup_by(|later, earlier| {
            let adjacent = earlier.end == later.start;
            if adjacent {
                earlier.end = later.end;
            }
            adjacent
        });
        if self.free.len() > MOST_FREE {
            let shortest = (0..self.free.len())
                .min_by_key(|index| self.free[*index].end - self.free[*index].start);
            self.free.remove(shortest.expect("there are many"));
        }
    }

    /// Writes the value that a store keeps.
    #[must_use]
    pub fn to_value(&self) -> String {
        let Self { start, step, next, floor, free, held } = self;
        let mut value = format!("1 start={start} step={step} next={next} floor={floor} free=");
        for (index, Range { start, end }) in free.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(value, "{comma}{start}-{end}").expect("a String takes all");
        }
        value.push_str(" held=");
        for (index, (token, Range { start, end })) in held.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let token = u128::from_be_bytes(*token.as_bytes());
            write!(value, "{comma}{token:032x}:{start}-{end}").expect("a String takes all");
        }
        value
    }

    /// Reads a value; `None` if it is none, or one of another version.
    pub fn from_value(value: &str) -> Option<Self> {
        let mut fields = value.split(' ');
        if fields.next() != Some("1") {
            return None;
        }
        let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
        let counter = Self {
            start: number(field("start")?)?,
            step: number(field("step")?)?,
            next: number(field("next")?)?,
            floor: field("floor")?.parse().ok()?,
            free: items(field("free")?).map(range).collect::<Option<_>>()?,
            held: items(field("held")?).map(holder).collect::<Option<_>>()?,
        };
        (fields.next().is_none() && counter.is_sound()).then_some(counter)
    }

    /// Whether the rules can have written it.
    fn is_sound(&self) -> bool {
        let Self { start, step, next, free, held, .. } = self;
        let numbers = 1..=LARGEST;
        let mut drawn: Vec<&Range<u64>> = held.iter().map(|(_, block)| block).chain(free).collect();
        drawn.sort_unstable_by_key(|range| range.start);
        numbers.contains(start)
            && numbers.contains(step)
            && *next <= self.end()
            && free.is_sorted_by(|earlier, later| earlier.end < later.start)
            && drawn.is_sorted_by(|earlier, later| earlier.end <= later.start)
            && drawn.last().is_none_or(|last| last.end <= *next)
    }
}

/// Returns how long to wait after so many losses to others. The first one is repeated at once, with the
/// value that has won. After that many try at the same time, and all but one of them in vain: each
/// loss doubles the time over which they spread, until there is about one in the time that a try
/// takes.
fn pause_after(losses: u32) -> Option<Duration> {
    let doubled = losses.checked_sub(2)?;
    let longest = LONGEST_PAUSE.min(Duration::from_millis(2 << doubled.min(16)));
    let share = f64::from(u16::from_le_bytes(random_bytes())) / f64::from(u16::MAX);
    Some(longest.mul_f64(share))
}

fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(move |_| !list.is_empty())
}

/// Reads a number without a sign.
fn number(text: &str) -> Option<u64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

fn range(text: &str) -> Option<Range<u64>> {
    let (start, end) = text.split_once('-')?;
    let range = number(start)?..number(end)?;
    (!range.is_empty()).then_some(range)
}

fn holder(text: &str) -> Option<(Token, Range<u64>)> {
    let (token, block) = text.split_once(':')?;
    let is_hex = token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    let token = u128::from_str_radix(token, 16).ok().filter(|_| is_hex)?;
    Some((Token::from_bytes(token.to_be_bytes()), range(block)?))
}

/// A counter in a store, and its last known value, so that a draw takes one request if nobody else has
/// changed the counter.
#[derive(Debug)]
pub struct KnownCounter {
    settings: CounterSettings,
    /// The floor and the value that the store had last.
    known: Option<(i64, Option<String>)>,
    /// For tests.
    sleep: fn(Duration),
}

impl KnownCounter {
    #[must_use]
    pub fn new(settings: CounterSettings) -> Self {
        Self { settings, known: None, sleep: thread::sleep }
    }

    /// Makes one as [`into_known`](Self::into_known) has left it.
    #[must_use]
    pub fn with_known(settings: CounterSettings, known: Option<(i64, Option<String>)>) -> Self {
        Self { known, ..Self::new(settings) }
    }

    #[must_use]
    pub fn into_known(self) -> Option<(i64, Option<String>)> {
        self.known
    }

    #[must_use]
    pub fn settings(&self) -> &CounterSettings {
        &self.settings
    }

    /// Draws a block; see [`draw`]. After an error, the same draw may be repeated.
    ///
    /// # Errors
    ///
    /// As [`draw`] and [`LeaseStore::swap`].
    pub fn draw(&mut self, store: &mut dyn LeaseStore, asked: &Draw) -> Result<Option<Block>> {
        let is_behind = Cell::new(false);
        let drawn = self.change(store, |settings, found, floor| {
            is_behind.set(match &found {
                Some(counter) => counter.floor == floor && counter.next < asked.after,
                None => floor == 0 && asked.after > 0,
            });
            draw(settings, found, floor, asked)
        });
        let is_refused = match &drawn {
            Ok(drawn) => drawn.is_none(),
            Err(error) => error.kind() == ErrorKind::StoreQuarantined,
        };
        if is_behind.get() && is_refused {
            // The store was set back: what others drew may be lost, too.
            let fence = Fence { token: Token::random() };
            outcome_of(&fence, store.fence(&fence))?;
            return Err(self.settings.may_have_lost());
        }
        drawn
    }

    /// Gives back what is unused; see [`give_back`]. May be repeated after an error. Returns whether
    /// anything was held.
    ///
    /// # Errors
    ///
    /// As [`give_back`] and [`LeaseStore::swap`].
    pub fn give_back(
        &mut self,
        store: &mut dyn LeaseStore,
        tokens: &[Token],
        unused_from: u64,
    ) -> Result<bool> {
        let given_back = self.change(store, |settings, found, floor| {
            let counter = give_back(settings, found, floor, tokens, unused_from)?;
            Ok(counter.map(|counter| (counter, ())))
        })?;
        Ok(given_back.is_some())
    }

    /// Fences the counter; see [`fence`]. Returns it as it is then. Refuses if the namespace has
    /// another floor than this one, which somebody has looked at before.
    ///
    /// # Errors
    ///
    /// As [`fence`] and [`LeaseStore::swap`].
    pub fn fence_at(
        &mut self,
        store: &mut dyn LeaseStore,
        above: u64,
        expected: i64,
    ) -> Result<Counter> {
        let fenced = self.change(store, |settings, found, floor| {
            if floor != expected {
                return Err(Error::new(
                    ErrorKind::StoreUnavailable,
                    "the namespace was fenced meanwhile; fence the counter again",
                ));
            }
            let counter = fence(settings, found, floor, above)?;
            Ok(Some((counter.clone(), counter)))
        })?;
        Ok(fenced.expect("a fence always changes the counter"))
    }

    /// Reads the counter, if there is one, and the floor of the namespace.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::swap`].
    pub fn read(&mut self, store: &mut dyn LeaseStore) -> Result<(Option<Counter>, i64)> {
        let (floor, value) = self.swap(store, None)?.1;
        Ok((self.parse(value.as_deref())?, floor))
    }

    /// Changes the counter as `decide` says, and decides again whenever others have changed it
    /// meanwhile. `None`: nothing is to be changed.
    fn change<T>(
        &mut self,
        store: &mut dyn LeaseStore,
        decide: impl Fn(&CounterSettings, Option<Counter>, i64) -> Result<Option<(Counter, T)>>,
    ) -> Result<Option<T>> {
        let mut is_current = false;
        for losses in 0..TRIES {
            if let Some(pause) = pause_after(losses) {
                (self.sleep)(pause);
                // Old by now: others have gone on.
                self.known = None;
            }
            // Forgotten until the store has answered.
            let (floor, before) = if let Some(known) = self.known.take() {
                known
            } else {
                is_current = true;
                self.swap(store, None)?.1
            };
            let decided = self
                .parse(before.as_deref())
                .and_then(|counter| decide(&self.settings, counter, floor));
            let (counter, outcome) = match decided {
                Ok(Some(decided)) => decided,
                // Nothing is refused for what the counter was earlier.
                _ if !is_current => continue,
                Ok(None) => {
                    self.known = Some((floor, before));
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            let change = Change { floor, before, after: counter.to_value() };
            let sent = (change.floor, change.before.clone());
            let (done, known) = self.swap(store, Some(change))?;
            if done {
                self.known = Some(known);
                return Ok(Some(outcome));
            }
            // PostgreSQL says what there was before it waited for another one that writes.
            self.known = Some(known).filter(|known| *known != sent);
            is_current = true;
        }
        Err(Error::new(
            ErrorKind::StoreUnavailable,
            format!(
                "others changed counter {:?} in each of {TRIES} tries; try again, or have them draw \
                 larger blocks (min_block)",
                self.settings.name
            ),
        ))
    }

    fn parse(&self, value: Option<&str>) -> Result<Option<Counter>> {
        let read =
            |value| Counter::from_value(value).ok_or_else(|| unreadable(&self.settings.name));
        value.map(read).transpose()
    }

    /// Sends one request, under a token of its own: a late answer to the request before would tell
    /// something else.
    fn swap(
        &self,
        store: &mut dyn LeaseStore,
        change: Option<Change>,
    ) -> Result<(bool, (i64, Option<String>))> {
        let counter = self.settings.name.clone();
        let request = Swap { token: Token::random(), counter, change };
        let Swapped { done, floor, value, .. } = outcome_of(&request, store.swap(&request))?;
        let wrote = request.change.map(|change| (change.floor, Some(change.after)));
        if done && wrote.is_none_or(|wrote| wrote != (floor, value.clone())) {
            return Err(Error::new(
                ErrorKind::StoreUnavailable,
                "the store says that it wrote a counter, and has another value; nothing was drawn",
            ));
        }
        Ok((done, (floor, value)))
    }
}
