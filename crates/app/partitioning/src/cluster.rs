//! A cluster as a world: GPUs of its nodes, and pods that wait for MIG instances.
//!
//! Device plugins say how many instances a node has, not where they lie, and which pod has which is
//! not in the API. So a node on which pods use GPUs stays as it is unless an exporter shows which
//! GPUs they use, and the layouts of the others are those that their counts allow.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::connection::connection_runtime;
use dovetail_console::plain::plain_sentence;
use dovetail_control::status::WAITING_FOR_QUOTA;
use dovetail_gpus::{
    CountSource, GpuCount, GpuUnits, KnownLayouts, NodeGpus, discovered_gpus, is_of_shares,
    node_gpus_like,
};
use dovetail_model::labels::{NVIDIA_GPU, NVIDIA_MIG, NVIDIA_MIG_CONFIG};
use dovetail_model::{Layout, MigProfile, MigTable, ShownProfiles, lacks_memory_size};
use dovetail_objects::{Pod, Unscheduled};
use dovetail_partition::{Change, Gpu, Instance, layouts_of_counts};
use dovetail_settings::errors::BadInput;
use dovetail_sharing::guard::other_master;
use dovetail_sharing::names::{NO_MIG, TAINT};
use dovetail_sharing::{Component, PolicySpec};
use dovetail_sources::objects::ObjectFlags;
use dovetail_translate::gang::gang_of;

use crate::amd_gpus::has_gpus;
use crate::eligible::{Target, beside_instances, each, fits, holders, is_mig, requirement};
use crate::expected::{ExpectedNode, ExpectedNodes};
use crate::fleet::{Fleet, model_of_node};
use crate::gangs::{GangChoice, WaitingGangs};
use crate::keep_whole::{self, BY_POLICY, FOR_PODS};
use crate::layout::placed;
use crate::objects::{Objects, SeenNode, check, is_pending};
use crate::profile_names::{IdleOn, Profiles, are_idle, idle_on, rename};
use crate::quotas::{PodKey, Quotas, key};
use crate::stays::{IN_USE, is_in_use, stays_without_pods};
use crate::together::{node_of_gpu, set_demand};
use crate::waiting::{SeveralInstances, WaitingPods};
use crate::whole_gpus::requested;

pub use crate::waiting::YOUNG_MS;

/// Why nothing is planned for a pod yet.
const YOUNG: &str = "pending for less than a minute";
const GATED: &str = "has scheduling gates";
const NO_QUOTA: &str = "waits for the quota of its queue";
/// Why nothing is planned for it under a policy, before the profile.
const NOT_LISTED: &str = "the policy does not list the profile";

/// Why a node stays as it is of which not all is there.
const MISSING: &str = "GPUs or instances are missing";
/// Why a node stays as it is whose instances are offered several times each.
const INSTANCE_REPLICAS: &str = "replicas of MIG instances are not planned";

/// Whether nothing is planned for a pod because of the nodes: another layout could serve it.
pub(crate) fn is_for_lack_of_nodes(why: &str) -> bool {
    ![YOUNG, GATED, NO_QUOTA].contains(&why) && !why.starts_with(NOT_LISTED)
}

/// The objects that flags name.
///
/// # Errors
/// Objects that cannot be read.
pub(crate) fn objects(app: &App, flags: &ObjectFlags) -> Result<(Objects, u64)> {
    let mut objects = Objects::default();
    let now_ms = flags.now_ms()?;
    let complete = flags.read_into(app, &mut objects)?;
    if flags.example {
        crate::example::add(&mut objects)?;
    }
    if let Some(cluster) = flags.server() {
        check(&complete)?;
        connection_runtime()?.block_on(objects.add_reservations(app, cluster))?;
    }
    objects.tell_skipped(app);
    if let Some(first) = objects.skipped.first()
        && objects.nodes.is_empty()
        && flags.server().is_none()
    {
        let told = format!(
            "no node could be read: {first}: create the file with `kubectl get nodes,pods -A -o \
             json`"
        );
        return Err(BadInput(plain_sentence(&told)).into());
    }
    Ok((objects, now_ms))
}

/// Whether a policy names nodes and none of them has GPUs.
pub(crate) fn selects_none(objects: &Objects, policy: &PolicySpec) -> bool {
    let is_selected =
        |seen: &SeenNode| policy.selects(|key| seen.node.meta.labels.get(key)) && has_gpus(seen);
    !policy.node_selector.is_empty() && !objects.nodes.values().any(is_selected)
}

