//! What the engine is told of a gang: one job, a job for what is missing, or each pod by itself.

use std::sync::Arc;

use dovetail_model::{Event, Job, JobId, PodId};
use dovetail_objects::{Kind, Strange};

use super::describe::Seats;
use super::kept::Heirs;
use super::kind_of;
use super::roll::{Lack, Roll};
use crate::translate::NotYet;
use crate::translate::gang::{GangName, Source, Terms};
use crate::world::World;
use crate::world::pods::Slot;
use crate::world::report::{Gathering, Report};
use crate::world::standing::Told;
use crate::world::tell::{Events, LAST_AHEAD, Place};

impl World {
    /// Compares what is to be told of a gang with what was told, and tells the difference.
    pub(in crate::world) fn settle_gang(&mut self, name: &Arc<GangName>, events: &mut Events) {
        let Some(gang) = self.gangs.get(name) else { return };
        if gang.members.is_empty() {
            self.leave_be(name, events);
            return self.gangs.forget(name);
        }
        let roll = self.roll(gang);
        match self.terms_of(name) {
            Some(Ok(terms)) => self.settle_on(name, &terms, roll, events),
            Some(Err(reason)) => self.leave_untouched(name, reason, &roll, events),
            None => self.leave_be(name, events),
        }
    }

    /// A gang whose pods cannot be placed as it is.
    fn leave_untouched(
        &mut self,
        name: &Arc<GangName>,
        reason: NotYet,
        roll: &Roll,
        events: &mut Events,
    ) {
        match self.if_unreadable(name, reason) {
            // What describes it may come a moment after its pods, and watches do not wait for each
            // other.
            NotYet::WorkloadMissing { .. } | NotYet::GroupMissing { .. }
                if self.quiet_at_ms(name) > self.now_ms =>
            {
                for slot in &roll.wishing {
                    self.set_aside(*slot, None, events);
                }
                self.leave_be(name, events);
                let due_ms = self.quiet_at_ms(name);
                self.gangs.remind(name, Some(due_ms));
            }
            reason => {
                if !roll.wishing.is_empty() {
                    self.say_what_is_wrong(name, &reason);
                }
                for slot in &roll.wishing {
                    self.set_aside(*slot, Some(reason.clone()), events);
                }
                self.leave_be(name, events);
            }
        }
    }

    /// What is wrong with a gang of which something is missing: the object may be there, and not to
    /// be read.
    fn if_unreadable(&self, name: &GangName, reason: NotYet) -> NotYet {
        let is_missing =
            matches!(reason, NotYet::GroupMissing { .. } | NotYet::WorkloadMissing { .. });
        match self.strange_description(name).filter(|_| is_missing) {
            None => reason,
            Some((_, Strange { field, problem, .. })) => {
                let problem = format!("its field `{field}` cannot be read: {problem}; correct it");
                NotYet::Gang { gang: name.to_string(), problem }
            }
        }
    }

    /// The object that describes a gang, where it cannot be read.
    fn strange_description(&self, name: &GangName) -> Option<(Kind, &Strange)> {
        let kind = kind_of(name)?;
        let key = (kind, (name.namespace.clone(), name.name.clone()));
        Some((kind, self.strange.get(&key)?))
    }

    /// A gang of which nothing is to be told.
    fn leave_be(&mut self, name: &Arc<GangName>, events: &mut Events) {
        self.withdraw(name, events);
        self.settle_kept(name, &Roll::default(), &Lack::default(), &Heirs::default(), events);
        self.gangs.get_mut(name).shortness.is_over();
        self.gangs.remind(name, None);
    }

    fn settle_on(
        &mut self,
        name: &Arc<GangName>,
        terms: &Terms,
        mut roll: Roll,
        events: &mut Events,
    ) {
        if let Some(max) = terms.max {
            let room = (max as usize).saturating_sub(roll.placed.len());
            let gang = name.to_string();
            for slot in roll.wishing.split_off(room.min(roll.wishing.len())) {
                let full = NotYet::GangFull { gang: gang.clone(), max };
                self.set_aside(slot, Some(full), events);
            }
        }
        self.say_that_it_is_scheduled(name, terms, &roll);
        let lack = self.lack(name, terms, roll.settled());
        let short_due_ms = self.note_shortness(name, terms, &roll, &lack);
        let is_loss = self.is_loss(name, terms, &lack);
        let heirs = match is_loss {
            true => self.heirs(name, terms, &roll, &lack),
            // What never had its size is placed together, and has all of it.
            false => Heirs::default(),
        };
        let kept_due_ms = self.settle_kept(name, &roll, &lack, &heirs, events);
        let mut gather_due_ms = None;
        if lack.is_none() || is_loss {
            self.gangs.get_mut(name).told_to_wait = None;
            self.withdraw(name, events);
            for slot in &roll.wishing {
                let place = Place::ahead(heirs.pods.contains(slot));
                self.place_alone(*slot, name, terms, &roll, place, events);
            }
        } else if self.is_gathered(name, terms, &roll) {
            self.gangs.get_mut(name).told_to_wait = None;
            self.place_together(name, terms, &roll, &lack, events);
        } else {
            self.withdraw(name, events);
            let quiet_ms = self.quiet_at_ms(name);
            let is_quiet = quiet_ms <= self.now_ms;
            gather_due_ms = (!is_quiet).then_some(quiet_ms);
            for slot in &roll.wishing {
                self.set_aside(*slot, None, events);
            }
            if is_quiet {
                self.say_that_it_waits(name, terms, &roll);
            }
        }
        let due_ms = [short_due_ms, kept_due_ms, gather_due_ms].into_iter().flatten().min();
        self.gangs.remind(name, due_ms);
    }

