//! The settings that generators take from the environment: where the store is, the secret, the
//! namespace. Their names and rules, for all languages and the command.

use std::{
    env,
    ffi::OsString,
    fmt, fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use randflake::{Error, ErrorKind, Layout, Result, Secret};
use zeroize::Zeroizing;

/// Where the store is: the path of a file, or the URL of a server.
pub const STORE: &str = "RANDFLAKE_STORE";

/// The secret, 32 hex digits.
pub const SECRET: &str = "RANDFLAKE_SECRET";

/// Path of a file with these digits.
pub const SECRET_FILE: &str = "RANDFLAKE_SECRET_FILE";

/// Name of a namespace in the store.
pub const NAMESPACE: &str = "RANDFLAKE_NAMESPACE";

/// The layout of Snowflakes, as a text.
pub const LAYOUT: &str = "RANDFLAKE_LAYOUT";

/// In bytes; more than any file with a secret.
const LONGEST_FILE: u64 = 4096;

/// The variables of an environment. An empty one counts as missing.
///
/// ```
/// use randflake::ErrorKind;
/// use randflake_leases::environment::Environment;
///
/// let digits = "dffd6021bb2bd5b0af676290809ec3a5";
/// let only_a_secret = |name: &str| (name == "RANDFLAKE_SECRET").then(|| digits.into());
/// let environment = Environment::new(&only_a_secret);
/// assert_eq!(environment.secret()?.to_hex(), digits);
/// assert_eq!(environment.namespace()?, None);
/// let missing = environment.store().unwrap_err();
/// assert_eq!(missing.kind(), ErrorKind::InvalidArgument);
/// assert!(missing.to_string().contains("RANDFLAKE_STORE"));
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Environment<'a>(&'a dyn Fn(&str) -> Option<OsString>);

impl Default for Environment<'_> {
    /// The environment of this process.
    fn default() -> Self {
        Self(&|name| env::var_os(name))
    }
}

impl<'a> Environment<'a> {
    /// Takes a function that looks up a variable.
    #[must_use]
    pub fn new(variable: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self(variable)
    }

    /// Returns where the store is: `RANDFLAKE_STORE`.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: it is missing.
    pub fn store(&self) -> Result<OsString> {
        self.variable(STORE).ok_or_else(|| {
            Error::invalid_argument(format!(
                "no store is given: pass one, or set {STORE} to the path of a SQLite file or to the \
                 URL of PostgreSQL, MySQL, Redis or etcd"
            ))
        })
    }

    /// Returns whether a secret is set, in either way.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        [SECRET, SECRET_FILE].iter().any(|name| self.variable(name).is_some())
    }

    /// Returns the secret: `RANDFLAKE_SECRET`, or what is in the file `RANDFLAKE_SECRET_FILE`.
    ///
    /// # Errors
    ///
    /// `INVALID_SECRET`: both are set, or neither, or it is not a valid secret.
    pub fn secret(&self) -> Result<Secret> {
        if let Some(path) = self.secret_file()? {
            return read_secret(&path).map_err(|error| about(SECRET_FILE, &error));
        }
        let digits = self.variable(SECRET).ok_or_else(no_secret)?;
        let digits = digits.into_string().map(Zeroizing::new);
        let digits = digits.as_deref().map_or("", |digits| digits.trim_ascii());
        digits.parse().map_err(|error| about(SECRET, &error))
    }

    /// Returns the path of the file with the secret, if that is where it comes from.
    ///
    /// # Errors
    ///
    /// `INVALID_SECRET`: `RANDFLAKE_SECRET` is set as well.
    pub fn secret_file(&self) -> Result<Option<PathBuf>> {
        let file = self.variable(SECRET_FILE).map(PathBuf::from);
        if file.is_some() && self.variable(SECRET).is_some() {
            return Err(Error::new(
                ErrorKind::InvalidSecret,
                format!(
                    "{SECRET} and {SECRET_FILE} are both set, and may differ; unset one of them"
                ),
            ));
        }
        Ok(file)
    }

    /// Returns the name of the namespace: `RANDFLAKE_NAMESPACE`.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: it is not valid Unicode.
    pub fn namespace(&self) -> Result<Option<String>> {
        let name = self.variable(NAMESPACE).map(OsString::into_string).transpose();
        name.map_err(|_| Error::invalid_argument(format!("{NAMESPACE} must be Unicode text")))
    }

    /// Returns the layout of Snowflakes: `RANDFLAKE_LAYOUT`, the text that [`Layout`] parses.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: it is not the text of a layout.
    ///
    /// ```
    /// use randflake::Layout;
    /// use randflake_leases::environment::Environment;
    ///
    /// let variable = |name: &str| (name == "RANDFLAKE_LAYOUT").then(|| "sonyflake2".into());
    /// assert_eq!(Environment::new(&variable).layout()?, Some(Layout::sonyflake2()));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn layout(&self) -> Result<Option<Layout>> {
        let layout = self.variable(LAYOUT);
        let layout = layout.map(|text| text.to_string_lossy().trim_ascii().parse());
        layout.transpose().map_err(|error| about(LAYOUT, &error))
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        (self.0)(name).filter(|value| !value.is_empty())
    }
}

