//! What sequential numbers have done, in numbers.

use randflake::{Error, ErrorKind};

/// What [`Tickets`](crate::Tickets) have done in this process, in numbers; see
/// [`Tickets::metrics`](crate::Tickets::metrics).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TicketsMetrics {
    /// How many numbers were handed out. Also those few that threads claimed next to the end of a
    /// block and had to drop.
    pub numbers_generated: u64,
    /// How many numbers are drawn and not handed out: what a kill of the process now would lose.
    pub reserve: u64,
    /// How many blocks were drawn.
    pub blocks_drawn: u64,
    /// How many calls waited for a block.
    pub waits: u64,
    /// How many requests were made to the store.
    pub store_requests: u64,
    /// How long these took in all, in seconds.
    pub store_request_seconds: f64,
    /// How many requests failed, by the kind of the error: the kinds that occurred.
    pub store_errors: Vec<(ErrorKind, u64)>,
    /// The last of these errors.
    pub last_error: Option<Error>,
}
