use once_cell::race::OnceBox;
use pyo3::{prelude::*, types::PyList};
use randflake::{Encrypted, Secret};

use crate::{
    arguments::{AnyId, AnySecret, Count, NodeIds, Raw},
    bulk,
    client::Store,
    dyn_generator::{AnyGenerator, DynGenerator as _},
    generator::Generator,
    interpreter,
    options::Options,
    parts::Parts,
    settings::Settings,
    text::{Text, list_of_texts},
};

#[doc = doc!(Randflake)]
#[pyclass(frozen, extends = Generator, module = "randflake")]
pub(crate) struct Randflake {
    pub(crate) flake: AnyGenerator<Encrypted>,
    /// Missing until a lazy generator is used.
    inspector: OnceBox<randflake::Inspector>,
}

impl Randflake {
    fn with_base(
        flake: AnyGenerator<Encrypted>,
        inspector: OnceBox<randflake::Inspector>,
    ) -> PyClassInitializer<Self> {
        let this = Self { flake: flake.clone(), inspector };
        PyClassInitializer::from(Generator::new(flake)).add_subclass(this)
    }

    #[inline]
    fn inspector(&self, py: Python<'_>) -> PyResult<&randflake::Inspector> {
        match self.inspector.get() {
            Some(inspector) => Ok(inspector),
            None => self.new_inspector(py),
        }
    }

    #[cold]
    fn new_inspector(&self, py: Python<'_>) -> PyResult<&randflake::Inspector> {
        let AnyGenerator::Lazy(lazy) = &self.flake else {
            unreachable!("others are made with one")
        };
        let inspector = randflake::Inspector::new(lazy.config(py)?);
        Ok(self.inspector.get_or_init(|| Box::new(inspector)))
    }
}

