//! The native half of the npm package `randflake`: arguments in, a call into the core, a value
//! out. There is no rule about ids or leases here. The JavaScript half is its only caller and documents
//! what users see.
//!
//! Functions of `#[napi]` are exported as they are. `load` returns the functions that are called
//! for every id, which are faster (see `ffi`).
#![allow(unreachable_pub, reason = "#[napi] takes pub functions only")]
// It exports nothing to a test binary, which has no JavaScript engine.
#![cfg_attr(test, allow(dead_code))]

mod arguments;
mod boundary_flake;
mod cloak;
mod clock;
mod closing;
mod codes;
mod command;
mod dated_tickets;
mod environment;
mod ffi;
mod generator;
mod inspector;
mod layout;
mod lazy;
mod leased;
mod metrics;
mod module;
mod operator;
mod settings;
mod stores;
mod text;
mod threads;
mod tickets;
