//! Faults that are separate events.

use super::*;

impl<F: Ids> World<F> {
    pub(super) fn strike(&mut self) {
        if self.calm {
            return;
        }
        let next = self.random.below(2 * self.scenario.every) + MS;
        self.after(next, Event::Strike);
        if self.scenario.faults.is_empty() {
            return;
        }
        let fault = self.random.index(self.scenario.faults.len());
        let fault = self.scenario.faults[fault];
        if self.inject(fault) {
            self.trace(7, fault as u64);
            self.count(fault);
            self.say(|| format!("--- {fault:?}"));
        }
    }

    /// Makes a fault happen; returns whether that was possible.
    #[allow(clippy::too_many_lines, reason = "a list")]
    pub(super) fn inject(&mut self, fault: Fault) -> bool {
        let ttl = i64::from(self.scenario.options.ttl) * SECOND;
        let process = self.random.index(self.processes.len());
        let machine = self.random.index(self.machines.len());
        let server = self.random.index(self.servers.len());
        let (now, long, short) = (self.now, self.random.below(3 * ttl), self.random.below(SECOND));
        match fault {
            Fault::Kill => {
                let alive = self.processes[process].alive;
                if alive {
                    self.ends(process);
                }
                return alive;
            }
            Fault::End => {
                if self.random.happens(300) {
                    self.exhaust(process);
                }
                return self.end_properly(process);
            }
            Fault::Pause => self.processes[process].paused_until = now + long,
            Fault::Copy => return self.copies(process),
            Fault::Sleep => {
                for process in self.processes.iter_mut().filter(|it| it.machine == machine) {
                    process.paused_until = process.paused_until.max(now + long);
                }
                let stands_still = self.random.happens(500);
                self.machines[machine].sleep(now, long, stands_still);
            }
            Fault::Reboot => {
                for process in 0..self.processes.len() {
                    if self.processes[process].machine == machine && self.processes[process].alive {
                        self.ends(process);
                    }
                }
                self.machines[machine].boot(now);
            }
            Fault::ClockSteps => {
                self.note_wrong_clocks();
                if self.random.happens(300) {
                    self.exhaust(process); // before it takes another lease
                }
                let machine = if self.random.happens(500) {
                    self.processes[process].machine
                } else {
                    machine
                };
                let wild = self.scenario.wild_clients && self.random.happens(700);
                let offset = if wild { self.wild_offset() } else { self.tame_offset() };
                self.machines[machine].step_to(now, offset, 0);
                self.note_wrong_clocks();
            }
            Fault::ClockDrifts => {
                self.note_wrong_clocks();
                let offset = self.machines[machine].offset(now);
                let ppm = self.random.pick(&[-500_000, -50_000, -200, 200, 50_000, 900_000]);
                self.machines[machine].step_to(now, offset, ppm);
            }
            Fault::StoreClockSteps => {
                let wild = self.scenario.wild_store && self.random.happens(700);
                let offset = if wild { self.wild_offset() } else { self.tame_offset() };
                self.servers[server].machine.step_to(now, offset, 0);
            }
            Fault::Partition => {
                for process in self.processes.iter_mut().filter(|it| it.machine == machine) {
                    process.cut_until = now + long;
                }
            }
            Fault::BadNetwork => {
                (self.scenario.lost, self.scenario.doubled, self.scenario.late) = (300, 300, 200);
                self.after(long, Event::Mends);
            }
            Fault::Outage | Fault::StoreRestarts => {
                if !self.servers[server].up {
                    return false;
                }
                let after = if fault == Fault::Outage { long } else { short };
                self.servers[server].up = false;
                self.after(after, Event::Up { server, fenced: false });
            }
            Fault::StorePauses => self.servers[server].paused = (now, now + long),
            Fault::Restore | Fault::Empty => {
                return self.lose(server, fault == Fault::Empty);
            }
            Fault::LinkFreezes => {
                if self.frozen_since.is_some() {
                    return false;
                }
                self.frozen_since = Some(now);
                self.after(long, Event::Demote { line: self.line });
            }
            Fault::Failover => self.fail_over(),
            Fault::MasterPauses => {
                self.servers[self.master].paused = (now, now + long);
                if self.random.happens(700) {
                    self.fail_over();
                    // The old master has not noticed.
                    self.servers[1 - self.master].paused = (now, now + long);
                }
            }
            Fault::Fence => {
                let up = self.servers[self.master].up;
                if up {
                    self.fence(self.master);
                }
                return up;
            }
            Fault::ReleaseDead => return self.release_dead(),
            Fault::Outsider => return self.outsider(),
            Fault::Repair => {
                let offset = self.tame_offset();
                self.servers[self.master].machine.step_to(now, offset, 0);
                return self.repair_implausible() > 0;
            }
            _ => unreachable!("{fault:?} is of single messages"),
        }
        true
    }

    /// A backup is restored, or there is none; on a machine whose clock differs as much as is
    /// allowed.
    pub(super) fn lose(&mut self, server: usize, everything: bool) -> bool {
        if !self.servers[server].up || self.backups.is_empty() {
            return false;
        }
        let clock = self.servers[server].clock.clone();
        let latest = self.backups.len() - 1;
        let backup =
            if self.random.happens(500) { latest } else { self.random.index(self.backups.len()) };
        self.servers[server].store = if everything {
            Kept::new(&self.namespace, self.scenario.engine, clock)
        } else {
            self.backups[backup].copy(clock)
        };
        if self.random.happens(500) {
            let offset = self.tame_offset();
            self.servers[server].machine.step_to(self.now, offset, 0);
        }
        self.servers[server].up = false;
        let longest = self.random.pick(&[MS, 100 * MS, 5 * SECOND]);
        let after = self.random.below(longest);
        self.after(after, Event::Up { server, fenced: true });
        true
    }

    pub(super) fn end_properly(&mut self, index: usize) -> bool {
        let process = &self.processes[index];
        if !process.alive || process.paused_until > self.now {
            return false;
        }
        let reading = self.machines[process.machine].reading(self.now);
        process.clock.begin(reading.wall, 0);
        let mut state = process.state.borrow_mut();
        match &process.flake {
            Some(flake) => state.stop(&**flake, ForkId::current()),
            None => state.keeper.as_mut().expect("made with it").stop(),
        }
        drop(state);
        if self.processes[index].call.is_none() {
            self.wake(index, 0);
        }
        true
    }

    pub(super) fn mends(&mut self) {
        (self.scenario.lost, self.scenario.doubled, self.scenario.late) = (20, 10, 10);
    }
}
