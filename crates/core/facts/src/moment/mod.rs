//! One moment of a cluster, as a month: what every part of every GPU is now, for as long as a month
//! lasts.
//!
//! A snapshot has no past. It says who holds what, which pods have started, what is free; whether
//! held GPUs compute it does not say, so that time is unknown and no waste is claimed for it. Why
//! GPUs are free is asked of the engine: it is given the nodes, what they hold, and everything that
//! waits. What would start now is put in its place, since that much is kept for it; of what is free
//! then the ledger names the causes. Where the pod's own scheduler says that it fits nowhere, and
//! the engine says that it does, nobody reserved anything: why those GPUs are free is unknown. So
//! it is where something waits that nobody can hold against nodes.

mod lasting;
mod parts;
mod times;

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::{DeviceInterval, DeviceState, Span};
use dovetail_capacity::what_is_free;
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{Action, FreeCause, GpuParts, JobId, NodeAvailability, Plan, Snapshot};
use dovetail_plan::engine::{EngineConfig, EngineError};
use dovetail_plan::{Batch, Engine};
use rustc_hash::FxHashMap;

use crate::cluster::{Facts, ObjectRef, Workload, WorkloadClass};
use crate::usage::GpuUse;
use crate::waste::DeviceWaste;
pub use lasting::Lasting;
use lasting::Times;
pub use parts::NodePart;
use parts::parts_of;
pub use times::{GpuTimes, Recent, gpu_times, recent};
use times::{numbers_of_pods, present_times};

/// A month has 30 days, as everywhere in dovetail.
pub const MONTH_MS: u64 = 30 * 24 * 3_600_000;

/// GPUs, what holds them and what waits for them, at [`Facts::now_ms`].
#[derive(Clone, Debug, Default)]
pub struct Moment {
    pub nodes: Vec<NodeGpus>,
    /// What pods hold.
    pub held: Vec<HeldGpus>,
    /// Pods that share a GPU which another one reserves for them, by that one: what is measured
    /// under its name is of all of them.
    pub sharers: BTreeMap<PodName, Vec<PodName>>,
    /// What waits, one world for each resource.
    pub demand: Vec<PendingDemand>,
}

/// Namespace and name of a pod.
pub type PodName = (String, String);

/// GPUs of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeGpus {
    /// Name of the node, which is among [`Facts::nodes`].
    pub node: String,
    /// Model, as its label names it.
    pub model: Option<String>,
    /// Physical GPUs.
    pub gpus: i64,
    /// How much of them is broken or not offered, in milli-GPU.
    pub unavailable_milli: i64,
    /// What the MIG layouts of its GPUs leave over, in milli-GPU.
    pub layout_rest_milli: i64,
    /// How much of them is neither held nor free as far as anybody knows, beside the units, in
    /// milli-GPU.
    pub unknown_milli: i64,
    /// In what units pods ask for them.
    pub units: Vec<Units>,
}

/// Units of one resource on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// Resource name, for example `nvidia.com/mig-1g.10gb`.
    pub resource: String,
    /// How many pods can ask for.
    pub count: i64,
    /// What each is of the node's GPUs.
    pub parts: GpuParts,
    /// How many pods that could not be read ask for here: nobody knows whether they hold them.
    pub unknown: i64,
    /// Whether several pods have one device together by such units (time-slicing, MPS, HAMi, a
    /// claim of several pods): what is measured of it is of all of them. A MIG slice is a device of
    /// its own.
    pub is_shared: bool,
}

/// What a pod holds of a node's GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldGpus {
    pub node: String,
    pub resource: String,
    /// Place of the workload in [`Facts::workloads`].
    pub workload: usize,
    pub pod: String,
    /// Units of the resource; 0 if it shares those of another pod.
    pub units: i64,
    /// How much of the node's GPUs that is, in milli-GPU, where it is not what so many units are.
    pub gpu_milli: Option<i64>,
    /// What it does with them.
    pub state: HeldState,
    /// Its gang, where an object says how many pods of it start together.
    pub gang: Option<GangCounts>,
    /// What was measured of them, one for each unit; empty if nobody did.
    pub uses: Vec<GpuUse>,
}

/// Pods of which some number starts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GangCounts {
    /// How many start together.
    pub min: u32,
    /// Pods with a node.
    pub placed: u32,
    /// Pods without one.
    pub pending: u32,
}

impl GangCounts {
    /// Whether pods with a node wait for pending ones: pods that ended are missed by nobody.
    pub fn is_short(self) -> bool {
        self.placed < self.min && self.pending > 0
    }
}

/// How far a pod that holds GPUs is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeldState {
    /// It was never ready.
    Starting,
    Ready,
    /// It was ready and is not any more.
    NotReady,
    /// Its deletion has begun.
    Terminating,
}

