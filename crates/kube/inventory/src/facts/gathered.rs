//! All of it together: workloads by their top owners, and who holds what.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{
    Advice, Budget, Container, Facts, HeldGpus, MemoryKills, Moment, Namespace, Node, NodeGpus,
    ObjectRef, Units, Workload,
};
use dovetail_gpus::{GpuCount, counted_as};
use dovetail_model::NodeAvailability;
use dovetail_objects::Pod;
use rustc_hash::{FxHashMap, FxHashSet};

use super::claims::{Claimed, ClaimedNodes, Doubts};
use super::clamped::{Clamped, ClampedHolder, beyond_the_node, cut_requests};
use super::class::{
    class_of, exports_gpu_metrics, is_gang, reserves_for_others, scales_node_groups,
};
use super::deleted_volumes::note_deleted_volumes;
use super::demand::worlds;
use super::ended_kills;
use super::evicted::{note_bound_by_name, note_several_budgets};
use super::gangs::{gangs, lacking_workers};
use super::in_use::{count_what_is_held, open_where_seen};
use super::inventory::Inventory;
use super::lives::{PodLife, lives, not_yet_created};
use super::node::{leave_to_claims, leave_to_slices};
use super::node_removal::removal_rules;
use super::pods::{PodRecord, Pods, REVISION_LABELS, same_but_labels};
use super::rejected::note_rejected;
use super::share::by_cores;
use super::sharers::share_out;
use super::source::SourceTexts;
use super::template::owned;
use super::tenant::{Tenant, tenants};
use super::to_come::{Coming, coming};
use super::unjudged::Unjudged;
use super::unmade::admission::Admission;
use super::unmade::settle;
use super::unread::{UnknownGpus, Unread};
use super::unseen::{OTHER_PODS, PODS, Unseen, unseen};
use crate::dump::Skipped;
use crate::reach::PatchReach;

/// No pod holds more units of a resource: a node has fewer.
const MOST_UNITS: i64 = 1 << 20;

/// What an inventory comes to.
#[derive(Debug)]
pub struct Gathered {
    /// For the checks. Devices are numbered by whoever looks at the moment.
    pub facts: Facts,
    /// GPUs, what holds them and what waits for them.
    pub moment: Moment,
    /// When pods that hold GPUs were made, by namespace and name, as far as known.
    pub made_ms: BTreeMap<(String, String), u64>,
    /// `spec.providerID` by node, as far as set.
    pub provider_ids: BTreeMap<String, String>,
    /// Resources by which pods ask for GPUs, by node.
    pub resources: BTreeMap<String, Vec<String>>,
    /// Pods on nodes, where they were asked for.
    pub tenants: Vec<Tenant>,
    /// All pods that ask for GPUs, also those that wait or are over, where tenants were asked for.
    pub lives: Vec<PodLife>,
    /// Pods that wait for a quota and are not created yet, where tenants were asked for.
    pub not_yet_created: Vec<PodLife>,
    /// Objects that a person edits.
    pub sources: SourceTexts,
    /// Which nodes pods could use.
    pub reach: PatchReach,
    /// Identity of the cluster: that of its namespace `kube-system`; empty where it was not read.
    pub cluster_uid: String,
    /// Objects by kind.
    pub kinds: BTreeMap<String, u64>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
    /// GPUs of which nobody can say whether they are held.
    pub unknown_gpus: UnknownGpus,
    /// Whether nodes and pods were handed over in full, and whatever makes pods.
    pub is_whole: bool,
    /// Waiting pods of which nobody can say where they could go.
    pub unjudged: Vec<Unjudged>,
    /// Numbers of GPUs that cannot be, of nodes and of what pods hold there.
    pub clamped: Vec<Clamped>,
    /// Nodes of whose GPUs somebody says another number than the one that counts.
    pub gpu_counts: Vec<(String, GpuCount)>,
    /// What resource slices and claims leave open of how many GPUs there are and who holds them, in
    /// words.
    pub device_doubts: Vec<String>,
    /// Objects that were left out: the first of them.
    pub skipped: Vec<Skipped>,
    /// How many were left out.
    pub skipped_count: u64,
}

impl Gathered {
    /// Whether no pods were read, or those of one namespace alone: what no known pod has may be
    /// allocated all the same.
    pub fn may_lack_pods(&self) -> bool {
        self.unseen.iter().any(|unseen| [PODS, OTHER_PODS].contains(&unseen.what.as_str()))
    }

