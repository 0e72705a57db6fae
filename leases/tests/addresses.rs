//! URLs of stores: all languages parse or refuse them alike. And the names of namespaces.

use std::{collections::BTreeMap, fs};

use randflake::{ErrorKind, Secret};
use randflake_leases::{Location, Namespace, remote::Address};
use serde_json::Value;

/// The vectors that all languages run.
const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/stores.json");

const PARTS: [&str; 5] = ["schemes", "logins", "hosts", "paths", "queries"];

fn refused(url: &str) {
    let secret = Secret::random();
    let namespace = Namespace::new("default", &secret).expect("a name");
    let opened = Location::from(url).open(&namespace);
    let error = opened.err().unwrap_or_else(|| panic!("{url} is taken"));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{url}: {error}");
    assert!(!error.to_string().contains("hunter2"), "{url}: {error}");
}

#[test]
fn a_url_has_one_place_or_is_refused() {
    let vectors = fs::read(VECTORS).expect("in the repository");
    let vectors: Value = serde_json::from_slice(&vectors).expect("JSON");
    for (name, engine) in vectors["engines"].as_object().expect("engines") {
        let mut all = vec![(String::new(), String::new())];
        for part in PARTS {
            let part: BTreeMap<String, String> =
                serde_json::from_value(engine[part].clone()).expect("written and meant");
            let joined = |(url, place): &(String, String)| -> Vec<_> {
                part.iter()
                    .map(|(one, other)| (format!("{url}{one}"), format!("{place}{other}")))
                    .collect()
            };
            all = all.iter().flat_map(joined).collect();
        }
        let whole: BTreeMap<String, String> =
            serde_json::from_value(engine["whole"].clone()).expect("URLs and places");
        all.extend(whole);
        assert!(all.len() >= 200, "{name}: {}", all.len());
        for (url, place) in all {
            let address = Address::read(&url).expect("a URL");
            let address = address.unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!((address.to_string(), address.engine.scheme()), (place, name.as_str()));
            if address.password.is_none() {
                let again = Address::read(&address.to_string()).expect("a URL");
                assert_eq!(again.expect("a place").to_string(), address.to_string());
            }
            assert!(!format!("{address:?}").contains("hunter2"));
        }
        let example: Vec<String> =
            serde_json::from_value(engine["example"].clone()).expect("parts");
        let wrong: Vec<Vec<String>> =
            serde_json::from_value(engine["wrong"].clone()).expect("parts");
        for (index, parts) in wrong.iter().enumerate() {
            for part in parts {
                let mut url = example.clone();
                url[index].clone_from(part);
                // Without a scheme it is a path.
                if index > 0 || !part.is_empty() {
                    refused(&url.concat());
                }
            }
        }
    }
    for path in vectors["no_urls"].as_array().expect("paths") {
        assert!(Address::read(path.as_str().expect("text")).is_none(), "{path}");
    }
    for store in vectors["no_stores"].as_array().expect("texts") {
        refused(store.as_str().expect("text"));
    }
}

#[test]
fn a_namespace_has_nothing_around_it() {
    for name in [" orders", "orders ", "orders\n", "\"orders\"", "'orders'", "\u{a0}orders"] {
        assert!(Namespace::for_tickets(name).is_err(), "{name:?}");
    }
    for name in ["orders", "our orders", "o'clock", "\"", "größe"] {
        assert_eq!(Namespace::for_tickets(name).is_ok(), name != "\"", "{name:?}");
    }
}