/// The present, and how long a pod must have been pending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Age {
    pub(crate) now_ms: u64,
    pub(crate) young_ms: u64,
}

pub(crate) fn fleet(
    objects: &Objects,
    policy: &PolicySpec,
    tables: &[MigTable],
    age: Age,
) -> Fleet {
    fleet_beside(objects, policy, tables, age, (&ExpectedNodes::new(), &GangChoice::default()))
}

/// The same as if some nodes had the layout that they are about to get, with the demand of some
/// gangs. These nodes do not change, and what they will have free serves pods.
pub(crate) fn fleet_beside(
    objects: &Objects,
    policy: &PolicySpec,
    tables: &[MigTable],
    age: Age,
    (expected, choice): (&ExpectedNodes, &GangChoice),
) -> Fleet {
    let (holders, fleet) = (holders(objects), Fleet::default());
    let shown = ShownProfiles::default();
    let known = KnownCounts::default();
    let quotas = Quotas::of(objects);
    let reader = Reader {
        objects,
        holders,
        quotas,
        policy,
        tables,
        expected,
        choice,
        fleet,
        shown,
        age,
        known,
    };
    reader.read()
}

/// Whether a pending pod would start if there was room: no layout helps one whose queue may not
/// hold more.
pub(crate) fn needs_room(pod: &Pod) -> bool {
    let waits_for_quota = |said: &Unscheduled| *said.reason == *WAITING_FOR_QUOTA;
    is_pending(pod) && !pod.unscheduled.as_deref().is_some_and(waits_for_quota)
}

struct Reader<'o> {
    objects: &'o Objects,
    /// Pods that hold something, by node.
    holders: BTreeMap<&'o str, Vec<&'o Pod>>,
    quotas: Quotas<'o>,
    policy: &'o PolicySpec,
    tables: &'o [MigTable],
    expected: &'o ExpectedNodes,
    choice: &'o GangChoice,
    fleet: Fleet,
    shown: ShownProfiles,
    age: Age,
    known: KnownCounts,
}

/// The layouts of nodes that are read: most nodes are like others.
#[derive(Default)]
struct KnownCounts {
    of_units: KnownLayouts,
    /// By the place of the table, how many instances of each profile there are, and on how many
    /// GPUs.
    of_gpus: BTreeMap<(usize, Layout, usize), Option<Vec<Layout>>>,
}

impl KnownCounts {
    /// The same as [`layouts_of_counts`] with the table at this place; none of no GPUs.
    fn layouts(
        &mut self,
        (place, table): (usize, &MigTable),
        counts: Layout,
        gpus: usize,
    ) -> Option<Vec<Layout>> {
        if gpus == 0 {
            return Some(Vec::new());
        }
        let of = self.of_gpus.entry((place, counts, gpus));
        of.or_insert_with_key(|(_, counts, _)| layouts_of_counts(table, counts, gpus)).clone()
    }
}

/// Why it is not clear how many GPUs a node has that offers so many whole ones, if it is not.
fn contradiction(seen: &SeenNode, whole: i64, count: &GpuCount) -> Option<String> {
    if whole > count.gpus {
        return Some("instances are advertised as whole GPUs (MIG strategy `single`)".to_owned());
    }
    if (1..count.gpus).contains(&discovered_gpus(&seen.node.meta.labels)) {
        let why = match count.by {
            CountSource::Provider(_) | CountSource::InstanceType(_) => {
                "its label nvidia.com/gpu.count states fewer GPUs than the machine has"
            }
            _ => "its instances need more GPUs than its label nvidia.com/gpu.count states",
        };
        return Some(why.to_owned());
    }
    count.too_few_for_instances().map(too_many_instances)
}

/// Why nothing is planned for a node with more instances than the GPUs have that somebody counts.
fn too_many_instances(by: &CountSource) -> String {
    format!("its instances need more GPUs than it has according to {by}; {INSTANCE_REPLICAS}")
}