    /// Whether time of which nobody knows can only add to the waste: everything that could hold
    /// what seems free, or want it, was handed over and understood.
    pub fn can_only_be_more(&self) -> bool {
        self.is_whole
            && self.skipped_count == 0
            && !self.unknown_gpus.is_any()
            && self.unjudged.is_empty()
            && self.clamped.is_empty()
            && self.device_doubts.is_empty()
    }
}

impl Inventory {
    /// Facts about all objects so far. `team_labels` name the team.
    pub fn facts(self, team_labels: BTreeSet<String>) -> Gathered {
        self.facts_and_tenants(team_labels, None)
    }

    /// Facts about all objects so far, and all pods on nodes with these of their labels.
    pub fn facts_and_tenants(
        mut self,
        team_labels: BTreeSet<String>,
        tenant_labels: Option<&BTreeSet<String>>,
    ) -> Gathered {
        self.settle_what_waits();
        let unseen = unseen(&self);
        let is_whole = is_whole(&self.complete);
        let unread = std::mem::take(&mut self.unread);
        let Doubts { told: device_doubts, untold } = self.count_claimed_devices();
        let mut facts = self.facts_beside_nodes_and_workloads(team_labels);
        let OfNodes { mut gpus, mut clamped, gpu_counts, provider_ids, mut unknown_gpus } =
            of_nodes(&mut self, &mut facts);
        count_what_is_held(&self.pods, &mut facts.nodes, &mut gpus);
        clamped.extend(cut_requests(&mut self.pods.groups, &self.pods.list));
        let of_group;
        (facts.workloads, of_group) = self.workloads();
        facts.budgets = self.budgets(&facts.workloads, &of_group);
        let (held, beyond) = self.held(&facts, &gpus, &of_group);
        self.mark_held(&mut gpus);
        unread.add_to(&mut unknown_gpus, (&self.pods, &self.nodes), &mut gpus);
        unknown_gpus.unrequested =
            open_where_seen(&self.pods, &facts.workloads, &of_group, &mut gpus);
        clamped.extend(beyond);
        let (held, sharers) =
            share_out(held, (&self.pods.list, &of_group), &facts.workloads, &gpus);
        let made_ms = self.made_ms(&facts, &held);
        self.mark_empty(&mut facts.nodes, &held, &gpus);
        let tenants = tenant_labels.map(|labels| tenants(&self, &of_group, labels));
        let lives = tenant_labels.map(|labels| lives(&self, labels));
        let coming = tenant_labels.map(|labels| not_yet_created(&self, labels).collect());
        let cluster_uid = self.cluster_uid();
        let kinds = self.kinds.clone();
        let (skipped, skipped_count) = (std::mem::take(&mut self.skipped), self.skipped_count);
        // The lives share the pods, which the worlds change.
        self.pods.forget_lives();
        let sources = std::mem::take(&mut self.sources);
        let unmade = self.unmade(&sources, (&facts, &of_group));
        let reach = reach(&self, unmade.pods, (&facts, &of_group), &unread);
        facts.to_come = unmade.with_gpus;
        facts.lacks_pods = reach.lacks_pods;
        let resources = resources(&gpus);
        let (mut demand, unjudged) = worlds(self, &facts.nodes, &untold);
        unread.may_want(&mut demand);
        let moment = Moment { nodes: gpus, held, sharers, demand };
        Gathered {
            facts,
            moment,
            made_ms,
            provider_ids,
            resources,
            tenants: tenants.unwrap_or_default(),
            lives: lives.unwrap_or_default(),
            not_yet_created: coming.unwrap_or_default(),
            sources,
            reach,
            cluster_uid,
            kinds,
            unseen,
            unknown_gpus,
            is_whole,
            unjudged,
            clamped,
            gpu_counts,
            device_doubts,
            skipped,
            skipped_count,
        }
    }

    /// Gathers what waits, and what admits it.
    fn settle_what_waits(&mut self) {
        self.waiting = settle(&self.pods, &self.cluster, &mut self.owners);
        if !self.waiting.pods.is_empty() || !self.waiting.kept_for_quota.is_empty() {
            let (nodes, pods) = (self.nodes.values(), (&self.pods, &self.owners));
            self.waiting.admission = Admission::of(nodes, pods, &self.sources);
        }
    }

