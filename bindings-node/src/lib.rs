//! The native half of the npm package `randflake`: arguments in, a call into the core, a value
//! out. `index.js` is its only caller and documents what users see.

mod arguments;
mod boundary;
mod client;
mod cloak;
mod clock;
mod command;
mod generator;
mod inspector;
mod layout;
mod leased;
mod operator;
mod places;
mod raw;
mod snowflake;
mod threads;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use napi::{Env, Unknown};
use napi_derive::napi;
use randflake::{Id, Result, Secret, bindings::ForkId};
use zeroize::Zeroizing;

use crate::{
    leased::Leases,
    raw::{Environment, Js, Value},
};

/// What functions have that need nothing.
struct Module;

/// Takes the class of errors and the tray, and returns the
/// functions of this module, along with the class and the tray to use: the same ones for all that
/// load it in one environment.
///
/// # Errors
///
/// If Node-API refuses to make them.
#[napi]
pub fn load<'env>(
    env: &'env Env,
    error_class: Unknown<'env>,
    tray: Unknown<'env>,
) -> napi::Result<Unknown<'env>> {
    // Where forks are told by handlers alone, its own comes before those of later libraries.
    let _ = ForkId::current();
    // Where the linker cannot be told to pin this library (see build.rs), the loader is.
    napi::bindgen_prelude::retain_current_module_for_unload_safety();
    let leases = Arc::<Leases>::default();
    env.add_env_cleanup_hook(Arc::clone(&leases), |leases| leases.end())?;
    let js = Js::of(env);
    match functions(js, js.value(&error_class), js.value(&tray), leases) {
        Ok(functions) => Ok(functions.into()),
        Err(error) => Err(napi::Error::from_reason(error.to_string())),
    }
}

fn functions<'call>(
    js: Js<'call>,
    error_class: Value<'call>,
    tray: Value<'call>,
    leases: Arc<Leases>,
) -> Result<Value<'call>> {
    let environment = js.enter(|| Environment::new(error_class, tray))?;
    let places = &environment.places;
    let module = Arc::new(Module);
    let object = js.object(&[
        (c"RandflakeError", environment.error_class(js)?),
        (c"tray", places.tray.array(js)?),
        (c"generate", js.function(c"generate", Arc::clone(places), places::generate)?),
        (
            c"generateString",
            js.function(c"generateString", Arc::clone(places), places::generate_string)?,
        ),
        (
            c"createGenerator",
            js.function(c"createGenerator", Arc::new(Arc::clone(&leases)), generator::create)?,
        ),
        (
            c"createInspector",
            js.function(c"createInspector", Arc::clone(&module), inspector::create)?,
        ),
        (
            c"createLayout",
            js.function(c"createLayout", Arc::new(Arc::clone(&leases)), layout::create)?,
        ),
        (c"createCloak", js.function(c"createCloak", Arc::clone(&module), cloak::create)?),
        (
            c"createBoundaryFlake",
            js.function(c"createBoundaryFlake", Arc::clone(&module), boundary::create)?,
        ),
        (c"lease", js.function(c"lease", Arc::new(Arc::clone(&leases)), leased::create)?),
        (c"initStore", js.function(c"initStore", Arc::new(Arc::clone(&leases)), client::init)?),
        (c"listLeases", js.function(c"listLeases", Arc::new(Arc::clone(&leases)), operator::list)?),
        (
            c"inspectLease",
            js.function(c"inspectLease", Arc::new(Arc::clone(&leases)), operator::inspect)?,
        ),
        (
            c"fenceStore",
            js.function(c"fenceStore", Arc::new(Arc::clone(&leases)), operator::fence)?,
        ),
        (
            c"repairLease",
            js.function(c"repairLease", Arc::new(Arc::clone(&leases)), operator::repair_lease)?,
        ),
        (
            c"repairStore",
            js.function(c"repairStore", Arc::new(Arc::clone(&leases)), operator::repair_store)?,
        ),
        (
            c"releaseLease",
            js.function(c"releaseLease", Arc::new(Arc::clone(&leases)), operator::release)?,
        ),
        (c"runCommand", js.function(c"runCommand", Arc::new(Arc::clone(&leases)), command::run)?),
        (c"endLeases", js.function(c"endLeases", leases, leased::end)?),
        (c"generateSecret", js.function(c"generateSecret", Arc::clone(&module), generate_secret)?),
        (c"newWeakness", js.function(c"newWeakness", Arc::clone(&module), new_weakness)?),
        (c"encodeString", js.function(c"encodeString", Arc::clone(&module), encode_string)?),
        (c"decodeString", js.function(c"decodeString", Arc::clone(&module), decode_string)?),
    ])?;
    #[cfg(feature = "panic-test")]
    object.set(c"panic", js.function(c"panic", module, |_: &Module, _, []| panic!("as asked"))?)?;
    Ok(object)
}

fn generate_secret<'call>(
    _: &Module,
    js: Js<'call>,
    []: [Value<'call>; 0],
) -> Result<Value<'call>> {
    js.text(&Zeroizing::new(Secret::random().to_hex()))
}

/// Returns what is wrong with a weak secret, for the first one in this process; else undefined.
fn new_weakness<'call>(
    _: &Module,
    js: Js<'call>,
    [secret]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    match arguments::secret(secret)?.weakness() {
        // Relaxed: nothing else hangs on it.
        Some(weakness) if !WARNED.swap(true, Ordering::Relaxed) => js.text(weakness),
        _ => js.undefined(),
    }
}

fn encode_string<'call>(
    _: &Module,
    js: Js<'call>,
    [id]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    js.latin1(arguments::numeric_id(id)?.encode(&mut [0; Id::MAX_TEXT_LENGTH]))
}

fn decode_string<'call>(
    _: &Module,
    js: Js<'call>,
    [text]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    js.bigint(arguments::id_text(text)?.into())
}
