//! Faults in a store's listing, and what to do about them.

use randflake_leases::{Finding, operator::Listed};

use crate::output::utc;

/// How many ends are named one by one.
const MOST_NAMED: usize = 10;

/// Says what the next lease does after a change of the server's history.
pub(super) fn history(listed: &Listed) -> Option<String> {
    let next = if listed.has_counters() {
        "each counter has to be fenced: `randflake tickets fence`"
    } else {
        "the next lease puts the namespace into quarantine"
    };
    let text = "the server is not the same as before, or was set back in time";
    listed.incarnation_changed.then(|| format!("{text}: {next}"))
}

/// Finds implausible ends and a quarantine.
pub(super) fn of(listed: &Listed) -> Vec<Finding> {
    let mut found = vec![];
    if listed.has_counters() {
        return found; // it has no ends or quarantine, and nothing waits for its floor
    }
    if listed.is_clock_doubtful() {
        found.push(Finding::wrong(
            "clock",
            format!(
                "most held ends look implausible, so the clock that shows {} is probably wrong: \
                 set it",
                utc(listed.now)
            ),
        ));
    } else {
        let ends = listed.nodes.iter().map(|node| node.lease);
        let implausible =
            || ends.clone().filter(|lease| listed.is_implausible(lease.end_exclusive));
        found.extend(implausible().take(MOST_NAMED).map(|lease| {
            let (node_id, end) = (lease.node_id, utc(lease.end_exclusive));
            Finding::wrong(
                "end",
                format!(
                    "node id {node_id} is reserved until {end}, which only a wrong clock can have \
                     set: correct that clock, then run `randflake lease repair --node {node_id}`"
                ),
            )
        }));
        let more = implausible().count().saturating_sub(MOST_NAMED);
        if more > 0 {
            let text = format!("{more} more like that: `randflake lease list --all` lists them");
            found.push(Finding::wrong("end", text));
        }
    }
    if listed.is_floor_implausible() {
        found.push(Finding::wrong(
            "quarantine",
            format!(
                "nothing is granted until {}, which only a wrong clock can have set: correct that \
                 clock, then run `randflake lease repair --floor`",
                utc(listed.floor)
            ),
        ));
    } else if listed.floor > listed.now {
        found.push(Finding::wrong(
            "quarantine",
            format!(
                "nothing is granted for {} s, until {}, because earlier leases may be running: wait",
                listed.floor - listed.now,
                utc(listed.floor)
            ),
        ));
    }
    found
}
