//! Transactions through etcd's JSON gateway, and what its answers mean.

use std::{collections::BTreeMap, time::UNIX_EPOCH};

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use serde_json::{Value, json};

use crate::remote::{
    context::Context,
    exchange::{Response, Statement},
};
use randflake::Result;

pub(super) fn get(key: &str) -> Value {
    json!({"request_range": {"key": BASE64.encode(key)}})
}

/// Reads the keys from `from` to `end`, at most `limit` of them.
pub(super) fn get_range(from: &str, end: &str, limit: usize) -> Value {
    json!({"request_range": {
        "key": BASE64.encode(from),
        "range_end": BASE64.encode(end),
        "limit": limit.to_string(),
    }})
}

pub(super) fn put(key: &str, value: &str) -> Value {
    json!({"request_put": {"key": BASE64.encode(key), "value": BASE64.encode(value)}})
}

/// Compares the value of a key; `None` if it must be missing.
pub(super) fn is(key: &str, value: Option<&str>) -> Value {
    let key = BASE64.encode(key);
    value.map_or_else(
        || json!({"key": key, "result": "EQUAL", "target": "CREATE", "create_revision": "0"}),
        |value| {
            let value = BASE64.encode(value);
            json!({"key": key, "result": "EQUAL", "target": "VALUE", "value": value})
        },
    )
}

/// An answer to a transaction.
pub(super) struct TxnResponse {
    /// The server's clock, if the answer had a date.
    pub(super) date: Option<i64>,
    pub(super) cluster_id: String,
    pub(super) revision: i64,
    pub(super) succeeded: bool,
    /// Key and value of everything that was read.
    pub(super) found: BTreeMap<String, String>,
    /// Whether each nested transaction has succeeded.
    pub(super) inner: Vec<bool>,
}

/// Runs a transaction: does `success` if `compares` hold, else `failure`.
pub(super) async fn transact(
    context: &Context,
    compares: Vec<Value>,
    success: Vec<Value>,
    failure: Vec<Value>,
) -> Result<TxnResponse> {
    let body = json!({"compare": compares, "success": success, "failure": failure});
    let parameters = vec![body.to_string()];
    let response = context.run(Statement { text: "/v3/kv/txn", parameters, wait: None }).await;
    read(context, response)
}

/// Posts a request without parameters, and returns the answer.
pub(super) async fn ask(context: &Context, path: &'static str) -> Result<Value> {
    let parameters = vec!["{}".into()];
    let response = context.run(Statement { text: path, parameters, wait: None }).await;
    Ok(parse(context, response)?.0)
}

/// Returns the JSON of an answer, and its date.
fn parse(context: &Context, response: Response) -> Result<(Value, Option<i64>)> {
    let mut cells = match response {
        Response::Rows(rows) | Response::Confirmed { rows, .. } => rows.into_iter().flatten(),
        Response::Refused { code, message } => {
            return Err(context.unavailable(&format!("it says {code}: {message}")));
        }
    };
    let body: Value = cells
        .next()
        .flatten()
        .and_then(|text| serde_json::from_str(&text).ok())
        .ok_or_else(|| context.malformed("not JSON"))?;
    if let Some(error) = body.get("error").or_else(|| body.get("message")) {
        let error: String = error.to_string().chars().take(200).collect();
        return Err(context.unavailable(&format!("it says {error}")));
    }
    Ok((body, cells.next().flatten().and_then(|date| unix_second_of(&date))))
}

fn read(context: &Context, response: Response) -> Result<TxnResponse> {
    let (body, date) = parse(context, response)?;
    let header = &body["header"];
    let cluster_id = header["cluster_id"].as_str().ok_or_else(|| context.malformed("header"))?;
    let mut answer = TxnResponse {
        date,
        cluster_id: cluster_id.into(),
        revision: integer(&header["revision"]).ok_or_else(|| context.malformed("revision"))?,
        succeeded: succeeded(&body),
        found: BTreeMap::new(),
        inner: vec![],
    };
    for response in responses(&body) {
        answer.take(context, response)?;
        if let Some(inner) = response.get("response_txn") {
            answer.inner.push(succeeded(inner));
            for response in responses(inner) {
                answer.take(context, response)?;
            }
        }
    }
    Ok(answer)
}

impl TxnResponse {
    /// Takes what one operation has read.
    fn take(&mut self, context: &Context, response: &Value) -> Result<()> {
        for pair in response["response_range"]["kvs"].as_array().into_iter().flatten() {
            let text = |name: &str| {
                let bytes = BASE64.decode(pair[name].as_str().unwrap_or_default()).ok()?;
                String::from_utf8(bytes).ok()
            };
            let pair = text("key").zip(text("value"));
            self.found.extend([pair.ok_or_else(|| context.malformed("a key"))?]);
        }
        Ok(())
    }
}

/// The gateway leaves out what is false.
fn succeeded(body: &Value) -> bool {
    body["succeeded"].as_bool().unwrap_or(false)
}

fn responses(body: &Value) -> impl Iterator<Item = &Value> {
    body["responses"].as_array().into_iter().flatten()
}

/// The gateway writes numbers of 64 bits as text.
fn integer(value: &Value) -> Option<i64> {
    value.as_str()?.parse().ok()
}

/// Reads a `Date` header, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn unix_second_of(date: &str) -> Option<i64> {
    let time = httpdate::parse_http_date(date.trim()).ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}
