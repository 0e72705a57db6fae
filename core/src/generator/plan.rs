//! The rule of one call: which tick, which slots, how long to wait, or which error.

use std::time::Duration;

use super::call::Reach;
use crate::{
    Error, ErrorKind, Layout, Result, clock, layout::lifetime::lifetime_over,
    packed_state::Position, term::Term,
};

/// What the rule of one call decides from one load of the state and one reading of the clock.
#[derive(Debug)]
pub(super) enum Plan {
    /// These slots can be claimed; the rest of a batch is available in `rest_in`.
    Claim { first: Position, count: u64, rest_in: Duration },
    /// The first slot is available in `first_in` and the last one in `all_in`, if waiting `helps`.
    Wait { kind: ErrorKind, first_in: Duration, all_in: Duration, helps: bool },
}

/// Returns where the next claim begins if the clock shows the tick `now`, and whether that is
/// because the tick before is full: never before `now`, the last claim or the window.
#[inline]
fn next(layout: &Layout, term: &Term, seen: Position, now: u64) -> (Position, bool) {
    let slots = term.state.slots();
    let stamp = now.max(seen.stamp).max(term.start);
    let slot = if stamp == seen.stamp { seen.slot } else { layout.first_slot(seen.slot, slots) };
    if slot == slots {
        (Position { stamp: stamp + 1, slot: 0 }, true)
    } else {
        (Position { stamp, slot }, false)
    }
}

/// Returns whether this is the usual case: the tick of the last claim is still current, and has all
/// that is wanted.
#[inline]
pub(super) fn goes_on(term: &Term, seen: Position, tick: u64, want: u64) -> bool {
    seen.stamp == tick
        && want <= term.state.slots() - seen.slot
        && (term.start..term.end_exclusive()).contains(&tick)
}

/// Returns what the rule decides in the usual case.
#[inline]
pub(super) fn usual_plan(term: &Term, seen: Position, tick: u64, want: u64) -> Option<Plan> {
    let claim = Plan::Claim { first: seen, count: want, rest_in: Duration::ZERO };
    goes_on(term, seen, tick, want).then_some(claim)
}

/// The rule of one call. Times are compared only here and in [`goes_on`], its usual case. Keeps I1
/// (with the claim), I2, I3, I4 and I5 of ARCHITECTURE.md.
#[inline]
pub(super) fn plan(
    layout: &Layout,
    term: &Term,
    seen: Position,
    now: i64,
    want: u64,
    reach: Reach,
) -> Result<Plan> {
    let (now, nanos) = layout.tick_at(now, seen.stamp).ok_or_else(|| before_epoch(layout, now))?;
    if let Some(usual) = usual_plan(term, seen, now, want) {
        return Ok(usual);
    }
    let horizon = now.saturating_add(term.max_drift);
    let slots = term.state.slots();
    let end = term.end_exclusive();

    let (first, full) = next(layout, term, seen, now);
    let candidate = first.stamp - u64::from(full);
    let last = term.state.at(first, want - 1);
    let refusal = if candidate > horizon {
        Some(if candidate == term.start {
            ErrorKind::LeaseNotStarted
        } else {
            ErrorKind::ClockMovedBack
        })
    } else {
        (first.stamp > horizon).then_some(ErrorKind::SequenceExhausted)
    };

    // What comes after the horizon is claimed later; the lease may be longer by then.
    let reached = match reach {
        Reach::Lease => last.stamp,
        Reach::Renewals => last.stamp.min(horizon.max(first.stamp)),
    };
    let reaches_past_the_end = reached >= end;
    // The refusal of the first id takes precedence over the end of the lease, which takes
    // precedence over that of the rest of the batch.
    if reaches_past_the_end && (refusal.is_none() || first.stamp < end) {
        return Err(past_the_end(layout, end, reached));
    }
    if refusal.is_none() && last.stamp <= horizon {
        return Ok(Plan::Claim { first, count: want, rest_in: Duration::ZERO });
    }
    let time_until = |stamp: u64| {
        layout.ticks(stamp.saturating_sub(horizon)).saturating_sub(Duration::from_nanos(nanos))
    };
    let all_in = time_until(last.stamp);
    Ok(if let Some(kind) = refusal {
        let helps = first.stamp < end || reach == Reach::Renewals;
        Plan::Wait { kind, first_in: time_until(first.stamp), all_in, helps }
    } else {
        let count = (horizon - first.stamp + 1) * slots - first.slot;
        Plan::Claim { first, count, rest_in: all_in }
    })
}

#[cold]
pub(super) fn before_epoch(layout: &Layout, now: i64) -> Error {
    let (now, epoch) = (clock::to_ms(now), layout.epoch_ms());
    Error::new(
        ErrorKind::ClockBeforeEpoch,
        format!(
            "the clock shows {} (unix second {}), and ids begin at {} (unix second {}); correct \
             the clock",
            clock::utc(now),
            clock::seconds(now),
            clock::utc(epoch),
            clock::seconds(epoch)
        ),
    )
}

#[cold]
fn past_the_end(layout: &Layout, end: u64, stamp: u64) -> Error {
    if stamp >= layout.lifetime() {
        return lifetime_over(layout);
    }
    let (end, stamp) = (layout.unix_ms_of(end), layout.unix_ms_of(stamp));
    Error::new(
        ErrorKind::LeaseExpired,
        format!(
            "the lease ends at {} (unix second {}) and this needs {} (unix second {}); extend the \
             lease or take a new one",
            clock::utc(end),
            clock::seconds(end),
            clock::utc(stamp),
            clock::seconds(stamp)
        ),
    )
}
