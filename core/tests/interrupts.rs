//! Calls during another call of the same thread: a signal handler makes ids, or forks, at every
//! instruction of a call; and a clock makes ids. The processor's trap flag makes it call the
//! handler after each instruction.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(unsafe_code, reason = "the trap flag, its signal and fork")]

use std::{
    arch::asm,
    cell::{Cell, RefCell},
    collections::HashSet,
    thread,
    time::Duration,
};

use randflake::{Clock, ErrorKind, Id, Lease, Randflake, Result, Secret};

const SECOND: i64 = 1_763_640_000;
const IDS: usize = 131_072;
const TRAP_FLAG: i64 = 0x100;
/// Instructions from one interruption of a call to the next one.
const STEPS_BETWEEN: usize = 29;

thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
    static INTERRUPTED_AT: Cell<usize> = const { Cell::new(0) };
    static INTERRUPTIONS_LEFT: Cell<u32> = const { Cell::new(0) };
    static INTERRUPTION: Cell<Option<&'static dyn Fn()>> = const { Cell::new(None) };
}

extern "C" fn on_trap(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let step = STEPS.get() + 1;
    STEPS.set(step);
    if step == INTERRUPTED_AT.get() {
        INTERRUPTED_AT.set(step + STEPS_BETWEEN);
        INTERRUPTIONS_LEFT.set(INTERRUPTIONS_LEFT.get() - 1);
        if INTERRUPTIONS_LEFT.get() == 0 {
            // SAFETY: a handler of SA_SIGINFO gets the context that it returns to. The rest of the
            // call runs without traps.
            let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
            context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP_FLAG;
        }
        INTERRUPTION.get().expect("an interruption")();
    }
}

