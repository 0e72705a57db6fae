use std::{sync::Arc, time::Duration};

use napi::bindgen_prelude::BigInt64Array;
use randflake::{Clock, Error, ErrorKind, Id, Layout, Lease, Parts, Randflake, Reach, Result};

use crate::{
    arguments,
    clock::InjectedClock,
    leased::{EnvironmentClock, Leases},
    places,
    raw::{Js, Scriptless, Value},
    threads::Threads,
};

/// What JavaScript generates with. All kinds have the same functions.
pub(crate) trait Generator: 'static {
    /// Makes one id and returns its bits.
    fn generate(&self) -> Result<i64>;
    fn fill(&self, ids: Value<'_>) -> Result<()>;
    /// Checks whether so many ids would be refused, before there is memory for them.
    fn check_fill(&self, count: usize) -> Result<()>;
    fn ready_in(&self) -> Result<Duration>;
    fn node_ids(&self) -> Vec<u32>;
    fn lease<'call>(&self, js: Js<'call>) -> Result<Value<'call>>;
    fn extend_lease(&self, end_exclusive: i64) -> Result<()>;
    fn close(&self);

    /// Returns about how many bytes it takes outside of JavaScript's memory.
    fn weight(&self) -> usize {
        size_of_val(self) + size_of::<u32>() * self.node_ids().len()
    }
}

/// A generator whose ids are encrypted.
pub(crate) trait Encrypting: Generator {
    fn inspect(&self, id: Id) -> Parts;
    fn encrypt(&self, raw: u64) -> Id;
    fn decrypt(&self, id: Id) -> u64;
}

/// What differs between the machine's clock and one written in JavaScript.
pub(crate) trait NodeClock<G>: Clock + Sized + 'static {
    fn fill(flake: &G, ids: Value<'_>) -> Result<()>;
}

impl<G: Scriptless> NodeClock<G> for EnvironmentClock {
    fn fill(flake: &G, ids: Value<'_>) -> Result<()> {
        fill_in_place(flake, ids)
    }
}

impl NodeClock<Randflake<Self>> for InjectedClock {
    fn fill(flake: &Randflake<Self>, ids: Value<'_>) -> Result<()> {
        fill_by_copy(ids, |own| flake.fill_i64(own))
    }
}

impl<C: NodeClock<Self>> Generator for Randflake<C> {
    #[inline]
    fn generate(&self) -> Result<i64> {
        self.generate().map(i64::from)
    }

    fn fill(&self, ids: Value<'_>) -> Result<()> {
        C::fill(self, ids)
    }

    fn check_fill(&self, count: usize) -> Result<()> {
        self.check_fill(count, Reach::Lease)
    }

    fn ready_in(&self) -> Result<Duration> {
        self.ready_in()
    }

    fn node_ids(&self) -> Vec<u32> {
        self.node_ids().to_vec()
    }

    fn lease<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        lease_object(js, self.lease())
    }

    fn extend_lease(&self, end_exclusive: i64) -> Result<()> {
        self.extend_lease(end_exclusive)
    }

    fn close(&self) {
        self.close();
    }
}

impl<C: NodeClock<Self>> Encrypting for Randflake<C> {
    fn inspect(&self, id: Id) -> Parts {
        self.inspect(id)
    }

    fn encrypt(&self, raw: u64) -> Id {
        self.encrypt(raw)
    }

    fn decrypt(&self, id: Id) -> u64 {
        self.decrypt(id)
    }
}

pub(crate) fn fill_in_place(flake: &impl Scriptless, ids: Value<'_>) -> Result<()> {
    ids.fill(flake).unwrap_or_else(|| Err(arguments::not_ids(ids)))
}

/// Fills an array while an injected clock is asked. The clock's script could look at the array, or
/// take it away: it gets to see neither half an answer nor our memory.
pub(crate) fn fill_by_copy(
    ids: Value<'_>,
    fill: impl FnOnce(&mut [i64]) -> Result<()>,
) -> Result<()> {
    let invalid = || arguments::not_ids(ids);
    let mut own = ids.copied::<i64>().ok_or_else(invalid)?;
    let filled = fill(&mut own); // zeroed if it failed
    ids.overwrite(&own).ok_or_else(invalid).and(filled)
}

