//! What a queue says of itself: `status` of its object.

use std::collections::BTreeMap;

use dovetail_model::{Axis, Bounds, Charge, Quantity, QueueUsage};
use dovetail_objects::json::timestamp;
use dovetail_objects::{Queue, harmless, none_required};
use dovetail_plan::QueueUse;
use dovetail_plan::engine::WaitingBelow;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::amounts::{amount_of, bounds, held, in_units, percent, written};
use super::{QueueProblem, engine_name};
use dovetail_translate::Rules;

// What a queue reports. Its schema is derived from it: the comments of its fields are what
// `kubectl explain queue.status` prints.
#[derive(JsonSchema, Serialize)]
#[schemars(transform = none_required)]
pub(super) struct Status {
    /// Usage of the queue and its descendants, by resource.
    used: BTreeMap<String, String>,
    /// Usage beyond the guarantee, by resource.
    borrowed: BTreeMap<String, String>,
    gpus: Gpus,
    pending: PendingCounts,
    /// Largest share of any cluster resource that the queue uses.
    share: String,
    /// Past usage beyond the guarantee while other queues had pending jobs; older usage counts
    /// less. The next leader continues from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "UsedCounts")]
    usage: Option<UsedCounts>,
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    conditions: Vec<QueueCondition>,
}

// The same of GPUs alone, for the columns of `kubectl get queues`.
#[derive(JsonSchema, Serialize)]
#[schemars(transform = none_required)]
struct Gpus {
    /// GPUs in use.
    used: String,
    /// GPUs beyond those guaranteed.
    borrowed: String,
    /// Guaranteed GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    guaranteed: Option<String>,
    /// Maximum number of GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    limit: Option<String>,
}

// What order `dovetail` ranks queues by.
#[derive(JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = none_required)]
struct UsedCounts {
    /// Usage of the queue and its descendants: in billionths of the whole cluster, times seconds.
    #[schemars(with = "i64", range(min = 0))]
    all: u64,
    /// Usage by jobs of the queue itself, in the same unit.
    #[schemars(with = "i64", range(min = 0))]
    own: u64,
    /// Time to which the usage refers.
    #[schemars(extend("format" = "date-time"))]
    as_of: String,
}

#[derive(JsonSchema, Serialize)]
#[schemars(transform = none_required)]
struct PendingCounts {
    /// Pending jobs: single pods and gangs.
    #[schemars(with = "i64", range(min = 0))]
    jobs: u64,
    /// Pending pods, with each gang at its minimum size.
    #[schemars(with = "i64", range(min = 0))]
    pods: u64,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct QueueCondition {
    #[schemars(length(max = 316))]
    r#type: &'static str,
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    status: &'static str,
    #[schemars(length(max = 1_024))]
    reason: &'static str,
    #[schemars(length(max = 32_768))]
    message: String,
    // Set by `patch`, which knows since when the condition is what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    last_transition_time: Option<String>,
}

/// Usage alone is written again after so long.
const USAGE_MS: u64 = 30_000;

/// What the engine knows of a queue that says it.
#[derive(Clone, Copy, Debug)]
pub struct KnownUsage<'e> {
    /// What it holds.
    pub usage: &'e QueueUse,
    /// GPU-time so far, decayed.
    pub used: &'e [QueueUsage],
    /// Jobs in it and below it that have not started.
    pub pending: WaitingBelow,
}

/// What a queue has used, as its status says; nothing of a status that cannot be read.
pub fn usage(queue: &Queue) -> Vec<QueueUsage> {
    let read = UsedCounts::deserialize(&queue.status["usage"]).ok();
    let Some((all, own, at_ms)) = read.and_then(|read| {
        let at: Timestamp = read.as_of.parse().ok()?;
        Some((read.all, read.own, u64::try_from(at.as_millisecond()).ok()?))
    }) else {
        return Vec::new();
    };
    let name = engine_name(&queue.meta.name);
    let of = |(is_own, used)| QueueUsage { queue: name.clone(), is_own, used, at_ms };
    [(false, all), (true, own)].into_iter().filter(|(_, used)| *used > 0).map(of).collect()
}

