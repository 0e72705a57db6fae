//! Memory of Python objects, such as `array.array("q")` and numpy arrays; and memory of our own.

use std::{
    cell::RefCell,
    mem,
    ops::{Deref, DerefMut},
    thread::LocalKey,
};

use pyo3::{
    buffer::{Element, ElementType, PyBuffer, PyUntypedBuffer},
    exceptions::{PyBufferError, PyTypeError, PyValueError},
    prelude::*,
};
use randflake::{Error, ErrorKind};

use crate::{
    convert::{must, type_of},
    errors::{raise, wrong_type},
    once::Once,
};

/// Batches from this size on release the GIL. Making fewer takes less time than getting the GIL
/// back from a busy thread.
pub(crate) const LARGE_BATCH: usize = 16_384;

/// A row of native 64-bit integers.
///
/// Nothing here borrows that memory: another thread may write to it at any time. It is copied from
/// and to memory of our own.
pub(crate) struct Int64Buffer(PyUntypedBuffer);

impl Int64Buffer {
    /// Takes an object to read from; its integers may have gaps between them, and may be unsigned.
    ///
    /// A column of pandas, polars or pyarrow has no buffer, but can turn itself into a numpy array.
    pub(crate) fn readable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = match buffer_of(object, READABLE) {
            Ok(buffer) => buffer,
            // A method of its class: the class itself, which has it, is not a column.
            Err(no_buffer) => match object.get_type().getattr_opt("__array__")? {
                Some(to_array) => buffer_of(&to_array.call1((object,))?, READABLE)?,
                None => return Err(no_buffer),
            },
        };
        match fault_of(&buffer) {
            None => Ok(Self(buffer)),
            Some(fault) => Err(raise(refused(READABLE, fault))),
        }
    }

    /// Takes an object of signed integers to write to.
    pub(crate) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = Self(buffer_of(object, WRITABLE)?);
        let fault = fault_of(&buffer.0).or_else(|| {
            if !buffer.is_signed() {
                Some("one of unsigned integers, which negative ids do not fit")
            } else if buffer.0.readonly() {
                Some("a read-only one")
            } else if !buffer.0.is_c_contiguous() {
                Some("one with gaps (strides)")
            } else {
                None
            }
        });
        fault.map_or(Ok(buffer), |fault| Err(raise(refused(WRITABLE, fault))))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.item_count()
    }

    pub(crate) fn is_signed(&self) -> bool {
        matches!(ElementType::from_format(self.0.format()), ElementType::SignedInteger { .. })
    }

    /// Copies the integers out of Python's memory, unsigned ones as signed ones with the same bits.
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<Batch<i64>> {
        let mut integers = Batch::of(self.len())?;
        if self.len() == 0 {
            // The address of an empty buffer is meaningless.
        } else if self.is_signed() {
            self.0.as_typed::<i64>()?.copy_to_slice(py, &mut integers)?;
        } else {
            let unsigned = self.0.as_typed::<u64>()?.to_vec(py)?;
            integers.iter_mut().zip(unsigned).for_each(|(to, from)| *to = from.cast_signed());
        }
        Ok(integers)
    }

    /// Copies as many signed integers as there are into Python's memory.
    pub(crate) fn write(&self, py: Python<'_>, integers: &[i64]) -> PyResult<()> {
        if self.len() == 0 { Ok(()) } else { self.0.as_typed()?.copy_from_slice(py, integers) }
    }
}

/// Memory of our own for a batch, where other threads cannot see it change.
///
/// The caller writes to all of it before it reads: it may hold what an earlier batch of this thread
/// left there. With new memory for each batch, 4096 ids took 1.7 times as long in an array.
pub(crate) struct Batch<T: Integer> {
    /// At least as long as the batch.
    memory: Vec<T>,
    length: usize,
}

/// What batches and arrays consist of.
pub(crate) trait Integer: Element + Default + 'static {
    /// What numpy calls it.
    const DTYPE: &str;

    /// The function that makes a numpy array, and its dtype.
    const EMPTY: &Once;

    /// Where a thread keeps the memory of its last batches for the next ones. A batch takes its
    /// memory out, so a batch that a clock in Python makes during another one has its own.
    const KEPT: &LocalKey<RefCell<Vec<Vec<Self>>>>;
}

thread_local! {
    static KEPT_I64: RefCell<Vec<Vec<i64>>> = const { RefCell::new(Vec::new()) };
    static KEPT_U32: RefCell<Vec<Vec<u32>>> = const { RefCell::new(Vec::new()) };
}

