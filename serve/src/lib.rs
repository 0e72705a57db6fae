//! Serves [randflake](https://docs.rs/randflake) ids, leases of node ids and sequential numbers over
//! HTTP, as `randflake serve` does. The routes are described by [`openapi`], and in the
//! [guide](https://github.com/randflake/randflake/blob/main/docs/guides/serve.md).
//!
//! Holds no rule about ids or leases: it reads requests, calls those crates, and writes answers.

mod access;
mod answer;
mod connections;
mod counts;
mod flake;
mod hiding;
mod ids;
mod leases;
mod limits;
mod lists;
mod log;
mod metrics;
mod openapi;
mod places;
mod request;
mod room;
mod route;
mod routes;
mod service;
mod tickets;

use std::{fmt::Display, net::SocketAddr, time::Duration};

use randflake::{Error, Layout, Result, Secret};
use randflake_leases::{Leased, LeasedBuilder, LeasedFormat, Location, Namespace};

pub use crate::{
    access::Access,
    openapi::{About, openapi},
};
use crate::{
    flake::Flake,
    hiding::Hiding,
    limits::Limits,
    log::Teller,
    service::{Offers, Service},
};

/// What to serve, from which store, and to whom.
#[derive(Debug)]
pub struct Settings {
    /// The store of leases and of counters.
    pub location: Location,
    /// The secret of the ids, unless there is a layout, and of cloaks and codes.
    pub secret: Option<Secret>,
    /// The layout of sortable ids.
    pub layout: Option<Layout>,
    /// Who may ask.
    pub access: Access,
    /// Address and port.
    pub listen: SocketAddr,
    /// The namespace of the node ids.
    pub namespace: String,
    /// The namespace of the counters of sequential numbers.
    pub tickets_namespace: String,
    /// Most ids of one request, from 1.
    pub max_count: u32,
    /// How long a request waits where there is no id, or no answer of the store, now.
    pub max_wait: Duration,
    /// How many node ids the server leases for itself, from 1.
    pub node_count: u32,
    /// Length of its own lease, in seconds.
    pub ttl: u32,
    /// Where its messages go.
    pub log: Log,
}

/// Where the messages of a server go. A thread of their own calls these functions, which may wait.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// Takes a message.
    pub notify: fn(&dyn Display),
    /// Takes an error that the server can recover from.
    pub report: fn(&Error),
}

/// Serves until `SIGTERM`, `SIGINT`, `SIGHUP` or Ctrl-C. Then it answers the requests that it has
/// received, and gives its node ids back.
///
/// # Errors
///
/// `INVALID_ARGUMENT`: a setting is out of range, or the address cannot be listened on. The store's
/// error if no first lease is granted and waiting does not help.
///
/// ```no_run
/// use std::time::Duration;
///
/// use randflake::Secret;
/// use randflake_serve::{Access, Log, Settings, serve};
///
/// serve(Settings {
///     location: "/var/lib/shop/ids.db".into(),
///     secret: Some(std::env::var("RANDFLAKE_SECRET")?.parse()?),
///     layout: None, // or that of Snowflakes
///     access: Access::local(),
///     listen: "127.0.0.1:8080".parse()?,
///     namespace: "default".to_owned(),
///     tickets_namespace: "tickets".to_owned(),
///     max_count: 10_000,
///     max_wait: Duration::from_secs(1),
///     node_count: 1,
///     ttl: 300,
///     log: Log {
///         notify: |message| eprintln!("{message}"),
///         report: |error| eprintln!("{}: {error}", error.code()),
///     },
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn serve(settings: Settings) -> Result<()> {
    let (location, namespace, ttl) = (settings.location.clone(), &settings.namespace, settings.ttl);
    let (layout, secret) = (settings.layout, settings.secret.clone());
    let teller = Teller::start(settings.log);
    let (flake, of_clients) = match (&layout, &secret) {
        (Some(layout), _) => {
            let builder = Leased::for_layout(location.clone(), *layout);
            let flake = lease(builder, &settings, &teller)?;
            (Flake::Layout(flake), Namespace::for_layout(namespace, *layout)?)
        }
        (None, Some(secret)) => {
            let flake = lease(Leased::builder(location.clone(), secret), &settings, &teller)?;
            (Flake::Secret(flake), Namespace::new(namespace, secret)?)
        }
        (None, None) => {
            return Err(Error::invalid_argument(
                "ids need a secret or a layout, and neither is set",
            ));
        }
    };
    let of_clients = of_clients.max_ttl_and_skew(ttl.max(Namespace::MAX_TTL), max_skew(ttl))?;
    let tickets = tickets::Counters::new(location.clone(), &settings.tickets_namespace);
    let layout = layout.unwrap_or(Layout::randflake());
    let store = leases::Leases::new(location, of_clients, layout);
    let limits = Limits::new(settings.max_count, settings.max_wait, ttl);
    let hiding = Hiding::new(secret);
    let offers = Offers { flake, hiding, leases: store, tickets };
    let service =
        Service::new(offers, settings.access, limits, &settings.namespace, teller.clone());
    let served = connections::serve(settings.listen, &service, &teller);
    teller.end();
    served
}

/// Makes the generator of the server, which has no lease yet.
fn lease<F: LeasedFormat>(
    builder: LeasedBuilder<F>,
    settings: &Settings,
    teller: &Teller,
) -> Result<Leased<F>> {
    let told = teller.clone();
    builder
        .namespace(&settings.namespace)
        .node_count(settings.node_count)
        .ttl(settings.ttl)
        .max_skew(max_skew(settings.ttl))
        .max_wait(Duration::ZERO) // requests wait without a thread
        .on_lease_change(move |status| told.tell(&status.message()))
        .open_lazily()
}

/// A sixth of the shortest lease is the most that a namespace allows.
fn max_skew(ttl: u32) -> u32 {
    5.min(ttl / 6)
}