/// What waits for one resource.
#[derive(Clone, Debug, Default)]
pub struct PendingDemand {
    /// The resource, whose units are the devices of the world.
    pub resource: String,
    /// Nodes, what they hold and what waits.
    pub world: Snapshot,
    /// Waiting jobs of which a scheduler of their own says that they fit nowhere, with the
    /// namespaces and names of their pods.
    pub refused: BTreeMap<JobId, Vec<String>>,
    /// Waiting jobs for which there is no quota, with since when; `None` if nobody knows.
    pub without_quota: BTreeMap<JobId, Option<u64>>,
    /// Waiting jobs that are gangs.
    pub gangs: BTreeMap<JobId, PendingGang>,
    /// What waits beside the world.
    pub untold: Untold,
}

/// Pods that start together and wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingGang {
    /// The object that describes it, its kind with the API group where several have the same name;
    /// `None` where its pods alone do, by labels.
    pub object: Option<ObjectRef>,
    /// What kubectl calls objects of this kind, with the API group: `jobsets.jobset.x-k8s.io`.
    pub resource: String,
    /// What a person lowers so that it starts with fewer pods.
    pub size: &'static str,
    /// Names of its pods that wait; they have its namespace.
    pub pods: Vec<String>,
}

/// How many units of a resource are waited for by pods that nobody can hold against nodes: why so
/// much of what nothing else waits for is free, nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untold {
    /// So many, if not fewer.
    AtMost(i64),
    /// Nobody knows how many.
    Any,
}

impl Default for Untold {
    fn default() -> Self {
        Self::AtMost(0)
    }
}

impl Untold {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::AtMost(one), Self::AtMost(more)) => Self::AtMost(one.saturating_add(more)),
            (Self::Any, _) | (_, Self::Any) => Self::Any,
        }
    }

    fn gpu_milli(self) -> i64 {
        match self {
            Self::AtMost(units) => units.max(0).saturating_mul(WHOLE_DEVICE_MILLI),
            Self::Any => i64::MAX,
        }
    }
}

/// What every part of every GPU is.
#[derive(Clone, Debug, Default)]
pub struct DeviceStates {
    /// Intervals as long as the month to come, without prices: what goes on.
    pub intervals: Vec<DeviceWaste>,
    /// What was wasted until now in states that cannot be taken for a month, without prices.
    pub so_far: Vec<DeviceWaste>,
    /// GPUs in each state now, as milli-GPU × ms of a month.
    pub now: BTreeMap<DeviceState, i128>,
    /// For each node of [`Moment::nodes`], the time of the month to come of which nothing is known
    /// only because its state is too recent, or of a kind that ends by itself.
    pub open: Vec<i128>,
    /// The part of it that is not free: it is in the month's unknown time of allocated GPUs.
    pub open_held: Vec<i128>,
    /// The time of a month of GPUs that none of the known pods has and that are not known to be
    /// free: pods that were not read may have them.
    pub perhaps_held: i128,
    /// For each device, the place of its node in [`Moment::nodes`].
    pub node_of: Vec<usize>,
    /// For each node of [`Moment::nodes`], its time by pod and state.
    pub gpus: Vec<GpuTimes>,
    /// As in [`NodeStates`].
    pub contested: Vec<String>,
}

/// What the GPUs of each node are.
#[derive(Clone, Debug, Default)]
pub struct NodeStates<'m> {
    /// In the order of [`Moment::nodes`]; the parts of a node are all its GPUs.
    pub parts: Vec<Vec<NodePart<'m>>>,
    /// Namespaces and names of waiting pods that would fit where GPUs are free, while their own
    /// scheduler says that they fit nowhere: why those GPUs are free is unknown.
    pub contested: Vec<String>,
}

/// Milli-GPU by node and cause, for one resource; units count 1000 each.
pub(crate) type Causes = BTreeMap<String, BTreeMap<FreeCause, i64>>;

