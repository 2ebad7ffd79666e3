//! For every check a world that triggers it and one that nearly does. All worlds are one change
//! away from a cluster in which nothing is wrong.

mod claimed;
mod consolidated;
mod emptied;
mod ended;
mod harmless;
mod layout_advice;
mod missing_instances;
mod models;
mod packed;
mod pending;
mod pools;
mod priced;
mod remedied;
mod repaired;
mod requested;
mod scaled;
mod seen;
mod shared;
mod sharing;
mod slices;
mod spare;
mod staying;
mod thresholds;

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::Span;
use dovetail_facts::*;
use dovetail_model::{
    NodeAvailability, NodeCondition, Resources, SelectorTerm, Taint, TaintEffect, Toleration,
    requirement,
};

use super::*;
use crate::catalogue::CATALOGUE;
use crate::suppress::{Suppression, SuppressionPolicy, suppress};
use models::{MODELS, cheaper, hung};
use seen::{VISIBILITY, advised, throttled};
use sharing::SHARING;

const GPU: &str = "nvidia.com/gpu";
const GIB: i64 = 1 << 30;
const HOUR_MS: u64 = 3_600_000;
const NOW_MS: u64 = 1_000 * HOUR_MS;

fn map<V: Clone>(pairs: &[(&str, V)]) -> BTreeMap<String, V> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
}

fn taint(key: &str) -> Taint {
    Taint { key: key.into(), value: String::new(), effect: TaintEffect::NoSchedule }
}

fn toleration(key: &str) -> Toleration {
    Toleration { key: key.into(), any_value: true, ..Toleration::default() }
}

/// 96 cores, 1 TiB, 8 GPUs of a model, kept for pods with GPUs.
fn gpu_node(name: &str, model: &str) -> Node {
    let mut node = dovetail_model::Node::plain(name, 96_000, 1024 * GIB, 8, model);
    node.taints = vec![taint(GPU)];
    node.labels = map(&[("model", model.to_owned())]);
    Node {
        gpus: map(&[(
            GPU,
            Gpus { model: Some(model.to_owned()), built_in: 8, allocatable: 8, ..Gpus::default() },
        )]),
        is_spot: Some(false),
        devices: (0..8).collect(),
        ..Node::new(node, ObjectRef::new("NodePool", "", "gpus"))
    }
}

/// One more node with its exporter.
fn add_node(facts: &mut Facts, node: Node) {
    let name = Some(node.node.name.to_string());
    facts.nodes.push(node);
    facts.workloads[EXPORTER].pods.push(Pod { node: name, ..Pod::default() });
}

fn workload(owner: ObjectRef, gpus: i64, replicas: u32, node: &str) -> Workload {
    let limits = if gpus > 0 { map(&[(GPU, gpus)]) } else { BTreeMap::new() };
    let main = Container {
        name: "main".into(),
        requests: map(&[("cpu", 4_000 * gpus.max(1)), ("memory", 32 * GIB * gpus.max(1))]),
        limits,
        ..Container::default()
    };
    let pod = |index| Pod {
        name: format!("{}-{index}", owner.name),
        node: Some(node.into()),
        placed_since_ms: Some(NOW_MS - 2 * HOUR_MS),
        ..Pod::default()
    };
    Workload {
        pods: (0..replicas).map(pod).collect(),
        owner,
        replicas,
        template: PodTemplate {
            labels: map(&[("team", "search".to_owned())]),
            containers: vec![main],
            requests: Resources::pod(4_000 * gpus.max(1), 32 * GIB * gpus.max(1)),
            shared_memory: Some(SharedMemory { limit_bytes: Some(16 * GIB) }),
            ..PodTemplate::default()
        },
        ..Workload::default()
    }
}

