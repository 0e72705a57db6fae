//! Sequential numbers that begin anew with each day, month or year: `INV-20261125-000042`.
//!
//! **Why no text repeats.** A text has the date of its number's counter, and each period has a counter
//! of its own, whose numbers do not repeat. So clocks and time zones decide which date a number
//! gets, and never whether it is unique: a process whose clock is behind goes on with the counter
//! of the earlier date.

use std::{
    fmt,
    str::FromStr,
    sync::atomic::{AtomicBool, Ordering},
};

use jiff::{Timestamp, tz::TimeZone};
use once_cell::race::OnceBox;
use randflake::{Clock, Error, ErrorKind, Result, SystemClock, Wait};

use super::{Tickets, TicketsBuilder, closed};

/// The most digits that a number may be padded to: 2^53 - 1 has so many.
const MOST_DIGITS: u32 = 16;

/// The most bytes of a name: that of a counter has up to 200, and a date 9.
const LONGEST_NAME: usize = 191;

/// The most bytes of a prefix.
const LONGEST_PREFIX: usize = 100;

/// After which time numbers begin anew.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Period {
    /// A date as 20261125.
    Day,
    /// 202611.
    Month,
    /// 2026.
    Year,
}

impl Period {
    const ALL: [(&'static str, Self); 3] =
        [("day", Self::Day), ("month", Self::Month), ("year", Self::Year)];
}

impl FromStr for Period {
    type Err = Error;

    /// Reads `day`, `month` or `year`.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: something else.
    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, period)| *period).ok_or_else(|| {
            let got = randflake::bindings::quoted(name);
            Error::invalid_argument(format!("a period is day, month or year, got {got}"))
        })
    }
}

/// How numbers with a date are written: a prefix, the date, `-`, and the number with leading zeros.
///
/// ```
/// use randflake_tickets::{DateForm, Period};
///
/// let form = DateForm::new(Period::Day).prefix("INV-")?.digits(6)?.time_zone("Europe/Berlin")?;
/// let date = form.date_at(1795649400)?; // 2026-11-25 23:30 in UTC
/// assert_eq!(form.text(&date, 42), "INV-20261126-000042");
/// assert_eq!(form.counter("invoices", &date), "invoices/20261126");
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DateForm {
    period: Period,
    zone: TimeZone,
    prefix: String,
    digits: usize,
}

impl DateForm {
    /// Numbers of a period in UTC, padded to 6 digits, without a prefix.
    #[must_use]
    pub fn new(period: Period) -> Self {
        Self { period, zone: TimeZone::UTC, prefix: String::new(), digits: 6 }
    }

    /// Sets the time zone whose midnight is the border, by its name in the IANA database, such as
    /// `Europe/Berlin`.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: the system has no such time zone.
    pub fn time_zone(self, name: &str) -> Result<Self> {
        // Also where there is no database.
        let zone = if name == "UTC" { Ok(TimeZone::UTC) } else { TimeZone::get(name) };
        let zone = zone.map_err(|_| {
            let got = randflake::bindings::quoted(name);
            let why = if TimeZone::get("Europe/Berlin").is_ok() {
                ""
            } else {
                "; this system has no time zones: install its package tzdata"
            };
            Error::invalid_argument(format!(
                "time_zone must be a name of the IANA database, such as Europe/Berlin, got {got}{why}"
            ))
        })?;
        Ok(Self { zone, ..self })
    }

    /// Sets what comes before the date, at most 100 bytes without control characters.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: it is longer, or has one.
    pub fn prefix(self, prefix: impl Into<String>) -> Result<Self> {
        let prefix = prefix.into();
        if prefix.len() > LONGEST_PREFIX || prefix.chars().any(char::is_control) {
            return Err(Error::invalid_argument(format!(
                "a prefix has at most {LONGEST_PREFIX} bytes and no control characters"
            )));
        }
        Ok(Self { prefix, ..self })
    }

    /// Sets how many digits a number has at least, 1 to 16. A larger number has more.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: out of range.
    pub fn digits(self, digits: u32) -> Result<Self> {
        if !(1..=MOST_DIGITS).contains(&digits) {
            return Err(Error::invalid_argument(format!(
                "digits must be 1 to {MOST_DIGITS}, got {digits}"
            )));
        }
        Ok(Self { digits: digits as usize, ..self })
    }

