//! What a pod holds or wants, by the objects and the decisions that the watch does not show yet.

use std::sync::Arc;

use dovetail_model::{Holding, HoldingId, HoldingPhase, NodeName, Owner, PodId, Requirement};
use dovetail_objects::Pod;

use super::device_claims::asked_of_node;
use super::device_copies::{CountedClaims, counted_as};
use crate::world::objects::Objects;
use crate::world::objects::pods::{PodPause, Slot, late_from_ms};
use crate::world::objects::reported::{Reported, full_name};
use dovetail_translate::{
    NotYet, held, kept_away_by, pod_with_devices, said_run_time, started_ms, whole_devices,
};

/// What a pod holds or wants, by the objects.
#[derive(Debug)]
pub(crate) enum PodReading {
    /// It neither holds nor wants anything.
    Nothing,
    /// It is ours to place and cannot be.
    Refused(NotYet),
    /// It is ours to place.
    Waiting(Box<Requirement>),
    /// The engine has placed it and the watch does not show it yet.
    Assumed(Box<Holding>),
    /// It is ours and on a node that is there.
    Running(Box<Holding>),
    /// It holds something that the engine did not give out.
    Foreign(Box<Holding>),
}

/// What a pod holds or wants, by the objects.
pub(crate) fn standing(objects: &Objects, slot: Slot) -> PodReading {
    let entry = objects.pods.get(slot);
    let pod = &*entry.pod;
    if entry.is_assumed_gone {
        return PodReading::Nothing;
    }
    if objects.is_elsewhere(pod) {
        let is_ours = objects.is_ours(pod) || objects.may_be_preempted(entry);
        let ours = is_ours && !entry.is_unreadable && objects.nodes.is_there(&pod.node);
        return match entry.id.filter(|_| ours) {
            Some(id) => PodReading::Running(Box::new(running(objects, slot, id))),
            None => PodReading::Foreign(Box::new(foreign(objects, slot))),
        };
    }
    if let Some(PodPause { why }) =
        entry.held_back.as_ref().filter(|_| objects.would_take_part(entry))
    {
        return why.clone().map_or(PodReading::Nothing, PodReading::Refused);
    }
    if !objects.takes_part(entry) {
        return PodReading::Nothing;
    }
    if let (Some(decision), Some(id)) = (objects.pods.decision_of(entry), entry.id) {
        let node = Arc::clone(&decision.bind.node);
        let held = |owner, phase| Box::new(holding(objects, slot, owner, node, phase));
        return match &entry.reported {
            // The node went, and what it held with it in the engine.
            Reported::Nothing | Reported::Foreign { .. } => {
                let owner = Owner::Foreign(full_name(pod));
                PodReading::Foreign(held(owner, HoldingPhase::Held { expected_end_ms: None }))
            }
            _ => PodReading::Assumed(held(Owner::Pod(id), HoldingPhase::Assumed)),
        };
    }
    match wish(objects, slot) {
        Ok(requirement) => PodReading::Waiting(Box::new(requirement)),
        Err(reason) => PodReading::Refused(reason),
    }
}

/// What a pod that could take a node needs, or why it may not have one.
fn wish(objects: &Objects, slot: Slot) -> Result<Requirement, NotYet> {
    let entry = objects.pods.get(slot);
    objects.descriptions.is_resumed(&entry.pod)?;
    objects.admission(slot)?;
    if let Some(claim) = objects.device_claims.extended_of(&entry.pod.meta.uid) {
        return Err(NotYet::DeviceClaimLeft { claim: claim.meta.name.to_string() });
    }
    if entry.gang.is_none() {
        objects.descriptions.may_start_alone(&entry.pod)?;
    }
    requirement(objects, slot)
}

/// Whether a pod is to have a name in the engine: it waits, or is ours and on a node.
pub(crate) fn wants_id(objects: &Objects, slot: Slot) -> bool {
    let entry = objects.pods.get(slot);
    let pod = &entry.pod;
    let bound = !pod.node.is_empty() && !pod.is_over();
    let is_ours = objects.is_ours(pod) || (bound && objects.may_be_preempted(entry));
    is_ours && !entry.is_unreadable && (bound || objects.takes_part(entry))
}

/// What a pod of ours needs, with what depends on other pods.
pub(crate) fn requirement(objects: &Objects, slot: Slot) -> Result<Requirement, NotYet> {
    let pod = &*objects.pods.get(slot).pod;
    let (facts, rules) = (&objects.facts, &objects.settings.rules);
    let mut requirement = pod_with_devices(pod, facts, rules)?;
    if pod.has_resource_claims {
        let counted_as = counted_as(objects, slot);
        let (conditions, rule) = asked_of_node(objects, slot, counted_as.as_ref())?;
        requirement.node_conditions.extend(conditions);
        requirement.rules.extend(rule);
        if let Some(CountedClaims { selector, units, .. }) = counted_as {
            requirement.counts_into.insert_times(selector, units);
        }
    }
    let labels = objects.namespace_labels(pod);
    let counting = objects.registry.counting(pod, labels);
    requirement.counts_into.extend(counting.iter().map(|name| name.to_string()));
    let terms = objects.registry.keeping_away(pod, labels).into_iter();
    requirement.rules.extend(terms.map(kept_away_by));
    Ok(requirement)
}

fn running(objects: &Objects, slot: Slot, pod: PodId) -> Holding {
    let entry = objects.pods.get(slot);
    let phase = phase(objects, &entry.pod);
    holding(objects, slot, Owner::Pod(pod), (*entry.pod.node).into(), phase)
}

fn foreign(objects: &Objects, slot: Slot) -> Holding {
    let pod = &objects.pods.get(slot).pod;
    let node = if pod.node.is_empty() { &pod.nominated_node } else { &pod.node };
    let owner = Owner::Foreign(full_name(pod));
    holding(objects, slot, owner, (**node).into(), phase(objects, pod))
}

/// A pod ends when it says how long it runs. Until a pod is late with leaving, it leaves soon. When
/// it is late, the time that has passed says so, and its room is not counted on any more.
fn phase(objects: &Objects, pod: &Pod) -> HoldingPhase {
    match late_from_ms(pod) {
        None => {
            let said = said_run_time([pod]);
            let end_ms = |run_ms: u64| started_ms(pod).saturating_add(run_ms);
            HoldingPhase::Held { expected_end_ms: said.map(|said| end_ms(said.p50_ms)) }
        }
        Some(from_ms) => {
            let late = Some(from_ms).filter(|from_ms| *from_ms <= objects.now_ms);
            HoldingPhase::Releasing { expected_end_ms: late }
        }
    }
}

pub(crate) fn holding(
    objects: &Objects,
    slot: Slot,
    owner: Owner,
    node: NodeName,
    phase: HoldingPhase,
) -> Holding {
    let pod = &objects.pods.get(slot).pod;
    let held = held(pod, &objects.facts, &objects.settings.rules);
    let mut counts_into = held.counts_into;
    let counting = objects.registry.counting(pod, objects.namespace_labels(pod));
    counts_into.extend(counting.iter().map(|name| name.to_string()));
    if let Some(CountedClaims { selector, units, .. }) = counted_as(objects, slot) {
        counts_into.insert_times(selector, units);
    }
    let memory_bytes = objects.nodes.device_memory_bytes(&node);
    Holding {
        id: HoldingId(0),
        node,
        owner,
        phase,
        reservation: None,
        resources: held.resources,
        devices: whole_devices(held.devices, memory_bytes),
        counts_into,
        attachments: held.attachments,
    }
}
