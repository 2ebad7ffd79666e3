//! Patches of templates whose new pods the API server rejects, or whose old pods others need beside
//! them; and what restarts cost.

use std::collections::BTreeSet;

use dovetail_inventory::dump::{Keeper, Pseudonyms};
use dovetail_trials::SafePatches;
use serde_json::{Value, json};

use crate::facts::{node, pod};
use crate::harm::{audited, deployment, plain_node};

const GPU: &str = "nvidia.com/gpu";

/// A pod of one GPU and 90 of 190 cores: REQ-08 lowers the request to 23750m.
fn greedy(owner: &str, limits: Value) -> Value {
    let mut fat = pod("fat-0", owner, 1, "g1");
    let resources = &mut fat["spec"]["containers"][0]["resources"];
    resources["requests"]["cpu"] = json!("90");
    resources["limits"] = limits;
    fat
}

/// Its owner.
fn owner_of(pod: &Value, kind: &str, strategy: Value) -> Value {
    let mut spec = pod["spec"].clone();
    spec.as_object_mut().expect("a map").remove("nodeName");
    let mut owner = deployment("fat", 1, spec, strategy);
    owner["kind"] = json!(kind);
    owner
}

fn in_place() -> Value {
    json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
}

/// The warnings of the patch of REQ-08; or why it is not written.
fn lowered(pod: Value, owner: Value, more: &[Value]) -> Result<String, String> {
    let objects: Vec<Value> =
        [node("g1", 8), pod, owner].into_iter().chain(more.iter().cloned()).collect();
    let (findings, safe, _) = audited(&objects);
    assert!(findings.iter().any(|of| of.starts_with("REQ-08 ")), "{findings:?}");
    let SafePatches { written, withheld } = safe;
    let of_check = written.into_iter().find(|safe| safe.patch.checks.contains(&"REQ-08"));
    match of_check {
        Some(safe) => Ok(safe.patch.warnings.join("; ")),
        None => Err(withheld.into_iter().map(|of| of.order).collect::<Vec<_>>().join("; ")),
    }
}

fn limit_range(namespace: &str, item: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": [item]},
        "metadata": {"name": "bounds", "namespace": namespace}})
}

/// The API server rejects the new pod, and the old one is gone.
#[test]
fn a_request_outside_a_limit_range_is_not_written() {
    let lowered = |cpu_limit: Option<&str>, range: Option<Value>| {
        let mut limits = json!({GPU: "1"});
        if let Some(cpu) = cpu_limit {
            limits["cpu"] = json!(cpu);
        }
        let fat = greedy("Deployment/fat", limits);
        let owner = owner_of(&fat, "Deployment", in_place());
        lowered(fat, owner, range.as_slice())
    };
    let rejected = |cpu_limit: Option<&str>, item: Value, why: &str| {
        let order = lowered(cpu_limit, Some(limit_range("research", item)));
        let order = order.expect_err("it is not written");
        let sentence = format!("LimitRange bounds requires a {why}, so the API server");
        assert!(order.contains(&sentence) && order.contains("Deployment research/fat"), "{order}");
    };
    let container = |bound: &str, cpu: &str| json!({"type": "Container", bound: {"cpu": cpu}});
    let of_main = |what: &str| format!("cpu {what} for container main");
    rejected(None, container("min", "32"), &of_main("request of at least 32"));
    rejected(
        None,
        json!({"type": "Pod", "min": {"cpu": "32"}}),
        "cpu request of at least 32 for the sum of the containers",
    );
    rejected(Some("90"), container("max", "64"), &of_main("limit of at most 64"));
    let ratio = || container("maxLimitRequestRatio", "2");
    rejected(Some("90"), ratio(), &of_main("limit of at most 2 times the request"));
    // A limit that is filled in, below the request; one that is not.
    let default = |cpu: &str| {
        let item =
            json!({"type": "Container", "default": {"cpu": cpu}, "defaultRequest": {"cpu": "1"}});
        lowered(None, Some(limit_range("research", item)))
    };
    let order = default("10").expect_err("it is not written");
    let sentence = "LimitRange bounds sets a default cpu limit of 10, less than the request of 23";
    assert!(
        order.contains(sentence) && order.contains("for container main, so the API"),
        "{order}"
    );
    assert!(default("32").is_ok());
    // A minimum that it meets, a limit that is filled in, a limit near the request, none at all.
    let written = |cpu_limit: Option<&str>, item: Value| {
        let of = lowered(cpu_limit, Some(limit_range("research", item)));
        assert!(of.is_ok(), "{of:?}");
    };
    written(None, container("min", "16"));
    written(None, container("max", "64"));
    written(Some("90"), container("maxLimitRequestRatio", "4"));
    written(None, json!({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}}));
    assert!(lowered(None, None).is_ok());
    let elsewhere = limit_range("other", container("min", "32"));
    assert!(lowered(None, Some(elsewhere)).is_ok());
}

