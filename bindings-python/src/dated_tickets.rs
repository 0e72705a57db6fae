//! Sequential numbers with a date, as Python draws them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use pyo3::prelude::*;
use randflake::{Result, bindings::ForkId};
use randflake_tickets::{DateForm, Period};

use crate::{
    arguments::{Count, CounterName, Digits},
    client::Store,
    convert::text,
    errors::{call, caught, not_to_be_copied, raise},
    interpreter::{self, Closeable},
    options::Options,
    tickets::{EnvironmentStore, described},
};

#[doc = doc!(DatedTickets)]
#[pyclass(frozen, module = "randflake")]
pub(crate) struct DatedTickets {
    counter: Arc<Counter>,
}

/// The counters of all dates, and their store.
struct Counter {
    tickets: randflake_tickets::DatedTickets,
    /// `None` if the store was given.
    environment: Option<EnvironmentStore>,
    /// The process whose exit handler gives numbers back.
    registered_in: AtomicU64,
}

impl Closeable for Counter {
    fn stop(&self) {
        self.tickets.stop();
    }

    fn is_over(&self) -> bool {
        self.tickets.is_over()
    }
}

impl DatedTickets {
    /// Asks for numbers. Waiting releases the GIL.
    fn ask<T>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&randflake_tickets::DatedTickets) -> Result<T>,
    ) -> PyResult<T> {
        let counter = &self.counter;
        if let Some(environment) = &counter.environment {
            environment.look_up(py, counter)?;
        }
        let process = ForkId::current().number();
        if counter.registered_in.swap(process, Ordering::Relaxed) != process {
            interpreter::register_in_child(py)?;
        }
        caught(|| ask(&counter.tickets)).map_err(|error| interpreter::raise_with_cause(py, error))
    }
}

#[pymethods]
impl DatedTickets {
    #[allow(clippy::too_many_arguments, reason = "as many as in Python")]
    #[new]
    #[pyo3(
        signature = (
            store, name, *, period, time_zone = None, prefix = None, digits = None, **options
        ),
        text_signature = "(store, name, *, period, time_zone='UTC', prefix='', digits=6, \
                          namespace='tickets', start=None, step=None, reserve_seconds=2.0, \
                          min_block=10, max_block=1000000, create=False, acquire_timeout=10.0, \
                          max_wait=1.0, allow_weak_store=False)"
    )]
    fn new(
        py: Python<'_>,
        store: Option<Store>,
        name: CounterName,
        period: &Bound<'_, PyAny>,
        time_zone: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        digits: Option<Digits>,
        options: Option<Options<'_>>,
    ) -> PyResult<Self> {
        let period: Period = text(period, "period")?.parse().map_err(raise)?;
        let mut form = DateForm::new(period);
        if let Some(zone) = time_zone {
            form = form.time_zone(&text(zone, "time_zone")?).map_err(raise)?;
        }
        if let Some(prefix) = prefix {
            form = form.prefix(text(prefix, "prefix")?).map_err(raise)?;
        }
        if let Some(digits) = digits {
            form = form.digits(digits.0).map_err(raise)?;
        }
        let (builder, environment, needs_python) = described(py, store, name, options)?;
        let tickets = call(|| builder.dated(form))?;
        let counter = Arc::new(Counter { tickets, environment, registered_in: AtomicU64::new(0) });
        if let Some(needs_python) = needs_python {
            interpreter::close_at_exit(Arc::clone(&counter) as _, needs_python);
        }
        Ok(Self { counter })
    }

    #[doc = doc!(DatedTickets.name)]
    #[getter]
    fn name(&self) -> &str {
        self.counter.tickets.name()
    }

    #[doc = doc!(DatedTickets.generate)]
    fn generate(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, randflake_tickets::DatedTickets::generate)
    }

    #[doc = doc!(DatedTickets.generate_many)]
    fn generate_many(&self, py: Python<'_>, n: Count) -> PyResult<Vec<String>> {
        self.ask(py, |tickets| tickets.generate_many(n.0))
    }

    #[doc = doc!(DatedTickets.generate_many_async)]
    fn generate_many_async(slf: Bound<'_, Self>, n: Count) -> PyResult<Bound<'_, PyAny>> {
        interpreter::call_async(slf.py(), "generate_many", (slf, n.0))
    }

    #[doc = doc!(DatedTickets.close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let close = || {
            self.counter.tickets.close();
            Ok(())
        };
        py.detach(|| call(close))
    }

    #[doc = doc!(DatedTickets.aclose)]
    fn aclose(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        interpreter::call_async(slf.py(), "close", (slf,))
    }

    /// Returns the same object, whose calls may wait.
    #[getter]
    fn _waiting(slf: Py<Self>) -> Py<Self> {
        slf
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
            "DatedTickets cannot be pickled or copied; make them in each process, where they draw \
             their own blocks",
        ))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.name().into_pyobject(py)?;
        Ok(format!("<randflake.DatedTickets name={}>", name.repr()?))
    }
}

impl Drop for DatedTickets {
    fn drop(&mut self) {
        self.counter.tickets.stop();
    }
}
