//! Objects as facts: owners, pools, GPUs and what holds them, and objects that nobody wrote in good
//! faith.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{
    BudgetLimit, HeldState, MONTH_MS, MemoryKills, ObjectRef, Scoring, ServedModel, SharedMemory,
    WorkloadClass, device_states,
};
use dovetail_inventory::dump::{Keeper, read_objects};
use dovetail_inventory::facts::{Gathered, Inventory};
use serde_json::{Value, json};

const NOW: &str = "2026-11-20T12:00:00Z";
const GPU: &str = "nvidia.com/gpu";

fn now_ms() -> u64 {
    NOW.parse::<jiff::Timestamp>().unwrap().as_millisecond().cast_unsigned()
}

pub(crate) fn inventory(objects: &[Value]) -> Inventory {
    let mut inventory = Inventory::new(now_ms());
    if objects.iter().all(|object| object["kind"] != "Pod") {
        // The cluster has none.
        inventory.all_of("Pod");
    }
    let items: Vec<Value> = objects.iter().cloned().chain([ended_pod()]).collect();
    let list = json!({"kind": "List", "items": items}).to_string();
    read_objects(list.as_bytes(), "dump.json", &mut inventory).expect("it is JSON");
    inventory
}

/// A pod of the cluster's own that is over: a dump of all namespaces has some.
pub(crate) fn ended_pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "spec": {"containers": []},
        "metadata": {"name": "ended", "namespace": "kube-system", "uid": "ended"},
        "status": {"phase": "Succeeded"}
    })
}

pub(crate) fn gathered(objects: &[Value]) -> Gathered {
    let found = inventory(objects).facts(BTreeSet::from(["team".to_owned()]));
    assert_eq!(found.skipped, []);
    found
}

/// The same with these objects alone: nothing shows that other namespaces were read.
pub(crate) fn gathered_alone(objects: &[Value]) -> Gathered {
    let mut inventory = Inventory::new(now_ms());
    let list = json!({"kind": "List", "items": objects}).to_string();
    read_objects(list.as_bytes(), "dump.json", &mut inventory).expect("it is JSON");
    inventory.facts(BTreeSet::from(["team".to_owned()]))
}

/// The same where these are all pods of the cluster.
pub(crate) fn gathered_whole(objects: &[Value]) -> Gathered {
    let mut whole = inventory(objects);
    whole.all_of("Pod");
    let found = whole.facts(BTreeSet::from(["team".to_owned()]));
    assert_eq!(found.skipped, []);
    found
}

pub(crate) fn node(name: &str, gpus: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": name, "creationTimestamp": "2026-11-01T00:00:00Z",
            "labels": {
                "kubernetes.io/hostname": name, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "karpenter.sh/nodepool": "h100"
            }
        },
        "spec": {"providerID": "aws:///us-east-1a/i-0", "taints": [{"key": GPU, "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "192", "memory": "2Ti", "pods": "110", GPU: gpus.to_string()},
            "allocatable": {"cpu": "190", "memory": "2000Gi", "pods": "110", GPU: gpus.to_string()},
            "conditions": [{"type": "Ready", "status": "True"}]
        }
    })
}

/// A pod of an owner (`Kind/name`) with GPUs on a node, or waiting.
pub(crate) fn pod(name: &str, owner: &str, gpus: u32, node: &str) -> Value {
    let (kind, owner) = owner.split_once('/').unwrap_or_default();
    let owners = if kind.is_empty() {
        json!([])
    } else {
        json!([{"apiVersion": "x/v1", "kind": kind, "name": owner, "uid": owner, "controller": true}])
    };
    let placed = !node.is_empty();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "research", "uid": name, "labels": {"app": "a"},
            "ownerReferences": owners, "creationTimestamp": "2026-11-20T11:00:00Z"
        },
        "spec": {
            "nodeName": node,
            "tolerations": [
                {"key": GPU, "operator": "Exists"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
            ],
            "containers": [{
                "name": "main", "image": "python:3.13",
                "resources": {
                    "requests": {"cpu": "4", "memory": "32Gi", GPU: gpus},
                    "limits": {GPU: gpus.to_string()}
                }
            }]
        },
        "status": {
            "phase": if placed { "Running" } else { "Pending" },
            "conditions": [{"type": "Ready", "status": if placed { "True" } else { "False" }}]
        }
    })
}

fn owner(kind: &str, name: &str, by: Option<&str>, spec: Value) -> Value {
    let by = by.and_then(|by| by.split_once('/'));
    let owners = by.map_or(
        json!([]),
        |(kind, name)| json!([{"kind": kind, "name": name, "controller": true}]),
    );
    json!({
        "apiVersion": "apps/v1", "kind": kind, "spec": spec,
        "metadata": {"name": name, "namespace": "research", "ownerReferences": owners}
    })
}

