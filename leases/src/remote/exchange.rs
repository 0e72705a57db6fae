//! An operation as an exchange of statements and responses, without I/O.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use randflake::{Error, ErrorKind, Result};

/// How often a statement is tried if the server asks to repeat it.
pub(crate) const TRIES: usize = 10;

/// What to run on the server.
///
/// | store | `text` | `parameters` |
/// |---|---|---|
/// | PostgreSQL | one SQL statement with `$1`, `$2`… | their values, all of type text |
/// | MySQL | one SQL statement with `?` | their values, all of type text |
/// | Redis | the name of a command | its arguments; of `EVAL` the third is the key |
/// | etcd | the path of a request, after host and port | one: the JSON body to `POST` |
///
/// Parameters hold the token of a lease: do not log them.
#[derive(Clone, Eq, PartialEq)]
pub struct Statement {
    /// See the table.
    pub text: &'static str,
    /// See the table.
    pub parameters: Vec<String>,
    /// Redis: the replica confirmation to wait for.
    pub wait: Option<WaitForReplicas>,
}

/// How many replicas of a Redis should confirm what a statement writes.
///
/// The client sends `WAIT replicas milliseconds` directly after the statement, on the same
/// connection and in one round trip, and answers with [`Response::Confirmed`]. On another
/// connection `WAIT` says nothing about this statement. The client does not judge whether enough
/// replicas have confirmed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WaitForReplicas {
    /// How many replicas.
    pub replicas: u32,
    /// How long to wait for them. It is shorter than the time that any client waits for an answer.
    pub milliseconds: u32,
}

/// Shows no parameters: anyone who reads a token could release the lease.
impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement")
            .field("text", &self.text)
            .field("parameters", &self.parameters.len())
            .field("wait", &self.wait)
            .finish()
    }
}

/// The response of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Response {
    /// Rows of text; `None` for null.
    ///
    /// - PostgreSQL: the rows; all columns are text.
    /// - MySQL: the rows, all columns as text; for a statement without rows, one row of one cell
    ///   with the insert id of its answer, `0` if it has none.
    /// - Redis: a list of lists as it is, a flat list or a map as one row, anything else as one
    ///   row of one cell.
    /// - etcd: one row of two cells: the JSON body of the answer, whatever its HTTP status, and its
    ///   `Date` header; `None`, or no second cell, if it has no such header. Without it, fence,
    ///   repair and the release of a dead holder are refused.
    Rows(Vec<Vec<Option<String>>>),
    /// The response to a statement with a [`WaitForReplicas`].
    Confirmed {
        /// As above.
        rows: Vec<Vec<Option<String>>>,
        /// How many replicas confirmed, as `WAIT` reports.
        replicas: u32,
    },
    /// An error that the server reports, for the statement or for `WAIT`.
    Refused {
        /// PostgreSQL's SQLSTATE, MySQL's error number, or the first word of Redis's message.
        code: String,
        /// The message, without a password.
        message: String,
    },
}

/// The state of an [`Exchange`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Progress<T> {
    /// Run this statement, and resume with the response.
    Run(Statement),
    /// The exchange has ended with this outcome.
    Done(T),
}

/// One operation in progress. It hands out statements to run on the server, takes the responses,
/// and ends with a reply. It uses no I/O, no clock and no thread. Dropping it abandons the
/// operation, like an error.
///
/// ```
/// use randflake::Secret;
/// use randflake_leases::{Acquire, Namespace, Note, Token, remote::{Progress, Protocol, Response}};
///
/// let protocol = Protocol::postgres(Namespace::new("orders", &Secret::random())?);
/// let (token, note) = (Token::random(), Note::of_process());
/// let request = Acquire { token, want: 1, ttl: 300, client_now: 1763640000, note };
/// let mut exchange = protocol.begin(&request, request.client_now);
/// let Progress::Run(statement) = exchange.start()? else { panic!("nothing is known yet") };
/// assert!(statement.text.contains("randflake_leases.entry"));
/// // Run it, and resume with the rows.
/// let error = exchange.resume(Response::Rows(vec![])).unwrap_err();
/// assert_eq!(error.code(), "STORE_UNAVAILABLE");
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub struct Exchange<T> {
    future: Option<Pin<Box<dyn Future<Output = Result<T>> + Send>>>,
    channel: Channel,
}

impl<T> Exchange<T> {
    pub(crate) fn new<F>(operation: impl FnOnce(Channel) -> F) -> Self
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let channel = Channel::default();
        Self { future: Some(Box::pin(operation(channel.clone()))), channel }
    }

    /// Starts the exchange. Call it once, before anything else.
    ///
    /// # Errors
    ///
    /// Those of the operation. The exchange has then ended, and the connection must not be used
    /// again.
    pub fn start(&mut self) -> Result<Progress<T>> {
        let Some(future) = &mut self.future else {
            return Err(Error::new(ErrorKind::StoreUnavailable, "this exchange has ended"));
        };
        let mut context = Context::from_waker(Waker::noop());
        match future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => {
                self.future = None;
                outcome.map(Progress::Done)
            }
            Poll::Pending => {
                let statement = self.channel.in_flight().statement.take();
                statement.map(Progress::Run).ok_or_else(|| {
                    Error::new(
                        ErrorKind::StoreUnavailable,
                        "this exchange waits for the response to its last statement",
                    )
                })
            }
        }
    }

    /// Resumes with the response to the last statement.
    ///
    /// # Errors
    ///
    /// As [`Exchange::start`].
    pub fn resume(&mut self, response: Response) -> Result<Progress<T>> {
        self.channel.in_flight().response = Some(response);
        self.start()
    }
}

impl<T> fmt::Debug for Exchange<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("ended", &self.future.is_none()).finish_non_exhaustive()
    }
}

/// Carries statements from an operation to the caller of [`Exchange`], and responses back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channel(Arc<Mutex<InFlight>>);

#[derive(Debug, Default)]
struct InFlight {
    statement: Option<Statement>,
    response: Option<Response>,
}

impl Channel {
    pub(crate) async fn run(&self, statement: Statement) -> Response {
        *self.in_flight() = InFlight { statement: Some(statement), response: None };
        poll_fn(|_| self.in_flight().response.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    fn in_flight(&self) -> MutexGuard<'_, InFlight> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
