//! Generators with leased node ids in many processes, which are killed, stopped and forked, whose
//! clocks are set and whose file is tampered with. Each process runs this program again, with a
//! role in its environment.
//!
//! One oracle checks them all. Every generator logs the ids it made, and the file itself logs every
//! change of a lease, using triggers. Then all ids must be distinct, the leases of a node id must
//! have no second in common, and each (second, node id) of a log must lie in a lease that no other
//! log has used.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[path = "../../core/tests/common/child.rs"]
#[allow(dead_code, reason = "a raw clone is not for a process with threads")]
mod child;
#[cfg(target_os = "linux")]
mod common;
#[cfg(target_os = "linux")]
#[path = "leased_processes/oracle.rs"]
mod oracle;

#[cfg(target_os = "linux")]
#[allow(clippy::print_stdout, reason = "a test report")]
fn main() {
    match std::env::var("ROLE").as_deref() {
        Ok("hold") => linux::holder(),
        Ok("fork") => linux::forking_holder(),
        Ok("prefork") => linux::lazy_master(),
        Ok("interrupted") => linux::forked_in_its_first_lease(),
        Ok("batch") => linux::forked_in_a_batch(),
        Ok("leave") => linux::holder_whose_child_leaves(),
        // They mostly wait.
        _ => std::thread::scope(|scope| {
            let start = |&(name, test): &(_, fn())| (name, scope.spawn(test));
            let tests: Vec<_> = linux::TESTS.iter().map(start).collect();
            let failed = tests.into_iter().filter_map(|(name, test)| {
                let passed = test.join().is_ok();
                println!("{name} ... {}", if passed { "ok" } else { "FAILED" });
                (!passed).then_some(name)
            });
            assert_eq!(failed.collect::<Vec<_>>(), [""; 0]);
        }),
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "signals")]
#[allow(clippy::print_stdout, reason = "what the parent reads, and a test report")]
#[allow(clippy::disallowed_methods, reason = "how long to wait for a process")]
mod linux {
    use std::{
        env,
        fmt::Write as _,
        fs::{self, File},
        io::{BufRead, BufReader, Read, Write},
        panic::{AssertUnwindSafe, catch_unwind},
        path::{Path, PathBuf},
        process::{self, Child, ChildStdin, Command, Stdio},
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering},
            mpsc::{self, Receiver},
        },
        thread,
        time::{Duration, Instant},
    };

    use randflake::{
        Clock, Error, ErrorKind, Field, Id, Inspector, Layout, Result, SystemClock, Wait, layout,
    };
    use randflake_leases::{
        Acquire, Acquired, Fence, Fenced, LeaseStatus, LeaseStore, Leased, LeasedBuilder,
        LeasedFormat, Location, Namespace, NodeRanges, Release, Released, Renew, Renewed, Reply,
        SqliteStore, Token,
        keeper::State,
        operator::{List, Listed, ReleaseDead, Repair, Shortened},
    };
    use randflake_tickets::Tickets;

    use crate::{
        child::{in_child, libc_fork},
        common::{SECOND, Scratch, granted, secret},
        oracle::{Oracle, Verdict},
    };

    pub(crate) const TESTS: &[(&str, fn())] = &[
        ("the_oracle_finds_what_is_wrong", the_oracle_finds_what_is_wrong),
        ("a_killed_holder_keeps_the_only_node_id", a_killed_holder_keeps_the_only_node_id),
        ("killed_holders_are_back_at_once", killed_holders_are_back_at_once),
        ("one_that_sleeps_past_its_end_stops", one_that_sleeps_past_its_end_stops),
        ("one_that_sleeps_past_its_end_moves", one_that_sleeps_past_its_end_moves),
        ("steps_of_the_clock_repeat_nothing", steps_of_the_clock_repeat_nothing),
        ("a_clock_that_is_off_is_reported", a_clock_that_is_off_is_reported),
        ("forks_lease_again", forks_lease_again),
        ("forked_snowflakes_lease_again", forked_snowflakes_lease_again),
        ("workers_of_a_lazy_master_lease_each", workers_of_a_lazy_master_lease_each),
        ("workers_of_a_lazy_snowflake_lease_each", workers_of_a_lazy_snowflake_lease_each),
        ("a_fork_in_a_first_lease_makes_two", a_fork_in_a_first_lease_makes_two),
        ("a_fork_in_a_batch_repeats_no_number", a_fork_in_a_batch_repeats_no_number),
        ("a_child_leaves_its_parents_lease_alone", a_child_leaves_its_parents_lease_alone),
        ("a_storm_of_restarts_shares_few_node_ids", a_storm_of_restarts_shares_few_node_ids),
        ("snowflakes_of_many_processes_share_few_node_ids", snowflakes_share_few_node_ids),
        ("a_removed_file_is_made_again_in_quarantine", a_removed_file_is_made_again_in_quarantine),
        (
            "a_replaced_file_is_leased_from_once_the_lease_is_over",
            a_replaced_file_is_leased_from_once_the_lease_is_over,
        ),
        ("a_copied_file_ends_the_lease", a_copied_file_ends_the_lease),
        ("a_full_disk_loses_nothing", a_full_disk_loses_nothing),
        ("a_file_that_cannot_be_written_loses_nothing", a_file_that_cannot_be_written),
    ];

    /// The longest wait, for a busy machine; most waits take a few seconds.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Seconds of a lease, renewed after one or less.
    const TTL: u32 = 3;

    // The holders.

    fn variable(name: &str) -> String {
        env::var(name).expect("set by the parent")
    }

    fn number<N: std::str::FromStr<Err: std::fmt::Debug>>(name: &str) -> N {
        variable(name).parse().expect("a number, set by the parent")
    }

    fn say(line: &str) {
        let mut out = std::io::stdout().lock();
        // The parent may have stopped reading.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    /// Sonyflake with ticks that cross second boundaries: the holders on both sides of a boundary
    /// must not both use such a tick.
    pub(crate) fn divided_ticks() -> Layout {
        Layout::custom([(Field::Time, 39), (Field::Sequence, 8), (Field::Node, 16)])
            .tick_ms(7)
            .epoch_ms(1_735_689_600_003)
            .build()
            .expect("valid")
    }

    /// Does what a role does with the generator that the environment names.
    macro_rules! with_generator {
        ($role:ident) => {
            if env::var_os("SNOWFLAKE").is_some() {
                $role(|| configured(Leased::for_layout(location(), divided_ticks())));
            } else {
                $role(|| configured(Leased::builder(location(), &secret())));
            }
        };
    }

    pub(crate) fn holder() {
        with_generator!(hold);
    }

    pub(crate) fn forking_holder() {
        with_generator!(hold_and_fork);
    }

    /// Whether a store panics when it is opened.
    static PANICS: AtomicBool = AtomicBool::new(false);

    fn location() -> Location {
        let max_node_id: u32 = number("MAX_NODE_ID");
        let (path, behind): (_, i64) = (variable("STORE"), number("STORE_CLOCK_BEHIND"));
        Location::new(move |namespace| {
            assert!(!PANICS.load(Ordering::Relaxed), "as asked");
            let store =
                SqliteStore::new(&path, namespace.node_ids(NodeRanges::up_to(max_node_id))?)?;
            let clock = move || SystemClock.now().expect("a clock") - behind * SECOND;
            Ok(Box::new(store.patience(Duration::from_secs(2)).clock(clock)))
        })
    }

    fn configured<F: LeasedFormat>(builder: LeasedBuilder<F>) -> LeasedBuilder<F> {
        builder
            .ttl(number("TTL"))
            .max_skew(0)
            .max_drift(number("MAX_DRIFT"))
            .max_wait(Duration::from_millis(100))
            .acquire_timeout(Duration::from_secs(number("ACQUIRE_TIMEOUT")))
    }

    /// The ids that were generated, as the log has them.
    trait Logged: Copy + Default {
        fn bytes(self) -> [u8; 8];
    }

    impl Logged for Id {
        fn bytes(self) -> [u8; 8] {
            i64::from(self).to_le_bytes()
        }
    }

    impl Logged for u64 {
        fn bytes(self) -> [u8; 8] {
            self.to_le_bytes()
        }
    }

    /// The log of one generator.
    fn log(number: u32) -> File {
        let name = format!("{}.{}.{number}", variable("LOG"), process::id());
        File::create_new(name).expect("a log")
    }

    /// Makes some ids, one by one and many at once, and logs them.
    fn make<F: LeasedFormat<Id: Logged>>(flake: &Leased<F>, log: &mut File) -> Result<()> {
        let mut ids = [F::Id::default(); 16];
        ids[0] = flake.generate()?;
        let many = flake.fill(&mut ids[1..]);
        let made = if many.is_ok() { &ids[..] } else { &ids[..1] };
        let bytes: Vec<u8> = made.iter().flat_map(|id| id.bytes()).collect();
        log.write_all(&bytes).expect("the log takes them");
        many
    }

    /// Makes ids until the parent stops reading, and reports each change: the last outcome, node
    /// id, start and end of the lease, state, and the last error.
    fn hold<F: LeasedFormat<Id: Logged>>(generator: impl Fn() -> LeasedBuilder<F>) {
        let flake = match generator().open() {
            Ok(flake) => flake,
            Err(error) => return say(&format!("{} 0 0 0 none {error}", error.code())),
        };
        let enough = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&enough);
        thread::spawn(move || {
            let _ended = std::io::stdin().read(&mut [0]);
            ends.store(true, Ordering::Relaxed);
        });
        let (mut log, mut said, mut rounds) = (log(0), String::new(), number::<u32>("ROUNDS"));
        while !enough.load(Ordering::Relaxed) && rounds > 0 {
            let made = make(&flake, &mut log);
            let outcome = made.map_or_else(|error| error.code(), |()| "made");
            let status = flake.lease().expect("open");
            let mut now = format!(
                "{outcome} {} {} {} {}",
                status.node_ids[0],
                status.start,
                status.end_exclusive,
                status.state.name()
            );
            if let Some(error) = status.last_error {
                write!(now, " {}: {error}", error.code()).expect("room");
            }
            if now != said {
                say(&now);
                said = now;
            }
            rounds -= 1;
            thread::sleep(Duration::from_millis(5));
        }
        flake.close();
    }

    /// A message of a holder.
    #[derive(Clone, Debug)]
    struct Said {
        outcome: String,
        node_id: u32,
        end_exclusive: i64,
        state: String,
        error: String,
    }

    impl Said {
        fn of(line: &str) -> Self {
            let mut words = line.splitn(6, ' ');
            let mut next = || words.next().unwrap_or_default().to_owned();
            let (outcome, node_id, _start, end) = (next(), next(), next(), next());
            Self {
                outcome,
                node_id: node_id.parse().unwrap_or_else(|_| panic!("no line of a holder: {line}")),
                end_exclusive: end.parse().expect("a second"),
                state: next(),
                error: next(),
            }
        }

        fn made(&self) -> bool {
            self.outcome == "made"
        }

        fn holds(&self) -> bool {
            self.made() && self.state == "holding"
        }
    }

    /// A process in the role `hold`.
    struct Holder {
        process: Child,
        said: Receiver<Said>,
        /// Closing it ends the process.
        input: Option<ChildStdin>,
    }

    impl Holder {
        /// Waits until it says something.
        #[track_caller]
        fn until(&self, what: &str, is_it: impl Fn(&Said) -> bool) -> Said {
            let deadline = Instant::now() + PATIENCE;
            let mut heard = Vec::new();
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                match self.said.recv_timeout(left) {
                    Ok(said) if is_it(&said) => return said,
                    Ok(said) => heard.push(said),
                    Err(error) => panic!("{what}: {error}; it said: {heard:#?}"),
                }
            }
        }

        fn signal(&self, signal: libc::c_int) {
            let pid = self.process.id().try_into().expect("a process id");
            // SAFETY: has no precondition; the process is our child, not yet waited for.
            unsafe { libc::kill(pid, signal) };
        }

        /// Stops it, and waits until it has stopped.
        fn pause(&self) {
            self.signal(libc::SIGSTOP);
            let stat = format!("/proc/{}/stat", self.process.id());
            while !fs::read_to_string(&stat).expect("it runs").contains(") T ") {
                thread::sleep(Duration::from_millis(1));
            }
        }

        fn resume(&self) {
            self.signal(libc::SIGCONT);
        }

        fn kill(mut self) {
            self.signal(libc::SIGKILL);
            let status = self.process.wait().expect("it ends");
            assert_eq!(status.code(), None, "it ended before it was killed: {status}");
        }

        /// Makes it end, with a release.
        fn end(mut self) {
            self.input = None;
            self.finish();
        }

        /// Waits until it has ended by itself.
        fn finish(&mut self) {
            assert!(self.process.wait().expect("it ends").success(), "it failed");
        }
    }

    /// No process outlives a failing test.
    impl Drop for Holder {
        fn drop(&mut self) {
            let _gone = self.process.kill();
            let _reaped = self.process.wait();
        }
    }

    /// Some holders on one file.
    struct Trial {
        scratch: Scratch,
        path: PathBuf,
        max_node_id: u32,
        /// The layout of the holders' snowflakes; `None` for Randflake.
        snowflake: Option<Layout>,
        lives: AtomicU32,
    }

    impl Trial {
        fn new(node_ids: u32) -> Self {
            let scratch = Scratch::new();
            let path = scratch.path("ids.db");
            Self::on(scratch, path, node_ids, None)
        }

        fn of_snowflakes(node_ids: u32) -> Self {
            let scratch = Scratch::new();
            let path = scratch.path("ids.db");
            Self::on(scratch, path, node_ids, Some(divided_ticks()))
        }

        fn on(scratch: Scratch, path: PathBuf, node_ids: u32, snowflake: Option<Layout>) -> Self {
            let (max_node_id, lives) = (node_ids - 1, AtomicU32::new(0));
            let trial = Self { scratch, path, max_node_id, snowflake, lives };
            trial.prepare(&trial.path);
            trial
        }

        /// Makes a file that records the history of its leases.
        fn prepare(&self, path: &Path) {
            Oracle::prepare(path, self.namespace());
        }

        fn namespace(&self) -> Namespace {
            let namespace = match self.snowflake {
                None => Namespace::new("default", &secret()),
                Some(layout) => Namespace::for_layout("default", layout),
            };
            namespace
                .and_then(|namespace| namespace.max_skew(0))
                .and_then(|namespace| namespace.node_ids(NodeRanges::up_to(self.max_node_id)))
                .expect("within the limits")
        }

        fn command(&self, role: &str) -> Command {
            let life = self.lives.fetch_add(1, Ordering::Relaxed);
            let logs = self.scratch.path("logs");
            fs::create_dir_all(&logs).expect("a directory");
            let mut command = Command::new(env::current_exe().expect("this program"));
            command
                .env("ROLE", role)
                .env("STORE", &self.path)
                .env("LOG", logs.join(life.to_string()))
                .env("MAX_NODE_ID", self.max_node_id.to_string())
                .env("TTL", TTL.to_string())
                .env("MAX_DRIFT", (life % 2).to_string())
                .env("ACQUIRE_TIMEOUT", "60")
                .env("ROUNDS", u32::MAX.to_string())
                .env("STORE_CLOCK_BEHIND", "0")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            if self.snowflake.is_some() {
                command.env("SNOWFLAKE", "");
            }
            command
        }

        fn start(&self) -> Holder {
            Self::run(&mut self.command("hold"))
        }

        fn run(command: &mut Command) -> Holder {
            let mut process = command.spawn().expect("another process");
            let input = process.stdin.take();
            let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
            let (sender, said) = mpsc::channel();
            // Ends with the process.
            thread::spawn(move || {
                lines.map_while(Result::ok).try_for_each(|line| sender.send(Said::of(&line)))
            });
            Holder { process, said, input }
        }

        fn verdict(&self) -> Verdict {
            self.verdict_by(&self.path)
        }

        /// Fails if anything is wrong with the ids made with a file's leases.
        fn verdict_by(&self, file: &Path) -> Verdict {
            self.judged(Oracle::of(file))
        }

        /// Judges two files as if one had granted all their leases.
        fn verdict_by_both(&self, file: &Path, other: &Path) -> Verdict {
            let other = Oracle::of(other);
            self.judged(Oracle::of(file).and_then(|oracle| oracle.with(other?)))
        }

        fn judged(&self, oracle: Result<Oracle, String>) -> Verdict {
            let logs = self.scratch.path("logs");
            let of = self.snowflake;
            let verdict = oracle.and_then(|oracle| oracle.judge(&logs, of));
            let verdict = verdict.unwrap_or_else(|wrong| panic!("{wrong}"));
            println!("    {verdict}");
            verdict
        }
    }

    fn the_oracle_finds_what_is_wrong() {
        type Log = &'static [u64];
        // Logs with the sequences of a second, counted from a lease's start, and what is wrong with
        // them.
        let cases: [(&[Log], i64, Option<&str>); 5] = [
            (&[&[0, 1, 2]], 0, None),
            (&[&[0, 1, 1]], 0, Some("was made twice")),
            (&[&[0], &[1]], 0, Some("have both used")),
            (&[&[0]], -1, Some("has no lease")),
            (&[&[0]], 300, Some("has no lease")),
        ];
        let inspector = Inspector::new(&secret());
        for (logs, second, wrong) in cases {
            let trial = Trial::new(1);
            let mut store = SqliteStore::new(&trial.path, trial.namespace()).expect("a path");
            let now = SystemClock.now().expect("a clock") / SECOND;
            let lease = granted(&mut store, Token::random(), now);
            let stamp = u64::try_from(lease.start + second - layout::EPOCH).expect("not before");
            fs::create_dir(trial.scratch.path("logs")).expect("a directory");
            for (number, log) in logs.iter().enumerate() {
                let id = |sequence: &u64| i64::from(inspector.encrypt(stamp << 34 | sequence));
                let ids: Vec<u8> = log.iter().flat_map(|s| id(s).to_le_bytes()).collect();
                let log = trial.scratch.path("logs").join(number.to_string());
                fs::write(log, ids).expect("a log");
            }
            let judged = Oracle::of(&trial.path).and_then(|oracle| {
                let verdict = oracle.judge(&trial.scratch.path("logs"), None)?;
                assert_eq!((verdict.lives, verdict.leases, verdict.ids), (1, 1, 3));
                Ok(())
            });
            let found = judged.err();
            let expected = match (&found, wrong) {
                (Some(found), Some(wrong)) => found.contains(wrong),
                (found, wrong) => found.is_none() && wrong.is_none(),
            };
            assert!(expected, "{logs:?} at {second}: {found:?} instead of {wrong:?}");

            // Another lease of the same seconds.
            rusqlite::Connection::open(&trial.path)
                .and_then(|file| file.execute("update node set token = zeroblob(16)", []))
                .expect("a SQLite file");
            let found = Oracle::of(&trial.path).err().expect("two leases of the same seconds");
            assert!(found.contains("seconds in common"), "{found}");
        }
    }

    // Killed.

    fn a_killed_holder_keeps_the_only_node_id() {
        let trial = Trial::new(1);
        let mut ends = Vec::new();
        for _ in 0..4 {
            let holder = trial.start();
            ends.push(holder.until("an id", Said::made).end_exclusive);
            holder.kill();
        }
        assert!(ends.is_sorted_by(|one, next| next - one >= TTL.into()), "each waits: {ends:?}");
        let verdict = trial.verdict();
        assert_eq!((verdict.lives, verdict.leases), (4, 4), "{verdict:?}");
    }

    fn killed_holders_are_back_at_once() {
        const HOLDERS: usize = 3;
        let trial = Trial::new(131_072);
        let mut killed = Vec::new();
        for round in 0..6 {
            let holders: Vec<_> = (0..HOLDERS).map(|_| trial.start()).collect();
            for holder in &holders {
                killed.push(holder.until("an id", Said::made).node_id);
            }
            thread::sleep(Duration::from_millis(150 * (round % 3))); // into a renewal
            holders.into_iter().for_each(Holder::kill);
        }
        let verdict = trial.verdict();
        assert_eq!(verdict.lives, killed.len(), "{verdict:?}");
        killed.sort_unstable();
        killed.dedup();
        assert!(killed.len() > HOLDERS, "no process waits for the node id of a killed one");
    }

    // Stopped.

    fn one_that_sleeps_past_its_end_stops() {
        let trial = Trial::new(1);
        let sleeper = trial.start();
        sleeper.until("an id", Said::made);
        sleeper.pause();
        let other = trial.start();
        other.until("an id, with the node id of the one that sleeps", Said::made);
        sleeper.resume();
        sleeper.until("a refusal", |said| {
            said.outcome == "LEASE_UNAVAILABLE" && said.error.starts_with("NODES_EXHAUSTED")
        });
        other.end();
        sleeper.until("an id under a new lease", Said::holds);
        sleeper.end();
        let verdict = trial.verdict();
        assert!((verdict.lives, verdict.leases) >= (2, 3), "{verdict:?}");
    }

    fn one_that_sleeps_past_its_end_moves() {
        let trial = Trial::new(2);
        let sleeper = trial.start();
        let first = sleeper.until("an id", Said::made).node_id;
        sleeper.pause();
        // The first of them takes the other node id, or both wait for the sleeper's.
        let (one, next) = (trial.start(), trial.start());
        let node_ids = [&one, &next].map(|holder| holder.until("an id", Said::made).node_id);
        let (taker, other) = if node_ids[0] == first { (one, next) } else { (next, one) };
        other.end();
        sleeper.resume();
        sleeper.until("an id with another node id", |said| said.holds() && said.node_id != first);
        for holder in [taker, sleeper] {
            holder.end();
        }
        let verdict = trial.verdict();
        assert!((verdict.lives, verdict.leases) >= (3, 4), "{verdict:?}");
    }

    // The clock.

    /// Says that something is not tested here, which is a failure in CI.
    fn skip(test: &str, why: &str) {
        assert!(env::var("CI").as_deref() != Ok("true"), "{test}: {why}");
        println!("NOT TESTED: {test}: {why}");
    }

    fn faketime() -> Option<PathBuf> {
        let directories =
            ["/usr/lib", "/usr/lib64", "/usr/local/lib"].into_iter().map(PathBuf::from);
        let multiarch = format!("/usr/lib/{}-linux-gnu", env::consts::ARCH);
        directories
            .chain([multiarch.into()])
            .map(|directory| directory.join("faketime/libfaketime.so.1"))
            .find(|library| library.exists())
    }

    fn steps_of_the_clock_repeat_nothing() {
        let Some(library) = faketime() else {
            let why = "libfaketime is missing (apt-get install faketime)";
            return skip("steps of the clock", why);
        };
        let trial = Trial::new(8);
        let dial = trial.scratch.path("step");
        let set = |step: &str| {
            let next = trial.scratch.path("next step");
            fs::write(&next, step).and_then(|()| fs::rename(next, &dial)).expect("a file");
        };
        set("+0");
        let stepping = || {
            let mut command = trial.command("hold");
            command
                .env("LD_PRELOAD", &library)
                .env("FAKETIME_TIMESTAMP_FILE", &dial)
                .env("FAKETIME_NO_CACHE", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("MAX_DRIFT", "0");
            Trial::run(&mut command)
        };
        let (steady, holder) = (trial.start(), stepping());
        let before = holder.until("an id", Said::holds).end_exclusive;
        steady.until("an id", Said::holds);

        set("+15"); // its lease has ended
        let after =
            holder.until("another lease", |said| said.holds() && said.end_exclusive > before + 9);
        assert_eq!(after.error, "", "the step, until there is another lease");
        set("+3"); // those seconds have ids
        holder.until("a refusal", |said| {
            ["CLOCK_MOVED_BACK", "LEASE_NOT_STARTED"].contains(&said.outcome.as_str())
        });
        set("+30");
        holder.until("ids again", |said| said.holds() && said.end_exclusive > after.end_exclusive);
        // Killed in the future, and restarted in the present.
        holder.kill();
        set("+0");
        let holder = stepping();
        holder.until("an id", Said::holds);
        for holder in [holder, steady] {
            holder.end();
        }
        let verdict = trial.verdict();
        assert!(verdict.leases >= 5, "{verdict:?}");
    }

    fn a_clock_that_is_off_is_reported() {
        for behind in [-3600, 3600] {
            let trial = Trial::new(8);
            let start = |behind: i64, timeout: &str| {
                let mut command = trial.command("hold");
                command.env("STORE_CLOCK_BEHIND", behind.to_string());
                Trial::run(command.env("ACQUIRE_TIMEOUT", timeout))
            };
            let right = start(0, "60");
            right.until("an id", Said::holds);
            let mut off = start(behind, "1");
            let refusal = off.until("a refusal", |said| said.outcome == "CLOCK_SKEW");
            assert!(refusal.error.contains("and the store's"), "{refusal:?}");
            off.finish();
            right.end();
            assert_eq!(trial.verdict().lives, 1);
        }
    }

    // Forked.

    fn forks_lease_again() {
        forks_lease(&Trial::new(131_072));
    }

    fn forked_snowflakes_lease_again() {
        forks_lease(&Trial::of_snowflakes(1 << 16));
    }

    fn forks_lease(trial: &Trial) {
        let mut forking = trial.command("fork").stdout(Stdio::null()).spawn().expect("a process");
        assert!(forking.wait().expect("it ends").success());
        let verdict = trial.verdict();
        // One generator is kept, and each round makes one, forks, and makes one in the child.
        assert_eq!(verdict.lives, 1 + 2 * FORKS as usize, "{verdict:?}");
        assert!(verdict.leases >= verdict.lives, "{verdict:?}");
        assert!(verdict.renewals >= 3, "{verdict:?}");
    }

    const FORKS: u32 = 40;

    /// The notifications that this process got since its first lease: a digit for each change.
    static TOLD: AtomicU32 = AtomicU32::new(0);

    fn note(status: &LeaseStatus) {
        let digit = match status.state {
            State::Holding => 1,
            State::Stopped => 2,
            _ => 9,
        };
        let add = |told: u32| Some(told * 10 + digit);
        let _ = TOLD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    fn until_told(expected: u32) {
        let began = Instant::now();
        while TOLD.load(Ordering::Relaxed) != expected {
            assert!(began.elapsed() < PATIENCE, "{}", TOLD.load(Ordering::Relaxed));
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn hold_and_fork<F: LeasedFormat<Id: Logged>>(generator: impl Fn() -> LeasedBuilder<F>) {
        let kept = generator().max_wait(PATIENCE).open().expect("a lease");
        let mut log_of_kept = log(0);
        for round in 1..=FORKS {
            // Gets no notification between its first lease and its end.
            let builder = generator().ttl(30).on_lease_change(note);
            // A child takes out its copy in order to drop it.
            let mut copy = Some(builder.open().expect("a lease"));
            until_told(1);
            let mut log_of_parent = log(round);
            make(copy.as_ref().expect("there"), &mut log_of_parent).expect("ids");
            in_child(libc_fork, || {
                TOLD.store(0, Ordering::Relaxed);
                let flake = copy.as_ref().expect("there");
                assert_eq!(flake.metrics().store_requests, 0, "those before were the parent's");
                make(flake, &mut log(round)).expect("ids of a lease of its own");
                until_told(1);
                let metrics = flake.metrics();
                let for_a_lease = metrics.waits.last().expect("the kind that leases add");
                assert_eq!(*for_a_lease, (ErrorKind::LeaseUnavailable, 1));
                assert!(metrics.ids_generated > 0 && metrics.store_requests > 0, "{metrics:?}");
                match round % 3 {
                    0 => flake.close(),
                    1 => drop(copy.take()),
                    _ => return, // ends silently
                }
                until_told(12);
            });
            assert_eq!(TOLD.load(Ordering::Relaxed), 1, "nothing of the child's");
            let flake = copy.expect("there");
            make(&flake, &mut log_of_parent).expect("the parent goes on");
            make(&kept, &mut log_of_kept).expect("and so does the other one");
            let began = Instant::now();
            if round % 2 == 0 {
                flake.close();
            }
            drop(flake);
            // A close returns after its notification, or once it has waited for 5 s.
            if began.elapsed() < Duration::from_secs(5) {
                assert_eq!(TOLD.load(Ordering::Relaxed), 12);
            }
            until_told(12);
            TOLD.store(0, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(100));
        }
        let status = kept.lease().expect("open");
        assert!(status.renewals > 0 && status.losses == 0, "{status:?}");
    }

    fn workers_of_a_lazy_master_lease_each() {
        workers_lease_each(&Trial::new(131_072));
    }

    fn workers_of_a_lazy_snowflake_lease_each() {
        workers_lease_each(&Trial::of_snowflakes(1 << 16));
    }

    fn workers_lease_each(trial: &Trial) {
        let mut master = trial.command("prefork");
        // Longer than the master needs for its children.
        master.env("TTL", "30").stdout(Stdio::null());
        let mut master = master.spawn().expect("a process");
        assert!(master.wait().expect("it ends").success());
        let verdict = trial.verdict();
        // The master, and those forked before, during and after its first lease.
        assert_eq!(verdict.lives, MASTERS as usize * (3 + WORKERS as usize), "{verdict:?}");
    }

    const MASTERS: u32 = 10;
    const WORKERS: u32 = 4;

    pub(crate) fn lazy_master() {
        with_generator!(fork_around_the_first_lease);
    }

    /// Forks before, during and after the first lease of a lazy generator.
    fn fork_around_the_first_lease<F: LeasedFormat<Id: Logged>>(
        generator: impl Fn() -> LeasedBuilder<F>,
    ) {
        let mut logs = 0;
        let mut next_log = || {
            logs += 1;
            log(logs)
        };
        for _ in 0..MASTERS {
            let flake = generator().open_lazily().expect("valid");
            let (mut log_of_master, mut log_of_child) = (next_log(), next_log());
            in_child(libc_fork, || {
                // Two threads at once ask for the first id.
                let ids = thread::scope(|scope| {
                    let threads = [(); 2].map(|()| scope.spawn(|| flake.generate()));
                    threads.map(|thread| thread.join().expect("ends").expect("an id"))
                });
                log_of_child.write_all(ids.map(Logged::bytes).as_flattened()).expect("taken");
                make(&flake, &mut log_of_child).expect("ids");
                flake.close();
            });
            assert!(flake.lease().is_none(), "the master has none");
            thread::scope(|scope| {
                let first = scope.spawn(|| make(&flake, &mut log_of_master));
                for _ in 0..WORKERS {
                    let mut log = next_log();
                    in_child(libc_fork, || make(&flake, &mut log).expect("ids"));
                }
                first.join().expect("ends").expect("ids");
            });
            let mut log = next_log();
            in_child(libc_fork, || make(&flake, &mut log).expect("ids"));
            make(&flake, &mut log_of_master).expect("the master goes on");
        }
    }

    fn a_fork_in_a_first_lease_makes_two() {
        let trial = Trial::new(2);
        let run = |answer: &str, interruptible: &str| {
            let mut command = trial.command("interrupted");
            command.env("ANSWER", answer).env("INTERRUPTIBLE", interruptible);
            assert!(command.spawn().expect("a process").wait().expect("it ends").success());
        };
        run("foreign", "0");
        run("none", "0");
        run("foreign", "1");
        run("none", "1");
        run("granted", "1");
        let verdict = trial.verdict();
        assert_eq!((verdict.lives, verdict.leases), (10, 10), "{verdict:?}");
    }

    /// A clock whose first sleep forks, as a signal handler may: both processes continue in it.
    struct ForksAsleep;

    /// The first sleep has begun.
    static SLEEPS: AtomicBool = AtomicBool::new(false);
    /// The store has answered in that sleep.
    static ANSWERED: AtomicBool = AtomicBool::new(false);

    /// The child of `ForksAsleep`; -1 before it sleeps.
    static CHILD: AtomicI32 = AtomicI32::new(-1);

    impl Clock for ForksAsleep {
        fn now(&self) -> Result<i64> {
            SystemClock.now()
        }

        fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
            if CHILD.load(Ordering::Relaxed) == -1 {
                SLEEPS.store(true, Ordering::Relaxed);
                if env::var("ANSWER").is_ok_and(|answer| answer == "granted") {
                    until(&ANSWERED);
                    // Now the lease is on its way to this thread.
                    thread::sleep(Duration::from_millis(50));
                }
                CHILD.store(libc_fork(), Ordering::Relaxed);
            }
            SystemClock.sleep(duration)
        }
    }

    fn until(flag: &AtomicBool) {
        while !flag.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// A store whose first answer in the parent is missing, or answers another request, or comes
    /// while the caller sleeps.
    struct FirstInVain(SqliteStore);

    impl LeaseStore for FirstInVain {
        fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
            if CHILD.load(Ordering::Relaxed) != -1 {
                return self.0.acquire(request);
            }
            match &*variable("ANSWER") {
                "none" => return Err(Error::new(ErrorKind::StoreUnavailable, "not yet")),
                "granted" => {
                    until(&SLEEPS);
                    let granted = self.0.acquire(request);
                    ANSWERED.store(true, Ordering::Relaxed);
                    return granted;
                }
                _ => {}
            }
            let other = Acquire { token: Token::random(), ..request.clone() };
            Ok(other.reply(Acquired::Busy { now: request.client_now, free_at: None }))
        }

        fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
            self.0.renew(request)
        }

        fn release(&mut self, request: &Release) -> Result<Reply<Released>> {
            self.0.release(request)
        }

        fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>> {
            self.0.fence(request)
        }

        fn list(&mut self, request: &List) -> Result<Reply<Listed>> {
            self.0.list(request)
        }

        fn repair(&mut self, request: &Repair) -> Result<Reply<Shortened>> {
            self.0.repair(request)
        }

        fn release_dead(&mut self, request: &ReleaseDead) -> Result<Reply<Shortened>> {
            self.0.release_dead(request)
        }
    }

    pub(crate) fn forked_in_its_first_lease() {
        let location = Location::new(|namespace| {
            let store =
                SqliteStore::new(variable("STORE"), namespace.node_ids(NodeRanges::up_to(1))?)?;
            Ok(Box::new(FirstInVain(store)))
        });
        // Long enough that a slow machine gets an id before it ends.
        let builder = configured(Leased::builder(location, &secret())).ttl(60);
        let mut flake = builder.clock(ForksAsleep);
        if number::<u32>("INTERRUPTIBLE") == 1 {
            flake = flake.interruptible();
        }
        let flake = flake.open_lazily().expect("valid");
        let first = flake.generate().expect("an id of a lease of its own");
        log(0).write_all(&first.bytes()).expect("the log takes it");
        flake.close();
        wait_for_child();
    }

    /// In the parent, waits for the child of `ForksAsleep`. Returns whether this is the parent.
    fn wait_for_child() -> bool {
        let child = CHILD.load(Ordering::Relaxed);
        if child > 0 {
            let mut status = 0;
            // SAFETY: the status is writable.
            let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!((ended, status), (child, 0), "the child failed");
        }
        child > 0
    }

    fn a_fork_in_a_batch_repeats_no_number() {
        let trial = Trial::new(1);
        let mut parent = trial.command("batch").spawn().expect("a process");
        assert!(parent.wait().expect("it ends").success());
    }

    /// A signal handler forks while a batch waits for its second block: both processes continue to
    /// fill it.
    pub(crate) fn forked_in_a_batch() {
        let path = PathBuf::from(variable("STORE")).with_extension("tickets");
        // The first block is drawn in advance, so that the first sleep is in the batch.
        let drawn = Tickets::builder(&*path, "invoices").create(true).min_block(1).max_block(1);
        let drawn = drawn.max_wait(PATIENCE).acquire_timeout(PATIENCE);
        let invoices = drawn.clock(ForksAsleep).open_lazily().expect("valid");
        while invoices.generate_with(Wait::Never).is_err() {
            thread::yield_now();
        }
        while invoices.metrics().reserve == 0 {
            let _the_next_block = invoices.ready_in().expect("it is open");
        }
        let mut numbers = [0; 20];
        invoices.fill(&mut numbers).expect("numbers");
        let log = path.with_extension("child");
        let text = |numbers: &[u64]| format!("{numbers:?}");
        if CHILD.load(Ordering::Relaxed) == 0 {
            fs::write(&log, text(&numbers)).expect("the child tells");
        }
        if wait_for_child() {
            let of_child = fs::read_to_string(&log).expect("the child told");
            let of_child = of_child.trim_matches(['[', ']']).split(", ");
            let of_child: Vec<u64> = of_child.map(|text| text.parse().expect("a number")).collect();
            assert_eq!(of_child.len(), numbers.len());
            assert!(!of_child.iter().any(|number| numbers.contains(number)), "{of_child:?}");
            assert!(numbers.is_sorted() && of_child.is_sorted(), "{numbers:?}");
        }
        invoices.close();
    }

    fn a_child_leaves_its_parents_lease_alone() {
        let trial = Trial::new(1);
        let mut parent = trial.command("leave");
        parent.env("ACQUIRE_TIMEOUT", "1").stdout(Stdio::null());
        let mut parent = parent.spawn().expect("a process");
        assert!(parent.wait().expect("it ends").success());
        let verdict = trial.verdict();
        assert_eq!((verdict.lives, verdict.leases), (1, 1), "{verdict:?}");
    }

    pub(crate) fn holder_whose_child_leaves() {
        // On a busy machine, what a child asks may wait: as if its clock were wrong by as much.
        let builder = configured(Leased::builder(location(), &secret())).ttl(300).max_skew(50);
        // A child takes out its copy in order to drop it.
        let mut copy = Some(builder.open().expect("a lease"));
        let mut log = log(0);
        for round in 0..20 {
            make(copy.as_ref().expect("there"), &mut log).expect("ids");
            in_child(libc_fork, || {
                let flake = copy.as_ref().expect("there");
                let is_refused = || {
                    // The only node id is its parent's.
                    let refused = flake.generate().expect_err("none is free");
                    assert_eq!(refused.code(), "LEASE_UNAVAILABLE");
                    assert_eq!(refused.cause().map(Error::code), Some("NODES_EXHAUSTED"));
                    let retry_after = refused.retry_after().expect("waiting helps");
                    assert!(!retry_after.is_zero() && retry_after <= Duration::from_secs(5));
                };
                match round % 5 {
                    0 => flake.close(),
                    1 => flake.stop(),
                    2 => drop(copy.take()),
                    3 => {
                        PANICS.store(true, Ordering::Relaxed);
                        catch_unwind(AssertUnwindSafe(|| flake.generate())).expect_err("a panic");
                        PANICS.store(false, Ordering::Relaxed);
                        is_refused(); // but it is asked again
                    }
                    _ => is_refused(),
                }
            });
        }
        let flake = copy.expect("there");
        make(&flake, &mut log).expect("ids");
        assert_eq!(flake.lease().expect("open").losses, 0);
    }

    // Restarted, all at once.

    fn a_storm_of_restarts_shares_few_node_ids() {
        storm(&Trial::new(16), 64);
    }

    /// No holder begins in the rest of a second in which another one has ended.
    fn snowflakes_share_few_node_ids() {
        storm(&Trial::of_snowflakes(4), 12);
    }

    fn storm(trial: &Trial, processes: usize) {
        let start = || {
            let mut command = trial.command("hold");
            command.env("ROUNDS", "5").env("MAX_DRIFT", "0");
            // Each makes its ids before its lease ends, also on a busy machine.
            command.env("TTL", "60").env("ACQUIRE_TIMEOUT", "120");
            Trial::run(&mut command)
        };
        let mut storm: Vec<_> = (0..processes).map(|_| start()).collect();
        let outcomes = storm.iter().map(|holder| {
            holder.until("ids, or a reason", |said| said.made() || said.state == "none").outcome
        });
        let refused = outcomes.filter(|outcome| outcome != "made").collect::<Vec<_>>();
        storm.iter_mut().for_each(Holder::finish);
        let verdict = trial.verdict();
        println!("    {} of {processes} were refused", refused.len());
        let passes = ["NODES_EXHAUSTED", "CLOCK_SKEW", "STORE_UNAVAILABLE"];
        assert!(refused.iter().all(|outcome| passes.contains(&outcome.as_str())), "{refused:?}");
        assert_eq!(verdict.lives, processes - refused.len(), "{verdict:?}");
        let node_ids = trial.max_node_id as usize + 1;
        assert!(verdict.lives > node_ids, "node ids go from hand to hand: {verdict:?}");
    }

    // The file.

    /// Runs a holder until it notices that its file was tampered with. It is stopped for that, so
    /// that no renewal is lost.
    fn tampered(trial: &Trial, tamper: impl FnOnce()) -> Holder {
        let holder = trial.start();
        holder.until("an id", Said::holds);
        holder.pause();
        tamper();
        holder.resume();
        holder.until("what happened", |said| said.error.starts_with("STORE_REPLACED"));
        holder
    }

    fn a_removed_file_is_made_again_in_quarantine() {
        let trial = Trial::new(1);
        let aside = trial.scratch.path("another name");
        let holder = tampered(&trial, || {
            fs::hard_link(&trial.path, &aside).expect("a second name");
            fs::remove_file(&trial.path).expect("the first one is gone");
        });
        holder.until("a file in quarantine", |said| {
            said.outcome == "LEASE_UNAVAILABLE" && said.error.starts_with("STORE_QUARANTINED")
        });
        assert!(trial.path.exists());
        holder.end();
        let verdict = trial.verdict_by(&aside);
        assert_eq!((verdict.lives, verdict.leases), (1, 1), "{verdict:?}");
    }

    fn a_replaced_file_is_leased_from_once_the_lease_is_over() {
        let trial = Trial::new(1);
        let (aside, other) = (trial.scratch.path("aside.db"), trial.scratch.path("other.db"));
        trial.prepare(&other);
        let holder = tampered(&trial, || {
            fs::rename(&trial.path, &aside).expect("moved aside");
            fs::rename(&other, &trial.path).expect("another one in its place");
        });
        holder.until("another lease", Said::holds);
        holder.end();
        let verdict = trial.verdict_by_both(&aside, &trial.path);
        assert_eq!((verdict.lives, verdict.leases), (1, 2), "{verdict:?}");
    }

    fn a_copied_file_ends_the_lease() {
        let trial = Trial::new(1);
        let copy = trial.scratch.path("copy.db");
        let holder = tampered(&trial, || {
            fs::copy(&trial.path, &copy).expect("a copy");
            fs::rename(&copy, &trial.path).expect("in its place");
        });
        // The copy knows the lease, so the next one begins after it.
        let next = trial.start();
        // From then on it would lease from the copy, too, and may already have done so.
        holder.until("the end of its lease", |said| !said.made() || said.holds());
        holder.kill();
        next.until("an id", Said::holds);
        next.end();
        let verdict = trial.verdict();
        assert_eq!(verdict.lives, 2, "{verdict:?}");
        assert!((2..=3).contains(&verdict.leases), "{verdict:?}");
    }

    /// A separate small disk.
    struct Disk(PathBuf);

    impl Disk {
        fn mount(at: PathBuf) -> Option<Self> {
            fs::create_dir(&at).expect("a directory");
            let mounted = Self::mount_with(&["-t", "tmpfs", "-o", "size=128k", "tmpfs"], &at);
            mounted.then(|| Self(at))
        }

        fn mount_with(options: &[&str], at: &Path) -> bool {
            let mut mount = Command::new("mount");
            let mount = mount.args(options).arg(at).stderr(Stdio::null());
            mount.status().is_ok_and(|status| status.success())
        }

        fn make(&self, access: &str) {
            let options = format!("remount,{access}");
            // Refused while a process has a file open for writing, as holders do briefly.
            let deadline = Instant::now() + PATIENCE;
            while !Self::mount_with(&["-o", &options], &self.0) {
                assert!(Instant::now() < deadline, "no {options}");
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    impl Drop for Disk {
        fn drop(&mut self) {
            let _left_behind = Command::new("umount").arg("--lazy").arg(&self.0).status();
        }
    }

    /// Runs a holder on a small disk through a period in which the disk cannot be written.
    fn outlived(what: &str, reason: &str, break_it: impl Fn(&Disk), mend: impl Fn(&Disk)) {
        let scratch = Scratch::new();
        let Some(disk) = Disk::mount(scratch.path("disk")) else {
            // Other users run CI, too.
            println!("NOT TESTED: {what}: a small disk takes root to mount");
            return;
        };
        let path = disk.0.join("ids.db");
        let trial = Trial::on(scratch, path, 1, None);
        let holder = trial.start();
        holder.until("an id", Said::holds);
        break_it(&disk);
        holder.until("the reason", |said| {
            said.error.starts_with("STORE_UNAVAILABLE") && said.error.contains(reason)
        });
        holder.until("an end", |said| said.outcome == "LEASE_UNAVAILABLE");
        let mut refused = Trial::run(trial.command("hold").env("ACQUIRE_TIMEOUT", "0"));
        // A full disk may get room again; a write that is not permitted is refused at once.
        let codes = ["STORE_UNAVAILABLE", "INVALID_ARGUMENT"];
        let refusal = refused.until("a refusal", |said| codes.contains(&said.outcome.as_str()));
        assert!(refusal.error.contains(reason), "{refusal:?}");
        refused.finish();
        mend(&disk);
        holder.until("ids again, by itself", Said::holds);
        holder.end();
        let verdict = trial.verdict();
        assert_eq!(verdict.lives, 1, "{verdict:?}");
        let verdict: String = rusqlite::Connection::open(&trial.path)
            .and_then(|file| file.query_row("pragma integrity_check", [], |row| row.get(0)))
            .expect("a SQLite file");
        assert_eq!(verdict, "ok");
    }

    fn a_full_disk_loses_nothing() {
        let filler = |disk: &Disk| disk.0.join("filler");
        outlived(
            "a full disk",
            "the disk is full",
            |disk| {
                let mut file = File::create(filler(disk)).expect("a file");
                while file.write(&[7; 512]).is_ok_and(|written| written > 0) {}
            },
            |disk| fs::remove_file(filler(disk)).expect("it was there"),
        );
    }

    fn a_file_that_cannot_be_written() {
        outlived(
            "a disk that is read-only",
            "read-only",
            |disk| disk.make("ro"),
            |disk| disk.make("rw"),
        );
    }
}
