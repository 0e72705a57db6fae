//! Node-API made safe. The only file with `unsafe`, and where speed is: `#[napi]` methods cost
//! ten times what these functions do, and report errors of their own kind.
#![allow(unsafe_code, reason = "Node-API is a C interface")]

use std::{
    ffi::{CStr, c_void},
    fmt, hint, io,
    marker::PhantomData,
    panic::{self, AssertUnwindSafe},
    ptr::{self, NonNull},
    slice,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
};

use napi::{
    JsValue, Status, Unknown,
    bindgen_prelude::{FromNapiValue, ToNapiValue},
    sys,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};
use randflake::{Error, ErrorKind, Format, Randflake, Reach, Result, Snowflake};

use crate::{
    cloak::{Hider, Revealer},
    leased::{EnvironmentClock, Kept},
    places::Places,
    threads::{self, Job},
};

/// The JavaScript thread during one call from there; what values are read and made with.
#[derive(Clone, Copy)]
pub(crate) struct Js<'call> {
    env: sys::napi_env,
    call: PhantomData<&'call ()>,
}

/// A JavaScript value, alive during one call.
#[derive(Clone, Copy)]
pub(crate) struct Value<'call> {
    js: Js<'call>,
    raw: sys::napi_value,
}

/// What stands for an exception that JavaScript code threw and that is on its way back there.
#[derive(Debug)]
struct Thrown;

impl fmt::Display for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JavaScript code threw")
    }
}

impl std::error::Error for Thrown {}

/// Runs `call` and turns a panic into an error.
pub(crate) fn guarded<R>(call: impl FnOnce() -> Result<R>) -> Result<R> {
    // Whatever a panic leaves behind is behind atomics and locks, which the core checks.
    panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().copied();
        let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::new(
            ErrorKind::Internal,
            format!("a defect of randflake, please report it: {}", said.unwrap_or("a panic")),
        ))
    })
}

/// What is behind every function: reads the call, runs `F`, throws its error.
unsafe extern "C" fn called<T, F, const N: usize>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value
where
    F: for<'a> Fn(&T, Js<'a>, [Value<'a>; N]) -> Result<Value<'a>>,
{
    let js = Js { env, call: PhantomData };
    let (mut arguments, mut count) = ([ptr::null_mut(); N], N);
    let mut data = ptr::null_mut();
    let (count, room) = match N {
        0 => (ptr::null_mut(), ptr::null_mut()), // not to be told
        _ => (&raw mut count, arguments.as_mut_ptr()),
    };
    // SAFETY: Node called, so env and info are good; there is room for N arguments and one data.
    let status =
        unsafe { sys::napi_get_cb_info(env, info, count, room, ptr::null_mut(), &raw mut data) };
    let returned = js.check(status).and_then(|()| {
        // SAFETY: `Js::function` made it from an Arc<T>, which the function owns, and a function
        // is not collected while it runs.
        let data = unsafe { &*data.cast::<T>() };
        // SAFETY: F has no size, and `Js::function` was given one.
        let call = unsafe { NonNull::<F>::dangling().as_ref() };
        guarded(|| call(data, js, arguments.map(|raw| Value { js, raw })))
    });
    match returned {
        Ok(value) => value.raw,
        Err(error) => {
            js.throw(error);
            ptr::null_mut()
        }
    }
}

#[cold]
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn refused_by_napi(error: napi::Error) -> Error {
    Error::new(ErrorKind::Internal, error.reason.clone())
}

/// Gives up a function's hold on its data.
unsafe extern "C" fn drop_arc<T>(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
    // SAFETY: `Js::function` made it with Arc::into_raw, for this one finalizer.
    drop(unsafe { Arc::from_raw(data.cast::<T>()) });
}

/// Gives up what an environment has once.
unsafe extern "C" fn drop_environment(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
    // SAFETY: `Js::enter` made it with Box::into_raw, for this one finalizer.
    drop(unsafe { Box::from_raw(data.cast::<Environment>()) });
}

/// What an environment has once, however often this library is loaded in it.
pub(crate) struct Environment {
    error_class: Reference,
    pub(crate) places: Arc<Places>,
}

impl Environment {
    pub(crate) fn new(error_class: Value<'_>, tray: Value<'_>) -> Result<Self> {
        let tray = Tray::new(tray)?;
        #[allow(
            clippy::arc_with_non_send_sync,
            reason = "as data of functions; stays on its thread"
        )]
        let places = Arc::new(Places::new(tray));
        Ok(Self { error_class: Reference::new(error_class)?, places })
    }

    pub(crate) fn error_class<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        self.error_class.value(js)
    }
}

