//! The thread that drives the keeper of a generator.
//!
//! It reports a change, a state or node ids other than those it reported last, before it does the
//! keeper's next step, and outside of the lock. What the keeper is in the middle of is reported
//! when it is done, the last change before `close` returns. One function, `check_soon` of the core,
//! answers whether an id would come now: the state, the hook, the log and the readiness of the
//! service follow from it. A call that fails for the clock wakes the thread, which then looks each
//! second.

use std::{
    panic::{self, AssertUnwindSafe},
    time::Duration,
};

use randflake::{Clock, Error, ErrorKind, Format, Generator, Result, bindings::ForkId};

use super::{
    LeaseStatus,
    reported::LastReported,
    shared::{Next, Shared},
    source::{LeaseSource, OpenStore},
};
use crate::{clocks::reading, keeper::Reading};

/// A connection that is not needed for so long is closed in the meantime.
const LONG_REST: Duration = Duration::from_secs(60);

/// The body of the thread; sets `ended` even if it panics. `first` is reported first: the lease that it
/// begins with.
pub(super) fn run<F: Format, C: Clock>(
    shared: &Shared,
    generator: &Generator<F, C>,
    source: &LeaseSource,
    process: ForkId,
    store: OpenStore,
    first: Option<LeaseStatus>,
) {
    if let Some(first) = &first {
        source.tell(first);
    }
    let mut last_reported = LastReported(first);
    // The keeper is consistent after a panic, since it repeats what was not answered. But it would
    // panic again.
    let kept = panic::catch_unwind(AssertUnwindSafe(|| {
        keep(shared, generator, source, process, store, &mut last_reported)
    }));
    let kept = kept.unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::Internal,
            "a defect: the thread that renews the lease has panicked; its message is on standard \
             error",
        ))
    });
    let mut state = shared.lock();
    if let (Err(error), Some(keeper)) = (kept, &mut state.keeper) {
        keeper.give_up(error, reading().map_or(0, Reading::second));
    }
    if process == ForkId::current()
        && let Ok(now) = reading()
        && let Some(ended) = last_reported.ended(&state, generator, source, now)
    {
        drop(state);
        source.tell(&ended);
        state = shared.lock();
    }
    state.ended = true;
    shared.wake(state);
}

/// Drives the keeper to its end, or until the process is restored: what it has leased before, another
/// copy may have, so nothing is asked or given back any more.
fn keep<F: Format, C: Clock>(
    shared: &Shared,
    generator: &Generator<F, C>,
    source: &LeaseSource,
    process: ForkId,
    mut store: OpenStore,
    last_reported: &mut LastReported,
) -> Result<()> {
    let mut rests = false;
    while process == ForkId::current() {
        let now = reading()?;
        let mut state = shared.lock();
        if let Some(changed) = last_reported.changed(&state, generator, source, now) {
            drop(state); // what is reported may ask for the status
            source.tell(changed);
            continue;
        }
        match state.advance(generator, process, now) {
            Next::End => return Ok(()),
            Next::Continue => {}
            Next::Sleep(_) if !rests && state.rests_for(now) > LONG_REST => {
                drop(state); // the store may take its time
                if let Some(store) = &mut store {
                    store.rest();
                }
                rests = true;
            }
            Next::Sleep(pause) => shared.sleep(state, pause),
            Next::Ask(step) => {
                drop(state); // the store may take its time
                let answer = source.ask(step, &mut store);
                rests = false;
                let mut state = shared.lock();
                let Some(keeper) = &mut state.keeper else { return Ok(()) };
                let now = reading()?;
                let is_foreign = keeper.answer(answer, now).is_err();
                let accepts_another = keeper.accepts_another_store();
                let has_time = !keeper.time_left(now).is_zero();
                drop(state); // the store may take its time
                match &mut store {
                    Some(store) if accepts_another => store.accept_another(),
                    // Its connection delivers the answers to other requests. A store that is opened
                    // again would not know which store the lease is from.
                    Some(opened) if is_foreign => {
                        opened.discard();
                        if !has_time {
                            store = None;
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}
