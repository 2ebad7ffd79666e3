//! Patches that would harm pods that no list of running pods shows: pods of fractions of GPUs, pods
//! to come, pods that a roll-out preempts.

use dovetail_audit::{Finding, ObjectRef, audit, device_states};
use dovetail_inventory::facts::Gathered;
use dovetail_inventory::patches::{SafePatches, safe_patches};
use serde_json::{Value, json};

use crate::facts::{gathered, node, pod};

const GPU: &str = "nvidia.com/gpu";

/// An audit of these objects: findings as `CHECK Kind/name`, and the patches.
fn audited(objects: &[Value]) -> (Vec<String>, SafePatches, Gathered) {
    let mut found = gathered(objects);
    device_states(&mut found.facts, &found.moment).expect("an engine that takes the cluster");
    let findings: Vec<Finding> = audit(&found.facts);
    let named = findings.iter().map(|finding| {
        format!("{} {}/{}", finding.check.id, finding.object.kind, finding.object.name)
    });
    let (named, findings) = (named.collect(), findings.iter().collect::<Vec<_>>());
    let source_of = |object: &ObjectRef| found.sources.source(object);
    let safe = safe_patches(&found.facts, &found.reach, &findings, &source_of);
    (named, safe, found)
}

fn plain_node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

/// KAI: the pod asks for half a GPU by an annotation, and another pod takes the GPU for it.
#[test]
fn a_pod_with_a_fraction_of_a_gpu_is_a_gpu_pod() {
    let mut half = pod("lab-0", "StatefulSet/lab", 0, "g1");
    half["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "lab", "namespace": "research", "resourceVersion": "1"},
        "spec": {"replicas": 1, "template": {"spec": half["spec"].clone()}}});
    let without = audited(&[node("g1", 8), plain_node("c1"), half.clone(), set.clone()]).0;
    assert!(without.contains(&"SCH-02 StatefulSet/lab".to_owned()), "{without:?}");
    half["metadata"]["annotations"] = json!({"gpu-fraction": "0.5"});
    half["metadata"]["labels"] = json!({"runai-gpu-group": "g"});
    let mut reserves = pod("reserves", "", 1, "g1");
    reserves["metadata"]["labels"] = json!({"runai-gpu-group": "g"});
    let (findings, safe, _) = audited(&[node("g1", 8), plain_node("c1"), half, set, reserves]);
    let about = |name: &str| findings.iter().filter(|of| of.ends_with(name)).collect::<Vec<_>>();
    assert!(!findings.iter().any(|of| of.starts_with("SCH-02") || of.starts_with("SCH-03")));
    assert!(about("Pod/reserves").is_empty(), "{findings:?}");
    assert!(safe.written.iter().all(|safe| safe.patch.object.name != "lab"), "{safe:?}");
}

/// Nothing of these runs now, and each loses its only node when the nodes get a taint.
#[test]
fn a_taint_is_not_written_while_pods_to_come_lack_the_toleration() {
    let mut open = node("g1", 8);
    open["spec"]["taints"] = json!([]);
    let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "h100", "resourceVersion": "1"},
        "spec": {"template": {"spec": {}}}});
    let runs = pod("runs-0", "StatefulSet/runs", 8, "g1");
    let objects = [open, plain_node("c1"), pool, runs];
    let is_tainted = |more: &[Value]| {
        let all: Vec<Value> = objects.iter().chain(more).cloned().collect();
        let (_, safe, _) = audited(&all);
        let withheld: Vec<String> =
            safe.withheld.iter().flat_map(|of| &of.pods).map(|of| of.name.clone()).collect();
        let pool = |safe: &dovetail_inventory::patches::SafePatch| safe.patch.nodes.is_some();
        (safe.written.iter().any(pool), withheld)
    };
    assert_eq!(is_tainted(&[]), (true, vec![]));
    let resources = |gpus: u32| match gpus {
        0 => json!({"requests": {"cpu": "1"}}),
        gpus => json!({"requests": {"cpu": "1"}, "limits": {GPU: gpus.to_string()}}),
    };
    let template = |gpus: u32, tolerations: Value| {
        json!({"spec": {"nodeSelector": {"karpenter.sh/nodepool": "h100"}, "tolerations": tolerations,
            "containers": [{"name": "m", "image": "i", "resources": resources(gpus)}]}})
    };
    let owner = |kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": "apps/v1", "kind": kind, "spec": spec,
            "metadata": {"name": name, "namespace": "research"}})
    };
    let cron = |gpus, tolerations| {
        let job = json!({"spec": {"template": template(gpus, tolerations)}});
        owner("CronJob", "nightly", json!({"schedule": "0 1 * * *", "jobTemplate": job}))
    };
    let none = || json!([]);
    let nightly = (false, vec!["nightly".to_owned()]);
    assert_eq!(is_tainted(&[cron(0, none())]), nightly);
    assert_eq!(is_tainted(&[cron(1, none())]), nightly);
    let tolerates = json!([{"key": GPU, "operator": "Exists"}]);
    assert_eq!(is_tainted(&[cron(1, tolerates)]), (true, vec![]));
    let asleep = json!({"replicas": 0, "template": template(1, none())});
    let asleep = owner("Deployment", "asleep", asleep);
    assert_eq!(is_tainted(&[asleep]), (false, vec!["asleep".to_owned()]));
    // Kinds with a pod template of another shape.
    let selects = || json!({"karpenter.sh/nodepool": "h100"});
    let workflow = json!({"workflowSpec": {"nodeSelector": selects(), "templates": []}});
    let workflow = owner("CronWorkflow", "later", workflow);
    assert_eq!(is_tainted(&[workflow]), (false, vec!["later".to_owned()]));
    let tolerant = json!({"predictor": {"nodeSelector": selects(), "minReplicas": 0,
        "tolerations": [{"key": GPU, "operator": "Exists"}]}});
    assert_eq!(is_tainted(&[owner("InferenceService", "llm", tolerant)]), (true, vec![]));
    // A Job that is over makes no pod any more.
    let mut over = owner("Job", "over", json!({"template": template(1, none())}));
    over["status"] = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    assert_eq!(is_tainted(&[over]), (true, vec![]));
}

