//! Why a request of the keeper fails.

use std::time::Duration;

use randflake::{Error, ErrorKind, bindings::utc_second};

use super::HeldNode;

/// Returns whether a first lease may come later, after this failure.
#[must_use]
pub fn passes(failure: ErrorKind) -> bool {
    matches!(
        failure,
        ErrorKind::StoreUnavailable
            | ErrorKind::NodesExhausted
            | ErrorKind::ClockSkew
            | ErrorKind::StoreQuarantined
    )
}

#[cold]
pub(super) fn unasked() -> Error {
    Error::new(
        ErrorKind::StoreUnavailable,
        "this is not the answer to the last step; the connection that it came from must be discarded",
    )
}

#[cold]
pub(super) fn unusable() -> Error {
    Error::new(
        ErrorKind::StoreUnavailable,
        "the store granted leases that have ended or share no second; they are released",
    )
}

#[cold]
pub(super) fn all_manual(node_ids: &[u32]) -> Error {
    Error::new(
        ErrorKind::NodesExhausted,
        format!(
            "the store grants only the node ids {node_ids:?}, which are manually assigned in this \
             process; lease all node ids of an id column, or assign all of them manually"
        ),
    )
}

#[cold]
pub(super) fn exhausted(now: i64, free_at: Option<i64>) -> Error {
    let Some(free_at) = free_at else {
        return Error::new(
            ErrorKind::NodesExhausted,
            "every node id that was tried is leased; try again, or run fewer generators",
        );
    };
    let error = Error::new(
        ErrorKind::NodesExhausted,
        format!(
            "every node id is leased; the next one is free at {}, unless its holder renews it: try \
             again then, or run fewer generators",
            utc_second(free_at)
        ),
    );
    error.with_retry_after(seconds(free_at.saturating_sub(now)))
}

#[cold]
pub(super) fn quarantined(now: i64, until: i64) -> Error {
    let error = Error::new(
        ErrorKind::StoreQuarantined,
        format!(
            "the store may have lost leases, and grants new ones only from {}; existing leases can \
             be renewed",
            utc_second(until)
        ),
    );
    error.with_retry_after(seconds(until.saturating_sub(now)))
}

#[cold]
pub(super) fn lost(rows: &[HeldNode]) -> Error {
    let node_ids: Vec<u32> = rows.iter().map(|row| row.lease.node_id).collect();
    Error::new(
        ErrorKind::LeaseLost,
        format!(
            "another holder has the lease of node ids {node_ids:?}; the keeper takes a new one"
        ),
    )
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.max(0).unsigned_abs())
}