impl<'call> Js<'call> {
    /// Returns the thread that napi-rs calls on.
    pub(crate) fn of(env: &'call napi::Env) -> Self {
        Self { env: env.raw(), call: PhantomData }
    }

    /// Takes a value from napi-rs.
    pub(crate) fn value(self, value: &Unknown<'call>) -> Value<'call> {
        Value { js: self, raw: value.raw() }
    }

    /// Makes a function that calls `call`, which has no state of its own, with `data`.
    pub(crate) fn function<T, F, const N: usize>(
        self,
        name: &CStr,
        data: Arc<T>,
        call: F,
    ) -> Result<Value<'call>>
    where
        T: 'static,
        F: for<'a> Fn(&T, Js<'a>, [Value<'a>; N]) -> Result<Value<'a>> + 'static,
    {
        const {
            assert!(size_of::<F>() == 0, "a function of Rust, or a closure without captures");
        }
        std::mem::forget(call);
        let data = Arc::into_raw(data).cast_mut().cast::<c_void>();
        let callback: sys::napi_callback = Some(called::<T, F, N>);
        let length = name.count_bytes().cast_signed();
        // SAFETY: name is as long as said, and data is what the callback expects.
        let made = self.make(|env, made| unsafe {
            sys::napi_create_function(env, name.as_ptr(), length, callback, data, made)
        });
        let owned = made.and_then(|function| {
            // SAFETY: the function was just made; drop_arc takes data back, once.
            let status = unsafe {
                let (hint, reference) = (ptr::null_mut(), ptr::null_mut());
                let drop: sys::napi_finalize = Some(drop_arc::<T>);
                sys::napi_add_finalizer(self.env, function.raw, data, drop, hint, reference)
            };
            self.check(status).map(|()| function)
        });
        if owned.is_err() {
            // SAFETY: from Arc::into_raw above, and no finalizer has it. A function that was made
            // but not given its finalizer is unreachable: its value goes no further than here.
            drop(unsafe { Arc::from_raw(data.cast::<T>()) });
        }
        owned
    }

    /// Returns what this environment has once: what was made for it first.
    pub(crate) fn enter(
        self,
        make: impl FnOnce() -> Result<Environment>,
    ) -> Result<&'call Environment> {
        if let Some(environment) = self.known_environment()? {
            return Ok(environment);
        }
        let data = Box::into_raw(Box::new(make()?)).cast::<c_void>();
        // SAFETY: env is good; drop_environment takes data back, once.
        let status = unsafe {
            let hint = ptr::null_mut();
            sys::napi_set_instance_data(self.env, data, Some(drop_environment), hint)
        };
        self.check(status)?;
        self.environment()
    }

    /// Returns what `enter` made.
    pub(crate) fn environment(self) -> Result<&'call Environment> {
        self.known_environment()?.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "used in an environment that did not load it")
        })
    }

    fn known_environment(self) -> Result<Option<&'call Environment>> {
        let mut data = ptr::null_mut();
        // SAFETY: env is good, and data has room for one pointer.
        let status = unsafe { sys::napi_get_instance_data(self.env, &raw mut data) };
        self.check(status)?;
        // SAFETY: null, or what `enter` stored, which lives as long as the environment and is
        // never replaced.
        Ok(unsafe { data.cast::<Environment>().as_ref() })
    }

    /// Makes the JavaScript error of an error.
    pub(crate) fn error(self, error: &Error) -> Result<Value<'call>> {
        let class = self.environment()?.error_class(self)?;
        let retry_after = match error.retry_after() {
            Some(wait) => self.number(crate::generator::whole_ms(wait))?,
            None => self.undefined()?,
        };
        let options = match error.cause() {
            Some(cause) => self.object(&[(c"cause", self.error(cause)?)])?,
            None => self.undefined()?,
        };
        let [code, message] = [self.text(error.code())?, self.text(&error.to_string())?];
        let arguments = [code.raw, message.raw, retry_after.raw, options.raw];
        // SAFETY: env and class are good, and there are as many arguments as it says.
        self.make(|env, made| unsafe {
            sys::napi_new_instance(env, class.raw, arguments.len(), arguments.as_ptr(), made)
        })
    }

    /// The same, for napi-rs to reject a promise with.
    pub(crate) fn napi_error(self, error: &Error) -> napi::Error {
        match self.error(error) {
            Ok(made) => napi::Error::from(Unknown::from(made)),
            Err(_) => napi::Error::from_reason(error.to_string()),
        }
    }

    #[cold]
    fn throw(self, error: Error) {
        // What JavaScript code threw is on its way already.
        let Err(error) = error.into_source::<Thrown>() else {
            return;
        };
        // Nor is there more to be done when making the error threw, as with a full stack.
        if let Ok(made) = self.error(&error) {
            // SAFETY: env and value are good.
            unsafe { sys::napi_throw(self.env, made.raw) };
        }
    }

    /// Promises what `finish` makes of what `work` does on a thread of its own. What that returns
    /// after the environment has ended is dropped.
    pub(crate) fn promise<R: Send + 'static>(
        self,
        work: impl FnOnce() -> Result<R> + Send + 'static,
        finish: impl for<'a> FnOnce(Js<'a>, R) -> Result<Value<'a>> + Send + 'static,
    ) -> Result<Value<'call>> {
        self.promise_by(threads::start, work, finish)
    }

    /// Does so on the thread that `start` has do it.
    pub(crate) fn promise_by<R: Send + 'static>(
        self,
        start: impl FnOnce(Job) -> io::Result<()>,
        work: impl FnOnce() -> Result<R> + Send + 'static,
        finish: impl for<'a> FnOnce(Js<'a>, R) -> Result<Value<'a>> + Send + 'static,
    ) -> Result<Value<'call>> {
        let env = napi::Env::from_raw(self.env);
        let (deferred, promise) = env.create_deferred().map_err(refused_by_napi)?;
        let promise = Value { js: self, raw: promise.raw() };
        let settle = |done: Result<R>| {
            move |env: napi::Env| {
                let js = Js { env: env.raw(), call: PhantomData };
                let finished = done.and_then(|done| guarded(|| finish(js, done)));
                finished.map(Unknown::from).map_err(|error| js.napi_error(&error))
            }
        };
        let unstarted = deferred.clone();
        let work = move || deferred.resolve(settle(guarded(work)));
        if let Err(error) = start(Box::new(work)) {
            let why = format!("there is no thread to be had: {error}");
            let error = Error::new(ErrorKind::StoreUnavailable, why);
            unstarted.reject(self.napi_error(&error));
        }
        Ok(promise)
    }

    /// Tells V8 of memory that a value of it keeps, for as long as what this returns is kept.
    pub(crate) fn weigh(self, bytes: usize) -> Weight {
        let weight = Weight { env: self.env, bytes: i64::try_from(bytes).unwrap_or(0) };
        weight.add(weight.bytes);
        weight
    }

    /// Makes a value of what napi-rs can convert.
    pub(crate) fn convert(self, native: impl ToNapiValue) -> Result<Value<'call>> {
        // SAFETY: env is good.
        match unsafe { ToNapiValue::to_napi_value(self.env, native) } {
            Ok(raw) => Ok(Value { js: self, raw }),
            Err(error) => Err(refused_by_napi(error)),
        }
    }

    pub(crate) fn undefined(self) -> Result<Value<'call>> {
        // SAFETY: as `make` says.
        self.make(|env, made| unsafe { sys::napi_get_undefined(env, made) })
    }

    pub(crate) fn null(self) -> Result<Value<'call>> {
        // SAFETY: as `make` says.
        self.make(|env, made| unsafe { sys::napi_get_null(env, made) })
    }

    pub(crate) fn boolean(self, boolean: bool) -> Result<Value<'call>> {
        // SAFETY: as `make` says.
        self.make(|env, made| unsafe { sys::napi_get_boolean(env, boolean, made) })
    }

    pub(crate) fn number(self, number: f64) -> Result<Value<'call>> {
        // SAFETY: as `make` says.
        self.make(|env, made| unsafe { sys::napi_create_double(env, number, made) })
    }

    /// Makes a number of a unix second, all of which are far below 2^53.
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
    pub(crate) fn unix_second(self, second: i64) -> Result<Value<'call>> {
        self.number(second as f64)
    }

    pub(crate) fn bigint(self, number: i64) -> Result<Value<'call>> {
        // SAFETY: as `make` says.
        self.make(|env, made| unsafe { sys::napi_create_bigint_int64(env, number, made) })
    }

    pub(crate) fn unsigned_bigint(self, number: u64) -> Result<Value<'call>> {
        // SAFETY: as `make` says.
        self.make(|env, made| unsafe { sys::napi_create_bigint_uint64(env, number, made) })
    }

    pub(crate) fn text(self, text: &str) -> Result<Value<'call>> {
        if text.is_ascii() {
            return self.latin1(text.as_bytes()); // the quicker one
        }
        let (start, length) = (text.as_ptr().cast(), text.len().cast_signed());
        // SAFETY: as `make` says, and text is as long as said.
        self.make(|env, made| unsafe { sys::napi_create_string_utf8(env, start, length, made) })
    }

    /// Makes a string of characters of one byte each.
    pub(crate) fn latin1(self, text: &[u8]) -> Result<Value<'call>> {
        let (start, length) = (text.as_ptr().cast(), text.len().cast_signed());
        // SAFETY: as `make` says, and text is as long as said.
        self.make(|env, made| unsafe { sys::napi_create_string_latin1(env, start, length, made) })
    }

    pub(crate) fn array(self, values: &[Value<'call>]) -> Result<Value<'call>> {
        // SAFETY: as `make` says.
        let array = self.make(|env, made| unsafe {
            sys::napi_create_array_with_length(env, values.len(), made)
        })?;
        for (index, value) in (0..).zip(values) {
            // SAFETY: env and both values are good.
            let status = unsafe { sys::napi_set_element(self.env, array.raw, index, value.raw) };
            self.check(status)?;
        }
        Ok(array)
    }

    pub(crate) fn object(self, properties: &[(&CStr, Value<'call>)]) -> Result<Value<'call>> {
        // SAFETY: as `make` says.
        let object = self.make(|env, made| unsafe { sys::napi_create_object(env, made) })?;
        for (name, value) in properties {
            object.set(name, *value)?;
        }
        Ok(object)
    }

    /// Has Node-API make a value; `make` may use its arguments, a good environment and room for
    /// one value, in one call of Node-API.
    #[inline]
    fn make(
        self,
        make: impl FnOnce(sys::napi_env, *mut sys::napi_value) -> sys::napi_status,
    ) -> Result<Value<'call>> {
        let mut raw = ptr::null_mut();
        self.check(make(self.env, &raw mut raw))?;
        Ok(Value { js: self, raw })
    }

    #[inline]
    fn check(self, status: sys::napi_status) -> Result<()> {
        if status == sys::Status::napi_ok { Ok(()) } else { Err(self.refused(status)) }
    }

    #[cold]
    fn refused(self, status: sys::napi_status) -> Error {
        let mut thrown = false;
        // SAFETY: env is good, and there is room for one bool.
        unsafe { sys::napi_is_exception_pending(self.env, &raw mut thrown) };
        // A worker that is being terminated refuses with this status, and has nothing pending.
        if thrown || status == sys::Status::napi_pending_exception {
            return Error::from_clock(Thrown);
        }
        Error::new(ErrorKind::Internal, format!("Node-API refused a call with status {status}"))
    }
}

impl Value<'_> {
    fn type_of(self) -> sys::napi_valuetype {
        let mut kind = sys::ValueType::napi_undefined;
        // SAFETY: env and value are good, and there is room for one type. It cannot fail then.
        unsafe { sys::napi_typeof(self.js.env, self.raw, &raw mut kind) };
        kind
    }

    pub(crate) fn is_undefined(self) -> bool {
        self.type_of() == sys::ValueType::napi_undefined
    }

    pub(crate) fn is_null(self) -> bool {
        self.type_of() == sys::ValueType::napi_null
    }

    pub(crate) fn is_bigint(self) -> bool {
        self.type_of() == sys::ValueType::napi_bigint
    }

    pub(crate) fn is_function(self) -> bool {
        self.type_of() == sys::ValueType::napi_function
    }

    /// Returns whether this is an object, and not a function.
    pub(crate) fn is_object(self) -> bool {
        self.type_of() == sys::ValueType::napi_object
    }

    /// Says what this is, for errors: a number itself, and of everything else only the type,
    /// since it may be a secret in the wrong place.
    pub(crate) fn description(self) -> String {
        let name = match self.type_of() {
            sys::ValueType::napi_number => {
                // SAFETY: as `make` says. Numbers are turned into text without running a script.
                let text = self
                    .js
                    .make(|env, made| unsafe { sys::napi_coerce_to_string(env, self.raw, made) });
                return text
                    .ok()
                    .and_then(|text| text.read_text(str::to_owned))
                    .unwrap_or_else(|| "a number".into());
            }
            sys::ValueType::napi_undefined => "undefined",
            sys::ValueType::napi_null => "null",
            sys::ValueType::napi_boolean => "a boolean",
            sys::ValueType::napi_string => "a string",
            sys::ValueType::napi_symbol => "a symbol",
            sys::ValueType::napi_function => "a function",
            sys::ValueType::napi_bigint => "a bigint",
            _ => "an object",
        };
        name.into()
    }

    pub(crate) fn as_number(self) -> Option<f64> {
        // SAFETY: as `read` says.
        self.read(0.0, |env, raw, read| unsafe { sys::napi_get_value_double(env, raw, read) })
    }

    pub(crate) fn as_boolean(self) -> Option<bool> {
        // SAFETY: as `read` says.
        self.read(false, |env, raw, read| unsafe { sys::napi_get_value_bool(env, raw, read) })
    }

    /// Returns the number of a bigint, if it fits.
    pub(crate) fn as_i64(self) -> Option<i64> {
        let mut lossless = false;
        // SAFETY: as `read` says, and there is room for one bool.
        let number = self.read(0, |env, raw, read| unsafe {
            sys::napi_get_value_bigint_int64(env, raw, read, &raw mut lossless)
        });
        number.filter(|_| lossless)
    }

    /// Returns the number of a bigint, if it fits.
    pub(crate) fn as_u64(self) -> Option<u64> {
        let mut lossless = false;
        // SAFETY: as `read` says, and there is room for one bool.
        let number = self.read(0, |env, raw, read| unsafe {
            sys::napi_get_value_bigint_uint64(env, raw, read, &raw mut lossless)
        });
        number.filter(|_| lossless)
    }

    /// Reads the text of a string, with the replacement character for a lone surrogate; `None` if
    /// this is none.
    pub(crate) fn read_text<R>(self, read: impl FnOnce(&str) -> R) -> Option<R> {
        let mut short = [0; 64];
        let written = self.copy_text(&mut short)?;
        // Only whole characters are copied, of up to four bytes; then a zero.
        if written + 5 <= short.len() {
            let done = read(&String::from_utf8_lossy(&short[..written]));
            short.fill(0); // secrets come this way
            hint::black_box(&short);
            return Some(done);
        }
        // SAFETY: as `read` says; without a buffer it only tells the length.
        let length = self.read(0, |env, raw, read| unsafe {
            sys::napi_get_value_string_utf8(env, raw, ptr::null_mut(), 0, read)
        })?;
        let mut long = vec![0; length + 1];
        let written = self.copy_text(&mut long)?;
        Some(read(&String::from_utf8_lossy(&long[..written])))
    }

    /// Copies as much text as there is room for besides the zero at its end.
    fn copy_text(self, buffer: &mut [u8]) -> Option<usize> {
        let (start, room) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: as `read` says, and the buffer has so much room.
        self.read(0, |env, raw, read| unsafe {
            sys::napi_get_value_string_utf8(env, raw, start, room, read)
        })
    }

    /// Returns this function for other threads to call.
    pub(crate) fn callback(self) -> Result<Callback> {
        // SAFETY: env and value are good.
        let callback = unsafe { FromNapiValue::from_napi_value(self.js.env, self.raw) };
        callback.map(Callback).map_err(refused_by_napi)
    }

    /// Returns the elements of an array, or the error of a longer one than `most`; `None` if this
    /// is no array.
    pub(crate) fn elements(
        self,
        most: usize,
        too_many: impl FnOnce(usize) -> Error,
    ) -> Result<Option<Vec<Self>>> {
        // SAFETY: as `read` says.
        let array =
            self.read(false, |env, raw, read| unsafe { sys::napi_is_array(env, raw, read) });
        if array != Some(true) {
            return Ok(None);
        }
        match self.array_length()? {
            length if length as usize > most => Err(too_many(length as usize)),
            length => self.first_elements(length).map(Some),
        }
    }

    fn array_length(self) -> Result<u32> {
        let mut length = 0;
        // SAFETY: env is good, this is an array, and there is room for one length.
        let status = unsafe { sys::napi_get_array_length(self.js.env, self.raw, &raw mut length) };
        self.js.check(status).map(|()| length)
    }

    fn first_elements(self, length: u32) -> Result<Vec<Self>> {
        let element = |index| {
            // SAFETY: as `make` says.
            self.js.make(|env, made| unsafe { sys::napi_get_element(env, self.raw, index, made) })
        };
        (0..length).map(element).collect()
    }

    /// Returns the names of the own enumerable properties of an object.
    pub(crate) fn names(self) -> Result<Vec<String>> {
        // SAFETY: as `make` says.
        let names = self.js.make(|env, made| unsafe {
            let filter = sys::KeyFilter::enumerable | sys::KeyFilter::skip_symbols;
            let (mode, form) =
                (sys::KeyCollectionMode::own_only, sys::KeyConversion::numbers_to_strings);
            sys::napi_get_all_property_names(env, self.raw, mode, filter, form, made)
        })?;
        Ok(names
            .first_elements(names.array_length()?)?
            .into_iter()
            .filter_map(|name| name.read_text(str::to_owned))
            .collect())
    }

    /// Returns a property of an object; `None` if it is undefined.
    pub(crate) fn get(self, name: &CStr) -> Result<Option<Self>> {
        // SAFETY: as `make` says, and the name ends with a zero.
        let value = self.js.make(|env, made| unsafe {
            sys::napi_get_named_property(env, self.raw, name.as_ptr(), made)
        })?;
        Ok(Some(value).filter(|value| !value.is_undefined()))
    }

    pub(crate) fn set(self, name: &CStr, value: Self) -> Result<()> {
        // SAFETY: env and both values are good, and the name ends with a zero.
        let status = unsafe {
            sys::napi_set_named_property(self.js.env, self.raw, name.as_ptr(), value.raw)
        };
        self.js.check(status)
    }

    /// Makes an object, or an array, one that cannot be changed.
    pub(crate) fn freeze(self) -> Result<Self> {
        // SAFETY: env and object are good.
        let status = unsafe { sys::napi_object_freeze(self.js.env, self.raw) };
        self.js.check(status).map(|()| self)
    }

    /// Fills a `BigInt64Array` where it is; `None` if this is none that nobody else can see.
    pub(crate) fn fill(self, flake: &impl Scriptless) -> Option<Result<()>> {
        let (start, length) = self.memory::<i64>()?;
        // SAFETY: aligned and initialised, as `memory` says, and for the length of the call only
        // this thread can reach it. It runs no script meanwhile, as `Scriptless` says, and so no
        // script frees, moves, reads or writes the memory.
        let ids = unsafe { slice::from_raw_parts_mut(start.as_ptr(), length) };
        Some(flake.fill_i64_here(ids))
    }

    /// Overwrites a typed array of this kind and this length; `None` if this is none that nobody
    /// else can see.
    pub(crate) fn overwrite<T: Element>(self, elements: &[T]) -> Option<()> {
        let (start, length) = self.memory().filter(|&(_, length)| length == elements.len())?;
        // SAFETY: as in `fill`; no script runs, and `elements` is memory of Rust's.
        unsafe { slice::from_raw_parts_mut(start.as_ptr(), length) }.copy_from_slice(elements);
        Some(())
    }

    /// Copies what a typed array of this kind holds; `None` if this is none that nobody else can
    /// see.
    pub(crate) fn copied<T: Element>(self) -> Option<Vec<T>> {
        let (start, length) = self.memory::<T>()?;
        // SAFETY: as in `fill`; no script runs.
        Some(unsafe { slice::from_raw_parts(start.as_ptr(), length) }.to_vec())
    }

    /// Returns where a typed array of this kind has its elements, and how many, until a script
    /// runs again. `None` for other values, for memory shared with other threads, and where the
    /// memory was taken away or is not aligned.
    fn memory<T: Element>(self) -> Option<(NonNull<T>, usize)> {
        let (buffer, start, length) = self.typed_array::<T>()?;
        // SAFETY: as `read` says.
        let detached = buffer.read(true, |env, raw, read| unsafe {
            sys::napi_is_detached_arraybuffer(env, raw, read)
        });
        if (buffer.is_array_buffer(), detached) != (Some(true), Some(false)) {
            return None;
        }
        if length == 0 {
            return Some((NonNull::dangling(), 0));
        }
        NonNull::new(start).filter(|start| start.is_aligned()).map(|start| (start, length))
    }

    /// Returns the buffer of a typed array of this kind, where its elements begin, and how many
    /// there are; `None` if this is none.
    fn typed_array<T: Element>(self) -> Option<(Self, *mut T, usize)> {
        let (mut kind, mut length, mut start) = (0, 0, ptr::null_mut());
        let mut buffer = ptr::null_mut();
        // SAFETY: env and value are good, and there is room for each answer.
        let status = unsafe {
            let offset = ptr::null_mut();
            let (kind, length, start) = (&raw mut kind, &raw mut length, &raw mut start);
            let env = self.js.env;
            sys::napi_get_typedarray_info(
                env,
                self.raw,
                kind,
                length,
                start,
                &raw mut buffer,
                offset,
            )
        };
        let buffer = Self { js: self.js, raw: buffer };
        (status == sys::Status::napi_ok && kind == T::KIND).then(|| (buffer, start.cast(), length))
    }

    /// Tells an `ArrayBuffer` from a `SharedArrayBuffer`.
    fn is_array_buffer(self) -> Option<bool> {
        // SAFETY: as `read` says.
        self.read(false, |env, raw, read| unsafe { sys::napi_is_arraybuffer(env, raw, read) })
    }

    /// Has Node-API read something of the value, if it is of the right type; `read` may use its
    /// arguments, a good environment, this value and room for one `R`, in one call of Node-API.
    #[inline]
    fn read<R>(
        self,
        mut room: R,
        read: impl FnOnce(sys::napi_env, sys::napi_value, *mut R) -> sys::napi_status,
    ) -> Option<R> {
        (read(self.js.env, self.raw, &raw mut room) == sys::Status::napi_ok).then_some(room)
    }
}

impl<'call> From<Value<'call>> for Unknown<'call> {
    fn from(value: Value<'call>) -> Self {
        // SAFETY: env and value are good.
        unsafe { Self::from_raw_unchecked(value.js.env, value.raw) }
    }
}

/// What writes ids and runs no script meanwhile, such as a generator whose clock, by its type, is
/// the machine's.
pub(crate) trait Scriptless: Send + Sync + 'static {
    fn fill_i64(&self, ids: &mut [i64]) -> Result<()>;

    /// Does so on the JavaScript thread, which must not wait for what only it can do.
    fn fill_i64_here(&self, ids: &mut [i64]) -> Result<()> {
        self.fill_i64(ids)
    }

    /// Checks whether so many ids would be refused, before there is memory for them.
    fn check_fill(&self, _: usize) -> Result<()> {
        Ok(())
    }
}

