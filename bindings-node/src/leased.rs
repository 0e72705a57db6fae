//! Generators with leased node ids.

use std::{sync::Arc, time::Duration};

use napi_derive::napi;
use randflake::{Call, Clock, Error, ErrorKind, Format, Layout, Result, Secret, SystemClock, Wait};
use randflake_leases::{
    LeaseStatus, Leased, LeasedBuilder, LeasedFormat, Location,
    bindings::{Polling, repeat},
};

use crate::{
    arguments::{self, set},
    clock::EnvironmentClock,
    environment::{Batches, DynGenerator, Environment, Handle},
    ffi::{Callback, Js, Outcome, Value, outcome},
    generator::Number,
    lazy::LazyLease,
    metrics,
    stores::Store,
    threads,
};

/// How long a closed generator waits for a first lease that is on its way, to give it back.
const LONGEST_RELEASE: Duration = Duration::from_secs(5);

/// A generator that gives its node ids back in the background once JavaScript has collected it.
struct Collected<F: Format> {
    leased: Arc<Leased<F, EnvironmentClock>>,
    first: Arc<LazyLease<F>>,
    /// Whether the JavaScript thread may wait. Not where it runs the client of the store: a call that
    /// waits there for a lease keeps the lease from arriving.
    wait_here: Wait,
}

impl<F: Format> Collected<F> {
    #[cold]
    fn generate_again(&self, error: Error) -> Result<i64> {
        // Waits only for a first lease, on a thread that has other calls to serve.
        if !lacks_first_lease(&error) {
            return Err(self.leased.explain(error));
        }
        let explain = |error| self.leased.explain(error);
        let fill = || {
            let mut id = [0];
            self.leased.try_fill(&mut id, Call::default()).map(|()| id[0])
        };
        repeat(error, fill, |error| self.recover(error, true), explain)
    }

    /// Returns whether a call may wait, `here` on the JavaScript thread, or in another one.
    fn wait(&self, here: bool) -> Wait {
        if here { self.wait_here } else { Wait::MaxWait }
    }

    /// Recovers from the error of a call; then repeat the call.
    #[cold]
    fn recover(&self, error: Error, here: bool) -> Result<()> {
        match (lacks_first_lease(&error), self.wait(here)) {
            (false, Wait::Never) => Err(error),
            (false, Wait::MaxWait) => self.leased.recover(error),
            (true, _) if !here => self.first.take(),
            (true, Wait::Never) => self.first.take_elsewhere(Duration::ZERO),
            (true, Wait::MaxWait) => self.first.take_elsewhere(self.leased.max_wait()),
        }
    }

    /// Makes a batch, and once more after a recovery.
    fn with_lease(&self, here: bool, mut batch: impl FnMut(Call) -> Result<()>) -> Result<()> {
        // Even where a recovery must not wait, a batch may: for the ticks that it needs.
        let call = match self.wait(here) {
            Wait::Never => Call::default(),
            Wait::MaxWait => Call::OVER_RENEWALS,
        };
        batch(call).or_else(|error| {
            let recover = |error| self.recover(error, here);
            let recover = |error| recover(error).map_err(|error| self.leased.explain(error));
            repeat(error, || batch(call), recover, |error| self.leased.explain(error))
        })
    }
}

/// Returns whether a call failed in a process that has no lease yet, or not since a restore.
fn lacks_first_lease(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::LeaseUnavailable | ErrorKind::Forked)
}

impl<F: Format> Drop for Collected<F> {
    fn drop(&mut self) {
        self.leased.stop();
    }
}

impl<F: Format<Id: Number>> DynGenerator for Collected<F> {
    #[inline]
    fn generate(&self) -> Result<i64> {
        self.leased
            .try_generate(Call::default())
            .map(Number::bits)
            .or_else(|error| self.generate_again(error))
    }

    fn ready_in(&self) -> Result<Duration> {
        self.leased.try_ready_in().map_err(|error| self.leased.explain(error))
    }

    fn first_lease<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        let ready_in = self.leased.try_ready_in();
        if !ready_in.is_err_and(|error| lacks_first_lease(&error)) {
            return js.convert(());
        }
        let first = Arc::clone(&self.first);
        js.promise(threads::start, move || first.take(), |js, taken| js.convert(taken))
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

    fn close(&self) {
        self.leased.stop();
    }

