use std::{fmt, str::FromStr};

use zeroize::Zeroize;

use crate::{Error, ErrorKind};

/// The 16 bytes that ids are encrypted with. Zeroized when dropped, never printed.
///
/// A secret is for the life of an id column: ids made under two secrets can collide, and no id
/// tells which secret made it.
///
/// ```
/// use randflake::Secret;
///
/// let secret: Secret = "dffd6021bb2bd5b0af676290809ec3a5".parse()?;
/// assert_eq!(format!("{secret:?}"), "Secret(..)");
/// assert_eq!(secret.to_hex(), "dffd6021bb2bd5b0af676290809ec3a5");
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone)]
pub struct Secret([u8; Self::BYTES]);

impl Secret {
    /// Length of a secret: 16 bytes, 32 hex digits.
    pub const BYTES: usize = 16;

    /// Takes a secret from 16 bytes.
    ///
    /// # Errors
    ///
    /// [`InvalidSecret`](ErrorKind::InvalidSecret): another length.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        match bytes.try_into() {
            Ok(bytes) => Ok(Self(bytes)),
            Err(_) => Err(Error::invalid_secret(format_args!("{} bytes", bytes.len()))),
        }
    }

    /// Makes a fresh secret from the operating system's random source.
    ///
    /// # Panics
    ///
    /// If the operating system has no random numbers to give.
    ///
    /// ```
    /// # use randflake::Secret;
    /// assert_ne!(Secret::random().to_hex(), Secret::random().to_hex());
    /// ```
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = [0; Self::BYTES];
        getrandom::fill(&mut bytes).expect("the operating system has a random source");
        let secret = Self(bytes);
        bytes.zeroize();
        secret
    }

    /// Returns the secret as 32 lower-case hex digits, to be kept where secrets are kept.
    #[must_use]
    pub fn to_hex(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }

    /// Returns why this secret looks guessable, if it does: sixteen printable characters or fewer
    /// than eight distinct bytes are the mark of a password or a pattern, and a few ids with
    /// known times let anyone test guesses offline.
    ///
    /// ```
    /// # use randflake::Secret;
    /// assert!(Secret::from_bytes(b"super-secret-key")?.weakness().is_some());
    /// assert!("dffd6021bb2bd5b0af676290809ec3a5".parse::<Secret>()?.weakness().is_none());
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn weakness(&self) -> Option<&'static str> {
        let printable = self.0.iter().all(|byte| matches!(byte, b' '..=b'~'));
        let mut distinct = self.0;
        distinct.sort_unstable();
        let patterned = 1 + distinct.windows(2).filter(|pair| pair[0] != pair[1]).count() < 8;
        distinct.zeroize();
        (printable || patterned).then_some(
            "this secret looks like a password or a pattern: whoever knows a few ids and their \
             times can test guesses offline; use 16 random bytes",
        )
    }

    pub(crate) fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl Error {
    /// Makes the error of a secret of the wrong form; `got` says the form, never the content.
    #[cold]
    #[must_use]
    pub fn invalid_secret(got: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::InvalidSecret,
            format!("a secret must be 16 bytes or 32 hex digits, got {got}"),
        )
    }
}

impl FromStr for Secret {
    type Err = Error;

    /// Reads 32 hex digits, in either case.
    ///
    /// # Errors
    ///
    /// [`InvalidSecret`](ErrorKind::InvalidSecret): another length, or another character.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text.len() != 2 * Self::BYTES {
            let length = text.chars().count();
            return Err(Error::invalid_secret(format_args!("a text of {length} characters")));
        }
        if !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(Error::invalid_secret("a text with other characters"));
        }
        let number = u128::from_str_radix(text, 16).expect("32 hex digits are 128 bits");
        Ok(Self(number.to_be_bytes()))
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
