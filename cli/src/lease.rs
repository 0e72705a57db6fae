//! `randflake lease`.

mod check;
mod doctor;
mod faults;
mod variables;

use std::{fmt::Write as _, io, sync::Arc};

use clap::Subcommand;
use randflake::Error;
use randflake_leases::{
    LeaseStore, Limits, Namespace, NodeLease, NodeRanges,
    operator::{self, Counts, Listed, Node, Shortened, Target},
};
use serde::Serialize;

use self::{check::Check, doctor::Doctor};
use crate::{
    Failure, OpenServer,
    confirmation::Confirmation,
    layout::LayoutArguments,
    node_id::node_id,
    output::{COLUMNS, Style, print, print_json, utc},
    secret::SecretArguments,
    store::{ModeArguments, StoreArguments},
};

/// Manages the leases in a store; only init needs the secret
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  randflake lease list --store ids.db")]
pub(crate) enum Lease {
    Init(Init),
    List(List),
    Inspect(Inspect),
    Check(Check),
    Doctor(Doctor),
    Nodes(Nodes),
    Fence(Fence),
    Repair(Repair),
    Release(Release),
}

/// Creates a namespace in a store, once, before its first lease
#[derive(clap::Args)]
#[command(
    override_usage = "randflake lease init [OPTIONS] <--new|--quarantine>",
    after_help = "\
Run it once, when the store is set up, and not with each start or deploy: after
the store has lost its data, --new repeats ids. A namespace that exists is
checked and not changed. In PostgreSQL and MySQL this also creates the table. A
SQLite file needs no init: its first lease creates it, as with --new.

Examples:
  randflake lease init --new --store etcd://localhost:2379
  RANDFLAKE_STORE=postgresql://app:password@db/app randflake lease init --new"
)]
pub(crate) struct Init {
    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    secret: SecretArguments,

    #[command(flatten)]
    layout: LayoutArguments,

    /// Longest lease, at least six times --max-skew
    #[arg(long, value_name = "SECONDS", default_value_t = Namespace::MAX_TTL)]
    max_ttl: u32,

    /// Largest difference between two clocks
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    max_skew: u32,

    /// Node ids to lease, such as 0-6,8-1023; you can assign the others to
    /// generators yourself [default: all]
    #[arg(long, value_name = "RANGES")]
    nodes: Option<NodeRanges>,

    #[command(flatten)]
    mode: ModeArguments,
}

/// Lists the node ids with a current lease, and counts them
#[derive(clap::Args)]
#[command(after_help = "\
held: it has a holder. expired: its lease has ended and was not released. free:
it was released, and can be leased again after its end. Headroom is what can be
leased now. The note is the holder's own claim, host and process: do not trust
it. --json prints one object, with all node ids.

Examples:
  randflake lease list --store ids.db
  randflake lease list --store ids.db --all
  randflake lease list --store ids.db --json")]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArguments,

    /// Also lists those whose lease has ended
    #[arg(long)]
    all: bool,

    /// Prints JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Shows the last lease of a node id
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  randflake lease inspect 42 --store ids.db")]
pub(crate) struct Inspect {
    /// Node id
    #[arg(value_name = "ID", value_parser = node_id())]
    node: u32,

    #[command(flatten)]
    store: StoreArguments,

    /// Prints JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Sets which node ids are leased, for example when migrating from another generator
#[derive(clap::Args)]
#[command(after_help = "\
Before you add a node id, stop the generator that had it, and wait for twice the
largest skew and a second: ids that it made later could repeat. A node id that
you leave out is no longer renewed. The command prints when all its leases will
have ended: do not assign it to anything else before then.

Examples:
  randflake lease nodes 0-6,8-1023 --store ids.db --yes")]
pub(crate) struct Nodes {
    /// All node ids to lease from now on, such as 0-6,8-1023
    #[arg(value_name = "RANGES")]
    ranges: NodeRanges,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    confirmation: Confirmation,
}

/// Says that the store may have lost leases, for example after restoring a backup
#[derive(clap::Args)]
#[command(after_help = "\
Run it after restoring a backup, before starting anything that leases. Until the
longest lease plus the largest skew has passed, the store grants nothing, and
renews only leases that are clearly running.

Examples:
  randflake lease fence --store ids.db --yes")]
pub(crate) struct Fence {
    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    confirmation: Confirmation,
}

/// Lowers an implausible end, which only a wrong clock can have set
#[derive(clap::Args)]
#[command(after_help = "\
`randflake lease list` shows such ends. You confirm that no id with that node id
(with --floor: with any) has a time at or after the new end, and that no process
runs that was granted the implausible one. Plausible ends are refused.

Examples:
  randflake lease repair --node 42 --store ids.db
  randflake lease repair --floor --store ids.db --yes")]
pub(crate) struct Repair {
    #[command(flatten)]
    target: TargetArguments,

