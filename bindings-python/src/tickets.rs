//! Sequential numbers, as Python draws them.
//!
//! A thread of the crate draws them. A call that waits for a block sleeps on the clock of this
//! package, a millisecond at a time and without the GIL, so signals are heard. In a program with an
//! event loop there are two objects over the same numbers: calls of one never wait, and awaited
//! ones wait in threads, with the other.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use once_cell::race::OnceBox;
use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};
use randflake::{Error, Result, Wait, bindings::ForkId};
use randflake_leases::{Location, MemoryStore, Namespace};
use randflake_tickets::TicketsBuilder;

use crate::{
    arguments::{Count, CounterName, IdNumber},
    buffer::{self, Batch, Int64Buffer, LARGE_BATCH},
    bulk,
    client::Store,
    clock::Clock,
    convert::boolean,
    errors::{call, caught, not_to_be_copied},
    interpreter::{self, Closeable},
    metrics,
    options::{self, Options},
    settings::store_of_environment,
};

#[doc = doc!(Tickets)]
#[pyclass(frozen, module = "randflake")]
pub(crate) struct Tickets {
    counter: Arc<Counter>,
    /// The same with calls that wait, if the calls of this one never do.
    waiting: Option<Py<Self>>,
}

/// A counter, and its store.
struct Counter {
    tickets: randflake_tickets::Tickets,
    /// `None` if the store was given.
    environment: Option<EnvironmentStore>,
    /// The process whose exit handler gives numbers back.
    registered_in: AtomicU64,
}

/// The store of the environment, which is looked up with the first number.
pub(crate) struct EnvironmentStore {
    allow_weak_store: bool,
    create: bool,
    found: Arc<OnceBox<Location>>,
}

/// When the first block is drawn.
#[derive(Clone, Copy)]
enum FirstBlock {
    Now,
    Later,
}

impl Closeable for Counter {
    fn stop(&self) {
        self.tickets.stop();
    }

    fn is_over(&self) -> bool {
        self.tickets.is_over()
    }
}

impl Tickets {
    /// Draws the first block now, or else with the first number.
    fn new(
        py: Python<'_>,
        store: Option<Store>,
        name: CounterName,
        options: Option<Options<'_>>,
        first: FirstBlock,
    ) -> PyResult<Self> {
        let store = match (store, first) {
            (None, FirstBlock::Now) => Some(store_of_environment(py)?),
            (store, _) => store,
        };
        let (builder, environment, needs_python) = described(py, store, name, options)?;
        let tickets = match first {
            FirstBlock::Now => {
                interpreter::register_in_child(py)?;
                caught(|| builder.open())
                    .map_err(|error| interpreter::raise_with_cause(py, error))?
            }
            FirstBlock::Later => call(|| builder.open_lazily())?,
        };
        let counter = Arc::new(Counter { tickets, environment, registered_in: AtomicU64::new(0) });
        if let Some(needs_python) = needs_python {
            interpreter::close_at_exit(Arc::clone(&counter) as _, needs_python);
        }
        Ok(Self { counter, waiting: None })
    }

    /// Asks for numbers, or for when there are some. Waiting releases the GIL.
    fn ask<T>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&randflake_tickets::Tickets) -> Result<T>,
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

    /// Returns whether calls of this object may wait.
    fn wait(&self) -> Wait {
        if self.waiting.is_some() { Wait::Never } else { Wait::MaxWait }
    }

    /// Takes memory for a batch, unless it would be refused.
    fn batch(&self, py: Python<'_>, count: usize) -> PyResult<Batch<i64>> {
        if self.wait() == Wait::Never && count >= LARGE_BATCH {
            self.ask(py, |tickets| tickets.check_fill(count))?;
        }
        Batch::of(count)
    }

    /// Fills memory that no other thread sees. After an error it is zeroed.
    fn fill_batch(&self, py: Python<'_>, numbers: &mut [i64]) -> PyResult<()> {
        let wait = self.wait();
        let is_large = numbers.len() >= LARGE_BATCH;
        let memory = &mut *numbers;
        let filled = self.ask(py, move |tickets| {
            let mut fill = move || tickets.fill_with(memory, wait);
            if is_large { py.detach(fill) } else { fill() }
        });
        // A panic may have left numbers there, or what was there before.
        filled.inspect_err(|_| numbers.fill(0))
    }

    /// Hands out a number, unless that fails, waits or calls Python, as the first call of a process
    /// does: it looks up the store of the environment.
    #[inline]
    pub(crate) fn generate_at_once(&self) -> Option<u64> {
        if self.counter.registered_in.load(Ordering::Relaxed) != ForkId::current().number() {
            return None;
        }
        caught(|| self.counter.tickets.generate_with(Wait::Never)).ok()
    }
}

