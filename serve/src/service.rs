//! What all connections share: the generator, the store of leases, and what was counted.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use hyper::body::Bytes;
use randflake::{Error, ErrorKind, Layout, Result, bindings};
use tokio::time::{Instant, sleep};

use super::{
    access::Access, counts::Counts, flake::Flake, hiding::Hiding, leases::Leases, limits::Limits,
    places::Places, room::Room, tickets,
};
use crate::{
    log::Teller,
    openapi::{About, openapi},
};

/// How often a request checks whether there is a lease again. A check costs two loads.
const POLL: Duration = Duration::from_millis(10);

/// How long to wait after a first lease was not granted, if the error does not say.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// What a service hands out.
pub(super) struct Offers {
    pub(super) flake: Flake,
    pub(super) hiding: Hiding,
    pub(super) leases: Leases,
    pub(super) tickets: tickets::Counters,
}

pub(super) struct Service {
    pub(super) flake: Flake,
    pub(super) hiding: Hiding,
    /// What `GET /v1/layout` answers.
    pub(super) layout_json: Bytes,
    /// What `GET /openapi.json` answers.
    pub(super) openapi: Bytes,
    pub(super) leases: Leases,
    pub(super) tickets: tickets::Counters,
    pub(super) access: Access,
    pub(super) limits: Limits,
    pub(super) places: Arc<Places>,
    pub(super) room: Room,
    pub(super) namespace: String,
    pub(super) counts: Counts,
    teller: Teller,
    /// Why there is no first lease yet.
    no_first_lease: Mutex<Option<Error>>,
    ending: AtomicBool,
}

impl Service {
    pub(super) fn new(
        offers: Offers,
        access: Access,
        limits: Limits,
        namespace: &str,
        teller: Teller,
    ) -> Arc<Self> {
        let Offers { flake, hiding, leases, tickets } = offers;
        let layout = flake.layout_of_ids().copied();
        let about = About { max_count: limits.max_count, layout, has_secret: hiding.has_secret() };
        // That of encrypted ids, once they are decrypted.
        let layout = layout.unwrap_or(Layout::randflake());
        Arc::new(Self {
            layout_json: format!("{}\n", bindings::layout_json(&layout)).into(),
            openapi: openapi(about).into(),
            flake,
            hiding,
            leases,
            tickets,
            access,
            places: Places::new(limits.connections),
            room: Room::new(limits.untaken),
            limits,
            namespace: namespace.to_owned(),
            counts: Counts::default(),
            teller,
            no_first_lease: Mutex::default(),
            ending: AtomicBool::new(false),
        })
    }

    /// Takes the first lease, on this thread, for as long as that takes. From then on the generator
    /// maintains it.
    ///
    /// # Errors
    ///
    /// Why waiting does not help.
    pub(super) fn take_first_lease(&self) -> Result<()> {
        let mut told = None;
        while !self.ending.load(Ordering::Relaxed) {
            let Err(error) = self.flake.ready_in() else {
                *self.first_lease_error() = None;
                return Ok(());
            };
            // A machine may get its time from the network after this has started.
            let has_no_clock = error.kind() == ErrorKind::ClockBeforeEpoch;
            let again = error.retry_after().or(has_no_clock.then_some(FIRST_RETRY));
            let Some(retry_after) = again else { return Err(error) };
            let code = error.cause().map_or(error.code(), Error::code);
            if told != Some(code) && self.teller.report(&error) {
                told = Some(code);
            }
            *self.first_lease_error() = Some(error);
            thread::sleep(retry_after.min(FIRST_RETRY));
        }
        Ok(())
    }

