//! Pods that some nodes alone can run: what was allocated to their claims is there, or their
//! template names the node. No patch takes these nodes from them.

use dovetail_inventory::dump::{Keeper, Pseudonyms};
use serde_json::{Value, json};

use crate::facts::{node, pod};
use crate::harm::{audited, deployment, plain_node};

/// What becomes of the taint of a GPU node, and of the change that keeps pods off it.
#[derive(Debug, PartialEq)]
struct Told {
    is_tainted: bool,
    is_moved: bool,
    /// Pods that would be harmed, ascending.
    pods: Vec<String>,
    orders: String,
}

/// A GPU node without a taint, a plain node, a pod with GPUs that tolerates the taint, and these.
fn told(more: &[Value]) -> Told {
    let mut open = node("g1", 8);
    open["spec"]["taints"] = json!([]);
    open["metadata"]["labels"].as_object_mut().expect("labels").remove("karpenter.sh/nodepool");
    let runs = pod("runs-0", "StatefulSet/runs", 4, "g1");
    let objects = [&[open, plain_node("c1"), runs][..], more].concat();
    let (findings, safe, _) = audited(&objects);
    assert!(findings.contains(&"SCH-01 Node/g1".to_owned()), "{findings:?}");
    let withheld = safe.withheld.iter().flat_map(|of| &of.pods).map(|of| of.name.clone());
    let mut pods: Vec<String> = withheld.collect();
    pods.sort();
    pods.dedup();
    let orders: Vec<&str> = safe.withheld.iter().map(|of| of.order.as_str()).collect();
    Told {
        is_tainted: safe.written.iter().any(|safe| safe.patch.nodes.is_some()),
        is_moved: safe.written.iter().any(|safe| safe.patch.checks.contains(&"SCH-02")),
        pods,
        orders: orders.join("; "),
    }
}

/// A pod without GPUs on a node, or pending, with its Deployment. `change` is made of its spec.
fn web(on: &str, names_node: bool, change: &dyn Fn(&mut Value)) -> [Value; 2] {
    let mut web = pod("web-0", "Deployment/web", 0, on);
    web["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    web["spec"]["tolerations"] = json!([]);
    change(&mut web["spec"]);
    let mut spec = web["spec"].clone();
    if !names_node {
        spec.as_object_mut().expect("a map").remove("nodeName");
    }
    [web, deployment("web", 1, spec, json!({"type": "Recreate"}))]
}

/// A claim of a network card that nodes with these terms can use.
fn card(name: &str, terms: &Value) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "research", "uid": name},
        "spec": {"devices": {"requests": [
            {"name": "card", "exactly": {"deviceClassName": "nic.example.com"}}]}},
        "status": {
            "allocation": {
                "devices": {"results": [{"request": "card", "driver": "nic.example.com",
                    "pool": "cards", "device": "card-0"}]},
                "nodeSelector": {"nodeSelectorTerms": terms}},
            "reservedFor": [{"resource": "pods", "name": "web-0", "uid": "web-0"}]}})
}

fn on_node(name: &str) -> Value {
    json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}])
}

fn uses_card(spec: &mut Value) {
    spec["resourceClaims"] = json!([{"name": "card", "resourceClaimName": "card"}]);
}

#[test]
fn a_pod_keeps_the_only_node_that_can_use_its_claim() {
    let plain = told(&web("g1", false, &|_| {}));
    assert!(plain.is_tainted && plain.is_moved, "{plain:?}");
    let [web_pod, owner] = web("g1", false, &uses_card);
    let bound = told(&[web_pod, owner, card("card", &on_node("g1"))]);
    assert!(!bound.is_tainted && !bound.is_moved, "{bound:?}");
    assert_eq!(bound.pods, ["web-0"]);
    assert!(bound.orders.contains("allocated to ResourceClaims"), "{}", bound.orders);
    // By the name that the status gives to the claim of a template.
    let [mut web_pod, owner] = web("g1", false, &|spec| {
        spec["resourceClaims"] = json!([{"name": "card", "resourceClaimTemplateName": "cards"}]);
    });
    web_pod["status"]["resourceClaimStatuses"] =
        json!([{"name": "card", "resourceClaimName": "web-0-card-x7x2p"}]);
    let made = told(&[web_pod, owner, card("web-0-card-x7x2p", &on_node("g1"))]);
    assert_eq!(made, bound);
}

/// With hidden names, the terms name the node as it is named itself.
#[test]
fn a_collection_keeps_where_a_claim_can_be_used() {
    let written = card("card", &on_node("g1"));
    let kept = Keeper::default().keep("ResourceClaim", "resource.k8s.io/v1", &written);
    let kept = kept.expect("a claim");
    let terms = "/status/allocation/nodeSelector/nodeSelectorTerms";
    assert_eq!(kept.pointer(terms), Some(&on_node("g1")));
    let mut names = Pseudonyms::new([7; 32]);
    let name = names.replace(&plain_node("g1"))["metadata"]["name"].clone();
    assert_ne!(name, "g1");
    let hidden = on_node(name.as_str().expect("a name"));
    assert_eq!(names.replace(&kept).pointer(terms), Some(&hidden));
}

