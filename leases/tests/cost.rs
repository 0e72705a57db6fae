//! Measures what a lease costs: `cargo test --release -p randflake-leases --test cost -- --ignored
//! --nocapture`
#![cfg(feature = "sqlite")]
#![allow(clippy::disallowed_methods, reason = "a stopwatch")]

mod common;

use std::{
    fs,
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use randflake::{Clock, SystemClock};
use randflake_leases::{Leased, SqliteStore, Token};

use crate::common::{Dial, SECOND, START, Scratch, granted, namespace, release, renew, secret};

/// Returns how many transactions have written to the file, from its bytes 24 to 27.
fn transactions(path: &Path) -> u32 {
    let file = fs::read(path).expect("a file");
    u32::from_be_bytes(*file[24..].first_chunk().expect("a header"))
}

#[test]
fn each_operation_is_one_transaction() {
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let mut store = SqliteStore::new(&path, namespace(9)).expect("a path").clock(|| START * SECOND);
    let token = Token::random();
    let lease = granted(&mut store, token, START);
    let mut expected = transactions(&path);
    for _ in 0..3 {
        let own = Token::random();
        let node_id = granted(&mut store, own, START).node_id;
        expected += 1;
        assert_eq!(transactions(&path), expected, "acquire");
        assert_eq!(release(&mut store, own, node_id, START), Ok(1));
        expected += 1;
        assert_eq!(transactions(&path), expected, "release");
    }
    let mut later = SqliteStore::new(&path, namespace(9)).expect("a path");
    later = later.clock(|| (START + 100) * SECOND);
    renew(&mut later, token, lease.node_id, START + 100).expect("still there");
    assert_eq!(transactions(&path), expected + 1, "renew");
}

#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout, reason = "what was measured")]
fn how_long_operations_take() {
    const TIMES: usize = 300;
    let scratch = Scratch::new();
    let path = scratch.path("ids.db");
    let measure = |what: &str, operation: &mut dyn FnMut()| {
        let mut took: Vec<Duration> = (0..TIMES)
            .map(|_| {
                let began = Instant::now();
                operation();
                began.elapsed()
            })
            .collect();
        took.sort_unstable();
        println!("{what}: median {:?}, p90 {:?}", took[TIMES / 2], took[TIMES * 9 / 10]);
    };
    let mut held = Vec::new();
    measure("acquire, with a generator", &mut || {
        let leased = Leased::builder(path.as_path(), &secret()).namespace("orders").open();
        held.push(leased.expect("free"));
    });
    measure("close", &mut || held.pop().expect("one for each").close());
    // A second passes between two renewals, so that each has something to write.
    let dial = Dial::new(SystemClock.now().expect("a clock") / SECOND);
    let mut store = SqliteStore::new(&path, namespace(131_071)).expect("a path");
    store = store.clock(dial.clock());
    let token = Token::random();
    let node_id = granted(&mut store, token, dial.now()).node_id;
    measure("renew", &mut || {
        dial.pass(1);
        drop(renew(&mut store, token, node_id, dial.now()).expect("still there"));
    });
    // For comparison: what a disk takes for one durable write.
    let mut file = fs::File::create(scratch.path("plain")).expect("a file");
    measure("write and sync", &mut || {
        file.write_all(&[7; 4096]).and_then(|()| file.sync_data()).expect("room");
    });
}
