//! When a client connects again, and runs a statement a second time.

use crate::remote::{
    client::Client,
    exchange::{Response, Statement},
};
use randflake::{Error, Result};

/// A connection that may have been idle for a long time.
pub(super) trait Reconnect {
    fn is_connected(&self) -> bool;
    fn once(&mut self, statement: &Statement) -> Result<Response, NoResponse>;
    fn forget(&mut self);
}

/// Why a statement has no answer.
pub(super) enum NoResponse {
    /// There is no connection, or it was closed: nothing is running.
    Closed(Error),
    /// It took too long: the server may still be running it.
    Silent(Error),
}

impl<C: Reconnect + Send> Client for C {
    /// Runs a statement, and runs it again on a new connection if the old one turns out to be
    /// closed: each operation may be repeated. It is not repeated if the server may still be
    /// running it: if that waits for a lock, each further attempt would wait as well.
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        if self.is_connected() {
            match self.once(statement) {
                Ok(response) => return Ok(response),
                Err(NoResponse::Closed(_)) => self.forget(),
                Err(NoResponse::Silent(error)) => {
                    self.forget();
                    return Err(error);
                }
            }
        }
        self.once(statement).map_err(|failed| {
            self.forget();
            let (NoResponse::Closed(error) | NoResponse::Silent(error)) = failed;
            error
        })
    }

    fn discard(&mut self) {
        self.forget();
    }

    fn rest(&mut self) {
        self.forget();
    }
}
