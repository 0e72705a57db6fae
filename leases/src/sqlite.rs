//! No connection is open between two operations: whoever forks must not have one. During one a
//! lock on a file beside the database keeps all others out.
#![allow(clippy::doc_markdown, reason = "SQLite is a name")]

mod lock;

use std::{
    collections::BTreeMap,
    fmt, fs,
    fs::Metadata,
    io, mem,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use randflake::{Clock, SystemClock};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row as SqlRow, ffi, params};

use self::lock::Lock;
use crate::{
    Acquire, Acquired, Error, ErrorKind, Fence, Fenced, InitMode, LeaseStore, Limits, Made,
    Namespace, Note, Release, Released, Renew, Renewed, Reply, Result, Token,
    fork::{Exclusive, Life},
    leased::boot,
    operator::{Cut, List, Listed, Node, ReleaseDead, Repair, Target},
    rules::{self, Quarantine, Row, Rows},
    store::{self, random_bytes},
};

/// Marks a SQLite file as a store of leases: "RFLK".
const APPLICATION_ID: i32 = 0x5246_4c4b;
/// Version of the tables.
const FORMAT: i32 = store::FORMAT.cast_signed();

/// Longest pause before the file is tried again, in microseconds.
const LONGEST_PAUSE: u64 = 4_096;

/// An operation that takes this long, on a slow disk, leaves the file alone for an eighth of its time
/// before the next one of this process: others who look every few milliseconds would hardly ever
/// find it free.
const LONG_OPERATION: Duration = Duration::from_millis(8);
const LONGEST_GAP: Duration = Duration::from_millis(8);

/// How long another SQLite may take to undo a transaction before it is looked at again.
const LONGEST_UNDOING: Duration = Duration::from_millis(100);

/// A store in a file on a local disk, for the processes of one machine. SQLite is compiled in;
/// no server is needed. The file is made by the first operation; its directory must be there.
///
/// What is granted is on the disk before it is told. Processes may be killed, stopped and forked
/// at any time, and the machine may lose power.
///
/// Beside `ids.db` lie `ids.db-lock`, an empty file whose lock keeps all users of the database
/// apart, and `ids.db-journal` while something is written, or empty. To copy a database that is in
/// use, hold that lock: `flock ids.db-lock sqlite3 ids.db ".backup copy.db"`.
///
/// **It does not protect from** copies of the file (each copy grants the same node ids), removing
/// it or its lock file while leases run, network file systems (refused), hard links to the file and
/// mounts of the file alone (refused where they are noticed), machines cloned while running,
/// containers with a file system each, and *another* SQLite in the same process that opens the file
/// without that lock and may undo a transaction that is under way. One in another process may do so
/// while this process closes the file elsewhere, which drops the locks that SQLite sees: that is
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
    life: Life,
    known: Option<Known>,
    /// Whether another file was here, whose leases may still run.
    follows_another: bool,
}

/// By what a store recognises its file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Known {
    store_id: [u8; 16],
    file: FileId,
    limits: Limits,
}

/// Device and inode: what `stat` tells without opening the file.
type FileId = (u64, u64);

