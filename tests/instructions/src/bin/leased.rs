//! Makes ids with a leased generator, for callgrind to count its instructions: see
//! `test_instructions.py`.
//!
//! `leased generate IDS`. A program of its own, as `manual` is.

use std::{env, error::Error, hint::black_box};

use randflake::Secret;
use randflake_leases::{Leased, Location, MemoryStore};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let ["generate", ids] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return Err("usage: leased generate IDS".into());
    };
    let secret: Secret = "dffd6021bb2bd5b0af676290809ec3a5".parse()?;
    let memory = Location::new(|namespace| Ok(Box::new(MemoryStore::new(namespace))));
    // As many node ids as `manual` has.
    let flake = Leased::builder(memory, &secret).node_count(64).open()?;
    generate(&flake, ids.parse()?)
}

// Apart from the rest of the program, whose needs for registers are not those of an id.
#[inline(never)]
fn generate(flake: &Leased, ids: u32) -> Result<(), Box<dyn Error>> {
    for _ in 0..ids {
        black_box(flake.generate()?);
    }
    Ok(())
}
