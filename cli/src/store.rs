//! The options that name a store.

use std::{env, sync::Arc};

use clap::error::ErrorKind as Wrong;
use randflake::{Result, Secret};
use randflake_leases::{
    InitMode, LeaseStore, Location, Namespace,
    environment::{Environment, STORE},
    operator,
    remote::Address,
};

use crate::{Failure, OpenServer, output::print, usage};

/// Which store.
#[derive(clap::Args)]
pub(crate) struct StoreArguments {
    /// Path of a SQLite file, or URL of PostgreSQL, MySQL, Redis or etcd; put a URL with a
    /// password into RANDFLAKE_STORE [default: that variable]
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// Namespace in the store, of one id column and its secret [default: the variable
    /// RANDFLAKE_NAMESPACE, or "default"]
    #[arg(
        long,
        value_name = "NAME",
        default_value_t = default_namespace(),
        hide_default_value = true
    )]
    pub(crate) namespace: String,

    /// Allows a server that may lose acknowledged writes
    #[arg(long)]
    allow_weak_store: bool,
}

/// How a namespace is created.
#[derive(clap::Args)]
pub(crate) struct ModeArguments {
    /// Grant at once: for a store that has never had this namespace
    #[arg(long)]
    new: bool,

    /// If it is missing, grant nothing for --max-ttl plus --max-skew: for a store
    /// that may have had this namespace and lost it, or if you cannot tell
    #[arg(long, conflicts_with = "new")]
    quarantine: bool,
}

impl ModeArguments {
    /// Returns the mode. There is no default: the user knows which one is safe.
    pub(crate) fn read(&self) -> Result<InitMode, Failure> {
        match (self.new, self.quarantine) {
            (true, _) => Ok(InitMode::New),
            (_, true) => Ok(InitMode::Quarantine),
            _ => Err(usage(
                Wrong::MissingRequiredArgument,
                "pass --new if this store has never had the namespace, or --quarantine if it may \
                 have lost it, or if you cannot tell",
            )),
        }
    }
}

impl StoreArguments {
    /// Returns the location of the store, if one was given.
    pub(crate) fn location(&self, open_server: Arc<OpenServer>) -> Option<Location> {
        let store = self.name()?;
        if !is_url(&store) {
            return Some(store.into());
        }
        let allow_weak = self.allow_weak_store;
        Some(Location::server(move |namespace| {
            Ok(open_server(&store, namespace)?.allow_weak_store(allow_weak))
        }))
    }

    /// Opens the store for an operator.
    pub(crate) fn open(
        &self,
        open_server: Arc<OpenServer>,
    ) -> Result<Box<dyn LeaseStore>, Failure> {
        let namespace = Namespace::for_operator(&self.namespace)?;
        let location = self.location(open_server).ok_or_else(missing)?;
        Ok(location.open(&namespace)?)
    }

    /// Opens the store as a holder of the secret, and creates nothing.
    pub(crate) fn open_with_secret(
        &self,
        secret: &Secret,
        open_server: Arc<OpenServer>,
    ) -> Result<Box<dyn LeaseStore>, Failure> {
        let namespace = Namespace::new(&self.namespace, secret)?;
        let location = self.location(open_server).ok_or_else(missing)?;
        Ok(location.create(false).open(&namespace)?)
    }

    /// Opens the store for its counters, and creates nothing.
    pub(crate) fn open_tickets(
        &self,
        open_server: Arc<OpenServer>,
    ) -> Result<Box<dyn LeaseStore>, Failure> {
        let namespace = Namespace::for_tickets(&self.namespace)?;
        let location = self.location(open_server).ok_or_else(missing)?;
        Ok(location.create(false).open(&namespace)?)
    }

    /// Creates a namespace, and prints whether it already existed.
    pub(crate) fn init(
        &self,
        namespace: &Namespace,
        mode: InitMode,
        open_server: Arc<OpenServer>,
    ) -> Result<(), Failure> {
        let location = self.location(open_server).ok_or_else(missing)?;
        let seen = location.open(&Namespace::for_operator(&self.namespace)?);
        let was_there = seen.is_ok_and(|mut store| operator::inspect(&mut *store, 0).is_ok());
        location.init(namespace, mode)?;
        // A file's path was given.
        let address = self.name().and_then(|name| Address::read(&name)?.ok());
        let place = address.as_ref().map(|address| format!(" in {address}")).unwrap_or_default();
        let name = &self.namespace;
        if was_there {
            return print(&format_args!("namespace {name:?}{place} exists, unchanged"));
        }
        let grants = address.map(|address| address.grants()).unwrap_or_default();
        let mut needs = String::new();
        if !grants.is_empty() {
            needs = format!(
                "\nthe role of your program, such as app, needs only\n  {}",
                grants.join("\n  ")
            );
        }
        print(&format_args!("namespace {name:?}{place} is ready{needs}"))
    }

    /// Returns the argument.
    pub(crate) fn given(&self) -> Option<&str> {
        self.store.as_deref()
    }

    /// Returns the argument or the variable.
    pub(crate) fn name(&self) -> Option<String> {
        self.store.clone().or_else(|| env::var(STORE).ok()).filter(|store| !store.is_empty())
    }
}

/// An unusable name is refused later, as an empty one.
fn default_namespace() -> String {
    let name = Environment::default().namespace().unwrap_or_else(|_| Some(String::new()));
    name.unwrap_or_else(|| "default".to_owned())
}

pub(crate) fn is_url(store: &str) -> bool {
    store.contains("://")
}

pub(crate) fn missing() -> Failure {
    usage(
        Wrong::MissingRequiredArgument,
        "a store is required: pass --store, or put its URL into the variable RANDFLAKE_STORE",
    )
}