impl Scriptless for Randflake<EnvironmentClock> {
    fn fill_i64(&self, ids: &mut [i64]) -> Result<()> {
        self.fill_i64(ids)
    }

    fn check_fill(&self, count: usize) -> Result<()> {
        self.check_fill(count, Reach::Lease)
    }
}

impl Scriptless for Snowflake<EnvironmentClock> {
    fn fill_i64(&self, ids: &mut [i64]) -> Result<()> {
        self.fill_i64(ids)
    }

    fn check_fill(&self, count: usize) -> Result<()> {
        self.check_fill(count, Reach::Lease)
    }
}

impl Scriptless for Hider {
    fn fill_i64(&self, ids: &mut [i64]) -> Result<()> {
        self.0.hide_in_place(ids);
        Ok(())
    }
}

impl Scriptless for Revealer {
    fn fill_i64(&self, ids: &mut [i64]) -> Result<()> {
        self.0.reveal_in_place(ids);
        Ok(())
    }
}

impl<F: Format> Scriptless for Kept<F> {
    fn fill_i64(&self, ids: &mut [i64]) -> Result<()> {
        self.leased.fill_i64(ids)
    }

    fn fill_i64_here(&self, ids: &mut [i64]) -> Result<()> {
        self.ask(|leased| leased.try_fill_i64(ids, self.reach_here()))
    }

