//! After a restore: earlier leases and numbers belong to another process, and none of them is given
//! back. One test, because it changes the process.
#![cfg(feature = "sqlite")]

use std::{collections::BTreeSet, path::Path, time::Duration};

use randflake::{ErrorKind, Secret, after_restore};
use randflake_leases::{
    LeaseStore, Leased, Location, MemoryStore, Namespace, SqliteStore, Token, operator::List,
};
use randflake_tickets::Tickets;

#[path = "common/scratch.rs"]
mod scratch;

const LONG: Duration = Duration::from_secs(600);

/// Returns the node ids that have a holder.
fn held(path: &Path, namespace: &Namespace) -> BTreeSet<u32> {
    let mut store = SqliteStore::new(path, namespace.clone()).expect("the path of a file");
    let list = List { token: Token::random(), node_id: None };
    let listed = store.list(&list).expect("a store").outcome;
    listed.nodes.iter().filter(|node| node.held).map(|node| node.lease.node_id).collect()
}

fn open(path: &Path, secret: &Secret) -> Leased {
    let builder = Leased::builder(path, secret).namespace("restored");
    builder.max_wait(LONG).acquire_timeout(LONG).open().expect("a lease")
}

fn tickets(path: &Path) -> Tickets {
    let builder = Tickets::builder(path, "orders").create(true).min_block(10);
    builder.max_wait(LONG).acquire_timeout(LONG).open().expect("a counter")
}

#[test]
fn nothing_of_before_a_restore_is_used_or_given_back() {
    let scratch = scratch::Scratch::new();
    let (path, secret) = (scratch.path("ids.db"), Secret::random());
    let namespace = Namespace::new("restored", &secret).expect("a name");
    let (flake, dropped, closed) =
        (open(&path, &secret), open(&path, &secret), open(&path, &secret));
    let before: Vec<_> = [&flake, &dropped, &closed].map(|flake| flake.node_ids()[0]).into();
    let id = flake.generate().expect("an id");
    let orders = tickets(&path);
    let early: Vec<u64> = (0..3).map(|_| orders.generate().expect("a number")).collect();
    let mut opened = SqliteStore::new(&path, namespace.clone()).expect("the path of a file");
    let _listed = opened.list(&List { token: Token::random(), node_id: None }).expect("a store");

    after_restore();
    assert!(flake.lease().is_none(), "as in a forked child");
    assert_eq!(flake.metrics().ids_generated, 0);
    assert_eq!(flake.inspect(id).node_id, before[0], "it still reads");
    drop(dropped);
    closed.close();
    after_restore();
    assert_eq!(closed.generate().expect_err("closed").kind(), ErrorKind::Closed);
    assert!(closed.is_over());
    let again = flake.inspect(flake.generate().expect("a lease of its own")).node_id;
    assert!(!before.contains(&again), "{again} of {before:?}");
    assert_eq!(held(&path, &namespace), before.iter().copied().chain([again]).collect());
    flake.close();
    assert_eq!(held(&path, &namespace), before.iter().copied().collect(), "its own was given back");

    // Another copy may have used, and given back, the rest of the block.
    assert_eq!(orders.metrics().numbers_generated, 0);
    let late: Vec<u64> = (0..3).map(|_| orders.generate().expect("a number")).collect();
    let block = early[0]..early[0] + 10;
    assert!(late.iter().all(|number| !block.contains(number)), "{late:?} after {early:?}");
    orders.close();
    let next = tickets(&path).generate().expect("a number");
    assert!(!block.contains(&next), "{next} after {early:?}");

    // A store with an earlier connection cannot be used.
    let asked = opened.list(&List { token: Token::random(), node_id: None });
    assert_eq!(asked.expect_err("of before").kind(), ErrorKind::Forked);
    let (path_again, name) = (path.clone(), namespace.clone());
    let stores = std::sync::Mutex::new(vec![opened, {
        SqliteStore::new(path_again, name).expect("the path of a file")
    }]);
    let location =
        Location::new(move |_| Ok(Box::new(stores.lock().expect("no panic").pop().expect("two"))));
    let flake = Leased::builder(location, &secret).namespace("restored").open().expect("a lease");
    after_restore();
    assert_eq!(flake.generate().expect_err("of before").kind(), ErrorKind::Forked);

    // What is in memory belongs to the threads, which continue.
    let store = MemoryStore::new(namespace);
    let location = Location::new(move |namespace| Ok(Box::new(store.namespace(namespace))));
    let flake = Leased::builder(location, &secret).open().expect("a lease");
    let node_id = flake.node_ids()[0];
    after_restore();
    flake.generate().expect("a lease of its own");
    assert_ne!(flake.node_ids()[0], node_id);
}