impl<'o> Reader<'o> {
    fn read(mut self) -> Fleet {
        self.fleet.world.tables = self.tables.to_vec();
        self.fleet.change_s = self.objects.change_seconds(Component::MigManager);
        let mut targets = Vec::new();
        let (objects, expected) = (self.objects, self.expected);
        for (name, seen) in &objects.nodes {
            let first = self.fleet.world.gpus.len();
            self.node(name, seen);
            if self.fleet.world.gpus.len() > first {
                let held = self.held_on(name);
                targets.push(match expected.get(name).map(|node| node.staying(held)) {
                    Some(pods) => Target::of(seen, name, objects, &pods).without_taint(TAINT),
                    None => Target::of(seen, name, objects, held),
                });
            }
        }
        rename(&self.shown, &mut self.fleet);
        let shown = std::mem::take(&mut self.shown);
        let profiles = Profiles::of(&self.fleet, self.tables, shown);
        self.fleet.created = profiles.listed(&self.fleet, &self.policy.profiles);
        self.demand(&targets, &profiles);
        self.keep_whole(&targets);
        self.fleet
    }

    fn leave(&mut self, node: &str, why: &str, gpus: i64) {
        self.fleet.leave(node, why, usize::try_from(gpus).unwrap_or(0));
    }

    fn node(&mut self, name: &str, seen: &SeenNode) {
        let known = &self.known.of_units;
        let Some(gpus) = node_gpus_like(&seen.node, seen.hami(), known) else { return };
        self.fleet.gpus += usize::try_from(gpus.count.gpus).unwrap_or(0);
        let Some((model, table)) = model_of_node(self.tables, seen) else {
            return self.leave(name, why_no_table(&gpus), gpus.count.gpus);
        };
        let is_cut = |units: &&GpuUnits| is_mig(&units.resource);
        for units in gpus.units.iter().filter(is_cut) {
            let profile = &units.resource[NVIDIA_MIG.len()..];
            self.shown.see((name, &model), profile, units.built_in);
        }
        if let Some(node) = self.expected.get(name) {
            let why = self.stays(name, seen);
            let why = why.unwrap_or_else(|| "the node changes under another policy".to_owned());
            self.leave(name, &why, gpus.count.gpus);
            return self.expected_gpus(name, (&model, table), node);
        }
        if gpus.has_shared_units() {
            return self.leave(name, &why_shared(seen, &gpus), gpus.count.gpus);
        }
        let whole: i64 =
            gpus.units.iter().filter(|units| !is_cut(units)).map(|units| units.built_in).sum();
        // GPUs that nobody offers are lost, or in MIG mode without instances.
        let config = seen.node.meta.labels.get(NVIDIA_MIG_CONFIG);
        let lost = if config.is_some_and(|config| config != NO_MIG) { 0 } else { gpus.missing };
        let cut = (gpus.count.gpus - whole - lost).max(0);
        if let Some(why) = contradiction(seen, whole, &gpus.count) {
            return self.leave(name, &why, gpus.count.gpus);
        }
        let table_place = self.place_of(table);
        let mut counts = vec![0u16; table.profiles.len()];
        let mut used = vec![0i64; table.profiles.len()];
        // The node no longer offers these replicas; the kubelet keeps their resource at 0.
        for units in gpus.units.iter().filter(|of| is_cut(of) && !is_of_shares(&of.resource)) {
            let profile = &units.resource[NVIDIA_MIG.len()..];
            let Some(place) = table.profile(profile) else {
                let why = format!("the MIG table of the model has no profile `{profile}`");
                return self.leave(name, &why, gpus.count.gpus);
            };
            counts[place] += u16::try_from(units.usable).unwrap_or(0);
            used[place] += self.used(name, &units.resource);
        }
        let is_broken = lost > 0 || gpus.units.iter().any(|units| units.usable < units.built_in);
        let broken = is_broken.then(|| MISSING.to_owned());
        let may_change = self.may_change(name, seen, broken, gpus.count.gpus);
        if !may_change && self.add_used_gpus(name, &model, table_place) {
            return;
        }
        let Some(layouts) = self.known.layouts((table_place, table), counts, cut as usize) else {
            let why = "according to the model's MIG table, its instances do not fit on its GPUs";
            return self.leave(name, why, cut);
        };
        for layout in layouts {
            let Some(instances) = placed(table, &layout) else { continue };
            let (held, idle) = held_and_idle(instances, &mut used);
            let change = if may_change { Change::WhenEmpty } else { Change::Never };
            let gpu = Gpu { table: table_place, pool: 0, is_whole: false, held, idle, change };
            self.gpu(name, &model, gpu);
        }
        let may_cut = may_change && self.policy.allow_mode_change;
        if may_change && whole > 0 && !may_cut {
            self.leave(name, "whole GPUs: the policy does not set allowModeChange", whole);
        }
        for _ in 0..whole {
            self.gpu(name, &model, whole_gpu(table_place, may_cut));
        }
    }

