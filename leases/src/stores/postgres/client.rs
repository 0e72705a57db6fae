//! The native client of PostgreSQL.

use std::{
    fmt,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use tokio_postgres::{
    AsyncMessage, Client as Session, Config, Error as PostgresError,
    config::{ChannelBinding, SslMode},
    error::{DbError, Severity, SqlState},
    types::{ToSql, Type},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    remote::{
        address::Address,
        engine::Engine,
        exchange::{Response, Statement},
    },
    stores::{
        client::{TIMEOUT, address_of, certificates, unavailable},
        reconnect::{NoResponse, Reconnect},
    },
};
use randflake::Result;

const SERVER: &str = "PostgreSQL";

/// Longest wait for the server to take note that a statement was cancelled.
const CANCEL_PATIENCE: Duration = Duration::from_millis(500);

/// One connection to PostgreSQL, opened when it is needed.
///
/// The server ends a statement that takes too long, for example because another session has locked
/// the tables: connections of this client set `statement_timeout` to five sixths of the
/// [`timeout`](PostgresClient::timeout). If a pooler refuses such options, as PgBouncer does, no
/// limit is set: set one for the role.
///
/// ```no_run
/// use randflake::Secret;
/// use randflake_leases::{PostgresClient, InitMode, Namespace, remote::{Protocol, RemoteStore}};
///
/// let client = PostgresClient::new("postgresql://app:password@db.example.com/app?sslmode=require")?;
/// let namespace = Namespace::new("orders", &Secret::random())?;
/// let mut store = RemoteStore::new(client, Protocol::postgres(namespace));
/// store.init(InitMode::New)?;
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub struct PostgresClient {
    config: Config,
    /// Certificates to trust instead of the machine's, as PEM.
    roots: Option<Vec<u8>>,
    timeout: Duration,
    /// Whether the other end of the connection has refused options.
    takes_no_options: bool,
    connection: Option<Connection>,
}

struct Connection {
    /// Only for this connection: it runs while a statement does.
    runtime: Runtime,
    session: Session,
    tls: MakeRustlsConnect,
    /// The server has warned that a statement may not be on its standbys.
    unconfirmed: Arc<AtomicBool>,
}

impl PostgresClient {
    /// Takes the URL of a database: `postgresql://user:password@host:5432/database`. With
    /// `?sslmode=require`, `verify-ca` or `verify-full` the server's certificate is checked against
    /// those in the file `sslrootcert` or the machine's; otherwise there is no TLS. Takes nothing
    /// from the environment, and does not connect yet.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: not such a URL. The message does not repeat it.
    pub fn new(url: &str) -> Result<Self> {
        Self::at(&address_of(Engine::Postgres, url)?)
    }

    pub(crate) fn at(address: &Address) -> Result<Self> {
        let mut config = Config::new();
        for (host, port) in &address.hosts {
            config.host(host).port(*port);
        }
        config.user(address.user.as_deref().unwrap_or_default()).dbname(&address.database);
        if let Some(password) = &address.password {
            config.password(password.as_str());
        }
        if let Some(name) = address.option("application_name") {
            config.application_name(name);
        }
        config.channel_binding(match address.option("channel_binding") {
            Some("disable") => ChannelBinding::Disable,
            Some("require") => ChannelBinding::Require,
            _ => ChannelBinding::Prefer,
        });
        config.ssl_mode(if address.tls { SslMode::Require } else { SslMode::Disable });
        Ok(Self {
            config,
            roots: address.file("sslrootcert")?,
            timeout: TIMEOUT,
            takes_no_options: false,
            connection: None,
        })
    }

    /// Trusts these certificates, as PEM, instead of the machine's.
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
        self
    }

    /// Sets how long to wait for a connection, and for an answer; 3 seconds by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn connect(&mut self) -> Result<Connection> {
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
        let tls = MakeRustlsConnect::new(tls);
        let connect = |config: &Config| {
            runtime
                .block_on(async { timeout(self.timeout, config.connect(tls.clone())).await })
                .map_err(|_| unavailable(SERVER, "it does not answer"))
        };
        let mut connected = if self.takes_no_options {
            connect(&self.config)?
        } else {
            connect(&self.with_statement_timeout())?
        };
        if let Err(error) = &connected
            && !self.takes_no_options
            && refuses_options(error)
        {
            connected = connect(&self.config)?;
            self.takes_no_options = connected.is_ok();
        }
        let (session, mut connection) =
            connected.map_err(|error| unavailable(SERVER, explain(&error)))?;
        let unconfirmed = Arc::new(AtomicBool::new(false));
        let warned = Arc::clone(&unconfirmed);
        runtime.spawn(async move {
            // Ends with the connection, or its first error.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if matches!(&message, AsyncMessage::Notice(notice) if is_unconfirmed(notice)) {
                    // Relaxed: the same thread runs this and waits for the statement.
                    warned.store(true, Ordering::Relaxed);
                }
            }
        });
        Ok(Connection { runtime, session, tls, unconfirmed })
    }

    /// Makes the server end a statement that this client no longer waits for. It is an option of
    /// the connection, because `SET` through a pooler would persist on a connection that others get
    /// later.
    fn with_statement_timeout(&self) -> Config {
        let mut config = self.config.clone();
        let milliseconds = (self.timeout * 5 / 6).as_millis().max(1);
        config.options(format!("-c statement_timeout={milliseconds}"));
        config
    }

    fn query(&mut self, statement: &Statement) -> Result<Response, NoResponse> {
        if self.connection.is_none() {
            self.connection = Some(self.connect().map_err(NoResponse::Closed)?);
        }
        let connection = self.connection.as_ref().expect("just made");
        let Connection { runtime, session, tls, unconfirmed } = connection;
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            statement.parameters.iter().map(|value| (value as _, Type::TEXT)).collect();
        let query = session.query_typed(statement.text, &parameters);
        let Ok(answer) = runtime.block_on(async { timeout(self.timeout, query).await }) else {
            // The server's statement_timeout did not arrive in time, or there is none.
            let cancel = session.cancel_token();
            let _it_may_be_gone = runtime.block_on(async {
                timeout(CANCEL_PATIENCE, cancel.cancel_query(tls.clone())).await
            });
            return Err(NoResponse::Silent(unavailable(SERVER, "it does not answer")));
        };
        let is_unconfirmed = unconfirmed.swap(false, Ordering::Relaxed);
        let rows = match answer {
            Ok(_) if is_unconfirmed => {
                let why = "its wait for standbys was cancelled, and they may lack the write";
                return Err(NoResponse::Silent(unavailable(SERVER, why)));
            }
            Ok(rows) => rows,
            Err(error) => match error.as_db_error() {
                // After any other error the connection is closed.
                Some(refusal) if refusal.parsed_severity() == Some(Severity::Error) => {
                    return Ok(Response::Refused {
                        code: refusal.code().code().into(),
                        message: refusal.message().into(),
                    });
                }
                _ => return Err(NoResponse::Closed(unavailable(SERVER, explain(&error)))),
            },
        };
        let cells = |row: &tokio_postgres::Row| {
            (0..row.len()).map(|column| row.try_get(column)).collect::<Result<Vec<_>, _>>()
        };
        let rows = rows.iter().map(cells).collect::<Result<_, PostgresError>>();
        rows.map(Response::Rows)
            .map_err(|error| NoResponse::Closed(unavailable(SERVER, explain(&error))))
    }
}

