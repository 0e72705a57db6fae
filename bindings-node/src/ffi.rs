//! Node-API made safe. The only place with `unsafe`; it imports nothing else from this crate.
#![allow(unsafe_code, reason = "Node-API is a C interface")]

mod function;
mod memory;
mod value;

pub(crate) use self::{
    function::{Callback, Outcome, outcome, whole_ms},
    memory::{CallBuffer, copied, fill_by_copy, in_place},
    value::{Js, Reference, Value, refused_by_napi},
};
