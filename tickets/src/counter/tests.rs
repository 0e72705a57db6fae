use std::{cell::RefCell, collections::BTreeSet};

use super::*;
use randflake_leases::{
    Acquire, Acquired, Fence, Fenced, MemoryStore, Namespace, Release, Released, Renew, Renewed,
    Reply,
    operator::{List, Listed, ReleaseDead, Repair, Shortened},
};

fn settings() -> CounterSettings {
    CounterSettings::new("invoices", None, None).expect("a name")
}

/// A store and a client of its counter.
fn counter() -> (MemoryStore, KnownCounter) {
    let namespace = Namespace::for_tickets("tickets").expect("a name");
    (MemoryStore::new(namespace), KnownCounter::new(settings()))
}

/// Asks for the first block of a holder.
fn asked(want: u64, after: u64) -> Draw {
    Draw { before: None, token: Token::random(), unused_from: 0, want, after }
}

/// Asks for another block of a holder, which has handed out nothing yet.
fn asked_again(last: &Draw, want: u64, after: u64) -> Draw {
    Draw { before: Some(last.token), ..asked(want, after) }
}

fn drawn(known: &mut KnownCounter, store: &mut dyn LeaseStore, asked: &Draw) -> Block {
    known.draw(store, asked).expect("it can be drawn from").expect("nobody else has the token")
}

/// Fences a counter, whatever the floor of its namespace is.
fn fence_now(known: &mut KnownCounter, store: &mut MemoryStore, above: u64) -> Result<Counter> {
    let (_, floor) = known.read(store)?;
    known.fence_at(store, above, floor)
}

fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0xd129_0d3c_a1f5_b4e7) ^ 0x5bf0_3635;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[test]
fn blocks_follow_each_other_and_a_repeated_draw_has_the_same() {
    let (mut store, mut known) = counter();
    let first = asked(10, 0);
    let block = drawn(&mut known, &mut store, &first);
    assert_eq!((block.positions.clone(), block.number(0)), (0..10, 1));
    assert_eq!(drawn(&mut known, &mut store, &first), block);
    assert_eq!(drawn(&mut known, &mut store, &asked(5, 10)).positions, 10..15);
    // Another client, whose answer to the first draw was lost.
    let mut other = KnownCounter::new(settings());
    assert_eq!(drawn(&mut other, &mut store, &first), block);
    assert_eq!(drawn(&mut other, &mut store, &asked(1, 0)).positions, 15..16);
    // What the first client knows is outdated by now.
    assert_eq!(drawn(&mut known, &mut store, &asked(1, 15)).positions, 16..17);
}

#[test]
fn a_tail_that_is_given_back_is_drawn_again_once() {
    let (mut store, mut known) = counter();
    let (a, b, c) = (asked(10, 0), asked(10, 10), asked(10, 20));
    for asked in [&a, &b, &c] {
        drawn(&mut known, &mut store, asked);
    }
    assert!(known.give_back(&mut store, &[a.token], 4).expect("given back"));
    assert!(!known.give_back(&mut store, &[a.token], 0).expect("repeated"));
    assert!(!known.give_back(&mut store, &[Token::random()], 0).expect("a stranger"));
    // Not for a holder that is past it.
    assert_eq!(drawn(&mut known, &mut store, &asked(3, 30)).positions, 30..33);
    assert_eq!(drawn(&mut known, &mut store, &asked(3, 0)).positions, 4..7);
    assert!(known.give_back(&mut store, &[b.token], 10).expect("given back"));
    assert_eq!(drawn(&mut known, &mut store, &asked(99, 0)).positions, 7..20);
    assert!(known.give_back(&mut store, &[c.token], 99).expect("given back"), "all was used");
    assert_eq!(drawn(&mut known, &mut store, &asked(1, 0)).positions, 33..34);
}

