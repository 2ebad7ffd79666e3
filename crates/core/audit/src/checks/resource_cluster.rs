//! All nodes and pods for one resource, as a world that the engine is asked about: which pods can
//! move, and what those that stay hold.
//!
//! Pods that belong to their node (of DaemonSets, static ones) never move: they end with it, and
//! hold what they hold of a node that stays. No pod moves to a node where its host ports are taken,
//! or where a unit of the resource is another part of a GPU than on its own node.

mod packed;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_facts::{
    BudgetLimit, Facts, Gpus, Node, ObjectRef, Pod, PodTemplate, Workload, WorkloadClass,
};
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{
    Device, DeviceAmount, DeviceRequest, HeldDevices, Holding, HoldingId, HoldingPhase, Job, JobId,
    NodeAvailability, NodeName, Owner, Requirement, Resources, Snapshot, Toleration, to_nearest,
};
use rustc_hash::FxHashMap;

use super::kept_off::KeptOff;
use crate::finding::Move;
use crate::health::is_forgotten;
use crate::trial::placed;
pub(super) use packed::{Arranged, Packed, arranged_world};

/// A pod with its node and what it needs.
pub(super) struct RunningPod<'f> {
    workload: &'f Workload,
    pod: &'f Pod,
    node: &'f str,
    gpus: i64,
}

impl<'f> RunningPod<'f> {
    /// A pod that waits for a node.
    pub(super) fn waiting(workload: &'f Workload, pod: &'f Pod, gpus: i64) -> Self {
        Self { workload, pod, node: "", gpus }
    }

    /// Its name where it stays, with the reason where other objects have it.
    fn as_staying(&self) -> String {
        let name = self.full_name();
        match self.hidden_reason() {
            Some(reason) => format!("{name} ({reason})"),
            None => name,
        }
    }

    /// Its namespace and name.
    fn full_name(&self) -> String {
        [&*self.workload.owner.namespace, "/", &*self.pod.name].concat()
    }

    /// What other objects say against a move of it.
    fn hidden_reason(&self) -> Option<String> {
        if let Some(reason) = &self.workload.rejected_by {
            return Some(format!("the API server would reject a new pod: {reason}"));
        }
        if self.workload.is_bound_by_name {
            return Some("spec.nodeName in its template names a node".to_owned());
        }
        let budgets = &self.pod.unevictable_by;
        (!budgets.is_empty()).then(|| {
            let names = budgets.join(", ");
            format!("several PodDisruptionBudgets select it, which blocks its eviction: {names}")
        })
    }
}

/// A node that can go, with its pods on other nodes.
pub(super) struct Removal {
    /// How many of its GPUs are requested.
    pub(super) requested: String,
    pub(super) moves: Vec<Move>,
    /// What its pods then use of GPUs that are free elsewhere, in milli-GPU.
    pub(super) fills_milli: i64,
}

/// Pods with nodes, without those that belong to their node.
fn standing<'f>(facts: &'f Facts, resource: &str) -> Vec<RunningPod<'f>> {
    let workloads = facts.workloads.iter().filter(|workload| !workload.belongs_to_nodes());
    let pods = workloads.flat_map(|workload| {
        let gpus = workload.gpus_per_pod().get(resource).copied().unwrap_or(0);
        workload.pods.iter().filter_map(move |pod| {
            Some(RunningPod { workload, pod, node: pod.node.as_deref()?, gpus })
        })
    });
    pods.collect()
}

/// All nodes and pods, for one resource.
pub(super) struct ResourceCluster<'f> {
    facts: &'f Facts,
    resource: &'f str,
    standing: Vec<RunningPod<'f>>,
    /// Places of nodes by their names.
    place_of: FxHashMap<&'f str, usize>,
    hosts: &'f Hosts,
    /// What disruption budgets allow, by whom they protect.
    limits: BTreeMap<&'f ObjectRef, Vec<BudgetLimit>>,
    /// Names of units by what part of a GPU they are.
    units_of_part: BTreeMap<Option<&'f str>, BTreeSet<String>>,
}

