//! Pending work that leaves GPUs free: what would let it start is tried on the engine, in the world
//! of pending pods with one constraint lifted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_account::device_time::DeviceState;
use dovetail_facts::{ObjectRef, PendingDemand, Workload};
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::requirement::Operator;
use dovetail_model::{
    DeviceRequest, FreeCause, Holding, Job, JobId, Node as WorldNode, NodeAvailability, Owner,
    PodSet, Resources, Snapshot, labels,
};
use rustc_hash::FxHashMap;

use super::{View, claims_on};
use crate::catalogue::Check;
use crate::finding::{Attribution, Finding};
use crate::names::place_of;
use crate::trial::{Changing, asking_for_devices, binds, holding};

/// Nodes that are added at most to let a gang start.
const MOST_NODES: usize = 4;
/// Kinds of nodes that are tried.
const MOST_KINDS: usize = 6;

/// GOV-05: jobs that would start if their quota allowed it.
pub(super) fn lacks_quota(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let is_limited = |demand: &&PendingDemand| !demand.world.queues.is_empty();
    for (demand, PendingProbe { world, starts_now }) in
        worlds(view).filter(|(of, _)| is_limited(of))
    {
        let mut world = world.clone();
        world.queues.clear();
        world.jobs.iter_mut().for_each(|job| job.queue.clear());
        let owners = &view.pending_owners;
        let mut by_namespace: BTreeMap<&str, Started> = BTreeMap::new();
        let plan = binds(&world);
        let nodes_of = nodes_by_job(&plan);
        for job in newly_started(demand, &plan, starts_now) {
            let nodes = nodes_of.get(&job.id).map_or(&[][..], Vec::as_slice);
            let started = by_namespace.entry(place_of(job).0).or_default();
            started.jobs.insert(made_by(job, owners));
            started.pods += pods_of(job);
            started.since_ms.extend(kept_from(view, demand, job, nodes));
        }
        for (namespace, Started { jobs, pods, since_ms }) in by_namespace {
            let waits = |job: &&Job| {
                job.start_ms.is_none()
                    && !starts_now.contains(&job.id)
                    && place_of(job).0 == namespace
                    && jobs.contains(&made_by(job, owners))
            };
            let all: u64 = demand.world.jobs.iter().filter(waits).map(pods_of).sum();
            let object = ObjectRef::new("Namespace", "", namespace);
            let verb = if jobs.len() == 1 { "requests" } else { "request" };
            let count = format!("{} that {verb} {}", jobs.len(), demand.resource);
            let mut finding = Finding::new(check, &object)
                .dated(since_ms.into_iter().min())
                .with("jobs that would start", count);
            if pods < all {
                let part = format!("{pods} of {all}; the free GPUs do not suffice for the others");
                finding = finding.with("pods of these jobs that would start", part);
            }
            finding.claims = free_for(view, &demand.resource, FreeCause::Quota);
            found.push(finding);
        }
    }
}

/// Since when a job lacks quota while GPUs are free on the nodes on which it would start; `None` if
/// nobody knows.
fn kept_from(view: &View<'_>, demand: &PendingDemand, job: &Job, nodes: &[&str]) -> Option<u64> {
    let waits_ms = match demand.without_quota.get(&job.id) {
        Some(since_ms) => (*since_ms)?,
        None => Some(job.submit_ms).filter(|since_ms| *since_ms > 0)?,
    };
    let nodes = nodes.iter().filter_map(|node| view.node_of.get(*node));
    let free_ms = nodes.filter_map(|node| node.free_since_ms);
    Some(free_ms.fold(waits_ms, u64::max))
}

/// What would start in a namespace. Each pod may be a job of its own to the engine.
#[derive(Default)]
struct Started {
    /// What made them, or would.
    jobs: BTreeSet<String>,
    pods: u64,
    since_ms: Vec<u64>,
}

fn pods_of(job: &Job) -> u64 {
    job.pod_sets.iter().map(|set| u64::from(set.min)).sum()
}

/// Owners of pods that have no node, by namespace and name of the pod.
pub(super) type PendingOwners<'v> = BTreeMap<(&'v str, &'v str), &'v ObjectRef>;

