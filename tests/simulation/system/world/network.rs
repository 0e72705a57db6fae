//! The network between processes and servers.

use super::*;

impl<F: Ids> World<F> {
    pub(super) fn send(&mut self, index: usize, step: Step) {
        if let Step::Acquire(request) = &step {
            self.oracle.asks(request.token, self.processes[index].pid);
        }
        self.processes[index].call = Some((0, step.clone()));
        if self.processes[index].protocol.is_some() {
            self.talk(index, &step);
        } else {
            self.dispatch(index, Sent::Step(step));
        }
    }

    /// Sends a request, for which the process then waits.
    pub(super) fn dispatch(&mut self, index: usize, sent: Sent) {
        let call = self.number();
        let process = &mut self.processes[index];
        process.call.as_mut().expect("it asks for something").0 = call;
        let message = Message {
            process: index,
            pid: process.pid,
            connection: process.connection,
            server: process.server,
            sent,
        };
        self.trace(5, call);
        let patience =
            PATIENCE + self.random.below(if self.scenario.dirty { 1 } else { 7 }) * SECOND;
        let pid = message.pid;
        self.after(patience, Event::TimeOut { process: index, pid, call });
        self.carry(message.process, |after, world| {
            let message = message.clone();
            world.after(after, Event::Arrive(message));
        });
    }

    /// Carries a message, or not, or twice.
    pub(super) fn carry(&mut self, process: usize, deliver: impl Fn(i64, &mut Self)) {
        let Scenario { lost, doubled, late, .. } = self.scenario;
        if !self.calm {
            if self.processes[process].cut_until > self.now || self.random.happens(lost) {
                self.count(Fault::Lost);
                return;
            }
            if self.random.happens(doubled) {
                self.count(Fault::Doubled);
                let after = self.random.below(20 * SECOND);
                deliver(after, self);
            }
            if self.random.happens(late) {
                self.count(Fault::Late);
                let longest = i64::from(3 * self.scenario.options.ttl) * SECOND;
                let after = self.random.below(longest);
                return deliver(after, self);
            }
        }
        let after = self.random.between(MS / 10, 20 * MS);
        deliver(after, self);
    }

    pub(super) fn arrives(&mut self, message: Message) {
        let server = &self.servers[message.server];
        if server.paused.1 > self.now {
            // The message waits in the server's socket.
            let after = server.paused.1 - self.now + self.random.below(MS);
            return self.after(after, Event::Arrive(message));
        }
        if !server.up {
            if self.random.happens(500) {
                let said = Said::failure(&message.sent, unavailable("the server is down"));
                self.after(MS, Event::Answer(message, said));
            }
            return;
        }
        let said = match &message.sent {
            Sent::Step(step) => Said::Answer(self.execute(message.server, step)),
            Sent::Statement(statement) => match self.run_statement(message.server, statement) {
                Some(response) => Said::Response(response),
                None => return,
            },
        };
        self.say(|| format!("server {}: {:?} -> {said:?}", message.server, message.sent));
        if self.random.happens(self.scenario.swapped) && !self.calm {
            // A wrong answer: the connection of another process.
            let other = self.random.index(self.processes.len());
            let to = &self.processes[other];
            if to.call.is_some() {
                let (pid, connection) = (to.pid, to.connection);
                let message = Message { process: other, pid, connection, ..message };
                self.count(Fault::Swapped);
                return self.after(MS, Event::Answer(message, said));
            }
        }
        self.carry(message.process, |after, world| {
            world.after(after, Event::Answer(message.clone(), said.copy()));
        });
    }

    pub(super) fn answers(&mut self, message: Message, said: Said) {
        let process = &self.processes[message.process];
        if !process.alive || process.pid != message.pid || process.connection != message.connection
        {
            return;
        }
        if process.paused_until > self.now {
            let after = process.paused_until - self.now + self.random.below(MS);
            return self.after(after, Event::Answer(message, said));
        }
        if process.call.is_none() {
            return;
        }
        // Even if it answers an earlier call: the keeper, or the driver, must detect that.
        match said {
            Said::Answer(answer) => self.give(message.process, answer),
            Said::Response(Ok(response)) => self.go_on(message.process, Some(response)),
            Said::Response(Err(error)) => self.fails(message.process, error),
        }
    }

    pub(super) fn times_out(&mut self, index: usize, pid: u32, call: u64) {
        let process = &self.processes[index];
        if !process.alive || process.pid != pid {
            return;
        }
        if process.paused_until > self.now {
            let after = process.paused_until - self.now + self.random.below(MS);
            return self.after(after, Event::TimeOut { process: index, pid, call });
        }
        let Some((waits_for, step)) = &process.call else { return };
        if *waits_for != call {
            return;
        }
        let answer = failure(step, unavailable("no answer in time"));
        let (connection, master) = (self.number(), self.master);
        if !self.scenario.dirty {
            self.processes[index].connection = connection;
        }
        if self.random.happens(700) {
            self.processes[index].server = master;
        }
        self.processes[index].talk = None;
        self.give(index, answer);
    }

    /// Gives an answer to the keeper.
    pub(super) fn give(&mut self, index: usize, answer: Answer) {
        if matches!(answer, Answer::Acquired(Ok(_))) && !self.calm && self.random.happens(200) {
            self.exhaust(index); // before it goes over to another lease
        }
        let (connection, master) = (self.number(), self.master);
        let process = &mut self.processes[index];
        process.call = None;
        let failed = matches!(
            &answer,
            Answer::Acquired(Err(_)) | Answer::Renewed(Err(_)) | Answer::Released(Err(_))
        );
        let reading = self.machines[process.machine].reading(self.now);
        let mut state = process.state.borrow_mut();
        let keeper = state.keeper.as_mut().expect("made with it");
        let foreign = keeper.answer(answer, reading).is_err();
        if keeper.accepts_another_store()
            && let Some(protocol) = &process.protocol
        {
            protocol.accept_another();
        }
        drop(state);
        if foreign {
            process.connection = connection;
        }
        if failed && self.random.happens(700) {
            self.processes[index].server = master;
        }
        self.trace(6, u64::from(foreign));
        self.drive(index);
    }
}
