//! The command `randflake`, on the clients of JavaScript.

use std::{ffi::OsString, sync::Arc};

use randflake::{Error, ErrorKind, Result};
use randflake_leases::{
    Namespace,
    remote::{Client, RemoteStore},
};

use crate::{
    arguments::{self, Server},
    client::{self, Slot},
    leased::{Leases, ended},
    raw::{Callback, Js, Value},
};

/// Promises the exit code of the command with these arguments. It runs on a thread of its own:
/// the JavaScript thread is needed for what `open` opens.
pub(crate) fn run<'call>(
    leases: &Arc<Leases>,
    js: Js<'call>,
    [arguments, open]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    let too_many = |_| Error::invalid_argument("the arguments must be an array of strings");
    let listed = arguments.elements(usize::MAX, too_many)?.ok_or_else(|| too_many(0))?;
    let text = |value: Value<'_>| value.read_text(|text| text.into()).ok_or_else(|| too_many(0));
    let arguments: Vec<OsString> = listed.into_iter().map(text).collect::<Result<_>>()?;
    let (open, leases) = (open.callback()?, Arc::clone(leases));
    let open_server = move |url: &str, namespace| open_server(&open, url, namespace, &leases);
    js.promise(
        move || Ok(randflake_cli::run(arguments, open_server)),
        |js, code| js.number(code.into()),
    )
}

fn open_server(
    open: &Callback,
    url: &str,
    namespace: Namespace,
    leases: &Arc<Leases>,
) -> Result<RemoteStore<Box<dyn Client>>> {
    let (slot, answered) = Slot::new();
    let asked_url = url.to_owned();
    let asked = open.call(move |js| {
        js.object(&[
            (c"url", js.text(&asked_url)?),
            (c"opened", js.function(c"opened", Arc::clone(&slot), opened)?),
            (c"failed", js.function(c"failed", slot, failed)?),
        ])
    });
    if !asked {
        return Err(ended());
    }
    match client::wait(&answered, leases)? {
        Some(server) => client::store(&server, namespace, leases),
        None => RemoteStore::open(url, namespace), // says what a URL is
    }
}

/// Takes a server as `stores.js` describes it; undefined if the URL is of none.
fn opened<'call>(
    slot: &Slot<Option<Server>>,
    js: Js<'call>,
    [server]: [Value<'call>; 1],
) -> Result<Value<'call>> {
    let known = !server.is_undefined();
    slot.put(known.then(|| arguments::server(server)).transpose());
    js.undefined()
}

/// Takes the error of a URL.
fn failed<'call>(
    slot: &Slot<Option<Server>>,
    js: Js<'call>,
    [code, message]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    let [code, message] = [code, message].map(|value| value.read_text(str::to_owned));
    let kind = ErrorKind::ALL.iter().find(|kind| Some(kind.code()) == code.as_deref());
    let kind = kind.copied().unwrap_or(ErrorKind::Internal);
    slot.put(Err(Error::new(kind, message.unwrap_or_default())));
    js.undefined()
}
