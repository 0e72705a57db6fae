//! Sequential numbers: one object for each requested counter.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use hyper::StatusCode;
use randflake::{Clock as _, Error, ErrorKind, Result, SystemClock, Wait};
use randflake_leases::Location;
use randflake_tickets::{DateForm, Tickets, TicketsMetrics};
use tokio::time::{Instant, sleep};

use super::{
    answer::{Refusal, Response, written},
    limits::Limits,
    request::{Dated, Query},
    room::Room,
};

/// The most counters of a process: each has a thread, and stays. A counter whose thread still waits
/// for the store is included.
pub(super) const MOST_COUNTERS: usize = 100;

/// Longest time between two checks for a number that is on its way.
const LONGEST_POLL: Duration = Duration::from_millis(20);

/// How long an unusable counter is left alone.
const REOPEN_AFTER: Duration = Duration::from_secs(1);

/// The longest number, with a date and the characters around it, in bytes.
const LONGEST: usize = 28;

/// What a client may specify for the numbers it wants.
const KNOWN: [&str; 5] = ["count", "period", "time_zone", "prefix", "digits"];

/// The counters of a namespace.
pub(super) struct Counters {
    location: Location,
    namespace: String,
    reopen_after: Duration,
    all: RwLock<All>,
}

#[derive(Default)]
struct All {
    opened: HashMap<String, OpenTickets>,
    /// No longer used, but their threads still wait for the store.
    ending: Vec<Arc<Tickets>>,
}

#[derive(Clone)]
struct OpenTickets {
    tickets: Arc<Tickets>,
    /// Requests that waited, which the counter's own metrics do not include.
    waits: Arc<AtomicU64>,
    since: Instant,
    /// Whether a request for numbers with a date has opened it: its name has that date, then.
    is_dated: bool,
}

impl Counters {
    pub(super) fn new(location: Location, namespace: &str) -> Self {
        let (namespace, reopen_after) = (namespace.to_owned(), REOPEN_AFTER);
        Self { location, namespace, reopen_after, all: RwLock::default() }
    }

    /// Answers a request for numbers of the counter with this decoded name: at once if they are
    /// available, otherwise after a wait.
    pub(super) async fn generate(
        &self,
        name: &str,
        query: Option<&str>,
        limits: &Limits,
        room: &Room,
    ) -> Result<Response, Refusal> {
        let Query { count, dated, .. } = Query::read(query, &KNOWN, limits.max_count)?;
        let form = dated_form(&dated)?;
        let longest = longest(count, dated.prefix.as_deref().unwrap_or_default());
        let room = room.reserve(count * size_of::<i64>() + longest, limits.max_wait).await?;
        let Some(form) = form else {
            let numbers = self.draw(name, count, limits, false).await?;
            return Ok(written(room.hold(listed(&numbers))));
        };
        let mut last = false;
        loop {
            let date = self.latest(name, form.date_at(SystemClock.unix_seconds()?)?);
            let counter = form.counter(name, &date);
            if self.opened(&counter).is_none() {
                self.end_before(name, &date);
            }
            match self.draw(&counter, count, limits, true).await {
                // Another request has gone on to the next date meanwhile.
                Err(refusal) if refusal.is_of(ErrorKind::Closed) && !last => last = true,
                drawn => {
                    let text = |number: i64| {
                        serde_json::Value::from(form.text(&date, number.cast_unsigned()))
                    };
                    return Ok(written(room.hold(listed_texts(&drawn?, text))));
                }
            }
        }
    }

    /// Draws numbers of a counter.
    async fn draw(
        &self,
        name: &str,
        count: usize,
        limits: &Limits,
        is_dated: bool,
    ) -> Result<Vec<i64>, Refusal> {
        let opened = match self.opened(name) {
            Some(opened) => opened,
            None => self.open_in_time(name, limits.max_wait, is_dated).await?,
        };
        if count == 1
            && let Ok(number) = opened.tickets.generate_with(Wait::Never)
        {
            return Ok(vec![number.cast_signed()]);
        }
        let mut numbers = vec![0; count];
        match opened.fill(&mut numbers, limits.max_wait).await {
            Ok(()) => Ok(numbers),
            Err(error) => {
                if error.retry_after().is_none() && opened.is_unused(self.reopen_after) {
                    self.forget(name, &opened); // an operator may have fixed it
                }
                Err(error.into())
            }
        }
    }

    /// Returns a date, or a later one that was used already: a clock may step back.
    fn latest(&self, name: &str, date: String) -> String {
        let all = self.read();
        let dated = all.opened.iter().filter(|(_, opened)| opened.is_dated);
        let used = dated.filter_map(|(counter, _)| date_of(counter, name, date.len()));
        used.max().filter(|used| *used > date.as_str()).map(ToOwned::to_owned).unwrap_or(date)
    }

    /// Ends the counters of earlier dates, which give back what is unused.
    fn end_before(&self, name: &str, date: &str) {
        let mut all = self.write();
        let is_earlier =
            |counter: &str| date_of(counter, name, date.len()).is_some_and(|it| it < date);
        let dated = all.opened.iter().filter(|(_, opened)| opened.is_dated);
        let earlier = dated.map(|(counter, _)| counter).filter(|counter| is_earlier(counter));
        let earlier: Vec<_> = earlier.cloned().collect();
        for counter in earlier {
            all.end(&counter);
        }
    }

