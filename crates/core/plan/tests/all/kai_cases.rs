//! KAI Scheduler's own integration cases, run with this engine: which end as KAI's do, and why the
//! others do not.
//!
//! Each case is run until three rounds in a row change nothing. Between rounds whoever was
//! preempted is submitted again, as KAI's tests do, and what a job that runs could use beyond its
//! smallest size is submitted pod by pod, as the live scheduler does. A case passes if of each
//! class of alike jobs as many pods run in the end as with KAI, and no more pods are evicted and
//! moved.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use dovetail_model::topology::Level;
use dovetail_model::{
    Action, Bounds, DeviceAmount, DeviceRequest, Event, Holding, HoldingId, HoldingPhase, HowEnded,
    Job, JobId, Node, NodeName, Owner, PodId, PodSet, Queue, Requirement, Resources, Snapshot,
    Topology, TopologyRequest,
};
use dovetail_order::Turns;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Batch, Engine, Order, PolicySpec, PreemptionConfig};
use serde::Deserialize;

use crate::kai_divisions::cases;

/// The suites with cases that this engine could decide alike.
const FILES: [&str; 7] = [
    "integration_allocate.json",
    "integration_consolidation.json",
    "integration_consolidation_and_reclaim.json",
    "integration_deletion_tests.json",
    "integration_preempt.json",
    "integration_reclaim.json",
    "integration_stalegangeviction.json",
];

#[derive(Deserialize)]
struct Case {
    id: String,
    nodes: Vec<CaseNode>,
    queues: Vec<CaseQueue>,
    jobs: Vec<CaseJob>,
    #[serde(default)]
    topologies: Vec<CaseTopology>,
    portable: Portable,
}

