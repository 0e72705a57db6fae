//! Detects forks by a number that differs in every forked child: the fork id. [`after_restore`]
//! gives a process a new one.
//!
//! It is in a page that the kernel wipes in every child (`MADV_WIPEONFORK`); it is never zero and
//! never equals an ancestor's. Whatever carries another fork id was made before a fork. The page
//! also detects a raw `clone`, which a `pthread_atfork` handler does not. The handler is registered
//! as well, and is the only means where pages are not wiped: with other kernels and processor
//! emulators. Miri has neither, and no fork.
//!
//! Where only the handler detects a fork, child handlers that other libraries registered before
//! this one run while the fork id is still the parent's: load this library early. No library can
//! see a fork by a signal handler after the last comparison of a call; both processes then have the
//! ids of that call.
//!
//! After `after_restore`, other than in a child, the threads go on. So locks carry a fork id of the
//! threads, which stays (`ForkId::of_threads`). The thread that keeps a lease of before may come
//! late, so it names the process whose lease it keeps (`extend_lease_of`, `replace_lease_of`,
//! `close_of`), and does nothing to a lease of after.
#![allow(unsafe_code, reason = "mmap, madvise and pthread_atfork")]

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// A number of this process that differs in every forked child, and after each
/// [`after_restore`](crate::after_restore).
///
/// For what must not be used in a child: keep the fork id it was made with, and compare.
///
/// ```
/// use randflake::bindings::ForkId;
///
/// let made_with = ForkId::current();
/// assert_eq!(made_with, ForkId::current()); // false in a forked child
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ForkId(u64);

impl ForkId {
    /// A fork id that no process has. Not zero, which the page of a child shows until it is read.
    pub(crate) const NONE: Self = Self(u64::MAX);

    /// Returns the fork id of this process.
    #[must_use]
    pub fn current() -> Self {
        page().fork_id()
    }

    /// Returns the fork id of this process's threads: it differs in a forked child, but stays the
    /// same after [`after_restore`](crate::after_restore). For locks, which no thread of a child
    /// may hold.
    #[must_use]
    pub fn of_threads() -> Self {
        page().fork_id_of(|page| &page.of_threads)
    }

    /// Returns the number itself: small, never zero, never equal to an ancestor's.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The page that the kernel wipes in a child.
#[derive(Debug)]
pub(crate) struct ForkPage {
    /// Zero in a child that has not read it yet.
    fork_id: AtomicU64,
    /// As above, but unchanged by `after_restore`.
    of_threads: AtomicU64,
    /// Drawn at random on first use, so that two children of one parent differ; zero until then.
    seed: AtomicU64,
    /// The process that the fork id belongs to: its process id.
    process: AtomicU32,
}

static PAGE: AtomicPtr<ForkPage> = AtomicPtr::new(std::ptr::null_mut());

/// Used where the kernel wipes no pages.
static ORDINARY: ForkPage = ForkPage {
    fork_id: AtomicU64::new(0),
    of_threads: AtomicU64::new(0),
    seed: AtomicU64::new(0),
    process: AtomicU32::new(0),
};

/// The newest fork id of this process and its ancestors; ordinary memory, so a child inherits it.
static NEWEST_FORK_ID: AtomicU64 = AtomicU64::new(0);

/// Declares that this process may be one of several copies. Call it after the process was restored
/// from a snapshot or a checkpoint, or its machine was cloned, and before it makes the next id.
///
/// It does to the process what a fork does to a child. Leased generators, and `Tickets`, give up
/// what they had and start over with their next call. They release nothing, since another copy may
/// be using it. Generators with manually assigned node ids return
/// [`FORKED`](crate::ErrorKind::Forked), and so does making a generator with one of them: give each
/// copy node ids of its own.
///
/// Call it in every copy, the original included, while no other thread makes ids: a call that began
/// before may still return its result.
///
/// ```
/// use randflake::{ErrorKind, Randflake, Secret};
///
/// let flake = Randflake::new(9, &Secret::random())?;
/// randflake::after_restore();
/// assert_eq!(flake.generate().unwrap_err().kind(), ErrorKind::Forked);
/// # Ok::<(), randflake::Error>(())
/// ```
pub fn after_restore() {
    let page = page();
    page.seed.store(0, Ordering::Relaxed);
    let next = NEWEST_FORK_ID.fetch_add(1, Ordering::Relaxed) + 1;
    // The largest, in case two threads get here at once.
    page.fork_id.fetch_max(next, Ordering::Release); // whoever reads it draws another seed
}

/// Returns the page of this process.
pub(crate) fn page() -> &'static ForkPage {
    // Acquire: pairs with the release in `install`, so that the page is seen initialised.
    let page = PAGE.load(Ordering::Acquire);
    if page.is_null() {
        return install();
    }
    // SAFETY: only `install` stores here, and only pointers that stay valid forever.
    unsafe { &*page }
}

