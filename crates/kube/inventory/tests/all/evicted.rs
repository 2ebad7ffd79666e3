//! Which pods a drain can move: what they request in all, and what keeps the eviction API from
//! evicting them.

use dovetail_audit::{audit, claim_bound_nodes};
use dovetail_inventory::dump::Keeper;
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

/// Fewer replicas of a StatefulSet may delete the volumes of those that it removes. A collection
/// says the same.
#[test]
fn a_stateful_set_that_deletes_the_volumes_of_removed_replicas_is_known() {
    let deletes = |policy: Value| {
        let server = pod("serve-0", "StatefulSet/serve", 1, "g1");
        let template = json!({"spec": server["spec"]});
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "serve", "namespace": "research", "resourceVersion": "1"},
            "spec": {"replicas": 1, "template": template,
                "persistentVolumeClaimRetentionPolicy": policy}});
        let kept = Keeper::default().keep("StatefulSet", "apps/v1", &set).expect("a set");
        let [written, kept] = [set, kept].map(|set| {
            let facts = gathered_whole(&[node("g1", 8), server.clone(), set]).facts;
            let of_set = facts.workloads.iter().find(|of| of.owner.name == "serve");
            of_set.expect("a workload").scale_down_deletes_volumes
        });
        assert_eq!(written, kept);
        written
    };
    assert!(deletes(json!({"whenDeleted": "Retain", "whenScaled": "Delete"})));
    assert!(!deletes(json!({"whenDeleted": "Delete", "whenScaled": "Retain"})));
    assert!(!deletes(Value::Null));
}

/// What the claim of a network card gets on another node is not known.
#[test]
fn a_pod_with_a_claim_of_any_device_does_not_move_and_its_node_is_named() {
    let of_card = |spec: &mut Value| {
        spec["resourceClaims"] = json!([{"name": "nic", "resourceClaimName": "nic"}]);
    };
    let claim = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "nic", "namespace": "research"},
        "spec": {"devices": {"requests": [
            {"name": "nic", "exactly": {"deviceClassName": "nic.example.com"}}]}}});
    let objects = servers(&of_card, &[claim]);
    assert_eq!(found(&objects).0, 0);
    let bound = claim_bound_nodes(&gathered_whole(&objects).facts);
    let pods: Vec<&str> = bound.iter().flat_map(|of| &of.pods).map(String::as_str).collect();
    let named = ["serve-0", "serve-1"].map(|pod| format!("pod research/{pod}: ResourceClaim nic"));
    assert_eq!(pods, named);
}
