//! Runs the examples of the guide that need what these crates alone have.

#[cfg(all(doctest, feature = "newest"))]
#[doc = include_str!("../../../docs/guides/rust-databases.md")]
struct Guide;