fn object(kind: &str, name: &str) -> ObjectRef {
    ObjectRef::new(kind, "research", name)
}

/// How many milli-GPU are in each state, after checking that all devices are there.
pub(crate) fn states(mut found: Gathered) -> BTreeMap<String, i64> {
    let installed: i64 = found.moment.nodes.iter().map(|node| node.gpus).sum();
    let states =
        device_states(&mut found.facts, &found.moment).expect("the engine takes the world");
    assert_eq!(states.node_of.len() as i64, installed);
    let mut of_device = vec![0; states.node_of.len()];
    for waste in &states.intervals {
        of_device[waste.device as usize] += waste.interval.gpu_milli;
    }
    assert!(of_device.iter().all(|milli| *milli == 1000), "{of_device:?}");
    let milli = |time: i128| i64::try_from(time / i128::from(MONTH_MS)).unwrap();
    states.now.into_iter().map(|(state, time)| (state.name(), milli(time))).collect()
}

pub(crate) fn expect(found: &BTreeMap<String, i64>, states: &[(&str, i64)]) {
    let states: BTreeMap<String, i64> =
        states.iter().map(|(state, milli)| ((*state).to_owned(), *milli)).collect();
    assert_eq!(*found, states);
}

#[test]
fn pods_belong_to_the_object_that_a_person_edits() {
    let found = gathered(&[
        node("g1", 8),
        owner("Deployment", "serve", None, json!({"replicas": 3})),
        owner("ReplicaSet", "serve-7d9", Some("Deployment/serve"), json!({"replicas": 3})),
        pod("serve-7d9-a", "ReplicaSet/serve-7d9", 1, "g1"),
        pod("serve-7d9-b", "ReplicaSet/serve-7d9", 1, "g1"),
        owner("JobSet", "train", None, json!({})),
        owner("Job", "train-0", Some("JobSet/train"), json!({"parallelism": 2})),
        pod("train-0-a", "Job/train-0", 2, "g1"),
        pod("train-0-b", "Job/train-0", 2, "g1"),
        pod("alone", "", 1, "g1"),
    ]);
    let told: Vec<_> = found
        .facts
        .workloads
        .iter()
        .map(|workload| (&workload.owner, workload.replicas, workload.pods.len(), workload.class))
        .collect();
    assert_eq!(
        told,
        [
            (&object("Deployment", "serve"), 3, 2, None),
            (&object("JobSet", "train"), 2, 2, Some(WorkloadClass::Training)),
            (&object("Pod", "alone"), 1, 1, None),
        ]
    );
    // What Kubernetes adds is not a toleration that somebody wrote.
    assert_eq!(found.facts.workloads[0].template.tolerations.len(), 1);
    assert_eq!(found.facts.nodes[0].pool, ObjectRef::new("NodePool", "", "h100"));
    assert_eq!(found.provider_ids["g1"], "aws:///us-east-1a/i-0");
}

#[test]
fn a_replica_set_that_was_not_handed_over_still_leads_to_its_deployment() {
    let mut pod = pod("serve-7d9-a", "ReplicaSet/serve-7d9", 1, "g1");
    pod["metadata"]["labels"]["pod-template-hash"] = json!("7d9");
    let found = gathered(&[pod]);
    assert_eq!(found.facts.workloads[0].owner, object("Deployment", "serve"));
    // Owners that own each other end somewhere.
    let found = gathered(&[
        owner("A", "a", Some("B/b"), json!({})),
        owner("B", "b", Some("A/a"), json!({})),
        self::pod("p", "A/a", 1, ""),
    ]);
    assert_eq!(found.facts.workloads[0].owner, object("B", "b"));
}

