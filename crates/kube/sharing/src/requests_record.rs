//! What the pods of a workload asked for before dovetail changed that: the value of its annotation
//! `dovetail.dev/former-requests`.

use serde::{Deserialize, Serialize};

use crate::watch::{Outcome, Watch};

/// Where the change of a workload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestsStep {
    /// Its pods are being replaced; their latency is watched once all of them have been.
    Rolling,
    /// Its pods ask for the new resource.
    Changed,
    /// Its pods ask for the former resource again.
    Returned,
}

impl RequestsStep {
    /// The step as a word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rolling => "Rolling",
            Self::Changed => "Changed",
            Self::Returned => "Returned",
        }
    }
}

/// A change of what the pods of a workload ask for: one unit of another resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestsRecord {
    pub step: RequestsStep,
    /// The container that asks.
    pub container: String,
    /// The resource of which it asked for one before.
    pub from: String,
    /// The resource of which it asks for one now.
    pub to: String,
    /// Whether its `requests` name the resource beside its `limits`.
    #[serde(default)]
    pub has_requests: bool,
    /// The policy that allowed it.
    pub policy: String,
    /// When the change was written, in milliseconds since 1970.
    pub started_ms: u64,
    /// When the step began, in milliseconds since 1970.
    pub since_ms: u64,
    /// The watch over latency after it; `None` if the policy had no guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
}

impl RequestsRecord {
    /// The resource that the container asks for in this step.
    pub fn asked(&self) -> &str {
        match self.step {
            RequestsStep::Returned => &self.from,
            _ => &self.to,
        }
    }

    /// Whether a verdict on latency is to come.
    pub fn is_open(&self) -> bool {
        let waits = |watch: &Watch| watch.outcome == Outcome::Waiting;
        self.step != RequestsStep::Returned && self.watch.as_ref().is_some_and(waits)
    }

    /// Whether latency got worse, and the former resource is not yet asked for again.
    pub fn returns(&self) -> bool {
        let is_worse = |watch: &Watch| watch.outcome == Outcome::Worse;
        self.step == RequestsStep::Changed && self.watch.as_ref().is_some_and(is_worse)
    }

    /// The outcome of its watch with what it rests on, for people; empty without a watch.
    pub fn latency(&self) -> String {
        self.watch.as_ref().map(Watch::words).unwrap_or_default()
    }
}
