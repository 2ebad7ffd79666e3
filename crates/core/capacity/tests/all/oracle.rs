//! The definition read word by word on plain data: slow, and without the engine's tables.
//!
//! Only whether a gang fits as a whole is asked of the engine, by the explanation's own question.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::requirement::Toleration;
use dovetail_model::{
    DeviceRequest, FreeCause, Job, Node, NodeAvailability, Owner, PodId, Requirement, RuleKind,
    Snapshot, TaintEffect,
};
use dovetail_plan::Engine;
use dovetail_plan::explain::Relaxation;

/// What the oracle says of the whole cluster, in milli-GPU.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) installed: i64,
    pub(crate) unavailable: i64,
    pub(crate) allocated: i64,
    /// By queue, others as `None`.
    pub(crate) holders: BTreeMap<Option<String>, i64>,
    /// By model and cause, without zeros.
    pub(crate) free: BTreeMap<(String, FreeCause), i64>,
}

/// What is used of a node, added up from the holdings.
struct Used {
    cpu_milli: i64,
    memory_bytes: i64,
    pod_slots: i64,
    /// Compute per device, and whether anything holds it.
    devices: Vec<(i64, bool)>,
    /// More device memory than a device has, or a device that is not there.
    beyond: bool,
}

struct Piece<'w> {
    node: &'w Node,
    model: String,
    key: (String, i64, i64),
    left: i64,
}

struct Demand<'w> {
    requirement: &'w Requirement,
    level: Option<usize>,
    fate: Option<FreeCause>,
    left: i64,
}

pub(crate) fn judge(engine: &mut Engine) -> Verdict {
    let world = engine.snapshot();
    let mut verdict = Verdict::default();
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for node in &world.nodes {
        let used = used(&world, node);
        book_holders(&world, node, &mut verdict);
        for (device, (held, _)) in node.devices.iter().zip(&used.devices) {
            verdict.installed += 1_000;
            let left = (1_000 - held).clamp(0, 1_000);
            let cause = match node.condition {
                _ if !device.healthy => {
                    verdict.unavailable += 1_000;
                    continue;
                }
                NodeAvailability::NotReady => {
                    verdict.unavailable += left;
                    continue;
                }
                NodeAvailability::Cordoned => FreeCause::DrainingOrCordoned,
                NodeAvailability::Starting => FreeCause::Starting,
                NodeAvailability::Ready if left > 0 => {
                    let key = (node.name.to_string(), device.memory_bytes, *held);
                    let model = device.model.clone();
                    let same = pieces.iter_mut().find(|p| p.key == key && p.model == model);
                    match same {
                        Some(piece) => piece.left += left,
                        None => pieces.push(Piece { node, model, key, left }),
                    }
                    continue;
                }
                NodeAvailability::Ready => continue,
            };
            *verdict.free.entry((device.model.clone(), cause)).or_default() += left;
        }
    }
    let demand = demand(engine, &world, &pieces);
    explain(&world, pieces, demand, &mut verdict);
    verdict.free.retain(|_, milli| *milli > 0);
    verdict
}

/// Gives each waiting milli-GPU to one free one.
fn explain(
    world: &Snapshot,
    mut pieces: Vec<Piece<'_>>,
    mut demand: Vec<Demand<'_>>,
    verdict: &mut Verdict,
) {
    use FreeCause::*;
    let causes = [
        Reserved,
        Quota,
        GangShort,
        Fragmented,
        StrandedByOther,
        StrandedByMemory,
        StrandedByCpu,
        Topology,
        TypeMismatch,
        Taint,
    ];
    for cause in causes {
        for entry in &mut demand {
            for piece in &mut pieces {
                let here = obstacle(world, entry.requirement, entry.level, piece).or(entry.fate);
                if here == Some(cause) {
                    let given = entry.left.min(piece.left);
                    entry.left -= given;
                    piece.left -= given;
                    *verdict.free.entry((piece.model.clone(), cause)).or_default() += given;
                }
            }
        }
    }
    for piece in pieces {
        *verdict.free.entry((piece.model, NoDemand)).or_default() += piece.left;
    }
}

