//! The options of sequential numbers.
#![allow(clippy::doc_markdown, reason = "SQLite is a name")]

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use randflake::{
    Clock, Error, Result,
    bindings::{ForkId, check_max_wait},
};
use randflake_leases::{Location, Namespace, bindings::PerProcess};

use super::{
    DateForm, DatedTickets, Tickets,
    counter::{CounterSettings, LARGEST},
    size::Sizes,
    source::{CounterSource, Source},
    supply::Supply,
};

/// The longest reserve, and the longest wait for the first block.
const DAY: Duration = Duration::from_secs(86_400);

/// The options of [`Tickets`]; see [`Tickets::builder`].
#[derive(Clone)]
pub struct TicketsBuilder {
    location: Location,
    create: Option<bool>,
    pub(super) options: Options,
    sizes: Sizes,
    pub(super) clock: Option<Arc<dyn Clock + Send + Sync>>,
}

/// What is wanted of a counter.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) start: Option<u64>,
    pub(super) step: Option<u64>,
    pub(super) max_wait: Duration,
    pub(super) acquire_timeout: Duration,
}

impl TicketsBuilder {
    pub(super) fn new(location: Location, name: String) -> Self {
        let options = Options {
            namespace: "tickets".to_owned(),
            name,
            start: None,
            step: None,
            max_wait: Duration::from_secs(1),
            acquire_timeout: Duration::from_secs(10),
        };
        let sizes = Sizes { reserve: Duration::from_secs(2), min_block: 10, max_block: 1_000_000 };
        Self { location, create: None, options, sizes, clock: None }
    }

