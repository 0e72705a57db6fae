//! The subcommands.

use clap::{Parser, Subcommand};

use crate::{
    codes::CodesCommand,
    completions::Completions,
    convert::{Number, Text},
    generate::Generate,
    hide::{Hide, Reveal},
    inspect::Inspect,
    layout::Layouts,
    lease::Lease,
    serve::Serve,
    sql::Sql,
    tickets::Tickets,
};

/// Unique 64-bit ids that outsiders cannot predict, order or count
#[derive(Parser)]
#[command(
    name = "randflake",
    bin_name = "randflake",
    version,
    no_binary_name = true,
    term_width = 80,
    after_help = "\
Examples:
  randflake secret > secret.hex && chmod 600 secret.hex
  export RANDFLAKE_SECRET=$(cat secret.hex)
  randflake generate --store ids.db
  randflake generate -n 3 --store ids.db | randflake inspect
  randflake lease list --store ids.db

Results go to standard output, everything else to standard error. Exit codes: 0
success; 1 failure, with `randflake: CODE: message` on standard error; 2 wrong
usage; 130, in a shell, interrupted by Ctrl-C."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Prints a new secret: 32 hex digits
    #[command(after_help = "\
Keep it for as long as the id column exists: ids made with two secrets may
collide.

Examples:
  (umask 077 && randflake secret > secret.hex)")]
    Secret,
    Generate(Generate),
    Inspect(Inspect),
    Text(Text),
    Number(Number),
    Hide(Hide),
    Reveal(Reveal),
    #[command(subcommand)]
    Codes(CodesCommand),
    Sql(Sql),
    #[command(subcommand)]
    Layout(Layouts),
    #[command(subcommand)]
    Lease(Lease),
    #[command(subcommand)]
    Tickets(Tickets),
    Serve(Serve),
    Completions(Completions),
}
