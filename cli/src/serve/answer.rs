//! Answers: JSON, and errors with their code.

use std::time::Duration;

use axum::{
    body::Body,
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use randflake::{Error, ErrorKind};

use crate::output::{json, one_line};

/// Returns an answer of a content type.
pub(super) fn text(content_type: &'static str, content: impl Into<Body>) -> Response {
    let mut response = Response::new(content.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Returns JSON that is already written.
pub(super) fn written(content: impl Into<Body>) -> Response {
    text("application/json", content)
}

/// Why a request is not done: a status, and `{"code": "…", "message": "…"}`.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    retry_after: Option<Duration>,
}

impl Refusal {
    /// What the client sent is wrong in a way that has a status of its own.
    pub(super) fn invalid(status: StatusCode, message: impl Into<String>) -> Self {
        let code = ErrorKind::InvalidArgument.code();
        Self { status, code, message: message.into(), retry_after: None }
    }

    pub(super) fn unauthorized(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, code: "UNAUTHORIZED", message: message.into(), retry_after: None }
    }

    /// Gives an error another status than its kind has.
    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Says something else than the error.
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
            // Both are parts of paths here.
            ErrorKind::InvalidId | ErrorKind::InvalidLease => StatusCode::NOT_FOUND,
            ErrorKind::LeaseLost => StatusCode::GONE,
            ErrorKind::Internal | ErrorKind::LifetimeOver | ErrorKind::ClockBeforeEpoch => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            // There is no id, or no store, now.
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        // Whoever looks after the store may mend it meanwhile.
        let again = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(Duration::from_secs(1));
        Self {
            status,
            code: error.code(),
            message: one_line(&error.to_string()),
            retry_after: error.retry_after().or(again),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let content =
            format!("{{\"code\":{},\"message\":{}}}\n", json(self.code), json(&self.message));
        let mut response = written(content);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if let Some(retry_after) = self.retry_after {
            // Whole seconds, not too few.
            let seconds = retry_after.as_nanos().div_ceil(1_000_000_000).clamp(1, 86_400);
            let seconds = u32::try_from(seconds).unwrap_or(86_400);
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
