//! `randflake tickets`.

use std::{fmt::Write as _, io, sync::Arc};

use clap::{Arg, Subcommand};
use randflake_leases::Namespace;
use randflake_tickets::operator::{self, CounterStatus};
use serde::Serialize;

use crate::{
    Failure, OpenServer,
    confirmation::Confirmation,
    output::{COLUMNS, Style, print, print_json},
    store::{ModeArguments, StoreArguments},
};

/// Manages the counters of tickets, which are sequential numbers
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  randflake tickets list --store ids.db")]
pub(crate) enum Tickets {
    Init(Init),
    List(List),
    Show(Show),
    Fence(Fence),
}

/// Creates a namespace of counters in a store, before its first ticket
#[derive(clap::Args)]
#[command(
    override_usage = "randflake tickets init [OPTIONS] <--new|--quarantine>",
    mut_arg("namespace", namespace),
    mut_arg("new", |new| new.help(
        "Start each counter at its first number: for a store that has never had this namespace"
    )),
    mut_arg("quarantine", |quarantine| quarantine.help(
        "If it is missing, refuse each counter until it is fenced: for a store that may have had \
         this namespace and lost it, or if you cannot tell"
    )),
    after_help = "\
Run it once, when the store is set up, and not with each start or deploy: after
the store has lost its data, --new repeats numbers. A namespace that exists is
checked and not changed. In PostgreSQL and MySQL this also creates the table. A
SQLite file needs it, too: a missing file gives no tickets.

Examples:
  randflake tickets init --new --store ids.db"
)]
pub(crate) struct Init {
    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    mode: ModeArguments,
}

/// Lists the counters of a namespace: their next numbers
#[derive(clap::Args)]
#[command(
    mut_arg("namespace", namespace),
    after_help = "\
next: the smallest number that was never drawn. given back: how many smaller
ones are drawn before it. blocks: how many may still be given back. --json
prints one object: counters, each as `tickets show --json` prints it, by name.

Examples:
  randflake tickets list --store ids.db
  randflake tickets list --store ids.db --json"
)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArguments,

    /// Prints JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Shows a counter: its next number, and how many were given back
#[derive(clap::Args)]
#[command(
    mut_arg("namespace", namespace),
    after_help = "\
next: the smallest number that was never drawn. given back: how many smaller
ones are drawn before it. blocks: how many may still be given back, in part;
killed processes never give theirs back. --json prints one object.

Examples:
  randflake tickets show orders --store ids.db
  randflake tickets show orders --store ids.db --json"
)]
pub(crate) struct Show {
    /// Name of the counter
    name: String,

    #[command(flatten)]
    store: StoreArguments,

    /// Prints JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Makes a counter continue above a number, for example after restoring a backup
#[derive(clap::Args)]
#[command(
    mut_arg("namespace", namespace),
    after_help = "\
Run it when STORE_QUARANTINED says so, since the store may have lost blocks,
and to continue the numbers of another system. First stop what draws from the
counter: a process that still runs may have a block that the store has lost. You
confirm that, and that no larger number was handed out. A counter never falls; a
missing one is created.

Examples:
  randflake tickets fence orders --above 48211 --store ids.db --yes
  randflake tickets fence even --above 48211 --start 2 --step 2 --store ids.db \\
    --yes"
)]
pub(crate) struct Fence {
    /// Name of the counter
    name: String,

    /// The largest number that was handed out, or a larger one
    #[arg(long, value_name = "N")]
    above: u64,

    /// First number of the counter [default: its current one, or 1]
    #[arg(long, value_name = "N")]
    start: Option<u64>,

    /// Step between numbers [default: its current one, or 1]
    #[arg(long, value_name = "N")]
    step: Option<u64>,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    confirmation: Confirmation,
}

/// The option `--namespace`. The variable `RANDFLAKE_NAMESPACE` is for leases.
fn namespace(argument: Arg) -> Arg {
    argument.default_value("tickets").help("Namespace of counters in the store [default: tickets]")
}

impl Tickets {
    pub(crate) fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        match self {
            Self::Init(init) => init.run(open_server),
            Self::List(list) => list.run(open_server),
            Self::Show(show) => show.run(open_server),
            Self::Fence(fence) => fence.run(open_server),
        }
    }
}

