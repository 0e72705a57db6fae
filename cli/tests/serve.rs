//! `randflake serve` as clients see it: a process, and connections to it.
#![cfg(unix)]

use std::{
    collections::{BTreeSet, HashSet},
    env, fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use randflake::{Cloak, Inspector, Layout, Secret};
use rusqlite::Connection;
use serde_json::{Value, json};

const SECRET: &str = "dffd6021bb2bd5b0af676290809ec3a5";
const TOKEN: &str = "0123456789-a-token";

/// Far longer than anything here takes: a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// An empty folder for one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("randflake-serve-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path); // left by a killed run
        fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_randflake"));
        command.args(arguments).current_dir(&self.0).stdin(Stdio::null());
        command.env("RANDFLAKE_SECRET", SECRET);
        for unset in ["RANDFLAKE_STORE", "RANDFLAKE_SECRET_FILE", "RANDFLAKE_NAMESPACE"] {
            command.env_remove(unset);
        }
        command
    }

    fn token_file(&self) {
        use std::os::unix::fs::PermissionsExt as _;

        fs::write(self.path("token"), format!("{TOKEN}\n")).expect("a file");
        let only_us = fs::Permissions::from_mode(0o600);
        fs::set_permissions(self.path("token"), only_us).expect("it is ours");
    }

    /// Runs another verb on the store, and returns what it prints.
    fn run(&self, arguments: &[&str]) -> String {
        let mut command = self.command(arguments);
        let done = command.args(["--store", "ids.db"]).output().expect("it runs");
        assert!(done.status.success(), "{arguments:?}: {done:?}");
        String::from_utf8(done.stdout).expect("text")
    }

    /// Starts a server on its own port, on the store `ids.db`.
    fn serve(&self, options: &[&str]) -> Server {
        let mut command = self.command(&["serve", "--store", "ids.db", "--listen", "127.0.0.1:0"]);
        if !options.contains(&"--max-wait") {
            command.args(["--max-wait", "60"]); // a disk may be slow
        }
        command.args(options);
        Server::start(command)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server that is killed unless it has ended before.
struct Server {
    process: Child,
    address: SocketAddr,
    /// Reads what it writes to standard error after its address.
    errors: Option<thread::JoinHandle<String>>,
}

impl Server {
    fn start(mut command: Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().expect("the command starts");
        let mut errors = BufReader::new(process.stderr.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("listening on http://") {
            line.clear();
            assert_ne!(errors.read_line(&mut line).expect("text"), 0, "it does not listen");
        }
        let address = line.rsplit_once("http://").expect("an address").1.trim();
        let address = address.parse().expect("an address");
        let errors = thread::spawn(move || {
            let mut said = String::new();
            errors.read_to_string(&mut said).expect("text");
            said
        });
        Self { process, address, errors: Some(errors) }
    }

    fn client(&self) -> Client {
        Client::new(self.address)
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().expect("kill");
        assert!(sent.success());
    }

    /// Ends it with a signal, and returns its exit status and what it said.
    fn end(mut self, signal: &str) -> (ExitStatus, String) {
        self.signal(signal);
        self.wait()
    }

    fn wait(&mut self) -> (ExitStatus, String) {
        let status = self.process.wait().expect("it ends");
        let errors = self.errors.take().expect("once").join().expect("it reads");
        (status, errors)
    }

    /// Waits until an id is available.
    fn wait_until_ready(&self) {
        let mut client = self.client();
        while client.get("/readyz").status != 200 {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (header, value) = line.split_once(": ")?;
            header.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// Returns the code of an error with this status.
    #[track_caller]
    fn code(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        let json = self.json();
        let fields = json.as_object().expect("an object");
        assert!(fields.keys().eq(["code", "message"]), "{json}");
        assert!(!self.body.contains(SECRET) && !self.body.contains(TOKEN), "{json}");
        json["code"].as_str().expect("a code").to_owned()
    }

    #[track_caller]
    fn done(&self) -> Value {
        assert!([200, 201].contains(&self.status), "{self:?}");
        self.json()
    }
}

/// One connection, kept.
struct Client {
    stream: BufReader<TcpStream>,
    headers: String,
}

impl Client {
    fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream.set_nodelay(true).expect("an option");
        Self { stream: BufReader::new(stream), headers: format!("Host: {address}\r\n") }
    }

    fn get(&mut self, path: &str) -> Response {
        self.ask("GET", path, "")
    }

    fn post(&mut self, path: &str, body: impl std::fmt::Display) -> Response {
        self.ask("POST", path, &body.to_string())
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Response {
        self.try_ask(method, path, body).expect("an answer")
    }

    fn try_ask(&mut self, method: &str, path: &str, body: &str) -> io::Result<Response> {
        let (headers, length) = (&self.headers, body.len());
        let request =
            format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.answer()
    }

    fn head(&mut self, path: &str) -> Response {
        let request = format!("HEAD {path} HTTP/1.1\r\n{}\r\n", self.headers);
        self.stream.get_mut().write_all(request.as_bytes()).expect("it reads");
        self.answer_head().expect("an answer")
    }

    fn answer(&mut self) -> io::Result<Response> {
        let mut response = self.answer_head()?;
        let length =
            response.header("content-length").map_or(0, |it| it.parse().expect("a number"));
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        response.body = String::from_utf8(body).expect("text");
        Ok(response)
    }

    fn answer_head(&mut self) -> io::Result<Response> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok(Response { status: status.expect("a status"), head, body: String::new() })
    }

    fn ids(&mut self, count: usize) -> Vec<String> {
        let response = self.post(&format!("/v1/ids?count={count}"), "");
        let ids = response.done();
        ids["ids"].as_array().expect("a list").iter().map(text).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// Makes the store fail for everyone, until it is dropped.
fn lock(store: &Path) -> Connection {
    let connection = Connection::open(store).expect("a store");
    connection.busy_timeout(PATIENCE).expect("a time");
    connection.execute_batch("begin exclusive").expect("nobody else has it for long");
    connection
}

#[test]
fn every_route_answers_as_it_is_described() {
    let layout = ["--layout", "twitter,epoch_ms=1577836800000"];
    for (name, options, id) in [
        ("routes", &["--max-count", "500"][..], "3vgoe12ccb8gh"),
        ("routes-layout", &layout, "1541815603606036480"),
    ] {
        let folder = Folder::new(name);
        folder.run(&["tickets", "init", "--new"]);
        let server = folder.serve(options);
        server.wait_until_ready();
        let mut client = server.client();
        let printed = folder.command(&["serve", "--openapi"]).args(options).output();
        let printed = printed.expect("it runs").stdout;
        let openapi: Value = serde_json::from_slice(&printed).expect("JSON");
        assert_eq!(client.get("/openapi.json").done(), openapi);
        assert_eq!(openapi["paths"].as_object().expect("paths").len(), 15);
        answers_as_described(&mut client, &openapi, id);
    }
    // What needs a secret is described only where there is one.
    let folder = Folder::new("routes-without");
    let mut command = folder.command(&["serve", "--openapi"]);
    let printed = command.args(layout).env_remove("RANDFLAKE_SECRET").output();
    let openapi: Value = serde_json::from_slice(&printed.expect("it runs").stdout).expect("JSON");
    assert_eq!(openapi["paths"].as_object().expect("paths").len(), 11);
}

fn answers_as_described(client: &mut Client, openapi: &Value, id: &str) {
    let resolved = |described: &Value| match described["$ref"].as_str() {
        Some(path) => openapi.pointer(path.trim_start_matches('#')).expect("a component").clone(),
        None => described.clone(),
    };
    for (path, methods) in openapi["paths"].as_object().expect("paths") {
        // One of the routes gives it back.
        let lease = text(&client.post("/v1/leases", "").done()["lease"]);
        let asked = path
            .replace("{id}", id)
            .replace("{lease}", &lease)
            .replace("{label}", "orders")
            .replace("{name}", "orders");
        for method in ["GET", "POST", "PUT", "DELETE"] {
            let operation = &methods[method.to_lowercase()];
            let body = match &operation["requestBody"]["content"]["application/json"]["example"] {
                example if path.contains("{label}") => example.to_string(),
                _ => String::new(),
            };
            let response = client.ask(method, &asked, &body);
            if operation.is_null() {
                assert_eq!(response.code(405), "INVALID_ARGUMENT", "{method} {path}");
                let allow = if methods["get"].is_null() { "POST" } else { "GET, HEAD" };
                assert_eq!(response.header("allow"), Some(allow), "{method} {path}");
                continue;
            }
            assert!(response.status < 300, "{method} {path}: {response:?}");
            let described = &operation["responses"][response.status.to_string()];
            assert!(!described.is_null(), "{method} {path}: {response:?}");
            let described = resolved(described);
            let (content_type, content) =
                described["content"].as_object().expect("a type").iter().next().expect("one");
            assert!(response.header("content-type").expect("a type").starts_with(content_type));
            if let Some(properties) = content["schema"]["properties"].as_object() {
                let (answer, properties) = (response.done(), properties.keys());
                assert!(answer.as_object().expect("an object").keys().eq(properties), "{path}");
            }
        }
    }
}

#[test]
fn a_method_or_a_path_that_there_is_not_is_refused() {
    let folder = Folder::new("paths");
    let server = folder.serve(&[]);
    server.wait_until_ready();
    let mut client = server.client();
    // Only a head, for everything that can be read, and the connection continues.
    for (path, status) in [("/healthz", 200), ("/openapi.json", 200), ("/v1/inspect/A", 404)] {
        let (head, whole) = (client.head(path), client.get(path));
        assert_eq!((head.status, whole.status), (status, status), "{path}");
        assert_eq!(head.header("content-length"), whole.header("content-length"), "{path}");
        assert!(!whole.body.is_empty(), "{path}");
    }
    assert_eq!(client.head("/v1/ids").status, 405);
    for path in ["/v1/leases?count=1", "/v1/leases/a/renew?a", "/v1/leases/a/release?now=1"] {
        assert_eq!(client.post(path, "").code(400), "INVALID_ARGUMENT", "{path}");
    }
    assert_eq!(client.get("/healthz?probe=1").status, 200, "probes may add what they like");
    for path in ["/", "/v1", "/v1/id", "/v1/ids/", "/v1/leases/a", "/v1/inspect/", "/%00"] {
        assert_eq!(client.get(path).code(404), "INVALID_ARGUMENT", "{path}");
    }
}

#[test]
fn sortable_ids_are_made_and_leased_by_their_layout() {
    let folder = Folder::new("layout");
    let layout: Layout = "twitter,epoch_ms=1577836800000".parse().expect("a layout");
    let server = folder.serve(&["--layout", &layout.to_string(), "--node-count", "2"]);
    server.wait_until_ready();
    let mut client = server.client();
    let (mut seen, mut node_ids) = (BTreeSet::new(), BTreeSet::new());
    // More than a tick has, too.
    for id in client.ids(1).iter().chain(&client.ids(10_000)) {
        let raw: u64 = id.parse().expect("a number");
        assert!(seen.insert(raw), "{id} twice");
        node_ids.insert(layout.inspect(raw).expect("an id").node_id);
    }
    let read = client.get(&format!("/v1/inspect/{}", seen.last().expect("an id"))).done();
    assert!(
        node_ids.contains(&u32::try_from(read["node_id"].as_u64().expect("one")).expect("u32"))
    );
    assert_eq!(client.post("/v1/ids?format=text", "").code(400), "INVALID_ARGUMENT");
    assert_eq!(client.get("/v1/inspect/18446744073709551615").code(404), "INVALID_ID");
    assert_eq!(client.get("/v1/layout").done()["layout"], layout.to_string());

    // All node ids of the layout that the server does not have, and no more.
    for _ in 0..1022 / 2 {
        let lease = client.post("/v1/leases", json!({ "count": 2 })).done();
        for node_id in lease["node_ids"].as_array().expect("node ids") {
            let node_id = u32::try_from(node_id.as_u64().expect("a number")).expect("u32");
            assert!(node_ids.insert(node_id) && node_id <= 1023, "{node_id}");
        }
    }
    assert_eq!(client.post("/v1/leases", "").code(503), "NODES_EXHAUSTED");
}

#[test]
fn a_lease_covers_six_ticks() {
    let folder = Folder::new("ticks");
    let server = folder.serve(&["--layout", "time:31,node:9,sequence:8,tick_ms=10000"]);
    server.wait_until_ready();
    let mut client = server.client();
    let refused = client.post("/v1/leases", json!({ "ttl_seconds": 59 }));
    assert_eq!(refused.code(400), "INVALID_ARGUMENT");
    client.post("/v1/leases", json!({ "ttl_seconds": 60 })).done();
}

#[test]
fn cloaks_hide_and_reveal() {
    let folder = Folder::new("cloaks");
    let server = folder.serve(&["--max-count", "500"]);
    let mut client = server.client();
    let numbers = json!({ "numbers": [42, "-7", "18446744073709551615", u64::MAX] });
    let hidden = client.post("/v1/cloaks/orders.id/hide", &numbers).done();
    let cloak = Cloak::new(&SECRET.parse().expect("a secret"), "orders.id");
    let hide = |number: u64| cloak.hide(number).to_string();
    let expected = [hide(42), hide((-7_i64).cast_unsigned()), hide(u64::MAX), hide(u64::MAX)];
    assert_eq!(hidden["ids"], json!(expected));
    let revealed = client.post("/v1/cloaks/orders%2Eid/reveal", hidden).done();
    let unsigned = ["42", "18446744073709551609", "18446744073709551615", "18446744073709551615"];
    assert_eq!(revealed["numbers"], json!(unsigned));
    let number = client.post("/v1/cloaks/a/hide?format=number", json!({ "numbers": [1] })).done();
    let again = client.post("/v1/cloaks/a/reveal?format=number", number).done();
    assert_eq!(again["numbers"], json!(["1"]));
    let most = json!({ "numbers": vec![u64::MAX; 500] });
    let all = client.post("/v1/cloaks/a/hide", &most).done();
    assert_eq!(all["ids"].as_array().expect("ids").len(), 500);
    for (path, body) in [
        ("hide", json!({})),
        ("hide", json!({ "numbers": [] })),
        ("hide", json!({ "numbers": 1 })),
        ("hide", json!({ "numbers": [1.5] })),
        ("hide", json!({ "numbers": ["x"] })),
        ("hide", json!({ "numbers": [null] })),
        ("hide", json!({ "numbers": ["18446744073709551616"] })),
        ("hide", json!({ "numbers": vec![1; 501] })),
        ("hide", json!({ "ids": ["1"] })),
        ("reveal", json!({ "ids": [1] })),
        ("reveal", json!({ "ids": ["W"] })),
    ] {
        let refused = client.post(&format!("/v1/cloaks/a/{path}"), &body);
        assert_eq!(refused.status, 400, "{path} {body}");
    }

    // Without a secret there are none.
    let folder = Folder::new("no-cloaks");
    let mut command = folder.command(&["serve", "--store", "ids.db", "--listen", "127.0.0.1:0"]);
    command.args(["--layout", "twitter"]).env_remove("RANDFLAKE_SECRET");
    let server = Server::start(command);
    for path in ["/v1/cloaks/a/hide", "/v1/codes/a/encode"] {
        let refused = server.client().post(path, json!({ "numbers": [1] }));
        assert_eq!(refused.code(400), "INVALID_ARGUMENT");
    }
}

#[test]
fn the_wrong_one_of_a_list_is_named() {
    let folder = Folder::new("wrong-one");
    let server = folder.serve(&[]);
    let mut client = server.client();
    for (path, list, right, wrong) in [
        ("cloaks/a/hide", "numbers", json!(1), json!("x")),
        ("cloaks/a/reveal", "ids", json!("1"), json!("W")),
        ("codes/orders/encode", "numbers", json!(1), json!(-1)),
        ("codes/orders/encode", "numbers", json!(1), json!(100_000_000)),
        ("codes/orders/decode", "codes", json!("86483743"), json!("8648374")),
    ] {
        let refused = client.post(&format!("/v1/{path}"), json!({ list: [right, wrong, wrong] }));
        refused.code(400);
        let message = refused.json()["message"].to_string();
        assert!(message.starts_with("\"at index 1: "), "{path}: {message}");
    }
}

#[test]
fn numbers_have_codes() {
    let folder = Folder::new("codes");
    let server = folder.serve(&["--max-count", "500"]);
    let mut client = server.client();
    let mut post = |path: &str, body: Value| client.post(path, &body);
    let made = post("/v1/codes/orders/encode", json!({ "numbers": [0, "1"] })).done();
    assert_eq!(made, json!({ "codes": ["34095755", "86483743"] }));
    let read = post("/v1/codes/orders/decode", made).done();
    assert_eq!(read, json!({ "numbers": ["0", "1"] }));

    let with = |name: &str, list: &Value| json!({ name: list, "length": 24, "alphabet": "crockford", "check": 4 });
    let numbers = json!(vec![u64::MAX.to_string(); 500]);
    let made = post("/v1/codes/a/encode", with("numbers", &numbers)).done();
    let read = post("/v1/codes/a/decode", with("codes", &made["codes"])).done();
    assert_eq!(read["numbers"], numbers);

    for (path, body) in [
        ("encode", json!({})),
        ("encode", json!({ "numbers": [] })),
        ("encode", json!({ "numbers": [-1] })),
        ("encode", json!({ "numbers": ["-1"] })),
        ("encode", json!({ "numbers": [1.5] })),
        ("encode", json!({ "numbers": [100_000_000] })),
        ("encode", json!({ "numbers": [1], "length": 5 })),
        ("encode", json!({ "numbers": [1], "length": 25 })),
        ("encode", json!({ "numbers": [1], "length": "8" })),
        ("encode", json!({ "numbers": [1], "check": 8 })),
        ("encode", json!({ "numbers": [1], "alphabet": "base32" })),
        ("encode", json!({ "numbers": [1], "alphabet": 7 })),
        ("encode", json!({ "numbers": [1], "codes": ["86483743"] })),
        ("encode", json!({ "numbers": vec![1; 501] })),
        ("encode?format=text", json!({ "numbers": [1] })),
        ("decode", json!({ "codes": [86_483_743] })),
        ("decode", json!({ "codes": ["8648374"] })),
        ("decode", json!({ "codes": ["8648374x"] })),
        ("decode", json!({ "codes": ["12345678"], "check": 3 })),
    ] {
        let refused = post(&format!("/v1/codes/orders/{path}"), body.clone());
        assert_eq!(refused.status, 400, "{path} {body}");
    }
}

#[test]
fn numbers_have_a_date() {
    let folder = Folder::new("dated");
    folder.run(&["tickets", "init", "--new"]);
    let server = folder.serve(&[]);
    let mut client = server.client();
    let invoices = "/v1/tickets/invoices?period=year&prefix=INV-&digits=3";
    let first = text(&client.post(invoices, "").done()["tickets"][0]);
    assert!(first.starts_with("INV-20") && first.ends_with("-001"), "{first}");
    let more = client.post(&format!("{invoices}&count=2&time_zone=Asia/Tokyo"), "").done();
    let more = more["tickets"].as_array().expect("numbers");
    assert_eq!(more.iter().map(|it| text(it)[9..].to_owned()).collect::<Vec<_>>(), ["002", "003"]);
    let quoted = client.post("/v1/tickets/q?period=day&prefix=%22%5C%C3%A9", "").done();
    assert!(text(&quoted["tickets"][0]).starts_with("\"\\\u{e9}20"), "{quoted}");
    assert_eq!(
        client.post("/v1/tickets/invoices", "").done()["tickets"][0],
        "1",
        "another counter"
    );
    for wrong in [
        "period=week",
        "period=",
        "prefix=a",
        "time_zone=UTC",
        "digits=1",
        "period=day&digits=0",
        "period=day&digits=17",
        "period=day&digits=x",
        "period=day&time_zone=Nowhere",
        "period=day&prefix=%0A",
        "period=day&period=day",
        "period=day&format=text",
    ] {
        let refused = client.post(&format!("/v1/tickets/invoices?{wrong}"), "");
        assert_eq!(refused.code(400), "INVALID_ARGUMENT", "{wrong}");
    }
}

#[test]
fn ids_are_read_back() {
    let folder = Folder::new("ids");
    let server = folder.serve(&["--node-count", "3", "--max-count", "500"]);
    server.wait_until_ready();
    let mut client = server.client();
    let inspector = Inspector::new(&SECRET.parse::<Secret>().expect("a secret"));
    let mut node_ids = BTreeSet::new();
    for id in client.ids(1).iter().chain(&client.ids(500)) {
        let read = client.get(&format!("/v1/inspect/{id}")).done();
        let parts = inspector.inspect(id.parse().expect("an id"));
        node_ids.insert(parts.node_id);
        assert_eq!(read["id"], id.as_str());
        assert_eq!(read["timestamp"], parts.timestamp);
        assert_eq!(
            (&read["node_id"], &read["sequence"]),
            (&json!(parts.node_id), &json!(parts.sequence))
        );
        let number = text(&read["number"]);
        let by_number = client.get(&format!("/v1/inspect/{number}?format=number")).done();
        assert_eq!(by_number, read);
    }
    let numbers = client.post("/v1/ids?count=2&format=number", "").done();
    for number in numbers["ids"].as_array().expect("a list") {
        text(number).parse::<i64>().expect("a number");
    }
    let read = client.get("/v1/inspect/3vgoe12ccb8gh").done();
    assert_eq!(read["time"], "2024-12-09T01:04:57Z");
}

#[test]
fn bad_input_is_refused() {
    let folder = Folder::new("bad");
    let server = folder.serve(&["--max-count", "1000"]);
    server.wait_until_ready();
    let mut client = server.client();
    for query in [
        "count=0",
        "count=1001",
        "count=-1",
        "count=+1",
        "count=1.0",
        "count=",
        "count",
        "count=1e3",
        "count=99999999999999999999",
        "count=1&count=2",
        "format=int",
        "format=",
        "counts=1",
        "=1",
    ] {
        let response = client.post(&format!("/v1/ids?{query}"), "");
        assert_eq!(response.code(400), "INVALID_ARGUMENT", "{query}");
    }
    for id in ["0a", "ABC", "xyz", "g000000000000", "00000000000000", "-1", "%20", "a%2fb"] {
        let response = client.get(&format!("/v1/inspect/{id}"));
        assert_eq!(response.code(404), "INVALID_ID", "{id}");
    }
    for number in ["abc", "9223372036854775808", "1.0", "%2d"] {
        let response = client.get(&format!("/v1/inspect/{number}?format=number"));
        assert_eq!(response.code(404), "INVALID_ID", "{number}");
    }
    for path in ["/v1/inspect/a?count=1", "/v1/inspect/%ff"] {
        assert_eq!(client.get(path).code(400), "INVALID_ARGUMENT", "{path}");
    }

    for body in [
        "[]",
        "1",
        "null",
        "{",
        "{\"count\":0}",
        "{\"count\":65}",
        "{\"count\":1.5}",
        "{\"count\":65.0}",
        "{\"now\":9223372036854775808}",
        "{\"now\":9007199254740992.0}",
        "{\"count\":\"1\"}",
        "{\"count\":true}",
        "{\"ttl_seconds\":0}",
        "{\"ttl_seconds\":86401}",
        "{\"ttl_seconds\":29}",
        "{\"now\":\"1\"}",
        "{\"now\":1e30}",
        "{\"note\":1}",
        "{\"ttl\":60}",
        "\u{0}",
    ] {
        let response = client.post("/v1/leases", body);
        assert_eq!(response.code(400), "INVALID_ARGUMENT", "{body}");
    }
    // Other ways to write allowed fields.
    let body = "{\"count\":2.0,\"ttl_seconds\":6e1,\"now\":null,\"note\":null}";
    let leased = client.post("/v1/leases", body).done();
    assert_eq!(leased["node_ids"].as_array().map(Vec::len), Some(2));
    let lease = text(&client.post("/v1/leases", "").done()["lease"]);
    for operation in ["renew", "release"] {
        for name in
            ["a", &lease[1..], &lease.to_uppercase(), &format!("{lease}-"), &format!("{lease}.1")]
        {
            let response = client.post(&format!("/v1/leases/{name}/{operation}"), "");
            assert_eq!(response.code(404), "INVALID_LEASE", "{name}");
        }
        let response = client.post(&format!("/v1/leases/{lease}/{operation}"), "{\"count\":1}");
        assert_eq!(response.code(400), "INVALID_ARGUMENT");
    }
    let long = format!("{{\"note\":\"{}\"}}", "x".repeat(20_000));
    assert_eq!(client.post("/v1/leases", long).code(413), "INVALID_ARGUMENT");

    // Input that is not HTTP, and input that never ends.
    for wrong in ["hello\r\n\r\n".to_owned(), format!("GET /{} HTTP/1.1\r\n", "x".repeat(100_000))]
    {
        let mut stream = TcpStream::connect(server.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        let _ = stream.write_all(wrong.as_bytes()); // it may be closed before
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer); // it may be reset
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{wrong:.20}");
    }
    server.client().ids(1);
}

/// Pieces that request parsers have stumbled over.
const PIECES: [&str; 22] = [
    "%",
    "%25",
    "%2f",
    "%00",
    "%ff",
    "..",
    "//",
    "?",
    "&",
    "count=2",
    "\r\n",
    "\n",
    "\0",
    " ",
    "é",
    "Content-Length: 3\r\n",
    "Content-Length: 99999999999999999999\r\n",
    "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "Expect: 100-continue\r\n",
    "Upgrade: h2c\r\nConnection: Upgrade\r\n",
    "HTTP/1.0",
    "{\"count\":1e999}",
];

/// Requests with something wrong in them, the same in each run.
struct Fuzzer {
    seeds: Vec<String>,
    state: u64,
}

impl Fuzzer {
    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 16).expect("64 bits") % bound.max(1)
    }

    fn request(&mut self) -> Vec<u8> {
        let seed = self.below(self.seeds.len());
        let mut request = self.seeds[seed].clone().into_bytes();
        for _ in 0..=self.below(4) {
            let at = self.below(request.len());
            let to = (at + self.below(12)).min(request.len());
            match self.below(5) {
                0 => request[at] ^= 1 << self.below(8),
                1 => drop(request.drain(at..to)),
                2 => drop(request.splice(at..at, request[at..to].to_vec())),
                3 => {
                    let piece = PIECES[self.below(PIECES.len())];
                    drop(request.splice(at..at, piece.bytes()));
                }
                _ => {
                    let other = self.below(self.seeds.len());
                    let from = self.below(self.seeds[other].len());
                    drop(request.splice(at.., self.seeds[other].bytes().skip(from)));
                }
            }
            if request.is_empty() {
                request.push(b'G');
            }
        }
        request
    }
}

#[test]
fn no_request_whatever_is_in_it_is_an_error_of_the_server() {
    const CLIENTS: u64 = 8;
    const REQUESTS: usize = 150;
    let folder = Folder::new("fuzz");
    folder.run(&["tickets", "init", "--new"]);
    let server = folder.serve(&[]);
    server.wait_until_ready();
    let lease = text(&server.client().post("/v1/leases", "").done()["lease"]);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let post = |path: &str, body: &str| {
        let (host, length) = (server.address, body.len());
        format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let seeds = vec![
        post("/v1/ids?count=3&format=number", ""),
        post("/v1/leases", "{\"count\":2,\"ttl_seconds\":60,\"note\":\"a\"}"),
        post(&format!("/v1/leases/{lease}/renew"), "{\"now\":1795615000}"),
        post(&format!("/v1/leases/{lease}/release"), "{\"used_until\":null}"),
        post("/v1/tickets/gr%C3%B6n?count=2", ""),
        get("/v1/inspect/3vgoe12ccb8gh"),
        get("/metrics"),
        get("/readyz?probe=1"),
    ];
    let (answered, ids) = thread::scope(|scope| {
        let clients: Vec<_> = (1..=CLIENTS)
            .map(|number| {
                let mut fuzzer = Fuzzer { seeds: seeds.clone(), state: number << 32 | 1 };
                let address = server.address;
                scope.spawn(move || {
                    let (mut answered, mut ids) = (0, vec![]);
                    for _ in 0..REQUESTS {
                        let request = fuzzer.request();
                        let said = answer_to(address, &request);
                        let shown = String::from_utf8_lossy(&request);
                        let text = String::from_utf8_lossy(&said);
                        for status in text.lines().filter(|line| line.starts_with("HTTP/1.")) {
                            assert!(!status.contains(" 500"), "{shown:?}");
                            answered += 1;
                        }
                        let (_, list) = text.split_once("{\"ids\":[").unwrap_or_default();
                        let (list, _) = list.split_once(']').unwrap_or_default();
                        let made = list.split(',').filter(|id| !id.is_empty());
                        ids.extend(made.map(ToOwned::to_owned));
                    }
                    (answered, ids)
                })
            })
            .collect();
        let joined = clients.into_iter().map(|client| client.join().expect("it holds"));
        joined.fold((0, vec![]), |(sum, mut all), (answered, ids)| {
            all.extend(ids);
            (sum + answered, all)
        })
    });
    assert!(answered > 100, "{answered} were answered");
    assert!(!ids.is_empty());
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    server.client().ids(1);
    let (status, said) = server.end("-TERM");
    assert!(status.success() && !said.contains("panicked"), "{said}");
}

/// Sends bytes, waits until nothing comes back for a while, and returns what came back.
fn answer_to(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a time");
    let _ = stream.write_all(request); // it may be closed before
    let (mut said, mut buffer) = (vec![], [0; 4096]);
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        said.extend_from_slice(&buffer[..length]);
    }
    let _ = stream.shutdown(Shutdown::Write);
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    let _ = stream.read_to_end(&mut said); // it may be reset
    said
}

#[test]
fn only_those_with_the_token_may_ask() {
    let folder = Folder::new("token");
    folder.token_file();
    let server = folder.serve(&["--token-file", "token"]);
    server.wait_until_ready();
    let mut client = server.client();
    let host = client.headers.clone();
    for (header, may) in [
        (format!("Authorization: Bearer {TOKEN}\r\n"), true),
        (format!("authorization: bearer {TOKEN}\r\n"), true),
        (format!("Authorization: Bearer {TOKEN}x\r\n"), false),
        (format!("Authorization: {TOKEN}\r\n"), false),
        (String::new(), false),
    ] {
        client.headers = host.clone() + &header;
        for (method, path) in [("POST", "/v1/ids"), ("GET", "/metrics"), ("GET", "/v1/inspect/a")] {
            let response = client.ask(method, path, "");
            if may {
                assert_eq!(response.status, 200, "{path}");
            } else {
                assert_eq!(response.code(401), "UNAUTHORIZED", "{header}");
                assert_eq!(response.header("www-authenticate"), Some("Bearer"));
            }
        }
        for path in ["/healthz", "/readyz", "/openapi.json"] {
            assert_eq!(client.get(path).status, 200, "{path}");
        }
    }
    let (status, said) = server.end("-TERM");
    assert!(status.success(), "{said}");
    assert!(!said.contains(TOKEN), "{said}");

    // Without a token, other addresses are refused, and so is anything that a browser sends for a
    // web page.
    let refused = folder.command(&["serve", "--store", "ids.db", "--listen", "0.0.0.0:0"]).output();
    let refused = refused.expect("it runs");
    assert_eq!(refused.status.code(), Some(2));
    let server = folder.serve(&[]);
    server.wait_until_ready();
    let mut client = server.client();
    for headers in [
        "Host: shop.example\r\n",
        "Host: localhost\r\nOrigin: https://shop.example\r\n",
        "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n",
        "Host: localhost\r\nHost: localhost\r\n",
    ] {
        client.headers = headers.to_owned();
        assert_eq!(client.post("/v1/ids", "").code(403), "UNAUTHORIZED");
        assert_eq!(client.get("/metrics").code(403), "UNAUTHORIZED");
        assert_eq!(client.get("/v1/inspect/0").code(403), "UNAUTHORIZED");
    }
    client.headers = "Host: localhost:8080\r\n".to_owned();
    client.ids(1);

    for (content, why) in
        [("short", "16 to 4096"), ("", "16 to 4096"), ("0123456789 abcdef", "ASCII")]
    {
        fs::write(folder.path("bad"), content).expect("a file");
        let refused =
            folder.command(&["serve", "--store", "ids.db", "--token-file", "bad"]).output();
        let refused = refused.expect("it runs");
        let said = String::from_utf8(refused.stderr).expect("text");
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_signal_answers_what_is_open_and_gives_node_ids_back() {
    for signal in ["-TERM", "-INT", "-HUP"] {
        if signal == "-HUP" && !ends_by_hangup() {
            continue; // these tests run by nohup, or on a system that does not say so
        }
        let folder = Folder::new(&format!("end{signal}"));
        let server = folder.serve(&[]);
        server.wait_until_ready();
        let (address, ending) = (server.address, AtomicBool::new(false));
        let ids = thread::scope(|scope| {
            let ask = || {
                let (mut client, mut ids) = (Client::new(address), Vec::new());
                loop {
                    match client.try_ask("POST", "/v1/ids?count=10", "") {
                        Ok(response) => {
                            let listed = response.done();
                            ids.extend(listed["ids"].as_array().expect("ids").iter().map(text));
                        }
                        // Closed between two requests, or before the request was read.
                        Err(error) => {
                            assert!(ending.load(Ordering::Relaxed), "{error}");
                            return ids;
                        }
                    }
                }
            };
            let asking: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            let mut client = Client::new(address);
            for _ in 0..100 {
                client.ids(1);
            }
            ending.store(true, Ordering::Relaxed);
            let (status, said) = server.end(signal);
            assert_eq!(status.code(), Some(0), "{said}");
            assert!(said.contains("stopped"), "{said}");
            asking.into_iter().flat_map(|ids| ids.join().expect("ids")).collect::<Vec<_>>()
        });
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        let listed = folder.command(&["lease", "list", "--json", "--store", "ids.db"]).output();
        let listed: Value = serde_json::from_slice(&listed.expect("it runs").stdout).expect("JSON");
        assert_eq!(listed["counts"]["held"], 0, "{listed}");
    }
}

/// Whether SIGHUP ends the processes that this one starts, as far as can be determined.
fn ends_by_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| !mask.trim().ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']))
}

#[test]
fn who_starts_it_by_nohup_keeps_it() {
    let folder = Folder::new("nohup");
    let script = "trap '' HUP; exec \"$0\" serve --store ids.db --listen 127.0.0.1:0";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .arg(env!("CARGO_BIN_EXE_randflake"))
        .current_dir(&folder.0)
        .stdin(Stdio::null());
    shell.env("RANDFLAKE_SECRET", SECRET);
    let server = Server::start(shell);
    server.wait_until_ready();
    server.signal("-HUP");
    for _ in 0..100 {
        server.client().ids(1); // on its own connection
    }
    let (status, said) = server.end("-TERM");
    assert!(status.success() && said.contains("stopped"), "{said}");
}

#[test]
fn leases_are_granted_again_once_those_of_a_lost_file_are_over() {
    let folder = Folder::new("lost");
    let init = ["lease", "init", "--new", "--max-ttl", "6", "--max-skew", "1", "--store", "ids.db"];
    let init = || assert!(folder.command(&init).output().expect("it runs").status.success());
    init();
    let server = folder.serve(&["--ttl", "6"]);
    server.wait_until_ready();
    let mut client = server.client();
    let held = Held::of(&client.post("/v1/leases", "").done());
    for file in fs::read_dir(&folder.0).expect("a folder") {
        fs::remove_file(file.expect("a file").path()).expect("it is ours");
    }
    init();
    let mut response = client.post("/v1/leases", "");
    assert_eq!(response.code(503), "STORE_REPLACED");
    while response.status == 503 {
        thread::sleep(Duration::from_millis(5));
        response = client.post("/v1/leases", "");
    }
    // A holder that still has the earlier lease has a slow clock, and none of its seconds is
    // granted again.
    let again = Held::of(&response.done());
    assert!(again.start >= held.end_exclusive, "{} {}", again.start, held.end_exclusive);
    let renewed = Held::of(&client.post(&again.path("renew"), "").done());
    assert_eq!((renewed.start, renewed.node_ids), (again.start, again.node_ids));
    server.wait_until_ready();
    client.ids(100);
}

#[test]
fn a_request_that_has_begun_is_answered_at_the_end() {
    let folder = Folder::new("begun");
    let server = folder.serve(&[]);
    server.wait_until_ready();
    let mut client = server.client();
    let headers = client.headers.clone() + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let head = format!("POST /v1/leases HTTP/1.1\r\n{headers}");
    client.stream.get_mut().write_all(head.as_bytes()).expect("it reads");
    assert_eq!(client.answer().expect("an answer").status, 100, "it waits for the body");
    server.signal("-TERM");
    while TcpStream::connect(server.address).is_ok() {
        thread::sleep(Duration::from_millis(5));
    }
    client.stream.get_mut().write_all(b"{}").expect("it reads");
    let response = client.answer().expect("an answer");
    assert_eq!(response.status, 201, "{response:?}");
    assert_eq!(response.header("connection"), Some("close"));
    let (status, said) = server.end("-TERM");
    assert_eq!(status.code(), Some(0), "{said}");
}

#[test]
fn an_outage_longer_than_the_lease_passes() {
    let folder = Folder::new("expired");
    let init = ["lease", "init", "--new", "--max-ttl", "6", "--max-skew", "1", "--store", "ids.db"];
    assert!(folder.command(&init).output().expect("it runs").status.success());
    let server = folder.serve(&["--ttl", "6", "--max-wait", "0"]);
    server.wait_until_ready();
    let mut client = server.client();
    let locked = lock(&folder.path("ids.db"));
    // It continues to the end of its lease.
    let mut response = client.post("/v1/ids", "");
    assert_eq!(response.status, 200);
    while response.status == 200 {
        thread::sleep(Duration::from_millis(20));
        response = client.post("/v1/ids", "");
    }
    assert_eq!(response.code(503), "LEASE_UNAVAILABLE");
    assert!(response.header("retry-after").is_some(), "{response:?}");
    assert_eq!(client.get("/readyz").code(503), "LEASE_UNAVAILABLE");
    assert_eq!(client.get("/healthz").status, 200);
    drop(locked);
    server.wait_until_ready();
    client.ids(1000);
    let (status, said) = server.end("-TERM");
    assert!(status.success(), "{said}");
}

#[test]
fn it_serves_whether_or_not_anybody_reads_what_it_says() {
    let folder = Folder::new("unread");
    let init = ["lease", "init", "--new", "--max-ttl", "6", "--max-skew", "1", "--store", "ids.db"];
    assert!(folder.command(&init).output().expect("it runs").status.success());
    // A pipe that is full, and stays full.
    let (unread, mut full) = io::pipe().expect("a pipe");
    let errors = full.try_clone().expect("a descriptor");
    thread::spawn(move || while full.write(&[b'.'; 4096]).is_ok() {});
    let address = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
    let listen = address.to_string();
    let options = ["serve", "--store", "ids.db", "--ttl", "6", "--max-wait", "0"];
    let mut command = folder.command(&options);
    command.args(["--listen", &listen]).stderr(errors);
    let mut server = Server { process: command.spawn().expect("it starts"), address, errors: None };
    drop(command);
    while TcpStream::connect(address).is_err() {
        assert_eq!(server.process.try_wait().expect("a child"), None, "the port was taken");
        thread::sleep(Duration::from_millis(20));
    }
    server.wait_until_ready();
    let mut client = server.client();
    let locked = lock(&folder.path("ids.db"));
    while client.post("/v1/ids", "").status == 200 {
        thread::sleep(Duration::from_millis(20));
    }
    drop(locked);
    server.wait_until_ready();
    client.ids(1000);
    server.signal("-TERM");
    assert!(server.process.wait().expect("it ends").success());
    drop(unread);
}

#[test]
fn an_outage_at_the_start_is_waited_for() {
    let folder = Folder::new("outage");
    folder.run(&["generate"]);
    let locked = lock(&folder.path("ids.db"));
    let server = folder.serve(&["--max-wait", "0"]);
    let mut client = server.client();
    assert_eq!(client.get("/healthz").status, 200);
    for path in ["/v1/ids", "/v1/ids?count=100"] {
        let response = client.post(path, "");
        assert_eq!(response.code(503), "LEASE_UNAVAILABLE");
        let retry_after = response.header("retry-after").and_then(|it| it.parse::<u32>().ok());
        assert!(retry_after.is_some_and(|seconds| seconds >= 1), "{response:?}");
    }
    assert_eq!(client.get("/readyz").code(503), "LEASE_UNAVAILABLE");
    assert_eq!(client.post("/v1/leases", "").code(503), "STORE_UNAVAILABLE");
    assert_eq!(client.get("/v1/inspect/3vgoe12ccb8gh").status, 200, "it needs no store");
    drop(locked);
    server.wait_until_ready();
    client.ids(100);
    client.post("/v1/leases", "").done();
}

#[test]
fn readiness_tells_nothing_of_the_store_without_the_token() {
    let folder = Folder::new("unready");
    folder.run(&["generate"]);
    folder.token_file();
    let _locked = lock(&folder.path("ids.db"));
    let server = folder.serve(&["--token-file", "token"]);
    let response = server.client().get("/readyz");
    assert_eq!(response.code(503), "LEASE_UNAVAILABLE");
    let message = "no id is available now; standard error says why";
    assert_eq!(response.json()["message"], message);
    assert!(response.header("retry-after").is_some(), "{response:?}");
}

#[test]
fn requests_wait_without_holding_up_others() {
    let folder = Folder::new("wait");
    folder.run(&["generate"]);
    let locked = lock(&folder.path("ids.db"));
    let server = folder.serve(&["--max-wait", "60"]);
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..32).map(|_| scope.spawn(|| server.client().ids(10))).collect();
        let mut client = server.client();
        for _ in 0..100 {
            assert_eq!(client.get("/healthz").status, 200);
        }
        drop(locked);
        let ids: HashSet<_> =
            waiting.into_iter().flat_map(|ids| ids.join().expect("ids")).collect();
        assert_eq!(ids.len(), 320);
    });
}

#[test]
fn what_waiting_does_not_mend_ends_the_server() {
    let folder = Folder::new("fatal");
    folder.run(&["generate"]);
    let mut command = folder.command(&["serve", "--store", "ids.db", "--listen", "127.0.0.1:0"]);
    command.env("RANDFLAKE_SECRET", "00112233445566778899aabbccddee0f");
    let (status, said) = Server::start(command).wait();
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("SECRET_MISMATCH"), "{said}");

    let server = folder.serve(&[]);
    let taken = server.address.to_string();
    let second = folder.command(&["serve", "--store", "ids.db", "--listen", &taken]).output();
    let second = second.expect("it runs");
    let said = String::from_utf8(second.stderr).expect("text");
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot listen on"), "{said}");
}