    /// The place of one of the known tables.
    fn place_of(&self, table: &MigTable) -> usize {
        let place = self.tables.iter().position(|known| known.name == table.name);
        place.expect("it is one of them")
    }

    /// Adds the GPUs of a node as they will be.
    fn expected_gpus(
        &mut self,
        name: &str,
        (model, table): (&str, &MigTable),
        node: &ExpectedNode,
    ) {
        let table_place = self.place_of(table);
        let mut used = vec![0i64; table.profiles.len()];
        for pod in node.staying(self.held_on(name)) {
            for (resource, count) in &pod.holds().extended {
                let profile = resource.strip_prefix(NVIDIA_MIG);
                if let Some(place) = profile.and_then(|profile| table.profile(profile)) {
                    used[place] += count;
                }
            }
        }
        for layout in &node.layout.0 {
            let Some(layout) = layout else {
                self.gpu(name, model, whole_gpu(table_place, false));
                continue;
            };
            let Some(instances) = placed_by_name(table, layout) else { continue };
            let (held, idle) = held_and_idle(instances, &mut used);
            let change = Change::Never;
            let gpu = Gpu { table: table_place, pool: 0, is_whole: false, held, idle, change };
            self.gpu(name, model, gpu);
        }
    }

    /// Whether a node may change; if not, that is noted with the reason. `broken`: one of its own.
    fn may_change(
        &mut self,
        name: &str,
        seen: &SeenNode,
        broken: Option<String>,
        gpus: i64,
    ) -> bool {
        let stays = self.stays(name, seen).or(broken);
        let is_in_use = is_in_use(self.held_on(name));
        if stays.is_none() && is_in_use {
            self.fleet.in_use.insert(name.to_owned());
        }
        let known = self.objects.gpu_use.get(name);
        if stays.is_none() && matches!(known, Some(Ok(_))) {
            return false;
        }
        let stays = stays.or_else(|| {
            is_in_use.then(|| match known {
                Some(Err(why)) => {
                    format!("pods use GPUs of the node, and DCGM does not show which: {why}")
                }
                _ => IN_USE.to_owned(),
            })
        });
        if let Some(why) = &stays {
            self.leave(name, why, gpus);
        }
        stays.is_none()
    }

    /// Adds the GPUs of a node on which pods use some of them, if it could change otherwise and it
    /// is known which; those that no pod uses may change.
    fn add_used_gpus(&mut self, name: &str, model: &str, table_place: usize) -> bool {
        let Some(Ok(uses)) = self.objects.gpu_use.get(name) else { return false };
        if !self.fleet.in_use.contains(name) {
            return false;
        }
        let table = &self.tables[table_place];
        let placed = |layout: &BTreeMap<String, u32>| placed_by_name(table, layout);
        let instances: Option<Vec<Option<Vec<Instance>>>> = uses
            .iter()
            .map(|one| one.layout.as_ref().map_or(Some(None), |layout| placed(layout).map(Some)))
            .collect();
        let Some(instances) = instances else { return false };
        for (one, instances) in uses.iter().zip(instances) {
            let Some(instances) = instances else {
                self.leave(name, "whole GPUs of a node on which pods use GPUs", 1);
                self.gpu(name, model, whole_gpu(table_place, false));
                continue;
            };
            let mut used = one.held.clone();
            let (held, idle) = instances.into_iter().partition(|instance: &Instance| {
                let left = used.get_mut(&table.profiles[instance.profile].name);
                left.is_some_and(|left| {
                    let is_used = *left > 0;
                    *left = left.saturating_sub(1);
                    is_used
                })
            });
            let change = match one.pods.is_empty() {
                true => Change::WhenEmpty,
                false => {
                    self.leave(name, "pods use the GPU", 1);
                    Change::Never
                }
            };
            let gpu = Gpu { table: table_place, pool: 0, is_whole: false, held, idle, change };
            self.gpu(name, model, gpu);
        }
        true
    }

