//! The end, when all faults stop and everything must recover.

use super::*;

impl<F: Ids> World<F> {
    /// Returns how long it may take until every process has ids again: until all leases and
    /// quarantines have ended and a process has asked the store.
    pub(super) fn end(&self) -> i64 {
        let limits = self.namespace.limits();
        let over = i64::from(limits.max_ttl + limits.max_skew) + MAX_LAG + 1;
        self.scenario.until + (over + i64::from(self.scenario.options.ttl) / 10 + 40) * SECOND
    }

    /// All faults end.
    pub(super) fn all_is_well(&mut self) {
        self.calm = true;
        (self.scenario.step_in_call, self.scenario.burst, self.scenario.swapped) = (0, 0, 0);
        let now = self.now;
        for machine in 0..self.machines.len() {
            let offset = self.tame_offset();
            self.machines[machine].step_to(now, offset, 0);
            self.machines[machine].wake(now);
        }
        for server in 0..self.servers.len() {
            let offset = self.tame_offset();
            self.servers[server].machine.step_to(now, offset, 0);
            self.servers[server].paused = (0, 0);
        }
        // Messages on their way are lost; what would come back later comes back now.
        let under_way = mem::take(&mut self.events);
        for (at, event) in under_way {
            match event {
                Event::Arrive(_) | Event::Answer(..) | Event::Use { .. } => {}
                Event::TimeOut { .. } => self.at(at.0.min(now + 10 * SECOND), event),
                Event::Up { .. } | Event::Demote { .. } => self.happens(event),
                event => drop(self.events.insert(at, event)),
            }
        }
        if self.scenario.replicated {
            self.demote(self.line);
        }
        self.summary.faults[Fault::Repair as usize] += self.repair_implausible();
        let (token, client_now) = (self.token(), self.operator_second());
        let listed = self.ask(self.master, &List { token, node_id: None }, client_now);
        let (implausible, blocked) = listed.map_or((0, false), |reply| {
            let listed = reply.outcome;
            (listed.counts().implausible, listed.floor > listed.furthest_floor())
        });
        let none =
            implausible + u32::from(self.scenario.manual) + u32::from(self.outside.is_some());
        let free = if blocked { 0 } else { self.scenario.nodes.saturating_sub(none) };
        self.kept = (free / self.scenario.options.node_count.min(free.max(1))) as usize;
        for index in 0..self.processes.len() {
            let process = &mut self.processes[index];
            (process.paused_until, process.cut_until) = (now, 0);
            let Process { alive, pid, .. } = *process;
            self.after(0, Event::Use { process: index, pid });
            if index >= self.kept && alive {
                self.ends(index);
            } else if alive && self.processes[index].call.is_none() {
                self.wake(index, 0);
            }
        }
        self.say(|| format!("--- all is well; {} processes are to work", self.kept));
    }

    pub(super) fn check_liveness(&self) {
        for (index, process) in self.processes.iter().enumerate().take(self.kept) {
            let idle = self.end() - process.made.max(0);
            assert!(
                process.made > 0 && idle < 15 * SECOND,
                "process {index} (pid {}) has made no id for {} s: {:?}; {}",
                process.pid,
                idle / SECOND,
                process.last,
                self.error_of(index)
            );
        }
    }
}