#[test]
fn two_instances_on_one_store_repeat_nothing() {
    let folder = Folder::new("two");
    let servers = [folder.serve(&[]), folder.serve(&[])];
    let each = 50_000;
    let ids = thread::scope(|scope| {
        let ask = |server: &Server, count: usize, many: usize| {
            server.wait_until_ready();
            let mut client = server.client();
            (0..many / count).flat_map(|_| client.ids(count)).collect::<Vec<_>>()
        };
        let asking: Vec<_> = servers
            .iter()
            .flat_map(|server| [(server, 1, 1000), (server, 1000, each - 1000)])
            .map(|(server, count, many)| scope.spawn(move || ask(server, count, many)))
            .collect();
        asking.into_iter().flat_map(|ids| ids.join().expect("ids")).collect::<Vec<_>>()
    });
    assert_eq!(ids.len(), 2 * each);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());

    // A lease from one server is renewed and released by the other.
    let [mut one, mut other] = servers.each_ref().map(Server::client);
    let leased = one.post("/v1/leases", json!({ "count": 2, "note": "a client:1" })).done();
    let lease = text(&leased["lease"]);
    let renewed = other.post(&format!("/v1/leases/{lease}/renew"), "").done();
    for same in ["lease", "node_ids", "start"] {
        assert_eq!(renewed[same], leased[same]);
    }
    let listed = folder.command(&["lease", "list", "--store", "ids.db"]).output().expect("it runs");
    assert!(String::from_utf8(listed.stdout).expect("text").contains("a client:1"));
    let released = other.post(&format!("/v1/leases/{lease}/release"), "").done();
    assert_eq!(released["released"], 2);
    assert_eq!(one.post(&format!("/v1/leases/{lease}/renew"), "").code(410), "LEASE_LOST");
}

