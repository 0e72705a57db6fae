//! `randflake generate`.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use clap::{ValueEnum, error::ErrorKind as Wrong};
use randflake::{Builder, Id, Layout, Randflake, Result, Snowflake};
use randflake_leases::{Leased, LeasedBuilder, LeasedFormat, Location};

use crate::{
    Failure, OpenServer, layout::LayoutArguments, output, progress::Progress,
    secret::SecretArguments, store::StoreArguments, usage,
};

/// Ids of one batch: enough for the cipher's fast path, few enough for a steady pipe.
const BATCH: u64 = 1 << 15;

/// Generates ids, one per line
#[derive(clap::Args)]
#[command(after_help = "\
The node id is leased from the store and released at the end; after Ctrl-C it
stays reserved until its lease expires. Use --node only if no other process has
this node id; the command then waits for the next full second, and generates
131072 ids a second. Half of all ids are negative, unless a layout is chosen.
--format json prints id, as a string, because many JSON parsers lose digits of
such numbers, and text, which the ids of a layout do not have.

Examples:
  randflake generate --store ids.db
  randflake generate --store ids.db --format string -n 5
  randflake generate --store ids.db -n 1000000 > ids
  randflake generate --node 7 --format json
  randflake generate --node 7 --layout twitter,epoch_ms=1577836800000")]
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
    #[arg(long, value_name = "ID", value_delimiter = ',', conflicts_with = "store")]
    node: Vec<u32>,

    #[command(flatten)]
    layout: LayoutArguments,

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
        let location = self.store.location(open_server);
        if self.node.is_empty() && location.is_none() {
            return Err(usage(
                Wrong::MissingRequiredArgument,
                "a node id is required: lease it from a store with --store ids.db, or, if no other \
                 process\nhas it, assign it with --node ID",
            ));
        }
        let layout = self.layout.read(&self.secret)?;
        let of_secret = Layout::randflake();
        for &node in &self.node {
            let checked = layout.as_ref().unwrap_or(&of_secret).check_node_id(node);
            checked.map_err(|error| usage(Wrong::ValueValidation, error))?;
        }
        let Some(layout) = layout else {
            let secret = self.secret.read()?;
            let lease = |location: Location| Leased::builder(location, &secret);
            return self.make(location, lease, || Randflake::builder(&secret));
        };
        if matches!(self.format, OutputFormat::String) {
            return Err(usage(
                Wrong::ArgumentConflict,
                "ids of a layout have no text form: write them as numbers, or hide them with \
                 `randflake hide`",
            ));
        }
        let lease = |location: Location| Leased::for_layout(location, layout);
        self.make(location, lease, || Snowflake::builder(layout))
    }

    /// Makes the ids of a format, with node ids that are assigned or leased.
    fn make<F: LeasedFormat<Id: Written + Default + Clone>>(
        &self,
        location: Option<Location>,
        lease: impl FnOnce(Location) -> LeasedBuilder<F>,
        assign: impl FnOnce() -> Builder<F>,
    ) -> Result<(), Failure> {
        if let Some(location) = location.filter(|_| self.node.is_empty()) {
            let flake = lease(location)
                .namespace(&self.store.namespace)
                .acquire_timeout(Duration::from_secs(self.acquire_timeout.into()))
                .open()?;
            return self.write(|ids| flake.fill(ids));
        }
        let flake = assign().node_ids(self.node.iter().copied()).build()?;
        self.write(|ids| flake.fill(ids))
    }

    fn write<T: Written + Default + Clone>(
        &self,
        mut fill: impl FnMut(&mut [T]) -> Result<()>,
    ) -> Result<(), Failure> {
        let mut out = output::stdout();
        let mut progress = Progress::new(self.count);
        let mut ids = vec![T::default(); usize::try_from(self.count.min(BATCH)).unwrap_or(1)];
        let mut left = self.count;
        while left > 0 {
            let ids = match usize::try_from(left) {
                Ok(left) if left < ids.len() => &mut ids[..left],
                _ => &mut ids,
            };
            fill(ids)?;
            for id in &*ids {
                id.write(self.format, &mut out)?;
            }
            left -= ids.len() as u64;
            out.flush()?;
            progress.made(self.count - left);
        }
        Ok(())
    }
}

/// An id that is written in some format.
trait Written {
    fn write(&self, format: OutputFormat, out: &mut impl Write) -> io::Result<()>;
}

impl Written for Id {
    fn write(&self, format: OutputFormat, out: &mut impl Write) -> io::Result<()> {
        let number = i64::from(*self);
        match format {
            OutputFormat::Int => writeln!(out, "{number}"),
            OutputFormat::String => {
                out.write_all(self.encode(&mut [0; Self::MAX_TEXT_LENGTH]))?;
                out.write_all(b"\n")
            }
            // A string, because many JSON parsers lose digits of such large numbers.
            OutputFormat::Json => writeln!(out, r#"{{"id":"{number}","text":"{self}"}}"#),
        }
    }
}

/// An id of a layout.
impl Written for u64 {
    fn write(&self, format: OutputFormat, out: &mut impl Write) -> io::Result<()> {
        match format {
            OutputFormat::Json => writeln!(out, r#"{{"id":"{self}"}}"#),
            OutputFormat::Int | OutputFormat::String => writeln!(out, "{self}"),
        }
    }
}