    /// What objects are going to make, beside the pods of the workloads of these facts.
    fn unmade<'s>(
        &self,
        sources: &'s SourceTexts,
        (facts, of_group): (&Facts, &[usize]),
    ) -> Coming<'s> {
        let workloads = &facts.workloads;
        let lacking = lacking_workers(self, workloads, of_group);
        let chain = |object: &ObjectRef| self.owners.chain(object, None);
        coming(sources, (workloads, lacking), &facts.autoscalers, &chain)
    }

    /// Puts what slices offer and claims hold into nodes and pods; without slices, GPUs that no
    /// plugin counts are left to them.
    fn count_claimed_devices(&mut self) -> Doubts {
        let devices = std::mem::take(&mut self.devices);
        self.claimed_nodes = ClaimedNodes::of(&devices);
        let Self { nodes, read_nodes, pods, waiting, .. } = self;
        let claimed = Claimed { nodes, read_nodes, pods, waiting };
        let doubts = claimed.count(devices);
        if !self.was_read("ResourceSlice") && self.pods.has_claims() {
            self.read_nodes.values_mut().for_each(leave_to_slices);
        }
        if !self.was_read("ResourceClaim") {
            let claiming = self.pods.list.iter().filter(|record| !record.claims.is_empty());
            for host in claiming.map(|record| &record.pod.node) {
                self.read_nodes.get_mut(&**host).into_iter().for_each(leave_to_claims);
            }
        }
        doubts
    }

    fn facts_beside_nodes_and_workloads(&mut self, team_labels: BTreeSet<String>) -> Facts {
        Facts {
            now_ms: self.now_ms,
            scoring: self.cluster.scoring,
            has_gpu_admission_policy: self.gpu_policy(),
            team_labels,
            namespaces: self.namespaces(),
            autoscalers: super::autoscaler::counted(
                std::mem::take(&mut self.cluster.autoscalers),
                &self.owners,
            ),
            advice: advice(self),
            removal_rules: removal_rules(&self.sources),
            has_cluster_autoscaler: self.has_cluster_autoscaler(),
            ..Facts::default()
        }
    }

    /// Whether a Cluster Autoscaler is among the pods.
    fn has_cluster_autoscaler(&self) -> bool {
        let Pods { list, groups, .. } = &self.pods;
        groups.iter().any(|group| {
            let labels = &list[group.first].pod.meta.labels;
            scales_node_groups(labels, &group.common.images, &group.owner.name)
        })
    }

    fn cluster_uid(&self) -> String {
        let system = self.namespaces.get("kube-system");
        system.map(|system| system.meta.uid.to_string()).unwrap_or_default()
    }

    fn gpu_policy(&self) -> Option<bool> {
        let none = self.complete.contains("ValidatingAdmissionPolicy").then_some(false);
        self.cluster.has_gpu_policy.or(none)
    }

    /// Namespaces, with what quotas limit where quotas were read.
    fn namespaces(&self) -> Vec<Namespace> {
        let has_quotas = self.complete.contains("ResourceQuota") || !self.cluster.quotas.is_empty();
        let namespace = |(name, namespace): (&String, &dovetail_objects::Namespace)| Namespace {
            name: name.clone(),
            labels: owned(&namespace.meta.labels),
            quota_resources: has_quotas.then(|| {
                let limited = self.cluster.quotas.get(name).into_iter().flat_map(BTreeMap::keys);
                limited.cloned().collect()
            }),
            gpu_quota: self.cluster.gpu_quota(name),
        };
        self.namespaces.iter().map(namespace).collect()
    }

    /// Without all pods, whatever is offered and no pod that was read holds may be held by another.
    fn mark_held(&self, gpus: &mut [NodeGpus]) {
        if self.was_read("Pod") && self.only_namespace().is_none() {
            return;
        }
        let units = gpus.iter_mut().flat_map(|of_node| &mut of_node.units);
        units.for_each(|units| units.unknown = units.count);
    }

    /// Since when a node that offers GPUs has none that a pod holds: since it joined, or since the
    /// last of the pods that are still listed ended. Pods that are gone nobody sees, so it may be
    /// less long. A node whose GPUs a pod may hold that was not read is not known to be empty.
    fn mark_empty(&self, nodes: &mut [Node], held: &[HeldGpus], gpus: &[NodeGpus]) {
        let is_open =
            |of: &&NodeGpus| of.unknown_milli > 0 || of.units.iter().any(|units| units.unknown > 0);
        let open: BTreeSet<&str> = gpus.iter().filter(is_open).map(|of| &*of.node).collect();
        for node in nodes.iter_mut() {
            node.may_be_held = open.contains(&*node.node.name);
        }
        if !self.was_read("Pod") {
            return;
        }
        let busy: BTreeSet<&str> = held.iter().map(|held| &*held.node).collect();
        for node in nodes.iter_mut().filter(|node| node.has_gpus()) {
            let name = &*node.node.name;
            let joined_ms = self.nodes.get(name).map_or(0, |object| object.meta.created_ms);
            let ended_ms = self.pods.ended_ms.get(name).copied().unwrap_or(0);
            node.free_since_ms = Some(joined_ms.max(ended_ms)).filter(|_| joined_ms > 0);
            let is_up = node.node.condition == NodeAvailability::Ready && joined_ms > 0;
            if is_up && !node.may_be_held && !busy.contains(name) {
                node.without_gpu_pods_since_ms = Some(joined_ms.max(ended_ms));
            }
        }
    }

    /// Workloads, and the number of its workload for each group of pods. They take what is known of
    /// templates and pods with them.
    fn workloads(&mut self) -> (Vec<Workload>, Vec<usize>) {
        note_several_budgets(&self.cluster.budgets, &mut self.pods);
        let Pods { list, groups, facts, .. } = &mut self.pods;
        let mut workloads: Vec<Workload> = Vec::new();
        let mut wanted: Vec<BTreeMap<&ObjectRef, Option<u32>>> = Vec::new();
        let mut by_owner: BTreeMap<ObjectRef, Vec<usize>> = BTreeMap::new();
        let mut of_group = Vec::with_capacity(groups.len());
        for group in groups {
            let pod = &list[group.first].pod;
            let template = std::mem::take(&mut group.common.template);
            let hash = REVISION_LABELS.iter().find_map(|key| pod.meta.labels.get(key));
            let chain = self.owners.chain(&group.owner, hash);
            let top = chain.last().unwrap_or(&group.owner);
            let numbers = by_owner.entry(top.clone()).or_default();
            let same = |number: &&usize| same_but_labels(&workloads[**number].template, &template);
            let known = numbers.iter().find(same).copied();
            let number = known.unwrap_or_else(|| {
                numbers.push(workloads.len());
                let kinds = chain.iter().map(|owner| owner.kind.as_str());
                let labels = &pod.meta.labels;
                workloads.push(Workload {
                    owner: top.clone(),
                    class: class_of(labels, kinds, &group.common.images),
                    is_gang: is_gang(labels, &pod.scheduler, group.common.has_group_annotation),
                    exports_gpu_metrics: exports_gpu_metrics(labels, &group.common.images),
                    reserves_for_others: reserves_for_others(labels, &template),
                    template,
                    memory_kills: Some(MemoryKills::default()),
                    ..Workload::default()
                });
                wanted.push(BTreeMap::new());
                workloads.len() - 1
            });
            let workload = &mut workloads[number];
            workload.ignores.extend(self.owners.ignores(&chain));
            workload.ignores.extend(group.common.ignores.iter().cloned());
            let below = chain.split_last().map_or(&[][..], |(_, below)| below);
            workload.made_by.extend(below.iter().cloned());
            wanted[number].insert(&group.owner, self.owners.desired(&group.owner));
            of_group.push(number);
        }
        for (record, fact) in list.iter().zip(std::mem::take(facts)) {
            let workload = &mut workloads[of_group[record.group]];
            workload.pods.push(fact);
            if let Some(kills) = &mut workload.memory_kills {
                *kills = kills.and(record.memory_kills);
            }
        }
        for (workload, wanted) in workloads.iter_mut().zip(wanted) {
            let mut wanted = wanted.into_values();
            let all = wanted.try_fold(0, |sum: u32, of| Some(sum.saturating_add(of?)));
            // An owner with several templates does not say how many of each.
            let shared = by_owner[&workload.owner].len() > 1;
            let there = u32::try_from(workload.pods.len()).unwrap_or(u32::MAX);
            workload.replicas = all.filter(|_| !shared).unwrap_or(there);
        }
        ended_kills::add(self, &mut workloads, &of_group);
        note_rejected(self, &mut workloads, &of_group);
        note_bound_by_name(self, &mut workloads);
        note_deleted_volumes(self, &mut workloads);
        (workloads, of_group)
    }

    /// Budgets with the workload of the first pod that each selects.
    fn budgets(&self, workloads: &[Workload], of_group: &[usize]) -> Vec<Budget> {
        let mut by_namespace: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, record) in self.pods.list.iter().enumerate() {
            by_namespace.entry(&record.pod.meta.namespace).or_default().push(number);
        }
        let budget = |budget: &super::cluster::BudgetObject| {
            let pods = by_namespace.get(&*budget.object.namespace)?.iter();
            let mut records = pods.map(|number| &self.pods.list[*number]);
            let selected =
                records.find(|record| budget.budget.selector.matches(&record.pod.meta.labels))?;
            Some(Budget {
                object: budget.object.clone(),
                protects: workloads[of_group[selected.group]].owner.clone(),
                limit: budget.limit,
            })
        };
        self.cluster.budgets.iter().filter_map(budget).collect()
    }

    /// When pods that hold GPUs were made.
    fn made_ms(&self, facts: &Facts, held: &[HeldGpus]) -> BTreeMap<(String, String), u64> {
        let holders: FxHashSet<(&str, &str)> = held
            .iter()
            .map(|held| (&*facts.workloads[held.workload].owner.namespace, &*held.pod))
            .collect();
        let records = self.pods.list.iter().map(|record| &record.pod.meta);
        let known = records.filter(|meta| {
            meta.created_ms > 0 && holders.contains(&(&*meta.namespace, &*meta.name))
        });
        known
            .map(|meta| ((meta.namespace.to_string(), meta.name.to_string()), meta.created_ms))
            .collect()
    }

    /// What pods hold of GPUs, by node; and where that is more than there is.
    fn held(
        &self,
        facts: &Facts,
        gpus: &[NodeGpus],
        of_group: &[usize],
    ) -> (Vec<HeldGpus>, Vec<Clamped>) {
        let nodes: FxHashMap<&str, &Node> =
            facts.nodes.iter().map(|node| (&*node.node.name, node)).collect();
        let units: FxHashMap<&str, &[Units]> =
            gpus.iter().map(|of_node| (&*of_node.node, &*of_node.units)).collect();
        let mut held = Vec::new();
        let mut pods: Vec<(&str, i64)> = Vec::new();
        let of_gangs = self.pods.list.iter().zip(gangs(self));
        let may_hold = |record: &PodRecord| {
            !record.pod.node.is_empty() && !record.pod.holds().extended.is_empty()
        };
        for (record, gang) in of_gangs.filter(|(record, _)| may_hold(record)) {
            let Some(node) = nodes.get(&*record.pod.node) else { continue };
            let of_node = units.get(&*record.pod.node).copied().unwrap_or_default();
            let workload = of_group[record.group];
            let containers = &facts.workloads[workload].template.containers;
            for resource in node.gpus.keys() {
                let said = record.pod.holds().extended.get(resource).copied().unwrap_or(0);
                let units = said.min(MOST_UNITS);
                if units > 0 {
                    let (name, counted, gpu_milli) =
                        counted(containers, node, of_node, resource, units);
                    let gpu_milli = record.claimed_milli.get(resource).copied().or(gpu_milli);
                    // Parts of devices are compared as the devices that they are parts of.
                    let said = if name == *resource { said } else { counted };
                    pods.push((&*record.pod.meta.namespace, said));
                    held.push(HeldGpus {
                        node: record.pod.node.to_string(),
                        resource: name,
                        workload,
                        pod: record.pod.meta.name.to_string(),
                        units: counted,
                        gpu_milli,
                        state: record.state,
                        gang,
                        uses: Vec::new(),
                    });
                }
            }
        }
        let said = held.iter().zip(pods);
        let said = said.map(|(held, (namespace, units))| ClampedHolder { held, namespace, units });
        let clamped = beyond_the_node(&said.collect::<Vec<_>>(), &facts.nodes);
        (held, clamped)
    }
}

