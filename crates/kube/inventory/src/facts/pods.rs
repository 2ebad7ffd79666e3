//! Pods that have not ended, in groups of the same owner and template; of those with GPUs also when
//! they were what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_facts::{HeldState, MemoryKills, ObjectRef, Pod as FactPod, PodTemplate};
use dovetail_model::is_gpu_resource;
use dovetail_objects::Pod;
use rustc_hash::FxHashMap;

use super::claims::ClaimOf;
use super::life::{Lives, note};
use super::read_pod::{Common, Going, ReadPod};
use super::template::owned;

/// Labels that say which revision of its owner a pod is of.
pub(super) const REVISION_LABELS: [&str; 2] = ["pod-template-hash", "rollouts-pod-template-hash"];

/// An owner whose pods differ more than this has the last of these templates.
const MOST_TEMPLATES: usize = 64;

/// All pods that have not ended.
#[derive(Default)]
pub(super) struct Pods {
    pub(super) list: Vec<PodRecord>,
    /// What the checks see of each, in the same order.
    pub(super) facts: Vec<FactPod>,
    pub(super) groups: Vec<PodTemplateGroup>,
    /// All that ask for GPUs, those that are over too.
    pub(super) lives: Lives,
    /// All that refer to resource claims or ask for other extended resources instead, which need
    /// not be about GPUs.
    pub(super) lives_by_claims: Lives,
    /// When the last of those that are over ended, by node, if it held GPUs.
    pub(super) ended_ms: BTreeMap<Box<str>, u64>,
    /// Namespaces of all pods, those that are over too.
    pub(super) namespaces: BTreeSet<Box<str>>,
    by_owner: FxHashMap<ObjectRef, Vec<usize>>,
    /// Places by namespace and name.
    by_name: FxHashMap<Box<str>, FxHashMap<Box<str>, usize>>,
}

pub(super) struct PodRecord {
    pub(super) pod: Arc<Pod>,
    /// Number of its group.
    pub(super) group: usize,
    pub(super) state: HeldState,
    /// Kills for memory in the last seven days, as far as its containers still tell.
    pub(super) memory_kills: MemoryKills,
    /// Resource claims that it refers to.
    pub(super) claims: Vec<ClaimOf>,
    /// Whether the GPUs that it waits for are asked of resource claims or device classes.
    pub(super) wants_claimed: bool,
    /// How much of GPUs it holds by claims, in milli-GPU by resource, where units do not say it.
    pub(super) claimed_milli: BTreeMap<String, i64>,
}

/// Pods of one owner from one template.
pub(super) struct PodTemplateGroup {
    /// The nearest owner; the pod itself where there is none.
    pub(super) owner: ObjectRef,
    pub(super) common: Common,
    /// A pod of it, for its labels and scheduler.
    pub(super) first: usize,
}

impl Pods {
    /// Drops what is kept of the life of each pod.
    pub(super) fn forget_lives(&mut self) {
        self.lives.clear();
        self.lives_by_claims.clear();
    }

    /// Takes a pod; one that is there already is replaced.
    pub(super) fn add(&mut self, read: ReadPod) {
        let ReadPod { mut pod, controller, ended_ms, memory_kills, going } = read;
        if !self.namespaces.contains(&pod.meta.namespace) {
            self.namespaces.insert(pod.meta.namespace.clone());
        }
        let Some(Going { common, state, fact, claims }) = going else {
            self.note_end(&pod, ended_ms);
            let lives = (&mut self.lives, &mut self.lives_by_claims);
            return note(lives, &Arc::new(pod), controller, (ended_ms, memory_kills));
        };
        let place = self.number_of(&pod.meta.namespace, &pod.meta.name).unwrap_or(self.list.len());
        let itself;
        let owner = match &controller {
            Some((owner, _)) => owner,
            None => {
                itself = ObjectRef::new("Pod", &pod.meta.namespace, &pod.meta.name);
                &itself
            }
        };
        let group = self.group(owner, common, (place, &pod));
        if let Some(first) = self.list.get(self.groups[group].first) {
            share(&mut pod, &first.pod);
        }
        let pod = Arc::new(pod);
        let lives = (&mut self.lives, &mut self.lives_by_claims);
        note(lives, &pod, controller, (None, memory_kills));
        let record = PodRecord {
            pod,
            group,
            state,
            memory_kills,
            claims,
            wants_claimed: false,
            claimed_milli: BTreeMap::new(),
        };
        match self.list.get_mut(place) {
            Some(old) => (*old, self.facts[place]) = (record, fact),
            None => {
                let meta = &record.pod.meta;
                let names = match self.by_name.get_mut(&meta.namespace) {
                    Some(names) => names,
                    None => self.by_name.entry(meta.namespace.clone()).or_default(),
                };
                names.insert(meta.name.clone(), place);
                self.list.push(record);
                self.facts.push(fact);
            }
        }
    }

