//! The functions of generators, and generators with node ids of their own.

use std::{sync::Arc, time::Duration};

use napi::bindgen_prelude::{BigInt64Array, Null};
use napi_derive::napi;
use randflake::{
    Builder, Call, Clock, Error, ErrorKind, Format, Id, Layout, Randflake, Result, Snowflake,
};
use randflake_leases::LeasedMetrics;

use crate::{
    arguments::{self, set},
    clock::EnvironmentClock,
    clock::InjectedClock,
    environment::{Batches, DynGenerator, Environment, Handle},
    ffi::{Js, Outcome, Reference, Value, fill_by_copy, in_place, outcome, whole_ms},
    metrics,
};

/// An id of either format.
pub(crate) trait Number {
    fn bits(self) -> i64;
}

impl Number for Id {
    fn bits(self) -> i64 {
        self.into()
    }
}

impl Number for u64 {
    fn bits(self) -> i64 {
        self.cast_signed()
    }
}

impl<F: Format<Id: Number>, C: Clock + 'static> DynGenerator for randflake::Generator<F, C> {
    #[inline]
    fn generate(&self) -> Result<i64> {
        self.generate().map(Number::bits)
    }

    fn ready_in(&self) -> Result<Duration> {
        self.ready_in()
    }

    fn node_ids(&self) -> Vec<u32> {
        self.node_ids().to_vec()
    }

    fn lease<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        let Some(lease) = self.lease() else { return js.convert(Null) };
        js.object(&[
            (c"start", js.convert(lease.start())?),
            (c"endExclusive", js.convert(lease.end_exclusive())?),
        ])
    }

    fn metrics<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        metrics::of_generator(js, &self.metrics())
    }

    fn extend_lease(&self, end_exclusive: i64) -> Result<()> {
        self.extend_lease(end_exclusive)
    }

    fn close(&self) {
        self.close();
    }
}

impl<F: Format, C: Clock> Batches for randflake::Generator<F, C> {
    fn check_fill(&self, count: usize, _: bool) -> Result<()> {
        self.check_fill(count, Call::default())
    }

    fn fill(&self, ids: &mut [i64], _: bool) -> Result<()> {
        self.fill_i64(ids)
    }
}

/// Makes a generator: a Snowflake of a layout, or a Randflake of a secret.
#[napi]
pub fn create_generator<'call>(
    format: Value<'call>,
    node_ids: Value<'call>,
    options: Value<'call>,
    clock: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        if let Ok(&layout) = format.owned::<Layout>() {
            let node_ids = arguments::node_ids(node_ids, &layout)?;
            return build(Snowflake::builder(layout).node_ids(node_ids), options, clock);
        }
        let node_ids = arguments::node_ids(node_ids, &Layout::randflake())?;
        let secret = arguments::secret(format)?;
        build(Randflake::builder(&secret).node_ids(node_ids), options, clock)
    })
}

fn build<'call, F: Format<Id: Number>>(
    builder: Builder<F>,
    options: Value<'call>,
    clock: Value<'call>,
) -> Result<Value<'call>> {
    let js = options.js();
    let builder = set!(
        builder,
        lease: options.lease()?,
        max_wait: options.milliseconds(c"maxWaitMs")?,
        max_drift: options.whole(c"maxDriftSeconds", "seconds", 0)?,
        restart_safe: options.boolean(c"restartSafe")?,
    );
    if clock.is_undefined() {
        let clock = EnvironmentClock::new(&js.state::<Environment>()?.closing);
        let flake = Arc::new(builder.clock(clock).build()?);
        return Handle::shared(js, flake);
    }
    let flake = builder.clock(InjectedClock(Reference::new(clock)?)).build()?;
    Handle::object(js, Arc::from(flake), None)
}

