//! The lease protocol of ARCHITECTURE.md, searched exhaustively: every state that a few holders can
//! reach within a few seconds, whatever the clocks read, and whenever, however often and to whom
//! the messages are delivered. No id is repeated in any of them; and if any single rule is broken,
//! the search finds how an id is repeated.
//!
//! A decision that depends on a clock is searched with two clocks, one of which is wrong. The rule
//! that a repair is refused if most held ends are implausible is not searched, because it takes
//! several node ids.
//!
//! Counters, from which tickets are drawn, are included with the product's own rules: the product's
//! code decides what a process sends, and a few lines here decide what a store answers.
//!
//! `table` has the protocol as servers keep it: the same promises over a table of texts with a compare-and-set,
//! also for processes that are copied with their memory (like a virtual machine).
//!
//! Small worlds are not a proof. They lack more than two masters at once, a previous master whose
//! successor follows it again and forgets what it granted, and, except in `table`, copies and more
//! than one node id: each node id is leased by itself, and a generator with several stamps only the
//! seconds that all of them cover.
//!
//! Nor can it show how long a master really goes on after a promotion: it assumes the lag, and that
//! no request is sent to it later than the promotion once the lag is over.

mod counters;
mod explore;
mod keys;
mod protocol;
mod search;
mod table;

use std::io::{self, Write};

use counters::{Broken, Counters, Forgets, PROMISES, Promise};
use protocol::{
    Clock, Confirmed, Decides, Loss, MAX_HOLDERS, MAX_SECONDS, Mutant, Operator, World,
};
use search::{INVARIANTS, Invariant, search};

/// Two holders, no loss, and every state in full: mutants are searched in this world.
const FULL: World = World {
    holders: 2,
    seconds: 4,
    clock: Clock::Any,
    loss: Loss::Never,
    fork: false,
    operator: Operator::Absent,
    decides: Decides::Store,
    reduced: false,
    mutant: None,
};
/// Two holders, no loss, and less in each state.
const REDUCED: World = World { reduced: true, ..FULL };
const THREE: World = World { holders: 3, ..FULL };
const FORK: World = World { fork: true, ..FULL };
const RESTORE: World = World { loss: Loss::Restore, ..FULL };
const FAILOVER: World = failover(FULL, 1, 1, 2);

/// A master that was left behind is not trusted.
const ALONE: World = split(REDUCED, Confirmed::ByThePromoted, 1, 1, 2);
/// It is trusted, for a while.
const BESIDE: World = split(REDUCED, Confirmed::ByAnother { lag: 1 }, 1, 1, 3);

const RELEASES: World = releases(FULL, 1, 2, 2, 1);
/// Leases so long that an immediate release shortens them.
const LONG: World = releases(REDUCED, 0, 3, 2, 0);
const REPAIRS: World = repairs(REDUCED, 1, 1, 2, 6);
const REPAIRS_FLOOR: World =
    World { operator: Operator::RepairsFloor, ..failover(REDUCED, 0, 2, 2) };

/// A store without its own clock, with fences, releases and repairs that use two possibly wrong
/// clocks.
const TWO_CLOCKS: World = World { decides: Decides::Two, ..failover(REDUCED, 1, 1, 2) };
const TWO_CLOCKS_RELEASES: World = World { decides: Decides::Two, ..RELEASES };
const TWO_CLOCKS_REPAIRS: World = World { decides: Decides::Two, ..REPAIRS };
const TWO_CLOCKS_LISTED: World = World { operator: Operator::TrustsTheList, ..TWO_CLOCKS_RELEASES };
const EMPTIED: World = World { loss: Loss::Emptied, ..FAILOVER };

const fn releases(world: World, skew: u8, duration: u8, until: u8, drift: u8) -> World {
    let clock = Clock::Skewed { skew, duration, until };
    World {
        seconds: until + skew + duration,
        clock,
        operator: Operator::Releases { drift },
        ..world
    }
}

const fn repairs(world: World, skew: u8, duration: u8, until: u8, seconds: u8) -> World {
    let clock = Clock::Skewed { skew, duration, until };
    World { seconds, clock, operator: Operator::RepairsEnds, ..world }
}

const fn failover(world: World, skew: u8, duration: u8, until: u8) -> World {
    let clock = Clock::Skewed { skew, duration, until };
    World { seconds: until + skew + duration, clock, loss: Loss::Failover, ..world }
}

const fn split(world: World, confirmed: Confirmed, skew: u8, duration: u8, until: u8) -> World {
    World { loss: Loss::Split(confirmed), ..failover(world, skew, duration, until) }
}

