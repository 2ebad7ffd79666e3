//! Patches that would harm pods that no list of running pods shows: pods of fractions of GPUs, pods
//! to come, pods that a roll-out preempts, pods that were not read.

use std::collections::BTreeSet;

use dovetail_audit::{Finding, audit};
use dovetail_facts::{ObjectRef, device_states};
use dovetail_inventory::facts::Gathered;
use dovetail_trials::{SafePatch, SafePatches, safe_patches};
use serde_json::{Value, json};

use crate::facts::{gathered_alone, gathered_whole, inventory, node, pod};

const GPU: &str = "nvidia.com/gpu";

/// An audit of a cluster with these objects: findings as `CHECK Kind/name`, and the patches.
pub(crate) fn audited(objects: &[Value]) -> (Vec<String>, SafePatches, Gathered) {
    judged(gathered_whole(objects))
}

fn judged(mut found: Gathered) -> (Vec<String>, SafePatches, Gathered) {
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

pub(crate) fn plain_node(name: &str) -> Value {
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
        let pool = |safe: &SafePatch| safe.patch.nodes.is_some();
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
    // Nor does the job of an operator.
    let mut over = owner("PyTorchJob", "over", json!({"template": template(1, none())}));
    assert_eq!(is_tainted(std::slice::from_ref(&over)), (false, vec!["over".to_owned()]));
    over["status"] = json!({"conditions": [{"type": "Succeeded", "status": "True"}]});
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
pub(crate) fn deployment(name: &str, replicas: usize, spec: Value, strategy: Value) -> Value {
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

/// Three pods of two cores run on nodes that are to get a taint, and another node has some cores.
#[test]
fn no_node_is_tainted_whose_pods_have_no_room_on_others() {
    let tainted = |cores: u32| {
        let mut free = plain_node("c1");
        free["status"]["allocatable"]["cpu"] = json!(cores.to_string());
        let mut objects = vec![free];
        for at in 0..3 {
            let on = format!("g{at}");
            let mut open = node(&on, 8);
            open["spec"]["taints"] = json!([]);
            let labels = open["metadata"]["labels"].as_object_mut().expect("labels");
            labels.remove("karpenter.sh/nodepool");
            objects.extend([open, pod(&format!("serve-{at}"), "ReplicaSet/serve", 8, &on)]);
            let mut web = pod(&format!("web-{at}"), "ReplicaSet/web", 0, &on);
            web["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}});
            web["spec"]["tolerations"] = json!([]);
            objects.push(web);
        }
        let safe = audited(&objects).1;
        let nodes = safe.written.iter().filter_map(|safe| safe.patch.nodes.as_ref());
        let tainted = nodes.map(|change| change.nodes.len()).sum::<usize>();
        (tainted, safe.withheld.iter().map(|of| of.order.clone()).collect::<Vec<_>>())
    };
    let (nodes, withheld) = tainted(6);
    assert_eq!((nodes, withheld.len()), (3, 0), "{withheld:?}");
    // The last node keeps the pod that has no room beside the two others.
    let (nodes, withheld) = tainted(4);
    assert_eq!(nodes, 2, "{withheld:?}");
    assert!(withheld.iter().any(|order| order.contains("have no room on other nodes")));
}

/// A GPU node without a taint, with pods of two cores of these owners that tolerate none: nothing
/// is left of its cores.
fn full(on: &str, owners: &[&str]) -> Vec<Value> {
    let mut open = node(on, 8);
    open["spec"]["taints"] = json!([]);
    open["status"]["allocatable"]["cpu"] = json!((4 + 2 * owners.len()).to_string());
    let labels = open["metadata"]["labels"].as_object_mut().expect("labels");
    labels.remove("karpenter.sh/nodepool");
    let mut objects = vec![open, pod(&format!("serve-{on}"), "ReplicaSet/serve", 8, on)];
    for (at, owner) in owners.iter().enumerate() {
        let name = format!("{owner}-{on}-{at}");
        let mut small = pod(&name, &format!("ReplicaSet/{owner}"), 0, on);
        let memory = if *owner == "api" { "2Gi" } else { "1Gi" };
        let requests = json!({"requests": {"cpu": "2", "memory": memory}});
        small["spec"]["containers"][0]["resources"] = requests;
        small["spec"]["tolerations"] = json!([]);
        objects.push(small);
    }
    objects
}

/// Two other nodes have room for one pod each.
#[test]
fn pods_that_a_taint_displaces_take_the_rooms_that_were_found_for_them() {
    let tainted = |first: &[&str], second: &[&str]| {
        let mut objects = Vec::new();
        for name in ["c1", "c2"] {
            let mut small = plain_node(name);
            small["status"]["allocatable"]["cpu"] = json!("2");
            objects.push(small);
        }
        objects.extend(full("g0", first).into_iter().chain(full("g1", second)));
        let safe = audited(&objects).1;
        let nodes = safe.written.iter().filter_map(|safe| safe.patch.nodes.as_ref());
        let nodes: Vec<String> = nodes.flat_map(|change| change.nodes.clone()).collect();
        let lacks_room = |order: &str| order.contains("have no room on other nodes");
        (nodes, safe.withheld.iter().filter(|of| lacks_room(&of.order)).count())
    };
    let of = |name: &str| (vec![name.to_owned()], 1);
    assert_eq!(tainted(&["web", "web"], &["api"]), of("g0"), "both rooms are taken");
    assert_eq!(tainted(&["web", "web", "web"], &["web"]), of("g1"), "nobody moves from g0");
}

/// A StatefulSet's pod whose claim was not read may lose its volume on another node.
#[test]
fn pods_whose_volumes_were_not_read_stay() {
    let mut db = pod("db-0", "StatefulSet/db", 0, "g1");
    db["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    let written = |db: &Value| {
        let mut spec = db["spec"].clone();
        spec.as_object_mut().expect("a map").remove("nodeName");
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "db", "namespace": "research", "resourceVersion": "1"},
            "spec": {"replicas": 1, "template": {"spec": spec}}});
        let (findings, safe, _) = audited(&[node("g1", 8), plain_node("c1"), db.clone(), set]);
        assert!(findings.contains(&"SCH-02 StatefulSet/db".to_owned()), "{findings:?}");
        let orders: Vec<String> = safe.withheld.iter().map(|of| of.order.clone()).collect();
        (safe.written.iter().any(|safe| safe.patch.checks.contains(&"SCH-02")), orders.join("; "))
    };
    assert!(written(&db).0);
    db["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]);
    let (is_written, orders) = written(&db);
    assert!(!is_written && orders.contains("PersistentVolumeClaims were not read"), "{orders}");
}

/// A pod without GPUs in a set on a node with GPUs, with these volumes and objects: whether its
/// change is written, and why not.
fn moved_with(volumes: Value, more: &[Value]) -> (bool, String) {
    let mut db = pod("db-0", "StatefulSet/db", 0, "g1");
    db["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    db["spec"]["volumes"] = volumes;
    let mut spec = db["spec"].clone();
    spec.as_object_mut().expect("a map").remove("nodeName");
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "research", "resourceVersion": "1"},
        "spec": {"replicas": 1, "template": {"spec": spec}}});
    let objects = [&[node("g1", 8), plain_node("c1"), db, set][..], more].concat();
    let (findings, safe, _) = audited(&objects);
    assert!(findings.contains(&"SCH-02 StatefulSet/db".to_owned()), "{findings:?}");
    let orders: Vec<String> = safe.withheld.iter().map(|of| of.order.clone()).collect();
    (safe.written.iter().any(|safe| safe.patch.checks.contains(&"SCH-02")), orders.join("; "))
}

