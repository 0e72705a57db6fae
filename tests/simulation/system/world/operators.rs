//! Operators. What they confirm is true.

use std::ops::RangeInclusive;

use super::*;

impl<F: Ids> World<F> {
    pub(super) fn operator_second(&mut self) -> i64 {
        let offset = self.tame_offset();
        Machine::new(offset, 0).second(self.now)
    }

    /// Returns whether a process, or any of its copies, is alive.
    pub(super) fn is_alive(&self, pid: u32) -> bool {
        let is_it = |process: &Process<F>| self.oracle.first_of(process.pid) == pid;
        self.processes.iter().any(|process| process.alive && is_it(process))
    }

    pub(super) fn look(&mut self) {
        let (token, client_now) = (self.token(), self.operator_second());
        let listed = self.ask(self.master, &List { token, node_id: None }, client_now);
        let Ok(reply) = listed else { return };
        let held = reply.outcome.nodes.iter().filter(|node| node.held);
        let leases: Vec<NodeLease> = held.map(|node| node.lease).collect();
        self.listed = leases
            .into_iter()
            .filter_map(|lease| {
                let token = self.servers[self.master].store.holder(lease.node_id)?;
                Some((lease, self.oracle.holder(token)?))
            })
            .collect();
    }

    /// Releases a node id whose holder is dead and had a correct clock.
    pub(super) fn release_dead(&mut self) -> bool {
        if !self.servers[self.master].up {
            return false;
        }
        self.note_wrong_clocks();
        let killed = self.random.happens(600).then(|| self.kill_at_its_limit()).flatten();
        if killed.is_some() || self.random.happens(700) {
            self.look();
        }
        let dead = self.listed.iter().copied().filter(|(_, pid)| {
            let (machine, born) = self.born_on[*pid as usize];
            !self.is_alive(*pid)
                && self.machines[machine].wrong_until < born
                && killed.is_none_or(|killed| killed == *pid)
        });
        let dead: Vec<_> = dead.collect();
        if dead.is_empty() {
            return false;
        }
        let (lease, pid) = dead[self.random.index(dead.len())];
        self.set_clock_of(self.master);
        if self.is_ready(self.master).is_err() {
            return false;
        }
        let (token, mut client_now) = (self.token(), self.operator_second());
        let wrong = self.random.happens(200);
        if wrong {
            client_now += self.random.pick(&[-600, 600]);
        }
        let request = ReleaseDead { token, lease, client_now };
        let done = self.ask(self.master, &request, client_now);
        assert!(!wrong || done.is_err(), "by a clock that is wrong: {done:?}");
        self.say(|| format!("releases {lease:?} of process {pid}: {done:?}"));
        if self.scenario.replicated {
            self.write(self.master);
        }
        done.is_ok()
    }

    /// Removes a node id for a generator that leases nothing, or ends that generator.
    pub(super) fn outsider(&mut self) -> bool {
        if !self.servers[self.master].up || self.is_ready(self.master).is_err() {
            return false;
        }
        let second = self.operator_second();
        match self.outside {
            Some((_, false)) => return false,
            Some((node_id, true)) => {
                self.outside = Some((node_id, false));
                self.oracle.has_left(node_id, second);
                let max_skew = i64::from(self.scenario.options.max_skew);
                self.after((2 * max_skew + 1) * SECOND, Event::Back);
            }
            None => {
                let nodes = self.scenario.nodes;
                let out = self.random.number(0, nodes - 1);
                let (before, after) = (0..out, out + 1..nodes);
                let ranges = [before, after].map(|range| range.map(|it| it..=it));
                let Some(from) = self.set_node_ids(ranges.into_iter().flatten()) else {
                    return false;
                };
                self.oracle.is_outside(out, from);
                self.outside = Some((out, true));
                self.say(|| format!("an outsider has node id {out} from {} on", from - START));
            }
        }
        true
    }