/// Training as a gang of two on four GPUs each, inference on one GPU, a web server without; one GPU
/// node, one other.
fn healthy() -> Facts {
    let train = Workload {
        class: Some(WorkloadClass::Training),
        is_gang: true,
        ..workload(ObjectRef::new("Job", "research", "train"), 4, 2, "g1")
    };
    let mut serve = Workload {
        class: Some(WorkloadClass::Inference),
        ..workload(ObjectRef::new("Deployment", "prod", "serve"), 1, 2, "g1")
    };
    serve.template.priority_class = Some("serving".into());
    let web = workload(ObjectRef::new("Deployment", "prod", "web"), 0, 3, "c1");
    let exporter = Workload {
        exports_gpu_metrics: true,
        ..workload(ObjectRef::new("DaemonSet", "monitoring", "exporter"), 0, 1, "g1")
    };
    let mut other = gpu_node("c1", "none");
    (other.gpus, other.node.taints, other.devices) = (BTreeMap::new(), Vec::new(), Vec::new());
    let namespace = |name: &str| Namespace {
        name: name.into(),
        labels: BTreeMap::new(),
        quota_resources: Some(BTreeSet::from([format!("requests.{GPU}")])),
        gpu_quota: BTreeMap::new(),
    };
    Facts {
        now_ms: NOW_MS,
        period: Span { from_ms: NOW_MS - 24 * HOUR_MS, to_ms: NOW_MS },
        nodes: vec![gpu_node("g1", "H100"), other],
        workloads: vec![train, serve, web, exporter],
        to_come: Vec::new(),
        lacks_pods: false,
        namespaces: vec![namespace("research"), namespace("prod")],
        budgets: vec![Budget {
            object: ObjectRef::new("PodDisruptionBudget", "prod", "serve"),
            protects: ObjectRef::new("Deployment", "prod", "serve"),
            limit: BudgetLimit::MinAvailable(1),
        }],
        autoscalers: vec![Autoscaler {
            object: ObjectRef::new("HorizontalPodAutoscaler", "prod", "serve"),
            scales: ObjectRef::new("Deployment", "prod", "serve"),
            metrics: BTreeSet::from(["queue_length".to_owned()]),
            ..Autoscaler::default()
        }],
        removal_rules: BTreeMap::new(),
        has_cluster_autoscaler: false,
        scoring: Some(Scoring::MostAllocated),
        has_gpu_admission_policy: Some(true),
        team_labels: BTreeSet::from(["team".to_owned(), "cost-center".to_owned()]),
        advice: None,
        usage: None,
        thresholds: Thresholds::default(),
    }
}

const TRAIN: usize = 0;
const SERVE: usize = 1;
const WEB: usize = 2;
const EXPORTER: usize = 3;

fn main_of(facts: &mut Facts, workload: usize) -> &mut Container {
    &mut facts.workloads[workload].template.containers[0]
}

fn requests(facts: &mut Facts, workload: usize, resource: &str, amount: i64) {
    main_of(facts, workload).requests.insert(resource.into(), amount);
    let all = &mut facts.workloads[workload].template.requests;
    match resource {
        "cpu" => all.cpu_milli = amount,
        "memory" => all.memory_bytes = amount,
        _ => _ = all.extended.insert(resource.into(), amount),
    }
}

fn limits(facts: &mut Facts, workload: usize, gpus: i64) {
    main_of(facts, workload).limits.insert(GPU.into(), gpus);
}

fn helper(kind: ContainerKind, gpus: i64) -> Container {
    Container { name: "helper".into(), kind, limits: map(&[(GPU, gpus)]), ..Container::default() }
}

/// Only nodes of a model.
fn model_is(model: &str) -> NodeCondition {
    let term = SelectorTerm {
        key: "model".into(),
        operator: requirement::Operator::In,
        values: vec![model.into()],
    };
    NodeCondition::node_affinity(vec![vec![term]])
}