/// Makes a call, and interrupts it this many `times`, first after `step` instructions. Returns what
/// the call returned, and how many instructions were counted.
fn interrupted<R>(
    step: usize,
    times: u32,
    interruption: &dyn Fn(),
    call: impl FnOnce() -> R,
) -> (R, usize) {
    STEPS.set(0);
    INTERRUPTED_AT.set(step);
    INTERRUPTIONS_LEFT.set(times);
    // SAFETY: taken back below, before the borrow ends.
    INTERRUPTION
        .set(Some(unsafe { std::mem::transmute::<&dyn Fn(), &'static dyn Fn()>(interruption) }));
    // SAFETY: sets one flag of the processor, whose signal is handled.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    let returned = call();
    // SAFETY: takes the flag back.
    unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
    INTERRUPTION.set(None);
    (returned, STEPS.get())
}

fn handle_traps() {
    // SAFETY: all zeros is a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_trap as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler has the signature of SA_SIGINFO, and touches only thread-local memory that
    // needs no initialisation.
    let set = unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, std::ptr::null_mut()) };
    assert_eq!(set, 0);
}

/// A clock that stands still until it is moved.
#[derive(Default)]
struct Still(Cell<i64>);

impl Clock for &Still {
    fn now(&self) -> Result<i64> {
        Ok((SECOND + self.0.get()) * 1_000_000_000)
    }

    fn coarse_time(&self) -> Option<i64> {
        Some(SECOND + self.0.get())
    }
}

fn flake<C: Clock>(node_id: u32, clock: C) -> Randflake<C> {
    Randflake::builder(&Secret::from_bytes(&[1; 16]).expect("16 bytes"))
        .node_id(node_id)
        .lease(Lease::new(SECOND, SECOND + 100).expect("a lease"))
        .max_drift(1)
        .max_wait(Duration::ZERO)
        .clock(clock)
        .build()
        .expect("a generator")
}

fn generate(flake: &Randflake<impl Clock>, count: usize) -> Vec<Id> {
    (0..count).map(|_| flake.generate().expect("an id")).collect()
}

/// What comes before the call that is interrupted.
struct Case {
    name: &'static str,
    /// This many ids of this thread, in groups of 1, 2, 4 and so on.
    before: usize,
    /// Another generator took the rest of the second. It shares the state, but no buffer.
    full: bool,
    clock_moves: bool,
    /// Ids of the call.
    count: usize,
}

const CASES: [Case; 7] = [
    Case { name: "the first id", before: 0, full: false, clock_moves: false, count: 1 },
    Case { name: "the first group", before: 1, full: false, clock_moves: false, count: 1 },
    Case { name: "an id of the buffer", before: 5, full: false, clock_moves: false, count: 1 },
    Case { name: "the next group", before: 7, full: false, clock_moves: false, count: 1 },
    Case { name: "a second that is over", before: 5, full: false, clock_moves: true, count: 1 },
    Case { name: "a second that is full", before: 17, full: true, clock_moves: false, count: 1 },
    Case { name: "a batch", before: 5, full: false, clock_moves: false, count: 5 },
];

impl Case {
    /// Makes one call that is interrupted at `step`, and checks all that is handed out. Returns how
    /// many instructions were counted. Runs on a thread of its own, whose buffer is empty.
    fn interrupted_at(&self, step: usize, times: u32, inner_count: usize, others: u32) -> usize {
        let run = || self.run(step, times, inner_count, others);
        thread::scope(|scope| scope.spawn(run).join().expect("no panic"))
    }

    fn run(&self, step: usize, times: u32, inner_count: usize, others: u32) -> usize {
        let clock = Still::default();
        let flake = flake(0, &clock);
        // They take the other places of the buffer, in the call or before it.
        let others: Vec<_> = (1..=others).map(|node_id| crate::flake(node_id, &clock)).collect();
        let before = generate(&flake, self.before);
        if self.full {
            // Claimed by another thread, whose buffer is another one.
            let shared = Shared(&flake);
            thread::scope(|scope| {
                let fill = || {
                    let shared = &shared;
                    let claimed = (self.before + 1).next_power_of_two() - 1;
                    shared.0.fill(&mut vec![Id::default(); IDS - claimed]).expect("ids");
                };
                scope.spawn(fill).join().expect("no panic");
            });
        }
        // Beyond the drift, so another generator may take the place.
        clock.0.set(if self.clock_moves { 2 } else { 0 });
        let inner = RefCell::new(Vec::new());
        let of_others = RefCell::new(vec![Vec::new(); others.len()]);
        let interruption = || {
            inner.borrow_mut().extend(generate(&flake, inner_count));
            for (ids, other) in of_others.borrow_mut().iter_mut().zip(&others) {
                ids.extend(generate(other, 4)); // the last one leaves three of its group
            }
        };
        let mut ids = vec![Id::default(); self.count];
        let (result, steps) = interrupted(step, times, &interruption, || {
            if let [id] = &mut ids[..] {
                flake.generate().map(|made| *id = made)
            } else {
                flake.fill(&mut ids)
            }
        });
        result.expect("ids");
        let (inner, of_others) = (inner.into_inner(), of_others.into_inner());
        let after = generate(&flake, 70);
        for during in [ids.clone(), inner.clone()] {
            self.check(step, &flake, &[before.clone(), during, after.clone()].concat());
        }
        let mut all = [before, ids, inner, after].concat();
        for (other, mut ids) in others.iter().zip(of_others) {
            ids.extend(generate(other, 70));
            self.check(step, other, &ids);
            all.extend(ids);
        }
        let distinct: HashSet<_> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len(), "I1: {}, {step}", self.name);
        steps
    }

    /// Checks what a generator handed out, in this order.
    fn check(&self, step: usize, flake: &Randflake<&Still>, ids: &[Id]) {
        let parts: Vec<_> = ids.iter().map(|id| flake.inspect(*id)).collect();
        let case = (self.name, step);
        assert!(parts.is_sorted_by_key(|parts| parts.timestamp), "{case:?}: time runs back");
        let of_others = parts.iter().find(|parts| parts.node_id != flake.node_ids()[0]);
        assert_eq!(of_others, None, "{case:?}: an id of another generator");
    }
}

/// A reference to a generator whose clock stands still while another thread uses it.
struct Shared<'a>(&'a Randflake<&'a Still>);

// SAFETY: the thread that moves the clock waits meanwhile.
unsafe impl Sync for Shared<'_> {}

/// The steps to interrupt: all of the fast path, and some of what may come after it.
fn steps(all: usize, first: usize) -> impl Iterator<Item = usize> {
    (1..=all.min(100)).chain((101 + first..=all).step_by(1 + all / 25))
}

#[test]
fn a_signal_handler_may_call_at_every_instruction() {
    handle_traps();
    for case in &CASES {
        let all = case.interrupted_at(usize::MAX, 5, 0, 0);
        assert!(all > 20, "{all} instructions were counted");
        for (variant, (inner, others)) in [(1, 0), (3, 0), (0, 9), (1, 9)].into_iter().enumerate() {
            // Each variant runs between the steps of the others.
            for step in steps(all, 3 * variant) {
                case.interrupted_at(step, 5, inner, others);
            }
        }
    }
}

/// Between finding its place and using it there are only a few instructions, during which the place
/// is given away.
#[test]
fn a_place_may_be_given_away_at_every_instruction() {
    handle_traps();
    let case = CASES.iter().find(|case| case.clock_moves).expect("a second that is over");
    for step in 1..=case.interrupted_at(usize::MAX, 1, 0, 9).min(500) {
        case.interrupted_at(step, 1, 0, 9);
    }
}

