//! Links the module so that it is never unloaded, and gives it the docstrings of its stubs.

use std::{env, fs, path::Path};

const STUBS: [&str; 5] =
    ["_randflake.pyi", "_generator.pyi", "_tickets.pyi", "ids.pyi", "snowflake.pyi"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    pyo3_build_config::use_pyo3_cfgs();
    // The record of the node ids in use and the fork handler live as long as the process, no matter
    // what an embedding program does with this library.
    let system = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if ["linux", "android", "freebsd", "netbsd", "openbsd"].contains(&system.as_str()) {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }

    // A source distribution has the Python files next to the crate.
    let package = ["python/randflake", "../python/randflake"]
        .map(Path::new)
        .into_iter()
        .find(|package| package.exists())
        .expect("the package is beside the crate");
    let folder = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    for stub in STUBS.map(|name| package.join(name)) {
        println!("cargo::rerun-if-changed={}", stub.display());
        write_docstrings(&fs::read_to_string(stub).expect("it is text"), Path::new(&folder));
    }
}

/// Writes each docstring to a file that is named after what it documents, such as
/// `Randflake.generate`.
fn write_docstrings(stub: &str, folder: &Path) {
    const QUOTES: &str = "\"\"\"";

    let (mut class, mut documented) = (String::new(), String::new());
    let mut lines = stub.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if let Some(declared) = code.strip_prefix("class ") {
            class = name(declared);
            documented.clone_from(&class);
        } else if let Some(declared) =
            code.strip_prefix("async ").unwrap_or(code).strip_prefix("def ")
        {
            let function = name(declared);
            documented = if indent == 0 { function } else { format!("{class}.{function}") };
        } else if let Some(begin) = code.strip_prefix(QUOTES) {
            let mut text = begin.to_owned();
            while !text.ends_with(QUOTES) {
                let line = lines.next().expect("every docstring ends");
                text.push('\n');
                text.push_str(line.get(indent..).unwrap_or_default());
            }
            let text = text.trim_end_matches(QUOTES).trim_end();
            fs::write(folder.join(&documented), text).expect("the folder can be written to");
        }
    }
}

fn name(declared: &str) -> String {
    declared.chars().take_while(|&letter| letter.is_alphanumeric() || letter == '_').collect()
}
