//! The order in which all node ids are looked at.

use crate::node_ranges::NodeRanges;

/// Returns all node ids in ranges of at most `size`, starting with the range of `first`, which is
/// random, so that concurrent requests rarely collide.
pub(super) fn ranges(
    first: u32,
    node_ids: NodeRanges,
    size: u32,
) -> impl Iterator<Item = (u32, u32)> {
    let ranges = node_ids.ranges().flat_map(move |range| {
        let (start, last) = range.into_inner();
        let starts = (start..=last).step_by(size as usize);
        starts.map(move |start| (start, last.min(start.saturating_add(size - 1))))
    });
    let is_before = move |range: &(u32, u32)| range.1 < first;
    ranges.clone().skip_while(is_before).chain(ranges.take_while(is_before))
}