#[test]
fn shared_memory_rules_annotations_and_kills_are_read() {
    let mut pod = pod("p", "", 1, "g1");
    pod["metadata"]["annotations"] = json!({
        "karpenter.sh/do-not-disrupt": "true", "karpenter.sh/do-not-evict": "false",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "dovetail.dev/ignore": "req-12, SCH-05", "nvidia.com/use-gputype": "H100"
    });
    let spec = &mut pod["spec"];
    spec["volumes"] =
        json!([{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "shm", "mountPath": "/dev/shm/"}]);
    spec["containers"][0]["env"] = json!([{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]);
    spec["topologySpreadConstraints"] = json!([{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}}
    }]);
    pod["status"]["containerStatuses"] = json!([{
        "name": "main", "restartCount": 2,
        "lastState": {"terminated": {"reason": "OOMKilled", "finishedAt": "2026-11-19T12:00:00Z"}}
    }]);
    let found = gathered(&[pod]);
    let workload = &found.facts.workloads[0];
    let template = &workload.template;
    assert_eq!(template.shared_memory, Some(SharedMemory { limit_bytes: Some(16 << 30) }));
    assert!(template.keeps_apart_by.as_ref().unwrap().contains("topologySpread"));
    let held_by = [
        "cluster-autoscaler.kubernetes.io/safe-to-evict: false",
        "karpenter.sh/do-not-disrupt: true",
    ];
    assert_eq!(template.eviction_held_by, held_by);
    assert_eq!(template.chooses_gpus_by, Some("nvidia.com/use-gputype"));
    let sees = template.containers[0].sees_gpus_by.as_deref();
    assert_eq!(sees, Some("NVIDIA_VISIBLE_DEVICES=all"));
    assert!(!template.has_local_data);
    // Two restarts, the last of them for memory.
    assert_eq!(workload.memory_kills, Some(MemoryKills { proven: 1, may_be_more: true }));
    assert_eq!(workload.ignores, BTreeSet::from(["REQ-12".to_owned(), "SCH-05".to_owned()]));
}

/// The end of a container, for memory; `None` does not say when.
fn killed_at(time: Option<&str>) -> Value {
    match time {
        Some(time) => json!({"terminated": {"reason": "OOMKilled", "finishedAt": time}}),
        None => json!({"terminated": {"reason": "OOMKilled"}}),
    }
}

#[test]
fn of_a_containers_kills_those_count_that_it_proves() {
    let last_week = "2026-11-13T12:00:00Z";
    let kills = |field: &str, restarts: u32, last: Value, state: Value| {
        let mut pod = pod("p", "", 1, "g1");
        pod["status"][field] = json!([
            {"name": "main", "restartCount": restarts, "lastState": last, "state": state}
        ]);
        let kept = Keeper::default().keep("Pod", "v1", &pod).expect("pods are kept");
        let [found, again] = [pod, kept]
            .map(|pod| gathered(&[pod]).facts.workloads[0].memory_kills.expect("they are known"));
        assert_eq!(found, again, "a collection says the same");
        (found.proven, found.may_be_more)
    };
    let none = || json!({});
    for field in ["containerStatuses", "initContainerStatuses"] {
        // Ten restarts in the life of the pod: nobody knows when the others were.
        assert_eq!(kills(field, 10, killed_at(Some(last_week)), none()), (1, true));
        assert_eq!(kills(field, 1, killed_at(Some(last_week)), none()), (1, false));
        // The others were even longer ago.
        let long_ago = || killed_at(Some("2026-11-13T11:59:59Z"));
        assert_eq!(kills(field, 10, long_ago(), none()), (0, false));
        assert_eq!(kills(field, 1, killed_at(None), none()), (0, true));
        // It was started once more, and was killed again.
        assert_eq!(kills(field, 1, killed_at(Some(last_week)), killed_at(Some(NOW))), (2, false));
        let other = json!({"terminated": {"reason": "Error", "finishedAt": NOW}});
        assert_eq!(kills(field, 1, other, none()), (0, false));
    }
}

#[test]
fn kills_of_pods_that_are_over_are_those_of_their_owner() {
    let over = |name: &str, job: &str, gpus: u32| {
        let mut pod = pod(name, job, gpus, "g1");
        pod["status"]["phase"] = json!("Failed");
        pod["status"]["containerStatuses"] =
            json!([{"name": "main", "restartCount": 0, "state": killed_at(Some(NOW))}]);
        pod
    };
    let mut small = pod("t-8", "Job/t", 1, "g1");
    small["status"]["containerStatuses"] =
        json!([{"name": "main", "restartCount": 1, "lastState": killed_at(Some(NOW))}]);
    let found = gathered(&[
        owner("CronJob", "nightly", None, json!({})),
        owner("Job", "t", Some("CronJob/nightly"), json!({"parallelism": 2})),
        owner("Job", "t-yesterday", Some("CronJob/nightly"), json!({"parallelism": 2})),
        small,
        pod("t-9", "Job/t", 2, "g1"),
        over("t-0", "Job/t", 2),
        over("t-1", "Job/t", 2),
        over("y-0", "Job/t-yesterday", 2),
        // Its owner is another one, and runs nothing.
        over("o-0", "Job/other", 2),
    ]);
    let kills = |workload: &dovetail_facts::Workload| {
        let kills = workload.memory_kills.expect("they are known");
        (workload.pods[0].name.clone(), kills.proven, kills.may_be_more)
    };
    let told: Vec<_> = found.facts.workloads.iter().map(kills).collect();
    assert_eq!(told, [("t-8".to_owned(), 1, false), ("t-9".to_owned(), 3, false)]);
}

