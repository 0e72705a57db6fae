//! One client for all stores of a process that are on the same server.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use once_cell::race::OnceBox;
use randflake::{Error, ErrorKind, Result, bindings::ForkId};

use super::{
    client::Client,
    exchange::{Response, Statement},
};
use crate::{clocks::boot, per_process::PerProcess};

/// How long a statement waits for its turn: longer than a server may take to answer, and shorter
/// than the default largest skew, beyond which a server refuses a request as too old.
const PATIENCE: Duration = Duration::from_secs(4);
/// A store whose last statement took longer than this queues behind the others.
const SLOW: Duration = Duration::from_secs(1);

/// One client for all stores that are opened under the same key in this process: one connection for
/// all generators of a URL. [`RemoteStore::open`](super::RemoteStore::open) uses it.
///
/// - **One at a time.** The client finishes a statement, with the `WAIT` after it, before it gets
///   the next one, and the response goes to the store that asked. After a failure, or when a store
///   got the response to another request, the connection is discarded before anything else runs on
///   it.
/// - **In turn.** A statement waits 4 seconds for its turn and then fails with
///   [`StoreUnavailable`](ErrorKind::StoreUnavailable). A store whose previous statement took
///   longer than a second queues behind the others: so a store that gets answers waits for at most
///   one that does not.
/// - **Closed when idle.** The client [rests](Client::rest) when nothing needs it for a minute, and
///   is dropped with the last store.
/// - **Forks and restores.** A child makes its own client. It touches nothing of the parent's, not
///   even a lock: what it inherited fails with [`Forked`](ErrorKind::Forked).
///
/// ```
/// use randflake_leases::remote::{Client, Response, SharedClient, Statement};
/// # use randflake_leases::Result;
///
/// struct Mine;
///
/// impl Client for Mine {
///     fn run(&mut self, _: &Statement) -> Result<Response> {
///         Ok(Response::Rows(vec![]))
///     }
///     fn discard(&mut self) {}
/// }
///
/// let one = SharedClient::open("mine://host", || Ok(Box::new(Mine)))?;
/// let other = SharedClient::open("mine://host", || unreachable!("there is one"))?;
/// # let _ = (one, other);
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub struct SharedClient {
    shared: Arc<Shared>,
    /// Whether it is counted as a user.
    is_user: bool,
    /// Which connection has run its last statement.
    connection: Option<u64>,
    /// Whether its last statement took long.
    is_slow: bool,
}

struct Shared {
    process: ForkId,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// `None` during somebody's turn.
    client: Option<Box<dyn Client>>,
    /// The number of discarded connections.
    connection: u64,
    /// The connection must be discarded when this turn ends.
    is_unwanted: bool,
    /// How many stores need the connection.
    users: usize,
    /// The waiting stores: first those that get answers, then the slow ones, each in order of
    /// arrival.
    waiting: BTreeSet<(bool, u64)>,
    tickets: u64,
    patience: Duration,
}

/// The clients of one process.
#[derive(Default)]
struct ProcessClients {
    by_key: Mutex<BTreeMap<String, Weak<Shared>>>,
}

static CLIENTS: OnceBox<PerProcess<ProcessClients>> = OnceBox::new();

impl SharedClient {
    /// Takes this process's client for a key, or makes it with `connect`. The key names the server
    /// and the login, as its URL does.
    ///
    /// # Errors
    ///
    /// That of `connect`.
    pub fn open(key: &str, connect: impl FnOnce() -> Result<Box<dyn Client>>) -> Result<Self> {
        let clients = ProcessClients::current();
        if let Some(shared) = clients.lock().get(key).and_then(Weak::upgrade) {
            return Ok(Self::new(shared));
        }
        // Not under the lock: `connect` may itself open a client.
        let made = Arc::new(Shared::new(connect()?));
        let mut by_key = clients.lock();
        by_key.retain(|_, shared| shared.strong_count() > 0);
        let shared = by_key.get(key).and_then(Weak::upgrade);
        let shared = shared.unwrap_or_else(|| {
            by_key.insert(key.to_owned(), Arc::downgrade(&made));
            Arc::clone(&made)
        });
        drop(by_key);
        Ok(Self::new(shared))
    }

    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, is_user: false, connection: None, is_slow: false }
    }

    /// Says that this store no longer needs the connection.
    fn leave(&mut self) {
        if !mem::take(&mut self.is_user) || !self.shared.is_of_this_process() {
            return;
        }
        let mut state = self.shared.lock();
        state.users -= 1;
        if state.users == 0
            && let Some(mut turn) = self.shared.begin(&mut state)
        {
            drop(state);
            turn.client().rest();
        }
    }
}

