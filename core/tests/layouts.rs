//! Layouts and their generators: published ids, bounds, and the invariants with random layouts and
//! scripted clocks.

mod common;

use std::{
    cell::Cell,
    collections::HashSet,
    sync::atomic::{AtomicI64, AtomicU32, Ordering},
    thread,
    time::Duration,
};

use common::{Call, Pair, Scripted, World};
use proptest::prelude::*;
use randflake::{
    BoundaryFlake, Cloak, Clock, Error, ErrorKind, Field, Id, Layout, Lease, RawParts, Result,
    Sequence, Snowflake, SystemClock,
};
use randflake_vectors::{
    checked_in,
    model::{Options, SECOND},
};
use serde_json::Value;

const NOON: i64 = 1_763_640_000;
const MS: i64 = 1_000_000;

fn file(name: &str) -> Value {
    serde_json::from_str(&checked_in(name)).expect("a vector file is JSON")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{value} has a list {key}"))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{value} has a text {key}"))
}

fn number<T: TryFrom<i64>>(value: &Value) -> T {
    let number = value.as_i64().unwrap_or_else(|| panic!("{value} is a whole number"));
    T::try_from(number).unwrap_or_else(|_| panic!("{value} is in range"))
}

fn wide<T: std::str::FromStr>(value: &Value, key: &str) -> T {
    text(value, key).parse().unwrap_or_else(|_| panic!("{value} has a decimal string {key}"))
}

fn kind<T>(result: Result<T>) -> Result<(), ErrorKind> {
    result.map(drop).map_err(|error| error.kind())
}

/// Builds a layout of the vector file by its fields.
fn described(value: &Value) -> Layout {
    let fields: Vec<_> = list(value, "fields")
        .iter()
        .map(|field| {
            let name = match field[0].as_str() {
                Some("time") => Field::Time,
                Some("node") => Field::Node,
                Some("sequence") => Field::Sequence,
                other => panic!("an unknown field {other:?}"),
            };
            (name, number(&field[1]))
        })
        .collect();
    let bits: u32 = fields.iter().map(|(_, bits)| bits).sum();
    let sequence = match value["sequence"].as_str() {
        Some("zero") => Sequence::Zero,
        Some("continuing") => Sequence::Continuing,
        _ => Sequence::Random(number(&value["sequence"][1])),
    };
    let mut custom = Layout::custom(fields)
        .tick_ms(number(&value["tick_ms"]))
        .epoch_ms(number(&value["epoch_ms"]))
        .sequence(sequence)
        .unsigned(bits == 64);
    if let Some(split) = value["node_split"].as_array() {
        custom = custom.node_split(number(&split[0][1]), number(&split[1][1]));
    }
    custom.build().expect("a layout")
}

#[test]
fn published_ids_and_those_of_peers_read_and_pack() {
    let file = file("layouts.json");
    let layouts = file["layouts"].as_object().expect("layouts");
    for preset in Layout::PRESETS {
        assert!(layouts.contains_key(preset.name()), "{} has a case", preset.name());
    }
    let peers = self::file("peers.json");
    for case in list(&file, "cases").iter().chain(list(&peers, "cases")) {
        let name = text(case, "layout");
        let by_fields = described(&layouts[name]);
        let by_name = name.parse::<Layout>();
        assert_eq!(by_name.is_err(), layouts[name]["custom"] == true, "{name}");
        for layout in [Ok(by_fields), by_name].into_iter().flatten() {
            let parts = RawParts {
                unix_ms: number(&case["unix_ms"]),
                node_id: case["node_id"].as_i64().map_or(0, |_| number(&case["node_id"])),
                sequence: number(&case["sequence"]),
            };
            let id = wide(case, "id");
            assert_eq!(layout.inspect(id), Ok(parts), "{case}");
            assert_eq!(layout.pack(parts.unix_ms, parts.node_id, parts.sequence), Ok(id), "{case}");
            assert_eq!(layout.first_id_at(parts.unix_ms), Ok(wide(case, "first_id")), "{case}");
            assert_eq!(layout.last_id_at(parts.unix_ms), Ok(wide(case, "last_id")), "{case}");
            assert_eq!(layout.node_bits() == 0, case["node_id"].is_null(), "{case}");
            let split = layout.split_node(parts.node_id);
            let expected = case.get("node_parts").map(|both| (number(&both[0]), number(&both[1])));
            assert_eq!(split, expected, "{case}");
            if let Some((datacenter, worker)) = split {
                assert_eq!(layout.join_node(datacenter, worker), Ok(parts.node_id), "{case}");
            }
            assert_eq!(layout.sequence(), by_fields.sequence(), "{case}");
        }
    }
}

#[test]
fn cloaks_hide_and_reveal() {
    let file = file("cloak.json");
    for case in list(&file, "cases") {
        let cloak = Cloak::new(&text(case, "secret").parse().expect("hex"), text(case, "label"));
        let (number, hidden) = (wide::<u64>(case, "number"), Id::from(wide::<i64>(case, "hidden")));
        assert_eq!(cloak.hide(number), hidden, "{case}");
        assert_eq!(cloak.reveal(hidden), number, "{case}");
        assert_eq!(hidden.to_string(), text(case, "text"), "{case}");
        // More than the largest group of any vector instruction.
        let mut many = vec![number.cast_signed(); 77];
        cloak.hide_in_place(&mut many);
        assert_eq!(many, vec![i64::from(hidden); 77], "{case}");
        cloak.reveal_in_place(&mut many);
        assert_eq!(many, vec![number.cast_signed(); 77], "{case}");
        assert_eq!(format!("{cloak:?}"), "Cloak(..)");
    }
}

