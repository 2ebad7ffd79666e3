//! The condition `PodScheduled` of pods that wait.
//!
//! Autoscalers buy nodes for pods whose condition is false for the reason `Unschedulable`. So that
//! reason is given only where new nodes would help: the job is within its quota and next in
//! scheduling order, and no node can take it, not even when all that is terminating has gone, which
//! the caller has checked. Every other pod waits for something that no node brings, and its
//! condition says for what.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_cluster::queues::{amounts, shown_name};
use dovetail_cluster::world::{
    Gathering, group_waits_for_volumes, waits_for_devices, waits_for_members, waits_for_volumes,
    waits_for_volumes_of_others,
};
use dovetail_model::{
    Axis, BoundBy, Job, JobId, NodeId, NodeName, Owner, PendingReason, PodSet, Queue,
};
use dovetail_plan::explain::Refusal;
use dovetail_plan::{Engine, View};
use dovetail_translate::{NotYet, Rules};
use dovetail_units::time::time;

use crate::schedule::StartForecast;

use super::apart::what_keeps_apart;
use super::near::Near;
use super::reason::{none_is_available, reason as words_of};

/// Why a pod waits, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its job is known to the engine, which has not placed it for this reason.
    Pending(PendingReason),
    /// A node is decided for it, and its claims get their volumes there first.
    Volumes,
    /// A node is decided for it, and devices of its claims become ready first.
    Devices,
    /// It was to start and could not, and is tried again.
    Failed,
    /// It is left untouched until its owner changes it, or what it names.
    LeftUntouched,
}

/// Why a pod waits: the condition `PodScheduled` with status `False`. All pods of a job have the
/// same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingReason {
    /// Why, in one word.
    pub reason: Reason,
    /// Why, for people.
    pub message: String,
}

impl WaitingReason {
    /// What the pods of a gang say that is not all there.
    pub fn for_members(gang: &str, gathering: Gathering) -> Self {
        Self::pending(PendingReason::WaitingForMembers, waits_for_members(gang, gathering))
    }

    /// What a pod says whose devices become ready before it starts.
    pub fn for_devices(devices: &[String], node: &str) -> Self {
        Self { reason: Reason::Devices, message: waits_for_devices(devices, node) }
    }

    /// What a pod says whose claims get their volumes before it starts.
    pub fn for_volumes(claims: &[String], node: &str) -> Self {
        Self { reason: Reason::Volumes, message: waits_for_volumes(claims, node) }
    }

    /// What a pod says that starts with others whose claims get their volumes before.
    pub fn for_volumes_of_others(claims: &[String], node: &str) -> Self {
        Self { reason: Reason::Volumes, message: waits_for_volumes_of_others(claims, node) }
    }

    /// What a group says whose claims get their volumes before its pods start.
    pub fn of_group_for_volumes(claims: &[String]) -> Self {
        Self { reason: Reason::Volumes, message: group_waits_for_volumes(claims) }
    }

    /// What a pod says that has its place once others have gone that have begun to.
    pub fn for_those_that_end() -> Self {
        let message = "it starts when terminating pods are gone".to_owned();
        Self::pending(PendingReason::WaitingForTurn, message)
    }

    /// What a pod says whose victims write a checkpoint by a time, and run until then.
    pub fn for_checkpoint(at_ms: u64) -> Self {
        let message = format!(
            "dovetail preempts no pods for it before {}: the pods to preempt write a checkpoint by then",
            time(at_ms)
        );
        Self::pending(PendingReason::WaitingForTurn, message)
    }

    /// What a pod says that would start in room that is reserved for what a gang, as it is shown,
    /// has lost.
    pub fn for_reservation(gang: &str) -> Self {
        let message = format!(
            "{RESERVED_FOR_LOST} {gang} has lost: this pod starts when those pods have started \
             elsewhere, or have not been recreated in time"
        );
        Self::pending(PendingReason::WaitingForReservation, message)
    }

    /// What a pod says whose job waits.
    pub fn pending(reason: PendingReason, message: String) -> Self {
        Self { reason: Reason::Pending(reason), message }
    }

    /// What a pod says that could not start, or is left untouched and said something else before.
    pub fn left_untouched(why: &NotYet) -> Self {
        if why.is_for_its_turn() {
            return Self::pending(PendingReason::WaitingForTurn, why.to_string());
        }
        // Autoscalers may have nodes with such devices.
        if matches!(why, NotYet::NoDevices { .. }) {
            return Self::pending(PendingReason::Unschedulable, why.to_string());
        }
        let reason = if why.is_tried_again() { Reason::Failed } else { Reason::LeftUntouched };
        Self { reason, message: why.to_string() }
    }

