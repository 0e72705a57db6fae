//! `randflake generate`.

use std::{io::Write, sync::Arc, time::Duration};

use clap::{ValueEnum, error::ErrorKind as Wrong};
use randflake::{Id, Randflake, Result};
use randflake_leases::Leased;

use crate::{
    Failure, OpenServer, node_id::node_id, output, progress::Progress, secret::SecretArguments,
    store::StoreArguments, usage,
};

/// Ids of one batch: enough for the cipher's fast path, few enough for a steady pipe.
const BATCH: u64 = 1 << 15;

/// Generates ids, one per line
#[derive(clap::Args)]
#[command(after_help = "\
The node id is leased from the store and released at the end; after Ctrl-C it
stays reserved until its lease expires. Use --node only if no other process has
this node id; the command then waits for the next full second, and generates
131072 ids a second. Half of all ids are negative. --format json prints id, as a
string, and text, because many JSON parsers lose digits of such numbers.

Examples:
  randflake generate --store ids.db
  randflake generate --store ids.db --format string -n 5
  randflake generate --store ids.db -n 1000000 > ids
  randflake generate --node 7 --format json")]
pub(crate) struct Generate {
    /// Number of ids
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    count: u64,

    /// How to write each id: as a number, in the text form, or both as JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Int)]
    format: OutputFormat,

    #[command(flatten)]
    store: StoreArguments,

    /// How long the first lease may take
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    acquire_timeout: u32,

    /// Node id that no other live process has, or several, separated by commas
    #[arg(
        long,
        value_name = "ID",
        value_delimiter = ',',
        value_parser = node_id(),
        conflicts_with = "store"
    )]
    node: Vec<u32>,

    #[command(flatten)]
    secret: SecretArguments,
}

#[derive(Clone, Copy, ValueEnum)]
enum OutputFormat {
    Int,
    String,
    Json,
}

impl Generate {
    pub(crate) fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        if !self.node.is_empty() {
            let secret = self.secret.read()?;
            let nodes = self.node.iter().copied();
            let flake = Randflake::builder(&secret).node_ids(nodes).build()?;
            return self.write(|ids| flake.fill(ids));
        }
        let Some(location) = self.store.location(open_server) else {
            return Err(usage(
                Wrong::MissingRequiredArgument,
                "a node id is required: lease it from a store with --store ids.db, or, if no other \
                 process\nhas it, assign it with --node ID",
            ));
        };
        let secret = self.secret.read()?;
        let flake = Leased::builder(location, &secret)
            .namespace(&self.store.namespace)
            .acquire_timeout(Duration::from_secs(self.acquire_timeout.into()))
            .open()?;
        self.write(|ids| flake.fill(ids))
    }

    fn write(&self, mut fill: impl FnMut(&mut [Id]) -> Result<()>) -> Result<(), Failure> {
        let mut out = output::stdout();
        let mut progress = Progress::new(self.count);
        let mut ids = vec![Id::default(); usize::try_from(self.count.min(BATCH)).unwrap_or(1)];
        let mut left = self.count;
        while left > 0 {
            let ids = match usize::try_from(left) {
                Ok(left) if left < ids.len() => &mut ids[..left],
                _ => &mut ids,
            };
            fill(ids)?;
            for &mut id in &mut *ids {
                self.format.write(id, &mut out)?;
            }
            left -= ids.len() as u64;
            out.flush()?;
            progress.made(self.count - left);
        }
        Ok(())
    }
}

impl OutputFormat {
    fn write(self, id: Id, out: &mut impl Write) -> std::io::Result<()> {
        let number = i64::from(id);
        match self {
            Self::Int => writeln!(out, "{number}"),
            Self::String => {
                out.write_all(id.encode(&mut [0; Id::MAX_TEXT_LENGTH]))?;
                out.write_all(b"\n")
            }
            // A string, because many JSON parsers lose digits of such large numbers.
            Self::Json => writeln!(out, r#"{{"id":"{number}","text":"{id}"}}"#),
        }
    }
}
