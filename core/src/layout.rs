//! How time, node id and sequence share 64 bits: the only place with the epochs, bit widths and
//! bounds of Randflake's own layout and the other layouts of the Snowflake family.
//!
//! ```text
//! raw = (unix_seconds - 1730000000) << 34 | node_id << 17 | sequence      30, 17, 17 bits
//! ```
//!
//! That is [`Layout::randflake`], which the constants of this module spell out. Every other
//! [`Layout`] is the same sum with another order of the fields, other widths, another epoch and
//! another tick length.

mod constants;
mod custom;
pub(crate) mod lifetime;
pub(crate) mod nodes;
mod presets;
pub(crate) mod slots;
pub(crate) mod spec;
#[cfg(test)]
mod tests;
mod ticks;

use std::hash::Hash;

use crate::{Error, ErrorKind, Result, clock::NANOS_PER_MS};

pub(crate) use self::presets::RANDFLAKE;
use self::slots::invalid_sequence;
pub use self::{constants::*, custom::CustomLayout};

/// The most bits of a node id and of a sequence in any layout.
const MAX_FIELD_BITS: u32 = 32;
/// Longest tick, in milliseconds: a day.
const MAX_TICK_MS: u32 = 86_400_000;
/// Last epoch, in unix milliseconds: clocks count nanoseconds in 64 bits, up to the year 2262.
const MAX_EPOCH_MS: i64 = i64::MAX / NANOS_PER_MS.cast_signed();

/// A field of a layout.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Field {
    /// Ticks since the epoch.
    Time,
    /// The whole node id, which some layouts split into a datacenter and a worker.
    Node,
    /// Distinguishes the ids of one node and one tick.
    Sequence,
}

/// The initial sequence of each tick. Whichever you choose, the ids that one thread gets with one
/// node id rise.
///
/// A node that makes few ids makes most of them with the initial sequence of a tick. If that is
/// always 0, sharding by the low bits of the ids puts most of them into one shard; the other two
/// policies spread them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Sequence {
    /// 0.
    Zero,
    /// A random number below this one: 100 means 0 to 99. A node then has this number less one,
    /// here 99, fewer ids in a tick.
    Random(u32),
    /// The one after the last sequence, whatever its tick was. A tick ends early when the sequence
    /// wraps, so ids still rise.
    Continuing,
}

/// The position of a field in a raw id.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct BitField {
    shift: u32,
    bits: u32,
}

impl BitField {
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
/// | preset | fields, high to low | tick | epoch | initial sequence | ends |
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
/// published as a local time must be converted.
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
    time: BitField,
    node: BitField,
    sequence: BitField,
    /// Bits of the lower part of the node id; 0 where it is not split.
    worker_bits: u32,
    tick_ms: u32,
    epoch_ms: i64,
    starts: Sequence,
}

/// The parts of a raw id: time, node id and sequence.
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

impl Field {
    /// Returns its name, as the bindings write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Node => "node",
            Self::Sequence => "sequence",
        }
    }
}

impl Layout {
    /// Returns the same layout with another initial sequence. Ids of both read the same.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): the number of random starts is 0, or larger than
    /// the number of sequences.
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

    /// Returns the same layout with time counted from another unix millisecond, as most sites that
    /// copy a published layout do.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): the epoch is before 1970, or so late that
    /// no clock reaches the end.
    ///
    /// ```
    /// # use randflake::Layout;
    /// let ours = Layout::twitter().with_epoch_ms(1_735_689_600_000)?;
    /// assert_eq!(ours.inspect(0)?.unix_ms, 1_735_689_600_000);
    /// assert_eq!("twitter,epoch_ms=1735689600000".parse::<Layout>()?, ours);
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn with_epoch_ms(self, epoch_ms: i64) -> Result<Self> {
        Self { epoch_ms, ..self }.checked()
    }

