//! The store in a file passes the conformance tests, and its errors say what is wrong with the file.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod common;

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use common::{Dial, SECRET, START, Scratch, acquire, granted, namespace, release, renew, secret};
use randflake::{Clock, Error as CoreError, SystemClock, layout};
use randflake_leases::{
    Acquired, Error, ErrorKind, InitMode, LeaseStore, Location, Namespace, NodeLease, Operation,
    Renewed, SqliteStore, Token,
    operator::{self, ReleaseDead},
};
use rusqlite::Connection;

fn store(path: impl AsRef<Path>) -> SqliteStore {
    SqliteStore::new(path, namespace(layout::MAX_NODE_ID))
        .expect("a path")
        .clock(Dial::new(START).clock())
}

fn operators_store(path: impl AsRef<Path>) -> SqliteStore {
    let namespace = Namespace::for_operator("orders").expect("a name");
    SqliteStore::new(path, namespace).expect("a path").clock(Dial::new(START).clock())
}

fn file_with_a_lease() -> (Scratch, PathBuf, Token, NodeLease) {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let token = Token::random();
    let lease = granted(&mut store(&path), token, START);
    (scratch, path, token, lease)
}

#[track_caller]
fn refused(error: Result<impl std::fmt::Debug, Error>, kind: ErrorKind, says: &str) {
    let error = error.expect_err("the file is of no use");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

fn is_sound(path: &Path) {
    let connection = Connection::open(path).expect("a SQLite file");
    let verdict: String =
        connection.query_row("pragma integrity_check", [], |row| row.get(0)).expect("a verdict");
    assert_eq!(verdict, "ok", "{}", path.display());
}

struct File {
    path: PathBuf,
    dial: Dial,
}

impl randflake_conformance::Subject for File {
    fn client(&self, namespace: &Namespace) -> Box<dyn LeaseStore> {
        let store = SqliteStore::new(&self.path, namespace.clone()).expect("a path");
        Box::new(store.clock(self.dial.clock()))
    }

    fn now(&self) -> i64 {
        self.dial.now()
    }

    fn pass(&self, seconds: u32) {
        self.dial.pass(seconds);
    }
}

#[test]
fn passes_the_conformance_tests() {
    let scratch = Scratch::new();
    let file = File { path: scratch.path("ids.db"), dial: Dial::new(START) };
    randflake_conformance::check_all(&file);
    randflake_conformance::check_counters(&file);
    is_sound(&scratch.path("ids.db"));
}

#[test]
fn remembers_what_it_granted() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let token = Token::random();
    let mut holder = store(&path);
    let lease = granted(&mut holder, token, START);
    assert_eq!(granted(&mut holder, token, START), lease);
    let renewed = renew(&mut store(&path), token, lease.node_id, START);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let files: Vec<_> = fs::read_dir(scratch.directory())
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| !["ids.db", "ids.db-journal", "ids.db-lock"].iter().any(|ours| name == ours))
        .collect();
    assert!(files.is_empty(), "and left behind: {files:?}");
}

#[test]
fn keeps_to_the_clock_of_the_machine() {
    let scratch = Scratch::new();
    let mut store = SqliteStore::new(scratch.path("ids.db"), namespace(9)).expect("a path");
    let now = || SystemClock.now().expect("a clock") / common::SECOND;
    let before = now();
    let lease = granted(&mut store, Token::random(), before);
    assert!((before + 300..=now() + 300).contains(&lease.end_exclusive), "{lease:?}");
}

#[test]
fn no_secret_is_in_the_file() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    granted(&mut store(&path), Token::random(), START);
    let bytes = fs::read(&path).expect("the file");
    let number = u128::from_str_radix(SECRET, 16).expect("hex").to_be_bytes();
    let parts: [&[u8]; 4] =
        [&number[..8], &number[8..], &SECRET.as_bytes()[..16], &SECRET.as_bytes()[16..]];
    for part in parts {
        assert!(!bytes.windows(part.len()).any(|window| window == part), "{part:x?}");
    }
    assert!(!format!("{:?}", store(&path)).contains(SECRET));
}