#[test]
fn what_was_given_back_up_to_next_goes_on_there() {
    let (mut store, mut known) = counter();
    let (a, b) = (asked(10, 0), asked(10, 10));
    known.draw(&mut store, &a).expect("a block");
    known.draw(&mut store, &b).expect("a block");
    assert!(known.give_back(&mut store, &[a.token], 3).expect("given back"));
    assert!(known.give_back(&mut store, &[b.token], 10).expect("given back"));
    let (counter, floor) = known.read(&mut store).expect("a counter");
    let counter = counter.expect("it was made");
    assert_eq!((counter.next, counter.free.len(), counter.held.len(), floor), (20, 1, 0, 0));
    assert_eq!(counter.free[0], 3..20);
    assert_eq!(counter.first_unused(), 3);
    // Who has drawn up to there sees that nothing was lost, and nobody's numbers fall.
    assert_eq!(drawn(&mut known, &mut store, &asked(2, 20)).positions, 20..22);
    assert_eq!(drawn(&mut known, &mut store, &asked(5, 0)).positions, 3..8);
    assert_eq!(drawn(&mut known, &mut store, &asked(99, 0)).positions, 8..20);
    assert_eq!(drawn(&mut known, &mut store, &asked(1, 0)).positions, 22..23);
}

#[test]
fn all_blocks_of_a_holder_are_under_its_newest_token() {
    let (mut store, mut known) = counter();
    let held = |known: &mut KnownCounter, store: &mut MemoryStore| {
        known.read(store).expect("a counter").0.expect("it was made").held
    };
    let first = asked(10, 0);
    drawn(&mut known, &mut store, &first);
    let other = asked(5, 0);
    drawn(&mut known, &mut store, &other);
    let second = asked_again(&first, 10, 10);
    assert_eq!(drawn(&mut known, &mut store, &second).positions, 15..25);
    assert_eq!(drawn(&mut known, &mut store, &second).positions, 15..25, "repeated");
    // Whoever was heard of last comes last, with its blocks as they rise.
    let blocks = [(other.token, 10..15), (second.token, 0..10), (second.token, 15..25)];
    assert_eq!(held(&mut known, &mut store), blocks);
    let confirmed = asked_again(&second, 0, 25);
    for _ in 0..2 {
        assert!(drawn(&mut known, &mut store, &confirmed).positions.is_empty());
    }
    let blocks = [(other.token, 10..15), (confirmed.token, 0..10), (confirmed.token, 15..25)];
    assert_eq!(held(&mut known, &mut store), blocks);
    // What is used up is held no longer.
    let third = Draw { unused_from: 10, ..asked_again(&confirmed, 1, 25) };
    drawn(&mut known, &mut store, &third);
    let blocks = [(other.token, 10..15), (third.token, 15..25), (third.token, 25..26)];
    assert_eq!(held(&mut known, &mut store), blocks);
    assert!(known.give_back(&mut store, &[third.token], 20).expect("given back"));
    let (counter, _) = known.read(&mut store).expect("a counter");
    assert_eq!(counter.expect("it was made").first_unused(), 20);
    assert_eq!(drawn(&mut known, &mut store, &asked(99, 0)).positions, 20..119);
}

#[test]
fn of_two_copies_of_a_holder_the_slower_one_has_nothing() {
    let (mut store, mut known) = counter();
    let first = asked(10, 0);
    drawn(&mut known, &mut store, &first);
    let (original, copy) = (asked_again(&first, 0, 10), asked_again(&first, 5, 10));
    drawn(&mut known, &mut store, &original);
    for _ in 0..2 {
        assert_eq!(known.draw(&mut store, &copy), Ok(None));
    }
    // To one that knows the counter as it was, too.
    assert_eq!(KnownCounter::new(settings()).draw(&mut store, &copy), Ok(None));
    assert!(!known.give_back(&mut store, &[first.token, copy.token], 0).expect("nothing is held"));
    assert_eq!(drawn(&mut known, &mut store, &asked_again(&original, 1, 10)).positions, 10..11);
}

#[test]
fn a_draw_without_an_answer_is_given_back_as_well() {
    for was_done in [false, true] {
        let (mut store, mut known) = counter();
        let first = asked(10, 0);
        drawn(&mut known, &mut store, &first);
        let pending = asked_again(&first, 10, 10);
        if was_done {
            drawn(&mut known, &mut store, &pending);
        }
        assert!(known.give_back(&mut store, &[first.token, pending.token], 3).expect("given back"));
        let (counter, _) = known.read(&mut store).expect("a counter");
        let counter = counter.expect("it was made");
        assert_eq!((counter.first_unused(), &counter.held[..]), (3, &[][..]));
    }
}

