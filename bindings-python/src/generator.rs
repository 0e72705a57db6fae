use pyo3::{prelude::*, types::PyTuple};

use crate::{
    arguments::{Count, UnixSecond},
    buffer::{self, Batch, Int64Buffer},
    errors::not_to_be_copied,
    flake::Shared,
};

#[doc = doc!(Generator)]
#[pyclass(frozen, subclass, module = "randflake._randflake")]
pub(crate) struct Generator {
    flake: Box<dyn Shared>,
}

impl Generator {
    pub(crate) fn new(flake: impl Shared + 'static) -> Self {
        Self { flake: Box::new(flake) }
    }
}

#[pymethods]
impl Generator {
    #[doc = doc!(Generator.generate_array)]
    fn generate_array<'py>(&self, py: Python<'py>, n: Count) -> PyResult<Bound<'py, PyAny>> {
        let mut ids = self.flake.batch(py, n.0)?;
        // Made first: its exceptions come before any id is claimed.
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

    #[doc = doc!(Generator.node_ids)]
    #[getter]
    fn node_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.flake.node_ids())
    }

    #[doc = doc!(Generator.close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.flake.close(py)
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
             one in each process, with node ids of its own",
        ))
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.flake.stop();
    }
}
