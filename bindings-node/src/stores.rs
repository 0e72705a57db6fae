//! Where leases come from: a file, or a server, which is reached through a JavaScript client. Rust
//! writes the statements and waits on a thread of its own; `stores.js` runs them.
//!
//! A client belongs to the JavaScript thread that made it, so statements run there. A late answer
//! is dropped: each operation may be repeated.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    time::Duration,
};

use napi::bindgen_prelude::Null;
use napi_derive::napi;
use randflake::{Error, ErrorKind, Layout, Result, Wait};
use randflake_leases::{
    InitMode, Location, Namespace,
    remote::{
        Address, Client, Engine, Protocol, RemoteStore, Response, SharedClient, Statement,
        WaitForReplicas,
    },
};

use crate::{
    arguments::{self, default_namespace},
    closing::{Closing, LONGEST_SLICE, ended},
    environment::Environment,
    ffi::{Callback, Js, Outcome, Value, outcome},
    threads,
};

/// How long a statement may take: longer than any driver of ours waits for a server.
const LONGEST_STATEMENT: Duration = Duration::from_secs(10);
const SLICES: u128 = LONGEST_STATEMENT.as_millis() / LONGEST_SLICE.as_millis();

pub(crate) enum Store {
    /// Of a file.
    Path(String),
    Server(Server),
}

/// A server, and the client that runs statements on it.
#[derive(Clone)]
pub(crate) struct Server {
    engine: Engine,
    run: Arc<Callback>,
    /// The key under which all generators of an environment share one client.
    url: Option<String>,
    /// Where it is, for people.
    place: Option<String>,
    closing: Arc<Closing>,
    allow_weak: bool,
}

impl Store {
    /// Takes the path of a file, or a server as `stores.js` describes it, with the option that only
    /// servers have.
    pub(crate) fn new(value: Value<'_>, allow_weak: Option<bool>) -> Result<Self> {
        let Some(path) = value.to() else {
            let allow_weak = allow_weak.unwrap_or_default();
            return Ok(Self::Server(Server { allow_weak, ..Server::new(value)? }));
        };
        if allow_weak == Some(true) {
            return Err(Error::invalid_argument(
                "allowWeakStore is for servers; a SQLite file keeps what it has granted",
            ));
        }
        Ok(Self::Path(path))
    }

    /// Returns whether the JavaScript thread may wait for what this store brings: not for a server,
    /// whose client it runs itself.
    pub(crate) fn wait_here(&self) -> Wait {
        if matches!(self, Self::Server(_)) { Wait::Never } else { Wait::MaxWait }
    }

    /// Returns where the store is, and how to open it.
    pub(crate) fn location(self) -> Location {
        match self {
            Self::Path(path) => path.into(),
            Self::Server(server) => Location::server(move |namespace| server.open(namespace)),
        }
    }
}

impl Server {
    /// Takes a server as `stores.js` describes it.
    pub(crate) fn new(value: Value<'_>) -> Result<Self> {
        let name = value.property(c"engine")?.to::<String>();
        let engine = Engine::named(&name.unwrap_or_default())?;
        let run = Arc::new(Callback::new(value.property(c"run")?)?);
        let [url, place] =
            [value.get(c"url")?, value.get(c"place")?].map(|it| it.and_then(Value::to));
        let closing = Arc::clone(&value.js().state::<Environment>()?.closing);
        Ok(Self { engine, run, url, place, closing, allow_weak: false })
    }

    /// Makes the store of a namespace.
    pub(crate) fn open(&self, namespace: Namespace) -> Result<RemoteStore<Box<dyn Client>>> {
        let protocol = Protocol::new(namespace, self.engine).allow_weak_store(self.allow_weak);
        let own = || {
            let mut client = HostClient(self.clone());
            client.discard(); // a connection from before a restore
            Box::new(client) as Box<dyn Client>
        };
        let client = match &self.url {
            Some(url) => Box::new(SharedClient::open(url, || Ok(own()))?),
            None => own(),
        };
        let store = RemoteStore::new(client, protocol);
        Ok(match &self.place {
            Some(place) => store.place(place),
            None => store,
        })
    }
}

/// What the URL of a store says, in parts for a client.
#[napi(object)]
pub struct StoreAddress {
    pub engine: String,
    pub hosts: Vec<Host>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: String,
    pub tls: bool,
    pub options: HashMap<String, String>,
    pub place: String,
    pub key: String,
}

#[napi(object)]
pub struct Host {
    pub host: String,
    pub port: u16,
}

/// Reads the URL of a store, for `stores.js`; `undefined` for anything else.
#[napi]
pub fn address_of(store: Value<'_>) -> Outcome<Option<StoreAddress>> {
    outcome(|| {
        let Some(address) = Address::read(&store.to::<String>().unwrap_or_default()) else {
            return Ok(None);
        };
        let address = address?;
        address.check_files()?;
        let host = |(host, port): &(String, u16)| Host { host: host.clone(), port: *port };
        let options = address.options.iter();
        Ok(Some(StoreAddress {
            engine: address.engine.scheme().to_owned(),
            hosts: address.hosts.iter().map(host).collect(),
            user: address.user.clone(),
            password: address.password.as_ref().map(|password| password.to_string()),
            database: address.database.clone(),
            tls: address.tls,
            options: options.map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            place: address.to_string(),
            key: address.key().to_string(),
        }))
    })
}