/// What is in a directory of a node is on no other; a volume that ends with its pod is anywhere.
#[test]
fn pods_with_directories_of_their_node_stay() {
    assert!(moved_with(json!([{"name": "tmp", "emptyDir": {}}]), &[]).0);
    let path = json!({"path": "/var/lib/models", "type": "Directory"});
    let (is_written, order) = moved_with(json!([{"name": "models", "hostPath": path}]), &[]);
    assert!(!is_written && order.contains("hostPath"), "{order}");
}

/// The claim names its volume and lacks the annotation of the binder, so the engine gives its pod
/// no node, although one runs.
#[test]
fn pods_that_the_engine_places_nowhere_stay() {
    let named = |name: &str| json!({"name": name, "namespace": "research", "uid": name});
    let claim = |annotations: Value| {
        let mut meta = named("data");
        meta["annotations"] = annotations;
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta,
            "spec": {"volumeName": "v", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Bound"}})
    };
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "v", "uid": "v"}, "status": {"phase": "Bound"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "x"}, "claimRef": named("data")}});
    let uses = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]);
    let bound = claim(json!({"pv.kubernetes.io/bind-completed": "yes"}));
    assert!(moved_with(uses.clone(), &[bound, volume.clone()]).0);
    let (is_written, order) = moved_with(uses, &[claim(json!({})), volume]);
    assert!(!is_written && order.contains("state of their claims"), "{order}");
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

