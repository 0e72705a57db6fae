//! Calls for ids.

use super::*;

impl<F: Ids> World<F> {
    pub(super) fn use_ids(&mut self, index: usize, pid: u32) {
        let process = &self.processes[index];
        if !process.alive || process.pid != pid {
            return;
        }
        if process.paused_until > self.now {
            let after = process.paused_until - self.now + self.random.below(MS);
            return self.after(after, Event::Use { process: index, pid });
        }
        if let Some(flake) = process.flake.clone() {
            self.call(index, &*flake);
        }
        // Mostly idle, now and then busy.
        let after = match self.random.below(10) {
            0..4 => self.random.below(30 * MS),
            4..8 => self.random.below(SECOND),
            _ => self.random.below(4 * SECOND),
        };
        self.after(after, Event::Use { process: index, pid });
    }

    pub(super) fn call(&mut self, index: usize, flake: &Generator<F, SimulatedClock>) {
        let step = if !self.calm && self.random.happens(self.scenario.step_in_call) {
            self.count(Fault::StepInCall);
            // The thread is stopped during the call; or the clock steps, if it may.
            let long = self.random.below(40) * SECOND / 10;
            if self.scenario.wild_clients && long % 3 == 0 { -long } else { long }
        } else {
            0
        };
        let size = if self.random.happens(self.scenario.burst) {
            self.count(Fault::Burst);
            let tick = self.layout.ids_per_node() * flake.node_ids().len() as u64;
            let most = i64::try_from(3 * tick.min(100)).expect("small");
            usize::try_from(self.random.between(2, most)).expect("positive")
        } else {
            1
        };
        let process = &self.processes[index];
        let reading = self.machines[process.machine].reading(self.now);
        let process = &self.processes[index];
        process.clock.begin(reading.wall, step);
        // A replacement during the call may change it.
        let before = process.max_drift;
        if self.random.happens(self.scenario.turn_in_call)
            && process.call.is_none()
            && let Some(shared) = process.flake.clone()
        {
            self.note_replacement(index, reading);
            let process = &self.processes[index];
            let state = Rc::clone(&process.state);
            meanwhile(move || {
                drop(state.borrow_mut().advance(&shared, ForkId::current(), reading));
            });
            self.summary.faults[Fault::TurnInCall as usize] += 1;
        }
        let mut ids = vec![0; size];
        let outcome = if size == 1 {
            F::one(flake).map(|raw| ids[0] = raw.cast_signed())
        } else {
            flake.fill_with(&mut ids, Call::OVER_RENEWALS).map(|()| {
                for id in &mut ids {
                    *id = F::raw(flake, *id).cast_signed();
                }
            })
        };
        if never_mind() {
            // The call read no clock, so nothing was replaced.
            self.processes[index].max_drift = before;
        }
        let process = &self.processes[index];
        let max_drift = before.max(process.max_drift);
        let (pid, readings) = (process.pid, process.clock.readings());
        // The world's clock has not moved: only the call took long, or saw a different time.
        let failure = match &outcome {
            Ok(()) => {
                self.processes[index].made = self.now;
                self.processes[index].last = None;
                for raw in &ids {
                    let seen = IssuedId { raw: raw.cast_unsigned(), pid, readings, max_drift };
                    if let Err(wrong) = self.oracle.sees(&self.layout, seen) {
                        panic!("{wrong}");
                    }
                    assert!(
                        !self.scenario.manual || !flake.node_ids().contains(&0),
                        "manually assigned"
                    );
                }
                self.trace(3, ids[size - 1].cast_unsigned());
                None
            }
            Err(error) => {
                self.trace(4, error.code().len() as u64);
                self.processes[index].last = Some(error.kind());
                Some(error.kind())
            }
        };
        if let Some(kind) = failure {
            self.say(|| format!("process {index}: no id, {kind:?}"));
            // The keeper is woken, as by a caller that waits for it.
            if recovers(kind) && self.processes[index].call.is_none() {
                self.wake(index, 0);
            }
        } else {
            self.say(|| format!("process {index}: {size} ids, last {:?}", ids[size - 1]));
        }
    }
}