#[test]
fn start_and_step_are_those_of_the_counter() {
    let (mut store, _) = counter();
    let mut odd = KnownCounter::new(CounterSettings::new("odd", Some(7), Some(2)).expect("good"));
    let block = drawn(&mut odd, &mut store, &asked(3, 0));
    let numbers: Vec<u64> = block.positions.clone().map(|it| block.number(it)).collect();
    assert_eq!(numbers, [7, 9, 11]);
    let mut any = KnownCounter::new(CounterSettings::new("odd", None, None).expect("good"));
    assert_eq!(drawn(&mut any, &mut store, &asked(1, 0)).number(3), 13);
    for (start, step) in [(Some(8), None), (None, Some(1)), (Some(7), Some(3))] {
        let other = CounterSettings::new("odd", start, step).expect("good");
        let error = KnownCounter::new(other).draw(&mut store, &asked(1, 0)).expect_err("other");
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
    }
    for (start, step) in [(Some(0), None), (None, Some(0)), (Some(LARGEST + 1), None)] {
        let error = CounterSettings::new("odd", start, step).expect_err("out of range");
        assert!(error.to_string().contains("2^53 - 1"), "{error}");
    }
    for name in ["", "two words", "line\nbreak", &"x".repeat(201)] {
        assert!(CounterSettings::new(name, None, None).is_err(), "{name:?}");
    }
}

#[test]
fn a_fenced_namespace_is_refused_until_its_counters_are_fenced() {
    let (mut store, mut known) = counter();
    let first = asked(10, 0);
    drawn(&mut known, &mut store, &first);
    let fence = Fence { token: Token::random() };
    let _ = store.fence(&fence).expect("fenced");
    for _ in 0..2 {
        let error = known.draw(&mut store, &asked(10, 10)).expect_err("fenced");
        assert_eq!((error.code(), error.retry_after()), ("STORE_QUARANTINED", None), "{error}");
        let error = known.give_back(&mut store, &[first.token], 5).expect_err("fenced");
        assert_eq!(error.code(), "STORE_QUARANTINED", "{error}");
    }
    let mut missing = KnownCounter::new(CounterSettings::new("other", None, None).expect("good"));
    let error = missing.draw(&mut store, &asked(1, 0)).expect_err("it may have been there");
    assert_eq!(error.code(), "STORE_QUARANTINED", "{error}");

    let fenced = fence_now(&mut known, &mut store, 100).expect("fenced");
    assert_eq!((fenced.next, fenced.free, fenced.held), (100, vec![], vec![]));
    assert!(!known.give_back(&mut store, &[first.token], 5).expect("nothing is held"));
    let block = drawn(&mut known, &mut store, &asked(1, 10));
    assert_eq!(block.number(block.positions.start), 101);
    assert_eq!(fence_now(&mut known, &mut store, 3).expect("fenced").next, 101, "never falls");
    assert_eq!(fence_now(&mut missing, &mut store, 0).expect("made").next, 0);
    assert!(missing.draw(&mut store, &asked(1, 0)).is_ok());
}

/// Others that draw from it know nothing of what was lost: the namespace is fenced for them.
#[test]
fn a_counter_that_was_set_back_is_refused_to_all() {
    for has_begun in [false, true] {
        let (mut store, mut known) = counter();
        if has_begun {
            drawn(&mut known, &mut store, &asked(5, 0));
        }
        let backup = store.backup();
        let first = asked(10, 0);
        let end = drawn(&mut known, &mut store, &first).positions.end;
        store.restore(backup);
        let mut other = KnownCounter::new(settings());
        drawn(&mut other, &mut store, &asked(1, 0)); // not noticed yet
        for want in [1, 0] {
            // It confirms what it holds, or draws more.
            let error = known.draw(&mut store, &asked_again(&first, want, end)).expect_err("lost");
            assert_eq!(error.code(), "STORE_QUARANTINED", "{error}");
        }
        let floor = known.read(&mut store).expect("the store answers").1;
        assert!(floor > 0, "it is fenced");
        let error = other.draw(&mut store, &asked(1, 0)).expect_err("may be lost");
        assert_eq!(error.code(), "STORE_QUARANTINED", "{error}");
        fence_now(&mut other, &mut store, 100).expect("fenced by an operator");
        drawn(&mut known, &mut store, &asked(1, end));
        assert_eq!(known.read(&mut store).expect("the store answers").1, floor, "and only once");
    }
}

