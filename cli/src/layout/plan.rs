//! `randflake layout plan`.

use std::fmt::Write as _;

use jiff::{Timestamp, civil, tz::Offset};
use randflake::{Field, Layout};

use super::show::shown;
use crate::{Failure, output::print, usage};

/// Plans a layout: how many bits your nodes, your ids and your years need
#[derive(clap::Args)]
#[command(
    override_usage = "\
randflake layout plan [OPTIONS] --nodes <N> --ids-per-second <N>
                             --years <N>",
    after_help = "\
A node id is leased by one process at a time. That of a killed process stays
reserved for --ttl seconds, so restarts need some more. Without leases, as with
UidGenerator, each start takes a new node id for good: see --no-reuse.

The ids of one process are counted in the busiest second, and spread over its
ticks: a burst in one tick waits for the next ones. Bits that are left over stay
zero: give them to the field that may grow, and try the text of the result with
`randflake layout show`.

Examples:
  randflake layout plan --nodes 500 --ids-per-second 2000 --years 60
  randflake layout plan --nodes 30 --ids-per-second 8000 --years 10 \\
    --restarts-per-day 12 --no-reuse"
)]
pub(crate) struct Plan {
    /// Processes that generate ids at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    nodes: u32,

    /// Ids of one process in its busiest second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ids_per_second: u32,

    /// For how long ids will be made
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=290))]
    years: u32,

    /// How often one process is started in a day
    #[arg(long, value_name = "N", default_value_t = 0)]
    restarts_per_day: u32,

    /// Each start takes a node id that no process has had before
    #[arg(long)]
    no_reuse: bool,

    /// Length of a lease
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    ttl: u32,

    /// Length of a tick, in milliseconds [default: 1, or 10, 100 or 1000 where that fits]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=86_400_000))]
    tick_ms: Option<u32>,

    /// Where ids are unsigned: 64 bits instead of 63
    #[arg(long)]
    unsigned: bool,

    /// Unix milliseconds at which the time begins [default: the beginning of this year]
    #[arg(long, value_name = "MS")]
    epoch_ms: Option<i64>,
}

const DAY_MS: u128 = 86_400_000;
/// Of a year, rounded up: what is planned lasts at least that long.
const YEAR_MS: u128 = 366 * DAY_MS;
/// The most bits of a node id or a sequence.
const MOST: u32 = 32;

/// Bits that are needed.
struct Needed {
    tick_ms: u32,
    time: u32,
    node: u32,
    sequence: u32,
}

impl Needed {
    fn all(&self) -> u32 {
        self.time + self.node + self.sequence
    }
}

impl Plan {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let most = if self.unsigned { 64 } else { 63 };
        let ticks = self.tick_ms.map_or_else(|| vec![1, 10, 100, 1000], |tick_ms| vec![tick_ms]);
        let plans: Vec<_> = ticks.into_iter().map(|tick_ms| self.needed(tick_ms)).collect();
        let fits = |plan: &&Needed| {
            plan.all() <= most && plan.node <= MOST && plan.sequence <= MOST && plan.time <= 61
        };
        let Some(plan) = plans.iter().find(fits) else {
            let least = plans.iter().min_by_key(|plan| plan.all()).expect("there is one");
            return Err(usage(
                clap::error::ErrorKind::ValueValidation,
                format_args!(
                    "this needs {} bits, and there are {most}: {} for the time, {} for {} node ids, \
                     {} for the\nids of a tick; lower --years, --nodes, --ids-per-second or \
                     --restarts-per-day{}",
                    least.all(),
                    least.time,
                    least.node,
                    self.node_ids(),
                    least.sequence,
                    if self.no_reuse { ", or lease node ids" } else { "" }
                ),
            ));
        };
        let layout = self.layout(plan)?;
        let mut text = shown(&layout);
        let over = most - plan.all();
        let _ = writeln!(text, "\nneeded: {} node ids, for {} years", self.node_ids(), self.years);
        let _ = match over {
            0 => writeln!(text, "no bit is left over"),
            _ => writeln!(
                text,
                "{over} bits are left over; each doubles the node ids, the ids or the years"
            ),
        };
        if plan.all() <= 53 {
            text += "ids are safe as JavaScript's numbers\n";
        }
        print(&text.trim_end())
    }

    fn needed(&self, tick_ms: u32) -> Needed {
        let ticks = (u128::from(self.years) * YEAR_MS).div_ceil(tick_ms.into());
        let per_tick = (u128::from(self.ids_per_second) * u128::from(tick_ms)).div_ceil(1000);
        Needed {
            tick_ms,
            time: bits_for(ticks),
            // Without node ids there is nothing to lease.
            node: bits_for(self.node_ids()).max(1),
            sequence: bits_for(per_tick),
        }
    }

    /// Returns how many node ids are needed.
    fn node_ids(&self) -> u128 {
        let (nodes, restarts) = (u128::from(self.nodes), u128::from(self.restarts_per_day));
        if self.no_reuse {
            let days = u128::from(self.years) * 366;
            return nodes + nodes * restarts * days;
        }
        let reserved = (nodes * restarts * u128::from(self.ttl)).div_ceil(86_400);
        nodes + reserved.min(nodes * restarts)
    }

    fn layout(&self, plan: &Needed) -> Result<Layout, Failure> {
        let this_year = || {
            let year = Offset::UTC.to_datetime(Timestamp::now()).year();
            let day = Offset::UTC.to_timestamp(civil::date(year, 1, 1).at(0, 0, 0, 0)).ok()?;
            Some(day.as_millisecond())
        };
        let epoch_ms = self.epoch_ms.or_else(this_year).unwrap_or(0);
        let fields =
            [(Field::Time, plan.time), (Field::Node, plan.node), (Field::Sequence, plan.sequence)];
        let layout = Layout::custom(fields).tick_ms(plan.tick_ms).epoch_ms(epoch_ms);
        Ok(layout.unsigned(self.unsigned).build()?)
    }
}

/// Returns the bits of a field with so many values.
fn bits_for(values: u128) -> u32 {
    128 - values.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_the_bits_of_its_largest_value() {
        let cases = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11)];
        for (values, bits) in cases {
            assert_eq!(bits_for(values), bits, "{values}");
        }
    }
}
