//! What a sharing policy reports: `status` of its object.

use dovetail_objects::json::timestamp;
use dovetail_objects::{MOST_CONDITION_LETTERS, harmless, none_required, shortened};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::outcome::RollOut;
use crate::verdict::Problem;

// The comments of its fields are what `kubectl explain sharingpolicy.status` prints.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = none_required)]
pub(crate) struct Status {
    /// Nodes with GPUs that the policy selects.
    #[schemars(with = "i64")]
    nodes: usize,
    /// Layouts of their GPUs as they are.
    layouts: Vec<String>,
    /// The change that comes next.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<NextChange>,
    /// What happens now: Idle, Changing, Stuck, Watching (latency after a change is watched) or
    /// Stopped (latency got worse or is unknown, or a node was rolled back).
    step: String,
    /// What came of the layouts that the policy asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    roll_out: Option<RollOut>,
    /// Why nodes do not change although pods, or the mode, need another layout.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stays: Vec<String>,
    /// The last change of each node.
    receipts: Vec<Receipt>,
    /// Pods that should not share GPUs; a nodeSelector without nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    conditions: Vec<Condition>,
}

/// The change of a node that comes next.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(transform = none_required)]
pub struct NextChange {
    /// The node.
    pub node: String,
    /// Layouts of its GPUs now.
    pub from: String,
    /// Layouts of its GPUs then.
    pub to: String,
    /// Why it changes, or why it does not yet.
    pub why: String,
}

/// What became of a change of a node.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = none_required)]
pub struct Receipt {
    /// The node.
    pub node: String,
    /// Done, Undone, Abandoned or Stuck; the step of a change that is not over.
    pub outcome: String,
    /// Seconds from the taint to the end.
    #[schemars(with = "i64")]
    pub seconds: u64,
    /// Layout that was asked for.
    pub to: String,
    /// What went wrong, if anything did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub problem: String,
    /// Pods that were moved for the change, and the GPU-seconds that this cost.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub moved: String,
    /// What became of latency after the change: waiting, better, same, worse or unknown, and why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub latency: String,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[schemars(length(max = 316))]
    r#type: &'static str,
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    status: &'static str,
    #[schemars(length(max = 1_024))]
    reason: &'static str,
    #[schemars(length(max = 32_768))]
    message: String,
    #[schemars(extend("format" = "date-time"))]
    last_transition_time: String,
}

/// What is reported of a policy, besides its condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyReport {
    pub nodes: usize,
    pub layouts: Vec<String>,
    pub next: Option<NextChange>,
    pub step: String,
    pub roll_out: Option<RollOut>,
    pub receipts: Vec<Receipt>,
    pub warnings: Vec<String>,
    /// Reasons, each with its nodes.
    pub stays: Vec<String>,
}

/// The merge patch that makes a policy report this; `None` if it does already. `known` is its
/// status as it was last written.
pub fn status_patch(
    report: PolicyReport,
    problem: Option<&Problem>,
    known: &Value,
    now_ms: u64,
) -> Option<Value> {
    let (status, reason) = match problem {
        None => ("True", "Ready"),
        Some(problem) => ("False", problem.reason()),
    };
    let before = known["conditions"].as_array().into_iter().flatten();
    let same = before.filter(|one| one["type"] == "Ready" && one["status"] == status);
    let since = same.filter_map(|one| one["lastTransitionTime"].as_str()).next();
    let last_transition_time = since.map_or_else(|| timestamp(now_ms), str::to_owned);
    let message = problem.map(ToString::to_string).unwrap_or_default();
    let message = shortened(&harmless(&message), MOST_CONDITION_LETTERS).into_owned();
    let condition = Condition { r#type: "Ready", status, reason, message, last_transition_time };
    let PolicyReport { nodes, layouts, next, step, roll_out, receipts, warnings, stays } = report;
    let (has_next, has_warnings) = (next.is_some(), !warnings.is_empty());
    let (has_roll_out, has_stays) = (roll_out.is_some(), !stays.is_empty());
    let conditions = vec![condition];
    let status =
        Status { nodes, layouts, next, step, roll_out, stays, receipts, warnings, conditions };
    let mut status = json!(status);
    if status == *known {
        return None;
    }
    if !has_next {
        status["next"] = Value::Null;
    }
    if !has_roll_out {
        status["rollOut"] = Value::Null;
    }
    if !has_warnings {
        status["warnings"] = Value::Null;
    }
    if !has_stays {
        status["stays"] = Value::Null;
    }
    Some(json!({"status": status}))
}
