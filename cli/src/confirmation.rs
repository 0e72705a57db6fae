//! Asking for confirmation before an irreversible operation.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
};

use clap::error::ErrorKind as Wrong;

use crate::{Failure, output, usage};

/// Whether to continue with what cannot be undone.
#[derive(clap::Args)]
pub(crate) struct Confirmation {
    /// Do it without asking
    #[arg(long)]
    yes: bool,
}

impl Confirmation {
    /// Says what is about to be done, and asks for confirmation unless --yes was passed.
    pub(crate) fn ask(&self, what: &dyn Display) -> Result<(), Failure> {
        output::notify(&what);
        if self.yes {
            return Ok(());
        }
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(usage(
                Wrong::MissingRequiredArgument,
                "nothing was done: confirm it with --yes",
            ));
        }
        let _ = write!(io::stderr(), "continue? [y/N] ");
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
            return Ok(());
        }
        output::notify(&"nothing was done");
        Err(Failure::Reported)
    }
}