impl SqliteStore {
    /// Names the file. Looks at nothing yet; a relative path is taken from the current directory
    /// of now.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: no path of a file.
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
            Error::invalid_argument(format!("{} is no path: {error}", path.display()))
        })?;
        Ok(Self {
            path,
            namespace,
            clock: Box::new(SystemClock),
            patience: Duration::from_secs(10),
            allow_network: false,
            create: true,
            life: Life::current(),
            known: None,
            follows_another: false,
        })
    }

    /// Sets how long an operation may wait, in all, while other processes have the file; 10
    /// seconds unless set.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Allows network file systems, FUSE and the like, which are refused otherwise, because the
    /// locks of many do not keep two machines apart. Whoever sets this has made sure that theirs
    /// do.
    #[must_use]
    pub fn allow_network_file_system(mut self, allow: bool) -> Self {
        self.allow_network = allow;
        self
    }

    /// Sets whether the first operation makes the file and the namespace if they are missing, which
    /// it does unless this is false. Then [`init`](Self::init) alone makes them: a lost file is an
    /// error ([`StoreNotInitialized`](ErrorKind::StoreNotInitialized)), and not an empty store.
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

    /// Makes the namespace if it is not there, and checks it if it is; as
    /// [`RemoteStore::init`](crate::remote::RemoteStore::init) does, with the same [`InitMode`].
    /// Without it the first operation makes the namespace, as `New`, unless that is
    /// [forbidden](Self::create).
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`]; nothing is made then.
    pub fn init(&mut self, mode: InitMode) -> Result<()> {
        let create = mem::replace(&mut self.create, true);
        let outcome = self.atomically(|rows, now| {
            if mode == InitMode::Quarantine && rows.is_new {
                rows.fence(now)?;
            }
            Ok(())
        });
        self.create = create;
        outcome
    }

    /// Refuses to make what is not there.
    fn may_make(&self) -> Result<()> {
        self.namespace.may_make()?;
        if self.create { Ok(()) } else { Err(self.namespace.not_initialized(self.path.display())) }
    }

    /// Does one operation in one transaction, and tries again while others have the file.
    fn atomically<T>(
        &mut self,
        operation: impl Fn(&mut Transaction<'_>, i64) -> Result<T, Failure>,
    ) -> Result<T> {
        self.life.check()?;
        let mut waited = Duration::ZERO;
        for tries in 0_u32.. {
            match self.once(&operation) {
                Ok(outcome) => return Ok(outcome),
                Err(Failure::Told(error)) => return Err(error),
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
            "other processes have had it for {:.1} s; is one of them stopped in the middle, or a \
             backup running?",
            self.patience.as_secs_f64()
        )))
    }

    /// Opens the file, does one transaction, closes the file.
    fn once<T>(
        &mut self,
        operation: impl Fn(&mut Transaction<'_>, i64) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let exclusive = Exclusive::take()?;
        let database = self.resolve()?;
        self.check_file_system(&database)?;
        let lock = Lock::try_take(&database, self.known_file(&database)?.as_ref());
        let lock = lock.map_err(|error| self.cannot_lock(&database, &error))?;
        let lock = lock.ok_or(Failure::Locked)?;
        let begun = boot();
        // Once more: now nobody else can make it.
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
        let mut rows = Transaction::of(&connection, self)?;
        if rows.is_new && self.follows_another {
            rows.fence(now)?;
        }
        let outcome = operation(&mut rows, now)?;
        let limits = rows.made.limits;
        if !lock.is_current().map_err(|error| self.cannot_lock(&database, &error))? {
            return Err(Failure::Locked); // others may have locked another file
        }
        let written = rows.written();
        connection.execute_batch("commit")?;
        connection.close().map_err(|(_, error)| error)?;
        // A commit into a file that was unlinked meanwhile has granted nothing.
        let after = self.file(&database)?.as_ref().map(file_id);
        let Some(after) = after.filter(|after| file.is_none_or(|before| before == *after)) else {
            return Err(self.replaced().into());
        };
        self.check_that_it_stands(&database, &written)?;
        drop(lock);
        let took = boot().saturating_sub(begun);
        if took >= LONG_OPERATION {
            thread::sleep(LONGEST_GAP.min(took / 8));
        }
        drop(exclusive);
        self.known = Some(Known { store_id, file: after, limits });
        Ok(outcome)
    }

    /// Reads again what was committed. Another SQLite that opens the file sees no lock of this process
    /// once something here has closed the file, and takes the journal for that of a dead process: it
    /// undoes what is being written. It keeps readers out while it does so, and after the commit there
    /// is no journal left to undo: what a new connection finds stays.
    fn check_that_it_stands(&self, database: &Path, written: &Written) -> Result<(), Failure> {
        let found = open(database, false, LONGEST_UNDOING).and_then(|connection| {
            Written::find(&connection, self.namespace.name(), &written.nodes)
        });
        match found {
            Ok(found) if found == *written => return Ok(()),
            // Not tried again as a whole: it may well be done.
            Err(error) => return Err(self.explain(&error).into()),
            Ok(_) => {}
        }
        let error = self.unavailable(format_args!(
            "another SQLite has undone what was just written: nothing was granted. Open the file only \
             under its lock: flock {} sqlite3 …",
            lock::path_of(database).display()
        ));
        Err(error.into())
    }

    /// Returns which store the file is; makes it one if it is empty.
    fn store_id(&self, connection: &Connection) -> Result<[u8; 16], Failure> {
        let pragma = |name| connection.query_row(&format!("pragma {name}"), [], |row| row.get(0));
        let (application_id, format): (i32, i32) =
            (pragma("application_id")?, pragma("user_version")?);
        if (application_id, format) == (APPLICATION_ID, FORMAT) {
            let find = "select store_id from store";
            return Ok(connection.query_row(find, [], |row| row.get(0))?);
        }
        let tables: u32 =
            connection.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
        if application_id != 0 || tables > 0 {
            return Err(Error::invalid_argument(format!(
                "{} is a SQLite file of something else, or of another version; leases need a file \
                 of their own",
                self.path.display()
            ))
            .into());
        }
        self.may_make()?;
        let store_id: [u8; 16] = random_bytes();
        connection.execute_batch(include_str!("sqlite.sql"))?;
        connection.execute("insert into store (store_id) values (?1)", [store_id])?;
        connection.execute_batch(&format!(
            "pragma application_id = {APPLICATION_ID}; pragma user_version = {FORMAT}"
        ))?;
        Ok(store_id)
    }

    /// Returns the path that all names of the file lead to.
    fn resolve(&self) -> Result<PathBuf> {
        lock::resolve(&self.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.wrong_path(format_args!(
                "the directory {} is missing; make it first",
                self.directory().display()
            )),
            io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::PermissionDenied => self.wrong_path(format_args!("{error}")),
            _ => self.unavailable(format_args!("{error}")),
        })
    }

    /// Returns what is known of the file, which may be missing if it may be made.
    fn known_file(&self, database: &Path) -> Result<Option<Metadata>> {
        let found = self.file(database)?;
        if self.known.is_some_and(|known| found.as_ref().map(file_id) != Some(known.file)) {
            return Err(self.replaced());
        }
        if found.is_none() {
            self.may_make()?;
        }
        Ok(found)
    }

    /// Returns what is at the path, if anything.
    fn file(&self, database: &Path) -> Result<Option<Metadata>> {
        match fs::symlink_metadata(database) {
            Ok(metadata) if metadata.is_dir() => {
                Err(self.wrong_path(format_args!("it is a directory; name a file in it")))
            }
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(self.wrong_path(format_args!("{error}")))
            }
            Err(error) => Err(self.unavailable(format_args!("{error}"))),
        }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    fn cannot_lock(&self, database: &Path, error: &io::Error) -> Error {
        let path = lock::path_of(database);
        let why = format_args!("its lock file {} cannot be locked: {error}", path.display());
        match error.kind() {
            io::ErrorKind::StorageFull => {
                self.unavailable(format_args!("the disk is full; nothing was granted or lost"))
            }
            io::ErrorKind::ReadOnlyFilesystem => self.wrong_path(format_args!(
                "the file or its directory is read-only, and every operation writes"
            )),
            io::ErrorKind::PermissionDenied => self.wrong_path(format_args!(
                "its lock file {} cannot be opened; may this user read it, and write into {}?",
                path.display(),
                self.directory().display()
            )),
            _ => self.unavailable(why),
        }
    }

    /// Refuses a file that has other paths, beside which others would lock another file.
    fn check_paths(&self, database: &Path, metadata: &Metadata) -> Result<()> {
        let Some(why) = lock::other_paths(database, metadata, self.known.is_none()) else {
            return Ok(());
        };
        Err(Error::new(
            ErrorKind::WeakStore,
            format!(
                "{} {why}: processes that reach it by another path would not see the lock of this \
                 one; let all of them use one path, in a directory that they share",
                self.path.display()
            ),
        ))
    }

    fn check_file_system(&self, database: &Path) -> Result<()> {
        let name = match network_file_system(database) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                network_file_system(database.parent().unwrap_or(database))
            }
            found => found,
        };
        match name {
            Ok(name) => self.allow(name),
            Err(error) => Err(self.unavailable(format_args!("{error}"))),
        }
    }

    /// Refuses a network file system, unless told otherwise.
    fn allow(&self, network: Option<&str>) -> Result<()> {
        match network {
            Some(name) if !self.allow_network => Err(Error::new(
                ErrorKind::WeakStore,
                format!(
                    "{} lies on {name}, whose locks may not keep two machines apart; put it on a \
                     local disk, use a store with a server, or allow network file systems",
                    self.path.display()
                ),
            )),
            _ => Ok(()),
        }
    }

    fn replaced(&self) -> Error {
        Error::new(
            ErrorKind::StoreReplaced,
            format!(
                "{} is no longer the file that leases were granted from: it was removed or \
                 replaced while in use; once those leases are over, what is there is leased from",
                self.path.display()
            ),
        )
    }

    /// What was a store once may be one again; what never was is no place for one.
    fn wrong_path(&self, why: fmt::Arguments<'_>) -> Error {
        match self.known {
            Some(_) => self.unavailable(why),
            None => {
                Error::invalid_argument(format!("{} cannot be a store: {why}", self.path.display()))
            }
        }
    }

    fn unavailable(&self, why: fmt::Arguments<'_>) -> Error {
        Error::new(
            ErrorKind::StoreUnavailable,
            format!("cannot use the store {}: {why}", self.path.display()),
        )
    }

    fn explain(&self, error: &rusqlite::Error) -> Error {
        let Some(code) = error.sqlite_error() else {
            return self.unavailable(format_args!("{error}"));
        };
        if code.extended_code == ffi::SQLITE_READONLY_DBMOVED {
            return self.replaced();
        }
        match code.code {
            ErrorCode::DiskFull => {
                self.unavailable(format_args!("the disk is full; nothing was granted or lost"))
            }
            ErrorCode::ReadOnly => self.wrong_path(format_args!(
                "the file or its directory is read-only, and every operation writes"
            )),
            ErrorCode::CannotOpen | ErrorCode::PermissionDenied => self.wrong_path(format_args!(
                "it cannot be opened; may this user write the file and into {}?",
                self.directory().display()
            )),
            ErrorCode::NotADatabase => Error::invalid_argument(format!(
                "{} is a file of something else; leases need a file of their own",
                self.path.display()
            )),
            ErrorCode::DatabaseCorrupt => self.unavailable(format_args!(
                "the file is damaged; restore it, fence it, and only then go on"
            )),
            _ => self.unavailable(format_args!("{error}")),
        }
    }
}

impl LeaseStore for SqliteStore {
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
        self.namespace.may_lease()?;
        let asked = self.clock.unix_seconds()?;
        self.atomically(|rows, now| {
            let (limits, quarantine) = (rows.made.limits, rows.quarantine);
            let client_now = after_the_wait(request.client_now, asked, now);
            let request = Acquire { client_now, ..request.clone() };
            rules::acquire(rows, limits, quarantine, now, &request)
        })
        .map(|outcome| request.reply(outcome))
    }

    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
        let asked = self.clock.unix_seconds()?;
        self.atomically(|rows, now| {
            let (limits, quarantine) = (rows.made.limits, rows.quarantine);
            let client_now = after_the_wait(request.client_now, asked, now);
            let request = Renew { client_now, ..request.clone() };
            rules::renew(rows, limits, quarantine, now, &request)
        })
        .map(|outcome| request.reply(outcome))
    }

    fn release(&mut self, request: &Release) -> Result<Reply<Released>> {
        self.atomically(|rows, _| rules::release(rows, request))
            .map(|outcome| request.reply(outcome))
    }

    fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>> {
        self.atomically(|rows, now| rows.fence(now).map(|fenced| request.reply(fenced)))
    }

    fn list(&mut self, request: &List) -> Result<Reply<Listed>> {
        self.atomically(|rows, now| {
            let nodes = rows.nodes(request.node_id)?;
            Ok(rules::listed(&rows.made, rows.quarantine, now, nodes))
        })
        .map(|outcome| request.reply(outcome))
    }

    fn repair(&mut self, request: &Repair) -> Result<Reply<Cut>> {
        self.atomically(|rows, now| {
            let limits = rows.made.limits;
            match request.target {
                Target::Node(node_id) => {
                    rules::cut(rows, now, node_id, |node| rules::repair(limits, now, request, node))
                }
                Target::Floor => {
                    let (quarantine, cut) =
                        rules::repair_floor(limits, now, 0, request, rows.quarantine)?;
                    rows.put_quarantine(quarantine)?;
                    Ok(cut)
                }
            }
        })
        .map(|outcome| request.reply(outcome))
    }

    fn release_dead(&mut self, request: &ReleaseDead) -> Result<Reply<Cut>> {
        self.atomically(|rows, now| {
            let limits = rows.made.limits;
            rules::cut(rows, now, request.lease.node_id, |node| {
                rules::release_dead(limits, now, request, node)
            })
        })
        .map(|outcome| request.reply(outcome))
    }

    fn accept_another(&mut self) {
        if let Some(Known { limits, .. }) = self.known.take() {
            self.namespace.succeed(limits);
            self.follows_another = true;
        }
    }
}

/// Opens the file. Whoever waits for other users of it must not hold the lock that forks wait for:
/// `patience` is short.
fn open(database: &Path, create: bool, patience: Duration) -> rusqlite::Result<Connection> {
    // No links: whoever puts one there meanwhile would lead to a database of another lock.
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
    let connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(patience)?;
    // A write-ahead log would be made and folded up by every operation. With `full`, this
    // journal is on the disk, empty, before a commit returns; a deleted one may come back
    // after a power cut and undo the commit. `fullfsync` has a meaning on macOS alone.
    connection.execute_batch(
        "pragma journal_mode = truncate; pragma synchronous = full; pragma fullfsync = 1",
    )?;
    Ok(connection)
}

/// Returns what the client's clock shows by now: it went on while others had the file.
fn after_the_wait(client_now: i64, asked: i64, now: i64) -> i64 {
    client_now.saturating_add(now.saturating_sub(asked))
}

/// A namespace inside a transaction.
struct Transaction<'a> {
    connection: &'a Connection,
    namespace: i64,
    made: Made,
    quarantine: Quarantine,
    /// Whether this transaction has made it.
    is_new: bool,
    written: BTreeMap<u32, Row>,
}

/// What has to be in the file after a commit.
#[derive(Eq, PartialEq)]
struct Written {
    quarantine: Option<Quarantine>,
    nodes: BTreeMap<u32, Row>,
}

impl Written {
    /// Finds what is there in place of what was written.
    fn find(
        connection: &Connection,
        namespace: &str,
        nodes: &BTreeMap<u32, Row>,
    ) -> rusqlite::Result<Self> {
        let found = connection
            .query_row(
                "select id, floor, renew_above from namespace where name = ?1",
                [namespace],
                |row| Ok((row.get::<_, i64>(0)?, quarantine(row)?)),
            )
            .optional()?;
        let Some((namespace, quarantine)) = found else {
            return Ok(Self { quarantine: None, nodes: BTreeMap::new() });
        };
        // What has a token through the index, which has pages of its own.
        let mut by_token = connection.prepare(
            "select node_id, start, end_exclusive, token, note from node indexed by node_token \
             where namespace = ?1 and node_id = ?2 and token = ?3",
        )?;
        let mut found = BTreeMap::new();
        for (&node_id, row) in nodes {
            found.extend(match row.token {
                Some(token) => by_token
                    .query_row(params![namespace, node_id, token.as_bytes()], node)
                    .optional()?,
                None => find_node(connection, namespace, node_id)?.map(|row| (node_id, row)),
            });
        }
        Ok(Self { quarantine: Some(quarantine), nodes: found })
    }
}

/// Returns what is known of a node id.
fn find_node(
    connection: &Connection,
    namespace: i64,
    node_id: u32,
) -> rusqlite::Result<Option<Row>> {
    let find = "select node_id, start, end_exclusive, token, note from node \
                where namespace = ?1 and node_id = ?2";
    let found = connection.query_row(find, params![namespace, node_id], node).optional()?;
    Ok(found.map(|(_, row)| row))
}

impl<'a> Transaction<'a> {
    /// Finds the namespace, and checks that it is this one; makes it if it is not there.
    fn of(connection: &'a Connection, store: &SqliteStore) -> Result<Self, Failure> {
        let namespace = &store.namespace;
        let found = connection
            .query_row(
                "select id, max_ttl, max_skew, max_node_id, layout, salt, key_check, floor, \
                 renew_above from namespace where name = ?1",
                [namespace.name()],
                |row| Ok((row.get(0)?, made(row)?, quarantine(row)?)),
            )
            .optional()?;
        if let Some((id, made, quarantine)) = found {
            namespace.check(&made)?;
            return Ok(Self {
                connection,
                namespace: id,
                made,
                quarantine,
                is_new: false,
                written: BTreeMap::new(),
            });
        }
        store.may_make()?;
        let made = Made::new(namespace);
        let Limits { max_ttl, max_skew, max_node_id } = made.limits;
        connection.execute(
            "insert into namespace (name, max_ttl, max_skew, max_node_id, layout, salt, key_check, \
             floor, renew_above) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0)",
            params![
                namespace.name(),
                max_ttl,
                max_skew,
                max_node_id,
                made.layout,
                made.salt,
                made.key_check
            ],
        )?;
        Ok(Self {
            connection,
            namespace: connection.last_insert_rowid(),
            made,
            quarantine: Quarantine::default(),
            is_new: true,
            written: BTreeMap::new(),
        })
    }

    /// Returns what a commit makes last.
    fn written(self) -> Written {
        Written { quarantine: Some(self.quarantine), nodes: self.written }
    }

    /// Returns what is known of one node id, or of all.
    fn nodes(&self, node_id: Option<u32>) -> Result<Vec<Node>, Failure> {
        let mut find = self.connection.prepare(
            "select node_id, start, end_exclusive, token, note from node \
             where namespace = ?1 and (?2 is null or node_id = ?2) order by node_id",
        )?;
        let rows = find.query_map(params![self.namespace, node_id], node)?;
        let nodes = rows.map(|found| found.map(|(node_id, row)| row.node(node_id)));
        Ok(nodes.collect::<rusqlite::Result<_>>()?)
    }

    fn fence(&mut self, now: i64) -> Result<Fenced, Failure> {
        let (quarantine, fenced) = rules::fence(self.made.limits, self.quarantine, now)?;
        self.put_quarantine(quarantine)?;
        Ok(fenced)
    }

    fn put_quarantine(&mut self, quarantine: Quarantine) -> Result<(), Failure> {
        self.connection.execute(
            "update namespace set floor = ?2, renew_above = ?3 where id = ?1",
            params![self.namespace, quarantine.floor, quarantine.renew_above],
        )?;
        self.quarantine = quarantine;
        Ok(())
    }
}

fn made(row: &SqlRow<'_>) -> rusqlite::Result<Made> {
    Ok(Made {
        format: store::FORMAT, // that of the file
        limits: Limits {
            max_ttl: row.get("max_ttl")?,
            max_skew: row.get("max_skew")?,
            max_node_id: row.get("max_node_id")?,
        },
        layout: row.get("layout")?,
        salt: row.get("salt")?,
        key_check: row.get("key_check")?,
    })
}

fn quarantine(row: &SqlRow<'_>) -> rusqlite::Result<Quarantine> {
    Ok(Quarantine { floor: row.get("floor")?, renew_above: row.get("renew_above")? })
}

impl Rows for Transaction<'_> {
    type Error = Failure;

    fn row(&mut self, node_id: u32) -> Result<Option<Row>, Failure> {
        Ok(find_node(self.connection, self.namespace, node_id)?)
    }

    fn put(&mut self, node_id: u32, row: Row) -> Result<(), Failure> {
        self.connection.execute(
            "insert into node (namespace, node_id, start, end_exclusive, token, note) \
             values (?1, ?2, ?3, ?4, ?5, ?6) on conflict do update set start = excluded.start, \
             end_exclusive = excluded.end_exclusive, token = excluded.token, note = excluded.note",
            params![
                self.namespace,
                node_id,
                row.start,
                row.end_exclusive,
                row.token.as_ref().map(Token::as_bytes),
                row.note.as_str()
            ],
        )?;
        self.written.insert(node_id, row);
        Ok(())
    }

    fn held_by(&mut self, token: Token) -> Result<Vec<(u32, Row)>, Failure> {
        let mut find = self.connection.prepare(
            "select node_id, start, end_exclusive, token, note from node indexed by node_token \
             where namespace = ?1 and token = ?2 order by node_id",
        )?;
        let rows = find.query_map(params![self.namespace, token.as_bytes()], node)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn taken(&mut self, now: i64) -> Result<Vec<(u32, i64)>, Failure> {
        let mut find = self.connection.prepare(
            "select node_id, end_exclusive from node where namespace = ?1 and end_exclusive > ?2",
        )?;
        let ends =
            find.query_map(params![self.namespace, now], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(ends.collect::<rusqlite::Result<_>>()?)
    }
}

fn node(row: &SqlRow<'_>) -> rusqlite::Result<(u32, Row)> {
    let token: Option<[u8; 16]> = row.get("token")?;
    let node = Row {
        start: row.get("start")?,
        end_exclusive: row.get("end_exclusive")?,
        token: token.map(Token::from_bytes),
        note: Note::new(&row.get::<_, String>("note")?),
    };
    Ok((row.get("node_id")?, node))
}

/// Why an attempt failed.
enum Failure {
    /// Somebody else has the lock.
    Locked,
    /// SQLite's word, which may only mean that another process is at it.
    Sqlite(rusqlite::Error),
    /// The last word.
    Told(Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

#[cfg(unix)]
fn file_id(metadata: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Here only the store's own id tells files apart.
#[cfg(not(unix))]
fn file_id(_metadata: &Metadata) -> FileId {
    (0, 0)
}

/// Returns the name of the file system at a path if it is none of this machine alone.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn network_file_system(path: &Path) -> io::Result<Option<&'static str>> {
    let kind = rustix::fs::statfs(path)?.f_type;
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "32-bit magic")]
    Ok(network_name(kind as u32))
}

/// By the magic numbers of Linux's `statfs`.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn network_name(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x0102_1997 => "9p",
        0x6573_5546 => "FUSE",
        0x00c3_6400 => "Ceph",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x7461_636f => "OCFS2",
        0x0116_1970 => "GFS2",
        0x1983_0326 => "BeeGFS",
        0x786f_4256 => "a folder shared by VirtualBox",
        0xbacb_acbc => "a folder shared by VMware",
        _ => return None,
    })
}

#[cfg(target_vendor = "apple")]
fn network_file_system(path: &Path) -> io::Result<Option<&'static str>> {
    /// `MNT_LOCAL` of `sys/mount.h`.
    const LOCAL: u32 = 0x1000;
    let flags = rustix::fs::statfs(path)?.f_flags;
    Ok((flags & LOCAL == 0).then_some("a file system of another machine"))
}

#[cfg(windows)]
fn network_file_system(path: &Path) -> io::Result<Option<&'static str>> {
    use std::path::{Component, Prefix};
    let Some(Component::Prefix(prefix)) = path.components().next() else {
        return Ok(None);
    };
    let remote = matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..));
    Ok(remote.then_some("a share of another machine"))
}

/// No way is known to tell.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple", windows)))]
fn network_file_system(_path: &Path) -> io::Result<Option<&'static str>> {
    Ok(None)
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.path)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_by_their_magic() {
        for (magic, network) in [
            (0x6969, true),       // NFS
            (0xff53_4d42, true),  // CIFS
            (0x6573_5546, true),  // FUSE, virtiofs
            (0xef53, false),      // ext4
            (0x5846_5342, false), // xfs
            (0x9123_683e, false), // btrfs
            (0x0102_1994, false), // tmpfs
            (0x794c_7630, false), // overlayfs
            (0x2fc1_2fc1, false), // zfs
        ] {
            assert_eq!(network_name(magic).is_some(), network, "{magic:#x}");
        }
    }

    #[test]
    fn network_file_systems_are_refused_unless_forced() {
        let namespace = Namespace::new("orders", &randflake::Secret::random()).expect("a name");
        let store = SqliteStore::new("ids.db", namespace).expect("a path");
        let error = store.allow(network_name(0x6969)).expect_err("NFS");
        assert_eq!(error.kind(), ErrorKind::WeakStore);
        assert!(error.to_string().contains("lies on NFS"), "{error}");
        assert_eq!(store.allow(None), Ok(()));
        let forced = store.allow_network_file_system(true);
        assert_eq!(forced.allow(network_name(0x6969)), Ok(()));
    }

    #[test]
    fn the_file_system_is_looked_at() {
        // procfs is none of the listed ones, but statfs has to find it and fail elsewhere.
        assert!(matches!(network_file_system(Path::new("/proc")), Ok(None)));
        assert!(network_file_system(Path::new("/no/such/file")).is_err());
    }
}
