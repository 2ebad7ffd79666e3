//! SHR-08 and SHR-11: pending pods ask for MIG instances of which too few are free, and another
//! layout of a GPU has them; instances of a profile are free for long.
//!
//! A node that another layout lets serve waiting pods is needed: as many of them as the pods lack
//! instances are neither removed nor offered to other work.

use std::collections::BTreeMap;

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{
    MigTable, NodeAvailability, ShownProfiles, gpu_model, labels, mig_profile_name, to_nearest,
};

use super::taints::{keeping_away, tolerates};
use super::{View, claims_on, node_ref, pod_ref};
use crate::catalogue::Check;
use crate::facts::{Node, Pod, Workload};
use crate::finding::Finding;
use crate::moment::NodeGpus;

const HOUR_MS: u64 = 3_600_000;

pub(super) fn instances_of_no_layout(
    view: &View<'_>,
    check: &'static Check,
    found: &mut Vec<Finding>,
) {
    let free = view.free_gpus(NodeAvailability::Ready);
    let mut suppliers = Suppliers::default();
    let waits = |pod: &&Pod| pod.node.is_none() && pod.should_be_gone_ms.is_none();
    for workload in view.gpu_workloads() {
        let pending: Vec<&Pod> = workload.pods.iter().filter(waits).collect();
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
            let finding = Finding::new(check, &workload.owner)
                .with("pending pods", asked)
                .affecting(pending.iter().map(|pod| pod_ref(workload, pod)));
            let lacks = (profile, wanted - free);
            let nodes = suppliers.nodes_for(view, workload, lacks);
            found.push(match nodes.is_empty() {
                true => without_node(finding, suppliers.instead(view, workload, profile)),
                false => with_nodes(view, finding, &nodes),
            });
        }
    }
}

/// What a finding says where no node could provide instances under the requested name. `instead`:
/// the name under which nodes that the pods may use offer the profile, if some do.
fn without_node(mut finding: Finding, instead: Option<&str>) -> Finding {
    finding.most_milli = Some(0);
    let Some(instead) = instead else {
        let none = "none: no GPU on a node that these pods may use supports this profile";
        let example = "nodes whose GPUs support the profile; or a toleration in the pods for nodes that have it (see \
                       SCH-04)";
        return finding.with("node that could provide them", none).for_example(example);
    };
    let none = format!("none: the GPUs that these pods may use offer this profile as {instead}");
    let resource = format!("{}{}", labels::NVIDIA_MIG, instead.replace('+', "."));
    let example = format!("{resource} in the resources that the pods request");
    finding.with("node that could provide them", none).for_example(example)
}

/// What a finding says of the nodes that could provide so many instances of a profile.
fn with_nodes(view: &View<'_>, mut finding: Finding, nodes: &[Supplier<'_>]) -> Finding {
    let Some(first) = nodes.first() else { return finding };
    // What is free there is of other profiles; the pods need no more of it than the instances that
    // they lack.
    let states = finding.check.reach.states();
    let period = view.facts.period;
    finding.claims = nodes.iter().flat_map(|of| claims_on(of.node, None, states, period)).collect();
    finding.most_milli = Some(first.lacking_milli);
    finding.starts_on = nodes.iter().map(|of| of.node.node.name.to_string()).collect();
    // The pods need these nodes, in whatever layout: none of them leaves the bill.
    finding.stays.extend(finding.starts_on.iter().cloned());
    let example = finding.check.fix_example;
    finding = finding
        .for_example(example)
        .with("node that could provide them", &first.node.node.name)
        .with("layout of one of its GPUs", &first.layout)
        .with("pods with GPUs on that node", first.pods);
    let more = &nodes[1..];
    more.iter().fold(finding, |finding, of| {
        finding.with("node that could provide them", &of.node.node.name)
    })
}

/// Under which names GPUs offer their profiles.
struct ProfileNames<'f> {
    tables: Vec<MigTable>,
    /// By label of a model, its name and how its GPUs are cut; those that cannot be are left out.
    models: BTreeMap<&'f str, (&'static str, MigTable)>,
    shown: ShownProfiles,
}

