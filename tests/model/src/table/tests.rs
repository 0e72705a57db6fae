//! Worlds in which all promises hold, and for each rule a world where breaking it breaks a promise.

use super::{Broken, Clock, Loss, Operator, Promise, World, search};
use crate::say;

const PLAIN: World = World {
    others: 1,
    copies: 0,
    seconds: 4,
    clock: Clock::Any,
    loss: Loss::Never,
    late: false,
    blind: false,
    operator: Operator::Absent,
    slots: 6,
    early: false,
    broken: None,
};
const SMALL: World = World { slots: 4, seconds: 2, early: true, ..PLAIN };
/// Three seconds, and leases that start as early as they may.
const EARLY: World = World { slots: 5, seconds: 3, early: true, ..PLAIN };
const BLIND: World = World { seconds: 3, blind: true, ..PLAIN };
const COPIES: World = World { copies: 1, seconds: 3, slots: 5, early: true, ..PLAIN };
/// A copy, and no third party.
const ALONE: World = World { others: 0, seconds: 4, ..COPIES };
const TWO_COPIES: World = World { copies: 2, seconds: 3, slots: 4, ..ALONE };
const RESTORE: World = World { seconds: 3, loss: Loss::Restore, slots: 5, early: true, ..PLAIN };
const FAILOVER: World = World {
    clock: Clock::Skewed { skew: 1, duration: 1, until: 2 },
    seconds: 6,
    loss: Loss::Failover,
    slots: 4,
    ..PLAIN
};
const SHORT: World = World { clock: Clock::Skewed { skew: 1, duration: 1, until: 1 }, ..FAILOVER };
const LONGER: World = World { clock: Clock::Skewed { skew: 0, duration: 2, until: 3 }, ..FAILOVER };
const CONFIRMED: World = World { loss: Loss::Confirmed, ..FAILOVER };
const SPLIT: World = World {
    clock: Clock::Skewed { skew: 0, duration: 1, until: 3 },
    loss: Loss::Split { lag: 1 },
    ..FAILOVER
};
const ETCD: World = World {
    clock: Clock::Skewed { skew: 0, duration: 1, until: 2 },
    seconds: 5,
    late: true,
    blind: true,
    ..FAILOVER
};
const COPY_AND_FAILOVER: World = World {
    clock: Clock::Skewed { skew: 0, duration: 2, until: 1 },
    others: 0,
    copies: 1,
    seconds: 4,
    ..FAILOVER
};
const RELEASES: World = World {
    clock: Clock::Skewed { skew: 1, duration: 3, until: 2 },
    seconds: 6,
    loss: Loss::Never,
    operator: Operator::Releases { drift: 1 },
    ..FAILOVER
};
const REPAIRS: World = World {
    clock: Clock::Skewed { skew: 0, duration: 1, until: 2 },
    operator: Operator::Repairs,
    seconds: 5,
    ..RELEASES
};

/// Of three processes, one is dead, one continues, and one leases what the first had.
const REPAIRS_OF_THREE: World = World { others: 2, ..REPAIRS };
const RELEASES_OF_THREE: World = World {
    others: 2,
    clock: Clock::Skewed { skew: 0, duration: 2, until: 2 },
    operator: Operator::Releases { drift: 0 },
    seconds: 4,
    ..RELEASES
};
/// Two node ids, one of which the third party wants.
const TWO_NODES: World = World { seconds: 2, slots: 4, ..EARLY };

#[test]
fn no_id_is_repeated_over_a_table() {
    holds::<1>("attempts that nobody has seen written", BLIND, 254_240);
    holds::<1>("a backup", RESTORE, 1_543_730);
    holds::<1>("a failover", SHORT, 1_392_725);
    holds::<1>("a dead holder", RELEASES, 1_697_773);
    holds::<1>("ends that are repaired", REPAIRS, 345_162);
    holds::<2>("two node ids", TWO_NODES, 45_975);
}

#[test]
fn a_copy_repeats_nothing_after_the_lease_that_it_was_made_in() {
    holds::<1>("a copy", ALONE, 1_339_049);
}

#[test]
#[ignore = "minutes: make test-nightly"]
fn no_id_is_repeated_over_a_table_in_larger_worlds() {
    holds::<1>("a third party", COPIES, 2_213_952);
    holds::<1>("two copies", TWO_COPIES, 6_943_596);
    holds::<1>("a failover", FAILOVER, 7_064_422);
    holds::<1>("longer leases", LONGER, 4_732_042);
    holds::<1>("a replica that confirms", CONFIRMED, 12_697_927);
    holds::<1>("two masters", SPLIT, 2_779_908);
    holds::<1>("etcd", ETCD, 3_092_875);
    holds::<1>("a copy and a failover", COPY_AND_FAILOVER, 4_357_913);
    holds::<1>("three, and a dead holder", RELEASES_OF_THREE, 757_606);
    holds::<1>("three, and ends that are repaired", REPAIRS_OF_THREE, 15_436_800);
}

