//! The values of `--node`.

use clap::builder::RangedI64ValueParser;
use randflake::Layout;

/// Returns the parser of a node id.
pub(crate) fn node_id() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(0..=i64::from(Layout::randflake().max_node_id()))
}
