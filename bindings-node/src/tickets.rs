//! Sequential numbers, from counters of a store.
//!
//! They have an index in the table of generators, so `generate` serves them as well. A thread of
//! the crate draws them. The JavaScript thread waits for a block only where the store is a file, on
//! a clock that ends with the environment.

use std::{ffi::CStr, sync::Arc, time::Duration};

use napi::bindgen_prelude::Null;
use napi_derive::napi;
use randflake::{Error, ErrorKind, Result, Wait};
use randflake_leases::{LeaseStore, Location, MemoryStore, Namespace};
use randflake_tickets::{
    Tickets, TicketsBuilder, TicketsMetrics,
    operator::{self, CounterStatus},
};

use crate::{
    arguments::{self, invalid, set},
    clock::EnvironmentClock,
    environment::{Batches, DynGenerator, Environment, Handle},
    ffi::{Js, Outcome, Value, outcome},
    metrics,
    stores::{self, Store},
    threads,
};

/// Numbers that are given back in the background once JavaScript has collected their object.
struct Collected {
    tickets: Arc<Tickets>,
    /// Whether the JavaScript thread may wait. Not where it runs the client of the store: a call that
    /// waits there for a block keeps the block from arriving.
    wait_here: Wait,
}

impl Collected {
    /// Returns whether a call may wait, `here` on the JavaScript thread, or in another one.
    fn wait(&self, here: bool) -> Wait {
        if here { self.wait_here } else { Wait::MaxWait }
    }

    #[cold]
    fn generate_again(&self, error: Error) -> Result<u64> {
        if self.wait_here == Wait::Never || error.kind() != ErrorKind::LeaseUnavailable {
            return Err(error);
        }
        self.first_block()?;
        self.tickets.generate()
    }

    /// Waits on the JavaScript thread for the first block: no longer than for any other block,
    /// since that thread has other calls to serve.
    fn first_block(&self) -> Result<()> {
        let drawn = self.tickets.draw_first(self.tickets.max_wait())?;
        if drawn { Ok(()) } else { self.tickets.check_fill(1) }
    }
}

impl Drop for Collected {
    fn drop(&mut self) {
        self.tickets.stop();
    }
}

impl DynGenerator for Collected {
    #[inline]
    fn generate(&self) -> Result<i64> {
        let made = self.tickets.generate_with(Wait::Never);
        made.or_else(|error| self.generate_again(error)).map(u64::cast_signed)
    }

    fn ready_in(&self) -> Result<Duration> {
        self.tickets.ready_in()
    }

    fn close(&self) {
        self.tickets.stop();
    }

    fn released<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        let tickets = Arc::clone(&self.tickets);
        let work = move || {
            tickets.close();
            Ok(())
        };
        js.promise(threads::start, work, |js, done| js.convert(done))
    }

    fn metrics<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        metrics::of_tickets(js, self.tickets.metrics())
    }

    fn weight(&self) -> usize {
        const THREAD: usize = 32 << 10; // for its stack, and for the system
        size_of::<Tickets>() + THREAD
    }
}

impl Batches for Collected {
    fn check_fill(&self, count: usize, here: bool) -> Result<()> {
        match self.wait(here) {
            Wait::Never => self.tickets.check_fill(count),
            Wait::MaxWait => Ok(()),
        }
    }

    fn fill(&self, numbers: &mut [i64], here: bool) -> Result<()> {
        let wait = self.wait(here);
        if here && wait == Wait::MaxWait {
            self.first_block()?;
        }
        self.tickets.fill_with(numbers, wait)
    }
}

/// Promises the object that hands out the numbers of a counter. `lazily` returns one that draws its
/// first block with its first number.
#[napi]
pub fn lease_tickets<'call>(
    store: Value<'call>,
    name: Value<'call>,
    options: Value<'call>,
    lazily: bool,
) -> Outcome<Value<'call>> {
    outcome(|| {
        let js = store.js();
        let closing = Arc::clone(&js.state::<Environment>()?.closing);
        let store = Store::new(store, options.boolean(c"allowWeakStore")?)?;
        let wait_here = store.wait_here();
        let builder = Tickets::builder(store.location(), counter_name(name)?);
        let builder = with_options(builder, options)?.clock(EnvironmentClock::new(&closing));
        let pending = closing.begin()?;
        let keep = move |tickets| {
            let tickets = Arc::new(tickets);
            closing.keep(Arc::clone(&tickets) as _)?;
            drop(pending); // not before the environment knows of it
            Ok(Arc::new(Collected { tickets, wait_here }))
        };
        if lazily {
            return Handle::shared(js, keep(builder.open_lazily()?)?);
        }
        let work = move || keep(builder.open()?);
        js.promise(threads::start, work, Handle::shared)
    })
}

/// Returns an object that draws from a counter in the memory of this process, for `testing.js`.
#[napi]
pub fn tickets_in_memory<'call>(
    name: Value<'call>,
    options: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        let js = name.js();
        let store = MemoryStore::new(Namespace::for_tickets("tickets")?);
        let location = Location::new(move |namespace| Ok(Box::new(store.namespace(namespace))));
        let builder = Tickets::builder(location, counter_name(name)?);
        let tickets = Arc::new(with_options(builder, options)?.open()?);
        Handle::shared(js, Arc::new(Collected { tickets, wait_here: Wait::MaxWait }))
    })
}

