//! The vector files without a clock.

use serde_json::{Value, json};

use crate::{format, json::render};

/// The secret of every case that names none.
pub const SECRET: &str = "dffd6021bb2bd5b0af676290809ec3a5";

/// Every error code.
pub const CODES: [&str; 26] = [
    "INVALID_SECRET",
    "INVALID_NODE",
    "INVALID_LEASE",
    "INVALID_ID",
    "INVALID_ARGUMENT",
    "NODE_IN_USE",
    "LEASE_NOT_STARTED",
    "LEASE_EXPIRED",
    "SEQUENCE_EXHAUSTED",
    "CLOCK_MOVED_BACK",
    "CLOCK_BEFORE_EPOCH",
    "LIFETIME_OVER",
    "FORKED",
    "CLOSED",
    "INTERNAL",
    "LEASE_UNAVAILABLE",
    "STORE_UNAVAILABLE",
    "NODES_EXHAUSTED",
    "CLOCK_SKEW",
    "LEASE_LOST",
    "STORE_QUARANTINED",
    "STORE_REPLACED",
    "STORE_NOT_INITIALIZED",
    "SECRET_MISMATCH",
    "WEAK_STORE",
    "DRIVER_MISSING",
];

/// Returns `ids.json` with the names and inputs of `checked_in` and everything else computed.
///
/// # Panics
///
/// If `checked_in` is no such file.
#[must_use]
pub fn ids(checked_in: &str) -> String {
    let mut file: Value = serde_json::from_str(checked_in).expect("ids.json is JSON");
    for case in file["cases"].as_array_mut().expect("cases") {
        let part = |name: &str| case[name].as_i64().expect("a number");
        let small = |name: &str| u32::try_from(part(name)).expect("17 bits");
        let secret = format::secret(case["secret"].as_str().expect("hex"));
        let raw = format::pack(part("timestamp"), small("node_id"), small("sequence"));
        let id = format::encrypt(secret, raw);
        case["raw"] = raw.to_string().into();
        case["id"] = id.to_string().into();
        case["text"] = format::text(id).into();
    }
    render(&file, 2)
}

/// Returns `layouts.json` with the layouts, names, inputs and provenances of `checked_in` and
/// everything else computed.
///
/// # Panics
///
/// If `checked_in` is no such file.
#[must_use]
pub fn layouts(checked_in: &str) -> String {
    let mut file: Value = serde_json::from_str(checked_in).expect("layouts.json is JSON");
    let layouts = file["layouts"].clone();
    for case in file["cases"].as_array_mut().expect("cases") {
        pack(case, &layouts);
    }
    render(&file, 2)
}

/// Returns `peers.json` with the names, inputs and provenances of `checked_in` and everything
/// else computed, by the layouts of `layouts.json`.
///
/// # Panics
///
/// If `checked_in` is no such file, or an id is not what its parts pack to.
#[must_use]
pub fn peers(checked_in: &str, layouts: &str) -> String {
    let mut file: Value = serde_json::from_str(checked_in).expect("peers.json is JSON");
    let layouts: Value = serde_json::from_str(layouts).expect("layouts.json is JSON");
    for case in file["cases"].as_array_mut().expect("cases") {
        let theirs = case["id"].clone();
        pack(case, &layouts["layouts"]);
        assert_eq!(case["id"], theirs, "{case}");
    }
    render(&file, 2)
}

/// Computes the id of a case of a layout, and what follows from it.
fn pack(case: &mut Value, layouts: &Value) {
    let layout = &layouts[case["layout"].as_str().expect("a layout")];
    let number = |value: &Value| value.as_i64().expect("a number");
    let ticks =
        (number(&case["unix_ms"]) - number(&layout["epoch_ms"])) / number(&layout["tick_ms"]);
    // 128 bits: what does not fit shows.
    let (mut id, mut first, mut last) = (0_u128, 0_u128, 0_u128);
    for field in layout["fields"].as_array().expect("fields") {
        let bits = number(&field[1]);
        let most = (1_u128 << bits) - 1;
        let (value, lowest, highest) = match field[0].as_str().expect("a name") {
            "time" => (ticks, ticks.unsigned_abs().into(), ticks.unsigned_abs().into()),
            "node" => (number(&case["node_id"]), 0, most),
            _ => (number(&case["sequence"]), 0, most),
        };
        let value = u128::try_from(value).expect("not negative");
        assert!(value <= most, "{case}: {field}");
        (id, first, last) = (id << bits | value, first << bits | lowest, last << bits | highest);
    }
    assert!(last <= u64::MAX.into(), "{case}");
    case["id"] = id.to_string().into();
    case["first_id"] = first.to_string().into();
    case["last_id"] = last.to_string().into();
    if let Some(split) = layout["node_split"].as_array() {
        let worker_bits = number(&split[1][1]);
        let node_id = number(&case["node_id"]);
        case["node_parts"] = json!([node_id >> worker_bits, node_id % (1 << worker_bits)]);
    }
}

