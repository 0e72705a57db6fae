//! Stores with a server: statements run by clients written in Python, `randflake/stores.py`.

use std::{fmt, thread};

use pyo3::{intern, prelude::*};
use randflake::{Error, ErrorKind, ProcessLife, Result};
use randflake_leases::{
    Location, Namespace,
    remote::{self, Protocol, RemoteStore, Response, Statement},
};

pyo3::import_exception!(randflake.stores, Refused);
pyo3::import_exception!(randflake.stores, Unavailable);

/// How to get a client, as `randflake.stores.Source` has it.
pub(crate) struct Source {
    server: Server,
    open: Py<PyAny>,
    survives_fork: bool,
    life: ProcessLife,
}

#[derive(Clone, Copy)]
enum Server {
    Postgres,
    Redis,
    Etcd,
}

/// What the store may be, besides what it is by itself.
#[derive(Clone, Copy, Default)]
pub(crate) struct Terms {
    pub(crate) create: bool,
    pub(crate) allow_weak_store: bool,
}

impl Source {
    /// Returns how to run statements on a store; none for what is no store with a server.
    pub(crate) fn of(store: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let source = store.py().import("randflake.stores")?.call_method1("source_of", (store,))?;
        if source.is_none() {
            return Ok(None);
        }
        let (server, open, survives_fork): (String, Py<PyAny>, bool) = source.extract()?;
        let server = match server.as_str() {
            "postgresql" => Server::Postgres,
            "redis" => Server::Redis,
            _ => Server::Etcd,
        };
        Ok(Some(Self { server, open, survives_fork, life: ProcessLife::current() }))
    }

    pub(crate) fn location(self, terms: Terms) -> Location {
        Location::new(move |namespace| Ok(Box::new(self.connect(namespace, terms)?)))
    }

    /// Makes the store. Connects to nothing yet.
    pub(crate) fn connect(
        &self,
        namespace: Namespace,
        terms: Terms,
    ) -> Result<RemoteStore<Client>> {
        if !self.survives_fork && self.life != ProcessLife::current() {
            return Err(Error::new(
                ErrorKind::Forked,
                "the connection of this store belongs to the parent of this process, who goes on \
                 with it; make a generator with another one in the child, or give the URL, with \
                 which a child connects anew",
            ));
        }
        let protocol = match self.server {
            Server::Postgres => Protocol::postgres(namespace),
            Server::Redis => Protocol::redis(namespace),
            Server::Etcd => Protocol::etcd(namespace),
        };
        let protocol = protocol.create(terms.create)?.allow_weak_store(terms.allow_weak_store);
        let adapter = Python::try_attach(|py| {
            self.open.call0(py).map_err(|raised| self.server.failed(&raised, py))
        });
        let adapter = adapter.ok_or_else(|| self.server.ending())??;
        Ok(RemoteStore::new(Client { server: self.server, adapter }, protocol))
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

    fn ending(self) -> Error {
        self.unavailable(&"Python is ending, and with it the client")
    }

    /// Says no more than the class of what a client raised: there may be a password in it.
    fn failed(self, raised: &PyErr, py: Python<'_>) -> Error {
        if raised.is_instance_of::<Unavailable>(py) {
            return self.unavailable(&raised.value(py));
        }
        let class = raised.get_type(py);
        let name = class.qualname().map(|name| name.to_string()).unwrap_or_default();
        self.unavailable(&format!("its client raised {name}"))
    }
}

/// Runs statements with a client in Python. The GIL is held only while Python works.
pub(crate) struct Client {
    server: Server,
    /// A `randflake.stores.Adapter`.
    adapter: Py<PyAny>,
}

impl Client {
    fn ask(&self, statement: &Statement) -> Result<Response> {
        let asked = Python::try_attach(|py| {
            let run = intern!(py, "run");
            let answer = self
                .adapter
                .call_method1(py, run, (statement.text, &statement.parameters))
                .and_then(|rows| rows.extract(py));
            match answer {
                Ok(rows) => Ok(Response::Rows(rows)),
                Err(raised) if raised.is_instance_of::<Refused>(py) => {
                    let part = |name| raised.value(py).getattr(name).and_then(|it| it.extract());
                    let parts = part("code").and_then(|code| Ok((code, part("message")?)));
                    let (code, message) =
                        parts.map_err(|raised| self.server.failed(&raised, py))?;
                    Ok(Response::Refused { code, message })
                }
                Err(raised) => Err(self.server.failed(&raised, py)),
            }
        });
        asked.unwrap_or_else(|| Err(self.server.ending()))
    }
}

impl remote::Client for Client {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        // On a thread of its own: Python delivers signals to the first one, and what a handler
        // raises would pass for a failure of the client. Whoever waits here looks for them after.
        thread::scope(|scope| {
            let asking = thread::Builder::new().spawn_scoped(scope, || self.ask(statement));
            let asking = asking.map_err(|error| self.server.unavailable(&error))?;
            asking.join().unwrap_or_else(|_| Err(self.server.unavailable(&"its client has failed")))
        })
    }

    fn discard(&mut self) {
        Python::try_attach(|py| {
            let discard = self.adapter.bind(py).getattr_opt(intern!(py, "discard"));
            // There is nobody to tell that it failed, and nothing to be done.
            let _ = discard.and_then(|discard| discard.map(|it| it.call0()).transpose());
        });
    }
}

/// The end of a store gives its connection up. It is forgotten in a forked child.
impl Drop for Client {
    fn drop(&mut self) {
        remote::Client::discard(self);
    }
}
