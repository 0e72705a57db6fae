//! The command `randflake` as cargo ships it: stores with a server through native clients.

use std::{env, process};

use randflake_leases::remote::RemoteStore;

fn main() {
    process::exit(randflake_cli::run(env::args_os().skip(1), RemoteStore::open));
}
