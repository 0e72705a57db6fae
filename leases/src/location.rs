//! From a path, a URL or a function to an open store, opened anew in each process.

#[cfg(feature = "sqlite")]
use std::time::Duration;
use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use randflake::{Error, Result};

#[cfg(feature = "sqlite")]
use crate::stores::sqlite::SqliteStore;
use crate::{
    namespace::{InitMode, Namespace},
    protocol::LeaseStore,
    remote::{Address, Client, RemoteStore},
};

/// The keeper asks again with a new reading of the clock; after a long wait the old one would be skewed.
#[cfg(feature = "sqlite")]
const TIMEOUT: Duration = Duration::from_secs(2);

/// Where a store is, and how each process opens it.
///
/// A path opens a [`SqliteStore`](crate::SqliteStore), a URL a
/// [`RemoteStore`](crate::remote::RemoteStore). A function opens any other store:
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
#[derive(Clone)]
pub struct Location {
    target: LocationKind,
    /// Whether to create what is missing; `None` for the store's default.
    create: Option<bool>,
}

#[derive(Clone)]
enum LocationKind {
    #[cfg(feature = "sqlite")]
    File(PathBuf),
    Server(Arc<Connect>),
    Function(Arc<Open>),
    /// Not a valid location, for this reason.
    Invalid(String),
}

type Connect = dyn Fn(Namespace) -> Result<RemoteStore<Box<dyn Client>>> + Send + Sync;

type Open = dyn Fn(Namespace) -> Result<Box<dyn LeaseStore>> + Send + Sync;

impl Location {
    /// Opens the store with this function. In a forked child, and after a restore, the function is
    /// called again, and must not return a store with an earlier connection.
    pub fn new(
        open: impl Fn(Namespace) -> Result<Box<dyn LeaseStore>> + Send + Sync + 'static,
    ) -> Self {
        LocationKind::Function(Arc::new(open)).into()
    }

    /// As [`Location::new`], for a store with a server, which can then also be
    /// [initialised](Location::init).
    pub fn server(
        connect: impl Fn(Namespace) -> Result<RemoteStore<Box<dyn Client>>> + Send + Sync + 'static,
    ) -> Self {
        LocationKind::Server(Arc::new(connect)).into()
    }

    /// Sets whether opening may create what is missing, as
    /// [`LeasedBuilder::create`](crate::LeasedBuilder::create) does.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = Some(create);
        self
    }

    /// As [`Location::create`], where that was not called and the store is not one that a function opens.
    #[doc(hidden)]
    #[must_use]
    pub fn create_unless_set(mut self, create: bool) -> Self {
        if !matches!(self.target, LocationKind::Function(_)) {
            self.create.get_or_insert(create);
        }
        self
    }

    /// Opens the store for a namespace.
    ///
    /// # Errors
    ///
    /// As the function that opens it; `INVALID_ARGUMENT` if this is not the location of a store.
    pub fn open(&self, namespace: &Namespace) -> Result<Box<dyn LeaseStore>> {
        let namespace = namespace.clone();
        match &self.target {
            #[cfg(feature = "sqlite")]
            LocationKind::File(path) => {
                let store = SqliteStore::new(path, namespace)?.patience(TIMEOUT);
                Ok(Box::new(store.create(self.create.unwrap_or(true))))
            }
            LocationKind::Server(connect) => {
                Ok(Box::new(connect(namespace)?.create(self.create.unwrap_or(false))?))
            }
            LocationKind::Function(_) if self.create.is_some() => Err(Error::invalid_argument(
                "create does not apply to a store that is opened by a function: set it in that \
                 function",
            )),
            LocationKind::Function(open) => open(namespace),
            LocationKind::Invalid(why) => Err(Error::invalid_argument(why.clone())),
        }
    }

    /// Creates the namespace if it is missing, and checks it if it exists, as [`RemoteStore::init`] and
    /// `SqliteStore::init` do.
    ///
    /// # Errors
    ///
    /// As [`LeaseStore::acquire`]. `INVALID_ARGUMENT` also for a store that a function opens: only its
    /// author knows how to create it.
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
        match &self.target {
            #[cfg(feature = "sqlite")]
            LocationKind::File(path) => SqliteStore::new(path, namespace)?.init(mode),
            LocationKind::Server(connect) => connect(namespace)?.init(mode),
            LocationKind::Function(_) => Err(Error::invalid_argument(
                "a store that is opened by a function cannot be created here: call that store's \
                 init",
            )),
            LocationKind::Invalid(why) => Err(Error::invalid_argument(why.clone())),
        }
    }
}

impl From<LocationKind> for Location {
    fn from(target: LocationKind) -> Self {
        Self { target, create: None }
    }
}

/// A path, or the URL of a store with a server, as [`RemoteStore::open`] takes it.
impl From<&str> for Location {
    fn from(location: &str) -> Self {
        let is_quoted = |text: &str| text.starts_with(['\'', '"']) || text.ends_with(['\'', '"']);
        if location.trim() != location || is_quoted(location) {
            return LocationKind::Invalid(
                "a store must not have white space or quotes around it: remove them (check \
                 RANDFLAKE_STORE)"
                    .to_owned(),
            )
            .into();
        }
        // Taken as a file, it would be shown wherever the store is named.
        if location.len() == 32 && location.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return LocationKind::Invalid(
                "a store of 32 hex digits could be a secret in the wrong place; for a file of that \
                 name, put ./ in front"
                    .to_owned(),
            )
            .into();
        }
        match Address::read(location) {
            Some(Ok(address)) => {
                return Self::server(move |namespace| RemoteStore::at(&address, namespace));
            }
            Some(Err(wrong)) => return LocationKind::Invalid(wrong.to_string()).into(),
            None => {}
        }
        match location.split_once("://") {
            // The rest may contain a password.
            Some((scheme, _)) => LocationKind::Invalid(format!(
                "{scheme}:// is not a supported store; use the path of a SQLite file, or the URL \
                 of PostgreSQL, MySQL, Redis or etcd"
            ))
            .into(),
            // Such as postgres:5432: taken as the name of a file, each machine would lease from its
            // own.
            None => match location.split_once(':') {
                Some((first, _)) if first.len() > 1 && !first.contains(['/', '\\']) => {
                    LocationKind::Invalid(format!(
                        "a store is the path of a SQLite file, or a URL such as \
                         postgresql://host/database, mysql://host/database, redis://host or \
                         etcd://host; text that begins with \"{first}:\" is neither (for a file of \
                         that name, put ./ in front)"
                    ))
                    .into()
                }
                _ => Path::new(location).into(),
            },
        }
    }
}

impl From<String> for Location {
    fn from(location: String) -> Self {
        location.as_str().into()
    }
}

/// As text, or as a path if it is not Unicode.
impl From<OsString> for Location {
    fn from(location: OsString) -> Self {
        match location.into_string() {
            Ok(location) => location.into(),
            Err(path) => PathBuf::from(path).into(),
        }
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
        // A child may have another current directory when it opens the store.
        LocationKind::File(std::path::absolute(&path).unwrap_or(path)).into()
    }
}

#[cfg(not(feature = "sqlite"))]
impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        let why = format!(
            "{} is a SQLite file, but this program was built without the feature sqlite",
            path.display()
        );
        LocationKind::Invalid(why).into()
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Location(..)") // a URL may contain a password
    }
}
