//! The soak's holder in Rust; see `soak.py`.
//!
//! `randflake-soak hold STORE LOG TTL NODE_COUNT` makes ids until SIGTERM, and forks at SIGUSR1. If
//! a node id and a port follow, it leases none, but uses that node id as soon as it can listen on
//! the port. `randflake-soak reserve STORE FREE` leases all but FREE node ids for a day.
//! `randflake-soak tickets STORE COUNTER LOG MAX_BLOCK PAUSE` draws numbers from a counter until
//! SIGTERM, with a pause of PAUSE milliseconds between batches, and forks at SIGUSR1; see
//! `tickets.py` and `drawers.py`.
#![allow(unsafe_code, reason = "signals and fork")]

use std::{
    env,
    error::Error,
    fs::File,
    io::{self, Write},
    mem,
    net::TcpListener,
    process,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use randflake::{
    Clock, ErrorKind, Field, Layout, Plain, Randflake, Result, Secret, SystemClock, layout,
};
use randflake_leases::{
    Acquire, Acquired, LeaseStore, Leased, Namespace, Note, Operation, SqliteStore, Token,
};
use randflake_tickets::{Tickets, TicketsBuilder};

const PAUSE: Duration = Duration::from_millis(50);

/// Temporary errors: a lease that has ended, a store that is busy.
const PASSES: [ErrorKind; 6] = [
    ErrorKind::LeaseUnavailable,
    ErrorKind::NodesExhausted,
    ErrorKind::StoreUnavailable,
    ErrorKind::StoreQuarantined,
    ErrorKind::ClockSkew,
    ErrorKind::SequenceExhausted,
];
/// Errors that pass once an operator has stopped this process and fenced the counter.
const FENCED: [ErrorKind; 2] = [ErrorKind::StoreQuarantined, ErrorKind::StoreReplaced];
/// Ids per batch.
const BATCH: usize = 1000;
/// Ids from single calls, on each of two threads. Afterwards the thread's buffer has some left.
const SINGLE: usize = 100;

static ENDING: AtomicBool = AtomicBool::new(false);
static FORKING: AtomicBool = AtomicBool::new(false);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let secret = env::var("RANDFLAKE_SECRET")?.parse()?;
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["hold", store, log, ttl, node_count] => {
            hear_signals();
            let (ttl, node_count) = (ttl.parse()?, node_count.parse()?);
            if store.contains("://") {
                let layout = few_nodes()?;
                return hold_at_last(log, || {
                    let flake = Leased::for_layout(*store, layout).max_skew(1);
                    flake.ttl(ttl).node_count(node_count).open()
                });
            }
            hold_at_last(log, || {
                let flake = Leased::builder(*store, &secret).max_skew(0);
                flake.ttl(ttl).node_count(node_count).open()
            })
        }
        ["hold", _, log, _, _, node_id, port] => {
            hear_signals();
            if !listens(port.parse()?) {
                return Ok(());
            }
            hold(&Randflake::new(node_id.parse()?, &secret)?, log)
        }
        ["reserve", store, free] => reserve(store, &secret, free.parse()?),
        ["tickets", store, name, log, max_block, pause] => {
            hear_signals();
            // A failed batch loses what it had.
            let patient = Duration::from_secs(60);
            let tickets = Tickets::builder(*store, *name).max_block(max_block.parse()?);
            let pause = Duration::from_millis(pause.parse()?);
            draw(&tickets.max_wait(patient).acquire_timeout(patient), log, pause)
        }
        other => Err(format!("there is no role {other:?}").into()),
    }
}

/// As in `stores.py`.
fn few_nodes() -> Result<Layout> {
    Layout::custom([(Field::Time, 41), (Field::Node, 5), (Field::Sequence, 17)])
        .tick_ms(1000)
        .epoch_ms(1_730_000_000_000)
        .build()
}

/// Listens on a port as soon as no other process does; false if this process is to end.
fn listens(port: u16) -> bool {
    while !ENDING.load(Ordering::Relaxed) {
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            // Only the system closes it, when this process ends.
            mem::forget(listener);
            return true;
        }
        thread::sleep(Duration::from_millis(1));
    }
    false
}

/// A generator of ids of any format.
trait Flake: Sync {
    fn one(&self) -> Result<i64>;
    fn many(&self, ids: &mut [i64]) -> Result<()>;
    fn close(&self);

    /// Many at once, and then one after another, on this thread and on one that ends.
    fn make(&self, ids: &mut [i64]) -> Result<()> {
        let (batch, singles) = ids.split_at_mut(BATCH);
        self.many(batch)?;
        let (here, there) = singles.split_at_mut(SINGLE);
        let fill = |ids: &mut [i64]| {
            for id in ids {
                *id = self.one()?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| fill(there));
            fill(here).and(other.join().expect("no panic"))
        })
    }
}

impl Flake for Randflake {
    fn one(&self) -> Result<i64> {
        self.generate().map(i64::from)
    }

    fn many(&self, ids: &mut [i64]) -> Result<()> {
        self.fill_i64(ids)
    }

    fn close(&self) {
        let _unused_from = Self::close(self);
    }
}

impl Flake for Leased {
    fn one(&self) -> Result<i64> {
        self.generate().map(i64::from)
    }

