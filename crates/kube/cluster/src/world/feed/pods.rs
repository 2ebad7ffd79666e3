//! What is reported to the engine when a pod holds or wants something else than was reported.

use std::sync::Arc;

use dovetail_model::{Event, Holding, NodeName, Owner, Requirement};

use super::jobs::QueuePosition;
use super::{Feed, replaces_another};
use crate::world::objects::Objects;
use crate::world::objects::pods::Slot;
use crate::world::objects::reported::{Fingerprint, Reported};
use crate::world::readings::standing::{PodReading, standing, wants_id};
use dovetail_translate::{NotYet, said_checkpoint_ms, started_ms};

impl Feed {
    /// Compares what a pod holds or wants with what was reported, and reports the difference.
    pub(crate) fn settle_pod(&mut self, objects: &mut Objects, slot: Slot) {
        self.name_pod(objects, slot);
        let standing = standing(objects, slot);
        let gang = objects.pods.get(slot).gang.clone();
        let is_member = gang.is_some();
        objects.dirty.gangs.extend(gang);
        if !(is_member && matches!(standing, PodReading::Waiting(_))) {
            let entry = objects.pods.get_mut(slot);
            (entry.wish, entry.announced_wait) = (None, None);
            self.refuse(objects, slot, refusal(&standing));
        }
        match standing {
            PodReading::Nothing | PodReading::Refused(_) => self.release(objects, slot),
            PodReading::Waiting(requirement) if is_member => self.wish(objects, slot, *requirement),
            PodReading::Waiting(requirement) => {
                let requirement = self.requirements.intern(*requirement);
                self.submit(objects, slot, requirement);
            }
            PodReading::Assumed(holding) => self.assumed(objects, slot, &holding),
            PodReading::Running(holding) => self.running(objects, slot, *holding),
            PodReading::Foreign(holding) => self.foreign(objects, slot, *holding),
        }
    }

    /// Sees to it that a pod has the name in the engine that goes with where it is. Waiting members
    /// of gangs get theirs from the gang.
    fn name_pod(&mut self, objects: &mut Objects, slot: Slot) {
        if !wants_id(objects, slot) {
            return;
        }
        let entry = objects.pods.get(slot);
        let bound = !entry.pod.node.is_empty();
        let is_decided = entry.reported.runs() && entry.reported.is_on(&entry.pod.node);
        let is_astray = entry.is_in_job && !is_decided;
        if bound && (is_astray || self.counted.counts_elsewhere(objects, slot)) {
            // It went elsewhere than the engine decided for its gang, or came into another queue:
            // from here on it runs by itself.
            self.end(objects, slot);
            self.note(objects, slot, Reported::Nothing);
            self.set_own_job(objects, slot, QueuePosition::Behind);
        } else if entry.id.is_none() && (bound || entry.gang.is_none()) {
            self.set_own_job(objects, slot, QueuePosition::Behind);
        }
    }

    /// A member of a gang that has no node: the gang reports what follows.
    fn wish(&mut self, objects: &mut Objects, slot: Slot, requirement: Requirement) {
        let requirement = self.requirements.intern(requirement);
        let entry = objects.pods.get_mut(slot);
        entry.wish = Some(requirement);
        if entry.reported.node().is_none() {
            return;
        }
        self.end(objects, slot);
        self.note(objects, slot, Reported::Nothing);
    }

    /// The engine has decided it; only what counts it may have changed since.
    fn assumed(&mut self, objects: &mut Objects, slot: Slot, holding: &Holding) {
        let held = Fingerprint::of(holding);
        let entry = objects.pods.get_mut(slot);
        let Reported::Assumed { held: known, .. } = &mut entry.reported else { return };
        let before = std::mem::replace(known, held);
        self.events.held.extend(changed(before, held, holding));
    }

