use pyo3::{
    exceptions::PyAttributeError,
    prelude::*,
    types::{PyAny, PyTuple},
};

use crate::{
    arguments::{Count, UnixSecond},
    buffer::{self, Batch, Int64Buffer},
    dyn_generator::DynGenerator,
    errors::not_to_be_copied,
    interpreter,
};

#[doc = doc!(Generator)]
#[pyclass(frozen, subclass, module = "randflake._randflake")]
pub(crate) struct Generator {
    flake: Box<dyn DynGenerator>,
    /// The same with calls that wait, if the calls of this one never do.
    waiting: Option<Py<Self>>,
}

impl Generator {
    pub(crate) fn new(flake: impl DynGenerator + 'static) -> Self {
        Self { flake: Box::new(flake), waiting: None }
    }

    /// Makes a generator whose calls never wait; `waiting` is the same one with calls that do.
    pub(crate) fn never_waiting(flake: impl DynGenerator + 'static, waiting: Py<Self>) -> Self {
        Self { flake: Box::new(flake), waiting: Some(waiting) }
    }
}

#[pymethods]
impl Generator {
    #[doc = doc!(Generator.generate_array)]
    fn generate_array<'py>(&self, py: Python<'py>, n: Count) -> PyResult<Bound<'py, PyAny>> {
        let mut ids = self.flake.batch(py, n.0)?;
        // Opened first: its exceptions come before any id is claimed.
        let array = buffer::array::<i64>(py, n.0)?;
        self.flake.fill(py, &mut ids)?;
        Int64Buffer::writable(&array)?.write(py, &ids)?;
        Ok(array)
    }

    #[doc = doc!(Generator.fill)]
    fn fill(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = Int64Buffer::writable(buffer)?;
        let mut ids = Batch::of(buffer.len())?;
        let filled = self.flake.fill(py, &mut ids);
        // After a failure these are zeros.
        buffer.write(py, &ids)?;
        filled
    }

    #[doc = doc!(Generator.extend_lease)]
    fn extend_lease(&self, end_exclusive: UnixSecond) -> PyResult<()> {
        self.flake.extend_lease(end_exclusive.0)
    }

    #[doc = doc!(Generator.lease)]
    #[getter]
    fn lease<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.flake.lease(py)
    }

    #[doc = doc!(Generator.metrics)]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.flake.metrics(py)
    }

    #[doc = doc!(Generator.node_ids)]
    #[getter]
    fn node_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.flake.node_ids())
    }

    #[doc = doc!(Generator.node_id)]
    #[getter]
    fn node_id(&self) -> PyResult<u32> {
        match self.flake.node_ids()[..] {
            [node_id] => Ok(node_id),
            ref several => Err(PyAttributeError::new_err(format!(
                "this generator has {} node ids; read node_ids",
                several.len()
            ))),
        }
    }

    #[doc = doc!(Generator.close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.flake.close(py)
    }

    #[doc = doc!(Generator.ready)]
    fn ready(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        interpreter::call_async(slf.py(), "ready", (slf,))
    }

    #[doc = doc!(Generator.generate_many_async)]
    fn generate_many_async(slf: Bound<'_, Self>, n: Count) -> PyResult<Bound<'_, PyAny>> {
        interpreter::call_async(slf.py(), "generate_many", (slf, n.0))
    }

    #[doc = doc!(Generator.generate_array_async)]
    fn generate_array_async(slf: Bound<'_, Self>, n: Count) -> PyResult<Bound<'_, PyAny>> {
        interpreter::call_async(slf.py(), "generate_array", (slf, n.0))
    }

    #[doc = doc!(Generator.aclose)]
    fn aclose(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        interpreter::call_async(slf.py(), "close", (slf,))
    }

    /// Returns the seconds until an id is available; `None` in a process that has to lease first.
    /// Never waits.
    fn _ready_in(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.flake.ready_in(py)?.map(|wait| wait.as_secs_f64()))
    }

    /// Returns the same generator with calls that may wait.
    #[getter]
    fn _waiting(slf: Bound<'_, Self>) -> Py<Self> {
        let waiting = slf.get().waiting.as_ref().map(|waiting| waiting.clone_ref(slf.py()));
        waiting.unwrap_or_else(|| slf.unbind())
    }

    fn __aenter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        interpreter::call_async(slf.py(), "entered", (slf,))
    }

    #[pyo3(signature = (exc_type, exc_value, traceback, /))]
    fn __aexit__<'py>(
        slf: Bound<'py, Self>,
        exc_type: &Bound<'_, PyAny>,
        exc_value: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (exc_type, exc_value, traceback);
        Self::aclose(slf)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (exc_type, exc_value, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        exc_value: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (exc_type, exc_value, traceback);
        self.close(py)
    }

    /// Refuses pickle and copy.
    fn __reduce_ex__(&self, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = (self, protocol);
        Err(not_to_be_copied(
            "a generator cannot be pickled or copied, since the copy would repeat its ids; make \
             one in each process, with its own node ids",
        ))
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.flake.stop();
    }
}
