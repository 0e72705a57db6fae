//! The state of a lease, and what is said when it changes.

use std::{
    fmt::{self, Write as _},
    time::Duration,
};

use randflake::{Clock, Error, ErrorKind, Format, Generator, Lease, bindings::utc};

use crate::keeper::{Keeper, Reading, State};

/// How many node ids a message names.
const NAMED: usize = 8;

/// What waits no longer for an id is ready: ids of a second may be used up.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// The state of a generator's lease.
#[derive(Clone, Debug)]
pub struct LeaseStatus {
    /// Whether ids come, and what the keeper does; see [`State`].
    pub state: State,
    /// The node ids, sorted.
    pub node_ids: Vec<u32>,
    /// First unix second of the lease.
    pub start: i64,
    /// First unix second after the lease.
    pub end_exclusive: i64,
    /// The time to that end on the machine's clock; zero once it has passed.
    pub time_left: Duration,
    /// How many renewals the store has granted.
    pub renewals: u64,
    /// How many node ids went to another holder before they were given back.
    pub losses: u64,
    /// How often other node ids took the place of lost ones, or of those that could not be used any
    /// more because a clock had stepped.
    pub replacements: u64,
    /// Why no id comes while the lease is held ([`State::Waiting`]), with the time until one does;
    /// otherwise why the store did not grant the last request. `None` while all is well.
    pub last_error: Option<Error>,
    /// The unix second of that error, on the machine's clock; while waiting, of this status.
    pub last_error_at: Option<i64>,
    /// Which store it is: the absolute path of a file, the URL of a server without its password, as
    /// `postgresql://app@db.example.com:5432/app`, or what another store
    /// [says](crate::LeaseStore::name).
    pub store: String,
    /// The namespace of the store.
    pub namespace: String,
    change: Change,
}

/// How serious a [change](LeaseStatus::message) of a lease is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// As it should be.
    Info,
    /// Ids go on, but someone should look.
    Warning,
    /// There are no ids now, or there will soon be none.
    Error,
}

impl Level {
    /// Returns the name: `info`, `warning` or `error`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What has changed.
#[derive(Clone, Debug)]
enum Change {
    /// The first lease, or none is known.
    Leased,
    HoldingAgain,
    Waiting,
    Retrying,
    /// These node ids were replaced by others.
    Replaced(Vec<u32>),
    Expired,
    /// The generator was closed.
    Stopped,
    /// The keeper has ended by itself.
    GaveUp,
}

impl LeaseStatus {
    /// Returns how serious this is.
    #[must_use]
    pub fn level(&self) -> Level {
        match self.change {
            Change::Leased | Change::HoldingAgain | Change::Stopped => Level::Info,
            Change::Retrying | Change::Replaced(_) => Level::Warning,
            Change::Waiting | Change::Expired | Change::GaveUp => Level::Error,
        }
    }

    /// Returns a sentence for a log: what has changed, the node ids, until when ids go on, and the
    /// store's error if there is one. All languages write the same. It names no secret and no
    /// password.
    #[must_use]
    pub fn message(&self) -> String {
        let nodes = Nodes(&self.node_ids);
        let until = utc(self.end_exclusive.saturating_mul(1000));
        let mut message = match &self.change {
            Change::Leased => format!(
                "leased {nodes} of the namespace {:?} from {}; ids until {until}, unless it is renewed",
                self.namespace, self.store
            ),
            Change::HoldingAgain => {
                format!(
                    "holding the lease of {nodes} again; ids until {until}, unless it is renewed"
                )
            }
            Change::Waiting => {
                format!("no ids of {nodes} now, though their lease is held until {until}")
            }
            Change::Retrying => format!(
                "the lease of {nodes} could not be renewed, trying again; ids continue until \
                 {until}"
            ),
            Change::Replaced(before) => {
                format!("{nodes} replaced {}; ids continue until {until}", Nodes(before))
            }
            Change::Expired => format!(
                "the lease of {nodes} ended at {until}; no ids until the store grants one, trying again"
            ),
            Change::Stopped => format!("stopped; no more ids of {nodes}"),
            Change::GaveUp => {
                format!("the lease of {nodes} is no longer renewed; ids continue until {until}")
            }
        };
        if let Some(error) = &self.last_error {
            let _ = write!(message, ": {}: {error}", error.code());
        }
        message
    }

