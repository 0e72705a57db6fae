//! Needed only because `links` (see Cargo.toml) demands a build script.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
