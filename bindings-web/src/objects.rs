//! The objects that JavaScript holds, each by a number.

use std::cell::RefCell;

use randflake::{Cloak, Codes, Error, ErrorKind, Inspector, Layout, Result};

pub(crate) enum Object {
    Inspector(Inspector),
    Cloak(Cloak),
    Codes(Codes),
    Layout(Layout),
}

thread_local! {
    /// The place of an object is its handle.
    static OBJECTS: RefCell<Vec<Option<Object>>> = const { RefCell::new(Vec::new()) };
    static FREE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Keeps an object, and returns its handle.
pub(crate) fn keep(object: Object) -> usize {
    OBJECTS.with_borrow_mut(|objects| {
        if let Some(handle) = FREE.with_borrow_mut(Vec::pop) {
            objects[handle] = Some(object);
            return handle;
        }
        objects.push(Some(object));
        objects.len() - 1
    })
}

/// Drops an object, and erases the keys in it.
#[unsafe(no_mangle)]
pub extern "C" fn forget(handle: usize) {
    let dropped = OBJECTS.with_borrow_mut(|objects| objects.get_mut(handle)?.take());
    if dropped.is_some() {
        FREE.with_borrow_mut(|free| free.push(handle));
    }
}

/// Uses an object.
macro_rules! using {
    ($name:ident, $kind:ident) => {
        pub(crate) fn $name<T>(handle: usize, work: impl FnOnce(&$kind) -> Result<T>) -> Result<T> {
            OBJECTS.with_borrow(|objects| match objects.get(handle) {
                Some(Some(Object::$kind(object))) => work(object),
                _ => Err(Error::new(ErrorKind::Internal, "there is no such object")),
            })
        }
    };
}

using!(with_inspector, Inspector);
using!(with_cloak, Cloak);
using!(with_codes, Codes);
using!(with_layout, Layout);
