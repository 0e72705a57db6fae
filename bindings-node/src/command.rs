//! The command `randflake`, on the clients of JavaScript.

use std::{ffi::OsString, sync::Arc};

use napi_derive::napi;
use randflake::{Error, ErrorKind, Result};
use randflake_leases::{
    Namespace,
    remote::{Client, RemoteStore},
};

use crate::{
    arguments,
    environment::Environment,
    ffi::{Callback, Outcome, Returned, Value, outcome},
    leases::{Leases, ended},
    stores::{Server, Slot, wait_for},
    threads,
};

/// Promises the exit code of the command with these arguments. It runs on a thread of its own:
/// the JavaScript thread is needed for the stores that `open` opens.
#[napi]
pub fn run_command(arguments: Vec<String>, open: Value<'_>) -> Outcome<Returned> {
    outcome(|| {
        let js = open.js();
        let leases = Arc::clone(&js.state::<Environment>()?.leases);
        let open = Callback::new(open)?;
        let open_server = move |url: &str, namespace| open_server(&open, url, namespace, &leases);
        let arguments: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
        let work = move || Ok(randflake_cli::run(arguments, open_server));
        js.promise(threads::start, work, |js, code| js.convert(code))
    })
}

fn open_server(
    open: &Callback,
    url: &str,
    namespace: Namespace,
    leases: &Leases,
) -> Result<RemoteStore<Box<dyn Client>>> {
    let (slot, answered) = Slot::new();
    let asked_url = url.to_owned();
    let asked = open.call(move |js| {
        js.object(&[
            (c"url", js.convert(asked_url)?),
            (c"opened", slot.function(js, opened)?),
            (c"failed", slot.function(js, failed)?),
        ])
    });
    if !asked {
        return Err(ended());
    }
    match wait_for(&answered, leases)? {
        Some(server) => server.open(namespace),
        None => RemoteStore::open(url, namespace), // its error says how a URL looks
    }
}

/// Takes a server as `stores.js` describes it; undefined if the URL is of none.
fn opened(server: Value<'_>, _: Value<'_>) -> Result<Option<Server>> {
    if server.is_undefined() { Ok(None) } else { Server::new(server).map(Some) }
}

/// Takes the error of a URL.
fn failed(code: Value<'_>, message: Value<'_>) -> Result<Option<Server>> {
    let [code, message] = [code, message].map(arguments::text);
    let kind = ErrorKind::ALL.iter().find(|kind| Some(kind.code()) == code.as_deref());
    let kind = kind.copied().unwrap_or(ErrorKind::Internal);
    Err(Error::new(kind, message.unwrap_or_default()))
}
