//! Gangs that cannot fit, whatever is preempted for them, on busy clusters.
//!
//! All running jobs are in queues beyond their quotas, and the gang is within its own and of higher
//! priority: each of them could be preempted for it, alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use dovetail_model::topology::Level;
use dovetail_model::{
    Action, Bounds, DeviceAmount, DeviceRequest, Event, Holding, HoldingId, HoldingPhase, Job,
    JobId, Node, Owner, PendingReason, PodId, PodSet, Queue, Requirement, Resources, Snapshot,
    Topology, TopologyRequest,
};
use dovetail_order::Turns;
use dovetail_plan::{Cause, Engine, EngineConfig, Order, PreemptionConfig, SearchEffort};

/// Nodes, and the target.
const CLUSTERS: [(u32, &str); 2] = [(200, "10 ms"), (2_000, "100 ms")];
const GPUS_PER_NODE: u32 = 8;
const NODES_PER_RACK: u32 = 20;
/// One node in so many has GPUs of the rare model.
const RARE_EVERY: u32 = 10;
const COMMON: &str = "H100";
const RARE: &str = "H200";
const TEAMS: u32 = 8;
const ROUNDS: u64 = 21;
const NOW_MS: u64 = 24 * 3_600_000;
const RACK: &str = "dovetail.dev/rack";

/// A gang of pods with eight GPUs each.
struct Gang {
    name: &'static str,
    pods: u32,
    level: Option<&'static str>,
    model: Option<&'static str>,
}

/// What came of a gang that was submitted several times.
#[derive(Default)]
struct Measured {
    times_us: Vec<u128>,
    reason: Option<PendingReason>,
    preemptions: usize,
    /// Of all rounds.
    effort: SearchEffort,
    obstacles: String,
}

pub(crate) fn print() {
    println!(
        "| nodes | gang | reason | nodes by obstacle | preemptions | searches, refuted by \
         bounds | search steps of each | median of {ROUNDS} | worst | target |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (nodes, target) in CLUSTERS {
        let mut engine = Engine::new(config(), &world(nodes)).expect("an engine");
        for (kind, gang) in (1..).zip(gangs(nodes)) {
            let mut measured = measure(&mut engine, &gang, kind << 32);
            measured.times_us.sort_unstable();
            let (times_us, effort) = (&measured.times_us, measured.effort);
            let reason = measured.reason.map(|reason| format!("{reason:?}"));
            println!(
                "| {nodes} | {}: {} x 8 GPUs | {} | {} | {} | {}, {} | {} | {:.2} ms | {:.2} ms | \
                 {target} |",
                gang.name,
                gang.pods,
                reason.as_deref().unwrap_or("none"),
                measured.obstacles,
                measured.preemptions,
                effort.searches,
                effort.refuted,
                effort.operations / ROUNDS,
                ms(times_us[times_us.len() / 2]),
                ms(times_us[times_us.len() - 1]),
            );
        }
    }
}

/// Submits a gang again and again: the first time, nothing is known of its shape.
fn measure(engine: &mut Engine, gang: &Gang, first: u64) -> Measured {
    let mut measured = Measured::default();
    for id in (first..first + ROUNDS).map(JobId) {
        let event = Event::Submitted(Box::new(gang.job(id)));
        engine.take_search_effort();
        let start = Instant::now();
        let plan = engine.step(event, NOW_MS).expect("a step");
        measured.times_us.push(start.elapsed().as_micros());
        let effort = engine.take_search_effort();
        measured.effort.searches += effort.searches;
        measured.effort.refuted += effort.refuted;
        measured.effort.operations += effort.operations;
        for action in &plan.actions {
            match action {
                Action::Wait { job, reason } if *job == id => measured.reason = Some(*reason),
                Action::Preempt { .. } => measured.preemptions += 1,
                _ => {}
            }
        }
        if measured.obstacles.is_empty() {
            measured.obstacles = obstacles(engine, id);
        }
        engine.step(Event::ended(id), NOW_MS).expect("the end of a gang");
    }
    measured
}

/// Nodes by the first thing that keeps a pod of the gang off them.
fn obstacles(engine: &mut Engine, job: JobId) -> String {
    let Some(why) = engine.ask().why(job) else { return "it does not wait".to_owned() };
    let counts = why.obstacles.iter().flat_map(|counts| Cause::ALL.into_iter().zip(counts));
    let counts = counts.filter(|(cause, nodes)| *cause != Cause::None && **nodes > 0);
    let counts = counts.map(|(cause, nodes)| format!("{nodes} {cause:?}"));
    counts.collect::<Vec<_>>().join(", ")
}

