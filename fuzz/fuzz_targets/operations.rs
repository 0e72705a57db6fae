//! Any options, calls and clock: the core does what the reference model does, and repeats no id.
#![no_main]

#[path = "../../core/tests/common/mod.rs"]
mod common;

use common::{Call, Pair, World};
use libfuzzer_sys::fuzz_target;
use randflake::layout::{EPOCH, LIFETIME_END};
use randflake_vectors::{
    cases::SECRET,
    model::{IDS_PER_NODE, Options, SECOND},
};

/// 1/64 s.
const TICK: i64 = SECOND / 64;
/// An input may issue about so many ids, so that none takes long.
const MOST_IDS: u32 = 400_000;

// Six bytes of options; then the first half of the rest are calls, the second half the clock.
fuzz_target!(|data: &[u8]| {
    let Some((&[kind, start, max_wait, max_drift, lease_start, lease_length], rest)) =
        data.split_first_chunk()
    else {
        return;
    };
    let origin = [1_763_640_000, EPOCH, EPOCH + (1 << 29), LIFETIME_END - 4][usize::from(kind % 4)];
    let node_ids = [vec![1], vec![131_071, 0]][usize::from(kind >> 2 & 1)].clone();
    let can_sleep = kind & 8 != 0;
    let lease = (kind & 16 != 0).then(|| {
        let start = (origin + i64::from(lease_start % 8)).min(LIFETIME_END - 1);
        (start, (start + 1 + i64::from(lease_length % 16)).min(LIFETIME_END))
    });
    let (calls, steps) = rest.split_at(rest.len() / 2);
    let cap = node_ids.len() * usize::try_from(IDS_PER_NODE).expect("small");

    let steps: Vec<i64> = match steps {
        [] => vec![0],
        steps => steps.iter().map(|step| i64::from(step.cast_signed()) * 4 * TICK).collect(),
    };
    let world =
        World::new(origin * SECOND + i64::from(start) * TICK, steps.into_iter().cycle(), can_sleep);
    let options = Options {
        node_ids,
        max_wait: i64::from(max_wait) * TICK,
        max_drift: if lease.is_some() { i64::from(max_drift % 8) } else { 0 },
        lease,
    };
    let mut pair = Pair::new(&SECRET.parse().expect("hex"), &options, world);
    let mut issued = 0;
    for &call in calls {
        let number = usize::from(call & 31);
        issued += pair.call(match call >> 5 {
            0..=3 => Call::Generate,
            5 => Call::Fill(number),
            // One to four seconds' worth of ids, or a little less or more.
            4 => Call::Fill((1 + number / 8) * cap + number % 8 - 4),
            6 => Call::Extend(origin - 8 + i64::from(call & 31)),
            _ => match number {
                0 => Call::Extend(EPOCH),
                1 => Call::Extend(LIFETIME_END),
                2 => Call::Extend(LIFETIME_END + 1),
                3 => Call::Extend(i64::MIN),
                4 => Call::Extend(i64::MAX),
                5 => Call::Close,
                _ => Call::Generate,
            },
        });
        if issued >= MOST_IDS {
            return;
        }
    }
});