/// Returns `boundary.json` with the names, parts and provenances of `checked_in` and everything
/// else computed.
///
/// # Panics
///
/// If `checked_in` is no such file.
#[must_use]
pub fn boundary(checked_in: &str) -> String {
    const DIGITS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut file: Value = serde_json::from_str(checked_in).expect("boundary.json is JSON");
    for case in file["cases"].as_array_mut().expect("cases") {
        let text = |name: &str| case[name].as_str().expect("a text");
        let unix_ms: u64 = text("unix_ms").parse().expect("64 bits");
        let sequence = case["sequence"].as_u64().expect("a number");
        let bytes = format!("{unix_ms:016x}{}{sequence:04x}", text("worker"));
        let mut rest = u128::from_str_radix(&bytes, 16).expect("32 hex digits");
        let mut digits = Vec::new();
        while rest > 0 || digits.is_empty() {
            digits.push(DIGITS.as_bytes()[usize::try_from(rest % 62).expect("small")]);
            rest /= 62;
        }
        digits.reverse();
        case["bytes"] = bytes.into();
        case["text"] = String::from_utf8(digits).expect("ASCII").into();
    }
    render(&file, 2)
}

/// Returns `cloak.json` with the names, inputs and keys of `checked_in` and everything else
/// computed from the keys.
///
/// # Panics
///
/// If `checked_in` is no such file.
#[must_use]
pub fn cloak(checked_in: &str) -> String {
    let mut file: Value = serde_json::from_str(checked_in).expect("cloak.json is JSON");
    for case in file["cases"].as_array_mut().expect("cases") {
        let text = |name: &str| case[name].as_str().expect("a text");
        let number = text("number").parse().expect("64 bits");
        let hidden = format::encrypt(format::secret(text("key")), number);
        case["hidden"] = hidden.to_string().into();
        case["text"] = format::text(hidden).into();
    }
    render(&file, 2)
}

/// Returns `sparx.json`.
#[must_use]
pub fn sparx() -> String {
    const ZERO: &str = "00000000000000000000000000000000";
    let case = |name: &str, secret: &str, raw: u64| {
        let id = format::encrypt(format::secret(secret), raw);
        json!({ "name": name, "secret": secret, "raw": raw.to_string(), "id": id.to_string() })
    };
    // The paper's plaintext 0123 4567 89ab cdef, as a number.
    let paper = u64::from_le_bytes(0x0123_4567_89ab_cdef_u64.to_be_bytes());
    let mut cases = vec![
        case("the known answer of the paper", "00112233445566778899aabbccddeeff", paper),
        case("all bits clear", ZERO, 0),
        case("all bits set", &"f".repeat(32), u64::MAX),
    ];
    for bit in 0..64 {
        cases.push(case(&format!("bit {bit} of the block"), ZERO, 1 << bit));
    }
    for bit in 0..128 {
        let secret = format!("{:032x}", 1_u128 << bit);
        cases.push(case(&format!("bit {bit} of the secret"), &secret, 0));
    }
    let comment = "secret + raw (the block, unsigned) -> id (encrypted, signed). 64-bit values are \
        decimal strings. The first case is the known answer of the paper that presents SPARX \
        (ASIACRYPT 2016): plaintext 0123 4567 89ab cdef, ciphertext 2bbe f152 01f5 5f98. The \
        others were computed with the Rust crate sparx 0.1, written independently of Randflake.";
    render(&json!({ "_comment": comment, "cases": cases }), 2)
}

