//! How time, node id and sequence share 64 bits: the only home of the epochs, the bit widths and
//! the bounds, of Randflake's own layout and of the others of the Snowflake family.
//!
//! ```text
//! raw = (unix_seconds - 1730000000) << 34 | node_id << 17 | sequence      30, 17, 17 bits
//! ```
//!
//! That is [`Layout::randflake`], which the constants of this module spell out. Every other
//! [`Layout`] is the same sum with the fields in another order, other widths, another epoch and a
//! tick of another length.

mod custom;
mod presets;

use std::{fmt, hash::Hash, ops::Range, time::Duration};

use crate::{
    Clock, Error, ErrorKind, Lease, Parts, Result, SystemClock,
    clock::{self, NANOS_PER_MS},
};

pub use self::custom::CustomLayout;
pub(crate) use self::presets::RANDFLAKE;

/// Unix second of timestamp 0: 2024-10-27T03:33:20Z.
pub const EPOCH: i64 = 1_730_000_000;

/// Bits of the timestamp, of the node id and of the sequence; together 64.
pub const TIMESTAMP_BITS: u32 = 30;
/// Bits of the node id.
pub const NODE_BITS: u32 = 17;
/// Bits of the sequence.
pub const SEQUENCE_BITS: u32 = 17;

/// Largest node id: 131 071.
pub const MAX_NODE_ID: u32 = (1 << NODE_BITS) - 1;
/// Largest sequence: 131 071. A node issues at most `MAX_SEQUENCE + 1` ids a second.
pub const MAX_SEQUENCE: u32 = (1 << SEQUENCE_BITS) - 1;
/// First unix second that no id can carry: 2058-11-05T17:10:24Z.
pub const LIFETIME_END: i64 = EPOCH + (1 << TIMESTAMP_BITS);

/// Most node ids of one generator: the stamp, one more than all slots of a second, and the seal
/// share a 64-bit word. Some layouts have room for fewer: [`Layout::max_nodes`].
pub const MAX_NODES: usize = 16_384;

/// Most bits of a node id and of a sequence in any layout.
const MAX_FIELD_BITS: u32 = 32;
/// Longest tick, in milliseconds: a day.
const MAX_TICK_MS: u32 = 86_400_000;
/// Last epoch, in unix milliseconds: clocks tell nanoseconds in 64 bits, up to the year 2262.
const MAX_EPOCH_MS: i64 = i64::MAX / NANOS_PER_MS.cast_signed();
/// A layout that ends sooner than this is worth a warning: two years.
const WARNING_MS: i64 = 2 * 365 * 86_400_000;

/// A field of a layout.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Field {
    /// Ticks since the epoch.
    Time,
    /// The node id: the whole of it, where others split it into a datacenter and a worker.
    Node,
    /// What tells the ids of one node and one tick apart.
    Sequence,
}

/// With which sequence a tick begins. Whatever it is, one thread is given rising ids of a node.
///
/// A node that makes few ids makes most of them with the first sequence of a tick. If that is
/// always 0, whoever cuts the ids into shards by their low bits gets most of them in one shard;
/// the other two policies spread them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Sequence {
    /// With 0.
    Zero,
    /// With a number drawn for each tick from so many: 100 means 0 to 99. A node has that many
    /// ids less one fewer in a tick.
    Random(u32),
    /// With the one after the last, whenever that was. A tick ends when the sequence wraps, early
    /// if need be, so the ids rise all the same.
    Continuing,
}

/// Where a field lies in a raw id.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Place {
    shift: u32,
    bits: u32,
}

impl Place {
    const fn max(self) -> u64 {
        (1 << self.bits) - 1
    }

    const fn put(self, value: u64) -> u64 {
        value << self.shift
    }

    const fn get(self, raw: u64) -> u64 {
        raw >> self.shift & self.max()
    }
}