#[test]
fn a_pending_pod_keeps_the_node_of_its_claim() {
    let pending = |terms: &Value| {
        let [mut web_pod, owner] = web("", false, &uses_card);
        web_pod["status"]["phase"] = json!("Pending");
        told(&[web_pod, owner, card("card", terms)])
    };
    let bound = pending(&on_node("g1"));
    assert_eq!((bound.is_tainted, &*bound.pods), (false, &["web-0".to_owned()][..]));
    assert!(pending(&on_node("c1")).is_tainted);
}

/// A claim outlives the runs of a CronJob that names it.
#[test]
fn pods_to_come_keep_the_node_of_their_claim() {
    let cron = |terms: &Value| {
        let mut spec = json!({"containers": [{"name": "m", "image": "i"}]});
        uses_card(&mut spec);
        let job = json!({"spec": {"template": {"spec": spec}}});
        let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": "nightly", "namespace": "research"},
            "spec": {"schedule": "0 1 * * *", "jobTemplate": job}});
        told(&[cron, card("card", terms)])
    };
    let bound = cron(&on_node("g1"));
    assert_eq!((bound.is_tainted, &*bound.pods), (false, &["nightly".to_owned()][..]));
    assert!(cron(&on_node("c1")).is_tainted);
}

/// Both nodes can use the claim, and a new one may get no device on the other.
#[test]
fn a_pod_with_a_claim_moves_to_no_other_node() {
    let terms = json!([{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["c1", "g1"]}]}]);
    let [web_pod, owner] = web("g1", false, &uses_card);
    let both = told(&[web_pod, owner, card("card", &terms)]);
    assert!(!both.is_tainted && !both.is_moved, "{both:?}");
    assert_eq!(both.pods, ["web-0"]);
    assert!(both.orders.contains("does not check which devices"), "{}", both.orders);
}

/// The kubelet rejects a pod that comes past the scheduler and does not match its node; a taint
/// that keeps the scheduler away is nothing to it.
#[test]
fn a_template_that_names_a_node_gets_no_change_that_its_node_does_not_match() {
    let named = told(&web("g1", true, &|_| {}));
    assert!(named.is_tainted && !named.is_moved, "{named:?}");
    assert_eq!(named.pods, ["web-0"]);
    assert!(named.orders.contains("sets spec.nodeName"), "{}", named.orders);
}

/// The extra pod of a rolling update starts on the node that the template names, too.
#[test]
fn a_rolling_update_of_pods_on_a_named_node_needs_room_there() {
    let withheld = |names_node: bool, strategy: Value| {
        let mut load = pod("load-0", "Deployment/load", 8, "g1");
        load["metadata"]["labels"] = json!({"dovetail.dev/class": "training"});
        let mut spec = load["spec"].clone();
        if !names_node {
            spec.as_object_mut().expect("a map").remove("nodeName");
        }
        let owner = deployment("load", 1, spec, strategy);
        let (findings, safe, _) = audited(&[node("g1", 8), node("g2", 8), load, owner]);
        assert!(findings.contains(&"REQ-12 Deployment/load".to_owned()), "{findings:?}");
        let is_written = safe.written.iter().any(|safe| safe.patch.checks.contains(&"REQ-12"));
        let is_full = safe.withheld.iter().any(|of| of.order.contains("lack room on their node"));
        assert_ne!(is_written, is_full, "{:?}", safe.withheld);
        is_full
    };
    assert!(withheld(true, json!(null)));
    assert!(!withheld(false, json!(null)));
    let in_place = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
    assert!(!withheld(true, in_place));
}

/// The node accepts pods once its agent runs, or unless it is removed in the end.
#[test]
fn a_node_that_starts_or_may_stay_is_kept_for_pods_that_select_it() {
    for key in ["node.cilium.io/agent-not-ready", "karpenter.sh/unregistered"] {
        let mut starting = node("g2", 8);
        starting["spec"]["taints"] = json!([{"key": key, "effect": "NoSchedule"}]);
        let labels = starting["metadata"]["labels"].as_object_mut().expect("labels");
        labels.remove("karpenter.sh/nodepool");
        let [mut web_pod, owner] = web("", false, &|spec| {
            spec["nodeSelector"] = json!({"kubernetes.io/hostname": "g2"});
        });
        web_pod["status"]["phase"] = json!("Pending");
        assert_eq!(told(&[starting, web_pod, owner]).pods, ["web-0"], "{key}");
    }
}
