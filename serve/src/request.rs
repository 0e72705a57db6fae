//! What clients send: queries and bodies, read strictly.

use std::{borrow::Cow, time::Duration};

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::{
    StatusCode,
    body::{Body as _, Incoming},
};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::answer::Refusal;

/// Longest body, in bytes.
const LONGEST_BODY: usize = 16 << 10;

/// How long a client may take to send it.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Which of the two formats ids are written in.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Format {
    #[default]
    Text,
    Number,
}

/// What the query of a request may contain.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Query {
    pub(super) count: usize,
    pub(super) format: Option<Format>,
    /// How numbers with a date are written.
    pub(super) dated: Dated,
}

/// The form of numbers with a date, as it was sent.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Dated {
    pub(super) period: Option<String>,
    pub(super) time_zone: Option<String>,
    pub(super) prefix: Option<String>,
    pub(super) digits: Option<u32>,
}

impl Query {
    /// Reads a query, which may contain only `known` names.
    pub(super) fn read(
        query: Option<&str>,
        known: &[&str],
        max_count: u32,
    ) -> Result<Self, Refusal> {
        let mut read = Self { count: 1, format: None, dated: Dated::default() };
        let query = query.unwrap_or_default();
        let mut seen: Vec<Cow<'_, str>> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            if !known.contains(&&*name) || seen.contains(&name) {
                return Err(bad(match known {
                    [] => "this path takes no query".to_owned(),
                    _ => format!("a query may have, once each: {}", known.join(", ")),
                }));
            }
            match (&*name, &*value) {
                ("count", value) => {
                    let is_number = value.bytes().all(|digit| digit.is_ascii_digit());
                    let count = value
                        .parse()
                        .ok()
                        .filter(|count| is_number && (1..=max_count).contains(count));
                    let Some(count) = count else {
                        return Err(bad(format!("count must be an integer from 1 to {max_count}")));
                    };
                    read.count = count as usize;
                }
                ("period", value) => read.dated.period = Some(value.to_owned()),
                ("time_zone", value) => read.dated.time_zone = Some(value.to_owned()),
                ("prefix", value) => read.dated.prefix = Some(value.to_owned()),
                ("digits", value) => {
                    let is_number = value.bytes().all(|digit| digit.is_ascii_digit());
                    let digits = value.parse().ok().filter(|_| is_number);
                    read.dated.digits =
                        Some(digits.ok_or_else(|| bad("digits must be an integer from 1 to 16"))?);
                }
                (_, "text") => read.format = Some(Format::Text),
                (_, "number") => read.format = Some(Format::Number),
                _ => return Err(bad("format must be text or number")),
            }
            seen.push(name);
        }
        Ok(read)
    }
}

/// Decodes a part of a path, or a name or value of a query, once: a `+` stays a `+`. Nothing is
/// looked up, compared or refused before this, and nothing is decoded after it.
pub(super) fn decoded(part: &str) -> Result<Cow<'_, str>, Refusal> {
    let decoded = percent_decode_str(part).decode_utf8();
    decoded.map_err(|_| bad("a path and a query must be UTF-8 once they are decoded"))
}

/// The object in the body of a request; no body counts as an empty one.
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads the body of a request, which may contain only `known` names.
    pub(super) async fn read(body: Incoming, known: &[&str]) -> Result<Self, Refusal> {
        Self::read_long(body, known, LONGEST_BODY).await
    }

    /// As [`Fields::read`], with another limit of the bytes.
    pub(super) async fn read_long(
        body: Incoming,
        known: &[&str],
        longest: usize,
    ) -> Result<Self, Refusal> {
        let too_long = || {
            let why = format!("a body must have at most {longest} bytes");
            Refusal::invalid(StatusCode::PAYLOAD_TOO_LARGE, why)
        };
        // Without waiting for the rest.
        if usize::try_from(body.size_hint().lower()).is_ok_and(|sent| sent > longest) {
            return Err(too_long());
        }
        let read = Limited::new(body, longest).collect();
        let read = timeout(BODY_TIMEOUT, read).await.map_err(|_| {
            Refusal::invalid(StatusCode::REQUEST_TIMEOUT, "the body of the request took too long")
        })?;
        let content = read.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return too_long();
            }
            bad("the body of the request was cut off")
        })?;
        let content = content.to_bytes();
        if content.trim_ascii().is_empty() {
            return Ok(Self(Map::new()));
        }
        match serde_json::from_slice(&content) {
            Ok(Value::Object(fields)) => {
                match fields.keys().find(|name| !known.contains(&name.as_str())) {
                    Some(_) => {
                        Err(bad(format!("the object in the body may have: {}", known.join(", "))))
                    }
                    None => Ok(Self(fields)),
                }
            }
            _ => Err(bad("the body must be one JSON object")),
        }
    }

    /// Takes a value, if present.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// Returns an integer, if present.
    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, Refusal> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match whole(value) {
                Some(integer) => Ok(Some(integer)),
                None => Err(bad(format!("{name} must be an integer of 64 bits"))),
            },
        }
    }

    /// Returns an integer within bounds, if present.
    pub(super) fn bounded(
        &self,
        name: &str,
        least: u32,
        most: u32,
    ) -> Result<Option<u32>, Refusal> {
        let Some(integer) = self.integer(name)? else { return Ok(None) };
        match u32::try_from(integer) {
            Ok(integer) if (least..=most).contains(&integer) => Ok(Some(integer)),
            _ => Err(bad(format!("{name} must be an integer from {least} to {most}"))),
        }
    }

    /// Returns a text, if present.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Refusal> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(bad(format!("{name} must be a string"))),
        }
    }
}

/// Returns an integer, even from `60.0`: JSON writers with only one kind of number write that.
fn whole(value: &Value) -> Option<i64> {
    /// Above this, such a number stands for several integers.
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        #[allow(clippy::cast_possible_truncation, reason = "it is whole, and not too large")]
        (number.fract() == 0.0 && number.abs() <= LARGEST).then_some(number as i64)
    })
}

fn bad(message: impl Into<String>) -> Refusal {
    Refusal::invalid(StatusCode::BAD_REQUEST, message)
}
