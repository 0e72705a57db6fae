//! A value that each process has one of.

use once_cell::race::OnceBox;
use randflake::bindings::ForkId;

/// A value of the process that made it, followed by those of its forked children, which each append
/// their own. What has begun anew after a restore counts as a child.
///
/// Finding the value of this process touches no lock: a thread that does not exist in a child may hold
/// a lock of the parent's for ever.
#[derive(Debug)]
pub struct PerProcess<T> {
    process: ForkId,
    value: T,
    child: OnceBox<Self>,
}

impl<T> PerProcess<T> {
    /// Makes that of a process.
    pub fn new(process: ForkId, value: T) -> Self {
        Self { process, value, child: OnceBox::new() }
    }

    /// Returns that of the process which made this, whichever process asks.
    #[inline]
    pub fn first(&self) -> &T {
        &self.value
    }

    /// Returns that of a process, if it has one.
    pub fn of(&self, process: ForkId) -> Option<&T> {
        let mut at = self;
        while at.process != process {
            at = at.child.get()?;
        }
        Some(&at.value)
    }

    /// Returns that of a process. One that has none gets what `make` returns for that of its parent; of
    /// several threads that ask at the same time, all may call it, and one value is kept.
    pub fn of_or(&self, process: ForkId, make: impl Fn(&T, ForkId) -> T) -> &T {
        let mut at = self;
        while at.process != process {
            at = at.child.get_or_init(|| Box::new(Self::new(process, make(&at.value, process))));
        }
        &at.value
    }
}