    fn gpu(&mut self, node: &str, model: &str, gpu: Gpu) {
        let number = self.fleet.names.iter().rev().take_while(|(name, _)| name == node).count();
        self.fleet.names.push((node.to_owned(), number));
        self.fleet.models.push(model.to_owned());
        self.fleet.starts_known.push(false);
        self.fleet.world.gpus.push(gpu);
    }

    fn held_on(&self, node: &str) -> &[&Pod] {
        self.holders.get(node).map_or(&[], Vec::as_slice)
    }

    fn used(&self, node: &str, resource: &str) -> i64 {
        let of = |pod: &&Pod| pod.holds().extended.get(resource).copied().unwrap_or(0);
        self.held_on(node).iter().map(of).sum()
    }

    fn stays(&self, name: &str, seen: &SeenNode) -> Option<String> {
        stays_without_pods(name, seen, self.objects, self.policy, self.age.now_ms)
    }

    fn not_planned(&mut self, why: String) {
        *self.fleet.not_planned.entry(why).or_default() += 1;
    }

    /// Whole GPUs for pending pods, and those that the policy keeps besides. Pods that ask for
    /// instances, too, need them on a node that provides both.
    fn keep_whole(&mut self, targets: &[Target]) {
        let asks =
            |pod: &&Pod| needs_room(pod) && !pod.requests.extended.keys().any(|name| is_mig(name));
        let pods: Vec<&Pod> = self.objects.pods.values().filter(asks).collect();
        let for_pods = keep_whole::for_pods(&self.fleet, self.objects, targets, &pods);
        self.fleet.leave_whole(for_pods, FOR_PODS);
        let kept = self.policy.keep_whole;
        let by_policy = keep_whole::of_each_product(&self.fleet, self.objects, &self.holders, kept);
        self.fleet.leave_whole(by_policy, BY_POLICY);
        let asked = requested(self.objects, pods.into_iter());
        let asked = u32::try_from(asked).unwrap_or(u32::MAX);
        self.fleet.keep_whole = kept.saturating_add(asked);
    }

    /// Pending pods by profile, priority, the nodes they may go to, and what they need there.
    fn demand(&mut self, targets: &[Target], profiles: &Profiles<'_>) {
        let mut grouped: BTreeMap<WaitingPods, u32> = BTreeMap::new();
        let objects = self.objects;
        let idle = idle_on(&self.fleet, &node_of_gpu(&self.fleet));
        let pending = || objects.pods.values().filter(|pod| is_pending(pod));
        let beside = beside_instances(pending());
        self.fleet.free = targets.iter().map(|target| target.free(&beside)).collect();
        let mut gangs = WaitingGangs::of(objects, self.choice);
        self.fleet.gangs = std::mem::take(&mut gangs.gangs);
        let places = (targets, &beside, &idle);
        let beyond = self.beyond_quotas(&gangs, profiles, places);
        self.fleet.is_short_of_quota = !beyond.is_empty();
        let mut whole = vec![0; targets.len()];
        for pod in pending() {
            let Some(asked) = self.asked(pod, profiles) else { continue };
            let name = gang_of(pod).ok().flatten();
            let gang = name.as_ref().and_then(|name| gangs.place(name));
            let is_beyond = beyond.contains(&key(pod));
            // A gang that waits for quota asks for no instance.
            if let Some(gang) = gang.filter(|_| !is_beyond) {
                self.fleet.gangs[gang].add(asked.as_ref().ok());
            }
            let wanted = asked.and_then(|instances| self.wanted(pod, instances, places));
            let wanted = wanted.and_then(|wanted| profiles.on_nodes(&self.fleet, wanted));
            let why_left_out = name.as_ref().and_then(|name| gangs.why_left_out(name));
            let waiting_ms = self.age.now_ms.saturating_sub(pod.meta.created_ms);
            let is_due = waiting_ms >= self.age.young_ms;
            let why_not = match why_left_out {
                Some(why) => Some(if is_due { why } else { YOUNG }),
                None => is_beyond.then_some(NO_QUOTA),
            };
            let wanted = wanted.and_then(|wanted| match why_not {
                Some(why) => Err(why.to_owned()),
                None => Ok(wanted),
            });
            let wanted = match wanted {
                Ok(wanted) => SeveralInstances { gang, ..wanted },
                Err(why) => {
                    self.not_planned(why);
                    continue;
                }
            };
            let of_pod = pod.requests.extended.get(NVIDIA_GPU).copied().unwrap_or(0).max(0);
            for (whole, _) in whole.iter_mut().zip(&wanted.nodes).filter(|(_, may)| **may) {
                *whole = i64::saturating_add(*whole, of_pod);
            }
            if !is_due {
                self.not_planned(YOUNG.to_owned());
            }
            match wanted.only_instance() {
                Some(profile) => {
                    let is_first = name.is_some_and(|name| self.choice.first.contains(&name));
                    *grouped.entry(wanted.pods(profile, is_due, is_first)).or_default() += 1;
                }
                None if is_due => self.fleet.several.push(wanted),
                None => {}
            }
        }
        self.fleet.waiting = grouped.into_iter().collect();
        self.keep_beside(whole);
        set_demand(&mut self.fleet);
    }

