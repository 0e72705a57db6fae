//! What goes to a server and comes back, and an operation as a dialogue of the two.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::{Error, ErrorKind, Result};

/// What to run on the server.
///
/// | store | `text` | `parameters` |
/// |---|---|---|
/// | PostgreSQL | one SQL statement with `$1`, `$2`… | their values, all of type text |
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
    /// Redis: what to ask besides.
    pub wait: Option<Wait>,
}

/// How many replicas of a Redis should have what a statement writes.
///
/// Whoever runs the statement sends `WAIT replicas milliseconds` right behind it, on the same
/// connection and in one round trip, and answers with [`Response::Confirmed`]. On another connection
/// it would be about nothing. How many are enough is not for the client to judge.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wait {
    /// How many.
    pub replicas: u32,
    /// How long to wait for them, shorter than any client waits for an answer.
    pub milliseconds: u32,
}

/// Shows no parameters: whoever has a token could release its lease.
impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement")
            .field("text", &self.text)
            .field("parameters", &self.parameters.len())
            .field("wait", &self.wait)
            .finish()
    }
}

/// What a server said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Response {
    /// Rows of text; `None` for null.
    ///
    /// - PostgreSQL: the rows; all columns are text.
    /// - Redis: a list of lists as it is, a flat list or a map as one row, anything else as one
    ///   row of one cell.
    /// - etcd: one row of two cells, the JSON body of the answer, whatever its HTTP status, and its
    ///   `Date` header; `None`, or no second cell, if it has none. Without it nothing can be fenced,
    ///   repaired, or released for the dead.
    Rows(Vec<Vec<Option<String>>>),
    /// What came of a statement with a [`Wait`].
    Confirmed {
        /// As above.
        rows: Vec<Vec<Option<String>>>,
        /// What `WAIT` said: how many replicas have it.
        replicas: u32,
    },
    /// An error that the server itself reports, to the statement or to `WAIT`.
    Refused {
        /// The SQLSTATE of PostgreSQL; the first word of Redis's message.
        code: String,
        /// The message, without a password.
        message: String,
    },
}

/// How far a [`Call`] is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Progress<T> {
    /// Run this, and go on with what the server says.
    Run(Statement),
    /// The call has ended with this.
    Done(T),
}

/// One operation under way: it says what to run on the server, takes what the server says, and in
/// the end has a reply. It does nothing by itself: no I/O, no clock, no thread. Dropping it gives
/// the operation up, as an error would.
///
/// ```
/// use randflake::Secret;
/// use randflake_leases::{Acquire, Namespace, Note, Token, remote::{Progress, Protocol, Response}};
///
/// let protocol = Protocol::postgres(Namespace::new("orders", &Secret::random())?);
/// let (token, note) = (Token::random(), Note::of_process());
/// let request = Acquire { token, want: 1, ttl: 300, client_now: 1763640000, note };
/// let mut call = protocol.acquire(&request, request.client_now);
/// let Progress::Run(statement) = call.start()? else { panic!("nothing is known yet") };
/// assert!(statement.text.contains("randflake_namespace"));
/// // Run it, and hand over the rows.
/// let error = call.resume(Response::Rows(vec![])).unwrap_err();
/// assert_eq!(error.code(), "STORE_UNAVAILABLE");
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub struct Call<T> {
    future: Option<Pin<Box<dyn Future<Output = Result<T>> + Send>>>,
    line: Line,
}

impl<T> Call<T> {
    pub(crate) fn new<F>(operation: impl FnOnce(Line) -> F) -> Self
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let line = Line::default();
        Self { future: Some(Box::pin(operation(line.clone()))), line }
    }

    /// Begins: once, before anything else.
    ///
    /// # Errors
    ///
    /// Of the operation. The call has ended then, and the connection must not be used again.
    pub fn start(&mut self) -> Result<Progress<T>> {
        let Some(future) = &mut self.future else {
            return Err(Error::new(ErrorKind::StoreUnavailable, "this call has ended"));
        };
        let mut context = Context::from_waker(Waker::noop());
        match future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => {
                self.future = None;
                outcome.map(Progress::Done)
            }
            Poll::Pending => {
                let statement = self.line.slot().statement.take();
                statement.map(Progress::Run).ok_or_else(|| {
                    Error::new(
                        ErrorKind::StoreUnavailable,
                        "this call waits for what the server says to its last statement",
                    )
                })
            }
        }
    }

    /// Goes on with what the server said to the last statement.
    ///
    /// # Errors
    ///
    /// As [`Call::start`].
    pub fn resume(&mut self, response: Response) -> Result<Progress<T>> {
        self.line.slot().response = Some(response);
        self.start()
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("ended", &self.future.is_none()).finish_non_exhaustive()
    }
}

/// Between an operation and whoever runs its statements.
#[derive(Clone, Default)]
pub(crate) struct Line(Arc<Mutex<Slot>>);

#[derive(Default)]
struct Slot {
    statement: Option<Statement>,
    response: Option<Response>,
}

impl Line {
    pub(crate) async fn run(&self, statement: Statement) -> Response {
        *self.slot() = Slot { statement: Some(statement), response: None };
        poll_fn(|_| self.slot().response.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