#[test]
fn a_removed_file_is_noticed_and_not_made_again() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let mut holder = store(&path);
    let token = Token::random();
    let lease = granted(&mut holder, token, START);
    fs::remove_file(&path).expect("the file is there");
    for _ in 0..2 {
        let renewed = renew(&mut holder, token, lease.node_id, START);
        refused(renewed, ErrorKind::StoreReplaced, "removed");
        let again = acquire(&mut holder, Token::random(), 1, START);
        refused(again, ErrorKind::StoreReplaced, "ids.db");
        let freed = release(&mut holder, token, lease.node_id, START);
        refused(freed, ErrorKind::StoreReplaced, "removed");
        assert!(!path.exists());
    }
    // Another client makes a new store, which the holder does not mistake for its own.
    granted(&mut store(&path), Token::random(), START);
    let renewed = renew(&mut holder, token, lease.node_id, START);
    refused(renewed, ErrorKind::StoreReplaced, "replaced");
}

#[test]
fn a_replaced_file_is_noticed() {
    type Replace = fn(&Path, &Path);
    let ways: [(&str, Replace); 3] = [
        ("by another store", |path, other| {
            granted(&mut store(other), Token::random(), START);
            fs::rename(other, path).expect("same directory");
        }),
        ("by an earlier copy", |path, other| {
            fs::copy(path, other).expect("a copy");
            fs::rename(other, path).expect("same directory");
        }),
        ("in place, by another store", |path, other| {
            granted(&mut store(other), Token::random(), START);
            let inode = fs::metadata(path).expect("the file").ino();
            fs::copy(other, path).expect("a copy");
            assert_eq!(fs::metadata(path).expect("the file").ino(), inode);
        }),
    ];
    for (way, replace) in ways {
        let scratch = Scratch::new();
        let path = scratch.path("ids.db");
        let mut holder = store(&path);
        let token = Token::random();
        let lease = granted(&mut holder, token, START);
        replace(&path, &scratch.path("other.db"));
        let kind = renew(&mut holder, token, lease.node_id, START).map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::StoreReplaced), "{way}");
        granted(&mut store(&path), Token::random(), START);
    }
}

#[test]
fn tickets_of_a_replaced_file_are_not_spoken_of_as_leases() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let location = Location::from(path.clone());
    randflake_tickets::operator::init_tickets(&location, "tickets", InitMode::New)
        .expect("a new file");
    let namespace = Namespace::for_tickets("tickets").expect("a name");
    let mut store = location.open(&namespace).expect("it is there");
    randflake_tickets::operator::fence_tickets(&mut *store, "orders", 7).expect("it can be raised");
    fs::remove_file(&path).expect("the file");
    randflake_tickets::operator::init_tickets(&location, "tickets", InitMode::New)
        .expect("another file");
    let error = randflake_tickets::operator::show_tickets(&mut *store, "orders")
        .expect_err("it is another one");
    assert_eq!(error.kind(), ErrorKind::StoreReplaced);
    let said = error.to_string();
    assert!(said.contains("the file that numbers were drawn from"), "{said}");
    assert!(said.contains("fence each counter of the new file"), "{said}");
    assert!(!said.contains("leased"), "{said}");
}

/// Other processes may still hold leases of the old file: its replacement waits for them.
#[test]
fn another_file_is_accepted_on_demand_and_made_in_quarantine() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let longer = namespace(layout::MAX_NODE_ID).max_ttl(600).expect("within the limits");
    let longer = SqliteStore::new(&path, longer).expect("a path").clock(Dial::new(START).clock());
    granted(&mut { longer }, Token::random(), START);
    let dial = Dial::new(START);
    let mut holder = store(&path).clock(dial.clock());
    granted(&mut holder, Token::random(), START);

    fs::rename(&path, scratch.path("aside.db")).expect("same directory");
    refused(acquire(&mut holder, Token::random(), 1, START), ErrorKind::StoreReplaced, "removed");
    assert!(!path.exists());
    dial.pass(300);
    let now = dial.now();
    holder.accept_another();
    for _ in 0..2 {
        let outcome = acquire(&mut holder, Token::random(), 1, now);
        assert_eq!(outcome, Ok(Acquired::Quarantined { now, until: now + 605 }));
    }

    fs::rename(scratch.path("aside.db"), &path).expect("same directory");
    refused(acquire(&mut holder, Token::random(), 1, now), ErrorKind::StoreReplaced, "replaced");
    holder.accept_another();
    granted(&mut holder, Token::random(), now);
}

