//! Scripted clocks and calls, and what must come of them.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::{
    cases::SECRET,
    format::{EPOCH, LIFETIME_END},
    json::render,
    model::{Clock, Failure, IDS_PER_NODE, Model, Options, Run, SECOND},
};

/// Ids of one node in one second.
const CAP: u64 = IDS_PER_NODE;
/// The unix second from which a case counts its times, unless it says otherwise.
const NOON: i64 = 1_763_640_000;
/// The first unix second whose ids have bit 63 of the raw value set.
const UPPER_HALF: i64 = EPOCH + (1 << 29);

/// Returns `timelines.json`.
#[must_use]
pub fn file() -> String {
    let comment = format!(
        "Each case is a generator with the secret {SECRET} and the given options, on an injected \
         clock. Each step is a call: generate, fill (count ids), extend_lease (to end_exclusive) or \
         close. The clock returns `readings` (unix seconds, multiples of 1/64) in order, and the \
         call reads all of them and no more; it sleeps exactly `sleeps` (seconds; the clock's sleep \
         just returns). can_sleep false: the clock cannot sleep (a bare callable). The call returns \
         the ids of `ids` in order, each entry [timestamp, node_id, first sequence, count], or it \
         fails with `error` and `retry_after` (seconds, or null); the buffer of a failed fill is \
         all zeros. Steps written manually; results computed by the reference model of \
         tests/generate from the specification, and compared with the error each step names."
    );
    let cases: Vec<Value> = all().into_iter().map(|case| case.value).collect();
    render(&json!({ "_comment": comment, "cases": cases }), 4)
}

struct Timeline {
    model: Model,
    origin: i64,
    can_sleep: bool,
    value: Value,
}

/// The options of a case; its times are seconds after `origin`.
#[derive(Clone, Copy)]
struct Given {
    origin: i64,
    nodes: &'static [u32],
    lease: Option<(i64, i64)>,
    max_wait: f64,
    max_drift: i64,
    can_sleep: bool,
}

/// One node, no lease, waits of up to a second.
const PLAIN: Given =
    Given { origin: NOON, nodes: &[1], lease: None, max_wait: 1.0, max_drift: 0, can_sleep: true };
/// The clock cannot sleep.
const BARE: Given = Given { can_sleep: false, ..PLAIN };
/// Never waits.
const HASTY: Given = Given { max_wait: 0.0, ..PLAIN };

const fn leased(start: i64, end_exclusive: i64) -> Given {
    Given { lease: Some((start, end_exclusive)), ..PLAIN }
}

const fn drifting(max_drift: i64) -> Given {
    Given { lease: Some((-100, 100)), max_drift, ..PLAIN }
}

/// Exact for the multiples of 1/64 that the cases use.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn nanos(seconds: f64) -> i64 {
    assert!((seconds * 64.0).fract().abs() < f64::EPSILON, "{seconds} is a multiple of 1/64");
    (seconds * SECOND as f64) as i64
}

/// Exact for the multiples of 1/64 that the cases use.
#[allow(clippy::cast_precision_loss)]
fn seconds(nanos: i64) -> f64 {
    (nanos / SECOND) as f64 + (nanos % SECOND) as f64 / SECOND as f64
}

struct Script {
    readings: VecDeque<i64>,
    can_sleep: bool,
    sleeps: Vec<i64>,
}

impl Clock for Script {
    fn now(&mut self) -> i64 {
        self.readings.pop_front().expect("the case has as many readings as the call needs")
    }

    fn sleep(&mut self, nanos: i64) -> bool {
        if self.can_sleep {
            self.sleeps.push(nanos);
        }
        self.can_sleep
    }
}

fn case(name: &str, given: Given) -> Timeline {
    let lease = given.lease.map(|(start, end)| (given.origin + start, given.origin + end));
    let value = json!({
        "name": name,
        "node_ids": given.nodes,
        "lease": lease.map(|(start, end)| json!({ "start": start, "end_exclusive": end })),
        "max_wait": given.max_wait,
        "max_drift": given.max_drift,
        "can_sleep": given.can_sleep,
        "steps": [],
    });
    let model = Model::new(&Options {
        node_ids: given.nodes.to_vec(),
        lease,
        max_wait: nanos(given.max_wait),
        max_drift: given.max_drift,
    });
    Timeline { model, origin: given.origin, can_sleep: given.can_sleep, value }
}

