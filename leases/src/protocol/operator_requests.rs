//! What an operator sees in a store, and asks it to change.

#[cfg(doc)]
use crate::{namespace::Namespace, protocol::Release};
use crate::{
    namespace::{Limits, TICKETS},
    node_ranges::NodeRanges,
    note::Note,
    protocol::NodeLease,
    token::Token,
};

/// The number of fences within one second that still leave a plausible floor.
const FENCES_AT_ONCE: i64 = 60;

/// Asks what the store knows about node ids.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct List {
    /// A new token, which binds the reply to this request.
    pub token: Token,
    /// The node id; `None` for all that were ever leased.
    pub node_id: Option<u32>,
}

/// Sets which node ids a namespace leases.
///
/// Removed node ids are no longer leased or renewed: a running generator that has one uses it until
/// its lease ends, then leases another one. Added node ids may be leased at once, and their ids may
/// carry times as early as the largest skew before this moment. So you confirm that nobody has made
/// ids with them in the last second plus twice the largest skew, and that nobody makes any later.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SetNodeIds {
    /// A new token, which binds the reply to this request.
    pub token: Token,
    /// All node ids that are leased from now on.
    pub node_ids: NodeRanges,
}

/// The outcome of a [`SetNodeIds`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct NodeIdsSet {
    /// The store's clock.
    pub now: i64,
    /// The node ids that were leased before.
    pub before: NodeRanges,
}

/// Lowers an implausible end.
///
/// A correct clock sets no end after the store's clock plus the longest lease and the largest skew:
/// see [`Listed::furthest`], and [`Listed::furthest_floor`] for the floor. A later end is
/// implausible. It keeps a node id unused until then; a later floor keeps the whole namespace
/// unused. Only such an end is lowered, and not below that bound, so that no lease granted by a
/// correct clock is shortened.
///
/// You confirm that no id with that node id (for a floor: with any node id) carries a second at or
/// after the bound, and that no process that was granted the implausible end still runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Repair {
    /// A new token, which binds the reply to this request.
    pub token: Token,
    /// Which end to lower.
    pub target: Target,
    /// The end to set, a unix second; `None` for the lowest, [`Listed::furthest`] or
    /// [`Listed::furthest_floor`].
    pub bound: Option<i64>,
    /// The unix second on this machine's clock, as a second opinion.
    pub client_now: i64,
}

/// Which end a [`Repair`] lowers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Target {
    /// The end of a node id, which is released.
    Node(u32),
    /// The end of the namespace's quarantine, as if it were fenced now.
    Floor,
}

/// Releases a node id whose holder is dead.
///
/// You confirm that the process that holds it has ended, and so has every copy of its memory. Its
/// last stamp is unknown, so the lease is shortened to the first second that it cannot have
/// stamped, with a clock ahead by the largest skew and ids ahead of that clock by a third of the
/// lease, the most that [`LeasedBuilder::max_drift`](crate::LeasedBuilder::max_drift) allows. Of
/// the usual 300 seconds, 107 are left. An end is never raised: a lease that ends sooner is only
/// released.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReleaseDead {
    /// A new token, which binds the reply to this request.
    pub token: Token,
    /// The lease, as it was listed. If the node id has been granted again since, the request is refused.
    pub lease: NodeLease,
    /// The unix second on this machine's clock, as a second opinion.
    pub client_now: i64,
}

/// The outcome of a [`Repair`] or a [`ReleaseDead`]: an end before and after. They are the same if the
/// lease was short enough.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Shortened {
    /// The store's clock.
    pub now: i64,
    /// The end before.
    pub from: i64,
    /// The end after.
    pub to: i64,
}

/// What a store knows at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Listed {
    /// The store's clock.
    pub now: i64,
    /// Whether the store has reported its clock. Otherwise `now` is this machine's clock, which may
    /// be wrong, so no end is called implausible. That happens only with an etcd whose client does
    /// not pass on the `Date` header.
    pub has_clock: bool,
    /// The bounds of the namespace.
    pub limits: Limits,
    /// See [`Namespace::layout`].
    pub layout: String,
    /// Version of what the store keeps about the namespace.
    pub format: u32,
    /// No lease starts before this second: until then the namespace is in quarantine. 0 if it never
    /// was.
    pub floor: i64,
    /// Leases that end at this second or before are not renewed.
    pub renew_above: i64,
    /// For this many seconds after a promotion the old master may still grant, and a quarantine is
    /// longer by the same amount: 12 in Redis, 0 elsewhere.
    pub last_grant: u32,
    /// Whether the server is not the one that granted these leases, or was set back in time. The
    /// next request from a holder then fences the namespace.
    pub incarnation_changed: bool,
    /// The requested node ids, sorted, without those that were never leased.
    pub nodes: Vec<Node>,
}

/// What a store knows about one node id.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Node {
    /// The last lease; if it was released, shortened to what was used.
    pub lease: NodeLease,
    /// Whether a token holds it, that is, it was not released.
    pub held: bool,
    /// What the last holder says about itself.
    pub note: Note,
}

/// The state of a node id.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum NodeState {
    /// It has a holder.
    Held,
    /// Its lease has ended and was not released: the holder has ended, or cannot reach the store.
    /// It can be leased.
    Expired,
    /// It was released, and can be leased after its end.
    Free,
}

