//! Puts jobs together.

use super::estimate::Estimates;
use super::people::People;
use super::profile::{
    CPU_REQUESTS, LARGE_GANG_MODEL, LARGEST_GANG, LATENCY_SENSITIVE, MODEL_CONSTRAINED, MODELS,
    ONE_GPU_REQUESTS, Parameters, REQUESTS_PER_GPU, SHARE_REQUESTS, SHARES_MILLI, SizeClass,
    SizeKind,
};
use super::random::{Purpose, Random};
use crate::job::{RecordedOutcome, TraceJob};
use crate::node::TraceCluster;

const MIB: i64 = 1 << 20;

/// Makes the jobs of one stream, one after another.
pub(super) struct JobMaker {
    profile: &'static Parameters,
    sizes: Vec<&'static SizeClass>,
    models: Vec<ModelPool>,
    shapes: Random,
    run_times: Random,
    people: People,
    estimates: Estimates,
}

/// All machines with one GPU model.
pub(super) struct ModelPool {
    name: String,
    gpus: f64,
    node_gpus: u32,
    node_cpu_milli: i64,
    node_memory_bytes: i64,
}

/// Mean and mean square of the part of its run time that a job gets through.
pub(super) fn completed_part_moment(profile: &Parameters, size: &SizeClass, power: i32) -> f64 {
    if !size.run_time.of_successful_jobs {
        return 1.0;
    }
    let power = f64::from(power);
    // Of u^3 and of u, for u uniform in (0, 1].
    let (failed, killed) = (1.0 / (3.0 * power + 1.0), 1.0 / (power + 1.0));
    1.0 - profile.failed - profile.killed + profile.failed * failed + profile.killed * killed
}

/// The GPU models of a cluster, in the order of its machines.
pub(super) fn model_pools(cluster: &TraceCluster) -> Vec<ModelPool> {
    let mut pools: Vec<ModelPool> = Vec::new();
    for node in &cluster.nodes {
        let Some(name) = &node.gpu_model else { continue };
        match pools.iter_mut().find(|pool| pool.name == *name) {
            Some(pool) => pool.gpus += f64::from(node.gpu_count),
            None => pools.push(ModelPool {
                name: name.clone(),
                gpus: node.gpu_count.into(),
                node_gpus: node.gpu_count,
                node_cpu_milli: node.cpu_milli,
                node_memory_bytes: node.memory_bytes,
            }),
        }
    }
    pools
}

impl ModelPool {
    fn holds(&self, size: &SizeClass) -> bool {
        let gang = f64::from(size.pods * size.gpus);
        self.node_gpus >= size.gpus && (size.pods == 1 || gang <= self.gpus * LARGEST_GANG)
    }
}

/// The size classes that the cluster can hold; small clusters have no large gangs.
pub(super) fn possible_sizes(
    profile: &'static Parameters,
    pools: &[ModelPool],
) -> Vec<&'static SizeClass> {
    let possible = |size: &&SizeClass| pools.iter().any(|pool| pool.holds(size));
    profile.sizes.iter().filter(possible).collect()
}

impl JobMaker {
    pub(super) fn new(seed: u64, profile: &'static Parameters, cluster: &TraceCluster) -> Self {
        let models = model_pools(cluster);
        Self {
            profile,
            sizes: possible_sizes(profile, &models),
            models,
            shapes: Random::new(seed, Purpose::Shapes),
            run_times: Random::new(seed, Purpose::RunTimes),
            people: People::new(seed),
            estimates: Estimates::new(seed),
        }
    }