    /// The new end, a unix second [default: the lowest, which is the end of the
    /// longest lease that could be granted now]
    #[arg(long, value_name = "SECOND")]
    end: Option<i64>,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    confirmation: Confirmation,
}

/// Which end.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct TargetArguments {
    /// The end of this node id
    #[arg(long, value_name = "ID", value_parser = node_id())]
    node: Option<u32>,

    /// The end of the quarantine of the whole namespace
    #[arg(long)]
    floor: bool,
}

/// Releases a node id whose holder is dead
#[derive(clap::Args)]
#[command(after_help = "\
You confirm that the process that holds it has ended, and with it every copy of
its memory: if it still runs, ids repeat. Waiting for the lease to expire is
always safe, and other node ids are available meanwhile.

Examples:
  randflake lease release 42 --holder web-3:4711 --store ids.db")]
pub(crate) struct Release {
    /// Node id
    #[arg(value_name = "ID", value_parser = node_id())]
    node: u32,

    /// The holder, as `lease list` shows it; refuses any other holder
    #[arg(long, value_name = "NOTE")]
    holder: String,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    confirmation: Confirmation,
}

impl Lease {
    pub(crate) fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        match self {
            Self::Init(init) => init.run(open_server),
            Self::List(list) => list.run(open_server),
            Self::Inspect(inspect) => inspect.run(open_server),
            Self::Check(check) => check.run(open_server),
            Self::Doctor(doctor) => doctor.run(open_server),
            Self::Nodes(nodes) => nodes.run(open_server),
            Self::Fence(fence) => fence.run(open_server),
            Self::Repair(repair) => repair.run(open_server),
            Self::Release(release) => release.run(open_server),
        }
    }
}

impl Init {
    fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let mode = self.mode.read()?;
        let name = &self.store.namespace;
        let namespace = match self.layout.read(&self.secret)? {
            Some(layout) => Namespace::for_layout(name, layout)?,
            None => Namespace::new(name, &self.secret.read()?)?,
        };
        let mut namespace = namespace.max_ttl_and_skew(self.max_ttl, self.max_skew)?;
        if let Some(nodes) = self.nodes {
            namespace = namespace.node_ids(nodes)?;
        }
        self.store.init(&namespace, mode, open_server)
    }
}

impl List {
    fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let listed = operator::list(&mut *self.store.open(open_server)?)?;
        if self.json {
            return print_json(&ListingJson::of(&listed).with_counts(&listed));
        }
        let counts = listed.counts();
        let mut text = format!(
            "{} node ids: {} held, {} released but not yet ended; headroom {}\n",
            counts.all, counts.held, counts.waiting, counts.free
        );
        let limits = listed.limits;
        if !listed.has_counters() && limits.node_ids != NodeRanges::up_to(limits.node_ids.last()) {
            let _ = writeln!(text, "the leased node ids are {}", limits.node_ids);
        }
        let _ = writeln!(
            text,
            "leases of at most {} s, clocks within {} s, layout {}, format {}",
            limits.max_ttl, limits.max_skew, listed.layout, listed.format
        );
        if listed.is_floor_implausible() {
            let _ = writeln!(
                text,
                "nothing is granted until {}: only a wrong clock can have set that;\n`randflake \
                 lease repair --floor` lowers it",
                utc(listed.floor)
            );
        } else if listed.floor > listed.now {
            let _ = writeln!(
                text,
                "quarantine: nothing is granted for {} s, until {}",
                listed.floor - listed.now,
                utc(listed.floor)
            );
        }
        if listed.incarnation_changed {
            text += "the server is not the same as before, or was set back in time: the next lease \
                     fences it\n";
        }
        let doubtful = listed.is_clock_doubtful();
        if doubtful {
            let _ = writeln!(
                text,
                "most held ends look implausible, so the clock that shows {}\n\
                 is probably wrong",
                utc(listed.now)
            );
        }
        let shown = |node: &&Node| self.all || listed.seconds_left(node) > 0;
        let nodes: Vec<_> = listed.nodes.iter().filter(shown).collect();
        if !nodes.is_empty() {
            text += "\n";
            text += &table(&listed, &nodes, !doubtful);
        }
        let over = listed.nodes.len() - nodes.len();
        if over > 0 {
            let _ = writeln!(text, "\n{over} more whose lease has ended: --all lists them");
        }
        print(&text.trim_end())
    }
}

