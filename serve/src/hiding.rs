//! What needs the secret and no generator: numbers behind cloaks and as codes, and back.

use std::fmt::Display;

use hyper::body::{Body as _, Incoming};
use randflake::{Cloak, Codes, Error, ErrorKind, Id, Secret, bindings};
use serde_json::Value;

use super::{
    answer::{Refusal, Response, written},
    limits::Limits,
    lists,
    request::{Fields, Format, Query},
    room::{Reserved, Room},
};

/// The most bytes of a number, an id or a code in a body, with what is around it.
const LONGEST: usize = 32;

/// What a request about codes may have besides their list.
const OPTIONS: [&str; 3] = ["length", "alphabet", "check"];

/// The secret, if the service has one.
pub(super) struct Hiding(Option<Secret>);

/// A request that has a list of values.
pub(super) struct Listed<'a> {
    pub(super) label: &'a str,
    pub(super) query: Option<&'a str>,
    pub(super) body: Incoming,
    pub(super) limits: &'a Limits,
    pub(super) room: &'a Room,
}

impl Hiding {
    pub(super) fn new(secret: Option<Secret>) -> Self {
        Self(secret)
    }

    pub(super) fn has_secret(&self) -> bool {
        self.0.is_some()
    }

    /// `POST /v1/cloaks/{label}/hide`.
    pub(super) async fn hide(&self, request: Listed<'_>) -> Result<Response, Refusal> {
        let (cloak, format) = self.cloak(&request)?;
        let (_, numbers, room) = request.read("numbers", &[]).await?;
        let hide = |(index, number)| match number_in(number) {
            Ok(number) => Ok(cloak.hide(number).into()),
            Err(error) => Err(bad_at(index, &error)),
        };
        let hidden: Vec<i64> = numbers.iter().enumerate().map(hide).collect::<Result<_, _>>()?;
        Ok(written(room.hold(lists::listed(&hidden, format))))
    }

    /// `POST /v1/cloaks/{label}/reveal`.
    pub(super) async fn reveal(&self, request: Listed<'_>) -> Result<Response, Refusal> {
        let (cloak, format) = self.cloak(&request)?;
        let (_, ids, room) = request.read("ids", &[]).await?;
        let numbers = ids.iter().map(|id| Ok(cloak.reveal(id_in(id, format)?)));
        Ok(written(room.hold(list("numbers", numbers)?)))
    }

    /// `POST /v1/codes/{label}/encode`.
    pub(super) async fn encode(&self, request: Listed<'_>) -> Result<Response, Refusal> {
        Query::read(request.query, &[], 1)?;
        let (secret, label) = (self.secret()?, request.label);
        let (options, numbers, room) = request.read("numbers", &OPTIONS).await?;
        let codes = codes(secret, label, &options)?;
        let encoded = numbers.iter().map(|number| codes.encode(unsigned_in(number)?));
        Ok(written(room.hold(list("codes", encoded)?)))
    }

    /// `POST /v1/codes/{label}/decode`.
    pub(super) async fn decode(&self, request: Listed<'_>) -> Result<Response, Refusal> {
        Query::read(request.query, &[], 1)?;
        let (secret, label) = (self.secret()?, request.label);
        let (options, values, room) = request.read("codes", &OPTIONS).await?;
        let codes = codes(secret, label, &options)?;
        let numbers = values.iter().map(|code| {
            codes.decode(code.as_str().ok_or_else(|| invalid("a code must be a string"))?)
        });
        Ok(written(room.hold(list("numbers", numbers)?)))
    }

    fn cloak(&self, request: &Listed<'_>) -> Result<(Cloak, Format), Refusal> {
        let format = Query::read(request.query, &["format"], 1)?.format.unwrap_or_default();
        Ok((Cloak::new(self.secret()?, request.label), format))
    }

    fn secret(&self) -> Result<&Secret, Refusal> {
        Ok(self.0.as_ref().ok_or_else(|| {
            Error::invalid_argument(
                "this server has no secret, so it has no cloaks and no codes: start it with \
                 RANDFLAKE_SECRET or --secret-file",
            )
        })?)
    }
}