/// A full quota rejects the pod that the rolling update creates first.
#[test]
fn a_rolling_update_that_a_quota_blocks_is_not_written() {
    let lowered = |strategy: Value, resource: &str, used: &str, hard: &str, scopes: Value| {
        let fat = greedy("Deployment/fat", json!({GPU: "1", "cpu": "90"}));
        let owner = owner_of(&fat, "Deployment", strategy);
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "research"},
            "spec": {"hard": {resource: hard}, "scopes": scopes},
            "status": {"hard": {resource: hard}, "used": {resource: used}}});
        lowered(fat, owner, &[quota])
    };
    let gpus = format!("requests.{GPU}");
    let all = || json!([]);
    let order = lowered(json!(null), &gpus, "1", "1", all()).expect_err("no second pod");
    assert!(order.contains(&format!("ResourceQuota q has 0 of {gpus} left")), "{order}");
    assert!(order.contains("a new pod needs 1, so the rolling update"), "{order}");
    assert!(order.contains("Deployment research/fat to maxSurge 0 and maxUnavailable 1"));
    assert!(lowered(json!(null), "limits.cpu", "90", "100", all()).is_err());
    assert!(lowered(json!(null), "pods", "4", "4", all()).is_err());
    // There is room, the old pod goes first, or the quota is for other pods.
    assert!(lowered(json!(null), &gpus, "1", "2", all()).is_ok());
    assert!(lowered(json!(null), "limits.cpu", "90", "180", all()).is_ok());
    assert!(lowered(in_place(), &gpus, "1", "1", all()).is_ok());
    assert!(lowered(json!({"type": "Recreate"}), &gpus, "1", "1", all()).is_ok());
    assert!(lowered(json!(null), &gpus, "1", "1", json!(["Terminating"])).is_ok());
    // It was made smaller since: what is terminated does not come back.
    assert!(lowered(in_place(), &gpus, "2", "1", all()).is_err());
}

/// A quota of limits accepts no pod without them, however much of it is left.
#[test]
fn a_patch_whose_pods_lack_what_a_quota_requires_is_not_written() {
    let lowered = |resource: &str, limits: Value, scopes: Value, more: Option<Value>| {
        let fat = greedy("Deployment/fat", limits);
        let owner = owner_of(&fat, "Deployment", in_place());
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "research"},
            "spec": {"hard": {resource: "200Gi"}, "scopes": scopes},
            "status": {"hard": {resource: "200Gi"}, "used": {resource: "0"}}});
        let objects: Vec<Value> = [quota].into_iter().chain(more).collect();
        lowered(fat, owner, &objects)
    };
    let plain = || json!({GPU: "1"});
    let order = lowered("limits.cpu", plain(), json!([]), None).expect_err("no limit");
    let sentence =
        "ResourceQuota q requires a cpu limit for container main, so the API server would reject";
    assert!(order.contains(sentence), "{order}");
    assert!(lowered("limits.memory", plain(), json!([]), None).is_err());
    // It has one, a LimitRange gives it one, the quota is for other pods, or asks for none.
    let limited = json!({GPU: "1", "cpu": "90"});
    assert!(lowered("limits.cpu", limited, json!([]), None).is_ok());
    let filled =
        json!({"type": "Container", "default": {"cpu": "100"}, "defaultRequest": {"cpu": "1"}});
    let range = limit_range("research", filled);
    assert!(lowered("limits.cpu", plain(), json!([]), Some(range)).is_ok());
    assert!(lowered("limits.cpu", plain(), json!(["Terminating"]), None).is_ok());
    assert!(lowered("requests.cpu", plain(), json!([]), None).is_ok());
    assert!(lowered("limits.ephemeral-storage", plain(), json!([]), None).is_ok());
}

