//! Connections: how many there are, how long clients may take, and how the server ends.

use std::{
    convert::Infallible,
    io::{self, IoSlice},
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    thread,
    time::Duration,
};

use hyper::{
    Request,
    body::Incoming,
    header::{CONNECTION, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use randflake::{Error, ErrorKind, Result};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    runtime, select,
    sync::{oneshot, watch},
    time::{Instant, Sleep, sleep},
};

use super::{answer::Response, places::Taken, routes, service::Service};
use crate::log::Teller;

/// Longest head of a request, in bytes: what a connection keeps in memory.
const LONGEST_HEAD: usize = 16 << 10;

/// How long requests in progress may take at shutdown.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// How long operations in progress in the store may take after that.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Threads that wait for the store, which does one operation at a time.
const BLOCKING_THREADS: usize = 4;

/// Serves until a signal, then releases the node ids.
pub(super) fn serve(address: SocketAddr, service: &Arc<Service>, teller: &Teller) -> Result<()> {
    let runtime = runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("randflake-serve")
        .build()
        .map_err(|error| internal("cannot start threads", &error))?;
    let served = runtime.block_on(serve_until_the_end(address, service, teller));
    runtime.shutdown_timeout(STORE_TIMEOUT);
    service.tickets.stop(); // both stop at the same time
    service.flake.close();
    service.tickets.close(STORE_TIMEOUT);
    served
}

async fn serve_until_the_end(
    address: SocketAddr,
    service: &Arc<Service>,
    teller: &Teller,
) -> Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Error::invalid_argument(format!("cannot listen on {address}: {error}")))?;
    let mut signals = Signals::new().map_err(|error| internal("cannot handle signals", &error))?;
    let address = listener.local_addr().unwrap_or(address);
    teller.tell(&format_args!("listening on http://{address}"));

    let mut failed = take_first_lease(service)?;
    let mut is_settled = false;
    let (end, ending) = watch::channel(());
    let served = {
        // Not made anew for each event: that would drop a connection that has no place yet.
        let mut accepting = pin!(accept(&listener, service, &ending));
        loop {
            select! {
                never = &mut accepting => match never {},
                failure = &mut failed, if !is_settled => {
                    is_settled = true;
                    if let Ok(error) = failure {
                        break Err(error);
                    }
                }
                () = signals.next() => break Ok(()),
            }
        }
    };
    drop(listener);
    service.end();
    drop(end);
    select! {
        () = service.places.all_free() => {}
        () = sleep(END_TIMEOUT) => {}
        () = signals.next() => {}
    }
    served
}

/// Takes the first lease on its own thread. If waiting does not help, sends the reason.
fn take_first_lease(service: &Arc<Service>) -> Result<oneshot::Receiver<Error>> {
    let (sender, receiver) = oneshot::channel();
    let service = Arc::clone(service);
    // Not a thread of the runtime, which shutdown would wait for.
    let thread = thread::Builder::new().name("randflake-serve".to_owned());
    let started = thread.spawn(move || {
        if let Err(error) = service.take_first_lease() {
            let _ = sender.send(error);
        }
    });
    started.map_err(|error| internal("cannot start a thread", &error))?;
    Ok(receiver)
}

