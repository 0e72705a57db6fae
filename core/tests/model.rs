//! Random scripts: the core and the reference model agree, call by call, on readings, sleeps, ids and
//! errors.

mod common;

use common::{Call, Pair, World};
use proptest::prelude::*;
use randflake::layout::{EPOCH, LIFETIME_END};
use randflake_vectors::model::{IDS_PER_NODE, Options, SECOND};

/// 1/64 s, the resolution of the scripts' times.
const TICK: i64 = SECOND / 64;

#[derive(Clone, Debug)]
struct Plan {
    options: Options,
    can_sleep: bool,
    calls: Vec<Call>,
    start: i64,
    /// How far the clock advances from each reading to the next; repeated.
    steps: Vec<i64>,
}

fn plans() -> impl Strategy<Value = Plan> {
    // Near the limits of the arithmetic, and a day between them.
    let origins = prop_oneof![
        Just(1_763_640_000_i64),
        Just(EPOCH),
        Just(EPOCH + (1 << 29)),
        Just(LIFETIME_END - 4),
    ];
    let node_ids =
        prop_oneof![4 => Just(vec![1]), 1 => Just(vec![131_071, 0]), 1 => Just(vec![5, 3, 4])];
    let max_wait = prop_oneof![2 => Just(0), 2 => Just(64), 3 => 1..300_i64];
    let lease = prop::option::weighted(0.6, (0..5_i64, 1..8_i64));
    let steps = prop::collection::vec(
        prop_oneof![
            8 => Just(0),
            4 => 1..64_i64,
            2 => 64..200_i64,
            1 => -64..0_i64,
            1 => -400..-64_i64
        ],
        1..30,
    );
    let calls = prop::collection::vec(calls(), 1..12);
    (origins, node_ids, max_wait, lease, 0..4_i64, any::<bool>(), steps, calls, 0..128_i64)
        .prop_map(
            |(origin, node_ids, max_wait, lease, max_drift, can_sleep, steps, calls, begin)| {
                let nodes = node_ids.len();
                Plan {
                    options: Options {
                        node_ids,
                        lease: lease.map(|(start, length)| {
                            let start = (origin + start).min(LIFETIME_END - 1);
                            (start, (start + length).min(LIFETIME_END))
                        }),
                        max_wait: max_wait * TICK,
                        max_drift: if lease.is_some() { max_drift } else { 0 },
                    },
                    can_sleep,
                    calls: calls.into_iter().map(|call| call.resolve(origin, nodes)).collect(),
                    start: origin * SECOND + begin * TICK,
                    steps: steps.into_iter().map(|ticks| ticks * TICK).collect(),
                }
            },
        )
}

/// A call whose arguments still depend on the plan.
#[derive(Clone, Copy, Debug)]
enum Draft {
    Generate,
    Fill(usize),
    /// Ids for about this many seconds.
    FillSeconds(usize, isize),
    Extend(i64),
    ExtendTo(i64),
    Close,
}

impl Draft {
    fn resolve(self, origin: i64, nodes: usize) -> Call {
        let cap = nodes * usize::try_from(IDS_PER_NODE).expect("small");
        match self {
            Self::Generate => Call::Generate,
            Self::Fill(count) => Call::Fill(count),
            Self::FillSeconds(seconds, more) => {
                Call::Fill((seconds * cap).checked_add_signed(more).expect("not negative"))
            }
            Self::Extend(seconds) => Call::Extend(origin + seconds),
            Self::ExtendTo(end_exclusive) => Call::Extend(end_exclusive),
            Self::Close => Call::Close,
        }
    }
}

fn calls() -> impl Strategy<Value = Draft> {
    prop_oneof![
        12 => Just(Draft::Generate),
        4 => (0..4_usize).prop_map(Draft::Fill),
        8 => (1..2_usize, -2..3_isize).prop_map(|(seconds, more)| Draft::FillSeconds(seconds, more)),
        1 => (2..5_usize, -2..3_isize).prop_map(|(seconds, more)| Draft::FillSeconds(seconds, more)),
        3 => (-1..12_i64).prop_map(Draft::Extend),
        1 => prop_oneof![
            Just(EPOCH),
            Just(EPOCH + 1),
            Just(LIFETIME_END),
            Just(LIFETIME_END + 1),
            Just(i64::MIN),
            Just(i64::MAX),
        ]
        .prop_map(Draft::ExtendTo),
        1 => Just(Draft::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(300),
        ..ProptestConfig::default()
    })]
    #[test]
    fn core_and_model_agree(plan in plans()) {
        let secret = randflake_vectors::cases::SECRET.parse().expect("hex");
        let world = World::new(plan.start, plan.steps.into_iter().cycle(), plan.can_sleep);
        let mut pair = Pair::new(&secret, &plan.options, world);
        for call in plan.calls {
            pair.call(call);
        }
    }
}