/// A server with four GPUs and training with the rest: the extra pod of a rolling update would
/// preempt training once it has a priority.
#[test]
fn a_priority_is_not_written_where_its_roll_out_would_preempt_others() {
    let withheld = |node_gpus: u32, strategy: Value| {
        let mut serve = pod("serve-1", "Deployment/serve", 4, "g1");
        serve["metadata"]["labels"] = json!({"dovetail.dev/class": "inference"});
        let mut train = pod("train-0", "Job/train", 4, "g1");
        train["metadata"]["labels"] = json!({"dovetail.dev/class": "training"});
        let mut spec = serve["spec"].clone();
        spec.as_object_mut().expect("a map").remove("nodeName");
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "serve", "namespace": "research", "resourceVersion": "1"},
            "spec": {"replicas": 1, "strategy": strategy, "template": {"spec": spec}}});
        let (findings, safe, _) = audited(&[node("g1", node_gpus), serve, train, deployment]);
        assert!(findings.contains(&"SCH-11 Deployment/serve".to_owned()), "{findings:?}");
        let orders: Vec<String> = safe.withheld.into_iter().map(|of| of.order).collect();
        let patch = safe.written.iter().find(|safe| safe.patch.object.name == "serve");
        let sets_priority = patch.is_some_and(|safe| safe.patch.checks.contains(&"SCH-11"));
        assert_ne!(sets_priority, orders.iter().any(|order| order.contains("preempt running")));
        !sets_priority
    };
    assert!(withheld(8, json!(null)));
    assert!(!withheld(8, json!({"type": "Recreate"})));
    let in_place = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
    assert!(!withheld(8, in_place));
    // There is room for one more.
    assert!(!withheld(12, json!(null)));
}

/// A list of a kind that nobody read is not empty.
#[test]
fn a_pod_group_that_was_not_read_is_not_called_missing() {
    let mut pending = pod("w-0", "Job/train", 4, "");
    pending["spec"]["schedulerName"] = json!("volcano");
    pending["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "train"});
    let (_, _, found) = audited(&[node("g1", 8), pending.clone()]);
    let [unjudged] = &found.unjudged[..] else { panic!("{:?}", found.unjudged) };
    assert_eq!(unjudged.reason, "PodGroup.scheduling.volcano.sh objects were not read");
    let command = "kubectl get podgroups.scheduling.volcano.sh -A -o json";
    assert_eq!(unjudged.command, command);
    let unseen = found.unseen.iter().find(|of| of.what == "pod groups").expect("it is named");
    assert_eq!(unseen.command, command);
    let other = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "other", "namespace": "research"}, "spec": {"minMember": 1}});
    let (_, _, found) = audited(&[node("g1", 8), pending, other]);
    assert!(found.unjudged[0].reason.ends_with("research/train does not exist: create it"));
    assert!(found.unseen.iter().all(|of| of.what != "pod groups"));
}

/// The only pod of a server waits for a place that training has: with a priority it would preempt.
#[test]
fn a_priority_is_not_written_for_pods_that_wait_for_a_place() {
    let withheld = |gpus: u32| {
        let mut serve = pod("serve-0", "StatefulSet/serve", 4, "");
        serve["metadata"]["labels"] = json!({"dovetail.dev/class": "inference"});
        serve["status"]["phase"] = json!("Pending");
        let mut train = pod("train-0", "Job/train", 8, "g1");
        train["metadata"]["labels"] = json!({"dovetail.dev/class": "training"});
        let mut spec = serve["spec"].clone();
        spec.as_object_mut().expect("a map").remove("nodeName");
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "serve", "namespace": "research", "resourceVersion": "1"},
            "spec": {"replicas": 1, "template": {"spec": spec}}});
        let (findings, safe, _) = audited(&[node("g1", gpus), serve, train, set]);
        assert!(findings.contains(&"SCH-11 StatefulSet/serve".to_owned()), "{findings:?}");
        safe.withheld.iter().any(|of| of.order.contains("has no node that accepts it"))
    };
    assert!(withheld(8));
    assert!(!withheld(16));
}

