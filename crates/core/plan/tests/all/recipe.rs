//! Random worlds as bytes. A zero byte is always the plainest choice, so shrinking makes worlds
//! plain.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::job::EstimateSource;
use dovetail_model::node::{DrainWindow, NAME_LABEL};
use dovetail_model::requirement::Operator;
use dovetail_model::topology::Level;
use dovetail_model::{
    Attachment, Bounds, ConditionCause, CounterRule, CounterScope, Device, DeviceRequest, Estimate,
    Images, InterruptionCost, Job, JobId, Knowledge, MigProfile, MigTable, Node, NodeAvailability,
    NodeCondition, PodSet, PreemptionRules, Preference, Preferred, Queue, Requirement, Resources,
    RuleCause, RuleKind, SelectorTerm, Selectors, Taint, TaintEffect, Toleration, Topology,
    TopologyRequest,
};
use dovetail_plan::PreemptionConfig;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// What a world and its history are decoded from.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) config: [u8; 8],
    pub(crate) nodes: Vec<[u8; 24]>,
    pub(crate) shapes: Vec<[u8; 40]>,
    pub(crate) events: Vec<[u8; 24]>,
}

impl Recipe {
    /// The recipe that prints as this text.
    pub(crate) fn read(text: &str) -> Self {
        let mut recipe =
            Self { config: [0; 8], nodes: Vec::new(), shapes: Vec::new(), events: Vec::new() };
        for line in text.lines() {
            let (name, bytes) = line.split_once(' ').expect("a name and its bytes");
            let bytes: Vec<u8> = serde_json::from_str(bytes).expect("a list of bytes");
            match name {
                "config" => recipe.config = padded(&bytes),
                "node" => recipe.nodes.push(padded(&bytes)),
                "shape" => recipe.shapes.push(padded(&bytes)),
                "event" => recipe.events.push(padded(&bytes)),
                other => panic!("{other} is no part of a recipe"),
            }
        }
        recipe
    }
}

/// The bytes, with the zeros at the end that printing leaves out.
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut whole = [0; N];
    whole[..bytes.len()].copy_from_slice(bytes);
    whole
}

impl std::fmt::Debug for Recipe {
    /// One line per record, with the zeros at its end left out.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tidy = |bytes: &[u8]| {
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            format!("{:?}", &bytes[..end])
        };
        writeln!(out, "config {}", tidy(&self.config))?;
        self.nodes.iter().try_for_each(|bytes| writeln!(out, "node {}", tidy(bytes)))?;
        self.shapes.iter().try_for_each(|bytes| writeln!(out, "shape {}", tidy(bytes)))?;
        self.events.iter().try_for_each(|bytes| writeln!(out, "event {}", tidy(bytes)))
    }
}

/// Recipes of at most so many nodes, shapes and events.
pub(crate) fn recipes(nodes: usize, shapes: usize, events: usize) -> impl Strategy<Value = Recipe> {
    (
        any::<[u8; 8]>(),
        prop::collection::vec(any::<[u8; 24]>(), 1..=nodes),
        prop::collection::vec(any::<[u8; 40]>(), 1..=shapes),
        prop::collection::vec(any::<[u8; 24]>(), 1..=events),
    )
        .prop_map(|(config, nodes, shapes, events)| Recipe { config, nodes, shapes, events })
}

/// So many cases from a fixed seed, so that a run can be repeated; `PROPTEST_RNG_SEED` explores
/// others.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    let config = dovetail_cases::cases(count);
    ProptestConfig {
        rng_seed: match config.rng_seed {
            RngSeed::Random => RngSeed::Fixed(2026),
            fixed => fixed,
        },
        failure_persistence: None,
        max_shrink_iters: 50_000,
        ..config
    }
}

/// Reads choices from bytes; an exhausted record chooses the plainest.
#[derive(Clone, Debug)]
pub(crate) struct Choices<'b>(std::slice::Iter<'b, u8>);

impl<'b> Choices<'b> {
    pub(crate) fn of(bytes: &'b [u8]) -> Self {
        Self(bytes.iter())
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % count
    }

    /// As [`Choices::below`], for counts beyond 256.
    pub(crate) fn below_many(&mut self, count: usize) -> usize {
        let (low, high) = (self.below(256), self.below(256));
        (high << 8 | low) % count
    }

