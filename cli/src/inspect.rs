//! `randflake inspect`.

use std::io::{self, Write};

use clap::error::ErrorKind as Wrong;
use jiff::{Timestamp, tz::TimeZone};
use randflake::{Clock as _, Inspector, Layout, Lease, Result, SystemClock, bindings};

use crate::{
    Failure,
    ids::{self, IdFormat, InputArguments},
    layout::LayoutArguments,
    output::Style,
    secret::SecretArguments,
    usage,
};

/// Reads ids: when each was made, by which node id, and its sequence
#[derive(clap::Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "\
Every number can be read, but the result is meaningful only for ids made with
this secret. Most others show a time in the future. The time of a valid id may
also be ahead of the clock, by up to 10 seconds or the generator's max_drift.

--json prints id, a string, text, timestamp, utc, local, node_id, sequence and
plausible; with --layout it has unix_ms in place of text and timestamp.

Examples:
  randflake inspect --secret-file secret.hex 3vgoe12ccb8gh
  randflake inspect -6187568801575574419 4594531474933654033
  randflake inspect --json < ids
  randflake inspect --layout twitter 1541815603606036480"
)]
pub(crate) struct Inspect {
    /// Ids, as numbers or in the text form [default: one per line of the input]
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    /// How the ids are written; needed where digits may be either
    #[arg(long, value_enum)]
    format: Option<IdFormat>,

    /// Prints JSON, one line per id, instead of a table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    layout: LayoutArguments,

    /// Removes this from the beginning of each id
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    secret: SecretArguments,
}

/// How to read ids.
#[allow(clippy::large_enum_variant, reason = "there is only one")]
enum Reader {
    Encrypted { inspector: Inspector, format: Option<IdFormat> },
    Layout(Layout),
}

/// An id and its parts.
struct InspectedId {
    /// As a decimal number.
    id: String,
    /// Only for encrypted ids.
    text: Option<String>,
    unix_ms: i64,
    node_id: u32,
    sequence: u32,
}

impl Inspect {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let reader = match self.layout.read(&self.secret)? {
            Some(_) if self.format.is_some() => {
                return Err(usage(
                    Wrong::ArgumentConflict,
                    "ids of a layout are numbers, so --format cannot be used with it",
                ));
            }
            Some(layout) => Reader::Layout(layout),
            None => Reader::Encrypted {
                inspector: Inspector::new(&self.secret.read()?),
                format: self.format,
            },
        };
        let mut printer =
            Printer { json: self.json, zone: TimeZone::system(), has_head: self.json };
        ids::each(&self.ids, &self.input, self.prefix.as_deref(), |id, out| {
            printer.print(&reader.read(id)?, out)
        })
    }
}

impl Reader {
    fn read(&self, id: &str) -> Result<InspectedId> {
        match self {
            Self::Encrypted { inspector, format } => {
                let id = ids::parse(id, *format)?;
                let parts = inspector.inspect(id);
                Ok(InspectedId {
                    id: i64::from(id).to_string(),
                    text: Some(id.to_string()),
                    unix_ms: parts.timestamp * 1000,
                    node_id: parts.node_id,
                    sequence: parts.sequence,
                })
            }
            Self::Layout(layout) => {
                let parts = layout.inspect(bindings::parse_raw(id)?)?;
                Ok(InspectedId {
                    id: id.to_owned(),
                    text: None,
                    unix_ms: parts.unix_ms,
                    node_id: parts.node_id,
                    sequence: parts.sequence,
                })
            }
        }
    }
}

struct Printer {
    json: bool,
    zone: TimeZone,
    /// Whether the header of the table has been printed.
    has_head: bool,
}

