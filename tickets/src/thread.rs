//! The thread that draws blocks ahead, and gives back what is unused at the end.
//!
//! It also has the numbers confirmed, which is a draw of nothing, every 20 to 30 seconds while they
//! are used; otherwise they lapse.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::PoisonError,
    thread,
    time::Duration,
};

use randflake::{Error, ErrorKind};

use super::{
    confirmed::Moment,
    counter::Draw,
    size::Sizes,
    source::Source,
    supply::{Failure, Shared},
};
use randflake_leases::Token;

/// How often the end tries to give the blocks back. What remains after that is never handed out.
const LAST_ATTEMPTS: u32 = 4;

/// The body of the thread; sets `ended` even if it panics.
pub(super) fn run(shared: &Shared, mut source: Box<dyn Source>, sizes: &Sizes) {
    let drawn = panic::catch_unwind(AssertUnwindSafe(|| {
        let unanswered = draw(shared, &mut *source, sizes);
        // What was drawn before a restore, another copy may have given back.
        if shared.positions.is_of_this_process() {
            give_back(shared, &mut *source, unanswered);
        }
    }));
    let mut state = shared.lock();
    if drawn.is_err() {
        // The blocks are as they were. Drawing again would panic again.
        let error = Error::new(
            ErrorKind::Internal,
            "a defect: the thread that draws numbers has panicked; its message is on standard \
             error",
        );
        state.last_error = Some(error.clone());
        state.failure =
            Some(Failure { error, count: 1, since: Duration::ZERO, next_attempt: Duration::MAX });
    }
    state.ended = true;
    state.wake_waiting();
}

/// Draws until it is closed, or the process is restored. Returns the token of a request whose answer is
/// not known.
fn draw(shared: &Shared, source: &mut dyn Source, sizes: &Sizes) -> Option<Token> {
    // After a failure it is repeated as it was: the store may have done it. Blocks count from when it
    // was first sent: what is repeated, a copy of the process may have sent, too.
    let mut request: Option<(Draw, Moment)> = None;
    // When what is used has to be confirmed. If nothing was used by then, nothing is sent.
    let mut due = Duration::MAX;
    loop {
        let now = source.now();
        let mut state = shared.lock();
        if state.closed || !shared.positions.is_of_this_process() {
            return request.map(|(request, _)| request.token);
        }
        let next_attempt = state.failure.as_ref().map_or(now, |failure| failure.next_attempt);
        if next_attempt <= now {
            // Before the token is made: a copy that is made in between knows both.
            let sent = Moment::now();
            let mut next = || state.next_draw(shared, sizes, now, due <= now);
            request = request.or_else(|| next().map(|request| (request, sent)));
            if let Some((asked, sent)) = &request {
                drop(state); // the store may take its time
                if ask(shared, source, asked, *sent, now) {
                    request = None;
                }
                due = source.now() + source.confirm_after();
                continue;
            }
        }
        let pause = match &request {
            _ if next_attempt > now => next_attempt.saturating_sub(now),
            None if due <= now => {
                // Nothing is asked until a number is needed.
                due = Duration::MAX;
                drop(state);
                source.rest();
                continue;
            }
            _ => due.saturating_sub(now),
        };
        let waited = shared.work.wait_timeout_while(state, pause, |state| !state.wake);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.wake = false;
    }
}

/// Sends a request to the store. Returns whether that is done with.
fn ask(
    shared: &Shared,
    source: &mut dyn Source,
    request: &Draw,
    sent: Moment,
    now: Duration,
) -> bool {
    let answer = source.draw(request);
    let answered = source.now();
    let mut state = shared.lock();
    state.requests.count_time(answered.saturating_sub(now));
    let added = match answer {
        Ok(Some(drawn)) => shared.add(&mut state, request, sent, &drawn),
        Ok(None) => {
            shared.give_up(&mut state);
            let error = lost();
            state.requests.count_error(error.kind());
            state.last_error = Some(error);
            return true;
        }
        Err(error) => Err(error),
    };
    // Where no number is left, nothing was drawn, and what is held can still be confirmed.
    let is_used_up = |error: &Error| error.kind() == ErrorKind::LifetimeOver;
    let is_done = added.as_ref().map_or_else(is_used_up, |()| true);
    if let Err(error) = added {
        state.requests.count_error(error.kind());
        state.last_error = Some(error.clone());
        let last = state.failure.as_ref();
        let count = last.map_or(0, |failure| failure.count).saturating_add(1);
        let since = last.map_or(now, |failure| failure.since);
        let pause = source.pause(count);
        state.failure = Some(Failure { error, count, since, next_attempt: answered + pause });
    }
    state.wake_waiting();
    is_done
}

/// Gives back what was drawn and not handed out.
fn give_back(shared: &Shared, source: &mut dyn Source, unanswered: Option<Token>) {
    let (token, unused_from) = shared.lock().take_unused();
    let tokens: Vec<Token> = token.into_iter().chain(unanswered).collect();
    if tokens.is_empty() {
        return;
    }
    for attempt in 1..=LAST_ATTEMPTS {
        let Err(error) = source.give_back(&tokens, unused_from) else { return };
        let mut state = shared.lock();
        state.requests.count_error(error.kind());
        state.last_error = Some(error);
        drop(state);
        if attempt < LAST_ATTEMPTS {
            thread::sleep(source.pause(attempt));
        }
    }
}

#[cold]
fn lost() -> Error {
    Error::new(
        ErrorKind::LeaseLost,
        "the counter no longer has the numbers that this process held under its token: the process \
         was copied while it ran, the counter was fenced or lost data, or more than 512 blocks are \
         held at once; it draws other numbers",
    )
}
