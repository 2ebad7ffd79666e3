//! Pods that were to be stopped for others, and that the server does not let go: others are looked for, and these are
//! left in peace for a while.

use super::news::{News, PodName, StopRefused};
use super::pauses::Pause;
use super::scheduler::Scheduler;
use crate::bind::Stop;
use crate::client::lacked_right;
use crate::world::PodKey;

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
        let pause = if matches!(code, 429 | 500) { Pause::Long } else { Pause::Victim };
        self.try_others(victim, pause);
    }

    /// Nobody knows what became of a stop: others are tried, so that one pod of which the server says nothing does not
    /// keep all from starting.
    pub(super) fn stop_unanswered(&mut self, victim: &PodKey, problem: &str) {
        self.tell_that_it_is_not_stopped(victim, None, problem);
        self.try_others(victim, Pause::Long);
    }

    fn tell_that_it_is_not_stopped(&mut self, victim: &PodKey, code: Option<u16>, message: &str) {
        let jobs = self.jobs_waiting_for(victim);
        let preemptor = jobs.first().and_then(|job| self.world.pods_of(*job).next());
        self.news.push(News::StopRefused(Box::new(StopRefused {
            victim: victim.clone(),
            preemptor: preemptor.map(|pod| (PodName::of(pod), pod.meta.uid.to_string())),
            code,
            message: message.to_owned(),
            is_tried_again: false,
            jobs,
        })));
    }

    /// What was decided with the stop of a pod is decided anew, without this pod for a while.
    fn try_others(&mut self, victim: &PodKey, pause: Pause) {
        for job in self.jobs_waiting_for(victim) {
            self.call_off_stops(job);
            let events = self.world.submit_again(job);
            self.tell(events);
            self.unnominate(job);
        }
        self.spared.pause_pod(self.now_ms, victim, pause);
        let events = self.world.spare(victim, true);
        self.tell(events);
    }

    /// Who was not let go a short while ago, as it says itself, is left in peace by whoever comes new, too: by another
    /// leader, and by who asks what a scheduler would do.
    pub(super) fn spare_who_was_kept(&mut self) {
        for (pod, kept_ms) in self.world.kept_pods() {
            if self.spared.pause_victim_since(self.now_ms, &pod, kept_ms) {
                let events = self.world.spare(&pod, true);
                self.tell(events);
            }
        }
    }

    /// Lets pods be stopped again that were left in peace for long enough.
    pub(super) fn spare_no_longer(&mut self) {
        while let Some(pod) = self.spared.pop_due(self.now_ms) {
            let events = self.world.spare(&pod, false);
            self.tell(events);
        }
        let world = &self.world;
        self.spared.sweep(|pod| world.has(pod));
    }
}
