//! What the packages for other languages, the leases and the command share with this crate. It is
//! not part of its public interface: any version may change it.

use std::fmt;

use crate::{Error, ErrorKind, Field, Id, Result, Sequence};

pub use crate::{
    boundary_flake::invalid_boundary_flake,
    clock::{unix_nanos, utc, utc_second},
    fork::ForkId,
    generator::{check_max_wait, invalid_max_drift, invalid_max_wait},
    layout::{
        lifetime::lifetime_over,
        nodes::{invalid_node, too_many_nodes},
        slots::invalid_sequence,
        spec::{layout_json, layout_of_fingerprint},
    },
    positions::{Blocks, Positions, Unused},
    secret::invalid_secret,
};

/// Quotes text from a caller in an error: not all of it, and no part of what could be a misplaced
/// secret, 16 bytes or 32 hex digits.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut others = text.split(|each: char| !each.is_ascii_hexdigit());
    if text.trim().len() == 16 || others.any(|digits| digits.len() >= 32) {
        return "text that could be a secret, which is not shown".to_owned();
    }
    format!("{:?}", text.chars().take(40).collect::<String>())
}

/// Puts a message into one line: those of servers may have several, and characters that control a
/// terminal.
#[must_use]
pub fn one_line(message: &str) -> String {
    let words = message.split(|each: char| each.is_whitespace() || each.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Makes the error of a number that is not a signed 64-bit id.
#[cold]
#[must_use]
pub fn invalid_id(got: impl fmt::Display) -> Error {
    Error::new(
        ErrorKind::InvalidId,
        format!("an id must be a signed 64-bit integer or its text, got {got}"),
    )
}

/// Makes the error of a number that is not an unsigned 64-bit raw value.
#[cold]
#[must_use]
pub fn invalid_raw(got: impl fmt::Display) -> Error {
    Error::new(
        ErrorKind::InvalidId,
        format!("a raw value must be an unsigned 64-bit integer, got {got}"),
    )
}

/// Says which of many a message is about.
#[cold]
#[must_use]
pub fn at_index(index: usize, message: impl fmt::Display) -> String {
    format!("at index {index}: {message}")
}

/// Reads an id that a person has written, as a number or in the text form. Where the digits are a
/// different id in each, the error quotes `choose`, which tells how to say which one is meant.
///
/// # Errors
/// [`ErrorKind::InvalidId`] if it is neither, or both.
pub fn parse_id(text: &str, choose: &str) -> Result<Id> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return text.parse();
    }
    match (parse_number(text), text.parse::<Id>()) {
        (Ok(number), Ok(id)) if number != id => Err(Error::new(
            ErrorKind::InvalidId,
            format!("this is a different id as a number and in the text form; {choose}"),
        )),
        (number, _) => number,
    }
}

/// Reads an id that a person has written as a number.
///
/// # Errors
/// [`ErrorKind::InvalidId`] if it is not an integer of 64 bits.
pub fn parse_number(text: &str) -> Result<Id> {
    text.parse::<i64>().map(Id::from).map_err(|_| not_a_number(text))
}

/// Reads a raw value that a person has written. Some programs show it as a signed number.
///
/// # Errors
/// [`ErrorKind::InvalidId`] if it is not an integer of 64 bits.
pub fn parse_raw(text: &str) -> Result<u64> {
    text.parse().or_else(|_| text.parse().map(i64::cast_unsigned)).map_err(|_| not_a_number(text))
}

#[cold]
fn not_a_number(got: &str) -> Error {
    let what = if got.len() > 20 { "more digits" } else { "something else" };
    Error::new(
        ErrorKind::InvalidId,
        format!("this must be a number, an integer of 64 bits, got {what}"),
    )
}

/// Makes the error of extending a lease that comes from a store.
#[cold]
#[must_use]
pub fn lease_of_store() -> Error {
    Error::new(
        ErrorKind::InvalidLease,
        "the lease of this generator comes from a store, and is extended automatically",
    )
}

/// Returns the field with a name.
#[must_use]
pub fn field_of(name: &str) -> Option<Field> {
    [Field::Time, Field::Node, Field::Sequence].into_iter().find(|field| field.name() == name)
}

/// Returns the initial sequence with a name; only `RANDOM` has a number of starts.
#[must_use]
pub fn sequence_of(name: &str, starts: Option<u32>) -> Option<Sequence> {
    match (name, starts) {
        (ZERO, None) => Some(Sequence::Zero),
        (CONTINUING, None) => Some(Sequence::Continuing),
        (RANDOM, Some(starts)) => Some(Sequence::Random(starts)),
        _ => None,
    }
}

/// Returns the name of an initial sequence.
#[must_use]
pub fn sequence_name(sequence: Sequence) -> &'static str {
    match sequence {
        Sequence::Zero => ZERO,
        Sequence::Continuing => CONTINUING,
        Sequence::Random(_) => RANDOM,
    }
}

const ZERO: &str = "zero";
const CONTINUING: &str = "continuing";
const RANDOM: &str = "random";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line_without_control_characters() {
        assert_eq!(one_line("no server\n\tIs it \x1b[2J there?\r\n"), "no server Is it [2J there?");
    }
}
