//! What is handed out, drawn and given back, by threads, in outages and at the end.

use std::{
    collections::{BTreeSet, VecDeque},
    iter, panic,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use randflake::ErrorKind;

use super::{
    builder::Options,
    counter::{Block, Counter, CounterSettings, Draw, KnownCounter},
    source::Source,
    *,
};
use randflake_leases::{MemoryStore, Namespace, Token};

/// A counter in memory, which several objects draw from.
#[derive(Clone)]
struct Memory(MemoryStore);

impl Memory {
    fn new() -> Self {
        Self(MemoryStore::new(Namespace::for_tickets("tickets").expect("a name")))
    }

    fn tickets(&self) -> TicketsBuilder {
        let store = self.0.clone();
        let location = Location::new(move |namespace| Ok(Box::new(store.namespace(namespace))));
        Tickets::builder(location, "orders").max_wait(LONG).acquire_timeout(LONG)
    }

    fn counter(&self) -> Counter {
        let settings = CounterSettings::new("orders", None, None).expect("a name");
        let (counter, _) =
            KnownCounter::new(settings).read(&mut self.0.clone()).expect("a counter");
        counter.expect("it was drawn from")
    }

    /// Returns the positions that were drawn and not given back.
    fn taken(&self) -> BTreeSet<u64> {
        let Counter { next, free, .. } = self.counter();
        (0..next).filter(|position| !free.iter().any(|free| free.contains(position))).collect()
    }
}

/// A store of the test's own: what it answers, and when.
#[derive(Clone, Default)]
struct Script(Arc<Scripted>);

#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    answered: Condvar,
    draws: Mutex<Vec<Draw>>,
    given_back: Mutex<Vec<(Vec<Token>, u64)>>,
    /// The clock, in nanoseconds.
    now: AtomicU64,
    rested: AtomicBool,
}

enum Answer {
    Block(Range<u64>),
    Confirmed,
    Lost,
    Fails(ErrorKind),
    Panics,
}

impl Script {
    fn of(answers: impl IntoIterator<Item = Answer>) -> Self {
        let script = Self::default();
        script.answer(answers);
        script
    }

    /// Has the thread receive these answers. It waits for each.
    fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.0.answers.lock().expect("no panic").extend(answers);
        self.0.answered.notify_all();
    }

    fn tickets(&self, max_wait: Duration) -> Tickets {
        let options = Options {
            namespace: "tickets".to_owned(),
            name: "orders".to_owned(),
            start: None,
            step: None,
            max_wait,
            acquire_timeout: Duration::from_secs(600),
        };
        let sizes = Sizes { reserve: Duration::from_secs(2), min_block: 10, max_block: 1000 };
        let script = self.clone();
        let open = move || -> Box<dyn Source> { Box::new(script.clone()) };
        TicketsBuilder::open_on(options, sizes, None, Box::new(open)).expect("in range")
    }

    /// Waits until the thread has asked so many times.
    fn wait_for_draws(&self, count: usize) -> Vec<Draw> {
        loop {
            let draws = self.0.draws.lock().expect("no panic").clone();
            if draws.len() >= count {
                return draws;
            }
            thread::yield_now();
        }
    }

    /// Closes, and has what the thread waits for fail.
    fn end(&self, tickets: &Tickets) {
        tickets.stop();
        self.answer([Answer::Fails(ErrorKind::StoreUnavailable)]);
        until(|| tickets.is_over());
    }

    fn pass(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).expect("short");
        self.0.now.fetch_add(nanos, Ordering::Relaxed);
    }

    fn given_back(&self) -> Vec<(Vec<Token>, u64)> {
        self.0.given_back.lock().expect("no panic").clone()
    }
}

impl Source for Script {
    fn draw(&mut self, request: &Draw) -> Result<Option<Block>> {
        self.0.draws.lock().expect("no panic").push(request.clone());
        let answers = self.0.answers.lock().expect("no panic");
        let mut answers =
            self.0.answered.wait_while(answers, |answers| answers.is_empty()).expect("no panic");
        let answer = answers.pop_front().expect("not empty");
        drop(answers);
        match answer {
            Answer::Block(positions) => Ok(Some(Block { positions, start: 1, step: 1 })),
            Answer::Confirmed => Ok(Some(Block { positions: 0..0, start: 1, step: 1 })),
            Answer::Lost => Ok(None),
            Answer::Fails(kind) => Err(Error::new(kind, "the script says so")),
            Answer::Panics => panic::resume_unwind(Box::new("the script says so")),
        }
    }