/// The place of the node of each pod, by workload; `None` where it has none that is known. Names
/// are looked up once for all resources.
pub(super) struct PodPlaces(Vec<Vec<Option<usize>>>);

impl PodPlaces {
    pub(super) fn of(facts: &Facts) -> Self {
        let place_of = places_by_name(facts);
        let place = |pod: &Pod| place_of.get(pod.node.as_deref()?).copied();
        let of_workload = |workload: &Workload| -> Vec<Option<usize>> {
            workload.pods.iter().map(place).collect()
        };
        Self(facts.workloads.iter().map(of_workload).collect())
    }
}

/// Which pods are on which nodes, all by their places, and what they use of one resource.
pub(super) struct Hosts {
    /// Places of the nodes of standing pods, in their order; `None` for nodes that nobody knows.
    places: Vec<Option<usize>>,
    /// What runs on each node, by its place.
    nodes: Vec<Host>,
}

/// What runs on a node.
#[derive(Default)]
struct Host {
    /// Pods that do not belong to the node, as places among those that stand.
    pods: Vec<usize>,
    /// How many units of the resource all pods use.
    used: i64,
    /// Whether pods use GPUs of any kind.
    is_busy: bool,
    /// What pods use that belong to the node.
    staying: Option<Staying>,
}

impl Hosts {
    /// `places` are those of the same facts.
    pub(super) fn of(facts: &Facts, resource: &str, places: &PodPlaces) -> Self {
        let mut nodes: Vec<Host> = facts.nodes.iter().map(|_| Host::default()).collect();
        let mut standing: Vec<Option<usize>> = Vec::new();
        for (workload, places) in facts.workloads.iter().zip(&places.0) {
            let gpus = workload.gpus_per_pod().get(resource).copied().unwrap_or(0);
            let own = workload.belongs_to_nodes().then(|| Staying::of(workload, resource, gpus));
            let has_gpus = workload.has_gpus();
            for (pod, place) in workload.pods.iter().zip(places) {
                let host = place.map(|place| &mut nodes[place]);
                let is_standing = own.is_none() && pod.node.is_some();
                if let Some(host) = host {
                    host.is_busy |= has_gpus;
                    host.used += gpus.max(0);
                    host.pods.extend(is_standing.then_some(standing.len()));
                    if let Some(own) = &own {
                        host.staying.get_or_insert_default().add(own);
                    }
                }
                standing.extend(is_standing.then_some(*place));
            }
        }
        Self { places: standing, nodes }
    }
}

/// Whether a pod that moves leaves files behind that it may need. What is in an emptyDir volume is
/// gone, and only work with GPUs that is no server keeps anything there that somebody misses.
fn leaves_files(of: &RunningPod<'_>, loses_work: bool) -> bool {
    let is_server = of.workload.class == Some(WorkloadClass::Inference);
    let is_missed = loses_work || of.gpus > 0 && !is_server;
    let template = &of.workload.template;
    template.has_host_path || template.has_local_data && is_missed
}

fn places_by_name(facts: &Facts) -> FxHashMap<&str, usize> {
    let nodes = facts.nodes.iter().enumerate();
    nodes.map(|(place, node)| (&*node.node.name, place)).collect()
}

impl<'f> ResourceCluster<'f> {
    /// `hosts` are those of the same facts and resource.
    pub(super) fn of(facts: &'f Facts, resource: &'f str, hosts: &'f Hosts) -> Self {
        let (standing, place_of) = (standing(facts, resource), places_by_name(facts));
        let mut limits: BTreeMap<&ObjectRef, Vec<BudgetLimit>> = BTreeMap::new();
        for budget in &facts.budgets {
            limits.entry(&budget.protects).or_default().push(budget.limit);
        }
        let mut units_of_part: BTreeMap<Option<&str>, BTreeSet<String>> = BTreeMap::new();
        for gpus in facts.nodes.iter().filter_map(|node| node.gpus.get(resource)) {
            units_of_part.entry(gpus.part.as_deref()).or_default().insert(unit(gpus).into_owned());
        }
        Self { facts, resource, standing, place_of, hosts, limits, units_of_part }
    }

