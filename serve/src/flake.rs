//! The generator of the service: of a secret, or of a layout.

use std::time::Duration;

use randflake::{Call, Error, Layout, Plain, Result};
use randflake_leases::{LeaseStatus, Leased, LeasedMetrics};

pub(super) enum Flake {
    Secret(Leased),
    Layout(Leased<Plain>),
}

/// Does the same with either.
macro_rules! each {
    ($flake:ident of $self:expr => $call:expr) => {
        match $self {
            Flake::Secret($flake) => $call,
            Flake::Layout($flake) => $call,
        }
    };
}

impl Flake {
    /// Returns the layout of ids as clients see them: none for encrypted ones.
    pub(super) fn layout_of_ids(&self) -> Option<&Layout> {
        match self {
            Self::Secret(_) => None,
            Self::Layout(flake) => Some(flake.layout()),
        }
    }

    /// Generates an id, if one is available now. Those of a layout are unsigned.
    pub(super) fn try_generate(&self) -> Result<i64> {
        match self {
            Self::Secret(flake) => flake.try_generate(Call::AT_ONCE).map(i64::from),
            Self::Layout(flake) => flake.try_generate(Call::AT_ONCE).map(u64::cast_signed),
        }
    }

    /// Returns how many ids one call may ask for: what a tick has.
    pub(super) fn most_at_once(&self) -> usize {
        match self {
            Self::Secret(_) => usize::MAX,
            Self::Layout(flake) => {
                let per_node = usize::try_from(flake.layout().ids_per_node()).unwrap_or(usize::MAX);
                per_node.saturating_mul(flake.node_ids().len().max(1))
            }
        }
    }

    pub(super) fn try_fill(&self, ids: &mut [i64]) -> Result<()> {
        each!(flake of self => flake.try_fill(ids, Call::AT_ONCE))
    }

    pub(super) fn ready_in(&self) -> Result<Duration> {
        each!(flake of self => flake.ready_in())
    }

    pub(super) fn check_ready(&self, max_wait: Duration) -> Result<()> {
        each!(flake of self => flake.check_ready(max_wait))
    }

    pub(super) fn explain(&self, error: Error) -> Error {
        each!(flake of self => flake.explain(error))
    }

    pub(super) fn metrics(&self) -> LeasedMetrics {
        each!(flake of self => flake.metrics())
    }

    pub(super) fn lease(&self) -> Option<LeaseStatus> {
        each!(flake of self => flake.lease())
    }

    pub(super) fn close(&self) {
        each!(flake of self => flake.close());
    }
}