/// What decides which nodes pods could use.
fn reach(
    inventory: &Inventory,
    coming: Vec<(&ObjectRef, Pod)>,
    (facts, of_group): (&Facts, &[usize]),
    unread: &Unread,
) -> PatchReach {
    let mut reach = PatchReach::default();
    let conditions: BTreeMap<&str, NodeAvailability> =
        facts.nodes.iter().map(|node| (&*node.node.name, node.node.condition)).collect();
    let condition = |name: &str| conditions.get(name).copied().unwrap_or_default();
    reach.take_nodes(inventory.nodes.values().map(|node| (node, condition(&node.meta.name))));
    reach.take_volumes(inventory.others.values());
    reach.quotas = inventory.cluster.quota_rooms.clone();
    reach.limit_ranges = inventory.cluster.limit_ranges.clone();
    let mut pods: Vec<Vec<&Pod>> = vec![Vec::new(); inventory.pods.groups.len()];
    for record in &inventory.pods.list {
        pods[record.group].push(&record.pod);
    }
    for (pods, workload) in pods.iter().zip(of_group) {
        if let Some(first) = pods.first().copied() {
            let claimed = &inventory.claimed_nodes;
            reach.take_group(&facts.workloads[*workload], first, pods, claimed);
        }
    }
    for (object, pod) in coming {
        reach.take_pods_to_come(object, &pod, &inventory.claimed_nodes);
    }
    reach.lacks_pods =
        !inventory.was_read("Pod") || inventory.only_namespace().is_some() || unread.lacks_pods;
    reach
}