    pub(super) fn job(&mut self, id: String, submit_s: u64) -> TraceJob {
        let size = *self.shapes.weighted(&self.sizes, |size| size.weight);
        let (cpu_milli, memory_bytes) = self.request(size);
        let planned_s = size.run_time.draw(&mut self.run_times);
        let (outcome, part) = self.end(size);
        let (queue, user) = self.people.draw();
        let estimate_s = self.estimates.draw(planned_s);
        let latency_sensitive =
            size.kind != SizeKind::ManyGpus && self.shapes.chance(LATENCY_SENSITIVE);
        TraceJob {
            id,
            submit_ms: submit_s * 1000,
            // Whole seconds, as in the sources, and at least one.
            duration_ms: Some((libm::round(planned_s * part) as u64).max(1) * 1000),
            estimate_ms: estimate_s.map(|seconds| seconds * 1000),
            pod_count: size.pods,
            cpu_milli,
            memory_bytes,
            gpu_count: size.gpus,
            gpu_milli: self.gpu_milli(size),
            gpu_models: self.gpu_models(size, cpu_milli, memory_bytes),
            user: Some(user),
            queue: Some(queue),
            model: self.model(size),
            service_class: Some(if latency_sensitive { "LS" } else { "BE" }.to_owned()),
            priority: latency_sensitive.into(),
            outcome,
            ..TraceJob::default()
        }
    }

    fn request(&mut self, size: &SizeClass) -> (i64, i64) {
        let (requests, times) = match size.kind {
            SizeKind::Cpu => (&CPU_REQUESTS[..], 1),
            SizeKind::Share => (&SHARE_REQUESTS[..], 1),
            SizeKind::OneGpu => (&ONE_GPU_REQUESTS[..], 1),
            SizeKind::ManyGpus => (&REQUESTS_PER_GPU[..], i64::from(size.gpus)),
        };
        let request = self.shapes.weighted(requests, |request| request.weight);
        (request.cpu_milli * times, request.memory_mib * MIB * times)
    }

    fn gpu_milli(&mut self, size: &SizeClass) -> i64 {
        match size.kind {
            SizeKind::Cpu => 0,
            SizeKind::Share => self.shapes.weighted(&SHARES_MILLI, |share| share.1).0,
            SizeKind::OneGpu | SizeKind::ManyGpus => 1000,
        }
    }

    /// A gang runs on one model; some other jobs name one too. Models are drawn in proportion to
    /// their GPUs, among those whose machines hold the pod.
    fn gpu_models(&mut self, size: &SizeClass, cpu_milli: i64, memory_bytes: i64) -> Vec<String> {
        let constrained = size.pods > 1 || self.shapes.chance(MODEL_CONSTRAINED);
        if size.gpus == 0 || !constrained {
            return Vec::new();
        }
        let fits = |pool: &&ModelPool| {
            pool.holds(size)
                && pool.node_cpu_milli >= cpu_milli
                && pool.node_memory_bytes >= memory_bytes
        };
        let pools: Vec<&ModelPool> = self.models.iter().filter(fits).collect();
        if pools.is_empty() {
            return Vec::new();
        }
        vec![self.shapes.weighted(&pools, |pool| pool.gpus).name.clone()]
    }

    fn model(&mut self, size: &SizeClass) -> Option<String> {
        match size.kind {
            SizeKind::Cpu | SizeKind::Share => None,
            _ if size.pods > 8 => Some(LARGE_GANG_MODEL.to_owned()),
            _ => Some(self.shapes.weighted(&MODELS, |model| model.1).0.to_owned()),
        }
    }

    /// How the job ends, and after which part of its run time: failures come early (half of them
    /// before an eighth of the time: u^3, a choice after the Philly study), stops at any time.
    fn end(&mut self, size: &SizeClass) -> (RecordedOutcome, f64) {
        let (which, u) = (self.run_times.uniform(), self.run_times.uniform());
        let (outcome, part) = if which <= self.profile.failed {
            (RecordedOutcome::Failed, u * u * u)
        } else if which <= self.profile.failed + self.profile.killed {
            (RecordedOutcome::Killed, u)
        } else {
            (RecordedOutcome::Completed, 1.0)
        };
        (outcome, if size.run_time.of_successful_jobs { part } else { 1.0 })
    }
}
