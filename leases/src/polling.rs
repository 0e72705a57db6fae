//! How a call waits for what another thread brings: it looks, pauses, and looks again.

use std::time::Duration;

use randflake::{Result, bindings::ForkId};

/// How long a pause is.
pub const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// How long a call has waited in this process: a handler of a signal may fork in a pause, and the
/// child has waited for nothing of its own yet.
#[derive(Clone, Copy, Debug)]
pub struct Polling {
    process: ForkId,
    /// `None` before the first pause.
    waited: Option<Duration>,
}

impl Polling {
    /// Begins.
    #[must_use]
    pub fn new() -> Self {
        Self { process: ForkId::current(), waited: None }
    }

    /// Returns whether there was no pause yet.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.waited.is_none()
    }

    /// Returns how much of a limit is left; nothing once it is over. Begins anew in another process.
    pub fn left_of(&mut self, limit: Duration) -> Option<Duration> {
        let process = ForkId::current();
        if self.process != process {
            *self = Self { process, waited: None };
        }
        limit.checked_sub(self.waited.unwrap_or_default()).filter(|left| !left.is_zero())
    }

    /// Pauses: `sleep` gets a duration, and returns how long it took, or `None` if it cannot sleep. Then
    /// the next look is the last one.
    ///
    /// # Errors
    ///
    /// Those of `sleep`, as where a handler of a signal raises.
    pub fn pause(
        &mut self,
        left: Duration,
        sleep: impl FnOnce(Duration) -> Result<Option<Duration>>,
    ) -> Result<()> {
        let pause = POLL_INTERVAL.min(left);
        // A clock that stands still does not make the wait endless.
        self.spend(sleep(pause)?.unwrap_or(left).max(pause));
        Ok(())
    }

    /// Counts a pause of another kind.
    pub fn spend(&mut self, took: Duration) {
        self.waited = Some(self.waited.unwrap_or_default().saturating_add(took));
    }
}

impl Default for Polling {
    fn default() -> Self {
        Self::new()
    }
}
