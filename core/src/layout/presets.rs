//! The presets: layouts with a name.

use super::{EPOCH, Field, Layout, NODE_BITS, SEQUENCE_BITS, Sequence, TIMESTAMP_BITS};

/// Randflake's own.
pub(crate) const RANDFLAKE: Layout = Layout::placed(
    "randflake",
    &[(Field::Time, TIMESTAMP_BITS), (Field::Node, NODE_BITS), (Field::Sequence, SEQUENCE_BITS)],
    1000,
    EPOCH * 1000,
    Sequence::Zero,
);

impl Layout {
    /// Every preset.
    ///
    /// ```
    /// # use randflake::Layout;
    /// let names: Vec<_> = Layout::PRESETS.iter().map(|layout| layout.name()).collect();
    /// assert_eq!(names.len(), 9);
    /// assert!(names.contains(&"sonyflake"));
    /// ```
    pub const PRESETS: &[Self] = &[
        Self::randflake(),
        Self::twitter(),
        Self::discord(),
        Self::leaf(),
        Self::baidu(),
        Self::sonyflake(),
        Self::sonyflake2(),
        Self::instagram(),
        Self::simpleflake(),
    ];

    /// Randflake's own layout: what [`Randflake::decrypt`](crate::Randflake::decrypt) returns.
    ///
    /// ```
    /// # use randflake::Layout;
    /// let parts = Layout::randflake().inspect(63673697622556673)?;
    /// assert_eq!((parts.unix_ms, parts.node_id, parts.sequence), (1733706297000, 42, 1));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub const fn randflake() -> Self {
        RANDFLAKE
    }

    /// Twitter's Snowflake of 2010. The node id is a datacenter and a worker of 5 bits each.
    ///
    /// ```
    /// # use randflake::Layout;
    /// let twitter = Layout::twitter();
    /// let parts = twitter.inspect(1541815603606036480)?;
    /// assert_eq!(twitter.split_node(parts.node_id), Some((11, 26)));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub const fn twitter() -> Self {
        Self::family("twitter", 1_288_834_974_657, Sequence::Zero).with_worker_bits(5)
    }

    /// Discord's layout: 42 bits of time, so all 64 bits are used. The node id is a worker and a
    /// process of 5 bits each.
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert!(Layout::discord().is_unsigned());
    /// ```
    #[must_use]
    pub const fn discord() -> Self {
        let fields = [(Field::Time, 42), (Field::Node, 10), (Field::Sequence, 12)];
        Self::placed("discord", &fields, 1, 1_420_070_400_000, Sequence::Continuing)
            .with_worker_bits(5)
    }

    /// Meituan's Leaf, in its snowflake mode: [`twitter`](Self::twitter) with a random initial
    /// sequence from 0 to 99.
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert_eq!(Layout::leaf().ids_per_node(), 4096 - 99);
    /// ```
    #[must_use]
    pub const fn leaf() -> Self {
        Self::family("leaf", 1_288_834_974_657, Sequence::Random(100))
    }

    /// The default of Baidu's `UidGenerator`. It **ended at 2024-11-20T13:24:16Z**: use it only to
    /// read ids. A generator with it is refused.
    ///
    /// ```
    /// # use randflake::{ErrorKind, Layout, Snowflake};
    /// let error = Snowflake::new(1, Layout::baidu()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::LifetimeOver);
    /// assert!(error.to_string().contains("2024-11-20T13:24:16Z"));
    /// ```
    #[must_use]
    pub const fn baidu() -> Self {
        let fields = [(Field::Time, 28), (Field::Node, 22), (Field::Sequence, 13)];
        Self::placed("baidu", &fields, 1000, 1_463_673_600_000, Sequence::Zero)
    }

    /// Sonyflake of version 1: ticks of 10 ms, the sequence *above* the node id.
    ///
    /// ```
    /// # use randflake::Layout;
    /// let parts = Layout::sonyflake().inspect(600114305433927938)?;
    /// assert_eq!((parts.unix_ms, parts.node_id, parts.sequence), (1767225600000, 258, 5));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub const fn sonyflake() -> Self {
        Self::sony("sonyflake", 1_409_529_600_000)
    }

    /// Sonyflake of version 2: [`sonyflake`](Self::sonyflake) from 2025-01-01 on.
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert_eq!(Layout::sonyflake2().epoch_ms(), 1735689600000);
    /// ```
    #[must_use]
    pub const fn sonyflake2() -> Self {
        Self::sony("sonyflake2", 1_735_689_600_000)
    }

    /// Instagram's layout, from its published PL/pgSQL: the node id is a shard.
    ///
    /// ```
    /// # use randflake::Layout;
    /// let parts = Layout::instagram().inspect(2384288897814875714)?;
    /// assert_eq!((parts.unix_ms, parts.node_id, parts.sequence), (1598449407313, 2675, 578));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub const fn instagram() -> Self {
        let fields = [(Field::Time, 41), (Field::Node, 13), (Field::Sequence, 10)];
        Self::placed("instagram", &fields, 1, 1_314_220_021_721, Sequence::Continuing)
    }

    /// Simpleflake: time and randomness, no node ids. **Its ids are unique within one process
    /// only**: two processes repeat each other's ids by chance. Within the process they are
    /// certain to be unique: a tick begins with a random sequence and counts up.
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert_eq!(Layout::simpleflake().node_bits(), 0);
    /// ```
    #[must_use]
    pub const fn simpleflake() -> Self {
        // The number of starts that leaves 2^21 ids a tick, which fit into the packed state.
        let starts = (1 << 23) - (1 << 21) + 1;
        let fields = [(Field::Time, 41), (Field::Sequence, 23)];
        Self::placed("simpleflake", &fields, 1, 946_702_800_000, Sequence::Random(starts))
    }

    /// Twitter's fields.
    const fn family(name: &'static str, epoch_ms: i64, starts: Sequence) -> Self {
        let fields = [(Field::Time, 41), (Field::Node, 10), (Field::Sequence, 12)];
        Self::placed(name, &fields, 1, epoch_ms, starts)
    }

    /// Sonyflake's.
    const fn sony(name: &'static str, epoch_ms: i64) -> Self {
        let fields = [(Field::Time, 39), (Field::Sequence, 8), (Field::Node, 16)];
        Self::placed(name, &fields, 10, epoch_ms, Sequence::Zero)
    }
}
