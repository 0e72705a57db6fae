//! What the module exports besides the functions of objects.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use napi::{Env, bindgen_prelude::i64n};
use napi_derive::napi;
use randflake::{Id, Result, Secret, bindings::ForkId};

use crate::{
    arguments, cloak,
    environment::{self, Environment},
    ffi::{self, Js, Outcome, Value, outcome},
    generator, inspector, layout,
    leases::Leases,
};

/// Takes the class of errors and the shared call buffer. Returns the class and the buffer to use,
/// the same ones for all that load this library in one environment, along with the quick functions.
#[napi]
pub fn load<'call>(
    env: Env,
    error_class: Value<'call>,
    buffer: Value<'call>,
) -> Outcome<Value<'call>> {
    // Where forks are reported by handlers alone, its own comes before those of later libraries.
    let _ = ForkId::current();
    // Where the linker cannot be told to pin this library (see build.rs), the loader is.
    napi::bindgen_prelude::retain_current_module_for_unload_safety();
    outcome(|| {
        let js = error_class.js();
        let environment = js.enter(error_class, || {
            let leases = Arc::<Leases>::default();
            let hook = env.add_env_cleanup_hook(Arc::clone(&leases), |leases| leases.end());
            hook.map_err(ffi::refused_by_napi)?;
            Environment::new(leases, buffer)
        })?;
        functions(js, &environment)
    })
}

fn functions<'call>(js: Js<'call>, environment: &Environment) -> Result<Value<'call>> {
    macro_rules! function {
        ($name:literal, $call:path) => {
            ($name, js.function($name, |_: &Environment, _, given| $call(given))?)
        };
    }
    js.object(&[
        (c"RandflakeError", js.error_class()?),
        (c"callBuffer", environment.buffer(js)?),
        (c"generate", js.function(c"generate", environment::generate)?),
        (c"generateString", js.function(c"generateString", environment::generate_string)?),
        function!(c"fill", generator::fill),
        function!(c"inspect", inspector::inspect),
        function!(c"inspectRaw", layout::inspect_raw),
        function!(c"encrypt", inspector::encrypt),
        function!(c"decrypt", inspector::decrypt),
        function!(c"hide", cloak::hide),
        function!(c"hideString", cloak::hide_string),
        function!(c"reveal", cloak::reveal),
        function!(c"encodeString", encode_string),
        function!(c"decodeString", decode_string),
    ])
}

fn encode_string([id]: [Value<'_>; 1]) -> Result<Value<'_>> {
    id.js().latin1(arguments::numeric_id(id)?.encode(&mut [0; Id::MAX_TEXT_LENGTH]))
}

fn decode_string([text]: [Value<'_>; 1]) -> Result<Value<'_>> {
    text.js().convert(i64n(arguments::id_text(text)?.into()))
}

/// Says what a value is, for the errors of `index.js`.
#[napi]
pub fn describe(value: Value<'_>) -> String {
    value.description()
}

#[napi]
pub fn generate_secret() -> String {
    Secret::random().to_hex()
}

/// Returns what is wrong with a weak secret, for the first one in this process; else null.
#[napi]
pub fn new_weakness(secret: Value<'_>) -> Outcome<Option<&'static str>> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    outcome(|| {
        let weakness = arguments::secret(secret)?.weakness();
        // Relaxed: nothing else depends on it.
        Ok(weakness.filter(|_| !WARNED.swap(true, Ordering::Relaxed)))
    })
}

/// Ends what is leased in this environment.
#[napi]
pub fn end_leases(env: Env) -> Outcome<()> {
    outcome(|| {
        Js::of(&env).state::<Environment>()?.leases.end();
        Ok(())
    })
}

#[cfg(feature = "panic-test")]
#[napi]
pub fn panic() -> Outcome<()> {
    outcome(|| panic!("as asked"))
}
