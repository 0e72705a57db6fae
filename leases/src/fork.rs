//! Which life of the process this is, and the one lock that a fork respects.
#![allow(clippy::doc_markdown, reason = "SQLite is a name")]

use randflake::{ErrorKind, bindings::ForkId};

use crate::{Error, Result};

/// A life of a process, from a fork to the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Life(ForkId);

impl Life {
    pub(crate) fn current() -> Self {
        Self(ForkId::current())
    }

    /// Fails in a forked child.
    pub(crate) fn check(self) -> Result<()> {
        if self == Self::current() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Forked,
            "this store was opened before this process was forked, and its parent goes on with \
             it; open it anew in the child",
        ))
    }
}

#[cfg(feature = "sqlite")]
pub(crate) use exclusive::Exclusive;

#[cfg(feature = "sqlite")]
mod exclusive {
    #![cfg_attr(unix, allow(unsafe_code, reason = "pthread_atfork"))]

    use std::{
        sync::atomic::{AtomicU64, Ordering},
        thread,
        time::Duration,
    };

    use super::{Error, ErrorKind, Life, Result};

    /// Zero, or the life of who holds the lock, with `FORKING` set if that is a fork.
    ///
    /// No `Mutex`, because a child has to tell a lock that its parent held from one of its own.
    static HOLDER: AtomicU64 = AtomicU64::new(0);
    const FORKING: u64 = 1 << 63;

    /// Long enough to leave the processor to the holder, who is about to wait for a disk. Who waits
    /// long does it less and less often: many who ask all the time would keep it from the holder.
    const PAUSE: Duration = Duration::from_micros(100);
    const LONGEST_PAUSE: Duration = Duration::from_millis(2);

    /// The right to have SQLite open, one thread of the process at a time. No fork comes in
    /// between: it waits for the holder, so that a child never has an open connection, a locked
    /// file or a taken mutex of its parent.
    #[derive(Debug)]
    pub(crate) struct Exclusive(());

    impl Exclusive {
        /// Waits for the lock.
        pub(crate) fn take() -> Result<Self> {
            let life = Life::current().0.number();
            let mut pause = PAUSE;
            while let Err(holder) = try_take(life) {
                if holder & !FORKING != life {
                    return Err(Error::new(
                        ErrorKind::Forked,
                        "this process was forked in the middle of an operation on a store, by \
                         other means than fork(): it can use no store",
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

    impl Drop for Exclusive {
        fn drop(&mut self) {
            // Release: the next holder sees what SQLite has left behind.
            HOLDER.store(0, Ordering::Release);
        }
    }

    /// Takes the lock, or returns who holds it.
    fn try_take(holder: u64) -> Result<u64, u64> {
        // Acquire: sees what the last holder left behind.
        HOLDER.compare_exchange(0, holder, Ordering::Acquire, Ordering::Relaxed)
    }

    /// Called by the holder of the lock. A child forked before this is done finds the lock held
    /// by its parent, and refuses.
    #[cfg(unix)]
    fn watch_forks() -> Result<()> {
        extern "C" fn before() {
            let life = Life::current().0.number();
            while let Err(holder) = try_take(life | FORKING) {
                if holder & !FORKING != life {
                    return; // nothing of this life can be under way
                }
                thread::sleep(PAUSE);
            }
        }
        extern "C" fn after() {
            // In parent and child alike: only who forks has set the flag.
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
                "there is no memory left to prepare for forks",
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
