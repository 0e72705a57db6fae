//! What a leased generator and the keeper of its lease have done, in numbers.

use std::time::Duration;

use randflake::{ErrorKind, Metrics};

use crate::clocks::Reading;

/// What a leased generator has done in this process, in numbers; see
/// [`Leased::metrics`](crate::Leased::metrics).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LeasedMetrics {
    /// The number of ids claimed; see [`Metrics::ids_generated`].
    pub ids_generated: u64,
    /// How many calls waited, by the kind of what they waited for; see [`Metrics::waits`]. This
    /// includes `LEASE_UNAVAILABLE`: they waited for a lease in this process or, in a forked child,
    /// for its first one.
    pub waits: Vec<(ErrorKind, u64)>,
    /// How many requests were made to the store.
    pub store_requests: u64,
    /// How long these took in all, in seconds.
    pub store_request_seconds: f64,
    /// How many requests the store did not grant, by the kind of the error: the kinds that occurred.
    pub store_errors: Vec<(ErrorKind, u64)>,
    /// How many whole seconds the store's clock was ahead of this machine's at its last answer;
    /// negative if it was behind. `None` before the first answer.
    pub clock_skew_seconds: Option<i64>,
}

/// The requests of one or several keepers.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "no part of the interface")]
pub struct Requests {
    pub count: u64,
    pub time: Duration,
    pub errors: Vec<(ErrorKind, u64)>,
    pub clock_skew: Option<i64>,
}

/// The metrics of a generator that has done nothing.
impl Default for LeasedMetrics {
    fn default() -> Self {
        Self::new(Metrics::default(), 0, Requests::default())
    }
}

impl LeasedMetrics {
    pub(crate) fn new(metrics: Metrics, lease_waits: u64, requests: Requests) -> Self {
        let Metrics { ids_generated, mut waits, .. } = metrics;
        waits.push((ErrorKind::LeaseUnavailable, lease_waits));
        Self {
            ids_generated,
            waits,
            store_requests: requests.count,
            store_request_seconds: requests.time.as_secs_f64(),
            store_errors: requests.errors,
            clock_skew_seconds: requests.clock_skew,
        }
    }
}

impl Requests {
    /// Counts a request, from its beginning to its answer.
    pub fn count(&mut self, asked: Reading, answered: Reading) {
        self.count_time(answered.boot.saturating_sub(asked.boot));
    }

    /// Counts a request that took this long.
    pub fn count_time(&mut self, took: Duration) {
        self.count += 1;
        self.time += took;
    }

    /// Counts one that was not granted.
    pub fn count_error(&mut self, kind: ErrorKind) {
        self.count_errors(kind, 1);
    }

    fn count_errors(&mut self, kind: ErrorKind, more: u64) {
        match self.errors.iter_mut().find(|(counted, _)| *counted == kind) {
            Some((_, count)) => *count += more,
            None => self.errors.push((kind, more)),
        }
    }

    /// Compares the store's clock with this machine's. These are this machine's times before and
    /// after the store's clock was read.
    pub fn compare(&mut self, store_now: i64, asked: Reading, answered: Reading) {
        let (first, last) = (asked.second(), answered.second().max(asked.second()));
        self.clock_skew = Some(store_now.saturating_sub(store_now.clamp(first, last)));
    }

    /// Adds the requests of a later keeper.
    pub fn add(&mut self, later: &Self) {
        self.count += later.count;
        self.time += later.time;
        for &(kind, count) in &later.errors {
            self.count_errors(kind, count);
        }
        self.clock_skew = later.clock_skew.or(self.clock_skew);
    }
}