    /// How many pods stand somewhere: their places are below that.
    pub(super) fn pod_count(&self) -> usize {
        self.standing.len()
    }

    fn node(&self, name: &str) -> Option<&'f Node> {
        Some(&self.facts.nodes[*self.place_of.get(name)?])
    }

    fn host(&self, node: &str) -> Option<&'f Host> {
        Some(&self.hosts.nodes[*self.place_of.get(node)?])
    }

    /// Whether a pod starts again elsewhere without loss, as far as anybody can see. What devices a
    /// claim gets there is no part of the world that the engine is asked about.
    fn can_move(&self, of: &RunningPod<'_>) -> bool {
        let template = &of.workload.template;
        template.claimed_gpus.is_empty()
            && template.resource_claims.is_empty()
            && self.can_move_beside_claims(of)
    }

    /// The same for all but the devices of claims. What other pods decide about is no part of the
    /// world, either.
    fn can_move_beside_claims(&self, of: &RunningPod<'_>) -> bool {
        let template = &of.workload.template;
        let limits = self.limits.get(&of.workload.owner);
        let is_held = |limit: &BudgetLimit| limit.lets_nothing_go(of.workload.replicas);
        let loses_work =
            matches!(of.workload.class, Some(WorkloadClass::Training | WorkloadClass::Batch));
        of.workload.owner.kind != "Pod"
            && template.eviction_held_by.is_empty()
            && !template.depends_on_pods
            && !limits.is_some_and(|limits| limits.iter().any(is_held))
            && template.shares_gpus_by.is_none()
            && !leaves_files(of, loses_work)
            && !template.has_lasting_volume
            && of.workload.rejected_by.is_none()
            && !of.workload.is_bound_by_name
            && of.pod.unevictable_by.is_empty()
            && (!loses_work || template.saves_progress)
            && !of.pod.is_starting
            && of.pod.should_be_gone_ms.is_none()
    }

    /// Places of the pods on a node.
    pub(super) fn pods_of(&self, node: &str) -> impl Iterator<Item = usize> + use<'_, 'f> {
        self.host(node).into_iter().flat_map(|host| &host.pods).copied()
    }

    pub(super) fn offered(&self, node: &Node) -> i64 {
        node.gpus.get(self.resource).map_or(0, |gpus| gpus.allocatable)
    }

    /// So many units of a node in milli-GPU: a plugin may make several of each GPU.
    fn milli(&self, node: &Node, units: i64) -> i64 {
        let all = node.gpus.get(self.resource).map_or(1, |gpus| gpus.built_in).max(1);
        to_nearest(node.devices.len() as i64 * WHOLE_DEVICE_MILLI * units, all)
    }

    /// Whether a unit of each is as much of a GPU.
    fn is_cut_alike(&self, one: &Node, other: &Node) -> bool {
        let units = |node: &Node| node.gpus.get(self.resource).map_or(0, |gpus| gpus.built_in);
        let gpus = |node: &Node| node.devices.len() as i64;
        gpus(one) * units(other) == gpus(other) * units(one)
    }

    fn is_by_claims(&self, node: &Node) -> bool {
        node.gpus.get(self.resource).is_some_and(|gpus| gpus.by_claims)
    }

    pub(super) fn used_of(&self, node: &str) -> i64 {
        self.host(node).map_or(0, |host| host.used)
    }

    /// The units that a pod can have instead of those of its node: of the same model, or of any
    /// where no label names it, and always the same part of a GPU. None are all.
    fn units_like(&self, node: &'f Node) -> BTreeSet<String> {
        let Some(gpus) = node.gpus.get(self.resource) else { return BTreeSet::new() };
        let is_named = gpus.model.as_deref().is_some_and(|model| !model.is_empty());
        match self.units_of_part.get(&gpus.part.as_deref()) {
            _ if is_named => BTreeSet::from([unit(gpus).into_owned()]),
            Some(alike) if self.units_of_part.len() > 1 => alike.clone(),
            _ => BTreeSet::new(),
        }
    }

    /// Nodes with GPUs that no pod uses: they go before others (AUT-03), and take no pods of those.
    fn unused(&self) -> impl Iterator<Item = &'f str> {
        let has_gpus = |node: &Node| node.gpus.values().any(|gpus| gpus.allocatable > 0);
        let nodes = self.facts.nodes.iter().zip(&self.hosts.nodes);
        let unused = nodes.filter(move |(node, host)| has_gpus(node) && !host.is_busy);
        unused.map(|(node, _)| &*node.node.name)
    }

    /// Nodes that may go once their pods have other nodes, in the order in which they were read.
    pub(super) fn sources(&self) -> Vec<&'f Node> {
        let is_source = |node: &&'f Node| {
            let may_go = may_be_emptied(self, node) && !self.is_by_claims(node);
            may_go && self.all_can_move(node, self.used_of(&node.node.name))
        };
        self.facts.nodes.iter().filter(is_source).collect()
    }

    /// Whether all pods of a node can move that use so many of its GPUs.
    fn all_can_move(&self, node: &Node, used: i64) -> bool {
        let pods = self.pods_of(&node.node.name).map(|place| &self.standing[place]);
        let mut gpus = 0;
        for of in pods {
            if !self.can_move(of) {
                return false;
            }
            gpus += of.gpus;
        }
        gpus == used
    }

    /// A pod as a job of its own, at a place in the order of jobs.
    pub(super) fn job(&self, place: usize, order: u64) -> Job {
        let of = &self.standing[place];
        let requirement = Arc::new(self.requirement(of));
        Job::single(JobId(place as u64), &of.pod.name, order, requirement)
    }

    /// A node that goes, with the nodes that its pods go to.
    pub(super) fn removal(&self, node: &Node, to: &BTreeMap<usize, String>) -> (String, Removal) {
        let name = &*node.node.name;
        let (used, offered) = (self.used_of(name), self.offered(node));
        let requested = format!("{used} of {offered} {} on {name}", self.resource);
        let mut removal = Removal { requested, moves: Vec::new(), fills_milli: 0 };
        // Units of nodes that are cut alike are counted together, so that none is rounded alone.
        let mut alike = 0;
        for (place, of) in self.pods_of(name).map(|place| (place, &self.standing[place])) {
            let Some(to) = to.get(&place) else { continue };
            match self.node(to) {
                Some(target) if self.is_cut_alike(node, target) => alike += of.gpus,
                Some(target) => removal.fills_milli += self.milli(target, of.gpus),
                None => {}
            }
            let pod = ObjectRef::new("Pod", &of.workload.owner.namespace, &of.pod.name);
            let from = name.to_owned();
            removal.moves.push(Move { pod, from, to: to.clone() });
        }
        removal.fills_milli += self.milli(node, offered) - self.milli(node, offered - alike);
        (name.to_owned(), removal)
    }

    /// All pods on their nodes, but for those of nodes that are gone, and of nodes that no pod with
    /// GPUs uses: these go as well.
    pub(super) fn world_without_unused(&self, gone: &BTreeSet<&str>) -> Snapshot {
        let gone: BTreeSet<&str> = self.unused().chain(gone.iter().copied()).collect();
        let (world, next) = self.world_of(&gone, true, &BTreeMap::new());
        self.with_staying(world, &next)
    }

    /// What a pod holds on a node with these devices.
    pub(super) fn holding(&self, place: usize, node: NodeName, devices: HeldDevices) -> Holding {
        Holding { devices, ..self.held_by(place, node, (0, 0)) }
    }

    /// What a pod holds on a node, with so many whole devices from the first.
    fn held_by(&self, place: usize, node: NodeName, devices: (u16, u16)) -> Holding {
        let of = &self.standing[place];
        let template = &of.workload.template;
        let id = HoldingId(place as u64 + 1);
        let holds = resources(template, self.resource);
        let holding = held((id, node, of.full_name()), holds, devices);
        Holding { counts_into: template.host_ports.taken.iter().cloned().collect(), ..holding }
    }

    /// The nodes that the engine gives to the pods of nodes that are gone.
    fn asked(&self, gone: &[&str]) -> BTreeMap<usize, String> {
        let placed = placed(&self.world(&gone.iter().copied().collect()));
        placed.into_iter().map(|(job, node)| (job.0 as usize, node)).collect()
    }

    /// All pods on their nodes, but for those of nodes that are gone: these are pending, with their
    /// places as numbers, unless they belong to their node.
    pub(super) fn world(&self, gone: &BTreeSet<&str>) -> Snapshot {
        let (world, next) = self.world_that_moves(gone);
        self.with_staying(world, &next)
    }

    fn with_staying(&self, mut world: Snapshot, next: &[u16]) -> Snapshot {
        let first_id = self.standing.len() + 1;
        let nodes = world.nodes.iter().zip(next).enumerate();
        let holdings = nodes.filter_map(|(place, (node, first))| {
            let staying = self.host(&node.name)?.staying.as_ref()?;
            let owner = format!("pods of node {}", node.name);
            let id = HoldingId((first_id + place) as u64);
            Some(staying.held_on(node, (id, owner), *first).0)
        });
        let holdings: Vec<Holding> = holdings.collect();
        world.holdings.extend(holdings);
        world
    }

    /// The same without pods that belong to their node; for each of its nodes in their order how
    /// many GPUs are held.
    pub(super) fn world_that_moves(&self, gone: &BTreeSet<&str>) -> (Snapshot, Vec<u16>) {
        self.world_of(gone, !gone.is_empty(), &BTreeMap::new())
    }

    /// The same; where pods move, nodes of which nobody knows what is free take none. Pods that
    /// have moved, by their names, are on these nodes.
    fn world_of(
        &self,
        gone: &BTreeSet<&str>,
        moves: bool,
        moved: &BTreeMap<String, String>,
    ) -> (Snapshot, Vec<u16>) {
        let mut world = Snapshot::default();
        // Only pods with claims get what claims alone give, and these do not move. What pods that
        // were not read may hold is not given to others.
        let is_closed = |node: &Node| self.is_by_claims(node) || node.may_be_held;
        let offered = |node: &Node| match is_closed(node) && moves {
            true => 0,
            false => self.offered(node),
        };
        let mut kept_off = KeptOff::default();
        let keeps_off =
            |of: &&RunningPod<'_>| moves && !of.workload.template.keeps_others_off.is_empty();
        for of in self.standing.iter().filter(keeps_off) {
            if let Some(node) = self.node(of.node) {
                kept_off.add(of.workload, node);
            }
        }
        // Places in this world by places among all nodes; those that are gone have none.
        let mut places_left: Vec<Option<usize>> = Vec::with_capacity(self.facts.nodes.len());
        // In the order in which they were read: names decide nothing.
        for node in &self.facts.nodes {
            let name = &*node.node.name;
            let stays = !gone.contains(name);
            places_left.push(stays.then_some(world.nodes.len()));
            if !stays {
                continue;
            }
            let mut model = node.node.clone();
            let unit = node.gpus.get(self.resource).map(unit).unwrap_or_default();
            let device = Device::plain(&unit, 0);
            model.allocatable.extended.remove(self.resource);
            model.devices = vec![device; usize::try_from(offered(node)).unwrap_or(0)];
            model.unschedulable |= kept_off.has(&model);
            world.nodes.push(model);
        }
        let mut next = vec![0_u16; world.nodes.len()];
        for (pod, (of, place)) in self.standing.iter().zip(&self.hosts.places).enumerate() {
            // Most worlds are asked about before anything moves.
            let to = if moved.is_empty() { None } else { moved.get(&of.full_name()) };
            let to = to.and_then(|node| self.place_of.get(node.as_str()).copied());
            let Some(place) = to.or(*place) else { continue };
            let Some(place) = places_left[place] else {
                let requirement = Arc::new(self.requirement(of));
                world.jobs.push(Job::single(JobId(pod as u64), &of.pod.name, 0, requirement));
                continue;
            };
            let (node, first) = (&world.nodes[place], next[place]);
            let most = node.devices.len() as i64 - i64::from(first);
            let count = u16::try_from(of.gpus.clamp(0, most)).unwrap_or(0);
            world.holdings.push(self.held_by(pod, Arc::clone(&node.name), (first, count)));
            next[place] += count;
        }
        (world, next)
    }

    pub(super) fn requirement(&self, of: &RunningPod<'_>) -> Requirement {
        let template = &of.workload.template;
        let (device, gpu_models) = match u16::try_from(of.gpus) {
            Ok(count) if count > 0 => {
                let units = self.node(of.node).map(|node| self.units_like(node));
                let device = DeviceRequest::Whole { count, same_island: false };
                (device, units.unwrap_or_default())
            }
            _ => (DeviceRequest::None, BTreeSet::new()),
        };
        Requirement {
            resources: resources(template, self.resource),
            device,
            gpu_models,
            node_conditions: template.node_conditions.clone(),
            tolerations: self.tolerations(of),
            counts_into: template.host_ports.taken.iter().cloned().collect(),
            rules: template.host_ports.rules.clone(),
            ..Requirement::default()
        }
    }

    /// What a pod tolerates. Where it is moved, a toleration of every taint counts for the taints
    /// of its own node alone: other nodes may be dedicated to other pods.
    fn tolerations(&self, of: &RunningPod<'_>) -> Vec<Toleration> {
        let mut tolerations = of.workload.template.tolerations.clone();
        let taints = self.node(of.node).map_or(&[][..], |node| node.node.taints.as_slice());
        if of.pod.node.is_some() {
            let (named, unnamed): (Vec<Toleration>, Vec<Toleration>) =
                tolerations.into_iter().partition(|of| !of.key.is_empty());
            let own = taints.iter().filter(|taint| unnamed.iter().any(|of| of.accepts(taint)));
            let own = own.map(|taint| Toleration {
                key: taint.key.clone(),
                any_value: false,
                value: taint.value.clone(),
                effect: Some(taint.effect),
            });
            tolerations = named.into_iter().chain(own).collect();
        }
        if of.gpus > 0 && taints.iter().any(|taint| taint.key == self.resource) {
            // It got onto such a node, so Kubernetes adds the toleration to what asks for GPUs.
            let key = self.resource.to_owned();
            tolerations.push(Toleration { key, any_value: true, ..Toleration::default() });
        }
        tolerations
    }
}