/// Measures the pods of a workload over the day: each GPU computed for so long, and last.
fn used(facts: &mut Facts, workload: usize, active_ms: &[u64]) {
    let day_ms = 24 * HOUR_MS;
    facts.usage = Some(UsagePeriod { span: facts.period, step_ms: 60_000 });
    let of_gpu = |(number, active_ms): (usize, &u64)| GpuUse {
        gpu: number.to_string(),
        active_ms: *active_ms,
        idle_ms: day_ms - active_ms,
        idle_since_ms: None,
        p95_micro_percent: Some(100_000_000),
        memory_peak_bytes: Some(70 << 30),
        ..GpuUse::default()
    };
    for pod in &mut facts.workloads[workload].pods {
        pod.uses = active_ms.iter().enumerate().map(of_gpu).collect();
    }
}

/// Servers that are busy most of the time, and so much of their GPU and its memory at most.
fn small(facts: &mut Facts, busy_micro_percent: u32, memory_bytes: i64) {
    used(facts, SERVE, &[23 * HOUR_MS]);
    for pod in &mut facts.workloads[SERVE].pods {
        pod.uses[0].p95_micro_percent = Some(busy_micro_percent);
        pod.uses[0].memory_peak_bytes = Some(memory_bytes.unsigned_abs());
    }
}

/// The first so many servers, or notebooks, stand still since so long.
fn still(facts: &mut Facts, class: WorkloadClass, pods: usize, length_ms: u64) {
    used(facts, SERVE, &[20 * HOUR_MS]);
    facts.workloads[SERVE].class = Some(class);
    let end_ms = facts.period.to_ms;
    for pod in facts.workloads[SERVE].pods.iter_mut().take(pods) {
        pod.uses[0].idle_since_ms = Some(end_ms - length_ms);
    }
}

