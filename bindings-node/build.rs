//! Links for Node.js.

fn main() {
    napi_build::setup();
    // Node unloads an addon that only workers used. The record of the node ids in use, and the fork
    // handler, must outlive them.
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if ["linux", "android", "freebsd", "netbsd", "openbsd"].contains(&system.as_str()) {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
