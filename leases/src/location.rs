use std::{
    fmt,
    path::{Path, PathBuf},
};

use randflake::{Error, Result};

use crate::{LeaseStore, Namespace, remote::RemoteStore};

/// Where a store is, and how to open it: once in each process that leases from it.
///
/// A path is that of a [`SqliteStore`](crate::SqliteStore). Every other store is opened by a
/// function:
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use randflake::Secret;
/// use randflake_leases::{Location, SqliteStore};
/// # let directory = std::env::temp_dir().join(format!("randflake-where-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory).unwrap();
/// # let path = directory.join("ids.db");
///
/// let location = Location::new(move |namespace| {
///     Ok(Box::new(SqliteStore::new(&path, namespace)?.allow_network_file_system(true)))
/// });
/// let flake = randflake_leases::leased(location, &Secret::random())?;
/// # drop(flake);
/// # std::fs::remove_dir_all(&directory).unwrap();
/// # Ok::<(), randflake::Error>(())
/// ```
pub struct Location(Box<Open>);

type Open = dyn Fn(Namespace) -> Result<Box<dyn LeaseStore>> + Send + Sync;

impl Location {
    /// Opens stores with this function. In a forked child it is called anew: what it returns must
    /// not use a connection of the parent.
    pub fn new(
        open: impl Fn(Namespace) -> Result<Box<dyn LeaseStore>> + Send + Sync + 'static,
    ) -> Self {
        Self(Box::new(open))
    }

    /// Opens the store for a namespace.
    ///
    /// # Errors
    ///
    /// As the function that opens it: `INVALID_ARGUMENT` for what is no place of a store.
    pub fn open(&self, namespace: &Namespace) -> Result<Box<dyn LeaseStore>> {
        (self.0)(namespace.clone())
    }

    fn failing(message: String) -> Self {
        Self::new(move |_| Err(Error::invalid_argument(message.clone())))
    }
}

/// A path, or the URL of a store with a server, as [`RemoteStore::open`] takes it.
impl From<&str> for Location {
    fn from(location: &str) -> Self {
        match location.split_once("://") {
            Some(("postgresql" | "postgres" | "redis" | "rediss" | "etcd" | "etcds", _)) => {
                let url = location.to_owned();
                Self::new(move |namespace| Ok(Box::new(RemoteStore::open(&url, namespace)?)))
            }
            // What follows may hold a password.
            Some((scheme, _)) => Self::failing(format!(
                "there is no store for {scheme}:// here; a store is the path of a SQLite \
                 file, or the URL of PostgreSQL, Redis or etcd"
            )),
            None => Path::new(location).into(),
        }
    }
}

impl From<String> for Location {
    fn from(location: String) -> Self {
        location.as_str().into()
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

#[cfg(feature = "sqlite")]
impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        // The keeper asks again, with the time of then: a long wait would be a skewed clock.
        const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
        // Not the directory of the moment in which a child opens it.
        let path = std::path::absolute(&path).unwrap_or(path);
        Self::new(move |namespace| {
            Ok(Box::new(crate::SqliteStore::new(&path, namespace)?.patience(PATIENCE)))
        })
    }
}

#[cfg(not(feature = "sqlite"))]
impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self::failing(format!("{} is a SQLite file, and this was built without", path.display()))
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Location(..)") // a URL has a password
    }
}