fn demand<'w>(engine: &mut Engine, world: &'w Snapshot, pieces: &[Piece<'_>]) -> Vec<Demand<'w>> {
    let mut jobs: Vec<&Job> = world.jobs.iter().filter(|job| job.start_ms.is_none()).collect();
    jobs.sort_by_key(|job| (std::cmp::Reverse(job.priority), job.id));
    let mut found: Vec<Demand<'w>> = Vec::new();
    for job in jobs {
        let depth = |name: &Option<String>| name.as_ref().and_then(|n| world.topology.depth(n));
        let sets: Vec<_> = job
            .pod_sets
            .iter()
            .filter(|set| set.requirement.gpu_milli() > 0 && set.min > 0)
            .map(|set| {
                let level = depth(&job.topology.required).max(depth(&set.topology.required));
                (&*set.requirement, level, i64::from(set.min))
            })
            .collect();
        let fits = sets.iter().any(|(requirement, level, _)| {
            pieces.iter().any(|piece| obstacle(world, requirement, *level, piece).is_none())
        });
        let fate = fits.then(|| fate(engine, world, job));
        for (requirement, level, pods) in sets {
            let milli = requirement.gpu_milli() * pods;
            let same = |d: &&mut Demand<'_>| {
                d.requirement == requirement && d.level == level && d.fate == fate
            };
            match found.iter_mut().find(same) {
                Some(entry) => entry.left += milli,
                None => found.push(Demand { requirement, level, fate, left: milli }),
            }
        }
    }
    found
}

/// Why a job waits of which a pod fits.
fn fate(engine: &mut Engine, world: &Snapshot, job: &Job) -> FreeCause {
    let gang = job.pod_sets.iter().map(|set| set.min).sum::<u32>() > 1;
    if gang && !engine.ask().fits_without(job, &[Relaxation::Quota]) {
        let without_levels = [Relaxation::Quota, Relaxation::Level];
        let has_level = job.topology.required.is_some();
        return match has_level && engine.ask().fits_without(job, &without_levels) {
            true => FreeCause::Topology,
            false => FreeCause::GangShort,
        };
    }
    let Some(queue) = world.queues.iter().find(|queue| queue.name == job.queue) else {
        return FreeCause::Reserved;
    };
    let holds = world.holdings.iter().filter_map(|holding| match &holding.owner {
        Owner::Pod(pod) => requirement_of(world, *pod, &queue.name).map(Requirement::gpu_milli),
        _ => None,
    });
    let used: i64 = holds.sum();
    match queue.limit.gpu_milli.is_some_and(|limit| used + job.min_gpu_milli() > limit) {
        true => FreeCause::Quota,
        false => FreeCause::Reserved,
    }
}

fn requirement_of<'w>(world: &'w Snapshot, pod: PodId, queue: &str) -> Option<&'w Requirement> {
    let job = world.jobs.iter().find(|job| job.id == pod.job && job.queue == queue)?;
    Some(&job.pod_sets[usize::from(pod.pod_set)].requirement)
}

/// The first thing that keeps a pod off a piece of a ready node; where that is a taint or the type
/// and something else is in the way as well, there is no demand for the piece.
fn obstacle(
    world: &Snapshot,
    pod: &Requirement,
    level: Option<usize>,
    piece: &Piece<'_>,
) -> Option<FreeCause> {
    let first = first_obstacle(world, pod, level, piece);
    let of_kind = [None, Some(FreeCause::Taint), Some(FreeCause::TypeMismatch)];
    if first.is_none() || !of_kind.contains(&first) {
        return first;
    }
    let mut any = pod.clone();
    any.gpu_models.clear();
    any.min_device_memory_bytes = 0;
    any.node_names.clear();
    any.node_conditions.clear();
    any.tolerations = vec![Toleration { any_value: true, ..Toleration::default() }];
    match of_kind.contains(&first_obstacle(world, &any, level, piece)) {
        true => first,
        false => Some(FreeCause::NoDemand),
    }
}