#[test]
fn a_file_that_goes_in_the_middle_has_granted_nothing() {
    type Lose = fn(&Path);
    let ways: [(&str, Lose); 2] = [
        ("unlinked", |path| fs::remove_file(path).expect("the file")),
        ("renamed and made again", |path| {
            fs::rename(path, path.with_extension("old")).expect("the file");
            fs::write(path, "").expect("a new file");
        }),
    ];
    for (way, lose) in ways {
        let scratch = Scratch::new();
        let path = scratch.path("ids.db");
        granted(&mut store(&path), Token::random(), START);
        // The store reads its clock during the transaction.
        let there = path.clone();
        let mut unlucky = store(&path).clock(move || {
            lose(&there);
            START * common::SECOND
        });
        let outcome = acquire(&mut unlucky, Token::random(), 1, START);
        let kind = outcome.map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::StoreReplaced), "{way}");
    }
}

fn lock_file(path: &Path) -> PathBuf {
    path.with_extension("db-lock")
}

#[test]
fn all_names_of_a_file_share_one_lock() {
    let scratch = Scratch::new();
    let (path, link, folder) =
        (scratch.path("ids.db"), scratch.path("link.db"), scratch.path("folder"));
    symlink("ids.db", &link).expect("a link to a file that is not there yet");
    symlink(scratch.directory(), &folder).expect("a link to the directory");
    let token = Token::random();
    let lease = granted(&mut store(&link), token, START);
    let names = [path.clone(), link, folder.join("ids.db"), folder.join("./link.db")];
    for name in &names {
        let renewed = renew(&mut store(name), token, lease.node_id, START);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{}: {renewed:?}", name.display());
    }
    let lock = fs::File::open(lock_file(&path)).expect("the lock file");
    lock.lock().expect("it is free");
    for name in &names {
        let outcome = acquire(&mut store(name).patience(Duration::ZERO), token, 1, START);
        refused(outcome, ErrorKind::StoreUnavailable, "other processes");
    }
    lock.unlock().expect("ours");
    granted(&mut store(&path), token, START);
    assert!(!scratch.path("link.db-lock").exists());
}

/// With a lock file next to each name, other processes would lock a different file.
#[test]
fn a_file_with_two_names_is_refused() {
    let scratch = Scratch::new();
    let (path, other) = (scratch.path("ids.db"), scratch.path("other.db"));
    let mut holder = store(&path);
    granted(&mut holder, Token::random(), START);
    fs::hard_link(&path, &other).expect("the same disk");
    for store in [&mut holder, &mut store(&path), &mut store(&other)] {
        refused(acquire(store, Token::random(), 1, START), ErrorKind::WeakStore, "hard link");
    }
    fs::remove_file(other).expect("a name");
    granted(&mut holder, Token::random(), START);
}

#[test]
fn a_file_that_is_mounted_by_itself_is_refused() {
    let Some(disk) = Disk::new("size=1m") else {
        return;
    };
    let (path, mounted) = (disk.0.path("ids.db"), disk.0.path("mounted.db"));
    granted(&mut store(&path), Token::random(), START);
    fs::write(&mounted, "").expect("a place");
    assert!(mount(&["--bind", path.to_str().expect("text")], &mounted), "a file over a file");
    let outcome = acquire(&mut store(&mounted), Token::random(), 1, START);
    refused(outcome, ErrorKind::WeakStore, "mounted on its own");
    granted(&mut store(&path), Token::random(), START);
    assert!(Command::new("umount").arg(&mounted).status().is_ok_and(|status| status.success()));
}

