//! Processes: how they begin, drive their keeper and end.

use super::*;

impl<F: Ids> World<F> {
    pub(super) fn born(&mut self) -> Process<F> {
        self.pids += 1;
        let mut random = Random::new(self.random.next());
        let machine = self.random.index(self.machines.len());
        self.born_on.push((machine, self.now));
        let keeper = Keeper::with_random(self.scenario.options, move || random.next());
        let keeper = keeper.expect("within the limits").manual(self.is_manual());
        let mut state = SharedState::default();
        state.keeper = Some(keeper);
        let wake = self.number();
        let connection = self.number();
        Process {
            pid: self.pids,
            machine,
            alive: false,
            clock: SimulatedClock::default(),
            state: Rc::new(RefCell::new(state)),
            flake: None,
            max_drift: 0,
            paused_until: self.machines[machine].asleep_until,
            server: self.master,
            call: None,
            protocol: self.protocol(),
            talk: None,
            connection,
            wake,
            cut_until: 0,
            made: i64::MIN,
            last: None,
        }
    }

    /// A process is copied with everything it knows, and the copy replaces another process, which
    /// is killed: the machine was cloned, or resumed from a snapshot. The copy wakes up with fresh
    /// randomness, and its connections are broken.
    pub(super) fn copies(&mut self, index: usize) -> bool {
        let other = self.random.index(self.processes.len());
        let process = &self.processes[index];
        let is_still = process.paused_until > self.now;
        let (Some(flake), Some(protocol)) = (process.flake.clone(), process.protocol.clone())
        else {
            return false;
        };
        if other == index || !process.alive || is_still || other >= self.kept {
            return false;
        }
        let (machine, pid, max_drift) = (process.machine, process.pid, process.max_drift);
        let mut copy = self.born();
        let mut random = Random::new(self.random.next());
        let state = Rc::clone(&self.processes[index].state);
        let keeper = state.borrow();
        let keeper = keeper.keeper.as_ref().expect("made with it");
        let keeper = keeper.copied(move || random.next(), self.is_manual());
        let pending = self.processes[index].call.is_some();
        let Some(lease) = flake.lease() else { return false };
        let made = without_lease(
            self.format.clone(),
            1,
            Duration::ZERO,
            self.scenario.max_drift,
            copy.clock.clone(),
        );
        let made = made.and_then(|made| {
            made.begin(flake.node_ids(), lease, max_drift)?;
            Ok(made)
        });
        let Ok(made) = made else { return false };
        copy.state.borrow_mut().keeper = Some(keeper);
        (copy.machine, copy.max_drift, copy.alive) = (machine, max_drift, true);
        (copy.flake, copy.protocol) = (Some(Arc::new(made)), Some(protocol.copied()));
        copy.paused_until =
            self.now + self.random.below(2 * i64::from(self.scenario.options.ttl)) * SECOND;
        let copied = copy.pid;
        self.born_on[copied as usize] = self.born_on[pid as usize];
        // Whatever it has requested is written soon after the second of the request, or never.
        let limits = self.namespace.limits();
        let server = self.servers[self.master].machine.second(self.now);
        let asked = server + i64::from(limits.max_ttl + limits.max_skew) + 3;
        let until = self.oracle.furthest_of(pid, self.scenario.nodes);
        let until = if pending { until.max(asked) } else { until };
        self.oracle.is_copied(pid, copied, 0..self.scenario.nodes, until);
        self.processes[other] = copy;
        self.wake(other, 0);
        self.after(0, Event::Use { process: other, pid: copied });
        if pending {
            let failure = self.processes[index]
                .call
                .as_ref()
                .map(|(_, step)| failure(step, unavailable("the connection is broken")));
            self.give(other, failure.expect("it asks for something"));
        }
        self.say(|| {
            format!("process {other}, with the pid {copied}, is a copy of process {index}")
        });
        true
    }

    pub(super) fn begin(&mut self, process: usize) {
        if self.processes[process].alive || process >= self.kept {
            return;
        }
        self.processes[process] = self.born();
        self.processes[process].alive = true;
        let pid = self.processes[process].pid;
        self.trace(1, pid.into());
        self.say(|| format!("process {process} begins, with the pid {pid}"));
        self.wake(process, 0);
        self.after(0, Event::Use { process, pid });
    }

