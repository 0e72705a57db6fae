//! What the URL of a store says. It is parsed only here, for every client in every language: five
//! drivers would read five different places from one URL.

use std::{fmt, fs, net::Ipv6Addr};

use randflake::{Error, Result};
use zeroize::Zeroizing;

use super::engine::Engine;

/// How a server is reached, in parts for a client. No part comes from the environment.
#[doc(hidden)]
#[derive(Clone)]
pub struct Address {
    pub engine: Engine,
    /// One host, or the members of an etcd. PostgreSQL's may be the folder of a socket, MySQL's the
    /// path of a socket.
    pub hosts: Vec<(String, u16)>,
    pub user: Option<String>,
    pub password: Option<Zeroizing<String>>,
    /// The name of PostgreSQL's or MySQL's database, or the number of Redis's.
    pub database: String,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// The rest of what the URL says, by name.
    pub options: Vec<(&'static str, String)>,
}

/// What a URL may say after `?`. Anything else could mean another store to one client and not to
/// another.
const OPTIONS: [(&str, &[&str]); 8] = [
    ("ssl-mode", &["DISABLED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"]),
    // Everything that is sent is ASCII.
    ("charset", &[]),
    // The client decides whether the certificate is checked.
    ("sslmode", &["disable", "require", "verify-ca", "verify-full"]),
    ("application_name", &[]),
    ("channel_binding", &["disable", "prefer", "require"]),
    (FILES[0], &[]),
    (FILES[1], &[]),
    (FILES[2], &[]),
];

/// The options that are paths of files.
const FILES: [&str; 3] = ["sslrootcert", "sslcert", "sslkey"];

/// What is wrong. Never quotes a part of the URL, which may be part of a password.
pub(crate) type Wrong = &'static str;

impl Address {
    /// Parses the URL of a store; `None` if it is not one.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: it is the URL of a store, but invalid. The message does not repeat it.
    #[must_use]
    pub fn read(store: &str) -> Option<Result<Self>> {
        let (scheme, rest) = store.split_once("://")?;
        // SQLAlchemy names a driver after the database: here the choice is ours.
        let (engine, is_secure) = match scheme.split_once('+').map_or(scheme, |(name, _)| name) {
            "postgresql" | "postgres" => (Engine::Postgres, false),
            "mysql" | "mariadb" => (Engine::Mysql, false),
            "redis" if scheme == "redis" => (Engine::Redis, false),
            "rediss" if scheme == "rediss" => (Engine::Redis, true),
            "etcd" if scheme == "etcd" => (Engine::Etcd, false),
            "etcds" if scheme == "etcds" => (Engine::Etcd, true),
            _ => return None,
        };
        let wrong = |wrong| {
            let (name, example) = match engine {
                Engine::Postgres => ("PostgreSQL", "postgresql://user:password@host:5432/database"),
                Engine::Mysql => ("MySQL", "mysql://user:password@host:3306/database"),
                Engine::Redis => {
                    ("Redis", "redis://user:password@host:6379/0, or rediss:// for TLS")
                }
                Engine::Etcd => {
                    ("etcd", "etcd://user:password@host:2379,host:2379, or etcds:// for TLS")
                }
            };
            Error::invalid_argument(format!(
                "clients would read this URL of {name} differently: {wrong}; a valid one looks \
                 like {example}"
            ))
        };
        Some(Self::of_parts(engine, is_secure, rest).map_err(wrong))
    }