    fn released<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        let (leased, first) = (Arc::clone(&self.leased), Arc::clone(&self.first));
        let work = move || {
            leased.stop();
            let mut polling = Polling::new();
            while first.is_pending()
                && let Some(left) = polling.left_of(LONGEST_RELEASE)
            {
                polling.pause(left, |pause| SystemClock.sleep(pause))?;
            }
            leased.close();
            Ok(())
        };
        js.promise(threads::start, work, |js, done| js.convert(done))
    }

    fn weight(&self) -> usize {
        const THREAD: usize = 32 << 10; // for its stack, and for the system
        size_of::<randflake::Generator<F, EnvironmentClock>>()
            + size_of::<Leased<F, EnvironmentClock>>()
            + THREAD
    }
}

impl<F: Format> Batches for Collected<F> {
    fn check_fill(&self, count: usize, here: bool) -> Result<()> {
        self.with_lease(here, |call| self.leased.try_check_fill(count, call))
    }

    fn fill(&self, ids: &mut [i64], here: bool) -> Result<()> {
        self.with_lease(here, |call| self.leased.try_fill(ids, call))
    }
}

/// Promises a generator with leased node ids: a Snowflake of a layout, or a Randflake of a secret.
/// `lazily` returns one that takes its first lease with its first id. `tell` is called on this thread
/// with each change of the lease.
#[napi]
pub fn lease<'call>(
    store: Value<'call>,
    format: Value<'call>,
    options: Value<'call>,
    tell: Value<'call>,
    lazily: bool,
) -> Outcome<Value<'call>> {
    outcome(|| {
        if let Ok(&layout) = format.owned::<Layout>() {
            return make(store, options, tell, lazily, |location| {
                Ok(Leased::for_layout(location, layout))
            });
        }
        make(store, options, tell, lazily, |location| {
            Ok(Leased::builder(location, &arguments::secret(format)?))
        })
    })
}

/// Checks the options of a generator with leased node ids: of a layout, or of a secret that is not
/// read yet.
#[napi]
pub fn check_lease_options(layout: Value<'_>, options: Value<'_>) -> Outcome<()> {
    outcome(|| {
        options.boolean(c"allowWeakStore")?;
        if layout.is_undefined() {
            let builder = Leased::builder("", &Secret::random());
            return with_options(builder, options)?.open_lazily().map(drop);
        }
        let builder = Leased::for_layout("", *layout.owned()?);
        with_options(builder, options)?.open_lazily().map(drop)
    })
}

fn with_options<F: LeasedFormat, C: Clock + Send + Sync + 'static>(
    builder: LeasedBuilder<F, C>,
    options: Value<'_>,
) -> Result<LeasedBuilder<F, C>> {
    Ok(set!(
        builder,
        node_count: options.whole(c"nodeCount", "node ids", 1)?,
        ttl: options.whole(c"ttlSeconds", "seconds", 1)?,
        max_skew: options.whole(c"maxSkewSeconds", "seconds", 0)?,
        namespace: options.namespace()?,
        acquire_timeout: options.milliseconds(c"acquireTimeoutMs")?,
        max_wait: options.milliseconds(c"maxWaitMs")?,
        max_drift: options.whole(c"maxDriftSeconds", "seconds", 0)?,
        create: options.boolean(c"create")?,
    ))
}

fn make<'call, F: LeasedFormat<Id: Number>>(
    store: Value<'call>,
    options: Value<'call>,
    tell: Value<'call>,
    lazily: bool,
    format: impl FnOnce(Location) -> Result<LeasedBuilder<F>>,
) -> Result<Value<'call>> {
    let js = store.js();
    let closing = Arc::clone(&js.state::<Environment>()?.closing);
    let store = Store::new(store, options.boolean(c"allowWeakStore")?)?;
    let wait_here = store.wait_here();
    let tell = Callback::new(tell)?;
    let builder = format(store.location())?.on_lease_change(move |status| {
        let (status, level) = (status.clone(), status.level().name());
        let message = status.message();
        let _ended = tell.call(move |js| change_object(js, status, level, message), |_| ());
    });
    let pending = closing.begin()?;
    let builder = with_options(builder.clock(EnvironmentClock::new(&closing)), options)?;
    let collected = move |leased, closing| {
        let first = Arc::new(LazyLease::new(Arc::clone(&leased), closing));
        Arc::new(Collected { leased, first, wait_here })
    };
    if lazily {
        return Handle::shared(js, collected(Arc::new(builder.open_lazily()?), closing));
    }
    let work = move || {
        let opened = builder.open().map(Arc::new);
        let kept =
            opened.and_then(|leased| closing.keep(Arc::clone(&leased) as _).map(|()| leased));
        drop(pending); // not before the environment knows of it
        Ok(collected(kept?, closing))
    };
    js.promise(threads::start, work, Handle::shared)
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
