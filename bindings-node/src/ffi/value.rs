//! Values of JavaScript, made and read.

use std::{
    any::TypeId,
    ffi::{CStr, c_void},
    hint,
    marker::PhantomData,
    ptr,
};

use napi::{
    JsString, JsStringUtf8, JsValue, Unknown, ValueType,
    bindgen_prelude::{Array, Either, FromNapiValue, ToNapiValue, Utf16String},
    sys,
};
use randflake::{Error, ErrorKind, Result};

/// The JavaScript thread during one call: makes values there.
#[derive(Clone, Copy)]
pub(crate) struct Js<'call> {
    pub(super) env: sys::napi_env,
    pub(super) call: PhantomData<&'call ()>,
}

/// A JavaScript value, alive during one call. It is not `Send`: it cannot leave its thread.
#[derive(Clone, Copy)]
pub(crate) struct Value<'call> {
    pub(super) js: Js<'call>,
    pub(super) raw: sys::napi_value,
}

#[cold]
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn refused_by_napi(error: napi::Error) -> Error {
    Error::new(ErrorKind::Internal, error.reason.clone())
}

impl<'call> Js<'call> {
    /// Makes a value from anything that napi-rs can convert.
    pub(crate) fn convert(self, native: impl ToNapiValue) -> Result<Value<'call>> {
        // SAFETY: env is valid.
        match unsafe { ToNapiValue::to_napi_value(self.env, native) } {
            Ok(raw) => Ok(Value { js: self, raw }),
            Err(error) => Err(refused_by_napi(error)),
        }
    }

    /// Makes an object that owns a Rust value, for [`Value::owned`].
    pub(crate) fn own<T: 'static>(self, value: T) -> Result<Value<'call>> {
        self.own_weighing(value, 0)
    }

    /// The same, for a value that keeps this many bytes which V8 does not see: otherwise V8 would
    /// collect it late.
    pub(crate) fn own_weighing<T: 'static>(self, value: T, bytes: usize) -> Result<Value<'call>> {
        let bytes = i64::try_from(bytes).unwrap_or(0);
        let owned = Box::into_raw(Box::new(Owned { kind: TypeId::of::<T>(), bytes, value }));
        // SAFETY: as `make` says; the finalizer takes the box back, once.
        let made = self.make(|env, made| unsafe {
            sys::napi_create_external(
                env,
                owned.cast(),
                Some(drop_owned::<T>),
                ptr::null_mut(),
                made,
            )
        });
        match made {
            Ok(_) => weigh(self.env, bytes),
            // SAFETY: from Box::into_raw above, and no finalizer has it.
            Err(_) => drop(unsafe { Box::from_raw(owned) }),
        }
        made
    }

    /// Only for returning: the result of a function without a result, 4 ns faster than a value.
    pub(crate) fn undefined(self) -> Value<'call> {
        Value { js: self, raw: ptr::null_mut() }
    }

    /// Makes a string of one-byte characters.
    pub(crate) fn latin1(self, text: &[u8]) -> Result<Value<'call>> {
        let (start, length) = (text.as_ptr().cast(), text.len().cast_signed());
        // SAFETY: as `make` says, and text is as long as it says.
        self.make(|env, made| unsafe { sys::napi_create_string_latin1(env, start, length, made) })
    }

    pub(crate) fn object(self, properties: &[(&CStr, Value<'call>)]) -> Result<Value<'call>> {
        // SAFETY: as `make` says.
        let object = self.make(|env, made| unsafe { sys::napi_create_object(env, made) })?;
        for (name, value) in properties {
            // SAFETY: env and both values are valid, and the name ends with a zero.
            let status = unsafe {
                sys::napi_set_named_property(self.env, object.raw, name.as_ptr(), value.raw)
            };
            check(status)?;
        }
        Ok(object)
    }

    /// Makes Node-API make a value; `make` may use its arguments, a valid environment and room for
    /// one value, in one call of Node-API.
    #[inline]
    pub(super) fn make(
        self,
        make: impl FnOnce(sys::napi_env, *mut sys::napi_value) -> sys::napi_status,
    ) -> Result<Value<'call>> {
        let mut raw = ptr::null_mut();
        check(make(self.env, &raw mut raw))?;
        Ok(Value { js: self, raw })
    }
}

#[inline]
pub(super) fn check(status: sys::napi_status) -> Result<()> {
    if status == sys::Status::napi_ok { Ok(()) } else { Err(refused(status)) }
}

/// If JavaScript code has thrown, its exception is pending and is thrown instead of this error.
#[cold]
fn refused(status: sys::napi_status) -> Error {
    Error::new(ErrorKind::Internal, format!("Node-API refused a call with status {status}"))
}

impl<'call> Value<'call> {
    pub(crate) fn js(self) -> Js<'call> {
        self.js
    }

    /// Converts this as napi-rs does; `None` if it is of another type.
    pub(crate) fn to<T: FromNapiValue>(self) -> Option<T> {
        // SAFETY: env and value are valid.
        unsafe { T::from_napi_value(self.js.env, self.raw) }.ok()
    }

    /// Returns the Rust value that this object owns.
    pub(crate) fn owned<T: 'static>(self) -> Result<&'call T> {
        // SAFETY: as `read` says.
        let data = self.read(ptr::null_mut(), |env, raw, read| unsafe {
            sys::napi_get_value_external(env, raw, read)
        });
        let data = data.unwrap_or_default();
        // SAFETY: null, or what `Js::own` made, since the JavaScript half, the only caller, has no other
        // externals; it begins with a TypeId, and lives while the value does: during the call.
        if unsafe { data.cast::<TypeId>().as_ref() } == Some(&TypeId::of::<T>()) {
            // SAFETY: as above, and of this type.
            return Ok(unsafe { &(*data.cast::<Owned<T>>()).value });
        }
        Err(Error::new(ErrorKind::Internal, "a native function needs its native object"))
    }

    fn type_of(self) -> ValueType {
        // It cannot fail, as env and value are valid.
        Unknown::from(self).get_type().unwrap_or(ValueType::Unknown)
    }

    pub(crate) fn is_undefined(self) -> bool {
        self.type_of() == ValueType::Undefined
    }

    pub(crate) fn is_bigint(self) -> bool {
        self.type_of() == ValueType::BigInt
    }

    /// Says what this is, for errors: a number itself, and for everything else only the type, since
    /// it may be a misplaced secret.
    pub(crate) fn description(self) -> String {
        if self.type_of() == ValueType::Number {
            // Numbers are turned into text without running a script.
            let value = Unknown::from(self);
            let text = value.coerce_to_string();
            let text = text.and_then(JsString::into_utf8).and_then(JsStringUtf8::into_owned);
            if let Ok(number) = text {
                return number;
            }
        }
        self.type_name().into()
    }

    /// Names the type of this.
    pub(crate) fn type_name(self) -> &'static str {
        match self.type_of() {
            ValueType::Number => "a number",
            ValueType::Undefined => "undefined",
            ValueType::Null => "null",
            ValueType::Boolean => "a boolean",
            ValueType::String => "a string",
            ValueType::Symbol => "a symbol",
            ValueType::Function => "a function",
            ValueType::BigInt => "a bigint",
            _ => "an object",
        }
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
    /// this is not a string.
    pub(crate) fn read_text<R>(self, read: impl FnOnce(&str) -> R) -> Option<R> {
        let mut short = [0; 64];
        let written = self.copy_text(&mut short)?;
        // Only whole characters are copied, of up to four bytes; then a zero.
        if written + 5 <= short.len() {
            let done = read(&String::from_utf8_lossy(&short[..written]));
            short.fill(0); // secrets pass through here
            hint::black_box(&short);
            return Some(done);
        }
        self.to::<String>().map(|text| read(&text))
    }

    /// Returns the text of a string; `None` if this is not a string, or if it has a lone surrogate,
    /// which is not Unicode text.
    pub(crate) fn as_unicode(self) -> Option<String> {
        String::from_utf16(&self.to::<Utf16String>()?).ok()
    }

    /// Copies as much text as there is room for, with the zero at its end.
    fn copy_text(self, buffer: &mut [u8]) -> Option<usize> {
        let (start, room) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: as `read` says, and the buffer has this much room.
        self.read(0, |env, raw, read| unsafe {
            sys::napi_get_value_string_utf8(env, raw, start, room, read)
        })
    }

    /// Returns the elements of an array, or an error if there are more than `most`; `None` if this
    /// is not an array.
    pub(crate) fn elements(
        self,
        most: usize,
        too_many: impl FnOnce(usize) -> Error,
    ) -> Result<Option<Vec<Self>>> {
        let Some(array) = self.to::<Array<'_>>() else {
            return Ok(None);
        };
        let length = array.len();
        if length as usize > most {
            return Err(too_many(length as usize));
        }
        let element = |index| {
            // SAFETY: as `make` says.
            self.js.make(|env, made| unsafe { sys::napi_get_element(env, self.raw, index, made) })
        };
        (0..length).map(element).collect::<Result<_>>().map(Some)
    }

    /// Returns a property of an object; `None` if it is undefined.
    pub(crate) fn get(self, name: &CStr) -> Result<Option<Self>> {
        Ok(Some(self.property(name)?).filter(|value| !value.is_undefined()))
    }

    pub(crate) fn property(self, name: &CStr) -> Result<Self> {
        // SAFETY: as `make` says, and the name ends with a zero.
        self.js.make(|env, made| unsafe {
            sys::napi_get_named_property(env, self.raw, name.as_ptr(), made)
        })
    }

    /// Makes an object or an array immutable.
    pub(crate) fn freeze(self) -> Result<Self> {
        // SAFETY: env and object are valid.
        let status = unsafe { sys::napi_object_freeze(self.js.env, self.raw) };
        check(status).map(|()| self)
    }

    /// Makes Node-API read something from the value, if it is of the right type; `read` may use its
    /// arguments, a valid environment, this value and room for one `R`, in one call of Node-API.
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
        // SAFETY: env and value are valid.
        unsafe { Self::from_raw_unchecked(value.js.env, value.raw) }
    }
}