    fn check_fill(&self, count: usize) -> Result<()> {
        self.leased.check_fill(count)
    }
}

/// What typed arrays are read as.
pub(crate) trait Element: Copy {
    const KIND: sys::napi_typedarray_type;
}

impl Element for u8 {
    const KIND: sys::napi_typedarray_type = sys::TypedarrayType::uint8_array;
}

impl Element for i64 {
    const KIND: sys::napi_typedarray_type = sys::TypedarrayType::bigint64_array;
}

impl Element for f64 {
    const KIND: sys::napi_typedarray_type = sys::TypedarrayType::float64_array;
}

/// Memory in which JavaScript and a function that it calls leave numbers for each other, quicker
/// than arguments and results.
pub(crate) struct Tray {
    words: NonNull<Words>,
    array: Reference,
}

/// Atomics, since JavaScript could show the memory to other threads.
#[repr(C)]
struct Words {
    /// Of the generator that JavaScript means.
    place: AtomicU32,
    /// The place of the generator that made the last id.
    owner: AtomicU32,
    id: AtomicI64,
}

impl Tray {
    /// Takes a `BigInt64Array` of two, whose memory must be shared: that can neither be taken away
    /// nor become shorter.
    fn new(array: Value<'_>) -> Result<Self> {
        let shared = array.typed_array::<i64>().filter(|&(buffer, start, length)| {
            buffer.is_array_buffer() == Some(false)
                && size_of::<i64>() * length == size_of::<Words>()
                && start.cast::<Words>().is_aligned()
        });
        match shared.and_then(|(_, start, _)| NonNull::new(start.cast())) {
            Some(words) => Ok(Self { words, array: Reference::new(array)? }),
            None => Err(Error::new(
                ErrorKind::Internal,
                "the tray is a BigInt64Array of two in shared memory",
            )),
        }
    }