/// What the engine takes for the model of units: the same for units of one model that are the same
/// part of a GPU.
fn unit(gpus: &Gpus) -> Cow<'_, str> {
    let model = gpus.model.as_deref().unwrap_or_default();
    match &gpus.part {
        Some(part) => Cow::Owned(format!("{model} {part}")),
        None => Cow::Borrowed(model),
    }
}

/// Whether so little of a node is in use, or it was forgotten when it was cordoned, that it may go
/// once its pods have other nodes.
fn may_be_emptied(cluster: &ResourceCluster<'_>, node: &Node) -> bool {
    let half = i128::from(cluster.facts.thresholds.half_empty_percent);
    let (used, offered) = (cluster.used_of(&node.node.name), cluster.offered(node));
    let is_open = node.node.condition == NodeAvailability::Ready
        && node.cordoned_since_ms.is_none()
        && i128::from(used) * 100 <= i128::from(offered) * half;
    // The bill of what is paid in advance stays.
    (used > 0 && used < offered)
        && (is_open || is_forgotten(cluster.facts, node))
        && !(node.may_be_held || node.is_prepaid)
        && node.scale_down_held_by.is_none()
}

/// Nodes that may go but for pods with resource claims, each with these pods and their claims, in
/// words: all its other pods can move.
pub(super) fn kept_by_claims(cluster: &ResourceCluster<'_>) -> Vec<(String, Vec<String>)> {
    let mut kept = Vec::new();
    for node in cluster.facts.nodes.iter().filter(|node| may_be_emptied(cluster, node)) {
        let pods: Vec<&RunningPod<'_>> =
            cluster.pods_of(&node.node.name).map(|place| &cluster.standing[place]).collect();
        let claiming = pods.iter().filter(|of| !of.workload.template.resource_claims.is_empty());
        let in_words = |of: &&RunningPod<'_>| {
            let claims = &of.workload.template.resource_claims;
            format!("pod {}: {}", of.full_name(), claims.join(", "))
        };
        let claiming: Vec<String> = claiming.map(in_words).collect();
        if !claiming.is_empty() && pods.iter().all(|of| cluster.can_move_beside_claims(of)) {
            kept.push((node.node.name.to_string(), claiming));
        }
    }
    kept
}

