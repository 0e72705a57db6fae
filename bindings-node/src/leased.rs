//! Generators with leased node ids, which end with their environment: the main thread's or a
//! worker's.

use std::{
    convert::Infallible,
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

use randflake::{
    Clock, Encrypted, Error, ErrorKind, Format, Id, Layout, Parts, Plain, RawParts, Reach, Result,
    SystemClock,
};
use randflake_leases::{LeaseStatus, Leased, LeasedBuilder, LeasedFormat, Location};

use crate::{
    arguments::{self, Store},
    client,
    generator::{self, Encrypting, Generator, fill_in_place, numbers},
    raw::{Js, Value},
    snowflake::{self, Reading},
};

/// How long the end of an environment waits for the store.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often a wait looks whether its environment has ended.
pub(crate) const LONGEST_SLICE: Duration = Duration::from_millis(50);

/// What a generator generates.
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

/// A generator that, once collected, gives its node ids back without anybody waiting.
pub(crate) struct Kept<F: Format> {
    pub(crate) leased: Arc<Leased<F, EnvironmentClock>>,
    /// Where the JavaScript thread runs the client of the store: what waits there for a lease keeps
    /// the lease from coming.
    leases_here: bool,
}

impl<F: Format> Kept<F> {
    /// Returns how far a batch may reach that is made on the JavaScript thread.
    pub(crate) fn reach_here(&self) -> Reach {
        if self.leases_here { Reach::Lease } else { Reach::Renewals }
    }

    /// Asks the generator for a batch on the JavaScript thread; asks again where something could be done there
    /// about its error.
    #[inline]
    pub(crate) fn ask<T>(
        &self,
        mut ask: impl FnMut(&Leased<F, EnvironmentClock>) -> Result<T>,
    ) -> Result<T> {
        let mut recovered = false;
        // A loop, because the compiler merges a call into its caller only where it is written once.
        loop {
            match ask(&self.leased) {
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

impl<F: Format> Drop for Kept<F> {
    fn drop(&mut self) {
        self.leased.stop();
    }
}

/// What is leased in an environment.
pub(crate) struct Leases(Mutex<Desk>);

struct Desk {
    /// Also those that were collected, until the store knows.
    held: Vec<Arc<dyn Ending>>,
    /// None once the environment has ended. Each thread that asks the store for something has one
    /// of the senders: they are all gone when all is done.
    open: Option<(Sender<Infallible>, Receiver<Infallible>)>,
}

/// A leased generator, whatever it generates.
trait Ending: Send + Sync {
    fn stop(&self);
    fn close(&self);
    fn is_ended(&self) -> bool;
}

impl<F: Format> Ending for Leased<F, EnvironmentClock> {
    fn stop(&self) {
        self.stop();
    }

    fn close(&self) {
        self.close();
    }

    fn is_ended(&self) -> bool {
        self.is_ended()
    }
}

impl Default for Leases {
    fn default() -> Self {
        Self(Mutex::new(Desk { held: Vec::new(), open: Some(mpsc::channel()) }))
    }
}

impl Leases {
    /// Ends all generators, gives their node ids back and waits for that, for some seconds at
    /// most. What is being acquired is given up, or given back.
    pub(crate) fn end(&self) {
        let mut desk = self.lock();
        let Some((asking, done)) = desk.open.take() else { return };
        let held = mem::take(&mut desk.held);
        drop(desk);
        for leased in &held {
            leased.stop(); // all at once
        }
        // Each close waits by itself, and all together may not wait longer than one.
        let wait = move || {
            let _until_done = asking;
            for leased in held {
                leased.close();
            }
        };
        if thread::Builder::new().spawn(wait).is_ok() {
            let _ = done.recv_timeout(PATIENCE);
        }
    }

    /// Returns whether the environment has ended: no JavaScript runs any more.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().open.is_none()
    }

    /// Takes a generator in, so that it ends with the environment.
    fn keep<F: Format>(
        &self,
        leased: Leased<F, EnvironmentClock>,
        leases_here: bool,
    ) -> Result<Kept<F>> {
        let mut desk = self.lock();
        if desk.open.is_none() {
            drop(desk);
            leased.close();
            return Err(ended());
        }
        let leased = Arc::new(leased);
        desk.held.retain(|other| !other.is_ended());
        desk.held.push(Arc::clone(&leased) as _);
        Ok(Kept { leased, leases_here })
    }

    /// A list of leases is good whatever has panicked.
    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cold]
pub(crate) fn ended() -> Error {
    Error::new(ErrorKind::Closed, "this process, or this worker, is ending and leases nothing")
}

/// The machine's clock; its waits end with an environment.
pub(crate) struct EnvironmentClock(Arc<Leases>);

impl EnvironmentClock {
    pub(crate) fn new(leases: &Arc<Leases>) -> Self {
        Self(Arc::clone(leases))
    }
}

impl Clock for EnvironmentClock {
    #[inline]
    fn now(&self) -> Result<i64> {
        SystemClock.now()
    }

    fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
        let mut slept = Duration::ZERO;
        while slept < duration {
            if self.0.is_over() {
                return Err(ended());
            }
            let slice = LONGEST_SLICE.min(duration.saturating_sub(slept));
            slept += SystemClock.sleep(slice)?.unwrap_or(slice);
        }
        Ok(Some(slept))
    }

    #[inline]
    fn glance(&self) -> Option<i64> {
        SystemClock.glance()
    }

    #[inline]
    fn counter(&self) -> Option<u64> {
        SystemClock.counter()
    }

    fn is_system(&self) -> bool {
        true
    }
}

/// Promises a generator with leased node ids.
pub(crate) fn create<'call>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    [store, secret, options]: [Value<'call>; 3],
) -> Result<Value<'call>> {
    let options = arguments::lease_options(options, arguments::LEASE_OPTIONS)?;
    let store = arguments::store(store, options.create, options.allow_weak)?;
    let secret = arguments::secret(secret)?;
    let builder = |location| Leased::builder(location, &secret);
    promise(leases, js, store, options, builder, generator::functions)
}

