//! What an operator sees of a store, and does to it: for a command line, a script, a dashboard.
//!
//! Nothing here needs the secret of a namespace: open the store with [`Namespace::for_operator`].
//! The functions ask a store, under a token of their own, and check that the answer is to them.
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

use randflake::{Clock as _, SystemClock};

use crate::{
    Error, Fence, Fenced, LeaseStore, Limits, NodeLease, Note, Operation, Reply, Result, Token,
    rules,
};
#[cfg(doc)]
use crate::{Namespace, Release};

/// Asks what is known of node ids.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct List {
    /// A fresh token, by which the reply is known.
    pub token: Token,
    /// Of which one; none for all that were ever leased.
    pub node_id: Option<u32>,
}

/// Sets an end back that only a wrong clock can have set.
///
/// No right clock sets an end after the store's clock, the longest lease and the largest skew: see
/// [`Listed::furthest`], and [`Listed::furthest_floor`] for the floor. An end beyond that keeps a
/// node id idle until then, a floor the whole namespace. Only such an end is lowered, and not below that bound, so that no lease of a right
/// clock is cut.
///
/// Whoever asks states that no id with that node id (with a floor: with any) carries a second at
/// or after the bound, and that no process that was given the far end still runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Repair {
    /// A fresh token, by which the reply is known.
    pub token: Token,
    /// Whose end.
    pub target: Target,
    /// The end to set, a unix second; none for the lowest, [`Listed::furthest`] or
    /// [`Listed::furthest_floor`].
    pub bound: Option<i64>,
    /// The unix second on another clock: that of the machine that asks.
    pub client_now: i64,
}

/// What a [`Repair`] is of.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Target {
    /// A node id: its end. It belongs to nobody then.
    Node(u32),
    /// The namespace: the end of its quarantine, as if it had been fenced now.
    Floor,
}

/// Releases a node id for a holder that cannot any more.
///
/// Whoever asks states that the process that holds it has ended, and with it every copy of its
/// memory. Which second it stamped last is not known: the end is cut to the first one that it cannot
/// have stamped, by a clock that differed by no more than the largest skew and with ids a third of
/// the lease ahead of it, which is the most that
/// [`LeasedBuilder::max_drift`](crate::LeasedBuilder::max_drift) allows. Of the usual 300 seconds
/// 107 are left. An end is never raised: a lease that ends sooner is only given back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReleaseDead {
    /// A fresh token, by which the reply is known.
    pub token: Token,
    /// The lease that was looked at. Who has been granted the node id since has another one, and
    /// keeps it.
    pub lease: NodeLease,
    /// The unix second on another clock: that of the machine that asks.
    pub client_now: i64,
}

/// What came of a [`Repair`] or a [`ReleaseDead`]: an end before and after. They are the same
/// where there was nothing to cut.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Shortened {
    /// The store's clock.
    pub now: i64,
    /// The end that it had.
    pub from: i64,
    /// The end that it has.
    pub to: i64,
}

/// What a store knows, at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Listed {
    /// The store's clock.
    pub now: i64,
    /// Whether the store has shown its clock. Otherwise `now` is that of this machine, which may be
    /// wrong: no end is called far by it. Only an etcd whose client passes no `Date` on has none.
    pub has_clock: bool,
    /// The bounds of the namespace.
    pub limits: Limits,
    /// See [`Namespace::layout`].
    pub layout: String,
    /// Version of what the store keeps of the namespace.
    pub format: u32,
    /// No lease starts before this second: until then the namespace is in quarantine. 0 if it
    /// never was.
    pub floor: i64,
    /// Leases that end at this second or before are not renewed.
    pub renew_above: i64,
    /// So many seconds after another server was promoted a master may still grant, and so much longer
    /// a quarantine is: 12 in Redis, 0 elsewhere.
    pub last_grant: u32,
    /// Whether the server is no longer the one that granted these leases, or has gone back in its
    /// history. The next request of a holder fences the namespace.
    pub incarnation_changed: bool,
    /// What was asked for, sorted by node id. One that was never leased is not in it.
    pub nodes: Vec<Node>,
}

/// What a store knows of one node id.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Node {
    /// The seconds of the last lease, cut where it was given back.
    pub lease: NodeLease,
    /// Whether it was not given back: a token holds it.
    pub held: bool,
    /// What its last holder says of itself.
    pub note: Note,
}

/// How a node id is doing.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum NodeState {
    /// Somebody holds it.
    Held,
    /// Its lease is over, and was not given back: the holder is gone, or has no connection.
    /// Anybody can have it.
    Expired,
    /// It was given back; anybody can have it from its end on, which may still be to come.
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

/// How many node ids.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Counts {
    /// That the namespace has.
    pub all: u32,
    /// That somebody holds.
    pub held: u32,
    /// That were given back and have an end that is still to come.
    pub waiting: u32,
    /// That can be leased now, were it not for a quarantine: the headroom.
    pub free: u32,
    /// Whose end only a wrong clock can have set; these are counted above, too.
    pub far: u32,
}

impl Listed {
    /// Returns the last second at which a lease of a right clock may end: by the store's clock,
    /// the longest lease and the largest skew.
    #[must_use]
    pub fn furthest(&self) -> i64 {
        rules::furthest(self.limits, self.now)
    }

