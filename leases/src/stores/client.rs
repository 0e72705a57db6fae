//! What the native clients share.

use std::{fmt::Display, time::Duration};

use crate::remote::{address::Address, engine::Engine};
use randflake::{Error, ErrorKind, Result};

/// Longest wait for a server to accept a connection, and for an answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(3);

pub(super) fn unavailable(server: &str, why: impl Display) -> Error {
    Error::new(ErrorKind::StoreUnavailable, format!("cannot reach {server}: {why}"))
}

/// Reads the URL of a server.
pub(super) fn address_of(engine: Engine, url: &str) -> Result<Address> {
    match Address::read(url) {
        Some(Ok(address)) if address.engine == engine => Ok(address),
        Some(Err(error)) => Err(error),
        _ => Err(Error::invalid_argument(format!(
            "this is not a URL of {}: it must begin with {}://",
            engine.name(),
            engine.scheme()
        ))),
    }
}

#[cfg(any(feature = "postgres", feature = "etcd"))]
pub(super) fn certificates(pem: Option<&[u8]>) -> Vec<rustls::pki_types::CertificateDer<'static>> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    match pem {
        Some(pem) => CertificateDer::pem_slice_iter(pem).flatten().collect(),
        None => rustls_native_certs::load_native_certs().certs,
    }
}
