//! A proxy between clients and a server that loses, repeats or swaps answers.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicU8, AtomicU16, Ordering},
    },
    thread,
    time::Duration,
};

/// Longer than an answer takes, and short enough to wait for a missing one.
pub(crate) const SOON: Duration = Duration::from_secs(3);

pub(crate) const PASS: u8 = 0;
/// Answers are lost, and so is the connection.
pub(crate) const DROP: u8 = 1;
/// Answers are late.
pub(crate) const HOLD: u8 = 2;
/// Answers are repeated, so that the second is taken for the answer to the next request.
pub(crate) const REPEAT: u8 = 3;
/// Two connections get each other's answers.
pub(crate) const SWAP: u8 = 4;
/// Nothing comes through, either way, and neither side gets an error.
pub(crate) const SILENCE: u8 = 5;

/// A proxy between clients and a server.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    wires: Arc<Wires>,
}

struct Wires {
    mode: AtomicU8,
    /// The port of the server.
    target: AtomicU16,
    /// In order of arrival: the answers of two consecutive clients are swapped.
    clients: Mutex<Vec<TcpStream>>,
    /// Holds an answer back until both clients are due one: then each has an open request.
    both_answered: Barrier,
}

impl Proxy {
    pub(crate) fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let wires = Arc::new(Wires {
            mode: AtomicU8::new(PASS),
            target: AtomicU16::new(port),
            clients: Mutex::default(),
            both_answered: Barrier::new(2),
        });
        let proxy = Self {
            port: listener.local_addr().expect("an address").port(),
            wires: Arc::clone(&wires),
        };
        // Ends with the process of the test.
        thread::spawn(move || {
            for (number, client) in listener.incoming().flatten().enumerate() {
                wires.clients.lock().expect("sound").push(client.try_clone().expect("a socket"));
                let wires = Arc::clone(&wires);
                thread::spawn(move || wires.connect(&client, number));
            }
        });
        proxy
    }

    /// Leads to another server from now on, like an address that a failover moves.
    pub(crate) fn turn(&self, port: u16) {
        self.wires.target.store(port, Ordering::Relaxed);
        for client in self.wires.clients.lock().expect("sound").iter() {
            let _closed = client.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn set(&self, mode: u8) {
        self.wires.mode.store(mode, Ordering::Relaxed);
    }
}

impl Wires {
    fn connect(&self, client: &TcpStream, number: usize) {
        self.keep_silence();
        let port = self.target.load(Ordering::Relaxed);
        if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
            thread::scope(|scope| {
                scope.spawn(|| self.forward(client, &server, None));
                self.forward(&server, client, Some(number));
            });
        }
        let _closed = client.shutdown(Shutdown::Both);
    }

    fn keep_silence(&self) {
        while self.mode.load(Ordering::Relaxed) == SILENCE {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Forwards requests, or the answers to the client with a number.
    fn forward(&self, mut from: &TcpStream, mut to: &TcpStream, answered: Option<usize>) {
        let mut bytes = vec![0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            let bytes = &bytes[..length];
            let done = match (self.mode.load(Ordering::Relaxed), answered) {
                (SILENCE, _) => Ok(()),
                (DROP, Some(_)) => break,
                (HOLD, Some(_)) => {
                    thread::sleep(2 * SOON);
                    to.write_all(bytes)
                }
                (REPEAT, Some(_)) => to.write_all(bytes).and_then(|()| to.write_all(bytes)),
                (SWAP, Some(number)) => {
                    self.both_answered.wait();
                    let clients = self.clients.lock().expect("sound");
                    (&clients[number ^ 1]).write_all(bytes)
                }
                _ => to.write_all(bytes),
            };
            if done.is_err() {
                break;
            }
        }
        self.keep_silence();
        let _closed = to.shutdown(Shutdown::Both);
    }
}