#[test]
fn quotas_budgets_policies_and_the_scheduler_are_read() {
    let meta = |name: &str| json!({"name": name, "namespace": "research"});
    let config = "apiVersion: v1\nkind: KubeSchedulerConfiguration\ntype: MostAllocated\n";
    let found = gathered(&[
        pod("p", "", 1, "g1"),
        json!({"kind": "Namespace", "metadata": {"name": "research", "labels": {"team": "x"}}}),
        json!({"kind": "ResourceQuota", "metadata": meta("q"), "spec": {"hard": {"requests.nvidia.com/gpu": "8"}}}),
        json!({"kind": "PodDisruptionBudget", "metadata": meta("b"),
            "spec": {"maxUnavailable": "0%", "selector": {"matchLabels": {"app": "a"}}}}),
        json!({"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "v"}, "spec": {"x": "nvidia.com/gpu"}}),
        json!({"kind": "ConfigMap", "metadata": meta("sched"), "data": {"config.yaml": config}}),
        // The operator's own kind is no admission policy.
        json!({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "c"}}),
    ]);
    let facts = &found.facts;
    let quota = facts.namespaces[0].quota_resources.as_ref().unwrap();
    assert!(quota.contains("requests.nvidia.com/gpu"));
    assert_eq!(facts.budgets[0].limit, BudgetLimit::MaxUnavailablePercent(0));
    assert_eq!(facts.budgets[0].protects, object("Pod", "p"));
    assert_eq!(facts.scoring, Some(Scoring::MostAllocated));
    assert_eq!(facts.has_gpu_admission_policy, Some(true));
    let unseen: Vec<&str> = found.unseen.iter().map(|unseen| unseen.what.as_str()).collect();
    let expected = ["nodes", "owners of pods", "limit ranges", "autoscalers", "recommenders"];
    assert_eq!(unseen.split_last(), Some((&"topology of nodes", &expected[..])));
    // What was asked for and is not there is known not to be there.
    let mut inventory = inventory(&[pod("p", "", 1, "g1")]);
    inventory.all_of("ValidatingAdmissionPolicy");
    let found = inventory.facts(BTreeSet::new());
    assert_eq!(found.facts.has_gpu_admission_policy, Some(false));
    assert_eq!(found.facts.scoring, None);
}

#[test]
fn free_gpus_have_the_cause_that_the_engine_names() {
    let suspended = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "later", "namespace": "research"},
        "spec": {"suspend": true, "parallelism": 2, "template": {"spec": {
            "tolerations": [{"key": GPU, "operator": "Exists"}],
            "containers": [{"name": "m", "resources": {"requests": {GPU: "4", "cpu": "188"}, "limits": {GPU: "4"}}}]
        }}}
    });
    let mut gated = pod("gated", "", 8, "");
    gated["spec"]["schedulingGates"] = json!([{"name": "wait"}]);
    gated["spec"]["tolerations"] = json!([]);
    // Five free beside three held; a suspended job finds too little CPU for both of its pods, a
    // gated pod tolerates no taint.
    let found = gathered(&[node("g1", 8), pod("p", "", 3, "g1"), suspended, gated]);
    expect(&states(found), &[("unknown", 3000), ("free_stranded_by_cpu", 5000)]);
    let found = gathered(&[node("g1", 8), pod("p", "", 3, "g1")]);
    expect(&states(found), &[("unknown", 3000), ("free_no_demand", 5000)]);
    let mut elsewhere = pod("q", "", 2, "");
    elsewhere["spec"]["tolerations"] = json!([]);
    let found = gathered(&[node("g1", 8), pod("p", "", 3, "g1"), elsewhere]);
    let expected = [("unknown", 3000), ("free_taint", 2000), ("free_no_demand", 3000)];
    expect(&states(found), &expected);
}