/// Of the pods of these workloads.
pub(super) fn owners_of_pending<'v>(workloads: &[&'v Workload]) -> PendingOwners<'v> {
    let owned = workloads.iter().copied().flat_map(|workload| {
        let pods = workload.pods.iter().filter(|pod| pod.node.is_none());
        let owner = &workload.owner;
        pods.map(move |pod| ((owner.namespace.as_str(), pod.name.as_str()), owner))
    });
    owned.collect()
}

/// Workloads by namespace and name, their own and those of their pods; the first of those that have
/// one.
pub(super) type WorkloadNames<'v> = FxHashMap<(&'v str, &'v str), &'v Workload>;

/// The names of these workloads.
pub(super) fn workload_names<'v>(workloads: &[&'v Workload]) -> WorkloadNames<'v> {
    let mut names = WorkloadNames::default();
    for workload in workloads.iter().copied() {
        let namespace = workload.owner.namespace.as_str();
        let of_pods = workload.pods.iter().map(|pod| pod.name.as_str());
        for name in of_pods.chain([workload.owner.name.as_str()]) {
            names.entry((namespace, name)).or_insert(workload);
        }
    }
    names
}

/// What people call the job: the owner of pods that exist; pods that do not exist yet have the name
/// of their object and a number.
fn made_by(job: &Job, owners: &PendingOwners<'_>) -> String {
    let place = place_of(job);
    if let Some(owner) = owners.get(&place) {
        return format!("{} {}", owner.kind, owner.name);
    }
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let numbered = place.1.rsplit_once('-').filter(|(_, number)| is_number(number));
    match numbered.filter(|_| job.name.contains(" (")) {
        Some((name, _)) => name.to_owned(),
        None => place.1.to_owned(),
    }
}

/// SCH-13: gangs that would start with a few more nodes.
pub(super) fn lacks_nodes(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let is_gang = |job: &Job| job.pod_sets.iter().map(|set| set.min).sum::<u32>() > 1;
    for (demand, PendingProbe { world, starts_now }) in worlds(view) {
        let waits =
            |job: &&Job| job.start_ms.is_none() && is_gang(job) && !starts_now.contains(&job.id);
        let pending: BTreeSet<JobId> =
            demand.world.jobs.iter().filter(waits).map(|job| job.id).collect();
        if pending.is_empty() {
            continue;
        }
        let kinds = kinds(&demand.world);
        // The fewest nodes, then the kind with the most GPUs.
        let mut starts: BTreeMap<JobId, (usize, usize)> = BTreeMap::new();
        for (place, kind) in kinds.iter().enumerate() {
            for (job, count) in started_by_more(world, kind, &pending) {
                let least = starts.entry(job).or_insert((count, place));
                *least = (*least).min((count, place));
            }
        }
        for job in &demand.world.jobs {
            let Some((count, kind)) = starts.get(&job.id) else { continue };
            let nodes = if *count == 1 { "node" } else { "nodes" };
            let text = format!("{count} more {nodes} like {}", kinds[*kind].name);
            let owner = || owner(view, demand, job);
            let object = gang_object(demand, job).unwrap_or_else(owner);
            let mut finding = Finding::new(check, &object).with("starts with", text);
            finding = naming_gang(view, (demand, job), finding);
            finding.claims = free_for(view, &demand.resource, FreeCause::GangShort);
            found.push(finding);
        }
    }
}

/// Adds to the finding of a gang what kubectl calls it, its pending pods, and what lets it start
/// with fewer pods.
fn naming_gang(
    view: &View<'_>,
    (demand, job): (&PendingDemand, &Job),
    finding: Finding,
) -> Finding {
    let Some(gang) = demand.gangs.get(&job.id) else { return finding };
    let (namespace, _) = place_of(job);
    let is_pending = |pod: &&String| view.pending_owners.contains_key(&(namespace, pod.as_str()));
    let pods = gang.pods.iter().filter(is_pending);
    let pods = pods.map(|pod| ObjectRef::new("Pod", namespace, pod));
    let mut finding = finding.affecting(pods);
    if let Some(object) = &gang.object {
        let text = format!("{}/{} in namespace {namespace}", gang.resource, object.name);
        finding = finding.with("gang", text);
    }
    let nodes = match view.pool_kind(&finding) {
        Some("Node") => "add nodes",
        _ => "add nodes to the pool",
    };
    let size = gang.size;
    finding.for_example(format!("{nodes}, or lower {size} if the program runs with fewer pods"))
}