/// The only other node is dedicated to databases.
#[test]
fn a_patch_warns_that_pods_which_tolerate_every_taint_move_to_a_dedicated_node() {
    let warns = |tolerations: Value| {
        let mut dedicated = plain_node("c1");
        dedicated["spec"] =
            json!({"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]});
        let mut web = pod("web-0", "Deployment/web", 0, "g1");
        web["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
        web["spec"]["tolerations"] = tolerations;
        let mut spec = web["spec"].clone();
        spec.as_object_mut().expect("a map").remove("nodeName");
        let owner = deployment("web", 1, spec, json!({"type": "Recreate"}));
        let (_, safe, _) = audited(&[node("g1", 8), dedicated, web, owner]);
        let mut moving = safe.written.iter().filter(|of| of.patch.checks.contains(&"SCH-02"));
        let warnings = &moving.next().expect("a patch").patch.warnings;
        warnings.iter().any(|warning| warning.contains("tolerate every taint"))
    };
    assert!(warns(json!([{"operator": "Exists"}])));
    let named = json!({"key": "dedicated", "operator": "Equal", "value": "db"});
    assert!(!warns(json!([{"operator": "Exists"}, named])));
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

/// Which nodes get a taint or are replaced, and why others are not.
fn changed_nodes(safe: SafePatches) -> (bool, Vec<String>) {
    let changes = safe.written.iter().any(|safe| safe.patch.nodes.is_some());
    (changes, safe.withheld.into_iter().map(|of| of.order).collect())
}

/// A GPU node without a taint, of a pool or of none, and a pod that tolerates the taint.
fn untainted(in_pool: bool) -> Vec<Value> {
    let mut open = node("g1", 8);
    open["spec"]["taints"] = json!([]);
    let runs = pod("runs-0", "StatefulSet/runs", 8, "g1");
    let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "h100", "resourceVersion": "1"},
        "spec": {"template": {"spec": {}}}});
    if in_pool {
        return vec![open, plain_node("c1"), runs, pool];
    }
    let labels = open["metadata"]["labels"].as_object_mut().expect("labels");
    labels.remove("karpenter.sh/nodepool");
    vec![open, plain_node("c1"), runs]
}

#[test]
fn nodes_are_not_changed_while_pods_are_missing() {
    let lacks = |found: Gathered| {
        let (is_changed, orders) = changed_nodes(judged(found).1);
        let lacks = orders.iter().any(|order| order.contains("did not read all pods"));
        assert_ne!(is_changed, lacks, "{orders:?}");
        lacks
    };
    for in_pool in [false, true] {
        let objects = untainted(in_pool);
        let with = |more: Value| objects.iter().cloned().chain([more]).collect::<Vec<_>>();
        assert!(!lacks(gathered_whole(&objects)));
        // Pods of one namespace are not all pods.
        assert!(lacks(gathered_alone(&objects)));
        let mut system = pod("proxy", "DaemonSet/proxy", 0, "c1");
        system["metadata"]["namespace"] = json!("kube-system");
        assert!(!lacks(gathered_alone(&with(system))));
        let elsewhere = json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "other"}, "spec": {}});
        assert!(!lacks(gathered_alone(&with(elsewhere))));
        // A pod on a node that was not read was read itself.
        assert!(!lacks(gathered_whole(&with(pod("far", "Job/far", 8, "g9")))));
        // A pod without GPUs cannot be read.
        let mut broken = pod("broken", "Job/broken", 0, "g1");
        broken["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
        broken["spec"]["tolerations"] = json!("none");
        let of_broken = |broken: Value| {
            let mut whole = inventory(&with(broken));
            whole.all_of("Pod");
            let found = whole.facts(BTreeSet::new());
            assert_eq!(found.skipped.len(), 1);
            found
        };
        assert!(lacks(of_broken(broken.clone())));
        broken["status"]["phase"] = json!("Succeeded");
        assert!(!lacks(of_broken(broken)));
    }
}

