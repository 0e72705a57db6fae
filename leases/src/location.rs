#[cfg(feature = "sqlite")]
use std::time::Duration;
use std::{
    fmt,
    path::{Path, PathBuf},
};

use randflake::{Error, Result};

#[cfg(feature = "sqlite")]
use crate::SqliteStore;
use crate::{InitMode, LeaseStore, Namespace, remote::RemoteStore};

/// The keeper asks again, with the time of then: a long wait would be a skewed clock.
#[cfg(feature = "sqlite")]
const PATIENCE: Duration = Duration::from_secs(2);

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
pub struct Location {
    place: Place,
    /// Whether to make what is missing; as the store does unless set.
    create: Option<bool>,
}

enum Place {
    #[cfg(feature = "sqlite")]
    File(PathBuf),
    Url(String),
    Function(Box<Open>),
    /// None, and why.
    Nowhere(String),
}

type Open = dyn Fn(Namespace) -> Result<Box<dyn LeaseStore>> + Send + Sync;

impl Location {
    /// Opens stores with this function. In a forked child it is called anew: what it returns must
    /// not use a connection of the parent.
    pub fn new(
        open: impl Fn(Namespace) -> Result<Box<dyn LeaseStore>> + Send + Sync + 'static,
    ) -> Self {
        Place::Function(Box::new(open)).into()
    }

    pub(crate) fn create(mut self, create: bool) -> Self {
        self.create = Some(create);
        self
    }

    /// Opens the store for a namespace.
    ///
    /// # Errors
    ///
    /// As the function that opens it: `INVALID_ARGUMENT` for what is no place of a store.
    pub fn open(&self, namespace: &Namespace) -> Result<Box<dyn LeaseStore>> {
        let namespace = namespace.clone();
        match &self.place {
            #[cfg(feature = "sqlite")]
            Place::File(path) => {
                let store = SqliteStore::new(path, namespace)?.patience(PATIENCE);
                Ok(Box::new(store.create(self.create.unwrap_or(true))))
            }
            Place::Url(url) => {
                let store = RemoteStore::open(url, namespace)?;
                Ok(Box::new(store.create(self.create.unwrap_or(false))?))
            }
            Place::Function(_) if self.create.is_some() => Err(Error::invalid_argument(
                "the function that opens this store decides whether to make what is missing: say \
                 it there",
            )),
            Place::Function(open) => open(namespace),
            Place::Nowhere(why) => Err(Error::invalid_argument(why.clone())),
        }
    }

    /// Makes the namespace if it is not there, and checks it if it is, as
    /// [`RemoteStore::init`] does and `SqliteStore::init`.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`]. `INVALID_ARGUMENT` also for a store that a function opens, which
    /// alone knows how to make it.
    ///
    /// ```
    /// use randflake::Secret;
    /// use randflake_leases::{InitMode, Location, Namespace};
    /// # let directory = std::env::temp_dir().join(format!("randflake-init-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let path = directory.join("ids.db");
    ///
    /// let orders = Namespace::new("orders", &Secret::random())?;
    /// Location::from(path.as_path()).init(&orders, InitMode::New)?;
    /// assert!(path.exists());
    /// # std::fs::remove_dir_all(&directory).unwrap();
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn init(&self, namespace: &Namespace, mode: InitMode) -> Result<()> {
        let namespace = namespace.clone();
        match &self.place {
            #[cfg(feature = "sqlite")]
            Place::File(path) => SqliteStore::new(path, namespace)?.init(mode),
            Place::Url(url) => RemoteStore::open(url, namespace)?.init(mode),
            Place::Function(_) => Err(Error::invalid_argument(
                "a store that a function opens is made by a call of its own init",
            )),
            Place::Nowhere(why) => Err(Error::invalid_argument(why.clone())),
        }
    }
}

impl From<Place> for Location {
    fn from(place: Place) -> Self {
        Self { place, create: None }
    }
}

/// A path, or the URL of a store with a server, as [`RemoteStore::open`] takes it.
impl From<&str> for Location {
    fn from(location: &str) -> Self {
        match location.split_once("://") {
            Some(("postgresql" | "postgres" | "redis" | "rediss" | "etcd" | "etcds", _)) => {
                Place::Url(location.to_owned()).into()
            }
            // What follows may hold a password.
            Some((scheme, _)) => Place::Nowhere(format!(
                "there is no store for {scheme}:// here; a store is the path of a SQLite \
                 file, or the URL of PostgreSQL, Redis or etcd"
            ))
            .into(),
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
        // Not the directory of the moment in which a child opens it.
        Place::File(std::path::absolute(&path).unwrap_or(path)).into()
    }
}

#[cfg(not(feature = "sqlite"))]
impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        let why = format!("{} is a SQLite file, and this was built without", path.display());
        Place::Nowhere(why).into()
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Location(..)") // a URL has a password
    }
}