impl<'f> ProfileNames<'f> {
    fn of(view: &View<'f>) -> Self {
        let mut models: BTreeMap<&str, (&'static str, MigTable)> = BTreeMap::new();
        let mut shown = ShownProfiles::default();
        for node in &view.facts.nodes {
            let Some(label) = model_of(node) else { continue };
            let model = match models.get(label) {
                Some((model, _)) => *model,
                None => {
                    let known = gpu_model(label).zip(MigTable::of_model(label));
                    let Some((model, table)) = known else { continue };
                    models.insert(label, (model, table));
                    model
                }
            };
            let of_node = (&*node.node.name, model);
            shown_on(node).for_each(|(name, count)| shown.see(of_node, name, count));
        }
        Self { tables: MigTable::all().collect(), models, shown }
    }

    /// The table of a node's GPUs, and the place of the profile that they offer, or would offer,
    /// under a name; `None` if they have no such name.
    fn on(&self, node: &Node, name: &str) -> Option<(&MigTable, usize)> {
        let (model, table) = self.models.get(model_of(node)?)?;
        let place = self.shown.requested((&*node.node.name, *model), table, name)?;
        Some((table, place))
    }

    /// The name under which a node offers, or would offer, the profile that a pod means by another
    /// one; `None` if it has no such profile.
    fn instead(&self, node: &Node, name: &str) -> Option<&str> {
        let (model, table) = self.models.get(model_of(node)?)?;
        let place = table.named(name, &self.tables)?;
        let offered = self.shown.offered((&*node.node.name, *model), table, place);
        (mig_profile_name(name).as_deref() != Some(offered)).then_some(offered)
    }
}

fn model_of(node: &Node) -> Option<&str> {
    node.gpus.values().find_map(|gpus| gpus.model.as_deref())
}

/// The names of the profiles that a node shows, with how many instances it has of each.
fn shown_on(node: &Node) -> impl Iterator<Item = (&str, i64)> {
    node.gpus.iter().filter_map(|(resource, gpus)| {
        let name = resource.strip_prefix(labels::NVIDIA_MIG)?;
        Some((name, gpus.built_in))
    })
}

/// A node of which another layout has instances of a profile.
#[derive(Clone)]
struct Supplier<'f> {
    node: &'f Node,
    /// That layout of one of its GPUs, and how many of the instances it has.
    layout: String,
    of_each: i64,
    /// What so many instances as the pods lack are of its GPUs, in milli-GPU.
    lacking_milli: i64,
    /// How many pods have GPUs there.
    pods: usize,
}

/// Which nodes can provide what pods lack, and what pods that came before need of them.
#[derive(Default)]
struct Suppliers<'f> {
    names: Option<ProfileNames<'f>>,
    /// The layout with the most instances of a profile, and their number, by the name of the GPUs'
    /// table and the place of the profile.
    layouts: BTreeMap<(String, usize), Option<(String, i64)>>,
    /// Pods with GPUs on each node, once somebody has asked.
    pods_on: Option<BTreeMap<&'f str, usize>>,
    /// How much of each node is taken, in milli-GPU.
    taken_milli: BTreeMap<&'f str, i64>,
}

impl<'f> Suppliers<'f> {
    /// The nodes that together have so many instances of a profile once they are cut for it, those
    /// with the fewest pods in the way first. At least one where any GPU supports the profile.
    fn nodes_for(
        &mut self,
        view: &View<'f>,
        workload: &Workload,
        (profile, lacking): (&str, i64),
    ) -> Vec<Supplier<'f>> {
        let able = self.able(view, workload, (profile, lacking));
        let (mut left, mut nodes) = (lacking, Vec::new());
        for of in &able {
            if left <= 0 {
                break;
            }
            let all_milli = of.node.devices.len().max(1) as i64 * WHOLE_DEVICE_MILLI;
            let taken_milli = self.taken_milli.entry(&of.node.node.name).or_default();
            let room = (all_milli - *taken_milli).max(0) * of.of_each / WHOLE_DEVICE_MILLI;
            let gets = left.min(room);
            if gets > 0 {
                *taken_milli += (gets * WHOLE_DEVICE_MILLI + of.of_each - 1) / of.of_each;
                left -= gets;
                nodes.push(of.clone());
            }
        }
        if nodes.is_empty() {
            nodes.extend(able.into_iter().next());
        }
        nodes
    }

    /// The name under which a node that pods may use offers the profile that they mean by another.
    fn instead(&mut self, view: &View<'f>, workload: &Workload, profile: &str) -> Option<&str> {
        let names: &ProfileNames<'f> = self.names.get_or_insert_with(|| ProfileNames::of(view));
        let nodes = view.facts.nodes.iter();
        let mut nodes = nodes.filter(|node| is_cut(node) && may_use(workload, node));
        nodes.find_map(|node| names.instead(node, profile))
    }

    /// All nodes that can have instances of a profile and that pods may use.
    fn able(
        &mut self,
        view: &View<'f>,
        workload: &Workload,
        (profile, lacking): (&str, i64),
    ) -> Vec<Supplier<'f>> {
        let names = self.names.get_or_insert_with(|| ProfileNames::of(view));
        let pods_on = self.pods_on.get_or_insert_with(|| gpu_pods_by_node(view));
        let facts = view.facts;
        let nodes = facts.nodes.iter().filter(|node| is_cut(node) && may_use(workload, node));
        let able = nodes.filter_map(|node| {
            let (table, place) = names.on(node, profile)?;
            let known = self.layouts.entry((table.name.clone(), place));
            let (layout, of_each) = known.or_insert_with(|| with_most(table, place)).clone()?;
            let lacking_milli = part_milli(table, place, lacking);
            let pods = pods_on.get(&*node.node.name).copied().unwrap_or(0);
            Some(Supplier { node, layout, of_each, lacking_milli, pods })
        });
        let mut able: Vec<Supplier<'f>> = able.collect();
        able.sort_by(|one, other| {
            let [one, other] = [one, other].map(|of| (of.pods, &*of.node.node.name));
            one.cmp(&other)
        });
        able
    }
}

