//! A clock to set, a directory to leave behind, and a holder of leases.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use randflake::Secret;
use randflake_leases::{
    Acquire, Acquired, LeaseStore, Namespace, NodeLease, Note, Operation, Release, Renew, Renewed,
    Result, Token,
};

pub(crate) const SECOND: i64 = 1_000_000_000;
pub(crate) const START: i64 = 1_763_640_000;
pub(crate) const NOTE: &str = "a test";
pub(crate) const SECRET: &str = "dffd6021bb2bd5b0af676290809ec3a5";

/// A unix second that tests set.
#[derive(Clone, Debug)]
pub(crate) struct Dial(Arc<AtomicI64>);

impl Dial {
    pub(crate) fn new(second: i64) -> Self {
        Self(Arc::new(AtomicI64::new(second)))
    }

    pub(crate) fn now(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, second: i64) {
        self.0.store(second, Ordering::Relaxed);
    }

    pub(crate) fn pass(&self, seconds: u32) {
        self.0.fetch_add(seconds.into(), Ordering::Relaxed);
    }

    pub(crate) fn clock(&self) -> impl Fn() -> i64 + Send + Sync + 'static {
        let dial = self.clone();
        move || dial.now() * SECOND
    }
}

/// A directory that is gone after the test.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self::under(&std::env::temp_dir())
    }

    /// For a test that writes again and again, and would wait for the disk most of its time.
    pub(crate) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::under(memory) } else { Self::new() }
    }

    fn under(parent: &Path) -> Self {
        let directory = parent.join(format!("randflake-leases-{:?}", Token::random()));
        fs::create_dir(&directory).expect("a temporary directory");
        Self(directory)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Best effort: the test has said what it had to say.
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn secret() -> Secret {
    SECRET.parse().expect("a secret")
}

pub(crate) fn namespace(max_node_id: u32) -> Namespace {
    Namespace::new("orders", &secret())
        .and_then(|namespace| namespace.max_node_id(max_node_id))
        .expect("within the limits")
}

pub(crate) fn acquire(
    store: &mut dyn LeaseStore,
    token: Token,
    want: u32,
    now: i64,
) -> Result<Acquired> {
    let request = Acquire { token, want, ttl: 300, client_now: now, note: Note::new(NOTE) };
    store.acquire(&request)?.answer_to(token, Operation::Acquire)
}

/// Acquires one node id, and insists: on a busy machine a request may wait for the file longer
/// than clocks may differ, and is asked again.
pub(crate) fn granted(store: &mut dyn LeaseStore, token: Token, now: i64) -> NodeLease {
    let mut now = now;
    for _ in 0..10 {
        match acquire(store, token, 1, now) {
            Ok(Acquired::Granted { leases, .. }) => return leases[0],
            Ok(Acquired::ClockSkew { store_now, .. }) => now = store_now,
            other => panic!("a node id is free, yet: {other:?}"),
        }
    }
    panic!("each of ten requests waited longer than clocks may differ");
}

pub(crate) fn renew(
    store: &mut dyn LeaseStore,
    token: Token,
    node_id: u32,
    now: i64,
) -> Result<Renewed> {
    let request = Renew { token, node_ids: vec![node_id], ttl: 300, client_now: now };
    store.renew(&request)?.answer_to(token, Operation::Renew)
}

pub(crate) fn release(
    store: &mut dyn LeaseStore,
    token: Token,
    node_id: u32,
    used_until: i64,
) -> Result<u32> {
    let request = Release { token, node_ids: vec![node_id], used_until };
    let reply = store.release(&request)?;
    Ok(reply.answer_to(token, Operation::Release)?.count)
}

/// Fails if two may have stamped the same second with the same node id.
pub(crate) fn assert_disjoint(mut stamped: Vec<NodeLease>) {
    stamped.retain(|lease| lease.start < lease.end_exclusive);
    stamped.sort_unstable();
    for pair in stamped.windows(2) {
        let disjoint = pair[0].node_id != pair[1].node_id || pair[0].end_exclusive <= pair[1].start;
        assert!(disjoint, "two may stamp the same seconds: {pair:?}");
    }
}
