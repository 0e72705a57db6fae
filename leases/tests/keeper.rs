//! The keeper, driven by scripts and by a simulation with random faults; all time is injected.

mod common;

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use common::{SECOND, START};
use randflake::{ErrorKind, Randflake};
use randflake_leases::{
    Acquire, Acquired, Error, Fence, LeaseStore, MemoryStore, Namespace, NodeLease, NodeRanges,
    Operation, Release, Released, Renew, Renewed, Reply, Token,
    keeper::{Answer, Keeper, Options, Reading, State, Step},
};

/// `SplitMix64`: a different, repeatable sequence for every seed.
fn random(seed: u64) -> impl FnMut() -> u64 + Send + 'static {
    let mut state = seed.wrapping_mul(0xd129_0d3c_a1f5_b4e7);
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn millis(millis: i64) -> Duration {
    Duration::from_millis(millis.max(0).unsigned_abs())
}

/// A keeper whose every step the test expects and answers.
struct Script {
    keeper: Keeper,
    /// Since [`START`], on both clocks.
    millis: i64,
    /// How far the wall clock has stepped, in seconds.
    stepped: i64,
}

impl Script {
    fn new(options: Options) -> Self {
        let keeper = Keeper::with_random(options, random(1)).expect("within the limits");
        Self { keeper, millis: 0, stepped: 0 }
    }

    /// Opens a generator with these leases.
    fn holding(node_count: u32, leases: &[NodeLease]) -> (Self, Token) {
        let mut script = Self::new(Options { node_count, ..Options::default() });
        let token = script.is_granted(leases);
        script.opens();
        (script, token)
    }

    fn now(&self) -> Reading {
        let wall = (START + self.stepped) * SECOND + self.millis * 1_000_000;
        Reading { wall, boot: millis(self.millis) }
    }

    fn second(&self) -> i64 {
        START + self.stepped + self.millis / 1000
    }

    fn pass(&mut self, seconds: i64) {
        self.millis += seconds * 1000;
    }

    fn step(&mut self) -> Step {
        self.keeper.step(self.now())
    }

    fn answer(&mut self, answer: Answer) {
        self.keeper.answer(answer, self.now()).expect("the answer to this step");
    }

    /// Sleeps as the keeper says until it has a step; returns the step and how long that took.
    fn wakes(&mut self) -> (Step, Duration) {
        let began = self.millis;
        loop {
            match self.step() {
                Step::Sleep(pause) => {
                    assert!(pause <= Duration::from_secs(5));
                    self.millis += i64::try_from(pause.as_millis()).expect("short") + 1;
                }
                step => return (step, millis(self.millis - began)),
            }
        }
    }

    fn asks(&mut self) -> Acquire {
        match self.wakes() {
            (Step::Acquire(request), _) => request,
            (other, _) => panic!("expected an acquire: {other:?}"),
        }
    }

    fn renews(&mut self) -> Renew {
        match self.wakes() {
            (Step::Renew(request), _) => request,
            (other, _) => panic!("expected a renewal: {other:?}"),
        }
    }

    fn releases(&mut self) -> Release {
        let Step::Release(request) = self.step() else { panic!("expected a release") };
        let released = request.reply(Released { count: 1 });
        self.answer(Answer::Released(Ok(released)));
        request
    }

    fn is_granted(&mut self, leases: &[NodeLease]) -> Token {
        let request = self.asks();
        let outcome = Acquired::Granted {
            now: self.second(),
            max_ttl: 300,
            max_skew: 5,
            leases: leases.to_vec(),
        };
        self.answer(Answer::Acquired(Ok(request.reply(outcome))));
        request.token
    }

    fn is_answered(&mut self, outcome: Acquired) {
        let request = self.asks();
        self.answer(Answer::Acquired(Ok(request.reply(outcome))));
    }

    fn is_extended(&mut self, leases: &[NodeLease]) {
        let request = self.renews();
        let outcome = Renewed::Extended {
            now: self.second(),
            max_ttl: 300,
            max_skew: 5,
            leases: leases.to_vec(),
        };
        self.answer(Answer::Renewed(Ok(request.reply(outcome))));
    }

    fn opens(&mut self) -> Vec<u32> {
        let Step::Open { node_ids, .. } = self.step() else { panic!("expected to open") };
        self.answer(Answer::Opened(Ok(())));
        node_ids
    }

    /// Replaces the Term; nothing was stamped from `used_until` on.
    fn replaces(&mut self, used_until: i64) -> (Vec<u32>, i64, i64) {
        let Step::Replace { node_ids, lease } = self.step() else { panic!("expected a new Term") };
        self.answer(Answer::Replaced(Ok(used_until)));
        (node_ids, lease.start(), lease.end_exclusive())
    }

    fn fails_with(&mut self) -> Option<&'static str> {
        self.keeper.last_error().map(Error::code)
    }
}

/// A lease of seconds since [`START`].
fn lease(node_id: u32, start: i64, end: i64) -> NodeLease {
    NodeLease { node_id, start: START + start, end_exclusive: START + end }
}

fn unavailable() -> Error {
    Error::new(ErrorKind::StoreUnavailable, "down")
}

