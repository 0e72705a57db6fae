//! The servers, and the store on them.

use super::*;

impl<F: Ids> World<F> {
    pub(super) fn set_clock_of(&mut self, server: usize) {
        let Server { store, clock, machine, .. } = &mut self.servers[server];
        clock.begin(machine.wall(self.now), 0);
        if let Kept::Table(table) = store {
            table.clock = machine.second(self.now);
        }
    }

    pub(super) fn execute(&mut self, server: usize, step: &Step) -> Answer {
        self.set_clock_of(server);
        if let Err(error) = self.is_ready(server) {
            return failure(step, error);
        }
        let Kept::Rules(store) = &mut self.servers[server].store else {
            unreachable!("a table is asked by statements")
        };
        let answer = match step {
            Step::Acquire(request) => {
                let reply = store.acquire(request);
                if let Ok(Reply { outcome: Acquired::Granted { leases, .. }, .. }) = &reply {
                    self.oracle.is_granted(request.token, leases);
                    self.summary.grants += 1;
                }
                Answer::Acquired(reply)
            }
            Step::Renew(request) => {
                let reply = store.renew(request);
                if let Ok(Reply { outcome: Renewed::Extended { leases, .. }, .. }) = &reply {
                    self.oracle.is_granted(request.token, leases);
                }
                Answer::Renewed(reply)
            }
            Step::Release(request) => Answer::Released(store.release(request)),
            other => unreachable!("{other:?} is for the generator"),
        };
        if self.scenario.replicated {
            if !self.write(server) && self.scenario.waits {
                return failure(step, unavailable("no replica has confirmed it"));
            }
        } else {
            self.backs_up(server);
        }
        answer
    }

    /// Occasionally backs up what may be lost.
    pub(super) fn backs_up(&mut self, server: usize) {
        if !self.scenario.loses {
            return;
        }
        if self.backups.is_empty() || self.random.happens(300) {
            let copy = self.servers[server].store.copy(self.servers[server].clock.clone());
            self.backups.push(copy);
        }
        // Losing new data does the most harm.
        if self.random.happens(10) && !self.calm {
            let soon = self.random.below(30 * MS);
            self.after(soon, Event::Loses);
        }
    }

    /// A server with a replica checks this before anything else.
    pub(super) fn is_ready(&mut self, server: usize) -> Result<()> {
        if !self.scenario.replicated {
            return Ok(());
        }
        let is_master = server == self.master;
        let is_old_master = self.servers[server].incarnation + 1 == self.line && !is_master;
        // An operator who promotes a standby of PostgreSQL stops the primary first.
        let goes_on = is_old_master && self.scenario.engine != Some(Engine::Postgres);
        if !is_master && !goes_on {
            return Err(unavailable("a replica writes nothing"));
        }
        // For a second after a pause, a master counts its replicas as before the pause.
        let (paused_at, resumed_at) = self.servers[server].paused;
        let counted_at = if self.now - resumed_at < SECOND { paused_at } else { self.now };
        if let Some(frozen_since) = self.frozen_since
            && self.scenario.engine != Some(Engine::Postgres)
            && counted_at - frozen_since > MAX_LAG * SECOND
        {
            return Err(unavailable("no replica is near enough"));
        }
        let Server { store, known, incarnation, .. } = &mut self.servers[server];
        // With a table, clients notice it.
        if let Kept::Rules(store) = store
            && known != incarnation
        {
            *known = *incarnation;
            let token = Token::from_bytes([0xff; 16]);
            drop(store.fence(&Fence { token })?);
            store.fence_further(MAX_LAG);
        }
        Ok(())
    }

    /// Sends what the master has written to the replica. Returns whether the replica will have it
    /// soon.
    pub(super) fn write(&mut self, server: usize) -> bool {
        if server != self.master || self.frozen_since.is_some() {
            return false;
        }
        self.written += 1;
        let lag =
            if self.calm || self.random.happens(800) { 0 } else { self.random.below(2 * SECOND) };
        self.replicate_at = self.replicate_at.max(self.now + lag);
        let Server { store, known, .. } = &self.servers[server];
        let state = Box::new((store.copy(SimulatedClock::default()), *known));
        let (line, index, at) = (self.line, self.written, self.replicate_at);
        if at == self.now {
            self.replicates(line, index, &state);
            return true;
        }
        self.at(at, Event::Replicate { line, index, state });
        false
    }

    pub(super) fn replicates(&mut self, line: u32, index: u64, state: &(Kept, u32)) {
        if line != self.line || self.frozen_since.is_some() || index <= self.replicated {
            return;
        }
        self.replicated = index;
        let replica = &mut self.servers[1 - self.master];
        replica.store = state.0.copy(replica.clock.clone());
        replica.known = state.1;
    }

    /// The other server becomes the master; the old one continues until it learns of this.
    pub(super) fn fail_over(&mut self) {
        self.frozen_since.get_or_insert(self.now);
        self.line += 1;
        self.master = 1 - self.master;
        self.servers[self.master].incarnation = self.line;
        self.servers[self.master].up = true;
        self.servers[self.master].paused = (0, 0);
        self.names_itself(self.master);
        let (line, later) = (self.line, self.random.below(40 * SECOND));
        self.after(later, Event::Demote { line });
    }

    /// The old master follows the new one and takes over its data.
    pub(super) fn demote(&mut self, line: u32) {
        if line != self.line {
            return;
        }
        let Server { store, known, incarnation, .. } = &self.servers[self.master];
        let (store, known, incarnation) = (store.clone(), *known, *incarnation);
        let replica = &mut self.servers[1 - self.master];
        replica.store = store.copy(replica.clock.clone());
        (replica.known, replica.up, replica.paused) = (known, true, (0, 0));
        replica.incarnation = incarnation; // no longer a master's
        self.frozen_since = None;
        (self.written, self.replicated, self.replicate_at) = (0, 0, self.now);
        self.say(|| "the old master follows the new one".into());
    }

    pub(super) fn is_up(&mut self, server: usize, fenced: bool) {
        self.servers[server].up = true;
        if self.scenario.engine == Some(Engine::Redis) {
            self.servers[server].runs += 1;
        }
        self.names_itself(server);
        if fenced {
            self.fence(server);
        }
        self.say(|| format!("server {server} is up, fenced: {fenced}"));
    }

    pub(super) fn fence(&mut self, server: usize) {
        self.set_clock_of(server);
        if self.is_ready(server).is_ok() {
            let (token, client_now) = (self.token(), self.operator_second());
            let fenced = self.ask(server, &Fence { token }, client_now);
            let is_refused = self.scenario.engine.is_some() && self.scenario.wild_store;
            assert!(fenced.is_ok() || is_refused, "{fenced:?}");
            if self.scenario.replicated {
                self.write(server);
            }
        }
    }

    pub(super) fn token(&mut self) -> Token {
        let bytes = [self.random.next(), self.random.next()].map(u64::to_le_bytes);
        Token::from_bytes(bytes.concat().try_into().expect("16 bytes"))
    }
}
