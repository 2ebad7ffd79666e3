//! What the engine is told when pods stand differently than it was told before.

use std::sync::Arc;

use dovetail_model::{Event, Holding, JobId, NodeName, Owner, Requirement};

use super::World;
use super::pods::Slot;
use super::report::Report;
use super::standing::{Fingerprint, Standing, Told, full_name, only_pod};

/// Events in the order in which they must be told: what frees, nodes, what holds, what waits.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) freed: Vec<Event>,
    pub(super) nodes: Vec<Event>,
    pub(super) held: Vec<Event>,
    pub(super) waiting: Vec<Event>,
    /// Nobody hears them: an engine learns what is told before it starts from the snapshot.
    pub(super) unheard: bool,
}

impl World {
    /// Compares what is marked with what was told, and tells the difference.
    pub(super) fn settle(&mut self) -> Vec<Event> {
        let mut events = Events { freed: std::mem::take(&mut self.farewell), ..Events::default() };
        for name in std::mem::take(&mut self.dirty.nodes) {
            self.settle_node(&name, &mut events);
        }
        for slot in std::mem::take(&mut self.dirty.pods) {
            self.settle_pod(slot, &mut events);
        }
        for name in std::mem::take(&mut self.dirty.attachments) {
            self.settle_attachment(&name, &mut events);
        }
        let Events { freed, nodes, held, waiting, .. } = events;
        freed.into_iter().chain(nodes).chain(held).chain(waiting).collect()
    }

    /// Where everything stands when the first lists are complete; the engine learns it by the snapshot.
    pub(super) fn open(&mut self) {
        let unheard = || Events { unheard: true, ..Events::default() };
        for name in std::mem::take(&mut self.dirty.nodes) {
            self.settle_node(&name, &mut unheard());
        }
        let mut slots: Vec<Slot> = std::mem::take(&mut self.dirty.pods).into_iter().collect();
        let age = |slot: &Slot| {
            let meta = &self.pods.get(*slot).pod.meta;
            (meta.created_ms, meta.namespace.clone(), meta.name.clone())
        };
        slots.sort_by_cached_key(age);
        for slot in slots {
            self.settle_pod(slot, &mut unheard());
        }
        for name in std::mem::take(&mut self.dirty.attachments) {
            self.settle_attachment(&name, &mut unheard());
        }
    }

    fn settle_pod(&mut self, slot: Slot, events: &mut Events) {
        if self.wants_job(slot) && self.pods.get(slot).job.is_none() {
            let job = JobId(self.next_job);
            self.next_job += 1;
            self.jobs.insert(job, slot);
            self.pods.get_mut(slot).job = Some(job);
        }
        let standing = self.standing(slot);
        self.note_refusal(slot, &standing);
        match standing {
            Standing::Nothing | Standing::Refused(_) => self.tell_nothing(slot, events),
            Standing::Waiting(requirement) => self.tell_waiting(slot, *requirement, events),
            Standing::Assumed(holding) => self.tell_assumed(slot, &holding, events),
            Standing::Running(holding) => self.tell_running(slot, *holding, events),
            Standing::Foreign(holding) => self.tell_foreign(slot, *holding, events),
        }
    }

    /// A pod that the engine need not know, or no longer.
    pub(super) fn tell_nothing(&mut self, slot: Slot, events: &mut Events) {
        self.tell_end(slot, events);
        self.retell(slot, Told::Nothing);
        self.pods.get_mut(slot).assumed = None;
        self.pods.index(slot);
    }

    /// Takes back whatever was told.
    fn tell_end(&mut self, slot: Slot, events: &mut Events) {
        let entry = self.pods.get(slot);
        let job = || entry.job.expect("what waits or runs has a job");
        match &entry.told {
            Told::Nothing => {}
            Told::Waiting { .. } => events.freed.push(Event::Ended { job: job() }),
            Told::Assumed { .. } | Told::Running { .. } => {
                events.freed.push(Event::PodEnded { pod: only_pod(job()) });
            }
            Told::Foreign { .. } => {
                events.freed.push(Event::ForeignReleased { name: full_name(&entry.pod) });
            }
        }
    }