    fn give_back(&mut self, tokens: &[Token], unused_from: u64) -> Result<()> {
        self.0.given_back.lock().expect("no panic").push((tokens.to_vec(), unused_from));
        Ok(())
    }

    fn rest(&mut self) {
        self.0.rested.store(true, Ordering::Relaxed);
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.now.load(Ordering::Relaxed))
    }

    fn pause(&self, _failures: u32) -> Duration {
        Duration::ZERO
    }
}

fn until(is_it: impl Fn() -> bool) {
    while !is_it() {
        thread::yield_now();
    }
}

const LONG: Duration = Duration::from_secs(600);

#[test]
fn one_object_hands_out_1_2_3_and_gives_back_the_rest() {
    let memory = Memory::new();
    let tickets = memory.tickets().open().expect("a block");
    let numbers: Vec<_> = (0..1000).map(|_| tickets.generate().expect("a number")).collect();
    assert!(numbers.into_iter().eq(1..=1000));
    tickets.close();
    assert_eq!(memory.taken(), (0..1000).collect());
    assert_eq!(memory.counter().held, []);
    let next = memory.tickets().open().expect("a block");
    assert_eq!(next.generate(), Ok(1001));
}

#[test]
fn what_bindings_call_hands_out_the_same_numbers() {
    let tickets = Memory::new().tickets().open_lazily().expect("the options");
    assert!(tickets.generate_with(Wait::Never).is_err(), "there is no block yet");
    let mut numbers = [0_i64; 25];
    tickets.fill_with(&mut numbers, Wait::MaxWait).expect("numbers");
    assert!(numbers.into_iter().eq(1..=25));
    let at_once =
        iter::from_fn(|| tickets.generate_with(Wait::Never).or_else(|_| tickets.generate()).ok());
    assert!(at_once.take(100).eq(26..=125));
    until(|| tickets.metrics().reserve > 2);
    let mut numbers = [0_i64; 2];
    tickets.fill_with(&mut numbers, Wait::Never).expect("they are there");
    assert_eq!(numbers, [126, 127]);
    tickets.close();
    assert!(tickets.generate_with(Wait::Never).is_err());
    assert_eq!(
        tickets.fill_with(&mut numbers, Wait::MaxWait).map_err(|error| error.kind()),
        Err(ErrorKind::Closed)
    );
    assert_eq!(numbers, [0, 0]);
}

#[cfg(feature = "sqlite")]
#[test]
fn a_namespace_is_made_by_word_alone() {
    let path = std::env::temp_dir().join(format!("randflake-word-{}.db", std::process::id()));
    let open = |create: Option<bool>| {
        let builder = Tickets::builder(path.clone(), "orders").acquire_timeout(LONG);
        let builder = create.into_iter().fold(builder, TicketsBuilder::create);
        builder.open().map(|tickets| tickets.generate())
    };
    for create in [None, Some(false)] {
        let refused = open(create).expect_err("in a lost file every number would come again");
        assert_eq!(refused.kind(), ErrorKind::StoreNotInitialized);
    }
    assert!(!path.exists());
    assert_eq!(open(Some(true)), Ok(Ok(1)));
    assert_eq!(open(None), Ok(Ok(2)));
    let set = Location::from(path.clone()).create(true);
    let other = Tickets::builder(set, "orders").namespace("other").acquire_timeout(LONG);
    let other = other.open().expect("that is set");
    assert_eq!(other.generate(), Ok(1));
    drop(other);
    std::fs::remove_file(&path).expect("it is there");
}

