//! The text by which an operator recognises the holder of a lease.

use std::fmt;

/// What the holder of a lease tells operators about itself: a short line of text, such as
/// `web-3:4711`. It is only shown, never compared and never trusted. It must not contain a secret.
///
/// ```
/// use randflake_leases::Note;
///
/// assert_eq!(Note::new("web-3:4711").as_str(), "web-3:4711");
/// assert_eq!(Note::new("caf\u{e9}\n\u{1b}[2J").as_str(), "caf???[2J");
/// assert_eq!(Note::new(&"x".repeat(200)).as_str().len(), Note::MAX);
/// ```
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Note {
    length: u8,
    ascii: [u8; Note::MAX],
}

impl Note {
    pub(crate) const NONE: Self = Self { length: 0, ascii: [0; Self::MAX] };

    /// Longest note, in bytes.
    pub const MAX: usize = 80;

    /// Longest host name of [`Note::of_process`]: it leaves room for any process id.
    const MAX_HOST: usize = 64;

    /// Takes the first 80 characters, and replaces each that is not printable ASCII with `?`:
    /// terminals show the note, and any user of the store may have written it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut note = Self::NONE;
        for (byte, character) in note.ascii.iter_mut().zip(text.chars()) {
            let printable = matches!(character, ' '..='~');
            *byte = if printable { character as u8 } else { b'?' };
            note.length += 1;
        }
        note
    }

    /// Names this process: the machine's host name and the process id.
    #[must_use]
    pub fn of_process() -> Self {
        let host: String = host_name().chars().take(Self::MAX_HOST).collect();
        Self::new(&format!("{host}:{}", std::process::id()))
    }

    /// Returns the text; empty if the holder has no note.
    ///
    /// # Panics
    ///
    /// Never: it is ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let ascii = &self.ascii[..usize::from(self.length)];
        std::str::from_utf8(ascii).expect("made of ASCII")
    }
}

/// Empty.
impl Default for Note {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Note({:?})", self.as_str())
    }
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Note;

    #[test]
    fn a_process_is_named_by_host_and_id() {
        let note = Note::of_process();
        let (host, id) = note.as_str().rsplit_once(':').expect("host:id");
        assert_eq!(id, std::process::id().to_string());
        assert!(host.len() <= Note::MAX_HOST && !host.contains('?'), "{note}");
    }
}
