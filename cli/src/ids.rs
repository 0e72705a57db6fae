//! Ids that users write: as numbers or in the text form, as arguments or as lines of the input.

use std::{
    fmt::Display,
    io::{self, BufRead, IsTerminal, Read, Stdin, Write},
};

use clap::{ValueEnum, error::ErrorKind as Wrong};
use csv::{ReaderBuilder, StringRecord};
use randflake::{Error, ErrorKind, Id, Result, Secret, bindings};

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
#[derive(Clone, clap::Args)]
pub(crate) struct InputArguments {
    /// Reads the input as CSV, and the ids in this column: its name in the first
    /// line, or its number from 1
    #[arg(long, value_name = "COLUMN", conflicts_with = "ids")]
    column: Option<String>,

    /// Skips the first line of the input, which has names of columns
    #[arg(long)]
    skip_header: bool,

    /// The symbols of codes, and how many each has: these name no column.
    #[arg(skip)]
    codes: (String, usize),
}

impl InputArguments {
    /// Adds the symbols and the length of codes, which may look like the name of a column.
    pub(crate) fn with_codes(&self, symbols: &str, length: usize) -> Self {
        Self { codes: (symbols.to_owned(), length), ..self.clone() }
    }

    /// Returns whether a line names a column: many names, such as `id` and `code`, are ids in the
    /// text form.
    fn is_header(&self, line: &str) -> bool {
        !line.is_empty()
            && line.len() <= LONGEST_HEADER
            && line.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && !(line.len() == self.codes.1
                && line.chars().all(|symbol| self.codes.0.contains(symbol)))
    }
}

/// What is done with the ids of an input, in their order.
struct Ids<'a> {
    prefix: Option<&'a str>,
    has_failed: bool,
}

impl Ids<'_> {
    /// Does something for an id. If that fails, reports it and returns nothing.
    fn one<T>(
        &mut self,
        id: &str,
        is_header: bool,
        out: &mut dyn Write,
        act: impl FnOnce(&str, &mut dyn Write) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let bare = without_prefix(id, self.prefix, is_header).map_err(Failure::from);
        match bare.and_then(|id| act(id, out)) {
            Err(Failure::Error(error)) => {
                // Keeps the lines in order if both streams are shown together.
                out.flush()?;
                self.has_failed = true;
                let what = if could_be_a_secret(id) {
                    "text that could be a secret, which is not shown".to_owned()
                } else {
                    format!("{:?}", id.chars().take(40).collect::<String>())
                };
                output::report(error.code(), &format_args!("{what}: {error}"));
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    fn end(&self, out: &mut dyn Write) -> Result<(), Failure> {
        out.flush()?;
        if self.has_failed { Err(Failure::Reported) } else { Ok(()) }
    }
}

/// Does something for each of these ids, or for each in the standard input if there are none. Reports
/// those for which it fails, and continues with the others.
pub(crate) fn each(
    ids: &[String],
    input: &InputArguments,
    prefix: Option<&str>,
    mut write: impl FnMut(&str, &mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut out = output::stdout();
    let mut all = Ids { prefix, has_failed: false };
    if let Some(column) = &input.column {
        let mut rows = Rows::open(column, input)?;
        while let Some((id, is_header)) = rows.next()? {
            if !id.is_empty() {
                all.one(&id, is_header, &mut out, &mut write)?;
            }
        }
    } else if ids.is_empty() {
        lines(input, |id, is_header| all.one(id, is_header, &mut out, &mut write).map(drop))?;
    }
    for id in ids {
        all.one(id, false, &mut out, &mut write)?;
    }
    all.end(&mut out)
}

/// Writes what each of these ids is converted to, in a line of its own; of CSV all columns, with that of
/// the ids converted. As [`each`] otherwise: a row whose id cannot be converted is left out, and one
/// without an id stays as it is.
pub(crate) fn convert(
    ids: &[String],
    input: &InputArguments,
    prefix: Option<&str>,
    mut convert: impl FnMut(&str) -> Result<String>,
) -> Result<(), Failure> {
    let Some(column) = &input.column else {
        return each(ids, input, prefix, |id, out| Ok(writeln!(out, "{}", convert(id)?)?));
    };
    let mut out = output::stdout();
    let mut all = Ids { prefix, has_failed: false };
    let mut rows = Rows::open(column, input)?;
    rows.header.as_ref().map_or(Ok(()), |names| write_row(&mut out, names))?;
    while let Some((id, is_header)) = rows.next()? {
        if id.is_empty() {
            write_row(&mut out, &rows.row)?; // it has none, as in a column that may be null
            continue;
        }
        let converted = all.one(&id, is_header, &mut out, |id, _| Ok(convert(id)?))?;
        if let Some(converted) = converted {
            let at = rows.column;
            let changed = rows.row.iter().enumerate();
            let changed =
                changed.map(|(index, value)| if index == at { &*converted } else { value });
            write_row(&mut out, &changed.collect())?;
        }
    }
    all.end(&mut out)
}

fn write_row(out: &mut dyn Write, row: &StringRecord) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_writer(vec![]);
    writer.write_record(row).map_err(|error| unreadable(&error))?;
    let written = writer.into_inner().map_err(|error| unreadable(&error))?;
    Ok(out.write_all(&written)?)
}

/// The standard input, and whether a quote in it has not ended.
struct Quotes {
    stdin: Stdin,
    is_open: bool,
}

impl Default for Quotes {
    fn default() -> Self {
        Self { stdin: io::stdin(), is_open: false }
    }
}

impl Read for Quotes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stdin.read(buffer)?;
        self.is_open =
            buffer[..count].iter().fold(self.is_open, |open, byte| open ^ (*byte == b'"'));
        Ok(count)
    }
}