/// The rule is younger than the pods: they run, and new ones like them are rejected.
#[test]
fn pods_that_the_api_server_would_not_let_in_again_keep_their_nodes() {
    let drained = |more: &[Value]| {
        let pods = ["a", "b"]
            .into_iter()
            .zip(["g1", "g2"])
            .map(|(name, on)| pod(&format!("{name}-0"), &format!("Deployment/{name}"), 2, on));
        let nodes = [node("g1", 8), node("g2", 8)];
        let objects: Vec<Value> =
            nodes.into_iter().chain(pods).chain(more.iter().cloned()).collect();
        let (findings, _, found) = audited(&objects);
        let reasons = found.facts.workloads.iter().filter_map(|of| of.rejected_by.clone());
        let reasons: BTreeSet<String> = reasons.collect();
        let reasons: Vec<String> = reasons.into_iter().collect();
        (findings.iter().any(|of| of.starts_with("AUT-07 ")), reasons.join("; "))
    };
    let quota = |resource: &str, used: &str, hard: &str| {
        json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "research"},
            "spec": {"hard": {resource: hard}},
            "status": {"hard": {resource: hard}, "used": {resource: used}}})
    };
    let max =
        |cpu: &str| limit_range("research", json!({"type": "Container", "max": {"cpu": cpu}}));
    assert_eq!(drained(&[]), (true, String::new()));
    assert_eq!(drained(&[max("8")]), (true, String::new()));
    let reason = "LimitRange bounds requires a cpu request of at most 2 for container main";
    assert_eq!(drained(&[max("2")]), (false, reason.to_owned()));
    // What an eviction gives back is enough for its successor, unless the quota was lowered.
    let gpus = format!("requests.{GPU}");
    assert_eq!(drained(&[quota(&gpus, "4", "4")]), (true, String::new()));
    let (is_drained, reason) = drained(&[quota(&gpus, "4", "2")]);
    assert!(!is_drained && reason.starts_with("ResourceQuota q has 0 of"), "{reason}");
    let (is_drained, reason) = drained(&[quota("limits.memory", "0", "1Ti")]);
    let lacks = "ResourceQuota q requires a memory limit for container main";
    assert_eq!((is_drained, &*reason), (false, lacks));
}

/// The same load is more percent of a lower request.
#[test]
fn a_lower_request_says_what_an_autoscaler_makes_of_it() {
    let warns = |resource: &str, target: Value| {
        let fat = greedy("Deployment/fat", json!({GPU: "1"}));
        let owner = owner_of(&fat, "Deployment", in_place());
        let metric = json!({"type": "Resource", "resource": {"name": resource, "target": target}});
        let scaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "fat", "namespace": "research"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "fat"}, "maxReplicas": 4,
                "metrics": [metric]}});
        let warnings = lowered(fat, owner, &[scaler]).expect("a patch");
        warnings.contains("HorizontalPodAutoscaler research/fat scales on cpu utilization")
    };
    assert!(warns("cpu", json!({"type": "Utilization", "averageUtilization": 80})));
    assert!(!warns("cpu", json!({"type": "AverageValue", "averageValue": "20"})));
    assert!(!warns("memory", json!({"type": "Utilization", "averageUtilization": 80})));
}