#[derive(Deserialize)]
struct CaseNode {
    name: String,
    gpus: usize,
    allocatable: BTreeMap<String, i64>,
    gpu_memory_mib: i64,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct CaseTopology {
    levels: Vec<CaseLevel>,
}

#[derive(Deserialize)]
struct CaseLevel {
    node_label: String,
}

#[derive(Clone, Copy, Deserialize)]
struct Given {
    quota: f64,
    limit: f64,
    over_quota_weight: f64,
}

#[derive(Deserialize)]
struct CaseQueue {
    name: String,
    parent: String,
    priority: i32,
    gpu: Given,
    cpu_milli: Given,
    memory: Given,
}

#[derive(Deserialize)]
struct CaseJob {
    name: String,
    queue: String,
    priority: i32,
    preemptible: bool,
    created_seconds_ago: u64,
    gang_resolved: CaseGang,
    tasks: Vec<Task>,
    #[serde(default)]
    delete_in_test: bool,
}

#[derive(Deserialize)]
struct CaseGang {
    #[serde(default)]
    pod_sets: Vec<CasePodSet>,
    #[serde(default)]
    sub_groups: Vec<serde_json::Value>,
    topology_constraint: Option<Constraint>,
}

#[derive(Deserialize)]
struct CasePodSet {
    name: String,
    min_available: u32,
    topology_constraint: Option<Constraint>,
}

#[derive(Deserialize)]
struct Constraint {
    required_level: Option<String>,
    preferred_level: Option<String>,
}

impl Constraint {
    fn apply(&self, topology: &mut TopologyRequest) {
        let level = |level: &Option<String>| level.clone().filter(|level| !level.is_empty());
        topology.required = level(&self.required_level);
        topology.preferred = level(&self.preferred_level);
    }
}

#[derive(Deserialize)]
struct Task {
    name: String,
    state: String,
    node: Option<String>,
    #[serde(default)]
    sub_group: String,
    gpu: TaskGpu,
    request: BTreeMap<String, i64>,
    #[serde(default)]
    gpu_groups: Vec<String>,
    #[serde(default)]
    node_affinity_names: Vec<String>,
}

#[derive(Deserialize)]
struct TaskGpu {
    devices: u16,
    portion: f64,
    #[serde(default)]
    memory_mib: i64,
}

#[derive(Deserialize)]
struct Portable {
    class: String,
    #[serde(default)]
    exotic: Vec<String>,
    #[serde(default)]
    order_sensitive: bool,
    eventual: Option<Eventual>,
}

#[derive(Deserialize)]
struct Eventual {
    classes: Vec<Class>,
    moved_tasks: u64,
    evicted_tasks: u64,
}

#[derive(Deserialize)]
struct Class {
    jobs: Vec<String>,
    #[serde(default)]
    running: u64,
}

/// What came of a case.
enum Verdict {
    Passed,
    Failed(String),
    Skipped(&'static str),
}

/// Why a case is not run.
fn reason_to_skip(case: &Case) -> Option<&'static str> {
    let job = |is: fn(&CaseJob) -> bool| case.jobs.iter().any(is);
    let mixed = |job: &CaseJob| {
        let runs = job.tasks.iter().filter(|task| task.state != "Pending").count();
        runs > 0 && runs < job.tasks.len()
    };
    let several =
        |job: &CaseJob| job.tasks.iter().any(|task| task.gpu.devices > 1 && task.gpu.portion < 1.0);
    [
        (case.portable.order_sensitive, "which of two alike jobs wins decides what follows"),
        (!case.portable.exotic.is_empty(), "exotic (DRA, NUMA, pod affinity, volumes, old MIG)"),
        (
            case.id.starts_with("integration_consolidation.")
                || case.portable.eventual.as_ref().is_none_or(|eventual| eventual.moved_tasks > 0),
            "KAI moves running pods (consolidation)",
        ),
        (job(|job| !job.gang_resolved.sub_groups.is_empty()), "groups within groups of pods"),
        (job(|job| job.delete_in_test), "a pod that a user deletes never leaves"),
        (job(mixed), "pods are added to a job that runs"),
        (
            case.jobs.iter().any(|from| {
                let sets = parts(case, from);
                let differ = sets.windows(2).any(|pair| pair[0].0.name == pair[1].0.name);
                let is_elastic = |(set, _): &(&CasePodSet, Vec<&Task>)| {
                    let of_set = sets.iter().filter(|(other, _)| other.name == set.name);
                    of_set.map(|(_, tasks)| tasks.len()).sum::<usize>() > set.min_available as usize
                };
                differ && sets.iter().any(is_elastic)
            }),
            "an elastic set of pods that ask for different things",
        ),
        (job(several), "a part of each of several GPUs"),
    ]
    .into_iter()
    .find(|(is_so, _)| *is_so)
    .map(|(_, reason)| reason)
}

/// A bound in our units; what KAI does not bound is `None`.
fn bound(amount: f64, unit: f64) -> Option<i64> {
    (amount >= 0.0).then_some((amount * unit) as i64)
}

/// What a queue is given of something, its unit in ours, and all that the cluster has.
type OfAxis = (Given, f64, i64);

/// A queue of a case. To KAI a quota without a bound is all that the cluster has.
fn queue(case: &Case, queue: &CaseQueue) -> Queue {
    let all = |name: &str| {
        let amounts = case.nodes.iter().filter_map(|node| node.allocatable.get(name));
        amounts.sum::<i64>()
    };
    let gpu = (queue.gpu, 1e3, case.nodes.iter().map(|node| node.gpus as i64 * 1_000).sum());
    let cpu = (queue.cpu_milli, 1.0, all("cpu_milli"));
    let memory = (queue.memory, 1e6, all("memory_bytes"));
    let quota = |(given, unit, all): OfAxis| Some(bound(given.quota, unit).unwrap_or(all));
    let limit = |(given, unit, _): OfAxis| bound(given.limit, unit);
    let given = |of: &dyn Fn(OfAxis) -> Option<i64>| Bounds {
        cpu_milli: of(cpu),
        memory_bytes: of(memory),
        ..Bounds::gpus(of(gpu))
    };
    Queue {
        parent: (!queue.parent.is_empty()).then(|| queue.parent.clone()),
        guaranteed: given(&quota),
        limit: given(&limit),
        borrows: true,
        weight: queue.gpu.over_quota_weight.max(0.0) as u32,
        priority: queue.priority,
        ..Queue::named(&queue.name)
    }
}

fn node(node: &CaseNode) -> Node {
    let amount = |name: &str| node.allocatable.get(name).copied().unwrap_or(0);
    let cpu_milli = amount("cpu_milli");
    let mut made = Node::plain(&node.name, cpu_milli, amount("memory_bytes"), node.gpus, "GPU");
    made.allocatable.pod_slots = amount("pods");
    let plain = ["cpu_milli", "memory_bytes", "pods", "gpu"];
    let extended = node.allocatable.iter().filter(|(name, _)| !plain.contains(&name.as_str()));
    made.allocatable.extended = extended.map(|(name, amount)| (name.clone(), *amount)).collect();
    made.labels.extend(node.labels.clone());
    made
}

fn requirement(case: &Case, task: &Task) -> Requirement {
    let amount = |name: &str| task.request.get(name).copied().unwrap_or(0);
    let plain = ["cpu_milli", "memory_bytes", "pods", "gpu"];
    let extended = task.request.iter().filter(|(name, _)| !plain.contains(&name.as_str()));
    let mut resources = Resources::pod(amount("cpu_milli"), amount("memory_bytes"));
    resources.pod_slots = amount("pods").max(1);
    resources.extended = extended.map(|(name, amount)| (name.clone(), *amount)).collect();
    let of_memory = |mib: i64| (mib * 1_000 - 1) / case.nodes[0].gpu_memory_mib.max(1) + 1;
    let device = match (task.gpu.devices, task.gpu.portion, task.gpu.memory_mib) {
        (0, _, 0) => DeviceRequest::None,
        (_, 0.0, 0) => DeviceRequest::None,
        (_, _, mib) if mib > 0 => {
            DeviceRequest::Share { compute_milli: of_memory(mib), memory_bytes: 0 }
        }
        (_, portion, _) if portion > 0.0 && portion < 1.0 => {
            let compute_milli = (portion * 1e3).round() as i64;
            DeviceRequest::Share { compute_milli, memory_bytes: 0 }
        }
        (count, ..) => DeviceRequest::Whole { count, same_island: false },
    };
    let node_names = task.node_affinity_names.iter().cloned().collect();
    Requirement { resources, device, node_names, ..Requirement::default() }
}

/// The job at its beginning.
fn job(case: &Case, number: usize) -> Job {
    let from = &case.jobs[number];
    let sets = parts(case, from).into_iter().map(|(set, tasks)| {
        let asked = Arc::new(requirement(case, tasks[0]));
        let name = format!("{}-{}", set.name, tasks[0].name);
        let mut made = PodSet::fixed(&name, asked, set.min_available.min(tasks.len() as u32));
        made.max = tasks.len() as u32;
        if let Some(constraint) = &set.topology_constraint {
            constraint.apply(&mut made.topology);
        }
        made
    });
    let mut job = Job::single(JobId(number as u64), &from.name, 0, Arc::default());
    job.pod_sets = sets.collect();
    job.queue = from.queue.clone();
    job.priority = from.priority;
    job.submit_ms = 1_000_000 - from.created_seconds_ago * 1_000;
    job.preemption.is_protected = !from.preemptible;
    if let Some(constraint) = &from.gang_resolved.topology_constraint {
        constraint.apply(&mut job.topology);
    }
    job
}

/// The pods of each set that ask for the same; all of a set start together if any do.
fn parts<'c>(case: &Case, job: &'c CaseJob) -> Vec<(&'c CasePodSet, Vec<&'c Task>)> {
    let mut parts: Vec<(&CasePodSet, Vec<&Task>)> = Vec::new();
    for set in &job.gang_resolved.pod_sets {
        let is_only = job.gang_resolved.pod_sets.len() == 1;
        let first = parts.len();
        for task in job.tasks.iter().filter(|task| is_only || task.sub_group == set.name) {
            let asked = requirement(case, task);
            let mut of_set = parts[first..].iter_mut();
            let alike = of_set.find(|(_, tasks)| requirement(case, tasks[0]) == asked);
            match alike {
                Some((_, tasks)) => tasks.push(task),
                None => parts.push((set, vec![task])),
            }
        }
    }
    parts
}

