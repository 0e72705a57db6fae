//! A store in a SQLite file. Between operations no connection is open, because a forked child must
//! not inherit one. During an operation a lock on a file next to the database keeps all others out.
//!
//! Each operation opens the file, does one transaction and closes it, under a lock of the process
//! that a fork handler takes. All names of the database lead to one lock file; where they cannot,
//! by hard links or a mount of the file alone, the database is refused. No descriptor but SQLite's
//! own is ever on the database.
//!
//! SQLite's own locks stay, and keep other tools apart as long as no other part of the process
//! closes the file. If one has, another SQLite sees no lock, takes the journal for that of a dead
//! process and undoes the transaction. So each operation opens the file once more and reads what it
//! has committed: after the commit there is no journal left to undo, and what is found stays.
//!
//! The rollback journal is truncated with full sync: a write-ahead log would be made and folded up
//! by each operation. The file is recognised by a random `store_id` in it and by device and inode;
//! another file at the path is `STORE_REPLACED`.
#![allow(clippy::doc_markdown, reason = "SQLite is a name")]

mod errors;
mod examine;
mod file;
mod lock;
mod network;
mod transaction;

use std::{
    fmt, mem,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use randflake::{Clock, Error, Result, SystemClock, bindings::ForkId};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use self::{
    file::{FileId, file_id},
    lock::FileLock,
    transaction::{Committed, SqliteTransaction},
};
use crate::{
    clocks::boot,
    findings::Finding,
    fork::{ProcessLock, check_opened_in},
    local::LocalStore,
    namespace::{self, InitMode, Limits, Namespace},
    rules::{self, LocalTransaction},
    token::random_bytes,
    written_rows::WrittenRows,
};
#[cfg(doc)]
use randflake::ErrorKind;

/// Marks a SQLite file as a store of leases: "RFLK".
const APPLICATION_ID: i32 = 0x5246_4c4b;
/// Version of the tables.
const STORED_FORMAT: i32 = namespace::STORED_FORMAT.cast_signed();

/// Longest pause before the file is tried again, in microseconds.
const LONGEST_PAUSE: u64 = 4_096;

/// After an operation that takes this long, on a slow disk, this process leaves the file alone for an
/// eighth of that time: otherwise other processes, which poll every few milliseconds, would hardly
/// ever find it free.
const LONG_OPERATION: Duration = Duration::from_millis(8);
const LONGEST_GAP: Duration = Duration::from_millis(8);

/// How long another SQLite may take to undo a transaction before this is checked.
const LONGEST_UNDOING: Duration = Duration::from_millis(100);

/// A store in a file on a local disk, for the processes of one machine. SQLite is compiled in;
/// no server is needed. The first operation creates the file; its directory must exist.
///
/// A lease is synced to disk before it is granted. Processes may be killed, stopped and forked at any
/// time, and the machine may lose power.
///
/// Next to `ids.db` are `ids.db-lock`, an empty file whose lock keeps all users of the database
/// apart, and `ids.db-journal`, which is empty except during a write. To copy a database that is in
/// use, hold that lock: `flock ids.db-lock sqlite3 ids.db ".backup copy.db"`.
///
/// **It does not protect from** copies of the file (each copy grants the same node ids), removing
/// it or its lock file while leases are running, network file systems (refused), hard links to the
/// file and mounts of just the file (refused if noticed), machines cloned while running, containers
/// with separate file systems, and *another* SQLite in the same process that opens the file without
/// that lock and may undo a transaction that is in progress. A SQLite in another process may do so
/// if this process closes the file elsewhere, which drops the locks that SQLite sees: that is
/// noticed, and the operation fails. Several copies of this library in one process are fine.
///
/// ```
/// use randflake::{Clock, Secret, SystemClock};
/// use randflake_leases::{
///     Acquire, Acquired, LeaseStore, Namespace, Note, Operation, SqliteStore, Token,
/// };
/// # let directory = std::env::temp_dir().join(format!("randflake-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory).unwrap();
/// # let path = directory.join("ids.db");
///
/// let namespace = Namespace::new("orders", &Secret::random())?;
/// let mut store = SqliteStore::new(path, namespace)?;
/// let token = Token::random();
/// let client_now = SystemClock.now()? / 1_000_000_000;
/// let reply = store.acquire(&Acquire { token, want: 1, ttl: 300, client_now, note: Note::of_process() })?;
/// let Acquired::Granted { leases, .. } = reply.answer_to(token, Operation::Acquire)? else {
///     panic!("a new file has free node ids");
/// };
/// assert_eq!(leases.len(), 1);
/// # std::fs::remove_dir_all(&directory).unwrap();
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub struct SqliteStore {
    path: PathBuf,
    namespace: Namespace,
    clock: Box<dyn Clock + Send>,
    patience: Duration,
    allow_network: bool,
    create: bool,
    opened_in: ForkId,
    known: Option<KnownFile>,
    /// Whether this file replaces another one, whose leases may still be running.
    replaces_another: bool,
    own: WrittenRows,
}

/// How a store recognises its file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct KnownFile {
    store_id: [u8; 16],
    file: FileId,
    limits: Limits,
}

