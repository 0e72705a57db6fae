//! The type of an encrypted id, and the forms in which it leaves the program.

use std::{fmt, str::FromStr};

use crate::{Error, base32hex};

#[cfg(feature = "diesel")]
mod diesel_column;
#[cfg(any(feature = "sqlx-0_8", feature = "sqlx-0_9"))]
mod sqlx_column;

/// A generated id: any signed 64-bit number. Half of all ids are negative.
///
/// Its text form has at most 13 characters and suits URLs and JSON. In a database it is a signed
/// `BIGINT`: an unsigned column refuses half of all ids, and a floating-point column rounds nearly
/// all. The crate's [features](crate#features) make it a value in queries of sqlx and diesel, and
/// in JSON.
///
/// ```
/// use randflake::Id;
///
/// let id = Id::from(4594531474933654033);
/// assert_eq!(id.to_string(), "3vgoe12ccb8gh");
/// assert_eq!("3vgoe12ccb8gh".parse::<Id>()?, id);
/// assert_eq!(i64::from(id), 4594531474933654033);
/// # Ok::<(), randflake::Error>(())
/// ```
// Not ordered: the order of two ids means nothing.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(
    feature = "diesel",
    derive(diesel::expression::AsExpression, diesel::deserialize::FromSqlRow)
)]
#[cfg_attr(feature = "diesel", diesel(sql_type = diesel::sql_types::BigInt))]
#[repr(transparent)]
pub struct Id(i64);

impl Id {
    /// Most characters of the text form.
    pub const MAX_TEXT_LENGTH: usize = base32hex::MAX_DIGITS;

    /// Views ids as their numbers, so that they can be made in place.
    #[allow(unsafe_code, reason = "a slice of a transparent type is a slice of what it wraps")]
    pub(crate) fn as_numbers(ids: &mut [Self]) -> &mut [i64] {
        // SAFETY: Id is a transparent i64, and every i64 is an Id.
        unsafe { &mut *(std::ptr::from_mut(ids) as *mut [i64]) }
    }

    /// Views raw ids as signed numbers.
    #[allow(unsafe_code, reason = "the same bits, of the same size")]
    pub(crate) fn raws_as_numbers(raws: &mut [u64]) -> &mut [i64] {
        // SAFETY: u64 and i64 have the same size and alignment, and every value of one is one of
        // the other.
        unsafe { &mut *(std::ptr::from_mut(raws) as *mut [i64]) }
    }

    /// Writes the text form, which is ASCII, without allocating.
    ///
    /// ```
    /// # use randflake::Id;
    /// let mut buffer = [0; Id::MAX_TEXT_LENGTH];
    /// assert_eq!(Id::from(-1).encode(&mut buffer), b"fvvvvvvvvvvvv");
    /// ```
    #[inline]
    pub fn encode(self, buffer: &mut [u8; Self::MAX_TEXT_LENGTH]) -> &[u8] {
        base32hex::encode(self.0.cast_unsigned(), buffer)
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Self {
        Self(number)
    }
}

impl From<Id> for i64 {
    fn from(id: Id) -> Self {
        id.0
    }
}

impl fmt::Display for Id {
    /// Writes the text form: base32hex digits, lower case, of the id as an unsigned number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; Self::MAX_TEXT_LENGTH];
        f.pad(std::str::from_utf8(self.encode(&mut buffer)).expect("the digits are ASCII"))
    }
}

impl FromStr for Id {
    type Err = Error;

    /// Reads the text form, strictly: only what `Display` writes is accepted.
    ///
    /// # Errors
    ///
    /// [`InvalidId`](crate::ErrorKind::InvalidId): empty, a leading zero, a character other than
    /// `0-9a-v`, or more than 64 bits.
    fn from_str(text: &str) -> Result<Self, Error> {
        base32hex::decode(text).map(|number| Self(number.cast_signed()))
    }
}

#[cfg(feature = "serde")]
mod serde_form {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::Id;

    /// As text in human-readable formats, where JavaScript would round a number; as `i64` in the
    /// others.
    impl Serialize for Id {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if serializer.is_human_readable() {
                serializer.collect_str(self)
            } else {
                serializer.serialize_i64(self.0)
            }
        }
    }

    impl<'de> Deserialize<'de> for Id {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            if deserializer.is_human_readable() {
                let text = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            } else {
                i64::deserialize(deserializer).map(Self)
            }
        }
    }
}