/// Returns `text.json`.
#[must_use]
#[allow(clippy::missing_panics_doc, reason = "its inputs are constants")]
pub fn text() -> String {
    let digits = |text| u64::from_str_radix(text, 32).expect("base 32").cast_signed();
    let valid = [
        ("zero is one digit", 0),
        ("the last decimal digit", 9),
        ("the first letter", 10),
        ("the last digit", 31),
        ("two digits", 32),
        ("three digits", 1 << 10),
        ("twelve digits", (1 << 60) - 1),
        ("thirteen digits", 1 << 60),
        ("the largest id", i64::MAX),
        ("the smallest id is the first with bit 63", i64::MIN),
        ("-1 has all bits set", -1),
        ("an id of the published release", 4_594_531_474_933_654_033),
        ("a negative id of the published release", -232_447_010_193_727_000),
        ("the digits from 1 to d", digits("123456789abcd")),
        ("the digits from e to q", digits("efghijklmnopq")),
        ("the digits from r to v", digits("rstuv")),
        ("every bit differs from its neighbours", 0x5555_5555_5555_5555),
        ("and the other way round", !0x5555_5555_5555_5555),
    ]
    .map(|(name, id): (&str, i64)| {
        json!({ "name": name, "text": format::text(id), "id": id.to_string() })
    });
    let invalid = [
        ("empty", ""),
        ("a leading zero", "01"),
        ("zero twice", "00"),
        ("thirteen zeros", "0000000000000"),
        ("a leading zero before twelve digits", "0vvvvvvvvvvvv"),
        ("64 bits and one more", "g000000000000"),
        ("65 bits set", "vvvvvvvvvvvvv"),
        ("fourteen digits", "10000000000000"),
        ("fourteen digits whose 64-bit remainder is an id", "g3vgoe12ccb8gh"),
        ("very long", "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"),
        ("upper case", "3VGOE12CCB8GH"),
        ("one upper case letter", "3vgoe12ccb8gH"),
        ("the letter after v", "w"),
        ("the last letter", "z"),
        ("the character before 0", "/"),
        ("the character after 9", ":"),
        ("the character before a", "`"),
        ("an id as a negative decimal", "-232447010193727000"),
        ("an id as a decimal", "4594531474933654033"),
        ("a minus sign", "-1"),
        ("a plus sign", "+1"),
        ("only a sign", "-"),
        ("a space before", " 1"),
        ("a space behind", "1 "),
        ("a space", " "),
        ("a line end", "1\n"),
        ("a NUL behind", "1\0"),
        ("a NUL between", "1\u{0}1"),
        ("padding", "3vgoe12ccb8gh==="),
        ("an underscore", "1_0"),
        ("a hexadecimal prefix", "0x1"),
        ("a fraction", "1.0"),
        ("a letter with an accent", "é"),
        ("a full-width digit", "１"),
        ("an Arabic digit", "١"),
        ("a letter that becomes k in lower case", "\u{212a}"),
        ("a character outside the basic plane", "🦀"),
        ("thirteen bytes, not all of them digits", "vvvvvvvvvvvé"),
    ]
    .map(|(name, text)| json!({ "name": name, "text": text }));
    let comment = "valid: id (signed 64-bit, a decimal string) <-> text (base32hex of the id as an \
        unsigned number, lower case, shortest form), both ways. invalid: texts whose decoding is \
        INVALID_ID. Computed by a plain loop of divisions, not by the core.";
    render(&json!({ "_comment": comment, "valid": valid.to_vec(), "invalid": invalid.to_vec() }), 2)
}

