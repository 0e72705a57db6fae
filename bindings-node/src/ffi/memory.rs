//! Memory that JavaScript and Rust share: the elements of typed arrays, and the shared call buffer.

use std::{
    ptr::{self, NonNull},
    slice,
    sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering},
};

use napi::sys;
use randflake::{Error, ErrorKind, Result};

use super::value::{Js, Reference, Value};

/// Runs `call` on the elements of a `BigInt64Array`, in place. `None` for any other value, and for
/// memory that another thread may see.
pub(crate) fn in_place<R>(ids: Value<'_>, call: impl FnOnce(&mut [i64]) -> R + Send) -> Option<R> {
    let (start, length) = elements::<i64>(ids)?;
    // SAFETY: aligned and initialised, as `elements` says. Only this thread can reach the memory, and
    // it runs no script meanwhile, which could free, move or change it: being Send, `call` has no
    // Js, Value or Reference to run one with.
    let elements = unsafe { slice::from_raw_parts_mut(start.as_ptr(), length) };
    Some(call(elements))
}

/// Runs `fill`, which may run scripts, on a copy of the elements of a `BigInt64Array`. `None` as in
/// [`in_place`], also if `fill` made it so.
pub(crate) fn fill_by_copy(
    ids: Value<'_>,
    fill: impl FnOnce(&mut [i64]) -> Result<()>,
) -> Option<Result<()>> {
    let mut own = copied::<i64>(ids)?;
    let filled = fill(&mut own); // zeroed if it failed
    overwrite(ids, &own).map(|()| filled)
}

/// Overwrites a typed array of this kind and length; `None` as in [`in_place`].
fn overwrite<T: Element>(array: Value<'_>, new: &[T]) -> Option<()> {
    let (start, length) = elements(array).filter(|&(_, length)| length == new.len())?;
    // SAFETY: as in `in_place`; `new` is Rust's memory.
    unsafe { slice::from_raw_parts_mut(start.as_ptr(), length) }.copy_from_slice(new);
    Some(())
}

/// Copies the elements of a typed array of this kind; `None` as in [`in_place`].
pub(crate) fn copied<T: Element>(array: Value<'_>) -> Option<Vec<T>> {
    let (start, length) = elements::<T>(array)?;
    // SAFETY: as in `in_place`.
    Some(unsafe { slice::from_raw_parts(start.as_ptr(), length) }.to_vec())
}

/// Returns where a typed array of this kind has its elements, and how many, until a script runs
/// again. `None` for other values, for memory shared with other threads, and if the memory was
/// detached or is not aligned.
fn elements<T: Element>(array: Value<'_>) -> Option<(NonNull<T>, usize)> {
    let (buffer, start, length) = typed_array::<T>(array)?;
    let env = array.js.env;
    let mut detached = true;
    // SAFETY: env and buffer are valid, and there is room for one bool.
    let status = unsafe { sys::napi_is_detached_arraybuffer(env, buffer, &raw mut detached) };
    if status != sys::Status::napi_ok || detached || !is_array_buffer(array, buffer) {
        return None;
    }
    if length == 0 {
        return Some((NonNull::dangling(), 0));
    }
    NonNull::new(start).filter(|start| start.is_aligned()).map(|start| (start, length))
}

/// Returns the buffer of a typed array of this kind, where its elements begin, and how many there
/// are; `None` for any other value.
fn typed_array<T: Element>(array: Value<'_>) -> Option<(sys::napi_value, *mut T, usize)> {
    let (mut kind, mut length) = (0, 0);
    let (mut start, mut buffer) = (ptr::null_mut(), ptr::null_mut());
    let (env, raw) = (array.js.env, array.raw);
    // SAFETY: env and value are valid, and there is room for each answer.
    let status = unsafe {
        let (kind, length, offset) = (&raw mut kind, &raw mut length, ptr::null_mut());
        let (start, buffer) = (&raw mut start, &raw mut buffer);
        sys::napi_get_typedarray_info(env, raw, kind, length, start, buffer, offset)
    };
    (status == sys::Status::napi_ok && kind == T::KIND).then(|| (buffer, start.cast(), length))
}

/// Returns whether the buffer of an array is an `ArrayBuffer`, not a `SharedArrayBuffer`.
fn is_array_buffer(array: Value<'_>, buffer: sys::napi_value) -> bool {
    let env = array.js.env;
    let mut is = false;
    // SAFETY: env and buffer are valid, and there is room for one bool.
    let status = unsafe { sys::napi_is_arraybuffer(env, buffer, &raw mut is) };
    status == sys::Status::napi_ok && is
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

impl Element for u64 {
    const KIND: sys::napi_typedarray_type = sys::TypedarrayType::biguint64_array;
}

/// The shared call buffer: numbers that JavaScript and a function it calls leave for each other,
/// which is faster than arguments and results.
pub(crate) struct CallBuffer {
    fields: NonNull<Fields>,
    array: Reference,
}

/// Atomics, since JavaScript could show the memory to other threads.
#[repr(C)]
struct Fields {
    /// The index of the generator that JavaScript means.
    generator: AtomicU32,
    /// The index of the generator that made the last id.
    owner: AtomicU32,
    id: AtomicI64,
    /// The bits of the parts of the last id that was read, as floating-point numbers.
    parts: [AtomicU64; 3],
}

impl CallBuffer {
    /// No generator has this index.
    pub(crate) const NOBODY: u32 = u32::MAX;

    /// Takes a `BigInt64Array` of five, whose memory must be shared: shared memory cannot be
    /// detached or shortened.
    pub(crate) fn new(array: Value<'_>) -> Result<Self> {
        let shared = typed_array::<i64>(array).filter(|&(buffer, start, length)| {
            !is_array_buffer(array, buffer)
                && size_of::<i64>() * length == size_of::<Fields>()
                && start.cast::<Fields>().is_aligned()
        });
        match shared.and_then(|(_, start, _)| NonNull::new(start.cast())) {
            Some(fields) => Ok(Self { fields, array: Reference::new(array)? }),
            None => Err(Error::new(
                ErrorKind::Internal,
                "the call buffer is a BigInt64Array of five in shared memory",
            )),
        }
    }

    fn fields(&self) -> &Fields {
        // SAFETY: `new` checked length and alignment, all bits are numbers, and `array` keeps the
        // memory, which is only ever used as atomics here.
        unsafe { self.fields.as_ref() }
    }

    /// Returns the index that JavaScript has left.
    #[inline]
    pub(crate) fn generator(&self) -> u32 {
        self.fields().generator.load(Ordering::Relaxed)
    }

    /// Leaves the index of the generator that has made an id.
    #[inline]
    pub(crate) fn set_owner(&self, generator: u32) {
        self.fields().owner.store(generator, Ordering::Relaxed);
    }

    /// Leaves an id.
    #[inline]
    pub(crate) fn put(&self, id: i64) {
        self.fields().id.store(id, Ordering::Relaxed);
    }

    /// Leaves the parts of an id.
    #[inline]
    pub(crate) fn put_parts(&self, parts: [f64; 3]) {
        for (room, part) in self.fields().parts.iter().zip(parts) {
            room.store(part.to_bits(), Ordering::Relaxed);
        }
    }

    pub(crate) fn array<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        self.array.value(js)
    }
}
