//! The node ids of a layout: how many there are, their parts, and which lists of them are valid.

use std::fmt;

use super::{Layout, MAX_NODES};
use crate::{Error, ErrorKind, Result};

impl Layout {
    /// Returns how many node ids one generator may have: as many as fit into its 64-bit state, at most
    /// 16 384. It is 0 for a layout that is only for reading, such as Mastodon's.
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert_eq!(Layout::twitter().max_nodes(), 1023);
    /// ```
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "at most MAX_NODES")]
    pub const fn max_nodes(&self) -> usize {
        // The seal, the stamp, and a slot that never has all its bits set: a state with all bits set
        // means pending.
        let most_slots = (1_u64 << (63 - self.time.bits)) - 2;
        let nodes = most_slots / self.ids_per_node();
        if nodes < MAX_NODES as u64 { nodes as usize } else { MAX_NODES }
    }

    /// Returns the node id of a datacenter and a worker (a worker and a process, for Discord).
    ///
    /// # Errors
    ///
    /// [`InvalidNode`](ErrorKind::InvalidNode): the layout does not have these parts, or one is too
    /// large.
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert_eq!(Layout::twitter().join_node(11, 26)?, 378);
    /// assert!(Layout::twitter().join_node(0, 32).is_err());
    /// assert!(Layout::leaf().join_node(0, 1).is_err());
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[allow(clippy::cast_possible_truncation, reason = "at most 32 bits")]
    pub fn join_node(&self, datacenter: u32, worker: u32) -> Result<u32> {
        let (most_datacenters, most_workers) =
            self.split_node(self.max_node_id()).ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidNode,
                    format!(
                        "node ids of the layout {} have no parts; give the whole node id",
                        self.name
                    ),
                )
            })?;
        if datacenter > most_datacenters || worker > most_workers {
            return Err(Error::new(
                ErrorKind::InvalidNode,
                format!(
                    "the parts of a node id of the layout {} are at most {most_datacenters} and \
                     {most_workers}, got {datacenter} and {worker}",
                    self.name
                ),
            ));
        }
        // In 64 bits: the worker may have all 32 of a node id.
        Ok((u64::from(datacenter) << self.worker_bits) as u32 | worker)
    }

    /// Returns the widths of the datacenter and of the worker, in bits; `None` where node ids do
    /// not have these parts.
    #[must_use]
    pub const fn node_split(&self) -> Option<(u32, u32)> {
        if self.worker_bits == 0 {
            return None;
        }
        Some((self.node.bits - self.worker_bits, self.worker_bits))
    }

    /// Checks that a node id is at most [`max_node_id`](Self::max_node_id).
    ///
    /// # Errors
    ///
    /// [`InvalidNode`](ErrorKind::InvalidNode): it is larger.
    pub fn check_node_id(&self, node_id: u32) -> Result<()> {
        if node_id > self.max_node_id() {
            return Err(invalid_node(self, node_id));
        }
        Ok(())
    }

    /// Returns the datacenter and the worker of a node id (the worker and the process, for
    /// Discord); `None` where node ids do not have these parts.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "at most 32 bits each")]
    pub const fn split_node(&self, node_id: u32) -> Option<(u32, u32)> {
        if self.worker_bits == 0 {
            return None;
        }
        // In 64 bits, since the worker may have all 32 of the node id.
        let node_id = node_id as u64;
        let worker = node_id & ((1 << self.worker_bits) - 1);
        Some(((node_id >> self.worker_bits) as u32, worker as u32))
    }

    /// Checks that ids of this layout can be generated, not only read.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): time and sequence are too wide to be counted
    /// together in 64 bits.
    ///
    /// ```
    /// use randflake::{Field, Layout, Snowflake};
    ///
    /// let mastodon = Layout::custom([(Field::Time, 48), (Field::Sequence, 16)]).unsigned(true).build()?;
    /// assert_eq!(mastodon.inspect(116_000_000_000_000_000)?.unix_ms, 1_770_019_531_250);
    /// assert!(mastodon.check_generates().is_err());
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn check_generates(&self) -> Result<()> {
        if self.max_nodes() > 0 {
            return Ok(());
        }
        Err(Error::invalid_argument(format!(
            "ids of this layout can be read, but not generated: a time of {} bits and {} ids in a \
             tick are too much for the 64 bits of the state that counts them; use fewer bits for \
             the time or the sequence, or a random initial sequence of more starts, which leaves \
             fewer ids",
            self.time.bits,
            self.ids_per_node()
        )))
    }

    /// Checks a list of node ids and sorts it.
    pub(crate) fn checked_nodes(&self, node_ids: &[u32]) -> Result<Box<[u32]>> {
        self.check_generates()?;
        let max = self.max_node_id();
        if node_ids.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidNode,
                format!("a generator needs at least one node id between 0 and {max}"),
            ));
        }
        if node_ids.len() > self.max_nodes() {
            return Err(too_many_nodes(self, node_ids.len()));
        }
        let mut nodes: Box<[u32]> = node_ids.into();
        nodes.sort_unstable();
        if let Some(&largest) = nodes.last().filter(|&&node| node > max) {
            return Err(invalid_node(self, largest));
        }
        if let Some([twice, _]) = nodes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::new(
                ErrorKind::InvalidNode,
                format!("node id {twice} is listed twice; list each node id once"),
            ));
        }
        Ok(nodes)
    }
}

/// Makes the error of a node id outside a layout's range.
#[cold]
#[must_use]
pub fn invalid_node(layout: &Layout, got: impl fmt::Display) -> Error {
    let max = layout.max_node_id();
    let of = of_the_layout(layout);
    Error::new(
        ErrorKind::InvalidNode,
        format!("a node id{of} must be an integer between 0 and {max}, got {got}"),
    )
}

/// Makes the error of a list of more than [`max_nodes`](Layout::max_nodes) node ids.
#[cold]
#[must_use]
pub fn too_many_nodes(layout: &Layout, got: usize) -> Error {
    let max = layout.max_nodes();
    let of = of_the_layout(layout);
    Error::new(
        ErrorKind::InvalidNode,
        format!("a generator{of} takes at most {max} node ids, got {got}"),
    )
}

fn of_the_layout(layout: &Layout) -> String {
    if layout.packs_like(&Layout::randflake()) {
        String::new()
    } else {
        format!(" of the layout {}", layout.name)
    }
}
