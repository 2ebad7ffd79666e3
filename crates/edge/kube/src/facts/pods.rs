//! Pods that have not ended, in groups of the same owner and template; of those with GPUs also when they were what.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_audit::{HeldState, ObjectRef, Pod as FactPod, PodTemplate, is_gpu_resource};

use super::class::GANG_ANNOTATIONS;
use super::detail::{ContainerStatusDetail, PodDetail};
use super::life::{Lives, note};
use super::owner::ignores;
use super::template::template;
use crate::object::{Phase, Pod};

/// Kills are counted so far back.
const KILLS_MS: u64 = 7 * 24 * 3_600_000;

/// Labels that say which revision of its owner a pod is of.
pub(super) const REVISION_LABELS: [&str; 2] = ["pod-template-hash", "rollouts-pod-template-hash"];

/// An owner whose pods differ more than this has the last of these templates.
const MOST_TEMPLATES: usize = 64;

/// All pods that have not ended.
#[derive(Default)]
pub(super) struct Pods {
    pub(super) list: Vec<PodRecord>,
    pub(super) groups: Vec<Group>,
    /// All that ask for GPUs, those that are over too.
    pub(super) lives: Lives,
    /// When the last of those that are over ended, by node, if it held GPUs.
    pub(super) ended_ms: BTreeMap<Box<str>, u64>,
    by_owner: BTreeMap<ObjectRef, Vec<usize>>,
    by_name: BTreeMap<(Box<str>, Box<str>), usize>,
}

/// A pod.
pub(super) struct PodRecord {
    pub(super) pod: Pod,
    /// Number of its group.
    pub(super) group: usize,
    pub(super) state: HeldState,
    /// What the checks see of it.
    pub(super) fact: FactPod,
    /// Kills for memory in the last seven days, as far as its containers still tell.
    pub(super) memory_kills: u32,
}

/// Pods of one owner from one template.
pub(super) struct Group {
    /// The nearest owner; the pod itself where there is none.
    pub(super) owner: ObjectRef,
    pub(super) template: PodTemplate,
    pub(super) images: Vec<String>,
    pub(super) has_group_annotation: bool,
    pub(super) ignores: BTreeSet<String>,
    /// A pod of it, for its labels and scheduler.
    pub(super) first: usize,
}

impl Pods {
    /// Takes a pod; one that is there already is replaced.
    pub(super) fn add(&mut self, pod: Pod, detail: &PodDetail<'_>, now_ms: u64) {
        note(&mut self.lives, &pod, detail);
        if pod.is_over() {
            self.note_end(&pod, detail);
            return;
        }
        let key = (pod.meta.namespace.clone(), pod.meta.name.clone());
        let place = self.by_name.get(&key).copied().unwrap_or(self.list.len());
        let group = self.group(&pod, detail, place);
        let statuses = detail.status.container_statuses.iter();
        let statuses = statuses.chain(&detail.status.init_container_statuses);
        let kills = statuses.filter(|status| killed_for_memory(status, now_ms)).count();
        let state = state(&pod, detail);
        let fact = fact(&pod, detail, state, &self.groups[group].template);
        let record = PodRecord { state, fact, memory_kills: kills as u32, group, pod };
        match self.list.get_mut(place) {
            Some(old) => *old = record,
            None => {
                self.by_name.insert(key, place);
                self.list.push(record);
            }
        }
    }

    /// When the last container of a pod that held GPUs ended, by its node.
    fn note_end(&mut self, pod: &Pod, detail: &PodDetail<'_>) {
        let held =
            pod.requests.extended.iter().any(|(name, count)| *count > 0 && is_gpu_resource(name));
        let statuses = detail.status.container_statuses.iter();
        let ended = statuses.filter_map(|status| status.state.terminated.as_ref()?.finished_at.0);
        if let (true, Some(end_ms)) = (held, ended.max()) {
            let last = self.ended_ms.entry(pod.node.clone()).or_default();
            *last = end_ms.max(*last);
        }
    }

    fn group(&mut self, pod: &Pod, detail: &PodDetail<'_>, place: usize) -> usize {
        let namespace = &*pod.meta.namespace;
        let owner = match detail.metadata.controller() {
            Some(owner) => ObjectRef::new(&owner.kind, namespace, &owner.name),
            None => ObjectRef::new("Pod", namespace, &pod.meta.name),
        };
        let template = template(pod, detail);
        let numbers = self.by_owner.entry(owner.clone()).or_default();
        let same = |number: &&usize| same_but_labels(&self.groups[**number].template, &template);
        let known = numbers.iter().find(same).copied();
        let full = numbers.last().copied().filter(|_| numbers.len() >= MOST_TEMPLATES);
        if let Some(number) = known.or(full) {
            return number;
        }
        let annotation = |key: &&str| detail.metadata.annotation(key).is_some();
        let images = detail.spec.containers.iter().map(|c| c.image.to_string());
        numbers.push(self.groups.len());
        self.groups.push(Group {
            owner,
            template,
            images: images.collect(),
            has_group_annotation: GANG_ANNOTATIONS.iter().any(annotation),
            ignores: ignores(detail.metadata.annotation("dovetail.dev/ignore")),
            first: place,
        });
        self.groups.len() - 1
    }
}

