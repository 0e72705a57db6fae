//! Servers for tests: on free ports of the loopback interface, in a directory that is removed
//! afterwards, and ended with the test, even if it panics. `tests/servers/starter.py` starts them.
#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

pub(crate) mod proxy;

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// The password of every server that has one.
pub(crate) const PASSWORD: &str = "open-sesame-4711";

/// A server that runs, or is stopped and can run again.
pub(crate) struct Server {
    kind: &'static str,
    starter: Mutex<Starter>,
    directory: PathBuf,
    pub(crate) port: u16,
    /// etcd's port for other members.
    peer_port: u16,
    url: String,
}

/// The program that starts a server, and ends it when the program's input ends.
struct Starter {
    child: Child,
    answers: BufReader<ChildStdout>,
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().expect("it can be started");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Names the version of `postgres` that is started here.
pub(crate) fn version_of_postgres() -> String {
    Starter::new()
        .program("postgres", "postgresql")
        .map_or_else(String::new, |it| run(Command::new(it).arg("--version")).trim().to_owned())
}

impl Server {
    pub(crate) fn postgres(arguments: &[&str]) -> Option<Self> {
        Self::start_new("postgres", json!({ "arguments": arguments }))
    }

    pub(crate) fn mariadb(arguments: &[&str]) -> Option<Self> {
        Self::start_new("mariadb", json!({ "arguments": arguments }))
    }

    pub(crate) fn mysql(arguments: &[&str]) -> Option<Self> {
        Self::start_new("mysql", json!({ "arguments": arguments }))
    }

    /// Returns a server of each kind that accepts only TLS, with a self-signed certificate.
    pub(crate) fn all_with_tls() -> Vec<Self> {
        [
            ("postgres", json!({ "tls": true })),
            ("mariadb", json!({ "tls": true })),
            ("mysql", json!({ "tls": true })),
            ("redis", json!({ "tls": true, "arguments": ["--appendonly", "yes"] })),
            ("etcd", json!({ "tls": true })),
        ]
        .into_iter()
        .filter_map(|(kind, options)| Self::start_new(kind, options))
        .collect()
    }

    /// Returns the certificate to trust.
    pub(crate) fn certificate(&self) -> Vec<u8> {
        fs::read(self.path("ca.pem")).expect("made")
    }

    pub(crate) fn redis(arguments: &[&str]) -> Option<Self> {
        Self::start_new("redis", json!({ "arguments": arguments }))
    }

    pub(crate) fn valkey(arguments: &[&str]) -> Option<Self> {
        Self::start_new("valkey", json!({ "arguments": arguments }))
    }

    /// Returns a Redis that waits for its replicas, with the settings that the README requires.
    pub(crate) fn redis_with_replicas() -> Option<Self> {
        let careful = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "10"];
        Self::redis(&[&["--appendonly", "yes", "--save", ""], &careful[..]].concat())
    }

