//! Connections: how many there are, how long clients may take, and how all of it ends.

use std::{
    convert::Infallible,
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
    thread,
    time::Duration,
};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulConnection, GracefulShutdown},
};
use randflake::{Error, ErrorKind};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    runtime, select,
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Sleep, sleep},
};

use super::{routes, service::Service};
use crate::{Failure, output};

/// Most connections at a time; others wait to be accepted.
const MOST_CONNECTIONS: usize = 1024;

/// How long a client may take for the head of a request, from the last answer on: an idle connection
/// is closed after it, too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a client may take nothing of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest head of a request, in bytes: what a connection keeps in memory.
const LONGEST_HEAD: usize = 16 << 10;

/// How long requests that are under way may take at the end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// How long what is under way in the store may take after that.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Threads that wait for the store. It does one operation at a time.
const BLOCKING_THREADS: usize = 4;

/// Serves until a signal, and gives the node ids back.
pub(super) fn serve(address: SocketAddr, service: &Arc<Service>) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("randflake-serve")
        .build()
        .map_err(|error| internal("cannot start threads", &error))?;
    let served = runtime.block_on(serve_until_the_end(address, service));
    runtime.shutdown_timeout(STORE_TIMEOUT);
    service.tickets.stop(); // both go on at once
    service.flake.close();
    service.tickets.close(STORE_TIMEOUT);
    served
}

async fn serve_until_the_end(address: SocketAddr, service: &Arc<Service>) -> Result<(), Failure> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Error::invalid_argument(format!("cannot listen on {address}: {error}")))?;
    let mut signals = Signals::new().map_err(|error| internal("cannot take signals", &error))?;
    let address = listener.local_addr().unwrap_or(address);
    output::notify(&format_args!("listening on http://{address}"));

    let mut failed = take_first_lease(service)?;
    let mut is_settled = false;
    let (graceful, permits) = (GracefulShutdown::new(), Arc::new(Semaphore::new(MOST_CONNECTIONS)));
    let served = loop {
        select! {
            (stream, permit) = accept(&listener, &permits) => {
                let connection = connection(stream, service);
                let connection = graceful.watch(connection);
                let service = Arc::clone(service);
                tokio::spawn(async move {
                    let _open = OpenConnection::new(service, permit);
                    // A client that has gone away, or was too slow, is told nothing.
                    let _ = connection.await;
                });
            }
            failure = &mut failed, if !is_settled => {
                is_settled = true;
                if let Ok(error) = failure {
                    break Err(error.into());
                }
            }
            () = signals.next() => break Ok(()),
        }
    };
    drop(listener);
    service.end();
    select! {
        () = graceful.shutdown() => {}
        () = sleep(END_TIMEOUT) => {}
        () = signals.next() => {}
    }
    served
}

/// Takes the first lease on a thread of its own. Sends why waiting does not help, if it does not.
fn take_first_lease(service: &Arc<Service>) -> Result<oneshot::Receiver<Error>, Error> {
    let (sender, receiver) = oneshot::channel();
    let service = Arc::clone(service);
    // Not one of the runtime's, for which the end would wait.
    let thread = thread::Builder::new().name("randflake-serve".to_owned());
    let started = thread.spawn(move || {
        if let Err(error) = service.take_first_lease() {
            let _ = sender.send(error);
        }
    });
    started.map_err(|error| internal("cannot start a thread", &error))?;
    Ok(receiver)
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (TcpStream, OwnedSemaphorePermit) {
    loop {
        let permit = Arc::clone(permits).acquire_owned().await.expect("it is never closed");
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            // The client has gone away, or there are no more files.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// One connection, which is counted.
struct OpenConnection {
    service: Arc<Service>,
    _permit: OwnedSemaphorePermit,
}

impl OpenConnection {
    fn new(service: Arc<Service>, permit: OwnedSemaphorePermit) -> Self {
        service.counts.connections.fetch_add(1, Ordering::Relaxed);
        Self { service, _permit: permit }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.service.counts.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers the requests of a connection, one after the other.
fn connection(
    stream: TcpStream,
    service: &Arc<Service>,
) -> impl GracefulConnection<Error = hyper::Error> + Send + 'static {
    // Without it a small answer may wait for the acknowledgement of the last one.
    let _ = stream.set_nodelay(true);
    let service = Arc::clone(service);
    let answering = service_fn(move |request: Request<Incoming>| {
        let service = Arc::clone(&service);
        async move {
            let response = routes::answer(&service, request).await;
            service.counts.answered(response.status().as_u16());
            Ok::<_, Infallible>(response)
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(LONGEST_HEAD)
        .pipeline_flush(true)
        .serve_connection(TokioIo::new(TimedStream::new(stream, WRITE_TIMEOUT)), answering)
}

/// SIGTERM and SIGINT, or Ctrl-C.
struct Signals {
    #[cfg(unix)]
    terminated: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupted: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let terminated = signal(SignalKind::terminate())?;
        Ok(Self { terminated, interrupted: signal(SignalKind::interrupt())? })
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        select! {
            _ = self.terminated.recv() => {}
            _ = self.interrupted.recv() => {}
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

/// A connection that fails where the client takes nothing of what is written for too long.
struct TimedStream {
    stream: TcpStream,
    timeout: Duration,
    /// Since when it takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl TimedStream {
    fn new(stream: TcpStream, timeout: Duration) -> Self {
        Self { stream, timeout, stalled: None }
    }

    fn written<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let timeout = self.timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
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
        Pin::new(&mut self.stream).poll_flush(context)
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
    use std::{future::poll_fn, net};

    use super::*;

    /// Returns both ends of a connection.
    async fn connected(timeout: Duration) -> (TimedStream, net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = net::TcpStream::connect(address).expect("it listens");
        let (stream, _) = listener.accept().await.expect("a connection");
        (TimedStream::new(stream, timeout), client)
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
    fn a_client_that_takes_more_in_time_has_all_the_time_again() {
        block_on(async {
            let (mut timed, mut client) = connected(Duration::from_secs(3600)).await;
            poll_fn(|context| {
                while Pin::new(&mut timed).poll_write(context, &[0; 1 << 14]).is_ready() {}
                Poll::Ready(())
            })
            .await;
            assert!(timed.stalled.is_some());
            let taking = thread::spawn(move || io::copy(&mut client, &mut io::sink()));
            write(&mut timed).await.expect("there is room again");
            assert!(timed.stalled.is_none());
            drop(timed);
            assert!(taking.join().expect("no panic").is_ok());
        });
    }
}
