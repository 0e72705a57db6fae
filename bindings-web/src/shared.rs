//! The memory that both sides read and write, and how a call ends.

use std::{cell::RefCell, fmt::Display, mem};

use randflake::Result;
use zeroize::Zeroize;

thread_local! {
    /// The texts of a call, and then its answer or its error.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The numbers of a call, and then what it made of them.
    static NUMBERS: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
    static HAS_FAILED: RefCell<bool> = const { RefCell::new(false) };
}

/// Erases the text, makes room for so many bytes of the next, and returns where to write them.
#[unsafe(no_mangle)]
pub extern "C" fn text_room(length: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|text| {
        text.zeroize();
        text.resize(length, 0);
        text.as_mut_ptr()
    })
}

/// Returns where the text of an answer is.
#[unsafe(no_mangle)]
pub extern "C" fn text_start() -> *const u8 {
    TEXT.with_borrow(Vec::as_ptr)
}

/// Returns how many bytes the text of an answer has.
#[unsafe(no_mangle)]
pub extern "C" fn text_length() -> usize {
    TEXT.with_borrow(Vec::len)
}

/// Makes room for so many numbers, and returns where to write them.
#[unsafe(no_mangle)]
pub extern "C" fn number_room(length: usize) -> *mut i64 {
    NUMBERS.with_borrow_mut(|numbers| {
        // Others are not kept: there may be many, once.
        *numbers = vec![0; length];
        numbers.as_mut_ptr()
    })
}

/// Returns where the numbers of an answer are.
#[unsafe(no_mangle)]
pub extern "C" fn number_start() -> *const i64 {
    NUMBERS.with_borrow(Vec::as_ptr)
}

/// Returns whether the last call failed: its error is then the text, a line with the code, and the
/// message.
#[unsafe(no_mangle)]
pub extern "C" fn has_failed() -> bool {
    HAS_FAILED.with_borrow(|failed| *failed)
}

/// Ends a call: returns what it made, or leaves its error.
pub(crate) fn finish<T: Default>(made: Result<T>) -> T {
    HAS_FAILED.set(made.is_err());
    made.unwrap_or_else(|error| {
        answer(format_args!("{}\n{error}", error.code()));
        T::default()
    })
}

/// Leaves a text for JavaScript.
pub(crate) fn answer(text: impl Display) {
    TEXT.with_borrow_mut(|answer| {
        answer.zeroize();
        *answer = text.to_string().into_bytes();
    });
}

/// Reads texts of these lengths, one after the other, and erases them.
pub(crate) fn read<const COUNT: usize, T>(
    lengths: [usize; COUNT],
    read: impl FnOnce([&[u8]; COUNT]) -> T,
) -> T {
    let mut text = TEXT.with_borrow_mut(mem::take);
    let mut rest = text.as_slice();
    let done = read(lengths.map(|length| {
        let (one, others) = rest.split_at(length.min(rest.len()));
        rest = others;
        one
    }));
    text.zeroize();
    // The same room serves the next call.
    TEXT.set(text);
    done
}

/// Reads one text, of which JavaScript makes UTF-8 in any case, and erases it.
pub(crate) fn read_text<T>(length: usize, take: impl FnOnce(&str) -> T) -> T {
    read([length], |[text]| take(&String::from_utf8_lossy(text)))
}

/// Changes the numbers.
pub(crate) fn change_numbers(change: impl FnOnce(&mut Vec<i64>)) {
    NUMBERS.with_borrow_mut(change);
}