    fn opened(&self, name: &str) -> Option<OpenTickets> {
        self.read().opened.get(name).cloned()
    }

    /// Opens a counter, once there is a thread for it.
    async fn open_in_time(
        &self,
        name: &str,
        max_wait: Duration,
        is_dated: bool,
    ) -> Result<OpenTickets, Refusal> {
        let deadline = Instant::now() + max_wait;
        let new = OpenTickets { is_dated, ..self.new_counter(name)? };
        loop {
            if let Some(opened) = self.open(name, &new)? {
                return Ok(opened);
            }
            if Instant::now() + LONGEST_POLL > deadline {
                let why = format!(
                    "a server has at most {MOST_COUNTERS} counters, and one from which nothing was \
                     drawn makes room once the store answers; try again"
                );
                return Err(Error::new(ErrorKind::StoreUnavailable, why).into());
            }
            sleep(LONGEST_POLL).await;
        }
    }

    /// Makes a counter, which has no thread before its first number is requested.
    fn new_counter(&self, name: &str) -> Result<OpenTickets> {
        let tickets = Tickets::builder(self.location.clone(), name)
            .namespace(&self.namespace)
            .max_wait(Duration::ZERO) // requests wait without a thread
            .open_lazily()?;
        let (tickets, waits) = (Arc::new(tickets), Arc::default());
        Ok(OpenTickets { tickets, waits, since: Instant::now(), is_dated: false })
    }

    /// Returns the counter with this name, which is `new` if it is not open yet; `None` if another
    /// thread must end first.
    fn open(&self, name: &str, new: &OpenTickets) -> Result<Option<OpenTickets>, Refusal> {
        let mut all = self.write();
        if let Some(opened) = all.opened.get(name) {
            return Ok(Some(opened.clone())); // another request was first
        }
        all.ending.retain(|tickets| !tickets.is_over());
        if all.opened.len() + all.ending.len() >= MOST_COUNTERS && all.ending.is_empty() {
            // Names from which nothing could be drawn must not keep others out.
            let unused = all.opened.iter().filter(|(_, it)| it.is_unused(self.reopen_after));
            let oldest = unused.min_by_key(|(_, it)| it.since).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else {
                return Err(Refusal::invalid(
                    StatusCode::BAD_REQUEST,
                    format!(
                        "a server has at most {MOST_COUNTERS} counters, and this would be one more"
                    ),
                ));
            };
            all.end(&oldest);
        }
        if all.opened.len() + all.ending.len() >= MOST_COUNTERS {
            return Ok(None);
        }
        Ok(Some(all.opened.entry(name.to_owned()).or_insert_with(|| new.clone()).clone()))
    }

    fn forget(&self, name: &str, failed: &OpenTickets) {
        let mut all = self.write();
        if all.opened.get(name).is_some_and(|opened| Arc::ptr_eq(&opened.tickets, &failed.tickets))
        {
            all.end(name);
        }
    }

    /// Makes the counters give back what is unused, without waiting for it.
    pub(super) fn stop(&self) {
        for opened in self.read().opened.values() {
            opened.tickets.stop();
        }
    }