impl Integer for i64 {
    const DTYPE: &str = "int64";
    const EMPTY: &Once = once!();
    const KEPT: &LocalKey<RefCell<Vec<Vec<Self>>>> = &KEPT_I64;
}

impl Integer for u32 {
    const DTYPE: &str = "uint32";
    const EMPTY: &Once = once!();
    const KEPT: &LocalKey<RefCell<Vec<Vec<Self>>>> = &KEPT_U32;
}

impl<T: Integer> Batch<T> {
    pub(crate) fn of(length: usize) -> PyResult<Self> {
        // There is none while the thread ends, and a large batch leaves it for others.
        let kept = T::KEPT
            .try_with(|kept| if length > LARGE_BATCH { None } else { kept.borrow_mut().pop() });
        let mut memory = kept.ok().flatten().unwrap_or_default();
        if let Some(missing) = length.checked_sub(memory.len()) {
            memory.try_reserve_exact(missing).map_err(|_| {
                raise(Error::invalid_argument(format!(
                    "a batch of {length} does not fit in memory; take less at a time"
                )))
            })?;
            memory.resize(length, T::default());
        }
        Ok(Self { memory, length })
    }
}

impl<T: Integer> Deref for Batch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.memory[..self.length]
    }
}

impl<T: Integer> DerefMut for Batch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[..self.length]
    }
}

/// Gives the memory back to its thread, but for a large batch to the system: compared with making
/// the ids, allocating memory costs little.
impl<T: Integer> Drop for Batch<T> {
    fn drop(&mut self) {
        if self.memory.len() <= LARGE_BATCH {
            let memory = mem::take(&mut self.memory);
            let _ = T::KEPT.try_with(|kept| kept.borrow_mut().push(memory));
        }
    }
}

/// Makes a numpy array; numpy does not have to be installed. Its elements are not set.
pub(crate) fn array<T: Integer>(py: Python<'_>, length: usize) -> PyResult<Bound<'_, PyAny>> {
    let find = || {
        let found = py.import("randflake.arrays")?.call_method1("empty_of", (T::DTYPE,))?;
        PyResult::Ok(found.unbind())
    };
    let (empty, dtype): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
        T::EMPTY.get_or_try_init(py, find)?.extract()?;
    empty.call1((length, dtype))
}

/// Makes an array of these elements.
pub(crate) fn array_of<'py, T: Integer>(
    py: Python<'py>,
    elements: &[T],
) -> PyResult<Bound<'py, PyAny>> {
    let array = array::<T>(py, elements.len())?;
    if !elements.is_empty() {
        PyBuffer::<T>::get(&array)?.copy_from_slice(py, elements)?;
    }
    Ok(array)
}

fn buffer_of(object: &Bound<'_, PyAny>, rule: &str) -> PyResult<PyUntypedBuffer> {
    PyUntypedBuffer::get(object).map_err(|failure| {
        let py = object.py();
        let refused = refused(rule, &type_of(object));
        if failure.is_instance_of::<PyTypeError>(py) {
            wrong_type(&refused)
        } else if failure.is_instance_of::<PyBufferError>(py)
            || failure.is_instance_of::<PyValueError>(py)
        {
            raise(refused)
        } else {
            failure // of a foreign exporter
        }
    })
}

/// Says why a buffer is not an array of native 64-bit integers.
fn fault_of(buffer: &PyUntypedBuffer) -> Option<&'static str> {
    let format = buffer.format();
    // pyo3 accepts either byte order as the native one.
    let foreign_order = match format.to_bytes().first() {
        Some(b'>' | b'!') => cfg!(target_endian = "little"),
        Some(b'<') => cfg!(target_endian = "big"),
        _ => false,
    };
    if buffer.dimensions() != 1 {
        Some("one that is not one-dimensional")
    } else if foreign_order {
        Some("one in the byte order of other machines")
    } else {
        match ElementType::from_format(format) {
            ElementType::SignedInteger { bytes: 8 } | ElementType::UnsignedInteger { bytes: 8 }
                if buffer.item_size() == 8 =>
            {
                let aligned = buffer.buf_ptr().cast::<i64>().is_aligned();
                (!aligned && buffer.len_bytes() > 0).then_some("one that is not aligned")
            }
            _ => Some("one of other elements (with nulls, a column is one of floats)"),
        }
    }
}

const READABLE: &str = "ids need a one-dimensional array of native 64-bit integers, such as a \
                        column or a numpy array of int64";

const WRITABLE: &str = "ids need a one-dimensional buffer of native signed 64-bit integers, such \
                        as array.array('q') or a numpy array of int64";

fn refused(rule: &str, got: &str) -> Error {
    must(ErrorKind::InvalidArgument, rule)(&got)
}