#[test]
fn a_counter_that_is_behind_a_holder_has_lost_blocks() {
    let (mut store, mut known) = counter();
    let error = known.draw(&mut store, &asked(10, 20)).expect_err("there were blocks up to 20");
    assert_eq!(error.code(), "STORE_QUARANTINED", "{error}");
    fence_now(&mut known, &mut store, 20).expect("fenced");
    assert_eq!(drawn(&mut known, &mut store, &asked(10, 20)).positions, 20..30);
}

#[test]
fn a_counter_ends_at_the_largest_number() {
    let (mut store, mut known) = counter();
    fence_now(&mut known, &mut store, LARGEST - 3).expect("fenced");
    let block = drawn(&mut known, &mut store, &asked(10, 0));
    assert_eq!(block.number(block.positions.end - 1), LARGEST);
    assert_eq!(block.positions.end - block.positions.start, 3);
    let error = known.draw(&mut store, &asked(1, 0)).expect_err("no number is left");
    assert_eq!(error.code(), "LIFETIME_OVER", "{error}");
    assert_eq!(fence_now(&mut known, &mut store, LARGEST).expect("fenced").next, LARGEST);
    assert!(fence_now(&mut known, &mut store, LARGEST + 1).is_err());
    let wide = CounterSettings::new("wide", Some(LARGEST), Some(LARGEST)).expect("good");
    let mut wide = KnownCounter::new(wide);
    assert_eq!(drawn(&mut wide, &mut store, &asked(9, 0)).positions, 0..1);
    assert_eq!(wide.draw(&mut store, &asked(9, 0)).expect_err("none").code(), "LIFETIME_OVER");
}

#[test]
fn the_lists_are_bounded() {
    let mut counter = settings().make(0);
    let all: Vec<Draw> = (0..856).map(|_| asked(3, 0)).collect();
    for asked in &all {
        let drawn = draw(&settings(), Some(counter), 0, asked).expect("a block");
        (counter, _) = drawn.expect("a new holder");
    }
    assert_eq!((counter.held.len(), counter.held[0].0), (512, all[344].token));
    for (index, draw) in all.iter().enumerate().step_by(2) {
        let block = index as u64 * 3;
        let given_back = give_back(&settings(), Some(counter.clone()), 0, &[draw.token], block + 1);
        counter = given_back.expect("usable").unwrap_or(counter);
    }
    assert_eq!(counter.free.len(), 256);
    for index in 0..300 {
        let keep = 10_000 + index * 10;
        counter.next = keep + 2 + u64::from(index > 0);
        counter.free(keep..keep + 1 + u64::from(index > 0));
    }
    assert_eq!(counter.free.len(), 256);
    assert!(counter.is_sound());
    assert!(counter.to_value().len() < Swap::MAX_VALUE / 2, "{}", counter.to_value().len());
    // At the last numbers a range has the most digits.
    const { assert!((MOST_HELD + MOST_FREE) * (32 + 2 * 16 + 3) < Swap::MAX_VALUE) };
}

#[test]
fn one_holder_crowds_nobody_out() {
    let (mut store, mut known) = counter();
    let other = asked(1, 0);
    drawn(&mut known, &mut store, &other);
    let mut last = asked(1, 0);
    drawn(&mut known, &mut store, &last);
    for after in 2..600 {
        last = asked_again(&last, 1, after);
        drawn(&mut known, &mut store, &last);
    }
    let held = known.read(&mut store).expect("a counter").0.expect("it was made").held;
    assert_eq!((held.len(), &held[0].0), (1 + 32, &other.token));
    assert_eq!(held.last(), Some(&(last.token, 599..600)));
    assert!(known.give_back(&mut store, &[last.token], 0).expect("what it knows of"));
    assert_eq!(
        known.read(&mut store).expect("a counter").0.expect("it is there").first_unused(),
        568
    );
}

