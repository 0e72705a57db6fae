//! A slow, plain reference of Randflake: written to be read beside the specification, without a
//! line of the core, so that each checks the other. It writes the files of `tests/vectors`.

pub mod cases;
pub mod distribution;
pub mod format;
pub mod json;
pub mod model;
pub mod timelines;

use std::path::PathBuf;

/// Returns the folder of the vector files.
#[must_use]
pub fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors")
}

/// Returns the path of the README's picture.
#[must_use]
pub fn picture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/distribution.svg")
}

/// Reads a file as it is checked in, of which the inputs are kept and what follows from them is
/// computed: `ids.json`, `layouts.json`, `peers.json`, `boundary.json` or `cloak.json`.
///
/// # Panics
///
/// If the file is missing.
#[must_use]
pub fn checked_in(name: &str) -> String {
    let path = directory().join(name);
    std::fs::read_to_string(path).expect("the file is checked in")
}

/// Returns the name and the content of every vector file.
#[must_use]
pub fn files() -> [(&'static str, String); 10] {
    [
        ("ids.json", cases::ids(&checked_in("ids.json"))),
        ("layouts.json", cases::layouts(&checked_in("layouts.json"))),
        ("peers.json", cases::peers(&checked_in("peers.json"), &checked_in("layouts.json"))),
        ("boundary.json", cases::boundary(&checked_in("boundary.json"))),
        ("cloak.json", cases::cloak(&checked_in("cloak.json"))),
        ("text_form.json", cases::text_form(&checked_in("cloak.json"))),
        ("sparx.json", cases::sparx()),
        ("text.json", cases::text()),
        ("errors.json", cases::errors()),
        ("timelines.json", timelines::file()),
    ]
}
