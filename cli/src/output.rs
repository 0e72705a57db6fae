//! Writing to the standard streams.

use std::{
    env,
    fmt::Display,
    io::{self, BufWriter, IsTerminal, StdoutLock, Write},
};

use jiff::Timestamp;
use randflake::bindings::one_line;
use serde::Serialize;

use crate::Failure;

/// Large enough that writes cost nothing compared with the ids.
const BUFFER: usize = 1 << 16;

/// Columns of a terminal.
pub(crate) const COLUMNS: usize = 80;

/// Returns standard output with a large buffer.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(BUFFER, io::stdout().lock())
}

/// Writes a result to standard output.
pub(crate) fn print(what: &dyn Display) -> Result<(), Failure> {
    let mut out = stdout();
    writeln!(out, "{what}")?;
    out.flush()?;
    Ok(())
}

/// Writes an error to standard error, in one line: `randflake: CODE: message`.
pub(crate) fn report(code: &str, message: &dyn Display) {
    let code = Style::RED.paint(code, &io::stderr());
    // If writing it fails, that cannot be reported.
    let _ = writeln!(io::stderr(), "randflake: {code}: {}", one_line(&message.to_string()));
}

/// Writes a message to standard error.
pub(crate) fn notify(message: &dyn Display) {
    let _ = writeln!(io::stderr(), "randflake: {message}");
}

/// The style of a word on a terminal; elsewhere the word is plain.
#[derive(Clone, Copy)]
pub(crate) struct Style(&'static str);

impl Style {
    pub(crate) const BOLD: Self = Self("1");
    pub(crate) const RED: Self = Self("31");

    pub(crate) fn paint(self, text: &str, stream: &impl IsTerminal) -> String {
        let plain = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        if plain("NO_COLOR") || dumb || !stream.is_terminal() {
            return text.to_owned();
        }
        format!("\x1b[{}m{text}\x1b[0m", self.0)
    }
}

/// Writes a result to standard output as JSON, in one line.
pub(crate) fn print_json(what: &impl Serialize) -> Result<(), Failure> {
    print(&json(what))
}

/// Returns JSON, in one line.
pub(crate) fn json(what: &impl Serialize) -> String {
    serde_json::to_string(what).expect("texts and numbers")
}

/// Returns a unix second as a date and a time, or as a number if it is beyond the calendar.
pub(crate) fn utc(unix_second: i64) -> String {
    match Timestamp::from_second(unix_second) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("second {unix_second}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_beyond_the_calendar_are_shown_as_numbers() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(i64::MAX), "second 9223372036854775807");
    }
}