    pub(super) fn is_back(&mut self) {
        let is_up = self.servers[self.master].up && self.is_ready(self.master).is_ok();
        if is_up && self.set_node_ids([0..=self.scenario.nodes - 1]).is_some() {
            self.outside = None;
        } else {
            self.after(SECOND, Event::Back);
        }
    }

    /// Returns the second from which all other node ids have no lease.
    fn set_node_ids(
        &mut self,
        ranges: impl IntoIterator<Item = RangeInclusive<u32>>,
    ) -> Option<i64> {
        let node_ids = NodeRanges::new(ranges).expect("few");
        let (token, client_now) = (self.token(), self.operator_second());
        let set = self.ask(self.master, &SetNodeIds { token, node_ids }, client_now);
        self.say(|| format!("leases {node_ids}: {set:?}"));
        drop(set.ok()?);
        let (token, client_now) = (self.token(), self.operator_second());
        let listed = self.ask(self.master, &List { token, node_id: None }, client_now);
        Some(listed.ok()?.outcome.unleased_from())
    }

    /// Kills a process that has stamped every second that it may. Returns its pid.
    pub(super) fn kill_at_its_limit(&mut self) -> Option<u32> {
        let index = self.random.index(self.processes.len());
        let process = &self.processes[index];
        if !process.alive || process.paused_until > self.now {
            return None;
        }
        let pid = self.oracle.first_of(process.pid);
        let is_open = self.exhaust(index);
        self.ends(index);
        is_open.then_some(pid)
    }

    /// Makes a process stamp every second that it may, as far ahead as it may.
    pub(super) fn exhaust(&mut self, index: usize) -> bool {
        let process = &self.processes[index];
        let Some(flake) = process.flake.clone() else { return false };
        if !process.alive || process.paused_until > self.now {
            return false;
        }
        for _ in 0..700 {
            self.call(index, &*flake);
            if self.processes[index].last.is_some() {
                break;
            }
        }
        true
    }

    /// Ends each process that was granted an implausible end, then lowers those ends. Returns how
    /// many.
    pub(super) fn repair_implausible(&mut self) -> u64 {
        let server = self.master;
        let (token, client_now) = (self.token(), self.operator_second());
        let Ok(reply) = self.ask(server, &List { token, node_id: None }, client_now) else {
            return 0; // nothing was ever asked for
        };
        let listed = reply.outcome;
        let furthest = listed.furthest();
        for index in 0..self.processes.len() {
            let Process { pid, alive, .. } = self.processes[index];
            if alive && self.oracle.furthest_of(pid, self.scenario.nodes) > furthest {
                self.ends(index);
            }
        }
        let latest = |node_id| self.oracle.latest(node_id) + 1;
        let nodes = listed.nodes.iter().map(|node| {
            (Target::Node(node.lease.node_id), node.lease.end_exclusive, latest(node.lease.node_id))
        });
        let floor = (Target::Floor, listed.floor, (0..self.scenario.nodes).map(latest).max());
        let floor = (floor.0, floor.1, floor.2.unwrap_or(0));
        let furthest_of = |target| match target {
            Target::Node(_) => furthest,
            Target::Floor => listed.furthest_floor(),
        };
        let implausible: Vec<_> =
            nodes.chain([floor]).filter(|(target, end, _)| *end > furthest_of(*target)).collect();
        let mut repaired = 0;
        for (target, end, unused) in implausible {
            let bound = (unused > furthest_of(target)).then_some(unused);
            if unused >= end {
                continue; // those seconds are used
            }
            let (token, client_now) = (self.token(), self.operator_second());
            let request = Repair { token, target, bound, client_now };
            let reply = self.ask(server, &request, client_now);
            self.say(|| format!("repairs {target:?}: {reply:?}"));
            assert!(reply.is_ok(), "{request:?}: {reply:?}");
            repaired += 1;
        }
        repaired
    }
}
