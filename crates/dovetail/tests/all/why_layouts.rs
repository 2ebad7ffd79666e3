//! What `dovetail why` says about the layout of nodes for pods that wait for slices.

use dovetail_testkit::FakeApi;
use dovetail_testkit::fake_api::ResourceKind;
use serde_json::{Value, json};

use crate::live::{cluster, connected};

const SLICE: &str = "nvidia.com/mig-1g.10gb";

/// A pod that has been pending for long and requests a slice.
fn slice() -> Value {
    json!({"metadata": {"name": "tenant", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"schedulerName": "dovetail", "containers": [
            {"name": "c", "image": "i", "resources": {"limits": {SLICE: "1"}}}]}})
}

fn with_policy(spec: &Value, status: &Value) -> FakeApi {
    let api = cluster(&[slice()]);
    let kind = ResourceKind::custom("dovetail.dev", "v1alpha1", "SharingPolicy", "sharingpolicies");
    api.register(kind.cluster_scoped());
    let policy = json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "SharingPolicy",
        "metadata": {"name": "shared"}, "spec": spec});
    api.create("sharingpolicies", "", &policy).expect("a new policy");
    let status = json!({"status": status});
    api.merge("sharingpolicies", "", "shared", "status", &status).expect("a report");
    api
}

fn planned() -> Value {
    json!({"step": "Idle", "next": {"node": "n1", "from": "8 × whole",
        "to": "1 × [1g.10gb][1g.10gb], 7 × whole",
        "why": "planned: the policy does not set `apply: true`"}})
}

#[test]
fn why_names_the_layout_change_that_is_planned_or_under_way_for_slices() {
    let api = with_policy(&json!({"mode": "mig"}), &planned());
    let folder = connected(&api);
    let why = || folder.json("why tenant --kubeconfig kubeconfig")["layout_changes"].clone();
    let expected = json!([{"resource": SLICE, "state": "planned", "policy": "shared",
        "node": "n1", "from": "8 × whole", "to": "1 × [1g.10gb][1g.10gb], 7 × whole",
        "step": "Idle", "why": "the policy does not set `apply: true`"}]);
    assert_eq!(why(), expected);
    let told = folder.call("why tenant --kubeconfig kubeconfig").out;
    let told: Vec<&str> = told.split_whitespace().collect();
    let expected = "layout changes nvidia.com/mig-1g.10gb: planned for node n1: from 8 × whole to \
                    1 × [1g.10gb][1g.10gb], 7 × whole by policy shared (step Idle): the policy \
                    does not set `apply: true`";
    assert!(told.join(" ").contains(expected), "{told:?}");

    // What a node is in the middle of comes before what is planned.
    let record = json!({"step": "Applying", "sinceMs": 1, "startedMs": 1, "asked": "dovetail-a",
        "attempt": 1, "from": {"config": "all-disabled", "layout": [null, null]},
        "to": {"config": "dovetail-a", "layout": [{"1g.10gb": 7}, null]}});
    let annotated =
        json!({"metadata": {"annotations": {"dovetail.dev/partition": record.to_string()}}});
    api.merge("nodes", "", "n0", "", &annotated).expect("a record");
    let changes = why();
    let changing = ["state", "node", "step", "to", "policy"].map(|key| changes[0][key].clone());
    let to = "1 × [1g.10gb][1g.10gb][1g.10gb][1g.10gb][1g.10gb][1g.10gb][1g.10gb], 1 × whole";
    assert_eq!(json!(changing), json!(["changing", "n0", "Applying", to, "shared"]));
}

#[test]
fn why_says_why_no_layout_change_is_planned_and_nothing_about_whole_gpus() {
    let api =
        with_policy(&json!({"mode": "mig", "profiles": ["3g.40gb"]}), &json!({"step": "Idle"}));
    api.create("pods", "team", &crate::live::pod("whole", 99)).expect("a new pod");
    let folder = connected(&api);
    let why = folder.json("why tenant --kubeconfig kubeconfig");
    let change = &why["layout_changes"][0];
    assert_eq!(change["state"], "none");
    let expected = "policy shared does not list profile 1g.10gb in spec.profiles";
    assert!(change["why"].as_str().is_some_and(|why| why.ends_with(expected)), "{change}");
    let told = folder.call("why tenant --kubeconfig kubeconfig").out;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let start = format!("{SLICE}: none is planned: ");
    assert!(told.contains(&start) && told.contains(expected), "{told}");
    let whole = folder.json("why whole --kubeconfig kubeconfig");
    assert_eq!(whole.get("layout_changes"), None);
}
