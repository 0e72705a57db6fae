//! How the presets pack, and which custom layouts are refused.

use super::*;
use crate::Lease;

#[test]
fn every_preset_is_what_custom_would_make() {
    for preset in Layout::PRESETS {
        assert_eq!(preset.checked().as_ref(), Ok(preset));
        let mut bit_fields = [
            (Field::Time, preset.time),
            (Field::Node, preset.node),
            (Field::Sequence, preset.sequence),
        ];
        bit_fields.sort_by_key(|(_, bit_field)| std::cmp::Reverse(bit_field.shift));
        let custom = Layout::custom(bit_fields.map(|(field, bit_field)| (field, bit_field.bits)))
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
fn a_fingerprint_shows_the_layout() {
    let of = |layout: &Layout| spec::layout_of_fingerprint(&layout.fingerprint());
    for preset in Layout::PRESETS {
        assert!(of(preset).is_some_and(|layout| layout.packs_like(preset)), "{preset}");
    }
    for (text, shown) in [
        ("twitter,sequence=random:100", "twitter"),
        ("twitter,epoch_ms=1577836800000", "twitter,epoch_ms=1577836800000"),
        ("time:29,node:21,sequence:13,tick_ms=1000", "time:29,node:21,sequence:13,tick_ms=1000"),
        (
            "time:40,sequence:24,unsigned=true,epoch_ms=5",
            "time:40,sequence:24,unsigned=true,epoch_ms=5",
        ),
    ] {
        let layout: Layout = text.parse().expect("a layout");
        assert_eq!(of(&layout).map(|layout| layout.to_string()).as_deref(), Some(shown));
    }
    for wrong in ["", "tickets", "1:2", "1:2:time99", "1:0:time41", "x:1:time41", "1:1:time4é"] {
        assert_eq!(spec::layout_of_fingerprint(wrong), None, "{wrong}");
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
            assert!(right.is_some_and(
                |(tick, nanos)| tick.abs_diff(12_345) <= 1 && nanos < tick_nanos.unsigned_abs()
            ));
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