/// Reads the secret in a file: 32 hex digits, optionally with white space around them.
///
/// # Errors
///
/// `INVALID_SECRET`: it cannot be read, or is not a valid secret.
pub fn read_secret(path: &Path) -> Result<Secret> {
    let unreadable = |error: &dyn fmt::Display| {
        Error::new(
            ErrorKind::InvalidSecret,
            format!("cannot read the secret file {}: {error}", path.display()),
        )
    };
    let mut digits = Zeroizing::new(Vec::with_capacity(256));
    let file = fs::File::open(path).map_err(|error| unreadable(&error))?;
    file.take(LONGEST_FILE).read_to_end(&mut digits).map_err(|error| unreadable(&error))?;
    let digits = std::str::from_utf8(&digits).map_err(|_| unreadable(&"it is not text"))?;
    digits.trim_ascii().parse()
}

#[cold]
fn no_secret() -> Error {
    Error::new(
        ErrorKind::InvalidSecret,
        format!(
            "no secret is given: pass one, or set {SECRET} to its 32 hex digits, or {SECRET_FILE} \
             to the path of a file with them; generate one with `randflake secret`"
        ),
    )
}

/// Says which variable is wrong.
#[cold]
fn about(variable: &str, error: &Error) -> Error {
    Error::new(error.kind(), format!("{variable}: {error}"))
}

impl fmt::Debug for Environment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment(..)") // its variables contain secrets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "dffd6021bb2bd5b0af676290809ec3a5";

    fn kind<T>(result: Result<T>) -> Result<(), ErrorKind> {
        result.map(drop).map_err(|error| error.kind())
    }

    #[test]
    fn a_secret_comes_from_one_variable() {
        let folder = env::temp_dir().join(format!("randflake-secret-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let file = |name: &str, content: &[u8]| {
            let path = folder.join(name);
            fs::write(&path, content).expect("a file");
            path.into_os_string()
        };
        let with_line_end = file("line", format!("{DIGITS}\r\n").as_bytes());
        let (binary, long) = (file("binary", &[0xff; 16]), file("long", &vec![b' '; 100_000]));
        let missing = folder.join("missing").into_os_string();
        let read = |secret: Option<&str>, file: Option<&OsString>| {
            let variable = |name: &str| match name {
                SECRET => secret.map(OsString::from),
                SECRET_FILE => file.cloned(),
                _ => None,
            };
            Environment::new(&variable).secret()
        };
        for good in [read(Some(DIGITS), None), read(None, Some(&with_line_end))] {
            assert_eq!(good.expect("a secret").to_hex(), DIGITS);
        }
        let empty = OsString::new();
        assert!(read(Some(DIGITS), Some(&empty)).is_ok(), "an empty one is missing");
        assert!(read(Some(""), Some(&with_line_end)).is_ok());
        for (secret, path, says) in [
            (None, None, &[SECRET, SECRET_FILE, "randflake secret"][..]),
            (Some(DIGITS), Some(&with_line_end), &[SECRET, SECRET_FILE, "both"]),
            (Some("dffd6021"), None, &["RANDFLAKE_SECRET: ", "8 characters"]),
            (None, Some(&missing), &["RANDFLAKE_SECRET_FILE: ", "missing"]),
            (None, Some(&binary), &["RANDFLAKE_SECRET_FILE: ", "not text"]),
            (None, Some(&long), &["RANDFLAKE_SECRET_FILE: ", "0 characters"]),
        ] {
            let error = read(secret, path).expect_err("no secret");
            assert_eq!(error.kind(), ErrorKind::InvalidSecret);
            let message = error.to_string();
            assert!(says.iter().all(|part| message.contains(part)), "{message}");
            assert!(!message.contains("dffd6021"), "{message}");
        }
        fs::remove_dir_all(&folder).expect("done with it");
    }

    #[test]
    fn a_store_must_be_named_and_a_namespace_may() {
        let none = Environment::new(&|_| None);
        assert_eq!(kind(none.store()), Err(ErrorKind::InvalidArgument));
        assert_eq!((none.namespace().expect("may be missing"), none.has_secret()), (None, false));
        let set = Environment::new(&|name| Some(format!("that of {name}").into()));
        assert_eq!(set.store().expect("set"), "that of RANDFLAKE_STORE");
        let name = set.namespace().expect("set");
        assert_eq!(name.as_deref(), Some("that of RANDFLAKE_NAMESPACE"));
        assert!(set.has_secret());
        assert_eq!(format!("{set:?}"), "Environment(..)");
    }
}