/// Promises a generator of a layout's ids with leased node ids.
pub(crate) fn create_snowflake<'call>(
    (layout, leases): &(Layout, Arc<Leases>),
    js: Js<'call>,
    [store, options]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    let options = arguments::lease_options(options, arguments::SNOWFLAKE_LEASE_OPTIONS)?;
    let store = arguments::store(store, options.create, options.allow_weak)?;
    let builder = |location| Leased::for_layout(location, *layout);
    promise(leases, js, store, options, builder, snowflake::functions)
}

fn promise<'call, F>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    store: Store,
    options: arguments::LeaseOptions,
    builder: impl FnOnce(Location) -> LeasedBuilder<F>,
    functions: impl for<'a> FnOnce(Js<'a>, &Arc<Kept<F>>) -> Result<Value<'a>> + Send + 'static,
) -> Result<Value<'call>>
where
    F: LeasedFormat<Id: Number>,
{
    let leases = Arc::clone(leases);
    let asking = leases.lock().open.as_ref().map(|(asking, _)| asking.clone());
    let asking = asking.ok_or_else(ended)?;
    let leases_here = matches!(store, Store::Server(_));
    let location = location_of(store, &leases);
    let mut builder = builder(location).clock(EnvironmentClock::new(&leases));
    if let Some(node_count) = options.node_count {
        builder = builder.node_count(node_count);
    }
    if let (Some(create), false) = (options.create, leases_here) {
        builder = builder.create(create);
    }
    if let Some(ttl) = options.ttl {
        builder = builder.ttl(ttl);
    }
    if let Some(max_skew) = options.max_skew {
        builder = builder.max_skew(max_skew);
    }
    if let Some(namespace) = options.namespace {
        builder = builder.namespace(namespace);
    }
    if let Some(acquire_timeout) = options.acquire_timeout {
        builder = builder.acquire_timeout(acquire_timeout);
    }
    if let Some(max_wait) = options.max_wait {
        builder = builder.max_wait(max_wait);
    }
    if let Some(max_drift) = options.max_drift {
        builder = builder.max_drift(max_drift);
    }
    let work = move || {
        let _until_done = asking;
        leases.keep(builder.open()?, leases_here)
    };
    js.promise(work, |js, kept| {
        let kept = Arc::new(kept);
        let object = functions(js, &kept)?;
        generator::add_async(js, object, &kept)?;
        object.set(c"released", js.function(c"released", Arc::new(kept), released::<F>)?)?;
        Ok(object)
    })
}

