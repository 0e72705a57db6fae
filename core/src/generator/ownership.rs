//! Who keeps others from the node ids of a generator.

use std::ops::Range;

use crate::{Error, ErrorKind, Layout, Lease, NodeIds, Result};

/// Who keeps others from the node ids.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ownership {
    /// The user, for ever.
    ByHand,
    /// The user, for the seconds of a lease.
    OwnLease,
    /// A coordinator, who granted the lease to this generator alone.
    Granted,
}

impl Ownership {
    /// Returns the ticks of a lease. Who grants leases does not know when a layout ends; who writes
    /// one down by hand has made a mistake.
    pub(super) fn window_of(self, layout: &Layout, lease: Lease) -> Result<Range<u64>> {
        match self {
            Self::Granted => layout.window_within_lifetime(lease),
            Self::ByHand | Self::OwnLease => layout.window_of(lease),
        }
    }
}

/// Notes node ids that a coordinator granted.
pub(super) fn grant(registered: &NodeIds, nodes: &[u32]) -> Result<()> {
    match *registered.grant(nodes) {
        [] => Ok(()),
        [node, ..] => Err(Error::new(
            ErrorKind::NodeInUse,
            format!(
                "node id {node} was granted, and is in use by hand in this process, or in one it \
                 was forked from; give it back and ask for another one"
            ),
        )),
    }
}
