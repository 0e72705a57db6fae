//! The events of the feature `tracing`, collected by a subscriber.
#![allow(clippy::disallowed_methods, reason = "how long to wait for a thread")]

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use randflake::{Error, ErrorKind, Result, Secret};
use randflake_leases::{
    Acquire, Acquired, Fence, Fenced, LeaseStore, Leased, Location, MemoryStore, NodeRanges,
    Release, Released, Renew, Renewed, Reply,
    operator::{List, Listed, ReleaseDead, Repair, Shortened},
};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// The level, and the fields in order.
type Seen = (Level, Vec<(&'static str, String)>);

struct Collect(Arc<Mutex<Vec<Seen>>>);

impl Subscriber for Collect {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "randflake"
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        unreachable!("there are events only")
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(Vec::new());
        event.record(&mut fields);
        self.0.lock().expect("no panic").push((*event.metadata().level(), fields.0));
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

struct Fields(Vec<(&'static str, String)>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}

/// A store in memory that can be disconnected.
struct Flaky(MemoryStore, Arc<AtomicBool>);

impl Flaky {
    fn ask<T>(&mut self, ask: impl FnOnce(&mut MemoryStore) -> Result<T>) -> Result<T> {
        if self.1.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::StoreUnavailable, "disconnected"));
        }
        ask(&mut self.0)
    }
}

impl LeaseStore for Flaky {
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
        self.ask(|store| store.acquire(request))
    }
    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
        self.ask(|store| store.renew(request))
    }
    fn release(&mut self, request: &Release) -> Result<Reply<Released>> {
        self.ask(|store| store.release(request))
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

#[test]
fn each_change_is_an_event() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    // For all threads, because another one keeps the lease.
    tracing::subscriber::set_global_default(Collect(Arc::clone(&seen))).expect("the only one");
    let down = Arc::new(AtomicBool::new(false));
    let is_down = Arc::clone(&down);
    let store = Location::new(move |namespace| {
        let memory = MemoryStore::new(namespace.node_ids(NodeRanges::up_to(0))?);
        Ok(Box::new(Flaky(memory, Arc::clone(&is_down))))
    });
    let secret = Secret::random();
    let flake = Leased::builder(store, &secret).ttl(6).max_skew(0).max_drift(0).namespace("orders");
    let flake = flake.open().expect("a lease");
    let events = |count: usize| {
        let began = Instant::now();
        while seen.lock().expect("no panic").len() < count {
            assert!(began.elapsed() < PATIENCE, "{count} events");
            thread::sleep(Duration::from_millis(5));
        }
    };
    events(1);
    down.store(true, Ordering::Relaxed);
    events(3);
    down.store(false, Ordering::Relaxed);
    events(4);
    flake.close();
    let seen: Vec<Seen> = seen.lock().expect("no panic").clone();
    let levels: Vec<Level> = seen.iter().map(|(level, _)| *level).collect();
    assert_eq!(levels, [Level::INFO, Level::WARN, Level::ERROR, Level::INFO, Level::INFO]);
    let field = |event: usize, name: &str| {
        let found = seen[event].1.iter().find(|(field, _)| *field == name);
        found.map(|(_, value)| value.clone())
    };
    for event in 0..5 {
        assert_eq!(field(event, "node_ids").as_deref(), Some("[0]"));
        assert_eq!(field(event, "namespace").as_deref(), Some("\"orders\""));
        assert_eq!(field(event, "store").as_deref(), Some("\"custom\""));
        let message = field(event, "message").expect("a sentence");
        assert!(message.contains("node ids [0]"), "{message}");
    }
    assert_eq!(field(2, "state").as_deref(), Some("\"expired\""));
    assert_eq!(field(2, "error").as_deref(), Some("\"STORE_UNAVAILABLE\""));
    let message = field(2, "message").expect("a sentence");
    assert!(message.ends_with(": STORE_UNAVAILABLE: disconnected"), "{message}");
    assert_eq!(field(3, "error"), None);
}
