//! Numbers behind a cloak: hidden, and revealed again.

use hyper::body::Incoming;
use randflake::{Cloak, Error, ErrorKind, Id, Secret, bindings};
use serde_json::Value;

use super::{
    answer::{Refusal, Response, written},
    limits::Limits,
    lists,
    request::{Fields, Format, Query},
    room::{Reserved, Room},
};

/// The most bytes of a number or an id in a body, with what is around it.
const LONGEST: usize = 32;

/// The secret of cloaks, if the service has one.
pub(super) struct Cloaks(Option<Secret>);

impl Cloaks {
    pub(super) fn new(secret: Option<Secret>) -> Self {
        Self(secret)
    }

    pub(super) fn are_there(&self) -> bool {
        self.0.is_some()
    }

    /// `POST /v1/cloaks/{label}/hide`.
    pub(super) async fn hide(
        &self,
        label: &str,
        query: Option<&str>,
        body: Incoming,
        limits: &Limits,
        room: &Room,
    ) -> Result<Response, Refusal> {
        let format = Query::read(query, &["format"], 1)?.format.unwrap_or_default();
        let cloak = self.labelled(label)?;
        let (numbers, room) = listed(body, "numbers", limits, room).await?;
        let hidden: Vec<i64> = numbers
            .iter()
            .map(|number| Ok(cloak.hide(number_in(number)?).into()))
            .collect::<Result<_, Error>>()
            .map_err(bad)?;
        Ok(written(room.hold(lists::listed(&hidden, format))))
    }

    /// `POST /v1/cloaks/{label}/reveal`.
    pub(super) async fn reveal(
        &self,
        label: &str,
        query: Option<&str>,
        body: Incoming,
        limits: &Limits,
        room: &Room,
    ) -> Result<Response, Refusal> {
        let format = Query::read(query, &["format"], 1)?.format.unwrap_or_default();
        let cloak = self.labelled(label)?;
        let (ids, room) = listed(body, "ids", limits, room).await?;
        let mut json = b"{\"numbers\":[".to_vec();
        for (index, id) in ids.iter().enumerate() {
            let number = cloak.reveal(id_in(id, format).map_err(bad)?);
            json.extend_from_slice(if index == 0 { b"\"" } else { b",\"" });
            json.extend_from_slice(number.to_string().as_bytes());
            json.push(b'"');
        }
        json.extend_from_slice(b"]}\n");
        Ok(written(room.hold(json)))
    }

    fn labelled(&self, label: &str) -> Result<Cloak, Refusal> {
        let secret = self.0.as_ref().ok_or_else(|| {
            Error::invalid_argument(
                "this server has no secret, so it has no cloaks: start it with RANDFLAKE_SECRET or \
                 --secret-file",
            )
        })?;
        Ok(Cloak::new(secret, label))
    }
}

/// Reads the only field of a body, an array of 1 to `--max-count` values.
async fn listed(
    body: Incoming,
    name: &'static str,
    limits: &Limits,
    room: &Room,
) -> Result<(Vec<Value>, Reserved), Refusal> {
    let most = limits.max_count as usize;
    let longest = 1024 + most * LONGEST;
    // For the body, and for the answer.
    let room = room.reserve(2 * longest, limits.max_wait).await?;
    let mut fields = Fields::read_long(body, &[name], longest).await?;
    let values = match fields.take(name) {
        Some(Value::Array(values)) if (1..=most).contains(&values.len()) => values,
        _ => {
            return Err(bad(Error::invalid_argument(format!(
                "{name} must be an array of 1 to {most} values"
            ))));
        }
    };
    Ok((values, room))
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
    number.ok_or_else(|| {
        Error::new(ErrorKind::InvalidId, "a number must be an integer of 64 bits, or its digits")
    })
}

fn id_in(value: &Value, format: Format) -> Result<Id, Error> {
    match (value, format) {
        (Value::String(text), Format::Text) => text.parse(),
        (Value::String(digits), Format::Number) => bindings::parse_number(digits),
        _ => Err(Error::new(ErrorKind::InvalidId, "an id must be a string")),
    }
}

/// In a body, and not in the path.
fn bad(error: Error) -> Refusal {
    Refusal::from(error).with_status(hyper::StatusCode::BAD_REQUEST)
}
