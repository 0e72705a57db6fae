//! Messages, written by a thread of their own: a pipe that nobody reads fills up, and whoever writes
//! to it waits.

use std::{fmt::Display, sync::mpsc, thread, time::Duration};

use randflake::Error;

use crate::Log;

#[derive(Clone)]
pub(crate) struct Teller(mpsc::SyncSender<Told>);

enum Told {
    Message(String),
    Error(Error),
    /// Nothing follows.
    End(mpsc::Sender<()>),
}

impl Teller {
    /// How many messages may wait; further ones are lost.
    const WAITING: usize = 100;
    /// How long the last ones may take.
    const PATIENCE: Duration = Duration::from_secs(1);

    pub(crate) fn start(log: Log) -> Self {
        let (sender, receiver) = mpsc::sync_channel(Self::WAITING);
        thread::spawn(move || {
            for told in receiver {
                match told {
                    Told::Message(message) => (log.notify)(&message),
                    Told::Error(error) => (log.report)(&error),
                    Told::End(done) => return drop(done),
                }
            }
        });
        Self(sender)
    }

    /// One whose messages nobody reads.
    #[cfg(test)]
    pub(crate) fn silent() -> Self {
        Self::start(Log { notify: |_| (), report: |_| () })
    }

    pub(crate) fn tell(&self, message: &dyn Display) {
        let _ = self.0.try_send(Told::Message(message.to_string()));
    }

    /// Returns whether the error will be written.
    pub(crate) fn report(&self, error: &Error) -> bool {
        self.0.try_send(Told::Error(error.clone())).is_ok()
    }

    /// Waits until all is written, but not for long.
    pub(crate) fn end(&self) {
        let (done, ended) = mpsc::channel();
        if self.0.try_send(Told::End(done)).is_ok() {
            let _ = ended.recv_timeout(Self::PATIENCE);
        }
    }
}