impl Inspect {
    fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let listed = operator::inspect(&mut *self.store.open(open_server)?, self.node)?;
        if self.json {
            return print_json(&ListingJson::of(&listed));
        }
        let nodes: Vec<_> = listed.nodes.iter().collect();
        if nodes.is_empty() {
            return print(&format_args!("node id {} was never leased", self.node));
        }
        print(&table(&listed, &nodes, true).trim_end())
    }
}

impl Nodes {
    fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let mut store = self.store.open(open_server)?;
        let Limits { node_ids: before, max_skew, .. } = operator::inspect(&mut *store, 0)?.limits;
        self.confirmation.ask(&format_args!(
            "leases the node ids {} of namespace {:?}, which were {before}; if a generator outside \
             of it has used one of the added ones within the last {} s, ids repeat",
            self.ranges,
            self.store.namespace,
            2 * max_skew + 1
        ))?;
        let listed = operator::set_node_ids(&mut *store, self.ranges)?;
        if before.ranges().flatten().all(|node_id| self.ranges.contains(node_id)) {
            return print(&format_args!("the node ids {} are leased, and no others", self.ranges));
        }
        print(&format_args!(
            "the node ids {} are leased; use none that was taken out before {}, when all leases of \
             it will have ended",
            self.ranges,
            utc(listed.unleased_from())
        ))
    }
}

impl Fence {
    fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let mut store = self.store.open(open_server)?;
        // Only for the limits, which every listing has.
        let listed = operator::inspect(&mut *store, 0)?;
        let name = &self.store.namespace;
        if listed.has_counters() {
            self.confirmation.ask(&format_args!(
                "fences namespace {name:?}: nothing is drawn from its counters until `randflake \
                 tickets fence` has raised each"
            ))?;
            operator::fence(&mut *store)?;
            return print(&"nothing is drawn from a counter until it is fenced");
        }
        let limits = listed.limits;
        self.confirmation.ask(&format_args!(
            "fences namespace {name:?}: nothing is granted for {} s, and leases that end within {} s \
             are not renewed; running generators work until their lease ends",
            listed.furthest_floor() - listed.now,
            limits.max_skew + listed.last_grant
        ))?;
        let fenced = operator::fence(&mut *store)?;
        print(&format_args!("nothing is granted until {}", utc(fenced.floor)))
    }
}

impl Repair {
    fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let mut store = self.store.open(open_server)?;
        let listed = operator::inspect(&mut *store, self.target.node.unwrap_or(0))?;
        let (what, target, end, furthest) = match self.target.node {
            Some(node_id) => {
                let lease = listed.nodes.first().map(|node| node.lease.end_exclusive);
                let what = format!("the end of node id {node_id}");
                (what, Target::Node(node_id), lease.unwrap_or(0), listed.furthest())
            }
            None => (
                format!("the quarantine of namespace {:?}", self.store.namespace),
                Target::Floor,
                listed.floor,
                listed.furthest_floor(),
            ),
        };
        // A request that would be refused needs no confirmation.
        if end <= furthest {
            let end = utc(end);
            return Err(Error::invalid_argument(format!(
                "{what} is {end}, which is plausible, and needs no repair"
            ))
            .into());
        }
        self.confirmation.ask(&format_args!(
            "lowers {what} from {} to {}; if an id has a time at or after that, ids repeat",
            utc(end),
            utc(self.end.unwrap_or(furthest))
        ))?;
        let shortened = operator::repair(&mut *store, target, self.end)?;
        print_shortened(&what, &shortened)
    }
}

