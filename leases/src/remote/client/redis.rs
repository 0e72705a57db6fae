use std::{fmt, time::Duration};

use redis::{Connection, ErrorKind, RedisError, TlsCertificates, Value, cmd};
use rustls::crypto::{CryptoProvider, ring};

use super::{
    TIMEOUT, bad_url,
    reconnect::{self, Failed, Reconnect},
    unavailable,
};
use crate::{
    Result,
    remote::{Client, Response, Statement},
};

const SERVER: &str = "Redis";

/// One connection to Redis or Valkey, opened when it is needed.
///
/// ```no_run
/// use randflake::Secret;
/// use randflake_leases::{InitMode, Namespace, remote::{Protocol, RedisClient, RemoteStore}};
///
/// let client = RedisClient::new("rediss://app:password@redis.example.com:6379/0")?;
/// let namespace = Namespace::new("orders", &Secret::random())?.max_ttl(120)?;
/// let mut store = RemoteStore::new(client, Protocol::redis(namespace));
/// store.init(InitMode::New)?;
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub struct RedisClient {
    client: redis::Client,
    url: String,
    timeout: Duration,
    connection: Option<Connection>,
}

impl RedisClient {
    /// Takes the URL of a server: `redis://`, or `rediss://` for TLS, where its certificate is
    /// checked. Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: no such URL. The message does not repeat it.
    pub fn new(url: &str) -> Result<Self> {
        Self::with(url, None)
    }

    fn with(url: &str, root_cert: Option<Vec<u8>>) -> Result<Self> {
        // Without one the client would panic where a program has two to choose from.
        if CryptoProvider::get_default().is_none() {
            let _another_was_faster = ring::default_provider().install_default();
        }
        let no_url = |_| bad_url(SERVER, "redis://user@host:6379/0, or rediss:// for TLS");
        let client = if url.starts_with("rediss:") {
            let certificates = TlsCertificates { client_tls: None, root_cert };
            redis::Client::build_with_tls(url, certificates).map_err(no_url)?
        } else {
            redis::Client::open(url).map_err(no_url)?
        };
        Ok(Self { client, url: url.into(), timeout: TIMEOUT, connection: None })
    }

    /// Trusts these certificates, as PEM, instead of the machine's.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: no certificates.
    pub fn root_certificates(self, pem: impl Into<Vec<u8>>) -> Result<Self> {
        let timeout = self.timeout;
        Ok(Self { timeout, ..Self::with(&self.url, Some(pem.into()))? })
    }

    /// Sets how long to wait for a connection, and for an answer; 3 seconds unless set.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn connect(&self) -> Result<Connection, RedisError> {
        let connection = self.client.get_connection_with_timeout(self.timeout)?;
        connection.set_read_timeout(Some(self.timeout))?;
        connection.set_write_timeout(Some(self.timeout))?;
        Ok(connection)
    }
}

impl Reconnect for RedisClient {
    fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    fn once(&mut self, statement: &Statement) -> Result<Response, Failed> {
        if self.connection.is_none() {
            let connected = self.connect().map_err(|error| Failed::Closed(explain(&error)));
            self.connection = Some(connected?);
        }
        let connection = self.connection.as_mut().expect("just made");
        let answer = cmd(statement.text).arg(&statement.parameters).query::<Value>(connection);
        match answer {
            Ok(value) => Ok(Response::Rows(rows(value))),
            Err(error) => match error.code() {
                Some(code) => Ok(Response::Refused {
                    code: code.into(),
                    message: error.detail().unwrap_or_default().into(),
                }),
                None if error.is_timeout() => Err(Failed::Silent(explain(&error))),
                None => Err(Failed::Closed(explain(&error))),
            },
        }
    }

    fn forget(&mut self) {
        self.connection = None;
    }
}

fn explain(error: &RedisError) -> crate::Error {
    if error.kind() == ErrorKind::AuthenticationFailed {
        return unavailable(SERVER, "it does not accept the user and the password");
    }
    unavailable(SERVER, error.category())
}

fn rows(value: Value) -> Vec<Vec<Option<String>>> {
    match value {
        Value::Array(values) if values.iter().all(|value| matches!(value, Value::Array(_))) => {
            values.into_iter().map(row).collect()
        }
        other => vec![row(other)],
    }
}

fn row(value: Value) -> Vec<Option<String>> {
    match value {
        Value::Array(values) => values.into_iter().map(cell).collect(),
        Value::Map(pairs) => {
            pairs.into_iter().flat_map(|(key, value)| [cell(key), cell(value)]).collect()
        }
        other => vec![cell(other)],
    }
}

fn cell(value: Value) -> Option<String> {
    redis::from_redis_value(value).ok()
}

impl Client for RedisClient {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        reconnect::run(self, statement)
    }

    fn discard(&mut self) {
        self.forget();
    }

    fn rest(&mut self) {
        self.forget();
    }
}

/// Shows nothing of the URL, which may hold a password.
impl fmt::Debug for RedisClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisClient")
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}
