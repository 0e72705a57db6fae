//! What the packages for other languages, the leases and the command share with this crate. It is
//! no part of its interface: any version may change it.

use std::fmt;

use crate::{Error, ErrorKind};

pub use crate::{
    boundary::invalid_boundary_flake,
    clock::unix_nanos,
    fork::ForkId,
    generator::{check_max_wait, invalid_max_drift, invalid_max_wait},
    layout::{
        lifetime::lifetime_over,
        nodes::{invalid_node, too_many_nodes},
    },
    secret::invalid_secret,
};

/// Makes the error of a number that is no signed 64-bit id.
#[cold]
#[must_use]
pub fn invalid_id(got: impl fmt::Display) -> Error {
    Error::new(
        ErrorKind::InvalidId,
        format!("an id must be a signed 64-bit integer or its text, got {got}"),
    )
}

/// Makes the error of a number that is no unsigned 64-bit raw value.
#[cold]
#[must_use]
pub fn invalid_raw(got: impl fmt::Display) -> Error {
    Error::new(
        ErrorKind::InvalidId,
        format!("a raw value must be an unsigned 64-bit integer, got {got}"),
    )
}
