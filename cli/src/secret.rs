//! `randflake secret`, and the option that names the file of a secret.

#[cfg(unix)]
use std::fs;
use std::{
    ffi::OsString,
    io::Write,
    path::{Path, PathBuf},
};

use clap::error::ErrorKind as Wrong;
use randflake::{Result, Secret};
use randflake_leases::environment::{self, Environment, SECRET, SECRET_FILE};
use zeroize::Zeroizing;

use crate::{Failure, output, usage};

/// Where the secret is. It is never an argument, because every user of the machine can see
/// arguments.
#[derive(clap::Args)]
pub(crate) struct SecretArguments {
    /// File with the secret, 32 hex digits [default: the secret in the variable
    /// RANDFLAKE_SECRET, or the file that RANDFLAKE_SECRET_FILE names]
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

impl SecretArguments {
    /// Returns whether the option was given.
    pub(crate) fn is_given(&self) -> bool {
        self.secret_file.is_some()
    }

    /// Reads the secret, and warns if it is weak.
    pub(crate) fn read(&self) -> Result<Secret, Failure> {
        let environment = Environment::default();
        let secret = match &self.secret_file {
            Some(path) => read_file(path)?,
            None if !environment.has_secret() => {
                return Err(usage(
                    Wrong::MissingRequiredArgument,
                    format_args!(
                        "a secret is required: put its 32 hex digits into the variable {SECRET},\n\
                         or into a file, and pass --secret-file or set {SECRET_FILE};\n\
                         generate one with `randflake secret`"
                    ),
                ));
            }
            None => match environment.secret_file()? {
                Some(path) => read_file(&path)?,
                None => environment.secret()?,
            },
        };
        if let Some(weakness) = secret.weakness() {
            output::notify(&format_args!("warning: {weakness}"));
        }
        Ok(secret)
    }
}

fn read_file(path: &Path) -> Result<Secret> {
    let secret = environment::read_secret(path)?;
    warn_if_others_may_read(path, "secret");
    Ok(secret)
}

/// Warns if every user of the machine can read a file.
#[cfg_attr(not(unix), allow(unused_variables, reason = "there are no such permissions"))]
pub(crate) fn warn_if_others_may_read(path: &Path, what: &str) {
    #[cfg(unix)]
    if fs::metadata(path).is_ok_and(|file| {
        const OTHERS_MAY_READ: u32 = 0o004;
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.permissions());
        file.is_file() && mode & OTHERS_MAY_READ != 0
    }) {
        let path = path.display();
        output::notify(&format_args!(
            "warning: every user of this machine can read the {what} in {path}; run: chmod 600 \
             {path}"
        ));
    }
}

/// Prints a new secret.
pub(crate) fn print() -> Result<(), Failure> {
    let secret = Zeroizing::new(Secret::random().to_hex());
    let mut out = output::stdout();
    writeln!(out, "{}", *secret)?;
    out.flush()?;
    Ok(())
}

/// Refuses a secret among the arguments, without reading it.
pub(crate) fn refuse_argument(arguments: &[OsString]) -> Result<(), Failure> {
    let is_secret = |argument: &OsString| {
        let argument = argument.as_encoded_bytes();
        argument == b"--secret" || argument.starts_with(b"--secret=")
    };
    if !arguments.iter().any(is_secret) {
        return Ok(());
    }
    Err(usage(
        Wrong::UnknownArgument,
        "a secret must not be an argument: every user of this machine can see those, and shells \
         save\nthem; put it into the variable RANDFLAKE_SECRET, or pass its file with --secret-file",
    ))
}
