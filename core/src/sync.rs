//! The atomics of the generator, and a number for each Term. Both are the standard library's, or
//! loom's in the loom tests.

use std::sync::atomic;

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

// The standard library's in both: numbers only have to differ.
#[cfg(not(loom))]
#[allow(unused_qualifications, reason = "not while loom has its own")]
static NEXT: atomic::AtomicU64 = atomic::AtomicU64::new(1);
#[cfg(loom)]
loom::lazy_static! {
    static ref NEXT: atomic::AtomicU64 = atomic::AtomicU64::new(1);
}

/// Returns a number that this process, and the ones it was forked from, have not used yet; never 0.
pub(crate) fn next_number() -> u64 {
    // Relaxed: the numbers only have to differ.
    NEXT.fetch_add(1, Ordering::Relaxed)
}
