//! How long a call may wait, and how long it has to.

use std::time::Duration;

use super::call::Reach;
use crate::{Error, ErrorKind, Layout, metrics::Waited};

/// How fast ids are available.
#[derive(Clone, Copy)]
pub(super) struct Rate<'a> {
    pub(super) layout: &'a Layout,
    /// Slots of a tick.
    pub(super) slots: u64,
}

impl Rate<'_> {
    /// Returns how many whole ticks so many ids take, as a duration.
    pub(super) fn time_for(&self, want: u64) -> Duration {
        self.layout.ticks(want / self.slots)
    }
}

/// How much longer a call may wait.
pub(super) struct WaitBudget<'a> {
    pub(super) left: Duration,
    /// At this rate a batch gets the ticks that it needs for its size in addition.
    granted_at: Option<Rate<'a>>,
    pub(super) reach: Reach,
    /// For what the call has waited.
    pub(super) waited: Waited,
}

impl<'a> WaitBudget<'a> {
    /// Makes the budget of a call for so many ids; a single id has no rate.
    pub(super) fn new(max_wait: Duration, want: u64, rate: Option<Rate<'a>>, reach: Reach) -> Self {
        let granted_at = rate.filter(|_| !max_wait.is_zero());
        let mut budget = Self { left: max_wait, granted_at, reach, waited: Waited::default() };
        budget.left += budget.granted(want);
        budget
    }

    /// Returns the time that so many ids get in addition to `max_wait`.
    pub(super) fn granted(&self, want: u64) -> Duration {
        self.granted_at.map_or(Duration::ZERO, |rate| rate.time_for(want))
    }

    pub(super) fn spend(&mut self, took: Duration) {
        self.left = self.left.saturating_sub(took);
    }

    /// Returns after which time a call would not be refused, if its last id is available in `all_in`.
    pub(super) fn retry_after(&self, all_in: Duration, want: u64) -> Duration {
        all_in.saturating_sub(self.granted(want))
    }
}

#[cold]
pub(super) fn refused(kind: ErrorKind, retry_after: Duration) -> Error {
    let why = match kind {
        ErrorKind::LeaseNotStarted => "the first tick of this generator is in the future",
        ErrorKind::ClockMovedBack => "the clock is behind the last id",
        _ => "the ticks that may be used now have too few ids left",
    };
    let seconds = retry_after.as_secs_f64();
    let message = format!("{why}; try again in {seconds:.3} s, or allow a longer wait");
    Error::new(kind, message).with_retry_after(retry_after)
}
