//! The errors of what is no argument at all: JavaScript sees its type, and describes it.

use randflake::{Result, bindings};

use crate::{
    objects::with_layout,
    shared::{finish, read_text},
};

#[unsafe(no_mangle)]
pub extern "C" fn refuse_id(length: usize) {
    finish(Err::<(), _>(read_text(length, |got| bindings::invalid_id(got))));
}

#[unsafe(no_mangle)]
pub extern "C" fn refuse_raw(length: usize) {
    finish(Err::<(), _>(read_text(length, |got| bindings::invalid_raw(got))));
}

#[unsafe(no_mangle)]
pub extern "C" fn refuse_secret(length: usize) {
    finish(Err::<(), _>(read_text(length, |got| bindings::invalid_secret(got))));
}

#[unsafe(no_mangle)]
pub extern "C" fn refuse_node(layout: usize, length: usize) {
    finish::<()>(read_text(length, |got| -> Result<()> {
        with_layout(layout, |layout| Err(bindings::invalid_node(layout, got)))
    }));
}

#[unsafe(no_mangle)]
pub extern "C" fn refuse_sequence(layout: usize, length: usize) {
    finish::<()>(read_text(length, |got| -> Result<()> {
        with_layout(layout, |layout| Err(bindings::invalid_sequence(layout, got)))
    }));
}