/// What a client has of its lease.
struct Held {
    name: String,
    node_ids: Vec<i64>,
    start: i64,
    end_exclusive: i64,
}

impl Held {
    fn of(json: &Value) -> Self {
        let node_ids = json["node_ids"].as_array().expect("a list");
        Self {
            name: text(&json["lease"]),
            node_ids: node_ids.iter().map(|id| id.as_i64().expect("a number")).collect(),
            start: json["start"].as_i64().expect("a second"),
            end_exclusive: json["end_exclusive"].as_i64().expect("a second"),
        }
    }

    fn path(&self, operation: &str) -> String {
        format!("/v1/leases/{}/{operation}", self.name)
    }
}

#[test]
fn no_two_clients_hold_a_node_id_at_a_time() {
    let folder = Folder::new("leases");
    let server = folder.serve(&[]);
    server.wait_until_ready();
    let held = thread::scope(|scope| {
        let take = || {
            let mut client = server.client();
            let take = |_| Held::of(&client.post("/v1/leases", json!({ "count": 16 })).done());
            (0..8).map(take).collect::<Vec<_>>()
        };
        let taking: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        taking.into_iter().flat_map(|held| held.join().expect("leases")).collect::<Vec<_>>()
    });
    let node_ids: HashSet<_> = held.iter().flat_map(|held| &held.node_ids).collect();
    assert_eq!(node_ids.len(), 4 * 8 * 16);
    assert!(held.iter().all(|held| held.start < held.end_exclusive));
    let names: HashSet<_> = held.iter().map(|held| &held.name).collect();
    assert_eq!(names.len(), held.len());

    // If a client sends its time, its clock is compared.
    let mut client = server.client();
    let wrong = held[0].start - 3600;
    assert_eq!(client.post("/v1/leases", json!({ "now": wrong })).code(409), "CLOCK_SKEW");
    let renew = client.post(&held[0].path("renew"), json!({ "now": wrong }));
    assert_eq!(renew.code(409), "CLOCK_SKEW");

    // A renewal never shortens a lease, and never moves its start.
    let renewed = client.post(&held[0].path("renew"), json!({ "ttl_seconds": 60 })).done();
    let renewed = Held::of(&renewed);
    assert_eq!((renewed.start, &renewed.node_ids), (held[0].start, &held[0].node_ids));
    assert!(renewed.end_exclusive >= held[0].end_exclusive);
}

