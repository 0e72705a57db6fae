//! A clock to set, a temporary directory, and a holder of leases.
#![allow(dead_code, reason = "each test file uses some of it")]

mod scratch;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
};

use randflake::Secret;
use randflake_leases::{
    Acquire, Acquired, LeaseStore, Namespace, NodeLease, NodeRanges, Note, Operation, Release,
    Renew, Renewed, Result, Token,
    remote::{Client, Response, Statement},
};
#[allow(unused_imports, reason = "each test file uses some of it")]
pub(crate) use scratch::Scratch;

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

/// A client that shows the dial as the server's clock; the server's own clock must be in the
/// answer.
pub(crate) struct Dated<C>(pub(crate) C, pub(crate) Dial);

impl<C: Client> Client for Dated<C> {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        let Self(client, dial) = self;
        for (clock, now) in [
            ("clock_timestamp()", format!("to_timestamp({})", dial.now())),
            ("unix_timestamp()", dial.now().to_string()),
        ] {
            if statement.text.contains(clock) {
                let text = kept(statement.text.replace(clock, &now));
                return client.run(&Statement { text, ..statement.clone() });
            }
        }
        if statement.text == "EVAL" {
            let mut statement = statement.clone();
            let script = &mut statement.parameters[0];
            assert!(script.contains(LUA_CLOCK), "without a clock: {script}");
            *script = script.replace(LUA_CLOCK, &format!("'{}'", dial.now()));
            return client.run(&statement);
        }
        let mut response = client.run(statement)?;
        if let Response::Rows(rows) = &mut response
            && let Some(Some(date)) = rows.first_mut().and_then(|row| row.get_mut(1))
            && date.ends_with(" GMT")
        {
            *date = http_date(dial.now());
        }
        Ok(response)
    }

    fn discard(&mut self) {
        self.0.discard();
    }
}

const LUA_CLOCK: &str = "redis.call('TIME')[1]";

/// Returns the same text, with a static lifetime.
fn kept(text: String) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().expect("no panic");
    texts.get(&*text).copied().unwrap_or_else(|| {
        let text = text.leak();
        texts.insert(text);
        text
    })
}

/// Returns a unix second of this century as HTTP writes it.
pub(crate) fn http_date(second: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [(&str, i64); 12] = [
        ("Jan", 31),
        ("Feb", 28),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    let (mut day, second) = (second.div_euclid(86_400), second.rem_euclid(86_400));
    let weekday = DAYS[usize::try_from(day % 7).expect("after 1970")];
    let mut year = 1970;
    let leap = |year| i64::from(year % 4 == 0);
    while day >= 365 + leap(year) {
        day -= 365 + leap(year);
        year += 1;
    }
    for (month, days) in MONTHS {
        let days = days + if month == "Feb" { leap(year) } else { 0 };
        if day < days {
            let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
            return format!(
                "{weekday}, {:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT",
                day + 1
            );
        }
        day -= days;
    }
    unreachable!("a year has twelve months")
}

pub(crate) fn secret() -> Secret {
    SECRET.parse().expect("a secret")
}

pub(crate) fn namespace(max_node_id: u32) -> Namespace {
    Namespace::new("orders", &secret())
        .and_then(|namespace| namespace.node_ids(NodeRanges::up_to(max_node_id)))
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

/// Acquires one node id. Tries again if a busy machine made the request wait for the file longer
/// than clocks may differ.
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
    let request = Renew { token, node_ids: vec![node_id], ttl: 300, client_now: now, next: None };
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

/// Fails if two leases may have stamped the same second with the same node id.
pub(crate) fn assert_disjoint(mut stamped: Vec<NodeLease>) {
    stamped.retain(|lease| lease.start < lease.end_exclusive);
    stamped.sort_unstable();
    for pair in stamped.windows(2) {
        let disjoint = pair[0].node_id != pair[1].node_id || pair[0].end_exclusive <= pair[1].start;
        assert!(disjoint, "two may stamp the same seconds: {pair:?}");
    }
}
