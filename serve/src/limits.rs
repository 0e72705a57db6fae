use std::time::Duration;

/// What a request may ask for, and what connections may take.
pub(super) struct Limits {
    /// The most ids per request.
    pub(super) max_count: u32,
    /// How long a request waits.
    pub(super) max_wait: Duration,
    /// The length of a lease in seconds if the request does not give one.
    pub(super) ttl: u32,
    /// The most connections at a time.
    pub(super) connections: u32,
    /// How long a client may take for the head of a request, counted from the last answer: an idle
    /// connection is closed after this time, too.
    pub(super) head: Duration,
    /// How long a client may take for all of an answer, counted from when it first takes nothing.
    pub(super) flush: Duration,
    /// How long a connection is kept: the next answer after that is its last.
    pub(super) keep: Duration,
    /// The total bytes of large answers that clients have not taken yet.
    pub(super) untaken: usize,
}

impl Limits {
    pub(super) const fn new(max_count: u32, max_wait: Duration, ttl: u32) -> Self {
        Self {
            max_count,
            max_wait,
            ttl,
            // Most systems allow a process 1024 files, and the store needs some.
            connections: 900,
            head: Duration::from_secs(60),
            flush: Duration::from_secs(60),
            keep: Duration::from_secs(3600),
            untaken: 64 << 20,
        }
    }
}