    /// Pods that could be planned for if the quotas of their queues let them start beside those
    /// before them. `gangs`: those that have not started and are not left out.
    fn beyond_quotas(
        &self,
        gangs: &WaitingGangs,
        profiles: &Profiles<'_>,
        places: (&[Target], &BTreeSet<&str>, &IdleOn),
    ) -> BTreeSet<PodKey<'o>> {
        let objects = self.objects;
        let mut pods: Vec<(&'o Pod, Option<usize>)> = Vec::new();
        let mut together = vec![0; self.fleet.gangs.len()];
        for pod in objects.pods.values().filter(|pod| is_pending(pod) && self.quotas.limit(pod)) {
            let Some(Ok(asked)) = self.asked(pod, profiles) else { continue };
            let name = gang_of(pod).ok().flatten();
            let is_left_out = name.as_ref().is_some_and(|name| gangs.why_left_out(name).is_some());
            let wanted = self.wanted(pod, asked, places);
            let wanted = wanted.and_then(|wanted| profiles.on_nodes(&self.fleet, wanted));
            if wanted.is_err() || is_left_out {
                continue;
            }
            // Those of a gang that it can start without are as single pods.
            let is_needed = |gang: &usize| {
                together[*gang] += 1;
                self.fleet.gangs[*gang].fewest.is_none_or(|fewest| together[*gang] <= fewest)
            };
            pods.push((pod, name.and_then(|name| gangs.place(&name)).filter(is_needed)));
        }
        self.quotas.beyond(&pods)
    }

    /// What a pod that asks for these instances needs, and where it may go; or why nothing is
    /// planned for it.
    fn wanted(
        &self,
        pod: &Pod,
        instances: BTreeMap<String, u32>,
        (targets, beside, idle): (&[Target], &BTreeSet<&str>, &IdleOn),
    ) -> Result<SeveralInstances, String> {
        let needs = requirement(pod, self.objects)?;
        let each = each(pod, &needs, beside);
        let may_go =
            |(target, free): (&Target, &Vec<i64>)| target.takes(&needs) && fits(&each, free);
        let nodes: Vec<bool> = targets.iter().zip(&self.fleet.free).map(may_go).collect();
        if !nodes.contains(&true) {
            return Err("the pod fits on no node with GPUs of this model (taints, node selector, \
                        affinity, or free CPU, memory, disk or other resources)"
                .to_owned());
        }
        let is_idle = |node: usize, profile: &str, count: u32| {
            nodes[node] && are_idle(idle, node, profile, count)
        };
        let mut priority = pod.priority;
        let mut not_listed =
            instances.keys().filter(|profile| !self.fleet.may_create(profile)).peekable();
        if not_listed.peek().is_some() {
            let is_nowhere = |profile: &&String| {
                !(0..nodes.len()).any(|node| is_idle(node, profile.as_str(), 1))
            };
            if let Some(none) = not_listed.find(is_nowhere) {
                return Err(not_listed_words(none));
            }
            let has_all = |node: usize| {
                instances.iter().all(|(profile, count)| is_idle(node, profile.as_str(), *count))
            };
            // It starts without a change, and no later one would give it another instance.
            if (0..nodes.len()).any(has_all) {
                priority = i32::MAX;
            }
        }
        Ok(SeveralInstances { nodes, instances, priority, each, gang: None })
    }

