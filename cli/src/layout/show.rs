//! `randflake layout show`.

use std::{fmt::Write as _, io};

use jiff::Timestamp;
use randflake::{Field, Layout, Sequence, bindings};

use crate::{
    Failure,
    output::{Style, print},
};

/// Shows a layout: its fields, how long it lasts, and how many ids it has
#[derive(clap::Args)]
#[command(after_help = "\
--json prints one object, or an array of all.

Examples:
  randflake layout show
  randflake layout show twitter
  randflake layout show twitter,epoch_ms=1577836800000 --json
  randflake layout show time:29,node:21,sequence:13,tick_ms=1000")]
pub(crate) struct Show {
    /// A name, or the text of another layout [default: lists all names]
    #[arg(value_name = "LAYOUT")]
    layout: Option<String>,

    /// Prints JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let Some(text) = &self.layout else {
            let all: Vec<_> = Layout::PRESETS.iter().map(bindings::layout_json).collect();
            let all = format!("[{}]", all.join(","));
            return if self.json { print(&all) } else { print(&list().trim_end()) };
        };
        let layout: Layout = text.parse()?;
        if self.json {
            print(&bindings::layout_json(&layout))
        } else {
            print(&shown(&layout).trim_end())
        }
    }
}

fn list() -> String {
    let head = format!(
        "{:11}  {:>4}  {:>4}  {:>8}  {:>8}  {:19}  {:10}",
        "name", "time", "node", "sequence", "tick", "begins", "ends"
    );
    let mut text = Style::BOLD.paint(head.trim_end(), &io::stdout()) + "\n";
    for layout in Layout::PRESETS {
        let _ = writeln!(
            text,
            "{:11}  {:>4}  {:>4}  {:>8}  {:>5} ms  {:19}  {:10}",
            layout.name(),
            layout.time_bits(),
            layout.node_bits(),
            layout.sequence_bits(),
            layout.tick_ms(),
            date(layout.epoch_ms(), "%Y-%m-%d %H:%M:%S"),
            date(layout.ends_at(), "%Y-%m-%d"),
        );
    }
    text
}

pub(super) fn shown(layout: &Layout) -> String {
    let mut text = format!("{layout}\n\n");
    for (field, bits) in layout.fields() {
        let what = match field {
            Field::Time => format!(
                "ticks of {} ms, from {} to {}",
                layout.tick_ms(),
                date(layout.epoch_ms(), "%Y-%m-%d %H:%M:%S"),
                date(layout.ends_at(), "%Y-%m-%d %H:%M:%S UTC"),
            ),
            Field::Node => {
                let split = layout.node_split();
                let split = split.map(|(datacenter, worker)| {
                    format!(": a datacenter of {datacenter} bits, a worker of {worker}")
                });
                let nodes = u64::from(layout.max_node_id()) + 1;
                format!("{nodes} node ids{}", split.unwrap_or_default())
            }
            Field::Sequence => match layout.sequence() {
                Sequence::Zero => "begins at 0 in each tick".to_owned(),
                Sequence::Continuing => "continues from tick to tick".to_owned(),
                Sequence::Random(starts) => format!("begins at 0 to {} in each tick", starts - 1),
            },
        };
        let _ = writeln!(text, "{:8}  {bits:>2} bits  {what}", field.name());
    }
    let (per_tick, tick_ms) = (layout.ids_per_node(), u64::from(layout.tick_ms()));
    let per_second = match per_tick * 1000 / tick_ms {
        0 => format!("one in {} s", tick_ms / 1000 / per_tick),
        rate => format!("{rate} a second"),
    };
    let ids = if per_tick == 1 { "id" } else { "ids" };
    let _ = writeln!(text, "\n{per_tick} {ids} a tick for each node id: {per_second}");
    let negative = match (layout.is_unsigned(), layout.negative_from()) {
        (false, _) => "ids are positive in a BIGINT column".to_owned(),
        (true, Some(from)) => format!(
            "ids are negative in a BIGINT column from {} on",
            date(from, "%Y-%m-%d %H:%M:%S UTC")
        ),
        (true, None) => "some ids are negative in a BIGINT column".to_owned(),
    };
    text += &negative;
    if let Err(error) = layout.check_generates() {
        let _ = write!(text, "\nonly for reading: {error}");
    }
    text + "\n"
}

/// Returns a time in UTC, or unix milliseconds beyond the calendar.
fn date(unix_ms: i64, format: &str) -> String {
    match Timestamp::from_millisecond(unix_ms) {
        Ok(time) => time.strftime(format).to_string(),
        Err(_) => format!("{unix_ms} ms"),
    }
}