/// A GPU server runs only beside its cache, which needs no GPU.
#[test]
fn pods_that_others_need_beside_them_are_not_moved() {
    let moved = |topology: &str, zones: [&str; 2], app: &str| {
        let (mut gpu, mut free) = (node("g1", 8), plain_node("c1"));
        for (node, zone) in [&mut gpu, &mut free].into_iter().zip(zones) {
            node["metadata"]["labels"]["zone"] = json!(zone);
        }
        let mut cache = pod("cache-0", "Deployment/fat", 0, "g1");
        cache["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
        cache["metadata"]["labels"] = json!({"app": "cache"});
        let mut serve = pod("serve-0", "Deployment/serve", 1, "g1");
        serve["spec"]["affinity"] = json!({"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": app}}}]}});
        let owner = owner_of(&cache, "Deployment", json!({"type": "Recreate"}));
        let (findings, safe, _) = audited(&[gpu, free, cache, serve, owner]);
        assert!(findings.contains(&"SCH-02 Deployment/fat".to_owned()), "{findings:?}");
        let orders = safe.withheld.iter().filter(|of| of.order.contains("required pod affinity"));
        let pods: BTreeSet<&str> =
            orders.flat_map(|of| &of.pods).map(|pod| pod.name.as_str()).collect();
        let pods = pods.into_iter().collect::<Vec<_>>().join(" ");
        (safe.written.iter().any(|safe| safe.patch.checks.contains(&"SCH-02")), pods)
    };
    let withheld = || (false, "serve-0".to_owned());
    let host = "kubernetes.io/hostname";
    assert_eq!(moved(host, ["a", "a"], "cache"), withheld());
    assert_eq!(moved("zone", ["a", "b"], "cache"), withheld());
    // The other node is in the zone, or it needs others.
    assert_eq!(moved("zone", ["a", "a"], "cache"), (true, String::new()));
    assert_eq!(moved(host, ["a", "a"], "other"), (true, String::new()));
}

/// Requests equal limits, of CPU and of memory, until the patch lowers one.
#[test]
fn a_patch_says_that_its_pods_are_no_longer_guaranteed() {
    let warns = |limits: Value| {
        let fat = greedy("Deployment/fat", limits);
        let owner = owner_of(&fat, "Deployment", in_place());
        lowered(fat, owner, &[]).expect("a patch").contains("become Burstable")
    };
    assert!(warns(json!({GPU: "1", "cpu": "90", "memory": "32Gi"})));
    assert!(!warns(json!({GPU: "1", "cpu": "90"})));
    assert!(!warns(json!({GPU: "1", "cpu": "96", "memory": "32Gi"})));
}

#[test]
fn a_patch_says_what_a_restart_of_running_work_loses() {
    let warns = |kind: &str, class: &str, checkpoint: bool| {
        let mut fat = greedy(&format!("{kind}/fat"), json!({GPU: "1"}));
        fat["metadata"]["labels"] = json!({"dovetail.dev/class": class});
        if checkpoint {
            fat["metadata"]["annotations"] = json!({"dovetail.dev/checkpoint-interval": "10m"});
        }
        let owner = owner_of(&fat, kind, in_place());
        lowered(fat, owner, &[]).expect("a patch")
    };
    let lost = "when its running pods restart, training without checkpoints loses its progress";
    for kind in ["Job", "Deployment"] {
        let text = warns(kind, "training", false);
        assert!(text.contains(lost), "{kind}: {text}");
    }
    assert!(!warns("Deployment", "inference", false).contains("when its running pods restart"));
    assert!(warns("Job", "batch", false).contains("starts again from the beginning"));
    assert!(warns("Job", "training", true).contains("progress since the last checkpoint"));
}

/// Amounts stay, and which of them they are; the name of the object goes.
#[test]
fn a_collection_keeps_the_bounds_of_a_limit_range() {
    let item = json!({"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "8"},
        "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"},
        "maxLimitRequestRatio": {"cpu": "4"}});
    let range = limit_range("research", item.clone());
    let kept = Keeper::default().keep("LimitRange", "v1", &range).expect("it is kept");
    assert_eq!(kept["spec"]["limits"], json!([item]));
    let hidden = Pseudonyms::new([7; 32]).replace(&kept);
    assert_eq!(hidden["spec"]["limits"], json!([item]));
    assert!(!hidden.to_string().contains("bounds"), "{hidden}");
}
