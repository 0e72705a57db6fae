//! Generators with leased node ids.

use std::{sync::Arc, time::Duration};

use napi_derive::napi;
use randflake::{Error, ErrorKind, Format, Layout, Reach, Result};
use randflake_leases::{LeaseStatus, LeasedBuilder, LeasedFormat, Location};

use crate::{
    arguments::{self, Options, set},
    environment::{Batches, Environment, Generator, Handle},
    ffi::{Js, Outcome, Returned, Value, fill_in_place, outcome},
    generator::Number,
    leases::EnvironmentClock,
    stores::Store,
    threads,
};

const OPTIONS: [&str; 10] = [
    "layout",
    "nodeCount",
    "ttlSeconds",
    "maxSkewSeconds",
    "namespace",
    "acquireTimeoutMs",
    "maxWaitMs",
    "maxDriftSeconds",
    "create",
    "allowWeakStore",
];

type Leased<F> = randflake_leases::Leased<F, EnvironmentClock>;

/// A generator that gives its node ids back in the background once JavaScript has collected it.
struct Collected<F: Format> {
    leased: Arc<Leased<F>>,
    /// Whether the JavaScript thread runs the client of the store: a call that waits there for a
    /// lease keeps the lease from coming.
    leases_here: bool,
}

impl<F: Format> Collected<F> {
    /// Returns how far a batch may reach that is made on the JavaScript thread.
    fn reach_here(&self) -> Reach {
        if self.leases_here { Reach::Lease } else { Reach::Renewals }
    }

    /// Calls the generator on the JavaScript thread, and once more where an error can be recovered
    /// from there.
    #[inline]
    fn call<T>(&self, mut call: impl FnMut(&Leased<F>) -> Result<T>) -> Result<T> {
        let mut recovered = false;
        // A loop, because the compiler merges a call into its caller only where it is written once.
        loop {
            match call(&self.leased) {
                Ok(answer) => return Ok(answer),
                Err(error) if recovered || self.leases_here => {
                    return Err(self.leased.explain(error));
                }
                Err(error) => self.leased.recover(error)?,
            }
            recovered = true;
        }
    }
}

impl<F: Format> Drop for Collected<F> {
    fn drop(&mut self) {
        self.leased.stop();
    }
}

impl<F: Format<Id: Number>> Generator for Collected<F> {
    #[inline]
    fn generate(&self) -> Result<i64> {
        // Never waits for a lease, on a thread that has others to answer.
        let id = self.leased.try_generate().map_err(|error| self.leased.explain(error))?;
        Ok(id.bits())
    }

    fn fill(&self, ids: Value<'_>) -> Option<Result<()>> {
        let reach = self.reach_here();
        fill_in_place(ids, |ids| self.call(|leased| leased.try_fill_i64(ids, reach)))
    }

    fn check_fill(&self, count: usize) -> Result<()> {
        self.call(|leased| leased.try_check_fill(count, self.reach_here()))
    }

    fn ready_in(&self) -> Result<Duration> {
        self.leased.ready_in()
    }

    fn node_ids(&self) -> Vec<u32> {
        self.leased.node_ids()
    }

    fn lease<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        self.leased.lease().map_or_else(|| js.null(), |status| status_object(js, status))
    }

    fn extend_lease(&self, _: i64) -> Result<()> {
        Err(Error::new(
            ErrorKind::InvalidLease,
            "the lease of this generator comes from a store, and is extended by itself",
        ))
    }

    fn close(&self) {
        self.leased.stop();
    }

    fn released<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        let leased = Arc::clone(&self.leased);
        let work = move || {
            leased.close();
            Ok(())
        };
        js.promise(threads::start, work, |js, done| js.convert(done))
    }

    fn weight(&self) -> usize {
        const THREAD: usize = 32 << 10; // of its stack, and of the system
        size_of::<randflake::Generator<F, EnvironmentClock>>() + size_of::<Leased<F>>() + THREAD
    }
}

impl<F: Format> Batches for Collected<F> {
    fn check_fill(&self, count: usize) -> Result<()> {
        self.leased.check_fill(count)
    }

    fn fill(&self, ids: &mut [i64]) -> Result<()> {
        self.leased.fill_i64(ids)
    }
}

/// Promises a Randflake with leased node ids.
#[napi]
pub fn lease(store: Value<'_>, secret: Value<'_>, options: Value<'_>) -> Outcome<Returned> {
    outcome(|| {
        let options = Options::new(options, &OPTIONS[1..])?;
        promise(store, options, || {
            let secret = arguments::secret(secret)?;
            Ok(move |location| randflake_leases::Leased::builder(location, &secret))
        })
    })
}

/// Promises a Snowflake of a layout with leased node ids.
#[napi]
pub fn lease_snowflake(
    layout: Value<'_>,
    store: Value<'_>,
    options: Value<'_>,
) -> Outcome<Returned> {
    outcome(|| {
        let layout = *layout.owned::<Layout>()?;
        let options = Options::new(options, &OPTIONS)?;
        promise(store, options, || {
            Ok(move |location| randflake_leases::Leased::for_layout(location, layout))
        })
    })
}

fn promise<'call, F, B>(
    store: Value<'call>,
    options: Options<'call>,
    format: impl FnOnce() -> Result<B>,
) -> Result<Value<'call>>
where
    F: LeasedFormat<Id: Number>,
    B: FnOnce(Location) -> LeasedBuilder<F>,
{
    let js = store.js();
    let leases = Arc::clone(&js.state::<Environment>()?.leases);
    let create = options.boolean(c"create")?;
    let store = Store::new(store, create, options.boolean(c"allowWeakStore")?)?;
    let leases_here = store.is_server();
    let builder = format()?;
    let pending = leases.begin()?;
    let builder = set!(
        builder(store.location()).clock(EnvironmentClock::new(&leases)),
        node_count: options.whole(c"nodeCount", "node ids", 1)?,
        ttl: options.whole(c"ttlSeconds", "seconds", 1)?,
        max_skew: options.whole(c"maxSkewSeconds", "seconds", 0)?,
        namespace: options.get(c"namespace")?.map(|_| options.namespace()).transpose()?,
        acquire_timeout: options.milliseconds(c"acquireTimeoutMs")?,
        max_wait: options.milliseconds(c"maxWaitMs")?,
        max_drift: options.whole(c"maxDriftSeconds", "seconds", 0)?,
        create: create.filter(|_| !leases_here),
    );
    let work = move || {
        let _until_done = pending;
        Ok(Arc::new(Collected { leased: leases.keep(builder.open()?)?, leases_here }))
    };
    js.promise(threads::start, work, |js, flake| {
        Handle::object(js, Arc::clone(&flake) as _, Some(flake))
    })
}

#[allow(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn status_object(js: Js<'_>, status: LeaseStatus) -> Result<Value<'_>> {
    let last_error = status.last_error.map_or_else(|| js.null(), |error| js.error(&error));
    js.object(&[
        (c"state", js.convert(status.state.name())?),
        (c"nodeIds", js.convert(status.node_ids)?.freeze()?),
        (c"start", js.convert(status.start)?),
        (c"endExclusive", js.convert(status.end_exclusive)?),
        (c"secondsLeft", js.convert(status.time_left.as_secs_f64())?),
        (c"renewals", js.convert(status.renewals as f64)?),
        (c"losses", js.convert(status.losses as f64)?),
        (c"lastError", last_error?),
        (c"lastErrorAt", js.convert(status.last_error_at)?),
    ])?
    .freeze()
}
