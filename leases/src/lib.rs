//! Leases of [randflake](https://docs.rs/randflake) node ids: each generator has its own node id
//! for the duration of a lease, and no user has to assign one. How ids are packed is not here but in
//! `randflake`, and sequential numbers are in `randflake-tickets`.
//!
//! A [store](LeaseStore) saves one number per node id, `end_exclusive`: no holder ever stamps that
//! second or a later one, and a new lease starts there or later. So the seconds of any two leases
//! of a node id are disjoint, regardless of clock errors and of messages that are late, repeated or
//! lost. Clocks affect availability, not uniqueness.
//!
//! [`MemoryStore`] is for one process, [`SqliteStore`] for one machine, and [`remote`] for many:
//! with `PostgreSQL`, `MySQL`, Redis or etcd.

#[doc(hidden)]
pub mod bindings;
mod clocks;
pub mod environment;
mod findings;
mod fork;
mod fork_safe_receiver;
mod format;
pub mod keeper;
mod leased;
mod local;
mod location;
mod metrics;
mod namespace;
mod node_ranges;
mod note;
pub mod operator;
mod per_process;
mod polling;
mod processor;
mod protocol;
pub mod remote;
mod row;
mod rules;
#[cfg(test)]
#[path = "../../tests/simulation/system/mod.rs"]
mod simulation;
mod stores;
mod token;
mod written_rows;

#[cfg(feature = "etcd")]
pub use crate::stores::etcd::EtcdClient;
#[cfg(feature = "mysql")]
pub use crate::stores::mysql::MysqlClient;
#[cfg(feature = "postgres")]
pub use crate::stores::postgres::PostgresClient;
#[cfg(feature = "redis")]
pub use crate::stores::redis::RedisClient;
#[cfg(feature = "sqlite")]
pub use crate::stores::sqlite::SqliteStore;
pub use crate::{
    findings::{Finding, Verdict},
    format::LeasedFormat,
    leased::{LeaseStatus, Leased, LeasedBuilder, LeasedCell, Level, leased, leased_snowflake},
    location::Location,
    metrics::LeasedMetrics,
    namespace::{InitMode, Limits, Namespace, NamespaceMetadata},
    node_ranges::NodeRanges,
    note::Note,
    protocol::{
        Acquire, Acquired, Change, Fence, Fenced, LeaseStore, ListCounters, ListedCounters,
        NodeLease, Operation, Release, Released, Renew, Renewed, Reply, Request, Swap, Swapped,
        window,
    },
    stores::memory::MemoryStore,
    token::Token,
};

#[doc(no_inline)]
pub use randflake::{Error, ErrorKind, Result};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;

#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../README.md")]
struct ProjectReadme;

// Each document with a block of Rust.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../docs/guides/async-rust.md")]
#[doc = include_str!("../../docs/guides/codes.md")]
#[doc = include_str!("../../docs/guides/leases.md")]
#[doc = include_str!("../../docs/guides/monitoring.md")]
#[doc = include_str!("../../docs/guides/node-ids.md")]
#[doc = include_str!("../../docs/guides/operations.md")]
#[doc = include_str!("../../docs/guides/servers.md")]
#[doc = include_str!("../../docs/guides/shutdown.md")]
#[doc = include_str!("../../docs/guides/snowflake.md")]
#[doc = include_str!("../../docs/guides/testing.md")]
#[doc = include_str!("../../docs/guides/tickets.md")]
struct Guides;