/// A check, a change that triggers it, and one that nearly does.
type Case = (&'static str, fn(&mut Facts), fn(&mut Facts));

const REQUEST: [Case; 12] = [
    ("REQ-01", |f| requests(f, SERVE, GPU, 2), |f| requests(f, SERVE, GPU, 1)),
    (
        "REQ-02",
        |f| main_of(f, WEB).sees_gpus_by = Some("NVIDIA_VISIBLE_DEVICES=all".into()),
        // It asked for GPUs: it may see them.
        |f| main_of(f, SERVE).sees_gpus_by = Some("NVIDIA_VISIBLE_DEVICES=all".into()),
    ),
    ("REQ-03", |f| limits(f, TRAIN, 9), |f| limits(f, TRAIN, 8)),
    (
        "REQ-04",
        |f| used(f, TRAIN, &[3 * HOUR_MS, 0, 0, 0]),
        // All of them computed, if only once.
        |f| used(f, TRAIN, &[20 * HOUR_MS, 1, 1, 1]),
    ),
    (
        "REQ-05",
        |f| used(f, TRAIN, &[0; 4]),
        // Nobody looked for long enough.
        |f| {
            used(f, TRAIN, &[0; 4]);
            for pod in &mut f.workloads[TRAIN].pods {
                pod.uses[3].idle_ms = 12 * HOUR_MS - 1;
            }
        },
    ),
    // Four fifths of three sevenths of a GPU, and 40 GiB.
    ("REQ-06", |f| small(f, 34_285_714, 40 * GIB), |f| small(f, 34_285_715, 40 * GIB)),
    (
        "REQ-07",
        |f| advised(f, "memory", 12 * GIB, 16 * GIB - 1),
        // Twice as much as is needed is care.
        |f| advised(f, "memory", 12 * GIB, 16 * GIB),
    ),
    ("REQ-08", |f| requests(f, SERVE, "cpu", 12_601), |f| requests(f, SERVE, "cpu", 12_600)),
    (
        "REQ-09",
        |f| throttled(f, 7 * HOUR_MS, 5_999),
        // Three tenths of the time, or as much CPU as it needs.
        |f| throttled(f, 7 * HOUR_MS, 6_000),
    ),
    ("REQ-10", |f| killed(f, 3), |f| killed(f, 2)),
    (
        "REQ-11",
        |f| f.workloads[TRAIN].template.containers.push(helper(ContainerKind::Sidecar, 1)),
        // As much as the work needs anyway.
        |f| f.workloads[TRAIN].template.containers.push(helper(ContainerKind::Init, 4)),
    ),
    (
        "REQ-12",
        |f| f.workloads[TRAIN].template.shared_memory = None,
        // No limit but the pod's own.
        |f| f.workloads[TRAIN].template.shared_memory = Some(SharedMemory { limit_bytes: None }),
    ),
];

/// Three GPUs free on each of two nodes, and one more pod of the training that asks for so many as
/// all of it do.
fn in_pieces(facts: &mut Facts, gpus: i64) {
    add_node(facts, gpu_node("g2", "H100"));
    let mut fill = workload(ObjectRef::new("Job", "research", "fill"), 5, 1, "g1");
    fill.pods.push(Pod { node: Some("g2".into()), ..fill.pods[0].clone() });
    fill.replicas = 2;
    facts.workloads[SERVE].pods.clear();
    limits(facts, TRAIN, gpus);
    facts.workloads[TRAIN].template.tolerations = vec![toleration(GPU)];
    facts.workloads[TRAIN].pods = vec![Pod { name: "train-0".into(), ..Pod::default() }];
    facts.workloads.push(fill);
}

const SCHEDULING: [Case; 12] = [
    (
        "SCH-01",
        |f| f.nodes[0].node.taints.clear(),
        // In a cluster of GPU nodes alone everything has to run on them.
        |f| {
            f.nodes[0].node.taints.clear();
            f.nodes.truncate(1);
        },
    ),
    (
        "SCH-02",
        |f| f.workloads[WEB].pods[0].node = Some("g1".into()),
        |f| {
            f.workloads[WEB].pods[0].node = Some("g1".into());
            f.workloads[WEB].owner.kind = "DaemonSet".into();
        },
    ),
    (
        "SCH-03",
        |f| f.workloads[WEB].template.tolerations = vec![toleration("")],
        |f| f.workloads[WEB].template.tolerations = vec![toleration("spot")],
    ),
    (
        "SCH-04",
        |f| f.nodes[0].node.taints.push(taint("team-b")),
        |f| {
            f.nodes[0].node.taints.push(taint("team-b"));
            f.workloads[TRAIN].template.tolerations = vec![toleration("team-b")];
            f.workloads[SERVE].template.tolerations = vec![toleration("team-b")];
        },
    ),
    (
        "SCH-05",
        |f| add_node(f, gpu_node("g2", "L4")),
        |f| {
            add_node(f, gpu_node("g2", "L4"));
            f.workloads[TRAIN].template.node_conditions = vec![model_is("H100")];
            f.workloads[SERVE].template.node_conditions = vec![model_is("L4")];
        },
    ),
    (
        "SCH-06",
        |f| {
            f.nodes[0].node.taints = vec![taint("gpu-node")];
            for workload in [TRAIN, SERVE] {
                f.workloads[workload].template.tolerations = vec![toleration("gpu-node")];
            }
        },
        // The other taint of a node may have any name.
        |f| {
            f.nodes[0].node.taints.push(taint("team-b"));
            for workload in [TRAIN, SERVE] {
                f.workloads[workload].template.tolerations = vec![toleration("team-b")];
            }
        },
    ),
    ("SCH-07", |f| f.scoring = Some(Scoring::LeastAllocated), |f| f.scoring = None),
    (
        "SCH-08",
        // Nodes with two free each, and a pod that asks for four.
        |f| in_pieces(f, 4),
        |f| in_pieces(f, 3),
    ),
    (
        "SCH-09",
        |f| f.workloads[TRAIN].is_gang = false,
        |f| (f.workloads[TRAIN].is_gang, f.workloads[TRAIN].replicas) = (false, 1),
    ),
    (
        "SCH-10",
        |f| f.workloads[TRAIN].template.keeps_apart_by = Some("podAntiAffinity".into()),
        // Two of them would not fit on a node.
        |f| {
            f.workloads[TRAIN].template.keeps_apart_by = Some("podAntiAffinity".into());
            limits(f, TRAIN, 5);
        },
    ),
    (
        "SCH-11",
        |f| f.workloads[SERVE].template.priority_class = None,
        |f| f.workloads[TRAIN].template.priority_class = Some("batch".into()),
    ),
    (
        "SCH-12",
        |f| f.nodes[0].numa_policy = Some(NumaPolicy::None),
        |f| f.nodes[0].numa_policy = Some(NumaPolicy::BestEffort),
    ),
];

/// A quota, and training that is idle for so long of each day.
fn owned(facts: &mut Facts, idle_ms: u64) {
    facts.namespaces[0].gpu_quota = map(&[(GPU, 8)]);
    used(facts, TRAIN, &[24 * HOUR_MS - idle_ms; 4]);
}

const GOVERNANCE: [Case; 4] = [
    (
        "GOV-01",
        |f| f.namespaces[1].quota_resources = Some(BTreeSet::from(["requests.cpu".to_owned()])),
        // Nobody could read the quotas.
        |f| f.namespaces[1].quota_resources = None,
    ),
    (
        "GOV-02",
        |f| f.workloads[TRAIN].template.labels.clear(),
        |f| {
            f.workloads[TRAIN].template.labels.clear();
            f.namespaces[0].labels = map(&[("cost-center", "7".to_owned())]);
        },
    ),
    ("GOV-03", |f| owned(f, 3 * HOUR_MS), |f| owned(f, 2 * HOUR_MS)),
    ("GOV-04", |f| f.has_gpu_admission_policy = Some(false), |f| f.has_gpu_admission_policy = None),
];

/// So many containers of the training were killed for memory.
fn killed(facts: &mut Facts, proven: u32) {
    facts.workloads[TRAIN].memory_kills = Some(MemoryKills { proven, may_be_more: false });
}

/// Keeps its pods in place, and half of its node's GPUs in use or less.
fn held(facts: &mut Facts, gpus: i64) {
    facts.workloads[TRAIN].pods.clear();
    limits(facts, SERVE, gpus);
    facts.workloads[SERVE].template.eviction_held_by = vec!["safe-to-evict: \"false\"".into()];
}

const AUTOSCALING: [Case; 7] = [
    ("AUT-01", |f| held(f, 1), |f| held(f, 2)),
    (
        "AUT-02",
        |f| f.budgets[0].limit = BudgetLimit::MinAvailablePercent(51),
        |f| f.budgets[0].limit = BudgetLimit::MinAvailablePercent(50),
    ),
    (
        "AUT-03",
        |f| f.nodes[0].without_gpu_pods_since_ms = Some(NOW_MS - HOUR_MS / 6 - 1),
        |f| f.nodes[0].without_gpu_pods_since_ms = Some(NOW_MS - HOUR_MS / 6),
    ),
    (
        "AUT-04",
        |f| f.nodes[0].scale_down_held_by = Some("scale-down-disabled: \"true\"".into()),
        |f| f.nodes[1].scale_down_held_by = Some("scale-down-disabled: \"true\"".into()),
    ),
    (
        "AUT-05",
        |f| {
            f.workloads[SERVE].owner.kind = "Pod".into();
            f.budgets.clear();
        },
        |f| f.workloads[WEB].owner.kind = "Pod".into(),
    ),
    (
        "AUT-06",
        |f| f.nodes[0].cordoned_since_ms = Some(NOW_MS - 4 * HOUR_MS - 1),
        |f| f.nodes[0].cordoned_since_ms = Some(NOW_MS - 4 * HOUR_MS),
    ),
    (
        "AUT-07",
        consolidated::one_server_on_each_node,
        // Whose data stays on the node stays, too.
        |f| {
            consolidated::one_server_on_each_node(f);
            f.workloads[SERVE].template.has_host_path = true;
        },
    ),
];

const CAPACITY: [Case; 4] = [
    (
        "CAP-01",
        |f| f.nodes[0].gpus.get_mut(GPU).unwrap().allocatable = 7,
        |f| {
            let gpus = f.nodes[0].gpus.get_mut(GPU).unwrap();
            (gpus.built_in, gpus.allocatable) = (7, 7);
        },
    ),
    (
        "CAP-02",
        |f| f.nodes[0].node.condition = NodeAvailability::NotReady,
        |f| f.nodes[0].node.condition = NodeAvailability::Starting,
    ),
    (
        "CAP-05",
        |f| f.nodes[0].uncounted_gpus = 1,
        // As many as the plugin counts.
        |f| f.nodes[0].uncounted_gpus = 0,
    ),
    (
        "CAP-06",
        |f| free_beside_a_server(f, Some(NOW_MS - HOUR_MS)),
        // It is unknown since when.
        |f| free_beside_a_server(f, None),
    ),
];

/// A second node, on which one server has one of eight GPUs.
fn free_beside_a_server(facts: &mut Facts, free_since_ms: Option<u64>) {
    let mut node = gpu_node("g2", "H100");
    (node.devices, node.free_since_ms) = ((8..16).collect(), free_since_ms);
    add_node(facts, node);
    facts.workloads[SERVE].pods[0].node = Some("g2".into());
}

/// One of the servers is of another revision; with or without a node.
fn rolled_out(facts: &mut Facts, node: Option<&str>) {
    let pods = &mut facts.workloads[SERVE].pods;
    pods[0].revision = Some("5d8f".to_owned());
    pods[1].revision = Some("7c9a".to_owned());
    pods[1].node = node.map(str::to_owned);
}

const IDLE: [Case; 9] = [
    (
        "IDL-01",
        |f| still(f, WorkloadClass::Interactive, 1, HOUR_MS + 1),
        |f| still(f, WorkloadClass::Interactive, 2, HOUR_MS),
    ),
    (
        "IDL-02",
        |f| still(f, WorkloadClass::Inference, 2, HOUR_MS + 1),
        |f| still(f, WorkloadClass::Inference, 2, HOUR_MS),
    ),
    (
        "IDL-03",
        |f| f.autoscalers[0].metrics = BTreeSet::from(["cpu".to_owned()]),
        |f| {
            f.autoscalers[0].metrics = BTreeSet::from(["cpu".to_owned()]);
            f.autoscalers[0].scales.name = "web".into();
        },
    ),
    (
        "IDL-04",
        |f| f.workloads[TRAIN].pods[0].crash_loops = true,
        |f| f.workloads[WEB].pods[0].crash_loops = true,
    ),
    (
        "IDL-05",
        |f| {
            let pod = &mut f.workloads[SERVE].pods[0];
            pod.is_starting = true;
            pod.placed_since_ms = Some(NOW_MS - 10 * 60_000 - 1);
        },
        |f| {
            let pod = &mut f.workloads[SERVE].pods[0];
            pod.is_starting = true;
            pod.placed_since_ms = Some(NOW_MS - 10 * 60_000);
        },
    ),
    (
        "IDL-06",
        |f| f.workloads[SERVE].pods[0].should_be_gone_ms = Some(NOW_MS - 5 * 60_000 - 1),
        |f| f.workloads[SERVE].pods[0].should_be_gone_ms = Some(NOW_MS - 5 * 60_000),
    ),
    ("IDL-07", |f| rolled_out(f, Some("g1")), |f| rolled_out(f, None)),
    ("IDL-08", |f| hung(f, 600_000), |f| hung(f, 599_999)),
    (
        "IDL-09",
        |f| still(f, WorkloadClass::Inference, 1, HOUR_MS + 1),
        |f| still(f, WorkloadClass::Inference, 1, HOUR_MS),
    ),
];

fn label(facts: &mut Facts, key: &str, value: &str) {
    facts.nodes[0].node.labels.insert(key.into(), value.into());
}

const SPOT: [Case; 4] = [
    (
        "SPT-01",
        |f| {
            f.nodes[0].is_spot = Some(true);
            f.workloads[SERVE].class = None;
        },
        |f| {
            f.nodes[0].is_spot = Some(true);
            f.workloads[SERVE].class = None;
            f.workloads[TRAIN].template.has_lasting_volume = true;
        },
    ),
    (
        "SPT-02",
        |f| f.workloads[TRAIN].template.saves_progress = true,
        |f| {
            f.workloads[TRAIN].template.saves_progress = true;
            f.nodes[0].is_spot = None;
        },
    ),
    (
        "SPT-03",
        |f| {
            f.nodes[0].is_spot = Some(true);
            f.workloads[TRAIN].class = None;
        },
        |f| {
            f.nodes[0].is_spot = Some(true);
            f.workloads[TRAIN].class = None;
            add_node(f, gpu_node("g2", "H100"));
            f.workloads[SERVE].pods[0].node = Some("g2".into());
        },
    ),
    // A tenth cheaper.
    ("SPT-04", |f| cheaper(f, 6_300_000), |f| cheaper(f, 6_300_001)),
];

fn cases() -> impl Iterator<Item = Case> {
    let requested = REQUEST.into_iter().chain(SCHEDULING).chain(SHARING).chain(IDLE);
    let governed = requested.chain(GOVERNANCE).chain(AUTOSCALING).chain(SPOT);
    governed.chain(CAPACITY).chain(VISIBILITY).chain(MODELS)
}

fn ids(facts: &Facts) -> Vec<&'static str> {
    audit(facts).iter().map(|finding| finding.check.id).collect()
}