/// Of eight GPUs a pod that waits would take five, another of the same size would not fit on what
/// is left. Where the scheduler of the first says that it fits nowhere, nobody reserved anything:
/// nobody knows why the five are free.
#[test]
fn what_would_start_now_is_kept_for_it_unless_its_own_scheduler_says_otherwise() {
    let waits = |name: &str, reason: &str| {
        let mut pod = pod(name, "", 5, "");
        pod["spec"]["schedulerName"] = json!("dovetail");
        let since = if name == "a" { "2026-11-20T10:00:00Z" } else { "2026-11-20T11:00:00Z" };
        pod["metadata"]["creationTimestamp"] = json!(since);
        if !reason.is_empty() {
            pod["status"]["conditions"] =
                json!([{"type": "PodScheduled", "status": "False", "reason": reason}]);
        }
        pod
    };
    let of = |reason: &str| {
        let mut found = gathered(&[node("g1", 8), waits("a", reason), waits("b", reason)]);
        let states = device_states(&mut found.facts, &found.moment).expect("a legal world");
        (self::states(found), states.contested)
    };
    for reason in ["", "SchedulingGated", "WaitingForTurn"] {
        let (states, contested) = of(reason);
        expect(&states, &[("free_reserved", 5000), ("free_fragmented", 3000)]);
        assert!(contested.is_empty(), "{contested:?}");
    }
    let (states, contested) = of("Unschedulable");
    expect(&states, &[("free_of_unknown_cause", 5000), ("free_fragmented", 3000)]);
    assert_eq!(contested, ["research/a"]);
    // Where it fits nowhere for the engine either, both agree, and it explains nothing.
    let mut large = waits("a", "Unschedulable");
    large["spec"]["containers"][0]["resources"]["requests"][GPU] = json!(9);
    let mut found = gathered(&[node("g1", 8), large]);
    let states = device_states(&mut found.facts, &found.moment).expect("a legal world");
    assert!(states.contested.is_empty());
    expect(&self::states(found), &[("free_no_demand", 8000)]);
}

#[test]
fn numbers_of_gpus_that_cannot_be_are_cut_and_told() {
    let mut huge = node("g1", 8);
    huge["status"]["capacity"][GPU] = json!("1e18");
    huge["status"]["allocatable"][GPU] = json!("1e18");
    let mut broken = node("g3", 8);
    broken["status"]["allocatable"][GPU] = json!("6");
    let objects = [
        huge,
        node("g2", 1),
        pod("p", "", 4, "g2"),
        pod("q", "", 1, "g2"),
        // A pod may still hold what broke: that is no slip.
        broken,
        pod("r", "", 8, "g3"),
    ];
    let found = gathered(&objects);
    let told: Vec<String> = found.clamped.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "node g1 offers 1000000000000000000 nvidia.com/gpu (4096 counted)",
            "pods on node g2 have 5 nvidia.com/gpu allocated, most of it research/p (1 counted)",
        ]
    );
    assert_eq!(states(found)["free_no_demand"], 4_096_000);
    let found = gathered(&[node("g1", 8), pod("s", "", 1_000_000, "")]);
    let told = found.clamped[0].to_string();
    assert_eq!(told, "pod research/s requests 1000000 nvidia.com/gpu (4096 counted)");
    assert_eq!(found.facts.workloads[0].gpus_per_pod()[GPU], 4096);
}

#[test]
fn broken_cordoned_and_starting_nodes_and_pods_that_have_not_started() {
    let mut broken = node("g1", 8);
    broken["status"]["allocatable"][GPU] = json!("6");
    let mut cordoned = node("g2", 4);
    cordoned["spec"]["unschedulable"] = json!(true);
    cordoned["spec"]["taints"] =
        json!([{"key": "node.kubernetes.io/unschedulable", "timeAdded": "2026-11-20T02:00:00Z"}]);
    let mut lost = node("g3", 2);
    lost["status"]["conditions"][0]["status"] = json!("Unknown");
    let mut young = node("g4", 2);
    young["metadata"]["creationTimestamp"] = json!("2026-11-20T11:58:00Z");
    young["status"]["conditions"][0]["status"] = json!("False");
    let mut pulling = pod("pulling", "", 1, "g1");
    pulling["status"]["phase"] = json!("Pending");
    pulling["status"]["conditions"][0]["status"] = json!("False");
    let found = gathered(&[broken, cordoned, lost, young, pulling, pod("held", "", 3, "g2")]);
    assert_eq!(found.facts.nodes[1].cordoned_since_ms, Some(now_ms() - 10 * 3_600_000));
    let expected = [
        ("unavailable", 4000),
        ("provisioning", 1000),
        ("free_no_demand", 5000),
        ("unknown", 3000),
        ("free_draining_or_cordoned", 1000),
        ("free_starting", 2000),
    ];
    expect(&states(found), &expected);
}

