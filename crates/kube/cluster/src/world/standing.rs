//! Where a pod stands: what the objects alone say, and what the engine was told.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use dovetail_model::{
    Holding, HoldingId, Job, JobId, NodeName, Owner, Phase, PodId, QueueName, Requirement,
};
use dovetail_objects::Pod;

use super::World;
use super::pods::{Pause, PodEntry, Slot, late_from_ms};
use crate::translate::{
    NotYet, held, kept_away_by, pod as translated, preemption_rules, whole_devices,
};

/// Where a pod stands by the objects.
#[derive(Debug)]
pub(super) enum Standing {
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

/// What the engine was told.
#[derive(Debug, Default, PartialEq)]
pub(super) enum Told {
    /// Nothing, or that it is gone.
    #[default]
    Nothing,
    /// A job of this pod alone waits.
    Waiting {
        requirement: Arc<Requirement>,
        priority: i32,
        queue: QueueName,
        kept_room: BTreeSet<String>,
    },
    /// The job of its gang waits, or is about to.
    Member { requirement: Arc<Requirement> },
    /// The engine decided it itself.
    Assumed { node: NodeName, held: Fingerprint, requirement: Arc<Requirement> },
    /// A job runs.
    Running { node: NodeName, held: Fingerprint },
    /// Somebody else holds something.
    Foreign { node: NodeName, held: Fingerprint },
}

/// What is held, in brief: equal if nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// Of everything but the counts.
    pub(super) amounts: u64,
    /// Of the selectors that count it.
    pub(super) counts: u64,
}

