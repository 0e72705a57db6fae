//! Operations on counters for an operator: for a command line, a script or a dashboard. They need no
//! secret; open the store with [`Namespace::for_tickets`].

use std::time::Duration;

use randflake_leases::{
    Error, ErrorKind, InitMode, LeaseStore, ListCounters, Location, Namespace, Result, Token,
    bindings::outcome_of,
    operator::{List, Listed},
};

use crate::counter::{Counter, CounterSettings, KnownCounter, fence, unreadable};

/// What a store knows of a counter; see [`show_tickets`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CounterStatus {
    /// The name.
    pub name: String,
    /// The first number, 1 to 2^53 - 1.
    pub start: u64,
    /// The difference between two numbers, 1 to 2^53 - 1.
    pub step: u64,
    /// The first number from which on none is in use. `None`: all numbers up to 2^53 - 1 were drawn.
    pub next: Option<u64>,
    /// How many smaller numbers were given back, and will be drawn again.
    pub given_back: u64,
    /// How many blocks may still be given back.
    pub blocks: usize,
    /// Whether nothing is drawn before the counter is [fenced](fence_tickets): the store may have lost
    /// blocks.
    pub must_be_fenced: bool,
}

impl CounterStatus {
    fn new(name: &str, counter: &Counter, floor: i64) -> Self {
        let next = counter.first_unused();
        let before = counter.free.iter().filter(|range| range.start < next);
        Self {
            name: name.to_owned(),
            start: counter.start,
            step: counter.step,
            next: (next < counter.end()).then(|| counter.start + next * counter.step),
            given_back: before.map(|range| range.end - range.start).sum(),
            blocks: counter.held.len(),
            must_be_fenced: counter.floor != floor,
        }
    }
}

/// Creates a namespace of tickets if it is missing, and checks it if it exists, as [`Location::init`]
/// does for leases: once, when a store is set up, and never with each start or deploy. `Quarantine`
/// where the store may have had it and lost it: then each counter must be
/// [fenced](fence_tickets) before it is drawn from.
///
/// # Errors
///
/// As [`Location::init`]; `INVALID_ARGUMENT` also: the namespace has leases.
///
/// ```
/// use randflake_leases::{InitMode, Location, Namespace};
/// use randflake_tickets::operator;
/// # let directory = std::env::temp_dir().join(format!("randflake-tickets-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory).unwrap();
/// # let path = directory.join("ids.db");
///
/// let location = Location::from(path);
/// operator::init_tickets(&location, "tickets", InitMode::New)?;
///
/// let mut store = location.open(&Namespace::for_tickets("tickets")?)?;
/// assert_eq!(operator::show_tickets(&mut *store, "invoices")?, None, "nothing was drawn");
/// # std::fs::remove_dir_all(&directory).unwrap();
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub fn init_tickets(location: &Location, namespace: &str, mode: InitMode) -> Result<()> {
    location.init(&Namespace::for_tickets(namespace)?, mode)
}

/// Shows a counter of a store that is opened with [`Namespace::for_tickets`]; `None` if it is missing.
///
/// # Errors
///
/// As [`LeaseStore::swap`].
pub fn show_tickets(store: &mut dyn LeaseStore, counter: &str) -> Result<Option<CounterStatus>> {
    let settings = CounterSettings::new(counter, None, None)?;
    let (found, floor) = KnownCounter::new(settings).read(store)?;
    Ok(found.map(|found| CounterStatus::new(counter, &found, floor)))
}

/// Lists the counters of a store that is opened with [`Namespace::for_tickets`], sorted by name.
///
/// # Errors
///
/// As [`LeaseStore::list_counters`].
///
/// ```
/// use randflake_leases::{MemoryStore, Namespace};
/// use randflake_tickets::operator;
///
/// let mut store = MemoryStore::new(Namespace::for_tickets("tickets")?);
/// operator::fence_tickets(&mut store, "orders", 48_211)?;
/// operator::fence_tickets(&mut store, "invoices", 0)?;
/// let counters = operator::list_tickets(&mut store)?;
/// let names: Vec<_> = counters.iter().map(|counter| counter.name.as_str()).collect();
/// assert_eq!(names, ["invoices", "orders"]);
/// assert_eq!(counters[1].next, Some(48_212));
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub fn list_tickets(store: &mut dyn LeaseStore) -> Result<Vec<CounterStatus>> {
    let request = ListCounters { token: Token::random() };
    let listed = outcome_of(&request, store.list_counters(&request))?;
    let status = |(name, value): &(String, String)| {
        let counter = Counter::from_value(value).ok_or_else(|| unreadable(name))?;
        Ok(CounterStatus::new(name, &counter, listed.floor))
    };
    listed.counters.iter().map(status).collect()
}