#[test]
fn published_boundary_flakes_read_and_convert() {
    let file = file("boundary.json");
    for case in list(&file, "cases") {
        let flake: BoundaryFlake = text(case, "text").parse().expect("base 62");
        let hex = |bytes: &[u8]| {
            let number = bytes.iter().fold(0_u128, |number, &byte| number << 8 | u128::from(byte));
            format!("{number:0width$x}", width = 2 * bytes.len())
        };
        assert_eq!(hex(&flake.to_bytes()), text(case, "bytes"), "{case}");
        assert_eq!(BoundaryFlake::from_bytes(flake.to_bytes()), flake, "{case}");
        assert_eq!(flake.to_string(), text(case, "text"), "{case}");
        assert_eq!(flake.unix_ms(), wide::<u64>(case, "unix_ms"), "{case}");
        assert_eq!(hex(&flake.worker()), text(case, "worker"), "{case}");
        assert_eq!(flake.sequence(), number::<u16>(&case["sequence"]), "{case}");
    }
    for case in list(&file, "invalid") {
        let flake = text(case, "text").parse::<BoundaryFlake>();
        assert_eq!(kind(flake), Err(ErrorKind::InvalidId), "{case}");
    }
}

#[test]
fn invalid_arguments_are_refused_with_their_bound() {
    use Field::{Node, Sequence as Count, Time};
    let build = |fields: &[(Field, u32)]| Layout::custom(fields.iter().copied());
    let plain = || build(&[(Time, 41), (Node, 10), (Count, 12)]);
    for (layout, bound) in [
        (build(&[]), "time"),
        (build(&[(Node, 10), (Count, 12)]), "time"),
        (build(&[(Time, 0), (Count, 12)]), "time"),
        (build(&[(Time, 20), (Time, 21)]), "twice"),
        (build(&[(Time, 62)]), "61"),
        (build(&[(Time, 10), (Node, 33)]), "32"),
        (build(&[(Time, 10), (Count, u32::MAX)]), "32"),
        (build(&[(Time, 42), (Node, 10), (Count, 12)]), "unsigned"),
        (build(&[(Time, 43), (Node, 10), (Count, 12)]).unsigned(true), "64"),
        (plain().tick_ms(0), "86400000"),
        (plain().tick_ms(86_400_001), "86400000"),
        (plain().epoch_ms(-1), "9223372036854"),
        (plain().epoch_ms(i64::MAX), "9223372036854"),
        (build(&[(Time, 61)]).tick_ms(10), "fewer bits"),
        (plain().sequence(Sequence::Random(0)), "4096"),
        (plain().sequence(Sequence::Random(4097)), "4096"),
        (plain().node_split(5, 4), "10 bits"),
        (plain().node_split(u32::MAX, 11), "10 bits"),
    ] {
        let described = format!("{layout:?}");
        let error = layout.build().expect_err(&described);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{described}");
        assert!(error.to_string().contains(bound), "{described}: {error}");
    }
    let reading = build(&[(Time, 41), (Count, 23)]).unsigned(true).build().expect("it can be read");
    let error = Snowflake::new(0, reading).expect_err("it can't be counted");
    assert_eq!((error.kind(), reading.max_nodes()), (ErrorKind::InvalidArgument, 0));
    assert!(error.to_string().contains("random initial sequence"), "{error}");
    assert_eq!(reading.check_generates().expect_err("the same").to_string(), error.to_string());
    let error = "snowflake".parse::<Layout>().expect_err("no preset");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("twitter, discord"), "{error}");

    let twitter = Layout::twitter();
    let (epoch, end) = (twitter.epoch_ms(), twitter.ends_at());
    for unix_ms in [i64::MIN, 0, epoch - 1, end, i64::MAX] {
        assert_eq!(kind(twitter.pack(unix_ms, 0, 0)), Err(ErrorKind::InvalidArgument), "{unix_ms}");
        assert_eq!(kind(twitter.first_id_at(unix_ms)), Err(ErrorKind::InvalidArgument));
        assert_eq!(kind(twitter.last_id_at(unix_ms)), Err(ErrorKind::InvalidArgument));
    }
    assert_eq!(twitter.pack(epoch, 0, 0), Ok(0));
    assert_eq!(twitter.last_id_at(end - 1), Ok(u64::MAX >> 1));
    assert_eq!(kind(twitter.pack(epoch, 1024, 0)), Err(ErrorKind::InvalidNode));
    assert_eq!(kind(twitter.pack(epoch, 0, 4096)), Err(ErrorKind::InvalidArgument));
    assert_eq!(kind(twitter.inspect(1 << 63)), Err(ErrorKind::InvalidId));
    assert_eq!(twitter.inspect(u64::MAX >> 1).expect("all bits").unix_ms, end - 1);

    // Ids that are not in the order of time have no range for a time.
    let upside_down = build(&[(Node, 10), (Time, 41), (Count, 12)]).build().expect("valid");
    let error = upside_down.first_id_at(NOON * 1000).expect_err("no order");
    assert!(error.to_string().contains("order"), "{error}");
    assert_eq!(kind(upside_down.last_id_at(NOON * 1000)), Err(ErrorKind::InvalidArgument));
}

