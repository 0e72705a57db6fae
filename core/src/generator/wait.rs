//! How long a call may wait, and how long it has to.

use std::time::Duration;

use super::plan::Reach;
use crate::{Error, ErrorKind, Layout};

/// How fast ids can be had.
#[derive(Clone, Copy)]
pub(super) struct Pace<'a> {
    pub(super) layout: &'a Layout,
    /// Slots of a tick.
    pub(super) slots: u64,
}

impl Pace<'_> {
    /// Returns the whole ticks that so many ids take for themselves.
    pub(super) fn time_for(&self, want: u64) -> Duration {
        self.layout.ticks(want / self.slots)
    }
}

/// How much longer a call may wait.
pub(super) struct Patience<'a> {
    pub(super) left: Duration,
    /// If the ticks that a batch needs for its size are granted.
    granted_at: Option<Pace<'a>>,
    pub(super) reach: Reach,
}

impl<'a> Patience<'a> {
    /// The patience of a call for so many ids; for a single one without a pace.
    pub(super) fn new(max_wait: Duration, want: u64, pace: Option<Pace<'a>>, reach: Reach) -> Self {
        let granted_at = pace.filter(|_| !max_wait.is_zero());
        let mut patience = Self { left: max_wait, granted_at, reach };
        patience.left += patience.granted(want);
        patience
    }

    /// Returns the whole ticks that so many ids take for themselves.
    pub(super) fn granted(&self, want: u64) -> Duration {
        self.granted_at.map_or(Duration::ZERO, |pace| pace.time_for(want))
    }

    pub(super) fn spend(&mut self, took: Duration) {
        self.left = self.left.saturating_sub(took);
    }

    /// Returns after which time a call whose last id can be had in `all_in` would not be refused.
    pub(super) fn retry_after(&self, all_in: Duration, want: u64) -> Duration {
        all_in.saturating_sub(self.granted(want))
    }
}

#[cold]
pub(super) fn refused(kind: ErrorKind, retry_after: Duration) -> Error {
    let why = match kind {
        ErrorKind::LeaseNotStarted => "the first tick of this generator is still to come",
        ErrorKind::ClockMovedBack => "the clock is behind the last id",
        _ => "the ids of the ticks that may be used now do not suffice",
    };
    let seconds = retry_after.as_secs_f64();
    let message = format!("{why}; try again in {seconds:.3} s, or allow a longer wait");
    Error::new(kind, message).with_retry_after(retry_after)
}