    #[cfg(feature = "tracing")]
    pub(super) fn trace(&self) {
        macro_rules! event {
            ($level:ident) => {
                tracing::event!(
                    target: "randflake",
                    tracing::Level::$level,
                    state = self.state.name(),
                    store = self.store.as_str(),
                    namespace = self.namespace.as_str(),
                    node_ids = ?self.node_ids,
                    end_exclusive = self.end_exclusive,
                    error = self.last_error.as_ref().map(Error::code),
                    "{}",
                    self.message()
                )
            };
        }
        match self.level() {
            Level::Info => event!(INFO),
            Level::Warning => event!(WARN),
            Level::Error => event!(ERROR),
        }
    }

    /// Describes a lease of a namespace of a store.
    pub(super) fn new(
        keeper: &Keeper,
        node_ids: Vec<u32>,
        lease: Lease,
        (store, namespace): (&str, &str),
        now: Reading,
        obstacle: Option<Error>,
    ) -> Self {
        let state = match keeper.state_at(now) {
            State::Holding | State::Retrying if obstacle.is_some() => State::Waiting,
            state => state,
        };
        let (last_error, last_error_at) = match obstacle {
            Some(obstacle) if state == State::Waiting => (Some(obstacle), Some(now.second())),
            _ => (keeper.last_error().cloned(), keeper.last_error_at()),
        };
        Self {
            state,
            node_ids,
            start: lease.start(),
            end_exclusive: lease.end_exclusive(),
            time_left: keeper.time_left(now),
            renewals: keeper.renewals(),
            losses: keeper.losses(),
            replacements: keeper.replacements(),
            last_error,
            last_error_at,
            store: store.to_owned(),
            namespace: namespace.to_owned(),
            change: match state {
                State::Acquiring | State::Holding => Change::Leased,
                State::Waiting => Change::Waiting,
                State::Retrying => Change::Retrying,
                State::Expired => Change::Expired,
                State::Stopped => Change::Stopped,
            },
        }
    }

    /// Returns this as the lease of a keeper that has given up.
    pub(super) fn given_up(self) -> Self {
        Self { change: Change::GaveUp, ..self }
    }

    /// Returns this as what has changed since `before`.
    pub(super) fn after(mut self, before: &Self) -> Self {
        self.change = match self.change {
            Change::Waiting => Change::Waiting,
            _ if self.node_ids != before.node_ids => {
                // What was wrong is over by now, and belongs to this change.
                if self.last_error.is_none() {
                    self.last_error.clone_from(&before.last_error);
                    self.last_error_at = before.last_error_at;
                }
                Change::Replaced(before.node_ids.clone())
            }
            Change::Leased => Change::HoldingAgain,
            change => change,
        };
        self
    }
}

/// Returns why a generator with a lease has no id, and gets none soon; `None` if it has, and where its
/// lease is all used, over or of another process, which the keeper knows.
pub(super) fn obstacle<F: Format, C: Clock>(
    generator: &Generator<F, C>,
    patience: Duration,
) -> Option<Error> {
    generator.check_soon(patience).err().filter(|error| {
        !matches!(
            error.kind(),
            ErrorKind::LeaseExpired
                | ErrorKind::LeaseUnavailable
                | ErrorKind::Forked
                | ErrorKind::Closed
        )
    })
}

/// Node ids in a message.
struct Nodes<'a>(&'a [u32]);

impl fmt::Display for Nodes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = &self.0[..self.0.len().min(NAMED)];
        write!(f, "node ids {named:?}")?;
        match self.0.len() - named.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a step of the clock, a lease of other node ids may have none for as long.
    #[test]
    fn other_node_ids_without_ids_are_told_as_waiting() {
        let status = |state, node_id, change| LeaseStatus {
            state,
            node_ids: vec![node_id],
            start: 1_763_640_000,
            end_exclusive: 1_763_640_300,
            time_left: Duration::from_secs(300),
            renewals: 0,
            losses: 0,
            replacements: 0,
            last_error: None,
            last_error_at: None,
            store: "memory".to_owned(),
            namespace: "orders".to_owned(),
            change,
        };
        let before = status(State::Holding, 1, Change::Leased);
        let waiting = status(State::Waiting, 2, Change::Waiting).after(&before);
        let message = waiting.message();
        assert_eq!(waiting.level(), Level::Error, "{message}");
        assert!(message.starts_with("no ids of node ids [2] now, though"), "{message}");
        let holding = status(State::Holding, 2, Change::Leased).after(&waiting);
        assert!(holding.message().starts_with("holding the lease of node ids [2] again"));
    }
}