#[test]
fn threads_of_several_objects_never_hand_out_a_number_twice_or_outside_a_block() {
    for (round, min_block) in [1, 2, 3, 10, 1000].into_iter().enumerate() {
        let memory = Memory::new();
        let objects: Vec<_> = [min_block, 1, 7]
            .map(|min_block| {
                let builder = memory.tickets().min_block(min_block).max_block(min_block * 4);
                Arc::new(
                    builder.max_wait(LONG).acquire_timeout(LONG).open_lazily().expect("in range"),
                )
            })
            .into();
        let threads: Vec<_> = (0..9)
            .map(|thread| {
                let tickets = Arc::clone(&objects[thread % 3]);
                thread::spawn(move || {
                    let mut numbers = vec![];
                    for call in 0..60 {
                        if call % 7 == thread % 7 {
                            let mut batch = vec![0; 1 + (call * 5 + thread) % 40];
                            tickets.fill(&mut batch).expect("numbers");
                            numbers.extend(batch);
                        } else {
                            numbers.push(tickets.generate().expect("a number"));
                        }
                    }
                    assert!(numbers.is_sorted_by(|one, next| one < next), "they rise");
                    numbers
                })
            })
            .collect();
        let mut all = BTreeSet::new();
        for thread in threads {
            for number in thread.join().expect("no panic") {
                assert!(all.insert(number - 1), "{number} twice, in round {round}");
            }
        }
        for tickets in &objects {
            tickets.close();
        }
        // No call failed, so nothing is lost either.
        assert_eq!(memory.taken(), all, "in round {round}");
    }
}

#[test]
fn a_call_without_a_block_leaves_the_coming_one_as_it_is() {
    let script = Script::default();
    let tickets = script.tickets(Duration::ZERO);
    for _ in 0..100 {
        let error = tickets.generate_with(Wait::Never).expect_err("no block");
        assert_eq!(error.kind(), ErrorKind::LeaseUnavailable);
        assert_eq!(error.retry_after(), Some(Duration::from_millis(50)));
        tickets.fill_with(&mut [0; 3], Wait::Never).expect_err("no block");
    }
    script.answer([Answer::Block(0..10)]);
    assert_eq!(tickets.generate(), Ok(1), "the first block is waited for");
    for number in 2..=10 {
        assert_eq!(tickets.generate_with(Wait::Never), Ok(number));
    }
    for _ in 0..100 {
        // At once, since max_wait is zero.
        assert_eq!(tickets.generate().expect_err("used up").kind(), ErrorKind::LeaseUnavailable);
    }
    script.answer([Answer::Block(10..20)]);
    until(|| tickets.ready_in().expect("open").is_zero());
    assert_eq!(tickets.generate_with(Wait::Never), Ok(11));
    script.end(&tickets);
}

#[test]
fn ten_threads_that_fail_next_to_the_end_of_a_block_lose_one_number_each_at_most() {
    let script = Script::of([Answer::Block(0..100)]);
    let tickets = script.tickets(Duration::ZERO);
    assert_eq!(tickets.generate(), Ok(1));
    thread::scope(|threads| {
        for _ in 0..10 {
            threads.spawn(|| (0..50).for_each(|_| drop(tickets.generate())));
        }
    });
    script.answer([Answer::Block(100..200)]);
    until(|| tickets.ready_in().expect("open").is_zero());
    let first = tickets.generate_with(Wait::Never).expect("a number");
    assert!((101..=110).contains(&first), "{first}");
    script.end(&tickets);
}

#[test]
fn it_draws_ahead_after_a_few_numbers_and_says_what_is_used_up() {
    let script = Script::of([Answer::Block(0..10)]);
    let tickets = script.tickets(LONG);
    for number in 1..=5 {
        assert_eq!(tickets.generate(), Ok(number));
    }
    assert_eq!(script.wait_for_draws(1).len(), 1, "half of the block is left");
    assert_eq!(tickets.generate(), Ok(6));
    let draws = script.wait_for_draws(2);
    assert_eq!((draws[1].after, draws[1].unused_from), (10, 6));
    assert_eq!((draws[0].before, draws[1].before), (None, Some(draws[0].token)));
    script.answer([Answer::Block(10..20)]);
    for number in 7..=16 {
        assert_eq!(tickets.generate(), Ok(number));
    }
    let draws = script.wait_for_draws(3);
    assert_eq!((draws[2].after, draws[2].unused_from), (20, 16));
    assert_eq!(draws[2].before, Some(draws[1].token));
    assert_ne!(draws[2].token, draws[1].token);
    script.end(&tickets);
}

#[test]
fn a_draw_that_failed_is_repeated_as_it_was() {
    let script = Script::of([Answer::Fails(ErrorKind::StoreUnavailable), Answer::Block(0..10)]);
    let tickets = script.tickets(LONG);
    assert_eq!(tickets.generate(), Ok(1), "it recovers by itself");
    let draws = script.wait_for_draws(2);
    assert_eq!(draws[0], draws[1]);
    let metrics = tickets.metrics();
    assert_eq!((metrics.store_requests, metrics.blocks_drawn, metrics.waits), (2, 1, 1));
    assert_eq!(metrics.store_errors, [(ErrorKind::StoreUnavailable, 1)]);
    assert_eq!(metrics.last_error.map(|error| error.kind()), Some(ErrorKind::StoreUnavailable));
    script.end(&tickets);
}