    /// Gives back what is unused. Waits at most this long in total.
    pub(super) fn close(&self, at_most: Duration) {
        self.stop();
        let deadline = Instant::now() + at_most;
        let all = self.read();
        while !all.opened.values().all(|opened| opened.tickets.is_over())
            && Instant::now() < deadline
        {
            thread::sleep(LONGEST_POLL);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, All> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, All> {
        self.all.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what was done, sorted by the name of the counter.
    pub(super) fn metrics(&self) -> Vec<(String, TicketsMetrics)> {
        let all = self.read();
        let metrics = |(name, opened): (&String, &OpenTickets)| {
            let mut metrics = opened.tickets.metrics();
            metrics.waits += opened.waits.load(Ordering::Relaxed);
            (name.clone(), metrics)
        };
        let mut metrics: Vec<_> = all.opened.iter().map(metrics).collect();
        drop(all);
        metrics.sort_by(|one, other| one.0.cmp(&other.0));
        metrics
    }
}

impl All {
    /// Stops a counter. Its thread ends once the store has answered it.
    fn end(&mut self, name: &str) {
        if let Some(OpenTickets { tickets, .. }) = self.opened.remove(name) {
            tickets.stop();
            if !tickets.is_over() {
                self.ending.push(tickets);
            }
        }
    }
}

impl OpenTickets {
    /// Whether nothing was drawn for a while, so that a replacement would know just as much. A
    /// counter that has drawn stays, and asks the store again by itself: only it notices that the
    /// counter in the store went back.
    fn is_unused(&self, after: Duration) -> bool {
        self.since.elapsed() > after && self.tickets.metrics().blocks_drawn == 0
    }

    /// Fills a slice with numbers; waits, without a thread, if too few are available now.
    async fn fill(&self, numbers: &mut [i64], max_wait: Duration) -> Result<()> {
        let deadline = Instant::now() + max_wait;
        let mut pause = Duration::ZERO;
        loop {
            let error = match self.tickets.fill_with(numbers, Wait::Never) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if pause.is_zero() {
                self.waits.fetch_add(1, Ordering::Relaxed);
            }
            pause = (pause * 2).clamp(Duration::from_millis(1), LONGEST_POLL);
            if error.kind() != ErrorKind::LeaseUnavailable || Instant::now() + pause > deadline {
                return Err(error);
            }
            sleep(pause).await;
        }
    }
}

/// Returns the date of a counter, if it is one of this name and of dates that are so long.
fn date_of<'a>(counter: &'a str, name: &str, length: usize) -> Option<&'a str> {
    let date = counter.strip_prefix(name)?.strip_prefix('/')?;
    let is_date = date.len() == length && date.bytes().all(|digit| digit.is_ascii_digit());
    is_date.then_some(date)
}

/// Reads the form of numbers with a date, if there is one.
fn dated_form(dated: &Dated) -> Result<Option<DateForm>, Refusal> {
    let Some(period) = &dated.period else {
        if *dated != Dated::default() {
            let why = "time_zone, prefix and digits are of numbers with a date: add period";
            return Err(Error::invalid_argument(why).into());
        }
        return Ok(None);
    };
    let mut form = DateForm::new(period.parse()?);
    if let Some(zone) = &dated.time_zone {
        form = form.time_zone(zone)?;
    }
    if let Some(prefix) = &dated.prefix {
        form = form.prefix(prefix)?;
    }
    if let Some(digits) = dated.digits {
        form = form.digits(digits)?;
    }
    Ok(Some(form))
}

/// Writes numbers as strings, like all numbers from this server that go into a database.
fn listed(numbers: &[i64]) -> Vec<u8> {
    listed_texts(numbers, |number| format!("\"{number}\""))
}

fn listed_texts<T: fmt::Display>(numbers: &[i64], json: impl Fn(i64) -> T) -> Vec<u8> {
    let mut content = String::with_capacity(longest(numbers.len(), ""));
    content.push_str("{\"tickets\":[");
    for (index, &number) in numbers.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(content, "{comma}{}", json(number));
    }
    content.push_str("]}\n");
    content.into_bytes()
}

/// Returns the maximum length of a list, in bytes, of which a prefix may have six for each of its own.
const fn longest(count: usize, prefix: &str) -> usize {
    16 + count * (LONGEST + 6 * prefix.len())
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;

    /// Returns counters on a store that does not answer until the sender is dropped, and how many
    /// threads wait for it.
    fn silent() -> (Counters, Arc<AtomicU64>, mpsc::Sender<()>) {
        let (answer, silence) = mpsc::channel::<()>();
        let (silence, waiting) = (Mutex::new(silence), Arc::<AtomicU64>::default());
        let counted = Arc::clone(&waiting);
        let location = Location::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            let silence = silence.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = silence.recv();
            counted.fetch_sub(1, Ordering::Relaxed);
            Err(Error::new(ErrorKind::StoreUnavailable, "there is none"))
        });
        (Counters::new(location, "tickets"), waiting, answer)
    }

    fn open(counters: &Counters, name: &str) -> Option<OpenTickets> {
        let new = counters.new_counter(name).expect("a name");
        let opened = counters.open(name, &new).expect("no answer yet")?;
        assert!(opened.tickets.generate_with(Wait::Never).is_err());
        Some(opened)
    }

    #[test]
    fn the_end_waits_once_for_all_counters() {
        let (counters, _, answer) = silent();
        for number in 0..MOST_COUNTERS {
            assert!(open(&counters, &number.to_string()).is_some());
        }
        let begun = Instant::now();
        counters.close(Duration::from_millis(1));
        assert!(begun.elapsed() < Duration::from_secs(60), "it waits for each");
        drop(answer);
    }

    #[test]
    fn a_store_that_does_not_answer_has_no_more_threads_than_there_are_counters() {
        let (mut counters, waiting, answer) = silent();
        counters.reopen_after = Duration::ZERO;
        for number in 0..MOST_COUNTERS {
            assert!(open(&counters, &number.to_string()).is_some());
        }
        while waiting.load(Ordering::Relaxed) < MOST_COUNTERS as u64 {
            thread::sleep(Duration::from_millis(1));
        }
        for number in 0..10 * MOST_COUNTERS {
            assert!(open(&counters, &format!("more-{number}")).is_none());
        }
        let all = counters.read();
        assert_eq!((all.opened.len(), all.ending.len()), (MOST_COUNTERS - 1, 1));
        drop(all);
        assert_eq!(waiting.load(Ordering::Relaxed), MOST_COUNTERS as u64);

        // Once it answers, a thread is free again, and nothing else blocks the others.
        drop(answer);
        while open(&counters, "more").is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        let opened = open(&counters, "failed").or_else(|| open(&counters, "more")).expect("one");
        counters.forget("failed", &opened);
        counters.forget("more", &opened);
        assert!(counters.read().opened.len() < MOST_COUNTERS);
        counters.stop();
    }
}