    fn many(&self, ids: &mut [i64]) -> Result<()> {
        self.fill_i64(ids)
    }

    fn close(&self) {
        Self::close(self);
    }
}

impl Flake for Leased<Plain> {
    fn one(&self) -> Result<i64> {
        self.generate().map(u64::cast_signed)
    }

    fn many(&self, ids: &mut [i64]) -> Result<()> {
        self.fill_i64(ids)
    }

    fn close(&self) {
        Self::close(self);
    }
}

/// Tries again until a generator is available.
fn hold_at_last<F: Flake>(log: &str, open: impl Fn() -> Result<F>) -> Result<(), Box<dyn Error>> {
    while !ENDING.load(Ordering::Relaxed) {
        match open() {
            Ok(flake) => return hold(&flake, log),
            Err(error) if PASSES.contains(&error.kind()) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Makes ids and logs them, each process in its own log; reports at the end that all went well.
fn hold(flake: &impl Flake, log: &str) -> Result<(), Box<dyn Error>> {
    let mut ids = [0; BATCH + 2 * SINGLE];
    let mut file = File::create_new(name(log, "ids"))?;
    while !ENDING.load(Ordering::Relaxed) {
        if FORKING.swap(false, Ordering::Relaxed) && is_child()? {
            file = File::create_new(name(log, "ids"))?;
        }
        match flake.make(&mut ids) {
            Ok(()) => {
                let bytes: Vec<u8> = ids.iter().copied().flat_map(i64::to_le_bytes).collect();
                file.write_all(&bytes)?;
            }
            Err(error) if PASSES.contains(&error.kind()) => {}
            Err(error) => return Err(error.into()),
        }
        thread::sleep(PAUSE);
    }
    flake.close();
    File::create_new(name(log, "end"))?;
    Ok(())
}

/// Draws numbers and logs them, each process in its own log: everything logged was handed out, and
/// at most one batch that was handed out is not logged.
fn draw(tickets: &TicketsBuilder, log: &str, pause: Duration) -> Result<(), Box<dyn Error>> {
    let mut numbers = [0; BATCH];
    let mut file = File::create_new(name(log, "numbers"))?;
    let tickets = tickets.clone().create(false).open_lazily()?;
    while !ENDING.load(Ordering::Relaxed) {
        if FORKING.swap(false, Ordering::Relaxed) && is_child()? {
            file = File::create_new(name(log, "numbers"))?;
        }
        let (batch, singles) = numbers.split_at_mut(BATCH - SINGLE);
        let made = tickets.fill(batch).and_then(|()| {
            singles.iter_mut().try_for_each(|number| {
                *number = tickets.generate()?;
                Ok(())
            })
        });
        match made {
            Ok(()) => {
                let bytes: Vec<u8> = numbers.iter().copied().flat_map(u64::to_le_bytes).collect();
                file.write_all(&bytes)?;
            }
            Err(error) if FENCED.contains(&error.kind()) => {
                File::create(name(log, "refused"))?;
            }
            Err(error) if PASSES.contains(&error.kind()) => {}
            Err(error) => return Err(error.into()),
        }
        thread::sleep(pause);
    }
    tickets.close();
    File::create_new(name(log, "end"))?;
    Ok(())
}

/// The name of a file of this process.
fn name(log: &str, kind: &str) -> String {
    format!("{log}.{}.{kind}", process::id())
}

fn hear_signals() {
    extern "C" fn hear(signal: libc::c_int) {
        let heard = if signal == libc::SIGTERM { &ENDING } else { &FORKING };
        heard.store(true, Ordering::Relaxed);
    }
    let hear = hear as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // This process does not wait for its children, so the system must forget them.
    for (signal, action) in
        [(libc::SIGTERM, hear), (libc::SIGUSR1, hear), (libc::SIGCHLD, libc::SIG_IGN)]
    {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, action) };
    }
}

/// Forks, and both processes continue.
fn is_child() -> io::Result<bool> {
    // SAFETY: the C library makes its allocator usable in the child of a process with threads, and
    // the lock of the leases is not held over a fork.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(child == 0),
    }
}

/// Leaves few node ids free, so that they change holders often.
fn reserve(store: &str, secret: &Secret, free: u32) -> Result<(), Box<dyn Error>> {
    const DAY: u32 = 86_400;
    let most = u32::try_from(layout::MAX_NODES)?;
    let namespace = Namespace::new("default", secret)?.max_ttl(DAY)?.max_skew(0)?;
    let mut store = SqliteStore::new(store, namespace)?;
    let mut wanted = layout::MAX_NODE_ID + 1 - free;
    while wanted > 0 {
        let (token, client_now) = (Token::random(), SystemClock.now()? / 1_000_000_000);
        let request = Acquire {
            token,
            want: wanted.min(most),
            ttl: DAY,
            client_now,
            note: Note::of_process(),
        };
        match store.acquire(&request)?.answer_to(token, Operation::Acquire)? {
            Acquired::Granted { leases, .. } => wanted -= u32::try_from(leases.len())?,
            Acquired::ClockSkew { .. } => {} // a second has passed meanwhile
            other => return Err(format!("node ids are free, yet: {other:?}").into()),
        }
    }
    Ok(())
}
