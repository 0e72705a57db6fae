//! Custom layouts.

use super::{Field, Layout, MAX_FIELD_BITS, Sequence};
use crate::{Error, Result};

/// The options of a custom layout; see [`Layout::custom`].
#[derive(Clone, Debug)]
pub struct CustomLayout {
    fields: Vec<(Field, u32)>,
    tick_ms: u32,
    epoch_ms: i64,
    starts: Sequence,
    unsigned: bool,
    split: Option<[u32; 2]>,
}

impl Layout {
    /// Starts a layout with its fields, from high to low, and their widths in bits. The time is
    /// required; the node id and the sequence are optional and have at most 32 bits each. By default
    /// ticks last 1 ms, time counts from 1970-01-01, each tick begins with the sequence 0, and the top
    /// bit stays zero.
    ///
    /// ```
    /// use randflake::{Field, Layout};
    ///
    /// // The example of UidGenerator's README, whose epoch is 2016-09-20 in China.
    /// let layout = Layout::custom([(Field::Time, 29), (Field::Node, 21), (Field::Sequence, 13)])
    ///     .tick_ms(1000)
    ///     .epoch_ms(1474300800000)
    ///     .build()?;
    /// let parts = layout.inspect(180363646902239241)?;
    /// assert_eq!((parts.unix_ms, parts.node_id, parts.sequence), (1484799346000, 4, 9));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn custom(fields: impl IntoIterator<Item = (Field, u32)>) -> CustomLayout {
        CustomLayout {
            fields: fields.into_iter().collect(),
            tick_ms: 1,
            epoch_ms: 0,
            starts: Sequence::Zero,
            unsigned: false,
            split: None,
        }
    }
}

impl CustomLayout {
    /// Sets the length of a tick, 1 to 86 400 000 milliseconds.
    #[must_use]
    pub fn tick_ms(mut self, tick_ms: u32) -> Self {
        self.tick_ms = tick_ms;
        self
    }

    /// Sets the unix millisecond at which tick 0 begins, from 1970 on.
    #[must_use]
    pub fn epoch_ms(mut self, epoch_ms: i64) -> Self {
        self.epoch_ms = epoch_ms;
        self
    }

    /// Sets the initial sequence of each tick.
    #[must_use]
    pub fn sequence(mut self, sequence: Sequence) -> Self {
        self.starts = sequence;
        self
    }

    /// Lets the fields use all 64 bits. Ids are then unsigned numbers, and some are, or will be,
    /// negative in a signed column.
    #[must_use]
    pub fn unsigned(mut self, unsigned: bool) -> Self {
        self.unsigned = unsigned;
        self
    }

    /// Splits the node id into a datacenter and a worker of this many bits, which fill it.
    #[must_use]
    pub fn node_split(mut self, datacenter_bits: u32, worker_bits: u32) -> Self {
        self.split = Some([datacenter_bits, worker_bits]);
        self
    }

    /// Makes the layout.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): no time, a field listed twice, one that is
    /// too wide, 64 bits without [`unsigned`](Self::unsigned), a split that does not fill the node
    /// id, or a tick, an epoch or random starts out of range. A time and a sequence that are too wide
    /// to be counted together make a layout [for reading](Layout::check_generates).
    ///
    /// ```
    /// use randflake::{Field, Layout};
    ///
    /// let all_bits = Layout::custom([(Field::Time, 42), (Field::Node, 10), (Field::Sequence, 12)]);
    /// assert!(all_bits.clone().build().unwrap_err().to_string().contains("unsigned"));
    /// assert_eq!(all_bits.unsigned(true).build()?.ids_per_node(), 4096);
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn build(self) -> Result<Layout> {
        for (index, (field, bits)) in self.fields.iter().enumerate() {
            if self.fields[..index].iter().any(|(earlier, _)| earlier == field) {
                return Err(Error::invalid_argument(format!(
                    "the field {} is listed twice",
                    field.name()
                )));
            }
            // The packed state needs a bit for the seal and two for the slots.
            let most = if *field == Field::Time { 61 } else { MAX_FIELD_BITS };
            if *bits > most {
                return Err(Error::invalid_argument(format!(
                    "the field {} must have at most {most} bits, got {bits}",
                    field.name()
                )));
            }
        }
        if !self.fields.iter().any(|&(field, bits)| field == Field::Time && bits > 0) {
            return Err(Error::invalid_argument("a layout needs a time of at least one bit"));
        }
        let most = if self.unsigned { 64 } else { 63 };
        let bits: u32 = self.fields.iter().map(|(_, bits)| bits).sum();
        if bits > most {
            return Err(Error::invalid_argument(format!(
                "the fields of a layout must have at most 63 bits, or 64 if it is unsigned, got \
                 {bits}"
            )));
        }
        let layout =
            Layout::placed("custom", &self.fields, self.tick_ms, self.epoch_ms, self.starts);
        let [datacenter_bits, worker_bits] = self.split.unwrap_or([layout.node.bits, 0]);
        if datacenter_bits.checked_add(worker_bits) != Some(layout.node.bits) {
            return Err(Error::invalid_argument(format!(
                "the parts of a node id of {} bits must fill it, got {datacenter_bits} and \
                 {worker_bits}",
                layout.node.bits
            )));
        }
        layout.with_worker_bits(worker_bits).checked()
    }
}