/// What the GPUs of each node are.
///
/// # Errors
/// A world that the engine does not take, which is a bug of whoever made it.
pub fn node_parts<'m>(facts: &Facts, moment: &'m Moment) -> Result<NodeStates<'m>, EngineError> {
    let mut causes: BTreeMap<&str, Causes> = BTreeMap::new();
    let mut contested = Vec::new();
    for demand in &moment.demand {
        let mut engine = Engine::new(EngineConfig::default(), &demand.world)?;
        let mut reserved = Causes::new();
        if !demand.world.jobs.is_empty() {
            let plan = engine.step(Batch::decision(), 0)?;
            reserved = reserved_by(demand, plan, &mut contested);
        }
        let mut causes_of = causes_of(&mut engine, reserved);
        leave_open(&mut causes_of, demand.untold);
        // Several worlds of one resource have different nodes.
        causes_of.retain(|_, of_node| of_node.values().any(|gpu_milli| *gpu_milli > 0));
        causes.entry(&*demand.resource).or_default().extend(causes_of);
    }
    let waiting_gangs = waiting_gangs(facts, moment);
    let times = Times::of(facts, moment);
    let mut held: FxHashMap<&str, Vec<(usize, &HeldGpus)>> = FxHashMap::default();
    for (place, one) in moment.held.iter().enumerate() {
        held.entry(&one.node).or_default().push((place, one));
    }
    let nodes = facts.nodes.iter().map(|node| (&*node.node.name, node.node.condition));
    let conditions: FxHashMap<&str, NodeAvailability> = nodes.collect();
    let parts = moment.nodes.iter().map(|gpus| {
        // A node that is not among the facts has no condition that anybody knows.
        let condition = conditions.get(&*gpus.node).copied().unwrap_or_default();
        let held = held.get(&*gpus.node).map_or(&[][..], Vec::as_slice);
        parts_of(gpus, condition, held, &causes, (&waiting_gangs, &times))
    });
    Ok(NodeStates { parts: parts.collect(), contested })
}

/// Numbers the devices in `facts`, sets its period to all that has been and the month from now on,
/// and says what each part of each device is.
///
/// # Errors
/// As [`node_parts`].
pub fn device_states(facts: &mut Facts, moment: &Moment) -> Result<DeviceStates, EngineError> {
    let month = Span { from_ms: facts.now_ms, to_ms: facts.now_ms.saturating_add(MONTH_MS) };
    facts.period = Span { from_ms: 0, to_ms: month.to_ms };
    let NodeStates { parts, contested } = node_parts(facts, moment)?;
    let places: BTreeMap<String, usize> =
        facts.nodes.iter().enumerate().map(|(place, n)| (n.node.name.to_string(), place)).collect();
    let names = known_pods(facts, moment);
    let mut pods: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    pods.extend(names.iter().map(|(workload, place, name)| ((*workload, &**name), *place)));
    let holders = numbers_of_pods(facts, moment);
    let gpus = vec![GpuTimes::new(); moment.nodes.len()];
    let open = vec![0; moment.nodes.len()];
    let open_held = open.clone();
    let mut states = DeviceStates { contested, gpus, open, open_held, ..DeviceStates::default() };
    for (number, (gpus, parts)) in moment.nodes.iter().zip(parts).enumerate() {
        let Some(place) = places.get(&gpus.node) else { continue };
        let node = &mut facts.nodes[*place];
        let first = states.node_of.len() as u32;
        node.devices = (first..first + gpus.gpus.max(0) as u32).collect();
        states.node_of.extend(node.devices.iter().map(|_| number));
        for ((_, state), time) in present_times(&parts, month, |_| None) {
            *states.now.entry(state).or_default() += time;
        }
        let ends = || parts.iter().filter(|part| !part.lasting.goes_on);
        let is_held = |part: &&NodePart<'_>| !matches!(part.state, DeviceState::Free(_));
        let perhaps_held =
            parts.iter().filter(|part| part.state == DeviceState::Unknown && part.held.is_none());
        let of_month = |milli: i64| i128::from(milli) * i128::from(MONTH_MS);
        states.open[number] = of_month(ends().map(|part| part.gpu_milli).sum());
        let held = ends().filter(is_held).map(|part| part.gpu_milli);
        states.open_held[number] = of_month(held.sum());
        states.perhaps_held += of_month(perhaps_held.map(|part| part.gpu_milli).sum());
        states.gpus[number] = gpu_times(&parts, month, |held| Some(holders[held]));
        for (held, devices) in cut(&parts, moment, first, month, &mut states) {
            let HeldGpus { workload, pod, .. } = &moment.held[held];
            if let Some(pod) = pods.get(&(*workload, &**pod)) {
                facts.workloads[*workload].pods[*pod].devices.push(devices);
            }
        }
    }
    Ok(states)
}

/// The pods of workloads of which it is known what some GPUs did, with their places: which devices
/// a pod is on matters only for these.
fn known_pods(facts: &Facts, moment: &Moment) -> Vec<(usize, usize, String)> {
    let is_known = |held: &&HeldGpus| !held.uses.is_empty() || held.state == HeldState::Terminating;
    let mut known: BTreeSet<usize> =
        moment.held.iter().filter(is_known).map(|held| held.workload).collect();
    let is_over = |workload: &Workload| workload.pods.iter().any(|pod| pod.work_ended_ms.is_some());
    let numbered = facts.workloads.iter().enumerate();
    known.extend(numbered.filter(|(_, workload)| is_over(workload)).map(|(number, _)| number));
    let names = known.into_iter().flat_map(|number| {
        let pods = facts.workloads[number].pods.iter().enumerate();
        pods.map(move |(place, pod)| (number, place, pod.name.clone()))
    });
    names.collect()
}