    /// When no member has appeared for a while, if none does.
    fn quiet_at_ms(&self, name: &GangName) -> u64 {
        let appeared_ms = self.gangs.get(name).map_or(0, |gang| gang.appeared_ms);
        appeared_ms + self.settings.patience.quiet_ms
    }

    /// Whether what is missing can start: it is there, nobody holds any of it, and it is all that
    /// is expected or no more has come for a while.
    fn is_gathered(&self, name: &GangName, terms: &Terms, roll: &Roll) -> bool {
        let there = self.lack(name, terms, roll.settled().chain(roll.wishing.iter().copied()));
        if !there.is_none() || (roll.placed.is_empty() && roll.gated > 0) {
            return false;
        }
        let is_told = self.gangs.get(name).is_some_and(|gang| gang.waiting.is_some());
        let present = roll.settled().count() + roll.wishing.len();
        let is_waited_for = roll.placed.is_empty()
            && !is_told
            && present < terms.expected as usize
            && self.now_ms < self.quiet_at_ms(name);
        !is_waited_for
    }

    /// The engine need not know of a gang's job, or no longer.
    fn withdraw(&mut self, name: &GangName, events: &mut Events) {
        if let Some(job) = self.gangs.get_mut(name).waiting.take() {
            events.freed.push(Event::Ended { job: job.id });
        }
    }

    /// A member that is not told of.
    fn set_aside(&mut self, slot: Slot, reason: Option<NotYet>, events: &mut Events) {
        self.tell_end(slot, events);
        self.retell(slot, Told::Nothing);
        self.set_id(slot, None, false);
        self.note_refusal(slot, reason);
    }

    /// A member of a gang that has its size, or, ahead of others, one that replaces a lost one.
    fn place_alone(
        &mut self,
        slot: Slot,
        name: &GangName,
        terms: &Terms,
        roll: &Roll,
        place: Place,
        events: &mut Events,
    ) {
        let entry = self.pods.get(slot);
        let Some(wish) = entry.wish.clone() else { return };
        // Who waited to make its gang larger may be what it lacks now.
        let was_behind = entry.id.is_some_and(|id| id.job.0 > LAST_AHEAD);
        if entry.is_in_job || entry.id.is_none() || (was_behind && place == Place::Ahead) {
            self.tell_end(slot, events);
            self.retell(slot, Told::Nothing);
            self.set_own_job(slot, place);
        }
        let requirement = self.near(slot, wish, name, terms, roll);
        self.pods.get_mut(slot).beside = terms.min;
        self.note_refusal(slot, None);
        self.tell_waiting(slot, requirement, events);
    }

    /// What is missing to the smallest size of a gang, and what it could use beyond, as one job.
    fn place_together(
        &mut self,
        name: &GangName,
        terms: &Terms,
        roll: &Roll,
        lack: &Lack,
        events: &mut Events,
    ) {
        let id = self.job_of_gang(name, !roll.placed.is_empty());
        let (job, seats) = match self.describe(name, terms, roll, lack, id) {
            Ok(described) => described,
            Err(reason) => {
                self.say_what_is_wrong(name, &reason);
                self.withdraw(name, events);
                for slot in &roll.wishing {
                    self.set_aside(*slot, Some(reason.clone()), events);
                }
                return;
            }
        };
        self.tell_job(name, job, events);
        self.seat(id, seats, events);
    }

    fn tell_job(&mut self, name: &GangName, job: Job, events: &mut Events) {
        let gang = self.gangs.get_mut(name);
        match &gang.waiting {
            Some(known) if *known == job => return,
            Some(known) if known.id == job.id => {
                events.waiting.push(Event::JobChanged(Box::new(job.clone())));
            }
            known => {
                events.freed.extend(known.as_ref().map(|known| Event::Ended { job: known.id }));
                events.waiting.push(Event::Submitted(Box::new(job.clone())));
            }
        }
        gang.waiting = Some(job);
    }