#[test]
fn a_healthy_cluster_has_no_findings() {
    assert_eq!(audit(&healthy()), []);
    assert_eq!(audit(&Facts::default()), []);
}

#[test]
fn every_check_is_triggered_by_its_world_alone_and_not_by_the_one_that_nearly_does() {
    for (id, triggers, nearly) in cases() {
        let (mut bad, mut good) = (healthy(), healthy());
        triggers(&mut bad);
        nearly(&mut good);
        let found = ids(&bad);
        assert!(found.contains(&id), "{id} is not among {found:?}");
        assert!(found.iter().all(|found| *found == id), "{id} alone, not {found:?}");
        assert_eq!(ids(&good), [""; 0], "{id} nearly");
    }
}

#[test]
fn every_check_of_the_catalogue_runs_and_has_its_worlds() {
    let catalogue: Vec<&str> = CATALOGUE.into_iter().flatten().map(|check| check.id).collect();
    let runs: Vec<&str> = FAMILIES.into_iter().flatten().map(|(id, _)| *id).collect();
    assert_eq!(catalogue, runs);
    // What is pending is in no facts: these have tests of their own.
    let of_facts = catalogue.iter().filter(|id| !pending::OF_PENDING.contains(id)).copied();
    assert_eq!(of_facts.collect::<Vec<_>>(), cases().map(|(id, ..)| id).collect::<Vec<_>>());
    for check in CATALOGUE.into_iter().flatten() {
        let texts = [check.title, check.explanation, check.evidence, check.fix_example];
        assert!(texts.iter().all(|text| !text.is_empty()), "{}", check.id);
        assert_eq!(crate::check(&check.id.to_lowercase()), Some(check));
        // What is sold as GPU-hours, a ledger can confirm.
        let is_confirmable = !check.reach.states().is_empty();
        assert!(is_confirmable || check.worth == crate::Worth::Risk, "{}", check.id);
    }
}