#[test]
fn a_value_is_read_as_it_was_written_and_nothing_else_is() {
    let token = Token::from_bytes([0xab; 16]);
    let counter = Counter {
        start: 5,
        step: 2,
        next: 40,
        floor: 1_763_640_305,
        free: vec![3..4, 10..20],
        held: vec![(token, 30..40), (Token::from_bytes([0; 16]), 4..10)],
    };
    let value = counter.to_value();
    assert_eq!(
        value,
        "1 start=5 step=2 next=40 floor=1763640305 free=3-4,10-20 \
         held=abababababababababababababababab:30-40,00000000000000000000000000000000:4-10"
    );
    assert_eq!(Counter::from_value(&value), Some(counter));
    let empty = settings().make(0);
    assert_eq!(empty.to_value(), "1 start=1 step=1 next=0 floor=0 free= held=");
    assert_eq!(Counter::from_value(&empty.to_value()), Some(empty));
    for (was, is) in [
        ("1 ", "2 "),
        ("start=5", "start=0"),
        ("step=2", "step=+2"),
        ("next=40", "next=39"),
        ("next=40", "next=9007199254740992"),
        ("next=40 ", ""),
        ("3-4,10", "3-10,10"),
        ("3-4,10-20", "10-20,3-4"),
        ("30-40", "19-40"),
        ("30-40", "40-30"),
        ("10-20", "10-20,"),
        ("abab", "ab"),
        ("4-10", "4-10 more=1"),
    ] {
        let broken = value.replacen(was, is, 1);
        assert_ne!(broken, value);
        assert_eq!(Counter::from_value(&broken), None, "{broken}");
    }
    let (mut store, mut known) = self::counter();
    let change = Change { floor: 0, before: None, after: "2 something else".to_owned() };
    let counter = "invoices".to_owned();
    let swap = Swap { token: Token::random(), counter, change: Some(change) };
    assert!(store.swap(&swap).expect("swapped").outcome.done);
    let error = known.draw(&mut store, &asked(1, 0)).expect_err("of another version");
    assert!(error.to_string().contains("the version that wrote it"), "{error}");
}

/// Whatever clients draw, repeat, forget and give back, no number is handed out twice, and those of one
/// client rise.
#[test]
fn no_number_is_handed_out_twice() {
    for seed in 0..300 {
        let mut random = random(seed);
        let (mut store, _) = counter();
        let mut clients: Vec<Client> = (0..4).map(|_| Client::new()).collect();
        let mut handed_out = BTreeSet::new();
        for _ in 0..200 {
            let client = random() % 4;
            clients[usize::try_from(client).expect("small")].act(
                &mut store,
                &mut random,
                &mut handed_out,
            );
            let (value, _) = KnownCounter::new(settings()).read(&mut store).expect("readable");
            assert!(value.is_none_or(|counter| counter.is_sound()), "seed {seed}");
        }
    }
}

struct Client {
    known: KnownCounter,
    /// Its last draw.
    last: Option<Draw>,
    blocks: Vec<Range<u64>>,
    after: u64,
    /// The first position that it has not handed out.
    unused_from: u64,
}

impl Client {
    fn new() -> Self {
        let known = KnownCounter::new(settings());
        Self { known, last: None, blocks: Vec::new(), after: 0, unused_from: 0 }
    }

    fn act(
        &mut self,
        store: &mut MemoryStore,
        random: &mut impl FnMut() -> u64,
        handed_out: &mut BTreeSet<u64>,
    ) {
        match random() % 8 {
            0..4 if self.blocks.len() < 3 => {
                let draw = Draw {
                    before: self.last.as_ref().map(|last| last.token),
                    unused_from: self.unused_from,
                    ..asked(random() % 7, self.after)
                };
                let block = drawn(&mut self.known, store, &draw);
                for _ in 0..random() % 3 {
                    if random().is_multiple_of(2) {
                        self.known = KnownCounter::new(settings());
                    }
                    assert_eq!(drawn(&mut self.known, store, &draw), block, "repeated");
                }
                if draw.want > 0 {
                    assert!(block.positions.start >= self.after, "blocks rise");
                    self.after = block.positions.end;
                    self.blocks.push(block.positions);
                }
                // One that holds nothing is nobody.
                self.last = Some(draw).filter(|_| self.after > 0);
            }
            // A clean end, or a kill; a process that begins again has other tokens.
            4 => {
                let killed = random().is_multiple_of(3);
                if let Some(last) = self.last.take().filter(|_| !killed) {
                    for _ in 0..=random() % 2 {
                        let given_back =
                            self.known.give_back(store, &[last.token], self.unused_from);
                        given_back.expect("given back");
                    }
                }
                *self = Self::new();
            }
            _ => {
                let Some(rest) = self.blocks.first_mut() else { return };
                let position = rest.start;
                rest.start += 1;
                assert!(handed_out.insert(1 + position), "{position} was handed out");
                assert!(position >= self.unused_from, "{position} in {}", self.unused_from);
                self.unused_from = position + 1;
                if rest.is_empty() {
                    self.blocks.remove(0);
                }
            }
        }
    }
}

