//! `randflake serve`.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use crate::{
    Failure, OpenServer, layout::LayoutArguments, secret::SecretArguments, store::StoreArguments,
};

/// Serves ids, leases of node ids, and tickets over HTTP
#[derive(clap::Args)]
#[command(after_help = "\
Only the command that cargo installs can serve: those of pip and npm cannot.
GET /openapi.json describes the routes. It leases node ids as generate does.
With a layout it makes sortable ids of it; a secret is then only for cloaks. On
SIGTERM, SIGHUP or Ctrl-C it answers the requests that it already has, gives its
node ids back, and exits with 0. Several servers can use one store.

Examples:
  randflake serve --store ids.db
  randflake serve --store ids.db --listen 0.0.0.0:8080 --token-file token
  randflake serve --store posts.db --layout twitter,epoch_ms=1577836800000
  curl -X POST 'http://127.0.0.1:8080/v1/ids?count=3'")]
#[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "only the help is shown"))]
pub(crate) struct Serve {
    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    layout: LayoutArguments,

    #[command(flatten)]
    secret: SecretArguments,

    /// Address and port; an address that other machines can reach needs a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// File with the token that clients send: Authorization: Bearer TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Maximum ids per request
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    max_count: u32,

    /// How long a request waits for an id or an answer from the store
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(0..=60)
    )]
    max_wait: u32,

    /// Number of its node ids; each makes 131072 ids a second
    #[arg(long, value_name = "N", default_value_t = 1)]
    node_count: u32,

    /// Length of its own lease
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    ttl: u32,

    /// Prints the OpenAPI description of the routes with these options, and ends
    #[arg(long)]
    openapi: bool,

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

        use randflake_leases::environment::Environment;
        use randflake_serve::{About, Log, Settings, openapi};

        use crate::{output, store};

        let layout = self.layout.read_beside_a_secret()?;
        // With a layout it is only for cloaks.
        let has_secret = self.secret.is_given() || Environment::default().has_secret();
        if self.openapi {
            let (max_count, has_secret) = (self.max_count, has_secret || layout.is_none());
            let described = openapi(About { max_count, layout, has_secret });
            return output::print(&described.trim_end());
        }
        let location = self.store.location(open_server).ok_or_else(store::missing)?;
        let secret = match &layout {
            Some(_) if !has_secret => None,
            _ => Some(self.secret.read()?),
        };
        let access = self.access()?;
        let settings = Settings {
            location,
            secret,
            layout,
            access,
            listen: self.listen,
            namespace: self.store.namespace.clone(),
            tickets_namespace: self.tickets_namespace.clone(),
            max_count: self.max_count,
            max_wait: Duration::from_secs(self.max_wait.into()),
            node_count: self.node_count,
            ttl: self.ttl,
            log: Log {
                notify: output::notify,
                report: |error| output::report(error.code(), error),
            },
        };
        Ok(randflake_serve::serve(settings)?)
    }

    /// Returns who may ask: with a token, or else programs on this machine alone.
    #[cfg(feature = "serve")]
    fn access(&self) -> Result<randflake_serve::Access, Failure> {
        use clap::error::ErrorKind as Wrong;
        use randflake_serve::Access;

        use crate::{secret, usage};

        match &self.token_file {
            Some(path) => {
                let access = Access::with_token(path)?;
                secret::warn_if_others_may_read(path, "token");
                Ok(access)
            }
            None if self.listen.ip().is_loopback() => Ok(Access::local()),
            None => Err(usage(
                Wrong::MissingRequiredArgument,
                "without a token, only programs on this machine may send requests: pass \
                 --token-file, or listen on\n127.0.0.1",
            )),
        }
    }
}
