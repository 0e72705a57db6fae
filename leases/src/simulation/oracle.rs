//! The oracle: what must always hold. It has seen every id and every grant.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
};

use randflake::Layout;

use super::machine::MS;
use crate::{NodeLease, Token};

/// A hasher for numbers, at a tenth of the cost of the standard library's; nothing ever iterates
/// over the maps.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
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

type Mixed = BuildHasherDefault<Mix>;

/// An id of one call, and what the process that made it knew.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) raw: u64,
    /// The generation of the process, a number that no other has.
    pub(super) generation: u32,
    /// The earliest and the latest reading of the clock in this call.
    pub(super) readings: (i64, i64),
    /// The largest drift, in seconds.
    pub(super) max_drift: u32,
}

#[derive(Default)]
pub(super) struct Oracle {
    issued: HashSet<u64, Mixed>,
    /// Which generation stamped a tick of a node id.
    stamped: HashMap<(u32, i64), u32, Mixed>,
    /// Latest second of a node id in any id.
    latest: HashMap<u32, i64, Mixed>,
    /// The generation that asked under a token.
    generations: HashMap<[u8; 16], u32, Mixed>,
    /// What the store said that a generation may stamp.
    granted: HashMap<(u32, u32), Vec<Grant>, Mixed>,
    pub(super) ids: u64,
}

/// Of one token, and one node id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    token: Token,
    pub(super) start: i64,
    pub(super) end_exclusive: i64,
}

impl Oracle {
    /// Learns that a process asks for leases under a token.
    pub(super) fn asks(&mut self, token: Token, generation: u32) {
        let asker = *self.generations.entry(*token.as_bytes()).or_insert(generation);
        assert_eq!(asker, generation, "two generations use one token");
    }

    /// Learns that the store has written and is about to send this answer.
    pub(super) fn is_granted(&mut self, token: Token, leases: &[NodeLease]) {
        let Some(&generation) = self.generations.get(token.as_bytes()) else { return };
        for &NodeLease { node_id, start, end_exclusive } in leases {
            let grants = self.granted.entry((generation, node_id)).or_default();
            match grants.iter_mut().find(|grant| (grant.token, grant.start) == (token, start)) {
                Some(grant) => grant.end_exclusive = grant.end_exclusive.max(end_exclusive),
                None => grants.push(Grant { token, start, end_exclusive }),
            }
        }
    }

    /// Returns the latest end that a generation was ever granted of any node id.
    pub(super) fn furthest_of(&self, generation: u32, nodes: u32) -> i64 {
        let grants = (0..nodes).filter_map(|node_id| self.granted.get(&(generation, node_id)));
        grants.flatten().map(|grant| grant.end_exclusive).max().unwrap_or(0)
    }

    /// Returns whose lease this is, if a generation asked for it.
    pub(super) fn holder(&self, token: Token) -> Option<u32> {
        self.generations.get(token.as_bytes()).copied()
    }

    /// Returns the latest second in any id of a node id.
    pub(super) fn latest(&self, node_id: u32) -> i64 {
        self.latest.get(&node_id).copied().unwrap_or(0)
    }

    /// Learns of an id; says what is wrong with it.
    pub(super) fn sees(&mut self, layout: &Layout, seen: Seen) -> Result<(), String> {
        let Seen { raw, generation, readings: (low, high), max_drift } = seen;
        let parts = layout.inspect(raw).map_err(|error| error.to_string())?;
        let node_id = parts.node_id;
        let tick_end_ms = parts.unix_ms + i64::from(layout.tick_ms());
        self.ids += 1;
        // I1, within a process and across all of them.
        if !self.issued.insert(raw) {
            return Err(format!("the same id twice: {parts:?}"));
        }
        let by = *self.stamped.entry((node_id, parts.unix_ms)).or_insert(generation);
        if by != generation {
            return Err(format!("generations {by} and {generation} stamped one tick: {parts:?}"));
        }
        let latest = self.latest.entry(node_id).or_default();
        *latest = (*latest).max(parts.unix_ms.div_euclid(1000));
        // I2, by what the store has said rather than by what the generator believes.
        let grants = self.granted.get(&(generation, node_id)).map_or(&[][..], Vec::as_slice);
        let is_granted = grants.iter().any(|grant| {
            grant.start * 1000 <= parts.unix_ms && tick_end_ms <= grant.end_exclusive * 1000
        });
        if !is_granted {
            return Err(format!(
                "{parts:?} lies in none of the leases of {generation}: {grants:?}"
            ));
        }
        // I4: no stamp lies beyond the drift, and none in the past.
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