impl Init {
    fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let mode = self.mode.read()?;
        let namespace = Namespace::for_tickets(&self.store.namespace)?;
        self.store.init(&namespace, mode, open_server)
    }
}

impl List {
    fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let counters = operator::list_tickets(&mut *self.store.open_tickets(open_server)?)?;
        if self.json {
            let counters = counters.iter().map(CounterJson::of).collect();
            return print_json(&CountersJson { counters });
        }
        if counters.is_empty() {
            return print(&format_args!("namespace {:?} has no counter", self.store.namespace));
        }
        let head = format!("{:>16}  {:>16}  {:>6}  name", "next", "given back", "blocks");
        let mut text = Style::BOLD.paint(&head, &io::stdout()) + "\n";
        for counter in &counters {
            let CounterStatus { name, given_back, blocks, .. } = counter;
            let row = format!("{:>16}  {given_back:>16}  {blocks:>6}  {name}", next(counter));
            // A name may be longer; JSON has all of it.
            text.extend(row.chars().take(COLUMNS));
            text += "\n";
            if counter.must_be_fenced {
                let note =
                    "the store may have lost blocks of it: `randflake tickets fence` raises it";
                let _ = writeln!(text, "  {}", Style::RED.paint(note, &io::stdout()));
            }
        }
        print(&text.trim_end())
    }
}

impl Show {
    fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let mut store = self.store.open_tickets(open_server)?;
        let counter = operator::show_tickets(&mut *store, &self.name)?;
        let must_be_fenced = match &counter {
            Some(counter) => counter.must_be_fenced,
            // A namespace that was never fenced has lost nothing. Every listing has its floor.
            None => randflake_leases::operator::inspect(&mut *store, 0)?.floor != 0,
        };
        if self.json {
            let missing =
                CounterJson { name: &self.name, exists: false, counter: None, must_be_fenced };
            return print_json(&counter.as_ref().map_or(missing, CounterJson::of));
        }
        let mut text = String::new();
        if let Some(counter) = counter {
            let _ = writeln!(text, "start       {:>16}", counter.start);
            let _ = writeln!(text, "step        {:>16}", counter.step);
            let _ = writeln!(text, "next        {:>16}", next(&counter));
            let _ = writeln!(text, "given back  {:>16}", counter.given_back);
            let _ = writeln!(text, "blocks      {:>16}", counter.blocks);
        } else {
            let _ = writeln!(text, "there is no counter {:?}", self.name);
        }
        if must_be_fenced {
            text += "the store may have lost blocks of it: nothing is drawn until\n\
                     `randflake tickets fence` has raised it";
        }
        print(&text.trim_end())
    }
}

impl Fence {
    fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let mut store = self.store.open_tickets(open_server)?;
        self.confirmation.ask(&format_args!(
            "fences counter {:?} above {}; if a larger number was handed out, or if a process that \
             has drawn from it still runs, numbers repeat",
            self.name, self.above
        ))?;
        let (start, step) = (self.start, self.step);
        let fenced =
            operator::fence_tickets_in_steps(&mut *store, &self.name, self.above, start, step)?;
        print(&format_args!("the next number of counter {:?} is {}", self.name, next(&fenced)))
    }
}

fn next(counter: &CounterStatus) -> String {
    counter.next.map_or_else(|| "none".to_owned(), |number| number.to_string())
}

/// A counter as JSON.
#[derive(Serialize)]
struct CounterJson<'a> {
    name: &'a str,
    exists: bool,
    #[serde(flatten)]
    counter: Option<PositionsJson>,
    must_be_fenced: bool,
}

/// What is known of a counter that exists.
#[derive(Serialize)]
struct PositionsJson {
    start: u64,
    step: u64,
    next: Option<u64>,
    given_back: u64,
    blocks: usize,
}

#[derive(Serialize)]
struct CountersJson<'a> {
    counters: Vec<CounterJson<'a>>,
}

impl<'a> CounterJson<'a> {
    fn of(counter: &'a CounterStatus) -> Self {
        let CounterStatus { name, start, step, next, given_back, blocks, must_be_fenced, .. } =
            counter;
        let positions = PositionsJson {
            start: *start,
            step: *step,
            next: *next,
            given_back: *given_back,
            blocks: *blocks,
        };
        Self { name, exists: true, counter: Some(positions), must_be_fenced: *must_be_fenced }
    }
}