#[test]
fn no_id_is_repeated_whatever_clocks_read_and_messages_do() {
    for (world, states) in [
        (World { seconds: 6, ..FULL }, 124_028),
        (World { seconds: 5, ..THREE }, 134_684),
        (World { seconds: 7, ..REDUCED }, 47_479),
        (World { holders: 3, seconds: 6, ..REDUCED }, 140_428),
    ] {
        holds(&world, states);
    }
}

#[test]
fn no_id_is_repeated_when_holders_fork() {
    for (world, states) in [
        (World { seconds: 5, ..FORK }, 48_105),
        (World { holders: 3, ..FORK }, 36_860),
        (World { holders: 3, seconds: 5, fork: true, ..REDUCED }, 71_757),
    ] {
        holds(&world, states);
    }
}

#[test]
fn no_id_is_repeated_when_a_backup_is_restored_and_fenced() {
    for (world, states) in [
        (RESTORE, 489_253),
        (World { seconds: 5, loss: Loss::Restore, ..REDUCED }, 990_577),
        (World { holders: 3, seconds: 3, loss: Loss::Restore, ..REDUCED }, 142_983),
    ] {
        holds(&world, states);
    }
}

#[test]
fn no_id_is_repeated_when_a_failover_loses_writes() {
    for (world, states) in [
        (FAILOVER, 1_124_246),
        (failover(REDUCED, 0, 2, 2), 61_920),
        (failover(REDUCED, 1, 2, 2), 856_366),
        (failover(REDUCED, 2, 1, 1), 689_447),
        (failover(World { holders: 3, ..REDUCED }, 1, 1, 2), 2_891_593),
    ] {
        holds(&world, states);
    }
}

#[test]
fn no_id_is_repeated_when_two_masters_grant() {
    for (world, states) in [
        (ALONE, 24_965),
        (split(REDUCED, Confirmed::ByThePromoted, 0, 2, 3), 44_771),
        (BESIDE, 642_145),
        (split(REDUCED, Confirmed::ByAnother { lag: 2 }, 0, 2, 3), 314_448),
        (split(World { holders: 3, ..REDUCED }, Confirmed::ByThePromoted, 1, 1, 2), 101_136),
        (split(World { holders: 3, ..REDUCED }, Confirmed::ByAnother { lag: 1 }, 0, 1, 3), 548_501),
    ] {
        holds(&world, states);
    }
}

#[test]
fn no_id_is_repeated_when_an_operator_releases_repairs_and_states_the_truth() {
    for (world, states) in [
        (RELEASES, 16_699),
        (LONG, 1_994),
        (releases(REDUCED, 1, 3, 2, 1), 8_541),
        (releases(World { holders: 3, ..REDUCED }, 1, 2, 2, 1), 22_907),
        (REPAIRS, 58_242),
        (repairs(REDUCED, 0, 2, 2, 6), 35_479),
        (REPAIRS_FLOOR, 256_924),
    ] {
        holds(&world, states);
    }
}

#[test]
fn no_id_is_repeated_when_a_clock_that_is_decided_by_is_wrong() {
    for (world, states) in [
        (TWO_CLOCKS, 1_029_783),
        (TWO_CLOCKS_RELEASES, 16_699),
        (World { decides: Decides::Two, ..releases(REDUCED, 1, 3, 2, 1) }, 8_541),
        (TWO_CLOCKS_REPAIRS, 63_148),
        (World { decides: Decides::Two, ..REPAIRS_FLOOR }, 256_924),
        (TWO_CLOCKS_LISTED, 14_717),
    ] {
        holds(&world, states);
    }
}

#[test]
fn no_id_is_repeated_when_a_store_is_emptied_and_made_in_quarantine() {
    for (world, states) in [
        (EMPTIED, 49_653),
        (World { loss: Loss::Emptied, ..failover(REDUCED, 0, 2, 2) }, 4_977),
        (World { decides: Decides::Two, ..EMPTIED }, 81_185),
    ] {
        holds(&world, states);
    }
}

