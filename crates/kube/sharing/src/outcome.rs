//! What came of a watch over latency, and of the layouts of a policy.

use dovetail_objects::none_required;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of a watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Nothing yet.
    #[default]
    Waiting,
    Better,
    Same,
    /// The node goes back to its former layout.
    Worse,
    /// The node stays as it is, and no other node changes.
    Unknown,
    /// People rolled the change back, and no other node changes.
    RolledBack,
}

impl Outcome {
    /// Whether no further node changes after it.
    pub(crate) fn stops(self) -> bool {
        matches!(self, Self::Worse | Self::Unknown | Self::RolledBack)
    }

    /// The outcome in a sentence.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Better => "better",
            Self::Same => "same",
            Self::Worse => "worse",
            Self::Unknown => "unknown",
            Self::RolledBack => "rolled back",
        }
    }
}

/// What was changed under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The layout of a node.
    Node(String),
    /// The requests of a workload, named by namespace, kind and name.
    Workload(String),
}

impl std::fmt::Display for Subject {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(name) => write!(to, "node {name}"),
            Self::Workload(name) => write!(to, "workload {name}"),
        }
    }
}

/// What came of the layouts of a policy, in its status: a node or a workload that is deleted takes
/// its record with it.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(transform = none_required)]
pub struct RollOut {
    /// What `spec` said about layouts, as a number.
    pub spec: String,
    /// The node that decided; empty if a workload did.
    #[serde(default)]
    pub node: String,
    /// The workload that decided: namespace, kind and name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// Better, Same, Worse, Unknown or RolledBack.
    #[schemars(with = "String")]
    pub outcome: Outcome,
    /// What it rests on.
    #[serde(default)]
    pub why: String,
}

impl RollOut {
    pub(crate) fn new(subject: Subject, spec: &str, outcome: Outcome, why: &str) -> Self {
        let (node, workload) = match subject {
            Subject::Node(node) => (node, String::new()),
            Subject::Workload(workload) => (String::new(), workload),
        };
        Self { spec: spec.to_owned(), node, workload, outcome, why: why.to_owned() }
    }

    /// What decided.
    pub(crate) fn subject(self) -> Subject {
        match self.workload.is_empty() {
            true => Subject::Node(self.node),
            false => Subject::Workload(self.workload),
        }
    }
}

/// The reason of events about an outcome.
pub fn reason(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Waiting => "LatencyWatched",
        Outcome::Better => "LatencyBetter",
        Outcome::Same => "LatencySame",
        Outcome::Worse => "LatencyWorse",
        Outcome::Unknown => "LatencyUnknown",
        Outcome::RolledBack => "RolledBack",
    }
}

/// Whether people should look at it.
pub fn is_warning(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Worse | Outcome::Unknown)
}