/// A world as the case begins: jobs that run are there, the others are submitted in order.
fn begin(case: &Case) -> (Snapshot, Vec<Event>) {
    let levels = case.topologies.first().into_iter().flat_map(|topology| &topology.levels);
    let label = |level: &CaseLevel| level.node_label.clone();
    let levels = levels.map(|level| Level { name: label(level), label: label(level) }).collect();
    let mut snapshot = Snapshot {
        now_ms: 1_000_000,
        topology: Topology { levels },
        nodes: case.nodes.iter().map(node).collect(),
        queues: case.queues.iter().map(|of| queue(case, of)).collect(),
        ..Snapshot::default()
    };
    let mut events = Vec::new();
    // Of each node, what of each device is given, and which group has it.
    let mut devices: BTreeMap<&str, Vec<(i64, Option<&str>)>> =
        case.nodes.iter().map(|node| (node.name.as_str(), vec![(0, None); node.gpus])).collect();
    for (number, from) in case.jobs.iter().enumerate() {
        let mut made = job(case, number);
        if from.tasks.iter().all(|task| task.state == "Pending") {
            events.push(Event::Submitted(Box::new(made)));
            continue;
        }
        made.start_ms = Some(940_000);
        for (index, (_, tasks)) in parts(case, from).into_iter().enumerate() {
            made.pod_sets[index].present = tasks.len() as u32;
            for (ordinal, task) in tasks.into_iter().enumerate() {
                let Some(node) = task.node.as_deref() else { continue };
                let asked = requirement(case, task);
                let held = take(devices.get_mut(node).expect("a node"), &asked, &task.gpu_groups);
                let (pod_set, ordinal) = (index as u16, ordinal as u32);
                let is_leaving = task.state == "Releasing";
                snapshot.holdings.push(Holding {
                    id: HoldingId(snapshot.holdings.len() as u64),
                    node: NodeName::from(node),
                    owner: Owner::Pod(PodId { job: made.id, pod_set, ordinal }),
                    phase: match is_leaving {
                        true => HoldingPhase::Releasing { expected_end_ms: None },
                        false => HoldingPhase::Held { expected_end_ms: None },
                    },
                    reservation: None,
                    resources: asked.resources.clone(),
                    devices: held,
                    counts_into: Default::default(),
                    attachments: BTreeSet::new(),
                });
            }
        }
        snapshot.jobs.push(made);
    }
    events.sort_by_key(|event| match event {
        Event::Submitted(job) => job.submit_ms,
        _ => 0,
    });
    (snapshot, events)
}