    /// Returns a replica that reaches this Redis through another port, once this Redis knows it.
    pub(crate) fn replica(&self, port: u16) -> Self {
        let count = |what: &str| {
            let said = self.redis_cli(&["info", "replication"]);
            let line = said.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
            line.and_then(|count| count.trim().parse::<u32>().ok()).unwrap_or(0)
        };
        let before = count("min_slaves_good_slaves");
        let of = ["--replicaof", "127.0.0.1", &port.to_string()];
        let durable = ["--appendonly", "yes", "--save", ""];
        let replica = Self::redis(&[&durable[..], &of].concat()).expect("as the master");
        for _ in 0..3000 {
            if count("min_slaves_good_slaves") > before {
                return replica;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("the master does not see its replica: {}", self.log());
    }

    pub(crate) fn etcd() -> Option<Self> {
        Self::etcd_with(&[])
    }

    pub(crate) fn etcd_with(arguments: &[&str]) -> Option<Self> {
        Self::start_new("etcd", json!({ "arguments": arguments }))
    }

    /// Returns the port of a pooler in front of this server, with these settings, and the handle
    /// that ends it.
    pub(crate) fn pgbouncer(&self, settings: &[&str]) -> Option<(u16, Self)> {
        let options = json!({ "arguments": settings, "target": self.port });
        Self::start_new("pgbouncer", options).map(|pooler| (pooler.port, pooler))
    }

    /// Returns the members of one etcd.
    pub(crate) fn etcd_of_three() -> Option<Vec<Self>> {
        let members = (0..3).map(|_| Self::new("prepare", "etcd", json!({})));
        let mut members: Vec<Self> = members.collect::<Option<_>>()?;
        let peer = |(number, member): (usize, &Self)| {
            format!("member{number}=http://127.0.0.1:{}", member.peer_port)
        };
        let peers: Vec<String> = members.iter().enumerate().map(peer).collect();
        let peers = &peers.join(",");
        // None of them answers until the others run.
        thread::scope(|scope| {
            for (number, member) in members.iter_mut().enumerate() {
                let name = format!("member{number}");
                scope.spawn(move || member.start_with(&["--name", &name, CLUSTER, peers]));
            }
        });
        Some(members)
    }

    /// Returns whether this member of an etcd leads the others.
    pub(crate) fn leads(&self) -> Option<bool> {
        let status = self.etcdctl(&["endpoint", "status", "--write-out=fields"])?;
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(&format!("\"{name}\" :")));
            line.and_then(|line| line.split(" : ").nth(1)).expect("etcdctl says so").to_owned()
        };
        Some(field("MemberID") == field("Leader"))
    }

    fn start_new(kind: &'static str, options: Value) -> Option<Self> {
        Self::new("start", kind, options)
    }

    /// Starts a server, or only prepares it; if it is not installed, loudly says so.
    fn new(what: &str, kind: &'static str, mut options: Value) -> Option<Self> {
        options[what] = kind.into();
        let mut starter = Starter::new();
        let state = starter.ask(&options)?;
        let text = |name: &str| state[name].as_str().expect("it has one").to_owned();
        Some(Self {
            kind,
            starter: Mutex::new(starter),
            directory: text("folder").into(),
            port: port_in(&state["port"]),
            peer_port: port_in(&state["peer_port"]),
            url: text("url"),
        })
    }

