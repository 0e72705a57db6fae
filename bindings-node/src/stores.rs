//! Where leases come from: a file, or a server, which is reached through a client of JavaScript's.
//! Rust writes the statements and waits on a thread of its own; `stores.js` runs them.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    time::Duration,
};

use napi_derive::napi;
use randflake::{Error, ErrorKind, Layout, Result};
use randflake_leases::{
    InitMode, Location, Namespace,
    remote::{Client, Protocol, RemoteStore, Response, Statement, Wait},
};

use crate::{
    arguments::{self, Options, invalid},
    environment::Environment,
    ffi::{Callback, Js, Outcome, Returned, Value, outcome},
    leases::{LONGEST_SLICE, Leases, ended},
    threads,
};

/// How long a statement may take: longer than any driver of ours waits for a server.
const LONGEST_STATEMENT: Duration = Duration::from_secs(10);
const SLICES: u128 = LONGEST_STATEMENT.as_millis() / LONGEST_SLICE.as_millis();

/// Most rows, and most cells of one, that a store answers with; no statement asks for as many.
const MOST_ROWS: usize = 1 << 20;

const INIT_OPTIONS: [&str; 5] =
    ["layout", "namespace", "maxTtlSeconds", "maxSkewSeconds", "allowWeakStore"];

pub(crate) enum Store {
    /// Of a file.
    Path(String),
    Server(Server),
}

/// A server, and what runs statements on it.
#[derive(Clone)]
pub(crate) struct Server {
    engine: fn(Namespace) -> Protocol,
    run: Arc<Callback>,
    leases: Arc<Leases>,
    create: bool,
    allow_weak: bool,
}

impl Store {
    /// Takes the path of a file, or the object that `stores.js` made of any other store; and the
    /// options that only servers have.
    pub(crate) fn new(
        value: Value<'_>,
        create: Option<bool>,
        allow_weak: Option<bool>,
    ) -> Result<Self> {
        if value.is_object() {
            return Ok(Self::Server(Server {
                create: create.unwrap_or_default(),
                allow_weak: allow_weak.unwrap_or_default(),
                ..Server::new(value)?
            }));
        }
        if allow_weak.is_some() {
            return Err(Error::invalid_argument(
                "allowWeakStore is for servers; a SQLite file keeps what it has granted",
            ));
        }
        value.as_unicode().map(Self::Path).ok_or_else(|| not_a_store(value))
    }

    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// Returns where the store is, and how to open it.
    pub(crate) fn location(self) -> Location {
        match self {
            Self::Path(path) => path.into(),
            Self::Server(server) => {
                Location::new(move |namespace| Ok(Box::new(server.open(namespace)?)))
            }
        }
    }
}

impl Server {
    /// Takes a server as `stores.js` describes it.
    pub(crate) fn new(value: Value<'_>) -> Result<Self> {
        if !value.is_object() {
            return Err(not_a_store(value));
        }
        let (engine, run) = (value.get(c"engine")?, value.get(c"run")?);
        let engine = match engine.and_then(arguments::text).as_deref() {
            Some("postgresql") => Protocol::postgres,
            Some("redis") => Protocol::redis,
            Some("etcd") => Protocol::etcd,
            _ => return Err(not_a_store(value)),
        };
        let Some(run) = run.filter(|run| run.is_function()) else {
            return Err(not_a_store(value));
        };
        let leases = Arc::clone(&value.js().state::<Environment>()?.leases);
        let run = Arc::new(Callback::new(run)?);
        Ok(Self { engine, run, leases, create: false, allow_weak: false })
    }

    /// Makes the store of a namespace.
    pub(crate) fn open(&self, namespace: Namespace) -> Result<RemoteStore<Box<dyn Client>>> {
        let protocol = (self.engine)(namespace).create(self.create)?;
        let protocol = protocol.allow_weak_store(self.allow_weak);
        Ok(RemoteStore::new(Box::new(HostClient(self.clone())), protocol))
    }
}

fn not_a_store(got: Value<'_>) -> Error {
    invalid(
        "the store",
        "the path of a SQLite file, the URL or a client of PostgreSQL, Redis or etcd, or an adapter \
         with run(text, parameters)",
        got,
    )
}

/// Runs statements on the JavaScript thread of an environment, while that lives.
struct HostClient(Server);

impl Client for HostClient {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        let (slot, answered) = Slot::new();
        let Statement { text, parameters, wait } = statement.clone();
        let wait = wait.map(|Wait { replicas, milliseconds }| [replicas, milliseconds]);
        let wait: Vec<_> = wait.iter().flatten().map(ToString::to_string).collect();
        let asked = self.0.run.call(move |js| {
            js.object(&[
                (c"text", js.convert(text)?),
                (c"parameters", js.convert(parameters)?),
                (c"wait", js.convert(wait)?),
                (c"answer", slot.function(js, answer)?),
                (c"refuse", slot.function(js, refuse)?),
                (c"fail", slot.function(js, fail)?),
            ])
        });
        if asked {
            wait_for(&answered, &self.0.leases)
        } else {
            Err(unavailable(&ended().to_string()))
        }
    }

    fn discard(&mut self) {
        let _ended = self.0.run.call(|js| js.null());
    }

    /// JavaScript gives up what it has opened itself, and nothing else.
    fn rest(&mut self) {
        self.discard();
    }
}

