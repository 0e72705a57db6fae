//! Ids, and what is in them.

use hyper::StatusCode;
use jiff::Timestamp;
use randflake::{Id, RawParts, Result, bindings};

use super::{
    answer::{Refusal, Response, written},
    flake::Flake,
    lists::{listed, listed_with, longest},
    request::{Format, Query},
    service::Service,
};

/// What a client may specify for the ids it wants.
const KNOWN: [&str; 2] = ["count", "format"];

/// Answers a request for ids: at once if they are available, otherwise after a wait.
pub(super) async fn generate(service: &Service, query: Option<&str>) -> Result<Response, Refusal> {
    let Query { count, format, .. } = Query::read(query, &KNOWN, service.limits.max_count)?;
    let format = format_of(service, format)?;
    let longest = longest(count, format);
    let room =
        service.room.reserve(count * size_of::<i64>() + longest, service.limits.max_wait).await?;
    if count == 1
        && let Ok(id) = service.flake.try_generate()
    {
        return Ok(written(listed_of(service, &[id], format)));
    }
    let mut ids = vec![0; count];
    service.fill(&mut ids).await?;
    Ok(written(room.hold(listed_of(service, &ids, format))))
}

/// Answers what is in an id.
pub(super) fn inspect(
    service: &Service,
    id: &str,
    query: Option<&str>,
) -> Result<Response, Refusal> {
    let format = format_of(service, Query::read(query, &["format"], 1)?.format)?;
    let flake = match &service.flake {
        Flake::Secret(flake) => flake,
        Flake::Layout(flake) => {
            // Unsigned, as this server writes it, or signed, as a BIGINT column shows it.
            let raw = bindings::parse_raw(id)?;
            return Ok(written(inspected(raw, &flake.inspect(raw)?)));
        }
    };
    let id: Id = match format {
        Format::Text => id.parse()?,
        Format::Number => bindings::parse_number(id)?,
    };
    let parts = flake.inspect(id);
    // The calendar ends long after the last id.
    let time = Timestamp::from_second(parts.timestamp).unwrap_or(Timestamp::MAX);
    let (number, node_id, sequence) = (i64::from(id), parts.node_id, parts.sequence);
    Ok(written(format!(
        "{{\"id\":\"{id}\",\"number\":\"{number}\",\"timestamp\":{},\"time\":\"{time}\",\
         \"node_id\":{node_id},\"sequence\":{sequence}}}\n",
        parts.timestamp
    )))
}

/// Returns the form of ids: those of a layout are numbers.
fn format_of(service: &Service, format: Option<Format>) -> Result<Format, Refusal> {
    match (service.flake.layout_of_ids(), format) {
        (Some(_), Some(Format::Text)) => Err(Refusal::invalid(
            StatusCode::BAD_REQUEST,
            "ids of a layout have no text form: ask for numbers, or hide them with POST \
             /v1/cloaks/{label}/hide",
        )),
        (Some(_), _) => Ok(Format::Number),
        (None, format) => Ok(format.unwrap_or_default()),
    }
}

/// Writes what is in an id of a layout.
fn inspected(id: u64, parts: &RawParts) -> String {
    let RawParts { unix_ms, node_id, sequence, .. } = parts;
    // Every layout ends long before the end of the calendar.
    let time = Timestamp::from_millisecond(*unix_ms).unwrap_or(Timestamp::MAX);
    format!(
        "{{\"id\":\"{id}\",\"unix_ms\":{unix_ms},\"time\":\"{time}\",\"node_id\":{node_id},\
         \"sequence\":{sequence}}}\n"
    )
}

/// Writes ids of the generator.
fn listed_of(service: &Service, ids: &[i64], format: Format) -> Vec<u8> {
    match service.flake.layout_of_ids() {
        Some(_) => listed_with(ids, format, |id| id.cast_unsigned().to_string()),
        None => listed(ids, format),
    }
}
