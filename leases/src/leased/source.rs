//! Where the leases of a generator come from, in this process and in its children.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        mpsc::{self, SendError},
    },
    thread,
    time::Duration,
};

use once_cell::race::OnceBox;
use randflake::{
    Clock, Error, ErrorKind, Format, Generator, Lease, NodeIds, Result, bindings::ForkId,
};

use super::{
    LeaseStatus,
    shared::Shared,
    status::{PATIENCE, obstacle},
};
use crate::{
    clocks::reading,
    keeper::{Answer, Keeper, Options, Reading, Step},
    location::Location,
    namespace::Namespace,
    note::Note,
    protocol::{Acquire, Acquired, LeaseStore, NodeLease, Release, Reply},
};

/// How long the last attempt at a first lease may take.
const LAST_ATTEMPT: Duration = Duration::from_millis(250);

pub(super) struct LeaseSource {
    pub(super) location: Location,
    pub(super) namespace: Namespace,
    pub(super) options: Options,
    /// The node ids of this process: a granted one that is manually assigned here is given back.
    pub(super) node_ids: NodeIds,
    pub(super) on_lease_change: Option<Arc<OnLeaseChange>>,
    /// The clock's sleeps interrupt the wait for a first lease; see
    /// [`interruptible`](super::interruptible).
    pub(super) is_interruptible: bool,
    /// Set when a store is opened first. Without a lock, since it is read in children as well.
    pub(super) store_name: OnceBox<String>,
}

/// Is called with each change of a lease.
pub(super) type OnLeaseChange = dyn Fn(&LeaseStatus) + Send + Sync;

/// A first lease, for which there is no generator yet.
pub(super) struct FirstLease {
    pub(super) keeper: Keeper,
    pub(super) store: OpenStore,
    pub(super) node_ids: Vec<u32>,
    pub(super) lease: Lease,
}

/// A store; `None` if it has to be opened again.
pub(super) type OpenStore = Option<Box<dyn LeaseStore>>;