/// What recommenders say, where they were read.
fn advice(inventory: &Inventory) -> Option<BTreeMap<ObjectRef, Advice>> {
    const KIND: &str = "VerticalPodAutoscaler";
    let was_read = inventory.complete.contains(KIND) || inventory.kinds.contains_key(KIND);
    was_read.then(|| inventory.cluster.advice.clone())
}

/// What is told of nodes beside the facts.
#[derive(Default)]
struct OfNodes {
    gpus: Vec<NodeGpus>,
    clamped: Vec<Clamped>,
    gpu_counts: Vec<(String, GpuCount)>,
    provider_ids: BTreeMap<String, String>,
    unknown_gpus: UnknownGpus,
}

/// Puts nodes into the facts, in the order in which they came.
fn of_nodes(all: &mut Inventory, facts: &mut Facts) -> OfNodes {
    let mut told = OfNodes::default();
    let mut read_nodes: Vec<_> = std::mem::take(&mut all.read_nodes).into_iter().collect();
    read_nodes.sort_by_key(|(name, _)| all.places.get(name).copied());
    for (name, read) in read_nodes {
        told.unknown_gpus.note_node(&name, &read);
        told.gpus.extend(read.gpus);
        told.clamped.extend(read.clamped);
        let doubted = read.count.filter(|count| !count.others.is_empty());
        told.gpu_counts.extend(doubted.map(|count| (name.clone(), count)));
        let numa_policy = all.cluster.numa_policies.get(&name).copied();
        facts.nodes.push(Node { numa_policy, ..read.node });
        if !read.provider_id.is_empty() {
            told.provider_ids.insert(name, read.provider_id);
        }
    }
    told
}

