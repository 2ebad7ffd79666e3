//! What is read of one pod, by itself: nothing here depends on other objects, so that many pods can
//! be read at a time.

use dovetail_objects::labels;
use std::collections::BTreeSet;

use dovetail_facts::{HeldState, MemoryKills, ObjectRef, Pod as FactPod, PodTemplate};
use dovetail_objects::{Pod, PodPhase};

use super::claims::ClaimOf;
use super::class::GANG_ANNOTATIONS;
use super::detail::{ContainerStatusDetail, PodClaimDetail, PodDetail};
use super::ignored::ignores;
use super::kills;
use super::pods::REVISION_LABELS;
use super::template::template_without_labels;

/// A pod, and what the audit reads of it.
pub(super) struct ReadPod {
    pub(super) pod: Pod,
    /// What controls it, and the identity of that; a static pod belongs to its node.
    pub(super) controller: Option<(ObjectRef, String)>,
    /// When the last of its containers ended, if one has.
    pub(super) ended_ms: Option<u64>,
    /// Kills for memory in the last seven days, as far as its containers still tell.
    pub(super) memory_kills: MemoryKills,
    /// `None` if it is over.
    pub(super) going: Option<Going>,
}

/// What is read of a pod that has not ended.
pub(super) struct Going {
    pub(super) common: Common,
    pub(super) state: HeldState,
    /// What the checks see of it.
    pub(super) fact: FactPod,
    /// Resource claims that it refers to.
    pub(super) claims: Vec<ClaimOf>,
}

/// What pods of one owner from one template have in common.
pub(super) struct Common {
    /// Without labels: a group has those of its first pod.
    pub(super) template: PodTemplate,
    pub(super) images: Vec<String>,
    pub(super) has_group_annotation: bool,
    pub(super) ignores: BTreeSet<String>,
    /// Resource claims and templates of claims, as its pods' author wrote them.
    pub(super) claims: Vec<Box<str>>,
}

impl ReadPod {
    /// Reads a pod; `now_ms` is the moment of the objects.
    pub(super) fn of(pod: Pod, detail: &PodDetail<'_>, now_ms: u64) -> Self {
        let controller = detail.metadata.controller().map(|owner| {
            let object = ObjectRef::new(&owner.kind, &pod.meta.namespace, &owner.name);
            (object, (*owner.uid).to_owned())
        });
        let node = || ObjectRef::new("Node", &pod.meta.namespace, &pod.node);
        let is_mirror = detail.metadata.annotation(labels::MIRROR).is_some();
        let controller = controller.or_else(|| is_mirror.then(|| (node(), String::new())));
        let statuses = detail.status.container_statuses.iter();
        let ended = statuses.filter_map(|status| status.state.terminated.as_ref()?.finished_at.0);
        Self {
            controller,
            ended_ms: ended.max(),
            memory_kills: kills::of_pod(&detail.status, now_ms),
            going: (!pod.is_over()).then(|| Going::of(&pod, detail)),
            pod,
        }
    }
}

impl Going {
    fn of(pod: &Pod, detail: &PodDetail<'_>) -> Self {
        let template = template_without_labels(pod, detail);
        let claims = claims(detail);
        let state = state(pod, detail);
        let annotation = |key: &&str| detail.metadata.annotation(key).is_some();
        let images = detail.spec.containers.iter().map(|c| (*c.image).to_owned());
        Self {
            fact: fact(pod, detail, state, &template),
            common: Common {
                template,
                images: images.collect(),
                has_group_annotation: GANG_ANNOTATIONS.iter().any(annotation),
                ignores: ignores(detail.metadata.annotation(labels::IGNORE)),
                claims: claims.iter().map(|claim| claim.written().into()).collect(),
            },
            state,
            claims,
        }
    }
}

/// The resource claims that a pod refers to.
pub(super) fn claims(detail: &PodDetail<'_>) -> Vec<ClaimOf> {
    let made = &detail.status.resource_claim_statuses;
    let claim = |of: &PodClaimDetail| {
        let made = made.iter().find(|made| made.name == of.name);
        let made = made.map(|made| made.resource_claim_name.clone()).unwrap_or_default();
        let is_own = of.resource_claim_template_name.is_empty();
        ClaimOf {
            claim: if is_own { of.resource_claim_name.clone() } else { made },
            template: of.resource_claim_template_name.clone(),
        }
    };
    detail.spec.resource_claims.iter().map(claim).collect()
}

