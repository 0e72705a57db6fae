//! Which node ids a namespace leases.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use randflake::{Error, Result, bindings::quoted, layout::MAX_NODE_ID};

/// Node ids that a namespace leases, as up to 16 ranges. You can assign all others to generators
/// yourself, such as the ones that you are migrating from. As text: `0-6,8-1023`.
///
/// ```
/// use randflake_leases::NodeRanges;
///
/// let node_ids: NodeRanges = "8-1023, 0-3,4-6".parse()?;
/// assert_eq!(node_ids.to_string(), "0-6,8-1023");
/// assert!(node_ids.contains(6) && !node_ids.contains(7));
/// assert_eq!(node_ids.count(), 1023);
/// assert_eq!(NodeRanges::up_to(1023).to_string(), "0-1023");
/// assert!("6-0".parse::<NodeRanges>().is_err());
/// # Ok::<(), randflake_leases::Error>(())
/// ```
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct NodeRanges {
    /// First and last of each range, sorted, with a gap between any two; then zeros.
    ranges: [(u32, u32); Self::MAX_RANGES],
    len: usize,
}

impl NodeRanges {
    /// The maximum number of ranges.
    pub const MAX_RANGES: usize = 16;

    /// Returns the node ids 0 to `max_node_id`.
    #[must_use]
    pub fn up_to(max_node_id: u32) -> Self {
        let mut ranges = [(0, 0); Self::MAX_RANGES];
        ranges[0] = (0, max_node_id);
        Self { ranges, len: 1 }
    }

    /// Takes ranges in any order.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: no range, more than 16 with gaps between them, one whose last node id is
    /// less than its first, or one beyond 131 071.
    pub fn new(ranges: impl IntoIterator<Item = RangeInclusive<u32>>) -> Result<Self> {
        let mut sorted: Vec<(u32, u32)> =
            ranges.into_iter().map(RangeInclusive::into_inner).collect();
        sorted.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::new();
        for (first, last) in sorted {
            if first > last || last > MAX_NODE_ID {
                let range =
                    if first == last { first.to_string() } else { format!("{first}-{last}") };
                return Err(invalid(&range));
            }
            match joined.last_mut() {
                Some((_, end)) if first <= *end + 1 => *end = last.max(*end),
                _ => joined.push((first, last)),
            }
        }
        if !(1..=Self::MAX_RANGES).contains(&joined.len()) {
            return Err(Error::invalid_argument(format!(
                "the node ids to lease must be 1 to {} ranges, got {}",
                Self::MAX_RANGES,
                joined.len()
            )));
        }
        let mut ranges = [(0, 0); Self::MAX_RANGES];
        ranges[..joined.len()].copy_from_slice(&joined);
        Ok(Self { ranges, len: joined.len() })
    }

    /// Returns the ranges, sorted, with a gap between any two.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u32>> + Clone + use<> {
        self.ranges.into_iter().take(self.len).map(|(first, last)| first..=last)
    }

    /// Returns the number of node ids.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.ranges().map(|range| range.end() - range.start() + 1).sum()
    }

    /// Returns whether a node id is one of these.
    #[must_use]
    pub fn contains(&self, node_id: u32) -> bool {
        self.ranges().any(|range| range.contains(&node_id))
    }

    /// Returns the largest node id.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.ranges[self.len - 1].1
    }

    /// Returns the node id that has `index` smaller ones, or the largest.
    pub(crate) fn nth(&self, mut index: u32) -> u32 {
        for range in self.ranges() {
            let count = range.end() - range.start() + 1;
            if index < count {
                return range.start() + index;
            }
            index -= count;
        }
        self.last()
    }

    /// Returns all of these from `first` on, and then those before it.
    pub(crate) fn from(self, first: u32) -> impl Iterator<Item = u32> {
        let after = self.ranges().flat_map(move |range| first.max(*range.start())..=*range.end());
        let before =
            self.ranges().flat_map(move |range| *range.start()..first.min(range.end() + 1));
        after.chain(before)
    }
}

impl FromStr for NodeRanges {
    type Err = Error;

    /// Takes node ids and ranges of them, separated by commas: `0-6,8-1023`.
    fn from_str(text: &str) -> Result<Self> {
        let node_id = |digits: &str| {
            let digits = digits.trim();
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
        };
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(node_id(first)?..=node_id(last)?)
        };
        let ranges = text.split(',').map(|part| range(part).ok_or_else(|| invalid(text)));
        Self::new(ranges.collect::<Result<Vec<_>>>()?)
    }
}

impl fmt::Display for NodeRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.ranges().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let (first, last) = range.into_inner();
            write!(f, "{comma}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for NodeRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeRanges({self})")
    }
}

#[cold]
fn invalid(text: &str) -> Error {
    Error::invalid_argument(format!(
        "the node ids to lease must be ranges from 0 to {MAX_NODE_ID}, such as 0-6,8-1023, got {}",
        quoted(text)
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_names_no_node_ids_is_refused() {
        for text in [
            "",
            " ",
            ",",
            "0-",
            "-6",
            "6-5",
            "0,",
            "a",
            "+1",
            "0x10",
            "0..6",
            "0-131072",
            "4294967296",
            "1-2-3",
            "1 2",
            "٣",
        ] {
            let error = text.parse::<NodeRanges>().expect_err(text);
            assert!(error.to_string().contains("as 0-6,8-1023"), "{text}: {error}");
        }
        let many = |count| NodeRanges::new((0..count).map(|index| 2 * index..=2 * index));
        assert!(many(16).is_ok());
        assert!(many(17).expect_err("too many").to_string().contains("1 to 16"));
        assert!(NodeRanges::new([]).is_err());
    }

    #[test]
    fn it_is_a_set() {
        for bits in 1..1_u32 << 10 {
            let set: BTreeSet<u32> = (0..10).filter(|node_id| bits >> node_id & 1 == 1).collect();
            let node_ids =
                NodeRanges::new(set.iter().rev().map(|it| *it..=*it)).expect("few ranges");
            assert_eq!(node_ids.to_string().parse::<NodeRanges>().expect("its own text"), node_ids);
            assert!((0..12).all(|it| node_ids.contains(it) == set.contains(&it)), "{node_ids}");
            assert_eq!(node_ids.count() as usize, set.len(), "{node_ids}");
            assert_eq!(Some(&node_ids.last()), set.last(), "{node_ids}");
            assert!((0..).zip(&set).all(|(index, it)| node_ids.nth(index) == *it), "{node_ids}");
            for first in 0..12 {
                let all = set.range(first..).chain(set.range(..first));
                assert!(node_ids.from(first).eq(all.copied()), "{node_ids} from {first}");
            }
        }
        let parts: NodeRanges = "5-9,0-3, 2-4 ,11".parse().expect("in any order");
        assert_eq!(parts.to_string(), "0-9,11");
    }
}