#[test]
fn a_close_gives_back_both_tails_and_a_second_one_nothing() {
    let script = Script::of([Answer::Block(0..10), Answer::Block(30..40)]);
    let tickets = script.tickets(LONG);
    for number in 1..=6 {
        assert_eq!(tickets.generate(), Ok(number));
    }
    until(|| tickets.metrics().reserve == 14);
    tickets.close();
    let draws = script.wait_for_draws(2);
    assert_eq!(script.given_back(), [(vec![draws[1].token], 6)]);
    assert_eq!((tickets.metrics().numbers_generated, tickets.metrics().reserve), (6, 0));
    tickets.close();
    tickets.stop();
    for refused in [tickets.generate(), tickets.generate_with(Wait::Never)] {
        assert_eq!(refused.expect_err("closed").kind(), ErrorKind::Closed);
    }
    assert_eq!(tickets.ready_in().expect_err("closed").kind(), ErrorKind::Closed);
    drop(tickets);
    assert_eq!(script.given_back().len(), 1);
}

#[test]
fn a_drop_gives_back() {
    let memory = Memory::new();
    let tickets = memory.tickets().open().expect("a block");
    assert_eq!(tickets.generate(), Ok(1));
    drop(tickets);
    assert_eq!(memory.taken(), BTreeSet::from([0]));
}

#[test]
fn a_block_that_comes_after_the_close_goes_back() {
    for answer in [Answer::Block(10..20), Answer::Fails(ErrorKind::StoreUnavailable)] {
        let script = Script::of([Answer::Block(0..10)]);
        let tickets = script.tickets(LONG);
        for number in 1..=6 {
            assert_eq!(tickets.generate(), Ok(number));
        }
        let draws = script.wait_for_draws(2);
        tickets.stop();
        let fails = matches!(answer, Answer::Fails(_));
        script.answer([answer]);
        tickets.close();
        // Where the answer is not known, the counter has one of the two.
        let tokens =
            if fails { vec![draws[0].token, draws[1].token] } else { vec![draws[1].token] };
        assert_eq!(script.given_back(), [(tokens, 6)]);
    }
}

#[test]
fn a_close_ends_the_calls_that_wait() {
    let script = Script::default();
    let tickets = Arc::new(script.tickets(LONG));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let tickets = Arc::clone(&tickets);
            thread::spawn(move || tickets.generate())
        })
        .collect();
    until(|| tickets.metrics().waits == 3);
    tickets.stop();
    for thread in threads {
        let refused = thread.join().expect("no panic");
        assert_eq!(refused.expect_err("closed").kind(), ErrorKind::Closed);
    }
    script.end(&tickets);
}

#[test]
fn a_panic_of_the_store_is_told_once_the_numbers_are_used_up() {
    let script = Script::of([Answer::Block(0..10), Answer::Panics]);
    let tickets = script.tickets(LONG);
    for number in 1..=10 {
        assert_eq!(tickets.generate(), Ok(number));
    }
    assert_eq!(tickets.generate().expect_err("a defect").kind(), ErrorKind::Internal);
    assert_eq!(tickets.ready_in().expect_err("a defect").kind(), ErrorKind::Internal);
    tickets.close();
}

#[test]
fn what_does_not_pass_is_told_at_once_and_tried_again() {
    for kind in [ErrorKind::LifetimeOver, ErrorKind::InvalidArgument, ErrorKind::StoreQuarantined] {
        let script = Script::of([Answer::Fails(kind)]);
        let tickets = script.tickets(LONG);
        assert_eq!(tickets.generate().expect_err("refused").kind(), kind);
        script.answer([Answer::Block(0..10)]);
        until(|| tickets.ready_in() == Ok(Duration::ZERO));
        assert_eq!(tickets.generate(), Ok(1), "as after a fence");
        script.end(&tickets);
    }
}