/// A Deployment of the namespace with this pod template.
fn deployment(name: &str, replicas: usize, spec: Value, strategy: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "research", "resourceVersion": "1"},
        "spec": {"replicas": replicas, "strategy": strategy, "template": {"spec": spec}}})
}

/// The first nodes that got the taint would leave the pods one node for four.
#[test]
fn no_node_is_tainted_while_a_pod_with_gpus_that_can_use_it_lacks_the_toleration() {
    let tainted = |tolerates: bool| {
        let mut objects = vec![plain_node("c1")];
        for at in 0..4 {
            let mut open = node(&format!("g{at}"), 8);
            open["spec"]["taints"] = json!([]);
            open["metadata"]["labels"]
                .as_object_mut()
                .expect("labels")
                .remove("karpenter.sh/nodepool");
            objects.push(open);
            let mut serves = pod(&format!("serve-{at}"), "ReplicaSet/serve", 8, &format!("g{at}"));
            if !tolerates {
                serves["spec"]["tolerations"] = json!([]);
            }
            objects.push(serves);
        }
        let (findings, safe, _) = audited(&objects);
        assert!(findings.iter().any(|of| of.starts_with("SCH-01")), "{findings:?}");
        let nodes = safe.written.iter().filter_map(|safe| safe.patch.nodes.as_ref());
        nodes.map(|change| change.nodes.len()).sum::<usize>()
    };
    assert_eq!(tainted(false), 0);
    assert_eq!(tainted(true), 4);
}

/// Six pods of a core each on a node with GPUs, and another node with so many cores.
#[test]
fn pods_are_moved_only_to_nodes_with_room_for_all_of_them() {
    let written = |cores: u32, more: &dyn Fn(&mut Value)| {
        let mut free = plain_node("c1");
        free["status"]["allocatable"]["cpu"] = json!(cores.to_string());
        let mut objects = vec![node("g1", 8), free];
        let mut spec = Value::Null;
        for at in 0..6 {
            let mut one = pod(&format!("many-{at}"), "Deployment/many", 0, "g1");
            one["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
            more(&mut one["spec"]);
            spec = one["spec"].clone();
            objects.push(one);
        }
        spec.as_object_mut().expect("a map").remove("nodeName");
        objects.push(deployment("many", 6, spec, json!({"type": "Recreate"})));
        let (findings, safe, _) = audited(&objects);
        assert!(findings.contains(&"SCH-02 Deployment/many".to_owned()), "{findings:?}");
        let is_written =
            |check: &str| safe.written.iter().any(|safe| safe.patch.checks.contains(&check));
        let withheld = safe.withheld.iter().map(|of| of.pods.len()).max();
        (is_written("SCH-02"), withheld)
    };
    assert_eq!(written(8, &|_| {}), (true, None));
    assert_eq!(written(4, &|_| {}), (false, Some(6)));
    // Where they can be beside others is not checked.
    let beside = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}]}});
    assert_eq!(written(8, &|spec| spec["affinity"] = beside.clone()), (false, Some(6)));
    let port = json!([{"containerPort": 80, "hostPort": 80}]);
    assert_eq!(written(8, &|spec| spec["containers"][0]["ports"] = port.clone()), (false, Some(6)));
}

/// A quota for the pods that are there would reject those of a CronJob.
#[test]
fn a_quota_is_not_written_while_objects_are_yet_to_make_pods_with_gpus() {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research"}});
    let later = |kind: &str, spec: Value| {
        json!({"apiVersion": "x/v1", "kind": kind, "spec": spec,
            "metadata": {"name": "later", "namespace": "research"}})
    };
    let quota = |more: &[Value]| {
        let run = pod("runs-0", "StatefulSet/runs", 1, "g1");
        let other = json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "other"},
            "spec": {"hard": {"cpu": "1"}}, "status": {"hard": {"cpu": "1"}}});
        let mut all = vec![node("g1", 8), namespace.clone(), run, other];
        all.extend(more.iter().cloned());
        let (findings, safe, _) = audited(&all);
        assert!(findings.iter().any(|of| of.starts_with("GOV-01")), "{findings:?}");
        safe.written.iter().any(|safe| safe.patch.object.kind == "ResourceQuota")
    };
    assert!(quota(&[]));
    let template = |gpus: u32| {
        let mut spec = pod("x", "", gpus, "")["spec"].clone();
        spec.as_object_mut().expect("a map").remove("nodeName");
        json!({"spec": spec})
    };
    let cron = |gpus: u32| {
        let job = json!({"spec": {"template": template(gpus)}});
        later("CronJob", json!({"schedule": "0 1 * * *", "jobTemplate": job}))
    };
    assert!(!quota(&[cron(8)]));
    assert!(quota(&[cron(0)]));
    let asleep = json!({"replicas": 0, "template": template(4)});
    assert!(!quota(&[later("Deployment", asleep)]));
}