pub(crate) fn lease_object(js: Js<'_>, lease: Option<Lease>) -> Result<Value<'_>> {
    match lease {
        None => js.null(),
        Some(lease) => js.object(&[
            (c"start", js.unix_second(lease.start())?),
            (c"endExclusive", js.unix_second(lease.end_exclusive())?),
        ]),
    }
}

/// Sets on the builder of a generator what its options say.
macro_rules! configured {
    ($builder:expr, $options:expr) => {{
        let (mut builder, options) = ($builder, &$options);
        if let Some(lease) = options.lease {
            builder = builder.lease(lease);
        }
        if let Some(max_wait) = options.max_wait {
            builder = builder.max_wait(max_wait);
        }
        if let Some(max_drift) = options.max_drift {
            builder = builder.max_drift(max_drift);
        }
        if let Some(restart_safe) = options.restart_safe {
            builder = builder.restart_safe(restart_safe);
        }
        builder
    }};
}
pub(crate) use configured;

/// Makes a generator: an object with its functions.
pub(crate) fn create<'call>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    [node_ids, secret, options]: [Value<'call>; 3],
) -> Result<Value<'call>> {
    let node_ids = arguments::node_ids(node_ids, &Layout::randflake())?;
    let secret = arguments::secret(secret)?;
    let options = arguments::options(options, arguments::OPTIONS)?;
    let builder = configured!(Randflake::builder(&secret).node_ids(node_ids), options);
    match options.clock {
        None => {
            let clock = EnvironmentClock::new(leases);
            let flake = Arc::new(builder.clock(clock).build()?);
            let object = functions(js, &flake)?;
            add_async(js, object, &flake)?;
            Ok(object)
        }
        Some(clock) => functions(js, &Arc::from(builder.clock(clock).build()?)),
    }
}

/// Adds the function that works on other threads, for generators that those can use as well.
pub(crate) fn add_async<'call, G: Scriptless>(
    js: Js<'call>,
    object: Value<'call>,
    flake: &Arc<G>,
) -> Result<()> {
    let data = Arc::new((Arc::clone(flake), Arc::<Threads>::default()));
    let function = js.function(c"generateManyAsync", data, generate_many_async::<G>)?;
    object.set(c"generateManyAsync", function)
}

pub(crate) fn functions<'call, G: Encrypting>(
    js: Js<'call>,
    flake: &Arc<G>,
) -> Result<Value<'call>> {
    let object = generating(js, flake)?;
    macro_rules! add {
        ($name:literal, $call:expr) => {
            object.set($name, js.function($name, Arc::clone(flake), $call)?)?
        };
    }
    add!(c"inspect", inspect::<G>);
    add!(c"encrypt", encrypt::<G>);
    add!(c"decrypt", decrypt::<G>);
    Ok(object)
}

/// Makes an object with the functions that every generator has.
pub(crate) fn generating<'call, G: Generator>(
    js: Js<'call>,
    flake: &Arc<G>,
) -> Result<Value<'call>> {
    macro_rules! function {
        ($name:literal, $call:expr) => {
            ($name, js.function($name, Arc::clone(flake), $call)?)
        };
    }
    // The function `place` owns the place: collected with the generator's object, it gives it up.
    let place = js.environment()?.places.take(js, Arc::clone(flake) as _);
    #[allow(clippy::arc_with_non_send_sync, reason = "as data of a function; stays on its thread")]
    let place = Arc::new(place);
    js.object(&[
        (c"place", js.function(c"place", place, places::place)?),
        function!(c"fill", fill::<G>),
        function!(c"checkFill", check_fill::<G>),
        function!(c"readyInMs", ready_in_ms::<G>),
        function!(c"nodeIds", node_ids::<G>),
        function!(c"lease", lease::<G>),
        function!(c"extendLease", extend_lease::<G>),
        function!(c"close", close::<G>),
    ])
}

/// Fills an array and returns true, as `places::generate` does.
fn fill<'call, G: Generator>(
    flake: &G,
    js: Js<'call>,
    [ids]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    flake.fill(ids)?;
    js.boolean(true)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they saturate")]
