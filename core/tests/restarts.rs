//! One manual node id in several processes. One after another they repeat nothing, even within one
//! second, and also if the node id goes back to an earlier process. At the same time they do repeat
//! ids: that is the documented limit.
#![allow(clippy::print_stdout, reason = "how a child process reports its ids")]

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use randflake::{Clock, Parts, Randflake, Secret, SystemClock};

const SECRET: &str = "dffd6021bb2bd5b0af676290809ec3a5";
/// Set in a child process: how it starts.
const START: &str = "RANDFLAKE_TEST_START";
const TRIES: usize = 30;

fn main() {
    if let Ok(how) = env::var(START) {
        return generate(&how);
    }
    one_after_the_other();
    handed_over();
    there_and_back();
    without_restart_safety();
    at_the_same_time();
}

/// Makes a generator and prints the parts of its first ids.
fn generate(how: &str) {
    let secret: Secret = SECRET.parse().expect("hex");
    if how == "standby" {
        // The library is loaded and in use while the process waits for the node id.
        Randflake::new(2, &secret).expect("a free node").generate().expect("an id");
        println!("ready");
        io::stdin().read_line(&mut String::new()).expect("a line");
    }
    let restart_safe = how != "unsafe";
    let flake = Randflake::builder(&secret).node_id(1).restart_safe(restart_safe);
    let flake = flake.max_wait(Duration::from_secs(2)).build().expect("a free node");
    if let Ok(second) = how.parse::<i64>() {
        let into_it = second * 1_000_000_000 + 300_000_000;
        let wait = u64::try_from(into_it - now()).unwrap_or(0); // too late, so it is tried again
        thread::sleep(Duration::from_nanos(wait));
    }
    for _ in 0..3 {
        let Parts { timestamp, node_id, sequence } =
            flake.inspect(flake.generate().expect("an id"));
        println!("{timestamp} {node_id} {sequence}");
    }
}

fn begin(how: &str) -> Child {
    let this = env::current_exe().expect("a path");
    let mut command = Command::new(this);
    command.env(START, how).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("a process")
}

/// Waits for the end of a process, and returns the parts of its ids.
fn end(process: Child) -> Vec<(i64, u32, u32)> {
    let output = process.wait_with_output().expect("an end");
    assert!(output.status.success(), "{output:?}");
    parts_in(&String::from_utf8(output.stdout).expect("text"))
}

fn parts_in(text: &str) -> Vec<(i64, u32, u32)> {
    let parse = |line: &str| {
        let mut numbers = line.split(' ').map(|number| number.parse::<i64>().expect("a number"));
        let mut next = || numbers.next().expect("three numbers");
        (next(), u32::try_from(next()).expect("small"), u32::try_from(next()).expect("small"))
    };
    text.lines().map(parse).collect()
}

fn now() -> i64 {
    SystemClock.now().expect("a time")
}

/// Repeats `attempt` until it is fast enough.
fn quickly<T>(attempt: impl FnMut() -> Option<T>) -> T {
    std::iter::repeat_with(attempt).take(TRIES).flatten().next().expect("a machine with some rest")
}

/// The second process starts in the second of the first one's ids.
fn one_after_the_other() {
    let (first, second) = quickly(|| {
        let first = end(begin("safe"));
        let second = begin("safe");
        let in_time = now() / 1_000_000_000 == first[0].0;
        let second = end(second);
        in_time.then_some((first, second))
    });
    assert!(first[2].0 < second[0].0, "{first:?} then {second:?}");
}

/// A process that has waited with the library loaded takes over the node id, in the second of its
/// last id.
fn handed_over() {
    let (first, second) = quickly(|| {
        let mut standby = begin("standby");
        let mut from_standby = BufReader::new(standby.stdout.take().expect("a pipe"));
        let mut line = String::new();
        from_standby.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        let first = end(begin("safe"));
        let mut to_standby = standby.stdin.take().expect("a pipe");
        to_standby.write_all(b"go\n").expect("a reader");
        let in_time = now() / 1_000_000_000 == first[2].0;
        let mut second = String::new();
        from_standby.read_to_string(&mut second).expect("text");
        assert!(standby.wait().expect("an end").success());
        in_time.then(|| (first, parts_in(&second)))
    });
    assert!(first[2].0 < second[0].0, "{first:?} then {second:?}");
}

/// A process hands the node id over and gets it back; in between it has no open generator.
fn there_and_back() {
    let secret: Secret = SECRET.parse().expect("hex");
    let first = |how: &str| {
        let flake = Randflake::new(1, &secret).expect("a free node");
        let stamp = flake.inspect(flake.generate().expect("an id")).timestamp;
        if how == "close" {
            flake.close();
        }
        stamp
    };
    for how in ["close", "drop"] {
        let (there, back) = quickly(|| {
            first(how);
            let there = end(begin("safe"));
            let in_time = now() / 1_000_000_000 == there[2].0;
            let back = first(how);
            in_time.then_some((there, back))
        });
        assert!(there[2].0 < back, "{there:?} then {back}");
    }
}

/// Shows why the rule is needed: without it two such processes issue the same ids.
fn without_restart_safety() {
    let (first, second) = quickly(|| {
        let (first, second) = (end(begin("unsafe")), end(begin("unsafe")));
        (first[0].0 == second[2].0).then_some((first, second))
    });
    assert_eq!(first, second);
}

/// Only a lease prevents two live processes with one node id.
fn at_the_same_time() {
    let (one, other) = quickly(|| {
        let second = now() / 1_000_000_000 + 2;
        let (one, other) = (begin(&second.to_string()), begin(&second.to_string()));
        let (one, other) = (end(one), end(other));
        (one[2].0 == second && other[2].0 == second).then_some((one, other))
    });
    assert_eq!(one, other);
}