    fn of_parts(engine: Engine, tls: bool, rest: &str) -> Result<Self, Wrong> {
        if rest.chars().any(|each| each.is_control() || each.is_whitespace()) {
            return Err("white space must be percent-encoded");
        }
        if rest.contains(['#', '\\']) {
            return Err("# and \\ must be percent-encoded, as %23 and %5C");
        }
        let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = before.split_once('/').unwrap_or((before, ""));
        if path.contains('@') || query.contains('@') {
            return Err("/, ? and @ in a user or password must be written %2F, %3F and %40");
        }
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, _)) if login.contains('@') => {
                return Err("@ in a user or password must be written %40");
            }
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, "")))
        {
            Some((user, password)) => (Some(decoded(user)?), Some(decoded(password)?)),
            None => (None, None),
        };
        let [user, password] = [user, password].map(|it| it.filter(|text| !text.is_empty()));
        let mut address = Self {
            engine,
            hosts: vec![],
            user,
            password: password.map(Zeroizing::new),
            database: decoded(path)?,
            tls,
            options: vec![],
        };
        let socket = address.take_options(query)?;
        address.take_hosts(hosts, socket)?;
        address.check()?;
        Ok(address)
    }

    /// Takes what follows `?`, and returns the folder of a socket, if there is one.
    fn take_options(&mut self, query: &str) -> Result<Option<String>, Wrong> {
        let mut socket = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value)?;
            if name == "host" && self.engine == Engine::Postgres && socket.is_none() {
                socket = Some(value);
                continue;
            }
            let allowed = match self.engine {
                Engine::Postgres => &OPTIONS[2..6],
                Engine::Mysql => &[OPTIONS[0], OPTIONS[1], OPTIONS[5]],
                Engine::Redis => &OPTIONS[5..6],
                Engine::Etcd => &OPTIONS[5..],
            };
            let Some(&(name, values)) = allowed.iter().find(|(known, _)| *known == name) else {
                return Err(match (self.engine, name) {
                    (Engine::Postgres, "options" | "search_path" | "schema" | "currentSchema") => {
                        "the table is in the schema randflake_leases, whatever the search_path is"
                    }
                    (Engine::Postgres, "dbname" | "user" | "password" | "port" | "hostaddr")
                    | (Engine::Mysql, "database" | "db" | "user" | "password" | "host" | "port") => {
                        "user, password, host, port and database must come before the ?"
                    }
                    (Engine::Postgres, _) => {
                        "only sslmode, sslrootcert, application_name, channel_binding and host \
                         (for the folder of a socket) are allowed after ?"
                    }
                    (Engine::Mysql, "unix_socket" | "socket" | "socketPath") => {
                        "put the socket's path in place of the host, percent-encoded"
                    }
                    (Engine::Mysql, _) => {
                        "only ssl-mode, sslrootcert and charset are allowed after ?"
                    }
                    (Engine::Redis, "db") => "the database number comes after the host: /0",
                    (Engine::Redis, _) => "only sslrootcert is allowed after ?",
                    (Engine::Etcd, _) => "only sslrootcert, sslcert and sslkey are allowed after ?",
                });
            };
            if self.options.iter().any(|&(seen, _)| seen == name) {
                return Err("an option is given twice");
            }
            if name.starts_with("ssl") && ["allow", "prefer", "PREFERRED"].contains(&&*value) {
                return Err("it lets the server decide about TLS: require or disable it");
            }
            if value.is_empty() || !values.is_empty() && !values.contains(&value.as_str()) {
                return Err("an option has an invalid value");
            }
            self.options.push((name, value));
        }
        Ok(socket)
    }

    fn take_hosts(&mut self, hosts: &str, socket: Option<String>) -> Result<(), Wrong> {
        let default = match self.engine {
            Engine::Postgres => Some(5432),
            Engine::Mysql => Some(3306),
            Engine::Redis => Some(6379),
            Engine::Etcd => None,
        };
        if self.engine != Engine::Etcd && hosts.contains(',') {
            return Err("it has several hosts: give one name that leads to the primary");
        }
        if let Some(socket) = socket {
            if !hosts.is_empty() || !socket.starts_with('/') {
                return Err(
                    "host= must be the absolute folder of a socket, with no host before it",
                );
            }
            self.hosts.push((socket, 5432));
            return Ok(());
        }
        for host in hosts.split(',') {
            let (name, port) = match host.strip_prefix('[') {
                Some(rest) => rest.split_once(']').ok_or("a [ has no ]")?,
                None => host.split_at(host.find(':').unwrap_or(host.len())),
            };
            let name = if host.starts_with('[') {
                name.parse::<Ipv6Addr>()
                    .map_err(|_| "[] does not contain a valid IPv6 address")?
                    .to_string()
            } else {
                self.host(name)?
            };
            let port = match port.strip_prefix(':') {
                Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits
                    .parse()
                    .ok()
                    .filter(|&port| port != 0)
                    .ok_or("a port must be from 1 to 65535")?,
                None if port.is_empty() => default.ok_or("each host of etcd must have its port")?,
                _ => return Err("a port must be from 1 to 65535"),
            };
            self.hosts.push((name, port));
        }
        Ok(())
    }

    fn host(&self, written: &str) -> Result<String, Wrong> {
        let host = decoded(written)?;
        if matches!(self.engine, Engine::Postgres | Engine::Mysql) && host.starts_with('/') {
            return Ok(host);
        }
        let fits = |each: u8| each.is_ascii_alphanumeric() || b"-._".contains(&each);
        if host.is_empty() || !host.bytes().all(fits) {
            return Err("a host must be a name of letters, digits, - and ., or an address");
        }
        // As 127.1 or 0x7f000001, which some resolve.
        let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
        let is_number = last.starts_with("0x") || last.bytes().all(|each| each.is_ascii_digit());
        if is_number && host.parse::<std::net::Ipv4Addr>().is_err() {
            return Err("an IPv4 address must have four decimal numbers");
        }
        Ok(host.to_ascii_lowercase())
    }

    fn check(&mut self) -> Result<(), Wrong> {
        match self.engine {
            Engine::Postgres => {
                if self.user.is_none() {
                    return Err("it names no user, and clients would choose different ones");
                }
                if self.database.is_empty() {
                    return Err("it names no database, and clients would choose different ones");
                }
                if self.database.contains('/') {
                    return Err("a database name cannot contain / here");
                }
                let mode = self.option("sslmode").unwrap_or_default();
                self.tls = matches!(mode, "require" | "verify-ca" | "verify-full");
            }
            Engine::Mysql => {
                if self.user.is_none() {
                    return Err("it names no user, and clients would choose different ones");
                }
                if self.database.is_empty() {
                    return Err("it names no database");
                }
                if self.database.contains('/') {
                    return Err("a database name cannot contain / here");
                }
                let mode = self.option("ssl-mode").unwrap_or_default();
                self.tls = matches!(mode, "REQUIRED" | "VERIFY_CA" | "VERIFY_IDENTITY");
            }
            Engine::Redis => {
                if self.user.is_some() && self.password.is_none() {
                    return Err("it has a user but no password");
                }
                let number = if self.database.is_empty() { "0" } else { &self.database };
                let is_number = number.bytes().all(|digit| digit.is_ascii_digit());
                let parsed = number.parse::<u16>().ok().filter(|_| is_number);
                self.database =
                    parsed.ok_or("only a database number may follow the host")?.to_string();
            }
            Engine::Etcd => {
                if !self.database.is_empty() {
                    return Err("nothing may follow the hosts");
                }
                if self.user.is_some() != self.password.is_some() {
                    return Err("it has only one of user and password");
                }
                if self.option("sslcert").is_some() != self.option("sslkey").is_some() {
                    return Err("it has only one of sslcert and sslkey");
                }
                if !self.tls && !self.options.is_empty() {
                    return Err("certificates are for etcds://");
                }
            }
        }
        Ok(())
    }

    /// Returns the value of an option, if it is there.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Checks that the files that the URL names are readable and valid: a client would report a
    /// wrong one in its own words, as if the server were unreachable.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`.
    pub fn check_files(&self) -> Result<()> {
        FILES.iter().try_for_each(|option| self.file(option).map(drop))
    }

    /// Reads the file that an option names.
    pub(crate) fn file(&self, option: &str) -> Result<Option<Vec<u8>>> {
        let read = |path: &str| {
            // A pipe might never end.
            let is_file = fs::metadata(path).map(|found| found.is_file());
            let wrong = |why: &dyn fmt::Display| {
                Error::invalid_argument(format!("cannot read the {option} {path}: {why}"))
            };
            if is_file.is_ok_and(|is_file| !is_file) {
                return Err(wrong(&"it is not a file"));
            }
            let content = fs::read(path).map_err(|error| wrong(&error))?;
            let wanted = if option == "sslkey" { "PRIVATE KEY-----" } else { "CERTIFICATE-----" };
            let has_it = content.windows(wanted.len()).any(|part| part == wanted.as_bytes());
            if has_it {
                Ok(content)
            } else {
                Err(wrong(&format_args!("it contains no {wanted} in PEM format")))
            }
        };
        self.option(option).map(read).transpose()
    }

    /// Returns the URL for a Redis client that does not take the parts.
    #[cfg(feature = "redis")]
    pub(crate) fn to_client(&self) -> Zeroizing<String> {
        let url = self.to_string();
        let Some(password) = &self.password else { return Zeroizing::new(url) };
        let login = Zeroizing::new(format!(":{}@", Encoded(password)));
        let (scheme, place) = url.split_once("://").expect("as it was written");
        let (user, hosts) = place.split_once('@').unwrap_or(("", place));
        Zeroizing::new(format!("{scheme}://{user}{}{hosts}", *login))
    }

    /// Returns a key that two URLs share if one client can serve both. It contains the password.
    #[must_use]
    pub fn key(&self) -> Zeroizing<String> {
        let password = self.password.as_ref().map_or("", |password| password.as_str());
        Zeroizing::new(format!("{self}\n{:?}\n{password}", self.options))
    }
}