    /// Returns the last second at which the floor of a right clock may lie.
    #[must_use]
    pub fn furthest_floor(&self) -> i64 {
        self.furthest().saturating_add(self.last_grant.into())
    }

    /// Returns whether only a wrong clock can have set the floor; see [`Repair`].
    #[must_use]
    pub fn is_floor_far(&self) -> bool {
        self.floor > self.furthest_floor()
    }

    /// Returns how a node id of this listing is doing.
    #[must_use]
    pub fn state(&self, node: &Node) -> NodeState {
        match (node.held, node.lease.end_exclusive > self.now) {
            (true, true) => NodeState::Held,
            (true, false) => NodeState::Expired,
            (false, _) => NodeState::Free,
        }
    }

    /// Returns how many seconds are left until the end; 0 if it has passed.
    #[must_use]
    pub fn seconds_left(&self, node: &Node) -> i64 {
        node.lease.end_exclusive.saturating_sub(self.now).max(0)
    }

    /// Returns whether only a wrong clock can have set this end; see [`Repair`].
    #[must_use]
    pub fn is_far(&self, end_exclusive: i64) -> bool {
        self.has_clock && end_exclusive > self.furthest()
    }

    /// Returns whether most of the node ids that somebody holds have such an end, in a listing of
    /// all: that is how live leases look to a clock that is behind.
    #[must_use]
    pub fn is_clock_doubtful(&self) -> bool {
        let held: Vec<_> =
            self.nodes.iter().filter(|node| self.state(node) == NodeState::Held).collect();
        let far = held.iter().filter(|node| self.is_far(node.lease.end_exclusive)).count();
        2 * far > held.len()
    }

    /// Counts the node ids, in a listing of all of them.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let count = |test: &dyn Fn(&Node) -> bool| {
            let nodes = self.nodes.iter().filter(|node| test(node)).count();
            u32::try_from(nodes).unwrap_or(u32::MAX)
        };
        let all = self.limits.max_node_id + 1;
        let taken = |node: &Node| node.lease.end_exclusive > self.now;
        Counts {
            all,
            held: count(&|node| node.held && taken(node)),
            waiting: count(&|node| !node.held && taken(node)),
            free: all.saturating_sub(count(&taken)),
            far: count(&|node| self.is_far(node.lease.end_exclusive)),
        }
    }
}

/// Lists every node id that was ever leased; see [`LeaseStore::list`].
pub fn list(store: &mut dyn LeaseStore) -> Result<Listed> {
    ask(|token| store.list(&List { token, node_id: None }), Operation::List)
}

/// Lists one node id; see [`LeaseStore::list`]. One that was never leased is not in the listing.
/// `INVALID_ARGUMENT`: the namespace has no such node id.
pub fn inspect(store: &mut dyn LeaseStore, node_id: u32) -> Result<Listed> {
    let request = |token| List { token, node_id: Some(node_id) };
    let listed = ask(|token| store.list(&request(token)), Operation::List)?;
    let max_node_id = listed.limits.max_node_id;
    if node_id > max_node_id {
        return Err(Error::invalid_argument(format!(
            "this namespace has the node ids 0 to {max_node_id}, got {node_id}"
        )));
    }
    Ok(listed)
}

/// Fences the namespace; see [`LeaseStore::fence`]. [`ClockSkew`](randflake::ErrorKind::ClockSkew):
/// the store's clock and this machine's differ, so that the fence might end too soon.
pub fn fence(store: &mut dyn LeaseStore) -> Result<Fenced> {
    let client_now = SystemClock.unix_seconds()?;
    let listed = ask(|token| store.list(&List { token, node_id: Some(0) }), Operation::List)?;
    rules::check_clocks(listed.limits, listed.now, client_now)?;
    ask(|token| store.fence(&Fence { token }), Operation::Fence)
}

/// Sets an end back that only a wrong clock can have set; see [`Repair`]. `INVALID_ARGUMENT` also
/// where [most held ends are such](Listed::is_clock_doubtful) and no bound is given.
pub fn repair(store: &mut dyn LeaseStore, target: Target, bound: Option<i64>) -> Result<Shortened> {
    let listed = list(store)?;
    if bound.is_none() && listed.is_clock_doubtful() {
        return Err(Error::invalid_argument(format!(
            "most of the node ids that are held have an end after {}, as if only wrong clocks could \
             have set it; so rather the clock that shows {} is wrong: set it right; if it is, say \
             which end to set",
            listed.furthest(),
            listed.now
        )));
    }
    let client_now = SystemClock.unix_seconds()?;
    let request = |token| Repair { token, target, bound, client_now };
    ask(|token| store.repair(&request(token)), Operation::Repair)
}

/// Releases a node id, whose lease was looked at, for a holder that is dead for sure; see
/// [`ReleaseDead`].
pub fn release_dead(store: &mut dyn LeaseStore, lease: NodeLease) -> Result<Shortened> {
    let client_now = SystemClock.unix_seconds()?;
    let request = |token| ReleaseDead { token, lease, client_now };
    ask(|token| store.release_dead(&request(token)), Operation::ReleaseDead)
}

fn ask<T>(ask: impl FnOnce(Token) -> Result<Reply<T>>, operation: Operation) -> Result<T> {
    let token = Token::random();
    ask(token)?.answer_to(token, operation)
}
