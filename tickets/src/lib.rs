//! Sequential numbers, from a counter of a store that [leases](randflake_leases) node ids, too.
//!
//! Start with [`Tickets::builder`]; [`operator`] has what an operator does with counters. There is no
//! store here, and no lease of a node id.
//!
//! **Why no number repeats.** The blocks of all processes are disjoint: the rules of the counter, in
//! `counter.rs`. A process hands out each position of its blocks at most once: `Positions` and
//! `Blocks` of the core. What it gives back was sealed before. A forked child never uses what it
//! inherited. Of copies of a process one goes on, a minute later: `confirmed.rs`. Besides,
//! clocks decide only how much is drawn and when the store is asked again.
#![allow(clippy::doc_markdown, reason = "SQLite is a name")]

mod builder;
mod confirmed;
#[doc(hidden)]
pub mod counter;
mod dated;
mod metrics;
pub mod operator;
#[cfg(test)]
#[path = "../../tests/simulation/tickets.rs"]
mod simulation;
mod size;
mod source;
mod supply;
#[cfg(test)]
mod tests;
mod thread;

use std::{
    fmt,
    ops::Range,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::park_timeout,
    time::Duration,
};

use randflake::{Clock, Error, ErrorKind, Result, Wait, bindings::ForkId};
use randflake_leases::{
    Location,
    bindings::{POLL_INTERVAL, PerProcess, Polling, boot, passes, unavailable},
};

use self::{
    builder::Options,
    size::Sizes,
    source::Source,
    supply::{Shared, State, Supply},
    thread::run,
};
pub use self::{
    builder::TicketsBuilder,
    dated::{DateForm, DatedTickets, Period},
    metrics::TicketsMetrics,
};

#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../README.md")]
struct CrateReadme;

/// How long [`Tickets::close`] waits for the store.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time that [`Tickets::ready_in`] returns, and that a call waits before it looks again whether
/// it is still in the same process.
const LONGEST_POLL: Duration = Duration::from_millis(50);

/// Hands out 1, 2, 3 and so on from a named counter of a store, to all processes that draw from it.
///
/// A process draws a block of numbers and hands them out without the store; a thread draws the next
/// block ahead. So the numbers of one process rise, those of several processes are mixed, and none is
/// handed out twice. [`close`](Tickets::close), or a drop, gives the unused numbers back, and the next
/// blocks bring them. A process that is killed loses the numbers that it holds, at most
/// [`max_block`](TicketsBuilder::max_block). No clock takes part in uniqueness, unless the process is
/// copied while it runs: then both copies have the same numbers for a minute.
///
/// When the store cannot be reached, the numbers that were drawn last for a while; see
/// [`TicketsBuilder::reserve`]. Then calls fail with `LEASE_UNAVAILABLE`, until the store is back. A
/// forked child draws blocks of its own with its first call.
///
/// ```
/// use randflake_leases::{Location, MemoryStore, Namespace};
/// use randflake_tickets::Tickets;
///
/// let store = MemoryStore::new(Namespace::for_tickets("tickets")?);
/// let location = Location::new(move |namespace| Ok(Box::new(store.namespace(namespace))));
/// let invoices = Tickets::builder(location, "invoices").open()?;
/// assert_eq!((invoices.generate()?, invoices.generate()?), (1, 2));
/// let mut numbers = [0; 100];
/// invoices.fill(&mut numbers)?;
/// assert!(numbers.into_iter().eq(3..103));
/// invoices.close(); // gives back what is unused; so does dropping it
/// # Ok::<(), randflake::Error>(())
/// ```
pub struct Tickets {
    options: Options,
    sizes: Sizes,
    open_source: Box<dyn Fn() -> Box<dyn Source> + Send + Sync>,
    /// What waits instead of the thread itself.
    clock: Option<Arc<dyn Clock + Send + Sync>>,
    /// Also in the children of the process that closed it.
    closed: AtomicBool,
    supplies: PerProcess<Supply>,
}

