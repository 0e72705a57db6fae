use std::time::Duration;

/// What a request may ask for, and what connections may take.
pub(super) struct Limits {
    /// Most ids.
    pub(super) max_count: u32,
    /// How long it waits.
    pub(super) max_wait: Duration,
    /// Seconds of a lease that does not say for how long.
    pub(super) ttl: u32,
    /// Most connections at a time.
    pub(super) connections: u32,
    /// How long a client may take for the head of a request, from the last answer on: an idle
    /// connection is closed after it, too.
    pub(super) head: Duration,
    /// How long a client may take for all of an answer, from when it takes no more on.
    pub(super) flush: Duration,
    /// For how long a connection is kept: the answer after that is its last.
    pub(super) keep: Duration,
    /// Bytes of large answers that clients have not taken, in all.
    pub(super) untaken: usize,
}

impl Limits {
    pub(super) const fn new(max_count: u32, max_wait: Duration, ttl: u32) -> Self {
        Self {
            max_count,
            max_wait,
            ttl,
            // Most systems let a process have 1024 files, and the store needs some.
            connections: 900,
            head: Duration::from_secs(60),
            flush: Duration::from_secs(60),
            keep: Duration::from_secs(3600),
            untaken: 64 << 20,
        }
    }
}