    /// Returns the date of a unix second.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: the second is beyond the calendar.
    pub fn date_at(&self, unix_second: i64) -> Result<String> {
        let time = Timestamp::from_second(unix_second).map_err(|_| {
            Error::invalid_argument(format!("the unix second {unix_second} is beyond the calendar"))
        })?;
        let date = self.zone.to_datetime(time);
        Ok(match self.period {
            Period::Day => format!("{:04}{:02}{:02}", date.year(), date.month(), date.day()),
            Period::Month => format!("{:04}{:02}", date.year(), date.month()),
            Period::Year => format!("{:04}", date.year()),
        })
    }

    /// Returns the name of the counter of a date.
    #[must_use]
    pub fn counter(&self, name: &str, date: &str) -> String {
        format!("{name}/{date}")
    }

    /// Writes a number of a date.
    #[must_use]
    pub fn text(&self, date: &str, number: u64) -> String {
        let Self { prefix, digits, .. } = self;
        format!("{prefix}{date}-{number:0digits$}")
    }
}

/// Hands out sequential numbers that begin anew with each day, month or year, as texts.
///
/// Each date has a counter of its own, `invoices/20261125`. A process stays with a later date, even if
/// its clock steps back over the border. What is unused of a counter is given back when the next date
/// begins, as when this is closed.
///
/// ```
/// use randflake_leases::{Location, MemoryStore, Namespace};
/// use randflake_tickets::{DateForm, Period, Tickets};
///
/// let store = MemoryStore::new(Namespace::for_tickets("tickets")?);
/// let location = Location::new(move |namespace| Ok(Box::new(store.namespace(namespace))));
/// let form = DateForm::new(Period::Month).prefix("INV-")?;
/// let invoices = Tickets::builder(location, "invoices").dated(form)?;
/// let first = invoices.generate()?; // INV-202611-000001
/// assert!(first.starts_with("INV-20") && first.ends_with("-000001"));
/// # Ok::<(), randflake::Error>(())
/// ```
pub struct DatedTickets {
    builder: TicketsBuilder,
    form: DateForm,
    /// That of the first date, followed by those of later ones. Set once without a lock, so that a
    /// forked child never waits for a thread that it does not have.
    first: OnceBox<Dated>,
    /// Also in the children of the process that closed it.
    closed: AtomicBool,
}

/// The numbers of one date.
struct Dated {
    date: String,
    tickets: Tickets,
    next: OnceBox<Self>,
}

impl DatedTickets {
    pub(super) fn new(builder: TicketsBuilder, form: DateForm) -> Result<Self> {
        let name = &builder.options.name;
        if name.len() > LONGEST_NAME {
            return Err(Error::invalid_argument(format!(
                "the name of a counter with a date must have 1 to {LONGEST_NAME} bytes, got {}",
                name.len()
            )));
        }
        let (first, closed) = Default::default();
        let dated = Self { builder, form, first, closed };
        // Shows whether the options and the names are valid, and draws nothing.
        dated.builder.clone().open_lazily()?.stop();
        dated.open(dated.form.date_at(0)?)?.tickets.stop();
        Ok(dated)
    }

    /// Hands out a number.
    ///
    /// # Errors
    ///
    /// As [`Tickets::generate`]; `INVALID_ARGUMENT`: the clock shows a time beyond the calendar.
    pub fn generate(&self) -> Result<String> {
        let mut texts = self.generate_many(1)?;
        texts.pop().ok_or_else(|| Error::new(ErrorKind::Internal, "a batch of one has none"))
    }

    /// Hands out numbers, all of the same date.
    ///
    /// # Errors
    ///
    /// As [`Tickets::fill`].
    pub fn generate_many(&self, count: usize) -> Result<Vec<String>> {
        loop {
            if self.closed.load(Ordering::Relaxed) {
                return Err(closed());
            }
            let dated = self.current()?;
            let mut numbers = vec![0; count];
            match dated.tickets.fill_with(&mut numbers, Wait::MaxWait) {
                // Another thread has gone on to the next date meanwhile.
                Err(error) if error.kind() == ErrorKind::Closed && dated.next.get().is_some() => {}
                filled => {
                    let text = |number: i64| self.form.text(&dated.date, number.cast_unsigned());
                    return filled.map(|()| numbers.into_iter().map(text).collect());
                }
            }
        }
    }

