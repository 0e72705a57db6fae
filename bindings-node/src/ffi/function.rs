//! Functions that JavaScript calls, the errors they throw, and the promises they return.

use std::{
    any::Any,
    ffi::{CStr, c_void},
    io,
    marker::PhantomData,
    panic::{self, AssertUnwindSafe},
    ptr,
    rc::Rc,
    time::Duration,
};

use napi::{
    JsValue, Status, Unknown,
    bindgen_prelude::{FromNapiValue, PromiseRaw, ToNapiValue},
    sys,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};
use randflake::{Error, ErrorKind, Result};

use super::value::{Js, Reference, Value, check, refused_by_napi};

/// What one environment, the main thread or a worker, has once.
struct InstanceData {
    error_class: Reference,
    state: Rc<dyn Any>,
}

/// Runs `call` and turns a panic into an error.
fn guarded<R>(call: impl FnOnce() -> Result<R>) -> Result<R> {
    // What a panic leaves behind is protected by atomics and locks, which the core checks.
    panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<&str>().copied();
        let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::new(
            ErrorKind::Internal,
            format!("a defect of randflake, please report it: {}", message.unwrap_or("a panic")),
        ))
    })
}

#[cold]
fn not_loaded() -> Error {
    Error::new(ErrorKind::Internal, "this environment did not load the native half")
}

/// Returns the fewest whole milliseconds that are not shorter than `duration`.
#[allow(clippy::cast_precision_loss, reason = "waits are far below 2^53 ms")]
pub(crate) fn whole_ms(duration: Duration) -> f64 {
    duration.as_nanos().div_ceil(1_000_000) as f64
}

/// What a `#[napi]` function returns. Its error is thrown as a `RandflakeError`.
#[allow(missing_debug_implementations, reason = "it only passes")]
pub struct Outcome<T>(Result<T>);

/// Runs the body of a `#[napi]` function.
pub(crate) fn outcome<T>(body: impl FnOnce() -> Result<T>) -> Outcome<T> {
    Outcome(guarded(body))
}

impl<T: ToNapiValue> ToNapiValue for Outcome<T> {
    unsafe fn to_napi_value(env: sys::napi_env, made: Self) -> napi::Result<sys::napi_value> {
        match made.0 {
            // SAFETY: env is valid.
            Ok(value) => unsafe { T::to_napi_value(env, value) },
            Err(error) => {
                Js { env, call: PhantomData }.throw(&error);
                Ok(ptr::null_mut())
            }
        }
    }
}