/// Takes devices for a running pod: those of its group, else the first with room.
fn take<'c>(
    devices: &mut [(i64, Option<&'c str>)],
    asked: &Requirement,
    groups: &'c [String],
) -> Vec<(u16, DeviceAmount)> {
    let (count, milli) = match asked.device {
        DeviceRequest::Whole { count, .. } => (usize::from(count), 1_000),
        DeviceRequest::Share { compute_milli, .. } => (1, compute_milli),
        _ => return Vec::new(),
    };
    let mut held = Vec::new();
    for number in 0..count {
        let group = groups.get(number).map(String::as_str);
        let of_group = devices.iter().position(|(_, of)| group.is_some() && *of == group);
        let fits = |(given, of): &(i64, Option<&str>)| {
            given + milli <= 1_000 && (group.is_none() || of.is_none())
        };
        let Some(at) = of_group.or_else(|| devices.iter().position(fits)) else { continue };
        devices[at] = (devices[at].0 + milli, group.or(devices[at].1));
        held.push((at as u16, DeviceAmount::share(milli, 0)));
    }
    held
}

/// A case as it runs.
struct Run<'c> {
    case: &'c Case,
    /// How many pods of each job run.
    running: Vec<u64>,
    /// How many pods of each set a job has itself.
    own: Vec<Vec<u32>>,
    /// Pods that are jobs of their own, by the number of the job and of the set.
    single: BTreeMap<JobId, (usize, usize)>,
    evicted: u64,
}

