//! What follows when the server refuses to evict pods, or does not say whether it does: others are
//! looked for, and these are exempt for a while.
//!
//! A right that the scheduler's account lacks is missing for every pod of the namespace, so none of
//! them is tried: pods of other namespaces are evicted in their place, and the server is asked
//! again, after pauses, whether it would evict one.

use dovetail_cluster::world::PodKey;
use dovetail_model::JobId;

use super::known::Known;
use super::news::{News, StopRefused};
use super::preempting::Preempting;
use super::refusals::Lasts;
use super::stops::victims_to_stop;
use crate::answer::lacked_right;
use crate::order::{Order, OrderEnd, Stop};

impl Preempting {
    /// The server refuses to stop a pod.
    pub(super) fn stop_refused(
        &mut self,
        known: &mut Known,
        victim: &PodKey,
        why: Stop,
        code: u16,
        message: &str,
    ) {
        let is_for_another = why == Stop::Preempted;
        if is_for_another && lacked_right(code, message).is_some() {
            return self.may_stop_nobody(known, victim, code, message);
        }
        self.tell_that_it_is_not_stopped(known, victim, Some(code), message);
        if !is_for_another {
            return;
        }
        // Who is too busy, or whose webhook fails, may be willing soon.
        let is_soon = matches!(code, 429 | 500);
        self.try_others(known, victim, if is_soon { Lasts::Briefly } else { Lasts::Long });
        if is_soon {
            known.orders.extend(self.take_back(&known.world, victim));
        }
    }

    /// Nobody knows what became of a stop: others are tried, so that one pod of which the server says nothing does not
    /// keep all from starting.
    pub(super) fn stop_unanswered(&mut self, known: &mut Known, victim: &PodKey, problem: &str) {
        self.tell_that_it_is_not_stopped(known, victim, None, problem);
        self.try_others(known, victim, Lasts::Briefly);
    }

    fn tell_that_it_is_not_stopped(
        &self,
        known: &mut Known,
        victim: &PodKey,
        code: Option<u16>,
        message: &str,
    ) {
        let jobs = self.jobs_waiting_for(&known.world, victim);
        let preemptor = jobs.first().and_then(|job| known.world.pods().pods_of(*job).next());
        known.news.push(News::StopRefused(Box::new(StopRefused {
            victim: victim.clone(),
            preemptor: preemptor.map(PodKey::of),
            code,
            message: message.to_owned(),
            is_for_all: false,
        })));
    }

    /// What was decided with the stop of a pod is decided anew, without this pod for a while.
    fn try_others(&mut self, known: &mut Known, victim: &PodKey, lasts: Lasts) {
        for job in self.jobs_waiting_for(&known.world, victim) {
            self.decide_anew(known, job);
        }
        self.refusals.victim(victim, lasts, known.now_ms);
        let events = known.world.set_exempt(victim, true);
        known.tell(events);
    }

    /// A stop for a job was in vain: it is decided about as if it were new, and stops nobody for a while if that was so
    /// too often.
    pub(super) fn decide_anew(&mut self, known: &mut Known, job: JobId) {
        self.call_off_stops(known, job);
        let events = match self.refusals.job(job, known.now_ms) {
            true => known.world.wait_patiently(job, true),
            false => known.world.preemption().submit_again(job),
        };
        known.tell(events);
        self.unnominate(known, job);
    }

    /// Who was not let go a short while ago, as it says itself, is left in peace by whoever comes new, too: by another
    /// leader, and by who asks what a scheduler would do.
    pub(super) fn spare_who_was_kept(&mut self, known: &mut Known) {
        for (pod, kept_ms) in known.world.preemption().with_refused_eviction() {
            if self.refusals.victim_since(&pod, kept_ms, known.now_ms) {
                let events = known.world.set_exempt(&pod, true);
                known.tell(events);
            }
        }
    }

