//! The oracle: what must always hold. It has seen every id and every grant.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
    ops::Range,
};

use randflake::Layout;

use super::machine::MS;
use crate::{NodeLease, Token};

/// A hasher for numbers, at a tenth of the cost of the standard library's; nothing ever iterates
/// over the maps.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

type BuildNumberHasher = BuildHasherDefault<NumberHasher>;

/// An id of one call, and what the process that made it knew.
#[derive(Clone, Copy, Debug)]
pub(super) struct IssuedId {
    pub(super) raw: u64,
    /// The process, by a unique number.
    pub(super) pid: u32,
    /// The earliest and the latest reading of the clock in this call.
    pub(super) readings: (i64, i64),
    /// The largest drift, in seconds.
    pub(super) max_drift: u32,
}

#[derive(Default)]
pub(super) struct Oracle {
    issued: HashSet<u64, BuildNumberHasher>,
    /// Which process stamped a tick of a node id.
    stamped: HashMap<(u32, i64), u32, BuildNumberHasher>,
    /// Latest second of a node id in any id.
    latest: HashMap<u32, i64, BuildNumberHasher>,
    /// For each process that is a copy of another one, the original of all its copies.
    first_of: HashMap<u32, u32, BuildNumberHasher>,
    /// The second before which a process and its copies may make the same ids of a node id.
    shared_until: HashMap<u32, i64, BuildNumberHasher>,
    /// The process that asked under a token, or the original of its copies.
    askers: HashMap<[u8; 16], u32, BuildNumberHasher>,
    /// What the store said that a process may stamp.
    granted: HashMap<(u32, u32), Vec<Grant>, BuildNumberHasher>,
    /// The seconds of node ids used by others, who lease nothing.
    outside: Vec<(u32, Range<i64>)>,
    pub(super) ids: u64,
}

/// A grant of one node id to one token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    token: Token,
    pub(super) start: i64,
    pub(super) end_exclusive: i64,
}

impl Oracle {
    /// Learns that a process was copied, and until when both may make the same ids of these node ids.
    pub(super) fn is_copied(&mut self, pid: u32, copy: u32, nodes: Range<u32>, until: i64) {
        self.first_of.insert(copy, self.first_of(pid));
        for node_id in nodes {
            let shared = self.shared_until.entry(node_id).or_default();
            *shared = until.max(*shared);
        }
    }

    /// Returns the process that this one is a copy of, or the process itself.
    pub(super) fn first_of(&self, pid: u32) -> u32 {
        self.first_of.get(&pid).copied().unwrap_or(pid)
    }

    /// Learns that others may use a node id from this second on.
    pub(super) fn is_outside(&mut self, node_id: u32, from: i64) {
        let latest = self.latest(node_id);
        assert!(
            latest < from,
            "node id {node_id} was stamped at {latest}, and is given away at {from}"
        );
        self.outside.push((node_id, from..i64::MAX));
    }

    /// Learns that this second is the last one that they have used.
    pub(super) fn has_left(&mut self, node_id: u32, last: i64) {
        let (of, seconds) = self.outside.last_mut().expect("there is one");
        assert_eq!(*of, node_id);
        seconds.end = seconds.start.max(last + 1);
    }

    /// Learns that a process asks for leases under a token.
    pub(super) fn asks(&mut self, token: Token, pid: u32) {
        let pid = self.first_of(pid);
        let asker = *self.askers.entry(*token.as_bytes()).or_insert(pid);
        assert_eq!(asker, pid, "two processes use one token");
    }

    /// Learns that the store has written and is about to send this answer.
    pub(super) fn is_granted(&mut self, token: Token, leases: &[NodeLease]) {
        let Some(&pid) = self.askers.get(token.as_bytes()) else { return };
        for &NodeLease { node_id, start, end_exclusive } in leases {
            let grants = self.granted.entry((pid, node_id)).or_default();
            match grants.iter_mut().find(|grant| (grant.token, grant.start) == (token, start)) {
                Some(grant) => grant.end_exclusive = grant.end_exclusive.max(end_exclusive),
                None => grants.push(Grant { token, start, end_exclusive }),
            }
        }
    }

    /// Returns the latest end that a process was ever granted of any node id.
    pub(super) fn furthest_of(&self, pid: u32, nodes: u32) -> i64 {
        let pid = self.first_of(pid);
        let grants = (0..nodes).filter_map(|node_id| self.granted.get(&(pid, node_id)));
        grants.flatten().map(|grant| grant.end_exclusive).max().unwrap_or(0)
    }

    /// Returns whose lease this is, if a process asked for it: the original of its copies.
    pub(super) fn holder(&self, token: Token) -> Option<u32> {
        self.askers.get(token.as_bytes()).copied()
    }

    /// Returns the latest second in any id of a node id.
    pub(super) fn latest(&self, node_id: u32) -> i64 {
        self.latest.get(&node_id).copied().unwrap_or(0)
    }

    /// Learns of an id, and returns what is wrong with it.
    pub(super) fn sees(&mut self, layout: &Layout, seen: IssuedId) -> Result<(), String> {
        let IssuedId { raw, pid, readings: (low, high), max_drift } = seen;
        let parts = layout.inspect(raw).map_err(|error| error.to_string())?;
        let node_id = parts.node_id;
        let tick_end_ms = parts.unix_ms + i64::from(layout.tick_ms());
        self.ids += 1;
        let shared_until = self.shared_until.get(&node_id).copied().unwrap_or(i64::MIN);
        let is_shared = parts.unix_ms.div_euclid(1000) < shared_until;
        // I1, within a process and across all of them.
        if !self.issued.insert(raw) && !is_shared {
            return Err(format!("the same id twice: {parts:?}"));
        }
        let by = *self.stamped.entry((node_id, parts.unix_ms)).or_insert(pid);
        if by != pid && !is_shared {
            return Err(format!("processes {by} and {pid} stamped one tick: {parts:?}"));
        }
        let second = parts.unix_ms.div_euclid(1000);
        if self.outside.iter().any(|(of, seconds)| *of == node_id && seconds.contains(&second)) {
            return Err(format!("others have that second of the node id: {parts:?}"));
        }
        let latest = self.latest.entry(node_id).or_default();
        *latest = (*latest).max(second);
        // I2, according to what the store has said rather than what the generator believes.
        let asker = self.first_of(pid);
        let grants = self.granted.get(&(asker, node_id)).map_or(&[][..], Vec::as_slice);
        let is_granted = grants.iter().any(|grant| {
            grant.start * 1000 <= parts.unix_ms && tick_end_ms <= grant.end_exclusive * 1000
        });
        if !is_granted {
            return Err(format!(
                "{parts:?} lies in none of the leases of process {pid}: {grants:?}"
            ));
        }
        // I4: no stamp is beyond the drift or in the past.
        let drift_ms = i64::from(max_drift) * 1000;
        if parts.unix_ms * MS > high + drift_ms * MS {
            return Err(format!("{parts:?} is later than {high} and {max_drift} s"));
        }
        if tick_end_ms * MS <= low {
            return Err(format!("{parts:?} was over at {low}"));
        }
        Ok(())
    }
}
