//! Ids spread evenly over shards: by their low bits, by their high bits, or by a remainder. The
//! secrets and the clock are fixed, so the test always passes or always fails.

#![allow(clippy::cast_precision_loss, reason = "counts of shards")]

use std::cell::Cell;

use randflake::{Randflake, Secret};

const SHARDS: usize = 1024;
const SECRETS: [&str; 3] = [
    "dffd6021bb2bd5b0af676290809ec3a5",
    "00112233445566778899aabbccddeeff",
    "00000000000000000000000000000000",
];

/// A million ids, as ten busy seconds of one node give them.
fn ids(secret: &str) -> (Vec<u64>, Vec<u64>) {
    let secret: Secret = secret.parse().expect("hex");
    let second = Cell::new(1_763_640_000_i64);
    let flake = Randflake::builder(&secret)
        .node_id(42)
        .clock(|| second.get() * 1_000_000_000)
        .build()
        .expect("valid options");
    let mut ids = vec![0; 1_000_000];
    for part in ids.chunks_mut(100_000) {
        flake.fill_i64(part).expect("ids");
        second.set(second.get() + 1);
    }
    let raws = ids.iter().map(|&id| flake.decrypt(id.into())).collect();
    (ids.into_iter().map(i64::cast_unsigned).collect(), raws)
}

/// How far the sizes of the shards are from being equal.
fn chi_square(shards: usize, shard_of: impl Iterator<Item = u64>) -> f64 {
    let mut sizes = vec![0_u32; shards];
    let mut count = 0_u32;
    for shard in shard_of {
        sizes[usize::try_from(shard).expect("a shard")] += 1;
        count += 1;
    }
    let expected = f64::from(count) / sizes.len() as f64;
    sizes.iter().map(|&size| (f64::from(size) - expected).powi(2) / expected).sum()
}

/// True within five standard deviations of what random numbers give. A spread that is too even
/// fails, too: nothing random is that even.
fn looks_random(shards: usize, chi_square: f64) -> bool {
    let mean = (shards - 1) as f64;
    (chi_square - mean).abs() < 5.0 * (2.0 * mean).sqrt()
}

type Cut = fn(u64) -> u64;

const CUTS: [(&str, usize, Cut); 4] = [
    ("low bits", SHARDS, |id| id % SHARDS as u64),
    ("high bits", SHARDS, |id| id >> (64 - 10)),
    ("bits in the middle", SHARDS, |id| id >> 27 & (SHARDS as u64 - 1)),
    ("remainder of the signed id", 1000, |id| id.cast_signed().rem_euclid(1000).cast_unsigned()),
];

#[test]
fn ids_spread_as_random_numbers_do() {
    for secret in SECRETS {
        let (ids, _) = ids(secret);
        for (name, shards, cut) in CUTS {
            let chi_square = chi_square(shards, ids.iter().map(|&id| cut(id)));
            assert!(looks_random(shards, chi_square), "{secret}, {name}: {chi_square}");
        }
    }
}

#[test]
fn counters_would_be_detected() {
    let (_, raws) = ids(SECRETS[0]);
    for (name, shards, cut) in CUTS {
        let of_raws = chi_square(shards, raws.iter().map(|&raw| cut(raw)));
        assert!(!looks_random(shards, of_raws), "unencrypted, {name}: {of_raws}");
        let of_counter = chi_square(shards, (0..1_000_000).map(cut));
        assert!(!looks_random(shards, of_counter), "a counter, {name}: {of_counter}");
    }
}