    pub(crate) fn among<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

/// Selectors that count pods by what they are, and by what they use.
const SELECTORS: [&str; 5] = ["web", "batch", "port:80", "disk:a", "claim:b"];

impl Recipe {
    pub(crate) fn topology(&self) -> Topology {
        let level = |name: &str| Level { name: name.to_owned(), label: format!("{name}-label") };
        let names = ["zone", "block", "rack"];
        let count = [2, 1, 0, 3][usize::from(self.config[0] % 4)];
        let names = if count == 2 { vec!["zone", "rack"] } else { names[..count].to_vec() };
        Topology { levels: names.into_iter().map(level).collect() }
    }

    pub(crate) fn queues(&self) -> Vec<Queue> {
        let limits = [None, None, None, Some(4000), Some(1500), Some(8000), None, Some(0)];
        let given = |name: &str, parent, place: usize| {
            let byte = usize::from(self.config[1 + place]);
            let mut plain = queue(name, parent, limits[byte % 8]);
            if byte / 8 % 4 == 1 {
                plain.limit.by_model = [("A".to_owned(), 3_000)].into();
            }
            let cpu_milli = [None, None, Some(3_000), Some(9_000)][byte / 8 % 4];
            let gpu_milli = [None, Some(2_500)][byte / 32 % 2];
            let guaranteed = Bounds { cpu_milli, ..Bounds::gpus(gpu_milli) };
            let borrows = byte / 64 % 2 == 1;
            Queue { guaranteed, borrows, weight: 1 + byte as u32 / 128, ..plain }
        };
        vec![given("team", Some("all"), 0), given("other", Some("all"), 1), given("all", None, 2)]
    }

    pub(crate) fn shapes(&self) -> Vec<Arc<Requirement>> {
        self.shapes.iter().map(|bytes| Arc::new(requirement(&mut Choices::of(bytes)))).collect()
    }