/// Pending jobs that start, some of their pods on nodes that are there, as nodes of a kind join one
/// after the other; with how many have joined by then.
fn started_by_more(
    world: &Snapshot,
    kind: &WorldNode,
    pending: &BTreeSet<JobId>,
) -> BTreeMap<JobId, usize> {
    let existing: BTreeSet<&str> = world.nodes.iter().map(|node| &*node.name).collect();
    let mut started = BTreeMap::new();
    let Some(mut world) = Changing::new(world) else { return started };
    for count in 1..=MOST_NODES {
        for (job, node) in world.binds_with(another(kind, count)) {
            if pending.contains(&job) && existing.contains(&*node) {
                started.entry(job).or_insert(count);
            }
        }
        if started.len() == pending.len() {
            break;
        }
    }
    started
}

/// SCH-14: jobs that would start on free GPUs that their selectors or models exclude.
pub(super) fn excludes_models(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for (demand, job, nodes) in unbound(view) {
        let requirement = job.pod_sets.first().map(|set| &set.requirement);
        let models = requirement.map(|of| &of.gpu_models).into_iter().flatten();
        let models: Vec<&str> = models.map(|model| &**model).collect();
        let only = if models.is_empty() { labels_asked(job) } else { models.join(", ") };
        let owner = owner(view, demand, job);
        let mut finding = Finding::new(check, &owner).with("accepts only", only);
        (finding.claims, finding.most_milli) = taken_by(view, demand, job, nodes);
        finding.starts_on = nodes.iter().cloned().collect();
        found.push(finding);
    }
}

/// The nodes of pods that start, by their jobs.
pub(super) type Binds = BTreeMap<JobId, Vec<String>>;

/// Pending jobs that would start only if their selectors and models excluded no node, with the
/// nodes of their pods then.
fn unbound<'v>(
    view: &'v View<'_>,
) -> impl Iterator<Item = (&'v PendingDemand, &'v Job, &'v [String])> {
    let plans = view.unbound.get_or_init(|| {
        let plan = |(_, probe): (&PendingDemand, &PendingProbe)| unbound_binds(&probe.world);
        worlds(view).map(plan).collect()
    });
    worlds(view).zip(plans).flat_map(|((demand, probe), plan)| {
        let jobs = demand.world.jobs.iter().filter(move |job| !probe.starts_now.contains(&job.id));
        jobs.filter_map(move |job| Some((demand, job, plan.get(&job.id)?.as_slice())))
    })
}

/// What starts in a world once no selector and no model excludes a node; nothing where none does.
fn unbound_binds(world: &Snapshot) -> Binds {
    let mut world = world.clone();
    let waiting = world.jobs.iter_mut().filter(|job| job.start_ms.is_none());
    let mut is_any = false;
    for set in waiting.flat_map(|job| &mut job.pod_sets) {
        let is_bound = |of: &dovetail_model::Requirement| {
            !of.gpu_models.is_empty() || !of.node_conditions.is_empty()
        };
        if is_bound(&set.requirement) {
            is_any = true;
            let requirement = Arc::make_mut(&mut set.requirement);
            requirement.gpu_models.clear();
            requirement.node_conditions.clear();
        }
    }
    let mut nodes = Binds::new();
    if is_any {
        for (job, node) in binds(&world) {
            nodes.entry(job).or_default().push(node);
        }
    }
    nodes
}

/// A pending pod, on a node that its selectors or models exclude and on which it would start
/// otherwise (SCH-14).
pub(super) struct ExcludedPod<'v> {
    pub(super) node: &'v str,
    pub(super) resource: &'v str,
    /// How many units of the resource it requests.
    pub(super) units: i64,
    /// What it requests beside them.
    pub(super) resources: &'v Resources,
}

/// All of them, with the nodes that SCH-14 names. Each pod of a gang counts as the one that
/// requests the most units: which of its roles starts on which node is not known.
pub(super) fn excluded_pods<'v>(view: &'v View<'_>) -> Vec<ExcludedPod<'v>> {
    let mut pods = Vec::new();
    for (demand, job, nodes) in unbound(view) {
        let Some(set) = job.pod_sets.iter().max_by_key(|set| units_of(set)) else { continue };
        let (resource, resources) = (demand.resource.as_str(), &set.requirement.resources);
        let units = units_of(set);
        pods.extend(nodes.iter().map(|node| ExcludedPod { node, resource, units, resources }));
    }
    pods
}