impl Timeline {
    fn generate(self, readings: &[f64]) -> Self {
        self.claim(json!({ "call": "generate" }), 1, readings, None)
    }

    fn generate_fails(self, code: &str, readings: &[f64]) -> Self {
        self.claim(json!({ "call": "generate" }), 1, readings, Some(code))
    }

    fn fill(self, count: u64, readings: &[f64]) -> Self {
        self.claim(json!({ "call": "fill", "count": count }), count, readings, None)
    }

    fn fill_fails(self, count: u64, code: &str, readings: &[f64]) -> Self {
        self.claim(json!({ "call": "fill", "count": count }), count, readings, Some(code))
    }

    fn extend(mut self, end_exclusive: i64) -> Self {
        let end_exclusive = self.origin + end_exclusive;
        let result = self.model.extend_lease(end_exclusive).map(|()| None);
        let step = json!({ "call": "extend_lease", "end_exclusive": end_exclusive });
        self.push(step, &[], &[], result, None)
    }

    fn extend_fails(mut self, code: &str, end_exclusive: i64) -> Self {
        let end_exclusive = self.origin + end_exclusive;
        let result = self.model.extend_lease(end_exclusive).map(|()| None);
        let step = json!({ "call": "extend_lease", "end_exclusive": end_exclusive });
        self.push(step, &[], &[], result, Some(code))
    }

    fn close(mut self) -> Self {
        self.model.close();
        self.push(json!({ "call": "close" }), &[], &[], Ok(None), None)
    }

    fn claim(mut self, step: Value, count: u64, readings: &[f64], expected: Option<&str>) -> Self {
        let readings: Vec<i64> =
            readings.iter().map(|&after| self.origin * SECOND + nanos(after)).collect();
        let mut clock = Script {
            readings: readings.clone().into(),
            can_sleep: self.can_sleep,
            sleeps: Vec::new(),
        };
        let result = self.model.fill(count, &mut clock).map(Some);
        let name = &self.value["name"];
        assert!(clock.readings.is_empty(), "{name}: {step} left readings over, got {result:?}");
        self.push(step, &readings, &clock.sleeps, result, expected)
    }

    fn push(
        mut self,
        mut step: Value,
        readings: &[i64],
        sleeps: &[i64],
        result: Result<Option<Vec<Run>>, Failure>,
        expected: Option<&str>,
    ) -> Self {
        let name = &self.value["name"];
        assert_eq!(result.as_ref().err().map(|failure| failure.code), expected, "{name}: {step}");
        step["readings"] = readings.iter().map(|&reading| seconds(reading)).collect();
        step["sleeps"] = sleeps.iter().map(|&sleep| seconds(sleep)).collect();
        match result {
            Ok(Some(runs)) => step["ids"] = json!(runs),
            Ok(None) => {}
            Err(failure) => {
                step["error"] = failure.code.into();
                step["retry_after"] = json!(failure.retry_after.map(seconds));
            }
        }
        self.value["steps"].as_array_mut().expect("steps").push(step);
        self
    }
}

