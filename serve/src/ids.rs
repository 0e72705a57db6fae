//! Ids, and what is in them.

use jiff::Timestamp;
use randflake::{Call, Id, Result, bindings};

use super::{
    answer::{Refusal, Response, written},
    request::{Format, Query},
    service::Service,
};

/// What a client may specify for the ids it wants.
const KNOWN: [&str; 2] = ["count", "format"];

/// Longest decimal number of 64 bits.
const LONGEST_NUMBER: usize = 20;

/// Answers a request for ids: at once if they are available, otherwise after a wait.
pub(super) async fn generate(service: &Service, query: Option<&str>) -> Result<Response, Refusal> {
    let Query { count, format } = Query::read(query, &KNOWN, service.limits.max_count)?;
    let longest = longest(count, format);
    let room =
        service.room.reserve(count * size_of::<i64>() + longest, service.limits.max_wait).await?;
    if count == 1
        && let Ok(id) = service.flake.try_generate(Call::AT_ONCE)
    {
        return Ok(written(listed(&[id.into()], format)));
    }
    let mut ids = vec![0; count];
    service.fill(&mut ids).await?;
    Ok(written(room.hold(listed(&ids, format))))
}

/// Answers what is in an id.
pub(super) fn inspect(
    service: &Service,
    id: &str,
    query: Option<&str>,
) -> Result<Response, Refusal> {
    let id: Id = match Query::read(query, &["format"], 1)?.format {
        Format::Text => id.parse()?,
        Format::Number => bindings::parse_number(id)?,
    };
    let parts = service.flake.inspect(id);
    // The calendar ends long after the last id.
    let time = Timestamp::from_second(parts.timestamp).unwrap_or(Timestamp::MAX);
    let (number, node_id, sequence) = (i64::from(id), parts.node_id, parts.sequence);
    Ok(written(format!(
        "{{\"id\":\"{id}\",\"number\":\"{number}\",\"timestamp\":{},\"time\":\"{time}\",\
         \"node_id\":{node_id},\"sequence\":{sequence}}}\n",
        parts.timestamp
    )))
}

/// Writes ids. They are strings in both forms: many JSON parsers lose digits of such large numbers.
fn listed(ids: &[i64], format: Format) -> Vec<u8> {
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
            Format::Number => json.extend_from_slice(id.to_string().as_bytes()),
        }
        json.push(b'"');
    }
    json.extend_from_slice(b"]}\n");
    json
}

/// Returns the maximum length of a list, in bytes.
const fn longest(count: usize, format: Format) -> usize {
    let each = match format {
        Format::Text => Id::MAX_TEXT_LENGTH,
        Format::Number => LONGEST_NUMBER,
    };
    16 + count * (each + 3)
}
