//! What calling costs: functions that do nothing but return what `generate` and `generateString`
//! return.

use std::{
    ffi::CStr,
    hint::black_box,
    ptr::{null, null_mut},
};

use napi_sys::{
    Status, napi_callback_info, napi_create_bigint_int64, napi_create_function,
    napi_create_string_latin1, napi_env, napi_set_named_property, napi_value,
};

type Function = unsafe extern "C" fn(napi_env, napi_callback_info) -> napi_value;

const TEXT: &CStr = c"3vgoe12ccb8gh";

unsafe extern "C" fn integer(env: napi_env, _: napi_callback_info) -> napi_value {
    let mut value = null_mut();
    // SAFETY: Node called, so env is good; value has room for one.
    unsafe { napi_create_bigint_int64(env, black_box(4_594_531_474_933_654_033), &raw mut value) };
    value
}

unsafe extern "C" fn text(env: napi_env, _: napi_callback_info) -> napi_value {
    let mut value = null_mut();
    let length = TEXT.count_bytes().cast_signed();
    // SAFETY: Node called, so env is good; TEXT has that many bytes, value has room for one.
    unsafe { napi_create_string_latin1(env, black_box(TEXT).as_ptr(), length, &raw mut value) };
    value
}

/// Adds the functions to what `process.dlopen` hands out.
///
/// # Safety
///
/// Only Node calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn napi_register_module_v1(env: napi_env, exports: napi_value) -> napi_value {
    for (name, function) in [(c"integer", integer as Function), (c"text", text)] {
        let mut value = null_mut();
        // SAFETY: Node called, so env and exports are good; value has room for one.
        let status = unsafe {
            napi_create_function(env, null(), 0, Some(function), null_mut(), &raw mut value)
        };
        assert_eq!(status, Status::napi_ok);
        // SAFETY: as above; value is the function just made.
        unsafe { napi_set_named_property(env, exports, name.as_ptr(), value) };
    }
    exports
}
