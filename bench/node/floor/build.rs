//! Links for Node.js.

fn main() {
    napi_build::setup();
}