/// Why a patch that replaces pods of the namespace is not written, of which each keeps others off
/// its node: of so many replicas so many run, on the first of so many nodes.
fn jam(
    kind: &str,
    [replicas, running, nodes]: [usize; 3],
    (field, strategy): (&str, Value),
) -> String {
    let hostname = json!([{"topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "a"}}}]);
    let apart =
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": hostname}});
    let mut objects: Vec<Value> = (0..nodes).map(|at| node(&format!("g{at}"), 8)).collect();
    let mut spec = Value::Null;
    for at in 0..replicas {
        let on = if at < running { format!("g{at}") } else { String::new() };
        let mut one = pod(&format!("aa-{at}"), &format!("{kind}/aa"), 1, &on);
        one["spec"]["affinity"] = apart.clone();
        spec = one["spec"].clone();
        objects.push(one);
    }
    spec.as_object_mut().expect("a map").remove("nodeName");
    let mut owner = deployment("aa", replicas, spec, Value::Null);
    owner["kind"] = json!(kind);
    owner["spec"][field] = strategy;
    owner["spec"]["template"]["metadata"] = json!({"labels": {"app": "a"}});
    objects.push(owner);
    let (findings, safe, _) = audited(&objects);
    assert!(findings.contains(&format!("SCH-10 {kind}/aa")), "{findings:?}");
    let is_written = safe.written.iter().any(|safe| safe.patch.checks.contains(&"SCH-10"));
    let mut orders = safe.withheld.into_iter().map(|of| of.order);
    let order = orders.find(|order| order.contains("off their nodes"));
    assert_ne!(is_written, order.is_some(), "{order:?}");
    order.unwrap_or_default()
}

/// The old pods keep their rule until they are gone: no new pod can start beside them.
#[test]
fn a_rolling_update_that_present_pods_block_is_not_written() {
    let withheld =
        |counts: [usize; 3], strategy: Value| jam("Deployment", counts, ("strategy", strategy));
    let default = || json!(null);
    let may_lack = |pods: u32| json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": pods}});
    // One pod is pending, and the default lets one of five be unavailable.
    let order = withheld([5, 4, 4], default());
    assert!(order.contains("Deployment research/aa to maxSurge 0 and maxUnavailable 2"), "{order}");
    assert_ne!(withheld([5, 4, 4], may_lack(1)), "");
    assert_eq!(withheld([5, 4, 4], may_lack(2)), "");
    assert_eq!(withheld([5, 4, 4], json!({"type": "Recreate"})), "");
    assert_eq!(withheld([5, 4, 5], default()), "");
    // Of four pods, one may be unavailable; of three, none.
    assert_eq!(withheld([4, 4, 4], default()), "");
    assert!(withheld([3, 3, 3], default()).contains("maxUnavailable 1"));
    assert_eq!(withheld([3, 3, 4], default()), "");
    // One free node is not enough for the pending pod and a new one.
    assert_ne!(withheld([3, 2, 3], default()), "");
    // Kubernetes does not let both be zero.
    assert_eq!(withheld([3, 3, 3], json!({"rollingUpdate": {"maxSurge": 0}})), "");
}

/// A StatefulSet starts no extra pod, and waits for each pod that it may not lack.
#[test]
fn an_update_of_a_stateful_set_waits_for_a_pod_that_does_not_run() {
    let withheld = |counts: [usize; 3], strategy: Value| {
        jam("StatefulSet", counts, ("updateStrategy", strategy))
    };
    let default = || json!(null);
    let may_lack = |pods: Value| json!({"rollingUpdate": {"maxUnavailable": pods}});
    let order = withheld([5, 4, 4], default());
    assert!(order.contains("wait for its 1 pod that does not run. 1. scale "), "{order}");
    assert!(order.contains("StatefulSet research/aa down to the pods that run"), "{order}");
    assert!(withheld([5, 3, 3], may_lack(json!(2))).contains("its 2 pods that do not run"));
    assert_eq!(withheld([5, 3, 3], may_lack(json!(3))), "");
    // Percentages are rounded up.
    assert_ne!(withheld([5, 4, 4], may_lack(json!("20%"))), "");
    assert_eq!(withheld([5, 4, 4], may_lack(json!("21%"))), "");
    // All pods run, or the pending one has a node, or a person deletes the pods.
    assert_eq!(withheld([4, 4, 4], default()), "");
    assert_eq!(withheld([5, 4, 5], default()), "");
    assert_eq!(withheld([5, 4, 4], json!({"type": "OnDelete"})), "");
}

/// A canary of Argo Rollouts is a rolling update; blue-green needs a node for each new pod.
#[test]
fn a_rollout_that_present_pods_block_is_not_written() {
    let withheld =
        |counts: [usize; 3], strategy: Value| jam("Rollout", counts, ("strategy", strategy));
    let blue_green = || json!({"blueGreen": {"activeService": "a"}});
    let order = withheld([4, 4, 4], blue_green());
    assert!(order.contains("Rollout research/aa to canary"), "{order}");
    assert!(order.contains("maxUnavailable greater than 0, without blueGreen"), "{order}");
    assert_ne!(withheld([4, 4, 7], blue_green()), "");
    assert_eq!(withheld([4, 4, 8], blue_green()), "");
    let canary = |canary: Value| json!({"canary": canary});
    // The defaults let one of four pods be unavailable, and none of two.
    for default in [json!(null), canary(json!({}))] {
        assert_ne!(withheld([2, 2, 2], default.clone()), "");
        assert_eq!(withheld([2, 2, 3], default.clone()), "");
        assert_eq!(withheld([4, 4, 4], default), "");
    }
    let none = || canary(json!({"maxSurge": "25%", "maxUnavailable": 0}));
    assert_ne!(withheld([4, 4, 4], none()), "");
    assert!(withheld([5, 4, 4], none()).contains("maxUnavailable greater than 1"));
    assert_eq!(withheld([2, 2, 2], canary(json!({"maxSurge": 0}))), "");
    assert_eq!(withheld([2, 2, 2], canary(json!({"maxUnavailable": 1}))), "");
    // A traffic router leaves the old pods until all new ones run.
    let routed = || canary(json!({"maxUnavailable": 1, "trafficRouting": {"nginx": {}}}));
    assert_ne!(withheld([2, 2, 3], routed()), "");
    assert_eq!(withheld([2, 2, 4], routed()), "");
}

/// Two pods on the only two nodes that have no GPUs, with a port of their node.
#[test]
fn a_rolling_update_of_pods_with_host_ports_needs_a_free_node() {
    let is_written = |nodes: usize, port: &str| {
        let mut objects = vec![node("g1", 8)];
        objects.extend((0..nodes).map(|at| plain_node(&format!("c{at}"))));
        let mut spec = Value::Null;
        for at in 0..2 {
            let mut one = pod(&format!("web-{at}"), "Deployment/web", 0, &format!("c{at}"));
            let container = &mut one["spec"]["containers"][0];
            container["resources"] = json!({"requests": {"cpu": "1"}});
            container["ports"] = json!([{"containerPort": 80, port: 80}]);
            spec = one["spec"].clone();
            objects.push(one);
        }
        spec.as_object_mut().expect("a map").remove("nodeName");
        objects.push(deployment("web", 2, spec, json!(null)));
        let (findings, safe, _) = audited(&objects);
        assert!(findings.contains(&"SCH-03 Deployment/web".to_owned()), "{findings:?}");
        safe.written.iter().any(|safe| safe.patch.checks.contains(&"SCH-03"))
    };
    assert!(!is_written(2, "hostPort"));
    assert!(is_written(3, "hostPort"));
    assert!(is_written(2, "other"));
}

/// The only other node has this label: the images of the pod may not run there.
#[test]
fn pods_are_moved_only_to_nodes_of_their_platform() {
    let is_written = |own: &str, kind: &str, label: (&str, &str)| {
        let mut gpu = node("g1", 8);
        gpu["metadata"]["labels"]["kubernetes.io/os"] = json!(own);
        let mut free = plain_node("c1");
        free["metadata"]["labels"][label.0] = json!(label.1);
        let mut web = pod("web-0", &format!("{kind}/web"), 0, "g1");
        web["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
        let mut spec = web["spec"].clone();
        spec.as_object_mut().expect("a map").remove("nodeName");
        let mut owner = deployment("web", 1, spec, json!({"type": "Recreate"}));
        owner["kind"] = json!(kind);
        let (findings, safe, _) = audited(&[gpu, free, web, owner]);
        assert!(findings.contains(&format!("SCH-02 {kind}/web")), "{findings:?}");
        let is_written = safe.written.iter().any(|safe| safe.patch.checks.contains(&"SCH-02"));
        assert_ne!(is_written, safe.withheld.iter().any(|of| !of.pods.is_empty()));
        is_written
    };
    let compute_type = "eks.amazonaws.com/compute-type";
    // Pods of a Deployment move; of other kinds only new pods have the change.
    for kind in ["Deployment", "Fleet"] {
        assert!(is_written("linux", kind, ("kubernetes.io/os", "linux")));
        assert!(!is_written("linux", kind, ("kubernetes.io/os", "windows")));
        assert!(!is_written("windows", kind, ("kubernetes.io/os", "linux")));
        assert!(!is_written("windows", kind, ("rack", "a")));
        assert!(!is_written("linux", kind, ("kubernetes.io/arch", "arm64")));
        assert!(is_written("linux", kind, ("kubernetes.io/arch", "amd64")));
        assert!(!is_written("linux", kind, (compute_type, "fargate")));
        assert!(is_written("linux", kind, (compute_type, "auto")));
        assert!(!is_written("linux", kind, ("type", "virtual-kubelet")));
    }
}

/// The new pod has the toleration, and waits for the place of the old one.
#[test]
fn pods_that_a_rollout_is_to_replace_need_no_other_toleration() {
    let order = |owner: &str, new: bool| {
        let mut objects = untainted(false);
        let mut old = pod("big-0", owner, 8, "g1");
        old["spec"]["tolerations"] = json!([]);
        objects[2] = old;
        if new {
            objects.push(pod("big-1", owner, 8, ""));
        }
        let (is_changed, orders) = changed_nodes(audited(&objects).1);
        assert!(!is_changed);
        orders.into_iter().find(|order| order.contains("sets the taint")).expect("an order")
    };
    assert!(order("Deployment/big", false).starts_with("1. add a toleration for "));
    assert!(order("Deployment/big", false).contains("; 2. wait until their pods are replaced; 3."));
    // Nothing replaces a pod that no controller owns.
    let bare = order("", false);
    assert!(bare.contains("to Pod research/big-0 (no controller replaces such a pod: "), "{bare}");
    assert!(bare.contains("; 2. run the audit again"), "{bare}");
    let waits = order("Deployment/big", true);
    assert!(waits.starts_with("1. wait until the rollout of Deployment research/big"), "{waits}");
    assert!(waits.contains("; 2. run the audit again"), "{waits}");
}