#[test]
fn a_block_before_the_last_one_is_refused() {
    for lost in [0..10, 5..15, 9..11] {
        let script = Script::of([Answer::Block(0..10), Answer::Block(lost.clone())]);
        let tickets = script.tickets(LONG);
        for number in 1..=10 {
            assert_eq!(tickets.generate(), Ok(number), "{lost:?}");
        }
        let refused = tickets.generate().expect_err("the counter went back");
        assert_eq!(refused.kind(), ErrorKind::StoreReplaced, "{lost:?}");
        script.end(&tickets);
    }
}

#[test]
fn a_batch_crosses_blocks_and_a_failed_one_is_zeros() {
    let script = Script::of([Answer::Block(0..10), Answer::Block(20..25), Answer::Block(25..50)]);
    let tickets = script.tickets(LONG);
    let mut numbers = [0; 30];
    tickets.fill(&mut numbers).expect("three blocks");
    assert!(numbers.into_iter().eq((1..=10).chain(21..=40)));
    script.answer([Answer::Fails(ErrorKind::LifetimeOver)]);
    let mut numbers = [7; 30];
    let refused = tickets.fill(&mut numbers).expect_err("10 are left");
    assert_eq!((refused.kind(), numbers), (ErrorKind::LifetimeOver, [0; 30]));
    script.end(&tickets);
}

#[test]
fn a_batch_that_does_not_wait_claims_nothing_unless_all_is_there() {
    let script = Script::of([Answer::Block(0..10)]);
    let tickets = script.tickets(LONG);
    until(|| tickets.ready_in() == Ok(Duration::ZERO));
    let mut numbers = [7; 11];
    let refused = tickets.fill_with(&mut numbers, Wait::Never).expect_err("10 are left");
    assert_eq!(refused.kind(), ErrorKind::LeaseUnavailable);
    assert!(refused.to_string().contains("fewer than 11 numbers of the counter"), "{refused}");
    // It has as many drawn as it needs, though nothing of the block is used yet.
    let draws = script.wait_for_draws(2);
    assert_eq!((draws[1].after, draws[1].want), (10, 10));
    script.answer([Answer::Block(10..11)]);
    until(|| tickets.metrics().reserve == 11);
    tickets.fill_with(&mut numbers, Wait::Never).expect("there are 11");
    assert!(numbers.into_iter().eq(1..=11));
    let refused =
        tickets.fill_with(&mut vec![0; 1001], Wait::Never).expect_err("a process has 1000");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    script.end(&tickets);
}

/// The longest time until what is used is confirmed.
const LONGEST: Duration = confirmed::CONFIRM_AFTER[1];

/// Returns tickets of a block of ten, of which so many are handed out, and none is drawn ahead.
fn of_ten(script: &Script, handed_out: u64) -> Tickets {
    script.answer([Answer::Block(0..10)]);
    let tickets = script.tickets(LONG);
    for number in 1..=handed_out {
        assert_eq!(tickets.generate(), Ok(number));
    }
    tickets
}

/// Lets the longest time pass again and again: the thread may look at the clock late.
fn pass_until(script: &Script, tickets: &Tickets, is_it: impl Fn() -> bool) {
    let shared = &tickets.supplies.first().shared;
    until(|| {
        script.pass(LONGEST);
        shared.lock().wake(shared);
        is_it()
    });
}

#[test]
fn what_is_used_is_confirmed_under_a_token_of_its_own() {
    let script = Script::default();
    let tickets = of_ten(&script, 2);
    let asked = || script.0.draws.lock().expect("no panic").len();
    pass_until(&script, &tickets, || asked() == 2);
    let draws = script.wait_for_draws(2);
    assert_eq!((draws[1].before, draws[1].want), (Some(draws[0].token), 0));
    assert_ne!(draws[1].token, draws[0].token);
    // Calls do not wait for it.
    assert_eq!(tickets.generate(), Ok(3));
    script.answer([Answer::Fails(ErrorKind::StoreUnavailable), Answer::Confirmed]);
    let draws = script.wait_for_draws(3);
    assert_eq!(draws[1], draws[2], "repeated as it was");
    until(|| tickets.metrics().store_requests == 3);
    pass_until(&script, &tickets, || asked() == 4);
    let draws = script.wait_for_draws(4);
    assert_eq!((draws[3].before, draws[3].want), (Some(draws[2].token), 0));
    script.answer([Answer::Confirmed]);
    until(|| tickets.metrics().store_requests == 4);
    assert_eq!((tickets.metrics().blocks_drawn, tickets.metrics().reserve), (1, 7));
    tickets.close();
    assert_eq!(script.given_back(), [(vec![draws[3].token], 3)]);
}

