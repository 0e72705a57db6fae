//! Ids that users write: as numbers or in the text form, as arguments or as lines of the input.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::{ValueEnum, error::ErrorKind as Wrong};
use randflake::{Id, Result, bindings};

use crate::{Failure, output, usage};

/// How an id is written.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum IdFormat {
    Int,
    String,
}

/// Does something for each of these ids, or for each line of standard input if there are none.
/// Reports those for which it fails, and goes on with the others.
pub(crate) fn each(
    ids: &[String],
    mut write: impl FnMut(&str, &mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut out = output::stdout();
    let mut failed = false;
    let mut one = |id: &str| match write(id, &mut out) {
        Err(Failure::Error(error)) => {
            // Keeps the order of the lines where both streams are shown together.
            out.flush()?;
            failed = true;
            let id: String = id.chars().take(40).collect();
            output::report(error.code(), &format_args!("{id:?}: {error}"));
            Ok(())
        }
        done => done,
    };
    if ids.is_empty() {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            output::notify(&"reading ids from the keyboard, one per line, until Ctrl-D");
        }
        for line in stdin.lock().split(b'\n') {
            let line = line.map_err(|error| {
                usage(Wrong::Io, format_args!("cannot read the ids from standard input: {error}"))
            })?;
            let id = String::from_utf8_lossy(line.trim_ascii());
            if !id.is_empty() {
                one(&id)?;
            }
        }
    }
    ids.iter().try_for_each(|id| one(id))?;
    out.flush()?;
    if failed { Err(Failure::Reported) } else { Ok(()) }
}

/// Reads an id as a number or in the text form. Digits that could be either need a format.
pub(crate) fn parse(id: &str, format: Option<IdFormat>) -> Result<Id> {
    match format {
        Some(IdFormat::Int) => bindings::parse_number(id),
        Some(IdFormat::String) => id.parse(),
        None => bindings::parse_id(id, "pass --format int or --format string"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_that_mean_two_ids_need_a_format() {
        let number = |number| Some(Id::from(number));
        let cases = [
            ("4594531474933654033", None, number(4_594_531_474_933_654_033)),
            ("-5", None, number(-5)),
            ("3vgoe12ccb8gh", None, number(4_594_531_474_933_654_033)),
            ("1234567890123", None, None),
            ("1234567890123", Some(IdFormat::Int), number(1_234_567_890_123)),
            ("1234567890123", Some(IdFormat::String), "1234567890123".parse().ok()),
            // Both forms mean the same number.
            ("7", None, number(7)),
            ("10", None, None),
            // No text form has a leading zero.
            ("007", None, number(7)),
            ("9223372036854775808", None, None),
            ("", None, None),
            ("-", None, None),
            ("abc", Some(IdFormat::Int), None),
            ("ABC", None, None),
        ];
        for (text, format, expected) in cases {
            assert_eq!(parse(text, format).ok(), expected, "{text:?}");
        }
    }
}