    fn first_lease_error(&self) -> std::sync::MutexGuard<'_, Option<Error>> {
        self.no_first_lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills a slice with ids; waits, without a thread, if none are available now. The ids of a layout
    /// come in parts, since a tick may have fewer.
    ///
    /// # Errors
    ///
    /// As [`fill`](randflake_leases::Leased::fill).
    pub(super) async fn fill(&self, ids: &mut [i64]) -> Result<()> {
        let (mut deadline, mut filled) = (None, 0);
        while filled < ids.len() {
            let end = ids.len().min(filled.saturating_add(self.flake.most_at_once()));
            match self.flake.try_fill(&mut ids[filled..end]) {
                Ok(()) => filled = end,
                Err(error) => self.wait(error, &mut deadline).await?,
            }
        }
        Ok(())
    }

    /// Waits for what a call has lacked, until the deadline that the first wait sets.
    async fn wait(&self, error: Error, deadline: &mut Option<Instant>) -> Result<()> {
        let end = *deadline.get_or_insert_with(|| {
            if error.kind() == ErrorKind::LeaseExpired {
                let _ = self.flake.explain(error.clone()); // makes the keeper ask the store now
            }
            self.counts.waited_for(self.explained(error.clone()).kind());
            Instant::now() + self.limits.max_wait
        });
        let pause = match error.kind() {
            ErrorKind::LeaseExpired | ErrorKind::LeaseUnavailable => POLL,
            ErrorKind::SequenceExhausted
            | ErrorKind::ClockMovedBack
            | ErrorKind::LeaseNotStarted => error.retry_after().unwrap_or(POLL),
            _ => return Err(error),
        };
        if Instant::now() + pause > end {
            return Err(self.explained(error));
        }
        sleep(pause).await;
        Ok(())
    }

    /// Returns the error of a call, including the store failure that caused it.
    fn explained(&self, error: Error) -> Error {
        if error.kind() == ErrorKind::LeaseUnavailable {
            return self.first_lease_error().clone().unwrap_or(error);
        }
        self.flake.explain(error)
    }

    /// Checks whether an id is available now, or within the wait of a request.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(super) fn check_ready(&self) -> Result<()> {
        if self.is_ending() {
            return Err(Error::new(ErrorKind::Closed, "this server is shutting down"));
        }
        self.flake.check_ready(self.limits.max_wait).map_err(|error| self.explained(error))
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use randflake::Secret;
    use randflake_leases::{Leased, Location, MemoryStore, Namespace};

    use super::*;

    #[test]
    fn a_clock_that_is_not_set_yet_is_waited_for() {
        let secret = Secret::random();
        let namespace = Namespace::new("default", &secret).expect("a namespace");
        let store = MemoryStore::new(namespace.clone());
        let asked = Arc::<AtomicU32>::default();
        let counted = Arc::clone(&asked);
        let is_set = Arc::<AtomicBool>::default();
        let clock = Arc::clone(&is_set);
        let location = Location::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            if !clock.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::ClockBeforeEpoch, "the clock is not set"));
            }
            Ok(Box::new(store.clone()))
        });
        let flake = Leased::builder(location.clone(), &secret).max_wait(Duration::ZERO);
        let offers = Offers {
            flake: Flake::Secret(flake.open_lazily().expect("a generator")),
            hiding: Hiding::new(None),
            leases: Leases::new(location.clone(), namespace, Layout::randflake()),
            tickets: tickets::Counters::new(location, "tickets"),
        };
        let limits = Limits::new(1, Duration::ZERO, 300);
        let service = Service::new(offers, Access::local(), limits, "default", Teller::silent());
        thread::scope(|scope| {
            let first = scope.spawn(|| service.take_first_lease());
            while asked.load(Ordering::Relaxed) < 2 && !first.is_finished() {
                thread::sleep(Duration::from_millis(1));
            }
            let why = service.check_ready().expect_err("there is no clock");
            assert_eq!(why.kind(), ErrorKind::ClockBeforeEpoch, "{why}");
            is_set.store(true, Ordering::Relaxed);
            first.join().expect("no panic").expect("a lease");
        });
        service.flake.try_fill(&mut [0]).expect("an id");
        service.check_ready().expect("it is ready");
    }
}
