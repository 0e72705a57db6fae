//! One file, many processes: started, killed, stopped and forked. Each process runs this program
//! again, with a role in its environment.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[path = "../../core/tests/common/child.rs"]
mod child;
#[cfg(target_os = "linux")]
mod common;

#[cfg(target_os = "linux")]
#[allow(clippy::print_stdout, reason = "a test report")]
fn main() {
    match std::env::var("ROLE").as_deref() {
        Ok("fleet") => linux::fleet_member(),
        Ok("reader") => linux::reading_holder(true),
        Ok("disturbed") => linux::reading_holder(false),
        Ok("other") => linux::other_sqlite(),
        Ok("crash") => linux::crashing_holder(),
        Ok("stop") => linux::stopping_holder(),
        Ok("die") => linux::dying_holder(),
        _ => {
            // A part of a name may be given, as with other tests.
            let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
            let only = only.unwrap_or_default();
            let is_wanted = |(name, _): &&(&str, fn())| name.contains(&only);
            let run = |&(name, test): &(&str, fn())| {
                test();
                println!("{name} ... ok");
            };
            linux::FORKING_TESTS.iter().filter(is_wanted).for_each(run);
            // They mostly wait.
            std::thread::scope(|scope| {
                for test in linux::TESTS.iter().filter(is_wanted) {
                    scope.spawn(|| run(test));
                }
            });
        }
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "signals")]
#[allow(clippy::print_stdout, reason = "what the parent reads")]
mod linux {
    use std::{
        collections::HashMap,
        env, fs,
        io::{BufRead, BufReader, Read, Write},
        path::{Path, PathBuf},
        process::{Child, Command, Stdio},
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicU32, Ordering},
        },
        thread,
        time::Duration,
    };

    use randflake::{Clock, ErrorKind, SystemClock};
    use randflake_leases::{
        Acquired, InitMode, LeaseStore, MemoryStore, NodeLease, Renewed, SqliteStore, Token,
    };

    use crate::{
        child::{in_child, libc_fork, raw_clone},
        common::{
            Dial, SECOND, START, Scratch, acquire, assert_disjoint, granted, namespace, release,
            renew,
        },
    };

    /// These tests fork this process itself, so they run one by one.
    pub(crate) const FORKING_TESTS: &[(&str, fn())] = &[
        ("children_never_use_what_they_inherit", children_never_use_what_they_inherit),
        (
            "a_clone_in_the_middle_of_an_operation_is_refused",
            a_clone_in_the_middle_of_an_operation_is_refused,
        ),
        ("forks_during_operations_do_no_harm", forks_during_operations_do_no_harm),
    ];

    pub(crate) const TESTS: &[(&str, fn())] = &[
        ("many_processes_share_one_file", many_processes_share_one_file),
        ("reading_the_file_frees_no_lock", reading_the_file_frees_no_lock),
        ("another_sqlite_undoes_no_grant", another_sqlite_undoes_no_grant),
        ("killed_holders_keep_their_seconds", killed_holders_keep_their_seconds),
        ("one_that_dies_with_the_file_open_frees_it", one_that_dies_with_the_file_open_frees_it),
        ("one_that_is_stopped_with_the_file_is_named", one_that_is_stopped_with_the_file_is_named),
    ];

    const PROCESSES: usize = 32;
    const LIVES: usize = 10;

    /// Starts this program in a role.
    fn start(role: &str, path: &Path, max_node_id: u32, second: i64) -> Child {
        Command::new(env::current_exe().expect("this program"))
            .env("ROLE", role)
            .env("STORE", path)
            .env("MAX_NODE_ID", max_node_id.to_string())
            .env("SECOND", second.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("another process")
    }

    fn variable(name: &str) -> String {
        env::var(name).expect("set by the parent")
    }

    fn store_of_the_role() -> SqliteStore {
        let max_node_id = variable("MAX_NODE_ID").parse().expect("a node id");
        let path = PathBuf::from(variable("STORE"));
        let store = SqliteStore::new(path, namespace(max_node_id)).expect("a path");
        // On a busy machine the others may have the file for any time.
        store.patience(Duration::MAX)
    }

    fn second_of_the_role() -> i64 {
        variable("SECOND").parse().expect("a second")
    }

    fn real_second() -> i64 {
        SystemClock.now().expect("a clock") / SECOND
    }

    fn say(line: &str) {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent listens");
    }

    fn numbers(line: &str) -> Vec<i64> {
        line.split(' ').filter_map(|word| word.parse().ok()).collect()
    }

    fn lease(node_id: i64, start: i64, end_exclusive: i64) -> NodeLease {
        NodeLease { node_id: node_id.try_into().expect("a node id"), start, end_exclusive }
    }

    // Many at once.

    pub(crate) fn fleet_member() {
        let mut store = store_of_the_role();
        let mut lives = 0;
        while lives < LIVES {
            let token = Token::random();
            match acquire(&mut store, token, 1, real_second()).expect("the file works") {
                Acquired::Granted { leases, .. } => {
                    let NodeLease { node_id, start, .. } = leases[0];
                    renew(&mut store, token, node_id, real_second()).expect("the file works");
                    let used_until = start + i64::from(token.as_bytes()[0] % 3);
                    let freed = release(&mut store, token, node_id, used_until);
                    assert_eq!(freed, Ok(1));
                    say(&format!("{node_id} {start} {used_until}"));
                    lives += 1;
                }
                // On a busy machine a request may wait longer than clocks may differ.
                Acquired::Busy { .. } | Acquired::ClockSkew { .. } => {
                    thread::sleep(Duration::from_millis(20));
                }
                quarantined @ Acquired::Quarantined { .. } => panic!("unexpected: {quarantined:?}"),
            }
        }
    }

    fn many_processes_share_one_file() {
        let scratch = Scratch::new();
        // The file does not exist yet: all of them try to create it.
        let path = scratch.path("ids.db");
        let fleet: Vec<_> = (0..PROCESSES).map(|_| start("fleet", &path, 39, 0)).collect();
        let mut stamped = Vec::new();
        for member in fleet {
            let output = member.wait_with_output().expect("it ends");
            assert!(output.status.success(), "one failed: {output:?}");
            let text = String::from_utf8(output.stdout).expect("text");
            stamped.extend(text.lines().map(|line| {
                let [node_id, start, end] = numbers(line)[..] else {
                    panic!("{line}");
                };
                lease(node_id, start, end)
            }));
        }
        assert_eq!(stamped.len(), PROCESSES * LIVES);
        assert_disjoint(stamped);
    }

    // Read by others in the same process.

    const READ_ATTEMPTS: u32 = 300;

    /// Reads the file all the time, which drops the locks that `SQLite` has on it in this process.
    /// A held node id has a file with its name, which can be created only once.
    pub(crate) fn reading_holder(is_alone: bool) {
        let (store, path) = (store_of_the_role(), PathBuf::from(variable("STORE")));
        let mut store = store.clock(Dial::new(START).clock());
        let is_done = AtomicBool::new(false);
        // Another SQLite may undo what is being written: an error then, and no grant.
        let hold = |store: &mut SqliteStore| -> Result<(), String> {
            let token = Token::random();
            let acquired = match acquire(store, token, 1, START) {
                Err(error) if is_alone => return Err(error.to_string()),
                acquired => acquired,
            };
            let Ok(Acquired::Granted { leases, .. }) = acquired else { return Ok(()) };
            let NodeLease { node_id, start, .. } = leases[0];
            let mark = path.with_file_name(node_id.to_string());
            fs::File::create_new(&mark).map_err(|_| format!("{node_id} is held by two"))?;
            thread::yield_now();
            fs::remove_file(&mark).map_err(|error| error.to_string())?;
            match release(store, token, node_id, start) {
                Ok(1) => Ok(()),
                Err(_) if !is_alone => Ok(()),
                other => Err(format!("{node_id} was lost: {other:?}")),
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let read = fs::File::open(&path).and_then(|mut file| file.read(&mut [0; 16]));
                    read.expect("the file is there");
                }
            });
            let failed = (0..READ_ATTEMPTS).find_map(|_| hold(&mut store).err());
            is_done.store(true, Ordering::Relaxed);
            if let Some(failed) = failed {
                say(&failed);
            }
        });
    }

    fn reading_the_file_frees_no_lock() {
        let scratch = Scratch::new();
        let path = scratch.path("ids.db");
        let mut store = SqliteStore::new(&path, namespace(3)).expect("a path");
        store.init(InitMode::New).expect("makes the file");
        let holders = [(); 2].map(|()| start("reader", &path, 3, 0));
        for holder in holders {
            let output = holder.wait_with_output().expect("it ends");
            assert!(output.status.success(), "one failed: {output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "");
        }
    }

    /// Reads the file without the lock next to it, like a user with the `sqlite3` command. If it
    /// sees a journal and no lock, it takes the journal's writer for dead, and undoes what it is
    /// writing.
    pub(crate) fn other_sqlite() {
        let path = variable("STORE");
        loop {
            let _busy = rusqlite::Connection::open(&path).and_then(|file| {
                file.query_row("select count(*) from node", [], |row| row.get::<_, u32>(0))
            });
            thread::sleep(Duration::from_micros(300));
        }
    }

    fn another_sqlite_undoes_no_grant() {
        let scratch = Scratch::new();
        let path = scratch.path("ids.db");
        let mut store = SqliteStore::new(&path, namespace(3)).expect("a path");
        store.init(InitMode::New).expect("makes the file");
        let mut other = start("other", &path, 3, 0);
        let holders = [(); 2].map(|()| start("disturbed", &path, 3, 0));
        let ended = holders.map(|holder| holder.wait_with_output().expect("it ends"));
        other.kill().and_then(|()| other.wait()).expect("it ran until now");
        for output in ended {
            assert!(output.status.success(), "one failed: {output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "");
        }
    }

    // Killed.

    /// Reports each lease before it stamps, and the stamps before it releases the lease.
    pub(crate) fn crashing_holder() {
        let dial = Dial::new(second_of_the_role());
        let mut store = store_of_the_role().clock(dial.clock());
        loop {
            let token = Token::random();
            if let Acquired::Granted { leases, .. } =
                acquire(&mut store, token, 1, dial.now()).expect("the file works")
            {
                let NodeLease { node_id, start, end_exclusive } = leases[0];
                say(&format!("grant {node_id} {start} {end_exclusive}"));
                dial.pass(1);
                let used_until = start + 1;
                say(&format!("used {node_id} {start} {used_until}"));
                let freed = release(&mut store, token, node_id, used_until);
                assert_eq!(freed, Ok(1));
            }
            dial.pass(1);
        }
    }

    fn killed_holders_keep_their_seconds() {
        const ROUNDS: u32 = 40;
        for (max_node_id, holders) in [(0, 1), (131_071, 3)] {
            let scratch = Scratch::new();
            let path = scratch.path("ids.db");
            // The last report of the stamps, by node id and start.
            let mut stamped = HashMap::new();
            let mut hot_journals = 0;
            for round in 0..ROUNDS {
                let second = START + 1000 * i64::from(round);
                let running: Vec<_> =
                    (0..holders).map(|_| start("crash", &path, max_node_id, second)).collect();
                let kill_after =
                    Duration::from_millis(u64::from(Token::random().as_bytes()[0] / 4));
                let heard: Vec<_> = running
                    .into_iter()
                    .map(|mut holder| {
                        let out = holder.stdout.take().expect("piped");
                        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
                        // Every other round kills at a random time, maybe before the first grant.
                        let mut heard = Vec::new();
                        heard.extend(if round % 2 == 0 { lines.next() } else { None });
                        let listener = thread::spawn(move || {
                            heard.extend(lines);
                            heard
                        });
                        (holder, listener)
                    })
                    .collect();
                thread::sleep(kill_after);
                for (mut holder, listener) in heard {
                    holder.kill().expect("it runs");
                    let status = holder.wait().expect("it ends");
                    assert_eq!(status.code(), None, "it failed before it was killed: {status}");
                    for line in listener.join().expect("it listens") {
                        let [node_id, start, end] = numbers(&line)[..] else {
                            continue; // incomplete
                        };
                        stamped.insert((node_id, start), end);
                    }
                }
                let journal = fs::metadata(path.with_extension("db-journal"));
                hot_journals += u32::from(journal.is_ok_and(|journal| journal.len() > 0));
            }
            println!(
                "    {holders} of {} ids: {} grants, {ROUNDS} kills, {hot_journals} in a commit",
                max_node_id + 1,
                stamped.len()
            );
            assert!(stamped.len() >= ROUNDS as usize / 2, "holders got leases");
            let stamped =
                stamped.into_iter().map(|((node_id, start), end)| lease(node_id, start, end));
            assert_disjoint(stamped.collect());
            let verdict: String = rusqlite::Connection::open(&path)
                .and_then(|file| file.query_row("pragma integrity_check", [], |row| row.get(0)))
                .expect("a SQLite file");
            assert_eq!(verdict, "ok");
        }
    }

    pub(crate) fn dying_holder() {
        let mut store = store_of_the_role().clock(in_the_middle(|| signal_oneself(libc::SIGKILL)));
        let _never = acquire(&mut store, Token::random(), 1, START);
    }

    fn one_that_dies_with_the_file_open_frees_it() {
        let scratch = Scratch::new();
        let path = scratch.path("ids.db");
        let status = start("die", &path, 9, 0).wait().expect("it ends");
        assert!(!status.success());
        let mut store = SqliteStore::new(&path, namespace(9)).expect("a path");
        granted(&mut store, Token::random(), real_second());
    }

    // Stopped.

    pub(crate) fn stopping_holder() {
        let mut store = store_of_the_role().clock(in_the_middle(|| signal_oneself(libc::SIGSTOP)));
        granted(&mut store, Token::random(), real_second());
    }

    fn one_that_is_stopped_with_the_file_is_named() {
        let scratch = Scratch::new();
        let path = scratch.path("ids.db");
        let mut stopped = start("stop", &path, 9, 0);
        let stat = format!("/proc/{}/stat", stopped.id());
        while !fs::read_to_string(&stat).expect("it runs").contains(") T ") {
            thread::sleep(Duration::from_millis(1));
        }
        let mut store = SqliteStore::new(&path, namespace(9))
            .expect("a path")
            .patience(Duration::from_millis(50));
        let error = acquire(&mut store, Token::random(), 1, real_second()).expect_err("taken");
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
        assert!(error.to_string().contains("stopped during an operation"), "{error}");

        let pid = stopped.id().try_into().expect("a process id");
        // SAFETY: has no precondition; the process is our child, not yet waited for.
        unsafe { libc::kill(pid, libc::SIGCONT) };
        assert!(stopped.wait().expect("it ends").success());
        granted(&mut store, Token::random(), real_second());
    }

    /// A clock that does something during the first operation. The operation also reads it before
    /// that.
    fn in_the_middle(act: impl Fn() + Send + Sync + 'static) -> impl Clock {
        let readings = AtomicU32::new(0);
        move || {
            if readings.fetch_add(1, Ordering::Relaxed) == 1 {
                act();
            }
            real_second() * SECOND
        }
    }

    fn signal_oneself(signal: libc::c_int) {
        // SAFETY: has no precondition.
        unsafe { libc::raise(signal) };
    }

    // Forked.

    fn assert_forked(store: &mut dyn LeaseStore, token: Token, node_id: u32) {
        let forked = ErrorKind::Forked;
        let now = real_second();
        let acquired = acquire(store, token, 1, now).map_err(|error| error.kind());
        assert_eq!(acquired, Err(forked));
        let renewed = renew(store, token, node_id, now).map_err(|error| error.kind());
        assert_eq!(renewed, Err(forked));
        let released = release(store, token, node_id, now).map_err(|error| error.kind());
        assert_eq!(released, Err(forked));
    }

    fn children_never_use_what_they_inherit() {
        let scratch = Scratch::new();
        let path = scratch.path("ids.db");
        for fork in [libc_fork, raw_clone] {
            let open = || SqliteStore::new(&path, namespace(9)).expect("a path");
            let mut inherited = open();
            let mut memory = MemoryStore::new(namespace(9));
            let (token, memory_token) = (Token::random(), Token::random());
            let lease = granted(&mut inherited, token, real_second());
            let memory_lease = granted(&mut memory, memory_token, real_second());
            in_child(fork, || {
                assert_forked(&mut inherited, token, lease.node_id);
                assert_forked(&mut memory, memory_token, memory_lease.node_id);
                drop(inherited);
                let own = granted(&mut open(), Token::random(), real_second());
                assert_ne!(own.node_id, lease.node_id);
            });
            let renewed = renew(&mut open(), token, lease.node_id, real_second());
            assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "still there: {renewed:?}");
        }
    }

    /// A child would wait forever for a lock that the library had taken.
    fn a_clone_in_the_middle_of_an_operation_is_refused() {
        let scratch = Scratch::new();
        let path = scratch.path("ids.db");
        let open = || SqliteStore::new(&path, namespace(9)).expect("a path");
        granted(&mut open(), Token::random(), real_second());
        let there = path.clone();
        let cloned = Arc::new(AtomicBool::new(false));
        let has_cloned = Arc::clone(&cloned);
        let mut cloning = open().clock(in_the_middle(move || {
            in_child(raw_clone, || {
                let mut own = SqliteStore::new(&there, namespace(9)).expect("a path");
                let kind = acquire(&mut own, Token::random(), 1, real_second())
                    .map_err(|error| error.kind());
                assert_eq!(kind, Err(ErrorKind::Forked));
            });
            has_cloned.store(true, Ordering::Relaxed);
        }));
        granted(&mut cloning, Token::random(), real_second());
        assert!(cloned.load(Ordering::Relaxed));
        granted(&mut open(), Token::random(), real_second());
    }

    fn forks_during_operations_do_no_harm() {
        const FORKS: u32 = 100;
        let scratch = Scratch::in_memory();
        let (path, log) = (scratch.path("ids.db"), scratch.path("log"));
        let open = || SqliteStore::new(&path, namespace(255)).expect("a path");
        let at_work = AtomicBool::new(true);
        let busy_holder = || {
            let mut store = open();
            let mut stamped = Vec::new();
            while at_work.load(Ordering::Relaxed) {
                let token = Token::random();
                let NodeLease { node_id, start, .. } = granted(&mut store, token, real_second());
                renew(&mut store, token, node_id, real_second()).expect("the file works");
                assert_eq!(release(&mut store, token, node_id, start), Ok(1));
                stamped.push(lease(node_id.into(), start, start));
            }
            stamped
        };
        let mut stamped: Vec<NodeLease> = thread::scope(|scope| {
            let holders = [(); 2].map(|()| scope.spawn(busy_holder));
            let mut inherited = open();
            let token = Token::random();
            let held = granted(&mut inherited, token, real_second());
            for _ in 0..FORKS {
                in_child(libc_fork, || {
                    assert_forked(&mut inherited, token, held.node_id);
                    let own = Token::random();
                    let NodeLease { node_id, start, end_exclusive } =
                        granted(&mut open(), own, real_second());
                    let own = u128::from_be_bytes(*own.as_bytes());
                    fs::OpenOptions::new()
                        .append(true)
                        .create(true)
                        .open(&log)
                        .and_then(|mut log| {
                            writeln!(log, "{own:x} {node_id} {start} {end_exclusive}")
                        })
                        .expect("a line in the log");
                });
            }
            at_work.store(false, Ordering::Relaxed);
            let stamped = holders.map(|holder| holder.join().expect("unharmed"));
            assert_eq!(granted(&mut inherited, token, real_second()), held, "still there");
            stamped.into_iter().flatten().collect()
        });
        println!("    {} operations of the parent, {FORKS} forks", 3 * stamped.len());
        let mut store = open();
        let text = fs::read_to_string(&log).expect("the log");
        assert_eq!(text.lines().count(), FORKS as usize);
        for line in text.lines() {
            let (token, rest) = line.split_once(' ').expect("a token first");
            let token = u128::from_str_radix(token, 16).expect("hex").to_be_bytes();
            let [node_id, start, end] = numbers(rest)[..] else {
                panic!("{line}");
            };
            let lease = lease(node_id, start, end);
            let kept = renew(&mut store, Token::from_bytes(token), lease.node_id, real_second());
            let Ok(Renewed::Extended { leases, .. }) = kept else {
                panic!("what a child was granted is still there: {kept:?}");
            };
            assert_eq!((leases[0].node_id, leases[0].start), (lease.node_id, start));
            stamped.push(lease);
        }
        assert_disjoint(stamped);
    }
}