    /// The same with when its job is expected to start, as far as a forecast says.
    #[must_use]
    pub fn starting(self, forecast: StartForecast) -> Self {
        let StartForecast { made_ms, p50_ms, p90_ms } = forecast;
        let Some(p50_ms) = p50_ms else { return self };
        let by = match p90_ms {
            Some(p90_ms) if p90_ms != p50_ms => {
                format!("{} (50% probability), by {} (90%)", time(p50_ms), time(p90_ms))
            }
            Some(_) => time(p50_ms),
            None => format!("{} (50% probability)", time(p50_ms)),
        };
        let made = time(made_ms);
        Self {
            message: format!("{}; expected start: by {by}; forecast at {made}", self.message),
            ..self
        }
    }

    /// Whether a new node would help: what autoscalers act on.
    pub fn is_unschedulable(&self) -> bool {
        self.reason == Reason::Pending(PendingReason::Unschedulable)
    }

    /// The word in the condition's `reason`.
    pub fn word(&self) -> &'static str {
        match self.reason {
            Reason::Pending(PendingReason::Unschedulable) => UNSCHEDULABLE,
            Reason::Pending(PendingReason::WaitingForQuota) => WAITING_FOR_QUOTA,
            Reason::Pending(PendingReason::WaitingForTurn) => "WaitingForTurn",
            Reason::Pending(PendingReason::WaitingForReservation) => WAITING_FOR_RESERVATION,
            Reason::Pending(PendingReason::WaitingForMembers) => "WaitingForMembers",
            Reason::Volumes => WAITING_FOR_VOLUMES,
            Reason::Devices => WAITING_FOR_DEVICES,
            Reason::Failed => COULD_NOT_START,
            Reason::LeftUntouched => LEFT_UNTOUCHED,
        }
    }

    /// Whether something went wrong, so that its event is a warning.
    pub fn is_trouble(&self) -> bool {
        self.is_unschedulable() || self.reason == Reason::Failed
    }

    /// Whether it is written only in place of a condition that is out of date: a pod that is left
    /// untouched is not written to without need.
    pub fn only_corrects(&self) -> bool {
        self.reason == Reason::LeftUntouched
    }
}

/// The word of pods and groups that are left untouched.
pub(super) const LEFT_UNTOUCHED: &str = "LeftUntouched";

/// The word of pods that no node takes; kube-scheduler's, which autoscalers act on.
pub const UNSCHEDULABLE: &str = "Unschedulable";

/// The word of pods that were to start and could not; kube-scheduler's.
pub const COULD_NOT_START: &str = "SchedulerError";

/// The word of pods whose claims get their volumes before they start.
pub const WAITING_FOR_VOLUMES: &str = "WaitingForVolumes";

/// The word of pods whose devices become ready before they start.
pub const WAITING_FOR_DEVICES: &str = "WaitingForDevices";

/// The word of pods whose queue, or one above it, would hold more than it may.
pub const WAITING_FOR_QUOTA: &str = "WaitingForQuota";

/// The word of pods for which room is reserved until others have gone, or which wait for room that
/// is reserved for others.
pub const WAITING_FOR_RESERVATION: &str = "WaitingForReservation";

/// How the messages begin of pods that would start in room that is reserved for others: only the
/// scheduler that reserves it knows of it.
pub const RESERVED_FOR_LOST: &str = "the free capacity is reserved for pods that";

/// Whether a word is one that this scheduler writes into pending pods.
pub fn is_own_word(word: &str) -> bool {
    [UNSCHEDULABLE, COULD_NOT_START, LEFT_UNTOUCHED].contains(&word)
        || word.starts_with("WaitingFor")
}

/// A message, and one more sentence after it.
pub(crate) fn with_sentence(message: &str, sentence: &str) -> String {
    let end = if message.ends_with('.') { "" } else { "." };
    format!("{message}{end} {sentence}")
}

/// What the pods of a job say while it is pending for a reason that the engine gave. `nodes` are
/// those of the engine, and `is_stopping` says of a victim whether it is terminating. `None` if the
/// job is not pending.
pub fn waiting(
    engine: &mut Engine,
    job: JobId,
    reason: PendingReason,
    nodes: &[NodeName],
    rules: &Rules,
    is_stopping: impl Fn(&Owner) -> bool,
) -> Option<WaitingReason> {
    let job = engine.job(job).filter(|job| job.start_ms.is_none())?.clone();
    let because = |reason, message: String| Some(WaitingReason::pending(reason, message));
    match reason {
        PendingReason::Unschedulable => {}
        PendingReason::WaitingForQuota => {
            return because(reason, at_its_bound(engine, &job, rules));
        }
        PendingReason::WaitingForTurn => {
            let holds = what_its_queue_holds(engine, &job, rules);
            return because(
                reason,
                format!("other jobs that request the same resources go first{holds}"),
            );
        }
        PendingReason::WaitingForReservation => {
            return because(reason, reserved_until(engine, job.id, is_stopping));
        }
        PendingReason::WaitingForMembers => {
            return because(reason, "not all of its pods exist yet".to_owned());
        }
    }
    because(reason, no_room(engine, &job, nodes, rules))
}