    /// Names the members as the engine will.
    fn seat(&mut self, job: JobId, seats: Seats, events: &mut Events) {
        for (pod_set, set) in seats.into_iter().enumerate() {
            for (ordinal, slot) in set.slots.into_iter().enumerate() {
                // A job of its own is over.
                self.tell_end(slot, events);
                self.retell(slot, Told::Member { requirement: Arc::clone(&set.requirement) });
                let (pod_set, ordinal) = (pod_set as u16, ordinal as u32);
                self.set_id(slot, Some(PodId { job, pod_set, ordinal }), true);
                self.note_refusal(slot, None);
                self.pods.get_mut(slot).told_to_wait = None;
            }
        }
    }

    /// The identity of a gang's job: the one it had, so that it keeps its place, unless pods still
    /// run by it.
    fn job_of_gang(&mut self, name: &GangName, ahead: bool) -> JobId {
        let gang = self.gangs.get_mut(name);
        let known = gang.job.filter(|(_, was_ahead)| *was_ahead == ahead).map(|(job, _)| job);
        let runs = |job: JobId| {
            self.slots_of(job).any(|slot| {
                matches!(self.pods.get(slot).told, Told::Assumed { .. } | Told::Running { .. })
            })
        };
        let job =
            known.filter(|job| !runs(*job)).unwrap_or_else(|| self.new_job(Place::ahead(ahead)));
        self.gangs.get_mut(name).job = Some((job, ahead));
        job
    }

    /// Says once of a native group that it has its size, as the watch shows it.
    fn say_that_it_is_scheduled(&mut self, name: &GangName, terms: &Terms, roll: &Roll) {
        let group = self.gangs.groups.get(name).filter(|_| name.source == Source::Native);
        let is_said = group.is_none_or(|group| group.initially_scheduled["status"] == "True");
        if is_said || roll.seen.len() + roll.succeeded.len() < terms.min.max(1) as usize {
            return;
        }
        if !std::mem::replace(&mut self.gangs.get_mut(name).is_told_of_size, true) {
            let (namespace, name) = (name.namespace.to_string(), name.name.to_string());
            self.reports.push(Report::GroupHasItsSize { namespace, name });
        }
    }

    /// Says once of what describes a gang that its pods cannot be placed as it is.
    fn say_what_is_wrong(&mut self, name: &GangName, reason: &NotYet) {
        let is_wrong = matches!(reason, NotYet::MembersDiffer { .. } | NotYet::Gang { .. });
        let gang = self.gangs.get_mut(name);
        if !is_wrong || gang.contradiction.as_ref() == Some(reason) {
            return;
        }
        gang.contradiction = Some(reason.clone());
        let (cause, now_ms) = (self.cause_of(&name.namespace, reason), self.now_ms);
        let is_repeat = self.gangs.get_mut(name).said.is_repeat(cause, now_ms);
        let described = self.gangs.described_by(name);
        let strange =
            || self.strange_description(name).map(|(kind, strange)| (kind, &strange.meta));
        let Some((kind, meta)) = described.or_else(strange) else { return };
        self.reports.push(Report::Contradiction {
            kind,
            namespace: meta.namespace.to_string(),
            name: meta.name.to_string(),
            uid: meta.uid.to_string(),
            reason: reason.clone(),
            is_repeat,
        });
    }

    /// Says of the members that they wait for others, and of a native group, when that is new or
    /// has changed.
    fn say_that_it_waits(&mut self, gang: &GangName, terms: &Terms, roll: &Roll) {
        let there = roll.settled().chain(roll.wishing.iter().copied());
        let present = terms.min.saturating_sub(self.lack(gang, terms, there).pods);
        let (gated, refused, retried) = (roll.gated, roll.refused, roll.retried);
        let gathering = Gathering { present, min: terms.min, gated, refused, retried };
        for slot in &roll.wishing {
            let entry = self.pods.get_mut(*slot);
            if entry.told_to_wait.replace(gathering) == Some(gathering) {
                continue;
            }
            let meta = &entry.pod.meta;
            self.reports.push(Report::WaitsForMembers {
                namespace: meta.namespace.to_string(),
                name: meta.name.to_string(),
                uid: meta.uid.to_string(),
                gang: gang.to_string(),
                gathering,
            });
        }
        let someone_waits = !roll.wishing.is_empty() || roll.refused + roll.retried > 0;
        let is_native = gang.source == Source::Native && someone_waits;
        if is_native && self.gangs.get_mut(gang).told_to_wait.replace(gathering) != Some(gathering)
        {
            let (namespace, name) = (gang.namespace.to_string(), gang.name.to_string());
            let gang = gang.to_string();
            self.reports.push(Report::GroupWaits { namespace, name, gang, gathering });
        }
    }
}
