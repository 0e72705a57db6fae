//! Rust's side of `tests/cross_language/test_tickets.py`: draws numbers from a counter of a file.
#![allow(clippy::print_stdout, reason = "a command")]

use std::{env, time::Duration};

use randflake::{Error, Result};
use randflake_tickets::Tickets;

fn main() -> Result<()> {
    let store = env::args().nth(1);
    let store = store.ok_or_else(|| Error::invalid_argument("usage: tickets STORE"))?;
    let wait = Duration::from_secs(60);
    let orders = Tickets::builder(store, "orders").max_wait(wait).open()?;
    let mut numbers = vec![0; 10_000];
    let (one_by_one, at_once) = numbers.split_at_mut(5000);
    for number in one_by_one {
        *number = orders.generate()?;
    }
    orders.fill(at_once)?;
    for number in numbers {
        println!("{number}");
    }
    Ok(())
}