#[test]
fn generators_refuse_what_does_not_fit_into_their_layout() {
    let noon = || NOON * SECOND;
    let builder = |layout| Snowflake::builder(layout).clock(noon);
    for (layout, node_ids) in [
        (Layout::twitter(), vec![]),
        (Layout::twitter(), vec![1024]),
        (Layout::twitter(), vec![7, 7]),
        (Layout::twitter(), (0..1024).collect()),
        (Layout::discord(), (0..512).collect()),
        (Layout::sonyflake(), vec![65_536]),
        (Layout::sonyflake(), (0..16_385).collect()),
        (Layout::simpleflake(), vec![1]),
        (Layout::simpleflake(), vec![0, 0]),
    ] {
        let result = builder(layout).node_ids(node_ids).build();
        assert_eq!(kind(result), Err(ErrorKind::InvalidNode), "{layout:?}");
    }
    builder(Layout::twitter()).node_ids(0..1023).build().expect("as many as there may be");
    let simple = builder(Layout::simpleflake()).build().expect("no node id needed");
    assert_eq!(simple.node_ids(), [0]);
    let message = Snowflake::new(1024, Layout::twitter()).expect_err("too large").to_string();
    assert!(message.contains("twitter") && message.contains("1023"), "{message}");

    let drifting = builder(Layout::twitter()).node_id(1).max_drift(1).build();
    assert_eq!(kind(drifting), Err(ErrorKind::InvalidArgument), "no lease");
    // A lease before the layout's epoch, and after its end.
    let lease = Lease::new(1_730_000_000, 1_730_000_100).expect("a lease");
    let early = builder(Layout::sonyflake2()).node_id(1).lease(lease).build();
    assert_eq!(kind(early), Err(ErrorKind::InvalidLease));
    let ended = Snowflake::builder(Layout::baidu()).node_id(1).lease(lease);
    let ended =
        ended.lease(Lease::new(NOON, NOON + 1).expect("a lease")).clock(|| 1_730_000_000 * SECOND);
    assert_eq!(kind(ended.build()), Err(ErrorKind::InvalidLease));
}

#[test]
fn layouts_warn_before_they_end() {
    let baidu = Layout::baidu();
    let end = baidu.ends_at() * MS;
    let now = Cell::new(end - SECOND);
    let flake = Snowflake::builder(baidu)
        .node_id(5)
        .max_wait(Duration::ZERO)
        .clock(|| now.get())
        .build()
        .expect("a second is left");
    let last = flake.generate().expect("an id of the last second");
    assert_eq!(last, baidu.pack(baidu.ends_at() - 1, 5, 0).expect("in range"));
    now.set(end);
    for _ in 0..2 {
        let error = flake.generate().expect_err("nothing wraps");
        assert_eq!(error.kind(), ErrorKind::LifetimeOver);
        assert!(error.to_string().contains("baidu") && error.to_string().contains("2024-11-20"));
        assert_eq!(kind(flake.ready_in()), Err(ErrorKind::LifetimeOver));
    }
    let error = Snowflake::builder(baidu).node_id(5).clock(|| end).build().expect_err("over");
    assert_eq!(error.kind(), ErrorKind::LifetimeOver);
    // No warning years before the end, then one that stays.
    let year = 365 * 86_400_000;
    assert_eq!(baidu.warning_at(baidu.ends_at() - 3 * year), None);
    assert!(baidu.warning_at(baidu.ends_at() - year).expect("a warning").contains("365 days"));
    assert!(baidu.warning_at(i64::MAX).expect("a warning").contains(" 0 days"));
    // Before the epoch.
    let early = Snowflake::builder(Layout::twitter()).node_id(1).clock(|| 0).build();
    let error = early.expect("an unset clock may yet be set").generate().expect_err("too early");
    assert_eq!(error.kind(), ErrorKind::ClockBeforeEpoch);
    assert!(error.to_string().contains("2010-11-04"), "{error}");
}

/// A random layout: few bits, so that its limits are reached.
fn layouts() -> impl Strategy<Value = Layout> {
    let ticks = prop_oneof![Just(1_u32), Just(10), Just(1000), 1..3000_u32];
    // 31 bits of milliseconds from 24 days ago on, or slightly more.
    // With one id per tick, a batch of one would get the time of an additional tick, but a single
    // call would not.
    let fields = (33..44_u32, 0..8_u32, 1..12_u32, 0..6_usize);
    let starts = prop_oneof![Just(Sequence::Zero), Just(Sequence::Continuing)];
    (fields, ticks, 0..2_000_000_000_i64, starts, any::<bool>()).prop_map(
        |((time, node, sequence, order), tick_ms, ago, starts, unsigned)| {
            use Field::{Node, Sequence as Count, Time};
            let (time, node, sequence) = ((Time, time), (Node, node), (Count, sequence));
            let fields = [
                [time, node, sequence],
                [time, sequence, node],
                [node, time, sequence],
                [sequence, time, node],
                [node, sequence, time],
                [sequence, node, time],
            ][order];
            Layout::custom(fields)
                .tick_ms(tick_ms)
                .epoch_ms(NOON * 1000 - ago)
                .sequence(starts)
                .unsigned(unsigned)
                .build()
                .expect("at most 63 bits")
        },
    )
}

#[derive(Clone, Copy, Debug)]
enum Draft {
    Generate,
    Fill(usize),
    /// Ids for about this many ticks.
    FillTicks(usize, isize),
    Extend(i64),
    Close,
}

/// The course of a clock, in nanoseconds.
#[derive(Clone, Debug)]
struct Course {
    start: i64,
    steps: Vec<i64>,
    can_sleep: bool,
}