fn check_fill<'call, G: Generator>(
    flake: &G,
    js: Js<'call>,
    [count]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    flake.check_fill(count.as_number().unwrap_or(0.0) as usize)?;
    js.undefined()
}

/// Promises a batch that is made on another thread, in memory that JavaScript gets only afterwards.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they saturate")]
fn generate_many_async<'call, G: Scriptless>(
    (flake, threads): &(Arc<G>, Arc<Threads>),
    js: Js<'call>,
    [count]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    let count = count.as_number().unwrap_or(0.0) as usize;
    let flake = Arc::clone(flake);
    let work = move || {
        flake.check_fill(count)?;
        let mut ids = Vec::new();
        ids.try_reserve_exact(count).map_err(|_| {
            let why = format!("there is no memory for {count} ids; ask for fewer at a time");
            Error::new(ErrorKind::InvalidArgument, why)
        })?;
        ids.resize(count, 0);
        flake.fill_i64(&mut ids)?;
        Ok(ids)
    };
    js.promise_by(|job| threads.start(job), work, |js, ids| js.convert(BigInt64Array::new(ids)))
}

fn ready_in_ms<'call, G: Generator>(
    flake: &G,
    js: Js<'call>,
    []: [Value<'call>; 0],
) -> Result<Value<'call>> {
    js.number(whole_ms(flake.ready_in()?))
}

fn inspect<'call, G: Encrypting>(
    flake: &G,
    js: Js<'call>,
    [id, parts]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    write_parts(flake.inspect(arguments::id(id)?), parts)?;
    js.undefined()
}

fn encrypt<'call, G: Encrypting>(
    flake: &G,
    js: Js<'call>,
    [raw]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    js.bigint(flake.encrypt(arguments::raw(raw)?).into())
}

fn decrypt<'call, G: Encrypting>(
    flake: &G,
    js: Js<'call>,
    [id]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    js.unsigned_bigint(flake.decrypt(arguments::id(id)?))
}

fn node_ids<'call, G: Generator>(
    flake: &G,
    js: Js<'call>,
    []: [Value<'call>; 0],
) -> Result<Value<'call>> {
    numbers(js, &flake.node_ids())
}

fn lease<'call, G: Generator>(
    flake: &G,
    js: Js<'call>,
    []: [Value<'call>; 0],
) -> Result<Value<'call>> {
    flake.lease(js)
}

fn extend_lease<'call, G: Generator>(
    flake: &G,
    js: Js<'call>,
    [end_exclusive]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    flake.extend_lease(arguments::lease_second(end_exclusive)?)?;
    js.undefined()
}

fn close<'call, G: Generator>(
    flake: &G,
    js: Js<'call>,
    []: [Value<'call>; 0],
) -> Result<Value<'call>> {
    flake.close();
    js.undefined()
}

/// Makes an array of node ids.
pub(crate) fn numbers<'call>(js: Js<'call>, node_ids: &[u32]) -> Result<Value<'call>> {
    let numbers = node_ids.iter().map(|&node_id| js.number(node_id.into()));
    js.array(&numbers.collect::<Result<Vec<_>>>()?)
}

/// Writes the parts of an id into a `Float64Array`, of which `index.js` makes an object: that
/// takes a fifth of the time that making one here does.
#[allow(clippy::cast_precision_loss, reason = "unix seconds are far below 2^53")]
pub(crate) fn write_parts(parts: Parts, room: Value<'_>) -> Result<()> {
    write_numbers([parts.timestamp as f64, parts.node_id.into(), parts.sequence.into()], room)
}

pub(crate) fn write_numbers(parts: [f64; 3], room: Value<'_>) -> Result<()> {
    room.overwrite(&parts).ok_or_else(|| {
        Error::new(ErrorKind::Internal, "the parts of an id go into a Float64Array of three")
    })
}

/// Returns the fewest whole milliseconds that are not shorter than `duration`.
#[allow(clippy::cast_precision_loss, reason = "waits are far below 2^53 ms")]
pub(crate) fn whole_ms(duration: Duration) -> f64 {
    duration.as_nanos().div_ceil(1_000_000) as f64
}