    fn starter(&self) -> MutexGuard<'_, Starter> {
        self.starter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, request: &Value) {
        self.starter().ask(request).expect("it is installed");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Starts it again with what is in its directory, and waits until it answers.
    pub(crate) fn start(&mut self) {
        self.start_with(&[]);
    }

    /// Starts it, with more arguments from now on.
    fn start_with(&mut self, arguments: &[&str]) {
        self.ask(&json!({ "run": arguments }));
    }

    pub(crate) fn log(&self) -> String {
        let log = fs::read(self.path("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Sends a signal to the process that was started here.
    pub(crate) fn signal(&self, signal: &str) {
        self.ask(&json!({ "signal": signal }));
    }

    /// Stops it in an orderly way.
    pub(crate) fn stop(&mut self) {
        self.ask(&json!({ "end": if self.kind == "postgres" { "INT" } else { "TERM" } }));
    }

    /// Kills it, as when the machine loses power.
    pub(crate) fn kill(&mut self) {
        self.ask(&json!({ "end": "KILL" }));
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// Returns the URL with this port and this password.
    pub(crate) fn url_of(&self, port: u16, password: &str) -> String {
        let (own, other) = (format!("127.0.0.1:{}", self.port), format!("127.0.0.1:{port}"));
        self.url.replace(&own, &other).replace(PASSWORD, password)
    }

    /// Runs SQL.
    pub(crate) fn psql(&self, sql: &str) -> String {
        let mut psql = Command::new(self.program("psql", "postgresql").expect("comes with it"));
        run(psql.args(["--no-psqlrc", "-tAq", "-v", "ON_ERROR_STOP=1", "-c", sql]).arg(self.url()))
    }

    /// Runs SQL on a `MariaDB`.
    pub(crate) fn mysql_cli(&self, sql: &str) -> String {
        let program = self.program("mariadb", "mariadb-client").expect("comes with it");
        let mut client = Command::new(program);
        client.args(["--no-defaults", "-h", "127.0.0.1", "-P", &self.port.to_string()]);
        client.args(["-u", "randflake", "-N", "-B", "-e", sql, "ids"]).env("MYSQL_PWD", PASSWORD);
        run(&mut client).trim().to_owned()
    }

    /// Runs a command of Redis.
    pub(crate) fn redis_cli(&self, arguments: &[&str]) -> String {
        let program = self.program("redis-cli", "redis-tools").expect("comes with it");
        let mut cli = Command::new(program);
        cli.args(["-p", &self.port.to_string()]).env("REDISCLI_AUTH", PASSWORD);
        run(cli.args(arguments)).trim().to_owned()
    }

    /// Returns a standby that follows this one.
    pub(crate) fn standby(&self) -> Self {
        // How long it sleeps once its primary is gone, even if it is about to be promoted.
        let wakeful = ["-c", "wal_retrieve_retry_interval=100ms"];
        let options = json!({ "arguments": wakeful, "copy_of": self.url() });
        Self::start_new("postgres", options).expect("as this one")
    }

    /// Kills an etcd, and returns another one in its place that starts from a snapshot. If its peer
    /// address is the same, it considers itself the same cluster.
    pub(crate) fn restored(&mut self, snapshot: &Path, same_cluster: bool) -> Option<Self> {
        self.kill();
        let mut options = json!({ "snapshot": snapshot, "port": self.port });
        if same_cluster {
            options["peer_port"] = self.peer_port.into();
        }
        Self::start_new("etcd", options)
    }

    /// Runs a command of etcd.
    pub(crate) fn etcdctl(&self, arguments: &[&str]) -> Option<String> {
        let mut etcdctl = Command::new(self.program("etcdctl", "etcd-client")?);
        etcdctl.env("ETCDCTL_API", "3");
        etcdctl.args(["--endpoints", &format!("http://127.0.0.1:{}", self.port)]);
        Some(run(etcdctl.args(arguments)))
    }

    /// Saves everything that an etcd has.
    pub(crate) fn snapshot(&self) -> Option<PathBuf> {
        let path = self.path("snapshot");
        self.etcdctl(&["snapshot", "save", path.to_str().expect("text")])?;
        Some(path)
    }

    fn program(&self, name: &str, package: &str) -> Option<PathBuf> {
        self.starter().program(name, package)
    }
}

/// The option that names the members of an etcd.
const CLUSTER: &str = "--initial-cluster";

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{} said: {}", self.kind, self.log());
        }
    }
}

impl Starter {
    fn new() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut programs = here.ancestors().map(|it| it.join("tests/servers/starter.py"));
        let program = programs.find(|it| it.is_file()).expect("it is in the repository");
        let mut child = Command::new(env::var_os("PYTHON").unwrap_or_else(|| "python3".into()))
            .arg(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python 3.11 or newer is installed");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, answers }
    }

    /// Sends it a request, and returns its answer. If something is not installed, loudly says why a
    /// test is skipped, which is a failure in CI.
    fn ask(&mut self, request: &Value) -> Option<Value> {
        let input = self.child.stdin.as_mut().expect("a pipe");
        writeln!(input, "{request}").expect("it listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        let answer: Value = serde_json::from_str(&line).expect("it answers in JSON");
        if let Some(why) = answer["failed"].as_str() {
            panic!("{why}");
        }
        let missing = answer["missing"].as_str();
        if let Some(missing) = missing {
            assert_ne!(env::var("CI").as_deref(), Ok("true"), "{missing}");
        }
        if let Some(why) = missing.or(answer["unavailable"].as_str()) {
            eprintln!("\n*** SKIPPED: {why} ***\n");
            return None;
        }
        Some(answer)
    }

    /// Finds a program.
    fn program(&mut self, name: &str, package: &str) -> Option<PathBuf> {
        let answer = self.ask(&json!({ "program": name, "package": package }))?;
        Some(answer["path"].as_str().expect("it has one").into())
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ended = self.child.wait();
    }
}

fn port_in(answer: &Value) -> u16 {
    answer.as_u64().and_then(|port| port.try_into().ok()).expect("it has one")
}