/// SCH-08 for jobs whose pods do not exist yet: they would start if each pod took its GPUs one by
/// one, so enough are free, but not on one node. One that quota alone would start lacks quota and
/// nothing else.
pub(super) fn in_pieces(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for (demand, PendingProbe { world, starts_now }) in worlds(view) {
        let mut world = world.clone();
        let waits = |job: &&mut Job| job.start_ms.is_none() && !starts_now.contains(&job.id);
        let to_come = |job: &&mut Job| !has_pods(view, demand, job);
        world.queues.clear();
        world.jobs.iter_mut().for_each(|job| job.queue.clear());
        let starts_with_quota: BTreeSet<JobId> = match demand.world.queues.is_empty() {
            true => BTreeSet::new(),
            false => binds(&world).into_iter().map(|(job, _)| job).collect(),
        };
        let waits = |job: &&mut Job| waits(job) && !starts_with_quota.contains(&job.id);
        let split: BTreeSet<JobId> = (world.jobs.iter_mut().filter(waits).filter(to_come))
            .filter_map(|job| split_by_gpu(job).then_some(job.id))
            .collect();
        if split.is_empty() {
            continue;
        }
        let plan = binds(&world);
        let bound_of = nodes_by_job(&plan);
        for job in newly_started(demand, &plan, starts_now) {
            if !split.contains(&job.id) {
                continue;
            }
            let bound = bound_of.get(&job.id).map_or(&[][..], Vec::as_slice);
            let (namespace, name) = place_of(job);
            let of_namespace = || ObjectRef::new("Namespace", "", namespace);
            let object = gang_object(demand, job).unwrap_or_else(of_namespace);
            let nodes: BTreeSet<&str> = bound.iter().copied().collect();
            if nodes.len() < 2 {
                continue;
            }
            let free = format!("{} on {} nodes", bound.len(), nodes.len());
            let mut finding = Finding::new(check, &object)
                .with("pending", format!("{name} requests {}", demand.resource))
                .with("free", free);
            if !job.queue.is_empty() {
                finding = finding.with("also lacks", "quota");
            }
            let states = [DeviceState::Free(Some(FreeCause::Fragmented))];
            let nodes = view.nodes_named(nodes.into_iter()).into_iter();
            finding.claims =
                nodes.flat_map(|node| claims_on(node, None, &states, view.facts.period)).collect();
            finding.most_milli = Some(bound.len() as i64 * WHOLE_DEVICE_MILLI);
            finding.needs_waste = true;
            found.push(finding);
        }
    }
}

/// What pending pods would take if a workload without GPUs left these nodes: claims on GPUs that
/// are stranded there, how many GPUs at most, and how many jobs would start.
pub(super) fn stranded_by(
    view: &View<'_>,
    workload: &Workload,
    nodes: &BTreeSet<&str>,
) -> Option<(Vec<Attribution>, i64, usize)> {
    let causes = [FreeCause::StrandedByCpu, FreeCause::StrandedByMemory];
    let states = causes.map(|cause| DeviceState::Free(Some(cause)));
    let (mut claims, mut most_milli, mut jobs) = (Vec::new(), 0, 0);
    for (demand, PendingProbe { world, starts_now }) in worlds(view) {
        let namespace = &workload.owner.namespace;
        let names: BTreeSet<String> =
            workload.pods.iter().map(|pod| format!("{namespace}/{}", pod.name)).collect();
        let leaves =
            |of: &Holding| matches!(&of.owner, Owner::Foreign(name) if names.contains(name));
        let on_them = |of: &&Holding| nodes.contains(&*of.node) && !leaves(of);
        let holdings = world.holdings.iter().filter(on_them).cloned().collect();
        let on = world.nodes.iter().filter(|node| nodes.contains(&*node.name)).cloned().collect();
        let plan = binds(&holding(world, world.jobs.clone(), on, holdings));
        for job in newly_started(demand, &plan, starts_now) {
            let bound = plan.iter().filter(|(id, on)| *id == job.id && nodes.contains(&**on));
            let on: BTreeSet<&str> = bound.map(|(_, on)| on.as_str()).collect();
            if on.is_empty() {
                continue;
            }
            jobs += 1;
            most_milli += job.min_gpu_milli();
            let on = view.nodes_named(on.into_iter()).into_iter();
            claims.extend(on.flat_map(|node| claims_on(node, None, &states, view.facts.period)));
        }
    }
    (!claims.is_empty()).then_some((claims, most_milli, jobs))
}

