use clap::{Parser, Subcommand, builder::RangedI64ValueParser};
use randflake::Layout;

use crate::{generate::Generate, inspect::Inspect, lease::Lease};

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

Results go to standard output, all else to standard error. Exit codes: 0 done;
1 failed, and standard error says `randflake: CODE: message`; 2 wrong use; 130,
in a shell, interrupted by Ctrl-C."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Prints a new secret: 32 hex digits
    #[command(after_help = "\
It is for the life of an id column: ids of two secrets may collide.

Examples:
  (umask 077 && randflake secret > secret.hex)")]
    Secret,
    Generate(Generate),
    Inspect(Inspect),
    #[command(subcommand)]
    Lease(Lease),
}

/// Takes a node id.
pub(crate) fn node_id() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(0..=i64::from(Layout::randflake().max_node_id()))
}