/// What pods use of their node that stay there: those that belong to it, or one that starts.
#[derive(Default)]
struct Staying {
    resources: Resources,
    gpus: i64,
    /// Selectors that count them because of their host ports.
    ports: BTreeSet<String>,
}

impl Staying {
    /// What one pod of a workload uses, with so many GPUs of a resource.
    fn of(workload: &Workload, resource: &str, gpus: i64) -> Self {
        let ports = workload.template.host_ports.taken.clone();
        Self { resources: resources(&workload.template, resource), gpus, ports }
    }

    fn add(&mut self, other: &Self) {
        self.resources.add_times(&other.resources, 1);
        self.gpus += other.gpus;
        self.ports.extend(other.ports.iter().cloned());
    }

    /// What they hold on a node whose first devices, so many, others hold; and how many devices
    /// that is: no more than are left.
    fn held_on(
        &self,
        node: &dovetail_model::Node,
        (id, owner): (HoldingId, String),
        first: u16,
    ) -> (Holding, u16) {
        let left = (node.devices.len() as i64 - i64::from(first)).max(0);
        let count = u16::try_from(self.gpus.clamp(0, left)).unwrap_or(0);
        let of = (id, Arc::clone(&node.name), owner);
        let holding = held(of, self.resources.clone(), (first, count));
        (Holding { counts_into: self.ports.iter().cloned().collect(), ..holding }, count)
    }
}