/// Makes pods with one GPU each of those that ask for several; answers whether there are any.
fn split_by_gpu(job: &mut Job) -> bool {
    let mut is_any = false;
    for set in &mut job.pod_sets {
        let DeviceRequest::Whole { count: gpus @ 2.., .. } = set.requirement.device else {
            continue;
        };
        is_any = true;
        let requirement = Arc::make_mut(&mut set.requirement);
        requirement.device = DeviceRequest::Whole { count: 1, same_island: false };
        requirement.resources.cpu_milli /= i64::from(gpus);
        requirement.resources.memory_bytes /= i64::from(gpus);
        requirement.resources.ephemeral_bytes /= i64::from(gpus);
        set.min *= u32::from(gpus);
        set.max = set.min;
    }
    is_any
}

/// What is asked about the pending jobs of one resource.
pub(super) struct PendingProbe {
    /// Where they could start.
    world: Snapshot,
    /// Those that start without any change.
    starts_now: BTreeSet<JobId>,
}

/// Worlds with pending jobs.
fn worlds<'v>(view: &'v View<'_>) -> impl Iterator<Item = (&'v PendingDemand, &'v PendingProbe)> {
    let demand = &view.moment.demand;
    let pending = view.pending.get_or_init(|| {
        let of = |demand: &PendingDemand| {
            let is_asked = !demand.world.jobs.is_empty();
            let world = match is_asked {
                true => asking_for_devices(&demand.world),
                false => Default::default(),
            };
            let starts_now = binds(&world).into_iter().map(|(job, _)| job).collect();
            PendingProbe { world, starts_now }
        };
        demand.iter().map(of).collect()
    });
    demand.iter().zip(pending).filter(|(demand, _)| !demand.world.jobs.is_empty())
}

/// The nodes of the pods of each job that starts.
fn nodes_by_job(plan: &[(JobId, String)]) -> BTreeMap<JobId, Vec<&str>> {
    let mut nodes: BTreeMap<JobId, Vec<&str>> = BTreeMap::new();
    for (job, node) in plan {
        nodes.entry(*job).or_default().push(node);
    }
    nodes
}

/// Pending jobs that start in a changed world and would not in the world as it is.
fn newly_started<'d>(
    demand: &'d PendingDemand,
    plan: &[(JobId, String)],
    starts_now: &BTreeSet<JobId>,
) -> Vec<&'d Job> {
    let started: BTreeSet<JobId> = plan.iter().map(|(job, _)| *job).collect();
    let is_new = |job: &&Job| started.contains(&job.id) && !starts_now.contains(&job.id);
    demand.world.jobs.iter().filter(is_new).collect()
}

fn free_for(view: &View<'_>, resource: &str, cause: FreeCause) -> Vec<Attribution> {
    let has_it = |node: &&dovetail_facts::Node| node.gpus.contains_key(resource);
    let nodes = view.facts.nodes.iter().filter(has_it);
    let states = [DeviceState::Free(Some(cause))];
    nodes.flat_map(|node| claims_on(node, None, &states, view.facts.period)).collect()
}

/// The node labels that a job's selectors and affinity name, each with its values.
fn labels_asked(job: &Job) -> String {
    let requirements = job.pod_sets.iter().map(|set| &set.requirement);
    let alternatives = requirements.flat_map(|of| &of.node_conditions).flat_map(|of| &of.any_of);
    let texts = alternatives.flatten().map(|term| {
        let (key, values) = (&term.key, term.values.join(" or "));
        match term.operator {
            Operator::In => format!("{key} {values}"),
            Operator::NotIn => format!("{key} not {values}"),
            Operator::Exists => key.clone(),
            Operator::DoesNotExist => format!("no {key}"),
            Operator::Gt => format!("{key} above {values}"),
            Operator::Lt => format!("{key} below {values}"),
        }
    });
    let texts: BTreeSet<String> = texts.collect();
    format!("nodes by label: {}", texts.into_iter().collect::<Vec<_>>().join(", "))
}

