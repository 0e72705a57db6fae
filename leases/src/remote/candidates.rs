//! The order in which all node ids are looked at.

/// Returns all node ids in ranges, from that of `first` on, which is random, so that concurrent requests
/// rarely collide.
pub(super) fn ranges(first: u32, max_node_id: u32, size: u32) -> impl Iterator<Item = (u32, u32)> {
    let count = max_node_id / size + 1;
    (0..count).map(move |number| {
        let start = (first / size + number) % count * size;
        (start, (start + size - 1).min(max_node_id))
    })
}