#[test]
fn of_two_copies_of_a_holder_the_first_that_names_a_token_goes_on() {
    let folder = Folder::new("copies");
    let server = folder.serve(&[]);
    server.wait_until_ready();
    let mut client = server.client();
    let held = Held::of(&client.post("/v1/leases", json!({ "count": 2 })).done());
    let [first, second, other] = ["a1", "b2", "c3"].map(|byte| byte.repeat(16));
    let mut renewed = held;
    for token in [first, second] {
        let (path, next) = (renewed.path("renew"), json!({ "next_token": token }));
        let again = Held::of(&client.post(&path, &next).done());
        assert!(again.name.starts_with(&format!("{token}.")), "{}", again.name);
        assert_eq!((again.start, &again.node_ids), (renewed.start, &renewed.node_ids));
        // Simulates a lost answer.
        assert_eq!(Held::of(&client.post(&path, &next).done()).name, again.name);
        let copy = client.post(&path, json!({ "next_token": other }));
        assert_eq!(copy.code(410), "LEASE_LOST");
        assert_eq!(client.post(&renewed.path("release"), "").done()["released"], 0);
        renewed = again;
    }
    assert_eq!(client.post(&renewed.path("release"), "").done()["released"], 2);
    for wrong in ["", "a1", &"a1".repeat(17), &"g1".repeat(16), &"é".repeat(16)] {
        let refused = client.post(&renewed.path("renew"), json!({ "next_token": wrong }));
        assert_eq!(refused.code(400), "INVALID_ARGUMENT", "{wrong}");
    }
}