prop_compose! {
    fn plans()(
        layout in layouts(),
        nodes in 1..4_u32,
        max_wait in prop_oneof![Just(0_i64), Just(64), 1..300_i64],
        lease in prop::option::weighted(0.6, (0..5_i64, 1..8_i64)),
        max_drift in 0..4_i64,
        can_sleep: bool,
        steps in prop::collection::vec(prop_oneof![
            8 => Just(0_i64), 6 => 0..3_i64, 3 => 3..100_i64, 1 => -3..0_i64, 1 => -5000..5000_i64
        ], 1..30),
        calls in prop::collection::vec(prop_oneof![
            12 => Just(Draft::Generate),
            4 => (0..4_usize).prop_map(Draft::Fill),
            6 => (1..4_usize, -2..3_isize).prop_map(|(ticks, more)| Draft::FillTicks(ticks, more)),
            2 => (-1..12_i64).prop_map(Draft::Extend),
            1 => Just(Draft::Close),
        ], 1..30),
        begin in 0..5000_i64,
    ) -> (Layout, Options, Course, Vec<Call>) {
        let nodes = nodes.min(layout.max_node_id() + 1);
        let node_ids: Vec<u32> = (0..nodes).map(|node| layout.max_node_id() - node).collect();
        let cap = nodes as usize * usize::try_from(layout.ids_per_node()).expect("small");
        let calls = calls.into_iter().map(|call| match call {
            Draft::Generate => Call::Generate,
            Draft::Fill(count) => Call::Fill(count),
            Draft::FillTicks(ticks, more) => {
                Call::Fill((ticks * cap).saturating_add_signed(more))
            }
            Draft::Extend(seconds) => Call::Extend(NOON + seconds),
            Draft::Close => Call::Close,
        });
        // A quarter of a tick or a millisecond, whichever is shorter: both count.
        let grain = (i64::from(layout.tick_ms()) * MS).min(4 * MS) / 4;
        let steps: Vec<i64> = steps.into_iter().map(|step| step * grain).collect();
        let options = Options {
            node_ids,
            lease: lease.map(|(start, length)| (NOON + start, NOON + start + length + 6)),
            max_wait: max_wait * SECOND / 64,
            max_drift: if lease.is_some() { max_drift } else { 0 },
        };
        let course = Course { start: NOON * SECOND + begin * MS, steps, can_sleep };
        (layout, options, course, calls.collect())
    }
}

#[test]
fn texts_of_layouts() {
    let file = file("layout_texts.json");
    for case in list(&file, "layouts") {
        let layout: Layout = text(case, "text").parse().expect("a layout");
        assert_eq!(layout.to_string(), text(case, "written"));
        assert_eq!(layout.name(), text(case, "name"));
        assert_eq!(layout.to_string().parse::<Layout>(), Ok(layout), "{layout}");
        let described = described(case);
        assert_eq!(layout.fingerprint(), described.fingerprint(), "{layout}");
        assert_eq!(layout.sequence(), described.sequence(), "{layout}");
        if case["name"] == "custom" {
            assert_eq!(layout, described);
        }
    }
    for refused in list(&file, "refused") {
        let refused = refused.as_str().expect("a text");
        assert_eq!(kind(refused.parse::<Layout>()), Err(ErrorKind::InvalidArgument), "{refused:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(1000),
        ..ProptestConfig::default()
    })]

    /// The text of a layout describes it.
    #[test]
    fn a_layout_is_what_its_text_says(layout in layouts()) {
        prop_assert_eq!(layout.to_string().parse::<Layout>(), Ok(layout));
    }

    /// The rule of one call is the same for every layout: call by call, the core does what the
    /// reference model does, and no id comes twice, early, or outside the lease.
    #[test]
    fn core_and_model_agree(plan in plans()) {
        let (layout, options, Course { start, steps, can_sleep }, calls) = plan;
        let world = World::new(start, steps.into_iter().cycle(), can_sleep);
        let mut pair = Pair::of(layout, &options, world);
        for call in calls {
            pair.call(call);
        }
    }

    #[test]
    fn pack_and_inspect_undo_each_other(
        layout in layouts(),
        ticks in 0..1_u64 << 33,
        into: u32,
        node_id: u32,
        sequence: u32,
    ) {
        let parts = RawParts {
            unix_ms: layout.epoch_ms() + ticks.cast_signed() * i64::from(layout.tick_ms()),
            node_id: node_id & layout.max_node_id(),
            sequence: sequence & layout.max_sequence(),
        };
        let raw = layout.pack(parts.unix_ms + i64::from(into % layout.tick_ms()), parts.node_id, parts.sequence)?;
        prop_assert_eq!(layout.inspect(raw), Ok(parts));
        if let (Ok(first), Ok(last)) =
            (layout.first_id_at(parts.unix_ms), layout.last_id_at(parts.unix_ms))
        {
            prop_assert!((first..=last).contains(&raw));
            let next = layout.first_id_at(parts.unix_ms + i64::from(layout.tick_ms()))?;
            prop_assert_eq!(next, last + 1);
        }
    }

    /// On a clock that jumps anywhere, or that runs evenly and has a counter, a single thread gets
    /// rising ids, with every initial sequence.
    #[test]
    fn ids_rise_and_never_repeat(
        starts in prop_oneof![
            Just(Sequence::Zero),
            Just(Sequence::Continuing),
            (1..=64_u32).prop_map(Sequence::Random),
        ],
        steps in prop::collection::vec((-3..20_i64, 0..150_usize), 1..60),
        has_counter: bool,
    ) {
        let now = AtomicI64::new(NOON * SECOND);
        let layout = Layout::custom([(Field::Time, 41), (Field::Node, 2), (Field::Sequence, 6)])
            .epoch_ms(1_700_000_000_000)
            .sequence(starts)
            .build()?;
        let flake = Snowflake::builder(layout)
            .node_id(3)
            .max_wait(Duration::ZERO)
            .clock(Counting { now: &now, has_counter, readings: AtomicU32::new(0) })
            .build()?;
        let mut latest = 0;
        let mut in_tick = 0;
        for (step, count) in steps {
            let step = if has_counter { step.abs() } else { step };
            now.fetch_add(step * MS / 4, Ordering::Relaxed);
            for _ in 0..count {
                let Ok(id) = flake.generate() else { break };
                let parts = layout.inspect(id)?;
                prop_assert!(id > latest);
                prop_assert!(parts.unix_ms <= now.load(Ordering::Relaxed) / MS, "I4");
                in_tick = if latest >> 8 == id >> 8 { in_tick + 1 } else { 1 };
                prop_assert!(in_tick <= layout.ids_per_node());
                if let (Sequence::Random(starts), 1) = (starts, in_tick) {
                    prop_assert!(parts.sequence < starts);
                }
                latest = id;
            }
        }
    }
}

