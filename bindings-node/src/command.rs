//! The command `randflake`, on the clients of JavaScript.

use std::{ffi::OsString, sync::Arc};

use napi_derive::napi;
use randflake::{Error, ErrorKind, Result};
use randflake_leases::{
    Namespace,
    remote::{Client, RemoteStore},
};

use crate::{
    closing::Closing,
    environment::Environment,
    ffi::{Callback, Outcome, Value, outcome},
    stores::{Server, ask},
    threads,
};

/// Promises the exit code of the command with these arguments. It runs on a thread of its own:
/// the JavaScript thread is needed for the stores that `open` opens.
#[napi]
pub fn run_command(arguments: Vec<String>, open: Value<'_>) -> Outcome<Value<'_>> {
    outcome(|| {
        let js = open.js();
        let closing = Arc::clone(&js.state::<Environment>()?.closing);
        let open = Callback::new(open)?;
        let open_server = move |url: &str, namespace| open_server(&open, url, namespace, &closing);
        let arguments: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
        let work = move || Ok(randflake_cli::run(arguments, open_server));
        js.promise(threads::start, work, |js, code| js.convert(code))
    })
}

fn open_server(
    open: &Callback,
    url: &str,
    namespace: Namespace,
    closing: &Closing,
) -> Result<RemoteStore<Box<dyn Client>>> {
    let asked_url = url.to_owned();
    match ask(open, closing, opened, move |js| js.convert(asked_url))? {
        Some(server) => server.open(namespace),
        None => RemoteStore::open(url, namespace), // its error says what a URL looks like
    }
}

/// Takes a server as `stores.js` describes it, undefined if the URL does not name one, or its
/// error.
fn opened(answer: Value<'_>) -> Result<Option<Server>> {
    if let Some(failed) = answer.get(c"failed")? {
        let (code, message): (String, String) = failed.to().unwrap_or_default();
        let kind = ErrorKind::ALL.iter().find(|kind| kind.code() == code);
        return Err(Error::new(kind.copied().unwrap_or(ErrorKind::Internal), message));
    }
    answer.get(c"server")?.map(Server::new).transpose()
}