    /// Closes it for good and gives the unused numbers back; see [`Tickets::close`].
    pub fn close(&self) {
        self.stop();
        if let Some(last) = self.last() {
            last.tickets.close();
        }
    }

    /// As [`close`](DatedTickets::close), but does not wait.
    pub fn stop(&self) {
        self.closed.store(true, Ordering::Relaxed);
        if let Some(last) = self.last() {
            last.tickets.stop();
        }
    }

    /// Returns whether it was closed or stopped, and the unused numbers are given back as far as
    /// possible.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let is_over = self.last().is_none_or(|last| last.tickets.is_over());
        self.closed.load(Ordering::Relaxed) && is_over
    }

    /// Returns the name that the counters of all dates begin with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.builder.options.name
    }

    /// Returns the numbers of the last date that was used.
    fn last(&self) -> Option<&Dated> {
        let mut dated = self.first.get()?;
        while let Some(next) = dated.next.get() {
            dated = next;
        }
        Some(dated)
    }

    /// Returns the numbers of the date that the clock shows, or of a later one that was used already.
    fn current(&self) -> Result<&Dated> {
        let clock = self.builder.clock.as_deref();
        let now = clock.map_or_else(|| SystemClock.now(), Clock::now)?;
        let date = self.form.date_at(now.div_euclid(1_000_000_000))?;
        let mut dated = get_or_open(&self.first, || self.open(date.clone()))?;
        while dated.date < date || dated.next.get().is_some() {
            let next = get_or_open(&dated.next, || self.open(date.clone()))?;
            dated.tickets.stop();
            dated = next;
        }
        Ok(dated)
    }

    fn open(&self, date: String) -> Result<Dated> {
        let mut builder = self.builder.clone();
        builder.options.name = self.form.counter(&self.builder.options.name, &date);
        let tickets = builder.open_lazily()?;
        Ok(Dated { date, tickets, next: OnceBox::new() })
    }
}

fn get_or_open(cell: &OnceBox<Dated>, open: impl FnOnce() -> Result<Dated>) -> Result<&Dated> {
    if let Some(dated) = cell.get() {
        return Ok(dated);
    }
    // Another thread may have been first: then this one, which has drawn nothing, is dropped.
    let opened = Box::new(open()?);
    Ok(cell.get_or_init(|| opened))
}

