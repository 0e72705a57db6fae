//! What a call may do: whether it waits, how far it reaches, and which slot it takes.

/// What a call may do. The default is that of [`Generator::generate`](crate::Generator::generate) and
/// [`Generator::fill`](crate::Generator::fill).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Call {
    /// Whether it may wait.
    pub wait: Wait,
    /// How far a batch may reach.
    pub reach: Reach,
    /// Which slot a single id takes.
    pub order: Order,
}

/// Whether a call may wait.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Wait {
    /// Up to [`max_wait`](crate::Builder::max_wait). A batch may also take the ticks that its size
    /// needs.
    #[default]
    MaxWait,
    /// Not at all: the call fails at once with the error of what it would wait for. For the thread of
    /// an event loop, and for a caller that holds a lock.
    Never,
}

/// How far a batch may reach.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Reach {
    /// To the end of the lease, if there is one, as it is when the batch begins.
    #[default]
    Lease,
    /// Past that end, if another thread extends the lease in the meantime: only what is claimed at
    /// once must lie in it. A batch that meets the end fails with
    /// [`LeaseExpired`](crate::ErrorKind::LeaseExpired), and what it has claimed is never issued.
    Renewals,
}

/// Which slot a single id takes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Order {
    /// Any. A thread may have claimed it ahead of the call.
    #[default]
    Any,
    /// The one after the last one that was claimed, for programs that count on it; slower. The ids
    /// that another thread has claimed ahead leave a gap, so it is for a generator that makes all its
    /// single ids in this way.
    Next,
}

impl Call {
    /// A call that never waits.
    pub const AT_ONCE: Self = Self { wait: Wait::Never, reach: Reach::Lease, order: Order::Any };

    /// A batch that may take longer than its lease, if that is renewed meanwhile.
    pub const OVER_RENEWALS: Self =
        Self { wait: Wait::MaxWait, reach: Reach::Renewals, order: Order::Any };
}