/// The body of every function that [`Js::function`] makes: reads the call, runs `F`, throws its
/// error.
unsafe extern "C" fn called<S: 'static, F, const N: usize>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value
where
    F: for<'a> Fn(&S, Js<'a>, [Value<'a>; N]) -> Result<Value<'a>>,
{
    let js = Js { env, call: PhantomData };
    let (mut arguments, mut count) = ([ptr::null_mut(); N], N);
    let mut data = ptr::null_mut();
    let (count, room) = match N {
        0 => (ptr::null_mut(), ptr::null_mut()), // not to be returned
        _ => (&raw mut count, arguments.as_mut_ptr()),
    };
    // SAFETY: Node called, so env and info are valid; there is room for N arguments and one data.
    let status =
        unsafe { sys::napi_get_cb_info(env, info, count, room, ptr::null_mut(), &raw mut data) };
    let returned = check(status).and_then(|()| {
        // SAFETY: `Js::function` took it from the state of this environment, which outlives all
        // calls in it and is never replaced.
        let state = unsafe { &*data.cast::<S>() };
        // SAFETY: F is zero-sized, and `Js::function` was given one.
        let call = unsafe { ptr::NonNull::<F>::dangling().as_ref() };
        guarded(|| call(state, js, arguments.map(|raw| Value { js, raw })))
    });
    match returned {
        Ok(value) => value.raw,
        Err(error) => {
            js.throw(&error);
            ptr::null_mut()
        }
    }
}

impl<'call> Js<'call> {
    /// Returns the thread that napi-rs calls on.
    pub(crate) fn of(env: &'call napi::Env) -> Self {
        Self { env: env.raw(), call: PhantomData }
    }

    /// Keeps the class of errors and the state of this environment, unless an earlier load did.
    pub(crate) fn enter<S: 'static>(
        self,
        error_class: Value<'_>,
        state: impl FnOnce() -> Result<S>,
    ) -> Result<Rc<S>> {
        if self.instance_data().is_err() {
            let data = InstanceData {
                error_class: Reference::new(error_class)?,
                state: Rc::new(state()?),
            };
            let env = napi::Env::from_raw(self.env);
            env.set_instance_data(data, (), |_| ()).map_err(refused_by_napi)?;
        }
        self.state()
    }

    /// Returns the state that `enter` keeps.
    pub(crate) fn state<S: 'static>(self) -> Result<Rc<S>> {
        Rc::clone(&self.instance_data()?.state).downcast().map_err(|_| not_loaded())
    }

    pub(crate) fn error_class(self) -> Result<Value<'call>> {
        self.instance_data()?.error_class.value(self)
    }

    fn instance_data(self) -> Result<&'call InstanceData> {
        let data = napi::Env::from_raw(self.env).get_instance_data().map_err(refused_by_napi)?;
        data.map(|data| &*data).ok_or_else(not_loaded)
    }

    /// Makes a function that calls `call` with the state of this environment. For calls that must
    /// be fast: functions of `#[napi]` take longer.
    pub(crate) fn function<S: 'static, F, const N: usize>(
        self,
        name: &CStr,
        call: F,
    ) -> Result<Value<'call>>
    where
        F: for<'a> Fn(&S, Js<'a>, [Value<'a>; N]) -> Result<Value<'a>> + 'static,
    {
        const {
            assert!(size_of::<F>() == 0, "a function of Rust, or a closure without captures");
        }
        std::mem::forget(call);
        let data = Rc::as_ptr(&self.state::<S>()?).cast_mut().cast::<c_void>();
        let callback: sys::napi_callback = Some(called::<S, F, N>);
        let length = name.count_bytes().cast_signed();
        // SAFETY: name is as long as it says, and data is what the callback expects.
        self.make(|env, made| unsafe {
            sys::napi_create_function(env, name.as_ptr(), length, callback, data, made)
        })
    }

    /// Makes the JavaScript error of an error.
    pub(crate) fn error(self, error: &Error) -> Result<Value<'call>> {
        let class = self.error_class()?;
        let retry_after = match error.retry_after() {
            Some(wait) => self.convert(whole_ms(wait))?,
            None => self.convert(())?,
        };
        let options = match error.cause() {
            Some(cause) => self.object(&[(c"cause", self.error(cause)?)])?,
            None => self.convert(())?,
        };
        let (code, message) = (self.convert(error.code())?, self.convert(error.to_string())?);
        let arguments = [code.raw, message.raw, retry_after.raw, options.raw];
        // SAFETY: env and class are valid, and there are as many arguments as it says.
        self.make(|env, made| unsafe {
            sys::napi_new_instance(env, class.raw, arguments.len(), arguments.as_ptr(), made)
        })
    }

    /// The same, for napi-rs to reject a promise with.
    fn napi_error(self, error: &Error) -> napi::Error {
        match self.error(error) {
            Ok(made) => napi::Error::from(Unknown::from(made)),
            Err(_) => napi::Error::from_reason(error.to_string()),
        }
    }

    #[cold]
    fn throw(self, error: &Error) {
        if let Ok(made) = self.error(error) {
            // SAFETY: env and value are valid.
            unsafe { sys::napi_throw(self.env, made.raw) };
            return;
        }
        // Its class is not known before `enter`. If an exception is pending, such as one that was
        // thrown while making the error with a full stack, that one stays.
        let _pending = napi::Env::from_raw(self.env).throw_error(&error.to_string(), None);
    }

    /// Promises what `finish` makes of the result of `work`, which `start` runs on another thread.
    /// A result that comes after the environment has ended is dropped.
    pub(crate) fn promise<R: Send + 'static>(
        self,
        start: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<()>,
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
            let why = format!("cannot start a thread: {error}");
            unstarted.reject(self.napi_error(&Error::new(ErrorKind::StoreUnavailable, why)));
        }
        Ok(promise)
    }
}

/// A function of one argument that any thread may call: it runs on the thread of its environment,
/// later, and does not keep the process alive.
pub(crate) struct Callback(
    ThreadsafeFunction<Argument, Unknown<'static>, Argument, Status, false, true>,
);

/// Makes an argument, on the thread of the environment.
struct Argument(Box<MakeArgument>);

type MakeArgument = dyn for<'a> FnOnce(Js<'a>) -> Result<Value<'a>> + Send;

impl Callback {
    pub(crate) fn new(function: Value<'_>) -> Result<Self> {
        // SAFETY: env and value are valid.
        let callback = unsafe { FromNapiValue::from_napi_value(function.js.env, function.raw) };
        callback.map(Self).map_err(refused_by_napi)
    }

    /// Calls the function, which returns a promise that is never rejected, and lets `read` read
    /// what it resolves to. Returns false if the environment has ended.
    pub(crate) fn call(
        &self,
        argument: impl for<'a> FnOnce(Js<'a>) -> Result<Value<'a>> + Send + 'static,
        read: impl FnOnce(Value<'_>) + Send + 'static,
    ) -> bool {
        let read = move |promised: napi::Result<Unknown<'static>>, env: napi::Env| {
            let promise = PromiseRaw::<Value<'_>>::new(env.raw(), promised?.raw());
            promise.then(move |context| {
                let _panicked = guarded(|| {
                    read(context.value);
                    Ok(())
                });
                Ok(())
            })?;
            Ok(())
        };
        let mode = ThreadsafeFunctionCallMode::NonBlocking;
        self.0.call_with_return_value(Argument(Box::new(argument)), mode, read) == Status::Ok
    }
}

impl ToNapiValue for Argument {
    unsafe fn to_napi_value(env: sys::napi_env, made: Self) -> napi::Result<sys::napi_value> {
        let js = Js { env, call: PhantomData };
        let value = guarded(|| made.0(js));
        value.map(|value| value.raw).map_err(|error| js.napi_error(&error))
    }
}
