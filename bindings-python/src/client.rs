//! Stores with a server: statements run by clients written in Python, `randflake/stores.py`.
//!
//! Each statement runs on a thread that Python started, of the system's also where gevent has put
//! greenlets in their place, which would never run there. Python up to 3.13 ends other threads
//! where they stand when it ends, by unwinding them, which Rust below does not survive; and on the
//! first thread, what a signal's handler raises would look like a failure of the client. Nor does
//! that thread begin a statement: code of Python's would run the handler, and take what it raises
//! for its own.
//!
//! A client whose last call has not returned is not called again. Only a URL is opened again in a
//! forked child: a connection, pool or client is the parent's, and is not even asked to close.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::mpsc::{self, Receiver, TryRecvError},
    time::Duration,
};

use pyo3::{
    prelude::*,
    types::{PyBool, PyCFunction, PyDict, PyString, PyTuple},
};
use randflake::{Error, ErrorKind, Result, bindings::ForkId};
use randflake_leases::{
    Location, Namespace,
    remote::{
        self, Address, Engine, Protocol, RemoteStore, Response, SharedClient, Statement,
        WaitForReplicas,
    },
};

use crate::{errors::raise, interpreter};

/// The longest wait for a client. Its own limit should be a few seconds at most.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Where leases come from.
pub(crate) enum Store {
    /// A file, or something that is not a store.
    Local(Location),
    /// A server.
    Server(Source),
}

/// A `randflake.stores.Source`: how to get a client.
pub(crate) struct Source {
    server: Server,
    open: Held,
    survives_fork: bool,
    /// The key under which all generators of a process share one client.
    key: Option<String>,
    place: Option<String>,
    /// Where it was given.
    process: ForkId,
}

#[derive(Clone, Copy)]
struct Server(Engine);

impl<'a, 'py> FromPyObject<'a, 'py> for Store {
    type Error = PyErr;

    fn extract(store: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = store.py();
        // The path of a file needs nothing of Python's. A URL does: its clients are written there.
        if let Ok(text) = store.cast::<PyString>()
            && let Ok(path) = text.to_str()
            && Address::read(path).is_none()
        {
            return Ok(Self::Local(path.to_owned().into()));
        }
        let ask = || py.import("randflake._clients")?.call_method1("located", (store,));
        let located = interpreter::call_python(py, ask)?;
        if let Ok((server, open, survives_fork, key, place)) =
            located.extract::<(String, Py<PyAny>, _, _, _)>()
        {
            let open = Held::new(open);
            let server = Server(Engine::named(&server).map_err(raise)?);
            let process = ForkId::current();
            return Ok(Self::Server(Source { server, open, survives_fork, key, place, process }));
        }
        // An os.PathLike, bytes, or a str with undecodable bytes.
        Ok(Self::Local(located.extract::<PathBuf>()?.into()))
    }
}

impl Store {
    /// Returns whether a client in Python accesses it.
    pub(crate) fn needs_python(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    pub(crate) fn location(self, allow_weak_store: bool) -> PyResult<Location> {
        match self {
            Self::Local(_) if allow_weak_store => Err(raise(Error::invalid_argument(
                "allow_weak_store is for servers; a SQLite file keeps what it has granted",
            ))),
            Self::Local(location) => Ok(location),
            Self::Server(source) => Ok(Location::server(move |namespace| {
                Ok(source.connect(namespace)?.allow_weak_store(allow_weak_store))
            })),
        }
    }
}

/// The parts of a store's URL; `None` for anything else. `randflake/_urls.py` names the parts.
#[pyfunction]
pub(crate) fn address_of<'py>(
    store: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    // A path may contain bytes that are not text.
    let Some(address) = Address::read(&store.to_string_lossy()) else { return Ok(None) };
    let address = address.and_then(|it| it.check_files().map(|()| it)).map_err(raise)?;
    let options: BTreeMap<_, _> = address.options.iter().cloned().collect();
    let key = address.key();
    let parts = (
        address.engine.scheme(),
        &address.hosts,
        address.user.as_deref(),
        address.password.as_ref().map(|password| password.as_str()),
        &address.database,
        address.tls,
        options,
        address.to_string(),
        key.as_str(),
    );
    parts.into_pyobject(store.py()).map(Some)
}

impl Source {
    /// Makes the store, without connecting yet.
    pub(crate) fn connect(
        &self,
        namespace: Namespace,
    ) -> Result<RemoteStore<Box<dyn remote::Client>>> {
        if !self.survives_fork && self.process != ForkId::current() {
            return Err(Error::new(
                ErrorKind::Forked,
                "the connection of this store belongs to the process that this one was forked or \
                 restored from; make a generator with another one, or give the URL, with which this \
                 process connects again",
            ));
        }
        let server = self.server;
        let client = match &self.key {
            Some(key) => Box::new(SharedClient::open(key, || self.client())?),
            None => self.client()?,
        };
        let store = RemoteStore::new(client, Protocol::new(namespace, server.0));
        Ok(match &self.place {
            Some(place) => store.place(place),
            None => store,
        })
    }

    fn client(&self) -> Result<Box<dyn remote::Client>> {
        let (server, open) = (self.server, &self.open);
        let adapter = server
            .call(|py| (open.get(),).into_pyobject(py), |opened, _| Ok(opened.clone().unbind()))?;
        Ok(Box::new(Client { server, adapter: Held::new(adapter), late: None }))
    }
}

