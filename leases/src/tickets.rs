//! Numbers in a row: 1, 2, 3 …, from a named counter that a store keeps.

#[allow(dead_code, reason = "what is drawn from it comes next")]
pub(crate) mod counter;
