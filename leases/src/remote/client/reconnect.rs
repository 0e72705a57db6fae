use crate::{
    Result,
    remote::{Response, Statement},
};

/// A connection that may have been idle for long.
pub(super) trait Reconnect {
    fn is_connected(&self) -> bool;
    fn once(&mut self, statement: &Statement) -> Result<Response>;
    fn forget(&mut self);
}

/// Runs a statement, and once more on a new connection if the old one turns out to be closed: each
/// operation may be repeated.
pub(super) fn run(client: &mut impl Reconnect, statement: &Statement) -> Result<Response> {
    if client.is_connected() {
        if let Ok(response) = client.once(statement) {
            return Ok(response);
        }
        client.forget();
    }
    client.once(statement).inspect_err(|_| client.forget())
}
