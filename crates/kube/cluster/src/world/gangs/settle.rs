//! What is reported to the engine of a gang: one job, a job for what is missing, or each pod by
//! itself.

use std::sync::Arc;

use dovetail_model::{Event, Job, JobId, PodId};
use dovetail_objects::{Kind, Strange};

use super::Gangs;
use super::describe::{Seats, describe};
use crate::world::causes::cause_of;
use crate::world::feed::Feed;
use crate::world::feed::jobs::{LAST_AHEAD, QueuePosition};
use crate::world::feed::rooms::{Replacements, replacements};
use crate::world::key::PodKey;
use crate::world::objects::Objects;
use crate::world::objects::descriptions::kind_of;
use crate::world::objects::pods::Slot;
use crate::world::objects::reported::Reported;
use crate::world::readings::gang::{GangReading, terms_of};
use crate::world::readings::roll::{Lack, Roll, roll};
use crate::world::report::{Gathering, ObjectReport};
use dovetail_translate::NotYet;
use dovetail_translate::gang::{GangName, GangSource, GangTerms};

/// What it takes to report a gang.
pub(super) struct Settling<'w> {
    pub(super) objects: &'w mut Objects,
    pub(super) feed: &'w mut Feed,
    pub(super) gangs: &'w mut Gangs,
    pub(super) name: &'w Arc<GangName>,
}

impl Gangs {
    /// Compares what is to be reported of a gang with what was reported, and reports the
    /// difference.
    pub(crate) fn settle(&mut self, name: &Arc<GangName>, objects: &mut Objects, feed: &mut Feed) {
        if !self.by_name.contains_key(name) {
            return;
        }
        let is_empty = objects.members.of(name).next().is_none();
        let mut settling = Settling { objects, feed, gangs: self, name };
        if is_empty {
            settling.report_nothing();
            return self.forget(name, objects, feed);
        }
        let roll = roll(settling.objects, name);
        match terms_of(settling.objects, name) {
            Some(Ok(terms)) => settling.on(&terms, roll),
            Some(Err(reason)) => settling.leave_untouched(reason, &roll),
            None => settling.report_nothing(),
        }
    }
}

