//! What calling costs: methods that do nothing but return what `generate` and `generate_string`
//! return. Those of pyo3, and bare ones, as a class written in C has them.

use std::{ffi::CStr, hint::black_box};

use pyo3::{ffi, prelude::*};

const ID: i64 = 4_594_531_474_933_654_033;
const TEXT: &CStr = c"3vgoe12ccb8gh";

/// An object with methods to call.
#[pyclass(frozen)]
struct Floor;

#[pymethods]
impl Floor {
    #[new]
    fn new() -> Self {
        Self
    }

    fn integer(&self) -> i64 {
        black_box(ID)
    }

    fn text(&self) -> &'static str {
        black_box("3vgoe12ccb8gh")
    }
}

type Method = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;

unsafe extern "C" fn integer(_: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with its lock.
    unsafe { ffi::PyLong_FromLongLong(black_box(ID)) }
}

unsafe extern "C" fn text(_: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let text = black_box(TEXT);
    // SAFETY: Python calls this with its lock; the text has this length.
    unsafe { ffi::PyUnicode_FromStringAndSize(text.as_ptr(), text.count_bytes() as isize) }
}

/// Adds a method without pyo3.
fn add(
    class: &Bound<'_, pyo3::types::PyType>,
    name: &'static CStr,
    method: Method,
) -> PyResult<()> {
    // Types live as long as the process.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: method },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: std::ptr::null(),
    }));
    // SAFETY: the class is a type, the definition is complete and is never freed.
    let method = unsafe { ffi::PyDescr_NewMethod(class.as_type_ptr(), definition) };
    // SAFETY: it is a new reference, or null if there is an exception.
    let method = unsafe { Bound::from_owned_ptr_or_err(class.py(), method) }?;
    class.setattr(name.to_str().expect("ASCII"), method)
}

#[pymodule]
fn floor(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Floor>()?;
    let class = module.py().get_type::<Floor>();
    add(&class, c"c_integer", integer)?;
    add(&class, c"c_text", text)
}
