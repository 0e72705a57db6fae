//! Tickets in forked children, which draw their own blocks and never use what they inherited.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[path = "../../core/tests/common/child.rs"]
mod child;

#[cfg(target_os = "linux")]
#[path = "../../leases/tests/common/scratch.rs"]
mod scratch;

#[cfg(target_os = "linux")]
fn main() {
    // First, while the process has one thread.
    linux::workers_of_a_lazy_master_draw_blocks_of_their_own(child::raw_clone);
    linux::workers_of_a_lazy_master_draw_blocks_of_their_own(child::libc_fork);
    linux::parent_and_child_never_share_a_number();
    linux::a_child_gives_back_nothing_of_its_parent();
    linux::what_was_closed_is_closed_in_a_child();
    linux::a_fork_in_the_middle_of_a_draw();
    linux::a_fork_inside_max_wait();
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "fork")]
mod linux {
    use std::{
        collections::BTreeSet,
        io::{PipeReader, PipeWriter, Read, Write, pipe},
        path::{Path, PathBuf},
        process,
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering},
        },
        thread,
        time::Duration,
    };

    use randflake::{Clock, ErrorKind, Result, Wait};
    use randflake_leases::{LeaseStore, Location, Namespace, SqliteStore};
    use randflake_tickets::{Tickets, TicketsBuilder};

    use crate::{
        child::{Fork, in_child, libc_fork},
        scratch::Scratch,
    };

    const LONG: Duration = Duration::from_secs(600);

    fn tickets(path: &Path) -> TicketsBuilder {
        let builder = Tickets::builder(path, "orders").create(true).min_block(4);
        builder.max_wait(LONG).acquire_timeout(LONG)
    }

    fn numbers(tickets: &Tickets, count: usize) -> Vec<u64> {
        (0..count).map(|_| tickets.generate().expect("a number")).collect()
    }

    /// Numbers reported by children, each of which must occur once.
    struct Said {
        reader: PipeReader,
        writer: PipeWriter,
    }

    impl Said {
        fn new() -> Self {
            let (reader, writer) = pipe().expect("a pipe");
            Self { reader, writer }
        }

        fn say(&self, numbers: &[u64]) {
            for number in numbers {
                (&self.writer).write_all(&number.to_le_bytes()).expect("room in the pipe");
            }
        }

        fn all(mut self) -> Vec<u64> {
            drop(self.writer);
            let mut bytes = vec![];
            self.reader.read_to_end(&mut bytes).expect("no other writer");
            let numbers = bytes.as_chunks().0;
            numbers.iter().map(|number| u64::from_le_bytes(*number)).collect()
        }
    }

    /// Asserts that no number occurs twice, and returns how many there are.
    fn assert_once(numbers: impl IntoIterator<Item = u64>) -> usize {
        let mut once = BTreeSet::new();
        for number in numbers {
            assert!(once.insert(number), "{number} twice");
        }
        once.len()
    }

    pub(crate) fn workers_of_a_lazy_master_draw_blocks_of_their_own(fork: Fork) {
        let scratch = Scratch::new();
        let master = tickets(&scratch.path("ids.db")).open_lazily().expect("the options");
        let said = Said::new();
        for _ in 0..3 {
            in_child(fork, || {
                said.say(&numbers(&master, 30));
                // Only the libc fork, now that a thread draws: a store in a file respects no other
                // kind of fork.
                in_child(libc_fork, || said.say(&numbers(&master, 30)));
                said.say(&numbers(&master, 30));
                master.close();
            });
        }
        assert_eq!(master.metrics().blocks_drawn, 0);
        assert_eq!(assert_once(said.all()), 3 * 90);
    }

    pub(crate) fn parent_and_child_never_share_a_number() {
        let scratch = Scratch::new();
        let tickets = tickets(&scratch.path("ids.db")).min_block(100).open().expect("a block");
        let mut all = numbers(&tickets, 20);
        assert!(tickets.metrics().reserve >= 80, "a child inherits as many");
        let said = Said::new();
        for _ in 0..3 {
            in_child(libc_fork, || {
                assert_eq!(tickets.metrics().numbers_generated, 0);
                assert_eq!(
                    tickets.generate_with(Wait::Never).expect_err("no block").kind(),
                    ErrorKind::LeaseUnavailable
                );
                let mut batch = [0; 150];
                tickets.fill(&mut batch).expect("numbers");
                said.say(&batch);
                said.say(&numbers(&tickets, 50));
                in_child(libc_fork, || said.say(&numbers(&tickets, 50)));
            });
            all.extend(numbers(&tickets, 50));
        }
        all.extend(said.all());
        assert_eq!(assert_once(all), 20 + 3 * 300);
    }

    pub(crate) fn a_child_gives_back_nothing_of_its_parent() {
        let scratch = Scratch::new();
        let path = scratch.path("ids.db");
        let parent = tickets(&path).min_block(100).open().expect("a block");
        let mut all = numbers(&parent, 1);
        in_child(libc_fork, || parent.close());
        in_child(libc_fork, || {
            numbers(&parent, 1);
            parent.close();
        });
        let said = Said::new();
        in_child(libc_fork, || said.say(&numbers(&parent, 2)));
        // Another process gets everything that was given back so far.
        let other = tickets(&path).open().expect("a block");
        all.extend(numbers(&other, 300));
        all.extend(numbers(&parent, 99));
        all.extend(said.all());
        assert_eq!(assert_once(all), 402);
    }

    pub(crate) fn what_was_closed_is_closed_in_a_child() {
        let scratch = Scratch::new();
        let tickets = tickets(&scratch.path("ids.db")).open().expect("a block");
        in_child(libc_fork, || {
            tickets.close();
            assert_eq!(tickets.generate().expect_err("closed").kind(), ErrorKind::Closed);
        });
        assert_eq!(tickets.generate(), Ok(1), "not in the parent");
        tickets.close();
        in_child(libc_fork, || {
            assert_eq!(tickets.generate().expect_err("closed").kind(), ErrorKind::Closed);
            assert!(tickets.is_over());
        });
    }

    /// A store whose first process waits in each operation until it is told to continue.
    struct Gate {
        path: PathBuf,
        process: u32,
        closed: AtomicBool,
        waiting: AtomicU32,
    }

    pub(crate) fn a_fork_in_the_middle_of_a_draw() {
        let scratch = Scratch::new();
        let gate = Arc::new(Gate {
            path: scratch.path("ids.db"),
            process: process::id(),
            closed: AtomicBool::new(true),
            waiting: AtomicU32::new(0),
        });
        let location = Location::new({
            let gate = Arc::clone(&gate);
            move |namespace: Namespace| -> Result<Box<dyn LeaseStore>> {
                if process::id() == gate.process {
                    gate.waiting.fetch_add(1, Ordering::Relaxed);
                    while gate.closed.load(Ordering::Relaxed) {
                        thread::yield_now();
                    }
                }
                Ok(Box::new(SqliteStore::new(&gate.path, namespace)?))
            }
        });
        let tickets = Tickets::builder(location, "orders").max_wait(LONG).acquire_timeout(LONG);
        let tickets = tickets.open_lazily().expect("the options");
        let said = Said::new();
        let mut all = thread::scope(|threads| {
            let caller = threads.spawn(|| numbers(&tickets, 50));
            while gate.waiting.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            // The thread draws, and a call waits for it.
            in_child(libc_fork, || said.say(&numbers(&tickets, 50)));
            gate.closed.store(false, Ordering::Relaxed);
            caller.join().expect("no panic")
        });
        all.extend(said.all());
        assert_eq!(assert_once(all), 100);
    }

    static CHILD: AtomicI32 = AtomicI32::new(-1);

    /// A clock whose first sleep forks, like a signal handler in Python.
    struct ForkingClock;

    impl Clock for ForkingClock {
        fn now(&self) -> Result<i64> {
            unreachable!("no number depends on the time")
        }

        fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
            if CHILD.load(Ordering::Relaxed) < 0 {
                CHILD.store(libc_fork(), Ordering::Relaxed);
            }
            thread::sleep(duration);
            Ok(Some(duration))
        }
    }

    pub(crate) fn a_fork_inside_max_wait() {
        let scratch = Scratch::new();
        let tickets = tickets(&scratch.path("ids.db")).clock(ForkingClock);
        let tickets = tickets.open_lazily().expect("the options");
        let Said { mut reader, mut writer } = Said::new();
        let number = tickets.generate();
        let child = CHILD.load(Ordering::Relaxed);
        if child == 0 {
            let said = writer.write_all(&number.unwrap_or(0).to_le_bytes());
            // SAFETY: has no precondition. The rest of the process belongs to the parent.
            unsafe { libc::_exit(said.is_err().into()) }
        }
        assert!(child > 0, "it was forked in the call");
        drop(writer);
        let mut said = [0; 8];
        reader.read_exact(&mut said).expect("the child says its number");
        let (number, said) = (number.expect("a number"), u64::from_le_bytes(said));
        assert!(number > 0 && said > 0 && number != said, "{number} and {said}");
        // SAFETY: no status is asked for.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
        assert!(tickets.generate().is_ok());
    }
}
