//! Rewrites `docs/distribution.svg`.

fn main() -> std::io::Result<()> {
    std::fs::write(randflake_vectors::picture(), randflake_vectors::distribution::svg())
}