/// The handler is given a place, and leaves ids ahead in it. Then another thread takes the rest of
/// the second, so the call that was interrupted gets an id of the next one.
#[test]
fn what_a_handler_leaves_ahead_never_follows_a_later_id() {
    handle_traps();
    let run = |step| {
        let clock = Still::default();
        let flake = flake(0, &clock);
        let interruption = || {
            generate(&flake, 4); // of groups of 1, 2 and 4
            let shared = Shared(&flake);
            thread::scope(|scope| {
                let fill = || {
                    let shared = &shared;
                    let mut ids = [Id::default(); 1024];
                    for _ in 0..IDS / ids.len() {
                        shared.0.fill(&mut ids).expect("ids, the last ones borrowed");
                    }
                };
                scope.spawn(fill).join().expect("no panic");
            });
        };
        let (id, steps) = interrupted(step, 1, &interruption, || flake.generate());
        let ids = [vec![id.expect("an id")], generate(&flake, 70)].concat();
        let seconds: Vec<_> = ids.iter().map(|id| flake.inspect(*id).timestamp).collect();
        assert!(seconds.is_sorted(), "after {step} instructions: {seconds:?}");
        steps
    };
    // On a thread of its own, whose buffer is empty.
    let run =
        |step| thread::scope(|scope| scope.spawn(move || run(step)).join()).expect("no panic");
    for step in (1..=run(usize::MAX)).step_by(5) {
        run(step);
    }
}

/// A fork after the last comparison of a call leaves the id to both: see `core/src/fork.rs`. These are
/// the instructions between that and the end of the measured call.
const AFTER_THE_LAST_COMPARISON: usize = 100;

#[test]
fn a_fork_at_any_instruction_leaves_the_id_to_the_parent() {
    handle_traps();
    for (name, before) in [("an id of the buffer", 5), ("the next group", 7)] {
        let call = |step: usize| {
            let clock = Still::default();
            let flake = flake(0, &clock);
            generate(&flake, before);
            let child = Cell::new(-1);
            // SAFETY: the child makes calls that take no lock, and ends.
            let fork = || child.set(unsafe { libc::fork() });
            let (result, steps) = interrupted(step, 1, &fork, || flake.generate());
            if child.get() == 0 {
                let made = result.is_ok();
                let again = flake.generate().map_err(|error| error.kind());
                let code = if again == Err(ErrorKind::Forked) { i32::from(made) } else { 2 };
                // SAFETY: the rest of the process belongs to the parent.
                unsafe { libc::_exit(code) }
            }
            result.expect("the parent has the id");
            if child.get() < 0 {
                return (false, steps);
            }
            let mut status = 0;
            // SAFETY: the status is writable.
            unsafe { libc::waitpid(child.get(), &raw mut status, 0) };
            assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) < 2, "{name}, {step}");
            (libc::WEXITSTATUS(status) == 1, steps)
        };
        // On a thread of its own, whose buffer is empty.
        let run =
            |step| thread::scope(|scope| scope.spawn(move || call(step)).join()).expect("no panic");
        let (_, all) = run(usize::MAX);
        for step in steps(all, 0) {
            let (child_has_it, _) = run(step);
            assert!(
                !child_has_it || step + AFTER_THE_LAST_COMPARISON > all,
                "{name}: a child forked after {step} of {all} instructions has the id as well"
            );
        }
    }
}

/// A clock that makes ids itself, with the generator that reads it.
struct Calling;

thread_local! {
    static CALLED: Cell<Option<&'static Randflake<Calling>>> = const { Cell::new(None) };
    static MADE: Cell<Vec<Id>> = const { Cell::new(Vec::new()) };
}

impl Clock for Calling {
    fn now(&self) -> Result<i64> {
        if let Some(flake) = CALLED.take() {
            MADE.set(generate(flake, 3));
        }
        Ok(SECOND * 1_000_000_000)
    }
}

#[test]
fn a_clock_may_call() {
    let flake: &'static Randflake<Calling> = Box::leak(Box::new(flake(0, Calling)));
    let mut all = Vec::new();
    for round in 0..300 {
        if round % 3 == 0 {
            CALLED.set(Some(flake));
        }
        all.extend(generate(flake, 1));
        all.extend(MADE.take());
    }
    let distinct: HashSet<_> = all.iter().copied().collect();
    assert_eq!((distinct.len(), all.len()), (600, 600), "I1");
}