impl Tickets {
    /// Starts to describe the numbers of a counter. `store` is the path of a SQLite file, or another
    /// [`Location`], where [`Location::init`] has made the namespace; `name` is that of the counter, 1 to
    /// 200 bytes without spaces and control characters.
    ///
    /// ```
    /// use std::time::Duration;
    /// use randflake_leases::{InitMode, Location, Namespace};
    /// use randflake_tickets::Tickets;
    /// # let directory = std::env::temp_dir().join(format!("randflake-tickets-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let path = directory.join("ids.db");
    ///
    /// let location = Location::from(path);
    /// location.init(&Namespace::for_tickets("tickets")?, InitMode::New)?; // once
    /// let invoices = Tickets::builder(location, "invoices")
    ///     .start(1000) // and then 1010, 1020
    ///     .step(10)
    ///     .reserve(Duration::from_secs(5))
    ///     .max_block(10_000) // a kill loses no more
    ///     .open()?;
    /// assert_eq!((invoices.generate()?, invoices.generate()?), (1000, 1010));
    /// # drop(invoices);
    /// # std::fs::remove_dir_all(&directory).unwrap();
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn builder(store: impl Into<Location>, name: impl Into<String>) -> TicketsBuilder {
        TicketsBuilder::new(store.into(), name.into())
    }

    /// Hands out a number.
    ///
    /// # Errors
    ///
    /// `LEASE_UNAVAILABLE`: no number is left, and the store brings none within
    /// [`max_wait`](TicketsBuilder::max_wait), or the first ones of this process within
    /// [`acquire_timeout`](TicketsBuilder::acquire_timeout). The store's error is its
    /// [cause](Error::cause), the time to the next attempt, at most 5 seconds, its
    /// [`Error::retry_after`]. `LIFETIME_OVER`: the counter has reached 2^53 - 1. `CLOSED`: this was
    /// closed. Where waiting does not help, the store's error, as `STORE_QUARANTINED` of a counter
    /// that has to be fenced, or `INVALID_ARGUMENT` of one with another start or step.
    #[inline]
    pub fn generate(&self) -> Result<u64> {
        self.generate_with(Wait::MaxWait)
    }

    /// As [`Tickets::generate`]. A call that must not wait has a thread draw the first block of a process,
    /// and fails.
    ///
    /// # Errors
    ///
    /// As [`Tickets::generate`].
    #[inline]
    pub fn generate_with(&self, wait: Wait) -> Result<u64> {
        let shared = &*self.supplies.first().shared;
        match shared.claim_one() {
            Ok(position) => Ok(shared.number(position)),
            Err(hand) => self.generate_slowly(hand, wait),
        }
    }

    /// Fills a slice with numbers that rise. Those of one block are in a row. Waits for each block as
    /// [`Tickets::generate`] does for one.
    ///
    /// # Errors
    ///
    /// As [`Tickets::generate`]. Then the slice is filled with zeros, and the numbers that were claimed
    /// are lost.
    pub fn fill(&self, numbers: &mut [u64]) -> Result<()> {
        self.fill_from(numbers, |number| number, Wait::MaxWait)
    }

    /// As [`Tickets::fill`], for signed numbers: all are below 2^53. A call that must not wait claims
    /// nothing where too few numbers are left; the next block then has as many, up to
    /// [`max_block`](TicketsBuilder::max_block).
    ///
    /// # Errors
    ///
    /// As [`Tickets::fill`]; `INVALID_ARGUMENT` without a wait: more numbers than a process may hold.
    pub fn fill_with(&self, numbers: &mut [i64], wait: Wait) -> Result<()> {
        if wait == Wait::Never {
            self.check_fill(numbers.len())?;
        }
        self.fill_from(numbers, u64::cast_signed, wait)
    }

    /// Checks whether [`Tickets::fill_with`] without a wait would be refused now, before memory is
    /// allocated for it.
    ///
    /// # Errors
    ///
    /// As [`Tickets::fill_with`].
    pub fn check_fill(&self, count: usize) -> Result<()> {
        let (count, most) = (count as u64, self.sizes.max_block);
        if count > most {
            return Err(Error::invalid_argument(format!(
                "a batch that does not wait has at most max_block numbers, {most}, got {count}; \
                 one that waits may have more"
            )));
        }
        let supply = self.supply();
        let mut state = supply.shared.lock();
        if state.reserve(&supply.shared) >= count {
            return self.check_open();
        }
        self.ask_for(supply, &mut state, count)?;
        Err(self.too_few_left(&supply.shared, &state, count))
    }