/// What a queue and those below it hold, as its status says, without GPUs by model; `None` if no
/// scheduler has written its status.
pub fn reported_use(queue: &Queue, rules: &Rules) -> Option<Charge> {
    let mut charge = Charge::default();
    for (resource, amount) in queue.status["used"].as_object()? {
        let amount = amount.as_str().and_then(|text| text.parse::<Quantity>().ok());
        if let Some(amount) = amount {
            let (axis, amount) = in_units(resource, amount, rules);
            charge.set(&axis, amount);
        }
    }
    Some(charge)
}

fn used(known: &[QueueUsage]) -> Option<UsedCounts> {
    let at_ms = known.iter().map(|usage| usage.at_ms).max()?;
    let of = |is_own: bool| known.iter().find(|usage| usage.is_own == is_own);
    let amount = |is_own| of(is_own).map_or(0, |usage| usage.used.min(i64::MAX as u64));
    let at = i64::try_from(at_ms).ok().and_then(|at| Timestamp::from_millisecond(at).ok())?;
    Some(UsedCounts { all: amount(false), own: amount(true), as_of: format!("{at:.3}") })
}

/// What a queue is to say, without the times of its conditions.
pub fn status(
    queue: &Queue,
    problem: Option<&QueueProblem>,
    known: KnownUsage<'_>,
    rules: &Rules,
) -> Value {
    let KnownUsage { usage, used: has_used, pending } = known;
    let beyond_it = beyond(&usage.used, &bounds(&queue.guaranteed, rules));
    let gpus = |amount: i64| written(&Axis::Gpu, amount);
    let named = |amounts| amount_of(&Axis::Gpu, amounts, rules).map(|amount| amount.to_string());
    json!(Status {
        used: held(&usage.used, rules),
        borrowed: borrowed(queue, &usage.used, rules),
        gpus: Gpus {
            used: gpus(usage.used.gpu_milli),
            borrowed: gpus(beyond_it.gpu_milli),
            guaranteed: named(&queue.guaranteed),
            limit: named(&queue.limit),
        },
        pending: PendingCounts { jobs: pending.jobs, pods: pending.pods },
        share: percent(usage.share),
        usage: used(has_used),
        conditions: vec![condition(problem)],
    })
}

/// What a queue that holds so much borrows, by resource.
pub fn borrowed(queue: &Queue, used: &Charge, rules: &Rules) -> BTreeMap<String, String> {
    held(&beyond(used, &bounds(&queue.guaranteed, rules)), rules)
}

/// What is held of guaranteed resources beyond what is guaranteed.
fn beyond(used: &Charge, guaranteed: &Bounds) -> Charge {
    let mut beyond = Charge::default();
    for (axis, most) in guaranteed.iter() {
        let over = used.get(&axis).saturating_sub(most).max(0);
        beyond.set(&axis, over);
    }
    beyond
}

/// The JSON patch that makes a queue say what it is to say; `None` if it does.
pub fn patch(queue: &Queue, wanted: &Value, now_ms: u64) -> Option<Value> {
    let known = |kind: &Value| {
        let conditions = queue.status["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().find(move |one| one["type"] == *kind)
    };
    let mut status = wanted.clone();
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        let before = known(&condition["type"]);
        let same = before.filter(|before| before["status"] == condition["status"]);
        let since = same.and_then(|same| same["lastTransitionTime"].as_str());
        let since = since.map_or_else(|| timestamp(now_ms), str::to_owned);
        condition["lastTransitionTime"] = json!(since);
    }
    if status == queue.status || is_usage_alone(&queue.status, &status) {
        return None;
    }
    // The identity is tested first: nothing is said of another queue of the name.
    Some(json!([
        {"op": "test", "path": "/metadata/uid", "value": queue.meta.uid},
        {"op": "add", "path": "/status", "value": status},
    ]))
}

/// Whether a status differs by usage alone, which was written less than a while before.
fn is_usage_alone(before: &Value, after: &Value) -> bool {
    let without = |status: &Value| {
        let mut status = status.clone();
        status.as_object_mut().and_then(|fields| fields.remove("usage"));
        status
    };
    let at = |status: &Value| status["usage"]["asOf"].as_str()?.parse::<Timestamp>().ok();
    let (Some(earlier), Some(later)) = (at(before), at(after)) else { return false };
    let since_ms = later.as_millisecond().saturating_sub(earlier.as_millisecond());
    (0..USAGE_MS as i64).contains(&since_ms) && without(before) == without(after)
}

