//! How a failure is reported, and its exit code.

use std::io::{self, Write};

use randflake::Error;

use crate::output;

/// Exit code of a check that found a fault, distinct from those for a failure and for wrong usage.
const FAULT: i32 = 3;

/// Why the command failed.
pub(crate) enum Failure {
    /// Wrong usage, or a request for help.
    Usage(clap::Error),
    /// The operation failed.
    Error(Error),
    /// Part of it failed, which was reported.
    Reported,
    /// A check found a fault, and printed it.
    Fault,
    /// The output cannot be written.
    Output(io::Error),
}

impl Failure {
    /// Reports it, and returns the exit code.
    pub(crate) fn report(self) -> i32 {
        match self {
            Self::Usage(error) => {
                // If printing it fails, that cannot be reported.
                let _ = if error.use_stderr() {
                    write!(io::stderr(), "{}", error.render())
                } else {
                    write!(io::stdout(), "{}", error.render())
                };
                error.exit_code()
            }
            Self::Error(error) => {
                output::report(error.code(), &error);
                1
            }
            Self::Reported => 1,
            Self::Fault => FAULT,
            // The reader has closed the pipe, as `head` does.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Output(error) => {
                output::report("OUTPUT", &format_args!("cannot write the output: {error}"));
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

/// Only writing the output returns this error; everything else makes its own error.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