impl Fingerprint {
    pub(super) fn of(holding: &Holding) -> Self {
        let releasing = match holding.phase {
            Phase::Releasing { expected_end_ms } => Some(expected_end_ms),
            _ => None,
        };
        let Holding { resources, devices, attachments, counts_into, .. } = holding;
        Self {
            amounts: hash(&(resources, devices, attachments, releasing)),
            counts: hash(counts_into),
        }
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Namespace and name, as people write them.
pub(super) fn full_name(pod: &Pod) -> String {
    format!("{}/{}", pod.meta.namespace, pod.meta.name)
}

/// The only pod of a job of one pod.
pub(super) fn only_pod(job: JobId) -> PodId {
    PodId { job, pod_set: 0, ordinal: 0 }
}

impl World {
    /// Whether a pod is ours to place, now or before.
    pub(super) fn is_ours(&self, pod: &Pod) -> bool {
        *pod.scheduler == *self.settings.scheduler
    }

    /// Whether a pod may take part in scheduling: ours, not over, not gated, not held back, and not
    /// about to go before it has a node.
    pub(super) fn takes_part(&self, entry: &PodEntry) -> bool {
        entry.held_back.is_none() && self.would_take_part(entry)
    }

    /// The same if it were not held back.
    fn would_take_part(&self, entry: &PodEntry) -> bool {
        let pod = &entry.pod;
        let goes = pod.meta.is_deleting() && pod.node.is_empty();
        let may = !entry.strange && !goes;
        may && self.is_ours(pod) && !pod.is_over() && !pod.gated
    }

    /// Whether a pod holds something that the engine does not give out: it is on a node, or one is
    /// freed for it by somebody else.
    pub(super) fn is_elsewhere(&self, pod: &Pod) -> bool {
        let nominated =
            !pod.nominated_node.is_empty() && !self.is_ours(pod) && !pod.meta.is_deleting();
        !pod.is_over() && (!pod.node.is_empty() || nominated)
    }

    /// Where a pod stands by the objects.
    pub(super) fn standing(&self, slot: Slot) -> Standing {
        let entry = self.pods.get(slot);
        let pod = &*entry.pod;
        if entry.is_left_out {
            return Standing::Nothing;
        }
        if self.is_elsewhere(pod) {
            let is_ours = self.is_ours(pod) || self.may_be_stopped(slot);
            let ours = is_ours && !entry.strange && self.nodes.is_there(&pod.node);
            return match entry.id.filter(|_| ours) {
                Some(id) => Standing::Running(Box::new(self.running(slot, id))),
                None => Standing::Foreign(Box::new(self.foreign(slot))),
            };
        }
        if let Some(Pause { why }) =
            entry.held_back.as_ref().filter(|_| self.would_take_part(entry))
        {
            return why.clone().map_or(Standing::Nothing, Standing::Refused);
        }
        if !self.takes_part(entry) {
            return Standing::Nothing;
        }
        if let (Some(node), Some(id)) = (&entry.assumed, entry.id) {
            let owner = Owner::Pod(id);
            let held = self.holding(slot, owner, Arc::clone(node), Phase::Assumed);
            return Standing::Assumed(Box::new(held));
        }
        if let Err(reason) = self.is_resumed(pod) {
            return Standing::Refused(reason);
        }
        if let Err(reason) = self.admission(slot) {
            return Standing::Refused(reason);
        }
        if let Err(reason) = self.may_start_alone(slot) {
            return Standing::Refused(reason);
        }
        match self.requirement(pod) {
            Ok(requirement) => Standing::Waiting(Box::new(requirement)),
            Err(reason) => Standing::Refused(reason),
        }
    }

    /// Whether a pod is to have a name in the engine: it waits, or is ours and on a node.
    pub(super) fn wants_id(&self, slot: Slot) -> bool {
        let entry = self.pods.get(slot);
        let pod = &entry.pod;
        let bound = !pod.node.is_empty() && !pod.is_over();
        let is_ours = self.is_ours(pod) || (bound && self.may_be_stopped(slot));
        is_ours && !entry.strange && (bound || self.takes_part(entry))
    }

    /// What a pod of ours needs, with what depends on other pods.
    pub(super) fn requirement(&self, pod: &Pod) -> Result<Requirement, NotYet> {
        let mut requirement = translated(pod, &self.facts, &self.settings.rules)?;
        let labels = self.namespace_labels(pod);
        let counting = self.registry.counting(pod, labels);
        requirement.counts_into.extend(counting.iter().map(|name| name.to_string()));
        let terms = self.registry.keeping_away(pod, labels).into_iter();
        requirement.rules.extend(terms.map(kept_away_by));
        Ok(requirement)
    }

    fn running(&self, slot: Slot, pod: PodId) -> Holding {
        let entry = self.pods.get(slot);
        let phase = self.phase(&entry.pod);
        self.holding(slot, Owner::Pod(pod), (*entry.pod.node).into(), phase)
    }

    fn foreign(&self, slot: Slot) -> Holding {
        let pod = &self.pods.get(slot).pod;
        let node = if pod.node.is_empty() { &pod.nominated_node } else { &pod.node };
        let owner = Owner::Foreign(full_name(pod));
        self.holding(slot, owner, (**node).into(), self.phase(pod))
    }

    /// Until a pod is late with leaving, it leaves soon. When it is late, the time that has passed
    /// says so: nobody counts on its room any more.
    fn phase(&self, pod: &Pod) -> Phase {
        match late_from_ms(pod) {
            None => Phase::Held { expected_end_ms: None },
            Some(from_ms) => {
                let late = Some(from_ms).filter(|from_ms| *from_ms <= self.now_ms);
                Phase::Releasing { expected_end_ms: late }
            }
        }
    }

    pub(super) fn holding(
        &self,
        slot: Slot,
        owner: Owner,
        node: NodeName,
        phase: Phase,
    ) -> Holding {
        let pod = &self.pods.get(slot).pod;
        let held = held(pod, &self.facts, &self.settings.rules);
        let mut counts_into = held.counts_into;
        let counting = self.registry.counting(pod, self.namespace_labels(pod));
        counts_into.extend(counting.iter().map(|name| name.to_string()));
        let memory_bytes = self.nodes.device_memory_bytes(&node);
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

    /// The job of a pod.
    pub(super) fn job(&self, slot: Slot, id: JobId, requirement: Arc<Requirement>) -> Job {
        let pod = &self.pods.get(slot).pod;
        let job = Job::single(id, &full_name(pod), pod.meta.created_ms, requirement);
        let mut preemption = preemption_rules([&**pod]);
        preemption.is_protected |= self.is_spared(slot) || self.replaces_another(slot, id);
        preemption.never_preempts |= self.patient.contains(&id);
        let (queue, kept_room) = (self.queue_of(slot), self.room_for(slot));
        Job { priority: pod.priority, queue, preemption, kept_room, ..job }
    }

    /// The job of a pod that runs.
    pub(super) fn running_job(&mut self, slot: Slot, id: JobId, start_ms: u64) -> Job {
        let requirement = self.would_need(slot);
        let mut job = self.job(slot, id, requirement);
        job.pod_sets[0].present = 1;
        job.start_ms = Some(start_ms);
        job
    }

    /// What a pod that runs would need if it waited, as far as that can be said.
    pub(super) fn would_need(&mut self, slot: Slot) -> Arc<Requirement> {
        let pod = &self.pods.get(slot).pod;
        let requirement = self.requirement(pod).unwrap_or_else(|_| {
            let held = held(pod, &self.facts, &self.settings.rules);
            Requirement { resources: held.resources, ..Requirement::default() }
        });
        self.intern(requirement)
    }

    pub(super) fn namespace_labels(&self, pod: &Pod) -> Option<&dovetail_objects::Labels> {
        self.namespaces.get(&pod.meta.namespace).map(|namespace| &namespace.meta.labels)
    }

    /// Equal requirements are kept once.
    pub(super) fn intern(&mut self, requirement: Requirement) -> Arc<Requirement> {
        if let Some(known) = self.requirements.get(&requirement) {
            return Arc::clone(known);
        }
        if self.requirements.len() >= 2 * self.requirements_in_use.max(64) {
            // order-free: what nobody else holds is dropped, whatever the order.
            self.requirements.retain(|known| Arc::strong_count(known) > 1);
            self.requirements_in_use = self.requirements.len();
        }
        let requirement = Arc::new(requirement);
        self.requirements.insert(Arc::clone(&requirement));
        requirement
    }
}