/// Returns `text_form.json`, with the secret, label and key of the first case of `cloak.json`.
///
/// # Panics
///
/// If `cloak` is no such file.
#[must_use]
#[allow(clippy::too_many_lines, reason = "a table")]
pub fn text_form(cloak: &str) -> String {
    const DIGITS: &str = "(0|[1-9a-v][0-9a-v]{0,11}|[1-9a-f][0-9a-v]{12})";
    let cloak: Value = serde_json::from_str(cloak).expect("cloak.json is JSON");
    let (secret, label) = (&cloak["cases"][0]["secret"], &cloak["cases"][0]["label"]);
    let key = format::secret(cloak["cases"][0]["key"].as_str().expect("hex"));
    let only_digits = u64::from_str_radix("1234567890123", 32).expect("base 32").cast_signed();
    let ids = [
        ("zero", 0),
        ("one", 1),
        ("-1 has all bits set", -1),
        ("the largest id", i64::MAX),
        ("the smallest id", i64::MIN),
        ("an id of the published release", 4_594_531_474_933_654_033),
        ("a negative id of the published release", -232_447_010_193_727_000),
        ("a Snowflake", 1_541_815_603_606_036_480),
        ("an id whose text is digits only", only_digits),
        ("a number that is hidden as this id", format::decrypt(key, only_digits).cast_signed()),
    ];
    let forms = [
        ("plain", "", false),
        ("prefix", "user", false),
        ("prefix with underscores", "a__b_c", false),
        ("the longest prefix", &"z".repeat(63), false),
        ("cloak", "", true),
        ("both", "order", true),
    ];
    let (mut described, mut valid) = (serde_json::Map::new(), Vec::new());
    for (form, prefix, hides) in forms {
        let start = if prefix.is_empty() { String::new() } else { format!("{prefix}_") };
        let mut options = json!({ "pattern": format!("^{start}{DIGITS}$") });
        if !prefix.is_empty() {
            options["prefix"] = prefix.into();
        }
        if hides {
            options["cloak"] = json!({ "secret": secret, "label": label });
        }
        described.insert(form.into(), options);
        for (name, id) in ids {
            let outside = if hides { format::encrypt(key, id.cast_unsigned()) } else { id };
            let text = format!("{start}{}", format::text(outside));
            valid.push(json!({
                "name": format!("{form}: {name}"), "form": form, "id": id.to_string(), "text": text,
            }));
        }
    }
    let invalid = [
        ("no digits", "plain", ""),
        ("a leading zero", "plain", "01"),
        ("upper case", "plain", "3VGOE12CCB8GH"),
        ("64 bits and one more", "plain", "g000000000000"),
        ("fourteen digits", "plain", "10000000000000"),
        ("an id as a decimal", "plain", "4594531474933654033"),
        ("a prefix where none belongs", "plain", "user_3vgoe12ccb8gh"),
        ("an underscore where none belongs", "plain", "_3vgoe12ccb8gh"),
        ("nothing", "prefix", ""),
        ("the prefix alone", "prefix", "user"),
        ("the prefix and its underscore alone", "prefix", "user_"),
        ("no prefix", "prefix", "3vgoe12ccb8gh"),
        ("no prefix, and only digits", "prefix", "1234567890123"),
        ("an underscore without its prefix", "prefix", "_3vgoe12ccb8gh"),
        ("no underscore", "prefix", "user3vgoe12ccb8gh"),
        ("two underscores", "prefix", "user__3vgoe12ccb8gh"),
        ("a hyphen", "prefix", "user-3vgoe12ccb8gh"),
        ("another prefix", "prefix", "post_3vgoe12ccb8gh"),
        ("a longer prefix", "prefix", "users_3vgoe12ccb8gh"),
        ("a shorter prefix", "prefix", "use_3vgoe12ccb8gh"),
        ("a prefix before the prefix", "prefix", "a_user_3vgoe12ccb8gh"),
        ("the prefix twice", "prefix", "user_user_3vgoe12ccb8gh"),
        ("the prefix in upper case", "prefix", "USER_3vgoe12ccb8gh"),
        ("digits in upper case behind the prefix", "prefix", "user_3VGOE12CCB8GH"),
        ("a leading zero behind the prefix", "prefix", "user_01"),
        ("64 bits and one more behind the prefix", "prefix", "user_g000000000000"),
        ("fourteen digits behind the prefix", "prefix", "user_10000000000000"),
        ("a minus sign behind the prefix", "prefix", "user_-1"),
        ("a space before the prefix", "prefix", " user_1"),
        ("a line end behind", "prefix", "user_1\n"),
        ("a part of a prefix with underscores", "prefix with underscores", "a_3vgoe12ccb8gh"),
        ("digits in upper case behind a cloak", "cloak", "4ADF4PR4NL7UG"),
        ("64 bits and one more behind a cloak", "cloak", "g000000000000"),
        ("no prefix of a cloak", "both", "4adf4pr4nl7ug"),
    ]
    .map(|(name, form, text)| json!({ "name": name, "form": form, "text": text }));
    let bad_prefixes = [
        ("an empty prefix", ""),
        ("an underscore", "_"),
        ("an underscore first", "_user"),
        ("an underscore last", "user_"),
        ("64 letters", &"z".repeat(64)),
        ("a digit in a prefix", "user2"),
        ("an upper-case letter", "User"),
        ("a hyphen in a prefix", "blog-post"),
        ("a space in a prefix", "blog post"),
        ("a line end behind a prefix", "user\n"),
        ("a letter that is not ASCII", "usér"),
    ]
    .map(|(name, prefix)| json!({ "name": name, "prefix": prefix }));
    let comment = "forms: how the ids of a column look outside, by prefix and cloak, and a regular \
        expression of exactly those texts. valid: id (signed 64-bit, a decimal string) <-> text, \
        both ways: the prefix and an underscore if there is one, then the digits of the id, or of \
        what the cloak hides id as an unsigned number as. invalid: texts whose decoding is \
        INVALID_ID. bad_prefixes: INVALID_ARGUMENT. The key of the cloak is that of the first case \
        of cloak.json.";
    let file = json!({
        "_comment": comment, "forms": described, "valid": valid, "invalid": invalid.to_vec(),
        "bad_prefixes": bad_prefixes.to_vec(),
    });
    render(&file, 2)
}

