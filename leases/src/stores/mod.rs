//! What is specific to each store: its statements or scripts, its native client, and what a server
//! or a file needs in order to keep what it has granted. The rules of leases are elsewhere.
#![allow(clippy::doc_markdown, reason = "PostgreSQL is a name")]

#[cfg(any(feature = "postgres", feature = "mysql", feature = "redis", feature = "etcd"))]
mod client;
pub(crate) mod etcd;
pub(crate) mod memory;
pub(crate) mod mysql;
mod open;
pub(crate) mod postgres;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "redis"))]
mod reconnect;
pub(crate) mod redis;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
