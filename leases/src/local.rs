//! Stores that run the rules in this process.

use crate::{
    findings::Finding,
    namespace::Namespace,
    protocol::{
        Acquire, Acquired, Fence, Fenced, LeaseStore, List, ListCounters, Listed, ListedCounters,
        NodeIdsSet, Release, ReleaseDead, Released, Renew, Renewed, Repair, Reply, SetNodeIds,
        Shortened, Swap, Swapped,
    },
    rules::{self, LocalTransaction},
    token::Token,
    written_rows::WrittenRows,
};
use randflake::{Error, Result};

/// A store whose rows this process reads and writes in transactions.
pub(crate) trait LocalStore: Send {
    /// Why an attempt at a transaction failed.
    type Failure: From<Error>;

    fn namespace(&self) -> &Namespace;

    /// See [`LeaseStore::name`].
    fn name(&self) -> String;

    /// Runs an operation in one transaction on the namespace, which is created if it is missing and
    /// may be created. Repeats it if it can be repeated. Writes nothing if it fails.
    fn transact<T>(
        &mut self,
        operation: impl Fn(&mut dyn LocalTransaction<Error = Self::Failure>) -> Result<T, Self::Failure>,
    ) -> Result<T>;

    /// See [`LeaseStore::examine`].
    fn examine(&mut self) -> Result<Vec<Finding>> {
        Ok(vec![])
    }

    /// Returns what this client has written.
    fn own(&self) -> &WrittenRows;

    /// See [`LeaseStore::accept_another`].
    fn accept_another(&mut self) {}
}

impl<S: LocalStore> LeaseStore for S {
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
        self.namespace().may_lease()?;
        let outcome = self.transact(|rows| rules::acquire(rows, request));
        outcome.map(|outcome| request.reply(outcome))
    }

    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
        let outcome = self.transact(|rows| rules::renew(rows, request));
        outcome.map(|outcome| request.reply(outcome))
    }

    fn release(&mut self, request: &Release) -> Result<Reply<Released>> {
        let outcome = self.transact(|rows| rules::release(rows, request));
        outcome.map(|outcome| request.reply(outcome))
    }

    fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>> {
        let outcome = self.transact(|rows| rules::fence_namespace(rows));
        outcome.map(|outcome| request.reply(outcome))
    }

    fn list(&mut self, request: &List) -> Result<Reply<Listed>> {
        let outcome = self.transact(|rows| rules::list(rows, request));
        outcome.map(|outcome| request.reply(outcome))
    }

    fn set_node_ids(&mut self, request: &SetNodeIds) -> Result<Reply<NodeIdsSet>> {
        let outcome = self.transact(|rows| rules::set_node_ids(rows, request));
        outcome.map(|outcome| request.reply(outcome))
    }

    fn examine(&mut self) -> Result<Vec<Finding>> {
        LocalStore::examine(self)
    }

    fn repair(&mut self, request: &Repair) -> Result<Reply<Shortened>> {
        let outcome = self.transact(|rows| rules::lower(rows, request));
        outcome.map(|outcome| request.reply(outcome))
    }

    fn release_dead(&mut self, request: &ReleaseDead) -> Result<Reply<Shortened>> {
        let outcome = self.transact(|rows| rules::lower(rows, request));
        outcome.map(|outcome| request.reply(outcome))
    }

    fn swap(&mut self, request: &Swap) -> Result<Reply<Swapped>> {
        self.namespace().may_count()?;
        request.check()?;
        let outcome = self.transact(|rows| rules::swap(rows, request));
        outcome.map(|outcome| request.reply(outcome))
    }

    fn list_counters(&mut self, request: &ListCounters) -> Result<Reply<ListedCounters>> {
        self.namespace().may_count()?;
        let outcome = self.transact(|rows| rules::list_counters(rows));
        outcome.map(|outcome| request.reply(outcome))
    }

    fn name(&self) -> String {
        LocalStore::name(self)
    }

    fn forget(&mut self, token: Token) {
        self.own().forget(token);
    }

    fn accept_another(&mut self) {
        LocalStore::accept_another(self);
    }
}
