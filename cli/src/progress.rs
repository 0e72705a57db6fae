//! The progress of a long run, on a terminal.

use std::io::{self, IsTerminal, Write};

use randflake::{Clock as _, SystemClock};

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Shows the progress of a long run once a second, on a terminal that does not show the ids.
pub(crate) struct Progress {
    total: u64,
    /// When to show it next, in nanoseconds; `None` for never.
    next: Option<i64>,
    shown: bool,
}

impl Progress {
    pub(crate) fn new(total: u64) -> Self {
        let wanted = io::stderr().is_terminal() && !io::stdout().is_terminal();
        let now = if wanted { SystemClock.now().ok() } else { None };
        Self { total, next: now.map(|now| now + NANOS_PER_SECOND), shown: false }
    }

    pub(crate) fn made(&mut self, count: u64) {
        let Some(next) = self.next else { return };
        let Some(now) = SystemClock.now().ok().filter(|now| *now >= next) else { return };
        self.next = Some(now + NANOS_PER_SECOND);
        self.shown = true;
        let percent = u128::from(count) * 100 / u128::from(self.total.max(1));
        let _ = write!(io::stderr(), "\r{count} of {} ids, {percent} %\x1b[K", self.total);
    }
}

/// Removes the progress from the terminal.
impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
