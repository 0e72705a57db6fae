//! Ids that users write: as numbers or in the text form, as arguments or as lines of the input.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::{ValueEnum, error::ErrorKind as Wrong};
use randflake::{Error, ErrorKind, Id, Result, bindings};

use crate::{Failure, output, usage};

/// How an id is written.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum IdFormat {
    Int,
    String,
}

/// The longest word that is taken for a header: one in 16 000 ids is this short, and few of those
/// have no digit.
const LONGEST_HEADER: usize = 10;

/// What the input contains other than ids.
#[derive(clap::Args)]
pub(crate) struct InputArguments {
    /// Skips the first line of the input, as in a CSV file
    #[arg(long)]
    skip_header: bool,
}

/// Does something for each of these ids, or for each line of standard input if there are none.
/// Reports those for which it fails, and continues with the others.
pub(crate) fn each(
    ids: &[String],
    input: &InputArguments,
    prefix: Option<&str>,
    mut write: impl FnMut(&str, &mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut out = output::stdout();
    let mut failed = false;
    let mut one = |id: &str, is_header: bool| match without_prefix(id, prefix, is_header)
        .map_err(Failure::from)
        .and_then(|id| write(id, &mut out))
    {
        Err(Failure::Error(error)) => {
            // Keeps the lines in order if both streams are shown together.
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
        let mut is_first = true;
        for line in stdin.lock().split(b'\n') {
            let line = line.map_err(|error| {
                usage(Wrong::Io, format_args!("cannot read the ids from standard input: {error}"))
            })?;
            // A byte order mark, which some programs write before the first line.
            let line = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| is_first).unwrap_or(&line);
            let id = String::from_utf8_lossy(line.trim_ascii());
            if id.is_empty() {
                continue;
            }
            if !is_first {
                one(&id, false)?;
            } else if !input.skip_header {
                one(&id, is_header(&id))?;
            }
            is_first = false;
        }
    }
    ids.iter().try_for_each(|id| one(id, false))?;
    out.flush()?;
    if failed { Err(Failure::Reported) } else { Ok(()) }
}

/// Returns whether a line names a column: many names, such as `id` and `code`, are ids in the text form.
fn is_header(line: &str) -> bool {
    line.len() <= LONGEST_HEADER
        && line.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

fn without_prefix<'a>(id: &'a str, prefix: Option<&str>, is_header: bool) -> Result<&'a str> {
    let refused = |why: String| Err(Error::new(ErrorKind::InvalidId, why));
    if is_header {
        return refused(
            "this first line looks like the name of a column; pass --skip-header, or, if it is an id, \
             as an argument"
                .to_owned(),
        );
    }
    let Some(prefix) = prefix else { return Ok(id) };
    match id.strip_prefix(prefix) {
        Some(rest) => Ok(rest),
        None => refused(format!("it does not begin with the prefix {prefix:?}")),
    }
}

/// Reads an id as a number or in the text form. Digits that could be either need a format.
pub(crate) fn parse(id: &str, format: Option<IdFormat>) -> Result<Id> {
    match format {
        // Unsigned columns and many languages show ids that are negative here like this.
        Some(IdFormat::Int) | None if id.parse::<i64>().is_err() && id.parse::<u64>().is_ok() => {
            bindings::parse_raw(id).map(|number| Id::from(number.cast_signed()))
        }
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
            // Both forms give the same number.
            ("7", None, number(7)),
            ("10", None, None),
            // No text form has a leading zero.
            ("007", None, number(7)),
            ("9223372036854775808", None, number(i64::MIN)),
            ("18446744073709551615", Some(IdFormat::Int), number(-1)),
            ("18446744073709551615", Some(IdFormat::String), None),
            ("18446744073709551616", None, None),
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