/// Describes a counter, with its store or that of the environment. Also returns whether the store is
/// accessed by a client in Python, if it is known.
pub(crate) fn described(
    py: Python<'_>,
    store: Option<Store>,
    name: CounterName,
    options: Option<Options<'_>>,
) -> PyResult<(TicketsBuilder, Option<EnvironmentStore>, Option<bool>)> {
    let options = options.unwrap_or_else(|| PyDict::new(py));
    let allow_weak_store = options::take(&options, "allow_weak_store", Some(false))?;
    let allow_weak_store = boolean(&allow_weak_store, "allow_weak_store")?;
    let create = boolean(&options::take(&options, "create", Some(false))?, "create")?;
    let needs_python = store.as_ref().map(Store::needs_python);
    let (location, environment) = if let Some(store) = store {
        (store.location(allow_weak_store)?.create(create), None)
    } else {
        let found = Arc::new(OnceBox::new());
        let environment = EnvironmentStore { allow_weak_store, create, found };
        (environment.location(), Some(environment))
    };
    let builder = randflake_tickets::Tickets::builder(location, name.0).clock(Clock::System);
    Ok((options::tickets(builder, options)?, environment, needs_python))
}

impl EnvironmentStore {
    fn location(&self) -> Location {
        let found = Arc::clone(&self.found);
        Location::new(move |namespace| {
            let missing = || Error::invalid_argument("the store of the environment is not known");
            found.get().ok_or_else(missing)?.open(&namespace)
        })
    }

    /// Looks it up, once: the result stays.
    pub(crate) fn look_up(
        &self,
        py: Python<'_>,
        counter: &Arc<impl Closeable + 'static>,
    ) -> PyResult<()> {
        if self.found.get().is_some() {
            return Ok(());
        }
        let store = store_of_environment(py)?;
        let needs_python = store.needs_python();
        let location = store.location(self.allow_weak_store)?.create(self.create);
        // Another thread may have been first.
        if self.found.set(Box::new(location)).is_ok() {
            interpreter::close_at_exit(Arc::clone(counter) as _, needs_python);
        }
        Ok(())
    }
}