impl LeaseSource {
    /// Reports a change of the lease, on the thread that keeps it and outside of its lock.
    pub(super) fn tell(&self, status: &LeaseStatus) {
        // A panic is on standard error, and does not touch the lease.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| {
            #[cfg(feature = "tracing")]
            status.trace();
            if let Some(on_lease_change) = &self.on_lease_change {
                on_lease_change(status);
            }
        }));
    }

    /// Returns what people call the store; nothing before it was opened first.
    pub(super) fn store_name(&self) -> &str {
        self.store_name.get().map_or("", String::as_str)
    }

    /// Describes what is kept; `None` if it is closed or has no lease yet.
    pub(super) fn status<F: Format, C: Clock>(
        &self,
        keeper: &Keeper,
        generator: &Generator<F, C>,
        now: Reading,
    ) -> Option<LeaseStatus> {
        let (lease, node_ids) = (generator.lease()?, generator.node_ids().to_vec());
        Some(self.status_of(keeper, node_ids, lease, now, obstacle(generator, PATIENCE)))
    }

    pub(super) fn status_of(
        &self,
        keeper: &Keeper,
        node_ids: Vec<u32>,
        lease: Lease,
        now: Reading,
        obstacle: Option<Error>,
    ) -> LeaseStatus {
        let names = (self.store_name(), self.namespace.name());
        LeaseStatus::new(keeper, node_ids, lease, names, now, obstacle)
    }

    fn open(&self) -> Result<Box<dyn LeaseStore>> {
        let store = self.location.open(&self.namespace)?;
        self.store_name.get_or_init(|| Box::new(store.name()));
        Ok(store)
    }

    /// Takes the first lease of a process. Failed requests are counted in what the process shares.
    pub(super) fn acquire(
        &self,
        clock: &impl Clock,
        process: ForkId,
        shared: &Shared,
    ) -> Result<FirstLease> {
        let node_ids = self.node_ids.clone();
        let mut keeper = Keeper::new(self.options)?
            .note(Note::of_process())
            .manual(move |granted| node_ids.grant(granted));
        match self.first_lease(&mut keeper, clock, process) {
            Ok((store, node_ids, lease)) => Ok(FirstLease { keeper, store, node_ids, lease }),
            Err(error) => {
                if process == ForkId::current() {
                    shared.lock().earlier_requests.add(keeper.requests());
                }
                Err(error)
            }
        }
    }

    /// Drives a new keeper until it has a first lease.
    fn first_lease(
        &self,
        keeper: &mut Keeper,
        clock: &impl Clock,
        process: ForkId,
    ) -> Result<(OpenStore, Vec<u32>, Lease)> {
        let mut store = Some(self.open()?);
        let mut interrupted = None;
        let deadline = reading()?.boot + self.options.acquire_timeout;
        loop {
            let now = reading()?;
            match keeper.step(now) {
                Step::Open { node_ids, lease } => {
                    return Ok((store, node_ids, lease));
                }
                Step::Stopped => {
                    let failure = interrupted.or_else(|| keeper.last_error().cloned());
                    return Err(failure.expect("a keeper ends early for a reason"));
                }
                Step::Sleep(pause) => {
                    if let Err(error) = clock.sleep(pause) {
                        interrupted = Some(error);
                        keeper.stop();
                    }
                    // By a handler of a signal. Both processes would ask with one token.
                    if process != ForkId::current() {
                        return Err(interrupted.unwrap_or_else(forked));
                    }
                }
                // The first attempt has no time limit here: its error says more than a timeout.
                Step::Acquire(request) if keeper.last_error().is_some() => {
                    let left = deadline.saturating_sub(now.boot).max(LAST_ATTEMPT);
                    let answer = self.acquire_within(left, &request, process, &mut store);
                    let answer = answer.unwrap_or_else(|| {
                        Err(keeper.last_error().expect("matched above").clone())
                    });
                    if keeper.answer(Answer::Acquired(answer), reading()?).is_err() {
                        give_up(&mut store);
                    }
                }
                step => self.ask_for(keeper, step, &mut store)?,
            }
        }
    }

    /// Acquires, or gives up after the time limit, even if the store's client goes on.
    fn acquire_within(
        &self,
        limit: Duration,
        request: &Acquire,
        process: ForkId,
        store: &mut OpenStore,
    ) -> Option<Result<Reply<Acquired>>> {
        let opened = store.take().map_or_else(|| self.open(), Ok);
        let mut store_of_thread = match opened {
            Ok(opened) => opened,
            Err(error) => return Some(Err(error)),
        };
        // A channel without a buffer: if the receiver is gone, the thread gives the lease back.
        let (sender, receiver) = mpsc::sync_channel(0);
        let request = request.clone();
        let work = move || {
            let reply = store_of_thread.acquire(&request);
            let unwanted = sender.send((store_of_thread, reply)).err();
            if let Some(SendError((mut store, Ok(reply)))) = unwanted
                && let Acquired::Granted { leases, .. } = reply.outcome
                && process == ForkId::current()
            {
                for NodeLease { node_id, start, .. } in leases {
                    let (token, node_ids) = (request.token, vec![node_id]);
                    // It was never stamped. If the release fails, the lease expires.
                    let _ = store.release(&Release { token, node_ids, used_until: start });
                }
            }
        };
        let thread = thread::Builder::new().name("randflake-acquire".to_owned());
        if let Err(error) = thread.spawn(work) {
            return Some(Err(no_thread(&error)));
        }
        let (opened, reply) = receiver.recv_timeout(limit).ok()?;
        *store = Some(opened);
        Some(reply)
    }

    /// Gives a lease back for which no generator could be made, and returns why.
    pub(super) fn give_back(&self, granted: FirstLease, why: Error) -> Error {
        let FirstLease { mut keeper, mut store, .. } = granted;
        let Ok(now) = reading() else { return why };
        let _ = keeper.answer(Answer::Opened(Err(why.clone())), now);
        while let step @ Step::Release(_) = keeper.step(now) {
            if self.ask_for(&mut keeper, step, &mut store).is_err() {
                break;
            }
        }
        why
    }

    /// Sends a keeper's request to the store, and the answer to the keeper.
    fn ask_for(&self, keeper: &mut Keeper, step: Step, store: &mut OpenStore) -> Result<()> {
        let answer = self.ask(step, store);
        if keeper.answer(answer, reading()?).is_err() {
            give_up(store);
        }
        Ok(())
    }

    /// Sends a request to the store.
    pub(super) fn ask(&self, step: Step, store: &mut OpenStore) -> Answer {
        let open = || match store {
            Some(store) => Ok(store),
            none => Ok(none.insert(self.open()?)),
        };
        match step {
            Step::Acquire(request) => Answer::Acquired(open().and_then(|s| s.acquire(&request))),
            Step::Renew(request) => Answer::Renewed(open().and_then(|s| s.renew(&request))),
            Step::Release(request) => Answer::Released(open().and_then(|s| s.release(&request))),
            other => unreachable!("{other:?} is for the generator"),
        }
    }
}

/// Gives up a store whose connection delivers the answers to other requests.
fn give_up(store: &mut OpenStore) {
    if let Some(mut store) = store.take() {
        store.discard();
    }
}

#[cold]
pub(super) fn forked() -> Error {
    Error::new(
        ErrorKind::Forked,
        "this process was forked, or restored, while a lease was being taken",
    )
}

#[cold]
pub(super) fn no_thread(error: &io::Error) -> Error {
    Error::new(
        ErrorKind::StoreUnavailable,
        format!("cannot start the thread that keeps the lease: {error}"),
    )
}
