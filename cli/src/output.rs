//! Writing to the standard streams.

use std::{
    env,
    fmt::Display,
    io::{self, BufWriter, IsTerminal, StdoutLock, Write},
};
#[cfg(feature = "serve")]
use std::{sync::mpsc, thread, time::Duration};

use jiff::Timestamp;

use crate::Failure;

/// Enough for the writes to cost nothing beside the ids.
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
    // A failure to write it cannot be reported.
    let _ = writeln!(io::stderr(), "randflake: {code}: {}", one_line(&message.to_string()));
}

/// Messages of servers may have several lines, and characters that control a terminal.
pub(crate) fn one_line(message: &str) -> String {
    let words =
        message.split(|character: char| character.is_whitespace() || character.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Writes a message to standard error.
pub(crate) fn notify(message: &dyn Display) {
    let _ = writeln!(io::stderr(), "randflake: {message}");
}

/// Writes messages to standard error on a thread of its own, for what must not wait for those who read
/// it: a pipe that nobody reads is full at last.
#[cfg(feature = "serve")]
#[derive(Clone)]
pub(crate) struct Teller(mpsc::SyncSender<Told>);

#[cfg(feature = "serve")]
enum Told {
    Message(String),
    /// Nothing follows.
    End(mpsc::Sender<()>),
}

#[cfg(feature = "serve")]
impl Teller {
    /// So many messages wait; further ones are lost.
    const WAITING: usize = 100;
    /// How long the last ones may take.
    const PATIENCE: Duration = Duration::from_secs(1);

    pub(crate) fn start() -> Self {
        let (sender, receiver) = mpsc::sync_channel(Self::WAITING);
        thread::spawn(move || {
            for told in receiver {
                match told {
                    Told::Message(message) => notify(&message),
                    Told::End(done) => return drop(done),
                }
            }
        });
        Self(sender)
    }

    pub(crate) fn tell(&self, message: &dyn Display) {
        let _ = self.0.try_send(Told::Message(message.to_string()));
    }

    /// Waits until all is written, but not for long.
    pub(crate) fn end(&self) {
        let (done, ended) = mpsc::channel();
        if self.0.try_send(Told::End(done)).is_ok() {
            let _ = ended.recv_timeout(Self::PATIENCE);
        }
    }
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

/// Returns a text as a JSON string.
pub(crate) fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
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
    fn messages_are_one_line_without_control_characters() {
        assert_eq!(one_line("no server\n\tIs it \x1b[2J there?\r\n"), "no server Is it [2J there?");
    }

    #[test]
    fn seconds_beyond_the_calendar_are_shown_as_numbers() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(i64::MAX), "second 9223372036854775807");
    }
}
