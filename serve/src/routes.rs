//! What answers a request.

use hyper::{Request, StatusCode, body::Incoming};

use super::{
    answer::{Refusal, Response, text, written},
    hiding::Listed,
    ids, metrics,
    request::Query,
    route::Route,
    service::Service,
};

/// What a server with a token says if it is not ready.
const NOT_READY: &str = "no id is available now; standard error says why";

/// Answers a request. Calls `is_known` if this client is allowed to send it.
pub(super) async fn answer(
    service: &Service,
    request: Request<Incoming>,
    is_known: impl FnOnce(),
) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    let route = Route::read(head.uri.path());
    let may = service.access.check(&head.uri, &head.headers);
    let may_know_why = may.is_ok();
    if may_know_why {
        is_known();
    }
    if !route.as_ref().is_ok_and(Route::is_public) {
        may?;
    }
    let route = route?;
    route.check_method(&head.method)?;
    let (query, limits) = (head.uri.query(), &service.limits);
    let listed = |label, body| Listed { label, query, body, limits, room: &service.room };
    match route {
        Route::Ids => ids::generate(service, query).await,
        Route::Inspect(id) => ids::inspect(service, &id, query),
        Route::Tickets(name) => service.tickets.generate(&name, query, limits, &service.room).await,
        Route::Leases => {
            Query::read(query, &[], limits.max_count)?;
            service.leases.acquire(body, limits).await
        }
        Route::Renew(name) => {
            Query::read(query, &[], limits.max_count)?;
            service.leases.renew(&name, body, limits).await
        }
        Route::Release(name) => {
            Query::read(query, &[], limits.max_count)?;
            service.leases.release(&name, body, limits).await
        }
        Route::Layout => {
            Query::read(query, &[], limits.max_count)?;
            Ok(written(service.layout_json.clone()))
        }
        Route::Hide(label) => service.hiding.hide(listed(&label, body)).await,
        Route::Reveal(label) => service.hiding.reveal(listed(&label, body)).await,
        Route::Encode(label) => service.hiding.encode(listed(&label, body)).await,
        Route::Decode(label) => service.hiding.decode(listed(&label, body)).await,
        // Probes may add their own query.
        Route::Alive => Ok(written("{\"status\":\"alive\"}\n")),
        Route::Ready => readiness(service, may_know_why),
        Route::Numbers => {
            let room = service.room.reserve(metrics::LONGEST, limits.max_wait).await?;
            let content = room.hold(metrics::text(service).into_bytes());
            Ok(text("text/plain; version=0.0.4; charset=utf-8", content))
        }
        Route::Description => Ok(written(service.openapi.clone())),
    }
}

fn readiness(service: &Service, may_know_why: bool) -> Result<Response, Refusal> {
    let Err(error) = service.check_ready() else {
        return Ok(written("{\"status\":\"ready\"}\n"));
    };
    let refusal = Refusal::from(error).with_status(StatusCode::SERVICE_UNAVAILABLE);
    // The store's error may name paths and hosts.
    Err(if may_know_why { refusal } else { refusal.with_message(NOT_READY) })
}