impl fmt::Debug for DatedTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.builder.options.name;
        f.debug_struct("DatedTickets").field("name", name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        sync::{Arc, Mutex, atomic::AtomicI64},
        thread,
    };

    use randflake_leases::{Location, MemoryStore, Namespace};

    use super::*;

    /// The last second of 25 November 2026 in Berlin.
    const BEFORE_MIDNIGHT: i64 = 1_795_647_599;

    #[derive(Clone)]
    struct Dial(Arc<AtomicI64>);

    impl Clock for Dial {
        fn now(&self) -> Result<i64> {
            Ok(self.0.load(Ordering::Relaxed) * 1_000_000_000)
        }

        fn sleep(&self, duration: std::time::Duration) -> Result<Option<std::time::Duration>> {
            SystemClock.sleep(duration)
        }
    }

    fn invoices(dial: &Dial, location: &Location, form: DateForm) -> DatedTickets {
        let builder = Tickets::builder(location.clone(), "invoices").clock(dial.clone());
        builder.acquire_timeout(std::time::Duration::from_secs(600)).dated(form).expect("valid")
    }

    fn memory() -> Location {
        let store = MemoryStore::new(Namespace::for_tickets("tickets").expect("a namespace"));
        Location::new(move |namespace| Ok(Box::new(store.namespace(namespace))))
    }

    fn berlin() -> DateForm {
        let form = DateForm::new(Period::Day).prefix("INV-").expect("a prefix");
        form.time_zone("Europe/Berlin").expect("a zone")
    }

    #[test]
    fn numbers_begin_anew_at_midnight_of_the_zone_and_never_go_back() {
        let dial = Dial(Arc::new(AtomicI64::new(BEFORE_MIDNIGHT)));
        let invoices = invoices(&dial, &memory(), berlin());
        let next = || invoices.generate().expect("a number");
        assert_eq!([next(), next()], ["INV-20261125-000001", "INV-20261125-000002"]);
        dial.0.fetch_add(1, Ordering::Relaxed);
        assert_eq!(next(), "INV-20261126-000001");
        dial.0.fetch_sub(1, Ordering::Relaxed);
        assert_eq!(next(), "INV-20261126-000002");
        dial.0.fetch_add(40 * 86_400, Ordering::Relaxed);
        assert_eq!(next(), "INV-20270104-000001");
        invoices.close();
        assert_eq!(invoices.generate().expect_err("closed").kind(), ErrorKind::Closed);
        dial.0.fetch_add(86_400, Ordering::Relaxed);
        assert_eq!(invoices.generate().expect_err("closed").kind(), ErrorKind::Closed);
        assert!(invoices.is_over());
    }

    #[test]
    fn no_text_repeats_over_the_border() {
        let (location, texts) = (memory(), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for process in 0..3 {
                let dial = Dial(Arc::new(AtomicI64::new(BEFORE_MIDNIGHT - 20)));
                let invoices = Arc::new(invoices(&dial, &location, berlin()));
                for thread in 0..3 {
                    let (dial, invoices, texts) = (dial.clone(), Arc::clone(&invoices), &texts);
                    scope.spawn(move || {
                        for (round, count) in (0..200_i64).zip([1, 2, 3].into_iter().cycle()) {
                            // Clocks differ, and step back.
                            let step = if (round + process + thread) % 5 == 0 { -1 } else { 1 };
                            dial.0.fetch_add(step, Ordering::Relaxed);
                            let made = invoices.generate_many(count);
                            texts.lock().expect("no panic").extend(made.expect("numbers"));
                        }
                    });
                }
            }
        });
        let texts = texts.into_inner().expect("no panic");
        assert_eq!(texts.iter().collect::<HashSet<_>>().len(), texts.len());
        assert!(texts.iter().any(|text| text.starts_with("INV-20261125-")));
        assert!(texts.iter().any(|text| text.starts_with("INV-20261126-")));
    }

    #[test]
    fn dates_are_those_of_the_period_and_the_zone() {
        let date = |period, zone: &str, second| {
            let form = DateForm::new(period).time_zone(zone).expect("a zone");
            form.date_at(second).expect("a date")
        };
        for (period, zone, second, expected) in [
            (Period::Day, "UTC", BEFORE_MIDNIGHT + 1, "20261125"),
            (Period::Day, "Europe/Berlin", BEFORE_MIDNIGHT, "20261125"),
            (Period::Day, "Europe/Berlin", BEFORE_MIDNIGHT + 1, "20261126"),
            (Period::Month, "Asia/Tokyo", 1_796_050_800, "202612"), // 30 November, 15:00 in UTC
            (Period::Year, "America/New_York", 1_798_779_599, "2026"),
            (Period::Year, "America/New_York", 1_798_779_600, "2027"),
            // An hour that summer time repeats has one date.
            (Period::Day, "Europe/Berlin", 1_792_886_400, "20261025"),
            (Period::Day, "UTC", 0, "19700101"),
        ] {
            assert_eq!(date(period, zone, second), expected, "{zone} {second}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let form = || DateForm::new(Period::Day);
        let long = "x".repeat(101);
        for refused in [
            form().time_zone("Europe/Nowhere").map(drop),
            form().time_zone("").map(drop),
            form().digits(0).map(drop),
            form().digits(17).map(drop),
            form().prefix(long).map(drop),
            form().prefix("a\nb").map(drop),
            form().date_at(i64::MAX).map(drop),
            "week".parse::<Period>().map(drop),
            Tickets::builder("", "a b").dated(form()).map(drop),
            Tickets::builder("", "").dated(form()).map(drop),
            Tickets::builder("", "x".repeat(200)).dated(form()).map(drop),
            Tickets::builder("", "a").step(0).dated(form()).map(drop),
        ] {
            assert_eq!(refused.expect_err("refused").kind(), ErrorKind::InvalidArgument);
        }
        let wide = form().digits(2).expect("in range");
        assert_eq!(wide.text("20261125", 12_345), "20261125-12345");
    }
}
