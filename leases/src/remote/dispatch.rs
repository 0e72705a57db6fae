//! Which server takes a step, and what differs between servers: the only place that asks.

use super::{
    address::Address,
    context::Context,
    engine::Engine,
    step::{FreeRange, Page, Seen, Step},
};
use crate::{
    namespace::Limits,
    rules,
    stores::{etcd, mysql, postgres, redis},
};
use randflake::Result;

impl Context {
    pub(crate) async fn step(&self, step: &Step) -> Result<Seen> {
        let seen = match self.engine() {
            Engine::Postgres => postgres::step(self, step).await,
            Engine::Mysql => mysql::step(self, step).await,
            Engine::Redis => redis::step(self, step).await,
            Engine::Etcd => etcd::step(self, step).await,
        }?;
        self.waited(seen.clock);
        Ok(seen)
    }

    /// Creates the table if the store uses one and it is missing.
    pub(crate) async fn create_table(&self) -> Result<()> {
        match self.engine() {
            Engine::Postgres => postgres::create(self).await,
            Engine::Mysql => mysql::create(self).await,
            Engine::Redis | Engine::Etcd => Ok(()),
        }
    }

    /// Reads the texts whose names begin with `prefix`, from the place that an earlier page gave.
    pub(crate) async fn page(&self, prefix: &str, from: &str) -> Result<Page> {
        match self.engine() {
            Engine::Postgres => postgres::page(self, prefix, from).await,
            Engine::Mysql => mysql::page(self, prefix, from).await,
            Engine::Redis => redis::page(self, prefix, from).await,
            Engine::Etcd => etcd::page(self, prefix, from).await,
        }
    }

    /// Finds up to `most` free node ids from `first` to `last`.
    pub(crate) async fn free(
        &self,
        (first, last): (u32, u32),
        below: &str,
        most: usize,
    ) -> Result<FreeRange> {
        match self.engine() {
            Engine::Postgres => postgres::free(self, (first, last), below, most).await,
            Engine::Mysql => mysql::free(self, (first, last), below).await,
            Engine::Redis => redis::free(self, (first, last), below, most).await,
            Engine::Etcd => etcd::free(self, (first, last), below).await,
        }
    }

    /// Returns how many keys one step may write.
    pub(crate) fn most_writes(&self) -> usize {
        match self.engine() {
            Engine::Postgres | Engine::Redis => usize::MAX,
            Engine::Mysql => mysql::WRITES,
            Engine::Etcd => etcd::WRITES,
        }
    }

    /// Returns how many keys one step may read.
    pub(crate) fn most_reads(&self) -> usize {
        match self.engine() {
            Engine::Postgres | Engine::Mysql | Engine::Redis => usize::MAX,
            Engine::Etcd => etcd::READS,
        }
    }

    /// Returns whether the server compares its line and its clock before it writes. Otherwise what
    /// was written on another server does not count.
    pub(crate) fn is_guarded(&self) -> bool {
        match self.engine() {
            Engine::Postgres | Engine::Mysql | Engine::Redis => true,
            Engine::Etcd => false,
        }
    }

    /// Returns for how many seconds after a failover the previous server may still grant.
    pub(crate) fn last_grant(&self) -> u32 {
        match self.engine() {
            Engine::Redis => redis::LAST_GRANT,
            Engine::Postgres | Engine::Mysql | Engine::Etcd => 0,
        }
    }

    /// Returns the time for a decision that affects the uniqueness of ids. If the server's clock
    /// was rounded on its way here, this is the later of the two clocks, if they agree: late enough
    /// if either of them is correct.
    pub(crate) fn confirmed(&self, limits: Limits, clock: Option<i64>) -> Result<i64> {
        let Some(clock) = clock else {
            return Err(self.unavailable(
                "its answer has no Date header, so there is only one clock, which may be wrong; a \
                 fence, a quarantine, a repair and the release of a dead holder need two clocks \
                 that agree: use a client that passes on the header, like the clients for URLs",
            ));
        };
        if self.is_guarded() {
            return Ok(clock);
        }
        rules::check_clocks(limits, clock, self.now)?;
        Ok(clock.max(self.now))
    }
}

impl Address {
    /// Returns the statements by which a role named `app` may lease, and do nothing else.
    #[must_use]
    pub fn grants(&self) -> Vec<String> {
        match self.engine {
            Engine::Postgres => postgres::GRANTS.map(ToOwned::to_owned).to_vec(),
            Engine::Mysql => vec![mysql::grant(&self.database)],
            Engine::Redis | Engine::Etcd => vec![],
        }
    }
}
