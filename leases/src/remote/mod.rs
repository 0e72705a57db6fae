//! Stores with a server: PostgreSQL, MySQL or MariaDB, Redis or Valkey, and etcd.
//!
//! A [`Protocol`] knows the statements for such a server and the meaning of its responses, and does
//! no I/O: each operation is an [`Exchange`] that hands out one [`Statement`] after another and
//! takes each [`Response`]. The caller has a connection and runs them. With a blocking connection,
//! implement [`Client`] and use [`RemoteStore`]; the features `postgres`, `mysql`, `redis` and
//! `etcd` provide one for each server.
//!
//! The servers save the leases and make them durable; nothing here replicates anything. Each
//! operation is one atomic statement, script or transaction, and usually one round trip.
#![allow(clippy::doc_markdown, reason = "PostgreSQL is a name")]

pub(crate) mod address;
mod begin;
mod candidates;
mod check;
pub(crate) mod client;
pub(crate) mod context;
mod dispatch;
mod driver;
pub(crate) mod engine;
pub(crate) mod exchange;
mod hex;
mod protocol;
mod requests;
mod shared;
pub(crate) mod step;
mod store;
#[cfg(test)]
pub(crate) mod table;
pub(crate) mod text;

#[doc(hidden)]
pub use self::{address::Address, engine::Engine};
pub use self::{
    client::Client,
    exchange::{Exchange, Progress, Response, Statement, WaitForReplicas},
    protocol::Protocol,
    requests::RemoteRequest,
    shared::SharedClient,
    store::RemoteStore,
};

#[cfg(test)]
mod tests;
