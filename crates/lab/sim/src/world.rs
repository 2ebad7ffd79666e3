//! Machines and jobs of a trace as the engine's nodes and jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::topology::Level;
use dovetail_model::{
    DeviceRequest, Estimate, InterruptionCost, Job, JobId, Node, PodSet, Requirement, Resources,
    RunProfile, Snapshot, Topology,
};
use dovetail_model::{
    device::Device,
    job::{EstimateSource, TopologyRequest},
};
use dovetail_trace::limits::MAX_NODE_GPUS;
use dovetail_trace::{StopCosts, TraceJob, TraceNode};

/// Label of the zone of a machine.
pub const ZONE_LABEL: &str = dovetail_model::labels::ZONE;
/// Label of the rack of a machine.
pub const RACK_LABEL: &str = "dovetail.dev/rack";

/// Pod slots of a machine of a trace: traces know no such limit, and Kubernetes allows any.
const POD_SLOTS: i64 = 1_000;

/// Machines of a trace as an empty world, in the given tie-break order.
pub fn snapshot<'t>(nodes: impl IntoIterator<Item = &'t TraceNode>) -> Snapshot {
    let level = |name: &str, label: &str| Level { name: name.to_owned(), label: label.to_owned() };
    Snapshot {
        topology: Topology { levels: vec![level("zone", ZONE_LABEL), level("rack", RACK_LABEL)] },
        nodes: nodes.into_iter().map(node).collect(),
        ..Snapshot::default()
    }
}

/// One machine of a trace.
pub fn node(trace: &TraceNode) -> Node {
    let model = trace.gpu_model.as_deref().unwrap_or("");
    let device = Device::plain(model, trace.gpu_memory_bytes.unwrap_or(0));
    let mut node = Node::plain(&trace.name, trace.cpu_milli, trace.memory_bytes, 0, "");
    node.allocatable.pod_slots = POD_SLOTS;
    node.devices = vec![device; trace.gpu_count as usize];
    let places = [(ZONE_LABEL, &trace.zone), (RACK_LABEL, &trace.rack)];
    for (label, value) in places {
        if let Some(value) = value {
            node.labels.insert(label.to_owned(), value.clone());
        }
    }
    node
}

/// An estimate that is the truth.
pub fn exact_estimate(run_time_ms: u64) -> Estimate {
    Estimate { p50_ms: run_time_ms, p90_ms: run_time_ms, source: EstimateSource::User }
}

/// Turns jobs of a trace into jobs of the engine; equal requirements become one object.
#[derive(Debug, Default)]
pub struct JobFactory {
    requirements: BTreeMap<RequirementKey, Arc<Requirement>>,
    /// GPUs of the largest machine: larger pods of a trace are divided over machines of this size.
    largest_node_gpus: Option<u32>,
    /// Level of which jobs with several pods must be in one domain; `None` lets them be anywhere.
    gang_level: Option<String>,
    /// What it costs to stop jobs where the trace does not say.
    stop_costs: StopCosts,
}

/// CPU, memory, devices, milli per device, models.
type RequirementKey = (i64, i64, u32, i64, Vec<String>);

impl JobFactory {
    /// A factory for a cluster; a pod with more GPUs than its largest machine becomes several pods.
    pub fn for_nodes<'t>(nodes: impl IntoIterator<Item = &'t TraceNode>) -> Self {
        let largest_node_gpus = nodes.into_iter().map(|node| node.gpu_count).max();
        Self { largest_node_gpus, ..Self::default() }
    }

    /// The same, with all pods of a job in one domain of a level.
    pub fn with_gang_level(self, gang_level: Option<String>) -> Self {
        Self { gang_level, ..self }
    }

    /// The same, with costs of stopping jobs where the trace does not state them.
    pub fn with_stop_costs(self, stop_costs: StopCosts) -> Self {
        Self { stop_costs, ..self }
    }

    /// One job of a trace.
    pub fn job(&mut self, id: JobId, trace: &TraceJob) -> Job {
        let pod_sets = self.pod_sets(trace);
        let pods: u32 = pod_sets.iter().map(|set| set.min).sum();
        let required = self.gang_level.clone().filter(|_| pods > 1);
        Job {
            id,
            name: trace.id.clone(),
            queue: trace.queue.clone().unwrap_or_default(),
            priority: trace.priority,
            submit_ms: trace.submit_ms,
            pod_sets,
            topology: TopologyRequest { required, preferred: None },
            estimate: trace.estimate_ms.map(exact_estimate),
            profile: RunProfile {
                owner: trace.user.clone().unwrap_or_default(),
                image: trace.model.clone().unwrap_or_default(),
                ..RunProfile::default()
            },
            start_ms: None,
            deadline_ms: trace.deadline_ms,
            interruption: self.interruption(trace),
            preemption: Default::default(),
            kept_room: Default::default(),
            history: Default::default(),
        }
    }

    /// What it costs to stop a job of a trace and start it again.
    pub(crate) fn interruption(&self, trace: &TraceJob) -> InterruptionCost {
        let costs = trace.stop_costs.or(self.stop_costs);
        InterruptionCost {
            checkpoint_interval_ms: costs.checkpoint_interval_ms,
            checkpoint_cost_ms: costs.checkpoint_cost_ms,
            restart_cost_ms: costs.restart_cost_ms,
            save_on_notice_ms: costs.save_on_notice_ms,
            ..InterruptionCost::default()
        }
    }

    fn pod_sets(&mut self, trace: &TraceJob) -> Vec<PodSet> {
        // Without GPUs no machine says how many a pod could have; the job waits in any case.
        let most = self.largest_node_gpus.filter(|most| *most > 0).unwrap_or(MAX_NODE_GPUS);
        if trace.gpu_count <= most {
            let requirement = self.requirement(trace, trace.gpu_count, 1);
            return vec![PodSet::fixed("main", requirement, trace.pod_count)];
        }
        let split = trace.split_over_nodes(most);
        let parts = trace.gpu_count.div_ceil(most);
        let full = self.requirement(trace, split.full_pod_gpus, parts);
        let mut sets = vec![PodSet::fixed("full", full, split.full_pods)];
        if split.rest_gpus > 0 {
            let rest = self.requirement(trace, split.rest_gpus, parts);
            sets.push(PodSet::fixed("rest", rest, 1));
        }
        sets
    }

    /// The requirement of a pod, or of one of `parts` equal parts of it as to CPU and memory.
    fn requirement(&mut self, trace: &TraceJob, gpu_count: u32, parts: u32) -> Arc<Requirement> {
        let cpu_milli = trace.cpu_milli / i64::from(parts);
        let memory_bytes = trace.memory_bytes / i64::from(parts);
        let models = trace.gpu_models.clone();
        let key = (cpu_milli, memory_bytes, gpu_count, trace.gpu_milli, models);
        let build = || {
            let device = match (gpu_count, trace.gpu_milli) {
                (0, _) => DeviceRequest::None,
                (1, 1..1000) => {
                    DeviceRequest::Share { compute_milli: trace.gpu_milli, memory_bytes: 0 }
                }
                (count, _) => DeviceRequest::Whole { count: count as u16, same_island: false },
            };
            Arc::new(Requirement {
                resources: Resources::pod(cpu_milli, memory_bytes),
                device,
                gpu_models: trace.gpu_models.iter().cloned().collect(),
                ..Requirement::default()
            })
        };
        Arc::clone(self.requirements.entry(key).or_insert_with(build))
    }
}
