//! `randflake layout`, and the option that names a layout.

mod plan;
mod show;

use clap::{Subcommand, error::ErrorKind as Wrong};
use randflake::Layout;
use randflake_leases::environment::{Environment, LAYOUT, SECRET};

use self::{plan::Plan, show::Show};
use crate::{Failure, secret::SecretArguments, usage};

/// Shows and plans layouts of sortable ids
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  randflake layout show twitter")]
pub(crate) enum Layouts {
    Show(Show),
    Plan(Plan),
}

impl Layouts {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Show(show) => show.run(),
            Self::Plan(plan) => plan.run(),
        }
    }
}

/// Which ids: those of a layout, or of Randflake.
#[derive(clap::Args)]
pub(crate) struct LayoutArguments {
    /// Sortable ids of the Snowflake family, which need no secret: a name, as
    /// twitter; or with another epoch, as twitter,epoch_ms=1577836800000; or
    /// fields, as time:41,node:10,sequence:12 [default: the variable
    /// RANDFLAKE_LAYOUT, or else the ids of the secret]
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<String>,
}

impl LayoutArguments {
    /// Returns the layout, or nothing for the ids of a secret.
    pub(crate) fn read(&self, secret: &SecretArguments) -> Result<Option<Layout>, Failure> {
        if let Some(text) = &self.layout {
            if secret.is_given() {
                return Err(usage(
                    Wrong::ArgumentConflict,
                    "--layout cannot be used with --secret-file: sortable ids have no secret",
                ));
            }
            return Ok(Some(text.parse()?));
        }
        if secret.is_given() {
            return Ok(None);
        }
        let environment = Environment::default();
        let layout = environment.layout()?;
        if layout.is_some() && environment.has_secret() {
            return Err(usage(
                Wrong::ArgumentConflict,
                format_args!(
                    "{LAYOUT} and {SECRET} are both set: pass --layout for sortable ids, or \
                     --secret-file for\nthose of a secret, or unset one of them"
                ),
            ));
        }
        Ok(layout)
    }

    /// Returns the layout, where a secret may be set as well.
    #[cfg(feature = "serve")]
    pub(crate) fn read_beside_a_secret(&self) -> Result<Option<Layout>, Failure> {
        match &self.layout {
            Some(text) => Ok(Some(text.parse()?)),
            None => Ok(Environment::default().layout()?),
        }
    }
}
