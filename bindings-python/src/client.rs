//! Stores with a server: statements run by clients written in Python, `randflake/stores.py`.

use std::{
    fmt,
    sync::mpsc::{self, Receiver, TryRecvError},
    time::Duration,
};

use pyo3::{
    exceptions::PyTypeError,
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBool, PyCFunction, PyDict, PyTuple},
};
use randflake::{Error, ErrorKind, Result, bindings::ForkId};
use randflake_leases::{
    Location, Namespace,
    remote::{self, Protocol, RemoteStore, Response, Statement, Wait},
};

use crate::{errors::raise, exit};

pyo3::import_exception!(randflake.stores, Refused);
pyo3::import_exception!(randflake.stores, Unavailable);

/// Longest wait for a client. Its own should be a few seconds at most.
const WAIT_BUDGET: Duration = Duration::from_secs(10);

/// A `randflake.stores.Source`: how to get a client.
pub(crate) struct Source {
    server: Server,
    open: Py<PyAny>,
    survives_fork: bool,
    /// Where it was given.
    process: ForkId,
}

#[derive(Clone, Copy)]
enum Server {
    Postgres,
    Redis,
    Etcd,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct StoreOptions {
    pub(crate) create: Option<bool>,
    pub(crate) allow_weak_store: bool,
}

impl Source {
    /// Returns how to run statements on a store, or `None` if it is no store with a server.
    pub(crate) fn of(store: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = store.py();
        let ask = || py.import("randflake.stores")?.call_method1("source_of", (store,));
        let source = exit::unless_finalizing(py, ask).ok_or_else(|| raise(finalizing()))??;
        if source.is_none() {
            return Ok(None);
        }
        let (server, open, survives_fork): (String, Py<PyAny>, bool) = source.extract()?;
        let server = match server.as_str() {
            "postgresql" => Server::Postgres,
            "redis" => Server::Redis,
            _ => Server::Etcd,
        };
        Ok(Some(Self { server, open, survives_fork, process: ForkId::current() }))
    }

    pub(crate) fn location(self, options: StoreOptions) -> Location {
        Location::new(move |namespace| Ok(Box::new(self.connect(namespace, options)?)))
    }

    /// Makes the store, without connecting yet.
    pub(crate) fn connect(
        &self,
        namespace: Namespace,
        options: StoreOptions,
    ) -> Result<RemoteStore<Box<dyn remote::Client>>> {
        if !self.survives_fork && self.process != ForkId::current() {
            return Err(Error::new(
                ErrorKind::Forked,
                "the connection of this store belongs to the parent of this process, which still \
                 uses it; make a generator with another one in the child, or give the URL, with \
                 which a child connects again",
            ));
        }
        let protocol = match self.server {
            Server::Postgres => Protocol::postgres(namespace),
            Server::Redis => Protocol::redis(namespace),
            Server::Etcd => Protocol::etcd(namespace),
        };
        let protocol = protocol
            .create(options.create.unwrap_or_default())?
            .allow_weak_store(options.allow_weak_store);
        let server = self.server;
        let adapter = server.call(
            |py| Ok((self.open.clone_ref(py),).into_pyobject(py)?.unbind()),
            move |py, opened| {
                opened.map(Bound::unbind).map_err(|raised| server.failed(py, &raised))
            },
        )?;
        Ok(RemoteStore::new(Box::new(Client { server, adapter, late: None }), protocol))
    }
}

impl Server {
    const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Redis => "Redis",
            Self::Etcd => "etcd",
        }
    }

    fn unavailable(self, why: &dyn fmt::Display) -> Error {
        Error::new(ErrorKind::StoreUnavailable, format!("cannot reach {}: {why}", self.name()))
    }

    /// Has Python make a call, of the first of `call` with the rest, and returns its outcome.
    fn call<T: Send + 'static>(
        self,
        call: impl FnOnce(Python<'_>) -> PyResult<Py<PyTuple>>,
        read: impl Fn(Python<'_>, PyResult<Bound<'_, PyAny>>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let answer = self.start(call, read)?;
        answer.recv_timeout(WAIT_BUDGET).map_err(|_| self.unavailable(&"it does not answer"))?
    }

    /// Has Python begin a call. Its outcome can be received.
    ///
    /// It runs on a thread that Python starts: a finalizing interpreter ends threads anywhere, which
    /// those of Rust do not survive, and on the main thread an exception of a signal's handler would
    /// pass for a failure of the client. The caller waits without the GIL.
    fn start<T: Send + 'static>(
        self,
        call: impl FnOnce(Python<'_>) -> PyResult<Py<PyTuple>>,
        read: impl Fn(Python<'_>, PyResult<Bound<'_, PyAny>>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<Receiver<Result<T>>> {
        static ANSWER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static START: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

        let (sender, receiver) = mpsc::channel();
        let started = Python::try_attach(|py| {
            let send = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
                let (value, raised) =
                    arguments.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
                let outcome =
                    if raised.is_none() { Ok(value) } else { Err(PyErr::from_value(raised)) };
                let _gave_up = sender.send(read(arguments.py(), outcome));
                PyResult::Ok(())
            };
            let start = || {
                let send = PyCFunction::new_closure(py, None, None, send)?;
                let answer = ANSWER.import(py, "randflake.stores", "answer")?;
                let start = START.import(py, "randflake.stores", "start_new_thread")?;
                start.call1((answer, (send, call(py)?)))
            };
            let start = || start().map(drop).map_err(|raised| self.failed(py, &raised));
            exit::unless_finalizing(py, start)
        });
        started.flatten().ok_or_else(finalizing)??;
        Ok(receiver)
    }

    /// Names only the class of an exception of a client: its message may have a password.
    fn failed(self, py: Python<'_>, raised: &PyErr) -> Error {
        if raised.is_instance_of::<Unavailable>(py) {
            return self.unavailable(&raised.value(py));
        }
        let class = raised.get_type(py);
        let name = class.qualname().map(|name| name.to_string()).unwrap_or_default();
        self.unavailable(&format!("its client raised {name}"))
    }
}

#[cold]
fn finalizing() -> Error {
    Error::new(ErrorKind::StoreUnavailable, "Python is ending, and with it the client of the store")
}

/// Runs statements with a client in Python. The GIL is held only while Python works.
pub(crate) struct Client {
    server: Server,
    /// A `randflake.stores.Adapter`.
    adapter: Py<PyAny>,
    /// The outcome of a statement that was given up, and that it may still be running.
    late: Option<Receiver<Result<Response>>>,
}

impl Client {
    /// A client that has not returned is given no other statement: each would wait beside the first
    /// one, with a thread and perhaps a connection of its own.
    fn is_busy(&mut self) -> bool {
        let busy = self
            .late
            .as_ref()
            .is_some_and(|late| matches!(late.try_recv(), Err(TryRecvError::Empty)));
        if !busy {
            self.late = None;
        }
        busy
    }

    /// Calls a method that an adapter need not have, and ignores its failure.
    fn call_if_there(&mut self, name: &str) {
        if self.is_busy() {
            return;
        }
        let call = |py: Python<'_>| {
            let method = self.adapter.getattr(py, name)?;
            Ok((method,).into_pyobject(py)?.unbind())
        };
        let _ = self.server.call(call, |_, _| Ok(()));
    }
}