/// Says where a store is, and how to open it.
pub(crate) fn location_of(store: Store, leases: &Arc<Leases>) -> Location {
    match store {
        Store::Path(path) => path.into(),
        Store::Server(server) => {
            let leases = Arc::clone(leases);
            Location::new(move |namespace| {
                Ok(Box::new(client::store(&server, namespace, &leases)?))
            })
        }
    }
}

/// Ends what is leased in this environment.
pub(crate) fn end<'call>(
    leases: &Leases,
    js: Js<'call>,
    []: [Value<'call>; 0],
) -> Result<Value<'call>> {
    leases.end();
    js.undefined()
}

/// Promises that the node ids of a generator were given back.
fn released<'call, F: Format>(
    kept: &Arc<Kept<F>>,
    js: Js<'call>,
    []: [Value<'call>; 0],
) -> Result<Value<'call>> {
    let kept = Arc::clone(kept);
    let work = move || {
        kept.leased.close();
        Ok(())
    };
    js.promise(work, |js, ()| js.undefined())
}

impl<F: Format<Id: Number>> Generator for Kept<F> {
    #[inline]
    fn generate(&self) -> Result<i64> {
        // Never waits for a lease, on a thread that has others to answer.
        let id = self.leased.try_generate().map_err(|error| self.leased.explain(error))?;
        Ok(id.bits())
    }

    fn fill(&self, ids: Value<'_>) -> Result<()> {
        fill_in_place(self, ids)
    }

    fn check_fill(&self, count: usize) -> Result<()> {
        self.ask(|leased| leased.try_check_fill(count, self.reach_here()))
    }

    fn ready_in(&self) -> Result<Duration> {
        self.leased.ready_in()
    }

    fn node_ids(&self) -> Vec<u32> {
        self.leased.node_ids()
    }

    fn lease<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        self.leased.lease().map_or_else(|| js.null(), |status| status_object(js, &status))
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

    fn weight(&self) -> usize {
        const THREAD: usize = 32 << 10; // what of its stack is used, and what the system has for it
        size_of::<randflake::Generator<F, EnvironmentClock>>()
            + size_of::<Leased<F, EnvironmentClock>>()
            + THREAD
    }
}

impl Encrypting for Kept<Encrypted> {
    fn inspect(&self, id: Id) -> Parts {
        self.leased.inspect(id)
    }

    fn encrypt(&self, raw: u64) -> Id {
        self.leased.encrypt(raw)
    }

    fn decrypt(&self, id: Id) -> u64 {
        self.leased.decrypt(id)
    }
}

impl Reading for Kept<Plain> {
    fn inspect(&self, raw: u64) -> Result<RawParts> {
        self.leased.inspect(raw)
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn status_object<'call>(js: Js<'call>, status: &LeaseStatus) -> Result<Value<'call>> {
    let last_error = status.last_error.as_ref();
    js.object(&[
        (c"state", js.text(status.state.name())?),
        (c"nodeIds", numbers(js, &status.node_ids)?.freeze()?),
        (c"start", js.unix_second(status.start)?),
        (c"endExclusive", js.unix_second(status.end_exclusive)?),
        (c"secondsLeft", js.number(status.time_left.as_secs_f64())?),
        (c"renewals", js.number(status.renewals as f64)?),
        (c"losses", js.number(status.losses as f64)?),
        (c"lastError", last_error.map_or_else(|| js.null(), |error| js.error(error))?),
        (c"lastErrorAt", status.last_error_at.map_or_else(|| js.null(), |at| js.unix_second(at))?),
    ])?
    .freeze()
}