    /// Returns the parts of a raw id. Every number without bits outside the fields has parts, even if
    /// it is not an id.
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
        let (stamp, node_id, sequence) = self.unpack_fields(raw);
        Ok(RawParts { unix_ms: self.unix_ms_of(stamp), node_id, sequence })
    }

    /// Packs a time in unix milliseconds, which is rounded down to its tick, a node id and a
    /// sequence. For tests and conversions: the id may not be unique.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): the time is outside the lifetime or the
    /// sequence too large. [`InvalidNode`](ErrorKind::InvalidNode): the node id is too large.
    pub fn pack(&self, unix_ms: i64, node_id: u32, sequence: u32) -> Result<u64> {
        let stamp = self.stamp_of(unix_ms)?;
        self.check_node_id(node_id)?;
        if sequence > self.max_sequence() {
            return Err(invalid_sequence(self, sequence));
        }
        Ok(self.pack_fields(stamp, node_id, sequence.into()))
    }

    /// Returns the smallest raw id of the tick at a time in unix milliseconds. Use it to find rows by
    /// the time at which their ids were made.
    ///
    /// Raw ids are compared as unsigned numbers. In a signed column, ids from
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
        let bit_fields =
            [(Field::Time, self.time), (Field::Node, self.node), (Field::Sequence, self.sequence)];
        let mut bit_fields = bit_fields.to_vec();
        bit_fields.retain(|(_, bit_field)| bit_field.bits > 0);
        bit_fields.sort_by_key(|(_, bit_field)| std::cmp::Reverse(bit_field.shift));
        bit_fields.into_iter().map(|(field, bit_field)| (field, bit_field.bits)).collect()
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

    /// Returns the initial sequence of each tick.
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

    /// Returns a text that two layouts share if they pack ids in the same way. Use it to name the
    /// layout in a register of node ids. The initial sequence is not part of it.
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert_eq!(Layout::randflake().fingerprint(), "1730000000:30:17:17");
    /// assert_eq!(Layout::sonyflake().fingerprint(), "1409529600000:10:time39,sequence8,node16");
    /// assert_eq!(Layout::leaf().fingerprint(), Layout::twitter().fingerprint());
    /// ```
    #[must_use]
    pub fn fingerprint(&self) -> String {
        if self.packs_like(&Self::randflake()) {
            // The form in stores from before there were other layouts.
            return format!("{EPOCH}:{TIMESTAMP_BITS}:{NODE_BITS}:{SEQUENCE_BITS}");
        }
        let fields: Vec<_> = self
            .fields()
            .iter()
            .map(|(field, bits)| format!("{field:?}{bits}").to_ascii_lowercase())
            .collect();
        format!("{}:{}:{}", self.epoch_ms, self.tick_ms, fields.join(","))
    }

    /// Places fields that are listed from high to low.
    const fn placed(
        name: &'static str,
        fields: &[(Field, u32)],
        tick_ms: u32,
        epoch_ms: i64,
        starts: Sequence,
    ) -> Self {
        let mut bit_fields = [BitField { shift: 0, bits: 0 }; 3];
        let mut shift = 0;
        let mut index = fields.len();
        while index > 0 {
            index -= 1;
            let (field, bits) = fields[index];
            if bits > 0 {
                bit_fields[field as usize] = BitField { shift, bits };
            }
            shift += bits;
        }
        let [time, node, sequence] = bit_fields;
        Self { name, time, node, sequence, worker_bits: 0, tick_ms, epoch_ms, starts }
    }

    const fn with_worker_bits(self, worker_bits: u32) -> Self {
        Self { worker_bits, ..self }
    }

    /// Checks everything but the fields and the sign, which [`CustomLayout::build`] checks.
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
        Ok(self)
    }

    /// Bits from the top field down to 0.
    const fn bits(&self) -> u32 {
        self.time.bits + self.node.bits + self.sequence.bits
    }

    const fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// Returns whether both pack the same time, node id and sequence into the same id.
    pub(crate) fn packs_like(&self, other: &Self) -> bool {
        self.packing() == other.packing()
    }

    /// Returns everything that determines the id of a time, a node id and a sequence.
    pub(crate) fn packing(&self) -> impl Hash + PartialEq {
        (self.time, self.node, self.sequence, self.tick_ms, self.epoch_ms)
    }
}