#[test]
fn a_lock_file_that_is_removed_in_the_middle_is_noticed() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    granted(&mut store(&path), Token::random(), START);
    let (there, removals) = (path.clone(), Arc::new(AtomicU32::new(0)));
    let removed = Arc::clone(&removals);
    // The second reading of the clock is during the transaction.
    let mut unlucky = store(&path).clock(move || {
        if removed.fetch_add(1, Ordering::Relaxed) == 1 {
            fs::remove_file(lock_file(&there)).expect("the lock file");
        }
        START * common::SECOND
    });
    granted(&mut unlucky, Token::random(), START);
    assert_eq!(removals.load(Ordering::Relaxed), 3, "it has begun again");
    assert!(lock_file(&path).exists());
}

#[test]
fn every_user_of_the_file_may_lock_it() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    granted(&mut store(&path), Token::random(), START);
    for mode in [0o660, 0o600, 0o644] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        granted(&mut store(&path), Token::random(), START);
        let lock = fs::metadata(lock_file(&path)).expect("the lock file");
        assert_eq!(lock.mode() & 0o777, mode);
    }
    fs::set_permissions(lock_file(&path), fs::Permissions::from_mode(0o444)).expect("ours");
    granted(&mut store(&path), Token::random(), START);
}

/// The case that the documentation says breaks the guarantee. If it changes, change the
/// documentation.
#[test]
fn a_copy_cannot_be_told_from_its_original() {
    let scratch = Scratch::new();
    let (path, copy) = (scratch.path("ids.db"), scratch.path("copy.db"));
    let token = Token::random();
    let lease = granted(&mut store(&path), token, START);
    fs::copy(&path, &copy).expect("a copy");
    for path in [path, copy] {
        let renewed = renew(&mut store(path), token, lease.node_id, START);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    }
}

#[test]
fn files_of_something_else_are_left_alone() {
    let scratch = Scratch::new();
    let text = scratch.path("text.db");
    fs::write(&text, "not a database, but long enough to look at ".repeat(99)).expect("a file");
    let other = scratch.path("other.db");
    Connection::open(&other)
        .and_then(|connection| {
            connection.execute_batch("create table mine (a); insert into mine values (1)")
        })
        .expect("another database");
    let newer = scratch.path("newer.db");
    granted(&mut store(&newer), Token::random(), START);
    Connection::open(&newer)
        .and_then(|connection| connection.execute_batch("pragma user_version = 3"))
        .expect("a store");
    for path in [text, other, newer] {
        let before = fs::read(&path).expect("the file");
        let error = acquire(&mut store(&path), Token::random(), 1, START)
            .expect_err("a file of something else");
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
        assert!(error.to_string().contains("need their own file"), "{error}");
        assert_eq!(fs::read(&path).expect("the file"), before, "{}", path.display());
    }
}

#[test]
fn an_empty_file_becomes_a_store() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    fs::write(&path, "").expect("a file");
    let mut store = store(&path);
    let token = Token::random();
    let lease = granted(&mut store, token, START);
    assert_eq!(granted(&mut store, token, START), lease);
}

#[test]
fn a_damaged_file_is_not_used() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let token = Token::random();
    granted(&mut store(&path), token, START);
    let mut bytes = fs::read(&path).expect("the file");
    for byte in bytes.iter_mut().skip(4096) {
        *byte = 0xa5;
    }
    fs::write(&path, bytes).expect("the file");
    let outcome = acquire(&mut store(&path), token, 1, START);
    refused(outcome, ErrorKind::StoreUnavailable, "damaged");
}

#[test]
fn paths_that_cannot_be_shared_are_refused() {
    for path in ["", ":memory:", "/", ".."] {
        let error = SqliteStore::new(path, namespace(9)).expect_err(path);
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{path}: {error}");
        assert!(error.to_string().contains("several processes"), "{path}: {error}");
    }
    let scratch = Scratch::new();
    let missing = acquire(&mut store(scratch.path("no/such/ids.db")), Token::random(), 1, START);
    refused(missing, ErrorKind::InvalidArgument, "no/such is missing");
    let directory = acquire(&mut store(scratch.directory()), Token::random(), 1, START);
    refused(directory, ErrorKind::InvalidArgument, "is a directory");
    assert!(!scratch.path("no").exists());
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let scratch = Scratch::new();
    let (socket, fifo, link) = (scratch.path("socket"), scratch.path("fifo"), scratch.path("link"));
    let _listener = UnixListener::bind(&socket).expect("a socket can be made");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    symlink("/dev/null", &link).expect("a link can be made");
    for path in [socket, fifo, link] {
        let outcome = acquire(&mut store(path), Token::random(), 1, START);
        refused(outcome, ErrorKind::InvalidArgument, "not a regular file");
    }
    let left = fs::read_dir(scratch.directory()).expect("it can be read").count();
    assert_eq!((left, Path::new("/dev/null-lock").exists()), (3, false));
}