impl NodeState {
    /// Returns the name that all languages use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Expired => "expired",
            Self::Free => "free",
        }
    }
}

/// Numbers of node ids.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Counts {
    /// In the namespace.
    pub all: u32,
    /// With a holder.
    pub held: u32,
    /// Released, with an end in the future.
    pub waiting: u32,
    /// Available to lease now, unless the namespace is in quarantine: the headroom.
    pub free: u32,
    /// With an implausible end; also counted above.
    pub implausible: u32,
}

impl Listed {
    /// Whether it is a namespace of [tickets](crate::Namespace::for_tickets), which has counters and no
    /// node ids.
    #[must_use]
    pub fn has_counters(&self) -> bool {
        self.layout == TICKETS
    }

    /// Returns the last plausible end of a lease: the store's clock plus the longest lease and the
    /// largest skew.
    #[must_use]
    pub fn furthest(&self) -> i64 {
        self.limits.furthest(self.now)
    }

    /// Returns the last plausible floor.
    #[must_use]
    pub fn furthest_floor(&self) -> i64 {
        self.furthest().saturating_add(self.last_grant.into())
    }

    /// Returns whether only a wrong clock can have set the floor; see [`Repair`]. Each fence raises
    /// it by at least a second, so several in one second leave a floor that is a little later than
    /// the last plausible floor of a single fence.
    #[must_use]
    pub fn is_floor_implausible(&self) -> bool {
        self.floor > self.furthest_floor().saturating_add(FENCES_AT_ONCE)
    }

    /// Returns the state of a node id of this listing.
    #[must_use]
    pub fn state(&self, node: &Node) -> NodeState {
        match (node.held, node.lease.end_exclusive > self.now) {
            (true, true) => NodeState::Held,
            (true, false) => NodeState::Expired,
            (false, _) => NodeState::Free,
        }
    }

    /// Returns the number of seconds until the end; 0 if it has passed.
    #[must_use]
    pub fn seconds_left(&self, node: &Node) -> i64 {
        node.lease.end_exclusive.saturating_sub(self.now).max(0)
    }

    /// Returns whether only a wrong clock can have set this end; see [`Repair`].
    #[must_use]
    pub fn is_implausible(&self, end_exclusive: i64) -> bool {
        self.has_clock && end_exclusive > self.furthest()
    }

    /// Returns whether most held node ids have an implausible end, in a listing of all: this is how
    /// current leases look to a clock that is behind.
    #[must_use]
    pub fn is_clock_doubtful(&self) -> bool {
        let held: Vec<_> =
            self.nodes.iter().filter(|node| self.state(node) == NodeState::Held).collect();
        let implausible =
            held.iter().filter(|node| self.is_implausible(node.lease.end_exclusive)).count();
        2 * implausible > held.len()
    }

    /// Returns the second from which nobody has a lease of a node id that the namespace no longer
    /// leases, in a listing of all node ids after they were [set](SetNodeIds). A grant decided
    /// earlier may still be written, for example if it is waiting for a lock, so this is never
    /// earlier than [`furthest`](Self::furthest). In a quarantine it is not before the quarantine's
    /// end, since leases that the store has lost may still be running.
    #[must_use]
    pub fn unleased_from(&self) -> i64 {
        let outside =
            self.nodes.iter().filter(|node| !self.limits.node_ids.contains(node.lease.node_id));
        let ends = outside.map(|node| node.lease.end_exclusive);
        ends.fold(self.furthest().max(self.floor), i64::max)
    }

    /// Counts the node ids, in a listing of all of them.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let count = |test: &dyn Fn(&Node) -> bool| {
            let nodes = self.nodes.iter().filter(|node| test(node)).count();
            u32::try_from(nodes).unwrap_or(u32::MAX)
        };
        let node_ids = self.limits.node_ids;
        let all = node_ids.count();
        let taken = |node: &Node| node.lease.end_exclusive > self.now;
        let is_leased = |node: &Node| node_ids.contains(node.lease.node_id);
        Counts {
            all,
            held: count(&|node| is_leased(node) && node.held && taken(node)),
            waiting: count(&|node| is_leased(node) && !node.held && taken(node)),
            free: all.saturating_sub(count(&|node| is_leased(node) && taken(node))),
            implausible: count(&|node| self.is_implausible(node.lease.end_exclusive)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        namespace::{Namespace, NamespaceMetadata},
        rules,
    };

    #[test]
    fn several_fences_in_a_second_leave_a_plausible_floor() {
        const NOW: i64 = 1_763_640_000;
        let metadata = NamespaceMetadata::new(&Namespace::for_tickets("tickets").expect("a name"));
        let mut quarantine = rules::Quarantine::default();
        let listed = |quarantine| rules::listed(&metadata, quarantine, NOW, vec![]);
        for fence in 1..=10 {
            (quarantine, _) =
                rules::fence(metadata.limits, 0, quarantine, NOW).expect("in its life");
            assert!(!listed(quarantine).is_floor_implausible(), "fence {fence}");
        }
        quarantine.floor += 3600;
        assert!(listed(quarantine).is_floor_implausible());
    }
}
