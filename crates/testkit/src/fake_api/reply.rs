//! Answers: JSON with a code.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::failure::Failure;
use super::kind::Kind;
use super::store::Object;

/// A finished answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) code: u16,
    pub(super) body: Bytes,
    pub(super) retry_after: Option<Duration>,
    pub(super) content_type: &'static str,
}

impl Reply {
    pub(super) fn json(code: u16, body: &Value) -> Self {
        Self::bytes(code, body.to_string())
    }

    pub(super) fn bytes(code: u16, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self { code, body, retry_after: None, content_type: "application/json" }
    }

    pub(super) fn text(code: u16, body: &'static str) -> Self {
        Self { content_type: "text/plain; charset=utf-8", ..Self::bytes(code, body) }
    }

    pub(super) fn object(code: u16, kind: &Kind, object: &Object) -> Self {
        let mut body = Vec::with_capacity(object.json().len() + 64);
        object.write(kind, &mut body);
        Self::bytes(code, body)
    }

    /// A `Status` that says the request was done.
    pub(super) fn success(code: u16) -> Self {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code,
        });
        Self::json(code, &status)
    }

    pub(super) fn failure(failure: &Failure) -> Self {
        let retry_after = failure.retry_after_s().map(Duration::from_secs);
        Self { retry_after, ..Self::json(failure.code, &failure.body()) }
    }
}
