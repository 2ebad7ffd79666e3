//! Those that wait without being in line: gangs that lack members, pods that are left untouched,
//! and pods that have their place and cannot start yet.

use std::collections::BTreeMap;

use dovetail_cluster::world::{Gathering, World, waits_for_members};
use dovetail_objects::Pod;
use serde::Serialize;

use crate::status::{
    COULD_NOT_START, RESERVED_FOR_LOST, WAITING_FOR_DEVICES, WAITING_FOR_QUOTA,
    WAITING_FOR_RESERVATION, WAITING_FOR_VOLUMES, WaitingReason,
};

/// A gang or a pod that nothing is decided about as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotInLine {
    /// Name of the gang, or of the pod if it is in none.
    pub name: String,
    /// The queue it would be in.
    pub queue: String,
    /// Its pods that wait.
    pub pods: usize,
    /// `WaitingForMembers`, `LeftUntouched`, `SchedulerError`, `WaitingForVolumes`,
    /// `WaitingForDevices`, `WaitingForReservation` or `WaitingForQuota`.
    pub reason: &'static str,
    /// Why, for people.
    pub message: String,
}

/// All of them, by name.
pub(super) fn not_in_line(world: &World) -> Vec<NotInLine> {
    let queue =
        |namespace: &str, pod: &str| world.queues().of_pod(namespace, pod).unwrap_or_default();
    let mut all: Vec<NotInLine> = Vec::new();
    for look in world.gangs().short_gangs() {
        let Ok(terms) = &look.terms else { continue };
        let waiting =
            look.members.iter().filter(|member| member.node.is_none() && member.refused.is_none());
        let Some(first) = waiting.clone().next().map(|member| &member.pod.meta) else { continue };
        let name = look.name.to_string();
        let (present, min) = (look.present, terms.min);
        let (gated, refused, retried) = (look.gated, look.refused, look.retried);
        all.push(NotInLine {
            queue: queue(&first.namespace, &first.name),
            pods: waiting.count(),
            reason: "WaitingForMembers",
            message: waits_for_members(&name, Gathering { present, min, gated, refused, retried }),
            name,
        });
    }
    // Pods of one gang mostly have the same against them.
    let mut untouched: BTreeMap<(String, String), NotInLine> = BTreeMap::new();
    for (pod, why) in
        world.pods().refused().filter(|(pod, _)| pod.node.is_empty() && !pod.is_over())
    {
        let (namespace, name) = (&*pod.meta.namespace, &*pod.meta.name);
        let gang = world.pods().gang_of(namespace, name).map(ToString::to_string);
        let (shown, message) =
            (gang.unwrap_or_else(|| format!("{namespace}/{name}")), why.to_string());
        let new = || NotInLine {
            name: shown.clone(),
            queue: queue(namespace, name),
            pods: 0,
            reason: WaitingReason::left_untouched(why).word(),
            message: message.clone(),
        };
        untouched.entry((shown.clone(), message.clone())).or_insert_with(new).pods += 1;
    }
    all.extend(untouched.into_values());
    all.extend(not_started(world));
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// Pods that fit and that a scheduler has not started, as they say themselves: those of one gang
/// together.
fn not_started(world: &World) -> Vec<NotInLine> {
    let mut all: BTreeMap<(String, &'static str), NotInLine> = BTreeMap::new();
    let has_deleted_queues = !world.queues().missing().is_empty();
    for pod in world.pods().pods_to_start() {
        let below_deleted = || waits_for_quota(pod).filter(|_| has_deleted_queues);
        let Some((reason, message)) = why_not_started(pod).or_else(below_deleted) else { continue };
        let (namespace, name) = (&*pod.meta.namespace, &*pod.meta.name);
        let gang = world.pods().gang_of(namespace, name).map(ToString::to_string);
        let shown = gang.unwrap_or_else(|| format!("{namespace}/{name}"));
        let new = || NotInLine {
            name: shown.clone(),
            queue: world.queues().of_pod(namespace, name).unwrap_or_default(),
            pods: 0,
            reason,
            message: message.to_owned(),
        };
        all.entry((shown.clone(), reason)).or_insert_with(new).pods += 1;
    }
    all.into_values().collect()
}

/// Why a scheduler has not started a pod that has its place, as the pod says.
pub(super) fn why_not_started(pod: &Pod) -> Option<(&'static str, &str)> {
    let said = pod.unscheduled.as_ref()?;
    let words = [COULD_NOT_START, WAITING_FOR_VOLUMES, WAITING_FOR_DEVICES];
    let word = words.into_iter().find(|word| *said.reason == **word);
    let word = word.or_else(|| waits_for_reservation(pod).map(|_| WAITING_FOR_RESERVATION))?;
    Some((word, &said.message))
}

/// What a pod says of the bound of a queue: what deleted ones were given, a scheduler may know.
pub(super) fn waits_for_quota(pod: &Pod) -> Option<(&'static str, &str)> {
    let said = pod.unscheduled.as_ref()?;
    (*said.reason == *WAITING_FOR_QUOTA).then_some((WAITING_FOR_QUOTA, &said.message))
}

/// What a pod says of room that a scheduler keeps for others: which that is, is in no object.
pub(super) fn waits_for_reservation(pod: &Pod) -> Option<&str> {
    let said = pod.unscheduled.as_ref()?;
    let is_it =
        *said.reason == *WAITING_FOR_RESERVATION && said.message.starts_with(RESERVED_FOR_LOST);
    is_it.then_some(&*said.message)
}
