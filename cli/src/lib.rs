//! The command `randflake`, which cargo, pip and npm install. The three programs differ only in
//! their clients for stores with a server. There is no rule about ids or leases here, and no server:
//! `randflake serve` is the crate `randflake-serve`.
//!
//! What it prints, its exit codes and its examples are described in the
//! [README](https://github.com/randflake/randflake/blob/main/cli/README.md).
#![allow(clippy::doc_markdown, reason = "help on a terminal speaks no Markdown")]

// Everything but the clients is the same in the three programs;
// `tests/cross_language/test_command.py` compares them byte by byte. For cargo `open_server` opens
// native clients. In Python the call never comes back to Python's handler of signals, so SIGINT
// gets its default action first. In Node.js the command has a thread of its own, since the
// JavaScript thread runs the client; the promise of its exit code keeps the process alive. Nothing
// touches `process.stdout`, which would make the pipe non-blocking for both.
//
// SIGINT kills the command, and nothing is given back then: a handler in a process whose language
// has its own is worse than a node id that stays reserved until its lease expires. Only `randflake
// serve`, which cargo's program alone has, takes signals.

mod arguments;
mod codes;
mod completions;
mod confirmation;
mod convert;
mod failure;
mod generate;
mod hide;
mod ids;
mod inspect;
mod layout;
mod lease;
mod node_id;
mod output;
mod progress;
mod secret;
mod serve;
mod sql;
mod store;
mod tickets;

use std::{ffi::OsString, sync::Arc};

use clap::{CommandFactory as _, Parser as _};
use randflake_leases::{
    Namespace, Result,
    remote::{Client, RemoteStore},
};

use crate::{
    arguments::{Arguments, Command},
    failure::Failure,
};

/// Opens the server store of a URL.
pub(crate) type OpenServer =
    dyn Fn(&str, Namespace) -> Result<RemoteStore<Box<dyn Client>>> + Send + Sync;

/// Runs the command with these arguments, without the name of the program, and returns the exit code:
/// 0, 1 for an error whose code and message are on standard error, 2 for wrong usage, 3 for a fault
/// that `randflake lease check` found.
///
/// `open_server` opens the store of a URL; it is not used for others.
///
/// ```
/// use randflake_leases::remote::RemoteStore;
///
/// assert_eq!(randflake_cli::run(["--version"].map(Into::into), RemoteStore::open), 0);
/// assert_eq!(randflake_cli::run(["--colour"].map(Into::into), RemoteStore::open), 2);
/// ```
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    open_server: impl Fn(&str, Namespace) -> Result<RemoteStore<Box<dyn Client>>>
    + Send
    + Sync
    + 'static,
) -> i32 {
    let arguments: Vec<_> = arguments.into_iter().collect();
    match execute(&arguments, Arc::new(open_server)) {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

/// Reports that the standard output is closed, so that results would be lost, and returns the exit code.
///
/// ```
/// assert_eq!(randflake_cli::refuse_closed_output(), 1);
/// ```
#[must_use]
pub fn refuse_closed_output() -> i32 {
    output::report("OUTPUT", &"standard output is closed; open it, if only to /dev/null");
    1
}

fn execute(arguments: &[OsString], open_server: Arc<OpenServer>) -> Result<(), Failure> {
    secret::refuse_argument(arguments)?;
    match Arguments::try_parse_from(arguments)?.command {
        Command::Secret => secret::print(),
        Command::Generate(generate) => generate.run(open_server),
        Command::Inspect(inspect) => inspect.run(),
        Command::Text(text) => text.run(),
        Command::Number(number) => number.run(),
        Command::Hide(hide) => hide.run(),
        Command::Reveal(reveal) => reveal.run(),
        Command::Codes(codes) => codes.run(),
        Command::Sql(sql) => sql.run(),
        Command::Layout(layout) => layout.run(),
        Command::Lease(lease) => lease.run(open_server),
        Command::Tickets(tickets) => tickets.run(open_server),
        Command::Serve(serve) => serve.run(open_server),
        Command::Completions(completions) => completions.run(Arguments::command()),
    }
}

/// Makes the error for wrong usage.
fn usage(kind: clap::error::ErrorKind, message: impl std::fmt::Display) -> Failure {
    clap::Error::raw(kind, format_args!("{message}\n")).into()
}
