//! What a generator has done in this process, in numbers.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::ErrorKind;

/// What a generator has done in this process, in numbers that only rise; see
/// [`Generator::metrics`](crate::Generator::metrics).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Metrics {
    /// How many ids were claimed. A thread claims a few ids ahead for its next single calls, so
    /// this is slightly more than were returned.
    pub ids_generated: u64,
    /// How many calls waited, by the kind of the error with which they would otherwise have failed:
    /// each kind that calls wait for, in the order of declaration. A call counts from the beginning
    /// of its wait, once for each kind.
    pub waits: Vec<(ErrorKind, u64)>,
}

/// How many calls waited, by what they waited for.
// The standard library's atomics, in the loom tests as well: they order nothing.
#[derive(Debug, Default)]
pub(crate) struct Waits([AtomicU64; KINDS.len()]);

const KINDS: [ErrorKind; 3] =
    [ErrorKind::LeaseNotStarted, ErrorKind::SequenceExhausted, ErrorKind::ClockMovedBack];

/// Which kinds one call has waited for.
#[derive(Debug, Default)]
pub(crate) struct Waited([Cell<bool>; KINDS.len()]);

impl Waits {
    /// Counts a call that begins to wait, if it has not waited for that yet. Returns whether it was
    /// counted.
    pub(crate) fn begin(&self, kind: ErrorKind, waited: &Waited) -> bool {
        let Some(index) = KINDS.iter().position(|counted| *counted == kind) else { return false };
        let is_first = !waited.0[index].replace(true);
        if is_first {
            self.0[index].fetch_add(1, Ordering::Relaxed);
        }
        is_first
    }

    /// Undoes the count, since the clock cannot wait.
    pub(crate) fn take_back(&self, kind: ErrorKind) {
        if let Some(index) = KINDS.iter().position(|counted| *counted == kind) {
            self.0[index].fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The metrics of a generator that has done nothing.
impl Default for Metrics {
    fn default() -> Self {
        Self { ids_generated: 0, waits: KINDS.map(|kind| (kind, 0)).to_vec() }
    }
}

impl Metrics {
    /// Adds up what was claimed and waited for under several Terms.
    pub(crate) fn sum<'a>(terms: impl Iterator<Item = (u64, &'a Waits)>) -> Self {
        let mut metrics = Self::default();
        for (ids, waits) in terms {
            metrics.ids_generated += ids;
            for ((_, sum), count) in metrics.waits.iter_mut().zip(&waits.0) {
                *sum += count.load(Ordering::Relaxed);
            }
        }
        metrics
    }
}