fn ms(us: u128) -> f64 {
    us as f64 / 1000.0
}

fn gangs(nodes: u32) -> [Gang; 3] {
    let plain = |name, pods| Gang { name, pods, level: None, model: None };
    let rare = nodes / RARE_EVERY + 1;
    [
        plain("more than the cluster", nodes + 1),
        Gang { level: Some("rack"), ..plain("more than a rack", NODES_PER_RACK + 1) },
        Gang { model: Some(RARE), ..plain("more than all of a model", rare) },
    ]
}

impl Gang {
    fn job(&self, id: JobId) -> Job {
        let requirement = Requirement {
            resources: Resources::pod(64_000, 1 << 38),
            device: DeviceRequest::Whole { count: GPUS_PER_NODE as u16, same_island: false },
            gpu_models: self.model.map(str::to_owned).into_iter().collect(),
            ..Requirement::default()
        };
        let requirement = Arc::new(requirement);
        let mut job = Job::single(id, "gang", NOW_MS, Arc::clone(&requirement));
        job.queue = "ours".to_owned();
        job.priority = 1;
        job.pod_sets = vec![PodSet::fixed("worker", requirement, self.pods)];
        let required = self.level.map(str::to_owned);
        job.topology = TopologyRequest { required, preferred: None };
        job
    }
}

fn config() -> EngineConfig {
    EngineConfig {
        order: Order::Dovetail,
        turns: Turns::preset("fair").expect("a preset"),
        preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
        ..EngineConfig::default()
    }
}

/// Nodes full of jobs of one GPU each. Teams hold twice their quotas.
fn world(nodes: u32) -> Snapshot {
    let gpus = nodes * GPUS_PER_NODE;
    let queue = |name: &str, gpus: u32| Queue {
        guaranteed: Bounds::gpus(Some(i64::from(gpus) * 1_000)),
        borrows: true,
        ..Queue::named(name)
    };
    let teams = (0..TEAMS).map(|team| queue(&format!("team-{team}"), gpus / TEAMS / 2));
    let requirement = Arc::new(Requirement {
        resources: Resources::pod(8_000, 1 << 35),
        device: DeviceRequest::Whole { count: 1, same_island: false },
        ..Requirement::default()
    });
    Snapshot {
        now_ms: NOW_MS,
        topology: Topology {
            levels: vec![Level { name: "rack".to_owned(), label: RACK.to_owned() }],
        },
        nodes: (0..nodes).map(node).collect(),
        // As much as the largest gang asks for.
        queues: teams.chain([queue("ours", 2 * gpus)]).collect(),
        jobs: (0..gpus).map(|number| busy(number, &requirement)).collect(),
        holdings: (0..gpus).map(|number| held(number, &requirement)).collect(),
        ..Snapshot::default()
    }
}

fn node(number: u32) -> Node {
    let model = if number.is_multiple_of(RARE_EVERY) { RARE } else { COMMON };
    let mut node = Node::plain(&name(number), 128_000, 1 << 40, GPUS_PER_NODE as usize, model);
    node.labels.insert(RACK.to_owned(), format!("rack-{:03}", number / NODES_PER_RACK));
    node
}

fn name(number: u32) -> String {
    format!("node-{number:05}")
}

/// A job that has run for some hours.
fn busy(number: u32, requirement: &Arc<Requirement>) -> Job {
    let start_ms = u64::from(number) * 7_919 % (NOW_MS / 2);
    let id = JobId(u64::from(number));
    let mut job = Job::single(id, "busy", start_ms, Arc::clone(requirement));
    job.queue = format!("team-{}", number % TEAMS);
    job.start_ms = Some(start_ms);
    job.pod_sets[0].present = 1;
    job
}

fn held(number: u32, requirement: &Arc<Requirement>) -> Holding {
    let job = JobId(u64::from(number));
    Holding {
        id: HoldingId(u64::from(number)),
        node: name(number / GPUS_PER_NODE).as_str().into(),
        owner: Owner::Pod(PodId { job, pod_set: 0, ordinal: 0 }),
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: None,
        resources: requirement.resources.clone(),
        devices: vec![((number % GPUS_PER_NODE) as u16, DeviceAmount::share(1_000, 0))],
        counts_into: Default::default(),
        attachments: BTreeSet::new(),
    }
}