/// Returns `errors.json`.
#[must_use]
#[allow(clippy::too_many_lines, reason = "a table")]
pub fn errors() -> String {
    let lease = |start: i64, end_exclusive: i64| json!({ "lease": { "start": start, "end_exclusive": end_exclusive } });
    let (epoch, end) = (format::EPOCH, format::LIFETIME_END);
    let drift = |max_drift: u64| {
        let mut options = lease(epoch, end);
        options["max_drift"] = max_drift.into();
        options
    };
    let cases = [
        ("no node id", json!({ "node_ids": [] }), "INVALID_NODE"),
        ("a node id of 18 bits", json!({ "node_ids": [131_072] }), "INVALID_NODE"),
        ("a node id of 32 bits", json!({ "node_ids": [u32::MAX] }), "INVALID_NODE"),
        ("one of the node ids of 18 bits", json!({ "node_ids": [131_072, 5] }), "INVALID_NODE"),
        ("a node id listed twice", json!({ "node_ids": [7, 7] }), "INVALID_NODE"),
        ("a node id listed twice, not in a row", json!({ "node_ids": [7, 3, 7] }), "INVALID_NODE"),
        ("an empty secret", json!({ "secret": "" }), "INVALID_SECRET"),
        ("31 hex digits", json!({ "secret": &SECRET[1..] }), "INVALID_SECRET"),
        ("33 hex digits", json!({ "secret": format!("{SECRET}0") }), "INVALID_SECRET"),
        ("64 hex digits", json!({ "secret": SECRET.repeat(2) }), "INVALID_SECRET"),
        ("16 letters as text", json!({ "secret": "super-secret-key" }), "INVALID_SECRET"),
        (
            "a digit that is not hex",
            json!({ "secret": format!("{}g", &SECRET[1..]) }),
            "INVALID_SECRET",
        ),
        (
            "a sign before 31 digits",
            json!({ "secret": format!("+{}", &SECRET[1..]) }),
            "INVALID_SECRET",
        ),
        (
            "a space before 31 digits",
            json!({ "secret": format!(" {}", &SECRET[1..]) }),
            "INVALID_SECRET",
        ),
        (
            "a hexadecimal prefix",
            json!({ "secret": format!("0x{}", &SECRET[2..]) }),
            "INVALID_SECRET",
        ),
        ("32 digits that are not ASCII", json!({ "secret": "１".repeat(32) }), "INVALID_SECRET"),
        (
            "32 bytes that are not all ASCII",
            json!({ "secret": format!("{}é", &SECRET[2..]) }),
            "INVALID_SECRET",
        ),
        ("a lease of no second", lease(epoch + 5, epoch + 5), "INVALID_LEASE"),
        ("a lease that ends before it starts", lease(epoch + 6, epoch + 5), "INVALID_LEASE"),
        ("a lease from before the epoch", lease(epoch - 1, epoch + 5), "INVALID_LEASE"),
        ("a lease from 1970", lease(0, epoch + 5), "INVALID_LEASE"),
        ("a lease of negative seconds", lease(-2, -1), "INVALID_LEASE"),
        ("a lease beyond the lifetime", lease(epoch, end + 1), "INVALID_LEASE"),
        ("a lease after the lifetime", lease(end, end + 1), "INVALID_LEASE"),
        ("a lease in milliseconds", lease(1_763_640_000_000, 1_763_640_300_000), "INVALID_LEASE"),
        ("a max_drift without a lease", json!({ "max_drift": 1 }), "INVALID_ARGUMENT"),
        ("a max_drift of more than an hour", drift(3_601), "INVALID_ARGUMENT"),
        ("a max_drift of 32 bits", drift(u32::MAX.into()), "INVALID_ARGUMENT"),
        (
            "a max_wait of more than a day",
            json!({ "max_wait": 86_400.015_625 }),
            "INVALID_ARGUMENT",
        ),
        ("a max_wait of a year", json!({ "max_wait": 31_536_000.0 }), "INVALID_ARGUMENT"),
    ]
    .map(|(name, options, error)| json!({ "name": name, "options": options, "error": error }));
    let comment = format!(
        "codes: every error code that all languages share. cases: making a generator with these \
         options fails with this code. Options that are missing: node_ids [1], secret {SECRET}, no \
         lease, max_wait and max_drift (seconds) as they are by default, an injected clock. Chosen \
         manually."
    );
    render(&json!({ "_comment": comment, "codes": CODES, "cases": cases }), 2)
}
