//! SHR-08 and SHR-11: pending pods ask for MIG instances of which too few are free, and another
//! layout of a GPU has them; instances of a profile are free for long.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{MigTable, NodeAvailability, labels, to_nearest};

use super::scheduling::free_gpus;
use super::taints::{keeping_away, tolerates};
use super::{View, claims_on, node_ref, pod_ref};
use crate::catalogue::Check;
use crate::facts::{Node, Workload};
use crate::finding::Finding;

const HOUR_MS: u64 = 3_600_000;

pub(super) fn instances_of_no_layout(
    view: &View<'_>,
    check: &'static Check,
    found: &mut Vec<Finding>,
) {
    let free = free_gpus(view, NodeAvailability::Ready);
    let mut layouts = Layouts::default();
    let pods_on = LazyCell::new(|| gpu_pods_by_node(view));
    for workload in view.gpu_workloads() {
        let pending: Vec<_> = workload.pods.iter().filter(|pod| pod.node.is_none()).collect();
        if pending.is_empty() {
            continue;
        }
        for (resource, count) in workload.gpus_per_pod() {
            let Some(profile) = resource.strip_prefix(labels::NVIDIA_MIG) else { continue };
            let of_resource = free.get(resource).into_iter().flatten();
            let of_resource = of_resource.filter(|(node, _)| may_use(workload, node));
            let free: i64 = of_resource.map(|(_, free)| *free).sum();
            let wanted = count.saturating_mul(pending.len() as i64);
            if free >= wanted {
                continue;
            }
            let asked = format!("{} that request {resource}, {free} free", pending.len());
            let mut finding = Finding::new(check, &workload.owner)
                .with("pending pods", asked)
                .affecting(pending.iter().map(|pod| pod_ref(workload, pod)));
            finding = match node_for(view, workload, profile, (&mut layouts, &pods_on)) {
                Some((node, layout, pods)) => {
                    // What is free there is of other profiles; the pods need no more of it than
                    // the instances that they lack.
                    let states = check.reach.states();
                    finding.claims = claims_on(node, None, states, view.facts.period);
                    let lacking = wanted - free;
                    finding.most_milli = Some(milli_of(node, profile, lacking));
                    finding
                        .for_example(check.fix_example)
                        .with("node that could provide them", &node.node.name)
                        .with("layout of one of its GPUs", layout)
                        .with("pods with GPUs on that node", pods)
                }
                None => {
                    let none =
                        "none: no GPU on a node that these pods may use supports this profile";
                    let example = "nodes whose GPUs support the profile; or a toleration in the pods for nodes that \
                                   have it (see SCH-04)";
                    finding.with("node that could provide them", none).for_example(example)
                }
            };
            found.push(finding);
        }
    }
}

/// The layout with the most instances of a profile, by model and profile.
#[derive(Default)]
struct Layouts<'f>(BTreeMap<(&'f str, String), Option<String>>);

impl<'f> Layouts<'f> {
    fn with_most(&mut self, model: &'f str, profile: &str) -> Option<String> {
        let known = self.0.entry((model, profile.to_owned()));
        known.or_insert_with(|| with_most(&MigTable::of_model(model)?, profile)).clone()
    }
}

/// What so many instances of a profile are of a node's GPUs, by compute slices, in milli-GPU: all
/// of them together are rounded once.
fn milli_of(node: &Node, profile: &str, instances: i64) -> i64 {
    let model = node.gpus.values().find_map(|gpus| gpus.model.as_deref());
    let Some(table) = model.and_then(MigTable::of_model) else { return 0 };
    let slices = table.profile(profile).map_or(0, |place| table.profiles[place].compute_slices);
    let milli = (WHOLE_DEVICE_MILLI * i64::from(slices)).saturating_mul(instances);
    to_nearest(milli, i64::from(table.compute_slices).max(1))
}

