//! `randflake lease check`.

use std::{fmt::Write as _, sync::Arc};

use randflake::bindings;
use randflake_leases::{
    Finding,
    operator::{self, Listed, Node, NodeState},
};
use serde::Serialize;

use super::faults;
use crate::{
    Failure, OpenServer,
    node_id::node_id,
    output::{print, print_json},
    store::StoreArguments,
};

/// Checks a store for alerts: headroom, seconds left, implausible ends, quarantine
#[derive(clap::Args)]
#[command(after_help = "\
Prints a line for each fault, with what to do. Exit code 0: no fault; 3: a
fault; 1: the check itself failed, for example because the store is unreachable.
A running process renews its lease when two thirds are left. The lease of a
killed process runs out: to alert on certain processes only, name them with
--holder or --node. Those must then hold a lease.

--json prints one object: ok, now, free, held, least_seconds_left (null if no
lease counts), and faults, each with subject and text.

Examples:
  randflake lease check --store ids.db
  randflake lease check --store ids.db --min-free 1000 --min-seconds 60 --json")]
pub(crate) struct Check {
    #[command(flatten)]
    store: StoreArguments,

    /// How many node ids must be free to lease
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_free: u32,

    /// How many seconds each held lease must have left [default: not checked;
    /// with --holder or --node 1]
    #[arg(long, value_name = "M")]
    min_seconds: Option<u32>,

    /// Counts only the leases of these node ids, separated by commas
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = node_id())]
    node: Vec<u32>,

    /// Counts only the leases of this holder: a note as `lease list` shows it, or
    /// only its host
    #[arg(long, value_name = "NOTE")]
    holder: Option<String>,

    /// Prints JSON instead of lines
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let listed = operator::list(&mut *self.store.open(open_server)?)?;
        let faults = self.faults(&listed);
        let left = self.counted(&listed).map(|node| listed.seconds_left(node)).min();
        if self.json {
            print_json(&summary(&listed, &faults, left))?;
        } else if faults.is_empty() {
            let counts = listed.counts();
            let mut text =
                format!("ok: {} node ids can be leased, {} are held", counts.free, counts.held);
            if let Some(left) = left {
                let _ = write!(text, "; the shortest lease has {left} s left");
            }
            print(&text)?;
        } else {
            let lines = faults.iter().map(|fault| format!("{}: {}", fault.subject, fault.text));
            print(&lines.collect::<Vec<_>>().join("\n"))?;
        }
        if faults.is_empty() { Ok(()) } else { Err(Failure::Fault) }
    }

    fn faults(&self, listed: &Listed) -> Vec<Finding> {
        let mut faults = vec![];
        let free = listed.counts().free;
        if free < self.min_free {
            faults.push(Finding::wrong(
                "headroom",
                format!(
                    "{free} node ids can be leased, fewer than {}: find out with `randflake lease \
                     list` what is killed before it closes its generator, or how long leases last",
                    self.min_free
                ),
            ));
        }
        let is_named = !self.node.is_empty() || self.holder.is_some();
        if let Some(least) = self.min_seconds.or(is_named.then_some(1)) {
            for node in self.counted(listed) {
                let left = listed.seconds_left(node);
                if left < i64::from(least) {
                    let (node_id, note) =
                        (node.lease.node_id, bindings::one_line(node.note.as_str()));
                    faults.push(Finding::wrong(
                        "lease",
                        format!(
                            "node id {node_id}, held by {note}, has {left} s left, fewer than \
                             {least}: its holder has ended, or cannot reach the store; its log says \
                             which"
                        ),
                    ));
                }
            }
        }
        for node_id in &self.node {
            if !self.counted(listed).any(|node| node.lease.node_id == *node_id) {
                let text = format!("node id {node_id} is not held: start its holder");
                faults.push(Finding::wrong("lease", text));
            }
        }
        if let Some(holder) = &self.holder
            && !self.counted(listed).any(|node| self.is_of_holder(node))
        {
            let text = format!("{holder:?} holds no lease: start it, or check its log");
            faults.push(Finding::wrong("lease", text));
        }
        faults.extend(faults::of(listed));
        faults.extend(faults::history(listed).map(|text| Finding::wrong("history", text)));
        faults
    }

    /// Returns the held leases that count: all, or only the named ones.
    fn counted<'a>(&'a self, listed: &'a Listed) -> impl Iterator<Item = &'a Node> {
        let all = self.node.is_empty() && self.holder.is_none();
        listed.nodes.iter().filter(move |node| {
            listed.state(node) == NodeState::Held
                && (all || self.node.contains(&node.lease.node_id) || self.is_of_holder(node))
        })
    }

    fn is_of_holder(&self, node: &Node) -> bool {
        let name = node.note.as_str();
        self.holder.as_ref().is_some_and(|holder| {
            name == holder || name.rsplit_once(':').is_some_and(|(host, _)| host == holder)
        })
    }
}

/// What is found, as JSON.
#[derive(Serialize)]
struct SummaryJson<'a> {
    ok: bool,
    now: i64,
    free: u32,
    held: u32,
    least_seconds_left: Option<i64>,
    faults: Vec<FaultJson<'a>>,
}

#[derive(Serialize)]
struct FaultJson<'a> {
    subject: &'a str,
    text: &'a str,
}

fn summary<'a>(listed: &Listed, faults: &'a [Finding], left: Option<i64>) -> SummaryJson<'a> {
    let counts = listed.counts();
    let fault = |fault: &'a Finding| FaultJson { subject: fault.subject, text: &fault.text };
    SummaryJson {
        ok: faults.is_empty(),
        now: listed.now,
        free: counts.free,
        held: counts.held,
        least_seconds_left: left,
        faults: faults.iter().map(fault).collect(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use randflake::Secret;
    use randflake_leases::{MemoryStore, Namespace};

    use super::*;
    use crate::{
        arguments::{Arguments, Command},
        lease::Lease,
    };

    #[test]
    fn a_server_that_the_next_lease_fences_is_a_fault() {
        let arguments = Arguments::try_parse_from(["lease", "check"]).expect("right usage");
        let Command::Lease(Lease::Check(check)) = arguments.command else {
            panic!("another command");
        };
        let namespace = Namespace::new("default", &Secret::random()).expect("a namespace");
        let mut listed = operator::list(&mut MemoryStore::new(namespace)).expect("a listing");
        assert_eq!(check.faults(&listed).len(), 0);
        listed.incarnation_changed = true;
        let faults = check.faults(&listed);
        assert_eq!(faults.iter().map(|fault| fault.subject).collect::<Vec<_>>(), ["history"]);
    }
}
