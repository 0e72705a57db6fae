//! A manually assigned node id, handed over from process to process within a second: by a restart,
//! to a standby, and back. Their machine's clock never goes back, as the documentation requires for
//! such node ids.

use std::{collections::HashSet, hash::BuildHasherDefault, mem, time::Duration};

use randflake::{Clock, ErrorKind, Randflake, Result, Secret};

use super::{
    machine::{MS, Random, SECOND, START, SimulatedClock},
    oracle::NumberHasher,
};

/// A clock that counts as the machine's, so that generators on it share what a process has issued.
#[derive(Clone, Default)]
struct SharedClock(SimulatedClock);

impl Clock for SharedClock {
    fn now(&self) -> Result<i64> {
        self.0.now()
    }

    fn coarse_time(&self) -> Option<i64> {
        self.0.coarse_time()
    }

    fn is_system(&self) -> bool {
        true
    }
}

/// A process. All of them make ids for one column. The registry separates ids by their secret, and
/// all simulated processes share one registry; so each process has its own secret, and the ids are
/// compared decrypted.
struct Process {
    secret: Secret,
    flakes: Vec<Randflake<SharedClock>>,
    /// Closed generators that are not dropped yet.
    closed: Vec<Randflake<SharedClock>>,
}

/// One node id, on one machine.
pub(super) struct ManualNode {
    /// The running processes, one of which has the node id.
    processes: Vec<Process>,
    holder: usize,
    /// Since when `holder` has it.
    since: i64,
    clock: SharedClock,
    ahead: i64,
    issued: HashSet<u64, BuildHasherDefault<NumberHasher>>,
}

impl Process {
    /// Makes a process with a secret that no other run of this seed has; nothing that is compared
    /// depends on it.
    fn new() -> Self {
        Self { secret: Secret::random(), flakes: Vec::new(), closed: Vec::new() }
    }

    /// Closes its generators, or drops them.
    fn let_go(&mut self, closes: bool) {
        let flakes = mem::take(&mut self.flakes);
        if closes {
            for flake in &flakes {
                flake.close();
            }
            self.closed.extend(flakes);
        }
    }
}

impl ManualNode {
    /// Some seeds have one; not all, because a real process never forgets its manually assigned
    /// node ids.
    pub(super) fn new(random: &mut Random) -> Self {
        let processes = if random.happens(150) { random.below(3) + 1 } else { 0 };
        Self {
            processes: (0..processes).map(|_| Process::new()).collect(),
            holder: 0,
            since: 0,
            clock: SharedClock::default(),
            ahead: 0,
            issued: HashSet::default(),
        }
    }

    /// Returns how many ids there are.
    pub(super) fn ids(&self) -> u64 {
        self.issued.len() as u64
    }

    /// Uses the node id, or hands it over. Returns the time to the next such event, if any.
    pub(super) fn goes_on(
        &mut self,
        random: &mut Random,
        now: i64,
        log: &mut Vec<String>,
    ) -> Option<i64> {
        if self.processes.is_empty() || self.issued.len() > 500 {
            return None;
        }
        self.clock.0.set(START * SECOND + now + self.ahead);
        let holder = &mut self.processes[self.holder];
        match random.below(10) {
            0 | 1 => {
                // The holder ends, cleanly or not; another one begins at once, or a standby takes
                // over.
                holder.let_go(random.happens(500));
                if random.happens(500) {
                    *holder = Process::new();
                }
                self.holder = random.index(self.processes.len());
                self.since = now;
                log.push(format!("manually assigned node id goes to process {}", self.holder));
            }
            2 => {
                // The process's other generators continue; if it has none, the node id is free.
                if let Some(flake) = holder.flakes.pop() {
                    flake.close();
                    holder.closed.push(flake);
                }
                if holder.flakes.is_empty() {
                    self.since = now;
                }
            }
            3 => self.ahead += random.below(3 * SECOND),
            _ => {}
        }
        let clock = &self.clock;
        let holder = &mut self.processes[self.holder];
        if holder.flakes.is_empty() || random.happens(100) {
            let builder = Randflake::builder(&holder.secret).node_id(7).max_wait(Duration::ZERO);
            holder
                .flakes
                .push(builder.clock(clock.clone()).build().expect("no other process has it"));
        }
        for flake in &holder.flakes {
            for _ in 0..random.below(3) {
                match flake.generate() {
                    Ok(id) => {
                        let raw = flake.decrypt(id);
                        let new = self.issued.insert(raw);
                        assert!(
                            new,
                            "the same id twice from a manually assigned node id: {:?}",
                            flake.inspect(id)
                        );
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::LeaseNotStarted, "{error}");
                        assert!(now - self.since < 2 * SECOND, "never begins: {error}");
                    }
                }
            }
        }
        Some(random.pick(&[5 * MS, 100 * MS, 400 * MS, 1300 * MS]))
    }
}
