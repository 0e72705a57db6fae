//! Operations for an operator: for a command line, a script or a dashboard.
//!
//! They need no secret: open the store with [`Namespace::for_operator`]. Each function sends its request
//! under a new token, and checks that the answer is to that request.
//!
//! ```
//! use randflake::Secret;
//! use randflake_leases::{Location, Namespace, operator::{self, NodeState}};
//! # let directory = std::env::temp_dir().join(format!("randflake-operate-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).unwrap();
//! # let path = directory.join("ids.db");
//!
//! let flake = randflake_leases::leased(path.clone(), &Secret::random())?;
//!
//! let mut store = Location::from(path).open(&Namespace::for_operator("default")?)?;
//! let listed = operator::list(&mut *store)?;
//! let node = &listed.nodes[0];
//! assert_eq!(node.lease.node_id, flake.node_ids()[0]);
//! assert_eq!(listed.state(node), NodeState::Held);
//! println!("{} until {}, by {}", node.lease.node_id, node.lease.end_exclusive, node.note);
//! assert_eq!((listed.counts().held, listed.counts().free), (1, 131_071));
//! # drop(flake);
//! # std::fs::remove_dir_all(&directory).unwrap();
//! # Ok::<(), randflake::Error>(())
//! ```
#![allow(clippy::missing_errors_doc, reason = "the methods of LeaseStore say it")]

use randflake::{Clock as _, Error, Result, SystemClock};

#[cfg(doc)]
use crate::namespace::Namespace;
pub use crate::protocol::{
    Counts, List, Listed, Node, NodeIdsSet, NodeState, ReleaseDead, Repair, SetNodeIds, Shortened,
    Target,
};
use crate::{
    node_ranges::NodeRanges,
    protocol::{Fence, Fenced, LeaseStore, NodeLease, outcome_of},
    rules,
    token::Token,
};

/// Lists every node id that was ever leased; see [`LeaseStore::list`].
pub fn list(store: &mut dyn LeaseStore) -> Result<Listed> {
    let request = List { token: Token::random(), node_id: None };
    outcome_of(&request, store.list(&request))
}

/// Lists one node id; see [`LeaseStore::list`]. One that was never leased is not in the listing.
/// `INVALID_ARGUMENT`: it was never leased and is greater than every node id that the namespace
/// leases.
pub fn inspect(store: &mut dyn LeaseStore, node_id: u32) -> Result<Listed> {
    let request = List { token: Token::random(), node_id: Some(node_id) };
    let listed = outcome_of(&request, store.list(&request))?;
    let node_ids = listed.limits.node_ids;
    if listed.nodes.is_empty() && node_id > node_ids.last() {
        return Err(Error::invalid_argument(format!(
            "this namespace leases the node ids {node_ids}, got {node_id}"
        )));
    }
    Ok(listed)
}

/// Fences the namespace; see [`LeaseStore::fence`]. [`ClockSkew`](randflake::ErrorKind::ClockSkew):
/// the store's clock and this machine's differ, so that the fence might end too soon.
pub fn fence(store: &mut dyn LeaseStore) -> Result<Fenced> {
    let client_now = SystemClock.unix_seconds()?;
    let listed = inspect(store, 0)?;
    rules::check_clocks(listed.limits, listed.now, client_now)?;
    let request = Fence { token: Token::random() };
    outcome_of(&request, store.fence(&request))
}

/// Sets which node ids the namespace leases; see [`SetNodeIds`]. Returns the listing after the
/// change, which says [when](Listed::unleased_from) the others are free of leases.
///
/// ```
/// use randflake::Secret;
/// use randflake_leases::{LeaseStore, MemoryStore, Namespace, operator};
///
/// let mut store = MemoryStore::new(Namespace::new("orders", &Secret::random())?);
/// let listed = operator::set_node_ids(&mut store, "0-6,8-1023".parse()?)?;
/// assert_eq!((listed.counts().all, listed.unleased_from()), (1023, listed.furthest()));
/// # Ok::<(), randflake::Error>(())
/// ```
pub fn set_node_ids(store: &mut dyn LeaseStore, node_ids: NodeRanges) -> Result<Listed> {
    let request = SetNodeIds { token: Token::random(), node_ids };
    outcome_of(&request, store.set_node_ids(&request))?;
    list(store)
}

/// Lowers an implausible end; see [`Repair`]. Returns `INVALID_ARGUMENT` also if [most held ends
/// are implausible](Listed::is_clock_doubtful) and no bound is given.
pub fn repair(store: &mut dyn LeaseStore, target: Target, bound: Option<i64>) -> Result<Shortened> {
    let listed = list(store)?;
    if bound.is_none() && listed.is_clock_doubtful() {
        return Err(Error::invalid_argument(format!(
            "most held node ids have an end after {}, so the clock that shows {} is probably \
             wrong: correct it; if it is correct, give the end to set",
            listed.furthest(),
            listed.now
        )));
    }
    let client_now = SystemClock.unix_seconds()?;
    let request = Repair { token: Token::random(), target, bound, client_now };
    outcome_of(&request, store.repair(&request))
}

/// Releases a node id whose holder is dead. Pass its lease as it was listed; see [`ReleaseDead`].
pub fn release_dead(store: &mut dyn LeaseStore, lease: NodeLease) -> Result<Shortened> {
    let client_now = SystemClock.unix_seconds()?;
    let request = ReleaseDead { token: Token::random(), lease, client_now };
    outcome_of(&request, store.release_dead(&request))
}