/// Karpenter and Cluster Autoscaler mark a node before they delete it; nobody marks one that is
/// deleted by hand.
#[test]
fn a_node_that_is_being_removed_is_drained_and_not_free() {
    let tainted = |taint: Value| {
        let mut leaves = node("g1", 8);
        leaves["spec"]["taints"] = json!([taint]);
        leaves
    };
    let mut deleted = node("g1", 8);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-11-20T11:00:00Z");
    let karpenter = json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule",
        "timeAdded": "2026-11-20T11:00:00Z"});
    let autoscaler = json!({"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"});
    for (leaves, since_ms) in [
        (deleted, now_ms() - 3_600_000),
        (tainted(karpenter), now_ms() - 3_600_000),
        (tainted(autoscaler), now_ms()),
    ] {
        let found = gathered(&[leaves]);
        let node = &found.facts.nodes[0];
        assert_eq!((node.is_being_removed, node.cordoned_since_ms), (true, Some(since_ms)));
        expect(&states(found), &[("free_draining_or_cordoned", 8000)]);
    }
}

#[test]
fn who_is_ready_waits_for_the_rest_of_a_training() {
    let job = owner("PyTorchJob", "run", None, json!({}));
    let ready = pod("run-0", "PyTorchJob/run", 4, "g1");
    let waiting = pod("run-1", "PyTorchJob/run", 8, "");
    let found = gathered(&[node("g1", 4), job.clone(), ready.clone(), waiting]);
    expect(&states(found), &[("gang_wait", 4000)]);
    let found = gathered(&[node("g1", 4), job, ready.clone()]);
    assert_eq!(found.moment.held[0].state, HeldState::Ready);
    expect(&states(found), &[("unknown", 4000)]);
    // Replicas of a server do not wait for each other.
    let found = gathered(&[node("g1", 4), ready, pod("other", "ReplicaSet/x", 8, "")]);
    expect(&states(found), &[("unknown", 4000)]);
}

/// Every place in a value, with what else could stand there.
fn spoilt(value: &Value) -> Vec<Value> {
    let strange = [
        json!(null),
        json!(-7),
        json!(9.5),
        json!(u64::MAX),
        json!("NaN"),
        json!("9999-12-31T23:59:59Z"),
        json!("\u{1b}[31m\u{0}"),
        json!("99999999999999999999Ei"),
        json!([[[]]]),
        json!({"a": {"b": 1}}),
    ];
    let mut found = strange.to_vec();
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                for spoilt in spoilt(field) {
                    let mut fields = fields.clone();
                    fields.insert(key.clone(), spoilt);
                    found.push(Value::Object(fields));
                }
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                for spoilt in spoilt(item) {
                    let mut items = items.clone();
                    items[place] = spoilt;
                    found.push(Value::Array(items));
                }
            }
        }
        _ => {}
    }
    found
}

#[test]
fn a_spoilt_object_is_named_or_taken_and_never_more() {
    let job = owner(
        "Job",
        "j",
        None,
        json!({"parallelism": 2, "suspend": true, "template": {"spec": {
        "containers": [{"name": "m", "resources": {"limits": {GPU: 1}, "requests": {GPU: 1}}}]}}}),
    );
    let whole = [node("g1", 8), pod("p", "Job/j", 2, "g1"), job];
    let (mut cases, mut left_out) = (0, 0);
    for place in 0..whole.len() {
        for spoilt in spoilt(&whole[place]) {
            let mut objects = whole.to_vec();
            objects[place] = spoilt.clone();
            let found = inventory(&objects).facts(BTreeSet::new());
            assert!(found.skipped_count <= 1, "{spoilt}: {:?}", found.skipped);
            assert!(found.skipped.iter().all(|s| !s.problem.is_empty()), "{spoilt}");
            left_out += found.skipped_count;
            states(found);
            cases += 1;
        }
    }
    // Most are left out; the rest are legal, or stand where nobody looks.
    assert!(cases > 900 && left_out > cases / 2, "{left_out} of {cases}");
}

#[test]
fn a_dump_that_is_cut_off_anywhere_is_told() {
    let text = json!({"kind": "List", "items": [node("g1", 8), pod("p", "", 2, "g1")]}).to_string();
    for length in 1..text.len() {
        let mut inventory = Inventory::new(now_ms());
        let cut = &text.as_bytes()[..length];
        let error = read_objects(cut, "dump.json", &mut inventory).unwrap_err();
        assert!(error.to_string().starts_with("dump.json:1:"), "{length}: {error}");
    }
}