/// Every rule, a world where breaking it does harm, and the promise that then breaks.
const RULES: [(Broken, World, Promise); 24] = [
    (Broken::StartsBeforeTheEnd, EARLY, Promise::Unique),
    (Broken::IgnoresTheRow, SMALL, Promise::Unique),
    (Broken::ReleasesBeforeTheSeal, EARLY, Promise::Unique),
    (Broken::ReleaseGoesBelowTheStart, EARLY, Promise::Unique),
    (Broken::RenewSets, EARLY, Promise::Unique),
    (Broken::ExtendsByAnotherGrant, EARLY, Promise::Unique),
    (Broken::KnowsWhatCountedAlone, EARLY, Promise::Kept),
    (Broken::AcquiresByToken, COPIES, Promise::Unique),
    (Broken::SharesRandomness, COPIES, Promise::Unique),
    (Broken::RenewsByToken, ALONE, Promise::Unique),
    (Broken::AcquiresByToken, ALONE, Promise::Unique),
    (Broken::IgnoresMeta, RESTORE, Promise::Unique),
    (Broken::IgnoresTheFloor, RESTORE, Promise::Unique),
    (Broken::IgnoresTheLine, FAILOVER, Promise::Unique),
    (Broken::IgnoresTheFloor, FAILOVER, Promise::Unique),
    (Broken::FloorOneLower, FAILOVER, Promise::Unique),
    (Broken::ForgetsEarlierTexts, FAILOVER, Promise::Kept),
    (Broken::DecidesByItsClock, SHORT, Promise::Unique),
    (Broken::FloorIgnoresLag, SPLIT, Promise::Unique),
    (Broken::IgnoresMeta, ETCD, Promise::Unique),
    (Broken::CutIgnoresDrift, RELEASES, Promise::Unique),
    (Broken::OperatorIgnoresTheRow, RELEASES_OF_THREE, Promise::Unique),
    (Broken::RepairsTheLiving, REPAIRS, Promise::Unique),
    (Broken::RepairIgnoresIds, REPAIRS, Promise::Unique),
];

/// Rules that take longer.
const FURTHER_RULES: [(Broken, World, Promise); 16] = [
    (Broken::RenewsByToken, COPIES, Promise::Unique),
    (Broken::ReleasesByToken, COPIES, Promise::Unique),
    (Broken::FencesWithoutAbove, RESTORE, Promise::Unique),
    (Broken::FencesWithoutAbove, FAILOVER, Promise::Unique),
    (Broken::AboveOneLower, FAILOVER, Promise::Unique),
    (Broken::DecidesByItsClockWithFloor, FAILOVER, Promise::Unique),
    (Broken::DecidesByItsClockWithAbove, FAILOVER, Promise::Unique),
    (Broken::CountsWhatItFinds, CONFIRMED, Promise::Unique),
    (Broken::AboveIgnoresLag, SPLIT, Promise::Unique),
    (Broken::RowIsCertain, ETCD, Promise::Unique),
    (Broken::AcquiresOverAFence, ETCD, Promise::Unique),
    (Broken::CopiesIgnoreTheQuarantine, COPY_AND_FAILOVER, Promise::Unique),
    (Broken::ReleasesTheLiving, RELEASES, Promise::Unique),
    (Broken::CutOneLower, RELEASES, Promise::Unique),
    (Broken::CutIgnoresSkew, RELEASES, Promise::Unique),
    (Broken::RepairsToNow, REPAIRS_OF_THREE, Promise::Unique),
];

#[test]
fn every_broken_rule_of_the_table_is_caught() {
    are_caught::<1>(&RULES);
    are_caught::<2>(&[(Broken::CountsTogether, TWO_NODES, Promise::Unique)]);
}

#[test]
#[ignore = "minutes: make test-nightly"]
fn every_further_broken_rule_of_the_table_is_caught() {
    are_caught::<1>(&FURTHER_RULES);
}

/// No promise needs either rule: a late write of an old decision only leaves a node id idle, and a
/// release above the end of its row only keeps it longer.
#[test]
#[ignore = "minutes: make test-nightly"]
fn two_rules_are_kept_without_need() {
    for broken in [Broken::IgnoresTheAge, Broken::ReleaseGoesAboveTheEnd] {
        let world = World { broken: Some(broken), ..SHORT };
        let found = search::<1>(world, Promise::Unique);
        assert_eq!(found.broken[Promise::Unique as usize], None, "{broken:?}");
    }
}

fn are_caught<const N: usize>(rules: &[(Broken, World, Promise)]) {
    let mut missed = vec![];
    for &(broken, world, promise) in rules {
        let found = search::<N>(World { broken: Some(broken), ..world }, promise);
        let Some(way) = &found.broken[promise as usize] else {
            missed.push((broken, promise));
            continue;
        };
        let (steps, states) = (way.len(), found.states);
        say(&format!("{broken:?}: breaks {promise:?} after {steps} steps ({states} states)"));
    }
    assert!(missed.is_empty(), "the search found nothing wrong with {missed:?}");
}

/// Checks that every promise holds, and the number of states: a different number means that
/// something other than claimed was searched.
fn holds<const N: usize>(name: &str, world: World, states: usize) {
    let found = search::<N>(world, Promise::Unique);
    say(&format!("{name}: {} states of {world:?}", found.states));
    for promise in [Promise::Unique, Promise::Kept, Promise::Bounded] {
        if let Some(way) = &found.broken[promise as usize] {
            let way: Vec<String> = way.iter().map(|act| format!("  {act:?}")).collect();
            panic!("{promise:?} is broken with {name}:\n{}", way.join("\n"));
        }
    }
    assert_eq!(found.states, states, "states of {name}");
}