#[test]
fn nothing_is_sent_while_nothing_is_used() {
    let script = Script::default();
    let tickets = of_ten(&script, 1);
    script.answer([Answer::Confirmed]);
    pass_until(&script, &tickets, || tickets.metrics().store_requests == 2);
    pass_until(&script, &tickets, || script.0.rested.load(Ordering::Relaxed));
    (0..100).for_each(|_| pass_until(&script, &tickets, || true));
    // Once, for the number that was handed out.
    assert_eq!(tickets.metrics().store_requests, 2);
    script.end(&tickets);
}

#[test]
fn a_minute_later_a_call_waits_until_the_numbers_are_confirmed() {
    let script = Script::default();
    let tickets = of_ten(&script, 2);
    tickets.supplies.first().shared.confirmed.lapse();
    assert!(tickets.generate_with(Wait::Never).is_err());
    let refused = tickets.generate_with(Wait::Never).expect_err("not confirmed");
    assert_eq!(refused.kind(), ErrorKind::LeaseUnavailable);
    assert!(refused.to_string().contains("confirm"), "{refused}");
    assert_ne!(tickets.ready_in(), Ok(Duration::ZERO));
    let refused = tickets.fill_with(&mut [0; 2], Wait::Never).expect_err("not confirmed");
    assert_eq!(refused.kind(), ErrorKind::LeaseUnavailable);
    let draws = script.wait_for_draws(2);
    assert_eq!((draws[1].before, draws[1].want), (Some(draws[0].token), 0));
    script.answer([Answer::Confirmed]);
    assert_eq!(tickets.generate(), Ok(3), "none is lost");
    let mut numbers = [0; 2];
    tickets.fill(&mut numbers).expect("they count");
    assert_eq!(numbers, [4, 5]);
    script.end(&tickets);
}

#[test]
fn the_last_numbers_are_confirmed_too() {
    let script = Script::default();
    let tickets = of_ten(&script, 6);
    script.answer([Answer::Fails(ErrorKind::LifetimeOver)]);
    until(|| tickets.metrics().last_error.is_some());
    tickets.supplies.first().shared.confirmed.lapse();
    script.answer([Answer::Confirmed]);
    assert_eq!(tickets.generate(), Ok(7));
    let draws = script.wait_for_draws(3);
    assert_eq!((draws[1].want > 0, draws[2].want), (true, 0));
    assert_ne!(draws[2].token, draws[1].token);
    script.answer([Answer::Fails(ErrorKind::LifetimeOver)]);
    for number in 8..=10 {
        assert_eq!(tickets.generate(), Ok(number));
    }
    script.answer((0..9).map(|_| Answer::Fails(ErrorKind::LifetimeOver)));
    assert_eq!(tickets.generate().expect_err("none is left").kind(), ErrorKind::LifetimeOver);
    script.end(&tickets);
}

#[test]
fn what_a_repeated_request_brings_after_a_minute_has_to_be_confirmed() {
    let script = Script::default();
    let tickets = of_ten(&script, 10);
    let sent = script.wait_for_draws(2).len();
    assert_eq!(sent, 2, "the next block");
    script.answer([Answer::Block(10..20)]);
    until(|| tickets.metrics().blocks_drawn == 2);
    // As if the draw had been sent more than a minute ago: the answer came late.
    tickets.supplies.first().shared.confirmed.lapse();
    tickets.generate_with(Wait::Never).expect_err("not confirmed");
    assert_eq!(script.wait_for_draws(3)[2].want, 0);
    script.answer([Answer::Confirmed]);
    assert_eq!(tickets.generate(), Ok(11));
    script.end(&tickets);
}

#[test]
fn a_copy_that_was_slower_gives_up_what_it_holds_and_draws_anew() {
    let script = Script::default();
    let tickets = of_ten(&script, 4);
    tickets.supplies.first().shared.confirmed.lapse();
    // A fence may have raised the counter to any number above those that were handed out. A call that was
    // slow may have claimed what is before the end of the blocks that were given up.
    script.answer([Answer::Lost, Answer::Block(4..20)]);
    assert_eq!(tickets.generate(), Ok(11));
    let draws = script.wait_for_draws(3);
    assert_eq!((draws[1].before, draws[2].before), (Some(draws[0].token), None));
    assert_eq!((draws[2].after, draws[2].want > 0), (4, true));
    let metrics = tickets.metrics();
    assert_eq!(metrics.last_error.map(|error| error.kind()), Some(ErrorKind::LeaseLost));
    assert_eq!(metrics.store_errors, [(ErrorKind::LeaseLost, 1)]);
    assert_eq!(metrics.numbers_generated, 5);
    script.end(&tickets);
}

