//! `randflake codes`: numbers as codes that people type, and back.

use clap::Subcommand;
use randflake::{Codes, Error, ErrorKind};

use crate::{
    Failure,
    ids::{self, InputArguments},
    secret::SecretArguments,
};

/// Turns numbers into codes that people type, and back
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  randflake codes encode --label orders 1 2 3
  randflake codes decode --label orders 86483743")]
pub(crate) enum CodesCommand {
    Encode(Encode),
    Decode(Decode),
}

/// Turns the numbers 0, 1, 2 and so on into codes of a fixed length
#[derive(clap::Args)]
#[command(after_help = "\
As Codes does: each number has one code for each secret and label. Of CSV all
columns are written, with codes in place of the numbers of --column.

Examples:
  randflake codes encode --label orders 1 2 3
  seq 1000 | randflake codes encode --label vouchers --length 10 \\
    --alphabet crockford --check 3")]
pub(crate) struct Encode {
    /// Numbers, 0 or more [default: one per line of the input]
    #[arg(value_name = "NUMBER")]
    ids: Vec<String>,

    #[command(flatten)]
    codes: CodesArguments,

    /// Puts this before each code
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,

    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    secret: SecretArguments,
}

/// Returns the numbers of codes
#[derive(clap::Args)]
#[command(after_help = "\
Pass what the codes were made with. With a check, almost every typing error is
refused.

Examples:
  randflake codes decode --label orders 86483743
  randflake codes decode --label orders --prefix ORD- ORD-86483743")]
pub(crate) struct Decode {
    /// Codes [default: one per line of the input]
    #[arg(value_name = "CODE")]
    ids: Vec<String>,

    #[command(flatten)]
    codes: CodesArguments,

    /// Removes this from the beginning of each code
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    secret: SecretArguments,
}

/// What codes are made with, besides a secret.
#[derive(clap::Args)]
struct CodesArguments {
    /// What the codes are for; another label is another key
    #[arg(long)]
    label: String,

    /// How many symbols a code has, 4 to 24
    #[arg(long, default_value_t = 8)]
    length: usize,

    /// digits, crockford, letters, or 10 to 62 ASCII letters and digits
    #[arg(long, default_value = "digits")]
    alphabet: String,

    /// How many of the symbols are a check
    #[arg(long, default_value_t = 0)]
    check: usize,
}

impl CodesArguments {
    fn read(&self, secret: &SecretArguments) -> Result<Codes, Failure> {
        let secret = secret.read()?;
        let builder = Codes::builder(&secret, &self.label).length(self.length);
        Ok(builder.alphabet(&self.alphabet).check(self.check).build()?)
    }
}

impl CodesCommand {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Encode(Encode { ids, codes, prefix, input, secret }) => {
                let codes = codes.read(secret)?;
                ids::convert(ids, input, None, |number| {
                    let number = number.parse().map_err(|_| {
                        let rule = "the number of a code must be a whole number, 0 or more";
                        Error::new(ErrorKind::InvalidId, rule)
                    })?;
                    Ok(format!("{prefix}{}", codes.encode(number)?))
                })
            }
            Self::Decode(Decode { ids, codes, prefix, input, secret }) => {
                let codes = codes.read(secret)?;
                // Codes of letters look like names.
                let input = input.with_codes(codes.alphabet(), codes.length());
                ids::convert(ids, &input, prefix.as_deref(), |code| {
                    Ok(codes.decode(code)?.to_string())
                })
            }
        }
    }
}
