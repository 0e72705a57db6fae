//! What is particular to each store: its statements or scripts, its native client, and what it takes for a
//! server or a file to keep what it has granted. No rule of a lease is here.
#![allow(clippy::doc_markdown, reason = "PostgreSQL is a name")]

#[cfg(any(feature = "postgres", feature = "mysql", feature = "redis", feature = "etcd"))]
mod client;
pub(crate) mod etcd;
pub(crate) mod memory;
pub(crate) mod mysql;
pub(crate) mod postgres;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "redis"))]
mod reconnect;
pub(crate) mod redis;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
