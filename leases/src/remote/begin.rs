//! What can be begun on a server: an operation of a store, the creation of a namespace, and an
//! examination.

use super::{
    check, context::Context, engine::Engine, exchange::Exchange, protocol::Protocol,
    requests::RemoteRequest,
};
use crate::{
    findings::Finding,
    namespace::InitMode,
    protocol::Reply,
    stores::{etcd, mysql, postgres, redis},
};
use randflake::Result;

impl Protocol {
    /// Creates the namespace if it is missing, as [`InitMode`] says, and checks it if it exists.
    /// Run it once, not at each start, because an empty store may be new or may have lost
    /// everything.
    ///
    /// The exchange ends with the errors of [`LeaseStore::acquire`](crate::LeaseStore::acquire).
    #[must_use]
    pub fn init(&self, mode: InitMode, now: i64) -> Exchange<()> {
        self.exchange(now, async move |context| {
            let known = check::check(&context, Some(mode)).await;
            known.map(drop)
        })
    }

    /// Begins an operation of [`LeaseStore`](crate::LeaseStore).
    #[must_use]
    pub fn begin<R: RemoteRequest>(&self, request: &R, now: i64) -> Exchange<Reply<R::Outcome>> {
        let request = request.clone();
        self.exchange(now, async move |context| {
            let outcome = request.run(&context).await;
            outcome.map(|outcome| Reply::new(request.token(), R::OPERATION, outcome))
        })
    }

    /// Begins to look at the server; see [`LeaseStore::examine`](crate::LeaseStore::examine).
    #[must_use]
    pub fn examine(&self, now: i64) -> Exchange<Vec<Finding>> {
        self.exchange(now, async move |context| match context.engine() {
            Engine::Postgres => postgres::examine(&context).await,
            Engine::Mysql => mysql::examine(&context).await,
            Engine::Redis => redis::examine(&context).await,
            Engine::Etcd => etcd::examine(&context).await,
        })
    }

    fn exchange<T, F>(&self, now: i64, operation: impl FnOnce(Context) -> F) -> Exchange<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let protocol = self.clone();
        Exchange::new(|channel| operation(Context::new(protocol, channel, now)))
    }
}