/// How time, node id and sequence share the bits of a raw id, and how time is counted.
///
/// | preset | fields, high to low | tick | epoch | a tick begins with | ends |
/// |---|---|---|---|---|---|
/// | [`randflake`](Self::randflake) | time 30, node 17, sequence 17 | 1 s | 2024-10-27 | 0 | 2058 |
/// | [`twitter`](Self::twitter) | time 41, node 10, sequence 12 | 1 ms | 2010-11-04 | 0 | 2080 |
/// | [`discord`](Self::discord) | time 42, node 10, sequence 12 | 1 ms | 2015-01-01 | the next | 2154 |
/// | [`leaf`](Self::leaf) | time 41, node 10, sequence 12 | 1 ms | 2010-11-04 | 0 to 99 | 2080 |
/// | [`baidu`](Self::baidu) | time 28, node 22, sequence 13 | 1 s | 2016-05-19 | 0 | **2024** |
/// | [`sonyflake`](Self::sonyflake) | time 39, sequence 8, node 16 | 10 ms | 2014-09-01 | 0 | 2188 |
/// | [`sonyflake2`](Self::sonyflake2) | time 39, sequence 8, node 16 | 10 ms | 2025-01-01 | 0 | 2199 |
/// | [`instagram`](Self::instagram) | time 41, node 13, sequence 10 | 1 ms | 2011-08-24 | the next | 2081 |
/// | [`simpleflake`](Self::simpleflake) | time 41, sequence 23 | 1 ms | 2000-01-01 | any | 2069 |
///
/// Others are made with [`Layout::custom`]. Times are unix milliseconds, in UTC: an epoch that is
/// published as a local time has to be converted.
///
/// ```
/// use randflake::Layout;
///
/// let parts = Layout::discord().inspect(175928847299117063)?;
/// assert_eq!((parts.unix_ms, parts.node_id, parts.sequence), (1462015105796, 32, 7));
/// assert_eq!(Layout::discord().pack(1462015105796, 32, 7)?, 175928847299117063);
/// assert_eq!("discord".parse::<Layout>()?, Layout::discord());
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Layout {
    name: &'static str,
    time: Place,
    node: Place,
    sequence: Place,
    /// Bits of the lower part of the node id; 0 where it is not split.
    worker_bits: u32,
    tick_ms: u32,
    epoch_ms: i64,
    starts: Sequence,
}

/// What a raw id says: when, where and as which one it was made.
///
/// ```
/// let parts = randflake::Layout::twitter().inspect(1541815603606036480)?;
/// assert_eq!((parts.unix_ms, parts.node_id, parts.sequence), (1656432460105, 378, 0));
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RawParts {
    /// Unix milliseconds at which the id's tick begins.
    pub unix_ms: i64,
    /// 0 to [`Layout::max_node_id`]; 0 where the layout has no node ids.
    pub node_id: u32,
    /// 0 to [`Layout::max_sequence`].
    pub sequence: u32,
}