impl SqliteStore {
    /// Makes a store for the path of a file, which is not accessed yet. A relative path starts at
    /// the current directory.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: not the path of a file.
    pub fn new(path: impl AsRef<Path>, namespace: Namespace) -> Result<Self> {
        let path = path.as_ref();
        let impossible = path.as_os_str().as_encoded_bytes().contains(&0);
        if impossible || path.file_name().is_none_or(|name| name == ":memory:") {
            return Err(Error::invalid_argument(format!(
                "a store needs the path of a file that several processes can open, got {:?}",
                path.display()
            )));
        }
        let path = std::path::absolute(path).map_err(|error| {
            Error::invalid_argument(format!("{} is not a valid path: {error}", path.display()))
        })?;
        Ok(Self {
            path,
            namespace,
            clock: Box::new(SystemClock),
            patience: Duration::from_secs(10),
            allow_network: false,
            create: true,
            opened_in: ForkId::current(),
            known: None,
            replaces_another: false,
            own: WrittenRows::default(),
        })
    }

    /// Sets how long an operation may wait in total while other processes use the file; 10 seconds
    /// by default.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Allows network file systems, FUSE and the like. They are refused by default, because many
    /// have locks that do not work between two machines. Check that yours work before you allow
    /// them.
    #[must_use]
    pub fn allow_network_file_system(mut self, allow: bool) -> Self {
        self.allow_network = allow;
        self
    }

    /// Sets whether the first operation creates a missing file and namespace, as it does by
    /// default. Otherwise only [`init`](Self::init) creates them, and a lost file is a
    /// [`StoreNotInitialized`](ErrorKind::StoreNotInitialized) error instead of an empty store.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Injects the store's clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + Send + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Creates the namespace if it is missing, and checks it if it exists, as
    /// [`RemoteStore::init`](crate::remote::RemoteStore::init) does, with the same [`InitMode`].
    /// Without it the first operation creates the namespace, as `New`, unless
    /// [`create`](Self::create) forbids it.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`](crate::LeaseStore::acquire); then nothing is created.
    pub fn init(&mut self, mode: InitMode) -> Result<()> {
        let create = mem::replace(&mut self.create, true);
        let outcome = self.repeat(|namespace| {
            if mode == InitMode::Quarantine && namespace.is_new {
                rules::fence_namespace(namespace)?;
            }
            Ok(())
        });
        self.create = create;
        outcome
    }

    /// Sets what it remembers to have written, as in a copy of its process.
    #[cfg(test)]
    pub(crate) fn remembering(self, own: WrittenRows) -> Self {
        Self { own, ..self }
    }