    fn running(&mut self, objects: &mut Objects, slot: Slot, holding: Holding) {
        let held = Fingerprint::of(&holding);
        let node = Arc::clone(&holding.node);
        let entry = objects.pods.get(slot);
        let id = entry.id.expect("what runs has a name");
        let known = match &entry.reported {
            Reported::Assumed { node: decided, held, .. } if *decided == node => {
                self.events.held.push(Event::Confirmed { pod: id });
                Some((*held, None))
            }
            Reported::Running { node: known, held, checkpoint_ms } if *known == node => {
                Some((*held, *checkpoint_ms))
            }
            _ => None,
        };
        let checkpoint_ms = said_checkpoint_ms(&entry.pod);
        match known {
            Some((known, before_ms)) => {
                self.events.held.extend(changed(known, held, &holding));
                let newer = checkpoint_ms.filter(|at_ms| Some(*at_ms) > before_ms);
                let event = |at_ms| Event::Checkpointed { job: id.job, at_ms };
                self.events.held.extend(newer.map(event));
            }
            None if self.events.unheard => self.counted.count(objects, slot),
            None => {
                self.end(objects, slot);
                let start_ms = started_ms(&objects.pods.get(slot).pod);
                let job = Box::new(self.running_job(objects, slot, id.job, start_ms));
                self.counted.count(objects, slot);
                self.events.held.push(Event::Adopted { job, holdings: vec![holding] });
            }
        }
        objects.pods.unassign(slot);
        self.note(objects, slot, Reported::Running { node, held, checkpoint_ms });
        self.note_apart(objects, slot);
    }

    /// Notes that a pod runs that replaced another of its gang.
    fn note_apart(&mut self, objects: &Objects, slot: Slot) {
        if is_apart(objects, slot) {
            self.apart.extend(objects.pods.get(slot).gang.clone());
        }
    }

    fn foreign(&mut self, objects: &mut Objects, slot: Slot, holding: Holding) {
        let held = Fingerprint::of(&holding);
        let node = Arc::clone(&holding.node);
        // One that is only decided is decided until the watch shows where it is.
        if !objects.pods.get(slot).pod.node.is_empty() {
            objects.pods.unassign(slot);
        }
        match &objects.pods.get(slot).reported {
            Reported::Foreign { node: known, held: same } if *known == node && *same == held => {
                return;
            }
            Reported::Foreign { node: known, held: same }
                if *known == node && same.amounts == held.amounts =>
            {
                self.events.held.push(counts_changed(&holding));
            }
            Reported::Foreign { .. } => {
                self.events.held.push(Event::ForeignHeld(Box::new(holding)))
            }
            _ => {
                self.end(objects, slot);
                self.events.held.push(Event::ForeignHeld(Box::new(holding)));
            }
        }
        self.note(objects, slot, Reported::Foreign { node, held });
    }

    /// Notes that the engine decided to run a pod.
    pub(crate) fn note_assumed(
        &mut self,
        objects: &mut Objects,
        slot: Slot,
        node: &NodeName,
        requirement: Arc<Requirement>,
    ) {
        let PodReading::Assumed(holding) = standing(objects, slot) else { return };
        let (node, held) = (Arc::clone(node), Fingerprint::decided(&holding, &requirement));
        self.note(objects, slot, Reported::Assumed { node, held, requirement });
    }
}

/// Whether a pod is in place of a lost one of its gang, and not in its job.
pub(crate) fn is_apart(objects: &Objects, slot: Slot) -> bool {
    let entry = objects.pods.get(slot);
    !entry.is_in_job && entry.id.is_some_and(|id| replaces_another(objects, slot, id.job))
}

fn refusal(standing: &PodReading) -> Option<NotYet> {
    match standing {
        PodReading::Refused(reason) => Some(reason.clone()),
        _ => None,
    }
}

/// The event for a holding that was another before.
fn changed(before: Fingerprint, now: Fingerprint, holding: &Holding) -> Option<Event> {
    if before.amounts != now.amounts {
        Some(Event::HeldChanged(Box::new(holding.clone())))
    } else if before.counts != now.counts {
        Some(counts_changed(holding))
    } else {
        None
    }
}

fn counts_changed(holding: &Holding) -> Event {
    let owner: Owner = holding.owner.clone();
    Event::CountsChanged { owner, counts_into: holding.counts_into.clone() }
}
