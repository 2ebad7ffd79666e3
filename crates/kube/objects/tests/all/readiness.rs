//! Whether the devices of a claim are ready for a pod, by the conditions that their drivers set.

use serde_json::{Value, json};

use dovetail_objects::{Readiness, ResourceClaim};

/// A claim of two devices, of which the second awaits two conditions.
fn claim(conditions: Value) -> ResourceClaim {
    let device = |name: &str| json!({"driver": "d", "pool": "p", "device": name});
    let mut awaiting = device("b");
    awaiting["bindingConditions"] = json!(["Attached", "Warm"]);
    awaiting["bindingFailureConditions"] = json!(["Broken"]);
    let mut status = device("b");
    status["conditions"] = conditions;
    let claim = json!({"status": {"devices": [status],
        "allocation": {"devices": {"results": [device("a"), awaiting]}}}});
    serde_json::from_value(claim).expect("a claim")
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "message": "the cable is gone"})
}

#[test]
fn devices_are_ready_once_all_conditions_that_they_await_are_true() {
    let waits = Readiness::Waits(vec!["d/p/b".to_owned()]);
    for (conditions, expected) in [
        (json!(null), waits.clone()),
        (json!([condition("Attached", "True")]), waits.clone()),
        (json!([condition("Attached", "True"), condition("Warm", "Unknown")]), waits),
        (json!([condition("Attached", "True"), condition("Warm", "True")]), Readiness::Ready),
    ] {
        assert_eq!(claim(conditions.clone()).readiness(), expected, "{conditions}");
    }
    let mut other = claim(json!([condition("Attached", "True"), condition("Warm", "True")]));
    other.devices[0].share = "share".into();
    assert!(matches!(other.readiness(), Readiness::Waits(_)), "it is about another share");
}

#[test]
fn a_failure_condition_counts_only_while_it_is_true() {
    let is_failed = |status: &str| {
        let conditions = json!([condition("Attached", "True"), condition("Broken", status)]);
        matches!(claim(conditions).readiness(), Readiness::Failed { .. })
    };
    assert_eq!([is_failed("True"), is_failed("False")], [true, false]);
    let Readiness::Failed { device, condition } =
        claim(json!([condition("Broken", "True")])).readiness()
    else {
        panic!("it has failed");
    };
    assert_eq!((&*device, &*condition), ("d/p/b", "Broken: the cable is gone"));
}