    /// Returns how long to wait until a number is available: zero if one is, and else a short time
    /// after which to ask again, at most 50 ms. Has the first block of a process drawn.
    ///
    /// # Errors
    ///
    /// As [`Tickets::generate`]; `LEASE_UNAVAILABLE` only where this process has had no block yet and the
    /// store has failed for [`acquire_timeout`](TicketsBuilder::acquire_timeout).
    pub fn ready_in(&self) -> Result<Duration> {
        let supply = self.supply();
        let mut state = supply.shared.lock();
        if state.reserve(&supply.shared) > 0 {
            return Ok(Duration::ZERO);
        }
        self.ask_for(supply, &mut state, 1)?;
        let Some(failure) = &state.failure else { return Ok(POLL_INTERVAL) };
        let lasts = failure.next_attempt.saturating_sub(failure.since);
        if state.blocks_drawn == 0 && lasts >= self.options.acquire_timeout {
            return Err(self.too_few_left(&supply.shared, &state, 1));
        }
        Ok(LONGEST_POLL)
    }

    /// Returns the numbers of this process.
    fn supply(&self) -> &Supply {
        loop {
            let supply = self.supplies.of_or(ForkId::current(), Supply::of_child);
            // A handler of a signal may have forked meanwhile.
            if supply.shared.positions.is_of_this_process() {
                return supply;
            }
        }
    }

    /// Waits for the first block of this process, no longer than for any first block, nor than `limit`,
    /// and returns whether it came. For [`TicketsBuilder::open`], and the packages of other languages.
    ///
    /// # Errors
    ///
    /// That of a failure that waiting does not help.
    #[doc(hidden)]
    pub fn draw_first(&self, limit: Duration) -> Result<bool> {
        let limit = limit.min(self.options.acquire_timeout);
        let mut polling = Polling::new();
        loop {
            let supply = self.supply();
            let mut state = supply.shared.lock();
            if state.blocks_drawn > 0 {
                return Ok(true);
            }
            self.ask_for(supply, &mut state, 1)?;
            let Some(left) = polling.left_of(limit) else { return Ok(false) };
            state.wait();
            drop(state);
            self.pause(&mut polling, left)?;
        }
    }

    #[cold]
    #[inline(never)]
    fn generate_slowly(&self, hand: Option<u64>, may_wait: Wait) -> Result<u64> {
        let (shared, claimed) = self.claim(hand, 1, may_wait)?;
        Ok(shared.number(claimed.start))
    }

    fn fill_from<T: Default + Clone>(
        &self,
        numbers: &mut [T],
        of: impl Fn(u64) -> T,
        may_wait: Wait,
    ) -> Result<()> {
        let (mut filled, mut process) = (0, ForkId::current());
        let mut losses = self.supply().shared.losses();
        while filled < numbers.len() {
            let want = (numbers.len() - filled) as u64;
            let (shared, claimed) = match self.claim(None, want, may_wait) {
                Ok(claimed) => claimed,
                Err(error) => {
                    numbers.fill(T::default());
                    return Err(error);
                }
            };
            for position in claimed {
                numbers[filled] = of(shared.number(position));
                filled += 1;
            }
            // A handler of a signal may have forked meanwhile: then they are the parent's.
            let now = ForkId::current();
            // Or the call has waited, and of copies of this process another one goes on with them.
            let seen = shared.losses();
            if now != process || seen != losses {
                (process, losses, filled) = (now, seen, 0);
            }
        }
        Ok(())
    }