/// What a call had before it waited is not handed out if it was given up meanwhile.
#[test]
fn a_batch_begins_anew_when_its_numbers_are_given_up_while_it_waits() {
    let script = Script::default();
    let tickets = of_ten(&script, 4);
    let batch = thread::scope(|scope| {
        let batch = scope.spawn(|| {
            let mut numbers = [0; 12];
            tickets.fill(&mut numbers).map(|()| numbers)
        });
        // Six are claimed, and six more are asked for.
        let draws = script.wait_for_draws(2);
        assert_eq!(draws[1].before, Some(draws[0].token));
        until(|| tickets.metrics().numbers_generated == 10);
        script.answer([Answer::Lost, Answer::Block(20..40)]);
        batch.join().expect("it goes well")
    });
    let numbers = batch.expect("there is another block");
    assert!(numbers.iter().all(|number| *number > 20), "{numbers:?}");
    assert!(numbers.is_sorted_by(|one, next| one + 1 == *next), "{numbers:?}");
    script.end(&tickets);
}

/// A clock that counts the waits, and does not wait.
#[derive(Clone, Default)]
struct Waits(Arc<AtomicU64>);

impl Clock for Waits {
    fn now(&self) -> Result<i64> {
        unreachable!("no number depends on the time")
    }

    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        self.0.fetch_add(u64::try_from(duration.as_micros()).expect("short"), Ordering::Relaxed);
        Ok(Some(duration))
    }
}

#[test]
fn a_store_that_is_away_is_waited_for_as_long_as_is_said() {
    let waits = Waits::default();
    let location =
        Location::new(|_| Err(Error::new(ErrorKind::StoreUnavailable, "the store is away")));
    let builder = Tickets::builder(location, "orders").clock(waits.clone());
    // The clock does not wait for the first attempt: until that has failed, there is no cause.
    until(|| {
        let open = builder.clone().acquire_timeout(Duration::from_secs(7)).open();
        let kind = open.expect_err("away").kind();
        assert!([ErrorKind::StoreUnavailable, ErrorKind::LeaseUnavailable].contains(&kind));
        assert_eq!(waits.0.swap(0, Ordering::Relaxed), 7_000_000);
        kind == ErrorKind::StoreUnavailable
    });
    let tickets = builder.acquire_timeout(Duration::from_secs(3)).open_lazily().expect("options");
    until(|| {
        let error = tickets.generate().expect_err("away");
        assert_eq!(error.kind(), ErrorKind::LeaseUnavailable);
        assert!(error.retry_after().is_some_and(|pause| pause <= Duration::from_secs(5)));
        assert_eq!(waits.0.swap(0, Ordering::Relaxed), 3_000_000);
        // Once the first attempt has failed.
        error.cause().is_some_and(|cause| cause.kind() == ErrorKind::StoreUnavailable)
    });
    tickets.close();
}

#[test]
fn a_call_waits_no_longer_than_max_wait_once_there_was_a_block() {
    let script = Script::of([Answer::Block(0..10)]);
    let waits = Waits::default();
    let mut tickets = script.tickets(Duration::from_millis(250));
    tickets.clock = Some(Arc::new(waits.clone()));
    until(|| tickets.ready_in() == Ok(Duration::ZERO));
    (0..10).for_each(|_| assert!(tickets.generate().is_ok()));
    let error = tickets.generate().expect_err("the script says nothing");
    assert_eq!(error.kind(), ErrorKind::LeaseUnavailable);
    assert_eq!(waits.0.load(Ordering::Relaxed), 250_000);
    assert_eq!(tickets.metrics().waits, 1);
    script.end(&tickets);
}

