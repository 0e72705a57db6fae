//! The vector files of `tests/vectors`, against the core.

mod common;

use std::{fs, path::Path, time::Duration};

use common::{Call, Outcome, Scripted};
use randflake::{
    Clock, ErrorKind, Id, Inspector, Lease, Randflake, Result, Secret, bindings::unix_nanos,
};
use randflake_vectors::{
    cases::SECRET,
    model::{Failure, Options, Run},
};
use serde_json::Value;

fn file(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors").join(name);
    let text = fs::read_to_string(path).expect("the vector files are checked in");
    serde_json::from_str(&text).expect("a vector file is JSON")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{value} has a list {key}"))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{value} has a text {key}"))
}

fn number(value: &Value, key: &str) -> i64 {
    value[key].as_i64().unwrap_or_else(|| panic!("{value} has a whole number {key}"))
}

/// Reads a decimal string.
fn wide<T: std::str::FromStr>(value: &Value, key: &str) -> T {
    text(value, key).parse().unwrap_or_else(|_| panic!("{value} has a decimal string {key}"))
}

/// Reads seconds as nanoseconds, the way a binding does.
fn nanos(seconds: &Value) -> i64 {
    unix_nanos(seconds.as_f64().expect("seconds")).expect("plausible seconds")
}

fn secret(value: &Value) -> Secret {
    text(value, "secret").parse().expect("hex")
}

#[test]
fn ids() {
    let file = file("ids.json");
    for case in list(&file, "cases") {
        let inspector = Inspector::new(&secret(case));
        let (raw, id) = (wide(case, "raw"), Id::from(wide::<i64>(case, "id")));
        assert_eq!(inspector.encrypt(raw), id, "{case}");
        assert_eq!(inspector.decrypt(id), raw, "{case}");
        assert_eq!(id.to_string(), text(case, "text"), "{case}");
        assert_eq!(text(case, "text").parse(), Ok(id), "{case}");
        let parts = inspector.inspect(id);
        assert_eq!(parts.timestamp, number(case, "timestamp"), "{case}");
        assert_eq!(i64::from(parts.node_id), number(case, "node_id"), "{case}");
        assert_eq!(i64::from(parts.sequence), number(case, "sequence"), "{case}");
    }
}

#[test]
fn sparx() {
    let file = file("sparx.json");
    for case in list(&file, "cases") {
        let inspector = Inspector::new(&secret(case));
        let (raw, id) = (wide(case, "raw"), Id::from(wide::<i64>(case, "id")));
        assert_eq!(inspector.encrypt(raw), id, "{case}");
        assert_eq!(inspector.decrypt(id), raw, "{case}");
    }
}

#[test]
fn texts() {
    let file = file("text.json");
    for case in list(&file, "valid") {
        let id = Id::from(wide::<i64>(case, "id"));
        assert_eq!(id.to_string(), text(case, "text"), "{case}");
        assert_eq!(text(case, "text").parse(), Ok(id), "{case}");
    }
    for case in list(&file, "invalid") {
        let kind = text(case, "text").parse::<Id>().map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::InvalidId), "{case}");
    }
}

#[test]
fn errors() {
    let file = file("errors.json");
    let codes: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
    assert_eq!(list(&file, "codes"), codes);
    for case in list(&file, "cases") {
        let code = build(&case["options"]).map_err(|error| error.code());
        assert_eq!(code.map(drop), Err(text(case, "error")), "{case}");
    }
}

fn build(options: &Value) -> Result<Randflake<impl Clock>> {
    let secret: Secret = options["secret"].as_str().unwrap_or(SECRET).parse()?;
    let small = |value: &Value| u32::try_from(value.as_u64().expect("a number")).expect("32 bits");
    let mut builder = Randflake::builder(&secret);
    builder = match options["node_ids"].as_array() {
        Some(node_ids) => builder.node_ids(node_ids.iter().map(small)),
        None => builder.node_id(1),
    };
    if let Some(lease) = options.get("lease") {
        builder =
            builder.lease(Lease::new(number(lease, "start"), number(lease, "end_exclusive"))?);
    }
    if let Some(max_wait) = options.get("max_wait") {
        builder = builder.max_wait(Duration::from_secs_f64(max_wait.as_f64().expect("seconds")));
    }
    if let Some(max_drift) = options.get("max_drift") {
        builder = builder.max_drift(small(max_drift));
    }
    builder.clock(|| 1_763_640_000_000_000_000).build()
}

#[test]
fn timelines() {
    let file = file("timelines.json");
    for case in list(&file, "cases") {
        let lease = &case["lease"];
        let options = Options {
            node_ids: serde_json::from_value(case["node_ids"].clone()).expect("node ids"),
            lease: lease
                .is_object()
                .then(|| (number(lease, "start"), number(lease, "end_exclusive"))),
            max_wait: nanos(&case["max_wait"]),
            max_drift: number(case, "max_drift"),
        };
        let can_sleep = case["can_sleep"].as_bool().expect("a flag");
        let secret = SECRET.parse().expect("hex");
        let scripted = Scripted::new(&secret, &options, can_sleep).expect("valid options");
        for step in list(case, "steps") {
            let call = match text(step, "call") {
                "generate" => Call::Generate,
                "fill" => Call::Fill(number(step, "count").try_into().expect("a count")),
                "extend_lease" => Call::Extend(number(step, "end_exclusive")),
                "close" => Call::Close,
                other => panic!("an unknown call {other}"),
            };
            let readings: Vec<i64> = list(step, "readings").iter().map(nanos).collect();
            let expected = Outcome {
                unread: Vec::new(),
                sleeps: list(step, "sleeps").iter().map(nanos).collect(),
                result: expected_result(step),
            };
            let name = &case["name"];
            assert_eq!(scripted.call(call, &readings), expected, "{name}: {step}");
        }
    }
}

fn expected_result(step: &Value) -> Result<Vec<Run>, Failure> {
    if let Some(code) = step["error"].as_str() {
        let code = ErrorKind::ALL.iter().map(|kind| kind.code()).find(|&known| known == code);
        let retry_after = &step["retry_after"];
        return Err(Failure {
            code: code.expect("a known code"),
            retry_after: (!retry_after.is_null()).then(|| nanos(retry_after)),
        });
    }
    Ok(step
        .get("ids")
        .map_or_else(Vec::new, |ids| serde_json::from_value(ids.clone()).expect("runs of ids")))
}