/// A Python object that is also dropped in Python by the thread that drops it: otherwise the next
/// thread to run Python would do that, such as the main thread, whose finalizers lose what a signal
/// handler raises.
struct Held(Option<Py<PyAny>>);

impl Held {
    fn new(object: Py<PyAny>) -> Self {
        Self(Some(object))
    }

    fn get(&self) -> &Py<PyAny> {
        self.0.as_ref().expect("until it is dropped")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let object = self.0.take();
        let _ended = Python::try_attach(|py| interpreter::unless_finalizing(py, || drop(object)));
    }
}

/// What a call has returned, how the server has refused it (a code and a message), or why there is
/// neither.
type Outcome<'py> = (Bound<'py, PyAny>, Refused<'py>, Option<Bound<'py, PyString>>);
type Refused<'py> = Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;
type Read<T> = fn(&Bound<'_, PyAny>, Refused<'_>) -> PyResult<T>;

impl Server {
    fn unavailable(self, why: &str) -> Error {
        Error::new(ErrorKind::StoreUnavailable, format!("cannot reach {}: {why}", self.0.name()))
    }

    /// Makes Python call the first of `call` with the rest, and returns the outcome.
    fn call<T: Send + 'static>(
        self,
        call: impl FnOnce(Python<'_>) -> PyResult<Bound<'_, PyTuple>>,
        read: Read<T>,
    ) -> Result<T> {
        let answer = self.start(call, read)?;
        answer.recv_timeout(LONGEST_WAIT).map_err(|_| self.unavailable("it does not answer"))?
    }

    /// Makes Python begin a call, whose outcome can be received.
    ///
    /// It runs on a thread that Python starts: a finalizing interpreter ends threads anywhere,
    /// which Rust threads do not survive, and on the main thread an exception of a signal handler
    /// would look like a failure of the client. The caller waits without the GIL.
    fn start<T: Send + 'static>(
        self,
        call: impl FnOnce(Python<'_>) -> PyResult<Bound<'_, PyTuple>>,
        read: Read<T>,
    ) -> Result<Receiver<Result<T>>> {
        let (sender, receiver) = mpsc::channel();
        let started = Python::try_attach(|py| {
            let send = move |outcome: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
                let (value, refused, why) = outcome.extract::<Outcome<'_>>()?;
                let answer = match why {
                    Some(why) => Err(self.unavailable(&why.to_string_lossy())),
                    None => read(&value, refused).map_err(|_| {
                        self.unavailable(
                            "its adapter must return rows of str and None, and from run_and_wait a \
                             tuple of rows and the int that WAIT returned",
                        )
                    }),
                };
                let _gave_up = sender.send(answer);
                PyResult::Ok(())
            };
            let begin = || {
                let send = PyCFunction::new_closure(py, None, None, send)?;
                once!().import(py, "randflake._clients", "begin")?.call1((send, call(py)?))
            };
            // Shows only the class of an exception: its message may contain a password.
            interpreter::unless_finalizing(py, || {
                begin().map(drop).map_err(|raised| {
                    let class = raised.get_type(py).qualname();
                    let class = class.map(|name| name.to_string()).unwrap_or_default();
                    self.unavailable(&format!("its client raised {class}"))
                })
            })
        });
        started.flatten().ok_or_else(interpreter::finalizing)??;
        Ok(receiver)
    }
}

/// Runs statements with a client in Python. The GIL is held only while Python works.
pub(crate) struct Client {
    server: Server,
    /// A `randflake.stores.Adapter`.
    adapter: Held,
    /// The outcome of a statement that was given up, and whether it may still be running.
    late: Option<Receiver<Result<Response>>>,
}

impl Client {
    /// A client that has not returned is given no other statement: each would wait next to the
    /// first one, with a thread and perhaps a connection of its own.
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

    /// Calls an optional method of an adapter, and ignores its failure.
    fn call_if_there(&mut self, name: &str) {
        if !self.is_busy() {
            let _ = self.server.call(
                |py| (self.adapter.get().getattr(py, name)?,).into_pyobject(py),
                |_, _| Ok(()),
            );
        }
    }
}

impl remote::Client for Client {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        let server = self.server;
        if self.is_busy() {
            return Err(server.unavailable("its client is still busy with its last operation"));
        }
        let Statement { text, ref parameters, wait } = *statement;
        let wait = wait.map(|WaitForReplicas { replicas, milliseconds }| (replicas, milliseconds));
        let adapter = self.adapter.get();
        let answer = server.start(
            |py| {
                let run = once!().import(py, "randflake._clients", "run")?;
                (run, adapter, text, parameters, wait).into_pyobject(py)
            },
            read,
        )?;
        answer.recv_timeout(LONGEST_WAIT).unwrap_or_else(|_| {
            self.late = Some(answer);
            Err(server.unavailable("it does not answer"))
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
fn read(answer: &Bound<'_, PyAny>, refused: Refused<'_>) -> PyResult<Response> {
    if let Some((code, message)) = refused {
        return Ok(Response::Refused { code: code.extract()?, message: message.extract()? });
    }
    if let Ok((rows, replicas)) = answer.extract::<(_, Bound<'_, PyAny>)>()
        && !replicas.is_instance_of::<PyBool>()
        && let Ok(replicas) = replicas.extract()
    {
        return Ok(Response::Confirmed { rows, replicas });
    }
    answer.extract().map(Response::Rows)
}

/// Makes the adapter close its connection. A forked child forgets its store, so this is not called
/// there.
impl Drop for Client {
    fn drop(&mut self) {
        remote::Client::discard(self);
    }
}