/// What a pod does with what it holds.
fn state(pod: &Pod, detail: &PodDetail<'_>) -> HeldState {
    if pod.meta.is_deleting() {
        return HeldState::Terminating;
    }
    let condition = |kind: &str| detail.status.conditions.iter().find(|c| c.kind == kind);
    let Some(ready) = condition("Ready") else {
        return if pod.phase == PodPhase::Pending { HeldState::Starting } else { HeldState::Ready };
    };
    if ready.status == "True" {
        return HeldState::Ready;
    }
    // Not ready, and never was: nothing restarted, and not ready for as long as it has its node.
    let scheduled_ms = condition("PodScheduled").and_then(|c| c.last_transition_time.0);
    let since_ms = ready.last_transition_time.0;
    let restarted = detail.status.container_statuses.iter().any(|c| c.restart_count > 0);
    let since_start = scheduled_ms.zip(since_ms).is_none_or(|(start, since)| since <= start + 1000);
    match pod.phase == PodPhase::Pending || !restarted && since_start {
        true => HeldState::Starting,
        false => HeldState::NotReady,
    }
}

fn fact(pod: &Pod, detail: &PodDetail<'_>, state: HeldState, template: &PodTemplate) -> FactPod {
    let scheduled =
        detail.status.conditions.iter().find(|c| c.kind == "PodScheduled" && c.status == "True");
    let ready = detail.status.conditions.iter().find(|condition| condition.kind == "Ready");
    let is_done_but_for_helpers = is_done_but_for_helpers(detail, template);
    let workers = detail.status.container_statuses.iter();
    let ends = workers.filter(|status| holds_gpus(status, template));
    let ends = ends.map(|status| status.state.terminated.as_ref()?.finished_at.0);
    // One end that nobody knows may be the last.
    let last_end_ms = ends.collect::<Option<Vec<u64>>>().and_then(|ends| ends.into_iter().max());
    FactPod {
        name: pod.meta.name.to_string(),
        created_ms: Some(pod.meta.created_ms).filter(|ms| *ms > 0),
        node: Some(pod.node.to_string()).filter(|node| !node.is_empty()),
        placed_since_ms: scheduled.and_then(|condition| condition.last_transition_time.0),
        ready_since_ms: ready.and_then(|condition| condition.last_transition_time.0),
        is_starting: state == HeldState::Starting && !pod.node.is_empty(),
        crash_loops: crash_loops(detail, template),
        is_done_but_for_helpers,
        work_ended_ms: last_end_ms.filter(|_| is_done_but_for_helpers),
        should_be_gone_ms: detail.metadata.deletion_timestamp.0,
        revision: REVISION_LABELS
            .iter()
            .find_map(|key| pod.meta.labels.get(key))
            .map(str::to_owned),
        ..FactPod::default()
    }
}

/// Whether a container of a pod asks for GPUs.
fn holds_gpus(status: &ContainerStatusDetail<'_>, template: &PodTemplate) -> bool {
    let container = template.containers.iter().find(|c| *c.name == *status.name);
    container.is_some_and(|container| container.gpu_limits().next().is_some())
}

/// Whether nothing uses the GPUs of a pod until the next try after a crash: a container that has
/// them waits for it, or one that runs before, and no other container with GPUs runs. Where GPUs
/// come by claims or in parts, each container may have them.
fn crash_loops(detail: &PodDetail<'_>, template: &PodTemplate) -> bool {
    let waits_for_next_try = |status: &ContainerStatusDetail<'_>| {
        status.state.waiting.as_ref().is_some_and(|waiting| waiting.reason == "CrashLoopBackOff")
    };
    let runs = |status: &ContainerStatusDetail<'_>| {
        status.state.waiting.is_none() && status.state.terminated.is_none()
    };
    let statuses = detail.status.container_statuses.iter();
    let workers: Vec<_> = statuses.clone().filter(|status| holds_gpus(status, template)).collect();
    let workers = if workers.is_empty() { statuses.collect() } else { workers };
    let before = detail.status.init_container_statuses.iter();
    workers.iter().copied().chain(before).any(waits_for_next_try)
        && !workers.iter().copied().any(runs)
}

/// Whether each container that holds GPUs is over, and another one is not.
fn is_done_but_for_helpers(detail: &PodDetail<'_>, template: &PodTemplate) -> bool {
    let statuses = detail.status.container_statuses.iter();
    let (workers, helpers): (Vec<_>, Vec<_>) =
        statuses.partition(|status| holds_gpus(status, template));
    let is_over = |status: &&ContainerStatusDetail<'_>| status.state.terminated.is_some();
    !workers.is_empty() && workers.iter().all(is_over) && !helpers.iter().all(is_over)
}
