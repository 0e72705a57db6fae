//! How the node ids of a generator are protected from other processes.

use std::ops::Range;

use crate::{Error, ErrorKind, Layout, Lease, NodeIds, Result};

/// Who guarantees that no other process uses the node ids.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ownership {
    /// The user, for as long as the generator is open: the node ids are manually assigned.
    Manual,
    /// The user, for the seconds of a lease.
    OwnLease,
    /// A coordinator, which granted the lease to this generator alone.
    Granted,
}

impl Ownership {
    /// Returns the ticks of a lease. A coordinator does not know when a layout ends, so its lease is
    /// shortened to the lifetime. A lease that the user wrote down must lie in it.
    pub(super) fn window_of(self, layout: &Layout, lease: Lease) -> Result<Range<u64>> {
        match self {
            Self::Granted => layout.window_within_lifetime(lease),
            Self::Manual | Self::OwnLease => layout.window_of(lease),
        }
    }
}

/// Registers node ids that a coordinator granted.
pub(super) fn grant(registered: &NodeIds, nodes: &[u32]) -> Result<()> {
    match *registered.grant(nodes) {
        [] => Ok(()),
        [node, ..] => Err(Error::new(
            ErrorKind::NodeInUse,
            format!(
                "node id {node} was granted, but this process, or one it was forked from, uses it as \
                 a manual node id; release it and ask for another one"
            ),
        )),
    }
}
