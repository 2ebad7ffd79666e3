//! `Status` objects as the real server words them.
//!
//! Wording and codes follow `k8s.io/apimachinery/pkg/api/errors` and
//! `k8s.io/apiserver/pkg/storage/errors`.

use serde_json::{Map, Value, json};

use super::kind::ResourceKind;

/// A request that was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiFailure {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub(crate) details: Map<String, Value>,
    /// Continue token of a list that may go on inconsistently.
    pub(crate) list_continue: Option<String>,
}

pub(crate) const MODIFIED: &str = "the object has been modified; please apply your changes to the \
                                   latest version and try again";

impl ApiFailure {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, reason, message, details: Map::new(), list_continue: None }
    }

    pub(crate) fn not_found(kind: &ResourceKind, name: &str) -> Self {
        let message = format!("{} {name:?} not found", kind.qualified());
        Self::new(404, "NotFound", message).about(&kind.group, &kind.plural, name)
    }

    pub(crate) fn already_exists(kind: &ResourceKind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", kind.qualified());
        Self::new(409, "AlreadyExists", message).about(&kind.group, &kind.plural, name)
    }

    pub(crate) fn conflict(kind: &ResourceKind, name: &str, why: &str) -> Self {
        Self::conflict_of(&kind.group, &kind.plural, name, why)
    }

    /// A conflict of something the server names in its own way, such as `pods/binding`.
    pub(crate) fn conflict_of(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let qualified =
            if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        let message = format!("Operation cannot be fulfilled on {qualified} {name:?}: {why}");
        Self::new(409, "Conflict", message).about(group, resource, name)
    }

    /// The object has another version than the one that was stated.
    pub fn modified(kind: &ResourceKind, name: &str) -> Self {
        Self::conflict(kind, name, MODIFIED)
    }

    pub(crate) fn forbidden(kind: &ResourceKind, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", kind.qualified());
        Self::new(403, "Forbidden", message).about(&kind.group, &kind.plural, name)
    }

    /// One or more fields that may not be as they are. `kind_name` is the kind, or the plural where
    /// the real server says so.
    pub(crate) fn invalid(group: &str, kind_name: &str, name: &str, causes: &[FieldCause]) -> Self {
        let qualified =
            if group.is_empty() { kind_name.to_owned() } else { format!("{kind_name}.{group}") };
        let worded: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.body())).collect();
        let all = match worded.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let message = format!("{qualified} {name:?} is invalid: {all}");
        let mut failure = Self::new(422, "Invalid", message).about(group, kind_name, name);
        let listed = causes.iter().map(|cause| {
            json!({"reason": cause.kind.reason(), "message": cause.body(), "field": cause.field})
        });
        failure.details.insert("causes".to_owned(), listed.collect());
        failure
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// A version that is too old.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The client is to wait, for so many seconds unless 0.
    pub fn too_many_requests(message: impl Into<String>, retry_after_s: u32) -> Self {
        let mut failure = Self::new(429, "TooManyRequests", message);
        if retry_after_s > 0 {
            failure.details.insert("retryAfterSeconds".to_owned(), json!(retry_after_s));
        }
        failure
    }

    pub(crate) fn version_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut failure = Self::new(504, "Timeout", message);
        let cause = json!({
            "reason": "ResourceVersionTooLarge", "message": "Too large resource version"
        });
        failure.details.insert("causes".to_owned(), json!([cause]));
        failure.details.insert("retryAfterSeconds".to_owned(), json!(1));
        failure
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message)
    }

    /// A patch of a form that no kind takes.
    pub(crate) fn unknown_media_type() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    }

    /// A patch of a form that this kind does not take.
    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: \
             {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// An answer out of the blue, as a proxy or a dying server gives it.
    pub fn of_code(code: u16) -> Self {
        let (reason, message) = match code {
            401 => ("Unauthorized", "Unauthorized"),
            403 => ("Forbidden", "the user has no right to this"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "Timeout: request did not complete within the allotted timeout"),
            _ => ("InternalError", "Internal error occurred: etcdserver: leader changed"),
        };
        Self::new(code, reason, message)
    }

    pub(crate) fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
            if !value.is_empty() {
                self.details.insert(key.to_owned(), json!(value));
            }
        }
        self
    }

    pub(crate) fn caused_by(mut self, reason: &str, message: &str) -> Self {
        let cause = json!({"reason": reason, "message": message});
        self.details.insert("causes".to_owned(), json!([cause]));
        self
    }

    /// Seconds for the header `Retry-After`.
    pub(crate) fn retry_after_s(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds")?.as_u64()
    }

    /// The `Status` object.
    pub(crate) fn body(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if !self.details.is_empty() || self.code == 429 {
            status["details"] = Value::Object(self.details.clone());
        }
        if let Some(token) = &self.list_continue {
            status["metadata"]["continue"] = json!(token);
        }
        status
    }
}

/// Why one field is refused.
#[derive(Clone, Debug)]
pub(crate) struct FieldCause {
    pub(crate) field: String,
    pub(crate) kind: FieldFault,
    pub(crate) detail: String,
}

/// What is wrong with a field; the text is the refused value as JSON, where one is shown.
#[derive(Clone, Debug)]
pub(crate) enum FieldFault {
    Required,
    Forbidden,
    Invalid(String),
    NotSupported(String),
}

impl FieldFault {
    fn reason(&self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Forbidden => "FieldValueForbidden",
            Self::Invalid(_) => "FieldValueInvalid",
            Self::NotSupported(_) => "FieldValueNotSupported",
        }
    }
}

impl FieldCause {
    pub(crate) fn new(field: &str, kind: FieldFault, detail: &str) -> Self {
        Self { field: field.to_owned(), kind, detail: detail.to_owned() }
    }

    fn body(&self) -> String {
        let start = match &self.kind {
            FieldFault::Required => "Required value".to_owned(),
            FieldFault::Forbidden => "Forbidden".to_owned(),
            FieldFault::Invalid(value) => format!("Invalid value: {value}"),
            FieldFault::NotSupported(value) => format!("Unsupported value: {value}"),
        };
        if self.detail.is_empty() { start } else { format!("{start}: {}", self.detail) }
    }
}