/// Returns whether a warning says that a commit no longer waits for its standbys: if anyone cancels
/// that wait, the statement still succeeds. The text is in the server's language, but the name of
/// PostgreSQL's source file is not.
fn is_unconfirmed(notice: &DbError) -> bool {
    notice.file().is_some_and(|file| file.ends_with("syncrep.c"))
}

/// Returns whether the error is from a pooler that refuses all options of a connection.
fn refuses_options(error: &PostgresError) -> bool {
    let refused = [SqlState::PROTOCOL_VIOLATION, SqlState::FEATURE_NOT_SUPPORTED];
    error.code().is_some_and(|code| refused.contains(code))
}

/// Returns the error's text with its cause: "db error" alone says too little.
fn explain(error: &PostgresError) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

impl Reconnect for PostgresClient {
    fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    fn once(&mut self, statement: &Statement) -> Result<Response, NoResponse> {
        // Its own runtime cannot run on a thread of the caller's runtime.
        thread::scope(|scope| {
            let failed = || NoResponse::Closed(unavailable(SERVER, "its client has failed"));
            let query = scope.spawn(|| self.query(statement));
            query.join().unwrap_or_else(|_| Err(failed()))
        })
    }

    fn forget(&mut self) {
        self.connection = None;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Without this, dropping a runtime on a thread of another runtime would panic.
        let runtime = Builder::new_current_thread().build();
        if let Ok(unused) = runtime {
            std::mem::replace(&mut self.runtime, unused).shutdown_background();
        }
    }
}

/// Shows no part of the URL, which may hold a password.
impl fmt::Debug for PostgresClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresClient")
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}
