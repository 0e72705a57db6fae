//! What the connections count.

use std::sync::atomic::{AtomicU64, Ordering};

use randflake::ErrorKind;

/// The statuses of answers; 0 stands for all others.
const STATUSES: [u16; 15] =
    [200, 201, 204, 400, 401, 403, 404, 405, 408, 409, 410, 413, 500, 503, 0];

/// What requests may wait for.
const REASONS: [ErrorKind; 4] = [
    ErrorKind::SequenceExhausted,
    ErrorKind::ClockMovedBack,
    ErrorKind::LeaseNotStarted,
    ErrorKind::LeaseUnavailable,
];

#[derive(Default)]
pub(super) struct Counts {
    answers: [AtomicU64; STATUSES.len()],
    waits: [AtomicU64; REASONS.len()],
}

impl Counts {
    pub(super) fn answered(&self, status: u16) {
        let index = STATUSES.iter().position(|known| *known == status);
        self.answers[index.unwrap_or(STATUSES.len() - 1)].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn waited_for(&self, kind: ErrorKind) {
        if let Some(index) = REASONS.iter().position(|reason| *reason == kind) {
            self.waits[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of answers with each status.
    pub(super) fn answers(&self) -> impl Iterator<Item = (u16, u64)> {
        STATUSES.into_iter().zip(read(&self.answers))
    }

    /// Returns the number of requests that waited for each reason.
    pub(super) fn waits(&self) -> impl Iterator<Item = (ErrorKind, u64)> {
        REASONS.into_iter().zip(read(&self.waits))
    }
}

fn read(counts: &[AtomicU64]) -> impl Iterator<Item = u64> {
    counts.iter().map(|count| count.load(Ordering::Relaxed))
}