impl<'c> Run<'c> {
    fn of(case: &'c Case, snapshot: &Snapshot) -> Self {
        let sets = case.jobs.iter().map(|from| vec![0; parts(case, from).len()]);
        let (own, running) = (sets.collect(), vec![0; case.jobs.len()]);
        let mut run = Self { case, running, own, single: BTreeMap::new(), evicted: 0 };
        for holding in &snapshot.holdings {
            if let (Owner::Pod(pod), HoldingPhase::Held { .. }) = (&holding.owner, holding.phase) {
                run.start(*pod);
            }
        }
        run
    }

    /// The number of the job that a pod is of, and of its set; whether it is a job of its own.
    fn of_pod(&self, pod: PodId) -> ((usize, usize), bool) {
        match self.single.get(&pod.job) {
            Some(of) => (*of, true),
            None => ((pod.job.0 as usize, usize::from(pod.pod_set)), false),
        }
    }

    fn start(&mut self, pod: PodId) {
        let ((number, set), is_single) = self.of_pod(pod);
        self.running[number] += 1;
        if !is_single {
            self.own[number][set] += 1;
        }
    }

    /// Pods of a job are evicted, and it waits for others.
    fn evict(&mut self, job_id: JobId, pods: &[PodId]) -> Result<Vec<Event>, String> {
        let preempted = Event::Ended { job: job_id, how: HowEnded::Preempted };
        let mut again = None;
        for pod in pods {
            let ((number, set), is_single) = self.of_pod(*pod);
            if !self.case.jobs[number].preemptible {
                return Err(format!("{} must not be evicted", self.case.jobs[number].name));
            }
            self.evicted += 1;
            self.running[number] -= 1;
            if is_single {
                again = Some(self.one_pod(job_id, (number, set)));
                continue;
            }
            self.own[number][set] -= 1;
            if self.own[number].iter().all(|pods| *pods == 0) {
                again = Some(self.without_single(number));
            }
        }
        Ok(match again {
            Some(job) => vec![preempted, Event::Submitted(Box::new(job))],
            None => pods.iter().copied().map(Event::pod_ended).collect(),
        })
    }

    /// The pods that jobs which run could use beyond those that they have.
    fn grow(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        for number in 0..self.case.jobs.len() {
            if self.own[number].iter().all(|pods| *pods == 0) {
                continue;
            }
            for (set, of_set) in self.without_single(number).pod_sets.iter().enumerate() {
                for _ in self.own[number][set]..of_set.max {
                    let id = JobId((self.case.jobs.len() + self.single.len()) as u64);
                    self.single.insert(id, (number, set));
                    let job = self.one_pod(id, (number, set));
                    events.push(Event::Submitted(Box::new(job)));
                }
            }
        }
        events
    }

    /// A job without those of its pods that are jobs of their own.
    fn without_single(&self, number: usize) -> Job {
        let mut job = job(self.case, number);
        for (_, set) in self.single.values().filter(|(of, _)| *of == number) {
            job.pod_sets[*set].max -= 1;
        }
        job
    }

    /// A pod of a set as a job of its own.
    fn one_pod(&self, id: JobId, (number, set): (usize, usize)) -> Job {
        let mut job = Job { id, ..job(self.case, number) };
        let only = job.pod_sets.swap_remove(set);
        job.pod_sets = vec![PodSet { min: 1, max: 1, ..only }];
        job
    }
}

