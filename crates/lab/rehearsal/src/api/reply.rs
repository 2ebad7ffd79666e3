//! Answers: JSON with a code.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::failure::ApiFailure;
use super::kind::ResourceKind;
use super::store::StoredObject;

/// A finished answer.
#[derive(Clone, Debug)]
pub struct ApiReply {
    pub code: u16,
    /// What it says.
    pub body: Bytes,
    /// For how long the client is to wait, if it is.
    pub retry_after: Option<Duration>,
    /// In which form.
    pub content_type: &'static str,
}

impl ApiReply {
    pub(crate) fn json(code: u16, body: &Value) -> Self {
        Self::bytes(code, body.to_string())
    }

    /// Bytes that are JSON.
    pub fn bytes(code: u16, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self { code, body, retry_after: None, content_type: "application/json" }
    }

    /// Plain text.
    pub fn text(code: u16, body: &'static str) -> Self {
        Self { content_type: "text/plain; charset=utf-8", ..Self::bytes(code, body) }
    }

    pub(crate) fn object(code: u16, kind: &ResourceKind, object: &StoredObject) -> Self {
        let mut body = Vec::with_capacity(object.json().len() + 64);
        object.write(kind, &mut body);
        Self::bytes(code, body)
    }

    /// A `Status` that says the request was done.
    pub(crate) fn success(code: u16) -> Self {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code,
        });
        Self::json(code, &status)
    }

    /// The `Status` of a refusal.
    pub fn failure(failure: &ApiFailure) -> Self {
        let retry_after = failure.retry_after_s().map(Duration::from_secs);
        Self { retry_after, ..Self::json(failure.code, &failure.body()) }
    }
}