/// What so many instances of a profile that a node offers are of its GPUs, in milli-GPU.
fn milli_of(node: &Node, profile: &str, count: i64) -> i64 {
    let Some(table) = model_of(node).and_then(MigTable::of_model) else { return 0 };
    table.profile(profile).map_or(0, |place| part_milli(&table, place, count))
}

/// What so many instances of the profile at a place of a table are of GPUs, by compute slices, in
/// milli-GPU.
fn part_milli(table: &MigTable, place: usize, count: i64) -> i64 {
    let slices = i64::from(table.profiles[place].compute_slices);
    let milli_slices = count.saturating_mul(WHOLE_DEVICE_MILLI * slices);
    to_nearest(milli_slices, i64::from(table.compute_slices).max(1))
}

/// The layout with the most instances of a profile, in words, and how many of them it has.
fn with_most(table: &MigTable, place: usize) -> Option<(String, i64)> {
    let layouts = table.fullest_layouts().into_iter().filter(|layout| layout[place] > 0);
    let best = layouts.max_by_key(|layout| (layout[place], table.compute_of(layout)))?;
    let of_each = i64::from(best[place]);
    let of_profile = table.profiles.iter().zip(best).filter(|(_, count)| *count > 0);
    let texts = of_profile.map(|(profile, count)| format!("{count} × {}", profile.name));
    Some((texts.collect::<Vec<_>>().join(", "), of_each))
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

/// Whether GPUs of a node are in MIG mode, as far as its resources and labels say.
fn is_cut(node: &Node) -> bool {
    let is_ready = node.node.condition == NodeAvailability::Ready;
    is_ready
        && (node.has_mig_instances() || node.node.labels.contains_key(labels::NVIDIA_MIG_CONFIG))
}

fn may_use(workload: &Workload, node: &Node) -> bool {
    workload.accepts_labels(node) && keeping_away(node).all(|taint| tolerates(workload, taint))
}

/// SHR-11: MIG instances of a profile that no pod has used for long, on nodes in use. Why the rest
/// of a node is free other checks say.
pub(super) fn unused_profiles(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let moment = view.moment.nodes.iter().map(|gpus| (&*gpus.node, gpus));
    let moment: BTreeMap<&str, &NodeGpus> = moment.collect();
    for (resource, of_nodes) in view.free_gpus(NodeAvailability::Ready) {
        let Some(profile) = resource.strip_prefix(labels::NVIDIA_MIG) else { continue };
        for (node, free) in of_nodes {
            if !is_unused_profile(view, node, resource, free) {
                continue;
            }
            let mut finding = Finding::new(check, &node.pool)
                .with("not used", format!("{free} × {profile} on {}", node.node.name))
                .affecting([node_ref(node)]);
            finding.claims = claims_on(node, None, check.reach.states(), view.facts.period);
            let gpus = moment.get(&*node.node.name).copied();
            finding.most_milli = Some(all_of(gpus, node, resource, free));
            finding.needs_waste = true;
            finding.since_ms = node.free_since_ms;
            found.push(finding);
        }
    }
}

/// What all instances of a profile are of a node's GPUs, in milli-GPU: as much as the ledger counts
/// for them, which depends on the layouts of these GPUs.
fn all_of(gpus: Option<&NodeGpus>, node: &Node, resource: &str, count: i64) -> i64 {
    let units = gpus.and_then(|gpus| gpus.units.iter().find(|of| of.resource == resource));
    match units {
        Some(units) => units.parts.milli(0, count),
        None => {
            let profile = resource.strip_prefix(labels::NVIDIA_MIG).unwrap_or(resource);
            milli_of(node, profile, count)
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
