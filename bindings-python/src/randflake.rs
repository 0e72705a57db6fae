use pyo3::{intern, prelude::*, types::PyList};
use randflake::Encrypted;

use crate::{
    arguments::{AnyId, AnySecret, Count, NodeIds, Raw},
    bulk,
    client::Store,
    flake::{AnyFlake, Shared as _},
    generator::Generator,
    options::Options,
    parts::Parts,
    text::{Text, list_of_texts},
};

#[doc = doc!(Randflake)]
#[pyclass(frozen, extends = Generator, module = "randflake")]
pub(crate) struct Randflake {
    pub(crate) flake: AnyFlake<Encrypted>,
    inspector: randflake::Inspector,
}

impl Randflake {
    fn with_base(
        flake: AnyFlake<Encrypted>,
        inspector: randflake::Inspector,
    ) -> PyClassInitializer<Self> {
        let this = Self { flake: flake.clone(), inspector };
        PyClassInitializer::from(Generator::new(flake)).add_subclass(this)
    }
}

#[pymethods]
impl Randflake {
    #[new]
    #[pyo3(
        signature = (node_id, secret, **options),
        text_signature = "(node_id, secret, *, lease=None, max_wait=1.0, max_drift=0, \
                          restart_safe=True, clock=None)"
    )]
    fn new(
        py: Python<'_>,
        node_id: NodeIds,
        secret: AnySecret,
        options: Option<Options<'_>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let inspector = randflake::Inspector::new(&secret.0);
        let flake = AnyFlake::manual(py, secret.0, node_id.0, options)?;
        Ok(Self::with_base(flake, inspector))
    }

    #[doc = doc!(Randflake.leased)]
    #[staticmethod]
    #[pyo3(
        signature = (store, secret, **options),
        text_signature = "(store, secret, *, node_count=1, ttl=None, namespace='default', \
                          acquire_timeout=10, max_wait=1.0, max_drift=None, max_skew=5, \
                          create=None, allow_weak_store=False)"
    )]
    fn leased(
        py: Python<'_>,
        store: Store,
        secret: AnySecret,
        options: Option<Options<'_>>,
    ) -> PyResult<Py<Self>> {
        let inspector = randflake::Inspector::new(&secret.0);
        let flake = AnyFlake::leased(py, store, secret.0, options)?;
        Py::new(py, Self::with_base(flake, inspector))
    }

    #[doc = doc!(Randflake.leased_async)]
    #[staticmethod]
    #[pyo3(
        signature = (store, secret, **options),
        text_signature = "(store, secret, *, node_count=1, ttl=None, namespace='default', \
                          acquire_timeout=10, max_wait=1.0, max_drift=None, max_skew=5, \
                          create=None, allow_weak_store=False)"
    )]
    fn leased_async<'py>(
        py: Python<'py>,
        store: Bound<'py, PyAny>,
        secret: Bound<'py, PyAny>,
        options: Option<Options<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        secret.extract::<AnySecret>()?; // here, since a warning points at the caller
        let leased = py.get_type::<Self>().getattr(intern!(py, "leased"))?;
        once!().import(py, "randflake._async", "Opening")?.call1((leased, (store, secret), options))
    }

    /// Returns the same leased generator with calls that never wait, for the thread of a loop.
    fn _without_waits(slf: Bound<'_, Self>) -> PyResult<Py<Self>> {
        let Self { flake, inspector } = slf.get();
        let (flake, inspector) = (flake.without_waits(), inspector.clone());
        let base = Generator::never_waiting(flake.clone(), slf.as_super().clone().unbind());
        let this = PyClassInitializer::from(base).add_subclass(Self { flake, inspector });
        Py::new(slf.py(), this)
    }

    #[doc = doc!(Randflake.generate)]
    fn generate(&self, py: Python<'_>) -> PyResult<i64> {
        self.flake.generate(py).map(i64::from)
    }

    #[doc = doc!(Randflake.generate_string)]
    fn generate_string(&self, py: Python<'_>) -> PyResult<Text> {
        self.flake.generate(py).map(Text)
    }

    #[doc = doc!(Randflake.generate_many)]
    fn generate_many<'py>(&self, py: Python<'py>, n: Count) -> PyResult<Bound<'py, PyList>> {
        let ids = self.flake.generate_many(py, n.0)?;
        bulk::list_of::<AnyId>(py, &ids)
    }

    #[doc = doc!(Randflake.generate_strings)]
    fn generate_strings<'py>(&self, py: Python<'py>, n: Count) -> PyResult<Bound<'py, PyList>> {
        list_of_texts(py, &self.flake.generate_many(py, n.0)?)
    }

    #[doc = doc!(Randflake.inspect)]
    fn inspect(&self, id: AnyId) -> Parts {
        self.inspector.inspect(id.0).into()
    }

    #[doc = doc!(Randflake.decrypt)]
    fn decrypt(&self, id: AnyId) -> u64 {
        self.inspector.decrypt(id.0)
    }

    #[doc = doc!(Randflake.decrypt_many)]
    fn decrypt_many<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        bulk::many::<AnyId, Raw>(ids, |ids| self.inspector.decrypt_in_place(ids))
    }

    #[doc = doc!(Randflake.decrypt_array)]
    fn decrypt_array<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        bulk::array::<AnyId, Raw>(ids, |ids| self.inspector.decrypt_in_place(ids))
    }

    #[doc = doc!(Randflake.decrypt_in_place)]
    fn decrypt_in_place(&self, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        bulk::in_place(buffer, |ids| self.inspector.decrypt_in_place(ids))
    }

    #[doc = doc!(Randflake.encrypt)]
    fn encrypt(&self, raw: Raw) -> i64 {
        self.inspector.encrypt(raw.0).into()
    }

    #[doc = doc!(Randflake.encrypt_many)]
    fn encrypt_many<'py>(&self, raws: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        bulk::many::<Raw, AnyId>(raws, |raws| self.inspector.encrypt_in_place(raws))
    }

    #[doc = doc!(Randflake.encrypt_array)]
    fn encrypt_array<'py>(&self, raws: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        bulk::array::<Raw, AnyId>(raws, |raws| self.inspector.encrypt_in_place(raws))
    }

    #[doc = doc!(Randflake.encrypt_in_place)]
    fn encrypt_in_place(&self, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        bulk::in_place(buffer, |raws| self.inspector.encrypt_in_place(raws))
    }

    fn __repr__(&self) -> String {
        format!("<randflake.Randflake node_ids={:?}>", self.flake.node_ids())
    }
}
