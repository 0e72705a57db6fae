//! The options of generators, by name. Options that are not given keep the defaults of the core.

use std::{fmt::Display, time::Duration};

use pyo3::{exceptions::PyTypeError, prelude::*, types::PyDict};
use randflake::{Builder, Error, ErrorKind, Format, bindings};
use randflake_leases::{LeasedBuilder, LeasedFormat, Location};
use randflake_tickets::TicketsBuilder;

use crate::{
    arguments::{BlockSize, MaxSkew, NodeCount, Step, Ttl},
    changes,
    clock::Clock,
    convert::{argument, boolean, integer, must, number, text},
    errors::{raise, wrong_type},
    lease::GivenLease,
};

/// The keyword arguments of a call.
pub(crate) type Options<'py> = Bound<'py, PyDict>;

/// Describes a generator with manually assigned node ids.
pub(crate) fn manual<F: Format>(
    py: Python<'_>,
    config: F::Config,
    node_ids: Vec<u32>,
    options: Option<Options<'_>>,
) -> PyResult<Builder<F, Clock>> {
    let options = options.unwrap_or_else(|| PyDict::new(py));
    let clock = take(&options, "clock", None)?.extract::<Clock>()?;
    let mut builder = Builder::new(config).node_ids(node_ids).clock(clock);
    for (name, value) in options {
        builder = match &*name.extract::<String>()? {
            "lease" if value.is_none() => builder,
            "lease" => builder.lease(value.extract::<GivenLease>()?.0),
            "max_wait" => builder.max_wait(max_wait(&value)?),
            "max_drift" => builder.max_drift(max_drift(&value)?),
            name @ "restart_safe" => builder.restart_safe(boolean(&value, name)?),
            name => return Err(unexpected(name)),
        };
    }
    Ok(builder)
}

/// Describes a leased generator.
pub(crate) fn leased<F: LeasedFormat>(
    location: Location,
    config: F::Config,
    options: Options<'_>,
) -> PyResult<LeasedBuilder<F>> {
    let on_lease_change = take(&options, "on_lease_change", None)?.extract::<OnLeaseChange>()?;
    let mut builder = LeasedBuilder::new(location, config)
        .on_lease_change(changes::sender(options.py(), on_lease_change.0)?);
    for (name, value) in options {
        builder = match &*name.extract::<String>()? {
            "node_count" => builder.node_count(value.extract::<NodeCount>()?.0),
            "ttl" | "namespace" | "create" if value.is_none() => builder,
            "ttl" => builder.ttl(value.extract::<Ttl>()?.0),
            name @ "namespace" => builder.namespace(text(&value, name)?),
            "acquire_timeout" => builder.acquire_timeout(acquire_timeout(&value)?),
            "max_wait" => builder.max_wait(max_wait(&value)?),
            // Here the default is not a number: at most a third of the ttl.
            "max_drift" if value.is_none() && F::MAX_DRIFT > 0 => builder,
            "max_drift" => builder.max_drift(max_drift(&value)?),
            "max_skew" => builder.max_skew(value.extract::<MaxSkew>()?.0),
            name @ "create" => builder.create(boolean(&value, name)?),
            name => return Err(unexpected(name)),
        };
    }
    Ok(builder)
}

/// Describes sequential numbers.
pub(crate) fn tickets(
    mut builder: TicketsBuilder,
    options: Options<'_>,
) -> PyResult<TicketsBuilder> {
    for (name, value) in options {
        builder = match &*name.extract::<String>()? {
            name @ "namespace" => builder.namespace(text(&value, name)?),
            "start" | "step" if value.is_none() => builder,
            "start" => builder.start(value.extract::<Step>()?.0),
            "step" => builder.step(value.extract::<Step>()?.0),
            "reserve_seconds" => builder.reserve(reserve(&value)?),
            "min_block" => builder.min_block(value.extract::<BlockSize>()?.0),
            "max_block" => builder.max_block(value.extract::<BlockSize>()?.0),
            "acquire_timeout" => builder.acquire_timeout(acquire_timeout(&value)?),
            "max_wait" => builder.max_wait(max_wait(&value)?),
            name => return Err(unexpected(name)),
        };
    }
    Ok(builder)
}

argument!(
    /// A function of the program, if it is given.
    OnLeaseChange(Option<Py<PyAny>>),
    |object| match object {
        object if object.is_none() => Ok(None),
        object if object.is_callable() => Ok(Some(object.to_owned().unbind())),
        _ => Err(wrong_type(&Error::invalid_argument(
            "on_lease_change must be a callable, which takes a LeaseStatus, or None",
        ))),
    }
);

/// Removes and returns an option.
pub(crate) fn take<'py>(
    options: &Bound<'py, PyDict>,
    name: &str,
    default: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    options.call_method1("pop", (name, default))
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
    let rule = "acquire_timeout must be a number of seconds, 0 to 86400";
    seconds(value, &must(ErrorKind::InvalidArgument, rule))
}

fn reserve(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let rule = "reserve_seconds must be a number of seconds, 0 to 86400";
    seconds(value, &must(ErrorKind::InvalidArgument, rule))
}

fn seconds(value: &Bound<'_, PyAny>, error: &dyn Fn(&dyn Display) -> Error) -> PyResult<Duration> {
    let seconds = number(value, error)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| raise(error(&seconds)))
}
