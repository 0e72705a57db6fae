//! `randflake sql`: functions of a database that read, hide and generate ids.

use std::io::Write;

use clap::ValueEnum;

use crate::{Failure, output};

/// Prints functions for a database that read, hide and generate ids
#[derive(clap::Args)]
#[command(after_help = "\
The functions need no extension, and run on PostgreSQL 11, MySQL 8, MariaDB 10.6
and newer. They take the secret from the session: from the setting
randflake.secret, or the variable @randflake_secret. They generate ids of the
layout instagram, without a secret. Load them again after an upgrade.

Examples:
  randflake sql --dialect postgres > randflake.sql
  randflake sql --dialect postgres --schema ids > ids.sql
  randflake sql --dialect mysql > randflake.sql")]
pub(crate) struct Sql {
    /// Which database: PostgreSQL, or MySQL and MariaDB
    #[arg(long, value_enum)]
    dialect: Dialect,

    /// Schema for these functions only, created if it does not exist
    #[arg(long, value_name = "NAME", default_value = "randflake", value_parser = schema)]
    schema: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Dialect {
    Postgres,
    Mysql,
}

impl Sql {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let script = match self.dialect {
            Dialect::Postgres => include_str!("sql/postgres.sql"),
            Dialect::Mysql => include_str!("sql/mysql.sql"),
        };
        let script = script
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
