//! Any request to `randflake serve`: an answer, and never one that says that the server has a fault.
#![no_main]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    sync::{
        Mutex, OnceLock,
        mpsc::{Sender, channel},
    },
    thread,
    time::Duration,
};

use libfuzzer_sys::fuzz_target;
use randflake_leases::{Location, MemoryStore, Namespace};
use randflake_serve::{Access, Log, Settings, serve};
use randflake_vectors::cases::SECRET;

static LISTENING: OnceLock<Mutex<Sender<String>>> = OnceLock::new();
static SERVER: OnceLock<String> = OnceLock::new();
static CONNECTION: Mutex<Option<BufReader<TcpStream>>> = Mutex::new(None);

// The first line is a method and a path, and the rest the body.
fuzz_target!(|data: &[u8]| {
    let (head, body) = data.iter().position(|byte| *byte == b'\n').map_or((data, &[][..]), |at| {
        let (head, body) = data.split_at(at);
        (head, &body[1..])
    });
    // How a request is framed is left to hyper. What a client names is named to it.
    let is_framed = head.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    if !is_framed || String::from_utf8_lossy(data).contains(SECRET) {
        return;
    }
    let mut connection = CONNECTION.lock().expect("no thread has panicked");
    let mut request = head.to_vec();
    write!(request, " HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len())
        .expect("memory");
    request.extend_from_slice(body);
    // The server closes a connection after some errors, and one that waited for long.
    let answer = (0..2).find_map(|_| {
        let stream = connection.get_or_insert_with(connect);
        let answer = exchange(stream, &request);
        if answer.as_ref().is_none_or(|answer| answer.closes) {
            *connection = None;
        }
        answer
    });
    let Answer { status, code, .. } = answer.expect("an answer");
    let is_fault = status >= 500 && status != 503;
    assert!(!is_fault, "{status} {code}");
});

struct Answer {
    status: u16,
    code: String,
    closes: bool,
}

/// Sends a request; `None` if the connection is closed without an answer.
fn exchange(stream: &mut BufReader<TcpStream>, request: &[u8]) -> Option<Answer> {
    stream.get_mut().write_all(request).ok()?;
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let (mut length, mut closes) = (0, false);
    loop {
        line.clear();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "connection" => closes = value.eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    if !request.starts_with(b"HEAD ") {
        stream.read_exact(&mut body).ok()?;
    }
    assert!(!String::from_utf8_lossy(&body).contains(SECRET));
    Some(Answer { status, code: String::from_utf8_lossy(&body).into_owned(), closes })
}

fn connect() -> BufReader<TcpStream> {
    BufReader::new(TcpStream::connect(SERVER.get_or_init(start)).expect("the server listens"))
}

/// Starts the server on a store in memory, and returns its address.
fn start() -> String {
    let secret = SECRET.parse().expect("hex");
    let memory = MemoryStore::new(Namespace::new("default", &secret).expect("a name"));
    let settings = Settings {
        // Few node ids, since each request lists all that are leased.
        location: Location::new(move |namespace| {
            let namespace = namespace.node_ids("0-255".parse()?)?;
            Ok(Box::new(memory.namespace(namespace)))
        }),
        secret: Some(secret),
        layout: None,
        access: Access::local(),
        listen: "127.0.0.1:0".parse().expect("an address"),
        namespace: "default".to_owned(),
        tickets_namespace: "tickets".to_owned(),
        max_count: 100,
        max_wait: Duration::ZERO,
        node_count: 1,
        ttl: 300,
        log: Log {
            notify: |message| {
                if let Some(address) = message.to_string().strip_prefix("listening on http://") {
                    let sender = LISTENING.get().expect("set before").lock().expect("one thread");
                    let _is_heard = sender.send(address.to_owned());
                }
            },
            report: |_| (),
        },
    };
    let (sender, receiver) = channel();
    LISTENING.get_or_init(|| Mutex::new(sender));
    thread::spawn(move || serve(settings).expect("serves until the end"));
    receiver.recv().expect("it listens")
}
