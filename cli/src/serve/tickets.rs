//! Numbers in a row: one object for each counter that was asked for.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use hyper::StatusCode;
use randflake::{ErrorKind, Result};
use randflake_leases::{Location, Tickets, TicketsMetrics};
use tokio::time::{Instant, sleep};

use super::{
    answer::{Refusal, Response, written},
    limits::Limits,
    request::Query,
    room::Room,
};

/// Most counters of a process: each has a thread, and stays.
const MOST_COUNTERS: usize = 100;

/// Longest time between two looks for a number that is on its way.
const LONGEST_POLL: Duration = Duration::from_millis(20);

/// How long a counter that cannot be used is left alone.
const REOPEN_AFTER: Duration = Duration::from_secs(1);

/// Longest number and what is around it, in bytes.
const LONGEST: usize = 19;

/// The counters of a namespace.
pub(super) struct Counters {
    location: Location,
    namespace: String,
    opened: RwLock<HashMap<String, OpenTickets>>,
}

#[derive(Clone)]
struct OpenTickets {
    tickets: Arc<Tickets>,
    /// Requests that waited, which its own numbers do not count.
    waits: Arc<AtomicU64>,
    since: Instant,
}

impl Counters {
    pub(super) fn new(location: Location, namespace: &str) -> Self {
        Self { location, namespace: namespace.to_owned(), opened: RwLock::default() }
    }

    /// Answers a request for numbers of the counter with this name, which is decoded: at once with
    /// what is there, later where it has to wait.
    pub(super) async fn generate(
        &self,
        name: &str,
        query: Option<&str>,
        limits: &Limits,
        room: &Room,
    ) -> Result<Response, Refusal> {
        let count = Query::read(query, &["count"], limits.max_count)?.count;
        let room = room.reserve(count * size_of::<u64>() + longest(count), limits.max_wait).await?;
        let opened = match self.opened(name) {
            Some(opened) => opened,
            None => self.open(name)?,
        };
        if count == 1
            && let Some(number) = opened.tickets.generate_at_once()
        {
            return Ok(written(listed(&[number])));
        }
        let mut numbers = vec![0; count];
        match opened.fill(&mut numbers, limits.max_wait).await {
            Ok(()) => Ok(written(room.hold(listed(&numbers)))),
            Err(error) => {
                if error.retry_after().is_none() && opened.is_unused() {
                    self.forget(name, &opened); // an operator may have mended it
                }
                Err(error.into())
            }
        }
    }

    fn opened(&self, name: &str) -> Option<OpenTickets> {
        self.opened.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn open(&self, name: &str) -> Result<OpenTickets, Refusal> {
        let tickets = Tickets::builder(self.location.clone(), name)
            .namespace(&self.namespace)
            .max_wait(Duration::ZERO) // requests wait without a thread
            .open_lazily()?;
        let (tickets, waits) = (Arc::new(tickets), Arc::default());
        let opened = OpenTickets { tickets, waits, since: Instant::now() };
        let mut all = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        let is_one_more = !all.contains_key(name);
        if is_one_more && all.len() >= MOST_COUNTERS {
            // Names of which nothing could be drawn keep no others out.
            let unused = all.iter().filter(|(_, opened)| opened.is_unused());
            let oldest =
                unused.min_by_key(|(_, opened)| opened.since).map(|(name, _)| name.clone());
            if let Some(unused) = oldest.and_then(|oldest| all.remove(&oldest)) {
                unused.tickets.stop();
            }
        }
        if is_one_more && all.len() >= MOST_COUNTERS {
            return Err(Refusal::invalid(
                StatusCode::BAD_REQUEST,
                format!(
                    "a server has at most {MOST_COUNTERS} counters, and this would be one more"
                ),
            ));
        }
        // Another request may have been first.
        Ok(all.entry(name.to_owned()).or_insert(opened).clone())
    }

    fn forget(&self, name: &str, failed: &OpenTickets) {
        let mut all = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        if all.get(name).is_some_and(|opened| Arc::ptr_eq(&opened.tickets, &failed.tickets)) {
            all.remove(name);
        }
        drop(all);
        failed.tickets.stop();
    }

    /// Has what is unused be given back, and does not wait for it.
    pub(super) fn stop(&self) {
        for opened in self.opened.read().unwrap_or_else(PoisonError::into_inner).values() {
            opened.tickets.stop();
        }
    }

    /// Gives back what is unused. Waits for all of it at most so long.
    pub(super) fn close(&self, at_most: Duration) {
        self.stop();
        let deadline = Instant::now() + at_most;
        let all = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        while !all.values().all(|opened| opened.tickets.is_over()) && Instant::now() < deadline {
            thread::sleep(LONGEST_POLL);
        }
    }

    /// Returns what was done, sorted by the name of the counter.
    pub(super) fn metrics(&self) -> Vec<(String, TicketsMetrics)> {
        let all = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        let metrics = |(name, opened): (&String, &OpenTickets)| {
            let mut metrics = opened.tickets.metrics();
            metrics.waits += opened.waits.load(Ordering::Relaxed);
            (name.clone(), metrics)
        };
        let mut metrics: Vec<_> = all.iter().map(metrics).collect();
        drop(all);
        metrics.sort_by(|one, other| one.0.cmp(&other.0));
        metrics
    }
}

impl OpenTickets {
    /// Whether nothing was drawn in a while, so that another one in its place knows as much. One that
    /// has drawn stays, and asks the store again by itself: only it notices that the counter went back.
    fn is_unused(&self) -> bool {
        self.since.elapsed() > REOPEN_AFTER && self.tickets.metrics().blocks_drawn == 0
    }

    /// Fills a slice with numbers; waits, without a thread, where there are too few now.
    async fn fill(&self, numbers: &mut [u64], max_wait: Duration) -> Result<()> {
        let deadline = Instant::now() + max_wait;
        let mut pause = Duration::ZERO;
        loop {
            let error = match self.tickets.fill_without_wait(numbers) {
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

/// Writes numbers, as strings as all numbers of this server that go into a database.
fn listed(numbers: &[u64]) -> Vec<u8> {
    let mut json = String::with_capacity(longest(numbers.len()));
    json.push_str("{\"tickets\":[");
    for (index, number) in numbers.iter().enumerate() {
        json.push_str(if index == 0 { "\"" } else { ",\"" });
        json.push_str(&number.to_string());
        json.push('"');
    }
    json.push_str("]}\n");
    json.into_bytes()
}

/// Returns how many bytes a list has at most.
const fn longest(count: usize) -> usize {
    16 + count * LONGEST
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;

    #[test]
    fn the_end_waits_once_for_all_counters() {
        let (answer, silence) = mpsc::channel::<()>();
        let silence = Arc::new(Mutex::new(silence));
        let location = Location::new(move |_| {
            let silence = silence.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = silence.recv(); // a store that does not answer
            Err(randflake::Error::new(ErrorKind::StoreUnavailable, "there is none"))
        });
        let counters = Counters::new(location, "tickets");
        for number in 0..MOST_COUNTERS {
            let opened = counters.open(&number.to_string()).expect("there is room");
            assert!(opened.tickets.generate_without_wait().is_err());
        }
        let begun = Instant::now();
        counters.close(Duration::from_millis(1));
        assert!(begun.elapsed() < Duration::from_secs(60), "it waits for each");
        drop(answer);
    }
}
