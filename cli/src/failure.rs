use std::io::{self, Write};

use randflake::Error;

use crate::output;

/// Why the command did not do what it was asked to.
pub(crate) enum Failure {
    /// It was used in a wrong way, or asked how it is used.
    Usage(clap::Error),
    /// What it was asked for cannot be done.
    Error(Error),
    /// Some of it could not be done, which was said.
    Reported,
    /// Nobody takes what it prints.
    Output(io::Error),
}

impl Failure {
    /// Says it, and returns the exit code.
    pub(crate) fn report(self) -> i32 {
        match self {
            Self::Usage(error) => {
                // Nowhere to complain if it cannot be shown.
                let _ = if error.use_stderr() {
                    write!(io::stderr(), "{}", error.render())
                } else {
                    write!(io::stdout(), "{}", error.render())
                };
                error.exit_code()
            }
            Self::Error(error) => {
                output::complain(error.code(), &error);
                1
            }
            Self::Reported => 1,
            // Whoever reads has seen enough, as `head` does.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Output(error) => {
                output::complain("OUTPUT", &format_args!("cannot write the output: {error}"));
                1
            }
        }
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Only writing the output fails so: what else may fail makes its own error.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