    /// Whole GPUs for which pods wait that request instances of the same node, too: so many of each
    /// node stay whole.
    fn keep_beside(&mut self, mut whole: Vec<i64>) {
        let nodes = node_of_gpu(&self.fleet);
        for (number, node) in nodes.into_iter().enumerate() {
            let gpu = &mut self.fleet.world.gpus[number];
            if !gpu.is_whole || whole[node] == 0 {
                continue;
            }
            whole[node] -= 1;
            if gpu.change != Change::Never {
                gpu.change = Change::Never;
                let name = self.fleet.names[number].0.clone();
                self.leave(&name, "pending pods request whole GPUs and MIG instances", 1);
            }
        }
    }

    /// How many instances of which profiles a pod asks for, or why nothing is planned for it;
    /// `None` if it asks for none.
    fn asked(
        &self,
        pod: &Pod,
        profiles: &Profiles<'_>,
    ) -> Option<Result<BTreeMap<String, u32>, String>> {
        let asked = pod.requests.extended.iter();
        let asked = asked.filter(|(name, count)| is_mig(name) && **count > 0);
        let asked: Vec<(&str, i64)> = asked.map(|(name, count)| (&**name, *count)).collect();
        if asked.is_empty() {
            return None;
        }
        if pod.gated {
            return Some(Err(GATED.to_owned()));
        }
        if !needs_room(pod) {
            return Some(Err(NO_QUOTA.to_owned()));
        }
        Some(instances(&asked, &self.fleet, profiles))
    }
}

/// Instances that resources stand for, by profile as the cluster's GPUs offer it.
fn instances(
    asked: &[(&str, i64)],
    fleet: &Fleet,
    profiles: &Profiles<'_>,
) -> Result<BTreeMap<String, u32>, String> {
    let mut instances: BTreeMap<String, u32> = BTreeMap::new();
    for (resource, count) in asked {
        let name = &resource[NVIDIA_MIG.len()..];
        let profile = profiles.requested(fleet, name)?;
        let known = instances.entry(profile).or_default();
        *known = known.saturating_add(u32::try_from(*count).unwrap_or(u32::MAX));
    }
    Ok(instances)
}

/// Why nothing is planned for a pod that asks for a profile which may not be created, if no
/// instance of it is left for the pod.
pub(crate) fn not_listed_words(profile: &str) -> String {
    format!("{NOT_LISTED} `{profile}`")
}

/// Why it is not known how the GPUs of a node are cut.
fn why_no_table(gpus: &NodeGpus) -> &'static str {
    match gpus.model.as_deref().is_some_and(lacks_memory_size) {
        true => {
            "models of this name differ by their memory size, which no label of the node states"
        }
        false => "no MIG table is known for the model",
    }
}

/// Why nothing is planned for a node whose GPUs, or instances of them, are shared by replicas.
fn why_shared(seen: &SeenNode, gpus: &NodeGpus) -> String {
    let label = |key: &str| seen.node.meta.labels.get(key);
    let other = other_master(&seen.annotations, label, None);
    let mut shared = gpus.units.iter().filter(|units| units.shares_devices());
    let is_of_instances = shared.any(|units| is_mig(&units.resource));
    let own = match gpus.count.too_few_for_instances() {
        Some(by) if is_of_instances => too_many_instances(by),
        _ if is_of_instances => INSTANCE_REPLICAS.to_owned(),
        _ => "the GPUs are shared by replicas".to_owned(),
    };
    other.unwrap_or(own)
}

/// Legal places for a layout of a table's profiles by name.
fn placed_by_name(table: &MigTable, layout: &BTreeMap<String, u32>) -> Option<Vec<Instance>> {
    let count = |profile: &MigProfile| layout.get(&profile.name).copied().unwrap_or(0);
    let counts: Vec<u16> = table.profiles.iter().map(|one| count(one) as u16).collect();
    placed(table, &counts)
}

/// Of instances those in use, and the others. `used`: how many of each profile are in use of these
/// and the further ones, and afterwards of the further ones alone.
fn held_and_idle(instances: Vec<Instance>, used: &mut [i64]) -> (Vec<Instance>, Vec<Instance>) {
    instances.into_iter().partition(|instance| {
        let left = &mut used[instance.profile];
        *left -= 1;
        *left >= 0
    })
}

fn whole_gpu(table: usize, may_cut: bool) -> Gpu {
    let change = if may_cut { Change::WhenEmpty } else { Change::Never };
    let (held, idle) = (Vec::new(), Vec::new());
    Gpu { table, pool: 0, is_whole: true, held, idle, change }
}