#[test]
fn of_nodes_that_are_alike_the_most_generous_counts() {
    let mut facts = healthy();
    requests(&mut facts, SERVE, "cpu", 12_601);
    // Another name and hostname make no other kind of node.
    let mut larger = gpu_node("g2", "H100");
    larger.node.labels.insert("kubernetes.io/hostname".into(), "g2".into());
    larger.node.allocatable.cpu_milli = 96_008;
    add_node(&mut facts, larger);
    assert_eq!(View::of(&facts, &Moment::default()).kinds.len(), 1);
    assert_eq!(ids(&facts), [""; 0]);
    // Whoever must go to the smaller one is told so.
    let term = SelectorTerm {
        key: "metadata.name".into(),
        operator: requirement::Operator::In,
        values: vec!["g1".into()],
    };
    let pinned = NodeCondition::node_affinity(vec![vec![term]]);
    facts.workloads[SERVE].template.node_conditions = vec![pinned];
    assert_eq!(ids(&facts), ["REQ-08"]);
    // A label that somebody asks for tells kinds apart.
    facts.nodes[2].node.labels.insert("model".into(), "other".into());
    facts.workloads[TRAIN].template.node_conditions = vec![model_is("H100")];
    assert_eq!(View::of(&facts, &Moment::default()).kinds.len(), 2);
}