impl Printer {
    fn print(&mut self, inspected: &InspectedId, out: &mut dyn Write) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.has_head, true) {
            head(out)?;
        }
        let now_ms = SystemClock.now()? / 1_000_000;
        Ok(out.write_all(self.line(inspected, now_ms).as_bytes())?)
    }

    fn line(&self, inspected: &InspectedId, now_ms: i64) -> String {
        let InspectedId { id, text, unix_ms, node_id, sequence } = inspected;
        // Every layout ends long before the end of the calendar.
        let time = Timestamp::from_millisecond(*unix_ms).unwrap_or(Timestamp::MAX);
        let offset = self.zone.to_offset(time);
        let ahead_ms = unix_ms - now_ms;
        let plausible = ahead_ms <= i64::from(Lease::MAX_DRIFT) * 1000;
        if self.json {
            let stamp = match text {
                Some(text) => format!(r#""text":"{text}","timestamp":{}"#, unix_ms / 1000),
                None => format!(r#""unix_ms":{unix_ms}"#),
            };
            let local = time.display_with_offset(offset);
            let when = format!(r#""utc":"{time}","local":"{local}""#);
            let which = format!(r#""node_id":{node_id},"sequence":{sequence}"#);
            return format!(r#"{{"id":"{id}",{stamp},{when},{which},"plausible":{plausible}}}"#)
                + "\n";
        }
        let show = |offset: jiff::tz::Offset| {
            offset.to_datetime(time).strftime("%Y-%m-%d %H:%M:%S").to_string()
        };
        let (utc, local) = (show(jiff::tz::Offset::UTC), show(offset));
        let note = if plausible && ahead_ms <= 0 {
            String::new()
        } else if plausible {
            format!("  {} s ahead of this clock, which max_drift may explain\n", ahead_ms / 1000)
        } else {
            let hours = ahead_ms.unsigned_abs().div_ceil(3_600_000);
            let span =
                if hours < 48 { format!("{hours} hours") } else { format!("{} days", hours / 24) };
            let other = if text.is_some() { "secret" } else { "layout" };
            format!("  {span} in the future: made with another {other}, or not an id\n")
        };
        format!("{id:>20}  {utc}  {local}  {node_id:>6}  {sequence:>8}\n{note}")
    }
}

fn head(out: &mut dyn Write) -> io::Result<()> {
    let head = format!(
        "{:>20}  {:19}  {:19}  {:>6}  {:>8}",
        "id", "time (UTC)", "local time", "node", "sequence"
    );
    writeln!(out, "{}", Style::BOLD.paint(&head, &io::stdout()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printer(json: bool) -> Printer {
        Printer { json, zone: TimeZone::fixed(jiff::tz::offset(2)), has_head: json }
    }

    fn inspected() -> InspectedId {
        InspectedId {
            id: "4594531474933654033".into(),
            text: Some("3vgoe12ccb8gh".into()),
            unix_ms: 1_733_706_297_000,
            node_id: 42,
            sequence: 1,
        }
    }

    #[test]
    fn times_ahead_of_the_clock_are_explained() {
        let hour = i64::from(Lease::MAX_DRIFT) * 1000;
        let stamp = inspected().unix_ms;
        let row =
            " 4594531474933654033  2024-12-09 01:04:57  2024-12-09 03:04:57      42         1\n";
        let cases = [
            (stamp, String::new()),
            (stamp - 7_000, "  7 s ahead of this clock, which max_drift may explain\n".into()),
            (stamp - hour, "  3600 s ahead of this clock, which max_drift may explain\n".into()),
            (
                stamp - hour - 1,
                "  2 hours in the future: made with another secret, or not an id\n".into(),
            ),
            (
                stamp - 86_400_000 * 365,
                "  365 days in the future: made with another secret, or not an id\n".into(),
            ),
        ];
        for (now_ms, note) in cases {
            assert_eq!(
                printer(false).line(&inspected(), now_ms),
                format!("{row}{note}"),
                "{now_ms}"
            );
            let plausible = now_ms >= stamp - hour;
            let json: serde_json::Value =
                serde_json::from_str(&printer(true).line(&inspected(), now_ms)).expect("JSON");
            assert_eq!(json["plausible"], plausible, "{now_ms}");
            assert_eq!(json["local"], "2024-12-09T03:04:57+02:00");
            assert_eq!(json["utc"], "2024-12-09T01:04:57Z");
        }
    }

    #[test]
    fn rows_have_80_columns() {
        let widest = InspectedId {
            id: i64::MIN.to_string(),
            text: Some("8000000000000".into()),
            unix_ms: 2_803_741_823_000,
            node_id: 131_071,
            sequence: 131_071,
        };
        assert_eq!(printer(false).line(&widest, i64::MAX).len(), 81, "with the line feed");
    }
}
