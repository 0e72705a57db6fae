//! `randflake sql`: the functions of a database that read ids.

use std::io::Write;

use clap::ValueEnum;

use crate::{Failure, output};

/// Prints functions that read ids in a database
#[derive(clap::Args)]
#[command(after_help = "\
The functions need no extension. They take the secret from the session's setting
randflake.secret, and generate no ids. Load them again after an upgrade.

Examples:
  randflake sql --dialect postgres > randflake.sql
  randflake sql --dialect postgres --schema ids > ids.sql")]
pub(crate) struct Sql {
    /// Which database; of PostgreSQL version 11 or newer
    #[arg(long, value_enum)]
    dialect: Dialect,

    /// Schema for these functions only, created if it does not exist
    #[arg(long, value_name = "NAME", default_value = "randflake", value_parser = schema)]
    schema: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Dialect {
    Postgres,
}

impl Sql {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let Dialect::Postgres = self.dialect;
        let script = include_str!("sql/postgres.sql")
            .replace("@schema@", &self.schema)
            .replace("@version@", env!("CARGO_PKG_VERSION"));
        let mut out = output::stdout();
        out.write_all(script.as_bytes())?;
        out.flush()?;
        Ok(())
    }
}

/// Reads the name of a schema, one that needs no quotes.
fn schema(name: &str) -> Result<String, &'static str> {
    let starts = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    let others = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if starts && name.len() <= 63 && name.bytes().all(others) && !name.starts_with("pg_") {
        return Ok(name.to_owned());
    }
    Err("a schema must have 1 to 63 of the characters a-z, 0-9 and _, and must not begin with a \
         digit or pg_")
}