/// Checks the name of a counter, and the options.
#[napi]
pub fn check_tickets(name: Value<'_>, options: Value<'_>) -> Outcome<()> {
    outcome(|| {
        options.boolean(c"allowWeakStore")?;
        let builder = Tickets::builder("", counter_name(name)?);
        with_options(builder, options)?.open_lazily().map(drop)
    })
}

pub(crate) fn with_options(builder: TicketsBuilder, options: Value<'_>) -> Result<TicketsBuilder> {
    Ok(set!(
        builder,
        namespace: options.namespace()?,
        start: number_option(options, c"start")?,
        step: number_option(options, c"step")?,
        reserve: options.seconds(c"reserveSeconds")?,
        min_block: number_option(options, c"minBlock")?,
        max_block: number_option(options, c"maxBlock")?,
        create: options.boolean(c"create")?,
        acquire_timeout: options.milliseconds(c"acquireTimeoutMs")?,
        max_wait: options.milliseconds(c"maxWaitMs")?,
    ))
}

/// Promises that a namespace of tickets exists.
#[napi]
pub fn init_tickets<'call>(
    store: Value<'call>,
    mode: Value<'call>,
    options: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| stores::init(store, namespace(options)?, mode, options))
}

/// Takes the namespace of tickets.
fn namespace(options: Value<'_>) -> Result<Namespace> {
    Namespace::for_tickets(options.namespace()?.unwrap_or_else(|| "tickets".into()))
}

pub(crate) fn counter_name(value: Value<'_>) -> Result<String> {
    let form = "a string of Unicode text";
    value.as_unicode().ok_or_else(|| invalid("the name of a counter", form, value))
}

fn number_option(options: Value<'_>, name: &CStr) -> Result<Option<u64>> {
    options.option(name, "a whole number, at least 1", number)
}

/// Takes a number of a counter, a whole number or a bigint.
fn number(value: Value<'_>) -> Option<u64> {
    value.as_u64().or_else(|| arguments::integer(value)?.try_into().ok())
}

/// Returns what an object has done: nothing for `undefined`, a lazy object that has not been used.
#[napi]
pub fn metrics_of_tickets(tickets: Value<'_>) -> Outcome<Value<'_>> {
    outcome(|| {
        if tickets.is_undefined() {
            return metrics::of_tickets(tickets.js(), TicketsMetrics::default());
        }
        tickets.owned::<Handle>()?.generator.metrics(tickets.js())
    })
}

/// Promises what a store knows of a counter; null if it is missing.
#[napi]
pub fn show_tickets<'call>(
    store: Value<'call>,
    name: Value<'call>,
    options: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        let name = counter_name(name)?;
        let show = move |store: &mut dyn LeaseStore| operator::show_tickets(store, &name);
        ask_counter(store, options, show, counter_status)
    })
}

/// Promises what a store knows of each counter.
#[napi]
pub fn list_tickets<'call>(store: Value<'call>, options: Value<'call>) -> Outcome<Value<'call>> {
    outcome(|| {
        ask_counter(store, options, operator::list_tickets, |js, listed| {
            let all: Result<Vec<_>> =
                listed.into_iter().map(|status| counter_status(js, Some(status))).collect();
            js.convert(all?)?.freeze()
        })
    })
}

/// Promises what a store knows of a counter once it is fenced.
#[napi]
pub fn fence_tickets<'call>(
    store: Value<'call>,
    name: Value<'call>,
    above: Value<'call>,
    options: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        let name = counter_name(name)?;
        let form = "a whole number, at least 0";
        let above = number(above).ok_or_else(|| invalid("above", form, above))?;
        let (start, step) = (number_option(options, c"start")?, number_option(options, c"step")?);
        let fence = move |store: &mut dyn LeaseStore| {
            operator::fence_tickets_in_steps(store, &name, above, start, step).map(Some)
        };
        ask_counter(store, options, fence, counter_status)
    })
}

fn ask_counter<'call, T: Send + 'static>(
    store: Value<'call>,
    options: Value<'call>,
    ask: impl FnOnce(&mut dyn LeaseStore) -> Result<T> + Send + 'static,
    show: impl for<'a> FnOnce(Js<'a>, T) -> Result<Value<'a>> + Send + 'static,
) -> Result<Value<'call>> {
    let namespace = namespace(options)?;
    let location = Store::new(store, options.boolean(c"allowWeakStore")?)?.location();
    let location = location.create(false);
    store.js().promise(threads::start, move || ask(&mut *location.open(&namespace)?), show)
}

#[allow(clippy::cast_precision_loss, reason = "counts of numbers below 2^53")]
fn counter_status(js: Js<'_>, status: Option<CounterStatus>) -> Result<Value<'_>> {
    let Some(status) = status else { return js.convert(Null) };
    js.object(&[
        (c"name", js.convert(status.name)?),
        (c"start", js.convert(status.start)?),
        (c"step", js.convert(status.step)?),
        (c"next", js.convert(status.next)?),
        (c"givenBack", js.convert(status.given_back as f64)?),
        (c"blocks", js.convert(status.blocks as f64)?),
        (c"mustBeFenced", js.convert(status.must_be_fenced)?),
    ])?
    .freeze()
}
