//! The atomics of the generator, and a number for each thread. Both are the standard library's, or
//! loom's in the loom tests.

use std::{cell::Cell, sync::atomic};

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

// The standard library's in both: numbers only have to differ.
#[cfg(not(loom))]
#[allow(unused_qualifications, reason = "not while loom has its own")]
static NEXT: atomic::AtomicU64 = atomic::AtomicU64::new(1);
#[cfg(loom)]
loom::lazy_static! {
    static ref NEXT: atomic::AtomicU64 = atomic::AtomicU64::new(1);
}

#[cfg(not(loom))]
thread_local! { static NUMBER: Cell<u64> = const { Cell::new(0) }; }
#[cfg(loom)]
loom::thread_local! { static NUMBER: Cell<u64> = Cell::new(0); }

/// Returns the number of this thread, which no thread had before; never 0.
#[inline]
pub(crate) fn thread_number() -> u64 {
    NUMBER.with(|number| if number.get() == 0 { renumber_thread() } else { number.get() })
}

/// Gives this thread a number that no thread had before.
#[cold]
#[inline(never)]
pub(crate) fn renumber_thread() -> u64 {
    // Relaxed: the numbers only have to differ.
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.with(|number| number.set(next));
    next
}
