//! Ids of Boundary's flake, which this library reads but never makes.

use std::{fmt, str::FromStr};

use crate::{Error, ErrorKind, Result};

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The most digits of a 128-bit number.
const MAX_DIGITS: usize = 22;

/// An id of Boundary's flake, of 128 bits: 64 of time, 48 of the worker's network address, 16 of
/// sequence. This type reads and converts such ids; this library does not make them.
///
/// ```
/// use randflake::BoundaryFlake;
///
/// let flake: BoundaryFlake = "8HFaR8qWtRlGDHnO57".parse()?;
/// assert_eq!(flake.unix_ms(), 1326409013776);
/// assert_eq!(flake.worker(), [0x10, 0x9a, 0xdd, 0x5e, 0x0e, 0x8f]);
/// assert_eq!(flake.sequence(), 5);
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct BoundaryFlake(u128);

impl BoundaryFlake {
    /// Makes an id from its bytes.
    ///
    /// ```
    /// # use randflake::BoundaryFlake;
    /// let bytes = [0, 0, 1, 52, 212, 33, 45, 67, 16, 154, 221, 94, 14, 143, 0, 0];
    /// let flake = BoundaryFlake::from_bytes(bytes);
    /// assert_eq!(flake.unix_ms(), 1326408871235);
    /// assert_eq!(flake.to_bytes(), bytes);
    /// ```
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Returns the bytes, which sort as the ids do.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Returns when it was made, in unix milliseconds.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "the upper half")]
    pub const fn unix_ms(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Returns the network address (MAC) of the worker that made it.
    #[must_use]
    pub fn worker(self) -> [u8; 6] {
        std::array::from_fn(|index| self.to_bytes()[8 + index])
    }

    /// Returns its zero-based index within its worker and millisecond.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "the lowest 16 bits")]
    pub const fn sequence(self) -> u16 {
        self.0 as u16
    }
}

impl TryFrom<&[u8]> for BoundaryFlake {
    type Error = Error;

    /// Makes an id from its bytes, if there are 16 of them.
    ///
    /// # Errors
    ///
    /// [`InvalidId`](ErrorKind::InvalidId): there are more, or fewer.
    ///
    /// ```
    /// # use randflake::BoundaryFlake;
    /// assert!(BoundaryFlake::try_from(&[0; 16][..]).is_ok());
    /// assert!(BoundaryFlake::try_from(&[0; 15][..]).unwrap_err().to_string().contains("15"));
    /// ```
    fn try_from(bytes: &[u8]) -> Result<Self> {
        let right: [u8; 16] = bytes
            .try_into()
            .map_err(|_| invalid_boundary_flake(format_args!("{} bytes", bytes.len())))?;
        Ok(Self::from_bytes(right))
    }
}

impl fmt::Display for BoundaryFlake {
    /// Writes the base 62 form: the digits `0-9A-Za-z` of the number, the shortest form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [b'0'; MAX_DIGITS];
        let mut rest = self.0;
        let mut first = MAX_DIGITS;
        while first == MAX_DIGITS || rest > 0 {
            first -= 1;
            #[allow(clippy::cast_possible_truncation, reason = "a remainder of 62")]
            let digit = (rest % 62) as usize;
            buffer[first] = DIGITS[digit];
            rest /= 62;
        }
        f.pad(std::str::from_utf8(&buffer[first..]).expect("the digits are ASCII"))
    }
}

impl FromStr for BoundaryFlake {
    type Err = Error;

    /// Reads the base 62 form, strictly: only what `Display` writes is accepted.
    ///
    /// # Errors
    ///
    /// [`InvalidId`](ErrorKind::InvalidId): empty, a leading zero, a character other than
    /// `0-9A-Za-z`, or more than 128 bits.
    fn from_str(text: &str) -> Result<Self> {
        let digits = text.as_bytes();
        if digits.is_empty() || (digits.len() > 1 && digits[0] == b'0') {
            return Err(invalid("is not empty and has no leading zero"));
        }
        let mut number = 0_u128;
        for character in digits {
            let digit = DIGITS.iter().position(|digit| digit == character);
            let digit = digit.ok_or_else(|| invalid("has only the characters 0-9, A-Z and a-z"))?;
            number = number
                .checked_mul(62)
                .and_then(|shifted| shifted.checked_add(digit as u128))
                .ok_or_else(|| invalid("stands for no more than 128 bits"))?;
        }
        Ok(Self(number))
    }
}

/// Makes the error of a value that is neither the text nor the bytes of a [`BoundaryFlake`].
#[cold]
#[must_use]
pub fn invalid_boundary_flake(got: impl fmt::Display) -> Error {
    Error::new(
        ErrorKind::InvalidId,
        format!("a Boundary flake is text in base 62, or 16 bytes, got {got}"),
    )
}

#[cold]
fn invalid(rule: &str) -> Error {
    Error::new(ErrorKind::InvalidId, format!("the text of a Boundary flake {rule}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn reads_what_it_writes(bytes: [u8; 16]) {
            let flake = BoundaryFlake::from_bytes(bytes);
            prop_assert_eq!(flake.to_bytes(), bytes);
            prop_assert_eq!(flake.to_string().parse(), Ok(flake));
        }

        #[test]
        fn accepts_only_what_it_writes(text in "[0-9A-Za-z]{0,23}|\\PC{0,23}") {
            if let Ok(flake) = text.parse::<BoundaryFlake>() {
                prop_assert_eq!(flake.to_string(), text);
            }
        }
    }

    #[test]
    fn the_smallest_and_the_largest() {
        assert_eq!(BoundaryFlake(0).to_string(), "0");
        let largest = BoundaryFlake(u128::MAX).to_string();
        assert_eq!(largest.parse(), Ok(BoundaryFlake(u128::MAX)));
        assert_eq!(largest.len(), MAX_DIGITS);
        let mut above = largest.into_bytes();
        *above.last_mut().expect("digits") += 1;
        let above = String::from_utf8(above).expect("ASCII");
        assert_eq!(above.parse::<BoundaryFlake>().expect_err(&above).kind(), ErrorKind::InvalidId);
    }
}
