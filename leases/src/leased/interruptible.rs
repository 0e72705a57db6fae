//! A first lease whose caller waits as its language does, so that Ctrl-C ends the wait.
//!
//! **One process life per token.** In a wait the handler of a signal may run, which may raise, fork and
//! call this library. So the keeper with its tokens, and the store with its connection, are on a thread
//! that runs no handler and that no fork copies. The caller has one end of a channel.
//!
//! - A child has that end, too, and perhaps a copy of a lease that was on its way to its parent. So
//!   the process is compared after each wait, before the channel is touched again, and once more after
//!   something has come. A child touches it no more, not even to drop it: a thread that the child does
//!   not have may hold its lock.
//! - Nobody's lease is kept: the channel has no buffer, so a lease is either received or comes back to
//!   the thread, which gives it back to the store.
//! - A request whose caller has gone ends on the thread, with the connection that it is on. No other
//!   one follows it.

use std::{
    convert::Infallible,
    mem,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, SendError},
    },
    thread,
    time::Duration,
};

use randflake::{Clock, Error, ErrorKind, Result, SystemClock, bindings::ForkId};

use super::{
    shared::ProcessLease,
    source::{FirstLease, LeaseSource, forked, no_thread},
};
use crate::fork_safe_receiver::ForkSafeReceiver;

const THREAD: &str = "randflake-first";

impl LeaseSource {
    /// As [`acquire`](Self::acquire), on a thread. The caller waits on its clock, whose sleeps are for
    /// no time.
    pub(super) fn acquire_on_thread(
        self: &Arc<Self>,
        clock: &impl Clock,
        process_lease: &ProcessLease,
    ) -> Result<FirstLease> {
        // Without a buffer: what nobody receives comes back.
        let (sender, granted) = mpsc::sync_channel(0);
        let (caller, present) = mpsc::channel::<Infallible>();
        let (source, process) = (Arc::clone(self), process_lease.process);
        let shared = Arc::clone(&process_lease.shared);
        let work = move || {
            let taken = source.acquire(&InterruptibleClock(present), process, &shared);
            if let Err(SendError(Ok(unwanted))) = sender.send(taken) {
                // What was asked for before a restore, another copy may use: it is not given back.
                let is_ours = process == ForkId::current();
                source.give_back(unwanted, if is_ours { nobody_waits() } else { forked() });
            }
        };
        let thread = thread::Builder::new().name(THREAD.to_owned());
        thread.spawn(work).map_err(|error| no_thread(&error))?;
        let mut waiting = ForkSafeReceiver::new(granted, caller);
        loop {
            let received = waiting.receive();
            if received.is_none()
                && let Err(interrupted) = clock.sleep(Duration::ZERO)
            {
                return Err(interrupted);
            }
            if waiting.is_inherited() {
                mem::forget(received);
                return Err(forked());
            }
            if let Some(taken) = received {
                return taken.unwrap_or_else(|| Err(panicked()));
            }
        }
    }

    /// As [`give_back`](Self::give_back), on a thread that nobody waits for.
    pub(super) fn give_back_on_thread(self: &Arc<Self>, granted: FirstLease, why: Error) -> Error {
        let (source, reason) = (Arc::clone(self), why.clone());
        let work = move || drop(source.give_back(granted, reason));
        // Without a thread, the lease expires.
        let _ = thread::Builder::new().name(THREAD.to_owned()).spawn(work);
        why
    }
}

/// The machine's clock, whose sleeps end when the caller has gone.
struct InterruptibleClock(Receiver<Infallible>);

impl Clock for InterruptibleClock {
    fn now(&self) -> Result<i64> {
        SystemClock.now()
    }

    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        match self.0.recv_timeout(duration) {
            Err(RecvTimeoutError::Timeout) => Ok(Some(duration)),
            Err(RecvTimeoutError::Disconnected) => Err(nobody_waits()),
            Ok(never) => match never {},
        }
    }

    fn is_system(&self) -> bool {
        true
    }
}

#[cold]
fn panicked() -> Error {
    Error::new(
        ErrorKind::Internal,
        "a defect: the thread that takes the first lease has panicked; its message is on standard error",
    )
}

/// Makes the error of a lease whose caller has gone, which nobody sees.
#[cold]
fn nobody_waits() -> Error {
    Error::new(ErrorKind::LeaseUnavailable, "nothing is waiting for this lease any more")
}