#[test]
fn pods_that_start_crash_end_or_do_not_go_are_told_apart() {
    let status = |name: &str, state: Value| json!({"name": name, "state": state});
    let over = json!({"terminated": {"reason": "Completed", "finishedAt": NOW}});
    let runs = json!({"running": {}});
    let with = |name: &str, statuses: Vec<Value>| {
        let mut pod = pod(name, "", 1, "g1");
        let helper = json!({"name": "proxy", "image": "proxy"});
        pod["spec"]["containers"].as_array_mut().unwrap().push(helper);
        pod["status"]["containerStatuses"] = json!(statuses);
        pod["status"]["conditions"].as_array_mut().unwrap().push(json!({
            "type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-20T11:30:00Z"
        }));
        pod
    };
    let mut starts =
        with("starts", vec![status("main", json!({"waiting": {"reason": "ContainerCreating"}}))]);
    starts["status"]["phase"] = json!("Pending");
    starts["status"]["conditions"][0] = json!({"type": "Ready", "status": "False"});
    let again = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let crashes = vec![status("main", again.clone()), status("proxy", runs.clone())];
    let crashes = with("crashes", crashes);
    let done = with("done", vec![status("main", over.clone()), status("proxy", runs.clone())]);
    let works = with("works", vec![status("main", runs.clone()), status("proxy", over)]);
    // Only the container without GPUs crashes.
    let helped = with("helped", vec![status("main", runs), status("proxy", again)]);
    let mut goes = with("goes", Vec::new());
    goes["metadata"]["deletionTimestamp"] = json!("2026-11-20T11:59:00Z");
    let found = gathered(&[starts, crashes, done, works, helped, goes]);
    let told: BTreeMap<_, _> = found
        .facts
        .workloads
        .iter()
        .map(|workload| {
            let pod = &workload.pods[0];
            let marks = [pod.is_starting, pod.crash_loops, pod.is_done_but_for_helpers];
            (&*pod.name, (marks, pod.should_be_gone_ms.map(|ms| now_ms() - ms)))
        })
        .collect();
    let expected = BTreeMap::from([
        ("starts", ([true, false, false], None)),
        ("crashes", ([false, true, false], None)),
        ("done", ([false, false, true], None)),
        ("works", ([false, false, false], None)),
        ("helped", ([false, false, false], None)),
        ("goes", ([false, false, false], Some(60_000))),
    ]);
    assert_eq!(told, expected);
    let half_an_hour = Some(now_ms() - 30 * 60_000);
    assert!(found.facts.workloads.iter().all(|w| w.pods[0].placed_since_ms == half_an_hour));
    let pods = found.facts.workloads.iter().map(|workload| &workload.pods[0]);
    let ends = pods.filter_map(|pod| Some((&*pod.name, pod.work_ended_ms?)));
    assert_eq!(ends.collect::<Vec<_>>(), [("done", now_ms())]);
}

#[test]
fn broken_gpus_exporters_volumes_and_autoscalers_are_read() {
    let mut broken = node("g1", 7);
    broken["status"]["capacity"][GPU] = json!("8");
    let mut exporter = pod("dcgm-a", "DaemonSet/dcgm", 0, "g1");
    exporter["spec"]["containers"][0]["image"] = json!("nvcr.io/nvidia/k8s/dcgm-exporter:4.5");
    let mut saves = pod("train-a", "Job/train", 1, "g1");
    saves["metadata"]["annotations"] = json!({"dovetail.dev/checkpoint-interval": "30m"});
    saves["spec"]["volumes"] =
        json!([{"name": "out", "persistentVolumeClaim": {"claimName": "c"}}]);
    saves["spec"]["terminationGracePeriodSeconds"] = json!(120);
    saves["spec"]["containers"][0]["args"] = json!(["serve", "org/model-8b-awq", null]);
    let scaler = |name: &str, metrics: Value| {
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name, "namespace": "research"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "serve"}, "maxReplicas": 3,
                "metrics": metrics}})
    };
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu"}});
    let queue = json!({"type": "External", "external": {"metric": {"name": "queue"}}});
    let found = gathered(&[
        broken,
        exporter,
        saves,
        scaler("both", json!([cpu, queue])),
        scaler("default", Value::Null),
    ]);
    let facts = &found.facts;
    let gpus = &facts.nodes[0].gpus[GPU];
    assert_eq!((gpus.built_in, gpus.allocatable), (8, 7));
    let exports: Vec<bool> = facts.workloads.iter().map(|w| w.exports_gpu_metrics).collect();
    assert_eq!(exports, [true, false]);
    let [plain, saving] = [0, 1].map(|number| &facts.workloads[number].template);
    assert_eq!((plain.has_lasting_volume, plain.saves_progress, plain.grace_s), (false, false, 30));
    assert_eq!(
        (saving.has_lasting_volume, saving.saves_progress, saving.grace_s),
        (true, true, 120)
    );
    let model = ServedModel { weights_millions: Some(8_000), bits: Some(4) };
    assert_eq!((plain.model, saving.model), (None, Some(model)));
    let told: Vec<_> = facts.autoscalers.iter().map(|a| (&a.scales, a.metrics.len())).collect();
    assert_eq!(told, [(&object("Deployment", "serve"), 2), (&object("Deployment", "serve"), 1)]);
    assert!(facts.autoscalers.iter().all(|autoscaler| autoscaler.most_replicas == Some(3)));
}

