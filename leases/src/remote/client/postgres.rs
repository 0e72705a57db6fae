use std::{fmt, sync::Arc, thread, time::Duration};

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use tokio_postgres::{
    Client as Session, Config, Error as PostgresError,
    config::SslMode,
    error::Severity,
    types::{ToSql, Type},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    TIMEOUT, bad_url, certificates,
    reconnect::{self, Reconnect},
    unavailable,
};
use crate::{
    Result,
    remote::{Client, Response, Statement},
};

const SERVER: &str = "PostgreSQL";

/// One connection to PostgreSQL, opened when it is needed.
///
/// ```no_run
/// use randflake::Secret;
/// use randflake_leases::{Namespace, remote::{PostgresClient, Protocol, RemoteStore}};
///
/// let client = PostgresClient::new("postgresql://app:password@db.example.com/app?sslmode=require")?;
/// let namespace = Namespace::new("orders", &Secret::random())?;
/// let mut store = RemoteStore::new(client, Protocol::postgres(namespace));
/// store.init(false)?;
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub struct PostgresClient {
    config: Config,
    /// Certificates to trust instead of the machine's, as PEM.
    roots: Option<Vec<u8>>,
    timeout: Duration,
    connection: Option<Connection>,
}

struct Connection {
    /// Of this connection alone: it runs while a statement does.
    runtime: Runtime,
    session: Session,
}

impl PostgresClient {
    /// Takes the URL of a database, as `libpq` understands it. With `sslmode=require`,
    /// `verify-ca` or `verify-full` the server's certificate is checked; there is no TLS without.
    /// Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: no such URL. The message does not repeat it.
    pub fn new(url: &str) -> Result<Self> {
        let mut url = url.to_owned();
        for mode in ["sslmode=verify-full", "sslmode=verify-ca"] {
            url = url.replace(mode, "sslmode=require");
        }
        let mut config: Config = url
            .parse()
            .map_err(|_| bad_url(SERVER, "postgresql://user@host:5432/database?sslmode=require"))?;
        if config.get_ssl_mode() != SslMode::Require {
            config.ssl_mode(SslMode::Disable);
        }
        Ok(Self { config, roots: None, timeout: TIMEOUT, connection: None })
    }

    /// Trusts these certificates, as PEM, instead of the machine's.
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
        self
    }

    /// Sets how long to wait for a connection, and for an answer; 3 seconds unless set.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn connect(&self) -> Result<Connection> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| unavailable(SERVER, error))?;
        let mut roots = RootCertStore::empty();
        if self.config.get_ssl_mode() == SslMode::Require {
            roots.add_parsable_certificates(certificates(self.roots.as_deref()));
        }
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unavailable(SERVER, error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connect = self.config.connect(MakeRustlsConnect::new(tls));
        let (session, connection) = runtime
            .block_on(async { timeout(self.timeout, connect).await })
            .map_err(|_| unavailable(SERVER, "it does not answer"))?
            .map_err(|error| unavailable(SERVER, explain(&error)))?;
        runtime.spawn(connection);
        Ok(Connection { runtime, session })
    }

    fn query(&mut self, statement: &Statement) -> Result<Response> {
        if self.connection.is_none() {
            self.connection = Some(self.connect()?);
        }
        let Connection { runtime, session } = self.connection.as_ref().expect("just made");
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            statement.parameters.iter().map(|value| (value as _, Type::TEXT)).collect();
        let query = session.query_typed(statement.text, &parameters);
        let rows = match runtime
            .block_on(async { timeout(self.timeout, query).await })
            .map_err(|_| unavailable(SERVER, "it does not answer"))?
        {
            Ok(rows) => rows,
            Err(error) => match error.as_db_error() {
                // After any other the connection is closed.
                Some(refusal) if refusal.parsed_severity() == Some(Severity::Error) => {
                    return Ok(Response::Refused {
                        code: refusal.code().code().into(),
                        message: refusal.message().into(),
                    });
                }
                _ => return Err(unavailable(SERVER, explain(&error))),
            },
        };
        let cells = |row: &tokio_postgres::Row| {
            (0..row.len()).map(|column| row.try_get(column)).collect::<Result<Vec<_>, _>>()
        };
        let rows = rows.iter().map(cells).collect::<Result<_, PostgresError>>();
        rows.map(Response::Rows).map_err(|error| unavailable(SERVER, explain(&error)))
    }
}

/// Says the cause, too: "db error" alone helps nobody.
fn explain(error: &PostgresError) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

impl Reconnect for PostgresClient {
    fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    fn once(&mut self, statement: &Statement) -> Result<Response> {
        // A runtime of its own cannot run on a thread of the caller's.
        thread::scope(|scope| {
            let query = scope.spawn(|| self.query(statement));
            query.join().unwrap_or_else(|_| Err(unavailable(SERVER, "its client has failed")))
        })
    }

    fn forget(&mut self) {
        self.connection = None;
    }
}

impl Client for PostgresClient {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        reconnect::run(self, statement)
    }

    fn discard(&mut self) {
        self.forget();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Without this, dropping one on a thread of another runtime would panic.
        let runtime = Builder::new_current_thread().build();
        if let Ok(unused) = runtime {
            std::mem::replace(&mut self.runtime, unused).shutdown_background();
        }
    }
}

/// Shows nothing of the URL, which may hold a password.
impl fmt::Debug for PostgresClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresClient")
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}