/// Which bound of which queue keeps a job waiting, with its numbers.
fn at_its_bound(engine: &mut Engine, job: &Job, rules: &Rules) -> String {
    let Some(block) = engine.list().quota_block(job.id) else {
        let queue = shown_name(&job.queue);
        let recently =
            || format!("queue {queue}, or one of its ancestors, was recently at its quota");
        return at_limits_by_model(engine, job).unwrap_or_else(recently);
    };
    let queue = shown_name(&block.queue);
    let resource = amounts::resource(&block.axis, rules);
    let [most, used, kept, asked] = [block.most, block.used, block.kept, block.asked]
        .map(|amount| amounts::written(&block.axis, amount));
    let bound = match block.by {
        BoundBy::Limit => format!("queue {queue} is limited to {most} {resource}"),
        BoundBy::Guaranteed => {
            format!("queue {queue} is guaranteed {most} {resource} and does not borrow")
        }
    };
    let kept = match block.kept {
        0 => String::new(),
        _ => format!(", {kept} more are reserved for pods that preempt others"),
    };
    let never = match block.asked > block.most {
        true => ", more than the queue may ever use: raise its quota or limit, or request less",
        false => "",
    };
    format!("{bound}: it uses {used}{kept}, and {asked} more would be needed{never}")
}

/// The limits by GPU model of the queue of a job and of those above it that have no room for the
/// job; `None` if all have.
fn at_limits_by_model(engine: &mut Engine, job: &Job) -> Option<String> {
    let known: BTreeMap<String, Queue> =
        engine.list().queues().map(|queue| (queue.name.clone(), queue.clone())).collect();
    let asked = job.min_gpu_milli();
    let (mut full, mut seen) = (Vec::new(), BTreeSet::new());
    let mut next = known.get(&job.queue);
    while let Some(queue) = next.filter(|queue| seen.insert(&*queue.name)) {
        let used = engine.queue_use(&queue.name).used;
        for (model, most) in &queue.limit.by_model {
            let used = used.by_model.get(model).copied().unwrap_or(0);
            if used + asked > *most {
                let axis = Axis::GpuModel(model.clone());
                let [most, used] = [*most, used].map(|amount| amounts::written(&axis, amount));
                let queue = shown_name(&queue.name);
                full.push(format!("queue {queue} is limited to {most} {model} and uses {used}"));
            }
        }
        next = queue.parent.as_ref().and_then(|parent| known.get(parent));
    }
    let unit = if asked == 1_000 { "GPU" } else { "GPUs" };
    let asked = amounts::written(&Axis::Gpu, asked);
    let needed = format!("{asked} more {unit} of one model would be needed");
    (!full.is_empty()).then(|| format!("{}; {needed}", full.join("; ")))
}

/// What the queue of a job holds, if it is one that is described by an object.
fn what_its_queue_holds(engine: &mut Engine, job: &Job, rules: &Rules) -> String {
    if !engine.list().queues().any(|queue| queue.name == job.queue) {
        return String::new();
    }
    let usage = engine.queue_use(&job.queue);
    let (queue, gpus) =
        (shown_name(&job.queue), amounts::written(&Axis::Gpu, usage.used.gpu_milli));
    let share = amounts::percent(usage.share);
    let resource = &rules.device_resource;
    format!("; queue {queue} uses {gpus} {resource} (dominant share of the cluster: {share})")
}