#[test]
fn a_node_without_gpu_pods_is_empty_since_the_last_of_them_that_is_still_listed_ended() {
    let ended = |name: &str, on: &str, at: &str| {
        let mut pod = pod(name, "Job/j", 1, on);
        pod["status"] = json!({"phase": "Succeeded", "containerStatuses": [
            {"name": "main", "state": {"terminated": {"reason": "Completed", "finishedAt": at}}}]});
        pod
    };
    let mut young = node("young", 8);
    young["metadata"]["creationTimestamp"] = json!("2026-11-20T11:55:00Z");
    let mut cordoned = node("cordoned", 8);
    cordoned["spec"]["unschedulable"] = json!(true);
    let found = gathered(&[
        node("busy", 8),
        node("joined", 8),
        node("ended", 8),
        young,
        cordoned,
        pod("p", "Job/j", 1, "busy"),
        ended("q", "ended", "2026-11-20T10:00:00Z"),
        ended("r", "ended", "2026-11-20T11:00:00Z"),
        // It held no GPU.
        {
            let mut none = ended("s", "joined", "2026-11-20T11:30:00Z");
            none["spec"]["containers"][0]["resources"] = json!({});
            none
        },
    ]);
    let minutes: BTreeMap<&str, Option<u64>> = found
        .facts
        .nodes
        .iter()
        .map(|node| {
            let since = node.without_gpu_pods_since_ms;
            (&*node.node.name, since.map(|since_ms| (now_ms() - since_ms) / 60_000))
        })
        .collect();
    let expected = [
        ("busy", None),
        ("cordoned", None),
        ("ended", Some(60)),
        ("joined", Some((19 * 24 + 12) * 60)),
        ("young", Some(5)),
    ];
    assert_eq!(minutes, BTreeMap::from(expected));
    let ids: Vec<(&str, usize)> = dovetail_audit::audit(&found.facts)
        .iter()
        .filter(|finding| finding.check.id == "AUT-03")
        .map(|finding| (finding.check.id, finding.affected.len()))
        .collect();
    assert_eq!(ids, [("AUT-03", 2)]);
}

#[test]
fn a_pod_far_away_that_keeps_others_off_still_does() {
    let zone = |mut node: Value| {
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!("a");
        node
    };
    let guard = |app: &str| {
        let mut guard = pod("guard", "Job/g", 0, "far");
        guard["spec"]["containers"][0]["resources"] = json!({});
        guard["spec"]["affinity"] = json!({"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{
                "labelSelector": {"matchLabels": {"app": app}},
                "topologyKey": "topology.kubernetes.io/zone"}]}});
        guard
    };
    let mut far = zone(node("far", 0));
    for field in ["capacity", "allocatable"] {
        far["status"][field].as_object_mut().expect("a map").remove(GPU);
    }
    let causes = |app: &str| {
        let objects = [zone(node("g", 8)), far.clone(), guard(app), pod("w", "Job/w", 8, "")];
        states(gathered(&objects))
    };
    // The waiting pod has the label `app: a`.
    assert_ne!(causes("a"), causes("b"));
}

#[test]
fn quotas_revisions_and_gpus_that_no_plugin_counts_are_read() {
    let mut short = node("short", 7);
    short["metadata"]["labels"]["nvidia.com/gpu.count"] = json!("8");
    let mut sliced = node("sliced", 0);
    sliced["metadata"]["labels"]["nvidia.com/gpu.count"] = json!("8");
    for field in ["capacity", "allocatable"] {
        sliced["status"][field]["nvidia.com/mig-2g.20gb"] = json!("24");
    }
    let quota = |name: &str, gpus: u32| {
        json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": name, "namespace": "research"},
            "spec": {"hard": {"requests.nvidia.com/gpu": gpus.to_string(), "pods": "9"}}})
    };
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research"}});
    let mut served = pod("s", "ReplicaSet/s-5d8f", 1, "short");
    served["metadata"]["labels"]["pod-template-hash"] = json!("5d8f");
    let found = gathered(&[short, sliced, quota("a", 16), quota("b", 8), space, served]);
    assert_eq!([0, 1].map(|at| found.facts.nodes[at].uncounted_gpus), [1, 0]);
    let space = &found.facts.namespaces[0];
    assert_eq!(space.gpu_quota, BTreeMap::from([(GPU.to_owned(), 8)]));
    assert_eq!(space.quota_resources.as_ref().map(BTreeSet::len), Some(2));
    assert_eq!(found.facts.workloads[0].pods[0].revision.as_deref(), Some("5d8f"));
}
