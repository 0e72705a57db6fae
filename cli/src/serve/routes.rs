//! The routes, which `openapi.json` describes.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    http::{Method, StatusCode, Uri},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};

use super::{
    answer::{Refusal, text, written},
    ids, metrics,
    service::Service,
};

/// The path of ids, which has a shorter way besides.
pub(super) const IDS: &str = "/v1/ids";

/// The description of the routes.
const OPENAPI: &str = include_str!("openapi.json");

type Shared = State<Arc<Service>>;
type Answer = Result<Response, Refusal>;

pub(super) fn routes(service: Arc<Service>) -> Router {
    Router::new()
        .route(
            IDS,
            post(async |State(service): Shared, uri: Uri| ids::generate(&service, &uri).await),
        )
        .route("/v1/inspect/{id}", get(inspect))
        .route("/v1/leases", post(acquire))
        .route("/v1/leases/{lease}/renew", post(renew))
        .route("/v1/leases/{lease}/release", post(release))
        .route("/healthz", get(async || written("{\"status\":\"alive\"}\n")))
        .route("/readyz", get(readiness))
        .route("/metrics", get(numbers))
        .route("/openapi.json", get(async || written(OPENAPI)))
        .fallback(async || {
            Refusal::invalid(
                StatusCode::NOT_FOUND,
                "there is nothing here; GET /openapi.json lists what is",
            )
        })
        .method_not_allowed_fallback(async || {
            Refusal::invalid(
                StatusCode::METHOD_NOT_ALLOWED,
                "this is asked for with another method",
            )
        })
        .with_state(service)
}

/// Answers ids that are there, on the shortest way; `None` for everything else.
pub(super) fn at_once(service: &Service, method: &Method, uri: &Uri) -> Option<Response> {
    if method != Method::POST || uri.path() != IDS {
        return None;
    }
    ids::at_once(service, uri).map(|answer| answer.unwrap_or_else(Refusal::into_response))
}

async fn inspect(State(service): Shared, Path(id): Path<String>, uri: Uri) -> Answer {
    ids::inspect(&service, &id, &uri)
}

async fn acquire(State(service): Shared, body: Body) -> Answer {
    service.leases.acquire(body, &service.limits).await
}

async fn renew(State(service): Shared, Path(lease): Path<String>, body: Body) -> Answer {
    service.leases.renew(&lease, body, &service.limits).await
}

async fn release(State(service): Shared, Path(lease): Path<String>, body: Body) -> Answer {
    service.leases.release(&lease, body, &service.limits).await
}

async fn readiness(State(service): Shared) -> Answer {
    match service.check_ready() {
        Ok(()) => Ok(written("{\"status\":\"ready\"}\n")),
        Err(error) => Err(Refusal::from(error).with_status(StatusCode::SERVICE_UNAVAILABLE)),
    }
}

async fn numbers(State(service): Shared) -> Response {
    text("text/plain; version=0.0.4; charset=utf-8", metrics::text(&service))
}
