//! What ends with an environment, the main thread or a worker: leased generators, and tickets.
//!
//! They are given back in an `exit` listener on the main thread and in a cleanup hook of a worker, within 5
//! seconds in all.

use std::{
    mem, ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use randflake::{Clock, Error, ErrorKind, Format, Result, SystemClock};
use randflake_leases::{Leased, bindings::Polling};
use randflake_tickets::{DatedTickets, Tickets};

/// How long the end of an environment waits for the store.
const LONGEST_END: Duration = Duration::from_secs(5);

/// How often a wait checks whether its environment has ended.
pub(crate) const LONGEST_SLICE: Duration = Duration::from_millis(50);

/// The leased generators of an environment, and its tickets.
#[derive(Default)]
pub(crate) struct Closing(Mutex<Shared>);

#[derive(Default)]
struct Shared {
    /// Includes collected ones, until the store knows.
    held: Vec<Arc<dyn Closeable>>,
    pending: Pending,
    ended: bool,
}

/// Each thread that asks the store for a lease keeps one until it has a lease or has failed.
pub(crate) type Pending = Arc<()>;

/// A leased generator of either format, or tickets.
pub(crate) trait Closeable: Send + Sync {
    fn stop(&self);
    fn close(&self);
    fn is_ended(&self) -> bool;
}

impl<F: Format, C: Clock + Send + Sync + 'static> Closeable for Leased<F, C> {
    fn stop(&self) {
        self.stop();
    }

    fn close(&self) {
        self.close();
    }

    fn is_ended(&self) -> bool {
        self.is_ended()
    }
}

impl Closeable for DatedTickets {
    fn stop(&self) {
        self.stop();
    }

    fn close(&self) {
        self.close();
    }

    fn is_ended(&self) -> bool {
        self.is_over()
    }
}

impl Closeable for Tickets {
    fn stop(&self) {
        self.stop();
    }

    fn close(&self) {
        self.close();
    }

    fn is_ended(&self) -> bool {
        self.is_over()
    }
}

impl Closing {
    /// Ends all generators, gives their node ids back and waits for that, for some seconds at
    /// most. A lease that is being acquired is given up, or given back.
    pub(crate) fn end(&self) {
        let mut shared = self.lock();
        shared.ended = true;
        let (held, pending) = (mem::take(&mut shared.held), mem::take(&mut shared.pending));
        drop(shared);
        for leased in &held {
            leased.stop(); // all at once
        }
        let is_done =
            || Arc::strong_count(&pending) == 1 && held.iter().all(|leased| leased.is_ended());
        let mut polling = Polling::new();
        while !is_done()
            && let Some(left) = polling.left_of(LONGEST_END)
            && polling.pause(left, |pause| SystemClock.sleep(pause)).is_ok()
        {}
    }

    /// Returns whether the environment has ended: JavaScript no longer runs.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().ended
    }

    /// Begins to ask a store for a lease. The end of the environment waits for it.
    pub(crate) fn begin(&self) -> Result<Pending> {
        let shared = self.lock();
        if shared.ended { Err(ended()) } else { Ok(Arc::clone(&shared.pending)) }
    }

    /// Registers what holds something of a store, so that it ends with the environment.
    pub(crate) fn keep(&self, leased: Arc<dyn Closeable>) -> Result<()> {
        let mut shared = self.lock();
        if shared.ended {
            drop(shared);
            leased.close();
            return Err(ended());
        }
        shared.held.retain(|other| !other.is_ended());
        let is_held =
            |other: &Arc<dyn Closeable>| ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(&leased));
        if !shared.held.iter().any(is_held) {
            shared.held.push(leased);
        }
        Ok(())
    }

    /// A panic leaves a list of leases valid.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cold]
pub(crate) fn ended() -> Error {
    Error::new(
        ErrorKind::Closed,
        "this process or worker is shutting down, and cannot lease node ids",
    )
}
