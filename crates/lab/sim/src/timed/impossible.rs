//! Jobs that can never start: the engine would not place them even on the whole cluster, empty and
//! healthy.
//!
//! Such a job waits to the end of a replay, whatever the policy, and in no mean. A trace of one
//! cluster replayed on another has them easily, so they are counted and named rather than refused.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use dovetail_model::JobId;
use dovetail_plan::{Cause, Engine, EngineConfig, EngineError, PolicySpec, View};
use dovetail_trace::{TraceJob, TraceNode};
use serde::{Deserialize, Serialize};

use crate::world::{self, JobFactory};

/// A job that can never start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImpossibleJob {
    /// Its place in the list of jobs, from 0.
    #[serde(skip)]
    pub row: usize,
    pub job: String,
    /// Why, as the end of the sentence "it can never start: ...".
    pub reason: String,
}

/// Jobs that are named; the others are counted.
const NAMED: usize = 5;

/// How many jobs of a trace can never start, and the first of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Impossible {
    pub impossible_jobs: u64,
    pub first_impossible_jobs: Vec<ImpossibleJob>,
    /// Places of all in the trace, ascending.
    #[serde(skip)]
    rows: Vec<usize>,
}

impl Impossible {
    /// Those among some jobs on some machines.
    ///
    /// # Errors
    /// What the engine says of the machines or a job.
    pub fn of(nodes: &[TraceNode], jobs: &[TraceJob]) -> Result<Self, EngineError> {
        let mut found = impossible_jobs(nodes, jobs)?;
        let rows: Vec<usize> = found.iter().map(|job| job.row).collect();
        found.truncate(NAMED);
        Ok(Self { impossible_jobs: rows.len() as u64, first_impossible_jobs: found, rows })
    }

    /// Whether the job at a place of the trace is one.
    pub fn contains(&self, row: usize) -> bool {
        self.rows.binary_search(&row).is_ok()
    }
}

/// What two jobs that fit alike have in common: pods, CPU, memory, GPUs, part of a GPU, models.
type Demand<'t> = (u32, i64, i64, u32, i64, &'t [String]);

/// The jobs that none of the machines, nor all of them together, could ever hold, in the order of
/// the trace.
///
/// # Errors
/// What the engine says of the machines or a job.
pub fn impossible_jobs(
    nodes: &[TraceNode],
    jobs: &[TraceJob],
) -> Result<Vec<ImpossibleJob>, EngineError> {
    let config = EngineConfig { policy: PolicySpec::named("first-fit"), ..EngineConfig::default() };
    let mut engine = Engine::new(config, &world::snapshot(nodes))?;
    let mut factory = JobFactory::for_nodes(nodes);
    let kinds: BTreeSet<Kind<'_>> = nodes.iter().map(kind).collect();
    let mut known: HashMap<Demand<'_>, Option<String>> = HashMap::new();
    let mut found = Vec::new();
    for (row, job) in jobs.iter().enumerate() {
        if job.pod_count == 1 && kinds.iter().any(|kind| holds_one(kind, job)) {
            continue;
        }
        let demand: Demand<'_> = (
            job.pod_count,
            job.cpu_milli,
            job.memory_bytes,
            job.gpu_count,
            job.gpu_milli,
            &job.gpu_models,
        );
        let reason = match known.get(&demand) {
            Some(reason) => reason.clone(),
            None => {
                let reason = reason(&mut engine, &mut factory, nodes, job)?;
                known.insert(demand, reason.clone());
                reason
            }
        };
        found.extend(reason.map(|reason| ImpossibleJob { row, job: job.id.clone(), reason }));
    }
    Ok(found)
}

/// What machines that hold the same have in common: GPUs, CPU, memory, model.
type Kind<'t> = (u32, i64, i64, Option<&'t str>);

fn kind(node: &TraceNode) -> Kind<'_> {
    (node.gpu_count, node.cpu_milli, node.memory_bytes, node.gpu_model.as_deref())
}

/// Whether one pod of a job certainly fits on an empty machine, so that nobody need be asked: most
/// jobs are of one pod, and of many sizes.
fn holds_one(&(gpus, cpu_milli, memory_bytes, model): &Kind<'_>, job: &TraceJob) -> bool {
    let is_allowed = || job.gpu_models.iter().any(|name| Some(name.as_str()) == model);
    job.gpu_count <= gpus
        && job.cpu_milli <= cpu_milli
        && job.memory_bytes <= memory_bytes
        && (job.gpu_count == 0 || job.gpu_models.is_empty() || is_allowed())
}