/// Every rule, a world where breaking it does harm, and the invariant that then breaks.
const MUTANTS: [(Mutant, World, Invariant); 50] = [
    (Mutant::StartsBeforeOldEnd, FULL, Invariant::Unique),
    (Mutant::StartsAfterLastStart, FULL, Invariant::Unique),
    (Mutant::ExpiresByStoreTtl, FULL, Invariant::Unique),
    (Mutant::StampsItsEnd, FULL, Invariant::Unique),
    (Mutant::ReadsClockTwice, FULL, Invariant::Unique),
    (Mutant::AnswersBeforeCommit, FULL, Invariant::Unique),
    (Mutant::RenewsWithoutToken, FULL, Invariant::Unique),
    (Mutant::RenewSets, FULL, Invariant::Unique),
    (Mutant::ReleasesByClock, FULL, Invariant::Unique),
    (Mutant::ReleasesBeforeClose, FULL, Invariant::Unique),
    // The holder that releases, the holder it releases, and the holder that leases next.
    (Mutant::ReleasesWithoutToken, THREE, Invariant::Unique),
    (Mutant::RestoresWithoutFence, RESTORE, Invariant::Unique),
    (Mutant::FloorOneLower, RESTORE, Invariant::Unique),
    (Mutant::AcquireIgnoresFloor, RESTORE, Invariant::Unique),
    (Mutant::FloorWithoutRenewAbove, RESTORE, Invariant::Unique),
    (Mutant::IgnoresIncarnation, FAILOVER, Invariant::Unique),
    (Mutant::FloorOneLower, FAILOVER, Invariant::Unique),
    (Mutant::AcquireIgnoresFloor, FAILOVER, Invariant::Unique),
    (Mutant::RenewAboveOneLower, FAILOVER, Invariant::Unique),
    (Mutant::FloorWithoutRenewAbove, FAILOVER, Invariant::Unique),
    (Mutant::IncarnationIsTheProcess, FAILOVER, Invariant::Unique),
    (Mutant::CountsUnconfirmed, ALONE, Invariant::Unique),
    (Mutant::RepeatsUnconfirmed, ALONE, Invariant::Unique),
    (Mutant::FloorIgnoresLag, BESIDE, Invariant::Unique),
    (Mutant::FloorOneLower, BESIDE, Invariant::Unique),
    (Mutant::RenewAboveIgnoresLag, BESIDE, Invariant::Unique),
    (Mutant::GrantsOldRequests, BESIDE, Invariant::Unique),
    (Mutant::ChildStamps, FORK, Invariant::Unique),
    (Mutant::ChildRenews, FORK, Invariant::Unique),
    (Mutant::ChildReleases, FORK, Invariant::Unique),
    (Mutant::ReplyOpensSecondTerm, FULL, Invariant::Unique),
    // A Term that ends early repeats no id.
    (Mutant::ReplyLowersEnd, FULL, Invariant::Monotone),
    (Mutant::ReplyForAnotherGrant, FULL, Invariant::Unique),
    (Mutant::ReplyForAnotherToken, FULL, Invariant::Unique),
    (Mutant::ReplyForAnotherOperation, FULL, Invariant::Unique),
    (Mutant::ReleasesTheLiving, LONG, Invariant::Unique),
    (Mutant::CutOneLower, RELEASES, Invariant::Unique),
    (Mutant::CutIgnoresSkew, RELEASES, Invariant::Unique),
    (Mutant::CutIgnoresDrift, RELEASES, Invariant::Unique),
    (Mutant::RepairsToNow, REPAIRS, Invariant::Unique),
    (Mutant::RepairsTheLiving, REPAIRS, Invariant::Unique),
    (Mutant::RepairIgnoresIds, REPAIRS, Invariant::Unique),
    (Mutant::RepairedFloorOneLower, REPAIRS_FLOOR, Invariant::Unique),
    (Mutant::DecidesByOneClock, TWO_CLOCKS, Invariant::Unique),
    (Mutant::DecidesByOneClock, TWO_CLOCKS_RELEASES, Invariant::Unique),
    (Mutant::DecidesByOneClock, TWO_CLOCKS_LISTED, Invariant::Unique),
    (Mutant::DecidesByTheEarlierClock, TWO_CLOCKS, Invariant::Unique),
    (Mutant::DecidesByTheEarlierClock, TWO_CLOCKS_RELEASES, Invariant::Unique),
    (Mutant::InitsAsNewAfterLoss, EMPTIED, Invariant::Unique),
    (Mutant::FloorOneLower, EMPTIED, Invariant::Unique),
];

