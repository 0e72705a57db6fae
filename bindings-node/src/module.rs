//! What the module exports in addition to the functions of objects.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use napi::Env;
use napi_derive::napi;
use randflake::{Result, Secret, bindings::ForkId};

use crate::{
    arguments, cloak,
    closing::Closing,
    codes,
    environment::{self, Environment},
    ffi::{self, Js, Outcome, Value, outcome},
    generator, inspector, layout, text,
};

/// Takes the class of errors and the shared call buffer. Returns the class and the buffer to use,
/// the same ones for all that load this library in one environment, along with the quick functions.
#[napi]
pub fn load<'call>(
    env: Env,
    error_class: Value<'call>,
    buffer: Value<'call>,
) -> Outcome<Value<'call>> {
    // Where only handlers report forks, its own comes before the handlers of later libraries.
    let _ = ForkId::current();
    // Where the linker cannot be told to pin this library (see build.rs), the loader is told.
    napi::bindgen_prelude::retain_current_module_for_unload_safety();
    outcome(|| {
        let js = error_class.js();
        let environment = js.enter(error_class, || {
            let closing = Arc::<Closing>::default();
            let hook = env.add_env_cleanup_hook(Arc::clone(&closing), |closing| closing.end());
            hook.map_err(ffi::refused_by_napi)?;
            Environment::new(closing, buffer)
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
        (c"callBuffer", environment.buffer.array(js)?),
        (c"generate", js.function(c"generate", environment::generate)?),
        (c"generateString", js.function(c"generateString", environment::generate_string)?),
        (c"inspect", js.function(c"inspect", inspector::inspect)?),
        (c"inspectRaw", js.function(c"inspectRaw", layout::inspect_raw)?),
        function!(c"fill", generator::fill),
        function!(c"encrypt", inspector::encrypt),
        function!(c"decrypt", inspector::decrypt),
        function!(c"hide", cloak::hide),
        function!(c"hideString", cloak::hide_string),
        function!(c"reveal", cloak::reveal),
        function!(c"lastCoded", codes::last_coded),
        function!(c"encodeCode", codes::encode_code),
        function!(c"decodeCode", codes::decode_code),
        function!(c"encodeString", text::encode_string),
        function!(c"decodeString", text::decode_string),
        function!(c"encodeStrings", text::encode_strings),
        function!(c"decodeStrings", text::decode_strings),
    ])
}

/// Says what a value is, for the errors of `arguments.js`.
#[napi]
pub fn describe(value: Value<'_>) -> String {
    value.description()
}

/// Returns a number that changes after a restore.
#[allow(clippy::cast_precision_loss, reason = "a count of forks and restores")]
#[napi]
pub fn fork_id() -> f64 {
    ForkId::current().number() as f64
}

#[napi]
pub fn after_restore() {
    randflake::after_restore();
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
        Js::of(&env).state::<Environment>()?.closing.end();
        Ok(())
    })
}

#[cfg(feature = "panic-test")]
#[napi]
pub fn panic() -> Outcome<()> {
    outcome(|| panic!("as asked"))
}