/// For which victims a job waits, and where.
fn reserved_until(engine: &Engine, job: JobId, is_stopping: impl Fn(&Owner) -> bool) -> String {
    let Some(claim) = engine.list().claim_of(job) else {
        return "capacity is reserved for it at a later time".to_owned();
    };
    let mut nodes: Vec<&str> = claim.places.iter().map(|place| &*place.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let others = nodes.len().saturating_sub(3);
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    let shown = nodes.iter().take(3).copied().collect::<Vec<_>>().join(", ");
    let (all, stopping) =
        (claim.awaited.len(), claim.awaited.iter().filter(|owner| is_stopping(owner)).count());
    let until = match (all, all - stopping) {
        (1, 0) => "1 terminating pod is gone".to_owned(),
        (pods, 0) => format!("{pods} terminating pods are gone"),
        (1, _) => "1 pod that is to be evicted for it is gone".to_owned(),
        (pods, _) if stopping == 0 => {
            format!("{pods} pods that are to be evicted for it are gone")
        }
        (pods, _) => {
            format!("{pods} pods are gone ({stopping} terminating, the rest to be evicted for it)")
        }
    };
    format!("capacity is reserved for it on {shown}{more} until {until}")
}

/// What the nodes have against the first of a job's pod sets that not one of them takes, else that
/// they do not take all pods at once.
fn no_room(engine: &mut Engine, job: &Job, nodes: &[NodeName], rules: &Rules) -> String {
    let mut taking = usize::MAX;
    for set in job.pod_sets.iter().filter(|set| set.min > set.present) {
        let looked = look(engine, set, nodes);
        let fits = looked.iter().filter(|node| node.refusals.is_empty()).count();
        if fits == 0 {
            let message = none_is_available(looked.iter().map(|node| node.reasons(rules)));
            return message + &no_node_is_selected(engine, rules);
        }
        taking = taking.min(fits);
    }
    let pods: u32 = job.pod_sets.iter().map(|set| set.min.saturating_sub(set.present)).sum();
    let (all, within) = (nodes.len(), required_levels(job));
    let apart = what_keeps_apart(engine, job);
    let apart = apart.map(|rules| format!("; without {rules} they would start now"));
    let apart = apart.unwrap_or_default();
    if within.is_empty() {
        return format!(
            "0/{all} nodes are available for all {pods} pods at once: {taking} could take one of them{apart}."
        );
    }
    let mut anywhere = job.clone();
    anywhere.topology.required = None;
    anywhere.pod_sets.iter_mut().for_each(|set| set.topology.required = None);
    let would = match engine.ask().what_if_job(&anywhere, &View::Now).ok().flatten() {
        Some(_) => "without that requirement they would start now",
        None => "nor would they start without that requirement",
    };
    format!(
        "0/{all} nodes are available for all {pods} pods at once within one {within}, as they require: \
         {taking} could take one of them; {would}{apart}."
    )
}

/// The topology levels that a job and its pod sets must not leave.
fn required_levels(job: &Job) -> String {
    let of_sets = job.pod_sets.iter().filter_map(|set| set.topology.required.as_deref());
    let all: BTreeSet<&str> = job.topology.required.as_deref().into_iter().chain(of_sets).collect();
    all.into_iter().collect::<Vec<_>>().join(", one ")
}

/// A sentence about settings that leave no node for anybody; empty if they leave some, or there is
/// no node.
fn no_node_is_selected(engine: &Engine, rules: &Rules) -> String {
    let mut nodes = (0..engine.supply().node_slots() as u32)
        .filter_map(|slot| engine.supply().node(NodeId(slot)));
    let has_any = engine.supply().node_slots() > 0 && nodes.clone().next().is_some();
    if !has_any || nodes.any(|node| rules.selects(|label| node.label(label))) {
        return String::new();
    }
    format!(
        " No node has the labels that node_selector in dovetail.toml requires ({}).",
        rules.selector()
    )
}

/// What one node has against a pod.
pub(super) struct Against {
    /// Everything; empty if it would take it.
    pub(super) refusals: Vec<Refusal>,
    /// That it is not where the pod's gang is, if that is so: nothing else matters then.
    pub(super) outside: Option<String>,
}

impl Against {
    /// In kube-scheduler's words, where it has some.
    fn reasons(&self, rules: &Rules) -> BTreeSet<Cow<'static, str>> {
        match &self.outside {
            Some(outside) => [Cow::Owned(outside.clone())].into(),
            None => self.refusals.iter().map(|refusal| words_of(refusal, rules)).collect(),
        }
    }
}

/// Checks all nodes for one more pod of a set.
pub(super) fn look(engine: &mut Engine, set: &PodSet, nodes: &[NodeName]) -> Vec<Against> {
    let requirement = Arc::clone(&set.requirement);
    let near = Near::of(&requirement);
    let inside = near.as_ref().map(|near| (near.nodes(engine), near.reason()));
    let against = |node: &NodeName| {
        let refusals = engine.ask().refusals(&requirement, node)?;
        let outside = inside.as_ref().filter(|(inside, _)| !inside.contains(node));
        Some(Against { refusals, outside: outside.map(|(_, reason)| reason.clone()) })
    };
    nodes.iter().filter_map(against).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_without_devices_is_unschedulable_and_one_that_is_not_understood_is_left() {
        let of = |why: NotYet| WaitingReason::left_untouched(&why);
        let none = of(NotYet::NoDevices { problem: "1 in use".to_owned() });
        assert_eq!(none.reason, Reason::Pending(PendingReason::Unschedulable));
        assert!(!none.only_corrects() && none.message.ends_with("1 in use"), "{none:?}");
        let left = of(NotYet::DeviceClaimNotUnderstood { problem: "x".to_owned() });
        assert!(left.only_corrects(), "{left:?}");
    }
}
