//! `randflake secret`, and the option that names the file of a secret.

use std::{
    env,
    ffi::OsString,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use clap::error::ErrorKind as Wrong;
use randflake::{Error, ErrorKind, Secret, bindings};
use zeroize::Zeroizing;

use crate::{Failure, output, usage};

const VARIABLE: &str = "RANDFLAKE_SECRET";

/// Where the secret is. It is never an argument, which every user of the machine can see.
#[derive(clap::Args)]
pub(crate) struct SecretArguments {
    /// File with the secret, 32 hex digits [default: the variable RANDFLAKE_SECRET]
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

impl SecretArguments {
    /// Reads the secret, and warns if it is weak.
    pub(crate) fn read(&self) -> Result<Secret, Failure> {
        let secret: Secret = match &self.secret_file {
            Some(path) => read_file(path)?.trim_ascii().parse()?,
            None => {
                match env::var_os(VARIABLE).map(|text| text.into_string().map(Zeroizing::new)) {
                    Some(Ok(text)) => text.trim_ascii().parse()?,
                    Some(Err(_)) => return Err(bindings::invalid_secret("no text").into()),
                    None => {
                        return Err(usage(
                            Wrong::MissingRequiredArgument,
                            "a secret is required: put its 32 hex digits into the variable \
                         RANDFLAKE_SECRET,\nor into a file, and pass --secret-file; \
                         `randflake secret` makes one",
                        ));
                    }
                }
            }
        };
        if let Some(weakness) = secret.weakness() {
            output::notify(&format_args!("warning: {weakness}"));
        }
        Ok(secret)
    }
}

fn read_file(path: &Path) -> Result<Zeroizing<String>, Error> {
    let text = fs::read_to_string(path).map(Zeroizing::new).map_err(|error| {
        Error::new(
            ErrorKind::InvalidSecret,
            format!("cannot read the secret file {}: {error}", path.display()),
        )
    })?;
    #[cfg(unix)]
    if fs::metadata(path).is_ok_and(|file| {
        const OTHERS_MAY_READ: u32 = 0o004;
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.permissions());
        file.is_file() && mode & OTHERS_MAY_READ != 0
    }) {
        let path = path.display();
        output::notify(&format_args!(
            "warning: every user of this machine can read the secret in {path}; run: chmod 600 \
             {path}"
        ));
    }
    Ok(text)
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
