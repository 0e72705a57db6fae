//! The native client of etcd's JSON gateway.

use std::{fmt, time::Duration};

use serde_json::{Value, json};
use ureq::{
    Agent,
    http::StatusCode,
    tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig},
};
use zeroize::Zeroizing;

use crate::{
    remote::{
        address::{Address, authority},
        client::Client,
        engine::Engine,
        exchange::{Response, Statement},
    },
    stores::client::{TIMEOUT, address_of, certificates, unavailable},
};
use randflake::{Error, Result};

const SERVER: &str = "etcd";
/// Longest answer, in bytes: room for a thousand node ids, twice over.
const LONGEST: u64 = 1 << 20;

/// HTTP connections to the members of an etcd, opened when they are needed.
///
/// ```no_run
/// use randflake::Secret;
/// use randflake_leases::{EtcdClient, Namespace, remote::{Protocol, RemoteStore}};
///
/// let client = EtcdClient::new("etcds://app:password@one.example.com:2379,two.example.com:2379")?;
/// let namespace = Namespace::new("orders", &Secret::random())?;
/// let mut store = RemoteStore::new(client, Protocol::etcd(namespace).create(true)?);
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub struct EtcdClient {
    /// As `http://host:port`, in the order in which they are asked.
    endpoints: Vec<String>,
    login: Option<Login>,
    roots: Option<Vec<u8>>,
    /// The certificate that it presents if the members ask for one.
    certificate: Option<ClientCert>,
    timeout: Duration,
    agent: Option<Agent>,
}

struct HttpResponse {
    status: StatusCode,
    text: String,
    date: Option<String>,
}

struct Login {
    name: String,
    password: Zeroizing<String>,
    token: Option<String>,
}

impl EtcdClient {
    /// Takes `etcd://host:port` or, for TLS with a checked certificate, `etcds://host:port`;
    /// several members are separated by commas, and `user:password@` may come first.
    /// `?sslrootcert=` is the path of the certificates to trust, `sslcert=` and `sslkey=` are the
    /// paths of a client certificate and its key, all as PEM. Does not connect yet.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: not such a URL, or a file is missing. The message does not repeat the
    /// URL.
    pub fn new(url: &str) -> Result<Self> {
        Self::at(&address_of(Engine::Etcd, url)?)
    }

    pub(crate) fn at(address: &Address) -> Result<Self> {
        let scheme = if address.tls { "https" } else { "http" };
        let endpoint =
            |(host, port): &(String, u16)| format!("{scheme}://{}", authority(host, *port));
        let login = address.user.clone().zip(address.password.clone());
        let login = login.map(|(name, password)| Login { name, password, token: None });
        let endpoints = address.hosts.iter().map(endpoint).collect();
        let roots = address.file("sslrootcert")?;
        let certificate = address.file("sslcert")?.zip(address.file("sslkey")?);
        let certificate = certificate.map(|(chain, key)| client_certificate(&chain, &key));
        let certificate = certificate.transpose()?;
        Ok(Self { endpoints, login, roots, certificate, timeout: TIMEOUT, agent: None })
    }

    /// Trusts these certificates, as PEM, instead of the machine's.
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
        self
    }

    /// Sets how long to wait for the answer of a member; 3 seconds by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn agent(&mut self) -> Agent {
        let (timeout, roots) = (self.timeout, self.roots.as_deref());
        let certificate = &self.certificate;
        let agent = self.agent.get_or_insert_with(|| {
            let roots = certificates(roots);
            let roots: Vec<_> =
                roots.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
            let tls = TlsConfig::builder()
                .root_certs(RootCerts::new_with_certs(&roots))
                .client_cert(certificate.clone());
            Agent::config_builder()
                .tls_config(tls.build())
                .timeout_global(Some(timeout))
                .http_status_as_error(false)
                .max_redirects(0)
                .proxy(None)
                .build()
                .new_agent()
        });
        agent.clone()
    }

    /// Posts to the first member that answers. Others may have done the operation as well: it may
    /// be repeated.
    fn post(&mut self, path: &str, body: &str) -> Result<HttpResponse> {
        let agent = self.agent();
        let token = self.login.as_ref().and_then(|login| login.token.clone());
        let mut last = String::new();
        for turn in 0..self.endpoints.len() {
            let mut request = agent.post(format!("{}{path}", self.endpoints[turn]));
            if let Some(token) = &token {
                request = request.header("Authorization", token);
            }
            let answer = request.header("Content-Type", "application/json").send(body);
            let read = answer.and_then(|mut answer| {
                let text = answer.body_mut().with_config().limit(LONGEST).read_to_string()?;
                let date = answer.headers().get("Date").and_then(|date| date.to_str().ok());
                Ok(HttpResponse {
                    date: date.map(ToOwned::to_owned),
                    status: answer.status(),
                    text,
                })
            });
            match read {
                Ok(answer) => {
                    self.endpoints.rotate_left(turn);
                    return Ok(answer);
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(unavailable(SERVER, last))
    }

    /// Gets a token for the user and the password.
    fn log_in(&mut self) -> Result<()> {
        let Some(login) = &mut self.login else { return Ok(()) };
        login.token = None;
        let body = json!({"name": login.name, "password": *login.password}).to_string();
        let answer = self.post("/v3/auth/authenticate", &body)?;
        let answer: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        let token = answer["token"].as_str().map(ToOwned::to_owned);
        let refused = "it does not accept the user and the password";
        let token = token.ok_or_else(|| unavailable(SERVER, refused))?;
        if let Some(login) = &mut self.login {
            login.token = Some(token);
        }
        Ok(())
    }
}

/// Parses a chain of certificates and the key of the first.
fn client_certificate(chain: &[u8], key: &[u8]) -> Result<ClientCert> {
    let chain = certificates(Some(chain));
    let chain: Vec<_> = chain.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    let wrong = |what| Error::invalid_argument(format!("{what}, in PEM format"));
    if chain.is_empty() {
        return Err(wrong("sslcert is not the path of certificates"));
    }
    let key = PrivateKey::from_pem(key);
    let key =
        key.map_err(|_| wrong("sslkey is not the path of a private key without a password"))?;
    Ok(ClientCert::new_with_certs(&chain, key))
}

impl Client for EtcdClient {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        let body = statement.parameters.first().map_or("", String::as_str);
        if self.login.as_ref().is_some_and(|login| login.token.is_none()) {
            self.log_in()?;
        }
        let mut answer = self.post(statement.text, body)?;
        // A token expires after a while.
        if self.login.is_some() && answer.status == StatusCode::UNAUTHORIZED {
            self.log_in()?;
            answer = self.post(statement.text, body)?;
        }
        Ok(Response::Rows(vec![vec![Some(answer.text), answer.date]]))
    }

    fn discard(&mut self) {
        self.agent = None;
    }

    fn rest(&mut self) {
        self.agent = None;
    }
}

/// Shows no part of the URL, which may hold a password.
impl fmt::Debug for EtcdClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdClient").field("members", &self.endpoints.len()).finish_non_exhaustive()
    }
}
