//! The check that a store was opened in this process, and the one lock that a fork respects.
#![allow(clippy::doc_markdown, reason = "SQLite is a name")]

use randflake::{Error, ErrorKind, Result, bindings::ForkId};

/// Fails in a forked child of the process that opened a store, and after a restore.
pub(crate) fn check_opened_in(process: ForkId) -> Result<()> {
    check(process == ForkId::current())
}

/// Fails in a forked child of the process that has these threads: a thread that does not exist in
/// the child may hold the lock on what is in memory.
pub(crate) fn check_threads(threads: ForkId) -> Result<()> {
    check(threads == ForkId::of_threads())
}

fn check(is_usable: bool) -> Result<()> {
    if is_usable {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Forked,
        "this store was opened before this process was forked or restored, and another process may \
         use its connection; open it again",
    ))
}

#[cfg(feature = "sqlite")]
pub(crate) use process_lock::ProcessLock;

#[cfg(feature = "sqlite")]
mod process_lock {
    #![cfg_attr(unix, allow(unsafe_code, reason = "pthread_atfork"))]

    use std::{
        sync::atomic::{AtomicU64, Ordering},
        thread,
        time::Duration,
    };

    use super::{Error, ErrorKind, ForkId, Result};

    /// Zero, or the process that holds the lock, with `FORKING` set if a fork holds it.
    ///
    /// Not a `Mutex`, because a child must distinguish a lock of its parent from its own.
    static HOLDER: AtomicU64 = AtomicU64::new(0);
    const FORKING: u64 = 1 << 63;

    /// Long enough to leave the processor to the holder, which waits for a disk. Pauses grow, because
    /// many threads that poll would keep the processor from the holder.
    const PAUSE: Duration = Duration::from_micros(100);
    const LONGEST_PAUSE: Duration = Duration::from_millis(2);

    /// The right to have SQLite open, for one thread of the process at a time. A fork waits for the
    /// holder, so that a child never inherits an open connection, a locked file or a locked mutex.
    #[derive(Debug)]
    pub(crate) struct ProcessLock(());

    impl ProcessLock {
        /// Waits for the lock.
        pub(crate) fn take() -> Result<Self> {
            let process = ForkId::of_threads().number();
            let mut pause = PAUSE;
            while let Err(holder) = try_take(process) {
                if holder & !FORKING != process {
                    return Err(Error::new(
                        ErrorKind::Forked,
                        "this process was forked during an operation on a store, by other means \
                         than fork(), so it cannot use any store",
                    ));
                }
                thread::sleep(pause);
                pause = LONGEST_PAUSE.min(2 * pause);
            }
            let taken = Self(());
            watch_forks()?;
            Ok(taken)
        }
    }

    impl Drop for ProcessLock {
        fn drop(&mut self) {
            // Release: the next holder sees everything that this one did.
            HOLDER.store(0, Ordering::Release);
        }
    }

    /// Takes the lock, or returns its holder.
    fn try_take(holder: u64) -> Result<u64, u64> {
        // Acquire: sees everything that the last holder did.
        HOLDER.compare_exchange(0, holder, Ordering::Acquire, Ordering::Relaxed)
    }

    /// Called by the holder of the lock. A child forked before this has finished finds the lock
    /// held by its parent, and refuses.
    #[cfg(unix)]
    fn watch_forks() -> Result<()> {
        extern "C" fn before() {
            let process = ForkId::of_threads().number();
            while let Err(holder) = try_take(process | FORKING) {
                if holder & !FORKING != process {
                    return; // no operation of this process can be in progress
                }
                thread::sleep(PAUSE);
            }
        }
        extern "C" fn after() {
            // In the parent and in the child: only the fork has set the flag.
            if HOLDER.load(Ordering::Relaxed) & FORKING != 0 {
                HOLDER.store(0, Ordering::Release);
            }
        }

        // Relaxed: guarded by the lock.
        static WATCHED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
        if WATCHED.load(Ordering::Relaxed) {
            return Ok(());
        }
        // SAFETY: the handlers are plain functions that stay valid: the libraries that hold this
        // code are linked so that they are never unloaded. They use atomics and sleep, which a
        // child of a process with threads may.
        let failed = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
        if failed != 0 {
            return Err(Error::new(
                ErrorKind::StoreUnavailable,
                "not enough memory to register the fork handlers",
            ));
        }
        WATCHED.store(true, Ordering::Relaxed);
        Ok(())
    }

    #[cfg(not(unix))]
    fn watch_forks() -> Result<()> {
        Ok(())
    }
}
