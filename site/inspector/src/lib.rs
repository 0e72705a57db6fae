//! Reads ids for a page, and makes some. The page writes a request into [`request`], calls
//! [`answer`], and finds the text at [`answered`]: lines, each with a name and a value.
//!
//! Plain functions and numbers: a page needs no generated code to call them.
#![allow(unsafe_code, reason = "functions that JavaScript calls are exported by their names")]

mod operations;

use std::sync::{Mutex, MutexGuard, PoisonError};

use zeroize::Zeroize;

use crate::operations::perform;

/// The request, and then the answer.
static TEXT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn text() -> MutexGuard<'static, Vec<u8>> {
    TEXT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes room for a request of so many bytes of UTF-8, and returns where to write it. Its first line
/// is the operation, the others are its arguments.
#[unsafe(no_mangle)]
pub extern "C" fn request(length: usize) -> *mut u8 {
    let mut text = text();
    text.zeroize();
    text.resize(length, 0);
    text.as_mut_ptr()
}

/// Performs the request, erases it, and returns how long the answer is, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    let mut text = text();
    let answer = perform(&String::from_utf8_lossy(&text));
    text.zeroize();
    *text = answer.into_bytes();
    text.len()
}

/// Returns where the answer is.
#[unsafe(no_mangle)]
pub extern "C" fn answered() -> *const u8 {
    text().as_ptr()
}