/// The rows of CSV in the standard input.
struct Rows<'a> {
    input: &'a InputArguments,
    reader: csv::Reader<Quotes>,
    /// What follows the last row that was read.
    ahead: Option<StringRecord>,
    /// The names of the columns, if there are any.
    header: Option<StringRecord>,
    /// Where the ids are.
    column: usize,
    row: StringRecord,
    is_first: bool,
}

impl<'a> Rows<'a> {
    /// Finds the column.
    fn open(column: &str, input: &'a InputArguments) -> Result<Self, Failure> {
        let reader =
            ReaderBuilder::new().has_headers(false).flexible(true).from_reader(Quotes::default());
        let mut rows = Self {
            input,
            reader,
            ahead: None,
            header: None,
            column: 0,
            row: StringRecord::new(),
            is_first: true,
        };
        rows.ahead = rows.read_one()?;
        let number = column.parse::<usize>().ok();
        if input.skip_header || number.is_none() {
            let mut names = StringRecord::new();
            rows.read_into(&mut names)?;
            rows.header = Some(names);
            rows.is_first = false;
        }
        if let Some(number) = number {
            rows.column = number.checked_sub(1).ok_or_else(|| {
                usage(Wrong::ValueValidation, "the first column has the number 1")
            })?;
            return Ok(rows);
        }
        let names = rows.header.iter().flatten();
        let found: Vec<_> = names.enumerate().filter(|(_, name)| *name == column).collect();
        let [(at, _)] = found[..] else {
            let names: Vec<_> = rows.header.iter().flatten().collect();
            return Err(usage(
                Wrong::ValueValidation,
                format_args!(
                    "{} column of the first line is named {column:?}; it has {}",
                    if found.is_empty() { "no" } else { "more than one" },
                    names.join(", ")
                ),
            ));
        };
        rows.column = at;
        Ok(rows)
    }

    /// Reads a row. One with a quote that does not end would contain all rows after it: that is seen
    /// at the end of the input, so the row that follows is read first.
    fn read_into(&mut self, row: &mut StringRecord) -> Result<bool, Failure> {
        let Some(next) = self.ahead.take() else { return Ok(false) };
        *row = next;
        self.ahead = self.read_one()?;
        if self.ahead.is_none() && self.reader.get_ref().is_open {
            let line = row.position().map_or(0, csv::Position::line);
            return Err(usage(
                Wrong::ValueValidation,
                format_args!(
                    "a quote in the row that begins in line {line} of the input does not end"
                ),
            ));
        }
        Ok(true)
    }

    fn read_one(&mut self) -> Result<Option<StringRecord>, Failure> {
        let mut row = StringRecord::new();
        let is_there = self.reader.read_record(&mut row).map_err(|error| unreadable(&error))?;
        Ok(is_there.then_some(row))
    }

    /// Returns the next id, and whether it looks like the name of a column.
    fn next(&mut self) -> Result<Option<(String, bool)>, Failure> {
        let mut row = std::mem::take(&mut self.row);
        let is_there = self.read_into(&mut row)?;
        self.row = row;
        if !is_there {
            return Ok(None);
        }
        let Some(id) = self.row.get(self.column) else {
            let line = self.row.position().map_or(0, csv::Position::line);
            return Err(usage(
                Wrong::ValueValidation,
                format_args!(
                    "line {line} of the input has {} columns, and the ids are to be in column {}",
                    self.row.len(),
                    self.column + 1
                ),
            ));
        };
        let is_header =
            std::mem::replace(&mut self.is_first, false) && self.input.is_header(id.trim());
        Ok(Some((id.trim().to_owned(), is_header)))
    }
}

/// Does something for each line of the standard input, and says whether it looks like the name of a
/// column.
fn lines(
    input: &InputArguments,
    mut one: impl FnMut(&str, bool) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        output::notify(&"reading ids from the keyboard, one per line, until Ctrl-D");
    }
    let mut is_first = true;
    for line in stdin.lock().split(b'\n') {
        let line = line.map_err(|error| unreadable(&error))?;
        // A byte order mark, which some programs write before the first line.
        let line = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| is_first).unwrap_or(&line);
        let id = String::from_utf8_lossy(line.trim_ascii());
        if id.is_empty() {
            continue;
        }
        if !is_first {
            one(&id, false)?;
        } else if !input.skip_header {
            one(&id, input.is_header(&id))?;
        }
        is_first = false;
    }
    Ok(())
}

#[cold]
fn unreadable(error: &dyn Display) -> Failure {
    usage(Wrong::Io, format_args!("cannot read the ids from standard input: {error}"))
}

/// Returns whether a text has as many hex digits as a secret, which may have been given as an id by
/// mistake.
fn could_be_a_secret(text: &str) -> bool {
    let mut others = text.split(|each: char| !each.is_ascii_hexdigit());
    others.any(|digits| digits.len() >= 2 * Secret::BYTES)
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
