//! What a queue says of itself: `status` of its object.

use std::collections::BTreeMap;

use dovetail_model::{Axis, Bounds, Charge};
use dovetail_objects::{Queue, harmless};
use dovetail_plan::QueueUse;
use dovetail_plan::engine::WaitingBelow;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Problem;
use super::amounts::{amount_of, bounds, held, percent, written};
use crate::translate::Rules;

/// What a queue is to say, without the times of its conditions.
pub fn status(
    queue: &Queue,
    problem: Option<&Problem>,
    usage: &QueueUse,
    pending: WaitingBelow,
    rules: &Rules,
) -> Value {
    let guaranteed = bounds(&queue.guaranteed, rules);
    let borrowed = beyond(&usage.used, &guaranteed);
    let gpus = |amount: i64| written(&Axis::Gpu, amount);
    let mut of_gpus = BTreeMap::from([
        ("used", gpus(usage.used.gpu_milli)),
        ("borrowed", gpus(borrowed.gpu_milli)),
    ]);
    for (field, amounts) in [("guaranteed", &queue.guaranteed), ("limit", &queue.limit)] {
        let said = amount_of(&Axis::Gpu, amounts, rules);
        of_gpus.extend(said.map(|amount| (field, amount.to_string())));
    }
    json!({
        "used": held(&usage.used, rules),
        "borrowed": held(&borrowed, rules),
        "gpus": of_gpus,
        "pending": {"jobs": pending.jobs, "pods": pending.pods},
        "share": percent(usage.share),
        "conditions": [condition(problem)],
    })
}

/// What is held of guaranteed resources beyond what is guaranteed.
fn beyond(used: &Charge, guaranteed: &Bounds) -> Charge {
    let mut beyond = Charge::default();
    for (axis, most) in guaranteed.iter() {
        let over = used.get(&axis).saturating_sub(most).max(0);
        match axis {
            Axis::Gpu => beyond.gpu_milli = over,
            Axis::Cpu => beyond.cpu_milli = over,
            Axis::Memory => beyond.memory_bytes = over,
            Axis::Extended(name) => drop(beyond.extended.insert(name, over)),
        }
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
    if status == queue.status {
        return None;
    }
    // The identity is tested first: nothing is said of another queue of the name.
    Some(json!([
        {"op": "test", "path": "/metadata/uid", "value": queue.meta.uid},
        {"op": "add", "path": "/status", "value": status},
    ]))
}

/// The condition `Ready`.
fn condition(problem: Option<&Problem>) -> Value {
    let (status, reason) = match problem {
        None => ("True", "Ready"),
        Some(problem) => ("False", problem.word()),
    };
    let message = problem.map(ToString::to_string).unwrap_or_default();
    let message = harmless(&message);
    json!({"type": "Ready", "status": status, "reason": reason, "message": message})
}

pub(super) fn timestamp(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    format!("{:.0}", at.unwrap_or_default())
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
        let says = |queue: &Queue, problem: Option<&Problem>, now_ms| {
            let wanted = status(queue, problem, &usage, pending, &rules);
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
        let problem = Problem::ParentMissing { parent: "all".to_owned() };
        let broken = says(&queue, Some(&problem), 1_796_000_009_000).unwrap();
        assert_eq!(broken["conditions"][0]["reason"], "ParentMissing");
        assert_eq!(broken["conditions"][0]["lastTransitionTime"], "2026-11-30T00:53:29Z");
    }
}
