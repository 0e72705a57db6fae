//! Memory of Python objects: `array.array("q")`, numpy arrays and their like; and memory of our own.

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
    sync::PyOnceLock,
};
use randflake::Error;

use crate::{
    convert::type_of,
    errors::{raise, wrong_type},
};

/// Batches from this size on release the GIL. Making fewer takes less time than getting the GIL
/// back from a busy thread.
pub(crate) const LARGE_BATCH: usize = 16_384;

/// A row of native signed 64-bit integers.
///
/// Nothing here lends that memory out: another thread may write to it at any time. It is copied
/// from and to memory of our own.
pub(crate) struct Int64Buffer(PyUntypedBuffer);

impl Int64Buffer {
    /// Takes an object to read from; its integers may lie apart.
    pub(crate) fn readable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object).map_err(|failure| {
            let py = object.py();
            let refused = refused(&type_of(object));
            if failure.is_instance_of::<PyTypeError>(py) {
                wrong_type(&refused)
            } else if failure.is_instance_of::<PyBufferError>(py)
                || failure.is_instance_of::<PyValueError>(py)
            {
                raise(refused)
            } else {
                failure // of a foreign exporter
            }
        })?;
        match fault_of(&buffer) {
            None => Ok(Self(buffer)),
            Some(fault) => Err(raise(refused(fault))),
        }
    }

    /// Takes an object to write to.
    pub(crate) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = Self::readable(object)?;
        if buffer.0.readonly() {
            return Err(raise(refused("a read-only one")));
        }
        if !buffer.0.is_c_contiguous() {
            return Err(raise(refused("one with gaps (strides)")));
        }
        Ok(buffer)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.item_count()
    }

    /// Copies the integers out of Python's memory.
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<Batch<i64>> {
        let mut integers = Batch::of(self.len())?;
        if let Some(buffer) = self.typed()? {
            buffer.copy_to_slice(py, &mut integers)?;
        }
        Ok(integers)
    }

    /// Copies as many integers as there are into Python's memory.
    pub(crate) fn write(&self, py: Python<'_>, integers: &[i64]) -> PyResult<()> {
        self.typed()?.map_or(Ok(()), |buffer| buffer.copy_from_slice(py, integers))
    }

    /// Returns `None` for a buffer of nothing, whose address means nothing.
    fn typed(&self) -> PyResult<Option<&PyBuffer<i64>>> {
        if self.len() == 0 { Ok(None) } else { self.0.as_typed().map(Some) }
    }
}

/// Memory of our own for a batch, where other threads cannot see it change.
///
/// The caller writes to all of it before it reads: it may hold what an earlier batch of this thread
/// left there. With new memory for each, 4096 ids took 1.7 times as long in an array.
pub(crate) struct Batch<T: Integer> {
    /// At least as long as the batch.
    memory: Vec<T>,
    length: usize,
}

/// What batches and arrays consist of.
pub(crate) trait Integer: Element + Default + 'static {
    /// What numpy calls it.
    const DTYPE: &str;

    /// What makes an array of numpy, and the dtype of it.
    const EMPTY: &PyOnceLock<Py<PyAny>>;

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
    const EMPTY: &PyOnceLock<Py<PyAny>> = once!();
    const KEPT: &LocalKey<RefCell<Vec<Vec<Self>>>> = &KEPT_I64;
}

impl Integer for u32 {
    const DTYPE: &str = "uint32";
    const EMPTY: &PyOnceLock<Py<PyAny>> = once!();
    const KEPT: &LocalKey<RefCell<Vec<Vec<Self>>>> = &KEPT_U32;
}

impl<T: Integer> Batch<T> {
    pub(crate) fn of(length: usize) -> PyResult<Self> {
        // There is none while the thread ends, and a large batch leaves it to others.
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

/// Gives the memory back to its thread, but that of a large batch to the system: next to what it
/// takes to make those, memory costs little.
impl<T: Integer> Drop for Batch<T> {
    fn drop(&mut self) {
        if self.memory.len() <= LARGE_BATCH {
            let memory = mem::take(&mut self.memory);
            let _ = T::KEPT.try_with(|kept| kept.borrow_mut().push(memory));
        }
    }
}

/// Makes an array of numpy, which need not be installed. Its elements are not set.
pub(crate) fn array<T: Integer>(py: Python<'_>, length: usize) -> PyResult<Bound<'_, PyAny>> {
    let find = || {
        let found = py.import("randflake.arrays")?.call_method1("empty_of", (T::DTYPE,))?;
        PyResult::Ok(found.unbind())
    };
    let (empty, dtype): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
        T::EMPTY.get_or_try_init(py, find)?.bind(py).extract()?;
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

/// Says what keeps a buffer from being a row of native signed 64-bit integers.
fn fault_of(buffer: &PyUntypedBuffer) -> Option<&'static str> {
    let format = buffer.format();
    // pyo3 takes either byte order for the native one.
    let foreign_order = match format.to_bytes().first() {
        Some(b'>' | b'!') => cfg!(target_endian = "little"),
        Some(b'<') => cfg!(target_endian = "big"),
        _ => false,
    };
    if buffer.dimensions() != 1 {
        Some("one of another number of dimensions than 1")
    } else if foreign_order {
        Some("one of the byte order of other machines")
    } else {
        match ElementType::from_format(format) {
            ElementType::SignedInteger { bytes: 8 } if buffer.item_size() == 8 => {
                let aligned = buffer.buf_ptr().cast::<i64>().is_aligned();
                (!aligned && buffer.len_bytes() > 0).then_some("one that is not aligned")
            }
            ElementType::UnsignedInteger { bytes: 8 } => {
                Some("one of unsigned integers, which negative ids do not fit")
            }
            _ => Some("one of other elements"),
        }
    }
}

fn refused(got: &str) -> Error {
    Error::invalid_argument(format!(
        "ids need a one-dimensional buffer of native signed 64-bit integers, such as \
         array.array('q') or a numpy array of int64, got {got}"
    ))
}