#[test]
fn a_relative_path_means_the_directory_of_now() {
    let here = std::env::current_dir().expect("a directory");
    let shown = format!("{:?}", store("some/ids.db"));
    assert!(shown.contains(&format!("{:?}", here.join("some/ids.db"))), "{shown}");
}

/// A busy file must not get a namespace without the requested quarantine.
#[test]
fn init_makes_a_quarantine_along_with_the_namespace_or_nothing() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let known = || operator::list(&mut operators_store(&path)).map(|listed| listed.floor);
    let neighbour = Namespace::new("another", &secret()).expect("a name");
    let mut neighbour = SqliteStore::new(&path, neighbour).expect("a path");
    neighbour.init(InitMode::New).expect("makes the file");
    let other = Connection::open(&path).expect("a SQLite file");
    other.execute_batch("begin immediate").expect("no other program is here");
    let busy = store(&path).patience(Duration::ZERO).init(InitMode::Quarantine);
    refused(busy, ErrorKind::StoreUnavailable, "other processes");
    other.execute_batch("rollback").expect("it has begun");
    refused(known(), ErrorKind::StoreNotInitialized, "no namespace");

    store(&path).init(InitMode::Quarantine).expect("it is free");
    assert_eq!(known(), Ok(START + 305));
    assert!(matches!(
        acquire(&mut store(&path), Token::random(), 1, START),
        Ok(Acquired::Quarantined { .. })
    ));
    for mode in [InitMode::New, InitMode::Quarantine] {
        store(&path).clock(Dial::new(START + 100).clock()).init(mode).expect("it is there");
        assert_eq!(known(), Ok(START + 305), "only a new one gets one");
    }
}

#[test]
fn a_file_that_others_keep_is_waited_for_and_then_named() {
    let (_scratch, path, token, lease) = file_with_a_lease();
    let other = Connection::open(&path).expect("a SQLite file");
    other.execute_batch("begin immediate").expect("no other program is here");
    let mut hasty = store(&path).patience(Duration::from_millis(20));
    let outcome = renew(&mut hasty, token, lease.node_id, START);
    refused(outcome, ErrorKind::StoreUnavailable, "other processes");
    other.execute_batch("rollback; begin; select * from node").expect("a reader, as a backup is");
    let outcome = acquire(&mut hasty, Token::random(), 1, START);
    refused(outcome, ErrorKind::StoreUnavailable, "backup");
    other.execute_batch("rollback").expect("ends");
    drop(other);
    let renewed = renew(&mut hasty, token, lease.node_id, START);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
}

#[test]
fn a_clock_that_went_on_while_the_file_was_waited_for_is_no_skew() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    granted(&mut store(&path), Token::random(), START);
    let other = Connection::open(&path).expect("a SQLite file");
    other.execute_batch("begin immediate").expect("no other program is here");
    let (was_read, reads) = mpsc::channel();
    let dial = Dial::new(START);
    let clock = dial.clock();
    let mut store = store(&path).patience(Duration::from_secs(120)).clock(move || {
        let now = clock();
        let _receiver_may_be_gone = was_read.send(());
        now
    });
    let outcome = thread::scope(|scope| {
        scope.spawn(move || {
            // A store that waits for the file before it reads its clock would not say so.
            let _was_read = reads.recv_timeout(Duration::from_secs(60));
            dial.pass(60);
            other.execute_batch("rollback").expect("ends");
        });
        acquire(&mut store, Token::random(), 1, START)
    });
    assert!(matches!(outcome, Ok(Acquired::Granted { .. })), "{outcome:?}");
}