impl Settling<'_> {
    /// A gang whose pods cannot be placed as it is.
    fn leave_untouched(&mut self, reason: NotYet, roll: &Roll) {
        let quiet_at_ms = self.quiet_at_ms();
        match if_unreadable(self.objects, self.name, reason) {
            // What describes it may come a moment after its pods, and watches do not wait for each
            // other.
            NotYet::WorkloadMissing { .. } | NotYet::GroupMissing { .. }
                if quiet_at_ms > self.objects.now_ms =>
            {
                self.set_aside(&roll.pending, None);
                self.report_nothing();
                self.gangs.remind(self.name, Some(quiet_at_ms));
            }
            reason => {
                if !roll.pending.is_empty() {
                    self.report_contradiction(&reason);
                }
                self.set_aside(&roll.pending, Some(&reason));
                self.report_nothing();
            }
        }
    }

    /// Members that are not reported.
    fn set_aside(&mut self, members: &[Slot], reason: Option<&NotYet>) {
        for slot in members {
            self.feed.set_aside(self.objects, *slot, reason.cloned());
        }
    }

    /// A gang of which nothing is to be reported.
    fn report_nothing(&mut self) {
        self.withdraw();
        self.settle_rooms(&Roll::default(), &Lack::default(), &Replacements::default());
        self.gangs.get_mut(self.name).shortness.is_over();
        self.gangs.remind(self.name, None);
    }

    /// Tells what is kept for the gang; when it is to be looked at again.
    fn settle_rooms(
        &mut self,
        roll: &Roll,
        lack: &Lack,
        replacements: &Replacements,
    ) -> Option<u64> {
        let Feed { rooms, requirements, events, .. } = &mut *self.feed;
        let noted = rooms.settle(self.objects, requirements, self.name, (roll, lack, replacements));
        events.freed.extend(noted.freed);
        events.held.extend(noted.held);
        noted.due_ms
    }

    fn on(&mut self, terms: &GangTerms, mut roll: Roll) {
        if let Some(max) = terms.max {
            let room = (max as usize).saturating_sub(roll.placed.len());
            let too_many = roll.pending.split_off(room.min(roll.pending.len()));
            self.set_aside(&too_many, Some(&NotYet::GangFull { gang: self.name.to_string(), max }));
        }
        self.report_size(terms, &roll);
        let lack = self.gang(terms).lack(roll.settled());
        let short_due_ms = self.note_shortness(terms, &roll, &lack);
        let is_loss = self.gangs.by_name[self.name].shortness.is_loss(&self.gang(terms), &lack);
        let replacements = match is_loss {
            true => replacements(&self.gang(terms), &roll, &lack),
            // What never had its size is placed together, and has all of it.
            false => Replacements::default(),
        };
        let rooms_due_ms = self.settle_rooms(&roll, &lack, &replacements);
        let mut gather_due_ms = None;
        if lack.is_none() || is_loss {
            self.gangs.get_mut(self.name).announced_wait = None;
            self.withdraw();
            for slot in &roll.pending {
                let place = QueuePosition::ahead(replacements.pods.contains(slot));
                self.place_alone(*slot, terms, &roll, place);
            }
        } else if self.is_gathered(terms, &roll) {
            self.gangs.get_mut(self.name).announced_wait = None;
            self.place_together(terms, &roll, &lack);
        } else {
            self.withdraw();
            let quiet_ms = self.quiet_at_ms();
            let is_quiet = quiet_ms <= self.objects.now_ms;
            gather_due_ms = (!is_quiet).then_some(quiet_ms);
            self.set_aside(&roll.pending, None);
            if is_quiet {
                self.report_gathering(terms, &roll);
            }
        }
        let due_ms = [short_due_ms, rooms_due_ms, gather_due_ms].into_iter().flatten().min();
        self.gangs.remind(self.name, due_ms);
    }

    pub(super) fn gang<'s>(&'s self, terms: &'s GangTerms) -> GangReading<'s> {
        GangReading { objects: self.objects, name: self.name, terms }
    }

    /// When no member has appeared for a while, if none does.
    fn quiet_at_ms(&self) -> u64 {
        let appeared_ms = self.objects.members.appeared_ms(self.name);
        appeared_ms + self.objects.settings.patience.quiet_ms
    }

    /// Whether what is missing can start: it is there, nothing holds any of it back, and it is all
    /// that is expected or no more has come for a while.
    fn is_gathered(&self, terms: &GangTerms, roll: &Roll) -> bool {
        let lack = self.gang(terms).lack(roll.there());
        if !lack.is_none() || (roll.placed.is_empty() && roll.gated > 0) {
            return false;
        }
        let is_reported = self.gangs.by_name[self.name].waiting.is_some();
        let is_waited_for = roll.placed.is_empty()
            && !is_reported
            && roll.there().count() < terms.expected as usize
            && self.objects.now_ms < self.quiet_at_ms();
        !is_waited_for
    }

    /// The engine need not know of a gang's job, or no longer.
    fn withdraw(&mut self) {
        let job = self.gangs.get_mut(self.name).waiting.take();
        self.feed.events.freed.extend(job.map(|job| Event::ended(job.id)));
    }

    /// A member of a gang that has its size, or, ahead of others, one that replaces a lost one.
    fn place_alone(&mut self, slot: Slot, terms: &GangTerms, roll: &Roll, place: QueuePosition) {
        let Self { objects, feed, name, .. } = self;
        let entry = objects.pods.get(slot);
        let Some(wish) = entry.wish.clone() else { return };
        // A pod that waited to make its gang larger may be what it lacks now.
        let was_behind = entry.id.is_some_and(|id| id.job.0 > LAST_AHEAD);
        if entry.is_in_job || entry.id.is_none() || (was_behind && place == QueuePosition::Ahead) {
            feed.end(objects, slot);
            feed.note(objects, slot, Reported::Nothing);
            feed.set_own_job(objects, slot, place);
        }
        let gang = GangReading { objects, name, terms };
        let requirement = feed.requirements.near(&gang, slot, wish, roll);
        objects.pods.get_mut(slot).beside = terms.min;
        feed.refuse(objects, slot, None);
        feed.submit(objects, slot, requirement);
    }

    /// What is missing to the smallest size of a gang, and what it could use beyond, as one job.
    fn place_together(&mut self, terms: &GangTerms, roll: &Roll, lack: &Lack) {
        let id = self.job_of_gang(!roll.placed.is_empty());
        let gang = GangReading { objects: self.objects, name: self.name, terms };
        match describe(&gang, self.feed, roll, lack, id) {
            Ok((job, seats)) => {
                self.submit_job(job);
                self.seat(id, seats);
            }
            Err(reason) => {
                self.report_contradiction(&reason);
                self.withdraw();
                self.set_aside(&roll.pending, Some(&reason));
            }
        }
    }

    fn submit_job(&mut self, job: Job) {
        let gang = self.gangs.get_mut(self.name);
        let events = &mut self.feed.events;
        match &gang.waiting {
            Some(known) if *known == job => return,
            Some(known) if known.id == job.id => {
                events.waiting.push(Event::JobChanged(Box::new(job.clone())));
            }
            known => {
                events.freed.extend(known.as_ref().map(|known| Event::ended(known.id)));
                events.waiting.push(Event::Submitted(Box::new(job.clone())));
            }
        }
        gang.waiting = Some(job);
    }

    /// Names the members as the engine will.
    fn seat(&mut self, job: JobId, seats: Seats) {
        let Self { objects, feed, .. } = self;
        for (pod_set, set) in seats.into_iter().enumerate() {
            for (ordinal, slot) in set.slots.into_iter().enumerate() {
                // A job of its own is over.
                feed.end(objects, slot);
                let requirement = Arc::clone(&set.requirement);
                feed.note(objects, slot, Reported::Member { requirement });
                let (pod_set, ordinal) = (pod_set as u16, ordinal as u32);
                objects.pods.set_id(slot, Some(PodId { job, pod_set, ordinal }), true);
                feed.refuse(objects, slot, None);
                objects.pods.get_mut(slot).announced_wait = None;
            }
        }
    }

    /// The identity of a gang's job: the one it had, so that it keeps its place, unless pods still
    /// run by it.
    fn job_of_gang(&mut self, ahead: bool) -> JobId {
        let gang = self.gangs.get_mut(self.name);
        let known = gang.job.filter(|(_, was_ahead)| *was_ahead == ahead).map(|(job, _)| job);
        let pods = &self.objects.pods;
        let runs = |job: JobId| pods.of_job(job).any(|slot| pods.get(slot).reported.runs());
        let free = known.filter(|job| !runs(*job));
        let job = free.unwrap_or_else(|| self.feed.jobs.next(QueuePosition::ahead(ahead)));
        gang.job = Some((job, ahead));
        job
    }

    /// Reports once of a native group that it has its size, as the watch shows it.
    fn report_size(&mut self, terms: &GangTerms, roll: &Roll) {
        let group = self.objects.descriptions.group_of(self.name);
        let group = group.filter(|_| self.name.source == GangSource::Native);
        let is_in_status = group.is_none_or(|group| group.initially_scheduled["status"] == "True");
        if is_in_status || roll.seen.len() + roll.succeeded.len() < terms.min.max(1) as usize {
            return;
        }
        if !std::mem::replace(&mut self.gangs.get_mut(self.name).has_announced_size, true) {
            let (namespace, name) = (self.name.namespace.to_string(), self.name.name.to_string());
            self.feed.reports.push(ObjectReport::GroupHasItsSize { namespace, name });
        }
    }

    /// Reports once of what describes a gang that its pods cannot be placed as it is.
    fn report_contradiction(&mut self, reason: &NotYet) {
        let is_wrong = matches!(reason, NotYet::MembersDiffer { .. } | NotYet::Gang { .. });
        let gang = self.gangs.get_mut(self.name);
        if !is_wrong || gang.contradiction.as_ref() == Some(reason) {
            return;
        }
        gang.contradiction = Some(reason.clone());
        let objects = &*self.objects;
        let namespace = &self.name.namespace;
        let cause = cause_of(reason, |word| objects.pods.find(namespace, word).is_some());
        let is_repeat = gang.said.is_repeat(cause, objects.now_ms);
        let described = objects.descriptions.object_of(self.name);
        let unreadable = || {
            let (kind, strange) = unreadable_description(objects, self.name)?;
            Some((kind, &strange.meta))
        };
        let Some((kind, meta)) = described.or_else(unreadable) else { return };
        self.feed.reports.push(ObjectReport::Contradiction {
            kind,
            about: PodKey::of_meta(meta),
            reason: reason.clone(),
            is_repeat,
        });
    }

    /// Reports of the members that they wait for others, and of a native group, when that is new or
    /// has changed.
    fn report_gathering(&mut self, terms: &GangTerms, roll: &Roll) {
        let present = self.gang(terms).present(roll);
        let (gated, refused, retried) = (roll.gated, roll.refused, roll.retried);
        let gathering = Gathering { present, min: terms.min, gated, refused, retried };
        let Self { objects, feed, gangs, name: gang } = self;
        for slot in &roll.pending {
            let entry = objects.pods.get_mut(*slot);
            if entry.announced_wait.replace(gathering) == Some(gathering) {
                continue;
            }
            let (pod, gang) = (PodKey::of(&entry.pod), gang.to_string());
            feed.reports.push(ObjectReport::WaitsForMembers { pod, gang, gathering });
        }
        let any_waits = !roll.pending.is_empty() || roll.refused + roll.retried > 0;
        let is_native = gang.source == GangSource::Native && any_waits;
        if is_native && gangs.get_mut(gang).announced_wait.replace(gathering) != Some(gathering) {
            let (namespace, name) = (gang.namespace.to_string(), gang.name.to_string());
            let gang = gang.to_string();
            feed.reports.push(ObjectReport::GroupWaits { namespace, name, gang, gathering });
        }
    }
}

/// What is wrong with a gang of which something is missing: the object may be there, and not to be
/// read.
fn if_unreadable(objects: &Objects, gang: &GangName, reason: NotYet) -> NotYet {
    let is_missing = matches!(reason, NotYet::GroupMissing { .. } | NotYet::WorkloadMissing { .. });
    match unreadable_description(objects, gang).filter(|_| is_missing) {
        None => reason,
        Some((_, Strange { field, problem, .. })) => {
            let problem = format!("its field `{field}` is invalid: {problem}; correct it");
            NotYet::Gang { gang: gang.to_string(), problem }
        }
    }
}

/// The object that describes a gang, where it cannot be read.
fn unreadable_description<'o>(
    objects: &'o Objects,
    gang: &GangName,
) -> Option<(Kind, &'o Strange)> {
    let kind = kind_of(gang)?;
    Some((kind, objects.unreadable.get(kind, &gang.namespace, &gang.name)?))
}
