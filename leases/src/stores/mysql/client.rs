//! The native client of MySQL and MariaDB.

use std::{fmt, thread, time::Duration};

use mysql_async::{
    Conn, Error as MysqlError, Opts, OptsBuilder, Params, Row, SslOpts, Value, prelude::Queryable,
};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};

use crate::{
    remote::{
        address::Address,
        engine::Engine,
        exchange::{Response, Statement},
    },
    stores::{
        client::{TIMEOUT, address_of, unavailable},
        reconnect::{NoResponse, Reconnect},
    },
};
use randflake::Result;

const SERVER: &str = "MySQL";

/// Errors after which the server closes the connection: it is shutting down, or somebody killed the
/// connection.
const CLOSING: [u16; 4] = [1053, 1079, 1927, 4031];

/// One connection to MySQL or MariaDB, opened when it is needed.
///
/// ```no_run
/// use randflake::Secret;
/// use randflake_leases::{MysqlClient, InitMode, Namespace, remote::{Protocol, RemoteStore}};
///
/// let client = MysqlClient::new("mysql://app:password@db.example.com/app?ssl-mode=VERIFY_IDENTITY")?;
/// let namespace = Namespace::new("orders", &Secret::random())?;
/// let mut store = RemoteStore::new(client, Protocol::mysql(namespace));
/// store.init(InitMode::New)?;
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub struct MysqlClient {
    options: OptsBuilder,
    timeout: Duration,
    connection: Option<Connection>,
}

struct Connection {
    /// Only for this connection: it runs while a statement does. `None` only while it is dropped.
    runtime: Option<Runtime>,
    session: Option<Conn>,
}

impl MysqlClient {
    /// Takes the URL of a database: `mysql://user:password@host:3306/database`. With
    /// `?ssl-mode=REQUIRED`, `VERIFY_CA` or `VERIFY_IDENTITY` the server's certificate is checked
    /// against those in the file `sslrootcert`, the machine's or Mozilla's; otherwise there is no
    /// TLS. Does not connect yet.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: not such a URL. The message does not repeat it.
    pub fn new(url: &str) -> Result<Self> {
        Self::at(&address_of(Engine::Mysql, url)?)
    }

    pub(crate) fn at(address: &Address) -> Result<Self> {
        let (host, port) = address.hosts.first().expect("a URL has a host");
        let mut options = OptsBuilder::default()
            .ip_or_hostname(host)
            .tcp_port(*port)
            .user(address.user.as_deref())
            .pass(address.password.as_ref().map(|password| password.as_str()))
            .db_name(Some(&address.database))
            // One URL leads to one server: otherwise the client would switch to a socket that the
            // server names.
            .prefer_socket(false);
        if host.starts_with('/') {
            options = options.socket(Some(host.as_str()));
        }
        if address.tls {
            let own = address.file("sslrootcert")?;
            let has_own = own.is_some();
            let of_the_machine = || {
                let found = rustls_native_certs::load_native_certs().certs;
                found.into_iter().map(|root| root.as_ref().to_vec().into()).collect()
            };
            let roots = own.map_or_else(of_the_machine, |pem| vec![pem.into()]);
            options = options.ssl_opts(
                SslOpts::default().with_root_certs(roots).with_disable_built_in_roots(has_own),
            );
        }
        Ok(Self { options, timeout: TIMEOUT, connection: None })
    }

    /// Sets how long to wait for a connection, and for an answer; 3 seconds by default.
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
        // The server aborts a statement that this client no longer waits for.
        let seconds = (self.timeout * 5 / 6).as_secs().max(1);
        let setup = format!("set session autocommit = 1, innodb_lock_wait_timeout = {seconds}");
        let options: Opts = self.options.clone().setup(vec![setup]).into();
        let connected = runtime.block_on(async { timeout(self.timeout, Conn::new(options)).await });
        let session = connected
            .map_err(|_| unavailable(SERVER, "it does not answer"))?
            .map_err(|error| unavailable(SERVER, error))?;
        Ok(Connection { runtime: Some(runtime), session: Some(session) })
    }

    fn query(&mut self, statement: &Statement) -> Result<Response, NoResponse> {
        if self.connection.is_none() {
            self.connection = Some(self.connect().map_err(NoResponse::Closed)?);
        }
        let Some(Connection { runtime: Some(runtime), session: Some(session) }) =
            &mut self.connection
        else {
            unreachable!("just made")
        };
        let values = statement.parameters.iter().map(|value| Value::from(value.as_str())).collect();
        let parameters = match statement.parameters.len() {
            0 => Params::Empty,
            _ => Params::Positional(values),
        };
        let ask = async {
            let mut result = session.exec_iter(statement.text, parameters).await?;
            let insert_id = result.last_insert_id().unwrap_or(0);
            let rows: Vec<Row> = if result.is_empty() { vec![] } else { result.collect().await? };
            Ok::<_, MysqlError>((insert_id, rows))
        };
        let Ok(answer) = runtime.block_on(async { timeout(self.timeout, ask).await }) else {
            return Err(NoResponse::Silent(unavailable(SERVER, "it does not answer")));
        };
        match answer {
            Ok((insert_id, rows)) if rows.is_empty() => {
                Ok(Response::Rows(vec![vec![Some(insert_id.to_string())]]))
            }
            Ok((_, rows)) => {
                let rows = rows.into_iter().map(|row| row.unwrap().into_iter().map(cell).collect());
                Ok(Response::Rows(rows.collect()))
            }
            Err(MysqlError::Server(refusal)) if !CLOSING.contains(&refusal.code) => {
                Ok(Response::Refused { code: refusal.code.to_string(), message: refusal.message })
            }
            Err(error) => Err(NoResponse::Closed(unavailable(SERVER, error))),
        }
    }
}

fn cell(value: Value) -> Option<String> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Value::Int(number) => Some(number.to_string()),
        Value::UInt(number) => Some(number.to_string()),
        other => Some(other.as_sql(true)),
    }
}

impl Reconnect for MysqlClient {
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
        // Outside of any runtime: the connection is closed without a message to the server, which
        // could block.
        drop(self.session.take());
        // On a thread of another runtime, dropping one would panic.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Shows no part of the URL, which may hold a password.
impl fmt::Debug for MysqlClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlClient")
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}