#[test]
fn ten_thousand_pods_of_one_owner_are_one_finding() {
    let mut facts = healthy();
    let pod =
        |index| Pod { name: format!("web-{index}"), node: Some("g1".into()), ..Pod::default() };
    facts.workloads[WEB].pods = (0..10_000).map(pod).collect();
    facts.nodes[0].node.taints.clear();
    let other = Node { node: gpu_node("g2", "H100").node, ..facts.nodes[0].clone() };
    add_node(&mut facts, other);
    facts.nodes[2].node.taints.clear();
    let found = audit(&facts);
    let shape: Vec<_> =
        found.iter().map(|f| (f.check.id, &*f.object.name, f.affected.len())).collect();
    assert_eq!(shape, [("SCH-01", "gpus", 2), ("SCH-02", "web", 10_000)]);
}

#[test]
fn a_number_of_kills_that_may_be_too_low_is_said_to_be_the_least() {
    for (may_be_more, told) in [(false, "3"), (true, "at least 3")] {
        let mut facts = healthy();
        facts.workloads[TRAIN].memory_kills = Some(MemoryKills { proven: 3, may_be_more });
        let found = audit(&facts);
        assert_eq!(found[0].check.id, "REQ-10");
        let kills = found[0].evidence.iter().find(|of| of.what == "kills in seven days");
        assert_eq!(kills.expect("they are told").value, told);
    }
    // What may have been a kill is none.
    let mut facts = healthy();
    facts.workloads[TRAIN].memory_kills = Some(MemoryKills { proven: 1, may_be_more: true });
    assert!(audit(&facts).is_empty());
}

#[test]
fn who_ignores_a_finding_is_named_and_policy_can_forbid_it() {
    let mut facts = healthy();
    facts.workloads[TRAIN].is_gang = false;
    facts.workloads[TRAIN].ignores = BTreeSet::from(["sch-09".to_owned()]);
    facts.has_gpu_admission_policy = Some(false);
    let with = |policy: &SuppressionPolicy| {
        let mut found = audit(&facts);
        suppress(&mut found, &facts, policy);
        found.into_iter().map(|f| (f.check.id, f.suppressed.map(|s| s.by))).collect::<Vec<_>>()
    };
    let annotation = Some("annotation dovetail.dev/ignore".to_owned());
    let in_file = Suppression {
        check: "GOV-04".into(),
        object: None,
        by: "ignore.toml:3".into(),
        why: "policies come next quarter".into(),
    };
    let mut policy = SuppressionPolicy { suppressions: vec![in_file], never: BTreeSet::new() };
    let file = Some("ignore.toml:3".to_owned());
    assert_eq!(with(&policy), [("SCH-09", annotation), ("GOV-04", file.clone())]);
    policy.never.insert("SCH-09".to_owned());
    assert_eq!(with(&policy), [("SCH-09", None), ("GOV-04", file)]);
}