#[test]
fn a_file_that_was_given_a_write_ahead_log_works_on() {
    let (_scratch, path, token, lease) = file_with_a_lease();
    let other = Connection::open(&path).expect("a SQLite file");
    let mode: String =
        other.query_row("pragma journal_mode = wal", [], |row| row.get(0)).expect("a mode");
    assert_eq!(mode, "wal");
    drop(other);
    for _ in 0..2 {
        let renewed = renew(&mut store(&path), token, lease.node_id, START);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    }
    is_sound(&path);
}

#[test]
fn a_clock_that_fails_writes_nothing() {
    struct Broken;
    impl Clock for Broken {
        fn now(&self) -> randflake::Result<i64> {
            Err(CoreError::from_clock("no time"))
        }
    }
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let outcome = acquire(&mut store(&path).clock(Broken), Token::random(), 1, START);
    assert_eq!(outcome.expect_err("no time").code(), "INVALID_ARGUMENT");
    assert_eq!(fs::metadata(&path).map_or(0, |metadata| metadata.len()), 0);
}

#[test]
fn two_secrets_on_one_file_need_two_namespaces() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    granted(&mut store(&path), Token::random(), START);
    let other = randflake::Secret::random();
    let open = |name| {
        let namespace = Namespace::new(name, &other).expect("a name");
        let mut store =
            SqliteStore::new(&path, namespace).expect("a path").clock(Dial::new(START).clock());
        acquire(&mut store, Token::random(), 1, START)
    };
    refused(open("orders"), ErrorKind::SecretMismatch, "another namespace");
    assert!(matches!(open("users"), Ok(Acquired::Granted { .. })));
    assert_ne!(secret().to_hex(), other.to_hex());
}

/// A separate small disk; `None`, with a loud message, if this user may not mount one.
struct Disk(Scratch);

impl Disk {
    fn new(options: &str) -> Option<Self> {
        let scratch = Scratch::new();
        let mounted = mount(&["-t", "tmpfs", "-o", options, "tmpfs"], scratch.directory());
        if mounted {
            return Some(Self(scratch));
        }
        let is_root = fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0);
        assert!(
            !(is_root && std::env::var("CI").is_ok_and(|ci| ci == "true")),
            "this machine must be able to mount a small disk"
        );
        eprintln!("SKIPPED: mounting a small disk needs root");
        None
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(mount(&["-o", &options], self.0.directory()), "{options}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0.directory()).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

fn mount(arguments: &[&str], directory: &Path) -> bool {
    let status = Command::new("mount").args(arguments).arg(directory).status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn a_full_disk_loses_nothing() {
    let Some(disk) = Disk::new("size=64k") else {
        return;
    };
    let path = disk.0.path("ids.db");
    let mut store = store(&path);
    let token = Token::random();
    let lease = granted(&mut store, token, START);

    // As many node ids as fit, and then as much of anything else as fits.
    let mut kept = vec![(token, lease)];
    let full = loop {
        let token = Token::random();
        match acquire(&mut store, token, 64, START) {
            Ok(Acquired::Granted { leases, .. }) => kept.push((token, leases[0])),
            Ok(other) => panic!("node ids are free, yet: {other:?}"),
            Err(error) => break error,
        }
        assert!(kept.len() < 1000, "the disk is small");
    };
    assert_eq!(full.kind(), ErrorKind::StoreUnavailable);
    assert!(full.to_string().contains("the disk is full"), "{full}");

    let ballast = disk.0.path("ballast");
    let _full = fs::write(&ballast, vec![0; 64 << 10]);
    for (token, lease) in &kept {
        // Whether or not there is room for a journal: never a different answer, never a lost lease.
        match renew(&mut store, *token, lease.node_id, START) {
            Ok(renewed) => assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}"),
            Err(error) => assert!(error.to_string().contains("full"), "{error}"),
        }
    }

    disk.remount("size=1m");
    for (token, lease) in &kept {
        assert_eq!(granted(&mut store, *token, START), *lease);
        let renewed = renew(&mut store, *token, lease.node_id, START);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    }
    granted(&mut store, Token::random(), START);
    is_sound(&path);
}

#[test]
fn a_new_store_on_a_full_disk_is_made_once_there_is_room() {
    let Some(disk) = Disk::new("size=64k") else {
        return;
    };
    let ballast = disk.0.path("ballast");
    let _full = fs::write(&ballast, vec![0; 65 << 10]);
    let mut store = store(disk.0.path("ids.db"));
    let outcome = acquire(&mut store, Token::random(), 1, START);
    refused(outcome, ErrorKind::StoreUnavailable, "the disk is full");
    fs::remove_file(ballast).expect("the ballast");
    granted(&mut store, Token::random(), START);
}

#[test]
fn a_read_only_disk_is_named_and_loses_nothing() {
    let Some(disk) = Disk::new("size=1m") else {
        return;
    };
    let path = disk.0.path("ids.db");
    let dial = Dial::new(START);
    let mut holder = store(&path).clock(dial.clock());
    let token = Token::random();
    let lease = granted(&mut holder, token, START);
    disk.remount("ro");
    for mut store in [store(&path), store(disk.0.path("new.db"))] {
        let outcome = acquire(&mut store, Token::random(), 1, START);
        refused(outcome, ErrorKind::InvalidArgument, "read-only");
    }
    dial.pass(1);
    let outcome = renew(&mut holder, token, lease.node_id, dial.now());
    refused(outcome, ErrorKind::StoreUnavailable, "read-only");
    disk.remount("rw");
    assert_eq!(granted(&mut holder, token, dial.now()), lease);
}

/// Files that a user may not write, tested as non-root.
#[test]
fn a_file_that_may_not_be_written_is_named() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let token = Token::random();
    granted(&mut store(&path), token, START);
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    };
    set(&path, 0o444);
    if fs::OpenOptions::new().write(true).open(&path).is_ok() {
        eprintln!("SKIPPED: root may write everything; see the read-only disk");
        return;
    }
    let outcome = acquire(&mut store(&path), Token::random(), 1, START);
    refused(outcome, ErrorKind::InvalidArgument, "read-only");
    set(&path, 0o000);
    let outcome = acquire(&mut store(&path), Token::random(), 1, START);
    refused(outcome, ErrorKind::InvalidArgument, "cannot be opened");
    set(&path, 0o644);
    granted(&mut store(&path), token, START);
}

