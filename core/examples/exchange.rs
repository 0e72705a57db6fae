//! The Rust side of `tests/cross_language`: makes ids, or reads the ids that another language made.
#![allow(clippy::print_stdout, reason = "a command")]

use std::{env, io};

use randflake::{Id, Inspector, Randflake, Secret};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let secret: Secret = env::var("RANDFLAKE_SECRET")?.parse()?;
    match env::args().nth(1).as_deref() {
        Some("generate") => {
            let flake = Randflake::new(3, &secret)?;
            for _ in 0..1000 {
                let id = flake.generate()?;
                println!("{} {id}", i64::from(id));
            }
        }
        Some("inspect") => {
            let inspector = Inspector::new(&secret);
            for line in io::stdin().lines() {
                let line = line?;
                let (number, text) = line.split_once(' ').ok_or("two words")?;
                let id: Id = text.parse()?;
                assert_eq!(Id::from(number.parse::<i64>()?), id, "{line}");
                let parts = inspector.inspect(id);
                println!("{} {} {}", parts.timestamp, parts.node_id, parts.sequence);
            }
        }
        _ => return Err("usage: exchange generate|inspect".into()),
    }
    Ok(())
}