impl Client for SharedClient {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        self.shared.check_process()?;
        if !mem::replace(&mut self.is_user, true) {
            self.shared.lock().users += 1;
        }
        let mut turn = self.shared.wait(self.is_slow)?;
        self.shared.check_process()?; // again, after the wait
        self.connection = Some(turn.connection);
        let begun = boot();
        turn.has_failed = true; // in case it panics
        let response = turn.client().run(statement);
        self.is_slow = boot().saturating_sub(begun) > SLOW;
        turn.has_failed = response.is_err();
        response
    }

    /// Discards the connection that ran the last statement, unless that has been done.
    fn discard(&mut self) {
        if !self.shared.is_of_this_process() {
            return;
        }
        let mut state = self.shared.lock();
        if self.connection != Some(state.connection) {
            return;
        }
        state.is_unwanted = true;
        // During somebody's turn, the connection is discarded when the turn ends.
        let turn = self.shared.begin(&mut state);
        drop(state);
        drop(turn);
    }

    fn rest(&mut self) {
        self.leave();
    }
}

impl Drop for SharedClient {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The right to use the client.
struct ClientGuard<'a> {
    shared: &'a Shared,
    /// `None` only while it is dropped.
    client: Option<Box<dyn Client>>,
    connection: u64,
    has_failed: bool,
}

impl ClientGuard<'_> {
    fn client(&mut self) -> &mut dyn Client {
        self.client.as_mut().expect("until it is dropped")
    }
}

impl Drop for ClientGuard<'_> {
    fn drop(&mut self) {
        loop {
            let mut state = self.shared.lock();
            if mem::take(&mut self.has_failed) | mem::take(&mut state.is_unwanted) {
                state.connection += 1;
                drop(state); // the client may take its time
                self.client().discard();
                continue;
            }
            state.client = self.client.take();
            drop(state);
            self.shared.changed.notify_all();
            return;
        }
    }
}

impl Shared {
    fn new(client: Box<dyn Client>) -> Self {
        let state = State {
            client: Some(client),
            connection: 0,
            is_unwanted: false,
            users: 0,
            waiting: BTreeSet::new(),
            tickets: 0,
            patience: PATIENCE,
        };
        let process = ForkId::current();
        Self { process, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// In a forked child the connection is the parent's, and its lock may never be free. After a restore
    /// another copy may use the connection.
    fn is_of_this_process(&self) -> bool {
        self.process == ForkId::current()
    }

    fn check_process(&self) -> Result<()> {
        if self.is_of_this_process() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Forked,
            "this connection belongs to the process that this one was forked or restored from; \
             open the store again",
        ))
    }

    /// The state is consistent after a panic: no client runs under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a turn if none is in progress.
    fn begin(&self, state: &mut State) -> Option<ClientGuard<'_>> {
        let client = state.client.take()?;
        let connection = state.connection;
        Some(ClientGuard { shared: self, client: Some(client), connection, has_failed: false })
    }

    /// Waits for a turn.
    fn wait(&self, is_slow: bool) -> Result<ClientGuard<'_>> {
        let mut state = self.lock();
        let me = (is_slow, state.tickets);
        state.tickets += 1;
        state.waiting.insert(me);
        let patience = state.patience;
        let not_yet =
            |state: &mut State| state.client.is_none() || state.waiting.first() != Some(&me);
        let waited = self.changed.wait_timeout_while(state, patience, not_yet);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting.remove(&me);
        let turn = if waited.timed_out() { None } else { self.begin(&mut state) };
        drop(state);
        // The store that is now first may have been behind this one.
        if turn.is_none() {
            self.changed.notify_all();
        }
        turn.ok_or_else(|| {
            Error::new(
                ErrorKind::StoreUnavailable,
                "this process's connection to the store is busy with other requests",
            )
        })
    }
}

impl ProcessClients {
    /// Returns the clients of this process. Touches no lock of its parent.
    fn current() -> &'static Self {
        let process = ForkId::current();
        let first = CLIENTS.get_or_init(|| Box::new(PerProcess::new(process, Self::default())));
        first.of_or(process, |_, _| Self::default())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Weak<Shared>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows no part of the key, which may hold a password.
impl fmt::Debug for SharedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedClient").field("is_user", &self.is_user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
