//! Sequential numbers with a date. Threads draw them, since a date may begin with any number: then the
//! first block of its counter is waited for.

use std::sync::Arc;

use napi_derive::napi;
use randflake::{Error, Result};
use randflake_tickets::{DateForm, DatedTickets, Period, Tickets};

use crate::{
    arguments::{self, invalid},
    clock::EnvironmentClock,
    environment::Environment,
    ffi::{Outcome, Value, outcome},
    stores::Store,
    threads,
    tickets::{counter_name, with_options},
};

/// Numbers that are given back in the background once JavaScript has collected their object.
struct Collected(Arc<DatedTickets>);

impl Drop for Collected {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Makes the object that hands out the numbers of a counter for each date.
#[napi]
pub fn create_dated_tickets<'call>(
    store: Value<'call>,
    name: Value<'call>,
    options: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        let js = store.js();
        let closing = Arc::clone(&js.state::<Environment>()?.closing);
        let form = form(options)?;
        let store = Store::new(store, options.boolean(c"allowWeakStore")?)?;
        let builder = Tickets::builder(store.location(), counter_name(name)?);
        let builder = with_options(builder, options)?.clock(EnvironmentClock::new(&closing));
        let tickets = Arc::new(builder.dated(form)?);
        closing.keep(Arc::clone(&tickets) as _)?;
        js.own(Collected(tickets))
    })
}

fn form(options: Value<'_>) -> Result<DateForm> {
    const PERIOD: &str = "'day', 'month' or 'year'";
    let missing = || Error::invalid_argument(format!("period must be {PERIOD}"));
    let period = options.option(c"period", PERIOD, Value::as_unicode)?.ok_or_else(missing)?;
    let mut form = DateForm::new(period.parse::<Period>()?);
    let text = |name| options.option(name, "a string of Unicode text", Value::as_unicode);
    if let Some(zone) = text(c"timeZone")? {
        form = form.time_zone(&zone)?;
    }
    if let Some(prefix) = text(c"prefix")? {
        form = form.prefix(prefix)?;
    }
    match options.option(c"digits", "a whole number, 1 to 16", arguments::as_u32)? {
        Some(digits) => form.digits(digits),
        None => Ok(form),
    }
}

/// Promises so many numbers of one date.
#[napi]
pub fn generate_dated_tickets<'call>(
    tickets: Value<'call>,
    count: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        let Collected(numbers) = tickets.owned()?;
        let numbers = Arc::clone(numbers);
        let form = "a whole number";
        let count = arguments::as_u32(count).ok_or_else(|| invalid("n", form, count))? as usize;
        let work = move || numbers.generate_many(count);
        tickets.js().promise(threads::start, work, |js, texts| js.convert(texts))
    })
}

/// Ends it for good. The numbers are given back in the background.
#[napi]
pub fn close_dated_tickets(tickets: Value<'_>) -> Outcome<()> {
    outcome(|| {
        let Collected(numbers) = tickets.owned()?;
        numbers.stop();
        Ok(())
    })
}

/// Promises that the unused numbers are given back.
#[napi]
pub fn release_dated_tickets(tickets: Value<'_>) -> Outcome<Value<'_>> {
    outcome(|| {
        let Collected(numbers) = tickets.owned()?;
        let numbers = Arc::clone(numbers);
        numbers.stop();
        let work = move || {
            numbers.close();
            Ok(())
        };
        tickets.js().promise(threads::start, work, |js, done| js.convert(done))
    })
}