    /// Claims up to `want` positions in a row, at least one, or the one that the call has in hand. Waits
    /// for a block where none is left.
    fn claim(
        &self,
        mut hand: Option<u64>,
        want: u64,
        may_wait: Wait,
    ) -> Result<(&Shared, Range<u64>)> {
        let mut of = self.supplies.first();
        let mut polling = Polling::new();
        loop {
            // Again after each wait: a handler of a signal may have forked in it.
            let supply = self.supply();
            if !ptr::eq(supply, of) {
                // What is in hand is the parent's.
                (of, hand) = (supply, None);
            }
            let shared = &*supply.shared;
            if hand.is_none() {
                let claimed = shared.claim_many(want);
                if !claimed.is_empty() {
                    return Ok((shared, claimed));
                }
            }
            let mut state = shared.lock();
            let claimed = state.claim(shared, &mut hand, want);
            if !claimed.is_empty() {
                if state.blocks.needs_block(&shared.positions) {
                    state.wake(shared);
                }
                drop(state);
                // A handler that forked in here has claimed the same for both processes.
                if shared.positions.is_of_this_process() {
                    return Ok((shared, claimed));
                }
                continue;
            }
            self.ask_for(supply, &mut state, want)?;
            let limit = match may_wait {
                Wait::Never => Duration::ZERO,
                Wait::MaxWait if state.blocks_drawn == 0 => self.options.acquire_timeout,
                Wait::MaxWait => self.options.max_wait,
            };
            let Some(left) = polling.left_of(limit) else {
                return Err(self.too_few_left(&supply.shared, &state, 1));
            };
            state.waits += u64::from(polling.is_first());
            state.wait();
            drop(state);
            self.pause(&mut polling, left)?;
        }
    }

    /// Has the thread draw a block. Fails where no block will come.
    fn ask_for(&self, supply: &Supply, state: &mut State, want: u64) -> Result<()> {
        self.check_open()?;
        if state.closed {
            return Err(closed());
        }
        let held = state.blocks.reserve(&supply.shared.positions);
        let failure = state.failure.as_ref().filter(|failure| !may_pass(&failure.error));
        // The last numbers may only have to be confirmed.
        if let Some(failure) = failure.filter(|_| held < want || !state.is_used_up()) {
            return Err(failure.error.clone());
        }
        if !state.started {
            self.start(supply)?;
            state.started = true;
        }
        state.starve(want, &supply.shared, &self.sizes);
        state.wake(&supply.shared);
        Ok(())
    }

    fn start(&self, supply: &Supply) -> Result<()> {
        let (shared, sizes) = (Arc::clone(&supply.shared), self.sizes);
        let source = (self.open_source)();
        let thread = std::thread::Builder::new().name("randflake-draw".to_owned());
        thread.spawn(move || run(&shared, source, &sizes)).map(drop).map_err(|error| {
            Error::new(
                ErrorKind::StoreUnavailable,
                format!("cannot start the thread that draws numbers: {error}"),
            )
        })
    }

    /// Waits for a change, at most so long.
    fn pause(&self, polling: &mut Polling, left: Duration) -> Result<()> {
        if let Some(clock) = &self.clock {
            return polling.pause(left, |pause| clock.sleep(pause));
        }
        let before = boot();
        // In a child, whose parent's thread waited here, nothing wakes it.
        park_timeout(LONGEST_POLL.min(left));
        polling.spend(boot().saturating_sub(before));
        Ok(())
    }

    fn check_open(&self) -> Result<()> {
        // Relaxed: the blocks are sealed under their lock.
        if self.closed.load(Ordering::Relaxed) { Err(closed()) } else { Ok(()) }
    }

    /// Makes the error of a first block that did not come in time: the store's, if it has failed.
    #[cold]
    fn no_first_block(&self) -> Error {
        let failure = self.supply().shared.lock().failure.as_ref().map(|it| it.error.clone());
        failure.unwrap_or_else(|| {
            let limit = self.options.acquire_timeout.as_secs_f64();
            let why = format!(
                "the store did not answer within {limit} s (acquire_timeout), so there is no first \
                 block"
            );
            Error::new(ErrorKind::StoreUnavailable, why)
        })
    }

    #[cold]
    fn too_few_left(&self, shared: &Shared, state: &State, want: u64) -> Error {
        let name = &self.options.name;
        let held = state.blocks.reserve(&shared.positions);
        let why = if held >= want {
            format!(
                "the store has to confirm the numbers of the counter {name:?} that this process holds"
            )
        } else if want == 1 {
            format!("this process has no number of the counter {name:?} left")
        } else {
            format!("this process has fewer than {want} numbers of the counter {name:?} left")
        };
        let failure = state.failure.as_ref();
        let next = failure.map(|failure| failure.next_attempt.saturating_sub(boot()));
        unavailable(&why, next.unwrap_or_default(), failure.map(|failure| failure.error.clone()))
    }