#[test]
fn refuses_options_out_of_range() {
    for (node_count, ttl, max_skew) in [(0, 300, 5), (16_385, 300, 5), (1, 0, 0), (1, 29, 5)] {
        let options = Options { node_count, ttl, max_skew, ..Options::default() };
        let error = Keeper::new(options).expect_err("out of range");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn renews_at_a_third_and_extends() {
    let (mut script, token) = Script::holding(1, &[lease(7, -5, 300)]);
    assert_eq!(script.keeper.state(), State::Holding);
    for round in 1..=20 {
        let (step, slept) = script.wakes();
        assert!((80.0..=100.2).contains(&slept.as_secs_f64()), "{slept:?}");
        let Step::Renew(request) = step else { panic!("expected a renewal: {step:?}") };
        let client_now = script.second();
        assert_eq!(request, Renew { token, node_ids: vec![7], ttl: 300, client_now, next: None });
        let end = client_now - START + 300;
        script.is_extended(&[lease(7, -5, end)]);
        assert_eq!(script.step(), Step::Extend { end_exclusive: START + end });
        script.answer(Answer::Extended(Ok(())));
        assert_eq!(script.keeper.renewals(), round);
    }
}

#[test]
fn a_shorter_lease_than_asked_for_is_renewed_at_its_third() {
    let (mut script, _) = Script::holding(1, &[lease(7, 0, 60)]);
    let (_, slept) = script.wakes();
    assert!((16.0..=20.1).contains(&slept.as_secs_f64()), "{slept:?}");
}

/// The release of a dead holder's lease relies on it. A renewed lease keeps its start, so that the
/// window alone would allow more and more.
#[test]
fn the_drift_is_a_third_of_what_is_granted_at_a_time() {
    let (mut script, _) = Script::holding(2, &[lease(7, -5, 120), lease(9, -5, 120)]);
    for _ in 0..20 {
        assert!(matches!(script.wakes(), (Step::Renew(_), _)));
        let end = script.second() - START + 120;
        script.is_extended(&[lease(7, -5, end), lease(9, -5, end)]);
        assert_eq!(script.step(), Step::Extend { end_exclusive: START + end });
        script.answer(Answer::Extended(Ok(())));
    }
    assert!(matches!(script.wakes(), (Step::Renew(_), _)));
    script.is_extended(&[lease(9, -5, script.second() - START + 120)]);
    let Step::Replace { lease, .. } = script.step() else { panic!("expected a new Term") };
    assert!(lease.end_exclusive() - lease.start() > 600);
    assert_eq!(script.keeper.most_drift(lease), 40);
}

/// A clock that was set back keeps an end that is further away than anything that is granted now.
#[test]
fn the_drift_is_a_third_of_what_the_namespace_grants_at_most() {
    let options = Options { node_count: 2, ttl: 3600, max_skew: 600, ..Options::default() };
    let mut script = Script::new(options);
    script.is_granted(&[lease(7, -5, 300), lease(9, -5, 300)]);
    script.opens();
    assert!(matches!(script.wakes(), (Step::Renew(_), _)));
    script.stepped -= 4;
    script.is_extended(&[lease(7, -5, 700), lease(9, -5, 700)]);
    assert_eq!(script.step(), Step::Extend { end_exclusive: START + 700 });
    script.answer(Answer::Extended(Ok(())));
    assert!(matches!(script.wakes(), (Step::Renew(_), _)));
    script.is_extended(&[lease(9, -5, 700)]);
    let Step::Replace { lease, .. } = script.step() else { panic!("expected a new Term") };
    assert_eq!(
        (lease.end_exclusive() - lease.start(), script.keeper.most_drift(lease)),
        (705, 100)
    );
}

/// Whoever releases a dead holder's lease relies on the largest skew of the namespace.
#[test]
fn a_clock_may_step_no_further_than_the_namespace_allows() {
    for (step, asks) in [(5, false), (6, true), (-5, false), (-6, true)] {
        let mut script = Script::new(Options { max_skew: 50, ..Options::default() });
        script.is_granted(&[lease(7, -5, 300)]);
        script.opens();
        script.stepped += step;
        assert_eq!(matches!(script.step(), Step::Acquire(_)), asks, "{step}");
    }
}

/// Its file, for instance, was made by others and is lost; this generator then makes another one.
#[test]
fn another_store_is_asked_for_what_the_first_one_did_not_grant() {
    let mut script = Script::new(Options { ttl: 600, max_skew: 60, ..Options::default() });
    script.is_granted(&[lease(7, -5, 300)]);
    script.opens();
    assert_eq!(script.renews().ttl, 600);
}

#[test]
fn an_earlier_end_never_shortens() {
    let (mut script, _) = Script::holding(1, &[lease(7, 0, 300)]);
    script.is_extended(&[lease(7, 0, 200)]);
    assert!(matches!(script.step(), Step::Sleep(_)), "nothing to extend");
    let left = script.keeper.time_left(script.now());
    assert_eq!(left, millis(300_000 - script.millis));
}

#[test]
fn first_acquire_gives_up_after_its_time() {
    let refusals: [(Acquired, &str); 3] = [
        (Acquired::Busy { now: START, free_at: Some(START + 40) }, "NODES_EXHAUSTED"),
        (Acquired::Quarantined { now: START, until: START + 40 }, "STORE_QUARANTINED"),
        (Acquired::ClockSkew { store_now: START + 40, max_skew: 5 }, "CLOCK_SKEW"),
    ];
    for (refusal, code) in refusals {
        let mut script = Script::new(Options::default());
        let mut tokens = HashSet::new();
        loop {
            match script.wakes() {
                (Step::Acquire(request), _) => {
                    tokens.insert(request.token);
                    script.answer(Answer::Acquired(Ok(request.reply(refusal.clone()))));
                }
                (step, _) => {
                    assert_eq!(step, Step::Stopped);
                    break;
                }
            }
        }
        assert!((10_000..10_100).contains(&script.millis), "{} ms", script.millis);
        // Each busy round ends with a new token, and so with other candidates; after any other
        // failure the request is repeated.
        assert_eq!(tokens.len() > 1, code == "NODES_EXHAUSTED");
        assert_eq!(script.fails_with(), Some(code));
        assert_eq!(script.keeper.state(), State::Stopped);
        let retry_after = script.keeper.last_error().and_then(Error::retry_after);
        assert_eq!(retry_after, (code != "CLOCK_SKEW").then_some(Duration::from_secs(40)));
    }
}

#[test]
fn what_does_not_pass_fails_at_once() {
    for kind in [
        ErrorKind::SecretMismatch,
        ErrorKind::StoreNotInitialized,
        ErrorKind::StoreReplaced,
        ErrorKind::InvalidArgument,
    ] {
        let mut script = Script::new(Options::default());
        script.asks();
        script.answer(Answer::Acquired(Err(Error::new(kind, "no"))));
        assert_eq!(script.step(), Step::Stopped);
        assert_eq!(script.fails_with(), Some(kind.code()));
    }
}

#[test]
fn another_store_is_accepted_once_the_lease_is_over() {
    let (mut script, token) = Script::holding(1, &[lease(7, 0, 300)]);
    let replaced = || Error::new(ErrorKind::StoreReplaced, "gone");
    let mut asked = HashSet::new();
    while script.second() < START + 300 {
        match script.wakes().0 {
            Step::Renew(_) => script.answer(Answer::Renewed(Err(replaced()))),
            Step::Acquire(request) => {
                asked.insert(request.token);
                script.answer(Answer::Acquired(Err(replaced())));
            }
            other => panic!("expected a question: {other:?}"),
        }
        let accepts = script.keeper.accepts_another_store();
        assert_eq!(accepts, script.second() >= START + 300, "{}", script.second() - START);
    }
    assert!(!script.keeper.accepts_another_store(), "once");
    // Before long, and without renewing anything that the other store might know by chance.
    let (step, slept) = script.wakes();
    assert!(slept <= Duration::from_secs(4), "{slept:?}");
    let Step::Acquire(request) = step else { panic!("expected an acquire: {step:?}") };
    assert_ne!(request.token, token);
    let (now, leases) = (script.second(), vec![lease(9, 310, 610)]);
    let outcome = Acquired::Granted { now, max_ttl: 300, max_skew: 5, leases };
    script.answer(Answer::Acquired(Ok(request.reply(outcome))));
    assert_eq!(script.replaces(START + 300), (vec![9], START + 310, START + 610));
    assert_eq!(script.keeper.state(), State::Holding);
}

#[test]
fn a_store_that_is_back_is_found_soon() {
    let (mut script, _) = Script::holding(1, &[lease(7, 0, 300)]);
    let mut longest = Duration::ZERO;
    while script.second() < START + 3600 {
        let (step, slept) = script.wakes();
        if script.second() > START + 310 {
            longest = longest.max(slept);
        }
        match step {
            Step::Renew(_) => script.answer(Answer::Renewed(Err(unavailable()))),
            Step::Acquire(_) => script.answer(Answer::Acquired(Err(unavailable()))),
            other => panic!("expected a question: {other:?}"),
        }
    }
    assert!((2.0..3.1).contains(&longest.as_secs_f64()), "of a ttl of 300 seconds: {longest:?}");
}

#[test]
fn an_error_repeats_the_same_request_with_jitter() {
    let mut script =
        Script::new(Options { acquire_timeout: Duration::from_secs(3600), ..Options::default() });
    let first = script.asks();
    for _ in 0..20 {
        script.answer(Answer::Acquired(Err(unavailable())));
        let (step, slept) = script.wakes();
        assert!((0.25..=30.1).contains(&slept.as_secs_f64()), "{slept:?}");
        let Step::Acquire(request) = step else { panic!("expected an acquire: {step:?}") };
        assert_eq!(request.token, first.token);
    }
    script.is_granted(&[lease(7, 0, 600)]);
    assert_eq!(script.opens(), [7]);
}

#[test]
fn a_failure_has_a_time_and_passes_with_a_success() {
    let (mut script, _) = Script::holding(1, &[lease(7, 0, 300)]);
    assert_eq!(script.fails_with(), None);
    let due = script.keeper.next_attempt_in(script.now());
    assert!((80.0..=100.0).contains(&due.as_secs_f64()), "{due:?}");
    for _ in 0..3 {
        script.renews();
        assert_eq!(script.keeper.next_attempt_in(script.now()), Duration::ZERO, "under way");
        script.answer(Answer::Renewed(Err(unavailable())));
        assert_eq!(script.fails_with(), Some("STORE_UNAVAILABLE"));
        assert_eq!(script.keeper.last_error_at(), Some(script.second()));
        let announced = script.keeper.next_attempt_in(script.now());
        let began = script.millis;
        let (step, _) = script.wakes();
        assert!(matches!(step, Step::Renew(_)), "{step:?}");
        let waited = millis(script.millis - began);
        assert!(
            waited.abs_diff(announced) < Duration::from_millis(20),
            "{announced:?}, {waited:?}"
        );
    }
    script.is_extended(&[lease(7, 0, 600)]);
    assert_eq!((script.fails_with(), script.keeper.last_error_at()), (None, None));
}

#[test]
fn who_gives_up_is_stopped_and_says_why() {
    let (mut script, _) = Script::holding(1, &[lease(7, 0, 300)]);
    script.renews();
    script.keeper.give_up(Error::new(ErrorKind::Internal, "a panic"), START + 90);
    assert_eq!((script.keeper.state(), script.step()), (State::Stopped, Step::Stopped));
    assert_eq!(
        (script.fails_with(), script.keeper.last_error_at()),
        (Some("INTERNAL"), Some(START + 90))
    );
}

#[test]
fn a_lost_lease_is_replaced_and_then_released() {
    let (mut script, old) = Script::holding(1, &[lease(7, 0, 300)]);
    let request = script.renews();
    script.answer(Answer::Renewed(Ok(request.reply(Renewed::Lost { now: START }))));
    assert_eq!((script.keeper.state(), script.keeper.losses()), (State::Retrying, 1));
    assert_eq!(script.fails_with(), Some("LEASE_LOST"));
    let new = script.is_granted(&[lease(9, 90, 400)]);
    assert_eq!((script.fails_with(), script.keeper.last_error_at()), (None, None));
    assert_ne!(old, new, "one Term per token");
    assert_eq!(script.replaces(START + 101), (vec![9], START + 90, START + 400));
    let used_until = START + 101;
    assert_eq!(script.releases(), Release { token: old, node_ids: vec![7], used_until });
    assert_eq!(script.keeper.state(), State::Holding);
}

#[test]
fn a_lease_with_another_start_is_lost() {
    // The reply is about a lease that a late request got under the same token.
    for reply in [lease(7, 1, 900), lease(8, 0, 900)] {
        let (mut script, _) = Script::holding(1, &[lease(7, 0, 300)]);
        script.is_extended(&[reply]);
        assert_eq!(script.keeper.losses(), 1);
        assert_eq!(script.keeper.node_ids(), [7], "until its end");
        assert!(matches!(script.step(), Step::Acquire(_)), "and no Extend");
    }
}

#[test]
fn replies_to_other_requests_are_refused() {
    let (mut script, token) = Script::holding(1, &[lease(7, 0, 300)]);
    let leases = vec![lease(7, 0, 900)];
    let outcome = Renewed::Extended { now: START, max_ttl: 300, max_skew: 5, leases };
    let stranger = Reply::new(Token::random(), Operation::Renew, outcome.clone());
    let other_operation = Reply::new(token, Operation::Acquire, outcome.clone());
    for reply in [stranger, other_operation] {
        script.renews();
        let now = script.now();
        let refused = script.keeper.answer(Answer::Renewed(Ok(reply)), now);
        let error = refused.expect_err("not to this");
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
        assert_eq!(script.keeper.state(), State::Retrying);
    }
    // An answer of the wrong kind: the call is still in progress.
    script.renews();
    let now = script.now();
    script.keeper.answer(Answer::Closed(None), now).expect_err("not to this");
    script.renews();
    // The right answer, and the same again when no request is pending.
    let reply = Reply::new(token, Operation::Renew, outcome);
    script.answer(Answer::Renewed(Ok(reply.clone())));
    assert_eq!(script.step(), Step::Extend { end_exclusive: START + 900 });
    script.answer(Answer::Extended(Ok(())));
    let now = script.now();
    script.keeper.answer(Answer::Renewed(Ok(reply)), now).expect_err("nothing was asked");
    assert_eq!(script.keeper.renewals(), 1);
}

#[test]
fn missing_nodes_come_under_a_further_token() {
    let mut script = Script::new(Options { node_count: 3, ..Options::default() });
    let first = script.is_granted(&[lease(7, 0, 300)]);
    let request = script.asks();
    assert_eq!(request.want, 2);
    assert_ne!(request.token, first);
    script.is_answered(Acquired::Busy { now: START, free_at: None });
    assert_eq!(script.opens(), [7], "begins with what there is");

    // The next round asks again, and the Term's window is what all rows share.
    script.is_extended(&[lease(7, 0, 390)]);
    assert!(matches!(script.step(), Step::Extend { .. }));
    script.answer(Answer::Extended(Ok(())));
    let second = script.is_granted(&[lease(3, 85, 395), lease(5, 86, 395)]);
    assert_eq!(script.replaces(START + 91), (vec![3, 5, 7], START + 86, START + 390));

    // Both tokens are renewed; one row is lost, and the rest continues without it.
    script.is_extended(&[lease(3, 85, 480)]);
    assert_eq!(script.replaces(START + 181), (vec![3, 7], START + 85, START + 390));
    assert_eq!(script.keeper.losses(), 1);
    script.is_extended(&[lease(7, 0, 480)]);
    assert_eq!(script.step(), Step::Extend { end_exclusive: START + 480 });
    script.answer(Answer::Extended(Ok(())));
    let request = script.asks();
    assert_eq!(request.want, 1);
    assert!(request.token != first && request.token != second);
    script.is_answered(Acquired::Busy { now: START, free_at: None });
    let used_until = START + 181;
    assert_eq!(script.releases(), Release { token: second, node_ids: vec![5], used_until });
}

#[test]
fn near_the_end_another_lease_is_tried_in_turns() {
    let (mut script, old) = Script::holding(1, &[lease(7, 0, 300)]);
    let (mut renewals, mut fresh) = (0, HashSet::new());
    while script.millis < 300_000 {
        match script.wakes() {
            (Step::Renew(_), _) => {
                renewals += 1;
                script.answer(Answer::Renewed(Err(unavailable())));
            }
            (Step::Acquire(request), _) => {
                assert!(script.millis > 250_000, "not before the last sixth");
                fresh.insert(request.token);
                script.answer(Answer::Acquired(Err(unavailable())));
            }
            (other, _) => panic!("nothing else: {other:?}"),
        }
    }
    assert!(renewals > 5 && fresh.len() == 1 && !fresh.contains(&old), "{renewals} {fresh:?}");
}

#[test]
fn a_step_of_the_clock_takes_a_new_lease() {
    for (stepped, is_noticed) in [(5, false), (-5, false), (6, true), (-6, true), (200, true)] {
        let (mut script, old) = Script::holding(1, &[lease(7, 0, 300)]);
        script.pass(20);
        script.stepped = stepped;
        if !is_noticed {
            assert!(matches!(script.step(), Step::Sleep(_)));
            continue;
        }
        let Step::Acquire(request) = script.step() else { panic!("expected an acquire") };
        assert_eq!(request.client_now, START + 20 + stepped);
        assert_eq!(script.fails_with(), Some("CLOCK_SKEW"));
        assert_ne!(request.token, old);
        // As long as there is no new lease, the keeper does not renew the old one either.
        for _ in 0..3 {
            let store_now = START + 20;
            script.is_answered(Acquired::ClockSkew { store_now, max_skew: 5 });
        }
        let start = 20 + stepped;
        script.is_granted(&[lease(9, start, start + 300)]);
        script.replaces(START + 21);
        assert_eq!(script.releases().token, old);
        assert_eq!(script.keeper.state(), State::Holding);
    }
}

#[test]
fn skew_and_quarantine_do_not_end_what_is_held() {
    let (mut script, _) = Script::holding(1, &[lease(7, 0, 300)]);
    let request = script.renews();
    let skewed = Renewed::ClockSkew { store_now: START + 500, max_skew: 5 };
    script.answer(Answer::Renewed(Ok(request.reply(skewed))));
    assert_eq!(script.fails_with(), Some("CLOCK_SKEW"));
    let request = script.renews();
    script.answer(Answer::Renewed(Ok(request.reply(Renewed::Lost { now: START + 100 }))));
    script.is_answered(Acquired::Quarantined { now: START + 100, until: START + 405 });
    assert_eq!(script.fails_with(), Some("STORE_QUARANTINED"));
    assert_eq!((script.keeper.state(), script.keeper.node_ids()), (State::Retrying, vec![7]));
    assert!(matches!(script.wakes().0, Step::Acquire(_)));
}

#[test]
fn stop_closes_first_and_releases_what_was_not_used() {
    let (mut script, token) = Script::holding(1, &[lease(7, 0, 300)]);
    script.keeper.stop();
    assert_eq!(script.step(), Step::Close);
    script.answer(Answer::Closed(Some(START + 12)));
    let used_until = START + 12;
    assert_eq!(script.releases(), Release { token, node_ids: vec![7], used_until });
    assert_eq!(script.step(), Step::Stopped);
    assert_eq!(script.fails_with(), None);

    // The generator still uses a lost row, and a release fails: the keeper tries once.
    let (mut script, _) = Script::holding(1, &[lease(7, 0, 300)]);
    let request = script.renews();
    script.answer(Answer::Renewed(Ok(request.reply(Renewed::Lost { now: START }))));
    script.keeper.stop();
    assert_eq!(script.step(), Step::Close);
    script.answer(Answer::Closed(Some(START + 12)));
    assert!(matches!(script.step(), Step::Release(_)));
    script.answer(Answer::Released(Err(unavailable())));
    assert_eq!(script.step(), Step::Stopped);

    // If another caller has closed the generator, the keeper cannot know what it stamped.
    let (mut script, _) = Script::holding(1, &[lease(7, 0, 300)]);
    script.keeper.stop();
    assert_eq!(script.step(), Step::Close);
    script.answer(Answer::Closed(None));
    assert_eq!(script.step(), Step::Stopped);

    // A grant that comes too late goes back unused.
    let mut script = Script::new(Options::default());
    let request = script.asks();
    script.keeper.stop();
    let leases = vec![lease(7, -5, 300)];
    let outcome = Acquired::Granted { now: START, max_ttl: 300, max_skew: 5, leases };
    script.answer(Answer::Acquired(Ok(request.reply(outcome))));
    assert_eq!(script.releases().used_until, START - 5);
    assert_eq!(script.step(), Step::Stopped);
}

#[test]
fn a_release_that_fails_is_repeated_while_it_frees_something() {
    let (mut script, old) = Script::holding(1, &[lease(7, 0, 300)]);
    let request = script.renews();
    script.answer(Answer::Renewed(Ok(request.reply(Renewed::Lost { now: START }))));
    script.is_granted(&[lease(9, 90, 400)]);
    script.replaces(START + 101);
    assert!(matches!(script.step(), Step::Release(_)));
    script.answer(Answer::Released(Err(unavailable())));
    let (step, _) = script.wakes();
    assert!(matches!(&step, Step::Release(request) if request.token == old), "{step:?}");
    script.answer(Answer::Released(Err(unavailable())));
    script.pass(300);
    while !matches!(script.step(), Step::Sleep(_)) {
        let second = script.second() - START;
        script.is_extended(&[lease(9, 90, second + 300)]);
        assert!(matches!(script.step(), Step::Extend { .. }));
        script.answer(Answer::Extended(Ok(())));
    }
}

#[test]
fn a_forgotten_keeper_does_nothing_any_more() {
    let forked = || Error::new(ErrorKind::Forked, "forked");
    let forgets: [fn(&mut Script, Error); 3] = [
        |script, _| script.keeper.forget(),
        |script, forked| {
            script.renews();
            script.answer(Answer::Renewed(Err(forked)));
        },
        |script, _| {
            script.renews();
            script.keeper.forget();
            script.keeper.stop();
        },
    ];
    for forget in forgets {
        let (mut script, _) = Script::holding(1, &[lease(7, 0, 300)]);
        forget(&mut script, forked());
        assert_eq!(script.step(), Step::Stopped);
        assert_eq!(script.keeper.state(), State::Stopped);
        assert!(script.keeper.node_ids().is_empty());
        script.answer(Answer::Released(Err(unavailable())));
        assert_eq!(script.step(), Step::Stopped);
    }
}

#[test]
fn a_grant_that_is_of_no_use_goes_back() {
    // A lease that has ended because its request was repeated for too long; and two without a
    // common second.
    for leases in [vec![lease(9, -60, 0)], vec![lease(8, 0, 10), lease(9, 10, 300)]] {
        let mut script = Script::new(Options::default());
        let token = script.is_granted(&leases);
        assert_eq!(script.fails_with(), Some("STORE_UNAVAILABLE"));
        assert_ne!(script.is_granted(&[lease(7, 0, 300)]), token);
        assert_eq!(script.opens(), [7]);
        let still_running = leases.iter().filter(|lease| lease.end_exclusive > script.second());
        for lease in still_running.copied().collect::<Vec<_>>() {
            let NodeLease { node_id, start, .. } = lease;
            let release = Release { token, node_ids: vec![node_id], used_until: start };
            assert_eq!(script.releases(), release);
        }
        assert!(matches!(script.step(), Step::Sleep(_)));
    }
}

#[test]
fn manually_assigned_node_ids_are_released() {
    let manual = |granted: &[u32]| granted.iter().copied().filter(|node| *node < 5).collect();
    let release = |token, node_id, start| Release {
        token,
        node_ids: vec![node_id],
        used_until: START + start,
    };

    // First all node ids of a first grant are assigned manually, then some of them.
    let mut script = Script::new(Options { node_count: 2, ..Options::default() });
    script.keeper = script.keeper.manual(manual);
    let first = script.is_granted(&[lease(3, 0, 300), lease(4, 0, 300)]);
    assert_eq!(script.fails_with(), Some("NODES_EXHAUSTED"));
    let second = script.is_granted(&[lease(2, 0, 300), lease(7, 0, 300)]);
    // All of those still missing.
    let third = script.is_granted(&[lease(1, 0, 300)]);
    assert_eq!(script.opens(), [7], "begins with what there is");
    for (token, node_id) in [(first, 3), (first, 4), (second, 2), (third, 1)] {
        assert_eq!(script.releases(), release(token, node_id, 0));
    }

    // Some that the next round grants.
    script.is_extended(&[lease(7, 0, 390)]);
    assert!(matches!(script.step(), Step::Extend { .. }));
    script.answer(Answer::Extended(Ok(())));
    let fourth = script.is_granted(&[lease(0, 90, 390), lease(8, 90, 390)]);
    assert_eq!(script.replaces(START + 91).0, [7, 8]);
    assert_eq!(script.releases(), release(fourth, 0, 90));

    // Some of a lease that replaces a lost one.
    script.pass(90);
    while let (Step::Renew(request), _) = script.wakes() {
        let lost = request.reply(Renewed::Lost { now: script.second() });
        script.answer(Answer::Renewed(Ok(lost)));
        if matches!(script.step(), Step::Replace { .. }) {
            script.replaces(script.second());
        }
    }
    let start = script.second() - START;
    let fifth = script.is_granted(&[lease(4, start, start + 300), lease(9, start, start + 300)]);
    assert_eq!(script.replaces(START + start + 1).0, [9]);
    script.is_answered(Acquired::Busy { now: script.second(), free_at: None });
    let released: Vec<_> =
        std::iter::from_fn(|| matches!(script.step(), Step::Release(_)).then(|| script.releases()))
            .collect();
    assert!(released.contains(&release(fifth, 4, start)), "{released:?}");
}

#[test]
fn shows_no_token() {
    let (script, token) = Script::holding(1, &[lease(7, 0, 300)]);
    let shown = format!("{:?}", script.keeper);
    let token = format!("{token:?}");
    assert!(!shown.contains(&token[6..14]), "{shown}");
}

type Flake = Randflake<Box<dyn Fn() -> i64>>;

/// A process: a keeper, its generator, and the driver between them and the store.
struct Process {
    life: u64,
    keeper: Keeper,
    flake: Option<Flake>,
    /// What this machine's clock shows; the generator stamps with it.
    wall: Arc<AtomicI64>,
    /// How far off it is, in milliseconds.
    off: i64,
    /// When the answer to the call in progress arrives.
    under_way: Option<(i64, Answer)>,
    wakes_at: i64,
    /// A signal has stopped the process until this time.
    stopped_until: i64,
}

/// What can go wrong with one call: the request or its reply is lost, the store does it again
/// later, or the reply comes late.
#[derive(Clone, Copy)]
struct Weather {
    /// The number of calls out of 100 in which something goes wrong.
    bad: u64,
    down: bool,
}

struct World {
    random: Box<dyn FnMut() -> u64>,
    options: Options,
    store: MemoryStore,
    /// Nanoseconds on the store's clock.
    store_wall: Arc<AtomicI64>,
    store_off: i64,
    /// True time since [`START`].
    millis: i64,
    weather: Weather,
    processes: Vec<Process>,
    lives: u64,
    /// Requests that the store will do again.
    late: Vec<(i64, Step)>,
    issued: HashSet<(i64, u32, u32)>,
    /// Which life stamped each second of a node id.
    stamped_by: HashMap<(i64, u32), u64>,
}

impl World {
    fn new(seed: u64, processes: usize, max_node_id: u32, options: Options) -> Self {
        let namespace = Namespace::new("orders", &common::secret())
            .and_then(|namespace| namespace.node_ids(NodeRanges::up_to(max_node_id)))
            .and_then(|namespace| namespace.max_skew(options.max_skew))
            .and_then(|namespace| namespace.max_ttl(options.ttl))
            .expect("within the limits");
        let store_wall = Arc::new(AtomicI64::new(START * SECOND));
        let clock = Arc::clone(&store_wall);
        let store = MemoryStore::with_clock(namespace, move || clock.load(Ordering::Relaxed));
        let mut world = Self {
            random: Box::new(random(seed)),
            options,
            store,
            store_wall,
            store_off: 0,
            millis: 0,
            weather: Weather { bad: 0, down: false },
            processes: Vec::new(),
            lives: 0,
            late: Vec::new(),
            issued: HashSet::new(),
            stamped_by: HashMap::new(),
        };
        for _ in 0..processes {
            let process = world.born(0);
            world.processes.push(process);
        }
        world
    }

    fn born(&mut self, off: i64) -> Process {
        self.lives += 1;
        let tokens = random((self.random)());
        Process {
            life: self.lives,
            keeper: Keeper::with_random(self.options, tokens).expect("within the limits"),
            flake: None,
            wall: Arc::default(),
            off,
            under_way: None,
            wakes_at: 0,
            stopped_until: 0,
        }
    }

    fn below(&mut self, bound: i64) -> i64 {
        i64::try_from((self.random)() % bound.unsigned_abs()).expect("below an i64")
    }

    fn happens(&mut self, of_a_hundred: u64) -> bool {
        (self.random)() % 100 < of_a_hundred
    }

    fn call(&mut self, step: &Step) -> Answer {
        match step {
            Step::Acquire(request) => Answer::Acquired(self.store.acquire(request)),
            Step::Renew(request) => Answer::Renewed(self.store.renew(request)),
            Step::Release(request) => Answer::Released(self.store.release(request)),
            other => panic!("no call: {other:?}"),
        }
    }

    /// Does a call in this weather; returns the answer and how long it takes.
    fn send(&mut self, step: &Step) -> (Answer, i64) {
        let failed = || match step {
            Step::Acquire(_) => Answer::Acquired(Err(unavailable())),
            Step::Renew(_) => Answer::Renewed(Err(unavailable())),
            _ => Answer::Released(Err(unavailable())),
        };
        if self.weather.down {
            return (failed(), 0);
        }
        if !self.happens(self.weather.bad) {
            return (self.call(step), 0);
        }
        let later = self.below(60_000);
        match self.below(4) {
            0 => (failed(), later / 20),
            1 => {
                self.call(step);
                (failed(), later / 20)
            }
            2 => {
                // The process gives up; the store does the request, or does it twice.
                self.late.push((self.millis + later, step.clone()));
                if later % 2 == 0 { (failed(), 0) } else { (self.call(step), 0) }
            }
            _ => (self.call(step), later / 2),
        }
    }

    /// Lets time pass, then lets every process do what is due.
    fn tick(&mut self, millis: i64) {
        self.millis += millis;
        let wall = START * SECOND + (self.millis + self.store_off) * 1_000_000;
        self.store_wall.store(wall, Ordering::Relaxed);
        let (due, late) = std::mem::take(&mut self.late)
            .into_iter()
            .partition::<Vec<_>, _>(|(at, _)| *at <= self.millis);
        self.late = late;
        for (_, step) in due {
            self.call(&step);
        }
        for index in 0..self.processes.len() {
            let mut process = self.processes.remove(index);
            if self.millis >= process.stopped_until {
                let wall = START * SECOND + (self.millis + process.off) * 1_000_000;
                process.wall.store(wall, Ordering::Relaxed);
                self.use_ids(&process);
                self.drive(&mut process);
                self.use_ids(&process);
            }
            self.processes.insert(index, process);
        }
    }

    fn drive(&mut self, process: &mut Process) {
        let now = Reading { wall: process.wall.load(Ordering::Relaxed), boot: millis(self.millis) };
        for _ in 0..50 {
            if let Some((at, answer)) = process.under_way.take() {
                if at > self.millis {
                    process.under_way = Some((at, answer));
                    return;
                }
                process.keeper.answer(answer, now).expect("the answer to this step");
            } else if self.millis < process.wakes_at {
                return;
            }
            let answer = match process.keeper.step(now) {
                Step::Sleep(pause) => {
                    process.wakes_at =
                        self.millis + i64::try_from(pause.as_millis()).expect("short");
                    if pause.is_zero() {
                        continue;
                    }
                    return;
                }
                Step::Stopped => {
                    *process = self.born(process.off);
                    return;
                }
                Step::Open { node_ids, lease } => {
                    let wall = Arc::clone(&process.wall);
                    let clock: Box<dyn Fn() -> i64> =
                        Box::new(move || wall.load(Ordering::Relaxed));
                    let made = Randflake::builder(&common::secret())
                        .node_ids(node_ids)
                        .granted_lease(lease)
                        .max_wait(Duration::ZERO)
                        .max_drift(10)
                        .clock(clock)
                        .build();
                    Answer::Opened(made.map(|made| process.flake = Some(made)))
                }
                Step::Replace { node_ids, lease } => {
                    let flake = process.flake.as_ref().expect("open");
                    let replaced =
                        flake.replace_lease(&node_ids, lease, process.keeper.most_drift(lease));
                    Answer::Replaced(replaced)
                }
                Step::Extend { end_exclusive } => {
                    let flake = process.flake.as_ref().expect("open");
                    Answer::Extended(flake.extend_lease(end_exclusive))
                }
                Step::Close => Answer::Closed(process.flake.as_ref().and_then(Randflake::close)),
                call => {
                    let (answer, takes) = self.send(&call);
                    process.under_way = Some((self.millis + takes, answer));
                    continue;
                }
            };
            process.keeper.answer(answer, now).expect("the answer to this step");
        }
        panic!("the keeper does not come to rest: {:?}", process.keeper);
    }

    /// Takes an id and compares it with all others: the oracle.
    fn use_ids(&mut self, process: &Process) {
        let Some(flake) = &process.flake else { return };
        let Ok(id) = flake.generate() else { return };
        let parts = flake.inspect(id);
        let new = self.issued.insert((parts.timestamp, parts.node_id, parts.sequence));
        assert!(new, "twice: {parts:?}");
        let by = *self.stamped_by.entry((parts.timestamp, parts.node_id)).or_insert(process.life);
        assert_eq!(by, process.life, "two lives stamped one second: {parts:?}");
    }

    /// Lets a random fault happen to a random process.
    fn strike(&mut self) {
        let index = usize::try_from(self.below(3)).expect("small") % self.processes.len();
        let (millis, long) = (self.millis, self.below(50_000));
        match self.below(12) {
            // Killed, and immediately followed by another life.
            0 => self.processes[index] = self.born(self.processes[index].off),
            1 | 2 => self.processes[index].stopped_until = millis + long,
            3 => self.processes[index].off += long - 25_000,
            4 => {
                // The clock of the machine that the processes and the store share.
                self.store_off += long - 25_000;
                for process in &mut self.processes {
                    process.off += long - 25_000;
                }
            }
            5 => self.store_off += (long - 25_000) / 5,
            6 => self.weather.down = !self.weather.down,
            7 => {
                let process = &mut self.processes[index];
                process.keeper.stop();
                process.wakes_at = 0;
            }
            8 if long < 5_000 => {
                let token = Token::random();
                let fenced = self.store.fence(&Fence { token });
                assert!(fenced.is_ok_and(|reply| reply.token == token));
            }
            9 => self.weather.bad = (self.random)() % 60,
            _ => {
                // All clocks are right again.
                self.store_off = 0;
                self.processes.iter_mut().for_each(|process| process.off = 0);
            }
        }
    }

    fn works(&self, index: usize) -> bool {
        self.processes[index].flake.as_ref().is_some_and(|flake| flake.generate().is_ok())
    }
}

#[test]
fn nothing_is_stamped_twice_in_any_weather() {
    let (mut ids, mut losses, mut renewals) = (0, 0, 0);
    for seed in 0..3_000 {
        let options = Options {
            node_count: if seed % 3 == 0 { 2 } else { 1 },
            ttl: 30,
            max_skew: 2,
            acquire_timeout: Duration::from_secs(8),
        };
        let mut world = World::new(seed, 3, 1, options);
        world.weather.bad = 20;
        for _ in 0..300 {
            let millis = world.below(1_400) + 100;
            world.tick(millis);
            if world.happens(8) {
                world.strike();
            }
        }
        // No faults any longer: it recovers by itself.
        (world.store_off, world.weather) = (0, Weather { bad: 0, down: false });
        for process in &mut world.processes {
            process.off = 0;
            process.stopped_until = 0;
        }
        for _ in 0..400 {
            world.tick(500);
        }
        let working = (0..3).filter(|&index| world.works(index)).count();
        let wanted = if options.node_count == 1 { 2 } else { 1 };
        assert!(working >= wanted, "seed {seed}: {working} work: {:?}", world.processes_seen());
        ids += world.issued.len();
        for process in &world.processes {
            losses += process.keeper.losses();
            renewals += process.keeper.renewals();
        }
    }
    assert!(ids > 1_000_000 && losses > 50 && renewals > 10_000, "{ids} {losses} {renewals}");
}

impl World {
    fn processes_seen(&self) -> Vec<String> {
        self.processes.iter().map(|process| format!("{:?}", process.keeper)).collect()
    }
}

#[test]
fn an_outage_of_six_tenths_of_the_ttl_is_not_noticed() {
    for seed in 0..300 {
        let options = Options { ttl: 60, ..Options::default() };
        let mut world = World::new(seed, 1, 0, options);
        world.tick(100);
        let before = world.below(100_000);
        while world.millis < before {
            world.tick(100);
            assert!(world.works(0), "seed {seed}");
        }
        world.weather.down = true;
        for _ in 0..360 {
            world.tick(100);
            assert!(world.works(0), "seed {seed}, down");
        }
        world.weather.down = false;
        for _ in 0..600 {
            world.tick(100);
            assert!(world.works(0), "seed {seed}, up again");
        }
        assert_eq!(world.processes[0].keeper.state(), State::Holding);
    }
}

#[test]
fn a_longer_outage_stops_it_and_it_recovers_alone() {
    for seed in 0..100 {
        let options = Options { ttl: 60, ..Options::default() };
        let mut world = World::new(seed, 1, 0, options);
        world.tick(100);
        world.weather.down = true;
        while world.millis < 59_000 {
            world.tick(100);
            assert!(world.works(0), "seed {seed}: to the end of the lease");
        }
        while world.millis < 90_000 {
            world.tick(100);
            assert!(world.millis < 60_000 || !world.works(0), "seed {seed}: the lease is over");
        }
        assert_eq!(world.processes[0].keeper.state(), State::Retrying);
        world.weather.down = false;
        for _ in 0..65 {
            world.tick(100);
        }
        assert!(world.works(0), "seed {seed}: within a tenth of the ttl");
        assert_eq!(world.lives, 1);
    }
}
