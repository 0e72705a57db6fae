//! Ids as a visitor writes them.

use randflake::{Error, ErrorKind, Id, Result};

/// Reads an id as a number or in the text form; `form` says which, or is `auto`.
pub(crate) fn parse(id: &str, form: &str) -> Result<Id> {
    let number = || id.parse::<i64>().map(Id::from).map_err(|_| not_an_id());
    match form {
        "number" => return number(),
        "text" => return id.parse(),
        _ => {}
    }
    let digits = id.strip_prefix(['-', '+']).unwrap_or(id);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return id.parse();
    }
    match (number(), id.parse::<Id>()) {
        (Ok(number), Ok(text)) if number != text => Err(Error::new(
            ErrorKind::InvalidId,
            "this is a different id as a number and in the text form: choose which it is",
        )),
        (number, _) => number,
    }
}

/// Reads a sortable id. Some programs show ids of 64 bits as signed numbers.
pub(crate) fn parse_raw(id: &str) -> Result<u64> {
    id.parse().or_else(|_| id.parse().map(i64::cast_unsigned)).map_err(|_| not_an_id())
}

fn not_an_id() -> Error {
    Error::new(ErrorKind::InvalidId, "this is no integer of 64 bits")
}