#[test]
fn a_counter_ends_at_the_largest_number() {
    const LARGEST: u64 = (1 << 53) - 1;
    let memory = Memory::new();
    let builder = memory.tickets().start(LARGEST - 24).step(2);
    let tickets = builder.clone().open().expect("13 numbers are left");
    let mut numbers = [0; 13];
    tickets.fill(&mut numbers).expect("13 numbers are left");
    assert!(numbers.into_iter().eq((LARGEST - 24..=LARGEST).step_by(2)));
    assert_eq!(tickets.generate().expect_err("the end").kind(), ErrorKind::LifetimeOver);
    let mut numbers = [7; 2];
    let refused = tickets.fill(&mut numbers).expect_err("the end");
    assert_eq!((refused.kind(), numbers), (ErrorKind::LifetimeOver, [0, 0]));
    tickets.close();
    assert_eq!(builder.open().expect_err("the end").kind(), ErrorKind::LifetimeOver);
}

#[test]
fn a_counter_with_another_start_or_step_is_refused() {
    let memory = Memory::new();
    let tickets = memory.tickets().start(100).step(5).open().expect("a block");
    assert_eq!((tickets.generate(), tickets.generate()), (Ok(100), Ok(105)));
    for other in [memory.tickets().start(1), memory.tickets().start(100).step(1)] {
        assert_eq!(other.open().expect_err("another").kind(), ErrorKind::InvalidArgument);
    }
    let same = memory.tickets().step(5).open().expect("what it has may be said or not");
    assert_eq!(same.generate().map(|number| number % 5), Ok(0));
}

#[test]
fn options_out_of_range_are_refused_before_the_store_is_asked() {
    let day = Duration::from_secs(86_400);
    let builder = Tickets::builder(Location::new(|_| unreachable!("not asked")), "orders");
    for (wrong, what) in [
        (builder.clone().start(0), "start"),
        (builder.clone().start(1 << 53), "start"),
        (builder.clone().step(0), "step"),
        (builder.clone().step(1 << 53), "step"),
        (builder.clone().min_block(0), "min_block"),
        (builder.clone().min_block(11).max_block(10), "min_block"),
        (builder.clone().max_block(0), "max_block"),
        (builder.clone().max_block(1 << 53), "max_block"),
        (builder.clone().reserve(day + Duration::from_nanos(1)), "reserve"),
        (builder.clone().acquire_timeout(day * 2), "acquire_timeout"),
        (builder.clone().max_wait(day * 2), "max_wait"),
        (builder.clone().namespace(""), "namespace"),
        (builder.clone().namespace("a".repeat(201)), "namespace"),
    ] {
        let error = wrong.open_lazily().expect_err(what);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}");
        assert!(error.to_string().contains(what), "{error}");
    }
    for name in ["", "a b", "a\n", &"a".repeat(201)] {
        let builder = Tickets::builder(Location::new(|_| unreachable!("not asked")), name);
        let error = builder.open_lazily().expect_err("no name");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name:?}");
    }
    builder.reserve(day).acquire_timeout(day).open_lazily().expect("the largest");
}

#[test]
fn a_process_never_holds_more_than_max_block() {
    for max_block in [1, 2, 3, 10, 100] {
        let memory = Memory::new();
        let builder = memory.tickets().min_block(1).max_block(max_block).max_wait(LONG);
        let tickets = builder.acquire_timeout(LONG).open().expect("a block");
        for call in 0..300 {
            if call % 50 == 49 {
                tickets.fill(&mut [0; 25]).expect("numbers");
            } else {
                tickets.generate().expect("a number");
            }
            let reserve = tickets.metrics().reserve;
            assert!(reserve <= max_block, "{reserve} of {max_block}");
            // What a kill loses: what the store takes for drawn, and nobody has handed out.
            let Counter { held, .. } = memory.counter();
            let newest = held.iter().map(|(_, block)| block.end - block.start).max();
            assert!(newest <= Some(max_block), "{newest:?} of {max_block}");
        }
    }
}

#[test]
fn it_is_shared_by_threads_and_shows_its_name_alone() {
    fn shared<T: Send + Sync>(_: &T) {}
    let location = Location::from("postgresql://user:hunter2@host/db");
    let builder = Tickets::builder(location, "orders");
    let shown = format!("{builder:?}");
    assert!(shown.contains("orders") && !shown.contains("hunter2"), "{shown}");
    let tickets = builder.open_lazily().expect("options");
    shared(&tickets);
    assert_eq!(format!("{tickets:?}"), "Tickets { name: \"orders\", .. }");
    assert_eq!(tickets.name(), "orders");
}
