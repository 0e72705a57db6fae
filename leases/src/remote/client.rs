//! A connection to a server, as a caller has it.

use crate::remote::exchange::{Response, Statement};
#[cfg(doc)]
use randflake::ErrorKind;
use randflake::Result;

/// A blocking connection to a server, which it may open when needed.
///
/// ```
/// use randflake_leases::{Error, remote::{Client, Response, Statement}};
///
/// struct Mine { /* a connection */ }
///
/// impl Client for Mine {
///     fn run(&mut self, statement: &Statement) -> Result<Response, Error> {
///         let Statement { text, parameters, wait } = statement;
///         // Connect if necessary. Run text with parameters, each of type text, outside of any
///         // transaction. For Redis, see `WaitForReplicas`.
///         # let _ = (text, parameters, wait);
///         Ok(Response::Rows(vec![vec![Some("cell".into())]]))
///     }
///     fn discard(&mut self) { /* close the connection; the next statement opens another */ }
/// }
/// ```
pub trait Client: Send {
    /// Runs a statement, which is committed when this returns, and returns the response. Waits a few
    /// seconds at most.
    ///
    /// # Errors
    ///
    /// [`StoreUnavailable`](ErrorKind::StoreUnavailable): the server cannot be reached, or
    /// did not answer. The message must not contain a password. An error that the server reports is
    /// [`Response::Refused`].
    fn run(&mut self, statement: &Statement) -> Result<Response>;

    /// Discards the connection, which may deliver the answer to another request.
    fn discard(&mut self);

    /// Says that no statement follows for a minute or longer. A client then closes its own
    /// connection, but not a borrowed one. The default does nothing.
    fn rest(&mut self) {}
}

impl Client for Box<dyn Client> {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        (**self).run(statement)
    }

    fn discard(&mut self) {
        (**self).discard();
    }

    fn rest(&mut self) {
        (**self).rest();
    }
}
