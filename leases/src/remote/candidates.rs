//! The order in which an acquire asks for node ids.

use std::collections::HashSet;

use crate::{Limits, Token};

/// Returns the node ids to ask for first, each once, and whether these are all.
pub(super) fn candidates(token: Token, limits: Limits, count: usize) -> (Vec<u32>, bool) {
    let max = limits.max_node_id;
    let first = first_candidate(token, max);
    if (max as usize) < count {
        return ((first..=max).chain(0..first).collect(), true);
    }
    let mut candidates = Vec::new();
    let mut seen = HashSet::new();
    candidates.extend(token.candidates(max).take(count).filter(|node_id| seen.insert(*node_id)));
    (candidates, false)
}

/// Returns all node ids in ranges, starting at a random one, so that concurrent requests rarely
/// collide.
pub(super) fn ranges(token: Token, limits: Limits, size: u32) -> impl Iterator<Item = (u32, u32)> {
    let max = limits.max_node_id;
    let first = first_candidate(token, max) / size;
    let count = max / size + 1;
    (0..count).map(move |number| {
        let start = (first + number) % count * size;
        (start, (start + size - 1).min(max))
    })
}

fn first_candidate(token: Token, max_node_id: u32) -> u32 {
    token.candidates(max_node_id).next().unwrap_or(0)
}