/// Whether all nodes, pods and what makes pods were handed over.
fn is_whole(complete: &BTreeSet<String>) -> bool {
    const KINDS: [&str; 6] = ["Node", "Pod", "ReplicaSet", "Deployment", "StatefulSet", "Job"];
    KINDS.iter().all(|kind| complete.contains(*kind))
}

/// Resources by which pods ask for GPUs, by node.
fn resources(gpus: &[NodeGpus]) -> BTreeMap<String, Vec<String>> {
    let of_node = |of_node: &NodeGpus| {
        let names = of_node.units.iter().map(|units| units.resource.clone());
        (of_node.node.clone(), names.collect())
    };
    gpus.iter().map(of_node).collect()
}

/// Under which name units of a resource are counted on a node, how many they are, and how much of
/// its GPUs where the units do not say it. `containers` are those of the pod that holds them,
/// `of_node` what the node offers.
fn counted(
    containers: &[Container],
    node: &Node,
    of_node: &[Units],
    resource: &str,
    units: i64,
) -> (String, i64, Option<i64>) {
    let built_in = |name: &str| node.gpus.get(name).map_or(0, |gpus| gpus.built_in);
    if let Some((name, slice)) = counted_as(built_in, resource) {
        let gpu_milli = slice.milli(units);
        return (name.to_owned(), gpu_milli / 1000, Some(gpu_milli));
    }
    let offered = of_node.iter().find(|of| of.resource == resource);
    let gpu_milli = offered.and_then(|of| by_cores(containers, resource, &of.parts));
    (resource.to_owned(), units, gpu_milli)
}
