//! A breadth-first search through all states: the shortest way to break each promise.

use std::hash::Hash;

use crate::keys::{Keys, key_of};

/// The result of a search, with `N` promises.
#[derive(Debug)]
pub(crate) struct Found<A, const N: usize> {
    pub(crate) states: usize,
    /// For each promise, the shortest way to break it.
    pub(crate) broken: [Option<Vec<A>>; N],
}

/// Receives a possible step, which promise it breaks, and the state after it.
pub(crate) type Next<'a, S, A> = &'a mut dyn FnMut(A, Option<usize>, S);

/// Searches all states, or stops when the promise `stop_at` is broken.
pub(crate) fn explore<S: Copy + Hash, A: Copy, const N: usize>(
    first: S,
    stop_at: usize,
    mut steps: impl FnMut(S, Next<'_, S, A>),
) -> Found<A, N> {
    let mut seen = Keys::default();
    seen.insert(key_of(&first));
    let mut came_from: Vec<(u32, Option<A>)> = vec![(0, None)];
    let (mut frontier, mut broken) = (vec![(0, first)], [const { None }; N]);
    while !frontier.is_empty() && broken[stop_at].is_none() {
        let mut next_frontier = vec![];
        for (index, at) in frontier {
            steps(at, &mut |act, promise, to| {
                if let Some(promise) = promise {
                    broken[promise].get_or_insert_with(|| {
                        let mut way = way_to(&came_from, index);
                        way.push(act);
                        way
                    });
                }
                if seen.insert(key_of(&to)) {
                    let number = u32::try_from(came_from.len()).expect("few enough");
                    came_from.push((index, Some(act)));
                    next_frontier.push((number, to));
                }
            });
        }
        frontier = next_frontier;
    }
    Found { states: came_from.len(), broken }
}

fn way_to<A: Copy>(came_from: &[(u32, Option<A>)], mut index: u32) -> Vec<A> {
    let mut way = vec![];
    while let (before, Some(act)) = came_from[index as usize] {
        way.push(act);
        index = before;
    }
    way.reverse();
    way
}