    /// Who says no more that it was not let go may be stopped again: somebody has taken that back.
    pub(super) fn spare_no_longer_who_was_let_go(&mut self, known: &mut Known) {
        for pod in known.world.notices().evictable_again() {
            self.refusals.victims.forget(&pod);
            let events = known.world.set_exempt(&pod, false);
            known.tell(events);
        }
    }

    /// Lets pods be stopped again that were left in peace for long enough, and jobs stop others.
    pub(super) fn spare_no_longer(&mut self, known: &mut Known) {
        while let Some(pod) = self.refusals.victims.pop_due(known.now_ms) {
            let events = known.world.set_exempt(&pod, false);
            known.tell(events);
            // What became of its stop was not known; it is there, and nobody stops it.
            known.orders.extend(self.take_back(&known.world, &pod));
        }
        let world = &known.world;
        self.refusals.victims.sweep(|pod| world.pods().has(pod));
        for job in self.refusals.jobs_due(known.now_ms) {
            let events = known.world.wait_patiently(job, false);
            known.tell(events);
        }
    }

    /// The scheduler may not stop a pod, nor any other of its namespace.
    pub(super) fn may_stop_nobody(
        &mut self,
        known: &mut Known,
        victim: &PodKey,
        code: u16,
        message: &str,
    ) {
        let is_to_be_told = self.refusals.right(&victim.namespace, message, known.now_ms);
        let mut jobs: Vec<JobId> = Vec::new();
        let mut spared = Vec::new();
        for (job, room) in &self.rooms {
            let victims = victims_to_stop(&known.world, &room.victims);
            if victims.iter().any(|pod| pod.namespace == victim.namespace) {
                jobs.push(*job);
                spared.extend(victims);
            }
        }
        for job in &jobs {
            self.decide_anew(known, *job);
        }
        let events = known.world.set_namespace_exempt(&victim.namespace, true);
        known.tell(events);
        // An earlier leader may have marked them.
        let marks: Vec<Order> =
            spared.iter().filter_map(|pod| self.take_back(&known.world, pod)).collect();
        known.orders.extend(marks);
        if is_to_be_told {
            let first = jobs.first().and_then(|job| known.world.pods().pods_of(*job).next());
            known.news.push(News::StopRefused(Box::new(StopRefused {
                victim: victim.clone(),
                preemptor: first.map(PodKey::of),
                code: Some(code),
                message: message.to_owned(),
                is_for_all: true,
            })));
        }
    }

    /// Asks whether pods may be stopped now where that was not so, as long as anybody waits.
    pub(super) fn ask_for_rights(&mut self, known: &mut Known) {
        if known.waits.pods() == 0 {
            return;
        }
        while let Some(namespace) = self.refusals.right_to_ask(known.now_ms) {
            match known.world.preemption().preemptible_in(&namespace) {
                Some(pod) => known.orders.push_back(Order::MayStop { pod }),
                None => self.may_stop_again(known, &namespace),
            }
        }
    }

    /// When it is to be asked for rights.
    pub(super) fn rights_due_ms(&self, known: &Known) -> Option<u64> {
        self.refusals.right_due_ms().filter(|_| known.waits.pods() > 0)
    }

    /// Takes the answer for a pod.
    pub(super) fn may_be_stopped(&mut self, known: &mut Known, pod: &PodKey, end: &OrderEnd) {
        match end {
            OrderEnd::Refused { code, message } if lacked_right(*code, message).is_some() => {
                self.may_stop_nobody(known, pod, *code, message);
            }
            // What a policy says of the pod says that there is the right.
            OrderEnd::Done | OrderEnd::Refused { .. } => self.may_stop_again(known, &pod.namespace),
            OrderEnd::Gone | OrderEnd::CalledOff | OrderEnd::Unanswered { .. } => {
                self.refusals.ask_again(&pod.namespace, known.now_ms);
            }
        }
    }

    /// Pods of a namespace may be stopped.
    pub(super) fn may_stop_again(&mut self, known: &mut Known, namespace: &str) {
        if self.refusals.has_right(namespace) {
            let events = known.world.set_namespace_exempt(namespace, false);
            known.tell(events);
        }
    }
}