impl FromNapiValue for Value<'_> {
    unsafe fn from_napi_value(env: sys::napi_env, raw: sys::napi_value) -> napi::Result<Self> {
        Ok(Self { js: Js { env, call: PhantomData }, raw })
    }
}

impl ToNapiValue for Value<'_> {
    unsafe fn to_napi_value(_: sys::napi_env, value: Self) -> napi::Result<sys::napi_value> {
        Ok(value.raw)
    }
}

/// What [`Js::own`] gives to JavaScript.
#[repr(C)]
struct Owned<T> {
    kind: TypeId,
    bytes: i64,
    value: T,
}

unsafe extern "C" fn drop_owned<T>(env: sys::napi_env, owned: *mut c_void, _: *mut c_void) {
    // SAFETY: it is the finalizer of one Box::into_raw of this type, and runs once.
    let owned = unsafe { Box::from_raw(owned.cast::<Owned<T>>()) };
    weigh(env, -owned.bytes);
}

/// Reports to V8 how many bytes more, or fewer, are kept by the objects that it sees.
fn weigh(env: sys::napi_env, bytes: i64) {
    let mut now = 0;
    // SAFETY: env is valid, and there is room for one number. V8 only counts.
    unsafe { sys::napi_adjust_external_memory(env, bytes, &raw mut now) };
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
        // SAFETY: env and value are valid, and there is room for one reference.
        let status = unsafe { sys::napi_create_reference(env, value.raw, 1, &raw mut raw) };
        check(status).map(|()| Self { env, raw })
    }

    pub(crate) fn value<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        // SAFETY: as `make` says, and the reference is alive as long as self.
        js.make(|env, made| unsafe { sys::napi_get_reference_value(env, self.raw, made) })
    }

    /// Calls this function and returns what `read` makes of its result.
    pub(crate) fn call<R>(
        &self,
        argument: Option<f64>,
        read: impl FnOnce(Value<'_>) -> Result<R>,
    ) -> Result<R> {
        // References are used on their thread and during a call.
        let js = Js { env: self.env, call: PhantomData };
        let (this, function) = (js.convert(())?, self.value(js)?);
        let argument = js.convert(argument.map_or(Either::B(()), Either::A))?;
        // SAFETY: as `make` says; function, receiver and argument are valid.
        let returned = js.make(|env, made| unsafe {
            sys::napi_call_function(env, this.raw, function.raw, 1, &raw const argument.raw, made)
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