/// A clock that the test sets, with or without a counter.
struct Counting<'a> {
    now: &'a AtomicI64,
    has_counter: bool,
    readings: AtomicU32,
}

impl Clock for Counting<'_> {
    fn now(&self) -> Result<i64> {
        self.readings.fetch_add(1, Ordering::Relaxed);
        Ok(self.now.load(Ordering::Relaxed))
    }

    fn counter(&self) -> Option<u64> {
        self.has_counter.then(|| self.now.load(Ordering::Relaxed).cast_unsigned() / 4 * 5)
    }
}

/// A layout that, at noon, is in the middle of its lifetime or near its beginning or end.
fn layouts_about_noon() -> impl Strategy<Value = Layout> {
    let ticks = prop_oneof![Just(1_u32), Just(10), Just(1000), 1..3000_u32, Just(20_000)];
    let fields = (8..20_u32, 1..8_u32, 1..10_u32, any::<bool>());
    let starts = prop_oneof![
        Just(Sequence::Zero),
        Just(Sequence::Continuing),
        (1..3_u32).prop_map(Sequence::Random)
    ];
    (fields, ticks, 0..3, 0.0..1.0, -15_000..15_000_i64, starts).prop_map(
        |((time, node, sequence, node_first), tick_ms, border, part, offset, starts)| {
            let lifetime_ms = i64::from(tick_ms) << time;
            let ago = match border {
                0 => 0,
                1 => lifetime_ms,
                #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
                _ => (lifetime_ms as f64 * part) as i64,
            };
            let (node, sequence) = ((Field::Node, node), (Field::Sequence, sequence));
            let [high, low] = if node_first { [node, sequence] } else { [sequence, node] };
            Layout::custom([(Field::Time, time), high, low])
                .tick_ms(tick_ms)
                .epoch_ms(NOON * 1000 + offset - ago)
                .sequence(starts)
                .build()
                .expect("at most 63 bits")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(3000),
        ..ProptestConfig::default()
    })]

    /// Leases have seconds and ids have ticks: a tick that the end of a second divides is never used,
    /// and all others of a lease, within the lifetime, belong to its holder.
    #[test]
    fn a_granted_lease_is_used_for_its_whole_ticks(
        layout in layouts_about_noon(),
        (start, seconds, more) in (-12..12_i64, 1..40_i64, 0..20_i64),
        max_drift in 0..3_u32,
        steps in prop::collection::vec((0..4000_i64, 1..30_usize), 1..40),
    ) {
        let tick_ms = i64::from(layout.tick_ms());
        let mut lease = Lease::new(NOON + start, NOON + start + seconds)?;
        let begins_in = |lease: Lease, begin: i64| {
            lease.start() * 1000 <= begin
                && begin + tick_ms <= lease.end_exclusive() * 1000
                && layout.epoch_ms() <= begin
                && begin + tick_ms <= layout.ends_at()
        };
        let begin_at = |ms: i64| ms - (ms - layout.epoch_ms()).rem_euclid(tick_ms);
        let first = (0..=seconds * 1000 / tick_ms + 1)
            .map(|tick| begin_at((NOON + start).max(layout.epoch_ms().div_euclid(1000)) * 1000) + tick * tick_ms)
            .find(|begin| begins_in(lease, *begin));

        let now = Cell::new((NOON - 1) * 1000);
        let made = Snowflake::builder(layout)
            .node_id(1)
            .granted_lease(lease)
            .max_drift(max_drift)
            .max_wait(Duration::ZERO)
            .clock(|| now.get() * MS)
            .build();
        let Some(first) = first else {
            let kind = kind(made).expect_err("no whole tick");
            prop_assert!([ErrorKind::InvalidLease, ErrorKind::LifetimeOver].contains(&kind));
            return Ok(());
        };
        let Ok(flake) = made else {
            prop_assert!(now.get() >= layout.ends_at(), "{made:?}");
            return Ok(());
        };
        let mut last = None;
        for (index, (step, count)) in steps.iter().enumerate() {
            if index == steps.len() / 2 {
                lease = Lease::new(lease.start(), lease.end_exclusive() + more)?;
                flake.extend_lease(lease.end_exclusive())?;
            }
            now.set(now.get() + step);
            let begin_now = begin_at(now.get());
            for _ in 0..*count {
                let begin = match flake.generate() {
                    Ok(id) => layout.inspect(id)?.unix_ms,
                    Err(error) => {
                        let had_all = last.is_some_and(|last| last >= begin_now);
                        prop_assert!(had_all || !begins_in(lease, begin_now), "{error}");
                        break;
                    }
                };
                prop_assert!(begins_in(lease, begin), "{begin} of {lease:?}");
                prop_assert!(begin <= now.get() + i64::from(max_drift) * 1000);
                last = last.max(Some(begin));
            }
        }
        // The next holder of the node id begins there.
        let used_until = flake.close().expect("granted");
        let unused_from = last.map_or(first, |last| last + tick_ms);
        prop_assert_eq!(used_until, -(-unused_from).div_euclid(1000));
        prop_assert!((lease.start()..=lease.end_exclusive()).contains(&used_until));
        now.set(used_until * 1000);
        let next = Snowflake::builder(layout)
            .node_id(1)
            .granted_lease(Lease::new(used_until, used_until + 60)?)
            .max_wait(Duration::ZERO)
            .clock(|| now.get() * MS)
            .build();
        if let Ok(next) = next {
            now.set(now.get() + tick_ms);
            let begin = next.generate().map(|id| layout.inspect(id).expect("an id").unix_ms);
            prop_assert!(begin.is_ok_and(|begin| begin >= unused_from) || now.get() >= layout.ends_at());
        }
    }
}