#[test]
fn a_damaged_row_is_never_a_panic() {
    let (_scratch, path, token, lease) = file_with_a_lease();
    let of_a_dead_holder = granted(&mut store(&path), Token::random(), START);
    let file = Connection::open(&path).expect("a SQLite file");
    file.execute_batch("update node set start = end_exclusive + 1").expect("a column");
    let end_of = |lease: NodeLease| -> i64 {
        let query = "select end_exclusive from node where node_id = ?1";
        file.query_row(query, [lease.node_id], |row| row.get(0)).expect("it is there")
    };

    assert_eq!(release(&mut store(&path), token, lease.node_id, START), Ok(1));
    assert_eq!(end_of(lease), lease.end_exclusive, "never raised");

    let start = of_a_dead_holder.end_exclusive + 1;
    let damaged = NodeLease { start, ..of_a_dead_holder };
    let request = ReleaseDead { token: Token::random(), lease: damaged, client_now: START };
    let reply = operators_store(&path).release_dead(&request).expect("it is held");
    let answer = reply.answer_to(request.token, Operation::ReleaseDead);
    let released = answer.expect("an answer to this request");
    assert_eq!((released.from, released.to), (damaged.end_exclusive, damaged.end_exclusive));
    assert_eq!(end_of(damaged), damaged.end_exclusive, "never raised");

    for limits in ["max_ttl = 4294967295", "max_ttl = 0", "max_ttl = 300, max_skew = 4294967295"] {
        file.execute_batch(&format!("update namespace set {limits}")).expect("columns");
        let outcome = acquire(&mut store(&path), Token::random(), 1, START);
        refused(outcome, ErrorKind::InvalidArgument, "is damaged");
        let outcome = operator::list(&mut operators_store(&path));
        refused(outcome, ErrorKind::InvalidArgument, "is damaged");
    }
}