    fn words(&self) -> &Words {
        // SAFETY: `new` checked length and alignment, all bits are numbers, and `array` keeps the
        // memory, which is only ever used as atomics here.
        unsafe { self.words.as_ref() }
    }

    /// Returns the place that JavaScript has left.
    #[inline]
    pub(crate) fn place(&self) -> u32 {
        self.words().place.load(Ordering::Relaxed)
    }

    /// Leaves the place of the generator that has made an id.
    #[inline]
    pub(crate) fn set_owner(&self, place: u32) {
        self.words().owner.store(place, Ordering::Relaxed);
    }

    /// Leaves an id.
    #[inline]
    pub(crate) fn put(&self, id: i64) {
        self.words().id.store(id, Ordering::Relaxed);
    }

    pub(crate) fn array<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        self.array.value(js)
    }
}

/// A function of one argument that any thread may call: it runs on the thread of its environment,
/// later, and keeps no process alive.
pub(crate) struct Callback(
    ThreadsafeFunction<Argument, Unknown<'static>, Argument, Status, false, true>,
);

/// What makes an argument, on the thread of the environment.
struct Argument(Box<MakeArgument>);

type MakeArgument = dyn for<'a> FnOnce(Js<'a>) -> Result<Value<'a>> + Send;

impl Callback {
    /// Returns false if the environment has ended.
    pub(crate) fn call(
        &self,
        argument: impl for<'a> FnOnce(Js<'a>) -> Result<Value<'a>> + Send + 'static,
    ) -> bool {
        let mode = ThreadsafeFunctionCallMode::NonBlocking;
        self.0.call(Argument(Box::new(argument)), mode) == Status::Ok
    }
}