#[test]
fn every_broken_rule_is_caught() {
    let mut missed = Vec::new();
    for (mutant, world, invariant) in MUTANTS {
        let found = search(&World { mutant: Some(mutant), ..world });
        let steps = INVARIANTS.map(|invariant| {
            let way = found.broken[invariant as usize].as_ref();
            way.map(|way| format!("{invariant:?} after {} steps", way.len()))
        });
        let steps: Vec<String> = steps.into_iter().flatten().collect();
        say(&format!("{mutant:?}: breaks {} ({} states)", steps.join(", "), found.states));
        if found.broken[invariant as usize].is_none() {
            missed.push((mutant, invariant));
        }
    }
    assert!(missed.is_empty(), "the search found nothing wrong with {missed:?}");
}

/// Three processes, and a network without faults.
const DRAWN: Counters = Counters {
    processes: 3,
    draws: 3,
    confirms: 0,
    copies: 0,
    faults: 0,
    loss: Forgets::Never,
    losses: 0,
    fences: 0,
    until: 0,
    broken: None,
};
const LATE: Counters = Counters { processes: 2, faults: 2, ..DRAWN };
const FENCED: Counters = Counters { faults: 1, until: 0, ..forgets(Forgets::Some) };
/// With a block that is given back while another one is held, and then drawn again.
const GIVEN_BACK: Counters = Counters { draws: 4, faults: 0, ..FENCED };
const TWICE: Counters = Counters { draws: 2, losses: 2, fences: 2, until: 1, ..GIVEN_BACK };
const OLD: Counters = forgets(Forgets::Split);
const OLD_FOR_A_WHILE: Counters = forgets(Forgets::SplitForAWhile);

/// A process that is copied with its memory, and another process.
const COPIED: Counters =
    Counters { processes: 2, draws: 2, confirms: 2, copies: 1, until: 1, ..DRAWN };
const COPIED_LATE: Counters = Counters { draws: 2, confirms: 1, faults: 1, ..COPIED };

const fn copied(world: Counters) -> Counters {
    Counters { processes: 1, draws: 2, confirms: 1, copies: 1, until: 1, ..world }
}

const fn forgets(loss: Forgets) -> Counters {
    Counters { processes: 2, losses: 1, fences: 1, until: 1, loss, ..DRAWN }
}

#[test]
fn no_number_is_handed_out_twice_by_any_way_of_a_request() {
    for (world, states) in
        [(DRAWN, 17_943), (Counters { draws: 4, ..DRAWN }, 250_752), (LATE, 380_393)]
    {
        counters_hold(world, states);
    }
}

#[test]
fn no_number_is_handed_out_twice_when_a_store_forgets_and_is_fenced() {
    for (world, states) in [(FENCED, 2_108_320), (GIVEN_BACK, 2_257_827), (TWICE, 149_386)] {
        counters_hold(world, states);
    }
}

#[test]
fn no_number_is_handed_out_twice_when_two_masters_hand_out() {
    for (world, states) in [
        (OLD, 920_494),
        (OLD_FOR_A_WHILE, 1_095_855),
        (Counters { draws: 2, faults: 1, ..OLD }, 474_922),
        (Counters { draws: 2, faults: 1, ..OLD_FOR_A_WHILE }, 444_421),
    ] {
        counters_hold(world, states);
    }
}

#[test]
fn of_a_process_that_was_copied_no_number_is_handed_out_twice_after_a_minute() {
    for (world, states) in [
        (Counters { confirms: 2, ..DRAWN }, 233_825),
        (COPIED, 354_793),
        (COPIED_LATE, 2_736_257),
        (copied(OLD_FOR_A_WHILE), 1_913_148),
    ] {
        counters_hold(world, states);
    }
}

#[test]
#[ignore = "takes a minute"]
fn of_a_process_that_was_copied_no_number_is_handed_out_twice_in_larger_worlds() {
    for (world, states) in [
        (Counters { draws: 3, ..COPIED }, 10_512_364),
        (Counters { processes: 1, copies: 2, until: 2, ..COPIED }, 2_236_412),
        (Counters { faults: 1, ..copied(FENCED) }, 8_928_359),
        (copied(OLD), 3_738_050),
    ] {
        counters_hold(world, states);
    }
}