fn first_obstacle(
    world: &Snapshot,
    pod: &Requirement,
    level: Option<usize>,
    piece: &Piece<'_>,
) -> Option<FreeCause> {
    let node = piece.node;
    let used = used(world, node);
    let tolerated =
        |taint: &&dovetail_model::Taint| pod.tolerations.iter().any(|t| t.accepts(taint));
    let hard = node.taints.iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    if !hard.clone().all(|taint| tolerated(&taint)) {
        return Some(FreeCause::Taint);
    }
    if !selects(pod, node) {
        return Some(FreeCause::TypeMismatch);
    }
    let accepts = |model: &String, memory: i64| {
        (pod.gpu_models.is_empty() || pod.gpu_models.contains(model))
            && memory >= pod.min_device_memory_bytes
    };
    if !accepts(&piece.model, piece.key.1) {
        return Some(FreeCause::TypeMismatch);
    }
    let levels = world.topology.levels.iter();
    let known = levels.take_while(|level| node.labels.contains_key(&level.label)).count();
    let outside = level.is_some_and(|level| level < world.topology.levels.len() && known <= level);
    if outside || !rules_allow(world, pod, node) {
        return Some(FreeCause::Topology);
    }
    let (enough, this) = devices(pod, node, &used, piece, &accepts);
    if !enough {
        return Some(FreeCause::Fragmented);
    }
    let short = |has: i64, held: i64, asked: i64| asked > 0 && has - held < asked;
    if short(node.allocatable.cpu_milli, used.cpu_milli, pod.resources.cpu_milli) {
        return Some(FreeCause::StrandedByCpu);
    }
    if short(node.allocatable.memory_bytes, used.memory_bytes, pod.resources.memory_bytes) {
        return Some(FreeCause::StrandedByMemory);
    }
    let no_slot = short(node.allocatable.pod_slots, used.pod_slots, pod.resources.pod_slots);
    let overcommitted = used.beyond
        || used.devices.iter().zip(&node.devices).any(|((h, _), d)| d.healthy && *h > 1_000);
    if overcommitted || no_slot {
        return Some(FreeCause::StrandedByOther);
    }
    (!this).then_some(FreeCause::Fragmented)
}

/// Whether the node has enough devices for a pod, and whether this piece could be of them.
fn devices(
    pod: &Requirement,
    node: &Node,
    used: &Used,
    piece: &Piece<'_>,
    accepts: &dyn Fn(&String, i64) -> bool,
) -> (bool, bool) {
    let usable: Vec<(i64, bool)> = node
        .devices
        .iter()
        .zip(&used.devices)
        .filter(|(device, _)| device.healthy && accepts(&device.model, device.memory_bytes))
        .map(|(_, used)| *used)
        .collect();
    match pod.device {
        DeviceRequest::Whole { count, .. } => {
            let empty = usable.iter().filter(|(_, holds)| !holds).count();
            (empty >= usize::from(count), piece.key.2 == 0)
        }
        DeviceRequest::Share { compute_milli, .. } => {
            let room = |held: i64| 1_000 - held >= compute_milli;
            (usable.iter().any(|(held, _)| room(*held)), room(piece.key.2))
        }
        _ => panic!("worlds of the oracle have whole devices and shares"),
    }
}

fn selects(pod: &Requirement, node: &Node) -> bool {
    let term = |t: &dovetail_model::SelectorTerm| t.accepts(node.label(&t.key));
    (pod.node_names.is_empty() || pod.node_names.contains(&*node.name))
        && pod.node_conditions.iter().all(|c| c.any_of.iter().any(|terms| terms.iter().all(term)))
}