#[test]
fn a_node_id_is_leased_again_after_its_release() {
    let folder = Folder::new("again");
    let server = folder.serve(&[]);
    server.wait_until_ready();
    let mut client = server.client();
    let held = Held::of(&client.post("/v1/leases", "").done());
    // All others are leased, for a while.
    let store = Connection::open(folder.path("ids.db")).expect("a store");
    let fill = "with recursive every(id) as (select 0 union all select id + 1 from every where id < 131071)
        insert into node select namespace.id, every.id, 0, ?1, null, '', 1 from every, namespace
        where true on conflict do nothing";
    store.execute(fill, [held.end_exclusive + 100]).expect("rows");
    let none = client.post("/v1/leases", "");
    assert_eq!(none.code(503), "NODES_EXHAUSTED");
    assert!(none.header("retry-after").is_some_and(|it| it.parse::<u32>().is_ok_and(|it| it > 60)));

    let used_until = held.start + 3; // its last id is from the second before
    let release = json!({ "used_until": used_until });
    assert_eq!(client.post(&held.path("release"), &release).done()["released"], 1);
    assert_eq!(client.post(&held.path("release"), &release).done()["released"], 0, "repeated");
    assert_eq!(client.post(&held.path("renew"), "").code(410), "LEASE_LOST");
    let again = Held::of(&client.post("/v1/leases", "").done());
    assert_eq!(again.node_ids, held.node_ids);
    assert_ne!(again.name, held.name);
    assert!(again.start >= used_until, "{} {used_until}", again.start);

    // A release that does not say what was used does not shorten the lease.
    assert_eq!(client.post(&again.path("release"), "").done()["released"], 1);
    assert_eq!(client.post("/v1/leases", "").code(503), "NODES_EXHAUSTED");
}

