//! Which pods a drain can move: what they request in all, and what keeps the eviction API from
//! evicting them.

use dovetail_audit::audit;
use serde_json::{Value, json};

use crate::facts::{gathered_whole, node, pod};
use crate::harm::deployment;

/// A server with one GPU on each of two nodes with 190 CPU, and more objects.
fn servers(change: &dyn Fn(&mut Value), more: &[Value]) -> Vec<Value> {
    let server = |(name, on): (&str, &str)| {
        let mut server = pod(name, "Deployment/serve", 1, on);
        change(&mut server["spec"]);
        server
    };
    let mut objects = vec![node("g1", 8), node("g2", 8)];
    objects.extend([("serve-0", "g1"), ("serve-1", "g2")].map(server));
    objects.extend_from_slice(more);
    objects
}

/// How many pods AUT-07 moves, and how many findings AUT-02 has.
fn found(objects: &[Value]) -> (usize, usize) {
    let found = audit(&gathered_whole(objects).facts);
    let of = |id: &'static str| found.iter().filter(move |finding| finding.check.id == id);
    (of("AUT-07").map(|finding| finding.moves.len()).sum(), of("AUT-02").count())
}

/// By hand: two pods of 80 CPU fit on one node, and two of 100 do not.
#[test]
fn overhead_and_requests_of_the_whole_pod_count_for_a_move() {
    let moves = |cpu: &str, beside: Value| {
        let change = |spec: &mut Value| {
            spec["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu);
            for (field, value) in beside.as_object().into_iter().flatten() {
                spec[field.as_str()] = value.clone();
            }
        };
        found(&servers(&change, &[])).0
    };
    assert_eq!(moves("80", json!({})), 1);
    assert_eq!(moves("100", json!({})), 0);
    assert_eq!(moves("80", json!({"overhead": {"cpu": "15"}})), 1);
    assert_eq!(moves("80", json!({"overhead": {"cpu": "20"}})), 0);
    let of_pod = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
    assert_eq!(moves("1", of_pod("95")), 1);
    assert_eq!(moves("1", of_pod("100")), 0);
}

/// Each of the budgets lets one of the two pods go.
#[test]
fn a_pod_that_several_budgets_select_is_not_evicted() {
    let budget = |name: &str, app: &str| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "research"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}}})
    };
    let with = |budgets: &[Value]| found(&servers(&|_| {}, budgets));
    assert_eq!(with(&[budget("chart", "a")]), (1, 0));
    assert_eq!(with(&[budget("chart", "a"), budget("other", "b")]), (1, 0));
    // The same one, listed twice.
    assert_eq!(with(&[budget("chart", "a"), budget("chart", "a")]), (1, 0));
    assert_eq!(with(&[budget("chart", "a"), budget("platform", "a")]), (0, 1));
}

/// The successor of an evicted pod runs on the node that the template names.
#[test]
fn a_pod_whose_template_names_a_node_does_not_move() {
    let with = |node: &str| {
        let spec = pod("serve", "Deployment/serve", 1, node)["spec"].clone();
        found(&servers(&|_| {}, &[deployment("serve", 2, spec, json!({}))])).0
    };
    assert_eq!((with(""), with("g1")), (1, 0));
}