impl Drop for HostClient {
    fn drop(&mut self) {
        self.discard();
    }
}

/// Where JavaScript puts the answer to one question.
pub(crate) struct Slot<T>(Mutex<Option<SyncSender<Result<T>>>>);

impl<T: 'static> Slot<T> {
    /// Makes one, and where its answer comes out.
    pub(crate) fn new() -> (Arc<Self>, Receiver<Result<T>>) {
        let (sender, answered) = mpsc::sync_channel(1);
        (Arc::new(Self(Mutex::new(Some(sender)))), answered)
    }

    /// Makes a function that puts here what `read` makes of its two arguments. Only the first
    /// answer counts; one that is late goes nowhere.
    pub(crate) fn function<'call>(
        self: &Arc<Self>,
        js: Js<'call>,
        read: fn(Value<'_>, Value<'_>) -> Result<T>,
    ) -> Result<Value<'call>> {
        let slot = Arc::clone(self);
        js.closure(move |first, second| {
            let sender = slot.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(sender) = sender {
                let _nobody_waits = sender.send(read(first, second));
            }
        })
    }
}

/// Waits for the answer of JavaScript, while its environment lives.
pub(crate) fn wait_for<T>(answered: &Receiver<Result<T>>, leases: &Leases) -> Result<T> {
    for _ in 0..SLICES {
        if leases.is_over() {
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

/// Takes the rows that the server answered, and the answer to `WAIT`.
fn answer(rows: Value<'_>, replicas: Value<'_>) -> Result<Response> {
    let rows = self::rows(rows).map_err(|error| unavailable(&error.to_string()))?;
    match replicas.read_text(|text| text.parse().ok()).flatten() {
        Some(replicas) => Ok(Response::Confirmed { rows, replicas }),
        None => Ok(Response::Rows(rows)),
    }
}

/// Takes the error that the server reported.
#[allow(clippy::unnecessary_wraps, reason = "as the other answers")]
fn refuse(code: Value<'_>, message: Value<'_>) -> Result<Response> {
    let [code, message] = [code, message].map(|text| arguments::text(text).unwrap_or_default());
    Ok(Response::Refused { code, message })
}

/// Takes why there is no answer.
fn fail(why: Value<'_>, _: Value<'_>) -> Result<Response> {
    Err(unavailable(&arguments::text(why).unwrap_or_default()))
}

fn unavailable(why: &str) -> Error {
    Error::new(ErrorKind::StoreUnavailable, format!("cannot use the store: {why}"))
}

/// Takes the rows that a server answered with, all of text or null.
fn rows(value: Value<'_>) -> Result<Vec<Vec<Option<String>>>> {
    let cell = |value: Value<'_>| match arguments::text(value) {
        None if !value.is_null() => Err(not_rows()),
        text => Ok(text),
    };
    let row = |row| list(row)?.into_iter().map(cell).collect();
    list(value)?.into_iter().map(row).collect()
}

fn list(value: Value<'_>) -> Result<Vec<Value<'_>>> {
    value.elements(MOST_ROWS, |_| not_rows())?.ok_or_else(not_rows)
}

fn not_rows() -> Error {
    Error::invalid_argument(
        "the client must answer with an array of rows, each an array of strings or null",
    )
}

/// Promises that a namespace is there: that of a layout, or where it is undefined that of a secret.
#[napi]
pub fn init_store(
    layout: Value<'_>,
    store: Value<'_>,
    secret: Value<'_>,
    mode: Value<'_>,
    options: Value<'_>,
) -> Outcome<Returned> {
    outcome(|| {
        let named: Box<dyn FnOnce(String) -> Result<Namespace>> = if layout.is_undefined() {
            let secret = arguments::secret(secret)?;
            Box::new(move |name| Namespace::new(name, &secret))
        } else if secret.is_undefined() {
            let layout = *layout.owned::<Layout>()?;
            Box::new(move |name| Namespace::for_layout(name, layout))
        } else {
            return Err(Error::invalid_argument(
                "a namespace has either a secret, for Randflake, or a layout, for Snowflake; with \
                 the option layout the secret must be undefined",
            ));
        };
        let mode: InitMode = mode.read_text(str::parse).unwrap_or_else(|| "".parse())?;
        let options = Options::new(options, &INIT_OPTIONS)?;
        let namespace = named(options.namespace()?)?;
        let max_ttl = options.whole(c"maxTtlSeconds", "seconds", 1)?;
        let max_skew = options.whole(c"maxSkewSeconds", "seconds", 0)?;
        let limits = namespace.limits();
        let namespace = namespace.max_ttl_and_skew(
            max_ttl.unwrap_or(limits.max_ttl),
            max_skew.unwrap_or(limits.max_skew),
        )?;
        let work: Box<dyn FnOnce() -> Result<()> + Send> =
            match Store::new(store, None, options.boolean(c"allowWeakStore")?)? {
                Store::Path(path) => Box::new(move || Location::from(path).init(&namespace, mode)),
                Store::Server(server) => {
                    let mut store = server.open(namespace)?;
                    Box::new(move || store.init(mode))
                }
            };
        store.js().promise(threads::start, work, |js, done| js.convert(done))
    })
}
