//! A connection for each kind of server.

#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod reconnect;
#[cfg(feature = "redis")]
mod redis;

use std::{fmt::Display, time::Duration};

#[cfg(feature = "etcd")]
pub use self::etcd::EtcdClient;
#[cfg(feature = "postgres")]
pub use self::postgres::PostgresClient;
#[cfg(feature = "redis")]
pub use self::redis::RedisClient;
use super::{Address, Engine};
use crate::{Error, ErrorKind, Result};

/// Longest wait for a server to accept a connection, and for an answer.
const TIMEOUT: Duration = Duration::from_secs(3);

fn unavailable(server: &str, why: impl Display) -> Error {
    Error::new(ErrorKind::StoreUnavailable, format!("cannot reach {server}: {why}"))
}

/// Reads the URL of a server.
fn address_of(engine: Engine, url: &str) -> Result<Address> {
    match Address::read(url) {
        Some(Ok(address)) if address.engine == engine => Ok(address),
        Some(Err(error)) => Err(error),
        _ => Err(Error::invalid_argument(format!(
            "this is no URL of {}: one begins with {}://",
            engine.name(),
            engine.scheme()
        ))),
    }
}

#[cfg(any(feature = "postgres", feature = "etcd"))]
fn certificates(pem: Option<&[u8]>) -> Vec<rustls::pki_types::CertificateDer<'static>> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    match pem {
        Some(pem) => CertificateDer::pem_slice_iter(pem).flatten().collect(),
        None => rustls_native_certs::load_native_certs().certs,
    }
}
