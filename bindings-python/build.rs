//! Links the module so that it is never unloaded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The record of the node ids in use and the fork handler live as long as the process, whatever
    // an embedding program does with this library.
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if ["linux", "android", "freebsd", "netbsd", "openbsd"].contains(&system.as_str()) {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
