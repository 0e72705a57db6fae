//! The settings of generators in the environment, which JavaScript passes: a worker has its own
//! environment.

use std::ffi::CString;

use napi_derive::napi;
use randflake::Result;
use randflake_leases::environment::Environment;

use crate::ffi::{Outcome, Value, outcome};

fn read<T>(variables: Value<'_>, read: impl FnOnce(Environment<'_>) -> Result<T>) -> Outcome<T> {
    let variable = |name: &str| {
        let name = CString::new(name).ok()?;
        Some(variables.get(&name).ok()??.to::<String>()?.into())
    };
    outcome(|| read(Environment::new(&variable)))
}

#[napi]
pub fn environment_store(variables: Value<'_>) -> Outcome<String> {
    read(variables, |environment| Ok(environment.store()?.to_string_lossy().into_owned()))
}

#[napi]
pub fn environment_secret(variables: Value<'_>) -> Outcome<String> {
    read(variables, |environment| Ok(environment.secret()?.to_hex()))
}

#[napi]
pub fn environment_layout(variables: Value<'_>) -> Outcome<Option<String>> {
    read(variables, |environment| Ok(environment.layout()?.map(|layout| layout.to_string())))
}

#[napi]
pub fn environment_namespace(variables: Value<'_>) -> Outcome<Option<String>> {
    read(variables, |environment| environment.namespace())
}
