//! What leased generators are made with: a store, a secret or a layout, and options, some of which may
//! come from the environment. Nothing is opened here.

use std::ffi::OsString;

use pyo3::{prelude::*, types::PyDict};
use randflake::{Encrypted, Layout, Plain, Result, Secret};
use randflake_leases::{LeasedBuilder, LeasedFormat, Location, environment::Environment};

use crate::{
    arguments::{secret_of, warn_if_weak},
    client::Store,
    clock::Clock,
    convert::boolean,
    errors::{LifetimeWarning, call, raise, warn},
    interpreter,
    options::{self, Options},
};

/// Where the secret or the layout of a generator comes from.
pub(crate) trait ConfigSource: LeasedFormat {
    type Given: Send + Sync + 'static;

    /// Returns a placeholder for it until it is looked up, which shows whether the options are
    /// valid.
    fn placeholder(given: &Self::Given) -> Self::Config;

    /// Looks it up, and raises its warning.
    fn look_up(py: Python<'_>, given: &Self::Given) -> PyResult<Self::Config>;

    fn is_from_environment(given: &Self::Given) -> bool;
}

impl ConfigSource for Encrypted {
    /// `None`: the secret of the environment.
    type Given = Option<Py<PyAny>>;

    fn placeholder(_: &Self::Given) -> Secret {
        Secret::random()
    }

    fn look_up(py: Python<'_>, given: &Self::Given) -> PyResult<Secret> {
        if let Some(secret) = given {
            return secret_of(secret.bind(py), 1);
        }
        let secret = in_environment(py, |environment| environment.secret())?;
        warn_if_weak(py, &secret, 1)?;
        Ok(secret)
    }

    fn is_from_environment(given: &Self::Given) -> bool {
        given.is_none()
    }
}

impl ConfigSource for Plain {
    type Given = Layout;

    fn placeholder(layout: &Layout) -> Layout {
        *layout
    }

    fn look_up(py: Python<'_>, layout: &Layout) -> PyResult<Layout> {
        if !layout.remaining().is_zero() {
            warn_if_ending(py, layout)?; // one that has ended is refused
        }
        Ok(*layout)
    }

    fn is_from_environment(_: &Layout) -> bool {
        false
    }
}

/// Raises a warning if the layout ends soon.
pub(crate) fn warn_if_ending(py: Python<'_>, layout: &Layout) -> PyResult<()> {
    layout.warning().map_or(Ok(()), |warning| warn::<LifetimeWarning>(py, warning, 1))
}

/// What a leased generator is made with; some of it may come from the environment.
pub(crate) struct Settings<F: ConfigSource> {
    /// With placeholders for the secret, and for a store of the environment.
    builder: LeasedBuilder<F>,
    given: F::Given,
    store: Where,
    has_namespace: bool,
}

#[derive(Clone, Copy)]
enum Where {
    Given { needs_python: bool },
    Environment { allow_weak_store: bool },
}

impl<F: ConfigSource> Settings<F> {
    pub(crate) fn new(
        py: Python<'_>,
        store: Option<Store>,
        given: F::Given,
        options: Option<Options<'_>>,
    ) -> PyResult<Self> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let allow_weak_store = options::take(&options, "allow_weak_store", Some(false))?;
        let allow_weak_store = boolean(&allow_weak_store, "allow_weak_store")?;
        let has_namespace = options.get_item("namespace")?.is_some_and(|name| !name.is_none());
        let (location, store) = match store {
            None => (Location::from(""), Where::Environment { allow_weak_store }),
            Some(store) => {
                let needs_python = store.needs_python();
                (store.location(allow_weak_store)?, Where::Given { needs_python })
            }
        };
        let builder = options::leased(location, F::placeholder(&given), options)?;
        Ok(Self { builder, given, store, has_namespace })
    }

    /// Checks the options, and nothing else.
    pub(crate) fn check(&self) -> PyResult<()> {
        let builder = self.builder.clone();
        call(|| builder.open_lazily().map(drop))
    }

    /// Looks the secret up, or the layout.
    pub(crate) fn config(&self, py: Python<'_>) -> PyResult<F::Config> {
        F::look_up(py, &self.given)
    }

    /// Looks the rest up. Also returns whether the store is accessed by a client in Python.
    pub(crate) fn builder(
        &self,
        py: Python<'_>,
        config: F::Config,
    ) -> PyResult<(LeasedBuilder<F, Clock>, bool)> {
        let mut builder = self.builder.clone().config(config).clock(Clock::System).interruptible();
        let mut from_environment = F::is_from_environment(&self.given);
        let needs_python = match self.store {
            Where::Given { needs_python } => needs_python,
            Where::Environment { allow_weak_store } => {
                from_environment = true;
                let store = store_of_environment(py)?;
                let needs_python = store.needs_python();
                builder = builder.location(store.location(allow_weak_store)?);
                needs_python
            }
        };
        // A generator that was given a store and a secret takes nothing from the environment: under
        // another namespace its secret would repeat ids.
        if from_environment
            && !self.has_namespace
            && let Some(name) = in_environment(py, |environment| environment.namespace())?
        {
            builder = builder.namespace(name);
        }
        Ok((builder, needs_python))
    }
}

/// Returns the store that `RANDFLAKE_STORE` names.
pub(crate) fn store_of_environment(py: Python<'_>) -> PyResult<Store> {
    let store = in_environment(py, |environment| environment.store())?;
    store.into_pyobject(py)?.extract()
}

/// Reads settings from `os.environ`.
pub(crate) fn in_environment<T>(
    py: Python<'_>,
    read: impl FnOnce(Environment<'_>) -> Result<T>,
) -> PyResult<T> {
    let look_up = || {
        let variables = py.import("os")?.getattr("environ")?;
        let variable = |name: &str| {
            let value = variables.call_method1("get", (name,)).ok()?;
            value.extract::<Option<OsString>>().ok()?
        };
        read(Environment::new(&variable)).map_err(raise)
    };
    interpreter::call_python(py, look_up)
}