fn inspector_of(secret: &Secret) -> OnceBox<randflake::Inspector> {
    OnceBox::with_value(Box::new(randflake::Inspector::new(secret)))
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
        let inspector = inspector_of(&secret.0);
        let flake = AnyGenerator::manual(py, secret.0, node_id.0, options)?;
        Ok(Self::with_base(flake, inspector))
    }

    #[doc = doc!(Randflake.leased)]
    #[staticmethod]
    #[pyo3(
        signature = (store = None, secret = None, **options),
        text_signature = "(store=None, secret=None, *, node_count=1, ttl=None, \
                          namespace=None, acquire_timeout=10, max_wait=1.0, max_drift=None, \
                          max_skew=5, create=None, allow_weak_store=False, \
                          on_lease_change=None)"
    )]
    fn leased(
        py: Python<'_>,
        store: Option<Store>,
        secret: Option<Py<PyAny>>,
        options: Option<Options<'_>>,
    ) -> PyResult<Py<Self>> {
        let settings = Settings::new(py, store, secret, options)?;
        let secret = settings.config(py)?;
        let inspector = inspector_of(&secret);
        let flake = AnyGenerator::leased(py, &settings, secret)?;
        Py::new(py, Self::with_base(flake, inspector))
    }

    #[doc = doc!(Randflake.lazy)]
    #[staticmethod]
    #[pyo3(
        signature = (store = None, secret = None, **options),
        text_signature = "(store=None, secret=None, *, node_count=1, ttl=None, \
                          namespace=None, acquire_timeout=10, max_wait=1.0, max_drift=None, \
                          max_skew=5, create=None, allow_weak_store=False, \
                          on_lease_change=None)"
    )]
    fn lazy(
        py: Python<'_>,
        store: Option<Store>,
        secret: Option<Py<PyAny>>,
        options: Option<Options<'_>>,
    ) -> PyResult<Py<Self>> {
        let flake = AnyGenerator::lazy(Settings::new(py, store, secret, options)?)?;
        Py::new(py, Self::with_base(flake, OnceBox::new()))
    }

    #[doc = doc!(Randflake.leased_async)]
    #[staticmethod]
    #[pyo3(
        signature = (store = None, secret = None, **options),
        text_signature = "(store=None, secret=None, *, node_count=1, ttl=None, \
                          namespace=None, acquire_timeout=10, max_wait=1.0, max_drift=None, \
                          max_skew=5, create=None, allow_weak_store=False, \
                          on_lease_change=None)"
    )]
    fn leased_async<'py>(
        py: Python<'py>,
        store: Option<Bound<'py, PyAny>>,
        secret: Option<Bound<'py, PyAny>>,
        options: Option<Options<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Done here, since a warning points at the caller.
        if let Some(secret) = &secret {
            secret.extract::<AnySecret>()?;
        }
        let leased = py.get_type::<Self>().getattr("leased")?;
        interpreter::call_async(py, "Opening", (leased, (store, secret), options))
    }

    /// Returns the same leased generator with calls that never wait, for an event loop's thread.
    fn _without_waits(slf: Bound<'_, Self>) -> PyResult<Py<Self>> {
        let this = slf.get();
        let flake = this.flake.without_waits();
        let inspector = OnceBox::with_value(Box::new(this.inspector(slf.py())?.clone()));
        let base = Generator::never_waiting(flake.clone(), slf.as_super().clone().unbind());
        let this = PyClassInitializer::from(base).add_subclass(Self { flake, inspector });
        Py::new(slf.py(), this)
    }

    /// Generates an id of the slot after the last one, for randflake.v2.
    fn _generate_in_order(&self, py: Python<'_>) -> PyResult<i64> {
        self.flake.generate_in_order(py).map(i64::from)
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
    fn inspect(&self, py: Python<'_>, id: AnyId) -> PyResult<Parts> {
        Ok(self.inspector(py)?.inspect(id.0).into())
    }

    #[doc = doc!(Randflake.decrypt)]
    fn decrypt(&self, py: Python<'_>, id: AnyId) -> PyResult<u64> {
        Ok(self.inspector(py)?.decrypt(id.0))
    }

    #[doc = doc!(Randflake.decrypt_many)]
    fn decrypt_many<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let inspector = self.inspector(ids.py())?;
        bulk::many::<AnyId, Raw>(ids, |ids| inspector.decrypt_in_place(ids))
    }

    #[doc = doc!(Randflake.decrypt_array)]
    fn decrypt_array<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let inspector = self.inspector(ids.py())?;
        bulk::array::<AnyId, Raw>(ids, |ids| inspector.decrypt_in_place(ids))
    }

    #[doc = doc!(Randflake.decrypt_in_place)]
    fn decrypt_in_place(&self, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        let inspector = self.inspector(buffer.py())?;
        bulk::in_place(buffer, |ids| inspector.decrypt_in_place(ids))
    }

    #[doc = doc!(Randflake.encrypt)]
    fn encrypt(&self, py: Python<'_>, raw: Raw) -> PyResult<i64> {
        Ok(self.inspector(py)?.encrypt(raw.0).into())
    }

    #[doc = doc!(Randflake.encrypt_many)]
    fn encrypt_many<'py>(&self, raws: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let inspector = self.inspector(raws.py())?;
        bulk::many::<Raw, AnyId>(raws, |raws| inspector.encrypt_in_place(raws))
    }

    #[doc = doc!(Randflake.encrypt_array)]
    fn encrypt_array<'py>(&self, raws: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let inspector = self.inspector(raws.py())?;
        bulk::array::<Raw, AnyId>(raws, |raws| inspector.encrypt_in_place(raws))
    }

    #[doc = doc!(Randflake.encrypt_in_place)]
    fn encrypt_in_place(&self, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        let inspector = self.inspector(buffer.py())?;
        bulk::in_place(buffer, |raws| inspector.encrypt_in_place(raws))
    }

    fn __repr__(&self) -> String {
        format!("<randflake.Randflake node_ids={:?}>", self.flake.node_ids())
    }
}
