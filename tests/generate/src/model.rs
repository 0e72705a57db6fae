//! The rule of one call, step by step, at the speed of one `if` after the other.

use crate::format::{EPOCH, LIFETIME_END};

/// Nanoseconds of a second: readings, waits and sleeps are counted in nanoseconds.
pub const SECOND: i64 = 1_000_000_000;
/// Ids of one node in one second.
pub const IDS_PER_NODE: u64 = 131_072;

/// How a layout counts.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Unix nanosecond at which tick 0 begins.
    pub epoch: i64,
    /// Nanoseconds of a tick.
    pub tick: i64,
    /// Ticks of the lifetime.
    pub lifetime: i64,
    /// Ids of one node in one tick.
    pub ids_per_node: u64,
    /// Whether a tick begins with the sequence after the last one, and not with 0.
    pub continuing: bool,
    /// Nanoseconds of the unit in which ids carry their time.
    pub unit: i64,
}

/// Randflake's.
pub const RANDFLAKE: Scale = Scale {
    epoch: EPOCH * SECOND,
    tick: SECOND,
    lifetime: LIFETIME_END - EPOCH,
    ids_per_node: IDS_PER_NODE,
    continuing: false,
    unit: SECOND,
};

/// The options of a generator.
#[derive(Clone, Debug)]
pub struct Options {
    /// In any order.
    pub node_ids: Vec<u32>,
    /// `start` and `end_exclusive` in unix seconds.
    pub lease: Option<(i64, i64)>,
    /// In nanoseconds.
    pub max_wait: i64,
    /// In seconds.
    pub max_drift: i64,
}

/// The clock of one call.
pub trait Clock {
    /// Returns unix nanoseconds.
    fn now(&mut self) -> i64;

    /// Waits so many nanoseconds; returns false, at once, if it cannot.
    fn sleep(&mut self, nanos: i64) -> bool;
}

/// Consecutive ids: (unix second, or whatever the unit is, node id, first sequence, how many).
pub type Run = (i64, u32, u32, u32);

/// Why a call failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Failure {
    /// The error code.
    pub code: &'static str,
    /// In nanoseconds.
    pub retry_after: Option<i64>,
}

impl Failure {
    fn for_good(code: &'static str) -> Self {
        Self { code, retry_after: None }
    }
}

/// A place in the order of all ids: ticks since the epoch, and a slot of all nodes together.
type Position = (i64, u64);

/// A generator. Its times are ticks, counted from the epoch.
#[derive(Clone, Debug)]
pub struct Model {
    scale: Scale,
    nodes: Vec<u32>,
    leased: bool,
    start: i64,
    end: i64,
    max_wait: i64,
    max_drift: i64,
    last: i64,
    next: u64,
    closed: bool,
}

