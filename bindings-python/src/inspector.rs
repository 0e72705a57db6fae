use pyo3::{prelude::*, sync::PyOnceLock};
use randflake::{Error, ErrorKind};

use crate::{
    arguments::{AnyId, AnySecret, Raw},
    buffer::{Batch, Int64Buffer},
    errors::{call, wrong_type},
    numpy,
    parts::Parts,
};

/// Reads ids back; needs the secret, and no node id.
///
/// Reading does not authenticate: every 64-bit number has parts, under every secret.
///
/// secret: 16 bytes, or a str of 32 hex digits.
///
/// Raises InvalidArgumentError with the code INVALID_SECRET.
///
/// >>> from randflake import Inspector
/// >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
/// >>> inspector.inspect("3vgoe12ccb8gh").node_id
/// 42
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

    /// Reads an id back: when, where and as which one it was made.
    ///
    /// id: an int, or its text.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ID.
    fn inspect(&self, id: AnyId) -> Parts {
        self.inspector.inspect(id.0).into()
    }

    /// Reads many ids back, into one numpy array for each part.
    ///
    /// ids: a row of native signed 64-bit integers, such as a numpy array of int64.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ARGUMENT for another kind of buffer, and
    /// ImportError where numpy is not installed.
    ///
    /// >>> from array import array
    /// >>> from randflake import Inspector
    /// >>> inspector = Inspector("dffd6021bb2bd5b0af676290809ec3a5")
    /// >>> columns = inspector.inspect_array(array("q", [4594531474933654033]))
    /// >>> columns.timestamp, columns.node_id, columns.sequence
    /// (array([1733706297]), array([42], dtype=uint32), array([1], dtype=uint32))
    fn inspect_array<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static PARTS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

        let ids = Int64Buffer::readable(ids)?.read(py)?;
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
        PARTS_ARRAY.import(py, "randflake.arrays", "PartsArray")?.call1((
            numpy::array(py, &timestamps)?,
            numpy::array(py, &node_ids)?,
            numpy::array(py, &sequences)?,
        ))
    }

    /// Returns the sortable form of an id: time, node id and sequence, unencrypted.
    ///
    /// It is an unsigned 64-bit integer. Never hand it to anyone who must not know what is in it.
    ///
    /// id: an int, or its text.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ID.
    ///
    /// >>> from randflake import Inspector
    /// >>> Inspector("dffd6021bb2bd5b0af676290809ec3a5").decrypt(4594531474933654033)
    /// 63673697622556673
    fn decrypt(&self, id: AnyId) -> u64 {
        self.inspector.decrypt(id.0)
    }

    /// Returns the id of a sortable form; undoes decrypt.
    ///
    /// raw: an unsigned 64-bit integer that came from decrypt. Of others nobody knows that they
    /// are unique.
    ///
    /// Raises InvalidArgumentError with the code INVALID_ID.
    ///
    /// >>> from randflake import Inspector
    /// >>> Inspector("dffd6021bb2bd5b0af676290809ec3a5").encrypt(63673697622556673)
    /// 4594531474933654033
    fn encrypt(&self, raw: Raw) -> i64 {
        self.inspector.encrypt(raw.0).into()
    }

    fn __repr__(&self) -> &'static str {
        let _ = self;
        "<randflake.Inspector>"
    }

    /// Refuses pickle and copy.
    fn __reduce_ex__(&self, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = (self, protocol);
        Err(wrong_type(&Error::new(
            ErrorKind::InvalidArgument,
            "an inspector cannot be pickled or copied, since its secret would go with it; make \
             one where it is needed",
        )))
    }
}
