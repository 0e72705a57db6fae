//! Makes ids with manual node ids, in the same way as `leased`, with which `test_instructions.py`
//! compares it: what the compiler merges depends on what else a program does.
//!
//! `manual generate IDS`.

use std::{env, error::Error, hint::black_box};

use randflake::{Randflake, Secret};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let ["generate", ids] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return Err("usage: manual generate IDS".into());
    };
    let secret: Secret = "dffd6021bb2bd5b0af676290809ec3a5".parse()?;
    let flake = Randflake::builder(&secret).node_ids(0..64).restart_safe(false).build()?;
    generate(&flake, ids.parse()?)
}

// Apart from the rest of the program, whose needs for registers are not those of an id.
#[inline(never)]
fn generate(flake: &Randflake, ids: u32) -> Result<(), Box<dyn Error>> {
    for _ in 0..ids {
        black_box(flake.generate()?);
    }
    Ok(())
}
