use std::{ffi::CString, time::Duration};

use pyo3::prelude::*;
use randflake::{Clock as _, Plain};

use crate::{
    arguments::{
        AcquireTimeout, AllowWeakStore, Create, MaxDrift, MaxSkew, MaxWait, NamespaceName,
        NodeCount, Raw, RestartSafe, Store, Ttl, node_ids,
    },
    clock::Clock,
    errors::{LifetimeWarning, raise},
    flake::{AnyFlake, LeaseOptions, ManualOptions, Shared as _},
    generator::Generator,
    layout::{AnyLayout, Layout},
    lease::OptionalLease,
    parts::RawParts,
};

#[doc = doc!("Snowflake")]
#[pyclass(frozen, extends = Generator, module = "randflake")]
pub(crate) struct Snowflake {
    layout: randflake::Layout,
    pub(crate) flake: AnyFlake<Plain>,
}

impl Snowflake {
    fn with_base(layout: randflake::Layout, flake: AnyFlake<Plain>) -> PyClassInitializer<Self> {
        let this = Self { layout, flake: flake.clone() };
        PyClassInitializer::from(Generator::new(flake, true)).add_subclass(this)
    }
}

#[pymethods]
impl Snowflake {
    #[new]
    #[pyo3(
        signature = (
            node_id,
            layout = AnyLayout(randflake::Layout::twitter()),
            *,
            lease = OptionalLease(None),
            max_wait = MaxWait(Duration::from_secs(1)),
            max_drift = MaxDrift(0),
            restart_safe = RestartSafe(true),
            clock = Clock::System,
        ),
        text_signature = "(node_id, layout='twitter', *, lease=None, max_wait=1.0, max_drift=0, \
                          restart_safe=True, clock=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        py: Python<'_>,
        node_id: &Bound<'_, PyAny>,
        layout: AnyLayout,
        lease: OptionalLease,
        max_wait: MaxWait,
        max_drift: MaxDrift,
        restart_safe: RestartSafe,
        clock: Clock,
    ) -> PyResult<PyClassInitializer<Self>> {
        let layout = layout.0;
        let warning = layout.warning().filter(|_| clock.is_system());
        let options = ManualOptions { lease, max_wait, max_drift, restart_safe, clock };
        let flake = AnyFlake::manual(layout, node_ids(&layout, node_id)?, options)?;
        warn(py, warning)?;
        Ok(Self::with_base(layout, flake))
    }

    #[doc = doc!("Snowflake.leased")]
    #[staticmethod]
    #[pyo3(
        signature = (
            store,
            layout = AnyLayout(randflake::Layout::twitter()),
            *,
            node_count = NodeCount(1),
            ttl = None,
            namespace = NamespaceName::default(),
            acquire_timeout = AcquireTimeout(Duration::from_secs(10)),
            max_wait = MaxWait(Duration::from_secs(1)),
            max_drift = MaxDrift(0),
            max_skew = MaxSkew(5),
            create = None,
            allow_weak_store = AllowWeakStore(false),
        ),
        text_signature = "(store, layout='twitter', *, node_count=1, ttl=None, \
                          namespace='default', acquire_timeout=10, max_wait=1.0, max_drift=0, \
                          max_skew=5, create=None, allow_weak_store=False)"
    )]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn leased(
        py: Python<'_>,
        store: Store,
        layout: AnyLayout,
        node_count: NodeCount,
        ttl: Option<Ttl>,
        namespace: NamespaceName,
        acquire_timeout: AcquireTimeout,
        max_wait: MaxWait,
        max_drift: MaxDrift,
        max_skew: MaxSkew,
        create: Option<Create>,
        allow_weak_store: AllowWeakStore,
    ) -> PyResult<Py<Self>> {
        let options = LeaseOptions {
            node_count,
            ttl,
            namespace,
            acquire_timeout,
            max_wait,
            max_drift: Some(max_drift),
            max_skew,
            create,
            allow_weak_store,
        };
        let layout = layout.0;
        let flake = AnyFlake::leased(py, store, layout, options)?;
        let flake = Self::with_base(layout, flake); // which stops if the warning is an error
        warn(py, layout.warning())?;
        Py::new(py, flake)
    }

    #[doc = doc!("Snowflake.generate")]
    fn generate(&self, py: Python<'_>) -> PyResult<u64> {
        self.flake.generate(py)
    }

    #[doc = doc!("Snowflake.inspect")]
    fn inspect(&self, raw: Raw) -> PyResult<RawParts> {
        self.layout.inspect(raw.0).map(RawParts::from).map_err(raise)
    }

    #[doc = doc!("Snowflake.layout")]
    #[getter]
    fn layout(&self) -> Layout {
        self.layout.into()
    }

    fn __repr__(&self) -> String {
        let layout = self.layout.name();
        format!("<randflake.Snowflake layout={layout} node_ids={:?}>", self.flake.node_ids())
    }
}

fn warn(py: Python<'_>, warning: Option<String>) -> PyResult<()> {
    let Some(warning) = warning else { return Ok(()) };
    let message = CString::new(warning).expect("the message has no zero byte");
    PyErr::warn(py, &py.get_type::<LifetimeWarning>(), &message, 1)
}