#[test]
fn a_lease_is_renewed_after_its_end_until_another_has_it() {
    let folder = Folder::new("late");
    let server = folder.serve(&[]);
    server.wait_until_ready();
    let mut client = server.client();
    let held = Held::of(&client.post("/v1/leases", "").done());
    let node_id = held.node_ids[0];
    // Simulates a past end, so that the test need not wait.
    let past = held.start - 1000;
    let set = |column: &str, value: &dyn rusqlite::ToSql| {
        let store = Connection::open(folder.path("ids.db")).expect("a store");
        let changed = store.execute(
            &format!("update node set {column} = ?1 where node_id = ?2"),
            rusqlite::params![value, node_id],
        );
        assert_eq!(changed.expect("a row"), 1);
    };
    set("end_exclusive", &past);
    let renewed = Held::of(&client.post(&held.path("renew"), "").done());
    assert_eq!((renewed.start, renewed.node_ids), (held.start, vec![node_id]));
    assert!(renewed.end_exclusive >= held.end_exclusive);

    // A request that arrives late makes the store grant the token again, from a later second.
    set("start", &(held.start + 100_000));
    assert_eq!(client.post(&held.path("renew"), "").code(410), "LEASE_LOST");
    set("start", &held.start);
    client.post(&held.path("renew"), "").done();
    set("token", &vec![7_u8; 16]);
    assert_eq!(client.post(&held.path("renew"), "").code(410), "LEASE_LOST");
    assert_eq!(client.post(&held.path("release"), "").done()["released"], 0);
}