/// Fills an array and returns true. Without that result the array holds other numbers: in a worker
/// that is being terminated, a script continues where an error could not be thrown.
pub(crate) fn fill([flake, ids]: [Value<'_>; 2]) -> Result<Value<'_>> {
    let Handle { generator, batches, .. } = flake.owned()?;
    let filled = match batches {
        Some(batches) => in_place(ids, |ids| batches.fill(ids, true)),
        None => fill_by_copy(ids, |ids| generator.fill(ids, true)),
    };
    filled.unwrap_or_else(|| Err(arguments::not_ids(ids)))?;
    flake.js().convert(true)
}

#[napi]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they saturate")]
pub fn check_fill(flake: Value<'_>, count: f64) -> Outcome<()> {
    outcome(|| flake.owned::<Handle>()?.generator.check_fill(count as usize, true))
}

/// Promises a batch that another thread makes, in memory that JavaScript gets only afterwards;
/// undefined if only this thread can make it.
#[napi]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they saturate")]
pub fn generate_many_async(flake: Value<'_>, count: f64) -> Outcome<Value<'_>> {
    outcome(|| {
        let (js, handle, count) = (flake.js(), flake.owned::<Handle>()?, count as usize);
        let Some(batches) = handle.batches.clone() else {
            return js.convert(());
        };
        let work = move || {
            batches.check_fill(count, false)?;
            let mut ids = Vec::new();
            ids.try_reserve_exact(count).map_err(|_| {
                let why = format!("not enough memory for {count} ids; ask for fewer at a time");
                Error::new(ErrorKind::InvalidArgument, why)
            })?;
            ids.resize(count, 0);
            batches.fill(&mut ids, false)?;
            Ok(BigInt64Array::new(ids))
        };
        js.promise(|job| handle.threads.start(job), work, |js, done| js.convert(done))
    })
}

#[napi]
pub fn ready_in_ms(flake: Value<'_>) -> Outcome<f64> {
    outcome(|| flake.owned::<Handle>()?.generator.ready_in().map(whole_ms))
}

/// Returns the index of a generator in the table of its environment.
#[napi]
#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
pub fn generator_index(flake: Value<'_>) -> Outcome<f64> {
    outcome(|| Ok(flake.owned::<Handle>()?.index as f64))
}

#[napi]
pub fn node_ids(flake: Value<'_>) -> Outcome<Vec<u32>> {
    outcome(|| Ok(flake.owned::<Handle>()?.generator.node_ids()))
}

#[napi]
pub fn lease_of(flake: Value<'_>) -> Outcome<Value<'_>> {
    outcome(|| flake.owned::<Handle>()?.generator.lease(flake.js()))
}

/// Returns what a generator has done; zeros for undefined, a lazy generator that has not been used.
#[napi]
pub fn metrics_of(flake: Value<'_>) -> Outcome<Value<'_>> {
    outcome(|| {
        if flake.is_undefined() {
            return metrics::of_leased(flake.js(), &LeasedMetrics::default());
        }
        flake.owned::<Handle>()?.generator.metrics(flake.js())
    })
}

#[napi]
pub fn extend_lease(flake: Value<'_>, end_exclusive: Value<'_>) -> Outcome<()> {
    outcome(|| {
        let end_exclusive = arguments::lease_second(end_exclusive)?;
        flake.owned::<Handle>()?.generator.extend_lease(end_exclusive)
    })
}

#[napi]
pub fn close(flake: Value<'_>) -> Outcome<()> {
    outcome(|| {
        flake.owned::<Handle>()?.generator.close();
        Ok(())
    })
}

/// Promises that a generator which was made without a lease has one; undefined for others.
#[napi]
pub fn first_lease(flake: Value<'_>) -> Outcome<Value<'_>> {
    outcome(|| flake.owned::<Handle>()?.generator.first_lease(flake.js()))
}

/// Promises that the leased node ids of a closed generator were given back.
#[napi]
pub fn released(flake: Value<'_>) -> Outcome<Value<'_>> {
    outcome(|| flake.owned::<Handle>()?.generator.released(flake.js()))
}
