//! What the engine is told when pods stand differently than it was told before.

use std::sync::Arc;

use dovetail_model::{Event, Holding, JobId, NodeName, Owner, PodId, Requirement};

use super::World;
use super::pods::Slot;
use super::report::Report;
use super::standing::{Fingerprint, Standing, Told, full_name, only_pod};
use crate::translate::NotYet;

/// Jobs with identities up to this one go ahead of the others of their priority: what completes a
/// gang.
pub(super) const LAST_AHEAD: u64 = 1 << 40;

/// Where a new job stands among the others of its priority and queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Before the others: it completes a gang.
    Ahead,
    /// Behind them.
    Behind,
}

impl Place {
    /// That of what completes a gang, or does not.
    pub(super) fn ahead(is_ahead: bool) -> Self {
        if is_ahead { Self::Ahead } else { Self::Behind }
    }
}

/// How many jobs were named, by where they stand.
#[derive(Debug, Default)]
pub(super) struct JobsNamed {
    ahead: u64,
    behind: u64,
}

impl JobsNamed {
    fn next(&mut self, place: Place) -> JobId {
        let (named, before) = match place {
            Place::Ahead => (&mut self.ahead, 0),
            Place::Behind => (&mut self.behind, LAST_AHEAD),
        };
        *named += 1;
        JobId(before + *named)
    }
}