/// Runs a case; how many pods of each job run in the end, and how many were evicted in all.
fn run(case: &Case, config: &EngineConfig) -> Result<(Vec<u64>, u64), String> {
    let (snapshot, mut events) = begin(case);
    let mut engine =
        Engine::new(config.clone(), &snapshot).map_err(|error| format!("no world: {error}"))?;
    let mut run = Run::of(case, &snapshot);
    // Who was leaving has left.
    for holding in &snapshot.holdings {
        if let (Owner::Pod(pod), HoldingPhase::Releasing { .. }) = (&holding.owner, holding.phase) {
            events.push(Event::pod_ended(*pod));
        }
    }
    let (mut quiet, mut now_ms) = (0, 1_000_000);
    for _ in 0..40 {
        let plan = engine.step(Batch::of(events.drain(..)), now_ms).map_err(|e| e.to_string())?;
        now_ms += 1_000;
        let before = run.running.clone();
        for action in &plan.actions {
            match action {
                Action::Bind { pod, .. } => run.start(*pod),
                Action::Preempt { victims, .. } => {
                    let mut by_job: BTreeMap<JobId, Vec<PodId>> = BTreeMap::new();
                    victims.iter().for_each(|pod| by_job.entry(pod.job).or_default().push(*pod));
                    for (job_id, pods) in by_job {
                        events.extend(run.evict(job_id, &pods)?);
                    }
                }
                _ => {}
            }
        }
        events.extend(run.grow());
        quiet = if events.is_empty() && before == run.running { quiet + 1 } else { 0 };
        if quiet == 3 {
            return Ok((run.running, run.evicted));
        }
    }
    Err("it never comes to rest".to_owned())
}

fn judge(case: &Case, config: &EngineConfig) -> Verdict {
    if let Some(reason) = reason_to_skip(case) {
        return Verdict::Skipped(reason);
    }
    let (running, evicted) = match run(case, config) {
        Ok(came) => came,
        Err(problem) => return Verdict::Failed(problem),
    };
    let eventual = case.portable.eventual.as_ref().expect("skipped without");
    let number = |name: &str| case.jobs.iter().position(|job| job.name == name);
    let mut differences = String::new();
    for class in &eventual.classes {
        let runs: u64 =
            class.jobs.iter().filter_map(|name| number(name)).map(|at| running[at]).sum();
        if runs != class.running {
            let jobs = class.jobs.join(" ");
            let _ = write!(differences, "{jobs}: {runs} pods run, KAI {}; ", class.running);
        }
    }
    let kai = eventual.evicted_tasks + eventual.moved_tasks;
    if differences.is_empty() && evicted > kai {
        let _ = write!(differences, "{evicted} pods evicted, KAI {kai}");
    }
    match differences.is_empty() {
        true => Verdict::Passed,
        false => Verdict::Failed(differences),
    }
}

/// Prints what came of each case that did not pass. `cargo test -p dovetail-plan --test all
/// kai_cases -- --nocapture`.
#[test]
fn cases_end_as_with_kai() {
    let Some(folder) = cases() else { return };
    let turns = Turns::preset("kai").expect("a preset");
    let config = EngineConfig {
        policy: PolicySpec::named("best-fit"),
        order: Order::Dovetail,
        turns,
        preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
        ..EngineConfig::default()
    };
    let (mut passed, mut failed) = (0, 0);
    let mut skipped: BTreeMap<&str, u64> = BTreeMap::new();
    let mut told = String::new();
    for file in FILES {
        let text = std::fs::read_to_string(folder.join(file)).expect("KAI's cases");
        let all: Vec<Case> = serde_json::from_str(&text).expect("as SCHEMA.md says");
        for case in all.iter().filter(|case| case.portable.class == "A-policy") {
            match judge(case, &config) {
                Verdict::Passed => passed += 1,
                Verdict::Failed(why) => {
                    failed += 1;
                    let _ = writeln!(told, "failed {}: {why}", case.id);
                }
                Verdict::Skipped(reason) => *skipped.entry(reason).or_default() += 1,
            }
        }
    }
    let _ = writeln!(told, "{passed} passed, {failed} failed, skipped: {skipped:#?}");
    let _ = std::io::Write::write_all(&mut std::io::stderr().lock(), told.as_bytes());
    assert!(passed >= 89, "{told}");
}