/// Gives each connection a place, and a task, until `ending` closes.
async fn accept(
    listener: &TcpListener,
    service: &Arc<Service>,
    ending: &watch::Receiver<()>,
) -> Infallible {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let taken = service.places.take().await;
                tokio::spawn(converse(stream, taken, Arc::clone(service), ending.clone()));
            }
            Err(error) => {
                use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};

                // Otherwise the process has run out of files.
                if ![ConnectionAborted, ConnectionReset, Interrupted].contains(&error.kind()) {
                    service.places.give_up_one();
                }
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Answers the requests of a connection, one after another: hyper reads the next one once the
/// previous answer is written.
async fn converse(
    stream: TcpStream,
    taken: Taken,
    service: Arc<Service>,
    mut ending: watch::Receiver<()>,
) {
    // Without this a small answer may wait for the acknowledgement of the previous one.
    let _ = stream.set_nodelay(true);
    let (taken, since) = (Arc::new(taken), Instant::now());
    let limits = &service.limits;
    let timed = TimedStream::new(stream, limits.flush, Some(Arc::clone(&taken)));
    let answering = service_fn(|request: Request<Incoming>| {
        let (service, taken) = (Arc::clone(&service), Arc::clone(&taken));
        async move {
            taken.asked();
            let answered = routes::answer(&service, request, || taken.is_known()).await;
            let mut response = answered.unwrap_or_else(Response::from);
            if since.elapsed() >= service.limits.keep {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            service.counts.answered(response.status().as_u16());
            taken.answered();
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_buf_size(LONGEST_HEAD)
            .serve_connection(TokioIo::new(timed), answering)
    );
    let mut is_last = false;
    loop {
        select! {
            // A client that has gone away, or was too slow, gets no answer.
            _ = &mut connection => return,
            () = taken.place.is_given_up.notified() => return,
            _ = ending.changed(), if !is_last => {
                is_last = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// SIGTERM, SIGINT and SIGHUP, or Ctrl-C.
struct Signals {
    #[cfg(unix)]
    terminated: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupted: tokio::signal::unix::Signal,
    /// `None` if SIGHUP is not handled here.
    #[cfg(unix)]
    hung_up: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    #[cfg(unix)]
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let hung_up = ends_by_hangup().then(|| signal(SignalKind::hangup())).transpose()?;
        let terminated = signal(SignalKind::terminate())?;
        Ok(Self { terminated, interrupted: signal(SignalKind::interrupt())?, hung_up })
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        let hung_up = async {
            match &mut self.hung_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        select! {
            _ = self.terminated.recv() => {}
            _ = self.interrupted.recv() => {}
            _ = hung_up => {}
        }
    }

    #[cfg(not(unix))]
    fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Whether SIGHUP would end this process. `nohup` makes it ignored, and a handler would undo that;
/// only Linux lets a program find out.
#[cfg(unix)]
fn ends_by_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 == 0) // SIGHUP is 1
}

/// A connection that fails if the client does not take everything that is written in time.
struct TimedStream {
    stream: TcpStream,
    timeout: Duration,
    /// Runs from when the client first took nothing until it has taken everything.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Is notified when everything was taken.
    taken: Option<Arc<Taken>>,
}

impl TimedStream {
    fn new(stream: TcpStream, timeout: Duration, taken: Option<Arc<Taken>>) -> Self {
        Self { stream, timeout, stalled: None, taken }
    }

    fn written<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let timeout = self.timeout;
        if written.is_pending() {
            self.stalled.get_or_insert_with(|| Box::pin(sleep(timeout)));
        }
        // Even if it took some: otherwise taking one byte at a time would be enough forever.
        if let Some(stalled) = &mut self.stalled
            && stalled.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        written
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes what it has written to the last byte.
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.stalled = None;
        if let Some(taken) = &self.taken {
            taken.flushed();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

fn internal(what: &str, error: &io::Error) -> Error {
    Error::new(ErrorKind::Internal, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        io::{Read as _, Write as _},
        net,
    };

    use randflake::{Layout, Secret};
    use randflake_leases::{Leased, Location, MemoryStore, Namespace};

    use super::{
        super::{
            access::Access, flake::Flake, hiding::Hiding, leases::Leases, limits::Limits,
            service::Offers, tickets::Counters,
        },
        *,
    };

    /// Returns both ends of a connection.
    async fn connected(timeout: Duration) -> (TimedStream, net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = net::TcpStream::connect(address).expect("it listens");
        let (stream, _) = listener.accept().await.expect("a connection");
        (TimedStream::new(stream, timeout, None), client)
    }

    async fn write(timed: &mut TimedStream) -> io::Result<usize> {
        poll_fn(|context| Pin::new(&mut *timed).poll_write(context, &[0; 1 << 14])).await
    }

    fn block_on<T>(test: impl Future<Output = T>) -> T {
        runtime::Builder::new_current_thread().enable_all().build().expect("one").block_on(test)
    }

    #[test]
    fn a_client_that_takes_nothing_is_given_up() {
        block_on(async {
            let (mut timed, _client) = connected(Duration::from_millis(1)).await;
            let error = loop {
                match write(&mut timed).await {
                    Ok(_) => {} // the system takes some
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn a_client_has_all_the_time_again_for_the_next_answer() {
        block_on(async {
            let (mut timed, mut client) = connected(Duration::from_secs(3600)).await;
            let deadline = |timed: &TimedStream| timed.stalled.as_ref().map(|it| it.deadline());
            poll_fn(|context| {
                while Pin::new(&mut timed).poll_write(context, &[0; 1 << 14]).is_ready() {}
                Poll::Ready(())
            })
            .await;
            let first = deadline(&timed);
            assert!(first.is_some());
            let taking = thread::spawn(move || io::copy(&mut client, &mut io::sink()));
            write(&mut timed).await.expect("there is room again");
            assert_eq!(deadline(&timed), first, "a part of an answer moves nothing");
            poll_fn(|context| Pin::new(&mut timed).poll_flush(context)).await.expect("no error");
            assert_eq!(deadline(&timed), None);
            drop(timed);
            assert!(taking.join().expect("no panic").is_ok());
        });
    }

    /// Runs a test with the address of a server, which has a store in memory and ends with the
    /// test.
    fn served<T>(
        limits: Limits,
        access: Access,
        test: impl FnOnce(SocketAddr, &Service) -> T,
    ) -> T {
        let secret = Secret::random();
        let namespace = Namespace::new("default", &secret).expect("a namespace");
        let store = MemoryStore::new(namespace.clone());
        let location = Location::new(move |_| Ok(Box::new(store.clone())));
        let flake = Leased::builder(location.clone(), &secret).max_wait(Duration::ZERO);
        let flake = flake.open_lazily().expect("a generator");
        let offers = Offers {
            flake: Flake::Secret(flake),
            hiding: Hiding::new(None),
            tickets: Counters::new(location.clone(), "tickets"),
            leases: Leases::new(location, namespace, Layout::randflake()),
        };
        let service = Service::new(offers, access, limits, "default", Teller::silent());
        service.take_first_lease().expect("a lease");
        let runtime = runtime::Builder::new_multi_thread().enable_all().build().expect("one");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = Arc::clone(&service);
        let (_end, ending) = watch::channel(());
        runtime.spawn(async move { accept(&listener, &serving, &ending).await });
        test(address, &service)
    }

    /// Longer than any test takes, so that none reaches these limits.
    fn limits() -> Limits {
        let (head, flush) = (Duration::from_secs(3600), Duration::from_secs(3600));
        Limits { head, flush, ..Limits::new(100_000, Duration::from_secs(60), 300) }
    }

    fn token() -> Access {
        Access::of_token(b"0123456789abcdef")
    }

    fn connect(address: SocketAddr) -> net::TcpStream {
        let stream = net::TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a time");
        stream
    }

    fn send(stream: &mut net::TcpStream, request: &str) {
        stream.write_all(request.as_bytes()).expect("it reads");
    }

    fn request(method: &str, path: &str) -> String {
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    }

    fn authorized(method: &str, path: &str) -> String {
        let header = "Authorization: Bearer 0123456789abcdef\r\n\r\n";
        request(method, path).replace("\r\n\r\n", &format!("\r\n{header}"))
    }

    /// Reads a head, and returns its first line and the length of the body that follows.
    fn head(stream: &mut net::TcpStream) -> (String, usize) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a head");
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).expect("text");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |it| it.parse().expect("a number"));
        (head.lines().next().expect("a line").to_owned(), length)
    }

    /// Reads an answer, and returns its status.
    fn status(stream: &mut net::TcpStream) -> String {
        let (line, length) = head(stream);
        stream.read_exact(&mut vec![0; length]).expect("a body");
        line[9..12].to_owned()
    }

    fn is_closed(stream: &mut net::TcpStream) -> bool {
        match stream.read_to_end(&mut Vec::new()) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    fn until(condition: impl Fn() -> bool) {
        while !condition() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn slow_heads_keep_nobody_out() {
        let limits = Limits { connections: 8, ..limits() };
        served(limits, token(), |address, service| {
            let mut known = connect(address);
            send(&mut known, &authorized("GET", "/v1/inspect/0"));
            assert_eq!(status(&mut known), "200");
            let slow = |_| {
                let mut slow = connect(address);
                send(&mut slow, "GET /healthz HTTP/1.1\r\nHost: loc");
                slow
            };
            let mut slow: Vec<_> = (0..100).map(slow).collect();
            let mut new = connect(address);
            send(&mut new, &request("GET", "/healthz"));
            assert_eq!(status(&mut new), "200");
            assert!(service.places.count() <= 8);
            // The oldest are gone, and the client with the token stays, although it came before
            // them.
            assert!(slow[..50].iter_mut().all(is_closed));
            let last = slow.last_mut().expect("one");
            send(last, "alhost\r\n\r\n");
            assert_eq!(status(last), "200");
            send(&mut known, &authorized("GET", "/v1/inspect/0"));
            assert_eq!(status(&mut known), "200");
        });
    }

    #[test]
    fn who_takes_no_answer_keeps_nobody_out() {
        let limits = Limits { connections: 4, ..limits() };
        served(limits, token(), |address, service| {
            let deaf = |_| {
                let mut deaf = connect(address);
                deaf.set_nonblocking(true).expect("an option");
                while deaf.write_all(request("GET", "/openapi.json").as_bytes()).is_ok() {}
                deaf
            };
            let _deaf: Vec<_> = (0..4).map(deaf).collect();
            let mut new = connect(address);
            send(&mut new, &request("GET", "/healthz"));
            assert_eq!(status(&mut new), "200");
            assert!(service.places.count() <= 4);
        });
    }

    #[test]
    fn a_request_is_answered_once_the_answer_before_was_taken() {
        for request in [
            request("GET", "/openapi.json"),
            // A body that the server does not read.
            request("POST", "/openapi.json").replace("Length: 0\r\n\r\n", "Length: 1\r\n\r\nx"),
        ] {
            served(limits(), Access::local(), |address, service| {
                let answers = || service.counts.answers().map(|(_, count)| count).sum::<u64>();
                let mut deaf = connect(address);
                let (sent, taken) = (200_000, deaf.try_clone().expect("one"));
                let sending = thread::spawn(move || {
                    // Many at once, so that there is always one to read.
                    let _ = deaf.write_all(request.repeat(sent).as_bytes());
                });
                // The server answers no more than the system buffers for the client.
                let mut before = u64::MAX;
                while answers() != before || before == 0 {
                    before = answers();
                    thread::sleep(Duration::from_millis(200));
                }
                assert!(before < sent as u64 / 2, "{before}");
                let mut taken = taken;
                assert_eq!(status(&mut taken).len(), 3);
                drop(taken);
                let _ = sending;
            });
        }
    }

    #[test]
    fn large_answers_wait_for_room() {
        let limits = Limits { untaken: 4 << 20, ..limits() };
        served(limits, Access::local(), |address, service| {
            let answered = || service.counts.answers().map(|(_, count)| count).sum::<u64>();
            let all = block_on(service.room.reserve(4 << 20, Duration::ZERO)).expect("room");
            let mut waiting = connect(address);
            send(&mut waiting, &request("POST", "/v1/ids?count=100000"));
            // Small answers need no room.
            let mut other = connect(address);
            for _ in 0..100 {
                send(&mut other, &request("POST", "/v1/ids?count=100"));
                assert_eq!(status(&mut other), "200");
            }
            assert_eq!(answered(), 100);
            drop(all);
            assert_eq!(status(&mut waiting), "200");
        });
    }

    #[test]
    fn a_large_answer_without_room_is_refused() {
        let limits = Limits { untaken: 1 << 20, max_wait: Duration::ZERO, ..limits() };
        served(limits, Access::local(), |address, service| {
            let mut client = connect(address);
            send(&mut client, &request("POST", "/v1/ids?count=100000"));
            assert_eq!(status(&mut client), "503");
            // Room for what a disconnected client has not taken is free again.
            let mut deaf = connect(address);
            for _ in 0..100 {
                send(&mut deaf, &request("POST", "/v1/ids?count=40000"));
            }
            assert!(head(&mut deaf).0.contains("200"));
            drop(deaf);
            until(|| service.places.count() == 1);
            send(&mut client, &request("POST", "/v1/ids?count=40000"));
            assert_eq!(status(&mut client), "200");
        });
    }

    #[test]
    fn a_connection_ends_after_its_time() {
        let limits = Limits { keep: Duration::ZERO, ..limits() };
        served(limits, token(), |address, _| {
            let mut client = connect(address);
            send(&mut client, &request("GET", "/healthz"));
            assert_eq!(status(&mut client), "200");
            assert!(is_closed(&mut client));
        });
        let limits = Limits { head: Duration::from_millis(1), ..self::limits() };
        served(limits, token(), |address, _| {
            let mut client = connect(address);
            send(&mut client, "GET /healthz");
            assert!(is_closed(&mut client));
        });
        let limits = Limits { flush: Duration::from_millis(1), ..self::limits() };
        served(limits, Access::local(), |address, service| {
            let mut client = connect(address);
            for _ in 0..20 {
                send(&mut client, &request("POST", "/v1/ids?count=100000"));
            }
            until(|| service.places.count() == 0);
        });
    }
}
