//! What the environment says about stores and secrets, for `randflake lease doctor`.

use std::{env, path::Path};

use randflake_leases::{
    Finding,
    environment::{Environment, LAYOUT, NAMESPACE, SECRET, SECRET_FILE, STORE},
};

use crate::store::{StoreArguments, is_url};

const PREFIX: &str = "RANDFLAKE_";
/// The variables that have a meaning.
const KNOWN: [&str; 5] = [STORE, SECRET, SECRET_FILE, NAMESPACE, LAYOUT];

/// Examines the environment, without repeating any of its values.
pub(crate) fn examine(arguments: &StoreArguments) -> Vec<Finding> {
    let mut set: Vec<_> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect();
    set.sort_unstable();
    let names: Vec<_> = set.iter().map(|(name, _)| name.as_str()).collect();
    let text = match names.as_slice() {
        [] => format!("no variable {PREFIX}… is set"),
        names => format!("set: {}", names.join(", ")),
    };
    let mut findings = vec![Finding::fine("environment", text)];
    let mut note = |text| findings.push(Finding::note("environment", text));

    for (name, value) in &set {
        if !KNOWN.contains(&name.as_str()) {
            note(format!(
                "{name} is not a known variable; the known ones are {}",
                KNOWN.join(", ")
            ));
        } else if value.is_empty() {
            note(format!("{name} is empty, which counts as not set"));
        }
    }
    let differs = |name, given: &str| {
        let value = env::var(name).unwrap_or_default();
        !value.is_empty() && value != given
    };
    if arguments.given().is_some_and(|given| differs(STORE, given)) {
        note(format!("--store names another store than {STORE}"));
    }
    if differs(NAMESPACE, &arguments.namespace) {
        note(format!("--namespace names another namespace than {NAMESPACE}"));
    }
    if arguments.name().is_some_and(|name| !is_url(&name) && Path::new(&name).is_relative()) {
        note(
            "the path of the store is relative, so each working directory has its own store; make \
             it absolute"
                .into(),
        );
    }
    let environment = Environment::default();
    if environment.has_secret() {
        match environment.secret() {
            Err(error) => findings.push(Finding::wrong("secret", error.to_string())),
            Ok(secret) => {
                let weakness =
                    secret.weakness().map(|why| Finding::note("secret", why.to_string()));
                findings.extend(weakness);
            }
        }
    }
    if let Err(error) = environment.layout() {
        findings.push(Finding::wrong("layout", error.to_string()));
    }
    findings
}
