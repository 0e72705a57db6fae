use std::time::Duration;

/// What a request may ask for.
pub(super) struct Limits {
    /// Most ids.
    pub(super) max_count: u32,
    /// How long it waits.
    pub(super) max_wait: Duration,
    /// Seconds of a lease that does not say for how long.
    pub(super) ttl: u32,
}
