//! The kinds of servers, and their names.

use randflake::{Error, Result, bindings::quoted};

/// Which kind of server it is. Not public: for the bindings, whose clients give its name.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Engine {
    Postgres,
    Mysql,
    Redis,
    Etcd,
}

impl Engine {
    /// Takes the name of the server in the bindings.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: no such server.
    pub fn named(name: &str) -> Result<Self> {
        let mut all = [Self::Postgres, Self::Mysql, Self::Redis, Self::Etcd].into_iter();
        all.find(|engine| engine.scheme() == name).ok_or_else(|| {
            Error::invalid_argument(format!("there is no store for the server {}", quoted(name)))
        })
    }

    /// Returns the name that URLs and the bindings use.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Postgres => "postgresql",
            Self::Mysql => "mysql",
            Self::Redis => "redis",
            Self::Etcd => "etcd",
        }
    }

    /// Returns the name that messages use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
            Self::Redis => "Redis",
            Self::Etcd => "etcd",
        }
    }
}