impl remote::Client for Client {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        let server = self.server;
        let Statement { text, ref parameters, wait } = *statement;
        if self.is_busy() {
            return Err(
                server.unavailable(&"its client has not yet come back from what it did last")
            );
        }
        let call = |py: Python<'_>| {
            let adapter = self.adapter.bind(py);
            // Without it the answer has rows alone, which grant nothing.
            let wait = wait.filter(|_| adapter.hasattr("run_and_wait").unwrap_or(false));
            let call = match wait {
                None => {
                    (adapter.getattr(intern!(py, "run"))?, text, parameters).into_pyobject(py)?
                }
                Some(Wait { replicas, milliseconds }) => {
                    let run = adapter.getattr("run_and_wait")?;
                    (run, text, parameters, replicas, milliseconds).into_pyobject(py)?
                }
            };
            Ok(call.unbind())
        };
        let answer = server.start(call, move |py, answer| {
            match answer.and_then(|answer| read(&answer)) {
                Ok(response) => Ok(response),
                Err(raised) if raised.is_instance_of::<Refused>(py) => {
                    let part = |name| raised.value(py).getattr(name).and_then(|it| it.extract());
                    let parts = part("code").and_then(|code| Ok((code, part("message")?)));
                    let (code, message) = parts.map_err(|raised| server.failed(py, &raised))?;
                    Ok(Response::Refused { code, message })
                }
                Err(raised) => Err(server.failed(py, &raised)),
            }
        })?;
        answer.recv_timeout(WAIT_BUDGET).unwrap_or_else(|_| {
            self.late = Some(answer);
            Err(server.unavailable(&"it does not answer"))
        })
    }

    fn discard(&mut self) {
        self.call_if_there("discard");
    }

    fn rest(&mut self) {
        self.call_if_there("rest");
    }
}

/// Reads rows, or rows and the answer of `WAIT`.
fn read(answer: &Bound<'_, PyAny>) -> PyResult<Response> {
    if let Ok((rows, replicas)) = answer.extract::<(_, Bound<'_, PyAny>)>()
        && !replicas.is_instance_of::<PyBool>()
        && let Ok(replicas) = replicas.extract()
    {
        return Ok(Response::Confirmed { rows, replicas });
    }
    answer.extract().map(Response::Rows).map_err(|raised| {
        if !raised.is_instance_of::<PyTypeError>(answer.py()) {
            return raised;
        }
        Unavailable::new_err(
            "its adapter must return rows of str and None, and from run_and_wait a tuple of rows \
             and the int that WAIT said",
        )
    })
}

/// Has the adapter close its connection. A forked child forgets its store, so this is not called
/// there.
impl Drop for Client {
    fn drop(&mut self) {
        remote::Client::discard(self);
    }
}
