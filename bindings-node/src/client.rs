//! Stores with a server, reached through a client of JavaScript's: Rust says the statements and
//! waits on a thread of its own, JavaScript runs them.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    time::Duration,
};

use randflake::{Error, ErrorKind, Layout, Result};
use randflake_leases::{
    Location, Namespace,
    remote::{Client, Protocol, RemoteStore, Response, Statement, Wait},
};

use crate::{
    arguments::{self, Engine, Server, Store},
    leased::{LONGEST_SLICE, Leases, ended},
    raw::{Callback, Js, Value},
};

/// How long a statement may take: longer than any driver of ours waits for a server.
const PATIENCE: Duration = Duration::from_secs(10);
const SLICES: u128 = PATIENCE.as_millis() / LONGEST_SLICE.as_millis();

/// Runs statements on the JavaScript thread of an environment, while that lives.
struct HostClient {
    run: Arc<Callback>,
    leases: Arc<Leases>,
}

/// Where JavaScript puts the answer to one question.
pub(crate) struct Slot<T>(Mutex<Option<SyncSender<Result<T>>>>);

/// Makes the store of a namespace.
pub(crate) fn store(
    server: &Server,
    namespace: Namespace,
    leases: &Arc<Leases>,
) -> Result<RemoteStore<Box<dyn Client>>> {
    let protocol = match server.engine {
        Engine::Postgresql => Protocol::postgres(namespace),
        Engine::Redis => Protocol::redis(namespace),
        Engine::Etcd => Protocol::etcd(namespace),
    };
    let protocol = protocol.create(server.create)?.allow_weak_store(server.allow_weak);
    let (run, leases) = (Arc::clone(&server.run), Arc::clone(leases));
    Ok(RemoteStore::new(Box::new(HostClient { run, leases }), protocol))
}

/// Promises that a namespace of a secret is there.
pub(crate) fn init<'call>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    [place, secret, mode, options]: [Value<'call>; 4],
) -> Result<Value<'call>> {
    let secret = arguments::secret(secret)?;
    init_namespace(leases, js, [place, mode, options], |name| Namespace::new(name, &secret))
}

/// Promises that a namespace of a layout is there.
pub(crate) fn init_layout<'call>(
    (layout, leases): &(Layout, Arc<Leases>),
    js: Js<'call>,
    [place, secret, mode, options]: [Value<'call>; 4],
) -> Result<Value<'call>> {
    if !secret.is_undefined() {
        return Err(Error::invalid_argument(
            "a namespace has either a secret, for Randflake, or a layout, for Snowflake; with the \
             option layout the secret must be undefined",
        ));
    }
    init_namespace(leases, js, [place, mode, options], |name| Namespace::for_layout(name, *layout))
}

fn init_namespace<'call>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    [place, mode, options]: [Value<'call>; 3],
    named: impl FnOnce(String) -> Result<Namespace>,
) -> Result<Value<'call>> {
    let mode = arguments::init_mode(mode)?;
    let (namespace, allow_weak) = arguments::init_options(options, named)?;
    match arguments::store(place, None, allow_weak)? {
        Store::Path(path) => {
            let location = Location::from(path);
            js.promise(move || location.init(&namespace, mode), |js, ()| js.undefined())
        }
        Store::Server(server) => {
            let mut store = store(&server, namespace, leases)?;
            js.promise(move || store.init(mode), |js, ()| js.undefined())
        }
    }
}

impl Client for HostClient {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        wait(&self.ask(statement)?, &self.leases)
    }

    fn discard(&mut self) {
        let _ended = self.run.call(|js| js.null());
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

impl HostClient {
    fn ask(&self, statement: &Statement) -> Result<Receiver<Result<Response>>> {
        let (slot, answered) = Slot::new();
        let Statement { text, parameters, wait } = statement.clone();
        let wait = wait.map(|Wait { replicas, milliseconds }| [replicas, milliseconds]);
        let wait: Vec<_> = wait.iter().flatten().map(ToString::to_string).collect();
        let asked = self.run.call(move |js| {
            let texts = |values: &[String]| {
                let texts: Vec<_> =
                    values.iter().map(|value| js.text(value)).collect::<Result<_>>()?;
                js.array(&texts)
            };
            js.object(&[
                (c"text", js.text(text)?),
                (c"parameters", texts(&parameters)?),
                (c"wait", texts(&wait)?),
                (c"answer", js.function(c"answer", Arc::clone(&slot), answer)?),
                (c"refuse", js.function(c"refuse", Arc::clone(&slot), refuse)?),
                (c"fail", js.function(c"fail", slot, fail)?),
            ])
        });
        if asked { Ok(answered) } else { Err(unavailable(&ended().to_string())) }
    }
}

impl<T> Slot<T> {
    /// Makes one, and where what is put there comes out.
    pub(crate) fn new() -> (Arc<Self>, Receiver<Result<T>>) {
        let (sender, answered) = mpsc::sync_channel(1);
        (Arc::new(Self(Mutex::new(Some(sender)))), answered)
    }

    /// Only the first answer counts; one that is late goes nowhere.
    pub(crate) fn put(&self, answer: Result<T>) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let _nobody_waits = sender.send(answer);
        }
    }
}

/// Waits for what JavaScript answers, while its environment lives.
pub(crate) fn wait<T>(answered: &Receiver<Result<T>>, leases: &Leases) -> Result<T> {
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

/// Takes the rows that the server answered, and what `WAIT` said.
fn answer<'call>(
    slot: &Slot<Response>,
    js: Js<'call>,
    [rows, replicas]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    let replicas = replicas.read_text(|text| text.parse().ok()).flatten();
    let response = arguments::rows(rows).map(|rows| match replicas {
        Some(replicas) => Response::Confirmed { rows, replicas },
        None => Response::Rows(rows),
    });
    slot.put(response.map_err(|error| unavailable(&error.to_string())));
    js.undefined()
}

/// Takes the error that the server reported.
fn refuse<'call>(
    slot: &Slot<Response>,
    js: Js<'call>,
    [code, message]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    let [code, message] = [code, message].map(|value| value.read_text(str::to_owned));
    let (code, message) = (code.unwrap_or_default(), message.unwrap_or_default());
    slot.put(Ok(Response::Refused { code, message }));
    js.undefined()
}

/// Takes why there is no answer.
fn fail<'call>(
    slot: &Slot<Response>,
    js: Js<'call>,
    [why]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    let why = why.read_text(str::to_owned).unwrap_or_default();
    slot.put(Err(unavailable(&why)));
    js.undefined()
}

fn unavailable(why: &str) -> Error {
    Error::new(ErrorKind::StoreUnavailable, format!("cannot use the store: {why}"))
}