/// Devices that a plan gives out, by node.
pub fn devices_by_node(plan: &Plan) -> BTreeMap<String, i64> {
    let mut by_node = BTreeMap::new();
    for action in &plan.actions {
        if let Action::Bind { node, devices, .. } = action {
            *by_node.entry(node.to_string()).or_default() += devices.len() as i64;
        }
    }
    by_node
}

/// What a plan gives out is kept for what gets it, but for pods that would fit there against the
/// word of their own scheduler.
fn reserved_by(demand: &PendingDemand, plan: Plan, contested: &mut Vec<String>) -> Causes {
    let mut reserved = Causes::new();
    let mut named = BTreeSet::new();
    for action in plan.actions {
        let Action::Bind { pod, node, devices } = action else { continue };
        if let Some(pods) = demand.refused.get(&pod.job) {
            named.extend(pods);
            continue;
        }
        let of_node = reserved.entry(node.to_string()).or_default();
        *of_node.entry(FreeCause::Reserved).or_default() +=
            devices.len() as i64 * WHOLE_DEVICE_MILLI;
    }
    contested.extend(named.into_iter().cloned());
    reserved
}

/// Why what is free of a resource is free, beside what is reserved.
fn causes_of(engine: &mut Engine, reserved: Causes) -> Causes {
    let mut causes = reserved;
    let picture = what_is_free(engine, &[]);
    for piece in picture.pieces {
        let of_node = causes.entry(piece.node.to_string()).or_default();
        for (cause, gpu_milli) in piece.gpu_milli {
            *of_node.entry(cause).or_default() += gpu_milli;
        }
    }
    causes
}

/// Takes the cause from what is free without demand, as far as there is demand that nobody can hold
/// against nodes; by nodes in the order of their names.
fn leave_open(causes: &mut Causes, untold: Untold) {
    let mut left_milli = untold.gpu_milli();
    for of_node in causes.values_mut() {
        let Some(gpu_milli) = of_node.get_mut(&FreeCause::NoDemand) else { continue };
        let open_milli = left_milli.min(*gpu_milli);
        *gpu_milli -= open_milli;
        left_milli -= open_milli;
    }
}

/// Workloads of which some pods compute and others do not yet: whoever is ready waits. Only
/// training with several pods works together as far as anybody can see.
fn waiting_gangs(facts: &Facts, moment: &Moment) -> BTreeSet<usize> {
    let trains = |workload: usize| facts.workloads[workload].class == Some(WorkloadClass::Training);
    let mut missing: BTreeSet<&ObjectRef> = BTreeSet::new();
    for workload in facts.workloads.iter().filter(|w| w.class == Some(WorkloadClass::Training)) {
        if workload.pods.iter().any(|pod| pod.node.is_none()) {
            missing.insert(&workload.owner);
        }
    }
    for held in moment.held.iter().filter(|held| trains(held.workload)) {
        if held.state == HeldState::Starting {
            missing.insert(&facts.workloads[held.workload].owner);
        }
    }
    let workloads = facts.workloads.iter().enumerate();
    let waits = workloads.filter(|(_, workload)| missing.contains(&workload.owner));
    waits.map(|(number, _)| number).collect()
}

/// Lays parts one behind the other on devices, for the month and for what has been; holders are
/// workloads by their number. Returns the devices of each part that was measured, by its place
/// among what is held.
fn cut(
    parts: &[NodePart<'_>],
    moment: &Moment,
    first: u32,
    month: Span,
    states: &mut DeviceStates,
) -> Vec<(usize, Vec<(u32, i64)>)> {
    const WHOLE: i64 = dovetail_model::device::WHOLE_DEVICE_MILLI;
    let mut at_milli = 0;
    let mut measured = Vec::new();
    for part in parts {
        let holder = part.held.map(|place| moment.held[place].workload as u32);
        let mut left = part.gpu_milli;
        let mut devices = Vec::new();
        while left > 0 {
            let device = first + (at_milli / WHOLE) as u32;
            let gpu_milli = left.min(WHOLE - at_milli % WHOLE);
            let since_ms = part.lasting.since_ms;
            let waste = |(state, span)| {
                let interval = DeviceInterval { span, gpu_milli, state, holder, signal: None };
                DeviceWaste { device, interval, usd_micros_per_gpu_hour: None, since_ms }
            };
            states.intervals.extend(part.expected(month).map(waste));
            states.so_far.extend(part.so_far(month.from_ms).map(waste));
            devices.push((device, gpu_milli));
            (left, at_milli) = (left - gpu_milli, at_milli + gpu_milli);
        }
        let is_known = part.used.is_some() || part.state == DeviceState::Idle;
        measured.extend(part.held.filter(|_| is_known).map(|held| (held, devices)));
    }
    measured
}
