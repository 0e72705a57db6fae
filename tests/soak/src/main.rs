//! The soak's holder in Rust; see `soak.py`.
//!
//! `randflake-soak hold STORE LOG TTL NODE_COUNT` makes ids until SIGTERM, and forks at SIGUSR1.
//! `randflake-soak reserve STORE FREE` leases all but FREE node ids for a day.
#![allow(unsafe_code, reason = "signals and fork")]

use std::{
    env,
    error::Error,
    fs::File,
    io::{self, Write},
    process,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use randflake::{Clock, ErrorKind, Id, Result, Secret, SystemClock, layout};
use randflake_leases::{
    Acquire, Acquired, LeaseStore, Leased, LeasedBuilder, Namespace, Note, Operation, SqliteStore,
    Token,
};

const PAUSE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(60);

/// What passes by itself: a lease that is over, a store that is busy.
const PASSES: [ErrorKind; 4] = [
    ErrorKind::LeaseUnavailable,
    ErrorKind::NodesExhausted,
    ErrorKind::StoreUnavailable,
    ErrorKind::ClockSkew,
];

static ENDING: AtomicBool = AtomicBool::new(false);
static FORKING: AtomicBool = AtomicBool::new(false);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let secret = env::var("RANDFLAKE_SECRET")?.parse()?;
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["hold", store, log, ttl, node_count] => {
            let flake = Leased::builder(*store, &secret)
                .max_skew(0)
                .ttl(ttl.parse()?)
                .node_count(node_count.parse()?)
                .acquire_timeout(PATIENCE);
            hold(flake, log)
        }
        ["reserve", store, free] => reserve(store, &secret, free.parse()?),
        other => Err(format!("there is no role {other:?}").into()),
    }
}

/// Makes ids and logs them, each process in a log of its own; says at last that all went well.
fn hold(flake: LeasedBuilder, log: &str) -> Result<(), Box<dyn Error>> {
    hear_signals();
    let flake = flake.open()?;
    let mut ids = [Id::default(); 101];
    let mut file = File::create_new(name(log, "ids"))?;
    while !ENDING.load(Ordering::Relaxed) {
        if FORKING.swap(false, Ordering::Relaxed) && is_child()? {
            file = File::create_new(name(log, "ids"))?;
        }
        match make(&flake, &mut ids) {
            Ok(()) => {
                let bytes: Vec<u8> =
                    ids.iter().flat_map(|id| i64::from(*id).to_le_bytes()).collect();
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

/// One by itself, and many at once.
fn make(flake: &Leased, ids: &mut [Id]) -> Result<()> {
    ids[0] = flake.generate()?;
    flake.fill(&mut ids[1..])
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
    // Nobody waits for children, so the system is told to forget them.
    for (signal, action) in
        [(libc::SIGTERM, hear), (libc::SIGUSR1, hear), (libc::SIGCHLD, libc::SIG_IGN)]
    {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, action) };
    }
}

/// Forks, and both go on.
fn is_child() -> io::Result<bool> {
    // SAFETY: the C library makes its allocator usable in the child of a process with threads, and
    // the lock of the leases is not held over a fork.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(child == 0),
    }
}

/// Leaves few node ids free, so that they go from hand to hand.
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