impl ToNapiValue for Argument {
    unsafe fn to_napi_value(env: sys::napi_env, made: Self) -> napi::Result<sys::napi_value> {
        let js = Js { env, call: PhantomData };
        let value = guarded(|| made.0(js));
        value.map(|value| value.raw).map_err(|error| js.napi_error(&error))
    }
}

/// Memory that V8 was told of. Stays on its thread, as it is neither Send nor Sync.
pub(crate) struct Weight {
    env: sys::napi_env,
    bytes: i64,
}

impl Weight {
    fn add(&self, bytes: i64) {
        let mut now = 0;
        // SAFETY: env is good, as in `Reference`, and there is room for one number. V8 only counts.
        unsafe { sys::napi_adjust_external_memory(self.env, bytes, &raw mut now) };
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.add(-self.bytes);
    }
}

/// A function or object that stays alive between calls. Stays on its thread, as it is neither
/// Send nor Sync.
pub(crate) struct Reference {
    env: sys::napi_env,
    raw: sys::napi_ref,
}

impl Reference {
    pub(crate) fn new(value: Value<'_>) -> Result<Self> {
        let (env, mut raw) = (value.js.env, ptr::null_mut());
        // SAFETY: env and value are good, and there is room for one reference.
        let status = unsafe { sys::napi_create_reference(env, value.raw, 1, &raw mut raw) };
        value.js.check(status).map(|()| Self { env, raw })
    }