#[pymethods]
impl Tickets {
    #[doc = doc!(Tickets.leased)]
    #[staticmethod]
    #[pyo3(
        signature = (store, name, **options),
        text_signature = "(store, name, *, namespace='tickets', start=None, step=None, \
                          reserve_seconds=2.0, min_block=10, max_block=1000000, create=False, \
                          acquire_timeout=10.0, max_wait=1.0, allow_weak_store=False)"
    )]
    fn leased(
        py: Python<'_>,
        store: Option<Store>,
        name: CounterName,
        options: Option<Options<'_>>,
    ) -> PyResult<Self> {
        Self::new(py, store, name, options, FirstBlock::Now)
    }

    #[doc = doc!(Tickets.lazy)]
    #[staticmethod]
    #[pyo3(
        signature = (store, name, **options),
        text_signature = "(store, name, *, namespace='tickets', start=None, step=None, \
                          reserve_seconds=2.0, min_block=10, max_block=1000000, create=False, \
                          acquire_timeout=10.0, max_wait=1.0, allow_weak_store=False)"
    )]
    fn lazy(
        py: Python<'_>,
        store: Option<Store>,
        name: CounterName,
        options: Option<Options<'_>>,
    ) -> PyResult<Self> {
        Self::new(py, store, name, options, FirstBlock::Later)
    }

    #[doc = doc!(Tickets.leased_async)]
    #[staticmethod]
    #[pyo3(
        signature = (store, name, **options),
        text_signature = "(store, name, *, namespace='tickets', start=None, step=None, \
                          reserve_seconds=2.0, min_block=10, max_block=1000000, create=False, \
                          acquire_timeout=10.0, max_wait=1.0, allow_weak_store=False)"
    )]
    fn leased_async<'py>(
        py: Python<'py>,
        store: Option<Bound<'py, PyAny>>,
        name: CounterName,
        options: Option<Options<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let leased = py.get_type::<Self>().getattr("leased")?;
        interpreter::call_async(py, "Opening", (leased, (store, name.0), options))
    }

    /// Draws from a counter in the memory of this process, for randflake.testing.
    #[staticmethod]
    #[pyo3(signature = (name, **options))]
    fn _in_memory(
        py: Python<'_>,
        name: CounterName,
        options: Option<Options<'_>>,
    ) -> PyResult<Self> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let store = call(|| Namespace::for_tickets("tickets").map(MemoryStore::new))?;
        let location = Location::new(move |namespace| Ok(Box::new(store.namespace(namespace))));
        let builder = randflake_tickets::Tickets::builder(location, name.0).clock(Clock::System);
        let builder = options::tickets(builder, options)?;
        let tickets =
            caught(|| builder.open()).map_err(|error| interpreter::raise_with_cause(py, error))?;
        let counter = Counter { tickets, environment: None, registered_in: AtomicU64::new(0) };
        Ok(Self { counter: Arc::new(counter), waiting: None })
    }

    /// Returns the same object with calls that never wait, for an event loop's thread.
    fn _without_waits(slf: Bound<'_, Self>) -> PyResult<Py<Self>> {
        let counter = Arc::clone(&slf.get().counter);
        Py::new(slf.py(), Self { counter, waiting: Some(slf.clone().unbind()) })
    }

    #[doc = doc!(Tickets.name)]
    #[getter]
    fn name(&self) -> &str {
        self.counter.tickets.name()
    }

    #[doc = doc!(Tickets.generate)]
    fn generate(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, |tickets| tickets.generate_with(self.wait()))
    }

    #[doc = doc!(Tickets.generate_many)]
    fn generate_many<'py>(&self, py: Python<'py>, n: Count) -> PyResult<Bound<'py, PyList>> {
        let mut numbers = self.batch(py, n.0)?;
        self.fill_batch(py, &mut numbers)?;
        bulk::list_of::<IdNumber>(py, &numbers)
    }

    #[doc = doc!(Tickets.generate_array)]
    fn generate_array<'py>(&self, py: Python<'py>, n: Count) -> PyResult<Bound<'py, PyAny>> {
        let mut numbers = self.batch(py, n.0)?;
        // Made first: its exceptions come before any number is claimed.
        let array = buffer::array::<i64>(py, n.0)?;
        self.fill_batch(py, &mut numbers)?;
        Int64Buffer::writable(&array)?.write(py, &numbers)?;
        Ok(array)
    }

    #[doc = doc!(Tickets.fill)]
    fn fill(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = Int64Buffer::writable(buffer)?;
        let mut numbers = Batch::of(buffer.len())?;
        let filled = self.fill_batch(py, &mut numbers);
        // After a failure these are zeros.
        buffer.write(py, &numbers)?;
        filled
    }

    #[doc = doc!(Tickets.metrics)]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        metrics::of_tickets(py, self.counter.tickets.metrics())
    }

    #[doc = doc!(Tickets.close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let (tickets, wait) = (&self.counter.tickets, self.wait());
        let close = || {
            match wait {
                Wait::Never => tickets.stop(),
                Wait::MaxWait => tickets.close(),
            }
            Ok(())
        };
        py.detach(|| call(close))
    }

    #[doc = doc!(Tickets.ready)]
    fn ready(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        interpreter::call_async(slf.py(), "ready", (slf,))
    }

    #[doc = doc!(Tickets.generate_many_async)]
    fn generate_many_async(slf: Bound<'_, Self>, n: Count) -> PyResult<Bound<'_, PyAny>> {
        interpreter::call_async(slf.py(), "generate_many", (slf, n.0))
    }

    #[doc = doc!(Tickets.generate_array_async)]
    fn generate_array_async(slf: Bound<'_, Self>, n: Count) -> PyResult<Bound<'_, PyAny>> {
        interpreter::call_async(slf.py(), "generate_array", (slf, n.0))
    }

    #[doc = doc!(Tickets.aclose)]
    fn aclose(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        interpreter::call_async(slf.py(), "close", (slf,))
    }

    /// Returns the seconds after which to ask again for a number; 0 if there is one. Never waits.
    fn _ready_in(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.ask(py, randflake_tickets::Tickets::ready_in)?.as_secs_f64())
    }

    /// Whether it was closed.
    #[getter]
    fn _is_closed(&self) -> bool {
        self.counter.tickets.is_closed()
    }

    /// Returns the same object with calls that may wait.
    #[getter]
    fn _waiting(slf: Bound<'_, Self>) -> Py<Self> {
        let waiting = slf.get().waiting.as_ref().map(|waiting| waiting.clone_ref(slf.py()));
        waiting.unwrap_or_else(|| slf.unbind())
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
            "Tickets cannot be pickled or copied; make them in each process, where they draw their \
             own blocks",
        ))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.name().into_pyobject(py)?;
        Ok(format!("<randflake.Tickets name={}>", name.repr()?))
    }
}

impl Drop for Tickets {
    fn drop(&mut self) {
        self.counter.tickets.stop();
    }
}