/// Every rule of counters, a world where breaking it does harm, and the promise that then breaks.
const BROKEN: [(Broken, Counters, Promise); 29] = [
    (Broken::StoreIgnoresTheValue, DRAWN, Promise::Unique),
    (Broken::StoreIgnoresTheValue, LATE, Promise::Unique),
    (Broken::StoreIgnoresTheFloor, FENCED, Promise::Unique),
    (Broken::LostSwapCounts, DRAWN, Promise::Unique),
    (Broken::AnswersBeforeTheWrite, DRAWN, Promise::Unique),
    (Broken::IgnoresThatItIsAnother, FENCED, Promise::Unique),
    (Broken::CounterIgnoresTheFloor, FENCED, Promise::Unique),
    (Broken::MissingCounterIsNew, FENCED, Promise::Unique),
    (Broken::FencesOneLower, FENCED, Promise::Unique),
    (Broken::FencesBesideProcesses, FENCED, Promise::Unique),
    (Broken::FencesBesideTheOldMaster, OLD_FOR_A_WHILE, Promise::Unique),
    (Broken::FenceKeepsWhatIsFree, GIVEN_BACK, Promise::Unique),
    (Broken::GivesBackWhatWasUsed, DRAWN, Promise::Unique),
    (Broken::GivesBackBeforeTheSeal, DRAWN, Promise::Unique),
    (Broken::GivesBackForAnother, DRAWN, Promise::Unique),
    (Broken::SharesATokenWithAnother, DRAWN, Promise::Unique),
    (Broken::KeepsItsToken, DRAWN, Promise::Unique),
    (Broken::ForgetsWhereItsBlocksEnd, DRAWN, Promise::Rises),
    (Broken::RepeatsUnderANewToken, LATE, Promise::Kept),
    (Broken::FinishesWhatIsUnused, DRAWN, Promise::Kept),
    (Broken::ChildUsesBlocks, DRAWN, Promise::Unique),
    (Broken::ChildGivesBack, DRAWN, Promise::Unique),
    (Broken::ConfirmsUnderTheSameToken, COPIED, Promise::Unique),
    (Broken::CountsForEver, COPIED, Promise::Unique),
    (Broken::RepeatedDrawCountsFromNow, COPIED_LATE, Promise::Unique),
    (Broken::GoesOnWithWhatIsLost, COPIED, Promise::Unique),
    (Broken::LosesWhereItsBlocksEnd, COPIED, Promise::Rises),
    (Broken::CountsUnconfirmed, OLD, Promise::Unique),
    (Broken::RepeatsUnconfirmed, OLD, Promise::Unique),
];

#[test]
fn every_broken_rule_of_counters_is_caught() {
    let mut missed = Vec::new();
    for (broken, world, promise) in BROKEN {
        let found = counters::search(Counters { broken: Some(broken), ..world });
        let steps = PROMISES.map(|promise| {
            let way = found.broken[promise as usize].as_ref();
            way.map(|way| format!("{promise:?} after {} steps", way.len()))
        });
        let steps: Vec<String> = steps.into_iter().flatten().collect();
        say(&format!("{broken:?}: breaks {} ({} states)", steps.join(", "), found.states));
        if found.broken[promise as usize].is_none() {
            missed.push((broken, promise));
        }
    }
    assert!(missed.is_empty(), "the search found nothing wrong with {missed:?}");
}

/// As [`holds`], for a counter.
fn counters_hold(world: Counters, states: usize) {
    let found = counters::search(world);
    say(&format!("{} states of {world:?}", found.states));
    for promise in PROMISES {
        if let Some(way) = &found.broken[promise as usize] {
            let way: Vec<String> = way.iter().map(|act| format!("  {act:?}")).collect();
            panic!("{promise:?} is broken in {world:?}:\n{}", way.join("\n"));
        }
    }
    assert_eq!(found.states, states, "states of {world:?}");
}

/// Checks that every invariant holds in a world, and the number of states: a different number means
/// that something other than claimed was searched.
fn holds(world: &World, states: usize) {
    let World { holders, seconds, clock, loss, fork, operator, decides, reduced, .. } = *world;
    assert!(holders <= MAX_HOLDERS && seconds <= MAX_SECONDS, "too large: {world:?}");
    let found = search(world);
    say(&format!(
        "{} states, each within {} steps: {holders} holders, {seconds} seconds, clock {clock:?}, \
         loss {loss:?}, fork {fork}, operator {operator:?} by {decides:?}, reduced {reduced}",
        found.states, found.depth
    ));
    for invariant in INVARIANTS {
        if let Some(way) = &found.broken[invariant as usize] {
            let way: Vec<String> = way.iter().map(|step| format!("  {step:?}")).collect();
            panic!("{invariant:?} is broken in {world:?}:\n{}", way.join("\n"));
        }
    }
    assert_eq!(found.states, states, "states of {world:?}");
}

/// Prints a line even when the test passes, which `println` does not.
fn say(line: &str) {
    writeln!(io::stdout(), "model: {line}").expect("stdout can be written to");
}
