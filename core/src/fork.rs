//! Which process life this is.
//!
//! A page that the kernel wipes in every child (`MADV_WIPEONFORK`) holds an epoch: a number that
//! is never zero and never the one of an ancestor. Whatever carries another epoch was made before
//! a fork. The page also catches a raw `clone`, which `pthread_atfork` does not; the handler is
//! there besides, and alone where the page is not to be had.
#![allow(unsafe_code, reason = "mmap, madvise and pthread_atfork")]

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// One life of a process: from its start, or from the fork that made it, to the next fork.
///
/// For what must not be used in a child: keep the life it was made in, and compare.
///
/// ```
/// use randflake::bindings::ForkId;
///
/// let made_in = ForkId::current();
/// assert_eq!(made_in, ForkId::current()); // false in a forked child
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ForkId(u64);

impl ForkId {
    /// Returns the life of this process.
    #[must_use]
    pub fn current() -> Self {
        Self(life().epoch())
    }

    /// Returns the number of this life: small, never zero, never that of an ancestor.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What is wiped in a child.
#[derive(Debug)]
pub(crate) struct Life {
    /// Zero in a child that has not looked yet.
    epoch: AtomicU64,
    /// Drawn at random on first use, so that two children of one parent have two; zero: not yet.
    seed: AtomicU64,
}

static PAGE: AtomicPtr<Life> = AtomicPtr::new(std::ptr::null_mut());

/// Used where the kernel wipes no pages.
static ORDINARY: Life = Life { epoch: AtomicU64::new(0), seed: AtomicU64::new(0) };

/// The newest epoch of this process and its ancestors; ordinary memory, so a child inherits it.
static NEWEST_EPOCH: AtomicU64 = AtomicU64::new(0);

/// Returns this process's life.
pub(crate) fn life() -> &'static Life {
    // Acquire: pairs with the release in `install`, so that the page is seen initialised.
    let page = PAGE.load(Ordering::Acquire);
    if page.is_null() {
        return install();
    }
    // SAFETY: only `install` stores here, and only pointers that stay valid for ever.
    unsafe { &*page }
}

impl Life {
    /// Returns the epoch of this process: never zero, never that of an ancestor.
    pub(crate) fn epoch(&self) -> u64 {
        // Relaxed, here and below: fork happens between two instructions of one thread, which
        // needs no ordering, and the epoch publishes no other memory.
        let epoch = self.epoch.load(Ordering::Relaxed);
        if epoch != 0 {
            return epoch;
        }
        // Raised before it is used: a child forked between the two lines raises it further.
        let next = NEWEST_EPOCH.fetch_add(1, Ordering::Relaxed) + 1;
        match self.epoch.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => next,
            Err(other_thread) => other_thread,
        }
    }

    /// Tells whether `epoch` is that of this process. What a hand-out calls: one load.
    #[inline]
    pub(crate) fn is_current(&self, epoch: u64) -> bool {
        self.epoch.load(Ordering::Relaxed) == epoch
    }

    /// Returns the random number of this life: never zero, and another one than that of any other
    /// process.
    ///
    /// # Panics
    ///
    /// If the operating system has no random numbers to give.
    pub(crate) fn seed(&self) -> u64 {
        let seed = self.seed.load(Ordering::Relaxed);
        if seed != 0 {
            return seed;
        }
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("the operating system has a random source");
        let new = u64::from_ne_bytes(bytes).max(1);
        match self.seed.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => new,
            Err(other_thread) => other_thread,
        }
    }
}

/// Maps the page, or falls back, once in the life of the oldest ancestor.
#[cold]
fn install() -> &'static Life {
    // Before anybody has an epoch: a child forked after that has the handler. Twice does no harm.
    watch_forks();
    let page = wiped_page();
    let candidate = page.unwrap_or_else(|| std::ptr::from_ref(&ORDINARY).cast_mut());
    // AcqRel: publishes the page; on failure takes over the one of another thread.
    let null = std::ptr::null_mut();
    let published = PAGE.compare_exchange(null, candidate, Ordering::AcqRel, Ordering::Acquire);
    if published.is_err()
        && let Some(page) = page
    {
        unmap(page);
    }
    let life = published.err().unwrap_or(candidate);
    // SAFETY: only this function stores into PAGE, and only pointers that stay valid for ever.
    unsafe { &*life }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const PAGE_BYTES: usize = 4096; // the kernel rounds up to its own page size

/// Maps a page of zeros, which are a valid Life, that a child finds zeroed again.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn wiped_page() -> Option<*mut Life> {
    // SAFETY: a new anonymous mapping touches no memory of anybody else.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page was mapped above and belongs to nobody else.
    let advised = unsafe { libc::madvise(page, PAGE_BYTES, libc::MADV_WIPEONFORK) };
    if advised == 0 {
        Some(page.cast())
    } else {
        unmap(page.cast());
        None
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn unmap(page: *mut Life) {
    // SAFETY: called only for a page that was never published, by the one who mapped it.
    unsafe { libc::munmap(page.cast(), PAGE_BYTES) };
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn wiped_page() -> Option<*mut Life> {
    None
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn unmap(_page: *mut Life) {}

#[cfg(unix)]
fn watch_forks() {
    extern "C" fn in_child() {
        // Only atomics: safe in the child of a process with threads. What the kernel has wiped may
        // be in use again, by another library's handler.
        let page = PAGE.load(Ordering::Acquire);
        if std::ptr::eq(page, &raw const ORDINARY) {
            ORDINARY.epoch.store(0, Ordering::Relaxed);
            ORDINARY.seed.store(0, Ordering::Relaxed);
        }
    }
    // SAFETY: the handler is a plain function that stays valid: the libraries that hold this
    // code are linked so that they are never unloaded. If registering fails for want of memory,
    // the page still tells.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

#[cfg(not(unix))]
fn watch_forks() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_wiped_on_this_machine() {
        let life = life();
        assert!(!std::ptr::eq(life, &raw const ORDINARY), "MADV_WIPEONFORK is to be had");
        assert!(life.is_current(life.epoch()));
        assert!(!life.is_current(0));
    }
}
