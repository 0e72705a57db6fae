//! The text form: base32hex digits (RFC 4648, section 7, lower case) of the id as an unsigned
//! number, in its shortest form. Not the byte-wise encoding of the RFC.

use crate::{Error, ErrorKind};

const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// The most digits of a 64-bit number: twelve of five bits and one of four.
pub(crate) const MAX_DIGITS: usize = 13;

/// The digits of each ten-bit value: two digits at a time halve the work.
const PAIRS: [[u8; 2]; 1024] = {
    let mut pairs = [[0; 2]; 1024];
    let mut index = 0;
    while index < pairs.len() {
        pairs[index] = [DIGITS[index / 32], DIGITS[index % 32]];
        index += 1;
    }
    pairs
};

/// The value of each byte as a digit; [`NO_DIGIT`] if it is not a digit.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 32 {
        values[DIGITS[value as usize] as usize] = value;
        value += 1;
    }
    values
};

const NO_DIGIT: u8 = 32;

/// Writes the digits of `value` to the end of `buffer` and returns them.
#[inline]
pub(crate) fn encode(value: u64, buffer: &mut [u8; MAX_DIGITS]) -> &[u8] {
    // All thirteen, so that no step waits for the one before it. The first digit has four bits.
    buffer[0] = DIGITS[(value >> 60) as usize];
    for (index, pair) in buffer[1..].as_chunks_mut().0.iter_mut().enumerate() {
        *pair = PAIRS[(value >> (50 - 10 * index) & 1023) as usize];
    }
    let digits = (u64::BITS - value.leading_zeros()).div_ceil(5).max(1) as usize;
    &buffer[MAX_DIGITS - digits..]
}

/// Reads the digits of a number. Only what [`encode`] writes is accepted.
#[inline]
pub(crate) fn decode(text: &str) -> Result<u64, Error> {
    let digits = text.as_bytes();
    // The first of thirteen has four bits.
    let fits = digits.len() < MAX_DIGITS
        || digits.len() == MAX_DIGITS && VALUES[usize::from(digits[0])] < 16;
    if fits && (digits.first() != Some(&b'0') || digits.len() == 1) && !digits.is_empty() {
        let (mut number, mut all) = (0, 0);
        for &digit in digits {
            let value = VALUES[usize::from(digit)];
            number = number << 5 | u64::from(value);
            all |= value;
        }
        if all < NO_DIGIT {
            return Ok(number);
        }
    }
    Err(fault_of(text))
}

/// Says why a text is not the text of a number.
#[cold]
#[inline(never)]
fn fault_of(text: &str) -> Error {
    let digits = text.as_bytes();
    if digits.is_empty() {
        return invalid("an id's text is empty; it has 1 to 13 characters");
    }
    let unsigned = text.strip_prefix(['-', '+']);
    let decimal = unsigned.unwrap_or(text).bytes().all(|digit| digit.is_ascii_digit());
    if decimal && (unsigned.is_some() || digits.len() > MAX_DIGITS) {
        return invalid(
            "an id's text looks like a decimal number; pass the text form, \
             1 to 13 of the characters 0-9 and a-v",
        );
    }
    let prefix = text.rfind(['_', '-', ':', '.']).map(|end| text.split_at(end + 1));
    if let Some((prefix, rest)) = prefix
        && decode(rest).is_ok()
    {
        return invalid(format!(
            "an id's text has only the characters 0-9 and a-v, and this one seems to have a prefix \
             of {} characters: remove it, as the text form of a column does",
            prefix.chars().count()
        ));
    }
    let count = text.chars().count();
    if count > MAX_DIGITS {
        return invalid(format!("an id's text has at most 13 characters, got {count}"));
    }
    if digits.len() > 1 && digits[0] == b'0' {
        return invalid("an id's text has no leading zero");
    }
    match digits.iter().position(|&digit| VALUES[usize::from(digit)] == NO_DIGIT) {
        Some(position) => invalid(format!(
            "an id's text has only the characters 0-9 and a-v (lower case); the one at position \
             {position} is not one of them"
        )),
        None => invalid("an id's text stands for more than 64 bits"),
    }
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidId, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decode_undoes_encode(value: u64) {
            let mut buffer = [0; MAX_DIGITS];
            let text = std::str::from_utf8(encode(value, &mut buffer)).expect("ASCII");
            prop_assert_eq!(decode(text), Ok(value));
        }

        #[test]
        fn encode_undoes_decode(text in "[0-9a-v]{1,14}|\\PC{0,15}") {
            if let Ok(value) = decode(&text) {
                let mut buffer = [0; MAX_DIGITS];
                prop_assert_eq!(encode(value, &mut buffer), text.as_bytes());
            }
        }
    }
}
