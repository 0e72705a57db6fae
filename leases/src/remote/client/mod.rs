//! A connection for each kind of server.

#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;

use std::{fmt::Display, time::Duration};

#[cfg(feature = "etcd")]
pub use self::etcd::EtcdClient;
#[cfg(feature = "postgres")]
pub use self::postgres::PostgresClient;
#[cfg(feature = "redis")]
pub use self::redis::RedisClient;
use super::{Response, Statement};
use crate::{Error, Result, StoreErrorKind};

/// Longest wait for a server to accept a connection, and for an answer.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A connection that may have been idle for long.
trait Reconnect {
    fn is_connected(&self) -> bool;
    fn once(&mut self, statement: &Statement) -> Result<Response>;
    fn forget(&mut self);
}

/// Runs a statement, and once more on a new connection if the old one turns out to be closed: each
/// operation may be repeated.
fn run(client: &mut impl Reconnect, statement: &Statement) -> Result<Response> {
    if client.is_connected() {
        if let Ok(response) = client.once(statement) {
            return Ok(response);
        }
        client.forget();
    }
    client.once(statement).inspect_err(|_| client.forget())
}

fn unavailable(server: &str, why: impl Display) -> Error {
    Error::new(StoreErrorKind::StoreUnavailable, format!("cannot reach {server}: {why}"))
}

/// Shows nothing of the URL, which may hold a password.
fn bad_url(server: &str, example: &str) -> Error {
    Error::invalid_argument(format!("this is no URL of {server}; one looks like {example}"))
}

#[cfg(any(feature = "postgres", feature = "etcd"))]
fn certificates(pem: Option<&[u8]>) -> Vec<rustls::pki_types::CertificateDer<'static>> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    match pem {
        Some(pem) => CertificateDer::pem_slice_iter(pem).flatten().collect(),
        None => rustls_native_certs::load_native_certs().certs,
    }
}
