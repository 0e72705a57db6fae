use std::{env, sync::Arc};

use randflake_leases::Location;

use crate::OpenServer;

const VARIABLE: &str = "RANDFLAKE_STORE";

/// Which store.
#[derive(clap::Args)]
pub(crate) struct StorePlace {
    /// Path of a SQLite file, or URL of PostgreSQL, Redis or etcd; a URL with a
    /// password belongs into RANDFLAKE_STORE [default: that variable]
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// Which leases in the store: those of one id column and its secret
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) namespace: String,
}

impl StorePlace {
    /// Returns the path or the URL; none if none was given.
    pub(crate) fn name(&self) -> Option<String> {
        self.store.clone().or_else(|| env::var(VARIABLE).ok()).filter(|store| !store.is_empty())
    }
}

/// Returns where leases come from.
pub(crate) fn location(store: String, open_server: Arc<OpenServer>) -> Location {
    if !is_url(&store) {
        return store.into();
    }
    Location::new(move |namespace| Ok(Box::new(open_server(&store, namespace)?)))
}

fn is_url(store: &str) -> bool {
    store.contains("://")
}
