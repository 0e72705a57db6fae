//! How a caller waits for what another thread sends, where a signal handler may fork during the wait.

use std::{
    mem,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

use randflake::bindings::ForkId;

/// The longest time that a signal waits for its handler.
const LONGEST_SLICE: Duration = Duration::from_millis(50);

/// The receiving end of a channel, and what else the caller shares with the thread that sends.
///
/// A forked child has both, and touches neither, not even to drop it: a thread that it does not have
/// may hold a lock in there. So compare the process with [`is_inherited`](Self::is_inherited) after
/// each wait, before the channel is touched again, and once more after something has come.
#[derive(Debug)]
pub struct ForkSafeReceiver<T, K = ()> {
    threads: ForkId,
    /// `None` only while it is dropped.
    ends: Option<(Receiver<T>, K)>,
}

impl<T, K> ForkSafeReceiver<T, K> {
    /// Takes the end of a channel, and what is to be kept beside it.
    pub fn new(receiver: Receiver<T>, kept: K) -> Self {
        Self { threads: ForkId::of_threads(), ends: Some((receiver, kept)) }
    }

    /// Returns whether the thread that sends is the parent's.
    pub fn is_inherited(&self) -> bool {
        self.threads != ForkId::of_threads()
    }

    /// Returns what has arrived, if it arrives soon: `Some(None)` if nothing will, because the thread
    /// has ended.
    #[allow(clippy::option_option, reason = "nothing yet, and nothing ever")]
    pub fn receive(&mut self) -> Option<Option<T>> {
        let (receiver, _) = self.ends.as_ref()?;
        match receiver.recv_timeout(LONGEST_SLICE) {
            Ok(sent) => Some(Some(sent)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(None),
        }
    }
}

impl<T, K> Drop for ForkSafeReceiver<T, K> {
    fn drop(&mut self) {
        let ends = self.ends.take();
        if self.is_inherited() {
            mem::forget(ends);
        }
    }
}
