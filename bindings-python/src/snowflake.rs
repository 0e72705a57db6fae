use pyo3::{prelude::*, types::PyList};
use randflake::Plain;

use crate::{
    arguments::{Count, Raw, node_ids},
    bulk,
    client::Store,
    dyn_generator::{AnyGenerator, DynGenerator as _},
    errors::raise,
    generator::Generator,
    interpreter,
    layout::{AnyLayout, Layout},
    options::Options,
    parts::RawParts,
    settings::{Settings, in_environment, warn_if_ending},
};

#[doc = doc!(Snowflake)]
#[pyclass(frozen, extends = Generator, module = "randflake")]
pub(crate) struct Snowflake {
    layout: randflake::Layout,
    pub(crate) flake: AnyGenerator<Plain>,
}

impl Snowflake {
    fn with_base(
        layout: randflake::Layout,
        flake: AnyGenerator<Plain>,
    ) -> PyClassInitializer<Self> {
        let this = Self { layout, flake: flake.clone() };
        PyClassInitializer::from(Generator::new(flake)).add_subclass(this)
    }
}

/// Returns the layout that was given, that of the environment, or else Twitter's.
fn layout_or_default(py: Python<'_>, given: Option<AnyLayout>) -> PyResult<randflake::Layout> {
    if let Some(layout) = given {
        return Ok(layout.0);
    }
    let layout = in_environment(py, |environment| environment.layout())?;
    Ok(layout.unwrap_or(randflake::Layout::twitter()))
}

#[pymethods]
impl Snowflake {
    #[new]
    #[pyo3(
        signature = (node_id, layout = AnyLayout(randflake::Layout::twitter()), **options),
        text_signature = "(node_id, layout='twitter', *, lease=None, max_wait=1.0, max_drift=0, \
                          restart_safe=True, clock=None)"
    )]
    fn new(
        py: Python<'_>,
        node_id: &Bound<'_, PyAny>,
        layout: AnyLayout,
        options: Option<Options<'_>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let node_ids = node_ids(&layout.0, node_id)?;
        let flake = AnyGenerator::manual(py, layout.0, node_ids, options)?;
        if flake.is_on_system_clock() {
            warn_if_ending(py, &layout.0)?;
        }
        Ok(Self::with_base(layout.0, flake))
    }

    #[doc = doc!(Snowflake.leased)]
    #[staticmethod]
    #[pyo3(
        signature = (
            store = None, layout = None, **options
        ),
        text_signature = "(store=None, layout=None, *, node_count=1, ttl=None, \
                          namespace=None, acquire_timeout=10, max_wait=1.0, max_drift=0, \
                          max_skew=5, create=None, allow_weak_store=False, \
                          on_lease_change=None)"
    )]
    fn leased(
        py: Python<'_>,
        store: Option<Store>,
        layout: Option<AnyLayout>,
        options: Option<Options<'_>>,
    ) -> PyResult<Py<Self>> {
        let layout = layout_or_default(py, layout)?;
        let settings = Settings::new(py, store, layout, options)?;
        let flake = AnyGenerator::leased(py, &settings, settings.config(py)?)?;
        Py::new(py, Self::with_base(layout, flake))
    }

    #[doc = doc!(Snowflake.lazy)]
    #[staticmethod]
    #[pyo3(
        signature = (
            store = None, layout = None, **options
        ),
        text_signature = "(store=None, layout=None, *, node_count=1, ttl=None, \
                          namespace=None, acquire_timeout=10, max_wait=1.0, max_drift=0, \
                          max_skew=5, create=None, allow_weak_store=False, \
                          on_lease_change=None)"
    )]
    fn lazy(
        py: Python<'_>,
        store: Option<Store>,
        layout: Option<AnyLayout>,
        options: Option<Options<'_>>,
    ) -> PyResult<Py<Self>> {
        let layout = layout_or_default(py, layout)?;
        let flake = AnyGenerator::lazy(Settings::new(py, store, layout, options)?)?;
        Py::new(py, Self::with_base(layout, flake))
    }

    #[doc = doc!(Snowflake.leased_async)]
    #[staticmethod]
    #[pyo3(
        signature = (
            store = None, layout = None, **options
        ),
        text_signature = "(store=None, layout=None, *, node_count=1, ttl=None, \
                          namespace=None, acquire_timeout=10, max_wait=1.0, max_drift=0, \
                          max_skew=5, create=None, allow_weak_store=False, \
                          on_lease_change=None)"
    )]
    fn leased_async<'py>(
        py: Python<'py>,
        store: Option<Bound<'py, PyAny>>,
        layout: Option<AnyLayout>,
        options: Option<Options<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let leased = py.get_type::<Self>().getattr("leased")?;
        let layout = Layout::from(layout_or_default(py, layout)?);
        interpreter::call_async(py, "Opening", (leased, (store, layout), options))
    }

    /// Returns the same leased generator with calls that never wait, for an event loop's thread.
    fn _without_waits(slf: Bound<'_, Self>) -> PyResult<Py<Self>> {
        let Self { layout, flake } = slf.get();
        let (layout, flake) = (*layout, flake.without_waits());
        let base = Generator::never_waiting(flake.clone(), slf.as_super().clone().unbind());
        let this = PyClassInitializer::from(base).add_subclass(Self { layout, flake });
        Py::new(slf.py(), this)
    }

    #[doc = doc!(Snowflake.generate)]
    fn generate(&self, py: Python<'_>) -> PyResult<u64> {
        self.flake.generate(py)
    }

    #[doc = doc!(Snowflake.generate_many)]
    fn generate_many<'py>(&self, py: Python<'py>, n: Count) -> PyResult<Bound<'py, PyList>> {
        let ids = self.flake.generate_many(py, n.0)?;
        bulk::list_of::<Raw>(py, &ids)
    }

    #[doc = doc!(Snowflake.inspect)]
    fn inspect(&self, raw: Raw) -> PyResult<RawParts> {
        self.layout.inspect(raw.0).map(RawParts::from).map_err(raise)
    }

    #[doc = doc!(Snowflake.layout)]
    #[getter]
    fn layout(&self) -> Layout {
        self.layout.into()
    }

    fn __repr__(&self) -> String {
        let layout = self.layout.name();
        format!("<randflake.Snowflake layout={layout} node_ids={:?}>", self.flake.node_ids())
    }
}