    /// Says which node ids are manually assigned.
    fn is_manual(&self) -> impl FnMut(&[u32]) -> Vec<u32> + Send + 'static {
        let manual = self.scenario.manual;
        move |granted| granted.iter().copied().filter(|node| manual && *node == 0).collect()
    }

    pub(super) fn ends(&mut self, process: usize) {
        self.processes[process].alive = false;
        self.processes[process].wake = 0;
        let soon = if self.random.happens(500) { 0 } else { self.random.below(3 * SECOND) };
        self.after(soon, Event::Born { process });
    }

    pub(super) fn wake(&mut self, process: usize, after: i64) {
        let wake = self.number();
        self.processes[process].wake = wake;
        self.after(after, Event::Keeper { process, wake });
    }

    /// Does what the thread of a leased generator does, until it waits.
    pub(super) fn drive(&mut self, index: usize) {
        for _ in 0..100 {
            let process = &mut self.processes[index];
            if !process.alive || process.call.is_some() {
                return;
            }
            if process.paused_until > self.now {
                let after = process.paused_until - self.now;
                return self.wake(index, after);
            }
            let reading = self.machines[process.machine].reading(self.now);
            process.clock.begin(reading.wall, 0);
            self.note_replacement(index, reading);
            let process = &self.processes[index];
            let mut state = process.state.borrow_mut();
            let turn = match &process.flake {
                Some(flake) => state.advance(flake, ForkId::current(), reading),
                None => match state.keeper.as_mut().expect("made with it").step(reading) {
                    Step::Stopped => Next::End,
                    Step::Sleep(pause) => Next::Sleep(pause),
                    step => Next::Ask(step),
                },
            };
            drop(state);
            match turn {
                Next::Continue => {}
                Next::End => {
                    let error = self.error_of(index);
                    self.say(|| format!("process {index} ends: {error}"));
                    return self.ends(index);
                }
                Next::Sleep(pause) => {
                    let pause = i64::try_from(pause.as_nanos()).expect("short");
                    // A timer is late, never early.
                    let late = self.random.below(2 * MS);
                    return self.wake(index, pause + late);
                }
                Next::Ask(Step::Open { node_ids, lease }) => self.open(index, &node_ids, lease),
                Next::Ask(step) => return self.send(index, step),
            }
        }
        panic!("the keeper of process {index} does not come to rest");
    }

    /// Notes the largest drift of the Term that the keeper begins now, if it does.
    pub(super) fn note_replacement(&mut self, index: usize, reading: Reading) {
        let process = &mut self.processes[index];
        let mut state = process.state.borrow_mut();
        let keeper = state.keeper.as_mut().expect("made with it");
        let step = keeper.step(reading);
        if let Step::Replace { lease, .. } = step {
            process.max_drift = self.scenario.max_drift.min(keeper.most_drift(lease));
        }
    }

    pub(super) fn open(&mut self, index: usize, node_ids: &[u32], lease: randflake::Lease) {
        let process = &mut self.processes[index];
        let mut state = process.state.borrow_mut();
        let keeper = state.keeper.as_mut().expect("made with it");
        let (max_drift, most_drift) = (self.scenario.max_drift, keeper.most_drift(lease));
        process.max_drift = max_drift.min(most_drift);
        let clock = process.clock.clone();
        let made = without_lease(self.format.clone(), 1, Duration::ZERO, max_drift, clock);
        let made = made.and_then(|made| {
            made.begin(node_ids, lease, most_drift)?;
            process.flake = Some(Arc::new(made));
            Ok(())
        });
        let reading = self.machines[process.machine].reading(self.now);
        keeper.answer(Answer::Opened(made), reading).expect("the answer to this step");
        drop(state);
        let pid = self.processes[index].pid;
        self.trace(2, lease.start().cast_unsigned() ^ u64::from(pid));
        self.say(|| format!("process {index} opens {node_ids:?} {}", shown(lease)));
    }

    pub(super) fn error_of(&self, index: usize) -> String {
        let state = self.processes[index].state.borrow();
        let keeper = state.keeper.as_ref().expect("made with it");
        keeper.last_error().map_or_else(String::new, |error| format!("{error} ({})", error.code()))
    }
}