/// What is free of the wrong kind on the nodes of a job's pods, and how much of it the job would
/// take.
fn taken_by(
    view: &View<'_>,
    demand: &PendingDemand,
    job: &Job,
    on: &[String],
) -> (Vec<Attribution>, Option<i64>) {
    let of_pod = job.pod_sets.first().map_or(1, units_of);
    let states = [DeviceState::Free(Some(FreeCause::TypeMismatch))];
    let (mut claims, mut most_milli) = (Vec::new(), 0);
    let mut pods_on: BTreeMap<&str, i64> = BTreeMap::new();
    for node in on {
        *pods_on.entry(node).or_default() += 1;
    }
    for node in view.nodes_named(pods_on.keys().copied()) {
        let pods = pods_on[&*node.node.name];
        let units = node.gpus.get(&demand.resource).map_or(0, |gpus| gpus.built_in);
        if units > 0 {
            // A unit may be a part of a GPU.
            let gpus_milli = node.devices.len() as i64 * WHOLE_DEVICE_MILLI;
            most_milli += gpus_milli * (pods * of_pod).min(units) / units;
            claims.extend(claims_on(node, None, &states, view.facts.period));
        }
    }
    (claims, Some(most_milli))
}

/// How many units of its resource one pod requests.
fn units_of(set: &PodSet) -> i64 {
    match &set.requirement.device {
        DeviceRequest::Whole { count, .. } => i64::from(*count),
        _ => 1,
    }
}

/// One node of each kind that is ready, those with the most GPUs first. Kinds differ in GPUs,
/// taints and what pending pods ask of labels.
fn kinds(world: &Snapshot) -> Vec<&WorldNode> {
    let waiting = world.jobs.iter().filter(|job| job.start_ms.is_none());
    let conditions = waiting.flat_map(|job| &job.pod_sets);
    let conditions = conditions.flat_map(|set| &set.requirement.node_conditions);
    let terms = conditions.flat_map(|condition| condition.any_of.iter().flatten());
    let keys: BTreeSet<&str> = terms.map(|term| term.key.as_str()).collect();
    let mut kinds: BTreeMap<_, &WorldNode> = BTreeMap::new();
    for node in world.nodes.iter().filter(|node| node.condition == NodeAvailability::Ready) {
        let model = node.devices.first().map(|device| &*device.model);
        let labels: Vec<Option<&String>> = keys.iter().map(|key| node.labels.get(*key)).collect();
        kinds.entry((node.devices.len(), model, &node.taints, labels)).or_insert(node);
    }
    kinds.into_values().rev().filter(|node| !node.devices.is_empty()).take(MOST_KINDS).collect()
}

/// An empty node of the same kind.
fn another(kind: &WorldNode, number: usize) -> WorldNode {
    let name = format!("{}-more-{number}", kind.name);
    let mut node = kind.clone();
    node.labels.insert(labels::HOST_NAME.to_owned(), name.clone());
    node.name = name.as_str().into();
    node
}

/// The object that describes a gang.
fn gang_object(demand: &PendingDemand, job: &Job) -> Option<ObjectRef> {
    demand.gangs.get(&job.id)?.object.clone()
}

/// The owner of a job's pods. Where none of them is there, the object of the gang, or else the
/// namespace.
fn owner(view: &View<'_>, demand: &PendingDemand, job: &Job) -> ObjectRef {
    let of_namespace = || ObjectRef::new("Namespace", "", place_of(job).0);
    let of_pods = owner_of_pods(view, demand, job);
    of_pods.or_else(|| gang_object(demand, job)).unwrap_or_else(of_namespace)
}

/// Whether one of a job's pods is there. Most pending jobs are pods that are known by name.
fn has_pods(view: &View<'_>, demand: &PendingDemand, job: &Job) -> bool {
    let is_pod =
        !demand.gangs.contains_key(&job.id) && view.pending_owners.contains_key(&place_of(job));
    is_pod || owner_of_pods(view, demand, job).is_some()
}

/// The owner of a job's pods, if one of them is there.
fn owner_of_pods(view: &View<'_>, demand: &PendingDemand, job: &Job) -> Option<ObjectRef> {
    let (namespace, name) = place_of(job);
    if let Some(gang) = demand.gangs.get(&job.id) {
        let owners = &view.pending_owners;
        let mut pods = gang.pods.iter();
        let owner = pods.find_map(|pod| owners.get(&(namespace, pod.as_str())))?;
        return Some((*owner).clone());
    }
    view.workload_names.get(&(namespace, name)).map(|workload| workload.owner.clone())
}