    /// Refuses to create a missing namespace unless that is allowed.
    fn may_create(&self) -> Result<()> {
        self.namespace.may_create()?;
        if self.create { Ok(()) } else { Err(self.namespace.not_initialized(self.path.display())) }
    }

    /// Runs an operation in one transaction, and repeats it while other processes use the file.
    fn repeat<T>(
        &mut self,
        operation: impl Fn(&mut SqliteTransaction<'_>) -> Result<T, Failure>,
    ) -> Result<T> {
        let asked = self.clock.unix_seconds()?;
        let mut waited = Duration::ZERO;
        for tries in 0_u32.. {
            check_opened_in(self.opened_in)?;
            match self.attempt(asked, &operation) {
                Ok(outcome) => return Ok(outcome),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Locked) => {}
                Err(Failure::Sqlite(error)) if is_busy(&error) => {}
                Err(Failure::Sqlite(error)) => return Err(self.explain(&error)),
            }
            if waited >= self.patience {
                break;
            }
            let longest = LONGEST_PAUSE.min(1_024 << tries.min(2));
            let pause = Duration::from_micros(u64::from_le_bytes(random_bytes()) % longest);
            thread::sleep(pause);
            waited += pause;
        }
        Err(self.unavailable(format_args!(
            "other processes have used it for {:.1} s; check whether one of them is stopped during an \
             operation, or a backup is running",
            self.patience.as_secs_f64()
        )))
    }

    /// Opens the file, runs one transaction, and closes the file.
    fn attempt<T>(
        &mut self,
        asked: i64,
        operation: impl Fn(&mut SqliteTransaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let process_lock = ProcessLock::take()?;
        let database = self.resolve()?;
        self.check_file_system(&database)?;
        let lock = FileLock::try_take(&database, self.known_file(&database)?.as_ref());
        let lock = lock.map_err(|error| self.cannot_lock(&database, &error))?;
        let lock = lock.ok_or(Failure::Locked)?;
        let begun = boot();
        // Checked again: from now on no other process can create the file.
        let before = self.known_file(&database)?;
        if let Some(metadata) = &before {
            self.check_paths(&database, metadata)?;
        }
        let file = before.as_ref().map(file_id);
        let connection = open(&database, before.is_none(), Duration::ZERO)?;
        connection.execute_batch("begin immediate")?;
        let store_id = self.store_id(&connection)?;
        if self.known.is_some_and(|known| known.store_id != store_id) {
            return Err(self.replaced().into());
        }
        let now = self.clock.unix_seconds()?;
        let mut namespace = self.namespace_in(&connection, now, now.saturating_sub(asked))?;
        if namespace.is_new && self.replaces_another {
            rules::fence_namespace(&mut namespace)?;
        }
        let outcome = operation(&mut namespace)?;
        let limits = namespace.metadata.limits;
        if !lock.is_current().map_err(|error| self.cannot_lock(&database, &error))? {
            return Err(Failure::Locked); // other processes may have locked another file
        }
        let written = namespace.written();
        connection.execute_batch("commit")?;
        connection.close().map_err(|(_, error)| error)?;
        // A commit into a file that was unlinked meanwhile has granted nothing.
        let after = self.file(&database)?.as_ref().map(file_id);
        let Some(after) = after.filter(|after| file.is_none_or(|before| before == *after)) else {
            return Err(self.replaced().into());
        };
        if let Some(written) = written {
            self.check_written(&database, &written)?;
            for (node_id, row) in &written.nodes {
                self.own.written(*node_id, row);
            }
        }
        drop(lock);
        let took = boot().saturating_sub(begun);
        if took >= LONG_OPERATION {
            thread::sleep(LONGEST_GAP.min(took / 8));
        }
        drop(process_lock);
        self.known = Some(KnownFile { store_id, file: after, limits });
        Ok(outcome)
    }

    /// Reads what was committed. If anything in this process has closed the file, another SQLite
    /// that opens it sees no lock of this process, takes the journal for a dead process's, and
    /// undoes the current write. It keeps readers out meanwhile. After the commit there is no
    /// journal left to undo, so what a new connection finds is permanent.
    fn check_written(&self, database: &Path, written: &Committed) -> Result<(), Failure> {
        let found = open(database, false, LONGEST_UNDOING)
            .and_then(|connection| Committed::find(&connection, self.namespace.name(), written));
        match found {
            Ok(found) if found == *written => return Ok(()),
            // The operation is not repeated, because it may have been done.
            Err(error) => return Err(self.explain(&error).into()),
            Ok(_) => {}
        }
        let error = self.unavailable(format_args!(
            "another SQLite has undone the last write, so nothing was granted; open the file only \
             under its lock: flock {} sqlite3 …",
            lock::path_of(database).display()
        ));
        Err(error.into())
    }

    /// Returns which store the file is; makes an empty file a store.
    fn store_id(&self, connection: &Connection) -> Result<[u8; 16], Failure> {
        let pragma = |name| connection.query_row(&format!("pragma {name}"), [], |row| row.get(0));
        let (application_id, format): (i32, i32) =
            (pragma("application_id")?, pragma("user_version")?);
        if (application_id, format) == (APPLICATION_ID, STORED_FORMAT) {
            let find = "select store_id from store";
            return Ok(connection.query_row(find, [], |row| row.get(0))?);
        }
        let tables: u32 =
            connection.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
        if application_id != 0 || tables > 0 {
            return Err(Error::invalid_argument(format!(
                "{} is a SQLite file of another application, or of another version; leases need \
                 their own file: make a new one",
                self.path.display()
            ))
            .into());
        }
        self.may_create()?;
        let store_id: [u8; 16] = random_bytes();
        connection.execute_batch(include_str!("sqlite.sql"))?;
        connection.execute("insert into store (store_id) values (?1)", [store_id])?;
        connection.execute_batch(&format!(
            "pragma application_id = {APPLICATION_ID}; pragma user_version = {STORED_FORMAT}"
        ))?;
        Ok(store_id)
    }
}

impl LocalStore for SqliteStore {
    type Failure = Failure;

    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn name(&self) -> String {
        std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone()).display().to_string()
    }

