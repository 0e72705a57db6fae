use pyo3::{prelude::*, types::PyList};

use crate::{
    arguments::{AnyId, AnySecret, Raw},
    buffer::{Batch, array_of},
    bulk,
    errors::{call, not_to_be_copied},
    parts::Parts,
};

#[doc = doc!(Inspector)]
#[pyclass(frozen, module = "randflake")]
pub(crate) struct Inspector {
    inspector: randflake::Inspector,
}

#[pymethods]
impl Inspector {
    #[new]
    fn new(secret: AnySecret) -> Self {
        Self { inspector: randflake::Inspector::new(&secret.0) }
    }

    #[doc = doc!(Inspector.inspect)]
    fn inspect(&self, id: AnyId) -> Parts {
        self.inspector.inspect(id.0).into()
    }

    #[doc = doc!(Inspector.inspect_array)]
    fn inspect_array<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ids = bulk::read_array::<AnyId>(ids)?;
        let mut timestamps = Batch::of(ids.len())?;
        let mut node_ids = Batch::of(ids.len())?;
        let mut sequences = Batch::of(ids.len())?;
        py.detach(|| {
            call(|| {
                let columns = (&mut timestamps, &mut node_ids, &mut sequences);
                self.inspector.inspect_many(&ids, columns.0, columns.1, columns.2);
                Ok(())
            })
        })?;
        once!().import(py, "randflake.arrays", "PartsArray")?.call1((
            array_of(py, &timestamps)?,
            array_of(py, &node_ids)?,
            array_of(py, &sequences)?,
        ))
    }

    #[doc = doc!(Inspector.decrypt)]
    fn decrypt(&self, id: AnyId) -> u64 {
        self.inspector.decrypt(id.0)
    }

    #[doc = doc!(Inspector.decrypt_many)]
    fn decrypt_many<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        bulk::many::<AnyId, Raw>(ids, |ids| self.inspector.decrypt_in_place(ids))
    }

    #[doc = doc!(Inspector.decrypt_array)]
    fn decrypt_array<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        bulk::array::<AnyId, Raw>(ids, |ids| self.inspector.decrypt_in_place(ids))
    }

    #[doc = doc!(Inspector.decrypt_in_place)]
    fn decrypt_in_place(&self, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        bulk::in_place(buffer, |ids| self.inspector.decrypt_in_place(ids))
    }

    #[doc = doc!(Inspector.encrypt)]
    fn encrypt(&self, raw: Raw) -> i64 {
        self.inspector.encrypt(raw.0).into()
    }

    #[doc = doc!(Inspector.encrypt_many)]
    fn encrypt_many<'py>(&self, raws: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        bulk::many::<Raw, AnyId>(raws, |raws| self.inspector.encrypt_in_place(raws))
    }

    #[doc = doc!(Inspector.encrypt_array)]
    fn encrypt_array<'py>(&self, raws: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        bulk::array::<Raw, AnyId>(raws, |raws| self.inspector.encrypt_in_place(raws))
    }

    #[doc = doc!(Inspector.encrypt_in_place)]
    fn encrypt_in_place(&self, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        bulk::in_place(buffer, |raws| self.inspector.encrypt_in_place(raws))
    }

    fn __repr__(&self) -> &'static str {
        let _ = self;
        "<randflake.Inspector>"
    }

    /// Refuses pickle and copy.
    fn __reduce_ex__(&self, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = (self, protocol);
        Err(not_to_be_copied(
            "an inspector cannot be pickled or copied, since its secret would go with it; make \
             one where it is needed",
        ))
    }
}
