//! Codes: the vectors, one code for each number, what is refused, and how many guesses are codes.

use std::collections::HashSet;

use proptest::prelude::*;
use randflake::{Codes, ErrorKind, Result, Secret};
use randflake_vectors::checked_in;
use serde_json::Value;

const SECRET: &str = "dffd6021bb2bd5b0af676290809ec3a5";
const ALL_SYMBOLS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

fn secret() -> Secret {
    SECRET.parse().expect("hex")
}

fn file() -> Value {
    serde_json::from_str(&checked_in("codes.json")).expect("a vector file is JSON")
}

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap_or_else(|| panic!("{case} has a text {name}"))
}

fn described(case: &Value) -> Result<Codes> {
    let number =
        |name: &str| usize::try_from(case[name].as_u64().expect("a number")).expect("small");
    let secret = case["secret"].as_str().unwrap_or(SECRET).parse().expect("hex");
    Codes::builder(&secret, case["label"].as_str().unwrap_or("orders"))
        .length(number("length"))
        .alphabet(text(case, "alphabet"))
        .check(number("check"))
        .build()
}

#[test]
fn the_vectors() {
    let file = file();
    let cases = |name: &str| file[name].as_array().expect("a list").iter();
    for case in cases("cases") {
        let codes = described(case).expect("codes");
        let number = text(case, "number").parse().expect("64 bits");
        assert_eq!(codes.encode(number).as_deref(), Ok(text(case, "code")), "{case}");
    }
    for case in cases("cases").chain(cases("read")) {
        let codes = described(case).expect("codes");
        let number = codes.decode(text(case, "code")).map(|number| number.to_string());
        assert_eq!(number.as_deref(), Ok(text(case, "number")), "{case}");
    }
    for case in cases("invalid") {
        let refused = described(case).expect("codes").decode(text(case, "code"));
        assert_eq!(refused.map_err(|error| error.kind()), Err(ErrorKind::InvalidId), "{case}");
    }
    for case in cases("capacities") {
        let codes = described(case).expect("codes");
        assert_eq!(codes.capacity().to_string(), text(case, "capacity"), "{case}");
        let last = u64::try_from(codes.capacity() - 1).expect("64 bits");
        assert_eq!(codes.decode(&codes.encode(last).expect("a code")), Ok(last), "{case}");
        if let Some(next) = last.checked_add(1) {
            let refused = codes.encode(next).map_err(|error| error.kind());
            assert_eq!(refused, Err(ErrorKind::InvalidId), "{case}");
        }
    }
    for case in cases("invalid_options") {
        let refused = described(case).map(drop).map_err(|error| error.kind());
        assert_eq!(refused, Err(ErrorKind::InvalidArgument), "{case}");
    }
}

/// The smallest set that FF1 allows, whole: each number has a code of its own, each text is one's.
#[test]
fn each_number_has_one_code_and_each_text_is_the_code_of_one_number() {
    let codes = Codes::builder(&secret(), "orders").length(6).build().expect("codes");
    let mut seen = vec![false; 1_000_000];
    for number in 0..1_000_000 {
        let code: usize = codes.encode(number).expect("a code").parse().expect("digits");
        assert!(!std::mem::replace(&mut seen[code], true), "{code} is of two numbers");
    }
    for text in (0..1_000_000).step_by(97).map(|text| format!("{text:06}")) {
        let number = codes.decode(&text).expect("of a number");
        assert_eq!(codes.encode(number), Ok(text));
    }
}

/// One guess in radix^check is a code, in a set that can be counted whole.
#[test]
fn a_check_refuses_all_other_texts() {
    let codes = Codes::builder(&secret(), "orders").length(6).check(2).build().expect("codes");
    let right = (0..1_000_000).filter(|text| codes.decode(&format!("{text:06}")).is_ok()).count();
    assert_eq!(right, 10_000);
}

#[test]
fn a_check_changes_no_code_and_another_length_or_alphabet_changes_all() {
    let with = |length, alphabet, check| {
        let secret = secret();
        let codes = Codes::builder(&secret, "orders").length(length).alphabet(alphabet);
        codes.check(check).build().expect("codes").encode(7).expect("a code")
    };
    assert_eq!(with(8, "digits", 0), with(8, "digits", 4));
    let codes = [with(8, "digits", 0), with(9, "digits", 0), with(8, "0123456789abcdef", 0)];
    let beginnings: HashSet<_> = codes.iter().map(|code| &code[..4]).collect();
    assert_eq!(beginnings.len(), codes.len());
}

#[test]
fn errors_say_what_is_allowed_and_no_text_that_could_be_a_secret() {
    let error = |length, alphabet, check| {
        let secret = secret();
        let codes = Codes::builder(&secret, "orders").length(length).alphabet(alphabet);
        codes.check(check).build().expect_err("refused").to_string()
    };
    assert!(error(5, "digits", 0).ends_with("length must be at least 6"));
    assert!(error(3, "digits", 0).contains("4 to 24 symbols, got 3"));
    assert!(error(25, "digits", 0).contains("4 to 24 symbols, got 25"));
    assert!(error(8, "digits", 8).contains("0 to 7"));
    assert!(error(8, "base32", 0).contains("\"base32\""));
    assert!(!error(8, &SECRET.repeat(2), 0).contains(SECRET));

    let codes = Codes::builder(&secret(), "orders").check(3).build().expect("codes");
    let error = |code: &str| codes.decode(code).expect_err("refused").to_string();
    assert!(error("1234567").contains("8 characters, got 7"));
    assert!(error("1234567x").contains("0-9") && error("1234567x").starts_with("character 8 "));
    assert!(error("12345678").contains("typing error"));
    let error = codes.encode(100_000).expect_err("refused").to_string();
    assert!(error.contains("0 to 99999, got 100000"), "{error}");
    assert_eq!(format!("{codes:?}"), "Codes { length: 8, alphabet: \"0123456789\", check: 3, .. }");
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(
        key: [u8; 16], label: String, length in 4_usize..=24, radix in 10_usize..=62, check: usize,
        number: u64,
    ) {
        let secret = Secret::from_bytes(&key)?;
        let builder = Codes::builder(&secret, &label).length(length).alphabet(&ALL_SYMBOLS[..radix]);
        let Ok(codes) = builder.check(check % length).build() else {
            // The only ones that are refused.
            prop_assert!((radix as u128).pow(u32::try_from(length)?) < 1_000_000);
            return Ok(());
        };
        let number = u64::try_from(u128::from(number) % codes.capacity())?;
        let code = codes.encode(number)?;
        prop_assert_eq!(code.len(), length);
        prop_assert_eq!(codes.decode(&code)?, number);
        // Either case is read if no letter has both.
        if radix <= 26 {
            prop_assert_eq!(codes.decode(&code.to_lowercase())?, number);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text: String, check in 0_usize..8) {
        let secret = secret();
        for alphabet in ["digits", "crockford", "letters"] {
            let builder = Codes::builder(&secret, "orders").alphabet(alphabet).check(check);
            if let Err(error) = builder.build()?.decode(&text) {
                prop_assert_eq!(error.kind(), ErrorKind::InvalidId);
            }
        }
    }
}
