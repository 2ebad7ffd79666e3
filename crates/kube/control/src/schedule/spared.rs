//! Pods that were to be stopped for others, and that the server does not let go: others are looked for, and these are
//! left in peace for a while.

use dovetail_cluster::world::PodKey;
use dovetail_model::JobId;

use super::news::{News, PodName, StopRefused};
use super::pauses::Pause;
use super::scheduler::Scheduler;
use crate::answer::lacked_right;
use crate::bind::Stop;

impl Scheduler {
    /// The server refuses to stop a pod.
    pub(super) fn stop_refused(&mut self, victim: &PodKey, why: Stop, code: u16, message: &str) {
        let is_for_another = why == Stop::Preempted;
        if is_for_another && lacked_right(code, message).is_some() {
            return self.may_stop_nobody(victim, code, message);
        }
        self.tell_that_it_is_not_stopped(victim, Some(code), message);
        if !is_for_another {
            return;
        }
        // Who is too busy, or whose webhook fails, may be willing soon.
        let is_soon = matches!(code, 429 | 500);
        self.try_others(victim, if is_soon { Pause::Long } else { Pause::Victim });
        if is_soon {
            self.orders.extend(self.take_back(victim));
        }
    }

    /// Nobody knows what became of a stop: others are tried, so that one pod of which the server says nothing does not
    /// keep all from starting.
    pub(super) fn stop_unanswered(&mut self, victim: &PodKey, problem: &str) {
        self.tell_that_it_is_not_stopped(victim, None, problem);
        self.try_others(victim, Pause::Long);
    }

    fn tell_that_it_is_not_stopped(&mut self, victim: &PodKey, code: Option<u16>, message: &str) {
        let jobs = self.jobs_waiting_for(victim);
        let preemptor = jobs.first().and_then(|job| self.world.pods().pods_of(*job).next());
        self.news.push(News::StopRefused(Box::new(StopRefused {
            victim: victim.clone(),
            preemptor: preemptor.map(|pod| (PodName::of(pod), pod.meta.uid.to_string())),
            code,
            message: message.to_owned(),
            is_for_all: false,
        })));
    }

    /// What was decided with the stop of a pod is decided anew, without this pod for a while.
    fn try_others(&mut self, victim: &PodKey, pause: Pause) {
        for job in self.jobs_waiting_for(victim) {
            self.decide_anew(job);
        }
        self.spared.pause_pod(self.now_ms, victim, pause);
        let events = self.world.spare(victim, true);
        self.tell(events);
    }

    /// A stop for a job was in vain: it is decided about as if it were new, and stops nobody for a while if that was so
    /// too often.
    pub(super) fn decide_anew(&mut self, job: JobId) {
        self.call_off_stops(job);
        let events = match self.tries.in_vain(job, self.now_ms) {
            true => self.world.wait_patiently(job, true),
            false => self.world.preemption().submit_again(job),
        };
        self.tell(events);
        self.unnominate(job);
    }

    /// Who was not let go a short while ago, as it says itself, is left in peace by whoever comes new, too: by another
    /// leader, and by who asks what a scheduler would do.
    pub(super) fn spare_who_was_kept(&mut self) {
        for (pod, kept_ms) in self.world.preemption().kept_pods() {
            if self.spared.pause_victim_since(self.now_ms, &pod, kept_ms) {
                let events = self.world.spare(&pod, true);
                self.tell(events);
            }
        }
    }

    /// Who says no more that it was not let go may be stopped again: somebody has taken that back.
    pub(super) fn spare_no_longer_who_was_let_go(&mut self) {
        for pod in self.world.notices().let_go() {
            self.spared.forget(&pod);
            let events = self.world.spare(&pod, false);
            self.tell(events);
        }
    }

    /// Lets pods be stopped again that were left in peace for long enough, and jobs stop others.
    pub(super) fn spare_no_longer(&mut self) {
        while let Some(pod) = self.spared.pop_due(self.now_ms) {
            let events = self.world.spare(&pod, false);
            self.tell(events);
            // What became of its stop was not known; it is there, and nobody stops it.
            self.orders.extend(self.take_back(&pod));
        }
        let world = &self.world;
        self.spared.sweep(|pod| world.pods().has(pod));
        for job in self.tries.take_due(self.now_ms) {
            let events = self.world.wait_patiently(job, false);
            self.tell(events);
        }
    }
}