    /// Names the namespace of the counter in the store, 1 to 200 bytes; `tickets` by default. A store
    /// may have many counters in one.
    #[must_use]
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.options.namespace = name.into();
        self
    }

    /// Sets the first number of a new counter, 1 to 2^53 - 1; 1 by default. One that exists must have
    /// begun with it.
    #[must_use]
    pub fn start(mut self, start: u64) -> Self {
        self.options.start = Some(start);
        self
    }

    /// Sets the difference between two numbers of a new counter, 1 to 2^53 - 1; 1 by default. One that
    /// exists must have it.
    #[must_use]
    pub fn step(mut self, step: u64) -> Self {
        self.options.step = Some(step);
        self
    }

    /// Sets for how long the numbers that a process holds should last at its present rate, up to a day;
    /// 2 seconds by default. A store that is away for less than half of it is not noticed, but for
    /// half a minute at most: it has to confirm each minute that what a process holds is still its
    /// own. A kill loses the numbers of about that time.
    #[must_use]
    pub fn reserve(mut self, reserve: Duration) -> Self {
        self.sizes.reserve = reserve;
        self
    }

    /// Sets the smallest block, 1 to `max_block`; 10 by default. Half of `max_block` is enough at any
    /// time.
    #[must_use]
    pub fn min_block(mut self, numbers: u64) -> Self {
        self.sizes.min_block = numbers;
        self
    }

    /// Sets how many numbers a process holds at most, 1 to 2^53 - 1; 1 000 000 by default. A kill loses
    /// no more. A block has up to half of them, since there are two.
    #[must_use]
    pub fn max_block(mut self, numbers: u64) -> Self {
        self.sizes.max_block = numbers;
        self
    }

    /// Sets how long a call may wait for a block, up to a day; a second by default. With zero, a call
    /// fails at once where no number is left.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.options.max_wait = max_wait;
        self
    }

    /// Sets how long the first block of a process may take, up to a day; 10 seconds by default.
    #[must_use]
    pub fn acquire_timeout(mut self, acquire_timeout: Duration) -> Self {
        self.options.acquire_timeout = acquire_timeout;
        self
    }

    /// Sets whether a missing namespace is created, for tests; it is not by default, in a SQLite file
    /// either. A counter begins at its start in a new namespace: where a store was lost, every number
    /// would come a second time. [`Location::init`] makes a namespace once.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = Some(create);
        self
    }

    /// Sets the clock whose [`sleep`](Clock::sleep) waits for a block. For the bindings to other
    /// languages.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Draws the first block.
    ///
    /// # Errors
    ///
    /// `STORE_UNAVAILABLE`: no block within the [`acquire_timeout`](Self::acquire_timeout).
    /// `STORE_QUARANTINED`: the counter has to be fenced. `STORE_NOT_INITIALIZED`, `WEAK_STORE`,
    /// `STORE_REPLACED`: as [`leased`](randflake_leases::leased). `LIFETIME_OVER`: it has reached its last number.
    /// `INVALID_ARGUMENT`: an option out of range, a counter with another start or step, or a namespace
    /// that leases node ids.
    pub fn open(self) -> Result<Tickets> {
        let tickets = self.open_lazily()?;
        let drawn = tickets.draw_first(Duration::MAX);
        match drawn.and_then(|came| if came { Ok(()) } else { Err(tickets.no_first_block()) }) {
            Ok(()) => Ok(tickets),
            Err(error) => {
                tickets.stop();
                Err(error)
            }
        }
    }

    /// Makes an object whose numbers begin anew with each day, month or year. It draws its first block
    /// with its first number.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: an option out of range, or a name of more than 191 bytes.
    pub fn dated(self, form: DateForm) -> Result<DatedTickets> {
        DatedTickets::new(self, form)
    }

    /// Makes the object, which draws its first block with its first number: the store is not contacted
    /// before that. A server that forks its workers makes it in its master; each worker that asks for a
    /// number draws blocks of its own, and the master none, unless it asks as well.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: an option out of range.
    ///
    /// ```
    /// use std::sync::LazyLock;
    /// use randflake_tickets::Tickets;
    ///
    /// static INVOICES: LazyLock<Tickets> = LazyLock::new(|| {
    ///     let path = std::env::temp_dir().join(format!("invoices-{}.db", std::process::id()));
    ///     let tickets = Tickets::builder(path, "invoices").create(true); // in a test
    ///     tickets.open_lazily().expect("the options are in range")
    /// });
    ///
    /// assert_eq!(INVOICES.metrics().blocks_drawn, 0); // nothing is drawn yet
    /// assert_eq!(INVOICES.generate()?, 1);
    /// INVOICES.close(); // a static is never dropped
    /// # let path = std::env::temp_dir().join(format!("invoices-{}.db", std::process::id()));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn open_lazily(self) -> Result<Tickets> {
        let Options { namespace, name, start, step, .. } = &self.options;
        let settings = CounterSettings::new(name, *start, *step)?;
        let namespace = Namespace::for_tickets(namespace.clone())?;
        let location = match self.create {
            Some(create) => self.location.create(create),
            None => self.location.create_unless_set(false),
        };
        let open_source = move || -> Box<dyn Source> {
            let (location, namespace) = (location.clone(), namespace.clone());
            Box::new(CounterSource::new(location, namespace, settings.clone()))
        };
        Self::open_on(self.options, self.sizes, self.clock, Box::new(open_source))
    }

    /// Makes the object on a source of blocks, which each process opens again.
    pub(super) fn open_on(
        options: Options,
        sizes: Sizes,
        clock: Option<Arc<dyn Clock + Send + Sync>>,
        open_source: Box<dyn Fn() -> Box<dyn Source> + Send + Sync>,
    ) -> Result<Tickets> {
        check_number("max_block", sizes.max_block, LARGEST)?;
        check_number("min_block", sizes.min_block, sizes.max_block)?;
        check_time("reserve", sizes.reserve)?;
        check_time("acquire_timeout", options.acquire_timeout)?;
        check_max_wait(options.max_wait)?;
        let process = ForkId::current();
        let supplies = PerProcess::new(process, Supply::new(process, sizes));
        Ok(Tickets { options, sizes, open_source, clock, closed: AtomicBool::new(false), supplies })
    }
}

fn check_number(what: &str, got: u64, largest: u64) -> Result<()> {
    if (1..=largest).contains(&got) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("{what} must be between 1 and {largest}, got {got}")))
}

fn check_time(what: &str, got: Duration) -> Result<()> {
    if got <= DAY {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("{what} must be at most a day, got {got:?}")))
}

impl fmt::Debug for TicketsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketsBuilder")
            .field("options", &self.options)
            .field("sizes", &self.sizes)
            .finish_non_exhaustive()
    }
}