    fn tell_waiting(&mut self, slot: Slot, requirement: Requirement, events: &mut Events) {
        let requirement = self.intern(requirement);
        let entry = self.pods.get(slot);
        let priority = entry.pod.priority;
        let id = entry.job.expect("what waits has a job");
        let told = Told::Waiting { requirement: Arc::clone(&requirement), priority };
        match &entry.told {
            Told::Waiting { requirement: known, priority: same } => {
                if *known == requirement && *same == priority {
                    return;
                }
                let job = self.job(slot, id, requirement);
                events.waiting.push(Event::JobChanged(Box::new(job)));
            }
            _ => {
                self.tell_end(slot, events);
                let job = self.job(slot, id, requirement);
                events.waiting.push(Event::Submitted(Box::new(job)));
            }
        }
        self.retell(slot, told);
    }

    /// The engine has decided it; only what counts it may have changed since.
    fn tell_assumed(&mut self, slot: Slot, holding: &Holding, events: &mut Events) {
        let held = Fingerprint::of(holding);
        let entry = self.pods.get_mut(slot);
        let Told::Assumed { held: known, .. } = &mut entry.told else { return };
        let changed = std::mem::replace(known, held);
        if changed.amounts != held.amounts {
            events.held.push(Event::HeldChanged(Box::new(holding.clone())));
        } else if changed.counts != held.counts {
            events.held.push(counts_changed(holding));
        }
    }

    fn tell_running(&mut self, slot: Slot, holding: Holding, events: &mut Events) {
        let held = Fingerprint::of(&holding);
        let node = Arc::clone(&holding.node);
        let entry = self.pods.get(slot);
        let id = entry.job.expect("what runs has a job");
        let known = match &entry.told {
            Told::Assumed { node: decided, held, .. } if *decided == node => {
                events.held.push(Event::Confirmed { pod: only_pod(id) });
                Some(*held)
            }
            Told::Running { node: known, held } if *known == node => Some(*held),
            _ => None,
        };
        match known {
            Some(known) if known == held => {}
            Some(known) if known.amounts == held.amounts => {
                events.held.push(counts_changed(&holding))
            }
            Some(_) => events.held.push(Event::HeldChanged(Box::new(holding))),
            None if events.unheard => {}
            None => {
                self.tell_end(slot, events);
                let start_ms = self.pods.get(slot).pod.meta.created_ms;
                let job = Box::new(self.running_job(slot, id, start_ms));
                events.held.push(Event::Adopted { job, holdings: vec![holding] });
            }
        }
        self.pods.get_mut(slot).assumed = None;
        self.retell(slot, Told::Running { node, held });
    }

    fn tell_foreign(&mut self, slot: Slot, holding: Holding, events: &mut Events) {
        let held = Fingerprint::of(&holding);
        let node = Arc::clone(&holding.node);
        match &self.pods.get(slot).told {
            Told::Foreign { node: known, held: same } if *known == node && *same == held => return,
            Told::Foreign { node: known, held: same }
                if *known == node && same.amounts == held.amounts =>
            {
                events.held.push(counts_changed(&holding));
            }
            Told::Foreign { .. } => events.held.push(Event::ForeignHeld(Box::new(holding))),
            _ => {
                self.tell_end(slot, events);
                events.held.push(Event::ForeignHeld(Box::new(holding)));
            }
        }
        self.pods.get_mut(slot).assumed = None;
        self.retell(slot, Told::Foreign { node, held });
    }

    /// Notes that the engine decided to run a pod.
    pub(super) fn note_assumed(
        &mut self,
        slot: Slot,
        node: &NodeName,
        requirement: Arc<Requirement>,
    ) {
        let Standing::Assumed(holding) = self.standing(slot) else { return };
        let (node, held) = (Arc::clone(node), Fingerprint::of(&holding));
        self.retell(slot, Told::Assumed { node, held, requirement });
    }

    /// Notes what was told, and which attached volumes are accounted for by it.
    pub(super) fn retell(&mut self, slot: Slot, told: Told) {
        self.account_attachments(slot, &told);
        let entry = self.pods.get_mut(slot);
        entry.told = told;
    }

    /// What is refused is said once.
    fn note_refusal(&mut self, slot: Slot, standing: &Standing) {
        let refused = match standing {
            Standing::Refused(reason) => Some(reason.clone()),
            _ => None,
        };
        let entry = self.pods.get_mut(slot);
        if entry.refused == refused {
            return;
        }
        entry.refused.clone_from(&refused);
        let meta = &entry.pod.meta;
        self.reports.extend(refused.map(|reason| Report::Refused {
            namespace: meta.namespace.to_string(),
            name: meta.name.to_string(),
            uid: meta.uid.to_string(),
            reason,
        }));
    }
}

fn counts_changed(holding: &Holding) -> Event {
    let owner: Owner = holding.owner.clone();
    Event::CountsChanged { owner, counts_into: holding.counts_into.clone() }
}