    /// When the last container of a pod that held GPUs ended, by its node.
    fn note_end(&mut self, pod: &Pod, ended_ms: Option<u64>) {
        let held =
            pod.requests.extended.iter().any(|(name, count)| *count > 0 && is_gpu_resource(name));
        if let (true, Some(end_ms)) = (held, ended_ms) {
            let last = self.ended_ms.entry(pod.node.clone()).or_default();
            *last = end_ms.max(*last);
        }
    }

    /// Whether pods ask for devices by claims.
    pub(super) fn has_claims(&self) -> bool {
        self.list.iter().any(|record| !record.claims.is_empty())
    }

    /// Whether pods of its owner have no node yet, for each group.
    pub(super) fn groups_wait(&self) -> Vec<bool> {
        let waiting = self.list.iter().filter(|record| record.pod.node.is_empty());
        let waiting: BTreeSet<&ObjectRef> =
            waiting.map(|record| &self.groups[record.group].owner).collect();
        self.groups.iter().map(|group| waiting.contains(&group.owner)).collect()
    }

    /// The number of a pod that has not ended.
    pub(super) fn number_of(&self, namespace: &str, name: &str) -> Option<usize> {
        self.by_name.get(namespace)?.get(name).copied()
    }

    /// The number of the group of a pod, which is a new one if it is the first of its kind.
    fn group(
        &mut self,
        owner: &ObjectRef,
        mut common: Common,
        (place, pod): (usize, &Pod),
    ) -> usize {
        let numbers = self.by_owner.get(owner).map_or(&[][..], Vec::as_slice);
        let same = |number: &&usize| {
            let known = &self.groups[**number].common;
            known.claims == common.claims && same_but_labels(&known.template, &common.template)
        };
        let known = numbers.iter().find(same).copied();
        let full = numbers.last().copied().filter(|_| numbers.len() >= MOST_TEMPLATES);
        if let Some(number) = known.or(full) {
            return number;
        }
        let number = self.groups.len();
        common.template.labels = owned(&pod.meta.labels);
        self.by_owner.entry(owner.clone()).or_default().push(number);
        self.groups.push(PodTemplateGroup { owner: owner.clone(), common, first: place });
        number
    }
}

/// Lets a pod share with another what is equal: pods of one group differ in little.
fn share(pod: &mut Pod, other: &Pod) {
    fn one<T: Clone + PartialEq>(own: &mut T, other: &T) {
        if own == other {
            own.clone_from(other);
        }
    }
    one(&mut pod.meta.labels, &other.meta.labels);
    one(&mut pod.meta.annotations, &other.meta.annotations);
    one(&mut pod.node_selector, &other.node_selector);
    one(&mut pod.tolerations, &other.tolerations);
}

/// Labels differ from pod to pod (index, revision); what else does makes another kind of pod.
pub(super) fn same_but_labels(one: &PodTemplate, other: &PodTemplate) -> bool {
    let PodTemplate {
        labels: _,
        claimed_gpus,
        resource_claims,
        shares_gpus_by,
        chooses_gpus_by,
        containers,
        requests,
        tolerations,
        node_conditions,
        priority_class,
        shared_memory,
        keeps_apart_by,
        depends_on_pods,
        keeps_others_off,
        host_ports,
        eviction_held_by,
        has_local_data,
        has_host_path,
        has_lasting_volume,
        saves_progress,
        grace_s,
        model,
    } = one;
    *claimed_gpus == other.claimed_gpus
        && *resource_claims == other.resource_claims
        && *shares_gpus_by == other.shares_gpus_by
        && *chooses_gpus_by == other.chooses_gpus_by
        && *containers == other.containers
        && *requests == other.requests
        && *tolerations == other.tolerations
        && *node_conditions == other.node_conditions
        && *priority_class == other.priority_class
        && *shared_memory == other.shared_memory
        && *keeps_apart_by == other.keeps_apart_by
        && *depends_on_pods == other.depends_on_pods
        && *keeps_others_off == other.keeps_others_off
        && *host_ports == other.host_ports
        && *eviction_held_by == other.eviction_held_by
        && *has_local_data == other.has_local_data
        && *has_host_path == other.has_host_path
        && *has_lasting_volume == other.has_lasting_volume
        && *saves_progress == other.saves_progress
        && *grace_s == other.grace_s
        && *model == other.model
}