    fn transact<T>(
        &mut self,
        operation: impl Fn(&mut dyn LocalTransaction<Error = Failure>) -> Result<T, Failure>,
    ) -> Result<T> {
        self.repeat(|namespace| operation(namespace))
    }

    fn examine(&mut self) -> Result<Vec<Finding>> {
        Ok(self.examine_file())
    }

    fn own(&self) -> &WrittenRows {
        &self.own
    }

    fn accept_another(&mut self) {
        if let Some(KnownFile { limits, .. }) = self.known.take() {
            self.namespace.replace(limits);
            self.replaces_another = true;
        }
    }
}

/// Opens the file, and waits for its other users for a short `timeout`: forks wait for this thread.
fn open(database: &Path, create: bool, timeout: Duration) -> rusqlite::Result<Connection> {
    // No links: a new link could lead to a database with another lock.
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
    let connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(timeout)?;
    // No write-ahead log: every operation would create and merge one. With `full`, the truncated
    // journal is on disk before a commit returns; a deleted one may reappear after a power failure
    // and undo the commit. `fullfsync` has an effect only on macOS.
    connection.execute_batch(
        "pragma journal_mode = truncate; pragma synchronous = full; pragma fullfsync = 1",
    )?;
    Ok(connection)
}

/// Why an attempt failed.
pub(crate) enum Failure {
    /// Another process has the lock: the operation is repeated.
    Locked,
    /// An error of SQLite; while another process uses the file, the operation is repeated.
    Sqlite(rusqlite::Error),
    /// The operation is not repeated.
    Final(Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.path)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