impl Client {
    fn tickets(&mut self, name: &str, count: usize) -> Vec<u64> {
        let response = self.post(&format!("/v1/tickets/{name}?count={count}"), "").done();
        let tickets = response["tickets"].as_array().expect("a list");
        tickets.iter().map(|ticket| text(ticket).parse().expect("a number")).collect()
    }
}

#[test]
fn tickets_are_in_a_row() {
    let folder = Folder::new("tickets");
    folder.run(&["tickets", "init", "--new"]);
    let server = folder.serve(&[]);
    let mut client = server.client();
    assert_eq!(client.tickets("orders", 1), [1]);
    assert_eq!(client.tickets("orders", 3), [2, 3, 4]);
    assert!(client.tickets("orders", 10_000).into_iter().eq(5..10_005));
    assert_eq!(client.tickets("invoices%2F2026", 2), [1, 2], "another counter");
    assert_eq!(client.tickets("invoices%2f2026", 1), [3], "the same");
    for name in ["a%20b", "%00", "a%0Ab", "%ff", &"x".repeat(201)] {
        let response = client.post(&format!("/v1/tickets/{name}"), "");
        assert_eq!(response.code(400), "INVALID_ARGUMENT", "{name}");
    }
    for query in ["count=0", "count=10001", "format=number"] {
        let response = client.post(&format!("/v1/tickets/orders?{query}"), "");
        assert_eq!(response.code(400), "INVALID_ARGUMENT", "{query}");
    }
    let numbers = client.get("/metrics").body;
    for line in [
        r#"randflake_tickets_issued_total{counter="orders"} 10004"#,
        r#"randflake_tickets_issued_total{counter="invoices/2026"} 3"#,
    ] {
        assert!(numbers.lines().any(|it| it == line), "{line} is not in\n{numbers}");
    }

    // Shutdown gives back what is unused.
    let (status, said) = server.end("-TERM");
    assert!(status.success(), "{said}");
    let server = folder.serve(&[]);
    assert_eq!(server.client().tickets("orders", 1), [10_005]);

    // A kill loses what is unused.
    drop(server);
    assert!(folder.serve(&[]).client().tickets("orders", 1)[0] > 10_005);
}

/// Those on one line have the same name once decoded; different lines have different names.
const WRITTEN: [&[&str]; 8] = [
    &["gr%C3%B6n", "gr%c3%b6n", "%67r%C3%B6n"],
    &["gr%25C3%25B6n", "gr%25%43%33%25B6n"],
    &["a%2Fb", "a%2fb", "%61%2F%62"],
    &["a%252Fb", "a%25%32Fb"],
    &["%25", "%25"],
    &["..%2F..", "%2E%2E%2f%2e."],
    &["a+b", "a%2Bb"],
    &["a%3Fcount=2", "a%3fcount%3D2"],
];

#[test]
fn a_counter_has_one_name_however_it_is_written() {
    let folder = Folder::new("names");
    folder.run(&["tickets", "init", "--new"]);
    let server = folder.serve(&[]);
    let mut client = server.client();
    assert_eq!(client.post("/v1/tickets/a/b", "").status, 404);
    let mut last = [0; WRITTEN.len()];
    for round in 0..3 {
        for (written, last) in WRITTEN.iter().zip(&mut last) {
            for (index, name) in written.iter().enumerate() {
                let count = 1 + (round + index) % 2; // a single number takes another path
                let tickets = client.tickets(name, count);
                let expected: Vec<u64> = (*last + 1..).take(count).collect();
                assert_eq!(tickets, expected, "{name}");
                *last += count as u64;
            }
        }
        // An open counter does not turn an invalid path into a route.
        assert_eq!(client.post("/v1/tickets/a/b", "").status, 404);
        assert_eq!(client.post("/v1/tickets/../..", "").status, 404);
    }
    let numbers = client.get("/metrics").body;
    for (name, last) in ["gr\u{f6}n", "gr%C3%B6n", "a/b", "a%2Fb", "%", "../..", "a+b", "a?count=2"]
        .iter()
        .zip(last)
    {
        let line = format!("randflake_tickets_issued_total{{counter=\"{name}\"}} {last}");
        assert!(numbers.lines().any(|it| it == line), "{line} is not in\n{numbers}");
    }
}

#[test]
fn what_no_wait_mends_is_an_error_of_the_server() {
    let folder = Folder::new("no-more-tickets");
    folder.run(&["tickets", "init", "--new"]);
    let largest = ((1_u64 << 53) - 1).to_string();
    folder.run(&["tickets", "fence", "orders", "--above", &largest, "--yes"]);
    let server = folder.serve(&[]);
    let response = server.client().post("/v1/tickets/orders", "");
    assert_eq!(response.code(500), "LIFETIME_OVER");
    assert_eq!(response.header("retry-after"), None, "{response:?}");
    let openapi = server.client().get("/openapi.json").done();
    let described = &openapi["paths"]["/v1/tickets/{name}"]["post"]["responses"]["500"]["$ref"];
    let path = described.as_str().expect("it is described").trim_start_matches('#');
    let described = openapi.pointer(path).expect("a response");
    assert!(described["description"].as_str().expect("text").contains("LIFETIME_OVER"));
}

#[test]
fn two_instances_hand_out_no_ticket_twice() {
    let folder = Folder::new("two-tickets");
    folder.run(&["tickets", "init", "--new"]);
    let servers = [folder.serve(&[]), folder.serve(&[])];
    let tickets = thread::scope(|scope| {
        let ask = |server: &Server, count: usize| {
            let mut client = server.client();
            let tickets: Vec<_> = (0..500).flat_map(|_| client.tickets("orders", count)).collect();
            assert!(tickets.is_sorted(), "those of a connection rise");
            tickets
        };
        let asking: Vec<_> = servers
            .iter()
            .flat_map(|server| [(server, 1), (server, 100)])
            .map(|(server, count)| scope.spawn(move || ask(server, count)))
            .collect();
        asking.into_iter().flat_map(|asked| asked.join().expect("tickets")).collect::<Vec<_>>()
    });
    assert_eq!(tickets.len(), 2 * 500 * 101);
    assert_eq!(tickets.iter().collect::<HashSet<_>>().len(), tickets.len());
}