impl ForkPage {
    /// Returns the fork id of this process.
    fn fork_id(&self) -> ForkId {
        self.fork_id_of(|page| &page.fork_id)
    }

    /// Returns one of the two numbers of this process.
    fn fork_id_of(&self, which: fn(&Self) -> &AtomicU64) -> ForkId {
        let fork_id = which(self);
        // Relaxed, here and below: fork happens between two instructions of one thread, which
        // needs no ordering, and the fork id publishes no other memory.
        let known = fork_id.load(Ordering::Acquire); // pairs with the release of `after_restore`
        if known != 0 {
            return ForkId(known);
        }
        // Only on platforms where the handler reads it: WebAssembly has no processes.
        if cfg!(unix) {
            self.process.store(std::process::id(), Ordering::Relaxed);
        }
        // Raised before it is used: a child forked between the two lines raises it again.
        let next = NEWEST_FORK_ID.fetch_add(1, Ordering::Relaxed) + 1;
        match fork_id.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => ForkId(next),
            Err(other_thread) => ForkId(other_thread),
        }
    }

    /// Returns whether `fork_id` is the fork id of this process. Called for every id: one load.
    #[inline]
    pub(crate) fn is_current(&self, fork_id: ForkId) -> bool {
        self.fork_id.load(Ordering::Relaxed) == fork_id.0
    }

    /// Returns the random number of this process: never zero, and different from the number of any
    /// other process, including a forked child, and from the number before `after_restore`.
    ///
    /// # Panics
    ///
    /// If the operating system cannot provide random numbers.
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

/// Maps the page, or falls back, once in the oldest ancestor.
#[cold]
fn install() -> &'static ForkPage {
    // Before the first fork id: a child forked after that has the handler. Registering twice does
    // no harm.
    watch_forks();
    let page = wiped_page();
    let candidate = page.unwrap_or_else(|| std::ptr::from_ref(&ORDINARY).cast_mut());
    // AcqRel: publishes the page; on failure takes over another thread's.
    let null = std::ptr::null_mut();
    let published = PAGE.compare_exchange(null, candidate, Ordering::AcqRel, Ordering::Acquire);
    if published.is_err()
        && let Some(page) = page
    {
        unmap(page);
    }
    let page = published.err().unwrap_or(candidate);
    // SAFETY: only this function stores into PAGE, and only pointers that stay valid forever.
    unsafe { &*page }
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri)))]
const PAGE_BYTES: usize = 4096; // the kernel rounds up to its own page size

/// Maps a page of zeros, which are a valid `ForkPage`, that a child finds zeroed again.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri)))]
fn wiped_page() -> Option<*mut ForkPage> {
    // SAFETY: a new anonymous mapping touches no other memory.
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
    // SAFETY: the page was mapped above and is not shared yet.
    let advised = unsafe { libc::madvise(page, PAGE_BYTES, libc::MADV_WIPEONFORK) };
    if advised == 0 {
        Some(page.cast())
    } else {
        unmap(page.cast());
        None
    }
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri)))]
fn unmap(page: *mut ForkPage) {
    // SAFETY: called only by the function that mapped the page, and only if it was never published.
    unsafe { libc::munmap(page.cast(), PAGE_BYTES) };
}

#[cfg(any(not(any(target_os = "linux", target_os = "android")), miri))]
fn wiped_page() -> Option<*mut ForkPage> {
    None
}

#[cfg(any(not(any(target_os = "linux", target_os = "android")), miri))]
fn unmap(_page: *mut ForkPage) {}

#[cfg(all(unix, not(miri)))]
fn watch_forks() {
    extern "C" fn in_child() {
        // Only atomics and getpid(): safe in the child of a process with threads.
        let page = PAGE.load(Ordering::Acquire);
        if page.is_null() {
            return;
        }
        // SAFETY: as in `page`.
        let page = unsafe { &*page };
        // Even if the kernel was asked to wipe the page: an emulator may accept that and not do it.
        // A page that was wiped may be in use again, by another library's handler.
        if page.process.load(Ordering::Relaxed) != std::process::id() {
            page.fork_id.store(0, Ordering::Relaxed);
            page.of_threads.store(0, Ordering::Relaxed);
            page.seed.store(0, Ordering::Relaxed);
        }
    }
    // SAFETY: the handler is a plain function that stays valid: the libraries that hold this
    // code are linked so that they are never unloaded. If registering fails for lack of memory,
    // the page still detects forks.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

#[cfg(any(not(unix), miri))]
fn watch_forks() {}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_wiped_on_this_machine() {
        let page = page();
        assert!(!std::ptr::eq(page, &raw const ORDINARY), "MADV_WIPEONFORK is available");
        assert!(page.is_current(page.fork_id()));
        assert!(!page.is_current(ForkId(0)));
        assert!(!page.is_current(ForkId::NONE));
    }
}