/// Labels differ from pod to pod (index, revision); what else does makes another kind of pod.
pub(super) fn same_but_labels(one: &PodTemplate, other: &PodTemplate) -> bool {
    let PodTemplate {
        labels: _,
        containers,
        tolerations,
        node_conditions,
        priority_class,
        shared_memory,
        keeps_apart_by,
        eviction_held_by,
        has_local_data,
        has_lasting_volume,
        saves_progress,
        grace_s,
        model,
    } = one;
    *containers == other.containers
        && *tolerations == other.tolerations
        && *node_conditions == other.node_conditions
        && *priority_class == other.priority_class
        && *shared_memory == other.shared_memory
        && *keeps_apart_by == other.keeps_apart_by
        && *eviction_held_by == other.eviction_held_by
        && *has_local_data == other.has_local_data
        && *has_lasting_volume == other.has_lasting_volume
        && *saves_progress == other.saves_progress
        && *grace_s == other.grace_s
        && *model == other.model
}

/// What a pod does with what it holds.
fn state(pod: &Pod, detail: &PodDetail<'_>) -> HeldState {
    if pod.meta.is_deleting() {
        return HeldState::Terminating;
    }
    let condition = |kind: &str| detail.status.conditions.iter().find(|c| c.kind == kind);
    let Some(ready) = condition("Ready") else {
        return if pod.phase == Phase::Pending { HeldState::Starting } else { HeldState::Ready };
    };
    if ready.status == "True" {
        return HeldState::Ready;
    }
    // Not ready, and never was: nothing restarted, and not ready for as long as it has its node.
    let scheduled_ms = condition("PodScheduled").and_then(|c| c.last_transition_time.0);
    let since_ms = ready.last_transition_time.0;
    let restarted = detail.status.container_statuses.iter().any(|c| c.restart_count > 0);
    let since_start = scheduled_ms.zip(since_ms).is_none_or(|(start, since)| since <= start + 1000);
    match pod.phase == Phase::Pending || !restarted && since_start {
        true => HeldState::Starting,
        false => HeldState::NotReady,
    }
}

fn fact(pod: &Pod, detail: &PodDetail<'_>, state: HeldState, template: &PodTemplate) -> FactPod {
    let scheduled =
        detail.status.conditions.iter().find(|c| c.kind == "PodScheduled" && c.status == "True");
    let statuses = &detail.status.container_statuses;
    let waits_for_next_try = |status: &ContainerStatusDetail| {
        status.state.waiting.as_ref().is_some_and(|waiting| waiting.reason == "CrashLoopBackOff")
    };
    let crash_loops = statuses.iter().chain(&detail.status.init_container_statuses);
    FactPod {
        name: pod.meta.name.to_string(),
        node: Some(pod.node.to_string()).filter(|node| !node.is_empty()),
        placed_since_ms: scheduled.and_then(|condition| condition.last_transition_time.0),
        is_starting: state == HeldState::Starting && !pod.node.is_empty(),
        crash_loops: crash_loops.into_iter().any(waits_for_next_try),
        is_done_but_for_helpers: is_done_but_for_helpers(statuses, template),
        should_be_gone_ms: detail.metadata.deletion_timestamp.0,
        revision: REVISION_LABELS
            .iter()
            .find_map(|key| pod.meta.labels.get(key))
            .map(str::to_owned),
        ..FactPod::default()
    }
}

/// Whether each container that holds GPUs is over, and another one is not.
fn is_done_but_for_helpers(statuses: &[ContainerStatusDetail], template: &PodTemplate) -> bool {
    let holds_gpus = |status: &&ContainerStatusDetail| {
        let container = template.containers.iter().find(|c| c.name == status.name);
        container.is_some_and(|container| container.gpu_limits().next().is_some())
    };
    let (workers, helpers): (Vec<_>, Vec<_>) = statuses.iter().partition(holds_gpus);
    let is_over = |status: &&ContainerStatusDetail| status.state.terminated.is_some();
    !workers.is_empty() && workers.iter().all(is_over) && !helpers.iter().all(is_over)
}

fn killed_for_memory(status: &ContainerStatusDetail, now_ms: u64) -> bool {
    [&status.last_state, &status.state].into_iter().any(|state| {
        let Some(ended) = &state.terminated else { return false };
        let ago_ms = ended.finished_at.0.map(|at_ms| now_ms.saturating_sub(at_ms));
        ended.reason == "OOMKilled" && ago_ms.is_none_or(|ago_ms| ago_ms <= KILLS_MS)
    })
}