/// Before each request of one holder, another one draws; an answer says what was there before, as
/// PostgreSQL does, or what is there now.
struct Contended {
    store: MemoryStore,
    other: KnownCounter,
    /// How often the other one comes first.
    times: u32,
    is_stale: bool,
    sent: Vec<bool>,
}

impl LeaseStore for Contended {
    fn acquire(&mut self, request: &Acquire) -> Result<Reply<Acquired>> {
        self.store.acquire(request)
    }

    fn renew(&mut self, request: &Renew) -> Result<Reply<Renewed>> {
        self.store.renew(request)
    }

    fn release(&mut self, request: &Release) -> Result<Reply<Released>> {
        self.store.release(request)
    }

    fn fence(&mut self, request: &Fence) -> Result<Reply<Fenced>> {
        self.store.fence(request)
    }

    fn list(&mut self, request: &List) -> Result<Reply<Listed>> {
        self.store.list(request)
    }

    fn repair(&mut self, request: &Repair) -> Result<Reply<Shortened>> {
        self.store.repair(request)
    }

    fn release_dead(&mut self, request: &ReleaseDead) -> Result<Reply<Shortened>> {
        self.store.release_dead(request)
    }

    fn swap(&mut self, request: &Swap) -> Result<Reply<Swapped>> {
        self.sent.push(request.change.is_some());
        if request.change.is_none() || self.times == 0 {
            return self.store.swap(request);
        }
        self.times -= 1;
        let before = self.other.read(&mut self.store)?.0.map(|counter| counter.to_value());
        drawn(&mut self.other, &mut self.store, &asked(1, 0));
        let mut reply = self.store.swap(request)?;
        assert!(!reply.outcome.done, "another one was faster");
        if self.is_stale {
            reply.outcome.value = before;
        }
        Ok(reply)
    }
}

thread_local! {
    static SLEPT: RefCell<Vec<Duration>> = const { RefCell::new(Vec::new()) };
}

/// Draws while another one is faster so many times. Returns what was sent, true for a write, and the
/// pauses between.
fn contended(times: u32, is_stale: bool) -> (Result<Block>, Vec<bool>, Vec<Duration>) {
    let (store, other) = counter();
    let mut store = Contended { store, other, times, is_stale, sent: vec![] };
    let sleep = |pause| SLEPT.with_borrow_mut(|slept| slept.push(pause));
    let mut known = KnownCounter { sleep, ..KnownCounter::new(settings()) };
    let drawn = known.draw(&mut store, &asked(5, 0));
    let drawn = drawn.map(|drawn| drawn.expect("a new holder"));
    (drawn, store.sent, SLEPT.take())
}

#[test]
fn a_loss_is_repeated_at_once_and_more_of_them_after_longer_and_longer_pauses() {
    let (read, write) = (false, true);
    let (drawn, sent, slept) = contended(1, false);
    assert_eq!(drawn.expect("a block").positions, 1..6);
    assert_eq!((sent, slept), (vec![read, write, write], vec![]));

    // What is known after a pause is old: it is read again, and nothing lies between that and the write.
    let (drawn, sent, slept) = contended(3, false);
    assert_eq!(drawn.expect("a block").positions, 3..8);
    assert_eq!(sent, [read, write, write, read, write, read, write]);
    assert_eq!(slept.len(), 2);

    let (drawn, sent, slept) = contended(u32::MAX, false);
    let error = drawn.expect_err("others are always faster");
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert_eq!(sent.iter().filter(|is_write| **is_write).count(), TRIES as usize);
    let longest =
        (0..).map(|doubled| LONGEST_PAUSE.min(Duration::from_millis(2 << doubled.min(16))));
    assert!(slept.iter().zip(longest).all(|(slept, longest)| *slept <= longest), "{slept:?}");
    assert!(slept.iter().max() > Some(&Duration::from_millis(500)), "{slept:?}");
}

#[test]
fn a_value_that_was_there_before_another_one_wrote_is_not_written_upon() {
    let (drawn, sent, slept) = contended(1, true);
    assert_eq!(drawn.expect("a block").positions, 1..6);
    assert_eq!((sent, slept), (vec![false, true, false, true], vec![]));
}
