//! The WebAssembly of `randflake/web`: arguments in, a call into the core, a value out. There is no
//! rule about ids here. bindings-node/web is its only caller and documents what users see.
//!
//! Plain functions and numbers, so that no code has to be generated to call them: texts and many
//! numbers go through [`shared`] memory, and an object is a number, its [handle](objects).
#![allow(unsafe_code, reason = "functions that JavaScript calls are exported by their names")]
#![allow(unreachable_pub, reason = "those are reached by their names alone")]

mod codes;
mod ids;
mod layouts;
mod objects;
mod refusals;
mod shared;
