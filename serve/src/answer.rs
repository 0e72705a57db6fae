//! Answers: JSON, and errors with their code.

use std::time::Duration;

use http_body_util::Full;
use hyper::{
    StatusCode,
    body::Bytes,
    header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use randflake::{Error, ErrorKind, bindings::one_line};
use serde_json::json;

/// After how long a client may try again if the error does not say when.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) type Response = hyper::Response<Full<Bytes>>;

/// Returns an answer of a content type.
pub(super) fn text(content_type: &'static str, content: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Full::new(content.into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Returns JSON that is already written.
pub(super) fn written(content: impl Into<Bytes>) -> Response {
    text("application/json", content)
}

/// Why a request is not done: a status, and `{"code": "…", "message": "…"}`.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    retry_after: Option<Duration>,
    /// The allowed methods.
    allow: Option<&'static str>,
}

impl Refusal {
    /// What the client sent is wrong in a way that has its own status.
    pub(super) fn invalid(status: StatusCode, message: impl Into<String>) -> Self {
        let code = ErrorKind::InvalidArgument.code();
        Self { status, code, message: message.into(), retry_after: None, allow: None }
    }

    pub(super) fn unauthorized(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            code: "UNAUTHORIZED",
            message: message.into(),
            retry_after: None,
            allow: None,
        }
    }

    /// This server is too busy; other parts have no code for this.
    pub(super) fn busy(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: "BUSY",
            message: message.into(),
            retry_after: Some(AGAIN),
            allow: None,
        }
    }

    /// The method is not allowed for what was requested.
    pub(super) fn another_method(allow: &'static str) -> Self {
        let why = format!("this path takes another method: {allow}");
        Self { allow: Some(allow), ..Self::invalid(StatusCode::METHOD_NOT_ALLOWED, why) }
    }

    /// Gives an error a different status from that of its kind.
    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        if status == StatusCode::SERVICE_UNAVAILABLE {
            self.retry_after.get_or_insert(AGAIN);
        }
        self
    }

    /// Returns whether it is an error of this kind.
    pub(super) fn is_of(&self, kind: ErrorKind) -> bool {
        self.code == kind.code()
    }

    /// Replaces the error's message.
    pub(super) fn with_message(mut self, message: &str) -> Self {
        message.clone_into(&mut self.message);
        self
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::InvalidArgument | ErrorKind::InvalidNode | ErrorKind::InvalidSecret => {
                StatusCode::BAD_REQUEST
            }
            // Both occur in paths here.
            ErrorKind::InvalidId | ErrorKind::InvalidLease => StatusCode::NOT_FOUND,
            ErrorKind::LeaseLost => StatusCode::GONE,
            ErrorKind::Internal | ErrorKind::LifetimeOver => StatusCode::INTERNAL_SERVER_ERROR,
            // There is no id, or no store, at the moment.
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        // An operator may fix the store meanwhile.
        let again = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(AGAIN);
        Self {
            status,
            code: error.code(),
            message: one_line(&error.to_string()),
            retry_after: error.retry_after().or(again),
            allow: None,
        }
    }
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        let content = json!({ "code": refusal.code, "message": refusal.message });
        let mut response = written(format!("{content}\n"));
        *response.status_mut() = refusal.status;
        let headers = response.headers_mut();
        if let Some(retry_after) = refusal.retry_after {
            // Whole seconds, rounded up.
            let seconds = retry_after.as_nanos().div_ceil(1_000_000_000).clamp(1, 86_400);
            let seconds = u32::try_from(seconds).unwrap_or(86_400);
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if let Some(allow) = refusal.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if refusal.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
