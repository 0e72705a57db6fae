//! When a client connects again, and runs a statement a second time.

use crate::{
    Error, Result,
    remote::{Response, Statement},
};

/// A connection that may have been idle for long.
pub(super) trait Reconnect {
    fn is_connected(&self) -> bool;
    fn once(&mut self, statement: &Statement) -> Result<Response, NoResponse>;
    fn forget(&mut self);
}

/// Why a statement has no answer.
pub(super) enum NoResponse {
    /// There is no connection, or none any more: nothing runs.
    Closed(Error),
    /// It took too long: for all that is known the server is still at it.
    Silent(Error),
}

/// Runs a statement, and once more on a new connection if the old one turns out to be closed: each
/// operation may be repeated. Not if the server may still be at it: where it waits for a lock, each
/// further attempt would wait beside it.
pub(super) fn run(client: &mut impl Reconnect, statement: &Statement) -> Result<Response> {
    if client.is_connected() {
        match client.once(statement) {
            Ok(response) => return Ok(response),
            Err(NoResponse::Closed(_)) => client.forget(),
            Err(NoResponse::Silent(error)) => {
                client.forget();
                return Err(error);
            }
        }
    }
    client.once(statement).map_err(|failed| {
        client.forget();
        let (NoResponse::Closed(error) | NoResponse::Silent(error)) = failed;
        error
    })
}