#[test]
fn tickets_are_there_once_their_namespace_is() {
    let folder = Folder::new("no-tickets");
    let server = folder.serve(&[]);
    server.wait_until_ready();
    let mut client = server.client();
    let response = client.post("/v1/tickets/orders", "");
    assert_eq!(response.code(503), "STORE_NOT_INITIALIZED");
    folder.run(&["tickets", "init", "--new"]);
    while client.post("/v1/tickets/orders", "").status != 200 {
        thread::sleep(Duration::from_millis(50));
    }

    // Also a counter that must be fenced.
    folder.run(&["lease", "fence", "--namespace", "tickets", "--yes"]);
    let mut last = client.post("/v1/tickets/other", "");
    assert_eq!(last.code(503), "STORE_QUARANTINED");
    folder.run(&["tickets", "fence", "other", "--above", "41", "--yes"]);
    while last.status != 200 {
        thread::sleep(Duration::from_millis(50));
        last = client.post("/v1/tickets/other", "");
    }
    assert_eq!(last.done()["tickets"], json!(["42"]));
}

#[test]
fn a_counter_that_went_back_hands_out_nothing_until_it_is_fenced() {
    let folder = Folder::new("older-tickets");
    folder.run(&["tickets", "init", "--new"]);
    let server = folder.serve(&["--max-wait", "0"]);
    server.wait_until_ready();
    let mut client = server.client();
    let first = loop {
        let response = client.post("/v1/tickets/orders", "");
        if response.status == 200 {
            break response;
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(first.done()["tickets"], json!(["1"]));
    let store = Connection::open(folder.path("ids.db")).expect("a store");
    let older: String = store
        .query_row("select value from counter where name = 'orders'", [], |row| row.get(0))
        .expect("the counter");
    let mut last = 1;
    while last < 45 {
        let response = client.post("/v1/tickets/orders", "");
        if response.status == 200 {
            let ticket = text(&response.json()["tickets"][0]).parse::<u64>().expect("a number");
            assert_eq!(ticket, last + 1);
            last = ticket;
        }
    }
    // Simulates a backup that is restored while the server runs.
    store.busy_timeout(PATIENCE).expect("a time");
    store.execute("update counter set value = ?1 where name = 'orders'", [&older]).expect("a row");
    drop(store);
    // What was drawn before is handed out, and then nothing, even after a while.
    let mut refused = 0;
    while refused < 60 {
        let response = client.post("/v1/tickets/orders", "");
        if response.status == 200 {
            assert_eq!(refused, 0, "{response:?} after it was refused");
            let ticket = text(&response.json()["tickets"][0]).parse::<u64>().expect("a number");
            assert_eq!(ticket, last + 1);
            last = ticket;
            continue;
        }
        assert_eq!(response.status, 503, "{response:?}");
        refused += u32::from(response.json()["code"] != "LEASE_UNAVAILABLE");
        thread::sleep(Duration::from_millis(50));
    }
    let above = (last + 20).to_string();
    folder.run(&["tickets", "fence", "orders", "--above", &above, "--yes"]);
    let mut response = client.post("/v1/tickets/orders", "");
    while response.status != 200 {
        thread::sleep(Duration::from_millis(50));
        response = client.post("/v1/tickets/orders", "");
    }
    // It gave up what the counter did not know about: those numbers are no longer handed out.
    let next = text(&response.done()["tickets"][0]).parse::<u64>().expect("a number");
    assert!(next > last + 20, "{next} after a fence above {above}");
}

#[test]
fn tickets_come_again_after_an_outage() {
    let folder = Folder::new("away-tickets");
    folder.run(&["tickets", "init", "--new"]);
    let server = folder.serve(&["--max-wait", "0"]);
    server.wait_until_ready();
    let locked = lock(&folder.path("ids.db"));
    let mut client = server.client();
    let mut response = client.post("/v1/tickets/orders", "");
    assert_eq!(response.code(503), "LEASE_UNAVAILABLE");
    assert!(response.header("retry-after").is_some(), "{response:?}");
    drop(locked);
    while response.status != 200 {
        thread::sleep(Duration::from_millis(20));
        response = client.post("/v1/tickets/orders", "");
    }
    assert_eq!(response.done()["tickets"], json!(["1"]));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "how long a real server waits")]
fn a_request_waits_for_a_second_unless_it_is_told_otherwise() {
    let folder = Folder::new("default-wait");
    folder.run(&["tickets", "init", "--new"]);
    let command = folder.command(&["serve", "--store", "ids.db", "--listen", "127.0.0.1:0"]);
    let server = Server::start(command);
    server.wait_until_ready();
    let _locked = lock(&folder.path("ids.db"));
    let began = Instant::now();
    let response = server.client().post("/v1/tickets/orders", "");
    let waited = began.elapsed();
    assert_eq!(response.code(503), "LEASE_UNAVAILABLE");
    // The longest wait that can be set is 60 s.
    assert!((0.9..50.0).contains(&waited.as_secs_f64()), "{waited:?}");
}

#[test]
fn a_server_has_a_hundred_counters() {
    let folder = Folder::new("counters");
    folder.run(&["tickets", "init", "--new"]);
    let server = folder.serve(&["--max-wait", "60"]);
    thread::scope(|scope| {
        for part in 0..4 {
            let mut client = server.client();
            scope.spawn(move || {
                for number in 0..25 {
                    assert_eq!(client.tickets(&format!("c{part}-{number}"), 1), [1]);
                }
            });
        }
    });
    let mut client = server.client();
    assert_eq!(client.post("/v1/tickets/more", "").code(400), "INVALID_ARGUMENT");
    assert_eq!(client.tickets("c0-0", 1), [2]);
    let (status, said) = server.end("-TERM");
    assert!(status.success(), "{said}");
}

#[test]
fn the_numbers_are_those_of_the_other_languages() {
    let folder = Folder::new("metrics");
    let server = folder.serve(&["--namespace", "orders"]);
    server.wait_until_ready();
    let mut client = server.client();
    client.ids(1000);
    client.post("/v1/ids?count=0", "");
    let alone = r#"randflake_http_connections{generator="orders"} 1"#;
    let mut numbers = client.get("/metrics").body;
    for _ in 0..6000 {
        if numbers.lines().any(|it| it == alone) {
            break;
        }
        thread::sleep(Duration::from_millis(20)); // an earlier connection is still being closed
        numbers = client.get("/metrics").body;
    }
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides/monitoring.md");
    let guide = fs::read_to_string(guide).expect("the guide");
    let names = guide.lines().filter_map(|line| line.strip_prefix("| `randflake_"));
    let names: Vec<_> = names.filter_map(|line| line.split_once('`')).map(|it| it.0).collect();
    assert!(names.len() >= 11, "{names:?}");
    for name in names {
        let described = format!("# TYPE randflake_{name} "); // with or without a sample
        assert!(numbers.contains(&described), "{name}");
    }
    for line in [
        r#"randflake_ids_generated_total{generator="orders"} 1000"#,
        r#"randflake_http_requests_total{generator="orders",status="400"} 1"#,
        alone,
        &format!(r#"randflake_build_info{{version="{}"}} 1"#, env!("CARGO_PKG_VERSION")),
    ] {
        assert!(numbers.lines().any(|it| it == line), "{line} is not in\n{numbers}");
    }
}

#[test]
fn the_examples_of_the_help_run() {
    let folder = Folder::new("examples");
    folder.token_file();
    let help = folder.command(&["serve", "--help"]).output().expect("it runs");
    let help = String::from_utf8(help.stdout).expect("text");
    let examples = help.split_once("Examples:\n").expect("every help has examples").1;
    let (servers, requests): (Vec<_>, Vec<_>) =
        examples.lines().map(str::trim).partition(|line| line.starts_with("randflake "));
    assert_eq!((servers.len(), requests.len()), (3, 1));
    let mut ports = Vec::new();
    let mut started = Vec::new();
    for line in servers {
        // Any free port.
        let line = line.replace(":8080", ":0");
        let default = if line.contains("--listen") { "" } else { " --listen 127.0.0.1:0" };
        let line = line.replace("randflake ", "") + default;
        let server = Server::start(folder.command(&line.split(' ').collect::<Vec<_>>()));
        server.wait_until_ready();
        ports.push(server.address.port().to_string());
        started.push(server);
    }
    let request = requests[0].replace("8080", &ports[0]);
    let done = Command::new("sh").args(["-euc", &request]).output().expect("a shell");
    let ids: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(ids["ids"].as_array().map(Vec::len), Some(3));
}
