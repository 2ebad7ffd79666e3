//! One request to the API server, and what came of it, as values.

use dovetail_cluster::world::PodKey;
use serde::{Deserialize, Serialize};

use crate::answer::Answered;

/// An HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Reads.
    Get,
    /// Creates.
    Post,
    /// Replaces.
    Put,
    /// Changes.
    Patch,
    Delete,
}

/// Which connection a request uses, and how many of its kind may be on their way at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestClass {
    Bind,
    /// A read of one object. It needs no leadership.
    Read,
    /// A change of a pod other than its bind.
    Order,
    /// A change of a PersistentVolumeClaim: there may be many, and pods do not wait for them.
    Claim,
    /// A condition, an event or a status.
    Announcement,
    /// The lease itself. It needs no leadership.
    Lease,
}

/// Body of a JSON document.
pub(crate) const JSON: &str = "application/json";
/// Body of a patch that follows the merge keys of the built-in kinds.
pub(crate) const STRATEGIC_MERGE: &str = "application/strategic-merge-patch+json";
/// Body of a patch by RFC 7386.
pub(crate) const MERGE: &str = "application/merge-patch+json";
/// Body of a patch by RFC 6902.
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiRequest {
    /// Names it among all requests of a leadership; its [`ApiResponse`] has the same.
    pub number: u64,
    /// Which connection it uses.
    pub class: RequestClass,
    /// What is done.
    pub method: Method,
    pub path: String,
    /// Content type of the body; empty where there is none.
    pub media_type: &'static str,
    pub body: Vec<u8>,
}

impl ApiRequest {
    /// A request that has no number yet.
    pub(crate) fn new(
        class: RequestClass,
        method: Method,
        path: String,
        (media_type, body): (&'static str, Vec<u8>),
    ) -> Self {
        Self { number: 0, class, method, path, media_type, body }
    }

    pub(crate) fn read_pod(pod: &PodKey) -> Self {
        let PodKey { namespace, name, .. } = pod;
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        Self::new(RequestClass::Read, Method::Get, path, ("", Vec::new()))
    }
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiResponse {
    pub number: u64,
    /// What the server answered, or why it did not; `None`: it was not sent, because this process
    /// does not lead (any more) or stops.
    pub answered: Option<Answered>,
    /// From sending it to the answer, in milliseconds.
    pub took_ms: u64,
    /// Time on the own clock from which on the server cannot carry it out any more.
    pub over_ms: u64,
}

/// The present, by two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Now {
    /// For people and for the engine: milliseconds since 1970. It may jump.
    pub wall_ms: u64,
    /// The process's own clock, by which it leads: it never jumps and never stops.
    pub own_ms: u64,
}
