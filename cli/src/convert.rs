//! `randflake text` and `randflake number`: the two ways to write an id.

use crate::{
    Failure,
    ids::{self, IdFormat, InputArguments},
};

/// Converts ids from numbers to the text form
#[derive(clap::Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "\
Needs no secret. Half of all ids are negative.

Examples:
  randflake text 4594531474933654033
  randflake text -6187568801575574419
  randflake text < ids
  randflake text --column id < orders.csv"
)]
pub(crate) struct Text {
    /// Ids, as numbers [default: one per line of the input]
    #[arg(value_name = "NUMBER")]
    ids: Vec<String>,

    /// Puts this before each text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,

    #[command(flatten)]
    input: InputArguments,
}

/// Converts ids from the text form to numbers
#[derive(clap::Args)]
#[command(after_help = "\
Needs no secret. The text form has 1 to 13 characters 0-9 and a-v.

Examples:
  randflake number 3vgoe12ccb8gh
  randflake text < ids | randflake number")]
pub(crate) struct Number {
    /// Ids, in the text form [default: one per line of the input]
    #[arg(value_name = "TEXT")]
    ids: Vec<String>,

    /// Removes this from the beginning of each text
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    #[command(flatten)]
    input: InputArguments,
}

impl Text {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        ids::convert(&self.ids, &self.input, None, |id| {
            Ok(format!("{}{}", self.prefix, ids::parse(id, Some(IdFormat::Int))?))
        })
    }
}

impl Number {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        ids::convert(&self.ids, &self.input, self.prefix.as_deref(), |id| {
            Ok(i64::from(ids::parse(id, Some(IdFormat::String))?).to_string())
        })
    }
}
