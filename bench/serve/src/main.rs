//! How fast `randflake serve` answers, beside a handler of axum that answers a constant. Both run on
//! all processors, with what asks them beside them, over connections that are kept.
//!
//! `make bench-serve` runs it.
#![allow(clippy::disallowed_methods, reason = "the clock of the library is not the stopwatch")]

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use axum::{Router, http::header::CONTENT_TYPE, routing::post};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    runtime,
};

/// As long as an answer with one id.
const CONSTANT: &str = "{\"ids\":[\"3vgoe12ccb8gh\"]}\n";

/// Enough node ids for the most ids a second that are asked for.
const NODE_COUNT: &str = "256";

/// Whose ids are sortable: `twitter` with an epoch of its own, whose 1024 node ids suffice.
const LAYOUT: &str = "twitter,epoch_ms=1577836800000";

const CONNECTIONS: usize = 32;
const RUN: Duration = Duration::from_secs(4);
const ROUNDS: usize = 3;

struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().expect("the server starts");
        let mut errors = BufReader::new(process.stderr.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("listening on http://") {
            line.clear();
            assert_ne!(errors.read_line(&mut line).expect("text"), 0, "it does not listen");
        }
        let address = line.rsplit_once("http://").expect("an address").1.trim();
        let address = address.parse().expect("an address");
        std::thread::spawn(move || errors.lines().for_each(drop));
        Self { process, address }
    }

    /// The most memory it has had, in MiB.
    fn memory(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib.unwrap_or(f64::NAN) / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Latencies of one run, sorted, and how long it took.
struct Measured {
    latencies: Vec<Duration>,
    took: Duration,
}

impl Measured {
    fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.took.as_secs_f64()
    }

    fn quantile(&self, of: f64) -> f64 {
        let index = (self.latencies.len() as f64 * of) as usize;
        let latency = self.latencies[index.min(self.latencies.len() - 1)];
        latency.as_secs_f64() * 1e3
    }
}

fn main() {
    let mut arguments = env::args().skip(1);
    match arguments.next().as_deref() {
        Some("peer") => peer(),
        Some(command) => measure(command),
        None => eprintln!("bench-serve COMMAND: the path of randflake, built with --release"),
    }
}

/// Answers a constant, until it is killed.
fn peer() {
    let runtime = runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(async {
        let answer = async || ([(CONTENT_TYPE, "application/json")], CONSTANT);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        eprintln!("listening on http://{}", listener.local_addr().expect("an address"));
        let app = Router::new().route("/v1/ids", post(answer));
        axum::serve(listener, app).await.expect("it serves");
    });
}

/// What is asked for, of which server, and how many ids are in an answer.
struct Case<'a> {
    name: &'static str,
    server: &'a Server,
    path: &'static str,
    count: usize,
}

fn measure(command: &str) {
    let folder = env::temp_dir().join(format!("bench-serve-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let randflake = |store: &str, arguments: &[&str]| {
        let mut randflake = Command::new(command);
        randflake.args(arguments).arg("--store").arg(folder.join(store));
        randflake.env("RANDFLAKE_SECRET", "dffd6021bb2bd5b0af676290809ec3a5");
        randflake
    };
    let init = randflake("ids.db", &["tickets", "init", "--new"]).output().expect("it runs");
    assert!(init.status.success(), "{init:?}");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--node-count", NODE_COUNT];
    let ours = Server::start(&mut randflake("ids.db", &serve));
    let layout = [&serve[..], &["--layout", LAYOUT]].concat();
    let sortable = Server::start(&mut randflake("sortable.db", &layout));
    let peer = Server::start(Command::new(env::current_exe().expect("this program")).arg("peer"));
    let case = |name, server, path, count| Case { name, server, path, count };
    let cases = [
        case("a constant (axum)", &peer, "/v1/ids", 1),
        case("one id", &ours, "/v1/ids", 1),
        case("1000 ids", &ours, "/v1/ids?count=1000", 1000),
        case("one sortable id", &sortable, "/v1/ids", 1),
        case("1000 sortable ids", &sortable, "/v1/ids?count=1000", 1000),
        case("one sequential number", &ours, "/v1/tickets/orders", 1),
        case("an id that is read", &ours, "/v1/inspect/3vgoe12ccb8gh", 1),
    ];
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a thread");
    for case in &cases {
        runtime.block_on(run(case, Duration::from_millis(500))); // warms up
    }
    println!("| round | answer | requests/s | ids/s | p50 ms | p99 ms | longest ms | MiB | load |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for round in 1..=ROUNDS {
        for case in &cases {
            let measured = runtime.block_on(run(case, RUN));
            let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
            println!(
                "| {round} | {} | {:.0} | {:.0} | {:.2} | {:.2} | {:.1} | {:.1} | {} |",
                case.name,
                measured.rate(),
                measured.rate() * case.count as f64,
                measured.quantile(0.5),
                measured.quantile(0.99),
                measured.quantile(1.0),
                case.server.memory(),
                load.split(' ').next().unwrap_or("?"),
            );
            let _ = std::io::stdout().flush();
        }
    }
    let _ = fs::remove_dir_all(&folder);
}

/// Has all connections ask, each as soon as it has its answer.
async fn run(case: &Case<'_>, time: Duration) -> Measured {
    let address = case.server.address;
    let (begin, request) = (Instant::now(), request(address, case.path));
    let asking: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let request = request.clone();
            tokio::spawn(async move { ask(address, &request, begin + time).await })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in asking {
        latencies.extend(task.await.expect("it asks"));
    }
    let took = begin.elapsed();
    latencies.sort_unstable();
    Measured { latencies, took }
}

fn request(address: SocketAddr, path: &str) -> String {
    let method = if path.starts_with("/v1/inspect/") { "GET" } else { "POST" };
    format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n")
}

async fn ask(address: SocketAddr, request: &str, end: Instant) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.set_nodelay(true).expect("an option");
    let (mut latencies, mut buffer) = (Vec::with_capacity(1 << 17), vec![0; 1 << 15]);
    let mut asked = Instant::now();
    while asked < end {
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let (mut filled, mut needed) = (0, usize::MAX);
        while filled < needed {
            let read = stream.read(&mut buffer[filled..]).await.expect("it answers");
            assert_ne!(read, 0, "it has closed the connection");
            filled += read;
            if needed == usize::MAX
                && let Some(head) = find(&buffer[..filled], b"\r\n\r\n")
            {
                assert!(buffer.starts_with(b"HTTP/1.1 200"), "{}", text(&buffer[..filled]));
                needed = head + 4 + length(&buffer[..head]);
            }
        }
        let answered = Instant::now();
        latencies.push(answered - asked);
        asked = answered;
    }
    latencies
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Returns how long the body is.
fn length(head: &[u8]) -> usize {
    let name = b"content-length: ";
    let begin = find(head, name).expect("a length") + name.len();
    let digits = head[begin..].iter().take_while(|digit| digit.is_ascii_digit());
    digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
