//! The checked-in vector files are fresh, and the published ids are among them.

use std::{collections::HashSet, fs};

use randflake_vectors::{checked_in, directory, distribution, files, picture};
use serde_json::Value;

/// URLs of stores and texts of layouts, which no other implementation reads, and codes, which
/// `tests/cross_language/ff1.py` writes.
const WRITTEN_ELSEWHERE: [&str; 3] = ["stores.json", "layout_texts.json", "codes.json"];

#[test]
fn are_fresh() {
    for (name, content) in files() {
        assert!(
            checked_in(name) == content,
            "{name} is stale: run `cargo run -p randflake-vectors`"
        );
    }
    let found = fs::read_dir(directory()).expect("a folder").count();
    assert_eq!(found, files().len() + WRITTEN_ELSEWHERE.len());
}

#[test]
fn the_picture_is_fresh() {
    let checked_in = fs::read_to_string(picture()).expect("checked in");
    assert!(
        checked_in == distribution::svg(),
        "docs/distribution.svg is stale: run `cargo run -p randflake-vectors --bin distribution`"
    );
}

/// Names, inputs and results of the cases that came from published randflake 2.1.0. They are the
/// oracle: this digest must never change.
#[test]
fn keep_the_published_ids() {
    let file: Value = serde_json::from_str(&checked_in("ids.json")).expect("JSON");
    let line = |case: &Value| {
        let fields = case.as_object().expect("fields").values();
        fields.map(|field| format!("{field} ")).chain(["\n".into()]).collect::<String>()
    };
    let lines: String = file["cases"].as_array().expect("cases")[..119].iter().map(line).collect();
    assert_eq!(fnv_1a(lines.as_bytes()), 0x30ed_451f_1af1_8ed7);
}

/// FNV-1a: it detects accidental changes, not attacks.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[test]
fn name_each_case_once() {
    for (file, content) in files() {
        let mut names = HashSet::new();
        let json: Value = serde_json::from_str(&content).expect("JSON");
        for key in ["cases", "valid", "invalid", "bad_prefixes"] {
            for case in json[key].as_array().into_iter().flatten() {
                assert!(names.insert(case["name"].to_string()), "{file}: {}", case["name"]);
            }
        }
    }
}