    /// Closes it for good and gives the unused numbers back, which takes one operation of the store;
    /// waits up to 5 seconds for it. If the store cannot be reached in time, they are lost.
    /// In a forked child this does not affect the parent's numbers.
    pub fn close(&self) {
        self.stop();
        let mut waited = Duration::ZERO;
        while let Some(supply) = self.supplies.of(ForkId::current())
            && waited < CLOSE_TIMEOUT
        {
            let mut state = supply.shared.lock();
            if state.ended {
                return;
            }
            state.wait();
            drop(state);
            let before = boot();
            park_timeout(CLOSE_TIMEOUT.saturating_sub(waited));
            waited += boot().saturating_sub(before);
        }
    }

    /// As [`close`](Tickets::close), but does not wait: the thread gives the numbers back.
    pub fn stop(&self) {
        self.closed.store(true, Ordering::Relaxed);
        // Of a child that has none as well: a call of another thread may make it now.
        let shared = &self.supply().shared;
        shared.close(&mut shared.lock());
    }

    /// Returns whether it was closed or stopped. For the bindings to other languages.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.check_open().is_err()
    }

    /// Returns whether it was closed or stopped, and the unused numbers are given back as far as
    /// possible.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let is_ended = |supply: &Supply| {
            let state = supply.shared.lock();
            state.ended || !state.started
        };
        self.check_open().is_err() && self.supplies.of(ForkId::current()).is_none_or(is_ended)
    }

    /// Returns how long a call waits at most; see [`TicketsBuilder::max_wait`]. For the bindings to
    /// other languages.
    #[must_use]
    pub fn max_wait(&self) -> Duration {
        self.options.max_wait
    }

    /// Returns the name of the counter.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Returns what was done in this process, in numbers; a forked child begins at zero. Counts nothing
    /// on the way of a number.
    ///
    /// ```
    /// use randflake_leases::{Location, MemoryStore, Namespace};
    /// use randflake_tickets::Tickets;
    ///
    /// let store = MemoryStore::new(Namespace::for_tickets("tickets")?);
    /// let location = Location::new(move |namespace| Ok(Box::new(store.namespace(namespace))));
    /// let invoices = Tickets::builder(location, "invoices").open()?;
    /// invoices.fill(&mut [0; 3])?;
    /// let metrics = invoices.metrics();
    /// assert_eq!((metrics.numbers_generated, metrics.reserve), (3, 7));
    /// assert_eq!((metrics.blocks_drawn, metrics.last_error), (1, None));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn metrics(&self) -> TicketsMetrics {
        let Some(supply) = self.supplies.of(ForkId::current()) else {
            return TicketsMetrics::default();
        };
        let state = supply.shared.lock();
        let (numbers_generated, reserve) = supply.shared.counts(&state);
        TicketsMetrics {
            numbers_generated,
            reserve,
            blocks_drawn: state.blocks_drawn,
            waits: state.waits,
            store_requests: state.requests.count,
            store_request_seconds: state.requests.time.as_secs_f64(),
            store_errors: state.requests.errors.clone(),
            last_error: state.last_error.clone(),
        }
    }
}

/// As [`Tickets::close`]; does not wait again after [`Tickets::stop`].
impl Drop for Tickets {
    fn drop(&mut self) {
        if self.check_open().is_ok() {
            self.close();
        }
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("name", &self.options.name).finish_non_exhaustive()
    }
}

/// Returns whether a block may come by itself after this failure.
fn may_pass(error: &Error) -> bool {
    // A counter that has to be fenced has no time after which it grants.
    passes(error.kind())
        && (error.kind() != ErrorKind::StoreQuarantined || error.retry_after().is_some())
}

#[cold]
fn closed() -> Error {
    Error::new(ErrorKind::Closed, "these numbers were closed; open the counter again")
}