fn with_most(table: &MigTable, profile: &str) -> Option<String> {
    let place = table.profile(profile)?;
    let layouts = table.fullest_layouts().into_iter().filter(|layout| layout[place] > 0);
    let best = layouts.max_by_key(|layout| (layout[place], table.compute_of(layout)))?;
    let of_profile = table.profiles.iter().zip(best).filter(|(_, count)| *count > 0);
    let texts = of_profile.map(|(profile, count)| format!("{count} × {}", profile.name));
    Some(texts.collect::<Vec<_>>().join(", "))
}

fn gpu_pods_by_node<'f>(view: &View<'f>) -> BTreeMap<&'f str, usize> {
    let mut pods = BTreeMap::new();
    for pod in view.gpu_workloads().flat_map(|workload| &workload.pods) {
        if let Some(node) = pod.node.as_deref() {
            *pods.entry(node).or_default() += 1;
        }
    }
    pods
}

/// The node that could be cut so with the fewest pods in the way, the layout, and how many pods
/// have GPUs there.
fn node_for<'f>(
    view: &View<'f>,
    workload: &Workload,
    profile: &str,
    (layouts, pods_on): (&mut Layouts<'f>, &BTreeMap<&str, usize>),
) -> Option<(&'f Node, String, usize)> {
    let of_node = view.facts.nodes.iter().filter(|node| is_cut(node) && may_use(workload, node));
    let able = of_node.filter_map(|node| {
        let model = node.gpus.values().find_map(|gpus| gpus.model.as_deref())?;
        let layout = layouts.with_most(model, profile)?;
        Some((node, layout, pods_on.get(&*node.node.name).copied().unwrap_or(0)))
    });
    able.min_by_key(|(node, _, pods)| (*pods, &*node.node.name))
}

/// Whether GPUs of a node are in MIG mode, as far as its resources and labels say.
fn is_cut(node: &Node) -> bool {
    let is_ready = node.node.condition == NodeAvailability::Ready;
    is_ready
        && (node.has_mig_instances() || node.node.labels.contains_key(labels::NVIDIA_MIG_CONFIG))
}

fn may_use(workload: &Workload, node: &Node) -> bool {
    let conditions = &workload.template.node_conditions;
    conditions.iter().all(|condition| condition.accepts(&node.node))
        && keeping_away(node).all(|taint| tolerates(workload, taint))
}

/// SHR-11: MIG instances of a profile that no pod has used for long, on nodes in use. Why the rest
/// of a node is free other checks say.
pub(super) fn unused_profiles(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for (resource, of_nodes) in free_gpus(view, NodeAvailability::Ready) {
        let Some(profile) = resource.strip_prefix(labels::NVIDIA_MIG) else { continue };
        for (node, free) in of_nodes {
            if !is_unused_profile(view, node, resource, free) {
                continue;
            }
            let mut finding = Finding::new(check, &node.pool)
                .with("not used", format!("{free} × {profile} on {}", node.node.name))
                .affecting([node_ref(node)]);
            finding.claims = claims_on(node, None, check.reach.states(), view.facts.period);
            finding.most_milli = Some(milli_of(node, profile, free));
            finding.needs_waste = true;
            finding.since_ms = node.free_since_ms;
            found.push(finding);
        }
    }
}

/// Whether no pod has used what a node in use has of a MIG profile, so much of which is free, for
/// long.
pub(super) fn is_unused_profile(view: &View<'_>, node: &Node, resource: &str, free: i64) -> bool {
    let least_ms = view.facts.thresholds.unused_profile_hours * HOUR_MS;
    let is_long = |since_ms: u64| view.facts.now_ms.saturating_sub(since_ms) >= least_ms;
    resource.starts_with(labels::NVIDIA_MIG)
        && node.without_gpu_pods_since_ms.is_none()
        && node.free_since_ms.is_some_and(is_long)
        && node.gpus.get(resource).is_some_and(|gpus| free >= gpus.allocatable)
}
