//! How the URL of a server becomes a store: with the client of its engine.

use randflake::{Error, ErrorKind, Result};

#[cfg(feature = "etcd")]
use super::etcd::EtcdClient;
#[cfg(feature = "mysql")]
use super::mysql::MysqlClient;
#[cfg(feature = "postgres")]
use super::postgres::PostgresClient;
#[cfg(feature = "redis")]
use super::redis::RedisClient;
use crate::{
    namespace::Namespace,
    remote::{Address, Client, Engine, Protocol, RemoteStore, SharedClient},
};

impl RemoteStore<Box<dyn Client>> {
    /// Makes a store for a URL: `postgresql://`, `mysql://` or `mariadb://`, `redis://` or
    /// `rediss://`, `etcd://` or `etcds://`, with the client of the cargo feature of that name. All
    /// stores of a URL in a process share one [`SharedClient`]. Does not connect yet.
    ///
    /// # Errors
    ///
    /// [`DriverMissing`](ErrorKind::DriverMissing): the feature is off. `INVALID_ARGUMENT`: another
    /// URL. The message does not repeat it.
    pub fn open(url: &str, namespace: Namespace) -> Result<Self> {
        let Some(address) = Address::read(url) else {
            return Err(Error::invalid_argument(
                "the URL of a store begins with postgresql://, mysql://, redis://, rediss://, \
                     etcd:// or etcds://",
            ));
        };
        Self::at(&address?, namespace)
    }

    /// As [`RemoteStore::open`], for a URL that is already parsed.
    pub(crate) fn at(address: &Address, namespace: Namespace) -> Result<Self> {
        let connect = || -> Result<Box<dyn Client>> {
            match address.engine {
                #[cfg(feature = "postgres")]
                Engine::Postgres => Ok(Box::new(PostgresClient::at(address)?)),
                #[cfg(not(feature = "postgres"))]
                Engine::Postgres => Err(driver_missing("postgres")),
                #[cfg(feature = "mysql")]
                Engine::Mysql => Ok(Box::new(MysqlClient::at(address)?)),
                #[cfg(not(feature = "mysql"))]
                Engine::Mysql => Err(driver_missing("mysql")),
                #[cfg(feature = "redis")]
                Engine::Redis => Ok(Box::new(RedisClient::at(address)?)),
                #[cfg(not(feature = "redis"))]
                Engine::Redis => Err(driver_missing("redis")),
                #[cfg(feature = "etcd")]
                Engine::Etcd => Ok(Box::new(EtcdClient::at(address)?)),
                #[cfg(not(feature = "etcd"))]
                Engine::Etcd => Err(driver_missing("etcd")),
            }
        };
        let client = SharedClient::open(&address.key(), connect)?;
        let protocol = Protocol::new(namespace, address.engine);
        Ok(Self::new(Box::new(client), protocol).place(address.to_string()))
    }
}

#[allow(dead_code, reason = "one for each feature that is off")]
fn driver_missing(feature: &str) -> Error {
    Error::new(
        ErrorKind::DriverMissing,
        format!(
            "this program has no client for that server: its dependency randflake-leases needs the \
             feature {feature}"
        ),
    )
}