fn all() -> Vec<Timeline> {
    [
        new_seconds(),
        exhaustion(),
        drift(),
        steps_back(),
        before_the_start(),
        the_end(),
        extensions(),
        the_lifetime(),
        nodes(),
        batches(),
        failing_batches(),
        batches_without_waiting(),
        closing(),
        clocks_that_cannot_sleep(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn new_seconds() -> Vec<Timeline> {
    vec![
        case("the first id of a second has sequence 0", PLAIN).generate(&[0.0]),
        case("ids of one second count up", PLAIN)
            .generate(&[0.0])
            .generate(&[0.25])
            .generate(&[0.984_375]),
        case("a new second starts at sequence 0", PLAIN)
            .generate(&[0.0])
            .generate(&[0.5])
            .generate(&[1.0])
            .generate(&[1.5]),
        case("seconds without ids are left out", PLAIN).generate(&[0.0]).generate(&[50_000.5]),
        case("a fraction of a second is dropped, not rounded", PLAIN).generate(&[0.984_375]),
        case("a burst after a light second repeats nothing", PLAIN)
            .generate(&[0.0])
            .generate(&[0.5])
            .fill(CAP - 1, &[1.0])
            .generate(&[1.0])
            .generate(&[1.5, 2.0]),
        case("a clock that goes back inside its second goes on", PLAIN)
            .generate(&[0.75])
            .generate(&[0.25]),
    ]
}

fn exhaustion() -> Vec<Timeline> {
    let waiting = |max_wait| Given { max_wait, ..PLAIN };
    vec![
        case("an exhausted second waits for the next one", PLAIN)
            .fill(CAP, &[0.0])
            .generate(&[0.25, 1.0])
            .generate(&[1.0]),
        case("an exhausted second without waiting", HASTY)
            .fill(CAP, &[0.0])
            .generate_fails("SEQUENCE_EXHAUSTED", &[0.25])
            .generate_fails("SEQUENCE_EXHAUSTED", &[0.984_375])
            .generate(&[1.0]),
        case("a wait as long as max_wait is waited", waiting(0.75))
            .fill(CAP, &[0.0])
            .generate(&[0.25, 1.0]),
        case("a wait longer than max_wait is not begun", waiting(0.734_375))
            .fill(CAP, &[0.0])
            .generate_fails("SEQUENCE_EXHAUSTED", &[0.25])
            .generate(&[0.265_625, 1.0]),
        case("a wait that ended too early is waited to its end", PLAIN)
            .fill(CAP, &[0.5])
            .generate(&[0.5, 0.75, 1.0]),
        case("all waits of one call share max_wait", PLAIN)
            .fill(CAP, &[0.0])
            .generate_fails("SEQUENCE_EXHAUSTED", &[0.25, 0.5])
            .generate(&[0.5, 1.0]),
        case("a clock that stands still is given up", PLAIN)
            .fill(CAP, &[0.5])
            .generate_fails("SEQUENCE_EXHAUSTED", &[0.5, 0.5, 0.5])
            .generate(&[1.0]),
        case("a wait that took too long goes on in the second it woke up in", PLAIN)
            .fill(CAP, &[0.0])
            .generate(&[0.5, 3.25]),
        case("the clock may go on by itself to the next second", PLAIN)
            .fill(CAP, &[0.0])
            .generate(&[1.25]),
    ]
}

fn drift() -> Vec<Timeline> {
    vec![
        case("a burst borrows the next second", drifting(2)).fill(CAP, &[0.0]).generate(&[0.0]),
        case("a burst borrows up to max_drift", drifting(2))
            .fill(CAP, &[0.0])
            .fill(CAP, &[0.0])
            .fill(CAP, &[0.0])
            .generate(&[0.25, 1.0]),
        case("beyond max_drift without waiting", Given { max_wait: 0.0, ..drifting(2) })
            .fill(3 * CAP, &[0.0])
            .generate_fails("SEQUENCE_EXHAUSTED", &[0.25])
            .generate(&[1.0]),
        case("a borrowed second goes on where the loan ended", drifting(2))
            .fill(CAP + 5, &[0.0])
            .generate(&[0.5])
            .generate(&[1.0])
            .generate(&[2.0]),
        case("without drift nothing is borrowed", Given { max_wait: 0.0, ..leased(-100, 100) })
            .fill(CAP, &[0.0])
            .generate_fails("SEQUENCE_EXHAUSTED", &[0.0]),
    ]
}

fn steps_back() -> Vec<Timeline> {
    vec![
        case("a step back inside the drift goes on in the last second", drifting(10))
            .generate(&[5.0])
            .generate(&[0.0])
            .generate(&[5.5])
            .generate(&[6.0]),
        case("a step back as long as the drift goes on", drifting(5))
            .generate(&[5.0])
            .generate(&[0.0]),
        case("a step back beyond the drift", Given { max_wait: 0.0, ..drifting(5) })
            .generate(&[5.0])
            .generate_fails("CLOCK_MOVED_BACK", &[-0.015_625, -0.015_625])
            .generate(&[0.0]),
        case("a step back that the second reading takes back", PLAIN)
            .generate(&[5.0])
            .generate(&[3.0, 5.0])
            .generate(&[6.0]),
        case("a step back that a wait makes good", PLAIN)
            .generate(&[5.0])
            .generate(&[4.5, 4.5, 5.0]),
        case("a step back that takes too long to make good", PLAIN)
            .generate(&[5.0])
            .generate_fails("CLOCK_MOVED_BACK", &[3.0, 3.0])
            .generate(&[5.0]),
        case("a step back as long as max_wait is waited for", PLAIN)
            .generate(&[5.0])
            .generate(&[4.0, 4.0, 5.0]),
        case("a step back without waiting", HASTY)
            .generate(&[5.0])
            .generate_fails("CLOCK_MOVED_BACK", &[4.5, 4.75])
            .generate(&[4.5, 5.0]),
        case("a clock is read again only once before it is waited for", PLAIN)
            .generate(&[5.0])
            .generate(&[4.5, 4.75, 5.0]),
        case("a clock that goes back during the wait", PLAIN)
            .generate(&[5.0])
            .generate_fails("CLOCK_MOVED_BACK", &[4.5, 4.5, 4.25])
            .generate(&[5.0]),
        case("a step back from an exhausted second waits for the one after it", PLAIN)
            .fill(CAP, &[5.0])
            .generate_fails("CLOCK_MOVED_BACK", &[4.5, 4.5])
            .generate(&[5.5, 6.0]),
        case("a second reading in an exhausted second is waited for", PLAIN)
            .fill(CAP, &[5.0])
            .generate(&[4.0, 5.5, 6.0]),
        case("a step back inside the drift from borrowed seconds", drifting(3))
            .fill(2 * CAP + 1, &[0.0])
            .generate(&[-1.0])
            .generate(&[-1.5, -1.5, -1.0]),
        case("a step back into the first second of the lease is a step back", leased(2, 10))
            .generate(&[3.0])
            .generate(&[2.5, 2.5, 3.0]),
        case("a step back before the start of the lease is a lease not started", leased(2, 10))
            .generate(&[2.0])
            .generate(&[1.5, 2.0]),
    ]
}

fn before_the_start() -> Vec<Timeline> {
    vec![
        case("before the start of the lease waits", leased(2, 10)).generate(&[1.5, 2.0]),
        case("too long before the start of the lease", leased(2, 10))
            .generate_fails("LEASE_NOT_STARTED", &[0.5])
            .generate(&[2.5]),
        case("before the start without waiting", Given { max_wait: 0.0, ..leased(2, 10) })
            .generate_fails("LEASE_NOT_STARTED", &[1.984_375])
            .generate(&[2.0]),
        case("an hour's wait is one sleep", Given { max_wait: 3600.0, ..leased(3600, 7200) })
            .generate(&[0.0, 3600.0]),
        case(
            "a clock that cannot sleep is read again before the start",
            Given { can_sleep: false, ..leased(2, 10) },
        )
        .generate(&[1.5, 2.0]),
        case(
            "a clock that cannot sleep, still before the start",
            Given { can_sleep: false, ..leased(2, 10) },
        )
        .generate_fails("LEASE_NOT_STARTED", &[1.5, 1.75]),
        case(
            "a clock that cannot sleep, too long before the start",
            Given { can_sleep: false, ..leased(2, 10) },
        )
        .generate_fails("LEASE_NOT_STARTED", &[0.5]),
        case("the drift lets a lease start early", Given { max_drift: 2, ..leased(2, 10) })
            .generate(&[0.0])
            .generate(&[2.0]),
        case(
            "a start beyond the drift is waited for until the drift reaches it",
            Given { max_drift: 1, ..leased(3, 10) },
        )
        .generate(&[1.5, 2.0]),
        case("a batch before the start of the lease", leased(2, 10))
            .fill(CAP + 1, &[1.5, 2.0, 2.0, 3.0]),
        case("a lease that began long ago issues nothing before now", leased(-1000, 10))
            .generate(&[0.0]),
    ]
}

fn the_end() -> Vec<Timeline> {
    vec![
        case("the last second before end_exclusive is used", leased(0, 2)).generate(&[1.984_375]),
        case("end_exclusive is not used", leased(0, 2)).generate_fails("LEASE_EXPIRED", &[2.0]),
        case("long after the end", leased(0, 2))
            .generate(&[0.0])
            .generate_fails("LEASE_EXPIRED", &[90_000.0]),
        case("a lease that ended comes back with the clock", leased(0, 2))
            .generate_fails("LEASE_EXPIRED", &[2.0])
            .generate(&[1.0]),
        case("an exhausted last second is not waited for", Given { max_wait: 5.0, ..leased(0, 1) })
            .fill(CAP, &[0.5])
            .generate_fails("SEQUENCE_EXHAUSTED", &[0.5])
            .generate_fails("LEASE_EXPIRED", &[1.0]),
        case("a loan ends at end_exclusive", Given { max_drift: 10, ..leased(0, 2) })
            .fill(CAP, &[0.0])
            .fill(CAP, &[0.0])
            .generate_fails("LEASE_EXPIRED", &[0.0]),
        case(
            "a step back from an exhausted last second is not waited for",
            Given { max_wait: 5.0, ..leased(-5, 1) },
        )
        .fill(CAP, &[0.0])
        .generate_fails("CLOCK_MOVED_BACK", &[-0.5, -0.5]),
    ]
}

fn extensions() -> Vec<Timeline> {
    vec![
        case("an extension before the end", leased(0, 2))
            .generate(&[1.0])
            .extend(5)
            .generate(&[4.984_375])
            .generate_fails("LEASE_EXPIRED", &[5.0]),
        case("an extension after the end", leased(0, 2))
            .generate_fails("LEASE_EXPIRED", &[2.0])
            .extend(5)
            .generate(&[2.0]),
        case("an extension that would shorten changes nothing", leased(0, 5))
            .extend(2)
            .generate(&[3.0])
            .extend(5)
            .generate(&[4.0])
            .generate_fails("LEASE_EXPIRED", &[5.0]),
        case("an extension to before the start changes nothing", leased(5, 6))
            .extend(1)
            .generate(&[5.0]),
        case("an extension lets an exhausted last second be waited for", leased(0, 1))
            .fill(CAP, &[0.5])
            .generate_fails("SEQUENCE_EXHAUSTED", &[0.5])
            .extend(2)
            .generate(&[0.5, 1.0]),
        case("an extension without a lease", PLAIN)
            .extend_fails("INVALID_LEASE", 5)
            .generate(&[0.0]),
        case("an extension beyond the lifetime", Given { origin: LIFETIME_END, ..leased(-9, -5) })
            .extend_fails("INVALID_LEASE", 1)
            .generate_fails("LEASE_EXPIRED", &[-1.0])
            .extend(0)
            .generate(&[-1.0])
            .generate_fails("LIFETIME_OVER", &[0.0]),
        case("an extension to the epoch or before it", Given { origin: EPOCH, ..leased(0, 5) })
            .extend_fails("INVALID_LEASE", 0)
            .extend_fails("INVALID_LEASE", -1)
            .extend(1)
            .generate(&[4.0]),
    ]
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn the_lifetime() -> Vec<Timeline> {
    let at_end = |given| Given { origin: LIFETIME_END, ..given };
    let at_epoch = |given| Given { origin: EPOCH, ..given };
    let upper = |given| Given { origin: UPPER_HALF, ..given };
    vec![
        case("the last second of the lifetime", at_end(PLAIN))
            .generate(&[-1.0])
            .generate(&[-0.015_625]),
        case("the second after the lifetime", at_end(PLAIN))
            .generate(&[-1.0])
            .generate_fails("LIFETIME_OVER", &[0.0])
            .generate_fails("LIFETIME_OVER", &[1_000_000.0]),
        case("the end of the lifetime with a lease", at_end(leased(-5, 0)))
            .generate(&[-1.0])
            .generate_fails("LIFETIME_OVER", &[0.0]),
        case("a lease that ended before the lifetime did", at_end(leased(-9, -5)))
            .generate_fails("LEASE_EXPIRED", &[-5.0])
            .generate_fails("LEASE_EXPIRED", &[-1.0])
            .generate_fails("LIFETIME_OVER", &[0.0]),
        case("an exhausted last second of the lifetime", at_end(Given { max_wait: 5.0, ..PLAIN }))
            .fill(CAP, &[-1.0])
            .generate_fails("SEQUENCE_EXHAUSTED", &[-0.5])
            .generate_fails("LIFETIME_OVER", &[0.0]),
        case("a loan ends with the lifetime", at_end(Given { max_drift: 9, ..leased(-9, 0) }))
            .fill(CAP, &[-1.0])
            .generate_fails("LIFETIME_OVER", &[-1.0]),
        case("a batch that reaches past the lifetime burns nothing", at_end(PLAIN))
            .fill_fails(CAP + 1, "LIFETIME_OVER", &[-1.0])
            .generate(&[-1.0]),
        case("the first second of the lifetime", at_epoch(PLAIN)).generate(&[0.0]).generate(&[0.5]),
        case("before the epoch", at_epoch(PLAIN))
            .generate_fails("CLOCK_BEFORE_EPOCH", &[-0.015_625])
            .generate(&[0.0]),
        case("long before the epoch", Given { origin: 0, ..PLAIN })
            .generate_fails("CLOCK_BEFORE_EPOCH", &[0.0])
            .generate_fails("CLOCK_BEFORE_EPOCH", &[-0.5]),
        case(
            "a lease and a drift help nothing before the epoch",
            at_epoch(Given { max_wait: 5.0, max_drift: 9, ..leased(0, 100) }),
        )
        .generate_fails("CLOCK_BEFORE_EPOCH", &[-1.0]),
        case("a step back before the epoch is not read again", at_epoch(PLAIN))
            .generate(&[1.0])
            .generate_fails("CLOCK_BEFORE_EPOCH", &[-1.0]),
        case("a second reading before the epoch", at_epoch(PLAIN))
            .generate(&[5.0])
            .generate_fails("CLOCK_BEFORE_EPOCH", &[3.0, -1.0])
            .generate(&[5.0]),
        case("the last second of the lower half and the first of the upper half", upper(PLAIN))
            .generate(&[-1.0])
            .generate(&[0.0])
            .generate(&[1.0]),
        case("a batch over the border to the upper half", upper(drifting(1)))
            .fill(CAP + 2, &[-1.0])
            .generate(&[-0.5]),
        case("an exhausted second of the upper half", upper(PLAIN))
            .fill(CAP, &[7.0])
            .generate(&[7.25, 8.0])
            .generate(&[7.5, 7.75, 8.0]),
    ]
}

fn nodes() -> Vec<Timeline> {
    let nodes = |nodes| Given { nodes, ..PLAIN };
    vec![
        case("the second node goes on when the first is full", nodes(&[3, 7]))
            .fill(CAP - 1, &[0.0])
            .generate(&[0.25])
            .generate(&[0.5])
            .generate(&[1.0]),
        case("nodes are used in their order, however they are listed", nodes(&[131_071, 0, 77]))
            .fill(2 * CAP + 1, &[0.0])
            .generate(&[0.5]),
        case("two nodes roll over together into the next second", nodes(&[7, 3]))
            .fill(2 * CAP - 1, &[0.0])
            .generate(&[0.5])
            .generate(&[0.75, 1.0])
            .fill(CAP, &[1.0]),
        case("two nodes over a border by drift", Given { nodes: &[9, 8], ..drifting(1) })
            .fill(CAP + 7, &[0.0])
            .fill(2 * CAP, &[0.0]),
        case("two nodes have twice the ids of a second", Given { nodes: &[1, 2], ..HASTY })
            .fill(2 * CAP, &[0.0])
            .generate_fails("SEQUENCE_EXHAUSTED", &[0.5]),
    ]
}

fn batches() -> Vec<Timeline> {
    let waiting = |max_wait| Given { max_wait, ..PLAIN };
    vec![
        case("a batch within a second", PLAIN)
            .fill(10, &[0.0])
            .fill(5, &[0.5])
            .generate(&[0.75])
            .fill(3, &[1.0]),
        case("an empty batch reads no clock", PLAIN)
            .fill(0, &[])
            .generate(&[0.0])
            .fill(0, &[])
            .generate(&[0.0]),
        case("a batch of exactly the rest of a second", PLAIN)
            .generate(&[0.0])
            .fill(CAP - 1, &[0.5])
            .generate(&[1.0]),
        case("a batch over a border waits for the rest", PLAIN)
            .generate(&[0.25])
            .fill(CAP, &[0.25, 0.25, 1.0])
            .generate(&[1.0]),
        case("a batch over a border by drift is one reading", drifting(1))
            .generate(&[0.0])
            .fill(CAP, &[0.5]),
        case("a batch over several borders by drift", drifting(3))
            .fill(5, &[0.0])
            .fill(3 * CAP, &[0.5])
            .generate(&[0.5]),
        case("a batch beyond the drift waits for the rest", drifting(1))
            .fill(2 * CAP + 10, &[0.5, 0.5, 1.0])
            .generate(&[1.0]),
        case("a batch bigger than a second", PLAIN)
            .fill(2 * CAP + 5, &[0.25, 0.25, 1.0, 1.0, 2.0])
            .generate(&[2.0]),
        case("a batch in an exhausted second", PLAIN).fill(CAP, &[0.0]).fill(7, &[0.5, 1.0]),
        case("the seconds a batch needs for its size are granted", waiting(0.015_625))
            .fill(CAP + 1, &[0.0, 0.0, 1.0])
            .generate(&[1.0]),
        case("a batch whose rest needs all of max_wait", waiting(0.5))
            .fill(10, &[0.0])
            .fill(CAP - 1, &[0.5, 0.5, 1.0]),
        case("a batch takes what the clock gave it meanwhile", PLAIN)
            .fill(2 * CAP + 5, &[0.25, 1.5, 2.5]),
        case("a second reading is granted again to each part of a batch", PLAIN)
            .generate(&[5.0])
            .fill(CAP + 5, &[4.0, 5.0, 4.0, 5.5, 6.0]),
        case("a step back inside the drift shortens no batch", drifting(3))
            .generate(&[5.0])
            .fill(CAP + 5, &[3.0]),
    ]
}

fn failing_batches() -> Vec<Timeline> {
    let waiting = |max_wait| Given { max_wait, ..PLAIN };
    vec![
        case("a batch whose rest needs too long burns nothing", waiting(0.25))
            .fill(10, &[0.0])
            .fill_fails(CAP - 1, "SEQUENCE_EXHAUSTED", &[0.5])
            .generate(&[0.5]),
        case("retry_after leaves out the seconds that will be granted", waiting(0.25))
            .fill(10, &[0.0])
            .fill_fails(2 * CAP - 1, "SEQUENCE_EXHAUSTED", &[0.5])
            .generate(&[0.5]),
        case("a batch that would have to wait too long to begin", waiting(0.25))
            .fill(CAP, &[0.0])
            .fill_fails(CAP - 1, "SEQUENCE_EXHAUSTED", &[0.5])
            .generate(&[1.0]),
        case("a batch after a step back", waiting(0.25))
            .fill(CAP, &[5.0])
            .fill_fails(2 * CAP, "CLOCK_MOVED_BACK", &[3.5, 3.5])
            .fill(1, &[6.0]),
        case("retry_after is never negative", waiting(0.25))
            .fill(CAP, &[0.0])
            .fill_fails(2 * CAP, "SEQUENCE_EXHAUSTED", &[0.0, 0.25])
            .fill(2 * CAP, &[0.25, 1.0, 1.0, 2.0]),
        case("a batch that reaches past the end burns nothing", leased(0, 1))
            .fill_fails(CAP + 1, "LEASE_EXPIRED", &[0.5])
            .generate(&[0.5]),
        case("a batch past the end that its first id need not wait for", leased(0, 1))
            .generate(&[0.0])
            .fill_fails(CAP, "LEASE_EXPIRED", &[0.5])
            .fill(CAP - 1, &[0.5]),
        case("a batch past the end whose first id would have to wait", leased(0, 2))
            .fill(CAP, &[0.0])
            .fill_fails(CAP + 1, "LEASE_EXPIRED", &[0.5])
            .fill(CAP, &[0.5, 1.0]),
        case("a batch past the end that begins after it", leased(0, 1))
            .fill(CAP, &[0.0])
            .fill_fails(CAP + 1, "SEQUENCE_EXHAUSTED", &[0.5]),
        case("a batch past the end before the start", leased(2, 3))
            .fill_fails(CAP + 1, "LEASE_EXPIRED", &[0.0])
            .generate(&[2.0]),
        case("a batch past the end after a step back", leased(0, 6))
            .generate(&[5.0])
            .fill_fails(CAP, "LEASE_EXPIRED", &[3.0])
            .generate(&[5.0]),
        case("a batch during which the clock goes back burns its first part", PLAIN)
            .fill_fails(CAP + 1, "CLOCK_MOVED_BACK", &[0.5, -10.0, -10.0])
            .generate(&[0.75, 1.0]),
        case("a batch that sleeps past the end burns its first part", leased(0, 2))
            .fill_fails(CAP + 1, "LEASE_EXPIRED", &[0.5, 0.5, 2.0])
            .extend(5)
            .generate(&[0.75, 1.0]),
        case(
            "a batch during which the clock falls before the epoch",
            Given { origin: EPOCH, ..PLAIN },
        )
        .fill_fails(CAP + 1, "CLOCK_BEFORE_EPOCH", &[0.5, -0.5])
        .generate(&[0.75, 1.0]),
        case("a batch during which the clock stands still burns its first part", waiting(0.5))
            .fill_fails(CAP + 1, "SEQUENCE_EXHAUSTED", &[0.5, 0.5, 0.5, 0.5, 0.5])
            .generate(&[0.75, 1.0]),
        case("a batch over several seconds burns all of its parts", PLAIN)
            .fill_fails(2 * CAP + 1, "CLOCK_MOVED_BACK", &[0.5, 0.5, 1.0, -10.0, -10.0])
            .generate(&[1.5, 2.0]),
    ]
}

fn batches_without_waiting() -> Vec<Timeline> {
    vec![
        case("without waiting, a batch no second can hold is an invalid argument", HASTY)
            .fill_fails(CAP + 1, "INVALID_ARGUMENT", &[])
            .fill(CAP, &[0.0]),
        case(
            "without waiting, the drift adds to what a batch can hold",
            Given { max_wait: 0.0, ..drifting(2) },
        )
        .fill_fails(3 * CAP + 1, "INVALID_ARGUMENT", &[])
        .fill(3 * CAP, &[0.5]),
        case(
            "without waiting, nodes add to what a batch can hold",
            Given { nodes: &[2, 1], ..HASTY },
        )
        .fill_fails(2 * CAP + 1, "INVALID_ARGUMENT", &[])
        .fill(2 * CAP, &[0.5]),
        case("without waiting, a batch that does not fit now burns nothing", HASTY)
            .generate(&[0.0])
            .fill_fails(CAP, "SEQUENCE_EXHAUSTED", &[0.25])
            .generate(&[0.5])
            .fill(CAP, &[1.0]),
        case(
            "without waiting, a batch partly beyond the drift",
            Given { max_wait: 0.0, ..drifting(1) },
        )
        .generate(&[0.0])
        .fill_fails(2 * CAP, "SEQUENCE_EXHAUSTED", &[0.25])
        .fill(2 * CAP - 1, &[0.5]),
        case("without waiting, an empty batch", HASTY).fill(0, &[]),
    ]
}

fn closing() -> Vec<Timeline> {
    vec![
        case("a closed generator issues nothing", PLAIN)
            .generate(&[0.0])
            .close()
            .generate_fails("CLOSED", &[])
            .fill_fails(5, "CLOSED", &[])
            .fill_fails(0, "CLOSED", &[]),
        case("a closed generator extends nothing", leased(0, 5))
            .close()
            .extend_fails("CLOSED", 10)
            .generate_fails("CLOSED", &[]),
        case("closing twice is closing once", PLAIN).close().close().generate_fails("CLOSED", &[]),
        case("closed comes before an invalid argument", HASTY).close().fill_fails(
            CAP + 1,
            "CLOSED",
            &[],
        ),
    ]
}

fn clocks_that_cannot_sleep() -> Vec<Timeline> {
    vec![
        case("a clock that cannot sleep is read again when exhausted", BARE)
            .fill(CAP, &[0.0])
            .generate(&[0.5, 1.0]),
        case("a clock that cannot sleep, exhausted", BARE)
            .fill(CAP, &[0.0])
            .generate_fails("SEQUENCE_EXHAUSTED", &[0.5, 0.75])
            .generate(&[1.0]),
        case(
            "a clock that cannot sleep is read once when waiting is too long",
            Given { max_wait: 0.25, ..BARE },
        )
        .fill(CAP, &[0.0])
        .generate_fails("SEQUENCE_EXHAUSTED", &[0.5]),
        case("a clock that cannot sleep, without waiting", Given { max_wait: 0.0, ..BARE })
            .fill(CAP, &[0.0])
            .generate_fails("SEQUENCE_EXHAUSTED", &[0.5]),
        case("a clock that cannot sleep, stepped back", BARE)
            .generate(&[5.0])
            .generate_fails("CLOCK_MOVED_BACK", &[4.5, 4.75])
            .generate(&[4.5, 5.0]),
        case("a clock that cannot sleep, stepped back into an exhausted second", BARE)
            .fill(CAP, &[5.0])
            .generate_fails("SEQUENCE_EXHAUSTED", &[4.5, 5.5]),
        case("a clock that cannot sleep, in a batch over a border", BARE)
            .fill(CAP + 1, &[0.5, 0.5, 1.0])
            .generate(&[1.0]),
        case("a clock that cannot sleep, in a batch that fails", BARE)
            .fill_fails(CAP + 1, "SEQUENCE_EXHAUSTED", &[0.5, 0.5, 0.75])
            .generate(&[1.0]),
    ]
}