/// Runs statements on the JavaScript thread of an environment, while that lives.
struct HostClient(Server);

impl Client for HostClient {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        let Statement { text, parameters, wait } = statement.clone();
        let wait = wait.map(|WaitForReplicas { replicas, milliseconds }| [replicas, milliseconds]);
        let wait: Vec<_> = wait.iter().flatten().map(ToString::to_string).collect();
        ask(&self.0.run, &self.0.closing, response, move |js| {
            js.object(&[
                (c"text", js.convert(text)?),
                (c"parameters", js.convert(parameters)?),
                (c"wait", js.convert(wait)?),
            ])
        })
    }

    fn discard(&mut self) {
        let _ended = self.0.run.call(|js| js.convert(Null), |_| ());
    }

    /// JavaScript gives up only what it has opened itself.
    fn rest(&mut self) {
        self.discard();
    }
}

impl Drop for HostClient {
    fn drop(&mut self) {
        self.discard();
    }
}

/// Asks JavaScript, and waits for the answer while its environment lives. A late answer is dropped.
pub(crate) fn ask<T: Send + 'static>(
    callback: &Callback,
    closing: &Closing,
    read: fn(Value<'_>) -> Result<T>,
    question: impl for<'a> FnOnce(Js<'a>) -> Result<Value<'a>> + Send + 'static,
) -> Result<T> {
    let (sender, answered) = mpsc::sync_channel(1);
    let mut is_over = !callback.call(question, move |answer| {
        let _nobody_waits = sender.send(read(answer));
    });
    for _ in 0..SLICES {
        is_over |= closing.is_over();
        if is_over {
            return Err(unavailable(&ended().to_string()));
        }
        match answered.recv_timeout(LONGEST_SLICE) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(unavailable("the client gave no answer"));
            }
        }
    }
    Err(unavailable("the JavaScript thread or the client did not answer within 10 seconds"))
}

/// Takes what `stores.js` made of an answer: rows, with the answer to `WAIT`, the error that the
/// server reported, or why there is none.
fn response(answer: Value<'_>) -> Result<Response> {
    if let Some(why) = answer.get(c"failed")? {
        return Err(unavailable(&why.to::<String>().unwrap_or_default()));
    }
    if let Some(refused) = answer.get(c"refused")? {
        let (code, message) = refused.to().unwrap_or_default();
        return Ok(Response::Refused { code, message });
    }
    let rows = answer.get(c"rows")?.and_then(Value::to);
    let rows = rows.ok_or_else(|| unavailable("the client gave no rows"))?;
    let replicas = answer.get(c"replicas")?.and_then(Value::to::<String>);
    match replicas.and_then(|replicas| replicas.parse().ok()) {
        Some(replicas) => Ok(Response::Confirmed { rows, replicas }),
        None => Ok(Response::Rows(rows)),
    }
}

fn unavailable(why: &str) -> Error {
    Error::new(ErrorKind::StoreUnavailable, format!("cannot use the store: {why}"))
}

/// Promises that a namespace exists, for a layout or a secret.
#[napi]
pub fn init_store<'call>(
    store: Value<'call>,
    format: Value<'call>,
    mode: Value<'call>,
    options: Value<'call>,
) -> Outcome<Value<'call>> {
    outcome(|| {
        let name = options.namespace()?.unwrap_or_else(default_namespace);
        let namespace = match format.owned::<Layout>() {
            Ok(&layout) => Namespace::for_layout(name, layout)?,
            Err(_) => Namespace::new(name, &arguments::secret(format)?)?,
        };
        let max_ttl = options.whole(c"maxTtlSeconds", "seconds", 1)?;
        let max_skew = options.whole(c"maxSkewSeconds", "seconds", 0)?;
        let limits = namespace.limits();
        let node_ids = options.get(c"nodeIds")?.map(arguments::leased_nodes).transpose()?;
        let namespace = namespace
            .max_ttl_and_skew(
                max_ttl.unwrap_or(limits.max_ttl),
                max_skew.unwrap_or(limits.max_skew),
            )?
            .node_ids(node_ids.unwrap_or(limits.node_ids))?;
        init(store, namespace, mode, options)
    })
}

pub(crate) fn init<'call>(
    store: Value<'call>,
    namespace: Namespace,
    mode: Value<'call>,
    options: Value<'call>,
) -> Result<Value<'call>> {
    let mode: InitMode = mode.read_text(str::parse).unwrap_or_else(|| "".parse())?;
    let location = Store::new(store, options.boolean(c"allowWeakStore")?)?.location();
    let work = move || location.init(&namespace, mode);
    store.js().promise(threads::start, work, |js, done| js.convert(done))
}
