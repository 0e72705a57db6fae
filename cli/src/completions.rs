//! `randflake completions`.

use std::io::Write;

use clap_complete::{Shell, generate};

use crate::{Failure, output};

/// Prints a shell completion script for verbs and options
#[derive(clap::Args)]
#[command(after_help = "\
Load it when the shell starts: in ~/.bashrc `. ~/randflake.bash`. zsh looks for
_randflake in the folders of $fpath, fish in ~/.config/fish/completions.

Examples:
  randflake completions bash > randflake.bash
  randflake completions zsh > _randflake
  randflake completions fish > randflake.fish")]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints the script for a command with all its subcommands.
    pub(crate) fn run(&self, mut command: clap::Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut command, "randflake", &mut script);
        let mut out = output::stdout();
        out.write_all(&script)?;
        out.flush()?;
        Ok(())
    }
}
