//! What an examination of a store finds.

/// One thing that [`LeaseStore::examine`](crate::LeaseStore::examine) has looked at.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// What was looked at, in a word, such as `persistence`.
    pub subject: &'static str,
    /// Whether it is as it should be.
    pub verdict: Verdict,
    /// What was found and, unless all is well, what to do. Without URL and password.
    pub text: String,
}

/// Whether something is OK.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// It is.
    Fine,
    /// It works, but may not be what you want.
    Note,
    /// Leases cannot be granted, or may be lost.
    Wrong,
}

impl Verdict {
    /// Returns the word for it: `ok`, `note` or `wrong`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Wrong => "wrong",
        }
    }
}

impl Finding {
    /// Says that something is as it should be.
    pub fn fine(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, verdict: Verdict::Fine, text: text.into() }
    }

    /// Says something that may not be wanted.
    pub fn note(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, verdict: Verdict::Note, text: text.into() }
    }

    /// Says what is wrong, and what to do.
    pub fn wrong(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, verdict: Verdict::Wrong, text: text.into() }
    }
}
