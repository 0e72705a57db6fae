//! Rewrites the files of `tests/vectors`.

fn main() -> std::io::Result<()> {
    for (name, content) in randflake_vectors::files() {
        std::fs::write(randflake_vectors::directory().join(name), content)?;
    }
    Ok(())
}
