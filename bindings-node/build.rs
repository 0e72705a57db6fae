//! Links for Node.js.

fn main() {
    napi_build::setup();
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // Node unloads an addon that only workers used. The record of the node ids in use, and
        // the fork handler, have to outlive them.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