/// A tick has exactly as many ids as it should, with every initial sequence.
#[test]
fn a_tick_has_all_its_ids() {
    for layout in Layout::PRESETS {
        let now = AtomicI64::new(layout.ends_at() * MS - 4 * i64::from(layout.tick_ms()) * MS);
        let nodes = if layout.max_nodes() < 3 { 1 } else { 3 };
        if u64::from(nodes) * layout.ids_per_node() > 1 << 19 {
            continue; // Randflake's own and simpleflake: millions of ids
        }
        let flake = Snowflake::builder(*layout)
            .node_ids((0..nodes).map(|node| node * 2))
            .max_wait(Duration::ZERO)
            .clock(|| now.load(Ordering::Relaxed))
            .build()
            .expect("a generator");
        for _ in 0..3 {
            let mut ids = HashSet::new();
            let refused = loop {
                match flake.generate() {
                    Ok(id) => assert!(ids.insert(id), "{layout:?}"),
                    Err(error) => break error,
                }
            };
            assert_eq!(refused.kind(), ErrorKind::SequenceExhausted, "{layout:?}");
            let tick = Duration::from_millis(layout.tick_ms().into());
            assert_eq!(refused.retry_after(), Some(tick), "{layout:?}");
            assert_eq!(ids.len() as u64, u64::from(nodes) * layout.ids_per_node(), "{layout:?}");
            now.fetch_add(i64::from(layout.tick_ms()) * MS, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_continuing_sequence_ends_its_tick_when_it_wraps() {
    let now = Cell::new(NOON * SECOND);
    let flake = Snowflake::builder(Layout::discord())
        .node_id(1)
        .max_wait(Duration::ZERO)
        .clock(|| now.get())
        .build()
        .expect("a generator");
    let sequence_of = |id| flake.inspect(id).expect("an id").sequence;
    for sequence in 0..4096 {
        assert_eq!(sequence_of(flake.generate().expect("an id")), sequence);
        now.set(now.get() + if sequence < 4090 { MS } else { 0 });
    }
    // After six ids this millisecond is used up: the next id would be smaller.
    let error = flake.generate().expect_err("wrapped");
    assert_eq!(error.kind(), ErrorKind::SequenceExhausted);
    now.set(now.get() + MS);
    assert_eq!(sequence_of(flake.generate().expect("an id")), 0);
}

#[test]
fn low_traffic_spreads_if_ticks_do_not_begin_with_0() {
    for (starts, least) in
        [(Sequence::Zero, 1), (Sequence::Random(100), 90), (Sequence::Continuing, 1000)]
    {
        let now = Cell::new(NOON * SECOND);
        let layout = Layout::twitter().with_sequence(starts).expect("valid");
        let flake = Snowflake::builder(layout).node_id(1).clock(|| now.get()).build();
        let flake = flake.expect("a generator");
        let sequences: HashSet<_> = (0..1000)
            .map(|_| {
                now.set(now.get() + 7 * MS);
                flake.inspect(flake.generate().expect("an id")).expect("an id").sequence
            })
            .collect();
        assert!(sequences.len() >= least, "{starts:?}: {}", sequences.len());
        assert!(starts != Sequence::Zero || sequences.len() == 1);
    }
}

/// The coarse clock shows seconds: enough for ticks of seconds, but not for shorter ones without a
/// counter.
#[test]
fn the_coarse_clock_decides_no_short_tick() {
    #[derive(Default)]
    struct Glancing {
        now: Cell<i64>,
        readings: Cell<u32>,
    }
    impl Clock for &Glancing {
        fn now(&self) -> Result<i64> {
            self.readings.set(self.readings.get() + 1);
            Ok(self.now.get())
        }
        fn coarse_time(&self) -> Option<i64> {
            Some(self.now.get().div_euclid(SECOND))
        }
    }

    let custom = |tick_ms, epoch_ms| {
        Layout::custom([(Field::Time, 31), (Field::Node, 16), (Field::Sequence, 16)])
            .tick_ms(tick_ms)
            .epoch_ms(epoch_ms)
            .build()
            .expect("valid")
    };
    for (layout, readings) in [
        (Layout::twitter(), 400),
        (Layout::sonyflake(), 400),
        (custom(2000, 0), 2),
        // Ticks that begin and end within a second.
        (custom(1000, 657), 400),
        (custom(1500, 0), 400),
    ] {
        let clock = Glancing::default();
        clock.now.set(NOON * SECOND);
        let flake = Snowflake::builder(layout).node_id(1).clock(&clock).build().expect("valid");
        clock.readings.set(0);
        for _ in 0..400 {
            let id = flake.generate().expect("an id");
            let tick_ms = i64::from(layout.tick_ms());
            let expected = layout.pack(clock.now.get() / MS, 1, 0).expect("in range");
            let unix_ms = |raw| layout.inspect(raw).expect("an id").unix_ms;
            assert_eq!(unix_ms(id), unix_ms(expected), "{tick_ms}");
            clock.now.set(clock.now.get() + 7 * MS); // 2.8 seconds in total
        }
        assert_eq!(clock.readings.get(), readings, "{layout:?}");
    }
}

/// A counter finds the end of ticks that begin and end within a second.
#[test]
fn a_counter_saves_readings_of_the_clock() {
    for layout in [Layout::twitter(), Layout::sonyflake()] {
        let now = AtomicI64::new(NOON * SECOND);
        let clock = Counting { now: &now, has_counter: true, readings: AtomicU32::new(0) };
        let flake = Snowflake::builder(layout).node_id(1).clock(clock).build().expect("valid");
        let generate = || {
            let ms = now.load(Ordering::Relaxed) / MS;
            let expected = layout.pack(ms, 1, 0).expect("in range");
            let unix_ms = |raw| layout.inspect(raw).expect("an id").unix_ms;
            assert_eq!(unix_ms(flake.generate().expect("an id")), unix_ms(expected));
        };
        for _ in 0..40 {
            generate();
            now.fetch_add(MS, Ordering::Relaxed);
        }
        let known = flake.clock().readings.load(Ordering::Relaxed);
        for _ in 0..2500 {
            generate();
            now.fetch_add(MS / 25, Ordering::Relaxed); // 100 ms in total
        }
        let readings = flake.clock().readings.load(Ordering::Relaxed) - known;
        assert!(readings <= 200, "{readings} for {layout:?}");
    }
}

#[test]
fn a_lease_with_drift_lends_coming_ticks() {
    let flake = Snowflake::builder(Layout::twitter())
        .node_id(1)
        .lease(Lease::new(NOON, NOON + 10).expect("a lease"))
        .max_drift(2)
        .max_wait(Duration::ZERO)
        .clock(|| NOON * SECOND)
        .build()
        .expect("a generator");
    let mut ids = vec![0; 2001 * 4096];
    flake.fill(&mut ids).expect("this millisecond and two seconds");
    assert!(ids.is_sorted_by(|one, other| one < other));
    let parts = flake.inspect(ids[ids.len() - 1]).expect("an id");
    assert_eq!(parts.unix_ms, (NOON + 2) * 1000);
    assert_eq!(kind(flake.generate()), Err(ErrorKind::SequenceExhausted));
    assert_eq!(flake.lease(), Lease::new(NOON, NOON + 10).ok());
}

/// The next holder of a lease may begin with the second in which it was released.
#[test]
fn a_granted_lease_is_released_at_a_second_without_ids() {
    let now = Cell::new(NOON * SECOND);
    let lease = Lease::new(NOON, NOON + 10).expect("a lease");
    let flake = Snowflake::builder(Layout::sonyflake())
        .node_id(9)
        .granted_lease(lease)
        .clock(|| now.get())
        .build()
        .expect("a generator");
    assert_eq!(flake.replace_lease(&[8], lease, u32::MAX), Ok(NOON), "nothing was issued");
    let first = flake.generate().expect("an id");
    // In the same 10 ms, but the next Term begins after them.
    assert_eq!(flake.replace_lease(&[7], lease, u32::MAX), Ok(NOON + 1));
    now.set(now.get() + 10 * MS);
    let second = flake.generate().expect("an id");
    assert!(first < second);
    assert_eq!(flake.inspect(second).expect("an id").node_id, 7);
    assert_eq!(flake.close(), Some(NOON + 1));
    assert_eq!(flake.close(), None);
    assert_eq!(kind(flake.generate()), Err(ErrorKind::Closed));
    assert_eq!(flake.inspect(second).expect("reads on").node_id, 7);
    // A lease that has ended is over for every tick of its last second.
    assert_eq!(kind(flake.extend_lease(NOON + 20)), Err(ErrorKind::Closed));
}

#[test]
fn manual_generators_share_their_node_ids() {
    let flake = |layout: Layout, node_ids: &[u32]| {
        Snowflake::builder(layout).node_ids(node_ids.iter().copied()).build()
    };
    let one = flake(Layout::twitter(), &[500, 501]).expect("free");
    let other = flake(Layout::twitter(), &[501, 500]).expect("the same");
    let mut ids = HashSet::new();
    for _ in 0..20_000 {
        for flake in [&one, &other] {
            assert!(ids.insert(flake.generate().expect("an id")));
        }
    }
    drop(one);
    for (layout, node_ids) in [
        (Layout::twitter(), &[501_u32][..]),
        // The same ids under another name, with another initial sequence.
        (Layout::leaf(), &[500, 501]),
        (Layout::twitter().with_sequence(Sequence::Continuing).expect("valid"), &[500, 501]),
    ] {
        assert_eq!(kind(flake(layout, node_ids)), Err(ErrorKind::NodeInUse), "{layout:?}");
    }
    flake(Layout::discord(), &[501]).expect("another layout has other ids");
    flake(Layout::twitter(), &[502]).expect("another node id");
}

#[test]
fn manual_generators_begin_after_the_tick_in_which_they_are_made() {
    let now = || SystemClock.now().expect("a time") / MS;
    for _ in 0..20 {
        let before = now();
        let flake = Snowflake::new(77, Layout::twitter()).expect("free");
        let first = flake.inspect(flake.generate().expect("an id")).expect("an id").unix_ms;
        // In the next millisecond, not in the next second.
        assert!((before + 1..=now()).contains(&first), "{before} {first} {}", now());
    }
}

#[test]
fn a_generator_made_in_the_last_tick_is_refused() {
    const DAY: u32 = 86_400_000;
    // Of two ticks, each a day, the second began a second ago.
    let epoch = SystemClock.now().expect("a time") / MS - i64::from(DAY) - 1000;
    let layout = Layout::custom([(Field::Time, 1), (Field::Node, 10), (Field::Sequence, 12)]);
    let layout = layout.tick_ms(DAY).epoch_ms(epoch).build().expect("valid");
    assert_eq!(kind(Snowflake::new(1, layout)), Err(ErrorKind::LifetimeOver));
    let hasty = Snowflake::builder(layout).node_id(1).restart_safe(false).build();
    hasty.expect("no process had it").generate().expect("an id of the last tick");
}

#[test]
fn no_generator_is_made_before_the_epoch() {
    const DAY: u32 = 86_400_000;
    // On a machine whose clock is not set yet, an earlier process may have used any tick.
    let epoch = SystemClock.now().expect("a time") / MS + i64::from(DAY);
    let layout = Layout::custom([(Field::Time, 20), (Field::Node, 10), (Field::Sequence, 12)]);
    let layout = layout.tick_ms(DAY).epoch_ms(epoch).build().expect("valid");
    assert_eq!(kind(Snowflake::new(1, layout)), Err(ErrorKind::ClockBeforeEpoch));
    let hasty = Snowflake::builder(layout).node_id(1).restart_safe(false).build();
    let hasty = hasty.expect("no process had it");
    assert_eq!(kind(hasty.generate()), Err(ErrorKind::ClockBeforeEpoch));
}

#[test]
fn a_lease_that_is_replaced_after_the_last_tick_is_over() {
    const EPOCH: i64 = 1_730_000_000;
    // Stamp and slots use all bits of the state except the seal.
    let layout = Layout::custom([(Field::Time, 39), (Field::Node, 12), (Field::Sequence, 12)]);
    let layout = layout.epoch_ms(EPOCH * 1000).build().expect("valid");
    let lease = Lease::new(EPOCH, EPOCH + (1 << 39) / 1000 + 1).expect("a lease");
    let last = (EPOCH * 1000 + (1 << 39) - 1) * MS;
    let now = Cell::new(last);
    let builder = Snowflake::builder(layout).node_ids(0..2048).granted_lease(lease);
    let flake = builder.max_wait(Duration::ZERO).clock(|| now.get()).build().expect("valid");
    let id = flake.generate().expect("an id of the last tick");
    assert_eq!(flake.inspect(id).expect("an id").unix_ms, last / MS);
    for _ in 0..3 {
        let unused_from = flake.replace_lease(&(0..2048).collect::<Vec<_>>(), lease, u32::MAX);
        assert_eq!(unused_from.expect("open"), lease.end_exclusive());
        assert_eq!(kind(flake.generate()), Err(ErrorKind::SequenceExhausted));
    }
    now.set(last + MS);
    assert_eq!(kind(flake.generate()), Err(ErrorKind::LifetimeOver));
    assert_eq!(flake.close(), Some(lease.end_exclusive()));
}

#[test]
fn a_worker_may_have_all_bits_of_a_node_id() {
    let layout = Layout::custom([(Field::Time, 20), (Field::Node, 32)]).node_split(0, 32);
    let layout = layout.build().expect("valid");
    for node_id in [0, 1, u32::MAX] {
        assert_eq!(layout.split_node(node_id), Some((0, node_id)));
        assert_eq!(layout.join_node(0, node_id), Ok(node_id));
    }
    assert!(layout.join_node(1, 0).is_err());
}

/// Eight threads on one node, with single calls and batches, on the machine's clock.
#[test]
fn eight_threads_repeat_nothing() {
    const EACH: usize = 20_000;
    // Twitter's and Leaf's ids are the same, so they need different nodes.
    for (layout, node_id) in
        [(Layout::twitter(), 1023), (Layout::instagram(), 1022), (Layout::leaf(), 1022)]
    {
        let flake = Snowflake::builder(layout)
            .node_id(node_id)
            .max_wait(Duration::from_secs(60))
            .build()
            .expect("free");
        let mut ids = vec![0; 8 * EACH];
        thread::scope(|scope| {
            for (thread, part) in ids.chunks_mut(EACH).enumerate() {
                let flake = &flake;
                scope.spawn(move || {
                    if thread < 4 {
                        part.fill_with(|| flake.generate().expect("an id"));
                    } else {
                        part.chunks_mut(1 + 97 * thread)
                            .for_each(|batch| flake.fill(batch).expect("ids"));
                    }
                    assert!(part.is_sorted(), "one thread sees ids rise");
                });
            }
        });
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "{layout:?}");
    }
}

#[test]
fn a_batch_that_fails_leaves_zeros() {
    let layout = Layout::twitter();
    let scripted = Scripted::of(
        layout,
        &Options { node_ids: vec![1], lease: None, max_wait: 0, max_drift: 0 },
        false,
    )
    .expect("valid");
    let outcome = scripted.call(Call::Fill(4097), &[]);
    assert_eq!(outcome.result.expect_err("too many").code, "INVALID_ARGUMENT");
}

#[test]
fn the_error_of_a_clock_is_kept() {
    struct Broken;
    impl Clock for Broken {
        fn now(&self) -> Result<i64> {
            Err(Error::from_clock(std::io::Error::other("no time")))
        }
    }
    let error = Snowflake::builder(Layout::twitter()).node_id(1).clock(Broken).build();
    let source = error.expect_err("no time").into_source::<std::io::Error>().expect("the source");
    assert_eq!(source.to_string(), "no time");
}