/// The place: a URL with everything that identifies the store, and no password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_scheme = matches!(self.engine, Engine::Redis | Engine::Etcd);
        let secure = if self.tls && has_scheme { "s" } else { "" };
        write!(f, "{}{secure}://", self.engine.scheme())?;
        if let Some(user) = &self.user {
            write!(f, "{}@", Encoded(user))?;
        }
        for (index, (host, port)) in self.hosts.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}", authority(host, *port))?;
        }
        if self.engine == Engine::Etcd { Ok(()) } else { write!(f, "/{}", Encoded(&self.database)) }
    }
}

/// Shows no password.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// Writes a host and a port, as they are in URLs.
pub(crate) fn authority(host: &str, port: u16) -> String {
    let is_address = host.parse::<Ipv6Addr>().is_ok();
    if is_address { format!("[{host}]:{port}") } else { format!("{}:{port}", Encoded(host)) }
}

/// Reads percent-encoding.
pub(crate) fn decoded(text: &str) -> Result<String, Wrong> {
    const WRONG: Wrong =
        "% must be followed by two hex digits, and the result must be UTF-8 without a zero byte";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
                let (high, low) = (digit().ok_or(WRONG)?, digit().ok_or(WRONG)?);
                u8::try_from(high << 4 | low).map_err(|_| WRONG)?
            }
            byte => byte,
        });
    }
    if bytes.contains(&0) {
        return Err(WRONG);
    }
    String::from_utf8(bytes).map_err(|_| WRONG)
}

/// Writes percent-encoding.
struct Encoded<'a>(&'a str);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    write!(f, "{}", char::from(byte))?;
                }
                other => write!(f, "%{other:02X}")?,
            }
        }
        Ok(())
    }
}