impl Layout {
    /// Returns the same layout with ticks that begin otherwise. Ids of both read the same.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): random starts of 0 or more than there are
    /// sequences, or so few that the ids of a tick do not fit into the state word.
    ///
    /// ```
    /// # use randflake::{Layout, Sequence};
    /// let spread = Layout::twitter().with_sequence(Sequence::Continuing)?;
    /// assert_eq!(spread.inspect(1541815603606036480), Layout::twitter().inspect(1541815603606036480));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn with_sequence(self, sequence: Sequence) -> Result<Self> {
        Self { starts: sequence, ..self }.checked()
    }

    /// Reads a raw id. Whatever has no bits outside the fields has parts; whether it is an id,
    /// they do not say.
    ///
    /// # Errors
    ///
    /// [`InvalidId`](ErrorKind::InvalidId): bits above the fields are set.
    pub fn inspect(&self, raw: u64) -> Result<RawParts> {
        if raw & !self.mask() != 0 {
            return Err(Error::new(
                ErrorKind::InvalidId,
                format!(
                    "an id of the layout {} has {} bits, got {raw}: an encrypted or hidden id, or \
                     one of another layout?",
                    self.name,
                    self.bits()
                ),
            ));
        }
        let (stamp, node_id, sequence) = self.take_apart(raw);
        Ok(RawParts { unix_ms: self.unix_ms_of(stamp), node_id, sequence })
    }

    /// Packs a time in unix milliseconds, which is rounded down to its tick, a node id and a
    /// sequence. For tests and conversions: nobody knows whether the id is unique.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): the time is outside the lifetime or the
    /// sequence too large. [`InvalidNode`](ErrorKind::InvalidNode): the node id is too large.
    pub fn pack(&self, unix_ms: i64, node_id: u32, sequence: u32) -> Result<u64> {
        let stamp = self.stamp_of(unix_ms)?;
        if node_id > self.max_node_id() {
            return Err(self.invalid_node(node_id));
        }
        if sequence > self.max_sequence() {
            return Err(Error::invalid_argument(format!(
                "a sequence of the layout {} is between 0 and {}, got {sequence}",
                self.name,
                self.max_sequence()
            )));
        }
        Ok(self.put_together(stamp, node_id, sequence.into()))
    }

    /// Returns the smallest raw id of the tick at a time in unix milliseconds, to find rows by
    /// their time of making.
    ///
    /// Raw ids are compared as unsigned numbers. In a signed column those from
    /// [`negative_from`](Self::negative_from) on come before all others.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): the time is not the top field, so ids are
    /// not in the order of time; or it is outside the lifetime.
    ///
    /// ```
    /// use randflake::Layout;
    ///
    /// let twitter = Layout::twitter();
    /// let (midnight, day) = (1763596800000, 86_400_000);
    /// let first = twitter.first_id_at(midnight)?;
    /// let last = twitter.last_id_at(midnight + day - 1)?; // WHERE id BETWEEN first AND last
    /// assert!((first..=last).contains(&twitter.pack(midnight + 3_600_000, 5, 0)?));
    /// assert!(last < twitter.first_id_at(midnight + day)?);
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn first_id_at(&self, unix_ms: i64) -> Result<u64> {
        if self.time.shift + self.time.bits != self.bits() {
            return Err(Error::invalid_argument(format!(
                "ids of the layout {} are not in the order of their time, which is not their \
                     top field: store the time in a column of its own",
                self.name
            )));
        }
        self.stamp_of(unix_ms).map(|stamp| self.time.put(stamp))
    }

    /// Returns the largest raw id of the tick at a time in unix milliseconds; see
    /// [`first_id_at`](Self::first_id_at).
    ///
    /// # Errors
    ///
    /// As [`first_id_at`](Self::first_id_at).
    pub fn last_id_at(&self, unix_ms: i64) -> Result<u64> {
        self.first_id_at(unix_ms).map(|first| first | (self.time.put(1) - 1))
    }

    /// Returns the name of the preset, or `"custom"`.
    ///
    /// ```
    /// # use randflake::{Layout, Sequence};
    /// let leaf = Layout::leaf();
    /// assert_eq!(leaf.name(), "leaf");
    /// assert_eq!((leaf.time_bits(), leaf.node_bits(), leaf.sequence_bits()), (41, 10, 12));
    /// assert_eq!((leaf.max_node_id(), leaf.max_sequence()), (1023, 4095));
    /// assert_eq!((leaf.tick_ms(), leaf.epoch_ms()), (1, 1288834974657));
    /// assert_eq!(leaf.sequence(), Sequence::Random(100));
    /// ```
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the fields, from high to low, with their widths in bits.
    ///
    /// ```
    /// # use randflake::{Field, Layout};
    /// let fields = [(Field::Time, 39), (Field::Sequence, 8), (Field::Node, 16)];
    /// assert_eq!(Layout::sonyflake().fields(), fields);
    /// ```
    #[must_use]
    pub fn fields(&self) -> Vec<(Field, u32)> {
        let places =
            [(Field::Time, self.time), (Field::Node, self.node), (Field::Sequence, self.sequence)];
        let mut places = places.to_vec();
        places.retain(|(_, place)| place.bits > 0);
        places.sort_by_key(|(_, place)| std::cmp::Reverse(place.shift));
        places.into_iter().map(|(field, place)| (field, place.bits)).collect()
    }

    /// Returns the width of the time, in bits.
    #[must_use]
    pub const fn time_bits(&self) -> u32 {
        self.time.bits
    }

    /// Returns the width of the node id, in bits; 0 where there is none.
    #[must_use]
    pub const fn node_bits(&self) -> u32 {
        self.node.bits
    }

    /// Returns the width of the sequence, in bits; 0 where there is none.
    #[must_use]
    pub const fn sequence_bits(&self) -> u32 {
        self.sequence.bits
    }

    /// Returns the length of a tick, in milliseconds.
    #[must_use]
    pub const fn tick_ms(&self) -> u32 {
        self.tick_ms
    }

    /// Returns the unix millisecond at which tick 0 begins.
    #[must_use]
    pub const fn epoch_ms(&self) -> i64 {
        self.epoch_ms
    }

    /// Returns with which sequence ticks begin.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.starts
    }

    /// Returns whether ids use all 64 bits. Otherwise the top bit is zero, and they are positive
    /// in every 64-bit column.
    #[must_use]
    pub const fn is_unsigned(&self) -> bool {
        self.bits() == 64
    }

    /// Returns the largest node id.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "at most 32 bits")]
    pub const fn max_node_id(&self) -> u32 {
        self.node.max() as u32
    }

    /// Returns the largest sequence.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "at most 32 bits")]
    pub const fn max_sequence(&self) -> u32 {
        self.sequence.max() as u32
    }

    /// Returns how many ids a node has in a tick.
    #[must_use]
    pub const fn ids_per_node(&self) -> u64 {
        let sequences = self.sequence.max() + 1;
        match self.starts {
            Sequence::Random(starts) => (sequences + 1).saturating_sub(starts as u64),
            Sequence::Zero | Sequence::Continuing => sequences,
        }
    }

    /// Returns how many node ids one generator may have: what the state word has room for, at
    /// most 16 384.
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert_eq!(Layout::twitter().max_nodes(), 1023);
    /// ```
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "at most MAX_NODES")]
    pub const fn max_nodes(&self) -> usize {
        // A seal, the stamp, and a slot that never has all its bits set: a word of nothing but
        // ones means something else.
        let most_slots = (1_u64 << (63 - self.time.bits)) - 2;
        let nodes = most_slots / self.ids_per_node();
        if nodes < MAX_NODES as u64 { nodes as usize } else { MAX_NODES }
    }

    /// Returns the node id of a datacenter and a worker (a worker and a process, for Discord).
    ///
    /// # Errors
    ///
    /// [`InvalidNode`](ErrorKind::InvalidNode): the layout has no such parts, or one is too large.
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
                    format!("node ids of the layout {} have no parts; give the whole", self.name),
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

    /// Returns the datacenter and the worker of a node id (the worker and the process, for
    /// Discord); `None` where node ids have no such parts.
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

    /// Returns the first unix millisecond that no id can carry. A generator never wraps there: it
    /// refuses with [`LifetimeOver`](ErrorKind::LifetimeOver).
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert_eq!(Layout::baidu().ends_at(), 1732109056000); // 2024-11-20T13:24:16Z
    /// ```
    #[must_use]
    pub const fn ends_at(&self) -> i64 {
        self.unix_ms_of(self.lifetime())
    }

    /// Returns the unix millisecond from which on ids are negative in a signed 64-bit column, and
    /// so come before all others there; `None` if they never are, or if another field than the
    /// time decides it.
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert_eq!(Layout::simpleflake().negative_from(), Some(2046214427776)); // in 2034
    /// assert_eq!(Layout::twitter().negative_from(), None);
    /// ```
    #[must_use]
    pub const fn negative_from(&self) -> Option<i64> {
        if self.is_unsigned() && self.time.shift + self.time.bits == 64 {
            Some(self.unix_ms_of(1 << (self.time.bits - 1)))
        } else {
            None
        }
    }

    /// Returns how much time the layout has left after a unix millisecond; zero once it is over.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use randflake::Layout;
    /// let twitter = Layout::twitter();
    /// assert_eq!(twitter.remaining_at(twitter.ends_at() - 1500), Duration::from_millis(1500));
    /// assert_eq!(twitter.remaining_at(i64::MAX), Duration::ZERO);
    /// ```
    #[must_use]
    pub const fn remaining_at(&self, unix_ms: i64) -> Duration {
        let left = self.ends_at().saturating_sub(unix_ms);
        Duration::from_millis(if left > 0 { left.unsigned_abs() } else { 0 })
    }

    /// Returns how much time the layout has left on the machine's clock.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use randflake::Layout;
    /// assert_eq!(Layout::baidu().remaining(), Duration::ZERO);
    /// assert!(Layout::sonyflake2().remaining() > Duration::ZERO);
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.remaining_at(system_ms())
    }

    /// Returns what to warn of at a unix millisecond, if anything: that the layout ends within two
    /// years. Ask when a generator is made.
    ///
    /// ```
    /// # use randflake::Layout;
    /// let baidu = Layout::baidu();
    /// assert_eq!(baidu.warning_at(1600000000000), None); // in 2020
    /// let warning = baidu.warning_at(1700000000000).unwrap(); // in 2023
    /// assert!(warning.contains("2024-11-20T13:24:16Z"));
    /// ```
    #[must_use]
    pub fn warning_at(&self, unix_ms: i64) -> Option<String> {
        let ends_at = self.ends_at();
        (ends_at.saturating_sub(unix_ms) < WARNING_MS).then(|| {
            format!(
                "the layout {} ends at {}: {} days are left; go over to another one before",
                self.name,
                clock::utc(ends_at),
                self.remaining_at(unix_ms).as_secs() / 86_400
            )
        })
    }

    /// Returns what to warn of on the machine's clock; see [`warning_at`](Self::warning_at).
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert!(Layout::baidu().warning().is_some());
    /// assert_eq!(Layout::sonyflake2().warning(), None);
    /// ```
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.warning_at(system_ms())
    }

    /// Returns a text that two layouts share if they pack alike, for whoever keeps records of node
    /// ids. With which sequence ticks begin is not part of it.
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert_eq!(Layout::randflake().fingerprint(), "1730000000:30:17:17");
    /// assert_eq!(Layout::sonyflake().fingerprint(), "1409529600000:10:time39,sequence8,node16");
    /// assert_eq!(Layout::leaf().fingerprint(), Layout::twitter().fingerprint());
    /// ```
    #[must_use]
    pub fn fingerprint(&self) -> String {
        if self.packs_like(&RANDFLAKE) {
            // As stores have had it since before there were other layouts.
            return format!("{EPOCH}:{TIMESTAMP_BITS}:{NODE_BITS}:{SEQUENCE_BITS}");
        }
        let fields: Vec<_> = self
            .fields()
            .iter()
            .map(|(field, bits)| format!("{field:?}{bits}").to_ascii_lowercase())
            .collect();
        format!("{}:{}:{}", self.epoch_ms, self.tick_ms, fields.join(","))
    }

    /// Makes the error of a layout that has no time [left](Self::remaining).
    #[cold]
    #[must_use]
    pub fn lifetime_over(&self) -> Error {
        let end = self.ends_at();
        Error::new(
            ErrorKind::LifetimeOver,
            format!(
                "{} (unix second {}) is the first time that ids of the layout {} cannot carry; \
                 new ids need a layout with a later epoch or more bits for the time",
                clock::utc(end),
                clock::seconds(end),
                self.name
            ),
        )
    }

    /// Makes the error of a node id outside this layout's range.
    #[cold]
    #[must_use]
    pub fn invalid_node(&self, got: impl fmt::Display) -> Error {
        let max = self.max_node_id();
        let of = self.of_the_layout();
        Error::new(
            ErrorKind::InvalidNode,
            format!("a node id{of} must be an integer between 0 and {max}, got {got}"),
        )
    }

    /// Makes the error of a list of more than [`max_nodes`](Self::max_nodes) node ids.
    #[cold]
    #[must_use]
    pub fn too_many_nodes(&self, got: usize) -> Error {
        let max = self.max_nodes();
        let of = self.of_the_layout();
        Error::new(
            ErrorKind::InvalidNode,
            format!("a generator{of} takes at most {max} node ids, got {got}"),
        )
    }

    /// Places fields, which are listed from high to low.
    const fn placed(
        name: &'static str,
        fields: &[(Field, u32)],
        tick_ms: u32,
        epoch_ms: i64,
        starts: Sequence,
    ) -> Self {
        let mut places = [Place { shift: 0, bits: 0 }; 3];
        let mut shift = 0;
        let mut index = fields.len();
        while index > 0 {
            index -= 1;
            let (field, bits) = fields[index];
            if bits > 0 {
                places[field as usize] = Place { shift, bits };
            }
            shift += bits;
        }
        let [time, node, sequence] = places;
        Self { name, time, node, sequence, worker_bits: 0, tick_ms, epoch_ms, starts }
    }

    const fn with_worker_bits(self, worker_bits: u32) -> Self {
        Self { worker_bits, ..self }
    }

    /// Checks everything but the fields and the sign, which [`CustomLayout::build`] does.
    fn checked(self) -> Result<Self> {
        if !(1..=MAX_TICK_MS).contains(&self.tick_ms) {
            return Err(Error::invalid_argument(format!(
                "a tick lasts 1 to {MAX_TICK_MS} milliseconds, got {}",
                self.tick_ms
            )));
        }
        if !(0..=MAX_EPOCH_MS).contains(&self.epoch_ms) {
            return Err(Error::invalid_argument(format!(
                "the epoch must be between 0 and {MAX_EPOCH_MS} unix milliseconds, got {}",
                self.epoch_ms
            )));
        }
        if let Sequence::Random(starts) = self.starts
            && !(1..=self.sequence.max() + 1).contains(&starts.into())
        {
            return Err(Error::invalid_argument(format!(
                "a tick can begin with 1 to {} different sequences, got {starts}",
                self.sequence.max() + 1
            )));
        }
        let lifetime_ms = u128::from(self.lifetime()) * u128::from(self.tick_ms);
        if lifetime_ms + u128::from(self.epoch_ms.unsigned_abs()) > i64::MAX.unsigned_abs().into() {
            return Err(Error::invalid_argument(format!(
                "{} bits of ticks of {} ms are longer than any clock runs; use fewer bits for the \
                 time",
                self.time.bits, self.tick_ms
            )));
        }
        if self.max_nodes() == 0 {
            return Err(Error::invalid_argument(format!(
                "a time of {} bits and {} ids in a tick are too much for the 64 bits of the state \
                 that counts them; use fewer bits for the time or the sequence, or \
                 Sequence::Random with more starts, which leaves fewer ids",
                self.time.bits,
                self.ids_per_node()
            )));
        }
        Ok(self)
    }

    /// Bits from the top field down to 0.
    const fn bits(&self) -> u32 {
        self.time.bits + self.node.bits + self.sequence.bits
    }

    const fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// Tells whether ids of both would be the same for the same time, node id and sequence.
    pub(crate) fn packs_like(&self, other: &Self) -> bool {
        self.packing() == other.packing()
    }

    /// Returns all that decides on the id of a time, a node id and a sequence.
    pub(crate) fn packing(&self) -> impl Hash + PartialEq {
        (self.time, self.node, self.sequence, self.tick_ms, self.epoch_ms)
    }

    fn of_the_layout(&self) -> String {
        if self.packs_like(&RANDFLAKE) {
            String::new()
        } else {
            format!(" of the layout {}", self.name)
        }
    }

    /// Packs a tick, a node id and a sequence, all within their widths.
    #[inline]
    pub(crate) const fn put_together(&self, stamp: u64, node_id: u32, sequence: u64) -> u64 {
        self.time.put(stamp) | self.node.put(node_id as u64) | self.sequence.put(sequence)
    }

    /// What the next sequence adds to a raw id.
    #[inline]
    pub(crate) const fn sequence_step(&self) -> u64 {
        self.sequence.put(1)
    }

    /// Takes a raw id apart into tick, node id and sequence.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "at most 32 bits each")]
    const fn take_apart(&self, raw: u64) -> (u64, u32, u32) {
        (self.time.get(raw), self.node.get(raw) as u32, self.sequence.get(raw) as u32)
    }

    /// Returns how many slots these nodes have in a tick.
    pub(crate) fn slots_of(&self, nodes: &[u32]) -> u64 {
        nodes.len() as u64 * self.ids_per_node()
    }

    /// Returns the index of a slot's node in the list of nodes, and the how manieth id of that
    /// node it is in its tick.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "far below the size of memory")]
    pub(crate) const fn node_and_count(&self, slot: u64) -> (usize, u64) {
        match self.starts {
            Sequence::Random(_) => {
                let per_node = self.ids_per_node();
                ((slot / per_node) as usize, slot % per_node)
            }
            // As many as there are sequences: a division takes its time.
            Sequence::Zero | Sequence::Continuing => {
                ((slot >> self.sequence.bits) as usize, slot & self.sequence.max())
            }
        }
    }

    /// Returns the slot at which a tick begins, after one of `slots` that ended before the slot
    /// `next`.
    #[inline]
    pub(crate) const fn first_slot(&self, next: u64, slots: u64) -> u64 {
        match self.starts {
            Sequence::Continuing if next < slots => next,
            _ => 0,
        }
    }

    /// Returns the sequence at which each node begins a tick.
    #[inline]
    pub(crate) const fn first_sequence(&self, stamp: u64, seed: u64) -> u64 {
        match self.starts {
            Sequence::Random(starts) => ((mix(seed ^ stamp) >> 32) * starts as u64) >> 32,
            Sequence::Zero | Sequence::Continuing => 0,
        }
    }

    /// Ticks of the lifetime, the bound of every stamp.
    #[inline]
    pub(crate) const fn lifetime(&self) -> u64 {
        1 << self.time.bits
    }

    /// Returns the tick of a reading of the clock and the nanoseconds past its begin; `None`
    /// before the epoch.
    #[inline]
    pub(crate) fn tick_at(&self, unix_nanos: i64, guess: u64) -> Option<(u64, u64)> {
        let epoch_nanos = self.epoch_ms * NANOS_PER_MS.cast_signed();
        let tick_nanos = self.tick_nanos();
        let since = u64::try_from(unix_nanos.checked_sub(epoch_nanos)?).ok()?;
        // Mostly the tick goes on, and nothing else here takes as long as a division.
        if let Some(begin) = guess.checked_mul(tick_nanos)
            && since.wrapping_sub(begin) < tick_nanos
        {
            return Some((guess, since - begin));
        }
        Some((since / tick_nanos, since % tick_nanos))
    }

    /// Returns the length of a tick, in nanoseconds.
    pub(crate) fn tick_nanos(&self) -> u64 {
        u64::from(self.tick_ms) * NANOS_PER_MS
    }

    /// Returns how long so many ticks last.
    pub(crate) fn ticks(&self, count: u64) -> Duration {
        Duration::from_millis(count.saturating_mul(self.tick_ms.into()))
    }

    /// Returns the whole ticks of so many seconds.
    pub(crate) fn ticks_in(&self, seconds: u32) -> u64 {
        u64::from(seconds) * 1000 / u64::from(self.tick_ms)
    }

    /// Returns the unix millisecond at which a tick of the lifetime begins.
    #[allow(clippy::cast_possible_wrap, reason = "`checked` keeps the lifetime below 2^63")]
    pub(crate) const fn unix_ms_of(&self, stamp: u64) -> i64 {
        self.epoch_ms + (stamp * self.tick_ms as u64) as i64
    }

    /// Returns the first unix second of which no part comes before a tick.
    pub(crate) const fn second_from(&self, stamp: u64) -> i64 {
        -(-self.unix_ms_of(stamp)).div_euclid(1000)
    }

    /// Returns the unix second in which a tick begins.
    pub(crate) const fn second_of(&self, stamp: u64) -> i64 {
        self.unix_ms_of(stamp).div_euclid(1000)
    }

    /// Returns the ticks that lie in the seconds of a lease as a whole: what is cut in two by its
    /// start or its end belongs to nobody.
    pub(crate) fn window_of(&self, lease: Lease) -> Result<Range<u64>> {
        let whole = self.whole_ticks_of(lease);
        match (u64::try_from(whole.start), u64::try_from(whole.end)) {
            (Ok(start), Ok(end)) if start < end && end <= self.lifetime() => Ok(start..end),
            _ => Err(self.no_window(lease)),
        }
    }

    /// Does as [`window_of`](Self::window_of), but leaves out what lies outside the lifetime: a
    /// store that grants a lease does not know it.
    pub(crate) fn window_within_lifetime(&self, lease: Lease) -> Result<Range<u64>> {
        let whole = self.whole_ticks_of(lease);
        let [start, end] = [whole.start, whole.end].map(|tick| tick.max(0).unsigned_abs());
        if start >= self.lifetime() {
            return Err(self.lifetime_over());
        }
        let window = start..end.min(self.lifetime());
        if window.is_empty() { Err(self.no_window(lease)) } else { Ok(window) }
    }

    /// Returns the first tick that does not begin before a lease and the first one that ends after
    /// it; whether in the lifetime or not.
    fn whole_ticks_of(&self, lease: Lease) -> Range<i64> {
        let since_epoch = |second: i64| second * 1000 - self.epoch_ms;
        let tick_ms = i64::from(self.tick_ms);
        let start = -(-since_epoch(lease.start())).div_euclid(tick_ms);
        start..since_epoch(lease.end_exclusive()).div_euclid(tick_ms)
    }

    #[cold]
    fn no_window(&self, lease: Lease) -> Error {
        Error::new(
            ErrorKind::InvalidLease,
            format!(
                "a lease of node ids of the layout {} must hold a whole tick and lie between \
                 the unix seconds {} and {}, got {}..{}",
                self.name,
                self.second_from(0),
                self.second_of(self.lifetime()),
                lease.start(),
                lease.end_exclusive()
            ),
        )
    }

    /// Returns the tick at a unix millisecond.
    fn stamp_of(&self, unix_ms: i64) -> Result<u64> {
        let since = unix_ms.checked_sub(self.epoch_ms).and_then(|since| u64::try_from(since).ok());
        let stamp = since.map(|since| since / u64::from(self.tick_ms));
        stamp.filter(|&stamp| stamp < self.lifetime()).ok_or_else(|| {
            Error::invalid_argument(format!(
                "times of the layout {} are between {} ({}) and {} ({}) unix milliseconds, \
                     got {unix_ms}",
                self.name,
                self.epoch_ms,
                clock::utc(self.epoch_ms),
                self.ends_at() - 1,
                clock::utc(self.ends_at() - 1)
            ))
        })
    }

    /// Checks a list of node ids and sorts it.
    pub(crate) fn checked_nodes(&self, node_ids: &[u32]) -> Result<Box<[u32]>> {
        let max = self.max_node_id();
        if node_ids.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidNode,
                format!("a generator needs at least one node id between 0 and {max}"),
            ));
        }
        if node_ids.len() > self.max_nodes() {
            return Err(self.too_many_nodes(node_ids.len()));
        }
        let mut nodes: Box<[u32]> = node_ids.into();
        nodes.sort_unstable();
        if let Some(&largest) = nodes.last().filter(|&&node| node > max) {
            return Err(self.invalid_node(largest));
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

/// Takes a raw value of Randflake apart. Every 64-bit value has parts.
#[allow(clippy::cast_possible_wrap, reason = "30 bits")]
pub(crate) const fn unpack(raw: u64) -> Parts {
    let (stamp, node_id, sequence) = RANDFLAKE.take_apart(raw);
    Parts { timestamp: EPOCH + stamp as i64, node_id, sequence }
}

fn system_ms() -> i64 {
    SystemClock.now().map_or(i64::MAX, clock::to_ms) // it does not fail
}

/// Spreads a number over 64 bits: the finalizer of `SplitMix64` (Steele, Lea and Flood, 2014).
const fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_what_custom_would_make() {
        for preset in Layout::PRESETS {
            assert_eq!(preset.checked().as_ref(), Ok(preset));
            let mut places = [
                (Field::Time, preset.time),
                (Field::Node, preset.node),
                (Field::Sequence, preset.sequence),
            ];
            places.sort_by_key(|(_, place)| std::cmp::Reverse(place.shift));
            let custom = Layout::custom(places.map(|(field, place)| (field, place.bits)))
                .tick_ms(preset.tick_ms)
                .epoch_ms(preset.epoch_ms)
                .sequence(preset.starts)
                .unsigned(preset.is_unsigned());
            let custom = match preset.worker_bits {
                0 => custom,
                worker_bits => custom.node_split(preset.node.bits - worker_bits, worker_bits),
            };
            assert_eq!(custom.build(), Ok(Layout { name: "custom", ..*preset }));
        }
    }

    #[test]
    fn randflake_is_what_its_constants_say() {
        assert_eq!(RANDFLAKE.bits(), 64);
        assert_eq!(RANDFLAKE.max_nodes(), MAX_NODES);
        assert_eq!(RANDFLAKE.max_node_id(), MAX_NODE_ID);
        assert_eq!(RANDFLAKE.max_sequence(), MAX_SEQUENCE);
        assert_eq!(RANDFLAKE.ends_at(), LIFETIME_END * 1000);
    }

    #[test]
    fn random_starts_reach_everything_and_nothing_else() {
        for starts in [1, 2, 100] {
            let layout = Layout::twitter().with_sequence(Sequence::Random(starts)).expect("valid");
            let mut seen = vec![false; starts as usize];
            for stamp in 0..5000 {
                let first = layout.first_sequence(stamp, 7);
                assert!(first + layout.ids_per_node() <= 4096, "{first} of {starts}");
                seen[usize::try_from(first).expect("small")] = true;
            }
            assert!(seen.iter().all(|&seen| seen), "{starts}");
        }
    }

    #[test]
    fn a_tick_that_was_guessed_is_the_one_that_is_computed() {
        for layout in Layout::PRESETS {
            let tick_nanos = i64::from(layout.tick_ms) * 1_000_000;
            let begin = layout.unix_ms_of(12_345) * 1_000_000;
            for into in [-1, 0, 1, tick_nanos - 1, tick_nanos] {
                let right = layout.tick_at(begin + into, u64::MAX);
                assert!(
                    right.is_some_and(|(tick, nanos)| tick.abs_diff(12_345) <= 1
                        && nanos < tick_nanos.unsigned_abs())
                );
                for guess in [0, 12_344, 12_345, 12_346] {
                    assert_eq!(layout.tick_at(begin + into, guess), right, "{layout:?} {into}");
                }
            }
            assert_eq!(layout.tick_at(layout.epoch_ms * 1_000_000 - 1, 0), None);
            assert_eq!(layout.tick_at(i64::MIN, 0), None);
        }
    }

    #[test]
    fn a_lease_covers_whole_ticks() {
        let layout = Layout::custom([(Field::Time, 41), (Field::Sequence, 12)])
            .tick_ms(7)
            .epoch_ms(1_730_000_000_003)
            .build()
            .expect("valid");
        let lease = Lease::new(1_763_640_000, 1_763_640_001).expect("a lease");
        let window = layout.window_of(lease).expect("ticks");
        assert!(layout.unix_ms_of(window.start) >= 1_763_640_000_000);
        assert!(layout.unix_ms_of(window.start - 1) < 1_763_640_000_000);
        assert!(layout.unix_ms_of(window.end) <= 1_763_640_001_000);
        assert!(layout.unix_ms_of(window.end + 1) > 1_763_640_001_000);
        assert_eq!(layout.second_of(window.start), 1_763_640_000);
        assert_eq!(layout.second_from(window.end), 1_763_640_001);

        let days = Layout::custom([(Field::Time, 20), (Field::Sequence, 12)]).tick_ms(86_400_000);
        let days = days.build().expect("valid");
        assert!(days.window_of(lease).is_err(), "no whole day in a second");
    }
}