    pub(crate) fn nodes(&self) -> Vec<Node> {
        let named = self.nodes.iter().enumerate();
        named.map(|(index, bytes)| node(index, &mut Choices::of(bytes))).collect()
    }
}

pub(crate) fn queue(name: &str, parent: Option<&str>, limit_gpu_milli: Option<i64>) -> Queue {
    Queue {
        parent: parent.map(str::to_owned),
        limit: Bounds::gpus(limit_gpu_milli),
        ..Queue::named(name)
    }
}

/// The slices of an A100 or H100.
pub(crate) fn mig_table() -> MigTable {
    let profile = |name: &str, compute_slices, memory_slices, starts: &[u8]| MigProfile {
        name: name.to_owned(),
        compute_slices,
        memory_slices,
        starts: starts.to_vec(),
    };
    MigTable {
        name: "eight".into(),
        memory_slices: 8,
        compute_slices: 7,
        profiles: vec![
            profile("1g", 1, 1, &[0, 1, 2, 3, 4, 5, 6]),
            profile("1g+me", 1, 2, &[0, 2, 4, 6]),
            profile("2g", 2, 2, &[0, 2, 4]),
            profile("3g", 3, 4, &[0, 4]),
            profile("4g", 4, 4, &[0]),
            profile("7g", 7, 8, &[0]),
        ],
    }
}

/// Node `index`; whether its devices are counted depends on the index alone, so that it never
/// changes.
pub(crate) fn node(index: usize, choose: &mut Choices<'_>) -> Node {
    let counted = index % 4 == 3;
    let mut extended = BTreeMap::new();
    let mut labels = BTreeMap::new();
    let allocatable = Resources {
        cpu_milli: choose.among(&[8000, 16_000, 4000, 16_000, 2000, 8000, 0]),
        memory_bytes: choose.among(&[100, 200, 60, 100, 30]),
        ephemeral_bytes: choose.among(&[20, 20, 0, 5]),
        pod_slots: choose.among(&[110, 110, 110, 5, 1]),
        extended: {
            if let amount @ 1.. = choose.among(&[0, 3, 1, 4]) {
                extended.insert("rdma".to_owned(), amount);
            }
            extended
        },
    };
    for label in ["zone-label", "rack-label", "block-label"] {
        if let Some(value) =
            choose.among(&[Some("0"), Some("1"), Some("0"), Some("1"), Some("2"), None])
        {
            labels.insert(label.to_owned(), value.to_owned());
        }
    }
    if let Some(value) = choose.among(&[None, Some("5"), Some("9"), Some("a")]) {
        labels.insert("pool".to_owned(), value.to_owned());
    }
    let taints: Vec<Taint> = dedicated(choose).into_iter().collect();
    let condition = match choose.below(32) {
        9 => NodeAvailability::Starting,
        10 => NodeAvailability::Cordoned,
        11 => NodeAvailability::NotReady,
        _ => NodeAvailability::Ready,
    };
    let drain_window = match choose.below(8) {
        6 => Some(DrainWindow { from_ms: 5, to_ms: 25 }),
        7 => Some(DrainWindow { from_ms: 20, to_ms: 30 }),
        _ => None,
    };
    let devices = devices(counted, choose);
    let unschedulable = choose.below(16) == 5;
    let limits = choose.among::<&[(&str, i64)]>(&[
        &[],
        &[],
        &[],
        &[("csi", 1)],
        &[("csi", 2)],
        &[("csi", 0), ("other", 1)],
    ]);
    let images = images(choose);
    Node {
        name: format!("n{index}").into(),
        allocatable,
        devices,
        attach_limits: limits.iter().map(|(name, most)| ((*name).to_owned(), *most)).collect(),
        knowledge: if counted { Knowledge::Counted } else { Knowledge::Assigned },
        labels,
        taints,
        images,
        unschedulable,
        condition,
        price_usd_micros_per_hour: Some(1000),
        interruption_ppm_per_hour: None,
        drain_window,
    }
}

/// Images of a node. One is below what counts by itself, one has other sizes on other nodes.
fn images(choose: &mut Choices<'_>) -> Images {
    let had = choose.among::<&[(&str, i64)]>(&[
        &[],
        &[("web:1", 700)],
        &[("web:1", 700), ("tiny:1", 20)],
        &[("web:1", 300), ("train:1", 4_000)],
        &[("train:1", 4_000), ("tiny:1", 20), ("other:1", 900)],
    ]);
    Images::new(had.iter().map(|(name, megabytes)| ((*name).into(), megabytes << 20)))
}

fn dedicated(choose: &mut Choices<'_>) -> Option<Taint> {
    let effect = choose.among(&[
        None,
        None,
        None,
        None,
        None,
        None,
        Some(TaintEffect::NoSchedule),
        Some(TaintEffect::PreferNoSchedule),
        Some(TaintEffect::NoExecute),
    ]);
    effect.map(|effect| Taint { key: "dedicated".into(), value: "team".into(), effect })
}

fn devices(counted: bool, choose: &mut Choices<'_>) -> Vec<Device> {
    let count = choose.among(&[2, 4, 1, 8, 3, 4, 0]);
    let other_model = choose.among(&[false, false, false, true]) && !counted;
    let model = choose.among(&["A", "A", "B"]);
    let memory_bytes = choose.among(&[40, 80, 80, 0]);
    let islands = choose.among(&[1, 2]);
    let kind = choose.among(&[0, 5, 5, 2, 3, 4, 5, 0]);
    let lost = choose.among(&[usize::MAX, usize::MAX, usize::MAX, usize::MAX, usize::MAX, 0]);
    let device = |index: usize| Device {
        model: if other_model && index % 2 == 1 { "C" } else { model }.to_owned(),
        memory_bytes,
        island: (index % islands) as u16,
        healthy: index != lost,
        mig_table: matches!(kind, 3 | 5).then(|| "eight".to_owned()),
        replicas: if matches!(kind, 4 | 5) { 4 } else { 0 },
        counters: match kind {
            2 | 5 => vec![("lanes".to_owned(), 4), ("banks".to_owned(), 6)],
            _ => Vec::new(),
        },
    };
    (0..count).map(device).collect()
}

/// What one pod needs.
pub(crate) fn requirement(choose: &mut Choices<'_>) -> Requirement {
    let device = device_request(choose);
    let mut resources = Resources {
        cpu_milli: choose.among(&[1000, 0, 2500, 500]),
        memory_bytes: choose.among(&[10, 0, 5, 35]),
        ephemeral_bytes: choose.among(&[0, 0, 0, 0, 5]),
        pod_slots: 1,
        extended: BTreeMap::new(),
    };
    if let amount @ 1.. = choose.among(&[0, 0, 0, 0, 0, 0, 1, 2]) {
        resources.extended.insert("rdma".to_owned(), amount);
    }
    let gpu_models = choose.among::<&[&str]>(&[&[], &[], &[], &[], &["A"], &["B", "C"]]);
    let min_device_memory_bytes = choose.among(&[0, 0, 0, 0, 0, 40, 80]);
    let mut node_conditions = node_affinity(choose);
    let node_names = choose.among::<&[&str]>(&[&[], &[], &[], &[], &[], &[], &[], &["n0", "n2"]]);
    let tolerations = match choose.below(4) {
        1 => vec![Toleration { any_value: true, ..Toleration::default() }],
        2 => vec![Toleration {
            key: "dedicated".into(),
            value: "team".into(),
            effect: Some(TaintEffect::NoSchedule),
            any_value: false,
        }],
        _ => Vec::new(),
    };
    let counted = choose.among::<&[usize]>(&[&[], &[0], &[0, 0], &[1], &[0, 1], &[0, 2]]);
    let mut counts_into = named(counted);
    let rules: Vec<CounterRule> = match choose.below(5) {
        2 | 3 => (0..1 + choose.below(3)).map(|_| rule(choose)).collect(),
        _ => Vec::new(),
    };
    // Who asks for a port or a disk mostly uses it.
    let used = rules.iter().map(|rule| &rule.selector).filter(|name| name.contains(':'));
    counts_into.extend(used.filter(|_| choose.below(4) < 3).cloned());
    node_conditions.extend((0..2).filter_map(|_| other_condition(choose)));
    let attachments = attachments(choose);
    let mut asked = Requirement {
        resources,
        device,
        gpu_models: owned(gpu_models),
        min_device_memory_bytes,
        node_conditions,
        node_names: owned(node_names),
        tolerations,
        counts_into,
        rules,
        attachments,
        preferences: Vec::new(),
    };
    asked.preferences = (0..choose.among(&[0, 0, 0, 1, 2])).map(|_| preference(choose)).collect();
    if !asked.rules.is_empty() && choose.below(2) == 1 {
        // Nothing but its rules decides where it goes.
        asked.device = DeviceRequest::None;
        asked.node_names.clear();
        asked.node_conditions.clear();
    }
    asked
}

fn owned(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn device_request(choose: &mut Choices<'_>) -> DeviceRequest {
    match choose.below(12) {
        0 | 1 => DeviceRequest::Whole { count: 1, same_island: false },
        2 => DeviceRequest::None,
        3 | 11 => DeviceRequest::Share {
            compute_milli: choose.among(&[500, 300, 999, 1]),
            memory_bytes: choose.among(&[0, 15]),
        },
        4 | 10 => DeviceRequest::Whole { count: 2, same_island: choose.below(3) > 0 },
        5 => DeviceRequest::Replicas { count: choose.among(&[1, 3]) },
        6 | 7 => DeviceRequest::Slice {
            profile: choose.among(&["1g", "3g", "2g", "4g", "1g+me", "7g"]).to_owned(),
        },
        8 => DeviceRequest::Counters {
            amounts: vec![
                ("lanes".to_owned(), choose.among(&[1, 3])),
                ("banks".to_owned(), choose.among(&[2, 0])),
            ],
        },
        _ => DeviceRequest::Whole { count: 3, same_island: choose.below(2) == 1 },
    }
}

fn node_affinity(choose: &mut Choices<'_>) -> Vec<NodeCondition> {
    let term = |key: &str, operator, values: &[&str]| SelectorTerm {
        key: key.to_owned(),
        operator,
        values: values.iter().map(|v| (*v).to_owned()).collect(),
    };
    let any_of = match choose.below(16) {
        4 => vec![vec![term("pool", Operator::In, &["5", "a"])]],
        5 => vec![vec![term("pool", Operator::NotIn, &["5"])]],
        6 => vec![vec![term("pool", Operator::Gt, &["5"])]],
        7 => vec![vec![term("rack-label", Operator::Exists, &[])]],
        8 => vec![
            vec![term("pool", Operator::Lt, &["9"]), term("zone-label", Operator::Exists, &[])],
            vec![term("pool", Operator::DoesNotExist, &[])],
        ],
        _ => return Vec::new(),
    };
    vec![NodeCondition::node_affinity(any_of)]
}

/// Selectors that count somebody else's pod.
pub(crate) fn selectors(choose: &mut Choices<'_>) -> Selectors {
    let counted = choose.among::<&[usize]>(&[&[], &[0], &[1, 1, 2], &[3], &[4], &[2], &[0, 0, 3]]);
    named(counted)
}

fn named(counted: &[usize]) -> Selectors {
    counted.iter().map(|i| SELECTORS[*i].to_owned()).collect::<Vec<_>>().into()
}

/// What a volume or a feature asks of the node.
fn other_condition(choose: &mut Choices<'_>) -> Option<NodeCondition> {
    let term = |key: &str, operator, values: &[&str]| {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        vec![vec![SelectorTerm { key: key.to_owned(), operator, values }]]
    };
    let (cause, any_of) = match choose.below(32) {
        10 => (
            ConditionCause::VolumeNodeAffinity,
            term("metadata.name", Operator::In, &["n0", "n1", "n4"]),
        ),
        11 => (ConditionCause::VolumeZone, term("zone-label", Operator::In, &["0"])),
        12 => (ConditionCause::StorageTopology, term("rack-label", Operator::NotIn, &["1"])),
        13 => (ConditionCause::StorageCapacity, term("zone-label", Operator::NotIn, &["0"])),
        14 => (ConditionCause::VolumeDriver, term("pool", Operator::Exists, &[])),
        15 => (ConditionCause::DeclaredFeatures, term("pool", Operator::DoesNotExist, &[])),
        18 => {
            (ConditionCause::DeviceClaims, term("metadata.name", Operator::In, &["n1", "n2", "n3"]))
        }
        16 => (ConditionCause::NodeAffinity, term("metadata.name", Operator::NotIn, &["n0"])),
        17 => (ConditionCause::VolumeNodeAffinity, Vec::new()),
        19 => (ConditionCause::SharedGpus, term("pool", Operator::Exists, &[])),
        _ => return None,
    };
    Some(NodeCondition { any_of, cause })
}

/// Volumes of a pod.
pub(crate) fn attachments(choose: &mut Choices<'_>) -> BTreeSet<Attachment> {
    let volumes = choose.among::<&[(&str, &str)]>(&[
        &[],
        &[],
        &[],
        &[],
        &[],
        &[("csi", "v")],
        &[("csi", "v"), ("csi", "w")],
        &[("csi", "w"), ("other", "v")],
        &[("csi", "x")],
    ]);
    let volume = |(limit, volume): &(&str, &str)| Attachment {
        limit: (*limit).to_owned(),
        volume: (*volume).to_owned(),
    };
    volumes.iter().map(volume).collect()
}

fn preference(choose: &mut Choices<'_>) -> Preference {
    let term = |key: &str, value: &str| SelectorTerm {
        key: key.to_owned(),
        operator: Operator::In,
        values: vec![value.to_owned()],
    };
    let points = choose.among(&[100, -100, 7, 9_000, -20_000]);
    let images = |names: &[&str]| Preferred::Images(names.iter().map(|n| (*n).into()).collect());
    let to = match choose.below(10) {
        5 => images(&["web:1"]),
        6 => images(&["web:1", "train:1", "web:1"]),
        7 => images(choose.among::<&[&str]>(&[&["tiny:1"], &["nowhere:1", "train:1"], &[]])),
        0 => Preferred::Nodes(vec![term("pool", "5")]),
        1 => Preferred::Nodes(vec![term("zone-label", "z0"), term("metadata.name", "n1")]),
        2 => Preferred::SoftTaints,
        _ => Preferred::Counted {
            selector: choose.among(&[SELECTORS[0], SELECTORS[1]]).to_owned(),
            label: choose.among(&["zone-label", "zone-label", "pool", NAME_LABEL]).to_owned(),
            scope: choose.among(&[
                CounterScope::AllNodes,
                CounterScope::Eligible { honor_affinity: true, honor_taints: true },
            ]),
        },
    };
    Preference { points, to }
}

/// So many pods per node or pool; some that exist are not named, and some named ones do not exist.
fn at_most(choose: &mut Choices<'_>) -> RuleKind {
    let most = ["n0", "n1", "n2", "n5", "n99", "5", "9"];
    let most = most.map(|value| (value.to_owned(), choose.among(&[0, 1, 1, 2, 3])));
    RuleKind::AtMost { most: Arc::new(most.into()) }
}

fn rule(choose: &mut Choices<'_>) -> CounterRule {
    let label = choose.among(&["zone-label", "rack-label", "pool", "metadata.name"]);
    let own = choose.among(&[SELECTORS[0], SELECTORS[0], SELECTORS[1]]);
    let min_domains = choose.among(&[None, None, Some(2), Some(4)]);
    let spread = |max_skew| (RuleKind::Spread { max_skew, min_domains }, RuleCause::Spread);
    let none = |cause| (RuleKind::AntiAffinity, cause);
    let (name, cluster) = ("metadata.name", "dovetail.dev/cluster");
    let ((kind, cause), selector, label) = match choose.below(20) {
        0 | 1 => ((RuleKind::Affinity, RuleCause::Affinity), own, label),
        2 | 12 => (none(RuleCause::AntiAffinity), own, label),
        3 | 13 => (none(RuleCause::ExistingAntiAffinity), own, label),
        4..7 => (spread(1), own, label),
        7 => (spread(2), own, label),
        8 | 14 => (none(RuleCause::HostPort), SELECTORS[2], name),
        9 | 15 | 16 => (none(RuleCause::DiskConflict), SELECTORS[3], name),
        10 | 17 => (none(RuleCause::ReadWriteOncePod), SELECTORS[4], cluster),
        18 => ((at_most(choose), RuleCause::DeviceClaims), own, choose.among(&[name, "pool"])),
        19 => (none(RuleCause::SharedGpus), own, label),
        _ => (spread(1), own, cluster),
    };
    let eligible =
        |honor_affinity, honor_taints| CounterScope::Eligible { honor_affinity, honor_taints };
    let all = CounterScope::AllNodes;
    let scope = match kind {
        RuleKind::Spread { .. } => choose.among(&[
            all,
            eligible(true, false),
            eligible(true, true),
            eligible(false, true),
            eligible(false, false),
        ]),
        _ => choose.among(&[all, all, all, eligible(true, true)]),
    };
    CounterRule { selector: selector.to_owned(), label: label.to_owned(), kind, scope, cause }
}

/// A job over some of the shapes.
pub(crate) fn job(
    id: u64,
    submit_ms: u64,
    shapes: &[Arc<Requirement>],
    topology: &Topology,
    choose: &mut Choices<'_>,
) -> Job {
    let first = Arc::clone(&shapes[choose.below_many(shapes.len())]);
    let mut job = Job::single(JobId(id), &format!("j{id}"), submit_ms, first);
    job.queue = choose.among(&["", "", "", "team", "other"]).to_owned();
    job.priority = choose.among(&[0, 0, 0, 1, -1]);
    job.estimate = choose.among(&[None, Some(3), Some(10), Some(30)]).map(|p50_ms| Estimate {
        p50_ms,
        p90_ms: 2 * p50_ms,
        source: EstimateSource::User,
    });
    let sets = choose.among(&[1, 1, 1, 1, 2, 2, 3]);
    let plain = choose.below(2) == 0 && sets == 1;
    if plain {
        job.preemption = preemption(choose);
        return job;
    }
    job.topology = levels(topology, choose);
    job.pod_sets.clear();
    for set in 0..sets {
        let requirement = Arc::clone(&shapes[choose.below_many(shapes.len())]);
        let min = choose.among(&[1, 2, 3, 4, 0]);
        let min = if set == 0 { min.max(1) } else { min };
        let mut set = PodSet::fixed(&format!("s{set}"), requirement, min);
        set.max = min + choose.among(&[0, 0, 0, 1, 3]);
        set.topology = levels(topology, choose);
        job.pod_sets.push(set);
    }
    job.preemption = preemption(choose);
    job.interruption = InterruptionCost {
        checkpoint_interval_ms: choose.among(&[None, Some(1), Some(2), Some(10)]),
        checkpoint_cost_ms: choose.among(&[None, Some(1)]),
        restart_cost_ms: choose.among(&[None, Some(2)]),
        save_on_notice_ms: choose.among(&[None, None, Some(1), Some(3)]),
        ..InterruptionCost::default()
    };
    job
}

fn preemption(choose: &mut Choices<'_>) -> PreemptionRules {
    let kind = choose.below(8);
    PreemptionRules {
        never_preempts: kind == 6,
        is_protected: kind == 7,
        grace_ms: choose.among(&[None, Some(3)]),
        max_preemptions: choose.among(&[None, None, Some(1)]),
        min_run_ms: choose.among(&[None, Some(4)]),
    }
}

/// Whether and how jobs stop others.
pub(crate) fn preempting(recipe: &Recipe) -> PreemptionConfig {
    let kind = recipe.config[5] / 2 % 4;
    PreemptionConfig {
        enabled: kind > 0,
        respect_budgets: kind == 3,
        default_grace_ms: 10,
        slack_ms: 5,
        ..PreemptionConfig::default()
    }
}

fn levels(topology: &Topology, choose: &mut Choices<'_>) -> TopologyRequest {
    let mut names: Vec<&str> = topology.levels.iter().map(|level| level.name.as_str()).collect();
    names.push("node");
    let kind = choose.below(9);
    let level = |choose: &mut Choices<'_>| Some(names[choose.below(names.len())].to_owned());
    TopologyRequest {
        required: if matches!(kind, 3 | 5) { level(choose) } else { None },
        preferred: if matches!(kind, 4 | 5) { level(choose) } else { None },
    }
}