    fn value<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        // SAFETY: as `make` says, and the reference is alive as long as self.
        js.make(|env, made| unsafe { sys::napi_get_reference_value(env, self.raw, made) })
    }

    /// Calls this function and returns what `read` makes of what it returned.
    pub(crate) fn call<R>(
        &self,
        this: Option<&Self>,
        argument: Option<f64>,
        read: impl FnOnce(Value<'_>) -> Result<R>,
    ) -> Result<R> {
        // Only functions made by `Js::function` use a reference, on its thread and during a call.
        let js = Js { env: self.env, call: PhantomData };
        let function = self.value(js)?;
        let this = this.map_or_else(|| js.undefined(), |this| this.value(js))?;
        let argument = argument.map(|number| js.number(number)).transpose()?;
        let arguments = argument.map(|argument| argument.raw);
        let arguments = arguments.as_slice();
        // SAFETY: as `make` says; function, receiver and arguments are good values.
        let returned = js.make(|env, made| unsafe {
            let (count, first) = (arguments.len(), arguments.as_ptr());
            sys::napi_call_function(env, this.raw, function.raw, count, first, made)
        })?;
        read(returned)
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // SAFETY: made by napi_create_reference in this environment and on this thread. Node-API
        // lets finalizers delete references, also while it takes an environment down.
        unsafe { sys::napi_delete_reference(self.env, self.raw) };
    }
}