/// What one pod uses beside its GPUs of a resource.
pub(super) fn resources(template: &PodTemplate, resource: &str) -> Resources {
    let Resources { cpu_milli, memory_bytes, ephemeral_bytes, pod_slots: _, extended } =
        &template.requests;
    let others = extended.iter().filter(|(name, _)| *name != resource);
    Resources {
        cpu_milli: *cpu_milli,
        memory_bytes: *memory_bytes,
        ephemeral_bytes: *ephemeral_bytes,
        pod_slots: 1,
        extended: others.map(|(name, amount)| (name.clone(), *amount)).collect(),
    }
}

/// What somebody holds on a node, with so many whole devices from the first.
fn held(
    (id, node, owner): (HoldingId, NodeName, String),
    resources: Resources,
    (first, count): (u16, u16),
) -> Holding {
    let whole = DeviceAmount::share(WHOLE_DEVICE_MILLI, 0);
    Holding {
        id,
        node,
        owner: Owner::Foreign(owner),
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: None,
        resources,
        devices: (first..first + count).map(|device| (device, whole.clone())).collect(),
        counts_into: Default::default(),
        attachments: Default::default(),
    }
}

/// Pods that keep nodes without GPU pods from being removed: those that lose something when they
/// move, and those for which the engine finds no other node. By name of the node, as
/// `namespace/name`, with the reason where the API server would not let them in again. These pods
/// have no GPUs, so it does not matter which the cluster is about.
pub(super) fn stay_on<'n>(
    cluster: &ResourceCluster<'_>,
    empty: &BTreeSet<&'n str>,
) -> BTreeMap<&'n str, BTreeSet<String>> {
    let mut stays: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let with_pods: Vec<&str> =
        empty.iter().copied().filter(|node| cluster.pods_of(node).next().is_some()).collect();
    if with_pods.is_empty() {
        return stays;
    }
    let placed = cluster.asked(&with_pods);
    for node in with_pods {
        let left = cluster.pods_of(node).map(|place| (place, &cluster.standing[place]));
        let left = left.filter(|(place, of)| !placed.contains_key(place) || !cluster.can_move(of));
        let left: BTreeSet<String> = left.map(|(_, of)| of.as_staying()).collect();
        if !left.is_empty() {
            stays.insert(node, left);
        }
    }
    stays
}
