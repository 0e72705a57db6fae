//! Lists of ids, in JSON.

use randflake::Id;

use super::request::Format;

/// Longest decimal number of 64 bits.
const LONGEST_NUMBER: usize = 20;

/// Writes encrypted or hidden ids. They are strings in both forms: many JSON parsers lose digits of such
/// large numbers.
pub(super) fn listed(ids: &[i64], format: Format) -> Vec<u8> {
    listed_with(ids, format, |id| id.to_string())
}

/// Writes ids, whose numbers are written by `number`.
pub(super) fn listed_with(ids: &[i64], format: Format, number: impl Fn(i64) -> String) -> Vec<u8> {
    let mut json = Vec::with_capacity(longest(ids.len(), format));
    json.extend_from_slice(b"{\"ids\":[");
    for (index, &id) in ids.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        json.push(b'"');
        match format {
            Format::Text => {
                json.extend_from_slice(Id::from(id).encode(&mut [0; Id::MAX_TEXT_LENGTH]));
            }
            Format::Number => json.extend_from_slice(number(id).as_bytes()),
        }
        json.push(b'"');
    }
    json.extend_from_slice(b"]}\n");
    json
}

/// Returns the maximum length of a list, in bytes.
pub(super) const fn longest(count: usize, format: Format) -> usize {
    let each = match format {
        Format::Text => Id::MAX_TEXT_LENGTH,
        Format::Number => LONGEST_NUMBER,
    };
    16 + count * (each + 3)
}