fn rules_allow(world: &Snapshot, pod: &Requirement, node: &Node) -> bool {
    pod.rules.iter().all(|rule| {
        let Some(here) = node.labels.get(&rule.label) else {
            return rule.kind == RuleKind::AntiAffinity;
        };
        let count = |value: &String| {
            let there = world.holdings.iter().filter(|holding| {
                let node = world.nodes.iter().find(|node| node.name == holding.node);
                node.is_some_and(|node| node.labels.get(&rule.label) == Some(value))
                    && holding.counts_into.contains(&rule.selector)
            });
            there.count() as i64
        };
        let values: BTreeSet<&String> =
            world.nodes.iter().filter_map(|node| node.labels.get(&rule.label)).collect();
        let itself = pod.counts_into.contains(&rule.selector);
        match &rule.kind {
            RuleKind::AntiAffinity => count(here) == 0,
            RuleKind::Affinity => {
                count(here) > 0 || (itself && values.iter().all(|value| count(value) == 0))
            }
            RuleKind::Spread { max_skew, .. } => {
                let least = values.iter().map(|value| count(value)).min();
                least.is_some_and(|least| {
                    count(here) + i64::from(itself) - least <= i64::from(*max_skew)
                })
            }
            RuleKind::AtMost { .. } => panic!("worlds of the oracle have no claims"),
        }
    })
}

fn used(world: &Snapshot, node: &Node) -> Used {
    let mut used = Used {
        cpu_milli: 0,
        memory_bytes: 0,
        pod_slots: 0,
        devices: vec![(0, false); node.devices.len()],
        beyond: false,
    };
    let mut memory: Vec<i64> = node.devices.iter().map(|device| device.memory_bytes).collect();
    for holding in world.holdings.iter().filter(|holding| holding.node == node.name) {
        used.cpu_milli += holding.resources.cpu_milli;
        used.memory_bytes += holding.resources.memory_bytes;
        used.pod_slots += holding.resources.pod_slots;
        for (index, amount) in &holding.devices {
            match node.devices.get(usize::from(*index)).filter(|device| device.healthy) {
                Some(_) => {
                    let device = &mut used.devices[usize::from(*index)];
                    *device = (device.0 + amount.compute_milli, true);
                    memory[usize::from(*index)] -= amount.memory_bytes;
                    used.beyond |= memory[usize::from(*index)] < 0;
                }
                None => used.beyond = true,
            }
        }
    }
    used
}

/// Books what is held to queues, others, or reservations; a device that is held more than once over
/// is left to the identity alone.
fn book_holders(world: &Snapshot, node: &Node, verdict: &mut Verdict) {
    let used = used(world, node);
    for holding in world.holdings.iter().filter(|holding| holding.node == node.name) {
        for (index, amount) in &holding.devices {
            let Some(device) = node.devices.get(usize::from(*index)).filter(|d| d.healthy) else {
                continue;
            };
            assert!(used.devices[usize::from(*index)].0 <= 1_000, "worlds of the oracle");
            let milli = amount.compute_milli;
            let holder = match &holding.owner {
                Owner::Reservation => {
                    let cause = match node.condition {
                        NodeAvailability::Ready => FreeCause::Reserved,
                        NodeAvailability::Cordoned => FreeCause::DrainingOrCordoned,
                        NodeAvailability::Starting => FreeCause::Starting,
                        NodeAvailability::NotReady => {
                            verdict.unavailable += milli;
                            continue;
                        }
                    };
                    *verdict.free.entry((device.model.clone(), cause)).or_default() += milli;
                    continue;
                }
                Owner::Foreign(_) => None,
                Owner::Pod(pod) => {
                    let job = world.jobs.iter().find(|job| job.id == pod.job);
                    job.map(|job| job.queue.clone())
                }
            };
            verdict.allocated += milli;
            *verdict.holders.entry(holder).or_default() += milli;
        }
    }
}
