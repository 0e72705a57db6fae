//! The key of the cipher, and how its bytes are erased.

use std::{fmt, hint, str::FromStr};

use hkdf::hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

use crate::{Error, ErrorKind};

/// The 16 bytes that ids are encrypted with. Erased when dropped, never printed.
///
/// Keep one secret for the lifetime of an id column: ids made with two secrets can collide, and no id
/// shows which secret made it.
///
/// ```
/// use randflake::Secret;
///
/// let secret: Secret = "dffd6021bb2bd5b0af676290809ec3a5".parse()?;
/// assert_eq!(format!("{secret:?}"), "Secret(..)");
/// assert_eq!(secret.to_hex(), "dffd6021bb2bd5b0af676290809ec3a5");
/// # Ok::<(), randflake::Error>(())
/// ```
// Boxed: moving a value leaves a copy of its bytes behind, which would not be erased.
#[derive(Clone)]
pub struct Secret(Box<[u8; Self::BYTES]>);

impl Secret {
    /// Length of a secret: 16 bytes, 32 hex digits.
    pub const BYTES: usize = 16;

    /// Makes a secret from 16 bytes.
    ///
    /// # Errors
    ///
    /// [`InvalidSecret`](ErrorKind::InvalidSecret): another length.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() != Self::BYTES {
            return Err(invalid_secret(format_args!("{} bytes", bytes.len())));
        }
        let mut secret = Self::zero();
        secret.0.copy_from_slice(bytes);
        Ok(secret)
    }

    /// Makes a fresh secret from the operating system's random source.
    ///
    /// # Panics
    ///
    /// If the operating system cannot provide random numbers.
    ///
    /// ```
    /// # use randflake::Secret;
    /// assert_ne!(Secret::random().to_hex(), Secret::random().to_hex());
    /// ```
    #[must_use]
    pub fn random() -> Self {
        let mut secret = Self::zero();
        getrandom::fill(&mut *secret.0).expect("the operating system has a random source");
        secret
    }

    pub(crate) fn zero() -> Self {
        Self(Box::new([0; Self::BYTES]))
    }

    /// Returns the secret as 32 lower-case hex digits. Store them where you store secrets.
    #[must_use]
    pub fn to_hex(&self) -> String {
        let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
        self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    /// Returns why this secret looks guessable, if it does. Sixteen printable characters, or fewer
    /// than eight distinct bytes, suggest a password or a pattern, and anyone with a few ids and
    /// their times can test guesses offline.
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
        let mut distinct = self.0.clone();
        distinct.sort_unstable();
        let patterned = 1 + distinct.windows(2).filter(|pair| pair[0] != pair[1]).count() < 8;
        distinct.zeroize();
        (printable || patterned).then_some(
            "this secret looks like a password or a pattern: anyone who knows a few ids and their \
             times can test guesses offline; use 16 random bytes",
        )
    }

    /// Returns the HMAC-SHA256 of a message in parts, with this secret as the key. Use it as a
    /// fingerprint, which does not reveal the secret.
    ///
    /// # Panics
    ///
    /// Never: every secret is a key.
    ///
    /// ```
    /// # use randflake::Secret;
    /// let secret = Secret::random();
    /// assert_eq!(secret.hmac(&[b"my ", b"column"]), secret.hmac(&[b"my column"]));
    /// assert_ne!(secret.hmac(&[b"my column"]), Secret::random().hmac(&[b"my column"]));
    /// ```
    #[must_use]
    pub fn hmac(&self, message: &[&[u8]]) -> [u8; 32] {
        erasing_the_stack(|| {
            let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_slice())
                .expect("HMAC takes keys of any length");
            for part in message {
                mac.update(part);
            }
            mac.finalize().into_bytes().into()
        })
    }

    pub(crate) fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    pub(crate) fn as_mut_bytes(&mut self) -> &mut [u8; Self::BYTES] {
        &mut self.0
    }

    /// Returns the SHA-256 of a salt and the secret.
    pub(crate) fn hash(&self, salt: &[u8; 16]) -> [u8; 32] {
        erasing_the_stack(|| {
            Sha256::new().chain_update(salt).chain_update(self.0.as_slice()).finalize().into()
        })
    }
}

/// Runs a function that uses a key, and overwrites what it leaves on the stack.
pub(crate) fn erasing_the_stack<T>(work: impl FnOnce() -> T) -> T {
    #[inline(never)]
    fn run<T>(work: impl FnOnce() -> T) -> T {
        work()
    }
    #[inline(never)]
    fn erase() {
        let mut frames = [0_u8; 8192];
        frames.zeroize();
        hint::black_box(&frames);
    }
    let done = run(work);
    erase();
    done
}

/// Makes the error of a secret of the wrong form. `got` describes the form, never the content.
#[cold]
#[must_use]
pub fn invalid_secret(got: impl fmt::Display) -> Error {
    Error::new(
        ErrorKind::InvalidSecret,
        format!("a secret must be 16 bytes or 32 hex digits, got {got}"),
    )
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
            return Err(invalid_secret(format_args!("text of {length} characters")));
        }
        if !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(invalid_secret("text with other characters"));
        }
        let mut secret = Self::zero();
        for (byte, digits) in secret.0.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            for digit in digits {
                let value = char::from(*digit).to_digit(16).expect("a hex digit");
                *byte = *byte << 4 | u8::try_from(value).expect("4 bits");
            }
        }
        Ok(secret)
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
