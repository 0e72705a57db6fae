//! Generators that are made before there is a store or a secret: both are looked up on first use,
//! and the first id takes the lease.

use std::{ffi::OsString, sync::Arc};

use once_cell::race::OnceBox;
use pyo3::{prelude::*, types::PyDict};
use randflake::{Encrypted, Layout, Plain, Result, Secret};
use randflake_leases::{
    Leased, LeasedBuilder, LeasedCell, LeasedFormat, Location, environment::Environment,
};

use crate::{
    arguments::{secret_of, warn_if_weak},
    client::Store,
    clock::Clock,
    convert::boolean,
    errors::{LifetimeWarning, call, raise, warn},
    exit,
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

/// A leased generator whose settings are looked up on first use, and then stay.
pub(crate) struct Lazy<F: ConfigSource> {
    settings: Settings<F>,
    config: OnceBox<F::Config>,
    leased: LeasedCell<F, Clock>,
}

impl<F: ConfigSource> Lazy<F> {
    /// Checks the options, and nothing else.
    pub(crate) fn new(settings: Settings<F>) -> PyResult<Self> {
        let builder = settings.builder.clone();
        call(|| builder.open_lazily().map(drop))?;
        Ok(Self { settings, config: OnceBox::new(), leased: LeasedCell::new() })
    }

    /// Returns the generator, if it has been used.
    #[inline]
    pub(crate) fn made(&self) -> Option<&Arc<Leased<F, Clock>>> {
        self.leased.made()
    }

    /// Returns the generator, which leases nothing before its first id.
    #[cold]
    pub(crate) fn leased(&self, py: Python<'_>) -> PyResult<&Arc<Leased<F, Clock>>> {
        let leased = || {
            if let Some(leased) = self.leased.get().map_err(raise)? {
                return Ok(leased);
            }
            let config = self.config(py)?.clone();
            let (builder, needs_python) = self.settings.builder(py, config)?;
            exit::register_in_child(py)?;
            let leased = call(|| builder.open_lazily())?;
            let (leased, is_new) = self.leased.set(leased).map_err(raise)?;
            if is_new {
                exit::close_at_exit(Arc::clone(leased) as _, needs_python);
            }
            Ok(leased)
        };
        exit::call_python(py, leased).map_err(|raised| exit::raise_unless_finalizing(py, raised))
    }

    /// Returns the secret or the layout, without a store.
    pub(crate) fn config(&self, py: Python<'_>) -> PyResult<&F::Config> {
        if let Some(config) = self.config.get() {
            return Ok(config);
        }
        let config = self.settings.config(py)?;
        // Another thread may have been first.
        Ok(self.config.get_or_init(|| Box::new(config)))
    }

    pub(crate) fn stop(&self) {
        self.leased.stop();
    }
}

/// Returns the store that `RANDFLAKE_STORE` names.
pub(crate) fn store_of_environment(py: Python<'_>) -> PyResult<Store> {
    let store = in_environment(py, |environment| environment.store())?;
    store.into_pyobject(py)?.extract()
}

/// Reads settings from `os.environ`.
fn in_environment<T>(
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
    exit::call_python(py, look_up)
}
