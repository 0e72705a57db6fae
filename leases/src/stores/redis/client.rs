//! The native client of Redis.

use std::{fmt, sync::mpsc, thread, time::Duration};

use redis::{Connection, ErrorKind, RedisError, RedisResult, TlsCertificates, Value, pipe};
use rustls::crypto::{CryptoProvider, ring};
use zeroize::Zeroizing;

use crate::{
    remote::{
        address::Address,
        engine::Engine,
        exchange::{Response, Statement, WaitForReplicas},
    },
    stores::{
        client::{TIMEOUT, address_of, unavailable},
        reconnect::{NoResponse, Reconnect},
    },
};
use randflake::{Error, Result};

const SERVER: &str = "Redis";

/// One connection to Redis or Valkey, opened when it is needed.
///
/// ```no_run
/// use randflake::Secret;
/// use randflake_leases::{InitMode, Namespace, RedisClient, remote::{Protocol, RemoteStore}};
///
/// let client = RedisClient::new("rediss://app:password@redis.example.com:6379/0")?;
/// let namespace = Namespace::new("orders", &Secret::random())?.max_ttl(120)?;
/// let mut store = RemoteStore::new(client, Protocol::redis(namespace));
/// store.init(InitMode::New)?;
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub struct RedisClient {
    client: redis::Client,
    url: Zeroizing<String>,
    timeout: Duration,
    connection: Option<Connection>,
}

impl RedisClient {
    /// Takes the URL of a server: `redis://`, or `rediss://` for TLS with a checked certificate.
    /// Does not connect yet.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: not such a URL. The message does not repeat it.
    pub fn new(url: &str) -> Result<Self> {
        Self::at(&address_of(Engine::Redis, url)?)
    }

    pub(crate) fn at(address: &Address) -> Result<Self> {
        Self::with(address.to_client(), address.file("sslrootcert")?)
    }

    fn with(url: Zeroizing<String>, root_cert: Option<Vec<u8>>) -> Result<Self> {
        // Without a default the client would panic in a program that has two providers.
        if CryptoProvider::get_default().is_none() {
            let _another_was_faster = ring::default_provider().install_default();
        }
        let no_url = |_| Error::invalid_argument("the Redis client does not accept this URL");
        let client = if url.starts_with("rediss:") {
            let certificates = TlsCertificates { client_tls: None, root_cert };
            redis::Client::build_with_tls(url.as_str(), certificates).map_err(no_url)?
        } else {
            redis::Client::open(url.as_str()).map_err(no_url)?
        };
        Ok(Self { client, url, timeout: TIMEOUT, connection: None })
    }

    /// Trusts these certificates, as PEM, instead of the machine's.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: there are no certificates in it.
    pub fn root_certificates(self, pem: impl Into<Vec<u8>>) -> Result<Self> {
        let timeout = self.timeout;
        Ok(Self { timeout, ..Self::with(self.url, Some(pem.into()))? })
    }

    /// Sets how long to wait for a whole answer, and for the connection before it; 3 seconds by
    /// default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

fn connect(client: &redis::Client, timeout: Duration) -> RedisResult<Connection> {
    let connection = client.get_connection_with_timeout(timeout)?;
    connection.set_read_timeout(Some(timeout))?;
    connection.set_write_timeout(Some(timeout))?;
    Ok(connection)
}

/// Runs a statement, and returns its result and the result of `WAIT`.
fn ask(connection: &mut Connection, statement: &Statement) -> Result<Response, NoResponse> {
    let mut commands = pipe();
    commands.cmd(statement.text).arg(&statement.parameters);
    if let Some(WaitForReplicas { replicas, milliseconds }) = statement.wait {
        commands.cmd("WAIT").arg(replicas).arg(milliseconds);
    }
    let answers = commands.ignore_errors().query::<Vec<RedisResult<Value>>>(connection);
    match answers.and_then(|answers| answers.into_iter().collect::<RedisResult<Vec<_>>>()) {
        Ok(answers) => match <[Value; 2]>::try_from(answers) {
            Ok([value, Value::Int(count)]) => {
                let replicas = u32::try_from(count).unwrap_or_default();
                Ok(Response::Confirmed { rows: rows(value), replicas })
            }
            Ok([value, _]) => Ok(Response::Rows(rows(value))),
            Err(answers) => Ok(Response::Rows(answers.into_iter().flat_map(rows).collect())),
        },
        Err(error) => match error.code() {
            Some(code) => Ok(Response::Refused {
                code: code.into(),
                message: error.detail().unwrap_or_default().into(),
            }),
            None if error.is_timeout() => Err(NoResponse::Silent(explain(&error))),
            None => Err(NoResponse::Closed(explain(&error))),
        },
    }
}

impl Reconnect for RedisClient {
    fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    fn once(&mut self, statement: &Statement) -> Result<Response, NoResponse> {
        let (taken, client) = (self.connection.take(), self.client.clone());
        let (timeout, statement) = (self.timeout, statement.clone());
        let (sender, receiver) = mpsc::sync_channel(1);
        // A connection limits only the time of each read, and an answer can take any number of
        // reads. A caller that gives up leaves the connection to this thread, which ends with its
        // read.
        let work = move || {
            let connected = taken.map_or_else(|| connect(&client, timeout), Ok);
            let connected = connected.map_err(|error| NoResponse::Closed(explain(&error)));
            let outcome = connected.and_then(|mut connection| {
                ask(&mut connection, &statement).map(|response| (connection, response))
            });
            let _gave_up = sender.send(outcome);
        };
        let begun = thread::Builder::new().spawn(work);
        begun.map_err(|error| NoResponse::Closed(unavailable(SERVER, error)))?;
        let outcome = receiver.recv_timeout(timeout);
        let (connection, response) = outcome
            .map_err(|_| NoResponse::Silent(unavailable(SERVER, "it does not answer")))??;
        self.connection = Some(connection);
        Ok(response)
    }

    fn forget(&mut self) {
        self.connection = None;
    }
}

fn explain(error: &RedisError) -> Error {
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

/// Shows no part of the URL, which may hold a password.
impl fmt::Debug for RedisClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisClient")
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}
