//! What an environment, the main thread or a worker, has: its leases, and a table of its
//! generators, including tickets.
//!
//! One function makes the ids of all of them: V8 calls a function that it knows beforehand 30 ns
//! faster than one of several.
//!
//! JavaScript leaves the *index* of the generator in shared memory, the *shared call buffer*, and
//! `generate` leaves the id there and returns nothing: together 17 ns sooner than with an argument
//! and a bigint. What is in the call buffer is the id of this call only if the owner in the call
//! buffer, erased before, is the generator that was meant: a call may fail where it cannot throw,
//! and a debugger can have another generator called before. It is taken before another script can
//! run. An index is freed after its generator was collected.

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};

use napi::bindgen_prelude::Null;
use randflake::{Id, Result, bindings};
use slab::Slab;

use crate::{
    closing::Closing,
    ffi::{CallBuffer, Js, Value},
    threads::Threads,
};

pub(crate) struct Environment {
    pub(crate) closing: Arc<Closing>,
    /// Where `generators.js` leaves the index of a generator before it calls, and finds the id.
    pub(crate) buffer: CallBuffer,
    /// A call holds it while it runs; generators that are added or removed meanwhile change a copy.
    generators: RefCell<Rc<Slab<Arc<dyn DynGenerator>>>>,
}

/// A generator of either format, with its own node ids or leased ones, on either clock.
pub(crate) trait DynGenerator: Batches + 'static {
    /// Makes one id and returns its bits.
    fn generate(&self) -> Result<i64>;
    fn ready_in(&self) -> Result<Duration>;
    fn metrics<'call>(&self, js: Js<'call>) -> Result<Value<'call>>;
    fn close(&self);

    fn node_ids(&self) -> Vec<u32> {
        Vec::new()
    }

    fn lease<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        js.convert(Null)
    }

    fn extend_lease(&self, _: i64) -> Result<()> {
        Err(bindings::lease_of_store())
    }

    /// Promises that its leased node ids were given back; undefined without any.
    fn released<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        js.convert(())
    }

    /// Promises that it has a first lease; undefined if there is none to wait for.
    fn first_lease<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        js.convert(())
    }

    /// Returns roughly how many bytes it uses outside of JavaScript's memory.
    fn weight(&self) -> usize {
        size_of_val(self) + size_of::<u32>() * self.node_ids().len()
    }
}

/// The batches of a generator, on the JavaScript thread, `here`, or on another one.
pub(crate) trait Batches {
    /// Checks whether this many ids would be refused, before memory is allocated for them.
    fn check_fill(&self, count: usize, here: bool) -> Result<()>;
    /// After an error there are zeros.
    fn fill(&self, ids: &mut [i64], here: bool) -> Result<()>;
}

/// A generator as JavaScript sees it. Dropping this removes it from the table.
pub(crate) struct Handle {
    pub(crate) generator: Arc<dyn DynGenerator>,
    /// The same, unless only the JavaScript thread can read its clock.
    pub(crate) batches: Option<Arc<dyn Batches + Send + Sync>>,
    pub(crate) threads: Arc<Threads>,
    pub(crate) index: usize,
    environment: Rc<Environment>,
}

impl Environment {
    pub(crate) fn new(closing: Arc<Closing>, buffer: Value<'_>) -> Result<Self> {
        Ok(Self { closing, buffer: CallBuffer::new(buffer)?, generators: RefCell::default() })
    }

    /// Makes an id with the generator whose index JavaScript has left; `None` if none has it.
    /// `Option` and `Result` are in this order, which fits in two registers.
    #[inline]
    fn generate(&self) -> Option<Result<i64>> {
        let generators = Rc::clone(&self.generators.borrow());
        let index = self.buffer.generator();
        let made = generators.get(index as usize)?.generate();
        // Not earlier: a clock written in JavaScript may have called generators, including this
        // one.
        self.buffer.set_owner(if made.is_ok() { index } else { CallBuffer::NOBODY });
        Some(made)
    }
}

/// Leaves the bits of an id in the call buffer, and whose id it is, which JavaScript has erased: in
/// a worker that is being terminated, a script continues where an error could not be thrown.
/// Returns false if no generator has that index.
pub(crate) fn generate<'call>(
    environment: &Environment,
    js: Js<'call>,
    []: [Value<'call>; 0],
) -> Result<Value<'call>> {
    let Some(made) = environment.generate() else { return unknown(js) };
    environment.buffer.put(made?);
    Ok(js.undefined())
}

pub(crate) fn generate_string<'call>(
    environment: &Environment,
    js: Js<'call>,
    []: [Value<'call>; 0],
) -> Result<Value<'call>> {
    let Some(made) = environment.generate() else { return unknown(js) };
    js.latin1(Id::from(made?).encode(&mut [0; Id::MAX_TEXT_LENGTH]))
}

/// What JavaScript understands as: no generator has this index.
#[cold]
fn unknown(js: Js<'_>) -> Result<Value<'_>> {
    js.convert(false)
}

impl Handle {
    /// Makes the object of a generator that any thread may use.
    pub(crate) fn shared<G: DynGenerator + Send + Sync>(
        js: Js<'_>,
        generator: Arc<G>,
    ) -> Result<Value<'_>> {
        Self::object(js, Arc::clone(&generator) as _, Some(generator))
    }

    /// Makes the object of a generator, and adds it to the table.
    pub(crate) fn object(
        js: Js<'_>,
        generator: Arc<dyn DynGenerator>,
        batches: Option<Arc<dyn Batches + Send + Sync>>,
    ) -> Result<Value<'_>> {
        let environment = js.state::<Environment>()?;
        let weight = generator.weight();
        let mut generators = environment.generators.borrow_mut();
        let index = Rc::make_mut(&mut generators).insert(Arc::clone(&generator));
        drop(generators);
        let threads = Arc::default();
        js.own_weighing(Self { generator, batches, threads, index, environment }, weight)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut generators = self.environment.generators.borrow_mut();
        let generator = Rc::make_mut(&mut generators).try_remove(self.index);
        drop(generators);
        drop(generator); // which may take long
    }
}