/// Why a job fits nowhere; `None` if it fits.
fn reason(
    engine: &mut Engine,
    factory: &mut JobFactory,
    nodes: &[TraceNode],
    trace: &TraceJob,
) -> Result<Option<String>, EngineError> {
    let gpus: u64 = nodes.iter().map(|node| u64::from(node.gpu_count)).sum();
    let asked_milli = trace.total_gpu_milli();
    if asked_milli > u128::from(gpus) * 1000 {
        let (whole, part) = (asked_milli / 1000, asked_milli % 1000);
        let part = if part > 0 { format!(".{part:03}") } else { String::new() };
        let unit = if asked_milli == 1000 { "GPU" } else { "GPUs" };
        return Ok(Some(format!("it requests {whole}{part} {unit}, but the cluster has {gpus}")));
    }
    let job = factory.job(JobId(0), trace);
    if engine.ask().what_if_job(&job, &View::Now)?.is_some() {
        return Ok(None);
    }
    for set in &job.pod_sets {
        let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
        let mut holds_one = false;
        for node in nodes {
            match engine.ask().refusals(&set.requirement, &node.name).unwrap_or_default().first() {
                None => holds_one = true,
                Some(refusal) => *causes.entry(in_words(refusal.cause)).or_default() += 1,
            }
        }
        if !holds_one {
            let causes: Vec<String> =
                causes.into_iter().map(|(cause, nodes)| format!("{nodes} {cause}")).collect();
            let nodes = nodes.len();
            let causes = causes.join(", ");
            return Ok(Some(format!("0/{nodes} nodes fit its pods: {causes}")));
        }
    }
    let pods: u32 = job.pod_sets.iter().map(|set| set.min).sum();
    Ok(Some(format!("its {pods} pods do not fit together, even on an empty cluster")))
}

fn in_words(cause: Cause) -> &'static str {
    match cause {
        Cause::Cpu => "with too little CPU",
        Cause::Memory => "with too little memory",
        Cause::Model => "without a GPU of an accepted model",
        Cause::Device => "with too few GPUs",
        Cause::PodSlots => "with too few pod slots",
        _ => "with another limit",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, cpu_milli: i64, gpu_count: u32, model: Option<&str>) -> TraceNode {
        TraceNode {
            name: name.to_owned(),
            cpu_milli,
            memory_bytes: 100,
            gpu_count,
            gpu_model: model.map(str::to_owned),
            ..TraceNode::default()
        }
    }

    fn job(id: &str, pod_count: u32, cpu_milli: i64, gpu_count: u32, model: &[&str]) -> TraceJob {
        TraceJob {
            id: id.to_owned(),
            pod_count,
            cpu_milli,
            gpu_count,
            gpu_milli: if gpu_count > 0 { 1000 } else { 0 },
            gpu_models: model.iter().map(|name| (*name).to_owned()).collect(),
            ..TraceJob::default()
        }
    }

    #[test]
    fn pods_that_share_a_gpu_are_counted_by_their_shares() {
        let nodes = [machine("a", 8000, 1, None)];
        let mut jobs =
            [job("two", 2, 0, 1, &[]), job("three", 3, 0, 1, &[]), job("40", 40, 0, 1, &[])];
        (jobs[0].gpu_milli, jobs[1].gpu_milli, jobs[2].gpu_milli) = (500, 401, 25);
        let found = impossible_jobs(&nodes, &jobs).unwrap();
        let told: Vec<(&str, &str)> = found.iter().map(|job| (&*job.job, &*job.reason)).collect();
        assert_eq!(told, [("three", "it requests 1.203 GPUs, but the cluster has 1")]);
    }

    #[test]
    fn a_job_is_impossible_exactly_if_the_empty_cluster_cannot_hold_it_and_says_why() {
        let nodes = [
            machine("a", 8000, 4, Some("T4")),
            machine("b", 4000, 8, Some("A100")),
            machine("c", 16_000, 0, None),
        ];
        let mut jobs = [
            job("all", 1, 0, 12, &[]),
            job("too-many", 1, 0, 13, &[]),
            job("cpu", 1, 5000, 8, &[]),
            job("wide-cpu", 1, 17_000, 0, &[]),
            job("model", 1, 0, 1, &["V100"]),
            job("t4", 2, 4000, 2, &["T4"]),
            job("gang", 3, 4000, 2, &["T4"]),
            job("memory", 1, 0, 0, &[]),
            job("same-as-gang", 3, 4000, 2, &["T4"]),
        ];
        jobs[7].memory_bytes = 101;
        let found = impossible_jobs(&nodes, &jobs).unwrap();
        let told: Vec<(usize, &str, &str)> =
            found.iter().map(|job| (job.row, &*job.job, &*job.reason)).collect();
        let together = "its 3 pods do not fit together, even on an empty cluster";
        assert_eq!(
            told,
            [
                (1, "too-many", "it requests 13 GPUs, but the cluster has 12"),
                (
                    2,
                    "cpu",
                    "0/3 nodes fit its pods: 1 with too few GPUs, 1 with too little CPU, 1 without a GPU of an \
                     accepted model"
                ),
                (3, "wide-cpu", "0/3 nodes fit its pods: 3 with too little CPU"),
                (4, "model", "0/3 nodes fit its pods: 3 without a GPU of an accepted model"),
                (6, "gang", together),
                (7, "memory", "0/3 nodes fit its pods: 3 with too little memory"),
                (8, "same-as-gang", together),
            ]
        );
    }
}
