//! The options of generators, by name. What is not given keeps the default of the core.

use std::{fmt::Display, time::Duration};

use pyo3::{exceptions::PyTypeError, prelude::*, types::PyDict};
use randflake::{Builder, Error, ErrorKind, Format, bindings};
use randflake_leases::{LeasedBuilder, LeasedFormat};

use crate::{
    arguments::{MAX_SKEW, NODE_COUNT, Store, TTL},
    client::StoreOptions,
    clock::Clock,
    convert::{boolean, integer, must, number, text, whole_number},
    errors::raise,
    lease::optional_lease,
};

/// The keyword arguments of a call.
pub(crate) type Options<'py> = Bound<'py, PyDict>;

/// Describes a generator with manually assigned node ids.
pub(crate) fn manual<F: Format>(
    config: F::Config,
    node_ids: Vec<u32>,
    options: Option<Options<'_>>,
) -> PyResult<Builder<F, Clock>> {
    let clock =
        take(options.as_ref(), "clock", |clock, _| clock.extract())?.unwrap_or(Clock::System);
    let mut builder = Builder::new(config).node_ids(node_ids).clock(clock);
    for (name, value) in options.into_iter().flatten() {
        builder = match &*name.extract::<String>()? {
            "lease" => match optional_lease(&value)? {
                Some(lease) => builder.lease(lease),
                None => builder,
            },
            "max_wait" => builder.max_wait(max_wait(&value)?),
            "max_drift" => builder.max_drift(max_drift(&value)?),
            name @ "restart_safe" => builder.restart_safe(boolean(&value, name)?),
            name => return Err(unexpected(name)),
        };
    }
    Ok(builder)
}

/// Describes a leased generator. Returns whether its store is asked by a client in Python, too.
pub(crate) fn leased<F: LeasedFormat>(
    store: Store,
    config: F::Config,
    options: Option<Options<'_>>,
) -> PyResult<(LeasedBuilder<F, Clock>, bool)> {
    let create = take(options.as_ref(), "create", |value, name| {
        if value.is_none() { Ok(None) } else { boolean(value, name).map(Some) }
    })?
    .flatten();
    let allow_weak_store = take(options.as_ref(), "allow_weak_store", boolean)?.unwrap_or(false);
    let of_store = StoreOptions { create, allow_weak_store };
    let (location, needs_python) = match store {
        Store::Local(location) => (location, false),
        Store::Server(source) => (source.location(of_store), true),
    };
    let mut builder = LeasedBuilder::new(location, config).clock(Clock::System);
    if let (Some(create), false) = (create, needs_python) {
        builder = builder.create(create);
    }
    for (name, value) in options.into_iter().flatten() {
        builder = match &*name.extract::<String>()? {
            name @ "node_count" => builder.node_count(whole_number(&value, name, NODE_COUNT)?),
            "ttl" if value.is_none() => builder,
            name @ "ttl" => builder.ttl(whole_number(&value, name, TTL)?),
            name @ "namespace" => builder.namespace(text(&value, name)?),
            "acquire_timeout" => builder.acquire_timeout(acquire_timeout(&value)?),
            "max_wait" => builder.max_wait(max_wait(&value)?),
            // Where the default is no number: at most a third of the ttl.
            "max_drift" if value.is_none() && F::MAX_DRIFT > 0 => builder,
            "max_drift" => builder.max_drift(max_drift(&value)?),
            name @ "max_skew" => builder.max_skew(whole_number(&value, name, MAX_SKEW)?),
            name => return Err(unexpected(name)),
        };
    }
    Ok((builder, needs_python))
}

/// Takes an option out, if it is given.
fn take<'py, T>(
    options: Option<&Options<'py>>,
    name: &str,
    read: impl FnOnce(&Bound<'py, PyAny>, &str) -> PyResult<T>,
) -> PyResult<Option<T>> {
    let Some(options) = options else { return Ok(None) };
    let Some(value) = options.get_item(name)? else { return Ok(None) };
    options.del_item(name)?;
    read(&value, name).map(Some)
}

fn unexpected(name: &str) -> PyErr {
    PyTypeError::new_err(format!("got an unexpected keyword argument '{name}'"))
}

fn max_wait(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    seconds(value, &|got| bindings::invalid_max_wait(got))
}

fn max_drift(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    integer(value, |got| bindings::invalid_max_drift(got))
}

fn acquire_timeout(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let rule = "acquire_timeout must be a number of seconds, at least 0";
    seconds(value, &must(ErrorKind::InvalidArgument, rule))
}

fn seconds(value: &Bound<'_, PyAny>, error: &dyn Fn(&dyn Display) -> Error) -> PyResult<Duration> {
    let seconds = number(value, error)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| raise(error(&seconds)))
}
