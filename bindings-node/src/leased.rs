//! Generators with leased node ids.

use std::{sync::Arc, time::Duration};

use napi_derive::napi;
use randflake::{Format, Layout, Reach, Result, bindings};
use randflake_leases::{LeaseStatus, Leased, LeasedBuilder, LeasedFormat, Location};

use crate::{
    arguments::{self, set},
    environment::{Batches, Environment, Generator, Handle},
    ffi::{Callback, Js, Outcome, Value, outcome},
    generator::Number,
    leases::EnvironmentClock,
    metrics,
    stores::Store,
    threads,
};

/// A generator that gives its node ids back in the background once JavaScript has collected it.
struct Collected<F: Format> {
    leased: Arc<Leased<F, EnvironmentClock>>,
    /// Whether the JavaScript thread runs the client of the store: a call that waits there for a
    /// lease keeps the lease from coming.
    leases_here: bool,
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

    fn ready_in(&self) -> Result<Duration> {
        self.leased.ready_in()
    }

    fn node_ids(&self) -> Vec<u32> {
        self.leased.node_ids()
    }

    fn lease<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        js.convert(self.leased.lease().map(|status| status_object(js, status)).transpose()?)
    }

    fn metrics<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        metrics::of_leased(js, &self.leased.metrics())
    }

    fn extend_lease(&self, _: i64) -> Result<()> {
        Err(bindings::lease_of_store())
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
        size_of::<randflake::Generator<F, EnvironmentClock>>()
            + size_of::<Leased<F, EnvironmentClock>>()
            + THREAD
    }
}

impl<F: Format> Batches for Collected<F> {
    fn check_fill(&self, count: usize, here: bool) -> Result<()> {
        if here && self.leases_here {
            let checked = self.leased.try_check_fill(count, Reach::Lease);
            return checked.map_err(|error| self.leased.explain(error));
        }
        self.leased.check_fill(count)
    }

    fn fill(&self, ids: &mut [i64], here: bool) -> Result<()> {
        if here && self.leases_here {
            let filled = self.leased.try_fill_i64(ids, Reach::Lease);
            return filled.map_err(|error| self.leased.explain(error));
        }
        self.leased.fill_i64(ids)
    }
}

/// Promises a generator with leased node ids: a Snowflake of a layout, or a Randflake of a secret.
/// `tell` is called on this thread with each change of the lease.
#[napi]
pub fn lease<'call>(
    store: Value<'call>,
    format: Value<'call>,
    options: Value<'call>,
    tell: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        if let Ok(&layout) = format.owned::<Layout>() {
            return promise(store, options, tell, |location| {
                Ok(Leased::for_layout(location, layout))
            });
        }
        promise(store, options, tell, |location| {
            Ok(Leased::builder(location, &arguments::secret(format)?))
        })
    })
}

fn promise<'call, F: LeasedFormat<Id: Number>>(
    store: Value<'call>,
    options: Value<'call>,
    tell: Value<'call>,
    format: impl FnOnce(Location) -> Result<LeasedBuilder<F>>,
) -> Result<Value<'call>> {
    let js = store.js();
    let leases = Arc::clone(&js.state::<Environment>()?.leases);
    let store = Store::new(store, options.boolean(c"allowWeakStore")?)?;
    let leases_here = store.is_server();
    let tell = Callback::new(tell)?;
    let builder = format(store.location())?.on_lease_change(move |status| {
        let (status, level) = (status.clone(), status.level().name());
        let message = status.message();
        let _ended = tell.call(move |js| change_object(js, status, level, message), |_| ());
    });
    let pending = leases.begin()?;
    let builder = set!(
        builder.clock(EnvironmentClock::new(&leases)),
        node_count: options.whole(c"nodeCount", "node ids", 1)?,
        ttl: options.whole(c"ttlSeconds", "seconds", 1)?,
        max_skew: options.whole(c"maxSkewSeconds", "seconds", 0)?,
        namespace: options.namespace()?,
        acquire_timeout: options.milliseconds(c"acquireTimeoutMs")?,
        max_wait: options.milliseconds(c"maxWaitMs")?,
        max_drift: options.whole(c"maxDriftSeconds", "seconds", 0)?,
        create: options.boolean(c"create")?,
    );
    let work = move || {
        let kept = builder.open().and_then(|leased| leases.keep(leased));
        drop(pending); // not before the environment knows of it
        Ok(Arc::new(Collected { leased: kept?, leases_here }))
    };
    js.promise(threads::start, work, |js, flake| {
        Handle::object(js, Arc::clone(&flake) as _, Some(flake))
    })
}

fn change_object<'call>(
    js: Js<'call>,
    status: LeaseStatus,
    level: &str,
    message: String,
) -> Result<Value<'call>> {
    js.object(&[
        (c"status", status_object(js, status)?),
        (c"level", js.convert(level)?),
        (c"message", js.convert(message)?),
    ])
}

#[allow(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn status_object(js: Js<'_>, status: LeaseStatus) -> Result<Value<'_>> {
    let last_error = status.last_error.map(|error| js.error(&error)).transpose()?;
    js.object(&[
        (c"state", js.convert(status.state.name())?),
        (c"nodeIds", js.convert(status.node_ids)?.freeze()?),
        (c"start", js.convert(status.start)?),
        (c"endExclusive", js.convert(status.end_exclusive)?),
        (c"secondsLeft", js.convert(status.time_left.as_secs_f64())?),
        (c"renewals", js.convert(status.renewals as f64)?),
        (c"losses", js.convert(status.losses as f64)?),
        (c"lastError", js.convert(last_error)?),
        (c"lastErrorAt", js.convert(status.last_error_at)?),
        (c"store", js.convert(status.store)?),
        (c"namespace", js.convert(status.namespace)?),
        (c"replacements", js.convert(status.replacements as f64)?),
    ])?
    .freeze()
}
