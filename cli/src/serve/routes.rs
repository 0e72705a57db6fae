//! The routes, which `openapi.json` describes.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    http::{Method, StatusCode, Uri},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};

use super::{
    access::Access,
    answer::{Refusal, text, written},
    ids, metrics,
    service::Service,
};

/// The path of ids, which has a shorter way besides.
pub(super) const IDS: &str = "/v1/ids";

/// What is before the name of a counter.
const TICKETS: &str = "/v1/tickets/";

/// The description of the routes.
const OPENAPI: &str = include_str!("openapi.json");

/// What a server with a token says where it is not ready.
const NOT_READY: &str = "no id could be had now; the standard error says why";

type Shared = State<Arc<Service>>;
/// A part of the path that varies.
type Segment = Result<Path<String>, PathRejection>;
type Answer = Result<Response, Refusal>;

pub(super) fn routes(service: Arc<Service>) -> Router {
    Router::new()
        .route(
            IDS,
            post(async |State(service): Shared, uri: Uri| ids::generate(&service, &uri).await),
        )
        .route("/v1/inspect/{id}", get(inspect))
        .route("/v1/tickets/{name}", post(tickets))
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

/// Answers ids and tickets that are there, on the shortest way; `None` for everything else.
pub(super) fn at_once(service: &Service, method: &Method, uri: &Uri) -> Option<Response> {
    if method != Method::POST {
        return None;
    }
    if uri.path() == IDS {
        return ids::at_once(service, uri)
            .map(|answer| answer.unwrap_or_else(Refusal::into_response));
    }
    // A name that is written in another way is not found, and goes by the route.
    let name = uri.path().strip_prefix(TICKETS)?;
    service.tickets.at_once(name, uri, &service.limits)
}

async fn inspect(State(service): Shared, id: Segment, uri: Uri) -> Answer {
    ids::inspect(&service, &decoded(id)?, &uri)
}

async fn tickets(State(service): Shared, name: Segment, uri: Uri) -> Answer {
    service.tickets.generate(&decoded(name)?, &uri, &service.limits).await
}

async fn acquire(State(service): Shared, body: Body) -> Answer {
    service.leases.acquire(body, &service.limits).await
}

async fn renew(State(service): Shared, lease: Segment, body: Body) -> Answer {
    service.leases.renew(&decoded(lease)?, body, &service.limits).await
}

async fn release(State(service): Shared, lease: Segment, body: Body) -> Answer {
    service.leases.release(&decoded(lease)?, body, &service.limits).await
}

fn decoded(segment: Segment) -> Result<String, Refusal> {
    let wrong =
        |_| Refusal::invalid(StatusCode::BAD_REQUEST, "a path must be UTF-8 once it is decoded");
    segment.map(|Path(segment)| segment).map_err(wrong)
}

async fn readiness(State(service): Shared) -> Answer {
    match service.check_ready() {
        Ok(()) => Ok(written("{\"status\":\"ready\"}\n")),
        Err(error) => {
            let refusal = Refusal::from(error).with_status(StatusCode::SERVICE_UNAVAILABLE);
            // Whoever asks needs no token, and the store's error names paths and hosts.
            let is_protected = matches!(service.access, Access::Token(_));
            Err(if is_protected { refusal.with_message(NOT_READY) } else { refusal })
        }
    }
}

async fn numbers(State(service): Shared) -> Response {
    text("text/plain; version=0.0.4; charset=utf-8", metrics::text(&service))
}
