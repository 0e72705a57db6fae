//! `randflake serve`.

#[cfg(feature = "serve")]
mod access;
#[cfg(feature = "serve")]
mod answer;
#[cfg(feature = "serve")]
mod connections;
#[cfg(feature = "serve")]
mod counts;
#[cfg(feature = "serve")]
mod ids;
#[cfg(feature = "serve")]
mod leases;
#[cfg(feature = "serve")]
mod limits;
#[cfg(feature = "serve")]
mod metrics;
#[cfg(feature = "serve")]
mod places;
#[cfg(feature = "serve")]
mod request;
#[cfg(feature = "serve")]
mod room;
#[cfg(feature = "serve")]
mod routes;
#[cfg(feature = "serve")]
mod service;
#[cfg(feature = "serve")]
mod tickets;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use crate::{Failure, OpenServer, secret::SecretArguments, store::StoreArguments};

/// Serves ids, leases of node ids, and tickets over HTTP
#[derive(clap::Args)]
#[command(after_help = "\
Only the command that cargo installs can serve: pip's and npm's packages do
without. GET /openapi.json describes the routes. It leases node ids as generate
does. It ends by SIGTERM, SIGHUP or Ctrl-C: it answers what it was asked before,
gives its node ids back, and exits with 0. Several of them can serve from one store.

Examples:
  randflake serve --store ids.db
  randflake serve --store ids.db --listen 0.0.0.0:8080 --token-file token
  curl -X POST 'http://127.0.0.1:8080/v1/ids?count=3'")]
#[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "only the help is shown"))]
pub(crate) struct Serve {
    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    secret: SecretArguments,

    /// Address and port; an address that other machines reach needs a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// File with the token that clients send: Authorization: Bearer TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Most ids of one request
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    max_count: u32,

    /// How long a request waits where there is no id or no answer of the store now
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(0..=60)
    )]
    max_wait: u32,

    /// Node ids of its own; each makes 131072 ids a second
    #[arg(long, value_name = "N", default_value_t = 1)]
    node_count: u32,

    /// Length of its own lease
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    ttl: u32,

    /// Namespace of the counters of tickets, which `randflake tickets init` creates
    #[arg(long, value_name = "NAME", default_value = "tickets")]
    tickets_namespace: String,
}

impl Serve {
    #[cfg(not(feature = "serve"))]
    #[allow(clippy::unused_self, reason = "as with the feature")]
    pub(crate) fn run(&self, _open_server: Arc<OpenServer>) -> Result<(), Failure> {
        Err(crate::usage(
            clap::error::ErrorKind::InvalidSubcommand,
            "only the command that cargo installs can serve: `cargo install --path cli` in a clone \
             of the repository",
        ))
    }

    #[cfg(feature = "serve")]
    pub(crate) fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        use std::time::Duration;

        use clap::error::ErrorKind as Wrong;
        use randflake_leases::{Leased, Namespace};

        use self::{access::Access, service::Service};
        use crate::{output, store, usage};

        let location = self.store.location(open_server).ok_or_else(store::missing)?;
        let access = match &self.token_file {
            Some(path) => Access::with_token(path)?,
            None if self.listen.ip().is_loopback() => Access::local(),
            None => {
                return Err(usage(
                    Wrong::MissingRequiredArgument,
                    "without a token only programs of this machine may ask: pass --token-file, or \
                     listen on\n127.0.0.1",
                ));
            }
        };
        let secret = self.secret.read()?;
        // A sixth of the shortest lease is the most that a namespace allows.
        let max_skew = 5.min(self.ttl / 6);
        let teller = output::Teller::start();
        let told = teller.clone();
        let flake = Leased::builder(location.clone(), &secret)
            .namespace(&self.store.namespace)
            .node_count(self.node_count)
            .ttl(self.ttl)
            .max_skew(max_skew)
            .max_wait(Duration::ZERO) // requests wait without a thread
            .on_lease_change(move |status| told.tell(&status.message()))
            .open_lazily()?;
        let namespace = Namespace::new(&self.store.namespace, &secret)?
            .max_ttl_and_skew(self.ttl.max(Namespace::MAX_TTL), max_skew)?;
        let tickets = tickets::Counters::new(location.clone(), &self.tickets_namespace);
        let store = leases::Leases::new(location, namespace);
        let max_wait = Duration::from_secs(self.max_wait.into());
        let limits = limits::Limits::new(self.max_count, max_wait, self.ttl);
        let service = Service::new(flake, store, tickets, access, limits, &self.store.namespace);
        let served = connections::serve(self.listen, &service, &teller);
        teller.end();
        served
    }
}