/// Events in the order in which they must be told: what frees, queues, nodes, what holds, what
/// waits.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) freed: Vec<Event>,
    pub(super) queues: Vec<Event>,
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
        self.settle_queues(&mut events);
        self.settle_labels_of_levels();
        self.settle_nodes(&mut events);
        for slot in std::mem::take(&mut self.dirty.pods) {
            self.settle_pod(slot, &mut events);
        }
        for gang in std::mem::take(&mut self.dirty.gangs) {
            self.settle_gang(&gang, &mut events);
        }
        for name in std::mem::take(&mut self.dirty.attachments) {
            self.settle_attachment(&name, &mut events);
        }
        self.settle_missing_queues(&mut events);
        let Events { freed, queues, nodes, held, waiting, .. } = events;
        let order = [queues, nodes, held, waiting];
        freed.into_iter().chain(order.into_iter().flatten()).collect()
    }

    /// Where everything stands when the first lists are complete; the engine learns it by the
    /// snapshot.
    pub(super) fn open(&mut self) {
        let unheard = || Events { unheard: true, ..Events::default() };
        self.settle_queues(&mut unheard());
        self.place_all_nodes();
        self.settle_labels_of_levels();
        self.settle_nodes(&mut unheard());
        let mut slots: Vec<Slot> = std::mem::take(&mut self.dirty.pods).into_iter().collect();
        let age = |slot: &Slot| {
            let meta = &self.pods.get(*slot).pod.meta;
            let name = || (meta.namespace.clone(), meta.name.clone());
            (meta.created_ms, (!self.settings.is_told_in_order).then(name), *slot)
        };
        slots.sort_by_cached_key(age);
        for slot in slots {
            if let Some(gang) = self.pods.get(slot).gang.clone() {
                self.reserve_job(&gang);
            }
            self.settle_pod(slot, &mut unheard());
        }
        self.recognise_gangs();
        for gang in std::mem::take(&mut self.dirty.gangs) {
            self.settle_gang(&gang, &mut unheard());
        }
        for name in std::mem::take(&mut self.dirty.attachments) {
            self.settle_attachment(&name, &mut unheard());
        }
        self.settle_missing_queues(&mut unheard());
    }

    fn settle_nodes(&mut self, events: &mut Events) {
        let nodes = std::mem::take(&mut self.dirty.nodes);
        nodes.iter().for_each(|name| self.settle_node(name, events));
        if !nodes.is_empty() {
            self.note_selection();
        }
    }

    fn settle_pod(&mut self, slot: Slot, events: &mut Events) {
        self.name_pod(slot, events);
        let standing = self.standing(slot);
        let gang = self.pods.get(slot).gang.clone();
        let is_member = gang.is_some();
        self.dirty.gangs.extend(gang);
        if !(is_member && matches!(standing, Standing::Waiting(_))) {
            let entry = self.pods.get_mut(slot);
            (entry.wish, entry.told_to_wait) = (None, None);
            self.note_refusal(slot, refusal(&standing));
        }
        match standing {
            Standing::Nothing | Standing::Refused(_) => self.tell_nothing(slot, events),
            Standing::Waiting(requirement) if is_member => {
                self.tell_wish(slot, *requirement, events);
            }
            Standing::Waiting(requirement) => {
                let requirement = self.intern(*requirement);
                self.tell_waiting(slot, requirement, events);
            }
            Standing::Assumed(holding) => self.tell_assumed(slot, &holding, events),
            Standing::Running(holding) => self.tell_running(slot, *holding, events),
            Standing::Foreign(holding) => self.tell_foreign(slot, *holding, events),
        }
    }

    /// Sees to it that a pod has the name in the engine that goes with where it is. Waiting members
    /// of gangs get theirs from the gang.
    fn name_pod(&mut self, slot: Slot, events: &mut Events) {
        if !self.wants_id(slot) {
            return;
        }
        let entry = self.pods.get(slot);
        let bound = !entry.pod.node.is_empty();
        let is_decided = match &entry.told {
            Told::Assumed { node, .. } | Told::Running { node, .. } => **node == *entry.pod.node,
            _ => false,
        };
        let is_astray = entry.is_in_job && !is_decided;
        if bound && (is_astray || self.counts_elsewhere(slot)) {
            // It went elsewhere than the engine decided for its gang, or came into another queue:
            // from here on it runs by itself.
            self.tell_end(slot, events);
            self.retell(slot, Told::Nothing);
            self.set_own_job(slot, Place::Behind);
        } else if entry.id.is_none() && (bound || entry.gang.is_none()) {
            self.set_own_job(slot, Place::Behind);
        }
    }

    /// Gives a pod a job of its own.
    pub(super) fn set_own_job(&mut self, slot: Slot, place: Place) {
        let job = self.new_job(place);
        self.set_id(slot, Some(only_pod(job)), false);
    }

    /// An identity for a job, which says where it stands.
    pub(super) fn new_job(&mut self, place: Place) -> JobId {
        self.jobs_named.next(place)
    }

    /// Names a pod in the engine.
    pub(super) fn set_id(&mut self, slot: Slot, id: Option<PodId>, is_in_job: bool) {
        let entry = self.pods.get_mut(slot);
        entry.is_in_job = is_in_job;
        let before = std::mem::replace(&mut entry.id, id);
        // Another member may have its name by now.
        if let Some(before) = before.filter(|before| self.ids.get(before) == Some(&slot)) {
            self.ids.remove(&before);
        }
        if let Some(id) = id {
            self.ids.insert(id, slot);
        }
    }

    /// A pod that the engine need not know, or no longer.
    pub(super) fn tell_nothing(&mut self, slot: Slot, events: &mut Events) {
        self.keep_room(slot);
        self.tell_end(slot, events);
        self.retell(slot, Told::Nothing);
        let entry = self.pods.get_mut(slot);
        (entry.assumed, entry.waits_for_volumes) = (None, false);
        self.pods.index(slot);
    }

    /// Takes back whatever was told.
    pub(super) fn tell_end(&mut self, slot: Slot, events: &mut Events) {
        self.stop_counting(slot);
        let entry = self.pods.get(slot);
        let id = || entry.id.expect("what waits or runs has a name");
        match &entry.told {
            // The job of a gang is told of as a whole.
            Told::Nothing | Told::Member { .. } => {}
            Told::Waiting { .. } => events.freed.push(Event::Ended { job: id().job }),
            Told::Assumed { .. } | Told::Running { .. } => {
                events.freed.push(Event::PodEnded { pod: id() });
            }
            Told::Foreign { .. } => {
                events.freed.push(Event::ForeignReleased { name: full_name(&entry.pod) });
            }
        }
    }

    /// A pod that is to be placed by itself.
    pub(super) fn tell_waiting(
        &mut self,
        slot: Slot,
        requirement: Arc<Requirement>,
        events: &mut Events,
    ) {
        let id = self.pods.get(slot).id.expect("what waits has a name").job;
        let job = Box::new(self.job(slot, id, Arc::clone(&requirement)));
        let (priority, queue, kept_room) = (job.priority, job.queue.clone(), job.kept_room.clone());
        let told = Told::Waiting { requirement, priority, queue, kept_room };
        match &self.pods.get(slot).told {
            known if *known == told => return,
            Told::Waiting { .. } => events.waiting.push(Event::JobChanged(job)),
            _ => {
                self.tell_end(slot, events);
                events.waiting.push(Event::Submitted(job));
            }
        }
        self.retell(slot, told);
    }

    /// A member of a gang that has no node: the gang tells what follows.
    fn tell_wish(&mut self, slot: Slot, requirement: Requirement, events: &mut Events) {
        let requirement = self.intern(requirement);
        let entry = self.pods.get_mut(slot);
        entry.wish = Some(requirement);
        if matches!(entry.told, Told::Nothing | Told::Waiting { .. } | Told::Member { .. }) {
            return;
        }
        self.tell_end(slot, events);
        self.retell(slot, Told::Nothing);
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
        let id = entry.id.expect("what runs has a name");
        let known = match &entry.told {
            Told::Assumed { node: decided, held, .. } if *decided == node => {
                events.held.push(Event::Confirmed { pod: id });
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
            None if events.unheard => self.count_job(slot),
            None => {
                self.tell_end(slot, events);
                let start_ms = self.pods.get(slot).pod.meta.created_ms;
                let job = Box::new(self.running_job(slot, id.job, start_ms));
                self.count_job(slot);
                events.held.push(Event::Adopted { job, holdings: vec![holding] });
            }
        }
        self.pods.get_mut(slot).assumed = None;
        self.retell(slot, Told::Running { node, held });
        self.note_apart(slot);
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
    pub(super) fn note_refusal(&mut self, slot: Slot, refused: Option<NotYet>) {
        let entry = self.pods.get_mut(slot);
        if entry.refused == refused {
            return;
        }
        entry.refused.clone_from(&refused);
        let Some(reason) = refused else { return };
        let cause = self.cause_of(&self.pods.get(slot).pod.meta.namespace, &reason);
        let now_ms = self.now_ms;
        let entry = self.pods.get_mut(slot);
        let is_repeat = entry.said.is_repeat(cause, now_ms);
        let meta = &entry.pod.meta;
        self.reports.push(Report::Refused {
            namespace: meta.namespace.to_string(),
            name: meta.name.to_string(),
            uid: meta.uid.to_string(),
            reason,
            is_repeat,
        });
    }
}

fn refusal(standing: &Standing) -> Option<NotYet> {
    match standing {
        Standing::Refused(reason) => Some(reason.clone()),
        _ => None,
    }
}

fn counts_changed(holding: &Holding) -> Event {
    let owner: Owner = holding.owner.clone();
    Event::CountsChanged { owner, counts_into: holding.counts_into.clone() }
}