/// Raises a counter so that every number from now on is greater than `above`, 0 to 2^53 - 1, and makes
/// one that is missing. It never falls. Needed after the store may have lost blocks, as by a restart
/// without its data or a failover: that is noticed by itself, and draws fail with
/// [`StoreQuarantined`](ErrorKind::StoreQuarantined) until then. A restored backup, as of a file, can
/// look as if nothing had happened: before anything starts, fence the namespace
/// ([`LeaseStore::fence`], or `randflake lease fence --namespace tickets`), then each counter.
///
/// **First stop everything that draws from the counter,** then fence above the greatest number in your
/// tables, and start it again after that. A process that runs on goes on with the blocks that it has,
/// whose numbers may be greater than all in your tables; so does one that was started before the fence
/// and still reached the server that was replaced.
///
/// # Errors
///
/// As [`LeaseStore::swap`]. [`StoreQuarantined`](ErrorKind::StoreQuarantined), with the time to wait:
/// a Redis that was the master before may still be drawn from, for 12 seconds after a failover.
///
/// ```
/// use randflake_leases::{Fence, LeaseStore, MemoryStore, Namespace, Token};
/// use randflake_tickets::operator;
///
/// let mut store = MemoryStore::new(Namespace::for_tickets("tickets")?);
/// let fence = Fence { token: Token::random() };
/// let _fenced = store.fence(&fence)?; // as a store does that was restored
/// let fenced = operator::fence_tickets(&mut store, "invoices", 20_417)?;
/// assert_eq!(fenced.next, Some(20_418));
/// let shown = operator::show_tickets(&mut store, "invoices")?.expect("it was made");
/// assert!(!shown.must_be_fenced);
/// # Ok::<(), randflake_leases::Error>(())
/// ```
pub fn fence_tickets(
    store: &mut dyn LeaseStore,
    counter: &str,
    above: u64,
) -> Result<CounterStatus> {
    fence_tickets_in_steps(store, counter, above, None, None)
}

/// As [`fence_tickets`], for a counter that may be missing and does not count 1, 2, 3: `start` and `step`
/// are those of its [`Tickets`](crate::Tickets), 1 to 2^53 - 1. `None` is that of the counter, and 1 for
/// one that is missing.
///
/// # Errors
///
/// As [`fence_tickets`]; `INVALID_ARGUMENT` also: the counter has another start or step.
pub fn fence_tickets_in_steps(
    store: &mut dyn LeaseStore,
    counter: &str,
    above: u64,
    start: Option<u64>,
    step: Option<u64>,
) -> Result<CounterStatus> {
    let settings = CounterSettings::new(counter, start, step)?;
    let mut known = KnownCounter::new(settings);
    // First, so that a store that has become another one has noticed that, and is fenced.
    let (found, floor) = known.read(store)?;
    fence(known.settings(), found, floor, above)?; // what is refused needs no wait
    let request = List { token: Token::random(), node_id: Some(0) };
    let listed = outcome_of(&request, store.list(&request))?;
    check_last_grant(&listed)?;
    let fenced = known.fence_at(store, above, listed.floor)?;
    Ok(CounterStatus::new(counter, &fenced, listed.floor))
}

/// Refuses a fence while a server that was replaced may still be drawn from.
fn check_last_grant(listed: &Listed) -> Result<()> {
    let &Listed { now, floor, limits, last_grant, .. } = listed;
    // Where the old server may go on for a while, the floor is later by that.
    let over = floor.saturating_sub(i64::from(limits.max_ttl) + i64::from(limits.max_skew));
    if last_grant == 0 || floor == 0 || now >= over {
        return Ok(());
    }
    let left = over.saturating_sub(now).unsigned_abs();
    let error = Error::new(
        ErrorKind::StoreQuarantined,
        format!(
            "numbers may still be drawn from the server that this one replaces for {left} seconds: \
             fence the counter after that"
        ),
    );
    Err(error.with_retry_after(Duration::from_secs(left)))
}

#[cfg(test)]
mod tests {
    use randflake_leases::{Limits, MemoryStore};

    use super::*;

    #[test]
    fn a_replaced_server_is_waited_for() {
        let now = 1_763_640_000;
        let namespace = Namespace::for_tickets("tickets").expect("a name");
        let mut store = MemoryStore::new(namespace);
        let request = List { token: Token::random(), node_id: Some(0) };
        let found = outcome_of(&request, store.list(&request)).expect("it answers");
        let Limits { max_ttl, max_skew, .. } = found.limits;
        assert_eq!((max_ttl, max_skew), (300, 5));
        let listed = |floor, now, last_grant| Listed { floor, now, last_grant, ..found.clone() };
        let floor = now + 305 + 12;
        for (at, left) in [(0, 12), (11, 1)] {
            let error = check_last_grant(&listed(floor, now + at, 12)).expect_err("too soon");
            assert_eq!(error.code(), "STORE_QUARANTINED", "{error}");
            assert_eq!(error.retry_after(), Some(Duration::from_secs(left)));
        }
        assert!(check_last_grant(&listed(floor, now + 12, 12)).is_ok());
        assert!(check_last_grant(&listed(0, now, 12)).is_ok(), "never fenced");
        assert!(check_last_grant(&listed(now + 306, now, 0)).is_ok(), "twice within a second");
    }
}