impl Model {
    /// Makes a generator of Randflake with valid options.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self::of(RANDFLAKE, options)
    }

    /// Makes a generator that counts otherwise.
    #[must_use]
    pub fn of(scale: Scale, options: &Options) -> Self {
        let mut nodes = options.node_ids.clone();
        nodes.sort_unstable();
        // The ticks that lie in the lease as a whole.
        let (start, end) = options.lease.map_or((0, scale.lifetime), |(start, end)| {
            let since_epoch = |second: i64| second * SECOND - scale.epoch;
            (-(-since_epoch(start)).div_euclid(scale.tick), since_epoch(end).div_euclid(scale.tick))
        });
        Self {
            scale,
            nodes,
            leased: options.lease.is_some(),
            start,
            end,
            max_wait: options.max_wait,
            max_drift: options.max_drift * SECOND / scale.tick,
            last: start,
            next: 0,
            closed: false,
        }
    }

    /// Ids of one tick.
    #[must_use]
    pub fn cap(&self) -> u64 {
        self.nodes.len() as u64 * self.scale.ids_per_node
    }

    /// Generates `count` ids.
    ///
    /// # Errors
    ///
    /// The failure of the rule. What was claimed before it stays claimed.
    pub fn fill(&mut self, count: u64, clock: &mut impl Clock) -> Result<Vec<Run>, Failure> {
        if self.closed {
            return Err(Failure::for_good("CLOSED"));
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        let ticks_within_drift = self.max_drift.cast_unsigned() + 1;
        if self.max_wait == 0 && count > self.cap() * ticks_within_drift {
            return Err(Failure::for_good("INVALID_ARGUMENT"));
        }

        let mut runs = Vec::new();
        let mut remaining = count;
        let mut patience = self.max_wait + self.granted(count);
        let mut read_again = false;
        loop {
            let now = clock.now() - self.scale.epoch;
            if now < 0 {
                return Err(Failure::for_good("CLOCK_BEFORE_EPOCH"));
            }
            let tick = self.scale.tick;
            let horizon = now / tick + self.max_drift;

            let current = (now / tick).max(self.last).max(self.start);
            let slot = if current == self.last {
                self.next
            } else if self.scale.continuing {
                self.next % self.cap()
            } else {
                0
            };
            let first = if slot == self.cap() { (current + 1, 0) } else { (current, slot) };
            let last = self.advance(first, remaining - 1);

            let refusal = if current > horizon && current == self.start {
                Some("LEASE_NOT_STARTED")
            } else if current > horizon {
                Some("CLOCK_MOVED_BACK")
            } else if first.0 > horizon {
                Some("SEQUENCE_EXHAUSTED")
            } else {
                None
            };

            if last.0 >= self.end && (refusal.is_none() || first.0 < self.end) {
                let over = last.0 >= self.scale.lifetime;
                return Err(Failure::for_good(if over {
                    "LIFETIME_OVER"
                } else {
                    "LEASE_EXPIRED"
                }));
            }
            if refusal == Some("CLOCK_MOVED_BACK") && !read_again {
                read_again = true;
                continue;
            }

            // How long until the clock lets a tick be stamped.
            let wait_for = |stamp: i64| ((stamp - self.max_drift) * tick - now).max(0);
            let (first_in, all_in) = (wait_for(first.0), wait_for(last.0));
            let retry = |code| {
                let retry_after = (all_in - self.granted(remaining)).max(0);
                Err(Failure { code, retry_after: Some(retry_after) })
            };
            if let Some(code) = refusal {
                if first.0 >= self.end || all_in > patience {
                    return retry(code);
                }
                if clock.sleep(first_in) {
                    patience -= first_in;
                } else if read_again {
                    return retry(code);
                } else {
                    read_again = true;
                }
                continue;
            }

            if last.0 <= horizon {
                self.claim(first, last, &mut runs);
                return Ok(runs);
            }
            if all_in > patience {
                return retry("SEQUENCE_EXHAUSTED");
            }
            remaining -= self.claim(first, (horizon, self.cap() - 1), &mut runs);
            read_again = false;
        }
    }

    /// Raises the end to a unix second.
    ///
    /// # Errors
    ///
    /// `CLOSED`; `INVALID_LEASE` without a lease or with an end outside the lifetime.
    pub fn extend_lease(&mut self, end_exclusive: i64) -> Result<(), Failure> {
        if self.closed {
            return Err(Failure::for_good("CLOSED"));
        }
        if !self.leased || end_exclusive <= EPOCH || end_exclusive > LIFETIME_END {
            return Err(Failure::for_good("INVALID_LEASE"));
        }
        let end = (end_exclusive * SECOND - self.scale.epoch).div_euclid(self.scale.tick);
        if end <= 0 || end > self.scale.lifetime {
            return Err(Failure::for_good("INVALID_LEASE"));
        }
        self.end = self.end.max(end);
        Ok(())
    }

    /// Ends the generator.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// The ticks that so many ids need for themselves, which a caller who waits at all is
    /// granted; in nanoseconds.
    fn granted(&self, count: u64) -> i64 {
        if self.max_wait == 0 { 0 } else { (count / self.cap()).cast_signed() * self.scale.tick }
    }

    fn advance(&self, (stamp, slot): Position, by: u64) -> Position {
        let slot = slot + by;
        (stamp + (slot / self.cap()).cast_signed(), slot % self.cap())
    }

    /// Claims from `first` to `last`, both included. Returns how many that is.
    fn claim(&mut self, first: Position, last: Position, runs: &mut Vec<Run>) -> u64 {
        let mut claimed = 0;
        let mut position = first;
        while position <= last {
            let (stamp, slot) = position;
            let per_node = self.scale.ids_per_node;
            let (node, sequence) = (slot / per_node, slot % per_node);
            // To the end of this node's tick, or to the last one.
            let mut count = per_node - sequence;
            if stamp == last.0 {
                count = count.min(last.1 - slot + 1);
            }
            let small = |number: u64| u32::try_from(number).expect("at most 32 bits");
            let node_id = self.nodes[usize::try_from(node).expect("small")];
            let time = (self.scale.epoch + stamp * self.scale.tick).div_euclid(self.scale.unit);
            runs.push((time, node_id, small(sequence), small(count)));
            claimed += count;
            position = self.advance(position, count);
        }
        (self.last, self.next) = (last.0, last.1 + 1);
        claimed
    }
}
