//! `randflake hide` and `randflake reveal`: numbers behind a cloak.

use clap::ValueEnum;
use randflake::{Cloak, bindings};

use crate::{
    Failure,
    ids::{self, IdFormat, InputArguments},
    secret::SecretArguments,
};

/// Hides numbers, such as sortable ids, as ids that outsiders cannot read
#[derive(clap::Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "\
As a Cloak does: each number has one hidden form for each secret and label. Of
CSV all columns are written, with the numbers of --column hidden.

Examples:
  randflake hide --label orders.id 42
  randflake hide --label orders.id --prefix order_ 42
  randflake hide --label orders.id --column id < orders.csv"
)]
pub(crate) struct Hide {
    /// Numbers of 64 bits [default: one per line of the input]
    #[arg(value_name = "NUMBER")]
    ids: Vec<String>,

    /// What the numbers are for; another label is another key
    #[arg(long)]
    label: String,

    /// How to write the hidden form
    #[arg(long, value_enum, default_value_t = IdFormat::String)]
    format: IdFormat,

    /// Puts this before each text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,

    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    secret: SecretArguments,
}

/// Returns the numbers that are hidden
#[derive(clap::Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "\
Every id reveals some number, also under another secret or label: look the
result up. Of CSV all columns are written, with those of --column revealed.

Examples:
  randflake reveal --label orders.id 4adf4pr4nl7ug
  randflake reveal --label orders.id --prefix order_ order_4adf4pr4nl7ug"
)]
pub(crate) struct Reveal {
    /// Hidden forms, as numbers or in the text form [default: one per line of
    /// the input]
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    /// What the numbers are for, as they were hidden
    #[arg(long)]
    label: String,

    /// How the hidden forms are written; needed where digits may be either
    #[arg(long, value_enum)]
    format: Option<IdFormat>,

    /// Which numbers: unsigned ones, or as a BIGINT column shows them
    #[arg(long, value_enum, default_value_t = Sign::Unsigned, value_name = "SIGN")]
    numbers: Sign,

    /// Removes this from the beginning of each text
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    secret: SecretArguments,
}

/// How a number of 64 bits is written.
#[derive(Clone, Copy, ValueEnum)]
enum Sign {
    Unsigned,
    Signed,
}

impl Hide {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let cloak = Cloak::new(&self.secret.read()?, &self.label);
        ids::convert(&self.ids, &self.input, None, |number| {
            let hidden = cloak.hide(bindings::parse_raw(number)?);
            Ok(match self.format {
                IdFormat::Int => format!("{}{}", self.prefix, i64::from(hidden)),
                IdFormat::String => format!("{}{hidden}", self.prefix),
            })
        })
    }
}

impl Reveal {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let cloak = Cloak::new(&self.secret.read()?, &self.label);
        ids::convert(&self.ids, &self.input, self.prefix.as_deref(), |id| {
            let number = cloak.reveal(ids::parse(id, self.format)?);
            Ok(match self.numbers {
                Sign::Unsigned => number.to_string(),
                Sign::Signed => number.cast_signed().to_string(),
            })
        })
    }
}