impl Release {
    fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let mut store = self.store.open(open_server)?;
        let seen = self.held(&mut *store)?;
        self.confirmation.ask(&format_args!(
            "releases node id {}, held by {:?}, whose lease ends at {}; if that process, or a copy \
             of it, still runs, ids repeat",
            self.node,
            self.holder,
            utc(seen.end_exclusive)
        ))?;
        let shortened = operator::release_dead(&mut *store, seen)?;
        print_shortened(&format!("the end of node id {}", self.node), &shortened)
    }

    /// Returns the lease of the holder that was named.
    fn held(&self, store: &mut dyn LeaseStore) -> Result<NodeLease, Failure> {
        let listed = operator::inspect(store, self.node)?;
        let Some(node) = listed.nodes.first().filter(|node| node.held) else {
            return Err(Error::invalid_argument(format!(
                "node id {} has no holder: there is nothing to release",
                self.node
            ))
            .into());
        };
        if node.note.as_str() != self.holder {
            return Err(Error::invalid_argument(format!(
                "node id {} is held by {:?}, not by {:?}; nothing was done",
                self.node,
                node.note.as_str(),
                self.holder
            ))
            .into());
        }
        Ok(node.lease)
    }
}

fn print_shortened(what: &str, shortened: &Shortened) -> Result<(), Failure> {
    if shortened.from == shortened.to {
        return print(&format_args!("{what} stays at {}", utc(shortened.to)));
    }
    print(&format_args!("{what} was {}, and is now {}", utc(shortened.from), utc(shortened.to)))
}

/// Returns a row for each node id, shortened to the width of a terminal, and which ends to repair.
fn table(listed: &Listed, nodes: &[&Node], repairs: bool) -> String {
    let head =
        format!("{:>6}  {:7}  {:>12}  {:23}  holder", "node", "state", "seconds left", "end");
    let mut text = Style::BOLD.paint(&head, &io::stdout()) + "\n";
    for node in nodes {
        let row = format!(
            "{:>6}  {:7}  {:>12}  {:23}  {}",
            node.lease.node_id,
            listed.state(node).name(),
            listed.seconds_left(node),
            utc(node.lease.end_exclusive),
            node.note
        );
        // A note may be longer; JSON has all of it.
        let shown: String = row.trim_end().chars().take(COLUMNS).collect();
        text += &shown;
        text += "\n";
        if repairs && listed.is_implausible(node.lease.end_exclusive) {
            let note = format!(
                "only a wrong clock can have set that end: randflake lease repair --node {}",
                node.lease.node_id
            );
            let _ = writeln!(text, "  {}", Style::RED.paint(&note, &io::stdout()));
        }
    }
    text
}

/// A listing as JSON.
#[derive(Serialize)]
struct ListingJson<'a> {
    now: i64,
    /// Where all node ids are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<CountsJson>,
    limits: LimitsJson,
    layout: &'a str,
    format: u32,
    floor: i64,
    renew_above: i64,
    incarnation_changed: bool,
    nodes: Vec<NodeJson<'a>>,
}

#[derive(Serialize)]
struct CountsJson {
    all: u32,
    held: u32,
    waiting: u32,
    free: u32,
    implausible: u32,
}

#[derive(Serialize)]
struct LimitsJson {
    max_ttl: u32,
    max_skew: u32,
    node_ids: String,
}

#[derive(Serialize)]
struct NodeJson<'a> {
    node_id: u32,
    state: &'a str,
    start: i64,
    end_exclusive: i64,
    seconds_left: i64,
    held: bool,
    implausible: bool,
    note: &'a str,
}

impl<'a> ListingJson<'a> {
    fn of(listed: &'a Listed) -> Self {
        let limits = listed.limits;
        let node = |node: &'a Node| NodeJson {
            node_id: node.lease.node_id,
            state: listed.state(node).name(),
            start: node.lease.start,
            end_exclusive: node.lease.end_exclusive,
            seconds_left: listed.seconds_left(node),
            held: node.held,
            implausible: listed.is_implausible(node.lease.end_exclusive),
            note: node.note.as_str(),
        };
        Self {
            now: listed.now,
            counts: None,
            limits: LimitsJson {
                max_ttl: limits.max_ttl,
                max_skew: limits.max_skew,
                node_ids: limits.node_ids.to_string(),
            },
            layout: &listed.layout,
            format: listed.format,
            floor: listed.floor,
            renew_above: listed.renew_above,
            incarnation_changed: listed.incarnation_changed,
            nodes: listed.nodes.iter().map(node).collect(),
        }
    }

    fn with_counts(self, listed: &Listed) -> Self {
        let Counts { all, held, waiting, free, implausible, .. } = listed.counts();
        Self { counts: Some(CountsJson { all, held, waiting, free, implausible }), ..self }
    }
}