fn condition(problem: Option<&QueueProblem>) -> QueueCondition {
    let (status, reason) = match problem {
        None => ("True", "Ready"),
        Some(problem) => ("False", problem.word()),
    };
    let message = problem.map(ToString::to_string).unwrap_or_default();
    let message = harmless(&message).to_string();
    QueueCondition { r#type: "Ready", status, reason, message, last_transition_time: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_says_what_it_holds_what_of_it_is_borrowed_and_who_waits() {
        let object = json!({"metadata": {"name": "team"}, "spec": {
            "guaranteed": {"nvidia.com/gpu": 4, "cpu": "32"}, "limit": {"nvidia.com/gpu": 8}}});
        let mut queue: Queue = serde_json::from_value(object).unwrap();
        let used = Charge {
            gpu_milli: 6_000,
            cpu_milli: 12_500,
            memory_bytes: 3 << 30,
            ..Charge::default()
        };
        let usage = QueueUse { used, share: 375_000_000 };
        let pending = WaitingBelow { jobs: 2, pods: 9 };
        let rules = Rules::default();
        let says = |queue: &Queue, problem: Option<&QueueProblem>, now_ms| {
            let known = KnownUsage { usage: &usage, used: &[], pending };
            let wanted = status(queue, problem, known, &rules);
            patch(queue, &wanted, now_ms).map(|patch| patch[1]["value"].clone())
        };
        let since = "2026-11-30T00:53:20Z";
        let expected = json!({
            "used": {"nvidia.com/gpu": "6", "cpu": "12500m", "memory": "3Gi"},
            "borrowed": {"nvidia.com/gpu": "2"},
            "gpus": {"used": "6", "borrowed": "2", "guaranteed": "4", "limit": "8"},
            "pending": {"jobs": 2, "pods": 9},
            "share": "37.5%",
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": since}],
        });
        let first = says(&queue, None, 1_796_000_000_000);
        assert_eq!(first.as_ref(), Some(&expected));
        queue.status = expected;
        assert_eq!(says(&queue, None, 1_796_000_009_000), None, "nothing new is nothing to write");
        let problem = QueueProblem::ParentMissing { parent: "all".to_owned() };
        let broken = says(&queue, Some(&problem), 1_796_000_009_000).unwrap();
        assert_eq!(broken["conditions"][0]["reason"], "ParentMissing");
        assert_eq!(broken["conditions"][0]["lastTransitionTime"], "2026-11-30T00:53:29Z");
    }
    #[test]
    fn usage_is_written_with_its_time_and_read_again_and_alone_not_too_often() {
        let mut queue: Queue =
            serde_json::from_value(json!({"metadata": {"name": "team"}})).unwrap();
        assert_eq!(usage(&queue), []);
        let holds = QueueUse { used: Charge::default(), share: 0 };
        let used = |all: u64, at_ms: u64| {
            let of = |is_own, used| QueueUsage { queue: "team".to_owned(), is_own, used, at_ms };
            [of(false, all), of(true, 7)]
        };
        let says = |queue: &Queue, used: &[QueueUsage], jobs: u64, now_ms: u64| {
            let pending = WaitingBelow { jobs, pods: jobs };
            let known = KnownUsage { usage: &holds, used, pending };
            let wanted = status(queue, None, known, &Rules::default());
            patch(queue, &wanted, now_ms).map(|patch| patch[1]["value"].clone())
        };
        let at_ms = 1_796_000_000_123;
        queue.status = says(&queue, &used(1_000, at_ms), 0, at_ms).unwrap();
        assert_eq!(queue.status["usage"]["asOf"], "2026-11-30T00:53:20.123Z");
        assert_eq!(usage(&queue), used(1_000, at_ms));
        let after = |ms: u64| used(2_000, at_ms + ms);
        assert_eq!(says(&queue, &after(29_999), 0, at_ms), None);
        assert!(says(&queue, &after(30_000), 0, at_ms).is_some());
        assert!(says(&queue, &after(1), 1, at_ms).is_some(), "with a change it is written, too");
    }
}
