//! A web service whose node id is free once it has ended, by SIGTERM or Ctrl-C.

use std::{env, error::Error, sync::Arc, time::Duration};

use axum::{Router, http::StatusCode, routing::get};
use randflake::Secret;
use randflake_leases::Leased;
use tokio::{net::TcpListener, signal, task::spawn_blocking};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = env::var("RANDFLAKE_STORE")?;
    let secret: Secret = env::var("RANDFLAKE_SECRET")?.parse()?;
    let builder = Leased::builder(&*store, &secret).create(false).max_wait(Duration::ZERO);
    let flake = Arc::new(spawn_blocking(|| builder.open()).await??);

    let source = Arc::clone(&flake);
    let new_id = async move || match source.generate() {
        Ok(id) => Ok(id.to_string()),
        Err(error) => Err((StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
    };
    let listener = TcpListener::bind(("127.0.0.1", env::var("PORT")?.parse()?)).await?;
    axum::serve(listener, Router::new().route("/", get(new_id)))
        .with_graceful_shutdown(asked_to_end())
        .await?;

    spawn_blocking(move || flake.close()).await?;
    Ok(())
}

async fn asked_to_end() {
    #[cfg(unix)]
    {
        use signal::unix::{SignalKind, signal};

        let mut terminated = signal(SignalKind::terminate()).expect("a handler can be installed");
        tokio::select! {
            _ = terminated.recv() => {}
            _ = signal::ctrl_c() => {}
        }
    }
    #[cfg(not(unix))]
    signal::ctrl_c().await.expect("a handler can be installed");
}