impl Listed<'_> {
    /// Reads the body: an array of 1 to `--max-count` values, and other fields.
    async fn read(
        self,
        name: &'static str,
        others: &[&'static str],
    ) -> Result<(Fields, Vec<Value>, Reserved), Refusal> {
        let most = self.limits.max_count as usize;
        let longest = 1024 + most * LONGEST;
        let sent = self.body.size_hint().exact().and_then(|sent| usize::try_from(sent).ok());
        let sent = sent.map_or(longest, |sent| sent.min(longest));
        // For the body, and for the answer: each value has at least a digit and a comma.
        let answered = most.min(1 + sent / 2) * LONGEST;
        let room = self.room.reserve(sent + answered, self.limits.max_wait).await?;
        let mut fields = Fields::read_long(self.body, &[&[name], others].concat(), longest).await?;
        match fields.take(name) {
            Some(Value::Array(values)) if (1..=most).contains(&values.len()) => {
                Ok((fields, values, room))
            }
            _ => Err(bad(Error::invalid_argument(format!(
                "{name} must be an array of 1 to {most} values"
            )))),
        }
    }
}

fn codes(secret: &Secret, label: &str, options: &Fields) -> Result<Codes, Refusal> {
    let size = |name, least, most: usize| {
        options.bounded(name, least, u32::try_from(most).unwrap_or(u32::MAX))
    };
    let mut builder = Codes::builder(secret, label);
    if let Some(length) = size("length", 4, Codes::MAX_LENGTH)? {
        builder = builder.length(length as usize);
    }
    if let Some(check) = size("check", 0, Codes::MAX_LENGTH - 1)? {
        builder = builder.check(check as usize);
    }
    if let Some(alphabet) = options.text("alphabet")? {
        builder = builder.alphabet(alphabet);
    }
    builder.build().map_err(bad)
}

/// Writes an object with a list of strings: many JSON parsers lose digits of large numbers.
fn list(
    name: &str,
    values: impl Iterator<Item = Result<impl Display, Error>>,
) -> Result<Vec<u8>, Refusal> {
    let mut json = format!("{{\"{name}\":[");
    for (index, value) in values.enumerate() {
        let value = value.map_err(|error| bad_at(index, &error))?.to_string();
        json.push_str(if index == 0 { "\"" } else { ",\"" });
        json.push_str(&value);
        json.push('"');
    }
    json.push_str("]}\n");
    Ok(json.into_bytes())
}

/// Reads a number of 64 bits, signed or unsigned, as a JSON number or a string of digits.
fn number_in(value: &Value) -> Result<u64, Error> {
    let number = match value {
        Value::String(digits) => return bindings::parse_raw(digits),
        Value::Number(number) => {
            number.as_u64().or_else(|| number.as_i64().map(i64::cast_unsigned))
        }
        _ => None,
    };
    number.ok_or_else(|| invalid("a number must be an integer of 64 bits, or its digits"))
}

/// Reads a number of 64 bits, as a JSON number or a string of digits.
fn unsigned_in(value: &Value) -> Result<u64, Error> {
    let number = match value {
        Value::String(digits) => digits.parse().ok(),
        _ => value.as_u64(),
    };
    number.ok_or_else(|| {
        invalid("a number must be an integer, 0 to 18446744073709551615, or its digits")
    })
}

fn id_in(value: &Value, format: Format) -> Result<Id, Error> {
    match (value, format) {
        (Value::String(text), Format::Text) => text.parse(),
        (Value::String(digits), Format::Number) => bindings::parse_number(digits),
        _ => Err(invalid("an id must be a string")),
    }
}

fn invalid(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidId, message)
}

/// Refuses one of a list.
fn bad_at(index: usize, error: &Error) -> Refusal {
    bad(Error::new(error.kind(), bindings::at_index(index, error)))
}

/// In a body, and not in the path.
fn bad(error: Error) -> Refusal {
    Refusal::from(error).with_status(hyper::StatusCode::BAD_REQUEST)
}
